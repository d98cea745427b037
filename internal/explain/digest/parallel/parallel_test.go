package parallel

import (
	"math"
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
		t.Fatalf("%+v", p.Schemas)
	}
	if !near(p.Schemas[0].Share, 0.521) || !near(p.Schemas[1].Together, 0.6622) || !near(p.Schemas[2].Together, 0.2572) {
		t.Errorf("%+v", p.Schemas)
	}
	if a := p.Appliers; len(a) != 3 || a[0].Time != 1 || !near(a[1].Time, 0.521) || !near(a[2].Time, 0.521) || !near(a[2].Speedup, 1.919) {
		t.Errorf("%+v", a)
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
		t.Errorf("%+v", p)
	}
	if len(p.Crossing) != 1 || len(p.Crossing[0].Schemas) != 2 || !near(p.Crossing[0].Share, 0.2) || p.Crossing[0].Sample == "" {
		t.Errorf("%+v", p.Crossing)
	}
	if !near(p.Schemas[0].Chain, 0.5) || !near(p.Schemas[0].Share, 0.3) || !near(p.Appliers[2].Time, 0.5) {
		t.Errorf("%+v %+v", p.Schemas, p.Appliers)
	}
	if e := Of(nil); e.Calls != 0 || len(e.Appliers) != 0 {
		t.Errorf("%+v", e)
	}
}
