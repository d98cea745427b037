package draw

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/lack"
)

// The tests below reject a right law with this probability each; the seeds are fixed, so that they do not fail by chance.
const errorLevel = 1e-4

// normalQuantile is that of 1-errorLevel.
const normalQuantile = 3.719

// chiSquareLimit is the 1-errorLevel quantile of chi-square. Source: Wilson and Hilferty's approximation.
func chiSquareLimit(freedom int) float64 {
	k := float64(freedom)
	a := 2 / (9 * k)
	return k * math.Pow(1-a+normalQuantile*math.Sqrt(a), 3)
}

// fits tests counts against expected counts; cells that expect less than 10 are put together.
func fits(t *testing.T, what string, counts []int, expected []float64) {
	t.Helper()
	stat, cells := 0.0, 0
	c, e := 0.0, 0.0
	for i := range counts {
		c += float64(counts[i])
		e += expected[i]
		if e >= 10 || i == len(counts)-1 && e > 0 {
			stat += (c - e) * (c - e) / e
			cells++
			c, e = 0, 0
		}
	}
	if c > 0 {
		t.Errorf("%s: %v draws where none is expected, want at most 0", what, c)
	}
	if limit := chiSquareLimit(cells - 1); stat > limit {
		t.Errorf("%s: chi-square %.1f with %d degrees of freedom, limit %.1f", what, stat, cells-1, limit)
	}
}

// agree tests whether two samples may come from one law: Kolmogorov-Smirnov for two samples.
func agree(t *testing.T, what string, a, b []int64) {
	t.Helper()
	d := distance(a, b)
	n, m := float64(len(a)), float64(len(b))
	if limit := math.Sqrt(-math.Log(errorLevel/2)/2) * math.Sqrt((n+m)/(n*m)); d > limit {
		t.Errorf("%s: the distribution functions differ by %.5f, limit %.5f", what, d, limit)
	}
}

// distance is the largest difference of the two empirical distribution functions.
func distance(a, b []int64) float64 {
	from := min(slices.Min(a), slices.Min(b))
	ofA := make([]int, max(slices.Max(a), slices.Max(b))-from+1) // how often each number was drawn
	ofB := slices.Clone(ofA)
	for _, v := range a {
		ofA[v-from]++
	}
	for _, v := range b {
		ofB[v-from]++
	}
	far, i, j := 0.0, 0, 0
	for v := range ofA {
		i, j = i+ofA[v], j+ofB[v]
		far = max(far, math.Abs(float64(i)/float64(len(a))-float64(j)/float64(len(b))))
	}
	return far
}

func sample(t *testing.T, name string, params map[string]float64, lo, hi int64, n int) []int64 {
	t.Helper()
	d, err := New(name, params)
	if err != nil {
		t.Fatal(err)
	}
	r, rng := d.Over(lo, hi), rand.New(rand.NewPCG(1, 2))
	out := make([]int64, n)
	for i := range out {
		if out[i] = r.Draw(rng); out[i] < lo || out[i] > hi {
			t.Fatalf("%s: %d is outside %d to %d", name, out[i], lo, hi)
		}
	}
	return out
}

// binned counts draws in equal parts of the range.
func binned(draws []int64, lo, hi int64, bins int) []int {
	out := make([]int, bins)
	for _, v := range draws {
		out[(v-lo)*int64(bins)/(hi-lo+1)]++
	}
	return out
}

const draws = 1_000_000

func TestUniform(t *testing.T) {
	expected := slices.Repeat([]float64{draws / 1000}, 1000)
	fits(t, "uniform", binned(sample(t, "uniform", nil, 1, 1000, draws), 1, 1000, 1000), expected)
}

// lawCounts are the expected counts of a law given by its distribution function over offsets into the range.
func lawCounts(below func(float64) float64, width, n int) []float64 {
	out := make([]float64, width)
	for i := range out {
		out[i] = float64(n) * (below(float64(i+1)) - below(float64(i)))
	}
	return out
}

