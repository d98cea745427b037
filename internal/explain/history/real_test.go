//go:build cgo

package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/explain/plan"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/sqltext"
	"github.com/rissodb/risso/internal/store/events"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

// kinds are the servers that these tests run on.
var kinds = []string{"mysql-9.7", "mysql-8.0", "mysql-5.7", "mariadb", "mariadb-11.8"}

func eachKind(t *testing.T, f func(t *testing.T, kind string)) {
	t.Helper()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			sandboxtest.Need(t, kind)
			f(t, kind)
		})
	}
}

// scene is a server, a store and a collector whose minutes the test makes pass.
type scene struct {
	t      *testing.T
	node   *sandbox.Node
	db     *sql.DB
	store  events.Store
	c      *Collector
	now    time.Time
	began  time.Time // before it, this test had no server
	mu     sync.Mutex
	events []fleet.Event

	sessions []pinger // besides db; their statements must be found
}

type pinger interface{ PingContext(context.Context) error }

func newScene(t *testing.T, kind string, change func(*Options), settings ...string) *scene {
	t.Helper()
	settings = append([]string{"performance_schema=ON", "performance_schema_consumer_events_statements_history=ON", "performance_schema_consumer_events_statements_current=ON"}, settings...)
	s := &scene{t: t, node: sandboxtest.Lend(t, kind, settings...), began: time.Now(), now: time.Unix(1_790_000_040, 0)}
	var err error
	if s.db, err = s.node.DB(); err != nil {
		t.Fatal(err)
	}
	s.db.SetMaxOpenConns(1)
	t.Cleanup(func() { s.db.Close() })
	if s.store, err = events.OpenEmbedded(t.Context(), filepath.Join(t.TempDir(), "events", "statements.duckdb")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.store.Close() })
	s.collector(s.node.DSN, change)
	return s
}

func (s *scene) collector(dsn string, change func(*Options)) {
	s.t.Helper()
	target, err := mysql.ParseTarget(dsn)
	if err != nil {
		s.t.Fatal(err)
	}
	o := Options{Store: s.store, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)), Event: func(e fleet.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, e)
	}}
	if change != nil {
		change(&o)
	}
	s.c = New(target, fleet.Instance{ID: "db"}, o)
	s.t.Cleanup(s.c.disconnect)
}

// read is the reading at the end of a minute.
func (s *scene) read() Status {
	s.t.Helper()
	s.c.Read(s.t.Context(), s.now)
	s.now = s.now.Add(time.Minute)
	return s.c.Status()
}

func (s *scene) mustRead() {
	s.t.Helper()
	s.counted()
	if st := s.read(); !st.Working {
		s.t.Fatalf("the reading failed: %+v", st)
	}
}

// counted waits for the server to have counted the last statement of each session: it does so after it has answered, and before it
// takes the session's next command. A ping is no statement. A session that was killed has nothing left to count.
func (s *scene) counted() {
	for _, session := range append(s.sessions, s.db) {
		_ = session.PingContext(s.t.Context())
	}
}

func (s *scene) run(times int, statements ...string) {
	s.t.Helper()
	for i := range times {
		for _, q := range statements {
			q = strings.ReplaceAll(q, "#", fmt.Sprint(i))
			rows, err := s.db.QueryContext(s.t.Context(), q)
			if err != nil {
				s.t.Fatalf("%s: %v", q, err)
			}
			for rows.Next() {
			}
			if err := errors.Join(rows.Err(), rows.Close()); err != nil {
				s.t.Fatalf("%s: %v", q, err)
			}
		}
	}
}

// top is all that is stored.
func (s *scene) top() map[string]events.ClassLoad {
	s.t.Helper()
	a, err := s.store.Top(s.t.Context(), events.TopQuestion{Range: events.Range{From: 0, To: s.now.Unix() + 60}, Limit: events.MaxLimit})
	if err != nil {
		s.t.Fatal(err)
	}
	out := map[string]events.ClassLoad{}
	for _, c := range a.Classes {
		out[c.ID] = c
	}
	return out
}

// classOf is the class that a statement is of, by its own text.
func classOf(statement string) string {
	return sqltext.ClassID(sqltext.AppendPlain(nil, []byte(sqltext.Fingerprint(strings.ReplaceAll(statement, "#", "7")))))
}

