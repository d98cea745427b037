package failover

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/digits"
)

// Patience is how long it takes to believe that a primary is dead. A server that was killed refuses connections at once; one that is slow, or whose disk stalls,
// answers late, and one that is frozen not at all: these are told apart by time alone, so that a stall of a few seconds is no death.
type Patience struct {
	Refused time.Duration // in which nothing listens at its address
	Frozen  time.Duration // in which it says nothing, neither to this observer nor to its replicas
	Fresh   time.Duration // how old what a witness said may be
	// Absent is how long a failover waits for members that may have what nobody has who answers.
	Absent time.Duration
}

// DefaultPatience lets a killed primary be replaced within a second, a frozen one within six. Machines that lost their power together boot within a minute of each other; who
// is not there by then needs a person.
func DefaultPatience() Patience {
	return Patience{Refused: 400 * time.Millisecond, Frozen: 3300 * time.Millisecond, Fresh: 1500 * time.Millisecond, Absent: time.Minute}
}

// Probe is a look at the primary.
type Probe struct {
	At    time.Time // when it began
	OK    bool
	Kind  string // as topology.Failure has it: refused, timeout, hung …
	Text  string
	Full  int       // commits that wait because its disk is full, as mysql.CommitsWaitForRoom has it
	Still time.Time // since when it commits nothing; zero: not known
}

// Witness is what a replica says of its source.
type Witness struct {
	Name      string
	At        time.Time     // when it was asked
	Answers   bool          // it did
	Down      bool          // nothing listens at its address: it is no witness, nor does it acknowledge anything
	Follows   bool          // it is set to replicate from the primary, and was not stopped by somebody
	Deaf      string        // why it does not receive from the primary, whether that lives or not: it cannot say; "": it would receive
	Connected bool          // it is connected to it, as far as it knows
	Heard     time.Time     // when something last came from there, as this observer saw it; zero: nothing has come since it looks
	Since     time.Time     // since when this observer looks
	Beat      time.Duration // how often the primary says that it lives; 0: not known
}

// State is what is believed of a primary.
type State string

// The states.
const (
	Alive       State = "alive"
	Suspect     State = "suspect"     // it does not answer; it is not yet certain
	Unreachable State = "unreachable" // it does not answer here, and its replicas still hear it, or nobody can say
	Unasked     State = "unasked"     // it answers, but cannot be asked: login, no connection left
	Dead        State = "dead"
)

// Belief is a state, and why.
type Belief struct {
	State State
	Since time.Time // of the first look that did not succeed; with a full disk, since when nothing was committed
	Kind  string    // refused, frozen; full: it answers, and its disk is full
	Alone bool      // of Unreachable: nobody says that it lives, and too few can say that it does not
	// Elsewhere, of Unreachable: replicas lost it, too, but it answers other controllers, or its agent sees it at work.
	Elsewhere bool
	Words     string
}

// Watch remembers what was seen of a primary. Its methods are to be called by one goroutine.
type Watch struct {
	Patience  Patience
	Expected  []string // replicas that should be heard as witnesses
	failing   []Probe  // since it last answered
	last      Probe
	full      time.Time // since when commits are seen to wait for room on its disk; zero: none do
	stood     time.Time // since when nothing was committed then
	witnesses map[string]Witness
	// testimonies are what others than replicas say since it last answered, by who says it.
	testimonies map[string]Testimony
}

// NewWatch begins to watch a primary.
func NewWatch(p Patience, expected []string) *Watch {
	return &Watch{Patience: p, Expected: expected, witnesses: map[string]Witness{}, testimonies: map[string]Testimony{}}
}

// Probed takes a look at the primary.
func (w *Watch) Probed(p Probe) {
	w.last = p
	if p.OK && p.Full > 0 && w.full.IsZero() {
		w.full, w.stood = p.At, p.At
		if !p.Still.IsZero() {
			w.stood = p.Still
		}
	} else if p.OK && p.Full == 0 {
		w.full = time.Time{}
	}
	if p.OK || Lives(p.Kind) {
		w.failing = nil
		clear(w.testimonies)
		return
	}
	if w.failing = append(w.failing, p); len(w.failing) > 1000 {
		w.failing = slices.Delete(w.failing, 1, 500) // the first one counts, and the last ones
	}
}

// Lives reports whether a failure, of a kind as topology.Failure has it, shows that a server lives.
func Lives(kind string) bool {
	return slices.Contains([]string{"login", "full", "privilege", "tls", "missing", "other", "usage", "other_server"}, kind)
}

// Heard takes what a replica says. One whose receiver stood in an error when the primary fell silent, and that only tries again since, goes on not to know; one that somebody started does
// know.
func (w *Watch) Heard(x Witness) {
	was := w.witnesses[x.Name]
	if was.Deaf != "" && was.Follows && x.Answers && x.Deaf == "" && !x.Connected && len(w.failing) > 0 {
		x.Deaf = was.Deaf
	}
	if !x.Answers {
		x.Deaf, x.Follows = was.Deaf, was.Follows
	}
	w.witnesses[x.Name] = x
}

