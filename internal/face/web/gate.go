package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rissodb/risso/internal/serve/config"
)

// gate lets questions through: a number of a kind at a time, and all of them within a bound of memory.
type gate struct {
	limits    config.Limits
	quick     *lane // the present, which pages ask for each second
	charts    *lane
	promql    *lane
	passwords *lane // each takes 20 MB and a processor
	queries   *lane // statements, events, and everything else that is asked of a database
	held      atomic.Int64
	heap      heapWatch
}

func newGate(l config.Limits) *gate {
	g := &gate{limits: l, quick: newLane(quickAtOnce, l.Wait), charts: newLane(l.AtOnce, l.Wait), promql: newLane(l.AtOnce, l.Wait), queries: newLane(l.AtOnce, l.Wait), passwords: newLane(passwordsAtOnce, l.Wait)}
	g.heap.most, g.heap.limit = uint64(l.Memory), debug.SetMemoryLimit(-1)
	return g
}

// What keeps a question from its answer.
var (
	errBusy     = errors.New("as many questions are being answered as may be at once")
	errMemory   = errors.New("the queries that Risso is answering use all the memory allowed")
	errTooLong  = errors.New("the question took too long")
	errTooLarge = errors.New("the answer is too large")
	errCostly   = errors.New("the question is too costly")
)

// lane lets a number of questions of one kind be worked on at a time; a few more wait a little.
type lane struct {
	places  chan struct{}
	waiting atomic.Int32
	wait    time.Duration
}

func newLane(atOnce int, wait time.Duration) *lane {
	return &lane{places: make(chan struct{}, atOnce), wait: wait}
}

// enter waits for a place; errBusy when there is none in time.
func (l *lane) enter(ctx context.Context) error {
	select {
	case l.places <- struct{}{}:
		return nil
	default:
	}
	if l.waiting.Add(1) > mostWaiting {
		l.waiting.Add(-1)
		return errBusy
	}
	defer l.waiting.Add(-1)
	timer := time.NewTimer(l.wait)
	defer timer.Stop()
	select {
	case l.places <- struct{}{}:
		return nil
	case <-timer.C:
		return errBusy
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *lane) leave() { <-l.places }

// heldShare is the part of the memory that bodies and answers on their way may hold; the rest is for work.
const heldShare = 3

// hold takes bytes for a body or an answer that is in memory, as long as some are left.
func (g *gate) hold(n int64) error {
	if g.held.Add(n) > g.limits.Memory/heldShare {
		g.held.Add(-n)
		return errMemory
	}
	return nil
}

func (g *gate) release(n int64) { g.held.Add(-n) }

// run works on a question within its time and memory.
func (g *gate) run(ctx context.Context, l *lane, work func(context.Context) error) error {
	if err := l.enter(ctx); err != nil {
		return err
	}
	defer l.leave()
	ctx, cancel := context.WithTimeoutCause(ctx, g.limits.Time, fmt.Errorf("%w: more than %s", errTooLong, g.limits.Time))
	defer cancel()
	if l != g.quick {
		var stop func()
		ctx, stop = g.heap.guard(ctx)
		defer stop()
	}
	err := work(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause // why it ended, and not in which function
	}
	return err
}

// heapWatch ends questions that take more memory than they may, the youngest first. It looks at the heap itself, so that
// no way to spend memory is forgotten.
type heapWatch struct {
	most uint64

	mu       sync.Mutex
	idle     uint64 // bytes in the heap when no question was worked on
	resident int64  // of the whole process then; 0: not known
	under    []*guarded
	large    bool  // the heap grew by a good part of what it may
	watching bool  // somebody looks
	limit    int64 // what GOMEMLIMIT says, or none
}

// guarded is a question that is being worked on.
type guarded struct {
	watch  *heapWatch
	cancel context.CancelCauseFunc
}

// guardKey is where the context of a question has its guard.
type guardKey struct{}

// heapLook is how often the heap is looked at: 30 ms at 1 GB/s are 30 MB. Where a question knows that it takes memory, it
// has a look itself.
const heapLook = 30 * time.Millisecond

func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// residentBytes is what the runtime has from the system and did not give back.
func residentBytes() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64() - sample[1].Value.Uint64())
}

// processBytes is what the process has in memory, also what DuckDB took, of which Go's runtime knows nothing; 0 if the system
// does not say (proc_pid_statm(5)).
func processBytes() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(b), &size, &resident); err != nil {
		return 0
	}
	return resident * int64(os.Getpagesize())
}

// processShare is how much more than the heap may grow the whole process may. Questions that are ended take memory a little longer: with 1.6 a busy
// machine was seen to give them twice what they may have.
const processShare = 1.4

// guard watches over a question until stop is called.
func (h *heapWatch) guard(ctx context.Context) (guardedCtx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	q := &guarded{h, cancel}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.under = append(h.under, q); len(h.under) == 1 {
		h.idle, h.resident = heapBytes(), processBytes()
		// Beyond this garbage is collected at any price. It helps; the watch holds the bound.
		debug.SetMemoryLimit(min(h.limit, residentBytes()+int64(h.most)))
		if !h.watching {
			h.watching = true
			go h.watch() // ends with the last question
		}
	}
	return context.WithValue(ctx, guardKey{}, q), func() {
		cancel(nil)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.under = slices.DeleteFunc(h.under, func(o *guarded) bool { return o == q })
	}
}

// look ends the youngest question when the heap has grown too much.
func (h *heapWatch) look() {
	bytes, process := heapBytes(), processBytes()
	h.mu.Lock()
	defer h.mu.Unlock()
	over := bytes > h.idle+h.most || h.resident > 0 && process > h.resident+int64(processShare*float64(h.most))
	if n := len(h.under); n > 0 && over {
		h.under[n-1].cancel(errMemory)
	}
	h.large = h.large || bytes > h.idle+h.most/4
	h.idle = min(h.idle, bytes)
}

func (h *heapWatch) watch() {
	tick := time.NewTicker(heapLook)
	defer tick.Stop()
	for range tick.C {
		h.look()
		h.mu.Lock()
		over, large := len(h.under) == 0, h.large
		if over {
			h.large, h.watching = false, false
			debug.SetMemoryLimit(h.limit)
		}
		h.mu.Unlock()
		if over {
			if large {
				debug.FreeOSMemory() // the memory of a large question must be free for the next one
			}
			return
		}
	}
}

// check returns the reason if the question has been ended, after checking whether it has to be.
func check(ctx context.Context) error {
	if q, ok := ctx.Value(guardKey{}).(*guarded); ok {
		q.watch.look()
	}
	return context.Cause(ctx)
}

// refusal is how an error of the gate is reported: the status, Prometheus' word for it, and whether to come again soon.
// ok is false for all other errors.
func refusal(err error) (status int, kind string, ok bool) {
	switch {
	case errors.Is(err, errBusy):
		return http.StatusServiceUnavailable, "unavailable", true
	case errors.Is(err, errMemory):
		return http.StatusServiceUnavailable, "unavailable", true
	case errors.Is(err, errTooLong), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable, "timeout", true
	case errors.Is(err, errTooLarge), errors.Is(err, errCostly):
		return http.StatusUnprocessableEntity, "execution", true
	}
	return 0, "", false
}
