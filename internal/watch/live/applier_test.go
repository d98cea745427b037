package live_test

import (
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestAppliersAndLocks: a session that keeps nobody but the applier waiting is named, and its KILL lets the applier go on; of an applier that
// keeps a session waiting no KILL is told, though MySQL shows it with the account of the transaction that it applies and the command Query.
func TestAppliersAndLocks(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7", "mysql-8.0"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			s := sandboxtest.Sandbox(t, sandbox.Options{Servers: []string{spec}, Topology: sandbox.TopologyReplication, Replicas: 1})
			primary, replica := open(t, s.Nodes[0]), open(t, s.Nodes[1])
			c := conn(t, replica)
			defer c.Close()
			if !strings.HasPrefix(spec, "mariadb") {
				run(t, replica, "SET GLOBAL super_read_only = OFF")
			}
			run(t, primary, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)", "INSERT INTO d.t VALUES (1, 1)",
				"CREATE TABLE d.wide (id INT, v VARCHAR(200))", "INSERT INTO d.wide VALUES (1, REPEAT('a', 100))") // without a key an applier reads the whole table again and again
			for range 16 {
				run(t, primary, "INSERT INTO d.wide SELECT id, v FROM d.wide")
			}
			w := watch(t, rootDSN(s.Nodes[1]))
			w.awaitTicks(t, 4)
			w.await(t, "the rows", func() bool {
				var n int
				return replica.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM d.wide").Scan(&n) == nil && n == 65536
			})
			run(t, c, "BEGIN", "SELECT v FROM d.t WHERE id = 1 FOR UPDATE")
			run(t, primary, "UPDATE d.t SET v = 2 WHERE id = 1")
			f := w.awaitFinding(t, "lock.blocker", "keeps 1 other waiting for a row lock in the index PRIMARY of d.t")
			run(t, replica, f.Remedy)
			w.await(t, "the applier goes on", func() bool {
				var v int
				return replica.QueryRowContext(t.Context(), "SELECT v FROM d.t WHERE id = 1").Scan(&v) == nil && v == 2
			})
			w.awaitNone(t, "lock.blocker")
			run(t, primary, "UPDATE d.wide SET id = 2")
			waiter := conn(t, replica)
			defer waiter.Close()
			go func() { // until the test ends; whoever comes before the applier lets go at once
				for t.Context().Err() == nil {
					_, _ = waiter.ExecContext(t.Context(), "SELECT id FROM d.wide LIMIT 1 FOR UPDATE")
				}
			}()
			f = w.awaitFinding(t, "lock.blocker", "(system user) keeps 1 other waiting for a row lock")
			if f.Remedy != "" || !strings.Contains(f.What, "a thread of replication") {
				t.Errorf("got %q, remedy %q; want no remedy, and that it is a thread of replication", f.What, f.Remedy)
			}
		})
	}
}
