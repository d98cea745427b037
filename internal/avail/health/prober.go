package health

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// How often a server is looked at, and how old what was seen may be: a server that hangs is so recognized within a second.
const (
	DefaultEvery  = 250 * time.Millisecond
	DefaultMaxAge = 900 * time.Millisecond
)

// Prober looks at one server again and again, over two connections. Its answers may be asked for from any goroutine.
type Prober struct {
	target  mysql.Target
	traffic *mysql.Traffic // of other sessions of this process to it; nil: there are none
	every   time.Duration
	maxAge  time.Duration
	tell    func(error) // takes why the server cannot be asked each time that changes; nil: it can be again

	seen     atomic.Pointer[Seen]
	channels atomic.Pointer[Channels]
	first    atomic.Int32  // looks that have ended, of the first two
	looked   chan struct{} // closed when both have
	sessions [2]atomic.Int64
}

// NewProber makes a prober; Run starts it. tell may be nil.
func NewProber(target mysql.Target, every, maxAge time.Duration, tell func(error)) *Prober {
	if tell == nil {
		tell = func(error) {}
	}
	p := &Prober{target: target, every: every, maxAge: maxAge, tell: tell, looked: make(chan struct{})}
	p.seen.Store(&Seen{})
	p.channels.Store(&Channels{})
	return p
}

// Judge answers a question now, without waiting for anything.
func (p *Prober) Judge(q Question, now time.Time) Answer {
	return Judge(q, p.Seen(), now, p.maxAge)
}

// Seen is what was seen last.
func (p *Prober) Seen() Seen {
	s := *p.seen.Load()
	s.Channels = *p.channels.Load()
	return s
}

// Sessions are the numbers of the prober's sessions on the server, 0 for one that is not connected.
func (p *Prober) Sessions() []int64 {
	return []int64{p.sessions[0].Load(), p.sessions[1].Load()}
}

// Looked is closed when a first look has ended, however it did.
func (p *Prober) Looked() <-chan struct{} { return p.looked }

// saw keeps what was seen, and sawChannels what was seen of replication.
func (p *Prober) saw(s *Seen) {
	if p.seen.Swap(s).Began.IsZero() {
		p.ended()
	}
}

func (p *Prober) sawChannels(c *Channels) {
	if p.channels.Swap(c).Began.IsZero() {
		p.ended()
	}
}

// ended counts a first look; there are two.
func (p *Prober) ended() {
	if p.first.Add(1) == 2 {
		close(p.looked)
	}
}

// Run looks until ctx ends.
func (p *Prober) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() {
		var reader *read.HealthReader
		p.loop(ctx, &p.sessions[0], p.tell, func(ctx context.Context, c *mysql.Conn, fresh bool, began time.Time) (err error) {
			seen := &Seen{Began: began}
			if fresh {
				reader, seen.Err = read.NewHealthReader(ctx, c)
			}
			if seen.Err == nil {
				seen.Health, seen.Err = reader.Read(ctx)
			}
			p.saw(seen)
			return seen.Err
		}, func(err error, began time.Time) { p.saw(&Seen{Began: began, Err: err}) })
	})
	wg.Go(func() {
		var denied bool
		var connected time.Time
		heard := hearing{}
		p.loop(ctx, &p.sessions[1], func(error) {}, func(ctx context.Context, c *mysql.Conn, fresh bool, began time.Time) (err error) {
			if fresh {
				connected = began
			}
			seen := &Channels{Began: began}
			seen.List, seen.Err = read.OuterChannels(ctx, c)
			if seen.Err == nil {
				seen.Heard = heard.look(seen.List, began)
			}
			p.sawChannels(seen)
			if mysql.ClassOf(seen.Err) == mysql.ClassPrivilege {
				if !denied {
					p.tell(seen.Err)
				}
				denied = true
				if began.Sub(connected) < deniedPause {
					return nil
				}
			}
			return seen.Err
		}, func(err error, began time.Time) { p.sawChannels(&Channels{Began: began, Err: err}) })
	})
	wg.Wait()
}

// hearing is what came over each channel by the last look, and when that was first seen.
type hearing map[string]heardOf

type heardOf struct {
	log, received string
	pos, beats    int64
	running       bool
	at            time.Time
}

// look notes what channels say now, and returns when something was last seen to have come over each. One that is seen first, or begins to run, is taken for
// heard: how long it was silent before, a MariaDB does not tell.
func (h hearing) look(list []read.ReplicaChannel, now time.Time) map[string]time.Time {
	out := map[string]time.Time{}
	for _, ch := range list {
		is := heardOf{ch.SourceLog, ch.Received, ch.SourcePos, ch.Beats, ch.IORunning, now}
		if was, ok := h[ch.Name]; ok {
			if is.at = was.at; is != was {
				is.at = now
			}
		}
		h[ch.Name] = is
		out[ch.Name] = is.at
	}
	return out
}

// deniedPause is how long a connection is kept that may not ask: what is granted to its account is seen by new ones only.
const deniedPause = 5 * time.Second

// patience is how long a look may take before another connection is tried: what it sees is too old before that, but a server that
// goes on may answer it still.
func (p *Prober) patience() time.Duration { return max(3*p.maxAge, 2*time.Second) }

// loop connects and looks, each time one of them fails over a new connection.
func (p *Prober) loop(ctx context.Context, session *atomic.Int64, tell func(error), look func(ctx context.Context, c *mysql.Conn, fresh bool, began time.Time) error, failed func(error, time.Time)) {
	var conn *mysql.Conn
	told := ""
	for ctx.Err() == nil {
		began := time.Now()
		err := p.once(ctx, &conn, began, look, failed)
		if session.Store(0); conn != nil {
			session.Store(conn.Server.ConnectionID)
		}
		if ctx.Err() != nil && (err == nil || errors.Is(err, ctx.Err())) { // what was seen before is told
			break
		}
		word := ""
		if err != nil {
			word = err.Error()
		}
		if word != told {
			tell(err)
			told = word
		}
		_ = delay.For(ctx, p.every-time.Since(began))
	}
	if conn != nil {
		_ = conn.Close()
	}
}

func (p *Prober) once(ctx context.Context, conn **mysql.Conn, began time.Time, look func(ctx context.Context, c *mysql.Conn, fresh bool, began time.Time) error, failed func(error, time.Time)) error {
	lctx, cancel := context.WithTimeout(ctx, p.patience())
	defer cancel()
	fresh := *conn == nil
	if fresh {
		c, err := mysql.Connect(lctx, p.target.WithPatience(p.patience()), p.traffic)
		if ctx.Err() != nil {
			if err == nil {
				_ = c.Close()
			}
			return ctx.Err()
		}
		if err != nil {
			failed(err, began)
			return err
		}
		*conn = c
	}
	err := look(lctx, *conn, fresh, began)
	if err != nil {
		_ = (*conn).Close()
		*conn = nil
	}
	return err
}
