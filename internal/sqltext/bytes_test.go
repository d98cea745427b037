package sqltext

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// letter reports what an unquoted name may hold. Source: MySQL manual, "Schema Object Names"; bytes from 0x80 are parts of letters.
func letter(c byte) bool {
	return strings.IndexByte("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_$", c) >= 0 || c >= 0x80
}

// TestBytes: what each byte is, alone and among seven others.
func TestBytes(t *testing.T) {
	for i := range 256 {
		c := byte(i)
		digit := strings.IndexByte("0123456789", c) >= 0
		if isWord(c) != letter(c) || isDigit(c) != digit || isSpace(c) != (strings.IndexByte(" \t\n\v\f\r", c) >= 0) || isHex(c) != (strings.IndexByte("0123456789abcdefABCDEF", c) >= 0) {
			t.Errorf("%q: got word %v, digit %v, space %v, hex %v; want isWord(c) letter(c), isDigit(c) %v, isSpace(c) strings.IndexByte(\" \\t\\n\\v\\f\\r\", c) >= 0, isHex(c) strings.IndexByte(\"0123456789abcdefABCDEF\", c) >= 0",
				c, isWord(c), isDigit(c), isSpace(c), isHex(c), digit)
		}
		low := c
		if c < 0x80 {
			low = bytes.ToLower([]byte{c})[0]
		}
		if lower(c) != low || isNamePart(c) != letter(c) || isWordPart(c) != (letter(c) && c != '_' && c != '$') {
			t.Errorf("%q: got %q in lower case, part of a name %v, of a word in it %v; want lower(c) %q, isNamePart(c) letter(c), isWordPart(c) letter(c) && c != '_' && c != '$'",
				c, lower(c), isNamePart(c), isWordPart(c), low)
		}
		for at := range 8 {
			for _, other := range []byte{'a', 'Z', '0', ' ', 0, 0x7f, 0xff, c} {
				s := bytes.Repeat([]byte{other}, 8)
				s[at] = c
				x := binary.LittleEndian.Uint64(s)
				word, dig, lowered := words8(x)
				for k, b := range s {
					bit := uint64(0x80) << (8 * k)
					if (word&bit != 0) != letter(b) || (dig&bit != 0) != isDigit(b) || byte(lowered>>(8*k)) != lower(b) {
						t.Fatalf("%q: at %d got word %v, digit %v, lower %q", s, k, word&bit != 0, dig&bit != 0, byte(lowered>>(8*k)))
					}
				}
				if want := bytes.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }); digits8(x) != want && want >= 0 {
					t.Fatalf("%q: got %d digits, want %d", s, digits8(x), want)
				}
				if got, want := has8(x, 'Z'), bytes.IndexByte(s, 'Z'); (got == 0) != (want < 0) || want >= 0 && got&-got != 0x80<<(8*want) {
					t.Fatalf("%q: got Z at %x, want it at %d", s, got, want)
				}
			}
		}
	}
	if got := digits8(binary.LittleEndian.Uint64([]byte("12345678"))); got != 8 {
		t.Errorf("got %d digits, want 8", got)
	}
	for n := range 20 {
		s := []byte("ABCDEFGHIJKLMNOPQRST")[:n]
		for i := range n {
			want := make([]byte, 8)
			copy(want, s[i:])
			if got := binary.LittleEndian.AppendUint64(nil, load8(s, i)); !bytes.Equal(got, want) {
				t.Errorf("from %d of %s: got %q, want %q", i, s, got, want)
			}
		}
	}
}

// TestNamesOfAnyByte: names end where the manual says, whatever their length; letters of ASCII become lower case and nothing else does.
func TestNamesOfAnyByte(t *testing.T) {
	for i := range 256 {
		c := byte(i)
		for n := range 19 {
			name := "aB" + strings.Repeat("Cd", n/2) + strings.Repeat("e", n%2)
			stmt := "SELECT " + name + string([]byte{c}) + "Zz, b"
			low := strings.ToLower("select "+name) + string([]byte{lower(c)}) + "zz, b"
			switch {
			case letter(c):
				if got := Tokens(stmt)[1]; got.Text != name+string([]byte{c})+"Zz" || got.Kind != TokenWord {
					t.Fatalf("%q: got the name %q; want got.Text %q, got.Kind TokenWord", stmt, got.Text, name+string([]byte{c})+"Zz")
				}
			case isSpace(c):
				low = strings.ToLower("select "+name) + " zz, b"
			case c == '#':
				low = strings.ToLower("select " + name)
			case c == '\'' || c == '"':
				low = strings.ToLower("select "+name) + "?"
			case c == '`':
				low = strings.ToLower(stmt)
			}
			if got := Fingerprint(stmt); got != low {
				t.Fatalf("%q: got %q, want %q", stmt, got, low)
			}
			if tick := "SELECT `" + name + string([]byte{c}) + "Zz` FROM T"; c != '`' {
				if got, want := Fingerprint(tick), strings.ToLower("select `"+name)+string([]byte{lower(c)})+"zz` from t"; got != want {
					t.Fatalf("%q: got %q, want %q", tick, got, want)
				}
			}
		}
	}
}

