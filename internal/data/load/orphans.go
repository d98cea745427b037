package load

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// referer is a table whose foreign keys point at another one, if one of them is restored and the other stays as it is.
type referer struct {
	schema, name     string
	toSchema, toName string
	back             bool // the referring one is restored
}

func (f referer) from() string { return mysql.Quote(f.schema) + "." + mysql.Quote(f.name) }
func (f referer) to() string   { return mysql.Quote(f.toSchema) + "." + mysql.Quote(f.toName) }

// planReferers finds the foreign keys between what is restored and what is not, and names those tables that are not restored and may lose
// the rows that they refer to: servers do not look at them while foreign_key_checks is off.
func (r *run) planReferers(ctx context.Context, s *session) error {
	if err := r.ownReferers(); err != nil {
		return err
	}
	if r.alone {
		return nil
	}
	others, err := r.otherReferers(ctx, s)
	if err != nil {
		return err
	}
	r.refers = append(r.refers, others...)
	for i, f := range others {
		if i == maxNamed {
			r.plan.Notes = append(r.plan.Notes, fmt.Sprintf("%d more tables that are not restored refer to tables that are", len(others)-i))
			break
		}
		r.plan.Notes = append(r.plan.Notes, "table "+f.from()+" is not restored and refers to "+f.to()+": its rows may refer to rows that the backup does not have; they are checked at the end")
	}
	return nil
}

// nameKey names a table of the target for a set.
func (r *run) nameKey(schema, name string) string {
	if r.folds {
		return tableKey(schema, name)
	}
	return schema + "\x00" + name
}

// ownReferers are tables that are restored and refer to tables that are not.
func (r *run) ownReferers() error {
	if r.choice.all() {
		return nil
	}
	back := map[string]bool{}
	if err := r.eachRelation(func(_ repo.ObjectKind, schema, name string) { back[r.nameKey(schema, name)] = true }); err != nil {
		return err
	}
	for _, at := range r.tables {
		l, err := r.spool.get(at)
		if err != nil {
			return err
		}
		def, err := r.definitionOf(l.Table)
		if err != nil {
			return err
		}
		f := referer{back: true}
		f.schema, f.name = r.choice.target(l.Table.Schema, l.Table.Name)
		_, keys := def.foreignKeys()
		for _, k := range keys {
			f.toSchema, f.toName = references(k, f.schema)
			if !back[r.nameKey(f.toSchema, f.toName)] && !slices.Contains(r.refers, f) {
				r.refers = append(r.refers, f)
			}
		}
	}
	return nil
}

// otherReferers are tables of the target that are not restored and refer to tables that are.
func (r *run) otherReferers(ctx context.Context, s *session) (list []referer, err error) {
	err = s.Query(ctx, "SELECT /* risso: who refers to what? */ DISTINCT CONSTRAINT_SCHEMA, TABLE_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS", func(row [][]byte) error {
		list = append(list, referer{schema: string(row[0]), name: string(row[1]), toSchema: string(row[2]), toName: string(row[3])})
		return nil
	})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	key := r.nameKey
	back := map[string]bool{} // of those that are on either side
	for _, f := range list {
		back[key(f.schema, f.name)], back[key(f.toSchema, f.toName)] = false, false
	}
	err = r.eachRelation(func(_ repo.ObjectKind, schema, name string) {
		if _, ok := back[key(schema, name)]; ok {
			back[key(schema, name)] = true
		}
	})
	list = slices.DeleteFunc(list, func(f referer) bool {
		return back[key(f.schema, f.name)] || !back[key(f.toSchema, f.toName)]
	})
	return list, err
}

// orphanTime is how long a server may look for the orphans of one foreign key.
const orphanTime = 10 * time.Minute

// countOrphans looks for rows without those that they refer to, of all foreign keys between what came back and what did not.
func (r *run) countOrphans(ctx context.Context) error {
	if len(r.refers) == 0 {
		return nil
	}
	var s *session // separate, because its statements are bounded
	defer func() {
		if s != nil {
			s.Close()
		}
	}()
	for _, f := range r.refers {
		var list []Orphans
		err := r.again(ctx, &s, func(s *session) (err error) {
			list, err = r.foreignKeysOf(ctx, s, f)
			return err
		})
		if err != nil {
			return fmt.Errorf("read the foreign keys of %s: %w", f.from(), err)
		}
		for _, o := range list {
			if err := r.countOf(ctx, &s, &o); err != nil {
				return err
			}
			switch {
			case o.Rows == 0 && o.Unknown == "":
			case f.back:
				r.notef("%s", o.Words())
			default:
				r.result.Orphans = append(r.result.Orphans, o)
			}
		}
	}
	return nil
}

