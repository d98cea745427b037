package scale

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/report/pagetest"
	"github.com/rissodb/risso/internal/measure/stats"
	"github.com/rissodb/risso/internal/measure/workload"
)

// The sweep of an EPYC server as it was published.
const epyc = "1:943 2:1859 4:3533 8:6762 12:10012 16:13063 20:15348 24:16886 30:18150 36:18923 42:19375 48:20111 56:20549 64:20861 72:21124 80:21370 100:21807 128:22161 192:22389 256:22091 512:19524"

func published(t *testing.T) []Point {
	t.Helper()
	points, err := Read([]byte(strings.ReplaceAll(epyc, " ", "\n")))
	if err != nil || len(points) != 21 {
		t.Fatalf("got %d points, %v; want 21", len(points), err)
	}
	return points
}

// TestPublishedSweep fits the published sweep: no other coefficients near may fit better, the peak must lie where the
// plateau was measured, and the law must be doubted, because it promises half as much again with one thread as was measured.
func TestPublishedSweep(t *testing.T) {
	points := published(t)
	r, err := Fit(points, Options{Source: "EPYC", Processors: 16, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	l := r.Law
	squares := func(u stats.USL) (sum float64) {
		for _, p := range points {
			d := p.TPS - u.At(float64(p.Threads))
			sum += d * d
		}
		return sum
	}
	least := squares(l.USL)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 20000 {
		scale := math.Pow(10, -1-4*rng.Float64())
		u := stats.USL{Lambda: l.Lambda * (1 + scale*rng.NormFloat64()), Sigma: math.Max(0, l.Sigma*(1+scale*rng.NormFloat64())), Kappa: math.Max(0, l.Kappa*(1+scale*rng.NormFloat64()))}
		if squares(u) < least*(1-1e-6) {
			t.Fatalf("got %+v fits better than %+v, want at least %v", u, l.USL, least*(1-1e-6))
		}
	}
	if l.Peak == nil || *l.Peak < 128 || *l.Peak > 192 || *l.PeakTPS < 22000 || *l.PeakTPS > 23500 {
		t.Errorf("peak: %v threads, %v tps; 22,389 at 192 was the highest measured; want l.Peak not nil, *l.Peak from 128 to 192, *l.PeakTPS from 22000 to 23500",
			l.Peak, l.PeakTPS)
	}
	if l.RSquared < 0.985 || l.Fits || len(l.Doubts) != 2 || !strings.Contains(l.Doubts[0], "4 runs of one sign") || !strings.Contains(l.Doubts[1], "with 1 thread") {
		t.Errorf("R² %v, fits %v, doubts %q; want l.RSquared at least 0.985, l.Fits false, len(l.Doubts) 2, \"4 runs of one sign\" in l.Doubts[0], \"with 1 thread\" in l.Doubts[1]",
			l.RSquared, l.Fits, l.Doubts)
	}
	beyond := 0
	for _, p := range r.Points {
		if p.Beyond {
			beyond++
		}
	}
	if beyond != 15 {
		t.Errorf("got %d of the counts lie beyond 16 processors, want 15", beyond)
	}
	// Predicted from a part of the sweep: what the law says about counts that it did not see.
	part := slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return p.Threads > 80 })
	half, err := Fit(part, Options{Predict: []int{100, 128, 192, 256}, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range half.Predictions {
		i := slices.IndexFunc(points, func(q Point) bool { return q.Threads == p.Threads })
		t.Logf("%d threads, from up to 80: %.0f (%.0f to %.0f), measured %.0f", p.Threads, p.TPS, *p.Bound.Low, *p.Bound.High, points[i].TPS)
		if !p.Outside {
			t.Errorf("%d threads are not called outside", p.Threads)
		}
	}
	if half.Law.Fits || !strings.Contains(strings.Join(half.Notes, "\n"), "outside") {
		t.Errorf("the law of the part below 80 foretells half of what was measured with 256 threads, and nobody warns: %+v, %q; want Fits false, \"outside\" in strings.Join(half.Notes, \"\\n\")",
			half.Law, half.Notes)
	}
	// Within the sweep the law foretells well from where it bends on.
	for _, p := range r.Points {
		if p.Threads >= 12 && math.Abs(p.Error) > 0.1 {
			t.Errorf("with %d threads the law is %.0f %% off", p.Threads, 100*p.Error)
		}
	}
}

// lawful makes a sweep of a known law with small errors.
func lawful(u stats.USL, noise float64, counts []int, runs int) (out []Point) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, n := range counts {
		for range runs {
			out = append(out, Point{n, u.At(float64(n)) * math.Exp(noise*rng.NormFloat64())})
		}
	}
	return out
}

var powers = []int{1, 2, 4, 8, 16, 32, 64}

func TestLawThatFits(t *testing.T) {
	u := stats.USL{Lambda: 1000, Sigma: 0.03, Kappa: 0.0005}
	r, err := Fit(lawful(u, 0.01, powers, 3), Options{Processors: 128, Predict: []int{12, 48, 96}})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Law.Fits || math.Abs(r.Law.Sigma/0.03-1) > 0.1 || math.Abs(*r.Law.Peak/u.Peak()-1) > 0.1 || r.Law.TypicalError > 0.02 {
		t.Errorf("got %+v; want Fits true, math.Abs(r.Law.Sigma/0.03 - 1) at most 0.1, math.Abs(*r.Law.Peak/u.Peak() - 1) at most 0.1, TypicalError at most 0.02",
			r.Law)
	}
	for _, p := range r.Predictions {
		if truth := u.At(float64(p.Threads)); math.Abs(p.TPS/truth-1) > 0.03 || p.Outside != (p.Threads == 96) {
			t.Errorf("%+v, the truth is %v; want math.Abs(p.TPS/truth - 1) at most 0.03, Outside %v", p, truth, p.Threads == 96)
		}
	}
	all := strings.Join(r.Words, "\n")
	for _, want := range []string{"Law fits", "σ 0.0", "of the work is done by one thread at a time", "κ 0.000", "The peak is"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q lacks %q", all, want)
		}
	}
	if strings.Contains(all, "Beyond") {
		t.Errorf("nothing is beyond 128 processors: %q, want no \"Beyond\" in it", all)
	}
}

