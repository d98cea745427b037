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
	"github.com/rissodb/risso/internal/mysql"
)

// Waits between attempts to connect again. The end of an outage is seen only by an attempt, so that waits are short; with
// many sessions, whose attempts fall between each other, each may wait longer.
const (
	firstRetry     = 5 * time.Millisecond
	lastRetry      = 20 * time.Millisecond // for up to sessionsPerGap sessions, in proportion for more
	longestRetry   = 500 * time.Millisecond
	sessionsPerGap = 16
)

// worker is one session with its thread.
type worker struct {
	run   *run
	id    int
	clock waker

	session drive.Session
	number  int64 // that the server has for the session
	at      int   // the target that the session is open to
	client  workload.Client
	kinded  workload.KindedClient // client, where its transactions are of several kinds
	retries workload.RetryingClient
	paced   workload.Paced // client, if it decides when transactions begin
	ledger  *ledgerClient  // nil without a ledger

	slice      *slice
	gone       [3]int64 // statements of sessions that are gone
	before     [3]int64 // statements when the transaction before ended
	handed     [3]int64 // statements that were handed over
	reconnects int64
	retry      time.Duration // before the next attempt to connect; 0 after a success
	yielded    time.Duration // when the worker last let others on its processor
	last       time.Duration // when the last transaction ended
	slow       []span
	unfinished time.Duration // since when the transaction that was given up was due; unknown: none was
}

// connect opens a session and prepares the statements.
func (w *worker) connect(ctx context.Context) error {
	s, at, err := w.run.open(ctx)
	if err != nil {
		return err
	}
	number := drive.ID(s)
	if w.run.stmts != nil {
		s = w.run.stmts.watch(s, w.id)
	}
	c, err := w.run.Workload.Client(s, w.id, rand.New(rand.NewPCG(w.run.Seed, uint64(w.id)<<32|uint64(w.reconnects))))
	if err != nil {
		err = fmt.Errorf("prepare the statements of %s: %w", w.run.Workload.Name(), err)
	} else if w.ledger != nil {
		err = w.ledger.prepare(s)
	}
	if err != nil {
		s.Close()
		w.run.leave(at)
		return err
	}
	w.session, w.number, w.at, w.client = s, number, at, c
	w.kinded, _ = c.(workload.KindedClient)
	w.retries, _ = c.(workload.RetryingClient)
	w.paced, _ = c.(workload.Paced)
	*s.Counts() = [3]int64{}
	return nil
}

// drop closes the session and keeps what it counted.
func (w *worker) drop() {
	if w.session == nil {
		return
	}
	w.gone = w.total()
	w.session.Close()
	w.session, w.client, w.kinded, w.retries, w.paced = nil, nil, nil, nil, nil
}

// total are the statements of all sessions that this worker had, by kind.
func (w *worker) total() [3]int64 {
	n := w.gone
	if w.session != nil {
		for i, more := range w.session.Counts() {
			n[i] += more
		}
	}
	return n
}

// loop runs transactions until the run ends. It returns an error only for what makes the whole run senseless.
func (w *worker) loop(ctx context.Context) error {
	if err := w.yield(w.run.now()); err != nil {
		return err
	}
	defer w.drop()
	w.last = w.run.now()
	w.slice = w.run.tally.blank(secondOf(w.last), w.run.schedule != nil)
	defer func() {
		w.finish()
		w.handOver(w.total())
	}()
	for {
		if w.session == nil && !w.reconnect(ctx) {
			return nil
		}
		due, ok := w.next()
		if !ok {
			return nil
		}
		began := due
		if w.run.schedule != nil {
			began = w.run.now()
		}
		err := w.transaction()
		if fatal := w.account(due, began, err); fatal != nil {
			w.run.end()
			return fatal
		}
	}
}

// finish lets the client do what it has left to do. What it sends counts as statements, and in no latency.
func (w *worker) finish() {
	f, ok := w.client.(workload.Finisher)
	if !ok || w.session == nil || w.run.stop.IsSet() {
		return
	}
	err := f.Finish()
	var server *drive.ServerError
	switch {
	case errors.As(err, &server):
		w.slice.failed(server.Label(), server)
	case err != nil && !errors.Is(err, drive.ErrStopped):
		w.slice.failed("lost", err)
	}
}

// yieldEvery is how often a worker offers its processor to the other goroutines. The runtime would take it by a signal after
// 10 ms, which costs more, and more so the more sessions there are. See drive/DESIGN.md.
const yieldEvery = 4 * time.Millisecond

