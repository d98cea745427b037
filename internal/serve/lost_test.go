package serve

import (
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve/incidents"
	"github.com/rissodb/risso/internal/store/series"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/collect"
)

// TestLostEventsAreTold: events for which the queue has no room are counted, and the count is an event once the store can be written.
func TestLostEventsAreTold(t *testing.T) {
	facts, err := state.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer facts.Close()
	w := newWatch(slog.New(slog.NewTextHandler(io.Discard, nil)))
	for range journalQueue + 3 {
		w.Event(fleet.Event{Time: time.Now(), Instance: "db", Kind: fleet.EventRole, Text: "t"})
	}
	w.lookAfterSelf(t.TempDir())
	<-w.queue // room for the finding
	w.self.own.look(time.Now(), series.Stats{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // it ends when the queue is empty
	w.journal(ctx, facts, 0)
	list, err := facts.Events(t.Context(), state.EventQuery{Kinds: []fleet.EventKind{fleet.EventStore}})
	if err != nil || len(list) != 1 || !strings.HasPrefix(list[0].Text, "3 events could not be kept") {
		t.Errorf("got %+v, %v; want one event that tells of 3", list, err)
	}
	if found, err := facts.Findings(t.Context(), state.FindingQuery{IDs: []string{"observer.lost"}}); err != nil || len(found) != 1 || !strings.Contains(found[0].First.What, "lost 3 events") {
		t.Errorf("got %+v, %v; want one finding that 3 events were lost", found, err)
	}
}

// TestSilence: an instance of which nothing comes, not even that it cannot be read, is found at the second look; one that is read again ends it.
func TestSilence(t *testing.T) {
	w := newWatch(slog.New(slog.NewTextHandler(io.Discard, nil)))
	facts, err := state.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer facts.Close()
	if w.moments, err = incidents.New(t.Context(), incidents.Options{Dir: t.TempDir(), Facts: facts, Event: w.Event, Host: w.board.HostNumbers, Logger: w.logger}); err != nil {
		t.Fatal(err)
	}
	w.lookAfterSelf(t.TempDir())
	in := fleet.Instance{ID: "db", Name: "db", Kind: fleet.KindServer}
	w.board.Add(in)
	w.board.Add(fleet.Instance{ID: "new", Name: "new", Kind: fleet.KindServer}) // nothing came yet
	now := time.Unix(time.Now().Unix(), 0)
	w.board.Observe(collect.View{Instance: in, Tick: now.Unix(), Sample: new(fleet.Sample)})
	told := func(after time.Duration) (list []string) {
		w.self.own.look(now.Add(after), series.Stats{})
		for _, f := range w.self.Self().Findings {
			if f.ID == "observer.silent" {
				list = append(list, f.Subject)
			}
		}
		return list
	}
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{25 * time.Second, 0}, {40 * time.Second, 0}, {50 * time.Second, 1}} {
		if got := told(c.after); len(got) != c.want {
			t.Errorf("after %s: got %v, want %d", c.after, got, c.want)
		}
	}
	w.board.Observe(collect.View{Instance: in, Tick: now.Unix() + 55, Sample: new(fleet.Sample)})
	for _, after := range []time.Duration{60 * time.Second, 72 * time.Second} {
		if got := told(after); after > 70*time.Second && len(got) > 0 {
			t.Errorf("it is read again: got %v, want nothing", got)
		}
	}
}
