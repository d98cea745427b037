package pattern

import (
	"errors"
	"slices"
	"testing"
)

func TestName(t *testing.T) {
	for text, want := range map[string][2]string{"a.b": {"a", "b"}, "a": {"a", ""}, "a.b.c": {"a", "b.c"}, "`a.b`.c": {"a.b", "c"}, "a.`b``c.d`": {"a", "b`c.d"}, "`a`.`b`": {"a", "b"}, "a.b`c": {"a", "b`c"}, "a.`o'd d`": {"a", "o'd d"}} {
		if s, n, err := Name(text); err != nil || [2]string{s, n} != want {
			t.Errorf("%s: got %q %q %v; want [2]string{s, n} %v", text, s, n, err, want)
		}
	}
	for _, text := range []string{"`a", "a.`b", "a.", ".b", "`a`b", "a.`b`c"} {
		if s, n, err := Name(text); err == nil {
			t.Errorf("%s: %q %q", text, s, n)
		}
	}
}

func TestCut(t *testing.T) {
	for text, want := range map[string][3]string{"a=b": {"a", "b", "yes"}, "od'd=odd": {"od'd", "odd", "yes"}, "a.\"b=c": {"a.\"b", "c", "yes"}, "`a=b`=c": {"`a=b`", "c", "yes"},
		"`a``=b`=c": {"`a``=b`", "c", "yes"}, "a=b=c": {"a", "b=c", "yes"}, "ab": {"ab", "", ""}, "`a=b`": {"`a=b`", "", ""}, "=": {"", "", "yes"}, "": {}} {
		before, after, found := Cut(text, '=')
		got := [3]string{before, after}
		if found {
			got[2] = "yes"
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestChoice(t *testing.T) {
	c, err := NewChoice([]string{"`who.le`", "gone"}, []string{"a.`x.y`", "b.t*", "c.d.e", "a.ordres"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[[2]string]bool{{"who.le", "t"}: true, {"a", "x.y"}: true, {"a", "x"}: false, {"b", "tt"}: true, {"b", "u"}: false, {"c", "d.e"}: true, {"c.d", "e"}: true, {"a", "orders"}: false} {
		if got := c.Table(name[0], name[1]); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
		if want && !c.May(name[0], false) {
			t.Errorf("%s may have none", name[0])
		}
	}
	var unmet *UnmetError
	if !errors.As(c.Unmet(), &unmet) || !slices.Equal(unmet.Names, []string{"gone", "a.ordres"}) || unmet.Remedy() != "did you mean a.orders?" {
		t.Errorf("%v", c.Unmet())
	}
	if c.May("d", false) || c.May("who.le", true) || !c.All() == (len(c.Tables()) == 0) {
		t.Error("schemas that cannot have any")
	}
	narrow, err := NewChoice([]string{"a"}, []string{"*.t"})
	if err != nil || !narrow.Both("a", "t") || narrow.Both("a", "u") || narrow.Both("b", "t") || narrow.Unmet() != nil {
		t.Errorf("got %v %v; want Both(\"a\", \"t\") true, Both(\"a\", \"u\") false, Both(\"b\", \"t\") false, Unmet() nil", narrow, err)
	}
	if everything, err := NewChoice(nil, nil); err != nil || !everything.Table("a", "b") || !everything.Both("a", "b") || !everything.May("a", true) || everything.Unmet() != nil {
		t.Errorf("got %v; want everything.Table(\"a\", \"b\") true, everything.Both(\"a\", \"b\") true, everything.May(\"a\", true) true, everything.Unmet() nil",
			err)
	}
}
