package digest

import (
	"math"
	"math/bits"
	"strconv"
)

// Numbers are kept as whole millionths ("micros"), so that sums do not depend on the order in which workers
// meet the events. What has more than six decimals is rounded; what is over maxMicros counts as that.
const (
	micro     = 1_000_000
	maxMicros = math.MaxInt64
)

var pow10 = [7]uint64{1, 10, 100, 1000, 10_000, 100_000, 1_000_000}

// parseMicros reads a decimal number at b[i:] and returns it in millionths, and where it ends. The number must
// be followed by a blank, a line's end or nothing; ok is false for anything else.
func parseMicros(b []byte, i int) (v uint64, end int, ok bool) {
	start := i
	for i < len(b) {
		c := b[i] - '0'
		if c > 9 {
			break
		}
		v = v*10 + uint64(c)
		i++
	}
	if i == start || i-start > 18 {
		return slowMicros(b, start)
	}
	if i < len(b) && b[i] == '.' {
		dot := i
		for i++; i < len(b); i++ {
			c := b[i] - '0'
			if c > 9 {
				break
			}
			v = v*10 + uint64(c)
		}
		n := i - dot - 1
		if n > 6 || n == 0 || i-start > 19 {
			return slowMicros(b, start)
		}
		v *= pow10[6-n]
		if dot-start > 12 {
			return slowMicros(b, start)
		}
	} else {
		hi, lo := bits.Mul64(v, micro)
		if hi != 0 || lo > maxMicros {
			lo = maxMicros
		}
		v = lo
	}
	if i < len(b) && b[i] > ' ' {
		return 0, i, false
	}
	return v, i, true
}

// slowMicros is parseMicros for what the fast path does not take: many digits, exponents.
func slowMicros(b []byte, start int) (uint64, int, bool) {
	i := start
	for i < len(b) && b[i] > ' ' && i-start < 64 {
		if c := b[i]; c-'0' > 9 && c != '.' && c != 'e' && c != 'E' && c != '+' && c != '-' {
			return 0, i, false
		}
		i++
	}
	f, err := strconv.ParseFloat(string(b[start:i]), 64)
	if err != nil || f < 0 || (i < len(b) && b[i] > ' ') {
		return 0, i, false
	}
	return toMicros(f), i, true
}

// toMicros rounds to whole millionths.
func toMicros(f float64) uint64 {
	f = math.Round(f * micro)
	if !(f > 0) {
		return 0
	}
	if f >= maxMicros {
		return maxMicros
	}
	return uint64(f)
}

// u128 is a sum that no log can overflow; it stops at its highest value.
type u128 struct{ hi, lo uint64 }

func (a *u128) add(hi, lo uint64) {
	var c uint64
	a.lo, c = bits.Add64(a.lo, lo, 0)
	a.hi, c = bits.Add64(a.hi, hi, c)
	if c != 0 {
		a.hi, a.lo = math.MaxUint64, math.MaxUint64
	}
}

func (a u128) float() float64 { return float64(a.hi)*(1<<64) + float64(a.lo) }
