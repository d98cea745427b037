package alert

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/incident"
)

// The times that keep alerts from flapping.
const (
	settle      = 30 * time.Second // an alert is resolved when what is wrong has been gone for so long; each return within an hour doubles it
	settleMost  = 30 * time.Minute
	returns     = time.Minute      // what comes back within that counts as one return
	moment      = 15 * time.Minute // before and after it began are on the page that a link shows
	recovery    = 2 * time.Minute  // what a cause explained has so long to end after the cause
	forgetAfter = time.Hour        // returns and troubles are remembered for so long
	flaps       = 3                // what came so often in that time comes and goes
)

// State is what the engine remembers. It is kept on disk between two looks, and what was not kept did not happen.
type State struct {
	Cursor   int64                `json:"cursor"`            // the newest state.FindingRecord.Closed that was looked at
	Standing map[string]*Standing `json:"standing"`          // by Alert.Key: what is pending or fires
	Rings    map[string][]Ring    `json:"rings,omitempty"`   // by server and finding: when it began to ring lately
	Threads  map[string]*Thread   `json:"threads,omitempty"` // by receiver and server
	Quiet    map[string]*Quiet    `json:"quiet,omitempty"`   // by receiver: what waits for its quiet hours to end
}

// Ring is when a finding began to ring.
type Ring = time.Time

// Standing is an alert that is not over.
type Standing struct {
	Alert
	Record    int64           `json:"record"`             // of the finding
	Gone      time.Time       `json:"gone,omitzero"`      // since when the finding is over; the alert is, when that has lasted
	Acked     time.Time       `json:"acked,omitzero"`     // since when somebody knows of it
	By        string          `json:"by,omitempty"`       // who
	Held      string          `json:"held,omitempty"`     // why nobody is told at present
	Explained time.Time       `json:"explained,omitzero"` // when Cause was last seen to explain it
	Cause     string          `json:"cause,omitempty"`    // key of the alert that explains this one
	Peer      bool            `json:"peer,omitempty"`     // that one stands for what both have in common
	Told      map[string]Told `json:"told,omitempty"`     // by receiver
	Waits     []string        `json:"waits,omitempty"`    // receivers that were not told at once because of their quiet hours
	Case      string          `json:"case,omitempty"`     // of the finding, at its worst

	open bool // what explains it will be known within seconds
	news int  // 1: the receiver that is being told did not know of it
}

// Told is what a receiver knows of an alert.
type Told struct {
	At       time.Time      `json:"at"` // when it was told last
	Severity fleet.Severity `json:"severity"`
	Over     bool           `json:"over,omitempty"` // that it is over
	Case     string         `json:"case,omitempty"` // what exactly it was about
}

// Thread is what a receiver was told about the trouble of one server.
type Thread struct {
	ID       string                    `json:"id"`
	Last     time.Time                 `json:"last"`     // when it was told last
	Messages int                       `json:"messages"` // how many
	Kinds    map[string]fleet.Severity `json:"kinds"`    // findings that it was told of, and how bad they were
}

// Cause is an alert that explains others: a server that is down, and its replicas.
type Cause struct {
	Instance, Finding, Subject string

	Open   bool     // whether there is one will be known within seconds
	Peer   bool     // it is no more than the first of those that have something in common: it holds them back only from those who hear of it
	Common string   // what that is, in words
	Awaits []string // without an Instance: the keys of alerts that this one explains, or stands for; they may not be written down yet
}

// Input is what the engine looks at.
type Input struct {
	Records   []state.FindingRecord // that hold, or were closed after State.Cursor
	Instances map[string]Seat       // by ID
	Because   func(state.FindingRecord) (Cause, bool)
	Silences  []Silence
	Acks      []Ack
	Chart     func(a *Alert) *Chart    // may be nil
	Last      func(a *Alert) time.Time // when a finding that counts as holding last did, if it does not now; zero: it does; may be nil
}

// Seat is an instance as alerts name it.
type Seat struct{ Name, Group string }

// Ack is that somebody knows of an alert.
type Ack struct {
	Key string    `json:"key"`
	At  time.Time `json:"at"`
	By  string    `json:"by"`
}

// Out is a message for a receiver.
type Out struct {
	Receiver string
	Message  Message
}

