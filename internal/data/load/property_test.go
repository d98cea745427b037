package load_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
)

// seedEnv repeats a run of TestGenerated.
const seedEnv = "RISSO_SEED"

// TestGenerated: schemas of all column types, keys, partitions, names and programs, made at random: dumped, dropped and
// restored they are what they were.
func TestGenerated(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if v := os.Getenv(seedEnv); v != "" {
		var err error
		if seed, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%s=%d repeats this", seedEnv, seed)
	for i, spec := range servers {
		t.Run(spec, func(t *testing.T) {
			node := lend(t, spec)
			g := &maker{t: t, s: stream(t, node), rand: rand.New(rand.NewPCG(seed, uint64(i))), maria: strings.HasPrefix(spec, "mariadb"), spec: spec}
			exec(t, g.s, "SET NAMES utf8mb4", "SET sql_mode = 'NO_ENGINE_SUBSTITUTION,ALLOW_INVALID_DATES'", "SET time_zone = '+03:00'")
			g.makeAll()
			r, _ := emptyRepo(t)
			if _, err := dump.Run(t.Context(), r, dump.Options{Target: target(t, node), Threads: 2, ChunkAim: 3000}); err != nil {
				t.Fatal(err)
			}
			bulkFrom := int64(seed % 2) // in half of all runs each row goes in by a prepared INSERT, if there is that
			before := g.picture(node)
			exec(t, g.s, "USE mysql")
			for _, s := range g.schemas {
				exec(t, g.s, "DROP DATABASE "+mysql.Quote(s))
			}
			res, err := restore(t, load.Options{Repo: r, Into: target(t, node), Threads: 2, BatchBytes: 5000, BulkBytes: bulkFrom})
			if err != nil {
				for _, d := range res.Different {
					t.Log(ask(t, g.s, "SHOW CREATE TABLE "+mysql.Quote(d.Schema)+"."+mysql.Quote(d.Table)))
				}
				t.Fatalf("%v: %+v", err, res.Different)
			}
			if d := differ(before, g.picture(node)); d != "" {
				t.Fatalf("got %v, want \"\"", d)
			}
			if res.Tables != int64(len(g.tables)) {
				t.Errorf("got %d tables for %d, want %d", res.Tables, len(g.tables), int64(len(g.tables)))
			}
		})
	}
}

// maker makes schemas at random.
type maker struct {
	t       *testing.T
	s       *mysql.Stream
	rand    *rand.Rand
	maria   bool
	spec    string
	schemas []string
	tables  [][2]string
	past    map[[2]string]bool // rows of the past are there
	objects []string           // what SHOW CREATE shows of them, with the schema in front
	unsure  map[[2]string]bool // CHECKSUM TABLE is no help: 5.7 adds up addresses of JSON values, MariaDB undefined bits next to virtual columns (seen: INSERT … SELECT into a copy gives another sum)
}

var oddNames = []string{"plain", "Groß", "a.b", "back`tick", "sin'gle", `dou"ble`, "new\nline", "sp ace", "☃", "%like_", "select", "a/b", "-- x", "perc%41", `back\slash`}

const generatedTables, generatedRows = 14, 120

func (g *maker) makeAll() {
	g.unsure, g.past = map[[2]string]bool{}, map[[2]string]bool{}
	for i, name := range []string{"gen", oddNames[g.rand.IntN(len(oddNames))] + "S"} {
		g.schemas = append(g.schemas, name)
		charset := []string{"utf8mb4", "latin1", "utf8mb4 COLLATE utf8mb4_unicode_ci"}[g.rand.IntN(3)]
		exec(g.t, g.s, "CREATE DATABASE "+mysql.Quote(name)+" CHARACTER SET "+charset, "USE "+mysql.Quote(name))
		for n := range generatedTables / 2 {
			g.table(name, fmt.Sprintf("%s%d", oddNames[g.rand.IntN(len(oddNames))], i*100+n))
		}
		g.circle(name)
		g.programs(name)
	}
}

// column is a type with values of it.
type column struct {
	name, def string
	value     func() string
	key       int // 0: in no key; else the prefix, -1: whole
	json      bool
}

func (g *maker) pick(list ...string) string { return list[g.rand.IntN(len(list))] }

func (g *maker) text(max int, samples ...string) func() string {
	return func() string {
		var b strings.Builder
		for range g.rand.IntN(max) {
			b.WriteString(g.pick(samples...))
		}
		return mysql.Literal(b.String())
	}
}

func (g *maker) bytes(max int) func() string {
	return func() string {
		n := g.rand.IntN(max + 1)
		if n == 0 {
			return "''"
		}
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "%02x", []byte{0, 9, 10, 13, 26, 34, 39, 92, 255, byte(g.rand.IntN(256))}[g.rand.IntN(10)])
		}
		return "x'" + b.String() + "'"
	}
}

