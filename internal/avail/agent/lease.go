// Package agent stands beside a database server and fences it when nobody confirms any more that it is the primary. What it decides is a pure function of what it heard, and of
// a clock that nobody sets; what it does goes through internal/avail/fence. It is a witness as well: it says what it sees of the server from beside it.
// See DESIGN.md for what its lease is worth, and for what a controller has to wait.
package agent

import (
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/avail/fence"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/digits"
)

// When an agent fences its server.
const (
	FenceLost    = "lost"    // nobody confirmed for the TTL that it is the primary; or another is
	FenceDeposed = "deposed" // another is the primary
	FenceNever   = "never"   // it is a witness only, and fences when it is ordered to
)

// Fences lists them.
func Fences() []string { return []string{FenceLost, FenceDeposed, FenceNever} }

// The times that agents and controllers agree on.
const (
	DefaultTTL   = 3 * time.Second        // how long a confirmation holds, from when it was asked for
	DefaultEvery = 250 * time.Millisecond // how often it is asked for
	fenceLimit   = 2 * time.Second        // how long one attempt to fence may take
	tick         = 25 * time.Millisecond  // how late the end of a lease may be noticed
	allKnow      = time.Second            // how long controllers may take to read what was agreed on; those that hear from no leader confirm nothing anyway
	driftPart    = 100                    // clocks that count seconds differ by less than a hundredth: NTP slews by 0.05 %, a bad quartz is off by 0.02 %
)

// Wait is how long a controller that confirms a primary no more has to wait, from the moment at which that was agreed on, until an agent that nobody can reach has fenced it: as long
// as others may go on to confirm it, and as long as that agent takes then.
func Wait(ttl time.Duration) time.Duration { return allKnow + within(ttl) }

// within is how long an agent takes to fence a server, from the last moment at which any controller may have confirmed it. Both count seconds, and compare no clocks: the agent's lease begins when it sent the request, so before a controller answered it, and ends a TTL later. The two may count
// differently by a hundredth; the agent notices the end a tick late, and takes its time to fence. A controller that just became the leader counts from then: its predecessor may have
// confirmed until the moment at which it could not lead any more.
// It presumes that the agent runs. One that is frozen with its server does not fence: see DESIGN.md.
func within(ttl time.Duration) time.Duration { return ttl + ttl/driftPart + tick + fenceLimit }

// Moment is a point in time by a clock that nobody sets and that goes on while the machine sleeps.
type Moment time.Duration

// Claims is whether a server takes writes as a primary does: it is not read-only, and replicates from none.
type Claims string

// What is known of that.
const (
	ClaimsUnknown Claims = "unknown" // it does not answer
	ClaimsYes     Claims = "yes"
	ClaimsNo      Claims = "no"
)

// Lease is what an agent has heard of its server, and whether it has fenced it. It belongs to one goroutine.
type Lease struct {
	ttl    time.Duration
	policy string

	heard     bool
	epoch     uint64 // the highest that was heard of
	sent      Moment // when the newest request was sent that was answered
	primary   string // who is it in that epoch; "": nobody
	mine      bool   // it is this server
	confirmed bool   // that was heard in this epoch
	renewed   Moment // when it was surely so: when a request was sent that confirmed it, less the age of what was answered
	was       bool   // this server was confirmed once
	absent    Moment // when a controller was asked that has no such group; 0: none answered so
	suspect   Moment // since when the server takes writes though nobody confirms it; 0: it does not
	ordered   bool   // a controller said by an order that it is not
	fenced    *fence.State
}

// NewLease begins without having heard anything.
func NewLease(policy string, ttl time.Duration) *Lease {
	return &Lease{ttl: ttl, policy: policy}
}

// Hear takes a controller's answer to a request that was sent at a moment, and how old it was when it was given. An older epoch, or an answer that was overtaken by a newer one, says nothing.
func (l *Lease) Hear(sent Moment, age time.Duration, v group.View, me func(group.Server) bool) {
	if l.heard && (v.Epoch < l.epoch || v.Epoch == l.epoch && sent < l.sent) {
		return
	}
	if v.Epoch > l.epoch {
		l.confirmed, l.renewed = false, 0
	}
	l.heard, l.epoch, l.sent, l.primary, l.mine, l.ordered = true, v.Epoch, sent, "", false, l.ordered && v.Epoch == l.epoch
	if v.Primary == nil {
		return
	}
	l.primary, l.mine = v.Primary.Name, me(*v.Primary)
	if l.mine {
		l.renewed = max(l.renewed, sent-Moment(max(0, age)))
		l.confirmed, l.was = true, true
	}
}

// Order takes the word of a controller that the server is not the primary as of an epoch. It is refused if the server is confirmed in a newer one, or the same.
func (l *Lease) Order(epoch uint64, now Moment) error {
	if epoch < l.epoch || epoch == l.epoch && l.Valid(now) {
		return fmt.Errorf("an order of epoch %d: it is epoch %d", epoch, l.epoch)
	}
	l.heard, l.epoch, l.primary, l.mine, l.confirmed, l.was, l.ordered = true, epoch, "another server", false, false, true, true
	return nil
}

