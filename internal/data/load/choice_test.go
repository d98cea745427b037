package load_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/mysql"
)

// TestNames: a name that no server holds is refused, and one that the target does not hold is refused before anything is written.
func TestNames(t *testing.T) {
	of := strings.Repeat
	names := []string{"a", of("a", 64), of("a", 65), of("ä", 64), of("ä", 65), of("漢", 48), of("漢", 50), of("漢", 50) + "a", of("漢", 51), of("漢", 52), of("漢", 64), of("Я", 64), of("-", 50), of("-", 51), of("-", 52), "",
		"a ", " a", "a\t", "a\n", "a\u00a0", "a\u3000", "a\x00b", "a\x00", "a\xffb", "😀", "a😀b", "\uffff", "\u200b", "a.b", "a/b", `a\b`, "..", ".", "`", "'", "#x", "a`b", "a%b", "lost+found", "#mysql50#x"}
	for _, spec := range servers {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			node := lend(t, spec)
			s := stream(t, node)
			exec(t, s, "SET NAMES utf8mb4", "CREATE DATABASE k", "CREATE TABLE k.t (a INT PRIMARY KEY)")
			r := takeBackup(t, node, "k")
			for _, name := range names {
				q := mysql.Quote(name)
				for _, c := range []struct {
					what    string
					refused error
					rename  string
					sql     [3]string // to make it, to look for it, to drop it
				}{
					{"schema", mysql.CheckSchemaName(name), "k=" + q, [3]string{"CREATE DATABASE " + q, "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA", "DROP DATABASE " + q}},
					{"table", mysql.CheckTableName(name), "k.t=test." + q, [3]string{"CREATE TABLE test." + q + " (a INT)", "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'test'", "DROP TABLE test." + q}},
				} {
					err := s.Exec(t.Context(), c.sql[0])
					held := err == nil && strings.Contains("\n"+ask(t, s, c.sql[1]), "\n"+name+"|\n") // MySQL makes ? of what it does not hold
					if err == nil {
						exec(t, s, c.sql[2])
					}
					_, planned := restore(t, load.Options{Repo: r, Into: target(t, node), Schemas: []string{"k"}, Rename: []string{c.rename}, DryRun: true})
					if held == (planned != nil) || held && c.refused != nil {
						t.Errorf("%s %q (%d bytes): the server says %v, Risso %v, and of any server %v", c.what, name, len(name), err, planned, c.refused)
					}
				}
			}
		})
	}
}

// TestChoice: what was asked for and is impossible is refused before anything is written: new names that no server accepts, and names that the
// backup does not have, since a typo would put the rest where it is not wanted.
func TestChoice(t *testing.T) {
	t.Parallel()
	node := lend(t, "mariadb")
	s := stream(t, node)
	exec(t, s, "CREATE DATABASE shop", "CREATE TABLE shop.o (a INT PRIMARY KEY)", "INSERT INTO shop.o VALUES (1)", "CREATE VIEW shop.v AS SELECT a FROM shop.o", "CREATE SEQUENCE shop.q", "CREATE TABLE shop.x (a INT)", "CREATE VIEW shop.broken AS SELECT a FROM shop.x", "DROP TABLE shop.x", "CREATE DATABASE crm", "CREATE TABLE crm.c (a INT PRIMARY KEY)")
	r := takeBackup(t, node, "shop", "crm")
	exec(t, s, "INSERT INTO shop.o VALUES (2)")
	for _, c := range []struct {
		schemas, tables, rename []string
		want, note              string
	}{
		{[]string{"shop"}, nil, []string{"shop=" + strings.Repeat("ü", 65)}, "it has 65 characters, and a name has at most 64", ""},
		{[]string{"shop"}, nil, []string{"shop=`x `"}, "it ends in a blank", ""},
		{[]string{"shop"}, nil, []string{"shop=a\x00"}, "it contains a NUL", ""},
		{[]string{"shop"}, nil, []string{"shop=a\t"}, "the server cannot have a schema", ""},
		{nil, []string{"shop.o"}, []string{"shop.o=shop." + strings.Repeat("x", 65)}, "no server can have a table", ""},
		{nil, []string{"shop.o"}, []string{"shop.o=" + strings.Repeat("x", 65) + ".o"}, "no server can have a schema", ""},
		{[]string{"shop"}, nil, []string{"shpo=shop2"}, "it has no schema `shpo` (--rename)", ""},
		{[]string{"shop"}, nil, []string{"shop.oo=shop.o2"}, "it has no table `shop`.`oo` (--rename)", ""},
		{[]string{"shop"}, nil, []string{"shop=a", "shop=b"}, "it is already renamed to another name", ""},
		{[]string{"shop", "shpo"}, nil, []string{"shop=a"}, "it has no schema `shpo`", ""},
		{nil, []string{"shop.o", "shop.oo"}, []string{"shop=a"}, "it has no table `shop`.`oo`", ""},
		{[]string{"nothing*"}, nil, nil, "the backup contains nothing of what was selected: nothing*", ""},
		{[]string{"shop", "nothing*"}, nil, []string{"shop=a"}, "", "--schema nothing* matches nothing that is restored"},
		{[]string{"shop"}, []string{"crm.x*"}, []string{"shop=a"}, "", "--table crm.x* matches nothing"},
		{[]string{"shop"}, nil, []string{"shop=a", "crm=b"}, "", "--rename of schema `crm` matches nothing"},
		{[]string{"shop"}, nil, []string{"shop=a", "shop=a"}, "", ""},
		{nil, []string{"shop.v", "shop.o"}, []string{"shop.v=shop.v2", "shop.o=shop.o2"}, "", ""},
		{nil, []string{"shop.q"}, []string{"shop.q=a.q2"}, "", ""},
		{nil, []string{"shop.o"}, []string{"shop.o=shop.broken"}, "there is data in the way: view `shop`.`broken`, where the backup has a table", ""},
	} {
		var plan load.Plan
		_, err := restore(t, load.Options{Repo: r, Into: target(t, node), Schemas: c.schemas, Tables: c.tables, Rename: c.rename, DryRun: true, Confirm: func(p load.Plan) error { plan = p; return nil }})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q, %q, %q: %v; want %q", c.schemas, c.tables, c.rename, err, c.want)
		}
		if strings.HasPrefix(c.want, "it has no") && !errors.Is(err, load.ErrNothing) {
			t.Errorf("%v is not ErrNothing", err)
		}
		if notes := strings.Join(plan.Notes, "\n"); c.note != "" && !strings.Contains(notes, c.note) || c.note == "" && strings.Contains(notes, "matches nothing") {
			t.Errorf("%q, %q, %q: %q is told, not %q", c.schemas, c.tables, c.rename, notes, c.note)
		}
	}
	// A slip in --rename does not bring the rest over what is there.
	if _, err := restore(t, load.Options{Repo: r, Into: target(t, node), Schemas: []string{"shop"}, Rename: []string{"shpo=shop2"}, Overwrite: true}); !errors.Is(err, load.ErrNothing) {
		t.Errorf("got %v, want load.ErrNothing", err)
	}
	if got := ask(t, s, "SELECT COUNT(*) FROM shop.o"); got != "2|\n" {
		t.Errorf("%s rows are there, want \"2|\\n\"", got)
	}
}
