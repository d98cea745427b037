package trial_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/explain/differ/upgrade"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestReserved: a word counts as reserved since 5.7 exactly if the newer server says that it is reserved and 5.7 takes it for a name.
func TestReserved(t *testing.T) {
	old := sandboxtest.Connect(t, sandboxtest.Lend(t, "mysql-5.7"))
	for _, kind := range []string{"mysql-8.0", "mysql-9.7"} {
		c := sandboxtest.Connect(t, sandboxtest.Lend(t, kind))
		rows, err := c.Maps(t.Context(), "SELECT WORD AS w FROM information_schema.KEYWORDS WHERE RESERVED = 1")
		if err != nil || len(rows) < 200 {
			t.Fatalf("%s: %d reserved words, %v", kind, len(rows), err)
		}
		var reserved []string
		for _, r := range rows {
			reserved = append(reserved, strings.ToLower(r["w"]))
		}
		for _, w := range reserved {
			free := old.Exec(t.Context(), "DO (SELECT x."+w+" FROM (SELECT 1 AS "+w+") x)") == nil
			if free != upgrade.Reserved(w, c.Server.Server) {
				t.Errorf("%s: %s: 5.7 takes it for a name: %t, Reserved says %t", kind, w, free, !free)
			}
		}
		for _, w := range strings.Fields("cume_dist lateral intersect manual parallel qualify tablesample library window rows persist external") {
			if upgrade.Reserved(w, c.Server.Server) != slices.Contains(reserved, w) {
				t.Errorf("%s: Reserved(%s) is %t", kind, w, upgrade.Reserved(w, c.Server.Server))
			}
		}
	}
	before, after := sandboxtest.Connect(t, sandboxtest.Lend(t, "mariadb-10.11")), sandboxtest.Connect(t, sandboxtest.Lend(t, "mariadb-11.8"))
	rows, err := after.Maps(t.Context(), "SELECT LOWER(WORD) AS w FROM information_schema.KEYWORDS WHERE WORD REGEXP '^[A-Z_]+$'")
	if err != nil || len(rows) < 500 {
		t.Fatalf("MariaDB: %d words, %v", len(rows), err)
	}
	for _, r := range rows {
		w := r["w"]
		ask := "DO (SELECT x." + w + " FROM (SELECT 1 AS " + w + ") x)"
		came := before.Exec(t.Context(), ask) == nil && after.Exec(t.Context(), ask) != nil
		if listed := upgrade.Reserved(w, after.Server.Server) && !upgrade.Reserved(w, before.Server.Server); came != listed {
			t.Errorf("MariaDB 10.11 to 11.8: %s became reserved: %t, Reserved says %t", w, came, listed)
		}
	}
	if upgrade.Reserved("rows", fleet.Server{Flavour: fleet.FlavourMySQL, Number: 50722}) {
		t.Error("rows is reserved on 5.7")
	}
}
