package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rissodb/risso/internal/digits"
)

// unknown stands where there is no figure.
const unknown = "–"

// Units of a digest.Metric.
const (
	unitSeconds      = "s"
	unitMilliseconds = "ms"
	unitBytes        = "bytes"
)

// figure is a value in its unit, as a person says it.
func figure(v float64, unit string) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return unknown
	case unit == unitSeconds:
		return seconds(v)
	case unit == unitMilliseconds:
		return seconds(v / 1000)
	case unit == unitBytes:
		return size(v)
	default:
		return count(v)
	}
}

// seconds is a duration of three significant digits; whole seconds from 1,000 on, so that totals can be added up by eye.
func seconds(v float64) string {
	switch a := math.Abs(v); {
	case a == 0:
		return "0 s"
	case a < 0.9995e-6:
		return three(v*1e9) + " ns"
	case a < 0.9995e-3:
		return three(v*1e6) + " µs"
	case a < 0.9995:
		return three(v*1e3) + " ms"
	case a < 999.5:
		return three(v) + " s"
	case a < 99_999.5:
		return thousands(v) + " s"
	case a < 1000*3600:
		return three(v/3600) + " h"
	default:
		return thousands(v/86400) + " d"
	}
}

// size is bytes in powers of 1,000.
func size(v float64) string {
	for _, u := range []struct {
		factor float64
		name   string
	}{{1e12, " TB"}, {1e9, " GB"}, {1e6, " MB"}, {1e3, " kB"}} {
		if math.Abs(v) >= u.factor*0.9995 {
			return three(v/u.factor) + u.name
		}
	}
	return three(v) + " B"
}

// count is a number of things: exact as far as it fits, an average with its fraction.
func count(v float64) string {
	switch a := math.Abs(v); {
	case a >= 9_999_999.5:
		for _, u := range []struct {
			factor float64
			name   string
		}{{1e15, " P"}, {1e12, " T"}, {1e9, " G"}} {
			if a >= u.factor*0.9995 {
				return three(v/u.factor) + u.name
			}
		}
		return three(v/1e6) + " M"
	case a >= 999.5:
		return thousands(v)
	default:
		return three(v)
	}
}

// thousands is a whole number with commas.
func thousands(v float64) string { return digits.Thousands(int64(math.Round(v))) }

// three is three significant digits without a power of ten; whole numbers stay whole.
func three(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return digits.Wide(v)
}

// percent is a share of 0 to 1.
func percent(v float64) string {
	switch {
	case math.IsNaN(v):
		return unknown
	case v > 0 && v < 0.0005:
		return "< 0.1 %"
	default:
		return strconv.FormatFloat(100*v, 'f', 1, 64) + " %"
	}
}

// span is a length of time in two parts at most.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return seconds(d.Seconds())
	case d < time.Hour:
		return two(d, time.Minute, "min", time.Second, "s")
	case d < 48*time.Hour:
		return two(d, time.Hour, "h", time.Minute, "min")
	default:
		return two(d, 24*time.Hour, "d", time.Hour, "h")
	}
}

func two(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	a, b := d/big, d%big/small
	if b == 0 {
		return fmt.Sprintf("%d %s", a, bigName)
	}
	return fmt.Sprintf("%d %s %d %s", a, bigName, b, smallName)
}

// plain makes text from a log safe for a terminal: control characters, marks that turn the direction of writing, and
// bytes that are no UTF-8 are shown as escapes. New lines and tabs stay.
func plain(s string) string {
	clean := true
	for i, r := range s {
		if hostile(r) || r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !hostile(r):
			b.WriteString(s[i : i+n])
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += n
	}
	return b.String()
}

func hostile(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029')
}

// line is text on one line: blanks collapsed.
func line(s string) string { return plain(strings.Join(strings.Fields(s), " ")) }

// shorten cuts text at so many characters, with an ellipsis.
func shorten(s string, n int) string {
	if n <= 0 || utf8.RuneCountInString(s) <= n {
		return s
	}
	i := 0
	for at := range s {
		if i == n-1 {
			return s[:at] + "…"
		}
		i++
	}
	return s
}

// wrap breaks text at blanks into lines of at most width characters, at most limit lines; longer words are cut.
func wrap(s string, width, limit int) []string {
	var out []string
	for rest := s; rest != ""; {
		if len(out) == limit {
			out[limit-1] = shorten(out[limit-1]+" "+rest, width)
			return out
		}
		cut, blank, n := len(rest), -1, 0
		for i, r := range rest {
			if n == width {
				cut = i
				break
			}
			if r == ' ' && !strings.HasPrefix(rest[i:], " %") {
				blank = i
			}
			n++
		}
		if cut < len(rest) && rest[cut] != ' ' && blank > 0 {
			cut = blank
		}
		out = append(out, strings.TrimRight(rest[:cut], " "))
		rest = strings.TrimLeft(rest[cut:], " ")
	}
	return out
}

// columns are rows of cells, aligned; a head that begins with ">" aligns to the right.
type columns struct {
	heads []string
	rows  [][]string
	gap   int // blanks between columns
	width int // 0: no bound
}

// lines lays the table out. When it is wider than it may be, gaps shrink, then the last column is cut.
func (c columns) lines() []string {
	widths := make([]int, len(c.heads))
	all := append([][]string{c.heads}, c.rows...)
	for n, r := range all {
		for i, cell := range r {
			if n == 0 {
				cell = strings.TrimPrefix(cell, ">")
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	last, fixed := len(widths)-1, 0
	for _, w := range widths[:last] {
		fixed += w
	}
	gap := c.gap
	for gap > 1 && c.width > 0 && fixed+gap*last+min(widths[last], 20) > c.width {
		gap--
	}
	out := make([]string, 0, len(all))
	for n, r := range all {
		var b strings.Builder
		for i, cell := range r {
			if n == 0 {
				cell = strings.TrimPrefix(cell, ">")
			}
			if i == last && c.width > 0 && !strings.HasPrefix(c.heads[i], ">") {
				cell = shorten(cell, max(8, c.width-fixed-gap*last))
			}
			pad := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell)))
			if strings.HasPrefix(c.heads[i], ">") {
				cell = pad + cell
			} else {
				cell += pad
			}
			b.WriteString(cell)
			if i < last {
				b.WriteString(strings.Repeat(" ", gap))
			}
		}
		out = append(out, strings.TrimRight(b.String(), " "))
	}
	return out
}

// bar draws a value against the largest in eighths of a character; what is above 0 is always seen.
func bar(v, top float64, width int) string {
	if v <= 0 || top <= 0 {
		return ""
	}
	eighths := max(1, int(math.Round(v/top*float64(width*8))))
	s := strings.Repeat("█", eighths/8)
	if r := eighths % 8; r > 0 {
		s += string([]rune(" ▏▎▍▌▋▊▉")[r])
	}
	return s
}
