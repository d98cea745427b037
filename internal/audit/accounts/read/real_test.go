package read

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/audit/accounts"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

func audit(t *testing.T, budget time.Duration, words []string, now time.Time, nodes ...*sandbox.Node) accounts.Report {
	t.Helper()
	policy, err := Policy("")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Policy: policy, Budget: budget, Words: words}
	for i, n := range nodes {
		o.Sources = append(o.Sources, Source{Name: fmt.Sprintf("db%d", i+1), Target: sandboxtest.Target(t, n)})
	}
	r, err := Audit(t.Context(), o, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Servers {
		if s.Error != "" {
			t.Fatal(s.Error)
		}
	}
	return r
}

// has reports whether there is such a finding, and returns it.
func has(r accounts.Report, id, object string) (accounts.Finding, bool) {
	i := slices.IndexFunc(r.Findings, func(f accounts.Finding) bool { return f.ID == id && f.Object == object })
	if i < 0 {
		return accounts.Finding{}, false
	}
	return r.Findings[i], true
}

// planted are accounts that are wrong, made on every server.
var planted = []string{
	`CREATE USER 'empty'@'10.%'`,
	`CREATE USER 'w"e''ak` + "`" + ` ü'@'%' IDENTIFIED BY 'letmein'`,
	`CREATE USER 'own'@'10.1.1.1' IDENTIFIED BY 'Own123!'`,
	`CREATE USER 'good'@'10.1.1.1' IDENTIFIED BY 'aG00d-one-nobody-tries'`,
	`CREATE USER 'listed'@'10.1.1.1' IDENTIFIED BY 'only in the list'`,
	`CREATE USER 'twin'@'10.1.1.1' IDENTIFIED BY 'only in the list'`,
	`CREATE USER 'boss'@'%' IDENTIFIED BY 'aG00d-one-too'`,
	`GRANT CREATE USER, FILE ON *.* TO 'boss'@'%'`,
	`CREATE USER 'definer'@'%'`,
	`CREATE DATABASE s`,
	`CREATE DEFINER = 'definer'@'%' VIEW s.v AS SELECT 1 AS one`,
}

// TestFindings: each is made true on a real server and found; what is proposed is run, and the finding is gone; its undo brings it back.
func TestFindings(t *testing.T) {
	for _, spec := range []string{"mariadb-10.11", "mysql-9.7", "mysql-5.7"} {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Lend(t, spec)
			c := sandboxtest.Connect(t, n)
			ctx := t.Context()
			for _, q := range planted {
				if err := c.Exec(ctx, q); err != nil {
					t.Fatalf("%s: %v", q, err)
				}
			}
			now := time.Now()
			r := audit(t, time.Minute, []string{"only in the list"}, now, n)
			weak := "w\"e'ak` ü@%"
			for _, want := range [][2]string{{"sec.no_password", "empty@10.%"}, {"sec.no_password", "definer@%"}, {"sec.weak_password", weak}, {"sec.weak_password", "own@10.1.1.1"}, {"sec.weak_password", "listed@10.1.1.1"},
				{"sec.shared_password", "twin@10.1.1.1"}, {"sec.super_remote", "boss@%"}, {"sec.super", "boss@%"}, {"sec.host", weak}, {"sec.tls", "good@10.1.1.1"}, {"pci.lockout", "good@10.1.1.1"}, {"pci.expiry", "good@10.1.1.1"}} {
				if _, ok := has(r, want[0], want[1]); !ok {
					t.Errorf("%s of %s was not found", want[0], want[1])
				}
			}
			for _, not := range [][2]string{{"sec.weak_password", "good@10.1.1.1"}, {"sec.no_password", "good@10.1.1.1"}, {"sec.shared_password", "good@10.1.1.1"}, {"sec.super", "good@10.1.1.1"}, {"sec.host", "good@10.1.1.1"}, {"pci.password_age", "good@10.1.1.1"}} {
				if f, ok := has(r, not[0], not[1]); ok {
					t.Errorf("found %+v, want none", f)
				}
			}
			if f, _ := has(r, "sec.no_password", "definer@%"); f.Statement != "" || !strings.Contains(f.Remedy, "not to be locked") {
				t.Errorf("of a definer: got %+v, want no statement", f)
			}
			if _, ok := has(audit(t, 0, nil, now.AddDate(0, 0, 91), n), "pci.password_age", "good@10.1.1.1"); !ok {
				t.Error("after 91 days: the password's age was not found")
			}
			mend(t, c, n, r)
			shows(t, r, weak)
		})
	}
}

