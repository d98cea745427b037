package accounts_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/audit/accounts"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

// planted are accounts with one fault each, by server.
var planted = map[string][]string{
	"": {
		"CREATE USER `empty`@'%'",
		"CREATE USER `o'dd \"n`@localhost",
		"CREATE USER guessed@'10.%' IDENTIFIED BY 'password'",
		"CREATE USER named@'10.%' IDENTIFIED BY 'named123'",
		"CREATE USER boss@'%' IDENTIFIED BY 'Xk3!long-and-strange'",
		"GRANT ALL ON *.* TO boss@'%' WITH GRANT OPTION",
		"CREATE USER fine@'10.1.2.3' IDENTIFIED BY 'Yk3!long-and-strange'",
		"CREATE USER gone@'%' ACCOUNT LOCK",
		"CREATE ROLE readers",
	},
	"mariadb": {
		"CREATE USER ''@'db9'",
		"CREATE USER twin1@'10.%' IDENTIFIED BY 'Zk3!long-and-strange'", "CREATE USER twin2@'10.%' IDENTIFIED BY 'Zk3!long-and-strange'",
		"INSTALL SONAME 'auth_ed25519'",
		"CREATE USER ed@'10.%' IDENTIFIED VIA ed25519 USING PASSWORD('qwerty')",
		"CREATE USER two@'10.%' IDENTIFIED VIA ed25519 USING PASSWORD('Ak3!long-and-strange') OR mysql_native_password USING PASSWORD('letmein')",
	},
	"mysql-8.0": {
		"CREATE USER nat@'10.%' IDENTIFIED WITH mysql_native_password BY 'qwerty'",
		"CREATE USER sha@'10.%' IDENTIFIED WITH sha256_password BY 'qwerty'",
		"CREATE USER twin1@'10.%' IDENTIFIED WITH mysql_native_password BY 'Zk3!long-and-strange'", "CREATE USER twin2@'10.%' IDENTIFIED WITH mysql_native_password BY 'Zk3!long-and-strange'",
	},
	"mysql-9.7": {"CREATE USER sha@'10.%' IDENTIFIED WITH sha256_password BY 'qwerty'"},
}

// expected are the findings, but those about root, the harness' own account.
var expected = map[string][]string{
	"": {"sec.no_password empty@%", "sec.no_password o'dd \"n@localhost", "sec.weak_password guessed@10.%", "sec.weak_password named@10.%", "sec.super_remote boss@%"},
	"mariadb": {"sec.anonymous @db9", "sec.no_password @db9", "sec.shared_password twin1@10.%", "sec.shared_password twin2@10.%", "sec.weak_password ed@10.%", "sec.weak_password two@10.%",
		"pci.lockout max_password_errors", "sec.tls require_secure_transport"},
	"mysql-8.0": {"sec.weak_password nat@10.%", "sec.weak_password sha@10.%", "sec.shared_password twin1@10.%", "sec.shared_password twin2@10.%", "sec.tls require_secure_transport"},
	"mysql-9.7": {"sec.weak_password sha@10.%", "sec.tls require_secure_transport"},
}

// TestJudge: what is planted is found, and of sound accounts nothing; each statement runs, and its finding is gone; each undo runs.
func TestJudge(t *testing.T) {
	for _, kind := range []string{"mariadb", "mysql-9.7", "mysql-8.0"} {
		t.Run(kind, func(t *testing.T) {
			node := sandboxtest.Lend(t, kind)
			c := sandboxtest.Connect(t, node)
			for _, q := range slices.Concat(planted[""], planted[kind]) {
				if err := c.Exec(t.Context(), q); err != nil {
					t.Fatalf("%s: %v", q, err)
				}
			}
			target := sandboxtest.Target(t, node)
			list := judge(t, target, nil)
			got := idsOf(list, func(f fleet.Advice) bool {
				return !strings.HasPrefix(f.Object, "root@") && !strings.HasPrefix(f.Object, "risso@") && f.ID != "sec.weak_auth" && (f.ID != "pci.lockout" || !strings.Contains(f.Object, "@"))
			})
			want := slices.Concat(expected[""], expected[kind])
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			for _, f := range list {
				if strings.HasPrefix(f.Object, "fine@") && f.ID != "pci.lockout" && f.ID != "sec.weak_auth" || strings.HasPrefix(f.Object, "gone@") || strings.HasPrefix(f.Object, "readers") {
					t.Errorf("accused: %s %s: %s", f.ID, f.Object, f.What)
				}
				if strings.HasPrefix(f.Object, "root@") && strings.Contains(f.Statement, "LOCK") {
					t.Errorf("root would be locked out: %s", f.Statement)
				}
				if f.Statement == "" || strings.HasPrefix(f.Object, "root@") || strings.HasPrefix(f.Object, "risso@") || f.ID == "sec.tls" || f.ID == "pci.lockout" && strings.Contains(f.Object, "@") && f.Object != "fine@10.1.2.3" {
					continue
				}
				if err := c.Exec(t.Context(), f.Statement); err != nil {
					t.Errorf("%s: %v", f.Statement, err)
				}
				for _, g := range judge(t, target, []string{}) {
					if g.ID == f.ID && g.Object == f.Object {
						t.Errorf("after %s there is still %s", f.Statement, g.What)
					}
				}
				if f.Undo != "" {
					if err := c.Exec(t.Context(), f.Undo); err != nil {
						t.Errorf("%s: %v", f.Undo, err)
					}
				}
			}
		})
	}
}

