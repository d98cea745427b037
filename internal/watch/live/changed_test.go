package live_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestOtherServer: if another server, of another version, answers in place of one, its settings count immediately and those of the old
// one no more; no rate is made of the counters of both.
func TestOtherServer(t *testing.T) {
	for _, specs := range [][2]string{{"mysql-5.7", "mysql-9.7"}, {"mysql-9.7", "mariadb"}} {
		t.Run(specs[0], func(t *testing.T) {
			t.Parallel()
			old := sandboxtest.Up(t, specs[0], "max_connections=1000")
			now := sandboxtest.Up(t, specs[1], "max_connections=20")
			dir, err := os.MkdirTemp("", "rl-")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			link := filepath.Join(dir, "s")
			if err := os.Symlink(old.Socket, link); err != nil {
				t.Fatal(err)
			}
			db := open(t, now)
			for range 18 {
				c := conn(t, db)
				defer c.Close()
			}
			w := watch(t, "root@unix("+link+")/")
			w.awaitTicks(t, 3)
			for _, gone := range gone[specs[0]] {
				if _, ok := w.facts.Value(gone); !ok {
					t.Errorf("%s has no %s, want ok true", specs[0], gone)
				}
			}
			if err := os.Symlink(now.Socket, link+"2"); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(link+"2", link); err != nil {
				t.Fatal(err)
			}
			if err := old.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.awaitFinding(t, "conn.saturation", "of 20 connections are in use")
			if d := w.told(); d.Version != now.Version && !strings.HasPrefix(d.Version, now.Version) {
				t.Errorf("its version is told as %s, it is %s", d.Version, now.Version)
			}
			for _, gone := range gone[specs[0]] {
				if v, ok := w.facts.Value(gone); ok {
					t.Errorf("%s is told as %v of %s, which has none", gone, v, specs[1])
				}
			}
			n := 0
			w.mu.Lock()
			for _, e := range w.events {
				if e.Kind == fleet.EventVersion {
					n++
				}
			}
			w.mu.Unlock()
			if n != 1 {
				t.Errorf("got %d events tell of the other version, want 1", n)
			}
		})
	}
}

// gone are settings that the next version, or the other server, does not have.
var gone = map[string][]string{
	"mysql-5.7": {"mysql_global_variables_query_cache_size", "mysql_global_variables_innodb_log_files_in_group"},
	"mysql-9.7": {"mysql_global_variables_innodb_redo_log_capacity", "mysql_global_variables_super_read_only"},
}

// TestGrantsLost: what an account may no longer read is reported as a gap with the grant that restores it, and what was known of
// it is not reported as if it were still true.
func TestGrantsLost(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			s := sandboxtest.Pair(t, spec, "performance_schema=ON")
			replica := s.Nodes[1]
			primary, db := open(t, s.Primary()), open(t, replica)
			status := "REPLICATION CLIENT"
			if spec == "mariadb" {
				status = "REPLICA MONITOR"
			}
			run(t, primary, "CREATE USER eye@localhost", "GRANT PROCESS, "+status+" ON *.* TO eye@localhost", "GRANT SELECT ON performance_schema.* TO eye@localhost")
			stop, start := "STOP REPLICA", "START REPLICA"
			w := watchAs(t, db, replica, "eye")
			w.awaitTicks(t, 2)
			w.await(t, "a reading without a gap in replication", func() bool { return !w.gap("replication status") && w.told().Role == fleet.RoleReplica })
			run(t, db, stop)
			w.awaitFinding(t, "repl.stopped")
			// A privilege on all is looked at when an account connects.
			if spec != "mariadb" {
				run(t, db, "SET GLOBAL super_read_only = OFF")
			}
			run(t, db, "REVOKE "+status+" ON *.* FROM eye@localhost")
			disconnect(t, db, "eye")
			w.await(t, "the gap", func() bool { return w.gap("replication status") })
			w.awaitNone(t, "repl.stopped")
			if d := w.told(); d.Role != fleet.RoleReplica || strings.Contains(fmt.Sprint(d.Facts), "replicates from") || d.State == "down" {
				t.Errorf("what cannot be read is told: %s %s %v; want d.Role fleet.RoleReplica, no \"replicates from\" in it, d.State not \"down\"",
					d.State, d.Role, d.Facts)
			}
			for _, g := range w.told().Gaps {
				if g.What == "replication status" {
					run(t, db, g.Remedy)
				}
			}
			disconnect(t, db, "eye")
			w.awaitFinding(t, "repl.stopped")
			run(t, db, start)
			w.awaitNone(t, "repl.stopped")
		})
	}
}

func (w *watched) gap(what string) bool {
	for _, g := range w.told().Gaps {
		if g.What == what {
			return true
		}
	}
	return false
}

// watchAs waits until the replica has the account, and watches as it.
func watchAs(t *testing.T, db *sql.DB, n *sandbox.Node, user string) *watched {
	t.Helper()
	w := watch(t, fmt.Sprintf("%s@unix(%s)/", user, n.Socket))
	w.await(t, "the account", func() bool { return w.told().State != "down" && w.told().State != "new" })
	return w
}

// disconnect ends an account's sessions.
func disconnect(t *testing.T, db *sql.DB, user string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = ?", user)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id int
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		_, _ = db.ExecContext(t.Context(), fmt.Sprintf("KILL %d", id)) // may be gone
	}
}

// TestRoleUnread: of a replica whose account may not ask for replication nobody says that it is standalone, or healthy; with the grant that
// the gap names its role is known.
func TestRoleUnread(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			s := sandboxtest.Pair(t, spec)
			replica := s.Nodes[1]
			primary, db := open(t, s.Primary()), open(t, replica)
			run(t, primary, "CREATE USER nobody@localhost")
			w := watchAs(t, db, replica, "nobody")
			w.awaitTicks(t, 2)
			if d := w.told(); d.Role != fleet.RoleUnread || !strings.HasPrefix(d.Words, "role unknown: replication cannot be read") || d.State != "ok" {
				t.Errorf("got the role %q, %s: %q; want %q and that it cannot be read", d.Role, d.State, d.Words, fleet.RoleUnread)
			}
			if spec != "mariadb" {
				run(t, db, "SET GLOBAL super_read_only = OFF")
			}
			for _, g := range w.told().Gaps {
				if g.What == "replication status" {
					run(t, db, g.Remedy)
				}
			}
			disconnect(t, db, "nobody")
			w.await(t, "the role", func() bool { return w.told().Role == fleet.RoleReplica })
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, e := range w.events {
				if e.Kind == fleet.EventRole {
					t.Errorf("got %q, want no event: the role did not change", e.Text)
				}
			}
		})
	}
}
