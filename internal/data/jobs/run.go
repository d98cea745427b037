package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/store/state"
)

// What a run that was cut short says of itself.
const (
	textStopped = "stopped by hand"
	textEnded   = "Risso was stopped while it ran"
	textNew     = "starts over: its configuration changed"
)

// Why a run that goes on is ended.
var (
	errStopped  = errors.New(textStopped)
	errReplaced = errors.New("its configuration changed")
)

// run is a task that goes on.
type run struct {
	note   state.Run
	report *Report
	stop   context.CancelCauseFunc
}

// begin runs a job's task in a goroutine that Run waits for. The caller holds the lock.
func (r *Runner) begin(ctx context.Context, e *entry, now time.Time) {
	e.began = now
	note := state.Run{Job: e.id, Kind: e.Kind, Instance: e.Instance, Place: e.Place, Began: now}
	id, err := r.o.Facts.BeginRun(ctx, note)
	if err != nil { // a backup is worth more than its note
		r.o.Logger.Warn("the beginning of a job could not be noted", "job", e.Name, "err", err)
	}
	note.ID = id
	tctx, stop := context.WithCancelCause(ctx)
	e.run = &run{note: note, report: newReport(now, r.o.Now), stop: stop}
	if e.why != "" {
		e.run.report.Log("%s", e.why)
	}
	if !e.again {
		e.failures = 0
	}
	e.byHand, e.why, e.again = false, "", false
	e.due = e.next(now)
	r.plan(ctx, e)
	if !lasting(e.Kind) && heavy(e.Kind) {
		r.event(e, fleet.SeverityInfo, string(e.Kind)+" began")
	}
	task := e.Task // the entry may get another in the meantime
	r.tasks.Go(func() { r.work(tctx, e, e.run, task) })
}

// work does the task and notes what became of it.
func (r *Runner) work(ctx context.Context, e *entry, run *run, task Task) {
	defer run.stop(nil)
	noted := make(chan struct{})
	nctx, stopNotes := context.WithCancel(ctx)
	go func() { defer close(noted); r.keepNotes(nctx, run) }() // ended before work ends
	result, err := task.do(ctx, run.report)
	stopNotes()
	<-noted
	// The rest is reported even if Risso ends.
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	r.finish(after, ctx, e, run, result, err)
}

// do runs the task; a panic in it is a failure of the job, not of Risso.
func (t Task) do(ctx context.Context, report *Report) (res Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			for _, line := range strings.Split(strings.TrimSpace(string(debug.Stack())), "\n") {
				report.Log("%s", line)
			}
			err = fmt.Errorf("a bug in risso: %v", p)
		}
	}()
	return t(ctx, report)
}

// keepNotes writes the progress of a run down every now and then.
func (r *Runner) keepNotes(ctx context.Context, run *run) {
	if run.note.ID == 0 {
		return
	}
	tick := time.NewTicker(noteEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.noteRun(ctx, run)
		case <-ctx.Done():
			return
		}
	}
}

func (r *Runner) noteRun(ctx context.Context, run *run) {
	if run.note.ID == 0 {
		return
	}
	p, lines, changed := run.report.take(run.note.ID)
	if !changed {
		return
	}
	if err := r.o.Facts.NoteRun(ctx, p, lines...); err != nil {
		run.report.giveBack(lines)
	}
}

