// Package drive puts load on a server with as little overhead as possible: one session is one connection on one thread,
// statements are prepared on the server, and answers are counted but not turned into values unless required.
//
// A session writes and reads its socket by plain system calls that block its thread. Go's network poller would cost a
// third of the throughput at 4 connections and twice the processor time of sysbench. See DESIGN.md.
package drive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/mysql/wire"
)

// Kind says what a statement does to data, as sysbench counts it.
type Kind uint8

// The kinds of statements.
const (
	Other Kind = iota // BEGIN, COMMIT, DDL
	Read
	Write
)

// Session is one connection. It belongs to one goroutine, which should be locked to its thread.
type Session interface {
	// Prepare has the server prepare a statement. Parameters are written as the dialect writes them (? or $1).
	Prepare(kind Kind, sql string) (*Stmt, error)
	// Do runs a prepared statement with these values. The result is valid until the next call.
	Do(st *Stmt, args ...Arg) (Result, error)
	// Exec runs a statement as text.
	Exec(kind Kind, sql string) (Result, error)
	// Dialect reports how this server's SQL is written.
	Dialect() Dialect
	// Counts are the statements that succeeded, by kind, since the session began.
	Counts() *[3]int64
	// SetPatience sets how long the session waits for an answer, where its target's time-out is too short: an index of a
	// large table takes minutes. A stop ends the wait nevertheless.
	SetPatience(d time.Duration)
	// Close ends the connection.
	Close() error
}

// Ask prepares a query, runs it, and keeps its rows. It is for inspection, not for measuring.
func Ask(s Session, sql string, args ...Arg) (Result, error) {
	st, err := s.Prepare(Other, sql)
	if err != nil {
		return Result{}, err
	}
	st.Keep = true
	return s.Do(st, args...)
}

// Dialect is a family of servers whose SQL is alike.
type Dialect uint8

// The dialects.
const (
	MySQL Dialect = iota // MySQL, MariaDB, Percona Server
	Postgres
)

func (d Dialect) String() string {
	if d == Postgres {
		return "postgres"
	}
	return "mysql"
}

// Stmt is a prepared statement of one session.
type Stmt struct {
	SQL    string
	Kind   Kind
	Keep   bool // keep the values of the rows for Result.Values
	params int

	prepared *wire.Statement // MySQL
	id       uint32          // if the session has its own list
	packet   []byte          // PostgreSQL: the start of what runs it
	oids     []uint32        // PostgreSQL: the types of the parameters
	cols     []column        // PostgreSQL
}

// Arg is the value of one parameter: a number, a text, or NULL.
type Arg = wire.Arg

// Int is a whole number as an argument.
func Int(v int64) Arg { return Arg{Int: v} }

// Text is a text (or a decimal number or a time in words) as an argument. It is read before Do returns.
func Text(b []byte) Arg { return Arg{Text: b, Kind: wire.KindText} }

// Null is SQL's NULL as an argument.
func Null() Arg { return Arg{Kind: wire.KindNull} }

// Result is what a statement gave.
type Result struct {
	Rows     int64 // rows that came back
	Affected int64 // rows that were changed
	InsertID int64 // MySQL: the generated key
	Columns  int
	Values   []Value // Rows × Columns values, row by row, where the statement keeps them
}

// Value is one value of a row: a number where the server sends one, else its text; nil text and Null for NULL.
type Value = wire.Value

// ServerError is an error that the server gave. The session lives on.
type ServerError struct {
	Code    int    // MySQL's number; 0 with PostgreSQL
	State   string // SQLSTATE
	Message string
}

func (e *ServerError) Error() string {
	if e.Code != 0 {
		return fmt.Sprintf("error %d (%s): %s", e.Code, e.State, e.Message)
	}
	return fmt.Sprintf("error %s: %s", e.State, e.Message)
}

// Label names the kind of an error in few words, for counting.
func (e *ServerError) Label() string {
	if e.Code != 0 {
		return fmt.Sprintf("%d", e.Code)
	}
	return e.State
}

// The errors after which a session is of no more use.
var (
	ErrLost    = errors.New("connection lost")
	ErrStopped = errors.New("stopped while waiting for the server")
)

// Target is a server that sessions can be opened to.
type Target interface {
	// Open connects. The session's waits end with ErrStopped soon after stop is set, and with ErrLost after the
	// target's time-out.
	Open(ctx context.Context, stop *Stop) (Session, error)
	Dialect() Dialect
	// String is the address without the password.
	String() string
}

// Senseless reports whether the statement can never succeed: a table that is not there, a syntax error, a privilege that is
// missing. A run that meets one ends.
func (e *ServerError) Senseless() bool {
	switch e.Code {
	case 0:
		return len(e.State) == 5 && (e.State[:2] == "42" || e.State[:2] == "3D" || e.State[:2] == "28")
	case errno.DatabaseDenied, errno.AccessDenied, errno.NoDatabase, errno.UnknownDatabase, errno.UnknownColumn, errno.ParseError, errno.WrongTableName, errno.WrongValueCount, errno.TableDenied, errno.ColumnDenied, errno.NoSuchTable, errno.WrongArguments, errno.SpecificAccessDenied, errno.NoSuchProgram, errno.NoDefault, errno.ProgramDenied:
		return true
	}
	return false
}

// Gone reports whether the server is about to close the session, or no longer takes its work: it shuts down, was killed, or
// has become a replica.
func (e *ServerError) Gone() bool {
	switch e.Code {
	case 0:
		return len(e.State) == 5 && (e.State[:2] == "57" || e.State[:2] == "08" || e.State == "25006")
	case errno.ServerShutdown, errno.ConnectionKilled, errno.OptionPrevents, errno.ReadOnlyServer, errno.SessionKilled, errno.ClientInactive, errno.ReadOnlyTransaction:
		return true
	}
	return false
}
