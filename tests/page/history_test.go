//go:build cgo

package page_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/events"
)

// TestStatementsHistoryInBrowser looks at what takes an hour to come about: an hour of statements with a gap that
// was not read, a plan that flipped, and a class that makes hardly any load and takes longest.
func TestStatementsHistoryInBrowser(t *testing.T) {
	needBrowser(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	now := time.Now().Unix() / 60 * 60
	remember(ctx, t, filepath.Join(data, "events", "statements.duckdb"), now)
	// Its server is away: the history is shown.
	url := serve(t, binary(t, dir, "RISSO_BIN", "1"), data, "watched=root@tcp(127.0.0.1:1)/")
	playwright(ctx, t, []string{"history.spec.ts"}, "RISSO_URL="+url, "RISSO_INSTANCE=watched", fmt.Sprintf("RISSO_HISTORY=%d", now),
		"RISSO_SLOW="+classOf(slowest), "RISSO_FLIPPED="+classOf(flipped))
}

// Classes of the history; 1 to 60 make the load and their latency was not counted.
const (
	flipped = 61
	slowest = 62
)

func classOf(n int) string { return fmt.Sprintf("%016X%016X", n*7919, n) }

const (
	planByIndex = `{"query_block":{"select_id":1,"cost_info":{"query_cost":"7.25"},"table":{"table_name":"orders","access_type":"ref","key":"customer","used_key_parts":["customer_id"],"rows_examined_per_scan":12,"cost_info":{"read_cost":"6.05","eval_cost":"1.20"}}}}`
	planByScan  = `{"query_block":{"select_id":1,"cost_info":{"query_cost":"20125"},"table":{"table_name":"orders","access_type":"ALL","rows_examined_per_scan":190000,"cost_info":{"read_cost":"1125","eval_cost":"19000"}}}}`
)

// remember stores an hour up to now, without the minutes from 30 to 20 minutes ago.
func remember(ctx context.Context, t *testing.T, path string, now int64) {
	t.Helper()
	store, err := events.OpenEmbedded(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}()
	var minutes []events.Minute
	for ago := int64(60); ago > 0; ago-- {
		if ago <= 30 && ago > 20 {
			continue
		}
		m := events.Minute{Instance: "watched", Time: now - ago*60}
		for n := 1; n <= 60; n++ {
			m.Rows = append(m.Rows, events.Row{Class: classOf(n), Schema: "shop", Cost: fleet.Cost{Calls: 100, Seconds: 1 + float64(n)/100, RowsSent: 100, RowsExamined: 500}})
		}
		slow := events.Row{Class: classOf(flipped), Schema: "shop", Cost: fleet.Cost{Calls: 60, Seconds: 0.6, RowsSent: 60, RowsExamined: 720}, Latency: []events.Bucket{{Number: 150, Calls: 60}}}
		if ago <= 12 {
			slow.Seconds, slow.RowsExamined, slow.Latency = 3, 60*190000, []events.Bucket{{Number: 185, Calls: 60}}
		}
		m.Rows = append(m.Rows, slow)
		if ago == 15 {
			m.Rows = append(m.Rows, events.Row{Class: classOf(slowest), Schema: "shop", Cost: fleet.Cost{Calls: 1, Seconds: 0.9, RowsSent: 1, RowsExamined: 9}, Latency: []events.Bucket{{Number: 250, Calls: 1}}})
		}
		minutes = append(minutes, m)
	}
	if _, err := store.AddMinutes(ctx, minutes...); err != nil {
		t.Fatal(err)
	}
	var classes []events.Class
	for n := 1; n <= slowest; n++ {
		classes = append(classes, events.Class{Instance: "watched", ID: classOf(n), Digest: fmt.Sprintf("%064x", n), Fingerprint: fmt.Sprintf("select a from t%d where id = ?", n), Verb: "SELECT", Tables: fmt.Sprintf("shop.t%d", n), FirstSeen: now - 3600, LastSeen: now})
	}
	if err := store.AddClasses(ctx, classes...); err != nil {
		t.Fatal(err)
	}
	for _, p := range []events.Plan{{ID: "byindex000000000", LastSeen: now - 3600, Text: planByIndex}, {ID: "byscan0000000000", LastSeen: now - 12*60, Text: planByScan}} {
		p.Instance, p.Class, p.Schema, p.Origin = "watched", classOf(flipped), "shop", "explain"
		if _, err := store.AddPlan(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
}
