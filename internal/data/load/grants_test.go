package load_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
)

// TestRenameGrants: behind a restore under other names each account sees the schemas that it saw, under their names, and no other one whose
// name is only like theirs.
func TestRenameGrants(t *testing.T) {
	grants := map[string]string{"exact": "a\\_b", "pattern": "a_b", "both": "x_y", "all": "a%", "plain": "plain", "none": "other_", "new": "n_w"}
	for _, c := range []struct{ name, spec, setting string }{{"mariadb", "mariadb", ""}, {"mariadb-11.8", "mariadb-11.8", ""}, {"mysql-9.7", "mysql-9.7", ""}, {"mysql-9.7, partial_revokes", "mysql-9.7", "partial_revokes=ON"}, {"mysql-8.0", "mysql-8.0", ""}, {"mysql-5.7", "mysql-5.7", ""}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			src, into := lend(t, c.spec), lend(t, c.spec)
			s, d := stream(t, src), stream(t, into)
			if c.setting != "" {
				exec(t, d, "SET GLOBAL "+c.setting)
			}
			for _, name := range []string{"a_b", "x_y", "x1y", "plain", "other1"} {
				exec(t, s, "CREATE DATABASE "+name, "CREATE TABLE "+name+".t (a INT)")
			}
			for user, on := range grants {
				exec(t, s, "CREATE USER '"+user+"'@'localhost'", "GRANT SELECT ON `"+on+"`.* TO '"+user+"'@'localhost'")
			}
			exec(t, s, "GRANT SELECT ON `a_b`.`t` TO 'none'@'localhost'") // there a name is a name
			exec(t, d, "CREATE DATABASE nxw", "CREATE DATABASE p1l", "CREATE DATABASE axb", "CREATE DATABASE x2y", "CREATE DATABASE z1z")
			r, _ := emptyRepo(t)
			if _, err := dump.Run(t.Context(), r, dump.Options{Target: target(t, src), Threads: 1}); err != nil {
				t.Fatal(err)
			}
			rename := map[string]string{"a_b": "n_w", "plain": "p_l", "x_y": "z_z"}
			var plan load.Plan
			o := load.Options{Repo: r, Into: target(t, into), Rename: []string{"a_b=n_w", "plain=p_l", "x_y=z_z"}, Confirm: func(p load.Plan) error { plan = p; return nil }}
			if res, err := restore(t, o); err != nil || len(res.LeftOut) > 0 {
				t.Fatalf("%v: %+v", err, res.LeftOut)
			}
			for user := range grants {
				var want []string
				for _, name := range sees(t, src, user) {
					if to, ok := rename[name]; ok {
						name = to
					}
					want = append(want, name)
				}
				switch user {
				case "all": // for good: of what is like it
					want = append(want, "axb")
				case "both": // the pattern stays for x1y
					want = append(want, "x2y")
				}
				if c.setting != "" {
					want = slices.DeleteFunc(want, func(s string) bool { return s == "axb" || s == "x2y" })
				}
				if user == "new" && c.setting == "" { // what it is on stays as it is, and is told
					want = []string{"n_w", "nxw"}
				}
				slices.Sort(want)
				if got := sees(t, into, user); !slices.Equal(got, want) {
					t.Errorf("%s, with a GRANT on `%s`.*, sees %q, not %q", user, grants[user], got, want)
				}
			}
			told := func(pattern string) bool {
				return slices.ContainsFunc(plan.Notes, func(n string) bool {
					return strings.Contains(n, "a grant on all schemas with names like this") && strings.HasSuffix(n, "`"+pattern+"`")
				})
			}
			if c.setting == "" && (!told("a%") || !told("x_y") || told("a_b")) {
				t.Errorf("told: %q", plan.Notes)
			}
		})
	}
}

// sees are the schemas that a user without a password sees.
func sees(t *testing.T, n *sandbox.Node, user string) (list []string) {
	t.Helper()
	_, at, _ := strings.Cut(n.DSN, "@")
	tg, err := mysql.ParseTarget(user + "@" + at)
	if err != nil {
		t.Fatal(err)
	}
	s, err := tg.ConnectStream(t.Context(), mysql.StreamOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, line := range strings.Fields(strings.ReplaceAll(ask(t, s, "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME NOT IN ('information_schema', 'performance_schema', 'test') ORDER BY 1"), "|", " ")) {
		list = append(list, line)
	}
	slices.Sort(list)
	return list
}
