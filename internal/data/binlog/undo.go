package binlog

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
)

// UndoOptions say which transaction to undo.
type UndoOptions struct {
	Files   []File
	GTID    mysql.GTID                                               // of the transaction
	Place   Place                                                    // or where it begins
	Tables  TableFilter                                              // only changes of these tables; nil: all
	Columns Columns                                                  // of the tables as they are now; nil: what the log says
	Hazards func(ctx context.Context, schema, table string) []string // what else a change of a table causes; may be nil
	Ready   func() error                                             // called when all tables were seen, before anything is written; may be nil
	Dir     string                                                   // for a temporary file; "": the system's
}

// UndoResult is what was written.
type UndoResult struct {
	GTID       mysql.GTID `json:"gtid"`
	Place      Place      `json:"place"`
	Statements int64      `json:"statements"`
	Notes      []string   `json:"notes,omitempty"` // what to check before running them
}

// Errors of Undo.
var (
	ErrNoTransaction = errors.New("the logs do not have the transaction")
	ErrNoUndo        = errors.New("the transaction cannot be undone")
)

// Undo writes the statements that undo the rows of a transaction, the last change first, as one transaction, for a person to
// read and run. An error while it is being written is also the last line of the output, so that half of it is not mistaken for all.
//
// It needs the full image of each row (binlog_row_image=FULL, or as much of it as the statement takes), and of each column
// its name and, of a number whose highest bit is set, whether it has a sign: from the log (binlog_row_metadata) or from Columns.
func Undo(ctx context.Context, o UndoOptions, out io.Writer) (UndoResult, error) {
	u := &undoer{o: o, tables: map[string]*undoTable{}}
	defer u.close()
	for _, f := range o.Files {
		if o.Place.File != "" && f.Name != o.Place.File || !o.GTID.IsZero() && f.Index != nil && !f.Index.mayHave(setOf(o.GTID)) {
			continue
		}
		done, err := u.gather(ctx, f)
		if errors.Is(err, ErrNoUndo) {
			fmt.Fprintf(out, "-- NOT COMPLETE: %s\n", oneline.Of(err.Error()))
		}
		if err != nil {
			return u.result, err
		}
		if done {
			if o.Ready != nil {
				if err := o.Ready(); err != nil {
					return u.result, err
				}
			}
			return u.result, u.write(ctx, out)
		}
	}
	if u.found {
		return u.result, fmt.Errorf("%w: the log ends in its middle", ErrNoUndo)
	}
	missed := ""
	if len(u.missed) > 0 {
		missed = "; not all of the logs were read: " + strings.Join(u.missed, "; ")
	}
	what := o.GTID.String()
	if what == "" {
		what = o.Place.String()
	}
	return u.result, fmt.Errorf("%w: %s%s", ErrNoTransaction, what, missed)
}

func setOf(g mysql.GTID) (s mysql.GTIDSet) {
	s.Add(g)
	return s
}

// undoer gathers the rows events of a transaction in a temporary file, because they are read backwards.
type undoer struct {
	o       UndoOptions
	result  UndoResult
	found   bool
	missed  []string // which logs were not read to their end, and why
	format  binlogevent.Format
	spool   *os.File
	w       *bufio.Writer
	size    int64
	offsets []spooled
	tables  map[string]*undoTable // by table map
	byID    map[uint64]*undoTable
	noKeys  bool // foreign keys were not checked
	texts   []string
}

type spooled struct {
	at    int64
	size  int32
	table *undoTable
}

type undoTable struct {
	binlogevent.Table
	named  bool // by the log
	exact  bool // columns came from the server
	order  []int
	failed error
	told   []bool // by column: what of its values is not exact was reported
}

func (u *undoer) close() {
	if u.spool != nil {
		u.spool.Close()
	}
}

