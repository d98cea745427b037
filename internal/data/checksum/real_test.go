package checksum_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/data/checksum"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// servers is a primary with its replicas.
type servers struct {
	t     testing.TB
	box   *sandbox.Sandbox
	nodes []*sandbox.Node
	db    []*sql.DB
}

// replication starts servers that replicate from the first.
func replication(t testing.TB, specs []string, settings ...string) *servers {
	t.Helper()
	box := sandboxtest.Sandbox(t, sandbox.Options{Servers: specs, Topology: sandbox.TopologyReplication, Replicas: max(1, len(specs)-1),
		Settings: append([]string{"innodb_flush_log_at_trx_commit=0"}, settings...)})
	s := &servers{t: t, box: box, nodes: box.Nodes}
	for _, n := range box.Nodes {
		db, err := n.DB()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		s.db = append(s.db, db)
	}
	return s
}

// in is the same servers for a subtest.
func (s *servers) in(t testing.TB) *servers {
	c := *s
	c.t = t
	return &c
}

func (s *servers) target(i int) mysql.Target {
	s.t.Helper()
	target, err := mysql.ParseTarget("root@unix(" + s.nodes[i].Socket + ")/")
	if err != nil {
		s.t.Fatal(err)
	}
	return target
}

// do runs statements on a server. One that does not answer fails the test.
func (s *servers) do(i int, statements ...string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	for _, q := range statements {
		if _, err := s.nodes[i].Query(ctx, q); err != nil {
			s.t.Fatalf("%.200s: %v", q, err)
		}
	}
}

// secretly changes a replica without a trace in its binary log.
func (s *servers) secretly(i int, statements ...string) {
	s.t.Helper()
	if strings.HasPrefix(s.nodes[i].Server, "mysql") {
		s.do(i, "SET GLOBAL super_read_only = 0")
	}
	s.do(i, "SET sql_log_bin = 0; SET sql_mode = ''; SET foreign_key_checks = 0; "+strings.Join(statements, "; "))
}

func (s *servers) options() checksum.Options {
	o := checksum.Options{Primary: s.target(0), Replicas: true, Schemas: []string{"ck*", "odd*"}, Rounds: 4}
	for i := 1; i < len(s.nodes); i++ {
		o.Others = append(o.Others, s.target(i))
	}
	return o
}

func (s *servers) compare(o checksum.Options) (checksum.Result, map[string]checksum.Table) {
	s.t.Helper()
	tables := map[string]checksum.Table{}
	o.Each = func(t checksum.Table) { tables[t.Name] = t }
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	r, err := checksum.Compare(ctx, o)
	if err != nil {
		s.t.Fatal(err)
	}
	return r, tables
}

