package dump_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// TestRemedies: what is advised if an account may not see everything works: after the grants all of it is in a backup; and if a partial
// backup is advised, one is possible, and what is not in it is named.
func TestRemedies(t *testing.T) {
	t.Parallel()
	for _, flavour := range []string{"mariadb", "mariadb-11.8", "mysql-9.7", "mysql-8.0", "mysql-5.7"} {
		t.Run(flavour, func(t *testing.T) {
			t.Parallel()
			node := lend(t, flavour)
			s := stream(t, target(t, node.DSN))
			exec(t, s, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY, secret INT)", "INSERT INTO shop.t VALUES (1, 2)", "CREATE TABLE shop.u (id INT PRIMARY KEY)", "CREATE TABLE shop.m (id INT PRIMARY KEY) ENGINE=MyISAM", "CREATE DATABASE other", "CREATE TABLE other.o (id INT PRIMARY KEY)",
				"CREATE VIEW shop.v AS SELECT id FROM shop.t", "CREATE TRIGGER shop.g BEFORE INSERT ON shop.t FOR EACH ROW SET @a = 1", "CREATE PROCEDURE shop.p() SELECT 1", "CREATE EVENT shop.e ON SCHEDULE EVERY 1 DAY DO SELECT 1")
			if strings.HasPrefix(flavour, "mariadb") {
				exec(t, s, "CREATE SEQUENCE shop.q")
			}
			whole := map[string]dump.Result{}
			selections := map[string]dump.Selection{"all": {}, "schema": {Schemas: []string{"shop"}}, "tables": {Tables: []string{"shop.t", "shop.u"}}, "table": {Tables: []string{"shop.t"}}}
			for name, sel := range selections {
				res, err := dump.Run(t.Context(), place(t), dump.Options{Target: target(t, node.DSN), Select: sel, NoAccounts: true})
				if err != nil {
					t.Fatal(err)
				}
				whole[name] = res
			}
			n := 0
			for _, c := range []struct {
				name   string
				grants []string
				unread []string // with --partial, of all
				none   bool     // nothing can be backed up
			}{
				{"a column", []string{"GRANT SELECT (id) ON shop.t"}, nil, true},
				{"a column and a table", []string{"GRANT SELECT (id) ON shop.t", "GRANT SELECT ON shop.u"}, []string{"`shop`.`t`"}, false},
				{"to write only", []string{"GRANT INSERT, UPDATE ON shop.*", "GRANT SELECT ON other.*"}, []string{"`shop`.`t`", "`shop`.`m`", "`shop`.`u`", "`shop`.`v`"}, false},
				{"no views", []string{"GRANT SELECT, TRIGGER, EVENT, EXECUTE, LOCK TABLES, PROCESS, RELOAD ON *.*"}, []string{"`shop`.`v`"}, false},
				{"one table", []string{"GRANT SELECT ON shop.t"}, nil, false},
				{"rows of one schema", []string{"GRANT SELECT ON shop.*"}, []string{"`shop`.`v`"}, false},
				{"programs", []string{"GRANT EXECUTE, TRIGGER ON shop.*"}, nil, true},
				{"nothing", nil, nil, true},
			} {
				for name, sel := range selections {
					n++
					user := fmt.Sprint("u", n)
					exec(t, s, "CREATE USER "+user+"@localhost")
					for _, g := range c.grants {
						exec(t, s, g+" TO "+user+"@localhost")
					}
					o := dump.Options{Target: target(t, strings.Replace(node.DSN, "root", user, 1)), Select: sel, NoAccounts: true}
					said := func(format string, args ...any) {
						t.Helper()
						t.Errorf("%s, %s: %s", c.name, name, fmt.Sprintf(format, args...))
					}
					full := func() error {
						res, err := dump.Run(t.Context(), place(t), o)
						if err == nil && (res.Header.Tables != whole[name].Header.Tables || res.Header.Objects != whole[name].Header.Objects || len(res.Header.Partial) != len(whole[name].Header.Partial)) {
							said("a backup without a word has %d tables and %d objects: %q", res.Header.Tables, res.Header.Objects, res.Header.Notes)
						}
						return err
					}
					err := full()
					if err == nil {
						continue
					}
					var b *define.BlindError
					if !errors.As(err, &b) {
						said("%v", err)
						continue
					}
					o.Partial = true
					res, err := dump.Run(t.Context(), place(t), o)
					switch {
					case b.Part && err != nil:
						said("a part is advised and is not to be had: %v", err)
					case b.Part && (len(res.Header.Partial) == 0 || res.Header.Tables+res.Header.Objects == 0):
						said("a part without a mark: %+v", res.Header)
					case c.none && b.Part:
						said("a part of nothing is advised")
					case !c.none && name == "all" && !b.Part:
						said("no part is advised")
					}
					if notes := strings.Join(res.Header.Notes, "\n"); name == "all" && b.Part {
						for _, u := range c.unread {
							if !strings.Contains(notes, u) {
								said("nothing is said of %s: %q", u, notes)
							}
						}
					}
					o.Partial = false
					if more := strings.Join(b.Grants, "; "); strings.HasPrefix(name, "table") && (strings.Contains(more, ".* ") || strings.Contains(more, "EVENT") || strings.Contains(more, "mysql")) {
						said("for tables alone more is asked than they need: %s", more)
					}
					exec(t, s, b.Grants...)
					if err := full(); err != nil {
						said("behind %q: %v", b.Grants, err)
					}
				}
			}
			lockRemedies(t, node.DSN, s)
		})
	}
}

