package plan

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sqltext"
)

// Bounds of inspect.
const (
	maxInspected = 64  // texts of functions and views
	maxCalls     = 500 // names of functions in one text
)

// Inspect is for those who run a statement of somebody else, which sqltext.ReadsOnly lets pass, in a transaction that is read-only: it
// refuses what such a transaction does not prevent, in the statement, the stored functions that it calls and the views that it reads. sql is
// in the words of the default sql_mode. Its errors wrap ErrStatement; the notes say what could not be seen.
func Inspect(ctx context.Context, c *mysql.Conn, sql string) (notes []string, err error) {
	return inspect(ctx, c, sql)
}

// inspect looks for what servers would do while they plan a statement, and a read-only transaction would not prevent:
// they evaluate constant subqueries and stored functions, and a function may set global variables, write a file, or
// call a function that steers the server (seen with MySQL 5.7.22, 8.0.15, 9.7 and MariaDB 10.11). It reads the
// functions that the statement calls, those that these call, and the views between them. Such a statement is refused,
// with ErrStatement. Functions that remain are listed in the notes. A function's text that the account may not read, and
// the calls that a dynamic name hides, cannot be seen: an account without EXECUTE protects against them.
func inspect(ctx context.Context, c *mysql.Conn, sql string) (notes []string, err error) {
	write := writing(sql)
	if why := harmful(sql, false); why != "" {
		return nil, fmt.Errorf("%w: it %s, and servers may do that while planning it", ErrStatement, why)
	}
	base := ""
	if rows, err := c.Maps(ctx, "SELECT /* risso: plan */ DATABASE() AS db"); err == nil && len(rows) == 1 {
		base = rows[0]["db"]
	}
	type text struct{ schema, sql string }
	queue := []text{{base, sql}}
	seen := map[string]bool{}
	var ran, hidden []string
	for len(queue) > 0 {
		if len(seen) > maxInspected {
			return nil, fmt.Errorf("%w: it calls more than %d stored functions and views", ErrStatement, maxInspected)
		}
		t := queue[0]
		queue = queue[1:]
		functions, err := storedFunctions(ctx, c, t.schema, t.sql)
		if err != nil {
			return nil, err
		}
		views, err := viewsOf(ctx, c, t.schema, t.sql)
		if err != nil {
			return nil, err
		}
		for _, o := range append(functions, views...) {
			if seen[o.kind+o.name()] {
				continue
			}
			seen[o.kind+o.name()] = true
			if why := harmful(o.body, write && o.kind == "function"); why != "" {
				return nil, fmt.Errorf("%w: %s %s %s, and servers may run it while planning the statement", ErrStatement, o.kind, o.name(), why)
			}
			queue = append(queue, text{o.schema, o.body})
			switch {
			case o.body == "":
				hidden = append(hidden, o.name())
			case o.kind == "function":
				ran = append(ran, o.name())
			}
		}
	}
	if len(ran) > 0 {
		notes = append(notes, "servers run stored functions with constant arguments while planning: "+strings.Join(ran, ", ")+" may have run, in a read-only transaction"+rolledBack(write))
	}
	if len(hidden) > 0 {
		notes = append(notes, "the account may not read the text of "+strings.Join(hidden, ", ")+": it is not known what it does if a server runs it to plan the statement")
	}
	return notes, nil
}

func rolledBack(write bool) string {
	if write {
		return " or one that was rolled back"
	}
	return ""
}

// harmful says what of a text a read-only transaction does not prevent, or "". With write, changing rows counts, too:
// the statement then runs in a transaction that may write, and only some engines undo it.
func harmful(sql string, write bool) string {
	t := lex(sql)
	setting := false
	for i, x := range t {
		if i+1 < len(t) && sign(t[i+1], "(") && x.Name() && sqltext.Steers(x.Text) {
			return "calls " + strings.ToLower(x.Text) + "(), which changes the server"
		}
		if sign(x, ";") {
			setting = false
		}
		if x.Kind != sqltext.TokenWord {
			continue
		}
		before := token{}
		if i > 0 {
			before = t[i-1]
		}
		switch strings.ToUpper(x.Text) {
		case "SET":
			setting = true
		case "GLOBAL", "PERSIST", "PERSIST_ONLY":
			if setting && assigned(t, i) {
				return "sets a global variable"
			}
		case "OUTFILE", "DUMPFILE":
			if word(before, "INTO") {
				return "writes a file"
			}
		case "INSERT", "REPLACE", "UPDATE", "DELETE", "CALL", "LOAD":
			if write && !sign(before, ".") && !word(before, "FOR") && !(i+1 < len(t) && sign(t[i+1], "(")) {
				return "has " + strings.ToUpper(x.Text)
			}
		}
	}
	return ""
}

