package rebuild

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/repoint"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/avail/topology/look"
	"github.com/rissodb/risso/internal/data/checksum"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/serve/lost"
	"github.com/rissodb/risso/internal/throttle"
)

// Members rebuilds members of groups that have transactions of their own.
type Members struct {
	Room    *keep.Room
	Holder  string // of what is held meanwhile; no other process has that name
	Dir     string // of the journals, and of copies
	Limits  throttle.Limits
	Threads int
	Wait    time.Duration // how long each thing may take that is waited for
	Say     func(string)
	Line    Line // is shown how far it is; nil: nobody
}

// DefaultLimits spare the server that is read: it is a replica as a rule, and one that could follow the primary.
func DefaultLimits() throttle.Limits {
	return throttle.Limits{MaxLag: 10 * time.Second, MaxThreadsRunning: 32}
}

// Asked is what is wanted.
type Asked struct {
	Group, Member, By string
	From              string // as Job has it
	// Due refuses a member whose last rebuild failed and that is to be left alone for a while.
	Due bool
}

// Planned is what would be done.
type Planned struct {
	Group   string   `json:"group"`
	Member  string   `json:"member"`
	Primary string   `json:"primary"`
	From    string   `json:"from"`             // whose data it gets
	Because string   `json:"why"`              // why those
	Errant  string   `json:"errant,omitempty"` // the transactions that only it has
	Loses   []string `json:"loses"`
	Notes   []string `json:"notes"`
	Plan    []string `json:"plan"`
}

// held is how long a rebuild holds a member without a word; others go on with it then.
const held = 20 * time.Second

// member is one that is rebuilt.
type member struct {
	*Members
	asked   Asked
	g       *group.Group
	access  keep.Access
	targets []mysql.Target
	t       *topology.Topology
	at      int // in t
	job     *Job
	b       *repoint.Rebuild
	done    func()
	aims    bool // it is to be pointed at the primary before
	errant  string
	extra   mysql.Errant // the same as it was read now
}

// Plan says what would be done, and changes nothing.
func (m *Members) Plan(ctx context.Context, a Asked) (Planned, error) {
	one, err := m.look(ctx, a)
	if err != nil {
		return Planned{}, err
	}
	if err := one.prepare(ctx); err != nil {
		return Planned{}, err
	}
	defer one.done()
	return one.planned(), nil
}

// planned is what was prepared.
func (m *member) planned() Planned {
	p := Planned{Group: m.g.Name, Member: m.asked.Member, Primary: m.g.Members[m.g.Primary()].Name, From: m.job.From, Because: m.job.Because, Errant: m.errant,
		Loses: append([]string{}, m.b.Loses...), Notes: append([]string{}, m.b.Notes...)}
	p.Plan = append(p.Plan, "write down what only "+m.asked.Member+" has")
	if m.aims {
		p.Plan = append(p.Plan, "point "+m.asked.Member+" at "+m.g.Members[m.g.Primary()].Address+": it does not replicate yet")
	}
	p.Plan = append(append(p.Plan, m.b.Plan.Words()...), "compare up to 20 tables with "+p.Primary, "SPARE, and SECONDARY when it has caught up: "+m.asked.Member+" in "+m.g.Name)
	return p
}

