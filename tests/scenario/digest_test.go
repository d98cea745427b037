package scenario_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// digestClass is what scripts read of a class.
type digestClass struct {
	ID, Fingerprint, Verb, Sample string
	Calls                         int64
	Share                         float64
	Total, Min, Max, Avg, P95     *float64
	Median, Stddev                *float64
	Databases                     []string
	Show                          []string
	Explain                       string
	Metrics                       []struct {
		Name string
		Sum  *float64
	}
}

func (c digestClass) sum(name string) float64 {
	for _, m := range c.Metrics {
		if m.Name == name && m.Sum != nil {
			return *m.Sum
		}
	}
	return math.NaN()
}

type digestReport struct {
	Calls   int64
	Skipped map[string]int64
	Notes   []string
	Sources []struct{ Format string }
	Classes []digestClass
}

// class is the class whose fingerprint begins so.
func (r digestReport) class(t *testing.T, begin string) digestClass {
	t.Helper()
	var found []digestClass
	for _, c := range r.Classes {
		if strings.HasPrefix(c.Fingerprint, begin) {
			found = append(found, c)
		}
	}
	if len(found) != 1 {
		t.Fatalf("got %d classes begin with %q, want 1", len(found), begin)
	}
	return found[0]
}

// runRisso runs the program to its end and returns what it wrote and its exit code.
func runRisso(t *testing.T, in []byte, args ...string) (out, said string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = environment(tempDir(t))
	cmd.Stdin = bytes.NewReader(in)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

func digestJSON(t *testing.T, args ...string) (r digestReport) {
	t.Helper()
	out, said, code := runRisso(t, nil, append([]string{"digest", "--output", "json"}, args...)...)
	if code != 0 || said != "" {
		t.Fatalf("exit %d: got %s; want code 0, said \"\"", code, said)
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

const digestSchema = `CREATE DATABASE shop; CREATE DATABASE stock; CREATE TABLE shop.orders (id INT PRIMARY KEY AUTO_INCREMENT, customer INT, note VARCHAR(300));
 CREATE TABLE stock.items (id INT PRIMARY KEY, n INT); INSERT INTO stock.items VALUES (1,5),(2,7),(3,9)`

// digestWork is 7 point selects, 2 updates of 3 rows each, an insert of 5 rows, a delete of 1, and a select that takes
// 0.2 s, each sent by itself.
func digestWork(t *testing.T, n *sandbox.Node) {
	t.Helper()
	config := n.Config()
	config.DBName = "shop"
	connector, err := driver.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	work := []string{"INSERT INTO orders (customer, note) VALUES (1,'a'),(1,'b'),(1,'c'),(2,'d'),(2,'e')"}
	for i := range 7 {
		work = append(work, fmt.Sprintf("SELECT note FROM orders WHERE id = %d", i))
	}
	work = append(work, "UPDATE orders SET note = CONCAT(note, 'x') WHERE customer = 1", "UPDATE orders SET note = CONCAT(note, 'y') WHERE customer = 1", "DELETE FROM stock.items WHERE id = 3", "SELECT SLEEP(0.2)")
	for _, s := range work {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// logsSlow are settings with which everything is in the slow log.
func logsSlow(kind string) []string {
	s := []string{"slow_query_log=1", "long_query_time=0", "slow_query_log_file=slow.log"}
	switch kind {
	case "mariadb", "mariadb-11.8":
		return append(s, "log_slow_verbosity=innodb,query_plan,explain")
	case "mysql-8.0", "mysql-9.7":
		return append(s, "log_slow_extra=1")
	}
	return s
}

func TestDigestSlowLog(t *testing.T) {
	t.Parallel()
	eachKind(t, kinds, func(t *testing.T, kind string) {
		n := single(t, kind, logsSlow(kind)...)
		execSQL(t, n, digestSchema)
		digestWork(t, n)
		log := filepath.Join(n.Datadir, "slow.log")
		r := digestJSON(t, log)
		if len(r.Skipped) > 0 && r.Skipped["events without a statement"] > 0 {
			t.Errorf("left out: %v", r.Skipped)
		}
		if c := r.class(t, "select note from orders"); c.Calls != 7 || len(c.Databases) != 1 || c.Databases[0] != "shop" || c.sum("Rows_sent") != 5 || *c.Min <= 0 || *c.Max < *c.Median {
			t.Errorf("got %+v; want Calls 7, len(Databases) 1, Databases[0] \"shop\", sum(\"Rows_sent\") 5, *c.Min more than 0, *c.Max at least *c.Median", c)
		}
		if c := r.class(t, "update orders"); c.Calls != 2 || c.Verb != "UPDATE" || !strings.Contains(c.Sample, "CONCAT") {
			t.Errorf("got %+v; want Calls 2, Verb \"UPDATE\", \"CONCAT\" in Sample", c)
		}
		if c := r.class(t, "select sleep(?)"); *c.Total < 0.2 || *c.Total > 5 || c.Share < 0.01 {
			t.Errorf("got %+v; want *c.Total from 0.2 to 5, Share at least 0.01", c)
		}
		for i := 1; i < len(r.Classes); i++ {
			if *r.Classes[i].Total > *r.Classes[i-1].Total {
				t.Errorf("class %d is heavier than the one before, want *r.Classes[i].Total at most *r.Classes[i-1].Total", i)
			}
		}
		if r := digestJSON(t, "--filter", `Query_time >= 200ms and verb == "SELECT"`, log); r.Calls != 1 {
			t.Errorf("the filter keeps %d, want 1", r.Calls)
		}
		if r := digestJSON(t, "--until", "2020-01-01", log); r.Calls != 0 {
			t.Errorf("got %d before 2020, want 0", r.Calls)
		}
		if r := digestJSON(t, "--since", "1h", "--group-by", "db", "--filter", `query =~ "orders"`, log); len(r.Classes) == 0 || r.Classes[0].ID == "" {
			t.Errorf("got %+v; want len(Classes) not 0, Classes[0].ID not \"\"", r)
		}
		if r := digestJSON(t, "--redact", log); strings.Contains(r.class(t, "update orders").Sample, "'x'") {
			t.Error("a literal in spite of --redact")
		}
		explained := 0
		for _, c := range r.Classes {
			for _, show := range c.Show {
				if rows := execSQL(t, n, strings.TrimSuffix(show, `\G`))[0].Rows; len(rows) != 1 {
					t.Errorf("%s gives %d rows, want 1", show, len(rows))
				}
			}
			if c.Explain != "" {
				execSQL(t, n, strings.TrimSuffix(c.Explain, `\G`))
				explained++
			}
		}
		if explained < 4 { // two SELECTs, UPDATE, DELETE
			t.Errorf("got %d classes can be explained, want at least 4", explained)
		}
		text, said, code := runRisso(t, nil, "digest", log)
		if code != 0 || said != "" || !strings.Contains(text, "select sleep(?)") || !strings.Contains(text, "RANK") {
			t.Errorf("exit %d %s: got %s; want code 0, said \"\", \"select sleep(?)\" in it, \"RANK\" in it", code, said, text)
		}
		content, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		if piped, _, code := runRisso(t, content, "digest", "-", "--limit", "all", "--output", "csv"); code != 0 || strings.Count(piped, "\n") < len(r.Classes) {
			t.Errorf("exit %d: got %s; want code 0, strings.Count(piped, \"\\n\") at least %v", code, piped, len(r.Classes))
		}
		if strings.HasPrefix(kind, "mariadb") && !strings.Contains(text, "Plan as the server logged it") {
			t.Error("MariaDB's explain lines are lost")
		}
		plan := struct {
			Schemas []struct {
				Name  string
				Calls int64
			}
			Appliers []any
		}{}
		out, _, _ := runRisso(t, nil, "digest", "--plan-parallel", "--output", "json", log)
		if err := json.Unmarshal([]byte(out), &plan); err != nil || len(plan.Schemas) < 2 || len(plan.Appliers) < 2 {
			t.Errorf("%v: got %s; want len(plan.Schemas) at least 2, len(plan.Appliers) at least 2", err, out)
		}
		execSQL(t, n, "SET GLOBAL general_log_file = 'general.log'; SET GLOBAL general_log = 1")
		execSQL(t, n, "SELECT\n'# Time: 2020-01-01\n# User@Host: x[x] @ y []\n# Query_time: 5 Lock_time: 0 Rows_sent: 1 Rows_examined: 1\nselect 5;' AS z")
		if out, said, code := runRisso(t, nil, "digest", log); code != 1 || !strings.Contains(said, "1 event may not be events, but text inside a quote") || !strings.Contains(out, "1 event may not be events") {
			t.Errorf("a log within a literal: exit %d %s; want code 1, \"1 event may not be events, but text inside a quote\" in it, \"1 event may not be events\" in out",
				code, said)
		}
		general := filepath.Join(n.Datadir, "general.log")
		r = digestJSON(t, general)
		for _, c := range r.Classes {
			if c.Total != nil || c.Min != nil || c.Max != nil || c.Median != nil {
				t.Errorf("a general log tells no times: got %+v; want Total nil, Min nil, Max nil, Median nil", c)
			}
		}
		if len(r.Classes) == 0 {
			t.Error("the general log has no statements")
		}
		if text, _, code := runRisso(t, nil, "digest", general); code != 0 || !strings.Contains(text, "A general log has no times") || strings.Contains(strings.ToLower(text), "always 0") {
			t.Errorf("exit %d: got %s; want code 0, \"A general log has no times\" in it, no \"always 0\" in it", code, text)
		}
	})
}

// TestDigestTellsWhatIsLost: a log of which a part cannot be read is reported with what is missing, in every form, and the exit is 1.
func TestDigestTellsWhatIsLost(t *testing.T) {
	t.Parallel()
	event := "# Time: 2026-03-01T10:00:00.000000Z\n# User@Host: a[a] @ h []  Id: 7\n# Query_time: 0.250000  Lock_time: 0.000100 Rows_sent: 1  Rows_examined: 10\nSET timestamp=1772359200;\nSELECT 1;\n"
	var gz bytes.Buffer
	z := gzip.NewWriter(&gz)
	for range 20000 {
		if _, err := z.Write([]byte(event)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ log, says string }{
		"a header without a statement": {event + strings.TrimSuffix(event, "SELECT 1;\n") + event, "1 event is announced by a line"},
		"two headers in one":           {event + strings.Replace(event, "# User", "# Query_time: 3.0\n# User", 1), "1 event is announced by a line"},
		"no times":                     {strings.ReplaceAll(event, "# Query_time: 0.250000  Lock_time: 0.000100 ", "# ") + event, "1 events without Query_time"},
		"a log within a literal":       {strings.Replace(event, "1;", "'\n"+event+"', 'it''s', 1;", 1) + event, "1 event may not be events, but text inside a quote"},
		"a cut file":                   {gz.String()[:gz.Len()*3/4], "ends too early"},
	} {
		for _, form := range []string{"text", "json", "html", "markdown", "csv"} {
			out, said, code := runRisso(t, []byte(c.log), "digest", "--output", form, "-")
			if code != 1 || !strings.Contains(said, c.says) || len(out) == 0 {
				t.Errorf("got %s, %s: exit %d: %s; want code 1, %q in it, len(out) not 0", name, form, code, said, c.says)
			}
			out = strings.Join(strings.Fields(html.UnescapeString(out)), " ")
			if form != "csv" && !strings.Contains(strings.ReplaceAll(out, "\\", ""), c.says) { // csv has no place for it
				t.Errorf("%s, %s: the report does not say %q: %.2000s", name, form, c.says, out)
			}
			oneLine(t, said)
		}
	}
}

// Binary logs as servers write them: rows with and without the statements' text, statements, compressed.
func TestDigestBinlog(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind     string
		settings []string
		texts    bool // statements are logged along with rows
		rows     bool
	}{
		"mariadb rows":         {"mariadb", []string{"binlog_format=ROW"}, true, true},
		"mariadb no text":      {"mariadb", []string{"binlog_format=ROW", "binlog_annotate_row_events=0", "binlog_row_image=MINIMAL"}, false, true},
		"mariadb compressed":   {"mariadb", []string{"binlog_format=ROW", "log_bin_compress=1", "log_bin_compress_min_len=10"}, true, true},
		"mariadb statement":    {"mariadb", []string{"binlog_format=STATEMENT", "log_bin_compress=1", "log_bin_compress_min_len=10"}, true, false},
		"mysql-9.7 rows":       {"mysql-9.7", []string{"binlog_rows_query_log_events=1"}, true, true},
		"mysql-9.7 no text":    {"mysql-9.7", []string{"binlog_row_image=MINIMAL", "binlog_row_value_options=PARTIAL_JSON"}, false, true},
		"mysql-9.7 compressed": {"mysql-9.7", []string{"binlog_transaction_compression=1", "binlog_rows_query_log_events=1", "binlog_checksum=NONE"}, true, true},
		"mysql-9.7 statement":  {"mysql-9.7", []string{"binlog_format=STATEMENT"}, true, false},
		"mysql-8.0 rows":       {"mysql-8.0", []string{"binlog_rows_query_log_events=1"}, true, true},
		"mysql-5.7 no text":    {"mysql-5.7", []string{"binlog_checksum=NONE"}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sandboxtest.Need(t, c.kind)
			n := single(t, c.kind, c.settings...)
			execSQL(t, n, digestSchema)
			digestWork(t, n)
			types := allTypes(t, n, c.kind)
			execSQL(t, n, "FLUSH BINARY LOGS")
			logs, err := filepath.Glob(filepath.Join(n.Datadir, "binlog.[0-9]*[0-9]"))
			if err != nil || len(logs) < 2 {
				t.Fatalf("got %v %v; want at least 2", logs, err)
			}
			r := digestJSON(t, logs...)
			if len(r.Skipped) > 0 {
				t.Errorf("left out: got %v, want none", r.Skipped)
			}
			update, insert, remove := "update orders", "insert into orders", "delete from stock.items"
			updates := 2.0
			if !c.texts {
				update, insert, remove = "update `shop`.`orders`", "insert into `shop`.`orders`", "delete from `stock`.`items`"
			}
			if got := r.class(t, update); float64(got.Calls) != updates || c.rows && got.sum("Rows") != 6 || !c.rows && !math.IsNaN(got.sum("Rows")) || got.sum("Log_bytes") < 100 {
				t.Errorf("%+v", got)
			}
			if got := r.class(t, insert); got.Calls != 1 || c.rows && got.sum("Rows") != 5 || got.Databases[0] != "shop" {
				t.Errorf("%+v", got)
			}
			if got := r.class(t, remove); got.Calls != 1 || c.rows && got.sum("Rows") != 1 {
				t.Errorf("%+v", got)
			}
			if c.rows {
				prefix := map[bool]string{true: "shop.alltypes", false: "`shop`.`alltypes`"}[c.texts]
				if got := r.class(t, "insert into "+prefix); got.sum("Rows") != float64(types) {
					t.Errorf("%v rows of all types, there were %d; want %v", got.sum("Rows"), types, float64(types))
				}
				if got := r.class(t, "update "+prefix); got.sum("Rows") != float64(types) {
					t.Errorf("%v updates of all types, there were %d; want %v", got.sum("Rows"), types, float64(types))
				}
			}
			damaged(t, logs[0])
			likeItsText(t, c.kind, logs[0])
			zipped := filepath.Join(tempDir(t), "binlog.gz")
			var gz bytes.Buffer
			z := gzip.NewWriter(&gz)
			whole, err := os.ReadFile(logs[0])
			if err != nil {
				t.Fatal(err)
			}
			if _, err := z.Write(whole); err != nil {
				t.Fatal(err)
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
			write(t, zipped, gz.String())
			if a, b := digestJSON(t, logs[0]), digestJSON(t, zipped); a.Calls == 0 || a.Calls != b.Calls || len(b.Skipped) > 0 {
				t.Errorf("got %d calls in the log, %d in its gzip; want a.Calls not 0, a.Calls %d, no b.Skipped", a.Calls, b.Calls, b.Calls)
			}
		})
	}
}

// allTypes fills a table that has a column of every type and says how many rows each of its two statements changed.
func allTypes(t *testing.T, n *sandbox.Node, kind string) int {
	t.Helper()
	extra, values := "", ""
	if !strings.HasPrefix(kind, "mariadb") {
		extra, values = ", j JSON", `, JSON_OBJECT('a', 1, 'b', REPEAT('x', 300))`
	}
	execSQL(t, n, `USE shop; CREATE TABLE alltypes (id INT PRIMARY KEY AUTO_INCREMENT, a TINYINT, b SMALLINT UNSIGNED, c MEDIUMINT, d BIGINT, e FLOAT, f DOUBLE, g DECIMAL(20,7), h DECIMAL(5,0), i BIT(1), k BIT(13),
 l DATE, m TIME, n TIME(3), o DATETIME, p DATETIME(6), q TIMESTAMP NULL, r TIMESTAMP(5) NULL, s YEAR, t CHAR(10), u CHAR(255) CHARACTER SET utf8mb4, v VARCHAR(20), w VARCHAR(2000), x BINARY(16), y VARBINARY(300),
 z TINYBLOB, aa BLOB, ab MEDIUMTEXT, ac LONGBLOB, ad ENUM('x','y'), ae SET('a','b','c','d','e','f','g','h','i'), af GEOMETRY, ag POINT`+extra+`)`)
	row := `(-5, 7, 8, 9, 1.5, 2.5, 12345.678, 99, 1, 5, '2026-03-01', '10:00:00', '10:00:00.125', '2026-03-01 10:00:00', '2026-03-01 10:00:00.123456', '2026-03-01 10:00:00', '2026-03-01 10:00:00.12345', 2026, 'char', 'uuu', 'v', REPEAT('w', 1500), 'bin', 'vb',
 'tb', REPEAT('b', 400), REPEAT('t', 70000), 'lb', 'y', 'a,i', ST_GeomFromText('LINESTRING(0 0, 1 1)'), ST_GeomFromText('POINT(1 2)')` + values + `)`
	nulls := "(" + strings.TrimSuffix(strings.Repeat("NULL,", strings.Count(extra, ",")+32), ",") + ")"
	columns := "a,b,c,d,e,f,g,h,i,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,aa,ab,ac,ad,ae,af,ag"
	if extra != "" {
		columns += ",j"
	}
	execSQL(t, n, "INSERT INTO shop.alltypes ("+columns+") VALUES "+strings.Join([]string{row, nulls, row, row}, ","))
	change := "v = 'w', w = REPEAT('z', 10)"
	if extra != "" {
		change += ", j = JSON_SET(j, '$.a', 2)"
	}
	execSQL(t, n, "UPDATE shop.alltypes SET "+change+" WHERE id > 0")
	return 4
}

// damaged reads the log cut in the middle and with bytes changed: no crash, and what is lost is reported.
func damaged(t *testing.T, path string) {
	t.Helper()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"cut": whole[:len(whole)-len(whole)/3-7], "changed": append(append(append([]byte(nil), whole[:len(whole)/2]...), bytes.Repeat([]byte{0xff}, 64)...), whole[len(whole)/2:]...)} {
		out, said, code := runRisso(t, b, "digest", "--output", "json", "-")
		var r digestReport
		if code != 1 || json.Unmarshal([]byte(out), &r) != nil || len(r.Skipped) == 0 || !strings.Contains(said, "not all of the log was read") {
			t.Errorf("%s: exit %d, left out %v: %s; want code 1, json.Unmarshal nil, len(r.Skipped) not 0, \"not all of the log was read\" in it",
				name, code, r.Skipped, said)
		}
	}
}

// likeItsText reads what mysqlbinlog prints of a log: the same calls as the log itself, and with -v the same rows.
func likeItsText(t *testing.T, kind, path string) {
	t.Helper()
	tool := "mariadb-binlog"
	if kind != "mariadb" {
		s, err := sandbox.Find(t.Context(), "mysql-9.7") // it reads those of older servers; where they are from, there is none
		if err != nil {
			t.Fatal(err)
		}
		tool = filepath.Join(s.Basedir, "bin", "mysqlbinlog")
	}
	want := digestJSON(t, path)
	for _, flags := range [][]string{{}, {"-v"}, {"-vv"}, {"--base64-output=DECODE-ROWS", "-vv"}} {
		out, err := exec.CommandContext(t.Context(), tool, append(flags, path)...).Output()
		if err != nil {
			t.Fatalf("%s: %v", tool, err)
		}
		stdout, said, code := runRisso(t, out, "digest", "--output", "json", "-")
		var got digestReport
		if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 0 || said != "" {
			t.Fatalf("got %v, exit %d: %s; want code 0, said \"\"", err, code, said)
		}
		if got.Sources[0].Format != "mysqlbinlog" || got.Calls != want.Calls {
			t.Errorf("%v: %d calls, the log has %d; want got.Sources[0].Format \"mysqlbinlog\", got.Calls %d", flags, got.Calls, want.Calls, want.Calls)
		}
		if len(flags) < 1 || flags[len(flags)-1] != "-vv" { // else the text of a statement is not printed everywhere
			continue
		}
		for _, w := range want.Classes {
			g := got.class(t, w.Fingerprint)
			if a, b := w.sum("Rows"), g.sum("Rows"); g.Calls != w.Calls || a != b && !(math.IsNaN(a) && math.IsNaN(b)) {
				t.Errorf("%v: %.60s: %d calls, %g rows; the log has %d and %g", flags, w.Fingerprint, g.Calls, b, w.Calls, a)
			}
		}
	}
}

func TestDigestLive(t *testing.T) {
	t.Parallel()
	eachKind(t, kinds, func(t *testing.T, kind string) {
		var settings []string
		if strings.HasPrefix(kind, "mariadb") {
			settings = []string{"performance_schema=1"}
		}
		n := single(t, kind, settings...)
		dsn := fmt.Sprintf("root@unix(%s)/", n.Socket)
		if strings.HasPrefix(kind, "mariadb") {
			// Its consumers and instruments are off even when performance_schema is on: the remedies lead to success.
			for i := 0; ; i++ {
				_, said, code := runRisso(t, nil, "digest", "--dsn", dsn, "--for", "0")
				if code == 0 {
					break
				}
				oneLine(t, said)
				open := strings.LastIndex(said, "(UPDATE ")
				if open < 0 || i > 3 {
					t.Fatalf("exit %d without a remedy: got %s; want open at least 0, i at most 3", code, said)
				}
				execSQL(t, n, strings.TrimSuffix(strings.TrimSpace(said[open+1:]), ")"))
			}
		}
		execSQL(t, n, digestSchema)
		digestWork(t, n)
		r := digestJSON(t, "--dsn", dsn, "--for", "0")
		if c := r.class(t, "select note from orders"); c.Calls != 7 || c.Databases[0] != "shop" || c.sum("Rows_sent") != 5 || *c.Total <= 0 {
			t.Errorf("got %+v; want Calls 7, Databases[0] \"shop\", sum(\"Rows_sent\") 5, *c.Total more than 0", c)
		}
		for _, c := range r.Classes {
			if strings.Contains(c.Fingerprint, "setup_consumers") || strings.Contains(c.Fingerprint, "events_statements") || strings.Contains(c.Fingerprint, "show global") {
				t.Errorf("Risso's own statement is in the report: %s; want no \"setup_consumers\" in it, no \"events_statements\" in it, no \"show global\" in it",
					c.Fingerprint)
			}
		}
		done := make(chan digestReport, 1)
		go func() { done <- digestJSON(t, "--dsn", dsn, "--for", "4s") }()
		time.Sleep(2 * time.Second)
		digestWork(t, n)
		r = <-done
		if c := r.class(t, "update orders"); c.Calls != 2 || (c.P95 != nil) != (kind == "mysql-8.0" || kind == "mysql-9.7") || c.sum("Rows_affected") != 12 {
			t.Errorf("%+v", c)
		}
		if c := r.class(t, "select sleep(?)"); c.Calls != 1 || *c.Total < 0.2 {
			t.Errorf("got %+v; want Calls 1, *c.Total at least 0.2", c)
		}
	})
	t.Run("off", func(t *testing.T) {
		t.Parallel()
		sandboxtest.Need(t, "mariadb")
		n := single(t, "mariadb", "performance_schema=0")
		_, said, code := runRisso(t, nil, "digest", "--dsn", fmt.Sprintf("root@unix(%s)/", n.Socket))
		oneLine(t, said)
		if code != 1 || !strings.Contains(said, "performance_schema=ON") {
			t.Errorf("exit %d: got %s; want code 1, \"performance_schema=ON\" in it", code, said)
		}
	})
}

func TestDigestFollow(t *testing.T) {
	t.Parallel()
	log := filepath.Join(tempDir(t), "slow.log")
	event := func(s string) string {
		return "# Time: 2026-03-01T10:00:00.000000Z\n# User@Host: a[a] @ h []  Id: 1\n# Query_time: 0.5  Lock_time: 0 Rows_sent: 1  Rows_examined: 1\nSET timestamp=1772359200;\n" + s + ";\n"
	}
	write(t, log, event("SELECT 1 FROM before"))
	r := launch(t, environment(tempDir(t)), "digest", "--follow", "--interval", "1s", "--output", "json", log)
	await(t, "the first report", func() bool { return strings.Contains(r.out.String(), "from before") })
	f, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fmt.Fprint(f, event("SELECT 1 FROM after"))
	await(t, "what was added", func() bool { return strings.Contains(r.out.String(), "from after") })
	r.stop(t, syscall.SIGINT)
}

func TestDigestWrongUse(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	none, empty, junk := filepath.Join(dir, "none.log"), filepath.Join(dir, "empty.log"), filepath.Join(dir, "junk")
	write(t, empty, "")
	write(t, junk, strings.Repeat("this is no log\n", 100))
	banner, dump, zip := filepath.Join(dir, "banner.log"), filepath.Join(dir, "dump.sql"), filepath.Join(dir, "slow.zip")
	write(t, banner, "/usr/sbin/mysqld, Version: 9.7.0 (MySQL). started with:\nTcp port: 0  Unix socket: /tmp/x\nTime                 Id Command    Argument\n"+strings.Repeat("8 Query SELECT 1\n", 9))
	write(t, dump, "-- MySQL dump 10.13  Distrib 8.4.3\n--\nCREATE TABLE t (a INT);\n")
	write(t, zip, "PK\x03\x04"+strings.Repeat("\x00", 500))
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{none}, 1, "no such file"},
		{[]string{dir}, 1, "is a directory"},
		{[]string{junk}, 1, "no statement of a log"},
		{[]string{banner}, 1, "no statement of a log"},
		{[]string{dump}, 1, "it looks like a dump"},
		{[]string{zip}, 1, "a zip archive: this is not read; unzip -p"},
		{[]string{"--format", "binlog", junk}, 1, "not a binary log"},
		{[]string{}, 2, "no log to read"},
		{[]string{"--filter", "Query_tme > 1", empty}, 2, "column 1"},
		{[]string{"--order-by", "x:y", empty}, 2, "cannot order by"},
		{[]string{"--limit", "0%", empty}, 2, "--limit"},
		{[]string{"--since", "tomorrow-ish", empty}, 2, "--since"},
		{[]string{"--output", "pdf", empty}, 2, "--output"},
		{[]string{"--timezone", "Mars/Base", empty}, 2, "--timezone"},
		{[]string{"--dsn", "root@tcp(127.0.0.1:1)/", empty}, 2, "takes no files"},
		{[]string{"--dsn", "root@tcp(127.0.0.1:1)/"}, 1, "refuses connections"},
		{[]string{"--follow", "--output", "html", empty}, 2, "--follow"},
		{[]string{"-", empty}, 2, "must be alone"},
		{[]string{"--bogus"}, 2, "unknown flag"},
	} {
		out, said, code := runRisso(t, nil, append([]string{"digest"}, c.args...)...)
		if code != c.code || out != "" || !strings.Contains(said, c.says) {
			t.Errorf("%v: exit %d: %q %q; want code %d, out \"\", %q in it", c.args, code, said, out, c.code, c.says)
		}
		oneLine(t, said)
	}
	if out, said, code := runRisso(t, nil, "digest", empty); code != 0 || said != "" || !strings.Contains(out, "0 calls") {
		t.Errorf("an empty log: exit %d: got %s %s; want code 0, said \"\", \"0 calls\" in it", code, said, out)
	}
}
