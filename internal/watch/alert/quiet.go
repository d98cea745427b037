package alert

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// quietHours is why an alert waits in hours in which its receiver is not to be told.
const quietHours = "quiet hours"

// What is remembered of hours in which a receiver was told nothing.
const (
	mostQuiet  = 100                // alerts that ended meanwhile; of more, the mildest are only counted
	quietLasts = 7 * 24 * time.Hour // what ended so long ago is no longer told
)

// Quiet is what a receiver has not heard of because of its quiet hours.
type Quiet struct {
	Since time.Time   `json:"since"`          // when the first alert rang for which it waits
	Over  []*Standing `json:"over,omitempty"` // what rang and ended meanwhile, the oldest first
	More  int         `json:"more,omitempty"` // how many alerts that ended were left out
}

func (q *Quiet) clone() *Quiet {
	c := *q
	c.Over = make([]*Standing, len(q.Over))
	for i, a := range q.Over {
		c.Over[i] = a.clone()
	}
	return &c
}

// Idle says whether there is nothing to look at unless a finding begins.
func (s State) Idle() bool { return len(s.Standing) == 0 && len(s.Quiet) == 0 }

// wait notes that a receiver is to hear of an alert after its quiet hours.
func (l *look) wait(a *Standing, receiver string) {
	if _, told := a.Told[receiver]; told || slices.Contains(a.Waits, receiver) {
		return
	}
	a.Waits = append(a.Waits, receiver)
	slices.Sort(a.Waits)
	if l.next.Quiet[receiver] == nil {
		l.next.Quiet[receiver] = &Quiet{Since: l.now}
	}
}

// waited says whether a receiver did not hear of an alert because of its quiet hours.
func (a *Standing) waited(receiver string) bool {
	_, told := a.Told[receiver]
	return !told && slices.Contains(a.Waits, receiver)
}

// after says whether a receiver hears of an alert because its quiet hours ended, and not because the alert became so bad that it rings in them.
func (l *look) after(a *Standing, receiver string) bool {
	return a.waited(receiver) && !slices.ContainsFunc(l.Routes, func(r Route) bool {
		return r.quiet(l.now) != "" && slices.Contains(r.To, receiver) && r.Fits(&a.Alert)
	})
}

// ended keeps an alert that is over for those that were not told of it because of their quiet hours.
func (l *look) ended(a *Standing) {
	for _, receiver := range a.Waits {
		q := l.next.Quiet[receiver]
		if q == nil || !a.waited(receiver) {
			continue
		}
		b := a.clone()
		b.clip()
		b.Evidence, b.Remedy = nil, "" // they are in the history; what is remembered stays small
		if q.Over = append(q.Over, b); len(q.Over) > mostQuiet {
			mildest := slices.MinFunc(q.Over, func(a, b *Standing) int { return cmp.Compare(a.Severity, b.Severity) })
			q.Over = slices.DeleteFunc(q.Over, func(a *Standing) bool { return a == mildest })
			q.More++
		}
	}
}

// released takes what ended in a receiver's quiet hours, where those are over.
func (l *look) released(receiver string) (over []*Standing) {
	q := l.next.Quiet[receiver]
	if q == nil {
		return nil
	}
	var rest []*Standing
	for _, a := range q.Over {
		if again := l.next.Standing[a.Key]; again != nil {
			if _, told := again.Told[receiver]; told {
				continue // it rang again, so loud that the receiver knows of it
			}
		}
		held, routed := l.receivers(&a.Alert, l.now)[receiver]
		switch {
		case !routed || l.now.Sub(a.Ended) > quietLasts:
		case cmp.Or(held, l.Policy.held(&a.Alert, l.Silences, l.now)) != "":
			rest = append(rest, a)
		default:
			over = append(over, a)
		}
	}
	q.Over = rest
	return over
}

// summary tells a receiver at once what it did not hear of in its quiet hours: what still fires, and what ended.
func (l *look) summary(receiver string, due []*thread, over []*Standing) {
	q := l.next.Quiet[receiver]
	m := Message{Made: l.now, Source: l.Page, Quiet: q.Since}
	m.Group = fmt.Sprintf("quiet-%d", l.now.UnixMicro())
	m.ID = m.Group + "." + receiver
	var alerts []*Standing
	for _, t := range due {
		l.heard(receiver, t)
		alerts = append(alerts, t.alerts...)
	}
	for _, a := range over {
		a.told(receiver, l.now)
		l.d.Changed = append(l.d.Changed, *a.clone())
	}
	m.Held, q.More = q.More, 0
	l.write(receiver, m, append(alerts, merged(alerts, over)...))
}

// merged is what ended as a message has it: an alert that rang several times is one, and none if it fires again.
func merged(firing, over []*Standing) (list []*Standing) {
	byKey := map[string]*Standing{}
	for _, a := range firing {
		byKey[a.Key] = a
	}
	for _, a := range over {
		first := byKey[a.Key]
		if first == nil {
			b := a.clone()
			byKey[a.Key] = b
			list = append(list, b)
			continue
		}
		if !slices.Contains(list, first) {
			continue
		}
		first.Times = max(first.Times, 1) + max(a.Times, 1)
		first.Gone, first.Ended, first.Rang, first.Record, first.Unseen = a.Gone, a.Ended, a.Rang, a.Record, a.Unseen
		if a.Severity > first.Severity {
			first.Severity, first.Value, first.Trouble = a.Severity, a.Value, a.Trouble
		}
	}
	return list
}

// rest forgets the quiet hours of receivers for which nothing waits any more.
func (l *look) rest() {
	for receiver, q := range l.next.Quiet {
		q.Over = slices.DeleteFunc(q.Over, func(a *Standing) bool { return l.now.Sub(a.Ended) > quietLasts })
		waits := len(q.Over) > 0
		for _, a := range l.next.Standing {
			waits = waits || a.Phase == Firing && a.waited(receiver)
		}
		if !waits {
			delete(l.next.Quiet, receiver)
		}
	}
}
