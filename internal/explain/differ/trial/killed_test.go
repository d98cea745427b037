package trial_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/explain/differ"
	"github.com/rissodb/risso/internal/explain/differ/trial"
	"github.com/rissodb/risso/internal/explain/differ/upgrade"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestKilled: a trial that is interrupted leaves no server, the next one throws away what a killed one left, and leaves alone what a living
// one has.
func TestKilled(t *testing.T) {
	sandboxtest.Need(t, "mariadb")
	d := &differ.Description{Name: "s", Server: fleet.ServerOf("10.11.1-MariaDB", ""), Schemas: map[string]differ.Schema{"s": {Tables: map[string]string{"t": "CREATE TABLE t (id INT)"}}}}
	begin := func(ctx context.Context, dir string, progress func(string)) error {
		a, err := trial.Run(ctx, d, upgrade.Facts{}, trial.Options{To: "mariadb", Now: time.Now(), Dir: dir, Find: sandboxtest.Find, Progress: progress})
		if err == nil && a.Loaded.Tables != 1 {
			err = errors.New("the trial made no table")
		}
		return err
	}
	if dir := os.Getenv("RISSO_TEST_TRIAL_DIR"); dir != "" {
		err := begin(t.Context(), dir, func(text string) {
			if strings.HasPrefix(text, "load") {
				<-t.Context().Done()
			}
		})
		t.Fatalf("it went on: %v", err)
	}
	dir, err := sandboxtest.Folder("rt-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	left := func() int {
		list, err := sandbox.List(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = begin(ctx, dir, func(text string) {
		if strings.HasPrefix(text, "load") {
			cancel()
		}
	})
	if n := left(); !errors.Is(err, context.Canceled) || n != 0 {
		t.Errorf("interrupted: got %v and %d servers, want that it was canceled, and none", err, n)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), "RISSO_TEST_TRIAL_DIR="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await.Until(t, func() bool {
		list, err := sandbox.List(dir)
		return err == nil && len(list) == 1 && list[0].State == sandbox.StateRunning
	}, "the server of the trial")
	if err := begin(t.Context(), dir, nil); err != nil || left() != 1 {
		t.Errorf("a second trial at the same time: got %v and %d servers, want none of its own, and that of the first", err, left())
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if n := left(); n != 1 {
		t.Fatalf("got %d servers of a killed trial, want 1", n)
	}
	if err := begin(t.Context(), dir, nil); err != nil || left() != 0 {
		t.Errorf("after a killed trial: got %v and %d servers, want none", err, left())
	}
}
