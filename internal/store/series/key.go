package series

import (
	"errors"
	"fmt"
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

// ErrKey says that a text is no key as Desc.Key writes it.
var ErrKey = errors.New("not a series key; it looks like name or name{label=\"value\"}")

// ParseKey reads what Key writes. The type is not part of a key and stays Gauge.
func ParseKey(key string) (Desc, error) {
	name, rest, labelled := strings.Cut(key, "{")
	d := Desc{Name: name}
	if name == "" || strings.ContainsAny(name, "}\",=\n ") {
		return Desc{}, fmt.Errorf("%q: %w", key, ErrKey)
	}
	if !labelled {
		return d, nil
	}
	for rest != "}" {
		name, after, ok := strings.Cut(rest, `="`)
		if !ok || name == "" || strings.ContainsAny(name, "}\",= \n") {
			return Desc{}, fmt.Errorf("%q: %w", key, ErrKey)
		}
		value, after, ok := unescape(after)
		if !ok {
			return Desc{}, fmt.Errorf("%q: %w", key, ErrKey)
		}
		d.Labels = append(d.Labels, Label{name, value})
		if rest = strings.TrimPrefix(after, ","); rest == after && rest != "}" {
			return Desc{}, fmt.Errorf("%q: %w", key, ErrKey)
		}
	}
	slices.SortFunc(d.Labels, compareLabels)
	return d, nil
}

// unescape reads up to the closing quote and returns what follows it.
func unescape(s string) (value, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"':
			return b.String(), s[i+1:], true
		case '\\':
			if i++; i == len(s) {
				return "", "", false
			}
			switch s[i] {
			case 'n':
				b.WriteByte('\n')
			case '\\', '"':
				b.WriteByte(s[i])
			default:
				return "", "", false
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}