// look asks the members, and refuses what must not be rebuilt.
func (m *Members) look(ctx context.Context, a Asked) (*member, error) {
	one := &member{Members: m, asked: a}
	var err error
	if one.g, err = m.Room.Group(ctx, a.Group); err != nil {
		return nil, err
	}
	if err := fit(one.g, a, m.Holder, time.Now()); err != nil {
		return nil, err
	}
	if one.access, err = m.Room.Access(ctx, a.Group); err != nil {
		return nil, err
	}
	var starts []topology.Start
	for _, x := range one.g.Members {
		t, err := one.access.Target(x.Name)
		if err != nil {
			return nil, err
		}
		one.targets = append(one.targets, t)
		starts = append(starts, topology.Start{Name: x.Name, Address: t.Address()})
	}
	s := look.Search(one.targets)
	s.Alone = true
	one.t = s.Discover(ctx, starts)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if one.at = one.t.Find(a.Member); one.at < 0 || !one.t.Nodes[one.at].Seen {
		return nil, fault.New(fault.Failed, "start it first", fmt.Errorf("%s does not answer", a.Member))
	}
	p := one.t.Find(one.g.Members[one.g.Primary()].Name)
	one.errant = one.g.Members[one.g.Find(a.Member)].Errant // an earlier run may have dropped them
	switch {
	case p < 0 || !one.t.Nodes[p].Seen:
		return nil, fault.New(fault.Failed, "", fmt.Errorf("the primary of %s does not answer", a.Group))
	case p == one.at:
		return nil, fmt.Errorf("%s and the primary of %s are one server", a.Member, a.Group)
	case one.t.Nodes[one.at].Writes.Open():
		return nil, fault.New(fault.Failed, "risso serve closes it; or SET GLOBAL read_only = ON", fmt.Errorf("%s takes writes", a.Member))
	}
	if one.extra = carry.Extra(&one.t.Nodes[one.at], &one.t.Nodes[p]); !one.extra.Empty() {
		one.errant = one.extra.String()
	}
	return one, nil
}

// fit refuses members that are not to be rebuilt. It is pure.
func fit(g *group.Group, a Asked, holder string, now time.Time) error {
	i, p := g.Find(a.Member), g.Primary()
	refuse := func(remedy, format string, args ...any) error {
		return fault.New(fault.Failed, remedy, fmt.Errorf(format, args...))
	}
	switch {
	case i < 0:
		return refuse("risso group show "+g.Name, "%s: %w", a.Member, group.ErrNone)
	case p < 0:
		return refuse("risso group promote "+g.Name, "%s has no primary", g.Name)
	case i == p:
		return refuse("risso switchover --group "+g.Name+" lets another member be the primary; then risso group set-status "+g.Name+" "+fleet.ShellWord(a.Member)+" FAULTY takes it out, and risso group rebuild "+g.Name+" "+fleet.ShellWord(a.Member)+" rebuilds it",
			"%s is the primary of %s: only a FAULTY member is rebuilt", a.Member, g.Name)
	case g.Members[i].Status != group.Faulty:
		return refuse("risso group set-status "+g.Name+" "+fleet.ShellWord(a.Member)+" FAULTY takes it out first", "%s is %s: only a FAULTY member is rebuilt", a.Member, g.Members[i].Status)
	}
	if a.Due && g.Members[i].ByHand {
		return refuse("risso group rebuild "+g.Name+" "+fleet.ShellWord(a.Member), "somebody made %s FAULTY: it is rebuilt only if somebody asks for that", a.Member)
	}
	for _, x := range g.Members {
		if x.Rebuild.Running(now) && x.Rebuild.Holder != holder {
			return refuse("wait until it is done", "%w: %s of %s is being rebuilt, and one is at a time", group.ErrHeld, x.Name, g.Name)
		}
	}
	if at, may := g.Members[i].Rebuild.Again(); a.Due && (!may || now.Before(at)) {
		return refuse("risso group rebuild "+g.Name+" "+a.Member, "%s: %s", a.Member, g.Members[i].Rebuild.Words(now))
	}
	return nil
}

// Due is the member of a group that is to be rebuilt without being asked for: the first that has transactions of its own, answers, and was not tried in vain just now;
// "": none. It is pure.
func Due(g *group.Group, answers func(name string) bool, now time.Time) string {
	for _, x := range g.Members {
		if x.Status == group.Faulty && x.Errant != "" && !x.Unlogged && answers(x.Name) && fit(g, Asked{Group: g.Name, Member: x.Name, Due: true}, "", now) == nil {
			return x.Name
		}
	}
	return ""
}

