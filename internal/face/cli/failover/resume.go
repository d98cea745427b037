package failover

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/store/state"
)

func newResume(s screen.Streams) *cobra.Command {
	c := &command{}
	cmd := &cobra.Command{
		Use:     "resume",
		Short:   "Bring a switchover or failover that was cut off to its end, or take it back",
		Long:    "Looks at the journal of the change that was cut off. One that had not yet promoted anybody is taken back, if\nit was a switchover, and done again, if it was a failover; one that had is brought to its end. Where risso serve\nwas faster, it is said what became of it.\n\n" + fault.Help,
		Example: "  risso failover resume --group shop --dry-run\n  risso failover resume --group shop",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context(), c.resume) },
	}
	c.Streams = s
	c.Groups.Bind(cmd, true)
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "show what would be done, and change nothing")
	c.hooks.Bind(cmd.Flags())
	flags.DurationVar(cmd.Flags(), &c.drain, "drain", carry.DefaultLimits().Drain, "how long the new primary may take to apply what it received")
	flags.OutputVar(cmd.Flags(), &c.output, "", "text", "json")
	return cmd
}

func (c *command) resume(ctx context.Context, cr *carry.Carrier, a carry.Asked) error {
	if c.dryRun {
		return c.resumes(ctx, cr, a)
	}
	was, err := cr.Room.Unfinished(ctx, c.Group)
	if err != nil {
		return err
	}
	j, err := cr.Resume(ctx, a)
	if j == nil && was != nil && (err == nil || errors.Is(err, group.ErrHeld)) {
		return c.meanwhile(ctx, cr, was, err)
	}
	if j != nil || err != nil {
		err = c.Did(ctx, c.Group, "the change of group "+c.Group+" that was cut off and taken up again", err)
	}
	ans := Answer{Group: c.Group, Plan: []string{}}
	if j != nil {
		if ans.Old = j.Old; err == nil && j.Stage == failover.Undone {
			to := ""
			if j.New != "" {
				to = " to " + oneline.Of(j.New)
			}
			fmt.Fprintf(c.told().Out, "the %s%s that was cut off is taken back: %s is the primary of %s as before\n", j.Kind, to, oneline.Of(j.Old), c.Group)
		}
	} else if err == nil {
		fmt.Fprintln(c.told().Out, "nothing was cut off")
	}
	return c.answer(ans, j, err)
}

// resumes shows what would be done.
func (c *command) resumes(ctx context.Context, cr *carry.Carrier, a carry.Asked) error {
	p, err := cr.PlanResume(ctx, a)
	ans, out := Answer{Group: c.Group, DryRun: true, Plan: []string{}}, c.told().Out
	switch {
	case p == nil && err != nil:
		return carry.Interrupted(ctx, nil, err)
	case p == nil:
		fmt.Fprintln(out, "nothing was cut off")
		return c.answer(ans, nil, nil)
	}
	fmt.Fprintln(out, oneline.Of(c.Group+": "+p.Words))
	for _, n := range p.Notes {
		fmt.Fprintln(out, oneline.Of(n))
	}
	screen.Steps(out, p.Plan)
	ans.Old, ans.New, ans.Plan = p.Journal.Old, p.Journal.New, p.Plan.Words()
	return c.answer(ans, nil, err)
}

// meanwhile tells what became of a change that another process ended while this one waited; held is why this one could not go on with it; nil: it was over then.
func (c *command) meanwhile(ctx context.Context, cr *carry.Carrier, was *keep.Journal, held error) error {
	j, err := cr.Ended(ctx, c.Group, was.Epoch)
	ans := Answer{Group: c.Group, Plan: []string{}, Old: was.Old}
	switch {
	case errors.Is(err, state.ErrNotFound): // it changed nothing, and so many did since that it is not kept
		fmt.Fprintln(c.told().Out, "another process took it back meanwhile")
		return c.answer(ans, nil, nil)
	case err != nil:
		return err
	case j == nil:
		return c.answer(ans, nil, c.Did(ctx, c.Group, "the change of group "+c.Group+" that was cut off and taken up again", held))
	}
	g, err := cr.Room.Group(ctx, c.Group)
	if err != nil {
		return err
	}
	primary := ""
	if i := g.Primary(); i >= 0 {
		primary = g.Members[i].Name
	}
	words := oneline.Of(carry.EndWords(j, primary))
	if j.Stage == failover.Failed {
		return c.answer(ans, j, fault.New(fault.Failed, "risso group health "+c.Group, errors.New(words)))
	}
	fmt.Fprintln(c.told().Out, words)
	return c.answer(ans, j, nil)
}
