package plan

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/sqltext"
)

// Request says which plan is wanted.
type Request struct {
	SQL        string        // one statement, without EXPLAIN
	Connection int64         // or else: what this connection runs just now
	Database   string        // default database; "": the session's
	Analyze    bool          // run the statement and measure
	Form       string        // "json", "json2", "tree", "table"; "": the most detailed
	Timeout    time.Duration // of each statement; 0: ten seconds
}

// Taken is what a server answered.
type Taken struct {
	Plan  *Plan
	Text  string   // the plan as the server returned it; "" if it was tabular
	Notes []string // what could not be asked, in words
	SQL   string   // the statement in the words of the default sql_mode, as all else here reads it
}

// defaultTimeout bounds a statement when a Request does not.
const defaultTimeout = 10 * time.Second

// Take asks a server for a plan, in a transaction that is rolled back. Without Analyze the statement is not run, except
// for what servers do to plan it: constant subqueries, and stored functions with constant arguments, are evaluated by
// EXPLAIN itself (seen with MySQL 5.7.22 to 9.7 and MariaDB 10.11). For a statement that reads the transaction is
// read-only, so that such a function cannot write; it fails then, with errno.ReadOnlyTransaction. What a read-only
// transaction lets through is looked for first, in the statement, its views and its functions: see inspect.
//
// The connection should be a separate one: Take changes the session. When ctx ends the server may still be at work;
// mysql.Kill ends that.
func Take(ctx context.Context, c *mysql.Conn, r Request) (*Taken, error) {
	theirs := r.SQL
	r.SQL = c.Server.Dialect().ForDefault(r.SQL)
	forms, sql, err := r.forms(c.Server)
	if err != nil {
		return nil, err
	}
	if r.Timeout <= 0 {
		r.Timeout = defaultTimeout
	}
	for _, s := range c.Server.BoundStatements(r.Timeout) {
		if err := c.Exec(ctx, s); err != nil && mysql.ClassOf(err) != mysql.ClassMissing {
			return nil, fmt.Errorf("bound the session: %w", err)
		}
	}
	if r.Database != "" {
		if err := c.Exec(ctx, "USE /* risso: plan */ "+mysql.Quote(r.Database)); err != nil {
			return nil, fmt.Errorf("use database %s: %w", r.Database, err)
		}
	}
	var told []string
	if r.Connection == 0 {
		if told, err = inspect(ctx, c, sql); err != nil {
			return nil, err
		}
		begin := "START TRANSACTION /* risso: plan */ READ ONLY"
		if writing(sql) {
			begin = "START TRANSACTION /* risso: plan */" // a read-only one refuses to explain what writes
		}
		if err := c.Exec(ctx, begin); err != nil {
			return nil, fmt.Errorf("begin a transaction: %w", err)
		}
		defer func() { _ = c.Exec(context.WithoutCancel(ctx), "ROLLBACK /* risso: plan */") }()
	}
	theirs = strings.TrimRight(strings.TrimSpace(theirs), "; \t\r\n")
	var taken *Taken
	err = c.InTheirMode(ctx, func() (err error) {
		if taken, err = takeFirst(ctx, c, forms, theirs); err != nil {
			return err
		}
		taken.SQL = sql
		taken.Notes = append(taken.Notes, told...)
		if r.Analyze {
			notes, partial := interrupted(ctx, c)
			taken.Notes, taken.Plan.Partial = append(taken.Notes, notes...), partial
		}
		if r.Connection == 0 && r.Form == "" {
			enrich(ctx, c, taken, r, theirs)
		}
		return nil
	})
	return taken, err
}

// interrupted says so when the server ended the statement at the limit of time: MySQL's EXPLAIN ANALYZE then returns
// the figures until there, with a warning and no error (seen with 9.7).
func interrupted(ctx context.Context, c *mysql.Conn) (notes []string, partial bool) {
	rows, err := c.Maps(ctx, "SHOW /* risso: plan */ WARNINGS")
	if err != nil {
		return []string{"whether the statement finished could not be determined: " + err.Error()}, false
	}
	for _, r := range rows {
		if n := r["Code"]; n == "1317" || n == "3024" {
			return []string{"the statement did not finish: it was stopped at the time limit, and counts cover only what ran until then"}, true
		}
	}
	return nil, false
}

