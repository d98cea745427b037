//go:build cgo

package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/events"
	"github.com/rissodb/risso/internal/store/state"
)

// TestChangedAfter: a mark on a server whose statements took ten times as long afterwards tells so; an event that is not there, and windows
// that are no windows, are refused.
func TestChangedAfter(t *testing.T) {
	store, err := events.OpenEmbedded(t.Context(), t.TempDir()+"/statements.duckdb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	s := newSiteOf(t, true, func(o *Options) { o.Statements = Statements{Store: store} })
	at := time.Now().Add(-20 * time.Minute).Truncate(time.Minute).Add(20 * time.Second)
	var list []events.Minute
	for m := at.Add(-15*time.Minute).Unix() / 60 * 60; m < at.Unix()+16*60; m += 60 {
		cost := fleet.Cost{Calls: 600 + m/60%7, Seconds: 0.6 + float64(m/60%5)/100}
		if m > at.Unix() {
			cost.Seconds *= 10
		}
		list = append(list, events.Minute{Instance: "db1", Time: m, Rows: []events.Row{{Class: class(1), Schema: "shop", Cost: cost}}})
	}
	if _, err := store.AddMinutes(t.Context(), list...); err != nil {
		t.Fatal(err)
	}
	if err := store.AddClasses(t.Context(), events.Class{Instance: "db1", ID: class(1), Fingerprint: "select 1 from t", Verb: "SELECT", FirstSeen: list[0].Time, LastSeen: list[len(list)-1].Time}); err != nil {
		t.Fatal(err)
	}
	marks, _, err := s.facts.AddMark(t.Context(), state.Mark{Key: "7", Kind: fleet.EventDeploy, Text: "deploy 1.4", Instances: []string{"db1"}, At: at})
	if err != nil {
		t.Fatal(err)
	}
	code, body := s.get(t, fmt.Sprintf("/api/events/after?id=%d", marks[0].ID))
	for _, want := range []string{`"complete":true`, `"instance":"db1"`, `"enough":true`, `"change":"slower"`, "select 1 from t", `"verdict":"up"`} {
		if code != 200 || !strings.Contains(body, want) {
			t.Errorf("got %d %s, want %s in it", code, body, want)
		}
	}
	for query, want := range map[string]int{"id=99999": 404, "id=0": 404, "id=x": 400, fmt.Sprintf("id=%d&minutes=4", marks[0].ID): 400, fmt.Sprintf("id=%d&minutes=121", marks[0].ID): 400} {
		if code, body := s.get(t, "/api/events/after?"+query); code != want {
			t.Errorf("%s: got %d %s, want %d", query, code, body, want)
		}
	}
}
