package sandbox

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"gopkg.in/yaml.v3"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/serve/config"
)

// newSandboxLoadCmd is `risso sandbox load`.
func newSandboxLoadCmd() *cobra.Command {
	var o sandbox.LoadOptions
	cmd := &cobra.Command{
		Use:   "load NAME",
		Short: "Run a shop's workload on a sandbox",
		Long: `Runs the workload of a small shop on a sandbox until Ctrl-C: orders on the primary in waves
of a minute, readers on all nodes, and now and then a heavy report. Its tables are in the
schema risso_shop.`,
		Example: "  risso sandbox load mariadb-10.11 --rate 200 --for 10m",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.Rate < 0 || o.Connections < 0 || o.Duration < 0 {
				return fault.Usagef("--rate, --connections and --for must not be negative")
			}
			s, err := sandbox.Open("", args[0])
			if err != nil {
				return err
			}
			var stats sandbox.LoadStats
			stop := showLoad(cmd.Context(), cmd.ErrOrStderr(), &stats)
			defer stop()
			return s.Load(cmd.Context(), o, &stats)
		},
	}
	cmd.Flags().Float64Var(&o.Rate, "rate", 80, "transactions per second on the primary, on average")
	cmd.Flags().IntVar(&o.Connections, "connections", 4, "connections that write to the primary")
	flags.DurationVar(cmd.Flags(), &o.Duration, "for", 0, "how long (default: until Ctrl-C)")
	return cmd
}

// showLoad says on a terminal, each second, how many transactions a second there are.
func showLoad(ctx context.Context, w io.Writer, stats *sandbox.LoadStats) (stop func()) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for last := int64(0); ; {
			select {
			case <-ctx.Done():
				fmt.Fprintln(w)
				return
			case <-tick.C:
				n := stats.Transactions.Load()
				fmt.Fprintf(w, "\r%6d transactions/s, %d in all, %s ", n-last, n, digits.Counted(stats.Errors.Load(), "error"))
				last = n
			}
		}
	}()
	return func() { cancel(); <-done }
}

// newSandboxConfigCmd is `risso sandbox config`.
func newSandboxConfigCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "config NAME",
		Short: "Print a config file for risso serve that watches a sandbox",
		Long: `Prints a config file for risso serve that watches the servers of a sandbox. They are called
SANDBOX-NODE there, or SANDBOX if there is only one, so that one risso serve can watch several sandboxes.`,
		Example: "  risso sandbox config mariadb-10.11 >risso.yaml && risso serve --config risso.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := sandbox.Open("", args[0])
			if err != nil {
				return err
			}
			var c config.File
			for _, n := range s.Nodes {
				c.Servers = append(c.Servers, config.Server{Name: watchedAs(s, n), DSN: fmt.Sprintf("%s@tcp(%s:%d)/", s.User, n.Host, n.Port), DefaultsFile: n.DefaultsFile})
			}
			b, err := yaml.Marshal(c)
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(b)
			return err
		},
	}
}

// watchedAs is a node's name among those of all sandboxes.
func watchedAs(s *sandbox.Sandbox, n *sandbox.Node) string {
	if len(s.Nodes) == 1 {
		return s.Name
	}
	return s.Name + "-" + n.Name
}
