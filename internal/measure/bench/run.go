// Package bench runs a workload on sessions and measures it: as fast as the sessions can (closed loop), or at a given rate
// (open loop), where latency counts from the time at which a transaction was due, so that a stall is not hidden.
// DESIGN.md explains how and why.
package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/environ"
	"github.com/rissodb/risso/internal/measure/workload"
)

// Options are how a workload is run.
type Options struct {
	Target      drive.Target
	Failover    []drive.Target // taken in turn when the target is lost or no longer takes writes
	Workload    workload.Workload
	Threads     int           // sessions, each on its own thread
	Time        time.Duration // how long to measure
	Warmup      time.Duration // how long to run before; with WarmupAuto at most
	WarmupAuto  bool          // measure as soon as the figures are steady
	Rate        float64       // transactions a second; 0: closed loop
	Percentiles []float64     // besides those that every result has
	Seed        uint64
	Ledger      bool          // write down what was acknowledged and look for it afterwards
	Progress    func(Second)  // each second, when it has passed; may be nil
	Statements  bool          // measure each statement, too
	Watch       environ.Watch // what is known of the server's process, for a look at the machine each second
	// Grace is how long transactions may take that run when the time is over; 0: 5 s.
	Grace time.Duration
}

// WarmupLimit is how long an automatic warm-up takes at most, where Options.Warmup does not say.
const WarmupLimit = 2 * time.Minute

// MaxThreads is the most sessions of a run: each has a thread, and a Go program ends that has more than 10,000.
const MaxThreads = 8000

// MaxRate is the highest rate that can be asked for: more than any server answers. Moments differ by nanoseconds.
// minRate is a transaction in some three years.
const (
	MaxRate = 10_000_000
	minRate = 1e-8
)

// longestTime is how long a run may measure, and how long it may warm up: a year.
const longestTime = 365 * 24 * time.Hour

// memoryLimit is how much memory a run may take before the garbage collector, which would stop all sessions, is let loose.
const (
	defaultGrace = 5 * time.Second
	memoryLimit  = 2 << 30
)

// leastProcs leaves a processor for the run itself next to a single session.
const leastProcs = 2

// run is one run. All moments count from its epoch, which lies so that the measured time begins with a whole second.
type run struct {
	Options
	epoch     time.Time
	begin     time.Duration // when the sessions began
	from      atomic.Int64  // when the measured time begins; unknown while an automatic warm-up goes on
	steady    *bool         // how an automatic warm-up ended
	kinds     int
	schedule  *schedule // nil: closed loop
	tally     *tally
	success   ticks
	failure   ticks
	ending    drive.Stop // no new transactions
	stop      drive.Stop // give up those that run
	retreat   func()     // gives up attempts to connect
	targets   []drive.Target
	current   atomic.Int32 // the target that new sessions are opened to
	version   string       // of the server
	transport string       // how the sessions reach it
	stmts     *statements  // nil: single statements are not measured
	watcher   *environ.Watcher
	counter   *counter
	counted   map[string]int64
	use       *environ.Use
	cpu       time.Duration // of this process when the measured time began
	told      int           // the first second that Progress does not know yet

	mu   sync.Mutex
	left []time.Duration // moments of the schedule that were taken and not used
}

func (r *run) now() time.Duration { return time.Since(r.epoch) }

func (r *run) measuredFrom() time.Duration { return time.Duration(r.from.Load()) }

// end lets no transaction begin any more.
func (r *run) end() {
	r.ending.Set()
	r.retreat()
}

func (r *run) untaken(due time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = append(r.left, due)
}

// Run measures a workload. When ctx ends early the result holds what was measured so far, and says so. It also returns a
// result together with an error, if sessions ran before the error came.
func Run(ctx context.Context, o Options) (*Result, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	r := newRun(o)
	if err := r.askVersion(ctx); err != nil {
		return nil, err
	}
	book, err := r.openLedger(ctx)
	if err != nil {
		return nil, err
	}
	workers, err := r.connect(ctx, book)
	if err != nil {
		return nil, errors.Join(err, book.drop(ctx))
	}
	// As many processors as sessions hold: one that were idle would have the runtime wake threads to look for work.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(o.Threads, leastProcs)))
	runtime.GC()
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(memoryLimit))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	r.watcher = environ.NewWatcher(o.Watch, cpuTime)
	defer r.watcher.Close()
	r.counter = r.startCounter(ctx)
	r.beginUse() // before the sessions, which leave no processor for it on a busy machine
	began := time.Now()
	r.startClock(began)
	interrupted, over, failed := r.drive(ctx, workers)
	result := r.result(workers, interrupted, over)
	r.abandon(ctx, workers)
	if book != nil {
		result.Ledger = book.compare(context.WithoutCancel(ctx), workers)
	}
	return result, failed
}

