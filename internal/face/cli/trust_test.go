package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/data/places/placestest"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/face/cli/check"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestTrust: what one account takes another reads by its first use, or by its key; what is not signed only when that is asked for.
func TestTrust(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	place, taker, reader, third := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", taker)
	ids := placestest.KeepBackups(t, place, 2, repo.Keys{})
	code, key, _ := said(t, "backup", "key")
	key = strings.TrimSpace(key)
	if code != fault.OK || !strings.HasPrefix(key, "ed25519:") {
		t.Fatalf("got %d, %q; want code fault.OK, \"ed25519:\" at its beginning", code, key)
	}
	if code, _, err := said(t, "verify", "--from", place); code != fault.OK || err != "" {
		t.Errorf("one's own: got %d, %s; want code fault.OK, err \"\"", code, err)
	}
	if code, out, _ := said(t, "backup", "show", "--from", place); code != fault.OK || !strings.Contains(out, "Signed   by "+key) {
		t.Errorf("got %d, %s; want code fault.OK, %q in it", code, out, "Signed by "+key)
	}
	t.Setenv("XDG_CONFIG_HOME", reader)
	if code, _, err := said(t, "verify", "--from", place); code != fault.OK || !strings.Contains(err, "seen for the first time; from now on its key "+key) {
		t.Errorf("the first time: got %d, %s; want code fault.OK, %q in it", code, err, "seen for the first time; from now on its key "+key)
	}
	if code, _, err := said(t, "verify", "--from", place); code != fault.OK || err != "" {
		t.Errorf("the second time: got %d, %s; want code fault.OK, err \"\"", code, err)
	}
	t.Setenv("XDG_CONFIG_HOME", third)
	code, other, _ := said(t, "backup", "key")
	if code != fault.OK || other == key {
		t.Fatalf("got %d, %q; want code fault.OK, other not %q", code, other, key)
	}
	if code, out, _ := said(t, "verify", "--from", place, "--trust", strings.TrimSpace(other)); code != fault.Failed || !strings.Contains(out, "foreign") || !strings.Contains(out, key) {
		t.Errorf("only another key is trusted: %d, %s; want code fault.Failed, \"foreign\" in it, %q in it", code, out, key)
	}
	if code, _, err := said(t, "verify", "--from", place, "--trust", key); code != fault.OK || !strings.Contains(err, key+" is trusted") {
		t.Errorf("--trust: got %d, %s; want code fault.OK, %q in it", code, err, key+" is trusted")
	}
	if code, _, err := said(t, "verify", "--from", place, "--trust", "nonsense"); code != fault.Usage || !strings.Contains(err, "neither a public key") {
		t.Errorf("--trust nonsense: got %d, %s; want code fault.Usage, \"neither a public key\" in it", code, err)
	}
	if err := os.Remove(filepath.Join(place, "backups", ids[1], "signature")); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][]string{{"verify"}, {"drill"}, {"restore", "--sandbox", "never"}} {
		if code, out, err := said(t, append(c, "--from", place)...); code != fault.Failed || !strings.Contains(out+err, "it is not signed, so it is unknown who made it") || !strings.Contains(err, "--allow-unsigned") {
			t.Errorf("%v of a backup without signature: %d, %s%s; want code fault.Failed, \"it is not signed, so it is unknown who made it\" in out + err, \"--allow-unsigned\" in it",
				c, code, out, err)
		}
	}
	if code, _, err := said(t, "verify", "--from", place, "--allow-unsigned"); code != fault.OK || !strings.Contains(err, "backup "+ids[1]+" is not signed") {
		t.Errorf("--allow-unsigned: got %d, %s; want code fault.OK, \"backup \" + ids[1] + \" is not signed\" in it", code, err)
	}
	// A newer unsigned one removes no signed one.
	if code, out, err := said(t, "backup", "prune", "--from", place, "--keep-last", "1"); code != fault.OK || !strings.Contains(out, "keep    "+ids[0]+"  the newest") ||
		!strings.Contains(out, "it replaces none signed by another key: it is not signed") || !strings.Contains(out, "Removed 0 backups of 2") {
		t.Errorf("prune: got %d, %s%s; want code fault.OK, \"keep \" + ids[0] + \" the newest\" in it, \"it replaces none signed by another key: it is not signed\" in it, \"Removed 0 backups of 2\" in it",
			code, out, err)
	}
	if code, _, err := said(t, "backup", "prune", "--from", place, "--keep-last", "1", "--trust", "nonsense"); code != fault.Usage || !strings.Contains(err, "neither a public key") {
		t.Errorf("prune --trust nonsense: got %d, %s; want code fault.Usage, \"neither a public key\" in it", code, err)
	}
}

