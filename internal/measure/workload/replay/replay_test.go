package replay

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

// scene is a server with two schemas, each with a table of the same name.
func scene(t *testing.T, kind string) (*sandbox.Node, drive.Target) {
	t.Helper()
	node := sandboxtest.Lend(t, kind, "log_bin_trust_function_creators=1")
	for _, sql := range []string{
		"CREATE DATABASE one; CREATE DATABASE `t``wo`; CREATE TABLE one.t (a INT PRIMARY KEY, b INT); CREATE TABLE `t``wo`.t (a INT PRIMARY KEY)",
		"CREATE TABLE one.log (id BIGINT AUTO_INCREMENT PRIMARY KEY, who INT, what INT, at TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6)); INSERT INTO one.t VALUES (1, 1), (2, 2); INSERT INTO `t``wo`.t VALUES (1)",
	} {
		if _, err := node.Query(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	to, err := mysql.ParseTarget(node.DSN)
	if err != nil {
		t.Fatal(err)
	}
	return node, drive.ForMySQL(to)
}

func class(calls int64, avg float64, fingerprint string, samples ...workload.RecordedStatement) workload.RecordedClass {
	return workload.RecordedClass{Before: workload.Before{Class: fmt.Sprintf("%08X", len(fingerprint)), Fingerprint: fingerprint, Calls: calls, Avg: avg, P95: avg}, Samples: samples}
}

func made(t *testing.T, rec *workload.Recording, change func(*workload.Params)) *replay {
	t.Helper()
	p := workload.Params{Recording: rec, ReplayMode: "mix", ReplaySpeed: 1}
	if change != nil {
		change(&p)
	}
	w, err := New("replay", p)
	if err != nil {
		t.Fatal(err)
	}
	return w.(*replay)
}

func count(t *testing.T, n *sandbox.Node, sql string) string {
	t.Helper()
	r, err := n.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	return *r[len(r)-1].Rows[0][0]
}

// TestMix runs classes by their share of the calls, each statement in its schema, goes on after those that do not fit the
// server, and writes nothing even where a text hides that it would.
func TestMix(t *testing.T) {
	for _, kind := range []string{"mariadb", "mysql-9.7"} {
		t.Run(kind, func(t *testing.T) {
			node, to := scene(t, kind)
			if _, err := node.Query(t.Context(), "CREATE FUNCTION one.hidden() RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN INSERT INTO one.t VALUES (9, 9); RETURN 1; END"); err != nil {
				t.Fatal(err)
			}
			st := func(schema, sql string) workload.RecordedStatement {
				return workload.RecordedStatement{SQL: sql, Schema: schema}
			}
			rec := &workload.Recording{LeftOut: map[string]int64{LeftWrites: 12}, Classes: []workload.RecordedClass{
				class(600, 1, "select b from t where a = ?", st("one", "SELECT b FROM t WHERE a = 1"), st("one", "SELECT b FROM t WHERE a = 2")),
				class(300, 1e-9, "select a from t", st("t`wo", "SELECT a FROM t")),
				class(50, 1, "select x from gone", st("one", "SELECT x FROM gone")),
				class(40, 1, "select 1 from t", st("nowhere", "SELECT 1 FROM t")),
				class(10, 1, "select hidden()", st("one", "SELECT hidden()")),
				class(1e6, 1, "insert into t"),
			}}
			w := made(t, rec, nil)
			r, err := bench.Run(t.Context(), bench.Options{Target: to, Workload: w, Threads: 2, Time: 4 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			n := map[string]int64{}
			for _, k := range r.Kinds {
				n[k.Recorded.Fingerprint] = k.Transactions
				if k.Recorded.Fingerprint == "select a from t" && k.OfRecorded() != "too short" {
					t.Error(k.OfRecorded())
				}
				if k.Recorded.Fingerprint == "select b from t where a = ?" && !strings.HasPrefix(k.OfRecorded(), "0.00") {
					t.Error(k.OfRecorded())
				}
			}
			one, two := n["select b from t where a = ?"], n["select a from t"]
			if share := float64(one) / float64(one+two); one+two < 200 || math.Abs(share-2.0/3) > 4*math.Sqrt(2.0/9/float64(one+two)) {
				t.Errorf("got %d and %d of classes with 600 and 300 calls; want one + two at least 200, math.Abs(share - 2.0/3) at most 4 * math.Sqrt(2.0/9/float64(one+two))",
					one, two)
			}
			if n["select x from gone"]+n["select 1 from t"]+n["select hidden()"] != 0 || len(r.Kinds) != 5 {
				t.Errorf("%v", n)
			}
			errs := map[string]int64{}
			for _, e := range r.Errors {
				errs[e.Label] = e.Count
			}
			if errs["1146"] == 0 || errs["1049"] == 0 || errs["1792"] == 0 || len(errs) != 3 || r.Reconnects != 0 {
				t.Errorf("errors %v, %d reconnects; want errs[\"1146\"] not 0, errs[\"1049\"] not 0, errs[\"1792\"] not 0, len(errs) 3, r.Reconnects 0",
					errs, r.Reconnects)
			}
			if got := count(t, node, "SELECT count(*) FROM one.t"); got != "2" || r.Writes != 0 {
				t.Errorf("%s rows, %d writes", got, r.Writes)
			}
			if notes := strings.Join(r.Notes, " "); !strings.Contains(notes, "12 calls that "+LeftWrites) {
				t.Errorf("got %v, want \"12 calls that \" + LeftWrites in it", notes)
			}
		})
	}
}

// TestNothingFits ends the run when no statement succeeds.
func TestNothingFits(t *testing.T) {
	_, to := scene(t, "mariadb")
	w := made(t, &workload.Recording{Classes: []workload.RecordedClass{class(1, 1, "x", workload.RecordedStatement{SQL: "SELECT 1 FROM one.gone"})}}, nil)
	began := time.Now()
	_, err := bench.Run(t.Context(), bench.Options{Target: to, Workload: w, Threads: 1, Time: 30 * time.Second})
	if err == nil || !strings.Contains(err.Error(), "gone") || time.Since(began) > 20*time.Second {
		t.Errorf("%v after %v; want an error, \"gone\" in the error, time.Since(began) at most 20 * time.Second", err, time.Since(began))
	}
}

// TestTimeline keeps the order within each session, the transactions and the gaps.
func TestTimeline(t *testing.T) {
	node, to := scene(t, "mariadb")
	rec := &workload.Recording{Classes: []workload.RecordedClass{class(40, 1, "insert"), class(8, 1, "begin"), class(8, 1, "rollback")}}
	add := func(at time.Duration, session int64, class int, sql string) {
		rec.Statements = append(rec.Statements, workload.RecordedStatement{SQL: sql, Schema: "one", Class: class, Session: session, Began: at})
	}
	// Three sessions; the third comes when the first has gone. All of session 2's work is rolled back except the last part.
	for i := range 10 {
		at := time.Duration(i) * 100 * time.Millisecond
		add(at, map[bool]int64{true: 1, false: 3}[i < 5], 0, fmt.Sprintf("INSERT INTO log (who, what) VALUES (1, %d)", i))
		if i < 8 {
			add(at, 2, 1, "BEGIN")
		}
		add(at, 2, 0, fmt.Sprintf("INSERT INTO log (who, what) VALUES (2, %d)", i))
		if i < 8 {
			add(at, 2, 2, "ROLLBACK")
		}
	}
	w := made(t, rec, func(p *workload.Params) { p.ReplayMode, p.ReplaySpeed, p.ReplayWrites = "timeline", 0.5, true })
	sessions, long := w.Plan(0, 0)
	if sessions != 2 || long < time.Minute || long > 2*time.Minute {
		t.Fatalf("got %d sessions, %v; want sessions 2, long from time.Minute to 2 * time.Minute", sessions, long)
	}
	r, err := bench.Run(t.Context(), bench.Options{Target: to, Workload: w, Threads: sessions, Time: long})
	if err != nil {
		t.Fatal(err)
	}
	if r.Transactions != int64(len(rec.Statements)) || len(r.Errors) > 0 || r.Seconds < 1.7 || r.Seconds > 30 {
		t.Errorf("got %d transactions in %v s, errors %v; want r.Transactions %d, no r.Errors, r.Seconds from 1.7 to 30",
			r.Transactions, r.Seconds, r.Errors, int64(len(rec.Statements)))
	}
	if got := count(t, node, "SELECT group_concat(what ORDER BY id) FROM one.log WHERE who = 1"); got != "0,1,2,3,4,5,6,7,8,9" {
		t.Errorf("the order is %s, want \"0,1,2,3,4,5,6,7,8,9\"", got)
	}
	if got := count(t, node, "SELECT group_concat(what ORDER BY id) FROM one.log WHERE who = 2"); got != "8,9" {
		t.Errorf("after the rollbacks there are %s, want \"8,9\"", got)
	}
	if got := count(t, node, "SELECT max(unix_timestamp(at)) - min(unix_timestamp(at)) BETWEEN 1.7 AND 20 FROM one.log WHERE who = 1"); got != "1" {
		t.Errorf("the gaps are not those of the recording at half its speed: got %v, want \"1\"", got)
	}
	if notes := strings.Join(r.Notes, " "); !strings.Contains(notes, "followed with 2 sessions") {
		t.Errorf("got %v, want \"followed with 2 sessions\" in it", notes)
	}
	// With one session for all, transactions of one would end those of another: they are left out, and that is reported.
	if n, _ := w.Plan(1, time.Second); n != 1 || !w.shared || w.left[LeftControl] != 16 {
		t.Errorf("got %d sessions, left out %v; want n 1, w.shared true, w.left[LeftControl] 16", n, w.left)
	}
}

func TestUsage(t *testing.T) {
	digest := &workload.Recording{Classes: []workload.RecordedClass{class(1, 1, "x", workload.RecordedStatement{SQL: "SELECT 1"})}}
	for _, c := range []struct {
		p    workload.Params
		want string
	}{
		{workload.Params{}, "--file"},
		{workload.Params{Recording: digest, ReplayMode: "x", ReplaySpeed: 1}, "--mode"},
		{workload.Params{Recording: digest, ReplayMode: "mix"}, "--speed"},
		{workload.Params{Recording: digest, ReplayMode: "mix", ReplaySpeed: math.NaN()}, "--speed"},
		{workload.Params{Recording: digest, ReplayMode: "timeline", ReplaySpeed: 1}, "needs a log"},
		{workload.Params{Recording: digest, ReplayMode: "mix", ReplaySpeed: 1, Dialect: drive.Postgres}, "PostgreSQL"},
		{workload.Params{Recording: &workload.Recording{LeftOut: map[string]int64{LeftWrites: 3}}, ReplayMode: "mix", ReplaySpeed: 1}, "3 calls that write"},
		{workload.Params{Recording: &workload.Recording{}, ReplayMode: "timeline", ReplaySpeed: 1}, "it is empty"},
	} {
		if _, err := New("replay", c.p); !errors.Is(err, workload.ErrUsage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v; expected %q; want workload.ErrUsage, %q in the error", err, c.want, c.want)
		}
	}
}

// TestRunnable lets nothing through that may do harm.
func TestRunnable(t *testing.T) {
	for _, c := range []struct {
		sql                   string
		cut, writes, timeline bool
		want                  string
	}{
		{"SELECT 1", false, false, false, ""},
		{"SELECT 1", true, false, false, LeftCut},
		{"SELECT ?", false, false, false, LeftNoValues},
		{"SELECT * FROM t FOR UPDATE", false, false, false, LeftWrites},
		{"SELECT * FROM t FOR UPDATE", false, true, false, ""},
		{"SELECT 1 INTO OUTFILE '/x'", false, true, false, LeftOther},
		{"UPDATE t SET a = 1", false, false, true, LeftWrites},
		{"UPDATE t SET a = 1", false, true, false, ""},
		{"DROP TABLE t", false, true, true, LeftOther},
		{"SET GLOBAL x = 1", false, true, true, LeftOther},
		{"CALL p()", false, true, true, LeftOther},
		{"administrator command: Ping", false, true, true, LeftOther},
		{"BEGIN", false, true, false, LeftControl},
		{"BEGIN", false, true, true, ""},
		{"start transaction", false, true, true, ""},
		{"START SLAVE", false, true, true, LeftOther},
		{"COMMIT", false, false, true, LeftControl},
	} {
		if got := Runnable([]byte(c.sql), c.cut, c.writes, c.timeline); got != c.want {
			t.Errorf("%s: %q, expected %q", c.sql, got, c.want)
		}
	}
}

// TestSlowTimeLine: a speed that puts a statement beyond all time does not make it begin immediately.
func TestSlowTimeLine(t *testing.T) {
	list := []workload.RecordedStatement{{SQL: "SELECT 1", Session: 1}, {SQL: "SELECT 2", Session: 1, Began: time.Second}}
	w, err := New("replay", workload.Params{Recording: &workload.Recording{Classes: []workload.RecordedClass{class(2, 1, "x")}, Statements: list}, ReplayMode: "timeline", ReplaySpeed: 1e-300, Clients: 1})
	if err != nil {
		t.Fatal(err)
	}
	c := &client{replay: w.(*replay)}
	for i, least := range []time.Duration{0, 50 * 365 * 24 * time.Hour} {
		due, ok := c.Next(time.Second)
		if !ok || due < time.Second+least {
			t.Errorf("statement %d is due at %v, %t; want ok true, due at least %v", i, due, ok, time.Second+least)
		}
	}
	c.ran.Add(1) // the first
	if notes := w.(*replay).Notes(); !strings.Contains(strings.Join(notes, " "), "1 of 2 statements in the recording not begun") {
		t.Errorf("got %v, want \"1 of 2 statements in the recording not begun\" in it", notes)
	}
}
