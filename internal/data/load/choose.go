package load

import (
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/pattern"
)

// choice is what of a backup is wanted, and under which names.
type choice struct {
	schemas []string
	tables  [][2]string
	rename  map[[2]string][2]string // schema and table; a schema has no table
}

// ParseName takes schema.table apart. Names with dots, or with backticks, stand in backticks.
func ParseName(s string) (schema, table string, err error) {
	first, rest, ok := unquoted(s)
	if !ok && strings.HasPrefix(s, "`") {
		return "", "", fmt.Errorf("%q is no name: its quote is not closed", s)
	}
	if !ok {
		first, rest, _ = strings.Cut(s, ".")
		if rest != "" {
			rest = "." + rest
		}
	}
	if rest == "" {
		return first, "", nil
	}
	second, ok := strings.CutPrefix(rest, ".")
	if ok && strings.HasPrefix(second, "`") {
		second, rest, ok = unquoted(second)
		ok = ok && rest == ""
	}
	if !ok || first == "" || second == "" {
		return "", "", fmt.Errorf("%q is no name of a table: write schema.table, and a name with dots in backticks", s)
	}
	return first, second, nil
}

func newChoice(schemas, tables, rename []string) (choice, error) {
	c := choice{rename: map[[2]string][2]string{}}
	for _, s := range schemas {
		if name, rest, ok := unquoted(s); ok && rest == "" {
			s = name
		}
		c.schemas = append(c.schemas, s)
	}
	for _, t := range tables {
		schema, table, err := ParseName(t)
		if err != nil {
			return c, err
		}
		if table == "" {
			return c, fmt.Errorf("%q names no schema: write schema.table", t)
		}
		c.tables = append(c.tables, [2]string{schema, table})
	}
	for _, s := range rename {
		i, _ := asDefault.Find(s, "=")
		if i < 0 {
			return c, fmt.Errorf("%q is no renaming: write old=new", s)
		}
		oldSchema, oldTable, err := ParseName(s[:i])
		if err != nil {
			return c, err
		}
		newSchema, newTable, err := ParseName(s[i+1:])
		if err != nil {
			return c, err
		}
		if newSchema == "" || (oldTable == "") != (newTable == "") {
			return c, fmt.Errorf("%q is no renaming: write old=new, or schema.old=schema.new", s)
		}
		if mysql.SystemSchema(newSchema) {
			return c, fmt.Errorf("%q: %s belongs to the server itself", s, mysql.Quote(newSchema))
		}
		c.rename[[2]string{oldSchema, oldTable}] = [2]string{newSchema, newTable}
	}
	return c, nil
}

// all says whether everything is wanted.
func (c choice) all() bool { return len(c.schemas) == 0 && len(c.tables) == 0 }

func (c choice) schema(name string) bool {
	if c.all() {
		return true
	}
	for _, p := range c.schemas {
		if pattern.Stars(p, name) {
			return true
		}
	}
	return false
}

// table says whether a table, or a view, is wanted.
func (c choice) table(schema, name string) bool {
	if c.schema(schema) {
		return true
	}
	for _, p := range c.tables {
		if pattern.Stars(p[0], schema) && pattern.Stars(p[1], name) {
			return true
		}
	}
	return false
}

// object says whether something beside tables is wanted.
func (c choice) object(o *repo.Object) bool {
	switch o.Kind {
	case repo.Account:
		return c.all()
	case repo.Trigger:
		return c.table(o.Schema, o.Table)
	case repo.View, repo.Sequence:
		return c.table(o.Schema, o.Name)
	}
	return c.schema(o.Schema)
}

// target is under which name a table comes back.
func (c choice) target(schema, table string) (string, string) {
	if to, ok := c.rename[[2]string{schema, table}]; ok {
		return to[0], to[1]
	}
	return c.targetSchema(schema), table
}

// objectTarget is under which name an object comes back.
func (c choice) objectTarget(o *repo.Object) (schema, name string) {
	if o.Kind == repo.View || o.Kind == repo.Sequence {
		return c.target(o.Schema, o.Name)
	}
	return c.targetSchema(o.Schema), o.Name
}

func (c choice) targetSchema(schema string) string {
	if to, ok := c.rename[[2]string{schema, ""}]; ok {
		return to[0]
	}
	return schema
}