// expect compares the calls of each statement's class with what was run.
func (s *scene) expect(calls map[string]int64) {
	s.t.Helper()
	top := s.top()
	for q, want := range calls {
		if c := top[classOf(q)]; c.Calls != want {
			s.t.Errorf("%s: %d calls are stored, %d were run", q, c.Calls, want)
		}
	}
	if s.t.Failed() {
		for _, c := range top {
			s.t.Logf("%s %d %s", c.ID, c.Calls, c.Fingerprint)
		}
	}
}

const (
	point   = "SELECT * FROM t WHERE id = #"
	several = "SELECT id FROM t WHERE id IN (#, 2, 3) ORDER BY a DESC LIMIT 5"
	insert  = "INSERT INTO t (id, a) VALUES (#, 'x'), (1000#, 'it''s') ON DUPLICATE KEY UPDATE a = 'y'"
)

// TestCalls runs a known load and finds each call stored, once: over several minutes, a restart of the server, an emptied table
// of digests, a killed connection. What Risso itself sends is not there.
func TestCalls(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		s := newScene(t, kind, nil)
		s.run(1, "CREATE DATABASE shop", "USE shop", "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20))")
		s.run(5, point) // before the first reading: does not count
		s.mustRead()
		s.run(30, point, several, insert)
		s.mustRead()
		s.run(12, point)
		s.mustRead()
		s.mustRead() // a minute in which nothing ran
		s.expect(map[string]int64{point: 42, several: 30, insert: 30})
		c := s.top()[classOf(insert)]
		if c.RowsAffected < 60 || c.Seconds <= 0 || c.Verb != "INSERT" || !strings.Contains(c.Tables, "t") || c.FirstSeen == 0 {
			t.Errorf("insert: got %+v; want RowsAffected at least 60, Seconds more than 0, Verb \"INSERT\", \"t\" in Tables, FirstSeen not 0", c)
		}
		// Each id exists except in the first round, in which it is inserted after it was asked for.
		if c = s.top()[classOf(point)]; c.RowsSent != 12 || c.RowsExamined != 12 || c.Errors != 0 {
			t.Errorf("point: sent %d, examined %d, errors %d; want c.RowsSent 12, c.RowsExamined 12, c.Errors 0", c.RowsSent, c.RowsExamined, c.Errors)
		}
		a, err := s.store.Class(t.Context(), events.ClassQuestion{Range: events.Range{From: 0, To: s.now.Unix()}, ID: classOf(point), Points: 10})
		if err != nil || len(a.BySchema) != 1 || a.BySchema[0].Value != "shop" {
			t.Errorf("by schema %+v %v; want len(BySchema) 1, BySchema[0].Value \"shop\"", a, err)
		}

		s.run(7, point)
		s.run(1, "TRUNCATE performance_schema.events_statements_summary_by_digest")
		s.run(11, point, several) // the 7 before are lost with the table
		s.mustRead()
		s.expect(map[string]int64{point: 53, several: 41})

		s.db.Close()
		// Only this test restarts a server within a second: FIRST_SEEN, which knows whole seconds on MariaDB and MySQL 5.7,
		// would be the same as before.
		time.Sleep(1100 * time.Millisecond)
		if err := s.node.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if st := s.read(); st.Working || st.Why == "" {
			t.Errorf("the server is stopped: %+v; want Working false, Why not \"\"", st)
		}
		if err := s.node.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.db, err = s.node.DB(); err != nil {
			t.Fatal(err)
		}
		defer s.db.Close()
		s.db.SetMaxOpenConns(1)
		s.run(1, "USE shop")
		s.run(100, point) // more than ever before the restart: no counter fell
		s.mustRead()
		s.expect(map[string]int64{point: 153, several: 41})

		for id, c := range s.top() {
			if strings.Contains(c.Fingerprint, "performance_schema.") && !strings.HasPrefix(c.Fingerprint, "truncate") || strings.Contains(c.Fingerprint, "now(") {
				t.Errorf("the observer observes itself: %s %s", id, c.Fingerprint)
			}
		}
		if st := s.c.Status(); st.Resets == 0 || st.Seconds <= 0 || st.Source != "performance_schema" {
			t.Errorf("status %+v; want Resets not 0, Seconds more than 0, Source \"performance_schema\"", st)
		}
	})
}

