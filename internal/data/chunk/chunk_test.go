package chunk_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// tables have keys of every kind, with values that are hard to write down. rows is a SELECT of n, 0 to 999.
var tables = []struct {
	name, columns, rows string
	key                 string
	cuts                int
	only                string // flavour
}{
	{"ints", "id INT PRIMARY KEY, v VARCHAR(20)", "SELECT n - 500, n", "PRIMARY", 1, ""},
	{"unsigned", "id BIGINT UNSIGNED PRIMARY KEY", "SELECT 18446744073709551615 - n * 9000000000000000", "PRIMARY", 1, ""},
	{"zerofill", "id INT(10) ZEROFILL PRIMARY KEY", "SELECT n * 3", "PRIMARY", 1, ""},
	{"decimals", "id DECIMAL(30,10) PRIMARY KEY, f FLOAT, d DOUBLE", "SELECT (n - 500) / 7, 16777217 + n, n / 3", "PRIMARY", 1, ""},
	{"composite", "a INT, b VARCHAR(20) COLLATE utf8mb4_general_ci, c DATETIME(6), PRIMARY KEY (a, b, c)", "SELECT n % 3, CONCAT('x', n % 11, ''''), '2020-01-01' + INTERVAL n * 333 SECOND", "PRIMARY", 3, ""},
	{"texts", "t VARCHAR(50) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci PRIMARY KEY", "SELECT CONCAT(ELT(n % 7 + 1, 'a', 'Z', 'ß', '😀', '\\\\', '''', ' '), n, '\n`\\t')", "PRIMARY", 1, ""},
	{"latin", "t CHAR(20) CHARACTER SET latin1 COLLATE latin1_german2_ci PRIMARY KEY", "SELECT CONCAT(ELT(n % 4 + 1, 'ä', 'Ö', 'ß', 'z'), n)", "PRIMARY", 1, ""},
	{"wide", "t VARCHAR(20) CHARACTER SET ucs2 PRIMARY KEY", "SELECT CONCAT('é', n)", "PRIMARY", 1, ""},
	{"gbk", "t VARCHAR(20) CHARACTER SET gbk PRIMARY KEY", "SELECT CONCAT('中\\\\''', n)", "PRIMARY", 1, ""},
	{"binary", "b VARBINARY(20), v INT, UNIQUE KEY (v), PRIMARY KEY (b)", "SELECT UNHEX(LEFT(SHA2(n, 256), 40)), n", "PRIMARY", 1, ""},
	{"empty", "b VARBINARY(20) PRIMARY KEY", "SELECT IF(n = 0, '', CONCAT(0x00FF27, n))", "PRIMARY", 1, ""},
	{"fixed", "b BINARY(8) PRIMARY KEY", "SELECT CONCAT(n, CHAR(0), CHAR(n % 256))", "PRIMARY", 1, ""},
	{"bits", "b BIT(40) PRIMARY KEY", "SELECT n * 1000000", "PRIMARY", 1, ""},
	{"times", "t TIME(3), y YEAR, PRIMARY KEY (t, y)", "SELECT SEC_TO_TIME((n DIV 2) * 1000 - 250000) , 1970 + n % 2", "PRIMARY", 2, ""},
	{"moments", "t TIMESTAMP(3) PRIMARY KEY, d DATE", "SELECT TIMESTAMP('2018-03-25 00:00:00') + INTERVAL n * 20 SECOND, '0000-00-00'", "PRIMARY", 1, ""},
	{"days", "d DATE, n INT, PRIMARY KEY (d, n)", "SELECT '1965-01-01' + INTERVAL n * 7 DAY, n", "PRIMARY", 2, ""},
	{"second", "a INT NULL, b INT NOT NULL, UNIQUE KEY nulls (a), UNIQUE KEY k (b)", "SELECT IF(n % 2, NULL, n), n", "k", 1, ""},
	{"enums", "a INT, e ENUM('z','a'), PRIMARY KEY (a, e)", "SELECT n DIV 2, IF(n % 2, 'a', 'z')", "PRIMARY", 1, ""},
	{"enumfirst", "e ENUM('z','a'), a INT, PRIMARY KEY (e, a)", "SELECT IF(n % 2, 'a', 'z'), n", "PRIMARY", 0, ""},
	{"textenum", "t VARCHAR(20), e ENUM('z','a'), PRIMARY KEY (t, e)", "SELECT n DIV 2, IF(n % 2, 'a', 'z')", "PRIMARY", 0, ""},
	{"floats", "f FLOAT PRIMARY KEY", "SELECT n / 3", "PRIMARY", 0, ""},
	{"down", "a INT, b INT, PRIMARY KEY (a, b DESC)", "SELECT n % 10, n", "PRIMARY", 1, "mysql-9.7"},
	{"prefix", "t VARCHAR(100), PRIMARY KEY (t(10))", "SELECT n", "", 0, ""},
	{"none", "a INT, KEY (a)", "SELECT n", "", 0, ""},
	{"generated", "a INT PRIMARY KEY, g INT GENERATED ALWAYS AS (a + 1) STORED, b INT", "", "PRIMARY", 1, ""},
	{"uuids", "u UUID PRIMARY KEY, i INET6", "SELECT CONCAT(LPAD(HEX(n * 77777 % 65536), 8, '0'), '-0000-1000-8000-', LPAD(n, 12, '0')), CONCAT('::', HEX(n))", "PRIMARY", 1, "mariadb"},
	{"odd `name.", "`a``'\"b` INT PRIMARY KEY", "SELECT n", "PRIMARY", 1, ""},
}

