package cli

import (
	"bytes"
	"testing"
	"time"
	_ "time/tzdata" // zones are here on every machine
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
	} {
		got, err := moment(s, now, berlin)
		if err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"-2h", "soon", "-1d", "2026-13-01", "1e300d", "NaNd"} {
		if got, err := moment(s, now, berlin); err == nil {
			t.Errorf("%q is %v", s, got)
		}
	}
}

// Progress says nothing where nobody looks.
func TestProgressInAPipe(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(&b)
	p.next = time.Time{}
	p.set(5, 10)
	p.end()
	if b.Len() > 0 {
		t.Errorf("%q", b.String())
	}
}
