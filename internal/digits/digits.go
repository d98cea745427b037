// Package digits writes numbers as people read them, each quantity by one rule wherever it is shown: terminal, reports, words,
// page. It is the lowest of all rooms. testdata/cases.json is the rules by example; the page's own code (ui/src/common/format.ts)
// is tested with the same table.
//
//	a number of things   Thousands, Counted (every digit), Count (for averages too), Number (three digits and a factor)
//	a rate               Rate, or one of the above before the name of what is counted: "1.2 k queries/s"
//	a size               Bytes; a rate of bytes is Bytes + "/s"
//	how long it takes    Seconds, Span
//	how old, how long yet  Age
//	a share              Percent; a change of it Change
//	a factor             Ratio
//	a probability        Chance
//
// Three significant digits are enough for all of them; trailing zeros after the point are left out. Unknown (NaN) and
// impossible (infinite) values are written as Unknown. Programs get raw numbers: do not use this for JSON, CSV or values of settings.
package digits

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Unknown is shown if there is no number.
const Unknown = "–"

func known(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// fixed writes a number with a number of digits after the point, halves away from zero: strconv's exact rounding of binary
// fractions and JavaScript's differ.
func fixed(v float64, decimals int) string {
	p := math.Pow10(decimals)
	if r := math.Round(math.Abs(v)*p) / p; r == 0 {
		v = 0 // there is no -0
	} else if !math.IsInf(r, 0) {
		v = math.Copysign(r, v)
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// trim cuts zeros after the point.
func trim(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// Three writes a number with three significant digits: 38, 1.5, 0.0421; from 1,000 on all digits before the point. Only below a
// millionth is there a power of ten: 1.5e-7.
func Three(v float64) string {
	a := math.Abs(v)
	switch {
	case !known(v):
		return Unknown
	case a > 0 && a < 1e-6:
		return power(v)
	}
	return trim(fixed(v, decimals(a)))
}

// power writes a number with a power of ten: 1.23e18, 5e-12.
func power(v float64) string {
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', 2, 64), "e")
	minus := strings.TrimSuffix(exponent[:1], "+")
	return trim(mantissa) + "e" + minus + strings.TrimLeft(exponent[1:], "0")
}

// decimals is how many digits after the point make three significant ones.
func decimals(a float64) int {
	d := 0
	for p := 1.0; d < 8 && a*p < 99.95; p *= 10 {
		d++
	}
	return d
}

// Number is a measured figure with three digits and a factor, for rates and where room is short: 850, 1.24 k, 45.6 M.
func Number(v float64) string {
	if a := math.Abs(v); a >= 999.5e15 && known(v) {
		return power(v)
	}
	return scaled(v, 999.5, 1000, "", " k", " M", " G", " T", " P")
}

// Rate is a Number per second: 12.3/s, 1.24 k/s.
func Rate(v float64) string { return Number(v) + "/s" }

// Bytes is a size in powers of 1,024, as memory, disks and the servers' own settings count: 512 B, 1.5 MiB.
func Bytes[N Whole | ~float64](n N) string {
	return scaled(float64(n), 1023.5, 1024, " B", " KiB", " MiB", " GiB", " TiB", " PiB")
}

// scaled divides by base until the number is less than limit, from where on rounding would lift it to the next unit.
func scaled(v, limit, base float64, units ...string) string {
	if !known(v) {
		return Unknown
	}
	i := 0
	for ; math.Abs(v) >= limit && i < len(units)-1; i++ {
		v /= base
	}
	return Three(v) + units[i]
}

// Seconds is how long something takes: 640 ns, 38.2 µs, 4.2 ms, 93.1 s; from two minutes on in its two largest parts:
// 3 min 5 s, 2 h, 4 d 6 h.
func Seconds(v float64) string {
	switch a := math.Abs(v); {
	case !known(v):
		return Unknown
	case a == 0:
		return "0 s"
	case a < 0.9995e-6:
		return Three(v*1e9) + " ns"
	case a < 0.9995e-3:
		return Three(v*1e6) + " µs"
	case a < 0.9995:
		return Three(v*1e3) + " ms"
	case a < 119.5:
		return Three(v) + " s"
	}
	return sign(v) + parts(math.Round(math.Abs(v)))
}

// parts is whole seconds in their two largest units; a second one of zero is left out.
func parts(rest float64) string {
	units := []struct {
		name    string
		seconds float64
	}{{" d", 86400}, {" h", 3600}, {" min", 60}, {" s", 1}}
	i := 0
	for rest < units[i].seconds {
		i++
	}
	n := math.Floor(rest / units[i].seconds)
	text := fixed(n, 0) + units[i].name
	if i++; i < len(units) {
		if n = math.Floor((rest - n*units[i-1].seconds) / units[i].seconds); n > 0 {
			text += " " + fixed(n, 0) + units[i].name
		}
	}
	return text
}

// Span is Seconds of a time.Duration. What ParseDuration has to read again is written by Duration.
func Span(d time.Duration) string { return Seconds(d.Seconds()) }

// Age is how old something is, or about how long it will still take, in one part: 40 s, 89 min, 30 h, 5 d. A unit begins at two
// of it, so that the text is never far off.
func Age(seconds float64) string {
	a := math.Abs(seconds)
	switch {
	case !known(seconds):
		return Unknown
	case a < 119.5:
		return fixed(seconds, 0) + " s"
	case a < 119.5*60:
		return fixed(seconds/60, 0) + " min"
	case a < 47.5*3600:
		return fixed(seconds/3600, 0) + " h"
	}
	return fixed(seconds/86400, 0) + " d"
}

// Shift is by how much a clock was moved: 2 h ahead, 10 s back.
func Shift(seconds float64) string {
	if seconds < 0 {
		return Age(-seconds) + " back"
	}
	return Age(seconds) + " ahead"
}

// exact is where a share counts as 0 or 1 although sums of floating point numbers miss it.
const exact = 1e-12

// Percent is a share of 1 in per cent: 12 %, 3.2 %, 0.05 %, 99.95 %. Only nothing is 0 %, and only all is 100 %.
func Percent(share float64) string {
	p := math.Abs(share) * 100
	if !known(share) {
		return Unknown
	}
	var n string
	switch {
	case p < 100*exact:
		return "0 %"
	case p < 0.01 && share < 0:
		return "> -0.01 %"
	case p < 0.01:
		return "< 0.01 %"
	case p < 0.995:
		n = trim(fixed(p, 2))
	case p < 9.95:
		n = trim(fixed(p, 1))
	case p > 99 && p < 100*(1-exact):
		n = trim(fixed(min(p, 99.99), 2))
	default:
		n = Thousands(int64(math.Round(p)))
	}
	return sign(share) + n + " %"
}

// Change is a difference of shares, or a growth, with its sign: +3.2 %, -12 %.
func Change(share float64) string {
	text := Percent(share)
	if share > 0 && text[0] >= '0' && text[0] <= '9' && text != "0 %" {
		return "+" + text
	}
	return text
}

func sign(v float64) string {
	if v < 0 {
		return "-"
	}
	return ""
}

// Ratio is a factor, with its zeros: 1.58, 0.5 as 0.50, 12.3. Near 1 it has one more digit, to differ from it: 0.996.
func Ratio(v float64) string {
	a := math.Abs(v)
	switch {
	case !known(v):
		return Unknown
	case a > 0 && a < 0.0995:
		return Three(v)
	case math.Abs(v-1) < 0.05:
		return fixed(v, 3)
	}
	return fixed(v, min(decimals(a), 2))
}

// Chance is a probability, such as the p of a test, with two digits: 0.012, < 0.0001.
func Chance(p float64) string {
	switch {
	case !known(p):
		return Unknown
	case p < 0.0001:
		return "< 0.0001"
	}
	return strconv.FormatFloat(p, 'g', 2, 64)
}