// caughtUp waits until the replicas have what the primary has.
func (s *servers) caughtUp() {
	s.t.Helper()
	ctx := s.t.Context()
	c, err := mysql.Connect(ctx, s.target(0), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	m, err := read.MarkOf(ctx, c)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 1; i < len(s.nodes); i++ {
		r, err := mysql.Connect(ctx, s.target(i), nil)
		if err != nil {
			s.t.Fatal(err)
		}
		ok, err := read.Reach(ctx, r, m, 30*time.Second)
		r.Close()
		if err != nil || !ok {
			s.t.Fatalf("replica %d does not catch up: %v", i, err)
		}
	}
}

// awkward is a schema with what a comparison may stumble over.
var awkward = []string{
	"CREATE DATABASE ck", "CREATE DATABASE `odd ``na.me`",
	`CREATE TABLE ck.plain (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(200), KEY (a)) ENGINE=InnoDB`,
	"CREATE TABLE `odd ``na.me`.`t \"1' ``x.y` (`i``d` BIGINT UNSIGNED PRIMARY KEY, `größe` VARCHAR(30) CHARACTER SET utf8mb4, `s#s` VARCHAR(30) CHARACTER SET latin1) ENGINE=InnoDB",
	`CREATE TABLE ck.types (id INT PRIMARY KEY, ti TINYINT, bu BIGINT UNSIGNED, d DECIMAL(30,10), f FLOAT, g DOUBLE, bi BIT(17), c CHAR(10) CHARACTER SET latin1,
	  vb VARBINARY(50), bl LONGBLOB, tx MEDIUMTEXT, e ENUM('a','ü'), st SET('x','y'), dt DATETIME(6), ts TIMESTAMP(3) NULL, tm TIME(2), da DATE, y YEAR, j JSON, p POINT,
	  gv INT AS (id + 1) VIRTUAL, gs INT AS (id * 2) STORED) ENGINE=InnoDB`,
	`CREATE TABLE ck.two (a VARCHAR(20) NOT NULL, b DATETIME NOT NULL, c INT, PRIMARY KEY (a, b)) ENGINE=InnoDB`,
	`CREATE TABLE ck.uniq (a VARBINARY(40) NOT NULL, c INT, UNIQUE KEY u (a)) ENGINE=InnoDB`,
	`CREATE TABLE ck.floaty (f FLOAT NOT NULL PRIMARY KEY, c INT) ENGINE=InnoDB`,
	`CREATE TABLE ck.keyless (a INT, b VARCHAR(20)) ENGINE=InnoDB`,
	`CREATE TABLE ck.empty (id INT PRIMARY KEY) ENGINE=InnoDB`,
	`CREATE TABLE ck.parted (id INT PRIMARY KEY, v VARCHAR(10)) ENGINE=InnoDB PARTITION BY HASH (id) PARTITIONS 8`,
	`CREATE TABLE ck.isam (id INT PRIMARY KEY, v VARCHAR(10)) ENGINE=MyISAM`,
	`CREATE VIEW ck.v AS SELECT id FROM ck.plain`,
}

func series(n int, f func(i int) string) string {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = f(i + 1)
	}
	return strings.Join(rows, ",")
}

func (s *servers) fill() {
	s.t.Helper()
	s.do(0, awkward...)
	for k := range 15 {
		s.do(0, "INSERT INTO ck.plain (a, b) VALUES "+series(2000, func(i int) string { return fmt.Sprintf("(%d, REPEAT('b', %d))", i*k, i%150) }))
	}
	s.do(0,
		"INSERT INTO `odd ``na.me`.`t \"1' ``x.y` VALUES (1, 'eins 🐘', 'ß'), (18446744073709551615, '', NULL)",
		"SET sql_mode=''; INSERT INTO ck.types (id, ti, bu, d, f, g, bi, c, vb, bl, tx, e, st, dt, ts, tm, da, y, j, p) VALUES "+series(500, func(i int) string {
			return fmt.Sprintf(`(%d, %d, 18446744073709551615 - %d, %d.0000000001, %d / 7, %d / 3 * 1e20, b'1%b', 'ü %d', UNHEX('00ff%04x'), REPEAT(UNHEX('fb00'), %d), NULL, 'ü', 'x,y',
			 '2018-07-13 10:00:00.123456' + INTERVAL %d SECOND, '2000-01-01 00:00:01.5', '-01:02:03.45', '0000-00-00', 2026, '{"b": [1, 2.50, "ü"], "a": %d}', ST_GeomFromText('POINT(%d 2.5)'))`,
				i, i%100, i, i, i, i, i%1000, i, i, i, i, i, i)
		}),
		"INSERT INTO ck.two VALUES "+series(3000, func(i int) string {
			return fmt.Sprintf("('k%d', '2020-01-01' + INTERVAL %d MINUTE, %d)", i%40, i, i)
		}),
		"INSERT INTO ck.uniq VALUES "+series(3000, func(i int) string { return fmt.Sprintf("(UNHEX('%06x'), %d)", i, i) }),
		"INSERT INTO ck.floaty VALUES "+series(200, func(i int) string { return fmt.Sprintf("(%d / 7, %d)", i, i) }),
		"INSERT INTO ck.keyless VALUES "+series(300, func(i int) string { return fmt.Sprintf("(%d, NULL)", i/2) }),
		"INSERT INTO ck.parted VALUES "+series(1000, func(i int) string { return fmt.Sprintf("(%d, 'v')", i) }),
		"INSERT INTO ck.isam VALUES (1, 'x')",
	)
	s.caughtUp()
}

