package tpcc

import (
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
)

// weights counts, for each number from x to y, the pairs of a number from 0 to a and one from x to y that nurand maps to
// it: the exact law, by definition.
func weights(a, c, x, y int64) []float64 {
	w := make([]float64, y-x+1)
	for i := range a + 1 {
		for j := x; j <= y; j++ {
			w[((i|j)+c)%(y-x+1)]++
		}
	}
	return w
}

// chiSquare compares counts with a law, cells of small expectation taken together, and gives the deviation from the mean
// of chi-square in standard deviations.
func chiSquare(counts, law []float64) float64 {
	total, n := 0.0, 0.0
	for i := range law {
		total += law[i]
		n += counts[i]
	}
	sum, cells, restCount, restWant := 0.0, 0.0, 0.0, 0.0
	for i := range law {
		want := law[i] / total * n
		if want < 20 {
			restCount, restWant = restCount+counts[i], restWant+want
			continue
		}
		sum += (counts[i] - want) * (counts[i] - want) / want
		cells++
	}
	if restWant > 0 {
		sum += (restCount - restWant) * (restCount - restWant) / restWant
		cells++
	}
	return (sum - (cells - 1)) / math.Sqrt(2*(cells-1))
}

func TestNURandFollowsItsLaw(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const draws = 1_000_000
	for name, x := range map[string]struct {
		a, c, x, y int64
		draw       func() int64
	}{
		"last names of the run":  {lastNameA, lastNameRunC, 0, 999, func() int64 { return drawLastName(rng, lastNameRunC) }},
		"last names of the load": {lastNameA, lastNameLoadC, 0, 999, func() int64 { return drawLastName(rng, lastNameLoadC) }},
		"customers":              {customerA, customerC, 1, 3000, func() int64 { return drawCustomer(rng) }},
	} {
		counts := make([]float64, x.y-x.x+1)
		for range draws {
			counts[x.draw()-x.x]++
		}
		if z := chiSquare(counts, weights(x.a, x.c, x.x, x.y)); math.Abs(z) > 5 {
			t.Errorf("%s: chi-square is %.1f standard deviations off, want at most 5", name, z)
		}
		if z := chiSquare(counts, slices.Repeat([]float64{1}, len(counts))); z < 100 {
			t.Errorf("%s look uniform: %.1f, want at least 100", name, z)
		}
	}
}

// The share of draws that meet the hottest items is published: 84 % the hottest 20 %, 71 % the hottest 10 %, 39 % the
// hottest 2 %. Source: Leutenegger and Dias, A Modeling Study of the TPC-C Benchmark, SIGMOD 1993.
func TestItemsAreAsSkewedAsPublished(t *testing.T) {
	// A number is hit by three pairs for each bit that is set in it and one for each that is not, for a has thirteen random
	// bits and b is nearly uniform in them.
	law := make([]float64, items)
	total := 0.0
	for v := range items {
		law[v] = math.Pow(3, float64(bits.OnesCount(uint(v&itemA))))
		total += law[v]
	}
	rng := rand.New(rand.NewPCG(3, 4))
	counts := make([]float64, items)
	const draws = 1_000_000
	for range draws {
		counts[(drawItem(rng)-1-itemC+items)%items]++ // without the constant
	}
	hottest := make([]int, items)
	for i := range hottest {
		hottest[i] = i
	}
	slices.SortFunc(hottest, func(a, b int) int { return int(law[b] - law[a]) })
	for share, want := range map[float64]float64{0.20: 0.84, 0.10: 0.71, 0.02: 0.39} {
		hits := 0.0
		for _, v := range hottest[:int(share*items)] {
			hits += counts[v]
		}
		if got := hits / draws; math.Abs(got-want) > 0.015 {
			t.Errorf("the hottest %.0f %% of the items get %.3f of the draws, published is %.2f; want math.Abs(got - want) at most 0.015",
				share*100, got, want)
		}
	}
}

// Clause 2.1.6.1.
func TestConstantsOfLastNames(t *testing.T) {
	d := int64(lastNameRunC - lastNameLoadC)
	if d < 65 || d > 119 || d == 96 || d == 112 || lastNameRunC > lastNameA || customerC > customerA || itemC > itemA {
		t.Errorf("constants %d and %d; want d from 65 to 119, d not 96, d not 112, lastNameRunC at most %d, customerC at most %v, itemC at most %v",
			lastNameLoadC, lastNameRunC, lastNameA, customerA, itemA)
	}
}

// The example of clause 4.3.2.3.
func TestLastNames(t *testing.T) {
	for n, want := range map[int64]string{371: "PRICALLYOUGHT", 40: "BARPRESBAR", 0: "BARBARBAR", 999: "EINGEINGEING"} {
		if got := string(appendLastName(nil, n)); got != want {
			t.Errorf("%d is %s, not %s", n, got, want)
		}
	}
}

func TestDeckDealsTheMixExactly(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	d := newDeck()
	var first, hands []int
	for hand := range 50 {
		var n [kinds]int
		var order []int
		for range 100 {
			k := d.deal(rng)
			n[k]++
			order = append(order, k)
		}
		if n != mix {
			t.Fatalf("hand %d has %v, want %v", hand, n, mix)
		}
		if first == nil {
			first = order
		} else if slices.Equal(first, order) {
			hands = append(hands, hand)
		}
	}
	if len(hands) > 0 {
		t.Errorf("hands %v are in the order of the first, want none", hands)
	}
}