func TestPareto(t *testing.T) {
	for _, h := range []float64{0.2, 0.05, 0.6} {
		power := math.Log(h) / math.Log(1-h)
		// P(width * U^power < x) = (x/width)^(1/power)
		expected := lawCounts(func(x float64) float64 { return math.Pow(min(x/1000, 1), 1/power) }, 1000, draws)
		fits(t, fmt.Sprintf("pareto %v", h), binned(sample(t, "pareto", map[string]float64{"pareto-h": h}, 1, 1000, draws), 1, 1000, 1000), expected)
	}
	// The name: of h of the values come 1-h of the draws.
	inside := 0
	for _, v := range sample(t, "pareto", nil, 1, 100000, draws) {
		if v <= 20000 {
			inside++
		}
	}
	if share := float64(inside) / draws; math.Abs(share-0.8) > 0.002 {
		t.Errorf("pareto: got %.4f of the draws in the first fifth, expected 0.8; want math.Abs(share - 0.8) at most 0.002", share)
	}
}

func TestZipfian(t *testing.T) {
	// Over few values and with a steep law it shows whether what is drawn from the hull of the law is rejected often enough.
	for _, c := range []struct {
		exponent float64
		width    int
		draws    int
	}{{0, 1000, draws}, {0.5, 1000, draws}, {0.8, 1000, draws}, {1, 1000, draws}, {1.5, 1000, draws}, {2, 5, draws / 10}, {3, 10, draws / 10}} {
		expected, norm := make([]float64, c.width), 0.0
		for i := range expected {
			expected[i] = math.Pow(float64(i+1), -c.exponent)
			norm += expected[i]
		}
		for i := range expected {
			expected[i] *= float64(c.draws) / norm
		}
		drawn := sample(t, "zipfian", map[string]float64{"zipfian-exp": c.exponent}, 1, int64(c.width), c.draws)
		fits(t, fmt.Sprintf("zipfian %v of %d", c.exponent, c.width), binned(drawn, 1, int64(c.width), c.width), expected)
	}
}

// irwinHall is the distribution function of the mean of n uniform draws. Source: Irwin and Hall's formula.
func irwinHall(n int, mean float64) float64 {
	x := mean * float64(n)
	sum, binomial, factorial := 0.0, 1.0, 1.0
	for k := 0; k <= n; k++ {
		if k > 0 {
			binomial *= float64(n-k+1) / float64(k)
			factorial *= float64(k)
		}
		if d := x - float64(k); d > 0 {
			sum += math.Pow(-1, float64(k)) * binomial * math.Pow(d, float64(n))
		}
	}
	return min(sum/factorial, 1)
}

func TestGaussian(t *testing.T) {
	for _, iter := range []int{1, 4, 12} {
		expected := lawCounts(func(x float64) float64 { return irwinHall(iter, x/1000) }, 1000, draws)
		fits(t, fmt.Sprintf("gaussian %d", iter), binned(sample(t, "gaussian", map[string]float64{"spec-iter": float64(iter)}, 1, 1000, draws), 1, 1000, 1000), expected)
	}
}

func TestSpecial(t *testing.T) {
	for _, c := range []struct{ iter, pct, res float64 }{{12, 1, 75}, {4, 10, 50}, {12, 100, 75}, {12, 0, 90}} {
		const width = 10000
		span := float64(width - 1)
		part := span * c.pct / 100
		from, to := (1-c.res/100)*(part+1)+span/2-part/2, part+1+span/2-part/2
		below := func(x float64) float64 {
			if x >= width {
				return 1
			}
			return (1-c.res/100)*irwinHall(int(c.iter), min(x/span, 1)) + c.res/100*min(max((x-from)/(to-from), 0), 1)
		}
		fits(t, fmt.Sprintf("special %v", c), binned(sample(t, "special", map[string]float64{"spec-iter": c.iter, "spec-pct": c.pct, "spec-res": c.res}, 1, width, draws), 1, width, width), lawCounts(below, width, draws))
	}
}

// TestTestsReject holds that the tests above can fail: a sample of a slightly different law is rejected.
func TestTestsReject(t *testing.T) {
	a := sample(t, "pareto", map[string]float64{"pareto-h": 0.2}, 1, 1000, draws)
	b := sample(t, "pareto", map[string]float64{"pareto-h": 0.203}, 1, 1000, draws)
	if limit := math.Sqrt(-math.Log(errorLevel/2)/2) * math.Sqrt(2.0/draws); distance(a, b) <= limit {
		t.Errorf("pareto 0.2 and 0.203 are not told apart: %v, want more than %v", distance(a, b), limit)
	}
}

func TestAlone(t *testing.T) {
	for _, name := range names {
		for _, v := range sample(t, name, nil, 7, 7, 100) {
			if v != 7 {
				t.Fatalf("%s: got %d from 7 to 7, want 7", name, v)
			}
		}
		sample(t, name, nil, 1, 2, 1000)
		sample(t, name, nil, 1, 1<<40, 1000)
	}
}

