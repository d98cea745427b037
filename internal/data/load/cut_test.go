package load_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// telling is a schema of MariaDB about which there is much to report: keys that wait and keys that are refused, a check that rows break,
// what is computed, broken, over; and a routine that was made when its schema had another collation.
var telling = []string{
	"CREATE DATABASE w CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", "USE w", "SET foreign_key_checks = 0, check_constraint_checks = 0",
	"CREATE TABLE `a ``child` (id INT PRIMARY KEY, p BIGINT, c INT, CONSTRAINT wide FOREIGN KEY (p) REFERENCES parent (id), CONSTRAINT good FOREIGN KEY (c) REFERENCES parent (id))", "INSERT INTO `a ``child` VALUES (1, 1, 1)",
	"CREATE TABLE parent (id INT PRIMARY KEY, a VARCHAR(20), b INT)", "INSERT INTO parent VALUES (1, 'one', 1), (2, 'two', 2)",
	"CREATE TABLE refers (id INT PRIMARY KEY, o INT, CONSTRAINT out_of FOREIGN KEY (o) REFERENCES o.outside (id))", "INSERT INTO refers VALUES (1, 1)",
	"CREATE TABLE checked (id INT PRIMARY KEY, a INT, CONSTRAINT above CHECK (a > 0))", "INSERT INTO checked VALUES (1, -1)",
	"CREATE TABLE computed (a INT AS (1) VIRTUAL, b INT AS (a + 1) VIRTUAL)", "INSERT INTO computed VALUES ()", "CREATE TABLE old (id INT PRIMARY KEY) ENGINE=MyISAM", "INSERT INTO old VALUES (1)",
	"CREATE VIEW whole AS SELECT id, a FROM parent", "CREATE VIEW broken AS SELECT b FROM parent", "CREATE TRIGGER of_b BEFORE INSERT ON parent FOR EACH ROW SET NEW.b = 1", "ALTER TABLE parent DROP COLUMN b",
	"CREATE TRIGGER of_a BEFORE INSERT ON parent FOR EACH ROW SET NEW.a = 'fired'", "CREATE PROCEDURE pr (x VARCHAR(9)) SELECT x", "CREATE FUNCTION f () RETURNS INT NO SQL RETURN 1",
	"SET timestamp = UNIX_TIMESTAMP('2001-01-01')", "CREATE EVENT past ON SCHEDULE AT '2001-01-02' DO SELECT 1", "CREATE EVENT daily ON SCHEDULE EVERY 1 DAY STARTS '2001-01-02' DO SELECT 1", "SET timestamp = DEFAULT",
	"ALTER DATABASE w COLLATE utf8mb4_unicode_ci",
}

// around are other tables of the target: reports depend on them, too.
var around = []string{"CREATE DATABASE o", "CREATE TABLE o.outside (id BIGINT PRIMARY KEY)", "CREATE DATABASE crm", "SET foreign_key_checks = 0",
	"CREATE TABLE crm.visits (id INT PRIMARY KEY, who INT, CONSTRAINT of_whom FOREIGN KEY (who) REFERENCES w.parent (id))", "INSERT INTO crm.visits VALUES (1, 1), (2, 99)"}

// tellingBackup takes a backup of that schema, and removes the schema.
func tellingBackup(t *testing.T) load.Options {
	t.Helper()
	node := lend(t, "mariadb")
	s := stream(t, node)
	exec(t, s, "CREATE DATABASE o", "CREATE TABLE o.outside (id INT PRIMARY KEY)")
	exec(t, s, telling...)
	r := takeBackup(t, node, "w")
	exec(t, s, "DROP DATABASE w", "DROP DATABASE o")
	return load.Options{Repo: r, Threads: 1}
}

// outcome is all that a restore says at its end, and all that is there then.
func outcome(t *testing.T, node *sandbox.Node, res load.Result, err error) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%v\n%d tables, %d rows, %d objects, %d left out\n", err, res.Tables, res.Rows, res.Objects, res.LeftOutAll)
	for kind, list := range map[string][]load.Finding{"left out": res.LeftOut, "otherwise": res.Otherwise, "broken": res.Broken} {
		for _, f := range list {
			fmt.Fprintf(&b, "%s: %+v\n", kind, f)
		}
	}
	for _, o := range res.Orphans {
		fmt.Fprintln(&b, "orphans:", o.Words())
	}
	for _, n := range slices.Concat(res.Notes, res.Kept) {
		fmt.Fprintln(&b, "note:", n)
	}
	s := stream(t, node)
	for name := range strings.Lines(ask(t, s, "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'w' AND TABLE_TYPE = 'BASE TABLE'")) {
		name = "w.`" + strings.ReplaceAll(strings.TrimSuffix(name, "|\n"), "`", "``") + "`"
		b.WriteString(ask(t, s, "SHOW CREATE TABLE "+name) + ask(t, s, "SELECT * FROM "+name))
	}
	for _, q := range []string{"SELECT TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_SCHEMA = 'w'", "SELECT TRIGGER_NAME, ACTION_STATEMENT FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'w'",
		"SELECT ROUTINE_NAME, ROUTINE_DEFINITION, DATABASE_COLLATION FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'w'", "SELECT COLLATION_NAME FROM information_schema.PARAMETERS WHERE SPECIFIC_SCHEMA = 'w'",
		"SELECT EVENT_NAME, STATUS FROM information_schema.EVENTS WHERE EVENT_SCHEMA = 'w'", "SELECT DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'w'", "SHOW DATABASES LIKE 'risso%'"} {
		b.WriteString(ask(t, s, q))
	}
	lines := strings.Split(b.String(), "\n")
	slices.Sort(lines) // what several sessions find out has no order
	return strings.Join(lines, "\n")
}

