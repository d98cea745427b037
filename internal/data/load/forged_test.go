package load_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
)

// forgeries are lines of a manifest that a backup never has, with what is said about them.
var forgeries = []struct {
	line repo.Line
	says []string
}{
	{object(repo.View, "v", "CREATE DATABASE pwned"), []string{"view `shop`.`v`", "pwned"}},
	{object(repo.View, "v", "CREATE DATABASE v"), []string{"view `shop`.`v`", "CREATE DATABASE"}},
	{object(repo.View, "v", "GRANT ALL ON *.* TO pwned"), []string{"GRANT"}},
	{object(repo.View, "v", "CREATE VIEW mysql.v AS SELECT 1"), []string{"`mysql`.`v`"}},
	{object(repo.View, "v", "CREATE VIEW v AS SELECT 1; CREATE DATABASE pwned"), []string{"another statement follows it, CREATE"}},
	{object(repo.View, "v", "/*!50003 CREATE DATABASE pwned */ -- \nCREATE VIEW v AS SELECT 1"), []string{"pwned"}},
	{object(repo.View, "v", "/*!99999 CREATE VIEW v AS SELECT 1 */ CREATE DATABASE pwned"), []string{"pwned"}},
	{repo.Line{Object: &repo.Object{Kind: repo.Procedure, Schema: "shop", Name: "p", SQLMode: "NO_BACKSLASH_ESCAPES", Create: "CREATE PROCEDURE p() SELECT '\\'; CREATE DATABASE pwned -- '"}}, []string{"another statement"}},
	{object(repo.Procedure, "p", "SET GLOBAL max_connections = 7"), []string{"procedure `shop`.`p`", "SET"}},
	{object(repo.Procedure, "p", "CREATE PROCEDURE p() BEGIN END; CREATE DATABASE pwned"), []string{"another statement"}},
	{object(repo.Procedure, "p", "CREATE PROCEDURE q() BEGIN END"), []string{"`q`"}},
	{object(repo.Procedure, "p", "CREATE USER p IDENTIFIED BY 'x'"), []string{"CREATE USER"}},
	{object(repo.Function, "f", "CREATE FUNCTION f RETURNS STRING SONAME 'udf.so'"), []string{"library"}},
	{object(repo.Function, "p", "CREATE PROCEDURE p() BEGIN END"), []string{"CREATE PROCEDURE"}},
	{object(repo.Trigger, "g", "GRANT ALL ON *.* TO pwned@localhost"), []string{"trigger `shop`.`g`", "GRANT"}},
	{object(repo.Trigger, "g", "CREATE TRIGGER g BEFORE INSERT ON mysql.user FOR EACH ROW SET @a = 1"), []string{"`mysql`.`user`"}},
	{object(repo.Event, "e", "CREATE EVENT e ON SCHEDULE EVERY 1 SECOND DO CREATE DATABASE pwned"), []string{"enabled"}},
	{object(repo.Event, "e", "DROP DATABASE mysql"), []string{"DROP"}},
	{object(repo.Sequence, "q", "CREATE TABLE q AS SELECT 1"), []string{"list of columns"}},
	{repo.Line{Object: &repo.Object{Kind: repo.Sequence, Schema: "shop", Name: "q", Create: "CREATE SEQUENCE q", After: []string{"DO SETVAL(q, 1, 0, 1), SLEEP(1)"}}}, []string{"state"}},
	{repo.Line{Object: &repo.Object{Kind: repo.View, Schema: "shop", Name: "v", Create: "CREATE VIEW v AS SELECT 1", After: []string{"CREATE DATABASE pwned"}}}, []string{"would run after it"}},
	{repo.Line{Object: &repo.Object{Kind: repo.View, Schema: "shop", Name: "v", Create: "CREATE VIEW v AS SELECT 1", Charset: "utf8mb4, GLOBAL max_connections = 7"}}, []string{"not a character set"}},
	{repo.Line{Object: &repo.Object{Kind: repo.Procedure, Schema: "shop", Name: "p", Create: "CREATE PROCEDURE p() SELECT 1", Database: "utf8mb4_bin; CREATE DATABASE pwned"}}, []string{"not a character set"}},
	{account("a@%", "CREATE USER `a`@`%`", "GRANT ALL ON *.* TO `pwned`@`%` IDENTIFIED BY 'x'"), []string{"account a@%", "pwned@%"}},
	{account("a@%", "CREATE USER `a`@`%`", "SET GLOBAL max_connections = 7"), []string{"SET"}},
	{account("a@%", "CREATE USER `a`@`%`", "GRANT SELECT /*!99999 , x'*/ ON *.* TO 'pwned'@'%' /*' ON *.* TO 'a'@'%' */"), []string{"pwned@%"}},
	{repo.Line{Object: &repo.Object{Kind: repo.Sequence, Schema: "shop", Name: "q", Create: "CREATE SEQUENCE q", After: []string{"5"}}}, []string{"state"}},
	{account("a@%", "CREATE USER `a`@`%`, `pwned`@`%`"), []string{"pwned"}},
	{account("a@%", "CREATE USER `pwned`@`%`"), []string{"pwned@%"}},
	{account("a@%", "CREATE DATABASE pwned"), []string{"pwned"}},
	{account("a@%", "CREATE USER `a`@`%`", "GRANT USAGE ON *.* TO `a`@`%`, `pwned`@`%`"), []string{"pwned"}},
	{repo.Line{Schema: &repo.Schema{Name: "x", Create: "CREATE DATABASE `x`; CREATE DATABASE pwned"}}, []string{"schema `x`", "another statement"}},
	{repo.Line{Schema: &repo.Schema{Name: "x", Create: "DROP DATABASE `mysql`"}}, []string{"DROP"}},
	{tableLine("t2", "CREATE TABLE `t2` (`a` int) AS SELECT * FROM mysql.user"), []string{"table `shop`.`t2`", "AS"}},
	{tableLine("t2", "CREATE TABLE `t2` (`a` int) IGNORE SELECT 1 AS a"), []string{"IGNORE"}},
	{tableLine("t2", "CREATE TABLE `mysql`.`t2` (`a` int)"), []string{"`mysql`.`t2`"}},
	{tableLine("t2", "CREATE TABLE `t2` LIKE mysql.user"), []string{"LIKE"}},
	{tableLine("t2", "CREATE TABLE `t2` (`a` int); CREATE DATABASE pwned"), []string{"another statement"}},
}

