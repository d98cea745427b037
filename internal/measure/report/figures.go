package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/digits"
)

// number is a figure with three significant digits and a factor: 1.23 k, 45.6 M.
func number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case a >= 999.5e6:
		return digits.Wide(v/1e9) + " G"
	case a >= 999_500:
		return digits.Wide(v/1e6) + " M"
	case a >= 9_995:
		return digits.Wide(v/1e3) + " k"
	case a >= 999.5:
		return digits.Thousands(int64(math.Round(v)))
	case v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	default:
		return digits.Wide(v)
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
		return digits.Wide(v*1e6) + " µs"
	case a < 0.9995:
		return digits.Wide(v*1e3) + " ms"
	default:
		return digits.Wide(v) + " s"
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

// factor is a ratio: 1.58, 0.042.
func factor(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	if math.Abs(v) >= 0.1 {
		return fmt.Sprintf("%.2f", v)
	}
	return digits.Wide(v)
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
