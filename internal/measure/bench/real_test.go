package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/postgres"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// start brings servers up for a test, with a table t of numbers on the first.
func start(t *testing.T, o sandbox.Options) *sandbox.Sandbox {
	t.Helper()
	s := sandboxtest.Sandbox(t, o)
	do(t, s.Primary(), "CREATE DATABASE b", "CREATE TABLE b.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT) ENGINE=InnoDB")
	return s
}

func do(t *testing.T, n *sandbox.Node, statements ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for _, sql := range statements {
		if _, err := n.Query(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// ask returns the one value of a statement.
func ask(t *testing.T, n *sandbox.Node, statement string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := n.Query(ctx, statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	if len(r[0].Rows) == 0 || r[0].Rows[0][0] == nil {
		return ""
	}
	return *r[0].Rows[0][0]
}

func over(t *testing.T, n *sandbox.Node) drive.Target {
	t.Helper()
	return parsed(t, "root@unix("+n.Socket+")/b")
}

func parsed(t *testing.T, dsn string) drive.Target {
	t.Helper()
	target, err := mysql.ParseTarget(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return drive.ForMySQL(target)
}

var (
	reads  = work{"SELECT 1"}
	writes = work{"INSERT INTO t (v) VALUES (1)"}
)

// TestNothingRunsOn: what a server still does for transactions that were given up is ended, and other sessions are let alone.
func TestNothingRunsOn(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"mariadb", "mysql-9.7", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			endless, running := work{"SELECT BENCHMARK(1000000000000, SHA2('a', 512))"}, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT BENCHMARK%'"
			var target drive.Target
			var count func() string
			if kind == "postgres" {
				pg := sandboxtest.Postgres(t)
				endless, running = work{"SELECT count(*) FROM generate_series(1, 1000000000000::bigint)"}, "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT count(_) FROM generate%'"
				var err error
				if target, err = drive.ForPostgres(pg.URL("")); err != nil {
					t.Fatal(err)
				}
				count = func() string {
					s, err := target.Open(t.Context(), new(drive.Stop))
					if err != nil {
						t.Fatal(err)
					}
					defer s.Close()
					rows, err := workload.Ask(s, running)
					if err != nil {
						t.Fatal(err)
					}
					return fmt.Sprint(rows[0][0].Int)
				}
			} else {
				n := sandboxtest.Up(t, kind)
				do(t, n, "CREATE DATABASE b")
				target = over(t, n)
				count = func() string { return ask(t, n, running) }
			}
			var stop drive.Stop
			idle, err := target.Open(t.Context(), &stop)
			if err != nil {
				t.Fatal(err)
			}
			defer idle.Close()
			r, err := Run(t.Context(), Options{Target: target, Workload: endless, Threads: 2, Time: 100 * time.Millisecond, Grace: 200 * time.Millisecond})
			if err != nil || r.Unfinished != 2 {
				t.Fatalf("got %v, %+v; want Unfinished 2", err, r)
			}
			await.Until(t, func() bool { return count() == "0" }, "the end of the statements")
			if _, err := idle.Exec(drive.Read, "SELECT 1"); err != nil {
				t.Errorf("a session of others was ended: %v", err)
			}
		})
	}
}

// calm tries a measurement of time again if this machine stalled meanwhile. f returns what is wrong.
func calm(t *testing.T, f func() []string) {
	t.Helper()
	for range 5 {
		stop, paused := make(chan struct{}), make(chan time.Duration)
		go func() {
			var sum time.Duration
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for last := time.Now(); ; {
				select {
				case <-stop:
					paused <- sum
					return
				case <-tick.C:
				}
				now := time.Now()
				if gap := now.Sub(last); gap > 200*time.Millisecond {
					sum += gap
				}
				last = now
			}
		}()
		wrong := f()
		close(stop)
		stood := <-paused
		if len(wrong) == 0 {
			return
		}
		if stood == 0 {
			t.Errorf("got %v, want stood not 0", strings.Join(wrong, "\n"))
			return
		}
		t.Logf("this machine stood still for %v, again; %v", stood, wrong)
	}
	t.Skip("this machine stands still too often for a measurement of time")
}

// worst is the longest outage with or without errors.
func worst(r *Result, withErrors bool) (w Outage) {
	for _, o := range r.Outages {
		if o.Errors == withErrors && o.Milliseconds > w.Milliseconds {
			w = o
		}
	}
	return w
}

// TestStallShowsInAnOpenLoop stops the server for two seconds. Latency from the intended start shows it in the high
// percentiles; in a closed loop it is one slow transaction of each session.
func TestStallShowsInAnOpenLoop(t *testing.T) {
	n := start(t, sandbox.Options{Servers: []string{"mariadb"}}).Primary()
	const rate = 200
	for _, open := range []bool{true, false} {
		calm(t, func() (wrong []string) {
			is := func(ok bool, format string, args ...any) {
				if !ok {
					wrong = append(wrong, fmt.Sprintf("open %v: ", open)+fmt.Sprintf(format, args...))
				}
			}
			o := Options{Target: over(t, n), Workload: reads, Threads: 4, Time: 6 * time.Second, Seed: 1}
			if open {
				o.Rate = rate
			}
			var stopped time.Duration
			done := make(chan error, 1)
			time.AfterFunc(2*time.Second, func() {
				began := time.Now()
				err := n.Kill(syscall.SIGSTOP)
				time.Sleep(2 * time.Second)
				err = errors.Join(err, n.Kill(syscall.SIGCONT))
				stopped = time.Since(began)
				done <- err
			})
			r := mustRun(t, o)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			t.Logf("open %v, stopped for %v: 50 %% %v, 90 %% %v, 99 %% %v, max %v, %+v", open, stopped, r.Latency.At(50), r.Latency.At(90), r.Latency.At(99), r.Latency.Max, r.Outages)
			is(len(r.Errors) == 0 && r.Reconnects == 0, "%+v, %d reconnects", r.Errors, r.Reconnects)
			ms := stopped.Milliseconds()
			stall := worst(r, false).Milliseconds
			is(stall > ms-100 && stall < ms+300, "stalls %+v, the server stood still for %v", r.Outages, stopped)
			m := r.Latency.Max
			is(m > stopped.Seconds()-0.1 && m < stopped.Seconds()+0.5, "the longest took %v s", m)
			if !open {
				is(r.Latency.At(99) < 0.1, "99 %% in a closed loop: %v s", r.Latency.At(99))
				return wrong
			}
			// A third of the transactions were due while it stalled; they waited one second in the mean.
			is(r.Latency.At(90) > 1 && r.Latency.At(90) < 2.1, "90 %%: %v s", r.Latency.At(90))
			is(r.Latency.At(99) > 1.7 && r.Latency.At(99) < 2.3, "99 %%: %v s", r.Latency.At(99))
			due := float64(r.Transactions + r.Backlog.NeverStarted)
			is(due > 0.85*6*rate && due < 1.15*6*rate, "%v were due in 6 s at %d a second", due, rate)
			is(r.ServiceTime.At(90) < 0.1, "90 %% of the service time: %v s", r.ServiceTime.At(90))
			return wrong
		})
	}
}

// TestKilledServerComesBack kills and starts the server in a run with a ledger.
func TestKilledServerComesBack(t *testing.T) {
	n := start(t, sandbox.Options{Servers: []string{"mariadb"}, Settings: []string{"innodb_flush_log_at_trx_commit=1"}}).Primary()
	var down time.Duration
	done := make(chan error, 1)
	time.AfterFunc(1500*time.Millisecond, func() {
		began := time.Now()
		err := n.Kill(syscall.SIGKILL)
		if err == nil {
			err = restart(n)
		}
		down = time.Since(began)
		done <- err
	})
	r := mustRun(t, Options{Target: over(t, n), Workload: writes, Threads: 4, Time: 8 * time.Second, Ledger: true})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	t.Logf("down for %v: %+v, %+v, %d reconnects, %+v", down, r.Outages, r.Errors, r.Reconnects, r.Ledger)
	labels := map[string]int64{}
	for _, e := range r.Errors {
		labels[e.Label] = e.Count
	}
	if labels["lost"] != 4 || labels["connect"] < 4 || r.Reconnects != 4 {
		t.Errorf("errors %v, %d reconnects; want labels[\"lost\"] 4, labels[\"connect\"] at least 4, r.Reconnects 4", labels, r.Reconnects)
	}
	if w := worst(r, true); w.Milliseconds < 100 || w.Milliseconds > down.Milliseconds()+3000 {
		t.Errorf("%+v, the server was away for %v; want w.Milliseconds from 100 to down.Milliseconds() + 3000", r.Outages, down)
	}
	if l := r.Ledger; l.Error != "" || l.Missing != 0 || l.Acknowledged < 20 || l.Found != l.Acknowledged+l.Unsure || l.Unsure > 4 {
		t.Errorf("got %+v; want Error \"\", Missing 0, Acknowledged at least 20, Found %v, Unsure at most 4", l, l.Acknowledged+l.Unsure)
	}
	if got := ask(t, n, "SELECT COUNT(*) FROM information_schema.tables WHERE table_name LIKE 'risso%'"); got != "0" {
		t.Errorf("%s tables are left, want \"0\"", got)
	}
}

// way is a TCP address that forwards to a server and can be moved to another, as a proxy or a virtual address does.
type way struct {
	listener net.Listener
	to       atomic.Pointer[string]
	mu       sync.Mutex
	conns    map[net.Conn]bool
}

func newWay(t *testing.T, to string) *way {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &way{listener: l, conns: map[net.Conn]bool{}}
	w.to.Store(&to)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { w.forward(c) })
		}
	})
	t.Cleanup(func() { l.Close(); w.cut(); all.Wait() })
	return w
}

