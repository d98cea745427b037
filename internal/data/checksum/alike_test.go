package checksum_test

import (
	"fmt"
	"testing"

	"github.com/rissodb/risso/internal/data/checksum"
)

// testAlike changes several rows in the same way, or lets them swap their values. CRC is linear: combined by exclusive or, as
// pt-table-checksum does, the changes of such rows cancel each other, and the sums stay what they were.
func testAlike(t *testing.T, s *servers) {
	s.do(0, "CREATE TABLE ck.alike (id INT PRIMARY KEY, status CHAR(1) CHARACTER SET latin1, n INT, note VARCHAR(60), f DOUBLE, e ENUM('','x'), st SET('','x'))",
		"INSERT INTO ck.alike VALUES "+series(1000, func(i int) string { return fmt.Sprintf("(%d, 'n', %d, 'note %d', %d / 8, 1, 0)", i, i%10, i*i, i) }))
	s.caughtUp()
	defer s.do(0, "DROP TABLE ck.alike")
	for _, c := range []struct {
		name, change, undo string
		rows               int64
	}{
		{"two rows", "UPDATE ck.alike SET status = 'p' WHERE id IN (300, 700)", "UPDATE ck.alike SET status = 'n'", 2},
		{"many rows", "UPDATE ck.alike SET status = 'p' WHERE id BETWEEN 101 AND 300", "UPDATE ck.alike SET status = 'n'", 200},
		{"two NULLs", "UPDATE ck.alike SET status = NULL WHERE id IN (300, 700)", "UPDATE ck.alike SET status = 'n'", 2},
		{"a number in two rows", "UPDATE ck.alike SET n = n + 1 WHERE id IN (202, 404, 602, 804)", "UPDATE ck.alike SET n = id % 10", 4},
		{"swapped", "UPDATE ck.alike SET n = 9 - n WHERE id IN (114, 115)", "UPDATE ck.alike SET n = id % 10", 2},
		{"no member of an ENUM, not the empty one", "UPDATE IGNORE ck.alike SET e = 0 WHERE id IN (300, 701)", "UPDATE ck.alike SET e = 1", 2},
		{"the empty member of a SET, not none", "UPDATE ck.alike SET st = 1 WHERE id IN (300, 701, 702)", "UPDATE ck.alike SET st = 0", 3},
		{"in turn", "UPDATE ck.alike SET n = ELT(n, 2, 3, 1) WHERE id IN (111, 112, 113)", "UPDATE ck.alike SET n = id % 10", 3},
	} {
		s.secretly(1, c.change)
		for _, m := range []checksum.Method{checksum.MethodServer, checksum.MethodQuick} {
			o := s.options()
			o.Method, o.Rounds, o.Tables, o.MaxRows = m, 2, []string{"ck.alike"}, 1000
			_, tables := s.compare(o)
			if on := tables["alike"].On[0]; on.Different != c.rows || on.Missing+on.Extra != 0 {
				t.Errorf("%s by %s: %s, %d rows of %d; want on.Different %d, on.Missing + on.Extra 0", c.name, m, on.Verdict, on.Different, c.rows, c.rows)
			}
		}
		s.secretly(1, c.undo)
	}
}
