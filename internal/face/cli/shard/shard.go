// Package shard holds the command risso shard: which group of servers has which keys, and moving rows from one to another.
package shard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	groups "github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/shard"
	"github.com/rissodb/risso/internal/avail/shard/keep"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/serve/reshard"
)

// command is what all below risso shard have.
type command struct {
	screen.Streams
	flags.Groups
	output string
}

// New is risso shard and all below it.
func New(s screen.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "shard",
		Short: "Spread the rows of tables over groups of servers, and move them while they are written",
		Long: `A map says which group of servers has the rows of a key: by range, a shard has the keys from its bound
up to that of the next one; by hash, keys have one of 4096 slots, and a shard has the slots from its
bound on; by list, a shard has the keys that it names. The slot of a key is the first three hexadecimal
digits of the SHA-256 of its text, CONV(LEFT(SHA2(key, 256), 3), 16, 10) in SQL. Each change of a map raises its epoch.`,
		Example: `  risso shard define orders --kind range --table shop.orders:customer --shard all=west
  risso shard lookup orders 4711
  risso shard split orders all --at 100000 --to east --dry-run`,
	}
	cmd.AddCommand(newDefine(s), newAdd(s), newList(s), newLookup(s), newConfirm(s), newRemove(s), newSplit(s), newMove(s), newResume(s), newUndo(s))
	return cmd
}

// bind adds the flags that all have.
func (c *command) bind(cmd *cobra.Command, s screen.Streams) *cobra.Command {
	c.Streams = s
	c.Groups.Bind(cmd, false)
	flags.OutputVar(cmd.Flags(), &c.output, "", "text", "json")
	cmd.Long = strings.TrimSpace(cmd.Long + "\n\n" + fault.Help)
	return cmd
}

// with opens the maps, and the groups beside them.
func (c *command) with(ctx context.Context, do func(*keep.Room, *groups.Room) error) error {
	return c.With(ctx, func(r *groups.Room) error { return do(&keep.Room{Docs: r.Docs, Who: r.Who}, r) })
}

// Answer is maps of shards.
type Answer struct {
	Maps []shard.Map `json:"maps"`
}

// tell shows maps.
func (c *command) tell(list ...shard.Map) error {
	if c.output == "json" {
		if list == nil {
			list = []shard.Map{}
		}
		return render.JSON(c.Out, Answer{list})
	}
	for i, m := range list {
		if i > 0 {
			fmt.Fprintln(c.Out)
		}
		var tables []string
		for _, t := range m.Tables {
			tables = append(tables, t.String())
		}
		fmt.Fprintf(c.Out, "%s: by %s, %s keys, epoch %d: %s\n", m.Name, m.Kind, m.Keys, m.Epoch, oneline.Of(strings.Join(tables, ", ")))
		w := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
		for i, s := range m.Shards {
			fmt.Fprintf(w, "  %s\t%s\t%s\n", s.Name, s.Group, oneline.Of(m.Part(i).Words()))
		}
		if err := w.Flush(); err != nil {
			return err
		}
		if err := keep.Sure(&m); err != nil {
			fmt.Fprintf(c.Out, "  %v (%s)\n", err, fleet.RemedyOf(err))
		}
	}
	return nil
}

type define struct {
	command
	kind, keys     string
	tables, shards []string
}

func newDefine(s screen.Streams) *cobra.Command {
	c := &define{}
	cmd := &cobra.Command{
		Use:   "define MAP",
		Short: "Define a map of shards",
		Long: `Writes down which group has which keys; nothing is changed on servers, and rows have to be where the map
says. A shard is NAME=GROUP with its bound behind an @: by range the first key that it has, none for the
first shard; by hash the first slot, where without any the slots are divided evenly; by list NAME=GROUP@a,b,c. A table or
column that a group does not have is refused, where its primary answers.`,
		Example: `  risso shard define orders --kind range --table shop.orders:customer --shard low=west --shard high=east@100000
  risso shard define users --kind hash --keys text --table app.users:email --shard a=west --shard b=east
  risso shard define sales --kind list --keys text --table shop.sales:country --shard eu=west@DE,FR --shard us=east@US`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := c.read(args[0])
			if err != nil {
				return err
			}
			return c.with(cmd.Context(), func(r *keep.Room, g *groups.Room) error {
				for _, s := range m.Shards {
					if _, err := g.Group(cmd.Context(), s.Group); err != nil {
						return err
					}
				}
				if err := (&reshard.Mover{Groups: g, Maps: r}).Defined(cmd.Context(), m); err != nil {
					return err
				}
				if err := c.DidTo(cmd.Context(), "map "+m.Name, "the definition of map "+m.Name, r.Add(cmd.Context(), m)); err != nil {
					return err
				}
				return c.tell(*m)
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&c.kind, "kind", "range", "how keys are assigned to shards: range, hash or list")
	fl.StringVar(&c.keys, "keys", "integer", "what keys are: integer, or text, compared byte by byte")
	fl.StringArrayVar(&c.tables, "table", nil, "SCHEMA.TABLE:COLUMN, a table and the column that has its key (several times: tables that move together)")
	fl.StringArrayVar(&c.shards, "shard", nil, "NAME=GROUP[@BOUND], a shard (several times)")
	return c.bind(cmd, s)
}

// read makes a map of the flags.
func (c *define) read(name string) (*shard.Map, error) {
	m := &shard.Map{Name: name, Kind: shard.Kind(c.kind), Keys: shard.Keys(c.keys), Epoch: 1, Changed: time.Now().UTC()}
	for _, text := range c.tables {
		t, err := shard.ParseTable(text)
		if err != nil {
			return nil, err
		}
		m.Tables = append(m.Tables, t)
	}
	for _, text := range c.shards {
		s, err := shard.ParseShard(m.Kind, text)
		if err != nil {
			return nil, err
		}
		m.Shards = append(m.Shards, s)
	}
	m.Even()
	return m, m.Check()
}

func newAdd(s screen.Streams) *cobra.Command {
	c := &command{}
	var group string
	var values []string
	cmd := &cobra.Command{
		Use:   "add MAP SHARD",
		Short: "Give keys that no shard of a list has to one",
		Long: `Only in a map by list there are keys without a shard. In one by range or hash each key has one, and risso shard
split divides it.`,
		Example: "  risso shard add sales asia --group east --values JP,KR",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd.Context(), func(r *keep.Room, g *groups.Room) error {
				if _, err := g.Group(cmd.Context(), group); err != nil {
					return err
				}
				m, err := r.Change(cmd.Context(), args[0], func(m *shard.Map) error { return m.Add(args[1], group, values, time.Now().UTC()) })
				if err := c.DidTo(cmd.Context(), "map "+args[0], "the addition of keys to shard "+args[1]+" of map "+args[0]+" in group "+group, err); err != nil {
					return err
				}
				return c.tell(*m)
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&group, "group", "", "the group that has them")
	fl.StringSliceVar(&values, "values", nil, "the keys")
	return c.bind(cmd, s)
}

func newList(s screen.Streams) *cobra.Command {
	c := &command{}
	cmd := &cobra.Command{Use: "list [MAP]", Short: "List maps of shards", Args: cobra.MaximumNArgs(1), Example: "  risso shard list\n  risso shard list orders --output json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd.Context(), func(r *keep.Room, _ *groups.Room) error {
				if len(args) == 1 {
					m, err := r.Map(cmd.Context(), args[0])
					if err != nil {
						return err
					}
					return c.tell(*m)
				}
				list, err := r.Maps(cmd.Context())
				if err != nil {
					return err
				}
				return c.tell(list...)
			})
		}}
	return c.bind(cmd, s)
}

