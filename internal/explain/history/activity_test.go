//go:build cgo

package history

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/store/events"
)

// user opens one connection of another account.
func (s *scene) user(name string) *sql.Conn {
	s.t.Helper()
	db, err := sql.Open("mysql", name+":x@unix("+s.node.Socket+")/shop")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { db.Close() })
	c, err := db.Conn(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// exec runs statements and fails the test when one does.
func (s *scene) exec(c *sql.Conn, statements ...string) {
	s.t.Helper()
	for _, q := range statements {
		if _, err := c.ExecContext(s.t.Context(), q); err != nil {
			s.t.Errorf("%s: %v", q, err)
		}
	}
}

// sampled runs f while the sampler looks, and then stores what it found.
func (s *scene) sampled(f func()) {
	s.t.Helper()
	s.c.activity.pace.slow = time.Hour // the tests are not alone on the machine
	ctx, stop := context.WithCancel(s.t.Context())
	var w sync.WaitGroup
	w.Go(func() { s.c.activity.run(ctx) })
	time.Sleep(1200 * time.Millisecond) // it is connected
	f()
	stop()
	w.Wait()
}

// class is all that is stored of the class of a statement.
func (s *scene) class(statement string) *events.ClassAnswer {
	s.t.Helper()
	a, err := s.store.Class(s.t.Context(), events.ClassQuestion{Range: events.Range{From: 0, To: 1<<33 - 1}, ID: classOf(statement), Points: 10})
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func secondsOf(parts []events.Part, value string) float64 {
	for _, p := range parts {
		if p.Value == value {
			return p.Seconds
		}
	}
	return 0
}

const (
	lockedUpdate = "UPDATE t SET a = 5 WHERE id = 1"
	holdsRow     = "UPDATE t SET a = a + 1 WHERE id = 1"
	holdsTable   = "SELECT COUNT(*) FROM t"
	waitingAlter = "ALTER TABLE t ADD COLUMN c INT"
	sleeping     = "SELECT SLEEP(3)"
	crossJoin    = "SELECT COUNT(*) FROM big x JOIN big y WHERE x.a * y.a > ?"
)

// prepareActivity makes users, a small table and one whose cross join takes some seconds.
func prepareActivity(s *scene) {
	s.run(1, "CREATE DATABASE shop", "USE shop", "CREATE TABLE t (id INT PRIMARY KEY, a INT) ENGINE=InnoDB", "INSERT INTO t VALUES (1, 1), (2, 2)", "CREATE TABLE big (a INT) ENGINE=InnoDB", "INSERT INTO big VALUES (1), (2), (3), (4), (5)")
	for range 10 {
		s.run(1, "INSERT INTO big SELECT a + 1 FROM big LIMIT 3000")
	}
	for _, u := range []string{"app", "ddl", "holder"} {
		s.run(1, "CREATE USER "+u+"@localhost IDENTIFIED BY 'x'", "GRANT ALL ON shop.* TO "+u+"@localhost")
	}
}

// TestActivity finds who waits for what and for whom: a row lock and a metadata lock held for three seconds, a statement that sleeps
// and one that works, which is prepared and whose plan is caught.
func TestActivity(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		s := newScene(t, kind, func(o *Options) { o.PlanID = planID }, "performance_schema_instrument=wait/lock/metadata/sql/mdl=ON")
		prepareActivity(s)
		holder, app, ddl, sleeper, worker := s.user("holder"), s.user("app"), s.user("ddl"), s.user("app"), s.user("app")
		s.sampled(func() {
			var w sync.WaitGroup
			s.exec(holder, "BEGIN", holdsRow)
			w.Go(func() { s.exec(app, lockedUpdate) })
			w.Go(func() { s.exec(sleeper, sleeping) })
			time.Sleep(3 * time.Second)
			s.exec(holder, "COMMIT")
			w.Wait()
			s.exec(holder, "BEGIN", holdsTable)
			w.Go(func() { s.exec(ddl, waitingAlter) })
			time.Sleep(3 * time.Second)
			s.exec(holder, "COMMIT")
			w.Wait()
			s.work(worker)
		})
		for _, c := range []struct{ statement, wait, user, blocker string }{
			{lockedUpdate, "row_lock", "app", holdsRow},
			{waitingAlter, "metadata_lock", "ddl", holdsTable},
			{sleeping, "other", "app", ""},
			{crossJoin, "running", "app", ""},
		} {
			a := s.class(c.statement)
			if n := secondsOf(a.Waits, c.wait); n < 1.5 || n > 4.5 && c.wait != "running" {
				t.Errorf("%s: %v s of %s, waits %+v", c.statement, n, c.wait, a.Waits)
			}
			if a.ByUserFrom != "activity" || len(a.ByUser) != 1 || a.ByUser[0].Value != c.user || len(a.ByHost) != 1 || a.ByHost[0].Value != "localhost" {
				t.Errorf("%s: by user (%s) %+v, by host %+v; want a.ByUserFrom \"activity\", len(a.ByUser) 1, a.ByUser[0].Value %v, len(a.ByHost) 1, a.ByHost[0].Value \"localhost\"",
					c.statement, a.ByUserFrom, a.ByUser, a.ByHost, c.user)
			}
			if c.blocker == "" {
				if len(a.BlockedBy) != 0 {
					t.Errorf("%s: blocked by %+v, want none", c.statement, a.BlockedBy)
				}
			} else if len(a.BlockedBy) == 0 || a.BlockedBy[0].Wait != c.wait || a.BlockedBy[0].ID != classOf(c.blocker) {
				t.Errorf("%s: blocked by %+v, want %s", c.statement, a.BlockedBy, classOf(c.blocker))
			}
		}
		st, _ := s.c.activity.status()
		if !st.Working || st.Seconds < 0 || st.Last == 0 { // Seconds are without the way there and back, which may have taken as long
			t.Errorf("status %+v; want Working true, Seconds from 0 on, and when it was last", st)
		}
		t.Logf("a reading took %.1f ms, step %d", st.Seconds*1000, st.Step)
		s.onlyOthers()
	})
}

