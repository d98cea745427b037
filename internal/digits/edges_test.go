package digits

import (
	"math"
	"testing"
	"time"
)

// TestEdges: at the very places where a rule changes, and in the middle between two of them.
func TestEdges(t *testing.T) {
	for _, c := range []struct {
		rule func(float64) string
		of   float64
		want string
	}{
		{Three, 1e-6, "0.000001"}, {Three, 0.99e-6, "9.9e-7"}, {Three, 99.95, "100"}, {Count, 999.5, "1,000"}, {Count, 999.4, "999"}, {Count, 1e15 - 1, "999,999,999,999,999"}, {Number, 999.5, "1 k"}, {Number, 999.4e15, "999 P"}, {Number, -999.6e15, "-1e18"}, {Bytes[float64], 1023.5, "1 KiB"}, {Bytes[float64], 1023.4, "1023 B"},
		{Seconds, 0.9995e-6, "1 µs"}, {Seconds, 0.9995e-3, "1 ms"}, {Seconds, 0.9995, "1 s"}, {Seconds, 119.5, "2 min"}, {Seconds, -119.5, "-2 min"}, {Seconds, 3660, "1 h 1 min"}, {Seconds, 86460, "1 d"}, {Seconds, 121, "2 min 1 s"},
		{Age, 119.49, "119 s"}, {Age, 119.5 * 60, "2 h"}, {Age, 47.5 * 3600, "2 d"}, {Age, 47.4 * 3600, "47 h"}, {Age, -86400 * 3, "-3 d"}, {Shift, 0, "0 s ahead"}, {Shift, 0.5, "1 s ahead"}, {Shift, -0.5, "1 s back"},
		{Percent, 0.00014, "0.01 %"}, {Percent, 0.00123, "0.12 %"}, {Percent, -0.00123, "-0.12 %"}, {Percent, 0.0099, "0.99 %"}, {Percent, 0.0123, "1.2 %"}, {Percent, 0.0994, "9.9 %"}, {Percent, 0.0995, "10 %"}, {Percent, 0.123, "12 %"}, {Percent, 0.99, "99 %"}, {Percent, 0.99123, "99.12 %"}, {Percent, 0.99956, "99.96 %"}, {Percent, -0.5, "-50 %"},
		{Percent, 1.5e-12, "< 0.01 %"}, {Percent, -1.5e-12, "> -0.01 %"}, {Percent, 0.9e-12, "0 %"}, {Percent, 0.00009, "< 0.01 %"}, {Percent, -0.0001, "-0.01 %"}, {Change, 0.004, "+0.4 %"}, {Change, 0.09, "+9 %"}, {Change, 0.95, "+95 %"}, {Change, 1e-13, "0 %"}, {Change, -0.004, "-0.4 %"}, {Change, 10, "+1,000 %"},
		{Ratio, 0.1004, "0.10"}, {Ratio, 0.0994, "0.0994"}, {Ratio, 0.0996, "0.10"}, {Ratio, 1.06, "1.06"}, {Ratio, 0.94, "0.94"}, {Ratio, 0.96, "0.960"}, {Ratio, -2, "-2.00"}, {Chance, 0.0001, "0.0001"}, {Chance, 0.00009, "< 0.0001"}, {Chance, 0, "< 0.0001"},
	} {
		if got := c.rule(c.of); got != c.want {
			t.Errorf("%v: got %q, want %q", c.of, got, c.want)
		}
	}
	for _, n := range []int64{1, -1, 12, -12, 100, -100} {
		if got, want := Thousands(n), map[int64]string{1: "1", -1: "-1", 12: "12", -12: "-12", 100: "100", -100: "-100"}[n]; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestReadEdges: the longest and largest possible, and what a wrong one returns.
func TestReadEdges(t *testing.T) {
	for s, want := range map[string]time.Duration{"292y": 292 * year, "9223372036854775000ns": 9223372036854774784, "1.5ns": 2, "0.4ns": 0, "1w1d": 8 * day, "3.d": 3 * day} {
		if got, err := ParseDuration(s); err != nil || got != want {
			t.Errorf("%s: got %d, %v; want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"9223372036854775807ns", "293y", "5", "", "1x"} {
		if got, err := ParseDuration(s); err == nil || got != 0 {
			t.Errorf("%s: got %d, %v; want 0 and an error", s, got, err)
		}
	}
	for d, want := range map[time.Duration]string{2 * day: "2d", 3 * day: "3d", day: "24h", 2*day + time.Hour: "49h", 2*day - 1: "47h59m59.999999999s", math.MaxInt64: "2562047h47m16.854775807s"} {
		if got := Duration(d); got != want {
			t.Errorf("%d: got %s, want %s", d, got, want)
		}
	}
	for s, want := range map[string]int64{"4611686018427387000": 4611686018427386880, "0.9": 0, "1.5KiB": 1536, "1TiB": 1 << 40, "1MB": 1e6, "1M": 1e6} {
		if got, err := ParseBytes(s); err != nil || got != want {
			t.Errorf("%s: got %d, %v; want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"4611686018427387904", "5000000T", "1e400", "x", ""} {
		if got, err := ParseBytes(s); err == nil || got != 0 {
			t.Errorf("%s: got %d, %v; want 0 and an error", s, got, err)
		}
	}
	for s, want := range map[string]time.Duration{"": 0, "36h": 36 * time.Hour, "14d": 14 * day, "1ns": 1} {
		if got, err := ParseAge(s); err != nil || got != want {
			t.Errorf("an age of %q: got %v, %v; want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"0", "0s", "x", "-1d"} {
		if got, err := ParseAge(s); err == nil {
			t.Errorf("an age of %q: got %v and no error", s, got)
		}
	}
}
