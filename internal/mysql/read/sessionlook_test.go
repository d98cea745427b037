package read_test

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestWholeStatements: without performance_schema the process list is read in short; what it cuts of the statements of those who wait and
// who are in the way is read after it.
func TestWholeStatements(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"mariadb", "mariadb-11.8", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			n := sandboxtest.Up(t, spec, "performance_schema=OFF", "innodb_lock_wait_timeout=600")
			db, err := n.DB()
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			long := "/* " + strings.Repeat("a statement with much to say before its point ", 5) + "*/"
			holder, holderID := session(t, db, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)", "INSERT INTO shop.t VALUES (1)", "BEGIN", "DELETE FROM shop.t", "DO GET_LOCK('nightly', 1)")
			waiter, waiterID := session(t, db)
			second, secondID := session(t, db)
			background(ctx, holder, "DO SLEEP(600), "+long+" 'the point'")
			background(ctx, waiter, "DELETE FROM shop.t")
			background(ctx, second, "DO "+long+" GET_LOCK('nightly', 600)")
			c := sandboxtest.Connect(t, n)
			var list []read.LockWait
			await.Until(t, func() bool {
				if list, _, err = read.LockWaits(t.Context(), c, 0); err != nil {
					t.Fatal(err)
				}
				return len(list) == 2 && list[0].Blocker.Statement != "" && list[1].Blocker.Statement != "" // the holder may begin its own after them
			}, "two sessions that wait for one with a statement: %+v", &list)
			for _, w := range list {
				if w.Waiter != waiterID && w.Waiter != secondID || w.Blocker.ID != holderID || !strings.HasSuffix(w.Blocker.Statement, "'the point'") || w.Blocker.User != "root" {
					t.Errorf("got %+v; want connections %d and %d to wait for %d, whose statement ends with 'the point'", w, waiterID, secondID, holderID)
				}
			}
		})
	}
}

// TestTransactionsOnce: the open transactions are asked for once in a reading, also when some wait and others are old enough to be told.
func TestTransactionsOnce(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"mariadb", "mysql-9.7", "mysql-8.0", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			n := sandboxtest.Up(t, spec, "innodb_lock_wait_timeout=600", "log_output=TABLE")
			db, err := n.DB()
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, holderID := session(t, db, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)", "INSERT INTO shop.t VALUES (1)", "BEGIN", "DELETE FROM shop.t")
			waiter, waiterID := session(t, db)
			background(ctx, waiter, "DELETE FROM shop.t")
			c := sandboxtest.Connect(t, n)
			r, tick := read.NewReader(c.Traffic()), int64(600)
			look := func() {
				t.Helper()
				tick++
				if err := r.Read(t.Context(), c, tick); err != nil {
					t.Fatal(err)
				}
			}
			found := func() bool {
				look()
				old := r.Old(time.Second)
				slices.SortFunc(old, func(a, b read.OldTransaction) int { return cmp.Compare(b.Modified, a.Modified) }) // both began in one second
				return len(r.Locks) == 1 && r.Locks[0].Waiter == waiterID && r.Locks[0].Blocker.ID == holderID && r.Locks[0].Blocker.Open >= 1 &&
					len(old) == 2 && old[0].Session.ID == holderID && old[0].Modified == 1 && old[0].Session.Command == "Sleep" && old[1].Session.ID == waiterID && strings.HasPrefix(old[1].Session.Statement, "DELETE")
			}
			for deadline := time.Now().Add(time.Minute); !found(); time.Sleep(200 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("locks %+v, old %+v; want connection %d to wait for %d, and both as old transactions", r.Locks, r.Old(time.Second), waiterID, holderID)
				}
			}
			if _, err := db.ExecContext(t.Context(), "SET GLOBAL general_log = ON"); err != nil {
				t.Fatal(err)
			}
			const readings = 5
			for range readings {
				if time.Sleep(200 * time.Millisecond); !found() {
					t.Errorf("locks %+v, old %+v; want them as before", r.Locks, r.Old(time.Second))
				}
			}
			var all, joined int
			asked := func() bool {
				t.Helper()
				if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*), COALESCE(SUM(argument LIKE '%INNODB_LOCK%'), 0) FROM mysql.general_log WHERE argument LIKE 'SELECT /* risso%INNODB_TRX%'").Scan(&all, &joined); err != nil {
					t.Fatal(err)
				}
				return all-joined >= readings
			}
			for deadline := time.Now().Add(10 * time.Second); !asked() && time.Now().Before(deadline); { // the log's table shows what was written to it a moment later
				time.Sleep(100 * time.Millisecond)
			}
			if all-joined != readings {
				t.Errorf("the transactions were asked for %d times in %d readings, and %d times joined with locks", all, readings, joined)
			}
		})
	}
}

// background runs a statement in a session until ctx ends.
func background(ctx context.Context, c *sql.Conn, statement string) {
	go func() { _, _ = c.ExecContext(ctx, statement) }()
}
