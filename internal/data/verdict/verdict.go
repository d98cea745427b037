// Package verdict says how well a server is protected, in words: what is out of date, what was never proven, what
// fails. It does no input or output; the current time is passed in.
package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/data/schedule"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/state"
)

// Want is how a server should be protected.
type Want struct {
	Backup   schedule.Schedule // zero: by hand
	Drill    schedule.Schedule
	Checksum schedule.Schedule
	Age      Limits // of the last backup; 0: as the schedule says, or 26 h and 52 h without one
	Proof    Limits // since a backup was proven; 0: as the schedule of drills says, or 30 days without one; never lost
	Server   string // its name in File; "": unknown
	File     string // the config file that names the server; "": none
	Mirror   bool   // binary logs should be mirrored
	Behind   Limits // how far the mirror may be behind; 0: 2 minutes and an hour
	Place    string
	Outage   Outage
	Newest   Uncounted // the newest backup, when it does not count
	Strange  string    // which mirrored logs do not count, and why: they are not signed by a trusted key; "": none
	Doubt    string    // why the newest proof counts for nothing; "": it counts, or there is none
	Halted   string    // what keeps the mirror from following; "": nothing that is known
	Started  time.Time // since when jobs are run: a mirror may not have begun yet; zero: long ago
	Since    time.Time // when this was first wanted: what could not have been done yet is not missed; zero: long ago
}

// Limits are the ages from which something is late, which is a warning, and lost, which is critical. 0: the default.
type Limits struct{ Late, Lost time.Duration }

// Never is a limit that is not reached.
const Never = 100 * 365 * 24 * time.Hour

// Outage is what is wrong with the place of the backups. The zero value: nothing.
type Outage struct {
	Words string
	Gone  bool // it can be read, and there are no backups any more
	Since time.Time
}

// State is a verdict in a word.
type State string

// The states, from good to bad.
const (
	OK       State = "ok"
	Warning  State = "warning"
	Critical State = "critical"
)

// Verdict describes how a server is protected.
type Verdict struct {
	State    State           `json:"state"`
	Words    string          `json:"words"`    // one sentence
	Findings []fleet.Finding `json:"findings"` // worst first; ids begin with "protect."
}

// failedBackup is the finding that the last backup failed.
const failedBackup = "protect.failed_" + string(state.JobBackup)

// The limits where no schedule says more.
const (
	defaultAge   = 26 * time.Hour
	defaultProof = 30 * 24 * time.Hour
	mirrorLate   = 2 * time.Minute
	mirrorLost   = time.Hour
)

// Facts is what is known of how a server is protected.
type Facts struct {
	state.Protection
	Mirrors []state.Mirror // of this server
	Source  string         // the watched server that it replicates from, if that one is or should be backed up; else ""
	First   time.Time      // when the oldest backup that is there ended; zero: unknown
	Short   bool           // the mirrored logs are known to end before the position of the last backup
}

// Uncounted is a backup that does not count, and why. The zero value: there is none.
type Uncounted struct {
	ID, Why string
	Kind    UncountedKind
}

// UncountedKind is what makes a backup not count.
type UncountedKind int

const (
	// Hollow is one that holds too little to protect anything: see repo.Hollow.
	Hollow UncountedKind = iota
	// Part is a backup of only a part of its server. It matters only if there is no other.
	Part
	// Strange is one not signed by a trusted key: see repo.Repo.Strangers. No restore would read it.
	Strange
	// Broken is one that is damaged, or has lost its manifest.
	Broken
)

// Judge says how a server is protected; a want of nil: nothing is configured for it, and only what exists counts.
func Judge(f Facts, want *Want, now time.Time) Verdict {
	r := round{p: f, now: now}
	if want == nil && f.LastBackup == nil && f.Source != "" {
		return Verdict{State: OK, Words: "a replica of " + f.Source + ", whose backups contain its data", Findings: []fleet.Finding{}}
	}
	if want == nil && f.LastBackup == nil {
		r.add("never", fleet.SeverityCritical, time.Time{}, "never backed up, and nothing is planned")
		return r.verdict()
	}
	if want != nil {
		r.want = *want
	}
	r.place()
	r.uncounted()
	r.fresh()
	r.proven()
	r.mirror()
	r.failing()
	r.waiting()
	return r.verdict()
}