// gather looks for the transaction in a log; done says that all of it was there.
func (u *undoer) gather(ctx context.Context, f File) (done bool, err error) {
	in, err := f.Open(ctx)
	if err != nil {
		return false, fmt.Errorf("open %s: %w", f.Name, err)
	}
	defer in.Close()
	inside := false
	skip := func(h binlogevent.Header) bool { // only GTIDs are looked at in front of it
		return !inside && !u.o.GTID.IsZero() && (h.Type.IsRows() || h.Type == binlogevent.TypeTableMap || h.Type == binlogevent.TypeRowsQuery || h.Type == binlogevent.TypeAnnotateRows)
	}
	r, err := binlogevent.NewReader(in, binlogevent.Options{Skip: skip})
	if errors.Is(err, ErrCut) {
		u.missed = append(u.missed, f.Name+": "+err.Error())
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", f.Name, err)
	}
	defer r.Close()
	var b binlogevent.Boundaries
	for {
		e, err := r.Next()
		switch {
		case (errors.Is(err, io.EOF) || errors.Is(err, binlogevent.ErrTorn)) && r.Pos() < f.Least:
			u.missed = append(u.missed, f.short(r.Pos()).Error())
			return false, nil
		case errors.Is(err, binlogevent.ErrTorn), errors.Is(err, ErrCut):
			u.missed = append(u.missed, f.Name+": "+err.Error())
			return false, nil
		case errors.Is(err, io.EOF):
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("%s: %w", f.Name, err)
		}
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		u.format = r.Format()
		began, ended := b.Next(e)
		if began {
			inside = !u.o.GTID.IsZero() && b.GTID.ID == u.o.GTID || u.o.GTID.IsZero() && b.Pos == u.o.Place.Pos && f.Name == u.o.Place.File
			if inside {
				u.found = true
				u.result.GTID, u.result.Place = b.GTID.ID, Place{File: f.Name, Pos: b.Pos, GTID: b.GTID.ID}
				u.byID = map[uint64]*undoTable{}
			}
		}
		if !inside {
			continue
		}
		if err := u.take(ctx, e); err != nil {
			return false, fmt.Errorf("%s:%d: %w", f.Name, e.Pos, err)
		}
		if ended {
			return true, nil
		}
	}
}

// take keeps what is needed of an event.
func (u *undoer) take(ctx context.Context, e binlogevent.Event) error {
	switch {
	case e.Type == binlogevent.TypeTableMap:
		return u.table(ctx, e)
	case e.Type.IsRows():
		return u.rows(e)
	case e.Type == binlogevent.TypeRowsQuery || e.Type == binlogevent.TypeAnnotateRows:
		if len(u.texts) < 20 {
			u.texts = append(u.texts, string(binlogevent.StatementText(e)))
		}
	case e.Type == binlogevent.TypeQuery || e.Type == binlogevent.TypeQueryZip:
		q, err := binlogevent.ParseQuery(e)
		if err != nil {
			return err
		}
		if _, ok := dialectOf(q).ReadChange(string(q.Text)); ok {
			return fmt.Errorf("%w: it was logged as a statement, without its rows: %.200s", ErrNoUndo, q.Text)
		}
	}
	return nil
}

func (u *undoer) table(ctx context.Context, e binlogevent.Event) error {
	key := string(e.Body)
	t := u.tables[key]
	if t == nil {
		parsed, err := binlogevent.ParseTable(u.format, e.Body)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNoUndo, err)
		}
		t = &undoTable{Table: parsed, named: parsed.Named}
		if u.o.Tables == nil || u.o.Tables(t.Schema, t.Name) {
			if u.o.Columns != nil {
				_, t.exact = u.o.Columns(ctx, t.Schema, t.Name)
			}
			FillColumns(ctx, &t.Table, u.o.Columns)
			u.judge(t)
			if u.o.Hazards != nil {
				u.result.Notes = append(u.result.Notes, u.o.Hazards(ctx, t.Schema, t.Name)...)
			}
		} else {
			t.failed = errNotWanted
		}
		u.tables[key] = t
	}
	u.byID[t.ID] = t
	return nil
}

