package compare

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/environ"
	"github.com/rissodb/risso/internal/measure/stats"
	"github.com/rissodb/risso/internal/measure/workload"
)

// side makes runs with these throughputs and a p95 and p99 of their inverse.
func side(name string, throughput ...float64) Side {
	s := Side{Name: name, What: name + ".json"}
	for _, x := range throughput {
		slow := 1 / max(x, 1)
		s.Runs = append(s.Runs, &bench.Result{
			Workload: "point_select", Server: "root@db1", Threads: 4, Seconds: 10, TransactionsPerSecond: x, Transactions: int64(10 * x),
			Latency: bench.Latency{Percentiles: []bench.Percentile{{Percentile: 95, Seconds: 4 * slow}, {Percentile: 99, Seconds: 8 * slow}}},
			Began:   time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
		})
	}
	return s
}

func scaled(by float64, v ...float64) []float64 {
	out := make([]float64, len(v))
	for i := range v {
		out[i] = v[i] * by
	}
	return out
}

var ten = []float64{690, 700, 688, 695, 702, 691, 689, 699, 694, 698}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name    string
		a, b    []float64
		outcome string
		words   []string // of throughput
		latency []string // of p95
	}{
		{"faster", ten, scaled(1.58, ten...), Faster, []string{"B is 1.58 times faster, 95 % interval 1.57-1.59 (p < 0.0001)"}, []string{"B's p95 latency is 1.58 times shorter"}},
		{"slower", scaled(1.58, ten...), ten, Slower, []string{"B is 1.58 times slower, 95 % interval 1.57-1.59"}, []string{"1.58 times longer"}},
		{"a little", ten, scaled(1.04, ten...), Faster, []string{"B is 4 % faster, 95 % interval 3.", "4.", "(p "}, []string{"B's p95 latency is 4 % shorter"}},
		{"alike", ten, scaled(1.0005, ten...), Unclear, []string{"no difference can be shown", "with 10 runs of each a difference under", "% would not show"}, []string{"B's p95 latency is 0.9", "times A's (95"}},
		{"three", ten[:3], scaled(3, ten[:3]...), TooFew, []string{"too few runs: with 3 and 3 the smallest possible p is 0.1", "make at least 4 of each"}, nil},
		{"one", ten[:1], ten, TooFew, []string{"too few runs: 1 of A and 10 of B", "at least 4"}, nil},
		{"four", ten[:4], scaled(3, ten[:4]...), Faster, []string{"B is 3.00 times faster", "(p 0.029)"}, nil},
		{"nothing once", scaled(1.58, ten...), append([]float64{0}, ten[1:]...), Slower, []string{"B is 1.58 times slower"}, []string{"longer"}},
		{"nothing often", ten, append(make([]float64, 5), ten[5:]...), Unknown, []string{"cannot be compared: B did nothing at all in 5 of 10 runs"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Judge(side("A", c.a...), side("B", c.b...), Terms{Seed: 1})
			v := r.Verdicts[0]
			if v.Outcome != c.outcome {
				t.Errorf("outcome %q, want %q", v.Outcome, c.outcome)
			}
			for i, want := range [][]string{c.words, c.latency} {
				for _, w := range want {
					if !strings.Contains(r.Verdicts[i].Words, w) {
						t.Errorf("%q lacks %q", r.Verdicts[i].Words, w)
					}
				}
			}
			if len(r.Verdicts) != 3 || r.Verdicts[2].Measure != "p99 latency" {
				t.Errorf("verdicts: got %+v; want len(r.Verdicts) 3, r.Verdicts[2].Measure \"p99 latency\"", r.Verdicts)
			}
			// Every form must hold every verdict, and JSON must be readable again.
			var text, markdown bytes.Buffer
			if err := errors.Join(r.Text(&text), r.Markdown(&markdown)); err != nil {
				t.Fatal(err)
			}
			for _, v := range r.Verdicts {
				core := v.Words[strings.IndexByte(v.Words, ' '):]
				if !strings.Contains(text.String(), core) || !strings.Contains(markdown.String(), escape(core)) {
					t.Errorf("%q is missing in text or Markdown; want %q in it, escape(core) in it:\n%s\n%s", core, core, text.String(), markdown.String())
				}
			}
			b, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			var back Report
			if err := json.Unmarshal(b, &back); err != nil || len(back.A.Runs) != len(c.a) || back.Verdicts[0].Words != v.Words {
				t.Errorf("JSON read again: got %v, %+v; want len(back.A.Runs) %v, back.Verdicts[0].Words %v", err, back.Verdicts, len(c.a), v.Words)
			}
		})
	}
}

