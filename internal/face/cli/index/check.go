package index

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/retire"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/oneline"
)

func newList(s screen.Streams) *cobra.Command {
	var f indexFlags
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "Say where each index stands that is being retired, or was",
		Example: "  risso index list\n  risso index list --output json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			list, err := f.folder().List()
			a, lines := ListAnswer{Indexes: []StandAnswer{}}, []string{}
			for _, r := range list {
				a.Indexes = append(a.Indexes, stand(r))
				lines = append(lines, fmt.Sprintf("%-9s %s on %s: %s", r.Phase, oneline.Of(r.Object()), oneline.Of(r.Server), oneline.Of(stands(r, time.Now()))))
			}
			if len(list) == 0 && err == nil {
				lines = append(lines, "No index is being retired.")
			}
			return errors.Join(write(s.Out, f.output, a, lines), err)
		},
	}
	cmd.Flags().StringVar(&f.state, "state", "", "folder of the journal (default "+home.State("index")+")")
	flags.OutputVar(cmd.Flags(), &f.output, "", "text", "json")
	return cmd
}

// stand is where an index stands.
func stand(r *retire.Record) StandAnswer {
	a := StandAnswer{Server: r.Server, Object: r.Object(), Phase: r.Phase, Hidden: r.Hidden, Due: r.Due, Checked: r.Checked, Worse: r.Worse, Log: append([]retire.Entry{}, r.Log...)}
	switch r.Phase {
	case retire.Watching:
		a.Undo = r.Show
	case retire.Dropped:
		a.Undo = r.Undo
	}
	return a
}

func newCheck(s screen.Streams) *cobra.Command {
	var f indexFlags
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Compare statements with those before, take back what made one slower, drop what is due",
		Long: `For each index of the server that is hidden: compares what each class of statements of its table costs
since then with what it did before. If one reads many more rows by a call (1.5 times and 100 more, of
5 calls at least), takes much longer (twice and 2 ms more, of 20 calls at least), or fails because a
hint names the index, the index is shown again at once. If none does and its time is over, it is
dropped, and the statement that makes it again is kept. What a killed process left is made whole.

Replicas that were named when it was hidden must be named again, or it is not dropped. risso serve
does the same each hour for the servers that it watches; without it, run this by cron.

Only what was seen counts: the index is watched as much longer as it is not known what ran, on one of
the servers, because of a restart, a table of classes that was emptied or is full, statements that were
not counted, or a replica that does not replicate.

Exit codes: 0 nothing was taken back; 1 an index was taken back, or could not be checked.

` + fault.Help,
		Example: `  risso index check --dsn 'risso@tcp(db1:3306)/' --replica 'risso@tcp(db2:3306)/'
  risso index check --dsn 'risso@tcp(db1:3306)/' --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.check(cmd.Context(), s) },
	}
	f.bind(cmd)
	f.bindReplicas(cmd)
	return cmd
}

func (f *indexFlags) check(ctx context.Context, s screen.Streams) error {
	r, err := f.retirer()
	if err != nil {
		return err
	}
	list, failed := f.folder().List()
	mine, err := r.Mine(ctx, list)
	if err != nil {
		return err
	}
	a, lines := CheckAnswer{DryRun: f.dryRun, Indexes: []CheckedIndex{}}, []string{}
	for _, rec := range mine {
		if rec.Ended() {
			continue
		}
		c, err := r.Check(ctx, rec, f.dryRun)
		one := CheckedIndex{StandAnswer: stand(rec), Watched: c.Watched, Fresh: c.Fresh, Unasked: c.Unasked, Did: c.Did}
		line := fmt.Sprintf("%s: %s; %s of its table ran since", oneline.Of(rec.Object()), oneline.Of(c.Did), digits.Plural(c.Watched, "class of statements", "classes of statements"))
		if c.Fresh > 0 {
			line += fmt.Sprintf(", %d of which did not before, so that they cannot be compared", c.Fresh)
		}
		if c.Did == "" {
			line = oneline.Of(rec.Object()) + ": " + oneline.Of(stands(rec, r.Now()))
		}
		if err != nil {
			one.Error = err.Error()
			line = oneline.Of(rec.Object()) + ": " + oneline.Of(err.Error())
			failed = errors.Join(failed, fmt.Errorf("%s: %w", rec.Object(), err))
		}
		if len(c.Worse) > 0 {
			failed = errors.Join(failed, fmt.Errorf("%s: class %s %s", rec.Object(), c.Worse[0].Digest, c.Worse[0].What))
		}
		a.Indexes, lines = append(a.Indexes, one), append(lines, line)
	}
	if len(lines) == 0 {
		lines = append(lines, "No index of this server is being retired.")
	}
	return errors.Join(write(s.Out, f.output, a, lines), failed)
}

// newOne is back or drop.
func newOne(s screen.Streams, verb, short string) *cobra.Command {
	var f indexFlags
	cmd := &cobra.Command{
		Use:     verb + " SCHEMA.TABLE.INDEX",
		Short:   short,
		Example: "  risso index " + verb + " shop.orders.status_2 --dsn 'risso@tcp(db1:3306)/'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := f.retirer()
			if err != nil {
				return err
			}
			table, index, err := object(args[0])
			if err != nil {
				return err
			}
			list, err := f.folder().List()
			if err != nil {
				return err
			}
			mine, err := r.Mine(cmd.Context(), list)
			if err != nil {
				return err
			}
			for _, rec := range mine {
				if rec.TableName() != table || rec.Index != index {
					continue
				}
				statement := rec.Drop
				if verb == "back" {
					if statement = rec.Show; rec.Phase == retire.Dropped {
						statement = rec.Undo
					}
				}
				if f.output == "text" {
					fmt.Fprintln(s.Out, oneline.Of(statement))
				}
				if f.dryRun {
					return write(s.Out, f.output, ListAnswer{[]StandAnswer{stand(rec)}}, []string{"nothing was done"})
				}
				if verb == "back" {
					err = r.Back(cmd.Context(), rec)
				} else {
					err = r.Drop(cmd.Context(), rec)
				}
				if err != nil {
					return err
				}
				return write(s.Out, f.output, ListAnswer{[]StandAnswer{stand(rec)}}, []string{oneline.Of(stands(rec, r.Now()))})
			}
			return fault.New(fault.Usage, "risso index list", fmt.Errorf("no index %s of this server is being retired", args[0]))
		},
	}
	f.bind(cmd)
	return cmd
}
