package failover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/serve/lost"
)

// watcher watches one group.
type watcher struct {
	d      *Desk
	cancel context.CancelCauseFunc
	fresh  chan reading
	looks  chan seen
	work   chan result       // of what was done in the background
	posts  chan *group.Group // as it was published in the background
	late   chan string       // members whose answer takes long
	asked  chan chan<- Seen
	said   chan said // by others than replicas, of the primary
	ended  chan struct{}

	g         *group.Group
	knew      time.Time   // reading.heard of it
	sight     group.Sight // of its lease
	calm      calm
	watch_    *failover.Watch
	primary   string    // whom watch_ is about
	named     time.Time // since when, by this process's clock
	probers   map[string]*prober
	stops     map[string]context.CancelFunc
	last      map[string]seen
	inquiring bool                 // others are being asked
	inquired  time.Time            // when that began last
	crowded   int64                // when it was late last, as crowd has it
	poked     time.Time            // when members were last to be looked at soon
	places    map[string]place     // how far replicas were behind when that was last known
	ids       map[string]string    // server_uuid, or server_id, of members, as they last said it
	reread    map[string]time.Time // when the account of a member that refuses it was read again
	heard     map[string]progress
	had       map[string]failover.Had // what members had when they last answered
	known     failover.Known
	belief    failover.Belief
	noted     time.Time // of the death that was written down last: since when the primary was silent
	absent    absent
	reign     uint64 // under which it acted last
	busy      bool   // something is being done
	hurry     func() // ends looks that are being taken; nil: there were none
	tended    time.Time
	opened    time.Time       // when the primary was last seen to take writes; zero: it was not
	told      map[string]bool // what was told once
	state     standing
	since     time.Time
	filling   *filling     // a member that is rebuilt; nil: none
	filled    chan rebuilt // what came of it
}

// reading is a group as it was read, and up to when this controller knew by then what was agreed on; zero: it had not heard it yet.
type reading struct {
	g     *group.Group
	heard time.Time
}

// progress is how far a replica has come, and when that last changed.
type progress struct {
	mark  string
	at    time.Time
	since time.Time
}

// result is what came of something that was done.
type result struct {
	err  error
	over bool // it was to fail over
	what string
	tell func()
}

// newWatcher makes a watcher that begins to look after a while.
func newWatcher(d *Desk, r reading, after time.Duration, cancel context.CancelCauseFunc) *watcher {
	return &watcher{d: d, cancel: cancel, g: r.g, knew: r.heard, fresh: make(chan reading, 1), looks: make(chan seen, 16), work: make(chan result, 1), late: make(chan string, 4), posts: make(chan *group.Group, 4), filled: make(chan rebuilt, 1), asked: make(chan chan<- Seen), said: make(chan said, 1), ended: make(chan struct{}), probers: map[string]*prober{},
		stops: map[string]context.CancelFunc{}, last: map[string]seen{}, places: map[string]place{}, ids: map[string]string{}, reread: map[string]time.Time{}, heard: map[string]progress{}, had: map[string]failover.Had{}, told: map[string]bool{}, since: time.Now().Add(after)}
}

// changed gives the watcher the group as it is now.
func (w *watcher) changed(r reading) {
	select {
	case <-w.fresh:
	default:
	}
	w.fresh <- r
}