func object(kind repo.ObjectKind, name, create string) repo.Line {
	o := &repo.Object{Kind: kind, Schema: "shop", Name: name, Create: create}
	if kind == repo.Trigger {
		o.Table = "t"
	}
	return repo.Line{Object: o}
}

func account(name, create string, after ...string) repo.Line {
	return repo.Line{Object: &repo.Object{Kind: repo.Account, Name: name, Create: create, After: after}}
}

func tableLine(name, create string) repo.Line {
	return repo.Line{Table: &repo.Table{Schema: "shop", Name: name, Create: create}}
}

// lineText is what a line would run.
func lineText(l repo.Line) string {
	switch {
	case l.Object != nil:
		return l.Object.Create + " " + strings.Join(l.Object.After, "; ")
	case l.Table != nil:
		return l.Table.Create
	}
	return l.Schema.Create
}

// forge writes a backup with lines that were never dumped, after a valid schema and table.
func forge(t *testing.T, r *repo.Repo, server mysql.Server, lines ...repo.Line) {
	t.Helper()
	now := time.Now().UTC()
	h := repo.Header{Format: repo.Format, ID: repo.NewID(now), Kind: repo.Logical, Began: now,
		Server: repo.Server{Server: server.Server}}
	if err := r.Begin(t.Context(), h, nil); err != nil {
		t.Fatal(err)
	}
	draft := repo.NewDraft()
	defer draft.Close()
	for _, l := range append([]repo.Line{{Schema: &repo.Schema{Name: "shop", Create: "CREATE DATABASE `shop`"}}, tableLine("t", "CREATE TABLE `t` (`a` int) ENGINE=InnoDB")}, lines...) {
		if err := draft.Add(l); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Finish(t.Context(), h, draft); err != nil {
		t.Fatal(err)
	}
}

// TestForged: who can write to the repository cannot have a restore run anything but the CREATE of the kind and name that the manifest
// says, and grants for that account: each is refused by name, with the reason, before anything is changed, in a dry run too.
func TestForged(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			node := lend(t, spec)
			c, err := mysql.Connect(t.Context(), target(t, node), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			s := stream(t, node)
			const all = "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA UNION ALL SELECT CONCAT(User, '@', Host) FROM mysql.user UNION ALL SELECT @@GLOBAL.max_connections ORDER BY 1"
			before := ask(t, s, all)
			for i, f := range forgeries {
				r, _ := emptyRepo(t)
				forge(t, r, c.Server, f.line)
				for _, dry := range []bool{true, false}[min(i, 1):] { // both take the same way
					_, err := load.Restore(t.Context(), load.Options{Repo: r, Into: target(t, node), DryRun: dry, SkipIncompatible: true, Overwrite: true})
					if !errors.Is(err, load.ErrForged) {
						t.Errorf("%s: got %v, want load.ErrForged", lineText(f.line), err)
						continue
					}
					for _, w := range f.says {
						if !strings.Contains(err.Error(), w) {
							t.Errorf("no %s in %v", w, err)
						}
					}
				}
				if after := ask(t, s, all); after != before {
					t.Fatalf("%s: the server was changed: %s, want after %v", lineText(f.line), differ(before, after), before)
				}
			}
			r, dir := emptyRepo(t)
			forge(t, r, c.Server, tableLine("d", "CREATE TABLE `d` (`a` int) ENGINE=InnoDB DATA DIRECTORY='"+dir+"/' COMMENT='DATA DIRECTORY'"), object(repo.View, "v", "CREATE VIEW v AS SELECT 1"),
				object(repo.Procedure, "p", "SET GLOBAL max_connections = 7"))
			var plan load.Plan
			res, err := load.Restore(t.Context(), load.Options{Repo: r, Into: target(t, node), NoPrograms: true, Confirm: func(p load.Plan) error { plan = p; return nil }})
			if err != nil || len(res.Different) > 0 {
				t.Fatalf("got %v, %v; want none", err, res)
			}
			if len(plan.Findings) != 1 || !strings.Contains(plan.Findings[0].Why, "DATA DIRECTORY='"+dir) || !strings.Contains(strings.Join(plan.Notes, "\n"), "1 program is left out because of --no-programs") {
				t.Errorf("got %+v; want len(Findings) 1, %q in Findings[0].Why, \"1 program is left out because of --no-programs\" in strings.Join(plan.Notes, \"\\n\")",
					plan, "DATA DIRECTORY='"+dir)
			}
			if got := ask(t, s, "SHOW CREATE TABLE shop.d"); strings.Contains(got, dir) || !strings.Contains(got, "COMMENT='DATA DIRECTORY'") {
				t.Errorf("the folder: got %s; want no %q in it, \"COMMENT='DATA DIRECTORY'\" in it", got, dir)
			}
			testDefiner(t, target(t, node), s, c.Server)
		})
	}
}

