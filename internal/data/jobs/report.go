package jobs

import (
	"fmt"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/store/state"
)

// Report takes how far a task is. It may be called from several goroutines, and often.
type Report struct {
	now func() time.Time

	mu      sync.Mutex
	stage   string
	unit    string
	done    int64
	total   int64
	old     point // at least window ago, or where the stage began
	mid     point
	lines   []state.RunLine
	changed bool
}

// point is how much was done when.
type point struct {
	t    time.Time
	done int64
}

// window is over how long a rate is measured: between one and two of it.
const window = 5 * time.Second

// waiting is how many lines are held for a store that cannot be written.
const waiting = 1000

func newReport(at time.Time, now func() time.Time) *Report {
	return &Report{now: now, old: point{t: at}, mid: point{t: at}}
}

// Stage says what the task does from now on; progress starts over.
func (r *Report) Stage(name string) {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stage == name {
		return
	}
	r.stage, r.unit, r.done, r.total = name, "", 0, 0
	r.old, r.mid = point{t: now}, point{t: now}
	r.log(now, name)
}

// Set says how much is done, of how much (0: unknown), in which unit: bytes, rows, tables.
func (r *Report) Set(done, total int64, unit string) {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if unit != r.unit || done < r.done {
		r.old, r.mid = point{now, done}, point{now, done}
	}
	r.done, r.total, r.unit, r.changed = done, total, unit, true
	if now.Sub(r.mid.t) >= window {
		r.old, r.mid = r.mid, point{now, done}
	}
}

// Log adds a line to the log of the run.
func (r *Report) Log(format string, args ...any) {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log(now, fmt.Sprintf(format, args...))
}

func (r *Report) log(now time.Time, text string) {
	r.changed = true
	if len(r.lines) < waiting {
		r.lines = append(r.lines, state.RunLine{Time: now, Text: oneline.Of(text)})
	}
}

// fill reports how far it is.
func (r *Report) fill(p *Progress, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.Stage, p.Done, p.Total, p.Unit = r.stage, r.done, r.total, r.unit
	if dt := now.Sub(r.old.t).Seconds(); dt > 0.2 {
		p.Rate = float64(r.done-r.old.done) / dt
	}
	if p.Rate > 0 && r.total > 0 {
		p.Left = max(0, float64(r.total-r.done)/p.Rate)
	}
}

// take returns what was not noted yet.
func (r *Report) take(run int64) (p state.RunProgress, lines []state.RunLine, changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines, changed = r.lines, r.changed
	r.lines, r.changed = nil, false
	return state.RunProgress{Run: run, Time: r.now(), Stage: r.stage, Done: r.done, Total: r.total, Unit: r.unit}, lines, changed
}

// giveBack takes lines that could not be noted; they are noted with the next.
func (r *Report) giveBack(lines []state.RunLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(lines, r.lines...)
	if len(r.lines) > waiting {
		r.lines = r.lines[len(r.lines)-waiting:]
	}
	r.changed = true
}
