package alert

import (
	"slices"
	"time"

	"github.com/rissodb/risso/internal/store/state"
)

// Replayed is how a policy would have rung.
type Replayed struct {
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Findings int       `json:"findings"` // that held in that time and fit
	Rang     int       `json:"rang"`     // alerts that would have rung
	Messages int       `json:"messages"` // that a receiver of all of them would have got
	Alerts   []Alert   `json:"alerts"`   // in the order in which they would have rung
}

// The steps of a replay: by the second while something changes, else as far apart as nothing that is told depends on.
const (
	nearStep = time.Second
	farStep  = 30 * time.Second
	near     = 3 * time.Minute // after a change
)

// Replay says how often findings that were kept would have rung, and how many messages one receiver of all would have got, without silences,
// acknowledgements and quiet hours. seats names the instances.
func (p *Policy) Replay(records []state.FindingRecord, seats map[string]Seat, from, to time.Time) Replayed {
	const all = "all"
	q := *p
	q.Receivers, q.Routes, q.Maintenance = []string{all}, nil, nil
	out := Replayed{From: from, To: to, Findings: len(records), Alerts: []Alert{}}
	list := slices.Clone(records)
	slices.SortStableFunc(list, func(a, b state.FindingRecord) int { return a.Told.Compare(b.Told) })
	for i := range list { // numbers in the order of the ends, as the store gives them
		list[i].Closed = 0
	}
	ends := make([]int, 0, len(list))
	for i, r := range list {
		if !r.Ended.IsZero() {
			ends = append(ends, i)
		}
	}
	slices.SortStableFunc(ends, func(a, b int) int { return list[a].Ended.Compare(list[b].Ended) })
	for n, i := range ends {
		list[i].Closed = int64(n + 1)
	}
	rang := map[string]bool{}
	var s State
	changed := from
	begun, over := 0, 0 // how many of list, and of ends, are before now
	for now := from; now.Before(to); {
		for ; begun < len(list) && !list[begun].Told.After(now); begun++ {
			changed = now
		}
		for ; over < len(ends) && !list[ends[over]].Ended.After(now); over++ {
			changed = now
		}
		d := q.Look(now, s, Input{Records: at(list[:begun], now, s.Cursor), Instances: seats})
		s = d.State
		out.Messages += len(d.Out)
		for _, c := range d.Changed {
			if key := c.Key + c.Rang.String(); c.Phase != Pending && !rang[key] {
				rang[key] = true
				out.Alerts = append(out.Alerts, c.Alert)
			}
		}
		switch {
		case len(s.Standing) > 0 && now.Sub(changed) < near:
			now = now.Add(nearStep)
		case len(s.Standing) > 0:
			now = now.Add(farStep)
		case begun < len(list):
			now = list[begun].Told
		default:
			now = to
		}
	}
	out.Rang = len(out.Alerts)
	return out
}

// at is what of the findings the store would have given at a moment.
func at(list []state.FindingRecord, now time.Time, cursor int64) (out []state.FindingRecord) {
	for _, r := range list {
		if r.Ended.After(now) {
			r.Ended, r.Closed = time.Time{}, 0
		}
		if r.Closed == 0 || r.Closed > cursor {
			out = append(out, r)
		}
	}
	return out
}
