package scenario_test

import (
	"context"
	sqldriver "database/sql/driver"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
)

// countersAgree: for a connection that is busy all the time nothing is reported missing that is not.
func (s *traced) countersAgree(t *testing.T) {
	r := s.launch(t, s.id, "--enable", "--for", "2s", "--output", "json")
	for ended := false; !ended; {
		s.exec(t, "SELECT f1(1)", "DO 1", "CALL p1(2)")
		select {
		case <-r.done:
			ended = true
		case <-time.After(time.Millisecond):
		}
	}
	res := s.result(t, r)
	if got := strings.Join(res.Notes, " "); strings.Contains(got, "The server counted") || len(res.Trace.Events) == 0 {
		t.Errorf("got %d events, missing %d; notes: %q; want no \"The server counted\" in it, len(res.Trace.Events) not 0",
			len(res.Trace.Events), res.Trace.Missing, got)
	}
}

// switchedOff: what somebody else switches off in the middle of a trace is missed by the server's counters.
func (s *traced) switchedOff(t *testing.T) {
	on := value(t, s.node, "SELECT COALESCE(GROUP_CONCAT(QUOTE(NAME)), '-') FROM performance_schema.setup_consumers WHERE ENABLED = 'YES'")
	defer func() {
		execSQL(t, s.node, "UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' WHERE NAME IN ("+on+")")
	}()
	r := s.begin(t, "--for", "10m", "--output", "json")
	execSQL(t, s.node, "UPDATE performance_schema.setup_consumers SET ENABLED = 'NO' WHERE NAME LIKE 'events\\_%'")
	counted := func() (n int) {
		if _, err := fmt.Sscan(value(t, s.node, "SELECT SUM(COUNT_STAR) FROM performance_schema.events_statements_summary_by_thread_by_event_name JOIN performance_schema.threads USING (THREAD_ID) WHERE PROCESSLIST_ID = "+s.id), &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := counted()
	s.exec(t, "SELECT 1", "SELECT 2", "SELECT 3")
	await(t, "the server has counted the statements, which it answers before", func() bool { return counted() >= before+3 })
	if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	res := s.result(t, r)
	if got, want := strings.Join(res.Notes, " "), "The server counted 3 statements of the connection more than its tables of events had"; !strings.Contains(got, want) {
		t.Errorf("notes: %q, not %q", got, want)
	}
	if strings.Contains(res.Words[0], "sent nothing") {
		t.Errorf("words: got %q, want no \"sent nothing\" in it", res.Words)
	}
}

// cutTexts: texts that the server cut are marked, others not: neither of one that is as long as may be, nor of one that only
// grew when it was converted to UTF-8.
func (s *traced) cutTexts(t *testing.T) {
	var limit int
	if _, err := fmt.Sscan(value(t, s.node, "SELECT @@performance_schema_max_sql_text_length"), &limit); err != nil {
		t.Fatal(err)
	}
	long := func(name, with string, bytes int) string {
		head := "SELECT /* " + name + " */ '"
		return head + strings.Repeat(with, (bytes-len(head)-1)/len(with)) + "'"
	}
	r := s.begin(t, "--for", "10m", "--output", "json")
	s.exec(t, long("as long as may be", "x", limit), long("one too long", "x", limit+1), long("wide letters", "\u20ac", 2*limit))
	s.exec(t, "SET NAMES latin1", long("grown", "\xe4", limit*6/10), "SET NAMES utf8mb4")
	if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	res := s.result(t, r)
	if !strings.Contains(strings.Join(res.Notes, " "), fmt.Sprintf("The server cut texts of statements at %d bytes", limit)) {
		t.Errorf("notes: got %q, want %q in it", res.Notes, fmt.Sprintf("The server cut texts of statements at %d bytes", limit))
	}
	for name, cut := range map[string]bool{"as long as may be": false, "one too long": true, "wide letters": true, "grown": false} {
		found := false
		for _, e := range res.Trace.Events {
			if e.Kind == "statement" && strings.Contains(e.SQL, "/* "+name+" */") {
				if found = true; e.Cut != cut {
					t.Errorf("%s: cut %t, %d bytes: …%s; want %t", name, e.Cut, len(e.SQL), e.SQL[max(0, len(e.SQL)-20):], cut)
				}
			}
		}
		if !found {
			t.Errorf("%s: not seen; %d events, missing %d, totals %+v, not recorded %q, notes %q, the server has %s", name, len(res.Trace.Events), res.Trace.Missing, res.Trace.Totals, res.Trace.NotRecorded, res.Notes,
				value(t, s.node, "SELECT COALESCE(GROUP_CONCAT(EVENT_ID, '-', COALESCE(END_EVENT_ID, 0), ' ', LEFT(SQL_TEXT, 40)), '') FROM performance_schema.events_statements_history_long WHERE THREAD_ID = (SELECT THREAD_ID FROM performance_schema.threads WHERE PROCESSLIST_ID = "+s.id+")"))
		}
	}
}

// begunBefore: a statement that had begun before the trace is marked as such, whether the server has an event of it or not.
func (s *traced) begunBefore(t *testing.T) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = s.conn.ExecContext(context.WithoutCancel(t.Context()), "SELECT SLEEP(600), 'begun'") // until it is killed
	}()
	await(t, "the statement has run for two seconds", func() bool {
		return value(t, s.node, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep' AND TIME >= 2 AND ID = "+s.id) == "1"
	})
	res := s.result(t, s.launch(t, s.id, "--enable", "--for", "1s", "--output", "json"))
	execSQL(t, s.node, "KILL QUERY "+s.id)
	<-done
	words := strings.Join(res.Words, " ")
	if !regexp.MustCompile(`was in a statement that had begun before the trace, and that the server does not record: SELECT SLEEP\(600\), 'begun' \(User sleep, for|(100|99\.\d+) % of that was spent in a statement that had begun earlier`).MatchString(words) {
		t.Errorf("words: %s", words)
	}
	if busy := float64(res.Map.Busy) * 1e-12; busy != 0 && (busy < res.Trace.Seconds*0.9 || busy > res.Trace.Seconds*1.0001) || res.Trace.Missing != 0 {
		t.Errorf("busy for %g of %g s, %d events missing", busy, res.Trace.Seconds, res.Trace.Missing)
	}
}

// stillRuns: a statement that runs when the trace ends counts until then, however seldom its events were read.
func (s *traced) stillRuns(t *testing.T) {
	r := s.begin(t, "--for", "10m", "--output", "json")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = s.conn.ExecContext(context.WithoutCancel(t.Context()), "SELECT SLEEP(600), 'still'") // until it is killed
	}()
	runs := func(seconds int) {
		await(t, "the statement runs", func() bool {
			return value(t, s.node, fmt.Sprintf("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep' AND TIME >= %d AND ID = %s", seconds, s.id)) == "1"
		})
	}
	runs(0)
	from := time.Now()
	runs(2)
	least := time.Since(from)
	if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	res := s.result(t, r)
	execSQL(t, s.node, "KILL QUERY "+s.id)
	<-done
	m := res.find(t, "'still'")
	if total := time.Duration(m.Total / 1000); total < least/2 {
		t.Errorf("it ran for at least %s, and is said to have taken %s; want at least %s", least, total, least/2)
	}
	for _, root := range res.Map.Statements {
		root.find(func(n *mapNode) bool {
			if n.Total > res.Map.Busy {
				t.Errorf("%s%s took %d of the %d ps in which the connection was busy", n.Name, n.SQL, n.Total, res.Map.Busy)
			}
			return false
		})
	}
	if words := strings.Join(res.Words, " "); float64(res.Map.Busy)*1e-12 > res.Trace.Seconds*1.0001 || !strings.Contains(words, "still ran when the trace ended") || !strings.Contains(words, "sleeping on request") {
		t.Errorf("busy for %d ps of %g s: got %s; want float64(res.Map.Busy) * 1e-12 at most %v, \"still ran when the trace ended\" in it, \"sleeping on request\" in it",
			res.Map.Busy, res.Trace.Seconds, words, res.Trace.Seconds*1.0001)
	}
	for _, e := range res.Trace.Events {
		if strings.Contains(e.SQL, "'still'") && !e.Running {
			t.Errorf("it is not said to run: %+v", e)
		}
	}
}

