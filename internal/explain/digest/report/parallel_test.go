package report

import (
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/explain/digest/parallel"
)

// TestParallelWords: what is said about appliers follows from the writes, and what is not known about them is not ignored.
func TestParallelWords(t *testing.T) {
	event := func(db, query string, seconds float64) digest.Event {
		return digest.Event{DB: []byte(db), Query: []byte(query), QueryTime: seconds}
	}
	insert := "INSERT INTO t VALUES (1)"
	for _, c := range []struct {
		what   string
		events []digest.Event
		says   []string
		not    string
	}{
		{"nothing", nil, []string{"There is nothing to plan"}, "Not counted"},
		{"calls only", []digest.Event{event("a", "CALL p()", 3)}, []string{"no writes with a time were read whose text shows what they write", "Not counted: 1 call of CALL, COMMIT, XA or EXECUTE (3 s), whose text"}, "All writes"},
		{"one schema", []digest.Event{event("a", insert, 3)}, []string{"All writes that were counted are in a: appliers by schema gain nothing."}, "Not counted"},
		{"no schema told", []digest.Event{event("", insert, 3)}, []string{"The log does not show in which schemas 100 % of the write time was spent."}, "gain nothing"},
		{"a schema not told", []digest.Event{event("a", insert, 1), event("", insert, 3)}, []string{"The log does not show in which schemas 75 % of the write time was spent."}, "at most 1"},
		{"two schemas, one heavier", []digest.Event{event("a", insert, 3), event("b", insert, 1)}, []string{"2 appliers by schema replay this at most 1.33 times as fast as one: the statements of a are 75 % of the write time and wait for each other.", "All 2 schemas are worked on at once for at most 33 % of that time."}, "not tell"},
		{"two schemas alike", []digest.Event{event("a", insert, 2), event("b", insert, 2)}, []string{"2 appliers by schema replay this at most 2.00 times as fast as one"}, "gain nothing"},
		{"all across", []digest.Event{event("a", "DELETE x, y FROM a.x JOIN b.y USING (id)", 2), event("a", insert, 1)}, []string{"Appliers by schema gain nothing: all statements write to a", "Statements that touch several schemas hold up an applier for each:", "a + b: 2 s (67 %) in 1 call"}, "1 appliers"},
	} {
		counter := parallel.NewCounter(nil)
		for i := range c.events {
			counter.Keep(&c.events[i])
		}
		var b strings.Builder
		if err := ParallelText(&b, counter.Plan(), Options{Width: 400}); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.says {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: lacks %q:\n%s", c.what, want, &b)
			}
		}
		if strings.Contains(b.String(), c.not) {
			t.Errorf("%s: says %q:\n%s", c.what, c.not, &b)
		}
	}
}
