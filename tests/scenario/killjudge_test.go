package scenario_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/ring"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/alert"
	"github.com/rissodb/risso/internal/watch/incident"
	"github.com/rissodb/risso/internal/watch/rules"
)

// What a finding's begin and end may be off: a rule holds on for 10 s, and what was there before a start is given up a minute after it.
const (
	offBegin = 3 * time.Second
	offEnd   = 10*time.Second + slack
)

// errorf is an error of this Risso.
func (k *killed) errorf(format string, args ...any) {
	k.t.Helper()
	k.t.Errorf("risso %d: "+format, append([]any{k.number}, args...)...)
}

// judge compares what a Risso kept and told with what there was.
func (k *killed) judge(had []trouble, whole bool) {
	facts, err := state.Open(k.t.Context(), filepath.Join(k.data, "state.db"))
	if err != nil {
		k.errorf("%v", err)
		return
	}
	defer facts.Close()
	if d := facts.Damage(); d != nil {
		k.errorf("the store of facts is damaged: %s", d.Reason)
	}
	records, err := facts.Findings(k.t.Context(), state.FindingQuery{Limit: 10000})
	if err != nil {
		k.errorf("%v", err)
		return
	}
	events, err := facts.Events(k.t.Context(), state.EventQuery{Limit: 10000})
	if err != nil {
		k.errorf("%v", err)
		return
	}
	how := map[string]int{}
	for _, l := range k.lives[:len(k.lives)-1] {
		how[l.how]++
		if l.ready.IsZero() {
			how["of these before it was ready"]++
		}
	}
	k.t.Logf("risso %d: killed %d times, at %v", k.number, len(k.lives)-1, how)
	k.judgeFindings(had, records)
	k.judgeRecords(records, whole)
	k.judgeEvents(had, events)
	k.judgeAlerts(facts, records, whole)
	k.judgeIncidents(facts, records, events)
	k.judgeMoments(had)
}

// saw is the longest time that one life saw of a trouble.
func (k *killed) saw(h *trouble) (longest time.Duration) {
	for _, l := range k.lives {
		if l.ready.IsZero() {
			continue
		}
		from, to := l.ready, l.killed
		if from.Before(h.began) {
			from = h.began
		}
		if to.After(h.ended) {
			to = h.ended
		}
		longest = max(longest, to.Sub(from)-stalledBetween(from, to))
	}
	return longest
}

func stalledBetween(from, to time.Time) (d time.Duration) {
	stallMu.Lock()
	defer stallMu.Unlock()
	for _, s := range stalls {
		if s.to.After(from) && s.from.Before(to) {
			d += s.to.Sub(s.from)
		}
	}
	return d
}

// judgeFindings: each trouble that a life saw for long enough is kept, once, with its begin and its end.
func (k *killed) judgeFindings(had []trouble, records []state.FindingRecord) {
	due, kept, brief := 0, 0, 0
	for i := range had {
		h := &had[i]
		var mine []state.FindingRecord
		same := map[string]int{}
		for _, r := range records {
			ended := r.Ended
			if ended.IsZero() {
				ended = time.Now()
			}
			if r.Instance != h.server || !h.about(r.First.ID, r.First.Subject) || r.Began().After(h.ended.Add(offBegin)) || ended.Before(h.began.Add(-time.Second)) {
				continue
			}
			mine = append(mine, r)
			if !r.Began().Before(h.began.Add(-offBegin)) {
				if same[state.FindingKey(r.First)]++; same[state.FindingKey(r.First)] == 2 {
					k.errorf("%s is kept twice: %s", h, words(mine))
				}
			}
		}
		seen := k.saw(h)
		if seen < h.told {
			brief++
		} else {
			due++
			if len(mine) == 0 {
				k.errorf("%s is lost: a life saw %s of it, want it kept after %s; lives: %s", h, seen, h.told, k.livesOf(h))
				continue
			}
			kept++
		}
		for _, r := range mine {
			k.judgeTimes(h, r)
		}
	}
	k.t.Logf("risso %d: of %d troubles %d had to be kept, and %d were; %d were too brief for any of its lives", k.number, len(had), due, kept, brief)
}

