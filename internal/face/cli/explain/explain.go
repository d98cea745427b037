// Package explain holds the commands that explain statements: digest, explain, trace.
package explain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/plan"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
)

type explainFlags struct {
	flags.Server
	file       string
	connection int64
	database   string
	analyze    bool
	sample     bool
	redact     bool
	noAdvice   bool
	form       string
	timeout    time.Duration
	output     string
}

// New is risso explain.
func New(s screen.Streams) *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:   "explain ['SQL' | -]",
		Short: "Draw a query plan and say in words what it hides",
		Long: `Draws the plan of a statement as a tree, says in words what tabular EXPLAIN hides, and
works out which covering index would improve it.

The statement comes from the command line, or from standard input with "-". It is not run
unless --analyze is given, and then only if it only reads. Servers evaluate constant
subqueries and functions while planning, so Risso always asks in a read-only transaction,
with a time limit, and rolls it back.

--file reads a plan taken elsewhere: JSON of MySQL (versions 1 and 2) or MariaDB,
FORMAT=TREE, EXPLAIN ANALYZE, or a table.

` + fault.Help,
		Example: `  risso explain 'SELECT * FROM orders WHERE total > 500' --dsn 'risso@tcp(db1)/shop'
  risso explain --analyze --output svg - --config risso.yaml --dsn db1 --database shop <report.sql >plan.svg
  risso explain --connection 4711 --dsn 'risso@unix(/run/mysqld/mysqld.sock)/'
  mysql shop -e 'EXPLAIN FORMAT=JSON SELECT …' | risso explain --file -`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runExplain(cmd.Context(), s, f, args) },
	}
	fl := cmd.Flags()
	f.Bind(cmd, "the server to ask")
	fl.StringVar(&f.file, "file", "", "read a plan from this file, - for standard input, instead of asking a server")
	fl.Int64Var(&f.connection, "connection", 0, "explain what the connection with this ID is running now")
	fl.StringVarP(&f.database, "database", "d", "", "default database of the statement")
	fl.BoolVar(&f.analyze, "analyze", false, "run the statement and measure it; only for statements that read")
	fl.BoolVar(&f.sample, "sample", false, "put the literal 1 in place of each placeholder (?)")
	fl.BoolVar(&f.redact, "redact", false, "hide literals in conditions")
	fl.BoolVar(&f.noAdvice, "no-advice", false, "give no advice on indexes: do not read statistics, indexes and a sample of rows")
	fl.StringVar(&f.form, "form", "", "format to request: json, json2, tree or table (default: the most informative)")
	flags.DurationVar(fl, &f.timeout, "timeout", 10*time.Second, "time limit of each statement on the server")
	flags.OutputVar(fl, &f.output, "", "text", "json", "svg", "dot")
	cmd.MarkFlagsMutuallyExclusive("file", "connection")
	cmd.MarkFlagsMutuallyExclusive("file", "dsn")
	cmd.MarkFlagsMutuallyExclusive("file", "analyze")
	return cmd
}

func runExplain(ctx context.Context, s screen.Streams, f explainFlags, args []string) error {
	if f.timeout <= 0 {
		return fault.Usagef("--timeout %s: must be above 0", f.timeout)
	}
	var e plan.Explained
	var err error
	if f.file != "" {
		e, err = explainFile(s, f, args)
	} else {
		e, err = explainLive(ctx, s, f, args)
	}
	if err != nil {
		return err
	}
	return writeExplained(s, f.output, e)
}

// maxPlan bounds the size of a plan or statement that is read; the largest real plans have some megabytes.
const maxPlan = 64 << 20

func explainFile(s screen.Streams, f explainFlags, args []string) (plan.Explained, error) {
	if len(args) > 0 {
		return plan.Explained{}, fault.Usagef("with --file there is no statement to give")
	}
	in := s.In
	if f.file != "-" {
		file, err := os.Open(f.file)
		if err != nil {
			return plan.Explained{}, fault.New(fault.Usage, "", fmt.Errorf("--file: %w", err))
		}
		defer file.Close()
		in = file
	}
	b, err := io.ReadAll(io.LimitReader(in, maxPlan))
	if err != nil {
		return plan.Explained{}, fmt.Errorf("read the plan: %w", err)
	}
	p, err := plan.Parse(string(b))
	if err != nil {
		return plan.Explained{}, fault.New(fault.Failed, "--file takes the output of EXPLAIN FORMAT=JSON, FORMAT=TREE, EXPLAIN ANALYZE, ANALYZE FORMAT=JSON or EXPLAIN", err)
	}
	if f.redact {
		plan.Redact(p)
	}
	return plan.Explain(p, nil, ""), nil
}

// statement is the statement to explain: the argument, or standard input.
func (f explainFlags) statement(s screen.Streams, args []string) (string, error) {
	if f.connection != 0 {
		if len(args) > 0 {
			return "", fault.Usagef("with --connection there is no statement to give")
		}
		return "", nil
	}
	if len(args) == 0 {
		return "", fault.New(fault.Usage, "give it in quotes, or - to read it from standard input, or --file with a plan", errors.New("no statement to explain"))
	}
	sql := args[0]
	if sql == "-" {
		b, err := io.ReadAll(io.LimitReader(s.In, maxPlan))
		if err != nil {
			return "", fmt.Errorf("read the statement: %w", err)
		}
		sql = string(b)
	}
	if f.sample {
		sql = plan.Sampled(sql)
	}
	return sql, nil
}

