package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rissodb/risso/internal/digits"
)

// Point is the throughput that was measured with a number of sessions.
type Point struct {
	N float64 `json:"n"`
	X float64 `json:"x"`
}

// USL is the Universal Scalability Law, X(N) = λN / (1 + σ(N−1) + κN(N−1)).
// Source: Gunther, Guerrilla Capacity Planning (2007).
type USL struct {
	Lambda float64 `json:"lambda"` // throughput of one session
	Sigma  float64 `json:"sigma"`  // contention: the serial share of the work
	Kappa  float64 `json:"kappa"`  // coherency: the cost of each pair of sessions
}

// At is the throughput with n sessions.
func (u USL) At(n float64) float64 {
	return u.Lambda * n / (1 + u.Sigma*(n-1) + u.Kappa*n*(n-1))
}

// Peak is the number of sessions with the highest throughput, √((1−σ)/κ); +Inf when throughput only ever grows, and 1 when it
// only ever falls: there are no fewer sessions than one.
func (u USL) Peak() float64 {
	switch {
	case u.Sigma >= 1:
		return 1
	case u.Kappa <= 0:
		return math.Inf(1)
	}
	return max(1, math.Sqrt((1-u.Sigma)/u.Kappa))
}

// Interval bounds a figure.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Fit is a law fitted to a sweep.
type Fit struct {
	USL
	RSquared float64 `json:"r_squared"`
	Lambda95 Interval
	Sigma95  Interval
	Kappa95  Interval

	points  []Point
	samples []USL // laws that the points allow, as likely as they are
}

// draws is how many laws are drawn for the intervals.
const draws = 2000

// FitUSL fits the law by least squares of the throughputs, as the usl package of R does, with σ and κ not below zero. The
// intervals are percentiles of laws drawn from the distribution of the coefficients, Student's t around the fit with the
// covariance of its linear form (Bates and Watts, Nonlinear Regression Analysis, 1988); seed makes them repeatable.
func FitUSL(points []Point, seed uint64) (*Fit, error) {
	if err := checkPoints(points); err != nil {
		return nil, err
	}
	f := &Fit{USL: fitOnce(points), points: slices.Clone(points)}
	var mean, within, total float64
	for _, p := range points {
		mean += p.X / float64(len(points))
	}
	for _, p := range points {
		within += (p.X - f.At(p.N)) * (p.X - f.At(p.N))
		total += (p.X - mean) * (p.X - mean)
	}
	switch {
	case total > 0:
		f.RSquared = 1 - within/total
	case within == 0:
		f.RSquared = 1
	}
	f.draw(within, rand.New(rand.NewPCG(seed, 1)))
	f.Lambda95 = f.interval(func(u USL) float64 { return u.Lambda })
	f.Sigma95 = f.interval(func(u USL) float64 { return u.Sigma })
	f.Kappa95 = f.interval(func(u USL) float64 { return u.Kappa })
	return f, nil
}

func checkPoints(points []Point) error {
	distinct := map[float64]bool{}
	for _, p := range points {
		if !(p.N > 0) || !(p.X > 0) || math.IsInf(p.X, 0) || math.IsInf(p.N, 0) {
			return fmt.Errorf("a throughput of %v with %v sessions cannot be fitted", p.X, p.N)
		}
		distinct[p.N] = true
	}
	if len(distinct) < 4 {
		return fmt.Errorf("%w: %s of sessions; at least four are needed for three coefficients", ErrTooFew, digits.Plural(len(distinct), "number", "different numbers"))
	}
	return nil
}

// Predict returns the throughput with n sessions and bounds the law there with 95 % confidence.
func (f *Fit) Predict(n float64) (float64, Interval) {
	return f.At(n), f.interval(func(u USL) float64 { return u.At(n) })
}

// Peak95 bounds the number of sessions with the highest throughput.
func (f *Fit) Peak95() Interval { return f.interval(USL.Peak) }

func (f *Fit) interval(of func(USL) float64) Interval {
	v := make([]float64, len(f.samples))
	for i, u := range f.samples {
		v[i] = of(u)
	}
	slices.Sort(v)
	return Interval{Low: v[len(v)*25/1000], High: v[len(v)*975/1000-1]}
}

