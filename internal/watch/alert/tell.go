package alert

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// What keeps messages from pouring.
const (
	lull         = time.Minute // least time between two messages about one server, unless something new is wrong; each message doubles it
	lullMost     = 30 * time.Minute
	lullCritical = 5 * time.Minute  // the most where something critical is to be told
	gather       = 5 * time.Second  // how long a warning waits for others of the same server, or something critical until it is known whether others have it, too
	gatherLong   = 20 * time.Second // how long a warning does, if it may be that of others as well
	mostTold     = 50               // alerts in one message
	manyServers  = 8                // more servers than that with something to tell at once are told in one message
)

// threads collects, for one receiver, what there is to say about each server.
type thread struct {
	key      string // of State.Threads
	instance string
	alerts   []*Standing    // that it is told of, or was
	news     bool           // there is something to say, when the lull is over
	urgent   time.Time      // there is something to say then; zero: nothing of that kind
	worst    fleet.Severity // of the news
	again    bool           // what fires is to be told again
	waited   bool           // there is something that waited for quiet hours to end
}

// tell makes the messages that are due.
func (l *look) tell() {
	alerts := make([]*Standing, 0, len(l.next.Standing))
	for _, a := range l.next.Standing {
		if a.Phase != Pending {
			alerts = append(alerts, a)
		}
	}
	slices.SortFunc(alerts, func(a, b *Standing) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), a.Rang.Compare(b.Rang), cmp.Compare(a.Key, b.Key))
	})
	byReceiver := map[string][]*thread{}
	for _, a := range alerts {
		to := l.receivers(&a.Alert, l.now)
		for name := range a.Told { // who was told hears of the end
			if _, ok := to[name]; !ok {
				to[name] = "no longer routed"
			}
		}
		for name, held := range to {
			from := l.heldFrom(name, a)
			switch {
			case from != "": // that is why it is not told
				a.Waits = slices.DeleteFunc(a.Waits, func(waits string) bool { return waits == name })
			case held == quietHours:
				l.wait(a, name)
			}
			if slices.Contains(l.Receivers, name) {
				byReceiver[name] = l.weigh(byReceiver[name], name, a, cmp.Or(from, held))
			}
		}
	}
	for _, name := range l.Receivers {
		var due, waited []*thread
		for _, t := range byReceiver[name] {
			switch {
			case !l.due(t):
			case t.waited:
				waited = append(waited, t)
			default:
				due = append(due, t)
			}
		}
		if over := l.released(name); len(waited)+len(over) > 0 {
			l.summary(name, waited, over)
		}
		l.send(name, due)
	}
}

// weigh adds an alert to its thread, and notes what there is to say about it.
func (l *look) weigh(threads []*thread, receiver string, a *Standing, held string) []*thread {
	told, was := a.Told[receiver]
	if !was && held != "" || was && told.Over && !a.Gone.IsZero() {
		return threads // nobody is to know, or everything is known
	}
	i := slices.IndexFunc(threads, func(t *thread) bool { return t.instance == a.Instance })
	if i < 0 {
		i = len(threads)
		threads = append(threads, &thread{key: receiver + "/" + a.Instance, instance: a.Instance})
	}
	t := threads[i]
	t.alerts = append(t.alerts, a)
	if held == "" && l.after(a, receiver) {
		t.waited, t.urgent = true, l.now
	}
	if l.over[a.Key] {
		t.news = true
		return threads
	}
	known, kind := l.kind(t.key, a.Finding)
	switch {
	case held != "":
	case !was && kind && known >= a.Severity, was && told.Over && a.Gone.IsZero(), was && a.Severity <= told.Severity && told.Case != "" && a.Case != told.Case && a.Gone.IsZero():
		t.news, t.worst = true, max(t.worst, a.Severity)
	case !was, a.Severity > told.Severity:
		at := l.now
		switch {
		case was:
		case a.Severity < fleet.SeverityCritical && a.open:
			at = a.Rang.Add(gatherLong)
		case a.Severity < fleet.SeverityCritical || a.open:
			at = a.Rang.Add(gather)
		}
		if t.urgent.IsZero() || at.Before(t.urgent) {
			t.urgent = at
		}
	case a.Acked.IsZero() && a.Gone.IsZero() && l.now.Sub(told.At) >= cmp.Or(l.Repeat, repeat):
		t.again = true
	}
	return threads
}