// small makes chunks of a few rows, so that tables have many.
func small(o checksum.Options) checksum.Options {
	o.Target = time.Millisecond
	return o
}

func verdicts(t *testing.T, tables map[string]checksum.Table, want map[string]checksum.Verdict) {
	t.Helper()
	for name, table := range tables {
		w := want[name]
		if w == "" {
			w = checksum.Equal
		}
		if got := table.Verdict(); got != w {
			t.Errorf("%s: %s, want %s: %+v", name, got, w, table)
		}
	}
}

func testPair(t *testing.T, specs ...string) {
	s := replication(t, specs)
	s.fill()
	t.Run("equal", func(t *testing.T) {
		s := s.in(t)
		for _, m := range []checksum.Method{checksum.MethodRows, checksum.MethodServer, checksum.MethodQuick} {
			o := small(s.options())
			o.Method = m
			r, tables := s.compare(o)
			verdicts(t, tables, nil)
			if len(tables) != 10 || r.Rows != 30000+2+500+3000+3000+200+300+1000+1 {
				t.Errorf("by %s: got %d tables, %d rows; want len(tables) 10, r.Rows 30000 + 2 + 500 + 3000 + 3000 + 200 + 300 + 1000 + 1",
					m, len(tables), r.Rows)
			}
			for _, table := range tables {
				for _, on := range table.On {
					if on.Again > 0 {
						t.Errorf("by %s: %s was read again, want on.Again at most 0", m, table.Name)
					}
				}
			}
		}
	})
	t.Run("differ", func(t *testing.T) { testDiffer(t, s.in(t)) })
	t.Run("mend", func(t *testing.T) { testMend(t, s.in(t)) })
	if strings.HasPrefix(specs[0], "mariadb") || specs[0] == "mysql-5.7" { // the others have SHA-256
		t.Run("alike", func(t *testing.T) { testAlike(t, s.in(t)) })
	}
	t.Run("load", func(t *testing.T) { testLoad(t, s.in(t)) })
}