// kinds are all column types.
func (g *maker) kinds() []column {
	ascii := []string{"a", "Z", " ", "\\", "'", "\"", "\t", "\n", "\r", "0", "N", "\\N", "%"}
	with := func(more ...string) []string { return append(append([]string{}, ascii...), more...) }
	list := []column{
		{def: "TINYINT", value: func() string { return fmt.Sprint(g.rand.IntN(256) - 128) }, key: -1},
		{def: "SMALLINT UNSIGNED", value: func() string { return fmt.Sprint(g.rand.IntN(65536)) }, key: -1},
		{def: "MEDIUMINT", value: func() string { return fmt.Sprint(g.rand.IntN(1000)) }, key: -1},
		{def: "INT(8) ZEROFILL", value: func() string { return fmt.Sprint(g.rand.Uint32()) }, key: -1},
		{def: "BIGINT UNSIGNED", value: func() string { return fmt.Sprint(g.rand.Uint64()) }, key: -1},
		{def: "DECIMAL(65,30)", value: func() string { return fmt.Sprintf("-%d.%030d", g.rand.Int64(), g.rand.Int64()) }, key: -1},
		{def: "FLOAT", value: func() string { return fmt.Sprintf("%g", (g.rand.Float32()-0.5)*3e38) }},
		{def: "FLOAT(10,3)", value: func() string { return fmt.Sprintf("%g", g.rand.Float32()*1000) }},
		{def: "DOUBLE", value: func() string { return fmt.Sprintf("%.17g", (g.rand.Float64()-0.5)*1e300) }},
		{def: "BIT(1)", value: func() string { return fmt.Sprintf("b'%b'", g.rand.IntN(2)) }},
		{def: "BIT(64)", value: func() string { return fmt.Sprintf("b'%b'", g.rand.Uint64()) }, key: -1},
		{def: "DATE", value: func() string {
			return g.pick("'0000-00-00'", "'2020-00-00'", "'2021-02-31'", "'9999-12-31'", "'1000-01-01'")
		}, key: -1},
		{def: "TIME(6)", value: func() string {
			return fmt.Sprintf("'%d:%02d:%02d.%06d'", g.rand.IntN(1677)-838, g.rand.IntN(60), g.rand.IntN(60), g.rand.IntN(1e6))
		}, key: -1},
		{def: "DATETIME(3)", value: func() string {
			return g.pick("'0000-00-00 00:00:00'", "'2020-12-31 23:59:59.999'", "'1000-01-01 00:00:00.001'")
		}, key: -1},
		{def: "TIMESTAMP(6) NULL", value: func() string {
			return g.pick("'0000-00-00 00:00:00'", "'2020-03-29 02:30:00.5'", "'2037-12-31 23:59:59.999999'")
		}, key: -1},
		{def: "YEAR", value: func() string { return g.pick("0", "1901", "2155", "2000") }, key: -1},
		{def: "ENUM('a','ü','','x''y\\\\')", value: func() string { return g.pick("'a'", "'ü'", "''", "'x''y\\\\'") }, key: -1},
		{def: "ENUM('a','ü')", value: func() string { return g.pick("'a'", "'ü'", "0") }, key: -1},
		{def: "SET('a','b','ü')", value: func() string { return g.pick("'a,b'", "''", "'ü'", "7") }, key: -1},
		{def: "CHAR(20)", value: g.text(20, with("ß", "é")...), key: 10},
		{def: "CHAR(10) CHARACTER SET binary", value: g.bytes(10), key: -1},
		{def: "VARBINARY(300)", value: g.bytes(300), key: 20},
		{def: "TINYBLOB", value: g.bytes(255), key: 20}, {def: "LONGBLOB", value: g.bytes(2000), key: 10},
		{def: "TEXT CHARACTER SET latin1", value: g.text(100, with("ß", "é", "ÿ")...), key: 20},
		{def: "MEDIUMTEXT CHARACTER SET utf8mb4", value: g.text(300, with("😀", "中", "ß")...), key: 20},
		{def: "VARCHAR(100) CHARACTER SET ucs2", value: g.text(50, with("中", "é")...), key: 10},
		{def: "VARCHAR(50) CHARACTER SET utf32", value: g.text(50, with("😀", "é")...), key: 10},
		{def: "VARCHAR(100) CHARACTER SET gbk", value: g.text(50, with("中", "文")...), key: 10},
		{def: "VARCHAR(100) CHARACTER SET sjis", value: g.text(50, with("表", "ソ")...), key: 10},
		{def: "VARCHAR(100) CHARACTER SET cp1251", value: g.text(50, with("Ж", "я")...), key: 10},
		{def: "VARCHAR(200) COLLATE utf8mb4_bin", value: g.text(100, with("😀")...), key: 40},
		{def: "POINT", value: func() string {
			return fmt.Sprintf("ST_GeomFromText('POINT(%d %g)')", g.rand.IntN(90), g.rand.Float64())
		}},
		{def: "GEOMETRY", value: func() string {
			return g.pick("ST_GeomFromText('LINESTRING(0 0, 1 1)')", "ST_GeomFromText('POLYGON((0 0, 1 0, 1 1, 0 0))')", "ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1))')")
		}},
		{def: "JSON", json: true, value: func() string {
			return g.pick("'null'", "'[]'", "'{}'", `'{"a": "\\u00fc😀", "b": [1, 2.5, true]}'`, `'"x\\\\n"'`, fmt.Sprintf("'[%d]'", g.rand.Int64()))
		}},
	}
	if g.maria {
		list = append(list, column{def: "UUID", value: func() string { return fmt.Sprintf("'%08x-1111-2222-3333-444444444444'", g.rand.Uint32()) }, key: -1},
			column{def: "INET6", value: func() string { return fmt.Sprintf("'2001:db8::%x'", g.rand.IntN(65536)) }, key: -1},
			column{def: "VARCHAR(100) INVISIBLE", value: g.text(20, ascii...), key: 10}, column{def: "TEXT COMPRESSED", value: g.text(200, ascii...)})
	}
	if g.maria || g.eight() {
		list = append(list, column{def: "VARCHAR(60) DEFAULT (CONCAT('x', '(y', 1 + 1))", value: g.text(20, ascii...), key: 10})
	}
	if g.spec == "mysql-9.7" {
		list = append(list, column{def: "VECTOR(3)", value: func() string { return g.pick("TO_VECTOR('[1,2,3]')", "TO_VECTOR('[-1e-30,0.1,1e30]')") }})
		list = append(list, column{def: "VARCHAR(100) INVISIBLE", value: g.text(20, ascii...), key: 10}, column{def: "GEOMETRY SRID 4326", value: func() string { return "ST_GeomFromText('POINT(1 2)', 4326)" }})
	}
	return list
}