// draw draws laws from the distribution of the coefficients, given the sum of the squared errors.
func (f *Fit) draw(within float64, rng *rand.Rand) {
	free := [3]bool{true, f.Sigma > 0, f.Kappa > 0}
	var a [3][3]float64
	degrees := float64(len(f.points))
	for i := range free {
		if free[i] {
			degrees--
		}
	}
	for _, p := range f.points {
		accumulate(&a, new([3]float64), f.slopes(p.N), 0, 1, free)
	}
	root := cholesky(inverse(a))
	spread := math.Sqrt(within / degrees)
	for range draws {
		scale := spread / math.Sqrt(chiSquared(rng, degrees)/degrees)
		c := [3]float64{f.Lambda, f.Sigma, f.Kappa}
		z := [3]float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
		for i := range c {
			for j := 0; j <= i && free[i]; j++ {
				c[i] += scale * root[i][j] * z[j]
			}
		}
		f.samples = append(f.samples, USL{max(c[0], 0), max(c[1], 0), max(c[2], 0)})
	}
}

// chiSquared draws from the distribution of that name, twice a gamma distribution of half the degrees.
// Source: Marsaglia and Tsang, A simple method for generating gamma variables (2000).
func chiSquared(rng *rand.Rand, degrees float64) float64 {
	shape, boost := degrees/2, 1.0
	if shape < 1 {
		boost = math.Pow(1-rng.Float64(), 1/shape)
		shape++
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := rng.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(1-rng.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return 2 * d * v * boost
		}
	}
}

// slopes are the derivatives of the throughput by λ, σ and κ.
func (u USL) slopes(n float64) [3]float64 {
	d := 1 + u.Sigma*(n-1) + u.Kappa*n*(n-1)
	x := u.Lambda * n / d
	return [3]float64{n / d, -x * (n - 1) / d, -x * n * (n - 1) / d}
}

// fitOnce begins with the linear form N/X = 1/λ + σ/λ(N−1) + κ/λN(N−1) and goes on by Levenberg and Marquardt's method.
// Coefficients that would fall below zero are held there.
func fitOnce(points []Point) USL {
	best, err := USL{}, math.Inf(1)
	// Each of σ and κ free or held at zero: of the allowed ones the best.
	for _, free := range [][3]bool{{true, true, true}, {true, true, false}, {true, false, true}, {true, false, false}} {
		u := refine(points, linear(points, free), free)
		if u.Lambda > 0 && u.Sigma >= 0 && u.Kappa >= 0 {
			if e := squares(points, u); e < err {
				best, err = u, e
			}
		}
	}
	return best
}

func squares(points []Point, u USL) (sum float64) {
	for _, p := range points {
		d := p.X - u.At(p.N)
		sum += d * d
	}
	return sum
}

// linear fits the linear form, weighted so that relative errors count.
func linear(points []Point, free [3]bool) USL {
	var a [3][3]float64
	var b [3]float64
	for _, p := range points {
		row := [3]float64{1, p.N - 1, p.N * (p.N - 1)}
		y, w := p.N/p.X, (p.X/p.N)*(p.X/p.N)
		accumulate(&a, &b, row, y, w, free)
	}
	c := solve(a, b)
	if !(c[0] > 0) {
		return USL{Lambda: points[0].X / points[0].N}
	}
	return USL{Lambda: 1 / c[0], Sigma: c[1] / c[0], Kappa: c[2] / c[0]}
}

func accumulate(a *[3][3]float64, b *[3]float64, row [3]float64, y, weight float64, free [3]bool) {
	for i := range 3 {
		if !free[i] {
			continue
		}
		b[i] += weight * row[i] * y
		for j := range 3 {
			if free[j] {
				a[i][j] += weight * row[i] * row[j]
			}
		}
	}
}

// refine minimises the squares of the errors of the throughput.
func refine(points []Point, u USL, free [3]bool) USL {
	damping, err := 1e-3, squares(points, u)
	for range 200 {
		var a [3][3]float64
		var b [3]float64
		for _, p := range points {
			accumulate(&a, &b, u.slopes(p.N), p.X-u.At(p.N), 1, free)
		}
		for i := range 3 {
			a[i][i] *= 1 + damping
		}
		step := solve(a, b)
		next := USL{u.Lambda + step[0], u.Sigma + step[1], u.Kappa + step[2]}
		if e := squares(points, next); e < err {
			done := err-e <= 1e-12*err
			u, err = next, e
			damping = max(damping/10, 1e-12)
			if done {
				break
			}
		} else if damping *= 10; damping > 1e12 {
			break
		}
	}
	return u
}

// FitCoefficients fits the law as FitUSL does, without intervals.
func FitCoefficients(points []Point) (USL, error) {
	if err := checkPoints(points); err != nil {
		return USL{}, err
	}
	return fitOnce(points), nil
}
