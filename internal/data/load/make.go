package load

import (
	"context"
	"encoding/hex"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/oneline"
)

// makeTable makes a table. Parts of its definition that the server refuses only now are left out, and reported: a rehearsal has no foreign keys,
// partitions and full-text keys, and none is made on a server of the same kind. If the server takes none of it the table is left out; the others
func (r *run) makeTable(ctx context.Context, s *session, t *table) (made bool, err error) {
	name := mysql.Quote(t.name)
	why := s.Exec(ctx, t.def.statement(name))
	if n := mysql.ErrorNumber(why); why == nil || n == 0 || passes(why) || n == errno.TableExists { // made in the meantime by somebody else
		return true, why
	}
	if err := r.canMake(ctx, s, t); err != nil {
		return true, why // no table can be made there: it is not for its definition
	}
	list := r.clausesOf(t.def)
	for _, item := range t.def.items {
		if isForeignKey(item) {
			list = append(list, clause{item, []form{{withoutIt, drop(item)}}, 0})
		}
	}
	def, list, ok, err := choose(t.def, list, func(d definition) error {
		if err := s.Exec(ctx, d.statement(name)); err != nil {
			return err
		}
		return r.clear(ctx, s, kindTable, t.schema, t.name)
	})
	if err != nil {
		return true, err
	}
	if !ok && referredHint(why) != "" {
		return true, why // not because of its definition, but because of a key of another table
	}
	if !ok {
		r.leave(Finding{Trouble: fleet.Trouble{What: "table " + mysql.Quote(t.Schema) + "." + mysql.Quote(t.Name), Why: "the server rejects its definition: " + oneline.Of(why.Error())}})
		r.mu.Lock()
		r.leftOut[leftTable(t.Schema, t.Name)] = true
		r.mu.Unlock()
		return false, nil
	}
	for _, c := range list {
		f := Finding{Trouble: fleet.Trouble{What: "table " + t.quoted(), Why: c.name + " is not taken here (" + oneline.Of(why.Error()) + ")"}, Mapped: c.forms[c.form-1].words}
		if err := r.tell(ctx, s, t, told{Otherwise: &f}); err != nil {
			return true, err
		}
	}
	t.def = def
	return true, s.Exec(ctx, def.statement(name))
}

// canMake says why no table at all can be made where one is wanted.
func (r *run) canMake(ctx context.Context, s *session, t *table) error {
	h := hashOf(t.schema, t.name)
	probe := &table{schema: t.schema, name: "risso_" + hex.EncodeToString(h[:])}
	if err := s.Exec(ctx, "CREATE TABLE /* risso: can there be any? */ "+probe.quoted()+" (risso INT PRIMARY KEY)"); err != nil {
		return err
	}
	return r.clear(ctx, s, kindTable, probe.schema, probe.name)
}

// notThisKey are errors that are about a foreign key, and not about the server's state. Source: MySQL manual, "Server Error Message
// Reference": cannot create (150 in the text), cannot add, no index in the other table, incompatible columns, no unique key there, its name is
// taken, the other table has no such column, partitions, no such engine.
var notThisKey = map[int]bool{1005: true, 1215: true, 1822: true, 3780: true, 6125: true, 1826: true, 3734: true, 1506: true, 3104: true, 3105: true}

// addOne adds a foreign key by itself; one that the server does not take is left out, and reported.
func (r *run) addOne(ctx context.Context, s *session, job foreignJob, key string) error {
	err := s.Exec(ctx, "ALTER TABLE "+mark+" "+mysql.Quote(job.name)+" ADD "+key)
	if !notThisKey[mysql.ErrorNumber(err)] {
		return err
	}
	r.otherwise(Finding{Trouble: fleet.Trouble{What: "table " + mysql.Quote(job.schema) + "." + mysql.Quote(job.name), Why: key + " is not taken here (" + oneline.Of(err.Error()) + ")"}, Mapped: withoutIt})
	return nil
}
