package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/compare/scale"
)

type scaleFlags struct {
	measureFlags
	counts     []int
	runs       int
	processors int
	predict    []int
	ascii      bool
	output     string
}

func newBenchScale(s screen.Streams) *cobra.Command {
	var f scaleFlags
	cmd := &cobra.Command{
		Use:   "scale WORKLOAD | scale --file SWEEP",
		Short: "Show how throughput grows with threads, and where it peaks",
		Long: `Runs a workload with increasing numbers of threads, fits the Universal Scalability Law,
X(N) = λN / (1 + σ(N−1) + κN(N−1)), and says what it means: σ is the serial share of the
work, κ the cost of each pair of threads; where the peak is; what to expect of thread
counts that were not run, with 95 % intervals; and whether the law fits at all.

--file reads a sweep that was measured elsewhere: lines of threads,tps, or JSON.

` + fault.Help,
		Example: `  risso bench scale point_select --dsn 'root@unix(/run/mysqld/mysqld.sock)/sbtest' --threads 1,2,4,8,16,32,64
  risso bench scale --file sweep.csv --processors 64
  risso bench scale --file sweep.csv --output svg >sweep.svg`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return endOf(f.lacking(cmd.Context(), runScale(cmd, s, f, args)), strings.Join(args, " "))
		},
	}
	fl := cmd.Flags()
	f.measureFlags.bind(cmd, 5*time.Second)
	fl.IntSliceVar(&f.counts, "threads", []int{1, 2, 4, 8, 16, 32, 64}, "numbers of threads, separated by commas")
	fl.IntVar(&f.runs, "runs", 3, "runs with each number of threads")
	fl.Lookup("file").Usage = "without a workload: a measured sweep, lines of threads,tps, or JSON, - for standard input; otherwise " + fl.Lookup("file").Usage
	fl.IntVar(&f.processors, "processors", 0, "processors of the server's machine (default: those of this machine if the server runs on it)")
	fl.IntSliceVar(&f.predict, "predict", nil, "numbers of threads to predict for (default: between those measured, at the peak, twice the largest)")
	fl.BoolVar(&f.ascii, "ascii", false, "draw the chart in ASCII")
	flags.OutputVar(fl, &f.output, "", "text", "json", "csv", "markdown", "svg", "html")
	return cmd
}

func runScale(cmd *cobra.Command, s screen.Streams, f scaleFlags, args []string) error {
	switch {
	case f.File == "" && len(args) == 0:
		return fault.New(fault.Usage, "", errors.New("name a workload, such as point_select, or give a sweep by --file"))
	case f.processors < 0:
		return fault.Usagef("--processors %d: 0 or more", f.processors)
	}
	for _, n := range f.predict {
		if n < 1 {
			return fault.Usagef("--predict %d: at least 1", n)
		}
	}
	o := scale.Options{Processors: f.processors, Predict: f.predict, Seed: f.Seed}
	if len(args) == 0 {
		if err := onlyFlags(cmd, "is for running a sweep: name a workload", "file", "output", "processors", "predict", "ascii", "seed"); err != nil {
			return err
		}
		return scaleFile(s, f, o)
	}
	return scaleSweep(cmd, s, f, o, args[0])
}

func scaleFile(s screen.Streams, f scaleFlags, o scale.Options) error {
	var b []byte
	var err error
	if f.File == "-" {
		o.Source = "standard input"
		b, err = io.ReadAll(s.In)
	} else {
		o.Source = f.File
		b, err = os.ReadFile(f.File)
	}
	if errors.Is(err, os.ErrNotExist) {
		return fault.Usagef("%s: no such file", f.File)
	} else if err != nil {
		return err
	}
	points, err := scale.Read(b)
	if err != nil {
		return fmt.Errorf("%s: %w", o.Source, err)
	}
	r, err := scale.Fit(points, o)
	if err != nil {
		return err
	}
	return writeScale(s.Out, r, f)
}

func scaleSweep(cmd *cobra.Command, s screen.Streams, f scaleFlags, o scale.Options, name string) error {
	ctx := cmd.Context()
	slices.Sort(f.counts)
	f.counts = slices.Compact(f.counts)
	if len(f.counts) == 0 {
		return fault.Usagef("no numbers of threads")
	}
	if f.runs < 1 || f.runs > mostRuns {
		return fault.Usagef("--runs %d: from 1 to %d", f.runs, mostRuns)
	}
	for _, n := range f.counts {
		if err := f.check(n); err != nil {
			return err
		}
	}
	found, err := f.look(ctx, cmd, name)
	if err != nil {
		return err
	}
	target, _, err := f.open(name)
	if err != nil {
		return err
	}
	if o.Processors == 0 && found.local {
		o.Processors = runtime.NumCPU()
	}
	o.Source = strings.TrimSuffix(fmt.Sprintf("%s on %s, %s", name, target, found.version), ", ")
	total := len(f.counts) * f.runs
	if screen.OnTerminal(s.Err) {
		fmt.Fprintf(s.Err, "%s of %s, each %s after %s of warm-up: %s in all\n", digits.Counted(total, "run"), name, f.time, f.warmup, time.Duration(total)*(f.time+f.warmup))
	}
	show := newSteps(s.Err, total)
	f.drawSeed()
	o.Seed = f.Seed
	n := uint64(0)
	points, order, interrupted, err := scale.Sweep(ctx, f.counts, f.runs, f.Seed, func(ctx context.Context, threads int) (*bench.Result, error) {
		n++
		return f.once(ctx, name, f.options(threads, f.Seed+n), found)
	}, func(i, threads int) { show.begin(i, "%s", digits.Counted(threads, "thread")) })
	show.end()
	if len(points) == 0 {
		if err == nil && interrupted {
			err = fault.New(fault.Interrupted, "", errors.New("interrupted before the first run was over: nothing was measured"))
		} else if err == nil {
			err = errors.New("no run did anything")
		}
		return err
	}
	r, ferr := scale.Fit(points, o)
	if ferr != nil {
		return errors.Join(err, ferr)
	}
	if idle := len(order) - len(points); idle > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d of %s did nothing at all: left out", idle, digits.Counted(len(order), "run")))
	}
	r.Interrupted, r.Order = interrupted || err != nil, order
	if werr := writeScale(s.Out, r, f); err == nil {
		err = werr
	}
	if err == nil && interrupted {
		err = fault.New(fault.Interrupted, "", fmt.Errorf("interrupted after %d of %s", len(order), digits.Counted(total, "run")))
	}
	return err
}

func writeScale(w io.Writer, r *scale.Report, f scaleFlags) error {
	switch f.output {
	case "json":
		return render.JSON(w, r)
	case "csv":
		return r.CSV(w)
	case "markdown":
		return r.Markdown(w)
	case "html":
		return r.HTML(w)
	case "svg":
		_, err := io.WriteString(w, r.SVG())
		return err
	}
	return r.Text(w, f.ascii)
}
