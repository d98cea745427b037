package rivals

import (
	"errors"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/measure/bench"
)

const sysbenchText = `sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: 2
Report intermediate results every 1 second(s)
Initializing random number generator from current time


Initializing worker threads...

Threads started!

[ 1s ] thds: 2 tps: 359.17 qps: 5762.46 (r/w/o: 5042.15/0.00/720.31) lat (ms,95%): 22.69 err/s: 0.00 reconn/s: 0.00
[ 2s ] thds: 2 tps: 451.55 qps: 7223.84 (r/w/o: 6320.73/0.00/903.11) lat (ms,95%): 10.84 err/s: 0.00 reconn/s: 0.00
SQL statistics:
    queries performed:
        read:                            11382
        write:                           0
        other:                           1626
        total:                           13008
    transactions:                        813    (404.94 per sec.)
    queries:                             13008  (6478.96 per sec.)
    ignored errors:                      3      (0.00 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          2.0066s
    total number of events:              813

Latency (ms):
         min:                                    0.45
         avg:                                    4.93
         max:                                   85.50
         95th percentile:                       16.71
         sum:                                 4007.35

Threads fairness:
    events (avg/stddev):           406.5000/55.50
    execution time (avg/stddev):   2.0037/0.00
`

const pgbenchText = `pgbench (15.14 (Debian 15.14-0+deb12u1))
starting vacuum...end.
progress: 1.0 s, 9123.4 tps, lat 0.219 ms stddev 0.090, 0 failed
transaction type: <builtin: select only>
scaling factor: 1
query mode: prepared
number of clients: 4
number of threads: 2
maximum number of tries: 1
duration: 2 s
number of transactions actually processed: 18432
number of failed transactions: 0 (0.000%)
latency average = 0.433 ms
latency stddev = 0.211 ms
initial connection time = 6.021 ms
tps = 9228.125000 (without initial connection time)
statement latencies in milliseconds and failures:
         0.001           0  \set aid random(1, 100000 * :scale)
         0.432           0  SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
`

const tpcText = `creating table
[Current] NEW_ORDER - Takes(s): 9.9, Count: 50, TPM: 302.5, Sum(ms): 2012.0, Avg(ms): 40.2, 50th(ms): 39.8, 90th(ms): 50.3, 95th(ms): 54.5, 99th(ms): 75.5, 99.9th(ms): 75.5, Max(ms): 75.5
Finished
[Summary] NEW_ORDER - Takes(s): 19.8, Count: 450, TPM: 1361.0, Sum(ms): 20120.0, Avg(ms): 44.7, 50th(ms): 41.9, 90th(ms): 58.7, 95th(ms): 67.1, 99th(ms): 104.9, 99.9th(ms): 125.8, Max(ms): 125.8
[Summary] NEW_ORDER_ERR - Takes(s): 19.8, Count: 4, TPM: 12.1, Sum(ms): 20.0, Avg(ms): 4.7, 50th(ms): 4.9, 90th(ms): 5.7, 95th(ms): 6.1, 99th(ms): 10.9, 99.9th(ms): 12.8, Max(ms): 12.8
[Summary] PAYMENT - Takes(s): 20.0, Count: 430, TPM: 1290.0, Sum(ms): 9120.0, Avg(ms): 21.2, 50th(ms): 19.9, 90th(ms): 28.7, 95th(ms): 31.1, 99th(ms): 44.9, 99.9th(ms): 65.8, Max(ms): 65.8
tpmC: 1361.0, tpmTotal: 2651.0, efficiency: 1058.3%
`

func one(t *testing.T, text string) *bench.Result {
	t.Helper()
	list, err := Read(text)
	if err != nil || len(list) != 1 {
		t.Fatalf("got %d results, %v; want 1", len(list), err)
	}
	return list[0]
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*math.Max(1, math.Abs(want)) {
		t.Errorf("%s: %v, not %v", what, got, want)
	}
}