// yield lets other goroutines run. The worker may go on on another thread, which then has to be woken on time, too: a
// worker that is locked to its thread would wait for two changes of threads here.
func (w *worker) yield(now time.Duration) error {
	w.yielded = now
	runtime.Gosched()
	if w.run.schedule == nil {
		return nil
	}
	return sharpen()
}

// next returns the moment from which the latency of the next transaction counts: in a closed loop the end of the one before,
// so that a reconnect is in it.
func (w *worker) next() (due time.Duration, ok bool) {
	if w.run.ending.IsSet() || w.last-w.run.measuredFrom() >= w.run.Time {
		return 0, false
	}
	if w.paced != nil {
		due, ok = w.paced.Next(w.last)
		if !ok {
			return 0, false
		}
	}
	if w.run.schedule == nil {
		if w.paced == nil {
			return w.last, true
		}
		return due, w.clock.until(w.run.epoch, due, &w.run.ending)
	}
	due, ok = w.run.schedule.take()
	if !ok || !w.clock.until(w.run.epoch, due, &w.run.ending) {
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
	now := w.run.now()
	if errors.Is(err, drive.ErrStopped) {
		w.unfinished = due
		w.slow = note(w.slow, span{due, now})
		return nil
	}
	w.last = now
	if now-w.yielded > yieldEvery {
		if err := w.yield(now); err != nil {
			return err
		}
	}
	w.turn(now)
	w.before = w.total()
	if w.retries != nil {
		for _, e := range w.retries.Retried() {
			w.slice.retried(e.Label(), e)
		}
	}
	if err != nil {
		return w.failed(now, err)
	}
	w.retry = 0
	w.run.success.mark(now)
	kind := 0
	if w.kinded != nil {
		kind = w.kinded.Kind()
	}
	took := now - due
	w.slice.add(kind, int64(took))
	if took >= shortestStall {
		w.slow = note(w.slow, span{due, now})
	}
	if w.slice.service != nil {
		w.slice.service.add(int64(now - began))
		w.slice.maxWait = max(w.slice.maxWait, began-due)
		w.slice.backlog = max(w.slice.backlog, w.run.schedule.waiting(due, began))
	}
	return nil
}

// turn hands the figures over when another second has begun.
func (w *worker) turn(now time.Duration) {
	if s := secondOf(now); s != w.slice.second {
		w.handOver(w.before)
		w.slice = w.run.tally.blank(s, w.run.schedule != nil)
	}
}

// handOver hands over the figures of a second; total are the statements up to its end.
func (w *worker) handOver(total [3]int64) {
	for i := range total {
		w.slice.queries[i] = total[i] - w.handed[i]
	}
	w.handed = total
	w.run.tally.handed <- w.slice
}

// failed counts an error; it returns those that will not go away.
func (w *worker) failed(now time.Duration, err error) error {
	w.run.failure.mark(now)
	var server *drive.ServerError
	switch {
	case errors.As(err, &server):
		w.slice.failed(server.Label(), server)
		t, ok := w.run.Workload.(workload.Tolerant)
		if ok && t.Tolerates(server) {
			return nil
		}
		if server.Senseless() {
			return fmt.Errorf("%s: %w", w.run.Workload.Name(), err)
		}
		if !server.Gone() {
			return nil
		}
	case errors.Is(err, drive.ErrLost):
		w.slice.failed("lost", err)
	default:
		return err
	}
	w.drop()
	w.run.leave(w.at)
	return nil
}

// reconnect tries until there is a session again, or the run ends.
func (w *worker) reconnect(ctx context.Context) bool {
	w.reconnects++
	for {
		now := w.run.now()
		if w.retry > 0 && !w.clock.until(w.run.epoch, now+w.retry, &w.run.ending) || w.run.ending.IsSet() {
			return false
		}
		w.retry = min(max(2*w.retry, firstRetry), lastRetry*time.Duration(1+w.run.Threads/sessionsPerGap), longestRetry)
		err := w.connect(ctx)
		if err == nil {
			return true
		}
		if w.run.ending.IsSet() {
			return false
		}
		now = w.run.now()
		w.turn(now)
		w.run.failure.mark(now)
		w.slice.failed(connectLabel(err), err)
	}
}

// connectLabel names why a session could not be opened: by the server's number, where it gave one.
func connectLabel(err error) string {
	var server *drive.ServerError
	if errors.As(err, &server) {
		return server.Label()
	}
	if n := mysql.ErrorNumber(err); n != 0 {
		return fmt.Sprintf("%d", n)
	}
	return "connect"
}
