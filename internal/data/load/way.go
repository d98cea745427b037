package load

import (
	"context"
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
)

// maxNamed is how many things a plan names one by one.
const maxNamed = 20

// around is what is on the target, by names.
type around struct {
	r        *run
	there    map[string]standing
	triggers []repo.Object
}

// standing is what has a name.
type standing struct {
	kind repo.ObjectKind
	goes bool // what the backup has of that name takes its place
	ours bool // an earlier run of this restore made it
}

// key is that of a name. Tables, views and sequences share theirs; routines and events have names in which no case counts, all others go
// by lower_case_table_names. Source: MySQL manual, "Identifier Case Sensitivity".
func (w *around) key(kind repo.ObjectKind, schema, name string) string {
	space := string(kind)
	switch kind {
	case repo.View, repo.Sequence:
		space = string(kindTable)
	case kindTable, repo.Trigger:
	default:
		name = strings.ToLower(name)
	}
	if w.r.folds {
		schema, name = strings.ToLower(schema), strings.ToLower(name)
	}
	return space + "\x00" + schema + "\x00" + name
}

// sameName reports whether two names of schemas or tables are one to the target.
func (r *run) sameName(a, b string) bool { return a == b || r.folds && strings.EqualFold(a, b) }

// lookAround reads what is on the target.
func (r *run) lookAround(ctx context.Context, s *session) (*around, error) {
	w := &around{r: r, there: map[string]standing{}}
	add := func(kind repo.ObjectKind, schema, name []byte) {
		w.there[w.key(kind, string(schema), string(name))] = standing{kind: kind}
	}
	const others = " NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys', '" + repo.JournalSchema + "', '" + repo.RollSchema + "')"
	questions := []struct {
		query string
		take  func(row [][]byte)
	}{
		{"SELECT /* risso: what is there? */ TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA" + others,
			func(row [][]byte) { add(relationKind(string(row[2])), row[0], row[1]) }},
		{"SELECT /* risso: what is there? */ ROUTINE_SCHEMA, ROUTINE_NAME, ROUTINE_TYPE FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA" + others,
			func(row [][]byte) { add(repo.ObjectKind(strings.ToLower(string(row[2]))), row[0], row[1]) }},
		{"SELECT /* risso: what is there? */ EVENT_SCHEMA, EVENT_NAME FROM information_schema.EVENTS WHERE EVENT_SCHEMA" + others,
			func(row [][]byte) { add(repo.Event, row[0], row[1]) }},
		{"SELECT /* risso: what is there? */ TRIGGER_SCHEMA, TRIGGER_NAME, EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA" + others,
			func(row [][]byte) {
				add(repo.Trigger, row[0], row[1])
				w.triggers = append(w.triggers, repo.Object{Kind: repo.Trigger, Schema: string(row[0]), Name: string(row[1]), Table: string(row[2])})
			}},
	}
	for _, q := range questions {
		if err := s.Query(ctx, q.query, func(row [][]byte) error { q.take(row); return nil }); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// checkWay checks whether anything that will be made exists already. What an earlier run of this restore made is not in the way; what somebody
// else made since is.
func (r *run) checkWay(ctx context.Context, s *session) error {
	w, err := r.lookAround(ctx, s)
	if err != nil {
		return err
	}
	if r.alone = len(w.there) == 0; r.alone {
		return nil
	}
	if err := r.eachRelation(w.hit); err != nil {
		return err
	}
	err = r.each([]repo.ObjectKind{repo.Function, repo.Procedure, repo.Package, repo.PackageBody, repo.Event}, func(o *repo.Object) error {
		if !r.leftOut[objectKey(o)] {
			w.hit(o.Kind, r.choice.targetSchema(o.Schema), o.Name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := w.hitTriggers(); err != nil {
		return err
	}
	if r.plan.DropsAll > 0 && !r.o.Overwrite {
		more := ""
		if n := r.plan.DropsAll - int64(min(5, len(r.plan.Drops))); n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		return fmt.Errorf("%w: %s%s", ErrExists, strings.Join(r.plan.Drops[:min(5, len(r.plan.Drops))], ", "), more)
	}
	return nil
}

// eachRelation calls f with all tables, sequences and views that are restored, by the names that they get.
func (r *run) eachRelation(f func(kind repo.ObjectKind, schema, name string)) error {
	for _, at := range r.tables {
		l, err := r.spool.get(at)
		if err != nil {
			return err
		}
		schema, name := r.choice.target(l.Table.Schema, l.Table.Name)
		f(kindTable, schema, name)
	}
	return r.each([]repo.ObjectKind{repo.Sequence, repo.View}, func(o *repo.Object) error {
		if !r.leftOut[objectKey(o)] {
			schema, name := r.choice.target(o.Schema, o.Name)
			f(o.Kind, schema, name)
		}
		return nil
	})
}

// hit notes what is dropped because something of the backup gets its name.
func (w *around) hit(kind repo.ObjectKind, schema, name string) {
	key := w.key(kind, schema, name)
	is, ok := w.there[key]
	if !ok {
		return
	}
	is.goes, is.ours = true, is.kind == kind && w.r.ours(kind, schema, name)
	w.there[key] = is
	if is.ours {
		return
	}
	if is.kind == kindTable || is.kind == repo.View || is.kind == repo.Sequence {
		if w.r.inWay == nil {
			w.r.inWay = map[string]bool{}
		}
		w.r.inWay[mysql.Quote(schema)+"."+mysql.Quote(name)] = true
	}
	text := string(is.kind) + " " + mysql.Quote(schema) + "." + mysql.Quote(name)
	if is.kind != kind {
		text += ", where the backup has a " + string(kind)
	}
	w.drops(text)
}

// drops notes what goes.
func (w *around) drops(text string) {
	if w.r.plan.DropsAll++; len(w.r.plan.Drops) < maxNamed {
		w.r.plan.Drops = append(w.r.plan.Drops, text)
	}
}

// hitTriggers notes which triggers are dropped: those whose names the backup has, and those of dropped tables. It refuses to drop one that has a
// name of the backup and belongs to a table that stays as it is.
func (w *around) hitTriggers() error {
	r := w.r
	tableOf := map[string]string{}
	for _, t := range w.triggers {
		tableOf[w.key(repo.Trigger, t.Schema, t.Name)] = t.Table
	}
	err := r.each([]repo.ObjectKind{repo.Trigger}, func(o *repo.Object) error {
		if r.leftOut[objectKey(o)] || r.staysAway(o) {
			return nil
		}
		schema := r.choice.targetSchema(o.Schema)
		w.hit(repo.Trigger, schema, o.Name)
		other, ok := tableOf[w.key(repo.Trigger, schema, o.Name)]
		if !ok || r.sameName(other, o.Table) || !r.o.Overwrite || w.there[w.key(kindTable, schema, other)].goes {
			return nil
		}
		return fmt.Errorf("%w: trigger %s of table %s in the backup, and that of table %s on the server, which is not restored", ErrOneName, objectName(o), mysql.Quote(o.Table), mysql.Quote(other))
	})
	if err != nil {
		return err
	}
	for _, t := range w.triggers {
		if table := w.there[w.key(kindTable, t.Schema, t.Table)]; !w.there[w.key(repo.Trigger, t.Schema, t.Name)].goes && table.goes && !table.ours {
			w.drops("trigger " + mysql.Quote(t.Schema) + "." + mysql.Quote(t.Name) + ", with its table " + mysql.Quote(t.Table))
		}
	}
	return nil
}