// TestLittle: a backup of an account that sees nothing fails and how to fix it; one of an empty server proves nothing and replaces no
// other until it is accepted; plans and mirrors say which privileges are missing.
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
				t.Errorf("%v: got %d, nothing of %q in %s%s; want code %d, %q in out + err", args, code, w, out, err, want, w)
			}
		}
	}
	refused(fault.Failed, []string{"the account sees 0 in 0", "run GRANT SELECT, SHOW VIEW", "TO 'few'@'localhost'"}, "backup", "--dsn", few, "--to", place)
	if _, _, err := said(t, "backup", "--dsn", few, "--to", place); strings.Contains(err, "--partial") {
		t.Errorf("a part that would hold nothing is advised: %s, want no \"--partial\" in it", err)
	}
	refused(fault.Failed, []string{"GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO 'few'@'localhost'"}, "binlog", "follow", "--dsn", few, "--to", place, "--once")
	refused(fault.Failed, []string{"GRANT SELECT, SHOW VIEW ON them TO 'few'@'localhost'"}, "explain", "--dsn", few, "SELECT * FROM shop.t")
	if code, _, err := said(t, "backup", "--dsn", node.DSN, "--to", place); code != fault.OK {
		t.Fatalf("got %v, want code fault.OK", err)
	}
	part := t.TempDir()
	if code, _, err := said(t, "backup", "--dsn", node.DSN, "--to", part, "--schema", "shop"); code != fault.OK {
		t.Fatalf("got %v, want code fault.OK", err)
	}
	refused(check.Critical, []string{"BACKUP CRITICAL - never backed up as a whole, the newest backup, ", ", holds only shop |"}, "check", "backup", "--from", part)
	sql("DROP DATABASE shop")
	refused(fault.OK, []string{"it proves nothing, and replaces no other backup: it has no tables"}, "backup", "--dsn", node.DSN, "--to", place, "-o", "json")
	refused(fault.OK, []string{"proves nothing and replaces no other backup: it has no tables"}, "backup", "list", "--from", place)
	refused(fault.Failed, []string{"NOT PROVEN: it has no tables", "risso backup accept"}, "drill", "--from", place)
	refused(check.Critical, []string{"does not count: it has no tables"}, "check", "backup", "--from", place)
	refused(fault.OK, []string{"the last full one", "Removed 0 backups of 2"}, "backup", "prune", "--from", place, "--keep-last", "1")
	refused(fault.OK, []string{"counts from now on"}, "backup", "accept", "--from", place)
	refused(fault.OK, []string{"PROVEN: "}, "drill", "--from", place)
	refused(check.OK, []string{"BACKUP OK"}, "check", "backup", "--from", place)
	refused(fault.OK, []string{"Removed 1 backup of 2"}, "backup", "prune", "--from", place, "--keep-last", "1")
}

// TestCheckWithoutIdentity: a monitoring host without an identity knows for an encrypted place whether a backup was proven, by what was
// signed; of a proof that is not signed it says that it does not.
func TestCheckWithoutIdentity(t *testing.T) {
	who, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	place, taker := t.TempDir(), t.TempDir()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", taker)
	k, err := places.Keys([]string{who.Recipient().String()}, "")
	if err != nil {
		t.Fatal(err)
	}
	id := placestest.KeepBackups(t, place, 1, k)[0]
	says := func(want int, words string, args ...string) {
		t.Helper()
		if code, out, err := said(t, append(args, "--from", place)...); code != want || !strings.Contains(out+err, words) {
			t.Errorf("%v: got %d, nothing of %q in %s%s; want code %d, %q in out + err", args, code, words, out, err, want, words)
		}
	}
	for _, config := range []string{taker, t.TempDir()} {
		t.Setenv("XDG_CONFIG_HOME", config)
		says(check.Warning, "no backup was ever proven", "check", "backup")
	}
	placestest.Prove(t, place, id, k, false)
	says(check.Warning, "the newest proof does not count: ", "check", "backup") // no key is trusted yet, so it is unknown
	says(fault.OK, "?", "backup", "list")
	t.Setenv("XDG_CONFIG_HOME", taker)
	placestest.Prove(t, place, id, k, true)
	t.Setenv("XDG_STATE_HOME", t.TempDir()) // another host
	says(check.OK, "proven 0 s ago", "check", "backup")
	if _, out, _ := said(t, "backup", "list", "--from", place); strings.Contains(out, "?") || strings.Contains(out, "in doubt") {
		t.Errorf("list: got %s; want no \"?\" in it, no \"in doubt\" in it", out)
	}
	if _, out, _ := said(t, "check", "backup", "--from", place); strings.Contains(out, "recovery=") {
		t.Errorf("it tells what it does not know: got %s, want no \"recovery=\" in it", out)
	}
}

