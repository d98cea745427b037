package sqltext

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestReadsOnly(t *testing.T) {
	for _, s := range []string{
		"select 1", "SELECT * FROM t;", "(select a from t) union (select b from u)", "with a as (select 1) select * from a",
		"table t", "values row(1)", "/* x */ select a from t -- y", "select 'into; for update' from t", "select `into` from t",
		"select count(*), max(a), json_extract(j, '$.a') from t where a in (1,2)", "select t.update from t",
		"select a from t order by insert(a, 1, 2, 'x')", "select @a, @@version", "select 'it''s'", "select 'C:\\\\x'",
	} {
		if err := ReadsOnly([]byte(s)); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	for _, s := range []string{
		"", "-- x", "insert into t values (1)", "update t set a=1", "delete from t", "replace into t values (1)", "call p()",
		"select 1; drop table t", "select 1;;select 2", "select a from t into outfile '/x'", "select a into @x from t", "select a into dumpfile '/x' from t",
		"select a from t for update", "select a from t for share", "select a from t lock in share mode", "select @a := 1",
		"with a as (select 1) delete from t", "explain analyze delete from t", "set @a=1", "do sleep(1)", "select sleep(1)", "select `sleep`(1)",
		"select SLEEP (1)", "select sleep/**/(1)", "select get_lock('x', 1)", "select load_file('/etc/passwd')", "select benchmark(1,1)", "select nextval(s)",
		"select next value for s", "select s.nextval", "select db.f(1)", "select f.g (1)", "select last_insert_id(5)", "/*!50000 delete from t */",
		"select 1 /*!50000 into outfile '/x' */", "select 1 /*M! into @x */", "select 'a", "select 1 /* a", "select `a", "select 'a\\' into outfile '/x' -- '",
		"select 1\x00; drop table t", "select group_replication_switch_to_single_primary_mode('x')", "select a from t procedure analyse()",
		"analyze select 1", "handler t open", "show tables", "select \"sleep\"(1)", "prepare s from 'x'", "administrator command: Quit",
	} {
		if err := ReadsOnly([]byte(s)); !errors.Is(err, ErrWrites) {
			t.Errorf("%s: got %v, want ErrWrites", s, err)
		}
	}
}

func TestSetsPassword(t *testing.T) {
	for _, s := range []string{
		"CREATE USER u IDENTIFIED BY 'secret9'", "alter user u identified with mysql_native_password as 'secret9'", "set password for u = 'secret9'",
		"SET PASSWORD = PASSWORD('secret9')", "grant all on *.* to u identified by password 'secret9'", "change master to master_host='h', master_password='secret9'",
		"CHANGE REPLICATION SOURCE TO SOURCE_PASSWORD = 'secret9'", "start group_replication user='u', password='secret9'", "start slave user='u' password='secret9'",
		"create server s foreign data wrapper mysql options (user 'u', password 'secret9')", "select password('secret9')", "select old_password('secret9')",
		"/*!50001 CREATE USER u IDENTIFIED BY 'secret9' */", "/*M!100400 alter user u identified via ed25519 using password('secret9') */",
		"create user u identified via ed25519 using 'secret9'", "alter user u identified by \"secret9\" replace 'secret9'", "create user u /*!50700 identified */ by 'secret9'",
		"prepare s from 'create user u identified by ''secret9'''", "set @s = \"alter user u identified by 'secret9'\"", "update users set password='secret9' where id=1",
		"insert into users (login, `password`) values ('u', 'secret9')", "create table t (a int) engine=federated connection='mysql://u:secret9@h/db/t'",
		"set global wsrep_sst_auth='u:secret9'", "update mysql.user set authentication_string='secret9'", "create user u identified by secret9",
		"create user u identified by 'secret9", "SET PASSWORD FOR 'u'@'h' TO RANDOM", "alter user u identified by random password retain current password",
		"select * from users where login='u' and passwd='secret9'", "alter user u identified/* x */by/*secret9*/'secret9'", "create user u identified by n'secret9'",
	} {
		if !SetsPassword([]byte(s)) {
			t.Errorf("not seen: got %s, want SetsPassword([]byte(s)) true", s)
		}
		if got := string(Redact(nil, []byte(s))); strings.Contains(got, "secret9") {
			t.Errorf("got %s, want no \"secret9\" in it\nbecame %s", s, got)
		}
	}
	for _, s := range []string{"select 1", "select a from passengers where identity='x'", "create user u", "insert into t values ('x')", ""} {
		if SetsPassword([]byte(s)) {
			t.Errorf("seen in %s, want SetsPassword([]byte(s)) false", s)
		}
	}
}

// TestHard feeds what real logs hold; the time limit of the test would catch what is not linear.
func TestHard(t *testing.T) {
	n := 1 << 18
	if testing.Short() {
		t.Log("short: an eighth of the bytes")
		n = 1 << 15
	}
	rep := func(s string) string { return strings.Repeat(s, n/len(s)) }
	var f Fingerprinter
	for name, s := range map[string]string{
		"signs": "select " + rep("- "), "minus": rep("a-"), "plus1": "select " + rep("+1"), "open": rep("("), "close": rep(")"), "in": rep("in("), "in1": rep("in(1,"),
		"in list": "select a in (" + rep("1,") + "1)", "values": rep("values("), "values2": "insert into t values " + rep("(a,1),"), "union": rep(" union select 1"),
		"union all": "select 1" + rep(" union all select a from t where x=1"), "unions": rep("union "), "union open": rep("select(union "),
		"comment": "select 1 /*" + rep("*"), "slashes": "/*" + rep("/"), "comments": rep("/**/"), "lines": rep("--\n"), "quote": "'" + rep("a"), "quotes": rep("'"), "backslash": "'" + rep("\\"),
		"ticks": rep("`"), "dots": rep("."), "exec": rep("/*!"), "execm": rep("/*M!40000 "), "limit": rep("limit 1,"), "limits": rep("limit "), "null": rep("null "), "is": rep("is null "),
		"asc": "order by " + rep("a asc,"), "ats": rep("@"), "nul": rep("\x00"), "high": rep("\xff"), "latin1": rep("\xe9t\xe9 "), "digits": rep("1"), "word": rep("a"), "hex": "0x" + rep("f"),
		"under": rep("_"), "charset": rep("_utf8 "), "spaces": rep(" "), "row": "values " + rep("row(1),"), "call": "call " + rep("a."), "dash comment": rep("-/**/"),
		"deep": "select 1 union select " + rep("(") + rep(")"), "with": rep("with a as (select 1),"), "from": "select * from " + rep("t,"), "mixed": rep("select'a'\"b\"`c`1 -2/*x*/in(1)"),
		"semicolons": rep(";"), "at null": rep("@null"), "password": rep("password "), "toolkit": rep("/*a.b:1/1"),
	} {
		in := []byte(s)
		fp := f.Append(nil, in)
		AppendPlain(nil, fp)
		Verb(in)
		SetsPassword(in)
		ReadsOnly(in)
		Tables(in)
		Redact(nil, in)
		if len(fp) > 2*len(in)+64 {
			t.Errorf("%s: a fingerprint of %d bytes from %d, want at most %d", name, len(fp), len(in), 2*len(in)+64)
		}
	}
}

func TestLongStatement(t *testing.T) {
	if testing.Short() {
		t.Skip("short: a statement of 64 MB, which one goroutine reads")
	}
	s := append(append([]byte("insert into t (a) values ('"), bytes.Repeat([]byte("x\\'y''"), 64<<20/6)...), "')"...)
	var f Fingerprinter
	fp := f.Append(nil, s)
	if string(fp) != "insert into t (a) values(?+)" {
		t.Errorf("got %.100s, want \"insert into t (a) values(?+)\"", fp)
	}
	if cap(fp) > 4096 {
		t.Errorf("got %d bytes for a fingerprint of %d, want at most 4096", cap(fp), len(fp))
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	var f Fingerprinter
	dst := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() {
		for _, s := range benchStatements {
			dst = f.Append(dst[:0], s)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestMergeNumbered(t *testing.T) {
	f := Fingerprinter{MergeNumbered: true}
	for in, want := range map[string]string{
		"select c1 from sbtest12 where id=5":              "select c? from sbtest? where id=?",
		"select * from db2.orders_2024_01, 2fa_codes":     "select * from db?.orders_?_?, 2fa_codes",
		"select `t1`.utf8mb4 from `t1` where a in (1, 2)": "select `t?`.utf8mb? from `t?` where a in(?+)",
	} {
		if got := string(f.Append(nil, []byte(in))); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}
