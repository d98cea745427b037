package sqltext

import (
	"fmt"
	"strings"
	"testing"
)

func TestDialects(t *testing.T) {
	for _, c := range []struct {
		d        Dialect
		in, want string
	}{
		{Dialect{MariaDB: true, Version: 101106}, "a/*!50701 b*/c/*!100100 d*/e/*M!101106 f*/g", "a|c|d|e|f|g"},
		{Dialect{Version: 80015}, "a/*!50701 b*/c/*!80016 /* x */ d*/e/*M!1 f*/g", "a|b|c|e|g"},
		{Dialect{Version: 50722}, "/*!050001 a*/", "1|a"},
		{Dialect{Version: 90704}, "/*!050001 a*/ $$ it's $$ $x$ $$ $x$", "a|$$ it's $$|$x$ $$ $x$"},
		{Dialect{}.WithMode("STRICT_ALL_TABLES,ANSI_QUOTES"), `"a\" 'b\'c'`, `a\|'b\'c'`},
		{Dialect{}.WithMode("NO_BACKSLASH_ESCAPES"), `"a\" 'b\' c`, `"a\"|'b\'|c`},
		{Dialect{}, "root@localhost @a.b @`c``d` @@global.x 'u'@'h'", "root|@|localhost|@|a.b|@|c`d|@|@|global|.|x|'u'|@|'h'"},
		{Dialect{Postgres: true}, `E'a\'b' 'c\' --d
 /* /* e */ */ f::int $1 $t$ ' $t$ "g" #`, `E'a\'b'|'c\'|f|::|int|$1|$t$ ' $t$|g|#`},
	} {
		var got []string
		for _, x := range c.d.Tokens(c.in) {
			got = append(got, x.Text)
		}
		if s := strings.Join(got, "|"); s != c.want {
			t.Errorf("%+v: %s\n is %s\nwant %s", c.d, c.in, s, c.want)
		}
	}
}

func TestTokens(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"SELECT a.`b c`<=>1.5e-3 -- x\n", "word:SELECT word:a sign:. name:b c sign:<=> number:1.5e-3"},
		{"a->>'$.x'||_utf8mb4'y' # z", "word:a sign:->> string:'$.x' sign:|| string:_utf8mb4'y'"},
		{"`a``b`:=x'0F'", "name:a`b sign::= string:x'0F'"},
		{"/* no */ SELECT /*!50000 ; */ 1", "word:SELECT sign:; number:1"},
		{"'it''s' \"b\\\"c\"", `string:'it''s' string:"b\"c"`},
		{"`open", "name:open"},
		{"<", "sign:<"},
		{"", ""},
	} {
		var got []string
		for _, x := range Tokens(c.in) {
			kind := map[TokenKind]string{TokenWord: "word", TokenName: "name", TokenString: "string", TokenNumber: "number", TokenSign: "sign"}[x.Kind]
			got = append(got, fmt.Sprintf("%s:%s", kind, x.Text))
			if x.Kind != TokenName && c.in[x.Begin:x.End] != x.Text {
				t.Errorf("%q: %q stands at %q", c.in, x.Text, c.in[x.Begin:x.End])
			}
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%q: %s, want %s", c.in, s, c.want)
		}
	}
}

func TestValue(t *testing.T) {
	for _, c := range []struct {
		d        Dialect
		in, want string
	}{
		{in: `'it''s'`, want: "it's"}, {in: `"a\"b\n\%"`, want: "a\"b\n\\%"}, {in: "_utf8mb4 /* ' */ 'x'", want: "x"}, {d: Dialect{Postgres: true}, in: `E'a\'b'`, want: "a'b"}, {in: "'a", want: "a"}, {in: "'", want: ""}, {in: "0x41", want: "0x41"}, {in: "$$", want: "$$"},
		{d: Dialect{NoBackslash: true}, in: `'a\'`, want: `a\`}, {d: Dialect{Version: 90000}, in: "$$ 'a' $$", want: "$$ 'a' $$"},
	} {
		list := c.d.Tokens(c.in)
		if len(list) != 1 || c.d.Value(list[0]) != c.want {
			t.Errorf("%s: got %q; want len(list) 1, c.d.Value(list[0]) %q", c.in, c.d.Value(list[0]), c.want)
		}
	}
}
