package digits

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/pattern"
)

const (
	day  = 24 * time.Hour
	week = 7 * day
	year = 365 * day // as Prometheus counts it
)

var durationUnits = map[string]time.Duration{
	"ns": time.Nanosecond, "us": time.Microsecond, "µs": time.Microsecond, "ms": time.Millisecond,
	"s": time.Second, "m": time.Minute, "h": time.Hour, "d": day, "w": week, "y": year,
}

// durationForm is one part of a duration: a number and its unit.
var durationForm = pattern.Lazy(`^([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h|d|w|y)`)

// ParseDuration reads a length of time as it is written everywhere in Risso: 90s, 1m30s, 26h, 7d, 2w, 1y, and 0. A day has 24
// hours and a year 365 days. It takes what time.ParseDuration takes, but no sign.
func ParseDuration(s string) (time.Duration, error) {
	if s == "0" {
		return 0, nil
	}
	wrong := fmt.Errorf("%q is no duration: write it as 90s, 1h30m, 7d, 2w or 1y", s)
	if s == "" {
		return 0, wrong
	}
	var sum float64
	for rest := s; rest != ""; {
		m := durationForm().FindStringSubmatch(rest)
		if m == nil {
			return 0, wrong
		}
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return 0, wrong
		}
		sum += math.Round(v * float64(durationUnits[m[2]]))
		rest = rest[len(m[0]):]
	}
	if sum >= math.MaxInt64 {
		return 0, fmt.Errorf("%q is longer than 292 years", s)
	}
	return time.Duration(sum), nil
}

// Duration writes a length of time so that ParseDuration reads it again, as short as that goes: 26h, 1m30s, 7d.
func Duration(d time.Duration) string {
	if d >= 2*day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	text := d.String()
	for _, zero := range []struct{ cut, behind string }{{"0s", "m"}, {"0m", "h"}} { // 26h0m0s is 26h
		if short, ok := strings.CutSuffix(text, zero.cut); ok && strings.HasSuffix(short, zero.behind) {
			text = short
		}
	}
	return text
}

// bytesForm is a number of bytes: the number, the unit, and whether it is binary.
var bytesForm = pattern.Lazy(`^([0-9]+(?:\.[0-9]+)?(?:e[0-9]+)?)(?:([kKMGT])(i?))?B?$`)

// ParseBytes reads a number of bytes as it is written everywhere in Risso: 500, 64K, 50MB (decimal), 1GiB (binary).
func ParseBytes(s string) (int64, error) {
	wrong := fmt.Errorf("%q is no number of bytes: write it as 500, 64K, 50MB or 1GiB", s)
	m := bytesForm().FindStringSubmatch(s)
	if m == nil {
		return 0, wrong
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, wrong
	}
	base := 1000.0
	if m[3] != "" {
		base = 1024
	}
	for range strings.Index(" KMGT", strings.ToUpper(m[2] + " ")[:1]) {
		v *= base
	}
	if v >= 1<<62 {
		return 0, wrong
	}
	return int64(v), nil
}
