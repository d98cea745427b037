package load_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/load"
)

// TestOrphans: tables that are not restored and refer to some that are appear in the plan; what their rows lost is counted at the end and is
// an error, whether the table existed or was gone, and also after a restore that was cut off.
func TestOrphans(t *testing.T) {
	for _, spec := range servers {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			node := lend(t, spec)
			s := stream(t, node)
			exec(t, s, "SET NAMES utf8mb4", "CREATE DATABASE shop CHARACTER SET utf8mb4", "USE shop", "CREATE TABLE customers (id INT PRIMARY KEY, zip INT, town VARCHAR(20), UNIQUE KEY (zip, town))", "INSERT INTO customers VALUES (1, 10, 'Köln'), (2, 20, 'Bonn')",
				"CREATE TABLE orders (id INT PRIMARY KEY, c INT, CONSTRAINT of_whom FOREIGN KEY (c) REFERENCES customers (id))", "INSERT INTO orders VALUES (1, 1), (2, 2), (3, NULL)")
			r := takeBackup(t, node, "shop")
			exec(t, s, "INSERT INTO customers VALUES (3, 30, 'Ulm'), (4, 40, 'Jena')", "CREATE DATABASE `c``rm` CHARACTER SET utf8mb4", "USE `c``rm`", "CREATE TABLE `vis its` (id INT PRIMARY KEY, `wh``o` INT, z INT, t VARCHAR(20), "+
				"CONSTRAINT `a``fk` FOREIGN KEY (`wh``o`) REFERENCES shop.customers (id) ON DELETE CASCADE, CONSTRAINT bfk FOREIGN KEY (z, t) REFERENCES shop.customers (zip, town))",
				"INSERT INTO `vis its` VALUES (1, 1, 10, 'Köln'), (2, 3, NULL, 'Ulm'), (3, 4, 40, 'Jena'), (4, NULL, 30, NULL)", "CREATE TABLE fine (id INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES shop.customers (id))", "INSERT INTO fine VALUES (1, 2)", "CREATE TABLE itself (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES itself (id))")
			var plan load.Plan
			o := load.Options{Repo: r, Into: target(t, node), Schemas: []string{"shop"}, Overwrite: true, Confirm: func(p load.Plan) error { plan = p; return nil }}
			others := []string{"`c``rm`.`vis its`", "`c``rm`.`fine`"}
			told := func(names ...string) {
				t.Helper()
				notes := strings.Join(plan.Notes, "\n")
				for _, n := range names {
					if !strings.Contains(notes, "table "+n+" is not restored and refers to `shop`.`customers`") {
						t.Errorf("the plan says nothing of %s: %q, want %q in it", n, plan.Notes, "table "+n+" is not restored and refers to `shop`.`customers`")
					}
				}
				if strings.Count(notes, "is not restored and refers") != len(names) {
					t.Errorf("not %d tables: %q", len(names), plan.Notes)
				}
			}
			o.DryRun = true
			if _, err := restore(t, o); err != nil {
				t.Fatal(err)
			}
			told(others...)
			o.DryRun = false
			check := func(o load.Options, others ...string) {
				t.Helper()
				res, err := restore(t, o)
				if !errors.Is(err, load.ErrOrphans) || len(res.Different) > 0 || res.LeftOutAll > 0 || len(res.Orphans) != 2 {
					t.Fatalf("%v: got %+v; want load.ErrOrphans, no res.Different, LeftOutAll at most 0, len(Orphans) 2", err, res)
				}
				told(others...)
				for i, want := range []struct{ rows, name, shows string }{{"2 rows of `c``rm`.`vis its` refer", "`a``fk`", "2|3||Ulm|\n3|4|40|Jena|\n"}, {"1 row of `c``rm`.`vis its` refers", "`bfk`", "3|4|40|Jena|\n"}} {
					got := res.Orphans[i]
					if words := got.Words(); words != want.rows+" to rows that `shop`.`customers` does not have ("+want.name+")" {
						t.Errorf("%s: got %s, want %s", want.name, words, want.rows+" to rows that `shop`.`customers` does not have ("+want.name+")")
					}
					if shown := ask(t, s, got.Query+" ORDER BY 1"); shown != want.shows {
						t.Errorf("%s shows %q, not %q", got.Query, shown, want.shows)
					}
				}
			}
			check(o, others...)
			// The table was dropped: nothing is in the way, and rows refer to it nevertheless.
			exec(t, s, "SET foreign_key_checks = 0", "DROP TABLE shop.customers", "SET foreign_key_checks = 1")
			alone := o
			alone.Schemas, alone.Tables, alone.Overwrite = nil, []string{"shop.customers"}, false
			check(alone, append(others, "`shop`.`orders`")...)
			// What is restored alone refers to what exists now: that is reported, and is no failure.
			exec(t, s, "SET foreign_key_checks = 0", "DELETE FROM shop.customers WHERE id = 2")
			alone.Tables, alone.Overwrite = []string{"shop.orders"}, true
			res, err := restore(t, alone)
			if err != nil || len(res.Notes) != 1 || res.Notes[0] != "1 row of `shop`.`orders` refers to rows that `shop`.`customers` does not have (`of_whom`)" {
				t.Errorf("%v: got %q; want len(res.Notes) 1, res.Notes[0] \"1 row of `shop`.`orders` refers to rows that `shop`.`customers` does not have (`of_whom`)\"",
					err, res.Notes)
			}
			told()
			exec(t, s, "DROP TABLE shop.customers", "DROP TABLE shop.orders")
			if res, err = restore(t, alone); err != nil || len(res.Notes) != 1 || res.Notes[0] != "2 rows of `shop`.`orders` refer to `shop`.`customers`, which is not there (`of_whom`)" {
				t.Errorf("%v: got %q; want len(res.Notes) 1, res.Notes[0] \"2 rows of `shop`.`orders` refer to `shop`.`customers`, which is not there (`of_whom`)\"",
					err, res.Notes)
			}
			// Everything is restored: there are no orphans.
			exec(t, s, "DROP DATABASE `c``rm`")
			if res, err = restore(t, o); err != nil || len(res.Notes) > 0 || len(res.Orphans) > 0 {
				t.Errorf("%v: got %+v; want no res.Notes, no res.Orphans", err, res)
			}
			told()
		})
	}
}

