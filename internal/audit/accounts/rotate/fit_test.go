package rotate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/audit/accounts/read"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestOneAtATime: of two rotations that were planned at once one goes on; the other touches neither server nor store.
func TestOneAtATime(t *testing.T) {
	for _, spec := range []string{"mariadb-10.11", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Lend(t, spec)
			c := sandboxtest.Connect(t, n)
			ctx := t.Context()
			if err := c.Exec(ctx, "CREATE USER u@'%' IDENTIFIED BY 'old'"); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			plan := func(name string) *Rotation {
				r, err := Prepare(ctx, Options{Source: read.Source{Name: "db1", Target: sandboxtest.Target(t, n)}, Account: "'u'@'%'", Store: "cat >'" + filepath.Join(dir, name) + "'"})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(r.Close)
				return r
			}
			first, second := plan("first"), plan("second")
			if _, err := c.Text(ctx, "SELECT GET_LOCK('risso.accounts.rotate', 0)"); err != nil {
				t.Fatal(err)
			}
			if _, err := first.Run(ctx, dir); err == nil || !strings.Contains(err.Error(), "another rotation runs") {
				t.Errorf("while another one runs: got %v, want that it does", err)
			}
			if _, err := c.Text(ctx, "SELECT RELEASE_LOCK('risso.accounts.rotate')"); err != nil {
				t.Fatal(err)
			}
			if _, err := first.Run(ctx, dir); err != nil {
				t.Fatal(err)
			}
			first.Close()
			if _, err := second.Run(ctx, dir); err == nil || !strings.Contains(err.Error(), "nothing was changed") {
				t.Errorf("the second of two: got %v, want that nothing was changed", err)
			}
			if _, err := os.Stat(filepath.Join(dir, "second")); err == nil {
				t.Error("the store has the password of the second")
			}
			text, err := os.ReadFile(filepath.Join(dir, "first"))
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range []string{"old", strings.TrimSuffix(string(text), "\n")} {
				s, err := as(t, n, "u", p).ConnectStream(ctx, mysql.StreamOptions{})
				if err != nil {
					t.Fatal(err)
				}
				s.Close()
			}
		})
	}
}

// TestRefusedBefore: what the server would refuse, or what would break it, is refused before anything has the new password.
func TestRefusedBefore(t *testing.T) {
	for _, x := range []struct{ spec, set, password, want string }{
		{"mariadb-10.11", "SET GLOBAL read_only = ON", "", "read_only is ON"},
		{"mysql-9.7", "SET GLOBAL super_read_only = ON", "", "super_read_only is ON"},
		{"mysql-5.7", "SET GLOBAL read_only = ON", "", "read_only is ON"},
		{"mariadb-10.11", "INSTALL SONAME 'simple_password_check'", "", "strict_password_validation is ON"},
		{"mariadb-10.11", "SET GLOBAL strict_password_validation = OFF", "short", "simple_password_check_"},
		{"mysql-9.7", "INSTALL COMPONENT 'file://component_validate_password'", "onlyletters", "validate_password."},
	} {
		t.Run(x.spec+x.want, func(t *testing.T) {
			n := sandboxtest.Lend(t, x.spec)
			c := sandboxtest.Connect(t, n)
			ctx := t.Context()
			run := func(q string) {
				t.Helper()
				if err := c.Exec(ctx, q); err != nil && !strings.Contains(err.Error(), "already") {
					t.Fatalf("%s: %v", q, err)
				}
			}
			run("CREATE USER u@'%' IDENTIFIED BY 'The-old-0ne'")
			end := map[string]string{"SET GLOBAL strict_password_validation = OFF": "UNINSTALL SONAME 'simple_password_check'", "INSTALL SONAME 'simple_password_check'": "UNINSTALL SONAME 'simple_password_check'",
				"INSTALL COMPONENT 'file://component_validate_password'": "UNINSTALL COMPONENT 'file://component_validate_password'", "SET GLOBAL read_only = ON": "SET GLOBAL read_only = OFF"}[x.set]
			if end == "" {
				end = "SET GLOBAL super_read_only = OFF, GLOBAL read_only = OFF"
			}
			if strings.Contains(x.set, "strict_password_validation") {
				run("INSTALL SONAME 'simple_password_check'")
			}
			run(x.set)
			defer run(end)
			o := Options{Source: read.Source{Name: "db1", Target: sandboxtest.Target(t, n)}, Account: "u@%", Password: x.password}
			if _, err := Prepare(ctx, o); err == nil || !strings.Contains(err.Error(), x.want) || x.password != "" && strings.Contains(err.Error(), x.password) {
				t.Errorf("got %v, want %s", err, x.want)
			}
			if x.password == "" {
				return
			}
			o.Password = "A-long-0ne-that-all-allow"
			r, err := Prepare(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if _, err := r.Run(ctx, t.TempDir()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMissing: an account that is not there is told with those of its name.
func TestMissing(t *testing.T) {
	n := sandboxtest.Lend(t, "mysql-9.7")
	c := sandboxtest.Connect(t, n)
	for _, q := range []string{"CREATE USER u@'10.%' IDENTIFIED BY 'old'", "CREATE ROLE r"} {
		if err := c.Exec(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	for account, want := range map[string]string{"u": "u@10.%", "u@%": "u@10.%", "nobody@%": "user@host", "r@%": "is a role"} {
		_, err := Prepare(t.Context(), Options{Source: read.Source{Name: "db1", Target: sandboxtest.Target(t, n)}, Account: account, Password: "x"})
		if err == nil || !strings.Contains(told(err), want) {
			t.Errorf("%s: got %v, want %s", account, told(err), want)
		}
	}
}

// told is an error with its remedy.
func told(err error) string {
	if err == nil {
		return ""
	}
	return err.Error() + " (" + fleet.RemedyOf(err) + ")"
}
