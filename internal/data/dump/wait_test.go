package dump_test

import (
	"encoding/json"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/store/blob"
)

// TestWaitForPrune: a backup that finds a prune at work says so immediately, has no session on the server while it waits, and goes
// on as soon as the prune is killed, not a quarter of an hour later.
func TestWaitForPrune(t *testing.T) {
	t.Parallel()
	node := lend(t, "mariadb")
	to := target(t, node.DSN)
	s := stream(t, to)
	dir := t.TempDir()
	store, err := blob.Open(t.Context(), dir, blob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	r, err := repo.CreateWith(t.Context(), repo.On(store), repo.Keys{})
	if err != nil {
		t.Fatal(err)
	}
	prune := osexec.Command("sleep", "600")
	if err := prune.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = prune.Process.Kill(); _ = prune.Wait() })
	lease, err := json.Marshal(map[string]any{"process": processOf(t, prune.Process.Pid)})
	if err != nil {
		t.Fatal(err)
	}
	lock := filepath.Join(dir, "locks", "prune-x")
	if err := os.MkdirAll(filepath.Dir(lock), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(lock, lease, 0o600); err != nil {
		t.Fatal(err)
	}
	others := func() ([]map[string]string, error) {
		return s.QueryMaps(t.Context(), "SELECT ID FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() AND USER <> 'system user'")
	}
	await.Until(t, func() bool { ids, err := others(); return err == nil && len(ids) == 0 }, "the sessions of the test that had this server before are gone")
	told := 0
	o := dump.Options{Target: to, Name: "s", Threads: 2, Waiting: func(h repo.Holder) {
		told++
		if !strings.Contains(h.String(), strconv.Itoa(prune.Process.Pid)) {
			t.Errorf("it waits for %s, not for process %d", h, prune.Process.Pid)
		}
		ids, err := others()
		if err != nil || len(ids) != 0 {
			t.Errorf("sessions on the server while it waits: got %v, %v; want none", ids, err)
		}
		_ = prune.Process.Kill()
		_ = prune.Wait()
	}}
	if _, err := dump.Run(t.Context(), r, o); err != nil {
		t.Fatal(err)
	}
	if told != 1 {
		t.Errorf("it said %d times that it waits, want 1", told)
	}
}

// processOf is what a lease says about a process of this machine: proc(5).
func processOf(t *testing.T, pid int) repo.Process {
	t.Helper()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat)[strings.LastIndexByte(string(stat), ')')+2:])
	return repo.Process{Boot: strings.TrimSpace(string(boot)), Space: space, PID: pid, Started: fields[22-3]}
}
