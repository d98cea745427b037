package series

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
)

func newEngine(t testing.TB) *promql.Engine {
	t.Helper()
	e := promql.NewEngine(promql.EngineOpts{MaxSamples: 50_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute,
		EnableAtModifier: true, EnableNegativeOffset: true, Parser: parser.NewParser(parser.Options{})})
	t.Cleanup(func() { e.Close() })
	return e
}

// reference provides Prometheus' engine with the same samples by another way: Prometheus' own database (see prometheus_test.go), or plain
// lists.
type reference interface {
	storage.Queryable
	add(l labels.Labels, at int64, v float64) // at is in milliseconds
	commit()
}

// fillBoth writes the same random samples to this store and to the reference.
func fillBoth(t *testing.T, s *Store, db reference, r *rand.Rand, end int64) {
	t.Helper()
	var descs []Desc
	for i := range 5 {
		for _, mode := range []string{"read", "write", "idle"} {
			descs = append(descs, Desc{Name: "ops_total", Type: Counter, Labels: []Label{{Name: "mode", Value: mode}, {Name: "disk", Value: fmt.Sprintf("sd%d", i)}}})
		}
		descs = append(descs, Desc{Name: "threads", Labels: []Label{{Name: "pool", Value: fmt.Sprint(i)}}}, Desc{Name: fmt.Sprintf("value_%d", i)})
	}
	for _, id := range []string{"db-1", "db-2", "host-a"} {
		w := openWriterT(t, s, id)
		define(w, descs)
		state := make([]float64, len(descs))
		vals := make([]float64, len(descs))
		for at := t0; at < end; at++ {
			if r.IntN(200) == 0 {
				at += int64(r.IntN(400))
			}
			if at >= end {
				break
			}
			for i, d := range descs {
				switch {
				case r.IntN(20) == 0:
					vals[i] = math.NaN()
					continue
				case d.Type == Counter:
					if state[i] += float64(r.IntN(100)); r.IntN(1000) == 0 {
						state[i] = float64(r.IntN(5))
					}
					vals[i] = state[i]
				case d.Name == "threads":
					vals[i] = float64(r.IntN(64))
				default:
					vals[i] = r.NormFloat64() * 100
				}
				id := s.cat.intern(d)
				db.add(id.labels(idOf(w)), at*1000, vals[i])
			}
			if err := w.Append(at, vals, r.IntN(30) == 0); err != nil {
				t.Fatal(err)
			}
		}
		db.commit()
	}
}

func idOf(w *Writer) string { return w.in.id }

// question is a query at a moment or over a range.
type question struct {
	expr       string
	start, end time.Time
	step       time.Duration // 0: instant
}

func (q question) ask(t *testing.T, e *promql.Engine, db storage.Queryable) parser.Value {
	t.Helper()
	var query promql.Query
	var err error
	if q.step == 0 {
		query, err = e.NewInstantQuery(t.Context(), db, nil, q.expr, q.start)
	} else {
		query, err = e.NewRangeQuery(t.Context(), db, nil, q.expr, q.start, q.end, q.step)
	}
	if err != nil {
		t.Fatalf("%s: %v", q.expr, err)
	}
	t.Cleanup(query.Close)
	res := query.Exec(t.Context())
	if res.Err != nil {
		t.Fatalf("%s: %v", q.expr, res.Err)
	}
	return res.Value
}

var templates = []string{
	`ops_total`, `threads{instance="db-1"}`, `ops_total{mode=~"re.*|idle",disk!="sd1"}`, `{__name__=~"value_[0-3]",instance=~"db.*"}`,
	`ops_total{mode!~"read|write"}`, `{instance="host-a",pool=~".+"}`, `missing`, `ops_total{mode=""}`, `threads{nolabel=""}`,
	`rate(ops_total[%s])`, `increase(ops_total{instance="db-2"}[%s])`, `irate(ops_total[%s])`, `delta(threads[%s])`,
	`sum by (instance) (rate(ops_total[%s]))`, `sum by (mode) (rate(ops_total{instance=~"db-.*"}[%s]))`,
	`avg_over_time(threads[%s])`, `max_over_time(value_1[%s])`, `min_over_time(value_2[%s] offset 3m)`, `count_over_time(threads[%s])`,
	`stddev_over_time(value_0[%s])`, `quantile_over_time(0.9, threads[%s])`, `resets(ops_total[%s])`, `changes(threads[%s])`,
	`last_over_time(ops_total[%s] offset 1m)`, `present_over_time(value_4[%s])`, `absent_over_time(missing[%s])`, `deriv(value_3[%s])`,
	`topk(3, value_0)`, `quantile(0.5, value_0)`, `count(ops_total) by (disk, instance)`, `sum(threads) without (pool)`,
	`threads offset 7m > 30`, `ops_total - ops_total offset 1m`, `rate(ops_total{mode="read"}[%s]) / ignoring(mode) rate(ops_total{mode="write"}[%s])`,
	`max_over_time(rate(ops_total{disk="sd0"}[1m])[10m:30s])`, `avg(threads @ 1750004000)`, `sum_over_time(threads[%s] @ end())`,
	`rate(ops_total[%s] offset 90s)`, `increase(ops_total[1h])`, `rate(ops_total[40m] @ 1750004000)`, `rate(ops_total[2h])`,
	`sum_over_time(rate(ops_total{disk="sd1"}[90s])[20m:13s])`, `rate(threads[%s])`, `timestamp(threads)`, `label_replace(threads, "x", "$1", "pool", "(.*)")`, `threads offset -2m`, `predict_linear(value_1[%s], 60)`, `scalar(value_1{instance="db-1"})`,
}

