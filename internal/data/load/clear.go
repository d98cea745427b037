package load

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
)

// kindTable is the kind of tables, next to the kinds of objects: tables, views and sequences share their names.
const kindTable repo.ObjectKind = "table"

// relationKind is the kind of what information_schema.TABLES has under a TABLE_TYPE.
func relationKind(tableType string) repo.ObjectKind {
	switch tableType {
	case "VIEW", "SYSTEM VIEW":
		return repo.View
	case "SEQUENCE":
		return repo.Sequence
	}
	return kindTable
}

// clear drops what has the name of a table, view or sequence that will be made, of any kind: DROP TABLE does not drop a view, nor DROP
// VIEW a table. Objects of another kind are dropped only with Overwrite: without it, what is there under the name was made by this restore, or
// by somebody else in the meantime.
func (r *run) clear(ctx context.Context, s *session, kind repo.ObjectKind, schema, name string) error {
	quoted := mysql.Quote(schema) + "." + mysql.Quote(name)
	is := kind
	err := s.Query(ctx, "SELECT /* risso: what has this name? */ TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = "+mysql.Literal(schema)+" AND TABLE_NAME = "+mysql.Literal(name),
		func(row [][]byte) error {
			if r.folds || string(row[0]) == name {
				is = relationKind(string(row[1]))
			}
			return nil
		})
	if err != nil {
		return fmt.Errorf("%s: %w", quoted, err)
	}
	if is != kind && !r.o.Overwrite {
		return fmt.Errorf("%w: %s %s, where the backup has a %s", ErrExists, is, quoted, kind)
	}
	word := kindWords[is]
	if is == kindTable {
		word = "TABLE"
	}
	// One at a time: two sessions of MariaDB that drop tables which refer to each other wait for each other for good (10.11.19, seen:
	// ha_innobase::delete_table locks the other table, and the deadlock is not noticed).
	r.dropping.Lock()
	defer r.dropping.Unlock()
	if err := s.Exec(ctx, "DROP "+word+" IF EXISTS "+quoted); err != nil {
		return fmt.Errorf("%s: %w", quoted, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inWay[quoted] {
		delete(r.inWay, quoted)
		r.dropped = append(r.dropped, strings.ToLower(word)+" "+quoted)
	}
	return nil
}

// tellDropped adds to an error that ends a restore what was dropped.
func (r *run) tellDropped(err error) error {
	if len(r.dropped) == 0 {
		return err
	}
	const most = 5
	slices.Sort(r.dropped)
	text := strings.Join(r.dropped[:min(most, len(r.dropped))], ", ")
	if n := len(r.dropped) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("%w; already dropped: %s", err, text)
}

// present makes sure, before anything goes, that what comes instead is there.
func (r *run) present(ctx context.Context) error {
	return r.o.Repo.Present(ctx, r.header.ID, func(each func(repo.Line) error) error {
		for _, at := range r.tables {
			l, err := r.spool.get(at)
			if err == nil {
				err = each(l)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
