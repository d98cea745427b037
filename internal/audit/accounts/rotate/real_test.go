package rotate

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/audit/accounts"
	"github.com/rissodb/risso/internal/audit/accounts/read"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }

// as is the server for another account.
func as(t *testing.T, n *sandbox.Node, user, password string) mysql.Target {
	t.Helper()
	target, err := mysql.ParseTarget(user + ":" + password + "@unix(" + sandboxtest.Target(t, n).Socket() + ")/")
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// TestRotate: both passwords are good until the old one is discarded; the store has the new one before the server; nothing secret is in the journal,
// the plan or the binary log.
func TestRotate(t *testing.T) {
	for _, spec := range []string{"mariadb-10.11", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			n := sandboxtest.Lend(t, spec)
			c := sandboxtest.Connect(t, n)
			ctx := t.Context()
			const account = `sh'op ü@%`
			if err := c.Exec(ctx, `CREATE USER 'sh''op ü'@'%' IDENTIFIED BY 'the old one'`); err != nil {
				t.Fatal(err)
			}
			login := func(password string) error {
				s, err := as(t, n, "sh'op ü", password).ConnectStream(ctx, mysql.StreamOptions{Patience: 10 * time.Second})
				if err == nil {
					s.Close()
				}
				return err
			}
			dir := t.TempDir()
			kept := filepath.Join(dir, "kept")
			o := Options{Source: read.Source{Name: "db1", Target: sandboxtest.Target(t, n)}, Account: account, Store: `cat >'` + kept + `'; test "$RISSO_ACCOUNT" = "sh'op ü@%"`}
			r, err := Prepare(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if err := login("the old one"); err != nil {
				t.Fatalf("the plan alone changed something: %v", err)
			}
			journal, err := r.Run(ctx, dir)
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(kept)
			if err != nil {
				t.Fatal(err)
			}
			password := strings.TrimSuffix(string(text), "\n")
			for _, p := range []string{"the old one", password} {
				if err := login(p); err != nil {
					t.Errorf("login before the old one is discarded: %v, want none", err)
				}
			}
			if _, err := Prepare(ctx, o); err == nil || !strings.Contains(err.Error(), "several passwords") {
				t.Errorf("a second rotation: got %v, want that there are several passwords", err)
			}
			d, err := Prepare(ctx, Options{Source: o.Source, Account: account, Discard: true})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if _, err := d.Run(ctx, filepath.Join(dir, "second")); err != nil {
				t.Fatal(err)
			}
			if err := login("the old one"); err == nil {
				t.Error("the old password is still good after it was discarded")
			}
			if err := login(password); err != nil {
				t.Errorf("the new password after the old was discarded: %v", err)
			}
			if words := d.CutOff(dir); words != "" {
				t.Errorf("got cut off %q, want none", words)
			}
			list, err := os.ReadFile(journal)
			if err != nil {
				t.Fatal(err)
			}
			_, all, err := read.Accounts(ctx, o.Source.Target, "db1")
			if err != nil {
				t.Fatal(err)
			}
			hash := ""
			for _, a := range all {
				if a.Object() == account {
					hash = string(a.Methods[0].Secret)
				}
			}
			said := string(list) + strings.Join(r.Plan.Words(), "\n") + strings.Join(d.Plan.Words(), "\n")
			if hash == "" || strings.Contains(said, hash) || strings.Contains(said, password) || !strings.Contains(said, "finished") {
				t.Errorf("a secret in, or nothing in: %s", said)
			}
			logged := ""
			file, _ := sandboxtest.LogPosition(t, c)
			rows, err := c.Maps(ctx, "SHOW BINLOG EVENTS IN "+mysql.Literal(file))
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				logged += row["Info"] + "\n"
			}
			if !strings.Contains(logged, "op ü") || strings.Contains(logged, password) {
				t.Errorf("the binary log has the new password, or nothing of it: %t", strings.Contains(logged, password))
			}
		})
	}
}

// TestAtOnce: where only one password can be kept, that is said, and --at-once replaces it.
func TestAtOnce(t *testing.T) {
	n := sandboxtest.Lend(t, "mysql-5.7")
	c := sandboxtest.Connect(t, n)
	ctx := t.Context()
	if err := c.Exec(ctx, `CREATE USER u@'%' IDENTIFIED BY 'old'`); err != nil {
		t.Fatal(err)
	}
	o := Options{Source: read.Source{Name: "db1", Target: sandboxtest.Target(t, n)}, Account: "u@%", Password: "the new one"}
	if _, err := Prepare(ctx, o); err == nil || !strings.Contains(err.Error(), "only one password") {
		t.Fatalf("got %v, want that it can keep only one password", err)
	}
	o.AtOnce = true
	r, err := Prepare(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Run(ctx, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	s, err := as(t, n, "u", "the new one").ConnectStream(ctx, mysql.StreamOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

// TestStoreFails: if the password cannot be kept, the server is not changed; the journal says so to the next rotation.
func TestStoreFails(t *testing.T) {
	n := sandboxtest.Lend(t, "mariadb-10.11")
	c := sandboxtest.Connect(t, n)
	ctx := t.Context()
	if err := c.Exec(ctx, `CREATE USER u@'%' IDENTIFIED BY 'old'`); err != nil {
		t.Fatal(err)
	}
	before, err := c.Text(ctx, "SELECT Priv FROM mysql.global_priv WHERE User = 'u'")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	r, err := Prepare(ctx, Options{Source: read.Source{Name: "db1", Target: sandboxtest.Target(t, n)}, Account: "u@%", Store: "cat >&2; exit 3"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Run(ctx, dir); err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "not changed") {
		t.Errorf("got %v, want exit status 3 and that the server was not changed", err)
	}
	after, err := c.Text(ctx, "SELECT Priv FROM mysql.global_priv WHERE User = 'u'")
	if err != nil || before != after {
		t.Errorf("the account was changed: %v", err)
	}
	if words := r.CutOff(dir); !strings.Contains(words, "failed at") || !strings.Contains(words, "store the new password") {
		t.Errorf("got %q, want that it failed at the store", words)
	}
}

// TestRefusedSaysNoSecret: a statement that the server refuses is told without what it had in it.
func TestRefusedSaysNoSecret(t *testing.T) {
	n := sandboxtest.Lend(t, "mysql-9.7")
	r := &Rotation{conn: sandboxtest.Connect(t, n), name: "u@%"}
	secret, err := accounts.NewSecret("caching_sha2_password", "x")
	if err != nil {
		t.Fatal(err)
	}
	err = r.exec(context.Background(), "ALTER USER u@'%' IDENTIFIED WITHOUT '"+string(secret)+"'")
	if err == nil || strings.Contains(err.Error(), "WITHOUT") {
		t.Errorf("got %v, want an error without the statement", err)
	}
}
