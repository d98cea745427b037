package binlog

import (
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
	for _, c := range schema + table {
		if c >= 0x80 { // the text is in whatever character set its client spoke
			return q, false
		}
	}
	q.Text = []byte(text[:at.Begin] + mysql.Quote(schema) + "." + mysql.Quote(table) + text[at.End:])
	q.Schema = schema
	return q, true
}
