// Package replica holds the command risso replica: replicas pointed at another source, delayed, and past one transaction.
package replica

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/repoint"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/avail/topology/look"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/serve/config"
)

type command struct {
	screen.Streams
	flags.Servers
	reach                     []string
	channel, below, allOf, as string
	wait                      time.Duration
	state, output             string
	dryRun, yes               bool

	cmd    *cobra.Command
	search *topology.Search
	starts []topology.Start
	r      *repoint.Repointer
}

// New is risso replica and all below it.
func New(s screen.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "replica",
		Short: "Point replicas at another source, detach, delay or rebuild them, skip a transaction",
		Long: `Changes who replicates from whom. Servers are found from any of them, as risso topology does, and
named by the names that it shows. Every change is checked and printed first. A replica applies what
it has received before it is pointed elsewhere; until it applies from its new source, whatever goes
wrong is taken back, and risso replica back does that after a kill. A rebuild replaces all that a
replica has by a copy of another server.`,
		Example: `  risso replica move db3:3306 --below db2:3306 --dsn 'risso@tcp(db1:3306)/' --dry-run
  risso replica move --all-of db1:3306 --below db2:3306 --dsn 'risso@tcp(db1:3306)/'
  risso replica delay db3:3306 1h --dsn 'risso@tcp(db1:3306)/'
  risso replica rebuild db3:3306 --dsn 'risso@tcp(db1:3306)/' --dry-run
  risso replica skip db3:3306 --dsn 'risso@tcp(db3:3306)/'`,
	}
	cmd.AddCommand(newMove(s), newAttach(s), newDetach(s), newDelay(s), newSkip(s), newRebuild(s), newBack(s))
	return cmd
}

// bind adds the flags that all have.
func (c *command) bind(cmd *cobra.Command, s screen.Streams) *cobra.Command {
	c.Streams, c.cmd = s, cmd
	c.Bind(cmd)
	fl := cmd.Flags()
	flags.ReachVar(fl, &c.reach)
	flags.DurationVar(fl, &c.wait, "wait", time.Minute, "how long each thing may take that is waited for, such as applying what was received")
	fl.StringVar(&c.state, "state", "", "folder of the journals (default "+home.State("replica")+")")
	fl.BoolVar(&c.dryRun, "dry-run", false, "show what would be done, and change nothing")
	fl.BoolVar(&c.yes, "yes", false, "do not ask")
	flags.OutputVar(fl, &c.output, "", "text", "json")
	return cmd
}

// bindChannel adds the flag that names one of several channels.
func (c *command) bindChannel() {
	c.cmd.Flags().StringVar(&c.channel, "channel", "", "which channel, of a replica with several sources")
}

// named is the channel that was named; nil: none.
func (c *command) named() *string {
	if !c.cmd.Flags().Changed("channel") {
		return nil
	}
	return &c.channel
}

// open learns what to ask, and how.
func (c *command) open() error {
	reach, err := flags.ParseReach(c.reach)
	if err != nil {
		return err
	}
	list, err := c.Watched()
	if err != nil {
		return err
	}
	if c.wait < time.Second {
		return fault.Usagef("--wait: at least 1s")
	}
	var targets []mysql.Target
	again := ""
	for _, w := range list {
		targets = append(targets, w.Target)
		if known := c.Again(w); known != "" {
			again += " " + known
		} else {
			again += " --dsn " + fleet.ShellWord(named(w))
		}
		c.starts = append(c.starts, topology.Start{Name: w.Instance.Name, Address: w.Target.Address()})
	}
	c.search = look.Search(targets)
	c.search.Reach = reach
	if c.state == "" {
		c.state = home.State("replica")
	}
	c.r = &repoint.Repointer{Dir: c.state, Wait: c.wait, Say: screen.Says(c.Err), Flags: again,
		Target: func(address string) mysql.Target { return look.At(targets, c.search.Reached(address)) }}
	return nil
}

// named is a server for people to name again, by the name that it has here.
func named(w config.Watched) string {
	if w.Instance.Name == "" || w.Instance.Name == w.Target.Address() {
		return w.Target.Again()
	}
	return w.Instance.Name + "=" + w.Target.Again()
}

// look finds the topology as it is now.
func (c *command) look(ctx context.Context) (*topology.Topology, error) {
	t := c.search.Discover(ctx, c.starts)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return t, t.Unreached()
}

// found looks at the topology, and finds a server in it by its name.
func (c *command) found(ctx context.Context, name string) (*topology.Topology, int, error) {
	if err := c.open(); err != nil {
		return nil, 0, err
	}
	t, err := c.look(ctx)
	if err != nil {
		return nil, 0, err
	}
	i, err := node(t, name)
	return t, i, err
}

// node finds a server by its name.
func node(t *topology.Topology, name string) (int, error) {
	for _, n := range []string{name, net.JoinHostPort(name, "3306")} {
		if i := t.Find(n); i >= 0 {
			return i, nil
		}
	}
	names := make([]string, len(t.Nodes))
	for i, n := range t.Nodes {
		names[i] = n.Name
	}
	return -1, fault.New(fault.Usage, "risso topology shows them; name it with one more --dsn, if nobody tells of it", fmt.Errorf("no server %s was found; there are %s", name, strings.Join(names, ", ")))
}

// told is where what people read goes.
func (c *command) told() screen.Streams {
	s := c.Streams
	if c.output == "json" {
		s.Out = s.Err // the answer is the document
	}
	return s
}

// answer writes it, if it is asked for; err is what came of it.
func (c *command) answer(a any, err error) error {
	if c.output == "json" {
		if werr := render.JSON(c.Out, a); err == nil {
			err = werr
		}
	}
	return err
}