// judgeTimes: a finding begins with its trouble and ends with it, as far as a Risso was there to see that.
func (k *killed) judgeTimes(h *trouble, r state.FindingRecord) {
	if h.connection == 0 {
		return // it may be one with the trouble before, if nobody saw that end
	}
	if r.Began().Before(h.began.Add(-offBegin)) {
		k.errorf("%s: its finding began %s before it", h, h.began.Sub(r.Began()))
	}
	if at, first := k.firstSight(h), r.Began(); first.After(at.Add(slack)) && !r.Told.After(at.Add(h.told)) {
		k.errorf("%s: its finding began at %s, a life saw it from %s on", h, first.Format("15:04:05.0"), at.Format("15:04:05.0"))
	}
	if by := k.givenUp(h.ended); !r.Ended.IsZero() && r.Ended.After(by) {
		k.errorf("%s: its finding ended at %s, want %s at the latest; lives: %s", h, r.Ended.Format("15:04:05.0"), by.Format("15:04:05.0"), k.livesOf(h))
	}
	if r.Ended.IsZero() && time.Now().After(k.givenUp(h.ended)) && k.lives[len(k.lives)-1].killed.After(k.givenUp(h.ended)) {
		k.errorf("%s: its finding is open for ever; lives: %s", h, k.livesOf(h))
	}
}

// firstSight is when a life that could see a trouble began to.
func (k *killed) firstSight(h *trouble) time.Time {
	for _, l := range k.lives {
		if !l.ready.IsZero() && l.killed.After(h.began.Add(h.told)) {
			if l.ready.After(h.began) {
				return l.ready
			}
			return h.began
		}
	}
	return h.ended
}

// givenUp is when a Risso must know that something ended: in the life that saw it, or a minute after the start of one that did not.
func (k *killed) givenUp(ended time.Time) time.Time {
	for _, l := range k.lives {
		if l.ready.IsZero() {
			continue
		}
		by := l.ready.Add(rules.ResumeGrace + offEnd)
		if l.ready.Before(ended) {
			by = ended.Add(rules.ResumeGrace + offEnd) // where it was not found again in this life, it waits for that
		}
		if l.killed.After(by) {
			return by
		}
	}
	return time.Now().Add(time.Hour)
}

func (k *killed) livesOf(h *trouble) (list string) {
	for _, l := range k.lives {
		if l.killed.After(h.began.Add(-time.Second)) && l.launched.Before(h.ended.Add(time.Minute)) {
			list += fmt.Sprintf(" %s/%s-%s", l.launched.Format("15:04:05.0"), l.ready.Format("05.0"), l.killed.Format("15:04:05.0"))
		}
	}
	return list
}

func words(list []state.FindingRecord) (text string) {
	for _, r := range list {
		text += fmt.Sprintf("\n  %d %s %q %s to %s, told %s, unseen %t", r.ID, r.First.ID, r.First.Subject, r.Began().Format("15:04:05.0"), r.Ended.Format("15:04:05.0"), r.Told.Format("15:04:05.0"), r.Unseen)
	}
	return text
}

// judgeRecords: no two records of one finding are at the same time, and in the end all are over.
func (k *killed) judgeRecords(records []state.FindingRecord, whole bool) {
	slices.SortFunc(records, func(a, b state.FindingRecord) int { return a.Told.Compare(b.Told) })
	last := map[string]state.FindingRecord{}
	open := 0
	for _, r := range records {
		key := r.Instance + "/" + state.FindingKey(r.First)
		if b, ok := last[key]; ok && (b.Ended.IsZero() || b.Ended.After(r.Told)) {
			k.errorf("two records of one finding at the same time: %s", words([]state.FindingRecord{b, r}))
		}
		last[key] = r
		if r.Ended.IsZero() {
			open++
			if whole && !lasts(r.First.ID) {
				k.errorf("a finding is open at the end: %s", words([]state.FindingRecord{r}))
			}
		}
	}
	k.t.Logf("risso %d: %d findings, %d open", k.number, len(records), open)
}