// TestFullTable: if the server's table of digests is full, nothing is lost from the sums, and the remedy is reported.
func TestFullTable(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		s := newScene(t, kind, nil, "performance_schema_digests_size=200")
		s.run(1, "CREATE DATABASE shop", "USE shop", "CREATE TABLE t (id INT PRIMARY KEY, a INT)")
		s.mustRead()
		for i := range 400 {
			s.run(1, fmt.Sprintf("SELECT id AS column_%d FROM t", i))
		}
		s.mustRead()
		var calls int64
		for _, c := range s.top() {
			if strings.HasPrefix(c.Fingerprint, "select id as") || c.ID == otherID {
				calls += c.Calls
			}
		}
		other := s.top()[otherID]
		// Risso's own statements fall into the one row, too, when there is no room.
		if calls < 400 || calls > 420 || other.Calls < 200 {
			t.Errorf("%d calls are stored, thereof %d without a name, of 400; want calls from 400 to 420, other.Calls at least 200", calls, other.Calls)
		}
		st := s.c.Status()
		if len(st.Notes) != 1 || !strings.Contains(st.Notes[0].Why, "200 rows") || !strings.Contains(st.Notes[0].Remedy, "performance_schema_digests_size=10000") {
			t.Fatalf("notes %+v; want len(st.Notes) 1, \"200 rows\" in st.Notes[0].Why, \"performance_schema_digests_size=10000\" in st.Notes[0].Remedy",
				st.Notes)
		}
		if len(s.events) != 1 || s.events[0].Kind != fleet.EventStatements {
			t.Errorf("events %+v; want len(s.events) 1, s.events[0].Kind fleet.EventStatements", s.events)
		}
		remedy, _, _ := strings.Cut(st.Notes[0].Remedy, ";")
		s.run(1, remedy)
		s.mustRead()
		s.run(20, "SELECT a FROM t WHERE id = #")
		s.mustRead()
		s.expect(map[string]int64{"SELECT a FROM t WHERE id = #": 20})
	})
}

// TestSamples keeps statements as they were run, with who ran them; never a password, and no literal when asked.
func TestSamples(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		for _, redact := range []bool{false, true} {
			s := newScene(t, kind, func(o *Options) {
				o.Redact = redact
				o.PlanID = planID
			})
			s.run(1, "CREATE DATABASE shop", "USE shop", "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20))", "INSERT INTO t VALUES (1, 'secret value'), (2, 'x')")
			s.mustRead()
			s.run(3, "SELECT * FROM t WHERE a = 'secret value'", "DROP USER IF EXISTS u1@localhost")
			s.run(1, "CREATE USER u1@localhost IDENTIFIED BY 'geheim'")
			s.mustRead()
			id := classOf("SELECT * FROM t WHERE a = ''")
			a, err := s.store.Class(t.Context(), events.ClassQuestion{Range: events.Range{From: 0, To: 1<<33 - 1}, ID: id, Points: 10})
			if err != nil {
				t.Fatal(err)
			}
			if len(a.Samples) != 1 || strings.Contains(a.Samples[0].Text, "secret") == redact || a.Samples[0].User != "root" || a.Samples[0].Schema != "shop" {
				t.Errorf("redact %v: samples %+v; want len(a.Samples) 1, strings.Contains(a.Samples[0].Text, \"secret\") not %v, a.Samples[0].User \"root\", a.Samples[0].Schema \"shop\"",
					redact, a.Samples, redact)
			}
			if len(a.Plans) != 1 || a.Plans[0].Origin != "explain" || !strings.Contains(a.Plans[0].Text, "query_block") && !strings.Contains(a.Plans[0].Text, "query_plan") {
				t.Errorf("redact %v: plans %+v, status %+v", redact, a.Plans, s.c.Status())
			} else if redact && strings.Contains(a.Plans[0].Text, "secret") {
				t.Errorf("a literal in the plan: %s", a.Plans[0].Text)
			}
			for id := range s.top() {
				a, err := s.store.Class(t.Context(), events.ClassQuestion{Range: events.Range{From: 0, To: 1<<33 - 1}, ID: id, Points: 10})
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range a.Samples {
					if strings.Contains(p.Text, "geheim") {
						t.Errorf("redact %v: a password is stored: %s, want no \"geheim\" in it", redact, p.Text)
					}
				}
			}
		}
	})
}

func planID(text string) (string, error) {
	p, err := plan.Parse(text)
	if err != nil {
		return "", err
	}
	return plan.ID(p), nil
}

