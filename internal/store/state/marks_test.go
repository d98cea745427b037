package state

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// TestMarks: a mark is stored once, however often it is sent, and its events find each other.
func TestMarks(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m := Mark{Key: "k", Kind: fleet.EventDeploy, Text: "deploy 1.4", Instances: []string{"b", "a", "b"}, By: "ci"}
	first, fresh, err := s.AddMark(t.Context(), m)
	if err != nil || !fresh || len(first) != 2 || first[0].Instance != "a" || first[1].Instance != "b" || first[0].New != "ci" || first[0].Kind != fleet.EventDeploy {
		t.Fatalf("got %+v, %t, %v; want one event each of a and b", first, fresh, err)
	}
	m.Instances, m.By = []string{"a", "b"}, "other"
	again, fresh, err := s.AddMark(t.Context(), m)
	if err != nil || fresh || len(again) != 2 || again[0] != first[0] {
		t.Errorf("again: got %+v, %t, %v; want the same events, not fresh", again, fresh, err)
	}
	m.Text = "deploy 1.5"
	if _, _, err := s.AddMark(t.Context(), m); !errors.Is(err, ErrOtherMark) {
		t.Errorf("another text: got %v, want ErrOtherMark", err)
	}
	all, _, err := s.AddMark(t.Context(), Mark{Key: "k2", Kind: fleet.EventNote, Text: "x"})
	if err != nil || len(all) != 1 || all[0].Instance != "" {
		t.Errorf("for all: got %+v, %v; want one event of no instance", all, err)
	}
	if list, err := s.Events(t.Context(), EventQuery{Severity: fleet.SeverityWarning}); err != nil || len(list) != 0 {
		t.Errorf("warnings: got %+v, %v; want none", list, err)
	}
	if list, err := s.Events(t.Context(), EventQuery{Oldest: true, Limit: 1}); err != nil || len(list) != 1 || list[0] != first[0] {
		t.Errorf("the oldest: got %+v, %v; want the first", list, err)
	}
	if _, err := s.PruneEvents(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	m.Text = "deploy 1.4"
	if late, fresh, err := s.AddMark(t.Context(), m); err != nil || !fresh || len(late) != 2 {
		t.Errorf("again after its events were pruned: got %+v, %t, %v; want two new events", late, fresh, err)
	}
}