// assigned reports whether the GLOBAL at a place in a SET is of a variable that is set, and not of one that is read.
func assigned(t []token, i int) bool {
	b := i - 1
	for b >= 0 && sign(t[b], "@") {
		b--
	}
	return b >= 0 && (word(t[b], "SET") || sign(t[b], ","))
}

// program is a stored function or a view, with its text; "" where the account may not read it.
type program struct{ kind, schema, title, body string }

func (o program) name() string { return o.schema + "." + o.title }

// calls are the names before parentheses, with the schema if one is given.
func calls(schema, sql string) []tableName {
	var out []tableName
	seen := map[tableName]bool{}
	t := lex(sql)
	for i := 0; i+1 < len(t) && len(out) < maxCalls; i++ {
		if !sign(t[i+1], "(") || !t[i].Name() {
			continue
		}
		n := tableName{strings.ToLower(schema), strings.ToLower(t[i].Text)}
		if i > 1 && sign(t[i-1], ".") && t[i-2].Name() {
			n.schema = strings.ToLower(t[i-2].Text)
		}
		if !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	return out
}

// storedFunctions are the stored functions that a text calls.
func storedFunctions(ctx context.Context, c *mysql.Conn, schema, sql string) ([]program, error) {
	names := calls(schema, sql)
	if len(names) == 0 {
		return nil, nil
	}
	wanted := map[tableName]bool{}
	var list, schemas []string
	for _, n := range names {
		wanted[n] = true
		list, schemas = append(list, literal(n.table)), append(schemas, literal(n.schema))
	}
	rows, err := c.Maps(ctx, `SELECT /* risso: plan */ ROUTINE_SCHEMA AS s, ROUTINE_NAME AS n, ROUTINE_DEFINITION AS body, SQL_MODE AS mode FROM information_schema.ROUTINES
  WHERE ROUTINE_TYPE = 'FUNCTION' AND ROUTINE_NAME IN (`+strings.Join(list, ", ")+`) AND ROUTINE_SCHEMA IN (`+strings.Join(schemas, ", ")+`)`)
	if err != nil {
		return nil, fmt.Errorf("find the stored functions that the statement calls: %w", err)
	}
	var out []program
	for _, r := range rows {
		if wanted[tableName{strings.ToLower(r["s"]), strings.ToLower(r["n"])}] {
			out = append(out, program{"function", r["s"], r["n"], c.Server.Dialect().WithMode(r["mode"]).ForDefault(r["body"])})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].name() < out[j].name() })
	return out, nil
}

// viewsOf are the views that a text names. They are asked for one by one: a server that keeps tables as files finds
// one of known schema and name immediately, and searches all schemas otherwise.
func viewsOf(ctx context.Context, c *mysql.Conn, schema, sql string) ([]program, error) {
	var out []program
	for i, t := range sqltext.Tables([]byte(sql)) {
		if i == maxTables {
			break
		}
		if t.Schema == "" {
			t.Schema = schema
		}
		rows, err := c.Maps(ctx, "SELECT /* risso: plan */ VIEW_DEFINITION AS body FROM information_schema.VIEWS WHERE TABLE_SCHEMA = "+literal(t.Schema)+" AND TABLE_NAME = "+literal(t.Name))
		if err != nil {
			return nil, fmt.Errorf("find the views that the statement reads: %w", err)
		}
		for _, r := range rows {
			out = append(out, program{"view", t.Schema, t.Name, r["body"]})
		}
	}
	return out, nil
}