// judgeEvents: nothing happens twice, and nothing was damaged but the second of a kill.
func (k *killed) judgeEvents(had []trouble, events []fleet.Event) {
	cut := 0
	for _, e := range events {
		switch {
		case e.Kind != fleet.EventStore:
		case strings.Contains(e.Text, "the second in which Risso was killed is missing"):
			cut++
		default:
			k.errorf("an event tells of damage: %s %s", e.Time.Format("15:04:05.0"), e.Text)
		}
	}
	for i := range had {
		h := &had[i]
		if got := count(events, func(e fleet.Event) bool {
			return e.Kind == fleet.EventRestart && e.Instance == h.server && e.Time.After(h.began.Add(-time.Second)) && e.Time.Before(h.ended.Add(offBegin))
		}); got > 1 {
			k.errorf("%s: %d events of a restart; lives: %s", h, got, k.livesOf(h))
		}
	}
	for _, server := range victims {
		last := fleet.Event{Kind: fleet.EventUp}
		for _, e := range events {
			if e.Instance != server || e.Kind != fleet.EventDown && e.Kind != fleet.EventUp {
				continue
			}
			if e.Kind == last.Kind {
				k.errorf("%s was told as %s twice, at %s and at %s: %s", server, e.Kind, last.Time.Format("15:04:05.0"), e.Time.Format("15:04:05.0"), e.Text)
			}
			last = e
		}
		if last.Kind == fleet.EventDown {
			k.errorf("%s was told as down at %s, and not as up again", server, last.Time.Format("15:04:05.0"))
		}
	}
	k.t.Logf("risso %d: %d events; %d of its kills cut a record of a second", k.number, len(events), cut)
}

// judgeAlerts: each finding rang, each message arrived, no news came twice.
func (k *killed) judgeAlerts(facts *state.Store, records []state.FindingRecord, whole bool) {
	messages, err := facts.LastMessages(k.t.Context(), "hook", 100000)
	if err != nil {
		k.errorf("%v", err)
		return
	}
	rows, err := facts.Alerts(k.t.Context(), time.Time{}, time.Time{}, 10000)
	if err != nil {
		k.errorf("%v", err)
		return
	}
	k.hook.mu.Lock()
	defer k.hook.mu.Unlock()
	for _, bad := range k.hook.bad {
		k.errorf("a message is not signed, or cannot be read: %s", bad)
	}
	arrived, twice := map[string][]byte{}, 0
	told := map[string]alert.Phase{} // the last that was told, by ringing
	known := map[string]string{}     // news, and the message in which it came first
	for _, m := range k.hook.got {
		text, err := json.Marshal(m)
		if err != nil {
			k.errorf("%v", err)
		}
		if before, ok := arrived[m.ID]; ok {
			if twice++; !bytes.Equal(before, text) {
				k.errorf("message %s came twice, and differs", m.ID)
			}
			continue
		}
		arrived[m.ID] = text
		old := ""
		fresh := m.Again
		for _, a := range m.Alerts {
			news := fmt.Sprintf("%s %s %s %d", ringing(a), a.Phase, a.Severity, a.Times)
			if in, ok := known[news]; ok {
				old = in
			} else {
				fresh, known[news] = true, m.ID
			}
			if told[ringing(a)] == alert.Resolved && a.Phase == alert.Firing && a.Times < 2 {
				k.errorf("%s fires after its end was told", ringing(a))
			}
			told[ringing(a)] = a.Phase
		}
		if !fresh {
			k.errorf("message %s says nothing that %s did not say", m.ID, old)
		}
	}
	for _, m := range messages {
		if arrived[m.ID] == nil || m.Delivered.IsZero() {
			k.errorf("message %s is lost: delivered %s, dropped %s, %s", m.ID, m.Delivered, m.Dropped, m.Error)
		}
		delete(arrived, m.ID)
	}
	for id := range arrived {
		k.errorf("message %s came, and is not kept", id)
	}
	k.judgeRinging(rows, records, told, whole)
	k.t.Logf("risso %d: %d alerts, %d messages, of which %d came twice with one ID", k.number, len(rows), len(messages), twice)
}

// lasts says which findings may hold at the end: what is told for five minutes, and what a busy machine does to Risso.
func lasts(finding string) bool {
	return finding == "server.restarted" || strings.HasPrefix(finding, "observer.")
}

