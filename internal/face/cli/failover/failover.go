// Package failover holds the commands that replace the primary of a group: switchover, failover, receipt.
package failover

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/oneline"
)

// command is what both have.
type command struct {
	screen.Streams
	flags.Groups
	to, output  string
	dryRun, yes bool
	acceptLoss  bool
	drain       time.Duration
	hooks       flags.Hooks
}

func (c *command) bind(cmd *cobra.Command, s screen.Streams) *cobra.Command {
	c.Streams = s
	c.Groups.Bind(cmd, true)
	fl := cmd.Flags()
	fl.StringVar(&c.to, "to", "", "the member that is to be the primary (default: the best)")
	fl.BoolVar(&c.dryRun, "dry-run", false, "show what would be done, and change nothing")
	fl.BoolVar(&c.yes, "yes", false, "do not ask")
	c.hooks.Bind(fl)
	flags.DurationVar(fl, &c.drain, "drain", carry.DefaultLimits().Drain, "how long the new primary may take to apply what it received")
	flags.OutputVar(fl, &c.output, "", "text", "json")
	return cmd
}

// told is where what people read goes.
func (c *command) told() screen.Streams {
	s := c.Streams
	if c.output == "json" {
		s.Out = s.Err
	}
	return s
}

// Answer is a change of the primary of a group: what would be done, or what was.
type Answer struct {
	Group   string            `json:"group"`
	DryRun  bool              `json:"dry_run"`
	Old     string            `json:"old"`
	New     string            `json:"new"`
	Plan    []string          `json:"plan"`
	Choice  failover.Choice   `json:"choice"`
	Journal *failover.Journal `json:"journal,omitempty"`
	Error   string            `json:"error,omitempty"`
}

// NewSwitchover is risso switchover.
func NewSwitchover(s screen.Streams) *cobra.Command {
	c := &command{}
	cmd := &cobra.Command{
		Use:   "switchover",
		Short: "Let another member of a group be the primary, while the old one hands over",
		Long: `Checks everything first, then lets the primary take no more writes, waits until the new one has applied
all of them, and lets that take writes. The old primary and the other members follow it. When a step
fails before the new primary takes writes, the old one takes them again.

` + fault.Help,
		Example: `  risso switchover --group shop --dry-run
  risso switchover --group shop --to db2 --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context(), c.switchover) },
	}
	return c.bind(cmd, s)
}

// NewFailover is risso failover.
func NewFailover(s screen.Streams) *cobra.Command {
	c := &command{}
	cmd := &cobra.Command{
		Use:   "failover",
		Short: "Let a replica follow the primary of a group, which is dead",
		Long: `Keeps the old primary from writes as far as it answers, stops receiving on all members, chooses the one
that received the most, waits until it has applied all of it, and lets it take writes; the others follow
it. A replica that has transactions of its own, leaves something out, stays behind, is newer than another
one, or does not apply is not promoted; where two members each have something that the other lacks,
nobody is. What was lost is in the receipt: risso receipt.

` + fault.Help,
		Example: `  risso failover --group shop --dry-run
  risso failover --group shop --yes
  risso failover --group shop --to db3 --accept-loss --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context(), c.failover) },
	}
	c.bind(cmd, s)
	cmd.Flags().BoolVar(&c.acceptLoss, "accept-loss", false, "fail over though transactions are known to be lost")
	cmd.AddCommand(newResume(s), newCodes(s))
	return cmd
}

// run finds the group and lets do do it.
func (c *command) run(ctx context.Context, do func(context.Context, *carry.Carrier, carry.Asked) error) error {
	return c.With(ctx, func(r *keep.Room) error {
		g, err := r.Only(ctx, c.Group)
		if err != nil {
			return err
		}
		if c.Group = g.Name; c.drain < time.Second {
			return fault.Usagef("--drain: at least 1s")
		}
		limits := carry.DefaultLimits()
		limits.Drain = c.drain
		hooks, err := c.hooks.Read(r)
		if err != nil {
			return err
		}
		cr := &carry.Carrier{Room: r, Holder: carry.NewHolder("risso"), Limits: limits, Say: screen.Says(c.Err), Hooks: hooks}
		return do(ctx, cr, carry.Asked{Group: g.Name, To: c.to, By: r.Who, AcceptLoss: c.acceptLoss, Drains: c.dryRun || !c.yes})
	})
}

