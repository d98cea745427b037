package failover

import (
	"context"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestLateAnswers: a server that answers late is asked no second time meanwhile, nor by another connection, until it hangs for long: of hundreds of busy servers each would be asked what
// none of them can answer in time. It is told as one that does not answer meanwhile, and as one that does as soon as it does; and one that is gone by then as one that refuses.
func TestLateAnswers(t *testing.T) {
	t.Parallel()
	n := sandboxtest.Up(t, "mariadb")
	c := sandboxtest.Connect(t, n)
	tells := make(chan seen)
	p := &prober{name: "a", target: sandboxtest.Target(t, n), tell: tells, late: make(chan string, 4), poke: make(chan struct{}, 1), every: make(chan time.Duration, 1)}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.run(ctx, everyPrimary)
	}()
	defer func() { stop(); <-ended }()
	until := func(what, kind string) seen {
		t.Helper()
		for end := time.After(time.Minute); ; {
			select {
			case s := <-tells:
				if s.kind == kind {
					return s
				}
			case <-end:
				t.Fatalf("no look that tells it: %s", what)
			}
		}
	}
	connections := func() string {
		t.Helper()
		count, err := c.Text(t.Context(), "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'Connections'")
		if err != nil {
			t.Fatal(err)
		}
		return count
	}
	until("it answers", "")
	before := connections()

	goOn := sandboxtest.Pause(t, n)
	if s := until("it is late", "timeout"); s.text == "" || s.ended.Sub(s.at) < patience {
		t.Errorf("late: %+v", s)
	}
	late := time.Now()
	goOn()
	if s := until("it answers again", ""); s.at.After(late) {
		t.Errorf("it was asked once more, at %s, though it was asked already", s.at)
	}
	if after := connections(); after != before {
		t.Errorf("connections: %s before, %s after", before, after)
	}

	goOn = sandboxtest.Pause(t, n)
	for hangs := time.Now(); time.Since(hangs) < patienceKept+patience; {
		until("it hangs", "timeout")
	}
	goOn()
	until("it answers by a new connection", "")
	if after := connections(); after == before {
		t.Error("it was asked by the old connection, which was given up")
	}

	sandboxtest.Pause(t, n)
	until("it hangs", "timeout")
	if err := n.Kill(9); err != nil {
		t.Fatal(err)
	}
	until("nothing listens", "refused")
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	until("it is there again", "")
	await.Until(t, func() bool { return len(p.late) > 0 }, "it to be told as late")
}

// TestStalled: a process that stood still knows of no member whether it would have answered meanwhile: two looks that it did not take are not two that failed.
func TestStalled(t *testing.T) {
	tells := make(chan seen, 4)
	p := &prober{name: "a", tell: tells, late: make(chan string, 4)}
	h := p.hears(t.Context())
	began := h.began
	h.mu.Lock()
	h.late, h.due = true, time.Now().Add(-time.Minute) // when the timer ends it is late by that
	h.mu.Unlock()
	await.Until(t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.began.After(began)
	}, "the look to begin anew")
	h.mu.Lock()
	h.due = time.Now().Add(-time.Minute)
	h.mu.Unlock()
	if began = h.end(); time.Since(began) > 100*time.Millisecond {
		t.Errorf("the look that failed began %s ago", time.Since(began))
	}
	if len(tells)+len(p.late) > 0 {
		t.Errorf("told: %d looks, %d late", len(tells), len(p.late))
	}
}

// TestCrowd: groups that are late are a crowd if a quarter of all are, and more than a few, in about the same second.
func TestCrowd(t *testing.T) {
	for _, c := range []struct {
		groups, late int
		apart        time.Duration // the last from the others
		want         bool
	}{
		{200, 50, 0, false}, {200, 51, 0, true}, {200, 52, time.Second, true}, {200, 52, 3 * time.Second, false}, {4, 4, 0, false}, {5, 5, 0, true}, {1, 1, 0, false},
	} {
		var k crowd
		k.size(c.groups)
		now, got := time.Unix(1000, 0), false
		for i := range c.late {
			if i == c.late-1 {
				now = now.Add(c.apart)
			}
			counted := int64(0)
			k.is(&counted, now)
			got = k.is(&counted, now) // once more in the same second it is no other group
		}
		if there := k.there(now); there != got {
			t.Errorf("who is none of them sees a crowd: %t, and who is: %t", there, got)
		}
		if got != c.want {
			t.Errorf("%d of %d, the last %s later: %t", c.late, c.groups, c.apart, got)
		}
	}
}