func TestSweepsOfOtherShapes(t *testing.T) {
	linear, err := Fit(lawful(stats.USL{Lambda: 10}, 0, powers, 1), Options{Processors: 4})
	if err != nil || !strings.Contains(strings.Join(linear.Words, " "), "Beyond the machine's 4 processors lie 8, 16, 32, 64 threads") {
		t.Errorf("got %v %q; want \"Beyond the machine's 4 processors lie 8, 16, 32, 64 threads\" in it", err, linear.Words)
	}
	few, err := Fit([]Point{{1, 10}, {2, 20}, {4, 30}}, Options{})
	if err != nil || few.Law != nil || !strings.Contains(strings.Join(few.Notes, " "), "at least four are needed") {
		t.Errorf("three counts: got %v, %+v; want Law nil, \"at least four are needed\" in strings.Join(few.Notes, \" \")", err, few)
	}
	// A cliff that no law of this form has.
	cliff, err := Fit([]Point{{1, 100}, {2, 200}, {4, 400}, {8, 800}, {16, 100}, {32, 90}, {64, 95}}, Options{})
	if err != nil || cliff.Law.Fits {
		t.Errorf("a cliff fits: got %v %+v; want Fits false", err, cliff.Law)
	}
	if _, err := Fit([]Point{{1, 10}, {0, 20}}, Options{}); !errors.Is(err, workload.ErrUsage) {
		t.Errorf("no threads: got %v, want workload.ErrUsage", err)
	}
	for _, r := range []*Report{linear, few, cliff} {
		forms(t, r)
	}
}

// forms checks that each form can be written and read.
func forms(t *testing.T, r *Report) {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Read(b)
	if err != nil || len(again) != len(r.Points) {
		t.Errorf("its own JSON gives %d points, %v; want %d", len(again), err, len(r.Points))
	}
	var text, markdown, csv, page bytes.Buffer
	if err := errors.Join(r.Text(&text, true), r.Markdown(&markdown), r.CSV(&csv), r.HTML(&page)); err != nil {
		t.Fatal(err)
	}
	for _, line := range r.Chart(true) {
		if strings.IndexFunc(line, func(c rune) bool { return c > 126 }) >= 0 && !strings.Contains(line, "law") {
			t.Errorf("not ASCII: %q", line)
		}
	}
	if n := strings.Count(csv.String(), ",yes\n"); n < len(r.Points) {
		t.Errorf("CSV has %d measured lines, want at least %d:\n%s", n, len(r.Points), csv.String())
	}
	for _, w := range r.Words {
		if !strings.Contains(text.String(), w) || !strings.Contains(markdown.String(), w) {
			t.Errorf("%q is missing", w)
		}
	}
	d := xml.NewDecoder(strings.NewReader(r.SVG()))
	circles := 0
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("SVG: %v", err)
		}
		if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "circle" {
			circles++
		}
	}
	if circles < len(r.Points) || strings.Contains(r.SVG(), "NaN") || strings.Contains(r.SVG(), "Inf") {
		t.Errorf("SVG has %d circles; want circles at least %d, no \"NaN\" in it, no \"Inf\" in it:\n%s", circles, len(r.Points), r.SVG())
	}
}

