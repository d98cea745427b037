// Package route is a router: connections of clients go where the view of a group says. It follows the view, cuts connections to a server that is no longer
// what they were made for, and holds new ones while there is none. It knows nothing of how a group fails over, and of MySQL's protocol only that a server
// speaks first, and how one refuses a client.
package route

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/route/splice"
	"github.com/rissodb/risso/internal/digits"
)

// Door is an address at which clients are taken.
type Door struct {
	Listener net.Listener // of TCP
	Rules
	Header Header // by which servers learn the addresses of clients
}

// Options say what a router does.
type Options struct {
	Group       string
	Controllers []Controller
	Doors       []Door
	Hold        time.Duration  // how long a client waits for a server at most
	MostHeld    int            // how many wait at once
	Connect     time.Duration  // how long a server may take to greet
	Drain       time.Duration  // how long connections may stay when the router ends
	Trusted     []netip.Prefix // load balancers in front, which begin with a PROXY header
	Threads     int            // that carry bytes; 0: one for each processor
	Say         func(text string)
}

// Defaults of Options.
const (
	DefaultHold     = 30 * time.Second
	DefaultMostHeld = 4000
	DefaultConnect  = 3 * time.Second
	DefaultDrain    = 10 * time.Second
)

const (
	setupsAtOnce = 64                    // connections to one server that are being made: more would overflow its backlog
	headerTime   = 5 * time.Second       // in which a balancer's header has to come
	refusalTime  = 2 * time.Second       // in which a client takes the packet that refuses it
	ourPause     = 50 * time.Millisecond // after a fault of this machine, such as too many open files
	// How long what was sent may stay unacknowledged, or the other side may take nothing, before the connection is broken. A server waits for a client for
	// net_write_timeout, which is 60 s by default, and takes nothing itself while what it reads waits for a lock, 50 s by default. One whose machine is gone is
	// found by keepalive while nothing is under way.
	stalls     = 2 * time.Minute
	spareFiles = 64 // descriptors for what else the process has open
)

// Router is a running router. Its state changes under mu only.
type Router struct {
	o       Options
	loop    *splice.Loop
	most    int // connections at once
	started time.Time

	mu       sync.Mutex
	newest   newest
	heard    []heard // of the controllers
	servers  map[string]*server
	changed  chan struct{} // closed when clients that wait should look again
	open     int           // clients, held ones included
	held     int
	ended    bool
	doors    []doorState
	setups   map[*setup]struct{}
	everyone sync.WaitGroup // goroutines
	words    chan string    // for Say, which may wait
}

// heard is how a controller last answered.
type heard struct {
	at    time.Time
	err   error
	older uint64 // the epoch of a view that was too old; 0: none
	asked bool
}

// doorState is what a door has seen.
type doorState struct {
	held, open                   int
	taken, waited, refused, gone uint64
}

// server is one that clients have or had connections to.
type server struct {
	name, address string
	conns         map[*conn]struct{}
	setups        int
	slots         chan struct{} // for setups
	down          bool
	problem       error
	total, cut    uint64
	failed        uint64
}

// conn is a client that has its server.
type conn struct {
	door   int
	server *server
	pair   *splice.Pair
	from   netip.AddrPort
	since  time.Time
}

// setup is a connection that is being made.
type setup struct {
	door   int
	server *server
	cancel context.CancelFunc
}

// New makes a router; Run starts it.
func New(o Options) (*Router, error) {
	if o.Threads == 0 {
		o.Threads = runtime.NumCPU()
	}
	loop, err := splice.New(o.Threads)
	if err != nil {
		return nil, err
	}
	return &Router{
		o: o, loop: loop, most: mostClients(), started: time.Now(), heard: make([]heard, len(o.Controllers)), servers: map[string]*server{},
		changed: make(chan struct{}), doors: make([]doorState, len(o.Doors)), setups: map[*setup]struct{}{},
		words: make(chan string, 256),
	}, nil
}

// mostClients is how many clients there may be: each takes two descriptors.
func mostClients() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 1000
	}
	return max((int(min(l.Cur, 1<<30))-spareFiles)/2, 1)
}