// watch watches until ctx ends.
func (w *watcher) watch(ctx context.Context) {
	defer close(w.ended)
	var probing sync.WaitGroup
	defer probing.Wait()
	pctx, stop := context.WithCancel(ctx)
	defer stop()
	w.adopt(pctx, &probing, reading{w.g, w.knew})
	every := everySuspect
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			if w.busy { // what was begun is brought to where it can be left
				<-w.work
			}
			if w.inquiring {
				<-w.said
			}
			if w.filling != nil {
				w.filling.stop(context.Cause(ctx))
				<-w.filled
			}
			if errors.Is(context.Cause(ctx), errGone) && w.d.Found != nil { // nothing is wrong with it any more
				w.d.Found("", w.g.Name, nil)
			}
			return
		case r := <-w.fresh:
			w.adopt(pctx, &probing, r)
		case s := <-w.looks:
			w.take(s)
		case name := <-w.late:
			if name == w.primary && !w.crowd(time.Now()) { // when its replicas last heard from it is known the better the sooner they are asked
				w.pokeAll()
			}
		case r := <-w.work:
			w.busy = false
			w.done(r)
		case s := <-w.said:
			w.heardOf(s)
		case g := <-w.posts:
			w.d.Board.Tell(w.viewOf(g, w.d.Lead.Heard()), g.Members)
		case r := <-w.filled:
			w.filling = nil
			w.refilled(r)
		case reply := <-w.asked:
			reply <- w.seen()
			continue
		case <-tick.C:
		}
		w.refill(ctx) // before what is due again at once, as something that it does takes long
		w.judge(ctx)
		w.show()
		if now := w.ticks(); now != every {
			every = now
			tick.Reset(every)
		}
	}
}

// ticks is how often it is judged what is to be done, whatever is heard.
func (w *watcher) ticks() time.Duration {
	if w.belief.State == failover.Alive {
		return everyMember / 2 // and with each look
	}
	return everySuspect
}

// adopt takes the group as it is now: each member has a prober.
func (w *watcher) adopt(ctx context.Context, probing *sync.WaitGroup, r reading) {
	g := r.g
	if g.Epoch < w.g.Epoch {
		return // an older reading
	}
	w.knew = r.heard
	policy, active := w.g.Policy, w.g.Active
	if w.g = g; policy != g.Policy || active != g.Active { // what is wrong with the group goes by that
		w.find()
	}
	if active != g.Active {
		w.active()
	}
	w.sight.See(g.Lease, time.Now())
	w.calm.see(g.Failed, time.Now())
	var access *keep.Access // read only if a member is new: groups are looked at four times a second
	names := map[string]bool{}
	for _, m := range g.Members {
		names[m.Name] = true
		p := w.probers[m.Name]
		if p != nil && !w.shutOut(m.Name) {
			continue
		}
		if access == nil {
			a, err := w.d.Room.Access(ctx, g.Name)
			if err != nil {
				return
			}
			access = &a
		}
		t, err := access.Target(m.Name)
		if err != nil {
			w.once("target "+m.Name, fleet.SeverityWarning, fmt.Sprintf("%s of %s cannot be asked: %v", m.Name, g.Name, err))
			continue
		}
		if p != nil && p.target.Secret() == t.Secret() {
			continue
		}
		if p != nil {
			w.stops[m.Name]()
		}
		p = &prober{name: m.Name, target: t, tell: w.looks, late: w.late, poke: make(chan struct{}, 1), every: make(chan time.Duration, 1)}
		cctx, cancel := context.WithCancel(ctx)
		w.probers[m.Name], w.stops[m.Name] = p, cancel
		begins := w.since
		probing.Go(func() {
			if delay.For(cctx, time.Until(begins)) == nil {
				p.run(cctx, w.pace(m))
			}
		})
	}
	for name := range w.probers {
		if !names[name] {
			w.stops[name]()
			delete(w.probers, name)
			delete(w.stops, name)
			delete(w.last, name)
			delete(w.ids, name)
			delete(w.had, name)
		}
	}
	w.watchPrimary()
}

// rereadEvery is how often the account of a member that refuses it is read again: somebody may have given another one.
const rereadEvery = 2 * time.Second

// shutOut reports whether a member may be asked by another account since: it refuses the one that it is asked by. It is so once in a while.
func (w *watcher) shutOut(name string) bool {
	if w.last[name].kind != string(mysql.ClassLogin) || time.Since(w.reread[name]) < rereadEvery {
		return false
	}
	w.reread[name] = time.Now()
	return true
}

