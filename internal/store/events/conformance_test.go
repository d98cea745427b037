package events

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/lack"
)

// stores are the ways to open a new, empty store; each test of the suite runs over all of them.
var stores = []struct {
	name string
	open func(t *testing.T) Store
}{
	{"duckdb", openDuckDB},
	{"clickhouse", openClickHouse},
}

func openDuckDB(t *testing.T) Store {
	t.Helper()
	if !Embedded {
		lack.Of(t, "this test binary was built without cgo: there is no embedded store")
	}
	s, err := OpenEmbedded(t.Context(), t.TempDir()+"/events.duckdb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func eachStore(t *testing.T, f func(t *testing.T, s Store)) {
	t.Helper()
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) { f(t, s.open(t)) })
	}
}

// id is the class ID number n.
func id(n int) string { return fmt.Sprintf("%016X%016X", uint64(n)*0x9E3779B97F4A7C15, n) }

// at is a time in the tests: minutes after midnight of a day in 2026.
func at(minutes int) int64 { return 1_780_272_000 + int64(minutes)*60 }

func row(class int, calls int64, seconds float64) Row {
	return Row{Class: id(class), Schema: "shop", Cost: fleet.Cost{Calls: calls, Seconds: seconds, LockSeconds: seconds / 10, RowsSent: calls, RowsExamined: calls * 7, MaxSeconds: seconds / float64(calls)}}
}

func class(instance string, n int, first int64) Class {
	return Class{Instance: instance, ID: id(n), Digest: fmt.Sprintf("d%d", n), PtID: "PT", Fingerprint: fmt.Sprintf("select * from t%d where a = ?", n), Verb: "SELECT", Tables: fmt.Sprintf("shop.t%d", n), FirstSeen: first, LastSeen: first}
}

func add(t *testing.T, s Store, minutes ...Minute) int {
	t.Helper()
	n, err := s.AddMinutes(t.Context(), minutes...)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func top(t *testing.T, s Store, q TopQuestion) *TopAnswer {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 20
	}
	a, err := s.Top(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b), 1) }

// TestTwiceIsOnce stores a minute twice, alone and within another batch: its numbers stay, those of hours too.
func TestTwiceIsOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		m := Minute{"db1", at(0), []Row{row(1, 10, 2), row(2, 5, 1)}}
		if n := add(t, s, m); n != 1 {
			t.Errorf("first time: got %d stored, want 1", n)
		}
		changed := Minute{"db1", at(0), []Row{row(1, 99, 99)}}
		if n := add(t, s, m, Minute{"db1", at(1), []Row{row(1, 1, 1)}}, changed, Minute{"db2", at(0), []Row{row(1, 3, 3)}}); n != 2 {
			t.Errorf("second time: %d stored, want 2", n)
		}
		a := top(t, s, TopQuestion{Range: Range{at(0), at(60)}})
		if a.Total.Calls != 19 || !near(a.Total.Seconds, 7) || a.Count != 2 || a.First > at(0) {
			t.Errorf("total %+v count %d first %d; want Calls 19, near(a.Total.Seconds, 7) true, a.Count 2, a.First at most at(0)", a.Total, a.Count, a.First)
		}
		a = top(t, s, TopQuestion{Range: Range{at(0), at(60)}, Instances: []string{"db2"}})
		if a.Total.Calls != 3 || len(a.Classes) != 1 {
			t.Errorf("db2: got %+v; want Total.Calls 3, len(Classes) 1", a)
		}
	})
}

// sum is what rows of a class add up to.
type sum struct {
	calls   int64
	seconds float64
	max     float64
	latency int64
}

func (s *sum) add(r Row) {
	s.calls += r.Calls
	s.seconds += r.Seconds
	s.max = max(s.max, r.MaxSeconds)
	for _, b := range r.Latency {
		s.latency += b.Calls
	}
}

