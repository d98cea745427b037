package carry

import (
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/topology"
)

// TestTogether: a controller that dies with the primary is told only where another member would be left.
func TestTogether(t *testing.T) {
	for _, c := range []struct {
		what  string
		nodes string // by name; in capitals: on this machine; after a minus: not seen; after an x: FAULTY
		want  string // who could not follow; "": nothing is wrong
	}{
		{"all elsewhere", "a b c", ""},
		{"a trial: all are on this machine", "A B C", ""},
		{"the primary is here, the others are not", "A b c", "b or c"},
		{"one more is here", "A B c", "c"},
		{"only a replica is here", "a B c", ""},
		{"the primary does not answer", "-A b c", ""},
		{"where the others are is not known", "A -b -c", ""},
		{"the one that is elsewhere is FAULTY", "A B xc", ""},
	} {
		g, top := &group.Group{Name: "shop"}, &topology.Topology{}
		for i, word := range strings.Fields(c.nodes) {
			m := group.Member{Name: strings.ToLower(strings.TrimLeft(word, "-x")), Status: group.Secondary}
			switch {
			case i == 0:
				m.Status = group.Primary
			case word[0] == 'x':
				m.Status = group.Faulty
			}
			g.Members = append(g.Members, m)
			n := topology.Node{Name: m.Name, Seen: word[0] != '-'}
			n.Inside = strings.TrimLeft(word, "-x") != m.Name
			top.Nodes = append(top.Nodes, n)
		}
		got := together(g, top)
		if (got == nil) != (c.want == "") {
			t.Errorf("%s: got %+v", c.what, got)
		} else if got != nil && (!strings.Contains(got.Why, "lets "+c.want+" follow") || got.Remedy == "" || !strings.Contains(got.What, "the machine of a")) {
			t.Errorf("%s: got %+v, want that %s cannot follow", c.what, got, c.want)
		}
	}
}
