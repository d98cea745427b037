package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/avail/fence"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/health"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/mysql"
)

// Options say what an agent looks after.
type Options struct {
	Target      mysql.Target
	Group       string
	Member      string   // name or address that the server has in the group
	Controllers []string // URLs of risso serve
	Token       string   // for the controllers, and shared with them: what the agent tells is signed with it
	TTL, Every  time.Duration
	Fence       string // when it fences: one of Fences
	Reopen      bool   // a confirmed primary that was started anew, and came up read-only, is opened
	Boot        bool   // a fenced server takes no writes after a restart either, where it can write that down
	State       string // folder of journals
	Transport   http.RoundTripper
	Tell        func(line string) // takes what happens, in words
}

// Agent looks after one server.
type Agent struct {
	o      Options
	prober *health.Prober
	eyes   eyes

	views  chan heard
	orders chan order
	done   chan outcome

	mu    sync.Mutex // holds what follows, which HTTP asks for
	lease *Lease
	state Standing
	hold  *fence.Result
	loan  *change.Loan[fence.State]
	wrong map[string]string // by controller: why it does not answer
	other string            // why the server is not the member that it is taken for; "": it is
	acted time.Time         // when the server was fenced or opened last
	life  int64             // since when the server ran when it was fenced, or seen to be closed, last; 0: not known
	fresh bool              // the server may have been started since it was last seen to take writes
	tries int               // acts in a row that failed
	last  string            // what was said of the last of them
	lost  bool              // the lock that the agent held is gone, and not by itself
	began time.Time
}

// introduction is how long views are not taken in that would have the agent act before its server has said who it is.
const introduction = 3 * time.Second

// outcome is what became of an act.
type outcome struct {
	did    Decision
	result *fence.Result
	err    error
}

// Standing is how an agent stands to its server.
type Standing struct {
	Epoch     uint64        `json:"epoch"`
	Primary   string        `json:"primary,omitempty"` // of the group, as it was heard
	Valid     bool          `json:"valid"`             // it is confirmed now that this server is it
	Deposed   bool          `json:"deposed,omitempty"` // another server is it, as was heard last
	Age       time.Duration `json:"age_ns,omitempty"`  // since it was asked for what confirmed it last
	Fenced    bool          `json:"fenced"`
	Proven    bool          `json:"proven,omitempty"` // that it takes no writes
	By        string        `json:"by,omitempty"`
	Because   string        `json:"because,omitempty"` // it was fenced
	Fence     string        `json:"fence"`             // when it fences
	Heard     int           `json:"heard"`             // controllers that answer
	Asked     int           `json:"asked"`             // of these
	LastError string        `json:"last_error,omitempty"`
}

// New makes an agent; Run starts it.
func New(o Options) *Agent {
	if o.TTL == 0 {
		o.TTL = DefaultTTL
	}
	if o.Every == 0 {
		o.Every = DefaultEvery
	}
	if o.Tell == nil {
		o.Tell = func(string) {}
	}
	a := &Agent{o: o, views: make(chan heard), orders: make(chan order), done: make(chan outcome, 1), wrong: map[string]string{}, lease: NewLease(o.Fence, o.TTL), fresh: true, began: time.Now()}
	a.eyes.target = o.Target
	a.prober = health.NewProber(o.Target, health.DefaultEvery, health.DefaultMaxAge, func(err error) {
		if err == nil {
			o.Tell(o.Target.Address() + " answers")
			return
		}
		o.Tell(err.Error())
	})
	return a
}

// me reports whether a server of a view is the agent's.
func (a *Agent) me(s group.Server) bool {
	return s.Name == a.o.Member || strings.EqualFold(s.Address, a.o.Member)
}

// kind is the journal of a fenced server: an agent that is started after this one was killed opens it again, or keeps it closed.
var kind = change.Kind[fence.State]{Name: "agent", Busy: errors.New("another risso agent looks after this server"), Within: fenceLimit, Back: fence.Back, Final: mysql.Answered, Stays: true}

