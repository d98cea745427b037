package dump

import (
	"context"
	"strings"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/pattern"
)

// exact says whether a pattern names one thing only.
func exact(pattern string) bool { return !strings.ContainsAny(pattern, `*?[\`) }

// lookAround says what of a selection the account may not see; nil when it sees all of it.
func lookAround(ctx context.Context, st *mysql.Stream, server mysql.Server, sel Selection, l *listing) (*mysql.BlindError, error) {
	schemas, tables, open := sel.named()
	o := mysql.Scope{Open: open, Schemas: schemas, Tables: tables, Seen: l.tables, Programs: func(schema string) bool { return l.whole[schema] }}
	if open {
		o.Schemas = append(o.Schemas, l.schemas...)
	}
	if o.Seen == nil {
		o.Seen = []mysql.TableInfo{}
	}
	return st.Blind(ctx, server, o)
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