// TestPairs: a machine that gets slower and slower hides a difference from the medians, not from the pairs.
func TestPairs(t *testing.T) {
	var x, y []float64
	for i := range 10 {
		slow := 1 / (1 + float64(i))
		x, y = append(x, 1000*slow), append(y, (1100+float64(i))*slow)
	}
	a, b := side("A", x...), side("B", y...)
	if v := Judge(a, b, Terms{Seed: 1}).Verdicts[0]; v.Pairs != 0 || v.Outcome != Unclear || v.Test != stats.TestRanks {
		t.Errorf("sides that are not paired: %+v; want Pairs 0, Outcome Unclear, Test stats.TestRanks", v)
	}
	a.Paired, b.Paired = true, true
	for i, v := range Judge(a, b, Terms{Seed: 1}).Verdicts { // of latency too, where less is better
		if v.Pairs != 10 || v.PairsB != 10 || v.Outcome != Faster || v.Test != stats.TestPairs || !(v.Detectable > 1 && v.Detectable < 1.02) ||
			!strings.Contains(v.Words, "(p 0.002); B did better in 10 of 10 pairs of neighbouring runs") {
			t.Errorf("%d: got %+v; want Pairs 10, PairsB 10, Outcome Faster, Test stats.TestPairs, (v.Detectable > 1 && v.Detectable < 1.02) true, \"(p 0.002); B did better in 10 of 10 pairs of neighbouring runs\" in Words",
				i, v)
		}
	}
	// An interrupted comparison has one run more of a side.
	a.Runs = append(a.Runs, a.Runs[0])
	if v := Judge(a, b, Terms{Seed: 1}).Verdicts[0]; v.Outcome != Faster || v.RunsA != 10 {
		t.Errorf("with a run without its pair: got %+v; want Outcome Faster, RunsA 10", v)
	}
	// So few pairs that no pair test tells anything are judged by ranks.
	a.Runs, b.Runs = a.Runs[:5], side("B", scaled(9, x[:5]...)...).Runs
	if v := Judge(a, b, Terms{Seed: 1}).Verdicts[0]; v.Test != stats.TestRanks || v.Outcome != Faster {
		t.Errorf("five pairs: got %+v; want Test stats.TestRanks, Outcome Faster", v)
	}
}

// TestAlike: what differs by next to nothing is proven alike within a margin, what is on its edge is not.
func TestAlike(t *testing.T) {
	a, b, c := side("A", ten...), side("B", scaled(1.002, ten...)...), side("B", scaled(1.03, ten...)...)
	a.Paired, b.Paired, c.Paired = true, true, true
	b.Runs[3].TransactionsPerSecond *= 1.001
	v := Judge(a, b, Terms{Seed: 1, Margin: 0.03}).Verdicts[0]
	if v.Outcome != Alike || !strings.Contains(v.Words, "alike within 3 %: B is 1.002 to 1.00") {
		t.Errorf("got %+v; want Outcome Alike, \"alike within 3 %%: B is 1.002 to 1.00\" in Words", v)
	}
	if v := Judge(a, c, Terms{Seed: 1, Margin: 0.03}).Verdicts[0]; v.Outcome != Faster {
		t.Errorf("got %+v, want Outcome Faster", v)
	}
}

// use is a look at a machine of two processors of which others took some.
func use(foreign float64) *environ.Use {
	return &environ.Use{CPUs: 2, Client: 0.3, Server: new(0.5), Foreign: new(foreign), Steal: new(0.0)}
}

