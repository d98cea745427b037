package sqltext

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestLists: parentheses, commas outside of them, words, and their places.
func TestLists(t *testing.T) {
	join := func(list []Token) string {
		var words []string
		for _, x := range list {
			words = append(words, x.Text)
		}
		return strings.Join(words, " ")
	}
	for _, c := range []struct {
		in, inside, rest string
		ok               bool
	}{
		{"(a, b) c", "a , b", "c", true}, {"()", "", "", true}, {"(a (b) c) d (e)", "a ( b ) c", "d ( e )", true}, {"((a))", "( a )", "", true}, {"a (b)", "", "a ( b )", false}, {"(a", "", "( a", false}, {"((a)", "", "( ( a )", false}, {"", "", "", false}, {")", "", ")", false}, {"('(' b)", "'(' b", "", true}, {"(`(` b)", "( b", "", true},
	} {
		inside, rest, ok := Group(Tokens(c.in))
		if join(inside) != c.inside || join(rest) != c.rest || ok != c.ok {
			t.Errorf("%s: got %q and %q, %v; want %q and %q, %v", c.in, join(inside), join(rest), ok, c.inside, c.rest, c.ok)
		}
	}
	for in, want := range map[string]string{"a, b c, d": "a|b c|d", "a": "a", "": "", "a,": "a|", ",": "|", "f(a, b), c": "f ( a , b )|c", "(a, (b, c)), d": "( a , ( b , c ) )|d", "a), b": "a )|b", "',' , `,`": "','|,"} {
		var parts []string
		for _, e := range Elements(Tokens(in)) {
			parts = append(parts, join(e))
		}
		if got := strings.Join(parts, "|"); got != want {
			t.Errorf("the elements of %s: got %s, want %s", in, got, want)
		}
	}
	for in, want := range map[string]string{"a b": "a b", "a (b) c": "a c", "(a) (b) c": "c", "a `b` 'c' 1 d": "a d", "a ((b) c) d": "a d", "": ""} {
		if got := strings.Join(Words(Tokens(in)), " "); got != want {
			t.Errorf("the words of %s: got %s, want %s", in, got, want)
		}
	}
	const text = "  ab  (c) /* x */ 'd' "
	if begin, end := Span(Tokens(text)); text[begin:end] != "ab  (c) /* x */ 'd'" {
		t.Errorf("got %q, want \"ab  (c) /* x */ 'd'\"", text[begin:end])
	}
	if begin, end := Span(Tokens(text)[1:4]); text[begin:end] != "(c)" {
		t.Errorf("got %q, want (c)", text[begin:end])
	}
	if begin, end := Span(nil); begin != 0 || end != 0 {
		t.Errorf("of nothing: got %d to %d; want begin 0, end 0", begin, end)
	}
}

// TestReadsOnlyEdges: what reads only, and what is not sure to, at the edges of each rule.
func TestReadsOnlyEdges(t *testing.T) {
	for stmt, only := range map[string]bool{
		"SELECT 1": true, " ( SELECT 1 ) ; ": true, "TABLE t": true, "VALUES ROW(1)": true, "WITH a AS (SELECT 1) SELECT * FROM a": true, "SELECT ''": true, "SELECT ``": true, "SELECT 'it''s'": true, `SELECT 'a\nb'`: true, `SELECT 'a\'b'`: false, "SELECT '": false, "SELECT 'a''": false, "SELECT \"a": false,
		"SELECT `a``b`": true, "SELECT `a\\`": true, "SELECT 1 -- x": true, "SELECT 1 # x": true, "SELECT 1 /* x */": true, "SELECT 1 /**/": true, "SELECT 1 /*/": false, "SELECT 1 /* x *": false, "SELECT 1 / 2": true, "SELECT 1 - 2": true, "SELECT 1 /*! + 1 */": false, "SELECT 1 /*M! + 1 */": false,
		"SELECT a.sleep FROM a": true, "SELECT sleep FROM a": true, "SELECT sleep (1)": false, "SELECT a.f(1)": false, "SELECT `a`.`f`(1)": false, "SELECT f(1)": true, "SELECT wait_until_x(1)": false, "SELECT group_replication_(1)": true, "SELECT group_replication_x(1)": false, "SELECT keyring_key_fetch('x')": false, "SELECT sys_exec('x')": false,
		"SELECT 1 FOR UPDATE": false, "SELECT 1 FOR SHARE": false, "SELECT 1 LOCK IN SHARE MODE": false, "SELECT `update` FROM t": true, "SELECT a.update FROM a": true, "SELECT share FROM t": true, "SELECT NEXT VALUE FOR s": false, "SELECT PREVIOUS VALUE FOR s": false, "SELECT value FROM t": true, "SELECT s.nextval": false,
		"SELECT @a := 1": false, "SELECT @a": true, "SELECT a INTO @b": false, "SELECT a.into FROM a": true, "SELECT 1; SELECT 2": false, "SELECT 1;;": false, "": false, "INSERT INTO t VALUES (1)": false, "UPDATE t SET a = 1": false, "SELECT \x00": false, "SELECT * FROM t PROCEDURE ANALYSE()": false,
	} {
		if err := ReadsOnly([]byte(stmt)); (err == nil) != only || err != nil && !errors.Is(err, ErrWrites) {
			t.Errorf("%q: got %v, want that it reads only: %v", stmt, err, only)
		}
	}
}

