package own

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/series/gaps"
	"github.com/rissodb/risso/internal/store/state"
	watchrules "github.com/rissodb/risso/internal/watch/rules"
)

// Source is what rules query.
type Source interface {
	QueryableFor(parser.Expr) storage.Queryable
}

// Options are what Rules work with.
type Options struct {
	Source  Source
	Update  func(ctx context.Context, now int64)       // lets Source know what was appended until a second
	Writer  func() (Writer, error)                     // opens what records go to
	Samples int                                        // that one expression may hold at a time
	Time    time.Duration                              // that one expression may take
	Seen    time.Time                                  // when rules were evaluated last before; zero: never
	Held    []state.RuleAlert                          // what was pending or fired then
	Place   func(instance string) []fleet.Label        // the labels that all series of an instance have; may be nil
	Keep    func(put []state.RuleAlert, gone []string) // notes what is pending or fires
	Found   func(now time.Time, firing []Firing)       // takes what fires at each second
	Event   func(fleet.Event)
	Logger  *slog.Logger
}

// What bounds the work of rules.
const (
	every  = time.Second // a group is evaluated so often, unless it says how often
	rest   = 4           // a group that took a while rests so many times as long
	behind = 10 * time.Second
)

// Rules are the user's own rules. Replace may be called by any goroutine; Tick by one.
type Rules struct {
	Options
	engine *promql.Engine
	parser parser.Parser
	opts   *rules.ManagerOptions

	mu      sync.Mutex
	groups  []*group // in the order of their files
	files   []string
	problem string // why the newest files are not in force; "": they are

	// Of the goroutine that ticks.
	record recorder
	began  time.Time                  // the first tick
	held   map[string]state.RuleAlert // what is to be found again after a start
	kept   map[string]state.RuleAlert // as it was given to Keep
}

// group is a group of rules with its turn.
type group struct {
	*rules.Group
	next time.Time     // when it is to be evaluated
	took time.Duration // the last time
	slow atomic.Bool   // it is evaluated less often than it asks
}

// New makes rules that evaluate nothing until they are given files.
func New(o Options) *Rules {
	r := &Rules{Options: o, parser: newParser(), held: map[string]state.RuleAlert{}, kept: map[string]state.RuleAlert{}}
	for _, h := range o.Held {
		r.held[h.Key], r.kept[h.Key] = h, h
	}
	r.record.open = o.Writer
	r.engine = promql.NewEngine(promql.EngineOpts{MaxSamples: o.Samples, Timeout: o.Time, EnableAtModifier: true, EnableNegativeOffset: true, Parser: r.parser,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Second.Milliseconds() }})
	r.opts = &rules.ManagerOptions{QueryFunc: r.query, AppendableV2: &r.record, Logger: promslog.NewNopLogger(), Parser: r.parser,
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}}
	r.opts.Metrics = rules.NewGroupMetrics(nil)
	return r
}

// query evaluates an expression at a moment.
func (r *Rules) query(ctx context.Context, text string, at time.Time) (promql.Vector, error) {
	expr, err := r.parser.ParseExpr(text)
	if err != nil {
		return nil, err
	}
	return rules.EngineQueryFunc(r.engine, gaps.MarkAt(r.Source.QueryableFor(expr), at.Add(time.Second)))(ctx, text, at)
}

// Replace reads the files that patterns name, and evaluates their rules from then on. With an error the rules before stay in force. What is
// pending or fires goes on where the rule stayed. It says whether anything changed.
func (r *Rules) Replace(patterns []string) (changed bool, err error) {
	files, err := Find(patterns)
	var list []File
	if err == nil {
		list, err = Read(files)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.problem = err.Error()
		return false, err
	}
	old := map[string]*group{}
	for _, g := range r.groups {
		old[rules.GroupKey(g.File(), g.Name())] = g
	}
	var groups []*group
	for _, f := range list {
		for _, fg := range f.Groups {
			g := &group{Group: r.group(f.Path, fg)}
			key := rules.GroupKey(g.File(), g.Name())
			was := old[key]
			delete(old, key)
			switch {
			case was == nil:
				changed = true
			case was.Equals(g.Group) && sameTexts(was, g):
				g = was
			default:
				changed = true
				g.CopyState(was.Group)
			}
			groups = append(groups, g)
		}
	}
	changed = changed || len(old) > 0
	r.groups, r.files, r.problem = groups, files, ""
	return changed, nil
}

