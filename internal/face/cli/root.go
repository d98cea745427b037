// Package cli is the command line: a file per command, and the only place where Risso's parts are put together.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
)

// Streams are what a command reads and writes.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// Exit codes of every command. They stand in `risso help exit-codes`.
const (
	exitOK      = 0
	exitFailed  = 1
	exitUsage   = 2
	exitInUse   = 3 // the data directory or the address belongs to another process
	exitDiffers = 4 // checksum found differences; a comparison's verdict is one of --fail-if
	exitUnsure  = 5 // --fail-if was given, and there is no verdict

	exitInterrupted = 130 // a signal ended it
)

const exitCodesHelp = `Exit codes of all commands:
  0  it went well
  1  it failed: the line on standard error says what and, where possible, what mends it
  2  wrong use: an unknown flag or command, a DSN or value that cannot be read
  3  the data directory or the address to listen on is in use by another process
  4  checksum: rows or tables differ; bench compare: the verdict is one that --fail-if names
  5  bench compare --fail-if: no verdict can be given
  130  a signal ended it; what that left is said (a benchmark has printed what was measured until then);
       serve, top, binlog follow and sandbox load run until a signal, and end with 0 then
risso check has those of Nagios: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN (also for wrong use)
`

// exitError is an error with the exit code it stands for and a hint for the person.
type exitError struct {
	code int
	hint string
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// toldError ends a command with an exit code when all was said already on standard output.
type toldError struct{ code int }

func (e *toldError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

func usageError(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

func failure(code int, hint string, err error) error {
	return &exitError{code: code, hint: hint, err: err}
}

// Main runs one command and gives its exit code.
func Main(ctx context.Context, args []string, s Streams) int {
	out := &answerWriter{w: s.Out}
	if !onTerminal(s.Out) {
		s.Out = out
	}
	root := newRoot(s)
	args, err := fromSysbench(args)
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		complete(root)
	}
	if err == nil {
		root.SetArgs(args)
		err = root.ExecuteContext(ctx)
	}
	if err == nil {
		err = out.failed()
	}
	if err == nil {
		return exitOK
	}
	code := codeOf(err)
	if told := (*toldError)(nil); errors.As(err, &told) {
		return code
	}
	message, hint := err.Error(), ""
	if e := (*exitError)(nil); errors.As(err, &e) {
		hint = e.hint
	}
	if code == exitFailed && ctx.Err() != nil { // the signal is why it failed, whatever broke first
		code = exitInterrupted
		if errors.Is(err, context.Canceled) {
			message = "interrupted"
		}
	}
	for _, a := range args { // an argument may stand in a message; its password must not
		for _, s := range secretSpans(a) { // with the signs around it, for it may be a word of the message, too
			after := min(s[1]+1, len(a))
			message = strings.ReplaceAll(message, a[s[0]-1:after], a[s[0]-1:s[0]]+"***"+a[s[1]:after])
		}
	}
	fmt.Fprintf(s.Err, "risso: %s\n", oneLine(message, hint))
	return code
}

// answerWriter remembers that what was asked for could not be written: a full disk must not look like success.
type answerWriter struct {
	w   io.Writer
	mu  sync.Mutex
	err error
}

func (a *answerWriter) Write(p []byte) (int, error) {
	n, err := a.w.Write(p)
	if err != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.err == nil {
			a.err = err
		}
	}
	return n, err
}

// failed is the first error, unless whoever read went away.
func (a *answerWriter) failed() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil || errors.Is(a.err, syscall.EPIPE) {
		return nil
	}
	return fmt.Errorf("standard output: %w", a.err)
}

// codeOf is the exit code that an error stands for.
func codeOf(err error) int {
	var told *toldError
	var e *exitError
	var coded interface{ ExitCode() int }
	switch {
	case errors.As(err, &told):
		return told.code
	case errors.As(err, &e):
		return e.code
	case errors.As(err, &coded):
		return coded.ExitCode()
	}
	return exitFailed
}

// oneLine joins an error and its hint in one line, for people and for logs.
func oneLine(msg, hint string) string {
	msg = strings.Join(strings.Fields(strings.ReplaceAll(msg, "\n", " ")), " ")
	if hint != "" {
		msg += " (" + hint + ")"
	}
	return msg
}

func newRoot(s Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "risso",
		Short: "The remote-DBA team in one binary",
		Long: `Risso watches MySQL, MariaDB and Percona servers every second, keeps every
number for good, and says in words what goes on.`,
		Example: `  risso serve --dsn 'risso:secret@tcp(db1:3306)/'     watch a server, page on http://127.0.0.1:8306
  risso top --dsn 'risso@unix(/run/mysqld/mysqld.sock)/'   the same live, in a terminal
  risso sandbox up --topology replication               a primary and two replicas to try it on`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       Version(),
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.AddCommand(newServe(s), newTop(s),
		newDigest(s), newExplain(s), newTrace(s),
		newBench(s),
		newBackup(s), newVerify(s), newDrill(s), newCheck(s), newBinlog(s), newRestore(s), newChecksum(s),
		newSandboxCmd(), newToken(s), newConfig(s), newGrants(s), newDoctor(s), newVersion(s), newManual(s),
		&cobra.Command{Use: "exit-codes", Short: "Exit codes of all commands", Long: exitCodesHelp})
	root.SetHelpCommand(newHelp())
	root.InitDefaultCompletionCmd()
	strict(root)
	return root
}
