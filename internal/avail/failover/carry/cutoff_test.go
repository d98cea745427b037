package carry

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestCutOffIsNoRefusal: what was cut off says nothing of the members. A controller that may not act for a moment must not take it for their answer that nobody can follow; it once waited
// for half a minute then. And who is refused while members did not answer is told which.
func TestCutOffIsNoRefusal(t *testing.T) {
	t.Parallel()
	u := newTrio(t, "mariadb", group.Policy{Automatic: true, Rejoin: true})
	_, old := u.primary()
	if !u.write(old, time.Minute) {
		t.Fatal("the primary takes no write")
	}
	known := u.known()
	for what, f := range map[string]func(ctx context.Context) error{
		"a forecast":   func(ctx context.Context) error { _, err := u.carrier().Forecast(ctx, Asked{Group: "g"}); return err },
		"a switchover": func(ctx context.Context) error { _, err := u.carrier().Plan(ctx, Asked{Group: "g"}); return err },
	} {
		ctx, stop := context.WithTimeout(t.Context(), time.Millisecond) // amid the look
		if err := f(ctx); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrRefused) {
			t.Errorf("%s that had no time: %v", what, err)
		}
		stop()
	}
	if err := old.Kill(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-old.Ended()

	ended, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := u.carrier()
	c.step = func(string, string) { cancel() } // the first statement stops a receiver
	j, err := c.Failover(ended, Asked{Group: "g", By: "test", Known: known})
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrRefused) || j == nil || j.Stage != failover.Undone {
		t.Fatalf("a failover that was cut off: %v, %+v", err, j)
	}
	for _, n := range u.box.Nodes[1:] {
		if io := u.channel(n).Status.IORunning; io == "No" {
			t.Errorf("%s does not try to receive again", n.Name)
		}
	}

	var goOn []func()
	for _, n := range u.box.Nodes[1:] {
		goOn = append(goOn, sandboxtest.Pause(t, n))
	}
	var unheard *Unheard
	if _, err := u.carrier().Failover(t.Context(), Asked{Group: "g", By: "test", Known: known}); !errors.Is(err, ErrRefused) || !errors.As(err, &unheard) || len(unheard.Members) != 2 {
		t.Errorf("with replicas that hang: %v", err)
	}
	for _, f := range goOn {
		f()
	}
	if _, err := u.carrier().Failover(t.Context(), Asked{Group: "g", By: "test", Known: known}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
