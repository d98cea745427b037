package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/state"
)

// shop is a Risso whose clock is moved by hand, with a real store of facts.
type shop struct {
	t      *testing.T
	facts  *state.Store
	mu     sync.Mutex
	now    time.Time
	events []string
	did    []string
}

func newShop(t *testing.T) *shop {
	t.Helper()
	facts, err := state.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { facts.Close() })
	return &shop{t: t, facts: facts, now: time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)}
}

func (s *shop) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *shop) event(e fleet.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, fmt.Sprintf("%s %s %s", e.Severity, e.Instance, e.Text))
}

// does is a task that notes that it was done.
func (s *shop) does(name string, err error) Task {
	return func(_ context.Context, r *Report) (Result, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.did = append(s.did, fmt.Sprintf("%s %s", s.now.Format("02 15:04"), name))
		return Result{Text: name + " done"}, err
	}
}

// runner makes a runner that has looked at what the store knows.
func (s *shop) runner(jobs ...Job) *Runner {
	s.t.Helper()
	r, err := New(Options{Facts: s.facts, Jobs: jobs, Event: s.event, Logger: slog.New(slog.DiscardHandler), Now: s.clock})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := r.prepare(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	return r
}

// until lets the clock go to a time, in steps of a minute.
func (s *shop) until(r *Runner, clock string) {
	s.t.Helper()
	to, err := time.Parse("2006-01-02 15:04", "2026-11-"+clock)
	if err != nil {
		s.t.Fatal(err)
	}
	for {
		r.step(s.t.Context())
		r.tasks.Wait()
		r.step(s.t.Context()) // what is due after it
		r.tasks.Wait()
		s.mu.Lock()
		s.now = s.now.Add(time.Minute)
		over := s.now.After(to)
		if over {
			s.now = to
		}
		s.mu.Unlock()
		if over {
			return
		}
	}
}

func (s *shop) set(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = at
}

// expect holds what was done since it was asked last.
func (s *shop) expect(want ...string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.did, want) {
		s.t.Errorf("done:\n  %s\nnot:\n  %s", strings.Join(s.did, "\n  "), strings.Join(want, "\n  "))
	}
	s.did = nil
}

func (s *shop) job(name string, kind state.JobKind, when string) Job {
	return Job{Name: name, Kind: kind, Instance: "db1", Place: "/backup", Schedule: when, Task: s.does(name, nil)}
}

func TestDueInOrder(t *testing.T) {
	s := newShop(t)
	backup, copies := s.job("backup", state.JobBackup, "daily at 02:00"), s.job("copy", state.JobCopy, "")
	copies.After = "backup"
	drill, mirror := s.job("drill", state.JobDrill, "weekly on sunday at 02:30"), s.job("verify", state.JobVerify, "monthly at 02:00")
	r := s.runner(drill, mirror, copies, backup)
	s.until(r, "21 01:59")
	s.expect()
	s.until(r, "23 03:00")
	s.expect("21 02:00 backup", "21 02:00 copy", "22 02:00 backup", "22 02:00 copy", "22 02:30 drill", "23 02:00 backup", "23 02:00 copy")
	runs, err := s.facts.Runs(t.Context(), state.RunQuery{Kind: state.JobCopy})
	if err != nil || len(runs) != 3 || runs[0].Outcome != state.OutcomeOK || runs[0].Text != "copy done" || runs[0].Place != "/backup" {
		t.Errorf("got %+v %v; want len(runs) 3, runs[0].Outcome state.OutcomeOK, runs[0].Text \"copy done\", runs[0].Place \"/backup\"", runs, err)
	}
	_, lines, err := s.facts.RunNotes(t.Context(), runs[0].ID)
	if err != nil || len(lines) != 2 || lines[0].Text != "behind backup" {
		t.Errorf("got %+v %v; want len(lines) 2, lines[0].Text \"behind backup\"", lines, err)
	}
	jobs, err := s.facts.Jobs(t.Context())
	if err != nil || len(jobs) != 4 || jobs[0].NextDue.Format("02 15:04") != "24 02:00" || !jobs[1].NextDue.IsZero() {
		t.Errorf("got %+v %v; want len(jobs) 4, jobs[0].NextDue.Format(\"02 15:04\") \"24 02:00\", jobs[1].NextDue.IsZero() true", jobs, err)
	}
}

