package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/face/cli/check"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestBinlogStory mirrors, finds the mistake, prints what undoes it and plans to roll up to it, and says what is wrong with wrong requests.
func TestBinlogStory(t *testing.T) {
	n := sandboxtest.Up(t, "mariadb")
	db, err := n.DB()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	run := func(q string) {
		t.Helper()
		if _, err := db.ExecContext(context.Background(), q); err != nil {
			t.Fatal(err)
		}
	}
	run("CREATE TABLE test.orders (id INT PRIMARY KEY, note VARCHAR(20))")
	for i := range 20 {
		run(fmt.Sprintf("INSERT INTO test.orders VALUES (%d, 'ö%d')", i, i))
	}
	run("DELETE FROM test.orders")
	place := t.TempDir()
	ok := func(args ...string) string {
		t.Helper()
		code, out, errs := call(t, append([]string{"binlog"}, args...)...)
		if code != 0 || errs != "" {
			t.Fatalf("%v: exit %d, %s; want code 0, errs \"\"", args, code, errs)
		}
		return out
	}
	ok("follow", "--once", "--dsn", n.DSN, "--to", place)
	if out := ok("list", "--from", place); !strings.Contains(out, "binlog.000001") || strings.Contains(out, "GAP") {
		t.Errorf("list: want \"binlog.000001\" in it, no \"GAP\" in it:\n%s", out)
	}
	var found struct {
		Found []struct {
			GTID     string
			Rows     int
			Whole    string `json:"whole_table"`
			File     string
			Position int64
		}
	}
	if err := json.Unmarshal([]byte(ok("search", "--from", place, "--table", "test.ord*", "--kind", "delete", "-o", "json")), &found); err != nil {
		t.Fatal(err)
	}
	if len(found.Found) != 1 || found.Found[0].Rows != 20 || found.Found[0].Whole == "" {
		t.Fatalf("got %+v; want len(Found) 1, Found[0].Rows 20, Found[0].Whole not \"\"", found)
	}
	bad := found.Found[0]
	sql := ok("undo", "--from", place, "--dsn", n.DSN, "--gtid", bad.GTID)
	if strings.Count(sql, "INSERT INTO `test`.`orders`") != 20 || !strings.Contains(sql, "(7, 'ö7')") || !strings.HasSuffix(sql, "COMMIT;\n") {
		t.Errorf("undo: want strings.Count(sql, \"INSERT INTO `test`.`orders`\") 20, \"(7, 'ö7')\" in it, \"COMMIT;\\n\" at its end:\n%s", sql)
	}
	at := fmt.Sprintf("%s:%d", bad.File, bad.Position)
	if same := ok("undo", "--from", place, "--dsn", n.DSN, "--at", at); same != sql {
		t.Errorf("by place it is something else: want %s:\n%s", sql, same)
	}
	if out := ok("apply", "--from", place, "--start", "binlog.000001:4", "--before", bad.GTID, "--dry-run"); !strings.Contains(out, "would apply 2") || !strings.Contains(out, "ended before "+bad.GTID) {
		t.Errorf("apply: want \"would apply 2\" in it, %q in it:\n%s", "ended before "+bad.GTID, out)
	}
	ok("purge", "--from", place, "--keep", "1s", "--dry-run")

	log := filepath.Join(n.Datadir, "binlog.000001")
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{2, "no place", []string{"follow"}},
		{2, "no binary logs", []string{"search"}},
		{2, "contradict", []string{"search", log, "--from", place}},
		{2, "delete, update", []string{"search", log, "--kind", "eat"}},
		{2, "schema.table", []string{"search", log, "--table", "orders"}},
		{1, "not a binary log", []string{"search", n.ErrorLog}},
		{1, "no such file", []string{"search", "/nosuch/binlog.000001"}},
		{2, "not a GTID", []string{"undo", log, "--gtid", "7"}},
		{2, "which transaction", []string{"undo", log}},
		{1, "do not have the transaction", []string{"undo", log, "--gtid", "9-9-9"}},
		{1, "name the columns", []string{"undo", log, "--gtid", bad.GTID}},
		{2, "position to begin at", []string{"apply", log, "--into", n.DSN}},
		{2, "FILE:POSITION", []string{"apply", log, "--start", "here", "--dry-run"}},
		{1, "do not have the transaction to stop at", []string{"apply", log, "--start", "binlog.000001:4", "--before", "9-9-9", "--into", n.DSN}},
		{2, "--keep", []string{"purge", "--from", place}},
		{1, "no mirrored logs", []string{"list", "--from", t.TempDir()}},
	} {
		code, out, errs := call(t, append([]string{"binlog"}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.says) || strings.Count(errs, "\n") != 1 || out != "" && c.args[0] != "undo" {
			t.Errorf("%v: exit %d, not %d; it says %q and prints %q", c.args, code, c.code, errs, out)
		}
	}
}

