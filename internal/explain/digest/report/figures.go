package report

import (
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/oneline"
)

// Units of a digest.Metric.
const (
	unitSeconds      = "s"
	unitMilliseconds = "ms"
	unitBytes        = "bytes"
)

// figure is a value in its unit, as a person says it.
func figure(v float64, unit string) string {
	switch {
	case unit == unitSeconds:
		return digits.Seconds(v)
	case unit == unitMilliseconds:
		return digits.Seconds(v / 1000)
	case unit == unitBytes:
		return digits.Bytes(v)
	default:
		return digits.Count(v)
	}
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

// wrap breaks text at blanks into lines of at most width characters, at most limit lines; longer words are cut.
func wrap(s string, width, limit int) []string {
	var out []string
	for rest := s; rest != ""; {
		if len(out) == limit {
			out[limit-1] = oneline.Cut(out[limit-1]+" "+rest, width)
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
				cell = oneline.Cut(cell, max(8, c.width-fixed-gap*last))
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
