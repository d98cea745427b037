package cli

import (
	"net/url"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/sqltext"
)

// oddModes are values of sql_mode, as a server's default, under which SQL is read otherwise; MariaDB knows the second.
var oddModes = []string{
	"ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,HIGH_NOT_PRECEDENCE,IGNORE_SPACE,PAD_CHAR_TO_FULL_LENGTH,REAL_AS_FLOAT,NO_UNSIGNED_SUBTRACTION,STRICT_ALL_TABLES",
	"ORACLE,NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES",
}

// TestOddModes: no command that connects fails, or falls silent, for the sql_mode that sessions of the server have.
func TestOddModes(t *testing.T) {
	// What doctor says of classes is so.
	if sqltext.Fingerprint(`SELECT "a" FROM t`) != sqltext.Fingerprint(`SELECT 'a' FROM t`) || sqltext.Fingerprint(`SELECT 'a\', b FROM t WHERE c = 'd'`) == sqltext.Fingerprint(`SELECT 'a', b FROM t WHERE c = 'd'`) {
		t.Error("classes are read in the statement's mode")
	}
	for _, spec := range []string{"mysql-9.7", "mariadb", "mariadb-11.8", "mysql-8.0", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			node := sandboxtest.Up(t, spec, "performance_schema=ON")
			modes := oddModes
			if !strings.HasPrefix(spec, "mariadb") {
				modes = modes[:1]
			}
			for _, mode := range modes {
				for _, sql := range []string{"SET GLOBAL sql_mode = '" + mode + "'", "DROP DATABASE IF EXISTS odd", "CREATE DATABASE odd"} {
					if _, err := node.Query(t.Context(), sql); err != nil {
						t.Fatal(err)
					}
				}
				dsn := "root@unix(" + node.Socket + ")/"
				for _, c := range []struct {
					args []string
					says string
				}{
					{[]string{"doctor", "--no-host", "--data", t.TempDir(), "--dsn", dsn}, "the account may serve"},
					{[]string{"doctor", "--no-host", "--data", t.TempDir(), "--dsn", dsn}, "(risso digest, Queries) it takes \"…\" for a string, not a name, and a backslash in a string for an escape"},
					{[]string{"doctor", "--no-host", "--data", t.TempDir(), "--dsn", dsn + "?sql_mode=" + url.QueryEscape("'STRICT_ALL_TABLES'")}, "sql_mode STRICT_ALL_TABLES\n"},
					{[]string{"bench", "prepare", "read_write", "--table-size", "2000", "--dsn", dsn + "odd"}, ""},
					{[]string{"bench", "run", "read_write", "--table-size", "2000", "--time", "300ms", "--warmup", "0s", "--dsn", dsn + "odd"}, "transactions"},
					{[]string{"bench", "prepare", "ontime", "--scale", "0.002", "--dsn", dsn + "odd"}, ""},
					{[]string{"bench", "prepare", "schemas", "--schemas", "1", "--schema-tables", "2", "--dsn", dsn}, "20 rows written"},
					{[]string{"bench", "cleanup", "schemas", "--dsn", dsn}, "2 tables dropped"},
					{[]string{"explain", `SELECT id FROM "sbtest1" WHERE "c" = 'x' OR c = 'y' || 'z'`, "--dsn", dsn + "odd"}, "sbtest1 ALL"},
					{[]string{"trace", "--dsn", dsn}, ""},
					{[]string{"digest", "--dsn", dsn, "--for", "0"}, "sbtest1"},
					{[]string{"top", "--no-host", "--count", "2", "--output", "json", "--dsn", dsn}, ""},
					{[]string{"bench", "cleanup", "read_write", "--dsn", dsn + "odd"}, ""},
				} {
					code, out, errs := call(t, c.args...)
					if code != 0 || !strings.Contains(out, c.says) || strings.Contains(out+errs, "1064") || strings.Contains(out, "could not") {
						t.Errorf("%s: risso %s: exit %d: %s; want code 0, %q in it, no \"1064\" in out + errs, no \"could not\" in it\n%s",
							mode, strings.Join(c.args, " "), code, errs, c.says, out)
					}
				}
			}
		})
	}
}