// TestMissedIsDoneOnce lets Risso not run for a week.
func TestMissedIsDoneOnce(t *testing.T) {
	s := newShop(t)
	job := s.job("backup", state.JobBackup, "every 6h at 02:00")
	s.until(s.runner(job), "21 03:00")
	s.expect("21 02:00 backup")
	s.set(time.Date(2026, 11, 28, 3, 0, 0, 0, time.UTC))
	r := s.runner(job)
	s.until(r, "28 09:00")
	s.expect("28 03:00 backup", "28 08:00 backup")
	runs, err := s.facts.Runs(t.Context(), state.RunQuery{})
	if err != nil {
		t.Fatal(err)
	}
	_, lines, err := s.facts.RunNotes(t.Context(), runs[1].ID)
	if err != nil || len(lines) == 0 || !strings.Contains(lines[0].Text, "was due at 2026-11-21 08:00:00, while Risso was not running") {
		t.Errorf("got %+v %v; want len(lines) not 0, \"was due at 2026-11-21 08:00:00, while Risso was not running\" in lines[0].Text", lines, err)
	}
	// Another schedule starts over: what the old one missed does not matter.
	job.Schedule = "daily at 05:00"
	s.set(time.Date(2026, 11, 29, 3, 0, 0, 0, time.UTC))
	s.until(s.runner(job), "29 06:00")
	s.expect("29 05:00 backup")
	// A job that is not wanted any more is forgotten, and somebody else's is not.
	if _, err := s.facts.SaveJob(t.Context(), state.Job{Name: "own", Kind: state.JobDrill}); err != nil {
		t.Fatal(err)
	}
	s.runner()
	jobs, err := s.facts.Jobs(t.Context())
	if err != nil || len(jobs) != 1 || jobs[0].Name != "own" {
		t.Errorf("got %+v %v; want len(jobs) 1, jobs[0].Name \"own\"", jobs, err)
	}
}

func TestClockIsSet(t *testing.T) {
	s := newShop(t)
	job := s.job("backup", state.JobBackup, "daily at 02:00")
	r := s.runner(job)
	s.until(r, "21 02:01")
	s.expect("21 02:00 backup")
	s.set(time.Date(2026, 11, 21, 1, 30, 0, 0, time.UTC)) // half an hour back: the backup of two o'clock is there
	s.until(r, "22 01:00")
	s.expect()
	s.set(time.Date(2031, 1, 1, 1, 0, 0, 0, time.UTC)) // years ahead: one backup, not thousands
	r.step(t.Context())
	r.tasks.Wait()
	s.expect("01 01:00 backup")
	s.set(time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)) // and back: the next is not due in 2031
	s.until(r, "22 03:00")
	s.expect("22 02:00 backup")
	// The same when Risso was started under the wrong clock.
	s.set(time.Date(2031, 1, 1, 1, 0, 0, 0, time.UTC))
	r = s.runner(job)
	r.step(t.Context())
	r.tasks.Wait()
	s.expect("01 01:00 backup")
	s.set(time.Date(2026, 11, 23, 1, 0, 0, 0, time.UTC))
	s.until(s.runner(job), "23 03:00")
	s.expect("23 02:00 backup")
}

func TestFailureIsTriedAgain(t *testing.T) {
	s := newShop(t)
	backup, copies := s.job("backup", state.JobBackup, "daily at 02:00"), s.job("copy", state.JobCopy, "")
	backup.Task, copies.After = s.does("backup", errors.New("the disk is\n full")), "backup"
	r := s.runner(backup, copies)
	s.until(r, "22 01:00")
	s.expect("21 02:00 backup", "21 02:15 backup", "21 02:45 backup", "21 03:30 backup")
	if want := "critical db1 backup failed: the disk is full"; s.events[1] != want || len(s.events) != 8 {
		t.Errorf("got %q; want s.events[1] %v, len(s.events) 8", s.events, want)
	}
	// A restart in between counts on.
	s.until(r, "22 02:20")
	s.expect("22 02:00 backup", "22 02:15 backup")
	s.until(s.runner(backup, copies), "22 12:00")
	s.expect("22 02:45 backup", "22 03:30 backup")
	// What was found once would be found again.
	drill := s.job("drill", state.JobDrill, "daily at 02:00")
	drill.Task = s.does("drill", fmt.Errorf("3 rows are missing: %w", ErrFound))
	s.until(s.runner(drill), "23 12:00")
	s.expect("23 02:00 drill")
	runs, err := s.facts.Runs(t.Context(), state.RunQuery{Kind: state.JobDrill})
	if err != nil || len(runs) != 1 || runs[0].Outcome != state.OutcomeFailed || runs[0].Text != "drill done" {
		t.Errorf("got %+v %v; want len(runs) 1, runs[0].Outcome state.OutcomeFailed, runs[0].Text \"drill done\"", runs, err)
	}
}

