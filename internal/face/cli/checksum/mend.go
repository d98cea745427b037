package checksum

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/data/checksum"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/sqltext"
)

// mendRows is how many rows of a table one run repairs.
const mendRows = 10_000

type mendFlags struct {
	mend, dryRun, triggers, foreignKeys bool
	journal                             string
}

func (f *mendFlags) bind(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&f.mend, "mend", false, "rewrite the rows that differ on the primary, unchanged, so that they replicate")
	fl.BoolVar(&f.dryRun, "dry-run", false, "with --mend: show the plan, change nothing")
	fl.BoolVar(&f.triggers, "with-triggers", false, "with --mend: also tables with triggers, which will fire")
	fl.BoolVar(&f.foreignKeys, "with-foreign-keys", false, "with --mend: also tables referenced by foreign keys of others; the referring rows do not change")
	fl.StringVar(&f.journal, "state", "", "with --mend: folder of the journal of what was written (default "+home.State("checksum")+")")
}

// runMend repairs what was found, and compares again.
func (f checksumFlags) runMend(ctx context.Context, s screen.Streams, o checksum.Options, r checksum.Result, found []checksum.Table) error {
	out := s.Out
	if f.output == "json" {
		out = s.Err // the result is the document
	}
	if f.journal == "" {
		f.journal = home.State("checksum")
	}
	if len(found) == 0 {
		return checksumVerdict(r)
	}
	m := checksum.MendOptions{Primary: o.Primary, Replicas: o.Others, Tables: found, Triggers: f.triggers, ForeignKeys: f.foreignKeys, Journal: f.journal}
	plan, err := checksum.PlanMend(ctx, m)
	if err != nil {
		return err
	}
	f.showPlan(out, o, plan)
	switch {
	case f.dryRun:
		return checksumVerdict(r)
	case len(plan.Steps) == 0:
		return fault.New(fault.Differs, "", errors.New("nothing can be repaired"))
	}
	progress := screen.NewProgress(s.Err)
	journal, err := checksum.Mend(ctx, m, plan, func(done int) {
		progress.Show(func(float64) string {
			return fmt.Sprintf("repaired %d of %s", done, digits.Counted(len(plan.Steps), "row"))
		})
	})
	progress.End()
	if journal != "" {
		fmt.Fprintf(out, "journal: %s\n", journal)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s written; compared once more:\n", digits.Plural(len(plan.Steps), "row", "rows"))
	return f.compareAgain(ctx, out, o, found)
}

// compareAgain verifies what was repaired.
func (f checksumFlags) compareAgain(ctx context.Context, out io.Writer, o checksum.Options, found []checksum.Table) error {
	o.Tables, o.Schemas, o.State, o.Resume = nil, nil, "", false
	for _, t := range found {
		o.Tables = append(o.Tables, t.Schema+"."+t.Name)
	}
	f.all, f.rows = true, true
	text := checksumText{out: out, flags: f}
	o.Each, o.Progress = text.table, nil
	again, err := checksum.Compare(ctx, o)
	if err != nil {
		return err
	}
	text.end(again)
	return checksumVerdict(again)
}

// showPlan writes what will be done.
func (f checksumFlags) showPlan(out io.Writer, o checksum.Options, p checksum.Plan) {
	fmt.Fprintf(out, "\nplan: %s to be written once more on %s, replicating by statement\n", digits.Plural(len(p.Steps), "row", "rows"), o.Primary)
	const most = 50
	for i, st := range p.Steps {
		if i == most && !f.dryRun {
			fmt.Fprintf(out, "  and %d more (--dry-run lists all)\n", len(p.Steps)-most)
			break
		}
		verb := "REPLACE"
		if st.Kind == checksum.Extra {
			verb = "DELETE"
		}
		key := make([]string, len(st.Key))
		for i, k := range st.Key {
			key[i] = sqltext.Printable(k.Column) + "=" + sqltext.Printable(k.Value)
		}
		fmt.Fprintf(out, "  %s %s.%s %s (%s on %s)\n", verb, sqltext.Printable(st.Schema), sqltext.Printable(st.Table), strings.Join(key, ", "), st.Kind, strings.Join(st.On, ", "))
	}
	for _, r := range p.Refused {
		fmt.Fprintf(out, "  not repaired: %s: %s\n", r.What, fault.Line(r.Why, r.Remedy))
	}
	for _, n := range p.Notes {
		fmt.Fprintf(out, "  %s\n", n)
	}
}
