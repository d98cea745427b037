package replica

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/repoint"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/oneline"
)

// pointed is one replica to be changed: found again, and judged again, right before it is.
type pointed struct {
	name    string
	prepare func(context.Context, *topology.Topology) (*repoint.Move, error)
}

func newMove(s screen.Streams) *cobra.Command {
	c := &command{}
	cmd := &cobra.Command{
		Use:   "move REPLICA --below SOURCE",
		Short: "Let a replica, or all of a source, replicate from another server",
		Long: `Points a replica at another source; its account and its TLS settings stay. Refused, in words, is a
source that is a replica of the replica, that writes no binary log or leaves something out of it,
that is newer than the replica, has transactions purged that the replica lacks, or lacks some that
the replica has (errant); and a replica that has stopped, or stays behind on purpose, with something
received that it has not applied.

The position is found by GTID. Without GTIDs it is matched by a server that stands still for a moment:
between siblings, or from below a replica to that one's source. Anything else is refused.

--all-of moves all replicas of a source, one after the other, each checked before and after; the first
that fails ends it.

` + fault.Help,
		Example: `  risso replica move db3:3306 --below db2:3306 --dsn 'risso@tcp(db1:3306)/' --dry-run
  risso replica move db3:3306 --below db2:3306 --dsn 'risso@tcp(db1:3306)/' --yes
  risso replica move --all-of db1:3306 --below db2:3306 --dsn 'risso@tcp(db1:3306)/' --wait 5m`,
		Args: flags.AtMost(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.move(cmd.Context(), args) },
	}
	c.bind(cmd, s)
	c.bindChannel()
	c.bindBelow("the server that it is to replicate from")
	cmd.Flags().StringVar(&c.allOf, "all-of", "", "move all replicas of this server")
	return cmd
}

// bindBelow adds the flags that name a new source.
func (c *command) bindBelow(use string) {
	fl := c.cmd.Flags()
	fl.StringVar(&c.below, "below", "", use)
	fl.StringVar(&c.as, "as", "", "host:port by which replicas reach it, if they cannot by the usual address")
}

func (c *command) move(ctx context.Context, args []string) error {
	switch {
	case c.below == "":
		return fault.Usagef("name the server that it is to replicate from: --below")
	case (len(args) == 1) == (c.allOf != ""):
		return fault.Usagef("name one replica, or --all-of a source")
	}
	if err := c.open(); err != nil {
		return err
	}
	t, err := c.look(ctx)
	if err != nil {
		return err
	}
	if len(args) == 1 {
		return c.run(ctx, t, []pointed{c.pointing(args[0], c.below, c.named())})
	}
	from, err := node(t, c.allOf)
	if err != nil {
		return err
	}
	below, err := node(t, c.below)
	if err != nil {
		return err
	}
	var list []pointed
	for _, l := range t.Replicas(from) {
		if l.Replica == below {
			continue
		}
		name := t.Nodes[l.Replica].Name
		if l.Channel == nil {
			return fault.New(fault.Failed, "name it with one more --dsn", fmt.Errorf("%s lists %s as its replica, which was not asked", t.Nodes[from].Name, name))
		}
		list = append(list, c.pointing(name, c.below, &l.Channel.Name))
	}
	if len(list) == 0 {
		return fault.New(fault.Failed, "", fmt.Errorf("%s has no replicas but %s", t.Nodes[from].Name, t.Nodes[below].Name))
	}
	return c.run(ctx, t, list)
}

// pointing lets a replica replicate from another server.
func (c *command) pointing(replica, below string, channel *string) pointed {
	return pointed{replica, func(ctx context.Context, t *topology.Topology) (*repoint.Move, error) {
		r, err := node(t, replica)
		if err != nil {
			return nil, err
		}
		b, err := node(t, below)
		if err != nil {
			return nil, err
		}
		return c.r.Prepare(ctx, repoint.Question{Topology: t, Replica: r, Below: b, Channel: channel, As: c.as})
	}}
}

