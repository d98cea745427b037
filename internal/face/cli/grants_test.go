package cli

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestGrantsSuffice: with exactly what risso grants prints an account can do each job; before that risso doctor says what is missing,
// and its remedies work. Without them a benchmark names them, too.
func TestGrantsSuffice(t *testing.T) {
	for _, spec := range []string{"mariadb", "mariadb-11.8", "mysql-9.7", "mysql-8.0", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			settings := []string{"performance_schema=ON"}
			if strings.HasPrefix(spec, "mariadb") {
				settings = append(settings, "performance_schema_consumer_events_statements_current=ON")
			}
			grantsOn(t, sandboxtest.Pair(t, spec, settings...))
		})
	}
}

func grantsOn(t *testing.T, pair *sandbox.Sandbox) {
	n, replica := pair.Nodes[0], pair.Nodes[1]
	db := openNode(t, n)
	for _, q := range []string{"CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY, v INT)", "INSERT INTO shop.orders VALUES (1, 1), (2, 2)",
		"CREATE VIEW shop.v AS SELECT * FROM shop.orders", "CREATE PROCEDURE shop.p() SELECT 1", "CREATE DATABASE sbtest"} {
		mustExec(t, db, q)
	}
	place, files := filepath.Join(t.TempDir(), "place"), filepath.Join(t.TempDir(), "files")
	type jobRun struct {
		job  string
		does [][]string // DSN is replaced by the account
	}
	jobs := []jobRun{
		{"serve", [][]string{{"top", "--dsn", "DSN", "--no-host", "--count", "2", "-o", "json"}}},
		{"digest", [][]string{{"digest", "--dsn", "DSN", "--for", "1s"}}},
		{"explain", [][]string{{"explain", "SELECT * FROM shop.v WHERE id = 1", "--dsn", "DSN"}}},
		{"trace", [][]string{{"trace", "--dsn", "DSN", "--enable", "--latest", "--for", "1s", "--state", t.TempDir()}}},
		{"backup", [][]string{{"backup", "--dsn", "DSN", "--to", place, "--no-users"}}},
		{"follow", [][]string{{"binlog", "follow", "--dsn", "DSN", "--to", place, "--once"}}},
		{"checksum", [][]string{{"checksum", "--dsn", "DSN", "--replica", "REPLICA", "--schema", "shop"}}},
		{"mend", [][]string{{"checksum", "--dsn", "DSN", "--replica", "REPLICA", "--schema", "shop", "--mend", "--state", t.TempDir()}}},
		{"topology", [][]string{{"topology", "--dsn", "DSN", "--alone", "-o", "json"}}},
		{"agent", nil},    // fence's TestPrivileges does it
		{"failover", nil}, // carry's TestTakeOver does it
		{"restore", [][]string{{"restore", "--from", place, "--into", "DSN", "--schema", "shop", "--rename", "shop=shop2"}}},
		{"bench", [][]string{
			{"bench", "prepare", "read_write", "--dsn", "DSN/sbtest", "--table-size", "100", "--yes"},
			{"bench", "run", "read_write", "--dsn", "DSN/sbtest", "--table-size", "100", "--time", "200ms", "--yes"},
			{"bench", "cleanup", "read_write", "--dsn", "DSN/sbtest", "--yes"}}},
	}
	if copies(t, db, n) {
		jobs = append(jobs, jobRun{"physical", [][]string{{"backup", "--physical", "--dsn", "DSN", "--to", files, "--state", t.TempDir()}}})
	}
	for i, c := range jobs {
		user := fmt.Sprintf("o'job%d", i) // an apostrophe in a name is nothing special
		dsn := fmt.Sprintf("%s:x@unix(%s)", user, n.Socket)
		account := fmt.Sprintf("'o''job%d'@'localhost'", i)
		mustExec(t, db, "CREATE USER "+account+" IDENTIFIED BY 'x'")
		code, out, said := call(t, "doctor", "--no-host", "--listen", "127.0.0.1:0", "--dsn", "db="+dsn+"/", "--for", c.job, "-o", "json")
		if code != fault.Failed || !strings.Contains(out, "is missing privileges for "+c.job) {
			t.Errorf("%s: doctor says %d %s %s; want code fault.Failed, %q in it", c.job, code, out, said, "is missing privileges for "+c.job)
		}
		code, out, said = call(t, "grants", "--dsn", n.DSN, "--for", c.job, "--account", account, "-o", "json")
		var told struct{ Statements []string }
		if err := json.Unmarshal([]byte(out), &told); err != nil || code != fault.OK || len(told.Statements) == 0 {
			t.Fatalf("%s: grants says %d %s %s; want code fault.OK, len(told.Statements) not 0", c.job, code, out, said)
		}
		if c.job == "bench" {
			code, out, said := call(t, "bench", "prepare", "read_write", "--dsn", dsn+"/sbtest", "--yes")
			if hint := "run " + strings.Join(told.Statements, "; "); code != fault.Failed || !strings.Contains(said, hint) {
				t.Errorf("bench prepare without privileges: %d %s %s, want %s", code, out, said, hint)
			}
		}
		for _, g := range told.Statements {
			mustExec(t, db, g)
		}
		if code, out, said = call(t, "doctor", "--no-host", "--listen", "127.0.0.1:0", "--dsn", "db="+dsn+"/", "--for", c.job); code != fault.OK || !strings.Contains(out, "the account may "+c.job) {
			t.Errorf("%s: with %q doctor says %d %s %s; want code fault.OK, %q in it", c.job, told.Statements, code, out, said, "the account may "+c.job)
		}
		if c.job == "mend" {
			differ(t, replica)
		}
		for _, args := range c.does {
			for k, a := range args {
				if a == "REPLICA" {
					args[k] = fmt.Sprintf("%s:x@unix(%s)/", user, replica.Socket)
				} else if strings.HasPrefix(a, "DSN") {
					args[k] = dsn + cmp.Or(strings.TrimPrefix(a, "DSN"), "/")
				}
			}
			code, out, said := call(t, args...)
			if code != fault.OK {
				t.Errorf("%s: with %q risso %s ends with %d: %s %s, want fault.OK", c.job, told.Statements, strings.Join(args[:2], " "), code, out, said)
			}
			if c.job == "topology" && strings.Contains(out, `"why":`) {
				t.Errorf("topology: not all is known: %s", out)
			}
			if c.job == "serve" && strings.Contains(out, `"remedy":"GRANT`) {
				t.Errorf("serve: there are gaps: %s", out)
			}
		}
	}
}

// copies reports whether this server's files can be copied here, and prepares it.
func copies(t *testing.T, db *sql.DB, n *sandbox.Node) bool {
	if n.Program.Family == sandbox.FamilyMariaDB {
		// The mariadb-backup on PATH is that of 10.11, which takes no server of another series.
		return strings.HasPrefix(n.Program.Version, "10.11")
	}
	_, err := db.ExecContext(t.Context(), "INSTALL PLUGIN clone SONAME 'mysql_clone.so'")
	if err != nil {
		t.Logf("no CLONE: %v", err) // before 8.0.17; 8.0 here has none
	}
	return err == nil
}

// differ makes one row of the replica another than its primary's.
func differ(t *testing.T, replica *sandbox.Node) {
	t.Helper()
	c, err := openNode(t, replica).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, q := range []string{"SET SESSION sql_log_bin = 0", "SET GLOBAL read_only = OFF", "UPDATE shop.orders SET v = 5 WHERE id = 2"} {
		if _, err := c.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
}

func openNode(t *testing.T, n *sandbox.Node) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", n.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func mustExec(t *testing.T, db *sql.DB, q string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), q); err != nil {
		t.Fatalf("%s: %v", q, err)
	}
}
