package scenario_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/store/state"
)

// TestReplicationErrors: a replica with a missing row, or one too many, is reported with number, table and row, and the remedy as printed
// makes it follow and have what the primary has.
func TestReplicationErrors(t *testing.T) {
	t.Parallel()
	eachKind(t, []string{"mariadb", "mysql-9.7", "mysql-5.7"}, func(t *testing.T, kind string) {
		s := up(t, sandbox.Options{Name: "s", Servers: []string{kind}, Topology: sandbox.TopologyReplication, Replicas: 1})
		primary, replica := s.Nodes[0], s.Nodes[1]
		execSQL(t, primary, "CREATE DATABASE t; CREATE TABLE t.a (id INT PRIMARY KEY, v INT); INSERT INTO t.a VALUES (1, 1), (2, 2)")
		await(t, "the rows are on the replica", func() bool {
			return value(t, replica, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 't'") == "1" && value(t, replica, "SELECT COUNT(*) FROM t.a") == "2"
		})
		if !strings.HasPrefix(kind, "mariadb") {
			execSQL(t, replica, "SET GLOBAL super_read_only = OFF")
		}
		r := serve(t, dataDir(t), "--no-host", "--dsn", "r="+replica.DSN)
		for _, c := range []struct {
			number        int
			there, before string
		}{
			{1032, "DELETE FROM t.a WHERE id = 1", "UPDATE t.a SET v = 7 WHERE id = 1"},
			{1062, "INSERT INTO t.a VALUES (3, 4)", "INSERT INTO t.a VALUES (3, 3)"},
		} {
			execSQL(t, replica, "SET SESSION sql_log_bin = 0; "+c.there)
			execSQL(t, primary, c.before)
			var found fleet.Finding
			await(t, "the error is told", func() bool {
				list := r.instance(t, "r").Findings
				i := slices.IndexFunc(list, func(f fleet.Finding) bool { return f.ID == "repl.stopped" })
				if i >= 0 {
					found = list[i]
				}
				return i >= 0 && strings.Contains(found.What, fmt.Sprintf("error %d", c.number))
			})
			if !strings.Contains(found.What, "t.a") || !strings.Contains(found.What, "end_log_pos") {
				t.Errorf("%d: no table or no place: %s; want \"t.a\" in it, \"end_log_pos\" in it", c.number, found.What)
			}
			execSQL(t, replica, found.Remedy)
			execSQL(t, primary, "INSERT INTO t.a VALUES (10, 10)")
			await(t, "it follows again", func() bool { return value(t, replica, "SELECT COUNT(*) FROM t.a WHERE id = 10") == "1" })
			then := found.Remedy[strings.LastIndex(found.Remedy, "SET GLOBAL"):]
			then, _, _ = strings.Cut(then, ",")
			execSQL(t, replica, then)
			for i, args := range [][]string{{"--mend"}, {}} {
				out, said, code := runRisso(t, nil, append([]string{"checksum", "--dsn", primary.DSN, "--replica", replica.DSN, "--schema", "t"}, args...)...)
				if code != 0 && (i > 0 || code != 4) {
					t.Errorf("%d: checksum %s: code %d, %s%s", c.number, args, code, out, said)
				}
			}
			await(t, "the finding is gone", func() bool { return !slices.ContainsFunc(r.instance(t, "r").Findings, isReplication) })
			execSQL(t, primary, "DELETE FROM t.a WHERE id = 10")
		}
	})
}

// TestErrorAfterError: when the remedy of an error makes a channel go on to the next one, the finding that is kept, its event and the alert
// say that one.
func TestErrorAfterError(t *testing.T) {
	t.Parallel()
	eachKind(t, []string{"mariadb", "mysql-9.7"}, func(t *testing.T, kind string) {
		s := up(t, sandbox.Options{Name: "s", Servers: []string{kind}, Topology: sandbox.TopologyReplication, Replicas: 1})
		primary, replica := s.Nodes[0], s.Nodes[1]
		execSQL(t, primary, "CREATE DATABASE t; CREATE TABLE t.a (id INT PRIMARY KEY); CREATE TABLE t.b (id INT PRIMARY KEY)")
		await(t, "the tables are on the replica", func() bool {
			return value(t, replica, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 't'") == "2"
		})
		if !strings.HasPrefix(kind, "mariadb") {
			execSQL(t, replica, "SET GLOBAL super_read_only = OFF")
		}
		r := serve(t, dataDir(t), "--no-host", "--dsn", "r="+replica.DSN)
		r.awaitTicks(t, "r", 3)
		execSQL(t, replica, "SET SESSION sql_log_bin = 0; DROP TABLE t.a, t.b")
		execSQL(t, primary, "INSERT INTO t.a VALUES (1)")
		first := r.awaitFinding(t, "r", "repl.stopped", func(f state.FindingRecord) bool { return strings.Contains(f.Worst.What, "t.a") })
		execSQL(t, primary, "INSERT INTO t.b VALUES (1)") // not before: of two that are applied at once either may fail first
		execSQL(t, replica, first.Worst.Remedy)
		second := r.awaitFinding(t, "r", "repl.stopped", func(f state.FindingRecord) bool {
			return f.Ended.IsZero() && strings.Contains(f.Worst.What, "t.b")
		})
		if second.ID != first.ID || !second.First.Since.Equal(first.First.Since) {
			t.Errorf("got another finding, %+v after %+v; want the same with another error", second, first)
		}
		await(t, "the alert and an event say the second error", func() bool {
			_, alerts, _ := r.request(t, "GET", "/api/alerts", nil, nil)
			_, events, _ := r.request(t, "GET", "/api/events", nil, nil)
			return strings.Contains(string(alerts), "t.b") && strings.Contains(string(events), "now: replication")
		})
	})
}