func (c *command) switchover(ctx context.Context, cr *carry.Carrier, a carry.Asked) error {
	p, err := cr.Plan(ctx, a)
	if err != nil {
		return carry.Interrupted(ctx, nil, err)
	}
	out := c.told().Out
	fmt.Fprintf(out, "%s: from %s to %s\n", c.Group, oneline.Of(p.Old), oneline.Of(p.Choice.Winner))
	screen.Steps(out, p.Plan)
	for _, n := range p.Notes {
		fmt.Fprintln(out, oneline.Of(n))
	}
	ans := Answer{Group: c.Group, DryRun: c.dryRun, Old: p.Old, New: p.Choice.Winner, Plan: p.Plan.Words(), Choice: p.Choice}
	if c.dryRun {
		return c.answer(ans, nil, nil)
	}
	if err := screen.Agreed(c.Streams, c.yes); err != nil {
		return err
	}
	a.From, a.To = p.Old, p.Choice.Winner
	j, err := cr.Switchover(ctx, a)
	err = carry.Interrupted(ctx, j, err)
	err = c.Did(ctx, c.Group, "the switchover of group "+c.Group+" from "+ans.Old+" to "+ans.New, err)
	return c.answer(ans, j, err)
}

func (c *command) failover(ctx context.Context, cr *carry.Carrier, a carry.Asked) error {
	f, err := cr.Forecast(ctx, a)
	if err != nil || ctx.Err() != nil {
		return carry.Interrupted(ctx, nil, cmp.Or(err, ctx.Err()))
	}
	out := c.told().Out
	ans := Answer{Group: c.Group, DryRun: c.dryRun, Old: f.Old, New: f.Choice.Winner, Plan: f.Plan.Words(), Choice: f.Choice}
	for _, line := range f.Words() {
		fmt.Fprintln(out, oneline.Of(line))
	}
	screen.Steps(out, f.Plan)
	if c.dryRun {
		return c.answer(ans, nil, f.Refused())
	}
	if err := f.Refused(); err != nil {
		return c.answer(ans, nil, err)
	}
	if err := screen.Agreed(c.Streams, c.yes); err != nil {
		return err
	}
	if a.Drains = false; !c.yes { // it may live by now
		if f, err = cr.Forecast(ctx, a); err != nil {
			return carry.Interrupted(ctx, nil, err)
		}
		if err := f.Refused(); err != nil {
			return c.answer(ans, nil, err)
		}
	}
	a.From, a.Known, a.Because = ans.Old, f.Known, f.Because
	j, err := cr.Failover(ctx, a)
	err = carry.Interrupted(ctx, j, err)
	if j != nil {
		ans.New = j.New
	}
	err = c.Did(ctx, c.Group, "the failover of group "+c.Group+" from "+ans.Old+" to "+ans.New, err)
	return c.answer(ans, j, err)
}

// answer tells what was done.
func (c *command) answer(a Answer, j *failover.Journal, err error) error {
	out := c.told().Out
	if j != nil {
		a.Journal, a.New = j, j.New
		if j.Receipt != nil && err == nil {
			fmt.Fprintf(out, "%s is the primary of %s, epoch %d\n%s\n", oneline.Of(j.New), j.Group, j.Epoch, oneline.Of(j.Receipt.Words))
			for _, line := range j.Receipt.More() {
				fmt.Fprintln(out, oneline.Of(line))
			}
			if words := j.Receipt.OutageWords(); words != "" {
				fmt.Fprintln(out, words)
			}
		}
	}
	if c.output != "json" {
		return err
	}
	if err != nil {
		a.Error = err.Error()
	}
	if werr := render.JSON(c.Out, a); err == nil {
		err = werr
	}
	return err
}
