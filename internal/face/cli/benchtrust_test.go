package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/compare"
	"github.com/rissodb/risso/internal/measure/environ"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestTableSize: missing ids are reported before the run, or at least counted in it.
func TestTableSize(t *testing.T) {
	n := sandboxtest.Up(t, "mariadb", "sync_binlog=0")
	pg := sandboxtest.Postgres(t)
	query(t, n, "CREATE DATABASE sbtest")
	for _, dsn := range []string{n.DSN + "sbtest", pg.URL("")} {
		must(t, "prepare", "point_select", "--dsn", dsn, "--table-size", "1000", "--tables", "2")
		at := []string{"point_select", "--dsn", dsn, "--tables", "2", "--time", "300ms"}
		code, out, errs := benchmark(t, append([]string{"run", "--table-size", "100000"}, at...)...)
		if code != fault.Usage || out != "" || !strings.Contains(errs, "sbtest1 has ids up to 1,000, but --table-size says 100,000") {
			t.Errorf("too large: code %d, %s%s; want code fault.Usage, out \"\", \"sbtest1 has ids up to 1,000, but --table-size says 100,000\" in it",
				code, out, errs)
		}
		for _, size := range []string{"1000", "1050"} { // the larger one is within what deletes may have taken
			var r bench.Result
			if err := json.Unmarshal([]byte(must(t, append([]string{"run", "--table-size", size, "--distribution", "uniform", "-o", "json"}, at...)...)), &r); err != nil {
				t.Fatal(err)
			}
			if notes := strings.Join(r.Notes, " "); strings.Contains(notes, "found no row") != (size == "1050") || r.Transactions == 0 {
				t.Errorf("--table-size %s: got %d transactions, %q; want strings.Contains(notes, \"found no row\") %v, r.Transactions not 0",
					size, r.Transactions, r.Notes, size == "1050")
			}
		}
		if out := must(t, append([]string{"run", "--table-size", "100", "--unprepared"}, at...)...); !strings.Contains(out, "only those up to --table-size 100 were used") || strings.Contains(out, "found no row") {
			t.Errorf("a part of the rows: want \"only those up to --table-size 100 were used\" in it, no \"found no row\" in it:\n%s", out)
		}
		must(t, "cleanup", "point_select", "--dsn", dsn, "--tables", "2")
	}
	// Ids with gaps, as a Galera node generates them.
	query(t, n, "CREATE TABLE sbtest.sbtest1 (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL); INSERT INTO sbtest.sbtest1 SELECT 3 * seq, 1, '', '' FROM sbtest.seq_1_to_1000")
	if out := must(t, "run", "point_select", "--dsn", n.DSN+"sbtest", "--table-size", "3000", "--distribution", "uniform", "--time", "300ms"); !strings.Contains(out, "statements by id found no row (6") && !strings.Contains(out, "statements by id found no row (7") {
		t.Errorf("gaps are not told:\n%s", out)
	}
}

// TestLedgerEndsBadly: lost writes, and a ledger that cannot be read, are no success.
func TestLedgerEndsBadly(t *testing.T) {
	n := sandboxtest.Up(t, "mariadb", "sync_binlog=0", "innodb_flush_log_at_trx_commit=0")
	query(t, n, "CREATE DATABASE sbtest")
	must(t, "prepare", "point_select", "--dsn", n.DSN+"sbtest", "--table-size", "100")
	at := []string{"run", "point_select", "--table-size", "100", "--ledger", "--yes", "--time", "1s"}
	if code, out, errs := benchmark(t, append(at, "--dsn", n.DSN+"sbtest")...); code != fault.OK || !strings.Contains(out, "acknowledged writes found") {
		t.Errorf("nothing is lost: code %d, %s%s; want code fault.OK, \"acknowledged writes found\" in it", code, out, errs)
	}
	// Somebody takes rows out of the ledger while it is written.
	query(t, n, "SET GLOBAL event_scheduler = ON; CREATE EVENT sbtest.thief ON SCHEDULE EVERY 1 SECOND DO DELETE FROM sbtest.risso_bench_ledger WHERE number <= 3")
	code, out, errs := benchmark(t, append(at, "--dsn", n.DSN+"sbtest", "--time", "3s")...)
	if code != fault.Failed || !strings.Contains(out, "LOST: 3 of ") || !strings.Contains(errs, "LOST: 3 of ") || strings.Count(errs, "\n") != 1 {
		t.Errorf("lost: code %d, %s%s; want code fault.Failed, \"LOST: 3 of \" in it, \"LOST: 3 of \" in it, strings.Count(errs, \"\\n\") 1",
			code, out, errs)
	}
	query(t, n, "DROP EVENT sbtest.thief; CREATE USER blind@localhost; GRANT SELECT ON sbtest.sbtest1 TO blind@localhost; GRANT CREATE, DROP, INSERT ON sbtest.* TO blind@localhost")
	code, out, errs = benchmark(t, append(at, "--dsn", strings.Replace(n.DSN, "root@", "blind@", 1)+"sbtest")...)
	if code != fault.Failed || !strings.Contains(out, "NOT READ") || !strings.Contains(errs, "the ledger could not be read") || strings.Count(errs, "\n") != 1 {
		t.Errorf("not read: code %d, %s%s; want code fault.Failed, \"NOT READ\" in it, \"the ledger could not be read\" in it, strings.Count(errs, \"\\n\") 1",
			code, out, errs)
	}
}

