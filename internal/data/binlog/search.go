package binlog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	event "github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sqltext"
)

// Damage describes what is looked for. What is left at its zero matches everything.
type Damage struct {
	Tables  TableFilter
	Kinds   []string // of delete, update, insert, drop, truncate, alter, create, rename, other
	Rows    int64    // at least so many rows of one transaction
	From    time.Time
	To      time.Time // before then
	GTID    mysql.GTIDSet
	Thread  uint32 // of the connection
	User    string // who ran it, where the log tells
	Text    string // part of the statement's text, in any case
	Images  int    // rows to show of each change, as they were before; negative: all
	Workers int    // logs that are read at the same time; 0: processors
	Columns Columns
	Tell    func(Progress)
}

// Found is a transaction that may be the one.
type Found struct {
	GTID       mysql.GTID  `json:"gtid"`
	File       string      `json:"file"`
	Pos        int64       `json:"position"`
	End        int64       `json:"end_position"`
	Time       time.Time   `json:"time"` // of its commit, as precisely as the log tells
	Thread     uint32      `json:"thread,omitempty"`
	User       string      `json:"user,omitempty"`
	Server     uint32      `json:"server_id"`
	Bytes      int64       `json:"bytes"`
	Rows       int64       `json:"rows"`
	Changes    []Change    `json:"changes"`
	Statements []Statement `json:"statements,omitempty"` // the first ones, where the log tells
	More       int         `json:"more_statements,omitempty"`
	Whole      string      `json:"whole_table,omitempty"` // why it looks as if a WHERE was forgotten
}

// Change is what a transaction did to a table.
type Change struct {
	Table   string   `json:"table"` // schema.table
	Kind    string   `json:"kind"`
	Rows    int64    `json:"rows,omitempty"`
	Columns []string `json:"columns,omitempty"`
	Before  [][]any  `json:"before,omitempty"` // rows as they were: of an INSERT as they became
	After   [][]any  `json:"after,omitempty"`  // of an UPDATE
	matches bool
}

// Statement is a statement's text.
type Statement struct {
	Text  string `json:"text"`
	Where bool   `json:"-"`
}

const (
	maxStatements = 5
	maxTextShown  = 4096
)

// Columns tells what a log does not: the columns of a table as it is now. ok is false when there is no such table, or it has
// another number of columns than the log.
type Columns func(ctx context.Context, schema, table string) (list []event.Column, ok bool)

// SearchResult is what was found.
type SearchResult struct {
	Found        []Found  `json:"found"`
	Transactions int64    `json:"transactions"` // looked at
	Bytes        int64    `json:"bytes"`        // read
	Notes        []string `json:"notes,omitempty"`
}

