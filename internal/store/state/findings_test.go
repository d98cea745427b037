package state

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

func TestKeepFindings(t *testing.T) {
	s := newStore(t)
	at := func(second int) time.Time { return time.Date(2026, 11, 21, 3, 0, second, 0, time.UTC) }
	stopped := fleet.Finding{ID: "repl.stopped", Subject: "east", Severity: fleet.SeverityWarning, Since: at(0), Trouble: fleet.Trouble{What: "stopped"}}
	worse := stopped
	worse.Severity, worse.What = fleet.SeverityCritical, "stopped by error 1062"
	west := stopped
	west.Subject = "west"
	keep := func(second int, unseen map[string]bool, list ...fleet.Finding) {
		t.Helper()
		l := Look{Instance: "db", At: at(second), Findings: list, Unseen: unseen, Evidence: map[string]json.RawMessage{FindingKey(worse): json.RawMessage(`{"errno":1062}`)}}
		for range 2 { // the same look twice changes nothing
			if err := s.KeepFindings(t.Context(), l); err != nil {
				t.Fatal(err)
			}
		}
	}
	keep(1, nil, stopped)
	keep(2, nil, worse, west, west)
	keep(3, nil, stopped, west)
	keep(4, nil, west)
	keep(9, map[string]bool{FindingKey(west): true})
	keep(12, nil, stopped)

	got, err := s.Findings(t.Context(), FindingQuery{})
	if err != nil || len(got) != 3 {
		t.Fatalf("got %+v, %v; want 3", got, err)
	}
	if r := got[2]; r.First.What != "stopped" || r.Worst.What != worse.What || !r.WorstAt.Equal(at(2)) || !r.Told.Equal(at(1)) || !r.Ended.Equal(at(4)) || r.Unseen || string(r.Evidence) != `{"errno":1062}` || !r.Began().Equal(at(0)) {
		t.Errorf("got %+v; want one that was worst in second 2, and ended in 4", r)
	}
	if r := got[1]; r.First.Subject != "west" || !r.Unseen || !r.Seen.Equal(at(4)) {
		t.Errorf("got %+v; want one that was last seen in second 4, and ended unseen", r)
	}
	for _, c := range []struct {
		q    FindingQuery
		want int
	}{{FindingQuery{Open: true}, 1}, {FindingQuery{From: at(5)}, 2}, {FindingQuery{To: at(2)}, 1}, {FindingQuery{From: at(10), To: at(12)}, 0}, {FindingQuery{Limit: 2}, 2}, {FindingQuery{Instances: []string{"other"}}, 0}} {
		if list, err := s.Findings(t.Context(), c.q); err != nil || len(list) != c.want {
			t.Errorf("%+v: got %d, %v; want %d", c.q, len(list), err, c.want)
		}
	}
	events, err := s.Events(t.Context(), EventQuery{})
	var texts []string
	for _, e := range events {
		texts = append(texts, e.Old+">"+e.New+" "+e.Text)
	}
	want := []string{">open stopped", "open>open worse: stopped by error 1062", ">open stopped", "open> ended after 4 s: stopped by error 1062", "", ">open stopped"}
	if err != nil || len(texts) != len(want) {
		t.Fatalf("got %q, %v; want %q", texts, err, want)
	}
	for i, w := range want {
		if w != "" && texts[i] != w {
			t.Errorf("event %d: got %q, want %q", i, texts[i], w)
		}
	}
}
