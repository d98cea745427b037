package digest

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// ptClass is what pt-query-digest says about a class.
type ptClass struct {
	calls     int64
	sum       float64
	max       float64
	rows      float64 // sent
	examined  float64
	histogram [8]int64
}

// ptDigest runs the real pt-query-digest over a log.
func ptDigest(t *testing.T, path string) map[string]ptClass {
	t.Helper()
	program, err := exec.LookPath("pt-query-digest")
	if err != nil {
		lack.Of(t, "pt-query-digest is not installed: run script/setup")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--no-version-check", "--limit", "100%", "--output", "json", path)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("pt-query-digest: %v", err)
	}
	var doc struct {
		Classes []struct {
			Checksum   string `json:"checksum"`
			Calls      int64  `json:"query_count"`
			Histograms struct {
				QueryTime [8]int64 `json:"Query_time"`
			} `json:"histograms"`
			Metrics struct {
				QueryTime struct{ Sum, Max string } `json:"Query_time"`
				RowsSent  struct{ Sum string }      `json:"Rows_sent"`
				Examined  struct{ Sum string }      `json:"Rows_examined"`
			} `json:"metrics"`
		} `json:"classes"`
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatalf("pt-query-digest printed %.300q: %v", out, err)
	}
	got := map[string]ptClass{}
	for _, c := range doc.Classes {
		num := func(s string) float64 { v, _ := strconv.ParseFloat(s, 64); return v }
		got[c.Checksum] = ptClass{c.Calls, num(c.Metrics.QueryTime.Sum), num(c.Metrics.QueryTime.Max), num(c.Metrics.RowsSent.Sum), num(c.Metrics.Examined.Sum), c.Histograms.QueryTime}
	}
	return got
}

// compareWithPt holds a profile against what pt-query-digest says of the same log. Classes whose fingerprints the two make
// differently are compared together: all that are bound by pt's names.
func compareWithPt(t *testing.T, path string, p *Profile) {
	t.Helper()
	want := ptDigest(t, path)
	parent := map[string]string{}
	var root func(string) string
	root = func(id string) string {
		if up, ok := parent[id]; ok {
			return root(up)
		}
		return id
	}
	first := func(c *Class) string {
		for _, id := range c.PtIDs {
			if a, b := root(c.PtID), root(id); a != b {
				parent[b] = a
			}
		}
		return root(c.PtID)
	}
	for i := range p.Classes {
		first(&p.Classes[i])
	}
	mine, theirs, names := map[string]ptClass{}, map[string]ptClass{}, map[string]bool{}
	for i := range p.Classes {
		c := &p.Classes[i]
		id := first(c)
		mine[id] = mine[id].plus(ptClass{c.Calls, c.Metric("Query_time").Sum, c.Metric("Query_time").Max, c.Metric("Rows_sent").Sum, c.Metric("Rows_examined").Sum, c.Histogram})
		for _, id := range append(slices.Clone(c.PtIDs), c.PtID) {
			names[id] = true
		}
	}
	for id, w := range want {
		if !names[id] {
			t.Errorf("pt-query-digest has a class %s, of %d calls; it is missing", id, w.calls)
		}
		theirs[root(id)] = theirs[root(id)].plus(w)
	}
	if len(names) != len(want) {
		t.Errorf("%d of pt-query-digest's names, it has %d classes", len(names), len(want))
	}
	for id, w := range theirs {
		m := mine[id]
		if id == adminQuit { // pt-query-digest counts no rows of administrator commands
			w.rows, w.examined = m.rows, m.examined
		}
		if m.calls != w.calls || math.Abs(m.sum-w.sum) > 1e-6 || m.max != w.max || m.rows != w.rows || m.examined != w.examined {
			t.Errorf("%s: %+v, pt-query-digest has %+v; want calls %v, math.Abs(m.sum - w.sum) at most 1e-6, max %v, rows %v, examined %v",
				id, m, w, w.calls, w.max, w.rows, w.examined)
		}
		// Its buckets grow by 5 % from 1 µs, so a border is up to 5 % off and values next to it move.
		off := int64(0)
		for i := range m.histogram {
			off += max(m.histogram[i]-w.histogram[i], 0)
		}
		if off > w.calls/20+2 {
			t.Errorf("%s: histogram %v, pt-query-digest has %v; want off at most %v", id, m.histogram, w.histogram, w.calls/20+2)
		}
	}
}