// TestMisfit: MySQL makes no table that a foreign key of another one does not fit; what the error advises works.
func TestMisfit(t *testing.T) {
	for _, spec := range []string{"mysql-9.7", "mysql-8.0", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			node := lend(t, spec)
			s := stream(t, node)
			exec(t, s, "CREATE DATABASE shop", "CREATE TABLE shop.customers (id INT PRIMARY KEY)", "INSERT INTO shop.customers VALUES (1)")
			r := takeBackup(t, node, "shop")
			exec(t, s, "DROP TABLE shop.customers", "CREATE TABLE shop.customers (id BIGINT PRIMARY KEY)", "CREATE DATABASE crm", "CREATE TABLE crm.visits (id INT PRIMARY KEY, who BIGINT, CONSTRAINT of_whom FOREIGN KEY (who) REFERENCES shop.customers (id))")
			o := load.Options{Repo: r, Into: target(t, node), Overwrite: true}
			if _, err := restore(t, o); err == nil || !strings.Contains(err.Error(), "drop that key, then run the same again") {
				t.Fatalf("got %v; want an error, \"drop that key, then run the same again\" in the error", err)
			}
			exec(t, s, "ALTER TABLE crm.visits DROP FOREIGN KEY of_whom")
			if res, err := restore(t, o); err != nil || !res.Resumed {
				t.Errorf("%v: got %+v; want Resumed true", err, res)
			}
		})
	}
}
