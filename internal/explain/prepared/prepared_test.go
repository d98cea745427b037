package prepared

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sqltext"
)

// statement is an open statement of a thread of this number, with so many executions of a millisecond each.
func statement(thread uint64, text string, calls int64) read.Prepared {
	return read.Prepared{Key: read.PreparedKey{Object: 1, Statement: 1, Thread: thread, Event: 3}, Text: text, Cost: fleet.Cost{Calls: calls, Seconds: float64(calls) / 1000, MaxSeconds: 0.001, RowsSent: 2 * calls}}
}

func reading(executed int64, list ...read.Prepared) Reading {
	return Reading{list: list, executed: executed, owners: map[uint64]read.Owner{1: {User: "app", Schema: "shop"}, 2: {User: "app", Schema: "shop"}, 3: {User: "etl"}}}
}

// texts writes costs as text=calls/rows@user, in order.
func texts(list []Executions) string {
	var out []string
	for _, c := range list {
		out = append(out, fmt.Sprintf("%s=%d/%d@%s", c.Text, c.Calls, c.RowsSent, c.User))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// TestNext follows statements that stay, come, go, are counted from scratch, and are too many.
func TestNext(t *testing.T) {
	c := Counters{Counting: read.PreparedCounting{Instances: true}}
	few := reading(9, statement(1, "a", 4))
	cut := reading(100, statement(1, "a", 20), statement(3, "b", 5))
	cut.cut = true
	for i, step := range []struct {
		r            Reading
		want         string
		missing, all int64
	}{
		{few, "", 0, 0}, // it is unknown when the first ran
		{reading(19, statement(1, "a", 6), statement(2, "a", 3), statement(3, "a", 4)), "a=4/8@etl a=5/10@app", 1, 10},
		{reading(29, statement(1, "a", 16)), "a=10/20@app", 1, 20}, // two sessions ended
		{reading(33, statement(1, "a", 4)), "a=4/8@app", 1, 24},    // the table was emptied
		{reading(34, statement(1, "a", 4), statement(2, "SELECT /* risso: x */ ?", 1)), "", 1, 25},
		{cut, "a=16/32@app b=5/10@etl", 46, 91},
		{reading(150, statement(1, "a", 20), statement(3, "b", 6), statement(2, "c", 50)), "b=1/2@etl", 95, 141}, // c may be old
		{reading(151, statement(1, "a", 20), statement(3, "b", 6), statement(2, "c", 51)), "c=1/2@app", 95, 142},
		{reading(7, statement(1, "a", 3)), "a=3/6@app", 95, 142}, // restarted: how many there were is not known
	} {
		if got := texts(c.Next(step.r)); got != step.want {
			t.Errorf("step %d: %s, not %s", i, got, step.want)
		}
		if missing, all := c.Missing(); missing != step.missing || all != step.all {
			t.Errorf("step %d: %d of %d are missing, not %d of %d", i, missing, all, step.missing, step.all)
		}
	}
	for range maxTallies {
		c.Next(reading(7, statement(1, "a", 3)))
	}
	if missing, all := c.Missing(); missing != 0 || all != 0 || len(c.Gaps("x")) != 0 {
		t.Errorf("%d of %d of long ago are still missing: %+v; want missing 0, all 0, no c.Gaps(\"x\")", missing, all, c.Gaps("x"))
	}
}

// TestGaps says what is missing, each once.
func TestGaps(t *testing.T) {
	c := Counters{Counting: read.PreparedCounting{Instances: true}}
	c.All()
	r := reading(1000, statement(1, "a", 950))
	r.room, r.cut = read.PreparedRoom{Lost: 7, Open: 96, Max: 100}, true
	c.Next(r)
	var got []string
	for _, g := range c.Gaps("meanwhile") {
		got = append(got, g.Why+" | "+g.Remedy)
	}
	want := []string{"5 % of the executions of prepared statements (50 of 1,000) are not in the list", "more than 20000", "7 prepared statements did not fit", "96 of the 100"}
	if len(got) != len(want) {
		t.Fatalf("got %q, want length %v", got, len(want))
	}
	for i, w := range want {
		if !strings.Contains(got[i], w) {
			t.Errorf("%q is not in %q", w, got[i])
		}
	}
	if strings.Contains(got[0], Keep) || !strings.Contains(got[3], "max_prepared_stmt_count = 200") || !strings.Contains(got[2], "instances=1000") {
		t.Errorf("got %q; want no Keep in got[0], \"max_prepared_stmt_count = 200\" in got[3], \"instances=1000\" in got[2]", got)
	}
}

// TestNames: what was prepared has the name of the same statement run as text, and of its digest on MySQL 9.
func TestNames(t *testing.T) {
	var f sqltext.Fingerprinter
	plain := string(AppendPlain(nil, &f, Executions{Text: "select *  from t where id=?"}))
	for _, text := range []string{"EXECUTE SELECT * FROM `t` WHERE `id` = ?", "SELECT * FROM `t` WHERE `id` = ?"} {
		if got := string(sqltext.AppendDigestText(nil, []byte(CutExecute(text)))); got != plain {
			t.Errorf("%s: %q, not %q", text, got, plain)
		}
	}
	for _, text := range []string{"EXECUTE `s` USING @?", "EXECUTE `select`", "EXECUTE"} {
		if got := CutExecute(text); got != text {
			t.Errorf("%s is now %s", text, got)
		}
	}
	if cut := string(AppendPlain(nil, &f, Executions{Text: "select a, b from t", Cut: true})); cut != "select a, b from t ..." {
		t.Errorf("got %q, want \"select a, b from t ...\"", cut)
	}
}