// plus adds up two classes.
func (c ptClass) plus(o ptClass) ptClass {
	c.calls += o.calls
	c.sum += o.sum
	c.max = max(c.max, o.max)
	c.rows += o.rows
	c.examined += o.examined
	for i, n := range o.histogram {
		c.histogram[i] += n
	}
	return c
}

// adminQuit is the ID of "administrator command: Quit".
const adminQuit = "EDBC971AEC392917AA353644DE4C4CB4"

func TestLikePt(t *testing.T) {
	made := filepath.Join(t.TempDir(), "made.log")
	var b strings.Builder
	// pt-query-digest finds no event's end in CRLF, and one inside of a text with ";" before "#".
	b.WriteString(strings.NewReplacer("\r\n", "\n", "'one;\n#", "'one\n#").Replace(string(writeLog(3000))))
	if err := os.WriteFile(made, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{made, "testdata/percona.log"} {
		s, err := File(path)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Run(t.Context(), Options{}, s)
		if err != nil {
			t.Fatal(err)
		}
		compareWithPt(t, path, p)
	}
}

// settings switch on all that each server can log.
var settings = map[string][]string{
	"mariadb":   {"log_slow_verbosity=full", "log_slow_admin_statements=ON"},
	"mysql-9.7": {"log_slow_extra=ON", "log_slow_admin_statements=ON"},
	"mysql-8.0": {"log_slow_extra=ON"},
	"mysql-5.7": {},
}

// The log of a real server against what was run on it.
func TestRealServers(t *testing.T) {
	for kind, set := range settings {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			path, began := runStatements(t, kind, set)
			s, err := File(path)
			if err != nil {
				t.Fatal(err)
			}
			p, err := Run(t.Context(), Options{}, s)
			if err != nil {
				t.Fatal(err)
			}
			checkReal(t, kind, p, began)
			t.Run("like pt-query-digest", func(t *testing.T) { compareWithPt(t, path, p) })
		})
	}
}

const (
	realSelects = 40
	realInserts = 25
)

