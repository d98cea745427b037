package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/serve/alerts"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/alert"
	"github.com/rissodb/risso/internal/watch/own"
)

// ownRules is the user's own rules as they are.
func (s *server) ownRules(*http.Request) (any, error) { return s.Rules(), nil }

// promRules is the same, as Prometheus' API has it.
func (s *server) promRules(*http.Request) (any, error) {
	groups := []map[string]any{}
	for _, g := range s.Rules().Groups {
		rules := []map[string]any{}
		for _, r := range g.Rules {
			m := map[string]any{"name": r.Name, "type": r.Type, "query": r.Query, "labels": r.Labels, "health": r.Health, "lastError": r.Error, "evaluationTime": r.Seconds, "lastEvaluation": g.Evaluated}
			if r.Type == "alerting" {
				m["state"], m["duration"], m["keepFiringFor"], m["annotations"], m["alerts"] = r.State, r.For, 0, r.Annotations, promAlertsOf(r)
			}
			rules = append(rules, m)
		}
		groups = append(groups, map[string]any{"name": g.Name, "file": g.File, "interval": g.Interval, "limit": 0, "evaluationTime": g.Seconds, "lastEvaluation": g.Evaluated, "rules": rules})
	}
	return map[string]any{"groups": groups}, nil
}

// promAlerts is what is pending and fires of the user's own rules, as Prometheus' API has it.
func (s *server) promAlerts(*http.Request) (any, error) {
	list := []map[string]any{}
	for _, g := range s.Rules().Groups {
		for _, r := range g.Rules {
			list = append(list, promAlertsOf(r)...)
		}
	}
	return map[string]any{"alerts": list}, nil
}

func promAlertsOf(r own.Rule) []map[string]any {
	list := []map[string]any{}
	for _, a := range r.Alerts {
		annotations := map[string]string{}
		if a.Summary != "" {
			annotations["summary"] = a.Summary
		}
		list = append(list, map[string]any{"labels": a.Labels, "annotations": annotations, "state": a.State, "activeAt": a.Since, "value": a.Value})
	}
	return list
}

// thresholdBody is a threshold as it is sent and shown. Names may contain *; what is left out fits all.
type thresholdBody struct {
	ID       int64     `json:"id,omitempty"`
	Server   string    `json:"server,omitempty"`
	Group    string    `json:"group,omitempty"`
	Finding  string    `json:"finding,omitempty"`
	Subject  string    `json:"subject,omitempty"`
	Severity string    `json:"severity,omitempty"` // at least so bad
	For      string    `json:"for,omitempty"`      // such as 10m
	Above    *float64  `json:"above,omitempty"`
	Off      bool      `json:"off,omitempty"`
	By       string    `json:"by,omitempty"`
	At       time.Time `json:"at,omitzero"`
}

func bodyOf(t alert.Threshold) thresholdBody {
	b := thresholdBody{Server: t.Server, Group: t.Group, Finding: t.Finding, Subject: t.Subject, Above: t.Above, Off: t.Off, Severity: t.Severity.String()}
	if t.For != nil {
		b.For = digits.Duration(*t.For)
	}
	return b
}

func bodyOfSet(t alerts.Threshold) thresholdBody {
	b := bodyOf(t.Threshold)
	b.ID, b.By, b.At = t.ID, t.By, t.At
	return b
}

const thresholdHint = `send {"finding": "repl.lag", "server": "report-*", "for": "30m"}, with for, above or off`

// mostName is how long a name in a threshold may be.
const mostName = 200

func (b thresholdBody) check() (alert.Threshold, error) {
	t := alert.Threshold{Match: alert.Match{Server: b.Server, Group: b.Group, Finding: b.Finding, Subject: b.Subject, Severity: fleet.SeverityWarning}, Off: b.Off, Above: b.Above}
	for _, name := range []string{b.Server, b.Group, b.Finding, b.Subject} {
		if len(name) > mostName || oneline.Of(name) != name {
			return t, badRequest("a name is one line of at most "+strconv.Itoa(mostName)+" bytes", thresholdHint)
		}
	}
	switch b.Severity {
	case "", "warning":
	case "critical":
		t.Severity = fleet.SeverityCritical
	case "info":
		t.Severity = fleet.SeverityInfo
	default:
		return t, badRequest("severity "+strconv.Quote(b.Severity), "info, warning or critical")
	}
	if b.For != "" {
		d, err := digits.ParseDuration(b.For)
		if err != nil || d < 0 {
			return t, badRequest("for "+strconv.Quote(b.For), "write it as 30s or 10m")
		}
		t.For = &d
	}
	if t.For == nil && t.Above == nil && !t.Off {
		return t, badRequest("a threshold says for how long, above what, or that it is off", thresholdHint)
	}
	return t, nil
}

// thresholds is GET /api/thresholds.
func (s *server) thresholds(*http.Request) (any, error) {
	defaults, file, page := s.Alerts.Thresholds()
	out := map[string][]thresholdBody{"defaults": {}, "file": {}, "page": {}}
	for _, t := range defaults {
		out["defaults"] = append(out["defaults"], bodyOf(t))
	}
	for _, t := range file {
		out["file"] = append(out["file"], bodyOf(t))
	}
	for _, t := range page {
		out["page"] = append(out["page"], bodyOfSet(t))
	}
	return out, nil
}

// setThreshold is PUT /api/thresholds.
func (s *server) setThreshold(r *http.Request, body []byte) (any, error) {
	var b thresholdBody
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&b); err != nil {
		return nil, badRequest("the body is no JSON of a threshold: "+err.Error(), thresholdHint)
	}
	t, err := b.check()
	if err != nil {
		return nil, err
	}
	set, err := s.Alerts.SetThreshold(r.Context(), t, viewerOf(r).Who())
	if err != nil {
		return nil, err
	}
	return bodyOfSet(set), nil
}

// deleteThreshold is DELETE /api/thresholds.
func (s *server) deleteThreshold(r *http.Request) (any, error) {
	id, err := strconv.ParseInt(r.URL.Query().Get("id"), 10, 64)
	if err != nil {
		return nil, badRequest("id must be the number of a threshold", "GET /api/thresholds lists them")
	}
	switch err := s.Alerts.DeleteThreshold(r.Context(), id, viewerOf(r).Who()); {
	case errors.Is(err, state.ErrNotFound):
		return nil, failed(http.StatusNotFound, fmt.Sprintf("there is no threshold %d", id), "GET /api/thresholds lists them")
	case err != nil:
		return nil, err
	}
	return map[string]any{"deleted": id}, nil
}
