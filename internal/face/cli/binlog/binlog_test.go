package binlog

import (
	"strings"
	"testing"
)

// TestSchemasMeant: a schema may have tables that are meant exactly if a table of some name in it would be.
func TestSchemasMeant(t *testing.T) {
	for _, c := range []struct {
		table, schema string
		want          bool
	}{
		{"shop.orders", "shop", true}, {"shop.orders", "sho", false}, {"shop.orders", "shops", false}, {"*orders", "shop", true}, {"*.orders", "shop", true}, {"sh*", "shop", true}, {"sh*.o*", "ship", true},
		{"sh*.o*", "crm", false}, {"odd.name.t", "odd.name", true}, {"odd.name.t", "odd", true}, {"*p.o", "shop", true}, {"*p.o", "shot", false}, {"db.a.b", "db", true}, {"db.a.b", "db.a", true}, {"*x.orders", "shop", false},
	} {
		f := tableFlags{tables: []string{c.table}}
		if _, err := f.filter(); (err != nil) == strings.Contains(c.table, ".") { // without a schema it is refused
			t.Errorf("--table %s: %v", c.table, err)
		}
		if !strings.Contains(c.table, ".") {
			continue
		}
		if got := f.schema(c.schema); got != c.want {
			t.Errorf("--table %s, schema %s: got %t; want %t", c.table, c.schema, got, c.want)
		}
	}
	f := tableFlags{schemas: []string{"sh*"}}
	if _, err := f.filter(); err != nil || !f.schema("shop") || f.schema("crm") {
		t.Error("--schema")
	}
}
