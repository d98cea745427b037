package load

import (
	"fmt"
	"testing"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/fleet"
)

// TestUnsureGrants: for a backup that does not say whether GRANTs had names or patterns there is one note, and only if it matters.
func TestUnsureGrants(t *testing.T) {
	noted := map[string]string{"partial_revokes": "OFF"}
	for _, c := range []struct {
		server repo.Server
		grant  string
		told   int
	}{
		{repo.Server{Server: fleet.Server{Flavour: "MySQL", Number: 80035}}, "GRANT SELECT ON `a_b`.* TO `u`@`%`", 1},
		{repo.Server{Server: fleet.Server{Flavour: "MySQL", Number: 80035}}, "GRANT SELECT ON `a%`.* TO `u`@`%`", 1},
		{repo.Server{Server: fleet.Server{Flavour: "MySQL", Number: 80035}}, "GRANT SELECT ON `ab`.* TO `u`@`%`", 0},
		{repo.Server{Server: fleet.Server{Flavour: "MySQL", Number: 80035}}, "GRANT SELECT ON `a_b`.`t` TO `u`@`%`", 0},
		{repo.Server{Server: fleet.Server{Flavour: "MySQL", Number: 80035}}, "REVOKE SELECT ON `a_b`.* FROM `u`@`%`", 0},
		{repo.Server{Server: fleet.Server{Flavour: "MySQL", Number: 80035}, Variables: noted}, "GRANT SELECT ON `a_b`.* TO `u`@`%`", 0},
		{repo.Server{Server: fleet.Server{Flavour: "MySQL", Number: 80015}}, "GRANT SELECT ON `a_b`.* TO `u`@`%`", 0},
		{repo.Server{Server: fleet.Server{Flavour: "MariaDB", Number: 110800}}, "GRANT SELECT ON `a_b`.* TO `u`@`%`", 0},
	} {
		r := &run{header: repo.Header{Server: c.server}}
		for i := range 2 {
			r.unsureGrants(&repo.Object{Kind: repo.Account, Name: fmt.Sprint("u", i, "@%"), After: []string{"GRANT USAGE ON *.* TO `u`@`%`", c.grant}})
		}
		if len(r.plan.Notes) != c.told {
			t.Errorf("got %+v, %s: told %q; want length %v", c.server, c.grant, r.plan.Notes, c.told)
		}
	}
}
