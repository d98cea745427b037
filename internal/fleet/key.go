package fleet

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Key is the metric's identity as text: name{a="b",c="d"}, or the name alone without labels.
func (m Metric) Key() string { return Key(m.Name, m.Labels) }

// labelEscaper escapes what the Prometheus text format escapes in a label's value.
var labelEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// Key is the identity of a metric, or of a series within its instance, as text: name{a="b",c="d"}, labels sorted by name, values escaped as
// Prometheus does; the name alone if there are no labels.
func Key(name string, labels []Label) string {
	if len(labels) == 0 {
		return name
	}
	if !slices.IsSortedFunc(labels, CompareLabels) {
		labels = slices.SortedFunc(slices.Values(labels), CompareLabels)
	}
	var b strings.Builder
	b.WriteString(name)
	for i, l := range labels {
		b.WriteByte("{,"[min(i, 1)])
		b.WriteString(l.Name)
		b.WriteString(`="`)
		labelEscaper.WriteString(&b, l.Value)
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return b.String()
}

// CompareLabels orders labels by name.
func CompareLabels(a, b Label) int { return strings.Compare(a.Name, b.Name) }

// ErrKey says that a text is no key as Key writes it.
var ErrKey = errors.New("not a series key; it looks like name or name{label=\"value\"}")

// ParseKey reads what Key writes.
func ParseKey(key string) (name string, labels []Label, err error) {
	name, rest, labelled := strings.Cut(key, "{")
	if name == "" || strings.ContainsAny(name, "}\",=\n ") {
		return "", nil, fmt.Errorf("%q: %w", key, ErrKey)
	}
	if !labelled {
		return name, labels, nil
	}
	for rest != "}" {
		label, after, ok := strings.Cut(rest, `="`)
		if !ok || label == "" || strings.ContainsAny(label, "}\",= \n") {
			return "", nil, fmt.Errorf("%q: %w", key, ErrKey)
		}
		value, after, ok := unescape(after)
		if !ok {
			return "", nil, fmt.Errorf("%q: %w", key, ErrKey)
		}
		labels = append(labels, Label{label, value})
		if rest = strings.TrimPrefix(after, ","); rest == after && rest != "}" {
			return "", nil, fmt.Errorf("%q: %w", key, ErrKey)
		}
	}
	slices.SortFunc(labels, CompareLabels)
	return name, labels, nil
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
