package trace

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// drawAll writes a report in every form; drawings have to be well-formed XML without scripts or anything fetched.
func drawAll(t *testing.T, r *Report) (text, line, graph, dot string) {
	t.Helper()
	var a, b, c, d strings.Builder
	if err := errors.Join(r.WriteText(&a, TextOptions{All: true}), r.WriteTimelineSVG(&b), r.WriteMapSVG(&c), r.WriteDOT(&d)); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{b.String(), c.String()} {
		dec := xml.NewDecoder(strings.NewReader(s))
		for {
			tok, err := dec.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("not XML: %v in\n%s", err, s)
			}
			if e, ok := tok.(xml.StartElement); ok {
				switch e.Name.Local {
				case "svg", "title", "style", "rect", "text", "line", "path":
				default:
					t.Fatalf("element %s in\n%s", e.Name.Local, s)
				}
			}
		}
	}
	if _, err := json.Marshal(r); err != nil {
		t.Fatal(err)
	}
	return a.String(), b.String(), c.String(), d.String()
}

// called is a call of a function that names two tables and uses one.
func called(first uint64, sql string) []Event {
	f := &Program{"FUNCTION", "shop", "f"}
	at := func(n uint64) uint64 { return first*1e8 + n*1e6 }
	lock := func(id uint64, table string) Event { // one after the other
		return Event{Kind: KindWait, ID: id, End: id, Name: "wait/lock/table/sql/handler", Start: at(10 + id - first), Stop: at(11 + id - first), Operation: "read external", Object: &Object{"TABLE", "shop", table, "PRIMARY"}, Nesting: 1}
	}
	return []Event{
		{Kind: KindStatement, ID: first, End: first + 8, Name: "statement/sql/select", SQL: sql, Start: at(0), Stop: at(50)},
		{Kind: KindStage, ID: first + 1, End: first + 3, Name: "stage/sql/Opening tables", Start: at(1), Stop: at(21), Nesting: first},
		lock(first+2, "used"), lock(first+3, "dead"),
		{Kind: KindStage, ID: first + 4, End: first + 5, Name: "stage/sql/executing", Start: at(21), Stop: at(26), Nesting: first + 5},
		{Kind: KindStatement, ID: first + 5, End: first + 6, Name: "statement/sp/jump_if_not", Program: f, Level: 1, Start: at(25), Stop: at(28)},
		{Kind: KindStage, ID: first + 6, End: first + 6, Name: "stage/sql/Opening tables", Start: at(26), Stop: at(27), Nesting: first + 5},
		{Kind: KindStatement, ID: first + 7, End: first + 8, Name: "statement/sp/freturn", Program: f, Level: 1, Start: at(30), Stop: at(40)},
		{Kind: KindWait, ID: first + 8, End: first + 8, Name: "wait/io/table/sql/handler", Start: at(31), Stop: at(39), Operation: "fetch", Object: &Object{"TABLE", "shop", "used", "PRIMARY"}, Nesting: 1},
	}
}

var bodies = map[string]string{"FUNCTION shop.f": "BEGIN\n  IF p < 0 THEN\n    SELECT a INTO x FROM `dead`;\n  END IF;\n  RETURN (SELECT a FROM used);\nEND"}

func TestTablesOpenedForNothing(t *testing.T) {
	r := NewReport(&Trace{Events: append(called(1, "SELECT f(1)"), called(10, "SELECT f(2)")...), Seconds: 1, Bodies: bodies}, false)
	if len(r.Map.Roots) != 1 || r.Map.Roots[0].Count != 2 || r.Map.Roots[0].Whole != 2 {
		t.Fatalf("the two calls are not one kind of statement: %+v; want len(r.Map.Roots) 1, r.Map.Roots[0].Count 2, r.Map.Roots[0].Whole 2", r.Map.Roots)
	}
	uses := r.Map.Roots[0].Tables
	if len(uses) != 2 || !uses[0].Unused() || uses[0].Table != "shop.dead" || uses[0].Opened != 2 || uses[1].Unused() || uses[1].Used != 2 {
		t.Errorf("tables: got %+v; want len(uses) 2, uses[0].Unused() true, uses[0].Table \"shop.dead\", uses[0].Opened 2, uses[1].Unused() false, uses[1].Used 2",
			uses)
	}
	if w := uses[0].Where; len(w) != 1 || w[0] != (Place{"shop.f", 3}) {
		t.Errorf("named in %v; want len(w) 1, w[0] Place{\"shop.f\", 3}", w)
	}
	words := strings.Join(r.Words, "\n")
	for _, want := range []string{"shop.dead (1 of 2 tables) in 2 calls", "shop.f (line 3) names it", "took 20 µs of its 50 µs (40 %)", "with 2 statements", "The 2 conditions that shop.f evaluated took 6 µs, 23 % of its own time; 2 µs of that for opening tables"} {
		if !strings.Contains(words, want) {
			t.Errorf("the words lack %q:\n%s", want, words)
		}
	}
	program := r.Map.Roots[0].calls()
	if len(program) != 1 || program[0].Kind != "program" || program[0].Count != 2 || len(program[0].Children) != 2 {
		t.Errorf("the function is not in the map: %+v; want len(program) 1, program[0].Kind \"program\", program[0].Count 2, len(program[0].Children) 2",
			program)
	}
	sum := 0.0
	for _, p := range r.Phases {
		sum += p.Seconds
	}
	if busy := float64(r.Map.Busy) * 1e-12; sum < busy*0.999 || sum > busy*1.001 {
		t.Errorf("the phases sum to %g of %g, want from %v to %v", sum, busy, busy*0.999, busy*1.001)
	}
}

