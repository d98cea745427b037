package scenario_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// traced is a server with stored programs, and a connection on it that is traced.
type traced struct {
	node *sandbox.Node
	db   *sql.DB
	conn *sql.Conn
	id   string
	env  []string
	home string
}

// The branches of f1 and f4 that name archive… do not run: p is never negative.
const branch = "IF p < -%[1]d THEN\n    SELECT SUM(v) INTO r FROM archive%[1]d;\n  END IF;\n  "

func deadFunction(n int) string {
	s := fmt.Sprintf("CREATE FUNCTION f%d(p INT) RETURNS INT READS SQL DATA\nBEGIN\n  DECLARE r INT DEFAULT 0;\n  ", n)
	for i := range n {
		s += fmt.Sprintf(branch, i+1)
	}
	return s + "SELECT COUNT(*) INTO r FROM orders WHERE customer = p;\n  RETURN r;\nEND"
}

func newTraced(t *testing.T, kind string) *traced {
	t.Helper()
	// MariaDB's rings hold 1,000 events by default: too few for a test that wants all of them.
	n := single(t, kind, "performance_schema=ON", "performance_schema_events_statements_history_long_size=10000",
		"performance_schema_events_stages_history_long_size=10000", "performance_schema_events_waits_history_long_size=10000")
	home := tempDir(t)
	s := &traced{node: n, home: home, env: environment(home, "XDG_STATE_HOME="+home)}
	config := n.Config()
	config.MultiStatements = true
	connector, err := mysqldriver.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	s.db = sql.OpenDB(connector)
	t.Cleanup(func() { s.db.Close() })
	for _, q := range []string{
		"CREATE DATABASE shop", "USE shop",
		"CREATE TABLE orders (id INT PRIMARY KEY AUTO_INCREMENT, customer INT, total DECIMAL(10,2), note VARCHAR(100), KEY(customer))",
		"CREATE TABLE archive1 (id INT PRIMARY KEY, v INT)", "CREATE TABLE archive2 LIKE archive1", "CREATE TABLE archive3 LIKE archive1", "CREATE TABLE archive4 LIKE archive1",
		"CREATE TABLE audit (id INT PRIMARY KEY AUTO_INCREMENT, what VARCHAR(100))",
		"INSERT INTO orders (customer, total, note) VALUES (1,10,'a'),(2,20,'b'),(3,30,'c')",
		"INSERT INTO orders (customer, total, note) SELECT a.id, b.total, 'x' FROM orders a, orders b, orders c, orders d, orders e",
		deadFunction(0), deadFunction(1), deadFunction(4),
		"CREATE TRIGGER orders_ai AFTER INSERT ON orders FOR EACH ROW BEGIN\n  IF NEW.total > 1000 THEN\n    INSERT INTO archive1 VALUES (NEW.id, 1);\n  END IF;\n  INSERT INTO audit (what) VALUES (CONCAT('order ', NEW.id));\nEND",
		"CREATE FUNCTION fc() RETURNS INT READS SQL DATA\nBEGIN\n  IF (SELECT COUNT(*) FROM archive1) > 5 THEN\n    RETURN 1;\n  END IF;\n  RETURN (SELECT COUNT(*) FROM audit);\nEND",
		"CREATE PROCEDURE p1(n INT) BEGIN\n  DECLARE i INT DEFAULT 0;\n  WHILE i < n DO\n    SET @x = f4(i);\n    SET i = i + 1;\n  END WHILE;\nEND",
	} {
		s.db.SetMaxOpenConns(1) // for USE
		if _, err := s.db.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	s.db.SetMaxOpenConns(0)
	s.connect(t)
	return s
}

// connect opens the connection to be traced.
func (s *traced) connect(t *testing.T) {
	t.Helper()
	var err error
	if s.conn, err = s.db.Conn(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.conn.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&s.id); err != nil {
		t.Fatal(err)
	}
	s.exec(t, "USE shop")
}

func (s *traced) exec(t *testing.T, queries ...string) {
	t.Helper()
	for _, q := range queries {
		rows, err := s.conn.QueryContext(t.Context(), q)
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		for rows.Next() {
		}
		for rows.NextResultSet() {
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *traced) launch(t *testing.T, args ...string) *risso {
	t.Helper()
	return launch(t, s.env, append([]string{"trace", "--dsn", fmt.Sprintf("root@unix(%s)/", s.node.Socket)}, args...)...)
}

// setup is all that performance_schema can be set to, as text: tables by name, threads by number.
func (s *traced) setup(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, q := range []string{"SELECT * FROM performance_schema.setup_instruments ORDER BY NAME", "SELECT * FROM performance_schema.setup_consumers ORDER BY NAME",
		"SELECT * FROM performance_schema.setup_actors ORDER BY 1, 2", "SELECT * FROM performance_schema.setup_objects ORDER BY 1, 2, 3"} {
		var b strings.Builder
		for _, row := range execSQL(t, s.node, q)[0].Rows {
			for _, v := range row {
				if v == nil {
					b.WriteString("NULL\t")
				} else {
					b.WriteString(*v + "\t")
				}
			}
			b.WriteByte('\n')
		}
		out[q] = b.String()
	}
	for _, row := range execSQL(t, s.node, "SELECT THREAD_ID, CONCAT(NAME, ' ', INSTRUMENTED, ' ', HISTORY) FROM performance_schema.threads WHERE NOT PROCESSLIST_ID <=> CONNECTION_ID()")[0].Rows {
		out["thread "+*row[0]] = *row[1]
	}
	return out
}

// same fails when something is set otherwise than before; threads come and go.
func (s *traced) same(t *testing.T, before map[string]string) {
	t.Helper()
	now := s.setup(t)
	for key, want := range before {
		got, there := now[key]
		if strings.HasPrefix(key, "thread ") && !there {
			continue
		}
		if got != want {
			w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
			for i := range min(len(w), len(g)) {
				if w[i] != g[i] {
					t.Errorf("not put back: %s: %q was %q, want g[i]", key, g[i], w[i])
				}
			}
		}
	}
}

// begin starts a trace with a terminal for its progress, and waits until it polls.
func (s *traced) begin(t *testing.T, args ...string) *risso {
	t.Helper()
	master, slave := terminal(t)
	r := &risso{cmd: exec.Command(binary, append([]string{"trace", "--dsn", fmt.Sprintf("root@unix(%s)/", s.node.Socket), s.id, "--enable"}, args...)...), out: &buffer{}, err: &buffer{}, done: make(chan struct{})}
	r.cmd.Env, r.cmd.Stdout, r.cmd.Stderr = s.env, r.out, slave
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	go func() { _, _ = io.Copy(r.err, master) }() // ends with an error when the program has ended
	go func() { defer close(r.done); _ = r.cmd.Wait() }()
	t.Cleanup(func() { r.kill(t); master.Close() })
	await(t, "the trace polls", func() bool { return strings.Contains(r.err.String(), " event") })
	return r
}

// terminal makes a pseudo-terminal.
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}

// mapNode and result are what the tests read of --output json.
type mapNode struct {
	Kind, Name, SQL string
	Count, Whole    int
	Total           uint64 `json:"total_ps"`
	Tables          []struct {
		Table        string
		Opened, Used int
		Where        []struct {
			Program string
			Line    int
		}
	}
	Conditions *struct {
		Count int
		Total uint64 `json:"total_ps"`
		Open  uint64 `json:"open_ps"`
	}
	Children []*mapNode
}

type traceEvent struct {
	Kind, Name, SQL string
	Cut             bool `json:"sql_cut"`
	Running         bool
}

type traceResult struct {
	Words []string
	Notes []string
	Map   struct {
		Statements []*mapNode
		Busy       uint64 `json:"busy_ps"`
	}
	Trace struct {
		Ended       string
		Seconds     float64
		Missing     uint64
		Events      []traceEvent
		NotRecorded []string `json:"not_recorded"`
		Totals      []struct {
			Name  string
			Count uint64
		}
		Cost struct{ Polls int }
	}
}

func (s *traced) result(t *testing.T, r *risso) traceResult {
	t.Helper()
	if code := r.code(t); code != 0 {
		t.Fatalf("exit code %d: got %s, want 0", code, r.err)
	}
	var res traceResult
	if err := json.Unmarshal([]byte(r.out.String()), &res); err != nil {
		t.Fatalf("%v in %s", err, r.out)
	}
	return res
}

func (m *mapNode) find(f func(*mapNode) bool) *mapNode {
	if f(m) {
		return m
	}
	for _, c := range m.Children {
		if n := c.find(f); n != nil {
			return n
		}
	}
	return nil
}

func (res traceResult) find(t *testing.T, what string) *mapNode {
	t.Helper()
	for _, m := range res.Map.Statements {
		if n := m.find(func(n *mapNode) bool { return strings.Contains(n.SQL, what) || strings.Contains(n.Name, what) }); n != nil {
			return n
		}
	}
	t.Fatalf("%q is not in the map; words: %s", what, res.Words)
	return nil
}

// unused lists the tables that were opened for nothing, with the lines that name them.
func (m *mapNode) unused() (out []string) {
	for _, u := range m.Tables {
		if u.Opened > 0 && u.Used == 0 {
			s := u.Table
			for _, w := range u.Where {
				s += fmt.Sprintf(" %s:%d", w.Program, w.Line)
			}
			out = append(out, s)
		}
	}
	return out
}

func TestTrace(t *testing.T) {
	t.Parallel()
	eachKind(t, kinds, func(t *testing.T, kind string) {
		s := newTraced(t, kind)
		t.Run("what ran", s.whatRan)
		t.Run("latches", s.latches)
		t.Run("nothing changed without enable", s.notEnabled)
		t.Run("forms", s.forms)
		t.Run("idle", s.idleConnection)
		t.Run("interrupted", s.interrupted)
		t.Run("interrupted at once", s.interruptedAtOnce)
		t.Run("killed", s.killed)
		t.Run("killed at once", s.killedAtOnce)
		t.Run("lost connection", s.lostConnection)
		t.Run("no privilege", s.noPrivilege)
		t.Run("overflow", s.overflow)
		t.Run("connection ends", s.connectionEnds)
		t.Run("candidates", s.candidates)
		t.Run("cut texts", s.cutTexts)
		t.Run("counters agree", s.countersAgree)
		t.Run("switched off", s.switchedOff)
		t.Run("begun before", s.begunBefore)
		t.Run("still runs", s.stillRuns)
		t.Run("not put back", s.notPutBack)
		t.Run("closed without rings", s.closedWithoutRings)
		t.Run("statements not recorded", s.blind) // leaves them so
	})
}

// whatRan: dead branches, triggers, sorts and temporary tables are in the map, with what was opened for nothing.
func (s *traced) whatRan(t *testing.T) {
	before := s.setup(t)
	r := s.begin(t, "--for", "4s", "--output", "json")
	s.exec(t, "SELECT f0(1)", "SELECT f1(1)", "SELECT f4(1)", "SELECT fc()", "CALL p1(20)", "INSERT INTO orders (customer, total, note) VALUES (7, 70, 't')",
		"SELECT customer, COUNT(*) c FROM orders GROUP BY customer, total ORDER BY c DESC, customer LIMIT 5")
	s.exec(t, "CREATE USER u@localhost IDENTIFIED BY '"+secret+"'", "SELECT 1; ALTER USER u@localhost IDENTIFIED BY '"+secret+"'", "DROP USER u@localhost")
	res := s.result(t, r)
	s.same(t, before)
	if strings.Contains(r.out.String(), secret) {
		t.Errorf("the trace shows a password: %s", regexp.MustCompile(".*"+regexp.QuoteMeta(secret)+".*").FindString(r.out.String()))
	}
	for what, want := range map[string][]string{
		"f0(": nil,
		"fc(": nil, // MySQL counts the rows of both tables without reporting that it reads them
		"f1(": {"shop.archive1 shop.f1:5"},
		// The procedure's own statement opens the tables, at each call.
		"SET @x = f4(i)":     {"shop.archive1 shop.f4:5", "shop.archive2 shop.f4:8", "shop.archive3 shop.f4:11", "shop.archive4 shop.f4:14"},
		"INSERT INTO orders": {"shop.archive1 shop.orders_ai:3"},
	} {
		n := res.find(t, what)
		got := n.unused()
		for i := range got { // the body begins on the line after CREATE on some servers
			got[i] = strings.TrimSpace(got[i])
		}
		if !sameButLines(got, want) {
			t.Errorf("%s opened for nothing %q, not %q; words: %s", what, got, want, res.Words)
		}
		if n.Whole == 0 {
			t.Errorf("%s was not seen whole, want n.Whole not 0", what)
		}
	}
	if n := res.find(t, "SET @x = f4(i)"); n.Count != 20 || n.Whole != 20 {
		t.Errorf("the procedure's statement ran 20 times; seen %d, whole %d; want n.Count 20, n.Whole 20", n.Count, n.Whole)
	}
	if n := res.find(t, "FUNCTION shop.f4"); n.Kind != "program" || n.find(func(n *mapNode) bool { return n.Name == "sp/jump_if_not" }) == nil {
		t.Errorf("the function's instructions are not in the map: %+v; want Kind \"program\", find(func(n *mapNode) bool { return n.Name == \"sp/jump_if_not\" }) not nil",
			n)
	}
	// A dead branch costs a condition in each call, and that goes through opening tables.
	if n := res.find(t, "SET @x = f4(i)").find(func(n *mapNode) bool { return n.Name == "FUNCTION shop.f4" }); n == nil || n.Conditions == nil || n.Conditions.Count != 80 || n.Conditions.Total == 0 || n.Conditions.Open == 0 {
		t.Errorf("20 calls of four conditions are told as %+v; want n not nil, Conditions not nil, Conditions.Count 80, Conditions.Total not 0, Conditions.Open not 0",
			n)
	}
	if n := res.find(t, "FUNCTION shop.f0"); n.Conditions != nil {
		t.Errorf("a function without a branch has conditions: %+v, want nil", n.Conditions)
	}
	if words := strings.Join(res.Words, " "); !strings.Contains(words, "conditions that shop.f4 evaluated took") {
		t.Errorf("what conditions cost is not said: %s, want \"conditions that shop.f4 evaluated took\" in it", words)
	}
	if n := res.find(t, "TRIGGER shop.orders_ai"); n.find(func(n *mapNode) bool { return strings.Contains(n.SQL, "INSERT INTO audit") }) == nil {
		t.Errorf("the trigger's statement is not in the map: %+v, want find(func(n *mapNode) bool { return strings.Contains(n.SQL, \"INSERT INTO audit\") }) not nil",
			n)
	}
	sorted := res.find(t, "GROUP BY customer").find(func(n *mapNode) bool {
		low := strings.ToLower(n.Name)
		return n.Kind == "stage" && (strings.Contains(low, "sort") || strings.Contains(low, "tmp table"))
	})
	if sorted == nil {
		t.Errorf("no stage of the GROUP BY tells of its sort or temporary table")
	}
	if off := res.Trace.NotRecorded; len(off) > 0 {
		t.Errorf("--enable leaves unrecorded: %q, want none", off)
	}
	if res.Trace.Missing > 5 || res.Trace.Ended != "time" || res.Trace.Seconds < 4 {
		t.Errorf("got %d events missing, ended by %s after %.1f s; want res.Trace.Missing at most 5, res.Trace.Ended \"time\", res.Trace.Seconds at least 4",
			res.Trace.Missing, res.Trace.Ended, res.Trace.Seconds)
	}
	for _, e := range res.Trace.Events {
		if strings.Contains(e.SQL, "risso:") {
			t.Errorf("Risso traced itself: got %s, want no \"risso:\" in it", e.SQL)
		}
	}
}

// latches: with --synch mutexes and their like are recorded, without it they are not, and all of it is put back.
func (s *traced) latches(t *testing.T) {
	before := s.setup(t)
	if off := value(t, s.node, "SELECT COUNT(*) FROM performance_schema.setup_instruments WHERE NAME LIKE 'wait/synch/%' AND ENABLED = 'NO'"); off == "0" {
		t.Error("all latches are instrumented from the start: putting back proves nothing")
	}
	for _, synch := range []bool{false, true} {
		args := []string{"--for", "10m", "--output", "json"}
		if synch {
			args = append(args, "--synch")
		}
		r := s.begin(t, args...)
		if on := value(t, s.node, "SELECT COUNT(*) FROM performance_schema.setup_instruments WHERE NAME LIKE 'wait/synch/mutex/innodb/%' AND ENABLED = 'YES'"); (on != "0") != synch {
			t.Errorf("--synch %t: %s mutexes of InnoDB are instrumented", synch, on)
		}
		s.exec(t, "INSERT INTO orders (customer, total, note) VALUES (8, 80, 'latched')", "SELECT COUNT(*) FROM orders WHERE customer = 8")
		time.Sleep(500 * time.Millisecond)
		if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		res := s.result(t, r)
		s.same(t, before)
		seen := map[string]int{}
		for _, e := range res.Trace.Events {
			if rest, ok := strings.CutPrefix(e.Name, "wait/synch/"); ok {
				kind, _, _ := strings.Cut(rest, "/")
				seen[kind]++
			}
		}
		if synch && (seen["mutex"] == 0 || len(seen) < 2) || !synch && len(seen) > 0 {
			t.Errorf("--synch %t: latches recorded: %v", synch, seen)
		}
		insert := res.find(t, "INSERT INTO orders")
		if inside := insert.find(func(n *mapNode) bool { return n.Kind == "wait" && strings.Contains(n.Name, "mutex") }) != nil; inside != synch {
			t.Errorf("--synch %t: mutexes within the INSERT: %t", synch, inside)
		}
	}
}

// sameButLines compares tables and programs, and wants a line wherever one is wanted.
func sameButLines(got, want []string) bool {
	return slices.EqualFunc(got, want, func(g, w string) bool {
		gn, gl, _ := strings.Cut(g, ":")
		wn, _, _ := strings.Cut(w, ":")
		return gn == wn && gl != "" && gl != "0"
	})
}

// forms: every form of output is made, with literals hidden on request.
func (s *traced) forms(t *testing.T) {
	for form, want := range map[string]string{"text": "FUNCTION shop.f1", "svg": "<svg", "map": "never used", "dot": "digraph"} {
		r := s.begin(t, "--for", "10m", "--redact", "--output", form)
		s.exec(t, "SELECT f1(1), '</text><script>hidden-literal'")
		time.Sleep(500 * time.Millisecond)
		r.stop(t, syscall.SIGINT)
		if out := r.out.String(); !strings.Contains(out, want) || strings.Contains(out, "hidden-literal") || strings.Contains(out, "<script") || !strings.Contains(out, "f1(?)") {
			t.Errorf("--output %s --redact; want %q in it, no \"hidden-literal\" in it, no \"<script\" in it, \"f1(?)\" in it:\n%s\n%s",
				form, want, out, r.err)
		}
	}
}

// notEnabled: without --enable nothing is changed, and what is off is reported.
func (s *traced) notEnabled(t *testing.T) {
	before := s.setup(t)
	r := s.launch(t, s.id, "--for", "1500ms", "--output", "json")
	for ended := false; !ended; { // so that one of them falls into the time that is looked at
		s.exec(t, "SELECT f1(1)")
		select {
		case <-r.done:
			ended = true
		case <-time.After(200 * time.Millisecond):
		}
	}
	if s.node.Program.Family == sandbox.FamilyMariaDB { // records nothing at all
		if code := r.code(t); code != 1 || !strings.Contains(r.err.String(), "--enable") || !strings.Contains(r.err.String(), "events_statements_current") {
			t.Errorf("exit code %d: got %s; want code 1, \"--enable\" in it, \"events_statements_current\" in it", code, r.err)
		}
	} else {
		res := s.result(t, r)
		if off := strings.Join(res.Trace.NotRecorded, " "); !strings.Contains(off, "events_stages_current") || !strings.Contains(off, "events_waits_current") {
			t.Errorf("what is off is not said: %q; want \"events_stages_current\" in it, \"events_waits_current\" in it", off)
		}
		if !slices.ContainsFunc(res.Trace.Events, func(e traceEvent) bool { return e.SQL == "SELECT f1(1)" }) {
			t.Errorf("the statement was not seen: %+v", res.Trace.Events)
		}
	}
	s.same(t, before)
	d := s.launch(t, s.id, "--enable", "--dry-run")
	if code := d.code(t); code != 0 || !strings.Contains(d.out.String(), "UPDATE /* risso: trace */ performance_schema.setup_consumers SET ENABLED = 'YES'") {
		t.Errorf("exit code %d: got %s%s; want code 0, \"UPDATE /* risso: trace */ performance_schema.setup_consumers SET ENABLED = 'YES'\" in it",
			code, d.out, d.err)
	}
	s.same(t, before)
}

func (s *traced) idleConnection(t *testing.T) {
	before := s.setup(t)
	res := s.result(t, s.launch(t, s.id, "--enable", "--for", "1s", "--output", "json"))
	if len(res.Words) == 0 || !strings.Contains(res.Words[0], "sent nothing") {
		t.Errorf("words: got %q; want len(res.Words) not 0, \"sent nothing\" in res.Words[0]", res.Words)
	}
	s.same(t, before)
}

// interrupted: what was seen is shown, and everything put back.
func (s *traced) interrupted(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		before := s.setup(t)
		r := s.begin(t, "--for", "10m")
		s.exec(t, "SELECT f4(2)")
		time.Sleep(300 * time.Millisecond)
		r.stop(t, sig)
		s.same(t, before)
		if out := r.out.String(); !strings.Contains(out, "the trace was interrupted") || !strings.Contains(out, "SELECT f4(2)") || !strings.Contains(out, "shop.archive4") {
			t.Errorf("%s: what was seen is not shown; want \"the trace was interrupted\" in it, \"SELECT f4(2)\" in it, \"shop.archive4\" in it:\n%s",
				sig, out)
		}
		if left, _ := filepath.Glob(filepath.Join(s.home, "risso", "trace", "trace-*")); len(left) > 0 {
			t.Errorf("%s: left behind: %v, want none", sig, left)
		}
	}
}

// interruptedAtOnce: whatever a trace was doing when it was interrupted, everything is as before.
func (s *traced) interruptedAtOnce(t *testing.T) {
	before := s.setup(t)
	for i := range 12 {
		r := s.launch(t, s.id, "--enable", "--for", "10m")
		time.Sleep(time.Duration(5+12*i) * time.Millisecond)
		if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		r.code(t)
		s.same(t, before)
	}
	if left, _ := filepath.Glob(filepath.Join(s.home, "risso", "trace", "trace-*")); len(left) > 0 {
		t.Errorf("left behind: got %v, want none", left)
	}
}

// killedAtOnce: whatever a trace was doing when it was killed, --restore makes everything as before.
func (s *traced) killedAtOnce(t *testing.T) {
	before := s.setup(t)
	for i := range 10 {
		r := s.launch(t, s.id, "--enable", "--for", "10m")
		time.Sleep(time.Duration(10+9*i) * time.Millisecond)
		r.kill(t)
		back := s.launch(t, "--restore")
		if code := back.code(t); code != 0 {
			t.Errorf("--restore: exit code %d: got %s, want 0", code, back.err)
		}
		s.same(t, before)
	}
	// A file without its name may be left of a journal that was being written: a later trace removes it.
	if left, _ := filepath.Glob(filepath.Join(s.home, "risso", "trace", "trace-*")); len(left) > 0 {
		t.Errorf("left behind: got %v, want none", left)
	}
}

// killed: the journal tells the next trace, and --restore puts everything back.
func (s *traced) killed(t *testing.T) {
	before := s.setup(t)
	r := s.begin(t, "--for", "10m")
	busy := s.launch(t, s.id, "--enable", "--for", "1s")
	if code := busy.code(t); code != 1 || !strings.Contains(busy.err.String(), "another risso trace") {
		t.Errorf("a second trace at the same time: exit code %d: got %s; want code 1, \"another risso trace\" in it", code, busy.err)
	}
	r.kill(t)
	plan := s.launch(t, "--restore", "--dry-run")
	if code := plan.code(t); code != 0 || !strings.Contains(plan.out.String(), "put back */ performance_schema.setup_consumers SET ENABLED = 'NO'") {
		t.Errorf("--restore --dry-run: exit code %d: got %s%s; want code 0, \"put back */ performance_schema.setup_consumers SET ENABLED = 'NO'\" in it",
			code, plan.out, plan.err)
	}
	if value(t, s.node, "SELECT ENABLED FROM performance_schema.setup_consumers WHERE NAME = 'events_waits_history_long'") != "YES" {
		t.Fatal("the dry run changed something, or the kill came too early")
	}
	warned := s.launch(t, s.id, "--for", "200ms")
	if warned.code(t); !strings.Contains(warned.err.String(), "risso trace --restore") {
		t.Errorf("the next trace does not say what is left: %s, want \"risso trace --restore\" in it", warned.err)
	}
	back := s.launch(t, "--restore")
	if code := back.code(t); code != 0 || !strings.Contains(back.out.String(), "put back:") {
		t.Errorf("--restore: exit code %d: got %s%s; want code 0, \"put back:\" in it", code, back.out, back.err)
	}
	s.same(t, before)
	again := s.launch(t, "--restore")
	if code := again.code(t); code != 0 || !strings.Contains(again.out.String(), "nothing to put back") {
		t.Errorf("--restore once more: exit code %d: got %s%s; want code 0, \"nothing to put back\" in it", code, again.out, again.err)
	}
	// And the next --enable puts back by itself.
	r = s.begin(t, "--for", "10m")
	r.kill(t)
	next := s.launch(t, s.id, "--enable", "--for", "300ms")
	if code := next.code(t); code != 0 || !strings.Contains(next.err.String(), "put back") {
		t.Errorf("the next --enable: exit code %d: got %s; want code 0, \"put back\" in it", code, next.err)
	}
	s.same(t, before)
}

// lostConnection: the trace connects again, goes on, and puts everything back.
func (s *traced) lostConnection(t *testing.T) {
	before := s.setup(t)
	r := s.begin(t, "--for", "4s", "--output", "json")
	own := value(t, s.node, "SELECT PROCESSLIST_ID FROM performance_schema.session_connect_attrs WHERE ATTR_NAME = 'program_name' AND ATTR_VALUE = 'risso'")
	execSQL(t, s.node, "KILL "+own)
	await(t, "connected again", func() bool {
		return value(t, s.node, "SELECT COUNT(*) FROM performance_schema.session_connect_attrs WHERE ATTR_NAME = 'program_name' AND ATTR_VALUE = 'risso' AND PROCESSLIST_ID <> "+own) == "1"
	})
	s.exec(t, "SELECT f1(3)")
	res := s.result(t, r)
	res.find(t, "f1(")
	s.same(t, before)
}

func (s *traced) noPrivilege(t *testing.T) {
	before := s.setup(t)
	execSQL(t, s.node, "CREATE USER low@localhost IDENTIFIED BY 'x'; GRANT PROCESS ON *.* TO low@localhost; GRANT SELECT ON performance_schema.* TO low@localhost")
	r := launch(t, s.env, "trace", "--dsn", fmt.Sprintf("low:x@unix(%s)/", s.node.Socket), s.id, "--enable", "--for", "1s")
	if code := r.code(t); code != 1 || !strings.Contains(r.err.String(), "GRANT SELECT, UPDATE ON performance_schema.* TO 'low'@'localhost'") {
		t.Errorf("exit code %d: got %s; want code 1, \"GRANT SELECT, UPDATE ON performance_schema.* TO 'low'@'localhost'\" in it", code, r.err)
	}
	s.same(t, before)
	if left, _ := filepath.Glob(filepath.Join(s.home, "risso", "trace", "trace-*")); len(left) > 0 {
		t.Errorf("a journal is left of what changed nothing: %v, want none", left)
		for _, f := range left {
			os.Remove(f)
		}
	}
}

// overflow: more events than the rings hold are counted by the server, and said to be missing.
func (s *traced) overflow(t *testing.T) {
	before := s.setup(t)
	r := s.begin(t, "--for", "10m", "--output", "json")
	s.exec(t, "CALL p1(2000)")
	if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	res := s.result(t, r)
	s.same(t, before)
	if res.Trace.Missing < 1000 || !strings.Contains(strings.Join(res.Words, " "), "overwritten") || !strings.Contains(res.Words[0], " was seen busy for ") {
		t.Errorf("%d events are missing of some 140,000; words: %q; want res.Trace.Missing at least 1000, \"overwritten\" in strings.Join(res.Words, \" \"), \" was seen busy for \" in res.Words[0]",
			res.Trace.Missing, res.Words)
	}
	for _, total := range res.Trace.Totals {
		if total.Name == "statement/sp/freturn" && total.Count != 2000 {
			t.Errorf("the server's counter says %d calls, not 2000", total.Count)
		}
	}
}

func (s *traced) connectionEnds(t *testing.T) {
	before := s.setup(t)
	r := s.begin(t, "--for", "1m", "--output", "json")
	s.exec(t, "SELECT f1(9)")
	execSQL(t, s.node, "KILL "+s.id)
	res := s.result(t, r)
	res.find(t, "f1(")
	if res.Trace.Ended != "connection" || res.Trace.Seconds > 30 {
		t.Errorf("ended by %s after %.1f s; want res.Trace.Ended \"connection\", res.Trace.Seconds at most 30", res.Trace.Ended, res.Trace.Seconds)
	}
	s.same(t, before)
	r = s.launch(t, s.id, "--for", "1s")
	if code := r.code(t); code != 1 || !strings.Contains(r.err.String(), "no such connection") {
		t.Errorf("a connection that is gone: exit code %d: %s; want code 1, \"no such connection\" in it", code, r.err)
	}
	s.conn.Close()
	s.connect(t)
}

// candidates: without a number the connections are listed, Risso's own is not.
func (s *traced) candidates(t *testing.T) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		_, _ = s.conn.ExecContext(ctx, "SELECT SLEEP(2), 'busy'") // its end does not matter
	}()
	defer func() { <-done }()
	await(t, "the busy statement", func() bool {
		return value(t, s.node, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO = 'SELECT SLEEP(2), \\'busy\\''") == "1"
	})
	r := s.launch(t)
	if code := r.code(t); code != 0 || r.err.String() != "" {
		t.Errorf("exit code %d: got %s; want code 0, r.err \"\"", code, r.err)
	}
	lines := strings.Split(strings.TrimSpace(r.out.String()), "\n")
	if len(lines) < 2 || !strings.Contains(lines[1], s.id) || !strings.Contains(lines[1], "SLEEP(2)") || strings.Contains(r.out.String(), "risso:") {
		t.Errorf("the busy connection %s is not the first, or Risso lists itself; want len(lines) at least 2, %q in lines[1], \"SLEEP(2)\" in lines[1], no \"risso:\" in it:\n%s",
			s.id, s.id, r.out)
	}
}