// cutAt restores until the moment at which a stage begins, or a table was compared, when cut is called.
func cutAt(t *testing.T, o load.Options, at string, cut func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := false
	end := func(now bool) {
		if now && !done {
			done = true
			cut()
			cancel()
		}
	}
	o.Progress = func(p load.Progress) { end(p.Stage == at) }
	o.Table = func(r load.TableResult) { end(r.Table == at) }
	if res, err := load.Restore(ctx, o); err == nil || !done || !res.Changed {
		t.Fatalf("cut off at %s: %v, %v, %+v", at, done, err, res)
	}
}

// TestCutOff: a restore that is cut off again and again, at each of its stages, says and leaves at its end what one says and leaves that was not.
func TestCutOff(t *testing.T) {
	o := tellingBackup(t)
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			testCutOff(t, spec, lend(t, spec), o, func() {}, func() {}, "schemas", "rows", "a `child", "checked", "foreign keys", "routines", "views", "triggers", "events", "looking at views", "looking for orphans", "journal")
		})
	}
}

// TestStagesAsPlanned: a dry run changes nothing, and what it announces is what the restore then does, in the same words and order.
func TestStagesAsPlanned(t *testing.T) {
	o := tellingBackup(t)
	node := lend(t, "mysql-9.7")
	s := stream(t, node)
	exec(t, s, around...)
	const there = "SELECT GROUP_CONCAT(SCHEMA_NAME ORDER BY 1) FROM information_schema.SCHEMATA"
	before := ask(t, s, there)
	o.Into, o.DryRun = target(t, node), true
	var want, got []string
	o.Confirm = func(p load.Plan) error {
		for _, st := range p.Steps {
			want = append(want, st.What)
		}
		return nil
	}
	if _, err := restore(t, o); err != nil || len(want) < 10 {
		t.Fatalf("got the stages %q, %v; want at least 10", want, err)
	}
	if now := ask(t, s, there); now != before {
		t.Errorf("behind a dry run: got %s, want %s", now, before)
	}
	o.DryRun, o.Confirm = false, nil
	var mu sync.Mutex
	o.Progress = func(p load.Progress) {
		mu.Lock()
		defer mu.Unlock()
		if len(got) == 0 || got[len(got)-1] != p.Stage {
			got = append(got, p.Stage)
		}
	}
	if _, err := restore(t, o); !errors.Is(err, load.ErrLeftOut) {
		t.Fatalf("got %v, want load.ErrLeftOut", err)
	}
	if want = slices.Compact(want); !slices.Equal(got, want) { // events come twice, one after the other
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestServerCutOff: the same if the server is killed each time, and the restore gives up.
func TestServerCutOff(t *testing.T) {
	o := tellingBackup(t)
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			node := sandboxtest.Up(t, spec, load.LentSettings...)
			kill := func() {
				if err := node.Kill(syscall.SIGKILL); err != nil {
					t.Error(err)
				}
			}
			start := func() {
				if err := node.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			testCutOff(t, spec, node, o, kill, start, "foreign keys", "routines", "journal")
			// A restore that goes on: what the server forgot is reported.
			s := stream(t, node)
			exec(t, s, "CREATE DATABASE mem", "CREATE TABLE mem.m (id INT PRIMARY KEY) ENGINE=MEMORY", "INSERT INTO mem.m VALUES (1), (2)", "CREATE TABLE mem.t (id INT PRIMARY KEY)", "INSERT INTO mem.t VALUES (1)", "CREATE PROCEDURE mem.p () SELECT 1")
			r := takeBackup(t, node, "mem")
			exec(t, s, "DROP DATABASE mem")
			once := false
			res, err := restore(t, load.Options{Repo: r, Into: target(t, node), Progress: func(p load.Progress) {
				if p.Stage == "routines" && !once {
					once = true
					kill()
					start()
				}
			}})
			if !errors.Is(err, load.ErrDifferent) || len(res.Different) != 1 || res.Different[0].Table != "m" || !strings.Contains(res.Different[0].Wants, "2 rows") || !strings.Contains(res.Different[0].Wants, "MEMORY tables") || res.Objects != 1 {
				t.Errorf("%v: got %+v; want load.ErrDifferent, len(Different) 1, Different[0].Table \"m\", \"2 rows\" in Different[0].Wants, \"MEMORY tables\" in Different[0].Wants, Objects 1",
					err, res)
			}
		})
	}
}

