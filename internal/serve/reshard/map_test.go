package reshard_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/shard"
	"github.com/rissodb/risso/internal/avail/shard/keep"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/serve/reshard"
	"github.com/rissodb/risso/internal/store/state"
)

// raise gives a map the next epoch, though rows of it may move.
func (s *story) raise() {
	s.t.Helper()
	docs := s.mover.Maps.Docs
	d, err := docs.Document(s.t.Context(), "shard_map", "shop")
	var m shard.Map
	if err == nil {
		err = d.Decode(&m)
	}
	if err == nil {
		m.Epoch++
		m.Move = ""
		d.Body, err = json.Marshal(m)
	}
	if err == nil {
		_, err = docs.PutDocument(s.t.Context(), d)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestMapChanged holds that a move does not take a change of the map by somebody else for its own: the old rows stay, which are the only ones that the map
// names.
func TestMapChanged(t *testing.T) {
	const spec = "mariadb-10.11"
	sandboxtest.Need(t, spec)
	s := newStory(t, spec, shard.Map{Name: "shop", Kind: shard.Range, Keys: shard.Integer, Epoch: 5, Tables: []shard.Table{{Schema: "shop", Name: "orders", Column: "customer"}},
		Shards: []shard.Shard{{Name: "all", Group: "west"}}})
	ctx := t.Context()
	asked := shard.Asked{Shard: "all", New: "high", At: "190", To: "east"}
	p, err := s.mover.Plan(ctx, "shop", asked, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.mover.Maps.Change(ctx, "shop", func(m *shard.Map) error { m.Epoch++; return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := s.mover.Run(ctx, p); !errors.Is(err, reshard.ErrChanged) {
		t.Errorf("a plan by another map was carried out: %v", err)
	}
	if _, err := s.mover.Resume(ctx, "shop"); !errors.Is(err, reshard.ErrNothing) {
		t.Errorf("it goes on: %v", err)
	}
	s.audit(byCustomer)
	for _, resumed := range []bool{true, false} {
		m := *s.mover
		m.Before = func(stage shard.Stage) error {
			if stage == shard.Switching {
				s.raise()
			}
			return nil
		}
		if p, err = m.Plan(ctx, "shop", asked, false); err != nil {
			t.Fatal(err)
		}
		if j, err := m.Run(ctx, p); !errors.Is(err, reshard.ErrChanged) || j.Stage != shard.Copying {
			t.Errorf("the map was switched over a change: %v, %s", err, j.Stage)
		}
		if resumed {
			if _, err := s.mover.Resume(ctx, "shop"); !errors.Is(err, reshard.ErrChanged) {
				t.Errorf("a move by another map goes on: %v", err)
			}
		}
		if j, err := s.mover.Undo(ctx, "shop"); err != nil || j.Stage != shard.Undone {
			t.Fatal(err)
		}
		s.audit(byCustomer)
	}
}

// TestSwitchUnknown holds that a process that was killed before it could say whether it switched the map is taken to have done so only where the map is its own,
// and not by its epoch.
func TestSwitchUnknown(t *testing.T) {
	const spec = "mariadb-10.11"
	sandboxtest.Need(t, spec)
	s := newStory(t, spec, shard.Map{Name: "shop", Kind: shard.Range, Keys: shard.Integer, Epoch: 5, Tables: []shard.Table{{Schema: "shop", Name: "orders", Column: "customer"}},
		Shards: []shard.Shard{{Name: "all", Group: "west"}}})
	ctx := t.Context()
	s.cutBefore(shard.Switching, shard.Asked{Shard: "all", New: "high", At: "190", To: "east"})
	s.raise()
	if plan, err := s.mover.PlanUndo(ctx, "shop"); err != nil {
		t.Errorf("%v, %v", plan, err)
	}
	if _, err := s.mover.Resume(ctx, "shop"); !errors.Is(err, reshard.ErrChanged) {
		t.Errorf("it went on: %v", err)
	}
	if _, err := s.mover.Undo(ctx, "shop"); err != nil {
		t.Error(err)
	}
	s.audit(byCustomer)
}

// changedAmid is documents in which somebody else changes a map after it was read once.
type changedAmid struct {
	*state.Store
	read   bool
	change func()
}

func (c *changedAmid) Document(ctx context.Context, kind, key string) (state.Document, error) {
	if kind == "shard_map" {
		if c.read {
			c.change()
		}
		c.read = true
	}
	return c.Store.Document(ctx, kind, key)
}

// TestConfirmRefused holds that a map which cannot be confirmed, as somebody else changes it, is told nevertheless.
func TestConfirmRefused(t *testing.T) {
	const spec = "mariadb-10.11"
	sandboxtest.Need(t, spec)
	s := newStory(t, spec, shard.Map{Name: "shop", Kind: shard.Range, Keys: shard.Integer, Epoch: 1, Tables: []shard.Table{{Schema: "shop", Name: "orders", Column: "customer"}},
		Shards: []shard.Shard{{Name: "all", Group: "west"}}})
	if _, err := s.mover.Maps.Restored(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	m := *s.mover
	m.Maps = &keep.Room{Docs: &changedAmid{s.mover.Maps.Docs.(*state.Store), false, s.raise}, Who: "test"}
	mp, at, err := m.Confirm(t.Context(), "shop", false)
	if !errors.Is(err, keep.ErrOther) || at == nil || mp == nil || mp.Restored.IsZero() {
		t.Errorf("%+v, %+v, %v", mp, at, err)
	}
}
