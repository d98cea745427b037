package incident

import (
	"cmp"
	"slices"
)

// Reading is what the detector looks at each second.
type Reading struct {
	Tick     int64
	Up       bool
	Finished float64 // statements that finished per second
	Known    bool    // Finished is known: it is not in the first second, nor after a reset
	Running  float64 // sessions that run a statement, without Risso's
	Waiting  float64 // sessions that wait for a lock
}

// The measures of a stall.
const (
	calmSeconds  = 60  // that make what is usual
	calmLeast    = 15  // fewer say nothing
	leastRate    = 5   // statements a second: below, a pause is no stall
	fallen       = 0.5 // of the usual rate, or less
	piledAtLeast = 3   // sessions more than usual that run a statement, and at least twice as many; or that wait for locks, and half of all
	stallBegins  = 2   // seconds in a row
	stallEnds    = 5   // seconds in a row without a stall
	stallUsual   = 300 // seconds after which the state counts as what is usual now
	gapForgets   = 30  // seconds without a reading, after which nothing is usual
)

// Detector finds stalls: throughput falls while sessions that run a statement pile up. It compares each second with the median of the last
// calm minute. A load that ends, a burst that is served, a night without any: none of them is a stall, because either nothing piles up or
// as much is finished as before. The zero value is ready. It is for one goroutine.
type Detector struct {
	rates, running []float64 // of calm seconds, the newest last
	last           int64
	bad, good      int
	since          int64 // of the stall; 0: there is none
	first          int64 // of the suspicious seconds
	usual          Usual
}

// Usual is what was usual before a stall.
type Usual struct {
	Rate    float64 `json:"statements_per_second"` // that finished
	Running float64 `json:"running"`               // sessions that run a statement
}

// Stall is what the detector says of a second.
type Stall struct {
	Since int64 // the first stalled second; 0: there is no stall
	Began bool  // it is told for the first time
	Ended bool  // it is over: five seconds were as usual
	Usual Usual // before it
}

// Look looks at a second.
func (d *Detector) Look(r Reading) Stall {
	if d.last != 0 && (r.Tick-d.last > gapForgets || r.Tick <= d.last) || !r.Up {
		ended := d.since != 0
		last := cmp.Or(d.since, r.Tick)
		*d = Detector{last: r.Tick}
		if ended {
			return Stall{Since: last, Ended: true}
		}
		return Stall{}
	}
	d.last = r.Tick
	if !r.Known {
		return Stall{Since: d.since, Usual: d.usual}
	}
	if d.since == 0 {
		d.usual = Usual{median(d.rates), median(d.running)}
	}
	suspicious := len(d.rates) >= calmLeast && d.usual.Rate >= leastRate && r.Finished <= d.usual.Rate*fallen &&
		(r.Running >= d.usual.Running+max(piledAtLeast, d.usual.Running) || r.Waiting >= max(piledAtLeast, r.Running/2))
	if suspicious {
		if d.bad == 0 {
			d.first = r.Tick
		}
		d.bad, d.good = d.bad+1, 0
	} else {
		d.bad, d.good = 0, d.good+1
	}
	switch {
	case d.since == 0 && d.bad >= stallBegins:
		d.since = d.first
		return Stall{Since: d.since, Began: true, Usual: d.usual}
	case d.since == 0 && !suspicious:
		d.calm(r)
	case d.since != 0 && (d.good >= stallEnds || r.Tick-d.since >= stallUsual):
		out := Stall{Since: d.since, Ended: true, Usual: d.usual}
		d.since, d.bad, d.good = 0, 0, 0
		if r.Tick-out.Since >= stallUsual {
			d.rates, d.running = nil, nil
		}
		return out
	}
	return Stall{Since: d.since, Usual: d.usual}
}

func (d *Detector) calm(r Reading) {
	keep := func(list []float64, v float64) []float64 {
		list = append(list, v)
		return list[max(len(list)-calmSeconds, 0):]
	}
	d.rates, d.running = keep(d.rates, r.Finished), keep(d.running, r.Running)
}

func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(list))
	return s[len(s)/2]
}

// ReadingOf is what the detector looks at in a moment; before is the one of the second before, or nil. Questions are counted when a
// statement begins: what is more running now than before has not finished.
func ReadingOf(m, before *Moment) Reading {
	r := Reading{Tick: m.Tick, Up: m.Down == ""}
	r.Waiting = float64(m.InLocks())
	running, ok := m.Numbers["threads_running"]
	r.Running = max(running-1, 0)
	questions, asked := m.Numbers["questions_per_second"]
	if asked && ok && before != nil && m.Tick-before.Tick <= 3 && before.Down == "" {
		r.Finished, r.Known = max(questions-(running-before.Numbers["threads_running"]), 0), true
	}
	return r
}
