package bench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/oneline"
)

// benchLive shows a run while it goes on: a line a second, or for several together.
type benchLive struct {
	out   io.Writer
	open  bool      // an open loop has a backlog
	every int       // seconds of a line
	tps   []float64 // of the last lines
	sum   bench.Second
	have  int
}

const liveWidth = 24 // lines in the chart

func (l *benchLive) second(x bench.Second) {
	l.sum.Transactions += x.Transactions
	l.sum.Queries += x.Queries
	l.sum.Errors += x.Errors
	l.sum.P95, l.sum.Backlog = max(l.sum.P95, x.P95), max(l.sum.Backlog, x.Backlog)
	if l.have++; l.have < max(l.every, 1) {
		return
	}
	n := int64(l.have)
	s := l.sum
	l.sum, l.have = bench.Second{}, 0
	if l.tps = append(l.tps, float64(s.Transactions/n)); len(l.tps) > liveWidth {
		l.tps = l.tps[1:]
	}
	when := fmt.Sprintf("%5d s", x.Second+1)
	if x.Warmup {
		when = "warm-up"
	}
	p95 := "–"
	if s.Transactions > 0 {
		p95 = digits.Seconds(s.P95)
	}
	line := fmt.Sprintf("%s  %9s tps  %9s qps  p95 %8s  %s errors", when, digits.Thousands(s.Transactions/n), digits.Thousands(s.Queries/n), p95, digits.Thousands(s.Errors))
	if l.open {
		line += fmt.Sprintf("  %s waiting", digits.Thousands(s.Backlog))
	}
	fmt.Fprintf(l.out, "%s  %s\n", line, render.Spark(l.tps))
}

// writeBenchText writes a result for a person.
func writeBenchText(w io.Writer, r *bench.Result) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-13s%s\n", name, fmt.Sprintf(format, args...))
	}
	line(r.Workload, "on %s, %s", r.Server, r.ServerVersion)
	loop := "as fast as they can (closed loop)"
	if r.Rate > 0 {
		loop = digits.Count(r.Rate) + " transactions/s requested (open loop)"
	}
	cut := ""
	if r.Interrupted {
		cut = ", then interrupted"
	}
	line("", "%s, %s; measured %s%s%s", digits.Counted(r.Threads, "thread"), loop, digits.Seconds(r.Seconds), afterWarmup(r), cut)
	if n, ok := r.Parameters["warehouses"].(int64); ok {
		line("", "warehouses: %s", digits.Thousands(n))
	}
	b.WriteByte('\n')
	if r.Seconds == 0 {
		line("nothing", "was measured: it was interrupted before the warm-up was over")
		_, err := io.WriteString(w, b.String())
		return err
	}
	line("transactions", "%14s   %12s/s", digits.Thousands(r.Transactions), digits.Count(r.TransactionsPerSecond))
	line("queries", "%14s   %12s/s   %s reads, %s writes, %s others", digits.Thousands(r.Queries), digits.Count(r.QueriesPerSecond), digits.Thousands(r.Reads), digits.Thousands(r.Writes), digits.Thousands(r.Others))
	writeBenchErrors(line, r)
	b.WriteByte('\n')
	writeBenchLatency(&b, r)
	writeBenchKinds(&b, r)
	writeBenchStatements(&b, r)
	for _, n := range r.Notes {
		b.WriteString(n + "\n")
	}
	b.WriteByte('\n')
	writeBenchTrouble(line, r)
	writeBenchCourse(line, r)
	_, err := io.WriteString(w, b.String())
	return err
}

func afterWarmup(r *bench.Result) string {
	if r.WarmupSeconds == 0 {
		return ""
	}
	s := " after a warm-up of " + digits.Seconds(r.WarmupSeconds)
	if r.WarmupSteady != nil && !*r.WarmupSteady {
		s += " (its limit: it did not get steady)"
	}
	return s
}

// lineFunc writes a name and its text.
type lineFunc func(name, format string, args ...any)

func writeBenchErrors(line lineFunc, r *bench.Result) {
	var sum int64
	for _, e := range r.Errors {
		sum += e.Count
	}
	line("errors", "%14s   %12s/s   %s reconnects", digits.Thousands(sum), digits.Count(float64(sum)/r.Seconds), digits.Thousands(r.Reconnects))
	for _, e := range r.Errors {
		again := ""
		if e.Retried > 0 {
			again = ", tried again"
			if e.Retried < e.Count {
				again = fmt.Sprintf(", %s of them tried again", digits.Thousands(e.Retried))
			}
		}
		line("", "%14s   %s%s: %s", digits.Thousands(e.Count), e.Label, again, oneline.Cut(e.Message, 100))
	}
}

