package size_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rissodb/risso/internal/explain/size"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

// servers are those that tests ask.
var servers = []string{"mariadb", "mysql-9.7", "mysql-8.0", "mysql-5.7"}

// digitsOf makes ten thousand rows from nothing.
const tenThousand = "(SELECT a.n + 10 * b.n + 100 * c.n + 1000 * d.n AS n FROM " + ten + " a, " + ten + " b, " + ten + " c, " + ten + " d) AS x"
const ten = "(SELECT 0 AS n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9)"

func run(t *testing.T, c *mysql.Conn, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if err := c.Query(t.Context(), s, mysql.IgnoreRow); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// onDisk is what the files of a table take, as the file system says.
func onDisk(t *testing.T, n *sandbox.Node, schema, pattern string) (s size.Sum) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(n.Datadir, schema, pattern))
	if err != nil || len(list) == 0 {
		t.Fatalf("no files %s/%s: %v", schema, pattern, err)
	}
	for _, f := range list {
		st, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		s.File += st.Size()
		s.Allocated += st.Sys().(*syscall.Stat_t).Blocks * 512
	}
	return s
}

func table(t *testing.T, r *size.Report, name string) size.Table {
	t.Helper()
	i := slices.IndexFunc(r.Tables, func(x size.Table) bool { return x.Name == name })
	if i < 0 {
		t.Fatalf("there is no table %q among %v", name, r.Tables)
	}
	return r.Tables[i]
}

// makeTables makes one table of each kind. The compressed one has rows that compress to a part.
func makeTables(t *testing.T, c *mysql.Conn) {
	t.Helper()
	run(t, c, "CREATE DATABASE size", "USE size",
		"CREATE TABLE pressed (id INT PRIMARY KEY, pad VARCHAR(2000), KEY (pad(20))) "+c.Server.PageCompression(),
		"INSERT INTO pressed SELECT n, REPEAT(CONCAT('row ', n), 150) FROM "+tenThousand,
		"CREATE TABLE parts (id INT PRIMARY KEY, v INT, KEY k (v)) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION `p 1` VALUES LESS THAN MAXVALUE)",
		"CREATE TABLE isam (id INT PRIMARY KEY, v VARCHAR(30)) ENGINE=MyISAM", "INSERT INTO isam VALUES (1, 'x')",
		"CREATE TABLE words (id INT PRIMARY KEY, t TEXT, FULLTEXT KEY (t))",
		"CREATE TABLE `od-d ``na\"me#P#é日` (id INT PRIMARY KEY)",
		"CREATE VIEW broken AS SELECT id FROM isam", "CREATE TABLE gone (id INT)", "CREATE VIEW broken2 AS SELECT id FROM gone", "DROP TABLE gone",
		"FLUSH TABLES pressed, parts FOR EXPORT", "UNLOCK TABLES", "ANALYZE TABLE pressed, parts")
}

