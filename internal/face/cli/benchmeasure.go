package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/mysql"
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
	fl.DurationVar(&f.time, "time", length, "how long each run measures")
	fl.DurationVar(&f.warmup, "warmup", 2*time.Second, "how long each run goes before that")
	if at := fl.Lookup("seed"); at == nil {
		fl.Uint64Var(&f.Seed, "seed", 0, "seed of all random numbers")
	}
}

// options are those of one run.
func (f *measureFlags) options(threads int, seed uint64) bench.Options {
	return bench.Options{Threads: threads, Time: f.time, Warmup: f.warmup, Rate: f.rate, Seed: seed}
}

// check says what is wrong before anything is opened.
func (f *measureFlags) check(threads int) error {
	if err := f.options(threads, 1).Check(); errors.Is(err, workload.ErrUsage) {
		return failure(exitUsage, "", err)
	} else if err != nil {
		return err
	}
	return nil
}

// once makes one run of a workload.
func (f *measureFlags) once(ctx context.Context, name string, o bench.Options, version string) (*bench.Result, error) {
	var err error
	f.Clients = o.Threads
	if o.Target, o.Workload, err = f.open(name); err != nil {
		return nil, err
	}
	r, err := bench.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	if r.ServerVersion == "" {
		r.ServerVersion = version
	}
	if r.Parameters == nil {
		r.Parameters = map[string]any{"tables": f.Tables, "table_size": f.TableSize, "distribution": f.Distribution}
	}
	return r, nil
}

// server is what a command learns of a server before it measures it.
type server struct {
	version   string
	variables map[string]string
	local     bool
}

// look asks a server what it is; of one that is no MySQL it learns nothing here.
func (f *measureFlags) look(ctx context.Context, name string) (s server, err error) {
	target, _, err := f.open(name)
	if err != nil {
		return s, err
	}
	if err := f.guard(ctx, target); err != nil || target.Dialect() != drive.MySQL {
		return s, err
	}
	at, err := f.target()
	if err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c, err := mysql.Connect(ctx, at, nil)
	if err != nil {
		return s, benchError(err)
	}
	defer c.Close()
	s = server{version: c.Server.Version, local: at.Local()}
	s.variables, err = c.Variables(ctx)
	return s, benchError(err)
}

// benchError gives an error its exit code and hint.
func benchError(err error) error {
	var e *mysql.Error
	var known *exitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case errors.Is(err, workload.ErrUsage):
		return failure(exitUsage, "", err)
	case errors.As(err, &e):
		return failure(exitFailed, e.Hint, err)
	}
	return failure(exitFailed, "", err)
}

// steps shows on a terminal which run is made, and how long it takes yet.
type steps struct {
	out   io.Writer // nil: nobody looks
	start time.Time
	total int
}

func newSteps(out io.Writer, total int) *steps {
	s := &steps{start: time.Now(), total: total}
	if isTerminal(out) {
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
		left = fmt.Sprintf(", %s left", render.Seconds(time.Since(s.start).Seconds()/float64(i)*float64(s.total-i)))
	}
	fmt.Fprintf(s.out, "\r%d of %d: %s%s\x1b[K", i+1, s.total, fmt.Sprintf(format, args...), left)
}

// end takes the line away.
func (s *steps) end() {
	if s.out != nil {
		fmt.Fprint(s.out, "\r\x1b[K")
	}
}

// checkOutput refuses a form that a command does not have.
func checkOutput(have string, forms ...string) error {
	for _, f := range forms {
		if f == have {
			return nil
		}
	}
	return usageError("no output %q; there are %v", have, forms)
}