// TestSecretWords: each word that announces a password, as short and as long as it may be.
func TestSecretWords(t *testing.T) {
	for _, word := range []string{"identified", "IDENTIFIED", "password", "PassWord", "old_password", "passwd", "pwd", "PWD", "connection", "authentication_string", "wsrep_sst_auth", "master_password", "source_password", "user_password", "password_hash"} {
		for _, stmt := range []string{"SET " + word + " = 'secret'", word + " 'secret'", "ALTER x " + word} {
			if !SetsPassword([]byte(stmt)) {
				t.Errorf("%s: got no password", stmt)
			}
			if got := string(Redact(nil, []byte(stmt))); strings.Contains(got, "secret") {
				t.Errorf("%s: got %s, want no \"secret\" in it", stmt, got)
			}
		}
	}
	for _, stmt := range []string{"SET identifies = 'x'", "SET passport = 'x'", "SET pw = 1", "SET pwx = 1", "SET connections = 1", "SET authentication = 1", "SET wsrep_sst = 1", "pw", "p", "passw", "SELECT 1"} {
		if SetsPassword([]byte(stmt)) {
			t.Errorf("%s: got a password, want SetsPassword([]byte(stmt)) false", stmt)
		}
	}
	for in, want := range map[string]string{
		"SELECT/* x */1": "SELECT ?", "SELECT /* x */ 1": "SELECT  ?", "/* x */SELECT 1": "SELECT ?", "SELECT 1 /*!50000 + 2 */ + 3": "SELECT ? /*!50000 + ? */ + ?", "SELECT 'a', X'41', 0x41, 1e5, .5": "SELECT ?, ?, ?, ?, ?", "SELECT a1, `1`, @a": "SELECT a1, `1`, @a", "SELECT 1--x": "SELECT ?--x", "SELECT 1 -- x": "SELECT ? ", "": "",
		"SELECT 5/2": "SELECT ?/?", "SELECT 5*2": "SELECT ?*?", "SELECT '/* no */', 2": "SELECT ?, ?",
	} {
		if got := string(Redact([]byte("> "), []byte(in))); got != "> "+want {
			t.Errorf("%s: got %q, want %q", in, got, "> "+want)
		}
	}
}

