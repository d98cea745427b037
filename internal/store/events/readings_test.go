package events

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// TestCovered distinguishes a minute in which nothing ran from one that was not read.
func TestCovered(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		busy := func(n int) Minute { return Minute{"db1", at(n), []Row{row(1, 1, 1)}} }
		if n := add(t, s, busy(0), busy(1), Minute{"db1", at(2), nil}, busy(10), busy(11)); n != 4 {
			t.Errorf("%d minutes with rows stored, want 4", n)
		}
		add(t, s, Minute{"db2", at(3), nil})
		add(t, s, busy(1), Minute{"db1", at(2), nil}, Minute{"db1", at(11), nil}) // once more changes nothing
		covered := func(r Range, points int, instances ...string) []Covered {
			t.Helper()
			got, err := s.Covered(t.Context(), r, instances, points)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		want := []Covered{{"db1", Range{at(0), at(3)}}, {"db1", Range{at(10), at(12)}}, {"db2", Range{at(3), at(4)}}}
		if got := covered(Range{at(-5), at(60)}, 65); !slices.Equal(got, want) {
			t.Errorf("covered %v, want %v", got, want)
		}
		if got := covered(Range{at(-5), at(60)}, 65, "db2"); !slices.Equal(got, want[2:]) {
			t.Errorf("db2 covered %v, want %v", got, want[2:])
		}
		if got, want := covered(Range{at(1), at(11)}, 10, "db1"), []Covered{{"db1", Range{at(1), at(3)}}, {"db1", Range{at(10), at(11)}}}; !slices.Equal(got, want) {
			t.Errorf("a part: %v, want %v", got, want)
		}
		// Points of five minutes: one minute that was read makes its point read.
		if got, want := covered(Range{at(0), at(60)}, 12, "db1"), []Covered{{"db1", Range{at(0), at(5)}}, {"db1", Range{at(10), at(15)}}}; !slices.Equal(got, want) {
			t.Errorf("by five minutes: %v, want %v", got, want)
		}
		if a := top(t, s, TopQuestion{Range: Range{at(0), at(60)}}); a.Total.Calls != 4 {
			t.Errorf("%d calls, want 4", a.Total.Calls)
		}
		if _, err := s.Covered(t.Context(), Range{5, 1}, nil, 10); !errors.Is(err, ErrBadQuestion) {
			t.Errorf("a range that ends before it begins: got %v, want ErrBadQuestion", err)
		}
		if err := s.Prune(t.Context(), time.Unix(at(60*24*90), 0), time.Unix(at(60*24*90), 0)); err != nil {
			t.Fatal(err)
		}
		if got := covered(Range{at(0), at(60)}, 60); len(got) != 0 {
			t.Errorf("after pruning: got %v, want none", got)
		}
	})
}

