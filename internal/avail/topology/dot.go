package topology

import (
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/oneline"
)

// DOT writes the topology in Graphviz's language: an arrow goes from a source to its replica, dashed where replication does not run; members of a cluster are in a box.
// Source: Graphviz documentation, "DOT Language".
func (t *Topology) DOT() string {
	var b strings.Builder
	b.WriteString("digraph topology {\n  rankdir=TB; node [shape=box, style=rounded, fontname=\"sans-serif\"]; edge [fontname=\"sans-serif\", fontsize=10];\n")
	boxes := map[string]bool{}
	for i := range t.Nodes {
		g := t.Nodes[i].Group
		if g == nil || g.Name == "" {
			b.WriteString("  " + t.dotNode(i))
			continue
		}
		if boxes[g.Name] {
			continue
		}
		boxes[g.Name] = true
		fmt.Fprintf(&b, "  subgraph %s {\n    label=%s;\n", quoted("cluster_"+g.Name), quoted(t.groupWords(g)))
		for _, m := range t.members(g.Name) {
			b.WriteString("    " + t.dotNode(m))
		}
		b.WriteString("  }\n")
	}
	for i := range t.Links {
		l := &t.Links[i]
		style := "solid"
		if l.Channel == nil || !l.Channel.Receiving() || !l.Channel.Applying() {
			style = "dashed"
		}
		fmt.Fprintf(&b, "  n%d -> n%d [label=%s, style=%s];\n", l.Source, l.Replica, quoted(t.LinkWords(l)), style)
	}
	b.WriteString("}\n")
	return b.String()
}

func (t *Topology) dotNode(i int) string {
	style := ""
	if !t.Nodes[i].Seen {
		style = `, style="rounded,dashed"`
	}
	return fmt.Sprintf("n%d [label=%s%s];\n", i, quoted(t.Nodes[i].Name+"\n"+t.Words(i, nil)), style)
}

// quoted is a string of DOT, which knows no other escapes within quotes than these. What would move a terminal's cursor is taken out.
func quoted(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = oneline.Of(l)
	}
	s = strings.Join(lines, "\n")
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
