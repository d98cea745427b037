// Package carry replaces the primary of a group: planned, while the old one hands over, or after it died. Each step is in a journal that all controllers agree on
// before it is done, so that whoever finds one that was cut off can bring it to its end, or take it back. Nobody acts without the group's lease.
package carry

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/publish"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/avail/topology/look"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
)

// Errors that say what became of it.
var (
	ErrRefused  = errors.New("it cannot be done")
	ErrSurprise = errors.New("it did not go as planned")
	ErrLost     = errors.New("the lease was lost: another process changes the group")

	// ErrUnwritten says that how far it has come could not be written down, or perhaps was: the change is left as it is, for whoever has the lease next.
	ErrUnwritten = errors.New("how far it has come could not be written down: risso serve goes on with it, or risso failover resume")
)

// Limits are how long things may take.
type Limits struct {
	Look  time.Duration // one server's answer
	Stop  time.Duration // to stop receiving, to shut out writes
	Drain time.Duration // to apply what was received
	Point time.Duration // to let another member follow
	Lease time.Duration
}

// DefaultLimits are for servers that are near.
func DefaultLimits() Limits {
	return Limits{Look: 2 * time.Second, Stop: 5 * time.Second, Drain: time.Minute, Point: 30 * time.Second, Lease: 30 * time.Second}
}

// Carrier does it.
type Carrier struct {
	Room   *keep.Room
	Holder string // of leases: no other process has that name
	Limits Limits
	Say    func(string) // is told what goes on; may be nil
	// Published is called when clients are to go elsewhere, before the rest is done; may be nil.
	Published func(*group.Group)
	// Hooks run when something happens; nil: there are none.
	Hooks *publish.Hooks
	// Lead says whether this process acts, of several controllers; nil: it is no controller.
	Lead Lead
	// Sight is of the group's lease, by who watches it; nil: a lease that somebody has is looked at for as long as it takes to know whether its holder lives.
	Sight *group.Sight

	// Hurry is closed when the members are not to be looked at any longer, as something has to be done; nil: never. A change that has begun goes on.
	Hurry <-chan struct{}

	// Opened is when the primary was last seen to take writes, by who watches it: some servers do not tell whether they came up read-only; zero: it was not seen.
	Opened time.Time

	// Contents reads from a member's binary logs what lost transactions changed; nil: nobody does.
	Contents func(ctx context.Context, member string, t mysql.Target, which mysql.Errant) *failover.Contents

	step func(where, statement string) // is called before each statement, by tests that end the process there; may be nil
}

// Lead says whether a controller acts.
type Lead interface {
	// Epoch grows with each leadership; 0: this controller does not lead.
	Epoch() uint64
	// Verify returns nil if it is confirmed now that it leads.
	Verify(ctx context.Context) error
	// Sole reports whether it is the only controller: nobody else may act in its place, whatever ends what it does.
	Sole() bool
}

// NewHolder is a name that no other process has.
func NewHolder(what string) string {
	var b [6]byte
	rand.Read(b[:])
	host, _ := os.Hostname()
	return fmt.Sprintf("%s@%s/%d/%s", what, host, os.Getpid(), hex.EncodeToString(b[:]))
}

// HolderWords says which process a holder is.
func HolderWords(holder string) string {
	what, at, ok := strings.Cut(holder, "@")
	if holder == "" {
		return "another process"
	}
	parts := strings.Split(at, "/")
	if !ok || len(parts) != 3 {
		return holder
	}
	switch what {
	case "serve":
		what = "risso serve"
	case "risso":
		what = "a risso command"
	}
	return what + " (process " + parts[1] + " on " + parts[0] + ")"
}

func (c *Carrier) say(format string, args ...any) {
	if c.Say != nil {
		c.Say(fmt.Sprintf(format, args...))
	}
}

// targets are how the members are reached.
func (c *Carrier) targets(ctx context.Context, g *group.Group) (map[string]mysql.Target, keep.Access, error) {
	a, err := c.Room.Access(ctx, g.Name)
	if err != nil {
		return nil, a, err
	}
	out := map[string]mysql.Target{}
	for _, m := range g.Members {
		t, err := a.Target(m.Name)
		if err != nil {
			return nil, a, err
		}
		out[m.Name] = t
	}
	return out, a, nil
}

