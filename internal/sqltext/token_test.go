package sqltext

import (
	"fmt"
	"strings"
	"testing"
)

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
