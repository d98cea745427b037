package load_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/mysql"
)

// renamedPrograms name their schema, shop, in each way that the language has; none may do so after a restore as shop2. Each writes into t
// or u when it is called, so that a name that stayed is seen by the rows of shop.
var renamedPrograms = []string{
	"CREATE DATABASE shop", "CREATE DATABASE other", "USE shop", "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(60), shop INT DEFAULT 7)", "INSERT INTO t (a, b) VALUES (1, 'x')",
	"CREATE TABLE u (a INT PRIMARY KEY, b INT, g INT GENERATED ALWAYS AS (b + 1), CONSTRAINT f FOREIGN KEY (b) REFERENCES shop.t (a))",
	"CREATE TABLE other.shop (a INT)", "INSERT INTO other.shop VALUES (5)", "CREATE TABLE shop (a INT, x INT)", "INSERT INTO shop VALUES (1, 1)",
	"CREATE TABLE m1 (a INT) ENGINE=MyISAM", "CREATE TABLE m2 (a INT) ENGINE=MyISAM", "CREATE TABLE m (a INT) ENGINE=MERGE UNION=(shop.m1, m2) INSERT_METHOD=LAST",
	"CREATE TABLE p (a INT) PARTITION BY RANGE (a) (PARTITION shop VALUES LESS THAN (10), PARTITION q VALUES LESS THAN MAXVALUE)",
	"CREATE FUNCTION twice (n INT) RETURNS INT DETERMINISTIC RETURN 2 * n",
	"CREATE FUNCTION rows_of (n INT) RETURNS INT READS SQL DATA RETURN (SELECT COUNT(*) FROM shop.t WHERE shop.t.a < shop.twice(n))",
	"CREATE PROCEDURE p1 () BEGIN\n  -- don't forget\n  UPDATE `shop`.`t` SET b = 'p1'; END",
	"CREATE PROCEDURE p2 () BEGIN /* it's `quoted */ UPDATE shop . /* ' */ t SET b = \"sh'op\"; # isn't it\n INSERT INTO `shop`.t (a, b) VALUES (2, 'say \\'shop.t\\''); END",
	"CREATE PROCEDURE p3 () shop: BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN UPDATE shop.t SET b = 'failed'; END; IF shop.twice(1) = 2 THEN INSERT INTO shop.u (a, b) SELECT shop.a + 10, 1 FROM other.shop; " +
		"ELSE CASE 1 WHEN 1 THEN DELETE FROM shop.t; END CASE; END IF; WHILE (SELECT COUNT(*) FROM shop.u) < 3 DO INSERT INTO shop.u (a, b) SELECT MAX(shop.u.a) + 1, 1 FROM shop.u; END WHILE; LEAVE shop; END",
	"CREATE PROCEDURE p4 () BEGIN /*!50003 UPDATE shop.t SET b = 'p4' */; DELETE shop.t FROM shop.t JOIN other.shop ON shop.t.a = shop.a - 3; UPDATE shop SET shop.x = 2; END",
	"CREATE PROCEDURE p5 () BEGIN UPDATE shop.t AS shop, shop.u SET shop.b = 'p5', shop.shop = 8 WHERE shop.a = u.b; INSERT INTO t (a, b) VALUES (3, 'q') ON DUPLICATE KEY UPDATE shop.t.b = VALUES(b); CALL shop.p1(); END",
	"CREATE PROCEDURE p6 () BEGIN SET @s = CONCAT('SELECT COUNT(*) FROM ', 'shop.t INTO @n'); PREPARE x FROM @s; EXECUTE x; END",
	"CREATE PROCEDURE p7 () BEGIN DECLARE n INT; DECLARE c CURSOR FOR SELECT shop.t.a FROM shop.t; OPEN c; FETCH c INTO n; CLOSE c; UPDATE shop.t SET shop = -n WHERE a = n; TRUNCATE TABLE shop.m1; END",
	"CREATE TRIGGER shop.g BEFORE INSERT ON shop.u FOR EACH ROW BEGIN SET @n = (SELECT COUNT(*) FROM shop.t); INSERT INTO shop.p VALUES (NEW.a); END",
	"CREATE VIEW v1 AS SELECT shop.t.a, shop.twice(shop.t.a) AS d, shop.t.shop FROM shop.t JOIN shop.u ON u.b = shop.t.a", "CREATE VIEW v2 AS SELECT shop.a FROM other.shop AS shop",
	"CREATE VIEW shop.v3 AS SELECT 'shop.t' AS name, a FROM v1 WHERE EXISTS (SELECT 1 FROM shop.shop WHERE shop.shop.a = v1.a)",
	"CREATE EVENT e ON SCHEDULE EVERY 1 YEAR STARTS '2037-01-01 00:00:00' DO UPDATE shop.t SET b = 'event'",
	"SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",
	`CREATE PROCEDURE p8 () BEGIN UPDATE "shop"."t" SET b = 'p8\' WHERE b <> '"shop"."t"'; UPDATE "shop".t SET b = 'p8' ; END`, "SET sql_mode = DEFAULT",
}

