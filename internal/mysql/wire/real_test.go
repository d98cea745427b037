package wire_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/lack"
	"github.com/rissodb/risso/internal/mysql/wire"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// ways are the plugins of a server's accounts, in words of CREATE USER.
var ways = map[string]map[string]string{
	"mariadb":      {"native": "IDENTIFIED VIA mysql_native_password USING PASSWORD('%s')", "ed25519": "IDENTIFIED VIA ed25519 USING PASSWORD('%s')"},
	"mariadb-11.8": {"native": "IDENTIFIED VIA mysql_native_password USING PASSWORD('%s')"},
	"mysql-5.7":    {"native": "IDENTIFIED WITH mysql_native_password BY '%s'", "sha256": "IDENTIFIED WITH sha256_password BY '%s'"},
	"mysql-8.0":    {"native": "IDENTIFIED WITH mysql_native_password BY '%s'", "sha256": "IDENTIFIED WITH sha256_password BY '%s'", "caching": "IDENTIFIED WITH caching_sha2_password BY '%s'"},
	"mysql-9.7":    {"sha256": "IDENTIFIED WITH sha256_password BY '%s'", "caching": "IDENTIFIED WITH caching_sha2_password BY '%s'"},
}

// TestLogin logs in by every plugin, in clear and under TLS, with and without a password, on accounts that need TLS, and with a
// wrong password.
func TestLogin(t *testing.T) {
	for spec, plugins := range ways {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			settings, anyTLS := sandboxtest.TLS(t)
			n := sandboxtest.Up(t, spec, settings...)
			if _, err := n.Query(t.Context(), "INSTALL SONAME 'auth_ed25519'"); err != nil && spec == "mariadb" {
				lack.Of(t, "MariaDB comes without auth_ed25519: install mariadb-server: "+err.Error())
			}
			keys, err := n.Query(t.Context(), "SHOW STATUS LIKE 'Rsa_public_key'")
			if err != nil {
				t.Fatal(err)
			}
			keyless := len(keys[0].Rows) == 0 || *keys[0].Rows[0][1] == ""
			for name, words := range plugins {
				for _, password := range []string{"geheim:'ß'", ""} {
					if password == "" && name == "ed25519" {
						continue // MariaDB does not accept it
					}
					user := name + fmt.Sprint(len(password))
					words := fmt.Sprintf(words, strings.ReplaceAll(password, "'", "''"))
					for _, host := range []string{"127.0.0.1", "localhost"} {
						for _, statement := range []string{"CREATE USER %s@'%s' " + words, "CREATE USER %s_tls@'%s' " + words + " REQUIRE SSL"} {
							if _, err := n.Query(t.Context(), fmt.Sprintf(statement, user, host)); err != nil {
								t.Fatal(err)
							}
						}
					}
					logins(t, n.Config(), user, password, anyTLS, keyless)
					tcp, err := n.TCPConfig()
					if err != nil {
						t.Fatal(err)
					}
					logins(t, tcp, user, password, anyTLS, keyless)
				}
			}
		})
	}
}

// logins tries an account: encrypted first, or caching_sha2_password would not have to be asked for its public key.
func logins(t *testing.T, cfg *driver.Config, user, password, anyTLS string, keyless bool) {
	t.Helper()
	cfg.User, cfg.Passwd, cfg.DBName = user, password, "information_schema"
	if keyless && password != "" && strings.HasPrefix(user, "sha256") { // without a key the server has no other way for this plugin than TLS
		ask(t, cfg, false, errDenied)
	} else {
		for range 2 { // the second time from the server's cache
			ask(t, cfg, false, nil)
		}
	}
	cfg.TLSConfig = anyTLS
	secure, err := driver.ParseDSN(cfg.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	ask(t, secure, true, nil)
	secure.User += "_tls"
	ask(t, secure, true, nil)
	insecure := secure.Clone()
	insecure.TLS = nil
	ask(t, insecure, false, errDenied)
	for _, wrong := range []*driver.Config{cfg.Clone(), secure} {
		wrong.Passwd += "x"
		ask(t, wrong, false, errDenied)
	}
}

var errDenied = errors.New("denied")

// ask logs in and asks who and how one is.
func ask(t *testing.T, cfg *driver.Config, encrypted bool, want error) {
	t.Helper()
	what := fmt.Sprintf("%s by %s, TLS %v", cfg.User, cfg.Net, cfg.TLS != nil)
	c, err := wire.Connect(t.Context(), cfg, 0)
	if want != nil {
		var refused *driver.MySQLError
		if !errors.As(err, &refused) || refused.Number != 1045 || cfg.Passwd != "" && strings.Contains(err.Error(), cfg.Passwd) {
			t.Errorf("%s: got %v, want error 1045", what, err)
		}
		return
	}
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	defer c.Close()
	var got []string
	_, err = c.Query("SELECT CONNECTION_ID(), SUBSTRING_INDEX(CURRENT_USER(), '@', 1), DATABASE(), VARIABLE_VALUE <> '' FROM (SELECT 1) one LEFT JOIN performance_schema.session_status ON VARIABLE_NAME = 'Ssl_cipher'", nil, c.Each(func(row [][]byte) error {
		for _, v := range row {
			got = append(got, string(v))
		}
		return nil
	}))
	if want := []string{fmt.Sprint(c.Session()), cfg.User, cfg.DBName}; err != nil || fmt.Sprint(got[:3]) != fmt.Sprint(want) || c.Encrypted() != encrypted {
		t.Errorf("%s: got %q (encrypted: %v), %v, want %q", what, got, c.Encrypted(), err, want)
	}
	c.Quit()
}
