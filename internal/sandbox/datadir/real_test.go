package datadir_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/datadir"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("RISSO_TEST_DATADIR"); dir != "" { // inside another PID namespace, or as another user
		l := datadir.At(dir)
		os.Stdout.WriteString(string(l.State) + ": " + l.Words + "\n")
		return
	}
	os.Exit(sandboxtest.Main(m))
}

// TestInUse: a server that runs, hangs, stopped, was killed; its directory behind a link, copied, and without the right to read it.
func TestInUse(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Up(t, spec)
			is := func(when, dir string, want datadir.State, words string) {
				t.Helper()
				l := datadir.At(dir)
				if all := l.Words + " " + strings.Join(l.Notes, "; "); l.State != want || !strings.Contains(all, words) {
					t.Errorf("%s: got %s, %q; want %s with %q", when, l.State, all, want, words)
				}
			}
			pid := strconv.Itoa(n.PID)
			is("it runs", n.Datadir, datadir.InUse, "process "+pid+" (")
			base := t.TempDir()
			link := filepath.Join(base, "link [1]*")
			if err := os.Symlink(n.Datadir, link); err != nil {
				t.Fatal(err)
			}
			is("behind a link", link, datadir.InUse, "process "+pid+" (")
			inside(t, "in another PID namespace", n.Datadir, "in use: in use: a process that cannot be seen", "unshare", "--fork", "--pid", "--mount-proc")
			inside(t, "as another user", n.Datadir, "unknown: the directory cannot be looked at", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
			goOn := sandboxtest.Pause(t, n)
			is("it hangs", n.Datadir, datadir.InUse, "process "+pid+" (")
			goOn()

			copied := filepath.Join(base, "copied")
			if out, err := exec.Command("cp", "-a", n.Datadir, copied).CombinedOutput(); err != nil && !strings.Contains(string(out), "vanished") {
				t.Fatalf("copy: %v: %s", err, out)
			}
			write(t, filepath.Join(copied, "copied.pid"), pid)
			is("a copy with its pid file", copied, datadir.Free, "copied.pid names process "+pid+", which has nothing to do with these files")

			if err := n.Kill(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			await.Until(t, func() bool { return datadir.At(n.Datadir).State == datadir.Free }, "it was killed: the directory is free")
			write(t, filepath.Join(n.Datadir, "stale.pid"), pid)
			is("it was killed, with its pid file", n.Datadir, datadir.Free, "stale.pid names process "+pid+", which does not run")
			is("no server's", base, datadir.Unknown, "no files of a server")
			is("not there", filepath.Join(base, "nosuch"), datadir.Unknown, "cannot be looked at")

			// A second server of the sandbox is not started on a directory in use.
			ctx := t.Context()
			if err := n.Start(ctx); err != nil {
				t.Fatal(err)
			}
			is("it runs again, beside a stale pid file", n.Datadir, datadir.InUse, "process "+strconv.Itoa(n.PID)+" (")
			if err := n.Stop(ctx); err != nil {
				t.Fatal(err)
			}
			second := foreign(t, n)
			if err := n.Start(ctx); err == nil || !strings.Contains(err.Error(), "in use: process "+strconv.Itoa(second)+" (") {
				t.Errorf("the sandbox starts beside process %d: %v; want it refused", second, err)
			}
		})
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// inside looks at a directory by this test program under another, which may be forbidden here.
func inside(t *testing.T, when, dir, want string, under ...string) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := func(program string) ([]byte, error) {
		cmd := exec.Command(under[0], append(under[1:], program)...)
		cmd.Env = append(os.Environ(), "RISSO_TEST_DATADIR="+dir)
		return cmd.CombinedOutput()
	}
	if out, err := exec.Command(under[0], append(under[1:], "true")...).CombinedOutput(); err != nil {
		t.Logf("not tried %s: %v: %s", when, err, out)
		return
	}
	program := filepath.Join(t.TempDir(), "look")
	if out, err := exec.Command("cp", self, program).CombinedOutput(); err != nil {
		t.Fatalf("copy: %v: %s", err, out)
	}
	for d := filepath.Dir(program); strings.HasPrefix(d, os.TempDir()+"/"); d = filepath.Dir(d) { // the other user has to get there
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := run(program); err != nil || !strings.HasPrefix(string(out), want) {
		t.Errorf("%s: got %q, %v; want %q", when, out, err, want)
	}
}

// foreign runs a server on a node's directory of which the sandbox knows nothing, and returns its process.
func foreign(t *testing.T, n *sandbox.Node) int {
	t.Helper()
	// By other names: the sandbox would know it by those of its own.
	dir := t.TempDir()
	link, config := filepath.Join(dir, "data"), filepath.Join(dir, "my.cnf")
	if err := os.Symlink(n.Datadir, link); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(n.Datadir), "my.cnf"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, config, string(text))
	cmd := exec.Command(n.Program.Binary, foreignArgs(config, link, dir)...)
	runs(t, n, cmd, n.Datadir)
	return datadir.At(n.Datadir).Holders[0].PID
}

