package gather_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/explain/advise/gather"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestManyFindings: of very many findings of one ID the most are counted exactly, and those that are told have their statements, though the
// server is asked for no more definitions than are told. Tables whose definition is needed to say anything are among them.
func TestManyFindings(t *testing.T) {
	const tables = advise.MostOfOne + 40
	for _, kind := range kinds[:2] {
		t.Run(kind, func(t *testing.T) {
			node := sandboxtest.Lend(t, kind, "innodb_flush_log_at_trx_commit=0", "sync_binlog=0")
			c := sandboxtest.Connect(t, node)
			run(t, c, "CREATE DATABASE many", "CREATE TABLE many.t0 (a INT, b INT NOT NULL, c VARCHAR(20), KEY ka (a)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb3",
				"CREATE TABLE many.x0 (a INT, b INT, z INT ZEROFILL, KEY ka (a)) ENGINE=InnoDB", "INSERT INTO many.x0 (a) VALUES (1), (2), (3)")
			for i := 1; i < tables; i++ {
				run(t, c, fmt.Sprintf("CREATE TABLE many.t%d LIKE many.t0", i))
			}
			a, err := gather.Look(t.Context(), sandboxtest.Target(t, node), gather.Options{NoLoad: true, Wanted: func(id string) bool { return strings.HasPrefix(id, "schema.") }})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]int{}
			for _, f := range a.Findings {
				got[f.ID]++
				if f.Statement == "" || f.Undo == "" {
					t.Errorf("%s of %s has no statement, or no undo: %+v", f.ID, f.Object, f)
				}
			}
			more := map[string]int{}
			for _, m := range a.More {
				more[m.ID] = m.Count
			}
			if got["schema.no_pk"] != advise.MostOfOne || more["schema.no_pk"] != 41 || got["schema.charset"] != advise.MostOfOne || more["schema.charset"] != 40 || got["schema.types"] != 1 || len(more) != 2 {
				t.Errorf("got %v, and more: %v", got, more)
			}
			if len(a.Findings) > 0 && a.Findings[0].Object != "many.x0" {
				t.Errorf("the worst is %+v, want the table with rows", a.Findings[0])
			}
			if a.Cost.Statements > advise.MostOfOne+100 {
				t.Errorf("it took %d statements", a.Cost.Statements)
			}
		})
	}
}
