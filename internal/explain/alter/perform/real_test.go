package perform

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/explain/alter/ask"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

var specs = []string{"mariadb", "mysql-9.7"}

// slow is an expression that takes about half a millisecond for each row.
const slow = "(CRC32(REPEAT(a, 200000)))"

func do(t testing.TB, c *mysql.Conn, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if err := c.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// table makes a table of so many rows, with a column whose index takes long to build.
func table(t testing.TB, c *mysql.Conn, rows int) {
	t.Helper()
	do(t, c, "DROP DATABASE IF EXISTS `my shop`", "CREATE DATABASE `my shop` DEFAULT CHARACTER SET utf8mb4", "USE `my shop`",
		"CREATE TABLE `or``ders` (id INT NOT NULL PRIMARY KEY, a INT NOT NULL, b INT NOT NULL DEFAULT 0, v BIGINT AS "+slow+" VIRTUAL) ENGINE=InnoDB")
	var list []string
	for i := range rows {
		list = append(list, fmt.Sprintf("(%d, %d)", i+1, i%9+1))
	}
	do(t, c, "INSERT INTO `or``ders` (id, a) VALUES "+strings.Join(list, ","))
}

// planned is a plan for that table, asked on the same server's own kind.
func planned(t testing.TB, spec string, target mysql.Target, change string) (ask.Planned, Options) {
	t.Helper()
	box := sandboxtest.Target(t, sandboxtest.Lend(t, spec))
	p, err := ask.Plan(t.Context(), ask.Options{Target: target.WithDatabase("my shop"), Statement: "ALTER TABLE `or``ders` " + change, Box: &box})
	if err != nil {
		t.Fatal(err)
	}
	if !p.Runs() {
		t.Fatalf("got %+v, want a plan that runs", p.Lines)
	}
	return p, Options{Target: target, Statement: p.Plan.Statement, Table: p.Statement.Table, Before: p.Before, After: p.After, Instant: p.Forecast.Moment, LockWait: time.Second, EndWait: 10 * time.Second, Retries: 3, Pause: time.Second, Dir: t.TempDir()}
}

// TestOthersGoOn tries what a plan says of others: while the server works, reads and writes pass, or only reads.
func TestOthersGoOn(t *testing.T) {
	for _, spec := range specs {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Lend(t, spec)
			c := sandboxtest.Connect(t, n)
			target := sandboxtest.Target(t, n)
			for _, change := range []string{"ADD INDEX kv (v)", "ADD COLUMN s BIGINT AS " + slow + " STORED", "ADD INDEX kv (v), ADD COLUMN n INT NOT NULL, ALGORITHM=INPLACE"} {
				table(t, c, 800)
				p, o := planned(t, spec, target, change)
				reads, writes, took := meanwhile(t, target, func() {
					if _, err := Run(t.Context(), o); err != nil {
						t.Errorf("%s: %v", change, err)
					}
				})
				t.Logf("%s: %s, lock %s, in %s others read %d times and wrote %d times", change, p.Kind, p.Lock, took, reads, writes)
				if took < 250*time.Millisecond {
					t.Errorf("%s took %s, too short to tell anything", change, took)
				}
				// On a busy machine a few pass before it has its lock; of those that go on all the time there are about as many writes as reads.
				if p.Reads != (reads > 3) || p.Writes != (writes > 3 && writes > reads/4) {
					t.Errorf("%s: planned reads %t, writes %t; others read %d times and wrote %d times in %s", change, p.Reads, p.Writes, reads, writes, took)
				}
			}
		})
	}
}

// meanwhile counts the reads and writes of others that begin and end while f works.
func meanwhile(t *testing.T, target mysql.Target, f func()) (reads, writes int64, took time.Duration) {
	ctx, cancel := context.WithCancel(t.Context())
	var counts [2]atomic.Int64
	var begun atomic.Int64
	done := make(chan struct{}, 2)
	for i, statement := range []string{"SELECT b FROM `my shop`.`or``ders` WHERE id = 1", "UPDATE `my shop`.`or``ders` SET b = b + 1 WHERE id = 1"} {
		go func() {
			defer func() { done <- struct{}{} }()
			c, err := mysql.Connect(ctx, target, nil)
			if err != nil {
				return
			}
			defer c.Close()
			for ctx.Err() == nil {
				from := begun.Load()
				start := time.Now().UnixNano()
				if c.Exec(ctx, statement) == nil && from > 0 && start > from+int64(150*time.Millisecond) && begun.Load() > 0 {
					counts[i].Add(1)
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
	}
	time.Sleep(100 * time.Millisecond)
	began := time.Now()
	begun.Store(began.UnixNano())
	f()
	begun.Store(0)
	took = time.Since(began)
	cancel()
	<-done
	<-done
	return counts[0].Load(), counts[1].Load(), took
}

// TestBlocked: it does not wait for its lock with others behind it, says who holds it, and tries again.
func TestBlocked(t *testing.T) {
	for _, spec := range specs {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Lend(t, spec)
			c, holder, other := sandboxtest.Connect(t, n), sandboxtest.Connect(t, n), sandboxtest.Connect(t, n)
			table(t, c, 10)
			_, o := planned(t, spec, sandboxtest.Target(t, n), "ADD COLUMN n INT NULL")
			do(t, holder, "BEGIN", "SELECT id FROM `my shop`.`or``ders` LIMIT 1")
			var said []string
			o.Say = func(text string) {
				said = append(said, text)
				if strings.Contains(text, "again in") && len(said) > 4 {
					do(t, holder, "COMMIT")
				}
			}
			longest := make(chan time.Duration)
			stop := make(chan struct{})
			go func() {
				var most time.Duration
				for {
					select {
					case <-stop:
						longest <- most
						return
					default:
					}
					began := time.Now()
					_ = other.Exec(t.Context(), "SELECT /* another */ b FROM `my shop`.`or``ders` WHERE id = 1")
					most = max(most, time.Since(began))
					time.Sleep(5 * time.Millisecond)
				}
			}()
			r, err := Run(t.Context(), o)
			close(stop)
			most := <-longest
			if err != nil || r.Tries != 3 || r.Waited < 1 {
				t.Errorf("got %+v, %v; want that it succeeds the third time", r, err)
			}
			if most < 500*time.Millisecond || most > 4*time.Second {
				t.Errorf("another waited for %s, want about the second that it may wait", most)
			}
			text := strings.Join(said, "\n")
			if !strings.Contains(text, fmt.Sprintf("connection %d", holder.Server.ConnectionID)) || !strings.Contains(text, "taken out of the queue") {
				t.Errorf("it said %s; want who holds the lock, and that it gave up", text)
			}
			if s, err := Look(t.Context(), o.Target, o.Dir, true); err != nil || s.State != StateNone {
				t.Errorf("got %+v, %v; want nothing left", s, err)
			}
			if r, err := Run(t.Context(), o); err != nil || !r.Already {
				t.Errorf("once more: got %+v, %v; want that it was so already", r, err)
			}
			do(t, c, "ALTER TABLE `my shop`.`or``ders` ADD COLUMN others INT")
			if _, err := Run(t.Context(), o); !errors.Is(err, ErrChanged) {
				t.Errorf("a table that was changed: %v, want ErrChanged", err)
			}
		})
	}
}

// TestInterrupted: Ctrl-C ends the statement in the server, and the table is as before.
func TestInterrupted(t *testing.T) {
	for _, spec := range specs {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Lend(t, spec)
			c := sandboxtest.Connect(t, n)
			table(t, c, 1000)
			_, o := planned(t, spec, sandboxtest.Target(t, n), "ADD COLUMN s BIGINT AS "+slow+" STORED")
			for patience := 300 * time.Millisecond; ; patience *= 2 {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				_, err := Run(ctx, o)
				cancel()
				if err != nil && strings.Contains(err.Error(), "prepare the session") && patience < 10*time.Second { // a busy machine: it did not come so far
					continue
				}
				if err == nil || !strings.Contains(err.Error(), "as before") {
					t.Errorf("got %v, want that the table is as before", err)
				}
				break
			}
			s, err := Look(t.Context(), o.Target, o.Dir, true)
			if err == nil && s.State == StateUndone { // a busy machine: the session was still there when it was looked for
				s, err = Look(t.Context(), o.Target, o.Dir, true)
			}
			if err != nil || s.State != StateNone {
				t.Errorf("got %+v, %v; want nothing left", s, err)
			}
			if left := columns(t, c); left != 4 {
				t.Errorf("%d columns, want 4", left)
			}
		})
	}
}

func columns(t *testing.T, c *mysql.Conn) (n int) {
	t.Helper()
	err := c.Query(t.Context(), "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'my shop'", func(row []sqldriver.Value) error {
		n, _ = strconv.Atoi(mysql.Text(row[0]))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestKilled: after kill -9 of Risso the server goes on with what it works at, or lets it be if it waits; both is said, and nothing is forgotten until it is
// over.
func TestKilled(t *testing.T) {
	if dsn := os.Getenv("RISSO_TEST_ALTER_DSN"); dsn != "" {
		target, err := mysql.ParseTarget(dsn)
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Target: target, Statement: os.Getenv("RISSO_TEST_ALTER_STATEMENT"), Table: mysql.TableName{Schema: "my shop", Name: "or`ders"}, Before: os.Getenv("RISSO_TEST_ALTER_BEFORE"), After: os.Getenv("RISSO_TEST_ALTER_AFTER"),
			LockWait: 2 * time.Second, EndWait: 2 * time.Second, Dir: os.Getenv("RISSO_TEST_ALTER_DIR")}
		_, err = Run(t.Context(), o)
		t.Fatalf("it went on: %v", err)
	}
	for _, spec := range specs {
		for _, waits := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s waits %t", spec, waits), func(t *testing.T) { killed(t, spec, waits) })
		}
	}
}

func killed(t *testing.T, spec string, waits bool) {
	n := sandboxtest.Lend(t, spec)
	c, holder := sandboxtest.Connect(t, n), sandboxtest.Connect(t, n)
	table(t, c, 1500)
	_, o := planned(t, spec, sandboxtest.Target(t, n), "ADD COLUMN s BIGINT AS "+slow+" STORED")
	if waits { // a copy begins beside readers
		do(t, holder, "BEGIN", "UPDATE `my shop`.`or``ders` SET b = 1 WHERE id = 1")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), "RISSO_TEST_ALTER_DSN="+n.DSN, "RISSO_TEST_ALTER_STATEMENT="+o.Statement, "RISSO_TEST_ALTER_BEFORE="+o.Before, "RISSO_TEST_ALTER_AFTER="+o.After, "RISSO_TEST_ALTER_DIR="+o.Dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await.Until(t, func() bool {
		s, err := Look(t.Context(), o.Target, o.Dir, true)
		return err == nil && s.State == StateBusy && serverRuns(t, c)
	}, "the ALTER TABLE of the other process")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	s, err := Look(t.Context(), o.Target, o.Dir, true)
	if err != nil || s.State != StateRuns || waits != strings.Contains(s.What, "waits for a lock") || s.Left == nil || s.Left.Statement != o.Statement {
		t.Fatalf("right after the kill: %+v, %v; want that the server still does it", s, err)
	}
	if err := Free(t.Context(), o.Target, o.Dir, nil); !errors.Is(err, ErrLeft) {
		t.Errorf("the next run: %v, want ErrLeft", err)
	}
	if _, err := Run(t.Context(), o); !errors.Is(err, ErrBusy) && !errors.Is(err, ErrChanged) {
		t.Errorf("the next run that does not ask: %v, want ErrBusy", err)
	}
	await.Until(t, func() bool {
		s, err = Look(t.Context(), o.Target, o.Dir, true)
		return err == nil && s.State != StateRuns
	}, "the end of the ALTER TABLE")
	want, wide := StateDone, 5
	if waits { // MariaDB looks whether its client is still there; MySQL gives up after lock_wait_timeout
		want, wide = StateUndone, 4
	}
	if s.State != want || columns(t, c) != wide {
		t.Errorf("at the end: %+v and %d columns, want %s and %d", s, columns(t, c), want, wide)
	}
	if s, err := Look(t.Context(), o.Target, o.Dir, true); err != nil || s.State != StateNone {
		t.Errorf("once it was said: %+v, %v; want nothing", s, err)
	}
	if left, _ := filepath.Glob(filepath.Join(o.Dir, "altered-*.jsonl")); len(left) == 0 {
		t.Error("no diary is there")
	}
}

// serverRuns reports whether an ALTER TABLE is in the server for a while.
func serverRuns(t *testing.T, c *mysql.Conn) (runs bool) {
	t.Helper()
	err := c.Query(t.Context(), "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'ALTER /* risso%' AND (STATE LIKE 'copy%' OR STATE LIKE 'altering%' OR STATE LIKE 'Waiting%')", func(row []sqldriver.Value) error {
		runs = mysql.Text(row[0]) != "0"
		return nil
	})
	return err == nil && runs
}

// TestReplicasFirst alters a replica and then its primary, none of it through the binary log, while rows go on replicating.
func TestReplicasFirst(t *testing.T) {
	for _, spec := range specs {
		t.Run(spec, func(t *testing.T) {
			s := sandboxtest.Sandbox(t, sandbox.Options{Servers: []string{spec}, Topology: sandbox.TopologyReplication, Replicas: 1})
			primary, replica := sandboxtest.Target(t, s.Nodes[0]), sandboxtest.Target(t, s.Nodes[1])
			c, r := sandboxtest.Connect(t, s.Nodes[0]), sandboxtest.Connect(t, s.Nodes[1])
			table(t, c, 200)
			p, o := planned(t, spec, primary, "ADD COLUMN n INT NOT NULL DEFAULT 7, ADD INDEX kb (b), ALGORITHM=INPLACE")
			if !p.First.Can {
				t.Fatalf("got %+v, want that it can", p.First)
			}
			check := func(first []mysql.Target) error {
				return CheckReplicas(t.Context(), p.First, primary, first, p.Facts.Replicas.Addresses, p.Facts.Replicas.Known)
			}
			if err := check(nil); !errors.Is(err, ErrReplicas) {
				t.Errorf("a replica is not named: %v, want ErrReplicas", err)
			}
			err := check([]mysql.Target{replica})
			if v, _ := r.Text(t.Context(), "SELECT @@read_only"); !c.Server.MariaDB() && v == "1" {
				if !errors.Is(err, ErrReplicas) || !strings.Contains(err.Error(), "super_read_only") {
					t.Errorf("with super_read_only: %v, want ErrReplicas", err)
				}
				do(t, r, "SET GLOBAL super_read_only = OFF")
				err = check([]mysql.Target{replica})
			}
			if err != nil {
				t.Fatal(err)
			}
			at := o
			at.Target = replica
			if _, err := Replica(t.Context(), primary, at); err != nil {
				t.Fatal(err)
			}
			do(t, c, "INSERT INTO `my shop`.`or``ders` (id, a) VALUES (9001, 1)") // the two differ now
			o.NotLogged = true
			if _, err := Run(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			do(t, c, "INSERT INTO `my shop`.`or``ders` (id, a, n) VALUES (9002, 1, 8)")
			await.Until(t, func() bool {
				v, err := r.Text(t.Context(), "SELECT GROUP_CONCAT(n ORDER BY id) FROM `my shop`.`or``ders` WHERE id > 9000")
				return err == nil && v == "7,8"
			}, "both rows on the replica")
		})
	}
}