// forms are the ways to ask, the best first, and the statement to put after them.
func (r Request) forms(s mysql.Server) ([]mysql.Explain, string, error) {
	sql, forms := "", []mysql.Explain(nil)
	switch {
	case r.Connection != 0:
		if r.SQL != "" || r.Analyze {
			return nil, "", fmt.Errorf("%w: with a connection, no statement is given and none is run", ErrStatement)
		}
		if forms = s.ExplainConnection(r.Connection); forms == nil {
			return nil, "", fmt.Errorf("%s %s cannot explain what another connection runs: MySQL can since 5.7", s.Flavour, s.Version)
		}
	default:
		var err error
		if sql, err = check(r.SQL, r.Analyze); err != nil {
			return nil, "", err
		}
		if forms = s.Explains(); r.Analyze {
			if forms = s.ExplainAnalyzes(); forms == nil {
				return nil, "", fmt.Errorf("%s %s cannot measure a plan: MySQL can since 8.0.18, MariaDB since 10.1; leave --analyze out", s.Flavour, s.Version)
			}
		}
	}
	if r.Form == "" {
		return forms, sql, nil
	}
	var names []string
	for _, f := range forms {
		if f.Name == r.Form {
			return []mysql.Explain{f}, sql, nil
		}
		names = append(names, f.Name)
	}
	return nil, "", fmt.Errorf("%s %s does not give this plan as %q, but as %s", s.Flavour, s.Version, r.Form, strings.Join(names, ", "))
}

// writing reports whether a statement changes rows, or locks them to do so: MariaDB does not plan SELECT … FOR UPDATE in a transaction
// that only reads.
func writing(sql string) bool {
	switch sqltext.Verb([]byte(sql)) {
	case "INSERT", "REPLACE", "UPDATE", "DELETE":
		return true
	}
	t := lex(sql)
	for i := 1; i < len(t); i++ {
		if word(t[i], "UPDATE") && word(t[i-1], "FOR") {
			return true
		}
	}
	return false
}

