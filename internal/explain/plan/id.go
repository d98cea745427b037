package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// ID names a plan by its shape: 16 hexadecimal digits, the beginning of the SHA-256 of Shape. Two plans of one
// statement have the same ID when they read the same tables in the same order by the same indexes with the same
// operations, regardless of literals, costs and rows. Compare IDs of plans of one Format only: formats show
// different operations of one plan.
func ID(p *Plan) string {
	sum := sha256.Sum256([]byte(Shape(p)))
	return hex.EncodeToString(sum[:8])
}

// Shape is what a plan's ID is made of, a line a node, each indented by its depth: kind, table, access type, key and
// the columns of it that are used, and the flags that make a plan another one. It is fit for showing what changed.
func Shape(p *Plan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", p.Format)
	if p.Root == nil {
		return b.String()
	}
	p.Root.Walk(func(n, _ *Node, depth int) {
		b.WriteString(strings.Repeat(" ", depth))
		b.WriteString(string(n.Kind))
		if n.Kind == KindOther {
			// Unknown operations may carry literals and figures: only their first word counts.
			word, _, _ := strings.Cut(n.Title, " ")
			b.WriteString(" " + word)
		}
		for _, s := range []string{n.Name(), n.Access, n.Key, strings.Join(n.KeyParts, ","), n.JoinBuffer, n.JoinType, n.Message} {
			if s != "" {
				b.WriteString(" " + s)
			}
		}
		for _, f := range []struct {
			on   bool
			word string
		}{{n.Covering, "covering"}, {n.Temporary, "temporary"}, {n.Filesort, "filesort"}, {n.Dependent, "dependent"}, {n.Uncacheable, "uncacheable"}, {n.Recursive, "recursive"}} {
			if f.on {
				b.WriteString(" +" + f.word)
			}
		}
		b.WriteByte('\n')
	})
	return b.String()
}