// TestSettingsThatStand: what a server makes of a setting is read back and reported.
func TestSettingsThatStand(t *testing.T) {
	for _, kind := range []string{"mariadb", "mysql-9.7"} {
		t.Run(kind, func(t *testing.T) {
			n := sandboxtest.Up(t, kind, "sync_binlog=0")
			query(t, n, "CREATE DATABASE sbtest")
			must(t, "prepare", "point_select", "--dsn", n.DSN+"sbtest", "--table-size", "100")
			before := one(t, n, "SELECT @@GLOBAL.max_allowed_packet")
			args := []string{"compare", "point_select", "--dsn", n.DSN + "sbtest", "--table-size", "100", "--runs", "1", "--time", "100ms", "--warmup", "0s", "--state", t.TempDir()}
			out := must(t, append(args, "--set-b", "max_allowed_packet=77")...)
			if !strings.Contains(out, "note: B: max_allowed_packet=77 was requested, but the server has max_allowed_packet=1024") || !strings.Contains(out, "B: max_allowed_packet=1024") {
				t.Errorf("clamped: want \"note: B: max_allowed_packet=77 was requested, but the server has max_allowed_packet=1024\" in it, \"B: max_allowed_packet=1024\" in it:\n%s",
					out)
			}
			if out := must(t, append(args, "--set-b", "max_allowed_packet=1M", "--set-b", "local_infile=on")...); strings.Contains(out, "was requested") {
				t.Errorf("kept as asked: want no \"was requested\" in it:\n%s", out)
			}
			code, out, errs := benchmark(t, append(args, "--set-a", "max_allowed_packet=1024", "--set-b", "max_allowed_packet=5")...)
			if code != fault.Usage || out != "" || !strings.Contains(errs, "both sides are the same: the server has max_allowed_packet=1024 for A and B") {
				t.Errorf("the same: code %d, %s%s; want code fault.Usage, out \"\", \"both sides are the same: the server has max_allowed_packet=1024 for A and B\" in it",
					code, out, errs)
			}
			if after := one(t, n, "SELECT @@GLOBAL.max_allowed_packet"); after != before {
				t.Errorf("max_allowed_packet is %s, was %s", after, before)
			}
		})
	}
}

