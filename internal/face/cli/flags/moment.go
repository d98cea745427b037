package flags

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
)

// Moment reads a time, or how long before now.
func Moment(s string, now time.Time, zone *time.Location) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := digits.ParseDuration(s); err == nil {
		return now.Add(-d), nil
	}
	for _, form := range []string{"2006-01-02T15:04:05Z07:00", "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04Z07:00", "2006-01-02 15:04Z07:00"} {
		if t, err := time.Parse(form, s); err == nil {
			return t, nil
		}
	}
	for _, form := range []string{"2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(form, s, zone); err == nil {
			return t, oneTime(form, s, t)
		}
	}
	return time.Time{}, fmt.Errorf("%q: a time (2026-03-01, '2026-03-01 10:00:00'), or how long ago (90s, 2h, 7d)", s)
}

// Lately is Moment, or the last time that the clocks showed a time of day, such as 03:12.
func Lately(s string, now time.Time, zone *time.Location) (time.Time, error) {
	for _, form := range []string{"15:04", "15:04:05"} {
		if _, err := time.Parse(form, s); err != nil {
			continue
		}
		for days := range 2 {
			day := now.In(zone).AddDate(0, 0, -days).Format(time.DateOnly)
			if t, err := Moment(day+" "+s, now, zone); err != nil || !t.After(now) {
				return t, err
			}
		}
	}
	return Moment(s, now, zone)
}

// oneTime refuses what the clocks of a zone show twice, or never, when they are put back and forward.
func oneTime(form, s string, t time.Time) error {
	wall, err := time.Parse(form, s)
	if err != nil {
		return err
	}
	const written = "2006-01-02T15:04:05Z07:00"
	var all []string
	for _, near := range []time.Time{t.Add(-24 * time.Hour), t.Add(24 * time.Hour)} {
		_, offset := near.Zone()
		at := wall.Add(-time.Duration(offset) * time.Second).In(t.Location())
		if _, there := at.Zone(); there == offset {
			all = append(all, at.Format(written))
		}
	}
	switch all = slices.Compact(all); len(all) {
	case 0:
		return fmt.Errorf("%q does not exist in %s: clocks are put forward then; write it with its zone, as %s", s, t.Location(), t.Format(written))
	case 1:
		return nil
	}
	return fmt.Errorf("%q exists twice in %s, where clocks are put back then: write %s", s, t.Location(), strings.Join(all, " or "))
}
