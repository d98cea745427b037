package sqltext

import (
	"strings"
	"testing"
)

// TestRules: each rule of docs/fingerprints.md, on both sides of where it holds.
func TestRules(t *testing.T) {
	long := strings.Repeat("y", 40)
	for in, want := range map[string]string{
		// special statements
		"SELECT /*!40001 SQL_NO_CACHE */ * FROM `a`.`b` WHERE c": "mysqldump", "select /*!40001 SQL_NO_CACHE */ * from `t`": "select /*!? sql_no_cache */ * from `t`", " SELECT /*!40001 SQL_NO_CACHE */ * FROM `t`": "mysqldump", "SELECT /*!40001 SQL_NO_CACHE */ * FROM t": "select /*!? sql_no_cache */ * from t",
		"administrator command: Init DB;": "administrator command: Init DB", " administrator command: Ping ": "administrator command: Ping", "administrator commands": "administrator commands", "administrator 5": "administrator ?",
		"CALL Db . P (1)": "call db.p", "call `A b`.c()": "call `a b`.c", "call p": "call p", "call p;": "call p", "call /* x */ p /* y */ . q (1)": "call p.q", "call": "call", "calls p(1)": "calls p(?)", "call (1)": "call (?)", "call a.b.c(1)": "call a.b.c", "call $p(1)": "call $p", "call p.": "call p.", "call .p": "call .p",
		"USE Test": "use ?", "use `a b`;": "use ?", "use \"a b\" ; ": "use ?", "use a b": "use a b", "use": "use", "use ;": "use", "use test;": "use ?", "use\ttest\n": "use ?", "user test": "user test", "use `a` b": "use `a` b", "use/* x */test": "use ?", "using t": "using t",
		"select /*a.b:1/2*/ 1": "percona-toolkit", "select /*a.b:1/23*/ 1": "select ?", "select /*a.b:12/3*/ 1": "select ?", "select /*a:1/2*/ 1": "select ?", "select /*.b:1/2*/ 1": "select ?", "select /*a.:1/2*/ 1": "select ?", "select /*a.b 1/2*/ 1": "select ?", "select /*a.b:1-2*/ 1": "select ?", "select /*a.b:x/2*/ 1": "select ?", "select /*a.b:1/x*/ 1": "select ?", "select /*a.b.c:1/2*/ 1": "select ?", "select /*a b.c:1/2*/ 1": "select ?", "select /*a.b c:1/2*/ 1": "select ?",
		"/* x */ -- y\n /*a.b:1/2*/ select 1": "percona-toolkit", "/*a_1.b$:0/9*/": "percona-toolkit", "select /* a.b:1/2*/ 1": "select ?", "select /*a.b:1/2 */ 1": "select ?", "select 1 /*a." + long + ":1/2*/": "percona-toolkit",
		// comments
		"select a/* x */from t": "select a from t", "select a /* x */ from t": "select a from t", "select a/* x */,b": "select a,b", "select (/* x */a)": "select (a)", "select a -- x\nfrom t": "select a from t", "select a # x\nfrom t": "select a from t", "select a--x": "select a--x", "select a -- x": "select a", "/* x */": "", "select a/b": "select a/b", "select a /b": "select a /b", "select /*+ x */ a": "select a", "a-- x\nb": "a b", "a--\tx\nb": "a b", "select 1/* x */2": "select ??",
		"/*!40000 a */": "/*!? a */", "/*!a*/": "/*!a*/", "/*M!100100 a */": "/*m!? a */", "/*m! a */": "/*m! a */", "/*!? a */": "/*!? a */", "a /*!50000": "a /*!?", "a /*!": "a /*!", "a * b": "a * b", "a */ b": "a */ b", "/*! a */ */": "/*! a */ */", "/*!1 a /*!2 b */ c */": "/*!? a /*!? b */ c */", "select 5*/* x */2": "select ?*?", "/*! a*": "/*! a*", "/*! 1 */* 2": "/*! ? */* ?", "/*! 1 */*/* x */2": "/*! ? */*?",
		// literals
		"select 'a''b'": "select ?", `select 'a\'b'`: "select ?", `select "a""b"`: "select ?", `select "a\"b"`: "select ?", "select '' ''": "select ? ?", "select x'0f', X'0F', b'1', B'1', n'x', N'x'": "select ?, ?, ?, ?, ?, ?", "select x 'a', b 'a', n 'a'": "select x ?, b ?, n ?", "select x\"0f\"": "select x?", "select _utf8 'x', _UTF8MB4'x', _latin1\"x\"": "select ?, ?, ?", "select _binary x'0f', _binary b'1', _binary 0x0f, _utf8 X'0F', _utf8 B'1'": "select ?, ?, ?, ?, ?",
		"select _utf9 'x'": "select _utf9 ?", "select _utf8": "select _utf8", "select _utf8 ": "select _utf8", "select _utf8 a": "select _utf8 a", "select _utf8 5": "select _utf8 ?", "select _utf8 x": "select _utf8 x", "select _utf8 xy'a'": "select _utf8 xy?", "select _utf8/* x */'a'": "select ?", "select _utf8.a": "select _utf8.a", "select _abcdefghijklm 'x'": "select _abcdefghijklm ?", "select _abcdefghijkl 'x'": "select _abcdefghijkl ?", "select __utf8 'x'": "select __utf8 ?", "select a_utf8 'x'": "select a_utf8 ?", "select _swe7'x', _utf16le'x', _armscii8'x', _macroman 'x'": "select ?, ?, ?, ?",
		"select true, FALSE, Null": "select ?, ?, ?", "select truex, nullx, false_": "select truex, nullx, false_", "select t.true, t.null, @null, @true": "select t.true, t.null, @null, @true", "select `true`, `null`": "select `true`, `null`", "a is null": "a is null", "a IS NOT NULL": "a is not null", "a is\nnull": "a is null", "a is true or b is not false": "a is true or b is not false", "not null": "not null", "not true": "not ?", "this null": "this ?", "knot null": "knot ?", "thisis null": "thisis ?", "a isnull": "a isnull", "null": "?", "true": "?",
		"select a.5b, a.5": "select a.5b, a.5", "select ?": "select ?", "select ...": "select ?+", "select .5, ...": "select ?, ?+", "select ..": "select ..",
		// signs
		"select -1, +1, - 1, -'a', -.5, -?, -a, -(1), -x'0f'": "select ?, ?, ?, ?, ?, ?, -a, -(?), -?", "a-1": "a-?", "a - 1": "a - ?", "a -1": "a -?", "(-1)": "(?)", "(a)-1": "(a)-?", "`a`-1": "`a`-?", "1-1": "?-?", "'a'-1": "?-?", "a=-1": "a=?", "a,-1": "a,?", "a*-1": "a*?", "a- -1": "a- ?", "a+-1": "a+?", "- -1": "?", "a = -.5": "a = ?", "a = -\"x\"": "a = ?", "select 1 #*a.b:1/2*/": "select ?", "-+-1": "?", "a - - - 1": "a - ?", "é-1": "é-?", "a.in -1": "a.in -?", "a in -1": "a in ?", long + " -1": long + " -?", "t." + long + "-1": "t." + long + "-?", "-": "-", "- ": "-", "-2fa": "-2fa", "-.": "-.", "-.a": "-.a", "a -.5": "a -?", "a = - /* x */ 1": "a = ?", "-1e5": "?", "5 - -5": "? - ?", "a->-1": "a->?", "-0x": "-0x", "--1": "?", "*-1": "*?",
		// lists
		"a in (1)": "a in(?+)", "a IN(1,2)": "a in(?+)", "a in\n(1 , 2)": "a in(?+)", "a in ()": "a in(?+)", "a in (b)": "a in (b)", "a in (1,b)": "a in (?,b)", "a in (1+1)": "a in (?+?)", "a in (-1,+2,- 3)": "a in(?+)", "a in (1-1)": "a in (?-?)", "a in ('x',\"y\",null,true,false,.5,0x0f,?,?+,...)": "a in(?+)", "a in (n'x',x'0f',b'1',_utf8'x')": "a in(?+)", "a in (nul)": "a in (nul)", "a in (falsy)": "a in (falsy)", "a in (trues)": "a in (trues)", "a in (nullx)": "a in (nullx)", "a in (falsex)": "a in (falsex)", "a in (nx'a')": "a in (nx?)", "a in (.)": "a in (.)", "a in (.a)": "a in (.a)", "a in (2fa)": "a in (2fa)", "a in (`b`)": "a in (`b`)",
		"a in ((1,2),(3,4))": "a in(?+)", "a in (((1)))": "a in(?+)", "a in ((1),(b))": "a in ((?),(b))", "a in (row(1,2), ROW (3,4))": "a in(?+)", "a in (row)": "a in (row)", "a in (1 row(2))": "a in (? row(?))", "a in (rows(1))": "a in (rows(?))", "a in (row": "a in (row", "a in (1, /* x */ 2)": "a in(?+)", "a in (1, -- x\n 2)": "a in(?+)", "a in (1, # x\n 2)": "a in(?+)", "a in (1 /*! ,2 */)": "a in (? /*! ,? */)", "a in (1 / 2)": "a in (? / ?)", "a in (1 * 2)": "a in (? * ?)", "a in (1,": "a in(?+)", "a in (": "a in(?+)", "a in (1)b": "a in(?+)b", "a in (1) -1": "a in(?+) -?", "in(1)in(1)": "in(?+)in(?+)", "a inn (1)": "a inn (?)", "xin (1)": "xin (?)", "t.in (1)": "t.in (?)", "@in (1)": "@in (?)", "`in` (1)": "`in` (?)", "a in /* x */ (1)": "a in(?+)", "a in (select 1)": "a in (select ?)", "a in ((1)-1)": "a in ((?)-?)",
		// rows
		"insert into t values (1)": "insert into t values(?+)", "insert into t values (1),(2)": "insert into t values(?+)", "insert into t values (1), (now()) , (2)": "insert into t values(?+)", "insert into t values (now()),(1)": "insert into t values (now())", "insert into t values (now(),(1)),((2),3) on duplicate key update a=1": "insert into t values (now(),(?)) on duplicate key update a=?", "insert into t value (1),(2)": "insert into t value(?+)", "insert into t (a)values(1),(2)": "insert into t (a)values(?+)", "insert into `t`values(1),(a)": "insert into `t`values(?+)", "insert into t values (a),('),('),(2) x": "insert into t values (a) x", "insert into t values (a),(`)`), (/* ) */b), (-- )\n c),(# )\n d),(1-1),(2/2) x": "insert into t values (a) x", "insert into t values (a),(b": "insert into t values (a)", "insert into t values (a) (b)": "insert into t values (a) (b)", "insert into t values (a), b": "insert into t values (a), b", "insert into t values": "insert into t values", "insert into t values (": "insert into t values(?+)",
		"values row(1,2),row(3,4)": "values row(?+)", "values row (1,a), row(3,4) order by 1": "values row (?,a) order by ?", "values row": "values row", "values rows(1)": "values rows(?)", "values (1),(2)": "values(?+)", "values(a)": "values(a)", "values (a),(b)": "values (a)", "select values(a), values(b)": "select values(a), values(b)", "a = values(1), (b)": "a = values(?+), (b)", "a = values(1), (2)": "a = values(?+)", "set a=values(b),(c)": "set a=values(b),(c)", "/*! values (a),(b) */": "/*! values (a),(b) */", "/* x */ values (a),(b)": "values (a)", "select values (a),(b)": "select values (a),(b)", "t.values (1),(a)": "t.values (?),(a)", "valuesx (1),(2)": "valuesx (?),(?)", "select (values (a),(b))": "select (values (a),(b))",
		"values row(a) order by (b), (c)": "values row(a) order by (b), (c)", "insert into t (a) values (b),(c)": "insert into t (a) values (b)", "insert into `t` values (b),(c)": "insert into `t` values (b)", "/*! insert */ values (b),(c)": "/*! insert */ values (b)", "insert into t values (1),": "insert into t values(?+),", "insert into t values (a),": "insert into t values (a),", "xsql_no_cache -1": "xsql_no_cache -?", "xsql_no_cache values (a),(b)": "xsql_no_cache values (a)", "sql_no_cache values (a),(b)": "sql_no_cache values (a),(b)", "a /*repeat union" + long + long + "*/ b": "a b", "select /*ab.:1/2*/ 1": "select ?", "select /*.bc:1/2*/ 1": "select ?", "select /*.:1/2*/ 1": "select ?", "select _utf8 0": "select ?", "order by": "order by",
		// limit, order, asc
		"limit 5": "limit ?", "limit 5,6": "limit ?", "limit 5 , 6": "limit ?", "limit 5 offset 6": "limit ?", "limit 5 OFFSET 6": "limit ?", "limit 5 offsets": "limit ? offsets", "limit 5,a": "limit ?,a", "limit 5 offset a": "limit ? offset a", "limit a": "limit a", "limit": "limit", "limit ?": "limit ?", "limit ?,?": "limit ?", "limit\n5": "limit ?", "limit 5 /* x */ , 6": "limit ?", "limit (5)": "limit (?)", "limit5": "limit5", "t.limit 5": "t.limit ?", "limits 5": "limits ?", "limit 5 for update": "limit ? for update", "limit 5,": "limit ?,", "limit 5,6,7": "limit ?,?",
		"order by a asc": "order by a", "order by a ASC, b asc": "order by a, b", "order by a desc": "order by a desc", "a asc": "a asc", "order a asc": "order a asc", "order  by a asc": "order by a", "order/* x */by a asc": "order by a", "order by(a)asc": "order by(a)", "order bya asc": "order bya asc", "order by a ascii": "order by a ascii", "order by t.asc": "order by t.asc", "`order` by a asc": "`order` by a asc", "order": "order", "order b": "order b",
		// blanks, ends
		" \t\n\v\f\r a  \n b ;\n; ": "a b", "a;b": "a;b", ";": "", "a ; b": "a ; b", "a( b )": "a( b )", "\x00a": "\x00a", "a=1": "a=?", "A\nB": "a b",
	} {
		if got := Fingerprint(in); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
	for _, w := range strings.Fields("select where and or xor not between like rlike regexp in is then else when case if elseif while until by on having return div mod values value set interval limit offset distinct distinctrow all as default to escape returning sql_no_cache sql_cache do using end top kill add") {
		for _, sign := range []string{"-", "+", " - ", " +"} {
			if got, want := Fingerprint(w+" "+sign+"'x'"), w+" ?"; got != want { // a word before an expression: the sign is the literal's
				t.Errorf("%s %s'x': got %s, want %s", w, sign, got, want)
			}
			if got, want := Fingerprint("x."+w+sign+"1"), "x."+w+strings.ReplaceAll(sign, "  ", " ")+"?"; got != want { // a column of that name: it is an operator
				t.Errorf("x.%s%s1: got %s, want %s", w, sign, got, want)
			}
		}
	}
	for c := 0x80; c < 0x100; c++ { // the last byte of a letter that is not ASCII
		if got, want := Fingerprint("a"+string([]byte{byte(c)})+" -1"), "a"+string([]byte{byte(c)})+" -?"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for n, want := range map[int]string{maxToolkit: "percona-toolkit", maxToolkit + 1: "select ?"} {
		comment := "/*a." + strings.Repeat("b", n-10) + ":1/2*/"
		if got := Fingerprint("select " + comment + " 1"); got != want || len(comment) != n {
			t.Errorf("a comment of %d bytes, %d: got %s, want %s", n, len(comment), got, want)
		}
	}
	for name := range charsets {
		if got := Fingerprint("select _" + name + " 'x', _" + strings.ToUpper(name) + "'x' from t"); got != "select ?, ? from t" {
			t.Errorf("_%s: got %s, want \"select ?, ? from t\"", name, got)
		}
	}
	if n := len(charsets); n != 42 {
		t.Errorf("got %d character sets, want 42: the 41 of MySQL 8.0 but for its new names, and MariaDB's", n)
	}
}

// TestLongWords: what the loop does eight bytes at a time is what it would do byte by byte, wherever a word begins and ends.
func TestLongWords(t *testing.T) {
	for n := 1; n < 40; n++ {
		pad, word := strings.Repeat("y", n), strings.Repeat("Ab", n)
		for in, want := range map[string]string{
			pad + " IN (1)": pad + " in(?+)", word + " LIMIT 5": word + " limit ?", word + "=" + word: word + "=" + word, word + ".5 " + word: word + ".5 " + word, "_" + word + " 1": "_" + word + " ?", "5" + pad + "_": "5" + pad + "_", "(" + pad + "'x'": "(" + pad + "?", word + "\n" + word + "\tNULL": word + " " + word + " ?",
			"`" + word + "` is null": "`" + word + "` is null", strings.Repeat("é", n) + "=1": strings.Repeat("é", n) + "=?", strings.Repeat("1", n+1) + ",a": "?,a", strings.Repeat("1", n+1) + ".5,a": "?,a", strings.Repeat("(", n) + "1": strings.Repeat("(", n) + "?", strings.Repeat(",", 60*n) + "1": strings.Repeat(",", 60*n) + "?",
			"select " + strings.Repeat("a, ", 9*n) + strings.Repeat("x", 300) + " from t": "select " + strings.Repeat("a, ", 9*n) + strings.Repeat("x", 300) + " from t", strings.Repeat("`a`", 9*n) + "1": strings.Repeat("`a`", 9*n) + "?",
		} {
			if got := Fingerprint(in); got != strings.TrimLeft(strings.ToLower(want), " ") {
				t.Fatalf("%s\n got %s\nwant %s", in, got, strings.ToLower(want))
			}
		}
	}
}