func (w *way) forward(c net.Conn) {
	defer c.Close()
	s, err := net.DialTimeout("tcp", *w.to.Load(), time.Second)
	if err != nil {
		return
	}
	defer s.Close()
	w.mu.Lock()
	w.conns[c], w.conns[s] = true, true
	w.mu.Unlock()
	go func() { _, _ = io.Copy(s, c); s.Close(); c.Close() }()
	_, _ = io.Copy(c, s)
	w.mu.Lock()
	delete(w.conns, c)
	delete(w.conns, s)
	w.mu.Unlock()
}

// cut ends all connections.
func (w *way) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		c.Close()
	}
}

// TestFailoverTellsWhatWasLost runs through a failover to a replica whose replication had stopped some time before. What is
// missing must be what the dead primary's data holds and the replica does not.
func TestFailoverTellsWhatWasLost(t *testing.T) {
	s := start(t, sandbox.Options{Servers: []string{"mariadb"}, Topology: sandbox.TopologyReplication, Replicas: 1})
	primary, replica := s.Nodes[0], s.Nodes[1]
	// An account that read_only holds for.
	do(t, primary, "CREATE USER app@'%' IDENTIFIED BY 'secret'", "GRANT ALL ON b.* TO app@'%'")
	address := func(n *sandbox.Node) string { return fmt.Sprintf("%s:%d", n.Host, n.Port) }
	w := newWay(t, address(primary))
	target := parsed(t, fmt.Sprintf("app:secret@tcp(%s)/b", w.listener.Addr()))
	failed := make(chan error, 1)
	var began time.Time
	var away time.Duration
	time.AfterFunc(2*time.Second, func() {
		failed <- func() error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if _, err := replica.Query(ctx, "STOP SLAVE"); err != nil {
				return err
			}
			time.Sleep(700 * time.Millisecond)
			began = time.Now()
			if err := primary.Kill(syscall.SIGKILL); err != nil {
				return err
			}
			time.Sleep(300 * time.Millisecond)
			to := address(replica)
			w.to.Store(&to) // still read-only for a while, as with a slow failover
			time.Sleep(300 * time.Millisecond)
			_, err := replica.Query(ctx, "CREATE TABLE b.kept AS SELECT session, number FROM b."+ledgerTable+"; SET GLOBAL read_only=0")
			away = time.Since(began)
			return err
		}()
	})
	r := mustRun(t, Options{Target: target, Workload: writes, Threads: 4, Time: 7 * time.Second, Ledger: true})
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	t.Logf("%v from the kill to the replica's first write: %+v, %+v, %+v", away, r.Outages, r.Errors, r.Ledger)
	l := r.Ledger
	if l.Error != "" || l.Acknowledged < 100 || l.Missing < 10 || l.Found-l.Unsure+l.Missing != l.Acknowledged || len(l.MissingKeys) != min(int(l.Missing), ledgerSample) {
		t.Fatalf("got %+v; want Error \"\", Acknowledged at least 100, Missing at least 10, Found - l.Unsure + l.Missing %v, len(MissingKeys) %v",
			l, l.Acknowledged, min(int(l.Missing), ledgerSample))
	}
	if w := worst(r, true); w.Milliseconds < 500 || w.Milliseconds > away.Milliseconds()+3000 {
		t.Errorf("outages %+v; writes were away for %v; want w.Milliseconds from 500 to away.Milliseconds() + 3000", r.Outages, away)
	}
	// The judge: what the dead primary's own data holds, and the replica did not when it took over.
	again(t, primary)
	kept := map[string]bool{}
	for _, key := range numbersOf(t, replica, "kept") {
		kept[key] = true
	}
	var lost []string
	for _, key := range numbersOf(t, primary, ledgerTable) {
		if !kept[key] {
			lost = append(lost, key)
		}
	}
	// The last number of each session may be in the primary's data without having been acknowledged.
	if n := int64(len(lost)); l.Missing > n || l.Missing < n-4 {
		t.Errorf("%d are reported as lost, %d are: %v; want l.Missing at most %d, l.Missing at least %d", l.Missing, n, lost, n, n-4)
	}
	for i, key := range l.MissingKeys {
		if !slices.Contains(lost, key) || i > 0 && slices.Index(lost, key) <= slices.Index(lost, l.MissingKeys[i-1]) {
			t.Errorf("%s is reported as lost, or not in order", key)
		}
	}
	if got := labelCount(r, "1290"); got == 0 {
		t.Errorf("no error of the read-only time: %+v", r.Errors)
	}
}