// sameTexts says whether two groups that are equal otherwise write their alerts alike.
func sameTexts(a, b *group) bool {
	x, y := a.AlertingRules(), b.AlertingRules()
	return slices.EqualFunc(x, y, func(a, b *rules.AlertingRule) bool { return a.String() == b.String() })
}

// Count is how many rules are in force.
func (r *Rules) Count() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range r.groups {
		n += len(g.Rules())
	}
	return n
}

// Close keeps what was recorded.
func (r *Rules) Close() error { return r.record.close() }

// Tick evaluates what is due at a second.
func (r *Rules) Tick(ctx context.Context, now time.Time) {
	now = now.Truncate(time.Second)
	r.mu.Lock()
	groups := slices.Clone(r.groups)
	r.mu.Unlock()
	if r.began.IsZero() {
		r.began = now
		for _, g := range groups {
			r.fireOn(ctx, g, now)
		}
	}
	if len(groups) > 0 {
		r.Update(ctx, now.Unix())
	}
	for _, g := range groups {
		if now.Before(g.next) && g.next.Sub(now) < 24*time.Hour || ctx.Err() != nil { // further off: the clock was set back
			continue
		}
		r.evaluate(ctx, g, now)
	}
	if ctx.Err() != nil {
		return
	}
	firing, active := r.active(groups)
	r.keep(now, active)
	r.Found(now, firing)
	if len(groups) == 0 && r.record.w == nil {
		return
	}
	if err := r.record.write(now.Unix()); err != nil {
		r.Logger.Warn("what rules recorded could not be kept", "err", err)
	}
}

// evaluate evaluates a group, and says when its turn is again.
func (r *Rules) evaluate(ctx context.Context, g *group, now time.Time) {
	step := g.Interval()
	r.record.begin(now.Add(max(step, behind)).Unix())
	begin := time.Now()
	rules.DefaultEvalIterationFunc(ctx, g.Group, now)
	took := time.Since(begin)
	last := g.took
	g.took, took = took, min(took, last) // once is no rule: the first time, all is read from disk
	g.next = now.Add(step)
	if pause := (took * (1 + rest)).Truncate(time.Second); pause > step {
		g.next = now.Add(pause)
	}
	if slow := g.next.Sub(now) > 2*step; slow != g.slow.Load() {
		g.slow.Store(slow)
		text := fmt.Sprintf("the rules of group %s take %s: they are evaluated every %s, not every %s", g.Name(), digits.Span(took), digits.Span(g.next.Sub(now)), digits.Span(step))
		severity := fleet.SeverityWarning
		if !slow {
			text, severity = "the rules of group "+g.Name()+" are evaluated as often as they ask again", fleet.SeverityInfo
		}
		r.Event(fleet.Event{Time: now, Kind: fleet.EventObserver, Severity: severity, Subject: "rules", Text: text})
	}
	if now.Sub(r.began) <= watchrules.ResumeGrace {
		r.resume(g, now)
	}
}

// resume takes up what was pending or fired when Risso ended, once it is found again. The time in which nobody looked does not count for
// what was pending.
func (r *Rules) resume(g *group, now time.Time) {
	if len(r.held) == 0 {
		return
	}
	for _, rule := range g.AlertingRules() {
		rule.ForEachActiveAlert(func(a *rules.Alert) {
			h, ok := r.held[keyOf(a)]
			if !ok || a.State == rules.StateInactive || !a.KeepFiringSince.IsZero() { // not found
				return
			}
			delete(r.held, h.Key)
			switch {
			case h.Firing:
				a.ActiveAt, a.State, a.FiredAt = h.Since, rules.StateFiring, now
			case r.Seen.After(h.Since):
				a.ActiveAt = now.Add(-r.Seen.Sub(h.Since))
			}
		})
	}
}

