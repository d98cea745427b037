package serve

import (
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/events"
)

// TestJudgeFlip: a plan that changed is a finding if its class became slower, until it is as fast as before, or flips back, or a day has passed.
func TestJudgeFlip(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) int64 { return now.Add(-d).Unix() }
	flip := func(d time.Duration, from, to string) events.Flip {
		return events.Flip{Time: ago(d), Old: from, New: to, Schema: "shop"}
	}
	// ran is how long a call took each two minutes, up to and from a moment.
	ran := func(turn time.Duration, calls int64, was, is float64) (list []events.Point) {
		for d := 6 * time.Hour; d > 0; d -= 2 * time.Minute {
			each := was
			if d <= turn {
				each = is
			}
			list = append(list, events.Point{Time: ago(d), Cost: fleet.Cost{Calls: calls, Seconds: each * float64(calls)}})
		}
		return list
	}
	for _, c := range []struct {
		name   string
		flips  []events.Flip
		points []events.Point
		told   bool
		value  float64 // how many times slower; 0: no finding
	}{
		{"slower", []events.Flip{flip(time.Hour, "a", "b")}, ran(time.Hour, 100, 0.01, 0.08), false, 8},
		{"slower before it was seen", []events.Flip{flip(time.Hour, "a", "b")}, ran(2*time.Hour, 100, 0.01, 0.08), false, 8},
		{"as fast", []events.Flip{flip(time.Hour, "a", "b")}, ran(time.Hour, 100, 0.01, 0.011), false, 0},
		{"a little slower", []events.Flip{flip(time.Hour, "a", "b")}, ran(time.Hour, 100, 0.01, 0.018), false, 0},
		{"a little slower, but told", []events.Flip{flip(time.Hour, "a", "b")}, ran(time.Hour, 100, 0.01, 0.018), true, 1.8},
		{"nearly nothing", []events.Flip{flip(time.Hour, "a", "b")}, ran(time.Hour, 1, 0.0001, 0.0008), false, 0},
		{"few calls", []events.Flip{flip(4*time.Minute, "a", "b")}, ran(4*time.Minute, 3, 1, 9), false, 0},
		{"back", []events.Flip{flip(2*time.Hour, "a", "b"), flip(time.Hour, "b", "a")}, ran(2*time.Hour, 100, 0.01, 0.08), true, 0},
		{"on to a third", []events.Flip{flip(2*time.Hour, "a", "b"), flip(time.Hour, "b", "c")}, ran(2*time.Hour, 100, 0.01, 0.08), false, 8},
		{"long ago", []events.Flip{flip(25*time.Hour, "a", "b")}, ran(time.Hour, 100, 0.01, 0.08), true, 0},
		{"no flip", nil, ran(time.Hour, 100, 0.01, 0.08), false, 0},
		{"nothing runs", []events.Flip{flip(time.Hour, "a", "b")}, nil, true, 0},
	} {
		a := &events.ClassAnswer{Class: events.Class{ID: "C", Fingerprint: "select *\nfrom t", Tables: "shop.t,shop.u"}, Step: 120, Points: c.points, Flips: c.flips}
		got, ok := judgeFlip(a, now, c.told)
		if diff := got.Value - c.value; ok != (c.value > 0) || diff > 0.01 || diff < -0.01 {
			t.Errorf("%s: got %v, %+v, want it %v times slower", c.name, ok, got, c.value)
		}
		if ok && (got.Subject != "C" || got.Remedy != "ANALYZE TABLE `shop`.`t`; ANALYZE TABLE `shop`.`u`" || got.Since.Unix() != c.flips[0].Time || !strings.Contains(got.What, "80 ms instead of 10 ms on average: select * from t") && c.value == 8) {
			t.Errorf("%s: got %+v, want the class, its tables, since when, and how slow", c.name, got)
		}
	}
}