func foreignArgs(config, data, dir string) []string {
	return []string{"--defaults-file=" + config, "--datadir=" + data, "--socket=" + filepath.Join(dir, "s"), "--skip-networking", "--pid-file=other.pid"}
}

// runs starts a server until the test ends, and returns when it has a directory; end kills it sooner.
func runs(t *testing.T, n *sandbox.Node, cmd *exec.Cmd, dir string) (end func()) {
	t.Helper()
	cmd.Env = n.Environ()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	end = func() { _ = cmd.Process.Kill(); <-ended }
	t.Cleanup(end)
	await.Until(t, func() bool {
		select {
		case <-ended:
			t.Fatal("the other server ended")
		case <-time.After(time.Millisecond):
		}
		return datadir.At(dir).State == datadir.InUse
	}, "the other server has the directory")
	return end
}

// TestOverlay: a server in a container works on an overlay's files; asked about the upper directory, it is found by way of the overlay, and when that cannot be seen
// nothing is known.
func TestOverlay(t *testing.T) {
	if os.Getuid() != 0 {
		lack.Of(t, "an overlay is mounted by root")
	}
	n := sandboxtest.Up(t, "mariadb")
	if err := n.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, d := range []string{"upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	upper, merged := filepath.Join(dir, "upper"), filepath.Join(dir, "merged")
	mount := "mount -t overlay overlay -o lowerdir=" + filepath.Dir(n.Datadir) + ",upperdir=" + upper + ",workdir=" + filepath.Join(dir, "work") + " " + merged
	if out, err := exec.Command("unshare", "--mount", "sh", "-c", mount).CombinedOutput(); err != nil {
		lack.Of(t, "no overlay can be mounted here: "+string(out))
	}
	config := filepath.Join(filepath.Dir(n.Datadir), "my.cnf")
	args := append([]string{"--mount", "sh", "-c", mount + ` && exec "$@"`, "sh", n.Program.Binary}, foreignArgs(config, filepath.Join(merged, "data"), dir)...)
	data := filepath.Join(upper, "data")
	cmd := exec.Command("unshare", args...)
	end := runs(t, n, cmd, data)
	is := func(dir string, want datadir.State, words string) {
		t.Helper()
		if l := datadir.At(dir); l.State != want || !strings.Contains(l.Words+strings.Join(l.Notes, "; "), words) {
			t.Errorf("%s: got %s, %q, %q; want %s with %q", dir, l.State, l.Words, l.Notes, want, words)
		}
	}
	is(data, datadir.InUse, "process "+strconv.Itoa(cmd.Process.Pid)+" (")
	is(data, datadir.InUse, "by way of the overlay that is mounted at "+merged)
	is(n.Datadir, datadir.Free, "not in use") // the lower one is only read
	end()
	is(data, datadir.Unknown, "a layer of a container or another overlay")
}
