package bench

import (
	"math/rand/v2"
	"sync"
	"time"
)

// schedule says when transactions are to begin in an open loop: a Poisson process, so that the gaps are as uneven as those
// of independent users. Sessions take the moments one after the other; one that is free early waits for its moment.
type schedule struct {
	mu   sync.Mutex
	rng  *rand.Rand
	rate float64 // a second
	next time.Duration
	end  time.Duration // no moment after it; 0: no end
}

func newSchedule(rate float64, end time.Duration, seed uint64) *schedule {
	s := &schedule{rng: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)), rate: rate, end: end}
	s.step()
	return s
}

func (s *schedule) step() {
	s.next += time.Duration(s.rng.ExpFloat64() / s.rate * float64(time.Second))
}

// take gives the next moment, counted from the start; false when there is none any more.
func (s *schedule) take() (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end > 0 && s.next > s.end {
		return 0, false
	}
	due := s.next
	s.step()
	return due, true
}

// rest takes all moments before at that nobody took, and hands them to f.
func (s *schedule) rest(at time.Duration, f func(due time.Duration)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.next <= at && (s.end == 0 || s.next <= s.end) {
		f(s.next)
		s.step()
	}
}

// waiting estimates how many moments lie between the one that was just taken and now.
func (s *schedule) waiting(due, now time.Duration) int64 {
	if now <= due {
		return 0
	}
	return int64((now - due).Seconds() * s.rate)
}
