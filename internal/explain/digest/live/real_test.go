package live

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/sqltext"
)

// kinds are the servers that these tests run on.
var kinds = []string{"mysql-9.7", "mysql-5.7", "mariadb", "mariadb-11.8"}

// scene is a server and a connection to it.
type scene struct {
	node *sandbox.Node
	db   *sql.DB
}

// up starts a server with these settings.
func up(t *testing.T, kind string, settings ...string) *scene {
	t.Helper()
	s := &scene{node: sandboxtest.Up(t, kind, settings...)}
	var err error
	if s.db, err = s.node.DB(); err != nil {
		t.Fatal(err)
	}
	s.db.SetMaxOpenConns(1)
	t.Cleanup(func() { s.db.Close() })
	return s
}

// counting are the settings with which every kind counts statements.
var counting = []string{"performance_schema=ON", "performance_schema_consumer_events_statements_current=ON", "performance_schema_consumer_events_statements_history=ON"}

func (s *scene) exec(t *testing.T, statements ...string) {
	t.Helper()
	for _, q := range statements {
		if _, err := s.db.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	// The server counts a statement after it has answered, and before it takes the session's next command. A ping is no statement.
	if err := s.db.PingContext(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// target is where Risso asks the server.
func (s *scene) target(t *testing.T) mysql.Target {
	t.Helper()
	target, err := mysql.ParseTarget(s.node.DSN)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// read digests the server. meanwhile runs between two readings.
func (s *scene) read(t *testing.T, o Options, meanwhile func()) (*digest.Profile, []string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	target := s.target(t)
	var traffic mysql.Traffic
	conn, err := mysql.Connect(ctx, target, &traffic)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	o.Reconnect = func(ctx context.Context) (*mysql.Conn, error) { return mysql.Connect(ctx, target, &traffic) }
	r, err := New(conn, &traffic, o)
	if err != nil {
		t.Fatal(err)
	}
	if meanwhile != nil { // the window is as long as that takes
		r.wait = func(context.Context) error {
			meanwhile()
			return nil
		}
	}
	p, err := r.Read(ctx)
	return p, r.Notes(), err
}

// find is the class of a statement, by its one name.
func find(p *digest.Profile, statement string) *digest.Class {
	id := name(statement)
	for i := range p.Classes {
		if p.Classes[i].ID == id {
			return &p.Classes[i]
		}
	}
	return nil
}

func name(statement string) string {
	return sqltext.ClassID(sqltext.AppendPlain(nil, []byte(sqltext.Fingerprint(statement))))
}

const window = time.Second

// A window is as long as requested, and ends with its context.
func TestWait(t *testing.T) {
	t.Parallel()
	s := up(t, "mysql-5.7")
	const long = 300 * time.Millisecond
	p, _, err := s.read(t, Options{For: long}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := p.To.Sub(p.From); d < long {
		t.Errorf("the window was %s long, want at least %s", d, long)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, err := New(nil, nil, Options{For: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := r.wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

// What ran in a window is counted, what ran before is not, and Risso's own statements are not either.
func TestWindow(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := up(t, kind, counting...)
			s.exec(t, "CREATE TABLE test.t (id INT PRIMARY KEY, s VARCHAR(20))", "INSERT INTO test.t VALUES (1,'a'),(2,'b'),(3,'c')", "CREATE DATABASE other")
			const old, slow, fresh = "SELECT s FROM test.t WHERE id=%d", "SELECT SLEEP(0.0%d), 'x'", "SELECT COUNT(*) FROM test.t WHERE id > %d"
			for i := range 50 {
				s.exec(t, fmt.Sprintf(old, i))
			}
			for range 10 {
				s.exec(t, fmt.Sprintf(slow, 9))
			}
			p, notes, err := s.read(t, Options{For: window, Samples: 2}, func() {
				s.exec(t, "USE other")
				for i := range 30 {
					s.exec(t, fmt.Sprintf(old, i))
				}
				s.exec(t, "USE test")
				for i := range 20 {
					s.exec(t, fmt.Sprintf(slow, 1), strings.ReplaceAll(fmt.Sprintf(old, i), "=", " = "))
				}
				s.exec(t, fmt.Sprintf(fresh, 0), fmt.Sprintf(fresh, 1))
				s.exec(t, "DO 0") // a statement is counted after its answer: what was before the last one on a connection has counted
			})
			if err != nil {
				t.Fatal(err)
			}
			checkWindow(t, kind, p, notes, old, slow, fresh)
		})
	}
}

func checkWindow(t *testing.T, kind string, p *digest.Profile, notes []string, old, slow, fresh string) {
	t.Helper()
	a, b, c := find(p, fmt.Sprintf(old, 1)), find(p, fmt.Sprintf(slow, 1)), find(p, fmt.Sprintf(fresh, 1))
	if a == nil || b == nil || c == nil {
		t.Fatalf("got %d classes: %+v; want a not nil, b not nil, c not nil", len(p.Classes), p.Classes)
	}
	if a.Calls != 50 || b.Calls != 20 || c.Calls != 2 {
		t.Errorf("got %d, %d and %d calls; 50, 20 and 2 ran; want a.Calls 50, b.Calls 20, c.Calls 2", a.Calls, b.Calls, c.Calls)
	}
	if got := fmt.Sprint(a.Values[0].Top); got != "[{other 30} {test 20}]" {
		t.Errorf("databases %s, want \"[{other 30} {test 20}]\"", got)
	}
	if n := a.Metric("Rows_sent").Sum; n != 6 { // ids 1 to 3, in each database
		t.Errorf("%g rows were sent, want 6", n)
	}
	if q := b.Metric("Query_time"); q.Sum < 0.2 || q.Sum > 2 || p.Classes[0].ID != b.ID {
		t.Errorf("20 times 10 ms took %+v; want Sum from 0.2 to 2, p.Classes[0].ID %v", q, b.ID)
	}
	if len(a.Digests) != 1 || len(a.Digests[0]) < 32 {
		t.Errorf("the server's digests are %q; want len(a.Digests) 1, len(a.Digests[0]) at least 32", a.Digests)
	}
	if len(a.Samples) == 0 || !slices.Contains(append(slices.Clone(a.PtIDs), a.PtID), sqltext.PtID(a.Samples[0].Query)) {
		t.Errorf("samples %+v, pt-query-digest's names %s %q; want len(a.Samples) not 0, sqltext.PtID(a.Samples[0].Query) in append(slices.Clone(a.PtIDs), a.PtID)",
			a.Samples, a.PtID, a.PtIDs)
	}
	for _, x := range p.Classes {
		if strings.Contains(x.Fingerprint, "performance_schema") {
			t.Errorf("Risso's own statement is there: %s, want no \"performance_schema\" in it", x.Fingerprint)
		}
	}
	if p.Skipped[digest.SkippedOwn] == 0 {
		t.Error("Risso's own statements are not counted")
	}
	all := b.Metric("Query_time")
	if kind != "mysql-9.7" {
		if !math.IsNaN(all.P95) || !strings.Contains(strings.Join(notes, " "), "no histograms") {
			t.Errorf("p95 %g, notes %q; want math.IsNaN(all.P95) true, \"no histograms\" in strings.Join(notes, \" \")", all.P95, notes)
		}
		return
	}
	// 10 calls of 50 ms ran before, and must not show.
	if all.P95 < 0.010 || all.P95 > 0.085 || all.Median < 0.010 || all.Median > all.P95 || math.Abs(p.QuantileError-0.0233) > 0.001 {
		t.Errorf("p95 %g s, median %g s of 10 ms each, error %g; want all.P95 from 0.010 to 0.085, all.Median from 0.010 to %v, math.Abs(p.QuantileError - 0.0233) at most 0.001",
			all.P95, all.Median, p.QuantileError, all.P95)
	}
	for _, x := range []*digest.Class{a, b, c} {
		n := int64(0)
		for _, k := range x.Histogram {
			n += k
		}
		if n != x.Calls {
			t.Errorf("%s: %d calls in the histogram, %d in all", x.Fingerprint, n, x.Calls)
		}
	}
}

// With Own the same statements count.
func TestOwn(t *testing.T) {
	s := up(t, "mysql-9.7")
	s.exec(t, "SELECT /* risso: another one */ 'x', 7")
	for own, want := range map[bool]bool{false: false, true: true} {
		p, _, err := s.read(t, Options{Samples: 1, Own: own}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := find(p, "SELECT 'x', 7") != nil; got != want {
			t.Errorf("own %t: the statement of another Risso is there: %t, want %t", own, got, want)
		}
		if own != (p.Skipped[digest.SkippedOwn] == 0) {
			t.Errorf("own %t: left out %v, want p.Skipped[digest.SkippedOwn] == 0", own, p.Skipped)
		}
	}
}

// What finds no room in the table of digests is one class, and the report says so.
func TestTableFull(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := up(t, kind, append([]string{"performance_schema_digests_size=200"}, counting...)...)
			s.exec(t, "CREATE TABLE test.t (id INT)")
			for i := range 300 {
				s.exec(t, fmt.Sprintf("SELECT id AS a%d FROM test.t", i))
			}
			p, notes, err := s.read(t, Options{For: window}, func() {
				for i := range 40 {
					s.exec(t, fmt.Sprintf("SELECT id AS b%d FROM test.t", i))
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(p.Classes, func(c digest.Class) bool { return c.ID == otherID })
			if i < 0 || p.Classes[i].Calls < 40 {
				t.Fatalf("no class of what found no room: got %+v; want i at least 0, p.Classes[i].Calls at least 40", p.Classes)
			}
			said := strings.Join(notes, " ")
			if !strings.Contains(said, "did not fit into the server's table of 200 digests") || strings.Contains(said, notReadBefore) || strings.Contains(said, notOfOther) == strings.Contains(said, "keeps no histograms of its digests") {
				t.Errorf("notes %q; want \"did not fit into the server's table of 200 digests\" in said, no %q in said, strings.Contains(said, notOfOther) not strings.Contains(said, \"keeps no histograms of its digests\")",
					notes, notReadBefore)
			}
		})
	}
}

// When the table is emptied, or the server restarted, what was counted since is there, and it is reported that something is missing.
func TestBegunAnew(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := up(t, kind, counting...)
			const q = "SELECT %d, 'x'"
			for i := range 20 {
				s.exec(t, fmt.Sprintf(q, i))
			}
			after := func() {
				for i := range 7 {
					s.exec(t, fmt.Sprintf(q, i))
				}
			}
			for what, between := range map[string]func(){
				"emptied": func() {
					nextSecond()
					s.exec(t, "TRUNCATE performance_schema.events_statements_summary_by_digest")
					after()
				},
				"restarted": func() { restart(t, s.node); after() },
			} {
				p, notes, err := s.read(t, Options{For: window, Samples: 1}, between)
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if c := find(p, fmt.Sprintf(q, 1)); c == nil || c.Calls != 7 {
					t.Errorf("%s: got %+v; want c not nil, Calls 7", what, c)
				} else if m := c.Metric("Query_time"); kind == "mysql-9.7" && !(m.P95 > 0 && m.P95 <= m.Max*1.03) {
					t.Errorf("%s: %+v", what, m)
				}
				if !strings.Contains(strings.Join(notes, " "), "were removed or reset") {
					t.Errorf("%s: notes %q, want \"were removed or reset\" in it", what, notes)
				}
			}
		})
	}
}

// nextSecond waits, because FIRST_SEEN knows whole seconds on MySQL 5.7 and MariaDB.
func nextSecond() { time.Sleep(1100 * time.Millisecond) }

func restart(t *testing.T, n *sandbox.Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := n.Stop(ctx); err != nil {
		t.Error(err)
	}
	nextSecond()
	if err := n.Start(ctx); err != nil {
		t.Error(err)
	}
}

// A server that counts nothing is distinguished from one on which nothing ran, and how to fix it.
func TestOff(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := up(t, kind, "performance_schema=OFF")
			_, _, err := s.read(t, Options{For: time.Second}, nil)
			if !strings.Contains(fleet.RemedyOf(err), "performance_schema=ON") {
				t.Errorf("got %v, want \"performance_schema=ON\" in it", err)
			}
		})
	}
	t.Run("consumer", func(t *testing.T) {
		t.Parallel()
		s := up(t, "mysql-9.7")
		s.exec(t, "UPDATE performance_schema.setup_consumers SET ENABLED = 'NO' WHERE NAME = 'statements_digest'")
		_, _, err := s.read(t, Options{}, nil)
		remedy := fleet.RemedyOf(err)
		if remedy == "" {
			t.Fatalf("got %v, want remedy not \"\"", err)
		}
		s.exec(t, remedy)
		if _, _, err := s.read(t, Options{}, nil); err != nil {
			t.Errorf("after %s: %v", remedy, err)
		}
	})
}
