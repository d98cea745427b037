// Package mapped gives the series of a store the labels that dashboards and rules select by, such as job, service_name and cluster,
// when they are read; the store keeps none of them. It also answers for up, which follows from other series.
package mapped

import (
	"context"
	"fmt"
	"slices"
	"strings"

	prom "github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/rissodb/risso/internal/fleet"
)

// Label is one label of an instance.
type Label = fleet.Label

// Source is the store whose series get labels. Its series have the id of their instance as the label instance.
type Source interface {
	Queryable() storage.Queryable
	QueryableFor(parser.Expr) storage.Queryable
	Instances() []string
}

// Store is a Source as PromQL sees it.
type Store struct {
	source Source
	labels func() map[string][]Label
}

// New makes a Store. labels returns the labels of each instance by its id; it is called for each query, and what it returned is not changed
// afterwards. An instance that it does not know has its id as the label instance, and no other.
func New(source Source, labels func() map[string][]Label) *Store { return &Store{source, labels} }

// Queryable reads all series.
func (s *Store) Queryable() storage.Queryable { return queryable{s, s.source.Queryable()} }

// QueryableFor is Queryable for one expression. It may leave out samples that cannot change what the expression returns.
func (s *Store) QueryableFor(e parser.Expr) storage.Queryable {
	return queryable{s, s.source.QueryableFor(e)}
}

type queryable struct {
	s    *Store
	base storage.Queryable
}

// Querier implements storage.Queryable.
func (q queryable) Querier(mint, maxt int64) (storage.Querier, error) {
	base, err := q.base.Querier(mint, maxt)
	if err != nil {
		return nil, err
	}
	known := q.s.labels()
	out := &querier{base: base, of: map[string][]Label{}}
	for _, id := range q.s.source.Instances() {
		own, ok := known[id]
		if !ok {
			own = []Label{{Name: instance, Value: id}}
		}
		out.ids, out.of[id] = append(out.ids, id), own
	}
	return out, nil
}

const (
	instance = prom.InstanceLabel
	exported = prom.ExportedLabelPrefix // before the name of a series' own label that its instance has, too
)

type querier struct {
	base storage.Querier
	ids  []string
	of   map[string][]Label
}

// Close implements storage.Querier.
func (q *querier) Close() error { return q.base.Close() }

// part is a number of instances of which the store is asked the same.
type part struct {
	ids      []string
	matchers []*labels.Matcher
}

// parts lists of which instances the store is asked what: those whose labels fit, with the matchers that are left. No series is in two of them.
func (q *querier) parts(matchers []*labels.Matcher) (list []*part) {
	index := map[string]*part{}
	for _, id := range q.ids {
		ways, key := remaining(q.of[id], matchers)
		for i, left := range ways {
			key := fmt.Sprint(i, key)
			p := index[key]
			if p == nil {
				p = &part{matchers: left}
				index[key] = p
				list = append(list, p)
			}
			p.ids = append(p.ids, id)
		}
	}
	for _, p := range list {
		if len(p.ids) < len(q.ids) {
			p.matchers = append(p.matchers, oneOf(p.ids))
		}
	}
	return list
}

// remaining lists the matchers that an instance's own labels do not decide, in each way in which a series can fit; none if they decide
// against it. Instances with the same key have the same ones left.
func remaining(own []Label, matchers []*labels.Matcher) (ways [][]*labels.Matcher, key string) {
	var b strings.Builder
	ways = [][]*labels.Matcher{nil}
	and := func(more ...*labels.Matcher) {
		for i, w := range ways {
			ways[i] = append(slices.Clip(w), more...)
		}
	}
	for _, m := range matchers {
		if v, has := find(own, m.Name); has {
			if !m.Matches(v) {
				return nil, ""
			}
			b.WriteByte('o')
			continue
		}
		name, is := strings.CutPrefix(m.Name, exported)
		v, has := find(own, name)
		if !is || !has || name == instance {
			b.WriteByte('l')
			and(m)
			continue
		}
		// The store has it under its bare name. What has there what its instance has, has no such label: see merged.
		fmt.Fprintf(&b, "e%q", v)
		bare := labels.MustNewMatcher(m.Type, name, m.Value) // it was compiled before
		switch {
		case !m.Matches(""):
			and(bare, labels.MustNewMatcher(labels.MatchNotEqual, name, v))
		case m.Matches(v):
			and(bare)
		default:
			before := slices.Clone(ways)
			and(bare)
			for _, w := range before {
				ways = append(ways, append(slices.Clip(w), labels.MustNewMatcher(labels.MatchEqual, name, v)))
			}
		}
	}
	return ways, b.String()
}

func find(own []Label, name string) (string, bool) {
	for _, l := range own {
		if l.Name == name {
			return l.Value, true
		}
	}
	return "", false
}

// oneOf matches instances of the store by their ids, which have no signs that mean something in a regular expression but the dot.
func oneOf(ids []string) *labels.Matcher {
	if len(ids) == 1 {
		return labels.MustNewMatcher(labels.MatchEqual, instance, ids[0])
	}
	return labels.MustNewMatcher(labels.MatchRegexp, instance, strings.ReplaceAll(strings.Join(ids, "|"), ".", `\.`))
}