// Valid reports whether it is confirmed now that the server is the primary.
func (l *Lease) Valid(now Moment) bool {
	return l.confirmed && l.mine && now-l.renewed < Moment(l.ttl)
}

// Deposed reports whether another server is the primary.
func (l *Lease) Deposed() bool { return l.heard && l.primary != "" && !l.mine }

// Act is what an agent does to its server.
type Act string

// The acts.
const (
	Stay  Act = "stay"
	Close Act = "close" // fence it
	Open  Act = "open"  // undo that
)

// Decision is what is to be done now.
type Decision struct {
	Act     Act
	Because string
	Epoch   uint64
	Unheard bool // as fence.Options have it
	Ordered bool // by a controller, which wants to know how it is now
}

// Decide says what is to be done. restarted is whether the server was started anew since it was fenced.
//
// A server that takes writes without a confirmation may be one that is being promoted: it is opened first, and told to be the primary then. So it has the TTL to be confirmed, unless it
// was the primary before, or was just started.
func (l *Lease) Decide(now Moment, c Claims, restarted bool) Decision {
	valid := l.Valid(now)
	switch {
	case c == ClaimsYes && !valid && l.suspect == 0:
		l.suspect = now
	case c == ClaimsNo || valid:
		l.suspect = 0
	}
	if c == ClaimsNo && !valid {
		l.was = false
	}
	suspected := c == ClaimsYes && l.suspect != 0 && now-l.suspect >= Moment(l.ttl)
	if l.fenced != nil {
		switch {
		case valid && l.fenced.Opens(l.epoch):
			return Decision{Act: Open, Epoch: l.epoch, Because: fmt.Sprintf("it is confirmed as the primary of epoch %d", l.epoch)}
		case c == ClaimsYes && (restarted || suspected):
			return Decision{Act: Close, Epoch: l.fenced.Epoch, Unheard: l.fenced.Unheard, Because: "it was fenced, and takes writes again: it was started anew, or somebody opened it"}
		}
		return Decision{Act: Stay}
	}
	if valid || c == ClaimsNo || l.policy == FenceNever && !l.ordered {
		return Decision{Act: Stay}
	}
	if l.Deposed() && (l.was || suspected) {
		return Decision{Act: Close, Epoch: l.epoch, Because: fmt.Sprintf("%s is the primary of epoch %d", l.primary, l.epoch)}
	}
	if l.policy != FenceLost {
		return Decision{Act: Stay}
	}
	switch {
	case l.was && now >= l.Ends():
		return Decision{Act: Close, Epoch: l.epoch, Unheard: true, Because: fmt.Sprintf("nobody confirmed for %s that it is the primary", digits.Span(l.ttl))}
	case !l.was && suspected && !l.unknown(now):
		return Decision{Act: Close, Epoch: l.epoch, Unheard: true, Because: fmt.Sprintf("it takes writes, and nobody confirmed for %s that it is the primary", digits.Span(l.ttl))}
	}
	return Decision{Act: Stay}
}

// Absent notes that a controller that was asked at a moment has no such group.
func (l *Lease) Absent(sent Moment) { l.absent = max(l.absent, sent) }

// unknown reports whether controllers answer that there is no such group, and none that there is: then nobody promotes another server, and a primary that was never confirmed is left alone.
func (l *Lease) unknown(now Moment) bool {
	return !l.heard && l.absent != 0 && now-l.absent < Moment(l.ttl)
}

// Ends is when what was confirmed holds no longer.
func (l *Lease) Ends() Moment { return l.renewed + Moment(l.ttl) }

// Fenced notes that the server was fenced, by this agent or one before it. What was there before is what the first one found.
func (l *Lease) Fenced(s fence.State) fence.State {
	if l.fenced != nil {
		first := *l.fenced
		if first.Epoch, first.Unheard = s.Epoch, s.Unheard; s.Epoch < l.fenced.Epoch {
			first.Epoch, first.Unheard = l.fenced.Epoch, l.fenced.Unheard
		}
		s = first
	}
	l.fenced = &s
	return s
}

// Raise notes in what is kept of a fenced server that another is the primary of a newer epoch, and reports whether it did: an agent that is started later must know.
func (l *Lease) Raise() (fence.State, bool) {
	if l.fenced == nil || !l.Deposed() || l.epoch < l.fenced.Epoch || l.epoch == l.fenced.Epoch && !l.fenced.Unheard {
		return fence.State{}, false
	}
	l.fenced.Epoch, l.fenced.Unheard = l.epoch, false
	return *l.fenced, true
}

// Closed notes that somebody else has closed the server: as a primary that was demoted it is none any more.
func (l *Lease) Closed() { l.was, l.suspect = false, 0 }

// Opened notes that the server was opened.
func (l *Lease) Opened() { l.fenced = nil }