// realStatements are of many kinds and spellings; each runs realRounds times. Some have one name here and several in
// pt-query-digest, or the other way round.
var realStatements = []string{
	"CREATE TABLE IF NOT EXISTS test.items (id INT PRIMARY KEY AUTO_INCREMENT, n INT, s VARCHAR(40), KEY (n))",
	"INSERT INTO test.items (n, s) VALUES (%d, 'a'), (2, 'b'), (3, 'c')", "INSERT INTO test.items (n,s) VALUES (%d,'x')",
	"INSERT INTO test.items (id, n) VALUES (1, %d), (2, 2) ON DUPLICATE KEY UPDATE n = 7", "REPLACE INTO test.items (id, n, s) VALUES (9, %d, 'it\\'s')",
	"INSERT INTO test.items (n, s) SELECT n, s FROM test.items WHERE id < %d", "INSERT IGNORE INTO test.items VALUES (1, %d, NULL)",
	"SELECT * FROM test.items WHERE id = %d", "SELECT * FROM test.items WHERE id=%d", "select  *  from test.items where id = %d", "SELECT `id` FROM `test`.`items` WHERE `n` = %d",
	"SELECT id FROM test.items WHERE n IN (1, 2, %d)", "SELECT id FROM test.items WHERE (id, n) IN ((1, 2), (3, %d))", "SELECT n, COUNT(*) FROM test.items GROUP BY n HAVING COUNT(*) > %d",
	"SELECT s FROM test.items WHERE n > %d ORDER BY s ASC, id DESC LIMIT 3", "SELECT s FROM test.items ORDER BY id LIMIT %d, 2", "SELECT id FROM test.items WHERE n = %d UNION SELECT id FROM test.items WHERE n = 2",
	"SELECT a.id FROM test.items a JOIN test.items b ON a.n = b.n WHERE b.id = %d", "SELECT id FROM test.items WHERE n = (SELECT MAX(n) FROM test.items WHERE id < %d)",
	"SELECT /* a comment; */ id FROM test.items WHERE id = %d", "SELECT id FROM test.items -- to the end; of the line\nWHERE id = %d", "SELECT CONCAT('a;\n', s, \"b\") FROM test.items WHERE id = %d",
	"SELECT SUM(n) FROM test.items WHERE s LIKE 'a%%' AND id <> %d", "SELECT x'0F', 0xFF, 1e5, %d", "SELECT NULL, TRUE, id FROM test.items WHERE s IS NULL AND n = %d",
	"UPDATE test.items SET n = n + 1 WHERE id = %d", "UPDATE test.items SET n=n-1 WHERE id=%d", "UPDATE test.items SET s = CONCAT(s, 'y') WHERE n BETWEEN 1 AND %d ORDER BY id LIMIT 2",
	"DELETE FROM test.items WHERE id = 1000 + %d", "DELETE FROM test.items WHERE n = %d AND s IS NULL LIMIT 1", "SET @x = %d", "SELECT @x + %d", "DO 1 + %d",
	"START TRANSACTION", "UPDATE test.items SET n = %d WHERE id = 2", "ROLLBACK", "BEGIN", "COMMIT", "SET SESSION sort_buffer_size = 262144", "SHOW TABLES FROM test LIKE 'i%%'", "SHOW CREATE TABLE test.items",
	"ANALYZE TABLE test.items", "ALTER TABLE test.items COMMENT 'c %d'", "USE other", "USE test",
	"CREATE TEMPORARY TABLE tmp_%d (a INT)", "DROP TEMPORARY TABLE tmp_%d",
}

const realRounds = 7

