package failover

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
)

// Testimony is what somebody who is no replica says of a primary that does not answer here: another controller, or the agent that stands beside it.
type Testimony struct {
	Who    string    // "controller b", "the agent of db1"
	Beside bool      // it is the agent: it sees the server's process, and not how clients get there
	At     time.Time // it was so then, or later; by the clock of who asked
	Lives  bool      // it answers there
	Wrote  time.Time // of the agent: when a transaction was last seen to have come, or later; zero: not known
	Gone   bool      // of the agent: its process is gone, or stands still for as long as a primary may be silent
	Words  string    // what is seen there, as a sentence about the primary
}

// Told takes what somebody who is no replica says.
func (w *Watch) Told(t Testimony) {
	if w.Suspected() { // of a primary that answers nobody has to say anything
		w.testimonies[t.Who] = t
	}
}

// wroteFor is how long after it fell silent here a primary has to have taken transactions if it is to live: what was under way comes to its end.
const wroteFor = time.Second

// weigh sets what replicas and this observer make of a primary beside what others say. One that answers as many controllers as it does not answer, this one among them, is not dead, nor is one
// that goes on to take transactions, as its agent sees. Where replicas cannot say, its agent can: that the process is gone, or stands still.
func (w *Watch) weigh(b Belief, now time.Time, refused bool) Belief {
	var reach []string
	lost := 1 // by this one
	var agent *Testimony
	for _, t := range w.fresh(b.Since, now) {
		switch {
		case t.Beside:
			agent = &t
		case t.Lives:
			reach = append(reach, t.Who)
		default:
			lost++
		}
	}
	took := now.Sub(b.Since)
	alive := func(words string) Belief {
		b.State, b.Alone, b.Elsewhere = Unreachable, false, true
		if took < w.Patience.Frozen {
			b.State = Suspect
		}
		b.Words = fmt.Sprintf("it does not answer here for %s (%s), nor do replicas hear it, but %s", digits.Span(took.Round(100*time.Millisecond)), w.last.Text, words)
		return b
	}
	switch {
	case b.State == Dead && len(reach) >= lost:
		return alive("it answers " + strings.Join(reach, ", "))
	case b.State == Dead && agent != nil && agent.Lives && agent.Wrote.Sub(b.Since) >= wroteFor:
		return alive(agent.Who + " sees it take transactions")
	case b.State == Dead && refused && agent != nil && agent.Lives && took < w.Patience.Frozen: // it was restarted meanwhile, or the way to it is cut
		return alive("it answers " + agent.Who)
	case b.Alone && agent != nil && agent.Gone && len(reach) == 0:
		b.State, b.Alone = Dead, false
		b.Words += "; " + agent.Who + ": " + agent.Words
	case b.State == Dead && agent != nil && agent.Gone:
		b.Words += "; " + agent.Who + ": " + agent.Words
	}
	return b
}

// fresh are those of the testimonies that are about the time since the primary fell silent, and not old.
func (w *Watch) fresh(since, now time.Time) (list []Testimony) {
	for _, t := range w.testimonies {
		if !t.At.Before(since) && now.Sub(t.At) <= w.Patience.Fresh {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b Testimony) int { return cmp.Compare(a.Who, b.Who) })
	return list
}