// kind is what a receiver knows of a finding on a server.
func (l *look) kind(thread, finding string) (fleet.Severity, bool) {
	t := l.next.Threads[thread]
	if t == nil {
		return 0, false
	}
	s, ok := t.Kinds[finding]
	return s, ok
}

// due says whether a message is to be made now.
func (l *look) due(t *thread) bool {
	switch {
	case t.again, !t.urgent.IsZero() && !l.now.Before(t.urgent):
		return true
	case !t.news:
		return false
	case !slices.ContainsFunc(t.alerts, func(a *Standing) bool { return !l.over[a.Key] }): // all is well again
		return true
	}
	known := l.next.Threads[t.key]
	if known == nil {
		return true
	}
	most := lullMost
	if t.worst == fleet.SeverityCritical {
		most = lullCritical
	}
	return l.now.Sub(known.Last) >= doubled(lull, known.Messages-1, most)
}

// send makes the messages of one receiver: one for each server, or one for all where there are many.
func (l *look) send(receiver string, due []*thread) {
	var parts [][]*thread
	if len(due) > manyServers {
		parts = [][]*thread{due}
	} else {
		for _, t := range due {
			parts = append(parts, []*thread{t})
		}
	}
	for _, part := range parts {
		m := Message{Made: l.now, Again: true, Source: l.Page}
		var alerts []*Standing
		for _, t := range part {
			known := l.heard(receiver, t)
			m.ID, m.Group = fmt.Sprintf("%s.%d.%s", known.ID, known.Messages, receiver), known.ID
			m.Again = m.Again && !t.news && t.urgent.IsZero()
			alerts = append(alerts, t.alerts...)
		}
		if len(part) > 1 {
			m.Group = fmt.Sprintf("many-%d", l.now.UnixMicro()) // two looks may be in one second
			m.ID = m.Group + "." + receiver
		}
		l.write(receiver, m, alerts)
	}
}

// heard notes that a receiver is told of all there is to say about a server.
func (l *look) heard(receiver string, t *thread) *Thread {
	known := l.open(t)
	for _, a := range t.alerts {
		a.news = 1
		if _, was := a.Told[receiver]; was {
			a.news = 0
		}
		a.told(receiver, l.now)
		known.Kinds[a.Finding] = max(known.Kinds[a.Finding], a.Severity)
	}
	return known
}

// write puts the alerts into a message: what holds first, then the worst, then what the receiver did not know of.
func (l *look) write(receiver string, m Message, alerts []*Standing) {
	slices.SortStableFunc(alerts, func(a, b *Standing) int {
		return cmp.Or(order(a)-order(b), cmp.Compare(b.Severity, a.Severity), cmp.Compare(b.news, a.news), a.Rang.Compare(b.Rang))
	})
	for i, a := range alerts {
		if i == mostTold {
			m.Held += len(alerts) - mostTold
			break
		}
		m.Alerts = append(m.Alerts, a.shown())
	}
	if l.Chart != nil {
		m.Chart = l.Chart(&m.Alerts[0])
	}
	l.d.Out = append(l.d.Out, Out{Receiver: receiver, Message: m})
}

// order puts what holds first.
func order(a *Standing) int {
	if a.Gone.IsZero() {
		return 0
	}
	return 1
}

// open finds or begins the thread of a server.
func (l *look) open(t *thread) *Thread {
	known := l.next.Threads[t.key]
	if known == nil {
		known = &Thread{ID: fmt.Sprintf("%s-%d", t.instance, l.now.Unix()), Kinds: map[string]fleet.Severity{}}
		l.next.Threads[t.key] = known
	}
	known.Last = l.now
	known.Messages++
	return known
}

func (a *Standing) told(receiver string, now time.Time) {
	if a.Told == nil {
		a.Told = map[string]Told{}
	}
	a.Told[receiver] = Told{At: now, Severity: a.Severity, Over: !a.Gone.IsZero(), Case: a.Case}
}

// shown is an alert as a message has it: one that is over for now is shown so, also while it may come back.
func (a *Standing) shown() Alert {
	b := a.clone().Alert
	if !a.Gone.IsZero() {
		b.Phase, b.Ended, b.Remedy = Resolved, a.Gone, ""
	}
	b.clip()
	return b
}
