package rebuild

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/store/state"
)

// TestDue: who is rebuilt without being asked for, and when.
func TestDue(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	failed := func(tries int, ago time.Duration) *group.Rebuild {
		return &group.Rebuild{Tries: tries, Ended: now.Add(-ago), Problem: "no room"}
	}
	for _, c := range []struct {
		what   string
		change func(g *group.Group)
		want   string
	}{
		{"transactions of its own", func(*group.Group) {}, "b"},
		{"none", func(g *group.Group) { g.Members[1].Errant = "" }, ""},
		{"not FAULTY", func(g *group.Group) { g.Members[1].Status = group.Secondary }, ""},
		{"the primary", func(g *group.Group) { g.Members[1].Status = group.Primary; g.Members[0].Status = group.Secondary }, ""},
		{"no primary", func(g *group.Group) { g.Members[0].Status = group.Secondary }, ""},
		{"it does not answer", func(g *group.Group) { g.Members[1].Name = "gone" }, ""},
		{"it failed just now", func(g *group.Group) { g.Members[1].Rebuild = failed(1, time.Minute) }, ""},
		{"it failed long ago", func(g *group.Group) { g.Members[1].Rebuild = failed(1, 11*time.Minute) }, "b"},
		{"it failed twice", func(g *group.Group) { g.Members[1].Rebuild = failed(2, 11*time.Minute) }, ""},
		{"it failed twice, long ago", func(g *group.Group) { g.Members[1].Rebuild = failed(2, 21*time.Minute) }, "b"},
		{"it failed too often", func(g *group.Group) { g.Members[1].Rebuild = failed(3, 100*time.Hour) }, ""},
		{"somebody made it FAULTY", func(g *group.Group) { g.Members[1].ByHand = true }, ""},
		{"it was stopped", func(g *group.Group) { g.Members[1].Rebuild = failed(0, time.Second) }, "b"},
		{"somebody is at it", func(g *group.Group) {
			g.Members[1].Rebuild = &group.Rebuild{Holder: "other", Until: now.Add(time.Second)}
		}, ""},
		{"somebody was killed at it", func(g *group.Group) {
			g.Members[1].Rebuild = &group.Rebuild{Holder: "other", Until: now.Add(-time.Second)}
		}, "b"},
		{"another one is rebuilt", func(g *group.Group) {
			g.Members[2].Rebuild = &group.Rebuild{Holder: "other", Until: now.Add(time.Second)}
		}, ""},
	} {
		g := &group.Group{Name: "g", Members: []group.Member{{Name: "a", Status: group.Primary}, {Name: "b", Status: group.Faulty, Errant: "0-2-7"}, {Name: "c", Status: group.Faulty}}}
		c.change(g)
		if got := Due(g, func(name string) bool { return name != "gone" }, now); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
		if r := g.Members[1].Rebuild; r != nil && r.Words(now) == "" {
			t.Errorf("%s: nothing is said", c.what)
		}
	}
}

// TestFails: a rebuild that fails is written down with its reason, and is not tried again at once; one that is stopped does not count.
func TestFails(t *testing.T) {
	ctx := t.Context()
	docs, err := state.Open(ctx, filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer docs.Close()
	room := &keep.Room{Docs: docs}
	// Nobody listens at b's address.
	g := &group.Group{Name: "g", Members: []group.Member{{Name: "a", Status: group.Primary}, {Name: "b", Status: group.Faulty, Errant: "0-2-7"}}}
	access := keep.Access{Members: map[string]string{"a": sandboxtest.Lend(t, "mariadb").DSN, "b": "u@tcp(127.0.0.1:1)/"}}
	if err := room.Add(ctx, g, access); err != nil {
		t.Fatal(err)
	}
	m := &Members{Room: room, Holder: "me", Dir: t.TempDir(), Threads: 1, Wait: time.Second, Say: func(string) {}}
	now := func() *group.Rebuild {
		g, err := room.Group(ctx, "g")
		if err != nil {
			t.Fatal(err)
		}
		if b := g.Members[1]; b.Status != group.Faulty || b.Errant != "0-2-7" || b.Rebuild == nil || b.Rebuild.Holder != "" || b.Rebuild.Problem == "" {
			t.Fatalf("%+v", b)
		}
		return g.Members[1].Rebuild
	}
	stopped, stop := context.WithCancelCause(ctx)
	stop(ErrStopped)
	if _, err := m.Do(stopped, Asked{Group: "g", Member: "b", Due: true}); err == nil {
		t.Fatal("it was stopped before, and says that it is done")
	}
	if _, err := m.Do(ctx, Asked{Group: "g", Member: "b", Due: true}); err == nil || !strings.Contains(err.Error(), "does not answer") || errors.Is(err, context.Canceled) {
		t.Fatalf("a member that does not answer: %v", err)
	}
	if r := now(); r.Tries != 1 {
		t.Errorf("%d tries, want 1", r.Tries)
	}
	if _, err := m.Do(ctx, Asked{Group: "g", Member: "b", Due: true}); err == nil || !strings.Contains(err.Error(), "is tried again after") {
		t.Errorf("at once again: %v", err)
	}
	if _, err := m.Do(ctx, Asked{Group: "g", Member: "b"}); err == nil || errors.Is(err, group.ErrHeld) {
		t.Errorf("by hand: %v", err)
	}
	if r := now(); r.Tries != 2 {
		t.Errorf("%d tries, want 2", r.Tries)
	}
	access.Members["a"] = "u@tcp(127.0.0.1:1)/"
	if err := room.SetAccess(ctx, "g", access); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Do(ctx, Asked{Group: "g", Member: "b"}); !errors.Is(err, ErrStopped) {
		t.Errorf("the primary does not answer either: %v", err)
	}
	if r := now(); r.Tries != 2 {
		t.Errorf("%d tries: what has no primary to be rebuilt for did not fail; want 2", r.Tries)
	}
}
