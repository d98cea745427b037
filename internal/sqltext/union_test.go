package sqltext

import (
	"strings"
	"testing"
)

// TestUnions: an arm of a UNION that repeats the one before it, and what only begins like it. docs/fingerprints.md, rule 9.
func TestUnions(t *testing.T) {
	deep := strings.Repeat("(", maxUnionDepth)
	for in, want := range map[string]string{
		"select 1 union select 2": "select ? /*repeat union*/", "select 1 union all select 2": "select ? /*repeat union all*/", "select 1 union distinct select 2": "select ? /*repeat union distinct*/", "select 1 union select 2 union all select 3": "select ? /*repeat union all*/", "select 1 union all select 2 union select 3": "select ? /*repeat union*/", "select 1 union select 2 union select a": "select ? /*repeat union*/ union select a", "select a union select 1 union select 2": "select a union select ? /*repeat union*/", "select a union select b union select a": "select a union select b union select a",
		"select a union select ab": "select a union select ab", "select a union select a b": "select a union select a b", "select a union select a, b": "select a union select a, b", "select a union select a.b": "select a union select a.b", "select a union select a;": "select a /*repeat union*/", "select a union select a; select b": "select a /*repeat union*/; select b", "select a union select a order by b": "select a /*repeat union*/ order by b", "select a union select a limit 5": "select a /*repeat union*/ limit ?", "select a union select a for update": "select a /*repeat union*/ for update", "select a union select a into @x": "select a /*repeat union*/ into @x", "select a union select a lock in share mode": "select a /*repeat union*/ lock in share mode", "insert into t select a union select a on duplicate key update b=1": "insert into t select a /*repeat union*/ on duplicate key update b=?", "insert into t select a union select a returning b": "insert into t select a /*repeat union*/ returning b", "select a union select a procedure p": "select a /*repeat union*/ procedure p", "select a union select a except select b": "select a /*repeat union*/ except select b", "select a union select a intersect select b": "select a /*repeat union*/ intersect select b", "select a union select a where b": "select a union select a where b", "select a union select aunion": "select a union select aunion", "select a union select a orders": "select a union select a orders",
		"/*! select a union select a */": "/*! select a /*repeat union*/ */", "/*! select a union select a*/": "/*! select a union select a*/", "select a union select a /*!50000 for update */": "select a /*repeat union*/ /*!? for update */", "select a union select a/ 2": "select a union select a/ ?", "select a union select a* 2": "select a union select a* ?", "select f(a) union select f(a)order by b": "select f(a) union select f(a)order by b", "select a union select a )": "select a /*repeat union*/ )", "select a union select a-1": "select a union select a-?", "select `a` union select `a`": "select `a` /*repeat union*/", "select `a` union select `a`b": "select `a` union select `a`b", "select ` union select ` union select ` union select `": "select ` union select ` /*repeat union*/", "select a  union  all  select a": "select a /*repeat union all*/", "select a\nunion\nselect a": "select a /*repeat union*/", "select a union/**/select a": "select a /*repeat union*/",
		"(select 1) union (select 2)": "(select ?) /*repeat union*/", "(select 1) union all (select 2) union all (select 3) order by 1": "(select ?) /*repeat union all*/ order by ?", "(select a) union select a": "(select a) union select a", "select a union (select a)": "select a union (select a)", "select * from (select 1 union select 2) x": "select * from (select ? /*repeat union*/) x", "select * from (select 1 union select 2) x union select * from (select 1 union select 2) x": "select * from (select ? /*repeat union*/) x /*repeat union*/", "select a in (select 1 union select 2), b from t": "select a in (select ? /*repeat union*/), b from t", "a union a": "a union a", "union": "union", "union union": "union union", "union select a": "union select a", "(a) union (a)": "(a) /*repeat union*/", "select a, (select b) union select a, (select b)": "select a, (select b) /*repeat union*/", ") select a union select a": ") select a /*repeat union*/", "((select 1) union (select 2)) union ((select 1) union (select 2))": "((select ?) /*repeat union*/) /*repeat union*/", "(a b union": "(a b union", "with c as (select 1) select a from c union select a from c": "with c as (select ?) select a from c /*repeat union*/", "insert into t select 1 union select 1": "insert into t select ? /*repeat union*/", "select a union select": "select a union select", "select union select": "select /*repeat union*/", "select a union all distinct select a": "select a /*repeat union distinct*/",
		deep + "select 1 union select 1": deep + "select ? /*repeat union*/", deep + "(select 1 union select 1": deep + "(select ? union select ?",
	} {
		var f Fingerprinter
		if got := string(f.Append([]byte("select a union select "), []byte(in))); got != "select a union select "+want {
			t.Errorf("%.200s\n got %s\nwant %s", in, got, want)
		}
	}
}

