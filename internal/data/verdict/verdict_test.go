package verdict

import (
	"testing"
	"time"

	"github.com/rissodb/risso/internal/data/schedule"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/state"
)

// now is a Saturday.
var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func plan(t *testing.T, text string) schedule.Schedule {
	t.Helper()
	s, err := schedule.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ago1(d time.Duration) time.Time { return now.Add(-d) }

// good is a server that is backed up and proven.
func good() Facts {
	b := &state.Backup{Place: "/backup", ID: "b1", Began: ago1(10 * time.Hour), Ended: ago1(9 * time.Hour)}
	return Facts{Protection: state.Protection{Instance: "db1", LastBackup: b, LastProven: b, ProvenAt: ago1(8 * time.Hour), Recovery: 90,
		LastDrill: &state.Drill{Passed: true, Ended: ago1(8 * time.Hour)}, WindowFrom: ago1(48 * time.Hour), WindowTo: now},
		Mirrors: []state.Mirror{{Place: "/backup", First: ago1(48 * time.Hour), Last: now}}}
}

func TestChanges(t *testing.T) {
	f, want := good(), Want{Backup: plan(t, "daily at 02:00"), Mirror: true, Since: ago1(1000 * time.Hour)}
	well := Judge(f, &want, now)
	f.LastBackup.Began = time.Date(2026, 11, 20, 2, 0, 0, 0, time.UTC)
	late := Judge(f, &want, now)
	f.LastBackup.Began = ago1(100 * time.Hour)
	lost := Judge(f, &want, now)
	events := Changes("db1", well, late, now)
	if len(events) != 1 || events[0].Severity != fleet.SeverityWarning || events[0].Subject != "stale" || events[0].Instance != "db1" || events[0].Kind != fleet.EventProtect {
		t.Errorf("got %+v; want len(events) 1, events[0].Severity fleet.SeverityWarning, events[0].Subject \"stale\", events[0].Instance \"db1\", events[0].Kind fleet.EventProtect",
			events)
	}
	if events := Changes("db1", late, late, now); len(events) != 0 {
		t.Errorf("told twice: got %+v, want none", events)
	}
	if events := Changes("db1", late, lost, now); len(events) != 1 || events[0].Severity != fleet.SeverityCritical {
		t.Errorf("worse is not told: %+v; want len(events) 1, events[0].Severity fleet.SeverityCritical", events)
	}
	if events := Changes("db1", lost, well, now); len(events) != 0 {
		t.Errorf("got %+v, want none", events)
	}
	f.LastBackup = nil
	if events := Changes("db1", Verdict{}, Judge(f, &want, now), now); len(events) != 0 {
		t.Errorf("what was so at the start is no event: %+v, want none", events)
	}
	if events := Changes("db1", well, Judge(f, &want, now), now); len(events) != 1 || events[0].Subject != "never" {
		t.Errorf("a server that was well has no backup any more: got %+v, want one event, never", events)
	}
	want.Strange = "1 log does not count"
	f = good()
	if events := Changes("db1", well, Judge(f, &want, now), now); len(events) != 0 {
		t.Errorf("strange logs: got %+v, want none: verify tells of them", events)
	}
}

// TestWaiting: a job that neither begins nor ends is told, though it does not fail; one that waits for another is not.
func TestWaiting(t *testing.T) {
	job := &state.Job{Kind: state.JobVerify}
	for name, c := range map[string]struct {
		change func(*Facts)
		want   string
	}{
		"well":         {func(f *Facts) { f.NextJob, f.NextDue = job, now.Add(time.Hour) }, ""},
		"due":          {func(f *Facts) { f.NextJob, f.NextDue = job, ago1(10*time.Minute) }, ""},
		"due for long": {func(f *Facts) { f.NextJob, f.NextDue = job, ago1(2*time.Hour) }, "the verify that was due at 10:00 has not begun"},
		"waits for a backup": {func(f *Facts) {
			f.NextJob, f.NextDue = job, ago1(2*time.Hour)
			f.Running = []state.Run{{Kind: state.JobBackup, Began: ago1(3 * time.Hour)}}
		}, ""},
		"a mirror runs": {func(f *Facts) {
			f.NextJob, f.NextDue = job, ago1(2*time.Hour)
			f.Running = []state.Run{{Kind: state.JobMirror, Began: ago1(300 * time.Hour)}}
		},
			"the verify that was due at 10:00 has not begun"},
		"does not end": {func(f *Facts) { f.Running = []state.Run{{Kind: state.JobDrill, Began: ago1(30 * time.Hour)}} }, "the drill that began on 2026-11-20 06:00 still runs, after 30 h"},
	} {
		f := good()
		c.change(&f)
		got := Judge(f, &Want{Mirror: true}, now)
		if c.want == "" && len(got.Findings) > 0 || c.want != "" && (len(got.Findings) != 1 || got.Findings[0].What != c.want || got.Findings[0].Since.IsZero()) {
			t.Errorf("%s: got %+v, want %q", name, got.Findings, c.want)
		}
	}
}

// TestBackupRemedy: where the server's name is known, the command can be run as it is.
func TestBackupRemedy(t *testing.T) {
	for want, w := range map[string]Want{
		"risso backup --dsn … --to /b":                                  {Place: "/b"},
		"risso backup --dsn shop --config '/etc/my risso.yaml' --to /b": {Place: "/b", Server: "shop", File: "/etc/my risso.yaml"},
	} {
		if got := Judge(Facts{}, &w, now); len(got.Findings) == 0 || got.Findings[0].Remedy != want {
			t.Errorf("got %+v, want %s", got.Findings, want)
		}
	}
}
