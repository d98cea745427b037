package binlog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sqltext"
)

// searcher reads one log.
type searcher struct {
	ctx    context.Context
	d      *Damage
	file   string
	hole   bool // it was not read to its end
	last   bool // no log follows it: it may still be written
	before mysql.GTIDSet
	out    SearchResult
	tell   func(int64)
	b      binlogevent.Boundaries
	format binlogevent.Format
	tables binlogevent.Tables[searchTable]
	states map[string]*tableState // of wanted tables
	ignore bool                   // the transaction does not fit, no matter what it did
	cur    Found
	texts  [][]byte // the first statements
	text   bool     // a statement matches Damage.Text
}

type searchTable struct {
	name   string
	state  *tableState // nil of tables that are not wanted
	filled bool        // columns were asked for
}

type mappedTable = binlogevent.Mapped[searchTable]

func (s *searcher) run(f File) error {
	in, err := f.Open(s.ctx)
	if err != nil {
		return fmt.Errorf("open %s: %w", f.Name, err)
	}
	defer in.Close()
	r, err := binlogevent.NewReader(in, binlogevent.Options{Skip: s.unread, Lost: s.lost})
	if errors.Is(err, ErrCut) {
		s.missed("%s: %v: none of it was searched", f.Name, err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	defer r.Close()
	s.states = map[string]*tableState{}
	told := int64(0)
	for {
		e, err := r.Next()
		if r.Pos()-told > 1<<20 {
			s.tell(r.Pos() - told)
			told = r.Pos()
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, ErrCut):
			s.out.Bytes = r.Pos()
			s.tell(r.Pos() - told)
			if r.Pos() < f.Least {
				err = f.short(r.Pos())
			}
			if !errors.Is(err, io.EOF) {
				s.missed("%s: %v: the rest was not searched", f.Name, err)
			}
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", f.Name, err)
		case s.ctx.Err() != nil:
			return context.Cause(s.ctx)
		}
		s.format = r.Format()
		if err := s.event(&e); err != nil {
			s.missed("%s:%d: %v", f.Name, e.Pos, err)
		}
	}
}

// lost notes what cannot be read: a damaged log is searched as far as it goes, because what is looked for may be in the rest.
func (s *searcher) lost(err error, bytes int64) {
	s.hole = true
	switch {
	case errors.Is(err, binlogevent.ErrTorn) && s.last: // it may still be written
		s.note("%s: %v", s.file, err)
	case errors.Is(err, binlogevent.ErrTorn):
		s.missed("%s: %v, although another log follows", s.file, err)
	case bytes > 0:
		s.missed("%s: %v: %d bytes after it were not searched", s.file, err, bytes)
	default:
		s.missed("%s: %v: it was skipped, and what it did is not in the answer", s.file, err)
	}
}

// missed notes what should have been searched and was not.
func (s *searcher) missed(format string, args ...any) {
	s.hole, s.out.Incomplete = true, true
	s.note(format, args...)
}

func (s *searcher) note(format string, args ...any) {
	if len(s.out.Notes) < 100 {
		s.out.Notes = append(s.out.Notes, fmt.Sprintf(format, args...))
	}
}

// unread says of which events no more than the header is wanted.
func (s *searcher) unread(h binlogevent.Header) bool {
	switch h.Type {
	case binlogevent.TypeTableMap, binlogevent.TypeRowsQuery, binlogevent.TypeAnnotateRows:
		return s.ignore
	case binlogevent.TypeQuery, binlogevent.TypeQueryZip, binlogevent.TypeGTID, binlogevent.TypeAnonymousGTID, binlogevent.TypeGTIDTagged, binlogevent.TypeMariaGTID,
		binlogevent.TypePreviousGTIDs, binlogevent.TypeMariaGTIDList, binlogevent.TypeXAPrepare:
		return false
	}
	return s.ignore || !h.Type.IsRows()
}

func (s *searcher) event(e *binlogevent.Event) error {
	began, ended := s.b.Next(*e)
	if began {
		s.cur = Found{File: s.file, Pos: s.b.Pos, GTID: s.b.GTID.ID, Thread: s.b.GTID.Thread, Server: e.ServerID, Time: commitTime(s.b.GTID, e.Seconds), Changes: s.cur.Changes[:0]}
		s.text, s.texts = false, s.texts[:0]
		s.ignore = (s.d.Counts == nil || s.d.Tables == nil) && !s.d.may(&s.cur)
		s.hole = s.hole || s.ignore
	}
	var err error
	switch {
	case e.Type == binlogevent.TypeFormatDescription:
		s.tables.Clear()
	case e.Type == binlogevent.TypePreviousGTIDs || e.Type == binlogevent.TypeMariaGTIDList:
		s.before, err = binlogevent.ParseGTIDs(*e)
	case s.ignore:
	case e.Type == binlogevent.TypeTableMap:
		err = s.table(e)
	case e.Type.IsRows():
		err = s.rows(e)
	case e.Type == binlogevent.TypeQuery || e.Type == binlogevent.TypeQueryZip:
		err = s.query(e)
	case e.Type == binlogevent.TypeRowsQuery || e.Type == binlogevent.TypeAnnotateRows:
		s.statement(binlogevent.StatementText(*e))
	case e.Type == binlogevent.TypeXAPrepare && len(e.Body) > 0 && e.Body[0] == 0: // else it is committed in one phase
		s.statement([]byte("XA PREPARE"))
	}
	if ended {
		s.cur.End = e.End
		s.cur.Bytes = e.End - s.cur.Pos
		s.finish()
	}
	return err
}

// may reports whether a transaction fits by what is known when it begins.
func (d *Damage) may(f *Found) bool {
	switch {
	case !d.From.IsZero() && f.Time.Before(d.From), !d.To.IsZero() && !f.Time.Before(d.To):
		return false
	case !d.GTID.Empty() && !d.GTID.Contains(f.GTID), d.Wanted != nil && !d.Wanted(f.GTID):
		return false
	}
	return true
}

func (s *searcher) table(e *binlogevent.Event) error {
	t, fresh, err := s.tables.Map(s.format, e.Body)
	if err != nil || !fresh {
		return err
	}
	t.User.name = t.Schema + "." + t.Name
	if s.wanted(t.Schema, t.Name) {
		t.User.state = s.state(t.Schema, t.Name)
	}
	return t.Err
}

// state is what the log says about a wanted table.
func (s *searcher) state(schema, table string) *tableState {
	name := schema + "." + table
	st := s.states[name]
	if st == nil {
		st = &tableState{schema: schema, table: table}
		if s.d.Counts != nil && s.d.Tables != nil {
			st.counts = s.d.Counts(s.ctx, schema, table)
			st.counts = st.counts[:min(len(st.counts), maxCounts)]
		}
		s.states[name] = st
	}
	return st
}

// statement keeps a text.
func (s *searcher) statement(text []byte) {
	if s.d.Text != "" && containsFold(text, s.d.Text) {
		s.text = true
	}
	if len(s.texts) == maxStatements {
		s.cur.More++
		return
	}
	n := len(s.texts)
	if n < cap(s.texts) {
		s.texts = s.texts[:n+1]
	} else {
		s.texts = append(s.texts, nil)
	}
	s.texts[n] = append(s.texts[n][:0], text[:min(len(text), maxLooked+1)]...)
}

func containsFold(text []byte, part string) bool {
	return bytes.Contains(bytes.ToLower(text), bytes.ToLower([]byte(part)))
}

// maxLooked is how long a statement may be that is looked at for a WHERE.
const maxLooked = 1 << 20

// hasWhere reports whether a statement has the word WHERE or LIMIT outside of literals and comments, or is too long to be looked at.
func hasWhere(text []byte) bool {
	if len(text) > maxLooked {
		return true
	}
	for _, t := range sqltext.Tokens(string(text)) {
		if t.Kind == sqltext.TokenWord && (strings.EqualFold(t.Text, "WHERE") || strings.EqualFold(t.Text, "LIMIT")) {
			return true
		}
	}
	return false
}

func (s *searcher) query(e *binlogevent.Event) error {
	q, err := binlogevent.ParseQuery(*e)
	if err != nil {
		return err
	}
	s.cur.Thread = q.Thread
	if q.User != "" {
		s.cur.User = q.User + "@" + q.Host
	}
	if binlogevent.FrameOf(q.Text) != binlogevent.FrameNone {
		if sqltext.Verb(q.Text) == "XA" && len(s.cur.Changes) == 0 && binlogevent.FrameOf(q.Text) == binlogevent.FrameEnd {
			s.statement(q.Text) // of what another transaction prepared: nothing else tells it from an empty one
		}
		return nil
	}
	change, ok := dialectOf(q).ReadChange(string(q.Text))
	if !ok {
		switch sqltext.Verb(q.Text) {
		case "SAVEPOINT", "ROLLBACK", "XA", "RELEASE", "COMMIT", "BEGIN": // they change nothing
		default:
			s.statement(q.Text)
			s.other(q)
		}
		return nil
	}
	s.statement(q.Text)
	kind, effect := strings.ToLower(change.Verb), effectOf(change)
	if len(change.Names) == 0 {
		change.Names = make([]sqltext.Ident, 1)
		if change.Kind == "DATABASE" { // ALTER DATABASE, of the session's
			change.Names[0].Name = q.Schema
		}
	}
	for i, n := range change.Names {
		name, matches := s.object(change, n, q.Schema)
		c := s.change(name, kind, nil)
		c.matches = matches || change.On.Name != "" && s.wanted(cmp.Or(change.On.Schema, q.Schema), change.On.Name)
		c.emptied = change.Kind == "DATABASE" && kind == "drop" || change.Empties || effect == effectReset && (kind != "create" || change.OrReplace)
		if c.Object = strings.ToLower(change.Kind); change.Temporary {
			c.Object = "temporary table"
		} else if c.Object == "table" {
			c.Object = ""
		}
		var to sqltext.Ident
		if i < len(change.To) {
			var wanted bool
			to = change.To[i]
			c.To, wanted = s.object(change, to, q.Schema)
			c.matches = c.matches || wanted
		}
		if change.Kind != "TABLE" || change.Temporary {
			continue
		}
		if schema := cmp.Or(n.Schema, q.Schema); s.wanted(schema, n.Name) {
			c.state, c.effect = s.state(schema, n.Name), max(c.effect, effect)
		}
		if schema := cmp.Or(to.Schema, q.Schema); c.To != "" && s.wanted(schema, to.Name) {
			c.renamed = s.state(schema, to.Name)
		}
	}
	return nil
}

// object is the name of something that a statement changes, and whether it is wanted.
func (s *searcher) object(change sqltext.Change, n sqltext.Ident, schema string) (name string, matches bool) {
	switch {
	case change.InSchema():
		schema = cmp.Or(n.Schema, schema)
		return schema + "." + n.Name, s.wanted(schema, n.Name)
	case change.Kind == "DATABASE":
		return n.Name, s.wanted(n.Name, "*") || s.d.Schemas != nil && s.d.Schemas(n.Name)
	}
	return n.Name, s.d.Tables == nil
}

func (s *searcher) wanted(schema, table string) bool {
	return s.d.Tables == nil || s.d.Tables(schema, table)
}

// other notes a statement that is neither about definitions nor rows, such as GRANT or OPTIMIZE TABLE.
func (s *searcher) other(q binlogevent.Query) {
	list := namedTables(q)
	for _, t := range list {
		c := s.change(t.Schema+"."+t.Name, "other", nil)
		c.matches = s.wanted(t.Schema, t.Name)
	}
	if len(list) == 0 {
		s.change("", "other", nil).matches = s.wanted(q.Schema, "*")
	}
}

// change is the entry of a table and a kind.
func (s *searcher) change(table, kind string, state *tableState) *Change {
	for i := range s.cur.Changes {
		if c := &s.cur.Changes[i]; c.Kind == kind && c.Table == table && c.Object == "" {
			return c
		}
	}
	s.cur.Changes = append(s.cur.Changes, Change{Table: table, Kind: kind, matches: state != nil, state: state})
	return &s.cur.Changes[len(s.cur.Changes)-1]
}

// rowKinds are kinds of rows as changes name them.
var rowKinds = [...]string{binlogevent.Insert: "insert", binlogevent.Update: "update", binlogevent.Delete: "delete"}

func (s *searcher) rows(e *binlogevent.Event) error {
	id, _, err := binlogevent.RowsHead(s.format, *e)
	if err != nil {
		return err
	}
	t := s.tables.Get(id)
	if t == nil {
		if id == binlogevent.Dummy {
			return nil
		}
		return errors.New("rows of a table that was not named")
	}
	if t.Err != nil {
		return t.Err
	}
	kind := rowKinds[e.Type.Kind()]
	c := s.change(t.User.name, kind, t.User.state)
	if s.d.Images != 0 && c.matches && s.wants(kind) && (s.d.Images < 0 || len(c.Before) < s.d.Images) && s.d.may(&s.cur) {
		s.images(*e, t, c)
	}
	n, err := binlogevent.CountRows(s.format, *e, &t.Table, maxUnzipped)
	c.Rows += n
	s.cur.Rows += n
	return err
}

// maxUnzipped is how much the rows of one compressed event may become.
const maxUnzipped = 1 << 30

// images decodes the first rows.
func (s *searcher) images(e binlogevent.Event, t *mappedTable, c *Change) {
	if !t.User.filled {
		t.User.filled = true
		FillColumns(s.ctx, &t.Table, s.d.Columns)
	}
	if c.Columns == nil {
		for i, col := range t.Columns {
			name := col.Name
			if name == "" {
				name = fmt.Sprintf("@%d", i+1)
			}
			c.Columns = append(c.Columns, name)
		}
	}
	r, err := binlogevent.OpenRows(s.format, e, &t.Table)
	for err == nil && (s.d.Images < 0 || len(c.Before) < s.d.Images) {
		var before, after []binlogevent.Value
		var more bool
		if before, after, more, err = r.Next(); err != nil || !more {
			break
		}
		if before == nil {
			before, after = after, nil
		}
		c.Before = append(c.Before, shown(t.Columns, before))
		if after != nil {
			c.After = append(c.After, shown(t.Columns, after))
		}
	}
}

// shown is a row for people: literals, nil for NULL, "" for what the image has not.
func shown(cols []binlogevent.Column, row []binlogevent.Value) []any {
	out := make([]any, len(row))
	for i, v := range row {
		switch {
		case !v.Present:
			out[i] = ""
		case v.Null:
		default:
			text, err := cols[i].Shown(v)
			if err != nil {
				text = fmt.Sprintf("(%v: X'%X')", err, v.Raw[:min(len(v.Raw), 64)])
			}
			out[i] = text
		}
	}
	return out
}

func (s *searcher) wants(kind string) bool {
	return len(s.d.Kinds) == 0 || slices.Contains(s.d.Kinds, kind)
}

// finish decides about a transaction.
func (s *searcher) finish() {
	s.out.Transactions++
	if s.ignore {
		return
	}
	f, d := &s.cur, s.d
	if d.may(f) && (d.Thread == 0 || f.Thread == d.Thread) && (d.User == "" || strings.HasPrefix(f.User, d.User)) && (d.Text == "" || s.text) && s.fits() {
		found := *f
		found.Changes = slices.Clone(f.Changes)
		for i := range found.Changes {
			if c := &found.Changes[i]; c.state != nil {
				c.was = c.state.tally
			}
		}
		s.keepTexts(&found)
		s.keep(found)
	}
	for i := range f.Changes {
		c := &f.Changes[i]
		if c.state != nil {
			c.state.add(f.GTID, c)
		}
		if c.renamed != nil {
			c.renamed.odd = true // it has the rows of another one
		}
	}
}

// keep keeps what was found. Of more than are wanted the worst stay: an old log may have millions of transactions.
func (s *searcher) keep(f Found) {
	s.out.Fit++
	s.out.Found = append(s.out.Found, f)
	if n := s.d.Limit; n > 0 && len(s.out.Found) >= 2*n+100 {
		sortFound(s.out.Found)
		clear(s.out.Found[n:])
		s.out.Found = s.out.Found[:n]
	}
}

// fits reports whether the changes of the transaction are those that are looked for.
func (s *searcher) fits() bool {
	d, rows := s.d, int64(0)
	hit := len(d.Kinds) == 0 && d.Tables == nil && d.Rows == 0
	for i := range s.cur.Changes {
		if c := &s.cur.Changes[i]; c.matches && s.wants(c.Kind) {
			hit = true
			rows += c.Rows
		}
	}
	return hit && (rows >= d.Rows || s.cur.destroys())
}

// keepTexts puts in the statements, and what they say by themselves.
func (s *searcher) keepTexts(f *Found) {
	for _, text := range s.texts {
		verb := sqltext.Verb(text)
		if verb == "SET" { // SET STATEMENT … FOR
			change, _ := sqltext.Dialect{}.ReadChange(string(text))
			verb = change.Verb
		}
		if (verb == "DELETE" || verb == "UPDATE") && f.Whole == "" && !hasWhere(text) {
			f.Whole, f.Sure = verb+" without WHERE", Certain
		}
		shown := string(text[:min(len(text), maxTextShown)])
		f.Statements = append(f.Statements, Statement{Text: strings.ToValidUTF8(shown, "?")})
	}
}

// destroys reports whether rows were removed that the log does not count.
func (f *Found) destroys() bool {
	return slices.ContainsFunc(f.Changes, func(c Change) bool { return c.matches && c.emptied })
}
