package events

import (
	"context"
	"fmt"
)

// Covered is a span in which an instance was read. Its ends are those of the points that Covered was asked for: a point in
// which at least one minute was read counts as read.
type Covered struct {
	Instance string
	Range
}

// reading says that an instance's minute was read, also when nothing ran in it.
type reading struct {
	instance string
	time     int64
}

// readingsOfRows are the readings that stored rows tell of.
const readingsOfRows = "SELECT DISTINCT instance, time FROM risso_minutes"

// readingsOf are the readings that minutes tell of, each once; first and last are the ends of their times.
func readingsOf(minutes []Minute) (list []reading, first, last int64) {
	seen := make(map[reading]bool, len(minutes))
	for _, m := range minutes {
		r := reading{m.Instance, m.Time}
		if seen[r] {
			continue
		}
		seen[r] = true
		if len(list) == 0 {
			first, last = r.time, r.time
		}
		first, last = min(first, r.time), max(last, r.time)
		list = append(list, r)
	}
	return list, first, last
}

// Covered reports when each instance was read in a range, by instance and time, as finely as about so many points.
func (a asker) Covered(ctx context.Context, r Range, instances []string, points int) ([]Covered, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if points < 1 || points > MaxPoints {
		return nil, badQuestion("points must be 1 to %d", MaxPoints)
	}
	ctx, leave, err := a.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	step := a.step(r, points)
	begin := r.From - r.From%step
	var out []Covered
	err = a.b.query(ctx, fmt.Sprintf("SELECT instance, intDiv(time - %d, %d) AS slot FROM risso_readings WHERE %s GROUP BY instance, slot ORDER BY instance, slot",
		begin, step, filter{instances: instances}.where(r)), nil, func(scan func(...any) error) error {
		var instance string
		var slot int64
		if err := scan(&instance, &slot); err != nil {
			return err
		}
		span := Range{max(r.From, begin+slot*step), min(r.To, begin+(slot+1)*step)}
		if n := len(out); n > 0 && out[n-1].Instance == instance && out[n-1].To == span.From {
			out[n-1].To = span.To
			return nil
		}
		out = append(out, Covered{instance, span})
		return nil
	})
	return out, wrap("tell when servers were read", err)
}
