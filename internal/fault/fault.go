// Package fault is how a command fails: an error with its exit code and how to fix it. No IO.
package fault

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
)

// Exit codes of every command. They are documented in `risso help exit-codes`.
const (
	OK      = 0
	Failed  = 1
	Usage   = 2
	InUse   = 3 // the data directory or the address belongs to another process
	Differs = 4 // checksum found differences; a replica has errant transactions; a comparison's verdict is one of --fail-if
	Unsure  = 5 // --fail-if was given, and there is no verdict

	Interrupted = 130 // a signal ended it
)

// Help tells the exit codes, for --help.
const Help = `Exit codes of all commands:
  0  success
  1  failure: the line on standard error says what failed and, if possible, how to fix it
  2  wrong use: an unknown flag or command, a DSN or value that cannot be read
  3  the data directory or the address to listen on is in use by another process
  4  checksum: rows or tables differ; gtid errant: a replica has transactions of its own; diff --fail-on: servers
     differ so much; bench compare: the verdict is one that --fail-if names
  5  bench compare --fail-if: no verdict can be given
  130  ended by a signal; anything left behind is reported (a benchmark prints what it measured so far);
       serve, route, top, binlog follow and sandbox load run until a signal, and then end with 0
risso check uses the codes of Nagios: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN (also for wrong use)
`

// Error is an error with its exit code. Its remedy is in Err: fleet.RemedyOf.
type Error struct {
	Code int
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Told ends a command with an exit code if everything was already written to standard output.
type Told struct{ Code int }

func (e *Told) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// Usagef is wrong use: exit code 2.
func Usagef(format string, args ...any) error {
	return &Error{Code: Usage, Err: fmt.Errorf(format, args...)}
}

// New is err with an exit code and how to fix it. Without a remedy it keeps the one it has.
func New(code int, remedy string, err error) error {
	return &Error{Code: code, Err: fleet.WithRemedy(err, remedy)}
}

// Code is the exit code of an error.
func Code(err error) int {
	var told *Told
	var e *Error
	var coded interface{ ExitCode() int }
	switch {
	case errors.As(err, &told):
		return told.Code
	case errors.As(err, &e):
		return e.Code
	case errors.As(err, &coded):
		return coded.ExitCode()
	}
	return Failed
}

// Line joins what is wrong and how to fix it in one line, for people and for logs.
func Line(msg, remedy string) string {
	msg = strings.Join(strings.Fields(strings.ReplaceAll(msg, "\n", " ")), " ")
	if remedy != "" {
		msg += " (" + remedy + ")"
	}
	return msg
}
