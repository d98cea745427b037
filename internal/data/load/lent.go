package load

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// Lent is a schema whose default collation a restore has changed for a while.
type Lent struct {
	Schema    string `json:"schema"`
	Collation string `json:"collation"` // its own, which it gets back
}

// Statement gives it back.
func (l Lent) Statement() string {
	return "ALTER DATABASE " + mysql.Quote(l.Schema) + " COLLATE = " + l.Collation
}

// LentError says that a schema did not get its default collation back. The journal still knows it.
type LentError struct {
	Lent
	Err error
}

// Error is one line without the remedy.
func (e *LentError) Error() string {
	return fmt.Sprintf("schema %s may have another default collation than its own, %s, which could not be given back: %v", mysql.Quote(e.Schema), e.Collation, e.Err)
}

// Unwrap returns the server's error.
func (e *LentError) Unwrap() error { return e.Err }

// Remedy is the statement to run.
func (e *LentError) Remedy() string { return e.Statement() + " gives it back" }

// collationMark marks the default collation of a schema in the journal.
func collationMark(schema string) *table { return &table{id: tableID("", "collation of "+schema)} }

// lentCollations are the default collations that an earlier run changed temporarily, and was cut off before it restored them.
// behind: that run had reached the binary logs, which may have changed the collations since.
func (r *run) lentCollations(ctx context.Context, s *session, behind bool) (list []Lent, err error) {
	own := map[string]string{}
	for _, said := range r.earlier.told {
		for _, x := range said {
			if x.Schema != "" && x.Behind == behind {
				own[x.Schema] = x.Collation
			}
		}
	}
	if len(own) > 0 && r.known.collations == nil {
		if err := r.readVocabulary(ctx, s); err != nil {
			return nil, err
		}
	}
	for _, schema := range slices.Sorted(maps.Keys(own)) {
		l := Lent{schema, own[schema]}
		if !r.known.collations[l.Collation] { // nothing that is no collation goes into a statement
			continue
		}
		if left, err := l.left(ctx, s); err != nil {
			return nil, err
		} else if left {
			list = append(list, l)
		}
	}
	return list, nil
}

// left reports whether the schema is there and has another one.
func (l Lent) left(ctx context.Context, s *session) (bool, error) {
	s.schema = "" // USE reads the collation again
	err := s.use(ctx, l.Schema)
	if mysql.ErrorNumber(err) == errno.UnknownDatabase {
		return false, nil
	} else if err != nil {
		return false, err
	}
	var has string
	err = s.Query(ctx, "SELECT /* risso: was it given back? */ @@collation_database", func(row [][]byte) error {
		has = string(row[0])
		return nil
	})
	return err == nil && has != l.Collation, err
}

// giveBack gives schemas their default collations back, and removes them from the journal.
func giveBack(ctx context.Context, s *session, list []Lent) error {
	for _, l := range list {
		left, err := l.left(ctx, s)
		if err == nil && left {
			err = s.Exec(ctx, l.Statement())
		}
		if err != nil {
			return &LentError{l, err}
		}
		err = s.Exec(ctx, "DELETE FROM "+repo.JournalSchema+".told WHERE id = "+collationMark(l.Schema).id)
		if n := mysql.ErrorNumber(err); err != nil && n != errno.NoSuchTable { // a journal that is gone knows nothing
			return err
		}
	}
	return nil
}

// backTime is how long it may take to give a default collation back when a restore ends early.
const backTime = 15 * time.Second

// endLoan gives back what is lent when the restore ends early, regardless of ctx and of its session, which may be nil.
func (r *run) endLoan(ctx context.Context, last *session) error {
	if r.lent == nil {
		return nil
	}
	l := *r.lent
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), backTime)
	defer cancel()
	s, err := r.open(ctx)
	if err != nil {
		return &LentError{l, err}
	}
	defer s.Close()
	if last != nil {
		if err := s.outlive(ctx, last); err != nil {
			return &LentError{l, err}
		}
	}
	return giveBack(ctx, s, []Lent{l})
}

// outlive ends another session and waits until it is gone: what it runs would interfere with what follows.
func (s *session) outlive(ctx context.Context, last *session) error {
	last.Close()
	for {
		err := s.Exec(ctx, fmt.Sprintf("KILL /* risso: of a restore that ends */ %d", last.ID()))
		if mysql.ErrorNumber(err) == errno.NoSuchThread {
			return nil
		} else if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
