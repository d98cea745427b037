package failover

import (
	"context"
	"strconv"
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

// prober looks at one member again and again, by one connection that it keeps.
type prober struct {
	name   string
	target mysql.Target
	tell   chan<- seen
	late   chan<- string // gets its name when an answer takes long
	poke   chan struct{}
	every  chan time.Duration

	still string    // what it had executed when that was last seen to change
	since time.Time // when
	asked time.Time // when it was last asked whether commits wait for room
	full  int       // what it said
}

// A server on which nothing is committed is asked whether commits wait for room on its disk.
const (
	stillFor = 2 * time.Second
	askFull  = time.Second
)

// run looks until ctx ends.
func (p *prober) run(ctx context.Context, every time.Duration) {
	var c *mysql.Conn
	defer func() {
		if c != nil {
			c.Close()
		}
	}()
	for ctx.Err() == nil {
		var s seen
		s, c = p.look(ctx, c)
		if ctx.Err() != nil {
			return // what was cut off says nothing of the member
		}
		select {
		case p.tell <- s:
		case <-ctx.Done():
			return
		}
		next := time.After(every - min(every, time.Since(s.at)))
	waiting:
		for {
			select {
			case <-ctx.Done():
				return
			case every = <-p.every:
				next = time.After(every - min(every, time.Since(s.at)))
			case <-p.poke:
				break waiting
			case <-next:
				break waiting
			}
		}
		if delay.For(ctx, everySuspect-min(everySuspect, time.Since(s.at))) != nil {
			return
		}
	}
}

// look looks once. A connection that broke is made anew at once: only that a new one fails, too, counts.
func (p *prober) look(ctx context.Context, c *mysql.Conn) (seen, *mysql.Conn) {
	s := seen{name: p.name, at: time.Now()}
	slow := time.AfterFunc(usual, func() {
		select {
		case p.late <- p.name:
		default:
		}
	})
	defer slow.Stop()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var err error
	if c != nil {
		if err = s.ask(ctx, c); err != nil {
			c.Close()
			c = nil
		}
	}
	if c == nil && ctx.Err() == nil && mysql.ClassOf(err) != mysql.ClassTimeout {
		if c, err = mysql.Connect(ctx, p.target.WithPatience(patience), nil); err == nil {
			if err = s.ask(ctx, c); err != nil {
				c.Close()
				c = nil
			}
		}
	}
	if err == nil {
		s.full = p.waits(ctx, c, &s)
		s.still = p.since
	}
	s.ended = time.Now()
	if err != nil {
		f := look.Failed(err)
		s.kind, s.text = f.Kind, f.Words()
	}
	return s, c
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
	if n, err := mysql.CommitsWaitForRoom(ctx, c); err == nil { // else it is not known: it is no reason for anything
		p.full = n
	}
	return p.full
}

// ask asks where a member stands.
func (s *seen) ask(ctx context.Context, c *mysql.Conn) error {
	rows, err := c.Maps(ctx, c.Server.StandingQuery())
	if err != nil {
		return err
	}
	for _, row := range rows {
		closed, _ := strconv.ParseBool(row["closed"])
		s.open, s.uuid, s.executed = !closed, row["uuid"], row["executed"]
	}
	s.channels, err = read.OuterChannels(ctx, c)
	return err
}
