package history

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/store/events"
)

// TestCounters follows one digest through growth, silence, an emptied table, a restart and an eviction.
func TestCounters(t *testing.T) {
	var c counters
	if c.begun() {
		t.Error("begun before it began")
	}
	c.first(&read.Digest{ID: "a", First: "1", Cost: fleet.Cost{Calls: 100, Seconds: 10, MaxSeconds: 1, RowsSent: 5}})
	for i, step := range []struct {
		now     read.Digest
		ok      bool
		fresh   bool
		calls   int64
		seconds float64
		max     float64
	}{
		{read.Digest{ID: "a", First: "1", Cost: fleet.Cost{Calls: 110, Seconds: 12, MaxSeconds: 1, RowsSent: 5}}, true, false, 10, 2, 0},
		{read.Digest{ID: "a", First: "1", Cost: fleet.Cost{Calls: 111, Seconds: 15, MaxSeconds: 3, RowsSent: 4}}, true, false, 1, 3, 3},
		{read.Digest{ID: "a", First: "1", Cost: fleet.Cost{Calls: 111, Seconds: 15, MaxSeconds: 3}}, false, false, 0, 0, 0},
		{read.Digest{ID: "a", First: "2", Cost: fleet.Cost{Calls: 500, Seconds: 50, MaxSeconds: 2}}, true, true, 500, 50, 2}, // emptied, and busier than ever
		{read.Digest{ID: "a", First: "2", Cost: fleet.Cost{Calls: 7, Seconds: 1, MaxSeconds: 1}}, true, true, 7, 1, 1},       // emptied within a second
		{read.Digest{ID: "a", First: "2", Cost: fleet.Cost{Calls: 8, Seconds: 0.5}}, true, true, 8, 0.5, 0},                  // and once more
		{read.Digest{ID: "b", First: "3", Cost: fleet.Cost{Calls: 4, Seconds: 2, MaxSeconds: 1}}, true, true, 4, 2, 1},       // new
		{read.Digest{ID: "a", Schema: "x", First: "3", Cost: fleet.Cost{Calls: 1, Seconds: 1}}, true, true, 1, 1, 0},         // the same in another schema
	} {
		got, ok := c.next(&step.now)
		if ok != step.ok || ok && (got.fresh != step.fresh || got.Calls != step.calls || got.Seconds != step.seconds || got.MaxSeconds != step.max || got.RowsSent < 0) {
			t.Errorf("step %d: %+v %v, want %+v", i, got, ok, step)
		}
	}
	if c.lost != 3 {
		t.Errorf("%d new beginnings, want 3", c.lost)
	}
}

// TestLatencies: what buckets grew by, and nothing if there is nothing to compare with.
func TestLatencies(t *testing.T) {
	var l latencies
	d := func(fresh bool, first string) cost {
		return cost{digestKey: digestKey{id: "a"}, Digest: read.Digest{First: first}, fresh: fresh}
	}
	b := func(pairs ...int64) (out []read.LatencyBucket) {
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, read.LatencyBucket{Number: int(pairs[i]), Calls: pairs[i+1]})
		}
		return out
	}
	for i, step := range []struct {
		c    cost
		at   int64
		now  []read.LatencyBucket
		want string
	}{
		{d(false, "1"), 0, b(5, 10), "[]"},
		{d(false, "1"), 60, b(5, 12, 9, 1), "[{5 2} {9 1}]"},
		{d(false, "1"), 60 + histogramLife + 1, b(5, 20, 9, 1), "[]"}, // too long ago
		{d(true, "2"), 500, b(7, 3), "[{7 3}]"},                       // reset: all of it is of this minute
		{d(false, "3"), 560, b(7, 9), "[]"},
		{d(false, "3"), 620, b(7, 9, 600, 4), "[]"}, // no such bucket
	} {
		if got := fmt.Sprint(l.next(step.c, step.at, step.now)); got != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
	}
}

// TestJoin adds up digests of one class.
func TestJoin(t *testing.T) {
	rows := join([]events.Row{
		{Class: "b", Schema: "s", Cost: fleet.Cost{Calls: 1, Seconds: 1}, Latency: []events.Bucket{{Number: 5, Calls: 1}}},
		{Class: "a", Schema: "s", Cost: fleet.Cost{Calls: 2, Seconds: 2}},
		{Class: "b", Schema: "s", Cost: fleet.Cost{Calls: 4, Seconds: 4, MaxSeconds: 3}, Latency: []events.Bucket{{Number: 3, Calls: 2}, {Number: 5, Calls: 2}}},
		{Class: "b", Schema: "r", Cost: fleet.Cost{Calls: 8}},
	})
	if len(rows) != 3 || rows[2].Calls != 5 || rows[2].Seconds != 5 || rows[2].MaxSeconds != 3 || fmt.Sprint(rows[2].Latency) != "[{3 2} {5 3}]" {
		t.Errorf("got %+v; want len(rows) 3, rows[2].Calls 5, rows[2].Seconds 5, rows[2].MaxSeconds 3, fmt.Sprint(rows[2].Latency) \"[{3 2} {5 3}]\"",
			rows)
	}
}

// TestOwn recognizes Risso's statements by their class, whatever their literals.
func TestOwn(t *testing.T) {
	var i identifier
	i.note("SELECT /* risso: x */ a FROM t WHERE b >= '2026-01-01' AND c IN ('?')")
	for text, own := range map[string]bool{
		"SELECT `a` FROM `t` WHERE `b` >= ? AND `c` IN (...)": true,
		"SELECT `a` FROM `t` WHERE `b` > ? AND `c` IN (...)":  false,
	} {
		if id := i.of(text); i.isOwn(id.id) != own || id.verb != "SELECT" || id.tables != "t" {
			t.Errorf("%s: got %+v own %v; want i.isOwn(id.id) %v, verb \"SELECT\", tables \"t\"", text, id, i.isOwn(id.id), own)
		}
	}
	for n := range maxOwn + 10 {
		i.note(fmt.Sprintf("SELECT %d", n))
	}
	if len(i.seen) > maxOwn+1 || len(i.own) > 3 {
		t.Errorf("%d texts of %d classes are remembered; want len(i.seen) at most %d, len(i.own) at most 3", len(i.seen), len(i.own), maxOwn+1)
	}
}

// TestRedactPlan hides literals, and nothing that names a table, an index or a figure.
func TestRedactPlan(t *testing.T) {
	const plan = `{"query_block":{"cost_info":{"query_cost":"10.25"},"table":{"table_name":"my table","key":"PRIMARY","rows":5,"attached_condition":"(` + "`shop`.`t`.`a`" + ` = 'secret 4711')"}},"query":"/* select#1 */ select 'secret' from t where b > 4711"}`
	out := redactPlan(plan)
	if strings.Contains(out, "secret") || strings.Contains(out, "4711") {
		t.Errorf("a literal is left: %s; want no \"secret\" in it, no \"4711\" in it", out)
	}
	for _, s := range []string{`"10.25"`, `"PRIMARY"`, `"rows": 5`, "my table", "`shop`.`t`.`a` = ?"} {
		if !strings.Contains(out, s) {
			t.Errorf("%s is gone: %s", s, out)
		}
	}
	if out := redactPlan("no json 'secret'"); strings.Contains(out, "secret") {
		t.Errorf("got %v, want no \"secret\" in it", out)
	}
}
