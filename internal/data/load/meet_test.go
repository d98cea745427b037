package load_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/sandbox"
)

// planOf is what a restore would do.
func planOf(t *testing.T, o load.Options) (plan load.Plan, err error) {
	t.Helper()
	o.DryRun, o.Confirm = true, func(p load.Plan) error { plan = p; return nil }
	_, err = restore(t, o)
	return plan, err
}

// TestMeet: where a collation becomes another one the plan names the unique keys over it; rows that are one to such a key end the restore with
// that key, the cause and how to fix it, and do; the rows of a language whose collation has another name here are restored.
func TestMeet(t *testing.T) {
	type journey struct{ from, into, schema, collation, to, values, mend string }
	pairs := map[[2]string][]journey{}
	for _, c := range []journey{
		{"mysql-9.7", "mysql-5.7", "p", "utf8mb4_0900_ai_ci", "utf8mb4_unicode_520_ci", "('a'), ('a ')", "UPDATE p.t SET v = 'b' WHERE v = 'a '"},
		{"mysql-9.7", "mysql-5.7", "s", "utf8mb4_sv_0900_ai_ci", "utf8mb4_swedish_ci", "('o'), ('ö'), ('a'), ('å'), ('ä')", ""},
		{"mysql-9.7", "mariadb", "s", "utf8mb4_sv_0900_ai_ci", "utf8mb4_uca1400_swedish_nopad_ai_ci", "('o'), ('ö'), ('a'), ('å'), ('ä'), ('a ')", ""},
		{"mysql-9.7", "mariadb", "r", "utf8mb4_ru_0900_ai_ci", "utf8mb4_uca1400_nopad_as_ci", "('и'), ('й'), ('a '), ('a')", ""},
		{"mysql-9.7", "mariadb", "j", "utf8mb4_ja_0900_as_cs_ks", "utf8mb4_uca1400_nopad_as_cs", "('は'), ('ハ'), ('ば'), ('a'), ('A'), ('á'), ('a ')", ""},
		{"mysql-9.7", "mysql-5.7", "j", "utf8mb4_ja_0900_as_cs", "utf8mb4_bin", "('は'), ('ば'), ('a'), ('A'), ('á')", ""},
		{"mariadb", "mysql-9.7", "h", "utf8mb4_croatian_mysql561_ci", "utf8mb4_croatian_ci", "('c'), ('č'), ('ć'), ('dž'), ('d')", ""},
		{"mariadb", "mysql-9.7", "d", "utf8mb4_uca1400_danish_nopad_ai_ci", "utf8mb4_da_0900_ai_ci", "('å'), ('a'), ('ø'), ('o'), ('æ'), ('a ')", ""},
		{"mariadb", "mysql-9.7", "m", "utf8mb4_myanmar_ci", "utf8mb4_0900_as_ci", "('က'), ('ခ'), ('a')", ""},
		{"mariadb", "mysql-9.7", "n", "utf8mb4_nopad_bin", "utf8mb4_0900_bin", "('a'), ('a '), ('A')", ""},
	} {
		pair := [2]string{c.from, c.into}
		pairs[pair] = append(pairs[pair], c)
	}
	for pair, list := range pairs {
		t.Run(pair[0]+" to "+pair[1], func(t *testing.T) {
			t.Parallel()
			from, into := lend(t, pair[0]), lend(t, pair[1])
			for _, c := range list {
				t.Run(c.collation, func(t *testing.T) { testMeet(t, from, into, c.schema, c.collation, c.to, c.values, c.mend) })
			}
		})
	}
}

