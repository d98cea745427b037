// Package digits writes numbers as people read them. It is the lowest of all rooms: reports of every wing use it.
package digits

import (
	"fmt"
	"math"
)

// Three gives a number three significant digits, without a power of ten: 38.0, 1235, 0.042.
func Three(v float64) string {
	switch a := math.Abs(v); {
	case a >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case a >= 9.995:
		return fmt.Sprintf("%.1f", v)
	case a >= 0.9995 || a == 0:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.3g", v)
	}
}

// Thousands is a whole number with commas: 1,234,567.
func Thousands[N Whole](n N) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
