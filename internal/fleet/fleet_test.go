package fleet

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

func TestSeverity(t *testing.T) {
	if !(SeverityInfo < SeverityWarning && SeverityWarning < SeverityCritical) || SeverityInfo != 0 {
		t.Errorf("got %d, %d, %d; want them to rise from 0", SeverityInfo, SeverityWarning, SeverityCritical)
	}
	for s, want := range map[Severity]string{SeverityInfo: "info", SeverityWarning: "warning", SeverityCritical: "critical", SeverityCritical + 1: "info", -1: "info"} {
		text, err := s.MarshalText()
		if s.String() != want || err != nil || string(text) != want {
			t.Errorf("%d: got %q and %q, %v; want %q", s, s, text, err, want)
		}
	}
	for text, want := range map[string]Severity{"info": SeverityInfo, "warning": SeverityWarning, "critical": SeverityCritical, "odd": SeverityInfo, "": SeverityInfo} {
		got := Severity(7)
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q: got %v, %v; want %v", text, got, err, want)
		}
	}
}

// A clock may be half an hour off.
func TestAhead(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for by, want := range map[time.Duration]bool{-time.Hour: false, 0: false, 30 * time.Minute: false, 30*time.Minute + 1: true, time.Hour: true} {
		if got := Ahead(now.Add(by), now); got != want {
			t.Errorf("dated %v ahead: got %v, want %v", by, got, want)
		}
	}
}

func TestSlug(t *testing.T) {
	for name, want := range map[string]string{
		"db1": "db1", "DB 1": "db-1", "az-AZ_09.x": "az-az_09.x", "`{/:@[": "unnamed", "": "unnamed", ".hidden.": "hidden", "-a-": "a", "größe": "gr--e", "a..b": "a..b", "_": "_",
	} {
		if got := Slug(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

func TestKey(t *testing.T) {
	for want, m := range map[string]Metric{
		"m":                   {Name: "m"},
		`m{a="1"}`:            {Name: "m", Labels: []Label{{"a", "1"}}},
		`m{a="1",b="2",c=""}`: {Name: "m", Labels: []Label{{"a", "1"}, {"b", "2"}, {"c", ""}}},
		`m{a="\"\\\n"}`:       {Name: "m", Labels: []Label{{"a", "\"\\\n"}}},
	} {
		if got := m.Key(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestSample(t *testing.T) {
	var s Sample
	if got := s.Find("a"); got != -1 {
		t.Errorf("in an empty sample: got %d, want -1", got)
	}
	a, b := s.Position(Metric{Name: "a"}), s.Position(Metric{Name: "b", Labels: []Label{{"x", "1"}}})
	if again := s.Position(Metric{Name: "a", Help: "told otherwise"}); a != 0 || b != 1 || again != 0 || len(s.Metrics) != 2 {
		t.Errorf("got positions %d, %d, %d and %d metrics; want 0, 1, 0 and 2", a, b, again, len(s.Metrics))
	}
	if got := s.Find(`b{x="1"}`); got != 1 {
		t.Errorf("got %d, want 1", got)
	}
	if v, ok := s.Value("a"); ok || v != 0 {
		t.Errorf("before it is set: got %v, %v; want none", v, ok)
	}
	s.Values[a], s.Values[b] = 7, 0
	for key, want := range map[string]float64{"a": 7, `b{x="1"}`: 0} {
		if v, ok := s.Value(key); !ok || v != want {
			t.Errorf("%s: got %v, %v; want %v", key, v, ok, want)
		}
	}
	if v, ok := s.Value("c"); ok || v != 0 {
		t.Errorf("never seen: got %v, %v; want none", v, ok)
	}
	s.Clear()
	if !math.IsNaN(s.Values[a]) || !math.IsNaN(s.Values[b]) || strings.Join([]string{s.Metrics[0].Name, s.Metrics[1].Name}, " ") != "a b" {
		t.Errorf("cleared: got %v of %v, want no values of the same metrics", s.Values, s.Metrics)
	}
}

// TestFindingSince: nothing is said to hold since the year 1.
func TestFindingSince(t *testing.T) {
	for _, c := range []struct {
		since time.Time
		want  string
	}{
		{time.Time{}, `{"id":"x","severity":"warning"}`},
		{time.Date(2026, 11, 23, 1, 2, 3, 0, time.UTC), `{"id":"x","severity":"warning","since":"2026-11-23T01:02:03Z"}`},
	} {
		got, err := json.Marshal(Finding{ID: "x", Severity: SeverityWarning, Since: c.since})
		if err != nil || string(got) != c.want {
			t.Errorf("got %s, %v, want %s", got, err, c.want)
		}
	}
}
