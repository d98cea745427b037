package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/stats"
)

// weathers are ways in which a machine's speed (as a logarithm) goes from run to run.
func weathers() map[string]func(rng *rand.Rand, n int) []float64 {
	each := func(of func(rng *rand.Rand) func(i int) float64) func(*rand.Rand, int) []float64 {
		return func(rng *rand.Rand, n int) []float64 {
			v, at := make([]float64, n), of(rng)
			for i := range v {
				v[i] = at(i)
			}
			return v
		}
	}
	moods := func(phi float64) func(*rand.Rand, int) []float64 {
		return each(func(rng *rand.Rand) func(int) float64 {
			x := rng.NormFloat64() / math.Sqrt(1-phi*phi)
			return func(int) float64 { x = phi*x + rng.NormFloat64(); return x / 20 }
		})
	}
	return map[string]func(*rand.Rand, int) []float64{
		"even": each(func(rng *rand.Rand) func(int) float64 { return func(int) float64 { return rng.NormFloat64() / 20 } }),
		"heavy tails": each(func(rng *rand.Rand) func(int) float64 {
			return func(int) float64 { return rng.NormFloat64() / math.Sqrt(rng.ExpFloat64()) / 20 } // Student's t of two degrees
		}),
		"short moods": moods(0.4),
		"long moods":  moods(0.9),
		"a trend": each(func(rng *rand.Rand) func(int) float64 {
			return func(i int) float64 { return (rng.NormFloat64() - float64(i)/2) / 20 }
		}),
		"a rhythm": each(func(rng *rand.Rand) func(int) float64 { // of four runs
			phase := rng.IntN(4)
			return func(i int) float64 { return (rng.NormFloat64() + 10*float64((i+phase)/2%2)) / 20 }
		}),
	}
}

// played are figures of runs in the order given, B faster by a ratio.
func played(weather []float64, order []bool, ratio float64) (p paired, a, b []float64) {
	p.pairs = len(order)/2 >= stats.LeastPairs(Confidence)
	for i, second := range order {
		if v := 1000 * math.Exp(weather[i]); second {
			b, p.b = append(b, ratio*v), append(p.b, &bench.Result{})
		} else {
			a, p.a = append(a, v), append(p.a, &bench.Result{})
		}
	}
	return p, a, b
}

// atMost is how often something may happen in so many rounds if its chance is p: four standard deviations more.
func atMost(p float64, rounds int) float64 {
	return p + 4*math.Sqrt(p*(1-p)/float64(rounds))
}

func compared(t *testing.T, p paired, a, b []float64, alpha float64) stats.Comparison {
	t.Helper()
	test, err := p.test(alpha)
	if err != nil {
		t.Fatal(err)
	}
	c, err := test.Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func drawn(t *testing.T, how string, n int, rng *rand.Rand) []bool {
	t.Helper()
	order, err := Order(how, n, rng.Uint64())
	if err != nil {
		t.Fatal(err)
	}
	return order
}

// TestFalseAlarms: of comparisons of A with A no more than one in twenty tells a difference, and the intervals hold the truth,
// whatever the machine does in the meantime.
func TestFalseAlarms(t *testing.T) {
	if testing.Short() {
		t.Skip("short: thousands of comparisons of drawn figures, each in one goroutine")
	}
	const rounds = 1000
	for name, weather := range weathers() {
		for _, n := range []int{5, 12} { // five are shuffled and judged by ranks
			t.Run(fmt.Sprintf("%s, %d of each", name, n), func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(uint64(n), 21))
				wolf, missed := 0, 0
				for range rounds {
					order := drawn(t, OrderRandom, n, rng)
					p, a, b := played(weather(rng, 2*n), order, 1.1)
					c := compared(t, p, a, b, 0.05)
					if c.Low > 1.1*(1+1e-9) || c.High < 1.1*(1-1e-9) {
						missed++
					}
					if c := compared(t, p, a, scaled(1/1.1, b...), 0.05); c.P < 0.05 {
						wolf++
					}
				}
				if share := float64(wolf) / rounds; share > atMost(0.05, rounds) {
					t.Errorf("%.3f tell a difference that is none, want at most atMost(0.05, rounds)", share)
				}
				p, a, b := played(make([]float64, 2*n), drawn(t, OrderRandom, n, rng), 1)
				if share := float64(missed) / rounds; share > atMost(1-compared(t, p, a, b, 0.05).Held, rounds) {
					t.Errorf("got %.3f of the intervals miss the truth, want at most atMost(1-compared(t, p, a, b, 0.05).Held, rounds)", share)
				}
			})
		}
	}
	// The same of the other order, which --order abba takes: a rhythm defeats it, and the documents say so.
	rng, wolf := rand.New(rand.NewPCG(1, 22)), 0
	for range 200 {
		order := drawn(t, OrderABBA, 10, rng)
		p, a, b := played(weathers()["a rhythm"](rng, 20), order, 1)
		if compared(t, p, a, b, 0.05).P < 0.05 {
			wolf++
		}
	}
	if wolf < 60 {
		t.Errorf("a rhythm of four runs defeats ABBA in %d of 200, want at least 60", wolf)
	}
}

