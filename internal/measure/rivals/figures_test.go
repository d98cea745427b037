package rivals

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/measure/bench"
)

// told is what a result says, in short.
func told(r *bench.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %d threads, %.6g s, %d transactions, %.4g/s, %d queries, %.4g/s", r.Source, r.Workload, r.Threads, r.Seconds, r.Transactions, r.TransactionsPerSecond, r.Queries, r.QueriesPerSecond)
	fmt.Fprintf(&b, "; %.6g %.6g %.6g %.6g", r.Latency.Min, r.Latency.Avg, r.Latency.Stddev, r.Latency.Max)
	for _, p := range r.Latency.Percentiles {
		fmt.Fprintf(&b, "; p%.6g %.6g", p.Percentile, p.Seconds)
	}
	for _, e := range r.Errors {
		fmt.Fprintf(&b, "; %d %s", e.Count, e.Label)
	}
	for _, k := range r.Kinds {
		fmt.Fprintf(&b, "; %s %d %.6g/min avg %.6g max %.6g", k.Name, k.Transactions, k.PerMinute, k.Latency.Avg, k.Latency.Max)
		for _, p := range k.Latency.Percentiles {
			fmt.Fprintf(&b, " p%.6g %.6g", p.Percentile, p.Seconds)
		}
	}
	for _, s := range r.Statements {
		fmt.Fprintf(&b, "; %s %d %.6g", s.SQL, s.Count, s.Latency.Avg)
	}
	if r.Headline != nil {
		fmt.Fprintf(&b, "; %.6g %s", r.Headline.PerMinute, r.Headline.Unit)
	}
	return b.String()
}

// TestFigures: every figure that a program prints is taken, in seconds, and no other.
func TestFigures(t *testing.T) {
	sysbench := func(old, new string) string { return strings.Replace(sysbenchText, old, new, 1) }
	const bench1 = "transaction type: <builtin: TPC-B (sort of)>\nnumber of clients: 2\nnumber of transactions actually processed: 100\n"
	const pg = "latency average = 2.5 ms\nlatency stddev = 0.5 ms\ntps = 50.0 (without initial connection time)\n"
	const go1 = "Finished: 1 OK\n[Summary] NEW_ORDER - Takes(s): 10.0, Count: 450, TPM: 2700.0, Sum(ms): 900.0, Avg(ms): 2.0, 50th(ms): 1.0, 90th(ms): 3.0, 95th(ms): 4.0, 99th(ms): 6.0, 99.9th(ms): 8.0, Max(ms): 9.0\n"
	const slow = "<Raw Results>\n [0] sc:10 lt:5 rt:0 fl:2 avg_rt: 4.0 (5)\n [1] sc:7 lt:0 rt:0 fl:0 avg_rt: 1.0 (5)\n [2] sc:1 lt:0 rt:0 fl:0 avg_rt: 1.0 (5)\n [3] sc:1 lt:0 rt:0 fl:1 avg_rt: 1.0 (80)\n [4] sc:1 lt:0 rt:0 fl:0 avg_rt: 1.0 (20)\n in 30 sec.\n\n<TpmC>\n 30.000 TpmC\n"
	for _, c := range []struct{ text, want string }{
		{sysbenchText, "2 threads, 2.0066 s, 813 transactions, 404.9/s, 13008 queries, 6479/s; 0.00045 0.00493 0 0.0855; p95 0.01671; 3 ignored"}, {sysbench("ignored errors:                      3", "ignored errors:                      1"), "; p95 0.01671; 1 ignored"}, {sysbench("ignored errors:                      3", "ignored errors:                      0"), "; p95 0.01671"},
		{sysbench("95th", "999th"), "; p99.9 0.01671; 3"}, {sysbench("95th", "100th"), "; p100 0.01671; 3"}, {sysbench("95th", "0th"), "0.0855; 3 ignored"}, {sysbench("95th", "1th"), "; p1 0.01671; 3"}, {sysbench("95th", "150th"), "; p15 0.01671; 3"},
		{sysbench("16.71", "16.7.1"), "0.0855; 3 ignored"}, {sysbench("total:                           13008", "total: "+strings.Repeat("9", 400)), " 813 transactions, 404.9/s, 0 queries"}, // no number, and none that is so large
		{bench1 + strings.Replace(pg, "50.0", "1.0", 1), ": 2 threads, 100 s, 100 transactions, 1/s"}, {strings.Replace(bench1, "100", "0", 1) + strings.Replace(pg, "50.0", "0.0", 1), ": 2 threads, 0 s, 0 transactions, 0/s"}, {strings.Replace(go1, "10.0", "1.0", 1) + "tpmC: 2.0\n", "1 s, 450 transactions, 450/s"},
		{bench1 + "duration: 2 s\nnumber of failed transactions: 0 (0.000%)\n" + pg, "pgbench pgbench builtin: TPC-B (sort of): 2 threads, 2 s, 100 transactions, 50/s, 0 queries, 0/s; 0 0.0025 0.0005 0"}, {bench1 + "number of failed transactions: 1 (1.000%)\n" + pg, "2 s, 100 transactions, 50/s, 0 queries, 0/s; 0 0.0025 0.0005 0; 1 failed"}, {bench1 + "number of failed transactions: 7 (1.000%)\n" + pg, "; 7 failed"},
		{bench1 + "duration: 1 s\n" + pg + "statement latencies in milliseconds:\n   0.002  \\set aid\n   0.5  BEGIN;\n   1.5   0   UPDATE t;\n", "1 s, 100 transactions, 50/s, 0 queries, 0/s; 0 0.0025 0.0005 0; BEGIN; 100 0.0005; UPDATE t; 100 0.0015"},
		{go1 + "[Summary] PAYMENT - Takes(s): 9.0, Count: 50, TPM: 300.0, Sum(ms): 900.0, Avg(ms): 4.0, 90th(ms): 3.0, Max(ms): 5.0\n[Summary] NEW_ORDER_ERR - Takes(s): 10.0, Count: 3, TPM: 3.0\ntpmC: 2700.0, tpmTotal: 1.0\n",
			"go-tpc tpcc: 0 threads, 10 s, 500 transactions, 50/s, 0 queries, 0/s; 0 0 0 0; 3 NEW_ORDER; new_order 450 2700/min avg 0.002 max 0.009 p50 0.001 p90 0.003 p95 0.004 p99 0.006 p99.9 0.008; payment 50 300/min avg 0.004 max 0.005 p90 0.003; 2700 tpmC"},
		{go1 + "tpmC: 1.0, tpmTotal: 1.0\n", "; 1 tpmC"}, {go1 + "tpmC: 0.0, tpmTotal: 1.0\n", "p99.9 0.008"},
		{slow, "tpcc-mysql tpcc: 0 threads, 30 s, 25 transactions, 0.8333/s, 0 queries, 0/s; 0 0 0 0; 2 new_order; 1 delivery; new_order 15 30/min avg 0.004 max 0; payment 7 14/min avg 0.001 max 0; order_status 1 2/min avg 0.001 max 0; delivery 1 2/min avg 0.001 max 0; stock_level 1 2/min avg 0.001 max 0; 30 tpmC"},
		{strings.Replace(slow, "in 30 sec", "in 1 sec", 1), "1 s, 25 transactions, 25/s, 0 queries, 0/s; 0 0 0 0; 2 new_order; 1 delivery; new_order 15 900/min"},
		{"Average number of seconds to run all queries: 0.500 seconds\nNumber of clients running queries: 4\nAverage number of queries per client: 25\n", "mysqlslap " + bench.UnknownWorkload + ": 4 threads, 0.5 s, 100 transactions, 200/s, 100 queries, 200/s"},
		{"TEST RESULT : System achieved 600 NOPM from 1400 MySQL TPM", "HammerDB TPROC-C new orders: 0 threads, 0 s, 0 transactions, 10/s, 0 queries, 0/s; 0 0 0 0; 600 NOPM"},
	} {
		list, err := Read(c.text)
		if err != nil || len(list) != 1 {
			t.Errorf("got %d results, %v; want %s", len(list), err, c.want)
			continue
		}
		if got := told(list[0]); !strings.Contains(got, c.want) || strings.HasSuffix(c.want, "p95 0.01671") && !strings.HasSuffix(got, c.want) || strings.HasSuffix(c.want, "p99.9 0.008") && !strings.HasSuffix(got, c.want) {
			t.Errorf("got %s; want %s", got, c.want)
		}
		if text, err := json.Marshal(list[0]); err != nil || strings.Contains(string(text), `"timeline":null`) || strings.Contains(string(text), `"percentiles":null`) {
			t.Errorf("as JSON: got %s, %v; want no \"\\\"timeline\\\":null\" in it, no \"\\\"percentiles\\\":null\" in it", text, err)
		}
	}
}

