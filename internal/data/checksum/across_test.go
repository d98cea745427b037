package checksum_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/checksum"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestAcross compares servers of different flavours that do not replicate from each other.
func TestAcross(t *testing.T) {
	a := sandboxtest.Up(t, "mariadb")
	b := sandboxtest.Up(t, "mysql-9.7")
	s := &servers{t: t, nodes: []*sandbox.Node{a, b}}
	types := strings.Replace(awkward[4], "e ENUM", "u VARCHAR(20), e ENUM", 1)
	for i := range s.nodes {
		s.do(i, "CREATE DATABASE ck", types, "CREATE TABLE ck.la (name VARCHAR(20) CHARACTER SET latin1 PRIMARY KEY, v INT)", "CREATE TABLE ck.bin (k VARBINARY(20) PRIMARY KEY)")
		s.do(i, "SET sql_mode=''; INSERT INTO ck.types (id, ti, bu, d, f, g, bi, c, vb, bl, tx, u, e, st, dt, ts, tm, da, y, j, p) VALUES "+series(300, func(i int) string {
			return strings.NewReplacer("{i}", strconv.Itoa(i), "{j}", strconv.Itoa(i%100)).Replace(`({i}, {j}, 18446744073709551615 - {i}, {i}.0000000001, 0.{i}e-3, {i}.123e20, {i}, 'ü {i}', UNHEX(HEX('k{i}')), REPEAT('x', {i}), NULL,
			 'größe', 'ü', 'x,y', '2018-07-13 10:00:00.123456' + INTERVAL {i} SECOND, '2000-01-01 00:00:01.5', '-01:02:03.45', '0000-00-00', 2026, '{"b": [1, 2.50, "ü"], "a": {i}}', ST_GeomFromText('POINT({i} 2.5)'))`)
		}), "INSERT INTO ck.la VALUES ('größe', 1), ('b', 2), ('Ä', 3)")
	}
	o := checksum.Options{Primary: s.target(0), Others: []mysql.Target{s.target(1)}, Schemas: []string{"ck"}, Rounds: 3}
	_, tables := s.compare(small(o))
	verdicts(t, tables, nil)
	if on := tables["types"].On[0]; on.Written == 0 { // MariaDB keeps JSON as it was written
		t.Errorf("got %+v, want Written not 0", on)
	}
	s.do(1, "UPDATE ck.types SET f = f * 1.001, j = '{\"a\": 1}' WHERE id = 7", "DELETE FROM ck.la WHERE v = 3",
		"ALTER TABLE ck.la MODIFY name VARCHAR(20) CHARACTER SET utf8mb4", "INSERT INTO ck.bin VALUES (0x00ff)")
	_, tables = s.compare(small(o))
	verdicts(t, tables, map[string]checksum.Verdict{"types": checksum.Differs, "la": checksum.Differs, "bin": checksum.Differs})
	row := tables["types"].On[0].Rows[0]
	if len(tables["types"].On[0].Rows) != 1 || row.Key[0].Value != "7" || len(row.Columns) != 2 || row.Columns[0].Name != "f" || row.Columns[1].Name != "j" {
		t.Errorf("got %+v; want len(tables[\"types\"].On[0].Rows) 1, row.Key[0].Value \"7\", len(row.Columns) 2, row.Columns[0].Name \"f\", row.Columns[1].Name \"j\"",
			tables["types"].On[0].Rows)
	}
	if on := tables["la"].On[0]; on.Missing != 1 || on.Extra+on.Different != 0 || *on.Rows[0].Columns[0].Primary != "Ä" || !strings.Contains(strings.Join(on.Notes, " "), "character set latin1 here and utf8mb4 there") {
		t.Errorf("got %+v; want Missing 1, Extra + on.Different 0, *on.Rows[0].Columns[0].Primary \"Ä\", \"character set latin1 here and utf8mb4 there\" in strings.Join(on.Notes, \" \")",
			on)
	}
	o.Redact = true
	_, tables = s.compare(o)
	for _, r := range tables["bin"].On[0].Rows {
		if r.Key[0].Value != "(hidden)" || *r.Columns[0].Other != "(hidden)" {
			t.Errorf("got %+v; want Key[0].Value \"(hidden)\", *r.Columns[0].Other \"(hidden)\"", r)
		}
	}
}
