package report

import (
	"encoding/csv"
	"io"
	"strconv"
	"time"
)

// The percentiles that have a column.
var columns = []float64{50, 75, 90, 95, 99, 99.9, 99.99}

// CSV writes one line for each run. Times are seconds.
func CSV(w io.Writer, runs []Run) error {
	out := csv.NewWriter(w)
	head := []string{"name", "workload", "server", "server_version", "began", "threads", "rate", "warmup_seconds", "seconds", "interrupted", "transactions", "queries",
		"reads", "writes", "others", "transactions_per_second", "queries_per_second", "latency_min", "latency_avg", "latency_stddev", "latency_max"}
	for _, p := range columns {
		head = append(head, "latency_"+percentileName(p))
	}
	head = append(head, "errors", "reconnects", "outages", "outage_milliseconds", "ledger_acknowledged", "ledger_missing", "client_cpu_seconds")
	if err := out.Write(head); err != nil {
		return err
	}
	for _, r := range runs {
		row := []string{r.Name, r.Workload, r.Server, r.ServerVersion, r.Began.UTC().Format(time.RFC3339Nano), strconv.Itoa(r.Threads), float(r.Rate), float(r.WarmupSeconds), float(r.Seconds),
			strconv.FormatBool(r.Interrupted), integer(r.Transactions), integer(r.Queries), integer(r.Reads), integer(r.Writes), integer(r.Others),
			float(r.TransactionsPerSecond), float(r.QueriesPerSecond), float(r.Latency.Min), float(r.Latency.Avg), float(r.Latency.Stddev), float(r.Latency.Max)}
		for _, p := range columns {
			cell := ""
			for _, q := range r.Latency.Percentiles {
				if q.Percentile == p {
					cell = float(q.Seconds)
				}
			}
			row = append(row, cell)
		}
		acknowledged, missing := "", "" // without a ledger nothing is known of lost writes
		if r.Ledger != nil {
			acknowledged, missing = integer(r.Ledger.Acknowledged), integer(r.Ledger.Missing)
		}
		row = append(row, integer(r.failures()), integer(r.Reconnects), strconv.Itoa(len(r.Outages)), integer(r.outageMS()), acknowledged, missing, float(r.ClientCPUSeconds))
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// TimelineCSV writes one line for each second of each run; run counts from 1, seconds of the warm-up are below zero.
func TimelineCSV(w io.Writer, runs []Run) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"name", "run", "second", "time", "warmup", "transactions", "queries", "errors", "latency_p50", "latency_p95", "latency_p99", "latency_max", "backlog"}); err != nil {
		return err
	}
	for i, r := range runs {
		for _, s := range r.Timeline {
			at := r.Began.Add(time.Duration(s.Second) * time.Second).UTC()
			row := []string{r.Name, strconv.Itoa(i + 1), strconv.Itoa(s.Second), at.Format(time.RFC3339Nano), strconv.FormatBool(s.Second < 0), integer(s.Transactions), integer(s.Queries), integer(s.Errors),
				float(s.P50), float(s.P95), float(s.P99), float(s.Max), integer(s.Backlog)}
			if err := out.Write(row); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

func float(v float64) string { return strconv.FormatFloat(v, 'g', 9, 64) }

func integer(n int64) string { return strconv.FormatInt(n, 10) }