// mend runs what is proposed for one account of each rule, and its undo.
func mend(t *testing.T, c *mysql.Conn, n *sandbox.Node, r accounts.Report) {
	t.Helper()
	ran := map[string]accounts.Finding{}
	once := map[string]bool{} // two rules may propose the same
	for _, f := range r.Findings {
		if f.Statement != "" && ran[f.ID].ID == "" && !strings.HasPrefix(f.Object, "root@") && !strings.HasPrefix(f.Object, "risso@") {
			ran[f.ID] = f
			if once[f.Statement] {
				continue
			}
			once[f.Statement] = true
			if err := c.Exec(t.Context(), f.Statement); err != nil {
				t.Errorf("%s: %v", f.Statement, err)
			}
		}
	}
	if len(ran) < 3 {
		t.Errorf("only %d rules had a statement, want 3 or more", len(ran))
	}
	after := audit(t, 0, nil, time.Now(), n)
	for id, f := range ran {
		if g, ok := has(after, id, f.Object); ok {
			t.Errorf("after %s: still %+v", f.Statement, g)
		}
		if once[f.Undo] {
			continue
		}
		once[f.Undo] = true
		if err := c.Exec(t.Context(), f.Undo); err != nil {
			t.Errorf("%s: %v", f.Undo, err)
		}
	}
	again := audit(t, 0, nil, time.Now(), n)
	for id, f := range ran {
		if _, ok := has(again, id, f.Object); !ok {
			t.Errorf("after %s: %s of %s is not back", f.Undo, id, f.Object)
		}
	}
}

// shows: no form of the report has a hash or a password in it, and all have names in any script.
func shows(t *testing.T, r accounts.Report, weak string) {
	t.Helper()
	var text, page, sheet bytes.Buffer
	doc, err := json.Marshal(r)
	for _, e := range []error{err, r.WriteText(&text), r.WriteHTML(&page), r.WriteCSV(&sheet)} {
		if e != nil {
			t.Fatal(e)
		}
	}
	for what, out := range map[string]string{"text": text.String(), "HTML": page.String(), "CSV": sheet.String(), "JSON": string(doc)} {
		for _, a := range r.Accounts {
			for _, m := range a.Methods {
				if m.Secret != "" && strings.Contains(out, string(m.Secret)) {
					t.Errorf("the %s has what the server stores of %s", what, a.Object())
				}
			}
		}
		if strings.Contains(out, "letmein") || !strings.Contains(out, "ü") {
			t.Errorf("the %s has a password in it, or not the name", what)
		}
	}
	if strings.Contains(page.String(), weak) { // its quotes are escaped
		t.Error("the page has a name as it is")
	}
	rows, err := csv.NewReader(&sheet).ReadAll()
	if err != nil || len(rows) < len(r.Accounts)*len(r.Rules) {
		t.Errorf("the CSV has %d rows, %v; want at least %d", len(rows), err, len(r.Accounts)*len(r.Rules))
	}
}

