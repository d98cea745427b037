package web

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/explain/plan"
	"github.com/rissodb/risso/internal/store/events"
)

// planJSON is a plan as the server gave it, and as people read it.
type planJSON struct {
	events.Plan
	Tree  string          `json:"tree,omitempty"`  // drawn as text; empty when the text is no plan that Risso reads. GET /api/plan draws it as SVG
	Words []plan.Sentence `json:"words,omitempty"` // what it says, worst first
}

// drawn draws the plans. One that cannot be read stays as it came. The samples tell what some plans leave out.
func drawn(plans []events.Plan, samples []events.Sample) []planJSON {
	out := make([]planJSON, len(plans))
	for i, p := range plans {
		out[i].Plan = p
		if read, err := plan.Parse(p.Text); err == nil {
			out[i].Tree = strings.Join(plan.Text(read, plan.TextOptions{Conditions: true}), "\n")
			out[i].Words = plan.Sentences(read, sampleOf(samples, p.Instance))
		}
	}
	return out
}

// sampleOf is the text of a sample, from the instance if there is one; else "".
func sampleOf(samples []events.Sample, instance string) string {
	text := ""
	for _, s := range samples {
		if s.Instance == instance {
			return s.Text
		}
		if text == "" {
			text = s.Text
		}
	}
	return text
}

// planImage is GET /api/plan: a plan as SVG. It holds names and values from statements, so it may do nothing in a browser but be
// seen: no script, no form, nothing from elsewhere.
func (s *server) planImage(r *http.Request, a *answer) error {
	svg, err := s.planSVG(r)
	if err != nil {
		return err
	}
	a.kind, a.policy = "image/svg+xml", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"
	_, err = io.WriteString(a, svg)
	return err
}

func (s *server) planSVG(r *http.Request) (string, error) {
	q := r.URL.Query()
	theme := q.Get("theme")
	if theme != "" && theme != plan.ThemeLight && theme != plan.ThemeDark {
		return "", badRequest("theme must be light or dark, not "+strconv.Quote(theme), "leave it out to follow the reader's system")
	}
	if s.Statements.Store == nil {
		return "", failed(http.StatusNotFound, "this Risso keeps no plans", "")
	}
	p, err := s.Statements.Store.Plan(r.Context(), q.Get("class"), q.Get("id"), q.Get("instance"))
	if err != nil {
		return "", questionError(err)
	}
	if p == nil {
		return "", failed(http.StatusNotFound, "class "+strconv.Quote(q.Get("class"))+" has no plan "+strconv.Quote(q.Get("id")), "GET /api/query lists the plans of a class")
	}
	read, err := plan.Parse(p.Text)
	if err != nil {
		return "", failed(http.StatusNotFound, "this plan cannot be drawn: "+err.Error(), "GET /api/query has it as the server gave it")
	}
	return plan.Draw(plan.Explain(read, nil, ""), plan.SVGOptions{Theme: theme, Bare: q.Get("bare") == "1"}), nil
}

// coveredJSON is when an instance was read: spans of from and to in unix seconds.
type coveredJSON struct {
	Instance string     `json:"instance"`
	Spans    [][2]int64 `json:"spans"`
}

// covered reports when the instances were read, as finely as the answer's points.
func (s *server) covered(ctx context.Context, r events.Range, instances []string, points int) ([]coveredJSON, error) {
	found, err := s.Statements.Store.Covered(ctx, r, instances, points)
	if err != nil {
		return nil, questionError(err)
	}
	out := []coveredJSON{}
	for _, c := range found {
		if n := len(out); n == 0 || out[n-1].Instance != c.Instance {
			out = append(out, coveredJSON{Instance: c.Instance})
		}
		last := &out[len(out)-1]
		last.Spans = append(last.Spans, [2]int64{c.From, c.To})
	}
	return out, nil
}

// schemas is GET /api/queries/schemas: what ran in each default schema in a range.
func (s *server) schemas(r *http.Request) (any, error) {
	if gone, ok := s.queriesGone(); ok {
		return gone, nil
	}
	q := r.URL.Query()
	span, err := statementRange(q, "from", "to")
	if err != nil {
		return nil, err
	}
	instances, err := instancesOf(q)
	if err != nil {
		return nil, err
	}
	found, err := s.Statements.Store.Schemas(r.Context(), span, instances)
	if err != nil {
		return nil, questionError(err)
	}
	return map[string]any{"available": true, "from": span.From, "to": span.To, "schemas": list(found)}, nil
}