// writeBenchLatency writes the percentiles, in an open loop also of the service time.
func writeBenchLatency(b *strings.Builder, r *bench.Result) {
	if r.Latency.Max == 0 {
		b.WriteString("No transaction ended, so there is no latency.\n")
		return
	}
	t := render.Table{Heads: []string{"", ">LATENCY"}}
	row := func(name string, f func(bench.Latency) float64) {
		cells := []string{name, digits.Seconds(f(r.Latency))}
		if r.ServiceTime != nil {
			cells = append(cells, digits.Seconds(f(*r.ServiceTime)))
		}
		t.Rows = append(t.Rows, cells)
	}
	if r.ServiceTime != nil {
		t.Heads = append(t.Heads, ">SERVICE TIME")
	}
	row("min", func(l bench.Latency) float64 { return l.Min })
	row("average", func(l bench.Latency) float64 { return l.Avg })
	for _, p := range r.Latency.Percentiles {
		row(strconv.FormatFloat(p.Percentile, 'f', -1, 64)+" %", func(l bench.Latency) float64 { return l.At(p.Percentile) })
	}
	row("max", func(l bench.Latency) float64 { return l.Max })
	b.WriteString(strings.Join(t.Lines(0), "\n") + "\n")
	if r.ServiceTime != nil {
		b.WriteString("Latency counts from when a transaction was due, service time from when a session began it.\n")
	}
}

// writeBenchStatements writes the single statements, those that took the most time first.
func writeBenchStatements(b *strings.Builder, r *bench.Result) {
	if len(r.Statements) == 0 {
		return
	}
	t := render.Table{Heads: []string{">CALLS", ">AVERAGE", ">MEDIAN", ">95 %", ">MAX", "STATEMENT"}}
	for _, s := range r.Statements {
		t.Rows = append(t.Rows, []string{digits.Thousands(s.Count), digits.Seconds(s.Latency.Avg), digits.Seconds(s.Latency.At(50)), digits.Seconds(s.Latency.At(95)), digits.Seconds(s.Latency.Max), oneline.Cut(s.SQL, 80)})
	}
	b.WriteString("\n" + strings.Join(t.Lines(0), "\n") + "\n")
}

func writeBenchKinds(b *strings.Builder, r *bench.Result) {
	if slices.ContainsFunc(r.Kinds, func(k bench.KindResult) bool { return k.Recorded != nil }) {
		writeBenchRecorded(b, r)
		return
	}
	if len(r.Kinds) == 0 {
		return
	}
	t := render.Table{Heads: []string{"KIND", ">TRANSACTIONS", ">PER MINUTE", ">MEDIAN", ">95 %", ">MAX"}}
	for _, k := range r.Kinds {
		row := []string{k.Name, digits.Thousands(k.Transactions), digits.Count(k.PerMinute), "–", "–", "–"} // it is unknown how long what never ended takes
		if k.Transactions > 0 {
			row = append(row[:3], digits.Seconds(k.Latency.At(50)), digits.Seconds(k.Latency.At(95)), digits.Seconds(k.Latency.Max))
		}
		t.Rows = append(t.Rows, row)
	}
	b.WriteString("\n" + strings.Join(t.Lines(0), "\n") + "\n")
	writeBenchMinutes(b, r)
	if r.Headline != nil {
		fmt.Fprintf(b, "\n%s\n", r.Headline)
	}
}