func explainLive(ctx context.Context, s screen.Streams, f explainFlags, args []string) (plan.Explained, error) {
	sql, err := f.statement(s, args)
	if err != nil {
		return plan.Explained{}, err
	}
	target, err := f.Target()
	if err != nil {
		return plan.Explained{}, err
	}
	// The server gives up first; the client's own limit is for a server that hangs.
	target = target.WithPatience(f.timeout + 5*time.Second)
	c, err := mysql.Connect(ctx, target, nil)
	if err != nil {
		return plan.Explained{}, explainFailure(mysql.Server{}, f.analyze, err)
	}
	defer c.Close()
	r := plan.Request{SQL: sql, Connection: f.connection, Database: f.database, Analyze: f.analyze, Form: f.form, Timeout: f.timeout}
	asking, cancel := context.WithTimeout(ctx, 4*f.timeout+5*time.Second)
	defer cancel()
	done := explainProgress(s, f)
	taken, err := plan.Take(asking, c, r)
	done()
	if err != nil {
		if asking.Err() != nil {
			endLeftBehind(ctx, s, target, c.Server.ConnectionID)
		}
		return plan.Explained{}, explainFailure(c.Server, f.analyze, err)
	}
	sql = taken.SQL
	var tables []plan.TableFacts
	if !f.noAdvice {
		if tables, err = plan.ReadFacts(asking, c, taken.Plan, sql); err != nil {
			taken.Notes = append(taken.Notes, "table statistics could not be read: "+err.Error())
		}
	}
	if f.redact {
		plan.Redact(taken.Plan)
	}
	e := plan.Explain(taken.Plan, tables, sql)
	e.Notes = append(e.Notes, taken.Notes...)
	e.Server = fmt.Sprintf("%s %s", c.Server.Flavour, c.Server.Version)
	return e, nil
}

// explainProgress shows on a terminal how long the measured statement has been running, until the function it
// returns is called.
func explainProgress(s screen.Streams, f explainFlags) (done func()) {
	if !f.analyze || !screen.OnTerminal(s.Err) {
		return func() {}
	}
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for begin := time.Now(); ; {
			select {
			case <-quit:
				fmt.Fprint(s.Err, "\r\x1b[K")
				return
			case <-tick.C:
				fmt.Fprintf(s.Err, "\rrunning the statement for %s, at most %s%s", digits.Age(time.Since(begin).Seconds()), digits.Span(f.timeout), "\x1b[K")
			}
		}
	}()
	return func() { close(quit); <-ended }
}

// endLeftBehind ends the statement that still runs on the server after Ctrl-C or a time-out.
func endLeftBehind(ctx context.Context, s screen.Streams, target mysql.Target, id int64) {
	kill, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := mysql.Kill(kill, target, id); err != nil {
		fmt.Fprintf(s.Err, "risso: %s\n", fault.Line(err.Error(), "the server ends it at its limit of time"))
	}
}

func explainFailure(server mysql.Server, analyze bool, err error) error {
	switch n := mysql.ErrorNumber(err); {
	case fleet.RemedyOf(err) != "":
		return err
	case errors.Is(err, plan.ErrStatement):
		return fault.New(fault.Usage, "", err)
	case mysql.ClassOf(err) == mysql.ClassPrivilege:
		return fault.New(fault.Failed, "a plan is shown only to accounts that may read everything the statement reads, including the tables of views: GRANT SELECT, SHOW VIEW ON them TO "+server.QuotedAccount(), err)
	case n == errno.ReadOnlyTransaction:
		return fault.New(fault.Failed, "a function in it writes, and the server would run it to plan the statement", err)
	case (n == errno.StatementTimeout || n == errno.StatementTimeoutMariaDB) && analyze:
		return fault.New(fault.Failed, "raise --timeout, or leave --analyze out", err)
	case n == errno.StatementTimeout || n == errno.StatementTimeoutMariaDB:
		return fault.New(fault.Failed, "raise --timeout: planning alone took longer; servers evaluate constant subqueries and functions while they plan, and a busy one is slow", err)
	case n == errno.NoPlan || n == errno.NoPlanMariaDB:
		return fault.New(fault.Failed, "that connection runs nothing with a plan just now", err)
	case n == errno.NoDatabase:
		return fault.New(fault.Failed, "give --database, or a database at the end of the DSN", err)
	case errors.Is(err, context.DeadlineExceeded) || mysql.ClassOf(err) == mysql.ClassTimeout:
		return fault.New(fault.Failed, "raise --timeout", err)
	}
	return err
}

func writeExplained(s screen.Streams, output string, e plan.Explained) error {
	switch output {
	case "json":
		enc := json.NewEncoder(s.Out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(e)
	case "svg":
		_, err := io.WriteString(s.Out, plan.SVG(e))
		return err
	case "dot":
		_, err := io.WriteString(s.Out, plan.Dot(e.Plan))
		return err
	}
	width := 0
	if out, ok := s.Out.(*os.File); ok && term.IsTerminal(int(out.Fd())) {
		if w, _, err := term.GetSize(int(out.Fd())); err == nil {
			width = w
		}
	}
	_, err := fmt.Fprintln(s.Out, strings.Join(e.Lines(width), "\n"))
	return err
}
