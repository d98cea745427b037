package bench

import (
	"math"
	"slices"
	"testing"
	"time"
)

// TestArrivalsArePoisson draws an hour of arrivals and tests gaps (exponential: Kolmogorov and Smirnov), numbers per second
// (variance like the mean: index of dispersion) and independence of neighbouring gaps.
func TestArrivalsArePoisson(t *testing.T) {
	for seed := range uint64(5) {
		const rate, hours = 50.0, 1
		s := newSchedule(rate, 0, seed)
		s.until(hours * time.Hour)
		var gaps []float64
		var last time.Duration
		counts := make([]float64, hours*3600)
		for {
			at, ok := s.take()
			if !ok {
				break
			}
			gaps = append(gaps, (at - last).Seconds())
			counts[secondOf(at)]++
			last = at
		}
		n := float64(len(gaps))
		if want := rate * 3600 * hours; math.Abs(n-want) > 4*math.Sqrt(want) {
			t.Errorf("seed %d: %v arrivals, not about %v", seed, n, want)
		}
		var corr float64
		for i := 1; i < len(gaps); i++ {
			corr += (gaps[i]*rate - 1) * (gaps[i-1]*rate - 1) / n
		}
		if math.Abs(corr) > 4/math.Sqrt(n) {
			t.Errorf("seed %d: neighbouring gaps correlate by %.4f, want at most 4 / math.Sqrt(n)", seed, corr)
		}
		var varied float64
		for _, c := range counts {
			varied += (c - rate) * (c - rate) / rate / float64(len(counts))
		}
		if math.Abs(varied-1) > 4*math.Sqrt(2/float64(len(counts))) {
			t.Errorf("seed %d: variance of the numbers per second is %.3f of their mean, want math.Abs(varied - 1) at most 4 * math.Sqrt(2/float64(len(counts)))",
				seed, varied)
		}
		slices.Sort(gaps)
		var d float64
		for i, g := range gaps {
			f := 1 - math.Exp(-rate*g)
			d = max(d, math.Abs(f-float64(i)/n), math.Abs(float64(i+1)/n-f))
		}
		if d > 1.95/math.Sqrt(n) { // once in a thousand
			t.Errorf("seed %d: gaps differ from an exponential distribution by %.5f, want at most 1.95 / math.Sqrt(n)", seed, d)
		}
	}
}

func TestScheduleIsTheSameWithTheSameSeed(t *testing.T) {
	a, b, c := newSchedule(10, 0, 1), newSchedule(10, 0, 1), newSchedule(10, 0, 2)
	same, other := 0, 0
	for range 100 {
		x, _ := a.take()
		y, _ := b.take()
		z, _ := c.take()
		if x == y {
			same++
		}
		if x == z {
			other++
		}
	}
	if same != 100 || other > 1 {
		t.Errorf("got %d of 100 moments alike with the same seed, %d with another; want same 100, other at most 1", same, other)
	}
}

// TestRestIsWhatNobodyTook counts each moment once, whichever session gets it.
func TestRestIsWhatNobodyTook(t *testing.T) {
	all := newSchedule(1000, time.Second, 7)
	all.until(3 * time.Second)
	want := 0
	for ; ; want++ {
		if _, ok := all.take(); !ok {
			break
		}
	}
	s := newSchedule(1000, time.Second, 7)
	s.until(3 * time.Second)
	got := 0
	for range 500 {
		if at, ok := s.take(); !ok || at < time.Second {
			t.Fatalf("no moment: got %v; want ok true, at at least time.Second", at)
		}
		got++
	}
	for _, at := range []time.Duration{2 * time.Second, 2 * time.Second, time.Hour} {
		s.rest(at, func(due time.Duration, n int64) {
			if got += int(n); n != 1 || due >= 3*time.Second || due >= at {
				t.Errorf("%v comes after the end; want n 1, due less than 3 * time.Second, due less than %v", due, at)
			}
		})
	}
	if got != want {
		t.Errorf("%d moments, not %d", got, want)
	}
}

// TestRestOfTooMuch: what no session could begin of an absurd rate is counted in no time, and about right.
func TestRestOfTooMuch(t *testing.T) {
	s := newSchedule(MaxRate, 0, 1)
	s.until(time.Hour)
	calls, count := 0, int64(0)
	s.rest(time.Hour, func(due time.Duration, n int64) {
		if calls++; due < 0 || due >= time.Hour || n < 1 {
			t.Fatalf("got %d moments at %v; want due at least 0, due less than time.Hour, n at least 1", n, due)
		}
		count += n
	})
	if calls > 2*restDrawn || math.Abs(float64(count)/(MaxRate*3600)-1) > 1e-3 {
		t.Errorf("got %d moments in %d calls; want calls at most %d, math.Abs(float64(count)/(MaxRate*3600) - 1) at most 1e-3",
			count, calls, 2*restDrawn)
	}
	if _, ok := s.take(); ok {
		t.Error("there is one more")
	}
}

// TestRates: what cannot be a rate is refused, what can be is not.
func TestRates(t *testing.T) {
	for rate, fine := range map[float64]bool{0: true, 1: true, 0.5: true, 1e6: true, MaxRate: true, 1e12: false, -1: false, 1e-300: false, math.Inf(1): false, math.NaN(): false} {
		err := Options{Threads: 1, Time: time.Second, Rate: rate}.Check()
		if (err == nil) != fine {
			t.Errorf("a rate of %v: %v", rate, err)
		}
	}
}
