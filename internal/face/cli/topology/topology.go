// Package topology is the command risso topology: who replicates from whom.
package topology

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/diagnose"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/avail/topology/look"
	"github.com/rissodb/risso/internal/avail/topology/picture"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
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
	failOn string
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

Below the tree stands what is wrong, the worst first, with what it was seen by, what was not
seen, and what to do; what follows from it stands below it. risso topology codes lists all that
is looked for. With --fail-on the exit code is 1 if there is something so bad.

--url asks a running risso serve instead, which looks every few seconds and keeps what changed:
--at says for when. When nobody looked, that is said, and the exit code is 1.

` + fault.Help,
		Example: `  risso topology --dsn 'risso@tcp(db1:3306)/'
  risso topology --dsn 'risso@tcp(127.0.0.1:3307)/' --reach db1:3306=127.0.0.1:3307
  risso topology --all --config risso.yaml --output json
  risso topology codes
  risso topology --dsn 'risso@tcp(db1)/' --output dot | dot -Tsvg >topology.svg
  risso topology --url http://risso:8306 --at 03:12`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	c.Bind(cmd)
	fl := cmd.Flags()
	flags.ReachVar(fl, &c.reach)
	fl.BoolVar(&c.alone, "alone", false, "ask only the servers that are given, not those of which they tell")
	fl.StringVar(&c.failOn, "fail-on", "", "exit code 1 if there is a diagnosis that is at least so bad: info, warning or critical")
	c.to.BindAddress(fl)
	fl.StringVar(&c.at, "at", "", "with --url, what it looked like then: a time of day (03:12), a time (2026-03-01, '2026-03-01 10:00:00'), or how long ago (90s, 2h, 7d)")
	flags.OutputVar(fl, &c.output, "", "text", "json", "dot", "svg")
	for _, other := range []string{"dsn", "all", "reach", "alone", "fail-on"} {
		cmd.MarkFlagsMutuallyExclusive("url", other)
	}
	cmd.AddCommand(newCodes(s))
	return cmd
}

func (c *command) run(ctx context.Context) error {
	if c.failOn != "" && !slices.Contains([]string{"info", "warning", "critical"}, c.failOn) {
		return fault.Usagef("--fail-on %q: info, warning or critical", c.failOn)
	}
	switch {
	case c.to.To != "":
		return c.ask(ctx)
	case c.at != "" || c.to.TokenFile != "":
		return fault.Usagef("--at and --token-file are about a risso serve: give its --url")
	}
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
	found := diagnose.Diagnose(t)
	if err := c.write(t, found); err != nil {
		return err
	}
	if err := t.Unreached(); err != nil {
		return err
	}
	return c.fails(found)
}

func (c *command) write(t *topology.Topology, found []diagnose.Diagnosis) error {
	switch c.output {
	case "json":
		return render.JSON(c.Out, Found{t, found})
	case "svg":
		_, err := io.WriteString(c.Out, picture.Of(t, nil, nil, picture.Diagnosed(found)).SVG())
		return err
	case "dot":
		_, err := io.WriteString(c.Out, t.DOT())
		return err
	}
	width := screen.Width(c.Out)
	_, err := io.WriteString(c.Out, t.Tree(width)+diagnosesText(found, width))
	return err
}

// fails ends with an exit code if there is something as bad as --fail-on says.
func (c *command) fails(found []diagnose.Diagnosis) error {
	if c.failOn == "" {
		return nil
	}
	var limit fleet.Severity
	if err := limit.UnmarshalText([]byte(c.failOn)); err != nil {
		return err
	}
	if slices.ContainsFunc(found, func(d diagnose.Diagnosis) bool { return d.Severity >= limit }) {
		return &fault.Told{Code: fault.Failed}
	}
	return nil
}
