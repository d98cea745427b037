package carry

import (
	"strings"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/fleet"
)

// together is what is wrong where the only controller of a group is on this machine: so is the primary, and they die together. nil: that is not so. Where no member is known to be elsewhere it is a
// trial, in which nothing outlives the machine anyway.
func together(g *group.Group, t *topology.Topology) *fleet.Trouble {
	primary, away := "", []string(nil)
	for k, m := range g.Members {
		i := t.Find(m.Name)
		switch {
		case i < 0 || !t.Nodes[i].Seen:
		case k == g.Primary() && t.Nodes[i].Inside:
			primary = m.Name
		case k != g.Primary() && !t.Nodes[i].Inside && m.Status != group.Faulty:
			away = append(away, m.Name)
		}
	}
	if primary == "" || len(away) == 0 {
		return nil
	}
	return &fleet.Trouble{What: "the only controller of " + g.Name + " is on the machine of " + primary + ", the primary",
		Why:    "if that machine dies, nobody is left that lets " + strings.Join(away, " or ") + " follow",
		Remedy: "risso serve --failover auto on another machine, or three controllers on three machines: risso controller"}
}
