package load

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sqltext"
)

// byServer replaces a name that cannot be kept.
const byServer = "a name that the server gives it"

// constraintName is the name of an item's constraint, and the item without it; "" if it has none.
func constraintName(item string) (name, rest string) {
	t := sqltext.Tokens(item)
	if len(t) < 3 || t[0].Kind != sqltext.TokenWord || t[0].Text != "CONSTRAINT" || t[1].Kind != sqltext.TokenName {
		return "", item
	}
	return t[1].Text, item[t[2].Begin:]
}

// sharesName reports whether the name of an item's constraint can be there once in a schema of the target.
func (r *run) sharesName(item string) bool {
	name, _ := constraintName(item)
	return name != "" && (isForeignKey(item) || r.server.ChecksBySchema())
}

// definitionOf is a table's definition in the target's words, taken apart. Under another name the table may be next to the one that
// it was, which has the names of its constraints: it gets others, which rolling forward knows. Its foreign keys point at the
// restored tables, by their new names.
func (r *run) definitionOf(t *repo.Table) (definition, error) {
	create, err := r.writtenTable(t)
	if err != nil {
		return definition{}, err
	}
	def, err := parseTable(create)
	if err != nil {
		return def, err
	}
	was, err := parseTable(t.Create)
	if err != nil {
		return def, err
	}
	if len(was.items) != len(def.items) {
		return def, fmt.Errorf("%w: other words changed its number of columns and keys", repo.ErrDamaged)
	}
	schema, name := r.choice.target(t.Schema, t.Name)
	for i, item := range def.items {
		if isForeignKey(was.items[i]) {
			def.items[i] = r.pointed(was.items[i], item, t.Schema, schema)
		}
		if name != t.Name && r.sharesName(item) {
			own, rest := constraintName(def.items[i])
			def.items[i] = "CONSTRAINT " + mysql.Quote(sqltext.CopyName(own, t.Name, name)) + " " + rest
		}
	}
	return def, nil
}

// pointed has a foreign key, as it was and as it is now, point at the table that it pointed at, by the name that this one gets. The
// first schema is that of its own table as it was, the other the one that it gets.
func (r *run) pointed(was, now, schema, own string) string {
	_, end := asDefault.Find(was, "REFERENCES")
	_, begin := asDefault.Find(now, "REFERENCES")
	if end < 0 || begin < 0 {
		return now
	}
	t, to := sqltext.Tokens(was[end:]), sqltext.Tokens(now[begin:])
	qualified := len(t) > 2 && t[1].Text == "."
	last := 0
	if qualified {
		last = 2
	}
	if len(to) <= last {
		return now
	}
	fromSchema, from := references(was, schema)
	inSchema, name := r.choice.target(fromSchema, from)
	if inSchema == fromSchema && name == from && (qualified || inSchema == own) {
		return now
	}
	table := mysql.Quote(name)
	if qualified || inSchema != own {
		table = mysql.Quote(inSchema) + "." + table
	}
	return now[:begin+to[0].Begin] + table + now[begin+to[last].End:]
}

// tellNames says which constraints of a table get other names, because it is restored under another one.
func (r *run) tellNames(t *repo.Table, def definition) {
	_, copied := r.choice.target(t.Schema, t.Name)
	if copied == t.Name {
		return
	}
	for _, item := range def.items {
		if r.sharesName(item) {
			name, _ := constraintName(item)
			r.find("table "+mysql.Quote(t.Schema)+"."+mysql.Quote(t.Name), "the name of its constraint "+mysql.Quote(name)+" belongs to the former table", mysql.Quote(sqltext.CopyName(name, t.Name, copied)))
		}
	}
}

// tellOrphans says which foreign keys refer to tables that are left out.
func (r *run) tellOrphans() (notes []string, err error) {
	if !slices.ContainsFunc(slices.Collect(maps.Keys(r.leftOut)), func(key string) bool { return strings.HasPrefix(key, "table\x00") }) {
		return nil, nil
	}
	for _, at := range r.tables {
		l, err := r.spool.get(at)
		if err != nil {
			return nil, err
		}
		t := l.Table
		def, err := parseTable(t.Create)
		if err != nil {
			return nil, err
		}
		_, keys := def.foreignKeys()
		for _, k := range keys {
			if schema, name := references(k, t.Schema); r.leftOut[leftTable(schema, name)] && !r.leftOut[leftTable(t.Schema, t.Name)] {
				own, _ := constraintName(k)
				notes = append(notes, fmt.Sprintf("table %s.%s: its foreign key %s refers to %s.%s, which is not restored: rows that refer to it are rejected until it is created", mysql.Quote(t.Schema), mysql.Quote(t.Name), mysql.Quote(own), mysql.Quote(schema), mysql.Quote(name)))
			}
		}
	}
	return notes, nil
}

// ownCheckNames lets the server name those checks of a table whose names an earlier one of the schema has.
func (r *run) ownCheckNames(t *repo.Table, where string, d definition) definition {
	schema, _ := r.choice.target(t.Schema, t.Name)
	items := make([]string, len(d.items))
	for i, item := range d.items {
		items[i] = item
		name, rest := constraintName(item)
		if isForeignKey(item) || !r.sharesName(item) {
			continue
		}
		if key := tableKey(schema, name); !r.checks[key] {
			r.checks[key] = true
			continue
		}
		r.find(where, "another table has a check "+mysql.Quote(name)+", and names must be unique in a schema here", byServer)
		items[i] = rest
	}
	d.items = items
	return d
}