// pace is how often a member is looked at.
func (w *watcher) pace(m group.Member) time.Duration {
	if m.Status == group.Primary || m.Status == group.Faulty {
		return everyPrimary
	}
	return everyMember
}

// watchPrimary begins anew when another member is the primary.
func (w *watcher) watchPrimary() {
	name := ""
	if i := w.g.Primary(); i >= 0 {
		name = w.g.Members[i].Name
	}
	expected := failover.Expected(w.g)
	if w.watch_ != nil && name == w.primary {
		w.watch_.Expected = expected
		return
	}
	w.primary, w.named, w.belief = name, time.Now(), failover.Belief{}
	w.watch_ = failover.NewWatch(w.d.patience, expected)
	w.known, w.noted, w.absent = failover.Known{Name: name}, time.Time{}, absent{}
	w.state.refused, w.state.after, w.state.awaits, w.state.left = nil, 0, "", nil
	w.heard, w.tended, w.opened = map[string]progress{}, time.Time{}, time.Time{}
	for _, m := range w.g.Members {
		if p := w.probers[m.Name]; p != nil {
			select {
			case <-p.every:
			default:
			}
			p.every <- w.pace(m)
		}
	}
}

// take takes a look at a member.
func (w *watcher) take(s seen) {
	if w.probers[s.name] == nil {
		return
	}
	w.last[s.name] = s
	if s.uuid != "" {
		w.ids[s.name] = s.uuid
	}
	if s.name == w.primary {
		w.watch_.Probed(failover.Probe{At: s.at, OK: s.kind == "", Kind: s.kind, Text: s.text, Full: s.full, Still: s.still})
		if s.kind == "" && s.open {
			w.opened = s.at
		}
		if s.kind == "" && !w.busy {
			w.known.At, w.known.Executed = s.at.UTC(), strings.ReplaceAll(s.executed, "\n", "")
			if w.known.UUID, w.known.ServerID = s.uuid, ""; !strings.Contains(s.uuid, "-") {
				w.known.UUID, w.known.ServerID = "", s.uuid
			}
		}
		w.suspect()
		return
	}
	if s.kind == "" {
		had := failover.Had{At: s.ended.UTC(), Received: s.executed}
		if len(s.channels) == 1 {
			had.Received = failover.Received(s.executed, s.channels[0].Received)
		}
		if w.watch_.Suspected() { // one that was started since may have thrown away what it had acknowledged
			had.Received = failover.Received(w.had[s.name].Received, had.Received)
		}
		w.had[s.name] = had
	}
	if s.open && s.kind == "" && w.primary != "" && w.d.Lead.Leader() {
		w.tended = time.Time{} // two writers: it is shut now
	}
	if i := w.g.Find(s.name); i >= 0 && (w.g.Members[i].Status == group.Secondary || w.g.Members[i].Status == group.Spare) {
		w.watch_.Heard(w.witness(s))
	}
	w.placed(s)
}

// witness reads what a replica says of the primary.
func (w *watcher) witness(s seen) failover.Witness {
	x := failover.Witness{Name: s.name, At: s.at, Answers: s.kind == "", Down: s.kind == "refused"}
	if len(s.channels) != 1 {
		return x
	}
	ch := s.channels[0]
	x.Follows = w.follows(ch.Status) && ch.Status.IORunning != "No"
	if w.follows(ch.Status) {
		x.Deaf = failover.Deaf(ch.Status)
	}
	x.Connected = ch.IORunning
	x.Beat = time.Duration(ch.BeatEvery * float64(time.Second))
	mark := fmt.Sprint(ch.SourceLog, ch.SourcePos, ch.Received, ch.Beats)
	p, ok := w.heard[s.name]
	switch {
	case !ok:
		p = progress{mark: mark, since: s.ended}
	case p.mark != mark:
		p.mark, p.at = mark, s.ended // it had heard that by then
	}
	w.heard[s.name] = p
	x.Heard, x.Since = p.at, p.since
	return x
}