// notPutBack: a trace that could not put everything back says so in its exit code and in its report, and --restore does it.
func (s *traced) notPutBack(t *testing.T) {
	before := s.setup(t)
	execSQL(t, s.node, "CREATE USER half@localhost IDENTIFIED BY 'x'; GRANT PROCESS ON *.* TO half@localhost; GRANT SELECT, UPDATE ON performance_schema.* TO half@localhost")
	r := launch(t, s.env, "trace", "--dsn", fmt.Sprintf("half:x@unix(%s)/", s.node.Socket), s.id, "--enable", "--for", "10m", "--output", "json")
	await(t, "all is switched on", func() bool {
		return value(t, s.node, "SELECT ENABLED FROM performance_schema.setup_consumers WHERE NAME = 'events_waits_history_long'") == "YES"
	})
	execSQL(t, s.node, "REVOKE UPDATE ON performance_schema.* FROM half@localhost")
	for range 5 { // so that one of them is recorded
		s.exec(t, "SELECT f1(1)")
		time.Sleep(300 * time.Millisecond)
	}
	_ = s.conn.Raw(func(any) error { return sqldriver.ErrBadConn }) // which ends the trace
	code := r.code(t)
	var res traceResult
	if err := json.Unmarshal([]byte(r.out.String()), &res); err != nil {
		t.Fatalf("%v in %s, %s", err, r.out, r.err)
	}
	if notes := strings.Join(res.Notes, " "); code != 1 || !strings.Contains(r.err.String(), "run risso trace --restore") || !strings.Contains(notes, "could not be put back (risso trace --restore does it)") {
		t.Errorf("exit code %d: got %s; notes: %s; want code 1, \"run risso trace --restore\" in it, \"could not be put back (risso trace --restore does it)\" in it",
			code, r.err, notes)
	}
	back := s.launch(t, "--restore")
	if code := back.code(t); code != 0 {
		t.Errorf("--restore: exit code %d: got %s, want 0", code, back.err)
	}
	s.same(t, before)
	s.connect(t)
}

