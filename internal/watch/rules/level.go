package rules

import (
	"math"
	"time"
)

// level is what is usual for a number on an instance: a mean that forgets slowly
// and is not misled by a peak.
type level struct {
	mean  float64
	known time.Duration // how much time it has seen
}

const (
	levelMemory = 10 * time.Minute // the mean forgets in about this time
	levelKnown  = time.Minute      // before this much it is not spoken of
	levelPeak   = 3                // one value counts at most so many times the mean
)

// see takes a value into the usual level. While something is wrong with it, it is
// taken in ten times more slowly: a new normal becomes usual in the end, and an
// hour of trouble does not.
func (r *round) see(name string, value float64, wrong bool) {
	l := r.j.levels[name]
	if l == nil {
		l = &level{mean: value}
		r.j.levels[name] = l
	}
	dt := r.dt
	l.known += dt
	memory := levelMemory
	if wrong {
		memory *= 10
	} else if l.known < levelMemory {
		memory = max(l.known, time.Second) // at first a plain mean
	}
	if l.known > levelKnown && l.mean > 0 {
		value = min(value, l.mean*levelPeak)
	}
	share := 1 - math.Exp(-dt.Seconds()/memory.Seconds())
	l.mean += (value - l.mean) * share
}

// usual tells the usual level, once it is known.
func (r *round) usual(name string) (float64, bool) {
	l := r.j.levels[name]
	if l == nil || l.known < levelKnown {
		return 0, false
	}
	return l.mean, true
}

// smooth is a mean over the last few seconds of a number that jumps.
func (r *round) smooth(name string, value float64) float64 {
	const memory = 3 * time.Second
	key := "smooth " + name
	l := r.j.levels[key]
	if l == nil || r.dt == 0 {
		r.j.levels[key] = &level{mean: value}
		return value
	}
	l.mean += (value - l.mean) * (1 - math.Exp(-r.dt.Seconds()/memory.Seconds()))
	return l.mean
}

// within counts events over a span that slides by forgetting: at a steady rate it
// is the rate times the span.
func (r *round) within(name string, rate float64, span time.Duration) float64 {
	n := r.j.counts[name]*math.Exp(-r.dt.Seconds()/span.Seconds()) + rate*r.dt.Seconds()
	r.j.counts[name] = n
	return n
}

// percent is a share as the value of a finding: thresholds are written in percent.
func percent(share float64) float64 { return 100 * share }

// wrong reports whether there is a finding, active or pending.
func (r *round) wrong(id string) bool {
	for key := range r.j.entries {
		if len(key) > len(id) && key[:len(id)] == id && key[len(id)] == 0 {
			return true
		}
	}
	return false
}
