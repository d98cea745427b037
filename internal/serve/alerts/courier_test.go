package alerts

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/alert"
)

// fake is a receiver that forgets at once, and keeps what it was sent.
type fake struct {
	mu   sync.Mutex
	got  []alert.Message
	fail error
}

func (f *fake) Send(_ context.Context, m *alert.Message) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.got = append(f.got, *m)
	return f.fail
}

func (f *fake) Renew() time.Duration { return time.Millisecond }

func (f *fake) sent() []alert.Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]alert.Message{}, f.got...)
}

// TestRenew: a receiver that forgets is told what still fires, as often as it takes, and no more once that is over; what reached only some is not
// sent again, and said.
func TestRenew(t *testing.T) {
	t.Parallel()
	facts, err := state.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer facts.Close()
	errSome := errors.New("not bob")
	keeps, some := &fake{}, &fake{fail: errSome}
	var mu sync.Mutex
	var told []fleet.Event
	d, err := New(t.Context(), Options{Facts: facts, Policy: alert.Policy{Receivers: []string{"keeps", "some"}}, Receivers: map[string]Receiver{"keeps": keeps, "some": struct{ Receiver }{some}},
		Partly:    func(err error) bool { return errors.Is(err, errSome) },
		Instances: func() []fleet.Instance { return []fleet.Instance{{ID: "db1", Name: "db1"}} },
		Because: func() func(state.FindingRecord) (alert.Cause, bool) {
			return func(state.FindingRecord) (alert.Cause, bool) { return alert.Cause{}, false }
		},
		Event: func(e fleet.Event) { mu.Lock(); defer mu.Unlock(); told = append(told, e) }, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	defer func() { cancel(); <-done }()
	now := time.Now()
	down := fleet.Finding{ID: "server.down", Severity: fleet.SeverityCritical, Since: now, Trouble: fleet.Trouble{What: "the server is down"}}
	if err := facts.KeepFindings(t.Context(), state.Look{Instance: "db1", At: now, Findings: []fleet.Finding{down}}); err != nil {
		t.Fatal(err)
	}
	d.Poke()
	await.Until(t, func() bool { poke(d.deliver["keeps"]); return len(keeps.sent()) >= 4 }, "it is told again and again")
	news := 0
	for i, m := range keeps.sent() {
		if !m.Again {
			news++
		}
		if len(m.Alerts) != 1 || m.Alerts[0].Key != "db1/server.down" || m.Alerts[0].Phase != alert.Firing {
			t.Errorf("message %d: got %+v, want the alert that fires", i, m)
		}
	}
	if news != 1 {
		t.Errorf("it was news %d times, want once", news)
	}
	await.Until(t, func() bool { return len(some.sent()) == 1 }, "the other one is told")
	await.Until(t, func() bool {
		list, err := facts.WaitingMessages(t.Context(), "some", 9)
		return err == nil && len(list) == 0
	}, "the message is delivered")
	mu.Lock()
	if len(told) != 1 || !strings.Contains(told[0].Text, "some did not reach all: not bob") {
		t.Errorf("got events %+v, want one that says that not all were reached", told)
	}
	mu.Unlock()
	if len(some.sent()) != 1 {
		t.Errorf("sent %d times, want once", len(some.sent()))
	}
}