// TestModes: what each sql_mode changes in how text is read, of each flavour.
func TestModes(t *testing.T) {
	for _, c := range []struct {
		d    Dialect
		mode string
		want Dialect
	}{
		{Dialect{}, "", Dialect{}}, {Dialect{}, "STRICT_ALL_TABLES,NO_ZERO_DATE", Dialect{}}, {Dialect{ANSIQuotes: true, NoBackslash: true, Oracle: true}, "", Dialect{}}, {Dialect{}, "ANSI_QUOTES", Dialect{ANSIQuotes: true}}, {Dialect{}, "ansi, no_backslash_escapes", Dialect{ANSIQuotes: true, NoBackslash: true}},
		{Dialect{}, "ORACLE", Dialect{ANSIQuotes: true}}, {Dialect{MariaDB: true}, "ORACLE", Dialect{MariaDB: true, ANSIQuotes: true, Oracle: true}}, {Dialect{MariaDB: true}, "DB2", Dialect{MariaDB: true, ANSIQuotes: true}}, {Dialect{MariaDB: true}, "ORACLE,MSSQL", Dialect{MariaDB: true, ANSIQuotes: true, Oracle: true}}, {Dialect{}, "MAXDB", Dialect{ANSIQuotes: true}}, {Dialect{}, "POSTGRESQL", Dialect{ANSIQuotes: true}},
	} {
		if got := c.d.WithMode(c.mode); got != c.want {
			t.Errorf("%+v with %q: got %+v, want %+v", c.d, c.mode, got, c.want)
		}
	}
	for _, c := range []struct {
		d    Dialect
		in   string
		want []string
	}{
		{Dialect{}, `"a\"b" c`, []string{`"a\"b"`, "c"}}, {Dialect{ANSIQuotes: true}, `"a\" c`, []string{`a\`, "c"}}, {Dialect{NoBackslash: true}, `'a\' c`, []string{`'a\'`, "c"}}, {Dialect{}, "`a\\` c", []string{`a\`, "c"}}, {Dialect{ANSIQuotes: true}, `'a\'b' c`, []string{`'a\'b'`, "c"}}, {Dialect{Postgres: true}, `'a\' c`, []string{`'a\'`, "c"}}, {Dialect{Postgres: true}, `e'a\'b' c`, []string{`e'a\'b'`, "c"}},
		{Dialect{Version: 90000}, "$$ a $$ b", []string{"$$ a $$", "b"}}, {Dialect{Version: 90000}, "$x$ $$ $x$ b", []string{"$x$ $$ $x$", "b"}}, {Dialect{Version: 80400}, "$$ b", []string{"$$", "b"}}, {Dialect{Postgres: true}, "$1 b", []string{"$1", "b"}}, {Dialect{Version: 90000}, "$1$ b", []string{"$1$", "b"}},
	} {
		var got []string
		for _, x := range c.d.Tokens(c.in) {
			got = append(got, x.Text)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v, %s: got %q, want %q", c.d, c.in, got, c.want)
		}
	}
}

// TestDefinitions: what may be in a definition of a table, and what makes it more than one.
func TestDefinitions(t *testing.T) {
	for text, good := range map[string]bool{
		"CREATE TABLE t (a INT)": true, "CREATE TABLE t (a INT) ENGINE=InnoDB COMMENT='SELECT'": true, "CREATE TABLE t (a INT) WITH SYSTEM VERSIONING": true, "CREATE TABLE t (a INT, FULLTEXT KEY (a) WITH PARSER ngram)": true, "CREATE TABLE t (a INT) PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (1))": true,
		"CREATE TABLE t (a INT) SELECT 1": false, "CREATE TABLE t (a INT) AS SELECT 1": false, "CREATE TABLE t (a INT) WITH a AS (SELECT 1) TABLE a": false, "CREATE TABLE t (a INT) TABLE u": false, "CREATE TABLE t (a INT) VALUES ROW(1)": false, "CREATE TABLE t (LIKE u)": false, "CREATE TABLE t LIKE u": false, "CREATE TABLE t (SELECT 1)": false, "CREATE TABLE t (a INT) IGNORE SELECT 1": false, "CREATE TABLE t (a INT) ENGINE=InnoDB; DROP TABLE u": false, "CREATE TABLE t (a INT) (SELECT 1)": false,
		"CREATE TABLE t (a INT) START TRANSACTION": false, "CREATE TABLE t (a INT) ENGINE=x UNION=(a, b)": true, "CREATE TABLE t (a INT) COMMENT=SELECT": true,
	} {
		_, err := Dialect{}.ReadCreate(text)
		if (err == nil) != good {
			t.Errorf("%s: got %v, want good %v", text, err, good)
		}
	}
}