// TestOneHeavyJobAtATime lets jobs wait for each other.
func TestOneHeavyJobAtATime(t *testing.T) {
	s := newShop(t)
	go1 := make(chan struct{})
	running := func(ctx context.Context, r *Report) (Result, error) {
		r.Stage("read tables")
		r.Set(50, 200, "bytes")
		select {
		case <-go1:
		case <-ctx.Done():
		}
		return Result{}, ctx.Err()
	}
	of := func(name, instance string, kind state.JobKind) Job {
		return Job{Name: name, Kind: kind, Instance: instance, Task: running}
	}
	r := s.runner(of("a/backup", "a", state.JobBackup), of("a/drill", "a", state.JobDrill), of("a/mirror", "a", state.JobMirror), of("b/backup", "b", state.JobBackup), of("c/backup", "c", state.JobBackup))
	for _, name := range []string{"a/backup", "a/drill", "b/backup", "c/backup"} {
		if err := r.Start(name, "t"); err != nil {
			t.Fatal(err)
		}
	}
	r.step(t.Context())
	if err := r.Start("a/backup", "t"); !errors.Is(err, ErrRunning) {
		t.Errorf("got %v, want ErrRunning", err)
	}
	if err := r.Start("z", "t"); !errors.Is(err, ErrNoJob) {
		t.Errorf("got %v, want ErrNoJob", err)
	}
	waits := map[string]string{}
	var first int64
	for _, p := range r.Running() {
		waits[p.Job] = p.Waits
		if p.Job == "a/backup" {
			first = p.Run
		}
	}
	if len(waits) != 5 || waits["a/backup"] != "" || waits["a/mirror"] != "" || waits["a/drill"] != "a/backup" || waits["b/backup"] != "" || waits["c/backup"] != "other servers' jobs" {
		t.Errorf("got %q; want len(waits) 5, waits[\"a/backup\"] \"\", waits[\"a/mirror\"] \"\", waits[\"a/drill\"] \"a/backup\", waits[\"b/backup\"] \"\", waits[\"c/backup\"] \"other servers' jobs\"",
			waits)
	}
	if err := r.Stop(first, "t"); err != nil {
		t.Error(err)
	}
	await.Until(t, func() bool {
		run, err := s.facts.Run(t.Context(), first)
		return err == nil && run.Outcome != state.OutcomeRunning
	}, "the end of the run")
	run, err := s.facts.Run(t.Context(), first)
	if err != nil || run.Outcome != state.OutcomeInterrupted || run.Text != "stopped by hand" {
		t.Errorf("got %+v %v; want Outcome state.OutcomeInterrupted, Text \"stopped by hand\"", run, err)
	}
	p, _, err := s.facts.RunNotes(t.Context(), first)
	if err != nil || p.Stage != "read tables" || p.Done != 50 || p.Total != 200 || p.Unit != "bytes" {
		t.Errorf("got %+v %v; want Stage \"read tables\", Done 50, Total 200, Unit \"bytes\"", p, err)
	}
	r.step(t.Context())
	now := map[string]bool{}
	for _, p := range r.Running() {
		now[p.Job] = p.Run != 0
	}
	// Two places for three: backups go first.
	if now["a/drill"] || !now["b/backup"] || !now["c/backup"] {
		t.Errorf("%v", now)
	}
	close(go1)
	r.tasks.Wait()
}

