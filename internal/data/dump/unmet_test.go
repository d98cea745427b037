package dump_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/dump"
)

// TestUnmetPatterns: names that do not exist are refused, patterns that match nothing are reported, and so is what should be left out and
// does not exist.
func TestUnmetPatterns(t *testing.T) {
	t.Parallel()
	node := lend(t, "mariadb")
	s := stream(t, target(t, node.DSN))
	exec(t, s, "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY)", "CREATE TABLE shop.`a.b` (id INT PRIMARY KEY)", "CREATE VIEW shop.v AS SELECT 1 AS one", "CREATE DATABASE `odd.name`", "CREATE TABLE `odd.name`.t (id INT PRIMARY KEY)")
	for _, c := range []struct {
		sel     dump.Selection
		told    string // of patterns
		left    string // of what should be left out
		refused string
	}{
		{sel: dump.Selection{}},
		{sel: dump.Selection{Schemas: []string{"sh*", "odd.name"}, Tables: []string{"shop.o*", "`odd.name`.`*`", "odd.name.t"}}},
		{sel: dump.Selection{Schemas: []string{"shop", "shpo*", "nix?"}}, told: "shpo*, no nix?"},
		{sel: dump.Selection{Tables: []string{"shop.*", "shop.x*", "`odd.name`.`x*`"}}, told: "shop.x*, no `odd.name`.`x*`"},
		{sel: dump.Selection{Schemas: []string{"shop", "shpo"}}, refused: "shpo"},
		{sel: dump.Selection{Schemas: []string{"nix*"}}, refused: "nix*"},
		{sel: dump.Selection{Tables: []string{"shop.*", "shop.odrers"}}, refused: "shop.odrers"},
		{sel: dump.Selection{Exclude: []string{"odd*", "shop.o*", "shop.v", "`shop`.`a.b`"}}},
		{sel: dump.Selection{Exclude: []string{"shop.odrers", "shop.orders", "nix*"}}, left: "shop.odrers, no nix*"},
		{sel: dump.Selection{Schemas: []string{"shop"}, Exclude: []string{"shop.orders", "odd.name.t"}}, left: "odd.name.t"},
	} {
		o := dump.Options{Target: target(t, node.DSN), Select: c.sel, NoAccounts: true}
		p, err := dump.MakePlan(t.Context(), o)
		if c.refused != "" {
			if !errors.Is(err, dump.ErrNothing) || !strings.HasSuffix(err.Error(), ": "+c.refused) {
				t.Errorf("got %+v: %v; want dump.ErrNothing, %q at the end of the error", c.sel, err, ": "+c.refused)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%+v: %v", c.sel, err)
		}
		res, err := dump.Run(t.Context(), place(t), o)
		if err != nil {
			t.Fatalf("%+v: %v", c.sel, err)
		}
		for _, notes := range [][]string{p.Notes, res.Header.Notes} {
			said := strings.Join(notes, "\n")
			if told := "There is no " + c.told + ": nothing is backed up for it."; strings.Contains(said, told) != (c.told != "") {
				t.Errorf("got %+v: %q, want strings.Contains(said, told) %v", c.sel, notes, c.told != "")
			}
			if told := "There is no " + c.left + " in what is backed up: nothing is left out for it."; strings.Contains(said, told) != (c.left != "") {
				t.Errorf("got %+v: %q, want strings.Contains(said, told) %v", c.sel, notes, c.left != "")
			}
			if strings.Count(said, "There is no") > 1 {
				t.Errorf("got %+v: %q, want strings.Count(said, \"There is no\") at most 1", c.sel, notes)
			}
		}
	}
}

// TestClosedTable: a table that the server cannot open is named with the server's reason, before anything is locked; if it is left out, the
// rest is backed up.
func TestClosedTable(t *testing.T) {
	t.Parallel()
	for _, flavour := range []string{"mariadb", "mariadb-11.8", "mysql-9.7", "mysql-5.7"} {
		t.Run(flavour, func(t *testing.T) {
			t.Parallel()
			node := lend(t, flavour)
			s := stream(t, target(t, node.DSN))
			exec(t, s, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)", "CREATE TABLE shop.one (id INT) ENGINE = MyISAM", "CREATE TABLE shop.`all` (id INT) ENGINE = MERGE UNION = (shop.one)", "DROP TABLE shop.one")
			o := dump.Options{Target: target(t, node.DSN), NoAccounts: true}
			_, err := dump.Run(t.Context(), place(t), o)
			var closed *dump.ClosedError
			switch {
			case errors.As(err, &closed):
				if len(closed.Tables) != 1 || closed.Tables[0].String() != "`shop`.`all`" || !strings.Contains(err.Error(), "the server cannot open `shop`.`all`: ") || len(closed.Why) < 10 {
					t.Errorf("got %v; want len(closed.Tables) 1, closed.Tables[0].String() \"`shop`.`all`\", \"the server cannot open `shop`.`all`: \" in the error, len(closed.Why) at least 10",
						err)
				}
				if _, err := dump.MakePlan(t.Context(), o); !errors.As(err, &closed) {
					t.Errorf("the plan: %v", err)
				}
			case strings.HasPrefix(flavour, "mariadb") || err != nil && !strings.Contains(err.Error(), "`shop`.`all`"): // others may know its definition, or name it
				t.Errorf("%v", err)
			}
			for _, name := range []string{"shop.all", "`shop`.`all`"} {
				o.Select.Exclude = []string{name}
				if res, err := dump.Run(t.Context(), place(t), o); err != nil || res.Header.Tables != 1 {
					t.Errorf("without %s: got %+v, %v; want Tables 1", name, res.Header, err)
				}
			}
		})
	}
}
