package sqltext

import "testing"

func TestFingerprint(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"SELECT c FROM sbtest1 WHERE id=5", "select c from sbtest1 where id=?"},
		{"select * from t where a in (1, 2, 3) and b = 'x'", "select * from t where a in(?+) and b = ?"},
		{"  SELECT\n\t*  FROM t -- c\n WHERE x = -1 ;\n", "select * from t where x = ?"},
		{"insert into t (a,b) values (1,'x'),(2,'y') on duplicate key update a=values(a)", "insert into t (a,b) values(?+) on duplicate key update a=values(a)"},
		{"insert into t values (1,now()),(2,now())", "insert into t values (?,now())"},
		{"DELETE FROM q1 WHERE id=1 AND s='it''s'", "delete from q1 where id=? and s=?"},
		{"UPDATE t SET k=k+1 WHERE id=0xFF", "update t set k=k+? where id=?"},
		{"select 2fa_codes.a, db2.t_2009.b from 2fa_codes", "select 2fa_codes.a, db2.t_2009.b from 2fa_codes"},
		{"select 1e-5, .5, 1., 0b01, x'0F', b'1', N'x', _utf8'y', _utf8mb4 0x01", "select ?, ?, ?, ?, ?, ?, ?, ?, ?"},
		{"select a from t limit 5, 10", "select a from t limit ?"},
		{"select a from t order by a asc, b ASC limit 5 offset 3", "select a from t order by a, b limit ?"},
		{"select ascii(a) from t order by ascii(a)", "select ascii(a) from t order by ascii(a)"},
		{"select a from t where b is null and c is not null and d = null and e is true", "select a from t where b is null and c is not null and d = ? and e is true"},
		{"select * from t where (a,b) in ((1,2),(3,4))", "select * from t where (a,b) in(?+)"},
		{"select j->'$.a', j->>'$.b' from t", "select j->?, j->>? from t"},
		{"select a from t where x=1 union all select a from t where x=2 union all select a from t where x=3 order by 1", "select a from t where x=? /*repeat union all*/ order by ?"},
		{"(select 1) union (select 2)", "(select ?) /*repeat union*/"},
		{"select a from t union select abc from t", "select a from t union select abc from t"},
		{"select - - 5, - 5, a - - 5, (- -.5) from 0X1F", "select ?, ?, a - ?, (?) from 0x1f"},
		{"call p(1, 'x')", "call p"},
		{"use test", "use ?"},
		{"administrator command: Quit", "administrator command: Quit"},
		{"SELECT /*!40001 SQL_NO_CACHE */ * FROM `t`", "mysqldump"},
		{"select /*!40001 SQL_NO_CACHE */ a from t", "select /*!? sql_no_cache */ a from t"},
		{"select /* c */ /*+ NO_ICP(t) */ a from t # x", "select a from t"},
		{"select /*d.t:1/2*/ 1", "percona-toolkit"},
		{"/*d.t:1/2*/ select 1", "percona-toolkit"},
		{"select 'unterminated", "select ?"},
		{"select 1 /* unterminated", "select ?"},
		{"select * from t where a in (1,2,3", "select * from t where a in(?+)"},
		{"values row(1,2), row(3,4)", "values row(?+)"},
		{"", ""},
		{"-- only", ""},
	} {
		if got := Fingerprint(c.in); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.in, got, c.want)
		}
	}
}

func TestVerb(t *testing.T) {
	for in, want := range map[string]string{
		" /* x */ select 1":  "SELECT",
		"(select 1)":         "SELECT",
		"/*!50003 create */": "CREATE",
		"with a as (select 1), b (x) as (select 2) delete from t": "DELETE",
		"administrator command: Ping":                             "ADMIN",
		"":                                                        "",
		"12":                                                      "",
	} {
		if got := Verb([]byte(in)); got != want {
			t.Errorf("Verb(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestKeywordHash(t *testing.T) {
	seen := map[uint64]int{}
	for k := 1; k < kwCount; k++ {
		h := keywords[k] * keywordHash & (1<<64 - 1) >> 56
		if other, ok := seen[h]; ok {
			t.Errorf("keywords %d and %d share place %d", k, other, h)
		}
		seen[h] = k
	}
}