// TestBinlogEncrypted mirrors next to encrypted backups: a process that only writes goes on and reads nothing old; with an identity logs are
// searched, rolled forward, copied.
func TestBinlogEncrypted(t *testing.T) {
	n := sandboxtest.Up(t, "mariadb")
	dir, err := os.MkdirTemp("", "rt-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("RISSO_SANDBOX_DIR", dir)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	who, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	identity, place, second := filepath.Join(t.TempDir(), "identity"), t.TempDir(), t.TempDir()
	if err := os.WriteFile(identity, []byte(who.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sql := func(statements string) {
		t.Helper()
		if _, err := n.Query(t.Context(), statements); err != nil {
			t.Fatal(err)
		}
	}
	sql("CREATE TABLE test.orders (id INT PRIMARY KEY, note VARCHAR(20)); INSERT INTO test.orders VALUES (1, 'a'), (2, 'b')")
	mustRun(t, "binlog", "follow", "--once", "--dsn", n.DSN, "--to", place, "--encrypt-to", who.Recipient().String())
	mustRun(t, "backup", "--dsn", n.DSN, "--to", place)
	sql("INSERT INTO test.orders VALUES (4, 'd'); DELETE FROM test.orders WHERE id = 4")
	mustRun(t, "binlog", "follow", "--once", "--dsn", n.DSN, "--to", place)
	checkedWithout(t, place)
	sql("INSERT INTO test.orders VALUES (3, 'c'); FLUSH BINARY LOGS; DELETE FROM test.orders")
	follow := []string{"binlog", "follow", "--once", "--dsn", n.DSN, "--to", place}
	mustRun(t, follow...)
	refused := func(says string, args ...string) {
		t.Helper()
		if code, out, errs := call(t, args...); code == fault.OK || !strings.Contains(errs, says) {
			t.Errorf("%v: exit %d, %q, %q; want code not fault.OK, %q in it", args, code, out, errs, says)
		}
	}
	refused("plain files", append(follow, "--plain")...)
	search := []string{"binlog", "search", "--from", place, "--kind", "delete"}
	refused("--identity", search...)
	if out := mustRun(t, append(search, "--identity", identity)...); !strings.Contains(out, "3 rows") {
		t.Errorf("got %v, want \"3 rows\" in it", out)
	}
	if out := mustRun(t, "drill", "--from", place, "--servers", "mariadb", "--identity", identity, "--query", "SELECT COUNT(*) FROM test.orders => 0"); !strings.Contains(out, "4 transactions") {
		t.Errorf("got %v, want \"4 transactions\" in it", out)
	}
	t.Setenv("XDG_STATE_HOME", t.TempDir()) // another host
	refused("--identity", follow...)
	mustRun(t, append(follow, "--identity", identity)...)
	mustRun(t, follow...)
	t.Setenv("XDG_STATE_HOME", t.TempDir()) // and one that only looks
	for _, args := range [][]string{{"binlog", "list", "--verify"}, {"verify"}, {"check", "backup", "--identity", identity}} {
		mustRun(t, append(args, "--from", place)...)
	}
	if out := mustRun(t, "binlog", "list", "--from", place); !strings.Contains(out, "encrypted") {
		t.Errorf("got %v, want \"encrypted\" in it", out)
	}
	mustRun(t, "backup", "copy", "--from", place, "--to", second)
	if out := mustRun(t, "binlog", "list", "--from", second, "--verify", "--identity", identity); !strings.Contains(out, "binlog.000001") {
		t.Errorf("got %v, want \"binlog.000001\" in it", out)
	}
}

// checkedWithout looks from a monitoring host at a place with one mirrored log, which is being written: without an identity it cannot be
// read, and no more is reported about it than with one.
func checkedWithout(t *testing.T, place string) {
	t.Helper()
	r, done, err := flags.Source{From: place}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	list, err := r.Backups(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("got %d backups: %v; want 1", len(list), err)
	}
	host := os.Getenv("XDG_STATE_HOME")
	os.Setenv("XDG_STATE_HOME", t.TempDir())
	defer os.Setenv("XDG_STATE_HOME", host)
	m, short, _, err := places.Mirrored(t.Context(), place, "", list[0], nil)
	if err != nil || m == nil || short || !m.First.Equal(list[0].Began) || m.Last.Before(list[0].Began) || m.Gap != "" {
		t.Errorf("got %+v short %v: %v; want m not nil, short false, First.Equal(list[0].Began) true, Last.Before(list[0].Began) false, Gap \"\"",
			m, short, err)
	}
	later := list[0]
	later.Position.File = "binlog.000000" // a backup at a log that is gone
	if m, _, _, err := places.Mirrored(t.Context(), place, "", later, nil); err != nil || !m.First.Equal(m.Last) {
		t.Errorf("got %+v: %v; want First.Equal(m.Last) true", m, err)
	}
	code, out, errs := call(t, "check", "backup", "--from", place)
	if code != check.Warning || !strings.Contains(out, "was ever proven") || !strings.Contains(out, "gap=0") {
		t.Errorf("exit %d: got %s%s; want code check.Warning, \"was ever proven\" in it, \"gap=0\" in it", code, out, errs)
	}
}

// TestForgedLogs: logs that somebody changed, or that are not signed, are rolled forward by no command, and with the flag to read
// what is unsigned only those that are unchanged.
func TestForgedLogs(t *testing.T) {
	n := sandboxtest.Up(t, "mariadb")
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	db, err := n.DB()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	sql := func(list ...string) {
		t.Helper()
		for _, q := range list {
			if _, err := db.ExecContext(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
	}
	place := t.TempDir()
	follow := []string{"binlog", "follow", "--once", "--dsn", n.DSN, "--to", place}
	sql("CREATE TABLE test.orders (id INT PRIMARY KEY)", "INSERT INTO test.orders VALUES (1), (2)")
	mustRun(t, "backup", "--dsn", n.DSN, "--to", place)
	sql("INSERT INTO test.orders VALUES (3)", "FLUSH BINARY LOGS", "INSERT INTO test.orders VALUES (4)")
	mustRun(t, follow...)
	commands := [][]string{
		{"drill", "--from", place, "--servers", "mariadb", "--query", "SELECT COUNT(*) FROM test.orders => 4"},
		{"restore", "--from", place, "--sandbox", "forged", "--to-time", "2100-01-01 00:00"},
		{"binlog", "apply", "--from", place, "--start", "binlog.000001:4", "--dry-run"},
	}
	all := func(code int, says string, more ...string) {
		t.Helper()
		for _, c := range commands {
			got, out, errs := call(t, append(c, more...)...)
			if got != code || !strings.Contains(out+errs, says) {
				t.Errorf("%v %v: exit %d, not %d with %q: %s%s", c[:2], more, got, code, says, out, errs)
			}
			if c[0] == "restore" {
				call(t, "sandbox", "down", "forged")
			}
		}
	}
	mustRun(t, "verify", "--from", place)
	all(fault.OK, "")
	files, err := filepath.Glob(filepath.Join(place, "binlog", "*", "binlog.000001.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("got %v, %v; want length 1", files, err)
	}
	index, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	put := func(b []byte) {
		t.Helper()
		os.Remove(files[0]) // files put there are not writable
		if err := os.WriteFile(files[0], b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(bytes.Replace(index, []byte(`"signature": {`), []byte(`"was": {`), 1)) // as an older version left it
	all(fault.Failed, "--allow-unsigned")
	if code, out, errs := call(t, "verify", "--from", place); code != fault.Failed || !strings.Contains(out, "foreign  mirrored log") || !strings.Contains(errs, "--allow-unsigned") {
		t.Errorf("verify: got %d %s%s; want code fault.Failed, \"foreign  mirrored log\" in it, \"--allow-unsigned\" in it", code, out, errs)
	}
	all(fault.OK, "is not signed: it is unknown who made it", "--allow-unsigned")
	put(bytes.Replace(index, []byte(`"sha256": "`), []byte(`"sha256": "0`), 1))
	all(fault.Failed, "it is not what was signed", "--allow-unsigned")
	put(index)
	mustRun(t, "verify", "--from", place)
	t.Setenv("XDG_CONFIG_HOME", t.TempDir()) // another account, which sees the place for the first time, and trusts it once
	all(fault.OK, "")
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	mustRun(t, follow...) // mirrors there, too
	all(fault.Failed, "--trust KEY")
}
