// Package throttle answers one question: may I put load on this server now? Code that reads or writes much passes a Gate with
// every piece of work, and waits there while replicas lag, the server is busy, or it was faster than allowed.
package throttle

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Limits are what a server can take. A zero value is no limit.
type Limits struct {
	MaxLag            time.Duration // of any replica, and of the server itself where it is one
	MaxThreadsRunning int           // Threads_running of the server, without Risso's own
	MaxRate           int64         // bytes a second that pass the gate
	// Own is how many sessions of Risso's work there, to be left out of Threads_running.
	Own int
	// Every is how often the servers are asked; 0: a second.
	Every time.Duration
}

// Gate lets work pass. Its methods may be called from several goroutines.
type Gate struct {
	limits Limits
	stop   context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	reasons map[string]string // why it is closed, by the name of the source
	changed chan struct{}     // closed and replaced when reasons change
	next    time.Time         // when the next bytes may pass
	held    time.Duration

	now   func() time.Time
	sleep func(context.Context, time.Duration) error
}

// New returns a gate that looks at a server and at its replicas until Close. Without limits it asks no server. It fails if a
// server cannot be asked.
func New(ctx context.Context, limits Limits, server mysql.Target, replicas ...mysql.Target) (*Gate, error) {
	return newGate(ctx, limits, connect, append([]mysql.Target{server}, replicas...))
}

// session is what a server is asked through.
type session interface {
	Lag(ctx context.Context) (lag time.Duration, lags bool, err error)
	Maps(ctx context.Context, statement string) ([]map[string]string, error)
	Close() error
}

// server is a session of a real one.
type server struct{ *mysql.Conn }

func (s server) Lag(ctx context.Context) (time.Duration, bool, error) { return read.Lag(ctx, s.Conn) }

func connect(ctx context.Context, t mysql.Target) (session, error) {
	c, err := mysql.Connect(ctx, t, nil)
	return server{c}, err
}

// newGate is New; the first of the servers is the one under load.
func newGate(ctx context.Context, limits Limits, connect func(context.Context, mysql.Target) (session, error), servers []mysql.Target) (*Gate, error) {
	g := &Gate{limits: limits, reasons: map[string]string{}, changed: make(chan struct{}), now: time.Now, sleep: delay.For}
	ctx, g.stop = context.WithCancel(ctx)
	if limits.MaxLag <= 0 && limits.MaxThreadsRunning <= 0 {
		return g, nil
	}
	if g.limits.Every <= 0 {
		g.limits.Every = time.Second
	}
	if limits.MaxLag <= 0 {
		servers = servers[:1]
	}
	for i, t := range servers {
		s := &asker{connect: func(ctx context.Context) (session, error) { return connect(ctx, t) }, limits: g.limits, main: i == 0}
		if err := g.watch(ctx, t.Address(), s.ask, s.close); err != nil {
			g.Close()
			return nil, err
		}
	}
	return g, nil
}

// Close ends the looking. Who waits at the gate passes.
func (g *Gate) Close() {
	g.stop()
	g.done.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.reasons)
	close(g.changed)
	g.changed = make(chan struct{})
}

// Pass waits until n more bytes may be worked on.
func (g *Gate) Pass(ctx context.Context, n int64) error {
	if g == nil {
		return nil
	}
	start := g.now()
	waited := false
	for {
		g.mu.Lock()
		if len(g.reasons) == 0 {
			break
		}
		changed := g.changed
		g.mu.Unlock()
		waited = true
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
	now := g.now()
	var pause time.Duration
	if g.limits.MaxRate > 0 {
		if g.next.Before(now) {
			g.next = now
		}
		pause = g.next.Sub(now)
		g.next = g.next.Add(time.Duration(min(float64(n)/float64(g.limits.MaxRate), longest) * float64(time.Second)))
	}
	if waited || pause > 0 {
		g.held += now.Sub(start) + pause
	}
	g.mu.Unlock()
	if pause <= 0 {
		return context.Cause(ctx)
	}
	return g.sleep(ctx, pause)
}

// longest is how many seconds one piece of work may take of the rate: more is no time.Duration.
const longest = 1e9

// Held is how long callers have waited in all, and why somebody would wait now, or "".
func (g *Gate) Held() (time.Duration, string) {
	if g == nil {
		return 0, ""
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.reasons {
		return g.held, r
	}
	return g.held, ""
}

// set says why the gate is closed; "" opens it as far as this source is concerned.
func (g *Gate) set(who, reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reasons[who] == reason {
		return
	}
	if g.reasons[who] = reason; reason == "" {
		delete(g.reasons, who)
	}
	close(g.changed)
	g.changed = make(chan struct{})
}

// watch asks a server for its figures now, and again and again until ctx ends; end is called after the last time, and if a
// server could not be asked. The error is that of the first time.
func (g *Gate) watch(ctx context.Context, address string, ask func(context.Context) (figures, error), end func()) error {
	look := func() error {
		f, err := ask(ctx)
		if err != nil {
			end()
			return err
		}
		g.set(address, g.limits.reason(address, f))
		return nil
	}
	if err := look(); err != nil {
		return err
	}
	g.done.Go(func() {
		defer end()
		t := time.NewTicker(g.limits.Every)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
			if err := look(); err != nil && ctx.Err() == nil {
				g.set(address, "it cannot be queried: "+err.Error())
			}
		}
	})
	return nil
}

// asker asks one server.
type asker struct {
	connect func(context.Context) (session, error)
	limits  Limits
	main    bool
	conn    session // nil: none
}

func (a *asker) close() {
	if a.conn != nil {
		a.conn.Close()
		a.conn = nil
	}
}

func (a *asker) ask(ctx context.Context) (f figures, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if a.conn == nil {
		conn, err := a.connect(ctx)
		if err != nil {
			return f, err
		}
		a.conn = conn
	}
	if a.limits.MaxLag > 0 {
		if f.lag, f.lags, err = a.conn.Lag(ctx); err != nil {
			return f, err
		}
	}
	if a.limits.MaxThreadsRunning > 0 && a.main {
		rows, err := a.conn.Maps(ctx, "SHOW /* risso: is the server busy? */ GLOBAL STATUS LIKE 'Threads_running'")
		if err != nil {
			return f, err
		}
		if len(rows) > 0 {
			f.running, _ = strconv.Atoi(rows[0]["Value"])
		}
	}
	return f, nil
}

// figures are what a server says about itself.
type figures struct {
	lag     time.Duration // below 0: it does not replicate
	lags    bool          // it is a replica
	running int           // Threads_running; 0: not asked
}

// reason says why a server can take no load now; "": it can.
func (l Limits) reason(address string, f figures) string {
	n := f.running - 1 - l.Own // Risso asks in a separate session
	switch {
	case l.MaxThreadsRunning > 0 && n > l.MaxThreadsRunning:
		return fmt.Sprintf("%s runs %s at once", address, digits.Counted(n, "statement"))
	case l.MaxLag > 0 && f.lags && f.lag < 0:
		return address + " does not replicate"
	case l.MaxLag > 0 && f.lags && f.lag > l.MaxLag:
		return fmt.Sprintf("%s is %s behind", address, f.lag)
	}
	return ""
}