// prepare finds whose data the member gets, and makes the plan. A member that has no channel to the primary is judged as if it had.
func (m *member) prepare(ctx context.Context) error {
	n, primary := &m.t.Nodes[m.at], m.g.Members[m.g.Primary()]
	r := &repoint.Repointer{Dir: m.Dir, Wait: m.Wait, Say: m.Say, Target: func(address string) mysql.Target { return look.At(m.targets, address) }}
	left, err := r.LeftRebuild(ctx, n)
	if err != nil {
		return err
	}
	if left != nil && left.Source != primary.Address { // another one is the primary since: what was copied may have what that has not
		left.Source, left.Copy, left.At = primary.Address, nil, 0
	}
	if m.aims = left == nil && !carry.Aimed(m.g, n); m.aims {
		host, port, err := net.SplitHostPort(primary.Address)
		if err != nil {
			return fmt.Errorf("the address of %s: %w", primary.Name, err)
		}
		ch := topology.Channel{}
		ch.Source, ch.GTID, ch.IORunning, ch.SQLRunning = net.JoinHostPort(host, port), true, "No", "No"
		n.Channels = []topology.Channel{ch}
	}
	m.job = &Job{Repointer: r, From: m.asked.From, Threads: m.Threads, Say: m.Say, Password: m.access.Replication.Password, Find: func(name string) (int, error) {
		if i := m.t.Find(name); i >= 0 {
			return i, nil
		}
		return -1, fault.New(fault.Usage, "risso group show "+m.g.Name, fmt.Errorf("%s: %w", name, group.ErrNone))
	}}
	m.job.Question = repoint.RebuildQuestion{Question: repoint.Question{Topology: m.t, Replica: m.at, Wait: m.Wait}, Donor: -1, Left: left}
	if err := m.job.Question.Ask(ctx, r); err != nil {
		return err
	}
	if m.aims {
		m.job.Question.AccountWhy = "it is not pointed at it yet"
	}
	filler, done, err := m.job.Choose(ctx)
	if err != nil {
		return err
	}
	m.done = done
	if m.b, err = r.PrepareRebuild(m.job.Question, m.job.From, filler); err == nil && m.b.Goes == "" && m.job.Donor != nil {
		err = m.job.Room(ctx)
	}
	if err != nil {
		done()
	}
	return err
}

// ErrStopped is that a rebuild was stopped, for the sake of something else: it goes on later.
var ErrStopped = errors.New("the rebuild was stopped")

// Do rebuilds a member: it is SPARE afterwards, and becomes SECONDARY when it has caught up. What only it has is written down before. If it fails the member stays
// FAULTY, and says why. A context that ends with a cause stops it, which is no failure.
func (m *Members) Do(ctx context.Context, a Asked) (rec *keep.Rebuilt, err error) {
	g, err := m.hold(ctx, a)
	if err != nil {
		return nil, err
	}
	work, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	t := &telling{shown: m.Line}
	var holding sync.WaitGroup
	renew, end := context.WithCancel(ctx)
	holding.Go(func() { stop(m.keepHolding(renew, a, t)) })
	due := a
	due.Due = false // it is, and is held
	if one, lerr := m.look(work, due); lerr != nil {
		err = lerr
	} else {
		rec, err = one.do(work, t)
	}
	if err != nil && context.Cause(work) == nil {
		err = m.orphaned(ctx, g, err)
	}
	if cause := context.Cause(work); err != nil && cause != nil && !errors.Is(err, cause) { // also one that was stopped while it was asked why it failed
		err = fmt.Errorf("%w: %w", cause, err)
	}
	end()
	holding.Wait()
	return rec, m.ended(ctx, a, rec, err)
}

