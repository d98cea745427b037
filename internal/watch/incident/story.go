package incident

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/watch/stall"
)

// Story is an incident in words.
type Story struct {
	First string `json:"first"` // one sentence: what, since when, who
	Steps []Step `json:"steps"` // by time
	End   string `json:"ended"` // what ended it; or that it goes on, or was not seen
}

// Step is a moment of the story.
type Step struct {
	At       time.Time      `json:"at"`   // when it was
	Kind     string         `json:"kind"` // before, begin, blocker, deadlock, number, event, gap, down, end
	Text     string         `json:"text"`
	Severity fleet.Severity `json:"severity,omitempty"`
}

// mostSteps bounds a story; what is left out is said.
const mostSteps = 60

// teller makes a story of what a file has.
type teller struct {
	f       *File
	t       *Told
	steps   []Step
	worst   Blocker // at the root of the most waits
	worstAt int64
}

// tell makes the story.
func tell(f *File, t *Told) Story {
	s := &teller{f: f, t: t}
	s.before()
	s.began()
	s.roots()
	s.deadlocks()
	s.extremes()
	s.happened()
	s.gaps()
	end := s.end()
	slices.SortStableFunc(s.steps, func(a, b Step) int { return a.At.Compare(b.At) })
	if n := len(s.steps); n > mostSteps {
		at := s.steps[mostSteps-1].At
		s.steps = append(s.steps[:mostSteps-1], Step{At: at, Kind: "gap", Text: digits.Counted(n-mostSteps+1, "further step") + " left out"})
	}
	return Story{First: s.first(), Steps: noNil(s.steps), End: end}
}

func (s *teller) add(at int64, kind string, severity fleet.Severity, format string, a ...any) {
	s.steps = append(s.steps, Step{At: time.Unix(at, 0), Kind: kind, Severity: severity, Text: fmt.Sprintf(format, a...)})
}

// begin is the second in which the incident began, as far as moments are kept.
func (s *teller) begin() int64 { return max(s.f.Incident.Began.Unix(), s.t.From) }

// before says how it was before, and what had changed last.
func (s *teller) before() {
	usual := s.f.Incident.Usual
	if usual.Rate > 0 {
		s.add(s.t.From, "before", 0, "as usual: %s statements a second, %s", digits.Number(usual.Rate), digits.Plural(int64(usual.Running), "session runs a statement", "sessions run a statement"))
	}
	for _, e := range s.t.Changed[max(len(s.t.Changed)-8, 0):] {
		s.steps = append(s.steps, Step{At: e.Time, Kind: "event", Severity: e.Severity, Text: e.Text})
	}
}

// began says what the first second of it looked like.
func (s *teller) began() {
	i := slices.IndexFunc(s.t.Moments, func(m *Moment) bool { return m.Tick >= s.begin() })
	if i < 0 {
		return
	}
	m := s.t.Moments[i]
	running := m.Numbers["threads_running"]
	before := running
	if i > 0 {
		before = s.t.Moments[i-1].Numbers["threads_running"]
	}
	switch {
	case m.Down != "":
		s.add(m.Tick, "begin", fleet.SeverityCritical, "the server %s", m.Down)
	case s.f.Incident.Why == WhyStall:
		s.add(m.Tick, "begin", fleet.SeverityCritical, "throughput falls to %s statements a second; %s, %s in lock waits",
			digits.Number(stall.Finished(m.Numbers["questions_per_second"], running, before)), digits.Plural(m.Running(), "session runs a statement", "sessions run a statement"), digits.Count(float64(m.InLocks())))
	default:
		s.add(m.Tick, "begin", s.f.Incident.Severity, "%s", s.f.Incident.What)
	}
}

// roots says when a session began to keep others waiting, how many they were at most, and when it let go.
func (s *teller) roots() {
	type seen struct {
		Blocker
		began             string // in words
		first, most, last int64
	}
	known := map[int64]*seen{}
	var order []int64
	for _, m := range s.t.Moments {
		for _, b := range m.Blockers {
			k := known[b.ID]
			if k == nil {
				k = &seen{Blocker: b, began: b.What, first: m.Tick, most: m.Tick}
				known[b.ID] = k
				order = append(order, b.ID)
			}
			if k.last = m.Tick; b.Blocks > k.Blocks {
				k.Blocker, k.most = b, m.Tick
			}
		}
	}
	slices.SortStableFunc(order, func(a, b int64) int { return cmp.Compare(known[b].Blocks, known[a].Blocks) })
	for i, id := range order {
		k := known[id]
		if i == 0 {
			s.worst, s.worstAt = k.Blocker, k.first
		}
		if i >= 5 {
			s.add(k.first, "blocker", 0, "%s, too, are in others' way", digits.Counted(len(order)-i, "other session"))
			break
		}
		s.add(k.first, "blocker", fleet.SeverityWarning, "%s", k.began)
		if k.most > k.first {
			s.add(k.most, "blocker", fleet.SeverityCritical, "connection %d keeps %s waiting, the most", id, digits.Plural(k.Blocks, "other", "others"))
		}
		if k.last < s.t.To {
			s.add(k.last+1, "blocker", 0, "nobody waits for connection %d any more%s", id, s.fate(id, k.last))
		}
	}
}