// What may have happened in events that are missing is not called unused.
func TestNothingIsSaidOfWhatWasNotSeen(t *testing.T) {
	events := called(1, "SELECT f(1)")
	events = append(events[:7], events[8]) // the instruction that used the table is missing
	if r := NewReport(&Trace{Events: events}, false); r.Map.Roots[0].deadTables() != 0 || r.Trace.Events[0].ID != 1 {
		t.Errorf("said of a statement of which an event is missing: %+v; want r.Map.Roots[0].deadTables() 0, r.Trace.Events[0].ID 1",
			r.Map.Roots[0].Tables)
	}
	// A table that a statement names was used, also when the engine counted its rows without reading them.
	if r := NewReport(&Trace{Events: called(1, "SELECT f(1), (SELECT COUNT(*) FROM dead)")}, false); r.Map.Roots[0].deadTables() != 0 {
		t.Errorf("a table that the statement names is called unused: %+v, want r.Map.Roots[0].deadTables() 0", r.Map.Roots[0].Tables)
	}
}

// A query in an expression has no text, and MySQL 8 counts rows without saying so.
func TestSilentQueries(t *testing.T) {
	events := called(1, "SELECT f(1)")
	events[6].Name = "stage/sql/executing"
	if r := NewReport(&Trace{Events: events}, false); r.Map.Roots[0].deadTables() != 0 || r.Map.Roots[0].Whole != 1 {
		t.Errorf("a table that a silent query may have used is called unused: %+v; want r.Map.Roots[0].deadTables() 0, r.Map.Roots[0].Whole 1",
			r.Map.Roots[0].Tables)
	}
}

func TestHostileTexts(t *testing.T) {
	evil := "SELECT '</text><script>alert(1)</script>' /* \x00\x1b[31m \xff ]]> & \" ' \u202e \n */ FROM \"x\\\""
	events := called(1, evil)
	events[8].Object.Name = evil
	events[5].Program.Name = evil
	tr := &Trace{Events: events, Seconds: 1, Server: evil, Connection: Connection{User: evil, Host: evil}, Began: time.Unix(0, 0), Totals: []Total{{evil, 1, 1}}, NotRecorded: []string{evil}}
	text, line, graph, dot := drawAll(t, NewReport(tr, false))
	for _, s := range []string{text, line, graph, dot} {
		if strings.ContainsAny(s, "\x00\x1b") || strings.Contains(s, "\u202e") {
			t.Errorf("a control character came through: want strings.ContainsAny(s, \"\\x00\\x1b\") false, no \"\\u202e\" in it:\n%q", s)
		}
	}
	for _, s := range []string{line, graph} {
		if strings.Contains(s, "<script") {
			t.Error("markup came through")
		}
	}
}

func TestRedaction(t *testing.T) {
	events := called(1, "SELECT f('topsecret')")
	events[0].Message = "Duplicate entry 'topsecret' for key 'x'"
	events[0].Errno = 1062
	r := NewReport(&Trace{Events: events, Seconds: 1, Bodies: map[string]string{"FUNCTION shop.f": "BEGIN SELECT 'topsecret' FROM dead; END"}, Connection: Connection{Info: "SELECT 'topsecret'"}}, true)
	text, line, graph, dot := drawAll(t, r)
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range []string{text, line, graph, dot, string(b)} {
		if strings.Contains(s, "topsecret") {
			t.Errorf("form %d shows the literal, want no \"topsecret\" in it", i)
		}
	}
	if !strings.Contains(text, "f(?)") || !strings.Contains(text, "shop.dead") {
		t.Errorf("too much is hidden: want \"f(?)\" in it, \"shop.dead\" in it:\n%s", text)
	}
	for _, sql := range []string{"CREATE USER a IDENTIFIED BY 'topsecret'", "SET PASSWORD FOR a = 'topsecret'", "ALTER USER a IDENTIFIED BY 'topsecret' REQUIRE SSL"} {
		if s := guard(sql); strings.Contains(s, "topsecret") {
			t.Errorf("a password comes through: %s, want no \"topsecret\" in it", s)
		}
	}
	if s := guard("SELECT 'x'"); s != "SELECT 'x'" {
		t.Errorf("guard changes %s, want \"SELECT 'x'\"", s)
	}
}

