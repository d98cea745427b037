package own

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	prom "github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/store/state"
)

// mostText is how long a text of a rule may be.
const mostText = 500

// group makes a group of rules as Prometheus' manager does.
func (r *Rules) group(path string, g rulefmt.RuleGroup) *rules.Group {
	list := make([]rules.Rule, 0, len(g.Rules))
	for _, one := range g.Rules {
		expr, err := r.parser.ParseExpr(one.Expr)
		if err != nil { // Read has refused it
			continue
		}
		set := rules.FromMaps(g.Labels, one.Labels)
		if one.Alert == "" {
			list = append(list, rules.NewRecordingRule(one.Record, expr, set))
			continue
		}
		list = append(list, rules.NewAlertingRule(one.Alert, expr, time.Duration(one.For), time.Duration(one.KeepFiringFor), set, labels.FromMap(one.Annotations),
			labels.EmptyLabels(), "", true, r.opts.Logger))
	}
	return rules.NewGroup(rules.GroupOptions{Name: g.Name, File: path, Interval: cmp.Or(time.Duration(g.Interval), every), Limit: g.Limit, Rules: list,
		Opts: r.opts, QueryOffset: (*time.Duration)(g.QueryOffset)})
}

// findingOf is an alert of a rule as a finding.
func findingOf(rule *rules.AlertingRule, a *rules.Alert, place []fleet.Label) fleet.Finding {
	text := func(names ...string) string {
		for _, n := range names {
			if t := strings.TrimSpace(oneline.Of(a.Annotations.Get(n))); t != "" {
				return oneline.Cut(t, mostText)
			}
		}
		return ""
	}
	f := fleet.Finding{ID: state.RulePrefix + fleet.Slug(rule.Name()), Subject: subject(rule, a, place), Severity: severity(a.Labels.Get("severity")), Since: a.ActiveAt}
	f.What, f.Why, f.Remedy = text("summary", "message", "description"), text("description"), text("remedy", "runbook", "runbook_url")
	if f.What == "" {
		f.What = "rule " + rule.Name() + " fires: " + digits.Number(a.Value)
	}
	if f.Why == f.What {
		f.Why = ""
	}
	if grows(rule.Query()) && !math.IsNaN(a.Value) && !math.IsInf(a.Value, 0) {
		f.Value = a.Value
	}
	return f
}

// grows says whether what a rule returns is the worse the larger it is: it compares with > or >=.
func grows(e parser.Expr) bool {
	for {
		p, ok := e.(*parser.ParenExpr)
		if !ok {
			break
		}
		e = p.Expr
	}
	b, ok := e.(*parser.BinaryExpr)
	return ok && (b.Op == parser.GTR || b.Op == parser.GTE)
}

// severity reads the label of that name, in the words that public rules use.
func severity(word string) fleet.Severity {
	switch strings.ToLower(word) {
	case "critical", "page", "error", "emergency", "high", "disaster":
		return fleet.SeverityCritical
	case "info", "none", "informational", "low":
		return fleet.SeverityInfo
	}
	return fleet.SeverityWarning
}

// aside are labels that say where an alert is, not what it is about.
var aside = map[string]bool{labels.AlertName: true, "severity": true, "instance": true, "job": true, "service_name": true, "node_name": true, "cluster": true, prom.MetricNameLabel: true}

// place is the labels that all series of the alert's instance have.
func (r *Rules) place(a *rules.Alert) []fleet.Label {
	if r.Place == nil {
		return nil
	}
	return r.Place(a.Labels.Get(prom.InstanceLabel))
}

// subject tells alerts of one rule and server apart: by the labels that are neither the server's, as place has them, nor the rule's own.
func subject(rule *rules.AlertingRule, a *rules.Alert, place []fleet.Label) string {
	var parts []string
	a.Labels.Range(func(l labels.Label) {
		if !aside[l.Name] && !rule.Labels().Has(l.Name) && !slices.Contains(place, fleet.Label{Name: l.Name, Value: l.Value}) {
			parts = append(parts, l.Name+"="+l.Value)
		}
	})
	return oneline.Cut(oneline.Of(strings.Join(parts, ",")), 200)
}

// failing is that a rule cannot be evaluated: what it would tell of is not seen.
func failing(g *group, rule rules.Rule) Firing {
	why := "it cannot be evaluated"
	if err := rule.LastError(); err != nil {
		why = oneline.Cut(oneline.Of(err.Error()), mostText)
	}
	return Firing{Finding: fleet.Finding{ID: state.RulesFailing, Subject: g.Name() + "/" + rule.Name(), Severity: fleet.SeverityWarning,
		Trouble: fleet.Trouble{What: "the rule " + rule.Name() + " of group " + g.Name() + " is not evaluated: " + why}}}
}

// number is a value as Prometheus writes it.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
