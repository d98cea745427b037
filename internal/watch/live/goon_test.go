package live_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// broken is a way to stop replication.
type broken struct {
	name    string
	replica []string // run there without being logged
	primary []string
	told    []string // words of the finding
	eased   bool     // MariaDB applies it all the same (slave_ddl_exec_mode), and nothing stops
}

var breaks = []broken{
	{"duplicate", []string{"INSERT INTO g.t VALUES (1, 'here')"}, []string{"INSERT INTO g.t VALUES (1, 'there')"}, []string{"error 1062 ", " on table g.t, key ", "PRIMARY: ", "Duplicate entry"}, false},
	{"missing row", []string{"DELETE FROM g.t WHERE id = 1"}, []string{"DELETE FROM g.t WHERE id = 1"}, []string{"error 1032 ", " on table g.t: "}, false},
	{"object is there", []string{"CREATE TABLE g.u (id INT PRIMARY KEY)"}, []string{"CREATE TABLE g.u (id INT PRIMARY KEY)"}, []string{"error 1050 ", " on table u: ", "nothing is lost"}, true},
	{"schema is there", []string{"CREATE DATABASE g2"}, []string{"CREATE DATABASE g2"}, []string{"error 1007"}, true},
	{"nothing to drop", []string{"DROP DATABASE g2"}, []string{"DROP DATABASE g2"}, []string{"error 1008"}, true},
	{"column is there", []string{"ALTER TABLE g.t ADD COLUMN w INT"}, []string{"ALTER TABLE g.t ADD COLUMN w INT"}, []string{"error 1060"}, false},
	{"no table", []string{"DROP TABLE g.u"}, []string{"INSERT INTO g.u VALUES (1)"}, []string{"error 1146", "repair them by risso checksum --mend"}, false},
}

// TestReplicationGoesOn breaks replication in each way, by GTID and by position. The finding says number, transaction, table and key; its
// remedy, as the mysql client runs it, lets replication go on, and the finding ends.
func TestReplicationGoesOn(t *testing.T) {
	for _, spec := range []string{"mariadb", "mariadb-11.8", "mysql-9.7", "mysql-8.0", "mysql-5.7"} {
		for _, byGTID := range []bool{true, false} {
			if !byGTID && spec != "mariadb" && spec != "mysql-9.7" {
				continue
			}
			t.Run(fmt.Sprintf("%s, GTID %v", spec, byGTID), func(t *testing.T) {
				t.Parallel()
				s := sandboxtest.Pair(t, spec)
				replica := s.Nodes[1]
				primary, db := open(t, s.Primary()), open(t, replica)
				c := conn(t, db)
				defer c.Close()
				maria := strings.HasPrefix(spec, "mariadb")
				if !maria {
					run(t, db, "SET GLOBAL super_read_only = OFF")
				}
				if !byGTID {
					byPosition(t, s, maria)
				}
				run(t, primary, "CREATE DATABASE g", "CREATE TABLE g.t (id INT PRIMARY KEY, v VARCHAR(20))", "CREATE TABLE g.mark (id INT PRIMARY KEY)")
				w := watch(t, rootDSN(replica))
				w.awaitTicks(t, 2)
				marks := 0
				goesOn := func() {
					t.Helper()
					marks++
					run(t, primary, fmt.Sprintf("INSERT INTO g.mark VALUES (%d)", marks))
					w.await(t, "a row that comes later", func() bool {
						var n int
						return db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM g.mark").Scan(&n) == nil && n == marks
					})
				}
				goesOn()
				run(t, c, "SET SESSION sql_log_bin = 0")
				for _, b := range breaks {
					if maria && b.eased {
						run(t, primary, b.primary...)
						continue
					}
					run(t, c, b.replica...)
					run(t, primary, b.primary...)
					f := w.awaitFinding(t, "repl.stopped", b.told...)
					if named := strings.Contains(f.What, " in transaction "); named != (byGTID || maria) {
						t.Errorf("%s: got %q; a transaction in it: want %v", b.name, f.What, byGTID || maria)
					}
					if strings.Contains(f.Remedy, "--") || f.Remedy == "" || strings.HasPrefix(f.Remedy, "START ") {
						t.Errorf("%s: got the remedy %q; want statements that do not stop again", b.name, f.Remedy)
					}
					asCopied(t, replica, f.Remedy)
					goesOn()
				}
				w.awaitNone(t, "repl.stopped")
				if n := rowsOf(t, replica, "SELECT COUNT(*) FROM g.t WHERE v = 'here'"); byGTID && n != "0" {
					t.Errorf("the duplicate was not overwritten: got %s rows, want 0", n)
				}
				if mode := rowsOf(t, replica, "SELECT @@GLOBAL.slave_exec_mode"); !strings.HasPrefix(spec, "mysql-9") && mode != "STRICT" {
					t.Errorf("rows are still passed over: got %s, want STRICT", mode)
				}
				sameID(t, w, s, maria)
				goesOn()
			})
		}
	}
}

// sameID gives both servers one server_id; the remedy gives the replica another.
func sameID(t *testing.T, w *watched, s *sandbox.Sandbox, maria bool) {
	t.Helper()
	replica := s.Nodes[1]
	words := [2]string{"STOP REPLICA", "START REPLICA"}
	if maria || strings.HasPrefix(replica.Version, "5.7") || strings.HasPrefix(replica.Version, "8.0.1") {
		words = [2]string{"STOP SLAVE", "START SLAVE"}
	}
	asCopied(t, replica, fmt.Sprintf("%s; SET GLOBAL server_id = %s; %s", words[0], rowsOf(t, s.Primary(), "SELECT @@GLOBAL.server_id"), words[1]))
	f := w.awaitFinding(t, "repl.stopped", "not receiving", "equal", "option file")
	asCopied(t, replica, f.Remedy)
	w.awaitNone(t, "repl.stopped")
}

// byPosition lets the pair replicate without GTIDs.
func byPosition(t *testing.T, s *sandbox.Sandbox, maria bool) {
	t.Helper()
	replica := s.Nodes[1]
	if maria {
		asCopied(t, replica, "STOP SLAVE; CHANGE MASTER TO MASTER_USE_GTID=no; START SLAVE")
		return
	}
	asCopied(t, replica, "STOP REPLICA; CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 0")
	for _, mode := range []string{"ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"} {
		for _, n := range s.Nodes {
			asCopied(t, n, "SET GLOBAL gtid_mode = "+mode)
		}
	}
	asCopied(t, replica, "START REPLICA")
}

// asCopied runs statements as a person does who copied them.
func asCopied(t *testing.T, n *sandbox.Node, statements string) {
	t.Helper()
	cmd, err := n.Client(t.Context(), []string{"-e", statements})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", statements, err, out)
	}
}

// rowsOf is the one value that a query returns.
func rowsOf(t *testing.T, n *sandbox.Node, query string) (v string) {
	t.Helper()
	if err := open(t, n).QueryRowContext(t.Context(), query).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}
