package prove_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/explain/advise/gather"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/serve/prove"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

// TestProve: an index that is missing is found, and proven: its class reads fewer rows and is faster with it. The server is not changed, the
// throw-away one is gone.
func TestProve(t *testing.T) {
	for _, kind := range []string{"mysql-9.7", "mariadb"} {
		t.Run(kind, func(t *testing.T) {
			node := sandboxtest.Lend(t, kind, "performance_schema=ON", "performance_schema_consumer_events_statements_history=ON", "performance_schema_consumer_events_statements_current=ON")
			c := sandboxtest.Connect(t, node)
			for _, s := range []string{"CREATE DATABASE shop DEFAULT CHARACTER SET latin1", "USE shop", "CREATE TABLE `or``d é` (id INT AUTO_INCREMENT PRIMARY KEY, customer INT NOT NULL, b VARBINARY(20), pad VARCHAR(100) NOT NULL, doc JSON, g INT AS (customer + 1)) ENGINE=InnoDB",
				"CREATE TABLE digits (d INT PRIMARY KEY)", "INSERT INTO digits VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)",
				"INSERT INTO `or``d é` (customer, b, pad, doc) SELECT (a.d*1000+b.d*100+c.d*10+d.d) % 997, X'0009000A5C', 'é\\t\\\\', '{\"a\": \"é\"}' FROM digits a, digits b, digits c, digits d", "ANALYZE TABLE `or``d é`"} {
				if err := c.Query(t.Context(), s, mysql.IgnoreRow); err != nil {
					t.Fatalf("%s: %v", s, err)
				}
			}
			for i := range 9 {
				if err := c.Query(t.Context(), fmt.Sprintf("SELECT pad FROM shop.`or``d é` WHERE customer = %d", i), mysql.IgnoreRow); err != nil {
					t.Fatal(err)
				}
			}
			a, err := gather.Look(t.Context(), sandboxtest.Target(t, node), gather.Options{Wanted: func(id string) bool { return id == "index.missing" }})
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(a.Findings, func(f advise.Finding) bool { return strings.Contains(f.Statement, "customer") })
			if i < 0 {
				t.Fatalf("got %+v; want an index on customer", a.Findings)
			}
			dir, err := sandboxtest.Folder("prove")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			p, err := prove.Run(t.Context(), prove.Options{Target: sandboxtest.Target(t, node), Finding: a.Findings[i], Pairs: 6, Most: 200_000, Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", p)
			if p.Outcome != "better" && p.Outcome != "no difference" || len(p.Tables) != 1 || p.Tables[0].Rows != 10_000 || !p.Tables[0].All {
				t.Errorf("got %s (%s), %+v; want better, or no difference where a busy machine hides it, of 10,000 rows", p.Outcome, p.Words, p.Tables)
			}
			for _, class := range p.Classes {
				if class.ID != "insert" && (class.Outcome != "faster" && class.Outcome != "no difference can be shown" || class.RowsBefore < 10_000 || class.RowsAfter > 20) {
					t.Errorf("got %+v; want it not slower, 10,000 rows before and 11 after", class)
				}
			}
			if list, err := sandbox.List(dir); err != nil || len(list) > 0 {
				t.Errorf("got %d sandboxes, %v; want none left", len(list), err)
			}
			if left, err := os.ReadDir(filepath.Join(dir, ".prove")); err != nil || len(left) > 0 {
				t.Errorf("got %d claims, %v; want none left", len(left), err)
			}
			rows, err := c.Maps(t.Context(), "SHOW INDEX FROM shop.`or``d é`")
			if err != nil || len(rows) != 1 {
				t.Errorf("got %d indexes on the server, %v; want that nothing changed", len(rows), err)
			}
		})
	}
}
