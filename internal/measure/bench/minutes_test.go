package bench

import (
	"testing"
	"time"

	"github.com/rissodb/risso/internal/measure/drive"
)

// A run of two kinds: what ended in which minute, and what a short rest and an overshoot belong to.
func TestMinutes(t *testing.T) {
	y := newTally(2, 1)
	const zero = 5 * time.Second // a warm-up
	var all []*slice
	add := func(second, kind int, latency time.Duration) {
		s := y.blank(second+5, false)
		s.add(kind, int64(latency))
		all = append(all, s)
	}
	add(-3, 1, time.Second) // warm-up
	add(0, 1, 10*time.Millisecond)
	add(59, 1, 20*time.Millisecond)
	add(60, 1, 30*time.Millisecond)
	add(119, 0, 40*time.Millisecond)
	add(120, 1, 50*time.Millisecond) // ended after the time was over
	go y.gather(func() time.Duration { return zero })
	for _, s := range all {
		y.handed <- s
	}
	close(y.handed)
	<-y.done
	got := y.minutesOf(1, 120*time.Second+300*time.Millisecond)
	if len(got) != 2 || got[0].Transactions != 2 || got[1].Transactions != 2 || got[0].Seconds != 60 || got[1].Seconds != 60.3 {
		t.Fatalf("got %+v; want len(got) 2, got[0].Transactions 2, got[1].Transactions 2, got[0].Seconds 60, got[1].Seconds 60.3", got)
	}
	if got[0].PerMinute != 2 || got[0].Max != 0.02 || got[1].Max != 0.05 || got[1].PerMinute >= 2 {
		t.Errorf("got %+v; want got[0].PerMinute 2, got[0].Max 0.02, got[1].Max 0.05, got[1].PerMinute less than 2", got)
	}
	if got := y.minutesOf(0, 125*time.Second); len(got) != 3 || got[0].Transactions != 0 || got[1].Transactions != 1 || got[2].Seconds != 5 {
		t.Errorf("got %+v; want len(got) 3, got[0].Transactions 0, got[1].Transactions 1, got[2].Seconds 5", got)
	}
	if got := y.minutesOf(1, 300*time.Millisecond); len(got) != 1 || got[0].Transactions != 4 {
		t.Errorf("got %+v; want len(got) 1, got[0].Transactions 4", got)
	}
}

func TestRetriedErrorsAreTold(t *testing.T) {
	y := newTally(1, 1)
	e := &drive.ServerError{Code: 1213, Message: "Deadlock found"}
	for range 2 {
		s := y.blank(0, false)
		s.retried(e.Label(), e)
		s.failed(e.Label(), e)
		y.take(s, true)
	}
	if got := y.errorCounts(); len(got) != 1 || got[0].Count != 4 || got[0].Retried != 2 {
		t.Errorf("got %+v; want len(got) 1, got[0].Count 4, got[0].Retried 2", got)
	}
}
