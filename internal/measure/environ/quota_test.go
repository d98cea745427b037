package environ

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/host"
)

// quotaGroup makes a control group with a fifth of a processor and one below it without its own quota, and returns the latter's
// folder and a way to lift the quota.
func quotaGroup(t *testing.T) (inner string, lift func()) {
	t.Helper()
	top, limit, text, none := "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "20000", "-1"
	if b, err := os.ReadFile("/sys/fs/cgroup/cgroup.subtree_control"); err == nil && strings.Contains(string(b), "cpu") {
		top, limit, text, none = "/sys/fs/cgroup", "cpu.max", "20000 100000", "max"
	}
	outer, err := os.MkdirTemp(top, "risso-test-")
	if err != nil {
		t.Skip("no control group can be made here:", err)
	}
	t.Cleanup(func() { _ = os.Remove(outer) }) // a folder of the kernel
	if err := os.WriteFile(filepath.Join(outer, limit), []byte(text), 0); err != nil {
		t.Skip("no quota can be set here:", err)
	}
	inner = filepath.Join(outer, "inner")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Skip("no control group can be made here:", err)
	}
	t.Cleanup(func() { _ = os.Remove(inner) })
	return inner, func() {
		if err := os.WriteFile(filepath.Join(outer, limit), []byte(none), 0); err != nil {
			t.Error(err)
		}
	}
}

// TestQuota stops a process by a quota of the group above its own, really.
func TestQuota(t *testing.T) {
	group, lift := quotaGroup(t)
	c := exec.Command("sh", "-c", "while :; do :; done")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() }) // it was killed
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(c.Process.Pid)), 0); err != nil {
		t.Fatal(err)
	}
	look := func(enough func(*Use) bool) *Use {
		w := NewWatcher(Watch{ServerPID: c.Process.Pid}, used)
		defer w.Close()
		w.Begin()
		for until := time.Now().Add(2 * time.Minute); ; {
			time.Sleep(300 * time.Millisecond)
			if u := w.Use(); enough(u) || time.Now().After(until) {
				return u
			}
		}
	}
	u := look(func(u *Use) bool { return u.ServerHeld != nil && *u.ServerHeld > 0.05 })
	if u.ServerHeld == nil || *u.ServerHeld <= 0.05 || *u.ServerHeld > 1 || !strings.HasPrefix(u.Line(), "DISTURBED by ") || !strings.Contains(u.Line(), "the quota of the server's control group (stopped in ") ||
		u.ClientHeld == nil || strings.Contains(u.Line(), "quota of the client's") != (*u.ClientHeld >= 0.01) {
		t.Errorf("%s", u.Line())
	}
	lift()
	if u := look(func(u *Use) bool { return u.ServerHeld != nil && *u.ServerHeld == 0 }); !strings.Contains(u.Line(), "server 0 %") {
		t.Errorf("got %s, want \"server 0 %%\" in it", u.Line())
	}
}

// TestClocks: a machine that slept, and a clock that was set, are distinguished.
func TestClocks(t *testing.T) {
	at := func(awake, boot, wall time.Duration) look {
		return look{when: time.Unix(1000, 0).Add(awake), boot: time.Hour + boot, wall: 1000*time.Hour + wall}
	}
	for _, c := range []struct {
		end        look
		slept, set float64
		says       string
	}{
		{at(time.Second, time.Second, time.Second), 0, 0, ""},
		{at(time.Second, time.Second+20*time.Millisecond, time.Second-30*time.Millisecond), 0, 0, ""},
		{at(time.Second, 61*time.Second, 61*time.Second), 60, 0, "DISTURBED by a sleep of the machine (60 s)"},
		{at(time.Second, time.Second, 3601*time.Second), 0, 3600, "the clock was set 60 min ahead"},
		{at(time.Second, time.Second, -9*time.Second), 0, -10, "the clock was set 10 s back"},
		{at(time.Second, 61*time.Second, time.Second), 60, -60, "the clock was set 60 s back"},
	} {
		u := &Use{CPUs: 2, Foreign: new(0.0)}
		if u.clocks(at(0, 0, 0), c.end); u.Slept != c.slept || u.ClockSet != c.set || !strings.Contains(u.Line(), c.says) {
			t.Errorf("%v and %v, want %v and %v: %s", u.Slept, u.ClockSet, c.slept, c.set, u.Line())
		}
	}
}

// TestQuotaUnknown: where it is not seen whether there is a quota, nothing says that there is none.
func TestQuotaUnknown(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("proc/stat", "cpu  10 0 10 100 0 0 0 0 0 0\ncpu0 10 0 10 100 0 0 0 0 0 0\n")
	line := func() (string, []string) {
		w := NewWatcher(Watch{Root: root}, used)
		defer w.Close()
		w.Begin()
		u := w.Use()
		var unknown []string
		for _, g := range u.Unknown {
			unknown = append(unknown, g.What)
		}
		return u.Line(), unknown
	}
	if text, unknown := line(); !strings.Contains(text, "stopped by quotas: client not known, server not known") || !strings.Contains(strings.Join(unknown, ";"), "whether a quota stopped the client") {
		t.Errorf("nothing to be seen: got %s, %q; want \"stopped by quotas: client not known, server not known\" in it, \"whether a quota stopped the client\" in strings.Join(unknown, \";\")",
			text, unknown)
	}
	write("proc/self/cgroup", "0::/a/b\n")
	write("proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
	write("sys/fs/cgroup/a/b/cpu.stat", "usage_usec 5\nnr_periods 10\nnr_throttled 0\nthrottled_usec 0\n")
	write("sys/fs/cgroup/a/cpu.stat", "usage_usec 5\nnr_periods 100\nnr_throttled 40\nthrottled_usec 3000000\n")
	h, err := host.New(host.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	q, err := h.Quotas(0)
	if err != nil {
		t.Fatal(err)
	}
	before := q.Read()
	if len(before) != 2 || before[1].Stopped != 40 || before[1].Time != 3*time.Second || before[0].Periods != 10 {
		t.Fatalf("got %+v; want len(before) 2, before[1].Stopped 40, before[1].Time 3 * time.Second, before[0].Periods 10", before)
	}
	write("sys/fs/cgroup/a/cpu.stat", "usage_usec 5\nnr_periods 110\nnr_throttled 44\nthrottled_usec 3400000\n")
	if share := held(before, q.Read()); share == nil || *share != 0.4 {
		t.Errorf("got %v; want share not nil, *share 0.4", share)
	}
	write("proc/stat", "cpu  10 0 10 100 0 0 0 0 0 0\ncpu0 10 0 10 100 0 0 0 0 0 0\n")
	write("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu hypervisor\n")
	if text, unknown := line(); !strings.Contains(text, "stopped by quotas: client 0 %") || !strings.Contains(text, "stolen not known") || !strings.Contains(strings.Join(unknown, ";"), "what the hypervisor gave to other machines") {
		t.Errorf("a virtual machine whose hypervisor tells nothing: got %s, %q; want \"stopped by quotas: client 0 %%\" in it, \"stolen not known\" in it, \"what the hypervisor gave to other machines\" in strings.Join(unknown, \";\")",
			text, unknown)
	}
}
