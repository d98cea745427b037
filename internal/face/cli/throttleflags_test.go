package cli

import (
	"testing"
	"time"

	"github.com/rissodb/risso/internal/throttle"
)

func TestParseBytes(t *testing.T) {
	for s, want := range map[string]int64{
		"0": 0, "500": 500, "500B": 500, "64K": 64_000, "64k": 64_000, "64kB": 64_000, "50MB": 50_000_000, "1.5G": 1_500_000_000, "2T": 2_000_000_000_000,
		"1KiB": 1024, "1kiB": 1024, "1Ki": 1024, "1GiB": 1 << 30, "0.5MiB": 1 << 19, "1e3": 1000, "4000000T": 4_000_000e12,
	} {
		got, err := parseBytes(s)
		if err != nil || got != want {
			t.Errorf("%q is %d, not %d: %v", s, got, want, err)
		}
	}
	for _, s := range []string{"", "B", "K", "MB", "-1", "-5MB", "fast", "50 MB", "50MBs", "50BM", "5KK", "5iB", "5i", "5BB", "5KBi", "5P", "NaN", "Inf", "-Inf", "+Inf", "infinity", "NaNB", "1e300", "9999999999T", "0x10", "0x1p4", "1_000", "5M5"} {
		if got, err := parseBytes(s); err == nil {
			t.Errorf("%q passes for %d bytes", s, got)
		}
	}
}

func TestLimits(t *testing.T) {
	got, err := throttleFlags{maxLag: time.Minute, maxRunning: 5, maxRate: "1KiB"}.limits(3)
	if want := (throttle.Limits{MaxLag: time.Minute, MaxThreadsRunning: 5, MaxRate: 1024, Own: 3}); err != nil || got != want {
		t.Errorf("%+v: %v", got, err)
	}
	for _, f := range []throttleFlags{{maxLag: -1}, {maxRunning: -1}, {maxRate: "0"}, {maxRate: "fast"}, {maxRate: "0.5"}} {
		if l, err := f.limits(0); err == nil {
			t.Errorf("%+v passes as %+v", f, l)
		}
	}
}
