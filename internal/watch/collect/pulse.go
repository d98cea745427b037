package collect

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Pulse knows when Risso itself stood still: it had no processor, or its machine slept. What it did not see then says
// nothing of the servers. A nil Pulse never stood still.
type Pulse struct {
	// Tell is told of each time that Risso did not look, when it looks again; nil: nobody is.
	Tell func(from, to time.Time)

	mu    sync.Mutex
	last  time.Time // beat
	still []stillness
	open  stillness // not told yet; zero: there is none
	lost  time.Duration
}

// stillness is from when one beat was due to when it came.
type stillness struct{ from, to time.Time }

// The beats.
const (
	beat        = 100 * time.Millisecond
	beatLate    = 200 * time.Millisecond // a beat that is later than this is a stillness
	stillKept   = 2 * time.Minute
	stillJoined = 3 * time.Second // such pauses between two make them one
	stillTold   = 2 * time.Second // of standing still are worth a word
	lateShare   = time.Second     // of standing still, within a question: its time-out says nothing
)

// Run beats until ctx ends.
func (p *Pulse) Run(ctx context.Context) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	p.beat(time.Now())
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.beat(time.Now())
		}
	}
}

func (p *Pulse) beat(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	due := p.last.Add(beat)
	if !p.last.IsZero() && now.Sub(due) > beatLate {
		p.still = append(p.still, stillness{due, now})
		if p.open.from.IsZero() {
			p.open.from, p.lost = due, 0
		}
		p.open.to = now
		p.lost += now.Sub(due)
	}
	p.last = now
	for len(p.still) > 0 && now.Sub(p.still[0].to) > stillKept {
		p.still = p.still[1:]
	}
	if !p.open.from.IsZero() && now.Sub(p.open.to) > stillJoined {
		if p.lost >= stillTold && p.Tell != nil {
			p.Tell(p.open.from, p.open.to)
		}
		p.open = stillness{}
	}
}

// Still is for how long Risso stood still within a span of the last minutes.
func (p *Pulse) Still(from, to time.Time) (sum time.Duration) {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.still
	if due := p.last.Add(beat); !p.last.IsZero() && to.Sub(due) > beatLate { // who asks woke before the pulse did
		list = append(list[:len(list):len(list)], stillness{due, to})
	}
	for _, s := range list {
		a, b := s.from, s.to
		if a.Before(from) {
			a = from
		}
		if b.After(to) {
			b = to
		}
		sum += max(b.Sub(a), 0)
	}
	return sum
}

// NotLooking says since when Risso has not looked, in words; "" when nothing speaks for that between two moments.
func (p *Pulse) NotLooking(since, now time.Time) string {
	if p.Still(since, now) < lateShare {
		return ""
	}
	return fmt.Sprintf("Risso did not look since %s: it was late itself", since.Local().Format("15:04:05"))
}
