package state

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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

// TestFindingsOfADay: what held on a day is found whether it began that day, the day before, or long before, and what did not hold is not.
func TestFindingsOfADay(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for i, c := range []struct {
		begin, end time.Duration // from the day's begin; end 0: it holds
	}{
		{-100 * time.Hour, 0}, {-100 * time.Hour, -50 * time.Hour}, {-100 * time.Hour, time.Hour}, {-20 * time.Hour, time.Hour}, {-20 * time.Hour, -time.Hour},
		{time.Hour, 2 * time.Hour}, {23 * time.Hour, 90 * time.Hour}, {25 * time.Hour, 26 * time.Hour}, {-24 * time.Hour, time.Minute},
	} {
		instance := fmt.Sprint("db", i)
		if err := s.KeepFindings(t.Context(), Look{Instance: instance, At: day.Add(c.begin), Findings: []fleet.Finding{{ID: "x"}}}); err != nil {
			t.Fatal(err)
		}
		if c.end == 0 {
			continue
		}
		if err := s.KeepFindings(t.Context(), Look{Instance: instance, At: day.Add(c.end)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		q    FindingQuery
		want string
	}{
		{FindingQuery{From: day, To: day.Add(24 * time.Hour)}, "[db6 db5 db3 db8 db2 db0]"},
		{FindingQuery{From: day, To: day.Add(24 * time.Hour), Limit: 2}, "[db6 db5]"},
		{FindingQuery{From: day}, "[db7 db6 db5 db3 db8 db2 db0]"},
		{FindingQuery{From: day, Instances: []string{"db2", "db4", "db5"}}, "[db5 db2]"},
		{FindingQuery{From: day.Add(27 * time.Hour), Open: true}, "[db0]"},
	} {
		list, err := s.Findings(t.Context(), c.q)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, f := range list {
			got = append(got, f.Instance)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%+v: got %s, want %s", c.q, got, c.want)
		}
	}
}

// TestFindingsOfARange: what held at any moment of a range is found, however long it lasted; each once, and nothing else.
func TestFindingsOfARange(t *testing.T) {
	s := newStore(t)
	r := rand.New(rand.NewPCG(1, 1))
	begin := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	type held struct{ told, ended time.Time }
	all := map[string]held{}
	for i := range 400 {
		h := held{told: begin.Add(time.Duration(r.Int64N(int64(900 * 24 * time.Hour)))).Truncate(time.Second)}
		// From minutes to years, and whole powers of two of a day, where one class ends.
		lasts := time.Duration(float64(time.Minute) * math.Pow(1.04, float64(i))).Truncate(time.Second)
		if i%5 == 0 {
			lasts = 24 * time.Hour << (i / 5 % 11)
		}
		f := fleet.Finding{ID: "lock.blocker", Subject: fmt.Sprint(i), Severity: fleet.SeverityWarning, Since: h.told}
		if err := s.KeepFindings(t.Context(), Look{Instance: f.Subject, At: h.told, Findings: []fleet.Finding{f}}); err != nil {
			t.Fatal(err)
		}
		if i%17 != 0 { // the others hold
			h.ended = h.told.Add(lasts)
			if err := s.KeepFindings(t.Context(), Look{Instance: f.Subject, At: h.ended}); err != nil {
				t.Fatal(err)
			}
		}
		all[f.Subject] = h
	}
	for n := range 200 {
		from := begin.Add(time.Duration(r.Int64N(int64(1000 * 24 * time.Hour)))).Truncate(time.Second)
		if h := all[fmt.Sprint(n)]; n%3 == 0 && !h.ended.IsZero() {
			from = h.ended // the last moment in which it is found
		}
		to := from.Add(time.Duration(1+r.IntN(200)) * time.Hour)
		if n%7 == 0 {
			to = time.Time{}
		}
		var want []string
		for name, h := range all {
			if (to.IsZero() || h.told.Before(to)) && (h.ended.IsZero() || !h.ended.Before(from)) {
				want = append(want, name)
			}
		}
		list, err := s.Findings(t.Context(), FindingQuery{From: from, To: to})
		var got []string
		for _, f := range list {
			got = append(got, f.First.Subject)
		}
		slices.Sort(want)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("from %s to %s: got %v, %v; want %v", from, to, got, err, want)
		}
	}
}
