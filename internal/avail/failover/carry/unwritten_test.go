package carry

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/store/state"
)

// unsure are documents one of which is written, or not, and nobody learns which.
type unsure struct {
	documents
	fails func(state.Document) (fails, made bool)
}

func (u unsure) PutDocument(ctx context.Context, d state.Document) (state.Document, error) {
	fails, made := u.fails(d)
	if !fails {
		return u.documents.PutDocument(ctx, d)
	}
	if made {
		if _, err := u.documents.PutDocument(ctx, d); err != nil {
			return state.Document{}, err
		}
	}
	return state.Document{}, state.ErrUnsure
}

// TestUnwritten: how far a change has come cannot be written down once somebody may take writes already. It is not called failed: it is gone on with, and nothing is lost.
func TestUnwritten(t *testing.T) {
	t.Parallel()
	u := newTrio(t, "mariadb", group.Policy{Automatic: true, SemiSync: true, Rejoin: true})
	for _, at := range []string{`"status":"PRIMARY"`, `"stage":"published"`, `"stage":"pointing"`, `"stage":"done"`} {
		for _, made := range []bool{false, true} {
			g, old := u.primary()
			u.write(old, time.Minute)
			u.complete()
			promoting, failed := false, false
			c := u.carrier()
			c.Room = &keep.Room{Who: "test", Docs: unsure{u.room.Docs, func(d state.Document) (bool, bool) {
				promoting = promoting || strings.Contains(string(d.Body), `"stage":"promoting"`)
				if !promoting || failed || d.Kind == "takeover" == strings.Contains(at, "status") || !strings.Contains(string(d.Body), at) || strings.Contains(at, "status") && strings.Contains(string(d.Body), `"moving":true`) {
					return false, false
				}
				failed = true
				return true, made
			}}}
			_, err := c.Switchover(t.Context(), Asked{Group: "g", By: "test"})
			if !failed || !errors.Is(err, ErrUnwritten) && at != `"stage":"done"` || err == nil {
				t.Fatalf("%s, made %t: written down %t, got %v; want that it could not be written down", at, made, !failed, err)
			}
			j, err := u.carrier().Resume(t.Context(), Asked{Group: "g", By: "test"})
			if over := j == nil && at == `"stage":"done"` && made; err != nil || !over && (j == nil || j.Stage != failover.Done) {
				t.Fatalf("%s, made %t: resumed: got %+v, %v", at, made, j, err)
			}
			now, _ := u.primary()
			if now.Members[now.Primary()].Name == g.Members[g.Primary()].Name {
				t.Errorf("%s, made %t: %s is the primary still", at, made, old.Name)
			}
			u.tended()
		}
	}
	u.complete()
}