// Select implements storage.Querier.
func (q *querier) Select(ctx context.Context, sortSeries bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	out := &set{at: -1}
	take := func(name string, always, of bool, m []*labels.Matcher) error {
		found := q.base.Select(ctx, false, hints, m...)
		for found.Next() {
			s := found.At()
			l := s.Labels()
			if name == "" && !of && l.Get(instance) == "" { // of no instance: they come below
				continue
			}
			s = series{s, q.merged(l, name)}
			if always {
				s = constant{s}
			}
			out.list = append(out.list, s)
		}
		return found.Err()
	}
	for _, p := range q.parts(matchers) {
		if !named(p.matchers, upName) {
			if err := take("", false, false, p.matchers); err != nil {
				return storage.ErrSeriesSet(err)
			}
		}
		for _, sign := range signs {
			if m, ok := sign.instead(p.matchers); ok {
				if err := take(upName, sign.always, false, m); err != nil {
					return storage.ErrSeriesSet(err)
				}
			}
		}
	}
	// What rules recorded over several instances has no instance, and its labels as they were recorded.
	if err := take("", false, true, append(slices.Clone(matchers), labels.MustNewMatcher(labels.MatchEqual, instance, ""))); err != nil {
		return storage.ErrSeriesSet(err)
	}
	if sortSeries {
		slices.SortFunc(out.list, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	}
	return out
}

// merged joins the labels of a series with those of its instance; name is another name for it, or empty.
func (q *querier) merged(base labels.Labels, name string) labels.Labels {
	own := q.of[base.Get(instance)]
	b := labels.NewScratchBuilder(base.Len() + len(own))
	base.Range(func(l labels.Label) {
		switch {
		case l.Name == instance:
			return
		case l.Name == prom.MetricNameLabel && name != "":
			l.Value = name
		default:
			if v, both := find(own, l.Name); both && v == l.Value { // as rules record it
				return
			} else if both {
				l.Name = exported + l.Name
			}
		}
		b.Add(l.Name, l.Value)
	})
	for _, l := range own {
		b.Add(l.Name, l.Value)
	}
	b.Sort()
	return b.Labels()
}

// LabelValues implements storage.LabelQuerier.
func (q *querier) LabelValues(ctx context.Context, name string, hints *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	found := map[string]bool{}
	for _, p := range q.parts(matchers) {
		ids, err := q.present(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		var stored []string // ids whose series may have such a label themselves
		for _, id := range ids {
			if v, own := find(q.of[id], name); own {
				found[v] = true
			} else {
				stored = append(stored, id)
			}
		}
		inner, is := strings.CutPrefix(name, exported)
		if !is || inner == instance {
			inner = name
		}
		for value, ids := range q.byValue(stored, inner) {
			look := name // those whose instances have no such label
			if value != "" {
				look = inner
			}
			list, _, err := q.base.LabelValues(ctx, look, nil, append(slices.Clone(p.matchers), oneOf(ids))...)
			if err != nil {
				return nil, nil, err
			}
			for _, v := range list {
				if v != value {
					found[v] = true
				}
			}
		}
		if name == prom.MetricNameLabel && mayBe(p.matchers, upName) {
			found[upName] = true
		}
	}
	return sorted(found, hints), nil, nil
}

// byValue groups instances by what they have as a label themselves; "": nothing.
func (q *querier) byValue(ids []string, name string) map[string][]string {
	groups := map[string][]string{}
	for _, id := range ids {
		v, _ := find(q.of[id], name)
		groups[v] = append(groups[v], id)
	}
	return groups
}

// present lists the instances of a part that have such series.
func (q *querier) present(ctx context.Context, p *part) (ids []string, err error) {
	if !named(p.matchers, upName) {
		if ids, _, err = q.base.LabelValues(ctx, instance, nil, p.matchers...); err != nil {
			return nil, err
		}
	}
	for _, sign := range signs {
		m, ok := sign.instead(p.matchers)
		if !ok {
			continue
		}
		more, _, err := q.base.LabelValues(ctx, instance, nil, m...)
		if err != nil {
			return nil, err
		}
		ids = append(ids, more...)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// LabelNames implements storage.LabelQuerier.
func (q *querier) LabelNames(ctx context.Context, hints *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	found := map[string]bool{}
	for _, p := range q.parts(matchers) {
		ids, err := q.present(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		for _, id := range ids {
			found[prom.MetricNameLabel] = true
			for _, l := range q.of[id] {
				found[l.Name] = true
			}
		}
		list, _, err := q.base.LabelNames(ctx, nil, p.matchers...)
		if err != nil {
			return nil, nil, err
		}
		for _, name := range list {
			if name == instance {
				continue
			}
			groups := q.byValue(ids, name)
			if len(groups[""]) == len(ids) {
				found[name] = true
				continue
			}
			for value, ids := range groups {
				values, _, err := q.base.LabelValues(ctx, name, nil, append(slices.Clone(p.matchers), oneOf(ids))...)
				if err != nil {
					return nil, nil, err
				}
				switch other := slices.ContainsFunc(values, func(v string) bool { return v != value }); {
				case other && value == "":
					found[name] = true
				case other:
					found[exported+name] = true
				}
			}
		}
	}
	return sorted(found, hints), nil, nil
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

// series is a series of the store under other labels.
type series struct {
	storage.Series
	labels labels.Labels
}

// Labels implements storage.Series.
func (s series) Labels() labels.Labels { return s.labels }

type set struct {
	list []storage.Series
	at   int
}

// Next, At, Err and Warnings implement storage.SeriesSet.
func (s *set) Next() bool                        { s.at++; return s.at < len(s.list) }
func (s *set) At() storage.Series                { return s.list[s.at] }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }
