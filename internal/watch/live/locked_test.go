package live_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestDeadlocks: a server's deadlocks are each counted once, also one of three transactions and one whose statements are long, and are
// reported when there are many; the remedy is one that the server takes, and names the statements.
func TestDeadlocks(t *testing.T) {
	for _, spec := range []string{"mariadb", "mariadb-11.8", "mysql-9.7", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			n := sandboxtest.Up(t, spec, "performance_schema=OFF")
			db := open(t, n)
			run(t, db, "CREATE DATABASE shop", "CREATE TABLE shop.stock (id INT PRIMARY KEY, v INT)", "INSERT INTO shop.stock VALUES (0, 0), (1, 1), (2, 2)")
			w := watch(t, rootDSN(n))
			w.awaitTicks(t, 2)
			before := w.deadlocks(t)
			made := 0
			for _, sessions := range []int{2, 3, 2, 3, 2, 2, 3, 2} {
				made += ring(t, db.Conn, sessions)
			}
			words := "about "
			if spec == "mysql-5.7" { // counts only those that end by rolling back a session that waited already: the one that has done less
				words = "at least about "
			} else {
				w.await(t, "the count", func() bool { return w.deadlocks(t) >= before+float64(made) })
			}
			w.awaitTicks(t, 2)
			if n := w.deadlocks(t) - before; n != float64(made) && spec != "mysql-5.7" || n > float64(made) {
				t.Errorf("%v deadlocks are counted, there were %d", n, made)
			}
			for deadline := time.Now().Add(patience); len(w.finding("deadlock.rate")) == 0 && time.Now().Before(deadline); { // a busy machine may have needed minutes for those
				unequal(t, db.Conn)
			}
			f := w.awaitFinding(t, "deadlock.rate", "deadlocks a minute")
			if !strings.HasPrefix(f.What, words) {
				t.Errorf("%s: not all are counted, or they are: %s; want %q at its beginning", spec, f.What, words)
			}
			set, show, _ := strings.Cut(f.Remedy, "; ")
			run(t, db, set)
			var kind, name, status string
			if err := db.QueryRowContext(t.Context(), show).Scan(&kind, &name, &status); err != nil || !strings.Contains(status, "LATEST DETECTED DEADLOCK") || !strings.Contains(status, "UPDATE shop.stock") {
				t.Errorf("%s shows no deadlock: %v %s; want \"LATEST DETECTED DEADLOCK\" in it, \"UPDATE shop.stock\" in it", show, err, status)
			}
		})
	}
}

func (w *watched) deadlocks(t *testing.T) float64 {
	t.Helper()
	for _, key := range []string{"mysql_global_status_innodb_deadlocks", "mysql_info_schema_innodb_metrics_lock_lock_deadlocks_total"} {
		if v, ok := w.facts.Value(key); ok {
			return v
		}
	}
	t.Fatal("the server counts no deadlocks")
	return 0
}

// ring lets sessions wait for each other in a ring, by statements of 20 KB, and returns how many the server rolled back.
func ring(t *testing.T, open func(context.Context) (*sql.Conn, error), sessions int) (victims int) {
	t.Helper()
	long := strings.Repeat("x", 20000)
	update := func(id int) string {
		return fmt.Sprintf("UPDATE shop.stock SET v = v + 1 WHERE id = %d /* %s */", id, long)
	}
	list := make([]*sql.Conn, sessions)
	for i := range list {
		c, err := open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		run(t, c, "BEGIN", update(i))
		list[i] = c
	}
	done := make(chan error, sessions)
	for i, c := range list {
		go func() {
			_, err := c.ExecContext(t.Context(), update((i+1)%sessions))
			if err == nil || errorNumber(err) == 1213 {
				_, rollback := c.ExecContext(t.Context(), "ROLLBACK") // lets the next one go on
				if err == nil {
					err = rollback
				}
			}
			done <- err
		}()
	}
	for range sessions {
		switch err := <-done; {
		case errorNumber(err) == 1213:
			victims++
		case err != nil:
			t.Error(err)
		}
	}
	if victims == 0 {
		t.Error("no deadlock")
	}
	return victims
}

// unequal lets a session that has done less wait first for one that has done more, and is sent away for it.
func unequal(t *testing.T, open func(context.Context) (*sql.Conn, error)) {
	t.Helper()
	less, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer less.Close()
	more, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer more.Close()
	run(t, less, "BEGIN", "UPDATE shop.stock SET v = v + 1 WHERE id = 0")
	run(t, more, "BEGIN", "UPDATE shop.stock SET v = v + 1 WHERE id = 1", "UPDATE shop.stock SET v = v + 1 WHERE id = 1", "UPDATE shop.stock SET v = v + 1 WHERE id = 2")
	done := make(chan error, 1)
	go func() {
		_, err := less.ExecContext(t.Context(), "UPDATE shop.stock SET v = v + 1 WHERE id = 1")
		done <- err
	}()
	for waits, deadline := 0, time.Now().Add(patience); waits == 0 && time.Now().Before(deadline); {
		time.Sleep(200 * time.Millisecond) // a query within 0.1 s of the last gets an old copy (MySQL manual, "InnoDB INFORMATION_SCHEMA Transaction and Locking Information")
		if err := more.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'").Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	_, err = more.ExecContext(t.Context(), "UPDATE shop.stock SET v = v + 1 WHERE id = 0")
	if other := <-done; errorNumber(err) != 1213 && errorNumber(other) != 1213 {
		t.Errorf("no deadlock: %v, %v", err, other)
	}
	_, _ = more.ExecContext(t.Context(), "ROLLBACK")
	_, _ = less.ExecContext(t.Context(), "ROLLBACK")
}

// TestRedoPressure: a redo log that is written faster than pages are flushed is reported with true figures, and no longer when
// nothing is written, however full it stays.
func TestRedoPressure(t *testing.T) {
	for _, c := range []struct {
		spec     string
		settings []string
	}{
		{"mysql-9.7", []string{"innodb_redo_log_capacity=8M"}},
		{"mysql-8.0", []string{"innodb_log_file_size=4M", "innodb_monitor_enable=all"}}, // by default it does not say
		{"mariadb", []string{"innodb_log_file_size=4M"}},
		{"mariadb-11.8", []string{"innodb_log_file_size=4M"}},
	} {
		t.Run(c.spec, func(t *testing.T) {
			t.Parallel()
			// Nothing flushes but what a full log makes flush.
			n := sandboxtest.Up(t, c.spec, append(c.settings, "innodb_adaptive_flushing=OFF", "innodb_io_capacity=100", "innodb_max_dirty_pages_pct=99",
				"innodb_buffer_pool_size=64M", "innodb_flush_log_at_trx_commit=0", "skip_log_bin")...)
			db := open(t, n)
			run(t, db, "CREATE DATABASE shop", "CREATE TABLE shop.notes (id INT PRIMARY KEY, note LONGBLOB)")
			w := watch(t, rootDSN(n))
			w.awaitTicks(t, 2)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				for i := 0; ctx.Err() == nil; i++ {
					if _, err := db.ExecContext(ctx, "REPLACE INTO shop.notes VALUES (?, REPEAT(?, 100000))", i%200, string(rune('a'+i%26))); err != nil && ctx.Err() == nil {
						ended <- err
						return
					}
				}
				ended <- nil
			}()
			f := w.awaitFinding(t, "redo.pressure", "the redo log is", "% full", "more are written per second: when it is full, all writes wait")
			t.Log(f.What)
			stop()
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			w.awaitNone(t, "redo.pressure")
			if strings.HasPrefix(f.Remedy, "SET ") { // else it is for the option file
				run(t, db, f.Remedy)
			}
		})
	}
}

// TestStall: a server whose sessions all wait for one stalls, in the third second; who keeps them waiting is in the same sentence, and
// the remedy ends it. A load that ends is no stall.
func TestStall(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			n := sandboxtest.Up(t, spec)
			db := open(t, n)
			run(t, db, "CREATE DATABASE shop", "CREATE TABLE shop.stock (id INT PRIMARY KEY, v INT)", "INSERT INTO shop.stock VALUES (0, 0), (1, 1), (2, 2)")
			ctx, end := context.WithCancel(t.Context())
			var load sync.WaitGroup
			defer load.Wait()
			defer end()
			for i := range 6 {
				load.Go(func() {
					for ctx.Err() == nil {
						if _, err := db.ExecContext(ctx, fmt.Sprintf("UPDATE shop.stock SET v = v + 1 WHERE id = %d", i%3)); err != nil && ctx.Err() == nil && errorNumber(err) != 1205 {
							t.Error(err)
							return
						}
						time.Sleep(10 * time.Millisecond)
					}
				})
			}
			w := watch(t, rootDSN(n))
			w.awaitTicks(t, 30)
			noStall(t, w, "a server that works")
			c, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			run(t, c, "BEGIN", "UPDATE shop.stock SET v = v + 1")
			began := time.Now()
			f := w.awaitFinding(t, "server.stall", "stall: ", "keeps 6 others waiting for a row lock", "shop.stock")
			if f.Since.Before(began.Add(-2 * time.Second)) {
				t.Errorf("got it since %v, want since %v", f.Since, began)
			}
			if f.Severity != fleet.SeverityCritical || !strings.HasPrefix(f.Remedy, "KILL ") {
				t.Fatalf("got %+v, want it critical, and the KILL of who keeps the others waiting", f)
			}
			run(t, db, f.Remedy)
			w.awaitNone(t, "server.stall")
			w.awaitTicks(t, 20)
			end()
			load.Wait()
			for range 10 {
				w.awaitTicks(t, 1)
				noStall(t, w, "a load that ends")
			}
		})
	}
}

// noStall wants none that would wake anybody at once.
func noStall(t *testing.T, w *watched, of string) {
	t.Helper()
	for _, f := range w.finding("server.stall") {
		if f.Severity == fleet.SeverityCritical {
			t.Fatalf("got %+v, want no stall of %s", f, of)
		}
	}
}

// TestBriefGlobalLock: a lock of the whole server that is taken just before a reading, for which sessions begin to wait just after it, and
// that is over before the next one, is found nevertheless.
func TestBriefGlobalLock(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			n := sandboxtest.Up(t, spec)
			db := open(t, n)
			run(t, db, "CREATE DATABASE shop", "CREATE TABLE shop.stock (id INT PRIMARY KEY, v INT)", "INSERT INTO shop.stock VALUES (0, 0), (1, 1), (2, 2)")
			w := watch(t, rootDSN(n))
			w.awaitTicks(t, 3)
			holder, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer holder.Close()
			for try := range 10 {
				w.awaitTicks(t, 1) // readings are at full seconds
				time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(900 * time.Millisecond)))
				run(t, holder, "FLUSH TABLES WITH READ LOCK")
				time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(1150 * time.Millisecond)))
				var waits sync.WaitGroup
				for i := range 3 {
					waits.Go(func() {
						if _, err := db.ExecContext(t.Context(), fmt.Sprintf("UPDATE shop.stock SET v = v + 1 WHERE id = %d", i)); err != nil {
							t.Error(err)
						}
					})
				}
				time.Sleep(600 * time.Millisecond)
				run(t, holder, "UNLOCK TABLES")
				waits.Wait()
				w.awaitTicks(t, 2)
				if list := w.finding("lock.global"); len(list) > 0 {
					t.Logf("at try %d: %s", try+1, list[0].What)
					return
				}
			}
			t.Error("a lock of the whole server of 0.85 s was not found in ten tries")
		})
	}
}
