package dump_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// grantsOf returns the line of the privileges in docs/backup.md for a flavour.
func grantsOf(t *testing.T, flavour string) string {
	t.Helper()
	b, err := os.ReadFile("../../../docs/backup.md")
	if err != nil {
		t.Fatal(err)
	}
	label := map[string]string{"mariadb": "MariaDB", "mariadb-11.8": "MariaDB", "mysql-9.7": "MySQL 8 and later", "mysql-8.0": "MySQL 8 and later", "mysql-5.7": "MySQL 5.7"}[flavour]
	m := regexp.MustCompile(`(?m)^(GRANT .* ON \*\.\* TO) .*;  -- ` + label + `$`).FindSubmatch(b)
	if m == nil {
		t.Fatalf("docs/backup.md has no grants for %s, want m not nil", label)
	}
	return string(m[1])
}

// TestSight: with the grants of docs/backup.md everything is in a backup; with fewer it fails and names what it cannot see and the
// statement that helps; --partial marks what it takes as partial.
func TestSight(t *testing.T) {
	t.Parallel()
	for _, flavour := range []string{"mariadb", "mariadb-11.8", "mysql-9.7", "mysql-8.0", "mysql-5.7"} {
		t.Run(flavour, func(t *testing.T) {
			t.Parallel()
			node := lend(t, flavour)
			s := stream(t, target(t, node.DSN))
			exec(t, s, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)", "INSERT INTO shop.t VALUES (1)", "CREATE TABLE shop.m (id INT PRIMARY KEY) ENGINE=MyISAM", "CREATE DATABASE other", "CREATE TABLE other.o (id INT PRIMARY KEY)",
				"CREATE VIEW shop.v AS SELECT * FROM shop.t", "CREATE TRIGGER shop.g BEFORE INSERT ON shop.t FOR EACH ROW SET @a = 1", "CREATE PROCEDURE shop.p() SELECT 1", "CREATE EVENT shop.e ON SCHEDULE EVERY 1 DAY DO SELECT 1")
			// as makes an account and backs up with it.
			as := func(user string, o dump.Options, grants ...string) (dump.Result, *repo.Repo, error) {
				exec(t, s, "CREATE USER '"+user+"'@'localhost'")
				for _, g := range grants {
					exec(t, s, g+" TO '"+user+"'@'localhost'")
				}
				o.Target, o.Name = target(t, strings.Replace(node.DSN, "root", user, 1)), "s"
				r := place(t)
				result, err := dump.Run(t.Context(), r, o)
				return result, r, err
			}
			fails := func(err error, words ...string) *define.BlindError {
				t.Helper()
				var b *define.BlindError
				if !errors.As(err, &b) {
					t.Fatalf("no word of what is not seen: %v", err)
				}
				for _, w := range words {
					if !strings.Contains(b.Error()+b.Remedy(), w) {
						t.Errorf("%s (%s): nothing of %s", b, b.Remedy(), w)
					}
				}
				return b
			}
			// README's account to watch with.
			_, r, err := as("watch", dump.Options{}, "GRANT PROCESS, REPLICATION CLIENT ON *.*", "GRANT SELECT ON performance_schema.*")
			b := fails(err, "the server has 2 InnoDB tables in 2 schemas, the account sees 0 in 0", "'watch'@'localhost'")
			if list, err := r.Backups(t.Context()); err != nil || len(list) != 0 {
				t.Errorf("got %v, %v; want none", list, err)
			}
			exec(t, s, b.Grants...) // what the hint says helps
			to := target(t, strings.Replace(node.DSN, "root", "watch", 1))
			if result, err := dump.Run(t.Context(), r, dump.Options{Target: to, Name: "s"}); err != nil || result.Header.Tables != 3 {
				t.Errorf("behind %v: got %+v, %v; want Tables 3", b.Grants, result.Header, err)
			}
			result, r, err := as("doc", dump.Options{}, strings.TrimSuffix(grantsOf(t, flavour), " TO"))
			if err != nil || result.Header.Tables != 3 || len(result.Header.Partial) != 0 {
				t.Fatalf("with the grants of the documentation: got %+v, %v; want Tables 3, no result.Header.Partial", result.Header, err)
			}
			kinds := map[repo.ObjectKind]bool{}
			m, err := r.Manifest(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if err := m.Each(func(l repo.Line) error {
				if l.Object != nil {
					kinds[l.Object.Kind] = true
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			for _, k := range []repo.ObjectKind{repo.View, repo.Trigger, repo.Procedure, repo.Event, repo.Account} {
				if !kinds[k] {
					t.Errorf("with the grants of the documentation there is no %s", k)
				}
			}
			for _, n := range result.Header.Notes {
				if !strings.Contains(n, "MyISAM") {
					t.Errorf("with the grants of the documentation: got %s, want \"MyISAM\" in it", n)
				}
			}
			c, err := mysql.Connect(t.Context(), to, nil)
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
			if want, got := grantsOf(t, flavour)+" 'watch'@'localhost'", c.Server.BackupGrants(); got != want {
				t.Errorf("the hint says %s, the documentation %s", got, want)
			}
			_, _, err = as("noprograms", dump.Options{}, "GRANT SELECT, SHOW VIEW, PROCESS, RELOAD, LOCK TABLES ON *.*")
			fails(err, "triggers without TRIGGER on `shop`", "events without EVENT on `shop`")
			// One schema, and the grants for it.
			_, _, err = as("tables", dump.Options{Select: dump.Selection{Schemas: []string{"shop"}}}, "GRANT SELECT, LOCK TABLES ON shop.*")
			b = fails(err, "triggers without TRIGGER on `shop`", "routines without EXECUTE on `shop`")
			if strings.Contains(b.Error(), "other") {
				t.Errorf("of a schema that was not asked for: %v, want no \"other\" in it", b)
			}
			exec(t, s, b.Grants...)
			to = target(t, strings.Replace(node.DSN, "root", "tables", 1))
			if result, err := dump.Run(t.Context(), place(t), dump.Options{Target: to, Select: dump.Selection{Schemas: []string{"shop"}}}); err != nil || result.Header.Objects != 4 {
				t.Errorf("behind %v: got %+v, %v; want Objects 4", b.Grants, result.Header, err)
			}
			lacks, tables := "whole schemas without SELECT or SHOW DATABASES", int64(2)
			if flavour == "mysql-8.0" { // before 8.0.20 only SELECT on *.* shows routines
				lacks, tables = "events without EVENT on `other`", 3
			}
			_, err = dump.Run(t.Context(), place(t), dump.Options{Target: to})
			fails(err, lacks)
			if result, err := dump.Run(t.Context(), place(t), dump.Options{Target: to, Partial: true}); err != nil || result.Header.Tables != tables || strings.Join(result.Header.Partial, " ") != "what 'tables'@'localhost' may see" || !strings.Contains(result.Header.Notes[0], "Partial: ") {
				t.Errorf("got %+v, %v; want Tables %v, strings.Join(result.Header.Partial, \" \") \"what 'tables'@'localhost' may see\", \"Partial: \" in Notes[0]",
					result.Header, err, tables)
			}
			if _, err := dump.Run(t.Context(), place(t), dump.Options{Target: target(t, node.DSN), Select: dump.Selection{Schemas: []string{"shop", "nosuch"}, Tables: []string{"other.x"}}}); !errors.Is(err, dump.ErrNothing) || !strings.Contains(err.Error(), "nosuch, other.x") {
				t.Errorf("what was named and is not there: %v; want dump.ErrNothing, \"nosuch, other.x\" in the error", err)
			}
		})
	}
}