// TestOrderByQuantile finds what takes longest among all classes, however little load it makes.
func TestOrderByQuantile(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		lat := func(class int, seconds float64, schema string, buckets ...Bucket) Row {
			r := row(class, 100, seconds)
			r.Latency, r.Schema = buckets, schema
			return r
		}
		// Class 9 makes the least load and has the largest p95; that of 3 is larger than that of 2 only when its two minutes are joined.
		add(t, s, Minute{"db1", at(0), []Row{lat(1, 1000, "shop"), lat(2, 50, "shop", Bucket{100, 19}, Bucket{180, 1}), lat(3, 20, "crm", Bucket{90, 10}), lat(9, 1, "crm", Bucket{300, 1})}},
			Minute{"db1", at(1), []Row{lat(3, 20, "crm", Bucket{150, 10}), lat(8, 30, "shop")}},
			Minute{"db2", at(1), []Row{lat(9, 1, "crm", Bucket{10, 99})}})
		for _, c := range []struct {
			order, search string
			schemas       []string
			instances     []string
			limit         int
			want          []int
		}{
			{order: "p95", limit: 20, want: []int{3, 2, 9, 1, 8}},
			{order: "p95", limit: 20, instances: []string{"db1"}, want: []int{9, 3, 2, 1, 8}},
			{order: "p99", limit: 20, want: []int{2, 3, 9, 1, 8}},
			{order: "p50", limit: 2, want: []int{2, 3}},
			{order: "p95", limit: 4, want: []int{3, 2, 9, 1}},
			{order: "p95", limit: 20, search: "from t9 ", want: []int{9}},
			{order: "p95", limit: 20, schemas: []string{"crm"}, want: []int{3, 9}},
			{order: "p95", limit: 20, schemas: []string{"shop"}, search: "select", want: []int{2, 1, 8}},
			{order: "load", limit: 20, want: []int{1, 2, 3, 8, 9}},
		} {
			if c.order == "p95" && c.limit == 20 && c.search == "" && c.schemas == nil && c.instances == nil {
				for _, n := range []int{1, 2, 3, 8, 9} {
					if err := s.AddClasses(t.Context(), class("db1", n, at(0))); err != nil {
						t.Fatal(err)
					}
				}
			}
			a := top(t, s, TopQuestion{Range: Range{at(0), at(60)}, Order: c.order, Search: c.search, Schemas: c.schemas, Instances: c.instances, Limit: c.limit})
			var got []string
			for _, l := range a.Classes {
				got = append(got, l.ID)
			}
			want := make([]string, len(c.want))
			for i, n := range c.want {
				want[i] = id(n)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%+v: %v, want %v", c, got, want)
			}
			if a.Count != 5 {
				t.Errorf("got %+v: %d classes in all, want 5", c, a.Count)
			}
		}
	})
}

// TestQuantileOrderIsSorted asks of days: what is listed by p95 is sorted by the p95 that it shows, hours and days or not.
func TestQuantileOrderIsSorted(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		fillDays(t, s, 3*1440)
		for _, r := range []Range{{at(0), at(3 * 1440)}, {at(61), at(2000)}, {at(5), at(99)}} {
			a := top(t, s, TopQuestion{Range: r, Order: "p95"})
			if len(a.Classes) != 5 {
				t.Fatalf("got %d classes, want 5", len(a.Classes))
			}
			for i, c := range a.Classes {
				if (c.Latency == nil) != (i >= 2) {
					t.Errorf("%v: place %d has latency %+v", r, i, c.Latency)
				}
			}
			if a.Classes[0].Latency.P95 < a.Classes[1].Latency.P95 {
				t.Errorf("%v: got %v before %v, want P95 at least a.Classes[1].Latency.P95", r, a.Classes[0].Latency, a.Classes[1].Latency)
			}
		}
	})
}

// TestPlan: one plan by its ID.
func TestPlan(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		for i, p := range []Plan{{Instance: "db1", ID: "a", Text: "old"}, {Instance: "db1", ID: "a", Text: "new"}, {Instance: "db2", ID: "a", Text: "of db2"}, {Instance: "db1", ID: "b'", Text: "b"}} {
			p.Class, p.LastSeen, p.Origin = id(1), at(i), "explain"
			if _, err := s.AddPlan(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct{ class, plan, instance, want string }{{id(1), "a", "", "of db2"}, {id(1), "a", "db1", "new"}, {id(1), "b'", "", "b"}, {id(1), "c", "", ""}, {id(2), "a", "", ""}, {id(1), "a", "db3", ""}} {
			p, err := s.Plan(t.Context(), c.class, c.plan, c.instance)
			if err != nil {
				t.Fatal(err)
			}
			if got := ""; p != nil {
				if got = p.Text; got != c.want {
					t.Errorf("got %+v: %q, want %q", c, got, c.want)
				}
			} else if c.want != "" {
				t.Errorf("%+v: none", c)
			}
		}
		if _, err := s.Plan(t.Context(), "x", "a", ""); !errors.Is(err, ErrBadQuestion) {
			t.Errorf("a bad class: got %v, want ErrBadQuestion", err)
		}
	})
}
