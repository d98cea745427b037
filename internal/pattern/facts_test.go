package pattern

import (
	"slices"
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b  string
		limit int
		want  int
	}{
		{"", "", 2, 0}, {"a", "", 2, 1}, {"", "ab", 2, 2}, {"orders", "orders", 2, 0}, {"orders", "order", 2, 1}, {"order", "orders", 2, 1}, {"orders", "ordres", 2, 2},
		{"orders", "xorders", 2, 1}, {"orders", "xrders", 2, 1}, {"kitten", "sitting", 9, 3}, {"abc", "xyz", 9, 3}, {"ab", "abcde", 3, 3}, {"ab", "abcdef", 3, 4}, {"abcdef", "ab", 3, 4},
		{strings.Repeat("a", 64), strings.Repeat("a", 64), 2, 0}, {strings.Repeat("a", 65), strings.Repeat("a", 65), 2, 3},
	} {
		if got := Distance(c.a, c.b, c.limit); got != c.want {
			t.Errorf("%q and %q, up to %d: got %d, want %d", c.a, c.b, c.limit, got, c.want)
		}
	}
}

func TestNear(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"shop", "SHOP", true}, {"shop", "shpo", true}, {"shop", "shxyz", false}, {"ab", "xy", false}, {"ab", "AB", true}, {"abc", "ab", false}, {"abc", "abd", true}, {"abc", "xyc", true}, {"abcd", "xyzd", false},
	} {
		if got := Near(c.a, c.b); got != c.want {
			t.Errorf("%q and %q: got %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

func TestSchema(t *testing.T) {
	for text, want := range map[string]string{"a": "a", "`a`": "a", "`a.b`": "a.b", "`a``b`": "a`b", "`a": "`a", "`a`b": "`a`b", "``": ""} {
		if got := Schema(text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// TestTable: which tables a pattern means, which schemas may have such, and whether it names one alone.
func TestTable(t *testing.T) {
	for _, c := range []struct {
		text, schema, table string
		match, may, exact   bool
	}{
		{"a.b", "a", "b", true, true, true}, {"a.b", "a", "c", false, true, true}, {"a.b", "b", "b", false, false, true},
		{"a.b.c", "a", "b.c", true, true, false}, {"a.b.c", "a.b", "c", true, true, false}, {"a.b.c", "a.b.c", "", false, false, false},
		{"`a.b`.c", "a.b", "c", true, true, true}, {"`a.b`.c", "a", "b.c", false, false, true}, {"a.`b.c`", "a", "b.c", true, true, true},
		{"a*.b", "aa", "b", true, true, false}, {"a*.b", "aa", "c", false, true, false}, {"a.b*", "a", "bb", true, true, false}, {"*.t", "x", "t", true, true, false}, {"a*.b", "ab", "c.b", true, true, false},
		{"`a*`.`b`", "ax", "b", true, true, false}, {"`a*`.`b`", "bx", "b", false, false, false}, {"`a`.`b*`", "a", "x", false, true, false},
	} {
		p, err := ParseTable(c.text)
		if err != nil {
			t.Fatal(err)
		}
		_, _, exact := p.Names()
		if p.Match(c.schema, c.table) != c.match || p.MatchSchema(c.schema) != c.may || exact != c.exact {
			t.Errorf("%s and %s.%s: got match %v, schema %v, exact %v; want %v, %v, %v", c.text, c.schema, c.table, p.Match(c.schema, c.table), p.MatchSchema(c.schema), exact, c.match, c.may, c.exact)
		}
	}
	if _, err := ParseTable("a"); err == nil {
		t.Error("a schema alone passed for a table")
	}
	if _, err := NewChoice(nil, []string{"a"}); err == nil {
		t.Error("a schema alone passed for a table")
	}
}

// TestChoices: what schemas and tables choose together, and if they narrow each other.
func TestChoices(t *testing.T) {
	for _, c := range []struct {
		name            string
		schemas, tables []string
		schema, table   string
		whole           bool // the schema
		either, both    bool // the table
		may, mayBoth    bool // the schema may have some
	}{
		{"everything", nil, nil, "a", "t", true, true, true, true, true},
		{"a schema", []string{"a"}, nil, "a", "t", true, true, true, true, true},
		{"another schema", []string{"b"}, nil, "a", "t", false, false, false, false, false},
		{"a table", nil, []string{"a.t"}, "a", "t", false, true, true, true, true},
		{"another table", nil, []string{"a.u"}, "a", "t", false, false, false, true, true},
		{"a table of another schema", nil, []string{"b.t"}, "a", "t", false, false, false, false, false},
		{"its schema and its table", []string{"a"}, []string{"a.t"}, "a", "t", true, true, true, true, true},
		{"its schema and another table", []string{"a"}, []string{"a.u"}, "a", "t", true, true, false, true, true},
		{"another schema and its table", []string{"b"}, []string{"a.t"}, "a", "t", false, true, false, true, false},
		{"its schema and a table of another", []string{"a"}, []string{"b.t"}, "a", "t", true, true, false, true, false},
	} {
		choice, err := NewChoice(c.schemas, c.tables)
		if err != nil {
			t.Fatal(err)
		}
		if got := choice.Schema(c.schema); got != c.whole {
			t.Errorf("%s: got the schema %v, want %v", c.name, got, c.whole)
		}
		if got := choice.Table(c.schema, c.table); got != c.either {
			t.Errorf("%s: got the table %v, want %v", c.name, got, c.either)
		}
		if got := choice.Both(c.schema, c.table); got != c.both {
			t.Errorf("%s: got the table %v where they narrow each other, want %v", c.name, got, c.both)
		}
		if got, both := choice.May(c.schema, false), choice.May(c.schema, true); got != c.may || both != c.mayBoth {
			t.Errorf("%s: got that the schema may have some %v, %v; want %v, %v", c.name, got, both, c.may, c.mayBoth)
		}
		if choice.All() != (c.name == "everything") || len(choice.Schemas()) != len(c.schemas) || len(choice.Tables()) != len(c.tables) {
			t.Errorf("%s: got all %v, %q, %v; want choice.All() %v, len(choice.Schemas()) %v, len(choice.Tables()) %v",
				c.name, choice.All(), choice.Schemas(), choice.Tables(), c.name == "everything", len(c.schemas), len(c.tables))
		}
	}
}

// TestUnmet: names that nothing met, and what is called nearly so.
func TestUnmet(t *testing.T) {
	c, err := NewChoice([]string{"shop", "gone*"}, []string{"shop.ordres", "shop.ordrs"})
	if err != nil {
		t.Fatal(err)
	}
	c.Table("shpo", "x")
	c.Table("shop", "orders")
	c.Table("shop", "order")
	u, ok := c.Unmet().(*UnmetError)
	if !ok || u.Error() != "gone*, no shop.ordres, no shop.ordrs" || u.Remedy() != "did you mean shop.orders?" {
		t.Fatalf("got %v, remedy %q; want ok true, u.Error() \"gone*, no shop.ordres, no shop.ordrs\", u.Remedy() \"did you mean shop.orders?\"",
			c.Unmet(), u.Remedy())
	}
	if e := u.Exact(); e == nil || !slices.Equal(e.Names, []string{"shop.ordres", "shop.ordrs"}) || !slices.Equal(e.Near, u.Near) {
		t.Errorf("without patterns: got %+v; want e not nil, Names []string{\"shop.ordres\", \"shop.ordrs\"}, Near %v", e, u.Near)
	}
	if e := (&UnmetError{Names: []string{"a*"}}).Exact(); e != nil {
		t.Errorf("only patterns: got %+v, want nothing", e)
	}
	if h := (&UnmetError{Names: []string{"a"}, Near: []string{"b", "c"}}).Remedy(); h != "did you mean b or c?" {
		t.Errorf("got %q, want \"did you mean b or c?\"", h)
	}
	if h := (&UnmetError{Names: []string{"a"}}).Remedy(); h != "" {
		t.Errorf("nothing is near: got %q, want \"\"", h)
	}
	c.Table("shop", "ordres") // it comes later
	c.Table("gone1", "x")
	c.Table("shop", "ordrs")
	if err := c.Unmet(); err != nil {
		t.Errorf("all was met: got %v", err)
	}
}
