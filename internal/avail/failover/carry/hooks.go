package carry

import (
	"context"
	"fmt"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/publish"
)

// happens runs the hooks of a moment, and says how they ran. Its error is that of hooks which are required.
func (r *run) happens(ctx context.Context, m publish.Moment) (publish.HookResult, error) {
	res := r.Hooks.Run(ctx, r.happening(m))
	for _, h := range res.Runs {
		words := "it ran"
		if h.Before {
			words = "it ran before"
		}
		if h.Failed != "" {
			words = h.Failed
		}
		r.words("hook "+h.Hook, "%s: %s", m, words)
	}
	return res, res.Stop(r.Hooks)
}

// happening is what hooks are told.
func (r *run) happening(m publish.Moment) publish.Happening {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := publish.Happening{Moment: m, Group: r.j.Group, Epoch: r.j.Epoch, Old: r.j.Old, New: r.j.New, Because: r.j.Because, OldAddress: r.address(r.j.Old), NewAddress: r.address(r.j.New)}
	if h.Because == "" {
		h.Because = r.j.Problem
	}
	if m == publish.Failed && r.j.Automatic { // it is tried again every few seconds
		h.Once = fmt.Sprintf("after-%020d", r.g.Epoch)
	}
	if rec := r.j.Receipt; rec != nil {
		h.Lost, h.LostKnown = rec.Lost, rec.Verdict == failover.NothingLost || rec.Verdict == failover.Lost
	}
	return h
}

// address is that of a member; "": there is none of the name.
func (r *run) address(name string) string {
	if i := r.g.Find(name); i >= 0 && name != "" {
		return r.g.Members[i].Address
	}
	return ""
}

// fencedByHooks lets hooks keep the old primary from writes, where asking it did not prove that it takes none.
func (r *run) fencedByHooks(ctx context.Context, proven bool) error {
	if proven || r.j.Old == "" {
		return nil
	}
	if _, err := r.happens(ctx, publish.Fence); err != nil {
		return fmt.Errorf("%w: %s could not be kept from writes: %w", ErrRefused, r.j.Old, err)
	}
	return nil
}

// wellFor are the hooks when all is done.
func (r *run) wellFor(ctx context.Context) {
	m := publish.AfterFailover
	if r.j.Kind == failover.Switchover {
		m = publish.AfterSwitchover
	}
	_, _ = r.happens(ctx, m) // it is in the journal, and nothing follows from it
}

// before are the hooks before anything is changed.
func (r *run) before(ctx context.Context) error {
	m := publish.BeforeFailover
	if r.j.Kind == failover.Switchover {
		m = publish.BeforeSwitchover
	}
	if _, err := r.happens(ctx, m); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return nil
}
