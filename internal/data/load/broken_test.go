package load_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/load"
)

// TestBrokenViews: what was broken when the backup was taken is reported by backup, plan and result, is no failure, and loses nothing else; what
// was not broken then but is here is a failure. If the server can, it speaks German, for no test depends on message texts.
func TestBrokenViews(t *testing.T) {
	for _, spec := range servers {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			node := lend(t, spec)
			s := stream(t, node)
			if err := s.Exec(t.Context(), "SET GLOBAL lc_messages = 'de_DE'"); err != nil && strings.HasPrefix(spec, "mariadb") {
				t.Fatal(err)
			}
			exec(t, s, "CREATE DATABASE b", "USE b", "CREATE TABLE t (a INT PRIMARY KEY, c INT, p INT)", "INSERT INTO t VALUES (1, 2, 3)", "CREATE TABLE away (a INT)",
				"CREATE USER app@localhost", "CREATE USER few@localhost", "GRANT SELECT ON b.* TO app@localhost",
				"CREATE VIEW ok AS SELECT a FROM t", "CREATE DEFINER = app@localhost VIEW of_app AS SELECT a FROM t", "CREATE VIEW over_app AS SELECT a FROM of_app", "CREATE DEFINER = few@localhost VIEW of_few AS SELECT a FROM t",
				"CREATE VIEW column_gone AS SELECT c FROM t", "CREATE VIEW table_gone AS SELECT a FROM away", "CREATE VIEW over_gone AS SELECT a FROM table_gone", "CREATE SQL SECURITY INVOKER VIEW asks AS SELECT p FROM t",
				"ALTER TABLE t DROP COLUMN c", "DROP TABLE away")
			r := takeBackup(t, node, "b")
			m, err := r.Manifest(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			said := strings.Join(m.Header.Notes, "\n")
			m.Close()
			broken := []string{"column_gone", "table_gone", "over_gone", "of_few"}
			tells := func(who, text string) {
				t.Helper()
				for _, name := range broken {
					if !strings.Contains(text, "`b`.`"+name+"`") {
						t.Errorf("the %s says nothing of %s: %s, want %q in it", who, name, text, "`b`.`"+name+"`")
					}
				}
				for _, name := range []string{"ok", "of_app", "over_app", "asks"} {
					if strings.Contains(text, "`b`.`"+name+"`") {
						t.Errorf("the %s says that %s is broken: %s, want no %q in it", who, name, text, "`b`.`"+name+"`")
					}
				}
			}
			tells("backup", said)
			var plan load.Plan
			o := load.Options{Repo: r, Into: target(t, node), Schemas: []string{"b"}, Overwrite: true, Confirm: func(p load.Plan) error { plan = p; return nil }}
			exec(t, s, "DROP VIEW table_gone", "CREATE TABLE table_gone (kept INT)", "INSERT INTO table_gone VALUES (7)", "DROP VIEW over_gone", "CREATE VIEW over_gone AS SELECT kept FROM table_gone")
			res, err := restore(t, o)
			if err != nil {
				t.Fatalf("%v: %+v", err, res)
			}
			tells("plan", strings.Join(plan.Notes, "\n"))
			tells("result", strings.Join(res.Notes, "\n"))
			if got := ask(t, s, "SELECT kept FROM over_gone"); got != "7|\n" {
				t.Errorf("what has the name of a view that cannot be made: %q, want \"7|\\n\"", got)
			}
			// On a server without the definer that was there.
			exec(t, s, "DROP USER app@localhost")
			if res, err = restore(t, o); !errors.Is(err, load.ErrBroken) || len(res.Broken) != 2 || res.Broken[0].What != "view `b`.`of_app`" || res.Broken[1].What != "view `b`.`over_app`" || !strings.Contains(res.Broken[0].Create, "`app`@`localhost`") {
				t.Errorf("without a definer: got %v: %+v; want load.ErrBroken, len(res.Broken) 2, res.Broken[0].What \"view `b`.`of_app`\", res.Broken[1].What \"view `b`.`over_app`\", \"`app`@`localhost`\" in res.Broken[0].Create",
					err, res.Broken)
			}
			exec(t, s, "CREATE USER app@localhost")
			if res, err = restore(t, o); !errors.Is(err, load.ErrBroken) && !errors.Is(err, load.ErrLeftOut) || len(res.Broken)+len(res.LeftOut) != 2 {
				t.Errorf("with a definer who may do nothing: %v: %+v", err, res)
			}
			o.Definer = load.CurrentUser
			if res, err = restore(t, o); err != nil || strings.Contains(strings.Join(res.Notes, "\n"), "of_few") {
				t.Errorf("with another definer: got %v: %+v; want no \"of_few\" in it", err, res)
			}
			// Without the tables.
			exec(t, s, "DROP DATABASE b")
			o = load.Options{Repo: r, Into: target(t, node), Tables: []string{"b.ok", "b.table_gone"}}
			if res, err = restore(t, o); !errors.Is(err, load.ErrLeftOut) || len(res.LeftOut) != 1 || res.LeftOut[0].What != "view `b`.`ok`" {
				t.Errorf("without its table: got %v: %+v; want load.ErrLeftOut, len(LeftOut) 1, LeftOut[0].What \"view `b`.`ok`\"", err, res)
			}
		})
	}
}

// TestGrantedViews: views over views whose definers get their grants at the end come back whole.
func TestGrantedViews(t *testing.T) {
	for _, spec := range servers {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			node := lend(t, spec)
			s := stream(t, node)
			exec(t, s, "CREATE DATABASE b", "USE b", "CREATE TABLE t (a INT PRIMARY KEY)", "INSERT INTO t VALUES (1)", "CREATE USER app@localhost", "GRANT SELECT, EXECUTE ON b.* TO app@localhost", "CREATE DEFINER = app@localhost FUNCTION f () RETURNS INT READS SQL DATA RETURN (SELECT MAX(a) FROM t)",
				"CREATE DEFINER = app@localhost VIEW m AS SELECT a FROM t", "CREATE VIEW a AS SELECT a FROM m", "CREATE DEFINER = app@localhost VIEW z AS SELECT a FROM a WHERE a = f()", "CREATE USER one@localhost", "GRANT SELECT ON b.z TO one@localhost", "CREATE DEFINER = one@localhost VIEW c AS SELECT a FROM z", "CREATE VIEW b AS SELECT a FROM c", "GRANT CREATE VIEW ON b.* TO app@localhost")
			r := takeBackup(t, node)
			was := ask(t, s, "SELECT TABLE_NAME, VIEW_DEFINITION, DEFINER, SECURITY_TYPE FROM information_schema.VIEWS WHERE TABLE_SCHEMA = 'b' ORDER BY 1")
			exec(t, s, "DROP DATABASE b", "DROP USER app@localhost, one@localhost")
			if res, err := restore(t, load.Options{Repo: r, Into: target(t, node)}); err != nil {
				t.Fatalf("%v: %+v", err, res)
			}
			if got := ask(t, s, "SELECT TABLE_NAME, VIEW_DEFINITION, DEFINER, SECURITY_TYPE FROM information_schema.VIEWS WHERE TABLE_SCHEMA = 'b' ORDER BY 1"); got != was {
				t.Error(differ(was, got))
			}
			if got := ask(t, s, "SELECT * FROM b.a") + ask(t, s, "SELECT * FROM b.z"); got != "1|\n1|\n" || ask(t, s, "SELECT * FROM b.b") != "1|\n" {
				t.Errorf("%q", got)
			}
		})
	}
}