type round struct {
	p     Facts
	want  Want
	now   time.Time
	found []fleet.Finding
}

func (r *round) add(id string, s fleet.Severity, since time.Time, format string, args ...any) {
	place := r.want.Place
	if place == "" {
		place = "DIR"
		if b := r.p.LastBackup; b != nil {
			place = b.Place
		}
	}
	remedy := ""
	_, backs := r.running(state.JobBackup)
	switch id {
	case "never", "stale", "mirror_begins":
		if backs {
			break // it is being fixed
		}
		remedy = r.backup(place)
	case strings.TrimPrefix(failedBackup, "protect."):
		if !backs {
			remedy = r.backup(place)
		}
	case "unproven", "drill_failed", "failed_" + string(state.JobDrill):
		remedy = "risso drill --from " + quote(place)
	case "mirror":
		remedy = "risso doctor --for serve,follow --dsn " + r.server()
	case "failed_" + string(state.JobChecksum):
		remedy = "risso checksum --dsn " + r.server()
	case "failed_" + string(state.JobVerify):
		remedy = "risso verify --from " + quote(place)
	case "hollow":
		remedy = "risso backup accept --from " + quote(place) + " " + r.want.Newest.ID
	case "mirror_strange":
		remedy = "risso verify --from " + quote(place)
	case "strange", "broken":
		remedy = "risso verify --quick --from " + quote(place)
	case "clock":
		remedy = "risso backup prune --from " + quote(place) + " --remove " + r.p.Ahead.ID
	}
	r.found = append(r.found, fleet.Finding{ID: "protect." + id, Severity: s, Since: since, Trouble: fleet.Trouble{What: fmt.Sprintf(format, args...), Remedy: remedy}})
}

// backup is the command that makes a backup.
func (r *round) backup(place string) string {
	return "risso backup --dsn " + r.server() + " --to " + quote(place)
}

// server is the server as commands take it after --dsn.
func (r *round) server() string {
	switch {
	case r.want.Server == "":
		return "…"
	case r.want.File == "":
		return quote(r.want.Server)
	}
	return quote(r.want.Server) + " --config " + quote(r.want.File)
}

// quote writes a place as a shell takes it.
func quote(place string) string {
	if strings.Trim(place, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-:@") == "" {
		return place
	}
	return "'" + strings.ReplaceAll(place, "'", `'\''`) + "'"
}

// running returns the current run of a kind.
func (r *round) running(kind state.JobKind) (state.Run, bool) {
	i := slices.IndexFunc(r.p.Running, func(n state.Run) bool { return n.Kind == kind })
	if i < 0 {
		return state.Run{}, false
	}
	return r.p.Running[i], true
}

// place says whether the backups can be reached at all.
func (r *round) place() {
	switch t := r.want.Outage; {
	case t.Words == "":
	case t.Gone:
		r.add("place", fleet.SeverityCritical, t.Since, "the backups are gone: %s", t.Words)
	default:
		r.add("place", fleet.SeverityWarning, t.Since, "the place of the backups cannot be read: %s", t.Words)
	}
}

