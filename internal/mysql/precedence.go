package mysql

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// precedence lets the connection that reads a server's numbers go before the other ones of this process, if a server or an account
// has no room for all of them. It is shared by those that share a Traffic; if none goes first, it delays none.
type precedence struct {
	mu      sync.Mutex
	first   bool          // somebody goes first
	closed  bool          // the one that goes first has no connection because there was no room, or did not try yet
	account string        // quoted, of the one that goes first; empty until it connected
	others  int           // connections that the others have, or are making
	change  chan struct{} // closed when something of this changes
}

// Connections of a server that risso serve holds: one for numbers, one for statements, one for sessions, one for the slow log. One more
// is superfluous to a reader.
const (
	ServeConnections  = 4
	enoughConnections = ServeConnections + 1
)

// MoreConnections is the statement that lets an account (quoted) have as many connections as risso serve needs. An account's own
// limit takes precedence over the global max_user_connections.
func MoreConnections(account string) string {
	return fmt.Sprintf("ALTER USER %s WITH MAX_USER_CONNECTIONS %d", account, enoughConnections)
}

func (p *precedence) changed() {
	if p.change != nil {
		close(p.change)
		p.change = nil
	}
}

func (p *precedence) awaited() <-chan struct{} {
	if p.change == nil {
		p.change = make(chan struct{})
	}
	return p.change
}

// GoesFirst announces a connection that takes precedence over all others; these wait until Settled.
func (t *Traffic) GoesFirst() {
	p := &t.precedence
	p.mu.Lock()
	defer p.mu.Unlock()
	p.first, p.closed = true, true
	p.changed()
}

// Settled returns the state of the one that goes first: account is its account, quoted, if it is connected; wants, that there was no room for it.
func (t *Traffic) Settled(account string, wants bool) {
	p := &t.precedence
	p.mu.Lock()
	defer p.mu.Unlock()
	if account != "" {
		p.account = account
	}
	p.closed = wants && p.first
	p.changed()
}

// MakeRoom makes the others give up their connections, and waits for that, until ctx ends. It says whether there were any.
func (t *Traffic) MakeRoom(ctx context.Context) bool {
	p := &t.precedence
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.others == 0 {
		return false
	}
	p.closed = true
	p.changed()
	for p.others > 0 {
		change := p.awaited()
		p.mu.Unlock()
		select {
		case <-change:
		case <-ctx.Done():
			p.mu.Lock()
			return true
		}
		p.mu.Lock()
	}
	return true
}

// Enter reports whether one of the others may connect; it has to call Leave when it has no connection any more.
func (t *Traffic) Enter() bool {
	p := &t.precedence
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.others++
	return true
}

// Leave is the end of what Enter began.
func (t *Traffic) Leave() {
	p := &t.precedence
	p.mu.Lock()
	defer p.mu.Unlock()
	p.others--
	p.changed()
}

// Turn waits until the others may connect, or ctx ends.
func (t *Traffic) Turn(ctx context.Context) {
	p := &t.precedence
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.closed {
		change := p.awaited()
		p.mu.Unlock()
		select {
		case <-change:
		case <-ctx.Done():
			p.mu.Lock()
			return
		}
		p.mu.Lock()
	}
}

// Rest waits for so long, or until ctx ends, or until the others have to give up their connections, which it tells.
func (t *Traffic) Rest(ctx context.Context, d time.Duration) (yield bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	p := &t.precedence
	for {
		p.mu.Lock()
		closed, change := p.closed, p.awaited()
		p.mu.Unlock()
		if closed {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return false
		case <-change:
		}
	}
}

// FirstAccount is the account, quoted, of the one that goes first, if it is connected; else empty.
func (t *Traffic) FirstAccount() string {
	p := &t.precedence
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ""
	}
	return p.account
}

// UserLimit is how many connections the account may have by its own limit or the global one; 0 if there is no limit.
// Source: MySQL manual, "max_user_connections": the session's value is the account's.
func (c *Conn) UserLimit(ctx context.Context) (int, error) {
	rows, err := c.Maps(ctx, "SELECT /* risso: how many connections may the account have? */ @@SESSION.max_user_connections AS most")
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	var n int
	if _, err := fmt.Sscan(rows[0]["most"], &n); err != nil {
		return 0, fmt.Errorf("read max_user_connections: %w", err)
	}
	return max(n, 0), nil
}