// follows reports whether a channel leads to the primary.
func (w *watcher) follows(ch fleet.Channel) bool {
	i := w.g.Find(w.primary)
	return i >= 0 && (strings.EqualFold(ch.Source, w.g.Members[i].Address) || ch.SourceID != "" && (strings.EqualFold(ch.SourceID, w.known.UUID) || ch.SourceID == w.known.ServerID))
}

// suspect lets all members be looked at soon if the last look at the primary did not succeed: not if it was only late, as those at many others are.
func (w *watcher) suspect() {
	now, kind := time.Now(), w.last[w.primary].kind
	switch {
	case kind == "", kind == string(mysql.ClassTimeout) && w.crowd(now) && now.Sub(w.poked) < everyCrowd:
	default:
		w.poked = now
		w.pokeAll()
	}
}

// crowd reports whether the group is one of many that are late. One that has been so for long is down, and says nothing of the others.
func (w *watcher) crowd(now time.Time) bool {
	if since := w.belief.Since; !since.IsZero() && now.Sub(since) > lateFor {
		return w.d.crowd.there(now)
	}
	return w.d.crowd.is(&w.crowded, now)
}

// pokeAll lets all members be looked at soon.
func (w *watcher) pokeAll() {
	for _, p := range w.probers {
		select {
		case p.poke <- struct{}{}:
		default:
		}
	}
}

// judge decides what is to be done.
func (w *watcher) judge(ctx context.Context) {
	now := time.Now()
	before := w.belief
	w.belief = w.watch_.Belief(now)
	if before.State == failover.Dead && w.belief.Alone { // it was taken for dead: replicas that were stopped since do not let it live
		w.belief = before
	}
	if w.primary == "" {
		w.belief = failover.Belief{State: failover.Dead, Words: "the group has no primary"}
	}
	if w.watch_.Suspected() {
		w.suspect()
		w.inquire(ctx, now)
	} else if w.belief.State == failover.Alive {
		w.absent = absent{}
		w.waiting("")
		w.refused(nil)
		w.leaves(nil)
		w.state.after = 0
	}
	if w.belief.State != before.State && w.g.Active {
		w.tell(before)
		w.find()
	}
	if w.belief.State == failover.Dead && w.primary != "" && w.hurry != nil {
		w.hurry()
	}
	if w.busy || ctx.Err() != nil || !w.g.Active {
		return
	}
	complete := len(w.last) == len(w.probers) || now.Sub(w.since) >= everyMember
	if !w.d.Lead.Leader() {
		if complete && w.belief.State == failover.Alive && now.Sub(w.tended) >= max(watchEvery, tendPace(w.g, w.primary, w.belief, w.last, w.d.crowd.count())) {
			if leave, ok := w.d.turn(); ok {
				w.tended, w.busy = now, true
				c, name := w.looker(), w.g.Name
				go func() {
					defer leave()
					w.work <- w.tend(ctx, c, name, carry.Looks)
				}()
			}
		}
		return
	}
	claim := group.Claim{Holder: w.d.holder, Reign: w.d.Lead.Epoch(), Sight: &w.sight}
	if claim.Reign != w.reign { // what the one that led before left undone is not left waiting
		w.reign, w.tended = claim.Reign, time.Time{}
	}
	if !claim.May(w.g.Lease, now) { // somebody changes it
		return
	}
	switch {
	case w.belief.State == failover.Dead && w.primary != "":
		w.takeOver(ctx)
	case w.belief.Alone && w.primary != "" && !w.noted.Equal(w.belief.Since):
		w.silent(ctx)
	case now.Sub(w.tended) >= tendPace(w.g, w.primary, w.belief, w.last, w.d.crowd.count()) && complete:
		leave, ok := w.d.turn()
		if !ok && !urgent(w.g, w.primary, w.last) {
			return
		}
		w.tended = now
		c, name, care := w.looker(), w.g.Name, w.care()
		w.start(ctx, func(ctx context.Context) result {
			if ok {
				defer leave()
			}
			if r, was := w.goOn(ctx, c, name); was {
				return r
			}
			return w.tend(ctx, c, name, care)
		})
	}
}

