package mysql

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
)

func TestDSNErrorsHideThePassword(t *testing.T) {
	const secret = "s3cr3t"
	for _, dsn := range []string{
		"root:" + secret + "@tcp(host:3306", "root:" + secret + "@bad[host]/", "root:" + secret + "@nonet(x)/?parseTime=" + secret,
		"root:" + secret + "@tcp(h)/?tls=" + secret, "root:" + secret, "root:" + secret + "@host", secret + " x", "u:" + secret + "@tcp(h:1)/?maxAllowedPacket=" + secret,
	} {
		_, err := ParseTarget(dsn)
		if err == nil {
			// What the driver takes at first is refused at connecting; it must be silent there too.
			target, _ := ParseTarget(dsn)
			_, err = Connect(t.Context(), target, nil)
		}
		if err == nil {
			t.Errorf("%q was taken", dsn)
			continue
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}

func TestParseTarget(t *testing.T) {
	for in, want := range map[string]string{
		"root@unix(/run/x.sock)/": "root@/run/x.sock", "u:p@tcp(db:3307)/x": "u@db:3307", "db1": "@db1:3306", "db1:3310": "@db1:3310",
		"/run/mysqld/mysqld.sock": "@/run/mysqld/mysqld.sock", "u@tcp(db)/": "u@db:3306",
	} {
		got, err := ParseTarget(in)
		if err != nil || got.String() != want {
			t.Errorf("%q: got %v, %v; want %s", in, got, err, want)
		}
	}
}

func TestReadDefaults(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".my.cnf")
	text := "[mysqld]\nuser=mysql\n[client]\nuser = dba # me\npassword=\"p#a ss\"\nsocket=/run/a.sock\n[mysql]\nhost=db1\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := ReadDefaults(path)
	if err != nil || d.User != "dba" || d.Password != "p#a ss" || d.Socket != "/run/a.sock" || d.Host != "db1" {
		t.Errorf("got %+v, %v; want User \"dba\", Password \"p#a ss\", Socket \"/run/a.sock\", Host \"db1\"", d, err)
	}
	if err := os.WriteFile(path+".bad", []byte("[mysqld]\nport=x\n[client]\nhost=a\nport=abc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if d, err := ReadDefaults(path + ".bad"); err == nil || !strings.Contains(err.Error(), path+".bad, line 5: port=abc") {
		t.Errorf("port=abc: got %+v, %v, want an error that names file, line and option", d, err)
	}
	if d, err := ReadDefaults(path + ".none"); err != nil || d != (Defaults{}) {
		t.Errorf("a file that is not there: %+v, %v; want Defaults{}", d, err)
	}
}

func TestClassOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want Class
	}{
		{&driver.MySQLError{Number: 1045}, ClassLogin}, {&driver.MySQLError{Number: 1227}, ClassPrivilege}, {&driver.MySQLError{Number: 1040}, ClassFull},
		{&driver.MySQLError{Number: 1820}, ClassLogin}, {&driver.MySQLError{Number: 1862}, ClassLogin}, {&driver.MySQLError{Number: 3118}, ClassLogin}, {&driver.MySQLError{Number: 3955}, ClassLogin},
		{&driver.MySQLError{Number: 4150}, ClassLogin}, {&driver.MySQLError{Number: 4151}, ClassLogin},
		{&driver.MySQLError{Number: 1146}, ClassMissing}, {&driver.MySQLError{Number: 1317}, ClassOther},
		{context.DeadlineExceeded, ClassTimeout}, {&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, ClassRefused},
		{driver.ErrInvalidConn, ClassDropped}, {fmt.Errorf("x: %w", syscall.ECONNRESET), ClassDropped}, {errors.New("odd"), ClassOther},
		{&net.DNSError{Err: "no such host", Name: "nowhere"}, ClassUnreachable},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Err: "i/o timeout", Name: "nowhere", IsTimeout: true, UnwrapErr: context.DeadlineExceeded}}, ClassUnreachable},
	} {
		if got := ClassOf(c.err); got != c.want {
			t.Errorf("%v: got %s, want %s", c.err, got, c.want)
		}
	}
}

// TestHungServer connects to a listener that never says a word, as a stopped server does.
func TestHungServer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	target, err := ParseTarget("root:pw@tcp(" + ln.Addr().String() + ")/")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = Connect(ctx, target, nil)
	var e *Error
	if !errors.As(err, &e) || e.Class != ClassTimeout {
		t.Errorf("got %v", err)
	}
}

// TestClientCharset: collations of UCA 14 map to their character set, all others to themselves. What MariaDB 11.8 returns:
// SELECT ID, CHARACTER_SET_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY.
func TestClientCharset(t *testing.T) {
	for collation, want := range map[uint16]uint16{8: 8, 33: 33, 45: 45, 63: 63, 255: 255, 2047: 2047, 2048: 33, 2303: 33, 2304: 45, 2559: 45, 2560: 2560} {
		if got := ClientCharset(collation); got != want {
			t.Errorf("%d becomes %d, not %d", collation, got, want)
		}
	}
}
