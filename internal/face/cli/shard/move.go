package shard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	groups "github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/shard"
	"github.com/rissodb/risso/internal/avail/shard/keep"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/serve/reshard"
)

// move is what moves rows.
type move struct {
	command
	asked             shard.Asked
	keep, dryRun, yes bool
	grace             time.Duration
}

// Moved is a move of rows: what would be done, or what was.
type Moved struct {
	Map    string      `json:"map"`
	DryRun bool        `json:"dry_run"`
	Plan   []string    `json:"plan"`
	Rows   int64       `json:"rows"` // that moved when it was planned
	Move   *shard.Move `json:"move,omitempty"`
	Error  string      `json:"error,omitempty"`
}

const howMoved = `The rows are copied, and changes of them are followed in the binary log, while clients write. Then triggers refuse
writes of these rows, and only these, until what changed last is copied, both sides are compared, and the
map is changed: the error tells clients to look it up again. The old rows are deleted in small steps, at the
earliest when --grace is over; until then the old group refuses the keys. A move that was cut off goes on with
risso shard resume; before the map is changed risso shard undo takes it back.`

func (c *move) bindMove(cmd *cobra.Command, s screen.Streams) *cobra.Command {
	cmd.Long = howMoved
	fl := cmd.Flags()
	fl.StringVar(&c.asked.To, "to", "", "the group that gets the rows")
	fl.BoolVar(&c.keep, "keep-rows", false, "leave the old rows where they were")
	fl.BoolVar(&c.dryRun, "dry-run", false, "show what would be done, and change nothing")
	fl.BoolVar(&c.yes, "yes", false, "do not ask")
	flags.DurationVar(fl, &c.grace, "grace", reshard.DefaultLimits().Grace, "how long the old group refuses the keys after the map was changed: in that time clients look it up again")
	return c.bind(cmd, s)
}

func newSplit(s screen.Streams) *cobra.Command {
	c := &move{}
	cmd := &cobra.Command{
		Use:   "split MAP SHARD",
		Short: "Move a part of a shard to another group while it is written",
		Example: `  risso shard split orders all --at 100000 --to east --dry-run
  risso shard split orders all --at 100000 --to east --as high --yes
  risso shard split sales eu --values DE --to east --yes`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.asked.Shard = args[1]
			if c.asked.New == "" {
				c.asked.New = args[1] + "-" + c.asked.To
			}
			if c.asked.New == c.asked.Shard {
				return fault.Usagef("--as %s: the shard has that name", c.asked.New)
			}
			return c.run(cmd.Context(), args[0])
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&c.asked.At, "at", "", "by range the first key that moves; by hash the first slot (default: the second half of them)")
	fl.StringSliceVar(&c.asked.Values, "values", nil, "by list the keys that move")
	fl.StringVar(&c.asked.New, "as", "", "the name of the new shard (default: those of the shard and the group)")
	return c.bindMove(cmd, s)
}

func newMove(s screen.Streams) *cobra.Command {
	c := &move{}
	cmd := &cobra.Command{
		Use:     "move MAP SHARD",
		Short:   "Move a shard to another group while it is written",
		Example: "  risso shard move orders high --to north --dry-run\n  risso shard move orders high --to north --yes",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.asked.Shard, c.asked.New = args[1], args[1]
			return c.run(cmd.Context(), args[0])
		},
	}
	return c.bindMove(cmd, s)
}

// told is where what people read goes.
func (c *move) told() screen.Streams {
	s := c.Streams
	if c.output == "json" {
		s.Out = s.Err
	}
	return s
}

// mover moves rows for a command.
func (c *move) mover(maps *keep.Room, g *groups.Room) *reshard.Mover {
	limits := reshard.DefaultLimits()
	limits.Grace = c.grace
	return &reshard.Mover{Groups: g, Maps: maps, Limits: limits, Keep: c.keep, Say: screen.Says(c.Err)}
}