// Decision is what follows from a look.
type Decision struct {
	State   State
	Changed []Standing // alerts that began to ring, changed or were resolved
	Out     []Out
	Next    time.Time // when the next finding that holds will have held for long enough to ring; zero: none waits for that
}

// Key is that of the alert of a finding.
func Key(instance, finding, subject string) string {
	return strings.TrimSuffix(instance+"/"+finding+"/"+subject, "/")
}

// look is one look at what is wrong.
type look struct {
	*Policy
	Input
	now  time.Time
	next State
	d    *Decision
	over map[string]bool // alerts whose finding has been gone for long enough
}

// Look says what follows from what is wrong at a moment: which alerts began, which are resolved, who is told what. s is left as it was.
func (p *Policy) Look(now time.Time, s State, in Input) Decision {
	d := Decision{State: s.clone()}
	l := &look{Policy: p, Input: in, now: now, next: d.State, d: &d, over: map[string]bool{}}
	before := s.clone()
	l.take()
	l.settle()
	l.explain()
	l.tell()
	l.resolve()
	l.rest()
	l.forget()
	for key, a := range l.next.Standing {
		if b := before.Standing[key]; b == nil && a.Phase != Pending || b != nil && b.differs(a) {
			d.Changed = append(d.Changed, *a.clone())
		}
	}
	slices.SortFunc(d.Changed, func(a, b Standing) int { return cmp.Compare(a.Key, b.Key) })
	for key, a := range l.next.Standing {
		if a.Phase == Resolved {
			delete(l.next.Standing, key)
		}
	}
	d.State = l.next
	return d
}

// differs says whether what is shown of an alert changed.
func (a *Standing) differs(b *Standing) bool {
	return a.Phase != b.Phase || a.Flapping != b.Flapping || a.Severity != b.Severity || a.Held != b.Held || a.Acked != b.Acked || a.Cause != b.Cause || a.Times != b.Times || a.Record != b.Record || a.Case != b.Case || !a.Gone.Equal(b.Gone) ||
		!maps.Equal(a.Told, b.Told) || !slices.Equal(a.Waits, b.Waits)
}

func (a *Standing) clone() *Standing {
	b := *a
	b.Told = maps.Clone(a.Told)
	b.Affected = slices.Clone(a.Affected)
	b.Waits = slices.Clone(a.Waits)
	return &b
}

func (s State) clone() State {
	c := State{Cursor: s.Cursor, Standing: make(map[string]*Standing, len(s.Standing)), Rings: make(map[string][]Ring, len(s.Rings)), Threads: make(map[string]*Thread, len(s.Threads)), Quiet: make(map[string]*Quiet, len(s.Quiet))}
	for k, a := range s.Standing {
		c.Standing[k] = a.clone()
	}
	for k, r := range s.Rings {
		c.Rings[k] = slices.Clone(r)
	}
	for k, t := range s.Threads {
		u := *t
		u.Kinds = maps.Clone(t.Kinds)
		c.Threads[k] = &u
	}
	for k, q := range s.Quiet {
		c.Quiet[k] = q.clone()
	}
	return c
}

// take brings the alerts up to the findings.
func (l *look) take() {
	slices.SortStableFunc(l.Records, func(a, b state.FindingRecord) int { return a.Told.Compare(b.Told) })
	seen, cursor := map[string]bool{}, l.next.Cursor
	for _, r := range l.Records {
		key := Key(r.Instance, r.First.ID, r.First.Subject)
		a := l.next.Standing[key]
		switch {
		case r.Closed != 0 && r.Closed <= l.next.Cursor:
			continue // over, and looked at
		case a != nil && r.ID < a.Record:
			continue // one that came back since
		case a == nil:
			a = &Standing{Record: r.ID, Alert: Alert{Key: key, Phase: Pending, Began: r.Began()}}
			l.next.Standing[key] = a
		case a.Record != r.ID:
			a.Record = r.ID
			if a.Phase == Pending {
				a.Began = r.Began()
			} else {
				a.Times = max(a.Times, 1) + 1
				l.ring(a)
			}
		}
		seen[key] = true
		l.fill(a, r)
		l.begin(a)
		cursor = max(cursor, r.Closed)
	}
	l.next.Cursor = cursor
	for key, a := range l.next.Standing {
		if !seen[key] && a.Gone.IsZero() { // the record is gone: of a server that is no longer watched
			a.Gone, a.Unseen = l.now, true
		}
	}
}

