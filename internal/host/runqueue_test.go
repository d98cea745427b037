package host

import (
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/await"
)

// TestRunQueue burns processor time in its own threads and compares with what the kernel bills the process for.
func TestRunQueue(t *testing.T) {
	q := liveHost(t).RunQueue(0)
	if _, _, err := q.Read(); err != nil {
		t.Skip(err)
	}
	used := func() time.Duration {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	var stop atomic.Bool
	for range 2 * runtime.NumCPU() {
		go func() {
			for !stop.Load() {
			}
		}()
	}
	await.Until(t, func() bool { return used()-before >= 400*time.Millisecond }, "some time of a processor")
	ran, waited, err := q.Read()
	stop.Store(true)
	if err != nil {
		t.Fatal(err)
	}
	if ran == 0 {
		t.Skip("this kernel keeps no scheduling statistics")
	}
	near(t, "time on processors", ran.Seconds(), (used() - before).Seconds(), 0.3, 0.1)
	if waited < 0 {
		t.Errorf("waited %v, want at least 0", waited)
	}
}

// TestProcessorsOnly: a host that is read for its processors alone, also without the optional files.
func TestProcessorsOnly(t *testing.T) {
	h, err := New(Options{Processors: true})
	if err != nil {
		t.Fatal(err)
	}
	seen := values(h)
	if seen[`risso_host_cpu_seconds_total{mode="idle"}`] <= 0 {
		t.Errorf("no idle time in %v, want seen[`risso_host_cpu_seconds_total{mode=\"idle\"}`] more than 0", seen)
	}
	for _, m := range h.Metrics() {
		if m.Source == "/proc/meminfo" || m.Source == "statfs" {
			t.Errorf("%s was read, too; want m.Source not \"/proc/meminfo\", m.Source not \"statfs\"", m.Name)
		}
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}

	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "proc/self/task/1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "proc/stat"), []byte("cpu  1 2\ngarbage\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bare, err := New(Options{Root: root, Processors: true})
	if err != nil {
		t.Fatal(err)
	}
	defer bare.Close()
	bare.Read()
	if _, _, err := bare.RunQueue(0).Read(); err == nil {
		t.Error("a kernel without scheduling statistics gives times")
	}
	if mhz := bare.MHz(); mhz != 0 {
		t.Errorf("a machine that does not tell runs at %v MHz, want 0", mhz)
	}
	dir := filepath.Join(root, "sys/devices/system/cpu/cpu0/cpufreq")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "scaling_cur_freq"), []byte("2400000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if mhz := bare.MHz(); mhz != 2400 {
		t.Errorf("%v MHz, want 2400", mhz)
	}
}
