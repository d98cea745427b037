package drive

import "time"

// Wait sets how long a session waits for an answer, where its target's time-out is too short: an index of a large table
// takes minutes. A stop ends the wait all the same.
func Wait(s Session, d time.Duration) {
	if p, ok := s.(interface{ setPatience(time.Duration) }); ok {
		p.setPatience(d)
	}
}

func (s *socket) setPatience(d time.Duration) { s.patience = d }