// TestRead: sizes are those that the file system shows, for tables of all kinds and names.
func TestRead(t *testing.T) {
	for _, spec := range servers {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Lend(t, spec, "log_bin=binlog")
			c := sandboxtest.Connect(t, n)
			makeTables(t, c)
			r, err := size.Read(t.Context(), c, size.Options{Top: 200, Local: true})
			if err != nil {
				t.Fatal(err)
			}
			pressed, want := table(t, r, "pressed"), onDisk(t, n, "size", "pressed.ibd")
			if pressed.Sum != want || pressed.Allocated*4 > pressed.File*3 {
				t.Errorf("pressed: got %+v; the file system has %+v, and holes of a quarter at least were expected", pressed.Sum, want)
			}
			if pressed.Rows == nil || math.Abs(float64(*pressed.Rows)-1e4) > 4e3 || len(pressed.Indexes) != 2 || pressed.Indexes[0].Bytes < 5<<20 {
				t.Errorf("pressed: rows and indexes are %+v; want about 10,000 rows and two indexes", pressed)
			}
			old := spec == "mysql-8.0" // 8.0.15 does not find files with signs in their names
			if p := table(t, r, "parts"); !old && (p.Sum != onDisk(t, n, "size", "parts#*.ibd") || p.PartitionCount != 2 || len(p.Indexes) != 2) || old && p.File != 4*16<<10 {
				t.Errorf("parts: got %+v; want two partitions and two indexes, as large as the files", p)
			}
			if i := table(t, r, "isam"); i.Engine != "MyISAM" || i.File < 1024 {
				t.Errorf("isam: got %+v; want a MyISAM table", i)
			}
			words := table(t, r, "words")
			if i := slices.IndexFunc(words.Indexes, func(x size.Index) bool { return x.Name == size.FullTextIndexes }); i < 0 || words.Indexes[i].Bytes < 6*16<<10 {
				t.Errorf("words: got %+v; want its full-text indexes", words)
			}
			odd := "od-d `na\"me#P#é日"
			if strings.HasPrefix(c.Server.Version, "5.7") { // it gives the names of files only: see mysql.ReadTablespace
				odd = ""
			} else if x := table(t, r, odd); !old && x.File < 64<<10 || old && (x.File != 16<<10 || !slices.ContainsFunc(r.Unknown, func(u fleet.Trouble) bool { return u.What == "true sizes of 2 tables" })) {
				t.Errorf("%s: got %+v; want its size, or that it is not known", odd, x)
			}
			kinds := map[string]int64{}
			for _, s := range r.Spaces {
				kinds[s.Kind] += s.File
			}
			for _, kind := range []string{size.KindSystem, size.KindRedo, size.KindTemporary, size.KindBinlog} {
				if kinds[kind] == 0 {
					t.Errorf("nothing of %s is in %+v", kind, r.Spaces)
				}
			}
			if c.Server.DoublewriteFiles() && kinds[size.KindDoublewrite] == 0 {
				t.Errorf("no doublewrite files in %+v", r.Spaces)
			}
			if r.Disk == nil || r.Disk.Left <= 0 || r.Disk.Left > r.Disk.Size {
				t.Errorf("the disk: got %+v; want what is left of it", r.Disk)
			}
			sum := size.Sum{}
			for _, x := range r.Tables {
				sum.File += x.File
			}
			for _, s := range r.Spaces {
				sum.File += s.File
			}
			if got := sum.File + r.Rest.File; got != r.Total.File {
				t.Errorf("tables and spaces sum up to %d; the total is %d", got, r.Total.File)
			}
			if _, err := size.Read(t.Context(), c, size.Options{Schema: "no such"}); !errors.Is(err, size.ErrNoSchema) {
				t.Errorf("a schema that is not there: got %v; want ErrNoSchema", err)
			}
		})
	}
}

