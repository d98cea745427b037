package compare

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/stats"
	"github.com/rissodb/risso/internal/measure/workload"
)

// Runner makes one run of its side.
type Runner func(ctx context.Context) (*bench.Result, error)

// The orders of runs.
const (
	// Each pair in an order drawn by the seed. Then the test of pairs holds its promise whatever the machine does, for by chance alone
	// a pair of like runs has either sign (Fisher, The Design of Experiments, 1935): moods that last, trends, rhythms. If pairs are
	// too few to tell anything, and ranks are judged, all runs are shuffled, for the same reason.
	OrderRandom = "random"
	// A B B A A B B A …: a steady drift hits both alike and widens no interval; moods that last some runs make it err more often than it
	// says, and a rhythm of four runs most of the time.
	OrderABBA = "abba"
)

// Order returns the sides of 2n runs: false is A, true is B.
func Order(how string, n int, seed uint64) ([]bool, error) {
	rng := rand.New(rand.NewPCG(seed, 3))
	out := make([]bool, 0, 2*n)
	if shuffled(how, n) {
		for i := range 2 * n {
			out = append(out, i%2 == 1)
		}
		rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
		return out, nil
	}
	for i := range n {
		first := i%2 == 1
		switch how {
		case OrderABBA:
		case OrderRandom:
			first = rng.IntN(2) == 1
		default:
			return nil, fmt.Errorf("%w: no order %q; use abba or random", workload.ErrUsage, how)
		}
		out = append(out, first, !first)
	}
	return out, nil
}

// InTurns says for both sides how runs in such an order are paired.
func InTurns(how string, n int, sides ...*Side) {
	for _, s := range sides {
		s.Shuffled = shuffled(how, n)
		s.Paired = !s.Shuffled
	}
}

// shuffled reports whether 2n runs have no pairs: pairs of so few tell nothing.
func shuffled(how string, n int) bool { return how == OrderRandom && n < stats.LeastPairs(Confidence) }

// OrderString shows an order as letters.
func OrderString(order []bool) string {
	var b strings.Builder
	for _, second := range order {
		if second {
			b.WriteByte('B')
		} else {
			b.WriteByte('A')
		}
	}
	return b.String()
}

// Interleave makes the runs in the order given and puts them into the sides. When ctx ends, or a run fails, it stops; a run that
// was cut off does not count. before is called before each run; may be nil.
func Interleave(ctx context.Context, order []bool, a, b *Side, runA, runB Runner, before func(i int, second bool)) (interrupted bool, err error) {
	for i, second := range order {
		side, run := a, runA
		if second {
			side, run = b, runB
		}
		if ctx.Err() != nil {
			return true, nil
		}
		if before != nil {
			before(i, second)
		}
		result, err := run(ctx)
		if ctx.Err() != nil {
			return true, nil // what came of a run that was cut off, error or result, says nothing
		}
		if err != nil {
			return false, fmt.Errorf("run %d of %d, of %s: %w", i+1, len(order), side.Name, err)
		}
		side.Runs = append(side.Runs, result)
	}
	return false, nil
}
