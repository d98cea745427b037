package describe

import (
	"context"
	"errors"
	"fmt"

	"github.com/rissodb/risso/internal/explain/differ"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// batch is how many definitions are asked for at once.
const batch = 100

// schemas reads the definitions of users' schemas.
func schemas(ctx context.Context, s *mysql.Stream, server mysql.Server, d *differ.Description, o Options) error {
	names, err := define.Schemas(ctx, s)
	if err != nil {
		return unread(d, differ.AreaSchemas, err)
	}
	d.Schemas = map[string]differ.Schema{}
	scope := define.Scope{Open: o.Want == nil, Programs: func(string) bool { return true }}
	lists := map[string][]define.TableInfo{}
	total, done := 0, 0
	for _, name := range names {
		if o.Want != nil && !o.Want(name) {
			continue
		}
		list, err := define.Tables(ctx, s, name)
		if err != nil {
			return wrap("read schema "+mysql.Quote(name), err)
		}
		lists[name] = list
		total += len(list)
		scope.Schemas = append(scope.Schemas, name)
		for _, t := range list {
			scope.Seen = append(scope.Seen, t)
			if t.View {
				scope.Views = append(scope.Views, t.TableName)
			}
		}
	}
	blind, err := define.Blind(ctx, s, server, scope)
	if err != nil {
		return wrap("ask what the account may see", err)
	}
	if blind != nil {
		d.Unread = append(d.Unread, differ.Unread{Area: differ.AreaSchemas, Part: true, Trouble: fleet.Trouble{Why: blind.Error(), Remedy: blind.Remedy()}})
	}
	for _, name := range scope.Schemas {
		r := reader{s: s, schema: name, out: differ.Schema{Tables: map[string]string{}, Objects: map[string]differ.Object{}, Faults: map[string]string{}}}
		r.progress = func(n int) {
			if done += n; o.Progress != nil {
				o.Progress(done, total)
			}
		}
		if err := r.read(ctx, lists[name]); err != nil {
			return err
		}
		d.Schemas[name] = r.out
	}
	return nil
}

// reader reads one schema.
type reader struct {
	s        *mysql.Stream
	schema   string
	out      differ.Schema
	progress func(int)
}

func (r *reader) read(ctx context.Context, list []define.TableInfo) (err error) {
	if r.out.Create, err = define.CreateSchema(ctx, r.s, r.schema); err != nil {
		if err := r.fault("schema "+mysql.Quote(r.schema), err); err != nil {
			return err
		}
	}
	var tables []mysql.TableName
	for _, t := range list {
		switch {
		case t.View:
			d, err := define.View(ctx, r.s, t.TableName)
			if err := r.object(d, "view "+t.TableName.String(), err); err != nil {
				return err
			}
			r.progress(1)
		case t.Sequence:
			d, err := define.Sequence(ctx, r.s, t.TableName)
			d.After = nil // how far it has come is data
			if err := r.object(d, "sequence "+t.TableName.String(), err); err != nil {
				return err
			}
			r.progress(1)
		default:
			tables = append(tables, t.TableName)
		}
	}
	for len(tables) > 0 {
		n := min(batch, len(tables))
		if err := r.tables(ctx, tables[:n]); err != nil {
			return err
		}
		tables = tables[n:]
		r.progress(n)
	}
	for what, read := range map[string]func(context.Context, *mysql.Stream, string) ([]define.Definition, error){"triggers": define.Triggers, "routines": define.Routines, "events": define.Events} {
		list, err := read(ctx, r.s, r.schema)
		if err != nil {
			if err := r.fault(what+" of "+mysql.Quote(r.schema), err); err != nil {
				return err
			}
			continue
		}
		for _, d := range list {
			if err := r.object(d, "", nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// tables reads definitions together, and one by one if the server refuses one of them.
func (r *reader) tables(ctx context.Context, names []mysql.TableName) error {
	creates, err := define.CreateTables(ctx, r.s, names)
	if err == nil {
		for i, n := range names {
			r.out.Tables[n.Name] = creates[i]
		}
		return nil
	}
	if mysql.ErrorNumber(err) == 0 || r.s.Broken() != nil {
		return err
	}
	for _, n := range names {
		create, err := define.CreateTable(ctx, r.s, n)
		if err != nil {
			if err := r.fault("table "+n.String(), err); err != nil {
				return err
			}
			continue
		}
		r.out.Tables[n.Name] = create
	}
	return nil
}

// object keeps a definition; what the server could not show is noted under its name.
func (r *reader) object(d define.Definition, name string, err error) error {
	if err != nil {
		return r.fault(name, err)
	}
	if d.Broken {
		r.out.Faults[name] = "the view does not work: it selects from what is not there, or its definer may not read it"
	}
	r.out.Objects[fmt.Sprintf("%s %s", d.Kind, d.Name)] = d
	return nil
}

// fault notes what the server refuses to show; an error of the connection is returned.
func (r *reader) fault(what string, err error) error {
	if (mysql.ErrorNumber(err) == 0 && !errors.Is(err, define.ErrHidden)) || r.s.Broken() != nil {
		return err
	}
	r.out.Faults[what] = err.Error()
	return nil
}