// TestCutShort ends Risso twice while a backup runs: once by Ctrl-C and once by a crash, after which it is restarted, but
// not forever.
func TestCutShort(t *testing.T) {
	s := newShop(t)
	job := s.job("backup", state.JobBackup, "daily at 02:00")
	begun := make(chan struct{}, 1)
	job.Task = func(ctx context.Context, _ *Report) (Result, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return Result{}, ctx.Err()
	}
	s.set(time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC))
	if _, err := s.facts.SaveJob(t.Context(), state.Job{Name: "backup", Kind: state.JobBackup, Schedule: job.Schedule, NextDue: s.now}); err != nil {
		t.Fatal(err)
	}
	r, err := New(Options{Facts: s.facts, Jobs: []Job{job}, Event: s.event, Logger: slog.New(slog.DiscardHandler), Now: s.clock})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	<-begun
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	runs, err := s.facts.Runs(t.Context(), state.RunQuery{})
	if err != nil || len(runs) != 1 || runs[0].Outcome != state.OutcomeInterrupted || runs[0].Text != textEnded || runs[0].Ended.IsZero() {
		t.Fatalf("got %+v %v; want len(runs) 1, runs[0].Outcome state.OutcomeInterrupted, runs[0].Text %v, runs[0].Ended.IsZero() false",
			runs, err, textEnded)
	}
	// At the next start it is restarted, and Risso is killed: nothing is noted.
	job.Task = s.does("backup", nil)
	r = s.runner(job)
	if len(r.Running()) != 1 {
		t.Fatalf("got %+v, want length 1", r.Running())
	}
	if _, err := s.facts.BeginRun(t.Context(), state.Run{Job: r.entries[0].id, Kind: state.JobBackup, Began: s.now.Add(time.Second)}); err != nil {
		t.Fatal(err)
	}
	if err := s.facts.SetNextDue(t.Context(), r.entries[0].id, s.now.AddDate(0, 0, 1)); err != nil {
		t.Fatal(err)
	}
	// Twice cut short in a row: it waits for its time.
	s.until(s.runner(job), "22 02:30")
	s.expect("22 02:00 backup")
	runs, err = s.facts.Runs(t.Context(), state.RunQuery{})
	if err != nil || len(runs) != 3 || runs[1].Outcome != state.OutcomeInterrupted {
		t.Errorf("got %+v %v; want len(runs) 3, runs[1].Outcome state.OutcomeInterrupted", runs, err)
	}
}

// TestMirrorGoesOn lets a mirror break off again and again: it is restarted, less and less often, and is reported once.
func TestMirrorGoesOn(t *testing.T) {
	s := newShop(t)
	mirror := s.job("mirror", state.JobMirror, "")
	mirror.Task = s.does("mirror", errors.New("lost the connection"))
	r := s.runner(mirror)
	s.until(r, "21 01:10")
	s.expect("21 01:00 mirror", "21 01:01 mirror", "21 01:02 mirror", "21 01:03 mirror", "21 01:04 mirror", "21 01:05 mirror", "21 01:07 mirror", "21 01:09 mirror")
	if len(s.events) != 1 || s.events[0] != "warning db1 mirror failed: lost the connection" {
		t.Errorf("got %q; want len(s.events) 1, s.events[0] \"warning db1 mirror failed: lost the connection\"", s.events)
	}
}

// TestFullDisk closes the store under the runner: backups are made nevertheless.
func TestFullDisk(t *testing.T) {
	s := newShop(t)
	r := s.runner(s.job("backup", state.JobBackup, "daily at 02:00"))
	s.facts.Close()
	s.until(r, "21 03:00")
	s.expect("21 02:00 backup")
}

func TestBugInTask(t *testing.T) {
	s := newShop(t)
	job := s.job("backup", state.JobBackup, "daily at 02:00")
	job.Task = func(context.Context, *Report) (Result, error) { panic("index out of range") }
	s.until(s.runner(job), "21 02:05")
	runs, err := s.facts.Runs(t.Context(), state.RunQuery{})
	if err != nil || len(runs) != 1 || runs[0].Text != "a bug in risso: index out of range" {
		t.Errorf("got %+v %v; want len(runs) 1, runs[0].Text \"a bug in risso: index out of range\"", runs, err)
	}
}

func TestNewRefuses(t *testing.T) {
	for say, jobs := range map[string][]Job{
		"two jobs are called":  {{Name: "a"}, {Name: "a"}},
		"not a schedule":       {{Name: "a", Schedule: "nightly"}},
		"which does not exist": {{Name: "a", After: "b"}},
	} {
		if _, err := New(Options{Jobs: jobs}); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: got %v; want an error, %q in the error", say, err, say)
		}
	}
}

func TestRate(t *testing.T) {
	at := time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)
	now := at
	r := newReport(at, func() time.Time { return now })
	for n := range int64(60) {
		now = at.Add(time.Duration(n) * time.Second)
		done := 100 * n
		if n > 30 {
			done = 3000 + 10*(n-30) // it became slow
		}
		r.Set(done, 4000, "rows")
	}
	var p Progress
	r.fill(&p, now)
	if p.Rate < 9 || p.Rate > 11 || p.Left < 60 || p.Left > 80 {
		b, _ := json.Marshal(p)
		t.Errorf("got %s; want p.Rate from 9 to 11, p.Left from 60 to 80", b)
	}
}