func TestSysbench(t *testing.T) {
	r := one(t, sysbenchText)
	if r.Source != "sysbench 1.0.20" || r.Workload != bench.UnknownWorkload || r.Threads != 2 || r.Transactions != 813 || r.Queries != 13008 || r.Reads != 11382 || r.Others != 1626 || len(r.Errors) != 1 || r.Errors[0].Count != 3 {
		t.Errorf("got %+v; want Source \"sysbench 1.0.20\", Workload bench.UnknownWorkload, Threads 2, Transactions 813, Queries 13008, Reads 11382, Others 1626, len(Errors) 1, Errors[0].Count 3",
			r)
	}
	near(t, "tps", r.TransactionsPerSecond, 404.94)
	near(t, "seconds", r.Seconds, 2.0066)
	near(t, "p95", r.Latency.At(95), 0.01671)
	near(t, "p99", r.Latency.At(99), 0)
	near(t, "max", r.Latency.Max, 0.0855)
	list, err := Read(strings.ReplaceAll(sysbenchText, "\n", "\r\n") + strings.Replace(sysbenchText, "404.94", "0.00", 1))
	if err != nil || len(list) != 2 || list[0].TransactionsPerSecond != 404.94 || list[1].TransactionsPerSecond != 0 {
		t.Errorf("two runs: got %v, %v; want len(list) 2, list[0].TransactionsPerSecond 404.94, list[1].TransactionsPerSecond 0", list, err)
	}
}

func TestPgbench(t *testing.T) {
	r := one(t, pgbenchText)
	if r.Source != "pgbench 15.14" || r.Workload != "pgbench builtin: select only" || r.Threads != 4 || r.Transactions != 18432 || r.Seconds != 2 || len(r.Statements) != 1 || !strings.HasPrefix(r.Statements[0].SQL, "SELECT abalance") {
		t.Errorf("got %+v; want Source \"pgbench 15.14\", Workload \"pgbench builtin: select only\", Threads 4, Transactions 18432, Seconds 2, len(Statements) 1, \"SELECT abalance\" at the beginning of Statements[0].SQL",
			r)
	}
	near(t, "tps", r.TransactionsPerSecond, 9228.125)
	near(t, "average", r.Latency.Avg, 0.000433)
	near(t, "of the statement", r.Statements[0].Latency.Avg, 0.000432)
	rated := one(t, strings.Replace(pgbenchText, "initial connection time", "rate limit schedule lag: avg 0.111 (max 3.210) ms\ninitial connection time", 1))
	near(t, "the rate, which is not told", rated.Rate, 9228.125)
	near(t, "-C", one(t, strings.Replace(pgbenchText, "(without initial connection time)", "(including reconnection times)", 1)).TransactionsPerSecond, 9228.125)
	old := strings.Replace(pgbenchText, "tps = 9228.125000 (without initial connection time)", "tps = 9000.5 (including connections establishing)\ntps = 9228.125000 (excluding connections establishing)", 1)
	near(t, "tps of an older one", one(t, old).TransactionsPerSecond, 9228.125)
}

func TestGoTPC(t *testing.T) {
	r := one(t, tpcText)
	if r.Workload != "tpcc" || r.Transactions != 880 || len(r.Kinds) != 2 || r.Kinds[0].Name != "new_order" || r.Kinds[0].Transactions != 450 || len(r.Errors) != 1 || r.Headline == nil || r.Threads != 0 {
		t.Errorf("got %+v; want Workload \"tpcc\", Transactions 880, len(Kinds) 2, Kinds[0].Name \"new_order\", Kinds[0].Transactions 450, len(Errors) 1, Headline not nil, Threads 0",
			r)
	}
	near(t, "tps", r.TransactionsPerSecond, 44)
	near(t, "p95", r.Kinds[0].Latency.At(95), 0.0671)
}

