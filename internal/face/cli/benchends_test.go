package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestBenchEndsBadly: a run in which nothing succeeded is no success, and the remedy for an account names that account.
func TestBenchEndsBadly(t *testing.T) {
	n := sandboxtest.Up(t, "mariadb", "sync_binlog=0")
	query(t, n, "CREATE DATABASE sbtest; CREATE USER app@localhost; GRANT ALL ON sbtest.* TO app@localhost; CREATE USER few@localhost WITH MAX_USER_CONNECTIONS 2; "+
		"GRANT ALL ON sbtest.* TO few@localhost; CREATE USER poor@localhost; CREATE USER reader@localhost; GRANT SELECT ON sbtest.* TO reader@localhost")
	as := func(user string) string { return strings.Replace(n.DSN, "root@", user+"@", 1) + "sbtest" }
	must(t, "prepare", "update_index", "--dsn", as("root"), "--table-size", "100")
	run := []string{"update_index", "--table-size", "100", "--for", "300ms", "--warmup", "0s"}
	ends := func(says string, args ...string) string {
		t.Helper()
		code, out, errs := benchmark(t, append(args, run...)...)
		if code != fault.Failed || !strings.Contains(errs, says) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: code %d, %s%s; want code fault.Failed, %q in it, strings.Count(errs, \"\\n\") 1", args, code, out, errs, says)
		}
		return out
	}
	ends("lower --threads, or raise the limit named in the error", "run", "--dsn", as("few"), "--threads", "4")
	ends("TO 'poor'@'localhost'", "run", "--dsn", as("poor"))
	for _, user := range []string{"poor", "reader"} {
		ends("TO '"+user+"'@'localhost'", "compare", "--dsn-a", as("app"), "--dsn-b", as(user), "--runs", "1")
		ends("TO '"+user+"'@'localhost'", "compare", "--dsn-a", as(user), "--dsn-b", as("app"), "--runs", "1")
	}
	log := filepath.Join(t.TempDir(), "slow.log")
	if err := os.WriteFile(log, []byte("# Time: 2026-03-01T10:00:00.000000Z\n# User@Host: a[a] @ b []  Id: 5\n# Query_time: 0.1  Lock_time: 0.0 Rows_sent: 1  Rows_examined: 1\nuse gone;\nSELECT * FROM t;\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := benchmark(t, "run", "replay", "--file", log, "--dsn", as("root"), "--for", "5s"); code != fault.Failed || !strings.Contains(errs, "'gone' (the schemas and tables of the recording must exist on this server") {
		t.Errorf("a recording of another server: code %d, %s; want code fault.Failed, \"'gone' (the schemas and tables of the recording must exist on this server\" in it",
			code, errs)
	}
	query(t, n, "SET GLOBAL read_only = 1")
	var r bench.Result
	out := ends("no transaction succeeded; ", "run", "--dsn", as("app"), "-o", "json")
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Transactions != 0 || len(r.Errors) == 0 || r.Errors[0].Label != "1290" {
		t.Errorf("got %v, %+v; want Transactions 0, len(Errors) not 0, Errors[0].Label \"1290\"", err, r)
	}
	query(t, n, "SET GLOBAL read_only = 0")
	must(t, append([]string{"run", "--dsn", as("app")}, run...)...)
}
