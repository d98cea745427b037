package scenario_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/sqltext"
)

// digestStatements are run on real servers; what the server's DIGEST_TEXT says of each must have the plain form of
// the statement itself.
var digestStatements = []string{
	`SELECT a,b FROM t WHERE id=5`,
	"select * from `t` where a in (1,2,3) and b='x'",
	`select * from t where a in (1)`,
	`select * from t where (a,id) in ((1,2),(3,4))`,
	`insert into t (id,a) values (1001,1),(1002,2) on duplicate key update a=values(a)`,
	`insert into t (id,a) values (1003,1)`,
	`insert into t (id,b) values (1004,now()),(1005,now())`,
	`insert into t (id,b) values (1006,now())`,
	`select a from t limit 5, 10`,
	`select a from t limit 5 offset 10`,
	`select a from t limit 5`,
	`select 1`,
	`select 1, 2, 3`,
	`select 'a' 'b'`,
	`select a from t where b is null and c is not null and a = null`,
	`select true, false, null, a from t`,
	`select a from t where a = -1 and b = - 5 and c = +3`,
	`select a-1, a+b, a - -1 from t`,
	`select a from t union all select a from t union all select a from t`,
	`(select a from t) union (select b from t)`,
	`select /*!40001 SQL_NO_CACHE */ a from t`,
	`select /* c */ a from t -- x`,
	"select @a := 5, @@session.sql_mode, @`x y`",
	`select _utf8mb4'x', N'y', x'0F', 0x0F, b'01', 0b01, 1e5, .5, 1.`,
	`select a from t order by a asc, b desc`,
	`select a from t where a <> 1 and b != 2 or not a = 3`,
	`select a from t where a = 1 && b = 2`,
	`select a from t where not (a = 1) and !a`,
	`select count(*), count(distinct a), max(substring(c, 1, 2)), max(substr(c, 1)), max(mid(c,1,2)) from t`,
	`select now(), current_timestamp, curdate(), current_date, localtime, sysdate() from t`,
	`select database(), schema(), user(), session_user(), std(a), stddev(a), variance(a), stddev_samp(a) from t`,
	`select coalesce(a,1), ifnull(a, 2), if(a,1,2), concat('a','b'), least(1,2,3) from t`,
	"select a as x, b `y z` from t as q where q.a like '%x%' escape '|' and b rlike 'y' and b regexp 'z'",
	`select a from t where a between 1 and 2`,
	`select case when a=1 then 'x' else 'y' end from t`,
	`select a from t where b > date '2020-01-01' and c < now() - interval 1 day`,
	`select a from t where a = any (select b from t) or a = some (select b from t)`,
	`update t set a=a+1, b = b - 1 where id=5`,
	`delete from t where id=5000 limit 1`,
	`replace into t values (1007,1,'x','y')`,
	`select a from t group by a having count(*) > 5`,
	`select distinct a from t`,
	`select distinctrow a from t`,
	`select t.a, q.* from shop.t join shop.t q on t.id=q.id left outer join t r on t.id=r.id`,
	`select cast(a as char), cast(a as signed integer), convert(c using utf8mb4) from t`,
	`select a from t force index (primary) where id=5`,
	`select a from t where id=5 for update`,
	`select a from t where id=5 lock in share mode`,
	`set @x = 5`,
	`set names utf8mb4`,
	`set session sort_buffer_size=262144`,
	`call p(1, 'x')`,
	`show tables like 'x%'`,
	`show variables like 'x%'`,
	`begin`,
	`commit`,
	`create table if not exists u (a int not null default 1, b varchar(10) default null, key (a))`,
	`alter table u add column d dec(10,2), add index (d)`,
	`drop table if exists u`,
	`truncate table t2`,
	`select sleep(0)`,
	`select char(65), left('abc',2), position('a' in 'abc'), trim(leading 'x' from 'xxa'), extract(year from now())`,
	`select group_concat(a order by a separator ',') from t`,
	`select json_extract('{}', '$.a'), json_object('a', 1)`,
	`explain select a from t where id=5`,
	`with q as (select a from t where id=5) select * from q`,
	`select row_number() over (partition by a order by b) from t`,
	`select a from t where c in (select c from t where a in (1,2))`,
	`select a from t where a in (1, b)`,
	`select a from t where a in (1, 2, b)`,
	`select a from t where a in ('x', now())`,
	`select * from t where c = "dq"`,
	"select `select`, `a b`, `caMel` from t3",
	`select A, B from t where ID = 5`,
	"select a\tfrom  t",
	`select 5 as x`,
	`select a from t where a << 2 > 1 or a & 1 = 0 or a | 2 or a ^ 3 or ~a or a % 2 = 0 or a div 2 or a mod 3`,
	`select a from t where a <=> null and c collate utf8mb4_bin = 'x' and binary c = 'y'`,
	`insert into t set id=1008, a=5`,
	`insert ignore into t (id) select id+2000 from t where id=5`,
	`select max(a), min(a), sum(a), avg(a) from t`,
	`select 2fa.a from t 2fa where 2fa.a=5`,
	`select exists(select 1 from t), interval(5,1,2)`,
	`select utc_timestamp(), utc_date, dayofmonth(now()), adddate(now(), 5), date_add(now(), interval 5 hour), get_format(date,'ISO')`,
	`prepare s from 'select a from t where id = ?'`,
	`set transaction isolation level read committed`,
	`show index from t`,
	`show keys from t`,
	`show fields from t`,
	`show full columns from t`,
	`flush tables`,
	`analyze table t`,
	`optimize table t2`,
	`select a from t where a = 1 or a = 2 or a = 3`,
	`select 1 = 1, 2`,
	`select a, 5, 6, b from t`,
	`select f(1), f(-1), abs(-1), round(1.5, 2)`,
	`select /* c */ a from t -- x`,
	"select\n\ta\nfrom t # x\nwhere a = 5 or a is true",
	`insert into t (a) values (-1), (null), (default)`,
	`update t join t2 q on q.id = t.id set t.a = 5, t.b = 'x' where q.id between -5 and 5`,
	`select a from t where a = 5 or (a = 6 and (b = 'x' or b = 'y'))`,
	`select j.x from (select a as x from t where a = 5) j where j.x > 5 order by j.x asc limit 1, 2`,
	`delete from t using t join t2 q on q.id = t.id where t.a = 5`,
	"select `user`, `day` from (select 1 as `user`, 2 as `day`) x",
	`select 1 union select 2 union select 3`,
	`select @a, @@version`,
}