// TestWhichRun: an error names the run that it is in.
func TestWhichRun(t *testing.T) {
	const slap = "Average number of seconds to run all queries: 0.500 seconds\nNumber of clients running queries: 4\nAverage number of queries per client: 25\n"
	list, err := Read(slap + "some lines\n" + slap)
	if err != nil || len(list) != 2 {
		t.Errorf("got %d results, %v; want two", len(list), err)
	}
	// What follows the last figure of a run still belongs to it: the statements of pgbench -r.
	pg := func(tps, done, statement string) string {
		return "transaction type: x\nnumber of transactions actually processed: " + done + "\ntps = " + tps + " (without initial connection time)\nstatement latencies in milliseconds and failures:\n   0.5   0  " + statement + "\n"
	}
	list, err = Read(pg("5.0", "10", "BEGIN;") + pg("6.0", "10", "COMMIT;"))
	if err != nil || len(list) != 2 || len(list[0].Statements) != 1 || list[0].Statements[0].SQL != "BEGIN;" || len(list[1].Statements) != 1 || list[1].Statements[0].SQL != "COMMIT;" {
		t.Errorf("got %d results, %v; want each with its statement", len(list), err)
	}
	for text, want := range map[string]error{
		pg("0.0", "10", "BEGIN;"): ErrShort, pg("0.0", "1", "BEGIN;"): ErrShort, pg("0.0", "0", "BEGIN;"): nil, pg("1.0", "1", "BEGIN;"): nil,
		"Finished\n[Summary] PAYMENT - Takes(s): 0.0, Count: 5, TPM: 300.0\ntpmC: 1.0\n": ErrCut, "Finished\ntpmC: 1.0\n": ErrCut,
		// The first was broken off, and the second was made with another version.
		sysbenchText[:strings.Index(sysbenchText, "SQL stat")] + newer(sysbenchText): ErrCut,
	} {
		if _, err := Read(text); !errors.Is(err, want) {
			t.Errorf("%.60q…: got %v, want %v", text, err, want)
		}
	}
	if _, err := Read(slap + strings.Replace(slap, "0.500", "0.000", 1)); err == nil || !strings.Contains(err.Error(), "run 2 of mysqlslap") {
		t.Errorf("got %v, want that it is the second run", err)
	}
	if list, err := Read(slap + "TEST RESULT : System achieved \n"); err != nil || len(list) != 1 {
		t.Errorf("the beginning of another program's: got %d results, %v; want one", len(list), err)
	}
}
