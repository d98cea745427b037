package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"
)

func day(n int) time.Time { return time.Date(2026, 11, n, 2, 0, 0, 0, time.UTC) }

func TestJobs(t *testing.T) {
	s := newStore(t)
	ctx := t.Context()
	j, err := s.SaveJob(ctx, Job{Name: "nightly", Kind: JobBackup, Instance: "db1", Place: "/bk", Schedule: "every day at 02:00", Options: json.RawMessage(`{"physical":true}`), Enabled: true, NextDue: day(22)})
	if err != nil || j.ID == 0 {
		t.Fatalf("got %v, %v; want ID not 0", j, err)
	}
	if _, err := s.SaveJob(ctx, Job{Name: "nightly", Kind: JobDrill}); !errors.Is(err, ErrExists) {
		t.Errorf("a second job of the same name: got %v, want ErrExists", err)
	}
	j.Place = "s3://bk"
	if _, err := s.SaveJob(ctx, j); err != nil {
		t.Fatal(err)
	}
	if err := s.SetNextDue(ctx, j.ID, day(23)); err != nil {
		t.Fatal(err)
	}
	list, err := s.Jobs(ctx)
	j.NextDue, j.Created = day(23), j.Created.UTC().Truncate(time.Microsecond)
	if err != nil || len(list) != 1 || !reflect.DeepEqual(list[0], j) {
		t.Errorf("got %+v, not %+v, %v; want len(list) 1, list[0] %v", list, j, err, j)
	}
	if _, err := s.SaveJob(ctx, Job{ID: 99, Name: "x"}); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	first, err := s.BeginRun(ctx, Run{Job: j.ID, Kind: JobBackup, Instance: "db1", Began: day(20)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.EndRun(ctx, Run{ID: first, Outcome: OutcomeFailed, Text: "no", Ended: day(21)}); err != nil {
		t.Fatal(err)
	}
	second, err := s.BeginRun(ctx, Run{Job: j.ID, Kind: JobBackup, Instance: "db1", Began: day(21)})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.InterruptRuns(ctx); err != nil || n != 1 {
		t.Errorf("got %d interrupted, %v; want 1", n, err)
	}
	runs, err := s.Runs(ctx, RunQuery{Job: j.ID})
	if err != nil || len(runs) != 2 || runs[0].ID != second || runs[0].Outcome != OutcomeInterrupted || runs[0].Ended.IsZero() || runs[1].Text != "no" || !runs[1].Ended.Equal(day(21)) {
		t.Errorf("got %+v, %v; want len(runs) 2, runs[0].ID %v, runs[0].Outcome OutcomeInterrupted, runs[0].Ended.IsZero() false, runs[1].Text \"no\", runs[1].Ended.Equal(day(21)) true",
			runs, err, second)
	}
	if runs, err := s.Runs(ctx, RunQuery{Instance: "db2"}); err != nil || len(runs) != 0 {
		t.Errorf("got %+v, %v; want none", runs, err)
	}
	if err := s.EndRun(ctx, Run{ID: 99}); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	if err := s.RemoveJob(ctx, j.ID); err != nil {
		t.Fatal(err)
	}
	if err := s.RemoveJob(ctx, j.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

// backupOf is a backup of a day.
func backupOf(d int) Backup {
	return Backup{Place: "/bk", ID: day(d).Format("20060102T150405Z") + "-aaaaaa", Instance: "db1", Kind: "logical", Began: day(d), Ended: day(d).Add(time.Hour), Bytes: 10, Stored: 5, Tables: 2, Rows: 7, Position: "0-1-5"}
}

// drillOf is a drill of a backup.
func drillOf(b Backup, at time.Time, passed bool, seconds float64) Drill {
	return Drill{Place: b.Place, Backup: b.ID, Instance: "db1", Began: at, Ended: at.Add(time.Minute), Passed: passed, Recovery: seconds}
}

// TestProtections follows one instance from nothing to a proven backup and on.
func TestProtections(t *testing.T) {
	s := newStore(t)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	of := func() Protection {
		t.Helper()
		list, err := s.Protections(ctx)
		must(err)
		if len(list) != 1 || list[0].Instance != "db1" {
			t.Fatalf("got %+v; want len(list) 1, list[0].Instance \"db1\"", list)
		}
		return list[0]
	}
	if list, err := s.Protections(ctx); err != nil || len(list) != 0 {
		t.Fatalf("got %v, %v; want none", list, err)
	}
	must(s.AddBackup(ctx, backupOf(18)))
	must(s.AddBackup(ctx, backupOf(19)))
	must(s.AddBackup(ctx, backupOf(20)))
	p := of()
	if p.LastBackup == nil || *p.LastBackup != backupOf(20) || p.LastProven != nil || !p.WindowTo.IsZero() || !p.NextDue.IsZero() {
		t.Fatalf("got %+v; want LastBackup not nil, *p.LastBackup backupOf(20), LastProven nil, WindowTo.IsZero() true, NextDue.IsZero() true", p)
	}
	// A drill of an older backup, one of the newest that fails, the old one again, slower.
	id, err := s.AddDrill(ctx, drillOf(backupOf(19), day(20), true, 30))
	must(err)
	if again, err := s.AddDrill(ctx, drillOf(backupOf(19), day(20), true, 30)); err != nil || again != id {
		t.Fatal(again, id, err)
	}
	_, err = s.AddDrill(ctx, drillOf(backupOf(20), day(21), false, 0))
	must(err)
	_, err = s.AddDrill(ctx, drillOf(backupOf(19), day(22), true, 40))
	must(err)
	_, err = s.AddDrill(ctx, drillOf(backupOf(18), day(23), true, 50))
	must(err)
	p = of()
	if p.LastProven == nil || p.LastProven.ID != backupOf(19).ID || p.Recovery != 40 || !p.ProvenAt.Equal(day(22).Add(time.Minute)) || p.LastDrill.Backup != backupOf(18).ID {
		t.Fatalf("got %+v; want LastProven not nil, LastProven.ID backupOf(19).ID, Recovery 40, ProvenAt.Equal(day(22).Add(time.Minute)) true, LastDrill.Backup backupOf(18).ID",
			p)
	}
	// The window begins with the oldest backup whose logs are all there.
	must(s.SaveMirror(ctx, Mirror{Place: "/bk", Instance: "db1", First: day(18).Add(time.Minute), Last: day(22), Checked: day(22), Gap: "binlog.000007"}))
	p = of()
	if !p.WindowFrom.Equal(day(19).Add(time.Hour)) || !p.WindowTo.Equal(day(22)) || p.Gap != "binlog.000007" {
		t.Fatalf("got %+v; want WindowFrom.Equal(day(19).Add(time.Hour)) true, WindowTo.Equal(day(22)) true, Gap \"binlog.000007\"", p)
	}
	must(s.SaveMirror(ctx, Mirror{Place: "/bk", Instance: "db1", First: day(21), Last: day(22), Checked: day(22)}))
	if p = of(); !p.WindowTo.IsZero() {
		t.Fatalf("a window without a backup in it: %+v", p)
	}
	// Jobs: the next one due counts, one that is off does not; the last run says whether it fails.
	a, err := s.SaveJob(ctx, Job{Name: "a", Kind: JobBackup, Instance: "db1", Enabled: true, NextDue: day(24)})
	must(err)
	_, err = s.SaveJob(ctx, Job{Name: "b", Kind: JobDrill, Instance: "db1", NextDue: day(23)})
	must(err)
	for _, o := range []Outcome{OutcomeFailed, OutcomeOK, OutcomeFailed} {
		r, err := s.BeginRun(ctx, Run{Job: a.ID, Instance: "db1"})
		must(err)
		must(s.EndRun(ctx, Run{ID: r, Outcome: o}))
	}
	p = of()
	if !p.NextDue.Equal(day(24)) || p.NextJob == nil || p.NextJob.Name != "a" || len(p.Failing) != 1 || len(p.Running) != 0 {
		t.Fatalf("got %+v; want NextDue.Equal(day(24)) true, NextJob not nil, NextJob.Name \"a\", len(Failing) 1, no p.Running", p)
	}
	r, err := s.BeginRun(ctx, Run{Job: a.ID, Instance: "db1"})
	must(err)
	if p = of(); len(p.Failing) != 0 || len(p.Running) != 1 || p.Running[0].ID != r {
		t.Fatalf("got %+v; want no p.Failing, len(Running) 1, Running[0].ID %v", p, r)
	}
	// Pruned backups protect nothing.
	must(s.KeepBackups(ctx, "/bk", []string{backupOf(18).ID}))
	if p = of(); p.LastBackup.ID != backupOf(18).ID || p.LastProven.ID != backupOf(18).ID || p.Recovery != 50 {
		t.Fatalf("got %+v; want LastBackup.ID backupOf(18).ID, LastProven.ID backupOf(18).ID, Recovery 50", p)
	}
	must(s.KeepBackups(ctx, "/bk", nil))
	if p = of(); p.LastBackup != nil || p.LastProven != nil {
		t.Fatalf("got %+v; want LastBackup nil, LastProven nil", p)
	}
}

// TestUpgradeToProtect opens a file that a Risso made which protected nothing.
func TestUpgradeToProtect(t *testing.T) {
	s := newStore(t)
	fill(t, s, 3)
	path := s.Path()
	downgrade(t, s, 2)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := openStore(t, path)
	if again.Damage() != nil {
		t.Fatalf("got %v, want nil", again.Damage())
	}
	if _, err := again.SaveJob(t.Context(), Job{Name: "x"}); err != nil {
		t.Error(err)
	}
	if list, err := again.Events(t.Context(), EventQuery{}); err != nil || len(list) != 3 {
		t.Errorf("got %d events, %v; want 3", len(list), err)
	}
}

// downgrade makes a store one of an older schema.
func downgrade(t *testing.T, s *Store, version int) {
	t.Helper()
	for _, m := range slices.Backward(migrations[version:]) {
		for _, index := range regexp.MustCompile(`CREATE (?:UNIQUE )?INDEX (\w+)`).FindAllStringSubmatch(m, -1) {
			if _, err := s.write.ExecContext(t.Context(), "DROP INDEX IF EXISTS "+index[1]); err != nil {
				t.Fatal(err)
			}
		}
		for _, table := range regexp.MustCompile(`CREATE TABLE (\w+)`).FindAllStringSubmatch(m, -1) {
			if _, err := s.write.ExecContext(t.Context(), "DROP TABLE IF EXISTS "+table[1]); err != nil {
				t.Fatal(err)
			}
		}
		for _, column := range regexp.MustCompile(`ALTER TABLE (\w+) ADD COLUMN (\w+)`).FindAllStringSubmatch(m, -1) {
			if _, err := s.write.ExecContext(t.Context(), "ALTER TABLE "+column[1]+" DROP COLUMN "+column[2]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := s.write.ExecContext(t.Context(), fmt.Sprintf("PRAGMA user_version=%d", version)); err != nil {
		t.Fatal(err)
	}
}
