package carry

import (
	"errors"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/publish"
)

// TestStopped: what stops a switchover before anything is changed says so in one sentence.
func TestStopped(t *testing.T) {
	u := newTrio(t, "mariadb", group.Policy{})
	_, p := u.primary()
	c := u.carrier()
	c.Hooks = &publish.Hooks{Docs: u.room.Docs, Now: time.Now, List: []publish.Hook{{Name: "log", At: []publish.Moment{publish.BeforeSwitchover}, Command: []string{"/bin/false"}, Required: true}}}
	_, err := c.Switchover(t.Context(), Asked{Group: "g", By: "test"})
	if want := "it cannot be done: hook log: exit status 1; nothing was changed"; err == nil || err.Error() != want || !errors.Is(err, ErrRefused) || !errors.Is(err, ErrUntouched) {
		t.Errorf("a hook that fails: got %v, want %q", err, want)
	}
	if _, now := u.primary(); now.Name != p.Name {
		t.Errorf("%s is the primary, want %s as before", now.Name, p.Name)
	}
}
