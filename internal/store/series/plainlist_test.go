//go:build !tsdb

package series

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// asked names the source of the answers that this store's are compared with.
const asked = "Prometheus' engine over plain lists"

// How much is compared: a third of the questions, and all with -tags tsdb.
const (
	hours  = int64(1)
	rounds = 1
)

// newReference makes lists of samples for Prometheus' engine: what a querier returns is all that is within its limits.
func newReference(*testing.T) reference { return &lists{by: map[string]*listed{}} }

type lists struct{ by map[string]*listed }

type listed struct {
	labels  labels.Labels
	samples []chunks.Sample
}

type sample struct {
	at int64
	v  float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.v }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

func (x *lists) add(l labels.Labels, at int64, v float64) {
	key := l.String()
	if x.by[key] == nil {
		x.by[key] = &listed{labels: l}
	}
	x.by[key].samples = append(x.by[key].samples, sample{at, v})
}

func (*lists) commit() {}

// Querier implements storage.Queryable.
func (x *lists) Querier(mint, maxt int64) (storage.Querier, error) {
	return listQuerier{x, mint, maxt}, nil
}

type listQuerier struct {
	*lists
	mint, maxt int64
}

// matching are the series that all matchers match, sorted.
func (q listQuerier) matching(matchers []*labels.Matcher) (out []*listed) {
	for _, l := range q.by {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(l.labels.Get(m.Name)) }) {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b *listed) int { return labels.Compare(a.labels, b.labels) })
	return out
}

func (q listQuerier) Select(_ context.Context, _ bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	mint, maxt := q.mint, q.maxt
	if hints != nil {
		mint, maxt = max(mint, hints.Start), min(maxt, hints.End)
	}
	var found []storage.Series
	for _, l := range q.matching(matchers) {
		from, _ := slices.BinarySearchFunc(l.samples, mint, atOf)
		to, _ := slices.BinarySearchFunc(l.samples, maxt+1, atOf)
		if from < to {
			found = append(found, storage.NewListSeries(l.labels, l.samples[from:to]))
		}
	}
	return &listSet{series: found}
}

func atOf(s chunks.Sample, at int64) int { return cmp.Compare(s.T(), at) }

type listSet struct {
	series []storage.Series
	now    storage.Series
}

func (s *listSet) Next() bool {
	if len(s.series) == 0 {
		return false
	}
	s.now, s.series = s.series[0], s.series[1:]
	return true
}

func (s *listSet) At() storage.Series              { return s.now }
func (*listSet) Err() error                        { return nil }
func (*listSet) Warnings() annotations.Annotations { return nil }

func (q listQuerier) LabelValues(_ context.Context, name string, _ *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	values := map[string]bool{}
	for _, l := range q.matching(matchers) {
		if v := l.labels.Get(name); v != "" {
			values[v] = true
		}
	}
	return slices.Sorted(maps.Keys(values)), nil, nil
}

func (q listQuerier) LabelNames(_ context.Context, _ *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	names := map[string]bool{}
	for _, l := range q.matching(matchers) {
		l.labels.Range(func(l labels.Label) { names[l.Name] = true })
	}
	return slices.Sorted(maps.Keys(names)), nil, nil
}

func (listQuerier) Close() error { return nil }