// start does something in the background, one thing at a time. It ends when another controller may act.
func (w *watcher) start(ctx context.Context, f func(ctx context.Context) result) {
	w.busy = true
	go func() {
		ctx, end := w.d.Lead.Acting(ctx)
		defer end()
		w.work <- f(ctx)
	}()
}

// active writes down whether the group is looked after from now on.
func (w *watcher) active() {
	if w.g.Active {
		w.tended = time.Time{}
		w.event(0, w.g.Name+" is looked after again")
		return
	}
	w.state.seen, w.state.drains, w.told = nil, draining{}, map[string]bool{}
	w.event(0, "nobody looks after "+w.g.Name+" until risso group activate "+w.g.Name+": its clients go where they went")
}

// tell writes down that something else is believed.
func (w *watcher) tell(before failover.Belief) {
	text, severity := "", fleet.SeverityWarning
	switch w.belief.State {
	case failover.Dead:
		if w.primary == "" {
			w.event(fleet.SeverityCritical, w.g.Name+" has no primary: nobody takes writes until risso group promote "+w.g.Name)
			return
		}
		text, severity = fmt.Sprintf("%s, the primary of %s, is dead: %s", w.primary, w.g.Name, w.belief.Words), fleet.SeverityCritical
		if w.belief.Kind == failover.KindFull {
			text = fmt.Sprintf("%s, the primary of %s, answers, and nobody can write there: %s", w.primary, w.g.Name, w.belief.Words)
		}
	case failover.Unreachable:
		text = fmt.Sprintf("%s, the primary of %s: %s", w.primary, w.g.Name, w.belief.Words)
		if answers := func(s seen) bool { return s.kind == "" }; w.belief.Alone && slices.ContainsFunc(slices.Collect(maps.Values(w.last)), answers) {
			text += "; risso failover --group " + w.g.Name + " fails it over"
		}
	case failover.Unasked:
		text = fmt.Sprintf("%s, the primary of %s: %s", w.primary, w.g.Name, w.belief.Words)
	case failover.Alive:
		if before.State == "" || before.State == failover.Suspect {
			return
		}
		text, severity = fmt.Sprintf("%s, the primary of %s, answers again", w.primary, w.g.Name), fleet.SeverityInfo
	default:
		return
	}
	w.event(severity, text)
}

// event writes something down.
func (w *watcher) event(severity fleet.Severity, text string) {
	level := slog.LevelWarn // who looks at standard error at night sees what became of groups
	if severity == 0 || severity == fleet.SeverityInfo {
		level = slog.LevelInfo
	}
	w.d.Logger.Log(context.Background(), level, "group", "group", w.g.Name, "text", text)
	if w.d.Event != nil {
		w.d.Event(fleet.Event{Time: time.Now(), Kind: fleet.EventFailover, Severity: severity, Subject: w.g.Name, Text: text})
	}
}

// once writes something down, until it is told anew.
func (w *watcher) once(key string, severity fleet.Severity, text string) {
	if !w.told[key] {
		w.told[key] = true
		w.event(severity, text)
	}
}

