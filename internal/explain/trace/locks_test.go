package trace

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/mysql/read"
)

// TestWaitsAreNotJoined: two waits for one lock are not reported as one that lasted from the first to the last.
func TestWaitsAreNotJoined(t *testing.T) {
	l := &lockWatch{}
	saw := func(at float64, event uint64) bool {
		w := read.LockWait{Kind: read.LockRow, Schema: "shop", Name: "orders", Index: "PRIMARY", Blocker: read.Blocker{ID: 8}}
		l.count++
		return l.saw(&w, at, event)
	}
	for _, c := range []struct {
		at    float64
		event uint64
		fresh bool
	}{{1, 5, true}, {2, 5, false}, {10, 9, true}, {11, 9, false}, {30, 9, true}} {
		if fresh := saw(c.at, c.event); fresh != c.fresh {
			t.Errorf("at %g: another wait: got %t, want %t", c.at, fresh, c.fresh)
		}
	}
	l.count++ // a look that saw no wait
	if !saw(31, 9) {
		t.Error("a wait that had ended goes on")
	}
	if len(l.waits) != 4 || l.waits[0].To != 2 || l.waits[1].From != 10 || l.waits[1].To != 11 || l.waits[2].From != 30 {
		t.Errorf("got %+v; want len(l.waits) 4, l.waits[0].To 2, l.waits[1].From 10, l.waits[1].To 11, l.waits[2].From 30", l.waits)
	}
}

// TestLockRemedies: advice is given only if it is known to help.
func TestLockRemedies(t *testing.T) {
	idle, busy := read.Blocker{ID: 8, Command: "Sleep"}, read.Blocker{ID: 8, Command: "Query", Statement: "UPDATE t SET a = 1", Open: 3, Seconds: -5}
	with := func(b read.Blocker, statement string, open float64) read.Blocker {
		b.Statement, b.Open = statement, open
		return b
	}
	for _, c := range []struct {
		what      string
		w         read.LockWait
		says, not string
	}{
		{"idle", read.LockWait{Kind: read.LockUser, Blocker: idle}, "KILL 8 makes it let go.", "rolls"},
		{"in a transaction", read.LockWait{Kind: read.LockRow, Blocker: busy}, "busy for 0 s, in a transaction that began 3 s ago; it runs UPDATE t SET a = 1. KILL 8 makes it let go, and rolls its transaction back.", "unless"},
		{"unknown statement", read.LockWait{Kind: read.LockRow, Blocker: with(idle, "", 3)}, "rolls its transaction back unless that is prepared (XA).", "Only XA"},
		{"prepared", read.LockWait{Kind: read.LockRow, Blocker: with(idle, "xa  prepare 'x'", 3)}, "Only XA COMMIT or XA ROLLBACK in connection 8 releases it", "KILL 8"},
		{"queued", read.LockWait{Kind: read.LockMetadata, Queued: true, Blocker: busy}, "KILL 8 takes that one out of the queue.", "let go"},
		{"perhaps", read.LockWait{Kind: read.LockMetadata, Maybe: true, Blocker: busy}, "it may be connection 8", "KILL"},
		{"a thread of replication", read.LockWait{Kind: read.LockRow, Blocker: read.Blocker{ID: 8, User: "system user", Command: "Connect"}}, "connection 8 (system user) holds", "KILL"},
		{"nobody", read.LockWait{Kind: read.LockRow}, "held by a transaction without a connection", "KILL"},
		{"not told", read.LockWait{Kind: read.LockRow, Blocker: read.Blocker{ID: 8}}, "what it does is unknown", "KILL"},
	} {
		if s := (&LockWait{LockWait: c.w}).words(); !strings.Contains(s, c.says) || strings.Contains(s, c.not) {
			t.Errorf("%s: got %s; want %q in it, no %q in it", c.what, s, c.says, c.not)
		}
	}
	behind := &LockWait{LockWait: read.LockWait{Kind: read.LockMetadata, Queued: true, Blocker: busy}, Behind: &read.LockWait{Kind: read.LockMetadata, Maybe: true, Blocker: read.Blocker{ID: 9, Command: "Sleep"}}}
	if s := behind.words(); !strings.Contains(s, "That one waits for a metadata lock. The server does not say who holds it; it may be connection 9") {
		t.Errorf("got %v, want \"That one waits for a metadata lock. The server does not say who holds it; it may be connection 9\" in it", s)
	}
}

// TestLockRedaction: the name of a user lock is a value of its statement.
func TestLockRedaction(t *testing.T) {
	w := LockWait{LockWait: read.LockWait{Kind: read.LockUser, Name: "topsecret", Blocker: read.Blocker{ID: 8, Command: "Sleep", Statement: "SELECT GET_LOCK('topsecret', 1)"}}}
	r := NewReport(&Trace{LockWaits: []LockWait{w}, After: &Connection{Command: "Query"}}, true)
	if b, err := json.Marshal(r); err != nil || strings.Contains(string(b), "topsecret") || !strings.Contains(string(b), "the user lock '?'") {
		t.Errorf("%v: got %s; want no \"topsecret\" in it, \"the user lock '?'\" in it", err, b)
	}
}

// TestWhatWasChanged: the note says what was done, and no more.
func TestWhatWasChanged(t *testing.T) {
	own, others, global := "UPDATE performance_schema.threads SET INSTRUMENTED = 'NO', HISTORY = 'NO' WHERE PROCESSLIST_ID = CONNECTION_ID()",
		"UPDATE performance_schema.threads SET HISTORY = 'NO' WHERE HISTORY = 'YES' AND THREAD_ID <= 9", "UPDATE performance_schema.setup_consumers SET ENABLED = 'YES'"
	for _, c := range []struct {
		changed []string
		left    bool
		want    string
	}{
		{[]string{own}, false, "What was recorded was changed for the trace, and put back."},
		{[]string{own, others}, false, "What was recorded was changed for the trace, and put back; the history of other connections was off during that time."},
		{[]string{own, " " + global}, true, "What was recorded was changed for the trace, and could not be put back (risso trace --restore does it): consumers and instruments are global, so every connection paid for them."},
	} {
		if got := (&Trace{Changed: c.changed, left: c.left}).changedWords(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestLossy: sums over what was seen are reported as such, and the server's counters are named only if they were read.
func TestLossy(t *testing.T) {
	events := []Event{{Kind: KindStatement, ID: 1, End: 1, Name: "statement/sql/select", SQL: "SELECT 1", Start: 1e12, Stop: 2e12}, {Kind: KindStatement, ID: 1000, End: 1000, Name: "statement/sql/select", SQL: "SELECT 2", Start: 3e12, Stop: 4e12}}
	for _, totals := range [][]Total{nil, {{Name: "stage/sql/executing", Count: 1000, Seconds: 9}}} {
		words := strings.Join(NewReport(&Trace{Events: events, Seconds: 10, Totals: totals}, false).Words, " ")
		if !strings.Contains(words, "was seen busy for 2 s of 10 s, with 2 statements that were seen.") || !strings.Contains(words, "998 of 1,000 events were overwritten") || strings.Contains(words, "own counters") != (totals != nil) {
			t.Errorf("got %v; want \"was seen busy for 2 s of 10 s, with 2 statements that were seen.\" in it, \"998 of 1,000 events were overwritten\" in it, strings.Contains(words, \"own counters\") %v",
				words, totals != nil)
		}
	}
}
