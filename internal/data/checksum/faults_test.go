package checksum_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/data/checksum"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// TestTrouble tests what can go wrong with a replica, and with the account that compares.
func TestTrouble(t *testing.T) {
	s := replication(t, []string{"mariadb"})
	s.do(0, "CREATE DATABASE ck", "CREATE TABLE ck.a (id INT PRIMARY KEY, v INT)", "CREATE TABLE ck.b LIKE ck.a", "CREATE TABLE ck.c LIKE ck.a")
	for _, name := range []string{"a", "b", "c"} {
		s.do(0, "USE ck; INSERT INTO "+name+" SELECT seq, seq FROM seq_1_to_20000")
	}
	s.caughtUp()
	for _, c := range []struct {
		name string
		f    func(*testing.T, *servers)
	}{{"cancel", testCancel}, {"resume", testResume}, {"sessions killed", testKilledSessions}, {"late", testLate}, {"delayed", testDelayed}, {"privileges", testPrivileges},
		{"filter", testFilter}, {"locked", testLocked}, {"long rows", testLong}, {"shared", testShared}, {"hung", testHung}, {"dead replica", testDeadReplica}, {"own writes", testOwnWrites}, {"dead primary", testDeadPrimary}} {
		t.Run(c.name, func(t *testing.T) { c.f(t, s.in(t)) })
	}
}

// slow makes a comparison take its time: some rows with each pass.
type slow struct{ pause time.Duration }

func (g slow) Pass(ctx context.Context, _ int64) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(g.pause):
		return nil
	}
}

func testCancel(t *testing.T, s *servers) {
	ctx, cancel := context.WithCancel(t.Context())
	o := small(s.options())
	o.Gate = slow{20 * time.Millisecond}
	time.AfterFunc(150*time.Millisecond, cancel)
	began := time.Now()
	if _, err := checksum.Compare(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if d := time.Since(began); d > 2*time.Minute {
		t.Errorf("it took %s to end, want at most 2 * time.Minute", d)
	}
	for i := range s.nodes {
		await.Until(t, func() bool {
			r, err := s.nodes[i].Query(t.Context(), "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE '%risso: checksum%' AND ID <> CONNECTION_ID()")
			if err != nil {
				t.Fatal(err)
			}
			return *r[0].Rows[0][0] == "0"
		}, "server %d without a statement of the comparison", i)
	}
}

func testResume(t *testing.T, s *servers) {
	s.secretly(1, "UPDATE ck.a SET v = 0 WHERE id = 9")
	defer s.secretly(1, "UPDATE ck.a SET v = id WHERE id = 9")
	path := filepath.Join(t.TempDir(), "state")
	run := func(ctx context.Context, pause time.Duration) (checksum.Result, error) {
		o := small(s.options())
		o.State, o.Resume, o.Gate = path, true, slow{pause}
		return checksum.Compare(ctx, o)
	}
	ctx, cancel := context.WithCancel(t.Context())
	o := small(s.options())
	o.State, o.Resume = path, true
	o.Each = func(checksum.Table) { cancel() }
	if r, err := checksum.Compare(ctx, o); !errors.Is(err, context.Canceled) || r.Tables == 0 || r.Tables == 3 {
		t.Fatalf("%v after %d tables; want context.Canceled, r.Tables not 0, r.Tables not 3", err, r.Tables)
	}
	var again []string
	o = small(s.options())
	o.State, o.Resume = path, true
	o.Progress = func(p checksum.Progress) { again = append(again, p.Table) }
	r, err := checksum.Compare(t.Context(), o)
	if err != nil || r.Tables != 3 || r.Counts.Differ != 1 || r.Rows != 60000 {
		t.Errorf("%v: got %+v; want Tables 3, Counts.Differ 1, Rows 60000", err, r)
	}
	for _, table := range again {
		if table == "ck.a" {
			t.Fatal("what was compared is compared again")
		}
	}
	if r, err := run(t.Context(), 0); err != nil || r.Counts.Differ != 1 { // the file was removed with its work: it starts over
		t.Errorf("%v: got %+v; want Counts.Differ 1", err, r)
	}
	o = s.options()
	o.State, o.Resume, o.Primary, o.Others, o.Replicas = path, true, s.target(1), []mysql.Target{s.target(0)}, false
	ctx, stop := context.WithCancel(t.Context())
	half := small(s.options())
	half.State, half.Resume, half.Each = path, true, func(checksum.Table) { stop() }
	if _, err := checksum.Compare(ctx, half); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want context.Canceled", err)
	}
	if _, err := checksum.Compare(t.Context(), o); !errors.Is(err, checksum.ErrState) {
		t.Errorf("a state file of other servers: got %v, want checksum.ErrState", err)
	}
}