// Forget takes a replica out.
func (w *Watch) Forget(name string) { delete(w.witnesses, name) }

// Suspected reports whether the last look did not succeed.
func (w *Watch) Suspected() bool { return len(w.failing) > 0 }

// KindFull is the kind of a primary that answers, and on which nobody can write.
const KindFull = "full"

// sureFull is how long commits have to wait for room, once that was seen, before somebody else takes them.
const sureFull = time.Second

// FullWords say what is wrong with a primary on which so many commits wait for room.
func FullWords(waiting int) string {
	return "its disk is full: " + digits.Plural(waiting, "commit waits", "commits wait") + " for somebody who makes room"
}

// Belief is what is believed at a time.
func (w *Watch) Belief(now time.Time) Belief {
	if len(w.failing) == 0 {
		if !w.last.At.IsZero() && !w.last.OK {
			return Belief{State: Unasked, Since: w.last.At, Kind: w.last.Kind, Words: "it lives, but cannot be asked: " + w.last.Text}
		}
		if !w.full.IsZero() && now.Sub(w.full) >= sureFull {
			return Belief{State: Dead, Since: w.stood, Kind: KindFull, Words: FullWords(w.last.Full)}
		}
		return Belief{State: Alive}
	}
	first := w.failing[0]
	b := Belief{State: Suspect, Since: first.At, Words: "it does not answer: " + w.last.Text}
	refused := !slices.ContainsFunc(w.failing, func(p Probe) bool { return p.Kind != "refused" && p.Kind != "dropped" })
	limit := w.Patience.Frozen
	if b.Kind = "frozen"; refused {
		b.Kind, limit = "refused", w.Patience.Refused
	}
	if now.Sub(first.At) < limit || len(w.failing) < 2 {
		return b
	}
	return w.weigh(w.witnessed(b, now, refused), now, refused)
}

// Expected are the members of a group that should know whether its primary lives.
func Expected(g *group.Group) (names []string) {
	for _, m := range g.Members {
		if m.Status == group.Secondary || m.Status == group.Spare {
			names = append(names, m.Name)
		}
	}
	return names
}

// enough reports whether so many replicas can say together that their primary is dead: more than half of those that are expected to know, but for those at which nothing listens.
func enough(say, expected, down int) bool { return say*2 > expected-down }

// witnessed asks the witnesses whether a primary that does not answer is dead: more than half of those that should know must say so, and none that it lives.
func (w *Watch) witnessed(b Belief, now time.Time, refused bool) Belief {
	var say, against, down, deaf []string
	for _, name := range w.Expected {
		x, ok := w.witnesses[name]
		switch {
		case ok && x.Down && now.Sub(x.At) <= w.Patience.Fresh:
			down = append(down, name)
		case !ok || !x.Answers || x.At.Before(b.Since) || now.Sub(x.At) > w.Patience.Fresh: // it says nothing
		case x.Deaf != "":
			deaf = append(deaf, name+": "+x.Deaf)
		case !x.Follows:
		case !x.Connected:
			say = append(say, name)
		case refused:
			against = append(against, name)
		case w.deaf(x, now):
			say = append(say, name)
		default:
			against = append(against, name)
		}
	}
	took := digits.Span(now.Sub(b.Since).Round(100 * time.Millisecond))
	switch {
	case len(against) > 0:
		b.State = Unreachable
		b.Words = fmt.Sprintf("it does not answer here for %s (%s), but %s still hears it", took, w.last.Text, strings.Join(against, ", "))
		if now.Sub(b.Since) < w.Patience.Frozen { // they may only be slower to notice
			b.State = Suspect
		}
	case enough(len(say), len(w.Expected), len(down)):
		b.State = Dead
		b.Words = fmt.Sprintf("it does not answer for %s (%s), and %s lost it", took, w.last.Text, strings.Join(say, ", "))
		if len(down) > 0 {
			b.Words += "; nothing listens at " + strings.Join(down, ", ")
		}
	default:
		b.State = Unreachable
		b.Alone = true
		b.Words = fmt.Sprintf("it does not answer for %s (%s); only %d of %d replicas can say that they lost it, too", took, w.last.Text, len(say), len(w.Expected))
		if len(deaf) > 0 {
			b.Words += "; the others did not receive from it before, and cannot know (" + strings.Join(deaf, "; ") + ")"
		}
	}
	return b
}

// deaf reports whether a replica that calls itself connected has heard nothing for as long as a primary may be silent.
func (w *Watch) deaf(x Witness, now time.Time) bool {
	last := x.Heard
	if last.IsZero() {
		last = x.Since
	}
	return now.Sub(last) >= max(w.Patience.Frozen-x.Beat, 2*x.Beat+500*time.Millisecond)
}
