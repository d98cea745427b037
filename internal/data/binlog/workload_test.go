package binlog

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

var flavours = []string{"mariadb", "mariadb-11.8", "mysql-9.7", "mysql-8.0", "mysql-5.7"}

func targetOf(t *testing.T, n *sandbox.Node) mysql.Target {
	t.Helper()
	tg, err := mysql.ParseTarget(n.DSN)
	if err != nil {
		t.Fatal(err)
	}
	return tg
}

func openDB(t *testing.T, n *sandbox.Node) *sql.DB {
	t.Helper()
	cfg := n.Config()
	cfg.DBName = "mysql" // MySQL 9.7 wants one for functions of JSON
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { db.Close() })
	return db
}

func run(t *testing.T, db interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%.300s: %v", s, err)
		}
	}
}

func value(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	var v sql.NullString
	if err := db.QueryRowContext(t.Context(), query).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v.String
}

// column is a type with values that are at its edges.
type column struct {
	def    string
	values []string
}

var numbers = "0 1 -1 127 -128 100"

// columns are types of all servers.
var columns = []column{
	{"TINYINT", strings.Fields(numbers)},
	{"TINYINT UNSIGNED", []string{"0", "255", "128", "7"}},
	{"SMALLINT UNSIGNED", []string{"0", "65535", "32768"}},
	{"SMALLINT", []string{"0", "-32768", "32767"}},
	{"MEDIUMINT", []string{"-8388608", "8388607", "0"}},
	{"MEDIUMINT UNSIGNED", []string{"16777215", "8388608", "1"}},
	{"INT UNSIGNED", []string{"4294967295", "2147483648", "3"}},
	{"BIGINT UNSIGNED", []string{"18446744073709551615", "9223372036854775808", "5"}},
	{"BIGINT", []string{"-9223372036854775808", "9223372036854775807"}},
	{"DECIMAL(30,10)", []string{"-12345678901234567890.0123456789", "0", "99999999999999999999.9999999999", "-0.0000000001"}},
	{"DECIMAL(5,0) UNSIGNED", []string{"99999", "0"}},
	{"DECIMAL(20,18)", []string{"1.000000000000000001", "-99.123456789012345678"}},
	{"FLOAT", []string{"0.1", "-3.4e38", "1e-30", "16777217", "0"}},
	{"DOUBLE", []string{"0.1", "1.7976931348623157e308", "-2.2250738585072014e-308", "3.0000000000000004"}},
	{"BIT(7)", []string{"b'0'", "b'1111111'", "b'101'"}},
	{"BIT(64)", []string{"b'1111111111111111111111111111111111111111111111111111111111111111'", "b'1'", "0"}},
	{"CHAR(20) CHARACTER SET latin1", []string{"'Gr\u00fc\u00dfe'", "''", "'it''s'", "'A'", "'a'"}},
	{"VARCHAR(300) CHARACTER SET utf8mb4", []string{"'\U0001F600 emoji'", "'back\\\\slash\\n'", "'trailing  '", "''", "'NULL'"}},
	{"VARCHAR(20) CHARACTER SET ucs2", []string{"'\u00e4b'", "'\u6161'"}},
	{"TEXT CHARACTER SET utf8mb4", []string{"REPEAT('long\u00e9 ', 100)", "''", "'x\\0y'"}},
	{"TINYBLOB", []string{"X'00FF27275C'", "''"}},
	{"LONGBLOB", []string{"REPEAT(X'00', 5000)", "X'DEADBEEF'"}},
	{"BINARY(5)", []string{"X'0001020000'", "'abc'"}},
	{"VARBINARY(300)", []string{"X'FFFE'", "REPEAT('b', 300)"}},
	{"DATE", []string{"'0000-00-00'", "'2024-02-29'", "'9999-12-31'", "'2024-00-00'"}},
	{"DATETIME(6)", []string{"'0000-00-00 00:00:00'", "'2018-07-13 10:00:00.123456'", "'1000-01-01 00:00:00.000001'"}},
	{"DATETIME", []string{"'2038-01-19 03:14:08'", "'0000-00-00'"}},
	{"TIMESTAMP(3) NULL", []string{"'1970-01-02 00:00:01.001'", "'0000-00-00 00:00:00'", "'2037-12-31 23:59:59.999'"}},
	{"TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP", []string{"'2001-02-03 04:05:06'", "'2011-02-03 04:05:06'"}},
	{"TIME(6)", []string{"'-838:59:58.999999'", "'00:00:00'", "'-00:00:00.000001'", "'12:34:56.7'"}},
	{"TIME(1)", []string{"'-00:00:01.5'", "'838:59:59'", "'-01:00:00.0'"}},
	{"TIME", []string{"'-00:00:01'", "'100:00:00'"}},
	{"TIME(3)", []string{"'-10:11:12.013'", "'10:11:12.999'"}},
	{"YEAR", []string{"0", "1901", "2155", "2024"}},
	{"ENUM('a','\u00fc','c''d')", []string{"'a'", "'\u00fc'", "3", "0"}},
	{"SET('x','y','z')", []string{"''", "'x,z'", "7"}},
	{"POINT", []string{"ST_GeomFromText('POINT(1.5 -2)')", "NULL"}},
	{"GEOMETRY", []string{"ST_GeomFromText('LINESTRING(0 0,1 1,2 2.5)')", "ST_GeomFromText('POINT(1 1)')"}},
	{"INT GENERATED ALWAYS AS (id * 2) VIRTUAL", nil},
	{"INT GENERATED ALWAYS AS (id * 3) STORED", nil},
}

