package bench

import (
	"slices"
	"sync/atomic"
	"time"
)

// ticks remember for each millisecond of a run whether something happened in it. All sessions write to one: a bit that is
// set already is only read, so that its cache line can stay with every processor.
type ticks []atomic.Uint32

// longestRun is how much of a run's time ticks are kept for.
const longestRun = 24 * time.Hour

func newTicks(d time.Duration) ticks { return make(ticks, min(d, longestRun)/time.Millisecond/32+64) }

// mark notes that something happened at that time since the epoch.
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

// The shortest pause without any success that is reported: as an outage when something failed in it, as a stall when nothing
// failed but transactions were waiting. A pause that is normal for transactions of this length does not count.
const (
	shortestOutage = 20 * time.Millisecond
	outageMedians  = 3
	shortestStall  = 500 * time.Millisecond
	stallMedians   = 10
)

// span is a time in which a transaction was under way, or should have been.
type span struct{ from, to time.Duration }

// note adds a span that ended last; those of one session that touch are joined.
func note(list []span, s span) []span {
	if n := len(list); n > 0 && s.from <= list[n-1].to {
		list[n-1].from = min(list[n-1].from, s.from)
		list[n-1].to = max(list[n-1].to, s.to)
		return list
	}
	return append(list, s)
}

// join makes the spans disjoint and puts them in order.
func join(list []span) []span {
	slices.SortFunc(list, func(a, b span) int { return int(a.from - b.from) })
	var out []span
	for _, s := range list {
		out = note(out, s)
	}
	return out
}

// outages is what is needed to find the pauses of a run.
type outages struct {
	success, failure ticks
	slow             []span        // transactions that took at least shortestStall, joined
	median           time.Duration // of a transaction
	gap              time.Duration // mean time between transactions that were due; 0: closed loop
}

// find returns the spans from begin to end in which nothing succeeded: with failures an outage, without a stall.
func (o outages) find(begin, end time.Duration) []Outage {
	var out []Outage
	outage := max(shortestOutage, outageMedians*o.median, outageMedians*o.gap)
	stall := max(shortestStall, stallMedians*o.median)
	last, failed := begin, false
	flush := func(now time.Duration) {
		from, to := last, now
		if !failed {
			from, to = o.waited(from, to)
		}
		if to-from >= stall || failed && to-from >= outage {
			out = append(out, Outage{From: (from - begin).Seconds(), Milliseconds: int64((to - from) / time.Millisecond), Errors: failed})
		}
		last, failed = now, false
	}
	for at := begin; at < end; at += time.Millisecond {
		if o.success.has(int64(at / time.Millisecond)) {
			flush(at)
		}
		if o.failure.has(int64(at / time.Millisecond)) {
			failed = true
		}
	}
	flush(end)
	return out
}

// waited returns the longest part of a span in which a transaction was waiting: without one, silence is no stall.
func (o outages) waited(from, to time.Duration) (a, b time.Duration) {
	i, _ := slices.BinarySearchFunc(o.slow, from, func(s span, at time.Duration) int { return int(s.to - at) })
	for ; i < len(o.slow) && o.slow[i].from < to; i++ {
		if x, y := max(from, o.slow[i].from), min(to, o.slow[i].to); y-x > b-a {
			a, b = x, y
		}
	}
	return a, b
}