// TestReadRare: what servers say nothing of, or in words of their own: CSV tables, what an ALTER TABLE left, tables with history, sequences,
// undo tablespaces that somebody made, and the sign of partitions in a table's name.
func TestReadRare(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Up(t, spec)
			c := sandboxtest.Connect(t, n)
			run(t, c, "CREATE DATABASE `ra-re`", "USE `ra-re`", "CREATE TABLE `sheet-1` (id INT NOT NULL, v CHAR(200) NOT NULL) ENGINE=CSV", "INSERT INTO `sheet-1` SELECT n, REPEAT('x', 200) FROM "+tenThousand,
				"CREATE TABLE `sheet-é` (id INT NOT NULL) ENGINE=CSV")
			if c.Server.MariaDB() {
				run(t, c, "CREATE TABLE hist (id INT PRIMARY KEY, v CHAR(200)) ENGINE=Aria WITH SYSTEM VERSIONING", "INSERT INTO hist SELECT n, 'x' FROM "+tenThousand, "CREATE SEQUENCE numbers")
			}
			if spec == "mysql-9.7" {
				run(t, c, "CREATE UNDO TABLESPACE more ADD DATAFILE 'more.ibu'", "CREATE TABLE `a#p#b` (id INT PRIMARY KEY, v CHAR(200))", "INSERT INTO `a#p#b` SELECT n, 'x' FROM "+tenThousand, "ANALYZE TABLE `a#p#b`")
			}
			for _, name := range []string{"#sql-ib77.ibd", "#sql-1_2.MYD"} {
				if err := os.WriteFile(filepath.Join(n.Datadir, "ra@002dre", name), make([]byte, 300000), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r, err := size.Read(t.Context(), c, size.Options{Top: 200, Local: true})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := table(t, r, "sheet-1").Sum, onDisk(t, n, "ra@002dre", "sheet@002d1.CSV"); got != want {
				t.Errorf("a CSV table: got %+v, the file system has %+v", got, want)
			}
			said := fmt.Sprint(r.Unknown)
			if !strings.Contains(said, "sizes of 1 table of the engine CSV") || strings.Contains(said, "numbers") {
				t.Errorf("got %s; want that the size of the other CSV table is not known, and nothing of sequences", said)
			}
			left, undo := size.Space{}, size.Space{}
			for _, s := range r.Spaces {
				switch s.Name {
				case "innodb_system":
					if want := onDisk(t, n, "", "ibdata1"); s.File != want.File || math.Abs(float64(s.Allocated-want.Allocated)) > 2<<20 || strings.Contains(s.Note, "extents") {
						t.Errorf("the system tablespace: got %+v, the file system has %+v", s, want)
					}
				case "files of ALTER TABLE":
					left = s
				case "more":
					undo = s
				}
			}
			if c.Server.ListsOpened() { // files of InnoDB stand as tables there
				if x := table(t, r, "#sql-ib77"); x.File != 300000 || !strings.Contains(said, "was cut off") || left.File != 300000 {
					t.Errorf("what an ALTER TABLE left: got %+v and %+v, %s", x, left, said)
				}
				if x := table(t, r, "hist"); x.File < 100<<10 || x.Rows == nil {
					t.Errorf("a table with history: got %+v", x)
				}
			} else if left.File != 600000 || !strings.Contains(left.Note, "2 files") {
				t.Errorf("what an ALTER TABLE left: got %+v, want both files", left)
			}
			if spec != "mysql-9.7" {
				return
			}
			if undo.Kind != size.KindUndo {
				t.Errorf("an undo tablespace: got %+v", undo)
			}
			name := mysql.TableName{Schema: "ra-re", Name: "a#p#b"}
			x, want := table(t, r, name.Name), onDisk(t, n, "ra@002dre", "a@0023p@0023b.ibd")
			if x.Sum != want || x.Average == nil {
				t.Errorf("#p# in a name: got %+v, the file system has %+v", x, want)
			}
			found, err := size.Find(t.Context(), c, name)
			if err != nil || found.Sum != want {
				t.Fatalf("#p# in a name: found %+v, %v; the file system has %+v", found, err, want)
			}
			m, err := size.Measure(t.Context(), sandboxtest.Target(t, n), c, *found, size.MeasureOptions{Rows: 4000, Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range m.Ways {
				if w.Failed == "" && w.After < want.File/20 {
					t.Errorf("measured %+v of %+v", w, want)
				}
			}
		})
	}
}

// TestReadClosed: after a restart, when the server has opened next to no table, sizes are the same: by the files if they are here, else by
// estimates, which is said.
func TestReadClosed(t *testing.T) {
	for _, spec := range servers[:2] {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Up(t, spec)
			c := sandboxtest.Connect(t, n)
			makeTables(t, c)
			if err := n.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := n.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			c = sandboxtest.Connect(t, n)
			r, err := size.Read(t.Context(), c, size.Options{Schema: "size", Top: 100, Local: true})
			if err != nil {
				t.Fatal(err)
			}
			if p, want := table(t, r, "pressed"), onDisk(t, n, "size", "pressed.ibd"); p.Sum != want {
				t.Errorf("pressed: got %+v; the file system has %+v", p.Sum, want)
			}
			if p, want := table(t, r, "parts"), onDisk(t, n, "size", "parts#*.ibd"); p.Sum != want || p.PartitionCount != 2 {
				t.Errorf("parts: got %+v; the file system has %+v", p.Sum, want)
			}
			table(t, r, "od-d `na\"me#P#é日")
			if err := n.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := n.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			c = sandboxtest.Connect(t, n)
			if r, err = size.Read(t.Context(), c, size.Options{Schema: "size", Top: 100}); err != nil {
				t.Fatal(err)
			}
			p, want := table(t, r, "pressed"), onDisk(t, n, "size", "pressed.ibd")
			said := slices.ContainsFunc(r.Unknown, func(u fleet.Trouble) bool { return strings.HasPrefix(u.What, "true sizes of ") })
			if said != c.Server.ListsOpened() || !said && p.Sum != want || p.File < want.File/2 {
				t.Errorf("from elsewhere: got %+v, said to be estimated %v; the file system has %+v", p.Sum, said, want)
			}
			if r, err = size.Read(t.Context(), c, size.Options{Schema: "size", Top: 100}); err != nil || table(t, r, "pressed").Sum != want {
				t.Errorf("asked again: got %+v, %v; want %+v", r.Tables, err, want)
			}
		})
	}
}

// TestReadLittle: an account that may see next to nothing is told what it does not see, and how to change that.
func TestReadLittle(t *testing.T) {
	for _, spec := range servers[:2] {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Lend(t, spec, "log_bin=binlog")
			root := sandboxtest.Connect(t, n)
			makeTables(t, root)
			run(t, root, "CREATE USER little@localhost", "GRANT SELECT ON size.isam TO little@localhost")
			target, err := mysql.ParseTarget(strings.Replace(n.DSN, "root@", "little@", 1))
			if err != nil {
				t.Fatal(err)
			}
			c, err := mysql.Connect(t.Context(), target, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			r, err := size.Read(t.Context(), c, size.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if r.Source != size.SourceEstimates || len(r.Tables) != 1 || r.Tables[0].Name != "isam" {
				t.Errorf("got %s of %+v; want estimates of isam", r.Source, r.Tables)
			}
			text := ""
			for _, u := range r.Unknown {
				text += u.What + ": " + u.Why + " (" + u.Remedy + ")\n"
			}
			for _, want := range []string{"GRANT PROCESS", "binary logs", "relay logs", "temporary files, text logs and the disk"} {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not among what is not known:\n%s", want, text)
				}
			}
		})
	}
}

