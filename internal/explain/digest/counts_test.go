package digest

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestCounts holds the counters, few and many, against a map.
func TestCounts(t *testing.T) {
	for _, many := range []int{10, 500, 5000} {
		var c counts
		want := map[[2]uint32]uint64{}
		r := rand.New(rand.NewPCG(1, uint64(many)))
		for range 20 * many {
			k := [2]uint32{r.Uint32N(20), r.Uint32N(uint32(many) / 4)}
			n := uint64(1)
			if r.IntN(50) == 0 {
				n = math.MaxUint32 - 2 + r.Uint64N(5) // what a page's counter can just hold, and what it cannot
			}
			if c.has(k[0], k[1]) != (want[k] > 0) {
				t.Fatalf("%d: has %v is wrong", many, k)
			}
			if n == 1 && c.bump(k[0], k[1]) {
				if want[k] == 0 {
					t.Fatalf("%d: %v was bumped before it was added", many, k)
				}
			} else if isNew := c.add(k[0], k[1], n); isNew != (want[k] == 0) {
				t.Fatalf("%d: %v: new is %v", many, k, isNew)
			}
			want[k] += n
		}
		if pages := c.pages != nil; pages != (len(want) > manySlots/2) {
			t.Errorf("%d counters: in pages: %v", len(want), pages)
		}
		c.each(func(dim, id uint32, n uint64) {
			k := [2]uint32{dim, id}
			if want[k] != n {
				t.Errorf("%v is %d, not %d", k, n, want[k])
			}
			delete(want, k)
		})
		if len(want) > 0 {
			t.Errorf("%d of %d: %d counters are missing", many, c.used, len(want))
		}
	}
}

func TestHistBucket(t *testing.T) {
	low := uint64(10)
	for i := range 7 {
		if a, b := histBucket(low-1), histBucket(low); a != i || b != i+1 {
			t.Errorf("%d is in %d, %d in %d", low-1, a, low, b)
		}
		low *= 10
	}
	if histBucket(0) != 0 || histBucket(math.MaxUint64) != 7 {
		t.Error("the ends are wrong")
	}
}
