// Package after says what changed on a server after a moment, such as a deployment: throughput, latency, errors and classes of statements,
// minute by minute before and after, by tests that know noise.
package after

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/events"
	"github.com/rissodb/risso/internal/store/state"
)

// Limits of a comparison.
const (
	LeastMinutes = 5   // windows may be so short
	MostMinutes  = 120 // and so long
	MostServers  = 20  // servers in one answer
	needed       = 7   // minutes of each window that must have been seen: with fewer no test can find anything
	mostClasses  = 20  // classes that are tested
)

// Window is a span of whole minutes.
type Window struct {
	From    int64 `json:"from"` // Unix seconds
	To      int64 `json:"to"`
	Minutes int   `json:"minutes"` // how many of them were observed
}

// Windows are the minutes before and after a moment; the minute of the moment itself is in neither. complete says that all those after
// are over.
func Windows(at, now int64, minutes int) (before, after Window, complete bool) {
	minute := at - at%60
	length := int64(minutes) * 60
	before = Window{From: minute - length, To: minute}
	// What a minute's statements cost is read after its end, and stored a little later.
	end := min(minute+60+length, now-readLate-(now-readLate)%60)
	after = Window{From: minute + 60, To: max(end, minute+60)}
	return before, after, end == minute+60+length
}

// readLate is how many seconds after the end of a minute its statements are in the store.
const readLate = 30

// Verdict says how something changed.
type Verdict string

// The verdicts.
const (
	Up      Verdict = "up"
	Down    Verdict = "down"
	Same    Verdict = "same"    // no change that stands out of the noise
	Unknown Verdict = "unknown" // too little to say
)

// Measure is a number of a whole server.
type Measure struct {
	What    string  `json:"what"` // throughput, latency, load, errors
	Unit    string  `json:"unit"`
	Before  float64 `json:"before"` // medians of minutes; of errors the mean
	After   float64 `json:"after"`  // the same, of the window after
	Verdict Verdict `json:"verdict"`
	P       float64 `json:"p"` // how probable figures so far apart are if nothing changed
}

// Side is a class of statements in one window.
type Side struct {
	Rate    float64 `json:"rate"`    // calls a second
	Latency float64 `json:"latency"` // seconds of a call
	Errors  float64 `json:"errors"`  // errors of a call
	Load    float64 `json:"load"`    // seconds of statements a second
}

// Class is a class of statements that changed.
type Class struct {
	ID          string  `json:"id"`
	Fingerprint string  `json:"fingerprint"`
	Change      string  `json:"change"` // new, gone, slower, faster, oftener, rarer, errors
	Before      Side    `json:"before"`
	After       Side    `json:"after"`
	Load        float64 `json:"load"` // how much load it brought or took, in seconds of statements a second
	P           float64 `json:"p"`
	Words       string  `json:"words"`
}

// Plan is a plan that flipped after the moment.
type Plan struct {
	Class       string `json:"class"` // its ID
	Fingerprint string `json:"fingerprint"`
	Time        int64  `json:"time"` // Unix seconds
	Old         string `json:"old"`  // the plan's ID before
	New         string `json:"new"`  // and now
}

// Server is what changed on one server.
type Server struct {
	Instance string    `json:"instance"` // its ID
	Words    []string  `json:"words"`    // sentences, the worst first; never empty
	Enough   bool      `json:"enough"`   // enough minutes were observed
	Before   Window    `json:"before"`
	After    Window    `json:"after"`
	Measures []Measure `json:"measures"`
	Classes  []Class   `json:"classes"`
	Plans    []Plan    `json:"plans"`

	Name     string                `json:"name"`
	Findings []state.FindingRecord `json:"findings"` // that began after the moment
}

// Answer is what changed after an event.
type Answer struct {
	Event    fleet.Event `json:"event"`
	Before   Window      `json:"before"` // the least of the servers
	After    Window      `json:"after"`
	Complete bool        `json:"complete"` // the window after is over
	Servers  []Server    `json:"servers"`
	LeftOut  []string    `json:"left_out,omitempty"` // servers that were not compared, for there are too many
}