func testKilledSessions(t *testing.T, s *servers) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		killed := 0
		for i := 0; ctx.Err() == nil; i++ {
			rows, err := s.db[i%2].QueryContext(ctx, "SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND IN ('Query', 'Sleep') AND ID <> CONNECTION_ID() AND USER = 'root' AND INFO LIKE '%risso: checksum%'")
			if err != nil {
				continue
			}
			var ids []int
			for rows.Next() {
				var id int
				if rows.Scan(&id) == nil {
					ids = append(ids, id)
				}
			}
			rows.Close()
			for _, id := range ids {
				if _, err := s.db[i%2].ExecContext(ctx, fmt.Sprintf("KILL %d", id)); err == nil {
					killed++
				}
			}
			time.Sleep(5 * time.Millisecond)
		}
		ended <- killed
	}()
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		r, err := checksum.Compare(ctx, s.options())
		if err != nil || r.Counts.Equal != 3 || r.Rows != 60000 {
			t.Errorf("%v: got %+v; want Counts.Equal 3, Rows 60000", err, r)
			break
		}
	}
	cancel()
	if n := <-ended; n == 0 {
		t.Error("no session was killed: nothing was tested")
	} else {
		t.Logf("%d sessions killed", n)
	}
}

func testLate(t *testing.T, s *servers) {
	s.do(1, "STOP SLAVE SQL_THREAD")
	s.do(0, "UPDATE ck.b SET v = v + 1 WHERE id = 100")
	o := s.options()
	o.Patience = 300 * time.Millisecond
	r, tables := s.compare(o)
	verdicts(t, tables, map[string]checksum.Verdict{"b": checksum.Behind})
	if !strings.Contains(strings.Join(r.Others[0].Notes, " "), "applies") {
		t.Errorf("nothing is said of the stopped thread: %q, want \"applies\" in it", r.Others[0].Notes)
	}
	time.AfterFunc(700*time.Millisecond, func() {
		if _, err := s.nodes[1].Query(t.Context(), "START SLAVE"); err != nil {
			t.Error(err)
		}
	})
	o.Patience = 20 * time.Second
	_, tables = s.compare(o) // it waits
	verdicts(t, tables, nil)
}