// fresh says whether the last backup is as young as it should be.
func (r *round) fresh() {
	b := r.p.LastBackup
	run, runs := r.running(state.JobBackup)
	if b == nil {
		never, what := "never backed up", "the first backup"
		if u := r.want.Newest; u.ID != "" && u.Kind == Part {
			never, what = fmt.Sprintf("never backed up as a whole, the newest backup, %s, %s", u.ID, u.Why), "the first whole one"
		}
		if u := r.want.Newest; u.ID != "" && (u.Kind == Strange || u.Kind == Broken) {
			never, what = "no backup counts", "one that does"
		}
		first, _ := r.want.ages(r.want.Since)
		switch {
		case runs:
			r.add("never", fleet.SeverityWarning, r.want.Since, "%s: %s has been running since %s", never, what, r.since(run.Began))
		case r.want.Since.IsZero() || r.now.After(first):
			r.add("never", fleet.SeverityCritical, r.want.Since, "%s", never)
		default:
			r.add("never", fleet.SeverityWarning, r.want.Since, "%s: %s is due %s", never, what, r.clock(r.want.Backup.Next(r.want.Since.In(r.now.Location()))))
		}
		return
	}
	r.ahead()
	late, lost := r.want.ages(b.Began.In(r.now.Location()))
	switch age := ago(r.now.Sub(b.Began)); {
	case !r.now.After(late):
	case runs && !r.now.After(lost):
		r.add("stale", fleet.SeverityWarning, late, "the last backup is %s old; the next has been running since %s", age, r.since(run.Began))
	case !r.now.After(lost):
		r.add("stale", fleet.SeverityWarning, late, "the last backup is %s old: the one due %s is missing", age, r.clock(r.dueAfter(b.Began, late)))
	default:
		r.add("stale", fleet.SeverityCritical, late, "the last backup is %s old", age)
	}
}

// uncounted says that the newest backup does not count. One that a stranger put there is reported, and those before it show how bad it is.
func (r *round) uncounted() {
	const words = "the newest backup, %s, does not count: %s"
	switch u := r.want.Newest; {
	case u.ID == "" || u.Kind == Part: // fresh reports that
	case u.Kind == Strange:
		r.add("strange", fleet.SeverityWarning, time.Time{}, words, u.ID, u.Why)
	case u.Kind == Broken:
		r.add("broken", fleet.SeverityCritical, time.Time{}, words, u.ID, u.Why)
	default:
		r.add("hollow", fleet.SeverityCritical, time.Time{}, words, u.ID, u.Why)
	}
}

// ahead says that backups are dated ahead of now: their age is not known.
func (r *round) ahead() {
	switch b := r.p.Ahead; {
	case b == nil || !fleet.Ahead(b.Began, r.now):
	case r.p.LastBackup.ID == b.ID:
		r.add("clock", fleet.SeverityCritical, time.Time{}, "all backups are dated in the future, the last by %s: a clock is wrong, and their age is unknown", ago(b.Began.Sub(r.now)))
	default:
		r.add("clock", fleet.SeverityWarning, time.Time{}, "backup %s is dated %s in the future: a clock was wrong, and it does not count", b.ID, ago(b.Began.Sub(r.now)))
	}
}

// dueAfter is when the backup after one of that time was due.
func (r *round) dueAfter(began, otherwise time.Time) time.Time {
	if r.want.Age.Late > 0 || zero(r.want.Backup) {
		return otherwise
	}
	return r.want.Backup.Next(began.In(r.now.Location()))
}

func zero(s schedule.Schedule) bool { return s.String() == "" }

// overdue says when something that was last done at a time is late, and when it is lost: late a second time. A plan lets it
// come later than it says by a quarter of the time between two, at least 15 minutes and at most 4 hours, because it takes time.
func overdue(plan schedule.Schedule, last time.Time, limits Limits, otherwise time.Duration) (late, lost time.Time) {
	if zero(plan) {
		late, lost = last.Add(otherwise), last.Add(2*otherwise)
	} else {
		first := plan.Next(last)
		second := plan.Next(first)
		grace := min(max(second.Sub(first)/4, 15*time.Minute), 4*time.Hour)
		late, lost = first.Add(grace), second.Add(grace)
	}
	switch {
	case limits.Late == Never:
		late, lost = last.Add(Never), last.Add(Never)
	case limits.Late > 0:
		late, lost = last.Add(limits.Late), last.Add(2*limits.Late)
	}
	if limits.Lost > 0 {
		lost = last.Add(limits.Lost)
	}
	return late, lost
}

