package alerts

import (
	"encoding/json"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/alert"
)

// TestQuiet: what rings and ends in quiet hours is told once after them, also if Risso was restarted meanwhile, and the history then says who heard of it.
func TestQuiet(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	midnight := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
	late := fleet.Finding{ID: "protect.late", Severity: fleet.SeverityWarning, Since: midnight.Add(time.Hour), Trouble: fleet.Trouble{What: "the backup is late"}}
	told := 0
	for _, step := range []struct {
		at    time.Duration
		holds []fleet.Finding
		told  int
	}{{time.Hour, []fleet.Finding{late}, 0}, {2 * time.Hour, nil, 0}, {3 * time.Hour, nil, 0}, {7*time.Hour - time.Second, nil, 0}, {7 * time.Hour, nil, 1}, {7*time.Hour + time.Second, nil, 1}, {8 * time.Hour, nil, 1}} {
		facts, err := state.Open(t.Context(), path) // each look is another life
		if err != nil {
			t.Fatal(err)
		}
		d, err := New(t.Context(), Options{Facts: facts, Policy: alert.Policy{Receivers: []string{"mail"}, Routes: []alert.Route{
			{To: []string{"mail"}, Quiet: []alert.Hours{{To: 7 * time.Hour}}, Loud: fleet.SeverityCritical}}},
			Instances: func() []fleet.Instance { return []fleet.Instance{{ID: "db1", Name: "db1"}} },
			Because:   func() func(state.FindingRecord) (alert.Cause, bool) { return nil },
			Event:     func(fleet.Event) {}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		at := midnight.Add(step.at)
		if err := facts.KeepFindings(t.Context(), state.Look{Instance: "db1", At: at, Findings: step.holds}); err != nil {
			t.Fatal(err)
		}
		if err := d.Look(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		list, err := facts.WaitingMessages(t.Context(), "mail", 9)
		if err != nil {
			t.Fatal(err)
		}
		if told = len(list); told != step.told {
			t.Errorf("%s after midnight: got %d messages, want %d", step.at, told, step.told)
		}
		if step.at == 8*time.Hour && told == 1 {
			var m alert.Message
			if err := json.Unmarshal(list[0].Body, &m); err != nil {
				t.Fatal(err)
			}
			if len(m.Alerts) != 1 || m.Alerts[0].Phase != alert.Resolved || m.Alerts[0].What != late.What || !m.Quiet.Equal(late.Since) {
				t.Errorf("got %+v, want the backup that was late, and since when it was quiet", m)
			}
			rows, err := facts.Alerts(t.Context(), midnight, at, 9)
			if err != nil || len(rows) != 1 {
				t.Fatalf("got %d alerts in the history, %v, want 1", len(rows), err)
			}
			var a alert.Standing
			if err := json.Unmarshal(rows[0].Alert, &a); err != nil {
				t.Fatal(err)
			}
			if heard := a.Told["mail"]; !heard.Over || !heard.At.Equal(midnight.Add(7*time.Hour)) {
				t.Errorf("got %+v in the history, want that mail heard of its end at seven", a.Told)
			}
			if !d.state.Idle() {
				t.Errorf("got %+v, want nothing that waits", d.state)
			}
		}
		if err := facts.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if told != 1 {
		t.Errorf("got %d messages, want one", told)
	}
}