func testMeet(t *testing.T, from, into *sandbox.Node, schema, collation, becomes, values, mend string) {
	s, to := stream(t, from), stream(t, into)
	exec(t, s, "SET NAMES utf8mb4", "CREATE DATABASE "+schema+" CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", "USE "+schema, "CREATE TABLE t (v VARCHAR(20) COLLATE "+collation+" NOT NULL, UNIQUE KEY `of ``v` (v))", "INSERT INTO t VALUES "+values)
	o := load.Options{Repo: takeBackup(t, from, schema), Into: target(t, into)}
	plan, err := planOf(t, o)
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(plan.Notes, "\n")
	told := "collation " + collation + " becomes " + becomes + ", in which more values are equal: such rows cannot be inserted into 1 unique key: `" + schema + "`.`t` (`of ``v`)"
	if strings.HasSuffix(becomes, "_bin") || strings.Contains(collation, "mysql561") {
		if notes != "" {
			t.Errorf("it is told that values may meet: %s, want \"\"", notes)
		}
	} else if !strings.Contains(notes, told) {
		t.Errorf("%q is not told: %q", told, plan.Notes)
	}
	if mend != "" {
		res, err := restore(t, o)
		if !errors.Is(err, load.ErrMeet) || errors.Is(err, load.ErrDifferent) || !strings.Contains(err.Error(), "`"+schema+"`.`t` (`of ``v` over `v`, whose collation "+collation+" became "+becomes+", in which more values are equal)") || !res.Changed {
			t.Fatalf("%v: got %+v; want load.ErrMeet, errors.Is(err, load.ErrDifferent) false, %q in the error, Changed true",
				err, res, "`"+schema+"`.`t` (`of ``v` over `v`, whose collation "+collation+" became "+becomes+", in which more values are equal)")
		}
		if _, err := load.Forget(t.Context(), target(t, into), false); err != nil {
			t.Fatal(err)
		}
		exec(t, s, mend)
		o.Repo, o.Overwrite = takeBackup(t, from, schema), true
	}
	want := ask(t, s, "SELECT HEX(v) FROM t ORDER BY 1")
	if res, err := restore(t, o); err != nil {
		t.Fatalf("%v: %+v", err, res)
	}
	if got := ask(t, to, "SELECT HEX(v) FROM "+schema+".t ORDER BY 1"); got != want {
		t.Error(differ(want, got))
	}
	if got := ask(t, to, "SELECT COLLATION_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '"+schema+"'"); got != becomes+"|\n" {
		t.Errorf("it is %q, want %q", got, becomes+"|\n")
	}
	exec(t, to, "DROP DATABASE "+schema)
	exec(t, s, "DROP DATABASE "+schema)
}

// TestPlannedMisfit: the plan names the foreign keys that do not fit the tables of the backup at which they point, and no others.
func TestPlannedMisfit(t *testing.T) {
	t.Parallel()
	node := lend(t, "mariadb")
	s := stream(t, node)
	exec(t, s, "CREATE DATABASE m CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", "USE m", "SET foreign_key_checks = 0",
		"CREATE TABLE child (id INT PRIMARY KEY, p BIGINT, c INT(3), u INT UNSIGNED, t VARCHAR(9) CHARACTER SET latin1, v VARCHAR(200), g INT, CONSTRAINT wide FOREIGN KEY (p) REFERENCES parent (id), CONSTRAINT gone FOREIGN KEY (c) REFERENCES parent (x), CONSTRAINT sign FOREIGN KEY (u) REFERENCES parent (id), "+
			"CONSTRAINT `te``xt` FOREIGN KEY (t) REFERENCES parent (t), CONSTRAINT keyless FOREIGN KEY (g) REFERENCES parent (g), CONSTRAINT good FOREIGN KEY (c) REFERENCES parent (id), CONSTRAINT longer FOREIGN KEY (v) REFERENCES parent (t))",
		"CREATE TABLE parent (id INT(11) PRIMARY KEY, t CHAR(9), g INT, KEY (t))")
	plan, err := planOf(t, load.Options{Repo: takeBackup(t, node, "m"), Into: target(t, node), Overwrite: true})
	if err != nil {
		t.Fatal(err)
	}
	for name, why := range map[string]string{"`wide`": "`p` is bigint(20), and `id` is int(11)", "`gone`": "there is no column `x`", "`sign`": "`u` is int(10) unsigned, and `id` is int(11)", "`te``xt`": "`t` is varchar(9) latin1", "`keyless`": "no key there begins with `g`"} {
		found := false
		for _, n := range plan.Notes {
			found = found || strings.HasPrefix(n, "table `m`.`child`: its foreign key "+name+" does not match `m`.`parent`, to which it refers: "+why)
		}
		if !found {
			t.Errorf("nothing of %s: got %q, want found true", name, plan.Notes)
		}
	}
	if len(plan.Notes) != 5 {
		t.Errorf("got %q, want length 5", plan.Notes)
	}
}

