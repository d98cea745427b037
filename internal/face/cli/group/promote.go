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
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/oneline"
)

// asked is a command that asks before it changes who the primary is.
func (c *command) asked(cmd *cobra.Command, s screen.Streams, yes *bool) *cobra.Command {
	c.bind(cmd, s)
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "show what would be done, and change nothing")
	cmd.Flags().BoolVar(yes, "yes", false, "do not ask")
	return cmd
}

// agreed says what will be done, and asks. false: it is only to be shown, and was.
func (c *command) agreed(ctx context.Context, r *keep.Room, name string, yes bool, plan change.Plan, what ...string) (bool, error) {
	out := c.Streams
	if c.output == "json" {
		out.Out = out.Err
	}
	for _, line := range what {
		fmt.Fprintln(out.Out, oneline.Of(line))
	}
	screen.Steps(out.Out, plan)
	c.plan = plan
	switch {
	case !c.dryRun:
		return true, screen.Agreed(c.Streams, yes)
	case c.output == "json":
		return false, c.shown(ctx, r, name)
	}
	return false, nil
}

func newPromote(s screen.Streams) *cobra.Command {
	c := &command{}
	yes, accept := false, false
	cmd := &cobra.Command{Use: "promote GROUP [MEMBER]", Short: "Make a member the primary: by a switchover, or by a failover if the primary does not answer", Args: cobra.RangeArgs(1, 2),
		Long: `Does what risso switchover does, or, where the group has no primary that answers, what risso failover does.
The primary itself is opened, if it takes no writes: after a restart, or as somebody made it read-only.
A member that takes writes while the primary takes none, as it was made the primary without Risso or the
state of Risso is older than that, is taken for the primary, and nothing is changed on servers. If others
have transactions that it has not, --accept-loss is needed: they stay out, FAULTY.

` + fault.Help,
		Example: "  risso group promote shop db2 --dry-run\n  risso group promote shop db2 --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			a := carry.Asked{Group: args[0], AcceptLoss: accept}
			if len(args) == 2 {
				a.To = args[1]
			}
			return c.With(cmd.Context(), func(r *keep.Room) error { return c.promote(cmd.Context(), r, a, yes) })
		}}
	c.hooks.Bind(cmd.Flags())
	cmd.Flags().BoolVar(&accept, "accept-loss", false, "do it though transactions are known to be lost")
	return c.asked(cmd, s, &yes)
}

func (c *command) promote(ctx context.Context, r *keep.Room, a carry.Asked, yes bool) error {
	hooks, err := c.hooks.Read(r)
	if err != nil {
		return err
	}
	cr := c.carrier(r)
	cr.Hooks = hooks
	f, err := cr.Forecast(ctx, a)
	if err != nil || ctx.Err() != nil {
		return carry.Interrupted(ctx, nil, cmp.Or(err, ctx.Err()))
	}
	if i := f.Group.Find(a.To); a.To != "" && i >= 0 && f.Group.Members[i].Name == f.Old && f.Closed != nil {
		return c.open(ctx, r, f, yes)
	}
	if f.Supplanted(a.To) {
		return c.supplant(ctx, r, f, a, yes)
	}
	a.By, a.Known, a.Because = r.Who, f.Known, f.Because
	do, how, plan, to, more := cr.Switchover, "switchover", f.Plan, f.Choice.Winner, []string(nil)
	if f.Alive {
		p, err := cr.Plan(ctx, a)
		if err != nil {
			return carry.Interrupted(ctx, nil, err)
		}
		plan, to, more, a.From, a.To = p.Plan, p.Choice.Winner, p.Notes, p.Old, p.Choice.Winner
	} else {
		do, how, more = cr.Failover, "failover", f.Words()
		if err := f.Refused(); err != nil {
			return err
		}
	}
	what := fmt.Sprintf("%s of %s from %s to %s", how, a.Group, orNone(f.Old), orNone(to))
	if ok, err := c.agreed(ctx, r, a.Group, yes, plan, append([]string{what}, more...)...); err != nil || !ok {
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
	plan, err := c.carrier(r).PlanOpen(ctx, f.Group.Name)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s, the primary of %s, takes no writes: %s; it is opened", f.Old, f.Group.Name, f.Closed.Why)
	if ok, err := c.agreed(ctx, r, f.Group.Name, yes, plan, what); err != nil || !ok {
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

// supplant takes a member for the primary that takes writes instead of it.
func (c *command) supplant(ctx context.Context, r *keep.Room, f *carry.Forecast, a carry.Asked, yes bool) error {
	a.To = f.Rival
	plan, err := c.carrier(r).PlanSupplant(ctx, a)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s takes writes in %s, and not %s: it is taken for the primary; nothing is changed on servers", a.To, a.Group, f.Old)
	if ok, err := c.agreed(ctx, r, a.Group, yes, plan, what); err != nil || !ok {
		return err
	}
	words, err := c.carrier(r).Supplant(ctx, a)
	if err := c.Did(ctx, a.Group, "taking "+a.To+" for the primary of group "+a.Group, err); err != nil {
		return err
	}
	if c.output != "json" {
		fmt.Fprintln(c.Out, oneline.Of(words))
	}
	return c.shown(ctx, r, a.Group)
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
		Example: "  risso group demote shop --dry-run\n  risso group demote shop --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.With(ctx, func(r *keep.Room) error {
				p, err := c.carrier(r).PlanDemote(ctx, args[0])
				if err != nil {
					return err
				}
				what := "nobody takes writes in " + args[0] + " until a member is promoted"
				if ok, err := c.agreed(ctx, r, args[0], yes, p.Plan, what); err != nil || !ok {
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