// fill takes over what a finding is at its worst.
func (l *look) fill(a *Standing, r state.FindingRecord) {
	seat := l.Instances[r.Instance]
	a.Finding, a.Subject, a.Instance, a.Server, a.Group = r.First.ID, r.First.Subject, r.Instance, cmp.Or(seat.Name, r.Instance), seat.Group
	a.Evidence = incident.EvidenceLines(r.Evidence)
	a.Case = r.Worst.Case
	a.Severity, a.Value, a.Trouble, a.Unseen, a.Gone = max(a.Severity, r.Worst.Severity), r.Worst.Value, r.Worst.Trouble, r.Unseen, r.Ended
	switch {
	case l.Page == "":
	case seat.Name == "": // Risso itself has no page of its own
		a.Link = l.Page
	default:
		a.Link = fmt.Sprintf("%s/server/%s?from=%d&to=%d", l.Page, r.Instance, a.Began.Add(-moment).Unix(), a.Began.Add(moment).Unix())
	}
}

// begin lets an alert ring once its finding has held for long enough.
func (l *look) begin(a *Standing) {
	if a.Phase != Pending {
		return
	}
	until := l.now
	if l.Last != nil {
		if last := l.Last(&a.Alert); !last.IsZero() {
			until = last
		}
	}
	if !a.Gone.IsZero() {
		until = a.Gone
	}
	hold, ok := l.hold(&a.Alert)
	if !ok {
		return
	}
	if due := a.Began.Add(hold); until.Before(due) {
		if a.Gone.IsZero() && due.After(l.now) && (l.d.Next.IsZero() || due.Before(l.d.Next)) {
			l.d.Next = due
		}
		return
	}
	a.Phase, a.Rang = Firing, l.now
	l.ring(a)
}

func kind(a *Alert) string { return a.Instance + "/" + a.Finding }

// ring notes that a finding began to ring, or came back.
func (l *look) ring(a *Standing) {
	rings := l.next.Rings[kind(&a.Alert)]
	if n := len(rings); n == 0 || l.now.Sub(rings[n-1]) >= returns {
		l.next.Rings[kind(&a.Alert)] = append(rings, l.now)
	}
}

// doubled is d, doubled n times, and at most most.
func doubled(d time.Duration, n int, most time.Duration) time.Duration {
	for ; n > 0 && d < most; n-- {
		d *= 2
	}
	return min(d, most)
}

// settle resolves what has been gone for long enough.
func (l *look) settle() {
	for key, a := range l.next.Standing {
		if a.Gone.IsZero() {
			continue
		}
		if a.Phase == Pending {
			delete(l.next.Standing, key)
			continue
		}
		if l.now.Sub(a.Gone) >= doubled(settle, len(l.next.Rings[kind(&a.Alert)])-1, settleMost) {
			l.over[key] = true
		}
	}
}

// resolve ends what has been gone for long enough, once everybody was told.
func (l *look) resolve() {
	for _, key := range slices.Sorted(maps.Keys(l.over)) {
		if a := l.next.Standing[key]; !l.owed(a) {
			a.Phase, a.Ended = Resolved, a.Gone
			l.ended(a)
		}
	}
}

// owed says whether somebody is still to hear of an alert, or of its end: in a lull both are told later.
func (l *look) owed(a *Standing) bool {
	for name, told := range a.Told {
		if !told.Over && slices.Contains(l.Receivers, name) {
			return true
		}
	}
	for name, held := range l.receivers(&a.Alert, l.now) {
		if _, told := a.Told[name]; !told && cmp.Or(l.heldFrom(name, a), held) == "" && slices.Contains(l.Receivers, name) {
			return true
		}
	}
	return false
}