// explained says whether an alert was held back because of another one that was told: both servers hung at the same moment, say.
func explained(a alert.Standing, told map[string]alert.Phase) bool {
	for of := range told {
		if a.Cause != "" && strings.HasPrefix(of, a.Cause+" ") {
			return true
		}
	}
	return false
}

// judgeRinging: each finding that is worth it rang, was told, and so was its end.
func (k *killed) judgeRinging(rows []state.AlertRow, records []state.FindingRecord, told map[string]alert.Phase, whole bool) {
	rang := map[string][]alert.Standing{}
	acked, settling, waiting := 0, 0, 0
	for _, row := range rows {
		var a alert.Standing
		if err := json.Unmarshal(row.Alert, &a); err != nil {
			k.errorf("%v", err)
			continue
		}
		rang[a.Key] = append(rang[a.Key], a)
		phase, ok := told[ringing(a.Alert)]
		switch {
		case row.Ended.IsZero() && a.Gone.IsZero() && whole && !lasts(a.Finding):
			k.errorf("alert %s has no end", ringing(a.Alert))
		case !row.Ended.IsZero() && !ok && explained(a, told):
		case !row.Ended.IsZero() && phase != alert.Resolved:
			k.errorf("alert %s is over, and was told last as %q", ringing(a.Alert), phase)
		}
		switch {
		case !row.Ended.IsZero():
		case ok:
			settling++
		default: // more of the same is told up to half an hour later
			waiting++
		}
		if k.asked.acked[ringing(a.Alert)] {
			if acked++; a.Acked.IsZero() {
				k.errorf("alert %s was acknowledged, and nobody knows", ringing(a.Alert))
			}
		}
	}
	if acked != len(k.asked.acked) {
		k.errorf("%d alerts were acknowledged, %d of them are there", len(k.asked.acked), acked)
	}
	k.t.Logf("risso %d: of %d alerts %d were told with their end; %d may still come back; %d are more of the same, and wait for the end of a lull", k.number, len(rows), len(rows)-settling-waiting, settling, waiting)
	for _, r := range records {
		key := alert.Key(r.Instance, r.First.ID, r.First.Subject)
		if !slices.ContainsFunc(rang[key], func(a alert.Standing) bool { return a.Record >= r.ID && !a.Began.After(r.Began().Add(time.Second)) }) {
			k.errorf("a finding never rang: %s", words([]state.FindingRecord{r}))
		}
	}
}

// judgeIncidents: each critical finding has an incident, whose file can be read; what a kill cut off says so; nothing half written lies about.
func (k *killed) judgeIncidents(facts *state.Store, records []state.FindingRecord, events []fleet.Event) {
	rows, err := facts.Incidents(k.t.Context(), state.IncidentQuery{Limit: 1000})
	if err != nil {
		k.errorf("%v", err)
		return
	}
	listed, cut := map[string]bool{}, 0
	var all []incident.Incident
	for _, row := range rows {
		listed[row.ID+".incident"] = true
		if i, ok := k.judgeIncident(row); ok {
			all = append(all, i)
			if i.Cut != "" {
				cut++
			}
		}
		if got := count(events, func(e fleet.Event) bool { return e.Kind == fleet.EventIncident && e.Subject == row.ID }); got != 1 {
			k.errorf("%d events tell of incident %s, want 1", got, row.ID)
		}
	}
	list, err := os.ReadDir(filepath.Join(k.data, "incidents"))
	if err != nil {
		k.errorf("%v", err)
	}
	for _, e := range list {
		if !listed[e.Name()] {
			k.errorf("%s lies among the incidents, and no list has it", e.Name())
		}
	}
	missing, brief := 0, 0
	for _, r := range records {
		if r.Worst.Severity < fleet.SeverityCritical {
			continue
		}
		if !slices.ContainsFunc(all, func(i incident.Incident) bool {
			return i.Instance == r.Instance && i.Began.Before(r.WorstAt.Add(3*time.Second)) && i.Ended.Add(70*time.Second).After(r.WorstAt)
		}) {
			if k.killedAfter(r.WorstAt, longSecond) {
				brief++
				continue
			}
			missing++
			k.errorf("a critical finding has no incident: %s; worst at %s", words([]state.FindingRecord{r}), r.WorstAt.Format("15:04:05.0"))
		}
	}
	k.t.Logf("risso %d: %d incidents, of which %d were cut; %d are missing; %d findings had none, because it was killed when they were told, and they were over at the next start", k.number, len(all), cut, missing, brief)
}

