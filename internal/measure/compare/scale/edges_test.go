package scale

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/stats"
	"github.com/rissodb/risso/internal/measure/workload"
)

// TestJudge: what makes a law doubted, at its limits.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		rSquared, patternP float64
		errs               []float64
		want               string // what the doubts speak of
	}{
		{.97, .05, []float64{.15, -.15}, ""}, {.9699, .05, []float64{0}, "R² is 0.970, below 0.970"}, {.97, .0499, []float64{0}, "2 runs of one sign over 1 thread counts"}, {1, .09, []float64{0}, ""}, {1, 1, []float64{.01, .151, .02}, "with 2 threads"}, {1, 1, []float64{.01, -.2, .16}, "with 2 threads"},
		{1, 1, []float64{.29}, "with 1 thread"}, {.5, .01, []float64{.5}, "R²|pattern|with 1 thread"},
	} {
		r := &Report{Law: &Law{RSquared: c.rSquared, PatternP: c.patternP, Stretches: 2}}
		for i, e := range c.errs {
			r.Points = append(r.Points, Measured{Threads: i + 1, Median: 100, Law: 100 * (1 + e), Error: e})
		}
		r.judge()
		var want []string
		if c.want != "" {
			want = strings.Split(c.want, "|")
		}
		if len(r.Law.Doubts) != len(want) || r.Law.Fits != (len(want) == 0) {
			t.Errorf("R² %v, p %v, errors %v: got doubts %q, fits %v; want %q", c.rSquared, c.patternP, c.errs, r.Law.Doubts, r.Law.Fits, want)
			continue
		}
		for i, w := range want {
			if !strings.Contains(r.Law.Doubts[i], w) {
				t.Errorf("R² %v, p %v, errors %v: got %q, want %q", c.rSquared, c.patternP, c.errs, r.Law.Doubts[i], w)
			}
		}
	}
}

// TestChosen: which thread counts are predicted by default.
func TestChosen(t *testing.T) {
	for _, c := range []struct {
		ran  []int
		peak float64 // 0: none
		want string
	}{
		{[]int{1, 2, 4, 8}, 0, "3 6 16"}, {[]int{1, 3}, 0, "2 6"}, {[]int{4, 6}, 0, "5 12"}, {[]int{4, 5}, 0, "10"}, {[]int{10, 14}, 0, "28"}, {[]int{10, 15}, 0, "12 30"}, {[]int{2, 4}, 3.4, "3 3 8"}, {[]int{1, 2}, 2.4, "4"}, {[]int{1, 2}, 2.6, "3 4"},
		{[]int{1, 2}, 7.9, "8 4"}, {[]int{1, 2}, 8, "4"}, {[]int{2, 3}, 1, "1 6"}, {[]int{2, 3}, 1.4, "1 6"}, {[]int{4}, 0, "8"},
	} {
		r := &Report{Law: &Law{}}
		for _, n := range c.ran {
			r.Points = append(r.Points, Measured{Threads: n})
		}
		if c.peak > 0 {
			r.Law.Peak = &c.peak
		}
		if got := strings.Trim(fmt.Sprint(r.chosen()), "[]"); got != c.want {
			t.Errorf("ran %v, peak %v: got %s, want %s", c.ran, c.peak, got, c.want)
		}
	}
}

