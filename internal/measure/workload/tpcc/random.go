package tpcc

import (
	"math/rand/v2"
	"strconv"
)

// nurand draws from [x, y], some numbers far more often than others; which ones, the constant c says. Source: clause
// 2.1.6.
func nurand(rng *rand.Rand, a, c, x, y int64) int64 {
	return ((between(rng, 0, a)|between(rng, x, y))+c)%(y-x+1) + x
}

// between draws from [x, y], each number as often as any other.
func between(rng *rand.Rand, x, y int64) int64 { return x + rng.Int64N(y-x+1) }

// The ranges A and the constants C of nurand. The specification lets each run choose C; here they are fixed, so that two
// runs meet the same hot rows. The two for last names must differ by 65 to 119, but not by 96 or 112. Source: clause
// 2.1.6.1.
const (
	lastNameA, lastNameLoadC, lastNameRunC = 255, 123, 223
	customerA, customerC                   = 1023, 259
	itemA, itemC                           = 8191, 7911
	lastNames                              = 1000
)

func drawCustomer(rng *rand.Rand) int64 { return nurand(rng, customerA, customerC, 1, customers) }
func drawItem(rng *rand.Rand) int64     { return nurand(rng, itemA, itemC, 1, items) }

func drawLastName(rng *rand.Rand, c int64) int64 {
	return nurand(rng, lastNameA, c, 0, lastNames-1)
}

// syllables of last names. Source: clause 4.3.2.3.
var syllables = [10]string{"BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"}

// appendLastName spells a number from 0 to 999.
func appendLastName(dst []byte, n int64) []byte {
	dst = append(dst, syllables[n/100]...)
	dst = append(dst, syllables[n/10%10]...)
	return append(dst, syllables[n%10]...)
}

const alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// appendText adds x to y random letters and digits. Source: clause 4.3.2.2, "a-string".
func appendText(dst []byte, rng *rand.Rand, x, y int64) []byte {
	for n := between(rng, x, y); n > 0; {
		// Ten numbers of six bits from each draw; the two that are no character are left out.
		for bits, i := rng.Uint64(), 0; i < 10 && n > 0; i, bits = i+1, bits>>6 {
			if c := bits & 63; c < uint64(len(alphanumeric)) {
				dst = append(dst, alphanumeric[c])
				n--
			}
		}
	}
	return dst
}

// appendDigits adds n random digits. Source: clause 4.3.2.2, "n-string".
func appendDigits(dst []byte, rng *rand.Rand, n int) []byte {
	for range n {
		dst = append(dst, byte('0'+rng.IntN(10)))
	}
	return dst
}

// appendZip adds four random digits and 11111. Source: clause 4.3.2.7.
func appendZip(dst []byte, rng *rand.Rand) []byte {
	return append(appendDigits(dst, rng, 4), "11111"...)
}

// appendData adds 26 to 50 random letters and digits; in a tenth of the cases ORIGINAL is somewhere among them.
// Source: clause 4.3.3.1, I_DATA and S_DATA.
func appendData(dst []byte, rng *rand.Rand) []byte {
	from := len(dst)
	dst = appendText(dst, rng, 26, 50)
	if rng.IntN(10) == 0 {
		const word = "ORIGINAL"
		copy(dst[from+rng.IntN(len(dst)-from-len(word)+1):], word)
	}
	return dst
}

// appendDecimal writes n as a decimal number with so many digits after the point.
func appendDecimal(dst []byte, n int64, digits int) []byte {
	if n < 0 {
		dst, n = append(dst, '-'), -n
	}
	from := len(dst)
	dst = strconv.AppendInt(dst, n, 10)
	for len(dst)-from <= digits {
		dst = append(dst, 0)
		copy(dst[from+1:], dst[from:])
		dst[from] = '0'
	}
	dst = append(dst, 0)
	point := len(dst) - 1 - digits
	copy(dst[point+1:], dst[point:])
	dst[point] = '.'
	return dst
}

// decimal reads a decimal number as a whole one: 12.34 with two digits is 1234.
func decimal(text []byte, digits int) int64 {
	var n int64
	seen, negative := -1, false
	for _, c := range text {
		switch {
		case c == '-':
			negative = true
		case c == '.':
			seen = 0
		case c >= '0' && c <= '9' && seen < digits:
			n = n*10 + int64(c-'0')
			if seen >= 0 {
				seen++
			}
		}
	}
	for seen = max(seen, 0); seen < digits; seen++ {
		n *= 10
	}
	if negative {
		return -n
	}
	return n
}
