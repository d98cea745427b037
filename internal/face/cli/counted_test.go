package cli

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

func TestCounted(t *testing.T) {
	for want, got := range map[string]string{
		"0 rows": digits.Counted(0, "row"), "1 row": digits.Counted(int64(1), "row"), "2 rows": digits.Counted(uint64(2), "row"), "1,234,567 rows": digits.Counted(1234567, "row"),
		"1 table differs": digits.Plural(1, "table differs", "tables differ"), "2 tables differ": digits.Plural(2, "table differs", "tables differ"),
		"1 event": digits.Roughly(1, "event"), "12.3 k events": digits.Roughly(12_345, "event"),
	} {
		if got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// oneOfMany is a one before a word of several, such as 1 rows.
var oneOfMany = regexp.MustCompile(`(?:^|[^0-9.,:/-])1 (?:[a-z]+ )?(?:rows|tables|schemas|objects|chunks|backups|sessions|transactions|logs|files|servers|statements|uploads|runs|threads|definitions|replicas|problems)\b`)

// TestOneOfEach: of a server with one schema, one table, one row and one transaction no command says 1 rows or 1 tables.
func TestOneOfEach(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	n := sandboxtest.Up(t, "mariadb")
	db := openNode(t, n)
	for _, q := range []string{"DROP DATABASE IF EXISTS test", "CREATE DATABASE shop", "CREATE TABLE shop.one (id INT PRIMARY KEY)", "INSERT INTO shop.one VALUES (1)"} {
		mustExec(t, db, q)
	}
	place, second := t.TempDir(), filepath.Join(t.TempDir(), "second")
	run := func(line string) {
		t.Helper()
		args := strings.Fields(line)
		for i, a := range args {
			args[i] = map[string]string{"DSN": n.DSN, "PLACE": place, "SECOND": second}[a]
			if args[i] == "" {
				args[i] = a
			}
		}
		code, out, errs := call(t, args...)
		if code != fault.OK {
			t.Errorf("%s: exit %d: %s%s, want fault.OK", line, code, out, errs)
		}
		if bad := oneOfMany.FindString(out + errs); bad != "" {
			t.Errorf("%s says %q, want \"\":\n%s%s", line, bad, out, errs)
		}
	}
	run("backup --dsn DSN --to PLACE --dry-run")
	run("backup --dsn DSN --to PLACE --threads 1")
	mustExec(t, db, "FLUSH BINARY LOGS")
	mustExec(t, db, "DELETE FROM shop.one")
	run("binlog follow --once --dsn DSN --to PLACE")
	for _, line := range []string{
		"backup list --from PLACE", "backup show --from PLACE --all", "backup prune --from PLACE --keep-last 1 --dry-run", "backup copy --from PLACE --to SECOND", "verify --from PLACE",
		"binlog list --from PLACE", "binlog search --from PLACE --table shop.one", "restore --from PLACE --into DSN --rename shop=other --dry-run", "restore --from PLACE --into DSN --rename shop=other",
		"restore --from PLACE --into DSN --schema shop --rename shop=third --to-time 2100-01-01 --dry-run", "binlog apply --from PLACE --start binlog.000001:4 --dry-run", "drill --from PLACE --servers mariadb",
	} {
		run(line)
	}
}