// fillDays stores some days of two instances, minutes in any order and some very late, and returns them.
func fillDays(t *testing.T, s Store, minutes int) (all []Minute) {
	t.Helper()
	var late []Minute
	for i := range minutes {
		m := Minute{Instance: fmt.Sprintf("db%d", i%2), Time: at(i)}
		for c := 1; c <= 1+i%5; c++ {
			r := row(c, int64(1+i%7), float64(c)*0.25)
			if c <= 2 {
				r.Latency = []Bucket{{int16(100 + c), 1}}
				if i%7 != 0 {
					r.Latency = append(r.Latency, Bucket{int16(200 + i%3), int64(i % 7)})
				}
			}
			m.Rows = append(m.Rows, r)
		}
		all = append(all, m)
		if i%501 == 0 && i%350 != 3 {
			add(t, s, m)
			continue
		}
		if late = append(late, m); len(late) > 400 {
			add(t, s, late[20:]...)
			late = late[:20]
		}
	}
	for i := len(late) - 1; i >= 0; i-- {
		add(t, s, late[i])
	}
	return all
}

// TestHoursEqualMinutes asks the same of ranges that are read from minutes and from hours and days: the sums are those of
// the rows.
func TestHoursEqualMinutes(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		all := fillDays(t, s, 5000)
		for _, r := range []Range{{at(0), at(600)}, {at(7), at(593)}, {at(60), at(540)}, {at(61), at(119)}, {at(0), at(59)}, {at(30), at(330)},
			{at(0), at(5000)}, {at(1), at(4999)}, {at(1440), at(4320)}, {at(1500), at(3000)}, {at(1439), at(2881)}} {
			want, total := map[string]*sum{}, sum{}
			for _, m := range all {
				for _, row := range m.Rows {
					if m.Time < r.From || m.Time >= r.To {
						continue
					}
					if want[row.Class[:16]] == nil {
						want[row.Class[:16]] = new(sum)
					}
					want[row.Class[:16]].add(row)
					total.add(row)
				}
			}
			a := top(t, s, TopQuestion{Range: r, Sparks: 10})
			if a.Total.Calls != total.calls || !near(a.Total.Seconds, total.seconds) || int(a.Count) != len(want) || len(a.Classes) != len(want) {
				t.Errorf("%v: total %+v of %d classes, want %+v of %d", r, a.Total, a.Count, total, len(want))
			}
			for i, c := range a.Classes {
				if i > 0 && c.Seconds > a.Classes[i-1].Seconds {
					t.Errorf("%v: not ordered by load", r)
				}
				compareSum(t, r, a, c, want[c.ID[:16]])
			}
		}
	})
}

func compareSum(t *testing.T, r Range, a *TopAnswer, c ClassLoad, want *sum) {
	t.Helper()
	if want == nil {
		t.Errorf("%v: class %s did not run", r, c.ID)
		return
	}
	spark := 0.0
	for _, v := range c.Spark {
		spark += v * float64(a.Step)
	}
	if c.Calls != want.calls || !near(c.Seconds, want.seconds) || !near(c.MaxSeconds, want.max) || !near(spark, want.seconds) || c.RowsExamined != 7*want.calls {
		t.Errorf("%v: class %s: %+v spark %v, want %+v", r, c.ID, c.Cost, spark, want)
	}
	if (c.Latency == nil) != (want.latency == 0) || c.Latency != nil && c.Latency.Calls != want.latency {
		t.Errorf("%v: class %s: latency %+v, want %d calls", r, c.ID, c.Latency, want.latency)
	}
}