// Run looks after the server until ctx ends. Then the server stays as it is: a lock that the agent holds on it goes with its session.
func (a *Agent) Run(ctx context.Context) error {
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer func() { cancel(); all.Wait(); a.leave() }()
	all.Go(func() { a.prober.Run(ctx) })
	all.Go(func() { a.eyes.run(ctx) })
	all.Go(func() { a.guard(ctx) })
	for _, c := range a.o.Controllers {
		all.Go(func() { a.askController(ctx, c, a.views) })
	}
	if err := a.inherit(ctx, &all); err != nil {
		return err
	}
	t := time.NewTicker(tick)
	defer t.Stop()
	busy, waits := false, []order(nil)
	for {
		select {
		case <-ctx.Done():
			return nil
		case h := <-a.views:
			a.hear(h)
		case o := <-a.orders:
			if err := a.ordered(o); err != nil {
				o.answer <- outcome{err: err}
			} else {
				waits = append(waits, o)
			}
		case out := <-a.done:
			busy = false
			a.did(out)
			if out.did.Act == Close {
				waits = slices.DeleteFunc(waits, func(o order) bool {
					if answered := out.did.Epoch >= o.Epoch; !answered { // it was begun before the order came
						return false
					}
					o.answer <- out
					return true
				})
			}
		case <-t.C:
		}
		if busy {
			continue
		}
		d, ends := a.decide(len(waits) > 0)
		switch d.Act {
		case Close:
			busy = true
			all.Go(func() { a.close(ctx, d) })
		case Open:
			busy = true
			all.Go(func() { a.open(ctx, d, time.Duration(ends-now())) })
		}
	}
}

// decide says what is to be done, and when the lease ends. An order is carried out also where nothing seems left to be done: the controller wants to know how it is now.
func (a *Agent) decide(ordered bool) (d Decision, ends Moment) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.claims()
	if a.prober.Seen().Began.Before(a.acted) { // it was looked at before it was fenced
		c = ClaimsUnknown
	}
	if c != ClaimsNo {
		a.fresh = c == ClaimsUnknown
	}
	restarted := a.restarted(c)
	if a.other != "" {
		return Decision{Act: Stay}, a.lease.Ends()
	}
	d = a.lease.Decide(now(), c, restarted)
	switch f := a.lease.fenced; {
	case ordered:
		d = Decision{Act: Close, Epoch: a.lease.epoch, Because: "a controller orders it", Ordered: true}
	case d.Act == Stay && f == nil && a.o.Reopen && a.fresh && a.closedPrimary(c):
		d = Decision{Act: Open, Epoch: a.lease.epoch, Because: fmt.Sprintf("it was started anew, and is confirmed as the primary of epoch %d", a.lease.epoch)}
	case d.Act == Stay && a.lost && f != nil && !a.lease.Deposed():
		d = Decision{Act: Close, Epoch: f.Epoch, Unheard: f.Unheard, Because: "the session that held its lock is gone"}
	}
	return d, a.lease.Ends()
}

// restarted reports whether a server that was fenced was started anew since, and not seen to be closed in that life: who opens one that came up closed may be a controller that promotes it.
func (a *Agent) restarted(c Claims) bool {
	life, asked := a.eyes.life()
	if a.lease.fenced == nil || life == 0 || sameStart(life, a.life) {
		return false
	}
	s := a.prober.Seen()
	if c == ClaimsNo && s.Err == nil && s.Began.After(asked) && (s.Health.ReadOnly || len(s.Channels.List) > 0 && s.Channels.Began.After(asked)) {
		a.lives(life)
		return false
	}
	return a.life != 0
}

// lives notes in which life of the server it is closed, for an agent that is started later, too.
func (a *Agent) lives(since int64) {
	a.life = since
	if a.loan != nil && since != 0 && !sameStart(since, a.loan.Started()) {
		if err := a.loan.Restarted(since); err != nil {
			a.o.Tell(err.Error())
		}
	}
}