func (c *move) run(ctx context.Context, name string) error {
	if c.asked.To == "" {
		return fault.Usagef("--to names the group that gets the rows")
	}
	return c.with(ctx, func(maps *keep.Room, g *groups.Room) error {
		mover := c.mover(maps, g)
		p, err := mover.Plan(ctx, name, c.asked, c.keep)
		if err != nil {
			return err
		}
		screen.Steps(c.told().Out, p.Steps)
		ans := Moved{Map: name, DryRun: c.dryRun, Plan: p.Steps.Words(), Rows: p.Rows}
		if c.dryRun {
			return c.answer(ans, nil, nil)
		}
		if err := screen.Agreed(c.Streams, c.yes); err != nil {
			return err
		}
		j, err := mover.Run(ctx, p)
		err = c.Did(ctx, p.Move.From, "the move of "+p.Move.Part.Words()+" of map "+name+" from group "+p.Move.From+" to group "+p.Move.Asked.To, err)
		return c.answer(ans, j, err)
	})
}

// answer tells what was done.
func (c *move) answer(a Moved, j *keep.Journal, err error) error {
	if j != nil && !errors.Is(err, reshard.ErrTaken) { // the other one says how far it is
		a.Move = &j.Move
		fmt.Fprintln(c.told().Out, reshard.Words(j.Move))
		if err != nil && j.Ended.IsZero() {
			fmt.Fprintln(c.Err, next(j.Move, err))
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

// next is what brings a move to its end that err cut off.
func next(m shard.Move, err error) string {
	before := m.Stage == shard.Copying || m.Stage == shard.Switching
	switch {
	case before && (errors.Is(err, reshard.ErrMoved) || errors.Is(err, reshard.ErrChanged) || errors.Is(err, reshard.ErrDiffers) || errors.Is(err, reshard.ErrRefused) && m.Log.File != ""):
		return "risso shard undo " + m.Map + " takes it back"
	case errors.Is(err, reshard.ErrLost):
		return "risso shard resume " + m.Map + " looks again whether the rows are in group " + m.Asked.To
	}
	return "risso shard resume " + m.Map + " goes on"
}

// end is how a move that was cut off comes to an end.
type end struct {
	does string // in words
	plan func(*reshard.Mover, context.Context, string) (change.Plan, error)
	do   func(*reshard.Mover, context.Context, string) (*keep.Journal, error)
}

// ending is a command that brings a move that was cut off to an end.
func ending(s screen.Streams, use, short, long, example string, e end) (*move, *cobra.Command) {
	c := &move{}
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Example: example, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd.Context(), func(maps *keep.Room, g *groups.Room) error {
				if c.dryRun {
					plan, err := e.plan(c.mover(maps, g), cmd.Context(), args[0])
					if err != nil {
						return err
					}
					screen.Steps(c.told().Out, plan)
					return c.answer(Moved{Map: args[0], DryRun: true, Plan: plan.Words()}, nil, nil)
				}
				j, err := e.do(c.mover(maps, g), cmd.Context(), args[0])
				if j != nil {
					err = c.Did(cmd.Context(), j.From, e.does+" the move of rows of map "+args[0], err)
				}
				return c.answer(Moved{Map: args[0], Plan: []string{}}, j, err)
			})
		}}
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "show what would be done, and change nothing")
	return c, c.bind(cmd, s)
}

func newResume(s screen.Streams) *cobra.Command {
	c, cmd := ending(s, "resume MAP", "Go on with a move of rows that was cut off", `A process that still works on it is stopped by its next entry into the journal. Before the old rows are deleted it
looks whether the primary of the new group has them, where that is another one than the rows were compared with.`,
		"  risso shard resume orders\n  risso shard resume orders --keep-rows", end{"going on with", (*reshard.Mover).PlanResume, (*reshard.Mover).Resume})
	cmd.Flags().BoolVar(&c.keep, "keep-rows", false, "leave the old rows where they were, as far as they are there")
	return cmd
}

func newUndo(s screen.Streams) *cobra.Command {
	_, cmd := ending(s, "undo MAP", "Take a move of rows back that was cut off before the map was changed", "Writes of the rows are taken as before, and the copy is deleted.",
		"  risso shard undo orders", end{"taking back", (*reshard.Mover).PlanUndo, (*reshard.Mover).Undo})
	return cmd
}
