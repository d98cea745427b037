package mysql

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// Class says what kind of trouble an error is, so that callers act on it and people understand it.
type Class string

// The classes of error.
const (
	ClassRefused     Class = "refused"     // nothing listens there
	ClassTimeout     Class = "timeout"     // no answer in time: hung, or a network that swallows
	ClassUnreachable Class = "unreachable" // no such host, no route
	ClassDropped     Class = "dropped"     // the connection broke midway
	ClassLogin       Class = "login"       // wrong user or password, or not allowed from here
	ClassFull        Class = "full"        // too many connections
	ClassTLS         Class = "tls"         // the TLS handshake failed
	ClassPrivilege   Class = "privilege"   // the account may not do this
	ClassMissing     Class = "missing"     // no such table, variable or statement on this server
	ClassUsage       Class = "usage"       // the DSN is wrong
	ClassOther       Class = "other"
)

// Error is a problem with a server: what was tried, and its kind; fleet.RemedyOf returns its remedy.
type Error struct {
	Target string // user@address
	Class  Class
	Err    error
}

// Error is one line without the remedy.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Target, e.Reason()) }

// Reason is the trouble in words, without the address.
func (e *Error) Reason() string {
	if late, ok := errors.AsType[*LateError](e.Err); ok {
		return late.Error()
	}
	switch e.Class {
	case ClassRefused:
		return "refuses connections"
	case ClassTimeout:
		return "does not answer"
	case ClassDropped:
		return "dropped the connection"
	}
	return e.Err.Error()
}

// OfAccount reports whether it is the account that may have no other connection, by its own limit or max_user_connections, and not
// the server.
func (e *Error) OfAccount() bool {
	me, ok := errors.AsType[*driver.MySQLError](e.Err)
	return ok && (me.Number == errno.TooManyUserConnections || me.Number == errno.UserLimitReached)
}

// Unwrap returns the driver's or the system's error.
func (e *Error) Unwrap() error { return e.Err }

func classify(t Target, err error) error {
	if err == nil {
		return nil
	}
	var already *Error
	if errors.As(err, &already) {
		return err
	}
	class := ClassOf(err)
	r := remedy(class, t)
	if untrusted(err) {
		r = "this machine does not trust the server's certificate: name its CA by the environment variable SSL_CERT_FILE or by ssl-ca in the option file, or accept any certificate with tls=skip-verify"
	}
	if class == ClassLogin && t.cfg.TLS == nil && t.cfg.TLSConfig == "" {
		r += "; an account that requires TLS (REQUIRE SSL) needs tls=true in the DSN"
	}
	if errors.Is(err, driver.ErrNoTLS) {
		r = "the server does not support TLS: remove tls=… from the DSN, or give the server a certificate (ssl_cert, ssl_key)"
	}
	var me *driver.MySQLError
	if errors.As(err, &me) && me.Number == errno.DatabaseDenied {
		r = "the account has no privileges on the database in the DSN: GRANT SELECT ON it, or leave it out"
	}
	if errors.As(err, &me) {
		switch me.Number {
		case errno.UnknownDatabase:
			r = "create it with CREATE DATABASE, or use another name in the DSN"
		case errno.TooManyUserConnections, errno.UserLimitReached:
			r = "raise the limit named in the error: ALTER USER … WITH MAX_USER_CONNECTIONS 0, or SET GLOBAL max_user_connections = 0"
		case errno.MustChangePassword, errno.MustChangePasswordLogin, errno.AccountLocked, errno.AccountLockedMariaDB, errno.AccountBlocked, errno.AccountBlockedMariaDB:
			r = LetIn(int(me.Number))
		}
	}
	return &Error{Target: t.String(), Class: class, Err: fleet.WithRemedy(err, r)}
}

// Lost reports whether an error leaves no connection behind: it was dropped, or the server did not answer in time.
func Lost(err error) bool {
	class := ClassOf(err)
	return class == ClassDropped || class == ClassTimeout
}

// LetIn is what lets an account in again that the server refuses with an error, though its name and password are right; "" if the error is another one.
func LetIn(number int) string {
	switch number {
	case errno.MustChangePassword, errno.MustChangePasswordLogin:
		return "the account's password has expired: ALTER USER … IDENTIFIED BY '…' PASSWORD EXPIRE NEVER, by another account"
	case errno.AccountLocked, errno.AccountLockedMariaDB, errno.AccountBlocked:
		return "the account is locked: ALTER USER … ACCOUNT UNLOCK, by another account"
	case errno.AccountBlockedMariaDB:
		return "the account is blocked after too many wrong passwords: FLUSH PRIVILEGES, by another account"
	}
	return ""
}

