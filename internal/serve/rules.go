package serve

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/store/series"
	"github.com/rissodb/risso/internal/store/series/mapped"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/collect"
	"github.com/rissodb/risso/internal/watch/keep"
	"github.com/rissodb/risso/internal/watch/own"
	"github.com/rissodb/risso/internal/watch/rules"
)

// ruling evaluates the user's own rules, and keeps what they find.
type ruling struct {
	*own.Rules
	w       *watch
	keepers map[string]*keep.Keeper // by instance
}

// rulesPhase is when in a second rules are evaluated: nearly all readings of that second are there then.
const rulesPhase = 950 * time.Millisecond

// What one expression may take, unless limits in the config file say something else.
const (
	rulesSamples = 3_000_000
	rulesTime    = 30 * time.Second
)

// newRules reads the user's own rules. A mistake in them is one in the config file.
func (w *watch) newRules(ctx context.Context, set config.Settings, numbers *series.Store, names *labeller, facts *state.Store) (*ruling, error) {
	held, err := facts.RuleAlerts(ctx)
	if err != nil {
		return nil, err
	}
	r := &ruling{w: w, keepers: map[string]*keep.Keeper{}}
	recent := series.NewRecent(numbers)
	o := own.Options{Source: mapped.New(recent, names.labels), Update: recent.Update, Samples: cmp.Or(set.Limits.Samples, rulesSamples), Time: cmp.Or(set.Limits.Time, rulesTime), Held: held, Place: func(instance string) []fleet.Label { return names.labels()[instance] }, Keep: r.note, Found: r.found, Event: w.Event, Logger: w.logger,
		Writer: func() (own.Writer, error) {
			wr, err := numbers.Writer(series.Recorded)
			if err != nil {
				return nil, err
			}
			return wr, nil
		}}
	if t, _ := numbers.Last(series.Recorded); t > 0 {
		o.Seen = time.Unix(t, 0)
	}
	r.Rules = own.New(o)
	if _, err := r.Replace(set.Alerts.Rules); err != nil {
		return nil, fault.Usagef("%w", err)
	}
	return r, nil
}

// Run evaluates the rules each second until ctx ends.
func (r *ruling) Run(ctx context.Context) {
	for id, held := range r.w.heldByRules {
		k := new(keep.Keeper)
		k.Resume(held)
		r.keepers[id] = k
	}
	collect.Every(ctx, rulesPhase, func(due time.Time) time.Time {
		due = due.Add(max(time.Since(due).Truncate(time.Second), 0)) // what is evaluated late has its own time
		r.Tick(ctx, due)
		return due
	})
	if err := r.Close(); err != nil {
		r.w.logger.Warn("what rules recorded could not be kept", "err", err)
	}
}

// note leaves it to the journal to keep what is pending or fires.
func (r *ruling) note(put []state.RuleAlert, gone []string) {
	if !r.w.enqueue(func(ctx context.Context, s *state.Store) error { return s.KeepRuleAlerts(ctx, put, gone) }) {
		r.w.lost.Add(1)
	}
}

// found takes what fires at a second: it is kept as findings of the servers that it is about, or of Risso.
func (r *ruling) found(now time.Time, firing []own.Firing) {
	byInstance := map[string][]fleet.Finding{}
	for id := range r.keepers {
		byInstance[id] = nil
	}
	var seats []fleet.Instance
	if len(firing) > 0 {
		seats = r.w.instances()
	}
	for _, f := range firing {
		id := instanceOf(f, seats)
		byInstance[id] = append(byInstance[id], f.Finding)
	}
	for id, list := range byInstance {
		slices.SortStableFunc(list, func(a, b fleet.Finding) int { // of several with one name and subject, the first is kept
			return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Subject, b.Subject), a.Since.Compare(b.Since))
		})
		r.w.board.Note(id, "rules", list)
		k := r.keepers[id]
		if k == nil {
			k = new(keep.Keeper)
			r.keepers[id] = k
		}
		look, due := k.Look(id, now, rules.Verdict{State: rules.StateOK, Findings: list}, nil)
		look.Rules = true
		if due && !r.w.enqueue(func(ctx context.Context, s *state.Store) error { return r.w.keepFindings(ctx, s, look) }) {
			k.Again()
		}
	}
}

// instanceOf finds the server or host that an alert is about, by its label instance: an ID, a name or an address.
func instanceOf(f own.Firing, seats []fleet.Instance) string {
	label := f.Labels.Get(series.InstanceLabel)
	if label != "" {
		for _, i := range seats {
			if i.ID == label || i.Name == label || i.Address == label {
				return i.ID
			}
		}
	}
	return selfID
}