// Look asks the members of a group, but for those that are left out, where they stand.
func (c *Carrier) Look(ctx context.Context, g *group.Group, without ...string) (*topology.Topology, error) {
	targets, _, err := c.targets(ctx, g)
	if err != nil {
		return nil, err
	}
	return lookAt(ctx, g, targets, c.Limits.Look, without...)
}

// lookAt looks so. A look that was cut off says nothing of the members: its error is that of ctx, and what was seen until then is returned, too.
func lookAt(ctx context.Context, g *group.Group, targets map[string]mysql.Target, patience time.Duration, without ...string) (*topology.Topology, error) {
	var list []mysql.Target
	var starts []topology.Start
	skip := map[string]bool{}
	for _, name := range without {
		skip[name] = true
	}
	for _, m := range g.Members {
		if t := targets[m.Name]; !skip[m.Name] {
			list = append(list, t)
			starts = append(starts, topology.Start{Name: m.Name, Address: t.Address()})
		}
	}
	if len(list) == 0 {
		return &topology.Topology{Time: time.Now()}, ctx.Err()
	}
	s := look.Search(list)
	s.Patience, s.Alone = patience, true
	t := s.Discover(ctx, starts)
	if err := ctx.Err(); err != nil {
		return t, fmt.Errorf("the look at the members was cut off: %w", err)
	}
	return t, nil
}

// leased runs f while the group's lease is held, with a context that ends when it is lost. The group that f gets has the new epoch in its lease.
func (c *Carrier) leased(ctx context.Context, name string, f func(ctx context.Context, g *group.Group) error) error {
	return c.held(ctx, name, func(ctx, _ context.Context, g *group.Group) error { return f(ctx, g) })
}

// held does so, with a second context for what is not to stay half done: it ends only when the lease is lost, or, of one of several controllers, when another one may act.
func (c *Carrier) held(ctx context.Context, name string, f func(ctx, lasting context.Context, g *group.Group) error) error {
	g, err := c.take(ctx, name)
	if err != nil {
		return err
	}
	epoch := g.Lease.Epoch
	lasting := ctx
	if c.Lead == nil || c.Lead.Sole() {
		lasting = context.WithoutCancel(ctx)
	}
	lasting, lost := context.WithCancelCause(lasting)
	defer lost(nil)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(lasting, func() { cancel(context.Cause(lasting)) })()
	var renewing sync.WaitGroup
	renewing.Go(func() { lost(c.renew(lasting, name, epoch)) })
	err = f(ctx, lasting, g)
	if cause := context.Cause(lasting); err != nil && errors.Is(cause, ErrLost) {
		err = errors.Join(err, cause)
	}
	lost(nil)
	renewing.Wait()
	end, stop := context.WithTimeout(context.WithoutCancel(ctx), c.Limits.Stop)
	defer stop()
	_, ferr := c.Room.Change(end, name, func(g *group.Group) error {
		if g.Lease.Epoch == epoch {
			g.Free(c.Holder)
		}
		return nil
	})
	return errors.Join(err, ferr)
}

// leaseLook is how often a lease is looked at that somebody has.
const leaseLook = 100 * time.Millisecond

// take takes the lease of a group.
func (c *Carrier) take(ctx context.Context, name string) (*group.Group, error) {
	claim := group.Claim{Holder: c.Holder, Sight: c.Sight}
	if c.Lead != nil {
		if err := c.Lead.Verify(ctx); err != nil {
			return nil, err
		}
		if claim.Reign = c.Lead.Epoch(); claim.Reign == 0 {
			return nil, ErrLost
		}
	}
	if c.Sight == nil {
		claim.Sight = new(group.Sight)
	}
	for said := false; ; {
		lives := false
		g, err := c.Room.Change(ctx, name, func(g *group.Group) error {
			now := time.Now()
			if c.Sight == nil {
				lives = claim.Sight.See(g.Lease, now) || lives
			}
			return g.Take(claim, now, c.Limits.Lease)
		})
		if c.Sight != nil || lives || !errors.Is(err, group.ErrHeld) {
			return g, err
		}
		if !said {
			c.say("%v: it is awaited whether that one lives", err)
			said = true
		}
		if werr := delay.For(ctx, leaseLook); werr != nil {
			return nil, errors.Join(err, werr)
		}
	}
}

