package group

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/oneline"
)

// asked is a command that asks before it changes who the primary is.
func (c *command) asked(cmd *cobra.Command, s screen.Streams, yes *bool) *cobra.Command {
	c.bind(cmd, s)
	cmd.Flags().BoolVar(yes, "yes", false, "do not ask")
	return cmd
}

// agreed says what will be done, and asks.
func (c *command) agreed(yes bool, what string) error {
	out := c.Streams
	if c.output == "json" {
		out.Out = out.Err
	}
	fmt.Fprintln(out.Out, oneline.Of(what))
	return screen.Agreed(c.Streams, yes)
}

func newPromote(s screen.Streams) *cobra.Command {
	c := &command{}
	yes := false
	cmd := &cobra.Command{Use: "promote GROUP [MEMBER]", Short: "Make a member the primary: by a switchover, or by a failover if the primary does not answer", Args: cobra.RangeArgs(1, 2),
		Long: `Does what risso switchover does, or, where the group has no primary that answers, what risso failover does.
The primary itself is opened, if it takes no writes: after a restart, or as somebody made it read-only.

` + fault.Help,
		Example: "  risso group promote shop db2 --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			a := carry.Asked{Group: args[0]}
			if len(args) == 2 {
				a.To = args[1]
			}
			return c.With(cmd.Context(), func(r *keep.Room) error { return c.promote(cmd.Context(), r, a, yes) })
		}}
	return c.asked(cmd, s, &yes)
}

func (c *command) promote(ctx context.Context, r *keep.Room, a carry.Asked, yes bool) error {
	cr := c.carrier(r)
	f, err := cr.Forecast(ctx, a)
	if err != nil || ctx.Err() != nil {
		return carry.Interrupted(ctx, nil, cmp.Or(err, ctx.Err()))
	}
	if i := f.Group.Find(a.To); a.To != "" && i >= 0 && f.Group.Members[i].Name == f.Old && f.Closed != nil {
		return c.open(ctx, r, f, yes)
	}
	a.By, a.Known, a.Because = r.Who, f.Known, f.Because
	do, how := cr.Switchover, "switchover"
	if !f.Alive {
		do, how = cr.Failover, "failover"
		if err := f.Refused(); err != nil {
			return err
		}
	}
	to := a.To
	if to == "" {
		to = f.Choice.Winner
	}
	if err := c.agreed(yes, fmt.Sprintf("%s of %s from %s to %s", how, a.Group, orNone(f.Old), orNone(to))); err != nil {
		return err
	}
	var j *failover.Journal
	j, err = do(ctx, a)
	err = carry.Interrupted(ctx, j, err)
	if err := c.Did(ctx, a.Group, "the "+how+" of group "+a.Group, err); err != nil {
		return err
	}
	if j != nil && j.Receipt != nil && c.output != "json" {
		for _, line := range append([]string{j.Receipt.Words}, j.Receipt.More()...) {
			fmt.Fprintln(c.Out, oneline.Of(line))
		}
	}
	return c.shown(ctx, r, a.Group)
}

// open lets the primary take writes again.
func (c *command) open(ctx context.Context, r *keep.Room, f *carry.Forecast, yes bool) error {
	if err := c.agreed(yes, fmt.Sprintf("%s, the primary of %s, takes no writes: %s; it is opened", f.Old, f.Group.Name, f.Closed.Why)); err != nil {
		return err
	}
	words, err := c.carrier(r).Open(ctx, f.Group.Name)
	if err := c.Did(ctx, f.Group.Name, "the opening of "+f.Old+", the primary of group "+f.Group.Name, err); err != nil {
		return err
	}
	if c.output != "json" {
		fmt.Fprintln(c.Out, oneline.Of(words))
	}
	return c.shown(ctx, r, f.Group.Name)
}

func orNone(name string) string {
	if name == "" {
		return "nobody"
	}
	return name
}

// shown shows a group as it is now.
func (c *command) shown(ctx context.Context, r *keep.Room, name string) error {
	g, err := r.Group(ctx, name)
	if err != nil {
		return err
	}
	return c.tell([]group.Group{*g})
}

func newDemote(s screen.Streams) *cobra.Command {
	c := &command{}
	yes := false
	cmd := &cobra.Command{Use: "demote GROUP", Short: "Let the primary take no more writes, and the group have none", Args: cobra.ExactArgs(1),
		Long:    "The primary becomes SECONDARY, and nobody takes writes until a member is promoted. risso serve does not fail such\na group over. It is refused where nobody else could be promoted then; risso group promote GROUP MEMBER\nmakes any of them the primary, also the one that was it.\n\n" + fault.Help,
		Example: "  risso group demote shop --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.With(ctx, func(r *keep.Room) error {
				if err := c.agreed(yes, "nobody takes writes in "+args[0]+" until a member is promoted"); err != nil {
					return err
				}
				words, err := c.carrier(r).Demote(ctx, args[0])
				if c.output != "json" && words != "" {
					fmt.Fprintln(c.Out, oneline.Of(words))
				}
				if err := c.Did(ctx, args[0], "the demotion of the primary of group "+args[0], err); err != nil {
					return err
				}
				return c.shown(ctx, r, args[0])
			})
		}}
	return c.asked(cmd, s, &yes)
}
