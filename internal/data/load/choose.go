package load

import (
	"fmt"
	"slices"
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

	// What the backup has of it: matched are patterns, known and used are renamed names that it has, and that come back.
	matched     map[string]bool
	known, used map[[2]string]bool
	near        map[string]string // for a name that was asked for, one that is nearly the same
}

func newChoice(schemas, tables, rename []string) (choice, error) {
	c := choice{rename: map[[2]string][2]string{}, matched: map[string]bool{}, known: map[[2]string]bool{}, used: map[[2]string]bool{}, near: map[string]string{}}
	for _, s := range schemas {
		c.schemas = append(c.schemas, pattern.Schema(s))
	}
	for _, t := range tables {
		schema, table, err := pattern.Name(t)
		if err != nil {
			return c, err
		}
		if table == "" {
			return c, fmt.Errorf("%q has no schema: write schema.table", t)
		}
		c.tables = append(c.tables, [2]string{schema, table})
	}
	for _, s := range rename {
		before, after, ok := pattern.Cut(s, '=')
		if !ok {
			return c, fmt.Errorf("%q is not a renaming: write old=new", s)
		}
		oldSchema, oldTable, err := pattern.Name(before)
		if err != nil {
			return c, err
		}
		newSchema, newTable, err := pattern.Name(after)
		if err != nil {
			return c, err
		}
		if newSchema == "" || (oldTable == "") != (newTable == "") {
			return c, fmt.Errorf("%q is not a renaming: write old=new, or schema.old=schema.new", s)
		}
		if mysql.SystemSchema(newSchema) {
			return c, fmt.Errorf("%q: %s belongs to the server itself", s, mysql.Quote(newSchema))
		}
		if err := mysql.CheckSchemaName(newSchema); err != nil {
			return c, fmt.Errorf("%q: no server can have a schema %q: %w", s, newSchema, err)
		}
		if newTable != "" {
			if err := mysql.CheckTableName(newTable); err != nil {
				return c, fmt.Errorf("%q: no server can have a table %q: %w", s, newTable, err)
			}
		}
		old, now := [2]string{oldSchema, oldTable}, [2]string{newSchema, newTable}
		if other, twice := c.rename[old]; twice && other != now {
			return c, fmt.Errorf("%q: it is already renamed to another name", s)
		}
		c.rename[old] = now
	}
	return c, nil
}

// CheckChoice finds out, before anything is opened, whether schemas, tables and renamings can be read, and whether a server can hold the new
// names.
func CheckChoice(schemas, tables, rename []string) error {
	_, err := newChoice(schemas, tables, rename)
	return err
}

// meet notes that the backup has a schema, or a table, view or sequence of it, and whether that comes back.
func (c choice) meet(schema, table string, back bool) {
	for _, p := range c.schemas {
		c.nearly(p, schema)
		if pattern.Stars(p, schema) {
			c.matched[p] = true
		}
	}
	for old := range c.rename {
		if old[1] == "" {
			c.nearly(old[0], schema)
		} else if table != "" {
			c.nearly(old[0]+"."+old[1], schema+"."+table)
		}
	}
	for _, p := range c.tables {
		if table != "" {
			c.nearly(p[0]+"."+p[1], schema+"."+table)
		}
		if table != "" && pattern.Stars(p[0], schema) && pattern.Stars(p[1], table) {
			c.matched[p[0]+"\x00"+p[1]] = true
		}
	}
	for _, old := range [][2]string{{schema, ""}, {schema, table}} {
		if _, ok := c.rename[old]; ok {
			c.known[old] = true
			c.used[old] = c.used[old] || back
		}
	}
}

// nearly notes a name that may have been meant by another.
func (c choice) nearly(named, name string) {
	if c.near[named] == "" && named != name && pattern.Near(named, name) {
		c.near[named] = name
	}
}

// meant are the names that may have been meant by those that the backup does not have.
func (c choice) meant() (list []string) {
	add := func(named string, met bool) {
		if near := c.near[named]; !met && near != "" {
			list = append(list, near)
		}
	}
	for _, p := range c.schemas {
		add(p, c.matched[p])
	}
	for _, p := range c.tables {
		add(p[0]+"."+p[1], c.matched[p[0]+"\x00"+p[1]])
	}
	for old := range c.rename {
		add(strings.TrimSuffix(old[0]+"."+old[1], "."), c.known[old])
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// unmet are the names that were asked for and that the backup does not have: schemas, tables, names to be renamed. idle are those that it
// has, or patterns, of which nothing is restored.
func (c choice) unmet() (missing, idle []string) {
	for _, p := range c.schemas {
		if c.matched[p] {
			continue
		}
		if strings.Contains(p, "*") {
			idle = append(idle, "--schema "+p)
		} else {
			missing = append(missing, "schema "+mysql.Quote(p))
		}
	}
	for _, p := range c.tables {
		switch {
		case c.matched[p[0]+"\x00"+p[1]]:
		case strings.Contains(p[0]+p[1], "*"):
			idle = append(idle, "--table "+p[0]+"."+p[1])
		default:
			missing = append(missing, "table "+mysql.Quote(p[0])+"."+mysql.Quote(p[1]))
		}
	}
	for old := range c.rename {
		what := "schema " + mysql.Quote(old[0])
		if old[1] != "" {
			what = "table " + mysql.Quote(old[0]) + "." + mysql.Quote(old[1])
		}
		switch {
		case !c.known[old]:
			missing = append(missing, what+" (--rename)")
		case !c.used[old]:
			idle = append(idle, "--rename of "+what)
		}
	}
	slices.Sort(missing)
	slices.Sort(idle)
	return slices.Compact(missing), slices.Compact(idle)
}

// all reports whether everything is wanted.
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

// table reports whether a table, or a view, is wanted.
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

// object reports whether something other than a table is wanted.
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
