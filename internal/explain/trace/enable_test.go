package trace

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

func someState() *State {
	return &State{
		consumers: map[string]bool{"global_instrumentation": true, "thread_instrumentation": true, "events_statements_current": true, "events_statements_history_long": false,
			"events_stages_current": false, "events_waits_current": false, "statements_digest": false},
		instruments: []Instrument{{"stage/sql/a", "NO", "NO"}, {"stage/sql/b", "YES", "NO"}, {"statement/sql/select", "YES", "YES"}, {"wait/lock/metadata/sql/mdl", "NO", "YES"}, {"wait/synch/mutex/x", "NO", "NO"}},
		threads:     []threadState{{1, "YES", "YES"}, {7, "NO", "NO"}, {9, "YES", "NO"}, {11, "NO", "YES"}},
	}
}

func TestPlan(t *testing.T) {
	statements, old := Plan(someState(), Connection{Thread: 7}, Wanted{})
	all := strings.Join(statements, "\n")
	for _, want := range []string{
		"threads SET INSTRUMENTED = 'NO', HISTORY = 'NO' WHERE PROCESSLIST_ID = CONNECTION_ID()",
		"threads SET INSTRUMENTED = 'YES', HISTORY = 'YES' WHERE THREAD_ID = 7",
		"threads SET HISTORY = 'NO' WHERE HISTORY = 'YES' AND THREAD_ID <= 11 AND THREAD_ID <> 7",
		"SET ENABLED = 'YES', TIMED = 'YES' WHERE NAME LIKE 'stage/%'",
		"SET ENABLED = 'YES', TIMED = 'YES' WHERE NAME LIKE 'wait/lock/%'",
		"setup_consumers SET ENABLED = 'YES' WHERE NAME IN ('events_statements_history_long', 'events_stages_current', 'events_waits_current')",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("the plan lacks %q:\n%s", want, all)
		}
	}
	if strings.Contains(all, "wait/synch") || strings.Contains(all, "statement/%") || strings.Contains(all, "statements_digest") {
		t.Errorf("the plan changes what it need not: want no \"wait/synch\" in it, no \"statement/%%\" in it, no \"statements_digest\" in it:\n%s", all)
	}
	if synch, _ := Plan(someState(), Connection{Thread: 7}, Wanted{Synch: true}); !strings.Contains(strings.Join(synch, "\n"), "wait/synch/%") {
		t.Error("--synch is not in the plan")
	}
	back := strings.Join(old.restore(), "\n")
	for _, want := range []string{
		"setup_consumers SET ENABLED = 'NO' WHERE NAME IN ('events_stages_current', 'events_statements_history_long', 'events_waits_current')",
		"SET ENABLED = 'NO', TIMED = 'NO' WHERE NAME IN ('stage/sql/a')", "SET ENABLED = 'YES', TIMED = 'NO' WHERE NAME IN ('stage/sql/b')",
		"SET ENABLED = 'NO', TIMED = 'YES' WHERE NAME IN ('wait/lock/metadata/sql/mdl')",
		"threads SET INSTRUMENTED = 'NO', HISTORY = 'NO' WHERE THREAD_ID IN (7)", "INSTRUMENTED = 'YES', HISTORY = 'YES' WHERE THREAD_ID IN (1)", "INSTRUMENTED = 'NO', HISTORY = 'YES' WHERE THREAD_ID IN (11)",
	} {
		if !strings.Contains(back, want) {
			t.Errorf("what is put back lacks %q:\n%s", want, back)
		}
	}
	if d := old.differs(someState()); len(d) != 0 {
		t.Errorf("the state as before differs: got %q, want none", d)
	}
	now := someState()
	now.consumers["events_waits_current"] = true
	now.instruments[0].Enabled = "YES"
	now.threads = now.threads[:1] // the others have ended
	now.threads[0].History = "NO"
	if d := old.differs(now); !slices.Equal(d, []string{"consumer events_waits_current", "instrument stage/sql/a", "thread 1"}) {
		t.Errorf("what differs is said to be %q, want []string{\"consumer events_waits_current\", \"instrument stage/sql/a\", \"thread 1\"}", d)
	}
	off := strings.Join(someState().off(Connection{}), "\n")
	for _, want := range []string{"not instrumented", "statements but the latest", "stages (the consumer events_stages_current is off)", "2 of 2 instruments (stage/%) are off"} {
		if !strings.Contains(off, want) {
			t.Errorf("what is off lacks %q:\n%s", want, off)
		}
	}
}

// A journal is a file: nothing in it may become another statement.
func TestJournalCannotInject(t *testing.T) {
	old := Old{Consumers: map[string]string{"x'; DROP TABLE t; --": "NO'; DROP TABLE t; --"}, Instruments: []Instrument{{"\\' OR 1=1", "YES", "x'"}}, Threads: []threadState{{1, "'", "'"}}}
	for _, s := range old.restore() {
		if strings.Contains(s, "DROP") || strings.Contains(s, "OR 1=1") || strings.Count(s, "'")%2 != 0 {
			t.Errorf("injected: got %s; want no \"DROP\" in it, no \"OR 1=1\" in it, strings.Count(s, \"'\") %% 2 0", s)
		}
	}
}

// TestBorrowed: one trace at a time of each server, and what it keeps on disk is read as it was written, also by an older Risso.
func TestBorrowed(t *testing.T) {
	dir, s := t.TempDir(), mysql.Of(fleet.Server{Seat: fleet.Seat{Hostname: "h", Port: 1, DataDir: "/d"}})
	_, old := Plan(someState(), Connection{Thread: 7}, Wanted{})
	if _, err := borrowed().Borrow(dir, mysql.Target{}, s, 42, old); err != nil {
		t.Fatal(err)
	}
	if _, err := borrowed().Borrow(dir, mysql.Target{}, s, 42, old); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "run risso trace --restore") {
		t.Errorf("a second trace of one server: %v, want ErrBusy and what to run", err)
	}
	if _, err := borrowed().Borrow(dir, mysql.Target{}, mysql.Of(fleet.Server{Seat: fleet.Seat{Hostname: "h", Port: 2, DataDir: "/d"}}), 42, old); err != nil {
		t.Errorf("a trace of another server: %v, want none", err)
	}
	a, err := json.Marshal(old)
	if err != nil {
		t.Fatal(err)
	}
	var again Old
	if err := json.Unmarshal(a, &again); err != nil || !reflect.DeepEqual(again, old) {
		t.Errorf("read %+v, %v, want %+v", again, err, old)
	}
	var older Old
	err = json.Unmarshal([]byte(`{"consumers":{"events_waits_current":"NO"},"instruments":[{"name":"stage/sql/a","enabled":"NO","timed":"NO"}],"threads":[{"id":7,"instrumented":"YES","history":"NO"}]}`), &older)
	want := Old{Consumers: map[string]string{"events_waits_current": "NO"}, Instruments: []Instrument{{"stage/sql/a", "NO", "NO"}}, Threads: []threadState{{7, "YES", "NO"}}}
	if err != nil || !reflect.DeepEqual(older, want) {
		t.Errorf("of an older Risso is read %+v, %v, want %+v", older, err, want)
	}
}