// TestStrangersCount: what somebody else puts into a place, a backup or what a drill found, is reported and counts for nothing if a key is
// trusted; an account that trusts none yet learns nothing by looking.
func TestStrangersCount(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	place, taker, stranger, looker := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", taker)
	ids := placestest.KeepBackups(t, place, 2, repo.Keys{})
	_, key, _ := said(t, "backup", "key")
	key = strings.TrimSpace(key)
	prove := func(id string, signs bool) { t.Helper(); placestest.Prove(t, place, id, repo.Keys{}, signs) }
	says := func(want int, words string, args ...string) {
		t.Helper()
		if code, out, err := said(t, append(args, "--from", place)...); code != want || !strings.Contains(out+err, words) {
			t.Errorf("%v: got %d, nothing of %q in %s%s; want code %d, %q in out + err", args, code, words, out, err, want, words)
		}
	}
	for _, signed := range []bool{false, true} {
		t.Setenv("XDG_CONFIG_HOME", stranger)
		prove(ids[1], signed)
		t.Setenv("XDG_CONFIG_HOME", taker)
		why := map[bool]string{false: "it is not signed, so it is unknown who made it", true: "it is signed by a key that is not trusted"}[signed]
		says(check.Warning, "BACKUP WARNING - no backup was ever proven by a trusted key, the newest proof does not count: "+why, "check", "backup")
		says(fault.OK, "A drill of "+ids[1]+" does not count: "+why, "backup", "list")
		says(fault.OK, "in doubt", "backup", "list")
		says(fault.OK, `"doubt": "`+why, "backup", "list", "-o", "json")
		says(fault.OK, ids[1]+"  the newest proven one, by a drill not signed by a trusted key", "backup", "prune", "--keep-last", "1", "--dry-run")
		says(check.OK, "proven", "check", "backup", "--allow-unsigned")
		t.Setenv("XDG_CONFIG_HOME", looker)
		says(check.OK, "proven", "check", "backup") // without a trusted key
		says(check.Warning, why, "check", "backup", "--trust", key)
		if left, err := os.ReadDir(looker); err != nil || len(left) > 0 {
			t.Errorf("who looks writes down %v, %v; want none", left, err)
		}
	}
	t.Setenv("XDG_CONFIG_HOME", taker)
	prove(ids[0], true)
	says(check.OK, "proven", "check", "backup")
	t.Setenv("XDG_CONFIG_HOME", stranger)
	other := placestest.KeepBackups(t, place, 1, repo.Keys{})[0]
	t.Setenv("XDG_CONFIG_HOME", taker)
	says(check.Warning, "BACKUP WARNING - the newest backup, "+other+", does not count: it is signed by a key that is not trusted", "check", "backup")
	says(fault.OK, other+" does not count: it is signed by a key that is not trusted", "backup", "list")
	if err := os.Remove(filepath.Join(place, "backups", other, "signature")); err != nil {
		t.Fatal(err)
	}
	says(check.Warning, other+", does not count: it is not signed", "check", "backup")
	says(check.OK, "BACKUP OK", "check", "backup", "--allow-unsigned")
	for _, id := range ids { // nothing but a stranger's is left
		if err := os.RemoveAll(filepath.Join(place, "backups", id)); err != nil {
			t.Fatal(err)
		}
	}
	says(check.Critical, "no backup counts; the newest backup, "+other+", does not count", "check", "backup")
}
