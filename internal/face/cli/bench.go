package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
)

type benchFlags struct {
	serverFlags
	tables, tableSize, threads int
	distribution, output       string
	time                       time.Duration
}

func newBench(s Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "bench", Short: "Measure a server with a workload"}
	cmd.AddCommand(newBenchRun(s))
	return cmd
}

func newBenchRun(s Streams) *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use: "run WORKLOAD", Short: "Run a workload and measure it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runBench(cmd.Context(), s, f, args[0]) },
	}
	fl := cmd.Flags()
	f.bind(cmd, "the server to measure")
	fl.IntVar(&f.tables, "tables", 1, "number of tables")
	fl.IntVar(&f.tableSize, "table-size", 10000, "rows of each table")
	fl.IntVar(&f.threads, "threads", 1, "sessions at a time")
	fl.StringVar(&f.distribution, "distribution", "uniform", "how rows are drawn")
	fl.DurationVar(&f.time, "time", 10*time.Second, "how long to measure")
	fl.StringVarP(&f.output, "output", "o", "text", "text or json")
	return cmd
}

func runBench(ctx context.Context, s Streams, f benchFlags, name string) error {
	target, err := f.target()
	if err != nil {
		return err
	}
	r, err := bench.Run(ctx, bench.Options{
		Target: drive.ForMySQL(target), Threads: f.threads, Time: f.time,
		Workload: &workload.OLTP{Kind: name, Tables: f.tables, TableSize: f.tableSize},
	})
	if err != nil {
		return err
	}
	return json.NewEncoder(s.Out).Encode(map[string]any{
		"queries_per_second": float64(r.Queries) / r.Seconds, "transactions_per_second": float64(r.Transactions) / r.Seconds,
		"p95": float64(r.Latency.ValueAtPercentile(95)) / 1e9,
	})
}

var _ = fmt.Sprint
