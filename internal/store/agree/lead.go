package agree

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/store/state"
)

// Leadership says whether this process is the one that acts.
type Leadership interface {
	// Name is this controller's.
	Name() string
	// Leader says whether this process may act now. Before a step that must never be done by two, ask Verify.
	Leader() bool
	// WhileLeader calls f each time this process becomes the one that acts, with a context that ends before another may act; it returns when ctx
	// ends and f did. f is called once for each leadership, even if it returns early.
	WhileLeader(ctx context.Context, f func(ctx context.Context))
	// Acting is a context that ends before another process may act; it has ended if this one may not now. What acts in it asks for it once, and
	// gives up when it ends.
	Acting(ctx context.Context) (context.Context, context.CancelFunc)
	// Verify returns nil if more than half of the controllers confirm now that this process leads.
	Verify(ctx context.Context) error
	// Epoch grows with each leadership; 0: this process does not lead.
	Epoch() uint64
	// Sole reports whether there are no other controllers that could act in its place.
	Sole() bool
	// Heard is up to when this process surely knew what all controllers agreed on: it heard from the leader, or led itself. What it says of later may be outdated.
	Heard() time.Time
	// Leading is who leads, as far as this process knows, and the address of its page; empty: nobody, or it is not known.
	Leading() (name, url string)
}

// Alone is the Leadership of a risso serve that shares its state with nobody.
type Alone struct {
	// Reign tells this process from those before it, which had the same state; a later one's is higher. 0: it does not matter.
	Reign uint64
}

// Name is empty.
func (Alone) Name() string { return "" }

// Leader is true.
func (Alone) Leader() bool { return true }

// WhileLeader calls f once.
func (Alone) WhileLeader(ctx context.Context, f func(ctx context.Context)) {
	f(ctx)
	<-ctx.Done()
}