// TestQuotesOfAnyLength: a string ends at its quote, wherever in it stand a doubled quote, an escaped one, or another one. Source: MySQL manual,
// "String Literals".
func TestQuotesOfAnyLength(t *testing.T) {
	for _, q := range []string{"'", `"`, "`"} {
		other := map[string]string{"'": `"`, `"`: "'", "`": "'"}[q]
		for n := range 20 {
			for at := range n + 1 {
				for _, piece := range []string{q + q, `\` + q, `\\`, q + q + q + q, other, `\` + other, "", "\n", "\x00"} {
					s := q + strings.Repeat("x", at) + piece + strings.Repeat("y", n-at+1) + q
					end := len(s)
					if piece == `\`+q && q == "`" { // no escape there
						end = 1 + at + 2
					}
					for _, behind := range []string{"", " ", "z" + q} {
						if got, closed := quoteEnd([]byte(s+behind), 0, Dialect{}.escape(q[0])); got != end || !closed {
							t.Fatalf("%s: got the end at %d (%v), want %d", s+behind, got, closed, end)
						}
						if got := stringEnd([]byte(s+behind), 0); got != end {
							t.Fatalf("%s: got the end at %d, want %d", s+behind, got, end)
						}
					}
					if strings.Trim(piece, q) == "" || piece == `\\` {
						open := s[:len(s)-1]
						if got, closed := quoteEnd([]byte(open), 0, Dialect{}.escape(q[0])); got != len(open) || closed && (piece == "" || piece == `\\`) {
							t.Fatalf("%s: got the end at %d (%v), want none", open, got, closed)
						}
					}
				}
			}
			if s := q + strings.Repeat("x", n) + `\`; q != "`" {
				if got, closed := quoteEnd([]byte(s), 0, '\\'); got != len(s) || closed {
					t.Errorf("%s: got the end at %d (%v)", s, got, closed)
				}
			}
			if s := q + strings.Repeat("x", n) + `\` + q; q != "`" { // with NO_BACKSLASH_ESCAPES
				if got, closed := quoteEnd([]byte(s), 0, q[0]); got != len(s) || !closed {
					t.Errorf("%s: got the end at %d (%v)", s, got, closed)
				}
			}
		}
	}
}

