package gather_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/explain/advise/gather"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestUnused: of three indexes the one that no statement used is found, hidden by its statement and shown again by its undo.
func TestUnused(t *testing.T) {
	for _, c := range []struct{ kind, setting string }{{"mysql-9.7", "performance_schema=ON"}, {"mariadb", "userstat=ON"}, {"mariadb", "performance_schema=ON"}, {"mysql-5.7", "performance_schema=ON"}} {
		t.Run(c.kind+" "+c.setting, func(t *testing.T) {
			node := sandboxtest.Lend(t, c.kind, c.setting)
			conn := sandboxtest.Connect(t, node)
			for _, s := range []string{"CREATE DATABASE u", "CREATE TABLE u.`t é` (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b INT, c INT, KEY ka (a), KEY `k``b` (b), KEY kc (c)) ENGINE=InnoDB", "INSERT INTO u.`t é` (a, b, c) VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)",
				"CREATE VIEW u.v AS SELECT a FROM u.`t é` USE INDEX (kc)"} {
				if err := conn.Exec(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}
			if rows, err := conn.Maps(t.Context(), "SELECT * FROM u.`t é` FORCE INDEX (ka) WHERE a = 2"); err != nil || len(rows) != 1 {
				t.Fatal(rows, err)
			}
			unused := func() (out []string, statement, undo string) {
				a, err := gather.Look(t.Context(), sandboxtest.Target(t, node), gather.Options{Unused: -time.Second, Wanted: func(id string) bool { return id == "index.unused" }})
				if err != nil || len(a.Missing) > 0 {
					t.Fatal(a.Missing, err)
				}
				for _, f := range a.Findings {
					out, statement, undo = append(out, f.Object), f.Statement, f.Undo
				}
				return out, statement, undo
			}
			got, statement, undo := unused()
			if !slices.Equal(got, []string{"u.t é.k`b"}) {
				t.Fatalf("got %q, want only u.t é.k`b", got)
			}
			for i := range 20 { // of very many schemas the counters are read at once
				if err := conn.Exec(t.Context(), fmt.Sprintf("CREATE DATABASE u%d", i)); err != nil {
					t.Fatal(err)
				}
			}
			if again, _, _ := unused(); !slices.Equal(again, got) {
				t.Errorf("with 20 other schemas: got %q, want %q", again, got)
			}
			for _, s := range []string{statement, undo} {
				if err := conn.Exec(t.Context(), s); err != nil {
					t.Errorf("%s: %v", s, err)
				}
			}
		})
	}
}