func testDiffer(t *testing.T, s *servers) {
	s.secretly(1,
		"UPDATE ck.plain SET b = 'changed' WHERE id = 17001", "DELETE FROM ck.plain WHERE id = 3", "INSERT INTO ck.plain VALUES (900000, 5, NULL)",
		"UPDATE ck.types SET f = f + 0.0001 WHERE id = 77", "UPDATE ck.types SET bl = CONCAT(bl, 'x') WHERE id = 78",
		"DELETE FROM ck.two WHERE c = 1234", "INSERT INTO ck.empty VALUES (1)",
		"UPDATE ck.keyless SET b = '' WHERE a = 9 LIMIT 1", "UPDATE ck.floaty SET c = 0 WHERE c = 22",
		"UPDATE ck.uniq SET c = NULL WHERE c = 2", "UPDATE `odd ``na.me`.`t \"1' ``x.y` SET `größe` = 'x' WHERE `i``d` = 1",
		"CREATE TABLE ck.more (a INT)", "DROP TABLE ck.isam")
	r, tables := s.compare(small(s.options()))
	verdicts(t, tables, map[string]checksum.Verdict{"plain": checksum.Differs, "types": checksum.Differs, "two": checksum.Differs, "empty": checksum.Differs,
		"keyless": checksum.Differs, "floaty": checksum.Differs, "uniq": checksum.Differs, "t \"1' `x.y": checksum.Differs, "more": checksum.ExtraTable, "isam": checksum.MissingTable})
	if r.Counts.Equal != 1 || r.Counts.Differ != 10 || r.Counts.Open != 0 {
		t.Errorf("counts %+v; want Equal 1, Differ 10, Open 0", r.Counts)
	}
	count := func(name string, missing, extra, different int64) checksum.On {
		t.Helper()
		on := tables[name].On[0]
		if on.Missing != missing || on.Extra != extra || on.Different != different || on.AtLeast {
			t.Errorf("%s: got %+v; want Missing %v, Extra %v, Different %v, AtLeast false", name, on, missing, extra, different)
		}
		return on
	}
	plain := count("plain", 1, 1, 1)
	var words []string
	for _, row := range plain.Rows {
		word := fmt.Sprintf("%s %s", row.Kind, row.Key[0].Value)
		if row.Kind == checksum.Different {
			if len(row.Columns) != 1 || row.Columns[0].Name != "b" || *row.Columns[0].Other != "changed" || !strings.HasPrefix(*row.Columns[0].Primary, "bbb") {
				t.Errorf("columns %+v; want len(row.Columns) 1, row.Columns[0].Name \"b\", *row.Columns[0].Other \"changed\", \"bbb\" at the beginning of *row.Columns[0].Primary",
					row.Columns)
			}
		}
		words = append(words, word)
	}
	for _, w := range []string{"different 17001", "missing 3", "extra 900000"} {
		if !strings.Contains(strings.Join(words, ","), w) {
			t.Errorf("%q lacks %q", words, w)
		}
	}
	count("types", 0, 0, 2)
	count("two", 1, 0, 0)
	count("empty", 0, 1, 0)
	count("keyless", 1, 1, 0)
	count("floaty", 1, 1, 0)
	count("uniq", 0, 0, 1)
	count("t \"1' `x.y", 0, 0, 1)
	for _, most := range []int{20, 1} { // rows that are not all held in memory, and not even those that may differ
		o := small(s.options()).Loose(most)
		o.Tables = []string{"ck.keyless"}
		_, tables = s.compare(o)
		if most == 20 {
			count("keyless", 1, 1, 0)
		} else if on := tables["keyless"].On[0]; on.Verdict != checksum.Differs || !on.AtLeast {
			t.Errorf("got %+v; want Verdict checksum.Differs, AtLeast true", on)
		}
	}
	s.secretly(1, "DROP TABLE ck.more", "CREATE TABLE ck.isam (id INT PRIMARY KEY, v VARCHAR(10)) ENGINE=MyISAM", "INSERT INTO ck.isam VALUES (1, 'x')")
}

