package read

import (
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/audit/accounts"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestEveryRule: each rule sec.* but sec.differs (TestDiffers) is broken on a real server and found; each statement that is proposed is run, takes
// its finding away, and its undo brings it back.
func TestEveryRule(t *testing.T) {
	found, mended := map[string]bool{}, map[string]bool{}
	for spec, own := range map[string][]string{
		"mariadb-10.11": {"GRANT SELECT ON s.* TO PUBLIC", "CREATE USER old@'10.1.1.1' IDENTIFIED VIA mysql_native_password USING PASSWORD('aG00d-third')"},
		"mysql-9.7":     {"CREATE USER old@'10.1.1.1' IDENTIFIED WITH sha256_password BY 'aG00d-third'"},
	} {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Lend(t, spec, "performance_schema=ON")
			c := sandboxtest.Connect(t, n)
			ctx := t.Context()
			for _, q := range append([]string{
				"CREATE DATABASE s", "CREATE USER ''@'10.2.%'", "CREATE USER 'empty'@'10.%'", "CREATE USER weak@'10.1.1.1' IDENTIFIED BY 'Weak1'", "CREATE USER twin@'10.1.1.1' IDENTIFIED BY 'only in the list'",
				"CREATE USER other@'10.1.1.1' IDENTIFIED BY 'only in the list'", "CREATE USER seen@'%' IDENTIFIED BY 'aG00d-one'", "GRANT CREATE USER, DROP ON *.* TO seen@'%'",
			}, own...) {
				if err := c.Exec(ctx, q); err != nil {
					t.Fatalf("%s: %v", q, err)
				}
			}
			if c.Server.SeveralLogins() {
				defer func() {
					if err := c.Exec(ctx, "REVOKE SELECT ON s.* FROM PUBLIC"); err != nil {
						t.Error(err)
					}
				}()
			}
			target, err := mysql.ParseTarget("seen:aG00d-one@unix(" + sandboxtest.Target(t, n).Socket() + ")/")
			if err != nil {
				t.Fatal(err)
			}
			s, err := target.ConnectStream(ctx, mysql.StreamOptions{})
			if err != nil {
				t.Fatal(err)
			}
			s.Close()
			r := audit(t, time.Minute, []string{"only in the list"}, time.Now(), n)
			for _, f := range r.Findings {
				found[f.ID] = true
				mended[f.ID] = mended[f.ID] || f.Statement != ""
			}
			if f, _ := has(r, "sec.host", "seen@%"); f.Statement != "RENAME USER 'seen'@'%' TO 'seen'@'localhost'" {
				t.Errorf("seen from one host: got %+v, want that host", f)
			}
			mend(t, c, n, r)
		})
	}
	for _, k := range accounts.Rules() {
		if strings.HasPrefix(k.ID, "sec.") && k.ID != "sec.differs" && !found[k.ID] {
			t.Errorf("%s was not found on any server", k.ID)
		}
	}
	for _, id := range []string{"sec.no_password", "sec.anonymous", "sec.super_remote", "sec.host", "sec.tls"} {
		if !mended[id] {
			t.Errorf("%s had no statement", id)
		}
	}
}

// TestMandatory: what a mandatory role may, every account may; SHOW GRANTS does not say so.
func TestMandatory(t *testing.T) {
	n := sandboxtest.Lend(t, "mysql-9.7")
	c := sandboxtest.Connect(t, n)
	for _, q := range []string{"CREATE ROLE 'in, side', 'out`er'", "GRANT FILE ON *.* TO 'in, side'", "GRANT 'in, side' TO 'out`er'", "CREATE USER plain@'10.1.1.1' IDENTIFIED BY 'aG00d-one'", "SET GLOBAL mandatory_roles = '`out``er`@`%`, `in, side`'"} {
		if err := c.Exec(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	defer func() {
		if err := c.Exec(t.Context(), "SET GLOBAL mandatory_roles = ''"); err != nil {
			t.Error(err)
		}
	}()
	r := audit(t, 0, nil, time.Now(), n)
	f, ok := has(r, "sec.super", "plain@10.1.1.1")
	if !ok || !strings.Contains(f.Evidence, "FILE") || !strings.Contains(f.Evidence, "in, side") {
		t.Errorf("an account with a mandatory role that has FILE: got %+v, want sec.super by that role", f)
	}
	for _, role := range []string{"in, side@%", "out`er@%"} {
		if f, ok := has(r, "sec.super", role); ok {
			t.Errorf("of a role: got %+v, want none", f)
		}
	}
}
