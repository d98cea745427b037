// Package gaps marks in what PromQL reads where a series ended or paused, so that the engine does not repeat its last value.
package gaps

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// PromQL repeats a value for five minutes when no newer one comes, unless a stale marker says that the series
// ended; Prometheus writes one when a scrape fails. Here the marker follows from the gap itself: the store
// keeps none, so that what it returns is exactly what was read.

// endTolerance is how old the newest value may be, in milliseconds, before it counts as ended: its successor may be under way.
const endTolerance = 3000

// Mark marks gaps in what another Queryable returns.
func Mark(q storage.Queryable) storage.Queryable { return gapQueryable{q, time.Now} }

// MarkAt is Mark as of a moment: a question about that moment, whenever it is asked.
func MarkAt(q storage.Queryable, now time.Time) storage.Queryable {
	return gapQueryable{q, func() time.Time { return now }}
}

type gapQueryable struct {
	storage.Queryable
	now func() time.Time
}

// Querier implements storage.Queryable.
func (q gapQueryable) Querier(mint, maxt int64) (storage.Querier, error) {
	base, err := q.Queryable.Querier(mint, maxt)
	if err != nil {
		return nil, err
	}
	return gapQuerier{base, maxt, q.now}, nil
}

type gapQuerier struct {
	storage.Querier
	maxt int64
	now  func() time.Time
}

// Select implements storage.Querier.
func (q gapQuerier) Select(ctx context.Context, sortSeries bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	set := q.Querier.Select(ctx, sortSeries, hints, matchers...)
	if hints != nil && hints.Range > 0 {
		return set // functions over a range leave markers out
	}
	return gapSet{set, q.maxt, q.now}
}

type gapSet struct {
	storage.SeriesSet
	maxt int64
	now  func() time.Time
}

// At implements storage.SeriesSet.
func (s gapSet) At() storage.Series { return gapSeries{s.SeriesSet.At(), s.maxt, s.now} }

type gapSeries struct {
	storage.Series
	maxt int64
	now  func() time.Time
}

// Iterator implements storage.Series.
func (s gapSeries) Iterator(reuse chunkenc.Iterator) chunkenc.Iterator {
	it, ok := reuse.(*gapIterator)
	if !ok {
		it = new(gapIterator)
	}
	every := cadence(s.Labels())
	end := every
	if s.maxt > s.now().UnixMilli()-endTolerance { // the range ends now, not in the middle of a gap
		end = max(every+every/2, endTolerance)
	}
	*it = gapIterator{base: s.Series.Iterator(it.base), every: every, end: end, maxt: s.maxt, now: s.now, t: math.MinInt64}
	return it
}

// cadence is how often a metric is read, in milliseconds.
func cadence(l labels.Labels) int64 {
	name := l.Get(model.MetricNameLabel)
	switch {
	case strings.HasPrefix(name, "mysql_global_variables_"), name == "mysql_version_info", strings.HasPrefix(name, "mysql_binlog_"), strings.HasPrefix(name, "mysql_info_schema_innodb_cmp"):
		return 60_000
	case strings.HasPrefix(name, "mysql_info_schema_table_"):
		return 240_000
	case name == "risso_statement_latency_seconds", name == "risso_replicas_connected", strings.HasPrefix(name, "mysql_perf_schema_"), strings.HasPrefix(name, "mysql_info_schema_processlist_"):
		return 10_000
	case name == "risso_collect_seconds":
		switch l.Get("group") {
		case "variables", "compression", "binlogs":
			return 60_000
		case "latency_histogram", "replicas", "threads", "file_events", "event_waits":
			return 10_000
		case "tables":
			return 240_000
		}
	}
	return 1000
}

// gapIterator returns the samples of base, and a stale marker where the next one does not come in time.
type gapIterator struct {
	base       chunkenc.Iterator
	every, end int64 // how far apart samples are; how long the newest is good
	maxt       int64
	now        func() time.Time
	t          int64 // of the current sample; math.MinInt64 before the first
	v          float64
	marker     bool // the current sample is a marker
	waits      bool // base is at the sample after the marker
	done       bool
}

// Next implements chunkenc.Iterator.
func (it *gapIterator) Next() chunkenc.ValueType {
	if it.done {
		return chunkenc.ValNone
	}
	if it.marker {
		it.marker = false
		if !it.waits {
			it.done = true
			return chunkenc.ValNone
		}
		it.waits = false
		return it.take()
	}
	if it.base.Next() == chunkenc.ValNone {
		after := it.end
		if it.t != math.MinInt64 && it.now().UnixMilli()-it.t > it.end {
			after = it.every // the successor would be here: the range ends within a gap
		}
		if it.t == math.MinInt64 || it.t+after > it.maxt || it.base.Err() != nil {
			it.done = true
			return chunkenc.ValNone
		}
		return it.mark(after)
	}
	// A minute's reading may come a little late: half a cadence is let pass.
	if it.t != math.MinInt64 && it.base.AtT()-it.t > it.every+it.every/2 {
		it.waits = true
		return it.mark(it.every)
	}
	return it.take()
}

func (it *gapIterator) take() chunkenc.ValueType {
	it.t, it.v = it.base.At()
	return chunkenc.ValFloat
}

func (it *gapIterator) mark(after int64) chunkenc.ValueType {
	it.marker = true
	it.t, it.v = it.t+after, math.Float64frombits(value.StaleNaN)
	return chunkenc.ValFloat
}

// millis is int64 under another name: go vet takes a Seek(int64) for a wrong io.Seeker.
type millis = int64

// Seek implements chunkenc.Iterator. A marker whose sample lies before t is not given: that sample is not either.
func (it *gapIterator) Seek(t millis) chunkenc.ValueType {
	if it.done {
		return chunkenc.ValNone
	}
	if it.t >= t {
		return chunkenc.ValFloat
	}
	it.marker, it.waits = false, false
	if it.base.Seek(t) == chunkenc.ValNone {
		it.done = true
		return chunkenc.ValNone
	}
	return it.take()
}

// AtHistogram implements chunkenc.Iterator; there are no histograms here.
func (it *gapIterator) AtHistogram(*histogram.Histogram) (int64, *histogram.Histogram) {
	return it.t, nil
}

// AtFloatHistogram implements chunkenc.Iterator; there are no histograms here.
func (it *gapIterator) AtFloatHistogram(*histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	return it.t, nil
}

// AtST implements chunkenc.Iterator; start times are not kept.
func (it *gapIterator) AtST() int64 { return 0 }

// At implements chunkenc.Iterator.
func (it *gapIterator) At() (int64, float64) { return it.t, it.v }

// AtT implements chunkenc.Iterator.
func (it *gapIterator) AtT() int64 { return it.t }

// Err implements chunkenc.Iterator.
func (it *gapIterator) Err() error { return it.base.Err() }
