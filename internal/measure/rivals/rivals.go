// Package rivals converts the output of other benchmark programs into results of Risso: sysbench, pgbench, go-tpc,
// tpcc-mysql, mysqlslap, HammerDB. What they do not report remains unknown. It only reads text.
package rivals

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/pattern"
)

// Errors of texts that are no results.
var (
	// ErrUnknown is a text of none of these programs.
	ErrUnknown = errors.New("not output of sysbench, pgbench, go-tpc, tpcc-mysql, mysqlslap or HammerDB (in English: LC_ALL=C)")
	// ErrCut is the text of a run that did not finish.
	ErrCut = errors.New("without the figures at the end: the run did not finish, or the text is truncated")
	// ErrComma is a text whose numbers are not written as these programs write them.
	ErrComma = errors.New("numbers with a comma: it is unclear which of them are fractions; write them with a decimal point")
	// ErrMixed is a text with results of several programs.
	ErrMixed = errors.New("results of several programs: keep those of each in a separate file")
	// ErrShort is a run so short that its time is printed as 0.
	ErrShort = errors.New("too short: its figures are 0")
)

// Read reads a text, with one run or several one after the other.
func Read(text string) ([]*bench.Result, error) {
	text = strings.TrimPrefix(strings.ReplaceAll(text, "\r\n", "\n"), "\ufeff")
	for i, p := range programs() {
		if !p.begin().MatchString(text) {
			continue
		}
		var out []*bench.Result
		for rest := text; p.begin().MatchString(rest); {
			fail := func(err error) error { return fmt.Errorf("run %d of %s: %w", len(out)+1, p.name, err) }
			end := p.end().FindStringIndex(rest)
			if end == nil || twice(p.begin(), rest[:end[1]]) { // another run begins before this one is reported
				if commas().MatchString(rest) {
					return nil, fail(ErrComma)
				}
				return nil, fail(ErrCut)
			}
			to := end[1]
			if next := p.begin().FindStringIndex(rest[to:]); next != nil {
				to += next[0]
			} else {
				to = len(rest)
			}
			r, err := p.read(rest[:to])
			if err != nil {
				return nil, fail(err)
			}
			out, rest = append(out, r), rest[to:]
		}
		for _, other := range programs()[i+1:] {
			if other.begin().MatchString(text) && other.end().MatchString(text) {
				return nil, fmt.Errorf("%s and %s: %w", p.name, other.name, ErrMixed)
			}
		}
		return out, nil
	}
	return nil, ErrUnknown
}

// program is one whose results are read.
type program struct {
	name       string
	begin, end func() *regexp.Regexp // of a run: how its text begins, and its last figure
	read       func(run string) (*bench.Result, error)
}

func programs() []program {
	return []program{
		{"sysbench", sysbenchBegin, sysbenchEnd, sysbench}, {"pgbench", pgbenchBegin, pgbenchEnd, pgbench}, {"tpcc-mysql", slowTPCBegin, slowTPCEnd, slowTPC},
		{"go-tpc", tpcBegin, tpcEnd, tpc}, {"mysqlslap", slapBegin, slapEnd, slap}, {"HammerDB", hammerBegin, hammerEnd, hammer},
	}
}

// twice reports whether something begins a second time.
func twice(begin *regexp.Regexp, text string) bool {
	seen := map[string]bool{}
	for _, m := range begin.FindAllString(text, -1) {
		m = strings.TrimSpace(m[strings.LastIndexByte(strings.TrimSpace(m), '\n')+1:])
		if seen[m] {
			return true
		}
		seen[m] = true
	}
	return false
}

// commas finds a figure written with a decimal comma where these programs write a point.
var commas = pattern.Lazy(`(?m)\([0-9.]*[0-9],[0-9]+ per sec|^\s*(?:sum|avg):\s+[0-9]+,[0-9]+$|^tps = [0-9]+,[0-9]|seconds to run all queries: [0-9]+,[0-9]|^\s*[0-9]+,[0-9]+ TpmC`)

// find returns the first group of a pattern.
func find(text, expression string) (string, bool) {
	m := regexp.MustCompile(expression).FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	return m[1], true
}

// number returns the first group as a number; 0 if there is none.
func number(text, expression string) float64 {
	s, _ := find(text, expression)
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || v < 0 {
		return 0
	}
	return v
}

// needs says whether the text has all of these.
func needs(text string, patterns ...string) error {
	for _, p := range patterns {
		if _, ok := find(text, p); !ok {
			return ErrCut
		}
	}
	return nil
}

