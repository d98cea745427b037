package parallel

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/explain/digest"
)

func near(a, b float64) bool { return math.Abs(a-b) < 0.0005 }

// The case of the planning guide: db3 52.1 %, db1 34.5 %, db2 13.4 % of the write time: three appliers together for at
// most a quarter of the time.
func TestThreeSchemas(t *testing.T) {
	c := NewCounter(nil)
	for db, share := range map[string]float64{"db3": 52.1, "db1": 34.5, "db2": 13.4} {
		c.Keep(&digest.Event{Query: []byte("INSERT INTO t VALUES (1)"), DB: []byte(db), QueryTime: share})
		if c.Keep(&digest.Event{Query: []byte("SELECT 1 FROM t"), DB: []byte(db), QueryTime: 1000}) {
			t.Error("a read counts")
		}
	}
	p := c.Plan()
	if len(p.Schemas) != 3 || p.Schemas[0].Name != "db3" || p.Schemas[1].Name != "db1" || p.Schemas[2].Name != "db2" {
		t.Fatalf("got %+v; want len(p.Schemas) 3, p.Schemas[0].Name \"db3\", p.Schemas[1].Name \"db1\", p.Schemas[2].Name \"db2\"", p.Schemas)
	}
	if !near(p.Schemas[0].Share, 0.521) || !near(p.Schemas[1].Together, 0.6622) || !near(p.Schemas[2].Together, 0.2572) {
		t.Errorf("got %+v; want near(p.Schemas[0].Share, 0.521) true, near(p.Schemas[1].Together, 0.6622) true, near(p.Schemas[2].Together, 0.2572) true",
			p.Schemas)
	}
	if a := p.Appliers; len(a) != 3 || a[0].Time != 1 || !near(a[1].Time, 0.521) || !near(a[2].Time, 0.521) || !near(a[2].Speedup, 1.919) {
		t.Errorf("got %+v; want len(a) 3, a[0].Time 1, near(a[1].Time, 0.521) true, near(a[2].Time, 0.521) true, near(a[2].Speedup, 1.919) true", a)
	}
}

// A statement of two schemas holds up both; of even schemas the number of appliers is the bound.
func TestCrossing(t *testing.T) {
	c := NewCounter(nil)
	for _, e := range []digest.Event{
		{Query: []byte("UPDATE a.t JOIN b.t USING (id) SET a.t.n = b.t.n"), DB: []byte("c"), QueryTime: 20},
		{Query: []byte("DELETE FROM t"), DB: []byte("a"), QueryTime: 30},
		{Query: []byte("DELETE FROM b.t"), DB: []byte("a"), QueryTime: 30},
		{Query: []byte("CREATE DATABASE c"), DB: []byte("b"), QueryTime: 10},
		{Query: []byte("DELETE FROM t WHERE id IN (SELECT id FROM a.t JOIN b.t USING (id))"), DB: []byte("c"), QueryTime: 10},
		{Query: []byte("CALL p()"), DB: []byte("c"), QueryTime: 7},
	} {
		c.Keep(&e)
	}
	p := c.Plan()
	if p.Seconds != 100 || p.Unjudged != 7 || p.UnjudgedCalls != 1 {
		t.Errorf("got %+v; want Seconds 100, Unjudged 7, UnjudgedCalls 1", p)
	}
	if len(p.Crossing) != 1 || len(p.Crossing[0].Schemas) != 2 || !near(p.Crossing[0].Share, 0.2) || p.Crossing[0].Sample == "" {
		t.Errorf("got %+v; want len(p.Crossing) 1, len(p.Crossing[0].Schemas) 2, near(p.Crossing[0].Share, 0.2) true, p.Crossing[0].Sample not \"\"",
			p.Crossing)
	}
	if !near(p.Schemas[0].Chain, 0.5) || !near(p.Schemas[0].Share, 0.3) || !near(p.Appliers[2].Time, 0.5) {
		t.Errorf("got %+v %+v; want near(p.Schemas[0].Chain, 0.5) true, near(p.Schemas[0].Share, 0.3) true, near(p.Appliers[2].Time, 0.5) true",
			p.Schemas, p.Appliers)
	}
}

// TestSchemasOf: which schemas a statement may change.
func TestSchemasOf(t *testing.T) {
	for query, want := range map[string]string{
		"INSERT INTO t VALUES (1)":                   "now",
		"INSERT INTO a.t SELECT * FROM b.t":          "a",
		"RENAME TABLE b.t TO a.t":                    "a b",
		"INSERT":                                     "now",
		"RENAME TABLE a.t TO b.t":                    "a b",
		"CREATE DATABASE c":                          "c",
		"DROP DATABASE c":                            "c",
		"OPTIMIZE TABLE a.t, t":                      "a now",
		"CREATE USER u@h":                            "now",
		"DELETE a.t, b.t FROM a.t JOIN b.t USING(i)": "a b",
	} {
		if got := strings.Join(schemasOf(&digest.Event{Query: []byte(query), DB: []byte(" now ")}), " "); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
}

// TestKeep: what is counted, what may write and cannot be judged, and what is dropped.
func TestKeep(t *testing.T) {
	c := NewCounter(only{"keep"})
	for _, e := range []struct {
		query, user string
		kept        bool
	}{
		{"INSERT INTO a.t VALUES (1)", "keep", true}, {"INSERT INTO a.t VALUES (1)", "other", false}, {"SELECT 1", "keep", false},
		{"CALL p()", "keep", false}, {"CALL p()", "other", false}, {"XA COMMIT 'x'", "keep", false},
		{"UPDATE a.t, b.t SET a.t.x = 1, b.t.x = 1", "keep", true},
	} {
		if got := c.Keep(&digest.Event{Query: []byte(e.query), User: []byte(e.user), QueryTime: 2}); got != e.kept {
			t.Errorf("%s of %s: got kept %v, want %v", e.query, e.user, got, e.kept)
		}
	}
	for _, took := range []float64{1, 9, 4} {
		c.Keep(&digest.Event{Query: fmt.Appendf(nil, "UPDATE a.t, b.t SET a.t.x%v = 1, b.t.x = 1", took), User: []byte("keep"), QueryTime: took})
	}
	p := c.Plan()
	if p.Calls != 5 || p.Seconds != 18 || p.Unjudged != 4 || p.UnjudgedCalls != 2 {
		t.Errorf("got %d calls, %v s and %d, %v s that cannot be judged; want 5, 18, 2, 4", p.Calls, p.Seconds, p.UnjudgedCalls, p.Unjudged)
	}
	if len(p.Crossing) != 1 || !strings.Contains(p.Crossing[0].Sample, "x9") || p.Crossing[0].Calls != 4 {
		t.Errorf("got %+v, want the slowest of four as the sample", p.Crossing)
	}
	for _, x := range p.Schemas {
		if x.Name == "a" && x.Calls != 1 {
			t.Errorf("got %+v, want one call of a alone", x)
		}
	}
	long := NewCounter(nil)
	long.Keep(&digest.Event{Query: []byte("UPDATE a.t, b.t SET a.t.x = " + strings.Repeat("1 + ", 2000) + "1, b.t.y = 1"), QueryTime: 1})
	if got := long.Plan().Crossing; len(got) != 1 || strings.Contains(got[0].Sample, "y") {
		t.Errorf("got %+v, want no more of a long statement than its beginning", got)
	}
}

// only keeps one user's events.
type only struct{ user string }

func (o only) Keep(e *digest.Event) bool { return string(e.User) == o.user }
