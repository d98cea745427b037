package load

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sqltext"
)

// pointer is a foreign key: the columns that it is over, by their types, and those that they point at.
type pointer struct {
	table string // tableKey
	types []string
	to    []string
}

// notePointers keeps the foreign keys of a table, by the tables that they point at.
func (r *run) notePointers(t *repo.Table, def definition) error {
	_, keys := def.foreignKeys()
	if len(keys) == 0 {
		return nil
	}
	shape, err := mysql.ParseTable(t.Schema, t.Create)
	if err != nil {
		return err
	}
	for _, k := range keys {
		from, to := foreignColumns(k)
		other := tableKey(references(k, t.Schema))
		r.pointers[other] = append(r.pointers[other], pointer{tableKey(t.Schema, t.Name), typesOf(shape, from), to})
	}
	return nil
}

// checkPointers finds the tables with foreign keys that a server may refuse: over other types than those that they point at, or columns
// with which no key there begins. Where such a key is there first, MySQL refuses the other table (seen on 9.7), and MariaDB
// the key where it comes later (10.11).
func (r *run) checkPointers() error {
	if len(r.pointers) == 0 {
		return nil
	}
	for _, at := range r.tables {
		l, err := r.spool.get(at)
		if err != nil {
			return err
		}
		list := r.pointers[tableKey(l.Table.Schema, l.Table.Name)]
		if len(list) == 0 {
			continue
		}
		shape, err := mysql.ParseTable(l.Table.Schema, l.Table.Create)
		if err != nil {
			return err
		}
		for _, p := range list {
			if !slices.Equal(p.types, typesOf(shape, p.to)) || !slices.ContainsFunc(shape.Keys, func(k mysql.TableKey) bool { return beginsWith(k, p.to) }) {
				r.unsure[p.table] = true
			}
		}
	}
	clear(r.pointers)
	return nil
}

// beginsWith says whether a key's first parts are some columns.
func beginsWith(k mysql.TableKey, columns []string) bool {
	return !k.Special && len(k.Parts) >= len(columns) && !slices.ContainsFunc(k.Parts[:len(columns)], func(p mysql.KeyPart) bool { return p.Prefix > 0 }) &&
		slices.EqualFunc(k.Parts[:len(columns)], columns, func(p mysql.KeyPart, name string) bool { return strings.EqualFold(p.Column, name) })
}

// typesOf are the types of columns with their character sets and collations; "" of one that is not there.
func typesOf(t mysql.Table, columns []string) (types []string) {
	for _, name := range columns {
		c, ok := t.Column(name)
		if !ok {
			types = append(types, "")
			continue
		}
		text := c.FullType
		if c.Charset != "" {
			text += " " + c.Charset + " " + cmp.Or(c.Collation, t.Collation)
		}
		types = append(types, text)
	}
	return types
}

// foreignColumns are the columns of a foreign key, and those that they point at.
func foreignColumns(key string) (from, to []string) {
	columns := func(words ...string) (out []string) {
		_, end := asDefault.Find(key, words...)
		if end < 0 {
			return nil
		}
		t := sqltext.Tokens(key[end:])
		open := slices.IndexFunc(t, func(x sqltext.Token) bool { return x.Kind == sqltext.TokenSign && x.Text == "(" })
		if open < 0 {
			return nil
		}
		inside, _, _ := sqltext.Group(t[open:])
		for _, x := range inside {
			if x.Kind == sqltext.TokenName {
				out = append(out, x.Text)
			}
		}
		return out
	}
	return columns("FOREIGN", "KEY"), columns("REFERENCES")
}
