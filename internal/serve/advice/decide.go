package advice

import (
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/store/state"
)

// decided is the decision that holds for what was found on a server, or nil. Of several that of the one server counts before that of all, and
// one about the object before a silence.
func decided(list []state.AdviceDecision, i fleet.Instance, id, object string, severity fleet.Severity, now time.Time) *state.AdviceDecision {
	var best *state.AdviceDecision
	score := 0
	for n := range list {
		d := &list[n]
		if !d.Until.IsZero() && !now.Before(d.Until) {
			continue
		}
		points := 0
		switch {
		case d.Kind == state.AdviceSilenced:
			if (d.Server == "" || d.Server == i.ID || pattern.Stars(d.Server, i.Name)) && pattern.Stars(d.Finding, id) && (d.Object == "" || pattern.Stars(d.Object, object)) {
				points = 1
			}
		case d.Finding != id || d.Object != object || severity > d.Severity:
		case d.Server == i.ID:
			points = 3
		case d.Server == "":
			points = 2
		}
		if points > score {
			best, score = d, points
		}
	}
	return best
}