// closedWithoutRings: what a connection did last is gone with it if the server keeps no ring for all; that is reported.
func (s *traced) closedWithoutRings(t *testing.T) {
	if s.node.Program.Family == sandbox.FamilyMariaDB { // records nothing by default
		return
	}
	polled := "SELECT COUNT(*) FROM performance_schema.events_statements_history WHERE SQL_TEXT LIKE 'SELECT /* risso: does the connection live%'"
	r := s.launch(t, s.id, "--for", "5m", "--output", "json")
	await(t, "the trace polls", func() bool { return value(t, s.node, polled) != "0" })
	execSQL(t, s.node, "KILL "+s.id)
	res := s.result(t, r)
	if notes := strings.Join(res.Notes, " "); res.Trace.Ended != "connection" || !strings.Contains(notes, "What it did in the last moments before it closed is lost: events_statements_history_long is off.") || strings.Contains(notes, "was changed for the trace") {
		t.Errorf("ended by %s, notes: got %s; want res.Trace.Ended \"connection\", \"What it did in the last moments before it closed is lost: events_statements_history_long is off.\" in it, no \"was changed for the trace\" in it",
			res.Trace.Ended, notes)
	}
	s.conn.Close()
	s.connect(t)
}

// blind: where statements are not recorded, it is not said that none was sent.
func (s *traced) blind(t *testing.T) {
	execSQL(t, s.node, "UPDATE performance_schema.setup_instruments SET ENABLED = 'NO' WHERE NAME LIKE 'statement/%'; UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' WHERE NAME = 'events_statements_current'")
	r := s.launch(t, s.id, "--for", "1s", "--output", "json")
	for ended := false; !ended; {
		s.exec(t, "DO 1")
		select {
		case <-r.done:
			ended = true
		case <-time.After(100 * time.Millisecond):
		}
	}
	if res := s.result(t, r); !strings.Contains(res.Words[0], "Nothing that connection "+s.id) && !strings.Contains(res.Words[0], "that the server does not record") {
		t.Errorf("words: %q", res.Words)
	}
}
