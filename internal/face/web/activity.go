package web

import (
	"slices"

	"github.com/rissodb/risso/internal/explain/history"
	"github.com/rissodb/risso/internal/store/events"
)

// sampledNote is shown next to what comes from sampling sessions.
const sampledNote = "sampled: the sessions that run a statement are read once a second (less often if that takes the server longer than 20 ms); calls are how often the class was found, seconds that times the step"

// activityOf says what waits, by_host and, often, by_user are made of.
func activityOf(a *events.ClassAnswer) map[string]any {
	return map[string]any{"calls": a.Activity.Calls, "seconds": num(a.Activity.Seconds), "note": sampledNote}
}

// planNote says why a class has no plan, as far as its samples show. Samples whose literals are hidden look like prepared
// statements, so some source must have met one.
func planNote(a *events.ClassAnswer, sources []history.Status) string {
	if len(a.Plans) > 0 || !slices.ContainsFunc(sources, func(s history.Status) bool { return s.PlanNote == history.NotCaught }) {
		return ""
	}
	for _, s := range a.Samples {
		if history.NeedsRunning(s.Text) {
			return history.NotCaught
		}
	}
	return ""
}
