package advise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/explain/advise/gather"
	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/serve/prove"
)

type proveFlags struct {
	flags.Server
	source  flags.Source
	slow    []string
	on      string
	pairs   int
	rows    float64
	unused  time.Duration
	state   string
	dir     string
	timeout time.Duration
	output  string
}

// proofs is the folder of proofs among the state of a command.
func proofs(state string) string {
	if state == "" {
		state = home.State("advise")
	}
	return filepath.Join(state, "proofs")
}

func newProve(s screen.Streams) *cobra.Command {
	var f proveFlags
	cmd := &cobra.Command{
		Use:   "prove ID[:OBJECT]",
		Short: "Measure on a copy what a finding's statement does",
		Long: `Copies the tables that a finding is about into a throw-away server of the same version and settings:
from the newest backup of --from, or from the server itself, large tables as a sample, which is said.
There it runs the classes of statements that touch the table, with recorded parameters, before and
after the finding's statement, in turns, and says how many rows they read and how long they take,
with the verdict of risso bench compare; also what gets worse, among that the INSERT of rows.

Your server is only read. The proof is kept, and risso advise shows it with the finding. What a proof
that was killed left is in risso sandbox list, and the next proof throws it away.

` + fault.Help,
		Example: `  risso advise prove index.missing --dsn 'risso@tcp(db1:3306)/'
  risso advise prove index.missing:shop.orders.customer_status --dsn 'risso@tcp(db1:3306)/' --from /backups/db1`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), s, args[0]) },
	}
	f.Bind(cmd, "the server of the finding")
	f.source.Bind(cmd)
	fl := cmd.Flags()
	fl.StringArrayVar(&f.slow, "slow-log", nil, "read statements from this slow log, and not from performance_schema; may be repeated")
	fl.StringVar(&f.on, "on", "", "server to measure on, as risso sandbox up takes it (default: same flavour and series)")
	fl.IntVar(&f.pairs, "pairs", 6, "how many times before and after are measured")
	fl.Float64Var(&f.rows, "copy-rows", 200_000, "rows of a table that is copied whole; of a larger one about so many are")
	flags.DurationVar(fl, &f.unused, "unused-after", 24*time.Hour, "as risso advise")
	fl.StringVar(&f.state, "state", "", "folder of the proofs (default "+home.State("advise")+")")
	fl.StringVar(&f.dir, "dir", "", "folder of the throw-away server (default that of risso sandbox)")
	flags.DurationVar(fl, &f.timeout, "timeout", time.Hour, "give up after this time")
	flags.OutputVar(fl, &f.output, "", "text", "json")
	return cmd
}

func (f *proveFlags) run(ctx context.Context, s screen.Streams, what string) error {
	id, object, _ := strings.Cut(what, ":")
	if f.pairs < 4 || f.rows < 1 || f.timeout <= 0 || f.unused <= 0 {
		return fault.Usagef("--pairs: at least 4; --copy-rows, --timeout and --unused-after: more than 0")
	}
	target, err := f.Target()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, f.timeout, fmt.Errorf("not done within %s", f.timeout))
	defer cancel()
	profile, err := (&adviseFlags{slow: f.slow}).slowProfile(ctx)
	if err != nil {
		return err
	}
	finding, seat, err := f.find(ctx, target, profile, id, object)
	if err != nil {
		return err
	}
	o := prove.Options{Target: target, Finding: finding, Slow: profile, Spec: f.on, Pairs: f.pairs, Most: f.rows, Dir: f.dir}
	if f.source.From != "" {
		r, end, err := f.source.Open(ctx)
		if err != nil {
			return err
		}
		defer end()
		o.Repo = r
	}
	progress := screen.NewProgress(s.Err)
	o.Progress = func(text string) { progress.Show(func(float64) string { return text }) }
	p, err := prove.Run(ctx, o)
	progress.End()
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = errors.Join(cause, err)
	}
	if err != nil {
		return err
	}
	if err := prove.Keep(proofs(f.state), seat, finding, p); err != nil {
		return err
	}
	if f.output == "json" {
		return render.JSON(s.Out, ProofAnswer{finding.ID, finding.Object, p})
	}
	_, err = io.WriteString(s.Out, proofText(finding, p))
	return err
}

// find looks at the server again, for the finding as it is now.
func (f *proveFlags) find(ctx context.Context, target mysql.Target, profile *digest.Profile, id, object string) (advise.Finding, string, error) {
	a, err := gather.Look(ctx, target, gather.Options{Slow: profile, Unused: f.unused, Wanted: func(x string) bool { return x == id }})
	if err != nil {
		return advise.Finding{}, "", err
	}
	var objects []string
	var one advise.Finding
	for _, x := range a.Findings {
		if x.ID == id && (object == "" || x.Object == object) {
			objects, one = append(objects, x.Object), x
		}
	}
	switch len(objects) {
	case 1:
		return one, a.Server.Place(), nil
	case 0:
		why := ""
		for _, m := range a.Missing {
			why += "; not looked at: " + m.What + ": " + m.Why
		}
		return one, "", fault.New(fault.Failed, "risso advise lists what is found", fmt.Errorf("there is no finding %s %s now%s", id, object, why))
	}
	return one, "", fault.New(fault.Usage, fmt.Sprintf("risso advise prove '%s:%s'", id, objects[0]), fmt.Errorf("%d findings %s: name the object of one", len(objects), id))
}

// proofText is a proof for people.
func proofText(f advise.Finding, p advise.Proof) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n%s\n\n%s: %s\n", f.ID, oneline.Of(f.Object), oneline.Of(p.Statement), p.Outcome, p.Words)
	fmt.Fprintf(&b, "on %s, with %s; the statement took %s there\n", p.On, p.Data, digits.Seconds(p.Seconds))
	for _, t := range p.Tables {
		how := "all rows"
		if !t.All {
			how = "a sample of about " + digits.Count(t.Of)
		}
		fmt.Fprintf(&b, "  %s: %s rows, %s\n", oneline.Of(t.Name), digits.Count(t.Rows), how)
	}
	b.WriteString("\n")
	for _, c := range p.Classes {
		if c.ID == "insert" {
			fmt.Fprintf(&b, "%s\n  %s before, %s after\n  %s\n", oneline.Of(c.Fingerprint), digits.Seconds(c.Before), digits.Seconds(c.After), oneline.Of(c.Verdict))
			continue
		}
		fmt.Fprintf(&b, "class %s, %s\n  %s\n  reads %s rows by a call before, %s after; %s before, %s after\n  %s\n", c.ID, digits.Plural(c.Samples, "recorded statement", "recorded statements"), oneline.Cut(oneline.Of(c.Fingerprint), 160),
			digits.Count(c.RowsBefore), digits.Count(c.RowsAfter), digits.Seconds(c.Before), digits.Seconds(c.After), oneline.Of(c.Verdict))
	}
	if len(p.Worse) == 0 {
		b.WriteString("\nworse: nothing that was measured\n")
	}
	for _, w := range p.Worse {
		fmt.Fprintf(&b, "\nworse: %s\n", oneline.Of(w))
	}
	for _, n := range p.Notes {
		fmt.Fprintf(&b, "note: %s\n", oneline.Of(n))
	}
	return b.String()
}