// ages says when a backup that began then is late, and when it is lost.
func (w Want) ages(began time.Time) (late, lost time.Time) {
	return overdue(w.Backup, began, w.Age, defaultAge)
}

// proofs says the same of a proof that was made then. Only a limit of its own makes one lost.
func (w Want) proofs(made time.Time) (late, lost time.Time) {
	late, lost = overdue(w.Drill, made, w.Proof, defaultProof)
	if w.Proof.Lost == 0 {
		lost = made.Add(Never)
	}
	return late, lost
}

// AgeLimits are the ages from which a backup that began then is late and lost, as monitoring shows them.
func (w Want) AgeLimits(began time.Time) Limits {
	late, lost := w.ages(began)
	return Limits{late.Sub(began), lost.Sub(began)}
}

// ProofLimits are those of a proof that was made then.
func (w Want) ProofLimits(made time.Time) Limits {
	late, lost := w.proofs(made)
	return Limits{late.Sub(made), lost.Sub(made)}
}

// BehindLimits are those of a mirror.
func (w Want) BehindLimits() Limits {
	l := w.Behind
	if l.Late == 0 {
		l.Late = mirrorLate
	}
	if l.Lost == 0 {
		l.Lost = max(mirrorLost, l.Late)
	}
	return l
}

// proven says whether a backup was restored and found good, and when.
func (r *round) proven() {
	p := r.p
	if p.LastBackup == nil {
		return
	}
	if d := p.LastDrill; d != nil && !d.Passed {
		r.add("drill_failed", fleet.SeverityCritical, d.Ended, "the last drill failed %s: %s", r.clock(d.Ended), orNothing(d.Text, "it does not say why"))
	}
	run, runs := r.running(state.JobDrill)
	if p.LastProven == nil {
		if runs {
			r.add("unproven", fleet.SeverityWarning, p.LastBackup.Ended, "no backup was ever proven: the first drill has been running since %s", r.since(run.Began))
			return
		}
		first := p.LastBackup.Ended
		if !r.p.First.IsZero() {
			first = r.p.First
		}
		if _, lost := r.want.proofs(first); r.want.Proof.Late < Never || r.now.After(lost) {
			words := "no backup was ever proven: it is unknown whether they can be restored"
			if r.want.Doubt != "" {
				words = "no backup was ever proven by a trusted key, the newest proof does not count: " + r.want.Doubt
			}
			r.add("unproven", r.beyond(lost), p.LastBackup.Ended, "%s", words)
		}
		return
	}
	if fleet.Ahead(p.ProvenAt, r.now) {
		r.add("unproven", fleet.SeverityWarning, time.Time{}, "the last proof that a backup restores is dated %s in the future: a clock was wrong, and its age is unknown", ago(p.ProvenAt.Sub(r.now)))
		return
	}
	late, lost := r.want.proofs(p.ProvenAt.In(r.now.Location()))
	if r.now.After(late) || r.now.After(lost) {
		words := "the last proof that a backup restores is %s old"
		if r.want.Doubt != "" {
			words = "the last proof that counts is %s old, and a newer one does not count: " + strings.ReplaceAll(r.want.Doubt, "%", "%%")
		}
		r.add("unproven", r.beyond(lost), late, words, ago(r.now.Sub(p.ProvenAt)))
	}
}

// beyond is how bad something is that is late, and lost from a time on.
func (r *round) beyond(lost time.Time) fleet.Severity {
	if r.now.After(lost) {
		return fleet.SeverityCritical
	}
	return fleet.SeverityWarning
}

