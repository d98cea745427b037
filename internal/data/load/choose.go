package load

import (
	"fmt"
	"maps"
	"slices"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/pattern"
)

// choice is what of a backup is wanted, and under which names.
type choice struct {
	names   *pattern.Choice
	rename  map[[2]string][2]string // schema and table; a schema has no table
	renamed map[[2]string]string    // what was asked for, of those that nothing wanted was called until now
	near    map[string]string       // and what is called nearly so
}

func newChoice(schemas, tables, rename []string) (choice, error) {
	c := choice{rename: map[[2]string][2]string{}, renamed: map[[2]string]string{}, near: map[string]string{}}
	var err error
	if c.names, err = pattern.NewChoice(schemas, tables); err != nil {
		return c, err
	}
	for _, s := range rename {
		i, _ := asDefault.Find(s, "=")
		if i < 0 {
			return c, fmt.Errorf("%q is no renaming: write old=new", s)
		}
		oldSchema, oldTable, err := pattern.Name(s[:i])
		if err != nil {
			return c, err
		}
		newSchema, newTable, err := pattern.Name(s[i+1:])
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
		c.renamed[[2]string{oldSchema, oldTable}] = s[:i]
	}
	return c, nil
}

// all says whether everything is wanted.
func (c choice) all() bool { return c.names.All() }

func (c choice) schema(name string) bool { return c.names.Schema(name) }

// table says whether a table, or a view, is wanted.
func (c choice) table(schema, name string) bool { return c.names.Table(schema, name) }

// takes notes that something of a schema, or a table, comes back.
func (c choice) takes(schema, table string) {
	delete(c.renamed, [2]string{schema, table})
	delete(c.renamed, [2]string{schema, ""})
	for key, text := range c.renamed {
		name := schema
		if key[1] != "" {
			name += "." + table
		}
		if c.near[text] == "" && pattern.Near(text, name) {
			c.near[text] = name
		}
	}
}

// unmet says which names that were asked for nothing in the backup has.
func (c choice) unmet() error {
	if err := c.names.Unmet(); err != nil {
		return fmt.Errorf("%w: %w", ErrNothing, err)
	}
	if len(c.renamed) == 0 {
		return nil
	}
	u := &pattern.UnmetError{Names: slices.Sorted(maps.Values(c.renamed))}
	for _, text := range u.Names {
		if near := c.near[text]; near != "" {
			u.Near = append(u.Near, near)
		}
	}
	return fmt.Errorf("%w: --rename: %w", ErrNothing, u)
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