func testCutOff(t *testing.T, spec string, node *sandbox.Node, o load.Options, cut, mend func(), stages ...string) {
	t.Helper()
	exec(t, stream(t, node), around...)
	o.Into = target(t, node)
	res, err := restore(t, o)
	want := outcome(t, node, res, err)
	told := []string{"orphans: 1 row of `crm`.`visits`", "trigger `w`.`of_b`", "note: view `w`.`broken` is not created", "note: event `w`.`past` is not created", "note: table `w`.`computed`: all its columns are computed", "CONSTRAINT `good`", "utf8mb4_unicode_ci"}
	if spec != "mariadb" {
		told = append(told, "otherwise: {Trouble:{What:table `w`.`checked`", "otherwise: {Trouble:{What:table `w`.`refers`")
	}
	for _, text := range told {
		if !strings.Contains(want, text) {
			t.Errorf("nothing of %q where nothing was cut off: %s", text, want)
		}
	}
	if !errors.Is(err, load.ErrLeftOut) || res.Resumed {
		t.Fatalf("%v: got %+v; want load.ErrLeftOut, Resumed false", err, res)
	}
	exec(t, stream(t, node), "SET foreign_key_checks = 0", "DROP DATABASE w")
	for _, stage := range stages {
		cutAt(t, o, stage, cut)
		mend()
	}
	res, err = restore(t, o)
	if got := outcome(t, node, res, err); got != want || !res.Resumed {
		t.Errorf("resumed: %v: %s", res.Resumed, differ(want, got))
	}
}

// TestSince: what somebody else did to the target since a restore was cut off is neither lost nor taken for done.
func TestSince(t *testing.T) {
	o := tellingBackup(t)
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			node := lend(t, spec)
			s := stream(t, node)
			exec(t, s, around...)
			o := o
			o.Into = target(t, node)
			res, err := restore(t, o)
			want := outcome(t, node, res, err)
			again := func(what string) {
				t.Helper()
				res, err := restore(t, o)
				if got := outcome(t, node, res, err); got != want || !res.Resumed {
					t.Errorf("%s: resumed %v: %s", what, res.Resumed, differ(want, got))
				}
			}
			exec(t, s, "DROP DATABASE w")
			cutAt(t, o, "foreign keys", func() {})
			exec(t, s, "DROP DATABASE w")
			again("the schema was dropped")
			exec(t, s, "DROP DATABASE w")
			cutAt(t, o, "views", func() {})
			exec(t, s, "SET foreign_key_checks = 0", "DELETE FROM w.parent", "DROP TABLE w.old")
			again("a table was emptied, another one dropped")
			exec(t, s, "DROP DATABASE w")
			cutAt(t, o, "schemas", func() {})
			exec(t, s, "CREATE DATABASE IF NOT EXISTS w", "CREATE TABLE w.old (theirs INT)", "INSERT INTO w.old VALUES (7)", "CREATE VIEW w.whole AS SELECT theirs FROM w.old", "CREATE PROCEDURE w.pr () SELECT 'theirs'")
			for _, dry := range []bool{true, false} {
				o := o
				o.DryRun = dry
				_, err := restore(t, o)
				for _, what := range []string{"table `w`.`old`", "view `w`.`whole`", "procedure `w`.`pr`"} {
					if !errors.Is(err, load.ErrExists) || !strings.Contains(err.Error(), what) {
						t.Errorf("nothing of %s: got %v; want load.ErrExists, %q in the error", what, err, what)
					}
				}
			}
			if got := ask(t, s, "SELECT theirs FROM w.whole"); got != "7|\n" {
				t.Errorf("what somebody made since is %q, want \"7|\\n\"", got)
			}
			var plan load.Plan
			o.Overwrite, o.Confirm = true, func(p load.Plan) error { plan = p; return nil }
			exec(t, s, "ALTER DATABASE w CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci")
			again("with --overwrite")
			if drops := strings.Join(plan.Drops, ", "); plan.DropsAll != 3 || !strings.Contains(drops, "table `w`.`old`") {
				t.Errorf("it drops %q; want plan.DropsAll 3, \"table `w`.`old`\" in drops", plan.Drops)
			}
		})
	}
}
