package binlog

import (
	"bytes"
	"slices"

	"github.com/rissodb/risso/internal/binlogevent"
)

// event reads the body of one event. Errors in it are counted, and end nothing.
func (r *Reader) event(e *binlogevent.Event) {
	var err error
	switch e.Type {
	case binlogevent.TypeFormatDescription:
		if r.server == "" {
			r.server = r.log.Format().Version
		}
		r.tables.Clear()
	case binlogevent.TypeQuery, binlogevent.TypeQueryZip:
		err = r.queryEvent(e)
	case binlogevent.TypeRowsQuery, binlogevent.TypeAnnotateRows:
		if e.Type == binlogevent.TypeAnnotateRows || len(e.Body) > 0 {
			r.statementText(e, binlogevent.StatementText(*e))
		}
	case binlogevent.TypeTableMap:
		r.size += int64(e.Length)
		var t *binlogevent.Mapped[struct{}]
		if t, _, err = r.tables.Map(r.log.Format(), e.Body); err == nil {
			err = t.Err // the names are known: the change counts, its rows do not
		}
	case binlogevent.TypeGTID, binlogevent.TypeAnonymousGTID, binlogevent.TypeGTIDTagged:
		r.begin()
		if g, err := binlogevent.ParseGTID(*e); err == nil && !g.Committed.IsZero() {
			r.delay = max(0, g.Committed.Sub(g.Original).Seconds())
		}
	case binlogevent.TypeMariaGTID:
		r.begin()
	default:
		if e.Type.IsRows() {
			r.rows(e)
		}
	}
	if err != nil {
		r.skipped[skipBody]++
	}
}

// begin forgets what held for the transaction before.
func (g *gather) begin() {
	g.flush()
	g.thread, g.delay = 0, -1
}

// statementText is the text of the statement whose rows follow.
func (r *Reader) statementText(e *binlogevent.Event, text []byte) {
	r.flush()
	r.text, r.textCut = r.kept(e, text)
	r.textual = true
	r.began = int64(e.Seconds) * 1e6
	r.size += int64(e.Length)
}

// kept is what is kept of a statement's text, and how many bytes of it are not.
func (r *Reader) kept(e *binlogevent.Event, text []byte) ([]byte, int) {
	n := min(len(text), maxText)
	missing := int(e.Length) - len(e.Raw)
	if missing > 0 && !e.Inner && r.log.Format().Checksum {
		missing = max(0, missing-binlogevent.ChecksumLen)
	}
	return bytes.Clone(text[:n]), len(text) - n + missing
}

func (r *Reader) queryEvent(e *binlogevent.Event) error {
	r.flush()
	q, err := binlogevent.ParseQueryText(*e, maxUnzipped)
	if err != nil {
		return err
	}
	r.thread = int64(q.Thread)
	switch string(bytes.ToUpper(q.Text[:min(len(q.Text), 8)])) {
	case "BEGIN", "COMMIT", "ROLLBACK":
		return nil // the frame of a transaction
	}
	kept, cut := r.kept(e, q.Text)
	r.queue = append(r.queue, &statement{text: kept, cut: cut, db: q.Schema, began: int64(e.Seconds)*1e6 + int64(q.Moment()), seconds: float64(q.ExecSeconds),
		bytes: int64(e.Length), thread: r.thread, delay: r.delay})
	return nil
}

// rows adds a row event to the statement that is being read, which ends with the flag STMT_END_F.
func (r *Reader) rows(e *binlogevent.Event) {
	id, flags, err := binlogevent.RowsHead(r.log.Format(), *e)
	t := r.tables.Get(id)
	if err != nil || t == nil {
		r.skipped[skipBody]++
		return
	}
	if r.began == 0 {
		r.began = int64(e.Seconds) * 1e6
	}
	s := r.change(t.Schema, t.Name, e.Type.Kind())
	s.bytes += int64(e.Length)
	counted := false
	if t.Err == nil && e.Whole {
		n, err := binlogevent.CountRows(r.log.Format(), *e, &t.Table, maxUnzipped)
		s.rows += n
		counted = err == nil
	}
	if !counted {
		r.skipped[skipRows]++
		s.counted = false
	}
	if flags&binlogevent.RowsStatementEnd != 0 {
		r.flush()
		r.tables.EndStatement()
	}
}

// change is the statement to which rows of a table are added: the one whose text is known, or one for each table and kind.
func (g *gather) change(schema, table string, kind binlogevent.Kind) *statement {
	i := slices.IndexFunc(g.pending, func(s *statement) bool {
		return g.textual || s.db == schema && s.table == table && s.kind == kind
	})
	if i >= 0 {
		return g.pending[i]
	}
	s := &statement{text: g.text, cut: g.textCut, db: schema, table: table, kind: kind, counted: true, began: g.began, thread: g.thread, delay: g.delay}
	g.pending = append(g.pending, s)
	return s
}

// flush gives out the statement that was being read.
func (g *gather) flush() {
	if len(g.pending) > 0 {
		g.pending[0].bytes += g.size
		g.queue = append(g.queue, g.pending...)
		g.pending = g.pending[:0]
	}
	g.text, g.textCut, g.textual, g.began, g.size = nil, 0, false, 0, 0
}