// TestFalseAlarmsOfLooks: looking again and again, as --precise does, errs no more often than one look would.
func TestFalseAlarmsOfLooks(t *testing.T) {
	if testing.Short() {
		t.Skip("short: thousands of comparisons of drawn figures, each in one goroutine")
	}
	const rounds = 300
	looks, alpha := Precise{Within: 0.03, Most: 40}.Looks()
	for name, weather := range weathers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(3, 23))
			wolf, naive := 0, 0
			for range rounds {
				order := drawn(t, OrderRandom, 40, rng)
				speed := weather(rng, 80)
				told, plain := false, false
				for i, n := range looks {
					p, a, b := played(speed[:2*n], order[:2*n], 1)
					at := compared(t, p, a, b, alpha[i]).P
					told, plain = told || at < alpha[i], plain || at < 0.05
				}
				if told {
					wolf++
				}
				if plain {
					naive++
				}
			}
			if share := float64(wolf) / rounds; share > atMost(0.05, rounds) {
				t.Errorf("%.3f tell a difference that is none, want at most atMost(0.05, rounds)", share)
			}
			if name == "even" && naive < rounds/12 {
				t.Errorf("%d of %d without the correction: the test cannot fail", naive, rounds)
			}
		})
	}
}

// TestPower: what is said to show four times in five does so, and not nearly always; where the noise has few values, or a few that
// are far away, twelve pairs show that less well.
func TestPower(t *testing.T) {
	if testing.Short() {
		t.Skip("short: thousands of comparisons of drawn figures, each in one goroutine")
	}
	for name, weather := range weathers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(5, 24))
			const n, rounds, tries = 12, 30, 20
			found, promised := 0, 0
			for round := range rounds {
				p, a, b := played(weather(rng, 2*n), drawn(t, OrderRandom, n, rng), 1)
				test, err := p.test(0.05)
				if err != nil {
					t.Fatal(err)
				}
				ratio := test.Detectable(a, b, uint64(round))
				if math.IsInf(ratio, 1) {
					continue // nothing is promised
				}
				for range tries {
					promised++
					p, a, b := played(weather(rng, 2*n), drawn(t, OrderRandom, n, rng), ratio)
					if compared(t, p, a, b, 0.05).P < 0.05 {
						found++
					}
				}
			}
			least := 0.7
			if name == "a rhythm" || name == "heavy tails" {
				least = 0.6
			}
			if share := float64(found) / float64(promised); share < least || share > 0.95 || promised < rounds*tries/2 {
				t.Errorf("what is said to show four times in five shows in %.2f of %d; want share from %v to 0.95, promised at least %d",
					share, promised, least, rounds*tries/2)
			}
		})
	}
}