// takeFirst asks in each form until one returns a plan with nodes in it.
func takeFirst(ctx context.Context, c *mysql.Conn, forms []mysql.Explain, sql string) (*Taken, error) {
	var first error
	var empty *Taken
	for _, f := range forms {
		t, err := takeOne(ctx, c, f, sql)
		if err == nil && !t.Plan.opaque() {
			return t, nil
		}
		if err == nil {
			empty = t
			continue
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil || mysql.ErrorNumber(err) == 0 && !errors.Is(err, ErrNoPlan) || hopeless(mysql.ErrorNumber(err)) {
			break
		}
	}
	if empty != nil {
		return empty, nil
	}
	return nil, first
}

// hopeless errors would come in every form: the statement itself is at fault.
func hopeless(number int) bool {
	switch number {
	case errno.ParseError, errno.NoDatabase, errno.NoSuchTable, errno.UnknownColumn, errno.UnknownDatabase, errno.TableDenied, errno.ColumnDenied, errno.ReadOnlyTransaction, errno.StatementTimeout, errno.StatementTimeoutMariaDB,
		errno.NoSuchThread, errno.NoPlan, errno.NoPlanMariaDB:
		return true
	}
	return false
}

// opaque is a plan that says only that it cannot be shown in this format.
func (p *Plan) opaque() bool {
	return len(p.Root.Children) == 0 && strings.Contains(p.Root.Title, "not executable by iterator")
}

func takeOne(ctx context.Context, c *mysql.Conn, f mysql.Explain, sql string) (*Taken, error) {
	if f.Session != "" {
		if err := c.Exec(ctx, f.Session); err != nil {
			return nil, fmt.Errorf("prepare the session: %w", err)
		}
	}
	if f.Rows {
		rows, err := c.Maps(ctx, f.Prefix+sql)
		if err != nil {
			return nil, err
		}
		p, err := FromRows(lowerNames(rows))
		if err == nil {
			p.Rewritten = inBackticks(rewritten(ctx, c))
		}
		return &Taken{Plan: p}, err
	}
	var text strings.Builder
	err := c.Query(ctx, f.Prefix+sql, func(row []sqldriver.Value) error {
		// SHOW EXPLAIN has the statement in no second column, but other versions may.
		if b, ok := row[0].([]byte); ok {
			text.Write(b)
		} else if s, ok := row[0].(string); ok {
			text.WriteString(s)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	p, err := Parse(text.String())
	if err != nil {
		return nil, fmt.Errorf("read the plan: %w", err)
	}
	if p.Rewritten == "" {
		p.Rewritten = inBackticks(rewritten(ctx, c))
	}
	return &Taken{Plan: p, Text: text.String()}, nil
}

// rewritten is the statement as the optimiser rewrote it, or "": what a server notes after EXPLAIN with the number 1003
// (https://dev.mysql.com/doc/refman/9.4/en/explain-extended.html; MariaDB after EXPLAIN EXTENDED only).
func rewritten(ctx context.Context, c *mysql.Conn) string {
	rows, err := c.Maps(ctx, "SHOW /* risso: plan */ WARNINGS")
	if err != nil {
		return "" // less is known then, nothing else
	}
	for _, r := range rows {
		if r["Code"] == "1003" {
			return r["Message"]
		}
	}
	return ""
}

func lowerNames(rows []map[string]string) []Row {
	out := make([]Row, len(rows))
	for i, r := range rows {
		out[i] = Row{}
		for name, v := range r {
			out[i][strings.ToLower(name)] = v
		}
	}
	return out
}

// enrich asks a second time for what the first format leaves out: possible keys (version 2 and FORMAT=TREE have none),
// and on MariaDB which subqueries are dependent or uncacheable. What fails is a note, no error.
func enrich(ctx context.Context, c *mysql.Conn, t *Taken, r Request, sql string) {
	named := c.Server.NamesSubqueries()
	keys := t.Plan.Format == FormatMySQL2 || t.Plan.Format == FormatTree
	if named && !keys || t.Plan.Format == FormatTable {
		return
	}
	forms := c.Server.Explains()
	form := forms[0]
	if !named {
		form = forms[len(forms)-1]
	}
	more, err := takeOne(ctx, c, form, sql)
	if err != nil {
		t.Notes = append(t.Notes, "possible keys and kinds of subquery could not be determined: "+err.Error())
		return
	}
	Enrich(t.Plan, more.Plan)
}

// Enrich adds to a plan what another format says about the same statement: kinds of subquery by their select number,
// and possible keys, used columns and filtered by the name of the table.
func Enrich(p, more *Plan) {
	if p.Rewritten == "" {
		p.Rewritten = more.Rewritten
	}
	type flags struct{ dependent, uncacheable bool }
	selects := map[int]flags{}
	tables := map[string][]*Node{}
	more.Root.Walk(func(n, _ *Node, _ int) {
		if n.SelectID > 0 && (n.Dependent || n.Uncacheable) {
			selects[n.SelectID] = flags{n.Dependent, n.Uncacheable}
		}
		if n.Kind == KindTable && !n.Inner() {
			tables[n.Name()] = append(tables[n.Name()], n)
		}
	})
	p.Root.Walk(func(n, _ *Node, _ int) {
		if f, ok := selects[n.SelectID]; ok && (n.Kind == KindSubquery || n.Kind == KindCache) {
			n.Dependent, n.Uncacheable = n.Dependent || f.dependent, n.Uncacheable || f.uncacheable
		}
		if n.Kind != KindTable || len(tables[n.Name()]) != 1 {
			return // a name that comes twice says nothing
		}
		o := tables[n.Name()][0]
		if n.PossibleKeys == nil {
			n.PossibleKeys = o.PossibleKeys
		}
		if n.UsedColumns == nil {
			n.UsedColumns = o.UsedColumns
		}
	})
	totalsOf(p).executions(p.Root, 1, 1)
}