// takeOver fails the group over, if that was asked for. What was cut off is brought to its end first, also if that is not.
func (w *watcher) takeOver(ctx context.Context) {
	now, stand := time.Now(), stands(w.g, w.last)
	if !w.state.again(now, stand) {
		return
	}
	denied := w.denied()
	if denied == "" && w.awaits(ctx, now) {
		w.silent(ctx)
		return
	}
	if paused := w.paused(); paused != "" && denied != "" {
		w.leaves(errors.New(paused))
	}
	w.state.tried, w.state.stood = now, stand
	key := fmt.Sprintf("dead %s %d", w.primary, w.g.Epoch)
	a := carry.Asked{Group: w.g.Name, By: "risso serve", From: w.primary, Automatic: true, Because: w.belief.Words, Known: w.knows(), Since: w.belief.Since}
	a.Known.Full = w.belief.Kind == failover.KindFull
	c := w.carrier()
	w.start(ctx, func(ctx context.Context) result {
		if r, was := w.goOn(ctx, c, a.Group); was {
			r.over = denied == ""
			tell := r.tell
			r.tell = func() {
				if w.state.ended(r.err, w.last); tell != nil {
					tell()
				}
			}
			return r
		}
		if denied != "" {
			err := c.Silent(ctx, a.Group, a.Known, a.Since)
			return result{err: err, what: writingDown + a.Group, tell: func() { w.once(key, fleet.SeverityCritical, denied) }}
		}
		j, err := c.Failover(ctx, a)
		r := result{err: err, over: true, what: "failover of " + a.Group}
		if err != nil {
			r.tell = func() {
				if w.state.ended(err, w.last); errors.Is(err, carry.ErrRefused) && !errors.Is(err, context.Canceled) {
					w.refused(err)
				}
			}
		}
		if j != nil && err == nil && j.Receipt != nil {
			r.tell = func() {
				w.event(fleet.SeverityCritical, fmt.Sprintf("%s follows %s as the primary of %s, epoch %d; %s", j.New, j.Old, j.Group, j.Epoch, j.Receipt.Words))
			}
		}
		return r
	})
}

// refused keeps why nobody was promoted, for who asks what is wrong; nil: somebody was, or the primary lives.
func (w *watcher) refused(err error) {
	if !sameError(w.state.refused, err) {
		w.state.refused = err
		w.find()
	}
}

// leaves keeps why a dead primary is not failed over by itself now, for who asks what is wrong; nil: it is, or it lives.
func (w *watcher) leaves(why error) {
	if !sameError(w.state.left, why) {
		w.state.left = why
		w.find()
	}
}

// sameError reports whether two errors say the same; nil says nothing.
func sameError(a, b error) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Error() == b.Error()
}

// denied is why the group is not failed over by itself; "": it is.
func (w *watcher) denied() string {
	if !w.d.Auto || !w.g.Policy.Automatic {
		return fmt.Sprintf("%s is not failed over automatically: risso failover --group %s does it", w.g.Name, w.g.Name)
	}
	if paused := w.paused(); paused != "" {
		return fmt.Sprintf("%s; risso failover --group %s does it", paused, w.g.Name)
	}
	return ""
}

// paused is that the group was failed over by itself, and is not so soon again; "": it was not, or that is long ago.
func (w *watcher) paused() string {
	pause := w.g.Policy.Pause
	if w.g.Failed.IsZero() || time.Since(w.calm.since) >= pause {
		return ""
	}
	return fmt.Sprintf("%s was failed over at %s: it is not failed over automatically again before %s", w.g.Name, w.g.Failed.Format(time.TimeOnly), w.calm.since.Add(pause).In(w.g.Failed.Location()).Format(time.TimeOnly))
}

// looker is a carrier whose looks end when the primary is dead.
func (w *watcher) looker() *carry.Carrier {
	c, hurry := w.carrier(), make(chan struct{})
	c.Hurry, w.hurry = hurry, sync.OnceFunc(func() { close(hurry) })
	return c
}

// carrier changes the group, as it is seen now.
func (w *watcher) carrier() *carry.Carrier {
	sight := w.sight
	return &carry.Carrier{Room: w.d.Room, Holder: w.d.holder, Limits: carry.DefaultLimits(), Hooks: w.d.Hooks, Contents: lost.FromMember, Lead: w.d.Lead, Sight: &sight, Opened: w.opened, Published: func(g *group.Group) {
		select {
		case w.posts <- g:
		default: // it is read from the room soon
		}
	}}
}