// ClassOf reports what kind of trouble a driver's error is; "" for none.
func ClassOf(err error) Class {
	if err == nil {
		return ""
	}
	var mine *Error
	if errors.As(err, &mine) {
		return mine.Class
	}
	var me *driver.MySQLError
	if errors.As(err, &me) {
		return classOfNumber(me.Number)
	}
	var alert tls.AlertError
	var record tls.RecordHeaderError
	var dns *net.DNSError
	switch {
	case errors.Is(err, ErrDSN):
		return ClassUsage
	case errors.As(err, &dns): // in time or not: it is not the server that does not answer
		return ClassUnreachable
	case untrusted(err), errors.As(err, &alert), errors.As(err, &record), errors.Is(err, driver.ErrNoTLS):
		return ClassTLS
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return ClassTimeout
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		return ClassRefused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return ClassUnreachable
	}
	return classOfTransport(err)
}

// untrusted says that the server's certificate could not be verified.
func untrusted(err error) bool {
	var certErr *tls.CertificateVerificationError
	var unknownCA x509.UnknownAuthorityError
	return errors.As(err, &certErr) || errors.As(err, &unknownCA)
}

func classOfTransport(err error) Class {
	var ne net.Error
	switch {
	case errors.Is(err, sqldriver.ErrBadConn), errors.Is(err, driver.ErrInvalidConn), errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		errors.Is(err, net.ErrClosed), errors.Is(err, driver.ErrMalformPkt), errors.Is(err, driver.ErrPktSync):
		return ClassDropped
	case errors.As(err, &ne) && ne.Timeout():
		return ClassTimeout
	case strings.Contains(err.Error(), "tls:"): // crypto/tls has no type for most of its errors
		return ClassTLS
	}
	return ClassOther
}

// Answered reports whether an error is a server's answer to a statement, which that would get again: not that it is full, ends, was told to end this session, or waited
// for a lock for too long.
func Answered(err error) bool {
	switch n := ErrorNumber(err); n {
	case 0, errno.ServerShutdown, errno.LockWaitTimeout, errno.Deadlock, errno.QueryInterrupted, errno.ConnectionKilled, errno.SessionKilled:
		return false
	}
	return ClassOf(err) != ClassFull
}

func classOfNumber(n uint16) Class {
	switch n {
	case errno.AccessDenied, errno.HostNotPrivileged, errno.HostBlocked, errno.DatabaseDenied, errno.UnknownDatabase, errno.MustChangePassword, errno.MustChangePasswordLogin,
		errno.AccountLocked, errno.AccountLockedMariaDB, errno.AccountBlocked, errno.AccountBlockedMariaDB:
		return ClassLogin
	case errno.TooManyConnections, errno.UserLimitReached, errno.TooManyUserConnections:
		return ClassFull
	case errno.SpecificAccessDenied, errno.TableDenied, errno.ColumnDenied, errno.ViewNoExplain:
		return ClassPrivilege
	case errno.NoSuchTable, errno.UnknownTable, errno.UnknownVariable, errno.ParseError, errno.UnknownColumn:
		return ClassMissing
	case errno.SecureTransportRequired:
		return ClassTLS
	}
	return ClassOther
}

func remedy(c Class, t Target) string {
	switch c {
	case ClassRefused:
		return "is the server running and listening on " + t.Address() + "?"
	case ClassTimeout:
		return "the server hangs, or a firewall drops packets to " + t.Address()
	case ClassUnreachable:
		return "check the host name in the DSN and the route to it"
	case ClassLogin:
		return "check user and password; the account's host part matters, too: CREATE USER 'risso'@'<this host>' IDENTIFIED BY '…'; " +
			"GRANT PROCESS, REPLICATION CLIENT ON *.* TO 'risso'@'<this host>'"
	case ClassFull:
		return "raise max_connections, or close idle clients"
	case ClassTLS:
		return "add tls=true (or tls=skip-verify to trust any certificate, tls=false for none) to the DSN's parameters, or ssl-mode to the option file"
	}
	return ""
}

// DefinitionChanged says that a table was altered, truncated or recreated since the snapshot, which cannot read it any more.
func DefinitionChanged(err error) bool {
	var refused *driver.MySQLError
	return errors.As(err, &refused) && refused.Number == errno.TableChanged
}

// Gone says that a table is not there, or no longer.
func Gone(err error) bool {
	var refused *driver.MySQLError
	return errors.As(err, &refused) && (refused.Number == errno.NoSuchTable || refused.Number == errno.UnknownTable || refused.Number == errno.UnknownDatabase)
}

// LockRefused says that a table was not available because somebody waits to change it.
func LockRefused(err error) bool { return ErrorNumber(err) == errno.LockWaitTimeout }

// ErrorNumber is the server's number of an error, or 0.
func ErrorNumber(err error) int {
	var e *driver.MySQLError
	if errors.As(err, &e) {
		return int(e.Number)
	}
	return 0
}