// Search reads logs and gives the transactions that fit the description: statements that destroy at once first, then by
// rows. Logs are read at the same time; rows are counted, and decoded only where they are shown.
func Search(ctx context.Context, files []File, d Damage) (SearchResult, error) {
	results := make([]SearchResult, len(files))
	var total, read atomic.Int64
	for _, f := range files {
		total.Add(f.Size)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(cmp.Or(d.Workers, runtime.GOMAXPROCS(0)))
	for i, f := range files {
		g.Go(func() error {
			s := searcher{ctx: gctx, d: d, file: f.Name, out: &results[i]}
			s.tell = func(n int64) {
				if now := read.Add(n); d.Tell != nil {
					d.Tell(Progress{Bytes: now, Total: total.Load(), File: f.Name})
				}
			}
			return s.run(f)
		})
	}
	if err := g.Wait(); err != nil {
		return SearchResult{}, err
	}
	all := SearchResult{Found: []Found{}}
	for _, r := range results {
		all.Found = append(all.Found, r.Found...)
		all.Notes = append(all.Notes, r.Notes...)
		all.Transactions += r.Transactions
		all.Bytes += r.Bytes
	}
	slices.SortStableFunc(all.Found, func(a, b Found) int {
		return cmp.Or(cmp.Compare(b.weight(), a.weight()), a.Time.Compare(b.Time))
	})
	return all, nil
}

// weight orders findings: what drops or empties a table destroys more than any number of rows that are logged.
func (f *Found) weight() int64 {
	w := f.Rows
	for _, c := range f.Changes {
		if c.Kind == "drop" || c.Kind == "truncate" {
			w += 1 << 40
		}
	}
	return w
}

// searcher reads one log.
type searcher struct {
	ctx    context.Context
	d      Damage
	file   string
	out    *SearchResult
	tell   func(int64)
	b      boundaries
	format event.Format
	tables map[uint64]*searchTable
	cur    Found
	begin  event.Header
	text   bool // a statement matches Damage.Text
}

type searchTable struct {
	event.Table
	wanted bool
	filled bool // columns were asked for
}

func (s *searcher) run(f File) error {
	in, err := f.Open(s.ctx)
	if err != nil {
		return fmt.Errorf("open %s: %w", f.Name, err)
	}
	defer in.Close()
	r, err := event.NewReader(in, event.Options{})
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	defer r.Close()
	s.tables = map[uint64]*searchTable{}
	told := int64(0)
	for {
		e, err := r.Next()
		if r.Pos()-told > 1<<20 {
			s.tell(r.Pos() - told)
			told = r.Pos()
		}
		switch {
		case errors.Is(err, io.EOF):
			s.out.Bytes = r.Pos()
			s.tell(r.Pos() - told)
			return nil
		case errors.Is(err, event.ErrTorn):
			s.note("%s ends in the middle of an event at %d", f.Name, r.Pos())
			s.out.Bytes = r.Pos()
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", f.Name, err)
		case s.ctx.Err() != nil:
			return context.Cause(s.ctx)
		}
		s.format = r.Format()
		if err := s.event(e); err != nil {
			s.note("%s:%d: %v", f.Name, e.Pos, err)
		}
	}
}

func (s *searcher) note(format string, args ...any) {
	if len(s.out.Notes) < 100 {
		s.out.Notes = append(s.out.Notes, fmt.Sprintf(format, args...))
	}
}

func (s *searcher) event(e event.Event) error {
	began, ended := s.b.event(e)
	if began {
		s.cur = Found{File: s.file, Pos: s.b.pos, GTID: s.b.gtid.ID, Thread: s.b.gtid.Thread, Server: e.ServerID, Time: commitTime(s.b.gtid, e.Header)}
		s.text = false
	}
	var err error
	switch {
	case e.Type == event.TypeFormatDescription:
		clear(s.tables)
	case e.Type == event.TypeTableMap:
		err = s.table(e)
	case e.Type.IsRows():
		err = s.rows(e)
	case e.Type == event.TypeQuery || e.Type == event.TypeQueryZip:
		err = s.query(e)
	case e.Type == event.TypeRowsQuery || e.Type == event.TypeAnnotateRows:
		s.statement(event.StatementText(e))
	}
	if ended {
		s.cur.End = e.End
		s.cur.Bytes = e.End - s.cur.Pos
		s.finish()
	}
	return err
}

func (s *searcher) table(e event.Event) error {
	t, err := event.ParseTable(s.format, e.Body)
	if err != nil && t.Name == "" {
		return err
	}
	s.tables[t.ID] = &searchTable{Table: t, wanted: s.d.Tables == nil || s.d.Tables(t.Schema, t.Name)}
	return err
}

// statement keeps a text.
func (s *searcher) statement(text []byte) {
	if s.d.Text != "" && containsFold(text, s.d.Text) {
		s.text = true
	}
	if len(s.cur.Statements) == maxStatements {
		s.cur.More++
		return
	}
	shown := string(text[:min(len(text), maxTextShown)])
	s.cur.Statements = append(s.cur.Statements, Statement{Text: strings.ToValidUTF8(shown, "?"), Where: hasWhere(text)})
}

func containsFold(text []byte, part string) bool {
	return bytes.Contains(bytes.ToLower(text), bytes.ToLower([]byte(part)))
}

// hasWhere says whether a statement has the word WHERE or LIMIT outside of literals and comments, or is too long to be looked at.
func hasWhere(text []byte) bool {
	if len(text) > 1<<20 {
		return true
	}
	for _, t := range sqltext.Tokens(string(text)) {
		if t.Kind == sqltext.TokenWord && (strings.EqualFold(t.Text, "WHERE") || strings.EqualFold(t.Text, "LIMIT")) {
			return true
		}
	}
	return false
}

func (s *searcher) query(e event.Event) error {
	q, err := event.ParseQuery(e)
	if err != nil {
		return err
	}
	s.cur.Thread = q.Thread
	if q.User != "" {
		s.cur.User = q.User + "@" + q.Host
	}
	if frameOf(q.Text) != frameNone {
		return nil
	}
	kind := kindOf(q.Text)
	if kind == "" {
		return nil // SAVEPOINT and the like
	}
	s.statement(q.Text)
	list := sqltext.Tables(q.Text)
	if len(list) == 0 {
		list = []sqltext.Table{{Name: objectOf(q.Text)}}
	}
	for _, t := range list {
		schema := t.Schema
		if schema == "" {
			schema = q.Schema
		}
		matches := s.d.Tables == nil || s.d.Tables(schema, t.Name) || t.Name == "" && s.d.Tables(schema, "*")
		name := schema + "." + t.Name
		if t.Name == "" {
			name = schema
		}
		c := s.change(name, kind, matches)
		c.matches = matches
	}
	return nil
}

// objectOf is what a statement drops when that is no table: the schema of DROP DATABASE.
func objectOf(text []byte) string {
	t := sqltext.Tokens(string(text[:min(len(text), 1024)]))
	for i := range t {
		if strings.EqualFold(t[i].Text, "DATABASE") || strings.EqualFold(t[i].Text, "SCHEMA") {
			return "*"
		}
	}
	return ""
}

// kindOf is what a statement does; "" for what changes nothing.
func kindOf(text []byte) string {
	switch verb := strings.ToUpper(sqltext.Verb(text)); verb {
	case "DELETE", "UPDATE", "INSERT", "DROP", "TRUNCATE", "ALTER", "CREATE", "RENAME":
		return strings.ToLower(verb)
	case "REPLACE", "LOAD":
		return "insert"
	case "SAVEPOINT", "ROLLBACK", "XA", "RELEASE", "COMMIT", "BEGIN":
		return ""
	default:
		return "other"
	}
}

// change is the entry of a table and a kind.
func (s *searcher) change(table, kind string, matches bool) *Change {
	for i := range s.cur.Changes {
		if c := &s.cur.Changes[i]; c.Table == table && c.Kind == kind {
			return c
		}
	}
	s.cur.Changes = append(s.cur.Changes, Change{Table: table, Kind: kind, matches: matches})
	return &s.cur.Changes[len(s.cur.Changes)-1]
}

func (s *searcher) rows(e event.Event) error {
	id, _, err := event.RowsHead(s.format, e)
	if err != nil {
		return err
	}
	t := s.tables[id]
	if t == nil {
		if id == event.Dummy {
			return nil
		}
		return errors.New("rows of a table that was not named")
	}
	kind := strings.ToLower(e.Type.Kind().String())
	c := s.change(t.Schema+"."+t.Name, kind, t.wanted)
	if s.d.Images != 0 && t.wanted && s.wants(kind) && (s.d.Images < 0 || len(c.Before) < s.d.Images) {
		s.images(e, t, c)
	}
	r, err := event.OpenRows(s.format, e, &t.Table)
	if err != nil {
		return err
	}
	n, err := r.Count()
	c.Rows += n
	s.cur.Rows += n
	return err
}

// images decodes the first rows.
func (s *searcher) images(e event.Event, t *searchTable, c *Change) {
	if !t.filled {
		t.filled = true
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
	r, err := event.OpenRows(s.format, e, &t.Table)
	for err == nil && (s.d.Images < 0 || len(c.Before) < s.d.Images) {
		var before, after []event.Value
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
func shown(cols []event.Column, row []event.Value) []any {
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

// FillColumns puts in what a log does not tell and the table, as it is now, does.
func FillColumns(ctx context.Context, t *event.Table, columns Columns) {
	if columns == nil {
		return
	}
	now, ok := columns(ctx, t.Schema, t.Name)
	if !ok || len(now) != len(t.Columns) {
		return
	}
	for i := range t.Columns {
		if t.Named && !strings.EqualFold(t.Columns[i].Name, now[i].Name) {
			return // columns were changed since
		}
	}
	for i := range t.Columns {
		c, n := &t.Columns[i], now[i]
		if !c.Known {
			c.Known, c.Unsigned = true, n.Unsigned
		}
		if c.Collation == 0 {
			c.Collation, c.Binary = n.Collation, n.Binary
		}
		c.Name, c.Generated, c.Declared = n.Name, n.Generated, n.Declared
		c.Key = n.Key
	}
	t.Named = true
}

func (s *searcher) wants(kind string) bool {
	return len(s.d.Kinds) == 0 || slices.Contains(s.d.Kinds, kind)
}

// finish decides about a transaction.
func (s *searcher) finish() {
	s.out.Transactions++
	f, d := &s.cur, s.d
	switch {
	case !d.From.IsZero() && f.Time.Before(d.From), !d.To.IsZero() && !f.Time.Before(d.To):
		return
	case !d.GTID.Empty() && !d.GTID.Contains(f.GTID):
		return
	case d.Thread != 0 && f.Thread != d.Thread, d.User != "" && !strings.HasPrefix(f.User, d.User), d.Text != "" && !s.text:
		return
	}
	var rows int64
	hit := len(d.Kinds) == 0 && d.Tables == nil && d.Rows == 0
	for _, c := range f.Changes {
		if c.matches && s.wants(c.Kind) {
			hit = true
			rows += c.Rows
		}
	}
	if !hit || rows < d.Rows && !f.destroys() {
		return
	}
	f.Whole = f.whole()
	s.out.Found = append(s.out.Found, *f)
}

// destroys says whether rows went that the log does not count.
func (f *Found) destroys() bool {
	return slices.ContainsFunc(f.Changes, func(c Change) bool { return c.matches && (c.Kind == "drop" || c.Kind == "truncate") })
}

// whole says why a transaction looks as if a WHERE was forgotten.
func (f *Found) whole() string {
	for _, st := range f.Statements {
		if verb := strings.ToUpper(sqltext.Verb([]byte(st.Text))); (verb == "DELETE" || verb == "UPDATE") && !st.Where && len(st.Text) < maxTextShown {
			return verb + " without WHERE"
		}
	}
	return ""
}
