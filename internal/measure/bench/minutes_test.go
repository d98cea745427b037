package bench

import (
	"testing"
	"time"

	"github.com/rissodb/risso/internal/measure/drive"
)

// A run of two kinds: what ended in which minute, and what a short rest and an overshoot belong to.
func TestMinutes(t *testing.T) {
	y := newTally(2)
	add := func(second, kind int, measured bool, latency time.Duration) {
		s := newSlice(2, false)
		s.second = second
		_ = s.latency[kind].RecordValue(int64(latency))
		s.moments[kind].add(int64(latency))
		y.take(s, measured)
	}
	add(-3, 1, false, time.Second) // warm-up
	add(0, 1, true, 10*time.Millisecond)
	add(59, 1, true, 20*time.Millisecond)
	add(60, 1, true, 30*time.Millisecond)
	add(119, 0, true, 40*time.Millisecond)
	add(120, 1, true, 50*time.Millisecond) // ended after the time was over
	got := y.minutesOf(1, 120*time.Second+300*time.Millisecond)
	if len(got) != 2 || got[0].Transactions != 2 || got[1].Transactions != 2 || got[0].Seconds != 60 || got[1].Seconds != 60.3 {
		t.Fatalf("%+v", got)
	}
	if got[0].PerMinute != 2 || got[0].Max != 0.02 || got[1].Max != 0.05 || got[1].PerMinute >= 2 {
		t.Errorf("%+v", got)
	}
	if got := y.minutesOf(0, 125*time.Second); len(got) != 3 || got[0].Transactions != 0 || got[1].Transactions != 1 || got[2].Seconds != 5 {
		t.Errorf("%+v", got)
	}
	if got := y.minutesOf(1, 300*time.Millisecond); len(got) != 1 || got[0].Transactions != 4 {
		t.Errorf("%+v", got)
	}
}

func TestRetriedErrorsAreTold(t *testing.T) {
	y := newTally(1)
	e := &drive.ServerError{Code: 1213, Message: "Deadlock found"}
	y.retried(e.Label(), e.Message)
	y.failed(e.Label(), e.Message)
	if got := y.errorCounts(); len(got) != 1 || got[0].Count != 2 || got[0].Retried != 1 {
		t.Errorf("%+v", got)
	}
}
