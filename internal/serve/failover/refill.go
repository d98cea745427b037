package failover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve/rebuild"
)

// filling is a member that is rebuilt, beside all else that is done for the group.
type filling struct {
	member, primary, holder string
	stop                    context.CancelCauseFunc
	told                    string
}

// rebuilt is what came of it.
type rebuilt struct {
	member string
	rec    *keep.Rebuilt
	err    error
}

// How a rebuild is done that nobody waits for.
const (
	refillThreads = 2
	refillWait    = 5 * time.Minute // for each thing that is waited for
	refillAgain   = 5 * time.Second // between two looks for a member to rebuild
)

// refill rebuilds a member that has transactions of its own, if the group's policy says so; one at a time. It is stopped when something else is done to the group.
func (w *watcher) refill(ctx context.Context) {
	now := time.Now()
	if f := w.filling; f != nil {
		if why := w.disturbed(f, now); why != "" {
			f.stop(fmt.Errorf("%w: %s", rebuild.ErrStopped, why))
			return
		}
		if i := w.g.Find(f.member); i >= 0 && w.g.Members[i].Rebuild != nil && w.g.Members[i].Rebuild.From != "" && f.told == "" {
			f.told = w.g.Members[i].Rebuild.From
			w.event(fleet.SeverityInfo, fmt.Sprintf("%s of %s is rebuilt from %s", f.member, w.g.Name, f.told))
		}
		return
	}
	auto := w.d.Auto && w.g.Active && w.g.Policy.Automatic && w.g.Policy.Rebuild && w.d.Rebuilds != ""
	if !auto || ctx.Err() != nil || !w.d.Lead.Leader() || w.busy || w.belief.State != failover.Alive || now.Sub(w.state.refilled) < refillAgain || w.held(now, "") {
		return
	}
	member := rebuild.Due(w.g, func(name string) bool { s, ok := w.last[name]; return ok && s.kind == "" && !s.open }, now)
	if member == "" {
		return
	}
	w.state.refilled = now
	fctx, stop := context.WithCancelCause(ctx)
	f := &filling{member: member, primary: w.primary, holder: carry.NewHolder("rebuild"), stop: stop}
	w.filling = f
	log := w.d.Logger.With("group", w.g.Name, "member", member)
	all := rebuild.Members{Room: w.d.Room, Holder: f.holder, Dir: w.d.Rebuilds, Limits: rebuild.DefaultLimits(), Threads: refillThreads, Wait: refillWait,
		Say: func(text string) { log.Info("rebuild", "text", text) }}
	a := rebuild.Asked{Group: w.g.Name, Member: member, By: "risso serve", Due: true}
	go func() { // ends with fctx at the latest
		defer stop(nil)
		rec, err := all.Do(fctx, a)
		w.filled <- rebuilt{member, rec, err}
	}()
}

// held reports whether somebody else than a holder changes the group.
func (w *watcher) held(now time.Time, holder string) bool {
	l := w.g.Lease
	return l.Holder != "" && l.Holder != holder && l.Holder != w.d.holder && !w.sight.Over(l, now)
}

// disturbed says why a rebuild has to stop; "": it need not.
func (w *watcher) disturbed(f *filling, now time.Time) string {
	switch {
	case !w.g.Active:
		return "nobody is to look after " + w.g.Name
	case !w.d.Lead.Leader():
		return "another controller leads"
	case w.belief.State == failover.Dead:
		return f.primary + ", the primary, is dead"
	case w.primary != f.primary:
		return fmt.Sprintf("the primary is not %s any more", f.primary)
	case w.held(now, f.holder):
		return w.g.Lease.Holder + " changes the group"
	}
	return ""
}

// refilled says what came of a rebuild.
func (w *watcher) refilled(r rebuilt) {
	switch {
	case r.err == nil:
		w.event(fleet.SeverityInfo, rebuild.Words(r.rec))
	case errors.Is(r.err, rebuild.ErrStopped) || errors.Is(r.err, context.Canceled):
		w.once("stopped "+r.err.Error(), fleet.SeverityInfo, fmt.Sprintf("the rebuild of %s of %s was stopped, and goes on later: %v", r.member, w.g.Name, r.err))
	case errors.Is(r.err, group.ErrHeld): // somebody else was faster
	default:
		w.event(fleet.SeverityWarning, fmt.Sprintf("the rebuild of %s of %s failed: %v", r.member, w.g.Name, r.err))
	}
	w.find()
}