// digestLoses are the statements of which a server's digest is of something else: MySQL 8.0 digests the query on its
// data dictionary that is behind a SHOW, MySQL 9.7 the statement inside of PREPARE; MariaDB 11.8 writes LOCALTIME as CURTIME.
var digestLoses = map[string][]string{
	"mysql-8.0": {"show tables", "show index", "show keys", "show fields", "show full columns", "show variables"},
	"mysql-9.7": {"prepare "},
	"mysql-5.7": {"with ", "select row_number"}, // unknown there

	"mariadb-11.8": {"select now(), current_timestamp, curdate(), current_date, localtime"},
}

// TestDigestText: one statement has one name in all tools, whatever its source.
func TestDigestText(t *testing.T) {
	t.Parallel()
	eachKind(t, kinds, func(t *testing.T, kind string) {
		n := single(t, kind, "performance_schema=ON")
		execSQL(t, n, `CREATE DATABASE shop; USE shop;
			CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b VARCHAR(50), c VARCHAR(20));
			CREATE TABLE t2 (id INT PRIMARY KEY);
			CREATE TABLE t3 (`+"`select` INT, `a b` INT, `caMel` INT"+`);
			CREATE PROCEDURE p(x INT, y VARCHAR(5)) SELECT 1;
			CREATE FUNCTION f(x INT) RETURNS INT DETERMINISTIC RETURN 1;
			UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' WHERE NAME IN ('global_instrumentation', 'thread_instrumentation', 'statements_digest');
			UPDATE performance_schema.setup_instruments SET ENABLED = 'YES', TIMED = 'YES' WHERE NAME LIKE 'statement/%'`)
		db, err := n.DB()
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		run := func(q string) error {
			_, err := conn.ExecContext(t.Context(), q)
			return err
		}
		if err := run("USE shop"); err != nil {
			t.Fatal(err)
		}
		same := 0
	next:
		for _, s := range digestStatements {
			for _, p := range digestLoses[kind] {
				if strings.HasPrefix(s, p) {
					continue next
				}
			}
			if err := run("TRUNCATE performance_schema.events_statements_summary_by_digest"); err != nil {
				t.Fatal(err)
			}
			if err := run(s); err != nil {
				t.Errorf("%s: %v", s, err)
				continue
			}
			var text sql.NullString
			if err := conn.QueryRowContext(t.Context(), `SELECT DIGEST_TEXT FROM performance_schema.events_statements_summary_by_digest
				WHERE DIGEST_TEXT NOT LIKE 'TRUNCATE%performance_schema%' AND SCHEMA_NAME = 'shop' LIMIT 1`).Scan(&text); err != nil {
				t.Errorf("%s: no digest: %v", s, err)
				continue
			}
			want := sqltext.AppendPlain(nil, []byte(sqltext.Fingerprint(s)))
			if got := sqltext.AppendDigestText(nil, []byte(text.String)); string(got) != string(want) {
				t.Errorf("got %s, want %v\n    digest %s\ngives the plain form %s\n     the statement's %s", s, string(want), text.String, got, want)
				continue
			}
			same++
		}
		t.Logf("%d of %d statements", same, len(digestStatements))
	})
}
