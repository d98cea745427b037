// Package index holds the command risso index: indexes taken out of use step by step.
package index

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/retire"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
)

type indexFlags struct {
	flags.Server
	replicas []string
	watch    string
	state    string
	dryRun   bool
	yes      bool
	output   string
}

// New is risso index and all below it.
func New(s screen.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "index",
		Short: "Take indexes out of use step by step, and back",
		Long: `Retires indexes that nothing seems to use: hidden first (INVISIBLE of MySQL 8, IGNORED of MariaDB
10.6), while they are still maintained; watched; shown again by risso index check when a class of
statements gets slower, reads more rows or fails; dropped in the end. Where each stands is on disk
before every step.`,
		Example: `  risso index retire shop.orders.status_2 --dsn 'risso@tcp(db1:3306)/' --dry-run
  risso index check --dsn 'risso@tcp(db1:3306)/'
  risso index list`,
	}
	cmd.AddCommand(newRetire(s), newList(s), newCheck(s), newOne(s, "back", "Show an index again, or make it again if it was dropped"), newOne(s, "drop", "Drop an index that is watched, before its time"))
	return cmd
}

// bind adds the flags that all have that ask a server.
func (f *indexFlags) bind(cmd *cobra.Command) {
	f.Server.Bind(cmd, "the primary")
	fl := cmd.Flags()
	fl.StringVar(&f.state, "state", "", "folder of the journal (default "+home.State("index")+")")
	fl.BoolVar(&f.dryRun, "dry-run", false, "show what would be done, and change nothing")
	flags.OutputVar(fl, &f.output, "", "text", "json")
}

// bindReplicas adds the flag that names replicas.
func (f *indexFlags) bindReplicas(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.replicas, "replica", nil, "DSN, or name in --config, of a replica whose statements are watched as well; may be repeated")
}

func newRetire(s screen.Streams) *cobra.Command {
	var f indexFlags
	cmd := &cobra.Command{
		Use:   "retire SCHEMA.TABLE.INDEX…",
		Short: "Hide an index, so that risso index check can drop it after weeks, or take it back",
		Long: `Shows the plan, asks, and hides the index: no statement uses it then, but it is maintained, so that
it is back at once. From then on risso serve, or risso index check run by cron, compares each hour
what each class of statements of the table costs with what it did before.

Refused is what a primary key, a unique rule, a foreign key on either side, AUTO_INCREMENT or a hint
needs. A server that counts no statements (performance_schema) is refused, too, for nobody would
notice that they get slower. On servers that cannot hide an index there is only the drop.

A name with a dot in it is quoted: 'shop.` + "`a.b`" + `.status'.`,
		Example: `  risso index retire shop.orders.status_2 --dsn 'risso@tcp(db1:3306)/' --dry-run
  risso index retire shop.orders.status_2 --dsn 'risso@tcp(db1:3306)/' --replica 'risso@tcp(db2:3306)/' --watch 5w --yes`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.retire(cmd.Context(), s, args) },
	}
	f.bind(cmd)
	f.bindReplicas(cmd)
	cmd.Flags().StringVar(&f.watch, "watch", "35d", "how long it is watched before it is dropped: long enough that the end of a month is in it")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	return cmd
}

// retirer is what does it.
func (f *indexFlags) retirer() (*retire.Retirer, error) {
	target, err := f.Target()
	if err != nil {
		return nil, err
	}
	others, err := f.Others(f.replicas)
	if err != nil {
		return nil, err
	}
	r := &retire.Retirer{Folder: f.folder(), Server: retire.Server{Name: target.Address(), Target: target}, Now: time.Now}
	for _, o := range others {
		r.Replicas = append(r.Replicas, retire.Server{Name: o.Address(), Target: o})
	}
	if f.watch != "" {
		if r.Watch, err = digits.ParseAge(f.watch); err != nil || r.Watch <= 0 {
			return nil, fault.Usagef("--watch %q: a time such as 35d", f.watch)
		}
	}
	return r, nil
}

func (f *indexFlags) folder() retire.Folder {
	if f.state == "" {
		f.state = home.State("index")
	}
	return retire.Open(f.state)
}