func labelCount(r *Result, label string) (n int64) {
	for _, e := range r.Errors {
		if e.Label == label {
			n += e.Count
		}
	}
	return n
}

// numbersOf reads the numbers of a ledger, in order.
func numbersOf(t *testing.T, n *sandbox.Node, table string) (keys []string) {
	t.Helper()
	db, err := n.DB()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), "SELECT session, number FROM b."+table+" ORDER BY session, number")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var session, number int64
		if err := rows.Scan(&session, &number); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, fmt.Sprintf("%d:%d", session, number))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return keys
}

// again starts a node that was killed.
func again(t *testing.T, n *sandbox.Node) {
	t.Helper()
	if err := restart(n); err != nil {
		t.Fatal(err)
	}
}

// restart starts a node that was killed; its port may be in use for a moment yet.
func restart(n *sandbox.Node) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for range 100 {
		if err = n.Start(ctx); err == nil || !strings.Contains(err.Error(), "address already in use") {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

// TestTooManyConnections asks for more sessions than the server allows.
func TestTooManyConnections(t *testing.T) {
	n := start(t, sandbox.Options{Servers: []string{"mariadb"}, Settings: []string{"max_connections=10"}}).Primary()
	o := Options{Target: over(t, n), Workload: reads, Threads: 16, Time: time.Minute, Ledger: true}
	began := time.Now()
	if _, err := Run(t.Context(), o); mysql.ErrorNumber(err) != errno.TooManyConnections || time.Since(began) > 20*time.Second {
		t.Errorf("16 sessions of 10: got %v after %v; want mysql.ErrorNumber(err) errno.TooManyConnections, time.Since(began) at most 20 * time.Second",
			err, time.Since(began))
	}
	if got := ask(t, n, "SELECT COUNT(*) FROM information_schema.tables WHERE table_name LIKE 'risso%'"); got != "0" {
		t.Errorf("%s tables are left, want \"0\"", got)
	}
}

// TestFullTable has a tablespace that cannot grow any more: writes fail, and the run goes on and counts (after some
// hundred of them MariaDB 10.11 may die as well).
func TestFullTable(t *testing.T) {
	n := start(t, sandbox.Options{Servers: []string{"mariadb"}, Settings: []string{"innodb_file_per_table=0", "innodb_data_file_path=ibdata1:12M:autoextend:max:48M"}}).Primary()
	do(t, n, "CREATE TABLE b.big (id INT AUTO_INCREMENT PRIMARY KEY, v LONGBLOB) ENGINE=InnoDB")
	r := mustRun(t, Options{Target: over(t, n), Workload: work{"INSERT INTO big (v) VALUES (REPEAT('x', 1000000))"}, Threads: 2, Time: 6 * time.Second})
	t.Logf("%d transactions, %+v, %+v", r.Transactions, r.Errors, r.Outages)
	if r.Transactions < 3 || labelCount(r, "1114") == 0 {
		t.Errorf("got %d transactions, %+v; want r.Transactions at least 3, labelCount(r, \"1114\") not 0", r.Transactions, r.Errors)
	}
	if n := len(r.Outages); n == 0 || !r.Outages[n-1].Errors {
		t.Errorf("got %+v; want n not 0, r.Outages[n-1].Errors true", r.Outages)
	}
}

// TestFullDisk runs out of a small file system. MariaDB 10.11 either refuses writes or dies of it; the run survives both
// and says what was.
func TestFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "small")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=80m"); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	n := start(t, sandbox.Options{Servers: []string{"mariadb"}, Dir: dir, Settings: []string{"innodb_buffer_pool_size=64M", "innodb_log_file_size=8M", "skip-log-bin"}}).Primary()
	do(t, n, "CREATE TABLE b.big (id INT AUTO_INCREMENT PRIMARY KEY, v LONGBLOB) ENGINE=InnoDB")
	r := mustRun(t, Options{Target: over(t, n), Workload: work{"INSERT INTO big (v) VALUES (REPEAT('x', 4000000))"}, Threads: 2, Time: 6 * time.Second})
	t.Logf("%d transactions, %+v, %+v", r.Transactions, r.Errors, r.Outages)
	if r.Transactions < 3 || labelCount(r, "1114")+labelCount(r, "1021")+labelCount(r, "1030")+labelCount(r, "lost") == 0 {
		t.Errorf("%d transactions, %+v", r.Transactions, r.Errors)
	}
	if n := len(r.Outages); n == 0 || !r.Outages[n-1].Errors {
		t.Errorf("got %+v; want n not 0, r.Outages[n-1].Errors true", r.Outages)
	}
}