// TestSameAsPrometheus asks Prometheus' engine the same questions over this store and over the same samples elsewhere. script/test runs it
// twice: with plain lists and the race detector, and with Prometheus' own database (-tags tsdb) without.
func TestSameAsPrometheus(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, compared with %s", seed, asked)
	r := rand.New(rand.NewPCG(seed, 0))
	end := t0 + hours*hourSeconds + 700 + int64(r.IntN(1000))
	s := openStore(t, t.TempDir())
	db := newReference(t)
	fillBoth(t, s, db, r, end)
	e := newEngine(t)
	points := 0
	// Once from memory and frames, once with the first hours in blocks, once with a day.
	for _, stage := range []time.Time{{}, time.Unix(end, 0), time.Unix(t0+2*daySeconds, 0)} {
		if !stage.IsZero() {
			if err := s.Compact(context.Background(), stage); err != nil {
				t.Fatal(err)
			}
		}
		for range rounds {
			for _, tmpl := range templates {
				points += compare(t, e, s, db, randomQuestion(r, tmpl, end))
			}
		}
		sameLabels(t, s, db, end)
	}
	if points < 3000*rounds {
		t.Fatalf("only %d points were compared, want at least %d", points, 3000*rounds)
	}
}

func randomQuestion(r *rand.Rand, tmpl string, end int64) question {
	expr := ""
	for i := 0; i < len(tmpl); i++ {
		if tmpl[i] == '%' {
			expr += []string{"5s", "30s", "1m", "5m", "17m"}[r.IntN(5)]
			i++
			continue
		}
		expr += string(tmpl[i])
	}
	q := question{expr: expr, start: time.UnixMilli((t0 - 300 + int64(r.IntN(int(end-t0)))) * 1000)}
	if r.IntN(3) > 0 {
		q.start = q.start.Add(time.Duration(r.IntN(2)*r.IntN(1000)) * time.Millisecond)
	}
	if r.IntN(4) > 0 {
		q.step = []time.Duration{time.Second, 7 * time.Second, 15 * time.Second, time.Minute, 437 * time.Second, 21*time.Minute + 317*time.Millisecond}[r.IntN(6)]
		q.end = q.start.Add(q.step * time.Duration(1+r.IntN(60)))
	}
	return q
}

func compare(t *testing.T, e *promql.Engine, s *Store, db reference, q question) int {
	t.Helper()
	want, got := q.ask(t, e, db), q.ask(t, e, s.Queryable())
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(q.expr)
	if err != nil {
		t.Fatal(err)
	}
	a, b := flatten(want), flatten(got)
	// The order of an instant vector means nothing. As text NaN is NaN.
	if thin := flatten(q.ask(t, e, s.QueryableFor(expr))); fmt.Sprint(thin) != fmt.Sprint(b) {
		t.Fatalf("%+v: got %v thinned, want %v", q, thin, b)
	}
	if len(a) != len(b) {
		t.Fatalf("%+v: %d points from Prometheus, %d from here\n%v\n%v", q, len(a), len(b), want, got)
	}
	for k, x := range a {
		y, ok := b[k]
		if !ok || math.Abs(x-y) > 1e-9*max(1, math.Abs(x)) && !(x != x && y != y) && x != y {
			t.Fatalf("%+v: %s is %v from Prometheus, %v from here (there: %v)", q, k, x, y, ok)
		}
	}
	return len(a)
}

func flatten(v parser.Value) map[string]float64 {
	out := map[string]float64{}
	switch v := v.(type) {
	case promql.Vector:
		for _, s := range v {
			out[fmt.Sprint(s.Metric, s.T)] = s.F
		}
	case promql.Matrix:
		for _, s := range v {
			for _, p := range s.Floats {
				out[fmt.Sprint(s.Metric, p.T)] = p.F
			}
		}
	case promql.Scalar:
		out["scalar"] = v.V
	}
	return out
}

func sameLabels(t *testing.T, s *Store, db reference, end int64) {
	t.Helper()
	ask := func(q storage.Queryable) (out [][]string) {
		qr, err := q.Querier(t0*1000, end*1000)
		if err != nil {
			t.Fatal(err)
		}
		defer qr.Close()
		add := func(l []string, err error) {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, slices.Clone(l))
		}
		m := labels.MustNewMatcher(labels.MatchRegexp, "instance", "db.*")
		n, _, err := qr.LabelNames(t.Context(), nil)
		add(n, err)
		n, _, err = qr.LabelNames(t.Context(), nil, labels.MustNewMatcher(labels.MatchEqual, "__name__", "threads"))
		add(n, err)
		for _, name := range []string{"instance", "__name__", "pool", "nothing"} {
			v, _, err := qr.LabelValues(t.Context(), name, nil)
			add(v, err)
			v, _, err = qr.LabelValues(t.Context(), name, nil, m)
			add(v, err)
		}
		set := qr.Select(t.Context(), true, &storage.SelectHints{Start: t0 * 1000, End: end * 1000, Func: "series"}, m)
		for set.Next() {
			out = append(out, []string{set.At().Labels().String()})
		}
		return out
	}
	want, got := ask(db), ask(s.Queryable())
	if fmt.Sprint(want) != fmt.Sprint(got) {
		t.Fatalf("labels differ: want %v:\n%v\n%v", fmt.Sprint(got), want, got)
	}
}