// TestDisturbed: a verdict that others may have made is withheld; one that they cannot have made is given, with them.
func TestDisturbed(t *testing.T) {
	for _, c := range []struct {
		name             string
		by               float64 // B over A
		foreignA         float64
		foreignB         float64
		outcome          string
		words            string
		withoutForeign   bool
		clientWaits      float64 // of A
		elsewhere, noUse bool
	}{
		{name: "quiet", by: 1.35, foreignA: 0.02, foreignB: 0.01, outcome: Faster, words: "B is 1.35 times faster"},
		{name: "A alone", by: 1.35, foreignA: 1.2, foreignB: 0.02, outcome: Withheld, words: "a thread of A could count on 40 % of a processor, one of B on 99 %"},
		{name: "B alone", by: 0.7, foreignA: 0, foreignB: 1, outcome: Withheld, words: "seem to say (B is 1.43 times slower"},
		{name: "in spite of it", by: 1.35, foreignA: 0, foreignB: 1, outcome: Faster, words: "although B had less of the machine"},
		{name: "hidden", by: 1.0005, foreignA: 1, foreignB: 0, outcome: Unclear, words: "the sides were not disturbed alike"},
		{name: "both", by: 1.35, foreignA: 1, foreignB: 1, outcome: Faster, words: "B is 1.35 times faster"},
		{name: "the queue", by: 1.35, withoutForeign: true, clientWaits: 0.6, outcome: Withheld, words: "A's client had a processor for 40 % of the time"},
		{name: "elsewhere", by: 1.35, elsewhere: true, outcome: Faster, words: "B is 1.35"},
		{name: "nobody looked", by: 1.35, noUse: true, outcome: Faster, words: "B is 1.35"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := side("A", ten...), side("B", scaled(c.by, ten...)...)
			if c.name == "hidden" {
				for i := range b.Runs {
					b.Runs[i].TransactionsPerSecond *= 1 + 0.004*float64(i%3-1)
				}
			}
			for i := range a.Runs {
				a.Runs[i].Use, b.Runs[i].Use = use(c.foreignA+0.01*float64(i%3)), use(c.foreignB+0.01*float64(i%2))
				for j, u := range []*environ.Use{a.Runs[i].Use, b.Runs[i].Use} {
					u.Elsewhere = c.elsewhere
					if c.withoutForeign {
						u.Foreign, u.ClientWait = nil, new(c.clientWaits*float64(1-j))
					}
				}
				if c.noUse {
					a.Runs[i].Use, b.Runs[i].Use = nil, nil
				}
			}
			r := Judge(a, b, Terms{Seed: 1})
			if v := r.Verdicts[0]; v.Outcome != c.outcome || !strings.Contains(v.Words, c.words) || v.Given() == (v.Outcome == Withheld) {
				t.Errorf("%s: got %s; want v.Outcome %s, %q in it, v.Given() not %v", v.Outcome, v.Words, c.outcome, c.words, v.Outcome == Withheld)
			}
			all := strings.Join(r.Notes, "\n")
			if c.elsewhere != strings.Contains(all, "the server's machine was not observed") || c.noUse != strings.Contains(all, "is not known for all runs") {
				t.Errorf("notes: got %s; want c.elsewhere strings.Contains(all, \"the server's machine was not observed\"), c.noUse strings.Contains(all, \"is not known for all runs\")",
					all)
			}
			var text, markdown bytes.Buffer
			if err := errors.Join(r.Text(&text), r.Markdown(&markdown)); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(text.String(), "client 0.3,"); !c.noUse && (n != 20 || strings.Count(markdown.String(), "client 0.3,") != 20) {
				t.Errorf("%d lines of trust:\n%s", n, text.String())
			}
		})
	}
}