// TestTraceWithoutPerformanceSchema: the exact option is named.
func TestTraceWithoutPerformanceSchema(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"mariadb", "mysql-9.7"} {
		n := single(t, kind, "performance_schema=OFF")
		r := launch(t, nil, "trace", "1", "--dsn", fmt.Sprintf("root@unix(%s)/", n.Socket))
		if code := r.code(t); code != 1 || !strings.Contains(r.err.String(), "performance_schema=ON under [m") || !strings.Contains(r.err.String(), "restart") {
			t.Errorf("%s: exit code %d: %s; want code 1, \"performance_schema=ON under [m\" in it, \"restart\" in it", kind, code, r.err)
		}
	}
}

// TestTraceJournalOutlivesTheServer: a server that was restarted has nothing to put back.
func TestTraceJournalOutlivesTheServer(t *testing.T) {
	t.Parallel()
	sandboxtest.Need(t, "mysql-9.7")
	s := newTraced(t, "mysql-9.7")
	r := s.begin(t, "--for", "10m")
	r.kill(t)
	s.db.Close()
	if err := s.node.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.node.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := s.setup(t)
	back := s.launch(t, "--restore")
	if code := back.code(t); code != 0 || !strings.Contains(back.out.String(), "restarted since") {
		t.Errorf("exit code %d: got %s%s; want code 0, \"restarted since\" in it", code, back.out, back.err)
	}
	s.same(t, before)
	if left, _ := filepath.Glob(filepath.Join(s.home, "risso", "trace", "trace-*")); len(left) > 0 {
		t.Errorf("left behind: got %v, want none", left)
	}
}
