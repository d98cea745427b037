package web

import (
	"net/http"
	"strings"

	"github.com/rissodb/risso/internal/explain/plan"
	"github.com/rissodb/risso/internal/store/events"
)

// planJSON is a plan as the server gave it, and as people read it.
type planJSON struct {
	events.Plan
	Tree string `json:"tree,omitempty"` // drawn as text; empty when the text is no plan that Risso reads
}

// drawn draws the plans. One that cannot be read stays as it came.
func drawn(plans []events.Plan) []planJSON {
	out := make([]planJSON, len(plans))
	for i, p := range plans {
		out[i].Plan = p
		if read, err := plan.Parse(p.Text); err == nil {
			out[i].Tree = strings.Join(plan.Text(read, plan.TextOptions{Conditions: true}), "\n")
		}
	}
	return out
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
