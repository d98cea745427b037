package load_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestOneName: a restore in which two things would have one name is refused before anything is written: by a renaming, and on a server that
// takes names of different case for one.
func TestOneName(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			sandboxtest.Need(t, spec)
			source, folding := sandboxtest.Up(t, spec), sandboxtest.Up(t, spec, "lower_case_table_names=1")
			exec(t, stream(t, source), "CREATE DATABASE Ab", "CREATE TABLE Ab.t (a INT PRIMARY KEY)", "INSERT INTO Ab.t VALUES (1)", "CREATE DATABASE ab", "CREATE TABLE ab.u (a INT PRIMARY KEY)",
				"CREATE DATABASE cs", "CREATE TABLE cs.T (a INT PRIMARY KEY)", "CREATE TABLE cs.t (a INT PRIMARY KEY)", "CREATE VIEW cs.V AS SELECT 1 AS a", "CREATE TABLE cs.v (a INT PRIMARY KEY)",
				"CREATE DATABASE one", "CREATE TABLE one.x (a INT PRIMARY KEY)", "CREATE TABLE one.y (a INT PRIMARY KEY)", "CREATE FUNCTION one.f() RETURNS INT NO SQL RETURN 1", "CREATE FUNCTION ab.f() RETURNS INT NO SQL RETURN 2",
				"CREATE DATABASE p", "CREATE TABLE p.k (a INT PRIMARY KEY)", "CREATE TRIGGER p.tt BEFORE INSERT ON p.k FOR EACH ROW SET NEW.a = 1", "CREATE DATABASE q", "CREATE TABLE q.l (a INT PRIMARY KEY)", "CREATE TRIGGER q.tt BEFORE INSERT ON q.l FOR EACH ROW SET NEW.a = 2")
			r := takeBackup(t, source, "Ab", "ab", "cs", "one", "p", "q")
			for _, c := range []struct {
				folds           bool
				schemas, rename []string
				want            string
			}{
				{true, []string{"Ab", "ab"}, nil, "would both be `ab`"},
				{true, []string{"Ab", "ab"}, []string{"Ab=other"}, ""},
				{true, []string{"Ab"}, nil, ""},
				{true, []string{"cs"}, nil, "would both be `cs`.`t`"},
				{true, []string{"cs"}, []string{"cs.T=cs.t2"}, "table `cs`.`v` and view `cs`.`V` would both be `cs`.`v`"},
				{true, []string{"cs"}, []string{"cs.T=cs.t2", "cs.V=cs.v2"}, ""},
				{false, []string{"one"}, []string{"one.x=two.a", "one.y=two.a"}, "would both be `two`.`a`"},
				{false, []string{"one"}, []string{"one.x=one.y"}, "would both be `one`.`y`"},
				{false, []string{"one"}, []string{"one.x=one.y", "one.y=one.x"}, "there is data in the way"}, // the names are those that are there
				{false, []string{"one", "ab"}, []string{"one=both", "ab=both"}, "would both be `both`.`f`"},
				{false, []string{"p", "q"}, []string{"p=both", "q=both"}, "would both be `both`.`tt`"}, // with --overwrite one would drop the other
				{false, []string{"p"}, []string{"p=both"}, ""},
				{false, []string{"one"}, []string{"one=Mysql"}, "belongs to the server itself"},
				{false, []string{"one"}, []string{"one.x=sys.x"}, "belongs to the server itself"},
			} {
				node := source
				if c.folds {
					node = folding
				}
				_, err := restore(t, load.Options{Repo: r, Into: target(t, node), Schemas: c.schemas, Rename: c.rename, DryRun: true})
				if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("%v, %v: %v; want %q", c.schemas, c.rename, err, c.want)
				}
				if strings.Contains(c.want, "would both be") && !errors.Is(err, load.ErrOneName) {
					t.Errorf("%v is not ErrOneName", err)
				}
			}
			// The real run says the same, and writes nothing.
			if _, err := restore(t, load.Options{Repo: r, Into: target(t, folding), Schemas: []string{"Ab", "ab"}}); !errors.Is(err, load.ErrOneName) {
				t.Errorf("got %v, want load.ErrOneName", err)
			}
			if got := ask(t, stream(t, folding), "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME IN ('ab', 'Ab')"); got != "0|\n" {
				t.Errorf("schemas are there: %s, want \"0|\\n\"", got)
			}
			if _, err := restore(t, load.Options{Repo: r, Into: target(t, folding), Schemas: []string{"Ab", "ab", "cs"}, Rename: []string{"Ab=other", "cs.T=cs.t2", "cs.V=cs.v2"}}); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTriggerOfAnother: a trigger that has the name of one of the backup and belongs to a table that stays is not dropped with --overwrite.
func TestTriggerOfAnother(t *testing.T) {
	t.Parallel()
	node := lend(t, "mariadb")
	s := stream(t, node)
	exec(t, s, "CREATE DATABASE shop", "CREATE TABLE shop.o (a INT PRIMARY KEY)", "CREATE TABLE shop.other (a INT PRIMARY KEY)", "CREATE TRIGGER shop.tt BEFORE INSERT ON shop.o FOR EACH ROW SET NEW.a = NEW.a + 1")
	r := takeBackup(t, node, "shop")
	exec(t, s, "DROP TRIGGER shop.tt", "CREATE TRIGGER shop.tt BEFORE INSERT ON shop.other FOR EACH ROW SET NEW.a = 7")
	for _, dry := range []bool{true, false} {
		_, err := restore(t, load.Options{Repo: r, Into: target(t, node), Tables: []string{"shop.o"}, Overwrite: true, DryRun: dry})
		if !errors.Is(err, load.ErrOneName) || !strings.Contains(err.Error(), "of table `other` on the server") {
			t.Errorf("got %v; want load.ErrOneName, \"of table `other` on the server\" in the error", err)
		}
	}
	if got := ask(t, s, "SELECT EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'shop'"); got != "other|\n" {
		t.Errorf("the trigger is on %q, want \"other|\\n\"", got)
	}
	if _, err := restore(t, load.Options{Repo: r, Into: target(t, node), Tables: []string{"shop.o"}, Overwrite: true, NoPrograms: true}); err != nil {
		t.Error(err)
	}
	if _, err := restore(t, load.Options{Repo: r, Into: target(t, node), Schemas: []string{"shop"}, Overwrite: true}); err != nil { // with the table it goes
		t.Error(err)
	}
	if got := ask(t, s, "SELECT EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'shop'"); got != "o|\n" {
		t.Errorf("the trigger is on %q, want \"o|\\n\"", got)
	}
}
