package web

import (
	"github.com/rissodb/risso/internal/store/series/gaps"

	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// federateBack is how old the newest value of a series may be. The newest of what is read rarely is older than Prometheus' five minutes.
const federateBack = 10 * time.Minute

// newestSample is the newest sample of a series.
type newestSample struct {
	labels labels.Labels
	t      int64
	v      float64
}

// federate answers with the newest value of each series that matches, in Prometheus' text format.
func (p *promAPI) federate(r *http.Request, a *answer) error {
	sets, err := p.matchers(r, true)
	if err != nil {
		return err
	}
	now := time.Now()
	from, to := now.Add(-federateBack).UnixMilli(), now.UnixMilli()
	ctx, cancel := context.WithTimeout(r.Context(), p.limits.Time)
	defer cancel()
	q, err := gaps.Mark(boundQueryable{p.store.Queryable(), newBounds(p.limits)}).Querier(from, to)
	if err != nil {
		return err
	}
	defer q.Close()
	byName := map[string]map[uint64]newestSample{}
	for _, m := range sets {
		if err := newest(ctx, q.Select(ctx, false, &storage.SelectHints{Start: from, End: to}, m...), byName); err != nil {
			return err
		}
	}
	counters := map[string]bool{}
	for _, m := range p.live.AllMetrics() {
		counters[m.Name] = m.Counter
	}
	a.kind = "text/plain; version=0.0.4; charset=utf-8"
	out := &pieces{w: a}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		kind := "untyped"
		if c, known := counters[name]; known {
			kind = typeWord(c)
		}
		out.b = append(append(out.b, "# TYPE "...), name+" "+kind+"\n"...)
		list := slices.SortedFunc(maps.Values(byName[name]), func(a, b newestSample) int { return labels.Compare(a.labels, b.labels) })
		for _, s := range list {
			out.b = appendSample(out.b, s)
			if err := out.flushFull(); err != nil {
				return err
			}
		}
	}
	return out.flush()
}

// newest adds the newest samples of a set, unless the series ended.
func newest(ctx context.Context, set storage.SeriesSet, byName map[string]map[uint64]newestSample) error {
	var it chunkenc.Iterator
	for set.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		s := set.At()
		last := newestSample{labels: s.Labels()}
		found := false
		for it = s.Iterator(it); it.Next() != chunkenc.ValNone; {
			last.t, last.v = it.At()
			found = true
		}
		if err := it.Err(); err != nil {
			return err
		}
		if !found || value.IsStaleNaN(last.v) {
			continue
		}
		name := last.labels.Get(model.MetricNameLabel)
		if byName[name] == nil {
			byName[name] = map[uint64]newestSample{}
		}
		byName[name][last.labels.Hash()] = last
	}
	return set.Err()
}

// labelEscaper escapes what the text format escapes in a label's value.
var labelEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func appendSample(b []byte, s newestSample) []byte {
	b = append(b, s.labels.Get(model.MetricNameLabel)...)
	sep := byte('{')
	s.labels.Range(func(l labels.Label) {
		if l.Name == model.MetricNameLabel {
			return
		}
		b = append(append(append(b, sep), l.Name...), '=', '"')
		b = append(append(b, labelEscaper.Replace(l.Value)...), '"')
		sep = ','
	})
	if sep == ',' {
		b = append(b, '}')
	}
	b = strconv.AppendFloat(append(b, ' '), s.v, 'g', -1, 64)
	return append(strconv.AppendInt(append(b, ' '), s.t, 10), '\n')
}
