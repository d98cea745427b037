package failover

import (
	"time"

	"github.com/rissodb/risso/internal/avail/group"
)

// place is how far a replica was behind at most, at a moment.
type place struct {
	at  time.Time
	lag time.Duration
}

// A replica does not say how far it is behind while it does not receive, as when the primary is dead, and applies nothing for a moment while it is pointed at another one.
// What it had applied it still has: it is behind by what it said last, and the time since, at most. That is told for so long.
const (
	remembered = time.Minute     // while it does not receive
	pausing    = 3 * time.Second // while it does not apply
)

// silences is how many looks more than a heartbeat's period a replica may hear nothing before that counts as lag.
const silences = 2

// placed notes how far a replica is behind, as it says itself. While it hears nothing from its source, not even the heartbeats that are due, it says 0 all the same
// (of a source that hangs, or is cut off): then it is behind by that time, too.
func (w *watcher) placed(s seen) {
	i := w.g.Find(s.name)
	switch {
	case i < 0 || w.g.Members[i].Status != group.Secondary || s.kind == "refused" || s.kind == "" && len(s.channels) != 1:
		delete(w.places, s.name) // it may come back with older data
		return
	case s.kind != "" || !s.channels[0].SQLRunning || s.channels[0].Behind < 0:
		return
	}
	ch := s.channels[0]
	p := place{at: s.at, lag: time.Duration(ch.Behind) * time.Second}
	heard := w.heard[s.name].at
	if heard.IsZero() {
		heard = w.heard[s.name].since
	}
	beat := time.Duration(ch.BeatEvery * float64(time.Second))
	if silent := s.ended.Sub(heard); beat > 0 && !heard.IsZero() && silent > beat+silences*everyMember {
		p.lag += silent
	}
	w.places[s.name] = p
}

// reads reports whether a replica, as it was last seen, answers reads, and how far it is behind at most; nil: that is not known.
func (w *watcher) reads(last seen) (lag *time.Duration, ok bool) {
	if last.kind != "" || len(last.channels) != 1 {
		return nil, false
	}
	p, known := w.places[last.name]
	since := last.at.Sub(p.at)
	if !last.channels[0].SQLRunning && (!known || since > pausing) {
		return nil, false
	}
	if !known || since > remembered {
		return nil, true
	}
	most := p.lag + since
	return &most, true
}
