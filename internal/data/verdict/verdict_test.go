package verdict

import (
	"strings"
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

func TestJudge(t *testing.T) {
	daily, weekly := plan(t, "daily at 02:00"), plan(t, "weekly on sunday at 04:00")
	want := Want{Backup: daily, Drill: weekly, Mirror: true, Place: "/backup", Since: ago1(1000 * time.Hour)}
	for name, c := range map[string]struct {
		change func(*Facts, *Want)
		none   bool // nothing is configured
		state  State
		words  string
		remedy string
		also   string // the id of another finding
	}{
		"well": {state: OK, words: "backed up 10 h ago, proven 8 h ago, back within 90 s, any moment of the last 2 days can be restored"},
		"well by hand": {change: func(f *Facts, _ *Want) { f.WindowFrom, f.WindowTo, f.Recovery = time.Time{}, time.Time{}, 0 }, none: true, state: OK,
			words: "backed up 10 h ago, proven 8 h ago"},
		"never, nothing planned": {change: func(f *Facts, _ *Want) { *f = Facts{} }, none: true, state: Critical, words: "never backed up, and nothing is planned", remedy: "risso backup --dsn … --to DIR"},
		"a replica":              {change: func(f *Facts, _ *Want) { *f = Facts{Source: "db2"} }, none: true, state: OK, words: "a replica of db2, whose backups hold its data"},
		"a replica with a plan":  {change: func(f *Facts, _ *Want) { *f = Facts{Source: "db2"} }, state: Critical, words: "never backed up"},
		"back at once":           {change: func(f *Facts, _ *Want) { f.Recovery = 0.2 }, state: OK, words: "backed up 10 h ago, proven 8 h ago, back within 1 s, any moment"},
		"never":                  {change: func(f *Facts, _ *Want) { *f = Facts{} }, state: Critical, words: "never backed up", remedy: "risso backup --dsn … --to /backup"},
		"not yet": {change: func(f *Facts, w *Want) {
			*f = Facts{}
			*w = Want{Backup: daily, Since: ago1(time.Hour), Place: "s3://b/p?endpoint=x"}
		}, state: Warning, words: "never backed up: the first backup is due on 2026-11-22 02:00", remedy: "--to 's3://b/p?endpoint=x'"},
		"first runs": {change: func(f *Facts, w *Want) {
			*f = Facts{Protection: state.Protection{Running: []state.Run{{Kind: state.JobBackup, Began: ago1(time.Hour)}}}}
			w.Mirror = false
		}, state: Warning, words: "never backed up: the first backup runs since 11:00"},
		"a little late": {change: func(f *Facts, _ *Want) { f.LastBackup.Began = time.Date(2026, 11, 20, 2, 0, 0, 0, time.UTC) }, state: Warning,
			words: "the last backup is 34 h old: the one due at 02:00 is missing"},
		"late, but it runs": {change: func(f *Facts, _ *Want) {
			f.LastBackup.Began = time.Date(2026, 11, 20, 2, 0, 0, 0, time.UTC)
			f.Running = []state.Run{{Kind: state.JobBackup, Began: ago1(time.Hour)}}
		}, state: Warning, words: "the last backup is 34 h old; the next runs since 11:00"},
		"within its grace": {change: func(f *Facts, w *Want) {
			f.LastBackup.Began = now.Add(-7 * time.Hour)
			w.Backup = plan(t, "every 6h at 05:00") // 11:00 was due, 90 minutes are let pass
		}, state: OK, words: "backed up 7 h ago"},
		"lost":         {change: func(f *Facts, _ *Want) { f.LastBackup.Began = ago1(100 * time.Hour) }, state: Critical, words: "the last backup is 4 days old"},
		"max age":      {change: func(_ *Facts, w *Want) { w.Age.Late = 9 * time.Hour }, state: Warning, words: "the last backup is 10 h old"},
		"max age lost": {change: func(_ *Facts, w *Want) { w.Age = Limits{5 * time.Hour, 9 * time.Hour} }, state: Critical, words: "the last backup is 10 h old"},
		"age does not matter": {change: func(f *Facts, w *Want) {
			f.LastBackup.Began, w.Age = ago1(9000*time.Hour), Limits{Never, Never}
		}, state: OK, words: "backed up 375 days ago"},
		"proof lost": {change: func(f *Facts, w *Want) { w.Proof.Lost = 7 * time.Hour }, state: Critical, words: "the last proof that a backup restores is 8 h old"},
		"never proven for long": {change: func(f *Facts, w *Want) {
			f.LastProven, f.LastDrill, f.First, w.Proof.Lost = nil, nil, ago1(20*24*time.Hour), 15*24*time.Hour
		}, state: Critical, words: "no backup was ever proven"},
		"never proven for a while": {change: func(f *Facts, w *Want) {
			f.LastProven, f.LastDrill, f.First, w.Proof.Lost = nil, nil, ago1(14*24*time.Hour), 15*24*time.Hour
		}, state: Warning, words: "no backup was ever proven"},
		"proofs do not matter": {change: func(f *Facts, w *Want) { f.LastProven, f.LastDrill, w.Proof = nil, nil, Limits{Never, Never} }, state: OK,
			words: "backed up 10 h ago, back within"},
		"mirror may be behind": {change: func(f *Facts, w *Want) {
			f.WindowTo, f.Mirrors[0].Last, w.Behind = ago1(4*time.Hour), ago1(4*time.Hour), Limits{Never, Never}
		}, state: OK, words: "backed up"},
		"mirror ends early": {change: func(f *Facts, w *Want) { f.Short, w.Behind = true, Limits{Never, Never} }, state: Critical, words: "before the last backup"},
		"mirror begins late": {change: func(f *Facts, _ *Want) {
			f.Mirrors[0].First, f.WindowFrom, f.WindowTo = ago1(time.Hour), time.Time{}, time.Time{}
		}, state: Warning,
			words: "the mirrored binary logs begin behind the last backup", remedy: "risso backup --dsn … --to /backup"},
		"gap behind the last backup": {change: func(f *Facts, _ *Want) { f.Gap, f.Mirrors[0].First = "binlog.000007", ago1(time.Hour) }, state: Critical,
			words: "binary logs behind the last backup are missing: binlog.000007"},
		"by hand":  {change: func(f *Facts, _ *Want) { f.LastBackup.Began = ago1(30 * time.Hour) }, none: true, state: Warning, words: "the last backup is 30 h old"},
		"unproven": {change: func(f *Facts, _ *Want) { f.LastProven, f.LastDrill = nil, nil }, state: Warning, words: "no backup was ever proven: nobody knows whether they can be restored", remedy: "risso drill --from /backup"},
		"proof is old": {change: func(f *Facts, _ *Want) { f.ProvenAt = ago1(15 * 24 * time.Hour) }, state: Warning,
			words: "the last proof that a backup restores is 15 days old"},
		"proof is old by hand": {change: func(f *Facts, w *Want) { f.ProvenAt, w.Drill = ago1(29*24*time.Hour), schedule.Schedule{} }, state: OK, words: "proven 29 days ago"},
		"drill failed": {change: func(f *Facts, _ *Want) {
			f.LastDrill = &state.Drill{Ended: ago1(time.Hour), Text: "shop.orders has 3 rows less"}
			f.Failing = []state.Run{{Kind: state.JobDrill, Outcome: state.OutcomeFailed}}
		}, state: Critical, words: "the last drill failed at 11:00: shop.orders has 3 rows less"},
		"mirror behind": {change: func(f *Facts, _ *Want) { f.WindowTo = ago1(4 * time.Minute); f.Mirrors[0].Last = ago1(4 * time.Minute) }, state: Warning, words: "the mirror of binary logs is 4 min behind"},
		"mirror lost":   {change: func(f *Facts, _ *Want) { f.WindowTo = ago1(4 * time.Hour); f.Mirrors[0].Last = ago1(4 * time.Hour) }, state: Critical, words: "the mirror of binary logs ends at 08:00"},
		"no mirror":     {change: func(f *Facts, _ *Want) { f.WindowTo, f.Mirrors = time.Time{}, nil }, state: Critical, words: "no mirror runs"},
		"mirror has just begun": {change: func(f *Facts, _ *Want) {
			f.WindowTo, f.WindowFrom, f.Mirrors = time.Time{}, time.Time{}, nil
			f.Running = []state.Run{{Kind: state.JobMirror, Began: ago1(time.Minute)}}
		}, state: OK, words: "back within 90 s"},
		"mirrored by a stranger": {change: func(_ *Facts, w *Want) { w.Strange = "1 mirrored binary log counts for nothing: 100 % odd" }, state: Warning, words: "1 mirrored binary log counts for nothing: 100 % odd", remedy: "risso verify --from "},
		"gap":                    {change: func(f *Facts, _ *Want) { f.Gap = "binlog.000007" }, state: Warning, words: "binary logs are missing: binlog.000007"},
		"the first backup failed": {change: func(f *Facts, w *Want) {
			*f = Facts{Protection: state.Protection{Failing: []state.Run{{Kind: state.JobBackup, Outcome: state.OutcomeFailed, Ended: ago1(time.Hour), Text: "no route to host"}}}}
			*w = Want{Backup: daily, Since: ago1(2 * time.Hour)}
		}, state: Warning, words: "the last backup failed at 11:00: no route to host", also: "protect.never"},
		"a job failed": {change: func(f *Facts, _ *Want) {
			f.Failing = []state.Run{{Kind: state.JobCopy, Outcome: state.OutcomeFailed, Ended: ago1(time.Hour), Text: "no route to host."},
				{Kind: state.JobMirror, Outcome: state.OutcomeInterrupted}}
		}, state: Warning, words: "the last copy failed at 11:00: no route to host"},
		"place gone": {change: func(_ *Facts, w *Want) {
			w.Trouble = Trouble{Words: "/backup: there is no backup repository", Gone: true, Since: now}
		}, state: Critical,
			words: "the backups are gone: /backup: there is no backup repository"},
		"place away": {change: func(_ *Facts, w *Want) { w.Trouble = Trouble{Words: "no route to host", Since: now} }, state: Warning, words: "cannot be read: no route to host"},
		"two things": {change: func(f *Facts, _ *Want) {
			f.LastProven, f.LastDrill, f.LastBackup.Began = nil, nil, ago1(100*time.Hour)
		}, state: Critical, words: "the last backup is 4 days old", also: "protect.unproven"},
	} {
		f, w := good(), want
		if c.change != nil {
			c.change(&f, &w)
		}
		wanted := &w
		if c.none {
			wanted = nil
		}
		v := Judge(f, wanted, now)
		if v.State != c.state || !strings.Contains(v.Words, c.words) {
			t.Errorf("%s: %s: %s", name, v.State, v.Words)
		}
		if c.remedy != "" && !strings.Contains(v.Findings[0].Remedy, c.remedy) {
			t.Errorf("%s: %q", name, v.Findings[0].Remedy)
		}
		if c.also != "" && (len(v.Findings) != 2 || v.Findings[1].ID != c.also) {
			t.Errorf("%s: %+v", name, v.Findings)
		}
		if c.state == OK && len(v.Findings) != 0 {
			t.Errorf("%s: %+v", name, v.Findings)
		}
	}
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
		t.Errorf("%+v", events)
	}
	if events := Changes("db1", late, late, now); len(events) != 0 {
		t.Errorf("told twice: %+v", events)
	}
	if events := Changes("db1", late, lost, now); len(events) != 1 || events[0].Severity != fleet.SeverityCritical {
		t.Errorf("worse is not told: %+v", events)
	}
	if events := Changes("db1", lost, well, now); len(events) != 0 {
		t.Errorf("%+v", events)
	}
	f.LastBackup = nil
	if events := Changes("db1", Verdict{}, Judge(f, &want, now), now); len(events) != 0 {
		t.Errorf("what was so at the start is no event: %+v", events)
	}
}
