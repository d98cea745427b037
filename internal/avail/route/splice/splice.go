// Package splice carries bytes between pairs of sockets: what one sends the other gets, as it is. A few threads wait for all of them by epoll, so that a pair on
// which nothing moves costs some hundred bytes. It knows nothing of what the bytes mean. See DESIGN.md of package route for why it does not use goroutines.
package splice

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	bufferSize = 64 << 10 // what is read at once
	maxTurns   = 8        // reads of one socket before the others get their turn
	maxEvents  = 256
	// lingerTime is how long a client that was told that its server closed the connection may take to close it, too.
	lingerTime = 10 * time.Second
	yieldEvery = 4 * time.Millisecond
	busyWait   = 4 * time.Millisecond // without an event for so long, a thread is idle
)

// Loop carries the bytes of many pairs.
type Loop struct {
	workers []*worker
	ended   sync.WaitGroup
	next    atomic.Uint32
	places  int
}

// Pair is a client and a server whose bytes are carried to each other.
type Pair struct {
	w              *worker
	client, server end
	done           func(*Pair)
	over           bool
	linger         time.Time // when a client that does not close is closed; zero: it may stay
	toClient       atomic.Int64
	toServer       atomic.Int64
}

// Carried is how many bytes went to the client and to the server.
func (p *Pair) Carried() (toClient, toServer int64) { return p.toClient.Load(), p.toServer.Load() }

// end is one of the two sockets. All of it belongs to the worker.
type end struct {
	fd       int
	pair     *Pair
	other    *end
	sent     *atomic.Int64 // bytes that this socket was given
	waiting  []byte        // what it does not take yet; its peer is not read meanwhile
	kept     []byte        // the buffer below waiting
	readable bool          // something may be there to be read
	closing  bool          // its peer has closed or broken it: read to the end, no edge will come
	ended    bool          // it was read to the end
	shut     bool          // it was told that nothing more comes
	queued   bool          // it is in the worker's list again
}

// New starts the threads. Each takes one of the places that GOMAXPROCS gives, so there are as many more until Close.
func New(threads int) (*Loop, error) {
	l := &Loop{}
	threads = max(threads, 1)
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + threads)
	l.places = threads
	for range threads {
		w, err := newWorker()
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		l.workers = append(l.workers, w)
		l.ended.Go(w.run)
	}
	return l, nil
}

// Add takes over two non-blocking sockets, and calls done once, on a thread that must not wait, when both are closed.
func (l *Loop) Add(client, server int, done func(*Pair)) *Pair {
	w := l.workers[int(l.next.Add(1))%len(l.workers)]
	p := &Pair{w: w, done: done}
	p.client = end{fd: client, pair: p, other: &p.server, sent: &p.toClient}
	p.server = end{fd: server, pair: p, other: &p.client, sent: &p.toServer}
	w.post(letter{add: p})
	return p
}

// Cut breaks both connections at once; what was not carried yet is lost.
func (p *Pair) Cut() { p.w.post(letter{cut: p}) }

// Close cuts all pairs, and returns when their done functions have been called.
func (l *Loop) Close() error {
	for _, w := range l.workers {
		w.post(letter{stop: true})
	}
	l.ended.Wait()
	var errs []error
	for _, w := range l.workers {
		errs = append(errs, unix.Close(w.epoll), unix.Close(w.wake))
	}
	l.workers = nil
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) - l.places)
	l.places = 0
	return errors.Join(errs...)
}

// letter is what another thread wants of a worker.
type letter struct {
	add, cut *Pair
	stop     bool
}

// worker is one thread's share of the pairs.
type worker struct {
	epoll, wake int
	mu          sync.Mutex
	box         []letter
	posted      atomic.Bool

	ends      []*end // by descriptor
	pairs     map[*Pair]struct{}
	again     []*end  // with more to read than one turn takes
	lingering []*Pair // the first to be closed first
	spare     [][]byte
	buffer    [bufferSize]byte
	yielded   time.Time
	stopped   bool
}

func newWorker() (w *worker, err error) {
	w = &worker{pairs: map[*Pair]struct{}{}}
	if w.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	if w.wake, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		return nil, errors.Join(fmt.Errorf("eventfd: %w", err), unix.Close(w.epoll))
	}
	if err = unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, w.wake, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: int32(w.wake)}); err != nil {
		return nil, errors.Join(fmt.Errorf("epoll: %w", err), unix.Close(w.epoll), unix.Close(w.wake))
	}
	return w, nil
}

