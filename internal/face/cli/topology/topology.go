// Package topology is the command risso topology: who replicates from whom.
package topology

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/avail/topology/look"
	"github.com/rissodb/risso/internal/avail/topology/picture"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
)

type command struct {
	screen.Streams
	flags.Servers
	to     flags.Running
	at     string
	reach  []string
	alone  bool
	output string
}

// New is risso topology.
func New(s screen.Streams) *cobra.Command {
	c := &command{Streams: s}
	cmd := &cobra.Command{
		Use:   "topology",
		Short: "Show who replicates from whom, found from any one of the servers",
		Long: `Finds every server that belongs together, from any of them: up and down the chains of
replication and in clusters, by what the servers say of their sources, their replicas
(report_host, connections that read the binary log) and their group. All are asked with the
account that is given. A server that does not answer is drawn as not seen. Nothing is changed.

Where the addresses that servers know are not those by which they are reached from here, as
behind NAT or in containers, --reach says which to use.

--url asks a running risso serve instead, which looks every few seconds and keeps what changed:
--at says for when. When nobody looked, that is said, and the exit code is 1.

` + fault.Help,
		Example: `  risso topology --dsn 'risso@tcp(db1:3306)/'
  risso topology --dsn 'risso@tcp(127.0.0.1:3307)/' --reach db1:3306=127.0.0.1:3307
  risso topology --all --config risso.yaml --output json
  risso topology --dsn 'risso@tcp(db1)/' --output svg >topology.svg
  risso topology --url http://risso:8306 --at 03:12`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	c.Bind(cmd)
	fl := cmd.Flags()
	fl.StringArrayVar(&c.reach, "reach", nil, "ADDRESS=OTHER: use another address for a host, or host:port, that servers tell of; may be repeated")
	fl.BoolVar(&c.alone, "alone", false, "ask only the servers that are given, not those of which they tell")
	c.to.BindAddress(fl)
	fl.StringVar(&c.at, "at", "", "with --url, what it looked like then: a time of day (03:12), a time (2026-03-01, '2026-03-01 10:00:00'), or how long ago (90s, 2h, 7d)")
	flags.OutputVar(fl, &c.output, "", "text", "json", "dot", "svg")
	for _, other := range []string{"dsn", "all", "reach", "alone"} {
		cmd.MarkFlagsMutuallyExclusive("url", other)
	}
	return cmd
}

func (c *command) run(ctx context.Context) error {
	switch {
	case c.to.To != "":
		return c.ask(ctx)
	case c.at != "" || c.to.TokenFile != "":
		return fault.Usagef("--at and --token-file are about a risso serve: give its --url")
	}
	reach := map[string]string{}
	for _, r := range c.reach {
		from, to, ok := strings.Cut(r, "=")
		if !ok || from == "" || to == "" {
			return fault.Usagef("--reach %q: write it as db1:3306=127.0.0.1:3307, or db1=10.0.0.1", r)
		}
		reach[from] = to
	}
	list, err := c.Watched()
	if err != nil {
		return err
	}
	var targets []mysql.Target
	var starts []topology.Start
	for _, w := range list {
		targets = append(targets, w.Target)
		starts = append(starts, topology.Start{Name: w.Instance.Name, Address: w.Target.Address()})
	}
	search := look.Search(targets)
	search.Reach, search.Alone = reach, c.alone
	progress := screen.NewProgress(c.Err)
	defer progress.End()
	search.Seen = func(asked, known int) {
		progress.Show(func(float64) string {
			return fmt.Sprintf("%s of %s asked", digits.Thousands(asked), digits.Counted(known, "address"))
		})
	}
	t := search.Discover(ctx, starts)
	progress.End()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := c.write(t); err != nil {
		return err
	}
	return unseen(t)
}

func (c *command) write(t *topology.Topology) error {
	switch c.output {
	case "json":
		return render.JSON(c.Out, t)
	case "svg":
		_, err := io.WriteString(c.Out, picture.Of(t, nil, nil).SVG())
		return err
	case "dot":
		_, err := io.WriteString(c.Out, t.DOT())
		return err
	}
	_, err := io.WriteString(c.Out, t.Tree(screen.Width(c.Out)))
	for _, s := range t.Surprises {
		if err == nil {
			_, err = fmt.Fprintf(c.Out, "! %s\n", s.Text)
		}
	}
	return err
}

// unseen is an error if none of the servers that were given answered: what is drawn is nothing then.
func unseen(t *topology.Topology) error {
	for _, n := range t.Nodes {
		if n.Seen {
			return nil
		}
	}
	return fmt.Errorf("no server answered: %s", t.Nodes[0].Unseen.Text)
}
