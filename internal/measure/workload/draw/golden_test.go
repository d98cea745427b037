package draw

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestDraws holds what is drawn with one seed: a run that is repeated with its seed has to draw the same numbers.
func TestDraws(t *testing.T) {
	for _, c := range []struct {
		name   string
		params map[string]float64
		lo, hi int64
		want   string
	}{
		{"uniform", nil, 1, 1000, "263 12 70 43 115 228 652 724 968 606 86 947 172 72 18 421 456 952 859 805"},
		{"special", nil, 1, 1000, "499 505 502 490 500 504 583 353 544 504 500 503 506 503 500 468 499 594 504 505"},
		{"special", map[string]float64{"spec-iter": 1, "spec-pct": 10, "spec-res": 20}, -50, 50, "41 -44 32 20 1 49 -32 18 28 6 42 27 4 31 -13 9 -13 -20 -26 -44"},
		{"pareto", nil, 1, 1000, "2 514 38 1 1 246 1 84 1 9 98 968 1 1 1 67 5 180 1 17"},
		{"pareto", map[string]float64{"pareto-h": .5}, 10, 20, "14 20 16 10 12 19 11 17 13 15 17 20 14 12 11 17 15 18 11 16"},
		{"gaussian", nil, 1, 1000, "540 493 424 400 591 466 559 517 579 428 462 499 610 470 625 507 501 519 566 496"},
		{"gaussian", map[string]float64{"spec-iter": 3}, 0, 9, "6 3 3 7 2 6 3 7 6 3 3 2 3 4 2 4 8 5 3 6"},
		{"zipfian", nil, 1, 1000, "165 2 33 784 387 6 560 18 208 77 16 1 185 453 520 22 99 9 630 55"},
		{"zipfian", map[string]float64{"zipfian-exp": 1}, 5, 50, "12 5 7 39 21 5 29 6 14 9 6 5 13 24 27 6 10 5 32 8"},
		{"zipfian", map[string]float64{"zipfian-exp": 3}, 1, 1000000, "1 1 1 3 1 1 2 1 1 1 1 1 1 1 2 1 1 1 2 1"},
		{"zipfian", map[string]float64{"zipfian-exp": 0}, 1, 7, "5 1 3 7 6 2 7 3 5 4 2 1 5 6 6 3 4 2 7 4"},
		{"uniform", nil, 7, 7, "7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7"},
		{"zipfian", nil, 7, 7, "7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7"},
		{"pareto", nil, 9, 3, "9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9"}, // hi is taken for lo
	} {
		d, err := New(c.name, c.params)
		if err != nil {
			t.Fatal(err)
		}
		r := d.Over(c.lo, c.hi)
		rng := rand.New(rand.NewPCG(41, 42))
		var got []string
		for range 20 {
			got = append(got, fmt.Sprint(r.Draw(rng)))
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("%s %v from %d to %d: got %q, want %q", c.name, c.params, c.lo, c.hi, g, c.want)
		}
	}
}

// TestParameters: the last value that is taken, and the first that is refused.
func TestParameters(t *testing.T) {
	for _, c := range []struct {
		of, name  string
		good, bad []float64
	}{
		{"special", "spec-iter", []float64{1, 1000}, []float64{0, 1001, 1.5}}, {"special", "spec-pct", []float64{0, 100}, []float64{-1, 101}}, {"special", "spec-res", []float64{0, 99.9}, []float64{-1, 100}},
		{"pareto", "pareto-h", []float64{.001, .999}, []float64{0, 1}}, {"zipfian", "zipfian-exp", []float64{0, 100}, []float64{-.1, 101}}, {"uniform", "spec-iter", nil, []float64{12}}, {"gaussian", "spec-iter", []float64{12}, nil}, {"uniform", "odd", nil, []float64{1}},
	} {
		for _, v := range c.good {
			if _, err := New(c.of, map[string]float64{c.name: v}); err != nil {
				t.Errorf("%s of %s is %v: got %v, want no error", c.name, c.of, v, err)
			}
		}
		for _, v := range c.bad {
			if _, err := New(c.of, map[string]float64{c.name: v}); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), c.name) {
				t.Errorf("%s of %s is %v: got %v, want an error that names it", c.name, c.of, v, err)
			}
		}
	}
	if _, err := New("normal", nil); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "uniform, special, pareto, zipfian, gaussian") {
		t.Errorf("got %v, want an error that lists what there is", err)
	}
}