// eight reports whether the server is a MySQL of 8.0 or later.
func (g *maker) eight() bool { return g.spec == "mysql-8.0" || g.spec == "mysql-9.7" }

// extras are keys and constraints that some servers have. auto: id counts by itself, so no expression may name it; made: there are
// generated columns.
func (g *maker) extras(auto, made bool) (defs []string) {
	add := func(def string) {
		if g.rand.IntN(4) == 0 {
			defs = append(defs, def)
		}
	}
	add("KEY `k desc` (`id` DESC)")
	if !auto {
		add(fmt.Sprintf("CONSTRAINT `odd``ck%d` CHECK (`id` > -1000 OR CONCAT(`id`, '(,') = '')", len(g.tables)))
	}
	if made {
		add("KEY `k gen` (`gen v`, `gen s`)")
	}
	if g.eight() {
		if !auto {
			add("KEY `k fun` ((`id` * 2), `id`)")
		}
		add("KEY `k inv` (`id`) INVISIBLE")
	}
	if g.maria {
		add("KEY `k ign` (`id`) IGNORED")
	}
	return defs
}

func (g *maker) table(schema, name string) {
	kinds := g.kinds()
	var columns []column
	for i := range 2 + g.rand.IntN(9) {
		c := kinds[g.rand.IntN(len(kinds))]
		c.name = fmt.Sprintf("%s%d", oddNames[g.rand.IntN(len(oddNames))], i)
		columns = append(columns, c)
	}
	var defs []string
	key := g.rand.IntN(5)
	switch key {
	case 0, 1:
		defs = append(defs, "`id` BIGINT AUTO_INCREMENT PRIMARY KEY")
	case 2:
		defs = append(defs, "`id` INT NOT NULL", "`sub` VARCHAR(20) NOT NULL", "PRIMARY KEY (`sub`, `id`"+g.pick("", " DESC")+")")
	case 3:
		defs = append(defs, "`id` INT NOT NULL", "UNIQUE KEY `uni` (`id`)")
	default:
		defs = append(defs, "`id` INT")
	}
	for i, c := range columns {
		defs = append(defs, mysql.Quote(c.name)+" "+c.def+g.pick("", " COMMENT 'it''s \\\\ a \\n'"))
		if c.json && g.spec == "mysql-5.7" {
			g.unsure[[2]string{schema, name}] = true
		}
		if c.key != 0 && g.rand.IntN(3) == 0 {
			part := mysql.Quote(c.name)
			if c.key > 0 {
				part += fmt.Sprintf("(%d)", c.key)
			}
			defs = append(defs, fmt.Sprintf("KEY `k%d` (%s)", i, part))
		}
	}
	made := key > 1 && g.rand.IntN(2) == 0
	if made {
		defs = append(defs, "`gen s` INT AS (`id` + 1) STORED", "`gen v` VARCHAR(40) AS (CONCAT(`id`, 'x')) VIRTUAL")
		if g.maria {
			g.unsure[[2]string{schema, name}] = true
		}
	}
	tail, past, extras := "", false, g.extras(key < 2, made)
	switch g.rand.IntN(8) {
	case 0:
		if key != 4 {
			tail = g.pick(" PARTITION BY HASH (`id`) PARTITIONS 64", " PARTITION BY RANGE (`id`) SUBPARTITION BY HASH (`id`) SUBPARTITIONS 32 (PARTITION p0 VALUES LESS THAN (20), PARTITION `p 1` VALUES LESS THAN MAXVALUE)")
			for _, c := range columns { // MySQL has no geometry in partitioned tables before 8.0, MariaDB has
				if strings.Contains(c.def, "GEOMETRY") || strings.Contains(c.def, "POINT") {
					tail = ""
				}
			}
		}
	case 1:
		if !slices.ContainsFunc(columns, func(c column) bool { return strings.Contains(c.def, "SRID") }) && (g.maria || !strings.Contains(strings.Join(defs, " "), "`id` DESC)")) {
			tail, extras = " ENGINE = MyISAM", nil
		}
	case 2:
		tail = " ROW_FORMAT = COMPRESSED"
	case 3, 4:
		if past = g.maria; past {
			tail = " WITH SYSTEM VERSIONING"
		}
	}
	exec(g.t, g.s, "CREATE TABLE "+mysql.Quote(name)+" ("+strings.Join(append(defs, extras...), ", ")+")"+tail)
	g.tables = append(g.tables, [2]string{schema, name})
	g.rows(name, key, columns)
	if past {
		g.past[[2]string{schema, name}] = true
		exec(g.t, g.s, "DELETE FROM "+mysql.Quote(name)+" WHERE `id` % 4 = 0", "UPDATE "+mysql.Quote(name)+" SET `id` = `id` + 5000 WHERE `id` % 4 = 2", "DELETE FROM "+mysql.Quote(name)+" WHERE `id` > 5100")
	}
	if g.rand.IntN(2) == 0 {
		trigger := fmt.Sprintf("tr%d", len(g.tables))
		exec(g.t, g.s, "CREATE TRIGGER "+trigger+" BEFORE INSERT ON "+mysql.Quote(name)+" FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'fired'")
		g.objects = append(g.objects, "TRIGGER "+mysql.Quote(schema)+"."+trigger)
	}
}

