// Package jobs runs jobs when they are due: backups, drills, checksums, mirrors of binary logs, while risso serve runs.
//
// What a job does is a Task supplied by the caller; this package decides when it runs and records the outcome.
//
//   - At most one heavy job per server runs at a time, and a limited number over all servers.
//   - A job missed while Risso was not running is run once, however often it was missed.
//   - Time is wall-clock time, read every second: clocks may be set, a machine may sleep.
//   - A failed job is retried a few times. A job interrupted because Risso ended is restarted at the next start, but only
//     once in a row, so that a job that kills Risso does not do so forever.
//   - The store of facts records what runs, its progress and its outcome. If the store cannot be written, backups are
//     made nevertheless.
package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/data/schedule"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/state"
)

// Task does the work of a job. It ends soon after ctx does, and then leaves nothing behind.
type Task func(ctx context.Context, r *Report) (Result, error)

// Result is the outcome of a task.
type Result struct {
	Text   string // one sentence
	Backup string // the backup that was made, proven, verified or copied; empty: none
	Detail any    // for programs, as JSON
}

// ErrFound says that the task did its work and found something bad: a backup that does not restore, rows that differ. To
// do it again would find the same, so it is not tried again.
var ErrFound = errors.New("found")

// Errors of Start and Stop.
var (
	ErrNoJob   = errors.New("there is no such job")
	ErrRunning = errors.New("it is already running")
	ErrNoRun   = errors.New("no such run is in progress")
)

// Job is something to do again and again.
type Job struct {
	Name     string
	Kind     state.JobKind
	Instance string
	Place    string // without a secret
	Schedule string // as data/schedule reads it; empty: by hand, or after After
	After    string // the name of the job after whose success this one is due
	Options  any    // what the page may know of it; no secret
	Made     string // what the task was made of, as far as it matters to one that lasts: another value restarts it; see Replace
	Task     Task
}

// heavy reports whether a kind of job burdens its server: of these one runs at a time.
func heavy(k state.JobKind) bool {
	return k != state.JobMirror && k != state.JobPrune && k != state.JobCopy
}

// lasting reports whether a kind of job runs as long as Risso does.
func lasting(k state.JobKind) bool { return k == state.JobMirror }

// order is the order in which jobs that are due together begin: those first that make safe.
var order = map[state.JobKind]int{state.JobMirror: 0, state.JobBackup: 1, state.JobCopy: 2, state.JobPrune: 3, state.JobDrill: 4, state.JobVerify: 5, state.JobChecksum: 6}

// Facts is what the runner needs of the store of facts.
type Facts interface {
	Jobs(ctx context.Context) ([]state.Job, error)
	SaveJob(ctx context.Context, j state.Job) (state.Job, error)
	RemoveJob(ctx context.Context, id int64) error
	SetNextDue(ctx context.Context, job int64, due time.Time) error
	Runs(ctx context.Context, q state.RunQuery) ([]state.Run, error)
	BeginRun(ctx context.Context, r state.Run) (int64, error)
	EndRun(ctx context.Context, r state.Run) error
	InterruptRuns(ctx context.Context) (int64, error)
	NoteRun(ctx context.Context, p state.RunProgress, lines ...state.RunLine) error
}

// Options are what a runner needs.
type Options struct {
	Facts    Facts
	Jobs     []Job
	Event    func(fleet.Event) // takes what happened; does not block
	Done     func(state.Run)   // called when a run has ended and is noted; may be nil
	Logger   *slog.Logger
	Parallel int              // heavy jobs of all servers together; 0: 2
	Grace    time.Duration    // how long tasks may take to end when Risso does; 0: 20 s
	Now      func() time.Time // nil: time.Now
}

// The times between tries.
const (
	lookEvery  = time.Second
	noteEvery  = 2 * time.Second
	maxRetries = 3                // of a job that failed, before its next time
	retryAfter = 15 * time.Minute // times the number of failures
	mirrorMin  = 2 * time.Second  // before a mirror that broke off is restarted; doubled each time
	mirrorMax  = 2 * time.Minute
	steady     = 5 * time.Minute // a mirror that ran so long had worked
)

// Runner runs jobs. Its methods may be called from any goroutine.
type Runner struct {
	o     Options
	wake  chan struct{}
	tasks sync.WaitGroup

	mu      sync.Mutex
	entries []*entry
	begun   bool        // prepare is through
	last    time.Time   // when it looked last
	owed    []state.Run // ends that could not be noted yet
}

// entry is a job with its state.
type entry struct {
	Job
	id       int64
	plan     schedule.Schedule
	planned  bool // there is a plan
	due      time.Time
	byHand   bool
	why      string // what the log of the next run must report
	began    time.Time
	failures int  // in a row, since it was due by its plan
	again    bool // it is due because it failed
	gone     bool // it is not wanted any more, and ends its run
	changed  bool // the store does not know yet what it is now
	run      *run
}

// New makes a runner of jobs whose names are unique and whose schedules can be read.
func New(o Options) (*Runner, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Parallel <= 0 {
		o.Parallel = 2
	}
	if o.Grace <= 0 {
		o.Grace = 20 * time.Second
	}
	r := &Runner{o: o, wake: make(chan struct{}, 1)}
	var err error
	r.entries, err = entriesOf(o.Jobs)
	return r, err
}

