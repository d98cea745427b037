package digest

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestCounts holds the counters, few and many, against a map.
func TestCounts(t *testing.T) {
	for _, x := range []struct {
		many   int
		apart  uint32 // how far numbers are from each other
		atOnce int    // how many counters are in the table before there are pages
	}{{10, 1, fewSlots / 2}, {500, 1, fewSlots / 2}, {5000, 1, fewSlots / 2}, {2000, 100, manySlots / 2}, {5000, 50, manySlots / 2}} {
		var c counts
		many := x.many
		want := map[[2]uint32]uint64{}
		r := rand.New(rand.NewPCG(1, uint64(many)))
		for range 20 * many {
			k := [2]uint32{r.Uint32N(20), r.Uint32N(uint32(many)/4) * x.apart}
			n := uint64(1)
			if r.IntN(50) == 0 {
				n = math.MaxUint16 - 2 + r.Uint64N(5) // what a page's counter can just hold, and what it cannot
			}
			if r.IntN(1000) == 0 {
				n = math.MaxUint32
			}
			if c.has(k[0], k[1]) != (want[k] > 0) {
				t.Fatalf("%d: has %v is wrong, want c.has(k[0], k[1]) want[k] > 0", many, k)
			}
			if n == 1 && c.bump(k[0], k[1]) {
				if want[k] == 0 {
					t.Fatalf("%d: %v was bumped before it was added, want want[k] not 0", many, k)
				}
			} else if isNew := c.add(k[0], k[1], n); isNew != (want[k] == 0) {
				t.Fatalf("%d: %v: new is %v, want want[k] == 0", many, k, isNew)
			}
			want[k] += n
		}
		if pages := c.pages != nil; pages != (len(want) > x.atOnce) {
			t.Errorf("got %d counters, %d apart: in pages: %v; want %v", len(want), x.apart, pages, len(want) > x.atOnce)
		}
		c.each(func(dim, id uint32, n uint64) {
			k := [2]uint32{dim, id}
			if want[k] != n {
				t.Errorf("%v is %d, not %d", k, n, want[k])
			}
			delete(want, k)
		})
		if len(want) > 0 {
			t.Errorf("%d of %d: %d counters are missing, want none", many, c.used, len(want))
		}
	}
}

// TestCountsFull adds one by one to a counter until its page cannot hold it.
func TestCountsFull(t *testing.T) {
	var c counts
	for id := range uint32(fewSlots) {
		c.add(1, id, 1)
	}
	for range 3 * math.MaxUint16 {
		if !c.bump(1, 7) && c.add(1, 7, 1) {
			t.Fatal("the counter is new again")
		}
	}
	c.each(func(_, id uint32, n uint64) {
		if want := map[bool]uint64{true: 3*math.MaxUint16 + 1, false: 1}[id == 7]; n != want {
			t.Errorf("%d is %d, not %d", id, n, want)
		}
	})
}

func TestHistBucket(t *testing.T) {
	low := uint64(10)
	for i := range 7 {
		if a, b := histBucket(low-1), histBucket(low); a != i || b != i+1 {
			t.Errorf("%d is in %d, %d in %d; want a %d, b %d", low-1, a, low, b, i, i+1)
		}
		low *= 10
	}
	if histBucket(0) != 0 || histBucket(math.MaxUint64) != 7 {
		t.Error("the ends are wrong")
	}
}
