package serve

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/store/events"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/alert"
	"github.com/rissodb/risso/internal/watch/live"
)

// When a plan that changed is a finding.
const (
	flipID     = "plan.slower"
	flipKept   = 24 * time.Hour   // a plan that is older is the usual one
	flipBefore = 12 * time.Hour   // before the flip: what is usual
	flipAfter  = 30 * time.Minute // the newest time: how it is now
	flipCalls  = 10               // fewer calls say nothing
	flipSlower = 2.0              // so many times slower it begins
	flipEnds   = 1.5              // below that it ends
	flipLoad   = 0.01             // seconds of statements per second that it costs more, at least
	flipEvery  = time.Minute
	mostFlips  = 50 // classes that are looked at, the newest flips first
	flipPoints = 1440
)

// flips finds classes of statements that another plan made slower.
type flips struct {
	store  events.Store
	facts  *state.Store
	board  *live.Board
	logger *slog.Logger
	told   map[string]bool // by instance and class: it is a finding
}

// Run looks each minute until ctx ends.
func (f *flips) Run(ctx context.Context) {
	tick := time.NewTicker(flipEvery)
	defer tick.Stop()
	for {
		if err := f.look(ctx, time.Now()); err != nil && ctx.Err() == nil {
			f.logger.Warn("changed plans could not be judged", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// look judges the plans that changed lately.
func (f *flips) look(ctx context.Context, now time.Time) error {
	list, err := f.facts.Events(ctx, state.EventQuery{Kinds: []fleet.EventKind{fleet.EventPlan}, From: now.Add(-flipKept), Limit: 1000})
	if err != nil {
		return err
	}
	acks, err := f.facts.Acks(ctx, now.Add(-flipKept))
	if err != nil {
		return err
	}
	found, seen := map[string][]fleet.Finding{}, map[string]bool{}
	for _, e := range slices.Backward(list) { // the newest first
		key := alert.Key(e.Instance, flipID, e.Subject)
		if seen[key] || len(seen) == mostFlips {
			continue
		}
		seen[key] = true
		if slices.ContainsFunc(acks, func(a state.AckRow) bool { return a.Key == key && a.At.After(e.Time) }) {
			continue // somebody knows the new plan
		}
		first := e.Time // a short time is answered by the minute
		for _, o := range list {
			if o.Instance == e.Instance && o.Subject == e.Subject && o.Time.Before(first) {
				first = o.Time
			}
		}
		q := events.ClassQuestion{Range: events.Range{From: first.Add(-flipBefore).Unix(), To: now.Unix() + 1}, ID: e.Subject, Instances: []string{e.Instance}, Points: flipPoints}
		a, err := f.store.Class(ctx, q)
		if err != nil {
			return err
		}
		if a == nil {
			continue
		}
		slower, ok := judgeFlip(a, now, f.told[key])
		f.told[key] = ok
		if ok {
			found[e.Instance] = append(found[e.Instance], slower)
		}
	}
	for key := range f.told {
		if !seen[key] {
			delete(f.told, key)
		}
	}
	for _, r := range f.board.Fleet(now) {
		f.board.Note(r.ID, "plans", found[r.ID])
	}
	return nil
}

// away is the flip since which a class has another plan than it used to have; false: its plan is the usual one.
func away(list []events.Flip, since int64) (events.Flip, bool) {
	usual, last := map[string]string{}, map[string]events.Flip{} // by schema
	for _, p := range list {
		if p.Time < since {
			continue
		}
		if _, ok := usual[p.Schema]; !ok {
			usual[p.Schema] = p.Old
		}
		if p.New == usual[p.Schema] { // it flipped back
			delete(usual, p.Schema)
			delete(last, p.Schema)
			continue
		}
		if _, ok := last[p.Schema]; !ok {
			last[p.Schema] = p
		}
	}
	first, any := events.Flip{}, false
	for _, p := range last {
		if !any || p.Time < first.Time {
			first, any = p, true
		}
	}
	return first, any
}

// judgeFlip says whether a class is slower since its plan changed; told: that was said before. It is pure.
func judgeFlip(a *events.ClassAnswer, now time.Time, told bool) (fleet.Finding, bool) {
	flip, ok := away(a.Flips, now.Add(-flipKept).Unix())
	if !ok {
		return fleet.Finding{}, false
	}
	var usual []float64 // seconds of a call, point by point; a plan is read some time after it changed, so a mean would not do
	var before, after fleet.Cost
	recent := max(flip.Time, now.Add(-flipAfter).Unix())
	for _, p := range a.Points {
		switch {
		case p.Calls == 0:
		case p.Time+a.Step <= flip.Time && p.Time >= flip.Time-int64(flipBefore.Seconds()):
			before.Calls += p.Calls
			usual = append(usual, p.Seconds/float64(p.Calls))
		case p.Time >= recent:
			after.Calls, after.Seconds = after.Calls+p.Calls, after.Seconds+p.Seconds
		}
	}
	if before.Calls < flipCalls || after.Calls < flipCalls {
		return fleet.Finding{}, false
	}
	slices.Sort(usual)
	was, is := usual[len(usual)/2], after.Seconds/float64(after.Calls)
	least := flipSlower
	if told {
		least = flipEnds
	}
	span := max(now.Sub(time.Unix(recent, 0)).Seconds(), 60)
	if is < was*least || !told && (is-was)*float64(after.Calls)/span < flipLoad {
		return fleet.Finding{}, false
	}
	at := time.Unix(flip.Time, 0)
	return fleet.Finding{ID: flipID, Subject: a.ID, Severity: fleet.SeverityWarning, Since: at, Chart: "throughput", Value: is / was, Trouble: fleet.Trouble{
		What: fmt.Sprintf("a class of statements has another plan since %s and takes %s instead of %s on average: %s", at.Local().Format("2006-01-02 15:04"), digits.Seconds(is), digits.Seconds(was),
			oneline.Cut(oneline.Of(a.Fingerprint), 160)),
		Why:    "statistics that changed, an index that came or went, or other values; the page Queries draws both plans",
		Remedy: analyze(a.Tables),
	}}, true
}

// analyze is the statements that renew the statistics of tables, which are given as Class has them; "" if one is not named in full.
func analyze(tables string) string {
	var list []string
	for _, t := range strings.FieldsFunc(tables, func(r rune) bool { return r == ',' || r == ' ' }) {
		schema, name, ok := strings.Cut(t, ".")
		if !ok {
			return ""
		}
		list = append(list, "ANALYZE TABLE "+mysql.Quote(schema)+"."+mysql.Quote(name))
	}
	return strings.Join(list, "; ")
}
