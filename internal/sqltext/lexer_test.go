package sqltext

import (
	"fmt"
	"strings"
	"testing"
)

// TestEdgesOfTokens: where tokens end, of each kind and in each dialect. Sources: MySQL manual, "Language Structure"; MariaDB documentation, "SQL Language
// Structure"; PostgreSQL manual, "Lexical Structure".
func TestEdgesOfTokens(t *testing.T) {
	ansi, plain, pg := Dialect{ANSIQuotes: true}, Dialect{NoBackslash: true}, Dialect{Postgres: true}
	nine, maria := Dialect{Version: 90000}, Dialect{MariaDB: true, Version: 101106}
	for _, c := range []struct {
		d        Dialect
		in, want string
	}{
		// variables and accounts
		{in: "@a", want: "sign:@ variable:a"}, {in: "@a.b$c_1 d", want: "sign:@ variable:a.b$c_1 word:d"}, {in: "@1", want: "sign:@ variable:1"}, {in: "@_utf8'x'", want: "sign:@ variable:_utf8 string:'x'"}, {in: "@@a.b", want: "sign:@ sign:@ word:a sign:. word:b"}, {in: "@'a b'", want: "sign:@ string:'a b'"}, {in: "@`a b`", want: "sign:@ variable:a b"}, {in: "@@`a`", want: "sign:@ sign:@ name:a"}, {in: "@.a", want: "sign:@ variable:.a"}, {in: "@ a", want: "sign:@ word:a"}, {in: "a@b.c:1", want: "word:a sign:@ variable:b.c sign:: number:1"}, {in: "@", want: "sign:@"}, {in: "@a@b", want: "sign:@ variable:a sign:@ variable:b"},
		{d: ansi, in: `@"a"`, want: "sign:@ variable:a"}, {in: `@"a"`, want: `sign:@ string:"a"`}, {d: pg, in: "@a.b", want: "sign:@ word:a sign:. word:b"},
		// strings with what precedes them
		{in: "n'a' N'b' x'0f' X'0F' b'1' B'1'", want: "string:n'a' string:N'b' string:x'0f' string:X'0F' string:b'1' string:B'1'"}, {in: "n 'a'", want: "word:n string:'a'"}, {in: "nn'a'", want: "word:nn string:'a'"}, {in: "e'a'", want: "word:e string:'a'"}, {in: `n"a"`, want: `word:n string:"a"`}, {in: "n", want: "word:n"}, {in: "a'b'", want: "word:a string:'b'"}, {in: "n'a", want: "open string:n'a"},
		{in: "_utf8'a' _utf8 \"b\" _latin1 x'0f' _binary b'1' _binary 0x0f _utf8/* c */'d'", want: "string:_utf8'a' string:_utf8 \"b\" string:_latin1 x'0f' string:_binary b'1' string:_binary 0x0f string:_utf8/* c */'d'"}, {in: "_nope'a' _utf8 a _utf8", want: "word:_nope string:'a' word:_utf8 word:a word:_utf8"}, {d: ansi, in: `_utf8"a" _utf8'b'`, want: `word:_utf8 name:a string:_utf8'b'`}, {d: pg, in: "_utf8'a'", want: "word:_utf8 string:'a'"}, {in: "_utf8'a", want: "open string:_utf8'a"}, {in: "_utf8 0b01 _utf8 01", want: "string:_utf8 0b01 string:_utf8 01"},
		// quotes
		{in: `"a" 'b' ` + "`c`", want: `string:"a" string:'b' name:c`}, {d: ansi, in: `"a""b" 'c\'d' "e\"`, want: `name:a"b string:'c\'d' name:e\`}, {d: plain, in: `'a\' "b\" 'c`, want: `string:'a\' string:"b\" open string:'c`}, {d: pg, in: `"a" 'b\' E'c\'d' e'f' x'0f' b'1' n'g' E 'h'`, want: `name:a string:'b\' string:E'c\'d' string:e'f' string:x'0f' string:b'1' string:n'g' word:E string:'h'`}, {d: pg, in: "a`b E'c", want: "word:a sign:` word:b open string:E'c"}, {in: `"a`, want: `open string:"a`}, {in: "`a", want: "open name:a"}, {in: "''", want: "string:''"}, {in: "``", want: "name:"},
		// dollars
		{d: nine, in: "$$a$$ $b$ c $b$ $d", want: "string:$$a$$ string:$b$ c $b$ word:$d"}, {d: nine, in: "$$$$ a", want: "string:$$$$ word:a"}, {d: nine, in: "$$a", want: "open string:$$a"}, {d: nine, in: "$1$ $a", want: "word:$1$ word:$a"}, {d: nine, in: "$a$b$c$a$", want: "string:$a$b$c$a$"}, {d: nine, in: "$a b$", want: "word:$a word:b$"}, {d: nine, in: "$", want: "word:$"}, {d: nine, in: "a$$b$$", want: "word:a$$b$$"}, {d: Dialect{Version: 89999}, in: "$$a$$", want: "word:$$a$$"}, {d: maria, in: "$$ a $$", want: "word:$$ word:a word:$$"}, {d: Dialect{MariaDB: true, Version: 120000}, in: "$$ a $$", want: "word:$$ word:a word:$$"},
		{d: pg, in: "$1 $23, $4x $$ ' $$ $a1$ $$ $a1$ $", want: "parameter:$1 parameter:$23 sign:, parameter:$4 word:x string:$$ ' $$ string:$a1$ $$ $a1$ word:$"}, {d: pg, in: "$9", want: "parameter:$9"}, {in: "$1", want: "word:$1"}, {d: pg, in: "$1$", want: "parameter:$1 word:$"},
		// operators
		{in: "a<=>b->>c<=d>=e<>f!=g:=h->i||j&&k", want: "word:a sign:<=> word:b sign:->> word:c sign:<= word:d sign:>= word:e sign:<> word:f sign:!= word:g sign::= word:h sign:-> word:i sign:|| word:j sign:&& word:k"}, {in: "a::b", want: "word:a sign:: sign:: word:b"}, {d: pg, in: "a::b", want: "word:a sign::: word:b"}, {in: "<", want: "sign:<"}, {in: "a-", want: "word:a sign:-"}, {in: "-5 +.5", want: "sign:- number:5 sign:+ number:.5"}, {in: "a|b&c<<d", want: "word:a sign:| word:b sign:& word:c sign:< sign:< word:d"}, {in: "\x00\x01", want: "sign:\x00 sign:\x01"},
		// comments
		{in: "a # b\nc", want: "word:a word:c"}, {d: pg, in: "a # b", want: "word:a sign:# word:b"}, {in: "a--b", want: "word:a sign:- sign:- word:b"}, {d: pg, in: "a--b\nc", want: "word:a word:c"}, {in: "a-- b\nc", want: "word:a word:c"}, {in: "a--", want: "word:a"}, {in: "a--\nb", want: "word:a word:b"}, {in: "a--\x01b\nc", want: "word:a word:c"}, {in: "a--!b", want: "word:a sign:- sign:- sign:! word:b"}, {in: "a--\x7fb\nc", want: "word:a word:c"}, {in: "a # b\x00c\nd", want: "word:a sign:\x00 word:c word:d"}, {d: pg, in: "a -- b\x00c\nd", want: "word:a word:d"}, {in: "a -- b\x00c\nd", want: "word:a sign:\x00 word:c word:d"},
		{in: "a/* b */c/**/d", want: "word:a word:c word:d"}, {in: "a/* /* */b", want: "word:a word:b"}, {d: pg, in: "a/* /* /* */ */ b */c", want: "word:a word:c"}, {d: pg, in: "a/*! b */c", want: "word:a word:c"}, {d: pg, in: "/*/**/*/b/*a/*c*/d*/e", want: "word:b word:e"}, {in: "a/b", want: "word:a sign:/ word:b"}, {in: "a/", want: "word:a sign:/"}, {in: "a*/b", want: "word:a sign:* sign:/ word:b"}, {in: "a/*!b*/*/c", want: "word:a word:b sign:* sign:/ word:c"}, {in: "/*!a*b*/", want: "word:a sign:* word:b"}, {in: "/*!a*", want: "word:a sign:*"},
		{d: nine, in: "a/*!90100 b /* c */ d */e", want: "word:a word:e"}, {d: nine, in: "a/*!90100 /* b */ */ /*!90000 c*/", want: "word:a word:c"}, {d: nine, in: "/*M! a */ b", want: "word:b"}, {in: "/*M! a */ b", want: "word:a word:b"}, {in: "/*m! a */ b", want: "word:b"}, {d: maria, in: "/*m! a */ /*M! b */", want: "word:b"}, {d: nine, in: "/*!90100 /* /* */ a */ b", want: "word:b"},
		// versions
		{d: Dialect{Version: 80034}, in: "/*!80034 a*//*!80035 b*//*!8003 c*//*!080034 d*//*!800340 e*//*!800341 f*//*!99999 g*//*!0 h*/", want: "word:a number:8003 word:c number:4 word:d number:0 word:e number:1 word:f number:0 word:h"}, {d: Dialect{Version: 80100}, in: "/*!080100 a*//*!080101 b*//*!801000 c*/", want: "word:a"}, {d: Dialect{Version: 80099}, in: "/*!080100 a*/", want: "number:0 word:a"},
		{d: maria, in: "/*!50699 a*//*!50700 b*//*!99999 c*//*!100000 d*//*!101106 e*//*!101107 f*//*M!50700 g*//*M!101107 h*//*!1234567 i*/", want: "word:a word:d word:e word:g"}, {in: "/*!999999 a*/", want: "word:a"}, {d: maria, in: "/*! a*/", want: "word:a"}, {d: nine, in: "/*!1234 a*/", want: "number:1234 word:a"}, {in: "/*!50000", want: ""}, {in: "/*!", want: ""}, {in: "/*", want: ""}, {in: "/*M", want: ""},
	} {
		if got := shownTokens(c.d, c.in); got != c.want {
			t.Errorf("%+v: %s\n got %s\nwant %s", c.d, c.in, got, c.want)
		}
	}
	for _, c := range []struct { // all of a text, blanks too
		d        Dialect
		in, want string
	}{
		{in: " \t\n\v\f\ra", want: `[7" \t\n\v\f\r" 0"a"]`}, {in: "/*!50000 a */b/* c */", want: `[9"/*!50000" 7" " 0"a" 7" " 9"*/" 0"b" 8"/* c */"]`}, {in: "/*!a", want: `[open9"/*!" 0"a"]`}, {in: "/*!a*/ /*!b", want: `[9"/*!" 0"a" 9"*/" 7" " open9"/*!" 0"b"]`}, {in: "/* a", want: `[open8"/* a"]`}, {in: "# a\n", want: `[8"# a" 7"\n"]`}, {in: "a'b", want: `[0"a" open2"'b"]`}, {d: Dialect{Version: 80000}, in: "/*!80001 a", want: `[open8"/*!80001 a"]`}, {d: Dialect{Postgres: true}, in: "/* /* */", want: `[open8"/* /* */"]`}, {in: "/*/", want: `[open8"/*/"]`}, {in: "/**/", want: `[8"/**/"]`},
	} {
		var got []string
		for _, x := range c.d.All(c.in) {
			s := fmt.Sprintf("%d%q", x.Kind-TokenWord, c.in[x.Begin:x.End])
			if x.Open {
				s = "open" + s
			}
			got = append(got, s)
		}
		if s := fmt.Sprint(got); s != c.want {
			t.Errorf("%+v: %q\n got %s\nwant %s", c.d, c.in, s, c.want)
		}
	}
	if n := len(Tokens(strings.Repeat("a ", 2000))); n != 2000 {
		t.Errorf("got %d tokens, want 2000", n)
	}
}
