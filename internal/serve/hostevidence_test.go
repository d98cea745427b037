package serve

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/host"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/serve/incidents"
	"github.com/rissodb/risso/internal/store/series"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/collect"
	"github.com/rissodb/risso/internal/watch/incident"
)

// TestHostEvidence: a file system of this machine that is full is a finding with the evidence of that second: the host's numbers, its own, and the
// processes that take most.
func TestHostEvidence(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "full")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("risso-test", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skip("a file system to fill cannot be mounted: ", err)
	}
	defer func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	if err := os.WriteFile(filepath.Join(dir, "f"), make([]byte, 8<<20-100<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWatch(slog.New(slog.NewTextHandler(io.Discard, nil)))
	facts, err := state.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer facts.Close()
	if w.moments, err = incidents.New(t.Context(), incidents.Options{Dir: t.TempDir(), Facts: facts, Event: w.Event, Host: w.board.HostNumbers, Logger: w.logger}); err != nil {
		t.Fatal(err)
	}
	numbers, err := series.Open(series.Options{Dir: t.TempDir(), Logger: w.logger, OnEvent: w.Event})
	if err != nil {
		t.Fatal(err)
	}
	defer numbers.Close()
	ctx, stop := context.WithCancel(t.Context())
	var group collect.Group
	done := make(chan struct{})
	go func() { defer close(done); w.journal(ctx, facts, 0) }()
	began := time.Now()
	h, _, err := w.watchHost(ctx, &group, config.Settings{Host: true}, numbers, facts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { stop(); group.Wait(); <-done; h.Close() }()
	go func() { // something that takes a processor
		for ctx.Err() == nil {
		}
	}()
	var found state.FindingRecord
	await.Until(t, func() bool {
		list, err := facts.Findings(t.Context(), state.FindingQuery{IDs: []string{"disk.full"}})
		i := slices.IndexFunc(list, func(r state.FindingRecord) bool { return r.First.Subject == dir })
		if i >= 0 {
			found = list[i]
		}
		return err == nil && i >= 0
	}, "the file system is found full")
	var e incident.Evidence
	if err := json.Unmarshal(found.Evidence, &e); err != nil || e.Host == nil {
		t.Fatalf("got %s (%v), want evidence of a host", found.Evidence, err)
	}
	if s := e.Host; e.Tick < began.Unix()-1 || s.MountPoint != dir || s.Size != 8<<20 || s.Free < 50<<10 || s.Free > 150<<10 || s.Memory < 100<<20 || s.Available <= 0 || s.Available > s.Memory {
		t.Errorf("got %+v, want the numbers of %s and of this machine", *s, dir)
	}
	i := slices.IndexFunc(e.Host.Processes, func(u host.Used) bool { return u.PID == os.Getpid() })
	if n := len(e.Host.Processes); n < topProcesses || n > 3*topProcesses || i >= 0 && (e.Host.Processes[i].CPU <= 0 || !strings.HasSuffix(e.Host.Processes[i].Name, "test")) {
		t.Errorf("got the processes %+v, want those that take most, and this one (%d) with what it takes of a processor, unless the machine is busier with others", e.Host.Processes, os.Getpid())
	}
	if len(found.Evidence) > 16<<10 {
		t.Errorf("got %d bytes of evidence, want 16 KB at most", len(found.Evidence))
	}
	lines := strings.Join(incident.EvidenceLines(found.Evidence), "\n")
	for _, want := range []string{": load ", " memory available", dir + ": ", " of 8 MiB free", "(process "} {
		if !strings.Contains(lines, want) {
			t.Errorf("got the lines\n%s\nwant %q in them", lines, want)
		}
	}
	t.Log(lines)
	if f := (fleet.Finding{ID: "host.cpu"}); incident.HostEvidence(collect.View{}, nil, f) != nil {
		t.Error("there is evidence of a second of which nothing is known")
	}
}