// mirror says whether binary logs are mirrored up to now.
func (r *round) mirror() {
	p := r.p
	if r.want.Strange != "" {
		r.add("mirror_strange", fleet.SeverityWarning, time.Time{}, "%s", r.want.Strange)
	}
	if !r.want.Mirror {
		return
	}
	run, runs := r.running(state.JobMirror)
	last := p.WindowTo
	for _, m := range p.Mirrors {
		if m.Last.After(last) {
			last = m.Last
		}
	}
	limits := r.want.BehindLimits()
	switch behind := r.now.Sub(last); {
	case r.now.Sub(r.want.Started) < mirrorLate: // it may be about to begin
	case runs && r.now.Sub(run.Began) < mirrorLate && (r.want.Started.IsZero() || last.IsZero()): // it has just begun, and not because it failed
	case last.IsZero() && runs:
		r.add("mirror", fleet.SeverityWarning, time.Time{}, "binary logs should be mirrored, but nothing is mirrored yet")
	case last.IsZero():
		r.add("mirror", fleet.SeverityCritical, time.Time{}, "binary logs should be mirrored, but no mirror is running")
	case r.p.Short:
		r.add("mirror", fleet.SeverityCritical, last, "the mirrored binary logs end %s, before the last backup: nothing can be rolled forward", r.clock(last))
	case fleet.Ahead(last, r.now):
		r.add("mirror", fleet.SeverityWarning, time.Time{}, "the newest mirrored event is dated %s in the future: a clock is wrong, and it is unknown how far behind the mirror is", ago(last.Sub(r.now)))
	case behind > limits.Lost:
		r.add("mirror", fleet.SeverityCritical, last, "the mirror of binary logs ends %s: later changes exist only on the server", r.clock(last))
	case behind > limits.Late:
		r.add("mirror", fleet.SeverityWarning, last, "the mirror of binary logs is %s behind", ago(behind))
	}
	if n := len(r.found); n > 0 && r.found[n-1].ID == "protect.mirror" {
		r.found[n-1].Why = r.want.Halted
	}
	behind := func(m state.Mirror) bool { return p.LastBackup != nil && m.First.After(p.LastBackup.Ended) }
	if p.Gap == "" && len(p.Mirrors) > 0 && !slices.ContainsFunc(p.Mirrors, func(m state.Mirror) bool { return !behind(m) }) {
		r.add("mirror_begins", fleet.SeverityWarning, p.LastBackup.Ended, "the mirrored binary logs begin after the last backup: only the next one can be rolled forward")
	}
	if p.Gap != "" {
		severity, what := fleet.SeverityWarning, "binary logs are missing: "
		if slices.ContainsFunc(p.Mirrors, behind) { // it cannot be rolled forward
			severity, what = fleet.SeverityCritical, "binary logs after the last backup are missing: "
		}
		r.add("mirror_gap", severity, p.WindowFrom, "%s%s", what, p.Gap)
	}
}

// failing says which jobs' last runs did not go well. Backups and drills that fail say so above, once it matters; that the
// very last try failed is reported immediately.
func (r *round) failing() {
	for _, n := range r.p.Failing {
		if n.Outcome == state.OutcomeInterrupted && n.Kind != state.JobBackup || n.Kind == state.JobDrill && r.p.LastDrill != nil && !r.p.LastDrill.Passed {
			continue
		}
		if b, d := r.p.LastBackup, r.p.LastDrill; n.Kind == state.JobBackup && b != nil && b.Began.After(n.Ended) || n.Kind == state.JobDrill && d != nil && d.Passed && d.Ended.After(n.Ended) {
			continue // somebody did it by hand since
		}
		how := "failed"
		if n.Outcome == state.OutcomeInterrupted {
			how = "was interrupted"
		}
		words := fmt.Sprintf("the last %s %s %s: ", n.Kind, how, r.clock(n.Ended))
		if n.Outcome == state.OutcomeFailed && len(n.Result) > 2 && (n.Kind == state.JobChecksum || n.Kind == state.JobVerify) { // it did its work
			words = fmt.Sprintf("the last %s, %s, found: ", n.Kind, r.clock(n.Ended))
		}
		r.add("failed_"+string(n.Kind), fleet.SeverityWarning, n.Ended, "%s%s", words, orNothing(n.Text, "it does not say why"))
	}
}

// The times from which jobs are late: such a one is not seen otherwise, because it neither fails nor ends.
const (
	beginLate = 30 * time.Minute // after it was due
	endLate   = 24 * time.Hour   // after it began
)