// runStatements runs a known set of statements on a new server and returns its slow log.
func runStatements(t *testing.T, kind string, set []string) (path string, began time.Time) {
	t.Helper()
	node := sandboxtest.Up(t, kind, append([]string{"slow_query_log_file=slow.log"}, set...)...)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	db, err := node.DB()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxIdleConns(0) // a new connection for each, that has the global settings
	began = time.Now()
	admin := func(q string) {
		t.Helper()
		if _, err := db.ExecContext(ctx, q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	admin("CREATE DATABASE other")
	admin("CREATE TABLE test.orders (id INT PRIMARY KEY AUTO_INCREMENT, s VARCHAR(50))")
	admin("SET GLOBAL long_query_time = 0")
	admin("SET GLOBAL slow_query_log = ON")
	c, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	exec := func(q string) {
		t.Helper()
		if _, err := c.ExecContext(ctx, q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	exec("SET NAMES latin1")
	exec("USE test")
	for i := range realInserts {
		exec(fmt.Sprintf("INSERT INTO orders (s) VALUES ('row %d'), ('it\\'s; \xe9')", i))
	}
	for i := range realSelects {
		if i == realSelects/2 {
			exec("USE other")
		}
		rows, err := c.QueryContext(ctx, fmt.Sprintf("SELECT id, s FROM test.orders WHERE id <= %d\n# Time: 260101 10:00:00\n# A comment;\nORDER BY s", i))
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		rows.Close()
	}
	if _, err := c.ExecContext(ctx, "SELECT a FROM no_such_table"); err == nil {
		t.Fatal("a table that is not there was read")
	}
	exec("DO SLEEP(0.3)")
	for i := range realRounds {
		for _, q := range realStatements {
			if strings.Contains(q, "%d") {
				q = fmt.Sprintf(q, i)
			}
			if _, err := c.ExecContext(ctx, q); err != nil {
				t.Fatalf("%s: %v", q, err)
			}
		}
	}
	c.Close()
	admin("SET GLOBAL slow_query_log = OFF")
	path = filepath.Join(node.Datadir, "slow.log")
	if text, err := os.ReadFile(path); err == nil {
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("%d bytes; the end of the log:\n%s", len(text), text[max(0, len(text)-1500):])
			}
		})
	}
	return path, began
}

func checkReal(t *testing.T, kind string, p *Profile, began time.Time) {
	t.Helper()
	want := "Version: " + map[string]string{"mariadb": "1", "mysql-9.7": "9.7", "mysql-8.0": "8.0", "mysql-5.7": "5.7"}[kind]
	if !strings.Contains(p.Sources[0].Server, want) {
		t.Errorf("server is %q, want %q in it", p.Sources[0].Server, want)
	}
	if len(p.Skipped) != 0 {
		t.Errorf("skipped %v, want none", p.Skipped)
	}
	if p.From.Before(began.Add(-2*time.Second)) || p.To.After(time.Now().Add(2*time.Second)) {
		t.Errorf("from %s to %s, run from %s to %s", p.From, p.To, began, time.Now())
	}
	sel := classOf(t, p, "select id, s from test.orders where id <= ? order by s")
	ins := classOf(t, p, "insert into orders (s) values(?+)")
	sleep := classOf(t, p, "do sleep(?)")
	classOf(t, p, "use ?")
	if sel.Calls != realSelects || ins.Calls != realInserts || sleep.Calls != 1 {
		t.Errorf("got %d selects, %d inserts, %d sleeps; want sel.Calls %d, ins.Calls %d, sleep.Calls 1",
			sel.Calls, ins.Calls, sleep.Calls, realSelects, realInserts)
	}
	if got := sel.Metric("Rows_sent").Sum; got != realSelects*(realSelects-1)/2 {
		t.Errorf("%g rows were sent, want %d", got, realSelects*(realSelects-1)/2)
	}
	if got := sleep.Metric("Query_time").Max; got < 0.3 || got > 5 {
		t.Errorf("the sleep took %g s, want from 0.3 to 5", got)
	}
	values := func(c *Class, name string) string {
		for _, v := range c.Values {
			if v.Name == name {
				return fmt.Sprint(v.Top)
			}
		}
		return ""
	}
	if got := values(sel, "db"); got != "[{other 20} {test 20}]" {
		t.Errorf("databases of the selects: got %s, want \"[{other 20} {test 20}]\"", got)
	}
	if got := values(ins, "user"); got != fmt.Sprintf("[{root %d}]", realInserts) {
		t.Errorf("users of the inserts: got %s, want %s", got, fmt.Sprintf("[{root %d}]", realInserts))
	}
	switch kind {
	case "mariadb":
		if !strings.Contains(sel.Samples[0].Explain, "select_type") || !strings.Contains(sel.Samples[0].Explain, "orders") {
			t.Errorf("explain is %q; want \"select_type\" in it, \"orders\" in it", sel.Samples[0].Explain)
		}
		if !slices.ContainsFunc(sel.Flags, func(f Flag) bool { return f.Name == "Filesort" && f.Yes+f.No == realSelects }) {
			t.Errorf("flags are %v", sel.Flags)
		}
		if ins.Metric("Rows_affected").Sum != 2*realInserts {
			t.Errorf("rows affected: got %+v, want Sum %v", ins.Metric("Rows_affected"), 2*realInserts)
		}
	case "mysql-9.7", "mysql-8.0":
		if got := sel.Metric("Bytes_sent"); got.Count != realSelects || got.Sum <= 0 {
			t.Errorf("bytes sent: got %+v; want Count %v, Sum more than 0", got, realSelects)
		}
		failed := classOf(t, p, "select a from no_such_table")
		code := "1146"
		if kind == "mysql-8.0" {
			code = "0" // 8.0.15 writes the number before it knows it
		}
		if got := values(failed, "Errno"); got != "[{"+code+" 1}]" {
			t.Errorf("errors: got %s, want %s", got, "[{"+code+" 1}]")
		}
	}
}
