package binlog

import (
	"testing"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestSequenceMinimal: what nextval() and setval() log under binlog_row_image = MINIMAL is applied, next to a table that is logged the same
// way; all that one statement takes, and numbers of any type.
func TestSequenceMinimal(t *testing.T) {
	for _, spec := range []string{"mariadb", "mariadb-11.8"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			sandboxtest.Need(t, spec)
			src, dst := sandboxtest.Up(t, spec, "binlog_row_image=MINIMAL"), sandboxtest.Up(t, spec)
			do := func(n *sandbox.Node, statements string) {
				t.Helper()
				if _, err := n.Query(t.Context(), statements); err != nil {
					t.Fatal(err)
				}
			}
			made := "CREATE DATABASE q; CREATE TABLE q.t (a BIGINT PRIMARY KEY, b INT DEFAULT 1, c INT DEFAULT 2, d INT, e INT, f INT, g INT, h BIGINT); CREATE TABLE q.u (id INT DEFAULT 0 PRIMARY KEY); CREATE TABLE q.w (id INT)"
			do(src, made)
			do(dst, made)
			from, file, pos := position(t, src)
			do(src, "CREATE SEQUENCE q.s; SELECT NEXTVAL(q.s); SELECT SETVAL(q.s, 5000); CREATE SEQUENCE q.down START -1 INCREMENT -1 MINVALUE -3 MAXVALUE -1 CYCLE NOCACHE;"+
				"SELECT NEXTVAL(q.down); SELECT NEXTVAL(q.down); SELECT NEXTVAL(q.down); SELECT NEXTVAL(q.down); INSERT INTO q.t (a, h) VALUES (1, 2), (3, 4); INSERT INTO q.u VALUES (NEXTVAL(q.s)), (NEXTVAL(q.s));"+
				"CREATE SEQUENCE q.several NOCACHE; INSERT INTO q.w SELECT NEXTVAL(q.several) FROM q.seq_1_to_50; INSERT INTO q.w VALUES (NEXTVAL(q.down)), (NEXTVAL(q.down))")
			sequences := []string{"s", "down", "several"}
			if spec != "mariadb" {
				do(src, "CREATE SEQUENCE q.tiny AS TINYINT UNSIGNED START 200 NOCACHE; SELECT NEXTVAL(q.tiny); CREATE SEQUENCE q.small AS SMALLINT START -5 MINVALUE -9 NOCACHE; SELECT NEXTVAL(q.small);"+
					"CREATE SEQUENCE q.big AS BIGINT UNSIGNED START 18446744073709551000 NOCACHE; SELECT NEXTVAL(q.big), NEXTVAL(q.big); CREATE SEQUENCE q.medium AS MEDIUMINT START -70000 MINVALUE -80000 NOCACHE; SELECT NEXTVAL(q.medium)")
				sequences = append(sequences, "tiny", "small", "big", "medium")
			}
			if _, err := Roll(t.Context(), RollOptions{Files: logged(t, src), From: repo.Position{GTIDSet: from.String(), File: file, Offset: pos}, Into: targetOf(t, dst)}); err != nil {
				t.Fatal(err)
			}
			what := []string{"a, h FROM q.t WHERE a = 3", "MIN(id), MAX(id) FROM q.u", "SUM(id), COUNT(*) FROM q.w"}
			for _, name := range sequences {
				what = append(what, "next_not_cached_value, cycle_count FROM q."+name)
			}
			sdb, ddb := openDB(t, src), openDB(t, dst)
			for _, w := range what {
				var a, b, c, d string
				if err := sdb.QueryRow("SELECT "+w).Scan(&a, &b); err != nil {
					t.Fatal(err)
				}
				if err := ddb.QueryRow("SELECT "+w).Scan(&c, &d); err != nil {
					t.Fatal(err)
				}
				if a != c || b != d {
					t.Errorf("%s: %s, %s of the source, %s, %s rolled forward", w, a, b, c, d)
				}
			}
		})
	}
}
