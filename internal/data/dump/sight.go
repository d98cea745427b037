package dump

import (
	"context"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/pattern"
)

// exact reports whether a pattern names one thing only.
func exact(pattern string) bool { return !strings.ContainsAny(pattern, `*?[\`) }

// lookAround says what of a selection the account may not see; nil when it sees all of it. Where a part will do what the account may not
// read goes out of the list.
func lookAround(ctx context.Context, st *mysql.Stream, server mysql.Server, opts Options, l *listing) (*define.BlindError, error) {
	schemas, tables, open := opts.Select.named()
	o := define.Scope{Open: open, Schemas: schemas, Tables: tables, Views: l.views, Seen: slices.Concat(l.tables, l.plain, l.away), Programs: func(schema string) bool { return l.whole[schema] }}
	if open {
		o.Schemas = append(o.Schemas, l.schemas...)
	}
	if o.Seen == nil {
		o.Seen = []define.TableInfo{}
	}
	b, err := define.Blind(ctx, st, server, o)
	if err != nil || b == nil && !opts.Partial {
		return nil, err
	}
	rights, err := st.Rights(ctx)
	if err != nil {
		return nil, err
	}
	l.rights = &rights
	l.leaveUnread()
	for _, s := range schemas {
		if !slices.Contains(l.schemas, s) && l.hides(s, "", "SELECT") {
			l.unread = append(l.unread, "schema "+mysql.Quote(s))
		}
	}
	for _, t := range tables {
		if l.hides(t.Schema, t.Name, "SELECT") && !slices.Contains(l.unread, t.String()) {
			l.unread = append(l.unread, t.String())
		}
	}
	if b != nil {
		b.Part = len(l.tables)+len(l.plain)+len(l.away)+len(l.views)+len(l.seqs) > 0
	}
	return b, nil
}

// hides reports whether the account is missing a privilege on a table, or a schema, if a part will do.
func (l *listing) hides(schema, table, privilege string) bool {
	return l.rights != nil && !l.rights.Have(schema, table, privilege)
}

// leaveUnread takes out of the list what the account is shown and may not read, and tables without transactions that it may not lock, without
// which they would be of no moment: and notes them.
func (l *listing) leaveUnread() {
	leave := func(name mysql.TableName, out bool) bool {
		if out {
			l.unread = append(l.unread, name.String())
		}
		return out
	}
	table := func(t define.TableInfo) bool { return leave(t.TableName, l.hides(t.Schema, t.Name, "SELECT")) }
	l.tables, l.plain, l.away = slices.DeleteFunc(l.tables, table), slices.DeleteFunc(l.plain, table), slices.DeleteFunc(l.away, table)
	l.views = slices.DeleteFunc(l.views, func(n mysql.TableName) bool {
		return leave(n, l.hides(n.Schema, n.Name, "SELECT") || l.hides(n.Schema, n.Name, "SHOW VIEW"))
	})
	l.seqs = slices.DeleteFunc(l.seqs, func(n mysql.TableName) bool { return leave(n, l.hides(n.Schema, n.Name, "SELECT")) })
	if !l.rights.Have("", "", "RELOAD", "FLUSH_TABLES") {
		l.plain = slices.DeleteFunc(l.plain, func(t define.TableInfo) bool { return leave(t.TableName, l.hides(t.Schema, "", "LOCK TABLES")) })
	}
	l.bytes = 0
	for _, t := range slices.Concat(l.tables, l.plain) {
		l.bytes += t.Bytes
	}
}

// named splits a selection: schemas and tables that it names, and whether it asks for what it does not name, so that all that
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
		schemas = append(schemas, pattern.Schema(p))
	}
	for _, p := range s.Tables {
		schema, table, _ := pattern.Name(p)
		switch quoted := p != schema+"."+table; {
		case !exact(schema) || !quoted && strings.Contains(table, "."): // any of the dots may part the names
			open = true
		case exact(table):
			tables = append(tables, mysql.TableName{Schema: schema, Name: table})
		default:
			schemas = append(schemas, schema)
		}
	}
	return schemas, tables, open
}
