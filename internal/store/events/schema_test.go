package events

import (
	"errors"
	"slices"
	"testing"
)

// TestSchemas narrows lists and comparisons to schemas, with names that hold quotes.
func TestSchemas(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		in := func(schema string, class int, calls int64, seconds float64) Row {
			r := row(class, calls, seconds)
			r.Schema = schema
			return r
		}
		const odd = `o'd\d "x"`
		add(t, s, Minute{"db1", at(0), []Row{in("shop", 1, 10, 4), in(odd, 1, 5, 1), in("", 2, 7, 2)}},
			Minute{"db1", at(1), []Row{in("shop", 1, 10, 8), in(odd, 2, 5, 3)}})
		if err := s.AddClasses(t.Context(), class("db1", 1, at(0)), class("db1", 2, at(0))); err != nil {
			t.Fatal(err)
		}
		r := Range{at(0), at(1)}
		for _, c := range []struct {
			schemas []string
			search  string
			calls   []int64 // of the listed classes, the costliest first
		}{{nil, "", []int64{15, 7}}, {[]string{"shop"}, "", []int64{10}}, {[]string{odd}, "", []int64{5}}, {[]string{""}, "", []int64{7}}, {[]string{"", "shop"}, "t2", []int64{7}},
			{[]string{"shop"}, "t2", nil}, {[]string{"' OR 1=1 -- "}, "", nil}} {
			a := top(t, s, TopQuestion{Range: r, Schemas: c.schemas, Search: c.search, Sparks: 1})
			var calls []int64
			for _, l := range a.Classes {
				calls = append(calls, l.Calls)
				if want := l.Seconds / float64(a.Step); len(l.Spark) != 1 || l.Spark[0] != want {
					t.Errorf("%q: spark %v, want %v", c.schemas, l.Spark, want)
				}
			}
			if !slices.Equal(calls, c.calls) || a.Total.Calls != 22 || a.Count != 2 {
				t.Errorf("%q %q: calls %v of %d, %d classes; want %v", c.schemas, c.search, calls, a.Total.Calls, a.Count, c.calls)
			}
		}
		for instance, want := range map[string][]Part{"db1": {{"shop", 10, 4}, {"", 7, 2}, {odd, 5, 1}}, "db2": nil} {
			got, err := s.Schemas(t.Context(), r, []string{instance})
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("schemas of %s: %v %v, want %v", instance, got, err, want)
			}
		}
		d, err := s.Compare(t.Context(), CompareQuestion{A: r, B: Range{at(1), at(2)}, Schemas: []string{odd}, Limit: 9})
		if err != nil {
			t.Fatal(err)
		}
		if d.A.Calls != 5 || d.B.Calls != 5 || len(d.Changes) != 2 || d.Changes[0].Kind != "new" || d.Changes[1].Kind != "gone" {
			t.Errorf("compared: got %+v; want A.Calls 5, B.Calls 5, len(Changes) 2, Changes[0].Kind \"new\", Changes[1].Kind \"gone\"", d)
		}
		if _, err := s.Top(t.Context(), TopQuestion{Range: r, Limit: 1, Schemas: make([]string, maxSchemas+1)}); !errors.Is(err, ErrBadQuestion) {
			t.Errorf("too many schemas: got %v, want ErrBadQuestion", err)
		}
	})
}

// TestFlipsInList counts the flips of a range in the rows of a list.
func TestFlipsInList(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		add(t, s, Minute{"db1", at(0), []Row{row(1, 10, 4), row(2, 10, 2)}})
		if err := s.AddClasses(t.Context(), class("db1", 1, at(0)), class("db1", 2, at(0))); err != nil {
			t.Fatal(err)
		}
		for i, p := range []string{"a", "b", "a"} {
			if _, err := s.AddPlan(t.Context(), Plan{Instance: "db1", Class: id(1), ID: p, LastSeen: at(0) + int64(i)*20, Origin: "explain", Text: "{}"}); err != nil {
				t.Fatal(err)
			}
		}
		a := top(t, s, TopQuestion{Range: Range{at(0), at(0) + 30}})
		if len(a.Classes) != 2 || a.Classes[0].Flips != 1 || a.Classes[1].Flips != 0 {
			t.Errorf("flips: got %+v; want len(a.Classes) 2, a.Classes[0].Flips 1, a.Classes[1].Flips 0", a.Classes)
		}
	})
}
