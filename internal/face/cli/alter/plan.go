package alter

import (
	"context"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/digits"
	core "github.com/rissodb/risso/internal/explain/alter"
	"github.com/rissodb/risso/internal/explain/alter/ask"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/sqltext"
)

func newPlan(s screen.Streams) *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan STATEMENT",
		Short: "Say what an ALTER TABLE will do: kind, locks, time, disk, replicas, what is in the way",
		Long: `Says what an ALTER TABLE will do, and changes nothing on the server. Whether it is instant,
in place or a copy, and which lock it needs, is found out by asking an empty clone of the
table on a sandbox of the same kind and version; how long it takes, on a part of the real
rows there (--sample-size). Where no such server is installed on this machine it says so, and
goes by the manual.

` + fault.Help,
		Example: `  risso alter plan --dsn 'risso@unix(/run/mysqld/mysqld.sock)/shop' "ALTER TABLE orders ADD note TEXT"
  risso alter plan --dsn 'risso:secret@tcp(db1:3306)/shop' --sample-size 256MiB --output json "ALTER TABLE orders ENGINE=InnoDB"`,
		Args: flags.AtMost(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runPlan(cmd.Context(), s, f, args) },
	}
	f.Bind(cmd, "the server")
	cmd.Flags().StringVar(&f.sample, "sample-size", "64MiB", "how much of the table to copy into the sandbox and time the change on; 0: none")
	flags.OutputVar(cmd.Flags(), &f.output, "", "text", "json")
	return cmd
}

// make makes the plan.
func (f planFlags) make(ctx context.Context, s screen.Streams, target mysql.Target, statement string) (ask.Planned, error) {
	sample, err := digits.ParseBytes(f.sample)
	if err != nil {
		return ask.Planned{}, fault.Usagef("--sample-size: %w", err)
	}
	step, end := say(s)
	defer end()
	return ask.Plan(ctx, ask.Options{Target: target, Statement: statement, Sample: sample, Watch: ask.Watch, File: optionFile(f.Server), Say: step})
}

func runPlan(ctx context.Context, s screen.Streams, f planFlags, args []string) error {
	statement, err := oneStatement(args)
	if err != nil {
		return err
	}
	target, err := f.Target()
	if err != nil {
		return err
	}
	p, err := f.make(ctx, s, target, statement)
	if err != nil {
		return err
	}
	if f.output == "json" {
		err = render.JSON(s.Out, p.Plan)
	} else {
		err = writePlan(s.Out, p.Plan)
	}
	if err == nil && p.Kind == core.KindRefused {
		return &fault.Told{Code: fault.Failed}
	}
	return err
}

// writePlan writes a plan in words.
func writePlan(w io.Writer, p core.Plan) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", sqltext.Printable(p.Table))
	head := ""
	for _, l := range p.Lines {
		name := l.Head
		if name == head {
			name = ""
		}
		head = l.Head
		fmt.Fprintf(&b, "  %-13s %s\n", name, oneline.Of(l.Text))
	}
	for _, t := range p.Test {
		if t.Select != "" {
			fmt.Fprintf(&b, "\n-- %s; no row: it fits\n%s;\n", oneline.Of(t.Says), t.Select)
		}
	}
	if p.Runs() {
		fmt.Fprintf(&b, "\nrisso alter run sends:\n%s;\n", p.Statement)
	}
	for _, t := range p.Tools {
		if t.Command == "" {
			fmt.Fprintf(&b, "\n%s cannot: %s\n", t.Name, oneline.Of(strings.Join(t.Cannot, "; ")))
			continue
		}
		fmt.Fprintf(&b, "\nor, in pieces, by %s:\n%s\n", t.Name, t.Command)
		for _, n := range t.Notes {
			fmt.Fprintf(&b, "  %s\n", oneline.Of(n))
		}
	}
	if len(p.Unknown) > 0 {
		fmt.Fprint(&b, "\nnot known:\n")
		for _, u := range p.Unknown {
			fmt.Fprintf(&b, "  %s: %s\n", u.What, fault.Line(oneline.Of(u.Why), u.Remedy))
		}
	}
	_, err := io.WriteString(w, shown(b.String()))
	return err
}

// shown is a text of several lines without what a terminal would obey: statements quote comments and names of others.
func shown(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