// TestClassHistory asks for one class: points, parts, names, samples.
func TestClassHistory(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		ctx := t.Context()
		var list []Minute
		for i := range 180 {
			r := row(1, 10, 1)
			r.Latency = []Bucket{{150, 9}, {250, 1}}
			other := r
			other.Schema, other.User, other.Calls, other.Latency = "crm", "app", 5, nil
			list = append(list, Minute{"db1", at(i), []Row{r, other, row(2, 1, 1)}}, Minute{"db2", at(i), []Row{r}})
		}
		add(t, s, list...)
		if err := s.AddClasses(ctx, class("db1", 1, at(5)), class("db2", 1, at(3)), class("db1", 2, at(0))); err != nil {
			t.Fatal(err)
		}
		again := class("db1", 1, at(9))
		again.LastSeen = at(170)
		if err := s.AddClasses(ctx, again); err != nil {
			t.Fatal(err)
		}
		text := "select 'it''s' from t where a = '\\\t\n\\'' -- ü 🐬 \x01"
		sample := Sample{Instance: "db1", Class: id(1), Time: at(7), Text: text, Seconds: 0.25, Schema: "shop", User: "u", Host: "h"}
		if err := s.AddSamples(ctx, sample, sample, Sample{Instance: "db2", Class: id(1), Time: at(8), Text: "x"}); err != nil {
			t.Fatal(err)
		}
		if err := s.AddSamples(ctx, sample); err != nil {
			t.Fatal(err)
		}
		a, err := s.Class(ctx, ClassQuestion{Range: Range{at(0), at(180)}, ID: id(1), Points: 60})
		if err != nil {
			t.Fatal(err)
		}
		if a.ID != id(1) || a.FirstSeen != at(3) || a.LastSeen != at(170) || a.Fingerprint != "select * from t1 where a = ?" || a.PtID != "PT" || a.Tables != "shop.t1" || a.Instance != "db1" || a.Digest != "d1" {
			t.Errorf("class %+v; want a.ID id(1), a.FirstSeen at(3), a.LastSeen at(170), a.Fingerprint \"select * from t1 where a = ?\", a.PtID \"PT\", a.Tables \"shop.t1\", a.Instance \"db1\", a.Digest \"d1\"",
				a.Class)
		}
		if len(a.Points) == 0 || len(a.Points) > 60 || a.Total.Calls != 180*25 || !near(a.Total.Seconds, 180*3) {
			t.Errorf("got %d points of %d s, total %+v; want len(a.Points) not 0, len(a.Points) at most 60, Calls 180 * 25, near(a.Total.Seconds, 180*3) true",
				len(a.Points), a.Step, a.Total)
		}
		sum := int64(0)
		for i, p := range a.Points {
			sum += p.Calls
			if p.Time%a.Step != 0 || i > 0 && p.Time <= a.Points[i-1].Time || p.Latency == nil || !near(p.Latency.P50, UpperBound(150)) || !near(p.Latency.P95, UpperBound(250)) {
				t.Errorf("point %+v %+v", p, p.Latency)
			}
		}
		if sum != a.Total.Calls {
			t.Errorf("points add up to %d calls, total is %d", sum, a.Total.Calls)
		}
		if a.Latency == nil || a.Latency.Calls != 3600 {
			t.Errorf("latency %+v; want a.Latency not nil, Calls 3600", a.Latency)
		}
		if want := []Part{{"db1", 2700, 360}, {"db2", 1800, 180}}; fmt.Sprint(a.ByInstance) != fmt.Sprint(want) {
			t.Errorf("by instance %v, want %v", a.ByInstance, fmt.Sprint(want))
		}
		if want := []Part{{"shop", 3600, 360}, {"crm", 900, 180}}; fmt.Sprint(a.BySchema) != fmt.Sprint(want) {
			t.Errorf("by schema %v, want %v", a.BySchema, fmt.Sprint(want))
		}
		if want := []Part{{"", 3600, 360}, {"app", 900, 180}}; fmt.Sprint(a.ByUser) != fmt.Sprint(want) {
			t.Errorf("by user %v, want %v", a.ByUser, fmt.Sprint(want))
		}
		if len(a.Samples) != 2 || a.Samples[0].Instance != "db2" || a.Samples[1].Text != text || a.Samples[1].Host != "h" || a.Samples[1].Seconds != 0.25 {
			t.Errorf("samples %+v; want len(a.Samples) 2, a.Samples[0].Instance \"db2\", a.Samples[1].Text %v, a.Samples[1].Host \"h\", a.Samples[1].Seconds 0.25",
				a.Samples, text)
		}
		got, err := s.Classes(ctx, "db1", 10)
		if err != nil || len(got) != 2 || got[0].ID != id(1) || got[0].FirstSeen != at(5) || got[0].LastSeen != at(170) || got[1].Digest != "d2" {
			t.Errorf("classes %+v %v; want len(got) 2, got[0].ID id(1), got[0].FirstSeen at(5), got[0].LastSeen at(170), got[1].Digest \"d2\"", got, err)
		}
	})
}