// judgeIncident reads the file of an incident.
func (k *killed) judgeIncident(row state.IncidentRow) (i incident.Incident, ok bool) {
	f, err := os.Open(filepath.Join(k.data, "incidents", row.ID+".incident"))
	if err != nil {
		k.errorf("incident %s has no file: %v", row.ID, err)
		return i, false
	}
	defer f.Close()
	file, err := incident.Unpack(f)
	if err != nil {
		k.errorf("incident %s: %v", row.ID, err)
		return i, false
	}
	told, err := incident.Tell(file, true)
	if err != nil || len(told.Moments) == 0 || told.Story.First == "" {
		k.errorf("incident %s is told with %d moments: %v", row.ID, len(told.Moments), err)
	}
	i = file.Incident
	last := k.lives[len(k.lives)-1]
	if i.Open && last.launched.Before(i.Captured) && last.killed.Before(i.Ended.Add(70*time.Second)) {
		return i, true // what follows it was still gathered when all ended
	}
	if i.Open || row.Ended.IsZero() || !row.Ended.Equal(i.Ended) {
		k.errorf("incident %s is open at the end: file %t %s, list %s", i.ID, i.Open, i.Ended, row.Ended)
	}
	for _, l := range k.lives[:len(k.lives)-1] {
		if l.killed.After(i.Captured) && l.killed.Before(i.Ended.Add(50*time.Second)) && !i.Captured.Before(l.launched) && i.Cut == "" {
			k.errorf("incident %s, captured %s, ended %s, was cut at %s, and does not say so", i.ID, i.Captured, i.Ended, l.killed)
		}
	}
	return i, true
}

// longSecond is how long the reading of a second may take, of a server that hangs, with a moment for the incident's file.
const longSecond = 10 * time.Second

// killedAfter says whether it was killed within some time after a moment.
func (k *killed) killedAfter(at time.Time, d time.Duration) bool {
	return slices.ContainsFunc(k.lives, func(l life) bool { return l.killed.After(at.Add(-time.Second)) && l.killed.Before(at.Add(d)) })
}

// judgeMoments: all seconds of each life can be read, but the last.
func (k *killed) judgeMoments(had []trouble) {
	for _, server := range victims {
		dir := filepath.Join(k.data, "moments", server)
		r, err := ring.Open(ring.Options{Dir: dir, Damage: func(what string) { k.errorf("moments of %s: %s", server, what) }})
		if err != nil {
			k.errorf("%v", err)
			continue
		}
		there := map[int64]bool{}
		err = r.Blocks(0, math.MaxInt64, func(list []ring.Record) error {
			moments, err := incident.Read(list)
			for _, m := range moments {
				if there[m.Tick] {
					k.errorf("the moment %d of %s is there twice", m.Tick, server)
				}
				there[m.Tick] = true
			}
			return err
		})
		if err != nil {
			k.errorf("moments of %s cannot be read: %v", server, err)
		}
		if err := r.Close(); err != nil {
			k.errorf("%v", err)
		}
		missing, all := 0, 0
		for _, l := range k.lives {
			if l.ready.IsZero() {
				continue
			}
			for s := l.ready.Unix() + 2; s < l.killed.Unix()-1; s++ {
				if stood(s) || slices.ContainsFunc(had, func(h trouble) bool {
					return h.server == server && (h.name == "hang" || h.name == "crash") && h.began.Unix()-1 <= s && s <= h.ended.Unix()+2
				}) {
					continue
				}
				if all++; !there[s] {
					missing++
				}
			}
		}
		if missing*100 > all {
			k.errorf("%d of %d moments of %s are missing", missing, all, server)
		}
		k.t.Logf("risso %d: of %s %d of %d moments are missing", k.number, server, missing, all)
	}
}
