package history

import (
	"context"
)

// Source follows the statements of one server by one way of knowing them.
type Source interface {
	// Run follows until ctx ends.
	Run(ctx context.Context)
	// Status is how it goes; it may be called from any goroutine.
	Status() Status
}

// Mode says which source is used.
type Mode string

// The modes.
const (
	Auto              Mode = "auto"               // performance_schema if it counts, else the slow log
	PerformanceSchema Mode = "performance_schema" // that only
	SlowLogFile       Mode = "slow-log"           // that only
	Off               Mode = "off"                // none
)

// Modes are all modes, in the order in which they are shown.
func Modes() []Mode { return []Mode{Auto, PerformanceSchema, SlowLogFile, Off} }

// Either is performance_schema or, if that does not count statements, the slow log.
type Either struct {
	counters *Collector
	log      *SlowLog
	logOnly  bool // counters only looks at the active sessions
}

// NewEither makes it of two sources of one server. From then on log reads only while counters cannot.
func NewEither(counters *Collector, log *SlowLog) *Either {
	log.wanted = func() need {
		switch st := counters.Status(); {
		case st.Working:
			return needGone
		case counters.absent.Load():
			return needThere
		}
		return needUnknown
	}
	return &Either{counters: counters, log: log}
}

// NewSlowLogOnly is the slow log, even if there are counters, and what the active sessions are found doing.
func NewSlowLogOnly(sessions *Collector, log *SlowLog) *Either {
	return &Either{counters: sessions, log: log, logOnly: true}
}

// Run follows until ctx ends.
func (e *Either) Run(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.log.Run(ctx)
	}()
	if e.logOnly {
		e.counters.activity.run(ctx)
	} else {
		e.counters.Run(ctx)
	}
	<-done
}

// Status is that of the source which works; when none does, it says what keeps each of them.
func (e *Either) Status() Status {
	if e.logOnly {
		return e.logStatus()
	}
	c := e.counters.Status()
	if c.Working || !e.counters.absent.Load() {
		return c
	}
	l := e.logStatus()
	if l.Working {
		l.Notes = append(l.Notes, gap("statements that are not slow", c.Why+"; the slow log is read instead", c.Remedy))
		return l
	}
	l.Source = "none"
	l.Why = c.Why + "; and the slow log cannot be read instead: " + l.Why
	if l.Remedy != "" {
		l.Remedy += "; or, for all statements: "
	}
	l.Remedy += c.Remedy
	return l
}

// logStatus is that of the slow log, with how looking at the sessions goes.
func (e *Either) logStatus() Status {
	l := e.log.Status()
	activity, notes := e.counters.activity.status()
	l.Activity, l.Notes = activity, append(l.Notes[:len(l.Notes):len(l.Notes)], notes...)
	return l
}

// need is whether the slow log has to be read.
type need int

const (
	needThere   need = iota // read it
	needUnknown             // wait
	needGone                // another source counts: what is in the log meanwhile must not be counted again
)
