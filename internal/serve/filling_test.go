package serve

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/host"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/serve/incidents"
	"github.com/rissodb/risso/internal/store/series"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/alert"
	"github.com/rissodb/risso/internal/watch/alert/tell"
	"github.com/rissodb/risso/internal/watch/collect"
)

// ringing is what watches and rings in risso serve, with a receiver of webhooks; it is shown what there is by hand.
type ringing struct {
	*watch
	mu  sync.Mutex
	got []alert.Alert
}

func newRinging(t *testing.T) *ringing {
	t.Helper()
	r := &ringing{watch: newWatch(slog.New(slog.DiscardHandler))}
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		var m alert.Message
		if err := json.NewDecoder(q.Body).Decode(&m); err != nil {
			t.Errorf("the receiver: %v", err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got = append(r.got, m.Alerts...)
	}))
	t.Cleanup(receiver.Close)
	dir := t.TempDir()
	facts, err := state.Open(t.Context(), filepath.Join(dir, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	numbers, err := series.Open(series.Options{Dir: filepath.Join(dir, "series")})
	if err != nil {
		t.Fatal(err)
	}
	if r.moments, err = incidents.New(t.Context(), incidents.Options{Dir: dir, Facts: facts, Event: r.Event, Host: r.board.HostNumbers, Logger: r.logger}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	desk, err := r.newDesk(ctx, config.Alerts{Policy: alert.Policy{Receivers: []string{"hook"}}, Receivers: []tell.Config{{Name: "hook", Webhook: &tell.Webhook{URL: receiver.URL}}}}, facts, numbers)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() { r.journal(ctx, facts, 0) })
	all.Go(func() { _ = desk.Run(ctx) }) // it ends when ctx does
	t.Cleanup(func() { cancel(); all.Wait(); numbers.Close(); facts.Close() })
	return r
}

// told waits for what a receiver was told of a finding in a phase.
func (r *ringing) told(t *testing.T, finding string, phase alert.Phase) (a alert.Alert) {
	t.Helper()
	await.Until(t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, g := range r.got {
			if g.Finding == finding && g.Phase == phase {
				a = g
				return true
			}
		}
		return false
	}, "%s is %s", finding, phase)
	return a
}

// TestFillingRings: a real file system that fills steadily is told of before it is full, with when that will be and what to look at, and is not when
// there is room again. The host is read as it is; only the clock is another: a reading is made to be a minute after the one before, so that the half hour in
// which nothing is said takes seconds. The rule and its times are those of every day.
func TestFillingRings(t *testing.T) {
	t.Parallel()
	full := t.TempDir()
	if err := syscall.Mount("tmpfs", full, "tmpfs", 0, "size=200m"); err != nil {
		t.Skipf("SKIPPED: mounting a tmpfs needs root with CAP_SYS_ADMIN: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(full, syscall.MNT_DETACH) })
	r := newRinging(t)
	h, err := host.New(host.Options{FilesystemEvery: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	machine := fleet.Instance{ID: "web3", Name: "web3", Kind: fleet.KindHost}
	r.add(machine)
	var sample fleet.Sample
	at, written := time.Now().Add(-2*time.Hour).Truncate(time.Second), 0
	minute := func(grow int) {
		t.Helper()
		if grow > 0 {
			written += grow
			if err := os.WriteFile(filepath.Join(full, strconv.Itoa(written)), make([]byte, grow), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		left := func() float64 {
			sample.Clear()
			values := h.Read()
			for i, m := range h.Metrics() {
				sample.Values[sample.Position(m)] = values[i]
			}
			for i, m := range sample.Metrics {
				if m.Name == "node_filesystem_avail_bytes" && strings.Contains(m.Key(), `"`+full+`"`) {
					return sample.Values[i]
				}
			}
			return -1
		}
		var now syscall.Statfs_t
		await.Until(t, func() bool {
			return syscall.Statfs(full, &now) == nil && left() == float64(now.Bavail)*float64(now.Bsize)
		}, "the host's reading has what was written")
		for range 5 { // a rule is told of when it has held for some seconds
			at = at.Add(time.Second)
			r.board.Observe(collect.View{Instance: machine, Tick: at.Unix(), Up: true, Sample: &sample})
		}
		at = at.Add(55 * time.Second)
	}
	for range 30 {
		minute(256 << 10)
	}
	for _, f := range r.board.Fleet(time.Now())[0].Findings {
		if f.ID == "disk.trend" {
			t.Errorf("after half an hour less a minute: got %+v, want nothing yet", f)
		}
	}
	for range 5 {
		minute(256 << 10)
	}
	a := r.told(t, "disk.trend", alert.Firing)
	if a.Subject != full || a.Severity != fleet.SeverityWarning || !strings.HasPrefix(a.What, full+" is filling up since ") || !strings.Contains(a.What, ": full in 13 h if it goes on like this, with 19") ||
		!strings.HasSuffix(a.What, " MiB left and 15 MiB more an hour") || !strings.HasPrefix(a.Remedy, "du -xh --max-depth=2 "+full+" | sort") {
		t.Errorf("got %+v, want when it is full, and what to look at", a)
	}
	for range 32 {
		minute(2 << 20)
	}
	await.Until(t, func() bool {
		return r.told(t, "disk.trend", alert.Firing).Severity != 0 && r.worst() == fleet.SeverityCritical
	}, "it is full within two hours")
	if err := syscall.Mount("tmpfs", full, "tmpfs", syscall.MS_REMOUNT, "size=20g"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		minute(0)
	}
	r.told(t, "disk.trend", alert.Resolved)
}

// worst is how bad the worst was that a receiver was told of.
func (r *ringing) worst() (s fleet.Severity) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.got {
		s = max(s, a.Severity)
	}
	return s
}