func newAttach(s screen.Streams) *cobra.Command {
	c := &command{}
	cmd := &cobra.Command{
		Use:   "attach REPLICA",
		Short: "Let a detached replica replicate again",
		Long: `Points a replica that risso replica detach has detached at the source that it had, or at another one
(--below), with the checks of risso replica move. A server that never was a replica has no account to
log in with; that is set by hand, once.

` + fault.Help,
		Example: `  risso replica attach db3:3306 --dsn 'risso@tcp(db3:3306)/' --yes
  risso replica attach db3:3306 --below db2:3306 --dsn 'risso@tcp(db3:3306)/' --dsn 'risso@tcp(db2:3306)/'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.attach(cmd.Context(), args[0]) },
	}
	c.bind(cmd, s)
	c.bindChannel()
	c.bindBelow("the server that it is to replicate from; without it that which it had")
	return cmd
}

func (c *command) attach(ctx context.Context, name string) error {
	t, i, err := c.found(ctx, name)
	if err != nil {
		return err
	}
	for _, ch := range t.Nodes[i].Channels {
		was, detached := repoint.Attached(ch.Source)
		_, rebuilt := repoint.Rebuilt(ch.Source)
		switch {
		case rebuilt:
			return fault.New(fault.Failed, "risso replica rebuild "+name+c.r.Flags+" goes on", fmt.Errorf("%s is being rebuilt, and has not all of its rows", name))
		case c.named() != nil && ch.Name != c.channel:
		case !detached && c.below == "":
			return fault.New(fault.Failed, "risso replica move points it elsewhere", fmt.Errorf("%s is not detached: it replicates from %s", name, ch.Source))
		case c.below == "":
			if c.below = was; t.At(i, was) >= 0 {
				c.below = t.Nodes[t.At(i, was)].Name
			}
		}
	}
	if c.below != "" && t.Find(c.below) < 0 { // a detached replica does not lead there
		c.starts = append(c.starts, topology.Start{Address: c.below})
		if t, err = c.look(ctx); err != nil {
			return err
		}
	}
	if c.below == "" {
		c.below = name // refused in words: it has no channel
	}
	return c.run(ctx, t, []pointed{c.pointing(name, c.below, c.named())})
}

func newDetach(s screen.Streams) *cobra.Command {
	c := &command{}
	cmd := &cobra.Command{
		Use:   "detach REPLICA",
		Short: "Let a replica stop replicating, also after a restart, with all that attaches it again",
		Long: `Lets a replica apply what it has received, stops it, and points it at a name that leads nowhere: that
of its source with .detached.invalid behind it. Account, TLS and position stay: risso replica attach
puts it back.

` + fault.Help,
		Example: `  risso replica detach db3:3306 --dsn 'risso@tcp(db1:3306)/' --dry-run
  risso replica detach db3:3306 --dsn 'risso@tcp(db1:3306)/' --yes`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.open(); err != nil {
				return err
			}
			t, err := c.look(cmd.Context())
			if err != nil {
				return err
			}
			return c.run(cmd.Context(), t, []pointed{{args[0], func(ctx context.Context, t *topology.Topology) (*repoint.Move, error) {
				i, err := node(t, args[0])
				if err != nil {
					return nil, err
				}
				return c.r.Detach(ctx, t, i, c.named())
			}}})
		},
	}
	c.bind(cmd, s)
	c.bindChannel()
	return cmd
}

// run plans all changes, shows them, asks, and carries them out one after the other, each judged again before.
func (c *command) run(ctx context.Context, t *topology.Topology, list []pointed) error {
	s := c.told()
	a := Answer{DryRun: c.dryRun, Replicas: []Pointed{}}
	var refused []error
	for _, ch := range list {
		m, err := ch.prepare(ctx, t)
		if err != nil {
			refused = append(refused, err)
			continue
		}
		p := Pointed{Replica: m.Replica.Name, Channel: m.Channel.Name, From: m.Channel.Source, To: m.Address, Plan: m.Plan.Words(), Notes: append([]string{}, m.Notes...), Undo: m.Undo}
		a.Replicas = append(a.Replicas, p)
		fmt.Fprintf(s.Out, "%s: from %s to %s\n", oneline.Of(p.Replica), oneline.Of(p.From), oneline.Of(p.To))
		for _, note := range p.Notes {
			fmt.Fprintln(s.Out, "  note:", oneline.Of(note))
		}
		screen.Steps(s.Out, m.Plan)
		fmt.Fprintln(s.Out, "  undo:", oneline.Of(p.Undo))
	}
	if len(refused) == 1 && len(list) == 1 {
		return refused[0]
	} else if len(refused) > 0 {
		return fault.New(fault.Failed, "", fmt.Errorf("nothing was done: %s of %d cannot be moved: %w", digits.Counted(len(refused), "replica"), len(list), errors.Join(refused...)))
	}
	if c.dryRun {
		return c.answer(a, nil)
	}
	if err := screen.Agreed(c.Streams, c.yes); err != nil {
		return err
	}
	for i, ch := range list {
		m, err := c.carryOut(ctx, ch)
		p := &a.Replicas[i]
		if m != nil {
			p.Journal = m.Journal
		}
		if err != nil {
			p.Error = err.Error()
			if left := len(list) - i - 1; left > 0 {
				err = fmt.Errorf("%w; %s done before, %s left as they are", err, digits.Counted(i, "replica"), digits.Counted(left, "replica"))
			}
			return c.answer(a, err)
		}
		p.Done = true
		fmt.Fprintf(s.Out, "%s: done; undo: %s\n", oneline.Of(p.Replica), oneline.Of(p.Undo))
		if p.Journal != "" && i == len(list)-1 {
			fmt.Fprintln(s.Out, "journals:", c.state)
		}
	}
	return c.answer(a, nil)
}

// carryOut judges a change again, by what is found now, and does it.
func (c *command) carryOut(ctx context.Context, ch pointed) (*repoint.Move, error) {
	t, err := c.look(ctx)
	if err != nil {
		return nil, err
	}
	m, err := ch.prepare(ctx, t)
	if err != nil {
		return nil, err
	}
	return m, m.Do(ctx)
}
