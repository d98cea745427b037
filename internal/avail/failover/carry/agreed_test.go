package carry

import (
	"errors"
	"strings"
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

// TestAgreed: of two switchovers at once, the one that comes second does not do something else than what somebody agreed to.
func TestAgreed(t *testing.T) {
	u := newTrio(t, "mariadb", group.Policy{})
	_, p := u.primary()
	c := u.carrier()
	first, err := c.Plan(t.Context(), Asked{Group: "g", To: u.box.Nodes[1].Name})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Switchover(t.Context(), Asked{Group: "g", To: u.box.Nodes[2].Name, From: p.Name, By: "another"}); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{first.Choice.Winner, u.box.Nodes[2].Name} {
		_, err = c.Switchover(t.Context(), Asked{Group: "g", To: to, From: first.Old, By: "test"})
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), p.Name+" is not the primary any more, "+u.box.Nodes[2].Name+" is") {
			t.Errorf("from %s to %s, after another one: got %v, want that another is the primary now", first.Old, to, err)
		}
	}
	if _, now := u.primary(); now.Name != u.box.Nodes[2].Name {
		t.Errorf("%s is the primary, want %s", now.Name, u.box.Nodes[2].Name)
	}
}