// TestCuts cuts tables with every kind of key at random bounds: the parts together must be the table, row by row, and no row
// twice; and a server must read no more rows than a part has.
func TestCuts(t *testing.T) {
	for _, flavour := range []string{"mariadb", "mariadb-11.8", "mysql-9.7", "mysql-5.7"} {
		t.Run(flavour, func(t *testing.T) {
			node := sandboxtest.Up(t, flavour)
			to, err := mysql.ParseTarget(node.DSN)
			if err != nil {
				t.Fatal(err)
			}
			c, err := mysql.Connect(t.Context(), to, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			s, err := to.ConnectStream(t.Context(), mysql.StreamOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.ForRows(t.Context(), c.Server); err != nil {
				t.Fatal(err)
			}
			exec(t, s, "CREATE DATABASE c CHARACTER SET utf8mb4", "CREATE TABLE c.seq (n INT PRIMARY KEY)",
				"INSERT INTO c.seq SELECT a.d + b.d * 10 + c.d * 100 FROM "+digits("a")+", "+digits("b")+", "+digits("c"))
			t.Run("numbers", func(t *testing.T) {
				testNumbers(t, to, c.Server, s)
				testMinusZero(t, s)
			})
			for _, table := range tables {
				if table.only != "" && table.only != flavour {
					continue
				}
				t.Run(table.name, func(t *testing.T) {
					name := "c." + mysql.Quote(table.name)
					exec(t, s, "CREATE TABLE "+name+" ("+table.columns+") DEFAULT CHARSET utf8mb4")
					if table.rows == "" {
						exec(t, s, "INSERT INTO "+name+" (a, b) SELECT n, n FROM c.seq")
					} else {
						exec(t, s, "INSERT INTO "+name+" "+table.rows+" FROM c.seq")
					}
					cutTable(t, s, table.name, table.key, table.cuts)
				})
			}
		})
	}
}

func digits(alias string) string {
	return "(SELECT 0 d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9) " + alias
}

func exec(t *testing.T, s *mysql.Stream, statements ...string) {
	t.Helper()
	for _, q := range statements {
		if err := s.Exec(t.Context(), q); err != nil {
			t.Fatalf("%.300s: %v", q, err)
		}
	}
}

type rows [][]byte

func (r *rows) Piece(b []byte, last bool) error {
	if !last {
		return errors.New("a small row came in pieces")
	}
	*r = append(*r, append([]byte{}, b...))
	return nil
}

func cutTable(t *testing.T, s *mysql.Stream, name, wantKey string, wantCuts int) {
	var create string
	err := s.Query(t.Context(), "SHOW CREATE TABLE c."+mysql.Quote(name), func(row [][]byte) error { create = string(row[1]); return nil })
	if err != nil {
		t.Fatal(err)
	}
	table, err := define.ParseTable("c", create)
	if err != nil {
		t.Fatal(err)
	}
	key, ok := chunk.KeyOf(table)
	if ok != (wantKey != "") || key.Name != wantKey || key.Cuts != wantCuts {
		t.Fatalf("key %+v, %v; want ok %v, Name %v, Cuts %v", key, ok, wantKey != "", wantKey, wantCuts)
	}
	var all rows
	if err := s.Select(t.Context(), chunk.Select(table, key, chunk.Range{}, "test"), &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != 1000 {
		t.Fatalf("got %d rows, want 1000", len(all))
	}
	var read rows
	if err := chunk.Read(t.Context(), s, table, key, chunk.Range{}, "test", &read); err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(all, read, bytes.Equal) {
		t.Errorf("Read gives other rows than Select")
	}
	if key.Cuts == 0 {
		return
	}
	splitTable(t, s, table, key, all)
	var bounds []chunk.Bound
	for i := range all {
		if rand.IntN(60) == 0 {
			b, err := key.Bound(table, all[i])
			if err != nil {
				t.Fatal(err)
			}
			if len(bounds) == 0 || fmt.Sprint(bounds[len(bounds)-1]) != fmt.Sprint(b) {
				bounds = append(bounds, b)
			}
		}
	}
	var parts rows
	var sum chunk.Rows
	for i := range len(bounds) + 1 {
		var r chunk.Range
		if i > 0 {
			r.Lower = bounds[i-1]
		}
		if i < len(bounds) {
			r.Upper = bounds[i]
		}
		before := len(parts)
		exec(t, s, "FLUSH STATUS")
		q := chunk.Select(table, key, r, "test")
		if err := s.Select(t.Context(), q, &parts); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		if read := handlerReads(t, s); read > len(parts)-before+20 {
			t.Errorf("%d rows were read for %d: %s, want at most %d", read, len(parts)-before, q, len(parts)-before+20)
		}
		next := chunk.Next(table, key, r, int64(max(1, len(parts)-before)), "test")
		err := s.Query(t.Context(), next, func(row [][]byte) error {
			b, err := key.Literals(row)
			if i < len(bounds) && fmt.Sprint(b) != fmt.Sprint(r.Upper) {
				t.Errorf("%s gives %v, not %v", next, b, r.Upper)
			}
			return err
		})
		if err != nil {
			t.Fatalf("%s: %v", next, err)
		}
	}
	if len(parts) != len(all) {
		t.Fatalf("%d rows in the parts, %d in the table; bounds %v", len(parts), len(all), bounds)
	}
	var whole chunk.Rows
	for i := range all {
		if string(all[i]) != string(parts[i]) {
			t.Fatalf("row %d is %q in its part, %q in the table; want string(parts[i])", i, parts[i], all[i])
		}
		_ = whole.Piece(all[i], true)
		j := len(parts) - 1 - i // in another order, and in pieces
		_ = sum.Piece(parts[j][:1], false)
		_ = sum.Piece(parts[j][1:], true)
	}
	if whole.Sum != sum.Sum || whole.Count != 1000 || whole.Bytes != sum.Bytes {
		t.Errorf("sums %+v and %+v; want Sum %v, Count 1000, Bytes %v", whole, sum, sum.Sum, sum.Bytes)
	}
	if name == "decimals" && !strings.Contains(string(all[999]), "16778216") {
		t.Errorf("a FLOAT lost digits: %q", all[999])
	}
}

// measured are the tables that Split cuts. The values of "empty" lie at both ends, those of "composite" are too few.
var measured = []string{"ints", "unsigned", "zerofill", "binary", "fixed", "moments", "days", "second", "enums", "down", "generated", "odd `name."}

// splitTable cuts a table without reading it: the parts together must be the table.
func splitTable(t *testing.T, s *mysql.Stream, table define.Table, key chunk.Key, all rows) {
	exec(t, s, "FLUSH STATUS")
	bounds, err := chunk.Split(t.Context(), s, table, key, 8, "test")
	if err != nil {
		t.Fatal(err)
	}
	if read := handlerReads(t, s); read > len(bounds)+20 {
		t.Errorf("%d rows were read to split the table, want at most %d", read, len(bounds)+20)
	}
	if want := slices.Contains(measured, table.Name); (len(bounds) >= 7 && len(bounds) <= 16) != want {
		t.Errorf("the bounds are %v", bounds)
	}
	var parts rows
	for i := range len(bounds) + 1 {
		var r chunk.Range
		if i > 0 {
			r.Lower = bounds[i-1]
		}
		if i < len(bounds) {
			r.Upper = bounds[i]
		}
		if err := s.Select(t.Context(), chunk.Select(table, key, r, "test"), &parts); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.EqualFunc(all, parts, bytes.Equal) {
		t.Errorf("the parts between %v are not the table", bounds)
	}
}

func handlerReads(t *testing.T, s *mysql.Stream) (n int) {
	t.Helper()
	err := s.Query(t.Context(), "SHOW SESSION STATUS WHERE Variable_name IN ('Handler_read_next', 'Handler_read_rnd', 'Handler_read_rnd_next', 'Handler_read_prev')", func(row [][]byte) error {
		v := 0
		_, err := fmt.Sscan(string(row[1]), &v)
		n += v
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