// Found is where the rows of a key are.
type Found struct {
	Map     string `json:"map"`
	Epoch   uint64 `json:"epoch"`
	Key     string `json:"key"`
	Slot    *int   `json:"slot,omitempty"` // by hash
	Shard   string `json:"shard"`
	Group   string `json:"group"`
	Server  string `json:"server,omitempty"` // the primary of the group; without one it has none now
	Address string `json:"address,omitempty"`
}

func newLookup(s screen.Streams) *cobra.Command {
	c := &command{}
	cmd := &cobra.Command{Use: "lookup MAP KEY", Short: "Tell which group, and which server, has the rows of a key", Args: cobra.ExactArgs(2),
		Long: "A key that begins with a dash is named behind --.", Example: "  risso shard lookup orders 4711\n  risso shard lookup orders -- -5",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd.Context(), func(r *keep.Room, g *groups.Room) error {
				m, err := r.Map(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return c.lookup(cmd.Context(), m, g, args[1])
			})
		}}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		remedy := cmd.CommandPath() + " --help"
		if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() != "" {
			remedy = "a key that begins with a dash is named behind --: " + cmd.CommandPath() + " MAP -- -" + unknown.GetSpecifiedShortnames()
		}
		return fault.New(fault.Usage, remedy, err)
	})
	return c.bind(cmd, s)
}

func (c *command) lookup(ctx context.Context, m *shard.Map, g *groups.Room, text string) error {
	if err := keep.Sure(m); err != nil {
		return err
	}
	sh, err := m.Lookup(text)
	if err != nil {
		return err
	}
	key, err := m.Key(text)
	if err != nil {
		return err
	}
	f := Found{Map: m.Name, Epoch: m.Epoch, Key: key, Shard: sh.Name, Group: sh.Group}
	if m.Kind == shard.Hash {
		slot := shard.SlotOf(key)
		f.Slot = &slot
	}
	in, err := g.Group(ctx, sh.Group)
	if err != nil {
		return err
	}
	where := "the group has no primary now"
	if i := in.Primary(); i >= 0 {
		f.Server, f.Address = in.Members[i].Name, in.Members[i].Address
		where = "primary " + f.Server + " at " + f.Address
	}
	if c.output == "json" {
		return render.JSON(c.Out, f)
	}
	_, err = fmt.Fprintf(c.Out, "shard %s, group %s, %s, epoch %d\n", f.Shard, f.Group, oneline.Of(where), f.Epoch)
	return err
}

func newRemove(s screen.Streams) *cobra.Command {
	c := &command{}
	cmd := &cobra.Command{Use: "remove MAP [SHARD]", Short: "Forget a map of shards, or one shard of a list", Args: cobra.RangeArgs(1, 2),
		Long: "Rows stay where they are.", Example: "  risso shard remove sales asia\n  risso shard remove sales",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd.Context(), func(r *keep.Room, _ *groups.Room) error {
				if len(args) == 2 {
					m, err := r.Change(cmd.Context(), args[0], func(m *shard.Map) error { return m.Remove(args[1], time.Now().UTC()) })
					if err := c.DidTo(cmd.Context(), "map "+args[0], "the removal of shard "+args[1]+" from map "+args[0], err); err != nil {
						return err
					}
					return c.tell(*m)
				}
				if err := c.DidTo(cmd.Context(), "map "+args[0], "the removal of map "+args[0], r.Remove(cmd.Context(), args[0])); err != nil {
					return err
				}
				list, err := r.Maps(cmd.Context())
				if err != nil {
					return err
				}
				return c.tell(list...)
			})
		}}
	return c.bind(cmd, s)
}