// mysqlColumns are types of MySQL alone; JSON documents keep their inner types.
var mysqlColumns = []column{
	{"JSON", []string{`'{"a": [1, 2.5, "x\\u00e9", null, true], "b": {"c": -5}}'`, `'[]'`, `'"text"'`, "JSON_OBJECT('d', CAST('1.10' AS DECIMAL(5,2)), 'u', CAST(7 AS UNSIGNED), 'f', 0.30000000000000004e0)",
		"JSON_ARRAY(CAST('2024-01-02' AS DATE), CAST('10:00:00.5' AS TIME(6)), CAST('2024-01-02 03:04:05.123456' AS DATETIME(6)))", "CAST(18446744073709551615 AS JSON)", `'{}'`, "JSON_ARRAY(REPEAT('k', 70000), 1)"}},
}

var mariaColumns = []column{
	{"JSON", []string{`'{"a": 1}'`, `'[1,2]'`}},
	{"UUID", []string{"'123e4567-e89b-12d3-a456-426655440000'", "'00000000-0000-0000-0000-000000000000'", "'f47ac10b-58cc-4372-a567-0e02b2c3d479'", "'017f22e2-79b0-7cc3-98c4-dc0c0c07398f'"}},
	{"INET6", []string{"'::1'", "'2001:db8::ff00:42:8329'", "'::'"}},
	{"VARCHAR(3000) COMPRESSED", []string{"REPEAT('packed ', 300)", "'short'", "''"}},
	{"BLOB COMPRESSED", []string{"REPEAT('packed ', 3000)", "X'00'"}},
	{"INT INVISIBLE DEFAULT 4", []string{"8", "9"}},
}

// workload makes tables and changes them at random, always the same for a seed.
type workload struct {
	r      *rand.Rand
	tables []*wtable
	next   int

	pointers bool // CHECKSUM TABLE is no use
}

type wtable struct {
	name    string // quoted, with its schema
	columns []column
	keyed   bool
}

func newWorkload(t *testing.T, c *sql.Conn, spec string, seed uint64) *workload {
	t.Helper()
	w := &workload{r: rand.New(rand.NewPCG(seed, 5)), pointers: spec == "mysql-5.7"}
	run(t, c, "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES', time_zone = '+02:00'", "SET NAMES utf8mb4", "CREATE DATABASE IF NOT EXISTS `odd ``name.x`")
	all := slices.Concat(columns, mysqlColumns)
	if strings.HasPrefix(spec, "mariadb") {
		all = slices.Concat(columns, mariaColumns)
	}
	if spec == "mysql-9.7" {
		all = append(all, column{"VECTOR(3)", []string{"TO_VECTOR('[1,2,3]')", "TO_VECTOR('[0.5,-1,1e-3]')"}})
	}
	for i := range 4 {
		tb := &wtable{name: fmt.Sprintf("`odd ``name.x`.`t %d \"'x`", i), keyed: i != 1}
		cols := slices.Clone(all)
		if i > 0 { // the first table has them all
			w.r.Shuffle(len(cols), func(a, b int) { cols[a], cols[b] = cols[b], cols[a] })
			cols = cols[:8+w.r.IntN(12)]
		}
		tb.columns = cols
		var defs []string
		for j, c := range cols {
			defs = append(defs, fmt.Sprintf("`c %d` %s", j, c.def))
		}
		key := ""
		if tb.keyed {
			key = ", PRIMARY KEY (id)"
		}
		if i == 2 {
			key = ", PRIMARY KEY (b, id)"
		}
		run(t, c, fmt.Sprintf("CREATE TABLE %s (id INT NOT NULL, b INT NOT NULL DEFAULT 0, %s%s) CHARACTER SET utf8mb4", tb.name, strings.Join(defs, ", "), key))
		w.tables = append(w.tables, tb)
	}
	return w
}