// TestSearchAndOrder finds by fingerprint, table and ID, whatever is in the text, and orders by each word.
func TestSearchAndOrder(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		slow := row(3, 1, 5)
		slow.Errors, slow.NoIndex, slow.TmpDiskTables, slow.SortRows, slow.Warnings, slow.RowsAffected = 1, 1, 1, 1, 1, 1
		slow.RowsExamined, slow.RowsSent = 10000, 101
		add(t, s, Minute{"db1", at(0), []Row{row(1, 100, 4), row(2, 50, 3), slow}})
		odd := class("db1", 2, at(0))
		odd.Fingerprint = `select '%_\' from "T'"`
		if err := s.AddClasses(t.Context(), class("db1", 1, at(0)), odd, class("db1", 3, at(0))); err != nil {
			t.Fatal(err)
		}
		r := Range{at(0), at(1)}
		for search, want := range map[string]int{"": 3, "t1 WHERE": 1, "shop.t": 3, "  SELECT   *": 2, `'%_\'`: 1, "%": 1, `"t'"`: 1, strings.ToLower(id(3)[:8]): 1, "nothing like it": 0, `' OR 1=1 -- `: 0} {
			a := top(t, s, TopQuestion{Range: r, Search: search})
			if len(a.Classes) != want || a.Count != 3 || a.Total.Calls != 151 {
				t.Errorf("search %q: %d classes, count %d, want %d", search, len(a.Classes), a.Count, want)
			}
		}
		for _, o := range Orders() {
			want := id(3)
			if o == "calls" {
				want = id(1)
			}
			if a := top(t, s, TopQuestion{Range: r, Order: o, Limit: 1}); len(a.Classes) != 1 || a.Classes[0].ID != want {
				t.Errorf("order %s: got %+v; want len(a.Classes) 1, a.Classes[0].ID %v", o, a.Classes, want)
			}
		}
		if a := top(t, s, TopQuestion{Range: r, Instances: []string{"db1' OR '1'='1"}}); a.Count != 0 {
			t.Errorf("a quote in an instance's name found %d classes, want 0", a.Count)
		}
		for _, q := range []TopQuestion{{Range: r, Order: "1; DROP TABLE", Limit: 1}, {Range: r, Limit: 0}, {Range: r, Limit: MaxLimit + 1}, {Range: Range{at(1), at(1)}, Limit: 1}, {Range: Range{-1, at(1)}, Limit: 1}} {
			if _, err := s.Top(t.Context(), q); !errors.Is(err, ErrBadQuestion) {
				t.Errorf("got %+v: %v, want ErrBadQuestion", q, err)
			}
		}
		if _, err := s.Class(t.Context(), ClassQuestion{Range: r, ID: "nonsense", Points: 5}); !errors.Is(err, ErrBadQuestion) {
			t.Errorf("a bad ID: got %v, want ErrBadQuestion", err)
		}
		if _, err := s.AddMinutes(t.Context(), Minute{"db1", 61, nil}); !errors.Is(err, ErrBadQuestion) {
			t.Errorf("half a minute: got %v, want ErrBadQuestion", err)
		}
	})
}

