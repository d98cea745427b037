package load_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
)

// TestOddAccounts: accounts come back as they were whatever is in their names and in the certificates that they ask for.
func TestOddAccounts(t *testing.T) {
	t.Parallel()
	for _, spec := range servers {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			node := lend(t, spec)
			s := stream(t, node)
			exec(t, s, "CREATE DATABASE shop", "CREATE TABLE shop.t (a INT, `b'c` INT, `order` INT, `x (y` INT)", "CREATE PROCEDURE shop.`p'``q`() SELECT 1",
				"CREATE USER 'app''x'@'%' IDENTIFIED BY 'S'", "CREATE USER 'a\\\\b\"`'@'h''o' IDENTIFIED BY 'S' REQUIRE SUBJECT 'CN=O''Brien' AND ISSUER 'a\\\\n' AND CIPHER 'x''' WITH MAX_QUERIES_PER_HOUR 7",
				"CREATE USER 'p''r'@'%'", "CREATE USER 'it''s TO x'@'%'", "CREATE USER 'q''@'@'%'",
				"GRANT ALL ON shop.* TO 'app''x'@'%' WITH GRANT OPTION", "GRANT SELECT (`b'c`, `order`), UPDATE (`order`, `x (y`), INSERT, SHOW VIEW ON shop.t TO 'a\\\\b\"`'@'h''o'", "GRANT REFERENCES (`order`) ON shop.t TO 'app''x'@'%' WITH GRANT OPTION", "GRANT EXECUTE ON PROCEDURE shop.`p'``q` TO 'it''s TO x'@'%'",
				"GRANT PROXY ON 'p''r'@'%' TO 'app''x'@'%' WITH GRANT OPTION", "GRANT PROCESS ON *.* TO 'q''@'@'%'")
			odd := []string{"'app''x'@'%'", "'a\\\\b\"`'@'h''o'", "'p''r'@'%'", "'it''s TO x'@'%'", "'q''@'@'%'"}
			all := func() (text string) {
				for _, name := range odd {
					text += ask(t, s, "SHOW CREATE USER "+name) + ask(t, s, "SHOW GRANTS FOR "+name)
				}
				return text + ask(t, s, "SELECT User, Host, ssl_cipher, x509_issuer, x509_subject, max_questions FROM mysql.user WHERE Host = 'h''o'") + ask(t, s, "SELECT User, Host, Proxied_user, Proxied_host, With_grant FROM mysql.proxies_priv ORDER BY 1, 2, 3")
			}
			before := all()
			r := takeBackup(t, node)
			exec(t, s, "DROP DATABASE shop", "DROP USER "+strings.Join(odd, ", "))
			if res, err := restore(t, load.Options{Repo: r, Into: target(t, node)}); err != nil || len(res.LeftOut) > 0 {
				t.Fatalf("%v: got %+v; want none", err, res.LeftOut)
			}
			if after := all(); after != before {
				t.Errorf("got %v, want after %v", differ(before, after), before)
			}
		})
	}
}

// TestOldAccounts: backups that hold accounts as MySQL shows them, with quotes that are not marked, are restored: with their grants
// if these can be read, else without the account, which is named. What only looks like them is refused.
func TestOldAccounts(t *testing.T) {
	t.Parallel()
	node := lend(t, "mysql-5.7")
	c, err := mysql.Connect(t.Context(), target(t, node), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := stream(t, node)
	r, _ := emptyRepo(t)
	forge(t, r, c.Server, account("app'x@%", `CREATE USER 'app\'x'@'%'`, "GRANT USAGE ON *.* TO 'app'x'@'%'", "GRANT SELECT ON `shop`.* TO 'app'x'@'%' WITH GRANT OPTION", "GRANT PROXY ON 'p'r'@'%' TO 'app'x'@'%'"),
		account("cert@%", "CREATE USER 'cert'@'%' REQUIRE SUBJECT 'CN=O'Brien' PASSWORD EXPIRE DEFAULT ACCOUNT UNLOCK", "GRANT USAGE ON *.* TO 'cert'@'%'"),
		account("column@%", "CREATE USER 'column'@'%'", "GRANT SELECT (b'c), INSERT ON `shop`.`t` TO 'column'@'%'"),
		account("proxy@%", "CREATE USER 'proxy'@'%'", "GRANT PROXY ON 'p'@'r'x'@'%' TO 'proxy'@'%'"))
	o := load.Options{Repo: r, Into: target(t, node), SkipIncompatible: true}
	res, err := restore(t, o)
	if !errors.Is(err, load.ErrLeftOut) {
		t.Fatalf("got %v, want load.ErrLeftOut", err)
	}
	for _, want := range []struct{ account, why string }{{"account cert@%", "quote in the certificate"}, {"account proxy@%", "may act for"}, {"account column@%", "of a column"}} {
		if !slices.ContainsFunc(res.LeftOut, func(f load.Finding) bool { return f.What == want.account && strings.Contains(f.Why, want.why) }) {
			t.Errorf("no %v in %+v", want, res.LeftOut)
		}
	}
	if len(res.LeftOut) != 3 {
		t.Errorf("got %+v, want length 3", res.LeftOut)
	}
	if got, want := ask(t, s, "SHOW GRANTS FOR 'app''x'@'%'"), "GRANT USAGE ON *.* TO 'app'x'@'%'|\nGRANT SELECT ON `shop`.* TO 'app'x'@'%' WITH GRANT OPTION|\nGRANT PROXY ON 'p'r'@'%' TO 'app'x'@'%'|\n"; got != want {
		t.Errorf("grants: got %s, want %s", got, want)
	}
	for _, l := range []repo.Line{
		account("a'x@%", `CREATE USER 'a\'x'@'%'`, "GRANT ALL ON *.* TO 'pwned'@'%', 'a'x'@'%'"),
		account("a'x@%", `CREATE USER 'a\'x'@'%'`, "GRANT ALL ON *.* TO 'pwned'@'%'; GRANT USAGE ON *.* TO 'a'x'@'%'"),
		account("a'x@%", `CREATE USER 'a\'x'@'%'`, "GRANT ALL ON *.* TO 'pwn'ed'@'%'"),
		account("a'x@%", `CREATE USER 'a'x'@'%'`),
		account("a@%", "CREATE USER 'a'@'%'", "GRANT SELECT (b'c) ON *.* TO 'pwned'@'%' /* ' */"),
		account("a@%", "CREATE USER 'a'@'%'", "GRANT SELECT (b'c) ON `shop`.`t` TO 'pwned'@'%'"),
		account("a@%", "CREATE USER 'a'@'%'", "GRANT PROXY ON 'p'q'@'%' TO 'pwned'@'%'"),
		account("a@%", "CREATE USER 'pwned'@'%' REQUIRE SUBJECT 'CN=O'Brien'"),
		account("a@%", "CREATE USER 'a'@'%', 'pwned'@'%' REQUIRE SUBJECT 'CN=O'Brien'"),
		account("a@%", "CREATE USER 'a'@'%' IDENTIFIED BY 'x' ATTRIBUTE 'it's'"),
	} {
		r, _ := emptyRepo(t)
		forge(t, r, c.Server, l)
		if _, err := restore(t, load.Options{Repo: r, Into: target(t, node), SkipIncompatible: true, Overwrite: true}); !errors.Is(err, load.ErrForged) {
			t.Errorf("%s: got %v, want load.ErrForged", lineText(l), err)
		}
	}
}