// Run takes clients until ctx ends, lets them end within Drain, and cuts what is left.
func (r *Router) Run(ctx context.Context) error {
	var speaking sync.WaitGroup
	speaking.Go(func() {
		for text := range r.words {
			r.o.Say(text)
		}
	})
	defer speaking.Wait()
	defer close(r.words)
	asking, stop := context.WithCancel(context.WithoutCancel(ctx)) // a failover while it drains is followed, too
	defer stop()
	for i, c := range r.o.Controllers {
		r.everyone.Go(func() { c.poll(asking, r.o.Group, func(t told) { r.hear(i, t) }) })
	}
	taking, refuse := context.WithCancel(ctx)
	defer refuse()
	for i := range r.o.Doors {
		r.everyone.Go(func() { r.take(taking, asking, i) })
	}
	<-ctx.Done()
	for _, d := range r.o.Doors {
		_ = d.Listener.Close()
	}
	r.drain()
	stop()
	r.everyone.Wait()
	return r.loop.Close()
}

// drain waits until no client is left, or time is up, and cuts the rest.
func (r *Router) drain() {
	r.mu.Lock()
	r.ended = true
	r.wake()
	n := r.open
	r.mu.Unlock()
	if n > 0 && r.o.Drain > 0 {
		r.say("no new clients; %s may end within %s", digits.Counted(n, "connection"), digits.Duration(r.o.Drain))
	}
	for end := time.Now().Add(r.o.Drain); n > 0 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		r.mu.Lock()
		n = r.open
		r.mu.Unlock()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := range r.setups {
		s.cancel()
	}
	for _, s := range r.servers {
		r.cutAll(s, func(*conn) bool { return true })
	}
}

// say tells what happened. Nobody waits for who reads it: what does not fit is lost.
func (r *Router) say(format string, args ...any) {
	select {
	case r.words <- fmt.Sprintf(format, args...):
	default:
	}
}

// wake lets the clients that wait look again. mu is held.
func (r *Router) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// hear takes what a controller told.
func (r *Router) hear(from int, t told) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, h := time.Now(), &r.heard[from]
	url := r.o.Controllers[from].URL
	was := r.newest.view
	changed, older := r.newest.hear(from, t, now)
	switch {
	case t.err != nil && (h.err == nil || !h.asked):
		if r.silentAll(from) && was != nil {
			r.say("%s: %v; no controller answers: what was last told, epoch %d, stays in force", url, t.err, was.Epoch)
		} else {
			r.say("%s: %v", url, t.err)
		}
	case t.err == nil && h.err != nil:
		r.say("%s answers again", url)
	}
	if older != nil && h.older != older.Epoch {
		r.say("%s tells epoch %d, which is older than %d: not followed", url, older.Epoch, was.Epoch)
	}
	h.asked, h.err, h.older = true, t.err, 0
	if older != nil {
		h.older = older.Epoch
	}
	if t.err == nil {
		h.at = now
	}
	if changed {
		r.follow(was)
	} else if t.err == nil && r.fit(now) {
		r.wake()
	}
}

// fit reports whether clients are held that may have a replica now, as the same view was seen anew: what it says of lags counts again. mu is held.
func (r *Router) fit(now time.Time) bool {
	for i, d := range r.o.Doors {
		if d.MaxLag > 0 && r.doors[i].held > 0 && d.choose(r.newest.view, r.newest.old(now), r.load).Server != nil {
			return true
		}
	}
	return false
}

// silentAll says that no controller but one answered when it was last asked.
func (r *Router) silentAll(but int) bool {
	for i, h := range r.heard {
		if i != but && h.asked && h.err == nil {
			return false
		}
	}
	return true
}

// follow does what a new view asks for: it cuts those that must not stay, gives up what is being made in vain, and wakes those that wait. mu is held.
func (r *Router) follow(was *group.View) {
	v := r.newest.view
	for s := range r.setups {
		if !r.o.Doors[s.door].keeps(v, s.server.address) {
			s.cancel()
		}
	}
	cut := 0
	for address, s := range r.servers {
		cut += r.cutAll(s, func(c *conn) bool { return !r.o.Doors[c.door].keeps(v, address) })
		if !r.known(address) && len(s.conns) == 0 && s.setups == 0 && !s.down {
			delete(r.servers, address)
		}
	}
	r.wake()
	switch {
	case was != nil && samePrimary(was, v):
		if cut > 0 {
			r.say("%s cut: their servers may have no reads now", digits.Counted(cut, "connection"))
		}
	case v.Primary != nil:
		r.say("the primary is %s (%s), epoch %d; %s cut, %s held", v.Primary.Name, v.Primary.Address, v.Epoch, digits.Counted(cut, "connection"), digits.Counted(r.held, "client"))
	default:
		r.say("no primary (epoch %d): %s; %s cut; new clients are held for %s", v.Epoch, cmp.Or(v.NoPrimary, "nobody says why"), digits.Counted(cut, "connection"), digits.Duration(r.o.Hold))
	}
}

