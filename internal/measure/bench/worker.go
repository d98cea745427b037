package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
)

// Waits between attempts to connect again.
const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = 500 * time.Millisecond
)

// worker is one session with its thread.
type worker struct {
	run *run
	id  int

	session drive.Session
	client  workload.Client
	kinded  workload.KindedClient // client, where its transactions are of several kinds
	retries workload.RetryingClient
	ledger  *ledgerClient // nil without a ledger

	slice      *slice
	queries    [3]int64 // of sessions that are gone
	counting   bool     // the measured time has begun
	reconnects int64
	last       time.Duration // when the last transaction ended
}

// connect opens a session and prepares the statements.
func (w *worker) connect(ctx context.Context) error {
	s, err := w.run.Target.Open(ctx, &w.run.stop)
	if err != nil {
		return err
	}
	c, err := w.run.Workload.Client(s, w.id, rand.New(rand.NewPCG(w.run.Seed, uint64(w.id)<<32|uint64(w.reconnects))))
	if err != nil {
		s.Close()
		return fmt.Errorf("prepare the statements of %s: %w", w.run.Workload.Name(), err)
	}
	if w.ledger != nil {
		if err := w.ledger.prepare(s); err != nil {
			s.Close()
			return err
		}
	}
	w.session, w.client = s, c
	w.kinded, _ = c.(workload.KindedClient)
	w.retries, _ = c.(workload.RetryingClient)
	*s.Counts() = [3]int64{}
	return nil
}

// drop closes the session and keeps what it counted.
func (w *worker) drop() {
	if w.session == nil {
		return
	}
	for i, n := range w.session.Counts() {
		w.queries[i] += n
	}
	w.session.Close()
	w.session, w.client, w.kinded, w.retries = nil, nil, nil, nil
}

// loop runs transactions until the run ends. It gives an error only for what makes the whole run senseless.
func (w *worker) loop(ctx context.Context) error {
	runtime.LockOSThread() // for good: the thread ends with the goroutine, and its timer slack with it
	if err := sharpen(); err != nil {
		return err
	}
	defer w.drop()
	w.last = time.Since(w.run.start)
	w.slice = newSlice(w.run.kinds, w.run.schedule != nil)
	w.slice.second = w.run.secondOf(w.last)
	defer func() { w.run.tally.take(w.slice, w.slice.second >= 0) }()
	for {
		due, ok := w.next()
		if !ok {
			return nil
		}
		if w.session == nil && !w.reconnect(ctx) {
			return nil
		}
		began := due
		if w.run.schedule != nil {
			began = time.Since(w.run.start)
		}
		err := w.transaction()
		if fatal := w.account(due, began, err); fatal != nil {
			w.run.end()
			return fatal
		}
	}
}

// next gives the moment from which the latency of the next transaction counts.
func (w *worker) next() (due time.Duration, ok bool) {
	if w.run.ending.IsSet() {
		return 0, false
	}
	if w.run.schedule == nil {
		return w.last, true
	}
	due, ok = w.run.schedule.take()
	if !ok || !until(w.run.start, due, &w.run.ending) {
		if ok {
			w.run.untaken(due)
		}
		return 0, false
	}
	return due, true
}

func (w *worker) transaction() error {
	if err := w.client.Transaction(); err != nil {
		return err
	}
	if w.ledger != nil {
		return w.ledger.write()
	}
	return nil
}

// account notes how a transaction ended.
func (w *worker) account(due, began time.Duration, err error) error {
	now := time.Since(w.run.start)
	w.last = now
	if s := w.run.secondOf(now); s != w.slice.second {
		w.turn(s)
	}
	if w.retries != nil {
		for _, e := range w.retries.Retried() {
			w.run.tally.retried(e.Label(), e.Message)
			w.slice.errors++
		}
	}
	if err != nil {
		return w.failed(now, err)
	}
	w.run.success.mark(now)
	kind := 0
	if w.kinded != nil {
		kind = w.kinded.Kind()
	}
	took := int64(now - due)
	_ = w.slice.latency[kind].RecordValue(min(took, longest))
	w.slice.moments[kind].add(took)
	if w.slice.service != nil {
		_ = w.slice.service.RecordValue(min(int64(now-began), longest))
		w.slice.serviceMoments.add(int64(now - began))
		w.slice.maxWait = max(w.slice.maxWait, began-due)
		w.slice.backlog = max(w.slice.backlog, w.run.schedule.waiting(due, began))
	}
	return nil
}

// turn hands the figures of a second over and begins another.
func (w *worker) turn(second int) {
	w.run.tally.take(w.slice, w.slice.second >= 0)
	w.slice.clear(second)
	if !w.counting && second >= 0 {
		w.counting = true
		w.queries = [3]int64{}
		*w.session.Counts() = [3]int64{}
	}
}

// failed counts an error; it gives those back that will not go away.
func (w *worker) failed(now time.Duration, err error) error {
	if errors.Is(err, drive.ErrStopped) {
		return nil
	}
	w.run.failure.mark(now)
	w.slice.errors++
	var server *drive.ServerError
	switch {
	case errors.As(err, &server):
		w.run.tally.failed(server.Label(), server.Message)
		if server.Senseless() {
			return fmt.Errorf("%s: %w", w.run.Workload.Name(), err)
		}
		if !server.Gone() {
			return nil
		}
	case errors.Is(err, drive.ErrLost):
		w.run.tally.failed("lost", err.Error())
	default:
		return err
	}
	w.drop()
	return nil
}

// reconnect tries until there is a session again, or the run ends.
func (w *worker) reconnect(ctx context.Context) bool {
	w.reconnects++
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		if w.run.ending.IsSet() {
			return false
		}
		err := w.connect(ctx)
		if err == nil {
			return true
		}
		now := time.Since(w.run.start)
		w.run.failure.mark(now)
		w.run.tally.failed("connect", err.Error())
		if s := w.run.secondOf(now); s != w.slice.second {
			w.run.tally.take(w.slice, w.slice.second >= 0)
			w.slice.clear(s)
		}
		w.slice.errors++
		if !until(w.run.start, now+wait, &w.run.ending) {
			return false
		}
	}
}
