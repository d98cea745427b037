package sqltext_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
	"github.com/rissodb/risso/internal/sqltext"
)

// pieces are what a text is made of in TestServersAgree: whatever opens, closes, hides or escapes something.
var pieces = []string{" + ", "2", "'a'", "'it''s'", `'x\'y'`, `"q"`, `"q\"r"`, "`v`", "`v``w`", "/* c */", "/* /* c */", "/*!50003 ", "/*!99999 ", "/*!100100 ",
	"/*!080000 ", "/*!80000 ", "/*!50701 ", "/*M!100100 ", "/*m!50003 ", "/*! ", "/*!123 ", "*/", "*", "/", " -- c\n", " --c\n", "--\x7fc\n", "--", "# c ' \n", "# c\x00 + 4\n", "-- c\x00 + 5\n",
	"_utf8mb4", "_nope", "N", "x", "'41'", "b'1'", "0x41", "0X41", "1e5", "1.5", ".5", "2fa", "@u", "@u.v", "@`u`", "@'u'", "@@port", "@@global.port", ":=", "<=>", "||", "&&",
	"$$", "$a$", " $b ", ",", "(", ")", " as ü", "\v", "'\\\\'", "'\\'", "''", "\"\"", " '' ' ", "\\"}

// TestServersAgree: what a server makes of a text is what it makes of the code in it alone, token by token, so that no
// comment is taken for code and no code for a comment, in every dialect.
func TestServersAgree(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7", "mysql-8.0", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			node := sandboxtest.Up(t, spec)
			target, err := mysql.ParseTarget(node.DSN)
			if err != nil {
				t.Fatal(err)
			}
			c, err := mysql.Connect(t.Context(), target, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			s, err := target.ConnectStream(t.Context(), mysql.StreamOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for _, mode := range []string{"", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT"} {
				if err := s.Exec(t.Context(), "SET sql_mode = '"+mode+"'"); err != nil {
					t.Fatal(err)
				}
				d := sqltext.Dialect{MariaDB: c.Server.MariaDB(), Version: c.Server.Number}.WithMode(mode)
				agree(t, s, d, mode)
			}
		})
	}
}

func agree(t *testing.T, s *mysql.Stream, d sqltext.Dialect, mode string) {
	answer := func(text string) string {
		var out []string
		err := s.Query(t.Context(), text, func(row [][]byte) error { out = append(out, fmt.Sprintf("%q", row)); return nil })
		if n := mysql.ErrorNumber(err); n != 0 {
			return fmt.Sprint("error ", n)
		} else if err != nil {
			t.Fatal(err)
		}
		return strings.Join(out, "\n")
	}
	random := rand.New(rand.NewPCG(1, uint64(len(mode))))
	right := 0
	for range 3000 {
		text := "SELECT 1"
		for range 1 + random.IntN(6) {
			text += pieces[random.IntN(len(pieces))]
		}
		code, open := "", false
		for _, x := range d.Tokens(text) {
			code += text[x.Begin:x.End] + " "
		}
		for _, x := range d.All(text) {
			open = open || x.Open
		}
		if open {
			continue
		}
		code = glued.Replace(code)
		a, b := answer(text), answer(code)
		if !strings.HasPrefix(a, "error") {
			right++
		}
		if a != b {
			t.Errorf("%s\n%q is %s\n%q is %s", mode, text, a, code, b)
		}
	}
	if right < 100 {
		t.Errorf("only %d texts were SQL", right)
	}
}

// glued puts together what a blank parts: a variable and its @, a name of digits and its point.
var glued = strings.NewReplacer(" . ", ".", "@ @ ", "@@", "@ ", "@")
