package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/rissodb/risso/internal/digits"
)

// retry says how long and how often an operation is tried.
type retry struct {
	patience time.Duration // from the first failure in a row on
	notice   func(op string, err error, wait time.Duration)
}

// The pauses between tries: the first, doubled each time, up to the last. Half of each is random, so that many workers that
// were rejected together do not come back together.
const (
	firstPause = 200 * time.Millisecond
	lastPause  = 10 * time.Second
)

// do calls try until it succeeds, fails for good by what passes() says, ctx ends or patience does.
func (r retry) do(ctx context.Context, op string, passes func(error) bool, try func(context.Context) error) error {
	var since time.Time
	pause := firstPause
	for n := 1; ; n++ {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !passes(err) {
			return err
		}
		if since.IsZero() {
			since = time.Now()
		}
		wait := pause/2 + rand.N(pause/2)
		if time.Since(since)+wait > r.patience {
			if n == 1 {
				return err
			}
			return fmt.Errorf("%w (given up after %d tries in %s)", err, n, digits.Span(time.Since(since)))
		}
		if r.notice != nil {
			r.notice(op, err, wait)
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		case <-t.C:
		}
		pause = min(2*pause, lastPause)
	}
}

// networkPasses reports whether an error of a connection may be gone at the next try. What is wrong with names,
// certificates and addresses stays wrong.
func networkPasses(err error) bool {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return dns.IsTemporary || dns.IsTimeout
	case errors.Is(err, context.DeadlineExceeded): // of a single try
		return true
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
		return true
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNREFUSED),
		errors.Is(err, syscall.ECONNABORTED), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return true
	}
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// resuming reads on after a connection broke: it reopens the rest.
type resuming struct {
	ctx    context.Context
	retry  retry
	op     string
	passes func(error) bool
	// open returns the bytes from an offset on and how many they will be.
	open func(ctx context.Context, offset int64) (io.ReadCloser, int64, error)
	at   int64 // of the blob
	left int64

	mu     sync.Mutex
	body   io.ReadCloser
	closed bool
}

// newResuming opens the first piece, so that a missing blob is reported immediately.
func newResuming(ctx context.Context, r *resuming, offset int64) (*resuming, error) {
	r.ctx, r.at = ctx, offset
	err := r.retry.do(ctx, r.op, r.passes, func(ctx context.Context) (err error) {
		r.body, r.left, err = r.open(ctx, offset)
		return err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (r *resuming) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if r.left == 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > r.left {
		p = p[:r.left]
	}
	var n int
	err := r.retry.do(r.ctx, r.op, r.passes, func(ctx context.Context) error {
		body, err := r.current(ctx)
		if err != nil {
			return err
		}
		n, err = body.Read(p)
		if n > 0 {
			return nil // an error shows again at the next read
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF // there should be more
		}
		if err != nil {
			r.drop()
		}
		return err
	})
	r.at += int64(n)
	r.left -= int64(n)
	return n, err
}

// current is the open piece, or a new one.
func (r *resuming) current(ctx context.Context) (io.ReadCloser, error) {
	r.mu.Lock()
	body, closed := r.body, r.closed
	r.mu.Unlock()
	if closed {
		return nil, errors.New("read after close")
	}
	if body != nil {
		return body, nil
	}
	body, left, err := r.open(ctx, r.at)
	if err != nil {
		return nil, err
	}
	if left != r.left {
		body.Close()
		return nil, errors.New("the blob was replaced while it was being read")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		body.Close()
		return nil, errors.New("read after close")
	}
	r.body = body
	return body, nil
}

func (r *resuming) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.body != nil {
		r.body.Close()
		r.body = nil
	}
}

// Close may be called at any time, also while another goroutine reads.
func (r *resuming) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.body == nil {
		return nil
	}
	err := r.body.Close()
	r.body = nil
	return err
}

// idleConn is a connection that fails when nothing moves for a time: no call hangs on a peer that went away silently.
type idleConn struct {
	net.Conn
	idle time.Duration
}

func (c idleConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.idle)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

// Write also extends the reader's time: while much is sent, nothing need come.
func (c idleConn) Write(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.idle)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// dial makes such connections.
func dial(idle time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: min(idle, 30*time.Second), KeepAlive: 15 * time.Second}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return idleConn{Conn: c, idle: idle}, nil
	}
}