// testDelayed has a replica that is told to stay behind, which is not lag.
func testDelayed(t *testing.T, s *servers) {
	s.do(1, "STOP SLAVE", "CHANGE MASTER TO MASTER_DELAY = 3600", "START SLAVE")
	s.do(0, "UPDATE ck.b SET v = v + 1 WHERE id = 100")
	o := s.options()
	o.Patience = time.Minute // nothing waits for it
	began := time.Now()
	r, tables := s.compare(o)
	verdicts(t, tables, map[string]checksum.Verdict{"b": checksum.Behind})
	if !strings.Contains(strings.Join(r.Others[0].Notes, " "), "delayed by 1 h") || time.Since(began) > time.Minute {
		t.Errorf("%q after %s; want \"delayed by 1 h\" in strings.Join(r.Others[0].Notes, \" \"), time.Since(began) at most time.Minute",
			r.Others[0].Notes, time.Since(began))
	}
	c, err := mysql.Connect(t.Context(), s.target(1), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if lag, known, err := read.Lag(t.Context(), c); err != nil || !known || lag > 0 {
		t.Errorf("got %s, %v, %v; want known true, lag at most 0", lag, known, err)
	}
	s.do(1, "STOP SLAVE", "CHANGE MASTER TO MASTER_DELAY = 0", "START SLAVE")
	s.caughtUp()
}

func testPrivileges(t *testing.T, s *servers) {
	s.do(0, "CREATE USER few@'%' IDENTIFIED BY 'x'", "GRANT SELECT ON ck.* TO few@'%'")
	s.caughtUp()
	few := func(i int) mysql.Target {
		target, err := mysql.ParseTarget(fmt.Sprintf("few:x@tcp(127.0.0.1:%d)/", s.nodes[i].Port))
		if err != nil {
			t.Fatal(err)
		}
		return target
	}
	o := s.options()
	o.Primary, o.Others = few(0), []mysql.Target{few(1)}
	r, tables := s.compare(o)
	verdicts(t, tables, nil) // SELECT is enough to compare
	if !strings.Contains(strings.Join(r.Others[0].Notes, " "), "GRANT REPLICA MONITOR ON *.* TO 'few'@'%'") {
		t.Errorf("no hint: got %q, want \"GRANT REPLICA MONITOR ON *.* TO 'few'@'%%'\" in it", r.Others[0].Notes)
	}
	s.secretly(1, "REVOKE SELECT ON ck.* FROM few@'%'", "GRANT SELECT ON ck.a TO few@'%'", "GRANT SELECT (id) ON ck.b TO few@'%'")
	_, tables = s.compare(o)
	if on := tables["b"].On[0]; on.Verdict != checksum.Failed || !strings.Contains(on.Remedy, "SELECT") {
		t.Errorf("got %+v; want Verdict checksum.Failed, \"SELECT\" in Remedy", on)
	}
	s.do(0, "DROP USER few@'%'")
}

func testOwnWrites(t *testing.T, s *servers) {
	s.secretly(1, "DELETE FROM ck.a WHERE id = 5")
	s.do(1, "CREATE DATABASE own")
	o := s.options()
	r, err := checksum.Compare(t.Context(), o)
	if err != nil || r.Counts.Differ != 1 {
		t.Fatalf("%v: got %+v; want Counts.Differ 1", err, r)
	}
	plan, err := checksum.PlanMend(t.Context(), checksum.MendOptions{Primary: o.Primary, Replicas: o.Others, Tables: r.List})
	if err != nil || len(plan.Steps) != 0 || len(plan.Refused) != 1 || !strings.Contains(plan.Refused[0].Why, "local writes") {
		t.Errorf("%v: got %+v; want no plan.Steps, len(Refused) 1, \"local writes\" in Refused[0].Why", err, plan)
	}
	s.secretly(1, "INSERT INTO ck.a VALUES (5, 5)", "DROP DATABASE own")
}

func testFilter(t *testing.T, s *servers) {
	s.do(1, "STOP SLAVE", "SET GLOBAL replicate_ignore_table = 'ck.c'", "START SLAVE")
	s.do(0, "DELETE FROM ck.c WHERE id = 1")
	s.caughtUp()
	r, tables := s.compare(s.options())
	verdicts(t, tables, map[string]checksum.Verdict{"c": checksum.Filtered})
	if !strings.Contains(strings.Join(r.Others[0].Notes, " "), "replicate_ignore_table=ck.c") {
		t.Errorf("got %q, want \"replicate_ignore_table=ck.c\" in it", r.Others[0].Notes)
	}
	s.do(0, "INSERT INTO ck.c VALUES (1, 1)")
	s.caughtUp()
	s.do(1, "STOP SLAVE", "SET GLOBAL replicate_ignore_table = ''", "START SLAVE")
}

// testLocked has a table that somebody holds.
func testLocked(t *testing.T, s *servers) {
	c, err := s.db[0].Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.ExecContext(t.Context(), "LOCK TABLES ck.b WRITE"); err != nil {
		t.Fatal(err)
	}
	o := s.options()
	o.Silence = 2 * time.Second
	_, tables := s.compare(o)
	verdicts(t, tables, map[string]checksum.Verdict{"b": checksum.Failed})
	if on := tables["b"].On[0]; !strings.Contains(on.Remedy, "lock") {
		t.Errorf("got %+v, want \"lock\" in it", on)
	}
	if _, err := c.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
		t.Fatal(err)
	}
}