// TestFlip sees the plan of a class change with an index, and change back.
func TestFlip(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		s := newScene(t, kind, func(o *Options) { o.PlanID = planID })
		s.run(1, "CREATE DATABASE shop", "USE shop", "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b CHAR(100))", "INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'x')")
		for range 10 {
			s.run(1, "INSERT INTO t (a, b) SELECT id, 'y' FROM t")
		}
		s.run(1, "ANALYZE TABLE t")
		const q = "SELECT b FROM t WHERE a = 1#"
		s.mustRead()
		step := func() {
			s.run(20, q)
			s.mustRead()
			s.now = s.now.Add(11 * time.Minute) // a plan is looked at again after ten minutes
		}
		step()
		step()
		s.run(1, "CREATE INDEX ia ON t (a)", "ANALYZE TABLE t")
		step()
		s.run(1, "DROP INDEX ia ON t")
		step()
		a, err := s.store.Class(t.Context(), events.ClassQuestion{Range: events.Range{From: 0, To: 1<<33 - 1}, ID: classOf(q), Points: 10})
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Plans) != 2 || len(a.Flips) != 2 || a.Flips[0].Old != a.Flips[1].New || a.Flips[0].New != a.Flips[1].Old || a.Flips[0].Old == a.Flips[0].New {
			t.Fatalf("got %d plans, flips %+v, status %+v; want len(a.Plans) 2, len(a.Flips) 2, a.Flips[0].Old a.Flips[1].New, a.Flips[0].New a.Flips[1].Old, a.Flips[0].Old not a.Flips[0].New",
				len(a.Plans), a.Flips, s.c.Status())
		}
		if len(s.events) != 2 || s.events[0].Kind != fleet.EventPlan || s.events[0].Subject != classOf(q) || s.events[1].New != a.Flips[1].New || !strings.Contains(s.events[0].Text, "select b from t") {
			t.Errorf("events %+v; want len(s.events) 2, s.events[0].Kind fleet.EventPlan, s.events[0].Subject classOf(q), s.events[1].New a.Flips[1].New, \"select b from t\" in s.events[0].Text",
				s.events)
		}
		for _, c := range s.top() {
			if strings.HasPrefix(c.Fingerprint, "explain") {
				t.Errorf("the observer observes itself: %s", c.Fingerprint)
			}
		}
	})
}

// TestRefused says what keeps statements from being read and how to fix it; the remedy works as printed.
func TestRefused(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		s := newScene(t, kind, nil)
		s.run(1, "CREATE USER 'lim-ited'@'localhost' IDENTIFIED BY 'x'", "UPDATE performance_schema.setup_consumers SET ENABLED = 'NO' WHERE NAME = 'statements_digest'")
		s.collector("lim-ited:x@unix("+s.node.Socket+")/", nil)
		for range 5 {
			st := s.read()
			if st.Working {
				if st.Why != "" || st.Remedy != "" {
					t.Errorf("status %+v; want Why \"\", Remedy \"\"", st)
				}
				return
			}
			if st.Remedy == "" || st.Why == "" {
				t.Fatalf("no remedy: got %+v; want Remedy not \"\", Why not \"\"", st)
			}
			t.Logf("%s: %s", st.Why, st.Remedy)
			s.run(1, st.Remedy)
		}
		t.Error("the remedies do not help")
	})
}

// TestSessionsRefused: the same of looking at the sessions.
func TestSessionsRefused(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		s := newScene(t, kind, nil)
		s.run(1, "CREATE USER 'li''m'@'localhost' IDENTIFIED BY 'x'")
		s.collector("li'm:x@unix("+s.node.Socket+")/", nil)
		for range 3 {
			err := s.c.activity.sample(t.Context(), time.Now())
			if err == nil {
				return // also at once: what the account may not see is a gap on some servers
			}
			s.c.activity.failed(err)
			st, _ := s.c.activity.status()
			if st.Remedy == "" {
				t.Fatalf("no remedy: got %+v, want Remedy not \"\"", st)
			}
			t.Logf("%s: %s", st.Why, st.Remedy)
			for _, q := range strings.Split(st.Remedy, "; ") {
				s.run(1, q)
			}
		}
		t.Error("the remedies do not help")
	})
}

// TestOff is a server without performance_schema.
func TestOff(t *testing.T) {
	s := newScene(t, "mariadb", nil, "performance_schema=OFF")
	if st := s.read(); st.Working || !strings.Contains(st.Remedy, "performance_schema=ON") {
		t.Errorf("status %+v; want Working false, \"performance_schema=ON\" in Remedy", st)
	}
}