// renew keeps a lease until ctx ends. The lease is lost when nobody took the renewal for nearly as long as it holds: by this machine's clock, which counts durations
// only.
func (c *Carrier) renew(ctx context.Context, name string, epoch uint64) error {
	held := time.Now()
	tick := time.NewTicker(c.Limits.Lease / 6)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		asked := time.Now()
		_, err := c.Room.Change(ctx, name, func(g *group.Group) error {
			if g.Lease.Holder != c.Holder || g.Lease.Epoch != epoch {
				return ErrLost
			}
			g.Renew(time.Now())
			return nil
		})
		switch {
		case err == nil:
			held = asked
		case errors.Is(err, ErrLost), time.Since(held) > c.Limits.Lease*2/3:
			return errors.Join(ErrLost, err)
		}
	}
}

// node is a member that is changed, by its own connection.
type node struct {
	name string
	t    mysql.Target
	c    *mysql.Conn
}

// lockWait is how long a statement may wait for locks. Writes wait behind one that makes a server read-only, also those of its applier, and nobody else ends it if this
// process is killed.
const lockWait = 5 * time.Second

func connect(ctx context.Context, name string, t mysql.Target, patience time.Duration) (*node, error) {
	if t.IsZero() { // a change that was cut off may name one that was taken out since
		return nil, fmt.Errorf("connect to %q: it is no member of the group", name)
	}
	c, err := mysql.Connect(ctx, t.WithPatience(patience), nil)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", name, err)
	}
	if err := c.Exec(ctx, c.Server.BoundLocks(lockWait)); err != nil {
		c.Close()
		return nil, fmt.Errorf("connect to %s: %w", name, err)
	}
	return &node{name, t, c}, nil
}

func (n *node) close() {
	if n != nil && n.c != nil {
		n.c.Close()
	}
}

// run is one change of a primary under way.
type run struct {
	*Carrier
	g       *group.Group
	targets map[string]mysql.Target
	access  keep.Access
	j       *keep.Journal
	mu      sync.Mutex // of the journal
	nodes   map[string]*node
	going   []string        // members that were not told to stop receiving: see errGoesOn
	lasting context.Context // as held has it
	looks   context.Context // of what is done for a group whose primary lives: it ends when that is dead
}

// past is the context from where there is no way back. Members that follow nobody are worse than an end that comes a few seconds late: who interrupts it is told.
// What cannot be brought to its end stays in the journal.
func (r *run) past(ctx context.Context) (lasting context.Context, done func()) {
	stop := context.AfterFunc(ctx, func() {
		if r.lasting.Err() == nil {
			r.words("", "it is too late to go back: it is brought to its end, which takes a moment")
		}
	})
	return r.lasting, func() { stop() }
}

// mine reports whether the lease of a group, as it is now, is that of this run.
func (r *run) mine(g *group.Group) bool {
	return g.Lease.Holder == r.Holder && g.Lease.Epoch == r.g.Lease.Epoch
}

// run is one that begins, without a journal yet.
func (c *Carrier) run(ctx context.Context, g *group.Group) (*run, error) {
	targets, access, err := c.targets(ctx, g)
	if err != nil {
		return nil, err
	}
	return &run{Carrier: c, g: g, targets: targets, access: access, nodes: map[string]*node{}}, nil
}

// holds makes sure that nobody else has the lease by now, who may have let another member take writes, and that this controller leads.
func (r *run) holds(ctx context.Context) error {
	if r.Lead != nil {
		if err := r.Lead.Verify(ctx); err != nil {
			return errors.Join(ErrLost, err)
		}
		if r.Lead.Epoch() != r.g.Lease.Reign {
			return ErrLost
		}
	}
	g, err := r.Room.Group(ctx, r.g.Name)
	if err != nil {
		return err
	}
	if !r.mine(g) {
		return ErrLost
	}
	return nil
}

