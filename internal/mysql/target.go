// Package mysql is one server: it connects, knows what the server is and can do, and what its errors mean. Every difference
// between MySQL, MariaDB and Percona Server is here or in the packages below, so that no other asks which flavour it talks to.
package mysql

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"
)

// ErrDSN is what every error about the form of a DSN wraps.
var ErrDSN = errors.New("not a usable DSN")

// Target is where a server is and as whom to log in. Its String never holds the password.
type Target struct {
	cfg *driver.Config
	tls *tlsOptions // of an option file; nil: it has none, or the DSN says something about TLS
}

// IsZero reports whether it is the target of nothing: all other methods are for those that ParseTarget returns.
func (t Target) IsZero() bool { return t.cfg == nil }

// Default time-outs of a connection, in a DSN that sets none.
const (
	defaultDialTimeout = 3 * time.Second
	defaultIOTimeout   = 10 * time.Second
)

// ParseTarget reads a DSN in go-sql-driver's form, user:password@tcp(host:port)/db or
// user@unix(/path/socket)/. A bare host, host:port or /path/to/socket is taken too. Errors never
// repeat the DSN, because it may hold a password.
func ParseTarget(dsn string) (Target, error) {
	if !strings.Contains(dsn, "/") || (strings.HasPrefix(dsn, "/") && !strings.ContainsAny(dsn, "@()")) {
		return bareTarget(dsn)
	}
	cfg, err := driver.ParseDSN(dsn)
	if err != nil && strings.HasSuffix(dsn, ")") { // the driver misses a brace: it looks for the slash within the socket's path
		err = errors.New("missing the slash at the end")
	}
	if err != nil {
		return Target{}, fmt.Errorf("%w: %s; write it as user:password@tcp(host:3306)/ or user@unix(/path/to/socket)/", ErrDSN, dsnProblem(err))
	}
	switch cfg.Net {
	case "tcp", "tcp4", "tcp6", "unix":
	default:
		return Target{}, fmt.Errorf("%w: its network is neither tcp nor unix; write it as user:password@tcp(host:3306)/ or user@unix(/path/to/socket)/", ErrDSN)
	}
	if cfg.Net != "unix" {
		if _, port, err := net.SplitHostPort(cfg.Addr); err != nil || !isPort(port) {
			return Target{}, errPort
		}
	}
	return newTarget(cfg), nil
}

// errPort never shows what follows the colon: it may be a password.
var errPort = fmt.Errorf("%w: the port is not a number from 1 to 65535; write it as user:password@tcp(host:3306)/", ErrDSN)

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

// dsnProblem says what is wrong without quoting any part of the DSN.
func dsnProblem(err error) string {
	msg := err.Error()
	for _, known := range []string{
		"did you forget to escape a param value", "network address not terminated", "missing the slash", "interpolateParams",
	} {
		if strings.Contains(msg, known) {
			return strings.TrimPrefix(msg, "invalid DSN: ")
		}
	}
	if strings.Contains(msg, "unknown") || strings.Contains(msg, "invalid") {
		return "an address, network or parameter in it is unknown"
	}
	return "it could not be read"
}

// bareTarget takes a socket path, a host or host:port without user or database.
func bareTarget(s string) (Target, error) {
	cfg := driver.NewConfig()
	switch {
	case s == "" || strings.ContainsAny(s, "@() \t\n"):
		return Target{}, fmt.Errorf("%w: write it as user:password@tcp(host:3306)/ or user@unix(/path/to/socket)/", ErrDSN)
	case strings.HasPrefix(s, "/"):
		cfg.Net, cfg.Addr = "unix", s
	default:
		host, port, err := net.SplitHostPort(s)
		if err != nil {
			host, port = s, "3306"
		}
		if !isPort(port) {
			return Target{}, errPort
		}
		cfg.Net, cfg.Addr = "tcp", net.JoinHostPort(host, port)
	}
	return newTarget(cfg), nil
}

func newTarget(cfg *driver.Config) Target {
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultDialTimeout
	}
	if cfg.ReadTimeout == 0 {
		cfg.ReadTimeout = defaultIOTimeout
	}
	if cfg.WriteTimeout == 0 {
		cfg.WriteTimeout = defaultIOTimeout
	}
	cfg.ParseTime = false
	cfg.MultiStatements = false
	cfg.Logger = &driver.NopLogger{}
	if cfg.ConnectionAttributes == "" {
		cfg.ConnectionAttributes = "program_name:risso"
	}
	return Target{cfg: cfg}
}

