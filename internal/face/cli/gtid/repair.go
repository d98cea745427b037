package gtid

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/errant"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/home"
)

type repairFlags struct {
	flags.Server
	source, save, plan, state, output string
	dryRun, yes, equal, forget        bool
}

// How long a replica may take to replicate again, and a server to answer: to stop, it ends the transaction in hand; to begin its binary log anew, it removes all files.
const (
	repairPatience = 30 * time.Second
	answerPatience = 10 * time.Minute
)

func newRepair(s screen.Streams) *cobra.Command {
	var f repairFlags
	cmd := &cobra.Command{
		Use:   "repair --dsn REPLICA --source PRIMARY",
		Short: "Repair a replica's errant transactions, after the plan was shown",
		Long: `Lets a replica get rid of errant transactions. The plan is shown first.

MySQL: the primary gets each of them as an empty transaction, which changes nothing there nor on other
replicas; the replica passes over them, and so does all that replicates from it.
With --forget, and on MariaDB, the replica, if it has no replicas itself, forgets that it had them: its
binary log begins anew, with gtid_purged, or gtid_binlog_state and gtid_slave_pos, as they would be
without them. On MySQL that needs --rows-equal. A MariaDB with replicas: the plan says in which order.

The replica may be below others that replicate from the primary; they are found, and asked by its account.

Rows that they changed stay as they are: the plan names the tables, to be compared and mended by
risso checksum, and says how they are set back. Where they changed definitions, or nobody can say what
they changed, only a rebuild helps, unless --rows-equal says that both servers were compared.

It stops at the first surprise and puts in order what was begun. If it is killed, risso gtid back does.
A server may take 10 minutes for an answer. With --save the plan is written to a file; --plan runs it
later, only if nothing has changed meanwhile. A journal says what was done.`,
		Example: `  risso gtid repair --dsn 'risso:secret@tcp(db2:3306)/' --source 'risso:secret@tcp(db1:3306)/' --dry-run
  risso gtid repair --dsn 'risso@tcp(db2)/' --source 'risso@tcp(db1)/' --save repair.json
  risso gtid repair --dsn 'risso@tcp(db2)/' --source 'risso@tcp(db1)/' --plan repair.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runRepair(cmd.Context(), s, f) },
	}
	f.Server.Bind(cmd, "the replica")
	fl := cmd.Flags()
	fl.StringVar(&f.source, "source", "", "the source, written as --dsn")
	fl.StringVar(&f.save, "save", "", "write the plan to this file, change nothing")
	fl.StringVar(&f.plan, "plan", "", "file of a plan to run, if nothing has changed since it was saved")
	fl.BoolVar(&f.equal, "rows-equal", false, "rows and definitions of both servers were compared and are equal")
	fl.BoolVar(&f.forget, "forget", false, "let the replica forget them, on MySQL too: for one without replicas, with --rows-equal")
	fl.BoolVar(&f.dryRun, "dry-run", false, "print the plan and end")
	fl.BoolVar(&f.yes, "yes", false, "do not ask")
	fl.StringVar(&f.state, "state", "", "folder of the journals (default "+home.State("gtid")+")")
	flags.OutputVar(fl, &f.output, "", "text", "json")
	cmd.MarkFlagsMutuallyExclusive("save", "plan")
	cmd.MarkFlagsMutuallyExclusive("save", "dry-run")
	return cmd
}

// ends are both servers of a repair.
type ends struct{ replica, source named }

func (f repairFlags) ends() (e ends, err error) {
	if f.source == "" {
		return e, fault.Usagef("give the primary by --source DSN")
	}
	for _, one := range []struct {
		to  *named
		dsn string
	}{{&e.replica, f.Dsn}, {&e.source, f.source}} {
		f.Dsn = one.dsn
		t, err := f.Target()
		if err != nil {
			return e, err
		}
		*one.to = named{t.Address(), t}
	}
	return e, nil
}

func runRepair(ctx context.Context, s screen.Streams, f repairFlags) error {
	e, err := f.ends()
	if err != nil {
		return err
	}
	var saved errant.Plan
	if f.plan != "" {
		text, err := os.ReadFile(f.plan)
		if err == nil {
			saved, err = errant.ReadPlan(text)
		}
		if err != nil {
			return err
		}
		f.equal, f.forget = f.equal || saved.Equal, f.forget || saved.Method == errant.MethodForget
	}
	if !f.dryRun && f.save == "" && !f.yes && !screen.OnTerminal(s.In) {
		return fault.New(fault.Usage, "give --yes to run it, --dry-run to see the plan, or --save FILE to keep it", errors.New("nobody is there to say yes"))
	}
	v, p, err := e.plan(ctx, errant.Wanted{RowsEqual: f.equal, Forget: f.forget, Replica: fleet.ShellWord(e.replica.target.Again()), Source: fleet.ShellWord(e.source.target.Again())})
	if err != nil {
		return err
	}
	out := s.Out
	if f.output == "json" {
		out = s.Err // the answer is the document
	}
	if v.Unknown == "" && len(v.Parts) > 0 {
		writeVerdict(out, &v, false)
	}
	writePlan(out, &p)
	if f.plan != "" {
		if differs := saved.Same(&p); len(differs) > 0 {
			return fault.New(fault.Failed, "make a new plan with --save, and look at it", fmt.Errorf("things have changed since the plan was saved, and nothing was done: %s", strings.Join(differs, "; ")))
		}
	}
	return f.carryOut(ctx, s, e, RepairAnswer{Plan: p, DryRun: f.dryRun})
}

// plan reads both servers, and those between them, and makes the plan.
func (e ends) plan(ctx context.Context, w errant.Wanted) (v errant.Verdict, p errant.Plan, err error) {
	source, err := e.source.ask(ctx) // once more after the others
	if err != nil {
		return v, p, err
	}
	replica, err := e.replica.ask(ctx)
	if err != nil {
		return v, p, err
	}
	if w.Between, err = e.replica.between(ctx, &replica, &source); err != nil {
		return v, p, err
	}
	if source, err = e.source.askSource(ctx); err != nil {
		return v, p, err
	}
	if v, err = judgeTwice(ctx, errant.Question{Replica: replica, Source: &source, Others: w.Between}, e.source); err != nil {
		return v, p, err
	}
	errant.Describe(ctx, &v, flags.ErrantLogs{Server: e.replica.target})
	p, err = errant.MakePlan(&v, &replica, &source, w, time.Now())
	return v, p, err
}

// carryOut saves the plan, or asks and runs it.
func (f repairFlags) carryOut(ctx context.Context, s screen.Streams, e ends, a RepairAnswer) error {
	p := a.Plan
	switch {
	case p.Method == errant.MethodRebuild, p.Method == errant.MethodBelow:
		return errors.Join(f.answer(s, a), fault.New(fault.Failed, "", errors.New(p.Because)))
	case len(p.Steps) == 0, f.dryRun:
		return f.answer(s, a)
	case f.save != "":
		var text bytes.Buffer
		if err := render.JSON(&text, p); err != nil {
			return err
		}
		if err := os.WriteFile(f.save, text.Bytes(), 0o600); err != nil {
			return fmt.Errorf("save the plan: %w", err)
		}
		a.Saved = f.save
		return f.answer(s, a)
	}
	keeper := keeper(f.state, e.replica.target)
	if err := keeper.Left(ctx, e.replica.target); err != nil {
		return err
	}
	if !f.yes && !screen.Confirmed(s) {
		return fault.New(fault.Failed, "", errors.New("not confirmed: nothing was changed"))
	}
	diary, err := change.NewDiary(keeper.Dir, "repair")
	if err != nil {
		return err
	}
	defer diary.Close()
	a.Journal = diary.Path()
	if err := diary.Note(p); err != nil {
		return err
	}
	a.Done, err = p.Carry(ctx, errant.Doing{Replica: e.replica.target.WithPatience(answerPatience), Source: e.source.target.WithPatience(answerPatience), Note: diary.Note, Patience: repairPatience, Keeper: keeper})
	if err != nil && ctx.Err() != nil { // of an interrupted command no more is told than that
		fmt.Fprintln(s.Err, "risso:", err)
	}
	return errors.Join(err, f.answer(s, a))
}

// answer tells what was done.
func (f repairFlags) answer(s screen.Streams, a RepairAnswer) error {
	if f.output == "json" {
		return render.JSON(s.Out, a)
	}
	if a.Saved != "" {
		fmt.Fprintf(s.Out, "the plan is in %s; nothing was changed\n", a.Saved)
	}
	if a.Journal != "" {
		fmt.Fprintf(s.Out, "%d of %s done; journal: %s\n", a.Done, digits.Counted(len(a.Plan.Steps), "step"), a.Journal)
	}
	return nil
}

func writePlan(w io.Writer, p *errant.Plan) {
	fmt.Fprintf(w, "plan: %s: %s\n", p.Method, p.Because)
	for _, text := range p.Before {
		fmt.Fprintln(w, "  before:", text)
	}
	var steps change.Plan
	for _, st := range p.Steps {
		steps = append(steps, change.Step{What: cmp.Or(strings.Join(st.Statement, "; "), "read both servers again, also"), Where: "on " + st.Server, Why: st.Because})
	}
	screen.Steps(w, steps)
	if p.Lost != "" {
		fmt.Fprintln(w, "  not to be undone:", p.Lost)
	}
	for _, text := range p.After {
		fmt.Fprintln(w, "  afterwards:", text)
	}
}
