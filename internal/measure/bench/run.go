// Package bench runs a workload on sessions and measures it: as fast as the sessions can (closed loop), or at a given rate
// (open loop), where latency counts from the moment at which a transaction was to begin, so that a stall is not hidden.
package bench

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
)

// Options are how a workload is run.
type Options struct {
	Target      drive.Target
	Workload    workload.Workload
	Threads     int           // sessions, each on a thread of its own
	Time        time.Duration // how long to measure
	Warmup      time.Duration // how long to run before
	Rate        float64       // transactions a second; 0: closed loop
	Percentiles []float64     // beside those that every result has
	Seed        uint64
	Ledger      bool         // write down what was acknowledged and look for it afterwards
	Progress    func(Second) // each second, when it has passed; may be nil
}

// How long transactions may take that run when the time is over, and how much memory a run may take before the garbage
// collector, which would stop all sessions, is let loose.
const (
	grace       = 5 * time.Second
	memoryLimit = 2 << 30
)

type run struct {
	Options
	start    time.Time // of the measured time
	kinds    int
	schedule *schedule // nil: closed loop
	tally    *tally
	success  ticks
	failure  ticks
	ending   drive.Stop // no new transactions
	stop     drive.Stop // give up those that run

	mu   sync.Mutex
	left []time.Duration // moments of the schedule that were taken and not used
}

func (r *run) secondOf(at time.Duration) int { return int(math.Floor(at.Seconds())) }

func (r *run) end() { r.ending.Set() }

func (r *run) untaken(due time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = append(r.left, due)
}

// Run measures a workload. When ctx ends early the result holds what was measured so far, and says so.
func Run(ctx context.Context, o Options) (*Result, error) {
	r := &run{Options: o, kinds: 1}
	if k, ok := o.Workload.(workload.Kinded); ok {
		r.kinds = len(k.KindNames())
	}
	r.tally = newTally(r.kinds)
	r.success, r.failure = newTicks(o.Time+grace), newTicks(o.Time+grace)
	book, err := r.openLedger(ctx)
	if err != nil {
		return nil, err
	}
	workers, err := r.connect(ctx, book)
	if err != nil {
		return nil, err
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(o.Threads + 2))
	runtime.GC()
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(memoryLimit))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	r.start = time.Now().Add(o.Warmup)
	if o.Rate > 0 {
		r.schedule = newSchedule(o.Rate, o.Time+o.Warmup, o.Seed)
		r.schedule.next -= o.Warmup
		r.schedule.end = o.Time
	}
	cpu := cpuTime()
	interrupted, err := r.drive(ctx, workers)
	cpu = cpuTime() - cpu
	if err != nil {
		return nil, err
	}
	result := r.result(workers, interrupted)
	result.ClientCPUSeconds = cpu.Seconds()
	if book != nil {
		result.Ledger, err = book.compare(context.WithoutCancel(ctx), workers)
	}
	return result, err
}

