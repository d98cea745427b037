package mysql_test

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/mysql/wire"
)

// bulk sends rows to prepared INSERTs over every connection of the servers that let it: MariaDB.
func bulk(t *testing.T, root *mysql.Stream, flavour string, ways map[string]string) {
	exec(t, root, "CREATE TABLE s.b (id INT PRIMARY KEY, v LONGTEXT, d DATE) CHARACTER SET utf8mb4")
	defer exec(t, root, "DROP TABLE s.b")
	for name, dsn := range ways {
		s := stream(t, target(t, dsn), mysql.StreamOptions{})
		if want := strings.HasPrefix(flavour, "mariadb"); s.HasBulk() != want {
			t.Errorf("%s: bulk: %v, want %v", name, s.HasBulk(), want)
		}
		if s.HasBulk() {
			t.Run(name, func(t *testing.T) { bulkOver(t, s, name == "socket") })
		}
	}
}

func bulkOver(t *testing.T, s *mysql.Stream, large bool) {
	exec(t, s, "SET sql_log_bin = 0", "DELETE FROM s.b", "SET NAMES binary", "SET sql_mode = ''")
	if _, err := s.PrepareBulk(t.Context(), "INSERT INTO s.b (nonsense) VALUES (?)"); err == nil || s.Broken() != nil {
		t.Fatalf("a wrong statement: got %v, %v; want an error, s.Broken() nil", err, s.Broken())
	}
	b, err := s.PrepareBulk(t.Context(), "INSERT INTO s.b (id, v, d) VALUES (?, ?, ?)")
	if err != nil {
		t.Fatal(err)
	}
	insert := func(want int, rows ...string) error {
		var raw []byte
		for _, v := range rows {
			if v == "NULL" {
				raw = append(raw, wire.BulkNull)
				continue
			}
			raw = append(raw, wire.BulkValue, 0xfe)
			raw = append(binary.LittleEndian.AppendUint64(raw, uint64(len(v))), v...)
		}
		warnings, err := b.Insert(t.Context(), raw)
		if err == nil && warnings != want {
			t.Errorf("%d warnings, not %d", warnings, want)
		}
		return err
	}
	if err := insert(0, "1", "", "2024-02-29", "2", "NULL", "NULL", "3", "ß\t\n\\\x00", "0000-00-00"); err != nil {
		t.Fatal(err)
	}
	want := "1:0::2024-02-29 2::: 3:6:C39F090A5C00:0000-00-00 "
	if large {
		// Executions whose packets are full are the cases to get right, and those that have one byte less.
		const packet = 1<<24 - 1
		for i, size := range []int{packet, packet - 1, 2 * packet} {
			id, day := strconv.Itoa(4+i), "2024-02-29"
			n := size - b.Head() - 3*(1+1+8) - len(id) - len(day)
			if err := insert(0, id, strings.Repeat("z", n), day); err != nil {
				t.Fatal(err)
			}
			want += fmt.Sprintf("%s:%d::%s ", id, n, day)
		}
	}
	want += "7:1:78:0000-00-00 8:1:78:0000-00-00"
	if err := insert(2, "7", "x", "no date", "8", "x", "none"); err != nil {
		t.Fatal(err)
	}
	if err := insert(0, "9", "x", "NULL", "1", "twice", "NULL"); mysql.ErrorNumber(err) != errno.DuplicateEntry || s.Broken() != nil {
		t.Fatalf("a duplicate: got %v, %v; want mysql.ErrorNumber(err) errno.DuplicateEntry, s.Broken() nil", err, s.Broken())
	}
	b.Close()
	rows, err := s.QueryMaps(t.Context(), "SELECT id, LENGTH(v) AS n, IF(LENGTH(v) < 10, HEX(v), '') AS h, d FROM s.b ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows {
		got = append(got, r["id"]+":"+r["n"]+":"+r["h"]+":"+r["d"])
	}
	if strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
}
