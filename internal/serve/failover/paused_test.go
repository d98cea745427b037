package failover

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/agree"
)

// TestPaused: a primary that dies soon after its group was failed over by itself is told, for as long as it is dead.
func TestPaused(t *testing.T) {
	t.Parallel()
	s := newStage(t, "mariadb", 1, group.Policy{Automatic: true, Pause: time.Hour})
	p := s.box.Nodes[0]
	if _, err := s.room.Change(t.Context(), "g", func(g *group.Group) error { g.Failed = time.Now().UTC(); return nil }); err != nil {
		t.Fatal(err)
	}
	s.watch(failover.DefaultPatience())
	s.rows(p, 1, s.box.Nodes[1])
	s.seen(s.box.Nodes...)
	s.kill(p)
	await.Until(t, func() bool { return strings.Contains(s.finding("failover.manual").Why, "g was failed over at ") }, "it to be said why nobody follows")
	if f := s.finding("failover.manual"); f.Severity != fleet.SeverityCritical || f.Remedy != "risso failover --group g" {
		t.Errorf("the finding: %+v", f)
	}
	if _, now := s.now(); now != p {
		t.Fatalf("%s was promoted in the pause", now.Name)
	}
	s.start(p)
	await.Until(t, func() bool { return s.finding("failover.manual").ID == "" }, "nothing to be said of a primary that lives")
}

// TestLeft: a failover that failed is told while the primary is dead, until one succeeds or is refused, or the primary is another one.
func TestLeft(t *testing.T) {
	var found []fleet.Finding
	g := &group.Group{Name: "g", Active: true, Policy: group.Policy{Automatic: true}, Members: []group.Member{{Name: "a", Status: group.Primary}, {Name: "b", Status: group.Secondary}}}
	w := newWatcher(&Desk{Options: Options{Auto: true, Lead: agree.Alone{}, Logger: slog.New(slog.DiscardHandler), Found: func(_, _ string, list []fleet.Finding) { found = list }}}, reading{g: g}, 0, nil)
	w.primary, w.belief = "a", failover.Belief{State: failover.Dead}
	failed := errors.New("b did not apply what it received in time")
	for _, c := range []struct {
		what string
		do   func()
		why  string
	}{
		{"it failed", func() { w.done(result{err: failed, over: true}) }, failed.Error()},
		{"somebody changes the group", func() { w.done(result{err: group.ErrHeld, over: true}) }, failed.Error()},
		{"something else is done", func() { w.done(result{}) }, failed.Error()},
		{"it was refused", func() {
			w.done(result{err: fmt.Errorf("%w: nobody", carry.ErrRefused), over: true})
		}, ""},
		{"it failed again", func() { w.done(result{err: failed, over: true}) }, failed.Error()},
		{"another one is the primary", func() {
			w.g = &group.Group{Name: "g", Active: true, Policy: g.Policy, Members: []group.Member{{Name: "a", Status: group.Faulty}, {Name: "b", Status: group.Primary}}}
			w.watchPrimary()
			w.belief = failover.Belief{State: failover.Dead}
			w.find()
		}, ""},
	} {
		c.do()
		why := ""
		for _, f := range found {
			if f.ID == "failover.manual" {
				why = f.Why
			}
		}
		if why != c.why {
			t.Errorf("%s: %q, want %q", c.what, why, c.why)
		}
	}
}

// TestPausedByOwnClock: the pause after a failover is as long as it is to be, whatever the clock of the one that led said.
func TestPausedByOwnClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &group.Group{Name: "g", Active: true, Policy: group.Policy{Automatic: true, Pause: time.Hour}, Failed: time.Now().Add(-20 * time.Minute)}
		w := newWatcher(&Desk{Options: Options{Lead: agree.Alone{}, Logger: slog.New(slog.DiscardHandler)}}, reading{g: g}, 0, nil)
		adopt := func(failed time.Time) {
			now := *g
			now.Failed = failed
			w.adopt(t.Context(), nil, reading{g: &now})
		}
		lasts := func(what string, want time.Duration) {
			t.Helper()
			time.Sleep(want - time.Second)
			adopt(w.g.Failed)
			if w.paused() == "" {
				t.Errorf("%s: the pause is over before %s", what, want)
			}
			time.Sleep(time.Second)
			if text := w.paused(); text != "" {
				t.Errorf("%s: after %s: %s", what, want, text)
			}
		}
		adopt(g.Failed)
		lasts("it was failed over before this process began", 40*time.Minute)
		adopt(time.Now().Add(48 * time.Hour))
		lasts("by a clock that is ahead", time.Hour)
		adopt(time.Now().Add(-48 * time.Hour))
		lasts("by a clock that is behind", time.Hour)
		w.calm = calm{}
		adopt(time.Now().Add(48 * time.Hour))
		lasts("by a clock that is ahead, before this process began", time.Hour)
	})
}