// connect opens all sessions before the clock runs.
func (r *run) connect(ctx context.Context, book *ledger) ([]*worker, error) {
	workers := make([]*worker, r.Threads)
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range workers {
		workers[i] = &worker{run: r, id: i}
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

// drive lets the workers run until the time is over or ctx ends.
func (r *run) drive(ctx context.Context, workers []*worker) (interrupted bool, err error) {
	var group errgroup.Group
	for _, w := range workers {
		group.Go(func() error { return w.loop(ctx) })
	}
	done := make(chan error, 1)
	go func() { done <- group.Wait() }()
	interrupted, over, err := r.watch(ctx, done)
	r.end()
	if over {
		return interrupted, err
	}
	last := time.NewTimer(grace)
	defer last.Stop()
	select {
	case err := <-done:
		return interrupted, err
	case <-last.C:
		r.stop.Set()
		return interrupted, <-done
	}
}

// watch tells of each second until the time is over; over: the workers have ended by themselves.
func (r *run) watch(ctx context.Context, done <-chan error) (interrupted, over bool, err error) {
	finish := time.NewTimer(time.Until(r.start.Add(r.Time)))
	defer finish.Stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	told := r.secondOf(time.Since(r.start))
	for {
		select {
		case <-ctx.Done():
			return true, false, nil
		case <-finish.C:
			return false, false, nil
		case err := <-done:
			return false, true, err
		case <-tick.C:
			// One second later, so that the sessions have handed it over.
			for now := r.secondOf(time.Since(r.start)) - 1; told < now; told++ {
				if r.Progress != nil {
					r.Progress(r.tally.timeline(told, told+1)[0])
				}
			}
		}
	}
}

// result puts the figures together.
func (r *run) result(workers []*worker, interrupted bool) *Result {
	var ended time.Duration
	out := &Result{
		Workload: r.Workload.Name(), Server: r.Target.String(), Began: r.start, Threads: r.Threads, Rate: r.Rate,
		WarmupSeconds: r.Warmup.Seconds(), Interrupted: interrupted,
	}
	for _, w := range workers {
		ended = max(ended, w.last)
		out.Reconnects += w.reconnects
		out.Others += w.queries[drive.Other]
		out.Reads += w.queries[drive.Read]
		out.Writes += w.queries[drive.Write]
	}
	if !interrupted && ended < r.Time {
		ended = r.Time // sessions waited for a server that did not answer, or for work
	}
	if r.schedule != nil {
		out.Backlog = r.unstarted(min(ended, r.Time))
	}
	out.Seconds = ended.Seconds()
	out.Queries = out.Reads + out.Writes + out.Others
	all, m := newHistogram(), moments{}
	for i, h := range r.tally.latency {
		all.Merge(h)
		m.merge(r.tally.moments[i])
	}
	out.Transactions = m.n - r.tally.never
	out.TransactionsPerSecond = float64(out.Transactions) / out.Seconds
	out.QueriesPerSecond = float64(out.Queries) / out.Seconds
	out.Latency = r.latency(all, m)
	if r.schedule != nil {
		l := r.latency(r.tally.service, r.tally.serviceMoments)
		out.ServiceTime = &l
	}
	if k, ok := r.Workload.(workload.Kinded); ok {
		for i, name := range k.KindNames() {
			n := r.tally.moments[i].n
			if i == 0 {
				n -= r.tally.never // of which nobody knows the kind
			}
			out.Kinds = append(out.Kinds, KindResult{Name: name, Transactions: n, PerMinute: float64(n) / out.Seconds * 60, Latency: r.latency(r.tally.latency[i], r.tally.moments[i]), Minutes: r.tally.minutesOf(i, ended)})
		}
	}
	if h, ok := r.Workload.(workload.Headliner); ok {
		kind, unit := h.Headline()
		out.Headline = &Headline{Kind: out.Kinds[kind].Name, Unit: unit, PerMinute: out.Kinds[kind].PerMinute}
	}
	out.Errors = r.tally.errorCounts()
	out.Outages = outages(r.success, r.failure, ended)
	out.Timeline = r.tally.timeline(-r.secondOf(r.Warmup+time.Second-1), max(r.secondOf(ended), 1))
	if b, err := all.Encode(hdrhistogram.V2CompressedEncodingCookieBase); err == nil {
		out.Histogram = string(b)
	}
	return out
}

// unstarted counts the transactions that were due and never began, each with the time that it had waited when the run
// ended: to leave them out would hide the worst.
func (r *run) unstarted(end time.Duration) *Backlog {
	b := &Backlog{Max: r.tally.backlog, MaxWait: r.tally.maxWait.Seconds()}
	last := newSlice(r.kinds, true)
	last.second = max(r.secondOf(end)-1, 0)
	never := func(due time.Duration) {
		if due >= end {
			return
		}
		b.NeverStarted++
		_ = last.latency[0].RecordValue(min(int64(end-due), longest))
		last.moments[0].add(int64(end - due))
		b.MaxWait = max(b.MaxWait, (end - due).Seconds())
	}
	for _, due := range r.left {
		never(due)
	}
	r.schedule.rest(end, never)
	b.AtEnd = b.NeverStarted
	b.Max = max(b.Max, b.AtEnd)
	r.tally.never = b.NeverStarted
	if b.NeverStarted > 0 {
		r.tally.latency[0].Merge(last.latency[0])
		r.tally.moments[0].merge(last.moments[0])
	}
	return b
}

func (r *run) latency(h *hdrhistogram.Histogram, m moments) Latency {
	if m.n == 0 {
		return Latency{Percentiles: []Percentile{}}
	}
	l := Latency{Min: float64(m.min) / 1e9, Max: float64(m.max) / 1e9, Avg: m.sum / float64(m.n) / 1e9}
	if m.n > 1 {
		l.Stddev = math.Sqrt(max(0, (m.sq-m.sum*m.sum/float64(m.n))/float64(m.n-1))) / 1e9
	}
	wanted := slices.Concat(percentiles, r.Percentiles)
	slices.Sort(wanted)
	for _, p := range slices.Compact(wanted) {
		l.Percentiles = append(l.Percentiles, Percentile{Percentile: p, Seconds: float64(min(max(h.ValueAtPercentile(p), m.min), m.max)) / 1e9})
	}
	return l
}

// cpuTime is the processor time of this process so far.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Check says what is wrong with the options.
func (o Options) Check() error {
	switch {
	case o.Threads < 1:
		return fmt.Errorf("%w: %d threads", workload.ErrUsage, o.Threads)
	case o.Time <= 0:
		return fmt.Errorf("%w: a time of %v", workload.ErrUsage, o.Time)
	case o.Warmup < 0:
		return fmt.Errorf("%w: a warm-up of %v", workload.ErrUsage, o.Warmup)
	case o.Rate < 0 || math.IsNaN(o.Rate) || math.IsInf(o.Rate, 0):
		return fmt.Errorf("%w: a rate of %v", workload.ErrUsage, o.Rate)
	}
	for _, p := range o.Percentiles {
		if !(p > 0 && p <= 100) {
			return fmt.Errorf("%w: a percentile of %v: above 0, at most 100", workload.ErrUsage, p)
		}
	}
	return nil
}
