package group

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	shards "github.com/rissodb/risso/internal/avail/shard/keep"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
)

// changing is a command that changes one member of a group.
func changing(s screen.Streams, use, short, long, example string, check func(value string) error, do func(g *group.Group, member, value string) error) *cobra.Command {
	c := &command{}
	cmd := &cobra.Command{Use: use, Short: short, Long: long + "\n\n" + fault.Help, Example: example, Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := check(args[2]); err != nil {
				return err
			}
			return c.With(cmd.Context(), func(r *keep.Room) error {
				g, err := r.Change(cmd.Context(), args[0], func(g *group.Group) error { return do(g, args[1], args[2]) })
				if err := c.Did(cmd.Context(), args[0], "the change of "+args[1]+" in group "+args[0]+" by "+cmd.Name()+" to "+args[2], err); err != nil {
					return err
				}
				return c.tell([]group.Group{*g})
			})
		}}
	return c.bind(cmd, s)
}

func newSetStatus(s screen.Streams) *cobra.Command {
	return changing(s, "set-status GROUP MEMBER SECONDARY|SPARE|FAULTY", "Give a member another status",
		"A FAULTY member comes back only as SPARE, and from there as SECONDARY. One that a person made FAULTY stays so\nuntil a person makes it SPARE, or has it rebuilt (risso group rebuild); one that Risso made so may come back by\nitself. A primary is made by risso switchover or risso failover alone.",
		"  risso group set-status shop db2 SPARE",
		func(value string) error {
			if st := group.Status(strings.ToUpper(value)); !slices.Contains(group.Statuses(), st) {
				return fault.Usagef("%q is no status: SECONDARY, SPARE or FAULTY", value)
			}
			return nil
		},
		func(g *group.Group, member, value string) error {
			return g.Set(member, group.Status(strings.ToUpper(value)), group.SaidSo, time.Now().UTC())
		})
}

func newSetWeight(s screen.Streams) *cobra.Command {
	return changing(s, "set-weight GROUP MEMBER WEIGHT", "Give a member a share of the reads",
		"A member gets reads in proportion to its weight; with 0 it gets none.", "  risso group set-weight shop db2 0.5",
		func(value string) error {
			w, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return fault.Usagef("%q is no weight: it is no number", value)
			}
			return group.CheckWeight(w)
		},
		func(g *group.Group, member, value string) error {
			w, _ := strconv.ParseFloat(value, 64) // it was checked
			return g.SetWeight(member, w)
		})
}

func newSetRule(s screen.Streams) *cobra.Command {
	return changing(s, "set-rule GROUP MEMBER prefer|neutral|avoid|never", "Say how gladly a member is promoted",
		"Of the members that may follow the primary, one that is preferred comes first, and one that is to be avoided only\nif no other can. One with never is not promoted, not even by name.",
		"  risso group set-rule shop db3 never",
		func(value string) error { return group.CheckRule(group.Rule(value)) },
		func(g *group.Group, member, value string) error { return g.SetRule(member, group.Rule(value)) })
}

func newSetCenter(s screen.Streams) *cobra.Command {
	return changing(s, "set-center GROUP MEMBER CENTER", "Say in which data center a member is",
		"Of members with equal rules, one in the data center that risso group set-policy --center names comes first;\nwithout that, one in the data center of the old primary. An empty name takes it away.",
		"  risso group set-center shop db3 east",
		group.CheckCenter,
		func(g *group.Group, member, value string) error { return g.SetCenter(member, value) })
}

func newRemove(s screen.Streams) *cobra.Command {
	c := &command{}
	var force bool
	cmd := &cobra.Command{Use: "remove GROUP [MEMBER]", Short: "Forget a group, or one of its members",
		Long: "Nothing is changed on the servers. Journals and receipts stay. The primary cannot be taken out of a group, and a\ngroup that has shards of a map, or from or to which rows of one are being moved, cannot be removed. While a change of\n" +
			"the primary is under way, or was cut off, both are refused: its servers may be left read-only then, and nobody would\nbring it to its end. --force does it all the same.\n\n" + fault.Help,
		Example: "  risso group remove shop db3\n  risso group remove shop", Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.With(cmd.Context(), func(r *keep.Room) error {
				if err := c.waits(cmd.Context(), r, args[0]); err != nil && !force {
					return err
				}
				if len(args) == 1 {
					if err := sharded(cmd.Context(), r, args[0]); err != nil {
						return err
					}
					if err := c.Did(cmd.Context(), args[0], "the removal of group "+args[0], r.Remove(cmd.Context(), args[0])); err != nil {
						return err
					}
					list, err := r.Groups(cmd.Context())
					if err != nil {
						return err
					}
					return c.tell(list)
				}
				g, err := r.Change(cmd.Context(), args[0], func(g *group.Group) error { return g.Without(args[1]) })
				if err := c.Did(cmd.Context(), args[0], "the removal of "+args[1]+" from group "+args[0], err); err != nil {
					return err
				}
				return c.tell([]group.Group{*g})
			})
		}}
	cmd.Flags().BoolVar(&force, "force", false, "also while a change of the primary waits that was cut off")
	return c.bind(cmd, s)
}

// waits refuses while a change of a group's primary is under way, or was cut off.
func (c *command) waits(ctx context.Context, r *keep.Room, name string) error {
	g, err := r.Group(ctx, name)
	if err != nil {
		return err
	}
	return c.carrier(r).CutOff(ctx, g)
}

// sharded refuses to remove a group of which maps say that it has the rows of some keys, as nobody would find them any more, and one that a move of rows needs
// to come to its end.
func sharded(ctx context.Context, r *keep.Room, name string) error {
	room := &shards.Room{Docs: r.Docs}
	moving, err := room.Moving(ctx, name)
	if err != nil {
		return err
	}
	var remedy []string
	for _, m := range moving {
		remedy = append(remedy, fmt.Sprintf("risso shard resume %s brings that to its end, risso shard undo %s takes it back", m, m))
	}
	if len(moving) > 0 {
		return fault.New(fault.Failed, strings.Join(remedy, "; "), fmt.Errorf("rows of the map %s are being moved from the group %s, or to it", strings.Join(moving, ", "), name))
	}
	maps, of, err := room.Using(ctx, name)
	if err != nil || len(maps) == 0 {
		return err
	}
	var has []string
	for _, m := range maps {
		has = append(has, fmt.Sprintf("the map %s: %s", m, strings.Join(of[m], ", ")))
		remedy = append(remedy, fmt.Sprintf("risso shard move %s %s --to another group, or risso shard remove %s", m, of[m][0], m))
	}
	return fault.New(fault.Failed, strings.Join(remedy, "; "), fmt.Errorf("the group %s has shards of %s", name, strings.Join(has, "; ")))
}