// post leaves a letter, and wakes the worker.
func (w *worker) post(m letter) {
	w.mu.Lock()
	w.box = append(w.box, m)
	w.mu.Unlock()
	if !w.posted.Swap(true) {
		_, _ = unix.Write(w.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // a counter: it cannot be full
	}
}

// run is the thread. Descriptors that are closed between two waits stand for nothing until the next: letters are read only then.
func (w *worker) run() {
	events := make([]unix.EpollEvent, maxEvents)
	for {
		if w.posted.Swap(false) {
			w.letters()
		}
		if w.stopped {
			for p := range w.pairs {
				w.abort(p)
			}
			return
		}
		n := w.await(events)
		for i := range n {
			w.event(&events[i])
		}
		w.continued()
		w.expire(time.Now)
	}
}

// await waits for events; not at all if something is to be done. While there is traffic it waits in a plain system call, of which the scheduler does not
// know: else the thread would lose its place in the scheduler each time, and had to get another one when it wakes.
func (w *worker) await(events []unix.EpollEvent) int {
	if len(w.again) > 0 || w.posted.Load() {
		return epollWait(w.epoll, events, 0)
	}
	if now := time.Now(); now.Sub(w.yielded) > yieldEvery {
		runtime.Gosched() // else the runtime sends a signal after 10 ms
		w.yielded = now
	}
	if n := epollWait(w.epoll, events, int(busyWait/time.Millisecond)); n > 0 {
		return n
	}
	patience := -1
	if len(w.lingering) > 0 {
		patience = 1000
	}
	n, err := unix.EpollWait(w.epoll, events, patience)
	if err != nil {
		return 0 // EINTR: nothing else can be
	}
	return n
}

func (w *worker) letters() {
	w.mu.Lock()
	box := w.box
	w.box = nil
	w.mu.Unlock()
	for _, m := range box {
		switch {
		case m.stop:
			w.stopped = true
		case m.add != nil:
			w.add(m.add)
		case !m.cut.over:
			w.abort(m.cut)
		}
	}
}

// add watches both sockets for good: what is told of them are edges, so that nothing has to be changed later.
func (w *worker) add(p *Pair) {
	w.pairs[p] = struct{}{}
	for _, e := range []*end{&p.client, &p.server} {
		for len(w.ends) <= e.fd {
			w.ends = append(w.ends, nil)
		}
		w.ends[e.fd] = e
	}
	for _, e := range []*end{&p.client, &p.server} {
		event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET&0xffffffff, Fd: int32(e.fd)}
		if unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, e.fd, &event) != nil {
			w.abort(p) // no memory
			return
		}
	}
}

// event takes note of what happened to a socket, and moves what can be moved.
func (w *worker) event(ev *unix.EpollEvent) {
	fd := int(ev.Fd)
	if fd == w.wake {
		var b [8]byte
		_, _ = unix.Read(w.wake, b[:])
		return
	}
	if fd >= len(w.ends) || w.ends[fd] == nil {
		return // closed by an earlier event
	}
	e := w.ends[fd]
	if ev.Events&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		e.readable = true
		e.closing = e.closing || ev.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
	}
	if len(e.waiting) > 0 && ev.Events&(unix.EPOLLOUT|unix.EPOLLHUP|unix.EPOLLERR) != 0 && !w.flush(e) {
		return
	}
	if e.readable {
		w.move(e)
	}
	if !e.pair.over && e.other.readable && len(e.waiting) == 0 {
		w.move(e.other) // it waited for e to take more
	}
}

// continued gives those their next turn that had more to read.
func (w *worker) continued() {
	list := w.again
	w.again = nil
	for _, e := range list {
		e.queued = false
		if !e.pair.over && e.readable {
			w.move(e)
		}
	}
	if w.again == nil {
		w.again = list[:0]
	}
}