// What follows is in the form of published outputs of these programs, with other figures.
const (
	slapText = "Benchmark\n\tRunning for engine innodb\n\tAverage number of seconds to run all queries: 2.500 seconds\n\tMinimum number of seconds to run all queries: 2.100 seconds\n" +
		"\tMaximum number of seconds to run all queries: 3.000 seconds\n\tNumber of clients running queries: 20\n\tAverage number of queries per client: 50\n\n"
	slowTPCText = "***************************************\n*** ###easy### TPC-C Load Generator ***\n***************************************\nMEASURING START.\n\n" +
		"  10, trx: 979, 95%: 18.535, 99%: 24.613, max_rt: 34.947, 986|32.772, 98|6.821, 103|42.110, 101|45.416\n\nSTOPPING THREADS....\n\n<Raw Results>\n" +
		"  [0] sc:4000 lt:1000  rt:0  fl:3 avg_rt: 5.3 (5)\n  [1] sc:4990 lt:10  rt:0  fl:0 avg_rt: 4.4 (5)\n  [2] sc:500 lt:0  rt:0  fl:0 avg_rt: 0.8 (5)\n  [3] sc:500 lt:0  rt:0  fl:0 avg_rt: 11.9 (80)\n" +
		"  [4] sc:500 lt:0  rt:0  fl:0 avg_rt: 2.1 (20)\n in 60 sec.\n\n<Raw Results2(sum ver.)>\n  [0] sc:4010  lt:1001  rt:0  fl:3 \n  [1] sc:4990  lt:10  rt:0  fl:0 \n\n<Constraint Check> (all must be [OK])\n" +
		" [transaction percentage]\n        Payment: 43.41% (>=43.0%) [OK]\n\n<TpmC>\n                 5000.000 TpmC\n"
	hammerText = "Vuser 1:16 Active Virtual Users configured\nVuser 1:TEST RESULT : System achieved 253200 NOPM from 767954 MariaDB TPM\nVuser 2:FINISHED SUCCESS\n"
)

// newer is the report of sysbench 1.1 in place of that of 1.0.
func newer(text string) string {
	text = strings.Replace(text, "sysbench 1.0.20", "sysbench 1.1.0-bbee5d5", 1)
	return strings.Replace(text, "General statistics:\n    total time:                          2.0066s\n", "Throughput:\n    events/s (eps):                      404.9400\n    time elapsed:                        2.0066s\n", 1)
}

func TestOthers(t *testing.T) {
	r := one(t, newer(sysbenchText))
	near(t, "seconds of sysbench 1.1", r.Seconds, 2.0066)
	near(t, "tps of sysbench 1.1", r.TransactionsPerSecond, 404.94)
	r = one(t, strings.Replace(newer(sysbenchText), "         sum:", "         99th percentile:                       27.17\n        999th percentile:                      81.63\n         sum:", 1))
	near(t, "p99", r.Latency.At(99), 0.02717)
	near(t, "p99.9", r.Latency.At(99.9), 0.08163)
	// Only the statistics, several times, one of them with its head.
	stats := sysbenchText[strings.Index(sysbenchText, "SQL statistics:"):]
	if list, err := Read("\ufeff\n" + stats + sysbenchText + newer(stats)); err != nil || len(list) != 3 || list[0].Source != "sysbench" || list[1].Threads != 2 || list[2].Seconds != 2.0066 {
		t.Errorf("got %d runs, %v; want len(list) 3, list[0].Source \"sysbench\", list[1].Threads 2, list[2].Seconds 2.0066", len(list), err)
	}
	r = one(t, slapText)
	near(t, "queries/s of mysqlslap", r.TransactionsPerSecond, 400)
	if r.Threads != 20 || r.Transactions != 1000 || r.Seconds != 2.5 {
		t.Errorf("got %+v; want Threads 20, Transactions 1000, Seconds 2.5", r)
	}
	if list, err := Read(slapText + strings.ReplaceAll(slapText, "\n", "\r\n")); err != nil || len(list) != 2 {
		t.Errorf("got %d runs, %v; want 2", len(list), err)
	}
	r = one(t, slowTPCText)
	near(t, "transactions/s of tpcc-mysql", r.TransactionsPerSecond, 11500.0/60)
	if len(r.Kinds) != 5 || r.Kinds[0].Transactions != 5000 || r.Kinds[3].Latency.Avg != 0.0119 || len(r.Errors) != 1 || r.Errors[0].Count != 3 || r.Headline.PerMinute != 5000 || r.Workload != "tpcc" {
		t.Errorf("got %+v; want len(Kinds) 5, Kinds[0].Transactions 5000, Kinds[3].Latency.Avg 0.0119, len(Errors) 1, Errors[0].Count 3, Headline.PerMinute 5000, Workload \"tpcc\"",
			r)
	}
	near(t, "new orders/s of HammerDB", one(t, hammerText).TransactionsPerSecond, 4220)
	near(t, "of an older one", one(t, "Vuser 1:TEST RESULT : System achieved 60501 SQL Server TPM at 13200 NOPM\n").TransactionsPerSecond, 220)
	if list, err := Read(strings.Repeat(hammerText, 3)); err != nil || len(list) != 3 {
		t.Errorf("got %d runs, %v; want 3", len(list), err)
	}
	for _, c := range []struct {
		text string
		want error
	}{
		{strings.ReplaceAll(sysbenchText, "404.94", "404,94"), ErrComma},
		{regexp.MustCompile(`([0-9])\.([0-9])`).ReplaceAllString(sysbenchText, "$1,$2"), ErrComma},
		{strings.ReplaceAll(pgbenchText, "tps = 9228.", "tps = 9228,"), ErrComma},
		{strings.ReplaceAll(slapText, "2.500", "2,500"), ErrComma},
		{strings.ReplaceAll(slowTPCText, "5000.000 TpmC", "5000,000 TpmC"), ErrComma},
		{strings.ReplaceAll(slapText, "2.500", "0.000"), ErrShort},
		{strings.ReplaceAll(slapText, "client: 50", "client: 0"), ErrShort}, // more clients than queries
		{strings.ReplaceAll(hammerText, "253200 NOPM", "0 NOPM"), ErrShort},
		{strings.ReplaceAll(pgbenchText, "transaction type", "Transaktionstyp"), ErrUnknown},
		{sysbenchText[:strings.Index(sysbenchText, "General")] + sysbenchText, ErrCut}, // the first of two was broken off
		{sysbenchText + sysbenchText[:strings.Index(sysbenchText, "General")], ErrCut}, // the second
		{pgbenchText[:strings.Index(pgbenchText, "tps = 9228")+8] + "\n" + pgbenchText, ErrCut},
		{strings.Replace(pgbenchText, "tps = 9228.125000 (without initial connection time)", "tps = 9000.5 (including connections establishing)", 1), ErrCut},
		{sysbenchText + pgbenchText, ErrMixed}, {pgbenchText + sysbenchText, ErrMixed}, {slapText + hammerText, ErrMixed},
		{strings.Replace(slowTPCText, "  [4] sc:500", "  [x] sc:500", 1), ErrCut},
	} {
		if list, err := Read(c.text); !errors.Is(err, c.want) {
			t.Errorf("%.60q…: %d runs, %v; want %v", c.text, len(list), err, c.want)
		}
	}
}

