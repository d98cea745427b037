package trial

import (
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/explain/differ"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestStatistics: what one server keeps of tables, partitions and columns is on the other after it was copied, though the other has no rows.
func TestStatistics(t *testing.T) {
	for from, to := range map[string]string{"mysql-5.7": "mysql-8.0", "mysql-8.0": "mysql-9.7", "mariadb-10.11": "mariadb-11.8"} {
		t.Run(from+" to "+to, func(t *testing.T) {
			a, b := sandboxtest.Connect(t, sandboxtest.Lend(t, from)), sandboxtest.Connect(t, sandboxtest.Lend(t, to))
			do := func(c *mysql.Conn, statements ...string) {
				t.Helper()
				for _, s := range statements {
					if err := c.Exec(t.Context(), s); err != nil {
						t.Fatalf("%s: %v", s, err)
					}
				}
			}
			for _, c := range []*mysql.Conn{a, b} {
				do(c, "CREATE DATABASE `it's`", "CREATE TABLE `it's`.`a.b'ü` (Id INT PRIMARY KEY, k INT, v VARCHAR(20), KEY k (k, v)) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci PARTITION BY HASH (Id) PARTITIONS 3", "CREATE TABLE `it's`.digit (n INT PRIMARY KEY)")
			}
			do(a, "INSERT INTO `it's`.digit VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)",
				"INSERT INTO `it's`.`a.b'ü` SELECT a.n + 10 * b.n + 100 * c.n, b.n, CONCAT('ü''', c.n) FROM `it's`.digit a, `it's`.digit b, `it's`.digit c",
				"ANALYZE TABLE `it's`.`a.b'ü`, `it's`.digit", "CREATE DATABASE other", "CREATE TABLE other.t (id INT PRIMARY KEY)")
			if a.Server.HasHistograms() {
				do(a, "ANALYZE TABLE `it's`.digit UPDATE HISTOGRAM ON n WITH 4 BUCKETS", "ANALYZE TABLE `it's`.`a.b'ü` UPDATE HISTOGRAM ON k, v")
			}
			if len(a.Server.KeptStatistics()) > 2 {
				do(a, "ANALYZE TABLE `it's`.`a.b'ü` PERSISTENT FOR ALL")
			}
			tr := &trial{d: &differ.Description{Schemas: map[string]differ.Schema{"it's": {}}}, out: &Answer{}, Options: Options{Progress: func(string) {}}}
			s, err := tr.readStatistics(t.Context(), a)
			if err != nil || len(tr.out.NotTried) > 0 {
				t.Fatalf("read: %v, %+v", err, tr.out.NotTried)
			}
			n, err := s.write(t.Context(), b)
			if err != nil || n < 4 {
				t.Fatalf("write: got %d tables and partitions, %v; want 4 or more", n, err)
			}
			for _, q := range kept(a.Server, b.Server) {
				if was, now := lines(t, a, q), lines(t, b, q); len(was) == 0 || !slices.Equal(was, now) {
					t.Errorf("%s: got\n%s\nwant\n%s", q, strings.Join(now, "\n"), strings.Join(was, "\n"))
				}
			}
		})
	}
}

// kept are queries that have to give the same on both.
func kept(from, to mysql.Server) (list []string) {
	for _, k := range from.KeptStatistics() {
		list = append(list, "SELECT CONCAT_WS('|', LOWER("+k.Name+"), "+strings.Join(k.Columns, ", ")+") FROM mysql."+k.Table+" WHERE "+k.Schema+" = 'it''s' ORDER BY 1")
	}
	if from.HasHistograms() && to.TakesHistograms() {
		list = append(list, "SELECT CONCAT_WS('|', TABLE_NAME, COLUMN_NAME, JSON_LENGTH(HISTOGRAM, '$.buckets'), JSON_EXTRACT(HISTOGRAM, '$.buckets[0]'))  FROM information_schema.COLUMN_STATISTICS WHERE SCHEMA_NAME = 'it''s' ORDER BY 1")
	}
	return list
}

func lines(t *testing.T, c *mysql.Conn, query string) (list []string) {
	t.Helper()
	rows, err := c.Maps(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	for _, r := range rows {
		for _, v := range r {
			list = append(list, v)
		}
	}
	return list
}