// TestLawWords: what is said about coefficients at their limits.
func TestLawWords(t *testing.T) {
	peak := func(v float64) *float64 { return &v }
	for _, c := range []struct {
		change func(*Law)
		want   string
		not    string
	}{
		{func(l *Law) { l.Sigma = 0 }, "σ 0: there is no sign of waiting", "of the work"}, {func(l *Law) { l.Sigma = 1e-9 }, "σ 0: there is no sign of waiting", "of the work"}, {func(l *Law) { l.Sigma = 1.5e-9 }, "of the work is done by one thread at a time", "σ 0:"}, {func(l *Law) { l.Sigma = .05 }, "throughput below 20,000 a second, 20.0 times one thread's", "σ 0:"},
		{func(l *Law) { l.Sigma = 1 }, "above 1, which is impossible for a share of work", "of the work is done"}, {func(l *Law) { l.Sigma = .999 }, "of the work is done", "above 1"},
		{func(l *Law) {}, "κ 0: there is no sign of coordination cost between threads; throughput does not fall.", "The peak"}, {func(l *Law) { l.Peak, l.PeakTPS = peak(1), peak(900) }, "The peak is 900 transactions per second with 1 thread (95 %: 0 to any): throughput falls with each further one.", "κ"},
		{func(l *Law) { l.Peak, l.PeakTPS = peak(1.6), peak(900) }, "so throughput falls beyond 2 threads", "each further one"}, {func(l *Law) { l.Peak, l.PeakTPS = peak(8), peak(900) }, "The peak is 900 transactions per second with 8 threads", "was not observed"},
		{func(l *Law) { l.Peak, l.PeakTPS = peak(8.1), peak(900) }, "beyond the 8 that were run, and was not observed", "each further one"}, {func(l *Law) { l.LargestAt, l.TypicalError, l.LargestError = 1, .02, .05 }, "with a median error of 2 %, at most 5 % (with 1 thread)", "xx"}, {func(l *Law) {}, "λ 1,000: one thread makes 1,000 transactions", "Left out"},
		{func(l *Law) { l.Fits, l.RSquared = true, .99 }, "The Universal Scalability Law fits (R² 0.990).", "rough guide"}, {func(l *Law) { l.RSquared, l.Doubts = .5, []string{"one", "two"} }, "does not fit well (R² 0.50): one; two. Take what follows as a rough guide.", "Law fits"},
		{func(l *Law) { l.LambdaBound = Bound{peak(900), peak(1100)} }, "transactions per second (95 %: 900 to 1,100).", "any"},
	} {
		l := &Law{USL: stats.USL{Lambda: 1000}}
		c.change(l)
		r := &Report{Law: l, Points: []Measured{{Threads: 1}, {Threads: 8}}}
		var words []string
		r.lawWords(func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) })
		if all := strings.Join(words, "\n"); !strings.Contains(all, c.want) || strings.Contains(all, c.not) {
			t.Errorf("%+v: got\n%s\nwant %q, and not %q", *l, all, c.want, c.not)
		}
	}
}

// TestProcessors: what is said about thread counts beyond the machine's processors.
func TestProcessors(t *testing.T) {
	for _, c := range []struct {
		processors int
		ran        []int
		want       string
	}{
		{1, []int{1, 2}, "Beyond the machine's 1 processor lie 2 threads"}, {1, []int{2, 4}, "All thread counts exceed the machine's 1 processor:"}, {4, []int{2, 4}, ""}, {0, []int{1, 2}, ""}, {3, []int{2, 4, 8}, "Beyond the machine's 3 processors lie 4, 8 threads"},
	} {
		var points []Point
		for _, n := range c.ran {
			points = append(points, Point{n, 10})
		}
		r, err := Fit(points, Options{Processors: c.processors})
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(r.Words, "\n")
		if !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%d processors, %v threads: got %q, want %q", c.processors, c.ran, got, c.want)
		}
		if note := strings.Join(r.Notes, "\n"); strings.Contains(note, "--processors") != (c.processors == 0) {
			t.Errorf("%d processors: got the note %q, want strings.Contains(note, \"--processors\") %v", c.processors, note, c.processors == 0)
		}
		for _, m := range r.Points {
			if want := c.processors > 0 && m.Threads > c.processors; m.Beyond != want {
				t.Errorf("%d threads on %d processors: got beyond %v, want %v", m.Threads, c.processors, m.Beyond, want)
			}
		}
	}
	for _, bad := range []Point{{1, 0}, {1, -1}, {1, math.NaN()}, {1, math.Inf(1)}, {0, 1}, {-1, 1}} {
		if _, err := Fit([]Point{bad}, Options{}); !errors.Is(err, workload.ErrUsage) {
			t.Errorf("%+v: got %v, want wrong use", bad, err)
		}
	}
	if r, err := Fit([]Point{{1, .5}, {1, .7}}, Options{}); err != nil || r.Points[0].Median != .6 {
		t.Errorf("less than one a second: got %+v, %v; want the median 0.6", r, err)
	}
}

// TestCurve: from the least count to twice the largest, and what is called outside.
func TestCurve(t *testing.T) {
	law := stats.USL{Lambda: 100, Sigma: .05, Kappa: .001}
	r, err := Fit(lawful(law, 0, []int{4, 8, 16, 32, 64}, 1), Options{Predict: []int{65, 64, 3, 65}})
	if err != nil {
		t.Fatal(err)
	}
	first, last := r.Curve[0], r.Curve[len(r.Curve)-1]
	if len(r.Curve) != 100 || math.Abs(first.Threads-4) > 1e-9 || math.Abs(last.Threads-128) > 1e-9 || math.Abs(last.TPS/law.At(128)-1) > 1e-3 {
		t.Errorf("got %d places from %+v to %+v, want 100 from 4 to 128", len(r.Curve), first, last)
	}
	for i := 1; i < len(r.Curve); i++ {
		if q := r.Curve[i].Threads / r.Curve[i-1].Threads; math.Abs(q/math.Pow(32, 1./99)-1) > 1e-9 {
			t.Fatalf("place %d: got %v times the one before, want the same throughout", i, q)
		}
	}
	var got []string
	for _, p := range r.Predictions {
		got = append(got, fmt.Sprint(p.Threads, p.Outside))
	}
	if g := strings.Join(got, ", "); g != "3 false, 64 false, 65 true" {
		t.Errorf("got %s, want each once, and only 65 outside", g)
	}
	if r.Law.LargestAt == 0 || r.Law.LargestError < r.Law.TypicalError || r.Law.LargestError > 1e-3 {
		t.Errorf("got errors of %v and %v at %d, want hardly any", r.Law.TypicalError, r.Law.LargestError, r.Law.LargestAt)
	}
}