// move carries what there is from a socket to the other, unless the other one takes nothing now.
func (w *worker) move(e *end) {
	to := e.other
	for range maxTurns {
		if !e.readable || len(to.waiting) > 0 {
			return
		}
		n, errno := read(e.fd, w.buffer[:])
		switch {
		case errno == unix.EAGAIN:
			e.readable = false
			return
		case errno == unix.EINTR:
			continue
		case errno != 0:
			w.abort(e.pair)
			return
		case n == 0:
			e.readable, e.ended = false, true
			w.finish(e.pair)
			return
		}
		if !w.give(to, w.buffer[:n]) {
			return
		}
		if n < bufferSize && !e.closing { // it is empty: the next edge will tell of more
			e.readable = false
			return
		}
	}
	if e.readable && !e.queued {
		e.queued = true
		w.again = append(w.again, e)
	}
}

// give writes to a socket, and keeps what it does not take. It is false if the pair is over.
func (w *worker) give(to *end, b []byte) bool {
	n, errno := write(to.fd, b)
	for errno == unix.EINTR {
		n, errno = write(to.fd, b)
	}
	if errno == unix.EAGAIN {
		n, errno = 0, 0
	}
	if errno != 0 {
		w.broken(to)
		return false
	}
	to.sent.Add(int64(n))
	if n < len(b) {
		if to.kept == nil {
			to.kept = w.take()
		}
		to.waiting = append(to.kept[:0], b[n:]...)
	}
	return true
}

// broken ends a pair one of whose sockets takes nothing any more. What that one still said, such as why it closes, reaches the other.
func (w *worker) broken(e *end) {
	for e.other.waiting == nil {
		n, errno := read(e.fd, w.buffer[:])
		if errno != 0 || n == 0 {
			break
		}
		if m, errno := write(e.other.fd, w.buffer[:n]); errno != 0 || m < n {
			break
		}
	}
	if !e.ended && e == &e.pair.server { // an orderly end, so that the client gets to read it
		w.close(e.pair, false)
		return
	}
	w.abort(e.pair)
}

// flush writes what waits. It is false if the pair is over.
func (w *worker) flush(e *end) bool {
	b := e.waiting
	n, errno := write(e.fd, b)
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		return true
	case errno != 0:
		w.broken(e)
		return false
	}
	e.sent.Add(int64(n))
	if e.waiting = b[n:]; len(e.waiting) > 0 {
		return true
	}
	w.release(e)
	if e.other.ended {
		w.finish(e.pair)
	}
	return !e.pair.over
}

// release puts the buffer of a socket back that took all.
func (w *worker) release(e *end) {
	e.waiting = nil
	if e.kept != nil && len(w.spare) < 64 {
		w.spare = append(w.spare, e.kept)
	}
	e.kept = nil
}

// take is a buffer for what waits.
func (w *worker) take() []byte {
	if n := len(w.spare); n > 0 {
		b := w.spare[n-1]
		w.spare = w.spare[:n-1]
		return b
	}
	return make([]byte, 0, bufferSize)
}

// finish tells each socket that the other has ended, and closes the pair if both have.
func (w *worker) finish(p *Pair) {
	for _, e := range []*end{&p.client, &p.server} {
		if o := e.other; e.ended && !o.shut && len(o.waiting) == 0 {
			o.shut = true
			_ = unix.Shutdown(o.fd, unix.SHUT_WR) // if it is broken, an event says so
		}
	}
	switch {
	case p.client.ended && p.server.ended && len(p.client.waiting) == 0:
		w.close(p, false)
	case p.server.ended && p.client.shut && p.linger.IsZero():
		// A server closes a session for good, and no answer comes to what its client may still say.
		p.linger = time.Now().Add(lingerTime)
		w.lingering = append(w.lingering, p)
	}
}

// expire closes clients that do not close.
func (w *worker) expire(now func() time.Time) {
	if len(w.lingering) == 0 {
		return
	}
	t := now()
	for len(w.lingering) > 0 && (w.lingering[0].over || !t.Before(w.lingering[0].linger)) {
		p := w.lingering[0]
		w.lingering[0], w.lingering = nil, w.lingering[1:]
		if !p.over {
			w.close(p, false)
		}
	}
}

// abort resets both connections.
func (w *worker) abort(p *Pair) { w.close(p, true) }

func (w *worker) close(p *Pair, reset bool) {
	if p.over {
		return
	}
	p.over = true
	delete(w.pairs, p)
	for _, e := range []*end{&p.client, &p.server} {
		w.ends[e.fd] = nil
		if reset {
			_ = unix.SetsockoptLinger(e.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
		}
		_ = unix.Close(e.fd)
		w.release(e)
	}
	p.done(p)
}
