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
	"github.com/rissodb/risso/internal/store/series"
	"github.com/rissodb/risso/internal/store/state"
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