// TestSweepEnds: before the first run, and where a run makes no transaction.
func TestSweepEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	points, order, interrupted, err := Sweep(ctx, powers, 1, 1, func(context.Context, int) (*bench.Result, error) { t.Error("it ran"); return nil, nil }, nil)
	if points != nil || order != nil || !interrupted || err != nil {
		t.Errorf("got %v, %v, interrupted %v, %v; want an interruption", points, order, interrupted, err)
	}
	var told []int
	points, order, interrupted, err = Sweep(t.Context(), []int{1, 2, 3}, 2, 1, func(_ context.Context, n int) (*bench.Result, error) {
		return &bench.Result{TransactionsPerSecond: map[int]float64{1: 0, 2: .5, 3: 30}[n]}, nil
	}, func(i, n int) { told = append(told, i, n) })
	if len(points) != 4 || len(order) != 6 || interrupted || err != nil || slices.ContainsFunc(points, func(p Point) bool { return p.Threads == 1 }) {
		t.Errorf("got %v of %v, interrupted %v, %v; want four points", points, order, interrupted, err)
	}
	for i, n := range order {
		if told[2*i] != i || told[2*i+1] != n {
			t.Errorf("got told %v of %v; want told[2*i] %v, told[2*i+1] %v", told, order, i, n)
			break
		}
	}
}

// TestPage: the page is whole, with all that the tables hold.
func TestPage(t *testing.T) {
	sweep, err := Fit(lawful(stats.USL{Lambda: 1000, Sigma: .03}, .01, powers, 1), Options{Source: "a <b> & c", Processors: 8})
	if err != nil {
		t.Fatal(err)
	}
	few, err := Fit([]Point{{1, 10}, {2, 20}}, Options{Processors: 8})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*Report{sweep, few} {
		var page bytes.Buffer
		if err := r.HTML(&page); err != nil {
			t.Fatal(err)
		}
		d := xml.NewDecoder(strings.NewReader(strings.TrimPrefix(page.String(), "<!doctype html>")))
		d.Strict, d.AutoClose, d.Entity = false, append(xml.HTMLAutoClose, "meta"), xml.HTMLEntity
		count, open, text := map[string]int{}, 0, ""
		for {
			tok, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			switch tok := tok.(type) {
			case xml.StartElement:
				count[tok.Name.Local]++
				open++
			case xml.EndElement:
				open--
			case xml.CharData:
				text += string(tok)
			}
		}
		head, rows := len(r.rows()[0]), len(r.rows())
		tables := 1
		cells := head * (rows - 1)
		if len(r.Predictions) > 0 {
			tables, rows, cells, head = 2, rows+len(r.Predictions)+1, cells+4*len(r.Predictions), head+4
		}
		if open != 0 || count["table"] != tables || count["tr"] != rows || count["th"] != head || count["td"] != cells || count["svg"] != 1 || count["h2"] != tables-1 || !strings.HasSuffix(page.String(), "</html>\n") {
			t.Errorf("got %v, %d open; want %d tables, %d rows, %d heads, %d cells", count, open, tables, rows, head, cells)
		}
		for _, want := range append(append([]string{r.Source}, r.Words...), r.Notes...) {
			if !strings.Contains(text, want) {
				t.Errorf("got no %q on the page", want)
			}
		}
	}
	few.Interrupted = true
	var text bytes.Buffer
	if err := few.Text(&text, true); err != nil || !strings.HasPrefix(text.String(), "Interrupted: this is what was measured so far.\n") || strings.Contains(text.String(), "Not run") {
		t.Errorf("got %s, %v; want that it was interrupted, and nothing of what was not run", text.String(), err)
	}
	var markdown bytes.Buffer
	if err := few.Markdown(&markdown); err != nil || strings.Contains(markdown.String(), "Not run") {
		t.Errorf("got %s, %v; want nothing of what was not run", markdown.String(), err)
	}
}

