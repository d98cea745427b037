package watch

import (
	"context"
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/mysql"
)

// then is what a job tells the screen; it runs in the screen's goroutine.
type then func(*ui)

// job is something to ask one server. It ends within its own limit of time.
type job func(ctx context.Context, c *mysql.Conn) (then, error)

// worker asks one server on a connection of its own, one job after the other.
type worker struct {
	target mysql.Target
	jobs   chan job
	done   chan<- then
}

// reconnectWait is how long a worker waits until it tries a server again.
const reconnectWait = time.Second

// run works until ctx ends. What panics here panics in the goroutine that gives the terminal back.
func (w *worker) run(ctx context.Context) {
	defer func() {
		if broken := recover(); broken != nil {
			w.tell(ctx, func(*ui) { panic(broken) })
		}
	}()
	var c *mysql.Conn
	defer func() {
		if c != nil {
			c.Close()
		}
	}()
	for {
		var do job
		select {
		case <-ctx.Done():
			return
		case do = <-w.jobs:
		}
		var err error
		if c == nil {
			c, err = w.connect(ctx)
		}
		var tell then
		if err == nil {
			tell, err = do(ctx, c)
		}
		if err != nil {
			if c != nil && mysql.Gone(err) || ctx.Err() != nil {
				c.Close()
				c = nil
			}
			at, what := time.Now(), err.Error()
			tell = func(u *ui) { u.failed(at, what) }
		}
		w.tell(ctx, tell)
	}
}

// connect waits a little after a failure, so that a server that is down is not asked all the time.
func (w *worker) connect(ctx context.Context) (*mysql.Conn, error) {
	dial, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	c, err := mysql.Connect(dial, w.target, nil)
	if err == nil {
		return c, nil
	}
	select {
	case <-time.After(reconnectWait):
	case <-ctx.Done():
	}
	return nil, fmt.Errorf("connect: %w", err)
}

func (w *worker) tell(ctx context.Context, t then) {
	select {
	case w.done <- t:
	case <-ctx.Done():
	}
}
