// Package scale says how throughput grows with the number of sessions: a sweep of thread counts, the Universal Scalability
// Law fitted to it, what the law predicts for counts that were not run, and whether to believe it.
package scale

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/stats"
	"github.com/rissodb/risso/internal/measure/workload"
)

// Point is the throughput of one run.
type Point struct {
	Threads int     `json:"threads"`
	TPS     float64 `json:"tps"` // transactions per second
}

// Measured is what was measured with one number of threads.
type Measured struct {
	Threads int       `json:"threads"`
	Runs    []float64 `json:"runs"` // transactions per second
	Median  float64   `json:"median"`
	Law     float64   `json:"law,omitempty"` // what the law says here
	// Error is that of the law, as a share of the median: above 0 the law predicts more than was measured.
	Error  float64 `json:"error"`
	Beyond bool    `json:"beyond,omitempty"` // more threads than the machine has processors
}

// Bound is a 95 % interval; an unbounded end is left out.
type Bound struct {
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
}

// Prediction is what the law predicts for a number of threads that was not run.
type Prediction struct {
	Threads int     `json:"threads"`
	TPS     float64 `json:"tps"`
	Bound   Bound   `json:"interval"`
	// Outside says that the number is larger than any that was run: the prediction is an extrapolation.
	Outside bool `json:"outside,omitempty"`
}

// Law is the law fitted, and how well it fits.
type Law struct {
	stats.USL
	LambdaBound Bound    `json:"lambda_interval"`
	SigmaBound  Bound    `json:"sigma_interval"`
	KappaBound  Bound    `json:"kappa_interval"`
	Peak        *float64 `json:"peak_threads,omitempty"` // nil: throughput keeps growing
	PeakBound   Bound    `json:"peak_interval"`
	PeakTPS     *float64 `json:"peak_tps,omitempty"`
	RSquared    float64  `json:"r_squared"`
	// Stretches is the number of runs of errors of the same sign; PatternP is the probability of so few by chance (Wald-Wolfowitz).
	Stretches int     `json:"stretches"`
	PatternP  float64 `json:"pattern_p"`
	// Errors of the law at a number of threads left out of the fit, each in turn.
	TypicalError float64  `json:"left_out_median_error"`
	LargestError float64  `json:"left_out_largest_error"`
	LargestAt    int      `json:"left_out_largest_at"`
	Fits         bool     `json:"fits"`
	Doubts       []string `json:"doubts"` // why not
}

// Report is a sweep with its law.
type Report struct {
	Source      string       `json:"source"` // a file, or a server and a workload
	Processors  int          `json:"processors,omitempty"`
	Points      []Measured   `json:"points"`
	Law         *Law         `json:"law,omitempty"` // nil: too few numbers of threads
	Predictions []Prediction `json:"predictions"`
	// Curve is the law from one thread to twice the largest number, with its bounds, for charts.
	Curve       []Curve  `json:"curve"`
	Words       []string `json:"words"`
	Notes       []string `json:"notes"`
	Interrupted bool     `json:"interrupted,omitempty"`
	Order       []int    `json:"order,omitempty"` // numbers of threads in the order they were run
	Seed        uint64   `json:"seed"`
}

