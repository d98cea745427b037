package scenario_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite" // a file of facts is made one of a newer Risso

	"github.com/rissodb/risso/internal/fleet"
)

// nobody is an account that owns nothing.
const nobody = 65534

// openDir is a folder that every account can reach.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rs-open-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the test's folder: %v", err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// serveAs starts risso serve as another account, which need not reach the program's folder.
func serveAs(t *testing.T, uid uint32, home, data string) *risso {
	t.Helper()
	f, err := os.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command("/proc/self/fd/3", "serve", "--host-only", "--listen", "127.0.0.1:0", "--data", data)
	cmd.ExtraFiles = []*os.File{f}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	cmd.Dir = "/"
	return launchCommand(t, cmd, environment(home))
}

// TestDataFolder: a data folder that cannot be used is reported in one line, with how to fix it.
func TestDataFolder(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can be another account, and mount")
	}
	dir := openDir(t)
	folder := func(name string, mode fs.FileMode, uid int) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.Mkdir(path, 0o700), os.Chown(path, uid, uid), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	disk := func(name string) string {
		t.Helper()
		path := folder(name, 0o755, 0)
		if err := unix.Mount("tmpfs", path, "tmpfs", 0, "size=64k"); err != nil {
			t.Skipf("a small disk cannot be mounted: %v", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
				t.Errorf("unmount: %v", err)
			}
		})
		return path
	}
	home := folder("home", 0o700, nobody)
	file := filepath.Join(dir, "file")
	write(t, file, "x")
	full, readOnly := disk("full"), disk("ro")
	fill(t, filepath.Join(full, "ballast"))
	if err := unix.Mount("tmpfs", readOnly, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}

	mixed := folder("mixed", 0o700, nobody)
	r := serveAs(t, 0, home, mixed)
	r.awaitReady(t)
	if said := r.err.String(); !strings.Contains(said, mixed+" belongs to nobody, which could not use files created by root: run risso as that account") {
		t.Errorf("root in a folder of nobody's: got %s, want %q in it",
			said, mixed+" belongs to nobody, which could not use files created by root: run risso as that account")
	}
	r.stop(t, syscall.SIGTERM)

	for _, c := range []struct {
		name, data string
		uid        uint32
		says       []string
	}{
		{"of another account", folder("closed", 0o700, 0), nobody, []string{"permission denied", "as the owner of", "chown -R nobody", "--data"}},
		{"that may only be read", folder("readable", 0o755, 0), nobody, []string{"permission denied", "chown -R nobody"}},
		{"in a folder of another account", filepath.Join(folder("outer", 0o755, 0), "data"), nobody, []string{"permission denied", "install -d -m 700 -o nobody"}},
		{"where root was at work", mixed, nobody, []string{"permission denied", "chown -R nobody"}},
		{"on a disk that is read-only", filepath.Join(readOnly, "data"), 0, []string{"read-only", "--data"}},
		{"on a full disk", filepath.Join(full, "data"), 0, []string{"free some space"}},
		{"that is a file", file, 0, []string{"not a directory", "--data"}},
	} {
		r := serveAs(t, c.uid, home, c.data)
		code, said := r.code(t), r.err.String()
		if code != 1 {
			t.Errorf("a folder %s: exit code %d: got %s, want 1", c.name, code, said)
		}
		oneLine(t, said)
		for _, s := range c.says {
			if !strings.Contains(said, s) {
				t.Errorf("a folder %s: it does not say %q: %s", c.name, s, said)
			}
		}
	}
	// As its owner all is well.
	r = serveAs(t, nobody, home, filepath.Join(home, "data"))
	r.awaitReady(t)
	r.stop(t, syscall.SIGTERM)
}