// testLong has rows of which neither a chunk's last one nor a value is kept whole.
func testLong(t *testing.T, s *servers) {
	s.do(0, "CREATE TABLE ck.long (id INT PRIMARY KEY, b LONGBLOB, v INT)", "USE ck; INSERT INTO ck.long SELECT seq, REPEAT(CHAR(seq), 2000000), 1 FROM seq_1_to_30", "ANALYZE TABLE ck.long")
	s.caughtUp()
	defer func() { s.do(0, "DROP TABLE ck.long"); s.caughtUp() }()
	s.secretly(1, "UPDATE ck.long SET b = CONCAT(LEFT(b, 1999999), 'x') WHERE id = 20")
	o := small(s.options()) // one of half a second takes all of them on a fast machine
	o.Tables = []string{"ck.long"}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, tables := s.compare(o)
	runtime.ReadMemStats(&after)
	long := tables["long"]
	if long.Rows != 30 || long.Chunks < 3 || long.Bytes < 60e6 || long.On[0].Different != 1 || !strings.Contains(*long.On[0].Rows[0].Columns[0].Other, "(2000000 bytes, hash ") {
		t.Errorf("got %+v; want Rows 30, Chunks at least 3, Bytes at least 60e6, On[0].Different 1, \"(2000000 bytes, hash \" in *long.On[0].Rows[0].Columns[0].Other",
			long)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 40e6 {
		t.Errorf("%d bytes were allocated for 60 MB of rows, want at most 40e6", used)
	}
}

// patient returns targets whose short queries time out soon.
func patient(t *testing.T, o *checksum.Options, s *servers) {
	t.Helper()
	target, err := mysql.ParseTarget("root@unix(" + s.nodes[1].Socket + ")/?timeout=1s&readTimeout=2s")
	if err != nil {
		t.Fatal(err)
	}
	o.Others = []mysql.Target{target}
	o.Silence, o.Return = time.Second, time.Second
}

func testHung(t *testing.T, s *servers) {
	o := small(s.options())
	o.Tables = []string{"ck.b", "ck.c"} // chunks of some rows, on a busy machine, would be too many with a third table
	patient(t, &o, s)
	var once bool
	o.Progress = func(p checksum.Progress) {
		if !once && p.Table == "ck.b" {
			once = true
			if err := s.nodes[1].Kill(syscall.SIGSTOP); err != nil {
				t.Error(err)
			}
		}
	}
	goOn := func() {
		if err := s.nodes[1].Kill(syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	}
	defer goOn() // the tests after this one have the same server
	began := time.Now()
	_, tables := s.compare(o)
	goOn()
	verdicts(t, tables, map[string]checksum.Verdict{"b": checksum.Failed, "c": checksum.Failed})
	if d := time.Since(began); d > 2*time.Minute {
		t.Errorf("it took %s, want at most 2 * time.Minute", d)
	}
	if p := tables["b"].On[0].Why; !strings.Contains(p, "does not answer") {
		t.Errorf("got %q, want \"does not answer\" in it", p)
	}
	_, tables = s.compare(s.options())
	verdicts(t, tables, nil)
}

func testDeadReplica(t *testing.T, s *servers) {
	o := small(s.options())
	o.Tables = []string{"ck.b", "ck.c"}
	patient(t, &o, s)
	var once bool
	kill := func(p checksum.Progress) {
		if !once && p.Table == "ck.b" {
			once = true
			if err := s.nodes[1].Kill(syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
	}
	o.Progress = kill
	_, tables := s.compare(o)
	verdicts(t, tables, map[string]checksum.Verdict{"b": checksum.Failed, "c": checksum.Failed})
	if _, err := checksum.Compare(t.Context(), o); mysql.ClassOf(err) != mysql.ClassRefused {
		t.Errorf("a dead replica: got %v, want mysql.ClassRefused", err)
	}
	if err := s.nodes[1].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	// One that comes back in time is read on.
	once = false
	o = small(s.options())
	o.Tables = []string{"ck.b", "ck.c"}
	back := make(chan error, 1)
	o.Progress = func(p checksum.Progress) {
		if !once {
			kill(p)
			if once {
				go func() { back <- s.nodes[1].Start(context.WithoutCancel(t.Context())) }()
			}
		}
	}
	_, tables = s.compare(o)
	verdicts(t, tables, nil)
	if err := <-back; err != nil {
		t.Fatal(err)
	}
}

func testDeadPrimary(t *testing.T, s *servers) {
	o := small(s.options())
	o.Return = 500 * time.Millisecond
	var once bool
	o.Progress = func(p checksum.Progress) {
		if !once {
			once = true
			if err := s.nodes[0].Kill(syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
	}
	r, err := checksum.Compare(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "refuses connections") && !strings.Contains(err.Error(), "dropped") || r.Counts.Differ > 0 {
		t.Errorf("%v: %+v", err, r)
	}
}
