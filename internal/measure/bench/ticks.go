package bench

import (
	"sync/atomic"
	"time"
)

// ticks remember for each millisecond of a run whether something happened in it. All sessions write to one: a bit that is
// set already is only read, so that its cache line can stay with every processor.
type ticks []atomic.Uint32

// longestRun is how much of a run's time ticks are kept for.
const longestRun = 24 * time.Hour

func newTicks(d time.Duration) ticks { return make(ticks, min(d, longestRun)/time.Millisecond/32+64) }

// mark notes that something happened at that time since the start.
func (t ticks) mark(at time.Duration) {
	ms := uint64(max(at, 0) / time.Millisecond)
	if i := ms / 32; i < uint64(len(t)) {
		if bit := uint32(1) << (ms % 32); t[i].Load()&bit == 0 {
			t[i].Or(bit)
		}
	}
}

func (t ticks) has(ms int64) bool {
	i := ms / 32
	return i < int64(len(t)) && t[i].Load()&(1<<(ms%32)) != 0
}

// The shortest pause that counts as a stall, and as an outage when something failed in it.
const (
	shortestStall  = 500 // ms
	shortestOutage = 20  // ms
)

// outages finds the spans up to end in which nothing succeeded: with failures an outage, without a stall.
func outages(success, failure ticks, end time.Duration) []Outage {
	var out []Outage
	last, failed := int64(0), false
	total := int64(end / time.Millisecond)
	flush := func(now int64) {
		n := now - last
		if n >= shortestStall || failed && n >= shortestOutage {
			out = append(out, Outage{From: float64(last) / 1000, Milliseconds: n, Errors: failed})
		}
		last, failed = now, false
	}
	for ms := range total {
		if success.has(ms) {
			flush(ms)
		}
		if failure.has(ms) {
			failed = true
		}
	}
	flush(total)
	return out
}
