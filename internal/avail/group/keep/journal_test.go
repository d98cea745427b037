package keep

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/store/state"
)

// testRoom is a room of its own, which ends with the test.
func testRoom(t *testing.T) *Room {
	t.Helper()
	st, err := state.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return &Room{Docs: st, Who: "test"}
}

// TestPrune: changes that changed nothing do not add up; those that did, one that is under way, and those of other groups stay.
func TestPrune(t *testing.T) {
	ctx := t.Context()
	r, epoch, ended := testRoom(t), uint64(0), time.Now().UTC()
	write := func(n int, j failover.Journal) {
		t.Helper()
		for range n {
			epoch++
			j.Epoch = epoch
			if _, err := r.Begin(ctx, j); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(2, failover.Journal{Group: "g", Kind: failover.Failover, Stage: failover.Done, Receipt: &failover.Receipt{}, Ended: ended})
	write(undoneKept+9, failover.Journal{Group: "g", Kind: failover.Failover, Stage: failover.Undone, Ended: ended})
	write(3, failover.Journal{Group: "g", Kind: failover.Switchover, Stage: failover.Undone, Ended: ended})
	write(1, failover.Journal{Group: "g", Kind: failover.Failover, Stage: failover.Stopping})
	write(undoneKept+5, failover.Journal{Group: "h", Kind: failover.Failover, Stage: failover.Undone, Ended: ended})
	if err := r.Prune(ctx, "g"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		group string
		want  int
	}{{"g", 2 + undoneKept + 3 + 1}, {"h", undoneKept + 5}, {"", 2*undoneKept + 11}} {
		list, err := r.Journals(ctx, c.group)
		if err != nil || len(list) != c.want {
			t.Errorf("%q has %d changes (%v), want %d", c.group, len(list), err, c.want)
		}
		if c.group == "g" && (list[0].Receipt == nil || list[2].Epoch != 2+9+1) {
			t.Errorf("the oldest that stay are those of epochs %d and %d", list[0].Epoch, list[2].Epoch)
		}
	}
	if j, err := r.Unfinished(ctx, "g"); err != nil || j == nil || j.Stage != failover.Stopping {
		t.Errorf("unfinished: %+v, %v", j, err)
	}
}
