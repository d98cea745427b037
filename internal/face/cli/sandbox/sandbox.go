// Package sandbox holds the commands of throw-away servers.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/sandbox"
)

// New is `risso sandbox`.
func New() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "sandbox",
		Short: "Start and stop throw-away servers on this machine",
		Long: `Starts throw-away database servers on this machine: one, a primary with replicas
(by GTID), or a Galera cluster. They listen on 127.0.0.1 only, live in one folder, and
leave nothing behind after down, even if risso was killed or the machine restarted.

The folder is $RISSO_SANDBOX_DIR, or risso/sandboxes in $XDG_STATE_HOME or ~/.local/state.
Root logs in without a password over the Unix socket, which only you can reach. For TCP
there is an account risso with a random password, in the node's client.cnf:
mariadb --defaults-file=FILE.`,
	}
	all := []*cobra.Command{newSandboxUpCmd(&output), newSandboxListCmd(&output), newSandboxServersCmd(&output), newSandboxExecCmd(&output), newSandboxDownCmd(&output)}
	for _, c := range append(all, newSandboxTurnCmds(&output)...) {
		flags.OutputVar(c.Flags(), &output, "", "text", "json")
		cmd.AddCommand(c)
	}
	cmd.AddCommand(newSandboxLoadCmd(), newSandboxConfigCmd())
	return cmd
}

func newSandboxUpCmd(output *string) *cobra.Command {
	var o sandbox.Options
	var topology string
	cmd := &cobra.Command{
		Use:   "up [NAME]",
		Short: "Start servers",
		Example: `  risso sandbox up --topology replication --replicas 2
  risso sandbox up old --servers mysql-5.7,mysql-8.0 --topology replication --replicas 1
  risso sandbox up --topology galera
  risso sandbox up mine --servers ~/src/build/bin/mysqld --option innodb_buffer_pool_size=1G`,
		Args: flags.AtMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			// However the command ends, it also takes down what it has started.
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			if len(args) > 0 {
				o.Name = args[0]
			}
			o.Topology = sandbox.Topology(topology)
			if screen.OnTerminal(cmd.ErrOrStderr()) {
				o.Progress = func(s string) { fmt.Fprintln(cmd.ErrOrStderr(), "·", s) }
			}
			start := time.Now()
			s, err := sandbox.Up(ctx, o)
			if ctx.Err() != nil && cmd.Context().Err() == nil {
				return fmt.Errorf("interrupted; what was started has been removed: %w", err)
			}
			if err != nil {
				return err
			}
			if *output == "json" {
				return writeSandboxes(cmd.OutOrStdout(), []*sandbox.Sandbox{s})
			}
			return describeUp(cmd.OutOrStdout(), s, time.Since(start))
		},
	}
	f := cmd.Flags()
	f.StringSliceVarP(&o.Servers, "servers", "s", []string{"mariadb"}, "mariadb, mariadb-11.8, mysql-9.7, mysql-8.0, … or a path; give several for the nodes in turn, the last for all others")
	f.StringVarP(&topology, "topology", "t", string(sandbox.TopologySingle), "single, replication or galera")
	f.IntVarP(&o.Replicas, "replicas", "r", 0, "replicas, or Galera nodes in addition to the first (default 2)")
	f.StringArrayVar(&o.Settings, "option", nil, "key=value for the [mysqld] section of every node; can be repeated")
	flags.DurationVar(f, &o.StartTimeout, "timeout", time.Minute, "how long a node may take to start")
	return cmd
}

func newSandboxListCmd(output *string) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "Show sandboxes and their servers",
		Example: "  risso sandbox list -o json",
		Args:    flags.AtMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := sandbox.List("")
			if err != nil {
				return err
			}
			if *output == "json" {
				return writeSandboxes(cmd.OutOrStdout(), all)
			}
			return screen.Tabulate(cmd.OutOrStdout(), func(w io.Writer) {
				fmt.Fprintln(w, "SANDBOX\tSTATE\tNODE\tROLE\tSERVER\tSTATE\tPORT\tSOCKET")
				for _, s := range all {
					if len(s.Nodes) == 0 {
						fmt.Fprintf(w, "%s\t%s\t-\t-\t-\t-\t-\t-\n", s.Name, s.State)
					}
					for _, n := range s.Nodes {
						fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s %s\t%s\t%d\t%s\n", s.Name, s.State, n.Name, n.Role, n.Program.Family, n.Version, n.State, n.Port, n.Socket)
					}
				}
			})
		},
	}
}

