//go:build cgo

package serve

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/events"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/collect"
	"github.com/rissodb/risso/internal/watch/live"
)

// TestFlips: a plan that makes a class slower is a finding of its server, found again after a restart, until somebody acknowledges it.
func TestFlips(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, err := events.OpenEmbedded(t.Context(), filepath.Join(dir, "statements.duckdb"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	facts, err := state.Open(t.Context(), filepath.Join(dir, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer facts.Close()
	id, now := strings.Repeat("AB", 16), time.Now().Truncate(time.Minute)
	turn := now.Add(-20 * time.Minute)
	for at := now.Add(-time.Hour); at.Before(now); at = at.Add(time.Minute) {
		each := 0.01
		if !at.Before(turn) {
			each = 0.09
		}
		if _, err := store.AddMinutes(t.Context(), events.Minute{Instance: "db1", Time: at.Unix(), Rows: []events.Row{{Class: id, Schema: "shop", Cost: fleet.Cost{Calls: 600, Seconds: 600 * each}}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.AddClasses(t.Context(), events.Class{Instance: "db1", ID: id, Fingerprint: "select * from orders where a = ?", Verb: "SELECT", Tables: "shop.orders", FirstSeen: turn.Unix() - 9999, LastSeen: now.Unix()}); err != nil {
		t.Fatal(err)
	}
	for i, plan := range []string{"p1", "p2"} {
		at := turn.Add(time.Duration(i-1) * 5 * time.Minute)
		flip, err := store.AddPlan(t.Context(), events.Plan{Instance: "db1", Class: id, Schema: "shop", ID: plan, LastSeen: at.Unix(), Origin: "explain", Text: "{}"})
		if err != nil || (flip != nil) != (i == 1) {
			t.Fatalf("plan %s: got %+v, %v, want a flip by the second", plan, flip, err)
		}
	}
	if _, err := facts.AddEvents(t.Context(), fleet.Event{Time: turn, Instance: "db1", Kind: fleet.EventPlan, Subject: id, Old: "p1", New: "p2", Text: "changed"}); err != nil {
		t.Fatal(err)
	}
	look := func() []fleet.Finding {
		t.Helper()
		board := live.New(func() live.Self { return live.Self{} })
		server := fleet.Instance{ID: "db1", Name: "db1", Kind: fleet.KindServer}
		board.Add(server)
		f := &flips{store: store, facts: facts, board: board, logger: slog.New(slog.DiscardHandler), told: map[string]bool{}}
		if err := f.look(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		board.Observe(collect.View{Instance: server, Tick: time.Now().Unix(), Up: true, Sample: new(fleet.Sample)})
		return board.Fleet(time.Now())[0].Findings
	}
	got := look()
	if len(got) != 1 || got[0].ID != "plan.slower" || got[0].Subject != id || got[0].Value < 8.9 || got[0].Value > 9.1 || !strings.Contains(got[0].What, "takes 90 ms instead of 10 ms on average: select * from orders") {
		t.Fatalf("got %+v, want that the class is nine times slower", got)
	}
	if err := facts.AddAck(t.Context(), state.AckRow{Key: "db1/plan.slower/" + id, At: time.Now(), By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if got := look(); len(got) != 0 {
		t.Errorf("somebody knows: got %+v, want none", got)
	}
}
