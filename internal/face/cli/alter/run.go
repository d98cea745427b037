package alter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/digits"
	core "github.com/rissodb/risso/internal/explain/alter"
	"github.com/rissodb/risso/internal/explain/alter/ask"
	"github.com/rissodb/risso/internal/explain/alter/perform"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/mysql"
)

type runFlags struct {
	planFlags
	dryRun, yes       bool
	lockWait, endWait time.Duration
	pause             time.Duration
	retries           int
	replicas          []string
	state             string
}

func newRun(s screen.Streams) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run STATEMENT",
		Short: "Run an ALTER TABLE as planned, with bounded waits for locks",
		Long: `Makes the plan, prints it, asks, and runs the statement with ALGORITHM and LOCK written
out, so that the server refuses rather than does more than planned. It waits for its lock
for --lock-wait only: then it is taken out of the queue, so that others do not wait behind
it, and tried again. At its end, when its work is at stake, it waits for --end-wait.

Ctrl-C ends the statement, and the table stays as it was. After kill -9 of risso the server
may go on with it: risso alter status and the next run say so.

--replicas-first alters each replica by itself (sql_log_bin=0), waits until it has caught
up, and the primary last, without the binary log. All replicas must be named.

` + fault.Help,
		Example: `  risso alter run --dsn 'risso@unix(/run/mysqld/mysqld.sock)/shop' --dry-run "ALTER TABLE orders ADD note TEXT"
  risso alter run --dsn 'risso:secret@tcp(db1:3306)/shop' --yes --lock-wait 2s --retries 50 "ALTER TABLE orders ADD INDEX (total)"
  risso alter run --dsn 'risso:secret@tcp(db1:3306)/shop' --yes --replicas-first 'risso:secret@tcp(db2:3306)/' "ALTER TABLE orders ADD INDEX (total)"`,
		Args: flags.AtMost(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runRun(cmd.Context(), s, f, args) },
	}
	fl := cmd.Flags()
	f.Bind(cmd, "the server; a primary")
	fl.StringVar(&f.sample, "sample-size", "64MiB", "how much of the table to copy into the sandbox and time the change on; 0: none")
	fl.BoolVar(&f.dryRun, "dry-run", false, "print the plan and end")
	fl.BoolVar(&f.yes, "yes", false, "do not ask")
	flags.DurationVar(fl, &f.lockWait, "lock-wait", 3*time.Second, "how long to wait for the lock at the beginning, with others behind it")
	flags.DurationVar(fl, &f.endWait, "end-wait", 30*time.Second, "how long to wait for the lock at the end, when its work would be lost")
	flags.DurationVar(fl, &f.pause, "pause", 10*time.Second, "how long to wait before it is tried again")
	fl.IntVar(&f.retries, "retries", 10, "how many times to try again when it did not get its lock")
	fl.StringArrayVar(&f.replicas, "replicas-first", nil, "DSN of a replica to alter before the primary; once for each replica")
	fl.StringVar(&f.state, "state", "", "folder of the journals (default "+home.State("alter")+")")
	flags.OutputVar(fl, &f.output, "", "text", "json")
	return cmd
}

func (f runFlags) check() error {
	switch {
	case f.lockWait < time.Second || f.endWait < time.Second:
		return fault.Usagef("--lock-wait and --end-wait: at least 1s, as servers count whole seconds")
	case f.retries < 0:
		return fault.Usagef("--retries %d: not below 0", f.retries)
	case f.pause < 0:
		return fault.Usagef("--pause: not below 0")
	}
	return nil
}

func runRun(ctx context.Context, s screen.Streams, f runFlags, args []string) error {
	statement, err := oneStatement(args)
	if err == nil {
		err = f.check()
	}
	if err != nil {
		return err
	}
	target, err := f.Target()
	if err != nil {
		return err
	}
	replicas, err := f.Others(f.replicas)
	if err != nil {
		return err
	}
	if !f.dryRun && !f.yes && !screen.OnTerminal(s.In) {
		return fault.New(fault.Usage, "give --yes to run it, or --dry-run to see the plan", errors.New("nobody is there to say yes"))
	}
	out := s.Out
	if f.output == "json" {
		out = s.Err // the answer is the document
	}
	for _, t := range append([]mysql.Target{target}, replicas...) {
		if err := perform.Free(ctx, t, state(f.state), screen.Says(s.Err)); err != nil {
			return err
		}
	}
	p, err := f.make(ctx, s, target, statement)
	if err != nil {
		return err
	}
	if err := writePlan(out, p.Plan); err != nil {
		return err
	}
	if !p.Runs() {
		return fault.New(fault.Failed, "", fmt.Errorf("it cannot be run: %s", p.Lines[0].Text))
	}
	if len(replicas) > 0 {
		if err := perform.CheckReplicas(ctx, p.First, target, replicas, p.Facts.Replicas.Addresses, p.Facts.Replicas.Known); err != nil {
			return err
		}
	}
	return f.carryOut(ctx, s, out, p, target, replicas)
}

