package binlog

import (
	"context"
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/mysql"
)

// rowTables are the tables of the rows that a log has, with what the server knows of them and the log does not.
type rowTables struct {
	columns Columns
	format  binlogevent.Format
	byID    binlogevent.Tables[*rowTable]
	notes   []string
	noted   map[string]bool // by table
}

// rowTable is a table with what is needed to find its rows. Err says why its rows can be neither found nor written.
type rowTable struct {
	undoTable
	Err error
}

func newRowTables(columns Columns) *rowTables {
	return &rowTables{columns: columns, noted: map[string]bool{}}
}

// begin begins a log.
func (l *rowTables) begin(f binlogevent.Format) {
	l.format = f
	l.byID.Clear()
}

// forget lets the server be asked again: tables were made or altered.
func (l *rowTables) forget(columns Columns) {
	l.columns = columns
	l.byID.Clear()
}

// add takes a table map event.
func (l *rowTables) add(ctx context.Context, e binlogevent.Event) error {
	m, fresh, err := l.byID.Map(l.format, e.Body)
	if err != nil || !fresh {
		return err
	}
	t := &rowTable{undoTable: undoTable{Table: m.Table, named: m.Named}, Err: m.Err}
	m.User = t
	if t.Err != nil {
		return nil
	}
	exists := false
	if l.columns != nil {
		_, exists = l.columns(ctx, t.Schema, t.Name)
		FillColumns(ctx, &t.Table, l.columns)
	}
	t.exact = exists
	switch {
	case l.columns != nil && !exists:
		t.Err = fmt.Errorf("there is no table %s now", t.name())
	case !t.Named && l.columns != nil:
		t.Err = fmt.Errorf("the columns that %s has now are not those that it had when this was logged", t.name())
	case !t.Named:
		t.Err = fmt.Errorf("the log does not name the columns of %s (binlog_row_metadata), and no server was asked", t.name())
	case l.columns != nil && !t.filled():
		t.Err = fmt.Errorf("the columns that %s has now are not those that it had when this was logged", t.name())
	}
	if t.Err == nil && !t.keyed() && !l.noted[t.name()] {
		l.noted[t.name()] = true
		l.notes = append(l.notes, t.name()+" has no primary key: its rows are found by all their values")
	}
	return nil
}

// of is the table of a rows event; nil: it has no rows.
func (l *rowTables) of(e binlogevent.Event) (*rowTable, error) {
	id, _, err := binlogevent.RowsHead(l.format, e)
	if err != nil {
		return nil, err
	}
	m := l.byID.Get(id)
	if m == nil {
		if id == binlogevent.Dummy {
			return nil, nil
		}
		return nil, fmt.Errorf("%w: rows of a table that was not named", binlogevent.ErrDamaged)
	}
	return m.User, nil
}

// name is the table as SQL names it.
func (t *rowTable) name() string { return mysql.Quote(t.Schema) + "." + mysql.Quote(t.Name) }

// plain is its name for people.
func (t *rowTable) plain() string { return t.Schema + "." + t.Name }

// filled reports whether all columns are as the server declares them.
func (t *rowTable) filled() bool {
	for _, c := range t.Columns {
		if c.Declared == "" {
			return false
		}
	}
	return true
}

// keyed reports whether it has a primary key.
func (t *rowTable) keyed() bool {
	for _, c := range t.Columns {
		if c.Key {
			return true
		}
	}
	return false
}

// key is the condition that finds a row by its primary key; "" where there is none, or the image has not all of it.
func (t *rowTable) key(row, or []binlogevent.Value) (string, error) {
	var list []string
	for i := range t.Columns {
		c := &t.Columns[i]
		if !c.Key {
			continue
		}
		v := row[i]
		if !v.Present && or != nil {
			v = or[i]
		}
		if !v.Present {
			return "", nil
		}
		text, err := c.Equals(v)
		if err != nil {
			return "", fmt.Errorf("column %s: %w", c.Name, err)
		}
		list = append(list, text)
	}
	return strings.Join(list, " AND "), nil
}

// whole is the condition that is true for a row that has all the values of an image.
func (t *rowTable) whole(row []binlogevent.Value) (string, error) {
	var list []string
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Generated || !row[i].Present {
			continue
		}
		text, err := c.Equals(row[i])
		if err != nil {
			return "", fmt.Errorf("column %s: %w", c.Name, err)
		}
		list = append(list, text)
	}
	return strings.Join(list, " AND "), nil
}
