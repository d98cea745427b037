package fleet

import (
	"math"
)

// Label is one label of a metric.
type Label struct{ Name, Value string }

// Metric describes one number that Risso reads, apart from whose it is.
type Metric struct {
	Name    string  // Prometheus metric name
	Labels  []Label // sorted by name
	Counter bool    // only grows, except for a reset; its rate matters
	Unit    string  // "bytes", "seconds", "" for a plain count
	Help    string  // what it means, in a line
	Source  string  // where it was read: "SHOW GLOBAL STATUS", "/proc/stat"
}

// Sample is the numbers of one instance at one tick: a list of metrics that only grows, and a
// value for each, NaN if this tick has none. It belongs to one goroutine.
type Sample struct {
	Metrics []Metric
	Values  []float64
	index   map[string]int
}

// Position is the position of a metric; a metric never seen before is added at the end.
func (s *Sample) Position(m Metric) int {
	key := m.Key()
	if i, ok := s.index[key]; ok {
		return i
	}
	if s.index == nil {
		s.index = make(map[string]int)
	}
	i := len(s.Metrics)
	s.index[key] = i
	s.Metrics = append(s.Metrics, m)
	s.Values = append(s.Values, math.NaN())
	return i
}

// Clear sets every value to NaN, for the next tick.
func (s *Sample) Clear() {
	for i := range s.Values {
		s.Values[i] = math.NaN()
	}
}

// Find is the position of the metric with a key, or -1.
func (s *Sample) Find(key string) int {
	if i, ok := s.index[key]; ok {
		return i
	}
	return -1
}

// Value is the current value of a key, and whether there is one.
func (s *Sample) Value(key string) (float64, bool) {
	i, ok := s.index[key]
	if !ok || math.IsNaN(s.Values[i]) {
		return 0, false
	}
	return s.Values[i], true
}