// TestPlansFlip sees a plan change, change back, and stay.
func TestPlansFlip(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		ctx := t.Context()
		see := func(minute int, plan, schema string) *Flip {
			t.Helper()
			f, err := s.AddPlan(ctx, Plan{Instance: "db1", Class: id(1), Schema: schema, ID: plan, LastSeen: at(minute), Origin: "explain", Text: `{"plan":"` + plan + `\n"}`})
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		if f := see(0, "A", "shop"); f != nil {
			t.Errorf("the first plan is a flip: %+v, want nil", f)
		}
		if f := see(1, "A", "shop"); f != nil {
			t.Errorf("the same plan is a flip: %+v, want nil", f)
		}
		if f := see(2, "B", "crm"); f != nil {
			t.Errorf("another schema's plan is a flip: %+v, want nil", f)
		}
		if f := see(3, "B", "shop"); f == nil || f.Old != "A" || f.New != "B" || f.Time != at(3) {
			t.Errorf("flip %+v; want f not nil, Old \"A\", New \"B\", Time at(3)", f)
		}
		if f := see(5, "A", "shop"); f == nil || f.Old != "B" || f.New != "A" {
			t.Errorf("flip back %+v; want f not nil, Old \"B\", New \"A\"", f)
		}
		for i, m := range []int{3, 4} { // another origin has its own IDs
			if f, err := s.AddPlan(ctx, Plan{Instance: "db1", Class: id(2), Schema: "shop", ID: []string{"A", "table"}[i], LastSeen: at(m), Origin: []string{"explain", "slow log"}[i], Text: "{}"}); err != nil || f != nil {
				t.Errorf("a plan of another origin is a flip: %+v, %v; want nil", f, err)
			}
		}
		add(t, s, Minute{"db1", at(2), []Row{row(1, 10, 1)}}, Minute{"db1", at(4), []Row{row(1, 10, 9)}})
		a, err := s.Class(ctx, ClassQuestion{Range: Range{at(0), at(5)}, ID: id(1), Points: 10})
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Plans) != 3 || a.Plans[0].ID != "A" || a.Plans[0].FirstSeen != at(0) || a.Plans[0].LastSeen != at(5) || a.Plans[0].Text != `{"plan":"A\n"}` {
			t.Errorf("plans %+v; want len(a.Plans) 3, a.Plans[0].ID \"A\", a.Plans[0].FirstSeen at(0), a.Plans[0].LastSeen at(5), a.Plans[0].Text \"{\\\"plan\\\":\\\"A\\\\n\\\"}\"",
				a.Plans)
		}
		if len(a.Flips) != 1 || a.Flips[0].New != "B" {
			t.Errorf("flips in the range %+v; want len(a.Flips) 1, a.Flips[0].New \"B\"", a.Flips)
		}
		c, err := s.Compare(ctx, CompareQuestion{A: Range{at(0), at(3)}, B: Range{at(3), at(6)}, Limit: 5})
		if err != nil || len(c.Changes) != 1 || len(c.Changes[0].Flips) != 2 || c.Changes[0].Kind != "slower" {
			t.Errorf("compare %+v %v; want len(Changes) 1, len(Changes[0].Flips) 2, Changes[0].Kind \"slower\"", c, err)
		}
	})
}

// TestCompare reports what changed, in the order of its part in the change of the load.
func TestCompare(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		var list []Minute
		for i := range 120 {
			before := []Row{row(1, 100, 1), row(2, 100, 1), row(3, 100, 1), row(4, 100, 1), row(5, 100, 1), row(7, 10, 0.5)}
			after := []Row{row(1, 100, 5), row(2, 300, 3), row(3, 100, 1.02), row(4, 50, 0.5), row(6, 10, 3), row(7, 10, 0.05)}
			if i < 60 {
				list = append(list, Minute{"db1", at(i), before})
			} else {
				list = append(list, Minute{"db1", at(i), after})
			}
		}
		add(t, s, list...)
		a, err := s.Compare(t.Context(), CompareQuestion{A: Range{at(0), at(60)}, B: Range{at(60), at(120)}, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		sum := 0.0
		for _, c := range a.Changes {
			got = append(got, c.Kind)
			sum += c.Delta
			if !near(c.Slower+c.Oftener, c.Delta) {
				t.Errorf("the parts %v and %v do not make %v", c.Slower, c.Oftener, c.Delta)
			}
		}
		if want := "slower new oftener gone rarer faster same"; strings.Join(got, " ") != want && strings.Join(got, " ") != "slower new oftener gone faster rarer same" {
			t.Errorf("kinds %v, want %s", got, want)
		}
		if !near(sum, a.LoadB-a.LoadA) || a.Count != 7 || !near(a.Changes[0].Delta, 4.0/60) || a.Changes[0].A.Calls != 6000 {
			t.Errorf("deltas add up to %v, load %v → %v, %+v; want near(sum, a.LoadB-a.LoadA) true, a.Count 7, near(a.Changes[0].Delta, 4.0/60) true, a.Changes[0].A.Calls 6000",
				sum, a.LoadA, a.LoadB, a.Changes[0])
		}
		// Of unequal lengths, rates are compared.
		a, err = s.Compare(t.Context(), CompareQuestion{A: Range{at(0), at(60)}, B: Range{at(0), at(30)}, Limit: 10})
		if err != nil || len(a.Changes) != 6 || a.Changes[0].Kind != "same" || !near(a.Changes[0].Delta, 0) {
			t.Errorf("half of the same: got %+v %v; want len(Changes) 6, Changes[0].Kind \"same\", near(a.Changes[0].Delta, 0) true", a, err)
		}
	})
}

