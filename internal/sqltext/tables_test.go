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

// TestTableEdges: what is a table and what only looks like one, statement by statement. Source: MySQL manual, "SQL Statements"; MariaDB documentation,
// "SQL Statements".
func TestTableEdges(t *testing.T) {
	deep := strings.Repeat("(", maxLevels+10)
	for in, want := range map[string]string{
		"select * from a; select * from b": "a b", "select * from a; insert into b values (1); delete from c; update d set x=1": "a b c d", "select 1;": "", "update a set x=1; select b from c": "a c", "select * from 5": "", "select @@from, b": "", "select 1) from t, u": "t u", "replace t(a) values (1)": "t", "create index i on `t` (a)": "t", "(select * from a; b)": "a",
		"select x.from, y.join, z.update from t": "t", "set @from = 1, @join = (select b from t)": "t", "select @a from t": "t", "select 5 from t": "t",
		deep + "select * from a" + strings.Repeat(")", maxLevels+10) + " union select * from b": "a b",
		// names
		"select * from `a``b`.`c.d`, `e`": "a`b.c.d e", "select * from a.`b` c, d.e": "a.b d.e", "select * from \"a\"": "a", "select \"a\" from t": "t", "select * from a.\"b\"": "a.b", "select * from db.123, 1a": "db.123 1a", "select * from DUAL": "", "select * from `dual`": "dual", "select * from db.dual": "db.dual", "select * from T, t": "T t", "select * from t, t": "t", "select * from a.t, t": "a.t t", "select * from `": "",
		// lists and joins
		"select * from a, b c, d as e, (f, g), ((h)) where i, j": "a b d f g h", "select * from a join b, c natural join d cross join e inner join f left outer join g": "a b c d e f g", "select * from a left join (b, c) on x, y": "a b c y", "select * from a join b using (c, d), e": "a b e", "select * from a straight_join b": "a b", "select * from {oj a left join b on 1}": "a b", "select * from (a)": "a", "select join from t": "t",
		"select * from a group by b, c having d, e order by f, g limit h, i": "a", "select * from a where b = c, d window w as (x), y": "a", "select * from a procedure analyse(), b": "a", "delete from a returning b, c": "a", "select * from a order by b, c": "a",
		"select * from a union select b, c": "a", "select * from a except select * from b intersect select * from c": "a b c", "select 1 union table t": "t", "select * from a union values row(1), row(2)": "a", "select * from a union (select * from b), c": "a b",
		"select distinct from_x from t": "t", "select a is not distinct from b from t": "t", "select extract(day from x), y from t": "t", "select position('x' in y) from t": "t", "select (select max(a) from t), b from u": "t u", "select f(select 1 from t)": "t", "select * from t where x in (select y from u), z": "t u", "select * from t1 t where exists (select * from t2 where a = t.b)": "t1 t2",
		"select * from json_table(a, '$' columns (b int path '$')) c, d": "d", "select * from f(1), t": "t", "select * from db.f(1) a, t": "t",
		"select * from t use index for join (i), u": "t u", "select * from t ignore index for order by (i), u": "t u", "select * from t force key for group by (i), u": "t u", "select * from t for system_time all, u": "t u", "delete from t for portion of p from \"a\" to b": "t", "update t for portion of p from a to b set c=(select d from u)": "t u", "select * from t for update": "t", "select * from t for update of t, u": "t", "select * from t for share nowait": "t", "select * from t lock in share mode": "t", "select * from t tablesample (5), u": "t u",
		// common table expressions
		"with a as (select 1) select * from A, b": "b", "with `a` as (select 1) select * from a": "", "with a as (select * from x), `b c` (d) as (select 1) select * from a, `b c`, e": "x e", "with recursive a as (select 1) select * from a": "", "with a as (select 1) select * from s.a": "s.a", "with a as (with b as (select * from c) select * from b) select * from a": "c", "select * from (with a as (select * from t) select * from a) x, b": "t b", "insert into t with a as (select * from u) select * from a": "t u", "create table t with a as (select * from u) select * from a": "t u", "create view v as with a as (select * from u) select * from a": "v u", "explain with a as (select * from u) select * from a": "u", "with a as (select 1), b as (select * from a) select * from b, c": "c", "replace into t with a as (select 1) select * from a": "t", "with a as (select 1) update t join a set x = 1": "t", "with a as (select 1) delete from t": "t", "with a as (select * from b) table c": "b c",
		"select a from t group by b with rollup": "t", "create view v as select * from t with check option": "v t", "create view v as select * from t with cascaded check option": "v t", "select match (a) against ('x' with query expansion) from t": "t", "create table t (a int, fulltext (a) with parser ngram)": "t", "alter table t add fulltext (a) with parser ngram": "t", "select * from t where with": "t", "grant select on a.b to c with grant option": "", "with": "", "with 5": "",
		// insert
		"insert t values (1)": "t", "insert low_priority into t values (1)": "t", "insert delayed t values (1)": "t", "insert high_priority ignore into t set a=1": "t", "insert into t values (1), (2), (f(3))": "t", "insert into t(a, b) select c, d from u, v": "t u v", "insert into s.t(a) values (1)": "s.t", "insert into t (a) table u": "t u", "insert into t (select * from u)": "t u", "insert into t set a=(select b from u), c=d": "t u", "replace t select * from u": "t u", "replace(a, b, c)": "", "insert(a, b, c, d)": "", "select insert(a, 1, 2, b), c from t": "t", "insert into t values (1) as new on duplicate key update a=new.a": "t", "insert into t values ((select replace(a,b,c) from u), 2)": "t u", "insert into t partition (p, q) values (1)": "t", "select a into outfile '/x' from t": "t", "select a, b into @c, @d from t": "t", "insert into t value (1), (2)": "t",
		// update, delete
		"update t set a=1, b=2 where c": "t", "update a, b set a.x=b.y": "a b", "update a join b using (c) set d=e, f=g": "a b", "update t as u set u.a=1 order by b limit 1": "t", "update (a, b) set c=1": "a b", "update t set a=(select b from u, v where c)": "t u v", "update ignore s.t set a=1": "s.t", "explain update t set a=1": "t",
		"delete from t order by a limit 1": "t", "delete a from a join b": "a b", "delete from a, b using a join b using (c) where d": "a b", "delete from a using a join b using (c, d), e": "a b e", "delete a.*, s.b.* from a join s.b": "a s.b", "delete from t partition (p)": "t", "delete ignore from t where a in (select b from u)": "t u", "delete low_priority quick from t": "t", "delete from t as a where a.b": "t", "delete t from (select * from u) t join v": "u v", "delete a from t1 a where exists (select * from t2 where 1)": "t1 t2", "delete a from b where c; delete d from e": "b e", "explain delete from t": "t", "delete from t where a = (select 1 from u join v using (x))": "t u v",
		"select * from t; with a as (select 1) delete x from x join a": "t x",
		// set
		"set a = 1": "", "set statement a=1 for select * from t": "t", "set statement a=(select 1 from u) for insert into t values (1)": "u t", "set statement = 1": "", "set session statement = 1 for select": "", "set x = (select a from t for update)": "t", "do (select a from t), b": "t", "set statement a=1 for update t set b=1": "t", "set statement a=1 for with c as (select * from t) select * from c": "t",
		// definitions
		"create table t (a int, b int) engine=innodb": "t", "create temporary table if not exists s.t (a int)": "s.t", "create table t (like u)": "t u", "create table t like s.u": "t s.u", "create table t (a int check (a like b))": "t", "create table t (a int references u (b), foreign key (a) references v (c))": "t", "create table t (a int) as select * from u, v": "t u v", "create table t as (select * from u)": "t u", "create table t ignore select * from u": "t u", "create table t select a like b from u": "t u", "create table t (a int) union=(u, v)": "t", "create or replace algorithm=merge view v (a, b) as select c, d from t": "v t", "create index i on t (a, b)": "t", "create unique index i using btree on s.t (a)": "s.t", "create trigger g before insert on t for each row set a=1": "t", "create event e on schedule every 1 day on completion preserve do delete from t": "", "create procedure p() select * from t": "t", "drop index i on t": "t", "create fulltext index `on` on t (a)": "t", "create database d": "", "create table t (a int comment 'like u')": "t",
		"alter table t add a int, drop b": "t", "alter online ignore table if exists t force": "t", "alter table t rename to u": "t", "alter view v as select * from t": "v t", "alter table t add index (a), add foreign key (b) references c (d)": "t", "drop tables a, b restrict": "a b", "drop view if exists a, s.b": "a s.b", "drop temporary table t": "t", "rename table a to b, s.c to d": "a b s.c d", "rename user a to b": "b", "truncate s.t": "s.t", "truncate table t": "t", "handler t open": "t", "handler s.t read a first": "s.t",
		"lock tables a read, b as c write, s.d low_priority write": "a b s.d", "lock table t read local": "t", "unlock tables": "", "optimize table a, b": "a b", "optimize no_write_to_binlog table t": "t", "check table a, b quick": "a b", "checksum table a, b extended": "a b", "repair local table a": "a", "analyze table t persistent for all": "t", "analyze local table a, b": "a b", "analyze no_write_to_binlog table a, b": "a b", "analyze select * from t": "t", "analyze format=json update t set a=1": "t", "analyze t": "t", "flush tables": "", "flush tables a, b with read lock": "a b", "flush tables with read lock": "", "flush table t for export": "t", "flush status": "",
		"load data infile 'x' into table t character set utf8": "t", "load data low_priority local infile 'x' ignore into table s.t (a, b) set c=d": "s.t", "load xml infile 'x' into table t rows identified by 'y'": "t", "call p(a, b)": "", "call p((select a from t))": "t", "grant select on t to u": "", "revoke all on s.t from u": "", "show tables": "", "show create view v": "v", "show index from t from s": "t s", "show full columns from s.t like 'x'": "s.t", "show keys in t": "", "show fields from t": "t", "show table status": "", "show open tables from s": "", "show status like 'x'": "", "show create procedure p": "", "show indexes from t": "t", "show warnings limit 1, 2": "",
		"explain t": "t", "explain t a": "t", "describe s.t": "s.t", "desc `t` 'x%'": "t", "explain extended select * from t": "t", "explain partitions select * from t": "t", "explain format=tree select * from t": "t", "explain for connection 5": "", "explain analyze select * from t": "t", "explain insert into t select * from u": "t u", "explain replace t values (1)": "t", "explain table t": "t", "explain values row(1)": "", "explain into @x select * from t": "t", "explain": "", "table t order by a, b limit 1": "t", "table s.t union table u": "s.t u", "table t except all (table u) intersect distinct table v": "t u v", "select * from (table t) a, u where b in (table v)": "t u v", "insert into t (table u)": "t u", "values row(1), row(2)": "", "begin": "", "view": "", "tables": "",
	} {
		var got []string
		for _, x := range Tables([]byte(in)) {
			if x.Schema != "" {
				x.Name = x.Schema + "." + x.Name
			}
			got = append(got, x.Name)
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("%.200s\n got %s\nwant %s", in, g, want)
		}
	}
	for in, want := range map[string]string{"`a`": "a", "`a``b`": "a`b", `"a""b"`: `a"b`, `"a`: `"a`, "`a": "a", "`": "", "``": "", "a": "a", "": "", "'a'": "'a'", `"`: `"`, "`a\"": `a"`, `""`: ""} {
		if got := string(unquote([]byte(in))); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
	for stmt, want := range map[string]string{"select 1": "SELECT", "; ;select 1": "SELECT", "((select 1))": "SELECT", "with a as (select 1) insert into t select 2": "INSERT", "with a as (delete), b as (x) update t": "UPDATE", "WITH a AS (select 1) REPLACE t": "REPLACE", "with a as (select 1) table a": "TABLE", "with a as (select 1) values row(1)": "VALUES", "with `select` as (x) delete from t": "DELETE", "with a as (select 1)": "", "with": "", "'a' select": "", "administrator command: Quit": "ADMIN", "administrator command:": "ADMINISTRATOR", "# x\n-- y\n/* z */ Drop table t": "DROP", ")": "", "with a as (select 1) (select 2)": ""} {
		if got := Verb([]byte(stmt)); got != want {
			t.Errorf("%s: got %s, want %s", stmt, got, want)
		}
	}
}
