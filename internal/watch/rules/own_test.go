package rules

import (
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// TestOwn: what is wrong with Risso itself is said, with how bad it is.
func TestOwn(t *testing.T) {
	for _, c := range []struct {
		own  Own
		want string // "ID severity", separated by commas
	}{
		{Own{}, ""},
		{Own{Dir: "/d", Size: 100 * gb, Avail: 3 * gb}, ""},
		{Own{Dir: "/d", Size: 100 * gb, Avail: gb}, "observer.disk warning"},
		{Own{Dir: "/d", Size: 100 * gb, Avail: 100 * mb}, "observer.disk critical"},
		{Own{Dir: "/d", Full: true}, "observer.disk critical"},
		{Own{State: "/d/state.db", Rescued: "/d/state.db.rescued"}, "observer.state critical"},
		{Own{State: "/d/state.db"}, "observer.state critical"},
		{Own{LostEvents: 3, LostAt: begin.Add(-9 * time.Minute)}, "observer.lost critical"},
		{Own{LostMinutes: 3, LostAt: begin.Add(-11 * time.Minute)}, ""},
		{Own{Silent: []Silent{{"db1", begin.Add(-time.Minute)}}}, "observer.silent critical"},
		{Own{Controllers: Controllers{All: 3, Lead: "c1"}}, ""},
		{Own{Controllers: Controllers{All: 3, Lead: "c1", Lost: []string{"c3 does not answer"}}}, "observer.controller warning"},
		{Own{Controllers: Controllers{All: 3}}, "observer.controller critical"},
		{Own{Full: true, LostMinutes: 3, LostAt: begin}, "observer.disk critical,observer.lost critical"},
	} {
		var got []string
		for _, f := range OwnFindings(c.own, begin) {
			got = append(got, f.ID+" "+f.Severity.String())
			runnable(t, fleet.KindHost, f)
			valued(t, f)
		}
		if s := strings.Join(got, ","); s != c.want {
			t.Errorf("%+v: got %q, want %q", c.own, s, c.want)
		}
	}
}
