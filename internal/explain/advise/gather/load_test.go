package gather_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/explain/advise/gather"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// shop fills a table in which two classes of statements look for what no index finds.
func shop(t *testing.T, c *mysql.Conn) {
	t.Helper()
	for _, s := range []string{"CREATE DATABASE shop", "USE shop", "CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, customer INT NOT NULL, status TINYINT NOT NULL, code VARCHAR(20) NOT NULL, pad CHAR(100) NOT NULL, KEY kcode (code)) ENGINE=InnoDB",
		"CREATE TABLE digits (d INT PRIMARY KEY)", "INSERT INTO digits VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)",
		"INSERT INTO orders (customer, status, code, pad) SELECT (a.d*1000+b.d*100+c.d*10+d.d) % 997, (a.d+d.d) % 10, CONCAT(a.d,b.d,c.d,d.d), 'x' FROM digits a, digits b, digits c, digits d", "ANALYZE TABLE orders"} {
		if err := c.Query(t.Context(), s, mysql.IgnoreRow); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// TestMissing: one index is advised for two classes of statements, one of which needs its columns in another order; it is made, and then
// nothing is missing; the comparison of text with a number is found.
func TestMissing(t *testing.T) {
	for _, kind := range []string{"mysql-9.7", "mariadb"} {
		t.Run(kind, func(t *testing.T) {
			node := sandboxtest.Lend(t, kind, "performance_schema=ON", "performance_schema_consumer_events_statements_history=ON", "performance_schema_consumer_events_statements_current=ON")
			c := sandboxtest.Connect(t, node)
			shop(t, c)
			work := func() {
				for i := range 20 {
					for _, s := range []string{fmt.Sprintf("SELECT pad FROM orders WHERE status = %d AND customer = %d", i%10, i), fmt.Sprintf("SELECT code, pad FROM orders WHERE customer = %d", i), fmt.Sprintf("SELECT pad FROM orders WHERE code = %d", 1000+i)} {
						if err := c.Query(t.Context(), s, mysql.IgnoreRow); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			work()
			look := func() map[string][]advise.Finding {
				a, err := gather.Look(t.Context(), sandboxtest.Target(t, node), gather.Options{Wanted: func(id string) bool { return strings.HasPrefix(id, "query.") || id == "index.missing" }})
				if err != nil {
					t.Fatal(err)
				}
				out := map[string][]advise.Finding{}
				for _, f := range a.Findings {
					out[f.ID] = append(out[f.ID], f)
				}
				for _, m := range a.Missing {
					t.Logf("missing: %+v", m)
				}
				return out
			}
			got := look()
			missing := slices.DeleteFunc(got["index.missing"], func(f advise.Finding) bool { return !strings.Contains(f.Statement, "customer") })
			if len(missing) != 1 || !strings.Contains(missing[0].Statement, "(`customer`, `status`") || !strings.Contains(missing[0].What, "2 classes") {
				t.Fatalf("got %+v; want one index that begins with customer, status; all: %+v", got["index.missing"], got)
			}
			if len(got["query.full_scan"]) < 2 || len(got["query.examined_per_sent"]) < 2 {
				t.Errorf("got %d of query.full_scan and %d of query.examined_per_sent, want 2 at least", len(got["query.full_scan"]), len(got["query.examined_per_sent"]))
			}
			if casts := got["query.implicit_cast"]; len(casts) != 1 || !strings.Contains(strings.Join(casts[0].Evidence, " "), "kcode") {
				t.Errorf("got %+v; want one comparison that cannot use kcode", casts)
			}
			if err := c.Exec(t.Context(), missing[0].Statement); err != nil {
				t.Fatal(err)
			}
			for _, f := range look()["index.missing"] {
				if strings.Contains(f.What, "customer") {
					t.Errorf("after it was made: %s; %s", f.Statement, f.What)
				}
			}
			if err := c.Exec(t.Context(), missing[0].Undo); err != nil {
				t.Error(err)
			}
		})
	}
}
