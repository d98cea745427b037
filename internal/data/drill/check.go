package drill

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/data/physical"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
)

// Check is a question of the user's own with the answer that he expects.
type Check struct {
	SQL    string
	Expect string // see Expectations; empty: true
}

// Expectations says what may follow "-- expect:" and "=>".
const Expectations = `  true (or nothing)        the first value is neither NULL, nor empty, nor 0
  42                       the whole answer, columns separated by tabs, rows by newlines
  > 1000, >=, <, <=, !=    the first value, as a number
  rows, no rows            whether there are any
  /REGEXP/                 the whole answer matches the regular expression`

const expectMark = "-- expect:"

// ParseChecks reads a file of statements. A statement ends with ; at the end of a line; a line "-- expect: …" before it says
// which answer is right.
func ParseChecks(text string) ([]Check, error) {
	var list []Check
	var sql []string
	expect := ""
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if e, ok := strings.CutPrefix(trimmed, expectMark); ok {
			if len(sql) > 0 {
				return nil, fmt.Errorf("line %d: %s is inside a statement; a statement ends with ; at the end of a line", i+1, expectMark)
			}
			expect = strings.TrimSpace(e)
			if err := checkExpectation(expect); err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
			continue
		}
		if len(sql) == 0 && (trimmed == "" || strings.HasPrefix(trimmed, "--") || strings.HasPrefix(trimmed, "#")) {
			continue
		}
		sql = append(sql, line)
		if strings.HasSuffix(trimmed, ";") {
			list = append(list, Check{SQL: strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(strings.Join(sql, "\n")), ";")), Expect: expect})
			sql, expect = nil, ""
		}
	}
	if rest := strings.TrimSpace(strings.Join(sql, "\n")); rest != "" {
		list = append(list, Check{SQL: rest, Expect: expect})
	}
	return list, nil
}

// ParseCheck reads "SQL => expectation"; without => the answer has to be true.
func ParseCheck(text string) (Check, error) {
	c := Check{SQL: strings.TrimSpace(text)}
	if i := strings.LastIndex(text, "=>"); i >= 0 {
		c = Check{SQL: strings.TrimSpace(text[:i]), Expect: strings.TrimSpace(text[i+2:])}
	}
	c.SQL = strings.TrimSpace(strings.TrimSuffix(c.SQL, ";"))
	if c.SQL == "" {
		return c, errors.New("an empty query")
	}
	return c, checkExpectation(c.Expect)
}

func checkExpectation(e string) error {
	if len(e) > 1 && e[0] == '/' && e[len(e)-1] == '/' {
		if _, err := regexp.Compile(e[1 : len(e)-1]); err != nil {
			return fmt.Errorf("expectation %s: %w", e, err)
		}
	}
	if op, rest := operator(e); op != "" {
		if _, err := strconv.ParseFloat(rest, 64); err != nil {
			return fmt.Errorf("expectation %q: a number must follow %s", e, op)
		}
	}
	return nil
}

func operator(e string) (op, rest string) {
	for _, op := range []string{">=", "<=", "!=", ">", "<"} {
		if rest, ok := strings.CutPrefix(e, op); ok {
			return op, strings.TrimSpace(rest)
		}
	}
	return "", e
}

// meets reports whether an answer is the expected one.
func meets(expect string, rows [][]*string) bool {
	answer := answerOf(rows)
	firstValue, isNull := "", true
	if len(rows) > 0 && len(rows[0]) > 0 && rows[0][0] != nil {
		firstValue, isNull = *rows[0][0], false
	}
	op, rest := operator(expect)
	switch {
	case expect == "" || strings.EqualFold(expect, "true"):
		n, err := strconv.ParseFloat(firstValue, 64)
		return !isNull && firstValue != "" && (err != nil || n != 0)
	case expect == "rows":
		return len(rows) > 0
	case expect == "no rows":
		return len(rows) == 0
	case len(expect) > 1 && expect[0] == '/' && expect[len(expect)-1] == '/':
		re, err := regexp.Compile(expect[1 : len(expect)-1])
		return err == nil && re.MatchString(answer)
	case op != "":
		return compareNumbers(op, firstValue, rest)
	}
	return answer == strings.ReplaceAll(expect, `\t`, "\t")
}

func compareNumbers(op, a, b string) bool {
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	if err1 != nil || err2 != nil {
		return false
	}
	switch op {
	case ">":
		return x > y
	case ">=":
		return x >= y
	case "<":
		return x < y
	case "<=":
		return x <= y
	}
	return x != y
}