func newRun(o Options) *run {
	if o.WarmupAuto && o.Warmup == 0 {
		o.Warmup = WarmupLimit
	}
	if o.Grace == 0 {
		o.Grace = defaultGrace
	}
	r := &run{Options: o, kinds: 1, targets: append([]drive.Target{o.Target}, o.Failover...), retreat: func() {}}
	if k, ok := o.Workload.(workload.Kinded); ok {
		r.kinds = len(k.KindNames())
	}
	if o.Statements {
		r.stmts = &statements{run: r}
	}
	r.tally = newTally(r.kinds, o.Threads)
	length := o.Warmup + o.Time + o.Grace + time.Second
	r.success, r.failure = newTicks(length), newTicks(length)
	return r
}

// startClock sets the epoch.
func (r *run) startClock(now time.Time) {
	whole := (r.Warmup + time.Second - 1).Truncate(time.Second)
	r.from.Store(int64(whole))
	if r.WarmupAuto {
		whole = r.Warmup
		r.from.Store(int64(unknown))
	}
	r.begin = whole - r.Warmup
	r.epoch = now.Add(-r.begin)
	if r.Rate > 0 {
		r.schedule = newSchedule(r.Rate, r.begin, r.Seed)
		if !r.WarmupAuto {
			r.schedule.until(whole + r.Time)
		}
	}
}

// connect opens all sessions before the clock runs.
func (r *run) connect(ctx context.Context, book *ledger) ([]*worker, error) {
	workers := make([]*worker, r.Threads)
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range workers {
		workers[i] = &worker{run: r, id: i, clock: newWaker(), unfinished: unknown}
		if book != nil {
			workers[i].ledger = book.client(i)
		}
		group.Go(func() error { return workers[i].connect(gctx) })
	}
	if err := group.Wait(); err != nil {
		for _, w := range workers {
			w.drop()
		}
		return nil, err
	}
	return workers, nil
}

// drive lets the workers run until the time is over or ctx ends; over is when that was.
func (r *run) drive(ctx context.Context, workers []*worker) (interrupted bool, over time.Duration, err error) {
	connecting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	r.retreat = cancel
	var group errgroup.Group
	for _, w := range workers {
		group.Go(func() error { return w.loop(connecting) })
	}
	go r.tally.gather(r.measuredFrom)
	done := make(chan error, 1)
	go func() { done <- group.Wait() }()
	defer func() {
		close(r.tally.handed)
		<-r.tally.done
		r.tell(secondOf(over))
	}()
	interrupted, ended, err := r.watch(ctx, done)
	over = r.now()
	r.aside(func() { r.use = r.watcher.Use() }) // before the sessions go: their threads are looked at
	counted := make(chan map[string]int64, 1)
	go func() { counted <- r.counter.end() }()
	defer func() { r.counted = <-counted }()
	r.end()
	if ended {
		return interrupted, over, err
	}
	last := time.NewTimer(r.Grace)
	defer last.Stop()
	select {
	case err = <-done:
	case <-last.C:
		r.stop.Set()
		err = <-done
	}
	return interrupted, over, err
}

// Check says what is wrong with the options.
func (o Options) Check() error {
	switch {
	case o.Threads < 1 || o.Threads > MaxThreads:
		return fmt.Errorf("%w: %d threads: from 1 to %d", workload.ErrUsage, o.Threads, MaxThreads)
	case o.Time <= 0 || o.Time > longestTime:
		return fmt.Errorf("%w: a time of %v: more than 0, at most %s", workload.ErrUsage, o.Time, digits.Duration(longestTime))
	case o.Warmup < 0 || o.Warmup > longestTime:
		return fmt.Errorf("%w: a warm-up of %v: from 0 to %s", workload.ErrUsage, o.Warmup, digits.Duration(longestTime))
	case !(o.Rate >= 0 && o.Rate <= MaxRate) || o.Rate > 0 && o.Rate < minRate:
		return fmt.Errorf("%w: a rate of %v: 0 (as fast as the sessions can), or from %v to %d transactions a second", workload.ErrUsage, o.Rate, minRate, MaxRate)
	}
	for _, p := range o.Percentiles {
		if !(p > 0 && p <= 100) {
			return fmt.Errorf("%w: a percentile of %v: above 0, at most 100", workload.ErrUsage, p)
		}
	}
	return nil
}
