package series

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"

	prom "github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"
)

// InstanceLabel is the label that distinguishes instances in PromQL. A series that has such a label itself shows it as exported_instance.
const (
	InstanceLabel    = "instance"
	exportedInstance = "exported_instance"
)

// Recorded is the instance of what rules record. Its series are about other instances, or about several: in PromQL they have the labels that
// they were recorded with, also where one of these is instance. No server can be called so.
const Recorded = "rules-"

// recorded says whether the instance has what rules record.
func (in *instance) recorded() bool { return in.id == Recorded }

// Queryable lets Prometheus' engine read the store. Samples have the time of their second, in milliseconds.
func (s *Store) Queryable() storage.Queryable { return queryable{s, false} }

type queryable struct {
	s    *Store
	thin bool // samples that a rate does not need may be left out
}

// Querier implements storage.Queryable.
func (q queryable) Querier(mint, maxt int64) (storage.Querier, error) {
	return &querier{s: q.s, thin: q.thin, mint: mint, maxt: maxt}, nil
}

// querier reads the samples within [mint, maxt], in milliseconds.
type querier struct {
	s          *Store
	thin       bool
	mint, maxt int64

	mu   sync.Mutex
	open []interface{ close() }
}

// seconds returns the range of whole seconds within a range of milliseconds; to is exclusive.
func seconds(mint, maxt int64) (from, to int64) {
	mint, maxt = max(mint, 0), min(maxt, maxTime*1000)
	if maxt < mint {
		return 0, 0
	}
	return (mint + 999) / 1000, maxt/1000 + 1
}

// Select implements storage.Querier.
func (q *querier) Select(ctx context.Context, sortSeries bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	mint, maxt := q.mint, q.maxt
	withData := false
	if hints != nil {
		mint, maxt = max(mint, hints.Start), min(maxt, hints.End)
		withData = hints.Func == "series"
	}
	from, to := seconds(mint, maxt)
	var win *windows
	if q.thin {
		win = windowsOf(hints)
	}
	set := &seriesSet{}
	for _, in := range q.matching(matchers) {
		if ctx.Err() != nil {
			return storage.ErrSeriesSet(ctx.Err())
		}
		if from >= to {
			break
		}
		var list []*seriesID
		if withData {
			list = in.filter(in.seriesWithin(from, to, true), matchers)
		} else {
			list = in.selected(from, to, matchers)
		}
		if len(list) == 0 {
			continue
		}
		span := &span{q: q, in: in, from: from, to: to, win: win, hours: in.hoursWithin(from, to)}
		for _, d := range list {
			set.list = append(set.list, &selectedSeries{span: span, key: d.key, lbls: in.labels(d)})
		}
	}
	if sortSeries {
		slices.SortFunc(set.list, func(a, b *selectedSeries) int { return labels.Compare(a.lbls, b.lbls) })
	}
	if hints != nil && hints.Limit > 0 && len(set.list) > hints.Limit {
		set.list = set.list[:hints.Limit]
	}
	return set
}

// matching lists the instances that the matchers of the instance label allow.
func (q *querier) matching(matchers []*labels.Matcher) (list []*instance) {
	for _, in := range q.s.all() {
		if in.allowed(matchers) {
			list = append(list, in)
		}
	}
	return list
}

// allowed says whether the matchers of the instance label allow an instance.
func (in *instance) allowed(matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if m.Name == InstanceLabel && !in.recorded() && !m.Matches(in.id) {
			return false
		}
	}
	return true
}

// selected lists the series of the instance that files and minutes of a range know and matchers allow.
func (in *instance) selected(from, to int64, matchers []*labels.Matcher) []*seriesID {
	var schemas []*schema
	note := func(s *schema) {
		if s != nil && !slices.Contains(schemas, s) {
			schemas = append(schemas, s)
		}
	}
	in.mu.RLock()
	mem := in.descsWithin(from, to)
	in.mu.RUnlock()
	in.files.RLock()
	for _, r := range in.blocks {
		if r.end > from && r.start < to {
			note(in.schemaOfBlock(r))
		}
	}
	for _, f := range in.hours {
		for _, r := range f.refs {
			if r.start+minuteSeconds > from && r.start < to {
				note(r.schema)
			}
		}
	}
	in.files.RUnlock()
	var lists [][]*seriesID
	for _, s := range schemas {
		if l := in.match(s, matchers); len(l) > 0 {
			lists = append(lists, l)
		}
	}
	for _, descs := range mem {
		if l := in.filter(descs, matchers); len(l) > 0 {
			lists = append(lists, l)
		}
	}
	return unite(lists)
}

// unite joins lists of series, each key once.
func unite(lists [][]*seriesID) []*seriesID {
	if len(lists) < 2 {
		return slices.Concat(lists...)
	}
	seen := map[string]bool{}
	var out []*seriesID
	for _, l := range lists {
		for _, d := range l {
			if !seen[d.key] {
				seen[d.key] = true
				out = append(out, d)
			}
		}
	}
	return out
}

