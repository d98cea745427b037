package binlog

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
)

// AgainOptions say which transactions are written as statements.
type AgainOptions struct {
	Pick
	Columns Columns // of the tables as they are now; nil: what the log says
	Most    int     // rows of each transaction; 0: all
}

// AgainResult is what was written.
type AgainResult struct {
	Transactions int64    `json:"transactions"`
	Rows         int64    `json:"rows"`
	Notes        []string `json:"notes,omitempty"` // what a person should know before running the statements
}

// Again hands over the statements that do the changes of transactions once more, one for each row, in the order of the logs, and those that were logged as text.
// The rows of a transaction are not gathered: memory does not grow with it. An empty line is told at the end of each transaction.
func Again(ctx context.Context, o AgainOptions, line func(mysql.GTID, string) error) (AgainResult, error) {
	w := &againer{o: o, line: line, tables: newRowTables(o.Columns)}
	missed, err := o.walk(ctx, func(p picked) error { return w.take(ctx, p) })
	w.result.Notes = append(w.result.Notes, w.tables.notes...)
	for _, m := range missed {
		w.result.Notes = append(w.result.Notes, "not all of the logs could be read: "+m)
	}
	return w.result, err
}

// againer makes statements of events.
type againer struct {
	o      AgainOptions
	line   func(mysql.GTID, string) error
	tables *rowTables
	rows   int // of the transaction in hand
	result AgainResult
}

func (w *againer) take(ctx context.Context, p picked) error {
	g := p.at.GTID.ID
	switch {
	case p.cut:
		w.result.Notes = append(w.result.Notes, fmt.Sprintf("%s ends in the middle of %s: only its beginning is there", p.file, g))
		return w.line(g, "")
	case p.Type == binlogevent.TypeFormatDescription:
		w.tables.begin(p.format)
		return nil
	case p.began:
		w.rows = 0
		w.result.Transactions++
	}
	if err := w.event(ctx, g, p.Event); err != nil {
		return err
	}
	if p.ended {
		return w.line(g, "")
	}
	return nil
}

func (w *againer) event(ctx context.Context, g mysql.GTID, e binlogevent.Event) error {
	switch {
	case e.Type == binlogevent.TypeTableMap:
		return w.tables.add(ctx, e)
	case e.Type.IsRows():
		return w.changes(g, e)
	case e.Type == binlogevent.TypeQuery || e.Type == binlogevent.TypeQueryZip:
		q, err := binlogevent.ParseQuery(e)
		if err != nil {
			return err
		}
		if binlogevent.FrameOf(q.Text) != binlogevent.FrameNone {
			return nil
		}
		text := strings.ToValidUTF8(string(q.Text), "?") + ";"
		if q.Schema != "" && e.Flags&suppressUse == 0 {
			text = "USE " + mysql.Quote(q.Schema) + "; " + text
		}
		return w.line(g, text)
	}
	return nil
}

// changes hands over the statements of a rows event.
func (w *againer) changes(g mysql.GTID, e binlogevent.Event) error {
	t, err := w.tables.of(e)
	if t == nil || err != nil {
		return err
	}
	if t.Err != nil {
		return w.line(g, "-- rows of "+t.name()+" cannot be shown: "+oneline.Of(t.Err.Error()))
	}
	r, err := binlogevent.OpenRows(w.tables.format, e, &t.Table)
	if err != nil {
		return err
	}
	for {
		if w.o.Most > 0 && w.rows >= w.o.Most {
			n, err := r.Count()
			w.result.Rows += n
			return err
		}
		before, after, more, err := r.Next()
		if err != nil || !more {
			return err
		}
		w.rows++
		w.result.Rows++
		text, err := again(t, r.Kind, before, after)
		if err != nil {
			text = "-- a row of " + t.name() + " cannot be shown: " + oneline.Of(err.Error())
		}
		if err := w.line(g, text); err != nil {
			return err
		}
	}
}

// again is the statement that does the change of one row once more.
func again(t *rowTable, kind binlogevent.Kind, before, after []binlogevent.Value) (string, error) {
	if kind == binlogevent.Insert {
		var names, values []string
		for i := range t.Columns {
			c := &t.Columns[i]
			if c.Generated || !after[i].Present {
				continue
			}
			v, err := c.Literal(after[i])
			if err != nil {
				return "", fmt.Errorf("column %s: %w", c.Name, err)
			}
			names, values = append(names, mysql.Quote(c.Name)), append(values, v)
		}
		return "INSERT INTO " + t.name() + " (" + strings.Join(names, ", ") + ") VALUES (" + strings.Join(values, ", ") + ");", nil
	}
	where, err := t.where(before, nil)
	if err != nil {
		return "", err
	}
	where = strings.TrimSuffix(where, "\n")
	if kind == binlogevent.Delete {
		return "DELETE FROM " + t.name() + where, nil
	}
	var list []string
	for i := range t.Columns {
		c := &t.Columns[i]
		was, is := before[i], after[i]
		if c.Generated || !is.Present || was.Present && same(was, is) && !c.Temporal() { // the server would set a time by itself
			continue
		}
		v := ""
		if is.Partial {
			v, err = c.Patched(was, is)
		} else {
			v, err = c.Literal(is)
		}
		if err != nil {
			return "", fmt.Errorf("column %s: %w", c.Name, err)
		}
		list = append(list, mysql.Quote(c.Name)+" = "+v)
	}
	if len(list) == 0 {
		return "-- a row of " + t.name() + " was not changed", nil
	}
	return "UPDATE " + t.name() + " SET " + strings.Join(list, ", ") + where, nil
}

// AgainScript writes the statements of Again for a person to read and run, each transaction as one.
func AgainScript(ctx context.Context, o AgainOptions, out io.Writer) (AgainResult, error) {
	fmt.Fprint(out, `-- Read before you run it: rows may have changed since, and these statements do not look. Triggers fire, though what they changed is here, too.
SET NAMES utf8mb4;
SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES', time_zone = '+00:00';
`)
	var open mysql.GTID
	res, err := Again(ctx, o, func(g mysql.GTID, text string) error {
		if text == "" {
			open = mysql.GTID{}
			_, err := fmt.Fprintln(out, "COMMIT;")
			return err
		}
		if open != g {
			open = g
			fmt.Fprintf(out, "\n-- %s\nSTART TRANSACTION;\n", g)
		}
		_, err := fmt.Fprintln(out, text)
		return err
	})
	for _, n := range res.Notes {
		fmt.Fprintf(out, "-- note: %s\n", oneline.Of(n))
	}
	if err != nil {
		fmt.Fprintf(out, "ROLLBACK;\n-- NOT COMPLETE: %s\n", oneline.Of(err.Error()))
	}
	return res, err
}
