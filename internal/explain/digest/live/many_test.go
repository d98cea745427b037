package live

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/explain/digest"
)

// TestManyDigests: a class of some hundred digests has percentiles; one of more than are read has none, which is said, and the others keep theirs. Who
// wants none does not pay for them.
func TestManyDigests(t *testing.T) {
	s := up(t, "mysql-9.7", "performance_schema_digests_size=10000")
	s.exec(t, "CREATE DATABASE few", "CREATE DATABASE many", "CREATE TABLE few.t (id INT)", "CREATE TABLE many.t (id INT)")
	median := func(o Options, schema string) (known bool, notes string) {
		t.Helper()
		o.GroupBy = "db"
		p, list, err := s.read(t, o, nil)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(p.Classes, func(c digest.Class) bool { return c.Group == schema })
		if i < 0 {
			t.Fatalf("no class of %s: %+v", schema, p.Classes)
		}
		return !math.IsNaN(p.Classes[i].Metric("Query_time").Median), strings.Join(list, " ")
	}
	fill := func(schema string, n int) {
		s.exec(t, "USE "+schema)
		for i := range n {
			s.exec(t, fmt.Sprintf("SELECT id AS a%d FROM t", i))
		}
	}
	fill("few", 300)
	if known, notes := median(Options{}, "few"); !known || strings.Contains(notes, notOfMany) {
		t.Errorf("300 digests: known %t, %s; want percentiles", known, notes)
	}
	fill("many", bucketsMost+50)
	if known, notes := median(Options{}, "many"); known || !strings.Contains(notes, notOfMany) {
		t.Errorf("%d digests: known %t, %s; want none, and why", bucketsMost+50, known, notes)
	}
	if known, _ := median(Options{}, "few"); !known {
		t.Error("300 digests beside them: want percentiles")
	}
	if known, notes := median(Options{NoLatency: true}, "few"); known || strings.Contains(notes, "percentiles") {
		t.Errorf("nobody wants them: known %t, %s", known, notes)
	}
}
