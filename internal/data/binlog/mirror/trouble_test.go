package mirror

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestTrouble removes what a mirror needs: the network, silently, and the space on its disk.
func TestTrouble(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: network namespaces and mounts need root")
	}
	n := sandboxtest.Up(t, "mariadb", settings("mariadb")...)
	db := open(t, n)
	exec1(t, db, "CREATE TABLE test.t (id INT PRIMARY KEY, v TEXT)")
	load(t, db, 0, 40)

	t.Run("a network that swallows", func(t *testing.T) {
		w := newWire(t)
		at := addressAt(t, w.here, n.Socket)
		dir, said := t.TempDir(), &words{}
		cmd := processIn(t, said, dir, "", "", "root@tcp("+at.ln.Addr().String()+")/", "ip", "netns", "exec", w.space)
		mirrored(t, dir, n)
		w.cut(t, true)
		load(t, db, 100, 160)
		await.Until(t, func() bool { return strings.Contains(said.String(), "trying again") }, "noticed")
		w.cut(t, false)
		mirrored(t, dir, n)
		load(t, db, 160, 170)
		mirrored(t, dir, n)
		cmd.Process.Kill()
		cmd.Wait()
		t.Log(said.String())
		same(t, dir, serverLogs(t, n))
	})

	t.Run("a full disk", func(t *testing.T) {
		dir := t.TempDir()
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
			t.Skipf("SKIPPED: mounting a tmpfs needs root with CAP_SYS_ADMIN: %v", err)
		}
		t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
		exec1(t, db, "SET GLOBAL rpl_semi_sync_master_timeout = 3600000", "SET GLOBAL rpl_semi_sync_master_enabled = ON")
		filler := filepath.Join(dir, "filler")
		if err := os.WriteFile(filler, make([]byte, 200<<10), 0o600); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var notes []string
		stop := followWith(t, Options{Target: target(t, n), Dir: dir, SemiSync: true}, func(n Note) {
			mu.Lock()
			defer mu.Unlock()
			notes = append(notes, n.Text)
		})
		mirrored(t, dir, n)
		if err := fill(filler); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			var err error
			for i := 200; i < 260 && err == nil; i++ {
				_, err = db.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO test.t VALUES (%d, REPEAT('z', 3000))", i))
			}
			done <- err
		}()
		await.Until(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return strings.Contains(strings.Join(notes, "\n"), "no space left")
		}, "told")
		select {
		case err := <-done:
			t.Errorf("all commits were acknowledged, and there is no room: %v", err)
			done <- err
		default:
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		exec1(t, db, "SET GLOBAL rpl_semi_sync_master_enabled = OFF")
		mirrored(t, dir, n)
		stop()
		t.Log(strings.Join(notes, "\n"))
		same(t, dir, serverLogs(t, n))
	})

	t.Run("a full disk, once", func(t *testing.T) {
		dir := t.TempDir()
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
			t.Skipf("SKIPPED: mounting a tmpfs needs root with CAP_SYS_ADMIN: %v", err)
		}
		t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		err := Follow(ctx, Options{Target: target(t, n), Place: folder(t.TempDir()), Dir: dir, Once: true})
		if !errors.Is(err, errDisk) || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("there is no room for the logs: %v; want errDisk, \"no space left\" in the error", err)
		}
	})
}

// fill writes until there is no room.
func fill(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			if errors.Is(err, syscall.ENOSPC) {
				return nil
			}
			return err
		}
	}
}

// words gathers what a process says.
type words struct {
	mu sync.Mutex
	b  strings.Builder
}

func (w *words) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(b)
}

func (w *words) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// cable is one between this machine and a network namespace.
type cable struct{ space, name, here, there string }

func newWire(t *testing.T) cable {
	t.Helper()
	id := rand.IntN(1 << 16)
	w := cable{space: fmt.Sprintf("rt%d-%d", os.Getpid(), id), name: fmt.Sprintf("rt%04x", id)}
	// Of the range for tests of network devices, RFC 2544.
	w.here, w.there = fmt.Sprintf("198.18.%d.%d", id>>8, id&0xfc|1), fmt.Sprintf("198.18.%d.%d", id>>8, id&0xfc|2)
	if out, err := exec.Command("ip", "netns", "add", w.space).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: no network namespace can be made here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		exec.Command("ip", "link", "del", w.name+"a").Run()
		exec.Command("ip", "netns", "del", w.space).Run()
	})
	w.ip(t, "link", "add", w.name+"a", "type", "veth", "peer", "name", w.name+"b", "netns", w.space)
	w.ip(t, "addr", "add", w.here+"/30", "dev", w.name+"a")
	w.ip(t, "link", "set", w.name+"a", "up")
	w.ip(t, "-n", w.space, "addr", "add", w.there+"/30", "dev", w.name+"b")
	w.ip(t, "-n", w.space, "link", "set", w.name+"b", "up")
	return w
}

func (w cable) ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %v: %v: %s", args, err, out)
	}
}

// cut makes the wire swallow everything in both directions, or no longer: each end sends to an address that the other does not have.
func (w cable) cut(t *testing.T, cut bool) {
	t.Helper()
	verb := []string{"neigh", "del"}
	if cut {
		verb = []string{"neigh", "replace"}
	}
	for _, end := range [][]string{{w.there, "dev", w.name + "a"}, {w.here, "dev", w.name + "b"}} {
		args := append(append([]string{}, verb...), end...)
		if cut {
			args = append(args, "lladdr", "02:00:00:00:00:99", "nud", "permanent")
		}
		if end[0] == w.here {
			args = append([]string{"-n", w.space}, args...)
		}
		w.ip(t, args...)
	}
}
