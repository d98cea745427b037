package flags

import (
	"strings"
	"testing"
	"time"
)

func TestMoment(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for s, want := range map[string]time.Time{
		"":                          {},
		"2h":                        now.Add(-2 * time.Hour),
		"90s":                       now.Add(-90 * time.Second),
		"1.5d":                      now.Add(-36 * time.Hour),
		"2026-02-01":                time.Date(2026, 2, 1, 0, 0, 0, 0, berlin),
		"2026-02-01 10:00":          time.Date(2026, 2, 1, 9, 0, 0, 0, time.UTC),
		"2026-02-01T10:00:00Z":      time.Date(2026, 2, 1, 10, 0, 0, 0, time.UTC),
		"2026-02-01 10:00:00.5":     time.Date(2026, 2, 1, 9, 0, 0, 5e8, time.UTC),
		"2026-02-01T10:00:00+05:00": time.Date(2026, 2, 1, 5, 0, 0, 0, time.UTC),
		"2026-02-01 10:00:00Z":      time.Date(2026, 2, 1, 10, 0, 0, 0, time.UTC), // as Risso prints times
		"2026-02-01 10:00:00.25Z":   time.Date(2026, 2, 1, 10, 0, 0, 25e7, time.UTC),
		"2026-02-01 10:00+05:00":    time.Date(2026, 2, 1, 5, 0, 0, 0, time.UTC),
		"2026-10-25 03:00":          time.Date(2026, 10, 25, 2, 0, 0, 0, time.UTC),
		"2026-10-25 01:59:59":       time.Date(2026, 10, 24, 23, 59, 59, 0, time.UTC),
		"2026-03-29 03:00":          time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC),
		"2026-03-29 01:59:59":       time.Date(2026, 3, 29, 0, 59, 59, 0, time.UTC),
		"2026-10-25 02:30:00+02:00": time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC),
	} {
		got, err := Moment(s, now, berlin)
		if err != nil || !got.Equal(want) {
			t.Errorf("%q: got %v, %v; want Equal(want) true", s, got, err)
		}
	}
	for s, says := range map[string]string{"-2h": "", "soon": "", "-1d": "", "2026-13-01": "", "1e300d": "", "NaNd": "",
		"2026-10-25 02:30":    "exists twice in Europe/Berlin, where clocks are put back then: write 2026-10-25T02:30:00+02:00 or 2026-10-25T02:30:00+01:00",
		"2026-10-25 02:00:00": "exists twice", "2026-03-29 02:30": "does not exist in Europe/Berlin", "2026-03-29 02:00": "clocks are put forward"} {
		if got, err := Moment(s, now, berlin); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q is %v: %v; want an error, %q in the error", s, got, err, says)
		}
	}
}

func TestLately(t *testing.T) {
	now := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
	for in, want := range map[string]time.Time{
		"03:12":            time.Date(2026, 11, 28, 3, 12, 0, 0, time.UTC),
		"09:00:00":         now,
		"09:01":            time.Date(2026, 11, 27, 9, 1, 0, 0, time.UTC),
		"23:59:30":         time.Date(2026, 11, 27, 23, 59, 30, 0, time.UTC),
		"2h":               now.Add(-2 * time.Hour),
		"2026-11-01 03:12": time.Date(2026, 11, 1, 3, 12, 0, 0, time.UTC),
	} {
		if got, err := Lately(in, now, time.UTC); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, %v; want %v", in, got, err, want)
		}
	}
	if _, err := Lately("25:00", now, time.UTC); err == nil {
		t.Error("25:00 is no time of day")
	}
}
