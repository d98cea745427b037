package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/compare"
	"github.com/rissodb/risso/internal/measure/compare/matrix"
	"github.com/rissodb/risso/internal/measure/environ"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/postgres"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// must runs one `risso bench` command that has to succeed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := benchmark(t, args...)
	if code != fault.OK {
		t.Fatalf("%v: code %d, %s; want fault.OK", args, code, errs)
	}
	return out
}

func query(t *testing.T, n *sandbox.Node, sql string) [][]*string {
	t.Helper()
	r, err := n.Query(t.Context(), sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return r[len(r)-1].Rows
}

func one(t *testing.T, n *sandbox.Node, sql string) string {
	t.Helper()
	if rows := query(t, n, sql); len(rows) > 0 && rows[0][0] != nil {
		return *rows[0][0]
	}
	return ""
}

// TestCompareServers compares two servers of each kind, and one of each with the other.
func TestCompareServers(t *testing.T) {
	maria := sandboxtest.Up(t, "mariadb")
	query(t, maria, "CREATE DATABASE a; CREATE DATABASE b")
	pa, pb := sandboxtest.Postgres(t), sandboxtest.Postgres(t, "work_mem=7MB")
	at := map[string]string{"maria a": maria.DSN + "a", "maria b": maria.DSN + "b", "postgres a": pa.URL(""), "postgres b": pb.URL("")}
	for _, dsn := range at {
		must(t, "prepare", "update_index", "--dsn", dsn, "--table-size", "500")
	}
	for _, c := range []struct{ a, b, differs string }{{"postgres a", "postgres b", "work_mem"}, {"maria a", "maria b", ""}, {"maria a", "postgres b", "server"}, {"postgres a", "maria b", "server"}} {
		out := must(t, "compare", "update_index", "--dsn-a", at[c.a], "--dsn-b", at[c.b], "--table-size", "500", "--runs", "4", "--time", "150ms", "--warmup", "50ms", "--output", "json")
		var r compare.Report
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		if len(r.A.Runs) != 4 || len(r.B.Runs) != 4 || strings.Count(r.Order, "A") != 4 || strings.Count(r.Order, "B") != 4 || len(r.Verdicts) != 3 || r.Verdicts[0].Words == "" {
			t.Errorf("got %s, %s: %+v; want len(A.Runs) 4, len(B.Runs) 4, strings.Count(r.Order, \"A\") 4, strings.Count(r.Order, \"B\") 4, len(Verdicts) 3, Verdicts[0].Words not \"\"",
				c.a, c.b, r)
		}
		for i, side := range []compare.Side{r.A, r.B} {
			isPg := strings.HasPrefix([]string{c.a, c.b}[i], "postgres")
			for _, x := range side.Runs {
				if x.Transactions == 0 || len(x.Errors) > 0 || strings.HasPrefix(x.ServerVersion, "PostgreSQL") != isPg || x.Environment == nil {
					t.Errorf("got %s, %s: %+v; want Transactions not 0, no x.Errors, strings.HasPrefix(x.ServerVersion, \"PostgreSQL\") %v, Environment not nil",
						c.a, c.b, x, isPg)
				}
			}
		}
		var differs []string
		for _, d := range r.Differences {
			if d.What != "load average before the run" && d.What != "seconds measured" { // these are the machine's, if it is busy
				differs = append(differs, d.What)
			}
		}
		if c.differs != "" && !slices.Contains(differs, c.differs) || c.differs == "" && len(differs) > 0 || c.differs == "server" && slices.Contains(differs, "work_mem") {
			t.Errorf("%s, %s: they differ in %s, told is %q", c.a, c.b, c.differs, differs)
		}
	}
	if out := must(t, "compare", "update_index", "--dsn", at["maria a"], "--set-b", "sync_binlog=0", "--table-size", "500", "--runs", "1", "--time", "100ms", "--warmup", "0s", "--state", t.TempDir()); !strings.Contains(out, "as it was: sync_binlog=1") {
		t.Errorf("one side as it was: %s, want \"as it was: sync_binlog=1\" in it", out)
	}
	plan := must(t, "compare", "update_index", "--dsn-a", at["maria a"], "--dsn-b", at["postgres b"], "--table-size", "500", "--dry-run")
	if !regexp.MustCompile(`\b([AB][AB]){10}\b`).MatchString(plan) || !strings.Contains(plan, "MariaDB") || !strings.Contains(plan, "PostgreSQL 15") && !strings.Contains(plan, "@"+pb.Dir) {
		t.Errorf("plan: %s", plan)
	}
	for _, c := range []struct {
		a, b, says string
		code       int
	}{
		{at["maria a"], "root@tcp(127.0.0.1:1)/x", "127.0.0.1:1", fault.Failed},
		{"postgres:///x?host=/nowhere", at["maria a"], "/nowhere", fault.Failed},
		{at["maria a"], "postgres://u:hush@h:port/x", "PostgreSQL", fault.Usage},
		{at["maria a"], maria.DSN + "nowhere", "create the database", fault.Failed},
		{at["maria a"], pa.URL("nowhere"), "create the database", fault.Failed},
		{at["maria a"], maria.DSN + "test", "risso bench prepare", fault.Failed},
	} {
		code, out, errs := benchmark(t, "compare", "update_index", "--dsn-a", c.a, "--dsn-b", c.b, "--table-size", "500", "--runs", "1", "--time", "100ms", "--warmup", "0s", "--yes")
		if code != c.code || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, c.says) || strings.Contains(errs, "hush") {
			t.Errorf("got %s, %s: code %d, %q, %s; want code %d, out \"\", strings.Count(errs, \"\\n\") 1, %q in it, no \"hush\" in it",
				c.a, c.b, code, out, errs, c.code, c.says)
		}
	}
}