// Add takes a server, with the findings that began there after the event.
func (a *Answer) Add(s Server, findings []state.FindingRecord) {
	s.Findings = []state.FindingRecord{}
	var words []string
	for _, f := range findings {
		if f.Began().Before(a.Event.Time) {
			continue
		}
		s.Findings = append(s.Findings, f)
		words = append(words, fmt.Sprintf("%s, begun %s: %s", f.Worst.Severity, f.Began().UTC().Format("15:04:05Z"), f.Worst.What))
	}
	if len(words) > 0 && s.Enough && len(s.Measures) > 0 && !s.Changed() {
		s.Words = append(words, "statements: "+s.Words[0])
	} else {
		s.Words = append(words, s.Words...)
	}
	if len(a.Servers) == 0 || s.Before.Minutes < a.Before.Minutes {
		a.Before.Minutes = s.Before.Minutes
	}
	if len(a.Servers) == 0 || s.After.Minutes < a.After.Minutes {
		a.After.Minutes = s.After.Minutes
	}
	a.Servers = append(a.Servers, s)
}

// Changed reports whether anything of the statements changed.
func (s Server) Changed() bool {
	return len(s.Classes) > 0 || len(s.Plans) > 0 || slices.ContainsFunc(s.Measures, func(m Measure) bool { return m.Verdict == Up || m.Verdict == Down })
}

// minute is a minute of a server: the sum of all statements, and each class.
type minute struct {
	total   fleet.Cost
	classes map[string]fleet.Cost
}

// known is what is known of a class.
type known struct {
	fingerprint string
	first       int64 // Unix seconds
}

// seen is all that was read of a server.
type seen struct {
	before, after []minute // those that were observed
	classes       map[string]known
	earliest      int64 // the first minute that is kept of the server
	at            int64
}

// Read compares the windows before and after a moment on one server.
func Read(ctx context.Context, store events.Store, instance string, at int64, before, after Window) (Server, error) {
	s := seen{classes: map[string]known{}, at: at}
	var err error
	if s.before, err = s.read(ctx, store, instance, before); err != nil {
		return Server{}, err
	}
	if s.after, err = s.read(ctx, store, instance, after); err != nil {
		return Server{}, err
	}
	before.Minutes, after.Minutes = len(s.before), len(s.after)
	out := s.compare()
	out.Instance, out.Before, out.After = instance, before, after
	if after.Minutes == 0 || before.Minutes == 0 {
		return out, nil
	}
	if out.Plans, err = flips(ctx, store, instance, at, before, after); err != nil {
		return Server{}, err
	}
	for _, p := range out.Plans {
		out.Words = append(out.Words, "a new plan: "+short(p.Fingerprint))
	}
	if !out.Changed() && out.Enough {
		out.Words = []string{fmt.Sprintf("no change that stands out of the noise: %d minutes before and %d after compared", len(s.before), len(s.after))}
	}
	return out, nil
}

// read reads the minutes of a window that were observed. A minute in which nothing ran is observed as well.
func (s *seen) read(ctx context.Context, store events.Store, instance string, w Window) (list []minute, err error) {
	if w.To <= w.From {
		return nil, nil
	}
	covered, err := store.Covered(ctx, events.Range{From: w.From, To: w.To}, []string{instance}, int(w.To-w.From)/60)
	if err != nil {
		return nil, err
	}
	for at := w.From; at < w.To; at += 60 {
		if !slices.ContainsFunc(covered, func(c events.Covered) bool { return c.From <= at && at < c.To }) {
			continue
		}
		top, err := store.Top(ctx, events.TopQuestion{Range: events.Range{From: at, To: at + 60}, Instances: []string{instance}, Limit: events.MaxLimit})
		if err != nil {
			return nil, err
		}
		m := minute{total: top.Total, classes: make(map[string]fleet.Cost, len(top.Classes))}
		for _, c := range top.Classes {
			m.classes[c.ID] = c.Cost
			s.classes[c.ID] = known{c.Fingerprint, c.FirstSeen}
		}
		s.earliest = top.First
		list = append(list, m)
	}
	return list, nil
}

// flips are the plans that changed after the moment.
func flips(ctx context.Context, store events.Store, instance string, at int64, before, after Window) (list []Plan, err error) {
	a, err := store.Compare(ctx, events.CompareQuestion{A: events.Range{From: before.From, To: before.To}, B: events.Range{From: after.From, To: after.To}, Instances: []string{instance}, Limit: events.MaxLimit})
	if err != nil {
		return nil, err
	}
	for _, c := range a.Changes {
		for _, f := range c.Flips {
			if f.Time >= at && f.Time < after.To {
				list = append(list, Plan{Class: c.ID, Fingerprint: c.Fingerprint, Time: f.Time, Old: f.Old, New: f.New})
			}
		}
	}
	slices.SortFunc(list, func(a, b Plan) int { return cmp.Compare(a.Time, b.Time) })
	return list, nil
}