func newSandboxServersCmd(output *string) *cobra.Command {
	return &cobra.Command{
		Use:     "servers",
		Short:   "Show the servers installed on this machine",
		Example: "  risso sandbox servers",
		Args:    flags.AtMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return listServers(cmd.Context(), cmd.OutOrStdout(), *output)
		},
	}
}

func newSandboxDownCmd(output *string) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "down [NAME | --all]",
		Short: "Stop the servers of a sandbox and remove its data",
		Example: `  risso sandbox down mine
  risso sandbox down --all`,
		Long: "Stops the servers of a sandbox and removes its data. The name may be left out if there is only one.",
		Args: flags.AtMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all && len(args) > 0 {
				return fault.New(fault.Usage, "give one of them", errors.New("a name and --all"))
			}
			chosen, err := chooseSandboxes(all, args)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Minute)
			defer cancel()
			errs := make([]error, len(chosen))
			var wg sync.WaitGroup
			for i, s := range chosen {
				wg.Go(func() { errs[i] = s.Down(ctx) })
			}
			wg.Wait()
			removed := []string{}
			for i, s := range chosen {
				if errs[i] == nil {
					removed = append(removed, s.Name)
				}
			}
			if *output == "json" {
				errs = append(errs, render.JSON(cmd.OutOrStdout(), RemovedAnswer{removed}))
			} else {
				for _, name := range removed {
					fmt.Fprintf(cmd.OutOrStdout(), "sandbox %s removed\n", name)
				}
			}
			return errors.Join(errs...)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all sandboxes")
	return cmd
}

// chooseSandboxes is the one named, the only one, or all.
func chooseSandboxes(all bool, args []string) ([]*sandbox.Sandbox, error) {
	if len(args) == 1 {
		s, err := sandbox.Open("", args[0])
		return []*sandbox.Sandbox{s}, err
	}
	found, err := sandbox.List("")
	if err != nil || all || len(found) == 1 {
		return found, err
	}
	if len(found) == 0 {
		return nil, fault.New(fault.Usage, "risso sandbox up makes one", errors.New("there is no sandbox"))
	}
	names := make([]string, len(found))
	for i, s := range found {
		names[i] = s.Name
	}
	return nil, fault.New(fault.Usage, "name one of "+strings.Join(names, ", "), errors.New("there are several sandboxes"))
}

func newSandboxExecCmd(output *string) *cobra.Command {
	return &cobra.Command{
		Use:   "exec NAME [NODE] -- [SQL… | client arguments…]",
		Short: "Run statements, or a client, on a node",
		Long: `Runs statements on a node of a sandbox (default: the first). If the arguments begin with a
dash, or there are none, it starts the mysql or mariadb client with them.`,
		Example: `  risso sandbox exec mine -- 'SELECT @@version; SHOW DATABASES'
  risso sandbox exec mine replica1 -- 'SHOW REPLICA STATUS\G'
  risso sandbox exec mine replica1 -- --table -e 'SHOW DATABASES'
  risso sandbox exec mine`,
		RunE: func(cmd *cobra.Command, args []string) error {
			names, rest := args, []string(nil)
			if at := cmd.ArgsLenAtDash(); at >= 0 {
				names, rest = args[:at], args[at:]
			}
			if len(names) > 2 {
				return fault.New(fault.Usage, "write -- before the statements: risso sandbox exec NAME [NODE] -- SQL", fmt.Errorf("%d names", len(names)))
			}
			n, err := chooseNode(names)
			if err != nil {
				return err
			}
			if len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
				return runStatements(cmd.Context(), cmd.OutOrStdout(), *output, n, strings.Join(rest, " "))
			}
			return runClient(cmd, n, rest)
		},
	}
}

func chooseNode(names []string) (*sandbox.Node, error) {
	found, err := chooseSandboxes(false, names[:min(1, len(names))])
	if err != nil {
		return nil, err
	}
	s := found[0]
	if len(names) == 2 {
		return s.Node(names[1])
	}
	if len(s.Nodes) == 0 {
		return nil, fault.New(fault.Usage, "its up was cut off: risso sandbox down "+s.Name, fmt.Errorf("sandbox %s has no nodes", s.Name))
	}
	return s.Nodes[0], nil
}