// Address is host:port or the socket's path.
func (t Target) Address() string {
	if t.cfg == nil {
		return ""
	}
	return t.cfg.Addr
}

// Socket is the unix socket's path, or "".
func (t Target) Socket() string {
	if t.cfg != nil && t.cfg.Net == "unix" {
		return t.cfg.Addr
	}
	return ""
}

// User is the account's name as given.
func (t Target) User() string { return t.cfg.User }

// String is user@address, without the password.
func (t Target) String() string {
	if t.cfg == nil {
		return "(no target)"
	}
	return t.cfg.User + "@" + t.cfg.Addr
}

// Again is a DSN for people to use again: without the password, which is in their option file.
func (t Target) Again() string {
	net := "tcp"
	if t.Socket() != "" {
		net = "unix"
	}
	return t.User() + "@" + net + "(" + t.Address() + ")/"
}

// WithFallback fills in what the target leaves open from defaults, as the mysql clients do.
func (t Target) WithFallback(d Defaults) Target {
	cfg := t.cfg.Clone()
	if cfg.User == "" {
		cfg.User = d.User
	}
	if cfg.Passwd == "" && (d.User == "" || d.User == cfg.User) {
		cfg.Passwd = d.Password
	}
	if cfg.User == "" {
		cfg.User = os.Getenv("USER")
	}
	t.cfg = cfg
	if cfg.TLS == nil && cfg.TLSConfig == "" {
		t.tls = &d.options
		d.encrypt(cfg)
	}
	return t
}

// WithPassword is the target with another password.
func (t Target) WithPassword(p string) Target {
	cfg := t.cfg.Clone()
	cfg.Passwd = p
	t.cfg = cfg
	return t
}

// dialer provides the driver with a network connection whose traffic is counted.
func (t Target) dialer(tr *Traffic) func(ctx context.Context, network, addr string) (net.Conn, error) {
	timeout := t.cfg.Timeout
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		d := net.Dialer{Timeout: timeout, KeepAlive: 15 * time.Second}
		c, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &countedConn{Conn: c, traffic: tr}, nil
	}
}

// Port is the TCP port, or 0 for a socket.
func (t Target) Port() int {
	_, port, err := net.SplitHostPort(t.Address())
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return 0
	}
	return n
}

// Database is the default database, or "".
func (t Target) Database() string { return t.cfg.DBName }

// WithDatabase is the target with another default database.
func (t Target) WithDatabase(name string) Target {
	cfg := t.cfg.Clone()
	cfg.DBName = name
	t.cfg = cfg
	return t
}

// Patience is how long an answer is waited for.
func (t Target) Patience() time.Duration { return t.cfg.ReadTimeout }

// WithAddress is the target with the same account at another address over TCP.
func (t Target) WithAddress(address string) Target {
	cfg := t.cfg.Clone()
	cfg.Net, cfg.Addr = "tcp", address
	t.cfg = cfg
	return t
}

// WithPatience is the target with another limit for the wait for an answer; statements that may run long need it.
func (t Target) WithPatience(d time.Duration) Target {
	cfg := t.cfg.Clone()
	cfg.ReadTimeout = d
	t.cfg = cfg
	return t
}

// WithDial is the target with another limit for the wait until a connection is there, before anything is said.
func (t Target) WithDial(d time.Duration) Target {
	cfg := t.cfg.Clone()
	cfg.Timeout = d
	t.cfg = cfg
	return t
}

// Secret is the target as a DSN with its password. It belongs into no message.
func (t Target) Secret() string { return t.cfg.FormatDSN() }

// Password is the account's password. It belongs into no message.
func (t Target) Password() string { return t.cfg.Passwd }

// Encrypted is the target over TLS, whoever answers; one that is over TLS already stays as it is. For accounts that are let in only so, where that is all that is to be known.
func (t Target) Encrypted() Target {
	if t.cfg.TLS != nil {
		return t
	}
	cfg := t.cfg.Clone()
	cfg.TLS, cfg.TLSConfig = &tls.Config{InsecureSkipVerify: true}, ""
	t.cfg = cfg
	return t
}

// WithAccount is the target with another account.
func (t Target) WithAccount(user, password string) Target {
	cfg := t.cfg.Clone()
	cfg.User, cfg.Passwd = user, password
	t.cfg = cfg
	return t
}
