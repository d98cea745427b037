package load

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// ErrOneName means that two things of a backup would be restored under one name.
var ErrOneName = errors.New("two objects would have the same name")

// checkNames refuses a restore in which one thing would come back over another: by a renaming, or because the target takes names that
// differ in nothing but case for one (lower_case_table_names, MySQL manual, "Identifier Case Sensitivity").
func (r *run) checkNames() error {
	if !r.folds && len(r.choice.rename) == 0 {
		return r.checkKinds()
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
			continue // two schemas may become one, while what is in them has its own names
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

// badName are numbers of errors about a name as such. Source: MySQL manual, "Server Error Message Reference", ER_TOO_LONG_IDENT,
// ER_WRONG_DB_NAME, ER_WRONG_TABLE_NAME, ER_INVALID_CHARACTER_STRING.
var badName = map[int]bool{errno.NameTooLong: true, errno.WrongSchemaName: true, errno.WrongTableName: true, errno.InvalidCharacters: true}

// oldName is the prefix of a name that has not been encoded for its file. Source: MySQL manual, "Mapping of Identifiers to File Names".
const oldName = "#mysql50#"

// askNames asks the target whether it can have the new names of what is renamed: it looks at a name before it looks for it.
func (r *run) askNames(ctx context.Context, s *session) error {
	for old, now := range r.choice.rename {
		if !r.choice.used[old] {
			continue
		}
		what, question := "schema "+mysql.Quote(now[0]), "SHOW /* risso: can it have this name? */ TABLES FROM "+mysql.Quote(now[0])
		if now[1] != "" {
			name := mysql.Quote(now[0]) + "." + mysql.Quote(now[1])
			what, question = "table "+name, "SHOW /* risso: can it have this name? */ COLUMNS FROM "+name
		}
		err := s.Query(ctx, question, func([][]byte) error { return nil })
		switch n := mysql.ErrorNumber(err); {
		case err != nil && n == 0:
			return err
		case r.server.RefusesOldNames() && (strings.HasPrefix(now[0], oldName) || strings.HasPrefix(now[1], oldName)):
			return fmt.Errorf("the server cannot have a %s: it reads %s as the sign of a name that MySQL 5.0 wrote", what, oldName)
		case badName[n]:
			return fmt.Errorf("the server cannot have a %s: %w", what, err)
		}
	}
	return nil
}

// checkKinds refuses a backup that has a table and a view or sequence of one name, as no server has: one would drop the other.
func (r *run) checkKinds() error {
	others := map[string]repo.ObjectKind{}
	if err := r.each([]repo.ObjectKind{repo.Sequence, repo.View}, func(o *repo.Object) error {
		key := o.Schema + "\x00" + o.Name
		if other, ok := others[key]; ok {
			return fmt.Errorf("%w: %s and %s would both be %s", ErrOneName, other, o.Kind, objectName(o))
		}
		others[key] = o.Kind
		return nil
	}); err != nil || len(others) == 0 {
		return err
	}
	for _, at := range r.tables {
		l, err := r.spool.get(at)
		if err != nil {
			return err
		}
		if other, ok := others[l.Table.Schema+"\x00"+l.Table.Name]; ok {
			return fmt.Errorf("%w: a table and a %s would both be %s.%s", ErrOneName, other, mysql.Quote(l.Table.Schema), mysql.Quote(l.Table.Name))
		}
	}
	return nil
}
