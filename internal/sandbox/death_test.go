package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fault"
)

// TestKilledUpLeavesNothing kills an up with SIGKILL at many moments, from the
// making of the template to the end, and takes down what is left.
func TestKilledUpLeavesNothing(t *testing.T) {
	needServer(t, "mariadb")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, firstUse := range []bool{true, false} {
		steps := []int{0, 80, 140, 180, 240}
		if firstUse {
			steps = []int{10, 100, 300, 700}
		}
		for _, ms := range steps {
			t.Run(fmt.Sprintf("firstUse=%v,%dms", firstUse, ms), func(t *testing.T) {
				t.Parallel() // much of it is waiting
				cache := cacheDir
				if firstUse {
					cache = t.TempDir()
				}
				dir := t.TempDir()
				cmd := exec.Command(self)
				cmd.Env = append(os.Environ(), helperEnv+"="+dir, "RISSO_TEST_CACHE="+cache)
				cmd.Stderr = os.Stderr
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Duration(ms) * time.Millisecond)
				if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
					t.Fatal(err)
				}
				_ = cmd.Wait() // killed, or just done
				found, err := List(dir)
				if err != nil {
					t.Fatal(err)
				}
				ps, _ := processesUnder(dir)
				for _, s := range found {
					t.Logf("left: sandbox %s is %s, %d processes", s.Name, s.State, len(ps))
					if s.State == StateStarting {
						t.Errorf("nobody starts it any more, but it is %s; want not StateStarting", s.State)
					}
					if _, err := Up(t.Context(), Options{Dir: dir, CacheDir: cache, Name: s.Name}); fault.Code(err) != fault.Usage {
						t.Errorf("its name can be used again: got %v, want fault.Usage", err)
					}
					if err := s.Down(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := os.Stat(dir); err == nil && len(ps) > 0 && len(found) == 0 {
					t.Errorf("processes without a sandbox")
				}
				if left, _ := processesUnder(dir); len(left) > 0 {
					t.Errorf("%d processes are left, such as %v; want none", len(left), argv(left[0].PID))
				}
				if found, _ := List(dir); len(found) > 0 {
					t.Errorf("%s is left, want none", found[0].Name)
				}
				if firstUse { // what the killed one left in the cache does not harm the next
					s := up(t, Options{Dir: dir, CacheDir: cache})
					if got := query(t, s.Primary(), "SELECT 1"); got != "1" {
						t.Errorf("got %s, want \"1\"", got)
					}
				}
			})
		}
	}
}

// TestKilledAtEveryStep is the same with the moments that Up itself tells.
func TestKilledAtEveryStep(t *testing.T) {
	needServer(t, "mariadb")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for step := 1; step <= 7; step++ {
		t.Run(fmt.Sprintf("step %d", step), func(t *testing.T) {
			t.Parallel()
			killAtStep(t, self, step)
		})
	}
}

func killAtStep(t *testing.T, self string, step int) {
	t.Helper()
	dir, cache := t.TempDir(), t.TempDir()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), helperEnv+"="+dir, "RISSO_TEST_CACHE="+cache)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	last := ""
	for i := 0; i < step && lines.Scan(); i++ {
		last = lines.Text()
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	found, err := List(dir)
	if err != nil || len(found) != 1 {
		t.Fatalf("step %d (%s): got %d sandboxes, %v; want 1", step, last, len(found), err)
	}
	t.Logf("killed after %q: %s", last, found[0].State)
	if err := found[0].Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustBeClean(t, dir)
}

// TestInterruptedUpCleansUp ends the context, as Ctrl-C does, at many moments.
func TestInterruptedUpCleansUp(t *testing.T) {
	needServer(t, "mariadb")
	for _, ms := range []int{1, 30, 80, 130, 170, 250, 500} {
		dir, cache := t.TempDir(), cacheDir
		if ms%100 == 0 || ms == 250 {
			cache = t.TempDir() // within the first use
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(ms)*time.Millisecond)
		s, err := Up(ctx, Options{Dir: dir, CacheDir: cache, Topology: TopologyReplication})
		cancel()
		if err == nil { // fast machine
			if err := s.Down(t.Context()); err != nil {
				t.Fatal(err)
			}
		} else if !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), "deadline") {
			t.Errorf("after %d ms: %v", ms, err)
		}
		t.Logf("after %d ms: %v", ms, err)
		if _, err := os.Stat(dir); err == nil {
			if left, _ := processesUnder(dir); len(left) > 0 {
				t.Errorf("after %d ms %d processes are left, want none", ms, len(left))
			}
			if found, _ := List(dir); len(found) > 0 {
				t.Errorf("after %d ms a sandbox is left, want none", ms)
			}
		}
	}
}

