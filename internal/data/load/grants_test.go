package load_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
)

// TestRenameGrants: after a restore under other names each account sees the schemas that it saw, under their names, and no other one whose
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
			r := takeBackup(t, src)
			rename := map[string]string{"a_b": "n_w", "plain": "p_l", "x_y": "z_z"}
			var plan load.Plan
			o := load.Options{Repo: r, Into: target(t, into), Rename: []string{"a_b=n_w", "plain=p_l", "x_y=z_z"}, Confirm: func(p load.Plan) error { plan = p; return nil }}
			if res, err := restore(t, o); err != nil || len(res.LeftOut) > 0 {
				t.Fatalf("%v: got %+v; want none", err, res.LeftOut)
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
				if user == "new" && c.setting == "" { // its object is not renamed, and that is reported
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

// TestGrantsMean: what a GRANT says of a schema was a name where the server had partial_revokes, else a pattern, and that it means
// wherever it comes back: each account sees the schemas that it saw, and no other one.
func TestGrantsMean(t *testing.T) {
	t.Parallel()
	grants := map[string]string{"name": "a_b", "slash": "a\\_b", "rest": "a%", "plain": "plain"}
	names := lend(t, "mysql-9.7")
	other, old, maria := lend(t, "mysql-9.7"), lend(t, "mysql-8.0"), lend(t, "mariadb")
	fill := func(n *sandbox.Node) {
		s := stream(t, n)
		for _, name := range []string{"a_b", "axb", "plain"} {
			exec(t, s, "CREATE DATABASE "+name, "CREATE TABLE "+name+".t (a INT)")
		}
		for user, on := range grants {
			exec(t, s, "CREATE USER '"+user+"'@'localhost'", "GRANT SELECT ON `"+on+"`.* TO '"+user+"'@'localhost'")
		}
	}
	same := func(r *repo.Repo, from, into *sandbox.Node, what string, rename ...string) {
		t.Helper()
		var plan load.Plan
		o := load.Options{Repo: r, Into: target(t, into), Overwrite: true, SkipIncompatible: true, Rename: rename, Confirm: func(p load.Plan) error { plan = p; return nil }}
		if res, err := restore(t, o); err != nil && !errors.Is(err, load.ErrLeftOut) || slices.ContainsFunc(res.LeftOut, func(f load.Finding) bool { return f.What != "account risso@%" }) { // the sandbox's own
			t.Fatalf("%s: %v: %+v", what, err, res.LeftOut)
		}
		for user := range grants {
			want := sees(t, from, user)
			for i, name := range want {
				for _, r := range rename {
					if was, is, _ := strings.Cut(r, "="); name == was {
						want[i] = is
					}
				}
			}
			slices.Sort(want)
			if got := sees(t, into, user); !slices.Equal(got, want) {
				t.Errorf("%s: %s, with a GRANT on `%s`.*, sees %q, not %q", what, user, grants[user], got, want)
			}
		}
		if slices.ContainsFunc(plan.Notes, func(n string) bool {
			return strings.Contains(n, "partial_revokes") || strings.Contains(n, "with names like this")
		}) {
			t.Errorf("%s: told: %q", what, plan.Notes)
		}
	}
	exec(t, stream(t, names), "SET GLOBAL partial_revokes = ON")
	fill(names)
	if got := sees(t, names, "name"); !slices.Equal(got, []string{"a_b"}) {
		t.Fatalf("with partial_revokes a GRANT on `a_b` shows %q, want []string{\"a_b\"}", got)
	}
	for _, n := range []*sandbox.Node{other, old, maria} {
		exec(t, stream(t, n), "CREATE DATABASE a1b") // like a_b, and in no backup
	}
	named := takeBackup(t, names)
	same(named, names, maria, "names into MariaDB")
	same(named, names, old, "names into 8.0")
	same(named, names, other, "names into patterns")
	s := stream(t, other)
	exec(t, s, "DROP DATABASE a_b", "DROP DATABASE axb", "DROP DATABASE plain")
	same(named, names, other, "renamed names into patterns", "a_b=n_w", "plain=p_n")
	exec(t, s, "DROP DATABASE n_w", "DROP DATABASE axb", "DROP DATABASE p_n", "SET GLOBAL partial_revokes = ON")
	same(named, names, other, "names into names")
	exec(t, stream(t, old), "DROP DATABASE a1b", "DROP DATABASE a_b", "DROP DATABASE axb", "DROP DATABASE plain", "DROP USER name@localhost, slash@localhost, rest@localhost, plain@localhost")
	fill(old)
	same(takeBackup(t, old), old, other, "patterns into names")
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
	list = append(list, strings.Fields(strings.ReplaceAll(ask(t, s, "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME NOT IN ('information_schema', 'performance_schema', 'test') ORDER BY 1"), "|", " "))...)
	slices.Sort(list)
	return list
}