// orphaned tells a rebuild that failed from one that had no primary to be rebuilt for: it died, or another one followed, since g was read. That one is stopped, which is
// nobody's failure.
func (m *Members) orphaned(ctx context.Context, g *group.Group, failed error) error {
	stopped := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s: %w", ErrStopped, fmt.Sprintf(format, args...), failed)
	}
	was := g.Members[g.Primary()].Name
	now, err := m.Room.Group(ctx, g.Name)
	if err != nil {
		return failed
	}
	if i := now.Primary(); i < 0 || now.Members[i].Name != was {
		return stopped("the primary is not %s any more", was)
	}
	access, err := m.Room.Access(ctx, g.Name)
	if err != nil {
		return failed
	}
	t, err := access.Target(was)
	if err != nil {
		return failed
	}
	actx, cancel := context.WithTimeout(ctx, held/10)
	defer cancel()
	c, err := mysql.Connect(actx, t, nil)
	if err != nil {
		return stopped("%s, the primary, does not answer", was)
	}
	c.Close()
	return failed
}

// do does it, while the member is held.
func (m *member) do(ctx context.Context, t *telling) (*keep.Rebuilt, error) {
	whole, err := m.whole(ctx)
	if err != nil {
		return nil, err
	}
	if err := m.prepare(ctx); err != nil {
		return nil, err
	}
	if whole && m.job.Question.Left == nil {
		defer m.done()
		rec := &keep.Rebuilt{Group: m.g.Name, Member: m.asked.Member, By: m.asked.By, Began: time.Now().UTC(), Loses: []string{}, Plan: []string{}, Because: "an earlier run came to its end"}
		return rec, m.compare(ctx, t, rec)
	}
	p := m.planned()
	rec := &keep.Rebuilt{Group: p.Group, Member: p.Member, By: m.asked.By, Began: time.Now().UTC(), Errant: p.Errant, Loses: p.Loses, From: p.From, Because: p.Because, Plan: p.Plan}
	t.from(p.From)
	if err := m.Room.SaveRebuilt(ctx, rec); err != nil {
		m.done()
		return nil, err
	}
	if !m.extra.Empty() && (m.job.Question.Left == nil || !m.job.Question.Left.Cleared) {
		if err := m.capture(ctx, t, rec); err != nil {
			m.done()
			return rec, err
		}
	}
	if m.aims {
		m.done()
		if err := m.aim(ctx); err != nil {
			return rec, err
		}
		again, err := m.aimed(ctx)
		if err != nil {
			return rec, err
		}
		m = again
		if err := m.prepare(ctx); err != nil {
			return rec, err
		}
	}
	defer m.done()
	return rec, m.fill(ctx, t, rec)
}

// aimedTime is how long it may take until a member that was pointed at the primary says so: one whose disk was full just now does not answer all questions at once.
const aimedTime = 30 * time.Second

