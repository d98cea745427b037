package binlog

import (
	"testing"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestSequenceMinimal: what nextval() and setval() log under binlog_row_image = MINIMAL is applied, beside a table that is logged just so.
func TestSequenceMinimal(t *testing.T) {
	src, dst := sandboxtest.Up(t, "mariadb", "binlog_row_image=MINIMAL"), sandboxtest.Up(t, "mariadb")
	made := "CREATE DATABASE q; CREATE TABLE q.t (a BIGINT PRIMARY KEY, b INT DEFAULT 1, c INT DEFAULT 2, d INT, e INT, f INT, g INT, h BIGINT); CREATE TABLE q.u (id INT DEFAULT 0 PRIMARY KEY)"
	if _, err := src.Query(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	if _, err := dst.Query(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	from, file, pos := position(t, src)
	if _, err := src.Query(t.Context(), "CREATE SEQUENCE q.s; SELECT NEXTVAL(q.s); SELECT SETVAL(q.s, 5000); CREATE SEQUENCE q.down START -1 INCREMENT -1 MINVALUE -3 MAXVALUE -1 CYCLE NOCACHE;"+
		"SELECT NEXTVAL(q.down); SELECT NEXTVAL(q.down); SELECT NEXTVAL(q.down); SELECT NEXTVAL(q.down); INSERT INTO q.t (a, h) VALUES (1, 2), (3, 4); INSERT INTO q.u VALUES (NEXTVAL(q.s)), (NEXTVAL(q.s))"); err != nil {
		t.Fatal(err)
	}
	if _, err := Roll(t.Context(), RollOptions{Files: logged(t, src), From: repo.Position{GTIDSet: from.String(), File: file, Offset: pos}, Into: targetOf(t, dst)}); err != nil {
		t.Fatal(err)
	}
	sdb, ddb := openDB(t, src), openDB(t, dst)
	for _, what := range []string{"next_not_cached_value, cycle_count FROM q.s", "next_not_cached_value, cycle_count FROM q.down", "a, h FROM q.t WHERE a = 3", "MIN(id), MAX(id) FROM q.u"} {
		var a, b, c, d int64
		if err := sdb.QueryRow("SELECT "+what).Scan(&a, &b); err != nil {
			t.Fatal(err)
		}
		if err := ddb.QueryRow("SELECT "+what).Scan(&c, &d); err != nil {
			t.Fatal(err)
		}
		if a != c || b != d {
			t.Errorf("%s: %d, %d of the source, %d, %d rolled forward", what, a, b, c, d)
		}
	}
}
