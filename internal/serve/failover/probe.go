package failover

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/avail/topology/look"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// seen is one look at a member.
type seen struct {
	name     string
	at       time.Time // when it began
	ended    time.Time
	kind     string // why it did not answer, as topology.Failure has it; "": it did
	text     string
	open     bool   // it takes writes
	uuid     string // server_uuid, or server_id where there is none
	executed string
	channels []read.ReplicaChannel
	full     int       // commits that wait because its disk is full
	still    time.Time // since when it commits nothing
}

// How often members are looked at: the primary; those that replicate; those too while the primary is suspected.
const (
	everyPrimary = 250 * time.Millisecond
	everyMember  = time.Second
	everySuspect = 100 * time.Millisecond
	patience     = time.Second            // with one look
	usual        = 300 * time.Millisecond // most looks take less
)

// How long an answer is waited for, over as many looks as that takes. A question that is given up was work for nothing, and a new connection is more work than any question: of many servers
// that are busy, each look would begin what none of them brings to its end.
const (
	patienceKept  = 2 * time.Second        // by the connection that there is, which may be dead
	patienceFresh = 3 * time.Second        // by a new one
	patienceDial  = 900 * time.Millisecond // until a new one is there, of which only the kernel of the server's machine knows
)

// prober looks at one member again and again, by one connection that it keeps.
type prober struct {
	name   string
	target mysql.Target
	tell   chan<- seen
	late   chan<- string // gets its name when an answer takes long
	poke   chan struct{}
	every  chan time.Duration

	conn *mysql.Conn // nil: there is none

	still string    // what it had executed when that was last seen to change
	since time.Time // when
	asked time.Time // when it was last asked whether commits wait for room
	full  int       // what it said
	alone time.Time // when it was last seen to take writes and to replicate from nobody; zero: it did not when it was last asked
}

// A server on which nothing is committed is asked whether commits wait for room on its disk.
const (
	stillFor = 2 * time.Second
	askFull  = time.Second
)

// askAlone is how often a server that takes writes, and replicates from nobody, is asked whether it still replicates from nobody.
const askAlone = time.Second

// run looks until ctx ends.
func (p *prober) run(ctx context.Context, every time.Duration) {
	defer func() {
		if p.conn != nil {
			p.conn.Close()
		}
	}()
	for ctx.Err() == nil {
		began := time.Now()
		s := p.look(ctx)
		if ctx.Err() != nil {
			return // what was cut off says nothing of the member
		}
		p.says(ctx, s)
		next := time.After(every - min(every, time.Since(began)))
	waiting:
		for {
			select {
			case <-ctx.Done():
				return
			case every = <-p.every:
				next = time.After(every - min(every, time.Since(began)))
			case <-p.poke:
				break waiting
			case <-next:
				break waiting
			}
		}
		if left := everySuspect - time.Since(began); left > 0 && delay.For(ctx, left) != nil {
			return
		}
	}
}

// says tells what came of a look.
func (p *prober) says(ctx context.Context, s seen) {
	select {
	case p.tell <- s:
	case <-ctx.Done():
	}
}

// look asks by the connection that there is, else by a new one. While it waits for longer than a look may take it tells so. A connection that broke is made anew at once: only that a new one
// fails, too, counts.
func (p *prober) look(ctx context.Context) seen {
	h := p.hears(ctx)
	var s seen
	var err error
	if p.conn != nil {
		s, err = p.ask(ctx, patienceKept)
	}
	if p.conn == nil && ctx.Err() == nil && mysql.ClassOf(err) != mysql.ClassTimeout {
		s, err = p.ask(ctx, patienceFresh)
	}
	began := h.end()
	if s.ended = time.Now(); err != nil {
		return failed(seen{name: p.name, at: began, ended: s.ended}, err)
	}
	s.full = p.waits(ctx, p.conn, &s)
	s.still = p.since
	return s
}

// failed is a look that did not succeed.
func failed(s seen, err error) seen {
	f := look.Failed(err)
	s.kind, s.text = f.Kind, f.Words()
	return s
}

// ask asks where the member stands, by a new connection if there is none. One that fails is closed.
func (p *prober) ask(ctx context.Context, limit time.Duration) (s seen, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s = seen{name: p.name, at: time.Now()}
	if p.conn == nil {
		if p.conn, err = mysql.Connect(ctx, p.target.WithDial(patienceDial).WithPatience(limit), nil); err != nil {
			p.conn = nil
			return s, err
		}
	}
	if err = p.stands(ctx, p.conn, &s); err != nil {
		p.conn.Close()
		p.conn = nil
	}
	return s, err
}

// stalled is how late a timer is if this process stood still meanwhile, and knows of no member whether it would have answered.
const stalled = 500 * time.Millisecond

// hearing is the wait for an answer.
type hearing struct {
	mu    sync.Mutex // held while it tells
	began time.Time  // the look
	late  bool       // that was told
	over  bool
	due   time.Time // when the timer ends
	timer *time.Timer
}

// wait lets the timer end after a while from now.
func (h *hearing) wait(now time.Time, d time.Duration) {
	h.due = now.Add(d)
	h.timer.Reset(d)
}

// hears begins to wait: who looks is told when an answer takes long, and of each look in which none came.
func (p *prober) hears(ctx context.Context) *hearing {
	h := &hearing{began: time.Now()}
	h.due = h.began.Add(usual)
	h.mu.Lock() // until the timer is there
	defer h.mu.Unlock()
	h.timer = time.AfterFunc(usual, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		now := time.Now()
		switch {
		case h.over || ctx.Err() != nil:
		case now.Sub(h.due) > stalled:
			h.began = now
			h.wait(now, patience)
		case !h.late:
			h.late = true
			select {
			case p.late <- p.name:
			default:
			}
			h.wait(now, patience-now.Sub(h.began))
		default:
			p.says(ctx, failed(seen{name: p.name, at: h.began, ended: now}, context.DeadlineExceeded))
			h.began = now
			h.wait(now, patience)
		}
	})
	return h
}

// end ends it, and returns when the look began that is not told yet.
func (h *hearing) end() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	h.timer.Stop()
	if now := time.Now(); now.Sub(h.due) > stalled {
		return now
	}
	return h.began
}

// waits is how many commits wait for room on the disk of a server that takes writes.
func (p *prober) waits(ctx context.Context, c *mysql.Conn, s *seen) int {
	if p.still != s.executed || p.since.IsZero() || !s.open {
		p.still, p.since, p.full = s.executed, s.at, 0
	}
	if !s.open || s.at.Sub(p.since) < stillFor || s.at.Sub(p.asked) < askFull {
		return p.full
	}
	p.asked = s.at
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if n, err := mysql.CommitsWaitForRoom(ctx, c); err == nil { // else it is not known: it is no reason for anything
		p.full = n
	}
	return p.full
}

// stands asks where a member stands.
func (p *prober) stands(ctx context.Context, c *mysql.Conn, s *seen) error {
	rows, err := c.Maps(ctx, c.Server.StandingQuery())
	if err != nil {
		return err
	}
	for _, row := range rows {
		closed, _ := strconv.ParseBool(row["closed"])
		s.open, s.uuid, s.executed = !closed, row["uuid"], row["executed"]
	}
	if s.open && !p.alone.IsZero() && s.at.Sub(p.alone) < askAlone {
		return nil
	}
	p.alone = time.Time{}
	if s.channels, err = read.OuterChannels(ctx, c); err == nil && s.open && len(s.channels) == 0 {
		p.alone = s.at
	}
	return err
}
