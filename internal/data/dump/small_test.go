package dump_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
)

// manySmall makes empty tables with a few among them that are not, and sees that the server is not asked for each.
func manySmall(t *testing.T, r *repo.Repo, to mysql.Target, s *mysql.Stream) {
	const tables, asked = 150, 150 // some of those that are asked list tables, or check repeatedly on a slow machine who waits for them
	exec(t, s, "CREATE DATABASE small", "USE small")
	rows := map[string]int64{"t3": 3, "t31": 1, "t59": 2}
	for i := range tables {
		name := fmt.Sprintf("t%d", i)
		key := []string{" PRIMARY KEY", " NOT NULL UNIQUE", ""}[i%3]
		exec(t, s, fmt.Sprintf("CREATE TABLE %s (id INT%s, v VARCHAR(20), f FLOAT, KEY (v)) STATS_AUTO_RECALC = 0", name, key))
		for n := range rows[name] {
			exec(t, s, fmt.Sprintf("INSERT INTO %s VALUES (%d, 'x', 1)", name, n))
		}
	}
	before := selects(t, s)
	if _, err := dump.Run(t.Context(), r, dump.Options{Target: to, Name: "s", Threads: 2, Select: dump.Selection{Schemas: []string{"small"}}}); err != nil {
		t.Fatal(err)
	}
	if n := selects(t, s) - before; n > asked {
		t.Errorf("%d tables, of which %d have rows, took %d SELECTs; want at most %d", tables, len(rows), n, asked)
	}
	m, err := r.Manifest(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	seen := 0
	err = m.Each(func(l repo.Line) error {
		if l.Table == nil {
			return nil
		}
		seen++
		if want := rows[l.Table.Name]; l.Table.Rows != want || (len(l.Table.Chunks) > 0) != (want > 0) {
			t.Errorf("%s has %d rows in %d chunks, not %d", l.Table.Name, l.Table.Rows, len(l.Table.Chunks), want)
		}
		return nil
	})
	if err != nil || seen != tables {
		t.Errorf("%d of %d tables: %v", seen, tables, err)
	}
	exec(t, s, "DROP DATABASE small")
}

// selects is how many SELECTs the server has run.
func selects(t *testing.T, s *mysql.Stream) (n int) {
	t.Helper()
	err := s.Query(t.Context(), "SHOW GLOBAL STATUS LIKE 'Com_select'", func(row [][]byte) (err error) {
		n, err = strconv.Atoi(string(row[1]))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
