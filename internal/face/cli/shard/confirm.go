package shard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	groups "github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/shard"
	"github.com/rissodb/risso/internal/avail/shard/keep"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/serve/reshard"
)

// Confirmed is a map that was compared with the servers.
type Confirmed struct {
	Map shard.Map `json:"map"`
	reshard.Located
	Error string `json:"error,omitempty"` // why it is not confirmed
}

func newConfirm(s screen.Streams) *cobra.Command {
	c := &command{}
	sure := false
	cmd := &cobra.Command{Use: "confirm MAP", Short: "Look whether the rows are where a map says, and confirm a map that was restored", Args: cobra.ExactArgs(1),
		Long: `After risso state restore a map may be an older one: rows may have moved since. It is told to no client, and no
rows of it move, until this command has counted the rows of each shard in all groups, and found them where
the map says. Where they are in the old group as well, or nowhere, --yes says that the map is right. A map
whose rows are only elsewhere is wrong: remove it, and define it anew. Nothing is changed on servers.`,
		Example: "  risso shard confirm orders\n  risso shard confirm orders --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd.Context(), func(r *keep.Room, g *groups.Room) error {
				m, at, err := (&reshard.Mover{Groups: g, Maps: r}).Confirm(cmd.Context(), args[0], sure)
				if at == nil {
					return err
				}
				err = c.DidTo(cmd.Context(), "map "+args[0], "the confirmation of map "+args[0], err)
				return c.located(m, at, err)
			})
		}}
	cmd.Flags().BoolVar(&sure, "yes", false, "the map is right, also where the rows do not prove it")
	return c.bind(cmd, s)
}

// located tells where the rows of a map are.
func (c *command) located(m *shard.Map, at *reshard.Located, err error) error {
	if c.output == "json" {
		a := Confirmed{Map: *m, Located: *at}
		if err != nil {
			a.Error = err.Error()
		}
		return cmp.Or(err, render.JSON(c.Out, a))
	}
	w := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
	for _, s := range at.Shards {
		for _, name := range slices.Sorted(maps.Keys(s.Groups)) {
			if n := s.Groups[name]; n > 0 || name == s.Group {
				fmt.Fprintf(w, "shard %s\tgroup %s\t%s\n", s.Shard, name, digits.Counted(n, "row"))
			}
		}
	}
	if werr := w.Flush(); err == nil {
		err = werr
	}
	if err == nil {
		_, err = fmt.Fprintf(c.Out, "map %s is right, epoch %d\n", m.Name, m.Epoch)
	}
	return err
}