func (g *maker) rows(name string, key int, columns []column) {
	n := g.rand.IntN(generatedRows)
	if n == 0 {
		return
	}
	names := []string{"`id`"}
	if key == 2 {
		names = append(names, "`sub`")
	}
	for _, c := range columns {
		names = append(names, mysql.Quote(c.name))
	}
	var rows []string
	for i := range n {
		row := []string{strconv.Itoa(i*3 - 60)}
		if key < 2 {
			row[0] = strconv.Itoa(i*3 - 6)
		}
		if key == 2 {
			row = append(row, mysql.Literal(g.pick("a", "B", "é", "")))
		}
		for _, c := range columns {
			if v := c.value(); g.rand.IntN(8) == 0 {
				row = append(row, "NULL")
			} else {
				row = append(row, v)
			}
		}
		rows = append(rows, "("+strings.Join(row, ", ")+")")
	}
	exec(g.t, g.s, "SET sql_mode = 'NO_ENGINE_SUBSTITUTION,ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO'")
	exec(g.t, g.s, "INSERT INTO "+mysql.Quote(name)+" ("+strings.Join(names, ", ")+") VALUES "+strings.Join(rows, ",\n"))
}

// circle makes tables whose foreign keys point at each other and at themselves.
func (g *maker) circle(schema string) {
	exec(g.t, g.s, "CREATE TABLE c1 (id INT PRIMARY KEY, r INT, u INT UNIQUE, KEY (r))", "CREATE TABLE c2 (id INT PRIMARY KEY, r INT, FOREIGN KEY (r) REFERENCES c1 (u) ON DELETE CASCADE)",
		"ALTER TABLE c1 ADD CONSTRAINT `odd``fk` FOREIGN KEY (r) REFERENCES c2 (id), ADD CONSTRAINT self FOREIGN KEY (u) REFERENCES c1 (id)",
		"SET foreign_key_checks = 0", "INSERT INTO c1 VALUES (1, 1, 1), (2, 77, 88)", "INSERT INTO c2 VALUES (1, 1)", "SET foreign_key_checks = 1")
	g.tables = append(g.tables, [2]string{schema, "c1"}, [2]string{schema, "c2"})
}