// fireOn lets what fired when Risso ended fire from the start on, where its rule has keep_firing_for: it must not end because a first look
// does not find it. The time in which nobody looked does not count. Prometheus' package has no way to put an alert into a rule but to evaluate it,
// so it is evaluated once with the answer of before.
func (r *Rules) fireOn(ctx context.Context, g *group, now time.Time) {
	for _, rule := range g.AlertingRules() {
		if rule.KeepFiringFor() <= 0 {
			continue
		}
		var answer promql.Vector
		for _, key := range slices.Sorted(maps.Keys(r.held)) {
			ls, err := r.parser.ParseMetric(key)
			if err == nil && r.held[key].Firing && ls.Get(labels.AlertName) == rule.Name() {
				answer = append(answer, promql.Sample{Metric: ls, F: r.held[key].Value})
			}
		}
		if len(answer) == 0 {
			continue
		}
		if _, err := rule.Eval(ctx, 0, now, func(context.Context, string, time.Time) (promql.Vector, error) { return answer, nil }, nil, 0); err != nil {
			r.Logger.Warn("what a rule found before is not taken up", "rule", rule.Name(), "err", err)
		}
		rule.ForEachActiveAlert(func(a *rules.Alert) {
			h, ok := r.held[keyOf(a)]
			if !ok { // of another rule of that name; what is pending and not found is dropped
				a.State = rules.StatePending
				return
			}
			a.ActiveAt, a.State, a.FiredAt, a.KeepFiringSince = h.Since, rules.StateFiring, now, now
			if !h.Lapsed.IsZero() {
				a.KeepFiringSince = now.Add(-max(r.Seen.Sub(h.Lapsed), 0))
				delete(r.held, h.Key) // the rule need not find it again
			}
		})
	}
}

func keyOf(a *rules.Alert) string { return a.Labels.String() }

// Firing is an alert of a rule that fires, or a rule that cannot be evaluated.
type Firing struct {
	Labels  labels.Labels
	Finding fleet.Finding
}

// active lists what fires, and all that is pending or fires.
func (r *Rules) active(groups []*group) ([]Firing, map[string]state.RuleAlert) {
	var firing []Firing
	all := map[string]state.RuleAlert{}
	for _, g := range groups {
		for _, rule := range g.Rules() {
			if rule.Health() == rules.HealthBad && !errors.Is(rule.LastError(), context.Canceled) {
				firing = append(firing, failing(g, rule))
			}
			ar, ok := rule.(*rules.AlertingRule)
			if !ok {
				continue
			}
			for _, a := range ar.ActiveAlerts() {
				all[keyOf(a)] = state.RuleAlert{Key: keyOf(a), Since: a.ActiveAt, Firing: a.State == rules.StateFiring, Lapsed: a.KeepFiringSince, Value: a.Value}
				if a.State == rules.StateFiring {
					firing = append(firing, Firing{a.Labels, findingOf(ar, a, r.place(a))})
				}
			}
		}
	}
	return firing, all
}

// keep notes what changed of what is pending or fires. What is to be found again after a start is kept meanwhile.
func (r *Rules) keep(now time.Time, all map[string]state.RuleAlert) {
	if now.Sub(r.began) > watchrules.ResumeGrace {
		clear(r.held)
	}
	var put []state.RuleAlert
	var gone []string
	for key, a := range all {
		if was, ok := r.kept[key]; !ok || was.Firing != a.Firing || !was.Since.Equal(a.Since) || !was.Lapsed.Equal(a.Lapsed) {
			put = append(put, a)
			r.kept[key] = a
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.kept)) {
		_, active := all[key]
		if _, held := r.held[key]; !active && !held {
			gone = append(gone, key)
			delete(r.kept, key)
		}
	}
	if len(put)+len(gone) > 0 {
		r.Keep(put, gone)
	}
}