// carryOut asks, and does it.
func (f runFlags) carryOut(ctx context.Context, s screen.Streams, out io.Writer, p ask.Planned, target mysql.Target, replicas []mysql.Target) error {
	a := RunAnswer{Plan: p.Plan, DryRun: f.dryRun, Servers: []ServerAnswer{}}
	steps := f.steps(s, p, target, replicas, &a)
	fmt.Fprintln(out, "\nsteps:")
	screen.Steps(out, steps)
	if p.Undo != "" {
		fmt.Fprintf(out, "undo: %s;\n", shown(p.Undo))
	}
	if len(p.Lost) > 0 {
		fmt.Fprintf(out, "not to be undone: %s\n", shown(strings.Join(p.Lost, "; ")))
	}
	if f.dryRun {
		return f.answer(s, a)
	}
	if !f.yes && !screen.Confirmed(s) {
		return fault.New(fault.Failed, "", errors.New("not confirmed: nothing was changed"))
	}
	done, err := change.Execute(ctx, steps, change.Log{})
	if err != nil && done > 0 {
		err = fmt.Errorf("%w; done before on %d of %d servers: run it again to go on", err, done, len(steps))
	}
	return errors.Join(err, f.answer(s, a))
}

// steps are what is done on which server.
func (f runFlags) steps(s screen.Streams, p ask.Planned, target mysql.Target, replicas []mysql.Target, a *RunAnswer) (steps change.Plan) {
	do := func(t mysql.Target, why string, run func(context.Context, perform.Options) (perform.Result, error), notLogged bool) {
		o := perform.Options{Target: t, Statement: p.Plan.Statement, Table: p.Statement.Table, RenamedTo: p.Statement.RenamedTo, Before: p.Before, After: p.After, Instant: p.Forecast.Moment, NotLogged: notLogged,
			LockWait: f.lockWait, EndWait: f.endWait, Retries: f.retries, Pause: f.pause, Dir: state(f.state), Say: screen.Says(s.Err)}
		steps = append(steps, change.Step{What: p.Plan.Statement, Where: "on " + t.String(), Why: why, Do: func(ctx context.Context) error {
			progress := screen.NewProgress(s.Err)
			defer progress.End()
			o.Say = func(text string) { progress.Clear(); screen.Says(s.Err)(text) }
			o.Progress = func(at perform.Progress) {
				progress.Show(func(float64) string { return progressText(t, at, p.Forecast) })
			}
			r, err := run(ctx, o)
			progress.End()
			one := ServerAnswer{Server: t.String(), Result: r}
			if one.Done = err == nil; err != nil {
				one.Error = err.Error()
			}
			a.Servers = append(a.Servers, one)
			return err
		}})
	}
	for _, t := range replicas {
		do(t, "on this replica only, then wait until it has caught up", func(ctx context.Context, o perform.Options) (perform.Result, error) {
			return perform.Replica(ctx, target, o)
		}, true)
	}
	why := ""
	if len(replicas) > 0 {
		why = "not into the binary log: the replicas have it"
	}
	do(target, why, perform.Run, len(replicas) > 0)
	return steps
}

// progressText is how far it is in a line.
func progressText(t mysql.Target, at perform.Progress, forecast core.Forecast) string {
	text := t.Address() + ": " + digits.Span(at.Elapsed)
	switch {
	case at.Total > 0 && at.Done > 0:
		text += ", " + digits.Percent(min(1, at.Done/at.Total))
	case forecast.Known && !forecast.Moment:
		text += " of about " + digits.Seconds(forecast.Seconds)
	}
	if at.Stage != "" {
		text += ", " + at.Stage
	}
	return text
}

// answer tells what was done.
func (f runFlags) answer(s screen.Streams, a RunAnswer) error {
	if f.output == "json" {
		return render.JSON(s.Out, a)
	}
	for _, one := range a.Servers {
		text := "done in " + digits.Seconds(one.Result.Seconds)
		switch {
		case !one.Done:
			text = "not done"
		case one.Result.Already:
			text = "it was so already"
		case one.Result.Waited > 0.1:
			text += ", " + digits.Seconds(one.Result.Waited) + " of waiting for locks in " + digits.Plural(one.Result.Tries, "try", "tries")
		}
		fmt.Fprintf(s.Out, "%s: %s\n", one.Server, text)
		for _, n := range one.Result.Notes {
			fmt.Fprintf(s.Out, "  %s\n", n)
		}
		if one.Result.Journal != "" {
			fmt.Fprintf(s.Out, "  journal: %s\n", one.Result.Journal)
		}
	}
	return nil
}