// TestCut: no text that ends early has figures, and none that is not theirs.
func TestCut(t *testing.T) {
	for _, c := range []struct{ whole, marker string }{
		{sysbenchText, "sum:"}, {newer(sysbenchText), "sum:"}, {pgbenchText, "(without initial"}, {tpcText, "tpmC: "}, {slowTPCText, "5000.000 TpmC"}, {slapText, "per client: 50"}, {hammerText, "MariaDB TPM"},
	} {
		for at := 0; at < len(c.whole); at += 1 + at%3 {
			list, err := Read(c.whole[:at])
			if at <= strings.Index(c.whole, c.marker) && err == nil {
				t.Fatalf("cut at %d: %+v", at, list[0])
			}
			if err != nil && !errors.Is(err, ErrCut) && !errors.Is(err, ErrUnknown) {
				t.Fatalf("cut at %d: %v", at, err)
			}
		}
	}
	if _, err := Read(tpcText[:strings.Index(tpcText, "[Summary]")]); !errors.Is(err, ErrCut) {
		t.Errorf("got %v, want ErrCut", err)
	}
	for _, text := range []string{"", "hello", "tps = 5", strings.Replace(sysbenchText, "SQL statistics:", "File operations:", 1), "\x00\xff"} {
		if _, err := Read(text); err == nil {
			t.Errorf("%.20q was read", text)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{sysbenchText, newer(sysbenchText), pgbenchText, tpcText, slapText, slowTPCText, hammerText} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := Read(text)
		for _, r := range list {
			if err != nil || math.IsNaN(r.TransactionsPerSecond) || math.IsInf(r.TransactionsPerSecond, 0) || r.Seconds < 0 || r.Threads < 0 {
				t.Fatalf("got %+v, %v; want math.IsNaN(r.TransactionsPerSecond) false, math.IsInf(r.TransactionsPerSecond, 0) false, Seconds at least 0, Threads at least 0",
					r, err)
			}
		}
	})
}