// answerOf writes rows as text.
func answerOf(rows [][]*string) string {
	lines := make([]string, len(rows))
	for i, row := range rows {
		cells := make([]string, len(row))
		for k, v := range row {
			cells[k] = "NULL"
			if v != nil {
				cells[k] = *v
			}
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return strings.Join(lines, "\n")
}

// maxAnswer is how much of an answer a proof keeps.
const maxAnswer = 1000

// check asks the restored server whether it is whole.
func (r *run) check(ctx context.Context) error {
	if !r.SkipCheck {
		if err := r.checkTables(ctx); err != nil {
			return err
		}
		r.checked("check tables")
	}
	if len(r.Checks) == 0 {
		return nil
	}
	for _, c := range r.Checks {
		q := Query{SQL: c.SQL, Expect: c.Expect}
		if q.Expect == "" {
			q.Expect = "true"
		}
		results, err := r.node.Query(ctx, c.SQL)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			q.Got = err.Error()
		default:
			last := results[len(results)-1] // of several statements the last one's answer counts
			q.Got, q.Passed = answerOf(last.Rows), meets(c.Expect, last.Rows)
		}
		if len(q.Got) > maxAnswer {
			q.Got = q.Got[:maxAnswer] + "…"
		}
		if !q.Passed {
			r.proof.fail("%s gave %s, want %s", oneline.Cut(oneline.Of(q.SQL), 120), quoted(q.Got), q.Expect)
		}
		r.proof.Queries = append(r.proof.Queries, q)
	}
	r.checked("own queries")
	return nil
}

func quoted(s string) string {
	if s == "" {
		return "nothing"
	}
	return oneline.Cut(oneline.Of(s), 120)
}

// tableName is a table of the restored server.
type tableName struct {
	schema, name string
	away         int // its place in Proof.LeftOut, from 1 on; 0: its rows are in the backup
}

func (t tableName) String() string { return mysql.Quote(t.schema) + "." + mysql.Quote(t.name) }

// tables lists the tables of the restored server, those of the server itself only if they are asked for.
func (r *run) tables(ctx context.Context, own bool) (list []tableName, err error) {
	conn, err := mysql.Connect(ctx, r.target.WithPatience(0), nil)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	rows, err := conn.Maps(ctx, `SELECT /* risso: which tables are there? */ TABLE_SCHEMA AS s, TABLE_NAME AS t, ENGINE AS e FROM information_schema.TABLES
		WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA NOT IN ('performance_schema', 'information_schema', 'sys')`)
	if err != nil {
		return nil, fmt.Errorf("list the tables: %w", err)
	}
	away := map[string]int{}
	for i, text := range leftOut(r.header) {
		away[text] = i + 1
	}
	for _, row := range rows {
		if own || row["s"] != "mysql" {
			list = append(list, tableName{row["s"], row["t"], away[physical.LeftOut(row["s"], row["t"], row["e"])]})
		}
	}
	return list, nil
}

// unreadable notes that a table whose rows are not in the backup is not empty, but cannot be read.
func (r *run) unreadable(t tableName) {
	const mark = ": cannot be read"
	if text := &r.proof.LeftOut[t.away-1]; !strings.HasSuffix(*text, mark) {
		*text += mark
	}
}

// eachTable lets several sessions look at tables. The first error ends it.
func (r *run) eachTable(ctx context.Context, stage string, list []tableName, look func(ctx context.Context, c *mysql.Conn, t tableName) error) error {
	var next, done atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range min(r.Threads, max(1, len(list))) {
		g.Go(func() error {
			c, err := mysql.Connect(ctx, r.target.WithPatience(0), nil)
			if err != nil {
				return err
			}
			defer c.Close()
			for i := next.Add(1) - 1; i < int64(len(list)); i = next.Add(1) - 1 {
				if err := look(ctx, c, list[i]); err != nil {
					return err
				}
				r.Progress(Progress{Stage: stage, Done: done.Add(1), Total: int64(len(list)), Unit: "tables"})
			}
			return nil
		})
	}
	return g.Wait()
}

// mostProblems is how many tables with a problem a proof names.
const mostProblems = 100

// checkTables runs CHECK TABLE for every table: the server reads all of its pages, whose checksums it looks at, and all
// indexes, which have to agree.
func (r *run) checkTables(ctx context.Context) error {
	list, err := r.tables(ctx, true)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		r.proof.fail("the restored server has no tables")
		return nil
	}
	var mu sync.Mutex
	err = r.eachTable(ctx, "check tables", list, func(ctx context.Context, c *mysql.Conn, t tableName) error {
		problem, err := checkTable(ctx, c, t.schema, t.name)
		mu.Lock()
		defer mu.Unlock()
		r.proof.Check.Tables++
		if problem != "" && t.away > 0 {
			r.unreadable(t)
			return err
		}
		if problem != "" && len(r.proof.Check.Problems) < mostProblems {
			r.proof.Check.Problems = append(r.proof.Check.Problems, problem)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("check the tables: %w", err)
	}
	if n := len(r.proof.Check.Problems); n > 0 {
		r.proof.fail("CHECK TABLE: %s", strings.Join(r.proof.Check.Problems[:min(n, 3)], "; "))
	}
	return nil
}

// checkTable returns what is wrong with a table, or "".
func checkTable(ctx context.Context, c *mysql.Conn, schema, table string) (string, error) {
	rows, err := c.Maps(ctx, "CHECK /* risso: drill */ TABLE "+mysql.Quote(schema)+"."+mysql.Quote(table))
	if err != nil {
		if ctx.Err() != nil || mysql.Lost(err) {
			return "", fmt.Errorf("%s.%s: %w", schema, table, err)
		}
		return fmt.Sprintf("%s.%s: %v", schema, table, err), nil
	}
	for _, row := range rows {
		if row["Msg_type"] == "error" || row["Msg_type"] == "Error" || row["Msg_type"] == "status" && row["Msg_text"] != "OK" && row["Msg_text"] != "Table is already up to date" {
			return fmt.Sprintf("%s.%s: %s", schema, table, row["Msg_text"]), nil
		}
	}
	return "", nil
}