func TestWrong(t *testing.T) {
	for _, c := range []struct {
		name   string
		params map[string]float64
	}{
		{"normal", nil}, {"", nil}, {"pareto", map[string]float64{"pareto-h": 0}}, {"pareto", map[string]float64{"pareto-h": math.NaN()}},
		{"uniform", map[string]float64{"pareto-h": 0.2}}, {"special", map[string]float64{"spec-res": 100}}, {"special", map[string]float64{"spec-iter": 1.5}},
		{"special", map[string]float64{"spec-iter": 0}}, {"zipfian", map[string]float64{"zipfian-exp": -1}}, {"zipfian", map[string]float64{"exp": 1}},
	} {
		if _, err := New(c.name, c.params); !errors.Is(err, ErrUnknown) {
			t.Errorf("%v: got %v, want ErrUnknown", c, err)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, name := range names {
		d, _ := New(name, nil)
		r := d.Over(1, 10000)
		if n := testing.AllocsPerRun(1000, func() { r.Draw(rng) }); n != 0 {
			t.Errorf("%s: got %v allocations a draw, want 0", name, n)
		}
	}
}

// TestSysbench compares with samples that the real sysbench draws.
func TestSysbench(t *testing.T) {
	program, err := exec.LookPath("sysbench")
	if err != nil {
		lack.Of(t, "sysbench is not installed: run script/setup")
	}
	const n, top = 300_000, 10000
	for _, c := range []struct {
		name   string
		params map[string]float64
	}{
		{"uniform", nil}, {"special", nil}, {"pareto", nil}, {"gaussian", nil}, {"zipfian", nil},
		{"special", map[string]float64{"spec-iter": 3, "spec-pct": 20, "spec-res": 40}}, {"pareto", map[string]float64{"pareto-h": 0.4}},
		{"gaussian", map[string]float64{"spec-iter": 2}},
	} {
		t.Run(fmt.Sprint(c.name, len(c.params)), func(t *testing.T) {
			theirs := bySysbench(t, program, c.name, c.params, n, top)
			ours := sample(t, c.name, c.params, 1, top, n)
			agree(t, c.name, ours, theirs)
			if other := sample(t, map[bool]string{true: "uniform", false: "gaussian"}[c.name != "uniform"], nil, 1, top, n); distance(other, theirs) < 0.05 {
				t.Errorf("%s cannot be told from another distribution, want distance(other, theirs) at least 0.05", c.name)
			}
		})
	}
}

// bySysbench has sysbench's main thread print numbers.
func bySysbench(t *testing.T, program, name string, params map[string]float64, n, top int) []int64 {
	t.Helper()
	script := filepath.Join(t.TempDir(), "draws.lua")
	code := fmt.Sprintf("function event()\n local out = {}\n for i = 1, %d do out[i] = sysbench.rand.default(1, %d) end\n print(table.concat(out, '\\n'))\nend\n", n, top)
	if err := os.WriteFile(script, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{script, "--events=1", "--time=0", "--verbosity=0", "--rand-seed=42", "--rand-type=" + name}
	for k, v := range params {
		args = append(args, fmt.Sprintf("--rand-%s=%v", k, v))
	}
	out, err := exec.CommandContext(t.Context(), program, append(args, "run")...).CombinedOutput()
	if name == "zipfian" && strings.Contains(string(out), "Invalid random numbers distribution") {
		t.Skip("this sysbench has no zipfian: versions after 1.0.20 do")
	}
	if err != nil {
		t.Fatalf("sysbench: %v\n%s", err, out)
	}
	var values []int64
	for _, f := range strings.Fields(string(out)) {
		if v, err := strconv.ParseInt(f, 10, 64); err == nil {
			values = append(values, v)
		}
	}
	if len(values) < n {
		t.Fatalf("sysbench printed %d numbers of %d: %.200s", len(values), n, out)
	}
	return values
}

func BenchmarkDraw(b *testing.B) {
	for _, name := range names {
		b.Run(name, func(b *testing.B) {
			d, _ := New(name, nil)
			r, rng := d.Over(1, 1_000_000), rand.New(rand.NewPCG(1, 2))
			b.ReportAllocs()
			for b.Loop() {
				r.Draw(rng)
			}
		})
	}
}