// closedPrimary reports whether the server is confirmed as the primary, replicates from none, and is read-only.
func (a *Agent) closedPrimary(c Claims) bool {
	s := a.prober.Seen()
	return c == ClaimsNo && a.lease.Valid(now()) && s.Health.ReadOnly && !s.Channels.Began.IsZero() && s.Channels.Err == nil && len(s.Channels.List) == 0
}

// claims is what the last look at the server says.
func (a *Agent) claims() Claims {
	s := a.prober.Seen()
	switch {
	case s.Began.IsZero() || s.Err != nil || time.Since(s.Began) > 2*health.DefaultMaxAge:
		return ClaimsUnknown
	case s.Health.ReadOnly:
		return ClaimsNo
	case s.Channels.Began.IsZero() || s.Channels.Err != nil:
		return ClaimsUnknown
	case len(s.Channels.List) > 0:
		return ClaimsNo
	}
	return ClaimsYes
}

// hear takes an answer, or that there is none.
func (a *Agent) hear(h heard) {
	a.mu.Lock()
	defer a.mu.Unlock()
	word := ""
	if h.err != nil {
		word = h.err.Error()
	}
	if was, told := a.wrong[h.from]; !told || was != word {
		if a.wrong[h.from] = word; word == "" {
			a.o.Tell(h.from + " answers")
		} else {
			a.o.Tell(h.from + " does not answer: " + word)
		}
	}
	if errors.Is(h.err, errNoGroup) {
		a.lease.Absent(h.sent)
	}
	if h.err != nil {
		a.state.LastError = h.from + ": " + word
		return
	}
	who := a.eyes.who()
	if who == "" && time.Since(a.began) < introduction {
		return
	}
	if why := mistaken(h.view, a.me, who); why != a.other {
		if a.other = why; why != "" {
			a.o.Tell(fmt.Sprintf("%s: %s: it is not fenced, and not confirmed: give the right --member", a.o.Target.Address(), why))
		}
	}
	if a.other != "" {
		return
	}
	a.lease.Hear(h.sent, h.age, h.view, a.me)
	a.raise()
	if a.lease.Deposed() && a.hold != nil { // now a controller looks after it: it must be able to replicate. read_only stays
		a.hold.Release()
		a.hold = nil
	}
}

// mistaken says why a server is not the member of a view that me means; "": it is, or nobody knows. Who has the agent fence another server than the one that it stands beside
// would lose a healthy primary.
func mistaken(v group.View, me func(s group.Server) bool, who string) string {
	list := v.Replicas
	if v.Primary != nil {
		list = append([]group.Server{*v.Primary}, list...)
	}
	for _, s := range list {
		switch mine := strings.EqualFold(s.ID, who); {
		case s.ID == "" || who == "":
		case me(s) && !mine:
			return fmt.Sprintf("%s of %s is another server (%s, and this one is %s)", s.Name, v.Group, s.ID, who)
		case mine && !me(s):
			return fmt.Sprintf("it is %s of %s", s.Name, v.Group)
		}
	}
	return ""
}

// raise keeps that another is the primary of a newer epoch.
func (a *Agent) raise() {
	if s, raised := a.lease.Raise(); raised && a.loan != nil {
		if err := a.loan.Note(s); err != nil {
			a.o.Tell(err.Error())
		}
	}
}

// inherit waits, for a while, to learn what an agent before this one did: one that fenced the server and was killed. A server that does not answer is asked on.
func (a *Agent) inherit(ctx context.Context, all *sync.WaitGroup) error {
	take := func(limit time.Duration) (known bool, err error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		c, err := mysql.Connect(ctx, a.o.Target.WithPatience(limit), nil)
		if err != nil {
			return false, nil // the prober tells why
		}
		defer func() { _ = c.Close() }()
		return true, a.take(c.Server)
	}
	known, err := take(a.o.TTL / 2)
	if known || err != nil {
		return err
	}
	all.Go(func() {
		for delay.For(ctx, a.o.Every) == nil {
			if known, err := take(a.o.TTL); known {
				if err != nil {
					a.o.Tell(err.Error())
				}
				return
			}
		}
	})
	return nil
}