// lockRemedies: if tables without transactions may not be locked, the missing grant is named, and no other.
func lockRemedies(t *testing.T, dsn string, s *mysql.Stream) {
	schema, table := dump.Selection{Schemas: []string{"shop"}}, dump.Selection{Tables: []string{"shop.m"}}
	as := func(user string, sel dump.Selection, partial bool) (dump.Result, error) {
		return dump.Run(t.Context(), place(t), dump.Options{Target: target(t, strings.Replace(dsn, "root", user, 1)), Select: sel, NoAccounts: true, Partial: partial})
	}
	blind := func(user string, sel dump.Selection) []string {
		t.Helper()
		_, err := as(user, sel, false)
		var b *define.BlindError
		if !errors.As(err, &b) {
			t.Fatalf("%s: %v", user, err)
		}
		return b.Grants
	}
	exec(t, s, "CREATE USER nolock@localhost", "CREATE USER onetable@localhost", "CREATE USER seer@localhost", "GRANT SELECT ON shop.m TO onetable@localhost", "GRANT SHOW VIEW, EVENT ON shop.* TO seer@localhost", "GRANT SELECT ON shop.u TO seer@localhost")
	for _, g := range blind("nolock", schema) {
		exec(t, s, strings.Replace(g, ", LOCK TABLES", "", 1))
	}
	_, err := as("nolock", schema, false)
	const grant = "GRANT LOCK TABLES ON `shop`.* TO 'nolock'@'localhost'"
	if err == nil || !strings.HasSuffix(err.Error(), "; to lock tables without transactions run "+grant) || strings.Contains(err.Error(), "\n") {
		t.Fatalf("got %v; want an error, %q at the end of the error, no \"\\n\" in the error", err, "; to lock tables without transactions run "+grant)
	}
	exec(t, s, grant)
	if res, err := as("nolock", schema, false); err != nil || res.Header.Tables != 3 {
		t.Errorf("got %+v, %v; want Tables 3", res.Header, err)
	}
	grants := blind("onetable", table)
	if got, want := strings.Join(grants, "; "), "GRANT SELECT, TRIGGER ON `shop`.`m` TO 'onetable'@'localhost'; GRANT LOCK TABLES ON `shop`.* TO 'onetable'@'localhost'"; got != want {
		t.Errorf("the remedy is %s, want %s", got, want)
	}
	exec(t, s, grants...)
	if res, err := as("onetable", table, false); err != nil || res.Header.Tables != 1 {
		t.Errorf("got %+v, %v; want Tables 1", res.Header, err)
	}
	if res, err := as("seer", schema, true); err != nil || res.Header.Tables != 1 || !strings.Contains(strings.Join(res.Header.Notes, " "), "`shop`.`m`") {
		t.Errorf("got %+v, %v; want Tables 1, \"`shop`.`m`\" in strings.Join(res.Header.Notes, \" \")", res.Header, err)
	}
}