func (g *maker) programs(schema string) {
	q := mysql.Quote(schema)
	exec(g.t, g.s, "CREATE VIEW `z view` AS SELECT id FROM c1", "CREATE VIEW `a view` AS SELECT id, 'é' x FROM `z view` WHERE id > 0",
		"CREATE FUNCTION `f``n` (a VARCHAR(10)) RETURNS VARCHAR(20) RETURN CONCAT(a, 'ü\\\\')",
		"SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'", `CREATE PROCEDURE pr () BEGIN SELECT "id", '\' FROM c1; END`, "SET sql_mode = 'NO_ENGINE_SUBSTITUTION,ALLOW_INVALID_DATES'",
		"SET NAMES latin1", "CREATE FUNCTION latin () RETURNS VARCHAR(20) CHARACTER SET utf8mb4 DETERMINISTIC RETURN '\xe9\xdf'", "SET NAMES utf8mb4",
		"CREATE EVENT ev ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01 00:00:00' ON COMPLETION PRESERVE ENABLE COMMENT 'ENABLE' DO SELECT ' PRESERVE ENABLE '",
		"CREATE EVENT off ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01 00:00:00' DISABLE DO SELECT 1",
		"CREATE EVENT away ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01 00:00:00' DISABLE ON "+map[bool]string{true: "REPLICA", false: "SLAVE"}[g.spec == "mysql-9.7"]+" DO SELECT 1")
	for _, o := range []string{"VIEW %s.`z view`", "VIEW %s.`a view`", "FUNCTION %s.`f``n`", "FUNCTION %s.latin", "PROCEDURE %s.pr", "EVENT %s.ev", "EVENT %s.off", "EVENT %s.away"} {
		g.objects = append(g.objects, fmt.Sprintf(o, q))
	}
	if g.maria {
		exec(g.t, g.s, "CREATE SEQUENCE `se``q` START 5 INCREMENT 3", "DO NEXTVAL(`se``q`)")
		g.objects = append(g.objects, "SEQUENCE "+q+".`se``q`")
	}
}