// assign draws values for some columns.
func (w *workload) assign(tb *wtable) (names, values []string) {
	for j, c := range tb.columns {
		if len(c.values) == 0 {
			continue
		}
		v := c.values[w.r.IntN(len(c.values))]
		if w.r.IntN(8) == 0 && !strings.Contains(c.def, "NOT NULL") {
			v = "NULL"
		}
		names, values = append(names, fmt.Sprintf("`c %d`", j)), append(values, v)
	}
	return names, values
}

// change runs one random statement.
func (w *workload) change(t *testing.T, c *sql.Conn) {
	t.Helper()
	tb := w.tables[w.r.IntN(len(w.tables))]
	names, values := w.assign(tb)
	switch k := w.r.IntN(10); {
	case k < 5 || w.next < 20:
		for range 1 + w.r.IntN(3) {
			w.next++
			if !tb.keyed && w.r.IntN(3) == 0 { // rows that are the same
				w.next--
			}
			run(t, c, fmt.Sprintf("INSERT INTO %s (id, b, %s) VALUES (%d, %d, %s)", tb.name, strings.Join(names, ", "), w.next, w.next%3, strings.Join(values, ", ")))
			_, values = w.assign(tb)
		}
	case k < 8:
		var set []string
		for i := range names {
			if w.r.IntN(3) == 0 {
				set = append(set, names[i]+" = "+values[i])
			}
		}
		if len(set) == 0 || w.r.IntN(6) == 0 {
			set = append(set, fmt.Sprintf("b = b + %d", w.r.IntN(3)))
		}
		if w.r.IntN(8) == 0 {
			w.next++
			set = append(set, fmt.Sprintf("id = id + %d", 1000000+w.next*100))
		}
		run(t, c, fmt.Sprintf("UPDATE %s SET %s WHERE id %% %d = %d", tb.name, strings.Join(set, ", "), 2+w.r.IntN(4), w.r.IntN(2)))
	default:
		run(t, c, fmt.Sprintf("DELETE FROM %s WHERE id %% 7 = %d", tb.name, w.r.IntN(7)))
	}
}

// sums are checksums of all tables, of every column's bytes: CHECKSUM TABLE of MySQL 5.7 takes pointers for JSON and geometries.
func (w *workload) sums(t *testing.T, db *sql.DB) []string {
	t.Helper()
	var out []string
	for _, tb := range w.tables {
		if !w.pointers {
			var name, sum string
			if err := db.QueryRowContext(t.Context(), "CHECKSUM TABLE "+tb.name).Scan(&name, &sum); err != nil {
				t.Fatal(err)
			}
			out = append(out, name+" "+sum)
			continue
		}
		cols := []string{"id", "b"}
		for j, c := range tb.columns {
			name := fmt.Sprintf("`c %d`", j)
			cols = append(cols, name)
			if c.def == "JSON" {
				cols = append(cols, "JSON_TYPE("+name+")", "JSON_TYPE(JSON_EXTRACT("+name+", '$.d'))", "JSON_TYPE(JSON_EXTRACT("+name+", '$.u'))", "JSON_TYPE(JSON_EXTRACT("+name+", '$[0]'))", "JSON_TYPE(JSON_EXTRACT("+name+", '$[2]'))")
			}
		}
		for i := range cols {
			cols[i] = "IFNULL(HEX(CONCAT(" + cols[i] + ")), '~')"
		}
		expr := "MD5(CONCAT_WS('#', " + strings.Join(cols, ", ") + "))"
		out = append(out, tb.name+" "+value(t, db, "SELECT CONCAT(COUNT(*), ' ', IFNULL(SUM(CAST(CONV(LEFT("+expr+", 15), 16, 10) AS UNSIGNED)), 0)) FROM "+tb.name))
	}
	return out
}

// conn is one connection, as sessions have settings.
func conn(t *testing.T, db *sql.DB) *sql.Conn {
	t.Helper()
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// position is what the server has now.
func position(t *testing.T, n *sandbox.Node) (set mysql.GTIDSet, file string, pos int64) {
	t.Helper()
	c, err := mysql.Connect(t.Context(), targetOf(t, n), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if set, err = mysql.LoggedGTIDs(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	file, pos = sandboxtest.LogPosition(t, c)
	return set, file, pos
}

// behindCheckpoints is the place of the first event at or after a place that is no checkpoint: a thread of MariaDB writes those
// at any time, also between two transactions (MariaDB documentation, "Binlog_checkpoint_event").
func behindCheckpoints(t *testing.T, n *sandbox.Node, file string, pos int64) int64 {
	t.Helper()
	r, err := n.Query(t.Context(), fmt.Sprintf("SHOW BINLOG EVENTS IN '%s' FROM %d LIMIT 50", file, pos))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range r[0].Rows { // name, position, type, …
		if *row[2] != "Binlog_checkpoint" {
			at, err := strconv.ParseInt(*row[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return at
		}
	}
	t.Fatalf("there is nothing behind %s:%d", file, pos)
	return 0
}
