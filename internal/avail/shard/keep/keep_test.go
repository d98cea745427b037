package keep_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/shard"
	"github.com/rissodb/risso/internal/avail/shard/keep"
	"github.com/rissodb/risso/internal/store/state"
)

// newRoom has a map by list, m, with one shard in group west.
func newRoom(t *testing.T) (*keep.Room, *state.Store) {
	t.Helper()
	st, err := state.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	r := &keep.Room{Docs: st, Who: "test"}
	if err := r.Add(t.Context(), &shard.Map{Name: "m", Kind: shard.List, Keys: shard.Text, Epoch: 5, Tables: []shard.Table{{Schema: "shop", Name: "orders", Column: "country"}},
		Shards: []shard.Shard{{Name: "eu", Group: "west", Values: []string{"DE", "FR"}}}}); err != nil {
		t.Fatal(err)
	}
	return r, st
}

// planned is a move of shard eu to group east.
func planned(t *testing.T, r *keep.Room) shard.Move {
	t.Helper()
	m, err := r.Map(t.Context(), "m")
	if err != nil {
		t.Fatal(err)
	}
	asked := shard.Asked{Shard: "eu", New: "eu", To: "east"}
	part, from, after, err := m.Plan(asked, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	after.Move = "01020304"
	return shard.Move{ID: after.Move, Map: "m", Asked: asked, Part: part, From: from, After: after, Stage: shard.Copying}
}

// TestBeginAndChange holds that of a move that begins and a change of the map at once one is refused, whichever comes first.
func TestBeginAndChange(t *testing.T) {
	ctx := t.Context()
	add := func(m *shard.Map) error { return m.Add("us", "south", []string{"US"}, time.Now()) }
	t.Run("changed since it was planned", func(t *testing.T) {
		r, _ := newRoom(t)
		move := planned(t, r)
		if _, err := r.Change(ctx, "m", add); err != nil {
			t.Fatal(err)
		}
		if j, err := r.Begin(ctx, move); j != nil || !errors.Is(err, keep.ErrOther) {
			t.Errorf("%+v, %v", j, err)
		}
		if err := r.Still(ctx, "m"); err != nil {
			t.Errorf("a move is under way that did not begin: %v", err)
		}
	})
	t.Run("begun amid the change", func(t *testing.T) {
		r, _ := newRoom(t)
		_, err := r.Change(ctx, "m", func(m *shard.Map) error {
			if _, err := r.Begin(ctx, planned(t, r)); err != nil {
				t.Error(err)
			}
			return add(m)
		})
		if m, again := r.Map(ctx, "m"); !errors.Is(err, keep.ErrOther) || again != nil || m.Epoch != 5 {
			t.Errorf("%v: %+v, %v", err, m, again)
		}
	})
}

// TestMoving holds that a move needs both its groups until it has ended, whatever the map says.
func TestMoving(t *testing.T) {
	ctx := t.Context()
	r, _ := newRoom(t)
	j, err := r.Begin(ctx, planned(t, r))
	if err != nil {
		t.Fatal(err)
	}
	held := func(want map[string]int) {
		t.Helper()
		for group, n := range want {
			if maps, err := r.Moving(ctx, group); err != nil || len(maps) != n {
				t.Errorf("group %s: %v, %v, want %d", group, maps, err, n)
			}
		}
	}
	held(map[string]int{"west": 1, "east": 1, "south": 0})
	j.Stage, j.Ended = shard.Done, time.Now()
	if err := j.Save(ctx); err != nil {
		t.Fatal(err)
	}
	held(map[string]int{"west": 0, "east": 0})
}