// picture is everything that was made.
func (g *maker) picture(node *sandbox.Node) string {
	s := stream(g.t, node)
	exec(g.t, s, "SET NAMES utf8mb4", "SET time_zone = '+03:00'", "SET sql_mode = ''")
	var b strings.Builder
	for _, n := range g.schemas {
		b.WriteString(ask(g.t, s, "SHOW CREATE DATABASE "+mysql.Quote(n)))
	}
	for _, n := range g.tables {
		name := mysql.Quote(n[0]) + "." + mysql.Quote(n[1])
		if !g.unsure[n] && !g.past[n] {
			b.WriteString(ask(g.t, s, "CHECKSUM TABLE "+name))
		}
		var columns []string // invisible ones too
		err := s.Query(g.t.Context(), "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = "+mysql.Literal(n[0])+" AND TABLE_NAME = "+mysql.Literal(n[1])+" ORDER BY ORDINAL_POSITION",
			func(row [][]byte) error { columns = append(columns, mysql.Quote(string(row[0]))); return nil })
		if err != nil {
			g.t.Fatal(err)
		}
		from := name
		if g.past[n] {
			columns, from = append(columns, "row_start", "row_end"), name+" FOR SYSTEM_TIME ALL"
		}
		rows := strings.Split(ask(g.t, s, "SELECT "+strings.Join(columns, ", ")+" FROM "+from), "|\n")
		sum := [sha256.Size]byte{}
		for _, row := range rows {
			for i, v := range sha256.Sum256([]byte(row)) {
				sum[i] += v // the order of a table without a key is free
			}
		}
		fmt.Fprintf(&b, "%s: %d rows %x\n%s", name, len(rows)-1, sum, ask(g.t, s, "SHOW CREATE TABLE "+name))
	}
	for _, o := range g.objects {
		if rest, ok := strings.CutPrefix(o, "TRIGGER "); ok {
			rows, err := s.QueryMaps(g.t.Context(), "SHOW CREATE TRIGGER "+rest)
			if err != nil {
				g.t.Fatal(err)
			}
			delete(rows[0], "Created")
			fmt.Fprintln(&b, rows)
			continue
		}
		b.WriteString(ask(g.t, s, "SHOW CREATE "+o))
		if strings.HasPrefix(o, "SEQUENCE") {
			b.WriteString(ask(g.t, s, "SELECT next_not_cached_value FROM "+strings.TrimPrefix(o, "SEQUENCE ")))
		}
	}
	return b.String()
}