// entriesOf checks jobs and makes their entries.
func entriesOf(jobs []Job) (list []*entry, err error) {
	seen := map[string]bool{}
	for _, j := range jobs {
		e := &entry{Job: j}
		if seen[j.Name] {
			return nil, fmt.Errorf("two jobs are called %q", j.Name)
		}
		seen[j.Name] = true
		if j.Schedule != "" {
			p, err := schedule.Parse(j.Schedule)
			if err != nil {
				return nil, fmt.Errorf("job %s: %w", j.Name, err)
			}
			e.plan, e.planned = p, true
		}
		list = append(list, e)
	}
	for _, j := range jobs {
		if j.After != "" && !seen[j.After] {
			return nil, fmt.Errorf("job %s is scheduled after %q, which does not exist", j.Name, j.After)
		}
	}
	return list, nil
}

// Run runs what is due until ctx ends and what runs then has ended.
func (r *Runner) Run(ctx context.Context) error {
	if err := r.prepare(ctx); err != nil {
		return fmt.Errorf("prepare the jobs of protection: %w", err)
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		r.step(ctx)
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-r.wake:
		}
	}
	return r.end(context.WithoutCancel(ctx))
}

// end waits for what runs, but not forever.
func (r *Runner) end(ctx context.Context) error {
	done := make(chan struct{})
	go func() { r.tasks.Wait(); close(done) }()
	select {
	case <-done:
		r.settle(ctx)
		return nil
	case <-time.After(r.o.Grace):
	}
	r.settle(ctx)
	var names []string
	for _, p := range r.Running() {
		names = append(names, p.Job)
	}
	return fmt.Errorf("jobs did not end within %s: %v", r.o.Grace, names)
}

// Start makes a job due now. One that has to wait for another of its server begins after that. The log of the run says by
// whom it was started.
func (r *Runner) Start(name, by string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.named(name)
	switch {
	case e == nil || e.gone:
		return fmt.Errorf("%w: %s", ErrNoJob, name)
	case e.run != nil:
		return fmt.Errorf("%s: %w", name, ErrRunning)
	}
	e.due, e.byHand, e.why = r.o.Now(), true, "started by hand, by "+by
	r.look()
	return nil
}

// look makes Run look for what is due now.
func (r *Runner) look() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Stop ends a run; its log says by whom it was stopped. A mirror is restarted at the next start of Risso, or by hand.
func (r *Runner) Stop(id int64, by string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.entries {
		if e.run != nil && e.run.note.ID == id && id != 0 {
			e.run.report.Log("stopped by hand, by %s", by)
			e.run.stop(errStopped)
			return nil
		}
	}
	return fmt.Errorf("%w: %d", ErrNoRun, id)
}

func (r *Runner) named(name string) *entry {
	for _, e := range r.entries {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// Progress is a run that goes on, or a job that waits for its turn.
type Progress struct {
	Run      int64         `json:"run"` // 0: it waits
	Job      string        `json:"job"`
	Kind     state.JobKind `json:"kind"`
	Instance string        `json:"instance"`
	Place    string        `json:"place"`
	Began    time.Time     `json:"began"` // of one that waits: since when
	Waits    string        `json:"waits"` // what it waits for; empty: it runs
	Stage    string        `json:"stage"`
	Done     int64         `json:"done"`
	Total    int64         `json:"total"` // 0: unknown
	Unit     string        `json:"unit"`
	Rate     float64       `json:"rate"` // a second, over the last seconds
	Left     float64       `json:"left"` // seconds until the stage is done; -1: unknown
}

// Running lists what goes on, and what is due and waits.
func (r *Runner) Running() []Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.o.Now()
	out := []Progress{}
	for _, e := range r.entries {
		p := Progress{Job: e.Name, Kind: e.Kind, Instance: e.Instance, Place: e.Place, Left: -1}
		switch {
		case e.run != nil:
			p.Run, p.Began = e.run.note.ID, e.run.note.Began
			e.run.report.fill(&p, now)
		case !e.gone && !e.due.IsZero() && !e.due.After(now):
			p.Began = e.due
			if p.Waits = r.blocked(e); p.Waits == "" {
				p.Waits = "its turn"
			}
		default:
			continue
		}
		out = append(out, p)
	}
	return out
}

// Due says when each job is due next, by its name; the zero time: not planned.
func (r *Runner) Due() map[string]time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[string]time.Time, len(r.entries))
	for _, e := range r.entries {
		out[e.Name] = e.due
	}
	return out
}

// marked says of a job in the store that it came from here, and not from somebody else.
type marked struct {
	By    string `json:"by"` // "serve"
	After string `json:"after,omitempty"`
	Other any    `json:"options,omitempty"`
}

const byServe = "serve"

func (e *entry) options() json.RawMessage {
	b, err := json.Marshal(marked{By: byServe, After: e.After, Other: e.Options})
	if err != nil {
		return nil // what is unknown is left out
	}
	return b
}