// done takes what came of something.
func (w *watcher) done(r result) {
	if r.tell != nil {
		r.tell()
	}
	if errors.Is(r.err, carry.ErrLost) && !w.d.Lead.Leader() {
		w.d.Logger.Info("group", "group", w.g.Name, "text", r.what+": another controller leads now, and goes on with it")
		return
	}
	told := r.err != nil && !errors.Is(r.err, group.ErrHeld) && (!errors.Is(r.err, context.Canceled) || errors.Is(r.err, carry.ErrSurprise))
	if told {
		w.once(r.what+": "+r.err.Error(), fleet.SeverityCritical, r.what+": "+r.err.Error())
	}
	switch {
	case !r.over:
	case told && !errors.Is(r.err, carry.ErrRefused) && w.belief.State == failover.Dead:
		w.leaves(r.err)
	case r.err == nil || told:
		w.leaves(nil)
	}
}

// show tells clients where they go.
func (w *watcher) show() {
	if w.busy && w.belief.State == failover.Dead && w.g.Active {
		return // who does it says so
	}
	heard := w.knew // not what it has heard since: the group may have been read before that
	if w.d.Lead.Sole() {
		heard = w.d.Lead.Heard()
	}
	w.d.Board.Tell(w.viewOf(w.g, heard), w.g.Members)
}

// viewOf is where clients go, as the group is, of which it is known that it was so at a moment.
func (w *watcher) viewOf(g *group.Group, heard time.Time) group.View {
	v := group.View{Group: g.Name, Epoch: g.Epoch, Since: g.Since, Seen: heard, Replicas: []group.Server{}, Unattended: !g.Active}
	if heard.IsZero() { // the primary may have been replaced while it was down
		v.NoPrimary = "this controller was started, and has not heard yet what was agreed on meanwhile"
		return v
	}
	if since := w.belief.Since; g.Active && w.belief.State == failover.Suspect && g.Epoch == w.g.Epoch && since.Before(v.Seen) { // an agent takes the view for a confirmation
		v.Seen = since
	}
	for _, m := range g.Members {
		s := group.Server{Name: m.Name, Address: m.Address, ID: w.ids[m.Name], Weight: m.Weight}
		last, ok := w.last[m.Name]
		switch {
		case m.Status == group.Primary && !g.Active && (!g.Moving || w.sight.Over(g.Lease, time.Now())): // who it is stays as it was, whatever is done to it meanwhile
			v.Primary = &s
		case m.Status == group.Primary && m.Name == w.primary && w.belief.State == failover.Dead && w.belief.Kind != failover.KindFull: // else who reads may stay
			v.NoPrimary = m.Name + " is dead" // without what counts up: each view that differs is told
		case m.Status == group.Primary && m.Name == w.primary && w.belief.Alone && w.belief.Kind == "refused":
			v.NoPrimary = "nothing listens at " + m.Name
		case m.Status == group.Primary && m.Name == w.primary && ok && last.kind == "" && last.at.After(w.named) && !last.open && len(last.channels) > 0: // a look before is of a replica
			v.NoPrimary = m.Name + " takes no writes, and replicates itself"
		case m.Status == group.Primary && m.Name == w.primary && supplanted(g, m.Name, w.named, w.last) != "":
			v.NoPrimary = fmt.Sprintf("%s takes no writes, and %s takes them, which is not the primary by what Risso knows", m.Name, supplanted(g, m.Name, w.named, w.last))
		case m.Status == group.Primary && g.Moving && !w.sight.Over(g.Lease, time.Now()):
			v.NoPrimary = m.Name + " hands over"
		case m.Status == group.Primary:
			v.Primary = &s
		case m.Status == group.Secondary && ok:
			if lag, reads := w.reads(last); reads {
				s.Lag = lag
				v.Replicas = append(v.Replicas, s)
			}
		}
	}
	if v.Primary == nil && v.NoPrimary == "" {
		v.NoPrimary = "the group has no primary"
	}
	return v
}
