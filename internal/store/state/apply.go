package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// ErrNewer says that a change or a copy was made by a newer Risso than this one.
var ErrNewer = errors.New("it was made by a newer Risso: run that version here, too")

// remembered is how many of the last changes are known by their IDs. A change that is proposed again is among them: it was first proposed
// within the time limit of a call.
const remembered = 10_000

// ApplyChange makes a change that was agreed on under a number, in one transaction with the note that it was made. It wraps ErrStale or
// ErrRejected where the change is not to be made, here and on all other controllers; after any other error the file is behind, and nothing
// else may be applied before this change was.
func (s *Store) ApplyChange(ctx context.Context, number uint64, c Change) error {
	if c.Schema > len(migrations) {
		return fmt.Errorf("change %d: %w", number, ErrNewer)
	}
	var refused error
	err := s.alone(ctx, fmt.Sprintf("apply change %d", number), func(ctx context.Context, tx *sql.Tx) error {
		var applied uint64
		if err := tx.QueryRowContext(ctx, `SELECT applied FROM agreed`).Scan(&applied); err != nil {
			return err
		}
		if number <= applied { // Risso ended after it was applied
			return nil
		}
		for family, base := range c.Bases {
			at, err := baseOf(ctx, tx, family)
			if err != nil {
				return err
			}
			if at != base {
				refused = fmt.Errorf("%s was changed by %d, after %d: %w", family, at, base, ErrStale)
				return nil
			}
		}
		if _, err := tx.ExecContext(ctx, `SAVEPOINT agreed_change`); err != nil {
			return err
		}
		if err := s.applyRows(ctx, tx, c); unfit(err) {
			refused = fmt.Errorf("change %d: %w: %w", number, ErrRejected, err)
			_, err = tx.ExecContext(ctx, `ROLLBACK TO agreed_change; RELEASE agreed_change`)
			return err
		} else if err != nil {
			return err
		}
		return noteChange(ctx, tx, number, c)
	})
	return errors.Join(err, refused)
}

// Stale returns ErrStale if something that is in this file came before a change.
func (s *Store) Stale(ctx context.Context, c Change) error {
	for family, base := range c.Bases {
		var at uint64
		err := s.each(ctx, "compare a change", func(r *sql.Rows) error { return r.Scan(&at) }, `SELECT coalesce(max(at), 0) FROM agreed_families WHERE family = ?`, family)
		if err != nil {
			return err
		}
		if at != base {
			return fmt.Errorf("%s was changed by %d, after %d: %w", family, at, base, ErrStale)
		}
	}
	return nil
}

// noteChange writes down that a change was made.
func noteChange(ctx context.Context, tx *sql.Tx, number uint64, c Change) error {
	for family := range c.Bases {
		if _, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO agreed_families (family, at) VALUES (?,?)`, family, number); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO agreed_changes (id, at) VALUES (?,?)`, c.ID, number); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM agreed_changes WHERE at + ? < ?`, remembered, number); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `UPDATE agreed SET applied = ?`, number)
	return err
}

// errNoRow says that a row that was to change is not there.
var errNoRow = errors.New("a row that it changes is not there")

// unfit says that rows cannot be changed so on any controller.
func unfit(err error) bool {
	var e *sqlite.Error
	if errors.As(err, &e) {
		code := e.Code() & 0xff
		return code == sqlite3.SQLITE_CONSTRAINT || code == sqlite3.SQLITE_MISMATCH
	}
	return errors.Is(err, errNoRow)
}

// applyRows changes rows as they were changed where the change was tried.
func (s *Store) applyRows(ctx context.Context, tx *sql.Tx, c Change) error {
	for _, r := range c.Rows {
		shape, ok := s.shared.shapes[r.Table]
		columns := c.Columns[r.Table]
		if !ok || len(columns) == 0 {
			return fmt.Errorf("table %q: %w", r.Table, errNoRow)
		}
		query, args, err := r.statement(shape, columns)
		if err != nil {
			return err
		}
		result, err := tx.ExecContext(ctx, query, args...)
		if err != nil {
			return fmt.Errorf("%s %s: %w", r.Do, r.Table, err)
		}
		if n, err := result.RowsAffected(); err != nil || n != 1 {
			return fmt.Errorf("%s %s: %w", r.Do, r.Table, errOr(err, errNoRow))
		}
	}
	return nil
}

// statement is the SQL of one row's change.
func (r RowChange) statement(s shape, columns []string) (query string, args []any, err error) {
	named := slices.Clone(columns)
	if len(s.key) == 0 {
		named = append([]string{"rowid"}, named...)
	}
	if r.Do != rowDelete && len(r.Row) != len(named) || r.Do != rowInsert && len(r.Key) != max(1, len(s.key)) {
		return "", nil, fmt.Errorf("%s %s: it has %d values for %d columns: %w", r.Do, r.Table, len(r.Row), len(named), errNoRow)
	}
	for _, v := range r.Row {
		args = append(args, v.V)
	}
	switch r.Do {
	case rowInsert:
		return "INSERT INTO " + r.Table + " (" + quoted(named, "", ", ") + ") VALUES (?" + strings.Repeat(",?", len(named)-1) + ")", args, nil
	case rowUpdate:
		query = "UPDATE " + r.Table + " SET " + quoted(named, " = ?", ", ")
	case rowDelete:
		query = "DELETE FROM " + r.Table
	default:
		return "", nil, fmt.Errorf("%q %s: %w", r.Do, r.Table, errNoRow)
	}
	key := []string{"rowid"}
	if len(s.key) > 0 {
		key = nil
		for _, i := range s.key {
			key = append(key, s.columns[i])
		}
	}
	for _, v := range r.Key {
		args = append(args, v.V)
	}
	return query + " WHERE " + quoted(key, " = ?", " AND "), args, nil
}

// quoted writes names of columns, each with what follows it.
func quoted(names []string, after, between string) string {
	parts := make([]string, len(names))
	for i, n := range names {
		if n != "rowid" {
			n = `"` + strings.ReplaceAll(n, `"`, `""`) + `"`
		}
		parts[i] = n + after
	}
	return strings.Join(parts, between)
}
