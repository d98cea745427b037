// Package collect reads servers and hosts every second and hands what it read to a sink.
//
// Each instance has its own goroutine, so that one that hangs does not delay others. A tick is
// stamped with the second it was due, or with the second it was read if that is later. If Risso itself
// was late, nothing is concluded about the server.
package collect

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Sink takes the numbers of one instance, tick by tick.
type Sink interface {
	// Append stores the values of tick t (unix seconds), one for each metric, NaN for none. The list
	// of metrics only grows. late marks a reading that took longer than a tenth of its interval.
	Append(t int64, metrics []fleet.Metric, values []float64, late bool) error
}

// Recorder takes what happens. Its methods must not block for long and may be called by many goroutines.
type Recorder interface {
	Event(fleet.Event)
	// Variables takes all global variables of an instance as they were at a time.
	Variables(instance string, at time.Time, values map[string]string)
}

// Extra adds numbers to an instance's sample at each tick, such as those of the server's process.
type Extra interface {
	Read(s *fleet.Sample)
	Gaps() []fleet.Trouble
	Close()
}

// between returns the seconds between two readings: those of their ticks, unless one of them was late.
func between(prevTick, tick int64, prevAt, at time.Time) float64 {
	if prevTick == 0 || prevAt.IsZero() {
		return 0
	}
	ticks, real := float64(tick-prevTick), at.Sub(prevAt).Seconds()
	if real > 0 && math.Abs(real-ticks) > lateAfter.Seconds() {
		return real
	}
	return ticks
}

// interval is the time between two ticks; lateAfter is a tenth of it: a reading that took longer is not trusted.
const (
	interval  = time.Second
	lateAfter = interval / 10
)

// View is what a collector knows after a tick. It is valid during Observe only.
type View struct {
	Instance  fleet.Instance
	Tick      int64   // unix seconds
	PrevTick  int64   // the tick of Prev; 0 when there is none
	Seconds   float64 // that lie between the two readings; they differ from the ticks where one was late; 0: as the ticks say
	Up        bool
	DownSince time.Time
	Down      fleet.Trouble // why it is down, in words that follow its name: "refuses connections"
	Late      bool
	Unseen    bool // Risso was late itself and knows nothing of this tick: all else is as it was before
	Sample    *fleet.Sample
	Prev      []float64 // the values of the tick before, by the same positions; may be shorter
	Gaps      []fleet.Trouble
	Channels  []fleet.Channel
	Locks     []read.LockWait // who waits for whose lock
	Old       []read.OldTransaction
	Hung      bool           // with Up false: it accepts connections
	Restarted time.Time      // when it was started last, if Risso saw that; else zero
	Log       []string       // the last lines of its error log, if it is down or was restarted, and they can be read
	Sessions  []read.Session // that run a statement; never changed once handed out
	More      bool           // there were other sessions, for which there was no room
	Open      []read.Transaction
	Deadlock  bool              // one was counted since the tick before
	Engine    string            // SHOW ENGINE INNODB STATUS, where it was read at this tick
	Texts     map[string]string // status variables that are no numbers; valid during Observe only
	Fresh     bool              // they were read at this tick
	Variables map[string]string // all global variables as of the last minute; never changed once handed out
}

// Elapsed is how many seconds lie between the two readings; 0 when there is one only.
func (v View) Elapsed() float64 {
	if v.PrevTick == 0 || v.Tick <= v.PrevTick {
		return 0
	}
	if v.Seconds > 0 {
		return v.Seconds
	}
	return float64(v.Tick - v.PrevTick)
}

// Rate is the growth of a counter per second since the tick before; false after a gap or a reset.
func (v View) Rate(key string) (float64, bool) {
	now, ok := v.Sample.Value(key)
	if !ok || v.PrevTick == 0 || v.Tick <= v.PrevTick {
		return 0, false
	}
	i := v.Sample.Find(key)
	if i < 0 || i >= len(v.Prev) || math.IsNaN(v.Prev[i]) || now < v.Prev[i] {
		return 0, false
	}
	return (now - v.Prev[i]) / v.Elapsed(), true
}

// Wish is what is wanted of a server once; it may be set by any goroutine.
type Wish struct{ Engine atomic.Bool }

// Observer is called with the state of an instance after each tick, in the collector's own goroutine.
type Observer interface{ Observe(View) }

// Options are what every collector needs.
type Options struct {
	Sink     Sink
	Recorder Recorder
	Observer Observer
	Logger   *slog.Logger
	Phase    time.Duration  // how far into the second this instance is read, so that many are not read at the same time
	Extra    Extra          // may be nil
	Pulse    *Pulse         // knows when Risso itself was late; may be nil
	Down     time.Time      // since when the server was down when Risso last looked; zero: it was not. That is told already
	Hung     bool           // it hung then
	Traffic  *mysql.Traffic // counts what is sent to a server; nil: nothing else queries the server
	Wish     *Wish          // what others want to be read; may be nil
	Redact   bool           // show no observer the keys of locked records, names of user locks and values in errors: findings quote them
}

// Every calls tick at every second until ctx ends, with the moment at which it was due. A tick that took too long makes the
// next one late, which is still better than none; seconds that are over by then are left out.
// tick returns the moment that it represents: later than due, when its answer came in a later second.
func Every(ctx context.Context, phase time.Duration, tick func(due time.Time) time.Time) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var last time.Time
	for {
		now := time.Now()
		due := nextDue(now, last, phase)
		timer.Reset(max(due.Sub(now), 0))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		last = tick(due)
	}
}

// nextDue is the moment at which a tick is due, with last the one that the previous tick represents; zero: there was none.
func nextDue(now, last time.Time, phase time.Duration) time.Time {
	due := now.Truncate(interval).Add(phase)
	if due.After(now) {
		due = due.Add(-interval)
	}
	// due is the newest second that has begun: it is either done or to be done now.
	if last.Sub(due) > 2*interval { // this machine's clock went back: do not wait until it has caught up
		last = time.Time{}
	}
	if last.IsZero() {
		due = due.Add(interval)
	}
	for !due.After(last) {
		due = due.Add(interval)
	}
	return due
}

// Group runs collectors and waits for all of them.
type Group struct {
	wg sync.WaitGroup
}

// Go starts a collector that the group owns; it ends with ctx.
func (g *Group) Go(ctx context.Context, r interface{ Run(context.Context) }) {
	g.wg.Go(func() { r.Run(ctx) })
}

// Wait returns when all collectors have ended.
func (g *Group) Wait() { g.wg.Wait() }