// waiting says which job should have begun, or ended, long ago. One that is due waits for others of the same server.
func (r *round) waiting() {
	heavy := false
	for _, n := range r.p.Running {
		if n.Kind == state.JobMirror {
			continue
		}
		heavy = true
		if took := r.now.Sub(n.Began); took > endLate {
			r.add("long", fleet.SeverityWarning, n.Began.Add(endLate), "the %s that began %s still runs, after %s", n.Kind, r.clock(n.Began), ago(took))
		}
	}
	if j := r.p.NextJob; j != nil && !heavy && r.now.Sub(r.p.NextDue) > beginLate {
		r.add("waiting", fleet.SeverityWarning, r.p.NextDue.Add(beginLate), "the %s that was due %s has not begun", j.Kind, r.clock(r.p.NextDue))
	}
}

func orNothing(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return strings.TrimRight(s, ".")
}

// verdict sums up.
func (r *round) verdict() Verdict {
	// Of two that are as bad a failed backup comes first: it says why.
	slices.SortStableFunc(r.found, func(a, b fleet.Finding) int {
		first := func(f fleet.Finding) int {
			if f.ID == failedBackup {
				return 1
			}
			return 0
		}
		return cmp.Or(int(b.Severity-a.Severity), first(b)-first(a))
	})
	v := Verdict{State: OK, Findings: r.found}
	if v.Findings == nil {
		v.Findings = []fleet.Finding{}
	}
	if len(r.found) == 0 {
		v.Words = r.well()
		return v
	}
	v.State = Warning
	if r.found[0].Severity == fleet.SeverityCritical {
		v.State = Critical
	}
	v.Words = r.found[0].What
	return v
}

// well is the quiet sentence of a server that is protected.
func (r *round) well() string {
	p := r.p
	parts := []string{"backed up " + ago(r.now.Sub(p.LastBackup.Began)) + " ago"}
	if p.LastProven != nil {
		parts = append(parts, "proven "+ago(r.now.Sub(p.ProvenAt))+" ago")
	}
	if p.Recovery > 0 {
		parts = append(parts, "back within "+digits.Seconds(p.Recovery))
	}
	if !p.WindowTo.IsZero() {
		parts = append(parts, "any moment of the last "+ago(r.now.Sub(p.WindowFrom))+" can be restored")
	}
	return strings.Join(parts, ", ")
}

// clock writes a time of day in the zone of now, with the date when it is another day.
func (r *round) clock(t time.Time) string {
	t = t.In(r.now.Location())
	if t.YearDay() != r.now.YearDay() || t.Year() != r.now.Year() {
		return "on " + t.Format("2006-01-02 15:04")
	}
	return "at " + t.Format("15:04")
}

// since writes a moment after the word since.
func (r *round) since(t time.Time) string {
	return strings.TrimPrefix(strings.TrimPrefix(r.clock(t), "at "), "on ")
}

// ago writes how old something is; what is a moment ahead counts as now.
func ago(d time.Duration) string { return digits.Age(max(0, d.Seconds())) }

// Changes returns the events of what is found now and was not before: an overdue backup, a mirror that is behind. What
// failed is reported by the job itself.
func Changes(instance string, before, now Verdict, at time.Time) []fleet.Event {
	var out []fleet.Event
	for _, f := range now.Findings {
		switch f.ID {
		case "protect.stale", "protect.mirror", "protect.mirror_gap", "protect.mirror_begins", "protect.place":
		case "protect.never", "protect.unproven":
			if len(before.Findings) == 0 && before.State == "" {
				continue // known from the start
			}
		default:
			continue
		}
		i := slices.IndexFunc(before.Findings, func(o fleet.Finding) bool { return o.ID == f.ID })
		if i >= 0 && before.Findings[i].Severity >= f.Severity {
			continue
		}
		out = append(out, fleet.Event{Time: at, Instance: instance, Kind: fleet.EventProtect, Severity: f.Severity, Subject: strings.TrimPrefix(f.ID, "protect."), Text: f.What})
	}
	return out
}