// TestWidths: columns are looked at in all rows of a small table, and at both ends of a large one.
func TestWidths(t *testing.T) {
	for _, spec := range servers[:2] {
		t.Run(spec, func(t *testing.T) {
			c := sandboxtest.Connect(t, sandboxtest.Lend(t, spec, "log_bin=binlog"))
			run(t, c, "CREATE DATABASE size", "USE size", "CREATE TABLE w (id BIGINT PRIMARY KEY, `wi``de` VARCHAR(255), late BIGINT, k BIGINT, c CHAR(200), g INT AS (k + 1), KEY (k))",
				"INSERT INTO w (id, `wi``de`, late, k, c) SELECT n, LEFT(LEFT(SHA2(n, 256), 32), 12), IF(n = 9999, 5000000000, 1), n, 'x' FROM "+tenThousand, "ANALYZE TABLE w")
			r, err := size.Read(t.Context(), c, size.Options{Schema: "size"})
			if err != nil {
				t.Fatal(err)
			}
			found, unknown, err := size.Widths(t.Context(), c, r.Tables, size.WidthOptions{Rows: 1000})
			if err != nil || len(unknown) > 0 {
				t.Fatal(err, unknown)
			}
			got := map[string]string{}
			for _, w := range found {
				got[w.Column] = w.Narrower
			}
			want := map[string]string{"id": "smallint", "wi`de": "varchar(32)", "k": "smallint", "c": "varchar(8)"}
			if len(got) != len(want) {
				t.Errorf("got %v; want %v", got, want)
			}
			for column, narrower := range want {
				if got[column] != narrower {
					t.Errorf("%s: got %q; want %q", column, got[column], narrower)
				}
			}
		})
	}
}

// TestMeasure: what a sample in a sandbox says comes true when the table itself is written anew.
func TestMeasure(t *testing.T) {
	for _, spec := range servers[:2] {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Lend(t, spec, "log_bin=binlog")
			c := sandboxtest.Connect(t, n)
			// Rows in no order, two thirds of which are gone: most of it is air.
			run(t, c, "CREATE DATABASE `me-asure`", "USE `me-asure`", "CREATE TABLE t (id BIGINT PRIMARY KEY, u CHAR(32) CHARACTER SET latin1, pad VARCHAR(600), doc JSON, b BLOB, at DATETIME, g POINT, v INT AS (id + 1), KEY (u))",
				"INSERT INTO t (id, u, pad, doc, b, at, g) SELECT (n * 7919) % 10007, LEFT(SHA2(n, 256), 32), REPEAT(SHA2(n, 256), 8), '{\"a\": \"ä\"}', UNHEX(SHA2(n, 256)), NOW(), POINT(n, 1) FROM "+tenThousand,
				"DELETE FROM t WHERE id % 3 > 0", "FLUSH TABLES t FOR EXPORT", "UNLOCK TABLES", "ANALYZE TABLE t")
			found, err := size.Find(t.Context(), c, mysql.TableName{Schema: "me-asure", Name: "t"})
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			m, err := size.Measure(t.Context(), sandboxtest.Target(t, n), c, *found, size.MeasureOptions{Rows: 1600, Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			if left, err := sandbox.List(dir); err != nil || len(left) > 0 {
				t.Errorf("the sandbox is still there: %v, %v", left, err)
			}
			if !m.Counted || !m.Spread || m.Sampled < 1000 || m.Sampled > 1700 || m.Error > 0.1 {
				t.Errorf("the sample: got %+v; want about 1,600 rows from all over the key", m)
			}
			for i, w := range m.Ways {
				if w.Failed != "" {
					t.Errorf("%s: %s", w.Statement, w.Failed)
					continue
				}
				statement := w.Statement
				if i == 2 {
					statement += ", ROW_FORMAT = DYNAMIC, KEY_BLOCK_SIZE = 0"
				}
				run(t, c, statement, "FLUSH TABLES t FOR EXPORT", "UNLOCK TABLES")
				after := onDisk(t, n, "me@002dasure", "t.ibd")
				// Files grow by up to 4 MiB at a time.
				if off := math.Abs(float64(w.After - after.Allocated)); off > 0.2*float64(after.Allocated) && off > 1<<20 {
					t.Errorf("%s: measured %d; it became %+v", w.Statement, w.After, after)
				}
				t.Logf("%s: now %d, measured %d, became %+v", w.Statement, m.Now, w.After, after)
			}
			if len(m.Ways) != 3 || m.Ways[0].After*2 > m.Now {
				t.Errorf("got %+v of %d bytes; want three ways, the first of which gives back more than half", m.Ways, m.Now)
			}
		})
	}
}
