package series

import (
	"slices"
	"strings"
)

// Key is the canonical text of a series within its instance: name{a="b",c="d"},
// labels sorted by name, values escaped as Prometheus does; the name alone where there are no labels.
func (d Desc) Key() string {
	if len(d.Labels) == 0 {
		return d.Name
	}
	ls := d.Labels
	if !slices.IsSortedFunc(ls, compareLabels) {
		ls = slices.Clone(ls)
		slices.SortFunc(ls, compareLabels)
	}
	var b strings.Builder
	b.WriteString(d.Name)
	for i, l := range ls {
		if i == 0 {
			b.WriteByte('{')
		} else {
			b.WriteByte(',')
		}
		b.WriteString(l.Name)
		b.WriteString(`="`)
		escape(&b, l.Value)
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return b.String()
}

func compareLabels(a, b Label) int { return strings.Compare(a.Name, b.Name) }

func escape(b *strings.Builder, s string) {
	if !strings.ContainsAny(s, "\\\"\n") {
		b.WriteString(s)
		return
	}
	for i := range len(s) {
		switch c := s[i]; c {
		case '\\', '"':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\n':
			b.WriteString(`\n`)
		default:
			b.WriteByte(c)
		}
	}
}
