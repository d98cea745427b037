package binlog

import (
	"slices"
	"strings"

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
	t := dialectOf(q).Tokens(text)
	at := tableOf(t)
	if at < 0 || at >= len(t) || !t[at].Name() || namesMore(t[at+1:]) {
		return q, false
	}
	end, name := t[at].End, t[at].Text
	if at+2 < len(t) && t[at+1].Text == "." && t[at+2].Name() {
		end, name = t[at+2].End, t[at+2].Text
	}
	schema, table := o.Names(all[0].Schema, all[0].Name)
	for _, c := range schema + table {
		if c >= 0x80 { // the text is in whatever character set its client spoke
			return q, false
		}
	}
	if name != all[0].Name {
		return q, false
	}
	q.Text = []byte(text[:t[at].Begin] + mysql.Quote(schema) + "." + mysql.Quote(table) + text[end:])
	q.Schema = schema
	return q, true
}

// tableOf is the place of the table's name in a statement that alters a table or empties it, or -1.
func tableOf(t []sqltext.Token) int {
	is := func(i int, words ...string) bool {
		return i < len(t) && t[i].Kind == sqltext.TokenWord && slices.Contains(words, strings.ToUpper(t[i].Text))
	}
	i := 1
	switch {
	case is(0, "ALTER"):
		for is(i, "ONLINE", "OFFLINE", "IGNORE") {
			i++
		}
		if !is(i, "TABLE") {
			return -1
		}
		if i++; is(i, "IF") && is(i+1, "EXISTS") {
			i += 2
		}
		return i
	case is(0, "TRUNCATE"):
		if is(i, "TABLE") {
			i++
		}
		return i
	case is(0, "CREATE", "DROP"):
		for is(i, "OR", "REPLACE", "UNIQUE", "FULLTEXT", "SPATIAL", "ONLINE", "OFFLINE") {
			i++
		}
		if !is(i, "INDEX") {
			return -1
		}
		for i < len(t) && !is(i, "ON") {
			i++
		}
		return i + 1
	}
	return -1
}

// namesMore says whether what follows the table may name another one, or the same by another name.
func namesMore(t []sqltext.Token) bool {
	for i, tok := range t {
		if tok.Kind != sqltext.TokenWord {
			continue
		}
		switch strings.ToUpper(tok.Text) {
		case "REFERENCES", "EXCHANGE", "UNION", "SELECT", "LIKE":
			return true
		case "RENAME":
			if i+1 >= len(t) || t[i+1].Kind != sqltext.TokenWord || !slices.Contains([]string{"COLUMN", "INDEX", "KEY"}, strings.ToUpper(t[i+1].Text)) {
				return true
			}
		case "CONVERT":
			if i+1 < len(t) && slices.Contains([]string{"PARTITION", "TABLE"}, strings.ToUpper(t[i+1].Text)) {
				return true
			}
		}
	}
	return false
}
