package trial

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/explain/differ"
	"github.com/rissodb/risso/internal/explain/differ/upgrade"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// loader makes a server's definitions on a throw-away one.
type loader struct {
	*trial
	s       *mysql.Stream
	mode    string // the new server's own sql_mode
	refused []refusal
}

// refusal is an object that the new server did not take.
type refusal struct {
	object string
	number int
	said   string
	// again: it was taken under sql_mode '', or without the modes that the new server does not know.
	again bool
}

func (l *loader) open(ctx context.Context, to mysql.Target) error {
	c, err := mysql.Connect(ctx, to, nil)
	if err != nil {
		return err
	}
	server := c.Server
	l.mode = server.SQLMode
	if err := c.Close(); err != nil {
		return err
	}
	if l.s, err = to.ConnectStream(ctx, mysql.StreamOptions{Patience: time.Minute}); err != nil {
		return err
	}
	if err := l.s.ForRows(ctx, server); err != nil {
		return err
	}
	return l.run(ctx, "SET NAMES utf8mb4", "SET SESSION foreign_key_checks = 0")
}

func (l *loader) close() {
	if l.s != nil {
		_ = l.s.Close()
	}
}

func (l *loader) run(ctx context.Context, statements ...string) error {
	for _, s := range statements {
		if err := l.s.Exec(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// make runs a definition under a sql_mode; if it is refused, once more under none, so that what needs it can be tried too.
func (l *loader) make(ctx context.Context, object, mode, create string) (err error, taken bool) {
	first := l.run(ctx, "SET SESSION sql_mode = "+mysql.Literal(mode), create)
	if first == nil {
		return nil, true
	}
	if mysql.ErrorNumber(first) == 0 {
		return first, false
	}
	again := l.run(ctx, "SET SESSION sql_mode = ''", create)
	if again != nil && mysql.ErrorNumber(again) == 0 {
		return again, false
	}
	l.refuse(object, first, again == nil)
	return nil, again == nil
}

func (l *loader) refuse(object string, err error, again bool) {
	l.refused = append(l.refused, refusal{object, mysql.ErrorNumber(err), said(err), again})
}

// said is the server's message.
func said(err error) string {
	var e *mysql.Error
	if errors.As(err, &e) {
		return e.Reason()
	}
	return err.Error()
}

func (l *loader) load(ctx context.Context) error {
	l.Progress("load the definitions")
	for _, name := range sorted(l.d.Schemas) {
		s := l.d.Schemas[name]
		if s.Create == "" {
			s.Create = "CREATE DATABASE " + mysql.Quote(name)
		}
		create := strings.Replace(s.Create, "CREATE DATABASE ", "CREATE DATABASE IF NOT EXISTS ", 1)
		create = strings.Replace(create, "IF NOT EXISTS IF NOT EXISTS", "IF NOT EXISTS", 1)
		err, taken := l.make(ctx, mysql.Quote(name), l.mode, create)
		if err != nil {
			return err
		}
		if !taken { // so that what is in it can be tried
			if err := l.run(ctx, "CREATE DATABASE IF NOT EXISTS "+mysql.Quote(name)); err != nil {
				return err
			}
		}
		if err := l.tables(ctx, name, s); err != nil {
			return err
		}
	}
	for _, name := range sorted(l.d.Schemas) {
		if err := l.foreignKeys(ctx, name, l.d.Schemas[name]); err != nil {
			return err
		}
	}
	return l.objects(ctx)
}

func (l *loader) use(ctx context.Context, schema string) error {
	return l.run(ctx, "USE "+mysql.Quote(schema))
}

func (l *loader) tables(ctx context.Context, schema string, s differ.Schema) error {
	if err := l.use(ctx, schema); err != nil {
		return err
	}
	for _, name := range sorted(s.Tables) {
		l.out.Loaded.Tables++
		err, taken := l.make(ctx, mysql.TableName{Schema: schema, Name: name}.String(), l.mode, s.Tables[name])
		if err != nil {
			return err
		}
		if !taken {
			l.out.Loaded.Refused++
		}
	}
	return nil
}

// foreignKeys makes tables that refer to others once more, with checks and all others there: a key that the new version does not take is
// refused only then.
func (l *loader) foreignKeys(ctx context.Context, schema string, s differ.Schema) error {
	if err := l.use(ctx, schema); err != nil {
		return err
	}
	for _, name := range sorted(s.Tables) {
		full := mysql.TableName{Schema: schema, Name: name}.String()
		if !strings.Contains(s.Tables[name], " FOREIGN KEY ") || slices.ContainsFunc(l.refused, func(r refusal) bool { return r.object == full }) {
			continue
		}
		err := l.run(ctx, "SET SESSION sql_mode = ''", "DROP TABLE "+full, "SET SESSION foreign_key_checks = 1", s.Tables[name])
		if err != nil && mysql.ErrorNumber(err) == 0 {
			return err
		}
		if back := l.run(ctx, "SET SESSION foreign_key_checks = 0"); back != nil {
			return back
		}
		if err != nil {
			l.refuse(full, err, false)
			if err := l.run(ctx, s.Tables[name]); err != nil && mysql.ErrorNumber(err) == 0 { // what is over it is tried in any case
				return err
			}
		}
	}
	return nil
}

// objects makes routines, then views, which may need each other in any order, then triggers and events.
func (l *loader) objects(ctx context.Context) error {
	var now, views, last []differ.Object
	for _, name := range sorted(l.d.Schemas) {
		s := l.d.Schemas[name]
		for _, key := range sorted(s.Objects) {
			d := s.Objects[key]
			switch {
			case d.Broken:
				l.broken(d)
			case d.Kind == define.KindView:
				views = append(views, d)
			case d.Kind == define.KindTrigger || d.Kind == define.KindEvent:
				last = append(last, d)
			default:
				now = append(now, d)
			}
		}
	}
	slices.SortStableFunc(now, func(a, b differ.Object) int { return strings.Compare(order(a), order(b)) })
	for _, d := range now {
		if err := l.object(ctx, d); err != nil {
			return err
		}
	}
	if err := l.views(ctx, views); err != nil {
		return err
	}
	for _, d := range last {
		if err := l.object(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// broken notes a view that does not work where it is either.
func (l *loader) broken(d differ.Object) {
	l.trial.open(objectName(d), "it does not work on the old server either", "")
}

// order makes sequences first and the bodies of packages after the packages.
func order(d differ.Object) string {
	switch d.Kind {
	case define.KindSequence:
		return "0"
	case define.KindPackage:
		return "1"
	}
	return "2" + string(d.Kind)
}

func objectName(d differ.Object) string {
	return string(d.Kind) + " " + mysql.TableName{Schema: d.Schema, Name: d.Name}.String()
}

// views are made as long as one more can be.
func (l *loader) views(ctx context.Context, list []differ.Object) error {
	for len(list) > 0 {
		var rest []differ.Object
		failed := map[string]error{}
		for _, d := range list {
			err := l.try(ctx, d)
			if err != nil && mysql.ErrorNumber(err) == 0 {
				return err
			}
			if err != nil {
				rest = append(rest, d)
				failed[objectName(d)] = err
			}
		}
		if len(rest) == len(list) {
			for _, d := range rest {
				l.out.Loaded.Objects++
				l.out.Loaded.Refused++
				l.refuse(objectName(d), failed[objectName(d)], false)
			}
			return nil
		}
		l.out.Loaded.Objects += len(list) - len(rest)
		list = rest
	}
	return nil
}

// try makes an object under its own circumstances.
func (l *loader) try(ctx context.Context, d differ.Object) error {
	if err := l.use(ctx, d.Schema); err != nil {
		return err
	}
	if d.Charset != "" {
		if err := l.run(ctx, "SET SESSION collation_connection = "+mysql.Literal(d.Collation)); err != nil && mysql.ErrorNumber(err) == 0 {
			return err
		}
	}
	return l.run(ctx, "SET SESSION sql_mode = "+mysql.Literal(d.SQLMode), d.Create)
}

// object makes one; under modes that the new server does not know, once more without them.
func (l *loader) object(ctx context.Context, d differ.Object) error {
	l.out.Loaded.Objects++
	first := l.try(ctx, d)
	if first == nil {
		return nil
	}
	if mysql.ErrorNumber(first) == 0 {
		return first
	}
	l.refuse(objectName(d), first, false)
	modes := slices.DeleteFunc(strings.Split(d.SQLMode, ","), func(m string) bool {
		err := l.run(ctx, "SET SESSION sql_mode = "+mysql.Literal(m))
		return err != nil
	})
	if d.SQLMode = strings.Join(modes, ","); first != nil {
		if err := l.try(ctx, d); err != nil {
			if mysql.ErrorNumber(err) == 0 {
				return err
			}
			if said(err) != said(first) {
				l.refuse(objectName(d), err, false)
			}
			l.out.Loaded.Refused++
		} else {
			l.refused[len(l.refused)-1].again = true
		}
	}
	return nil
}

// merge marks problems that the new server confirmed, drops those that it does not have, and adds what it refused besides.
func (t *trial) merge(list []refusal) {
	by := map[string][]refusal{}
	for _, r := range list {
		by[r.object] = append(by[r.object], r)
	}
	explained := map[string]bool{}
	kept := t.out.Problems[:0]
	for _, p := range t.out.Problems {
		object := p.Object
		if i := strings.LastIndex(object, ".`"); by[object] == nil && i > 0 && by[object[:i]] != nil { // of a column: the table was refused
			object = object[:i]
		}
		refused := by[object]
		switch {
		case p.ID == "object.sql_mode" && len(refused) > 0:
			p.Tried, p.Said = true, refused[0].said
			explained[object+refused[0].said] = true
		case p.Refused && len(refused) > 0:
			last := refused[len(refused)-1]
			p.Tried, p.Said = true, last.said
			explained[object+last.said] = true
		case p.Refused && t.loadedObject(object):
			continue // the new server took it
		}
		kept = append(kept, p)
	}
	t.out.Problems = kept
	for _, r := range list {
		if explained[r.object+r.said] || t.coveredBy(r) {
			continue
		}
		p := upgrade.Problem{ID: "object.refused", Severity: upgrade.Error, Object: r.object,
			Trouble: fleet.Trouble{What: "the new server refuses its definition",
				Why: "it cannot be made there: a dump stops at it, and after an upgrade of the files it may not work"}, Tried: true, Said: numbered(r.said, r.number)}
		if r.again {
			p.Severity, p.What, p.Remedy = upgrade.Warning, "the new server refuses its definition under its sql_mode", "it is taken under sql_mode ''"
		}
		t.out.Problems = append(t.out.Problems, p)
	}
}

// coveredBy reports whether a removed function explains a refusal: that is known by a rule that does not foresee one, for in routines it is
// noticed only when they run.
func (t *trial) coveredBy(r refusal) bool {
	for i, p := range t.out.Problems {
		if p.ID == "function.removed" && p.Object == r.object {
			t.out.Problems[i].Tried, t.out.Problems[i].Said = true, r.said
			return true
		}
	}
	return false
}

// loadedObject reports whether an object was among those that the new server was given.
func (t *trial) loadedObject(object string) bool {
	for name, s := range t.d.Schemas {
		for table := range s.Tables {
			full := mysql.TableName{Schema: name, Name: table}.String()
			if object == full || strings.HasPrefix(object, full+".") {
				return true
			}
		}
		for _, d := range s.Objects {
			if objectName(d) == object && !d.Broken {
				return true
			}
		}
	}
	return false
}
