package byschema

import (
	"reflect"
	"testing"
)

// TestOf: what shares of the write time allow, by hand.
func TestOf(t *testing.T) {
	p := Of([]Set{
		{Schemas: []string{"b"}, Calls: 3, Seconds: 40},
		{Schemas: []string{"a"}, Calls: 2, Seconds: 20},
		{Schemas: []string{"c"}, Calls: 1, Seconds: 20},
		{Schemas: []string{"a", "c"}, Calls: 5, Seconds: 10, Sample: "one"},
		{Schemas: []string{"a", "b"}, Calls: 7, Seconds: 10, Sample: "two"},
	})
	want := Plan{Calls: 18, Seconds: 100,
		Schemas: []Schema{
			{Name: "b", Calls: 3, Seconds: 40, Share: .4, Chain: .5, Together: 1},
			{Name: "a", Calls: 2, Seconds: 20, Share: .2, Chain: .4, Together: .4},
			{Name: "c", Calls: 1, Seconds: 20, Share: .2, Chain: .3, Together: .4},
		},
		Crossing: []Set{
			{Schemas: []string{"a", "b"}, Calls: 7, Seconds: 10, Share: .1, Sample: "two"},
			{Schemas: []string{"a", "c"}, Calls: 5, Seconds: 10, Share: .1, Sample: "one"},
		},
		Appliers: []Appliers{{1, 1, 1}, {2, .5, 2}, {3, .5, 2}}}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("got\n%+v\nwant\n%+v", p, want)
	}
	even := Of([]Set{{Schemas: []string{"b"}, Seconds: 1}, {Schemas: []string{"a"}, Seconds: 1}, {Schemas: []string{"c"}, Seconds: 1}, {Schemas: []string{"d"}, Seconds: 1}})
	if got, want := even.Appliers, []Appliers{{1, 1, 1}, {2, .5, 2}, {3, 1 / 3.0, 3}, {4, .25, 4}}; !reflect.DeepEqual(got, want) {
		t.Errorf("four that are alike: got %v, want %v", got, want)
	}
	if even.Schemas[0].Name != "a" || even.Schemas[3].Name != "d" {
		t.Errorf("of those that are alike: got %+v, want them by name", even.Schemas)
	}
	crossing := Of([]Set{{Schemas: []string{"a", "b"}, Seconds: 5}})
	if s := crossing.Schemas; len(s) != 2 || s[0].Share != 0 || s[0].Chain != 1 || s[0].Together != 1 || s[1].Together != 0 || crossing.Appliers[1].Speedup != 1 {
		t.Errorf("all of it crosses: got %+v %+v, want no gain", s, crossing.Appliers)
	}
	if heavy := Of([]Set{{Schemas: []string{"x", "y"}, Seconds: 1}, {Schemas: []string{"a", "b"}, Seconds: 2}, {Schemas: []string{"a", "c"}, Seconds: 1}}).Crossing; heavy[0].Seconds != 2 || heavy[1].Schemas[0] != "a" {
		t.Errorf("got %+v, want the heaviest first, and of those that are alike by name", heavy)
	}
	if heavy := Of([]Set{{Schemas: []string{"a", "b"}, Seconds: 1}, {Schemas: []string{"x", "y"}, Seconds: 2}}).Crossing; heavy[0].Seconds != 2 {
		t.Errorf("got %+v, want the heaviest first, whatever it is called", heavy)
	}
	if idle := Of([]Set{{Schemas: []string{"a"}, Calls: 3}}); len(idle.Appliers) != 0 || idle.Schemas[0].Share != 0 || idle.Schemas[0].Calls != 3 {
		t.Errorf("no time: got %+v, want no bounds", idle)
	}
	if e := Of(nil); e.Calls != 0 || len(e.Appliers) != 0 {
		t.Errorf("got %+v, want no calls and no appliers", e)
	}
}
