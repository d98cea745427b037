// Package rivals reads what other programs print at the end of a benchmark as results of Risso: sysbench, pgbench, go-tpc. What
// they do not tell stays unknown; it reads nothing but text.
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
	ErrUnknown = errors.New("not what sysbench, pgbench or go-tpc print")
	// ErrCut is the text of a run that did not come to its end.
	ErrCut = errors.New("without the figures at its end: the run did not end, or the text is cut")
)

// Read reads a text, with one run or several one after the other.
func Read(text string) ([]*bench.Result, error) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	for _, p := range []struct {
		name  string
		begin func() *regexp.Regexp
		read  func(run string) (*bench.Result, error)
	}{
		{"sysbench", sysbenchBegin, sysbench}, {"pgbench", pgbenchBegin, pgbench}, {"go-tpc", tpcBegin, tpc},
	} {
		starts := p.begin().FindAllStringIndex(text, -1)
		if len(starts) == 0 {
			continue
		}
		var out []*bench.Result
		for i, at := range starts {
			from, to := at[0], len(text)
			if i == 0 {
				from = 0
			}
			if i+1 < len(starts) {
				to = starts[i+1][0]
			}
			r, err := p.read(text[from:to])
			if err != nil {
				return nil, fmt.Errorf("run %d of %s: %w", i+1, p.name, err)
			}
			out = append(out, r)
		}
		return out, nil
	}
	return nil, ErrUnknown
}

// find gives the first group of a pattern.
func find(text, pattern string) (string, bool) {
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	return m[1], true
}

// number gives the first group as a number; 0 where it is not there.
func number(text, pattern string) float64 {
	s, _ := find(text, pattern)
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

var sysbenchBegin = pattern.Lazy(`(?m)^(?:sysbench [0-9][^\n]*\n\s*)?Running the test with following options:`)

// sysbench reads the report of sysbench 1.0.
func sysbench(text string) (*bench.Result, error) {
	const total, rate = `(?m)^\s+total time:\s+([0-9.]+)s`, `(?m)^\s+transactions:\s+[0-9]+\s+\(([0-9.]+) per sec\.\)`
	if strings.Contains(text, "General statistics:") && !strings.Contains(text, "SQL statistics:") {
		return nil, fmt.Errorf("%w: a test without SQL", ErrUnknown)
	}
	if err := needs(text, total, rate, `(?m)^\s+transactions:\s+([0-9]+)`, `(?m)^\s+sum:\s+([0-9.]+)$`); err != nil {
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
		r.Errors = []bench.ErrorCount{{Label: "ignored", Message: "sysbench does not tell which", Count: n}}
	}
	ms := func(name string) float64 { return number(text, `(?m)^\s+`+name+`:\s+([0-9.]+)$`) / 1e3 }
	r.Latency = bench.Latency{Min: ms("min"), Avg: ms("avg"), Max: ms("max"), Percentiles: []bench.Percentile{}}
	if m := regexp.MustCompile(`(?m)^\s+([0-9.]+)th percentile:\s+([0-9.]+)$`).FindStringSubmatch(text); m != nil {
		p, err1 := strconv.ParseFloat(m[1], 64)
		v, err2 := strconv.ParseFloat(m[2], 64)
		if err1 == nil && err2 == nil {
			r.Latency.Percentiles = append(r.Latency.Percentiles, bench.Percentile{Percentile: p, Seconds: v / 1e3})
		}
	}
	return r, nil
}

var pgbenchBegin = pattern.Lazy(`(?m)^transaction type: `)

// pgbench reads the report of pgbench 9.6 to 17, with and without -r and -P.
func pgbench(text string) (*bench.Result, error) {
	const tps, done = `(?m)^tps = ([0-9.]+)`, `(?m)^number of transactions actually processed: ([0-9]+)`
	if err := needs(text, tps, done); err != nil {
		return nil, err
	}
	kind, _ := find(text, `(?m)^transaction type: (.*)$`)
	version, _ := find(text, `(?m)^pgbench \(([^) ]*)`)
	r := &bench.Result{
		Source: strings.TrimSpace("pgbench " + version), Workload: "pgbench " + strings.Trim(kind, "<>"), Threads: int(number(text, `(?m)^number of clients: ([0-9]+)`)),
		Transactions: int64(number(text, done)), TransactionsPerSecond: number(text, tps), Rate: number(text, `(?m)^target (?:rate|transaction rate)[^0-9]*([0-9.]+)`),
		Timeline: []bench.Second{}, Latency: bench.Latency{Avg: number(text, `(?m)^latency average = ([0-9.]+) ms`) / 1e3, Stddev: number(text, `(?m)^latency stddev = ([0-9.]+) ms`) / 1e3, Percentiles: []bench.Percentile{}},
	}
	// Newer ones print the rate without and older ones also with the time to connect; the latter comes first.
	if m := regexp.MustCompile(`(?m)^tps = ([0-9.]+) \((?:without|excluding)`).FindStringSubmatch(text); m != nil {
		r.TransactionsPerSecond, _ = strconv.ParseFloat(m[1], 64)
	}
	if r.Seconds = number(text, `(?m)^duration: ([0-9.]+) s`); r.Seconds == 0 && r.TransactionsPerSecond > 0 {
		r.Seconds = float64(r.Transactions) / r.TransactionsPerSecond
	}
	if n := int64(number(text, `(?m)^number of failed transactions: ([0-9]+)`)); n > 0 {
		r.Errors = []bench.ErrorCount{{Label: "failed", Message: "pgbench does not tell which", Count: n}}
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
var tpcBegin = pattern.Lazy(`(?m)^(?:Finished$|Finished: )`)

var tpcLine = pattern.Lazy(`(?m)^\[Summary\] ([A-Z_0-9]+) - (.*)$`)

// tpc reads the summary of go-tpc's tpcc.
func tpc(text string) (*bench.Result, error) {
	r := &bench.Result{Source: "go-tpc", Workload: "tpcc", Timeline: []bench.Second{}, Latency: bench.Latency{Percentiles: []bench.Percentile{}}}
	for _, m := range tpcLine().FindAllStringSubmatch(text, -1) {
		value := func(name string) float64 { return number(m[2], regexp.QuoteMeta(name)+`: ([0-9.]+)`) }
		count := int64(value("Count"))
		if strings.HasSuffix(m[1], "_ERR") {
			r.Errors = append(r.Errors, bench.ErrorCount{Label: strings.TrimSuffix(m[1], "_ERR"), Message: "go-tpc does not tell which", Count: count})
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
