package sqltext

import (
	"strings"
	"testing"
)

// TestPlain: the plain form of statements, and of the digests that servers have of them. docs/fingerprints.md has the rules.
func TestPlain(t *testing.T) {
	for stmt, want := range map[string]string{
		"select a,b,t.c from t where d=1 and(e>=2)": "select a, b, t.c from t where d = ? and (e >= ?)", "SELECT f ( a , b ), count( * )": "select f(a, b), count(*)", "select a.b . c, `d` . `e`, a . *": "select a.b.c, d.e, a.*", "((a))": "((a))", "select (1), f((1))": "select (?), f((?))", "a;b": "a; b",
		"select `a`, `a b`, `a``b`, `2fa`, `1e5`, `55`, `null`, `true`, `false`, `in`, `values`, `limit`, `union`, `asc`, `order`, `select`, `from`, `A`, ``, `é`, `5a5`": "select a, `a b`, `a``b`, 2fa, `1e5`, `55`, `null`, `true`, `false`, `in`, `values`, `limit`, `union`, `asc`, `order`, `select`, from, a, ``, é, 5a5",
		"select 1, 2, 3": "select ?+", "select 1": "select ?", "select 1, a, 2": "select ?, a, ?", "f(1, 2, a, 3, 4)": "f(?+, a, ?+)", "a in (1, 2)": "a in(?+)", "insert into t values (1)": "insert into t values(?+)", "replace t value (1)": "replace t value(?+)", "f(1)": "f(?)", "select a in (1) , 5": "select a in(?+), ?", "concat (1,2)": "concat(?+)", "x in (select 1, 2)": "x in (select ?+)", "index (1, 2)": "index (?+)", "1,2": "?+", ",1,2": ", ?+", "a=1,2,3": "a = ?+", "1,(2),3": "?, (?), ?",
		"a<>b": "a != b", "a!=b": "a != b", "a<=>b": "a <=> b", "a->'x', a->>'x'": "a -> ?, a ->> ?", "a<=b, a>=b, a<b, a>b": "a <= b, a >= b, a < b, a > b", "a:=b": "a := b", "a||b&&c": "a || b && c", "a<<b>>c": "a << b >> c", "a+b-c*d/e%f^g|h&i~j!k": "a + b - c * d / e % f ^ g | h & i ~ j ! k", "a= =b": "a = = b",
		"select @a, @`b c`, @'d', @@e, @@global.f, @ g": "select @?, @?, @?, @@e, @@global.f, @?", "select @a": "select @?", "select @": "select @?", "select @`a": "select @?", "select @@": "select @@", "'a'@'b'": "?@?", "a@b": "a @?", "@a": "@?", "@@a": "@@a", "set @a=1": "set @? = ?",
		"select /*!40001 sql_no_cache */ a": "select sql_no_cache a", "select /*! a */ b": "select a b", "select /*M!100100 a */ b": "select a b", "/*! */": "", "a /*!": "a", "a /*!50000": "a", "select a /*x*/ * 2": "select a * ?", "select 1 union select 1": "select ? /*repeat union*/", "select 1 union all select 1 union all select 1 order by a": "select ? /*repeat union all*/ order by a", "select a from `t` union select a from t": "select a from t /*repeat union*/", "(select 1) union (select 1)": "(select ?) /*repeat union*/", "select 1 union select a": "select ? union select a",
		"administrator command: Quit": "administrator command: Quit", "SELECT /*!40001 SQL_NO_CACHE */ * FROM `t`": "mysqldump", "/*a.b:1/1*/": "percona-toolkit", "percona-toolkit-x": "percona - toolkit - x", "mysqldumps": "mysqldumps", "": "", " ": "",
	} {
		if got := string(AppendPlain([]byte("> "), []byte(Fingerprint(stmt)))); got != "> "+want {
			t.Errorf("%s\n got %s\nwant > %s", stmt, got, want)
		}
	}
	for digest, stmt := range map[string]string{
		"SELECT `c` FROM `sbtest1` WHERE `id` = ?": "select c from sbtest1 where id=5", "SELECT `c` FROM `sbtest1` WHERE `id` = ? ": "select c from sbtest1 where id=5", "SELECT * FROM `t` WHERE `a` IN (...)": "select * from t where a in (1,2)", "INSERT INTO `t` ( `a` , `b` ) VALUES (...)": "insert into t (a,b) values (1,2)", "INSERT INTO `t` VALUES (...) /* , ... */": "insert into t values (1),(2)",
		"SELECT COUNT ( * ) FROM `db` . `t`": "select count(*) from db.t", "SELECT `concat` (...)": "select concat('a','b')", "SELECT (_charset) ? , `a`": "select _utf8'x', a", "SELECT ( _charset ) ?": "select _utf8'x'", "SELECT (unknown) , `a`": "select N'x', a", "SELECT @? , `a`": "select @x, a", "SELECT @ ? , `a`": "select @x, a", "SELECT @@ GLOBAL . `port`": "select @@global.port", "SELECT `a` FROM `t` LIMIT ?": "select a from t limit 5", "SELECT `a` FROM `t` LIMIT ?, ...": "select a from t limit 5, 6",
	} {
		got, want := string(AppendDigestText(nil, []byte(digest))), string(AppendPlain(nil, []byte(Fingerprint(stmt))))
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", digest, got, want)
		}
	}
	// Words that are one token to the servers. Source: sql/lex.h.
	for _, words := range []string{"distinctrow distinct", "substr mid substring", "schema database", "schemas databases", "some any", "rlike regexp", "integer int4 int", "int1 tinyint", "int2 smallint", "int3 middleint mediumint", "int8 bigint", "float4 float", "float8 double", "dec decimal", "character char", "varcharacter varchar", "fields columns", "describe explain", "std stddev_pop stddev",
		"variance var_pop", "session_user system_user user", "current_timestamp localtime localtimestamp now", "current_date curdate", "current_time curtime", "geometrycollection geomcollection", "sql_tsi_second second", "sql_tsi_minute minute", "sql_tsi_hour hour", "sql_tsi_day day", "sql_tsi_week week", "sql_tsi_month month", "sql_tsi_quarter quarter", "sql_tsi_year year", "io_thread relay_thread", "ndb ndbcluster"} {
		list := strings.Fields(words)
		for _, w := range list {
			if got := string(AppendPlain(nil, []byte("a "+w+" b"))); got != "a "+list[len(list)-1]+" b" {
				t.Errorf("%s: got %s, want \"a \" + list[len(list)-1] + \" b\"", w, got)
			}
		}
	}
	for _, w := range strings.Fields("select from where and or xor not on join by as then when else set having using over exists any all union table into between like with limit is case return div mod distinct index key references check partition row except intersect") {
		if got, want := string(AppendPlain(nil, []byte("x "+w+"(y)"))), "x "+w+" (y)"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	long := strings.Repeat("a", 25)
	if got := string(AppendPlain(nil, []byte(long+" (b)"))); got != long+"(b)" {
		t.Errorf("got %s, want %s", got, long+"(b)")
	}
}