// TestPreciseAndExitCodes compares two settings of which one is much slower, until it is sure.
func TestPreciseAndExitCodes(t *testing.T) {
	n := sandboxtest.Up(t, "mariadb", "sync_binlog=0", "innodb_flush_log_at_trx_commit=0")
	query(t, n, "CREATE DATABASE sbtest; CREATE DATABASE slow")
	for _, name := range []string{"sbtest", "slow"} {
		must(t, "prepare", "update_index", "--dsn", n.DSN+name, "--table-size", "100")
	}
	query(t, n, "CREATE TRIGGER slow.brake BEFORE UPDATE ON slow.sbtest1 FOR EACH ROW DO SLEEP(0.02)")
	at := []string{"compare", "update_index", "--dsn-a", n.DSN + "sbtest", "--dsn-b", n.DSN + "slow", "--table-size", "100", "--time", "150ms", "--warmup", "0s", "--yes"}
	var r compare.Report
	code, out, errs := benchmark(t, append(at, "--precise", "50%", "--runs", "20", "--same", "3", "--fail-if", "slower,unclear", "-o", "json")...)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("code %d, %v, %s", code, err, errs)
	}
	v := r.Verdicts[0]
	switch v.Outcome {
	case compare.Slower:
		if code != fault.Differs || !strings.Contains(errs, "--fail-if slower,unclear") {
			t.Errorf("slower: code %d, %s; want code fault.Differs, \"--fail-if slower,unclear\" in it", code, errs)
		}
	case compare.Withheld: // this machine is too busy with others
		if code != fault.Unsure {
			t.Errorf("withheld: code %d, %s; want fault.Unsure", code, errs)
		}
	default:
		t.Errorf("%s", v.Words)
	}
	if r.Same == nil || r.Same.Pairs != 3 || !strings.HasPrefix(r.Same.Words, "A against A, 3 pairs") || len(r.A.Runs) < 8 || len(r.A.Runs) > 20 || len(r.Order) != 2*len(r.A.Runs) || v.Pairs == 0 {
		t.Errorf("got %d runs, order %s, %+v; want r.Same not nil, Pairs 3, \"A against A, 3 pairs\" at the beginning of Words, len(r.A.Runs) from 8 to 20, len(r.Order) %v, v.Pairs not 0",
			len(r.A.Runs), r.Order, r.Same, 2*len(r.A.Runs))
	}
	if code, _, errs := benchmark(t, append(at, "--runs", "2", "--fail-if", "slower")...); code != fault.Unsure || !strings.Contains(errs, "no verdict: transactions per second: too few runs") {
		t.Errorf("too few: code %d, %s; want code fault.Unsure, \"no verdict: transactions per second: too few runs\" in it", code, errs)
	}
	if code, _, errs := benchmark(t, append(at, "--runs", "6", "--fail-if", "faster")...); code != fault.OK && code != fault.Unsure {
		t.Errorf("not faster: code %d, %s", code, errs)
	}
}

