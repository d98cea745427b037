//go:build cgo

package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/data/jobs"
	"github.com/rissodb/risso/internal/data/schedule"
	"github.com/rissodb/risso/internal/data/verdict"
	"github.com/rissodb/risso/internal/store/state"
)

// protectSite is a Risso that protects db1: backed up daily, the older backup proven, the newer not.
func protectSite(t *testing.T, open bool) (*site, *keeper, time.Time) {
	t.Helper()
	now := time.Now().Truncate(time.Second)
	due := now.Add(time.Hour) // at a fixed hour, the last backup would be late at some time of the day
	plan := "daily at " + due.Format("15:04")
	daily, err := schedule.Parse(plan)
	if err != nil {
		t.Fatal(err)
	}
	k := &keeper{want: verdict.Want{Backup: daily, Place: "/backup", Since: now.AddDate(0, -1, 0)}}
	s := newSiteOf(t, open, func(o *Options) { o.Protect = k })
	ctx := t.Context()
	job, err := s.facts.SaveJob(ctx, state.Job{Name: "db1/backup", Kind: state.JobBackup, Instance: "db1", Place: "/backup", Schedule: plan, Enabled: true, NextDue: due})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.facts.SaveJob(ctx, state.Job{Name: "db1/copy", Kind: state.JobCopy, Instance: "db1", Place: "/copy", Enabled: true, Options: json.RawMessage(`{"by":"serve","after":"db1/backup"}`)}); err != nil {
		t.Fatal(err)
	}
	for id, hours := range map[string]time.Duration{"b1": 30, "b2": 6} {
		b := state.Backup{Place: "/backup", ID: id, Instance: "db1", Kind: "logical", Began: now.Add(-hours * time.Hour), Ended: now.Add(-hours*time.Hour + time.Minute), Bytes: 4 << 30, Stored: 1 << 20, Tables: 12, Rows: 1e6, Position: "0-1-7"}
		if err := s.facts.AddBackup(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.facts.AddDrill(ctx, state.Drill{Place: "/backup", Backup: "b1", Instance: "db1", Began: now.Add(-20 * time.Hour), Ended: now.Add(-19 * time.Hour), Passed: true, Recovery: 93,
		Proof: json.RawMessage(`{"stages":[{"name":"load","seconds":60}]}`)}); err != nil {
		t.Fatal(err)
	}
	if err := s.facts.SaveMirror(ctx, state.Mirror{Place: "/backup", Instance: "db1", First: now.Add(-31 * time.Hour), Last: now, Checked: now}); err != nil {
		t.Fatal(err)
	}
	run, err := s.facts.BeginRun(ctx, state.Run{Job: job.ID, Kind: state.JobBackup, Instance: "db1", Place: "/backup", Began: now.Add(-6 * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.facts.NoteRun(ctx, state.RunProgress{Run: run, Stage: "read tables", Done: 5, Total: 10, Unit: "tables"}, state.RunLine{Time: now, Text: "<b>12 tables</b>"}); err != nil {
		t.Fatal(err)
	}
	if err := s.facts.EndRun(ctx, state.Run{ID: run, Outcome: state.OutcomeOK, Backup: "b2", Text: "12 tables", Ended: now.Add(-6*time.Hour + time.Minute)}); err != nil {
		t.Fatal(err)
	}
	return s, k, now
}

func TestProtected(t *testing.T) {
	s, k, now := protectSite(t, true)
	k.running = []jobs.Progress{{Run: 9, Job: "db1/drill", Kind: state.JobDrill, Instance: "db1", Began: now, Stage: "restore", Done: 1, Total: 4, Unit: "bytes", Rate: 2, Left: 1.5},
		{Job: "db1/verify", Kind: state.JobVerify, Instance: "db1", Began: now, Waits: "db1/drill", Left: -1}}
	a := s.object(t, "/api/protect")
	expect(t, a, "db1", "servers", 0, "id")
	expect(t, a, "ok", "servers", 0, "state")
	expect(t, a, "b2", "servers", 0, "last_backup", "id")
	expect(t, a, "b1", "servers", 0, "last_proven", "id")
	expect(t, a, 93.0, "servers", 0, "recovery")
	expect(t, a, "/backup", "servers", 0, "plan", "place")
	expect(t, a, "db1/backup", "servers", 0, "next", "name")
	expectTime(t, a, now.Add(time.Hour), "servers", 0, "next", "due")
	expect(t, a, "b2", "servers", 0, "next", "last", "backup")
	expectTime(t, a, now, "servers", 0, "window", "to")
	expectTime(t, a, now.Add(-30*time.Hour+time.Minute), "servers", 0, "window", "from")
	expect(t, a, "restore", "servers", 0, "running", 0, "stage")
	expect(t, a, 1.5, "servers", 0, "running", 0, "left")
	expect(t, a, "db1/drill", "servers", 0, "running", 1, "waits")
	expect(t, a, nil, "servers", 0, "running", 1, "left")
	expect(t, a, "db1/backup", "servers", 0, "jobs", 1, "after")
	expect(t, a, nil, "servers", 0, "jobs", 1, "due")

	d := s.object(t, "/api/protect/server?id=db1")
	expect(t, d, "db1", "server", "id")
	expect(t, d, "b2", "backups", 0, "id")
	expect(t, d, nil, "backups", 0, "proven")
	expect(t, d, "the last of 21 November", "backups", 0, "kept", "reasons", 0)
	expectTime(t, d, now.Add(-19*time.Hour), "backups", 1, "proven")
	expect(t, d, false, "backups", 1, "kept", "keep")
	expect(t, d, 60.0, "drills", 0, "proof", "stages", 0, "seconds")
	expect(t, d, "ok", "runs", 0, "outcome")
	expect(t, d, "db1/backup", "runs", 0, "job")
	r := s.object(t, "/api/protect/run?id=1")
	expect(t, r, "<b>12 tables</b>", "log", 0, "text")
	expect(t, r, "read tables", "stage")
	expect(t, r, 10.0, "total")
	expect(t, r, "db1", "instance")
}

// expectTime holds a time to the second.
func expectTime(t *testing.T, v any, want time.Time, path ...any) {
	t.Helper()
	if got, ok := dig(v, path...).(float64); !ok || int64(got) != want.Unix() {
		t.Errorf("%v is %.0f, want %d", path, got, want.Unix())
	}
}

// TestUnprotected says loudly that there is nothing.
func TestUnprotected(t *testing.T) {
	s := newSite(t, true)
	a := s.object(t, "/api/protect")
	expect(t, a, "critical", "servers", 0, "state")
	expect(t, a, "never backed up, and nothing is planned", "servers", 0, "words")
	expect(t, a, nil, "servers", 0, "plan")
	expect(t, a, nil, "servers", 0, "last_backup")
	expect(t, a, "risso backup --dsn … --to DIR", "servers", 0, "findings", 0, "remedy")
	if code, body := s.send(t, http.MethodPost, "/api/protect/start?job=x", ""); code != http.StatusConflict || !strings.Contains(body, "config file") {
		t.Errorf("got %v, %v; want code http.StatusConflict, \"config file\" in it", code, body)
	}
	// A server that is not watched any more is shown as long as there are backups of it.
	if err := s.facts.AddBackup(t.Context(), state.Backup{Place: "/b", ID: "x", Instance: "gone", Began: time.Now().Add(-time.Hour), Ended: time.Now()}); err != nil {
		t.Fatal(err)
	}
	a = s.object(t, "/api/protect")
	expect(t, a, "gone", "servers", 1, "id")
	expect(t, a, false, "servers", 1, "watched")
	expect(t, a, "warning", "servers", 1, "state")
}

func TestStartAndStop(t *testing.T) {
	s, k, _ := protectSite(t, true)
	for _, c := range []struct {
		path string
		code int
		say  string
	}{
		{"/api/protect/start?job=db1/backup", http.StatusOK, `"started":"db1/backup"`},
		{"/api/protect/start?job=db1/drill", http.StatusConflict, "runs already"},
		{"/api/protect/start?job=db9/backup", http.StatusNotFound, "no job"},
		{"/api/protect/start", http.StatusNotFound, "no job"},
		{"/api/protect/stop?id=7", http.StatusOK, `"stopping":7`},
		{"/api/protect/stop?id=8", http.StatusConflict, "is not in progress"},
		{"/api/protect/stop?id=x", http.StatusBadRequest, "number of a run"},
	} {
		if code, body := s.send(t, http.MethodPost, c.path, ""); code != c.code || !strings.Contains(body, c.say) {
			t.Errorf("%s: got %d %s; want code %d, %q in it", c.path, code, body, c.code, c.say)
		}
	}
	if len(k.started) != 1 || len(k.stopped) != 1 {
		t.Errorf("got %v %v; want len(k.started) 1, len(k.stopped) 1", k.started, k.stopped)
	}
	if code, _ := s.send(t, http.MethodPost, "/api/protect/start?job=db1/backup", "", "Origin", "http://evil.example"); code != http.StatusForbidden || len(k.started) != 1 {
		t.Error("a page elsewhere may start jobs")
	}
	if code, _ := s.get(t, "/api/protect/start?job=db1/backup"); code == http.StatusOK || len(k.started) != 1 {
		t.Error("a link may start jobs")
	}
	for path, want := range map[string]int{"/api/protect/server": http.StatusNotFound, "/api/protect/server?id=nobody": http.StatusNotFound, "/api/protect/run?id=99": http.StatusNotFound,
		"/api/protect/run?id=0": http.StatusBadRequest} {
		if code, body := s.get(t, path); code != want || !strings.Contains(body, `"error"`) {
			t.Errorf("got %v, %v, %v; want code %v, \"\\\"error\\\"\" in it", path, code, body, want)
		}
	}
}

func TestProtectNeedsToken(t *testing.T) {
	s, k, _ := protectSite(t, false)
	for _, path := range []string{"/api/protect", "/api/protect/server?id=db1", "/api/protect/run?id=1"} {
		if code, _ := s.get(t, path); code != http.StatusUnauthorized {
			t.Errorf("got %v, %v; want http.StatusUnauthorized", path, code)
		}
	}
	for _, path := range []string{"/api/protect/start?job=db1/backup", "/api/protect/stop?id=7"} {
		if code, _ := s.send(t, http.MethodPost, path, ""); code != http.StatusUnauthorized || len(k.started)+len(k.stopped) > 0 {
			t.Errorf("got %v, %v; want code http.StatusUnauthorized, no k.started) + len(k.stopped", path, code)
		}
	}
}