// startPostgres starts a PostgreSQL with a table t.
func startPostgres(t *testing.T) (*postgres.Server, drive.Target) {
	t.Helper()
	pg := sandboxtest.Postgres(t)
	target, err := drive.ForPostgres(pg.URL(""))
	if err != nil {
		t.Fatal(err)
	}
	var stop drive.Stop
	s, err := target.Open(t.Context(), &stop)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Exec(drive.Other, "CREATE TABLE t (id SERIAL PRIMARY KEY, v INT)"); err != nil {
		t.Fatal(err)
	}
	return pg, target
}

// TestPostgresRestarts runs with a ledger through a crash of PostgreSQL.
func TestPostgresRestarts(t *testing.T) {
	pg, target := startPostgres(t)
	done := make(chan error, 1)
	time.AfterFunc(1500*time.Millisecond, func() {
		done <- errors.Join(pg.Kill(context.Background()), pg.Start(context.Background()))
	})
	r := mustRun(t, Options{Target: target, Workload: writes, Threads: 4, Time: 6 * time.Second, Ledger: true})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %+v, %+v, %d reconnects, %+v", r.ServerVersion, r.Outages, r.Errors, r.Reconnects, r.Ledger)
	if !strings.HasPrefix(r.ServerVersion, "PostgreSQL 15") {
		t.Errorf("version %q, want \"PostgreSQL 15\" at its beginning", r.ServerVersion)
	}
	if l := r.Ledger; l.Error != "" || l.Missing != 0 || l.Acknowledged < 20 || l.Found != l.Acknowledged+l.Unsure {
		t.Errorf("got %+v; want Error \"\", Missing 0, Acknowledged at least 20, Found %v", l, l.Acknowledged+l.Unsure)
	}
	if r.Reconnects != 4 || len(r.Errors) == 0 || !slices.ContainsFunc(r.Outages, func(o Outage) bool { return o.Errors }) {
		t.Errorf("%d reconnects, %+v, %+v", r.Reconnects, r.Errors, r.Outages)
	}
	var stop drive.Stop
	s, err := target.Open(t.Context(), &stop)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var server *drive.ServerError
	if _, err := s.Exec(drive.Read, "SELECT 1 FROM "+ledgerTable); !errors.As(err, &server) || server.State != "42P01" {
		t.Errorf("the ledger's table: %v", err)
	}
}

