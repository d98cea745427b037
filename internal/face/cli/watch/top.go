// Package watch holds the command that watches in a terminal: top.
package watch

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/serve"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/watch/collect"
)

type topFlags struct {
	config.Sources
	count    int
	output   string
	interval time.Duration

	at, server, url, tokenFile string // of the past
}

// NewTop is risso top.
func NewTop(s screen.Streams) *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch servers and this host live, in a terminal",
		Long: `Watches servers and this host live, in a terminal: the fleet, worst first, and of one server
its sessions, who waits for whose lock, transactions, replication, statements and InnoDB.
Nothing is stored; risso serve does that. If no server can be reached at the start
(unknown host, nothing listening on the port, wrong password) it exits with 1 within seconds;
a server that does not answer, or goes away later, is shown as down and tried again.

With --at it shows a moment of the past, as a running risso serve has kept it: the same screens,
left and right go a second back and on.

Keys are told by ?. In a pipe it prints a table of the fleet every second, or with --output
json one object per line every second.

` + fault.Help,
		Example: `  risso top --dsn 'risso@unix(/run/mysqld/mysqld.sock)/'
  risso top --count 1 --output json
  risso top --at 03:12 --server db1
  risso top --at '2026-11-24 03:12:40' --server db1 --url http://risso:8306 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runTop(cmd.Context(), s, f) },
	}
	fl := cmd.Flags()
	fl.IntVarP(&f.count, "count", "n", 0, "stop after this many seconds (default: never)")
	flags.DurationVar(fl, &f.interval, "interval", time.Second, "how often a terminal shows what is new, at least a second")
	fl.StringVar(&f.at, "at", "", "show the past: 03:12, a date with a time, or how long ago (90s, 2h)")
	fl.StringVar(&f.server, "server", "", "with --at: name of the server (default: the only one)")
	fl.StringVar(&f.url, "url", "", "with --at: address of risso serve: http://risso:8306 (default: the one on this machine)")
	fl.StringVar(&f.tokenFile, "token-file", "", "with --at: file with the token (default: the environment variable RISSO_TOKEN)")
	flags.OutputVar(fl, &f.output, "", "text", "json")
	flags.BindSources(&f.Sources, cmd)
	return cmd
}

func runTop(ctx context.Context, s screen.Streams, f topFlags) error {
	if f.count < 0 {
		return fault.Usagef("--count %d: must not be negative", f.count)
	}
	if f.interval < time.Second {
		return fault.Usagef("--interval %s: must be a second or more", f.interval)
	}
	if f.at != "" {
		return runPast(ctx, s, f)
	}
	if f.server != "" || f.url != "" || f.tokenFile != "" {
		return fault.Usagef("--server, --url and --token-file go with --at")
	}
	_, servers, err := f.Resolve()
	if err != nil {
		return err
	}
	if err := serve.FirstContact(ctx, s.Err, servers, serve.NotThere); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var group collect.Group
	defer group.Wait()
	defer cancel()
	board, err := serve.Glance(ctx, &group, servers, !f.NoHost)
	if err != nil {
		return err
	}
	t := &topScreen{board: board, out: s.Out, count: f.count}
	if f.output == "json" {
		return t.lines(ctx, t.json)
	}
	in, out := terminals(s)
	if in == nil {
		return t.lines(ctx, t.text)
	}
	u := newUI(t, servers, f.interval)
	tty, err := takeTerminal(in, out)
	if err != nil {
		return err
	}
	defer tty.leave()
	return u.run(ctx, tty)
}

// terminals are the terminal that is read and the one that is written; nil if one of them is none.
func terminals(s screen.Streams) (in, out *os.File) {
	in, inFile := s.In.(*os.File)
	out, outFile := s.Out.(*os.File)
	if !inFile || !outFile || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return nil, nil
	}
	return in, out
}

// errPrepare says that the terminal cannot be taken.
func errPrepare(err error) error { return fmt.Errorf("prepare the terminal: %w", err) }