// finish notes the end of a run, and when the job and those after it are due.
func (r *Runner) finish(ctx, task context.Context, e *entry, run *run, result Result, err error) {
	now := r.o.Now()
	n := run.note
	n.Ended, n.Backup, n.Text = now, result.Backup, oneline.Of(result.Text)
	if result.Detail != nil {
		if b, jerr := json.Marshal(result.Detail); jerr == nil {
			n.Result = b
		}
	}
	switch cause := context.Cause(task); {
	case err == nil:
		n.Outcome = state.OutcomeOK
	case errors.Is(cause, errStopped):
		n.Outcome, n.Text = state.OutcomeInterrupted, textStopped
	case errors.Is(cause, errReplaced):
		n.Outcome, n.Text = state.OutcomeInterrupted, errReplaced.Error()
	case task.Err() != nil:
		n.Outcome, n.Text = state.OutcomeInterrupted, textEnded
	default:
		n.Outcome = state.OutcomeFailed
		if n.Text == "" || !errors.Is(err, ErrFound) {
			n.Text = oneline.Of(err.Error())
		}
	}
	run.report.Log("%s: %s", n.Outcome, n.Text)
	r.noteRun(ctx, run)
	r.mu.Lock()
	if errors.Is(context.Cause(task), errReplaced) {
		e.due, e.why, e.failures = now, textNew, 0
	} else {
		r.replanAfter(ctx, e, n, errors.Is(err, ErrFound), now)
	}
	// First what is due, then the end: if killed in between, the one after it is done rather than forgotten.
	if n.ID != 0 {
		if werr := r.o.Facts.EndRun(ctx, n); werr != nil && !goneRun(werr) {
			r.owed = append(r.owed, n)
		}
	}
	e.run = nil
	failures := e.failures
	if e.gone {
		r.forget(ctx, e)
	}
	r.mu.Unlock()
	r.tell(e, n, result, failures)
	if r.o.Done != nil {
		r.o.Done(n)
	}
	r.look()
}

// replanAfter sets when a job is due after a run, and makes those due that follow a success.
func (r *Runner) replanAfter(ctx context.Context, e *entry, n state.Run, found bool, now time.Time) {
	failures := e.failures
	if lasting(e.Kind) && now.Sub(n.Began) > steady {
		failures = 0 // it had worked
	}
	e.failures = 0
	if e.byHand { // asked for while it ended
		return
	}
	switch {
	case n.Outcome == state.OutcomeFailed:
		e.failures = failures + 1
		if lasting(e.Kind) {
			e.due, e.again = now.Add(min(mirrorMin<<min(failures, 10), mirrorMax)), true
			return // not worth noting: it is due at each start
		}
		e.due = e.next(now)
		if again := now.Add(retryAfter * time.Duration(e.failures)); !found && e.failures <= maxRetries && (e.due.IsZero() || again.Before(e.due)) && (e.planned || e.After != "") {
			e.due, e.again = again, true
			e.why = fmt.Sprintf("retrying after failure %d of %d", e.failures, maxRetries)
		}
	case n.Outcome == state.OutcomeOK && lasting(e.Kind):
		e.due = now.Add(mirrorMin) // it is not to end
		return
	default:
		e.due = e.next(now)
	}
	r.plan(ctx, e)
	if n.Outcome != state.OutcomeOK {
		return
	}
	for _, o := range r.entries {
		if o.After == e.Name && o.run == nil {
			o.due, o.why = now, "behind "+e.Name
			r.plan(ctx, o)
		} else if o.After == e.Name {
			o.due, o.byHand = now, true // once more: what runs began before
		}
	}
}

// tell makes an event of the end of a run; failures is how many there were in a row.
func (r *Runner) tell(e *entry, n state.Run, result Result, failures int) {
	what := string(e.Kind)
	switch n.Outcome {
	case state.OutcomeFailed:
		severity := fleet.SeverityWarning
		if e.Kind == state.JobBackup || e.Kind == state.JobDrill {
			severity = fleet.SeverityCritical
		}
		if lasting(e.Kind) && failures > 1 {
			return // reported the first time
		}
		r.event(e, severity, what+" failed: "+n.Text)
	case state.OutcomeInterrupted:
		if !lasting(e.Kind) {
			r.event(e, fleet.SeverityWarning, what+" was interrupted: "+n.Text)
		}
	case state.OutcomeOK:
		if heavy(e.Kind) {
			r.event(e, fleet.SeverityInfo, strings.TrimSuffix(what+": "+oneline.Of(result.Text), ": "))
		}
	}
}

func (r *Runner) event(e *entry, s fleet.Severity, text string) {
	r.o.Event(fleet.Event{Time: r.o.Now(), Instance: e.Instance, Kind: fleet.EventProtect, Severity: s, Subject: string(e.Kind), Text: text})
}

// goneRun says that a run is not in the store any more, so that there is nothing to be noted.
func goneRun(err error) bool { return errors.Is(err, state.ErrNotFound) }