var errNotWanted = errors.New("not wanted")

// judge notes what a person should know of a table.
func (u *undoer) judge(t *undoTable) {
	name := mysql.Quote(t.Schema) + "." + mysql.Quote(t.Name)
	if !t.Named {
		t.failed = fmt.Errorf("%w: the log does not name the columns of %s; give the server by --dsn, or log with binlog_row_metadata=FULL", ErrNoUndo, name)
		if t.exact {
			t.failed = fmt.Errorf("%w: the log does not name the columns of %s, and the server's columns now differ in number or type: it was altered since", ErrNoUndo, name)
		}
		return
	}
	keyed := false
	if !t.named {
		u.note("%s: the log does not name columns (binlog_row_metadata); these names are the server's current ones, by position: check whether the table was altered since", name)
	}
	for i, c := range t.Columns {
		keyed = keyed || c.Key
		if c.Generated {
			continue
		}
		t.order = append(t.order, i)
	}
	if !keyed {
		u.note("%s has no primary key, or the log does not name it: rows are found by all their values, one row per statement", name)
	}
	if !t.exact {
		u.note("%s: columns as in the log, which does not say which are generated and must not be written", name)
	}
}

func (u *undoer) note(format string, args ...any) {
	u.result.Notes = append(u.result.Notes, fmt.Sprintf(format, args...))
}

// rows spools a rows event.
func (u *undoer) rows(e binlogevent.Event) error {
	id, flags, err := binlogevent.RowsHead(u.format, e)
	if err != nil {
		return err
	}
	t := u.byID[id]
	if t == nil {
		if id == binlogevent.Dummy {
			return nil
		}
		return fmt.Errorf("%w: rows of a table that was not named", ErrNoUndo)
	}
	if errors.Is(t.failed, errNotWanted) {
		return nil
	}
	if t.failed != nil {
		return t.failed
	}
	if err := u.images(e, t); err != nil {
		return err
	}
	u.noKeys = u.noKeys || flags&binlogevent.RowsNoForeignKeys != 0
	if u.spool == nil {
		f, err := os.CreateTemp(u.o.Dir, "risso-undo-*")
		if err != nil {
			return fmt.Errorf("gather the rows: %w", err)
		}
		os.Remove(f.Name()) // it lives as long as it is open
		u.spool, u.w = f, bufio.NewWriterSize(f, 1<<20)
	}
	raw := e.Raw[:binlogevent.HeaderLen+len(e.Body)]
	if _, err := u.w.Write(raw); err != nil {
		return fmt.Errorf("gather the rows: %w", err)
	}
	u.offsets = append(u.offsets, spooled{at: u.size, size: int32(len(raw)), table: t})
	u.size += int64(len(raw))
	return nil
}

// images refuses rows of which the log has not what an undo takes, before anything is written.
func (u *undoer) images(e binlogevent.Event, t *undoTable) error {
	r, err := binlogevent.OpenRows(u.format, e, &t.Table)
	if err != nil {
		return err
	}
	keyed, whole := false, true
	for i, c := range t.Columns {
		before, after := r.Has(i)
		keyed = keyed || c.Key
		whole = whole && (!c.Key || before || after)
	}
	var missing []string
	for i, c := range t.Columns {
		before, after := r.Has(i)
		found := c.Generated || keyed && whole || before || after // all columns say which row it is
		if r.Kind == binlogevent.Delete && !before && !c.Generated || r.Kind == binlogevent.Update && after && !before && !c.Generated || !found {
			missing = append(missing, c.Name)
		}
	}
	if missing == nil {
		return nil
	}
	return fmt.Errorf("%w: the log does not have the values of %s.%s: %s of rows of %s (binlog_row_image was not FULL)", ErrNoUndo, t.Schema, t.Name, strings.Join(missing, ", "), article(r.Kind))
}

