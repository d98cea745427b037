package bench

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// TestHistIsAnHdrHistogram compares with the library: the same cells, the same percentiles, before and after encoding.
func TestHistIsAnHdrHistogram(t *testing.T) {
	h, other := newHist(), hdrhistogram.New(shortest, longest, figures)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, v := range []int64{0, 1, 127, 128, 255, 256, 257, 511, 512, longest - 1, longest} {
		h.add(v)
		if err := other.RecordValue(v); err != nil {
			t.Fatal(err)
		}
	}
	for range 100000 {
		v := int64(math.Exp(rng.Float64() * math.Log(float64(longest))))
		h.add(v)
		if err := other.RecordValue(v); err != nil {
			t.Fatal(err)
		}
	}
	text, err := h.encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := hdrhistogram.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if back.TotalCount() != h.n || !back.Equals(other) {
		t.Errorf("%d of %d values came back, or in other cells; want back.TotalCount() %d, back.Equals(other) true", back.TotalCount(), h.n, h.n)
	}
	for _, p := range []float64{0.1, 1, 25, 50, 75, 90, 95, 99, 99.9, 99.99} {
		if a, b := h.at(p), min(other.ValueAtPercentile(p), h.max); a != b {
			t.Errorf("percentile %v: %d, the library says %d", p, a, b)
		}
	}
}

// TestHistIsOnePercentWrongAtMost compares with the sorted values themselves.
func TestHistIsOnePercentWrongAtMost(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 2, 99, 100, 101, 50000} {
		h, parts := newHist(), []*hist{newHist(), newHist(), newHist()}
		var all []int64
		var sum float64
		for i := range n {
			v := int64(math.Exp(rng.NormFloat64()*2 + 12))
			all = append(all, v)
			sum += float64(v)
			parts[i%3].add(v)
		}
		for _, p := range parts {
			h.merge(p)
		}
		slices.Sort(all)
		for _, p := range []float64{0.001, 50, 75, 90, 95, 99, 99.9, 99.99, 100} {
			exact := all[max(int(math.Ceil(p/100*float64(n)-1e-9)), 1)-1]
			if got := h.at(p); got < exact || float64(got) > 1.01*float64(exact) {
				t.Errorf("percentile %v of %d values: %d, exactly %d", p, n, got, exact)
			}
		}
		l := h.latency([]float64{50})
		if h.n != int64(n) || h.min != all[0] || h.max != all[n-1] || math.Abs(l.Avg*1e9-sum/float64(n)) > 1e-6*sum {
			t.Errorf("got %d values: n %d, min %d, max %d, mean %v; want h.n %d, h.min all[0], h.max all[n-1], math.Abs(l.Avg*1e9 - sum/float64(n)) at most %v",
				n, h.n, h.min, h.max, l.Avg, int64(n), 1e-6*sum)
		}
		h.clear()
		if h.n != 0 || h.at(50) != 0 || h.max != 0 || slices.ContainsFunc(h.counts, func(c int64) bool { return c != 0 }) {
			t.Errorf("something is left after clear: %+v", h.latency(nil))
		}
	}
}
