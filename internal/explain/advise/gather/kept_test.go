package gather

import (
	"testing"
	"time"
)

// TestAdvance: what is kept of an index' use goes on over restarts of the server, and begins anew where something may be missing.
func TestAdvance(t *testing.T) {
	t0 := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	hour := func(n float64) time.Time { return t0.Add(time.Duration(n * float64(time.Hour))) }
	type reading struct {
		at, started time.Time
		raw         float64 // below 0: the index is not in it
	}
	for _, c := range []struct {
		name     string
		readings []reading
		reads    float64
		since    time.Time
		first    time.Time
	}{
		{"counted on", []reading{{hour(0), hour(-5), 3}, {hour(1), hour(-5), 3}, {hour(2), hour(-5), 7}}, 7, hour(-5), time.Time{}},
		{"a restart", []reading{{hour(0), hour(-5), 3}, {hour(1), hour(0.5), 2}, {hour(2), hour(0.5), 2}}, 5, hour(-5), time.Time{}},
		{"a restart after which nobody opened the table for an hour", []reading{{hour(0), hour(-5), 3}, {hour(1), hour(0.5), -1}, {hour(2), hour(0.5), 4}}, 7, hour(-5), time.Time{}},
		{"a restart long after the last reading", []reading{{hour(0), hour(-5), 3}, {hour(9), hour(8), 0}}, 0, hour(8), time.Time{}},
		{"set to zero", []reading{{hour(0), hour(-5), 3}, {hour(1), hour(-5), 1}}, 4, hour(-5), time.Time{}},
		{"set to zero, nobody knows when", []reading{{hour(0), hour(-5), 3}, {hour(9), hour(-5), 1}}, 1, hour(-5), hour(9)},
		{"Risso was away, the server was not", []reading{{hour(0), hour(-5), 0}, {hour(100), hour(-5), 0}}, 0, hour(-5), time.Time{}},
		{"made later", []reading{{hour(0), hour(-5), -1}, {hour(1), hour(-5), 0}}, 0, hour(-5), hour(0)},
	} {
		k := &Kept{}
		for _, r := range c.readings {
			m := map[string]map[string]map[string]float64{}
			if r.raw >= 0 {
				m["d"] = map[string]map[string]float64{"t": {"k": r.raw}}
			}
			k.advance(r.at, r.started, m)
		}
		u := k.Uses["d"]["t"].Indexes["k"]
		if u.Reads != c.reads || !k.Since.Equal(c.since) || !u.First.Equal(c.first) {
			t.Errorf("%s: got %g since %s, first %s; want %g since %s, first %s", c.name, u.Reads, k.Since, u.First, c.reads, c.since, c.first)
		}
	}
}