// Curve is one point of the law's curve.
type Curve struct {
	Threads float64 `json:"threads"`
	TPS     float64 `json:"tps"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
}

// Options are what is known besides the points.
type Options struct {
	Source     string
	Processors int   // of the machine that was measured; 0: not known
	Predict    []int // thread counts to predict; nil: chosen
	Seed       uint64
}

// Fit makes a report of a sweep. Points of the same count are several runs. Only points that cannot be are an error, which wraps
// workload.ErrUsage.
func Fit(points []Point, o Options) (*Report, error) {
	r := &Report{Source: o.Source, Processors: o.Processors, Seed: o.Seed, Notes: []string{}, Predictions: []Prediction{}, Curve: []Curve{}}
	for _, p := range points {
		if p.Threads < 1 || !(p.TPS > 0) || math.IsInf(p.TPS, 0) {
			return nil, fmt.Errorf("%w: %v transactions per second with %d threads are impossible", workload.ErrUsage, p.TPS, p.Threads)
		}
		i := slices.IndexFunc(r.Points, func(m Measured) bool { return m.Threads == p.Threads })
		if i < 0 {
			i = len(r.Points)
			r.Points = append(r.Points, Measured{Threads: p.Threads, Beyond: o.Processors > 0 && p.Threads > o.Processors})
		}
		r.Points[i].Runs = append(r.Points[i].Runs, p.TPS)
	}
	slices.SortFunc(r.Points, func(a, b Measured) int { return a.Threads - b.Threads })
	for i := range r.Points {
		r.Points[i].Median = stats.Median(r.Points[i].Runs)
	}
	if err := r.law(points, o); err != nil {
		r.Notes = append(r.Notes, "no law: "+err.Error())
	}
	r.words()
	return r, nil
}

func plain(points []Point) []stats.Point {
	out := make([]stats.Point, len(points))
	for i, p := range points {
		out[i] = stats.Point{N: float64(p.Threads), X: p.TPS}
	}
	return out
}

// law fits and judges.
func (r *Report) law(points []Point, o Options) error {
	f, err := stats.FitUSL(plain(points), o.Seed)
	if err != nil {
		return err
	}
	l := &Law{USL: f.USL, RSquared: f.RSquared, Doubts: []string{}}
	l.LambdaBound, l.SigmaBound, l.KappaBound, l.PeakBound = bound(f.Lambda95), bound(f.Sigma95), bound(f.Kappa95), bound(f.Peak95())
	if p := f.Peak(); !math.IsInf(p, 1) {
		top := f.At(p)
		l.Peak, l.PeakTPS = &p, &top
	}
	residuals := make([]float64, len(r.Points))
	for i := range r.Points {
		m := &r.Points[i]
		m.Law = f.At(float64(m.Threads))
		m.Error = m.Law/m.Median - 1
		residuals[i] = m.Median - m.Law
	}
	l.Stretches, l.PatternP = stats.Runs(residuals)
	r.Law = l
	r.leaveOut(points)
	r.judge()
	r.predict(f, o.Predict)
	return nil
}

func bound(i stats.Interval) Bound {
	var b Bound
	if !math.IsInf(i.Low, 0) {
		b.Low = &i.Low
	}
	if !math.IsInf(i.High, 0) {
		b.High = &i.High
	}
	return b
}

// leaveOut fits the law without each number of threads in turn and looks how well it foretells it.
func (r *Report) leaveOut(points []Point) {
	var errs []float64
	for _, m := range r.Points {
		rest := slices.DeleteFunc(plain(points), func(p stats.Point) bool { return p.N == float64(m.Threads) })
		u, err := stats.FitCoefficients(rest)
		if err != nil {
			return
		}
		e := math.Abs(u.At(float64(m.Threads))/m.Median - 1)
		errs = append(errs, e)
		if e > r.Law.LargestError {
			r.Law.LargestError, r.Law.LargestAt = e, m.Threads
		}
	}
	r.Law.TypicalError = stats.Median(errs)
}

// The limits beyond which a fit is doubted.
const (
	leastRSquared = 0.97
	patternLimit  = 0.05
	errorLimit    = 0.15 // of one count
)

// judge says why the law may not describe the sweep.
func (r *Report) judge() {
	l := r.Law
	if l.RSquared < leastRSquared {
		l.Doubts = append(l.Doubts, fmt.Sprintf("R² is %s, below %s", digits.Ratio(l.RSquared), digits.Ratio(leastRSquared)))
	}
	if l.PatternP < patternLimit {
		l.Doubts = append(l.Doubts, fmt.Sprintf("the errors of the law have a pattern: %d runs of one sign over %d thread counts; by chance so few have p %s", l.Stretches, len(r.Points), digits.Chance(l.PatternP)))
	}
	worst := slices.MaxFunc(r.Points, func(a, b Measured) int { return cmp.Compare(math.Abs(a.Error), math.Abs(b.Error)) })
	if math.Abs(worst.Error) > errorLimit {
		l.Doubts = append(l.Doubts, fmt.Sprintf("with %s it says %s a second where %s were measured (%s)", threads(worst.Threads), digits.Count(worst.Law), digits.Count(worst.Median), digits.Change(worst.Error)))
	}
	l.Fits = len(l.Doubts) == 0
}

// curvePlaces is in how many places the curve is given.
const curvePlaces = 100

func (r *Report) predict(f *stats.Fit, asked []int) {
	largest := r.Points[len(r.Points)-1].Threads
	if asked == nil {
		asked = r.chosen()
	}
	slices.Sort(asked)
	for _, n := range slices.Compact(asked) {
		x, i := f.Predict(float64(n))
		r.Predictions = append(r.Predictions, Prediction{Threads: n, TPS: x, Bound: bound(i), Outside: n > largest})
	}
	if !r.Law.Fits && slices.ContainsFunc(r.Predictions, func(p Prediction) bool { return p.Outside }) {
		r.Notes = append(r.Notes, "a law that does not fit must not be extrapolated: predictions outside the sweep may be far off, which their intervals do not include")
	}
	first := float64(r.Points[0].Threads)
	for i := range curvePlaces {
		n := first * math.Pow(2*float64(largest)/first, float64(i)/(curvePlaces-1))
		x, b := f.Predict(n)
		r.Curve = append(r.Curve, Curve{n, x, b.Low, b.High})
	}
}

// chosen are thread counts worth a prediction: the middle of each wide gap, the peak, and twice the largest.
func (r *Report) chosen() (out []int) {
	ran := func(n int) bool {
		return slices.ContainsFunc(r.Points, func(m Measured) bool { return m.Threads == n })
	}
	for i := 1; i < len(r.Points); i++ {
		a, b := r.Points[i-1].Threads, r.Points[i].Threads
		if b >= a+a/2 && b-a > 1 {
			out = append(out, (a+b)/2)
		}
	}
	largest := r.Points[len(r.Points)-1].Threads
	if p := r.Law.Peak; p != nil && *p >= 1 && *p < 4*float64(largest) {
		if n := int(math.Round(*p)); !ran(n) {
			out = append(out, n)
		}
	}
	return append(out, 2*largest)
}

// Runner makes one run with so many threads.
type Runner func(ctx context.Context, threads int) (*bench.Result, error)

// Sweep runs all thread counts, round by round; each round in another order drawn by the seed, so that a machine that
// drifts bends no curve. When ctx ends it returns what there is so far. before is called before each run; may be nil.
func Sweep(ctx context.Context, counts []int, runs int, seed uint64, run Runner, before func(i, threads int)) (points []Point, order []int, interrupted bool, err error) {
	rng := rand.New(rand.NewPCG(seed, 4))
	for range runs {
		round := slices.Clone(counts)
		rng.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
		for _, n := range round {
			if ctx.Err() != nil {
				return points, order, true, nil
			}
			if before != nil {
				before(len(order), n)
			}
			result, err := run(ctx, n)
			if ctx.Err() != nil {
				return points, order, true, nil
			}
			if err != nil {
				return points, order, false, fmt.Errorf("run with %s: %w", threads(n), err)
			}
			if result.TransactionsPerSecond > 0 {
				points = append(points, Point{n, result.TransactionsPerSecond})
			}
			order = append(order, n)
		}
	}
	return points, order, false, nil
}

func threads(n int) string { return digits.Counted(n, "thread") }
