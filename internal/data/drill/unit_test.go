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

// TestFits: a physical backup is for servers of its series only.
func TestFits(t *testing.T) {
	for _, c := range []struct {
		family   sandbox.Family
		version  string
		flavour  fleet.Flavour
		number   fleet.Version
		physical bool
	}{
		{"mariadb", "10.11.19", "MariaDB", 101103, true}, {"mariadb", "10.6.1", "MariaDB", 100500, false}, {"mysql", "8.0.40", "MySQL", 80041, true}, {"mysql", "9.7.4-2", "MySQL", 80400, false}, {"mysql", "5.7.22", "Percona Server", 50740, true},
	} {
		h := repo.Header{Kind: repo.Physical, Server: repo.Server{Server: fleet.Server{Flavour: c.flavour, Number: c.number}}}
		if _, _, err := fits(sandbox.Server{Family: c.family, Version: c.version}, h); (err == nil) != c.physical {
			t.Errorf("%s %d, physical, on %s: got %v, want it taken: %t", c.flavour, c.number, c.version, err, c.physical)
		}
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
