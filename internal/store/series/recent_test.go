package series

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"

	"github.com/rissodb/risso/internal/fleet"
)

// TestRecent: what is kept in memory answers as the store does, over gaps, new series, values that come seldom, writers that are closed and
// opened again, and minutes that nobody asked in.
func TestRecent(t *testing.T) {
	t.Parallel()
	s, err := Open(Options{Dir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), OnEvent: func(fleet.Event) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rnd := rand.New(rand.NewPCG(1, 2))
	r := NewRecent(s)
	p := parser.NewParser(parser.Options{})
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true, Parser: p})
	ask := func(db func(parser.Expr) storage.Queryable, text string, at int64) string {
		t.Helper()
		expr, err := p.ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		q, err := engine.NewInstantQuery(t.Context(), db(expr), nil, text, time.Unix(at, 0))
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		lines := strings.Split(q.Exec(t.Context()).String(), "\n")
		slices.Sort(lines)
		return strings.Join(lines, "\n")
	}
	exprs := []string{"a", `a{instance="db1"}`, `{instance=~"db."}`, "rate(a[5s])", "rate(a[1m])", "sum by (instance) (increase(b[2m]))", "max_over_time(seldom[1m])", "seldom", "new", "a offset 20s",
		"rate(a[30m])", "sum_over_time(a[20s:5s])", "a @ end()", `{__name__=~"a|recorded"}`, `recorded{instance="db2"}`, `a{instance="db2"} - on(instance) recorded`, "absent(nothing)"}
	writers := map[string]*Writer{}
	compared := 0
	for at, step := int64(1_795_521_600), 0; step < 400; step, at = step+1, at+1 {
		for _, id := range []string{"db1", "db2", "db3", Recorded} {
			w := writers[id]
			switch {
			case w == nil && step > 20*len(id)/3:
				if w, err = s.Writer(id); err != nil {
					t.Fatal(err)
				}
				writers[id] = w
			case w == nil || rnd.IntN(15) == 0:
				continue
			case rnd.IntN(80) == 0:
				w.Close()
				writers[id] = nil
				continue
			}
			row := []float64{float64(rnd.IntN(100)), float64(step), math.NaN()}
			names := []string{"a", "b", "seldom"}
			if id == Recorded {
				row, names = []float64{float64(rnd.IntN(9))}, []string{"recorded"}
			}
			for i, name := range names {
				d := Desc{Name: name}
				if id == Recorded {
					d.Labels = []Label{{Name: "instance", Value: "db2"}, {Name: "exported_instance", Value: "x"}}
				}
				w.Define(d)
				if name == "seldom" && step%45 == 0 {
					row[i] = 7
				}
			}
			if step > 200 {
				w.Define(Desc{Name: "new", Labels: []Label{{Name: "of", Value: fmt.Sprint(step / 50)}}})
				for len(row) < len(s.instance(id).descs) {
					row = append(row, 3)
				}
			}
			if err := w.Append(at, row, false); err != nil {
				t.Fatal(err)
			}
		}
		if step > 250 && step < 330 {
			continue // nobody asks: minutes go to disk meanwhile
		}
		r.Update(t.Context(), at)
		if step%3 != 0 {
			continue
		}
		for _, e := range exprs {
			want := ask(s.QueryableFor, e, at)
			if got := ask(r.QueryableFor, e, at); got != want {
				t.Fatalf("step %d: %s: got\n%s\nwant\n%s", step, e, got, want)
			}
			if want != "" {
				compared++
			}
		}
	}
	if compared < 500 || len(r.sets) < 10 {
		t.Errorf("%d answers were compared and %d selectors kept, want far more", compared, len(r.sets))
	}
	r.Update(t.Context(), 1_795_521_600+400+2*recentIdle)
	if len(r.sets) > 0 || r.cells != 0 {
		t.Errorf("%d selectors with %d values are kept that nobody asks for", len(r.sets), r.cells)
	}
}
