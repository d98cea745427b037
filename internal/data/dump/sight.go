package dump

import (
	"context"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/mysql"
)

// exact says whether a pattern names one thing only.
func exact(pattern string) bool { return !strings.ContainsAny(pattern, `*?[\`) }

// lookAround says what of a selection the account may not see; nil when it sees all of it.
func lookAround(ctx context.Context, st *mysql.Stream, server mysql.Server, sel Selection, l *listing) (*mysql.BlindError, error) {
	schemas, tables, open := sel.named()
	o := mysql.Scope{Open: open, Schemas: schemas, Tables: tables, Views: l.views, Seen: l.tables, Programs: func(schema string) bool { return l.whole[schema] }}
	if open {
		o.Schemas = append(o.Schemas, l.schemas...)
	}
	if o.Seen == nil {
		o.Seen = []mysql.TableInfo{}
	}
	b, err := st.Blind(ctx, server, o)
	if b == nil || err != nil {
		return nil, err
	}
	rights, err := st.Rights(ctx)
	if err != nil {
		return nil, err
	}
	l.unread = l.leaveUnread(rights)
	b.Part = len(l.tables)+len(l.plain)+len(l.away)+len(l.views)+len(l.seqs) > 0
	return b, nil
}

// leaveUnread takes out of a list what the account is shown and may not read, and names it.
func (l *listing) leaveUnread(rights mysql.Rights) (out []mysql.TableName) {
	unread := func(name mysql.TableName, view bool) bool {
		if rights.Readable(name, view) {
			return false
		}
		out = append(out, name)
		return true
	}
	table := func(t mysql.TableInfo) bool { return unread(t.TableName, false) }
	l.tables, l.plain, l.away = slices.DeleteFunc(l.tables, table), slices.DeleteFunc(l.plain, table), slices.DeleteFunc(l.away, table)
	l.views = slices.DeleteFunc(l.views, func(n mysql.TableName) bool { return unread(n, true) })
	l.seqs = slices.DeleteFunc(l.seqs, func(n mysql.TableName) bool { return unread(n, false) })
	l.bytes = 0
	for _, t := range slices.Concat(l.tables, l.plain) {
		l.bytes += t.Bytes
	}
	return out
}

// named takes a selection apart: schemas and tables that it names, and whether it asks for what it does not name, so that all that
// there is has to be seen.
func (s Selection) named() (schemas []string, tables []mysql.TableName, open bool) {
	if len(s.Schemas)+len(s.Tables) == 0 {
		return nil, nil, true
	}
	for _, p := range s.Schemas {
		if !exact(p) {
			open = true
			continue
		}
		schemas = append(schemas, p)
	}
	for _, p := range s.Tables {
		schema, table, _ := strings.Cut(p, ".")
		switch {
		case !exact(schema) || strings.Contains(table, "."): // any of the dots may part the names
			open = true
		case exact(table):
			tables = append(tables, mysql.TableName{Schema: schema, Name: table})
		default:
			schemas = append(schemas, schema)
		}
	}
	return schemas, tables, open
}
