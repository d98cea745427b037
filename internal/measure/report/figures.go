package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// number is a figure with three significant digits and a factor: 1.23 k, 45.6 M.
func number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case a >= 999.5e6:
		return three(v/1e9) + " G"
	case a >= 999_500:
		return three(v/1e6) + " M"
	case a >= 9_995:
		return three(v/1e3) + " k"
	case a >= 999.5:
		return whole(int64(math.Round(v)))
	case v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	default:
		return three(v)
	}
}

// seconds is a time with three significant digits: 38.0 ms.
func seconds(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case a == 0:
		return "0"
	case a < 0.9995e-3:
		return three(v*1e6) + " µs"
	case a < 0.9995:
		return three(v*1e3) + " ms"
	default:
		return three(v) + " s"
	}
}

// duration is how long something went on: 10 s, 5 min, 2 h 10 min.
func duration(v float64) string {
	switch {
	case v < 119.5:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") + " s"
	case v < 3600:
		return strings.TrimSuffix(fmt.Sprintf("%.0f min %.0f s", math.Floor(v/60), math.Mod(v, 60)), " 0 s")
	default:
		return fmt.Sprintf("%.0f h %.0f min", math.Floor(v/3600), math.Floor(math.Mod(v, 3600)/60))
	}
}

// three gives a number three significant digits, without a power of ten.
func three(v float64) string {
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

// factor is a ratio: 1.58, 0.042.
func factor(v float64) string {
	if math.Abs(v) >= 0.1 {
		return fmt.Sprintf("%.2f", v)
	}
	return three(v)
}

// whole is a count with commas: 1,234,567.
func whole(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// chance is a probability.
func chance(p float64) string {
	switch {
	case math.IsNaN(p):
		return "–"
	case p < 0.0001:
		return "< 0.0001"
	default:
		return fmt.Sprintf("%.2g", p)
	}
}

// percentileName writes 99.9 as p99.9.
func percentileName(p float64) string { return "p" + strconv.FormatFloat(p, 'g', -1, 64) }