// judge looks at a server with a list of passwords, nil is the built-in one.
func judge(t *testing.T, target mysql.Target, list []string) []fleet.Advice {
	t.Helper()
	s, err := accounts.Read(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	p := accounts.PCI()
	p.Passwords = list
	j := accounts.Judge(t.Context(), s, p)
	if len(j.Missing) > 0 {
		t.Errorf("missing: %+v", j.Missing)
	}
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	text = fmt.Appendf(text, "%v %+v %#v", s, s, s)
	for _, a := range s.Accounts {
		for _, w := range a.Ways {
			if h := string(w.Hash); h != "" && strings.Contains(string(text), h) {
				t.Errorf("the hash of %s can be seen", a.Name())
			}
		}
	}
	return j.Findings
}

func idsOf(list []fleet.Advice, want func(fleet.Advice) bool) (out []string) {
	for _, f := range list {
		if want(f) {
			out = append(out, f.ID+" "+f.Object)
		}
	}
	slices.Sort(out)
	return out
}

// TestAge: a password's age is told against the policy, by the time that is passed in.
func TestAge(t *testing.T) {
	node := sandboxtest.Lend(t, "mysql-9.7")
	c := sandboxtest.Connect(t, node)
	if err := c.Exec(t.Context(), "CREATE USER app@'10.%' IDENTIFIED BY 'Yk3!long-and-strange'"); err != nil {
		t.Fatal(err)
	}
	s, err := accounts.Read(t.Context(), sandboxtest.Target(t, node))
	if err != nil {
		t.Fatal(err)
	}
	for days, want := range map[int]bool{89: false, 91: true} {
		s.Now = time.Now().Add(time.Duration(days) * 24 * time.Hour)
		found := idsOf(accounts.Judge(t.Context(), s, accounts.PCI()).Findings, func(f fleet.Advice) bool { return f.ID == "pci.password_age" && f.Object == "app@10.%" })
		if (len(found) == 1) != want {
			t.Errorf("after %d days: got %q, want found %v", days, found, want)
		}
	}
}

// TestBlind: an account without privileges is told what it may not see, and that is all.
func TestBlind(t *testing.T) {
	for _, kind := range []string{"mariadb", "mysql-9.7"} {
		node := sandboxtest.Lend(t, kind)
		c := sandboxtest.Connect(t, node)
		if err := c.Exec(t.Context(), "CREATE USER low@'%' IDENTIFIED BY 'pw'"); err != nil {
			t.Fatal(err)
		}
		target, err := mysql.ParseTarget("low:pw@unix(" + node.Socket + ")/")
		if err != nil {
			t.Fatal(err)
		}
		s, err := accounts.Read(t.Context(), target)
		if err != nil || len(s.Missing) != 1 {
			t.Fatalf("%s: missing %+v, %v; want that accounts are", kind, s.Missing, err)
		}
		if err := c.Exec(t.Context(), s.Missing[0].Remedy); err != nil {
			t.Error(err)
		}
		if s, err = accounts.Read(t.Context(), target); err != nil || len(s.Missing) > 0 {
			t.Errorf("%s: after the remedy: missing %+v, %v", kind, s.Missing, err)
		}
	}
}
