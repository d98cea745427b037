package carry

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// verb begins what is a statement that changes something, and no words.
var verb = regexp.MustCompile(`^(SET|STOP|START|CHANGE|RESET|KILL|FLUSH|INSERT|ALTER|CREATE|GRANT) `)

// counted is how many sessions were ended, of which a plan does not know yet.
var counted = regexp.MustCompile(`^KILL .*`)

// TestPlanIsDone: what a switchover executes on each server is what its plan says, statement by statement: once as the group was made, and back.
func TestPlanIsDone(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		for _, semi := range []bool{false, true} {
			t.Run(fmt.Sprint(spec, " ", semi), func(t *testing.T) {
				t.Parallel()
				u := newTrio(t, spec, group.Policy{SemiSync: semi})
				u.sql(u.box.Nodes[0], "SET GLOBAL event_scheduler = ON", "CREATE EVENT test.e ON SCHEDULE EVERY 1 HOUR DO DO 1")
				u.complete()
				c := sandboxtest.Connect(t, u.box.Nodes[2]) // it is a replica that takes writes
				u.sql(u.box.Nodes[2], c.Server.Open()...)
				for i := range 3 { // the last one gets back what it had when it was kept from writes
					to := u.box.Nodes[(i+1)%3].Name
					_, old := u.primary()
					p, err := u.carrier().Plan(t.Context(), Asked{Group: "g", By: "test", To: to})
					if err != nil {
						t.Fatal(err)
					}
					app, err := u.app(t.Context(), old) // whose session is ended
					if err != nil {
						t.Fatal(err)
					}
					defer app.Close()
					j, err := u.carrier().Switchover(t.Context(), Asked{Group: "g", By: "test", To: to})
					if err != nil {
						t.Fatal(err)
					}
					planned, done := map[string][]string{}, map[string][]string{}
					for _, s := range p.Plan {
						where, is := strings.CutPrefix(s.Where, "on ")
						switch {
						case strings.Contains(s.What, "/* risso: as it was */"): // the journal has it in words
							if where != to || i < 2 {
								t.Errorf("%s %s: it was not kept from writes before", s.What, s.Where)
							}
						case is && verb.MatchString(s.What):
							planned[where] = append(planned[where], counted.ReplaceAllString(s.What, "KILL"))
						}
					}
					for _, s := range j.Steps {
						if verb.MatchString(s.What) {
							done[s.Where] = append(done[s.Where], counted.ReplaceAllString(s.What, "KILL"))
						}
					}
					for _, n := range u.box.Nodes {
						a, b := planned[n.Name], done[n.Name] // what happens beside each other has no order
						for _, what := range a {
							if k := slices.Index(b, what); k >= 0 {
								b = slices.Delete(b, k, k+1)
							} else if !slices.Contains(mysql.RowTable(), what) { // the table is there the second time
								t.Errorf("to %s: planned, and not done on %s: %s", to, n.Name, what)
							}
						}
						for _, what := range b {
							t.Errorf("to %s: done, and not planned on %s: %s", to, n.Name, what)
						}
					}
					u.complete()
				}
			})
		}
	}
}
