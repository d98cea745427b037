package state

import (
	"bufio"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// copyFormat names the copies of shared tables.
const copyFormat = "risso shared state 1"

// copyLine is a line of a copy: its head, then for each table its columns and its rows, then the end.
type copyLine struct {
	Format  string   `json:"format,omitempty"` // of the first line
	Schema  int      `json:"schema,omitempty"`
	Applied uint64   `json:"applied,omitempty"`
	Table   string   `json:"table,omitempty"`
	Columns []string `json:"columns,omitempty"`
	Row     []Value  `json:"row,omitempty"`
	Rows    int      `json:"rows,omitempty"` // of the last line: how many there were
	End     bool     `json:"end,omitempty"`
}

// copied are the tables of a copy in their order: those that are shared, what numbers are taken, and which changes were made.
func copied() []string {
	var list []string
	for table, family := range families {
		if family != "" && family != positions {
			list = append(list, table)
		}
	}
	slices.Sort(list)
	return append(list, "agreed_families", "agreed_changes")
}

// SharedCopy is the shared tables as they were at one moment.
type SharedCopy struct {
	tx      *sql.Tx
	shapes  map[string]shape
	applied uint64
}

// SharedCopy begins a copy of the shared tables as they are now. Release ends it.
func (s *Store) SharedCopy(ctx context.Context) (*SharedCopy, error) {
	shapes, err := shapesOf(ctx, s.read)
	if err != nil {
		return nil, fmt.Errorf("copy the shared state: %w", explain(err))
	}
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("copy the shared state: %w", explain(err))
	}
	c := &SharedCopy{tx: tx, shapes: shapes}
	err = tx.QueryRowContext(ctx, `SELECT coalesce(max(applied), 0) FROM agreed`).Scan(&c.applied) // from here on it stands still
	if err != nil {
		c.Release()
		return nil, fmt.Errorf("copy the shared state: %w", explain(err))
	}
	return c, nil
}

// Release ends a copy.
func (c *SharedCopy) Release() { _ = c.tx.Rollback() }

// Write writes the copy.
func (c *SharedCopy) Write(ctx context.Context, w io.Writer) error {
	z := gzip.NewWriter(w)
	e := json.NewEncoder(z)
	err := e.Encode(copyLine{Format: copyFormat, Schema: len(migrations), Applied: c.applied})
	rows := 0
	for _, table := range copied() {
		if err == nil {
			err = c.writeTable(ctx, e, table, &rows)
		}
	}
	if err == nil {
		err = c.writeTable(ctx, e, "sqlite_sequence", &rows)
	}
	if err == nil {
		err = e.Encode(copyLine{End: true, Rows: rows})
	}
	if err = errors.Join(err, z.Close()); err != nil {
		return fmt.Errorf("copy the shared state: %w", explain(err))
	}
	return nil
}

// writeTable writes a table. The rowid comes first where it tells rows apart.
func (c *SharedCopy) writeTable(ctx context.Context, e *json.Encoder, table string, rows *int) error {
	query := "SELECT * FROM " + table
	if shape, ok := c.shapes[table]; ok && len(shape.key) == 0 {
		query = "SELECT rowid, * FROM " + table
	}
	found, err := c.tx.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer found.Close()
	columns, err := found.Columns()
	if err != nil {
		return err
	}
	if err := e.Encode(copyLine{Table: table, Columns: columns}); err != nil {
		return err
	}
	for found.Next() {
		row, into := make([]Value, len(columns)), make([]any, len(columns))
		for i := range row {
			into[i] = &row[i].V
		}
		if err := found.Scan(into...); err != nil {
			return err
		}
		if name, ok := row[0].V.(string); table == "sqlite_sequence" && (!ok || families[name] == "") {
			continue
		}
		if err := e.Encode(copyLine{Row: row}); err != nil {
			return err
		}
		*rows++
	}
	return found.Err()
}

// CopyApplied is the number of the last change that a copy has.
func CopyApplied(r io.Reader) (uint64, error) {
	var head copyLine
	z, err := gzip.NewReader(bufio.NewReader(r))
	if err == nil {
		err = json.NewDecoder(z).Decode(&head)
	}
	if err == nil && head.Format != copyFormat {
		err = ErrForeign
	}
	if err != nil {
		return 0, fmt.Errorf("read a copy of shared state: %w", err)
	}
	return head.Applied, nil
}

// RestoreShared replaces the shared tables by a copy, all of them or none, and notes that the file is as it is after the change of that number.
func (s *Store) RestoreShared(ctx context.Context, r io.Reader) error {
	return s.alone(ctx, "restore the shared state", func(ctx context.Context, tx *sql.Tx) error {
		z, err := gzip.NewReader(bufio.NewReader(r))
		if err != nil {
			return err
		}
		d := json.NewDecoder(z)
		var head copyLine
		if err := d.Decode(&head); err != nil {
			return err
		}
		switch {
		case head.Format != copyFormat:
			return fmt.Errorf("%w: it is no copy of shared state", ErrForeign)
		case head.Schema > len(migrations):
			return ErrNewer
		}
		for _, table := range copied() {
			if _, err := tx.ExecContext(ctx, "DELETE FROM "+table); err != nil {
				return err
			}
		}
		if err := restoreTables(ctx, tx, d); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE agreed SET applied = ?`, head.Applied)
		return err
	})
}

// restoreTables inserts the rows of a copy behind its head.
func restoreTables(ctx context.Context, tx *sql.Tx, d *json.Decoder) error {
	known := copied()
	var into *sql.Stmt
	defer func() {
		if into != nil {
			into.Close()
		}
	}()
	for rows := 0; ; {
		var l copyLine
		if err := d.Decode(&l); err != nil {
			return fmt.Errorf("the copy is damaged: %w", err)
		}
		switch {
		case l.End && l.Rows != rows:
			return fmt.Errorf("the copy is damaged: it has %d rows of %d", rows, l.Rows)
		case l.End:
			return nil
		case l.Table != "":
			if l.Table != "sqlite_sequence" && !slices.Contains(known, l.Table) || len(l.Columns) == 0 {
				return fmt.Errorf("%w: it has a table %q", ErrForeign, l.Table)
			}
			if into != nil {
				into.Close()
			}
			query := "INSERT INTO " + l.Table + " (" + quoted(l.Columns, "", ", ") + ") VALUES (?" + strings.Repeat(",?", len(l.Columns)-1) + ")"
			if l.Table == "sqlite_sequence" { // a row may have come with the rows of its table
				query = "DELETE FROM sqlite_sequence WHERE name = ?1; INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)"
			}
			var err error
			if into, err = tx.PrepareContext(ctx, query); err != nil {
				return err
			}
		case into == nil:
			return errors.New("the copy is damaged: rows without a table")
		default:
			args := make([]any, len(l.Row))
			for i, v := range l.Row {
				args[i] = v.V
			}
			if _, err := into.ExecContext(ctx, args...); err != nil {
				return err
			}
			rows++
		}
	}
}
