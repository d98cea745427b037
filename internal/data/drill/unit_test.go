package drill

import (
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sandbox"
)

func TestParseChecks(t *testing.T) {
	list, err := ParseChecks(`-- what has to be there
-- expect: > 10
SELECT COUNT(*)
  FROM shop.orders; -- no end of a statement
WHERE x = ';';

# a comment
SELECT 1;
-- expect: no rows
SELECT 'a;
b' FROM t`)
	if err != nil {
		t.Fatal(err)
	}
	want := []Check{{"SELECT COUNT(*)\n  FROM shop.orders; -- no end of a statement\nWHERE x = ';'", "> 10"}, {"SELECT 1", ""}, {"SELECT 'a", "no rows"}, {"b' FROM t", ""}}
	if len(list) != len(want) {
		t.Fatalf("got %q, want length %v", list, len(want))
	}
	for i := range want {
		if list[i] != want[i] {
			t.Errorf("%q, not %q", list[i], want[i])
		}
	}
	for _, bad := range []string{"-- expect: > many\nSELECT 1;", "SELECT 1\n-- expect: 2\n;", "-- expect: /(/\nSELECT 1;"} {
		if _, err := ParseChecks(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if c, err := ParseCheck("SELECT a=>b FROM t; => 5"); err != nil || c != (Check{"SELECT a=>b FROM t", "5"}) {
		t.Errorf("got %q, %v; want Check{\"SELECT a=>b FROM t\", \"5\"}", c, err)
	}
	if _, err := ParseCheck(" => 5"); err == nil {
		t.Error("an empty question is taken")
	}
}

func TestMeets(t *testing.T) {
	rows := func(cells ...string) (out [][]*string) {
		for _, c := range cells {
			var row []*string
			for _, v := range strings.Split(c, "\t") {
				if v == "NULL" {
					row = append(row, nil)
				} else {
					row = append(row, &v)
				}
			}
			out = append(out, row)
		}
		return out
	}
	for _, c := range []struct {
		expect string
		rows   [][]*string
		want   bool
	}{
		{"", rows("1"), true}, {"", rows("0"), false}, {"", rows("0.0"), false}, {"", rows("NULL"), false}, {"", rows(""), false}, {"", nil, false}, {"true", rows("yes"), true},
		{"42", rows("42"), true}, {"42", rows("42", "42"), false}, {"42", rows("142"), false}, {"NULL", rows("NULL"), true}, {"a\\tb", rows("a\tb"), true},
		{"> 1000", rows("1001"), true}, {">1000", rows("1000"), false}, {">= 1000", rows("1000"), true}, {"<= -1", rows("-1.5"), true}, {"!= 0", rows("0"), false}, {"< 5", rows("NULL"), false}, {"< 5", nil, false},
		{"rows", rows("0"), true}, {"rows", nil, false}, {"no rows", nil, true}, {"no rows", rows("NULL"), false},
		{"/^a+$/", rows("aaa"), true}, {"/^a+$/", rows("ab"), false}, {"/b/", rows("a", "b"), true},
	} {
		if got := meets(c.expect, c.rows); got != c.want {
			t.Errorf("%q of %q: %v, want %v", c.expect, answerOf(c.rows), got, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	server := func(f sandbox.Family, v string) sandbox.Server {
		return sandbox.Server{Name: string(f) + "-" + v, Family: f, Version: v}
	}
	all := []sandbox.Server{server("mariadb", "11.4.2"), server("mariadb", "10.11.19"), server("mariadb", "10.6.1"), server("mysql", "9.7.4-2"), server("mysql", "8.0.15"), server("mysql", "8.0.40"), server("mysql", "5.7.22")}
	for _, c := range []struct {
		flavour fleet.Flavour
		number  fleet.Version
		want    string
	}{
		{"MariaDB", 101119, "mariadb-10.11.19"}, {"MariaDB", 101103, "mariadb-10.11.19"}, {"MariaDB", 101124, "mariadb-10.11.19"}, {"MariaDB", 100500, "mariadb-10.6.1"}, {"MariaDB", 110000, "mariadb-11.4.2"}, {"MariaDB", 120000, "mariadb-11.4.2"},
		{"MySQL", 80015, "mysql-8.0.15"}, {"MySQL", 80030, "mysql-8.0.40"}, {"MySQL", 80041, "mysql-8.0.40"}, {"MySQL", 80400, "mysql-9.7.4-2"}, {"Percona Server", 50740, "mysql-5.7.22"},
	} {
		h := repo.Header{Server: repo.Server{Server: fleet.Server{Flavour: c.flavour, Number: c.number}}}
		got, ok := pick(all, h)
		if !ok || got.Name != c.want {
			t.Errorf("got %s %d: %s; want ok true, got.Name %s", c.flavour, c.number, got.Name, c.want)
		}
		h.Kind = repo.Physical
		if _, _, err := fits(got, h); (err == nil) != (got.Kind().Number/100 == c.number/100) {
			t.Errorf("%s %d, physical, on %s: %v", c.flavour, c.number, got.Name, err)
		}
	}
	if s, ok := pick(all[:3], repo.Header{Server: repo.Server{Server: fleet.Server{Flavour: "MySQL", Number: 80015}}}); ok {
		t.Errorf("got %v, want ok false", s)
	}
}

func TestDifferentCounts(t *testing.T) {
	was := Counted{Tables: 2, Rows: 5, Each: map[string]int64{"a": 2, "b": 3}}
	for _, c := range []struct {
		is   Counted
		want string
	}{
		{was, ""},
		{Counted{Tables: 2, Rows: 5, Each: map[string]int64{"a": 3, "b": 2}}, "a has 3 rows, it had 2; b has 2 rows, it had 3"},
		{Counted{Tables: 2, Rows: 3, Each: map[string]int64{"a": 2, "c": 1}}, "b is missing, it had 3 rows; c with 1 row was not there"},
		{Counted{Tables: 2, Rows: 5}, ""},
		{Counted{Tables: 2, Rows: 6}, "2 tables with 6 rows, there were 2 with 5"},
	} {
		if got := strings.Join(differentCounts(was, c.is), "; "); got != c.want {
			t.Errorf("got %+v: %q, want %q", c.is, got, c.want)
		}
	}
}