// Texts are also kept from their statistics on only.
var (
	sysbenchBegin = pattern.Lazy(`(?m)^(?:sysbench [0-9][^\n]*\n\s*)?Running the test with following options:|^SQL statistics:`)
	sysbenchEnd   = pattern.Lazy(`(?m)^\s+sum:\s+[0-9.]+$`)
	sysbenchStats = pattern.Lazy(`(?m)^(?:SQL statistics|General statistics|Throughput):`)
)

// sysbench reads the report of sysbench 1.0 and 1.1, which has "time elapsed" for "total time".
func sysbench(text string) (*bench.Result, error) {
	const total, rate = `(?m)^\s+(?:total time|time elapsed):\s+([0-9.]+)s`, `(?m)^\s+transactions:\s+[0-9]+\s+\(([0-9.]+) per sec\.\)`
	if sysbenchStats().MatchString(text) && !strings.Contains(text, "SQL statistics:") {
		return nil, fmt.Errorf("%w: a test without SQL", ErrUnknown)
	}
	if err := needs(text, total, rate, `(?m)^\s+transactions:\s+([0-9]+)`, `(?m)^\s+sum:\s+([0-9.]+)$`); err != nil {
		if commas().MatchString(text) {
			err = ErrComma
		}
		return nil, err
	}
	version, _ := find(text, `(?m)^sysbench ([0-9][^ \n]*)`)
	count := func(name string) int64 { return int64(number(text, `(?m)^\s+`+name+`:\s+([0-9]+)`)) }
	r := &bench.Result{
		Source: strings.TrimSpace("sysbench " + version), Workload: bench.UnknownWorkload, Threads: int(number(text, `(?m)^Number of threads: ([0-9]+)`)),
		Rate: number(text, `(?m)^Target transaction rate: ([0-9.]+)/sec`), Seconds: number(text, total), WarmupSeconds: number(text, `(?m)^\s*Warmup time: ([0-9.]+)s`),
		Transactions: count("transactions"), Reads: count("read"), Writes: count("write"), Others: count("other"), Queries: count("total"), Reconnects: count("reconnects"),
		TransactionsPerSecond: number(text, rate), QueriesPerSecond: number(text, `(?m)^\s+queries:\s+[0-9]+\s+\(([0-9.]+) per sec\.\)`),
		Timeline: []bench.Second{},
	}
	if n := count("ignored errors"); n > 0 {
		r.Errors = []bench.ErrorCount{{Label: "ignored", Message: "sysbench does not say which", Count: n}}
	}
	ms := func(name string) float64 { return number(text, `(?m)^\s+`+name+`:\s+([0-9.]+)$`) / 1e3 }
	r.Latency = bench.Latency{Min: ms("min"), Avg: ms("avg"), Max: ms("max"), Percentiles: []bench.Percentile{}}
	for _, m := range regexp.MustCompile(`(?m)^\s+([0-9.]+)th percentile:\s+([0-9.]+)$`).FindAllStringSubmatch(text, -1) {
		p, err1 := strconv.ParseFloat(m[1], 64)
		v, err2 := strconv.ParseFloat(m[2], 64)
		for p > 100 { // 999th is how some write 99.9
			p /= 10
		}
		if err1 == nil && err2 == nil && p > 0 {
			r.Latency.Percentiles = append(r.Latency.Percentiles, bench.Percentile{Percentile: p, Seconds: v / 1e3})
		}
	}
	return r, nil
}

// The last rate is the one without the time to connect; with -C there is no other.
var (
	pgbenchBegin = pattern.Lazy(`(?m)^transaction type: `)
	pgbenchEnd   = pattern.Lazy(`(?m)^tps = [0-9.]+ \((?:without initial connection time|excluding connections establishing|including reconnection times)\)`)
)

