package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestTop: what takes processors, memory and disks of this machine is found, by the program's name and without its arguments.
func TestTop(t *testing.T) {
	h, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	busy := exec.Command("sh", "-c", "while :; do :; done", "s3cret")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = busy.Process.Kill(); _ = busy.Wait() }()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { // this process writes
		defer close(done)
		f, err := os.Create(filepath.Join(t.TempDir(), "f"))
		if err != nil {
			return
		}
		defer f.Close()
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = f.WriteAt(make([]byte, 1<<20), 0)
				_ = f.Sync()
			}
		}
	}()
	defer func() { close(stop); <-done }()
	list := h.Top(1000, 500*time.Millisecond)
	of := func(pid int) *Used {
		if i := slices.IndexFunc(list, func(u Used) bool { return u.PID == pid }); i >= 0 {
			return &list[i]
		}
		return nil
	}
	if u := of(busy.Process.Pid); u == nil || u.CPU <= 0.01 || u.CPU > 1.1 || u.Name != "sh" {
		t.Errorf("got %+v of a shell that is busy, want its use of a processor, and its name alone", u)
	}
	me := of(os.Getpid())
	if me == nil || me.Resident < 5<<20 || me.Resident > 2<<30 {
		t.Errorf("got %+v of this process, want its memory", me)
	}
	if _, err := os.Stat("/proc/self/io"); err == nil && me != nil && me.Written == 0 {
		t.Errorf("got %+v of this process, want what it writes", me)
	}
	short := h.Top(2, 50*time.Millisecond)
	if len(short) < 2 || len(short) > 6 {
		t.Errorf("got %d processes, want 2 of each of three kinds, none twice: %+v", len(short), short)
	}
	for i, u := range short {
		if slices.ContainsFunc(short[:i], func(o Used) bool { return o.PID == u.PID }) {
			t.Errorf("process %d is there twice", u.PID)
		}
	}
}
