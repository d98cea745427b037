package read_test

import (
	"testing"

	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestStillVariables: no variable differs only because the server works, with a transaction that is open and has its GTID.
func TestStillVariables(t *testing.T) {
	t.Parallel()
	for spec, own := range map[string]string{"mariadb": "SET gtid_domain_id = 7", "mysql-9.7": "SET gtid_next = '12345678-1234-1234-1234-123456789012:1'", "mysql-5.7": "SET gtid_next = '12345678-1234-1234-1234-123456789012:1'"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			n := sandboxtest.Up(t, spec)
			db, err := n.DB()
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			c := sandboxtest.Connect(t, n)
			before, err := read.StillVariables(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if len(before) < 300 || before["max_connections"] == "" || before["gtid_mode"] == "OFF" {
				t.Fatalf("got %d variables: max_connections %q, gtid_mode %q; want len(before) at least 300, before[\"max_connections\"] not \"\", before[\"gtid_mode\"] not \"OFF\"",
					len(before), before["max_connections"], before["gtid_mode"])
			}
			session(t, db, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY) ENGINE=InnoDB", "INSERT INTO d.t VALUES (1)", own, "BEGIN", "INSERT INTO d.t VALUES (2)")
			after, err := read.StillVariables(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range before {
				if after[name] != value {
					t.Errorf("%s: was %q, is %q", name, value, after[name])
				}
			}
		})
	}
}
