package sqltext

import (
	"strings"
	"testing"
)

func TestTables(t *testing.T) {
	for in, want := range map[string]string{
		"select 1":        "",
		"select * from t": "t",
		"select * from a, db.b x, `c``d` as y where a.x=1":                                 "a db.b c`d",
		"select * from a join b on a.x=b.x left join c using (id), d where 1":              "a b c d",
		"select * from (select * from x where y in (select z from w)) q, v":                "x w v",
		"with a as (select * from t), b (c) as (select * from a) select * from b join u":   "t u",
		"with recursive r as (select 1 union all select n+1 from r) select * from r, db.r": "db.r",
		"insert into t (a,b) select x,y from u":                                            "t u",
		"insert ignore t values (1)":                                                       "t",
		"INSERT INTO db.t SET a=1":                                                         "db.t",
		"replace into t values (1,replace(a,b,c))":                                         "t",
		"insert into t (a) values ((select max(a) from u)) on duplicate key update a=1":    "t u",
		"update a join b on a.x=b.x set a.y=1 where a.z in (select z from c)":              "a b c",
		"update low_priority ignore t set x=1 order by a limit 1":                          "t",
		"delete from t where x=1":                                                          "t",
		"delete a, b from t1 a join t2 b on a.x=b.x":                                       "t1 t2",
		"delete from a using t1 a join t2 b":                                               "t1 t2",
		"delete quick a.*, db.b from t1 a join db.b":                                       "t1 db.b",
		"with c as (select * from t) update u join c set a=1":                              "t u",
		"with c as (select * from t) delete t from t join c":                               "t",
		"set statement a=1 for delete from t where a in (select b from u)":                 "t u",
		"set statement a=1 for select * from t for update":                                 "t",
		"load data infile '/x' replace into table db.t fields terminated by ','":           "db.t",
		"truncate table t":                                   "t",
		"truncate t":                                         "t",
		"alter table db.t add index (a)":                     "db.t",
		"alter ignore table t rename to u":                   "t",
		"create table if not exists t like u":                "t u",
		"create table t (a int) select * from u":             "t u",
		"create table t (a int not null default 1, key (a))": "t",
		"drop table if exists a, b":                          "a b",
		"rename table a to b, c to d":                        "a b c d",
		"lock tables a read, b as x write":                   "a b",
		"create index i on t (a)":                            "t",
		"create or replace view v as select * from t":        "v t",
		"call p(1)":                       "",
		"set @a = (select max(x) from t)": "t",
		"select extract(year from d), trim(leading 'x' from c), substring(a from 2) from t": "t",
		"select * from t for update of t skip locked":                                       "t",
		"select * from t use index (a, b), u force index for join (c)":                      "t u",
		"select * from json_table('[]', '$[*]' columns (a int path '$')) j, t":              "t",
		"select * from t partition (p0, p1), u":                                             "t u",
		"select * from dual":                                                                "",
		"(select * from a) union (select * from b)":                                         "a b",
		"explain select * from t":                                                           "t",
		"desc t":                                                                            "t",
		"table t":                                                                           "t",
		"show create table db.t":                                                            "db.t",
		"show columns from t":                                                               "t",
		"show tables from db":                                                               "",
		"optimize local table a, b":                                                         "a b",
		"analyze table a, b":                                                                "a b",
		"select * from t where exists (select 1 from `u` where u.from = 1)":                 "t u",
		"SELECT * FROM ((a JOIN b) LEFT JOIN c ON 1)":                                       "a b c",
		"select a into @x from t":                                                           "t",
		"/*!50003 select * from t */":                                                       "t",
		"select * from t where a like 'x' group by b with rollup":                           "t",
		"select * from t1, lateral (select * from t2) d":                                    "t1 t2",
		"select straight_join * from a straight_join b":                                     "a b",
		"select \"from x\", 'from y', `from` from z":                                        "z",
		"select * from `db`.`t`, db . u":                                                    "db.t db.u",
		"select * from t as of timestamp x":                                                 "t",
		"select * from t for system_time as of now(), u":                                    "t u",
		"insert into t select * from u union select * from w where a in (select b from x)":  "t u w x",
		"analyze format=json select * from t":                                               "t",
		"select * from 2fa_codes":                                                           "2fa_codes",
		"select * from db.2fa":                                                              "db.2fa",
	} {
		var got []string
		for _, x := range Tables([]byte(in)) {
			if x.Schema != "" {
				x.Name = x.Schema + "." + x.Name
			}
			got = append(got, x.Name)
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("%s\n got %s\nwant %s", in, g, want)
		}
	}
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"SELECT * FROM t1 WHERE a='x' AND b = -1.5 /* secret */ and c=_utf8'y'": "SELECT * FROM t1 WHERE a=? AND b = -?  and c=?",
		"ALTER USER 'u'@'h' IDENTIFIED BY 'x'":                                  "ALTER USER ?@? IDENTIFIED ...",
		"/*!50003 ALTER USER u IDENTIFIED BY 'x' */":                            "/*!50003 ALTER USER u IDENTIFIED ...",
		"select /*!40001 SQL_NO_CACHE */ a from t where x=1":                    "select /*!40001 SQL_NO_CACHE */ a from t where x=?",
		"set password = 'x'":                                                    "set password ...",
		"change master to master_password='x', master_host='h'":                 "change master to master_password...",
		"select 'unterminated":                                                  "select ?",
		"select a -- x\n, b":                                                    "select a \n, b",
	} {
		if got := string(Redact(nil, []byte(in))); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}
