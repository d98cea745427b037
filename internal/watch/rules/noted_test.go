package rules

import (
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// TestNoted: what others found is reported as it is: immediately, in their words, and no longer than they say it.
func TestNoted(t *testing.T) {
	var j Judge
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	stale := fleet.Finding{ID: "protect.stale", Severity: fleet.SeverityCritical, Since: now.Add(-time.Hour), Trouble: fleet.Trouble{What: "the last backup is 4 d old", Remedy: "risso backup"}}
	look := func(notes ...fleet.Finding) Verdict {
		now = now.Add(time.Second)
		return j.Judge(&Snapshot{Now: now, Up: true, Instance: fleet.Instance{ID: "db1", Kind: fleet.KindServer}, Notes: notes})
	}
	if v := look(); v.State != StateOK {
		t.Fatalf("got %+v, want State StateOK", v)
	}
	v := look(stale)
	if v.State != StateCritical || v.Words != stale.What || len(v.Findings) != 1 || v.Findings[0] != stale {
		t.Errorf("got %+v; want State StateCritical, Words %v, len(Findings) 1, Findings[0] %v", v, stale.What, stale)
	}
	two := stale
	two.What, two.Severity = "the last backup is 30 h old", fleet.SeverityWarning
	if v := look(two); v.Words != two.What || len(v.Findings) != 1 {
		t.Errorf("got %+v; want Words %v, len(Findings) 1", v, two.What)
	}
	if v := look(); v.State != StateOK || len(v.Findings) != 0 {
		t.Errorf("got %+v; want State StateOK, no v.Findings", v)
	}
	now = now.Add(time.Second)
	v = j.Judge(&Snapshot{Now: now, DownSince: now, Instance: fleet.Instance{ID: "db1", Kind: fleet.KindServer}, Notes: []fleet.Finding{stale}})
	if v.State != StateDown || len(v.Findings) != 2 || v.Findings[0].ID != "server.down" || v.Findings[1] != stale {
		t.Errorf("a server that is down: got %+v, want server.down and what others found", v)
	}
}

// TestConnectionsOfBefore: a connection of before the server was started is not the one that has its number now.
func TestConnectionsOfBefore(t *testing.T) {
	for uptime, same := range map[float64]bool{3600: true, 30: false} {
		w := mysql97()
		w.values[statusPrefix+"uptime"] = uptime
		if err := w.set("lock row_lock 9,10 812 shop.orders"); err != nil {
			t.Fatal(err)
		}
		since := begin.Add(-10 * time.Minute)
		w.j.Resume([]fleet.Finding{{ID: "lock.blocker", Subject: "connection 812 (app@web3)", Since: since}})
		var f *fleet.Finding
		for range 10 {
			if v := w.tick(); f == nil {
				f = find(v, "lock.blocker")
			}
		}
		if f == nil || f.Since.Equal(since) != same {
			t.Errorf("up for %v s: got %+v, want the one of before: %v", uptime, f, same)
		}
	}
}
