// Package rules turns the state of an instance into words: what is wrong, how much,
// since when, and how to fix it. It does no input or output, and the time is passed
// in, so that every rule can be tested by a table.
//
// The ids are stable; people use them in their alerts.
package rules

import (
	"cmp"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/watch/stall"
)

// Snapshot is what is known about an instance at its newest tick. Functions may be
// nil, values may be absent: a rule without its metric says nothing.
type Snapshot struct {
	Now      time.Time // in the zone that times are shown in
	Instance fleet.Instance

	Up        bool
	DownSince time.Time     // zero with Up false: not reached yet, and it is too early to complain
	Down      fleet.Trouble // why it is down, as what the server does: "refuses connections"
	Hung      bool          // with Up false: it accepts connections
	Restarted time.Time     // when it was started last, if that was seen; else zero
	Log       []string      // the last lines of its error log, if it is down or was restarted, and they can be read
	Late      bool          // this tick took longer than a tenth of its interval

	Value func(key string) (float64, bool) // a metric now
	Rate  func(key string) (float64, bool) // the growth of a counter a second, over the last tick or some
	Keys  func(name string) []string       // the keys of all series of a metric: one for each disk
	Text  func(variable string) string     // a global variable, or a status variable that is no number

	Channels []fleet.Channel
	Locks    []read.LockWait // who waits for whose lock
	Old      []read.OldTransaction
	Gaps     []fleet.Trouble
	Notes    []fleet.Finding // what others found about it, such as a backup that is too old; reported as it is
	Host     *Snapshot       // the host it runs on, where Risso watches that too
}

func (s *Snapshot) value(key string) (float64, bool) {
	if s == nil || s.Value == nil {
		return 0, false
	}
	return s.Value(key)
}

func (s *Snapshot) rate(key string) (float64, bool) {
	if s == nil || s.Rate == nil {
		return 0, false
	}
	return s.Rate(key)
}

func (s *Snapshot) keys(name string) []string {
	if s == nil || s.Keys == nil {
		return nil
	}
	return s.Keys(name)
}

func (s *Snapshot) text(variable string) string {
	if s == nil || s.Text == nil {
		return ""
	}
	return s.Text(variable)
}