// contents are the files below a folder.
func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		found[path], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestNewerFacts: facts of a newer Risso are left as they are, and that is reported.
func TestNewerFacts(t *testing.T) {
	t.Parallel()
	data := dataDir(t)
	r := serve(t, data, "--host-only")
	r.stop(t, syscall.SIGTERM)
	db, err := sql.Open("sqlite", filepath.Join(data, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "PRAGMA user_version=99; PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before := contents(t, data)
	for _, args := range [][]string{{"serve", "--host-only", "--listen", "127.0.0.1:0"}, {"token", "list"}, {"token", "create", "ann"}} {
		r := launch(t, nil, append(args, "--data", data)...)
		code, said := r.code(t), r.err.String()
		oneLine(t, said)
		if code != 1 || !strings.Contains(said, "its schema is version 99, this Risso knows up to ") || !strings.Contains(said, "run the newer Risso") {
			t.Errorf("%s: exit code %d: %s; want code 1, \"its schema is version 99, this Risso knows up to \" in it, \"run the newer Risso\" in it",
				args[0], code, said)
		}
	}
	after := contents(t, data)
	for path, want := range before {
		if got, ok := after[path]; !ok || !bytes.Equal(got, want) {
			t.Errorf("%s was changed (there: %v)", path, ok)
		}
		delete(after, path)
	}
	for path := range after {
		t.Errorf("%s was written", path)
	}
}

// TestCopyWhileServing copies Risso's data as docs/operate.md says, while it watches, and serves the copy: it is whole, and at most
// the last second is missing.
func TestCopyWhileServing(t *testing.T) {
	t.Parallel()
	n := single(t, "mariadb", "performance_schema=ON")
	dir := tempDir(t)
	data := filepath.Join(dir, "data")
	args := []string{"--no-host"}
	const servers = 5 // that is one, watched several times: more is written
	for i := range servers {
		args = append(args, "--dsn", fmt.Sprintf("db%d=%s", i, n.DSN))
	}
	r := serve(t, data, args...)
	begin := r.awaitTicks(t, "db0", 2)
	await(t, "statements are read", func() bool { s := r.queries(t, "").Sources; return len(s) == servers && s[0].Working })
	r.awaitTicks(t, "db0", 3)

	copies := []string{"cp -a %[1]s %[2]s"}
	if _, err := exec.LookPath("rsync"); err == nil {
		copies = append(copies, "rsync -a --delete --modify-window=-1 %[1]s/ %[2]s/")
	}
	for round := range 3 {
		for i, form := range copies {
			to := filepath.Join(dir, fmt.Sprintf("copy-%d", i))
			line := fmt.Sprintf(form, data, to)
			if strings.HasPrefix(form, "rsync") {
				shell(t, line) // most of it goes while Risso watches
			} else if err := os.RemoveAll(to); err != nil {
				t.Fatal(err)
			}
			if err := r.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			await(t, "it holds still", func() bool { return held(t, r.cmd.Process.Pid) })
			stopped := time.Now().Unix()
			shell(t, line)
			if err := r.cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			if round < 2 { // once more, in another second
				continue
			}
			r.awaitTicks(t, "db0", 1)
			want := r.events(t, "", "")
			copied := serve(t, to, args...)
			for k := range servers {
				id := fmt.Sprintf("db%d", k)
				there, here := r.raw(t, of(questions, id), begin, stopped-1), copied.raw(t, of(questions, id), begin, stopped-1)
				if len(here) < len(there)-1 || len(there) == 0 || len(here) > len(there) {
					t.Fatalf("%s of the copy has %d seconds of %d; want len(here) at least %d, len(there) not 0, len(here) at most %d",
						id, len(here), len(there), len(there)-1, len(there))
				}
				for j, p := range here { // the last one may be missing, no other
					if p != there[j] {
						t.Fatalf("%s: %s of the copy is %v, not %v", line, id, p, there[j])
					}
				}
			}
			have := map[string]bool{}
			for _, e := range copied.events(t, "", "") {
				have[e.Time.String()+e.Text] = true
				if e.Severity > fleet.SeverityInfo && e.Kind == fleet.EventStore {
					t.Errorf("%s: %s", line, e.Text)
				}
			}
			for _, e := range want {
				if e.Time.Unix() < stopped-1 && !have[e.Time.String()+e.Text] {
					t.Errorf("%s: the copy lacks the event %s", line, e.Text)
				}
			}
			aside, err := filepath.Glob(filepath.Join(to, "*", "*amaged*"))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range aside {
				if tails, err := filepath.Glob(filepath.Join(f, "*.tail")); err != nil || len(tails) == 0 {
					t.Errorf("%s: %s was set aside; want len(tails) not 0", line, f)
				}
			}
			if !copied.queries(t, "").Available {
				t.Errorf("%s: the copy has no statements", line)
			}
			copied.kill(t)
		}
	}
	// What was copied goes on, and says what it did not see.
	r.awaitTicks(t, "db0", 2)
	for _, e := range r.events(t, "", fleet.EventStore) {
		t.Errorf("after it held still: %s", e.Text)
	}
	r.stop(t, syscall.SIGTERM)
}

// held reports whether all threads of a process are stopped.
func held(t *testing.T, pid int) bool {
	t.Helper()
	list, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(list) == 0 {
		t.Fatalf("no threads of %d: got %v; want len(list) not 0", pid, err)
	}
	for _, path := range list {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		if state := b[bytes.LastIndexByte(b, ')')+2:]; state[0] != 'T' {
			return false
		}
	}
	return true
}

func shell(t *testing.T, line string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", line).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", line, err, out)
	}
}