// TestBulkInsertIsWhole: what a run counts is in the tables, also what did not fill a statement.
func TestBulkInsertIsWhole(t *testing.T) {
	n := sandboxtest.Up(t, "mariadb", "sync_binlog=0", "innodb_flush_log_at_trx_commit=0")
	query(t, n, "CREATE DATABASE sbtest")
	dsn := n.DSN + "sbtest"
	must(t, "prepare", "bulk_insert", "--dsn", dsn, "--threads", "2")
	for _, flags := range [][]string{{"--time", "1s"}, {"--time", "1s", "--rate", "300"}} {
		before := one(t, n, "SELECT (SELECT COUNT(*) FROM sbtest.sbtest1) + (SELECT COUNT(*) FROM sbtest.sbtest2)")
		var r bench.Result
		if err := json.Unmarshal([]byte(must(t, append([]string{"run", "bulk_insert", "--dsn", dsn, "--threads", "2", "--output", "json"}, flags...)...)), &r); err != nil {
			t.Fatal(err)
		}
		got := one(t, n, "SELECT (SELECT COUNT(*) FROM sbtest.sbtest1) + (SELECT COUNT(*) FROM sbtest.sbtest2) - "+before)
		if got != fmt.Sprint(r.Transactions) || r.Transactions < 100 || r.Writes == 0 || len(r.Errors) > 0 {
			t.Errorf("%v: %d rows were counted, %s are there; %d statements, %+v", flags, r.Transactions, got, r.Writes, r.Errors)
		}
	}
}

// TestSchemasTellOpenedTables compares what a run tells with the server's own counters.
func TestSchemasTellOpenedTables(t *testing.T) {
	for _, kind := range []string{"mariadb", "mysql-9.7"} {
		t.Run(kind, func(t *testing.T) {
			n := sandboxtest.Up(t, kind, "sync_binlog=0", "table_open_cache=50", "table_open_cache_instances=1")
			size := []string{"--dsn", n.DSN, "--schemas", "6", "--schema-tables", "30", "--schema-rows", "2"}
			must(t, append([]string{"prepare", "schemas"}, size...)...)
			opened := func() (v int64) {
				fmt.Sscan(one(t, n, "SELECT VARIABLE_VALUE FROM "+map[bool]string{true: "information_schema", false: "performance_schema"}[kind == "mariadb"]+".global_status WHERE VARIABLE_NAME = 'Opened_tables'"), &v)
				return v
			}
			before := opened()
			out := must(t, append([]string{"run", "schemas", "--threads", "2", "--time", "1s", "--output", "json"}, size...)...)
			var r bench.Result
			if err := json.Unmarshal([]byte(out), &r); err != nil {
				t.Fatal(err)
			}
			most := opened() - before
			c := r.ServerCounters
			if got := c["Opened_tables"]; got < 130 || got > most || most-got > 60 {
				t.Errorf("told are %d opened tables, the server opened %d at most: %v", got, most, c)
			}
			const threads = 2 // what each opened last may be counted after the reading
			if c["Table_open_cache_hits"]+c["Table_open_cache_misses"] < r.Transactions-threads || c["Table_open_cache_overflows"] == 0 || r.Queries != r.Transactions {
				t.Errorf("got %d transactions, %d queries, %v; want c[\"Table_open_cache_hits\"] + c[\"Table_open_cache_misses\"] at least %v, c[\"Table_open_cache_overflows\"] not 0, r.Queries %d",
					r.Transactions, r.Queries, c, r.Transactions-threads, r.Transactions)
			}
			if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "opened "+digits.Counted(c["Opened_tables"], "table")) || !strings.Contains(r.Notes[0], "table_open_cache is 50") {
				t.Errorf("notes %q; want len(r.Notes) 1, \"opened \" + digits.Counted(c[\"Opened_tables\"], \"table\") in r.Notes[0], \"table_open_cache is 50\" in r.Notes[0]",
					r.Notes)
			}
			if text := must(t, append([]string{"run", "schemas", "--time", "200ms"}, size...)...); !strings.Contains(text, "Opened_tables") {
				t.Errorf("the text does not tell it: want \"Opened_tables\" in it:\n%s", text)
			}
			must(t, append([]string{"cleanup", "schemas"}, size...)...)
		})
	}
}