// fate says what became of a session after a second, as far as it can be seen.
func (s *teller) fate(id, after int64) string {
	for _, m := range s.t.Moments {
		if m.Tick <= after || m.Down != "" {
			continue
		}
		for _, x := range m.Sessions {
			if x.ID == id {
				return ""
			}
		}
		return ": it runs nothing and has no transaction open, or was ended"
	}
	return ""
}

func (s *teller) deadlocks() {
	for _, d := range s.t.Deadlocks {
		var names []string
		victim := ""
		for _, t := range d.Transactions {
			names = append(names, fmt.Sprintf("connection %d%s", t.Session, at(t.User, t.Host)))
			if t.Victim {
				victim = fmt.Sprintf("; that of connection %d was rolled back", t.Session)
			}
		}
		s.add(d.Tick, "deadlock", fleet.SeverityWarning, "deadlock between transactions of %s%s", strings.Join(names, " and "), victim)
	}
}

// extremes says when most ran at once.
func (s *teller) extremes() {
	var most *Moment
	for _, m := range s.t.Moments {
		if m.Tick >= s.begin() && (most == nil || m.Running() > most.Running()) {
			most = m
		}
	}
	if most == nil || most.Running() < 2 {
		return
	}
	waits := map[string]int{}
	for _, x := range most.Sessions {
		if x.Wait != Idle {
			waits[x.Wait]++
		}
	}
	var parts []string
	for w, n := range waits {
		parts = append(parts, fmt.Sprintf("%s %d", strings.ReplaceAll(w, "_", " "), n))
	}
	slices.Sort(parts)
	s.add(most.Tick, "number", 0, "most sessions at once run a statement: %d (%s)", most.Running(), strings.Join(parts, ", "))
}

// happened adds the events of its time.
func (s *teller) happened() {
	for _, e := range s.f.Events {
		if tellsMore(e) && !s.begins(e) && !e.Time.Before(s.f.Incident.Began.Add(-30*time.Second)) && !slices.ContainsFunc(s.t.Changed, func(c fleet.Event) bool { return c.ID == e.ID }) {
			s.steps = append(s.steps, Step{At: e.Time, Kind: "event", Severity: e.Severity, Text: e.Text})
		}
	}
}

// begins says whether an event is that of the finding with which the incident began: its first step tells that.
func (s *teller) begins(e fleet.Event) bool {
	i := s.f.Incident
	return e.Kind == fleet.EventFinding && e.Old == "" && (e.Subject == i.Finding || i.Why == WhyStall && e.Subject == "server.stall")
}

// tellsMore says whether an event tells what moments do not: who keeps whom waiting is told by them, and more exactly.
func tellsMore(e fleet.Event) bool {
	lock := strings.HasPrefix(e.Subject, "lock.") || strings.HasPrefix(e.Subject, "mdl.")
	return e.Kind != fleet.EventObserver && e.Kind != fleet.EventIncident && !(e.Kind == fleet.EventFinding && lock)
}

func (s *teller) gaps() {
	for _, g := range s.t.Missing {
		s.add(g.From, "gap", 0, "nothing is known of %s from here on", digits.Counted(g.To-g.From+1, "second"))
	}
	var down int64
	for _, m := range s.t.Moments {
		switch {
		case m.Down != "" && down == 0:
			down = m.Tick
			if m.Tick > s.begin() {
				s.add(m.Tick, "down", fleet.SeverityCritical, "the server %s", m.Down)
			}
		case m.Down == "" && down != 0:
			s.add(m.Tick, "down", 0, "the server answers again")
			down = 0
		}
	}
}

// first is the first sentence.
func (s *teller) first() string {
	i := s.f.Incident
	var b strings.Builder
	b.WriteString(i.Server)
	lasted := ""
	if !i.Ended.IsZero() {
		lasted = " for " + digits.Span(i.Ended.Sub(i.Began))
	}
	what := " stalled"
	if i.Why == WhyAlert {
		what = ", " + oneline.Of(i.What) + "; captured"
		lasted = ""
	}
	fmt.Fprintf(&b, "%s%s from %s on", what, lasted, i.Began.Local().Format("15:04:05"))
	if s.worst.Blocks > 0 && !strings.Contains(i.What, " keeps ") { // else it is said
		b.WriteString(": " + s.worst.What)
	}
	return b.String()
}

// end says what ended it.
func (s *teller) end() string {
	i := s.f.Incident
	switch {
	case i.Cut != "" && i.Cut != CutAfter:
		return i.Cut + ": its end was not seen"
	case i.Ended.IsZero():
		return "it goes on"
	}
	text := "it ended"
	if s.worst.Blocks > 0 {
		last := int64(0)
		for _, m := range s.t.Moments {
			if slices.ContainsFunc(m.Blockers, func(b Blocker) bool { return b.ID == s.worst.ID }) {
				last = m.Tick
			}
		}
		if d := i.Ended.Unix() - last; d >= -2 && d <= 10 {
			text = fmt.Sprintf("it ended when connection %d let go%s", s.worst.ID, s.fate(s.worst.ID, last))
		}
	}
	s.add(i.Ended.Unix(), "end", 0, "%s", text)
	return fmt.Sprintf("%s at %s", text, i.Ended.Local().Format("15:04:05"))
}
