package reshard_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rissodb/risso/internal/avail/shard"
	"github.com/rissodb/risso/internal/avail/shard/keep"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/serve/reshard"
	"github.com/rissodb/risso/internal/store/state"
)

// late is documents of a process that is stopped right before it writes another map.
type late struct {
	*state.Store
	stopped, thaw chan struct{}
}

func (l *late) PutDocument(ctx context.Context, d state.Document) (state.Document, error) {
	var m shard.Map
	if d.Kind == "shard_map" && d.Decode(&m) == nil && m.Move != "" {
		select {
		case <-l.stopped: // it was, once
		default:
			close(l.stopped)
			<-l.thaw
		}
	}
	return l.Store.PutDocument(ctx, d)
}

// TestLateSwitch holds that a process which is stopped when all that is left to do is to switch the map does not do so when it thaws, after another one has taken
// the move back or has gone on with it.
func TestLateSwitch(t *testing.T) {
	const spec = "mariadb-10.11"
	sandboxtest.Need(t, spec)
	s := newStory(t, spec, shard.Map{Name: "shop", Kind: shard.Range, Keys: shard.Integer, Epoch: 1, Tables: []shard.Table{{Schema: "shop", Name: "orders", Column: "customer"}},
		Shards: []shard.Shard{{Name: "all", Group: "west"}}})
	ctx := t.Context()
	cut := errors.New("cut off")
	for _, c := range []struct {
		what string
		do   func() error
		want error
	}{
		{"taken back", func() error { _, err := s.mover.Undo(ctx, "shop"); return err }, nil},
		{"gone on with", func() error {
			m := *s.mover
			m.Before = func(shard.Stage) error { return cut }
			_, err := m.Resume(ctx, "shop")
			return err
		}, cut},
	} {
		docs := &late{s.mover.Maps.Docs.(*state.Store), make(chan struct{}), make(chan struct{})}
		m := *s.mover
		m.Maps = &keep.Room{Docs: docs, Who: "test"}
		p, err := m.Plan(ctx, "shop", shard.Asked{Shard: "all", New: "high", At: "190", To: "east"}, false)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := m.Run(ctx, p)
			ended <- err
		}()
		select {
		case <-docs.stopped:
		case err := <-ended:
			t.Fatalf("it did not come to the switch: %v", err)
		}
		if err := c.do(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.what, err)
		}
		close(docs.thaw)
		if err := <-ended; !errors.Is(err, reshard.ErrTaken) {
			t.Errorf("%s: the one that thawed did not notice: %v", c.what, err)
		}
		if mp, err := s.mover.Maps.Map(ctx, "shop"); err != nil || mp.Epoch != 1 {
			t.Errorf("%s: the map has epoch %d, %v", c.what, mp.Epoch, err)
		}
		if c.want != nil {
			if _, err := s.mover.Undo(ctx, "shop"); err != nil {
				t.Error(err)
			}
		}
		s.audit(byCustomer)
	}
}