// TestReadMixed: objects that hold points and are one are not taken for either.
func TestReadMixed(t *testing.T) {
	for text, want := range map[string]int{
		`{"points":[{"n":1,"x":2}]}`: 1, `{"points":[{"n":1,"x":2}],"n":3,"x":4}`: 2, `{"points":[{"n":1,"x":2}],"n":3}`: 0, `{"points":[{"n":1,"x":2}],"tps":3}`: 0, `{"points":[]}`: 0, `{"runs":[]}`: 0, `{"n":1,"runs":[]}`: 0, `{"n":1,"runs":[5,6,7]}`: 3, `{"n":2.5,"x":1}`: 0, `{"x":1}`: 0, `{"n":1}`: 0,
	} {
		got, err := Read([]byte(text))
		if len(got) != want || (err != nil) != (want == 0) {
			t.Errorf("%s: got %v, %v; want %d points", text, got, err, want)
		}
	}
}

// TestAxis: from 0 on, or logarithmic where the largest count is more than sixteen times the smallest.
func TestAxis(t *testing.T) {
	for _, c := range []struct {
		low, high int
		n, want   float64
	}{
		{2, 32, 2, 1. / 16}, {2, 32, 32, 1}, {2, 32, 17, 17. / 32}, {2, 34, 2, 0}, {2, 34, 34, 1}, {1, 10000, 100, .5}, {2, 20000, 200, .5}, {3, 3, 3, 1}, {1, 4, 0, 0},
	} {
		r := &Report{Points: []Measured{{Threads: c.low}, {Threads: c.high}}}
		if got := r.axis().at(c.n); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%d to %d: got %v at %v, want %v", c.low, c.high, c.n, got, c.want)
		}
	}
	if got := (&Report{Points: []Measured{{Threads: 2}, {Threads: 30}}, Curve: []Curve{{Threads: 2}, {Threads: 60}}}).axis(); got != (axis{2, 60, true}) {
		t.Errorf("got %+v, want the end of the curve, 60", got)
	}
	if got := (axis{low: 5, high: 5}).at(5); got != .5 {
		t.Errorf("one place alone: got %v, want the middle", got)
	}
}

// TestWall: the chart has a bar where the processors end, if they end within it.
func TestWall(t *testing.T) {
	for processors, want := range map[int]bool{0: false, 1: true, 2: true, 7: true, 8: false, 9: false} {
		r := &Report{Processors: processors, Points: []Measured{{Threads: 1, Median: 10, Runs: []float64{10}}, {Threads: 8, Median: 40, Runs: []float64{40}}}}
		if got := strings.Count(strings.Join(r.Chart(true)[:chartHeight], "\n"), ":") > 0; got != want {
			t.Errorf("%d processors, chart to 8 threads: got a bar %v, want %v", processors, got, want)
		}
		if got := strings.Contains(r.SVG(), "stroke-dasharray"); got != want {
			t.Errorf("%d processors, drawing to 8 threads: got a bar %v, want %v", processors, got, want)
		}
		if got := strings.Contains(r.SVG(), "<polyline"); got {
			t.Error("got a law where there is none")
		}
	}
	if got := new(Report).Chart(true); got != nil {
		t.Errorf("without points: got a chart %q, want nil", got)
	}
	if got := new(Report).SVG(); strings.Contains(got, "<line") || !strings.HasSuffix(got, "</svg>\n") {
		t.Errorf("without points: got %s, want an empty drawing", got)
	}
}

// TestReadErrors: which line is wrong, and what it contains, cut if it is long.
func TestReadErrors(t *testing.T) {
	for text, want := range map[string]string{
		"1,2\n\n3,x": `line 3: "3" and "x" are not`, "1,2\nx,4\n": `line 2: "x" and "4" are not`, "threads,tps\n1,2\nthreads,tps": `line 3: "threads" and "tps"`, "threads,4": `line 1: "threads" and "4"`, "4,tps": `line 1: "4" and "tps"`, "# 1,2\n5": "line 2: write threads,tps",
		"tps,Threads": `the threads have to be the first column`, "1,2\n12345678901234567890,x": `line 2: "12345678901234567890" and`, "1,2\n123456789012345678901,x": `line 2: "12345678901234567890…" and`,
	} {
		got, err := Read([]byte(text))
		if !errors.Is(err, workload.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v; want %s", text, got, err, want)
		}
	}
	if got, err := Read([]byte("1,2 # 3\n4,5,6 # x\n#7,8")); err != nil || !slices.Equal(got, []Point{{1, 2}, {4, 5}}) {
		t.Errorf("comments: got %v, %v; want two points", got, err)
	}
}