func TestRead(t *testing.T) {
	want := []Point{{1, 943}, {2, 1859.5}}
	for _, text := range []string{
		"threads,tps\n1,943\n2,1859.5\n", "1:943\n2:1859.5", "1;943\r\n2;1859.5\r\n", "# a comment\n\n1\t943\n2 1859.5 # here too", "\xef\xbb\xbfthreads,tps\n1,943\n2,1859.5",
		`[{"threads":1,"tps":943},{"threads":2,"tps":1859.5}]`, `[{"n":1,"x":943},{"n":2,"x":1859.5}]`,
		`{"threads":1,"transactions_per_second":943,"workload":"x"}` + "\n" + `{"threads":2,"transactions_per_second":1859.5}`,
		`{"runs":[{"threads":1,"transactions_per_second":943},{"threads":2,"transactions_per_second":1859.5}]}`,
		`{"points":[{"threads":1,"runs":[943]},{"threads":2,"runs":[1859.5]}]}`,
	} {
		got, err := Read([]byte(text))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: got %v, %v; want %v", text, got, err, want)
		}
	}
	for _, bad := range []string{"", "threads,tps\n", "tps,threads\n943,1\n1859,2\n", "1,2\nx,y\n", "1\n2\n", "{}", "[1,2]", `[{"threads":1.5,"tps":2}]`, "[", `{"threads":1}`} {
		if got, err := Read([]byte(bad)); !errors.Is(err, workload.ErrUsage) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v, %v; want workload.ErrUsage, no \"\\n\" in the error", bad, got, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("1,2\n3,4"))
	f.Add([]byte(`[{"threads":1,"tps":2}]`))
	f.Add([]byte(`{"points":[{"points":[{"n":1e300,"x":1}]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		points, err := Read(b)
		if err != nil || len(points) > 50 {
			return
		}
		r, err := Fit(points, Options{Processors: 4})
		if err != nil {
			return
		}
		if err := errors.Join(r.Text(io.Discard, false), r.Markdown(io.Discard), r.CSV(io.Discard), r.HTML(io.Discard)); err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
	})
}

func TestSweepIsInterleavedAndEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ran := 0
	run := func(_ context.Context, n int) (*bench.Result, error) {
		if ran++; ran == 10 {
			cancel()
		}
		return &bench.Result{TransactionsPerSecond: float64(100 * n)}, nil
	}
	points, order, interrupted, err := Sweep(ctx, powers, 3, 5, run, nil)
	if err != nil || !interrupted || len(points) != 9 || len(order) != 9 {
		t.Errorf("got %d points, order %v, interrupted %v, %v; want interrupted true, len(points) 9, len(order) 9", len(points), order, interrupted, err)
	}
	if first := slices.Clone(order[:7]); slices.IsSorted(first) {
		t.Errorf("the first round is in order: %v", first)
	} else if slices.Sort(first); !slices.Equal(first, powers) {
		t.Errorf("the first round leaves counts out: %v, want %v", first, powers)
	}
	boom := errors.New("boom")
	points, _, interrupted, err = Sweep(t.Context(), powers, 1, 5, func(_ context.Context, n int) (*bench.Result, error) {
		if n == 8 {
			return nil, boom
		}
		return &bench.Result{TransactionsPerSecond: 1}, nil
	}, nil)
	if !errors.Is(err, boom) || interrupted || len(points) > 6 {
		t.Errorf("got %v, %v, %v; want boom, interrupted false, len(points) at most 6", points, interrupted, err)
	}
}

// TestFalling: a sweep in which each further thread makes things worse has its peak with one thread, in words that say so.
func TestFalling(t *testing.T) {
	for name, of := range map[string]func(n float64) float64{
		"inverse": func(n float64) float64 { return 1000 / n }, "steep": func(n float64) float64 { return 1000 / (n * n) },
		"levelling": func(n float64) float64 { return 500 + 500/n },
	} {
		var points []Point
		for _, n := range []int{1, 2, 4, 8, 16, 32, 64} {
			points = append(points, Point{n, of(float64(n))})
		}
		r, err := Fit(points, Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(r.Words, "\n")
		if r.Law.Peak == nil || *r.Law.Peak != 1 || !strings.Contains(all, "with 1 thread") || !strings.Contains(all, "throughput falls with each further one") ||
			strings.Contains(all, " 0 threads") || strings.Contains(all, "does not fall") || strings.Contains(all, "% of the work is done by one thread") && r.Law.Sigma >= 1 {
			t.Errorf("%s: peak %v\n%s", name, r.Law.Peak, all)
		}
	}
}

// TestFits looks at the page in a browser.
func TestFits(t *testing.T) {
	t.Parallel()
	var points []Point
	for _, n := range []int{1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 512} {
		points = append(points, Point{n, 1389 * float64(n) / (1 + 0.048*float64(n-1) + 4.4e-5*float64(n)*float64(n-1))})
	}
	r, err := Fit(points, Options{Seed: 1, Processors: 64, Source: "point_select on root@unix(/var/run/mysqld/mysqld.sock)/sbtest, 10.11.19-MariaDB"})
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	if err := r.HTML(&page); err != nil {
		t.Fatal(err)
	}
	pagetest.Fits(t, map[string]string{"scale": page.String()})
}
