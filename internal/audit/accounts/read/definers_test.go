package read_test

import (
	"testing"

	"github.com/rissodb/risso/internal/audit/accounts/read"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestDefiners: all that runs as an account is counted, in schemas whose names are not what they look like, that have nothing but a view, or a table
// of another engine beside it.
func TestDefiners(t *testing.T) {
	for _, spec := range []string{"mariadb", "mariadb-11.8", "mysql-9.7", "mysql-8.0", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Lend(t, spec)
			c := sandboxtest.Connect(t, n)
			const by = "DEFINER = 'own er'@'local%' "
			for _, s := range []string{"CREATE USER 'own er'@'local%'", "CREATE DATABASE `v/ü#P#x`", "CREATE TABLE `v/ü#P#x`.t (a INT)", "CREATE TABLE `v/ü#P#x`.m (a INT) ENGINE=MyISAM",
				"CREATE " + by + "VIEW `v/ü#P#x`.w AS SELECT 1 AS a", "CREATE " + by + "TRIGGER `v/ü#P#x`.g BEFORE INSERT ON `v/ü#P#x`.t FOR EACH ROW SET @x = 1",
				"CREATE " + by + "PROCEDURE `v/ü#P#x`.p() SELECT 1", "CREATE " + by + "EVENT `v/ü#P#x`.e ON SCHEDULE EVERY 1 YEAR DO SELECT 1",
				"CREATE DATABASE only_view", "CREATE " + by + "VIEW only_view.w AS SELECT 1 AS a", "CREATE DATABASE none", "CREATE TABLE none.t (a INT)"} {
				if err := c.Exec(t.Context(), s); err != nil {
					t.Fatalf("%s: %v", s, err)
				}
			}
			sv, list, err := read.Accounts(t.Context(), sandboxtest.Target(t, n), "one")
			if err != nil {
				t.Fatal(err)
			}
			got := -2
			for _, a := range list {
				if a.Object() == "own er@local%" {
					got = a.Definer
				}
			}
			if got != 5 {
				t.Errorf("got %d, want 5: two views, a trigger, a procedure and an event; unread: %+v", got, sv.Unread)
			}
		})
	}
}