// explain finds out what holds alerts back.
func (l *look) explain() {
	byRecord := map[int64]*Standing{}
	for _, a := range l.next.Standing {
		a.Held, a.open = "", false
		if l.now.Sub(a.Explained) >= recovery && a.Gone.IsZero() {
			a.Cause, a.Peer = "", false
		}
		byRecord[a.Record] = a
	}
	for _, r := range l.Records {
		a := byRecord[r.ID]
		if a == nil || l.Because == nil {
			continue
		}
		if c, ok := l.Because(r); ok && c.Instance == "" {
			a.open = c.Open || slices.ContainsFunc(c.Awaits, func(key string) bool { return l.next.Standing[key] == nil })
		} else if ok {
			cause := l.alertOf(c)
			a.open = c.Open || cause == nil // that one is not written down yet
			if cause != nil && cause != a {
				a.Cause, a.Peer, cause.Common = cause.Key, c.Peer, c.Common
				if l.now.Sub(a.Explained) > recovery/4 { // not each second: what changes is written
					a.Explained = l.now
				}
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(l.next.Standing)) {
		a := l.next.Standing[key]
		cause, circle := l.root(a)
		if circle { // the first of them rings
			a.Cause = ""
		}
		a.Held = l.withheld(a)
		if a.Cause != "" && (!a.Peer || l.withheld(cause) == "") {
			a.Held = cmp.Or(a.Held, "because of "+a.Cause)
		}
		if cause != a && a.Cause != "" {
			if !slices.Contains(cause.Affected, a.Server) && a.Server != cause.Server {
				cause.Affected = append(cause.Affected, a.Server)
			}
		}
		a.Flapping = len(l.next.Rings[kind(&a.Alert)]) >= flaps
	}
	for _, k := range l.Acks {
		if a := l.next.Standing[k.Key]; a != nil && a.Acked.Before(k.At) && !k.At.Before(a.Rang) && !k.At.After(l.now) {
			a.Acked, a.By = k.At, k.By
		}
	}
}

// withheld says why somebody wants nobody to be told of an alert; "": nobody does.
func (l *look) withheld(a *Standing) string {
	why := l.Policy.held(&a.Alert, l.Silences, l.now)
	if _, rings := l.hold(&a.Alert); !rings && a.Phase == Firing {
		why = cmp.Or(why, "a threshold says that it does not ring")
	}
	return why
}

// heldFrom says why a receiver is not told of an alert: as Held, unless what stands for it is nothing that this receiver hears of.
func (l *look) heldFrom(receiver string, a *Standing) string {
	if cause, _ := l.root(a); a.Peer && cause != a {
		_, knows := cause.Told[receiver]
		if held, is := l.receivers(&cause.Alert, l.now)[receiver]; !knows && (!is || held != "") {
			return l.withheld(a)
		}
	}
	return a.Held
}

// root is the alert from which an alert comes in the end: itself, if none explains it. In a circle each alert explains itself.
func (l *look) root(a *Standing) (cause *Standing, circle bool) {
	cause = a
	for n := 0; ; n++ {
		next := l.next.Standing[cause.Cause]
		switch {
		case next == nil || n > len(l.next.Standing):
			return cause, false
		case next == a:
			return a, true
		}
		cause = next
	}
}

// alertOf is the alert of a cause that fires.
func (l *look) alertOf(c Cause) *Standing {
	a := l.next.Standing[Key(c.Instance, c.Finding, c.Subject)]
	if a == nil || a.Phase != Firing {
		return nil
	}
	return a
}

// forget drops what no longer matters.
func (l *look) forget() {
	for k, rings := range l.next.Rings {
		rings = slices.DeleteFunc(rings, func(r Ring) bool { return l.now.Sub(r) > forgetAfter })
		if l.next.Rings[k] = rings; len(rings) == 0 {
			delete(l.next.Rings, k)
		}
	}
	for k, t := range l.next.Threads {
		if l.now.Sub(t.Last) <= forgetAfter {
			continue
		}
		_, instance, _ := strings.Cut(k, "/")
		if !l.any(instance) {
			delete(l.next.Threads, k)
		}
	}
}

// any says whether an instance has an alert that is not over.
func (l *look) any(instance string) bool {
	for _, a := range l.next.Standing {
		if a.Instance == instance && a.Phase == Firing {
			return true
		}
	}
	return false
}

// Clone is a copy that shares nothing.
func (a *Standing) Clone() Standing { return *a.clone() }