// setting is a global variable as text, "" where it is not known.
func (s *Snapshot) setting(name string) string {
	if text := s.text(name); text != "" {
		return text
	}
	if v, ok := s.value(variablePrefix + name); ok {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// first is the value of the first key that there is: servers call things differently.
func (s *Snapshot) first(keys ...string) (float64, bool) {
	for _, k := range keys {
		if v, ok := s.value(k); ok {
			return v, true
		}
	}
	return 0, false
}

// State is the state of an instance, in one word.
type State string

// The states, from good to bad.
const (
	StateOK       State = "ok"
	StateNew      State = "new" // not reached yet
	StateWarning  State = "warning"
	StateCritical State = "critical"
	StateDown     State = "down"
)

// Verdict is what to say about an instance now.
type Verdict struct {
	State    State
	Words    string          // one sentence
	Since    time.Time       // since when it is in this state
	Findings []fleet.Finding // worst first
	Stall    stall.Stall     // of a server: whether it stalls
}

// The times that keep findings from flickering.
const (
	holdToBegin = 3 * time.Second  // a rule must hold so long before it is reported
	holdToEnd   = 10 * time.Second // and must have been quiet so long before it is dropped
)

// Judge remembers, for one instance, what held since when and what is usual. The
// zero value is ready. It is for one goroutine.
type Judge struct {
	Hold time.Duration // how long a rule must hold before it is reported, unless it says so itself; 0: 3 s

	entries map[string]*entry
	levels  map[string]*level
	counts  map[string]float64 // decaying counts, such as deadlocks in the last minute
	flags   map[string]bool    // what has once been seen
	spaces  map[string]*filling
	stalls  stall.Detector
	blindTo map[string]bool // what could not be read at the look before; nil: there was none since it answers
	last    time.Time
	state   State
	since   time.Time

	held     map[string]time.Time // since when what held when Risso last looked, and was not found again yet
	answered time.Time            // since when the instance answers
}

// ResumeGrace is how long after the first look at an instance that answers a finding may be found again as the one of before.
const ResumeGrace = time.Minute

// Resume tells a new Judge what held when Risso last looked. What is found again is told at once, and since when it began then. It is
// called before the first look.
func (j *Judge) Resume(held []fleet.Finding) {
	j.held = map[string]time.Time{}
	for _, f := range held {
		j.held[f.ID+"\x00"+f.Subject] = f.Since
	}
}

// resume says since when a finding held before Risso was started.
func (j *Judge) resume(key string, now time.Time) (time.Time, bool) {
	since, ok := j.held[key]
	delete(j.held, key)
	return since, ok && now.Sub(j.answered) <= ResumeGrace
}

// connectionSubject begins the subject of a finding about one connection, as blockers.Session names it.
const connectionSubject = "connection "

// forgetConnections drops what was found of connections before the server was started last: their numbers begin again with it.
func (j *Judge) forgetConnections(s *Snapshot) {
	uptime, ok := s.value(statusPrefix + "uptime")
	if !ok {
		return
	}
	started := s.Now.Add(-time.Duration(uptime) * time.Second)
	maps.DeleteFunc(j.held, func(key string, since time.Time) bool {
		_, subject, _ := strings.Cut(key, "\x00")
		return strings.HasPrefix(subject, connectionSubject) && since.Before(started)
	})
}

// entry is a finding that is pending, reported, or about to end.
type entry struct {
	first, last time.Time
	told        bool
	instant     bool
	order       int
	severe      [fleet.SeverityCritical + 1]time.Time // when it last was as bad as that
	finding     fleet.Finding
}

// candidate is a rule that holds at this moment.
type candidate struct {
	id       string
	value    float64 // how bad, in the finding's own measure: README.md has the units
	subject  string  // distinguishes findings of one id: the channel, the disk
	severity fleet.Severity
	head     string // the words before "since 10:32:07"
	tail     string // the words after it
	why      string
	about    string // fleet.Finding.Case
	remedy   string // statements, or a shell command of a host's finding; what is no statement stands in tail
	chart    string
	hold     time.Duration // how long it must hold; zero is holdToBegin, negative: it is reported when it is first seen
	at       time.Time     // since when, where that is known; else since it was first seen
	now      bool          // begins and ends immediately
	whole    bool          // head is the whole sentence
}

// round is one look at one snapshot.
type round struct {
	*Snapshot
	j     *Judge
	dt    time.Duration // since the last look
	found []candidate

	flush      flush // of the busiest disk, worked out once
	flushKnown bool
	flushTried bool
	stall      stall.Stall
}

func (r *round) add(c candidate) { r.found = append(r.found, c) }

// rulesOf lists the rules in the order in which findings of equal severity are listed:
// what explains the others comes first.
func rulesOf(kind fleet.Kind) []func(*round) {
	if kind == fleet.KindHost {
		return []func(*round){oomKill, diskReadOnly, diskFull, diskTrend, memoryPressure, swapping, ioPressure, ioSlow, cpuSaturated, cpuStolen, collectionLate, noted}
	}
	return []func(*round){
		restarted, galeraPrimary, replicationStopped, stalled, connections, commitWaits, blockedBy, metadataLocks, rowLocks, semisync, flowControl, galeraSynced,
		pileUp, replicationLag, replicaWritable, redoPressure, bufferPoolStarved, longTransactions, undoHistory, deadlocks,
		aborted, throttled, memoryLimit, certificate, clockSkew, blind, collectionLate, noted,
	}
}

// Judge looks at a snapshot and says what is wrong.
func (j *Judge) Judge(s *Snapshot) Verdict {
	j.begin(s.Now)
	r := &round{Snapshot: s, j: j, dt: min(max(s.Now.Sub(j.last), 0), 10*time.Second)}
	if j.last.IsZero() {
		r.dt = 0
	}
	j.last = s.Now
	if !s.Up {
		return j.down(s)
	}
	if j.answered.IsZero() {
		j.answered = s.Now
		j.forgetConnections(s)
	}
	for _, rule := range rulesOf(s.Instance.Kind) {
		rule(r)
	}
	return r.verdict(j.settle(s.Now, r.found))
}

// begin makes the maps, and forgets all when the clock was set back.
func (j *Judge) begin(now time.Time) {
	if j.entries == nil || now.Before(j.last.Add(-time.Minute)) {
		*j = Judge{Hold: j.Hold, held: j.held, entries: map[string]*entry{}, levels: map[string]*level{}, counts: map[string]float64{}, flags: map[string]bool{}, spaces: map[string]*filling{}}
	}
}

// down says that the instance cannot be read. Nothing else is known of it then;
// what held before starts over when it is back.
func (j *Judge) down(s *Snapshot) Verdict {
	clear(j.entries)
	j.blindTo = nil
	stalled := j.stalls.Look(stall.Reading{Tick: s.Now.Unix()})
	if s.DownSince.IsZero() {
		return Verdict{State: StateNew, Words: "not reached yet", Since: j.enter(StateNew, s.Now)}
	}
	reason := s.Down.Why
	if reason == "" {
		reason = "does not answer"
	}
	what := "the server "
	if s.Instance.Kind == fleet.KindHost {
		what = "the host "
	}
	f := fleet.Finding{ID: "server.down", Severity: fleet.SeverityCritical, Since: s.DownSince, Chart: "throughput"}
	if s.Hung {
		f.ID = "server.hung"
		reason = "accepts connections, but does not answer"
	}
	if since, ok := j.held[f.ID+"\x00"]; ok && !since.IsZero() { // it has been down since before Risso was started
		f.Since = since
	}
	down := f.Since
	since := " since " + clock(down, s.Now)
	if f.What = what + reason + since; !isVerb(reason) {
		f.What = what + "cannot be read" + since + ": " + cut(reason, 200)
	}
	if s.Down.Remedy != "" && !s.Hung {
		f.What += "; " + s.Down.Remedy
	}
	f.What += lastWords(s.Log)
	j.enter(StateDown, down)
	return Verdict{State: StateDown, Words: f.What, Since: down, Stall: stalled, Findings: append([]fleet.Finding{f}, s.Notes...)} // what others found is known nevertheless
}

// isVerb tells "refuses connections" from the text of an error, which is no part
// of a sentence.
func isVerb(reason string) bool {
	return reason[0] >= 'a' && reason[0] <= 'z' && !strings.ContainsAny(reason, ":(")
}

// enter notes a change of state and tells since when it is.
func (j *Judge) enter(s State, now time.Time) time.Time {
	if j.state != s {
		j.state, j.since = s, now
	}
	return j.since
}

// settle applies the hysteresis to what holds now.
func (j *Judge) settle(now time.Time, found []candidate) []fleet.Finding {
	for i, c := range found {
		key := c.id + "\x00" + c.subject
		e := j.entries[key]
		if e == nil {
			e = &entry{first: now}
			if !c.at.IsZero() {
				e.first = c.at
			}
			if since, ok := j.resume(key, now); ok {
				e.told = true
				if !since.IsZero() {
					e.first = since
				}
			}
			j.entries[key] = e
		}
		hold := c.hold
		if hold == 0 {
			hold = cmp.Or(j.Hold, holdToBegin)
		}
		e.last, e.order, e.instant = now, i, c.now
		e.told = e.told || c.now || now.Sub(e.first) >= hold
		e.finding = fleet.Finding{ID: c.id, Subject: c.subject, Severity: e.severity(c.severity, now), Since: e.first, Chart: c.chart, Value: c.value, Case: c.about,
			Trouble: fleet.Trouble{What: c.head + " since " + clock(e.first, now) + c.tail, Why: c.why, Remedy: c.remedy}}
		if c.whole {
			e.finding.What = c.head
		}
	}
	var out []*entry
	for key, e := range j.entries {
		quiet := now.Sub(e.last)
		switch {
		case e.told && (quiet == 0 || !e.instant && quiet < holdToEnd):
			if quiet > 0 {
				e.finding.Last = e.last
			}
			out = append(out, e)
		case quiet > 0:
			delete(j.entries, key) // a pending one that broke off, or a reported one that ended
		}
	}
	return sorted(out)
}

// noted reports what others found.
func noted(r *round) {
	for _, f := range r.Notes {
		r.add(candidate{id: f.ID, subject: f.Subject, value: f.Value, severity: f.Severity, head: f.What, why: f.Why, about: f.Case, remedy: f.Remedy, chart: f.Chart, at: f.Since, now: true, whole: true})
	}
}

// severity lets a finding get worse immediately, and better only when it has been so
// for a while: one that sways around a limit must not flicker.
func (e *entry) severity(s fleet.Severity, now time.Time) fleet.Severity {
	e.severe[s] = now
	for worse := fleet.SeverityCritical; worse > s; worse-- {
		if at := e.severe[worse]; !at.IsZero() && now.Sub(at) < holdToEnd {
			return worse
		}
	}
	return s
}

// sorted puts the worst first; among equals, what explains the others.
func sorted(es []*entry) []fleet.Finding {
	sortEntries(es)
	out := make([]fleet.Finding, len(es))
	for i, e := range es {
		out[i] = e.finding
	}
	return out
}

// verdict sums the findings up in one sentence.
func (r *round) verdict(findings []fleet.Finding) Verdict {
	j, s := r.j, r.Snapshot
	v := Verdict{State: StateOK, Findings: findings, Stall: r.stall}
	if len(findings) > 0 {
		switch findings[0].Severity {
		case fleet.SeverityCritical:
			v.State = StateCritical
		case fleet.SeverityWarning:
			v.State = StateWarning
		}
	}
	if v.State == StateOK {
		v.Since = j.enter(StateOK, s.Now)
		v.Words = r.healthy()
		return v
	}
	v.Since = findings[0].Since
	j.enter(v.State, v.Since)
	v.Words = findings[0].What
	if n := len(findings) - 1; n > 0 {
		v.Words += "; and " + plural(float64(n), "more finding", "more findings")
	}
	return v
}