// runStatements prints rows as the clients of MySQL do in a pipe: tabs between columns, or with \G at the end of the statements
// a line for each column.
func runStatements(ctx context.Context, w io.Writer, output string, n *sandbox.Node, statements string) error {
	statements = strings.TrimSpace(statements)
	statements, vertical := strings.CutSuffix(statements, `\G`)
	results, err := n.Query(ctx, strings.TrimSuffix(statements, `\g`))
	if output == "json" {
		if results == nil {
			results = []sandbox.Result{}
		}
		return errors.Join(err, render.JSON(w, ResultsAnswer{results}))
	}
	escape := strings.NewReplacer("\\", "\\\\", "\t", "\\t", "\n", "\\n", "\x00", "\\0")
	for _, r := range results {
		if vertical {
			writeVertical(w, r)
			continue
		}
		if len(r.Columns) > 0 {
			fmt.Fprintln(w, strings.Join(r.Columns, "\t"))
		}
		for _, row := range r.Rows {
			cells := make([]string, len(row))
			for i, v := range row {
				cells[i] = "NULL"
				if v != nil {
					cells[i] = escape.Replace(*v)
				}
			}
			fmt.Fprintln(w, strings.Join(cells, "\t"))
		}
	}
	return err
}

// writeVertical writes a line for each column, the names to the right, as the clients of MySQL do.
func writeVertical(w io.Writer, r sandbox.Result) {
	width := 0
	for _, c := range r.Columns {
		width = max(width, utf8.RuneCountInString(c))
	}
	for i, row := range r.Rows {
		fmt.Fprintf(w, "*************************** %d. row ***************************\n", i+1)
		for k, v := range row {
			value := "NULL"
			if v != nil {
				value = *v
			}
			fmt.Fprintf(w, "%*s: %s\n", width, r.Columns[k], value)
		}
	}
}

// clientError is the exit code of a client, handed on.
type clientError struct{ code int }

func (e *clientError) Error() string {
	return fmt.Sprintf("the client ended with exit code %d", e.code)
}

// ExitCode is the client's.
func (e *clientError) ExitCode() int { return e.code }

func runClient(cmd *cobra.Command, n *sandbox.Node, args []string) error {
	c, err := n.Client(cmd.Context(), args)
	if err != nil {
		return err
	}
	c.Stdin, c.Stdout, c.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	err = c.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return &clientError{code: exit.ExitCode()}
	}
	return err
}

func describeUp(w io.Writer, s *sandbox.Sandbox, took time.Duration) error {
	fmt.Fprintf(w, "sandbox %s is up (%s, %s)\n\n", s.Name, s.Topology, digits.Span(took))
	err := screen.Tabulate(w, func(w io.Writer) {
		fmt.Fprintln(w, "NODE\tROLE\tSERVER\tPORT\tDSN")
		for _, n := range s.Nodes {
			fmt.Fprintf(w, "%s\t%s\t%s %s\t%d\t%s\n", n.Name, n.Role, n.Program.Family, n.Version, n.Port, n.DSN)
		}
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "\na client:  risso sandbox exec %[1]s %[2]s\nover TCP:  mariadb --defaults-file=%[3]s\nremove it: risso sandbox down %[1]s\n",
		s.Name, s.Nodes[0].Name, s.Nodes[0].DefaultsFile)
	return err
}

func listServers(ctx context.Context, w io.Writer, output string) error {
	found, looked, err := sandbox.Servers(ctx)
	if output == "json" {
		if found == nil {
			found = []sandbox.Server{}
		}
		return errors.Join(render.JSON(w, ServersAnswer{found, looked}), err)
	}
	if err != nil {
		return err
	}
	return screen.Tabulate(w, func(w io.Writer) {
		fmt.Fprintln(w, "SERVER\tVERSION\tPROGRAM")
		for _, s := range found {
			fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, s.Version, s.Binary)
		}
	})
}

func writeSandboxes(w io.Writer, all []*sandbox.Sandbox) error {
	if all == nil {
		all = []*sandbox.Sandbox{}
	}
	return render.JSON(w, SandboxesAnswer{all})
}