// TestScriptTouchesOnlyItsOwn: cleanup drops what prepare made, and nothing of the same name that was there before.
func TestScriptTouchesOnlyItsOwn(t *testing.T) {
	n := sandboxtest.Up(t, "mariadb")
	pg := sandboxtest.Postgres(t)
	query(t, n, "CREATE DATABASE shop")
	for _, dsn := range []string{n.DSN + "shop", pg.URL("")} {
		path := filepath.Join(t.TempDir(), "shop.yaml")
		file := func(setup, teardown string) {
			t.Helper()
			if err := os.WriteFile(path, []byte("setup:\n"+setup+"teardown:\n"+teardown+"transactions: [{statements: [SELECT 1]}]\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		do := func(command string, code int, says string) {
			t.Helper()
			got, out, errs := benchmark(t, command, "script", "--file", path, "--dsn", dsn, "--yes")
			if got != code || !strings.Contains(out+errs, says) || strings.Count(errs, "\n") > 1 {
				t.Errorf("%s: code %d, %q, %s", command, got, out, errs)
			}
		}
		create, drop := "  - CREATE TABLE IF NOT EXISTS Account (id INT PRIMARY KEY)\n", "  - DROP TABLE IF EXISTS Account\n"
		// The table is the user's.
		file("  - CREATE TABLE account (id INT PRIMARY KEY)\n", drop)
		do("prepare", fault.OK, "")
		unmark := filepath.Join(t.TempDir(), "unmark.yaml")
		sql := "ALTER TABLE account COMMENT = 'the user''s'"
		if dsn == pg.URL("") {
			sql = "COMMENT ON TABLE account IS 'the user''s'"
		}
		if err := os.WriteFile(unmark, []byte("prepared: false\ntransactions: [{statements: [\""+sql+"\"]}]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		must(t, "run", "script", "--file", unmark, "--dsn", dsn, "--yes", "--time", "100ms", "--unprepared")
		if dsn != pg.URL("") { // there names differ by case
			create, drop = strings.ToLower(create[:4])+strings.ReplaceAll(create[4:], "Account", "account"), strings.ReplaceAll(drop, "Account", "account")
		}
		for _, teardown := range []string{drop, "  - DELETE FROM account\n", "  - TRUNCATE TABLE account\n", "  - SELECT 1\n  - ALTER TABLE account ADD x INT\n"} {
			file(create, teardown)
			do("cleanup", fault.Usage, "prepare did not make")
		}
		file(create+"  - CREATE TABLE second (id INT PRIMARY KEY)\n", drop)
		do("prepare", fault.OK, "2 statements run in ") // IF NOT EXISTS: it is still the user's
		do("cleanup", fault.Usage, "prepare did not make")
		file(create+"  - CREATE TABLE third (id INT PRIMARY KEY)\n  - {sql: INSERT INTO third VALUES (1), repeat: 3}\n", drop)
		do("prepare", fault.Failed, "have been removed")
		file(create, "  - DELETE FROM second\n")
		do("cleanup", fault.OK, "1 statement run in ")
		file(create, "  - DROP TABLE second\n")
		do("cleanup", fault.OK, "")
		file(create, "  - DROP TABLE third\n")
		do("cleanup", fault.Failed, "third") // it is not there
		// Without teardown.
		if err := os.WriteFile(path, []byte("setup:\n"+create+"  - CREATE TABLE fourth (id INT PRIMARY KEY)\n  - CREATE TABLE fifth (id INT REFERENCES fourth (id))\ntransactions: [{statements: [SELECT 1]}]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		do("prepare", fault.OK, "")
		do("cleanup", fault.Failed, "was not created by prepare, and is kept")
		do("prepare", fault.OK, "") // the others were dropped
		do("cleanup", fault.Failed, "was not created by prepare, and is kept")
		file("  - DROP TABLE account\n", drop)
		do("prepare", fault.Usage, "prepare did not make")
		if dsn != pg.URL("") {
			file(create, "  - DROP DATABASE IF EXISTS shop\n")
			do("cleanup", fault.Usage, "1 table that prepare did not create")
			if got := one(t, n, "SELECT GROUP_CONCAT(table_name) FROM information_schema.tables WHERE table_schema = 'shop'"); got != "account" {
				t.Errorf("there are %s, want \"account\"", got)
			}
			query(t, n, "DROP TABLE shop.account")
		} else {
			file(create, "  - DROP SCHEMA IF EXISTS public CASCADE\n")
			do("cleanup", fault.Usage, "1 table that prepare did not create")
		}
	}
}

// TestBeginsOnTheServerThatAnswers: the first one is down.
func TestBeginsOnTheServerThatAnswers(t *testing.T) {
	n := sandboxtest.Up(t, "mariadb")
	query(t, n, "CREATE DATABASE sbtest")
	must(t, "prepare", "point_select", "--dsn", n.DSN+"sbtest", "--table-size", "100")
	for _, flags := range [][]string{nil, {"--yes", "--ledger"}} {
		code, out, errs := benchmark(t, append([]string{"run", "point_select", "--dsn", "root@unix(/nowhere/a.sock)/sbtest", "--failover", "root@unix(/nowhere/b.sock)/sbtest", "--failover", n.DSN + "sbtest",
			"--table-size", "100", "--threads", "2", "--time", "500ms", "--output", "json"}, flags...)...)
		var r bench.Result
		if err := json.Unmarshal([]byte(out), &r); code != fault.OK || err != nil {
			t.Fatalf("%v: code %d, %v, %s; want fault.OK", flags, code, err, errs)
		}
		if r.Transactions == 0 || r.Reconnects > 0 || len(r.Errors) > 0 || !strings.Contains(r.Server, n.Socket) || r.Environment == nil || r.Environment.Server.Port != n.Port || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "begins on") {
			t.Errorf("%v: %+v, said %s; want Transactions not 0, Reconnects at most 0, no r.Errors, %q in Server, Environment not nil, Environment.Server.Port %v, strings.Count(errs, \"\\n\") 1, \"begins on\" in it",
				flags, r, errs, n.Socket, n.Port)
		}
	}
	code, out, errs := benchmark(t, "run", "point_select", "--dsn", "root@unix(/nowhere/a.sock)/sbtest", "--failover", "root@unix(/nowhere/b.sock)/sbtest")
	if code != fault.Failed || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "no server answers") || !strings.Contains(errs, "a.sock") || !strings.Contains(errs, "b.sock") {
		t.Errorf("none: code %d, %q, %s; want code fault.Failed, out \"\", strings.Count(errs, \"\\n\") 1, \"no server answers\" in it, \"a.sock\" in it, \"b.sock\" in it",
			code, out, errs)
	}
}

// TestCheckOntime finds a row that was changed.
func TestCheckOntime(t *testing.T) {
	n := sandboxtest.Up(t, "mariadb", "sync_binlog=0")
	query(t, n, "CREATE DATABASE flights")
	size := []string{"ontime", "--dsn", n.DSN + "flights", "--scale", "0.005"}
	must(t, append([]string{"prepare"}, size...)...)
	if code, out, errs := benchmark(t, append([]string{"check"}, size...)...); code != fault.OK || strings.Count(out, "ok ") != 2 {
		t.Errorf("code %d, %s%s; want code fault.OK, strings.Count(out, \"ok \") 2", code, out, errs)
	}
	query(t, n, "DELETE FROM flights.ontime LIMIT 1")
	code, out, errs := benchmark(t, append([]string{"check"}, size...)...)
	if code != fault.Failed || !strings.Contains(out, "BROKEN  flights per year") || strings.Count(errs, "\n") != 1 {
		t.Errorf("code %d, %s%s; want code fault.Failed, \"BROKEN  flights per year\" in it, strings.Count(errs, \"\\n\") 1", code, out, errs)
	}
	if code, _, errs := benchmark(t, "check", "ontime", "--dsn", n.DSN+"test"); code != fault.Failed || !strings.Contains(errs, "risso bench prepare ontime") {
		t.Errorf("code %d, %s; want code fault.Failed, \"risso bench prepare ontime\" in it", code, errs)
	}
	if code, _, errs := benchmark(t, "check", "point_select", "--dsn", n.DSN+"flights"); code != fault.Usage || !strings.Contains(errs, "tpcc and ontime have") {
		t.Errorf("code %d, %s; want code fault.Usage, \"tpcc and ontime have\" in it", code, errs)
	}
}

// TestReplayPart runs a part of a log.
func TestReplayPart(t *testing.T) {
	n := sandboxtest.Up(t, "mariadb")
	var log strings.Builder
	for i, sql := range []string{"SELECT 1", "SELECT 'a'", "SELECT 1 + 1", "SELECT 2 + 3 + 4"} {
		fmt.Fprintf(&log, "# Time: 2026-03-01T10:0%d:00.000000Z\n# User@Host: u%d[u%d] @ b []  Id: 5\n# Query_time: 0.%d  Lock_time: 0.0 Rows_sent: 1  Rows_examined: 1\nSET timestamp=%d;\n%s;\n", i, i, i, i+1, 1772359200+60*i, sql)
	}
	path := filepath.Join(t.TempDir(), "slow.log")
	if err := os.WriteFile(path, []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flags []string
		kinds []string
	}{
		{nil, []string{"select ?", "select ? + ?", "select ? + ? + ?"}},
		{[]string{"--since", "2026-03-01 10:02"}, []string{"select ? + ?", "select ? + ? + ?"}},
		{[]string{"--until", "2026-03-01 10:02:30", "--since", "2026-03-01 10:01:30"}, []string{"select ? + ?"}},
		{[]string{"--filter", "Query_time > 0.35"}, []string{"select ? + ? + ?"}},
		{[]string{"--filter", `user == "u1"`, "--mode", "timeline"}, []string{"select ?"}},
	} {
		var r bench.Result
		out := must(t, append([]string{"run", "replay", "--file", path, "--dsn", n.DSN, "--time", "200ms", "--output", "json"}, c.flags...)...)
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, k := range r.Kinds {
			kinds = append(kinds, k.Recorded.Fingerprint)
		}
		slices.Sort(kinds)
		if slices.Sort(c.kinds); !slices.Equal(kinds, c.kinds) || len(r.Errors) > 0 {
			t.Errorf("%v: got %q, %+v; want kinds %q, no r.Errors", c.flags, kinds, r.Errors, c.kinds)
		}
	}
	digest := filepath.Join(t.TempDir(), "d.json")
	_, text, _ := call(t, "digest", path, "--output", "json")
	if err := os.WriteFile(digest, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ says, flags string }{
		{"--since", "--file LOG --since soon"}, {"--until", "--file LOG --until soon"}, {"not after", "--file LOG --since 2026-03-02 --until 2026-03-01"},
		{"--filter", "--file LOG --filter Query_time>>"}, {"no event is left", "--file LOG --since 2026-03-02"}, {"need a log", "--file DIGEST --since 2026-03-01"},
	} {
		flags := strings.Fields(strings.NewReplacer("LOG", path, "DIGEST", digest).Replace(c.flags))
		code, out, errs := benchmark(t, append([]string{"run", "replay", "--dsn", n.DSN}, flags...)...)
		if code != fault.Usage || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, c.says) {
			t.Errorf("%s: code %d, %q, %s; want code fault.Usage, out \"\", strings.Count(errs, \"\\n\") 1, %q in it", c.flags, code, out, errs, c.says)
		}
	}
	if code, _, errs := benchmark(t, "run", "point_select", "--dsn", n.DSN, "--since", "2h"); code != fault.Usage || !strings.Contains(errs, "are for replay") {
		t.Errorf("another workload: code %d, %s; want code fault.Usage, \"are for replay\" in it", code, errs)
	}
}

// TestMatrixOfTwoKinds runs a file on MariaDB and PostgreSQL from the command line: with tables that are loaded by each server's
// client, and with a log that is run again.
func TestMatrixOfTwoKinds(t *testing.T) {
	sandboxtest.Need(t, "mariadb")
	if _, err := postgres.Find(""); errors.Is(err, sandbox.ErrNoServer) {
		lack.Of(t, "PostgreSQL is not installed: run script/setup")
	}
	dir := t.TempDir()
	t.Setenv("RISSO_SANDBOX_DIR", filepath.Join(dir, "sandboxes"))
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("data.sql", "CREATE SCHEMA shop;\nCREATE TABLE shop.item (id INT PRIMARY KEY);\nINSERT INTO shop.item VALUES (1), (2);\n")
	write("read.yaml", "transactions: [{statements: [SELECT id FROM shop.item WHERE id = 1]}]\n")
	write("slow.log", "# Time: 2026-03-01T10:00:00.000000Z\n# User@Host: a[a] @ b []  Id: 5\n# Query_time: 0.1  Lock_time: 0.0 Rows_sent: 1  Rows_examined: 1\nuse shop;\nSELECT id FROM item;\n")
	rest := "load: data.sql\ntable_size: 200\nthreads: 2\ntime: 200ms\nwarmup: 0s\nsettle: 0s\nruns: 1\n"
	file := write("two.yaml", "servers: [mariadb, postgres]\noptions:\n  small: [sort_buffer_size=1M, postgres.work_mem=1MB]\nworkloads: [point_select, 'script:read.yaml']\n"+rest)
	var r matrix.Report
	if err := json.Unmarshal([]byte(must(t, "matrix", file, "--output", "json")), &r); err != nil {
		t.Fatal(err)
	}
	if r.Missing != 0 || len(r.Cells) != 4 || len(r.Versions) != 2 || len(r.Questions) != 2 {
		t.Errorf("got %+v; want Missing 0, len(Cells) 4, len(Versions) 2, len(Questions) 2", r)
	}
	runs, err := filepath.Glob(filepath.Join(dir, "two-results", "*", "run-01.json"))
	if err != nil || len(runs) != 4 {
		t.Fatalf("got %q, %v; want length 4", runs, err)
	}
	for _, path := range runs {
		var x bench.Result
		b, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(b, &x)
		}
		if err != nil || x.Transactions == 0 || len(x.Errors) > 0 || x.Environment == nil {
			t.Fatalf("%s: got %v, %+v; want Transactions not 0, no x.Errors, Environment not nil", path, err, x)
		}
		if want := map[bool]string{true: "work_mem", false: "sort_buffer_size"}[x.Environment.Server.Flavour == "PostgreSQL"]; !slices.ContainsFunc(x.Environment.Server.Changed, func(v environ.Variable) bool { return v.Name == want }) {
			t.Errorf("%s: %s is not set: %+v", path, want, x.Environment.Server.Changed)
		}
	}
	page := must(t, "matrix", file, "--report", "--output", "html")
	if n := strings.Count(page, "<svg"); n != 2 {
		t.Errorf("got %d charts for 2 questions, want 2", n)
	}
	must(t, "matrix", write("log.yaml", "workloads: ['replay:slow.log']\n"+rest))
	for _, c := range []struct{ says, text string }{
		{"PostgreSQL does not understand", "servers: postgres\nworkloads: ['replay:slow.log']\n" + rest},
		{"no statement of a log", "workloads: ['replay:read.yaml']\n"},
		{"no such server", "servers: postgres-9\nworkloads: point_select\n"},
		{"name=value", "servers: postgres\ncommon: [postgres.X]\nworkloads: point_select\n"},
	} {
		code, out, errs := benchmark(t, "matrix", write("bad.yaml", c.text))
		if code != fault.Usage || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, c.says) {
			t.Errorf("%q: code %d, %q, %s; want code fault.Usage, out \"\", strings.Count(errs, \"\\n\") 1, %q in it", c.text, code, out, errs, c.says)
		}
	}
	code, _, errs := benchmark(t, "matrix", write("load.yaml", "servers: [postgres]\nworkloads: point_select\nload: read.yaml\n"))
	if code != fault.Failed || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "load ") || !strings.Contains(errs, "syntax error") {
		t.Errorf("a file that is no SQL: code %d, %s; want code fault.Failed, strings.Count(errs, \"\\n\") 1, \"load \" in it, \"syntax error\" in it",
			code, errs)
	}
	if left, err := sandbox.List(""); err != nil || len(left) > 0 {
		t.Errorf("left: got %v, %v; want none", left, err)
	}
}
