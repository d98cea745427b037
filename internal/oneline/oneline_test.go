package oneline

import (
	"testing"
	"unicode/utf8"
)

func TestOf(t *testing.T) {
	for in, want := range map[string]string{
		"": "", " \t\n": "", "a": "a", "  a\r\n\tb  ": "a b", "a\u00a0b\u2028c": "a b c", "é 漢 🐬": "é 漢 🐬",
		"\x1b[2Jx": "\uFFFD[2Jx", "a\x00b": "a\uFFFDb", "pay\u202eXFDP": "pay\uFFFDXFDP", "bad\xff": "bad\uFFFD",
	} {
		if got := Of(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		in    string
		width int
		want  string
	}{{"abc", 0, "abc"}, {"abc", -1, "abc"}, {"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"éèüß", 3, "éè…"}, {"ab", 1, "…"}, {"", 1, ""}} {
		got := Cut(c.in, c.width)
		if got != c.want || c.width > 0 && utf8.RuneCountInString(got) > c.width {
			t.Errorf("%q in %d: got %q, want %q", c.in, c.width, got, c.want)
		}
	}
}
