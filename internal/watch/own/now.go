package own

import (
	"time"

	"github.com/prometheus/prometheus/rules"
)

// Now is the rules as they are.
type Now struct {
	Files  []string `json:"files"`           // that are in force
	Error  string   `json:"error,omitempty"` // why the newest files are not in force
	Groups []Group  `json:"groups"`
}

// Group is a group of rules as it is.
type Group struct {
	Name      string    `json:"name"`
	File      string    `json:"file"`
	Interval  float64   `json:"interval"`           // seconds between two evaluations, as the file asks
	Seconds   float64   `json:"seconds"`            // that the last evaluation took
	Evaluated time.Time `json:"evaluated,omitzero"` // when it was last evaluated
	Slow      bool      `json:"slow,omitempty"`     // it takes so long that it is evaluated less often
	Rules     []Rule    `json:"rules"`
}

// Rule is a rule as it is.
type Rule struct {
	Name        string            `json:"name"`
	Type        string            `json:"type"` // alerting or recording
	Query       string            `json:"query"`
	For         float64           `json:"for,omitempty"`         // seconds
	Labels      map[string]string `json:"labels,omitempty"`      // as the file has them
	Annotations map[string]string `json:"annotations,omitempty"` // as the file has them
	State       string            `json:"state,omitempty"`       // of an alerting rule: inactive, pending, firing
	Health      string            `json:"health"`                // ok, err, unknown
	Error       string            `json:"error,omitempty"`       // why it could not be evaluated
	Seconds     float64           `json:"seconds"`               // that its last evaluation took
	Alerts      []Alert           `json:"alerts,omitempty"`
}

// Alert is an alert of a rule that is pending or fires.
type Alert struct {
	Labels  map[string]string `json:"labels"`            // those of the expression and of the rule
	State   string            `json:"state"`             // pending or firing
	Since   time.Time         `json:"since"`             // when it became pending
	Value   string            `json:"value"`             // as Prometheus writes it: it may be no number
	Summary string            `json:"summary,omitempty"` // its annotation of that name
}

// Now returns the rules as they are.
func (r *Rules) Now() Now {
	r.mu.Lock()
	groups, out := r.groups, Now{Files: append([]string{}, r.files...), Error: r.problem, Groups: []Group{}}
	r.mu.Unlock()
	for _, g := range groups {
		x := Group{Name: g.Name(), File: g.File(), Interval: g.Interval().Seconds(), Seconds: g.GetEvaluationTime().Seconds(), Evaluated: g.GetLastEvaluation(), Slow: g.slow.Load(), Rules: []Rule{}}
		for _, rule := range g.Rules() {
			x.Rules = append(x.Rules, ruleNow(rule))
		}
		out.Groups = append(out.Groups, x)
	}
	return out
}

func ruleNow(rule rules.Rule) Rule {
	y := Rule{Name: rule.Name(), Type: "recording", Query: rule.Query().String(), Labels: rule.Labels().Map(), Health: string(rule.Health()), Seconds: rule.GetEvaluationDuration().Seconds()}
	if err := rule.LastError(); err != nil {
		y.Error = err.Error()
	}
	ar, ok := rule.(*rules.AlertingRule)
	if !ok {
		return y
	}
	y.Type, y.For, y.Annotations, y.State = "alerting", ar.HoldDuration().Seconds(), ar.Annotations().Map(), ar.State().String()
	for _, a := range ar.ActiveAlerts() {
		y.Alerts = append(y.Alerts, Alert{Labels: a.Labels.Map(), State: a.State.String(), Since: a.ActiveAt, Value: number(a.Value), Summary: a.Annotations.Get("summary")})
	}
	return y
}
