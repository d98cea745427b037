//go:build cgo

package web

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/store/events"
)

// TestPlansAreDrawn draws what is a plan and leaves what is none.
func TestPlansAreDrawn(t *testing.T) {
	got := drawn([]events.Plan{
		{ID: "a", Text: `{"query_block":{"select_id":1,"cost_info":{"query_cost":"7.25"},"table":{"table_name":"orders","access_type":"ref","key":"customer","rows_examined_per_scan":12}}}`},
		{ID: "b", Text: "<not a plan>"},
	})
	if !strings.Contains(got[0].Tree, "orders") || !strings.Contains(got[0].Tree, "customer") || strings.Contains(got[0].Tree, "{") {
		t.Errorf("drawn as %q", got[0].Tree)
	}
	if got[1].Tree != "" || got[1].Text != "<not a plan>" {
		t.Errorf("%+v", got[1])
	}
}

// TestSchemas lists schemas and narrows to one.
func TestSchemas(t *testing.T) {
	s, now := statementSite(t)
	span := fmt.Sprintf("instance=db1&from=%d&to=%d", now-3600, now)
	a := s.object(t, "/api/queries/schemas?"+span)
	expect(t, a, "shop", "schemas", 0, "value")
	expect(t, a, "crm", "schemas", 1, "value")
	expect(t, a, 360.0, "schemas", 1, "calls")
	expect(t, a, nil, "schemas", 2)
	expect(t, s.object(t, "/api/queries?schema=shop&"+span), class(2), "classes", 0, "id")
	expect(t, s.object(t, "/api/queries?schema=crm&"+span), 360.0, "classes", 0, "calls")
	a = s.object(t, "/api/queries?schema=nowhere&"+span)
	expect(t, a, nil, "classes", 0)
	expect(t, a, 3.0, "count")
	a = s.object(t, fmt.Sprintf("/api/queries/compare?schema=nowhere&from=%d&to=%d&from2=%d&to2=%d", now-7200, now-3600, now-3600, now))
	expect(t, a, 0.0, "count")
	if status, _ := s.get(t, "/api/queries/schemas?from=5&to=1"); status != 400 {
		t.Errorf("a range that ends before it begins: %d", status)
	}
}
