package checksum

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/define/alike"
)

// Definition is a difference in the definition of an object other than a table.
type Definition struct {
	Kind   string `json:"kind"` // view, trigger, function, procedure, package, event, sequence, account
	Name   string `json:"name"`
	Server string `json:"server"` // the other
	// Verdict is Differs, MissingTable or ExtraTable (also for objects other than tables), or Failed if it could not be compared.
	Verdict Verdict  `json:"verdict"`
	What    []string `json:"what,omitempty"`
}

// exactly reports whether two servers write definitions down in one way.
func exactly(a, b *side) bool {
	return a.server.Flavour == b.server.Flavour && a.server.Number == b.server.Number
}

// compareTables says how two definitions of a table differ, and what of them cannot be compared.
func compareTables(here, there define.Table, primary, other *side) (differs, open []string) {
	exact := exactly(primary, other)
	differs, open = alike.Tables(here.Create, there.Create, exact)
	if !exact {
		differs = append(differs, charsets(here, there, primary, other)...)
	}
	return differs, open
}

// charsets compares what statements of other versions leave out or add: character sets and collations.
func charsets(here, there define.Table, primary, other *side) (differs []string) {
	for _, c := range here.Columns {
		o, ok := there.Column(c.Name)
		if !ok || o.Type == "json" || c.Type == "json" { // on MariaDB it is text in utf8mb4_bin
			continue
		}
		for _, n := range columnNotes(c, o, primary.collation(c), other.collation(o)) {
			if alike.CharsetOf(c) != alike.CharsetOf(o) || primary.collation(c) != other.collation(o) {
				differs = append(differs, n)
			}
		}
	}
	of := func(t define.Table, s *side) string {
		return s.collation(define.TableColumn{Charset: t.Charset, Collation: t.Collation})
	}
	if a, b := of(here, primary), of(there, other); a != b {
		differs = append(differs, fmt.Sprintf("new columns have the collation %s here and %s there", a, b))
	}
	return differs
}

// defines compares the definitions of a table, once more when the replica may only have been late.
func (w *worker) defines(ctx context.Context, p *plan, i int, pr *pair, on *On) error {
	on.Definition, on.Undefined = compareTables(p.here, p.peers[i].table, w.run.primary, w.run.others[i])
	if len(on.Definition) == 0 || !w.Replicas {
		return nil
	}
	reached, err := w.caughtUp(ctx, pr.near, pr.far)
	if err != nil || !reached {
		on.Undefined = append(on.Definition, on.Undefined...)
		on.Definition = nil
		return ctx.Err()
	}
	here, err := w.primary.define(ctx, p.schema, p.name)
	if err != nil {
		return err
	}
	there, err := pr.far.define(ctx, w.Rename(p.schema), p.name)
	if err != nil {
		return err
	}
	on.Definition, on.Undefined = compareTables(here, there, w.run.primary, w.run.others[i])
	return nil
}

// objectsOf reads the definitions of a schema's objects besides tables, by kind and name.
func (l *link) objectsOf(ctx context.Context, schema string) (map[string]define.Definition, error) {
	out := map[string]define.Definition{}
	if err := l.text(ctx, true); err != nil {
		return nil, err
	}
	err := l.rows(ctx, func(s *mysql.Stream) error {
		clear(out)
		create, err := define.CreateSchema(ctx, s, schema)
		if err != nil {
			return err
		}
		out[string(alike.KindSchema)] = define.Definition{Kind: alike.KindSchema, Create: strings.Replace(create, mysql.Quote(schema), "", 1)}
		add := func(list []define.Definition, err error) error {
			for _, d := range list {
				out[string(d.Kind)+" "+d.Name] = d
			}
			return err
		}
		tables, err := define.Tables(ctx, s, schema)
		if err != nil {
			return err
		}
		for _, t := range tables {
			var d define.Definition
			switch {
			case t.View:
				d, err = define.View(ctx, s, t.TableName)
			case t.Sequence:
				d, err = define.Sequence(ctx, s, t.TableName)
			default:
				continue
			}
			if err := add([]define.Definition{d}, err); err != nil {
				return err
			}
		}
		for _, read := range []func(context.Context, *mysql.Stream, string) ([]define.Definition, error){define.Triggers, define.Routines, define.Events} {
			if err := add(read(ctx, s, schema)); err != nil {
				return err
			}
		}
		return nil
	})
	return out, errors.Join(err, l.text(ctx, false))
}

