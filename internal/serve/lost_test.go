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

// TestDid: what somebody did is written down when they are answered, and left to the journal where that cannot be.
func TestDid(t *testing.T) {
	facts, err := state.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	w := newWatch(slog.New(slog.DiscardHandler))
	e := state.ActionBy(state.Actor{}, state.ActionDone, fleet.Event{Text: "something was done"})
	w.did(facts)(e)
	if list, err := facts.Events(t.Context(), state.EventQuery{}); err != nil || len(list) != 1 || list[0].Text != e.Text || len(w.queue) > 0 {
		t.Errorf("got %+v, %v, and %d that wait; want it written at once", list, err, len(w.queue))
	}
	if err := facts.Close(); err != nil {
		t.Fatal(err)
	}
	if w.did(facts)(e); len(w.queue) != 1 {
		t.Errorf("of a store that cannot be written %d events wait, want one", len(w.queue))
	}
}

// TestTurned: whether a server was down when Risso was killed is what the events say, where the kill came between one of them and its
// finding: an event that there is already is not told again.
func TestTurned(t *testing.T) {
	facts, err := state.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer facts.Close()
	at := time.Unix(1795478400, 0)
	down := fleet.Finding{ID: "server.hung", Severity: fleet.SeverityCritical, Since: at.Add(-time.Second), Trouble: fleet.Trouble{What: "it hangs"}}
	for _, id := range []string{"finding", "up"} {
		if err := facts.KeepFindings(t.Context(), state.Look{Instance: id, At: at, Findings: []fleet.Finding{down}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := facts.AddEvents(t.Context(), fleet.Event{Time: at, Instance: "up", Kind: fleet.EventDown}, fleet.Event{Time: at, Instance: "up", Kind: fleet.EventUp}, fleet.Event{Time: at, Instance: "event", Kind: fleet.EventDown}); err != nil {
		t.Fatal(err)
	}
	w := newWatch(slog.New(slog.DiscardHandler))
	if err := w.takeUp(t.Context(), facts); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]time.Time{"finding": down.Since, "up": {}, "event": at, "none": {}} {
		if since, hung := w.downSince(id); !since.Equal(want) || hung != (id == "finding") {
			t.Errorf("%s: got down since %s, hung %t; want %s", id, since, hung, want)
		}
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
