package host

import (
	"math"

	"github.com/rissodb/risso/internal/fleet"
)

// Kind says how a metric is read.
type Kind uint8

// The kinds of metric.
const (
	Gauge   Kind = iota // a value in itself: bytes free
	Counter             // only grows, except for a reset; its rate is what counts
)

// Label and Metric are the fleet's words, here for short.
type (
	Label  = fleet.Label
	Metric = fleet.Metric
)

// set holds metrics and their newest values at the same positions. Metrics are
// only ever added, so that a position means one metric for as long as the set lives.
type set struct {
	metrics []Metric
	values  []float64
}

// define adds a metric and tells its position.
func (s *set) define(m Metric) int {
	if m.Unit == "1" {
		m.Unit = "" // a plain count needs no unit
	}
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

// template is a metric whose labels (except the fixed one) come from the device.
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
			ls = append(ls, Label{Name: t.label, Value: t.value})
		}
		s.define(Metric{Name: t.name, Labels: ls, Counter: t.kind == Counter, Unit: t.unit, Help: t.help, Source: source})
	}
	return first
}
