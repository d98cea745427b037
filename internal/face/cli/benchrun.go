package cli

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/workload"
)

type benchRunFlags struct {
	workloadFlags
	bench.Options
	output string
}

func newBenchRun(s Streams) *cobra.Command {
	var f benchRunFlags
	cmd := &cobra.Command{
		Use: "run WORKLOAD", Short: "Run a workload and measure it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runBench(cmd.Context(), s, f, args[0]) },
	}
	fl := cmd.Flags()
	f.workloadFlags.bind(cmd)
	fl.IntVar(&f.Threads, "threads", 1, "sessions at a time")
	fl.DurationVar(&f.Time, "time", 10*time.Second, "how long to measure")
	fl.DurationVar(&f.Warmup, "warmup", 0, "how long to run before that")
	fl.Float64Var(&f.Rate, "rate", 0, "transactions a second, by a Poisson process; 0: as many as the sessions can")
	fl.BoolVar(&f.Ledger, "ledger", false, "write down what the server acknowledged and look for it afterwards")
	fl.StringVarP(&f.output, "output", "o", "text", "text or json")
	return cmd
}

func runBench(ctx context.Context, s Streams, f benchRunFlags, name string) (err error) {
	f.Clients = f.Threads
	if f.Target, f.Workload, err = f.open(name); err != nil {
		return err
	}
	if err := f.Check(); errors.Is(err, workload.ErrUsage) {
		return failure(exitUsage, "", err)
	}
	if err := f.guard(ctx, f.Target); err != nil {
		return err
	}
	r, err := bench.Run(ctx, f.Options)
	if err != nil {
		return err
	}
	e := json.NewEncoder(s.Out)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
