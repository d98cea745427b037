package state

import (
	"math"
	"path/filepath"
	"testing"
	"time"
)

// TestRuleAlerts: what is noted of alerts of rules is read as it was, after the file was opened again.
func TestRuleAlerts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	noon := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	put := []RuleAlert{{Key: `{a="1"}`, Since: noon, Firing: true, Lapsed: noon.Add(time.Minute), Value: 0}, {Key: `{a="2"}`, Since: noon, Value: math.NaN()}, {Key: `{a="3"}`, Since: noon, Value: math.Inf(1)}}
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.KeepRuleAlerts(t.Context(), put, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := s.RuleAlerts(t.Context())
	if err != nil || len(got) != len(put) {
		t.Fatalf("got %+v, %v, want %d alerts", got, err, len(put))
	}
	for i, a := range got {
		w := put[i]
		if a.Key != w.Key || !a.Since.Equal(w.Since) || a.Firing != w.Firing || !a.Lapsed.Equal(w.Lapsed) || a.Value != w.Value && !(math.IsNaN(a.Value) && math.IsNaN(w.Value)) {
			t.Errorf("got %+v, want %+v", a, w)
		}
	}
}