// TestWhy: what the server did differently for each transaction is next to the verdict, what it did the same is not.
func TestWhy(t *testing.T) {
	a, b := side("A", ten...), side("B", scaled(2, ten...)...)
	for i := range a.Runs {
		x, y := a.Runs[i], b.Runs[i]
		x.Counted = map[string]int64{"Innodb_os_log_fsyncs": x.Transactions + int64(i), "Innodb_row_lock_waits": 0, "Innodb_pages_written": 500}
		y.Counted = map[string]int64{"Innodb_os_log_fsyncs": 10 + int64(i), "Innodb_row_lock_waits": 0, "Innodb_pages_written": 1000}
	}
	r := Judge(a, b, Terms{Seed: 1})
	if len(r.Why) != 1 || r.Why[0].Counter != "Innodb_os_log_fsyncs" || math.Abs(r.Why[0].A-1) > 0.01 || r.Why[0].B > 0.01 {
		t.Fatalf("got %+v; want len(r.Why) 1, r.Why[0].Counter \"Innodb_os_log_fsyncs\", math.Abs(r.Why[0].A - 1) at most 0.01, r.Why[0].B at most 0.01",
			r.Why)
	}
	var text bytes.Buffer
	if err := r.Text(&text); err != nil || !strings.Contains(text.String(), "flushes of the redo log: 1 a transaction with A, 0.00") {
		t.Errorf("got %v; want \"flushes of the redo log: 1 a transaction with A, 0.00\" in it\n%s", err, text.String())
	}
}

// TestPrecise goes on until it is sure, and no longer.
func TestPrecise(t *testing.T) {
	p := Precise{Within: 0.03, Most: 60, Seed: 1}
	pairs, alpha := p.Looks()
	if pairs[0] != 8 || pairs[len(pairs)-1] != 60 || len(alpha) != len(pairs) {
		t.Fatalf("got %v %v; want pairs[0] 8, pairs[len(pairs)-1] 60, len(alpha) %v", pairs, alpha, len(pairs))
	}
	rng := rand.New(rand.NewPCG(1, 1))
	ended := func(by, scatter float64) (string, int) {
		a, b := Side{Name: "A", Paired: true}, Side{Name: "B", Paired: true}
		for i, n := range pairs {
			for len(a.Runs) < n {
				weather := 700 * math.Exp(0.2*rng.NormFloat64())
				a.Runs = append(a.Runs, side("A", weather*math.Exp(scatter*rng.NormFloat64())).Runs...)
				b.Runs = append(b.Runs, side("B", by*weather*math.Exp(scatter*rng.NormFloat64())).Runs...)
			}
			r, done := p.Look(a, b, alpha[i])
			if done || n == p.Most {
				if p.Tell(r, done); done == strings.Contains(r.Notes[0], "was not reached") {
					t.Errorf("got %q, want done not strings.Contains(r.Notes[0], \"was not reached\")", r.Notes)
				}
				return r.Verdicts[0].Outcome, n
			}
		}
		return "", 0
	}
	for _, c := range []struct {
		by, scatter float64
		outcome     string
		from, to    int
	}{{1, 0.005, Alike, 8, 12}, {1.2, 0.005, Faster, 8, 12}, {0.8, 0.03, Slower, 12, 40}, {1, 0.2, Unclear, 60, 60}} {
		if got, n := ended(c.by, c.scatter); got != c.outcome || n < c.from || n > c.to {
			t.Errorf("%+v: %s after %d pairs", c, got, n)
		}
	}
	order, err := Order(OrderRandom, 20, 1)
	if err != nil {
		t.Fatal(err)
	}
	quiet := side("A", scaled(1, append(ten, ten...)...)...)
	quiet.Paired = true
	other := side("A", append(scaled(1.001, ten...), scaled(0.999, ten...)...)...)
	other.Paired = true
	if s := Same(quiet, other, order, OrderRandom, 10, 1); s.P < 0.05 || s.Visible <= 1 || s.FalseRate < 0 || !strings.Contains(s.Words, "no difference is shown") || !strings.Contains(s.Words, "with 10 pairs a difference under") {
		t.Errorf("got %+v; want P at least 0.05, Visible more than 1, FalseRate at least 0, \"no difference is shown\" in Words, \"with 10 pairs a difference under\" in Words",
			s)
	}
	moved := side("A", scaled(1.1, append(ten, ten...)...)...)
	moved.Paired = true
	if s := Same(quiet, moved, order, OrderRandom, 10, 1); !strings.Contains(s.Words, "A DIFFERENCE OF 10 % IS TOLD THAT IS NONE") {
		t.Errorf("got %+v, want \"A DIFFERENCE OF 10 %% IS TOLD THAT IS NONE\" in it", s)
	}
	if s := Same(Side{}, Side{}, nil, OrderRandom, 10, 1); !strings.Contains(s.Words, "too few") {
		t.Errorf("got %+v, want \"too few\" in it", s)
	}
}