// take takes over the journal of an agent before this one.
func (a *Agent) take(s mysql.Server) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.loan != nil {
		return nil
	}
	loan, err := kind.Take(a.o.State, a.o.Target, s)
	if err != nil || loan == nil {
		return err
	}
	a.loan, a.life = loan, loan.Started()
	a.lease.Fenced(loan.Old())
	a.state.Because = "an agent before this one fenced it at " + loan.Since().Format(time.DateTime)
	a.o.Tell("an agent before this one fenced " + a.o.Target.Address() + ": " + loan.Path())
	return nil
}

// note keeps what was there before the first change.
func (a *Agent) note(s mysql.Server, was fence.State) error {
	if err := a.take(s); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.loan != nil { // it is fenced again: what was there first counts
		return nil
	}
	life, _ := a.eyes.life()
	loan, err := kind.Borrow(a.o.State, a.o.Target, s, life, was)
	if err == nil {
		a.loan = loan
	}
	return err
}

// close fences the server, unless a controller has closed it just now, as in a switchover: that is at work there over sessions that must not be ended.
func (a *Agent) close(ctx context.Context, d Decision) {
	a.mu.Lock()
	ours := a.lease.fenced != nil // then it may be that only the lock is gone
	a.mu.Unlock()
	o := fence.Options{Epoch: d.Epoch, Unheard: d.Unheard, Limit: fenceLimit, Hold: true, Boot: a.o.Boot, OnlyOpen: !d.Ordered && !ours, Keep: append(a.prober.Sessions(), a.eyes.session())}
	o.Note = func(s mysql.Server, was fence.State) error {
		a.begins("fence", d)
		return a.note(s, was)
	}
	r, err := fence.Fence(ctx, a.o.Target, o)
	if err == nil && r.Skipped {
		a.done <- outcome{did: Decision{Act: Stay}}
		return
	}
	a.done <- outcome{d, r, a.pause(ctx, err, r)}
}

// open undoes that, as long as it is confirmed.
func (a *Agent) open(ctx context.Context, d Decision, within time.Duration) {
	within = min(within, fenceLimit)
	a.mu.Lock()
	fenced := a.lease.fenced
	if a.hold != nil {
		a.hold.Release()
		a.hold = nil
	}
	a.mu.Unlock()
	var err error
	if fenced != nil {
		a.begins("open", d)
		err = fence.Undo(ctx, a.o.Target, *fenced, d.Epoch, within)
	} else {
		err = a.reopen(ctx, d, within)
	}
	a.done <- outcome{did: d, err: a.pause(ctx, err, nil)}
}

// reopen opens a primary that came up read-only, and leaves alone one that somebody closed since it was started.
func (a *Agent) reopen(ctx context.Context, d Decision, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	c, err := mysql.Connect(ctx, a.o.Target.WithPatience(within), nil)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	is, err := fence.CameUp(ctx, c)
	if err == nil && is {
		a.begins("open", d)
		if err = fence.Back(ctx, c, fence.AsPrimary(c.Server)); err == nil {
			a.o.Tell(a.o.Target.Address() + " takes writes")
		}
	}
	if err == nil || mysql.Answered(err) { // it is asked once in each life of the server
		a.mu.Lock()
		a.fresh = false
		a.mu.Unlock()
	}
	return err
}

// begins says what is being done, once for attempts that fail in a row.
func (a *Agent) begins(what string, d Decision) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tries == 0 {
		a.o.Tell(fmt.Sprintf("%s %s: %s", what, a.o.Target.Address(), d.Because))
	}
}

// longestPause is how long it waits between attempts that fail at once, as for want of a privilege.
const longestPause = 500 * time.Millisecond