func TestInputs(t *testing.T) {
	c := &client{rng: rand.New(rand.NewPCG(7, 8)), warehouses: 10}
	const n = 100_000
	var lines, remote, back, local, far, named, homes float64
	for range n {
		o := c.drawNewOrder()
		wantLocal := int64(1)
		for i, l := range o.lines {
			lines++
			if l.supplier != o.warehouse {
				remote++
				wantLocal = 0
			}
			if l.supplier < 1 || l.supplier > 10 || l.quantity < 1 || l.quantity > 10 || l.item < 1 || l.item > items && (l.item != noItem || i != len(o.lines)-1) {
				t.Fatalf("line %+v", l)
			}
		}
		if o.local != wantLocal {
			t.Fatalf("o_all_local is %d: %+v, want %d", o.local, o, wantLocal)
		}
		local += float64(o.local)
		if o.lines[len(o.lines)-1].item == noItem {
			back++
		}
		p := c.drawPayment()
		if p.buyer.warehouse != p.warehouse {
			far++
		} else if p.buyer.district == p.district {
			homes++
		}
		if p.buyer.number == 0 {
			named++
		}
		if p.cents < 100 || p.cents > 500000 {
			t.Fatalf("payment %+v, want cents from 100 to 500000", p)
		}
	}
	for name, x := range map[string]struct{ got, of, share float64 }{
		"lines from other warehouses":     {remote, lines, 0.01},
		"new orders that are rolled back": {back, n, 0.01},
		"payments of other warehouses":    {far, n, 0.15},
		"payments at home":                {homes, n, 0.85},
		"payments by last name":           {named, n, 0.60},
	} {
		if math.Abs(x.got-x.of*x.share) > 5*math.Sqrt(x.of*x.share*(1-x.share)) {
			t.Errorf("%s: %.0f of %.0f, not %.2f", name, x.got, x.of, x.share)
		}
	}
	if mean := lines / n; math.Abs(mean-10) > 5*math.Sqrt(10.0/n) {
		t.Errorf("got %.3f lines an order, want math.Abs(mean - 10) at most 5 * math.Sqrt(10.0/n)", mean)
	}
}

func TestOtherWarehouse(t *testing.T) {
	c := &client{rng: rand.New(rand.NewPCG(9, 10)), warehouses: 3}
	seen := map[int64]int{}
	for range 3000 {
		seen[c.other(2)]++
	}
	if len(seen) != 2 || seen[1] < 1300 || seen[3] < 1300 {
		t.Errorf("others than 2 of 3: got %v; want len(seen) 2, seen[1] at least 1300, seen[3] at least 1300", seen)
	}
	if c.warehouses = 1; c.other(1) != 1 {
		t.Error("the only warehouse has no other")
	}
}

func TestDecimals(t *testing.T) {
	for text, n := range map[string]int64{"0.00": 0, "0.05": 5, "12.34": 1234, "-10.00": -1000, "-0.07": -7, "300000.00": 30000000} {
		if got := decimal([]byte(text), 2); got != n {
			t.Errorf("%s is %d, not %d", text, got, n)
		}
		if got := string(appendDecimal(nil, n, 2)); got != text {
			t.Errorf("%d is %s, not %s", n, got, text)
		}
	}
	for text, n := range map[string]int64{"7": 700, "7.5": 750, ".5": 50, "7.999": 799} {
		if got := decimal([]byte(text), 2); got != n {
			t.Errorf("%s is %d, not %d", text, got, n)
		}
	}
	if got := string(appendDecimal(nil, 1234, 4)); got != "0.1234" {
		t.Errorf("got %v, want \"0.1234\"", got)
	}
}

func TestData(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	original, at := 0.0, map[int]bool{}
	const n = 50_000
	for range n {
		s := string(appendData(nil, rng))
		if len(s) < 26 || len(s) > 50 || strings.Trim(s, alphanumeric) != "" {
			t.Fatalf("data %q; want len(s) from 26 to 50, strings.Trim(s, alphanumeric) \"\"", s)
		}
		if i := strings.Index(s, "ORIGINAL"); i >= 0 {
			original++
			at[i] = true
		}
	}
	if math.Abs(original-n/10) > 5*math.Sqrt(n*0.09) || len(at) < 40 {
		t.Errorf("%.0f of %d are ORIGINAL, at %d places; want math.Abs(original - n/10) at most 5 * math.Sqrt(n*0.09), len(at) at least 40",
			original, n, len(at))
	}
}

func TestUsage(t *testing.T) {
	for _, p := range []workload.Params{{Warehouses: -1}, {Warehouses: maxWarehouses + 1}, {Unprepared: true}} {
		if _, err := New("tpcc", p); !errors.Is(err, workload.ErrUsage) {
			t.Errorf("got %+v: %v, want workload.ErrUsage", p, err)
		}
	}
}

func TestPlaceholders(t *testing.T) {
	if got := placeholders(drive.Postgres, "a = ? AND b = ?"); got != "a = $1 AND b = $2" {
		t.Errorf("got %v, want \"a = $1 AND b = $2\"", got)
	}
	if got := placeholders(drive.MySQL, "a = ?"); got != "a = ?" {
		t.Errorf("got %v, want \"a = ?\"", got)
	}
}