// descsWithin lists the descriptions of minutes in memory. The caller holds mu.
func (in *instance) descsWithin(from, to int64) (list [][]*seriesID) {
	for _, m := range in.pending {
		if m.start+minuteSeconds > from && m.start < to {
			list = append(list, m.descs)
		}
	}
	if m := in.cur; m != nil && m.start+minuteSeconds > from && m.start < to {
		list = append(list, in.descs)
	}
	return list
}

// schemaOfBlock returns the schema of a block, opening it if it never was. The caller holds files.
func (in *instance) schemaOfBlock(r *blockRef) *schema {
	if s := r.schema.Load(); s != nil {
		return s
	}
	b, err := in.s.blocks.get(r, in.s)
	if err != nil {
		in.unreadable(r, err)
		return nil
	}
	defer in.s.blocks.release(b)
	return b.sch
}

// match lists the series of a schema that matchers allow.
func (in *instance) match(s *schema, matchers []*labels.Matcher) []*seriesID {
	for _, m := range matchers {
		if m.Name != prom.MetricNameLabel || m.Type != labels.MatchEqual || m.Value == "" {
			continue
		}
		// The name alone, and all keys that begin with name{.
		var out []*seriesID
		if i := s.find(m.Value); i >= 0 {
			out = append(out, s.series[i])
		}
		prefix := m.Value + "{"
		i, _ := slices.BinarySearchFunc(s.series, prefix, func(d *seriesID, p string) int { return strings.Compare(d.key, p) })
		for ; i < len(s.series) && strings.HasPrefix(s.series[i].key, prefix); i++ {
			out = append(out, s.series[i])
		}
		return in.filter(out, matchers)
	}
	return in.filter(s.series, matchers)
}

// filter lists the series that matchers allow, except the instance label, which the instance has to match where it is not recorded().
func (in *instance) filter(list []*seriesID, matchers []*labels.Matcher) (out []*seriesID) {
	own := in.recorded()
	for _, d := range list {
		ok := true
		for _, m := range matchers {
			if own && !m.Matches(d.plain(m.Name)) || !own && m.Name != InstanceLabel && !m.Matches(d.label(m.Name)) {
				ok = false
				break
			}
		}
		if ok {
			out = append(out, d)
		}
	}
	return out
}

// label returns the value of a label as PromQL sees it, "" for none.
func (d *seriesID) label(name string) string {
	if name == prom.MetricNameLabel {
		return d.Name
	}
	if name == exportedInstance {
		name = InstanceLabel
	}
	return d.plain(name)
}

// plain returns the value of a label as it was defined, "" for none.
func (d *seriesID) plain(name string) string {
	if name == prom.MetricNameLabel {
		return d.Name
	}
	for _, l := range d.Labels {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

// labels are those of a series as PromQL sees them.
func (in *instance) labels(d *seriesID) labels.Labels {
	if !in.recorded() {
		return d.labels(in.id)
	}
	var b labels.ScratchBuilder
	b.Add(prom.MetricNameLabel, d.Name)
	for _, l := range d.Labels {
		if l.Value != "" {
			b.Add(l.Name, l.Value)
		}
	}
	b.Sort()
	return b.Labels()
}

func (d *seriesID) labels(instance string) labels.Labels {
	var b labels.ScratchBuilder
	b.Add(prom.MetricNameLabel, d.Name)
	b.Add(InstanceLabel, instance)
	for _, l := range d.Labels {
		if l.Name == InstanceLabel {
			l.Name = exportedInstance
		}
		if l.Value != "" {
			b.Add(l.Name, l.Value)
		}
	}
	b.Sort()
	return b.Labels()
}

// LabelValues implements storage.LabelQuerier.
func (q *querier) LabelValues(ctx context.Context, name string, hints *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	found := map[string]bool{}
	err := q.each(ctx, matchers, func(in *instance, d *seriesID) {
		v := d.label(name)
		switch {
		case in.recorded():
			v = d.plain(name)
		case name == InstanceLabel:
			v = in.id
		}
		if v != "" {
			found[v] = true
		}
	})
	return sorted(found, hints), nil, err
}

// LabelNames implements storage.LabelQuerier.
func (q *querier) LabelNames(ctx context.Context, hints *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	found := map[string]bool{}
	err := q.each(ctx, matchers, func(in *instance, d *seriesID) {
		found[prom.MetricNameLabel] = true
		if !in.recorded() {
			found[InstanceLabel] = true
		}
		for _, l := range d.Labels {
			if l.Name == InstanceLabel && !in.recorded() {
				l.Name = exportedInstance
			}
			found[l.Name] = true
		}
	})
	return sorted(found, hints), nil, err
}

func (q *querier) each(ctx context.Context, matchers []*labels.Matcher, f func(*instance, *seriesID)) error {
	from, to := seconds(q.mint, q.maxt)
	for _, in := range q.matching(matchers) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if from >= to {
			return nil
		}
		for _, d := range in.selected(from, to, matchers) {
			f(in, d)
		}
	}
	return nil
}

func sorted(found map[string]bool, hints *storage.LabelHints) []string {
	list := make([]string, 0, len(found))
	for v := range found {
		list = append(list, v)
	}
	slices.Sort(list)
	if hints != nil && hints.Limit > 0 && len(list) > hints.Limit {
		list = list[:hints.Limit]
	}
	return list
}

// Close ends all iterators of the querier.
func (q *querier) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, it := range q.open {
		it.close()
	}
	q.open = nil
	return nil
}

