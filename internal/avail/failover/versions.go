package failover

import (
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// Out is a member that cannot replicate from a new primary, and stays out.
type Out struct {
	Name string `json:"name"`
	fleet.Trouble
}

// versions looks at members from which others could not replicate. There is no way back from a newer version: a person names it, and the older ones stay out. So it is for
// a primary that is dead, too: what would be refused while it lives is not done because it died.
func (ch *chooser) versions() {
	for i := range ch.c.Candidates {
		c := &ch.c.Candidates[i]
		if c.node < 0 || !ch.Topology.Nodes[c.node].Seen {
			continue
		}
		source, other := ch.Topology.Nodes[c.node].Server, false
		look := func(name string, s fleet.Server) {
			if why := mysql.Of(s).CannotFollow(mysql.Of(source)); why != "" {
				c.out = append(c.out, Out{name, fleet.Trouble{What: "stays out", Why: why}})
				other = other || mysql.Of(s).NeverFollows(mysql.Of(source))
			}
		}
		if ch.old == nil && ch.Known.Server.Number > 0 && ch.Group.Find(ch.Old) >= 0 {
			look(ch.Old, ch.Known.Server)
		}
		for j := range ch.Topology.Nodes {
			if n := &ch.Topology.Nodes[j]; j != c.node && n.Seen && ch.Group.Find(n.Name) >= 0 {
				look(n.Name, n.Server)
			}
		}
		switch {
		case len(c.out) == 0:
		case ch.To == c.Name && !other:
			c.Notes = append(c.Notes, outWords(c.out)+": there is no way back to an older version")
		default:
			refuse(&c.Refused, "version", "name it with --to "+c.Name+": what is older stays out then, and there is no way back to it; or upgrade that first", "%s could not replicate from it: %s", c.out[0].Name, c.out[0].Why)
		}
	}
}

func outWords(list []Out) string {
	var words []string
	for _, o := range list {
		words = append(words, fmt.Sprintf("%s cannot replicate from it and stays out, FAULTY (%s)", o.Name, o.Why))
	}
	return strings.Join(words, "; ")
}

// Outs are the names of members that stay out.
func Outs(list []Out) (names []string) {
	for _, o := range list {
		names = append(names, o.Name)
	}
	return names
}
