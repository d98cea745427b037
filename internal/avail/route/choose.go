package route

import (
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
)

// Role is which servers of a group clients of a door go to.
type Role string

// The roles.
const (
	Primary Role = "primary"
	Replica Role = "replica"
)

// Fallback is what becomes of clients that want a replica while none may have them.
type Fallback string

// The fallbacks.
const (
	ToPrimary Fallback = "primary"
	Hold      Fallback = "hold"
	Refuse    Fallback = "refuse"
)

// Rules say which servers the clients of a door may have.
type Rules struct {
	Role     Role
	MaxLag   time.Duration // of a replica; 0: any
	Fallback Fallback
}

// Check refuses what means nothing.
func (d Door) Check() error {
	r := d.Rules
	switch {
	case d.Header != NoHeader && d.Header != V1 && d.Header != V2:
		return fault.Usagef("proxy-protocol %q: off, v1 or v2", d.Header)
	case r.Role != Primary && r.Role != Replica:
		return fault.Usagef("role %q: primary or replica", r.Role)
	case r.Role == Primary && r.MaxLag != 0:
		return fault.Usagef("max-lag is for the role replica: a primary has no lag")
	case r.Fallback != ToPrimary && r.Fallback != Hold && r.Fallback != Refuse:
		return fault.Usagef("fallback %q: primary, hold or refuse", r.Fallback)
	}
	return nil
}

// Load is what the router knows of a server itself.
type Load struct {
	Open int  // connections to it, those that are being made included
	Down bool // it did not answer when it was last connected to
}

// Choice is where a new client goes. Without a server it is held, or refused.
type Choice struct {
	Server *group.Server
	Refuse bool
	Words  string // there is no server
}

// choose says where a new client goes. age is how old the lags of the view are: what was 2 s late 3 s ago is up to 5 s late now.
func (r Rules) choose(v *group.View, age time.Duration, load func(address string) Load) Choice {
	if v == nil {
		return Choice{Words: "no controller has told where the primary is"}
	}
	if r.Role == Primary {
		return primaryOf(v, load)
	}
	var best *group.Server
	var least float64
	why := "group " + v.Group + " has no replica for reads"
	for i := range v.Replicas {
		s := &v.Replicas[i]
		l := load(s.Address)
		share := r.share(s, age)
		switch {
		case s.Weight > 0 && share == 0:
			why = s.Name + ", as others may be, is too late for max-lag " + digits.Duration(r.MaxLag)
			if s.Lag == nil {
				why = "it is not known how late " + s.Name + " is, and max-lag is given"
			}
			continue
		case share == 0:
			continue
		case l.Down:
			why = s.Name + " does not answer"
			continue
		}
		if cost := float64(l.Open+1) / share; best == nil || cost < least {
			best, least = s, cost
		}
	}
	if best != nil {
		return Choice{Server: best}
	}
	switch r.Fallback {
	case ToPrimary:
		c := primaryOf(v, load)
		if c.Server == nil {
			c.Words = why + ", and " + c.Words
		}
		return c
	case Refuse:
		return Choice{Refuse: true, Words: why}
	}
	return Choice{Words: why}
}

func primaryOf(v *group.View, load func(address string) Load) Choice {
	switch {
	case v.Primary == nil && v.NoPrimary != "":
		return Choice{Words: fmt.Sprintf("group %s has no primary: %s", v.Group, v.NoPrimary)}
	case v.Primary == nil:
		return Choice{Words: fmt.Sprintf("group %s has no primary", v.Group)}
	case load(v.Primary.Address).Down:
		return Choice{Words: fmt.Sprintf("the primary %s does not answer", v.Primary.Name)}
	}
	return Choice{Server: v.Primary}
}

// unknownShare is how much of its weight a replica counts whose lag nobody knows: it gets clients where there is hardly another.
const unknownShare = 1. / 1000

// share is how much a replica counts: its weight, less the more it is late. 0: it gets no client.
func (r Rules) share(s *group.Server, age time.Duration) float64 {
	switch {
	case s.Lag == nil && r.MaxLag > 0, s.Weight <= 0:
		return 0
	case s.Lag == nil:
		return s.Weight * unknownShare
	case r.MaxLag > 0 && *s.Lag+age > r.MaxLag:
		return 0
	}
	return s.Weight / (1 + s.Lag.Seconds())
}

// keeps says whether clients that a server has may stay there. A weight of 0 keeps those that are there; what is beyond max-lag, faulty or deposed does not.
func (r Rules) keeps(v *group.View, address string) bool {
	if v == nil {
		return false
	}
	primary := v.Primary != nil && v.Primary.Address == address
	if r.Role == Primary {
		return primary
	}
	for i := range v.Replicas {
		s := &v.Replicas[i]
		if s.Address == address {
			return r.MaxLag == 0 || s.Lag != nil && *s.Lag <= r.MaxLag
		}
	}
	return primary && r.Fallback == ToPrimary
}