// samePrimary says that nothing is new about the primary; why there is none is told in words that may change with each second.
func samePrimary(a, b *group.View) bool {
	return a.Epoch == b.Epoch && primaryAddress(a) == primaryAddress(b)
}

// cutAll cuts those connections of a server. mu is held.
func (r *Router) cutAll(s *server, which func(*conn) bool) (n int) {
	for c := range s.conns {
		if which(c) {
			c.pair.Cut()
			n++
		}
	}
	s.cut += uint64(n)
	return n
}

// of is the server of an address. mu is held.
func (r *Router) of(g *group.Server) *server {
	s := r.servers[g.Address]
	if s == nil {
		s = &server{address: g.Address, conns: map[*conn]struct{}{}, slots: make(chan struct{}, setupsAtOnce)}
		r.servers[g.Address] = s
	}
	s.name = g.Name
	return s
}

// load is what is known of a server. mu is held.
func (r *Router) load(address string) Load {
	s := r.servers[address]
	if s == nil {
		return Load{}
	}
	return Load{Open: len(s.conns) + s.setups, Down: s.down}
}

// choose says where a client of a door goes now, and what to wait for if nowhere. It counts the connection that is to be made.
func (r *Router) choose(door int, cancel context.CancelFunc) (s *setup, c Choice, changed <-chan struct{}, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c = r.o.Doors[door].choose(r.newest.view, r.newest.old(time.Now()), r.load)
	if c.Server != nil && !r.ended {
		s = &setup{door, r.of(c.Server), cancel}
		s.server.setups++
		r.setups[s] = struct{}{}
	}
	return s, c, r.changed, r.ended
}

// failed ends a setup in vain. If it was the server's fault, others leave it alone until it answers.
func (r *Router) failed(ctx context.Context, s *setup, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(s)
	if err == nil {
		return
	}
	s.server.problem = err
	s.server.failed++
	if !s.server.down {
		s.server.down = true
		r.say("%s (%s) does not answer: %v", s.server.name, s.server.address, err)
		r.everyone.Go(func() { r.probe(ctx, s.server) })
		r.wake()
	}
}

// forget removes a setup. mu is held.
func (r *Router) forget(s *setup) {
	s.server.setups--
	delete(r.setups, s)
}

// made hands both sockets to the loop, unless the view has changed meanwhile; then the server's is closed.
func (r *Router) made(s *setup, from netip.AddrPort, client, backend net.Conn) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(s)
	if !r.o.Doors[s.door].keeps(r.newest.view, s.server.address) {
		return false, backend.Close()
	}
	b, err := detach(backend)
	if err != nil {
		return false, err
	}
	a, err := detach(client)
	if err != nil {
		return false, errors.Join(errGone, err, unix.Close(b))
	}
	c := &conn{door: s.door, server: s.server, from: from, since: time.Now()}
	s.server.conns[c] = struct{}{}
	s.server.total++
	r.doors[s.door].open++
	c.pair = r.loop.Add(a, b, func(*splice.Pair) {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(s.server.conns, c)
		r.doors[s.door].open--
		r.open--
	})
	return true, nil
}

// probe waits until a server greets again, or its group has it no more.
func (r *Router) probe(ctx context.Context, s *server) {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		r.mu.Lock()
		known := r.known(s.address)
		if !known || ctx.Err() != nil {
			s.down, s.problem = false, nil
			if !known && len(s.conns) == 0 && s.setups == 0 {
				delete(r.servers, s.address)
			}
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		c, err := r.connect(ctx, s.address, nil)
		if err != nil {
			continue
		}
		_ = c.Close()
		r.mu.Lock()
		s.down, s.problem = false, nil
		r.say("%s (%s) answers again", s.name, s.address)
		r.wake()
		r.mu.Unlock()
		return
	}
}

// known says whether the view has a server. mu is held.
func (r *Router) known(address string) bool {
	v := r.newest.view
	return v != nil && (v.Primary != nil && v.Primary.Address == address ||
		slices.ContainsFunc(v.Replicas, func(s group.Server) bool { return s.Address == address }))
}
