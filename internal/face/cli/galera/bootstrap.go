package galera

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/galera"
	"github.com/rissodb/risso/internal/avail/galera/ask"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
)

// bootstrap is risso galera bootstrap.
type bootstrap struct {
	screen.Streams
	flags.Server
	datadirs, logs, positions []string
	known                     galera.Known
	output                    string
}

func newBootstrap(s screen.Streams) *cobra.Command {
	c := &bootstrap{Streams: s}
	cmd := &cobra.Command{
		Use:   "bootstrap",
		Short: "Which node to start a Galera cluster from when all of them stopped, and how",
		Long: `Prints which node to bootstrap so that no transaction is lost, with its sequence number, and the
commands for it. It only prints; nothing is changed.

What is known of each node comes from its data directory (--datadir: grastate.dat, gvwstate.dat and an
error log in it; copies in a folder will do, made with their times: cp -p), from what --wsrep-recover
found there (--position, or its words in that error log), and from members that still run without a
majority (--dsn).

It refuses, with exit code 1, while a node that was not seen may have gone further; when a primary
component lives; when nodes are of different histories; and when what they say contradicts itself. It says
what to find out then. A node that had dropped out before, as the views in gvwstate.dat show, is not waited for.`,
		Example: `  risso galera bootstrap --datadir node1=/copies/node1 --datadir node2=/copies/node2 --datadir node3=/copies/node3
  risso galera bootstrap --datadir /var/lib/mysql --position node2=c233f7ed-eade-11f1-ae92-16cb3fa80945:211 --nodes 2
  risso galera bootstrap --dsn 'risso:secret@tcp(db1:3306)/' --datadir node2=/copies/node2 --arbitrators 1`,
		Args: flags.AtMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	fl := cmd.Flags()
	c.Bind(cmd, "a member that still runs")
	fl.StringArrayVar(&c.datadirs, "datadir", nil, "data directory of a node that is down, or NAME=DIR; may be repeated")
	fl.StringArrayVar(&c.logs, "error-log", nil, "error log of a node of --datadir that is not in it: DIR=FILE or NAME=FILE; may be repeated")
	fl.StringArrayVar(&c.positions, "position", nil, "what --wsrep-recover found on a node: NAME=UUID:SEQNO; may be repeated")
	fl.IntVar(&c.known.Nodes, "nodes", 0, "how many nodes the cluster has, arbitrators not among them (default: what the nodes' files say)")
	fl.IntVar(&c.known.Arbitrators, "arbitrators", 0, "how many of the members are arbitrators (garbd)")
	fl.IntVar(&c.known.Lost, "lost", 0, "how many nodes will never come back: what only they have is given up")
	flags.OutputVar(fl, &c.output, "", "text", "json")
	return cmd
}

func (c *bootstrap) run(ctx context.Context) error {
	if c.known.Nodes < 0 || c.known.Arbitrators < 0 || c.known.Lost < 0 {
		return fault.Usagef("--nodes, --arbitrators and --lost: 0 and more")
	}
	list, err := nodes(c.datadirs, c.logs)
	if err != nil {
		return err
	}
	if list, err = c.told(list); err != nil {
		return err
	}
	if c.Dsn != "" {
		target, err := c.Target()
		if err != nil {
			return err
		}
		readings, _, err := ask.Look(ctx, target, 0)
		if err != nil {
			return err
		}
		for _, r := range readings {
			if r.Before != nil {
				list = append(list, galera.Running(r.Before, r.Address))
			}
		}
	}
	if len(list) == 0 {
		return fault.Usagef("no node: --datadir, --position or --dsn names them")
	}
	d := galera.Decide(list, c.known)
	if c.output == "json" {
		err = render.JSON(c.Out, d)
	} else {
		err = decisionText(c.Out, &d)
	}
	if err == nil && d.Choice == "" {
		return &fault.Told{Code: fault.Failed}
	}
	return err
}

// told adds the positions of --position: of nodes that a data directory is given of as well, or of others.
func (c *bootstrap) told(list []galera.Node) ([]galera.Node, error) {
	for _, text := range c.positions {
		name, at, ok := strings.Cut(text, "=")
		p, err := galera.ParsePosition(at)
		if !ok || name == "" || err != nil {
			return nil, fault.Usagef("--position %q: write it as NAME=UUID:SEQNO", text)
		}
		found := false
		for i := range list {
			if list[i].Name == name {
				list[i].Tell(p)
				found = true
			}
		}
		if !found {
			list = append(list, galera.Told(name, p))
		}
	}
	return list, nil
}

// decisionText writes a decision for people.
func decisionText(w io.Writer, d *galera.Decision) error {
	var b strings.Builder
	if d.Choice == "" {
		b.WriteString("No node can be named for a bootstrap:\n")
		for _, t := range d.Refused {
			fmt.Fprintf(&b, "  %s: %s\n", t.What, t.Why)
			if t.Remedy != "" {
				fmt.Fprintf(&b, "    %s\n", t.Remedy)
			}
		}
		if d.Automatic != "" {
			fmt.Fprintf(&b, "\nOr without a bootstrap: %s.\n", d.Automatic)
		}
	} else {
		fmt.Fprintf(&b, "Bootstrap %s, at %s.\n", d.Choice, d.Position)
		for _, r := range d.Reasons {
			fmt.Fprintf(&b, "  %s\n", r)
		}
		if d.Automatic != "" {
			fmt.Fprintf(&b, "\nFirst try without a bootstrap: %s. Else:\n", d.Automatic)
		}
		b.WriteString("\n")
		for i, s := range d.Steps {
			fmt.Fprintf(&b, "%d. %s\n", i+1, s)
			for _, way := range d.Ways {
				if strings.Contains(s, "in the one way") {
					fmt.Fprintf(&b, "     %s: %s\n", way.With, way.Command)
				}
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
