package serve

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/series"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/keep"
	"github.com/rissodb/risso/internal/watch/rules"
)

// ownLook looks after Risso itself: what is wrong with it is found, kept and rings as what is wrong with a server. It belongs to the
// goroutine of the selfMeter.
type ownLook struct {
	w      *watch
	dir    string
	keeper keep.Keeper
	judge  rules.Judge
	own    rules.Own
	silent map[string]bool // at the last look

	mu    sync.Mutex
	found []fleet.Finding // at the last look
}

// silentAfter is how long nothing may come of an instance.
const silentAfter = 30 * time.Second

// ownEvery is how many seconds pass between two looks.
const ownEvery = 10

// lookAfterSelf takes up what was wrong with Risso when it ended.
func (w *watch) lookAfterSelf(dir string) {
	l := &ownLook{w: w, dir: dir}
	l.keeper.Resume(w.held[selfID])
	w.keepers.Store(selfID, &l.keeper)
	w.self.own = l
}

// look finds what is wrong, with what the store of metrics says of itself.
func (l *ownLook) look(now time.Time, st series.Stats) {
	o := rules.Own{Dir: l.dir, Full: st.DiskFull, LostEvents: l.w.lostEver.Load(), LostMinutes: st.LostFrames, LostAt: l.own.LostAt}
	o.Silent = l.silence(now)
	if g := l.w.stateGone.Load(); g != nil {
		o.State, o.Rescued = g.path, g.copied
	}
	if c := l.w.controllers.Load(); c != nil {
		o.Controllers = *c
	}
	if o.LostEvents+o.LostMinutes > l.own.LostEvents+l.own.LostMinutes {
		o.LostAt = now
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(l.dir, &fs); err == nil { // else it is not known
		o.Size, o.Avail = float64(fs.Blocks)*float64(fs.Bsize), float64(fs.Bavail)*float64(fs.Bsize)
	}
	l.own = o
	verdict := l.judge.Judge(&rules.Snapshot{Now: now, Up: true, Instance: fleet.Instance{ID: selfID, Kind: fleet.KindHost}, Notes: rules.OwnFindings(o, now)})
	l.mu.Lock()
	l.found = verdict.Findings
	l.mu.Unlock()
	if found, due := l.keeper.Look(selfID, now, verdict, nil); due && !l.w.enqueue(func(ctx context.Context, s *state.Store) error { return l.w.keepFindings(ctx, s, found) }) {
		l.keeper.Again()
	}
	l.w.enqueue(l.w.lookForState) // what was found goes first
}

// gone is a file of the state that nobody else can open any more.
type gone struct{ path, copied string }

// lookForState looks whether the file of the state is still there.
func (w *watch) lookForState(ctx context.Context, s *state.Store) error {
	copied, err := s.Gone(ctx)
	switch {
	case err != nil:
		w.logger.Warn("the state", "err", err)
		w.stateGone.Store(&gone{s.Path(), ""})
	case copied != "":
		w.stateGone.Store(&gone{s.Path(), copied})
	default:
		w.stateGone.Store(nil)
	}
	return nil
}

// silence is of which instances nothing came for long, at this look and at the last: a machine that slept has no news of anybody at first.
func (l *ownLook) silence(now time.Time) (list []rules.Silent) {
	silent := map[string]bool{}
	for _, r := range l.w.board.Fleet(now) {
		seen := time.Unix(r.Seen, 0)
		if r.Seen == 0 || now.Sub(seen) < silentAfter {
			continue
		}
		silent[r.ID] = true
		if l.silent[r.ID] {
			list = append(list, rules.Silent{Name: r.Name, Seen: seen})
		}
	}
	l.silent = silent
	return list
}

// findings are what was wrong with Risso at the last look.
func (l *ownLook) findings() []fleet.Finding {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.found)
}
