package agree

import (
	"errors"
	"sync"
	"time"
)

// errHangs says that something that Raft waits for takes too long.
var errHangs = errors.New("it takes too long")

// stride is how work goes that Raft waits for: writes to its log, or changes of the state file.
type stride struct {
	mu     sync.Mutex
	count  int       // so much of it is under way
	since  time.Time // since when
	failed error     // why what ended last failed
}

// begin notes that work begins; what it returns, that it ended.
func (s *stride) begin() (end func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count++; s.count == 1 {
		s.since = time.Now()
	}
	return func(err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.count--
		s.since, s.failed = time.Now(), err // of what else is under way, it counts from here
	}
}

// wrong is why it does not go on: the last work failed, or some is under way for longer than most; nil: it does.
func (s *stride) wrong(most time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count > 0 && time.Since(s.since) > most {
		return errHangs
	}
	return s.failed
}

// mended forgets that work failed: what it was about is there by another way.
func (s *stride) mended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = nil
}