func article(k binlogevent.Kind) string {
	if k == binlogevent.Delete {
		return "a DELETE"
	}
	return "an " + k.String()
}

// write writes the statements.
func (u *undoer) write(ctx context.Context, out io.Writer) error {
	w := bufio.NewWriterSize(out, 256<<10)
	u.head(w)
	if u.w != nil {
		if err := u.w.Flush(); err != nil {
			return fmt.Errorf("gather the rows: %w", err)
		}
	}
	if len(u.offsets) == 0 {
		fmt.Fprintln(w, "-- it changed no rows")
	}
	for i := len(u.offsets) - 1; i >= 0; i-- {
		if err := u.event(ctx, w, u.offsets[i]); err != nil {
			fmt.Fprintf(w, "ROLLBACK;\n-- NOT COMPLETE: %s\n", oneline.Of(err.Error()))
			return errors.Join(err, w.Flush())
		}
	}
	fmt.Fprintln(w, "COMMIT;")
	return w.Flush()
}

func (u *undoer) head(w io.Writer) {
	fmt.Fprintf(w, "-- undoes %s\n", u.result.Place)
	for _, t := range u.texts {
		fmt.Fprintf(w, "-- it was: %.500s\n", oneline.Of(t))
	}
	for _, n := range u.result.Notes {
		fmt.Fprintf(w, "-- note: %s\n", oneline.Of(n))
	}
	fmt.Fprint(w, `-- Read before you run it: rows may have changed since; a statement that finds no row changes nothing. Triggers fire.
SET NAMES utf8mb4;
SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES', time_zone = '+00:00';
`)
	if u.noKeys {
		fmt.Fprintln(w, "SET SESSION foreign_key_checks = 0; -- as it was")
	}
	fmt.Fprintln(w, "START TRANSACTION;")
}

// event writes the inverse of an event's rows, the last first.
func (u *undoer) event(ctx context.Context, w io.Writer, s spooled) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	raw := make([]byte, s.size)
	if _, err := u.spool.ReadAt(raw, s.at); err != nil {
		return fmt.Errorf("read the rows back: %w", err)
	}
	e := binlogevent.Event{Header: binlogevent.ParseHeader(raw), Raw: raw, Body: raw[binlogevent.HeaderLen:]}
	r, err := binlogevent.OpenRows(u.format, e, &s.table.Table)
	if err != nil {
		return err
	}
	var list []string
	for {
		before, after, more, err := r.Next()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		text, err := s.table.inverse(r.Kind, before, after)
		if err != nil {
			return fmt.Errorf("%w: %s.%s: %w", ErrNoUndo, s.table.Schema, s.table.Name, err)
		}
		list = append(list, u.inexact(s.table, before, after)+text)
	}
	for i := len(list) - 1; i >= 0; i-- {
		if _, err := io.WriteString(w, list[i]); err != nil {
			return err
		}
		u.result.Statements++
	}
	return nil
}

// inexact returns a line that says what of a row's values no literal makes, once for each column.
func (u *undoer) inexact(t *undoTable, images ...[]binlogevent.Value) (line string) {
	if t.told == nil {
		t.told = make([]bool, len(t.Columns))
	}
	for i := range t.Columns {
		c := &t.Columns[i]
		if t.told[i] || !slices.ContainsFunc(images, func(row []binlogevent.Value) bool { return row != nil && !c.Exact(u.format, row[i]) }) {
			continue
		}
		t.told[i] = true
		u.note("%s.%s: NOT EXACT: documents in %s hold bytes of BIT, BLOB or similar types: they come back as the same bytes, but JSON_TYPE may differ, and a row that is found by all its values may not be found", mysql.Quote(t.Schema), mysql.Quote(t.Name), mysql.Quote(c.Name))
		line += "-- note: " + oneline.Of(u.result.Notes[len(u.result.Notes)-1]) + "\n"
	}
	return line
}

