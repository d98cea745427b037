package jobs

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/store/state"
)

// Replace changes the jobs that are run from now on, if they can be: else everything stays as it was.
//
//   - A job of the same name goes on where it is; with another schedule it is due by that.
//   - What runs ends as it began, except a mirror that was made of something else: it is restarted.
//   - A job that is not wanted any more ends its run, a mirror immediately, and is forgotten.
func (r *Runner) Replace(ctx context.Context, jobs []Job) error {
	list, err := entriesOf(jobs)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range list {
		if was := r.named(e.Name); was != nil && (was.Kind != e.Kind || was.Instance != e.Instance) {
			return fmt.Errorf("job %s was a %s of %s: use another name", e.Name, was.Kind, was.Instance)
		}
	}
	if !r.begun { // prepare asks the store
		r.entries = list
		return nil
	}
	defer r.look()
	return r.replace(ctx, list)
}

// replace replaces the list of entries. The caller holds the lock.
func (r *Runner) replace(ctx context.Context, list []*entry) error {
	now := r.o.Now()
	known, err := r.o.Facts.Jobs(ctx)
	if err != nil {
		return err
	}
	old := r.entries
	r.entries = make([]*entry, 0, len(list))
	for _, e := range list {
		i := slices.IndexFunc(old, func(o *entry) bool { return o.Name == e.Name })
		if i >= 0 {
			e = old[i].become(e, now)
		}
		r.entries = append(r.entries, e)
	}
	for _, o := range old {
		if r.named(o.Name) != nil {
			continue
		}
		if o.gone = true; o.run == nil {
			r.forget(ctx, o)
			continue
		}
		if lasting(o.Kind) {
			o.run.stop(errReplaced)
		}
		r.entries = append(r.entries, o) // until its run has ended
	}
	for _, e := range r.entries {
		if e.gone || e.id != 0 && !e.changed {
			continue
		}
		if err := r.note(ctx, e, known, now); err != nil {
			// It runs nevertheless: what the store does not know costs at most a run too many.
			r.o.Logger.Warn("a job could not be noted", "job", e.Name, "err", err)
		}
	}
	return nil
}

// note tells the store of a job that is new or has changed.
func (r *Runner) note(ctx context.Context, e *entry, known []state.Job, now time.Time) error {
	i := slices.IndexFunc(known, func(k state.Job) bool { return k.Name == e.Name })
	var was state.Job
	if i >= 0 {
		was = known[i]
	}
	if e.id == 0 {
		return r.enter(ctx, e, was, now)
	}
	e.changed = false
	_, err := r.o.Facts.SaveJob(ctx, state.Job{ID: e.id, Name: e.Name, Kind: e.Kind, Instance: e.Instance, Place: e.Place, Schedule: e.Schedule,
		Options: e.options(), Enabled: true, NextDue: e.due, Created: was.Created})
	return err
}

// become takes over a job's new definition. Its name, kind and server stay: they are read without the lock.
func (e *entry) become(n *entry, now time.Time) *entry {
	e.gone = false
	e.changed = e.changed || e.Place != n.Place || e.Schedule != n.Schedule || e.After != n.After || !reflect.DeepEqual(e.Options, n.Options)
	if e.run != nil && lasting(e.Kind) && e.Made != n.Made {
		e.run.stop(errReplaced)
	}
	other := e.Schedule != n.Schedule
	e.Place, e.Schedule, e.After, e.Options, e.Made, e.Task, e.plan, e.planned = n.Place, n.Schedule, n.After, n.Options, n.Made, n.Task, n.plan, n.planned
	// What is due already, or again because it failed, stays due.
	if other && e.due.After(now) && !e.again {
		e.due = time.Time{}
	}
	if other {
		e.replan(now)
	}
	return e
}

// forget takes a job out. The caller holds the lock.
func (r *Runner) forget(ctx context.Context, e *entry) {
	r.entries = slices.DeleteFunc(r.entries, func(o *entry) bool { return o == e })
	if e.id == 0 {
		return
	}
	if err := r.o.Facts.RemoveJob(ctx, e.id); err != nil && !goneRun(err) {
		r.o.Logger.Warn("a job that is no longer configured could not be removed", "job", e.Name, "err", err)
	}
}
