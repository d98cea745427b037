package scenario_test

import (
	"context"
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

	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestScriptEnds sends signals to a script that runs as script/test does, while a server runs that it has started, in a session
// of its own: nothing may be left, and another's process goes on.
func TestScriptEnds(t *testing.T) {
	t.Parallel()
	sandboxtest.Need(t, "mariadb")
	lib, err := filepath.Abs("../../script/lib/run.sh")
	if err != nil {
		t.Fatal(err)
	}
	for sig, code := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGINT: 130} {
		dir := tempDir(t)
		top := filepath.Join(dir, "rt-1") // as sandboxtest calls its folders
		if err := os.Mkdir(top, 0o700); err != nil {
			t.Fatal(err)
		}
		other := exec.Command("sleep", "1000")
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = other.Process.Kill()
			_ = other.Wait()
		})
		const script = `. "$1"; trap end_runs EXIT
work() { RISSO_SANDBOX_DIR=$2 "$1" sandbox up s && echo up >"$3" && sleep 1000; }
run work "$2" "$3" "$4"`
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "bash", "-c", script, "script", lib, binary, top, filepath.Join(dir, "up"))
		cmd.Env = append(os.Environ(), "TMPDIR="+dir)
		var said strings.Builder
		cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &said, &said, time.Minute
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for up := false; !up; time.Sleep(20 * time.Millisecond) {
			_, err := os.Stat(filepath.Join(dir, "up"))
			up = err == nil
			select {
			case err := <-ended:
				t.Fatalf("it ended by itself: %v: %s", err, said.String())
			default:
			}
		}
		if len(working(t, top)) == 0 {
			t.Error("no server runs")
		}
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		var exit *exec.ExitError
		if err := <-ended; !errors.As(err, &exit) || exit.ExitCode() != code {
			t.Errorf("%s: %v, not exit code %d: %s", sig, err, code, said.String())
		}
		if left := working(t, top); len(left) > 0 {
			t.Errorf("%s: left behind: %s, want none", sig, strings.Join(left, ", "))
		}
		if _, err := os.Stat(top); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the folder of the server is there: %v, want fs.ErrNotExist", sig, err)
		}
		if err := other.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("%s: another's process was ended: %v", sig, err)
		}
	}
}

// working lists the processes that work in a folder. One that has given its program back is about to end.
func working(t *testing.T, dir string) (list []string) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		at, err := os.Readlink(l)
		if _, gone := os.Readlink(filepath.Join(filepath.Dir(l), "exe")); err == nil && gone == nil && strings.HasPrefix(at, dir+"/") {
			list = append(list, fmt.Sprint(filepath.Base(filepath.Dir(l)), " in ", at))
		}
	}
	return list
}
