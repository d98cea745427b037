package mirror

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestFollowEncrypted mirrors encrypted logs: readable, with the server's positions, and said to be other bytes than its files.
func TestFollowEncrypted(t *testing.T) {
	key := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(key, []byte("1;770A8A65DA156D24EE2A093277530142\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	n := sandboxtest.Up(t, "mariadb", "plugin_load_add=file_key_management", "file_key_management_filename="+key, "encrypt_binlog=ON", "max_binlog_size=64K")
	db := open(t, n)
	exec1(t, db, "CREATE TABLE test.t (id INT PRIMARY KEY, v TEXT)")
	load(t, db, 0, 100)
	files, err := binlog.FromPaths([]string{filepath.Join(n.Datadir, "binlog.000001")})
	if err != nil {
		t.Fatal(err)
	}
	in, err := files[0].Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := binlog.Scan(t.Context(), "binlog.000001", in); !errors.Is(err, binlogevent.ErrEncrypted) {
		t.Errorf("the server's file: got %v, want binlogevent.ErrEncrypted", err)
	}
	dir := t.TempDir()
	for range 2 { // the second time it goes on where it was
		load(t, db, 100+len(t.Name()), 101+len(t.Name()))
		exec1(t, db, "DELETE FROM test.t WHERE id >= 100")
		if err := Follow(t.Context(), Options{Target: target(t, n), Place: folder(dir), Dir: dir, Once: true}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := List(t.Context(), folder(dir), dir)
	if err != nil {
		t.Fatal(err)
	}
	own := serverLogs(t, n)
	if len(list) != 1 || len(list[0].Logs) != len(own) {
		t.Fatalf("%d series, %d logs, the server has %d; want len(list) 1, len(list[0].Logs) %d", len(list), len(list[0].Logs), len(own), len(own))
	}
	for _, l := range list[0].Logs {
		if l.Size != int64(len(own[l.Name])) || !l.Decrypted {
			t.Errorf("%s: %d bytes, the server has %d; decrypted: %v; want l.Size int64(len(own[l.Name])), l.Decrypted true",
				l.Name, l.Size, len(own[l.Name]), l.Decrypted)
		}
	}
	tool, err := exec.LookPath("mariadb-binlog")
	if err != nil {
		lack.Of(t, "mariadb-binlog is not installed: run script/setup")
	}
	logs := raw(t, n, tool)
	for name, b := range logs {
		logs[name] = readable(b)
	}
	same(t, dir, logs)
}

// readable is a log of MariaDB's without the event that says that it is encrypted, which this one is not.
func readable(log []byte) []byte {
	out := slices.Clone(log[:len(binlogevent.Magic)])
	for b := log[len(binlogevent.Magic):]; len(b) > 0; {
		n := binlogevent.ParseHeader(b).Length
		out = append(out, binlogevent.Readable(b[:n], true)...)
		b = b[n:]
	}
	return out
}

// raw fetches a server's logs with the tool that comes with it.
func raw(t *testing.T, n *sandbox.Node, tool ...string) map[string][]byte {
	t.Helper()
	dir := t.TempDir() + "/"
	cmd := exec.CommandContext(t.Context(), tool[0], append(tool[1:], "--no-defaults", "--read-from-remote-server", "--raw", "--to-last-log",
		"--socket="+n.Socket, "--user=root", "--result-file="+dir, "binlog.000001")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v: %s", cmd.Args, err, out)
	}
	logs := map[string][]byte{}
	files, _ := filepath.Glob(dir + "binlog.*")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		binlogevent.ClearInUse(b[len(binlogevent.Magic):])
		logs[filepath.Base(f)] = b
	}
	return logs
}

// TestFollowEncryptedMySQL mirrors logs that MySQL keeps encrypted: what it decrypts is what mysqlbinlog gets, byte by byte, and
// the mirror goes on after a finished log although the server's file is longer.
func TestFollowEncryptedMySQL(t *testing.T) {
	n := sandboxtest.Up(t, "mysql-9.7", settings("mysql-9.7")...)
	tools := withKeyring(t, n)
	db := open(t, n)
	exec1(t, db, "SET GLOBAL binlog_encryption = ON", "CREATE TABLE test.t (id INT PRIMARY KEY, v TEXT)")
	load(t, db, 0, 80)
	dir := t.TempDir()
	once := func() {
		t.Helper()
		if err := Follow(t.Context(), Options{Target: target(t, n), Place: folder(dir), Dir: dir, Once: true}); err != nil {
			t.Fatal(err)
		}
	}
	once()
	load(t, db, 80, 90)
	once()
	list, err := List(t.Context(), folder(dir), dir)
	if err != nil || len(list) != 1 {
		t.Fatalf("got %d series: %v; want 1", len(list), err)
	}
	logs := list[0].Logs
	if err := os.Remove(filepath.Join(dir, root, list[0].Key, logs[len(logs)-1].Name)); err != nil { // as if it had been killed before it began it
		t.Fatal(err)
	}
	once()
	if list, err = List(t.Context(), folder(dir), dir); err != nil || len(list) != 1 {
		t.Fatalf("got %d series: %v; want 1", len(list), err)
	}
	if got := same(t, dir, raw(t, n, append(slices.Clip(tools[:len(tools)-1]), filepath.Join(filepath.Dir(tools[len(tools)-1]), "../bin/mysqlbinlog"))...)); got < 3 {
		t.Errorf("got %d logs, want at least 3", got)
	}
	own, err := os.ReadFile(filepath.Join(n.Datadir, logs[len(logs)-1].Name))
	if err != nil || !bytes.HasPrefix(own, []byte("\xfdbin")) {
		t.Errorf("the server's own file is not encrypted: %v", err)
	}
}

// withKeyring starts a MySQL server again with a keyring in a file, which must be named next to the program: a link to the program
// is made there. It returns what leads to the program: its loader, its path.
func withKeyring(t *testing.T, n *sandbox.Node) (program []string) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", n.PID))
	if err != nil {
		t.Fatal(err)
	}
	var rest []string
	plugins := ""
	for _, arg := range strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00") {
		switch {
		case len(program) == 0 || filepath.Base(program[len(program)-1]) != "mysqld":
			program = append(program, arg)
		case strings.HasPrefix(arg, "--plugin-dir="):
			plugins = strings.TrimPrefix(arg, "--plugin-dir=")
		case !strings.HasPrefix(arg, "--defaults-file=") && !strings.HasPrefix(arg, "--datadir="):
			rest = append(rest, arg)
		}
	}
	component := filepath.Join(plugins, "component_keyring_file.so")
	if _, err := os.Stat(component); err != nil {
		t.Skipf("this MySQL comes without a keyring: %v", err)
	}
	dir, original := t.TempDir(), program[len(program)-1]
	copied := filepath.Join(dir, "mysqld")
	if err := os.Link(original, copied); err != nil {
		if out, err := exec.CommandContext(t.Context(), "cp", original, copied).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	script := filepath.Join(dir, "start")
	for name, text := range map[string]string{
		filepath.Join(dir, "mysqld.my"):                  `{"components": "file://component_keyring_file"}`,
		filepath.Join(dir, "component_keyring_file.cnf"): fmt.Sprintf(`{"path": %q, "read_only": false}`, filepath.Join(dir, "keys")),
		script: "#!/bin/sh\nexec " + strings.Join(append(slices.Clip(program[:len(program)-1]), copied), " ") + ` "$@" ` + strings.Join(rest, " ") + " --plugin-dir=" + dir + "\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(component, filepath.Join(dir, filepath.Base(component))); err != nil {
		t.Fatal(err)
	}
	if err := n.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.Program.Binary = script
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return program
}
