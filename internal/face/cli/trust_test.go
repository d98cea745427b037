package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestTrust: what one account takes another reads by its first use, or by its key; what is not signed only when that is asked for.
func TestTrust(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	place, taker, reader, third := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", taker)
	ids := keepBackups(t, place, 2, repo.Keys{})
	code, key, _ := said(t, "backup", "key")
	key = strings.TrimSpace(key)
	if code != exitOK || !strings.HasPrefix(key, "ed25519:") {
		t.Fatalf("%d, %q", code, key)
	}
	if code, _, err := said(t, "verify", "--from", place); code != exitOK || err != "" {
		t.Errorf("one's own: %d, %s", code, err)
	}
	if code, out, _ := said(t, "backup", "show", "--from", place); code != exitOK || !strings.Contains(out, "Signed   by "+key) {
		t.Errorf("%d, %s", code, out)
	}
	t.Setenv("XDG_CONFIG_HOME", reader)
	if code, _, err := said(t, "verify", "--from", place); code != exitOK || !strings.Contains(err, "seen for the first time; from now on its key "+key) {
		t.Errorf("the first time: %d, %s", code, err)
	}
	if code, _, err := said(t, "verify", "--from", place); code != exitOK || err != "" {
		t.Errorf("the second time: %d, %s", code, err)
	}
	t.Setenv("XDG_CONFIG_HOME", third)
	code, other, _ := said(t, "backup", "key")
	if code != exitOK || other == key {
		t.Fatalf("%d, %q", code, other)
	}
	if code, out, _ := said(t, "verify", "--from", place, "--trust", strings.TrimSpace(other)); code != exitFailed || !strings.Contains(out, "foreign") || !strings.Contains(out, key) {
		t.Errorf("only another key is trusted: %d, %s", code, out)
	}
	if code, _, err := said(t, "verify", "--from", place, "--trust", key); code != exitOK || !strings.Contains(err, key+" is trusted") {
		t.Errorf("--trust: %d, %s", code, err)
	}
	if code, _, err := said(t, "verify", "--from", place, "--trust", "nonsense"); code != exitUsage || !strings.Contains(err, "neither a public key") {
		t.Errorf("--trust nonsense: %d, %s", code, err)
	}
	if err := os.Remove(filepath.Join(place, "backups", ids[1], "signature")); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][]string{{"verify"}, {"drill"}, {"restore", "--sandbox", "never"}} {
		if code, out, err := said(t, append(c, "--from", place)...); code != exitFailed || !strings.Contains(out+err, "it is not signed, so nobody knows who made it") || !strings.Contains(err, "--allow-unsigned") {
			t.Errorf("%v of a backup without signature: %d, %s%s", c, code, out, err)
		}
	}
	if code, _, err := said(t, "verify", "--from", place, "--allow-unsigned"); code != exitOK || !strings.Contains(err, "backup "+ids[1]+" is not signed") {
		t.Errorf("--allow-unsigned: %d, %s", code, err)
	}
	// A newer one that nobody signed makes no signed one go.
	if code, out, err := said(t, "backup", "prune", "--from", place, "--keep-last", "1"); code != exitOK || !strings.Contains(out, "keep    "+ids[0]+"  the newest") ||
		!strings.Contains(out, "it replaces none that another key signed: it is not signed") || !strings.Contains(out, "Removed 0 backups of 2") {
		t.Errorf("prune: %d, %s%s", code, out, err)
	}
	if code, _, err := said(t, "backup", "prune", "--from", place, "--keep-last", "1", "--trust", "nonsense"); code != exitUsage || !strings.Contains(err, "neither a public key") {
		t.Errorf("prune --trust nonsense: %d, %s", code, err)
	}
}

// TestLittle: a backup of an account that sees nothing fails with what mends it; one of an empty server proves nothing and replaces no
// other until it is accepted; plans and mirrors say which rights they lack.
func TestLittle(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	node := sandboxtest.Up(t, "mariadb")
	sql := func(statements ...string) {
		t.Helper()
		for _, s := range statements {
			if _, err := node.Query(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
	}
	sql("CREATE USER few@localhost", "GRANT PROCESS, REPLICA MONITOR ON *.* TO few@localhost", "GRANT SELECT ON performance_schema.* TO few@localhost", // README's
		"CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)", "INSERT INTO shop.t VALUES (1)")
	few, place := "few@unix("+node.Socket+")/", t.TempDir()
	refused := func(want int, words []string, args ...string) {
		t.Helper()
		code, out, err := said(t, args...)
		for _, w := range words {
			if code != want || !strings.Contains(out+err, w) {
				t.Errorf("%v: %d, nothing of %q in %s%s", args, code, w, out, err)
			}
		}
	}
	refused(exitFailed, []string{"the account sees 0 in 0", "run GRANT SELECT, SHOW VIEW", "TO 'few'@'localhost'"}, "backup", "--dsn", few, "--to", place)
	if _, _, err := said(t, "backup", "--dsn", few, "--to", place); strings.Contains(err, "--partial") {
		t.Errorf("a part that would hold nothing is advised: %s", err)
	}
	refused(exitFailed, []string{"GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO 'few'@'localhost'"}, "binlog", "follow", "--dsn", few, "--to", place, "--once")
	refused(exitFailed, []string{"GRANT SELECT, SHOW VIEW ON them TO 'few'@'localhost'"}, "explain", "--dsn", few, "SELECT * FROM shop.t")
	if code, _, err := said(t, "backup", "--dsn", node.DSN, "--to", place); code != exitOK {
		t.Fatal(err)
	}
	sql("DROP DATABASE shop")
	refused(exitOK, []string{"no proof, and it replaces no other backup: it holds no table"}, "backup", "--dsn", node.DSN, "--to", place, "-o", "json")
	refused(exitOK, []string{"is no proof and replaces none: it holds no table"}, "backup", "list", "--from", place)
	refused(exitFailed, []string{"NOT PROVEN: it holds no table", "risso backup accept"}, "drill", "--from", place)
	refused(checkCritical, []string{"does not count: it holds no table"}, "check", "backup", "--from", place)
	refused(exitOK, []string{"the last full one", "Removed 0 backups of 2"}, "backup", "prune", "--from", place, "--keep-last", "1")
	refused(exitOK, []string{"counts from now on"}, "backup", "accept", "--from", place)
	refused(exitOK, []string{"PROVEN: "}, "drill", "--from", place)
	refused(checkOK, []string{"BACKUP OK"}, "check", "backup", "--from", place)
	refused(exitOK, []string{"Removed 1 backup of 2"}, "backup", "prune", "--from", place, "--keep-last", "1")
}