func TestEmptyTrace(t *testing.T) {
	r := NewReport(&Trace{Seconds: 1, Connection: Connection{ID: 3}}, false)
	text, _, _, _ := drawAll(t, r)
	if !strings.Contains(text, "Connection 3 () sent nothing in 1 s.") {
		t.Errorf("got %v, want \"Connection 3 () sent nothing in 1 s.\" in it", text)
	}
	if b, _ := json.Marshal(r); strings.Contains(string(b), "null") {
		t.Errorf("a list is null: %s, want no \"null\" in it", b)
	}
	for seconds, before := range map[float64]bool{0: false, 9: true} { // since when the connection is in a statement of which there is no event
		r = NewReport(&Trace{Seconds: 5, After: &Connection{Command: "Query", Info: "SELECT SLEEP(9)", State: "User sleep", Seconds: seconds}}, false)
		if text, _, _, _ := drawAll(t, r); strings.Contains(text, "had begun before the trace") != before || !strings.Contains(strings.Join(strings.Fields(text), " "), "that the server does not record: SELECT SLEEP(9)") {
			t.Errorf("got %v; want strings.Contains(text, \"had begun before the trace\") %v, \"that the server does not record: SELECT SLEEP(9)\" in strings.Join(strings.Fields(text), \" \")",
				text, before)
		}
	}
	r = NewReport(&Trace{Seconds: 1, Connection: Connection{ID: 3}, partly: true}, false)
	if text, _, _, _ := drawAll(t, r); !strings.Contains(text, "Nothing that connection 3 () may have sent in 1 s was recorded.") {
		t.Errorf("got %v, want \"Nothing that connection 3 () may have sent in 1 s was recorded.\" in it", text)
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		text, name string
		at         int
	}{{"FROM archive1 a", "archive1", 5}, {"FROM archive10", "archive1", -1}, {"`Archive1`", "archive1", 1}, {"xarchive1 archive1", "archive1", 10}, {"", "a", -1}, {"a", "", -1}} {
		if got := wordAt(c.text, c.name); got != c.at {
			t.Errorf("%q in %q is at %d, not %d", c.name, c.text, got, c.at)
		}
	}
	for ps, want := range map[uint64]string{0: "0 s", 640e3: "640 ns", 38.2e6: "38.2 µs", 4.2e9: "4.2 ms", 1.93e12: "1.93 s", 600e12: "10 min"} {
		if got := human(ps); got != want {
			t.Errorf("%d ps is %q, not %q", ps, got, want)
		}
	}
}

// What still runs counts until the end of the trace and from its begin, with its waits, whose clock is another; the numbers of what
// was over before are not missing.
func TestRunningToTheEnd(t *testing.T) {
	r := NewReport(&Trace{Seconds: 4e-3, Zero: 3e9, Now: 7e9, known: 12, Events: []Event{
		{Kind: KindStatement, ID: 5, Name: "statement/sql/update", SQL: "UPDATE t SET a = 1", Start: 1e9, Stop: 7e9, Running: true},
		{Kind: KindStage, ID: 12, Name: "stage/sql/updating", Start: 2e9, Stop: 7e9, Running: true, Nesting: 5},
		{Kind: KindWait, ID: 13, Name: "wait/io/table/sql/handler", Start: 2e9, Stop: 90e9, Running: true, Nesting: 12, Operation: "update", Object: &Object{"TABLE", "shop", "t", ""}},
	}}, false)
	text, _, _, _ := drawAll(t, r)
	for _, want := range []string{"was busy for 4 ms of 4 ms, with 1 statement, which still ran when the trace ended.", "  100 %        4 ms        4 ms        1      ~ table io update shop.t", "[still running]"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	if r.Map.Busy != 4e9 || r.Trace.Missing != 0 {
		t.Errorf("busy for %d ps, %d events missing; want r.Map.Busy 4e9, r.Trace.Missing 0", r.Map.Busy, r.Trace.Missing)
	}
}

// A statement that the server began to record midway had run since the trace began, and runs on while the connection is busy.
func TestKnownByItsParts(t *testing.T) {
	trace := func(until, since uint64) *Trace {
		return &Trace{Seconds: 4e-3, Zero: 3e9, Now: 7e9, busyBefore: until, busyAfter: since, Events: []Event{
			{Kind: KindStage, ID: 1, End: 1, Name: "stage/sql/Sending data", Start: 5e9, Stop: 6e9, Nesting: 7},
		}}
	}
	for _, c := range []struct{ until, since, busy uint64 }{{0, 0, 1e9}, {7e9, 0, 3e9}, {4e9, 0, 1e9}, {0, 3e9, 2e9}, {7e9, 3e9, 4e9}, {0, 6.5e9, 1e9}} {
		if r := NewReport(trace(c.until, c.since), false); r.Map.Busy != c.busy || !strings.Contains(r.Words[0], "with 1 statement known only by its parts") {
			t.Errorf("busy before until %d, since %d: got %d ps, not %d: %s; want r.Map.Busy %d, \"with 1 statement known only by its parts\" in it",
				c.until, c.since, r.Map.Busy, c.busy, r.Words[0], c.busy)
		}
	}
}
