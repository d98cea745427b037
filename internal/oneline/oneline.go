// Package oneline makes one line of texts that come from servers, files and people, and fits it into a width.
package oneline

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Of makes one line of s: blanks and ends of lines become one space, and characters that cannot be printed, which might move a
// terminal's cursor or turn the direction of what follows, become U+FFFD.
func Of(s string) string {
	var b strings.Builder
	space := false
	for _, r := range s {
		switch {
		case unicode.IsSpace(r):
			space = true
			continue
		case !unicode.IsPrint(r):
			r = '\uFFFD'
		}
		if space && b.Len() > 0 {
			b.WriteByte(' ')
		}
		space = false
		b.WriteRune(r)
	}
	return b.String()
}

// Cut shortens s to at most width characters, the last of them … where some are left out. A width of 0 or less leaves it.
func Cut(s string, width int) string {
	if width <= 0 || utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width-1]) + "…"
}
