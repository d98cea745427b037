package mysql_test

import (
	sqldriver "database/sql/driver"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestOptionFileTLS: what an option file asks of TLS is done, or refused in words.
func TestOptionFileTLS(t *testing.T) {
	for _, spec := range []string{"mariadb", "mysql-9.7"} {
		t.Run(spec, func(t *testing.T) {
			settings, _ := sandboxtest.TLS(t)
			n := sandboxtest.Up(t, spec, settings...)
			if _, err := n.Query(t.Context(), "CREATE USER plain@'127.0.0.1' IDENTIFIED BY 'p'"); err != nil {
				t.Fatal(err)
			}
			ca := strings.TrimPrefix(settings[2], "ssl_ca=")
			otherSettings, _ := sandboxtest.TLS(t)
			other := strings.TrimPrefix(otherSettings[2], "ssl_ca=")
			for _, c := range []struct {
				lines   string
				encrypt bool
				err     string
			}{
				{"", false, ""},
				{"ssl-mode=DISABLED\nssl-ca=" + other, false, ""},
				{"ssl-mode=disabled", false, ""},
				{"skip-ssl", false, ""},
				{"ssl-mode=PREFERRED", true, ""},
				{"ssl_mode = REQUIRED", true, ""},
				{"ssl", true, ""},
				{"ssl=1", true, ""},
				{"ssl=0", false, ""},
				{"ssl-mode=VERIFY_CA\nssl-ca=" + ca, true, ""},
				{"ssl-ca=" + ca, true, ""},
				{"ssl-ca=" + other, false, "certificate"},
				{"ssl-mode=VERIFY_CA\nssl-ca=" + other, false, "certificate"},
				{"ssl-mode=VERIFY_IDENTITY\nssl-ca=" + ca, true, ""},
				{"ssl-mode=VERIFY_IDENTITY", false, "certificate"},
				{"ssl\nssl-verify-server-cert\nssl-ca=" + ca, true, ""},
				{"ssl-mode=SURELY", false, "ssl-mode: there is no SURELY"},
				{"ssl-ca=/nowhere/ca.pem", false, "ssl-ca: open /nowhere/ca.pem"},
				{"ssl-cert=/nowhere/cert.pem\nssl-key=/nowhere/key.pem", false, "ssl-cert and ssl-key: open /nowhere/cert.pem"},
			} {
				got, err := cipher(t, fmt.Sprintf("[client]\nuser=plain\npassword=p\nhost=127.0.0.1\nport=%d\n%s\n", n.Port, c.lines))
				switch {
				case c.err == "" && err != nil, c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
					t.Errorf("%q: got error %v, want %q", c.lines, err, c.err)
				case (got != "") != c.encrypt:
					t.Errorf("%q: got cipher %q, want encrypted %v", c.lines, got, c.encrypt)
				}
			}
		})
	}
}

// cipher is by which cipher a connection is encrypted that an option file describes; "" for none.
func cipher(t *testing.T, file string) (name string, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "my.cnf")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := mysql.ReadDefaults(path)
	if err != nil {
		return "", err
	}
	target, ok := d.Target()
	if !ok {
		t.Fatal("no target")
	}
	c, err := mysql.Connect(t.Context(), target, nil)
	if err != nil {
		return "", err
	}
	defer c.Close()
	err = c.Query(t.Context(), "SHOW STATUS LIKE 'Ssl_cipher'", func(row []sqldriver.Value) error {
		name = mysql.Text(row[1])
		return nil
	})
	return name, err
}

