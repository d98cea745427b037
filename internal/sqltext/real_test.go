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

// pieces are what a text is made of in TestServersAgree: everything that opens, closes, hides or escapes something.
var pieces = []string{" + ", "2", "'a'", "'it''s'", `'x\'y'`, `"q"`, `"q\"r"`, "`v`", "`v``w`", "/* c */", "/* /* c */", "/*!50003 ", "/*!99999 ", "/*!100100 ",
	"/*!080000 ", "/*!80000 ", "/*!50701 ", "/*M!100100 ", "/*m!50003 ", "/*! ", "/*!123 ", "*/", "*", "/", " -- c\n", " --c\n", "--\x7fc\n", "--", "# c ' \n", "# c\x00 + 4\n", "-- c\x00 + 5\n",
	"_utf8mb4", "_nope", "N", "x", "'41'", "b'1'", "0x41", "0X41", "1e5", "1.5", ".5", "2fa", "@u", "@u.v", "@`u`", "@'u'", "@@port", "@@global.port", ":=", "<=>", "||", "&&",
	"$$", "$a$", " $b ", ",", "(", ")", " as ü", "\v", "'\\\\'", "'\\'", "''", "\"\"", " '' ' ", "\\"}

// TestServersAgree: what a server makes of a text is what it makes of the code in it alone, token by token, so that no
// comment is taken for code and no code for a comment, in every dialect.
func TestServersAgree(t *testing.T) {
	for _, spec := range []string{"mariadb", "mariadb-11.8", "mysql-9.7", "mysql-8.0", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			node := sandboxtest.Up(t, spec, "innodb_flush_log_at_trx_commit=0", "sync_binlog=0")
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
				d := c.Server.DialectOf(mode)
				agree(t, s, d, mode)
			}
			if err := s.Exec(t.Context(), "SET sql_mode = ''"); err != nil {
				t.Fatal(err)
			}
			systemPrograms(t, s, c.Server.DialectOf(""))
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
	for range 1000 {
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
	if right < 30 {
		t.Errorf("only %d texts were SQL, want at least 30", right)
	}
}

// glued puts together what a blank parts: a variable and its @, a name of digits and its point.
var glued = strings.NewReplacer(" . ", ".", "@ @ ", "@@", "@ ", "@")

// systemPrograms: each view, routine and trigger that the server brings along is read as one CREATE of its kind and name, and can be made
// once more under another schema's name, which it then names everywhere.
func systemPrograms(t *testing.T, s *mysql.Stream, d sqltext.Dialect) {
	rows, err := s.QueryMaps(t.Context(), `SELECT ROUTINE_TYPE AS k, ROUTINE_NAME AS n FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'sys'
 UNION ALL SELECT 'VIEW', TABLE_NAME FROM information_schema.VIEWS WHERE TABLE_SCHEMA = 'sys'
 UNION ALL SELECT 'TRIGGER', TRIGGER_NAME FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'sys'`)
	if err != nil || len(rows) < 100 {
		t.Fatalf("got %v, %v; want at least 100", len(rows), err)
	}
	run := func(statement string) error { return s.Exec(t.Context(), statement) }
	for _, st := range []string{"CREATE DATABASE other", "CREATE TABLE other.sys_config LIKE sys.sys_config", "SET GLOBAL log_bin_trust_function_creators = 1", "USE other"} {
		if err := run(st); err != nil {
			t.Fatal(err)
		}
	}
	to := func(schema string) (string, bool) { return "other", schema == "sys" }
	for round := 1; len(rows) > 0; round++ { // a view waits for those that it needs
		var wait []map[string]string
		for _, r := range rows {
			shown, err := s.QueryMaps(t.Context(), "SHOW CREATE "+r["k"]+" sys."+mysql.Quote(r["n"]))
			if err != nil {
				t.Fatal(err)
			}
			text, mode := "", shown[0]["sql_mode"]
			for column, value := range shown[0] {
				if strings.HasPrefix(column, "Create ") || column == "SQL Original Statement" {
					text = value
				}
			}
			in := d.WithMode(mode)
			c, err := in.ReadCreate(text)
			if err != nil || c.Kind != r["k"] || c.Name.Name != r["n"] {
				t.Errorf("got %s %s: %+v, %v; want c.Kind r[\"k\"], c.Name.Name r[\"n\"]", r["k"], r["n"], c, err)
				continue
			}
			edits, _ := in.Rename(text, to)
			renamed := sqltext.Apply(text, edits)
			for i, list := 0, in.Tokens(renamed); i+1 < len(list); i++ {
				if list[i].Name() && list[i].Text == "sys" && list[i+1].Text == "." {
					t.Errorf("%s %s names sys still: %.60s", r["k"], r["n"], renamed[list[i].Begin:])
				}
			}
			if err := run("SET sql_mode = '" + mode + "'"); err != nil {
				t.Fatal(err)
			}
			if err := run(renamed); err != nil && round < 5 {
				wait = append(wait, r)
			} else if err != nil {
				t.Errorf("%s %s: %v\n%s", r["k"], r["n"], err, renamed)
			}
		}
		rows = wait
	}
}