// pgbench reads the report of pgbench 9.6 to 17, with and without -r and -P.
func pgbench(text string) (*bench.Result, error) {
	const tps, done = `(?m)^tps = ([0-9.]+) \((?:without|excluding|including reconnection)`, `(?m)^number of transactions actually processed: ([0-9]+)`
	if err := needs(text, tps, done); err != nil {
		return nil, err
	}
	if number(text, tps) == 0 && number(text, done) > 0 {
		return nil, ErrShort
	}
	kind, _ := find(text, `(?m)^transaction type: (.*)$`)
	version, _ := find(text, `(?m)^pgbench \(([^) ]*)`)
	r := &bench.Result{
		Source: strings.TrimSpace("pgbench " + version), Workload: "pgbench " + strings.Trim(kind, "<>"), Threads: int(number(text, `(?m)^number of clients: ([0-9]+)`)),
		Transactions: int64(number(text, done)), TransactionsPerSecond: number(text, tps),
		Timeline: []bench.Second{}, Latency: bench.Latency{Avg: number(text, `(?m)^latency average = ([0-9.]+) ms`) / 1e3, Stddev: number(text, `(?m)^latency stddev = ([0-9.]+) ms`) / 1e3, Percentiles: []bench.Percentile{}},
	}
	if strings.Contains(text, "rate limit schedule lag: ") {
		r.Rate = r.TransactionsPerSecond // it was given (-R), but is not printed
	}
	if r.Seconds = number(text, `(?m)^duration: ([0-9.]+) s`); r.Seconds == 0 && r.TransactionsPerSecond > 0 {
		r.Seconds = float64(r.Transactions) / r.TransactionsPerSecond
	}
	if n := int64(number(text, `(?m)^number of failed transactions: ([0-9]+)`)); n > 0 {
		r.Errors = []bench.ErrorCount{{Label: "failed", Message: "pgbench does not say which", Count: n}}
	}
	at := strings.Index(text, "statement latencies in milliseconds")
	if at < 0 {
		return r, nil
	}
	for _, m := range regexp.MustCompile(`(?m)^\s+([0-9.]+)(?:\s+[0-9]+)*\s+(\S.*)$`).FindAllStringSubmatch(text[at:], -1) {
		if ms, err := strconv.ParseFloat(m[1], 64); err == nil && !strings.HasPrefix(m[2], `\`) {
			r.Statements = append(r.Statements, bench.StatementResult{SQL: m[2], Count: r.Transactions, Latency: bench.Latency{Avg: ms / 1e3, Percentiles: []bench.Percentile{}}})
		}
	}
	return r, nil
}

// A report of go-tpc begins with the first summary after the lines of a run; its last line is tpmC.
var (
	tpcBegin = pattern.Lazy(`(?m)^(?:Finished$|Finished: )`)
	tpcEnd   = pattern.Lazy(`(?m)^tpmC: [0-9]+\.[0-9]+`)
)

var tpcLine = pattern.Lazy(`(?m)^\[Summary\] ([A-Z_0-9]+) - (.*)$`)

// tpc reads the summary of go-tpc's tpcc.
func tpc(text string) (*bench.Result, error) {
	r := &bench.Result{Source: "go-tpc", Workload: "tpcc", Timeline: []bench.Second{}, Latency: bench.Latency{Percentiles: []bench.Percentile{}}}
	for _, m := range tpcLine().FindAllStringSubmatch(text, -1) {
		value := func(name string) float64 { return number(m[2], regexp.QuoteMeta(name)+`: ([0-9.]+)`) }
		count := int64(value("Count"))
		if strings.HasSuffix(m[1], "_ERR") {
			r.Errors = append(r.Errors, bench.ErrorCount{Label: strings.TrimSuffix(m[1], "_ERR"), Message: "go-tpc does not say which", Count: count})
			continue
		}
		k := bench.KindResult{Name: strings.ToLower(m[1]), Transactions: count, PerMinute: value("TPM"), Latency: bench.Latency{Avg: value("Avg(ms)") / 1e3, Max: value("Max(ms)") / 1e3, Percentiles: []bench.Percentile{}}}
		for _, p := range []float64{50, 90, 95, 99, 99.9} {
			if v := value(fmt.Sprintf("%gth(ms)", p)); v > 0 {
				k.Latency.Percentiles = append(k.Latency.Percentiles, bench.Percentile{Percentile: p, Seconds: v / 1e3})
			}
		}
		r.Kinds = append(r.Kinds, k)
		r.Transactions += count
		r.Seconds = max(r.Seconds, value("Takes(s)"))
	}
	if len(r.Kinds) == 0 || r.Seconds == 0 {
		return nil, ErrCut
	}
	r.TransactionsPerSecond = float64(r.Transactions) / r.Seconds
	if c := number(text, `(?m)^tpmC: ([0-9.]+)`); c > 0 {
		r.Headline = &bench.Headline{Kind: "new_order", Unit: "tpmC", PerMinute: c}
	}
	return r, nil
}

var (
	slowTPCBegin = pattern.Lazy(`(?m)^<Raw Results>`)
	slowTPCEnd   = pattern.Lazy(`(?m)^\s*[0-9]+\.[0-9]+ TpmC`)
	slowTPCLine  = pattern.Lazy(`(?m)^\s*\[([0-4])\] sc:\s*([0-9]+)\s+lt:\s*([0-9]+)\s+rt:\s*[0-9]+\s+fl:\s*([0-9]+)\s+avg_rt: ([0-9.]+)`)
)

// slowTPC reads the report of Percona's tpcc-mysql. It prints response times for each interval only, and averages for each kind.
func slowTPC(text string) (*bench.Result, error) {
	r := &bench.Result{Source: "tpcc-mysql", Workload: "tpcc", Seconds: number(text, `(?m)^\s*in ([0-9.]+) sec\.`), Timeline: []bench.Second{}, Latency: bench.Latency{Percentiles: []bench.Percentile{}}}
	names := []string{"new_order", "payment", "order_status", "delivery", "stock_level"}
	for _, m := range slowTPCLine().FindAllStringSubmatch(text, -1) {
		v := make([]float64, len(m))
		for i := range m[1:] {
			v[i+1] = number(m[i+1], `([0-9.]+)`)
		}
		k := bench.KindResult{Name: names[int(v[1])], Transactions: int64(v[2] + v[3]), Latency: bench.Latency{Avg: v[5] / 1e3, Percentiles: []bench.Percentile{}}}
		if r.Seconds > 0 {
			k.PerMinute = 60 * float64(k.Transactions) / r.Seconds
		}
		if v[4] > 0 {
			r.Errors = append(r.Errors, bench.ErrorCount{Label: k.Name, Message: "tpcc-mysql does not say which", Count: int64(v[4])})
		}
		r.Kinds, r.Transactions = append(r.Kinds, k), r.Transactions+k.Transactions
	}
	if len(r.Kinds) != len(names) || r.Seconds == 0 {
		return nil, ErrCut
	}
	r.TransactionsPerSecond = float64(r.Transactions) / r.Seconds
	r.Headline = &bench.Headline{Kind: "new_order", Unit: "tpmC", PerMinute: number(text, `(?m)^\s*([0-9]+\.[0-9]+) TpmC`)}
	return r, nil
}

var (
	slapBegin = pattern.Lazy(`(?m)^\s*Average number of seconds to run all queries:`)
	slapEnd   = pattern.Lazy(`(?m)^\s*Average number of queries per client: [0-9]+\s*$`)
)

// slap reads a block of mysqlslap, or mariadb-slap: the time of all queries, on average over its iterations.
func slap(text string) (*bench.Result, error) {
	const took, clients, queries = `Average number of seconds to run all queries: ([0-9]+\.[0-9]+) seconds`, `Number of clients running queries: ([0-9]+)`, `queries per client: ([0-9]+)`
	if err := needs(text, took, clients, queries); err != nil {
		if commas().MatchString(text) {
			err = ErrComma
		}
		return nil, err
	}
	r := &bench.Result{Source: "mysqlslap", Workload: bench.UnknownWorkload, Threads: int(number(text, clients)), Seconds: number(text, took), Timeline: []bench.Second{}, Latency: bench.Latency{Percentiles: []bench.Percentile{}}}
	r.Transactions = int64(number(text, clients)) * int64(number(text, queries))
	if r.Seconds == 0 || r.Transactions == 0 { // fewer queries than clients are printed as 0 for each
		return nil, ErrShort
	}
	r.Queries = r.Transactions
	r.TransactionsPerSecond = float64(r.Transactions) / r.Seconds
	r.QueriesPerSecond = r.TransactionsPerSecond
	return r, nil
}

// The order of the two figures changed with HammerDB 3.3.
var (
	hammerBegin  = pattern.Lazy(`TEST RESULT : System achieved `)
	hammerEnd    = pattern.Lazy(`TEST RESULT : System achieved (?:[0-9]+ NOPM from [0-9]+ [A-Za-z ]*TPM\b|[0-9]+ [A-Za-z ]*TPM at [0-9]+ NOPM\b)`)
	hammerOrders = `([0-9]+) NOPM`
)

// hammer reads HammerDB's TPROC-C. Only new orders compare (NOPM): its TPM counts what the server counts as a transaction.
func hammer(text string) (*bench.Result, error) {
	orders := number(text, hammerOrders)
	if orders == 0 {
		return nil, ErrShort
	}
	return &bench.Result{Source: "HammerDB", Workload: "TPROC-C new orders", TransactionsPerSecond: orders / 60, Headline: &bench.Headline{Kind: "new_order", Unit: "NOPM", PerMinute: orders},
		Timeline: []bench.Second{}, Latency: bench.Latency{Percentiles: []bench.Percentile{}}}, nil
}