// testDefiner: a dry run lists all that will run, and --definer says for whom.
func testDefiner(t *testing.T, into mysql.Target, s *mysql.Stream, server mysql.Server) {
	r, _ := emptyRepo(t)
	proc := object(repo.Procedure, "p", "CREATE PROCEDURE p() SELECT 1")
	proc.Object.SQLMode = "ANSI_QUOTES"
	forge(t, r, server, object(repo.View, "v", "CREATE DEFINER=`ghost`@`nowhere` VIEW v AS SELECT 1"), proc,
		object(repo.Event, "e", "CREATE DEFINER='ghost'@'nowhere' EVENT e ON SCHEDULE EVERY 1 YEAR STARTS '2037-01-01' ON COMPLETION NOT PRESERVE ENABLE DO SELECT 1"),
		account("a@%", "CREATE USER `a`@`%`", "GRANT USAGE ON *.* TO `a`@`%`", "GRANT SELECT ON `shop`.* TO `a`@`%`"))
	o := load.Options{Repo: r, Into: into, Rename: []string{"shop=shop9"}, DryRun: true}
	var plan load.Plan
	o.Confirm = func(p load.Plan) error { plan = p; return nil }
	if _, err := restore(t, o); err != nil {
		t.Fatal(err)
	}
	want := []load.PlannedProgram{{Kind: "procedure", Schema: "shop9", Name: "p"}, {Kind: "view", Schema: "shop9", Name: "v", Definer: "ghost@nowhere"}, {Kind: "event", Schema: "shop9", Name: "e", Definer: "ghost@nowhere", On: true}}
	if !slices.Equal(plan.Programs, want) {
		t.Errorf("programs: got %+v, want %+v", plan.Programs, want)
	}
	if len(plan.Accounts) != 1 || plan.Accounts[0].Name != "a@%" || len(plan.Accounts[0].Grants) != 2 || !strings.Contains(plan.Accounts[0].Grants[1], "`shop9`.*") {
		t.Errorf("accounts: got %+v; want len(plan.Accounts) 1, plan.Accounts[0].Name \"a@%%\", len(plan.Accounts[0].Grants) 2, \"`shop9`.*\" in plan.Accounts[0].Grants[1]",
			plan.Accounts)
	}
	if !slices.Contains(plan.Settings, "sql_mode = 'ANSI_QUOTES'") {
		t.Errorf("settings: got %q, want \"sql_mode = 'ANSI_QUOTES'\" in it", plan.Settings)
	}
	o.DryRun, o.Definer = false, load.CurrentUser
	if _, err := restore(t, o); err != nil {
		t.Fatal(err)
	}
	const definers = "SELECT DEFINER FROM information_schema.VIEWS WHERE TABLE_SCHEMA = 'shop9' UNION ALL SELECT DEFINER FROM information_schema.EVENTS WHERE EVENT_SCHEMA = 'shop9' AND STATUS = 'ENABLED' UNION ALL SELECT DEFINER FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'shop9'"
	if got := ask(t, s, definers); got != strings.Repeat(server.Account+"|\n", 3) {
		t.Errorf("definers: %q, want %s", got, server.Account)
	}
	exec(t, s, "DROP DATABASE shop9")
	o.Definer = "a@%"
	if _, err := restore(t, o); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, s, definers); got != "a@%|\na@%|\na@%|\n" {
		t.Errorf("definers: %q, want a@%%", got)
	}
	if got := ask(t, s, "SHOW GRANTS FOR a@'%'"); !strings.Contains(got, "`shop9`.*") || strings.Contains(got, "`shop`.*") {
		t.Errorf("grants: got %s; want \"`shop9`.*\" in it, no \"`shop`.*\" in it", got)
	}
}