func TestRateIsNoResult(t *testing.T) {
	a, b := side("A", ten...), side("B", ten...)
	for i := range a.Runs {
		a.Runs[i].Rate, b.Runs[i].Rate = 500, 500
	}
	r := Judge(a, b, Terms{Seed: 1})
	if len(r.Verdicts) != 2 || r.Judged != "p95 latency" || !strings.Contains(strings.Join(r.Notes, " "), "the rate of transactions was given") {
		t.Errorf("got %+v, %q; want len(r.Verdicts) 2, r.Judged \"p95 latency\", \"the rate of transactions was given\" in strings.Join(r.Notes, \" \")",
			r.Verdicts, r.Notes)
	}
	var text, markdown strings.Builder
	const says = "The verdict that counts (--fail-if, --precise) is the one on p95 latency, because the rate of transactions was given."
	if err := errors.Join(r.Text(&text), r.Markdown(&markdown)); err != nil || !strings.Contains(text.String(), says) || !strings.Contains(markdown.String(), says) {
		t.Errorf("got %v; want %q in it, %q in it\n%s\n%s", err, says, says, text.String(), markdown.String())
	}
}

func TestNotes(t *testing.T) {
	a, b := side("A", ten...), side("B", ten...)
	a.Runs[2].Errors = []bench.ErrorCount{{Label: "1213", Count: 7}}
	b.Runs[0].Interrupted = true
	for i := range 12 { // a ramp
		b.Runs[1].Timeline = append(b.Runs[1].Timeline, bench.Second{Second: i, Transactions: int64(100 + 50*i)})
	}
	b.Runs[1].Seconds = 12
	all := strings.Join(Judge(a, b, Terms{Seed: 1}).Notes, "\n")
	for _, want := range []string{"A: 7 transactions failed in 1 of 10 runs (errors 1213)", "B: 1 of 10 runs interrupted", "B: 1 of 10 runs not steady"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q lacks %q", all, want)
		}
	}
}

func TestDifferences(t *testing.T) {
	a, b := side("A", ten...), side("B", ten...)
	for i := range b.Runs {
		b.Runs[i].Threads = 8
		b.Runs[i].ServerVersion, a.Runs[i].ServerVersion = "11.4.2", "10.11.6"
		a.Runs[i].Parameters = map[string]any{"tables": 4.0, "threads": 4.0, "engine": "InnoDB"}
		b.Runs[i].Parameters = map[string]any{"tables": 8.0, "threads": 8.0}
		a.Runs[i].Environment = &environ.Environment{Client: environ.Client{}, Server: environ.Server{Flavour: "mariadb", Changed: []environ.Variable{{Name: "sort_buffer_size", Value: "262144"}, {Name: "sync_binlog", Value: "1"}}}}
		b.Runs[i].Environment = &environ.Environment{Client: environ.Client{}, Server: environ.Server{Flavour: "mysql", Changed: []environ.Variable{{Name: "sort_buffer_size", Value: "1048576"}, {Name: "sync_binlog", Value: "0"}}}}
	}
	b.Settings = []Setting{{Name: "sync_binlog", Value: "0"}}
	got := map[string][2]string{}
	for _, d := range Judge(a, b, Terms{Seed: 1}).Differences {
		got[d.What] = [2]string{d.A, d.B}
	}
	want := map[string][2]string{
		"threads": {"4", "8"}, "parameter tables": {"4", "8"}, "parameter engine": {"InnoDB", "(none)"},
		"server": {"mariadb", "mysql"}, "sort_buffer_size": {"262144", "1048576"},
	}
	if len(got) != len(want) {
		t.Errorf("got %v, want length %v", got, len(want))
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s: %v, want %v", k, got[k], v)
		}
	}
}

