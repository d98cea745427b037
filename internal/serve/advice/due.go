package advice

import (
	"hash/fnv"
	"time"
)

// When servers are looked at.
const (
	afterStart = 2 * time.Minute  // until the first look after a start, if one is due
	spread     = 90 * time.Minute // over which the looks of a quiet hour are spread
	spreadSoon = 3 * time.Minute  // and those after a start
	again      = time.Hour        // after a look that failed
	daily      = 20 * time.Hour   // from which on looks are at the quiet hour
)

// jitter is a part of a span that belongs to an instance.
func jitter(instance string, span time.Duration) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(instance)) // never fails
	return time.Duration(float64(span) * float64(h.Sum32()) / (1 << 32))
}

// due is when an instance is to be looked at next: every so long, at a time of day if that is a day or more. What was due while Risso did
// not run is looked at soon after its start.
func due(instance string, looked, tried, started time.Time, every, at time.Duration) time.Time {
	soon := started.Add(afterStart + jitter(instance, spreadSoon))
	next := looked.Add(every)
	if !looked.IsZero() && every >= daily { // at the last such hour before it, unless that is soon after the last look
		hour := time.Date(next.Year(), next.Month(), next.Day(), 0, 0, 0, 0, started.Location()).Add(at + jitter(instance, spread))
		if hour.After(next) {
			hour = hour.AddDate(0, 0, -1)
		}
		if hour.Sub(looked) < every/3 {
			hour = hour.AddDate(0, 0, 1)
		}
		next = hour
	}
	if next.Before(soon) && !looked.After(started) {
		next = soon
	}
	if tried.After(looked) && next.Before(tried.Add(again)) {
		next = tried.Add(again)
	}
	return next
}