// TestPlugins: passwords in every form that servers here make are found.
func TestPlugins(t *testing.T) {
	for spec, plugins := range map[string][]string{
		"mariadb-10.11": {"mysql_native_password", "ed25519", "mysql_old_password"}, // no server here has parsec: TestForms
		"mysql-9.7":     {"caching_sha2_password", "sha256_password"},
		"mysql-8.0":     {"caching_sha2_password", "sha256_password", "mysql_native_password"},
	} {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Lend(t, spec)
			c := sandboxtest.Connect(t, n)
			ctx := t.Context()
			for i, p := range plugins {
				create := fmt.Sprintf("CREATE USER p%d@'10.1.1.1' IDENTIFIED WITH %s BY 'q1w2e3r4'", i, p)
				if c.Server.SeveralLogins() {
					create = fmt.Sprintf("CREATE USER p%d@'10.1.1.1' IDENTIFIED VIA %s USING PASSWORD('q1w2e3r4')", i, p)
					if p == "ed25519" {
						if err := c.Exec(ctx, "INSTALL SONAME 'auth_"+p+"'"); err != nil && !strings.Contains(err.Error(), "already") {
							t.Fatal(err)
						}
					}
				}
				if p == "mysql_old_password" {
					create = fmt.Sprintf("CREATE USER p%d@'10.1.1.1' IDENTIFIED VIA mysql_old_password USING '%s'", i, "5d2e19393cc5ef67")
					if hash, err := c.Text(ctx, "SELECT OLD_PASSWORD('q1w2e3r4')"); err == nil {
						create = fmt.Sprintf("CREATE USER p%d@'10.1.1.1' IDENTIFIED VIA mysql_old_password USING '%s'", i, hash)
					}
				}
				if err := c.Exec(ctx, create); err != nil {
					t.Fatalf("%s: %v", create, err)
				}
			}
			r := audit(t, time.Minute, nil, time.Now(), n)
			for i, p := range plugins {
				if _, ok := has(r, "sec.weak_password", fmt.Sprintf("p%d@10.1.1.1", i)); !ok {
					t.Errorf("the password of %s was not found", p)
				}
			}
		})
	}
}

// TestFewRights: an account without rights is told what it cannot see, and sees itself.
func TestFewRights(t *testing.T) {
	for _, spec := range []string{"mariadb-10.11", "mysql-9.7"} {
		n := sandboxtest.Lend(t, spec)
		c := sandboxtest.Connect(t, n)
		if err := c.Exec(t.Context(), "CREATE USER 'p''oor'@'localhost' IDENTIFIED BY 'aG00d-one'"); err != nil {
			t.Fatal(err)
		}
		target, err := mysql.ParseTarget("p'oor:aG00d-one@unix(" + sandboxtest.Target(t, n).Socket() + ")/")
		if err != nil {
			t.Fatal(err)
		}
		policy, err := Policy("")
		if err != nil {
			t.Fatal(err)
		}
		r, err := Audit(context.Background(), Options{Sources: []Source{{Name: "db1", Target: target}}, Policy: policy, Budget: time.Second}, time.Now())
		if err != nil || r.Servers[0].Error != "" {
			t.Fatal(err, r.Servers[0].Error)
		}
		if len(r.Accounts) != 1 || r.Accounts[0].Object() != "p'oor@localhost" || r.Accounts[0].Known {
			t.Errorf("%s: got %d accounts, want itself", spec, len(r.Accounts))
		}
		if told := strings.Join(r.Incomplete(), "\n"); !strings.Contains(told, "GRANT SELECT ON mysql.* TO") {
			t.Errorf("%s: got %s, want the grant that is missing", spec, told)
		}
		if v := r.Accounts[0].Verdicts[0]; v.State != accounts.Unknown {
			t.Errorf("%s: whether it has a password: got %s, want unknown", spec, v.State)
		}
	}
}

// TestDiffers: the same account with other rights on two servers, and one that is on one only.
func TestDiffers(t *testing.T) {
	a, b := sandboxtest.Lend(t, "mariadb-10.11"), sandboxtest.Lend(t, "mariadb-10.11")
	ca, cb := sandboxtest.Connect(t, a), sandboxtest.Connect(t, b)
	for _, q := range []string{"CREATE USER pair@'10.1.1.1' IDENTIFIED BY 'aG00d-one'", "CREATE USER same@'10.1.1.1' IDENTIFIED BY 'aG00d-one-too'"} {
		for _, c := range []*mysql.Conn{ca, cb} {
			if err := c.Exec(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, q := range []string{"GRANT SELECT ON *.* TO pair@'10.1.1.1'", "CREATE USER single@'10.1.1.1' IDENTIFIED BY 'aG00d-third'"} {
		if err := ca.Exec(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	r := audit(t, 0, nil, time.Now(), a, b)
	if f, ok := has(r, "sec.differs", "pair@10.1.1.1"); !ok || f.Evidence != "on db2 other grants" {
		t.Errorf("got %+v, want on db2 other grants", f)
	}
	if f, ok := has(r, "sec.differs", "single@10.1.1.1"); !ok || f.Evidence != "it is not on db2" {
		t.Errorf("got %+v, want it is not on db2", f)
	}
	if f, ok := has(r, "sec.differs", "same@10.1.1.1"); ok {
		t.Errorf("got %+v, want none", f)
	}
}
