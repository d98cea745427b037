package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/workload"
)

type benchPrepareFlags struct {
	workloadFlags
	threads int
	output  string
}

func (f *benchPrepareFlags) bind(cmd *cobra.Command) {
	f.workloadFlags.bind(cmd)
	cmd.Flags().IntVar(&f.threads, "threads", 1, "concurrent sessions")
	flags.OutputVar(cmd.Flags(), &f.output, "", "text", "json")
}

// Prepared is the result of prepare or cleanup.
type Prepared struct {
	Workload  string            `json:"workload"`
	Server    string            `json:"server"`
	Done      int64             `json:"done"` // rows inserted, or tables dropped; for a script, statements run
	Seconds   float64           `json:"seconds"`
	PerSecond float64           `json:"per_second"`
	Steps     []workload.Timing `json:"steps,omitempty"`
}

func newBenchPrepare(s screen.Streams) *cobra.Command {
	var f benchPrepareFlags
	cmd := &cobra.Command{
		Use: "prepare WORKLOAD", Short: "Create and fill the tables of a workload", Args: cobra.ExactArgs(1),
		Long: `Creates and fills the tables of a workload, with the comment "` + workload.Mark + `". Existing tables are
never touched: prepare refuses to run if one of its tables exists. Ctrl-C removes what was created.`,
		Example: `  risso bench prepare read_write --dsn 'root@unix(/run/mysqld/mysqld.sock)/sbtest' --tables 4 --table-size 250000 --threads 4
  risso bench prepare point_select --dsn 'postgres://risso:secret@db1/sbtest'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), s, args[0], func(ctx context.Context, p workload.Preparer, o workload.PrepareOptions) error {
				if err := f.guard(ctx, o.Target); err != nil {
					return err
				}
				return p.Prepare(ctx, o)
			}, "rows written")
		},
	}
	f.bind(cmd)
	return cmd
}

func newBenchCleanup(s screen.Streams) *cobra.Command {
	var f benchPrepareFlags
	cmd := &cobra.Command{
		Use: "cleanup WORKLOAD", Short: "Drop the tables that prepare made", Args: cobra.ExactArgs(1),
		Long: `Drops the tables that prepare made, and nothing else: a table without the comment "` + workload.Mark + `"
is kept and reported. For script the file's own teardown is run, but none of it if it would change a
table without the comment.`,
		Example: `  risso bench cleanup read_write --dsn 'root@unix(/run/mysqld/mysqld.sock)/sbtest'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), s, args[0], func(ctx context.Context, p workload.Preparer, o workload.PrepareOptions) error {
				return p.Cleanup(ctx, o)
			}, tablesDropped)
		},
	}
	f.bind(cmd)
	return cmd
}

// tablesDropped is what cleanup counts.
const tablesDropped = "tables dropped"

// run does it and tells what was done, also when it failed half way.
func (f *benchPrepareFlags) run(ctx context.Context, s screen.Streams, name string, do func(context.Context, workload.Preparer, workload.PrepareOptions) error, unit string) error {
	if f.threads < 1 || f.threads > bench.MaxThreads {
		return fault.Usagef("--threads is %d: it has to be from 1 to %d", f.threads, bench.MaxThreads)
	}
	target, w, err := f.open(name)
	if err != nil {
		return err
	}
	p, ok := w.(workload.Preparer)
	if !ok {
		return fault.Usagef("%s makes no tables", name)
	}
	var done atomic.Int64
	bar := newCounter(s.Err)
	began := time.Now()
	err = do(ctx, p, workload.PrepareOptions{Target: target, Threads: f.threads, Yes: f.yes, Progress: func(n, total int64) {
		for old := done.Load(); n > old && !done.CompareAndSwap(old, n); old = done.Load() {
		}
		bar.set(n, total)
	}})
	bar.End()
	if err != nil {
		return prepareError(ctx, f.lacking(ctx, err))
	}
	out := Prepared{Workload: name, Server: target.String(), Done: done.Load(), Seconds: time.Since(began).Seconds()}
	out.PerSecond = float64(out.Done) / out.Seconds
	if t, ok := w.(workload.Timed); ok {
		out.Steps = t.Timings()
	}
	if c, ok := w.(workload.Counting); ok {
		unit = cmp.Or(c.Counts(unit == tablesDropped), unit)
	}
	if f.output == "json" {
		return render.JSON(s.Out, out)
	}
	return out.text(s.Out, unit)
}

// prepareError adds a hint on how to fix it. An error of wrong use keeps its code.
func prepareError(ctx context.Context, err error) error {
	var told *fault.Error
	switch {
	case errors.As(err, &told):
	case errors.Is(err, workload.ErrNoDatabase):
		return fault.New(fault.Usage, "end the DSN with it, as in user@tcp(host:3306)/sbtest", err)
	case errors.Is(err, workload.ErrUsage):
		return fault.New(fault.Usage, "", err)
	case ctx.Err() != nil: // it says so, and what is left
		return fault.New(fault.Interrupted, "", err)
	}
	return err
}

func (p Prepared) text(out io.Writer, unit string) error {
	if p.Done == 0 {
		if unit == tablesDropped {
			_, err := fmt.Fprintln(out, "there was nothing to drop")
			return err
		}
		_, err := fmt.Fprintf(out, "done in %s\n", digits.Seconds(p.Seconds))
		return err
	}
	if p.Done == 1 {
		unit = strings.Replace(unit, "s ", " ", 1) // 1 table dropped
	}
	if _, err := fmt.Fprintf(out, "%d %s in %s, %s a second\n", p.Done, unit, digits.Seconds(p.Seconds), digits.Number(p.PerSecond)); err != nil {
		return err
	}
	for _, t := range p.Steps {
		if _, err := fmt.Fprintf(out, "  %-16s %7d times, mean %s, median %s, p95 %s, longest %s\n", t.Step, t.Count,
			digits.Seconds(t.Mean), digits.Seconds(t.Median), digits.Seconds(t.P95), digits.Seconds(t.Max)); err != nil {
			return err
		}
	}
	return nil
}

// counter is a progress of things that are counted.
type counter struct{ *screen.Progress }

func newCounter(out io.Writer) counter { return counter{screen.NewProgress(out)} }

func (c counter) set(done, total int64) {
	c.Show(func(elapsed float64) string {
		rate := float64(done) / elapsed
		if total <= 0 || done <= 0 {
			return fmt.Sprintf("%d", done)
		}
		return fmt.Sprintf("%s, %s a second, %s left", digits.Percent(min(1, float64(done)/float64(total))), digits.Number(rate), digits.Age(max(0, float64(total-done)/rate)))
	})
}
