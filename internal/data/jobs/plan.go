package jobs

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/store/state"
)

// prepare compares the jobs with those that the store knows: what was missed, what was cut short, what is new or gone.
func (r *Runner) prepare(ctx context.Context) error {
	if _, err := r.o.Facts.InterruptRuns(ctx); err != nil {
		return err
	}
	known, err := r.o.Facts.Jobs(ctx)
	if err != nil {
		return err
	}
	now := r.o.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = now
	for _, k := range known {
		var m marked
		if r.named(k.Name) == nil && json.Unmarshal(k.Options, &m) == nil && m.By == byServe {
			if err := r.o.Facts.RemoveJob(ctx, k.ID); err != nil {
				return err
			}
		}
	}
	for _, e := range r.entries {
		i := slices.IndexFunc(known, func(k state.Job) bool { return k.Name == e.Name })
		var was state.Job
		if i >= 0 {
			was = known[i]
		}
		if err := r.enter(ctx, e, was, now); err != nil {
			return err
		}
	}
	r.begun = true
	return nil
}

// enter finds out the state of a job; was is what the store knows of it, with the ID 0 if it knows nothing.
func (r *Runner) enter(ctx context.Context, e *entry, was state.Job, now time.Time) error {
	var runs []state.Run
	if was.ID != 0 {
		var err error
		if runs, err = r.o.Facts.Runs(ctx, state.RunQuery{Job: was.ID, Limit: maxRetries + 1}); err != nil {
			return err
		}
	}
	if len(runs) > 0 {
		e.began = runs[0].Began
		e.failures = failuresInARow(runs)
	}
	switch {
	case lasting(e.Kind):
		e.due = now
	case cutShort(runs):
		e.due, e.why = now, "starts over: the last run was interrupted when Risso ended"
	case was.ID != 0 && was.Schedule == e.Schedule && !was.NextDue.IsZero():
		e.due = was.NextDue
		e.again = e.failures > 0 && e.failures <= maxRetries && (!e.planned || !e.due.Equal(e.plan.Next(runs[0].Ended.In(now.Location()))))
		if e.planned && !e.due.After(now) {
			e.why = "was due at " + e.due.In(now.Location()).Format(time.DateTime) + ", while Risso was not running"
		}
	}
	e.replan(now)
	j, err := r.o.Facts.SaveJob(ctx, state.Job{ID: was.ID, Name: e.Name, Kind: e.Kind, Instance: e.Instance, Place: e.Place, Schedule: e.Schedule,
		Options: e.options(), Enabled: true, NextDue: e.due, Created: was.Created})
	e.id = j.ID
	return err
}

// failuresInARow counts those of the newest runs that failed and were tried again soon.
func failuresInARow(runs []state.Run) int {
	for i, run := range runs {
		if run.Outcome != state.OutcomeFailed || i > 0 && runs[i-1].Began.Sub(run.Ended) > retryAfter*(maxRetries+1) {
			return i
		}
	}
	return len(runs)
}

// cutShort reports whether the last run was, and the one before was not.
func cutShort(runs []state.Run) bool {
	return len(runs) > 0 && runs[0].Outcome == state.OutcomeInterrupted && runs[0].Text != textStopped &&
		(len(runs) == 1 || runs[1].Outcome != state.OutcomeInterrupted)
}

// replan holds that a job is not due later than its schedule says: a clock that was wrong may have said so.
func (e *entry) replan(now time.Time) {
	if !e.planned {
		return
	}
	if next := e.next(now); e.due.IsZero() || e.due.After(next) {
		e.due = next
	}
}

// next is the next time of the schedule for which the job did not run. It did if it began at that time or after it, but
// before the following one: then the clock was set back.
func (e *entry) next(now time.Time) time.Time {
	if !e.planned {
		return time.Time{}
	}
	next := e.plan.Next(now)
	if next.IsZero() || e.began.Before(next) {
		return next
	}
	if then := e.plan.Next(next); e.began.Before(then) {
		return then
	}
	return next
}

// blocked says what keeps a job that is due from running: the name of another job, or "".
func (r *Runner) blocked(e *entry) string {
	if !heavy(e.Kind) {
		return ""
	}
	n := 0
	for _, o := range r.entries {
		if o.run == nil || !heavy(o.Kind) {
			continue
		}
		if o.Instance == e.Instance {
			return o.Name
		}
		n++
	}
	if n >= r.o.Parallel {
		return "other servers' jobs"
	}
	return ""
}

// step begins what is due, and notes what could not be noted before.
func (r *Runner) step(ctx context.Context) {
	r.settle(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.o.Now()
	if now.Before(r.last.Add(-lookEvery)) { // the clock was put back
		for _, e := range r.entries {
			if e.planned && e.run == nil && !e.byHand {
				e.due = time.Time{}
				e.replan(now)
				r.plan(ctx, e)
			}
		}
	}
	r.last = now
	var due []*entry
	for _, e := range r.entries {
		if e.run == nil && !e.gone && !e.due.IsZero() && !e.due.After(now) {
			due = append(due, e)
		}
	}
	slices.SortStableFunc(due, func(a, b *entry) int {
		if d := order[a.Kind] - order[b.Kind]; d != 0 {
			return d
		}
		return a.due.Compare(b.due)
	})
	for _, e := range due {
		if r.blocked(e) == "" {
			r.begin(ctx, e, now)
		}
	}
}

// plan notes when a job is due. That it cannot be noted costs at most a run too many.
func (r *Runner) plan(ctx context.Context, e *entry) {
	if err := r.o.Facts.SetNextDue(ctx, e.id, e.due); err != nil {
		r.o.Logger.Warn("a job's next time could not be noted", "job", e.Name, "err", err)
	}
}

// settle notes the ends of runs that could not be noted when they came.
func (r *Runner) settle(ctx context.Context) {
	r.mu.Lock()
	owed := r.owed
	r.owed = nil
	r.mu.Unlock()
	for i, n := range owed {
		if err := r.o.Facts.EndRun(ctx, n); err != nil && !goneRun(err) {
			r.mu.Lock()
			r.owed = append(r.owed, owed[i:]...)
			r.mu.Unlock()
			return
		}
	}
}