// TestUpsAtOnce: no port, name or template is taken twice.
func TestUpsAtOnce(t *testing.T) {
	needServer(t, "mariadb")
	dir, cache := t.TempDir(), t.TempDir()
	var wg sync.WaitGroup
	made := make([]*Sandbox, 4)
	errs := make([]error, 4)
	for i := range made {
		o := Options{Dir: dir, CacheDir: cache, Topology: TopologyReplication, Replicas: 1}
		if i >= 2 {
			o.Name = "same" // one of them must be refused
		}
		wg.Go(func() { made[i], errs[i] = Up(t.Context(), o) })
	}
	wg.Wait()
	ports, names, refused := map[int]bool{}, map[string]bool{}, 0
	for i, s := range made {
		if s == nil {
			if fault.Code(errs[i]) != fault.Usage {
				t.Errorf("up %d: got %v, want fault.Usage", i, errs[i])
			}
			refused++
			continue
		}
		names[s.Name] = true
		for _, n := range s.Nodes {
			ports[n.Port] = true
		}
	}
	if refused != 1 || len(names) != 3 || len(ports) != 6 {
		t.Errorf("got %d refused, names %v, %d ports; want refused 1, len(names) 3, len(ports) 6", refused, names, len(ports))
	}
	for _, s := range made {
		if s != nil {
			if err := s.Down(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	mustBeClean(t, dir)
}

func TestDownRefusesWhileUpWorks(t *testing.T) {
	needServer(t, "mariadb")
	dir := t.TempDir()
	reached := make(chan struct{})
	var once sync.Once
	done := make(chan error, 1)
	go func() {
		_, err := Up(t.Context(), Options{Dir: dir, CacheDir: cacheDir, Name: "x", Topology: TopologyReplication, Progress: func(string) {
			once.Do(func() { close(reached) })
			time.Sleep(time.Second)
		}})
		done <- err
	}()
	<-reached
	s, err := Open(dir, "x")
	if err != nil {
		t.Fatal(err)
	}
	if s.State != StateStarting {
		t.Errorf("it is %s, want StateStarting", s.State)
	}
	if err := s.Down(t.Context()); !errors.Is(err, ErrBusy) {
		t.Errorf("down says %v, want ErrBusy", err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := Down(t.Context(), dir, "x"); err != nil {
		t.Fatal(err)
	}
	mustBeClean(t, dir)
}

// TestForeignProcessIsNeverHurt: a process that got the pid of a server, in this
// run of the kernel or another, stays alive.
func TestForeignProcessIsNeverHurt(t *testing.T) {
	foreign := exec.Command("sleep", "60")
	if err := foreign.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = foreign.Process.Kill()
		_ = foreign.Wait()
	}()
	real, err := identify(foreign.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "box", "n", "data")
	otherStart, otherBoot := real, real
	otherStart.Start--
	otherBoot.Boot = "00000000-0000-0000-0000-000000000000"
	for name, p := range map[string]process{"other program": real, "other start": otherStart, "other boot": otherBoot, "no pid": {}, "init": {PID: 1, Boot: bootID()}} {
		if err := p.signal(syscall.SIGKILL, dir); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("%s: got %v, want os.ErrProcessDone", name, err)
		}
		s := record(t, dir, p)
		if s.State != StateStopped || s.Nodes[0].State != StateStopped || s.Nodes[0].PID != 0 {
			t.Errorf("%s: listed as %s, node %s with pid %d; want s.State StateStopped, s.Nodes[0].State StateStopped, s.Nodes[0].PID 0",
				name, s.State, s.Nodes[0].State, s.Nodes[0].PID)
		}
		if err := s.Nodes[0].Kill(syscall.SIGKILL); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.Down(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, state, err := procStat(foreign.Process.Pid); err != nil || state == 'Z' {
			t.Fatalf("%s: the foreign process was killed; want state not 'Z'", name)
		}
	}
}

// record writes a sandbox with one node whose process is p, and reads it.
func record(t *testing.T, datadir string, p process) *Sandbox {
	t.Helper()
	if err := os.MkdirAll(datadir, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(filepath.Dir(datadir))
	w := &Sandbox{Name: "box", Dir: dir, Ready: true, Nodes: []*Node{{Name: "n", Datadir: datadir, Process: p}}}
	if err := w.save(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(filepath.Dir(dir), "box")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestStrayServerIsFound: a server that no record names is known by its data directory.
func TestStrayServerIsFound(t *testing.T) {
	datadir := filepath.Join(t.TempDir(), "box", "n", "data")
	stray := exec.Command("bash", "-c", "sleep 60; true", "mysqld", "--datadir="+datadir)
	if err := stray.Start(); err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() { _ = stray.Wait(); close(gone) }()
	s := record(t, datadir, process{})
	if s.Nodes[0].PID != stray.Process.Pid {
		t.Errorf("found pid %d, not %d", s.Nodes[0].PID, stray.Process.Pid)
	}
	if err := s.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Error("it lives on")
		_ = stray.Process.Kill()
	}
}