// TestToolOptionFile: a tool that logs in for Risso encrypts its connection as Risso does.
func TestToolOptionFile(t *testing.T) {
	settings, _ := sandboxtest.TLS(t)
	cert, key := strings.TrimPrefix(settings[0], "ssl_cert="), strings.TrimPrefix(settings[1], "ssl_key=")
	const unverified = "ssl\nskip-ssl-verify-server-cert\n"
	for _, c := range []struct {
		dsn, lines, maria, xtra string
	}{
		{"u:p@tcp(db1)/", "", "skip-ssl-verify-server-cert\n", ""},
		{"u:p@tcp(db1)/", "skip-ssl", "skip-ssl\n", "ssl-mode=\"DISABLED\"\n"},
		{"u:p@tcp(db1)/", "ssl-mode=DISABLED\nssl-ca=" + cert, "skip-ssl\n", "ssl-mode=\"DISABLED\"\n"},
		{"u:p@tcp(db1)/", "ssl-mode=PREFERRED", unverified, "ssl-mode=\"PREFERRED\"\n"},
		{"u:p@tcp(db1)/", "ssl", unverified, "ssl-mode=\"REQUIRED\"\n"},
		{"u:p@tcp(db1)/", "ssl-ca=" + cert, unverified + "ssl-ca=\"" + cert + "\"\n", "ssl-mode=\"VERIFY_CA\"\nssl-ca=\"" + cert + "\"\n"},
		{"u:p@tcp(db1)/", "ssl-verify-server-cert\nssl-ca=" + cert, "ssl\nssl-verify-server-cert\nssl-ca=\"" + cert + "\"\n", "ssl-mode=\"VERIFY_IDENTITY\"\nssl-ca=\"" + cert + "\"\n"},
		{"u:p@tcp(db1)/", "ssl-cert=" + cert + "\nssl-key=" + key, unverified + "ssl-cert=\"" + cert + "\"\nssl-key=\"" + key + "\"\n", "ssl-mode=\"REQUIRED\"\nssl-cert=\"" + cert + "\"\nssl-key=\"" + key + "\"\n"},
		{"u:p@tcp(db1)/?tls=false", "ssl-ca=" + cert, "skip-ssl\n", "ssl-mode=\"DISABLED\"\n"},
		{"u:p@tcp(db1)/?tls=preferred", "", unverified, "ssl-mode=\"PREFERRED\"\n"},
		{"u:p@tcp(db1)/?tls=skip-verify", "ssl-ca=" + cert, unverified, "ssl-mode=\"REQUIRED\"\n"},
		{"u:p@tcp(db1)/?tls=true", "", "ssl\nssl-verify-server-cert\n", "ssl-mode=\"VERIFY_IDENTITY\"\n"},
	} {
		path := filepath.Join(t.TempDir(), "my.cnf")
		if err := os.WriteFile(path, []byte("[client]\n"+c.lines+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := mysql.ReadDefaults(path)
		if err != nil {
			t.Fatal(err)
		}
		to, err := mysql.ParseTarget(c.dsn)
		if err != nil {
			t.Fatal(err)
		}
		to = to.WithFallback(d).WithDatabase("test").WithPatience(time.Minute)
		const login = "user=\"u\"\npassword=\"p\"\nhost=\"db1\"\nport=\"3306\"\nprotocol=\"tcp\"\n"
		for tool, want := range map[mysql.CopyTool]string{mysql.ToolMariaDBBackup: "[mariadb-backup]\n" + login + c.maria, mysql.ToolXtraBackup: "[xtrabackup]\n" + login + c.xtra} {
			if got, err := to.OptionFile(tool); got != want || err != nil {
				t.Errorf("%s, %q: got %s%v, want %s", c.dsn, c.lines, got, err, want)
			}
		}
	}
	for dsn, want := range map[string]string{"u@tcp(localhost)/": "127.0.0.1", "u@tcp(localhost)/?tls=true": "localhost"} {
		to, err := mysql.ParseTarget(dsn)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := to.OptionFile(mysql.ToolMariaDBBackup); !strings.Contains(got, "host=\""+want+"\"\n") || err != nil {
			t.Errorf("%s: got %s%v, want the host %s", dsn, got, err, want)
		}
	}
}
