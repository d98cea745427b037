package load

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/sqltext"
)

// pointer is a foreign key: the columns that it is over, by their types, and those that they point at.
type pointer struct {
	schema, table    string // that has it
	name             string
	toSchema, toName string // as it has them
	from, to         []string
	columns          []define.TableColumn // those it is over
	types            []string
}

// notePointers keeps the foreign keys of a table, by the tables that they point at.
func (r *run) notePointers(t *repo.Table, def definition) error {
	_, keys := def.foreignKeys()
	if len(keys) == 0 {
		return nil
	}
	shape, err := define.ParseTable(t.Schema, t.Create)
	if err != nil {
		return err
	}
	for _, k := range keys {
		p := pointer{schema: t.Schema, table: t.Name}
		p.name, _ = constraintName(k)
		p.toSchema, p.toName = references(k, t.Schema)
		p.from, p.to = foreignColumns(k)
		p.types = typesOf(shape, p.from)
		for _, name := range p.from {
			c, _ := shape.Column(name)
			p.columns = append(p.columns, c)
		}
		other := tableKey(p.toSchema, p.toName)
		r.pointers[other] = append(r.pointers[other], p)
	}
	return nil
}

// checkPointers finds the tables with foreign keys that a server may refuse: over other types than those that they point at, or columns
// with which no key there begins. If such a key exists first, MySQL refuses the other table (seen on 9.7), and MariaDB
// the key if it comes later (10.11). The plan names those that no server takes while it looks.
func (r *run) checkPointers() error {
	if len(r.pointers) == 0 {
		return nil
	}
	misfits := 0
	for _, at := range r.tables {
		l, err := r.spool.get(at)
		if err != nil {
			return err
		}
		list := r.pointers[tableKey(l.Table.Schema, l.Table.Name)]
		if len(list) == 0 {
			continue
		}
		shape, err := define.ParseTable(l.Table.Schema, l.Table.Create)
		if err != nil {
			return err
		}
		for _, p := range list {
			keyed := slices.ContainsFunc(shape.Keys, func(k define.TableKey) bool { return beginsWith(k, p.to) })
			if slices.Equal(p.types, typesOf(shape, p.to)) && keyed {
				continue
			}
			r.unsure[tableKey(p.schema, p.table)] = true
			why := p.misfit(shape, keyed)
			if why == "" || r.leftOut[leftTable(p.schema, p.table)] || !r.sameName(p.toSchema, l.Table.Schema) || !r.sameName(p.toName, l.Table.Name) {
				continue
			}
			if misfits++; misfits <= maxNamed {
				r.plan.Notes = append(r.plan.Notes, fmt.Sprintf("table %s.%s: its foreign key %s does not match %s.%s, to which it refers: %s; if the server rejects it, the table is created without it, and that is reported",
					mysql.Quote(p.schema), mysql.Quote(p.table), mysql.Quote(p.name), mysql.Quote(l.Table.Schema), mysql.Quote(l.Table.Name), why))
			}
		}
	}
	if n := misfits - maxNamed; n > 0 {
		r.plan.Notes = append(r.plan.Notes, digits.Plural(n, "more foreign key does", "more foreign keys do")+" not match the tables to which they refer")
	}
	clear(r.pointers)
	return nil
}

// misfit says why no foreign key can be over these columns, or "": one is not there, is of another kind, or no key of the other table begins
// with them. Texts may differ in length, and numbers in how they are shown. Source: MySQL manual, "FOREIGN KEY Constraints".
func (p pointer) misfit(to define.Table, keyed bool) string {
	for i, name := range p.to {
		c, ok := to.Column(name)
		switch {
		case !ok:
			return "there is no column " + mysql.Quote(name)
		case i >= len(p.columns) || p.types[i] == "":
			return ""
		}
		from := p.columns[i]
		alike := kindOfKey(from) == kindOfKey(c)
		if alike && from.Charset != "" && from.Charset == c.Charset { // a collation that is left open is the table's, and unknown there
			alike = from.Collation == "" || c.Collation == "" || from.Collation == c.Collation
		} else if alike {
			alike = from.Charset == c.Charset
		}
		if !alike {
			return fmt.Sprintf("%s is %s, and %s is %s", mysql.Quote(p.from[i]), describe(from), mysql.Quote(name), describe(c))
		}
	}
	if !keyed {
		return "no key there begins with " + quoteAll(p.to)
	}
	return ""
}

// kindOfKey is what of a column's type has to be the same on both sides.
func kindOfKey(c define.TableColumn) string {
	switch c.Type {
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext":
		return "text"
	case "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob":
		return "bytes"
	case "tinyint", "smallint", "mediumint", "int", "bigint":
		if c.Unsigned {
			return c.Type + " unsigned"
		}
	}
	return c.Type
}

// describe is a column's type with its character set and collation.
func describe(c define.TableColumn) string {
	text := c.FullType
	if c.Charset != "" {
		text += " " + c.Charset
	}
	if c.Collation != "" {
		text += " " + c.Collation
	}
	return text
}

func quoteAll(names []string) string {
	var out []string
	for _, n := range names {
		out = append(out, mysql.Quote(n))
	}
	return strings.Join(out, ", ")
}

// beginsWith reports whether a key's first parts are some columns.
func beginsWith(k define.TableKey, columns []string) bool {
	return !k.Special && len(k.Parts) >= len(columns) && !slices.ContainsFunc(k.Parts[:len(columns)], func(p define.KeyPart) bool { return p.Prefix > 0 }) &&
		slices.EqualFunc(k.Parts[:len(columns)], columns, func(p define.KeyPart, name string) bool { return strings.EqualFold(p.Column, name) })
}

// typesOf are the types of columns with their character sets and collations; "" for one that does not exist.
func typesOf(t define.Table, columns []string) (types []string) {
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
