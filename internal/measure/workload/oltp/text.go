package oltp

import (
	"math/bits"
	"math/rand/v2"
)

// The columns c and pad are groups of 11 digits with dashes between them: 10 groups and 5.
const (
	groupSize = 11
	cSize     = 10*(groupSize+1) - 1
	padSize   = 5*(groupSize+1) - 1
)

// pairs are the numbers from 00 to 99 as text.
const pairs = "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899"

// fillGroups fills b with groups of random digits; the length of b is a multiple of 12 less one.
func fillGroups(rng *rand.Rand, b []byte) {
	for {
		group(rng, b[:groupSize])
		if len(b) == groupSize {
			return
		}
		b[groupSize] = '-'
		b = b[groupSize+1:]
	}
}

// group writes 11 random digits. The upper half of a product with 10^11 is a number below that, each with the same
// probability up to one part in 10^8.
func group(rng *rand.Rand, b []byte) {
	high, _ := bits.Mul64(rng.Uint64(), 1e11)
	low := uint32(high % 1e6)
	up := uint32(high / 1e6) // below 10^5
	_ = b[10]
	b[0] = '0' + byte(up/10000)
	up %= 10000
	two(b[1:], up/100)
	two(b[3:], up%100)
	two(b[5:], low/10000)
	low %= 10000
	two(b[7:], low/100)
	two(b[9:], low%100)
}

func two(b []byte, n uint32) { b[0], b[1] = pairs[2*n], pairs[2*n+1] }