var errImage = errors.New("the log does not have the complete row as it was (binlog_row_image is not FULL)")

// inverse is the statement that undoes the change of one row.
func (t *undoTable) inverse(kind binlogevent.Kind, before, after []binlogevent.Value) (string, error) {
	var b strings.Builder
	name := mysql.Quote(t.Schema) + "." + mysql.Quote(t.Name)
	switch kind {
	case binlogevent.Delete:
		b.WriteString("INSERT INTO " + name + " (")
		var values []string
		for n, i := range t.order {
			if !before[i].Present {
				return "", errImage
			}
			v, err := t.Columns[i].Literal(before[i])
			if err != nil {
				return "", fmt.Errorf("column %s: %w", t.Columns[i].Name, err)
			}
			if n > 0 {
				b.WriteString(", ")
			}
			b.WriteString(mysql.Quote(t.Columns[i].Name))
			values = append(values, v)
		}
		b.WriteString(") VALUES (" + strings.Join(values, ", ") + ");\n")
		return b.String(), nil
	case binlogevent.Insert:
		where, err := t.where(after, nil)
		return "DELETE FROM " + name + where, err
	}
	where, err := t.where(after, before)
	if err != nil {
		return "", err
	}
	set, err := t.set(before, after)
	if err != nil {
		return "", err
	}
	if set == "" {
		return "", nil
	}
	return "UPDATE " + name + " SET " + set + where, nil
}

// set is the assignments that bring a row back: of the columns that were changed, and of those that the server would set by
// itself.
func (t *undoTable) set(before, after []binlogevent.Value) (string, error) {
	var list []string
	changed := false
	for _, i := range t.order {
		c := &t.Columns[i]
		was, is := before[i], after[i]
		if !was.Present && !is.Present {
			continue // neither: it was not changed
		}
		if !was.Present {
			return "", errImage
		}
		differs := is.Present && !same(was, is)
		changed = changed || differs
		if !differs && !c.Temporal() {
			continue
		}
		v, err := c.Literal(was)
		if err != nil {
			return "", fmt.Errorf("column %s: %w", c.Name, err)
		}
		list = append(list, mysql.Quote(c.Name)+" = "+v)
	}
	if !changed {
		return "", nil
	}
	return strings.Join(list, ", "), nil
}

func same(a, b binlogevent.Value) bool {
	return a.Null == b.Null && !a.Partial && !b.Partial && string(a.Raw) == string(b.Raw)
}

// where finds the row as it is now: by its primary key, else by all values. Of a value that the image after has not, the one
// before holds: it was not changed.
func (t *undoTable) where(now, before []binlogevent.Value) (string, error) {
	at := func(i int) binlogevent.Value {
		if !now[i].Present && before != nil {
			return before[i]
		}
		return now[i]
	}
	keyed, whole := false, true
	for i, c := range t.Columns {
		if c.Key {
			keyed = true
			whole = whole && at(i).Present
		}
	}
	var list []string
	for i := range t.Columns {
		c := &t.Columns[i]
		v := at(i)
		if keyed && whole && !c.Key || c.Generated {
			continue
		}
		if !(keyed && whole) && (v.Partial || !v.Present) {
			if !v.Partial || before == nil {
				return "", errImage
			}
			text, err := c.Patched(before[i], v)
			if err != nil {
				return "", fmt.Errorf("column %s: %w", c.Name, err)
			}
			list = append(list, mysql.Quote(c.Name)+" = "+text)
			continue
		}
		text, err := c.Equals(v)
		if err != nil {
			return "", fmt.Errorf("column %s: %w", c.Name, err)
		}
		list = append(list, text)
	}
	if len(list) == 0 {
		return "", errImage
	}
	return " WHERE " + strings.Join(list, " AND ") + " LIMIT 1;\n", nil
}
