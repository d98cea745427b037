// Package stall finds out when a server stalls: throughput falls while sessions that run a statement pile up. It does no input or output,
// and needs no threshold from the user. DESIGN.md says why it is as it is.
package stall

import (
	"cmp"
	"math"
	"slices"
)

// Reading is what a Detector looks at each second.
type Reading struct {
	Tick    int64 // unix seconds
	Up      bool
	Begun   float64 // statements that began per second
	Known   bool    // Begun and Running are known: Begun is not in the first second, nor after a reset
	Running float64 // sessions that run a statement, without Risso's
	Waiting float64 // sessions that wait for a lock
}

// The measures of a stall.
const (
	calmSeconds  = 60   // that make what is usual
	calmLeast    = 15   // fewer say nothing
	leastRate    = 5    // statements a second: below, a pause is no stall
	fallen       = 0.5  // of the usual rate, or less
	piledAtLeast = 3    // sessions more than usual that run a statement, and at least twice as many; or that wait for locks, and half of all
	stallBegins  = 2    // seconds in a row, or more where few statements are usual: see chance
	chance       = 4    // standard deviations that a Poisson process with the usual rate would be away from what was seen
	stallEnds    = 5    // seconds in a row without a stall
	stallUsual   = 3600 // seconds after which the state counts as what is usual now
	gapForgets   = 30   // seconds without a reading, after which nothing is usual
	gapUnknown   = 3    // seconds without a reading, after which nobody knows what has finished
)

// Detector finds stalls. It compares each second with the median of the last calm minute. A load that ends, a burst that is served, a night
// without any: none of them is a stall, because either nothing piles up or as much is finished as before. The zero value is ready. It is for
// one goroutine.
type Detector struct {
	rates, running []float64 // of calm seconds, the newest last
	last           int64
	ran            float64 // sessions that ran a statement at the reading before
	ranKnown       bool
	bad, good      int
	expected, seen float64 // statements of the suspicious seconds: that usually finish, and that did
	since          int64   // of the stall; 0: there is none
	first          int64   // of the suspicious seconds
	usual          Usual
}

// Usual is what was usual before a stall.
type Usual struct {
	Rate    float64 `json:"statements_per_second"` // that finished
	Running float64 `json:"running"`               // sessions that run a statement
}

// Stall is what a Detector says of a second.
type Stall struct {
	Since    int64   // the first stalled second; 0: there is no stall
	Began    bool    // it is told for the first time
	Ended    bool    // it is over: five seconds were as usual
	Usual    Usual   // before it
	Holds    bool    // this second is a stalled one, of a stall that was told
	Finished float64 // statements that finished in this second
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
	finished, known := d.finished(r)
	d.last = r.Tick
	if !known {
		return Stall{Since: d.since, Usual: d.usual}
	}
	if d.since == 0 {
		d.usual = Usual{median(d.rates), median(d.running)}
	}
	d.suspect(r, finished)
	out := Stall{Since: d.since, Holds: d.since != 0 && d.bad > 0, Usual: d.usual, Finished: finished}
	switch {
	case d.since == 0 && d.bad >= stallBegins && d.expected-d.seen >= chance*math.Sqrt(d.expected):
		d.since = d.first
		out.Since, out.Began, out.Holds = d.since, true, true
	case d.since == 0 && d.bad == 0:
		d.calm(finished, r.Running)
	case d.since != 0 && (d.good >= stallEnds || r.Tick-d.since >= stallUsual):
		out.Ended = true
		if r.Tick-d.since >= stallUsual {
			d.rates, d.running = nil, nil
		}
		d.since, d.bad, d.good = 0, 0, 0
	}
	return out
}

// Finished is how many statements finished per second, where so many began. Servers count them when they begin: what is more running now
// than before has not finished.
func Finished(begun, running, before float64) float64 { return max(begun-(running-before), 0) }

func (d *Detector) finished(r Reading) (float64, bool) {
	before, known := d.ran, r.Known && d.ranKnown && r.Tick-d.last <= gapUnknown
	d.ran, d.ranKnown = r.Running, r.Known
	return Finished(r.Begun, r.Running, before), known
}

// suspect counts the seconds in a row that look like a stall, or do not.
func (d *Detector) suspect(r Reading, finished float64) {
	if len(d.rates) < calmLeast || d.usual.Rate < leastRate || finished > d.usual.Rate*fallen ||
		r.Running < d.usual.Running+max(piledAtLeast, d.usual.Running) && r.Waiting < max(piledAtLeast, r.Running/2) {
		d.bad, d.good = 0, d.good+1
		return
	}
	if d.bad == 0 {
		d.first, d.expected, d.seen = r.Tick, 0, 0
	}
	d.bad, d.good = d.bad+1, 0
	d.expected, d.seen = d.expected+d.usual.Rate, d.seen+finished
}

func (d *Detector) calm(finished, running float64) {
	keep := func(list []float64, v float64) []float64 {
		list = append(list, v)
		return list[max(len(list)-calmSeconds, 0):]
	}
	d.rates, d.running = keep(d.rates, finished), keep(d.running, running)
}

func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(list))
	return s[len(s)/2]
}
