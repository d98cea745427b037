package failover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/fleet"
)

// How often a group whose primary lives is looked after: one of which something may have to be done, and one of which all that its probers see is as it should be. To look after a group
// takes new connections to all members: of many groups that is most of what they cost.
const (
	tendEvery = 2 * time.Second
	tendWell  = 5 * time.Second
	tendMost  = 30 * time.Second      // where there are very many
	tendApart = 50 * time.Millisecond // from one to the next, on average
)

// tendPace is how often a group, of so many, is looked after, as its members were seen last. It is pure.
func tendPace(g *group.Group, primary string, b failover.Belief, last map[string]seen, groups int) time.Duration {
	if b.State != failover.Alive {
		return tendEvery
	}
	for _, m := range g.Members {
		s, ok := last[m.Name]
		switch {
		case !ok || s.kind != "", m.Status == group.Faulty, s.open != (m.Name == primary):
			return tendEvery
		case m.Name == primary && len(s.channels) > 0, m.Name != primary && (len(s.channels) != 1 || !s.channels[0].IORunning || !s.channels[0].SQLRunning):
			return tendEvery
		}
	}
	return min(max(tendWell, time.Duration(groups)*tendApart), tendMost)
}

// urgent reports whether nobody takes writes, or two do, as the members were seen last. It is pure.
func urgent(g *group.Group, primary string, last map[string]seen) bool {
	for _, m := range g.Members {
		if s, is := last[m.Name]; is && s.kind == "" && s.open != (m.Name == primary) {
			return true
		}
	}
	return false
}

// watchEvery is how often a controller that does not lead asks the members of a group what it has to know if it leads when the primary dies.
const watchEvery = 10 * time.Second

// standing is what the watcher remembers of what it did.
type standing struct {
	tried    time.Time       // when a failover was tried last
	stood    string          // as what the members said then
	after    time.Duration   // how long after that it is tried again if they say the same, as it ended
	refilled time.Time       // when a rebuild was tried last
	seen     *carry.Forecast // what would happen if the primary died; nil: nobody looked yet
	drains   draining        // how long that would wait for the one that follows
	sole     bool            // this process is the only controller
	refused  error           // why the last failover was; nil: it was not
	awaits   string          // why a failover waits for members that do not answer; "": it does not
	left     error           // why a dead primary is not failed over by itself now: the pause, or an error of the last try that is no refusal; nil: neither
}

// How long a failover that did not succeed is not tried again; and one that was refused, while the members say what they said then: each try stops what the replicas receive.
const (
	retryAfter   = 2 * time.Second
	refusedAfter = 30 * time.Second
)

// again reports whether a failover is tried, as the members stand.
func (s *standing) again(now time.Time, stand string) bool {
	since := now.Sub(s.tried)
	return since >= retryAfter && (s.stood != stand || since >= s.after)
}

// ended takes how a failover ended. One that was refused is not tried again soon; one that was cut off is, and one that was refused while members did not answer that answer here, but less
// often each time.
func (s *standing) ended(err error, last map[string]seen) {
	var unheard *carry.Unheard
	switch {
	case !errors.Is(err, carry.ErrRefused), errors.Is(err, context.Canceled):
		s.after = 0
	case errors.As(err, &unheard) && slices.ContainsFunc(unheard.Members, func(name string) bool {
		m, is := last[name]
		return is && m.kind == "" && m.ended.Sub(m.at) < patience
	}):
		s.after = min(max(retryAfter, 2*s.after), refusedAfter)
	default:
		s.after = refusedAfter
	}
}

// stands is what a failover goes by of what the members say, and of what was set. It is pure.
func stands(g *group.Group, last map[string]seen) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%+v", g.Policy)
	for _, m := range g.Members {
		s := last[m.Name]
		fmt.Fprintf(&b, "; %s %s %s %g %s %t %s", m.Name, m.Status, m.Rule, m.Weight, s.kind, s.open, s.executed)
		for _, ch := range s.channels {
			fmt.Fprint(&b, " ", ch.Status.Source, ch.Received, ch.SQLRunning)
		}
	}
	return b.String()
}

// supplanted is the member that takes writes instead of a primary which takes none, where all others that answer replicate from it: somebody made it the primary without Risso, or what Risso
// knows is older than that. "": there is none. Only looks count since the primary is it: whom a controller replaced is told at once. It is pure.
func supplanted(g *group.Group, primary string, named time.Time, last map[string]seen) string {
	now := func(name string) (seen, bool) {
		s, ok := last[name]
		return s, ok && s.kind == "" && s.at.After(named)
	}
	if p, ok := now(primary); !ok || p.open || len(p.channels) > 0 {
		return ""
	}
	for _, m := range g.Members {
		s, ok := now(m.Name)
		if !ok || m.Name == primary || m.Status == group.Faulty || !s.open || len(s.channels) > 0 {
			continue
		}
		if !slices.ContainsFunc(g.Members, func(o group.Member) bool {
			other, answers := now(o.Name)
			return answers && o.Name != primary && o.Name != m.Name && o.Status != group.Faulty && !comesFrom(other, m.Address, s.uuid)
		}) {
			return m.Name
		}
	}
	return ""
}

// comesFrom reports whether a member replicates from a server, and from it alone.
func comesFrom(s seen, address, uuid string) bool {
	if len(s.channels) != 1 {
		return false
	}
	ch := s.channels[0].Status
	return strings.EqualFold(ch.Source, address) || uuid != "" && strings.EqualFold(ch.SourceID, uuid)
}

// goOn brings a change that was cut off to its end, or takes it back; false: there was none.
func (w *watcher) goOn(ctx context.Context, c *carry.Carrier, name string) (result, bool) {
	r := result{what: "bring a change of " + name + " that was cut off to its end"}
	j, err := c.Room.Unfinished(ctx, name)
	if err == nil && j != nil {
		var done *failover.Journal
		if done, err = c.Resume(ctx, carry.Asked{Group: name, By: "risso serve", Automatic: true}); err == nil && done != nil && done.Stage == failover.Undone {
			text := fmt.Sprintf("a %s of %s that was cut off is taken back: %s is the primary as before", done.Kind, name, done.Old)
			r.tell = func() { w.event(fleet.SeverityWarning, text) }
		}
	}
	r.err = err
	return r, j != nil || err != nil
}

// care is how much this process does for the group: to open a primary that came up read-only is no failover.
func (w *watcher) care() carry.Care {
	switch {
	case !w.d.Auto:
		return carry.Looks
	case !w.g.Policy.Automatic:
		return carry.Opens
	}
	return carry.Tends
}

// tend looks after a group: members that came back replicate again, the primary takes writes.
func (w *watcher) tend(ctx context.Context, c *carry.Carrier, name string, care carry.Care) result {
	r := result{what: "look after " + name}
	did, seen, err := c.Tend(ctx, name, care)
	r.err = err
	r.tell = func() {
		for _, text := range did {
			w.event(0, text)
		}
		if seen == nil || seen.Old != w.primary {
			return
		}
		if seen.Alive && seen.Known.Executed != "" {
			w.known = seen.Known.After(w.known)
		}
		w.state.seen = seen
		w.state.drains.see(seen)
		w.state.sole = w.d.Lead.Sole()
		w.find()
	}
	return r
}