// pause counts attempts that failed, and waits before the next one: hardly before the second.
func (a *Agent) pause(ctx context.Context, err error, r *fence.Result) error {
	a.mu.Lock()
	wait := min(tick<<min(a.tries, 10), longestPause)
	if a.tries++; err == nil && (r == nil || closed(r)) {
		a.tries, wait, a.last = 0, 0, ""
	}
	a.mu.Unlock()
	_ = delay.For(ctx, wait)
	return err
}

// told says what came of an attempt, if it is not what came of the one before.
func (a *Agent) told(words string) {
	if words != a.last {
		a.o.Tell(words)
	}
	a.last = words
}

// did takes what became of an act.
func (a *Agent) did(out outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if out.did.Act == Stay { // somebody else had closed it
		a.lease.Closed()
		return
	}
	a.acted = time.Now()
	if out.err != nil {
		a.state.By = "not proven: " + out.err.Error()
		a.told(fmt.Sprintf("%s, since %s: %v", out.did.Act, out.did.Because, out.err))
		return
	}
	if out.did.Act == Open && a.lease.fenced == nil {
		return
	}
	if out.did.Act == Open {
		a.lease.Opened()
		a.state.Proven, a.state.By, a.state.Because = false, "", ""
		if a.loan != nil {
			if err := a.loan.Done(); err != nil {
				a.o.Tell(err.Error())
			}
			a.loan = nil
		}
		a.o.Tell(a.o.Target.Address() + " takes writes")
		return
	}
	r := out.result
	if r.Proven {
		a.o.Tell(r.Words())
	} else {
		a.told(r.By)
	}
	a.state.Proven, a.state.By, a.state.Because = r.Proven, r.By, out.did.Because
	if a.hold != nil {
		a.hold.Release()
	}
	a.hold, a.lost = r, false
	if closed(r) {
		life, _ := a.eyes.life()
		a.lives(life)
		first := a.lease.Fenced(r.State)
		if a.loan != nil && (a.loan.Old().Epoch != first.Epoch || a.loan.Old().Unheard != first.Unheard) {
			if err := a.loan.Note(first); err != nil {
				a.o.Tell(err.Error())
			}
		}
		a.raise()
	}
}

// closed reports whether a server is read-only, at least: a further attempt would end the same sessions of those whom read_only does not hold for, again and again.
func closed(r *fence.Result) bool { return r.Proven || r.Closed }

// guard makes sure that the lock is still held, and keeps its session from being idle for too long.
func (a *Agent) guard(ctx context.Context) {
	for delay.For(ctx, time.Second) == nil {
		var held *fence.Result
		a.mu.Lock()
		if a.hold != nil && a.hold.Holds() {
			held = a.hold
		}
		a.mu.Unlock()
		if held == nil {
			continue
		}
		short, cancel := context.WithTimeout(ctx, fenceLimit)
		lost := !held.Holding(short)
		cancel()
		a.mu.Lock()
		if a.hold == held && lost && ctx.Err() == nil { // nobody released it
			a.lost = true
		}
		a.mu.Unlock()
	}
}

// leave releases what the agent has when it ends: the server stays as it is.
func (a *Agent) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hold != nil && a.hold.Holds() {
		writers := a.hold.Writers
		a.hold.Release()
		a.o.Tell("released the lock of " + a.o.Target.Address() + ", which stays read-only; accounts for which that does not hold can write: " + strings.Join(writers, ", "))
	}
	if a.loan != nil {
		a.loan.Leave()
	}
}

// Standing is how the agent stands to its server now.
func (a *Agent) Standing() Standing {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, n := a.state, now()
	l := a.lease
	s.Epoch, s.Primary, s.Valid, s.Deposed, s.Fenced, s.Fence = l.epoch, l.primary, l.Valid(n), l.Deposed(), l.fenced != nil, a.o.Fence
	if l.confirmed {
		s.Age = time.Duration(n - l.renewed)
	}
	s.Asked = len(a.o.Controllers)
	for _, why := range a.wrong {
		if why == "" {
			s.Heard++
		}
	}
	if s.Heard > 0 {
		s.LastError = a.other
	}
	return s
}
