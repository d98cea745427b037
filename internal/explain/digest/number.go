package digest

import (
	"encoding/binary"
	"errors"
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

var pow10 = [8]uint64{1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000}

// digits8 returns how many of the eight bytes of x, from the first, are digits, and their value, which means nothing
// if there are none. All eight are
// handled together, without branches (SWAR: Lemire, "Quickly parsing eight digits", 2018; Hacker's Delight 6).
func digits8(x uint64) (v uint64, n int) {
	t := x ^ 0x3030303030303030
	other := (t + 0x7676767676767676 | t) & 0x8080808080808080
	n = bits.TrailingZeros64(other) >> 3
	t <<= uint(64-8*n) & 63 // the mask spares a test for shifts of 64
	t = t * (10<<8 + 1) >> 8 & 0x00FF00FF00FF00FF
	t = t * (100<<16 + 1) >> 16 & 0x0000FFFF0000FFFF
	return t * (10000<<32 + 1) >> 32, n
}

// parseMicros reads a decimal number at b[i:] and returns it in millionths, and where it ends. The number must
// be followed by a blank, a line's end or nothing; ok is false for anything else.
func parseMicros(b []byte, i int) (v uint64, end int, ok bool) {
	start := i
	if len(b)-i < 24 {
		return slowMicros(b, start)
	}
	v, n := digits8(binary.LittleEndian.Uint64(b[i:]))
	if n == 0 {
		return 0, i, false
	}
	i += n
	if n == 8 {
		more, m := digits8(binary.LittleEndian.Uint64(b[i:]))
		if m > 4 {
			return slowMicros(b, start)
		}
		if m > 0 {
			v = v*pow10[m] + more
			i += m
		}
	}
	v *= micro
	c := b[i]
	if c == '.' {
		f, m := digits8(binary.LittleEndian.Uint64(b[i+1:]))
		if m == 0 || m > 6 {
			return slowMicros(b, start)
		}
		v += f * pow10[6-m]
		i += m + 1
		c = b[i]
	}
	if c > ' ' {
		return slowMicros(b, start)
	}
	return v, i, true
}

// slowMicros is parseMicros for what the fast path does not take: many digits, exponents, the end of the text.
func slowMicros(b []byte, start int) (v uint64, end int, ok bool) {
	i := start
	if i >= len(b) || b[i]-'0' > 9 {
		return 0, i, false
	}
	whole, point := 0, -1
	for i < len(b) && b[i] > ' ' && i-start < 64 {
		switch c := b[i]; {
		case c-'0' <= 9:
			v = v*10 + uint64(c-'0') // of use when there are few
			whole++
		case c == '.' && point < 0:
			point = i
		case c == 'e', c == 'E', c == '+', c == '-':
			whole = 100
		default:
			return 0, i, false
		}
		i++
	}
	if i < len(b) && b[i] > ' ' || point == i-1 {
		return 0, i, false
	}
	decimals := 0
	if point >= 0 {
		decimals = i - point - 1
	}
	if whole <= 18 && decimals <= 6 {
		hi, lo := bits.Mul64(v, pow10[6-decimals])
		if hi != 0 || lo > maxMicros {
			lo = maxMicros
		}
		return lo, i, true
	}
	f, err := strconv.ParseFloat(string(b[start:i]), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
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