// TestMergedNames: which digits of a name are a number, by the option that merges numbered names, and which parts of it a hash.
func TestMergedNames(t *testing.T) {
	f := Fingerprinter{MergeNumbered: true}
	for in, want := range map[string]string{"a1": "a?", "a1_2_b3": "a?_?_b?", "a1b": "a1b", "a12b3": "a12b?", "1a": "1a", "12": "?", "a.5": "a.5", "a_1": "a_?", "_1": "_?", "$1": "$?", "a1.b2": "a?.b?", "a1,a2": "a?,a?", "é1": "é?", "a-b1": "a-b?", "a1_b": "a?_b", "1a2": "1a?", "a`1`": "a`1`", "a": "a"} {
		if got := string(f.Append([]byte("x1 "), []byte(in))); got != "x1 "+want {
			t.Errorf("%s: got %s, want x1 %s", in, got, want)
		}
	}
	for name, want := range map[string]string{"t_1": "t_?", "t1": "t?", "t1a2": "t?a?", "t": "t", "12": "?", "t_12_x34": "t_?_x?", "deadbeef": "deadbeef", "deadbee1": "?", "DEADBEE1": "?", "deadbe1": "deadbe?", "deadbeg1": "deadbeg?", "t_0123456789abcdef_x": "t_?_x", "12345678": "?", "1234567g": "?g", "a-b1": "a-b?", "é1": "é?", "_": "_", "": "", "t__1": "t__?", "0a0b0c0d": "?", "`a1234567": "`?", "@a1234567": "@?", "{a1234567": "{?"} {
		if got := mergedName(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	for in, want := range map[string]string{"select t1.a, t1_b, xt1, $t1, t1$, ét1, t1 from t1": "select t?.a, t1_b, xt1, $t1, t1$, ét1, t? from t?", "select * from s1.t1": "select * from s?.t?", "select * from t1": "select * from t?", "t1 from": "t1 from", "select * from a, a1, a": "select * from a, a?, a", "select a1 from (select * from b2) a1": "select a1 from (select * from b?) a1"} {
		if got := string(MergeTables([]byte(in))); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

// ptEdges are statements at the edges of the rules of pt-query-digest 3.7.1, with what it makes of them. TestPtRules asks the program itself.
var ptEdges = map[string]string{
	"SELECT 1 -- x": "select ? ", "SELECT 1 -- x\r\n, 2": "select ? , ?", "SELECT 1 # x\n, 2": "select ? , ?", "SELECT 1 # it's\n, '2'": "select ? # it??'", "a -": "a ?", "a -- x\rb": "a b", "a - b": "a ? b", "a --": "a ", "a --b\nc": "a c", "SELECT '-- x' -- y": "select ? ", "select 'a' # x 'b' # y": "select ? # x ? ",
	"select a from t order by a ASC, b asc": "select a from t order by a, b", "select a from t order by a asc limit 5": "select a from t order by a limit ?", "select a asc from t": "select a asc from t", "select a from t limit 5, 6": "select a from t limit ?", "select a from t limit 5 offset 6": "select a from t limit ?", "select a from t where b in (1,2) and c in ('x')": "select a from t where b in(?+) and c in(?+)", "select true, false, null, nullx": "select ?, ?, ?, nullx", "insert into t values (1,2),(3,4)": "insert into t values(?+)", "INSERT IGNORE INTO t VALUES (1),(f(2))": "insert ignore into t values(?+)", "call p(1)": "call p", " CALL a.b(1)": "call a.b", "use a": "use ?", "USE a\n": "use ?\n", "use a b": "use a b", "administrator command: Quit;": "administrator command: Quit;", "select /*a.b:1/2*/ 1": "percona-toolkit", "SELECT /*!40001 SQL_NO_CACHE */ * FROM `t`": "mysqldump",
	"select 1 union select 2": "select ? /*repeat union*/", "select 1 union all select 2 union all select 3": "select ? /*repeat union all*/", "select 1 union select 2 union all select 3": "select ? /*repeat union all*/", "select a union select b": "select a union select b", "select a union select a union select ab": "select a /*repeat union*/b", "x select a union select a, select b union select b": "x select a /*repeat union*/, select b /*repeat union*/", "select a  union select a": "select a /*repeat union*/", "select a union select a uniox": "select a /*repeat union*/ uniox", "select aunion select a": "select aunion select a", "selecta union selecta": "selecta union selecta",
}

func TestPtEdges(t *testing.T) {
	for in, want := range ptEdges {
		if got := string(ptFingerprint([]byte(in))); got != want {
			t.Errorf("%s\n got %q\nwant %q", in, got, want)
		}
	}
	long := "select " + strings.Repeat("a, ", 40) + "b"
	if got := string(ptFingerprint([]byte(long + " union " + long))); got != long+" /*repeat union*/" {
		t.Errorf("got %s, want %s", got, long+" /*repeat union*/")
	}
	for n, whole := range map[int]bool{500: true, 9000: false} { // the work is bounded; beyond, the text stays
		s := "select " + strings.Repeat("union select x ", n) + "y"
		if got := string(ptFingerprint([]byte(s))); len(got) > len(s) || whole && got == s {
			t.Errorf("%d arms: got %d bytes of %d", n, len(got), len(s))
		}
	}
}

// TestOpenAndClose: in what a text ends, and where what is open in it ends.
func TestOpenAndClose(t *testing.T) {
	for s, want := range map[string]int{"a /* b */": -1, "a /* b *": 2, "a /* b": 2, "/*": 0, "/**": 0, "/**/": -1, "/*/": 0, "a /*! b": -1, "`a\\": 0, "`a``": 0, "``": -1, "'\\": 0, `"a\"b`: 0, "a -- 'b": -1, "a --'b": 4, "'a' 'b": 4, "a # b\n'c": 6, "-": -1, "/": -1, "a /* b */ 'c": 10, "/* */ */": -1} {
		if got := OpenAt([]byte(s)); got != want {
			t.Errorf("%q: got %d, want %d", s, got, want)
		}
	}
	for _, c := range []struct {
		s     string
		quote byte
		want  int
	}{{`a\`, '`', -1}, {"a\\`b", '`', 3}, {"a``b`", '`', 5}, {"``", '`', -1}, {"`", '`', 1}, {`\\"`, '"', 3}, {`\"`, '"', -1}, {"''", '\'', -1}, {"/", '/', -1}, {"*/", '/', 2}, {"a*/b", '/', 3}, {"*", '/', -1}, {"a /*/", '/', 5}} {
		if got := CloseAt([]byte(c.s), c.quote); got != c.want {
			t.Errorf("%q in %q: got %d, want %d", c.s, c.quote, got, c.want)
		}
	}
	for stmt, want := range map[string]bool{"?": true, "'?' + ?": true, "`?`": false, "\"?\"": false, "a -- ?": false, "a --?": true, "a # ?": false, "/* ? */": false, "/*! ? */": true, "a / ?": true, "- ?": true, "'\\'?' ": false, "": false} {
		if got := HasPlaceholders([]byte(stmt)); got != want {
			t.Errorf("%s: got %v, want %v", stmt, got, want)
		}
	}
}
