package bench

import (
	"math/rand/v2"
	"sync"
	"time"
)

// schedule says when transactions are to begin in an open loop: a Poisson process, so that the gaps are as uneven as those
// of independent users. Sessions take the moments one after the other; one that is free early waits for its moment. All
// moments count from the run's epoch.
type schedule struct {
	mu   sync.Mutex
	rng  *rand.Rand
	rate float64 // a second
	next time.Duration
	end  time.Duration // no moment at or after it
}

// newSchedule begins at that moment and has no end yet.
func newSchedule(rate float64, begin time.Duration, seed uint64) *schedule {
	s := &schedule{rng: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)), rate: rate, next: begin, end: unknown}
	s.step()
	return s
}

func (s *schedule) step() {
	s.next += time.Duration(s.rng.ExpFloat64() / s.rate * float64(time.Second))
}

// until sets the end.
func (s *schedule) until(end time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end = end
}

// take returns the next moment; false if there is none left.
func (s *schedule) take() (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next >= s.end {
		return 0, false
	}
	due := s.next
	s.step()
	return due, true
}

// restDrawn is how many of the moments that no session took are drawn one by one; of more, only every nth is, and represents
// the others, which are evenly between.
const restDrawn = 1_000_000

// rest takes all moments before at that no session took, and hands them to f with how many each represents.
func (s *schedule) rest(at time.Duration, f func(due time.Duration, n int64)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := min(at, s.end)
	if left := (end - s.next).Seconds() * s.rate; left > restDrawn {
		n := int64(left/restDrawn) + 1
		for ; s.next < end; s.next += time.Duration(float64(n) / s.rate * float64(time.Second)) {
			f(s.next, min(n, int64(float64(end-s.next)/float64(time.Second)*s.rate)+1))
		}
		return
	}
	for s.next < end {
		f(s.next, 1)
		s.step()
	}
}

// waiting estimates how many moments lie between the one that was just taken and now: those are not drawn yet, and the
// rate says how many there will be.
func (s *schedule) waiting(due, now time.Duration) int64 {
	return int64(max(now-due, 0).Seconds() * s.rate)
}