// onlyOthers makes sure that the observer did not find itself.
func (s *scene) onlyOthers() {
	s.t.Helper()
	list, err := s.store.Classes(s.t.Context(), "db", 1000)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, c := range list {
		if strings.Contains(c.Fingerprint, "performance_schema") || strings.Contains(c.Fingerprint, "information_schema") || strings.HasPrefix(c.Fingerprint, "explain") {
			s.t.Errorf("the observer observes itself: %s", c.Fingerprint)
		}
	}
}

// work runs the cross join as a prepared statement until it has run for three seconds.
func (s *scene) work(c *sql.Conn) {
	s.t.Helper()
	st, err := c.PrepareContext(s.t.Context(), crossJoin)
	if err != nil {
		s.t.Fatal(err)
	}
	defer st.Close()
	for began := time.Now(); time.Since(began) < 4*time.Second; {
		var n int
		if err := st.QueryRowContext(s.t.Context(), 7).Scan(&n); err != nil {
			s.t.Fatal(err)
		}
	}
}

// TestPreparedPlan catches the plan of a prepared statement while it runs. MySQL 5.7 shows neither its plan nor its values, and then
// it is reported that it was not caught.
func TestPreparedPlan(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		s := newScene(t, kind, func(o *Options) { o.PlanID = planID })
		prepareActivity(s)
		s.mustRead()
		worker := s.user("app")
		s.sampled(func() { s.work(worker) })
		s.mustRead()
		a := s.class(crossJoin)
		want := map[string]string{"mariadb": "running", "mariadb-11.8": "running", "mysql-5.7": ""}
		origin, special := want[kind]
		if !special {
			origin = "explain"
		}
		switch {
		case origin == "" && len(a.Plans) > 0, origin != "" && (len(a.Plans) != 1 || a.Plans[0].Origin != origin || !strings.Contains(a.Plans[0].Text, `"x"`)):
			t.Errorf("plans %+v, status %+v", a.Plans, s.c.Status())
		}
		note := s.c.Status().PlanNote
		for _, p := range a.Samples {
			if origin == "" && NeedsRunning(p.Text) && note != NotCaught {
				t.Errorf("note %q, sample %s", note, p.Text)
			}
		}
		if origin != "" && note != "" {
			t.Errorf("note %q", note)
		}
		// Before MySQL 9, servers count no executions over the binary protocol by class; the statement is still found.
		if c := s.top()[classOf(crossJoin)]; kind == "mysql-9.7" && c.Calls == 0 || c.Calls == 0 && secondsOf(a.Waits, "running") < 2 {
			for _, c := range s.top() {
				t.Logf("%s %d %s", c.ID, c.Calls, c.Fingerprint)
			}
			t.Errorf("the executions are not counted under the statement's class: %+v", c)
		}
		s.onlyOthers()
	})
}

// TestBounded folds what is beyond the bound, and loses no second.
func TestBounded(t *testing.T) {
	found := map[events.Activity]*events.Activity{}
	for i := range 5000 {
		k := events.Activity{Class: fmt.Sprintf("%032X", i%50), Wait: []string{"io", "running"}[i%2], User: fmt.Sprint("u", i), Host: "h", Schema: "s"}
		v := k
		v.Calls, v.Seconds = 1, float64(1+i%7)
		found[k] = &v
	}
	rows := bounded(found, 30)
	var calls int64
	seconds, named := 0.0, 0
	for _, r := range rows {
		calls += r.Calls
		seconds += r.Seconds
		if r.User != otherValue {
			named++
		}
	}
	want := 0.0
	for i := range 5000 {
		want += float64(1 + i%7)
	}
	if calls != 5000 || seconds != want || named != 30 || len(rows) > 2*30+2 {
		t.Errorf("got %d rows, %d calls, %v s, %d named; want calls 5000, seconds %v, named 30, len(rows) at most 2*30 + 2",
			len(rows), calls, seconds, named, want)
	}
}

// TestPace steps back while readings are dear and comes nearer when they are cheap.
func TestPace(t *testing.T) {
	p := pace{step: 1, slow: slowReading}
	p.next(5 * time.Millisecond)
	steps := []int{p.step}
	for range 3 {
		p.next(30 * time.Millisecond)
		steps = append(steps, p.step)
	}
	for range 2 {
		for range quickInRow {
			p.next(time.Millisecond)
		}
		steps = append(steps, p.step)
	}
	if fmt.Sprint(steps) != "[1 2 5 5 2 1]" {
		t.Errorf("steps %v, want \"[1 2 5 5 2 1]\"", steps)
	}
}
