package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// Wrong use is reported in one line, before any server is asked.
func TestChecksumUse(t *testing.T) {
	const dsn = "x@tcp(127.0.0.1:1)/"
	for want, args := range map[string][]string{
		"schema.table":    {"--dsn", dsn, "--replica", dsn, "--table", "orders"},
		"leave out":       {"--dsn", dsn, "--replica", dsn, "--against", dsn},
		"needs a replica": {"--dsn", dsn, "--against", dsn, "--mend"},
		"without --mend":  {"--dsn", dsn, "--replica", dsn, "--dry-run"},
		"--sum":           {"--dsn", dsn, "--replica", dsn, "--sum", "md5"},
		"--rounds":        {"--dsn", dsn, "--replica", dsn, "--rounds", "1"},
		"--max-rate":      {"--dsn", dsn, "--replica", dsn, "--max-rate", "fast"},
		"yaml":            {"--dsn", dsn, "--replica", dsn, "--output", "yaml"},
		"not a usable":    {"--dsn", dsn, "--replica", "secret@@(("},
	} {
		var out, errs bytes.Buffer
		code := Main(t.Context(), append([]string{"checksum"}, args...), screen.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
		if code != fault.Usage || out.Len() > 0 || !strings.Contains(errs.String(), want) || strings.Count(errs.String(), "\n") != 1 || strings.Contains(errs.String(), "secret") {
			t.Errorf("%v: got %d, %q, %q; want code fault.Usage, out.Len() at most 0, %q in it, strings.Count(errs.String(), \"\\n\") 1, no \"secret\" in it",
				args, code, out.String(), errs.String(), want)
		}
	}
}

// TestMendWithoutKey: --mend names the table whose rows no key names, with the reason, and repairs the others.
func TestMendWithoutKey(t *testing.T) {
	pair := sandboxtest.Pair(t, "mariadb")
	primary, replica := openNode(t, pair.Nodes[0]), openNode(t, pair.Nodes[1])
	replica.SetMaxOpenConns(1)
	for _, q := range []string{"CREATE DATABASE shop", "CREATE TABLE shop.keyed (id INT PRIMARY KEY, v INT)", "CREATE TABLE shop.keyless (v INT)", "INSERT INTO shop.keyed VALUES (1, 1)", "INSERT INTO shop.keyless VALUES (1)"} {
		mustExec(t, primary, q)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		var n int
		if err := replica.QueryRow("SELECT COUNT(*) FROM shop.keyless").Scan(&n); err == nil && n == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the replica does not have the row")
		}
	}
	for _, q := range []string{"SET GLOBAL read_only = OFF", "SET sql_log_bin = 0", "UPDATE shop.keyed SET v = 2", "UPDATE shop.keyless SET v = 2"} {
		mustExec(t, replica, q)
	}
	code, out, said := call(t, "checksum", "--dsn", pair.Nodes[0].DSN, "--replica", pair.Nodes[1].DSN, "--schema", "shop", "--mend", "--dry-run", "--state", t.TempDir())
	for _, want := range []string{"not repaired: shop.keyless: no primary key, and no unique key without NULL, names its rows exactly", "a single row cannot be rewritten", "REPLACE shop.keyed id=1"} {
		if !strings.Contains(out, want) {
			t.Errorf("exit code %d, %s%s; want %q in it", code, out, said, want)
		}
	}
}