// stage notes how far it has come.
func (r *run) stage(ctx context.Context, s failover.Stage) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.j.Stage = s
	return unwritten(r.j.Save(ctx))
}

// unwritten is an error of writing down how far it has come.
func unwritten(err error) error {
	if err == nil || errors.Is(err, ErrLost) || errors.Is(err, group.ErrNone) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnwritten, err)
}

// note writes a step into the journal; it is kept with the next stage.
func (r *run) note(e failover.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.j.Steps = append(r.j.Steps, e)
}

// do runs a statement on a member.
func (r *run) do(ctx context.Context, n *node, statement string) error {
	return r.doShown(ctx, n, statement, statement)
}

// doShown runs a statement that is shown in other words, as it has a password in it.
func (r *run) doShown(ctx context.Context, n *node, statement, shown string) error {
	at := time.Now()
	r.say("%s: %s", n.name, shown)
	if r.step != nil {
		r.step(n.name, shown)
	}
	err := n.c.QuietQuery(ctx, statement, nil)
	e := failover.Entry{At: at.UTC(), Where: n.name, What: shown, Took: time.Since(at)}
	if err != nil {
		err = fmt.Errorf("%s on %s: %w", shown, n.name, err)
		e.Failed = err.Error()
	}
	r.note(e)
	return err
}

// words notes something that is no statement.
func (r *run) words(where, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if where != "" {
		r.say("%s: %s", where, text)
	} else {
		r.say("%s", text)
	}
	r.note(failover.Entry{At: time.Now().UTC(), Where: where, What: text})
}

// node connects to a member, once.
func (r *run) node(ctx context.Context, name string) (*node, error) {
	r.mu.Lock()
	n := r.nodes[name]
	r.mu.Unlock()
	if n != nil {
		return n, nil
	}
	// What is asked of it may take long; one that hangs is not waited for while nobody takes writes.
	cctx, stop := context.WithTimeoutCause(ctx, r.Limits.Stop, fmt.Errorf("%s does not answer within %s", name, r.Limits.Stop))
	defer stop()
	n, err := connect(cctx, name, r.targets[name], r.Limits.Drain+r.Limits.Stop)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nodes[name] = n
	return n, nil
}

func (r *run) close() {
	for _, n := range r.nodes {
		n.close()
	}
}

// each runs f for members at once, and returns what failed by name.
func each(names []string, f func(name string) error) map[string]error {
	var mu sync.Mutex
	failed := map[string]error{}
	var g errgroup.Group
	for _, name := range names {
		g.Go(func() error {
			if err := f(name); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed[name] = err
			}
			return nil
		})
	}
	_ = g.Wait() // f's errors are in failed
	return failed
}

// refused makes an error of refusals.
func refused(what string, list []failover.Refusal) error {
	words, remedy := reasons(list)
	return fault.New(fault.Failed, remedy, fmt.Errorf("%s: %w: %s", what, ErrRefused, words))
}

// Unheard is a refusal to promote anybody while members did not answer that might have been promoted.
type Unheard struct {
	Refusal error
	Members []string
}

func (u *Unheard) Error() string { return u.Refusal.Error() }

// Unwrap returns the refusal.
func (u *Unheard) Unwrap() error { return u.Refusal }

// nobody makes an error of why nobody is promoted, as the members were seen.
func nobody(what string, c failover.Choice, t *topology.Topology) error {
	err := refused(what, c.Refused)
	var silent []string
	for _, m := range c.Candidates {
		if i := t.Find(m.Name); i >= 0 && !t.Nodes[i].Seen && (t.Nodes[i].Unseen == nil || !failover.Lives(t.Nodes[i].Unseen.Kind)) {
			silent = append(silent, m.Name)
		}
	}
	if len(silent) > 0 {
		return &Unheard{err, silent}
	}
	return err
}

// reasons are refusals in words, and the first remedy of them.
func reasons(list []failover.Refusal) (words, remedy string) {
	all := make([]string, len(list))
	for i, r := range list {
		if all[i] = r.Why; remedy == "" {
			remedy = r.Remedy
		}
	}
	return strings.Join(all, "; "), remedy
}
