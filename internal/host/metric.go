package host

import (
	"math"
	"strings"
)

// Kind says how a metric is read.
type Kind uint8

// The kinds of metric.
const (
	Gauge   Kind = iota // a value of its own: bytes free
	Counter             // only grows, but for a reset; its rate is what counts
)

// Label is one name and value of a metric; a metric's labels are sorted by name.
type Label struct{ Name, Value string }

// Metric describes one number. It never changes once it is handed out.
type Metric struct {
	Name   string // Prometheus name; node_exporter's where the same thing is meant
	Labels []Label
	Kind   Kind
	Unit   string // "seconds", "bytes", "1" for a plain count
	Help   string // one sentence
	Source string // where it is read: "/proc/stat"
}

// Key is the canonical text of a metric: name{a="b",c="d"}, or the name alone.
func (m *Metric) Key() string {
	if len(m.Labels) == 0 {
		return m.Name
	}
	var b strings.Builder
	b.WriteString(m.Name)
	for i, l := range m.Labels {
		if i == 0 {
			b.WriteByte('{')
		} else {
			b.WriteByte(',')
		}
		b.WriteString(l.Name)
		b.WriteString(`="`)
		labelEscaper.WriteString(&b, l.Value)
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return b.String()
}

// labelEscaper escapes what the Prometheus text format escapes in a label.
var labelEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// set holds metrics and their newest values at the same positions. Metrics are
// only ever added, so that a position means one metric for as long as the set lives.
type set struct {
	metrics []Metric
	values  []float64
}

// define adds a metric and tells its position.
func (s *set) define(m Metric) int {
	s.metrics = append(s.metrics, m)
	s.values = append(s.values, math.NaN())
	return len(s.metrics) - 1
}

// clear marks every value as absent.
func (s *set) clear() {
	for i := range s.values {
		s.values[i] = math.NaN()
	}
}

// template is a metric whose labels (but for the fixed one) come from the device.
type template struct {
	name, unit, help string
	kind             Kind
	label, value     string // one fixed label, such as mode="idle"; may be empty
}

// defineAll defines one metric per template for a device and tells the position
// of the first; the others follow it.
func (s *set) defineAll(ts []template, source string, labels ...Label) int {
	first := len(s.metrics)
	for _, t := range ts {
		ls := append([]Label(nil), labels...)
		if t.label != "" {
			ls = append(ls, Label{t.label, t.value})
		}
		s.define(Metric{Name: t.name, Labels: ls, Kind: t.kind, Unit: t.unit, Help: t.help, Source: source})
	}
	return first
}