// testMend repairs what testDiffer made, and more that is delicate, and compares again.
func testMend(t *testing.T, s *servers) {
	s.do(0, "CREATE TABLE ck.parent (id INT PRIMARY KEY, v VARCHAR(20))", "CREATE TABLE ck.child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES ck.parent (id) ON DELETE CASCADE)",
		"CREATE TABLE ck.trig (id INT PRIMARY KEY, v INT)", "CREATE TRIGGER ck.tr BEFORE INSERT ON ck.trig FOR EACH ROW SET NEW.v = NEW.v + 1",
		"CREATE TABLE ck.ci (name VARCHAR(20) CHARACTER SET utf8mb4 PRIMARY KEY, v INT, u INT, UNIQUE KEY (u))",
		"CREATE TABLE ck.enumed (e ENUM('b','a') PRIMARY KEY, v INT)", "INSERT INTO ck.enumed VALUES ('a', 1), ('b', 2)",
		"INSERT INTO ck.parent VALUES (1, 'a'), (2, 'b')", "INSERT INTO ck.child VALUES (10, 1), (20, 2)", "INSERT INTO ck.trig VALUES (1, 1)", "INSERT INTO ck.ci VALUES ('abc', 1, 1), ('xyz', 2, 2)")
	s.caughtUp()
	s.secretly(1, "UPDATE ck.parent SET v = 'c' WHERE id = 1", "UPDATE ck.trig SET v = 9", "UPDATE ck.enumed SET v = 9 WHERE e = 'a'",
		"UPDATE ck.ci SET name = 'ABC' WHERE v = 1", // the same key by its collation, another by its bytes
		"UPDATE ck.types SET d = d + 1, dt = NULL, j = '[]', p = ST_GeomFromText('POINT(0 0)'), e = NULL, bi = 0, ts = NULL WHERE id BETWEEN 100 AND 110")
	before := s.sums(0)
	o := s.options()
	o.MaxRows = 1000
	r, _ := s.compare(o)
	m := checksum.MendOptions{Primary: o.Primary, Replicas: o.Others, Tables: r.List, Journal: t.TempDir()}
	plan, err := checksum.PlanMend(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]string{}
	for _, r := range plan.Refused {
		refused[r.What] = r.Why
	}
	const inexact = "no primary key, and no unique key without NULL, names its rows exactly"
	for what, why := range map[string]string{"ck.parent": "foreign key", "ck.trig": "trigger", "ck.keyless": inexact, "ck.floaty": inexact, "ck.enumed": inexact} {
		if !strings.Contains(refused[what], why) {
			t.Errorf("%s is refused with %q, want %q in it", what, refused[what], why)
		}
	}
	if len(refused) != 5 || len(plan.Steps) != 3+2+1+1+1+1+2+11 {
		t.Errorf("refused %v, %d steps; want len(refused) 5, len(plan.Steps) 3 + 2 + 1 + 1 + 1 + 1 + 2 + 11", refused, len(plan.Steps))
	}
	m.ForeignKeys = true
	if plan, err = checksum.PlanMend(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	journal, err := checksum.Mend(t.Context(), m, plan, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(journal); err != nil || strings.Count(string(b), "\n") != len(plan.Steps) {
		t.Errorf("the journal has %d lines: %v; want %d", strings.Count(string(b), "\n"), err, len(plan.Steps))
	}
	_, tables := s.compare(o)
	verdicts(t, tables, map[string]checksum.Verdict{"trig": checksum.Differs, "keyless": checksum.Differs, "floaty": checksum.Differs, "enumed": checksum.Differs})
	if after := s.sums(0); after != before {
		t.Errorf("mending changed the primary:\n%s\n%s", before, after)
	}
	s.do(0, "DROP TABLE ck.child, ck.parent, ck.trig, ck.ci, ck.enumed")
}

// sums is what a server says about all its rows, column by column. CHECKSUM TABLE of MySQL 5.7 gave another number after rows
// were replaced by themselves, though no value had changed.
func (s *servers) sums(i int) string {
	s.t.Helper()
	var b strings.Builder
	for _, table := range []string{"plain", "types", "two", "uniq", "empty", "parent", "child", "trig", "ci"} {
		names, err := s.nodes[i].Query(s.t.Context(), "SELECT COLUMN_NAME, IF(DATA_TYPE = 'point', 'HEX(%[2]s)', 'CONCAT(HEX(%[2]s), CAST(%[2]s AS CHAR))') FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'ck' AND TABLE_NAME = '"+table+"' ORDER BY ORDINAL_POSITION")
		if err != nil {
			s.t.Fatal(err)
		}
		key := mysql.Quote(*names[0].Rows[0][0])
		for _, row := range names[0].Rows {
			column := mysql.Quote(*row[0])
			r, err := s.nodes[i].Query(s.t.Context(), fmt.Sprintf("SELECT COUNT(*), COALESCE(SUM(CRC32(CONCAT_WS(':', HEX(%[1]s), "+*row[1]+", ISNULL(%[2]s)))), 0) FROM ck.%[3]s", key, column, table))
			if err != nil {
				s.t.Fatal(err)
			}
			fmt.Fprintln(&b, table, column, *r[0].Rows[0][0], *r[0].Rows[0][1])
		}
	}
	for _, q := range []string{"SELECT 0, SUM(CRC32(CONCAT_WS(':', id, f*1e0, g*1e0, g+0e0, HEX(p), CAST(j AS CHAR), bi+0, ts+0, dt+0, HEX(bl), JSON_TYPE(JSON_EXTRACT(j, '$.b[1]')), JSON_TYPE(JSON_EXTRACT(j, '$.a')), HEX(c), HEX(vb), e+0, st+0, tm+0, da+0, y+0, gv, gs))) FROM ck.types"} {
		r, err := s.nodes[i].Query(s.t.Context(), q)
		if err != nil {
			s.t.Fatal(err)
		}
		fmt.Fprintln(&b, *r[0].Rows[0][1])
	}
	return b.String()
}

// testLoad compares while rows change, come and go: no round may see a difference that is none.
func testLoad(t *testing.T, s *servers) {
	s.do(0, "CREATE TABLE ck.hot (id INT PRIMARY KEY, n INT NOT NULL, f INT NOT NULL)", "INSERT INTO ck.hot VALUES "+series(2000, func(i int) string { return fmt.Sprintf("(%d, 0, 0)", i) }))
	s.caughtUp()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int)
	for w := range 2 {
		go func() {
			n := 0
			for i := w; ctx.Err() == nil; i++ {
				q := fmt.Sprintf("UPDATE ck.hot SET n = n + 1, f = 1 - f WHERE id = %d", 1+i*7%2000)
				switch i % 5 {
				case 3:
					q = fmt.Sprintf("DELETE FROM ck.hot WHERE id = %d", 1+i*3%2000)
				case 4:
					q = fmt.Sprintf("REPLACE INTO ck.hot VALUES (%d, %d, 0)", 1+i*3%2100, i)
				}
				if _, err := s.db[0].ExecContext(ctx, q); err == nil {
					n++
				}
				time.Sleep(time.Millisecond) // the replica has to keep up with it on a busy machine, too
			}
			ended <- n
		}()
	}
	o := small(s.options())
	o.Tables = []string{"ck.hot"}
	rounds, again, settled := 0, int64(0), int64(0)
	for began := time.Now(); time.Since(began) < 3*time.Second || (rounds < 2 || again == 0) && time.Since(began) < time.Minute; rounds++ {
		o.Method = []checksum.Method{checksum.MethodRows, checksum.MethodServer}[rounds%2]
		_, tables := s.compare(o)
		for _, on := range tables["hot"].On {
			again, settled = again+on.Again, settled+on.Settled
			if on.Verdict.Bad() || on.Verdict == checksum.Failed {
				t.Fatalf("round %d: got %+v; want Verdict.Bad() false, Verdict not checksum.Failed", rounds, on)
			}
		}
	}
	cancel()
	writes := <-ended + <-ended
	t.Logf("%d rounds, %d writes, %d chunks read again, %d rows settled", rounds, writes, again, settled)
	if writes < 100 || rounds < 2 || again == 0 {
		t.Errorf("%d writes, %d rounds, %d chunks read again: nothing was tested", writes, rounds, again)
	}
	s.caughtUp()
	_, tables := s.compare(o)
	verdicts(t, tables, nil)
}

func TestMariaDB(t *testing.T)     { testPair(t, "mariadb") }
func TestMariaDB118(t *testing.T)  { testPair(t, "mariadb-11.8") }
func TestMySQL97(t *testing.T)     { testPair(t, "mysql-9.7") }
func TestMySQL80(t *testing.T)     { testPair(t, "mysql-8.0") }
func TestMySQL57to80(t *testing.T) { testPair(t, "mysql-5.7", "mysql-8.0") }