// TestReplace lets the jobs be others while some run.
func TestReplace(t *testing.T) {
	s := newShop(t)
	goOn, begun := make(chan struct{}), make(chan string, 10)
	waits := func(name string, until chan struct{}) Task {
		return func(ctx context.Context, _ *Report) (Result, error) {
			begun <- name
			select {
			case <-until:
				return Result{Text: name + " done"}, nil
			case <-ctx.Done():
				return Result{}, ctx.Err()
			}
		}
	}
	backup, mirror, verify := s.job("backup", state.JobBackup, "daily at 02:00"), s.job("mirror", state.JobMirror, ""), s.job("verify", state.JobVerify, "daily at 12:00")
	backup.Task, mirror.Task, mirror.Made = waits("backup", goOn), waits("mirror", nil), "/backup"
	r := s.runner(backup, mirror, verify)
	s.set(time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC))
	r.step(t.Context())
	if a, b := <-begun, <-begun; a == b {
		t.Fatal(a, b)
	}
	// What is wrong changes nothing.
	bad := s.job("copy", state.JobCopy, "")
	bad.After = "nothing"
	if err := r.Replace(t.Context(), []Job{bad}); err == nil || len(r.Due()) != 3 {
		t.Fatalf("got %v, %v; want an error, len(r.Due()) 3", err, r.Due())
	}
	// The mirror goes elsewhere; the backup has another time, is followed by a copy, and ends as it began; verify is removed.
	now, copies := backup, s.job("copy", state.JobCopy, "")
	now.Schedule, now.Place, now.Task = "daily at 03:00", "/other", s.does("backup at the other place", nil)
	copies.After = "backup"
	mirror.Task, mirror.Made, mirror.Place = waits("mirror elsewhere", nil), "/other", "/other"
	if err := r.Replace(t.Context(), []Job{now, mirror, copies}); err != nil {
		t.Fatal(err)
	}
	for name := ""; name != "mirror elsewhere"; { // as soon as the old one has ended
		r.step(t.Context())
		select {
		case name = <-begun:
		case <-time.After(10 * time.Millisecond):
		}
	}
	running := map[string]string{}
	for _, p := range r.Running() {
		running[p.Job] = p.Waits
	}
	if len(running) != 2 || r.Due()["backup"].Format("02 15:04") != "21 03:00" || r.Start("verify", "t") == nil {
		t.Errorf("got %v, %v; want len(running) 2, r.Due()[\"backup\"].Format(\"02 15:04\") \"21 03:00\", r.Start(\"verify\", \"t\") not nil",
			running, r.Due())
	}
	jobs, err := s.facts.Jobs(t.Context())
	if err != nil || len(jobs) != 3 {
		t.Fatalf("got %+v %v; want length 3", jobs, err)
	}
	for _, j := range jobs {
		if j.Name == "backup" && (j.Schedule != "daily at 03:00" || j.Place != "/other" || j.NextDue.Format("15:04") != "03:00") {
			t.Errorf("%+v", j)
		}
	}
	// Now nothing is wanted: the mirror ends, the backup ends well, and its copy is not made.
	if err := r.Replace(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	goOn <- struct{}{} // the backup, because the mirror was stopped
	r.tasks.Wait()
	r.step(t.Context())
	r.tasks.Wait()
	if jobs, err := s.facts.Jobs(t.Context()); err != nil || len(jobs) != 0 || len(r.Running()) != 0 {
		t.Errorf("got %+v %v %+v; want no jobs, no r.Running()", jobs, err, r.Running())
	}
	runs, err := s.facts.Runs(t.Context(), state.RunQuery{Kind: state.JobBackup})
	if err != nil || len(runs) != 1 || runs[0].Outcome != state.OutcomeOK || runs[0].Place != "/backup" {
		t.Errorf("got %+v %v; want len(runs) 1, runs[0].Outcome state.OutcomeOK, runs[0].Place \"/backup\"", runs, err)
	}
	s.expect()
	// And back again: by the schedule of now.
	if err := r.Replace(t.Context(), []Job{now}); err != nil {
		t.Fatal(err)
	}
	s.until(r, "21 04:00")
	s.expect("21 03:00 backup at the other place")
}
