package digits

import (
	"testing"
	"time"
)

func TestParseDuration(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "90s": 90 * time.Second, "1m30s": 90 * time.Second, "250ms": 250 * time.Millisecond, "1.5h": 90 * time.Minute,
		"7d": 7 * 24 * time.Hour, "1.5d": 36 * time.Hour, "1d12h": 36 * time.Hour, "2w": 14 * 24 * time.Hour, "1y": 365 * 24 * time.Hour,
		"290y": 290 * 365 * 24 * time.Hour, ".5s": 500 * time.Millisecond, "5us": 5 * time.Microsecond, "5µs": 5 * time.Microsecond, "1ns": 1,
	} {
		if got, err := ParseDuration(s); err != nil || got != want {
			t.Errorf("%q is %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "5", "-5s", "+5s", "s", "5 s", "5S", "1M", "d7", "7dd", "300y", "1e9y", "NaNs", "infs", "7d ", "1mo", "0x10s", "1_0s", "…", "5s5"} {
		if got, err := ParseDuration(s); err == nil {
			t.Errorf("%q is read as %v", s, got)
		}
	}
}

func TestDurationIsReadAgain(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", 90 * time.Second: "1m30s", 26 * time.Hour: "26h", 24 * time.Hour: "24h", 48 * time.Hour: "2d",
		400 * 24 * time.Hour: "400d", 10 * time.Minute: "10m", time.Hour + time.Second: "1h0m1s", 500 * time.Millisecond: "500ms", 3 * time.Microsecond: "3µs",
	} {
		got := Duration(d)
		if back, err := ParseDuration(got); got != want || err != nil || back != d {
			t.Errorf("%d is written %q, want %q, and read again as %v, %v", d, got, want, back, err)
		}
	}
}

func TestParseBytes(t *testing.T) {
	for s, want := range map[string]int64{
		"0": 0, "500": 500, "500B": 500, "64K": 64_000, "64k": 64_000, "64kB": 64_000, "50MB": 50_000_000, "1.5G": 1_500_000_000, "2T": 2_000_000_000_000,
		"1KiB": 1024, "1kiB": 1024, "1Ki": 1024, "1GiB": 1 << 30, "0.5MiB": 1 << 19, "1e3": 1000, "4000000T": 4_000_000e12,
	} {
		got, err := ParseBytes(s)
		if err != nil || got != want {
			t.Errorf("%q is %d, not %d: %v", s, got, want, err)
		}
	}
	for _, s := range []string{"", "B", "K", "MB", "-1", "-5MB", "fast", "50 MB", "50MBs", "50BM", "5KK", "5iB", "5i", "5BB", "5KBi", "5P", "NaN", "Inf", "-Inf", "+Inf", "infinity", "NaNB", "1e300", "9999999999T", "0x10", "0x1p4", "1_000", "5M5"} {
		if got, err := ParseBytes(s); err == nil {
			t.Errorf("%q passes for %d bytes", s, got)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	f.Add("1d12h")
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDuration(s)
		if err != nil {
			return
		}
		if d < 0 {
			t.Fatalf("%q is %v, want at least 0", s, d)
		}
		if back, err := ParseDuration(Duration(d)); err != nil || back != d {
			t.Fatalf("%q is %d, written %q, read again as %d, %v", s, d, Duration(d), back, err)
		}
	})
}
