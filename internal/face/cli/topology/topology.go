// Package topology is the command risso topology: who replicates from whom.
package topology

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/avail/topology/look"
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

` + fault.Help,
		Example: `  risso topology --dsn 'risso@tcp(db1:3306)/'
  risso topology --dsn 'risso@tcp(127.0.0.1:3307)/' --reach db1:3306=127.0.0.1:3307
  risso topology --all --config risso.yaml --output json
  risso topology --dsn 'risso@tcp(db1)/' --output dot | dot -Tsvg >topology.svg`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	c.Bind(cmd)
	fl := cmd.Flags()
	flags.ReachVar(fl, &c.reach)
	fl.BoolVar(&c.alone, "alone", false, "ask only the servers that are given, not those of which they tell")
	flags.OutputVar(fl, &c.output, "", "text", "json", "dot")
	return cmd
}

func (c *command) run(ctx context.Context) error {
	reach, err := flags.ParseReach(c.reach)
	if err != nil {
		return err
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
	return t.Unreached()
}

func (c *command) write(t *topology.Topology) error {
	switch c.output {
	case "json":
		return render.JSON(c.Out, t)
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
