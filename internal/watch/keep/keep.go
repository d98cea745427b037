// Package keep decides what of the verdicts on an instance is written down: which findings began, got worse and ended, and which ended at
// a moment in which nobody looked. It does no input or output.
package keep

import (
	"encoding/json"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/rules"
)

// Keeper knows what is written down of one instance. It is for one goroutine; the zero value knows of nothing.
type Keeper struct {
	open    map[string]*kept // by state.FindingKey
	written time.Time
	again   bool
}

// kept is a finding that is open in the store.
type kept struct {
	finding fleet.Finding // at its worst, as written
	unsure  bool          // it held before Risso was started, and was not found again since
	last    time.Time     // when it last held, as far as that is known; zero: at the last look
	until   time.Time     // an unsure one counts as ended from then on; zero: the instance was not looked at yet
}

// Resume tells the Keeper what is open in the store.
func (k *Keeper) Resume(open []state.FindingRecord) {
	k.open = make(map[string]*kept, len(open))
	for _, r := range open {
		k.open[state.FindingKey(r.First)] = &kept{finding: r.Worst, unsure: true, last: r.Seen}
	}
}

const (
	heartbeat = time.Minute // how often it is written that what is open still holds
	worsened  = 1.1         // a value that grew by this factor is written
)

// Look takes a verdict, and says what of it is to be written, if anything is. evidence is asked for what was seen with a finding that is
// new, or worse than before; it may be nil.
func (k *Keeper) Look(instance string, at time.Time, v rules.Verdict, evidence func(fleet.Finding) json.RawMessage) (state.Look, bool) {
	l := state.Look{Instance: instance, At: at, Evidence: map[string]json.RawMessage{}, Unseen: map[string]bool{}, Last: map[string]time.Time{}}
	if v.State == rules.StateNew {
		return l, false
	}
	if k.open == nil {
		k.open = map[string]*kept{}
	}
	due := k.again || len(k.open) > 0 && at.Sub(k.written) >= heartbeat
	k.again = false
	holds := map[string]bool{}
	for _, f := range v.Findings {
		key := state.FindingKey(f)
		if holds[key] {
			continue
		}
		if k.another(key, f) {
			l.Unseen[key] = true
			delete(k.open, key)
			due = true
			continue // it is opened by the next look
		}
		holds[key] = true
		l.Findings = append(l.Findings, f)
		if !f.Last.IsZero() {
			l.Last[key] = f.Last
		}
		if k.hold(key, f) {
			due = true
			if evidence != nil {
				if e := evidence(f); e != nil {
					l.Evidence[key] = e
				}
			}
		}
	}
	for key, o := range k.open {
		switch {
		case holds[key]:
		case o.stays(at):
			l.Findings = append(l.Findings, o.finding)
			l.Last[key] = o.last
		default:
			if !o.last.IsZero() {
				l.Last[key] = o.last
			}
			l.Unseen[key] = o.unsure || v.State == rules.StateDown // what is down cannot be looked at
			delete(k.open, key)
			due = true
		}
	}
	if due {
		k.written = at
	}
	return l, due
}

// Again makes the next Look due: what the last one said could not be written.
func (k *Keeper) Again() { k.again = true }

// another says whether a finding is not the one of that name of before Risso was started, which ended meanwhile: it began after that was last
// seen.
func (k *Keeper) another(key string, f fleet.Finding) bool {
	o := k.open[key]
	return o != nil && o.unsure && !o.last.IsZero() && f.Since.After(o.last) && !f.Since.Equal(o.finding.Since)
}

// hold notes a finding that holds, and says whether it is new, worse than what is written, or about something else.
func (k *Keeper) hold(key string, f fleet.Finding) bool {
	o := k.open[key]
	if o == nil {
		k.open[key] = &kept{finding: f, last: f.Last}
		return true
	}
	o.unsure, o.last = false, f.Last
	if f.Other(o.finding) || f.Severity > o.finding.Severity || f.Severity == o.finding.Severity && f.Value > o.finding.Value*worsened {
		o.finding = f
		return true
	}
	return false
}

// stays says whether what was not found may hold nevertheless: after a start of Risso the rules take a while to find it again.
func (o *kept) stays(at time.Time) bool {
	if !o.unsure || o.finding.ID == "server.down" || o.finding.ID == "server.hung" { // an instance that answers is not down
		return false
	}
	if o.until.IsZero() {
		o.until = at.Add(rules.ResumeGrace)
	}
	return at.Before(o.until)
}