// TestApart holds that of long values the place where they part is shown.
func TestApart(t *testing.T) {
	a, b := apart(strings.Repeat("x", 300)+"A", strings.Repeat("x", 300)+"B")
	if !strings.HasSuffix(a, "A") || !strings.HasSuffix(b, "B") || len([]rune(a)) > longValue+2 {
		t.Errorf("got %q, %q; want \"A\" at its end, \"B\" at its end, len([]rune(a)) at most %v", a, b, longValue+2)
	}
}

func TestReadSide(t *testing.T) {
	dir := t.TempDir()
	one := `{"workload":"x","threads":1,"began":"2026-11-21T12:00:00Z","transactions_per_second":5,"latency":{"percentiles":[{"percentile":95,"seconds":0.1}]}}`
	for name, text := range map[string]string{
		"one.json": one, "lines.json": one + "\n" + one, "list.json": "[" + one + "," + one + "," + one + "]", "runs.json": `{"runs":[` + one + `]}`,
		"broken.txt": one + "{", "other.txt": `{"a":1}`, "empty.txt": "", "text.txt": "hello",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for paths, n := range map[string]int{at("one.json"): 1, at("lines.json"): 2, at("list.json"): 3, at("runs.json"): 1, dir: 7, at("one.json") + "," + at("list.json"): 4} {
		s, err := ReadSide("A", paths)
		if err != nil || len(s.Runs) != n {
			t.Errorf("%s: got %d runs, %v; want %d", paths, len(s.Runs), err, n)
			continue
		}
		if r := s.Runs[0]; r.TransactionsPerSecond != 5 || r.Latency.At(95) != 0.1 {
			t.Errorf("%s: got %+v; want TransactionsPerSecond 5, Latency.At(95) 0.1", paths, r)
		}
	}
	// Names that mean something to a shell, and runs that are alike in every figure.
	const slap = "\tAverage number of seconds to run all queries: 0.021 seconds\n\tNumber of clients running queries: 20\n\tAverage number of queries per client: 50\n\n"
	odd := filepath.Join(dir, "of [1]*, two")
	if err := os.Mkdir(odd, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a.json": one, "b.txt": slap + slap} {
		if err := os.WriteFile(filepath.Join(odd, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := ReadSide("A", odd); err != nil || len(s.Runs) != 1 {
		t.Errorf("%s: got %d runs, %v; want 1", odd, len(s.Runs), err)
	}
	s, err := ReadSide("A", filepath.Join(odd, "b.txt"))
	if err != nil || len(s.Runs) != 2 {
		t.Fatalf("got %d runs, %v; want 2", len(s.Runs), err)
	}
	if err := eachOnce(s, Side{Name: "B"}); err != nil {
		t.Error(err)
	}
	again, err := ReadSide("B", filepath.Join(odd, "b.txt"))
	if err != nil || !errors.Is(eachOnce(s, again), ErrTwice) {
		t.Errorf("the same file for both: got %v, %v; want ErrTwice", err, eachOnce(s, again))
	}
	for _, bad := range []string{"broken.txt", "other.txt", "empty.txt", "text.txt", "missing.json"} {
		if _, err := ReadSide("A", at(bad)); !errors.Is(err, workload.ErrUsage) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v; want workload.ErrUsage, no \"\\n\" in the error", bad, err)
		}
	}
}

func TestOrder(t *testing.T) {
	o, err := Order(OrderABBA, 4, 1)
	if err != nil || OrderString(o) != "ABBAABBA" {
		t.Errorf("got %s, %v; want \"ABBAABBA\"", OrderString(o), err)
	}
	a, _ := Order(OrderRandom, 50, 1)
	again, _ := Order(OrderRandom, 50, 1)
	b, _ := Order(OrderRandom, 50, 2)
	if OrderString(a) != OrderString(again) || OrderString(a) == OrderString(b) || strings.Count(OrderString(a), "A") != 50 {
		t.Errorf("random orders: want OrderString(a) OrderString(again), OrderString(a) not OrderString(b), strings.Count(OrderString(a), \"A\") 50:\n%s\n%s\n%s",
			OrderString(a), OrderString(again), OrderString(b))
	}
	if _, err := Order("baab", 4, 1); !errors.Is(err, workload.ErrUsage) {
		t.Errorf("got %v, want workload.ErrUsage", err)
	}
}

func TestParseSetting(t *testing.T) {
	for text, want := range map[string]string{
		"Sync_Binlog=1": "SET /* risso bench */ GLOBAL sync_binlog = 1", "a=16M": "SET /* risso bench */ GLOBAL a = 16777216",
		"sql_mode=": "SET /* risso bench */ GLOBAL sql_mode = ''", "a=it's": "SET /* risso bench */ GLOBAL a = 'it''s'", "a=-1.5": "SET /* risso bench */ GLOBAL a = -1.5",
		"c.d=x=y": "SET /* risso bench */ GLOBAL c.d = 'x=y'",
	} {
		s, err := ParseSetting(text)
		if err != nil || s.statement(false) != want {
			t.Errorf("%s: got %q, %v; want %q", text, s.statement(false), err, want)
		}
	}
	for _, bad := range []string{"", "=1", "sync_binlog", "a b=1", "a;drop=1", "@@x=1", "a=99999999999999999999G"} {
		if _, err := ParseSetting(bad); !errors.Is(err, workload.ErrUsage) {
			t.Errorf("%q: got %v, want workload.ErrUsage", bad, err)
		}
	}
}

// TestTurns: runs of files are judged as pairs if their times show that they were, and else it is said how little that proves.
func TestTurns(t *testing.T) {
	at := func(name string, minutes ...float64) Side {
		s := side(name, scaled(map[string]float64{"A": 1, "B": 1.1}[name], ten[:len(minutes)]...)...)
		for i, m := range minutes {
			s.Runs[i].Began = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Add(time.Duration(m * float64(time.Minute)))
		}
		return s
	}
	for _, c := range []struct {
		name  string
		a, b  Side
		test  string
		notes string // contained in the notes; "-": none of them speaks of turns
	}{
		{"in turns", at("A", 0, 0.6, 0.8, 1.4, 1.6, 2.2), at("B", 0.2, 0.4, 1, 1.2, 1.8, 2), stats.TestPairs, "-"},
		{"in turns, not in order", at("A", 2.2, 0.6, 0.8, 1.4, 1.6, 0), at("B", 2, 0.4, 1, 1.2, 1.8, 0.2), stats.TestPairs, "-"},
		{"one more", at("A", 0, 0.6, 0.8, 1.4, 1.6, 2.2, 2.4), at("B", 0.2, 0.4, 1, 1.2, 1.8, 2), stats.TestPairs, "-"},
		{"A always first", at("A", 0, 1, 2, 3, 4, 5), at("B", 0.5, 1.5, 2.5, 3.5, 4.5, 5.5), stats.TestPairs, "A ran first in all 6 pairs"},
		{"one side, then the other", at("A", 0, 1, 2, 3, 4, 5), at("B", 10, 11, 12, 13, 14, 15), stats.TestRanks, "all runs of A were made before those of B"},
		{"the other first", at("A", 10, 11, 12, 13, 14, 15), at("B", 0, 1, 2, 3, 4, 5), stats.TestRanks, "all runs of B were made before those of A"},
		{"days of their own", at("A", 0, 1440, 2880, 4320, 5760, 7200), at("B", 600, 2040, 3480, 4920, 6360, 7800), stats.TestRanks, "the runs were not made in turns"},
		{"two of a side", at("A", 0, 0.2, 0.4, 1.4, 1.6, 2.2), at("B", 0.6, 0.8, 1, 1.2, 1.8, 2), stats.TestRanks, "the runs were not made in turns"},
		{"at the same time", at("A", 0, 0, 0, 0, 0, 0), at("B", 0, 0, 0, 0, 0, 0), stats.TestRanks, "not judged as pairs"},
	} {
		r := Judge(c.a, c.b, Terms{Seed: 1})
		notes := strings.Join(r.Notes, " ")
		if v := r.Verdicts[0]; v.Test != c.test || v.Outcome != Faster || (c.notes == "-") == (strings.Contains(notes, "turns") || strings.Contains(notes, "alternates runs") || strings.Contains(notes, "ran first")) || c.notes != "-" && !strings.Contains(notes, c.notes) {
			t.Errorf("%s: %s, %s, %s", c.name, v.Test, v.Outcome, notes)
		}
		for i, run := range r.A.Runs { // pairs are put in order
			if c.test == stats.TestPairs && i < len(r.B.Runs) && run.Began.Sub(r.B.Runs[i].Began).Abs() > time.Minute {
				t.Errorf("%s: pair %d began at %v and %v", c.name, i, run.Began, r.B.Runs[i].Began)
			}
		}
	}
	theirs := at("A", 0, 0.6, 0.8, 1.4, 1.6, 2.2)
	theirs.Runs[0].Source = "sysbench 1.0.20"
	if r := Judge(theirs, at("B", 0.2, 0.4, 1, 1.2, 1.8, 2), Terms{Seed: 1}); r.Verdicts[0].Test != stats.TestRanks || !strings.Contains(strings.Join(r.Notes, " "), "it is unknown when the runs were made") {
		t.Errorf("got %q; want r.Verdicts[0].Test stats.TestRanks, \"it is unknown when the runs were made\" in strings.Join(r.Notes, \" \")", r.Notes)
	}
}

// TestPreciseWithheld: a verdict that was withheld is no precision that was not reached.
func TestPreciseWithheld(t *testing.T) {
	p := Precise{Within: 0.05, Most: 8, Seed: 1}
	a, b := side("A", ten[:8]...), side("B", scaled(1.3, ten[:8]...)...)
	a.Paired, b.Paired = true, true
	for i := range a.Runs {
		a.Runs[i].Use = &environ.Use{CPUs: 2, Foreign: new(1.0), Crowd: new(6.0)}
		b.Runs[i].Use = &environ.Use{CPUs: 2, Foreign: new(0.0), Crowd: new(0.0)}
	}
	r, done := p.Look(a, b, 0.05)
	p.Tell(r, done)
	v := r.Verdicts[0]
	if done || v.Outcome != Withheld || v.Seems != Faster || !strings.Contains(v.Reason, "not disturbed alike") || strings.Contains(r.Notes[0], "was not reached") ||
		!strings.Contains(r.Notes[0], "the verdict on transactions per second was withheld: the sides were not disturbed alike: with other programs running a thread of A could count on") {
		t.Errorf("%v %+v\n%s", done, v, r.Notes[0])
	}
	a.Runs, b.Runs = a.Runs[:1], b.Runs[:1]
	r, done = p.Look(a, b, 0.05)
	if p.Tell(r, done); done || !strings.Contains(r.Notes[0], "5 % was not reached with 1 pair: too few runs") {
		t.Errorf("got %v %q; want done false, \"5 %% was not reached with 1 pair: too few runs\" in r.Notes[0]", done, r.Notes)
	}
}

// TestEachOnce: a run that is on both sides, or twice on one, is refused; another run with the same figures is not.
func TestEachOnce(t *testing.T) {
	run := func(minute int) *bench.Result {
		return &bench.Result{Workload: "point_select", Began: time.Date(2026, 11, 1, 10, minute, 0, 0, time.UTC), Transactions: 10, Queries: 10}
	}
	for _, c := range []struct {
		a, b []*bench.Result
		says string
	}{
		{[]*bench.Result{run(0)}, []*bench.Result{run(0)}, "began 2026-11-01 10:00:00 UTC) is on both sides"},
		{[]*bench.Result{run(0), run(1), run(2), run(3)}, []*bench.Result{run(4), run(3)}, "10:03:00 UTC) is on both sides"},
		{[]*bench.Result{run(0), run(1), run(0)}, []*bench.Result{run(2)}, "is given twice as a run of A"},
		{[]*bench.Result{run(0)}, []*bench.Result{run(1)}, ""},
	} {
		err := Comparable(Side{Name: "A", Runs: c.a}, Side{Name: "B", Runs: c.b})
		if c.says == "" && err != nil || c.says != "" && (!errors.Is(err, workload.ErrUsage) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%q: %v", c.says, err)
		}
	}
}