// TestPlannedDefiners: the plan and the result name the programs whose definers do not exist; they do not work until that is fixed as advised.
func TestPlannedDefiners(t *testing.T) {
	for _, spec := range servers {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			node := lend(t, spec)
			s := stream(t, node)
			exec(t, s, "CREATE DATABASE d", "USE d", "CREATE TABLE t (a INT)", "CREATE USER `o'n``e`@localhost", "CREATE USER two@localhost", "CREATE DEFINER = `o'n``e`@localhost TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1", "CREATE DEFINER = `o'n``e`@localhost PROCEDURE p () SELECT 'p'",
				"CREATE DEFINER = two@localhost FUNCTION f () RETURNS INT NO SQL RETURN 1", "CREATE DEFINER = two@localhost PROCEDURE q () SQL SECURITY INVOKER SELECT 'q'", "CREATE DEFINER = `o'n``e`@localhost EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1", "CREATE PROCEDURE own () SELECT 'own'")
			o := load.Options{Repo: takeBackup(t, node), Into: target(t, node), Overwrite: true}
			if plan, err := planOf(t, o); err != nil || strings.Contains(strings.Join(plan.Notes, "\n"), "definer") {
				t.Errorf("they are there: %v: %q; want no \"definer\" in it", err, plan.Notes)
			}
			exec(t, s, "DROP USER `o'n``e`@localhost, two@localhost")
			if plan, err := planOf(t, o); err != nil || strings.Contains(strings.Join(plan.Notes, "\n"), "definer") {
				t.Errorf("they come along: got %v: %q; want no \"definer\" in it", err, plan.Notes)
			}
			o.Schemas = []string{"d"}
			plan, err := planOf(t, o)
			if err != nil {
				t.Fatal(err)
			}
			res, err := restore(t, o)
			if err != nil {
				t.Fatalf("%v: %+v", err, res)
			}
			for who, notes := range map[string][]string{"plan": plan.Notes, "result": res.Notes} {
				text := strings.Join(notes, "\n")
				for _, want := range []string{"the definer o'n`e@localhost does not exist: until it is created", "procedure `d`.`p`, trigger `d`.`tr`, event `d`.`e`", "the definer two@localhost does not exist: until it is created", ": function `d`.`f`; --definer"} {
					if !strings.Contains(text, want) {
						t.Errorf("the %s says nothing of %q: %q", who, want, notes)
					}
				}
				if strings.Contains(text, "`q`") || strings.Contains(text, "`own`") {
					t.Errorf("the %s names what works: got %q; want no \"`q`\" in text, no \"`own`\" in text", who, notes)
				}
			}
			uses := []string{"CALL d.p()", "INSERT INTO d.t VALUES (0)", "SET @f = d.f()"}
			for _, st := range append(uses, "CALL d.q()") {
				err := stream(t, node).Exec(t.Context(), st)
				if works := st == "CALL d.q()"; works != (err == nil) || !works && !strings.Contains(err.Error(), "1449") {
					t.Errorf("%s: %v", st, err)
				}
			}
			exec(t, s, "CREATE USER `o'n``e`@localhost", "CREATE USER two@localhost", "GRANT ALL ON d.* TO `o'n``e`@localhost", "GRANT ALL ON d.* TO two@localhost")
			for _, st := range uses {
				exec(t, stream(t, node), st)
			}
			exec(t, s, "DROP USER `o'n``e`@localhost, two@localhost")
			o.Definer = load.CurrentUser
			if res, err := restore(t, o); err != nil || strings.Contains(strings.Join(res.Notes, "\n"), "definer") {
				t.Errorf("with another definer: got %v: %q; want no \"definer\" in it", err, res.Notes)
			}
			for _, st := range uses {
				exec(t, stream(t, node), st)
			}
			o.Definer = "nobody@localhost"
			if plan, err := planOf(t, o); err != nil || !strings.Contains(strings.Join(plan.Notes, "\n"), "the definer nobody@localhost does not exist") {
				t.Errorf("%v: got %q; want \"the definer nobody@localhost does not exist\" in it", err, plan.Notes)
			}
		})
	}
}

// TestOlderRelease: what an older release of the same series ignores is found and reported, as between series.
func TestOlderRelease(t *testing.T) {
	t.Parallel()
	from, into := lend(t, "mysql-9.7"), lend(t, "mysql-8.0")
	exec(t, stream(t, from), "CREATE DATABASE i CHARACTER SET utf8mb4", "CREATE TABLE i.t (id INT PRIMARY KEY, a INT INVISIBLE)", "INSERT INTO i.t (id, a) VALUES (1, 2)")
	r, _ := emptyRepo(t)
	dumpAs(t, from, r, 80045, "i")
	res, err := restore(t, load.Options{Repo: r, Into: target(t, into)})
	if err != nil || len(res.Otherwise) != 1 || !strings.HasPrefix(res.Otherwise[0].Why, "INVISIBLE is not known here") {
		t.Errorf("%v: got %+v; want len(Otherwise) 1, \"INVISIBLE is not known here\" at the beginning of Otherwise[0].Why", err, res)
	}
}
