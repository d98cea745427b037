package carry

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/avail/topology/look"
	"github.com/rissodb/risso/internal/await"
	"github.com/rissodb/risso/internal/mysql"
)

// TestUntold: a member whose account may not see what it replicates is not taken for one that replicates nothing: no group is made of it, nobody counts on it, and it is left
// alone, until the account has the privilege that the words name.
func TestUntold(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			u := newTrio(t, spec, group.Policy{Automatic: true, Rejoin: true})
			old, blind := u.box.Nodes[0], u.box.Nodes[1]
			u.sql(old, "CREATE USER blind@'%' IDENTIFIED BY 'blind'")
			u.complete()
			a, err := u.room.Access(t.Context(), "g")
			if err != nil {
				t.Fatal(err)
			}
			a.Members[blind.Name] = fmt.Sprintf("blind:blind@tcp(127.0.0.1:%d)/", blind.Port)
			if err := u.room.SetAccess(t.Context(), "g", a); err != nil {
				t.Fatal(err)
			}
			var f *Forecast
			await.Until(t, func() bool { // it has the account by then
				f, err = u.carrier().Forecast(t.Context(), Asked{Group: "g"})
				i := slices.IndexFunc(f.Choice.Candidates, func(c failover.Candidate) bool { return c.Name == blind.Name })
				return err == nil && len(f.Choice.Candidates[i].Refused) > 0 && strings.Contains(f.Choice.Candidates[i].Refused[0].Why, "whom it replicates from is not known")
			}, "%s to be one that does not tell", blind.Name)
			if f.Choice.Winner == blind.Name {
				t.Errorf("it would follow: %+v", f.Choice)
			}
			did, _, err := u.carrier().Tend(t.Context(), "g", Tends)
			if err != nil || len(did) > 0 {
				t.Errorf("it is looked after: got %q, %v", did, err)
			}
			g, _ := u.primary()
			targets, _, err := u.carrier().targets(t.Context(), g)
			if err != nil {
				t.Fatal(err)
			}
			top := seenAs(t, targets)
			_, no := failover.Members(top, time.Now())
			i := slices.IndexFunc(no, func(r failover.Refusal) bool { return r.Code == "not_told" })
			if i < 0 || len(no) != 1 || !strings.HasPrefix(no[0].Remedy, "GRANT ") {
				t.Fatalf("a group of it: got %+v; want that it does not tell, and a GRANT", no)
			}
			u.sql(old, strings.TrimSuffix(no[i].Remedy, ";"))
			await.Until(t, func() bool {
				_, no := failover.Members(seenAs(t, targets), time.Now())
				return len(no) == 0
			}, "a group of it, after %s", no[i].Remedy)
		})
	}
}

// seenAs looks at members, as the command that makes a group does.
func seenAs(t *testing.T, targets map[string]mysql.Target) *topology.Topology {
	t.Helper()
	var list []mysql.Target
	var starts []topology.Start
	for name, target := range targets {
		list, starts = append(list, target), append(starts, topology.Start{Name: name, Address: target.Address()})
	}
	search := look.Search(list)
	search.Alone = true
	return search.Discover(t.Context(), starts)
}
