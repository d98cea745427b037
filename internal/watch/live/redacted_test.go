package live_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/watch/collect"
)

// TestFindingsWithoutValues: where no literals may be kept, findings quote neither the key of a locked record, nor the name of a user lock, nor
// the value in the error at which replication stopped; they are kept and sent. Without that they do.
func TestFindingsWithoutValues(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			s := sandboxtest.Sandbox(t, sandbox.Options{Servers: []string{spec}, Topology: sandbox.TopologyReplication, Replicas: 1})
			primary, replica := open(t, s.Nodes[0]), open(t, s.Nodes[1])
			run(t, primary, "CREATE DATABASE d", "CREATE TABLE d.t (id VARCHAR(40) PRIMARY KEY, v INT)")
			local := conn(t, replica)
			defer local.Close()
			if strings.HasPrefix(spec, "mysql") {
				run(t, replica, "SET GLOBAL super_read_only = OFF")
			}
			plain := watch(t, rootDSN(s.Nodes[1]))
			hidden := watchWith(t, rootDSN(s.Nodes[1]), collect.Options{Redact: true})
			hidden.awaitTicks(t, 4)
			hidden.await(t, "the table", func() bool {
				_, err := replica.ExecContext(t.Context(), "SELECT 1 FROM d.t")
				return err == nil
			})
			run(t, local, "SET SESSION sql_log_bin = 0", "INSERT INTO d.t VALUES ('s3cret', 1)")
			run(t, primary, "INSERT INTO d.t VALUES ('s3cret', 2)")
			both := func(id, words, value string) {
				t.Helper()
				plain.awaitFinding(t, id, words, value)
				if f := hidden.awaitFinding(t, id, words); strings.Contains(fmt.Sprint(f), "s3cret") {
					t.Errorf("without values a finding says %+v", f)
				}
			}
			both("repl.stopped", "Duplicate entry", "s3cret")
			run(t, local, "BEGIN", "UPDATE d.t SET v = 3")
			waiter := conn(t, replica)
			defer waiter.Close()
			go func() { _, _ = waiter.ExecContext(t.Context(), "UPDATE d.t SET v = 4") }()
			both("lock.blocker", "of d.t, record", "s3cret")
			run(t, local, "ROLLBACK", "DO GET_LOCK('s3cret', 1)")
			other := conn(t, replica)
			defer other.Close()
			go func() { _, _ = other.ExecContext(t.Context(), "DO GET_LOCK('s3cret', 100)") }()
			both("lock.user", "the user lock", "s3cret")
		})
	}
}