// foreignKeysOf reads the foreign keys of one table that refer to another, as they are on the target now.
func (r *run) foreignKeysOf(ctx context.Context, s *session, f referer) (list []Orphans, err error) {
	var columns, to [][]string
	err = s.Query(ctx, "SELECT /* risso: which columns refer? */ CONSTRAINT_NAME, COLUMN_NAME, REFERENCED_COLUMN_NAME, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = "+
		mysql.Literal(f.schema)+" AND TABLE_NAME = "+mysql.Literal(f.name)+" AND REFERENCED_TABLE_NAME IS NOT NULL ORDER BY CONSTRAINT_NAME, ORDINAL_POSITION", func(row [][]byte) error {
		if !r.sameName(string(row[3]), f.toSchema) || !r.sameName(string(row[4]), f.toName) {
			return nil
		}
		if n := len(list); n == 0 || list[n-1].Constraint != string(row[0]) {
			list = append(list, Orphans{Schema: f.schema, Table: f.name, Constraint: string(row[0]), ToSchema: f.toSchema, ToTable: f.toName})
			columns, to = append(columns, nil), append(to, nil)
		}
		n := len(list) - 1
		columns[n], to[n] = append(columns[n], mysql.Quote(string(row[1]))), append(to[n], mysql.Quote(string(row[2])))
		return nil
	})
	for i := range list { // a key with a NULL in it refers to nothing (MATCH SIMPLE; MySQL manual, "FOREIGN KEY Constraints")
		var has, same []string
		for n, c := range columns[i] {
			has = append(has, "c."+c+" IS NOT NULL")
			same = append(same, "p."+to[i][n]+" = c."+c)
		}
		list[i].all = "SELECT c.* FROM " + f.from() + " c WHERE " + strings.Join(has, " AND ")
		list[i].Query = list[i].all + " AND NOT EXISTS (SELECT 1 FROM " + f.to() + " p WHERE " + strings.Join(same, " AND ") + ")"
	}
	return list, err
}

// countOf counts a foreign key's orphans. If the server refuses, that is no failure: they are reported as unknown.
func (r *run) countOf(ctx context.Context, s **session, o *Orphans) error {
	count := func(s *session) error {
		for _, bound := range r.server.BoundStatements(orphanTime) {
			if err := s.Exec(ctx, bound); err != nil {
				return err
			}
		}
		return s.Query(ctx, "SELECT /* risso: rows without those that they refer to */ COUNT(*)"+strings.TrimPrefix(o.Query, "SELECT c.*"), func(row [][]byte) (err error) {
			o.Rows, err = strconv.ParseInt(string(row[0]), 10, 64)
			return err
		})
	}
	err := r.again(ctx, s, count)
	if n := mysql.ErrorNumber(err); n == errno.NoSuchTable || n == errno.UnknownDatabase { // what they refer to is not there at all
		o.Query = o.all
		err = r.again(ctx, s, count)
	}
	switch mysql.ErrorNumber(err) {
	case 0:
		return err
	case errno.StatementTimeout, errno.StatementTimeoutMariaDB:
		o.Unknown = fmt.Sprintf("counting them took more than %s", orphanTime)
	default:
		o.Unknown = err.Error()
	}
	return nil
}

// Words say what is missing.
func (o Orphans) Words() string {
	table, to := mysql.Quote(o.Schema)+"."+mysql.Quote(o.Table), mysql.Quote(o.ToSchema)+"."+mysql.Quote(o.ToTable)
	if o.Unknown != "" {
		return fmt.Sprintf("it is unknown whether rows of %s refer to rows that %s does not have (%s): %s", table, to, mysql.Quote(o.Constraint), o.Unknown)
	}
	what := " to rows that " + to + " does not have"
	if o.Query == o.all {
		what = " to " + to + ", which is not there"
	}
	return digits.Plural(o.Rows, "row of "+table+" refers", "rows of "+table+" refer") + what + " (" + mysql.Quote(o.Constraint) + ")"
}