// TestRenamePrograms: what is restored under another schema's name neither writes to the old one nor reads it, whatever is in comments,
// strings, aliases and labels; what cannot be renamed is reported before the first change and afterwards.
func TestRenamePrograms(t *testing.T) {
	for _, spec := range []string{"mariadb", "mariadb-11.8", "mysql-9.7", "mysql-8.0", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			node := lend(t, spec)
			s := stream(t, node)
			exec(t, s, renamedPrograms...)
			if strings.HasPrefix(spec, "mariadb") {
				exec(t, s, "CREATE SEQUENCE q", "CREATE TABLE d (a INT DEFAULT NEXTVAL(shop.q))", "CREATE PROCEDURE p9 () BEGIN DECLARE r ROW TYPE OF shop.t; DECLARE b TYPE OF shop.t.b; SET b = 'p9', r.a = NEXT VALUE FOR shop.q; UPDATE shop.t SET shop.t.b = b; END",
					"CREATE PROCEDURE p10 () EXECUTE IMMEDIATE CONCAT('DO ', 1)", "SET sql_mode = ORACLE", `CREATE PACKAGE "shop" AS PROCEDURE p; END`,
					`CREATE PACKAGE BODY "shop" AS PROCEDURE p AS x INT; BEGIN UPDATE shop.t SET b = 'pack'; END; BEGIN NULL; END`, "SET sql_mode = DEFAULT")
			}
			r, _ := emptyRepo(t)
			if _, err := dump.Run(t.Context(), r, dump.Options{Target: target(t, node), Threads: 2}); err != nil {
				t.Fatal(err)
			}
			exec(t, s, "SET GLOBAL /* nothing may be read there */ event_scheduler = OFF")
			before := rowsOfShop(t, s, "shop")
			var plan load.Plan
			res, err := restore(t, load.Options{Repo: r, Into: target(t, node), Schemas: []string{"shop"}, Rename: []string{"shop=shop2"}, Confirm: func(p load.Plan) error { plan = p; return nil }})
			if err != nil || len(res.Different) > 0 {
				t.Fatalf("%v: got %+v; want none", err, res)
			}
			if got := rowsOfShop(t, s, "shop2"); got != before {
				t.Errorf("shop2 is not as shop was: %s", differ(before, got))
			}
			exec(t, s, "RENAME TABLE shop.t TO other.hidden") // anything that still reads shop.t fails
			exec(t, s, "USE other")
			for _, p := range []string{"p1", "p2", "p3", "p4", "p5", "p7", "p8"} {
				exec(t, s, "CALL shop2."+p+"()")
			}
			if strings.HasPrefix(spec, "mariadb") {
				exec(t, s, "CALL shop2.p9()", "INSERT INTO shop2.d VALUES (DEFAULT)", "CALL shop2.shop.p()")
			}
			ask(t, s, "SELECT * FROM shop2.v1")
			ask(t, s, "SELECT * FROM shop2.v2")
			ask(t, s, "SELECT * FROM shop2.v3")
			ask(t, s, "SELECT shop2.rows_of(1), COUNT(*) FROM shop2.m")
			exec(t, s, "INSERT INTO shop2.u (a, b) VALUES (99, 1)", "RENAME TABLE other.hidden TO shop.t")
			if got := rowsOfShop(t, s, "shop"); got != before {
				t.Errorf("shop was changed: %s", differ(before, got))
			}
			if got := ask(t, s, "SELECT EVENT_DEFINITION FROM information_schema.EVENTS WHERE EVENT_SCHEMA = 'shop2'"); !strings.Contains(got, "`shop2`.t") {
				t.Errorf("the event: got %s, want \"`shop2`.t\" in it", got)
			}
			for _, notes := range [][]string{plan.Notes, res.Notes} {
				for _, want := range []string{"`p6`: a text may name the old schema and stays as it is: 'shop.t INTO @n'", "`p6`: it runs dynamic SQL", "`v3`: a text", "`p2`: a text", "`p8`: a text"} {
					if !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, want) }) {
						t.Errorf("not told: %s\nin %q", want, notes)
					}
				}
				if slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "`p1`") || strings.Contains(n, "`v1`") }) {
					t.Errorf("told without need: %q", notes)
				}
			}
		})
	}
}

// rowsOfShop are the rows of a schema's tables.
func rowsOfShop(t *testing.T, s *mysql.Stream, schema string) string {
	t.Helper()
	out := ""
	for _, table := range []string{"t", "u", "m1", "m2", "p", "shop"} {
		out += table + ":\n" + ask(t, s, "SELECT * FROM "+schema+"."+table+" ORDER BY 1")
	}
	return out
}
