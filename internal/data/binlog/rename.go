package binlog

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sqltext"
)

// Bits of sql_mode in a query event. Source: MySQL's sql/query_options.h and system_variables.h.
const (
	modeAnsiQuotes  = 1 << 2
	modeNoBackslash = 1 << 20
)

// dialectOf is how a logged statement is read.
func dialectOf(q binlogevent.Query) (d sqltext.Dialect) {
	if q.SQLMode != nil {
		d.ANSIQuotes, d.NoBackslash = *q.SQLMode&modeAnsiQuotes != 0, *q.SQLMode&modeNoBackslash != 0
	}
	return d
}

// renamed is a statement on one table, which has another name on the server, so that it names that. ok is false for any statement
// that names it otherwise than as the one table that is altered: those are refused.
func (o RollOptions) renamed(q binlogevent.Query) (_ binlogevent.Query, ok bool) {
	all := changedTables(q)
	if len(all) != 1 || !o.Only(all[0].Schema, all[0].Name) || !o.renames(all[0].Schema, all[0].Name) {
		return q, false
	}
	text := string(q.Text)
	c, _ := dialectOf(q).ReadChange(text)
	if c.Kind != "TABLE" || c.Verb != "ALTER" && c.Verb != "TRUNCATE" || c.More {
		return q, false
	}
	at := c.Names[0]
	schema, table := o.Names(all[0].Schema, all[0].Name)
	written := schema + table
	if table != all[0].Name {
		for _, n := range slices.Concat(c.Constraints, c.Checks) {
			written += n.Name
		}
	}
	if strings.ContainsFunc(written, func(r rune) bool { return r >= utf8.RuneSelf }) { // the text is in whatever character set its client spoke
		return q, false
	}
	q.Text = []byte(text[:at.Begin] + mysql.Quote(schema) + "." + mysql.Quote(table) + text[at.End:])
	q.Schema = schema
	return q, true
}

// copied is a statement that renamed takes, in which constraints of a table with another name have the names that they have there: those of
// a restored table (sqltext.CopyName), if the table has such, and those of checks that are added, which are unique in a schema (MySQL).
func (a *applier) copied(ctx context.Context, q binlogevent.Query) (binlogevent.Query, error) {
	was := changedTables(q)[0]
	schema, table := a.o.Names(was.Schema, was.Name)
	c, _ := dialectOf(q).ReadChange(string(q.Text))
	if table == was.Name || len(c.Constraints)+len(c.Checks) == 0 {
		return q, nil
	}
	there := map[string]bool{}
	literal := func(s string) string { return "CONVERT(x'" + hex.EncodeToString([]byte(s)) + "' USING utf8mb4)" } // under any sql_mode
	if err := a.flush(ctx); err != nil {
		return q, err
	}
	names, err := a.s.Values(ctx, "SELECT /* risso: what are its constraints called? */ CONSTRAINT_NAME FROM information_schema.TABLE_CONSTRAINTS WHERE TABLE_SCHEMA = "+literal(schema)+" AND TABLE_NAME = "+literal(table))
	if err != nil {
		return q, err
	}
	for _, n := range names {
		there[strings.ToLower(n)] = true
	}
	var edits []sqltext.Edit
	edit := func(n sqltext.Ident, name string) {
		edits = append(edits, sqltext.Edit{Begin: n.Begin, End: n.End, Text: mysql.Quote(name)})
	}
	for _, n := range c.Constraints {
		if name := sqltext.CopyName(n.Name, was.Name, table); there[strings.ToLower(name)] {
			edit(n, name)
		}
	}
	for _, n := range c.Checks {
		if a.s.Server.ChecksBySchema() {
			edit(n, sqltext.CopyName(n.Name, was.Name, table))
		}
	}
	q.Text = []byte(sqltext.Apply(string(q.Text), edits))
	return q, nil
}