// owns notes an iterator that ends with the querier.
func (q *querier) owns(it interface{ close() }) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open = append(q.open, it)
}

// span is what the selected series of one instance have in common.
type span struct {
	q        *querier
	in       *instance
	from, to int64
	hours    []int64
	win      *windows // nil: every sample is wanted
}

type selectedSeries struct {
	*span
	key  string
	lbls labels.Labels
}

// Labels implements storage.Series.
func (s *selectedSeries) Labels() labels.Labels { return s.lbls }

// Iterator implements storage.Series.
func (s *selectedSeries) Iterator(old chunkenc.Iterator) chunkenc.Iterator {
	if s.win != nil {
		it, ok := old.(*thinIterator)
		if !ok || it.s.q != s.q {
			it = &thinIterator{}
			s.q.owns(it)
		}
		it.reset(s)
		return it
	}
	it, ok := old.(*iterator)
	if !ok || it.s.q != s.q {
		it = &iterator{}
		s.q.owns(it)
	}
	it.c.close()
	it.c.open(s.in, s.key, s.from)
	it.s, it.next, it.hour, it.at, it.end = s, 0, math.MinInt64, hourSeconds, 0
	return it
}

type seriesSet struct {
	list []*selectedSeries
	at   int
}

// Next, At, Err and Warnings implement storage.SeriesSet.
func (s *seriesSet) Next() bool                        { s.at++; return s.at <= len(s.list) }
func (s *seriesSet) At() storage.Series                { return s.list[s.at-1] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// iterator walks over the samples of a series, an hour in memory at a time.
type iterator struct {
	s    *selectedSeries
	c    cursor
	next int   // index in s.hours of the hour to be read next
	hour int64 // that is in the cursor
	at   int   // second of it; hourSeconds when there is none
	end  int   // first second after the range
}

func (it *iterator) close() { it.c.close() }

// Next implements chunkenc.Iterator.
func (it *iterator) Next() chunkenc.ValueType {
	it.at++
	if it.at < it.end {
		if v := it.c.vals[1+it.at]; v == v {
			return chunkenc.ValFloat
		}
	}
	return it.settle()
}

// settle goes to the next second that has a value, including the current one.
func (it *iterator) settle() chunkenc.ValueType {
	for {
		if it.at < it.end {
			for i, v := range it.c.vals[1+it.at : 1+it.end] {
				if v == v {
					it.at += i
					return chunkenc.ValFloat
				}
			}
		}
		if !it.load() {
			it.at = hourSeconds
			it.end = 0
			return chunkenc.ValNone
		}
	}
}

// load reads the next hour.
func (it *iterator) load() bool {
	for it.next < len(it.s.hours) {
		hour := it.s.hours[it.next]
		it.next++
		if it.c.hour(hour) {
			it.hour = hour
			it.at = int(max(it.s.from-hour, 0))
			it.end = int(min(it.s.to-hour, hourSeconds))
			return true
		}
	}
	return false
}

// millis is int64 under another name: go vet takes a Seek(int64) for a wrong io.Seeker.
type millis = int64

// Seek implements chunkenc.Iterator.
func (it *iterator) Seek(t millis) chunkenc.ValueType {
	sec := (max(t, 0) + 999) / 1000
	if it.at < it.end {
		if it.hour+int64(it.at) >= sec {
			return it.settle()
		}
		if sec < it.hour+hourSeconds {
			it.at = int(sec - it.hour)
			return it.settle()
		}
	}
	i, _ := slices.BinarySearch(it.s.hours[it.next:], floorTo(sec, hourSeconds))
	it.next += i
	if !it.load() {
		it.at, it.end = hourSeconds, 0
		return chunkenc.ValNone
	}
	it.at = max(it.at, int(max(sec-it.hour, 0)))
	return it.settle()
}

// At implements chunkenc.Iterator.
func (it *iterator) At() (int64, float64) { return it.AtT(), it.c.vals[1+it.at] }

// AtT implements chunkenc.Iterator.
func (it *iterator) AtT() int64 { return (it.hour + int64(it.at)) * 1000 }

// AtST implements chunkenc.Iterator; there are no start times.
func (it *iterator) AtST() int64 { return 0 }

// AtHistogram implements chunkenc.Iterator; there are no histograms.
func (it *iterator) AtHistogram(*histogram.Histogram) (int64, *histogram.Histogram) {
	return it.AtT(), nil
}

// AtFloatHistogram implements chunkenc.Iterator; there are no histograms.
func (it *iterator) AtFloatHistogram(*histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	return it.AtT(), nil
}

// Err implements chunkenc.Iterator.
func (it *iterator) Err() error { return nil }
