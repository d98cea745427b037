package digits

import (
	"fmt"
	"math"
)

// Whole is a whole number of things.
type Whole interface{ ~int | ~int64 | ~uint64 }

// Thousands is a whole number with commas, every digit of it: 1,234,567.
func Thousands[N Whole](n N) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Count is a number of things that may be an average, or a rate that is compared with others: 0.333, 12.3, 1,234,567; with every
// digit before the point below 1e15.
func Count(v float64) string {
	if a := math.Abs(v); a >= 999.5 && a < 1e15 {
		return sign(v) + Thousands(int64(math.Round(a)))
	}
	return Number(v)
}

// Counted is so many things: 1 table, 1,200 tables.
func Counted[N Whole](n N, what string) string { return Plural(n, what, what+"s") }

// Plural is Counted where an s at the end does not do: 1 table differs, 2 tables differ.
func Plural[N Whole](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Thousands(n) + " " + many
}

// Roughly is Counted with three digits: 1 row, 1.23 M rows.
func Roughly[N Whole](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return Number(float64(n)) + " " + what + "s"
}
