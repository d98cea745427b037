package events

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func addActivity(t *testing.T, s Store, minutes ...ActivityMinute) int {
	t.Helper()
	n, err := s.AddActivity(t.Context(), minutes...)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestActivity: what classes were found doing, by whom, from where, and who blocked them; a minute stored twice counts once.
func TestActivity(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		var list []Minute
		var found []ActivityMinute
		for i := range 100 {
			list = append(list, Minute{"db1", at(i), []Row{row(1, 10, 5), row(2, 10, 1)}}, Minute{"db2", at(i), []Row{row(1, 1, 1)}})
			found = append(found, ActivityMinute{"db1", at(i), []Activity{
				{Class: id(1), Wait: "row_lock", Schema: "shop", User: "app", Host: "web1", Blocker: id(2), Calls: 3, Seconds: 3},
				{Class: id(1), Wait: "row_lock", Schema: "shop", User: "app", Host: "web2", Calls: 1, Seconds: 1},
				{Class: id(1), Wait: "metadata_lock", Schema: "crm", User: "d'ba\\", Host: "web1", Blocker: id(3), Calls: 1, Seconds: 2},
				{Class: id(1), Wait: "running", Schema: "crm", User: "", Host: "", Calls: 1, Seconds: 5},
				{Class: id(2), Wait: "io", Schema: "shop", User: "app", Host: "web1", Calls: 1, Seconds: 1}}},
				ActivityMinute{"db2", at(i), []Activity{{Class: id(1), Wait: "commit", Schema: "shop", User: "u2", Host: "web3", Calls: 1, Seconds: 1}}})
		}
		add(t, s, list...)
		if n := addActivity(t, s, found[:150]...); n != 150 {
			t.Errorf("got %d stored, want 150", n)
		}
		if n := addActivity(t, s, append(found, ActivityMinute{Instance: "db1", Time: at(200)})...); n != 50 {
			t.Errorf("again: %d stored, want 50", n)
		}
		if err := s.AddClasses(t.Context(), class("db1", 1, at(0)), class("db1", 2, at(0)), class("db2", 1, at(0))); err != nil {
			t.Fatal(err)
		}
		r := Range{at(10), at(20)}
		a, err := s.Class(t.Context(), ClassQuestion{Range: r, ID: id(1), Points: 10, Instances: []string{"db1"}})
		if err != nil {
			t.Fatal(err)
		}
		for what, c := range map[string]struct {
			got  any
			want any
		}{
			"waits":   {a.Waits, []Part{{"running", 10, 50}, {"row_lock", 40, 40}, {"metadata_lock", 10, 20}}},
			"users":   {a.ByUser, []Part{{"", 10, 50}, {"app", 40, 40}, {"d'ba\\", 10, 20}}},
			"hosts":   {a.ByHost, []Part{{"", 10, 50}, {"web1", 40, 50}, {"web2", 10, 10}}},
			"from":    {a.ByUserFrom, "activity"},
			"all":     {a.Activity, Part{"", 60, 110}},
			"blocked": {a.BlockedBy, []Blocker{{id(2), "select * from t2 where a = ?", "row_lock", 30, 30}, {"", "", "metadata_lock", 10, 20}, {"", "", "row_lock", 10, 10}}},
		} {
			if fmt.Sprint(c.got) != fmt.Sprint(c.want) {
				t.Errorf("%s: %v, want %v", what, c.got, c.want)
			}
		}
		if a, err = s.Class(t.Context(), ClassQuestion{Range: Range{at(300), at(310)}, ID: id(1), Points: 10}); err != nil || len(a.Waits) != 0 || a.Activity.Calls != 0 || a.ByUserFrom != "" {
			t.Errorf("an empty range: got %+v %v; want no a.Waits, Activity.Calls 0, ByUserFrom \"\"", a, err)
		}
		got := top(t, s, TopQuestion{Range: r})
		if w := got.Classes[0].Wait; w == nil || *w != (Part{"running", 10, 50}) {
			t.Errorf("heaviest wait %+v; want w not nil, *w Part{\"running\", 10, 50}", w)
		}
		if w := top(t, s, TopQuestion{Range: r, Schemas: []string{"shop"}}).Classes[0].Wait; w == nil || *w != (Part{"row_lock", 40, 40}) {
			t.Errorf("heaviest wait in shop %+v; want w not nil, *w Part{\"row_lock\", 40, 40}", w)
		}
		if w := top(t, s, TopQuestion{Range: r, Instances: []string{"db2"}}).Classes[0].Wait; w == nil || w.Value != "commit" {
			t.Errorf("heaviest wait on db2 %+v; want w not nil, Value \"commit\"", w)
		}
		if _, err := s.AddActivity(t.Context(), ActivityMinute{"db1", 61, found[0].Rows}); !errors.Is(err, ErrBadQuestion) {
			t.Errorf("half a minute: got %v, want ErrBadQuestion", err)
		}
		if _, err := s.AddActivity(t.Context(), ActivityMinute{"db1", at(300), []Activity{{Class: "x"}}}); !errors.Is(err, ErrBadQuestion) {
			t.Errorf("a bad class: got %v, want ErrBadQuestion", err)
		}
		// Two months later all of it is older than it is kept, for ClickHouse drops whole months.
		later := time.Unix(at(0), 0).AddDate(0, 2, 0)
		if err := s.Prune(t.Context(), later, time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
		if a, err = s.Class(t.Context(), ClassQuestion{Range: r, ID: id(1), Points: 10}); err != nil || len(a.Waits) != 0 {
			t.Errorf("after pruning: got %+v %v; want none", a.Waits, err)
		}
	})
}
