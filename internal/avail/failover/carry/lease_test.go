package carry

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/store/state"
)

// reigns leads, or does not.
type reigns struct {
	epoch uint64
	sole  bool
	err   error
}

func (r *reigns) Epoch() uint64                { return r.epoch }
func (r *reigns) Sole() bool                   { return r.sole }
func (r *reigns) Verify(context.Context) error { return r.err }

// TestLease holds how a lease is taken over from a process whose clock is wrong: one that died, however far ahead its clock was; not one that lives, however far behind.
func TestLease(t *testing.T) {
	t.Parallel()
	st, err := state.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	room := &keep.Room{Docs: st, Who: "test"}
	if err := room.Add(t.Context(), &group.Group{Name: "g"}, keep.Access{}); err != nil {
		t.Fatal(err)
	}
	held := func(skew, length time.Duration, reign uint64) {
		t.Helper()
		if _, err := room.Change(t.Context(), "g", func(g *group.Group) error {
			g.Lease = group.Lease{}
			return g.Take(group.Claim{Holder: "dead", Reign: reign}, time.Now().Add(skew), length)
		}); err != nil {
			t.Fatal(err)
		}
	}
	holder := func() string {
		t.Helper()
		g, err := room.Group(t.Context(), "g")
		if err != nil {
			t.Fatal(err)
		}
		return g.Lease.Holder
	}
	limits := DefaultLimits()
	limits.Lease = 3 * time.Second
	carrier := func(lead Lead) *Carrier {
		return &Carrier{Room: room, Holder: NewHolder("test"), Limits: limits, Lead: lead}
	}
	nothing := func(context.Context, *group.Group) error { return nil }

	held(24*time.Hour, time.Second, 0)
	began := time.Now()
	if err := carrier(nil).leased(t.Context(), "g", nothing); err != nil || time.Since(began) < time.Second {
		t.Errorf("a dead holder whose clock was a day ahead: %v after %s", err, time.Since(began))
	}

	// Until is long past, and yet it lives: it renews.
	c, ready, done := carrier(nil), make(chan struct{}), make(chan error, 1)
	ctx, end := context.WithCancel(t.Context())
	go func() {
		done <- c.leased(ctx, "g", func(ctx context.Context, _ *group.Group) error {
			close(ready)
			<-ctx.Done()
			return nil
		})
	}()
	<-ready
	if _, err := room.Change(t.Context(), "g", func(g *group.Group) error { g.Lease.Until = g.Lease.Until.Add(-24 * time.Hour); return nil }); err != nil {
		t.Fatal(err)
	}
	if err := carrier(nil).leased(t.Context(), "g", nothing); !errors.Is(err, group.ErrHeld) || holder() != c.Holder {
		t.Errorf("a holder that lives, whose clock is a day behind: %v, now %s has it", err, holder())
	}
	end()
	if err := <-done; err != nil || holder() != "" {
		t.Errorf("it gives the lease up: %v, %s has it", err, holder())
	}

	// Of controllers, a later leadership goes on at once; one that is not confirmed does not.
	held(24*time.Hour, time.Hour, 4)
	if err := carrier(&reigns{epoch: 5, err: state.ErrNoLeader}).leased(t.Context(), "g", nothing); !errors.Is(err, state.ErrNoLeader) || holder() != "dead" {
		t.Errorf("one that does not lead: %v, %s has it", err, holder())
	}
	lead := &reigns{epoch: 5}
	c = carrier(lead)
	if err := c.leased(t.Context(), "g", func(ctx context.Context, g *group.Group) error {
		r := &run{Carrier: c, g: g}
		if err := r.holds(ctx); err != nil {
			t.Errorf("it has the lease, and leads: %v", err)
		}
		lead.err = state.ErrNoLeader
		if err := r.holds(ctx); !errors.Is(err, ErrLost) {
			t.Errorf("it does not lead any more: %v", err)
		}
		lead.err, lead.epoch = nil, 7
		if err := r.holds(ctx); !errors.Is(err, ErrLost) {
			t.Errorf("it leads again, and another one did meanwhile: %v", err)
		}
		return nil
	}); err != nil {
		t.Errorf("a later leadership: %v", err)
	}

	// What is not to stay half done goes on when it is interrupted, unless another controller may act then; not without the lease.
	for _, sole := range []bool{true, false} {
		lead = &reigns{epoch: 9, sole: sole}
		ctx, end := context.WithCancel(t.Context())
		err := carrier(lead).held(ctx, "g", func(ctx, lasting context.Context, _ *group.Group) error {
			end()
			<-ctx.Done()
			if lasting.Err() == nil != sole {
				t.Errorf("interrupted, the only controller: %t; what lasts: %v", sole, lasting.Err())
			}
			if _, err := room.Change(t.Context(), "g", func(g *group.Group) error { g.Lease.Holder = "other"; return nil }); err != nil {
				t.Error(err)
			}
			<-lasting.Done()
			if sole && !errors.Is(context.Cause(lasting), ErrLost) {
				t.Errorf("without the lease: %v", context.Cause(lasting))
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if _, err := room.Change(t.Context(), "g", func(g *group.Group) error { g.Lease.Holder = ""; return nil }); err != nil {
			t.Error(err)
		}
	}
}