func (f *indexFlags) retire(ctx context.Context, s screen.Streams, args []string) error {
	r, err := f.retirer()
	if err != nil {
		return err
	}
	told := s.Out
	if f.output == "json" {
		told = s.Err // the answer is the document
	}
	a := RetireAnswer{DryRun: f.dryRun, Indexes: []RetiredAnswer{}}
	var records []*retire.Record
	for _, arg := range args {
		table, index, err := object(arg)
		if err != nil {
			return err
		}
		rec, err := r.Prepare(ctx, table, index)
		if err != nil {
			return fmt.Errorf("%s: %w", arg, err)
		}
		plan := r.Plan(rec)
		records = append(records, rec)
		one := RetiredAnswer{Object: rec.Object(), Plan: plan.Words(), Later: append([]string{}, r.Later(rec)...), Undo: rec.Undo, Notes: append([]string{}, rec.Notes...)}
		if rec.Hide != "" {
			one.Undo = rec.Show
		}
		a.Indexes = append(a.Indexes, one)
		fmt.Fprintf(told, "%s on %s, %s on disk\n", oneline.Of(rec.Object()), r.Server.Name, digits.Bytes(rec.Bytes))
		for _, note := range rec.Notes {
			fmt.Fprintln(told, "  note:", oneline.Of(note))
		}
		screen.Steps(told, plan)
		for _, line := range one.Later {
			fmt.Fprintln(told, "  later:", oneline.Of(line))
		}
	}
	if !f.dryRun {
		if err := screen.Agreed(s, f.yes); err != nil {
			return err
		}
		for i, rec := range records {
			if err := r.Begin(ctx, rec); err != nil {
				return fmt.Errorf("%s: %w", rec.Object(), err)
			}
			a.Indexes[i].Phase = string(rec.Phase)
			fmt.Fprintf(told, "%s: %s\n", oneline.Of(rec.Object()), stands(rec, r.Now()))
		}
	}
	if f.output == "json" {
		return render.JSON(s.Out, a)
	}
	return nil
}

// object reads schema.table.index; a part in backticks may have dots in it.
func object(text string) (table mysql.TableName, index string, err error) {
	var parts []string
	rest := text
	for {
		part := ""
		if strings.HasPrefix(rest, "`") {
			end := 1
			for end < len(rest) && (rest[end] != '`' || strings.HasPrefix(rest[end:], "``")) {
				if end++; rest[end-1] == '`' {
					end++
				}
			}
			if end >= len(rest) {
				return table, "", fault.Usagef("%q: a backtick is not closed", text)
			}
			part, rest = strings.ReplaceAll(rest[1:end], "``", "`"), rest[end+1:]
		} else {
			end := strings.IndexByte(rest+".", '.')
			part, rest = rest[:end], rest[end:]
		}
		parts = append(parts, part)
		if rest == "" {
			break
		}
		if rest[0] != '.' {
			return table, "", fault.Usagef("%q: schema.table.index, with names in backticks if they have dots", text)
		}
		rest = rest[1:]
	}
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return table, "", fault.Usagef("%q: schema.table.index, with names in backticks if they have dots", text)
	}
	return mysql.TableName{Schema: parts[0], Name: parts[1]}, parts[2], nil
}

// stands says where an index stands, in words.
func stands(r *retire.Record, now time.Time) string {
	switch r.Phase {
	case retire.Watching:
		if now.Before(r.Due) {
			return fmt.Sprintf("hidden since %s; may be dropped in %s; undo: %s", r.Hidden.Local().Format(time.DateTime), digits.Span(r.Due.Sub(now)), r.Show)
		}
		return fmt.Sprintf("hidden since %s; the next check drops it; undo: %s", r.Hidden.Local().Format(time.DateTime), r.Show)
	case retire.Dropped:
		return "dropped; undo: " + r.Undo
	case retire.Back:
		why := ""
		if len(r.Worse) > 0 {
			why = ": class " + r.Worse[0].Digest + " " + r.Worse[0].What
		} else if n := len(r.Log); n > 0 {
			why = ": " + r.Log[n-1].What
		}
		return "in use again" + why
	}
	return "a process ended while it was " + string(r.Phase) + "; risso index check makes it whole"
}

// write writes lines for people or an answer.
func write(w io.Writer, output string, answer any, lines []string) error {
	if output == "json" {
		return render.JSON(w, answer)
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}