// writeBenchMinutes writes how many of each kind ended in each minute, if there is more than one minute, and how the
// kind of the headline fared.
func writeBenchMinutes(b *strings.Builder, r *bench.Result) {
	if len(r.Kinds[0].Minutes) < 2 {
		return
	}
	t := render.Table{Heads: []string{">MINUTE"}}
	first := 0
	for i, k := range r.Kinds {
		t.Heads = append(t.Heads, ">"+strings.ToUpper(k.Name))
		if r.Headline != nil && r.Headline.Kind == k.Name {
			first = i
		}
	}
	t.Heads = append(t.Heads, ">95 %", ">99 %", ">MAX")
	if r.Headline != nil {
		t.Heads = append(t.Heads, ">"+r.Headline.Unit)
	}
	for i, m := range r.Kinds[first].Minutes {
		row := []string{strconv.Itoa(i + 1)}
		for _, k := range r.Kinds {
			row = append(row, digits.Thousands(k.Minutes[i].Transactions))
		}
		row = append(row, digits.Seconds(m.P95), digits.Seconds(m.P99), digits.Seconds(m.Max))
		if r.Headline != nil {
			row = append(row, digits.Count(m.PerMinute))
		}
		t.Rows = append(t.Rows, row)
	}
	fmt.Fprintf(b, "\n%s\nThe last columns are of %s.\n", strings.Join(t.Lines(0), "\n"), r.Kinds[first].Name)
}

// mostOutages is how many outages the text tells one by one.
const mostOutages = 10

// writeBenchTrouble reports outages, backlog, what was not finished, and the ledger.
func writeBenchTrouble(line lineFunc, r *bench.Result) {
	for i, o := range r.Outages {
		name, what := "outage", "nothing succeeded, and there were errors"
		if !o.Errors {
			name, what = "stall", "nothing succeeded, without any error"
		}
		if i == mostOutages {
			line("", "and %s", digits.Plural(len(r.Outages)-mostOutages, "more outage or stall", "more outages and stalls"))
			break
		}
		line(name, "%s from second %s on: %s", digits.Seconds(float64(o.Milliseconds)/1000), digits.Count(o.From), what)
	}
	if r.Unfinished > 0 {
		line("unfinished", "%s given up after the end; the time so far is in the latency", digits.Plural(r.Unfinished, "transaction was", "transactions were"))
	}
	if b := r.Backlog; b != nil {
		line("backlog", "at most %s waited for a free session, the longest %s", digits.Counted(b.Max, "transaction"), digits.Seconds(b.MaxWait))
		if b.NeverStarted > 0 {
			line("", "%s due and never begun; the time waited is in the latency", digits.Plural(b.NeverStarted, "was", "were"))
			line("", "the server (or --threads) cannot do %s transactions/s", digits.Count(r.Rate))
		}
	}
	l := r.Ledger
	switch {
	case l == nil:
	case l.Error != "":
		line("ledger", "NOT READ: %s", l.Error)
	case l.Missing == 0:
		line("ledger", "all of %s acknowledged writes found", digits.Thousands(l.Acknowledged))
	default:
		line("ledger", "LOST: %s of %s acknowledged writes are missing", digits.Thousands(l.Missing), digits.Thousands(l.Acknowledged))
		line("", "the first, as session:number: %s", strings.Join(l.MissingKeys, " "))
	}
	if l != nil && l.Unsure > 0 {
		line("", "%s more found that were never acknowledged", digits.Thousands(l.Unsure))
	}
}

// writeBenchCourse draws the run and says whether it was steady.
func writeBenchCourse(line lineFunc, r *bench.Result) {
	var tps []float64
	for _, s := range r.Timeline {
		if !s.Warmup {
			tps = append(tps, float64(s.Transactions))
		}
	}
	if n := len(tps); n > 1 {
		const width = 60
		bars := tps
		if n > width { // each bar is the mean of some seconds
			bars = nil
			for i := range width {
				part := tps[i*n/width : (i+1)*n/width]
				var sum float64
				for _, v := range part {
					sum += v
				}
				bars = append(bars, sum/float64(len(part)))
			}
		}
		line("course", "%s", render.Spark(bars))
	}
	word := "NO: "
	if r.Steady.Reached {
		word = "yes: "
		if r.Steady.FromSecond > 0 {
			word = fmt.Sprintf("from second %d on: ", r.Steady.FromSecond)
		}
	}
	if r.Steady.Reached || r.Steady.Slope != 0 {
		line("steady", "%sthe line through it moves by %s of its mean", word, digits.Change(r.Steady.Slope))
		for part := range strings.SplitSeq(r.Steady.Test, "; ") {
			line("", "%s", part)
		}
	} else {
		line("steady", "%s", r.Steady.Test)
	}
	line("machine", "%s", r.Use.Line())
	line("client", "%s of processor time, %s a query", digits.Seconds(r.ClientCPUSeconds), digits.Seconds(r.ClientCPUSeconds/math.Max(float64(r.Queries), 1)))
}