// Acting ends with ctx.
func (Alone) Acting(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

// Verify is nil.
func (Alone) Verify(context.Context) error { return nil }

// Epoch is that of the process.
func (a Alone) Epoch() uint64 { return max(1, a.Reign) }

// Sole is true.
func (Alone) Sole() bool { return true }

// Heard is now.
func (Alone) Heard() time.Time { return time.Now() }

// Leading is nobody else.
func (Alone) Leading() (name, url string) { return "", "" }

// acting is a leadership while its lease lasts.
type acting struct {
	ctx   context.Context
	end   context.CancelFunc
	epoch uint64
	until time.Time // by the monotonic clock
	timer *time.Timer
}

// lease is how long this controller may act after more than half of them confirmed that it leads. It is shorter than the time for which those
// that confirmed it elect no other one, by what clocks may run at different speeds, and then some.
func (n *Node) lease() time.Duration { return n.Folder.heartbeat() * 3 / 4 }

// levelWait bounds how long it is waited for what all agreed on, before that is asked for again.
const levelWait = 2 * time.Second

// keepLevel notes whether this file has what all agreed on: after a start, and after each time in which the leader was not heard, or what came
// from there could not be kept, it asks for that once. It goes on looking meanwhile: an answer from before such a time counts for nothing.
func (n *Node) keepLevel(ctx context.Context) {
	beat := n.Folder.heartbeat()
	var answer chan error // nil: nothing is asked
	slipped := false      // since it was asked
	for delay.For(ctx, beat/8) == nil {
		touch := n.touch()
		n.mu.Lock()
		// While the process stood still others may have agreed on much, and the first that is heard then may be a heartbeat.
		touch = touch && time.Since(n.looked) < beat
		n.looked = time.Now()
		n.isLevel = n.isLevel && touch
		level := n.isLevel
		n.mu.Unlock()
		slipped = slipped || !touch
		select {
		case err := <-answer:
			answer = nil
			if err == nil && !slipped {
				n.mu.Lock()
				n.isLevel = true
				n.mu.Unlock()
			}
			continue
		default:
		}
		if answer == nil && touch && !level {
			answer, slipped = make(chan error, 1), false
			go func() {
				lctx, stop := context.WithTimeout(ctx, levelWait)
				defer stop()
				answer <- n.Level(lctx)
			}()
		}
	}
	if answer != nil {
		<-answer
	}
}

// touch reports whether this controller leads, or hears from the leader, and can keep what it hears.
func (n *Node) touch() bool {
	r := n.now()
	if r == nil || n.unsound() != nil {
		return false
	}
	_, id := r.LeaderWithID()
	return n.Leader() || id != "" && time.Since(r.LastContact()) < n.Folder.heartbeat()
}

// unsound is why what is agreed on does not get into this file, though the leader may be heard: heartbeats come and are answered without the
// disk. nil: it does.
func (n *Node) unsound() error {
	beat := n.Folder.heartbeat()
	return cmp.Or(n.ailing(), n.log.writes.wrong(beat), n.log.keeps.wrong(beat), n.changes.wrong(beat))
}

// keepLease acts while this controller leads.
func (n *Node) keepLease(ctx context.Context) error {
	beat, r := n.Folder.heartbeat(), n.now()
	for ctx.Err() == nil {
		if r.State() != raft.Leader || n.ailing() != nil {
			n.endActing()
			select {
			case <-r.LeaderCh():
			case <-time.After(beat / 8):
			case <-ctx.Done():
			}
			continue
		}
		term := r.CurrentTerm()
		if err := r.Barrier(2 * time.Second).Error(); err != nil { // all that earlier leaders agreed on is here
			continue
		}
		for ctx.Err() == nil && n.ailing() == nil {
			if err := r.VerifyLeader().Error(); err != nil || r.CurrentTerm() != term { // they are asked at once
				break
			}
			n.extend(term, n.assented(term).Add(n.lease()))
			select {
			case <-r.LeaderCh(): // it leads no longer, or anew
			case <-time.After(beat / 5):
			case <-ctx.Done():
			}
		}
	}
	n.endActing()
	return nil
}

// assented is the last moment at which more than half of the controllers took this one for the leader of a term.
func (n *Node) assented(term uint64) time.Time {
	n.mu.Lock()
	a := n.assents
	n.mu.Unlock()
	return a.since(raft.ServerID(n.Folder.Name), term, n.servers())
}

// extend lets this controller act until a time.
func (n *Node) extend(epoch uint64, until time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	left := time.Until(until)
	if left <= 0 || n.life.Err() != nil || n.yielding > 0 {
		return
	}
	if a := n.acting; a != nil && a.epoch == epoch && a.ctx.Err() == nil {
		a.until = until
		a.timer.Reset(left)
		return
	}
	if n.acting != nil {
		n.acting.end()
		n.acting.timer.Stop()
	}
	a := &acting{epoch: epoch, until: until}
	a.ctx, a.end = context.WithCancel(n.life)
	a.timer = time.AfterFunc(left, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if left := time.Until(a.until); left > 0 { // it was extended as the timer went off
			a.timer.Reset(left)
			return
		}
		a.end()
	})
	n.acting = a
	close(n.changed)
	n.changed = make(chan struct{})
}

// endActing ends it at once.
func (n *Node) endActing() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.acting != nil {
		n.acting.end()
		n.acting.timer.Stop()
		n.acting = nil
	}
}

// transfer hands over the lead. Those it is handed to need not wait for this controller's lease, so that acting ends first. Where that failed, who
// was asked may still be taking it: this controller acts again only when that question is certainly over.
func (n *Node) transfer(to func(*raft.Raft) raft.Future) error {
	n.mu.Lock()
	n.yielding++
	n.mu.Unlock()
	stay := func() {
		n.mu.Lock()
		n.yielding--
		n.mu.Unlock()
	}
	n.endActing()
	if err := to(n.now()).Error(); err != nil {
		time.AfterFunc(n.answerTime()+n.Folder.heartbeat(), stay)
		return fmt.Errorf("hand over the lead: %w", err)
	}
	stay()
	return nil
}

