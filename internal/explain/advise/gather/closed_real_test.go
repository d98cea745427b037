package gather_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/explain/advise/gather"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestClosed: where tables are not opened the same is found in the same words, but for BIGINT columns that are nearly used up, which is said. An account
// that may not ask InnoDB, and MySQL, have all tables opened.
func TestClosed(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			node := sandboxtest.Lend(t, kind)
			c := sandboxtest.Connect(t, node)
			run(t, c, "CREATE DATABASE f DEFAULT CHARACTER SET utf8mb4", "SET SESSION foreign_key_checks = 0, sql_mode = 'NO_ENGINE_SUBSTITUTION'")
			for _, f := range faults {
				if err := c.Exec(t.Context(), ofMonth(f.plant)); err != nil {
					t.Logf("%s: %v", f.plant, err)
				}
			}
			run(t, c, "CREATE TABLE f.used (n INT NOT NULL AUTO_INCREMENT PRIMARY KEY) ENGINE=InnoDB AUTO_INCREMENT=2147483000", "CREATE TABLE f.`big one-ü` (n BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY) ENGINE=InnoDB AUTO_INCREMENT=9223372036854775000",
				"CREATE TABLE f.`no-key ü` (n INT) ENGINE=InnoDB", "CREATE TABLE f.twice (a INT PRIMARY KEY, b INT, KEY k1 (b), KEY k2 (b)) ENGINE=InnoDB", "CREATE TABLE f.unmeasured (a INT PRIMARY KEY) ENGINE=InnoDB STATS_PERSISTENT=0",
				"CREATE TABLE f.`odd-ä` (a INT PRIMARY KEY) ENGINE=InnoDB ROW_FORMAT=COMPRESSED",
				// Names that are not what they look like in the names of files, and statistics that are gone.
				"CREATE DATABASE `f/ü#P#x`", "CREATE TABLE `f/ü#P#x`.`t#P#p0` (n INT NOT NULL AUTO_INCREMENT PRIMARY KEY) ENGINE=InnoDB AUTO_INCREMENT=2147483000", "CREATE TABLE `f/ü#P#x`.`o@002f d'd` (a INT PRIMARY KEY) ENGINE=InnoDB ROW_FORMAT=COMPACT",
				"CREATE TABLE `f/ü#P#x`.`T` (n TINYINT NOT NULL AUTO_INCREMENT PRIMARY KEY) ENGINE=InnoDB AUTO_INCREMENT=126", "CREATE TABLE `f/ü#P#x`.lost (n INT) ENGINE=InnoDB ROW_FORMAT=REDUNDANT", "DELETE FROM mysql.innodb_table_stats WHERE table_name IN ('lost', 'T')",
				"CREATE USER 'few'@'localhost'", "GRANT SELECT, SHOW VIEW, TRIGGER, EVENT ON *.* TO 'few'@'localhost'")
			look := func(user string, closed int) (list []advise.Finding, unread bool) {
				target := sandboxtest.Target(t, node)
				if user != "" {
					var err error
					if target, err = mysql.ParseTarget(user + "@unix(" + target.Socket() + ")/"); err != nil {
						t.Fatal(err)
					}
				}
				a, err := gather.Look(t.Context(), target, gather.Options{NoLoad: true, Closed: closed})
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range a.Missing {
					unread = unread || strings.Contains(m.Why, "BIGINT")
				}
				return slices.DeleteFunc(a.Findings, func(f advise.Finding) bool {
					return !strings.HasPrefix(f.Object, "f.") && !strings.HasPrefix(f.Object, "f/ü#P#x.")
				}), unread
			}
			all, unread := look("", 1000)
			if unread || !slices.Contains(short(all), "schema.autoinc f/ü#P#x.t#P#p0.n") || !slices.Contains(short(all), "schema.row_format f/ü#P#x.o@002f d'd") || !slices.Contains(short(all), "schema.autoinc big one-ü.n") || !slices.Contains(short(all), "schema.autoinc used.n") {
				t.Fatalf("opened: got %q, unread %v; want both columns that are used up", short(all), unread)
			}
			if few, unread := look("few", 10); unread || !slices.Contains(short(few), "schema.autoinc big one-ü.n") {
				t.Errorf("without PROCESS: got %q, unread %v; want what is found with all tables opened", short(few), unread)
			}
			got, unread := look("", 10)
			want := all
			if strings.HasPrefix(kind, "mariadb") {
				want = slices.DeleteFunc(slices.Clone(all), func(f advise.Finding) bool { return f.Object == "f.big one-ü.n" })
				if !unread {
					t.Error("not opened: it is not said that values of BIGINT columns were not read")
				}
			}
			if !slices.Equal(short(got), short(want)) {
				t.Fatalf("not opened: found %q,\nwant %q", short(got), short(want))
			}
			for _, f := range want {
				if i := slices.IndexFunc(got, func(g advise.Finding) bool { return g.ID == f.ID && g.Object == f.Object }); i < 0 || !reflect.DeepEqual(got[i], f) {
					t.Errorf("not opened: got %+v,\nwant %+v", got, f)
				}
			}
		})
	}
}
