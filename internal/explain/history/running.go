package history

import (
	"context"
	"sync"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sqltext"
)

// NotCaught is why a class has no plan when all that is known of it are prepared statements: without their values there is
// nothing to EXPLAIN.
const NotCaught = "a prepared statement; its plan is taken while it runs, and it has not been caught running yet"

// NeedsRunning reports whether the plan of a statement can only be taken while it runs: its text does not have the values.
func NeedsRunning(text string) bool { return sqltext.HasPlaceholders([]byte(text)) }

// explained is shared by the two that take plans: the collector each minute, from samples, and the sampler, of what runs.
type explained struct {
	mu      sync.Mutex
	waiting map[sampleKey]bool // samples had placeholders, and none was caught running yet
	taken   map[sampleKey]int64
	sent    []string // statements of Risso that the collector has to leave out
}

// note remembers a statement that the sampler sends.
func (e *explained) note(statement string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.sent) < maxOwn {
		e.sent = append(e.sent, statement)
	}
}

// noted returns those statements, each once.
func (e *explained) noted() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	sent := e.sent
	e.sent = nil
	return sent
}

// waits notes that the plan of a class has to be caught; false when it was lately.
func (e *explained) waits(k sampleKey, at int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiting == nil || len(e.waiting) > maxOwn {
		e.waiting = map[sampleKey]bool{}
	}
	if t, ok := e.taken[k]; ok && at-t < planRetry {
		return false
	}
	e.waiting[k] = true
	return true
}

// took notes that there is a plan, and says whether none is waited for any more.
func (e *explained) took(k sampleKey, at int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.taken == nil || len(e.taken) > maxOwn {
		e.taken = map[sampleKey]int64{}
	}
	e.taken[k] = at
	delete(e.waiting, k)
	return len(e.waiting) == 0
}

func (e *explained) due(k sampleKey, at int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	t, ok := e.taken[k]
	return !ok || at-t >= sampleEvery
}

// running bounds what catching plans may cost: one in a reading, plansPerMinute in a minute, and a class that could not be caught not
// again for tryEvery seconds.
type running struct {
	tried  map[sampleKey]int64
	minute int64
	count  int
}

const tryEvery = 20

// catch takes the plan of a prepared statement that was found running and of which there is none.
func (s *sampler) catch(ctx context.Context, at int64, list []read.Session) error {
	if s.c.PlanID == nil {
		return nil
	}
	if s.plans.minute != at/60 {
		s.plans.minute, s.plans.count = at/60, 0
	}
	if s.plans.tried == nil || len(s.plans.tried) > maxOwn {
		s.plans.tried = map[sampleKey]int64{}
	}
	for i := range list {
		f := &list[i]
		if s.plans.count >= plansPerMinute {
			return nil
		}
		if f.Run == 0 || !f.Prepared && !NeedsRunning(f.Text) {
			continue
		}
		id := s.classOf(f.DigestText, f.Text)
		k := sampleKey{id.id, f.Schema}
		if t, ok := s.plans.tried[k]; ok && at-t < tryEvery || !explainable[id.verb] || !s.c.explained.due(k, at) {
			continue
		}
		s.plans.tried[k] = at
		s.plans.count++
		return s.take(ctx, at, k, id, f)
	}
	return nil
}

// explainable are the statements of which a server tells a plan while they run.
var explainable = map[string]bool{"SELECT": true, "INSERT": true, "UPDATE": true, "DELETE": true, "REPLACE": true}

// take takes one plan. MariaDB shows it for the running statement; MySQL refuses that for prepared ones ("Obtaining Execution Plan
// Information for a Named Connection", error 3012), but from 8.0 on shows their text with the values in it (seen with the
// binary log on), and that can be explained. That a server refuses is no error.
func (s *sampler) take(ctx context.Context, at int64, k sampleKey, id identity, f *read.Session) error {
	text, err := read.ExplainRunning(ctx, s.conn, *f, planTimeout)
	origin := "running"
	if err == nil && text != "" {
		same, serr := s.reader.StillRuns(ctx, *f)
		if serr != nil || !same { // another statement's plan, perhaps
			return serr
		}
	} else if err == nil && !NeedsRunning(f.Text) && len(f.Text) < maxWhole && sqltext.ReadsOnly([]byte(f.Text)) == nil {
		origin = "explain"
		s.c.explained.note("EXPLAIN FORMAT=JSON " + f.Text)
		text, err = read.ExplainJSON(ctx, s.conn, f.Schema, f.Text, planTimeout)
	}
	if err != nil {
		switch mysql.ClassOf(err) {
		case mysql.ClassDropped, mysql.ClassTimeout, mysql.ClassRefused:
			return err
		}
		return nil
	}
	if text == "" {
		return nil
	}
	plan, err := s.c.PlanID(text)
	if err != nil {
		return nil // it ended in the meantime: MariaDB returns a plan without tables
	}
	if err := s.c.keepPlan(ctx, at, k, plan, origin, text, id.fingerprint); err != nil {
		return err
	}
	if s.c.explained.took(k, at) {
		s.c.setStatus(func(st *Status) {
			if st.PlanNote == NotCaught {
				st.PlanNote = ""
			}
		})
	}
	return nil
}

// maxWhole is the length from which a statement may have been cut when it was read.
const maxWhole = 16000
