package collect

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Pulse knows when Risso itself stalled: it had no processor, or its machine slept. What it did not see then says
// nothing about the servers. A nil Pulse never stalled.
type Pulse struct {
	// Tell is called for each time that Risso did not look, by the calendar, when it looks again; may be nil.
	Tell func(from, to time.Time)
	// Slept is how long the machine has slept since it was started. Go's clock stops meanwhile. nil: the system is asked.
	Slept func() time.Duration

	mu    sync.Mutex
	last  time.Time     // beat
	slept time.Duration // up to the last beat
	still []stillness
	open  stillness // not reported yet; zero: there is none
	lost  time.Duration
}

// stillness is from when one beat was due to when it came; slept is what that does not count.
type stillness struct {
	from, to time.Time
	slept    time.Duration
}

// The beats.
const (
	beat        = 500 * time.Millisecond
	beatLate    = 500 * time.Millisecond // a beat that is later than this is a stillness
	stillKept   = 2 * time.Minute
	stillJoined = 3 * time.Second // such pauses between two make them one
	stillTold   = 2 * time.Second // of standing still are worth a word
	lateShare   = time.Second     // of standing still, within a question: its time-out says nothing
)

// Run beats until ctx ends, at full and half seconds: collectors are awake then, and a processor that wakes up once for both
// costs half of one that wakes up twice.
func (p *Pulse) Run(ctx context.Context) {
	now := time.Now()
	p.beat(now)
	tick := time.NewTicker(max(now.Truncate(beat).Add(beat).Sub(now), time.Nanosecond))
	defer tick.Stop()
	for first := true; ; first = false {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.beat(time.Now())
		}
		if first {
			tick.Reset(beat)
		}
	}
}

// asleep is how long the machine has slept in all.
func (p *Pulse) asleep() time.Duration {
	if p.Slept != nil {
		return p.Slept()
	}
	return machineSlept()
}

// pause is the time between the last beat and now, less a beat; ok is false if that is nothing unusual. The caller holds mu.
func (p *Pulse) pause(now time.Time, slept time.Duration) (s stillness, ok bool) {
	if p.last.IsZero() {
		return s, false
	}
	s = stillness{p.last.Add(beat), now, max(slept-p.slept, 0)}
	if s.from.After(now) { // it slept between two beats
		s.from = p.last
	}
	return s, s.length() > beatLate
}

func (s stillness) length() time.Duration { return max(s.to.Sub(s.from), 0) + s.slept }

func (p *Pulse) beat(now time.Time) {
	slept := p.asleep()
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, ok := p.pause(now, slept); ok {
		p.still = append(p.still, s)
		if p.open.from.IsZero() {
			p.open.from, p.lost = s.from, 0
		}
		p.open.to = now
		p.lost += s.length()
	}
	p.last, p.slept = now, slept
	for len(p.still) > 0 && now.Sub(p.still[0].to) > stillKept {
		p.still = p.still[1:]
	}
	if !p.open.from.IsZero() && now.Sub(p.open.to) > stillJoined {
		if p.lost >= stillTold && p.Tell != nil {
			p.Tell(p.open.from.Round(0), p.open.to.Round(0))
		}
		p.open = stillness{}
	}
}

// Still is for how long Risso stalled within a span of the last minutes.
func (p *Pulse) Still(from, to time.Time) (sum time.Duration) {
	if p == nil {
		return 0
	}
	slept := p.asleep()
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.still
	if s, ok := p.pause(to, slept); ok { // the caller woke before the pulse did
		list = append(list[:len(list):len(list)], s)
	}
	for _, s := range list {
		a, b := s.from, s.to
		if a.Before(from) {
			a = from
		}
		if b.After(to) {
			b = to
		}
		if !b.Before(a) {
			sum += b.Sub(a) + s.slept
		}
	}
	return sum
}

// NotLooking says since when Risso has not looked, in words; "" when nothing speaks for that between two moments.
func (p *Pulse) NotLooking(since, now time.Time) string {
	if p.Still(since, now) < lateShare {
		return ""
	}
	return fmt.Sprintf("Risso has taken no readings since %s: it was late itself", since.Local().Format("15:04:05"))
}
