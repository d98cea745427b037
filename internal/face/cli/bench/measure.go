package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/environ"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/oneline"
)

// measureFlags are those of commands that run one workload again and again.
type measureFlags struct {
	workloadFlags
	threads int
	time    time.Duration
	warmup  time.Duration
	rate    float64
}

func (f *measureFlags) bind(cmd *cobra.Command, length time.Duration) {
	f.workloadFlags.bind(cmd)
	fl := cmd.Flags()
	flags.DurationVar(fl, &f.time, "for", length, "how long each run measures; --time is an alias")
	flags.DurationVar(fl, &f.warmup, "warmup", 2*time.Second, "how long each run warms up before it measures")
}

// options are those of one run.
func (f *measureFlags) options(threads int, seed uint64) bench.Options {
	return bench.Options{Threads: threads, Time: f.time, Warmup: f.warmup, Rate: f.rate, Seed: seed}
}

// check says what is wrong before anything is opened.
func (f *measureFlags) check(threads int) error {
	if err := f.options(threads, 1).Check(); errors.Is(err, workload.ErrUsage) {
		return fault.New(fault.Usage, "", err)
	} else if err != nil {
		return err
	}
	return nil
}

// once makes one run of a workload.
func (f *measureFlags) once(ctx context.Context, name string, o bench.Options, on server) (*bench.Result, error) {
	var err error
	f.Clients = o.Threads
	if o.Target, o.Workload, err = f.open(name); err != nil {
		return nil, err
	}
	o.Watch = environ.WatchOf(on.environment)
	r, err := bench.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	if r.ServerVersion == "" {
		r.ServerVersion = on.version
	}
	r.Parameters, r.Environment = maps.Clone(on.parameters), on.environment
	if d, ok := o.Workload.(workload.Describer); ok {
		maps.Copy(r.Parameters, d.Describe())
	}
	return r, nil
}

// server is what a command learns of a server before it measures it.
type server struct {
	version     string
	local       bool
	environment *environ.Environment
	parameters  map[string]any
}

// look asks a server what it is, and refuses one that holds other data.
func (f *measureFlags) look(ctx context.Context, cmd *cobra.Command, name string) (s server, err error) {
	target, w, err := f.open(name)
	if err != nil {
		return s, err
	}
	if err := f.guardRun(ctx, target, w); err != nil {
		return s, err
	}
	if err := f.try(ctx, target, w); err != nil {
		return s, err
	}
	s.parameters = parametersOf(cmd.Flags(), name)
	// Without an environment a run only cannot be explained later.
	if s.environment, err = environment(ctx, f.Server, target); err == nil && s.environment != nil {
		s.version, s.local = s.environment.Server.Version, s.environment.ServerHost != nil
		if target.Dialect() == drive.Postgres {
			s.version = "PostgreSQL " + s.version
		}
	}
	return s, nil
}

// try opens one session and prepares the statements, so that what is missing on the second server is reported before the first run.
func (f *measureFlags) try(ctx context.Context, t drive.Target, w workload.Workload) error {
	var stop drive.Stop
	defer context.AfterFunc(ctx, stop.Set)()
	s, err := t.Open(ctx, &stop)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := w.Client(s, 0, rand.New(rand.NewPCG(1, 1))); err != nil {
		return fmt.Errorf("%s: prepare the statements of %s: %w", t, w.Name(), err)
	}
	return nil
}

// endOf adds to an error of a measuring command its exit code and remedy.
func endOf(err error, name string) error {
	if err == nil {
		return nil
	}
	return benchError(err, name)
}

// steps shows on a terminal which run is made, and how long it takes yet.
type steps struct {
	out   io.Writer // nil: no terminal
	start time.Time
	total int
}

func newSteps(out io.Writer, total int) *steps {
	s := &steps{start: time.Now(), total: total}
	if screen.OnTerminal(out) {
		s.out = out
	}
	return s
}

// begin says that step i, from 0, begins.
func (s *steps) begin(i int, format string, args ...any) {
	if s.out == nil {
		return
	}
	left := ""
	if i > 0 {
		left = fmt.Sprintf(", %s left", digits.Age(time.Since(s.start).Seconds()/float64(i)*float64(s.total-i)))
	}
	// A line that wraps could not be taken away again.
	fmt.Fprintf(s.out, "\r%s\x1b[K", oneline.Cut(fmt.Sprintf("%d of %d%s: %s", i+1, s.total, left, fmt.Sprintf(format, args...)), 79))
}

// end takes the line away.
func (s *steps) end() {
	if s.out != nil {
		fmt.Fprint(s.out, "\r\x1b[K")
	}
}