// aimed waits until the member points at the primary.
func (m *member) aimed(ctx context.Context) (*member, error) {
	for began := time.Now(); ; {
		again, err := m.Members.look(ctx, m.asked)
		if err == nil && carry.Aimed(again.g, &again.t.Nodes[again.at]) {
			return again, nil
		}
		if time.Since(began) > aimedTime {
			if err == nil {
				n, words := &again.t.Nodes[again.at], "it has no channel"
				for _, ch := range n.Channels {
					words = fmt.Sprintf("it points at %s, its threads are %s and %s", ch.Source, ch.IORunning, ch.SQLRunning)
				}
				if n.Unseen != nil {
					words = n.Unseen.Words()
				}
				err = fmt.Errorf("%s was pointed at the primary of %s, and does not say so: %s", m.asked.Member, m.asked.Group, words)
			}
			return nil, err
		}
		if err := delay.For(ctx, 200*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// captureTime is how long the binary logs of a member may be read before it is rebuilt. What was not read till then is said to be unseen.
const captureTime = 5 * time.Minute

// capture keeps what the transactions changed that only the member has: its binary logs will be gone.
func (m *member) capture(ctx context.Context, t *telling, rec *keep.Rebuilt) error {
	t.say("what only it has is written down")
	c := &carry.Carrier{Room: m.Room, Limits: carry.DefaultLimits()}
	if err := c.Complete(ctx, rec.Group); err != nil {
		return fmt.Errorf("write into the receipt what only %s has: %w", rec.Member, err)
	}
	rctx, stop := context.WithTimeout(ctx, captureTime)
	defer stop()
	rec.Contents = lost.FromMember(rctx, rec.Member, m.targets[m.g.Find(rec.Member)], m.extra)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return m.Room.SaveRebuilt(ctx, rec)
}

// fill replaces the data of a member that points at the primary.
func (m *member) fill(ctx context.Context, t *telling, rec *keep.Rebuilt) error {
	if m.job.Donor != nil {
		limits := m.Limits
		limits.Own = m.Threads + 1
		gate, err := throttle.New(ctx, limits, m.job.DonorTarget())
		if err != nil {
			return err
		}
		defer gate.Close()
		m.job.Watch(t, gate)
	} else {
		m.job.Watch(t, nil)
	}
	m.job.Repointer.Say = func(text string) { t.say(text); m.Say(text) }
	err := m.b.Do(ctx)
	rec.Journal = m.b.Journal
	if err != nil {
		return err
	}
	rec.Filled = time.Now().UTC()
	if err := m.Room.SaveRebuilt(ctx, rec); err != nil {
		return err
	}
	return m.compare(ctx, t, rec)
}

// compare compares the member with the primary.
func (m *member) compare(ctx context.Context, t *telling, rec *keep.Rebuilt) error {
	t.say("compare a sample of tables with the primary")
	primary, n := m.g.Members[m.g.Primary()].Name, &m.t.Nodes[m.at]
	res, _, err := m.job.Compare(ctx, &m.t.Nodes[m.t.Find(primary)], n, true, nil)
	switch {
	case errors.Is(err, checksum.ErrNothing) && len(res.Unseen) == 0:
		rec.Compare = "there is no table to compare"
	case err != nil:
		return fmt.Errorf("%s has its data, and could not be compared with %s: %w", rec.Member, primary, err)
	default:
		rec.Compare = Compared(primary, rec.Member, res)
	}
	if n := res.Counts; n.Differ+n.Definitions > 0 {
		return fmt.Errorf("%s has its data, and they differ: %s", rec.Member, rec.Compare)
	}
	return nil
}

// whole reports whether an earlier run filled the member, and was killed before it had compared it: it follows the primary, and has nothing that that has not.
func (m *member) whole(ctx context.Context) (bool, error) {
	list, err := m.Room.AllRebuilt(ctx, m.g.Name)
	if err != nil {
		return false, err
	}
	filled := false
	for _, b := range list {
		if b.Member == m.asked.Member {
			filled = !b.Filled.IsZero() && b.Ended.IsZero()
		}
	}
	n := &m.t.Nodes[m.at]
	return filled && m.extra.Empty() && len(n.Channels) == 1 && n.Channels[0].Source == m.g.Members[m.g.Primary()].Address && n.Channels[0].Receiving() && n.Channels[0].Applying(), nil
}

// aim points the member at the primary, when nobody else changes the group for a moment.
func (m *member) aim(ctx context.Context) error {
	c := &carry.Carrier{Room: m.Room, Holder: m.Holder, Limits: carry.DefaultLimits(), Say: m.Say}
	for began := time.Now(); ; {
		_, err := c.Aim(ctx, m.asked.Group, m.asked.Member)
		if !errors.Is(err, group.ErrHeld) || time.Since(began) > m.Wait {
			return err
		}
		if err := delay.For(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// hold takes a member, unless another one of the group is taken, or somebody changed it meanwhile.
func (m *Members) hold(ctx context.Context, a Asked) (*group.Group, error) {
	now := time.Now().UTC()
	return m.Room.Change(ctx, a.Group, func(g *group.Group) error {
		if err := fit(g, a, m.Holder, now); err != nil {
			return err
		}
		x := &g.Members[g.Find(a.Member)]
		tries := 0
		if x.Rebuild != nil {
			tries = x.Rebuild.Tries
		}
		x.Rebuild = &group.Rebuild{Holder: m.Holder, Until: now.Add(held), Began: now, Tries: tries}
		return nil
	})
}

// keepHolding holds it until ctx ends, and says how far it is. It returns why it is not held any more; nil: ctx ended.
func (m *Members) keepHolding(ctx context.Context, a Asked, t *telling) error {
	last := time.Now()
	for delay.For(ctx, held/10) == nil {
		asked := time.Now()
		_, err := m.Room.Change(ctx, a.Group, func(g *group.Group) error {
			i := g.Find(a.Member)
			switch {
			case i < 0 || g.Members[i].Rebuild == nil || g.Members[i].Rebuild.Holder != m.Holder:
				return fmt.Errorf("%w: somebody else has %s", ErrStopped, a.Member)
			case g.Members[i].Status != group.Faulty:
				return fmt.Errorf("%w: %s is %s now", ErrStopped, a.Member, g.Members[i].Status)
			}
			x := g.Members[i].Rebuild
			x.Until = time.Now().UTC().Add(held)
			x.From, x.Stage = t.now()
			return nil
		})
		switch {
		case err == nil:
			last = asked
		case errors.Is(err, ErrStopped):
			return err
		case ctx.Err() == nil && time.Since(last) > held*2/3:
			return fmt.Errorf("%w: it cannot be held: %w", ErrStopped, err)
		}
	}
	return nil
}

// ended writes down what came of it.
func (m *Members) ended(ctx context.Context, a Asked, rec *keep.Rebuilt, err error) error {
	stopped := ctx.Err() != nil || errors.Is(err, ErrStopped) || errors.Is(err, repoint.ErrBusy)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), held/2)
	defer cancel()
	now := time.Now().UTC()
	_, cerr := m.Room.Change(ctx, a.Group, func(g *group.Group) error {
		i := g.Find(a.Member)
		if i < 0 || g.Members[i].Rebuild == nil || g.Members[i].Rebuild.Holder != m.Holder {
			return nil // it is somebody else's
		}
		if err == nil {
			return carry.Returned(g, a.Member, !a.Due, now)
		}
		x := g.Members[i].Rebuild
		x.Holder, x.Until, x.Stage, x.Ended, x.Problem = "", time.Time{}, "", now, err.Error()
		if !stopped {
			x.Tries++
		}
		return nil
	})
	if rec != nil {
		if rec.Ended = now; err != nil {
			rec.Problem = err.Error()
		}
		cerr = errors.Join(cerr, m.Room.SaveRebuilt(ctx, rec))
	}
	return errors.Join(err, cerr)
}

// telling keeps how far it is, for those who ask, and shows it.
type telling struct {
	shown Line

	mu          sync.Mutex
	donor, text string
}

func (t *telling) from(donor string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.donor = donor
}

func (t *telling) say(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = text
}

func (t *telling) now() (donor, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.donor, t.text
}

// Stage is Line's.
func (t *telling) Stage(stage, unit string, done, total int64) {
	text := stage
	if total > 0 {
		text += ", " + digits.Percent(min(1, float64(done)/float64(total)))
	}
	t.say(text)
	if t.shown != nil {
		t.shown.Stage(stage, unit, done, total)
	}
}

// Clear is Line's.
func (t *telling) Clear() {
	if t.shown != nil {
		t.shown.Clear()
	}
}

// Words are how it went, for people.
func Words(rec *keep.Rebuilt) string {
	return strings.TrimSuffix(fmt.Sprintf("%s is rebuilt from %s and follows the primary of %s: %s", rec.Member, rec.From, rec.Group, rec.Compare), ": ")
}