// TestPrune deletes minutes before hours, and nothing too early. Ages are such that whole months differ.
func TestPrune(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		ctx := t.Context()
		day := 60 * 24
		var list []Minute
		for _, age := range []int{100, 70, 1} {
			for i := range 60 * 5 {
				list = append(list, Minute{"db1", at(i - age*day), []Row{row(1, 1, 1)}})
			}
		}
		add(t, s, list...)
		if err := s.AddClasses(ctx, class("db1", 1, at(0))); err != nil {
			t.Fatal(err)
		}
		if err := s.AddSamples(ctx, Sample{Instance: "db1", Class: id(1), Time: at(-100 * day), Text: "old"}, Sample{Instance: "db1", Class: id(1), Time: at(-day), Text: "new"}); err != nil {
			t.Fatal(err)
		}
		all := Range{at(-200 * day), at(day)}
		if err := s.Prune(ctx, time.Unix(at(-35*day), 0), time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
		if a := top(t, s, TopQuestion{Range: all}); a.Total.Calls != 900 {
			t.Errorf("%d calls are left when only minutes went, of 900; want 900", a.Total.Calls)
		}
		// An old range asks hours, though it is short.
		a, err := s.Class(ctx, ClassQuestion{Range: Range{at(60 - 70*day), at(180 - 70*day)}, ID: id(1), Points: 100})
		if err != nil || a.Total.Calls != 120 || a.Step != hour || len(a.Points) != 2 {
			t.Errorf("old hours: got %+v %v; want Total.Calls 120, Step %v, len(Points) 2", a, err, hour)
		}
		if a, err = s.Class(ctx, ClassQuestion{Range: all, ID: id(1), Points: 100}); err != nil || len(a.Samples) != 1 || a.Samples[0].Text != "new" {
			t.Errorf("samples: got %+v %v; want len(a.Samples) 1, a.Samples[0].Text \"new\"", a.Samples, err)
		}
		if err := s.Prune(ctx, time.Unix(at(-35*day), 0), time.Unix(at(-80*day), 0)); err != nil {
			t.Fatal(err)
		}
		if a := top(t, s, TopQuestion{Range: all}); a.Total.Calls != 600 || a.First < at(-71*day) {
			t.Errorf("%d calls are left since %d, of 600; want a.Total.Calls 600, a.First at least at(-71 * day)", a.Total.Calls, a.First)
		}
	})
}

// TestCancelled ends with its context.
func TestCancelled(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Top(ctx, TopQuestion{Range: Range{at(0), at(1)}, Limit: 1}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
		if _, err := s.AddMinutes(ctx, Minute{"db1", at(0), []Row{row(1, 1, 1)}}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
		if n := add(t, s, Minute{"db1", at(0), []Row{row(1, 1, 1)}}); n != 1 {
			t.Errorf("afterwards %d stored, want 1", n)
		}
	})
}

// TestTimeIsOver: a change whose time is over says so, however the database calls it, and the store goes on.
func TestTimeIsOver(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		classes := make([]Class, 20_000)
		for i := range classes {
			classes[i] = class("db1", i, at(0))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if err := s.AddClasses(ctx, classes...); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
		}
		if err := s.AddClasses(t.Context(), classes[:2]...); err != nil {
			t.Error(err)
		}
	})
}
