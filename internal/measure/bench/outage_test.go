package bench

import (
	"reflect"
	"testing"
	"time"
)

func TestOutages(t *testing.T) {
	const s = time.Second
	type marks = []time.Duration
	// each marks every 5 ms of a span.
	each := func(spans ...time.Duration) (m marks) {
		for i := 0; i < len(spans); i += 2 {
			for at := spans[i]; at < spans[i+1]; at += 5 * time.Millisecond {
				m = append(m, at)
			}
		}
		return m
	}
	for _, c := range []struct {
		name             string
		success, failure marks
		slow             []span
		median, gap      time.Duration
		want             []Outage
	}{
		{name: "all went well", success: each(0, 10*s)},
		{name: "an error while others succeed", success: each(0, 10*s), failure: marks{3 * s}},
		{name: "a crash", success: each(0, 3*s, 4500*time.Millisecond, 10*s), failure: each(3*s, 4*s),
			want: []Outage{{From: 0.995, Milliseconds: 1505, Errors: true}}},
		{name: "down until the end", success: each(0, 9*s), failure: each(9*s, 10*s), want: []Outage{{From: 6.995, Milliseconds: 1005, Errors: true}}},
		{name: "down from the beginning", success: each(3*s, 10*s), failure: each(0, 3*s), want: []Outage{{From: 0, Milliseconds: 1000, Errors: true}}},
		{name: "a stall", success: each(0, 3*s, 5*s, 10*s), slow: []span{{3 * s, 5 * s}}, want: []Outage{{From: 1, Milliseconds: 2000}}},
		{name: "nothing to do", success: each(0, 3*s, 5*s, 10*s)},
		{name: "nothing to do, then a stall", success: each(0, 3*s, 5*s, 10*s), slow: []span{{4 * s, 5 * s}}, want: []Outage{{From: 2, Milliseconds: 1000}}},
		{name: "slow transactions", success: each(0, 3*s, 5*s, 10*s), slow: []span{{3 * s, 5 * s}}, median: 300 * time.Millisecond},
		{name: "a few errors of slow transactions", success: marks{2 * s, 2100 * time.Millisecond, 2200 * time.Millisecond}, failure: marks{2150 * time.Millisecond},
			median: 100 * time.Millisecond, slow: []span{}, want: nil},
	} {
		o := outages{success: newTicks(10 * s), failure: newTicks(10 * s), slow: c.slow, median: c.median, gap: c.gap}
		for _, at := range c.success {
			o.success.mark(at)
		}
		for _, at := range c.failure {
			o.failure.mark(at)
		}
		end := 10 * s
		if c.median == 100*time.Millisecond {
			end = 2210 * time.Millisecond
		}
		if got := o.find(2*s, end); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, not %+v", c.name, got, c.want)
		}
	}
}

func TestSpansJoin(t *testing.T) {
	got := join([]span{{5, 6}, {1, 2}, {2, 3}, {10, 20}, {11, 12}, {19, 30}})
	if want := []span{{1, 3}, {5, 6}, {10, 30}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}
