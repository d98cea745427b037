package environ

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// used is the processor time of this process.
func used() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestUse compares what is reported of others and of a process in the server's role with what the kernel billed them.
func TestUse(t *testing.T) {
	start := func() *exec.Cmd {
		t.Helper()
		c := exec.Command("sh", "-c", "while :; do :; done")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	end := func(c *exec.Cmd) float64 {
		if err := c.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = c.Wait() // it was killed
		return (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
	}
	server, other := start(), start()
	w := NewWatcher(Watch{ServerPID: server.Process.Pid}, used)
	defer w.Close()
	w.Begin()
	began := time.Now()
	for until := began.Add(1200 * time.Millisecond); time.Now().Before(until); {
		time.Sleep(400 * time.Millisecond)
		w.Look()
	}
	u := w.Use()
	took := time.Since(began).Seconds()
	ofServer, ofOther := end(server), end(other)
	if u.Server == nil || *u.Server*took > ofServer+0.05 || *u.Server*took < 0.5*ofServer-0.1 {
		t.Errorf("the server took %.2f s in %.2f s, told is %s; want u.Server not nil, *u.Server * took at most %v, *u.Server * took at least %v",
			ofServer, took, u.Line(), ofServer+0.05, 0.5*ofServer-0.1)
	}
	if u.Foreign == nil || *u.Foreign*took < 0.5*ofOther-0.1 || u.Crowd == nil || *u.Crowd < 0.7 || len(u.Seconds) < 2 {
		t.Errorf("another took %.2f s in %.2f s, told is %s, %+v; want u.Foreign not nil, *u.Foreign * took at least %v, u.Crowd not nil, *u.Crowd at least 0.7, len(u.Seconds) at least 2",
			ofOther, took, u.Line(), u.Seconds, 0.5*ofOther-0.1)
	}
	left, ok := u.Left()
	if !ok || left <= 0 || left > 1 || !strings.HasPrefix(u.Line(), "DISTURBED by other programs") || strings.Contains(u.Line(), "\n") {
		t.Errorf("left %v, %s; want ok true, left more than 0, left at most 1, \"DISTURBED by other programs\" at its beginning, no \"\\n\" in it",
			left, u.Line())
	}
	if _, err := json.Marshal(u); err != nil {
		t.Error(err)
	}
}

// TestUseUnknown: what cannot be seen is said to be unknown, and is never 0.
func TestUseUnknown(t *testing.T) {
	tree := func(files map[string]string) string {
		root := t.TempDir()
		for name, text := range files {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return root
	}
	stat := "cpu  10 0 10 100 0 0 0 3 0 0\ncpu0 10 0 10 100 0 0 0 3 0 0\n"
	for _, c := range []struct {
		name  string
		watch Watch
		says  []string
	}{
		{"no /proc", Watch{Root: tree(nil)}, []string{"not known whether other programs interfered", "server not known, others not known, stolen not known"}},
		{"bare", Watch{Root: tree(map[string]string{"proc/stat": stat})}, []string{"not known whether other programs interfered", "server not known, others not known", "stolen 0 of", "waited for a processor not known", "pressure not known", "frequency unknown"}},
		{"damaged", Watch{Root: tree(map[string]string{"proc/stat": "cpu x\nnonsense"}), Elsewhere: true}, []string{"not known whether other programs interfered", "server on another machine, others not known"}},
		{"remote", Watch{Elsewhere: true}, nil},
		{"a process that is gone", Watch{ServerPID: 1 << 22}, []string{"server not known, others not known"}},
	} {
		w := NewWatcher(c.watch, used)
		if u := w.Use(); u != nil {
			t.Errorf("%s: a use of nothing: %+v, want nil", c.name, u)
		}
		w.Begin()
		time.Sleep(20 * time.Millisecond)
		u := w.Use()
		w.Close()
		if u == nil {
			t.Fatalf("%s: nothing is told, want u not nil", c.name)
		}
		for _, want := range c.says {
			if !strings.Contains(u.Line(), want) {
				t.Errorf("%s: %q lacks %q", c.name, u.Line(), want)
			}
		}
		if line := u.Line(); c.name == "remote" && (!strings.Contains(line, "server on another machine, others ") || strings.Contains(line, "others not known")) {
			t.Error(line)
		}
		if _, ok := u.Left(); ok != (c.name == "remote") {
			t.Errorf("%s: what was left is told: %v, want %v", c.name, ok, c.name == "remote")
		}
		if c.name != "remote" && c.name != "damaged" && len(u.Unknown) == 0 {
			t.Errorf("%s: no reason is given", c.name)
		}
		if _, err := json.Marshal(u); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	held := 0.3
	if line := (&Use{CPUs: 4, Foreign: new(0.0), ServerHeld: &held}).Line(); !strings.HasPrefix(line, "DISTURBED by the quota of the server's control group (stopped in 30 % of its periods)") {
		t.Errorf("got %v, want \"DISTURBED by the quota of the server's control group (stopped in 30 %% of its periods)\" at its beginning", line)
	}
	if line := (*Use)(nil).Line(); !strings.HasPrefix(line, "not known") {
		t.Errorf("got %v, want \"not known\" at its beginning", line)
	}
}
