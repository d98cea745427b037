// Package draw draws whole numbers from a range as sysbench does: uniform, special, pareto and gaussian as sysbench
// 1.0.20 draws them, zipfian as its later versions do. A draw allocates nothing.
package draw

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// ErrUnknown is what errors about a name or value of a distribution wrap.
var ErrUnknown = errors.New("no such distribution")

// unknownError is one of them, in its own words.
type unknownError struct{ text string }

func (e *unknownError) Error() string { return e.text }
func (e *unknownError) Unwrap() error { return ErrUnknown }

func unknown(format string, args ...any) error { return &unknownError{fmt.Sprintf(format, args...)} }

type kind uint8

const (
	uniform kind = iota
	special
	pareto
	zipfian
	gaussian
)

// names are the distributions as users call them, by kind.
var names = [...]string{"uniform", "special", "pareto", "zipfian", "gaussian"}

// parameter is a number that shapes a distribution.
type parameter struct {
	name     string
	standard float64 // sysbench's default
	of       []kind  // the distributions that it shapes
	check    func(float64) bool
	bounds   string // in words
}

func parameters() []parameter {
	return []parameter{
		{"spec-iter", 12, []kind{special, gaussian}, func(v float64) bool { return v >= 1 && v <= 1000 && v == math.Trunc(v) }, "a whole number from 1 to 1000"},
		{"spec-pct", 1, []kind{special}, func(v float64) bool { return v >= 0 && v <= 100 }, "from 0 to 100"},
		{"spec-res", 75, []kind{special}, func(v float64) bool { return v >= 0 && v < 100 }, "from 0 to below 100"},
		{"pareto-h", 0.2, []kind{pareto}, func(v float64) bool { return v > 0 && v < 1 }, "between 0 and 1"},
		{"zipfian-exp", 0.8, []kind{zipfian}, func(v float64) bool { return v >= 0 && v <= 100 }, "from 0 to 100"},
	}
}

// Distribution is a law with its parameters. Over makes it draw from a range.
type Distribution struct {
	kind      kind
	iter      int     // special, gaussian: uniform draws that are averaged
	share     float64 // special: of draws that fall anywhere
	pct       float64 // special: part of the range in which the others fall
	power     float64 // pareto
	exponent  float64 // zipfian
	threshold float64 // zipfian: nearer to the rank than this, a draw is accepted without a look at the law
}

// New makes a distribution. Its parameters have sysbench's names without "rand-": spec-iter (uniform draws averaged by
// special and gaussian, 12), spec-pct (percentage of the range that is special, 1), spec-res (percentage of draws that
// are special, 75), pareto-h (0.2: 80 % of the draws fall in 20 % of the range), zipfian-exp (0.8).
func New(name string, params map[string]float64) (Distribution, error) {
	i := slices.Index(names[:], name)
	if i < 0 {
		return Distribution{}, unknown("no distribution %q; use one of %s", name, strings.Join(names[:], ", "))
	}
	values := map[string]float64{}
	known := parameters()
	var all []string
	for _, p := range known {
		values[p.name] = p.standard
		all = append(all, p.name)
	}
	for _, given := range slices.Sorted(maps.Keys(params)) {
		at := slices.Index(all, given)
		switch {
		case at < 0:
			return Distribution{}, unknown("no distribution has a parameter %q; use one of %s", given, strings.Join(all, ", "))
		case !known[at].check(params[given]):
			return Distribution{}, unknown("%s is %v: it must be %s", given, params[given], known[at].bounds)
		case !slices.Contains(known[at].of, kind(i)):
			return Distribution{}, unknown("the distribution %[2]s does not use %[1]s", given, name)
		}
		values[given] = params[given]
	}
	d := Distribution{
		kind: kind(i), iter: int(values["spec-iter"]), share: 1 - values["spec-res"]/100, pct: values["spec-pct"] / 100,
		power: math.Log(values["pareto-h"]) / math.Log(1-values["pareto-h"]), exponent: values["zipfian-exp"],
	}
	d.threshold = 2 - d.inverse(d.integral(2.5)-d.density(2))
	return d, nil
}

// Range draws from lo to hi, both included.
type Range struct {
	d             Distribution
	lo, hi        int64
	width         float64 // number of values
	bottom, depth float64 // zipfian: where the integral of the law begins, and its length
}

// Over returns the distribution over lo to hi; hi is at least lo.
func (d Distribution) Over(lo, hi int64) Range {
	r := Range{d: d, lo: lo, hi: max(lo, hi)}
	r.width = float64(r.hi-lo) + 1
	r.bottom = d.integral(r.width + 0.5)
	r.depth = d.integral(1.5) - 1 - r.bottom
	return r
}

// Draw returns one number.
func (r *Range) Draw(rng *rand.Rand) int64 {
	switch r.d.kind {
	case special:
		return r.special(rng)
	case pareto:
		return r.at(r.width * math.Pow(rng.Float64(), r.d.power))
	case zipfian:
		return r.zipfian(rng)
	case gaussian:
		return r.at(r.mean(rng) * r.width)
	}
	return r.lo + int64(rng.Uint64N(uint64(r.hi-r.lo)+1))
}

// at is the value in which an offset into the range lies.
func (r *Range) at(offset float64) int64 { return min(r.lo+int64(offset), r.hi) }

// mean is the mean of some uniform draws: by the law of large numbers nearly normal around a half.
func (r *Range) mean(rng *rand.Rand) float64 {
	sum := 0.0
	for range r.d.iter {
		sum += rng.Float64()
	}
	return sum / float64(r.d.iter)
}

// special draws most values from a small part in the middle of the range. As in sysbench 1.0.20, the number that chose
// between the two cases also chooses the special value, so only the upper part of the middle is ever drawn: with 75 % the
// upper three quarters.
func (r *Range) special(rng *rand.Rand) int64 {
	span := r.width - 1
	u := rng.Float64()
	if u < r.d.share {
		return r.at(r.mean(rng) * span)
	}
	part := span * r.d.pct
	return r.at(u*(part+1) + span/2 - part/2)
}

// zipfian draws rank k, which is the value lo+k-1, with a probability in proportion to k to the power of -exponent.
// Source: W. Hörmann, G. Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions",
// ACM TOMACS 6(3), 1996.
func (r *Range) zipfian(rng *rand.Rand) int64 {
	for {
		u := r.bottom + rng.Float64()*r.depth
		x := r.d.inverse(u)
		k := min(max(math.Floor(x+0.5), 1), r.width)
		if k-x <= r.d.threshold || u >= r.d.integral(k+0.5)-r.d.density(k) {
			return r.lo + int64(k) - 1
		}
	}
}

// density is the law without its norm: x to the power of -exponent.
func (d Distribution) density(x float64) float64 { return math.Exp(-d.exponent * math.Log(x)) }

// integral is that of density from 1 to x: (x^(1-q) - 1) / (1-q), and log x where q is 1.
func (d Distribution) integral(x float64) float64 {
	l := math.Log(x)
	return ratio(math.Expm1, (1-d.exponent)*l) * l
}

// inverse is the inverse of integral.
func (d Distribution) inverse(y float64) float64 {
	t := max((1-d.exponent)*y, -1)
	return math.Exp(ratio(math.Log1p, t) * y)
}

// ratio is f(x)/x, where f(x) is near x for small x.
func ratio(f func(float64) float64, x float64) float64 {
	if math.Abs(x) < 1e-12 {
		return 1
	}
	return f(x) / x
}
