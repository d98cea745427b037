package after

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/state"
)

// made are minutes of ten classes whose rate and latency wander as on a real server, the latter by factor.
func made(r *rand.Rand, minutes int, factor float64) (list []minute) {
	mood := 0.0
	for range minutes {
		mood = 0.6*mood + 0.12*r.NormFloat64()
		m := minute{classes: map[string]fleet.Cost{}}
		for c := range 10 {
			calls := int64(600 * math.Exp(mood/2+0.1*r.NormFloat64()))
			cost := fleet.Cost{Calls: calls, Seconds: float64(calls) * 0.002 * float64(c+1) * math.Exp(mood+0.1*r.NormFloat64())}
			if c == 4 {
				cost.Seconds *= factor
			}
			if r.IntN(30) == 0 {
				cost.Errors = 1
			}
			m.classes[fmt.Sprint(c)] = cost
			m.total.Add(cost)
		}
		list = append(list, m)
	}
	return list
}

func seenOf(before, after []minute) *seen {
	s := &seen{before: before, after: after, classes: map[string]known{}, at: 1_800_000_000, earliest: 1_700_000_000}
	for c := range 10 {
		s.classes[fmt.Sprint(c)] = known{fmt.Sprintf("select %d", c), 1_700_000_000}
	}
	return s
}

// TestNoise: of 40 deployments that changed nothing, on servers whose load wanders, hardly one is said to have changed something; a class
// three times as slow is found in nearly all.
func TestNoise(t *testing.T) {
	t.Parallel()
	wrong, found := 0, 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 7))
		s := seenOf(made(r, 15, 1), made(r, 15, 1))
		if got := s.compare(); got.Changed() {
			wrong++
		}
		s = seenOf(made(r, 15, 1), made(r, 15, 3))
		got := s.compare()
		if len(got.Classes) > 0 && got.Classes[0].ID == "4" && got.Classes[0].Change == "slower" {
			found++
		}
	}
	t.Logf("of 40: %d false alarms, %d found", wrong, found)
	if wrong > 4 || found < 38 {
		t.Errorf("%d false alarms, %d found; want at most 4, and at least 38", wrong, found)
	}
}

// TestTooLittle: with few minutes nothing is claimed, and that is said.
func TestTooLittle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 7))
	s := seenOf(made(r, 15, 1), made(r, 6, 30))
	got := s.compare()
	if got.Enough || got.Changed() || !strings.Contains(got.Words[0], "too little data: 15 minutes seen before and 6 after") {
		t.Errorf("got %q, enough %v; want too little data", got.Words, got.Enough)
	}
}

// TestGoneAndErrors: a class that ran in each minute and runs no more is gone; one that runs now and then is not; one that begins to fail
// is told.
func TestGoneAndErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 7))
	before, after := made(r, 15, 1), made(r, 15, 1)
	for i := range 15 {
		delete(after[i].classes, "7")
		delete(after[i].classes, "2")
		if i > 0 {
			delete(before[i].classes, "2") // a job that ran once
		}
		c := after[i].classes["5"]
		c.Errors = c.Calls / 10
		after[i].classes["5"] = c
	}
	got := map[string]string{}
	for _, c := range seenOf(before, after).compare().Classes {
		got[c.ID] = c.Change
	}
	if fmt.Sprint(got) != "map[5:errors 7:gone]" {
		t.Errorf("got %v, want 5 errors, 7 gone", got)
	}
}

// TestWindows: the minute of the moment is in neither window, and minutes that are not over yet, or not stored, are not compared.
func TestWindows(t *testing.T) {
	const minute = 1_799_999_940 // begins one
	before, after, complete := Windows(minute+20, minute+60+5*60+40, 15)
	if before != (Window{From: minute - 900, To: minute}) || after != (Window{From: minute + 60, To: minute + 60 + 5*60}) || complete {
		t.Errorf("got %+v %+v %v", before, after, complete)
	}
	if _, after, _ := Windows(minute+20, minute+30, 15); after.From != after.To {
		t.Errorf("just after the moment: %+v, want an empty window", after)
	}
	if _, after, complete := Windows(minute, minute+7200, 15); !complete || after.To != minute+960 {
		t.Errorf("later: %+v %v, want it complete", after, complete)
	}
}

// TestFindings: findings that began after the event are told first; those of before are not its doing.
func TestFindings(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	a := Answer{Event: fleet.Event{Time: at}}
	old := state.FindingRecord{Told: at.Add(-time.Minute), Worst: fleet.Finding{Trouble: fleet.Trouble{What: "old"}}}
	fresh := state.FindingRecord{Told: at.Add(time.Minute), Worst: fleet.Finding{Trouble: fleet.Trouble{What: "rows are locked"}, Severity: fleet.SeverityCritical}}
	r := rand.New(rand.NewPCG(3, 7))
	a.Add(seenOf(made(r, 15, 1), made(r, 15, 3)).compare(), []state.FindingRecord{old, fresh})
	s := a.Servers[0]
	if len(s.Findings) != 1 || !strings.Contains(s.Words[0], "rows are locked") || len(s.Words) < 2 || strings.Contains(strings.Join(s.Words, " "), "old") {
		t.Errorf("got %q", s.Words)
	}
}