// TestNumbers: what is a number, and how far it goes. Sources: MySQL manual, "Numeric Literals", "Hexadecimal Literals" and "Bit-Value Literals"
// (0X and 0B are names), "Schema Object Names" (a name may begin with a digit).
func TestNumbers(t *testing.T) {
	for _, number := range []string{"0", "7", "12", "123456", "1234567", "12345678", "123456789", "12345678901234567890", "1.", "1.5", "0.25", "12345678.87654321", "1e5", "1E5", "1e+5", "1E-5", "1e55", "12345678e9",
		"1.5e3", "1.e3", "1.5E-30", "0x0", "0x1F", "0xaBcDeF", "0xabcdef0123456789", "0b0", "0b01", "0b1010101010", "00", "0123"} {
		for _, behind := range []string{"", " ", ")", ",", "+", "-1", "*", "\n", "/*c*/"} {
			s := number + behind
			if end, is := numberEnd([]byte(s), 0); end != len(number) || !is {
				t.Errorf("%s: got %s and number %v, want %s", s, s[:end], is, number)
			}
			for _, sign := range []string{"", "-", "+", "- "} {
				if got, want := Fingerprint("select "+sign+s+"x"), Fingerprint("select 1"+behind+"x"); behind != "" && behind != "-1" && got != want {
					t.Errorf("select %s%sx: got %s, want %s", sign, s, got, want)
				}
			}
		}
	}
	for _, name := range []string{"2fa", "1a", "0x", "0xg", "0xfg", "0X1F", "0b", "0b2", "0b12", "0B1", "1e", "1ex", "1e5x", "1_", "1$", "12345678a", "1234567a", "123456789_2", "1\xc3\xa4", "0x1_", "0b1a"} {
		for _, behind := range []string{"", " ", ",", ")"} {
			end, number := numberEnd([]byte(name+behind), 0)
			if got := name[:end]; name == "1e5x" { // the servers read 1e5, and x as its alias
				if got != "1e5" || !number {
					t.Errorf("%s: got %s, %v", name, got, number)
				}
			} else if end != len(name) || number {
				t.Errorf("%s: got %s and number %v, want a name", name, got, number)
			}
		}
	}
	for s, want := range map[string]string{".5": "?", ".5e3": "?", ".": ".", "a.5": "a.5", "`a`.5": "`a`.5", "1e+": "1e+", "1e-x": "1e-x", ".e5": ".e5", "a.5e": "a.5e", "(.5)": "(?)", "\"a\".5": "?.5", "5..5": "??", "a .5": "a ?"} {
		if got := Fingerprint(s); got != want {
			t.Errorf("%s: got %s, want %s", s, got, want)
		}
	}
	for s, want := range map[string]string{"a.5b": "word:a sign:. word:5b", "a.5": "word:a sign:. word:5", "a .5": "word:a number:.5", "`a`.5": "name:a sign:. word:5", ".5": "number:.5", ".": "sign:.", "1.e": "number:1. word:e", "x.": "word:x sign:."} {
		if got := shownTokens(Dialect{}, s); got != want {
			t.Errorf("%s: got %s, want %s", s, got, want)
		}
	}
}

// shownTokens are the tokens of a text, blanks and comments left out, with their kinds.
func shownTokens(d Dialect, s string) string {
	var out []string
	for _, x := range d.Tokens(s) {
		kind := map[TokenKind]string{TokenWord: "word", TokenName: "name", TokenString: "string", TokenNumber: "number", TokenSign: "sign", TokenVariable: "variable", TokenParameter: "parameter"}[x.Kind]
		if x.Open {
			kind = "open " + kind
		}
		out = append(out, fmt.Sprintf("%s:%s", kind, x.Text))
	}
	return strings.Join(out, " ")
}

// TestComments: where a comment begins and ends, and what only looks like one. Sources: MySQL manual, "Comments"; MariaDB documentation, "Comment Syntax".
func TestComments(t *testing.T) {
	for s, end := range map[string]int{
		"# a\nb": 3, "#": 1, "#a": 2, "-- a\nb": 4, "--": 2, "--\n": 2, "--\ta\nb": 4, "-- a": 4, "--\x01a": 4, "--\x7fa": 4, "/* a */b": 7, "/**/b": 4, "/***/b": 5, "/* * / */b": 9, "/*+ a */b": 8, "/* a": 4, "/*": 2, "/*/": 3, "/*/ */b": 6, "/*M*/b": 5, "/*m a */b": 8,
		"-": -1, "--a": -1, "- -": -1, "--!": -1, "--\x80": -1, "/": -1, "/ *": -1, "//": -1, "/*!a*/": -1, "/*!50000 a*/": -1, "/*M!a*/": -1, "/*m!a*/": -1, "/*!": -1, "/*M!": -1,
	} {
		got, ok := commentEnd([]byte(s), 0)
		if !ok {
			got = -1
		}
		if got != end {
			t.Errorf("%q: got %d, want %d", s, got, end)
		}
		if end >= 0 {
			for _, before := range []string{"", " ", "\t\n\v\f\r", "/* x */", "# y\n", "-- z\n"} {
				if got, want := skipBlank([]byte(before+s), 0), len(before)+end; s[len(s)-1] == 'b' && s[end] != '\n' && got != want {
					t.Errorf("%q: got the first code at %d, want %d", before+s, got, want)
				}
			}
		}
	}
	for s, end := range map[string]int{"/*!": 3, "/*!5": 4, "/*!50000": 8, "/*!50000 a": 8, "/*!a": 3, "/*M!": 4, "/*m!101106 a": 10, "/*M": 0, "/*": 0, "/* !": 0, "/*MM!": 0, "/*M !": 0} {
		if got := execEnd([]byte(s), 0); got != end {
			t.Errorf("%q: got %d, want %d", s, got, end)
		}
	}
	if got := skipBlank([]byte("a -- b"), 0); got != 0 {
		t.Errorf("got %d, want 0", got)
	}
}