// TestLedgerLeavesForeignTablesAlone has a table of the ledger's name that no run made.
func TestLedgerLeavesForeignTablesAlone(t *testing.T) {
	n := start(t, sandbox.Options{Servers: []string{"mariadb"}}).Primary()
	do(t, n, "CREATE TABLE b."+ledgerTable+" (precious INT)", "INSERT INTO b."+ledgerTable+" VALUES (42)")
	o := Options{Target: over(t, n), Workload: reads, Threads: 1, Time: time.Second, Ledger: true}
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "was not created by") {
		t.Errorf("got %v; want an error, \"was not created by\" in the error", err)
	}
	if got := ask(t, n, "SELECT precious FROM b."+ledgerTable); got != "42" {
		t.Errorf("the table holds %q, want \"42\"", got)
	}
	// What a killed run left is dropped.
	do(t, n, "DROP TABLE b."+ledgerTable, "CREATE TABLE b."+ledgerTable+" (x INT) COMMENT='risso bench'")
	if r := mustRun(t, o); r.Ledger.Missing != 0 || r.Ledger.Acknowledged == 0 {
		t.Errorf("got %+v; want Missing 0, Acknowledged not 0", r.Ledger)
	}
}

// TestThousandSessions measures what the driver itself needs for many sessions. There is no garbage collection in a run, so
// all that was allocated bounds the memory.
func TestThousandSessions(t *testing.T) {
	n := start(t, sandbox.Options{Servers: []string{"mariadb"}, Settings: []string{"max_connections=1100"}}).Primary()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := mustRun(t, Options{Target: over(t, n), Workload: reads, Threads: 1000, Time: 4 * time.Second})
	runtime.ReadMemStats(&after)
	mb := (after.TotalAlloc - before.TotalAlloc) >> 20
	t.Logf("%d transactions, %v s of processor time, %d MB allocated, 99 %% %v, max %v", r.Transactions, r.ClientCPUSeconds, mb, r.Latency.At(99), r.Latency.Max)
	if r.Transactions < 1000 || len(r.Errors) != 0 {
		t.Errorf("got %d transactions, %+v; want r.Transactions at least 1000, no r.Errors", r.Transactions, r.Errors)
	}
	if mb > 400 {
		t.Errorf("got %d MB for 1,000 sessions, want at most 400", mb)
	}
}