// TestDifferentWork: a transaction of one workload is none of another.
func TestDifferentWork(t *testing.T) {
	dir := t.TempDir()
	file := func(name, workload string, queries int64) string {
		t.Helper()
		r := bench.Result{Workload: workload, Threads: 1, Seconds: 10, Transactions: 1000, Queries: queries, TransactionsPerSecond: 100, Latency: bench.Latency{Percentiles: []bench.Percentile{{Percentile: 95, Seconds: 0.1}}},
			Began: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		b, err := json.Marshal(r)
		path := filepath.Join(dir, name)
		if err == nil {
			err = os.WriteFile(path, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	select1, rw, fat := file("a.json", "point_select", 1000), file("b.json", "read_write", 20000), file("c.json", bench.UnknownWorkload, 20000)
	for _, c := range []struct{ a, b, says string }{{select1, rw, "A ran point_select, B read_write"}, {select1, fat, "a transaction of A has 1 statements, one of B 20"}} {
		if code, out, errs := benchmark(t, "compare", c.a, c.b); code != fault.Usage || out != "" || !strings.Contains(errs, c.says) || strings.Count(errs, "\n") != 1 {
			t.Errorf("code %d, %s%s; want code fault.Usage, out \"\", %q in it, strings.Count(errs, \"\\n\") 1", code, out, errs, c.says)
		}
	}
	if code, _, errs := benchmark(t, "compare", rw, fat); code != fault.OK {
		t.Errorf("the same work: code %d, %s; want fault.OK", code, errs)
	}
}

// TestSysbenchLines: a line of sysbench runs as it is, and what has no meaning is refused by its name.
func TestSysbenchLines(t *testing.T) {
	n := sandboxtest.Up(t, "mariadb", "sync_binlog=0")
	query(t, n, "CREATE DATABASE sbtest; CREATE USER sbtest@localhost IDENTIFIED BY 'secretword'; GRANT ALL ON sbtest.* TO sbtest@localhost")
	line := []string{"--db-driver=mysql", "--mysql-socket=" + n.Socket, "--mysql-user=sbtest", "--mysql_password=secretword", "--mysql-db=sbtest", "--tables=2", "--table_size=500", "--threads=2"}
	must(t, append([]string{"prepare", "oltp_read_write", "--create_secondary=on", "--auto_inc=on"}, line...)...)
	code, out, errs := benchmark(t, append([]string{"run", "oltp_read_write", "--time=2", "--report-interval=1", "--events=0", "--rand-type=pareto", "--rand-pareto-h=0.3", "--percentile=99",
		"--skip_trx=off", "--range_selects=off", "--point_selects=3", "--db-ps-mode=auto", "--per-statement", "-o", "json"}, line...)...)
	var r bench.Result
	if err := json.Unmarshal([]byte(out), &r); code != fault.OK || err != nil {
		t.Fatalf("code %d, %v, %s; want fault.OK", code, err, errs)
	}
	if r.Workload != "read_write" || r.Seconds < 2 || r.Seconds > 60 || r.Threads != 2 || r.Queries < 9*r.Transactions || r.Parameters["distribution"] != "pareto" || r.Parameters["table_size"] != 500.0 || strings.Count(errs, " tps ") < 1 {
		t.Errorf("%+v, said %s; want Workload \"read_write\", Seconds from 2 to 60, Threads 2, Queries at least %v, Parameters[\"distribution\"] \"pareto\", Parameters[\"table_size\"] 500.0, strings.Count(errs, \" tps \") at least 1",
			r, errs, 9*r.Transactions)
	}
	if strings.Contains(out+errs, "secretword") {
		t.Error("the password is told")
	}
	// Every statement, and no more of them than queries.
	count := map[string]int64{}
	var sum int64
	for _, s := range r.Statements {
		count[strings.Fields(s.SQL)[0]] += s.Count
		sum += s.Count
		if s.Latency.Avg <= 0 || s.Latency.At(95) < s.Latency.Min || s.Latency.Max > r.Latency.Max {
			t.Errorf("got %+v; want Latency.Avg more than 0, Latency.At(95) at least %v, Latency.Max at most %v", s, s.Latency.Min, r.Latency.Max)
		}
	}
	if len(r.Statements) < 7 || len(r.Statements) > 8 || sum != r.Queries && sum+2 < r.Queries || count["SELECT"] < 3*r.Transactions || strings.Contains(r.Statements[0].SQL, "sbtest1") {
		t.Errorf("%d statements of %d queries: %v", sum, r.Queries, count)
	}
	for _, c := range []struct{ arg, says string }{
		{"--mysql-ignore-errors=all", "--mysql-ignore-errors of sysbench is not accepted"}, {"--histogram=on", "--output json holds it"}, {"--events=1000", "only 0 is accepted"},
		{"--skip_trx=maybe", "on or off"}, {"--db-driver=pgsql", "only mysql is accepted"}, {"--dsn=root@/x", "name the server once"}, {"--time=abc", "abc"}, {"--report-interval=0.5", "whole seconds"},
	} {
		if code, out, errs := benchmark(t, append(append([]string{"run", "oltp_read_write"}, line...), c.arg)...); code != fault.Usage || out != "" || !strings.Contains(errs, c.says) || strings.Contains(errs, "secretword") {
			t.Errorf("%s: code %d, %s%s; want code fault.Usage, out \"\", %q in it, no \"secretword\" in it", c.arg, code, out, errs, c.says)
		}
	}
}

// TestRivals compares what sysbench itself printed with runs of Risso on the same tables.
func TestRivals(t *testing.T) {
	path, err := exec.LookPath("sysbench")
	if err != nil {
		lack.Of(t, "sysbench is not installed: run script/setup")
	}
	n := sandboxtest.Up(t, "mariadb", "sync_binlog=0")
	query(t, n, "CREATE DATABASE sbtest")
	must(t, "prepare", "point_select", "--dsn", n.DSN+"sbtest", "--table-size", "500")
	var text []byte
	for range 2 {
		out, err := exec.CommandContext(t.Context(), path, "oltp_point_select", "--mysql-socket="+n.Socket, "--mysql-user=root", "--table-size=500", "--time=1", "run").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		text = append(text, out...)
	}
	dir := t.TempDir()
	theirs, ours, cut := filepath.Join(dir, "sysbench.txt"), filepath.Join(dir, "ours.json"), filepath.Join(dir, "cut.txt")
	var results string
	for range 2 {
		results += must(t, "run", "point_select", "--dsn", n.DSN+"sbtest", "--table-size", "500", "--time", "500ms", "-o", "json")
	}
	for name, b := range map[string][]byte{theirs: text, ours: []byte(results), cut: text[:len(text)/2-200]} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"--from", theirs, ours}, {theirs, ours}, {"--from", theirs, "--from", ours}} {
		out := must(t, append([]string{"compare"}, args...)...)
		for _, want := range []string{"too few runs: with 2 and 2", "p95 latency", "p99 latency is not compared: A does not have it", "A was measured by sysbench 1.0", "it does not say which workload it ran"} {
			if !strings.Contains(out, want) {
				t.Errorf("%v: %q is missing:\n%s", args, want, out)
			}
		}
	}
	if code, out, errs := benchmark(t, "compare", cut, ours); code != fault.Usage || out != "" || !strings.Contains(errs, "the run did not finish") {
		t.Errorf("cut: code %d, %s%s; want code fault.Usage, out \"\", \"the run did not finish\" in it", code, out, errs)
	}
}

// TestFailIfOfFiles: each verdict on results from files has its exit code, and the judged figure is named.
func TestFailIfOfFiles(t *testing.T) {
	dir := t.TempDir()
	side := func(name string, runs int, factor float64, change func(*bench.Result)) string {
		t.Helper()
		var list []*bench.Result
		for i := range runs {
			v := factor * (1000 + float64(7*i%5))
			r := &bench.Result{Workload: "point_select", Threads: 1, Seconds: 10, Transactions: 100, TransactionsPerSecond: v, Timeline: []bench.Second{},
				Latency: bench.Latency{Percentiles: []bench.Percentile{{Percentile: 95, Seconds: 1 / v}}}, Began: time.Date(2026, 1, 1, 0, i, 0, 0, time.UTC)}
			if name[0] == 'b' {
				r.Began = r.Began.Add(30 * time.Second)
			}
			if change != nil {
				change(r)
			}
			list = append(list, r)
		}
		b, err := json.Marshal(map[string]any{"runs": list})
		path := filepath.Join(dir, name+".json")
		if err == nil {
			err = os.WriteFile(path, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	rated := func(r *bench.Result) { r.Rate = 500 }
	busy := func(n float64) func(*bench.Result) {
		return func(r *bench.Result) { r.Use = &environ.Use{CPUs: 2, Foreign: new(n / 6), Crowd: new(n)} }
	}
	blind := func(r *bench.Result) { r.Rate, r.Latency.Percentiles = 500, nil }
	for i, c := range []struct {
		runs   int
		factor float64
		a, b   func(*bench.Result)
		fail   string
		code   int
		says   string // on standard error, or in the report
	}{
		{8, 0.8, nil, nil, "slower", fault.Differs, "the verdict is one of --fail-if slower: transactions per second: slower"},
		{8, 1.2, nil, nil, "slower", fault.OK, "B is 1.20 times faster"},
		{8, 1.2, nil, nil, "different", fault.Differs, "transactions per second: faster"},
		{8, 1, nil, nil, "slower,faster", fault.OK, "no difference can be shown"},
		{8, 1, nil, nil, "unclear", fault.Differs, "no difference can be shown"},
		{2, 0.5, nil, nil, "slower", fault.Unsure, "no verdict: transactions per second: too few runs"},
		{8, 0.8, rated, rated, "slower", fault.Differs, "p95 latency (the rate of transactions was given): slower"},
		{8, 1.2, rated, rated, "slower", fault.OK, "The verdict that counts (--fail-if, --precise) is the one on p95 latency, because the rate of transactions was given."},
		{8, 1.2, busy(6), busy(0), "slower", fault.Unsure, "no verdict: transactions per second: withheld"},
		{8, 0.8, busy(6), busy(0), "slower", fault.Differs, "although A had less of the machine"},
		{8, 0.8, blind, blind, "slower", fault.Unsure, "no verdict: nothing could be compared"},
		{300, 0.999, nil, nil, "slower", fault.Differs, "B did better in 0 of 300 pairs"},
	} {
		a, b := side(fmt.Sprintf("a%d", i), c.runs, 1, c.a), side(fmt.Sprintf("b%d", i), c.runs, c.factor, c.b)
		code, out, errs := benchmark(t, "compare", a, b, "--fail-if", c.fail)
		if code != c.code || !strings.Contains(out+errs, c.says) {
			t.Errorf("%+v: code %d; want code %d, %q in out + errs\n%s%s", c, code, c.code, c.says, out, errs)
		}
	}
}
