package load

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
)

// ErrOneName is told where two things of a backup would come back under one name.
var ErrOneName = errors.New("two things would have one name")

// checkNames refuses a restore in which one thing would come back over another: by a renaming, or because the target takes names that
// differ in nothing but case for one (lower_case_table_names, MySQL manual, "Identifier Case Sensitivity").
func (r *run) checkNames() error {
	if !r.folds && len(r.choice.rename) == 0 {
		return nil
	}
	taken := map[string]string{}
	claim := func(space, schema, name, what string) error {
		if r.folds {
			schema, name = strings.ToLower(schema), strings.ToLower(name)
		}
		key := space + "\x00" + schema + "\x00" + name
		other, ok := taken[key]
		if !ok {
			taken[key] = what
			return nil
		}
		full := mysql.Quote(schema)
		if name != "" {
			full += "." + mysql.Quote(name)
		}
		return fmt.Errorf("%w: %s and %s would both be %s", ErrOneName, other, what, full)
	}
	for _, at := range r.schemas {
		l, err := r.spool.get(at)
		if err != nil {
			return err
		}
		name := r.choice.targetSchema(l.Schema.Name)
		if _, renamed := r.choice.rename[[2]string{l.Schema.Name, ""}]; renamed && !r.folds {
			continue // two schemas may become one, while what is in them has names of its own
		}
		if err := claim("schema", name, "", "schema "+mysql.Quote(l.Schema.Name)); err != nil {
			return err
		}
	}
	for _, at := range r.tables {
		l, err := r.spool.get(at)
		if err != nil {
			return err
		}
		schema, name := r.choice.target(l.Table.Schema, l.Table.Name)
		if err := claim("table", schema, name, "table "+mysql.Quote(l.Table.Schema)+"."+mysql.Quote(l.Table.Name)); err != nil {
			return err
		}
	}
	return r.each([]repo.ObjectKind{repo.Sequence, repo.View, repo.Function, repo.Procedure, repo.Package, repo.Event, repo.Trigger}, func(o *repo.Object) error {
		if _, renamed := r.choice.rename[[2]string{o.Schema, o.Table}]; renamed && o.Kind == repo.Trigger {
			return nil // it stays away
		}
		space := string(o.Kind)
		if o.Kind == repo.Sequence || o.Kind == repo.View {
			space = "table" // they share their names
		}
		schema, name := r.choice.objectTarget(o)
		return claim(space, schema, name, string(o.Kind)+" "+objectName(o))
	})
}