// answerTime bounds one question of Raft to another controller.
func (n *Node) answerTime() time.Duration { return max(5*n.Folder.heartbeat(), time.Second) }

func (n *Node) ailing() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.trouble
}

// Leader says whether this controller may act now.
func (n *Node) Leader() bool { return n.Epoch() > 0 }

// Sole is false.
func (n *Node) Sole() bool { return false }

// Epoch is the number of the leadership under which this controller may act now; 0: it may not.
func (n *Node) Epoch() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a := n.acting; a != nil && a.ctx.Err() == nil && time.Now().Before(a.until) && n.raft.State() == raft.Leader && n.raft.CurrentTerm() == a.epoch {
		return a.epoch
	}
	return 0
}

// Heard is up to when this controller surely knew what all agreed on.
func (n *Node) Heard() time.Time {
	leads, r, wrong := n.Leader(), n.now(), n.unsound()
	var at time.Time
	switch {
	case wrong != nil:
	case leads:
		at = time.Now()
	case r != nil:
		if _, id := r.LeaderWithID(); id != "" { // a vote is a contact, too, and says nothing of what was agreed on
			at = r.LastContact()
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if wrong != nil || !leads && time.Since(n.looked) >= n.Folder.heartbeat() { // it stood still
		n.isLevel = false
	}
	if !leads && !n.isLevel { // heartbeats come, too, while what was agreed on meanwhile does not yet
		return n.heard
	}
	if at.After(n.heard) {
		n.heard = at
	}
	return n.heard
}

// WhileLeader calls f each time this controller may act.
func (n *Node) WhileLeader(ctx context.Context, f func(ctx context.Context)) {
	for ctx.Err() == nil {
		n.mu.Lock()
		a, changed := n.acting, n.changed
		n.mu.Unlock()
		if a != nil && a.ctx.Err() == nil {
			fctx, end := a.within(ctx)
			f(fctx)
			end()
			select {
			case <-a.ctx.Done():
			case <-ctx.Done():
			}
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// within is a context that ends with a leadership as well.
func (a *acting) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(a.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// Acting is a context that ends when this controller may no longer act.
func (n *Node) Acting(ctx context.Context) (context.Context, context.CancelFunc) {
	n.mu.Lock()
	a := n.acting
	n.mu.Unlock()
	if a != nil && n.Leader() {
		return a.within(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx, cancel
}

// Verify asks the other controllers whether this one leads.
func (n *Node) Verify(ctx context.Context) error {
	asked, epoch := time.Now(), n.Epoch()
	if epoch == 0 {
		return fmt.Errorf("controller %s does not lead: %w", n.Folder.Name, state.ErrNoLeader)
	}
	for {
		confirmed := make(chan error, 1)
		go func() { confirmed <- n.now().VerifyLeader().Error() }()
		select {
		case err := <-confirmed:
			if err != nil {
				return fmt.Errorf("controller %s does not lead: %w", n.Folder.Name, err)
			}
		case <-ctx.Done():
			return fmt.Errorf("it could not be confirmed that controller %s leads: %w", n.Folder.Name, ctx.Err())
		}
		if !n.assented(epoch).Before(asked) {
			return nil
		}
		// What it heard were answers to questions from before.
		if n.Epoch() != epoch {
			return fmt.Errorf("controller %s does not lead: %w", n.Folder.Name, state.ErrNoLeader)
		}
		if err := delay.For(ctx, time.Millisecond); err != nil {
			return fmt.Errorf("it could not be confirmed that controller %s leads: %w", n.Folder.Name, err)
		}
	}
}

// Leading is who leads, and its page.
func (n *Node) Leading() (name, url string) {
	r := n.now()
	if r == nil {
		return "", ""
	}
	_, id := r.LeaderWithID()
	if id == "" {
		return "", ""
	}
	ctx, cancel := context.WithTimeout(n.life, time.Second)
	defer cancel()
	m, err := n.memberOf(ctx, string(id))
	if err != nil {
		return string(id), ""
	}
	return string(id), m.URL
}
