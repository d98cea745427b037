package read_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestOpenInZones: how long a blocking transaction is open is right in any time_zone of the server.
func TestOpenInZones(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"mariadb", "mysql-9.7", "mysql-8.0", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			n := sandboxtest.Up(t, spec, "default_time_zone=+05:00", "innodb_lock_wait_timeout=600")
			db, err := n.DB()
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			began := time.Now()
			holder, _ := session(t, db, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)", "INSERT INTO shop.t VALUES (1)", "BEGIN", "DELETE FROM shop.t")
			waiter, id := session(t, db)
			done := make(chan error, 1)
			go func() {
				_, err := waiter.ExecContext(context.WithoutCancel(t.Context()), "DELETE FROM shop.t")
				done <- err
			}()
			c := sandboxtest.Connect(t, n)
			for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(300 * time.Millisecond) { // some servers answer from a copy
				list, _, err := read.LockWaits(t.Context(), c, id)
				if err != nil {
					t.Fatal(err)
				}
				if len(list) > 0 {
					if open := list[0].Blocker.Open; open < 0 || open > time.Since(began).Seconds()+1 {
						t.Errorf("the transaction is told to be open for %v s, it is for %s at most; want from 0 to time.Since(began).Seconds() + 1",
							open, time.Since(began))
					}
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("nobody is told to wait")
				}
			}
			if _, err := holder.ExecContext(t.Context(), "ROLLBACK"); err != nil {
				t.Error(err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// session opens a session that ends with the test, and runs statements in it; id is its connection's.
func session(t *testing.T, db *sql.DB, statements ...string) (c *sql.Conn, id int64) {
	t.Helper()
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id); err != nil {
		t.Fatal(err)
	}
	for _, q := range statements {
		if _, err := c.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	return c, id
}
