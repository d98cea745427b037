package picture

import (
	"strings"
	"unicode/utf8"

	"github.com/rissodb/risso/internal/oneline"
)

// Tree writes the picture as a tree of lines no wider than width; 0: as wide as they are. A server with several sources stands below the first of them.
func (p *Picture) Tree(width int) string {
	type line struct{ left, right string }
	var lines []line
	down := make([][]int, len(p.Nodes))
	below := make([]bool, len(p.Nodes))
	for _, l := range p.Links {
		if !l.Back {
			down[l.Source] = append(down[l.Source], l.Replica)
			below[l.Replica] = true
		}
	}
	var add func(i int, first, rest string)
	add = func(i int, first, rest string) {
		words := strings.Join(p.Nodes[i].Words, ", ")
		for _, l := range p.Links {
			if l.Back && l.Replica == i {
				words += ", also from " + p.Nodes[l.Source].Name
			}
		}
		lines = append(lines, line{first + oneline.Of(p.Nodes[i].Name), words})
		for k, r := range down[i] {
			if k == len(down[i])-1 {
				add(r, rest+"└─ ", rest+"   ")
			} else {
				add(r, rest+"├─ ", rest+"│  ")
			}
		}
	}
	for i := range p.Nodes {
		if !below[i] {
			add(i, "", "")
		}
	}
	most := 0
	for _, l := range lines {
		most = max(most, utf8.RuneCountInString(l.left))
	}
	var b strings.Builder
	for _, l := range lines {
		text := l.left + strings.Repeat(" ", most-utf8.RuneCountInString(l.left)+2) + oneline.Of(l.right)
		if width > 0 {
			text = oneline.Cut(text, width)
		}
		b.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	return b.String()
}