// objects compares what a schema has besides tables with the others'.
func (r *run) objects(ctx context.Context, here *link, there []*link, schema string) error {
	if len(r.Tables) > 0 || r.primary.blind {
		return nil
	}
	mine, err := here.objectsOf(ctx, schema)
	if err != nil {
		return r.unread(ctx, "objects of "+schema, here.side, err)
	}
	for i, l := range there {
		other := r.others[i]
		if l.dead.Load() || other.blind {
			continue
		}
		if !other.passes(schema, "") {
			r.note(Definition{Kind: "schema", Name: schema, Server: l.name, Verdict: Failed, What: []string{"its views and programs are left out by the replica's filters"}})
			continue
		}
		read := func() ([]Definition, error) {
			theirs, err := l.objectsOf(ctx, r.Rename(schema))
			return differences(mine, theirs, schema, r.primary, other), err
		}
		found, err := read()
		if err == nil && r.Replicas && slices.ContainsFunc(found, func(d Definition) bool { return d.Verdict.Bad() }) {
			// It may only be late.
			if reached, waitErr := r.caughtUp(ctx, here, l); waitErr == nil && reached {
				if mine, err = here.objectsOf(ctx, schema); err == nil {
					found, err = read()
				}
			}
		}
		if err != nil {
			if err := r.unread(ctx, "objects of "+schema, l.side, err); err != nil {
				return err
			}
			continue
		}
		r.note(found...)
	}
	return nil
}

// unread notes that definitions could not be read; an error when the context has ended.
func (r *run) unread(ctx context.Context, what string, s *side, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.note(Definition{Kind: "definitions", Name: what, Server: s.name, Verdict: Failed, What: []string{err.Error()}})
	return nil
}

// note notes what was found of definitions.
func (r *run) note(list ...Definition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range list {
		if d.Verdict.Bad() {
			r.result.Counts.Definitions++
		} else {
			r.result.Counts.Undefined++
		}
		r.result.Definitions = append(r.result.Definitions, d)
	}
}

// differences compares objects by kind and name.
func differences(mine, theirs map[string]define.Definition, schema string, primary, other *side) (out []Definition) {
	prefix := ""
	if schema != "" {
		prefix = schema + "."
	}
	for _, key := range slices.Sorted(maps.Keys(mine)) {
		d := mine[key]
		found := Definition{Kind: string(d.Kind), Name: strings.TrimSuffix(prefix+d.Name, "."), Server: other.name}
		o, ok := theirs[key]
		if !ok {
			found.Verdict = MissingTable
			out = append(out, found)
			continue
		}
		differs, open := alike.Objects(d, o, exactly(primary, other))
		switch {
		case len(differs) > 0:
			found.Verdict, found.What = Differs, differs
		case len(open) > 0:
			found.Verdict, found.What = Failed, open
		default:
			continue
		}
		out = append(out, found)
	}
	for _, key := range slices.Sorted(maps.Keys(theirs)) {
		if _, ok := mine[key]; !ok {
			d := theirs[key]
			out = append(out, Definition{Kind: string(d.Kind), Name: prefix + d.Name, Server: other.name, Verdict: ExtraTable})
		}
	}
	return out
}

// accounts compares users, roles and their grants, if all is compared and they may be seen.
func (r *run) accounts(ctx context.Context, here *link, there []*link) error {
	if len(r.Schemas)+len(r.Tables) > 0 {
		return nil
	}
	read := func(l *link) (map[string]define.Definition, error) {
		out := map[string]define.Definition{}
		err := l.rows(ctx, func(s *mysql.Stream) error {
			list, _, err := define.Accounts(ctx, s, l.server)
			clear(out)
			for _, d := range list {
				out["account "+d.Name] = d
			}
			return err
		})
		if mysql.ClassOf(err) == mysql.ClassPrivilege || mysql.ClassOf(err) == mysql.ClassLogin {
			err = fmt.Errorf("%w (GRANT SELECT ON mysql.* TO %s)", err, l.server.QuotedAccount())
		}
		return out, err
	}
	mine, err := read(here)
	if err != nil {
		return r.unread(ctx, "accounts", here.side, err)
	}
	for i, l := range there {
		if l.dead.Load() {
			continue
		}
		theirs, err := read(l)
		if err != nil {
			if err := r.unread(ctx, "accounts", l.side, err); err != nil {
				return err
			}
			continue
		}
		r.note(differences(mine, theirs, "", r.primary, r.others[i])...)
	}
	return nil
}
