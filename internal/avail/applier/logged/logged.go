// Package logged reads binary logs of both flavours as the transactions that package applier studies: what orders them, which tables and rows
// they change, and how much that is. Values are not kept, but for the keys of rows that many transactions change.
package logged

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/applier"
	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sqltext"
)

// Options say how logs are read.
type Options struct {
	// Fill, if set, adds to a table what its log does not have: which columns are its key.
	Fill func(*binlogevent.Table)
	// Commit and Row are what a transaction takes, and each of its rows; see applier.Options.
	Commit, Row time.Duration
	// From leaves out transactions that were committed before.
	From time.Time
	// Tell, if set, hears how many more bytes were read.
	Tell func(bytes int64)
}

// maxBody is how much of an event is looked at, and maxUnzipped how much the rows of a compressed one may become.
const (
	maxBody     = 16 << 20
	maxUnzipped = 4 * maxBody
)

// Reader reads one log after the other into a study.
type Reader struct {
	o      Options
	study  *applier.Study
	seed   maphash.Seed
	hot    hotKeys
	server mysql.Server
	names  map[applier.Table]bool // tables of which the key is a guess
	early  int64

	notes      []string
	incomplete bool

	// of the log that is read
	file   string
	format binlogevent.Format
	b      binlogevent.Boundaries
	tables binlogevent.Tables[userTable]
	t      applier.Transaction
	hash   maphash.Hash
	size   int64 // bytes of the transaction's events, of those within a compressed one as they are uncompressed
	fresh  bool
}

// userTable is what is known about a table besides.
type userTable struct {
	name applier.Table
	key  []int // columns of its key, in their order
	none bool  // it has none
	asis bool  // the key is not known
}

// New makes a reader.
func New(o Options) *Reader {
	return &Reader{o: o, seed: maphash.MakeSeed(), names: map[applier.Table]bool{}, hot: hotKeys{counts: map[uint64]int{}, names: map[uint64]hotName{}}}
}

// begun is the study, which begins with the first log: what wrote it decides what can be tried.
func (r *Reader) begun() *applier.Study {
	if r.study == nil {
		r.study = applier.New(applier.Options{WriteSet: len(r.server.TrackWriteSets()) > 0, Key: r.hot.name, Commit: r.o.Commit, Row: r.o.Row})
	}
	return r.study
}

// Server is what wrote the first log; it is known once that was opened.
func (r *Reader) Server() mysql.Server { return r.server }

// Result is what was read.
type Result struct {
	applier.Report
	Server     string   `json:"server"`       // the version of what wrote the logs
	Before     int64    `json:"before"`       // transactions left out, because they are older than asked for
	Incomplete bool     `json:"incomplete"`   // not everything could be read: Notes say what is missing
	Guessed    []string `json:"keys_guessed"` // tables whose first column was taken for their key, because the log does not name it
	Notes      []string `json:"notes"`
}

// Result ends the study.
func (r *Reader) Result() Result {
	res := Result{Report: r.begun().Report(), Server: r.server.String(), Before: r.early, Incomplete: r.incomplete, Guessed: []string{}, Notes: slices.Clone(r.notes)}
	for t, guessed := range r.names {
		if guessed {
			res.Guessed = append(res.Guessed, t.String())
		}
	}
	slices.Sort(res.Guessed)
	if res.Notes == nil {
		res.Notes = []string{}
	}
	return res
}

func (r *Reader) note(format string, args ...any) {
	const most = 100
	if len(r.notes) < most {
		r.notes = append(r.notes, fmt.Sprintf(format, args...))
	}
}

// Read reads a log. last: none follows, so it may still be written. What cannot be read is noted, and the rest counts.
func (r *Reader) Read(ctx context.Context, file string, in io.Reader, last bool) error {
	r.file, r.b, r.fresh = file, binlogevent.Boundaries{}, false
	r.tables.Clear()
	log, err := binlogevent.NewReader(in, binlogevent.Options{MaxBody: maxBody, Skip: unread, Lost: func(err error, bytes int64) { r.lost(err, bytes, last) }})
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	defer log.Close()
	told, begun := int64(0), false
	for {
		e, err := log.Next()
		if now := log.Pos(); r.o.Tell != nil && (now-told > 1<<20 || err != nil) {
			r.o.Tell(now - told)
			told = now
		}
		switch {
		case errors.Is(err, io.EOF):
			if r.b.Open && r.fresh {
				r.cut(last, "%s: it ends within the transaction that begins at %d", file, r.b.Pos)
			}
			return nil
		case errors.Is(err, binlogevent.ErrEncrypted):
			return fmt.Errorf("%s: %w", file, err)
		case err != nil:
			r.incomplete = true
			r.note("%s: %v: the rest of it was not read", file, err)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		r.format = log.Format()
		if r.server.Version == "" {
			r.server.Server = r.format.Server()
		}
		if !begun {
			begun = true
			r.begun().NextLog()
		}
		if err := r.event(&e); err != nil {
			r.incomplete = true
			r.note("%s:%d: %v", file, e.Pos, err)
		}
	}
}

// cut notes a log that ends too early, which the last one may while it is written.
func (r *Reader) cut(last bool, format string, args ...any) {
	if last {
		r.note(format+"; it is still written, or was cut: that transaction is left out", args...)
		return
	}
	r.incomplete = true
	r.note(format+", although another log follows", args...)
}

func (r *Reader) lost(err error, bytes int64, last bool) {
	switch {
	case errors.Is(err, binlogevent.ErrTorn):
		r.fresh = false
		r.cut(last, "%s: %v", r.file, err)
	case bytes > 0:
		r.incomplete = true
		r.note("%s: %v: %d bytes after it were not read", r.file, err, bytes)
	default:
		r.incomplete = true
		r.note("%s: %v: it was left out", r.file, err)
	}
}

// unread says of which events no more than the header is wanted.
func unread(h binlogevent.Header) bool {
	switch h.Type {
	case binlogevent.TypeQuery, binlogevent.TypeQueryZip, binlogevent.TypeTableMap, binlogevent.TypeGTID, binlogevent.TypeAnonymousGTID, binlogevent.TypeGTIDTagged,
		binlogevent.TypeMariaGTID, binlogevent.TypeXAPrepare:
		return false
	}
	return !h.Type.IsRows()
}

func (r *Reader) event(e *binlogevent.Event) error {
	began, ended := r.b.Next(*e)
	if began {
		r.begin(e)
	}
	var err error
	if r.fresh {
		r.size += int64(e.Length)
		switch {
		case e.Type == binlogevent.TypeQuery || e.Type == binlogevent.TypeQueryZip:
			err = r.query(e)
		case e.Type == binlogevent.TypeTableMap:
			err = r.table(e)
		case e.Type.IsRows():
			if err = r.rows(e); err != nil {
				r.t.Unkeyed = true
			}
		}
	}
	if ended && r.fresh {
		r.t.Bytes, r.fresh = r.size, false
		if !r.o.From.IsZero() && r.t.Time.Before(r.o.From) {
			r.early++
			return err
		}
		r.begun().Add(&r.t)
	}
	return err
}

// begin begins a transaction.
func (r *Reader) begin(e *binlogevent.Event) {
	g := r.b.GTID
	at := g.Committed
	if at.IsZero() {
		at = time.Unix(int64(e.Seconds), 0).UTC()
	}
	r.size, r.fresh = 0, true
	r.t = applier.Transaction{GTID: g.ID, File: r.file, Pos: r.b.Pos, Time: at, LastCommitted: g.LastCommitted, Sequence: g.Sequence,
		ByGroup: e.Type == binlogevent.TypeMariaGTID, Group: g.CommitID, Domain: g.ID.Domain, Transactional: g.Transactional, Waited: g.Waited,
		Serial: g.Serial || g.XA, DDL: g.DDL, Tables: r.t.Tables[:0], Keys: r.t.Keys[:0]}
}

// query takes a statement that is logged as text.
func (r *Reader) query(e *binlogevent.Event) error {
	q, err := binlogevent.ParseQueryText(*e, maxUnzipped)
	if err != nil {
		r.t.Statements = true
		return err
	}
	if binlogevent.FrameOf(q.Text) != binlogevent.FrameNone {
		return nil
	}
	verb := sqltext.Verb(q.Text)
	switch verb {
	case "SAVEPOINT", "ROLLBACK", "RELEASE", "XA":
		return nil
	}
	r.t.Statements = true
	if q.ExecSeconds > 0 { // seconds begun, not passed: 1 may be a millisecond before the clock struck and one after
		r.t.Seconds += float64(q.ExecSeconds - 1)
	}
	if change, ok := (sqltext.Dialect{}).ReadChange(string(q.Text)); ok {
		for _, n := range slices.Concat(change.Names, change.To) {
			switch {
			case change.InSchema():
				r.touch(applier.Table{Schema: cmp.Or(n.Schema, q.Schema), Name: n.Name})
			case change.Kind == "DATABASE":
				r.touch(applier.Table{Schema: n.Name})
			}
		}
	} else if q.Schema != "" {
		r.touch(applier.Table{Schema: q.Schema})
	}
	switch verb {
	case "INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "CALL", "WITH", "SET":
	default:
		r.t.DDL = true
	}
	return nil
}

func (r *Reader) touch(t applier.Table) {
	if !slices.Contains(r.t.Tables, t) {
		r.t.Tables = append(r.t.Tables, t)
	}
}

func (r *Reader) table(e *binlogevent.Event) error {
	t, fresh, err := r.tables.Map(r.format, e.Body)
	if err != nil {
		return err
	}
	if !fresh {
		return nil
	}
	t.User.name = applier.Table{Schema: strings.Clone(t.Schema), Name: strings.Clone(t.Name)}
	if t.Err != nil {
		return t.Err
	}
	if r.o.Fill != nil {
		r.o.Fill(&t.Table)
	}
	for i := range t.Columns {
		if t.Columns[i].Key {
			t.User.key = append(t.User.key, i)
		}
	}
	switch {
	case len(t.User.key) > 0:
	case t.Named:
		t.User.none = true
	case len(t.Columns) > 0:
		t.User.asis, t.User.key = true, []int{0}
	}
	return nil
}

// rows takes the keys of rows that were changed.
func (r *Reader) rows(e *binlogevent.Event) error {
	id, flags, err := binlogevent.RowsHead(r.format, *e)
	if err != nil {
		return err
	}
	if flags&binlogevent.RowsStatementEnd != 0 {
		defer r.tables.EndStatement()
	}
	t := r.tables.Get(id)
	switch {
	case t == nil && id == binlogevent.Dummy:
		return nil
	case t == nil:
		return errors.New("rows of a table that was not named")
	}
	r.touch(t.User.name)
	if t.Err != nil {
		return nil // it was said when the table was named
	}
	if !e.Whole {
		r.t.Unkeyed = true
		r.note("%s:%d: rows of %s in one event of %d bytes were not counted", r.file, e.Pos, t.User.name, e.Length)
		return nil
	}
	if t.User.none || len(r.t.Keys) >= applier.MostKeys {
		r.t.Unkeyed = true
		n, err := binlogevent.CountRows(r.format, *e, &t.Table, maxUnzipped)
		r.t.Rows += n
		return err
	}
	if t.User.asis {
		r.names[t.User.name] = true
	}
	rows, err := binlogevent.OpenRows(r.format, *e, &t.Table)
	if err != nil {
		return err
	}
	for {
		before, after, more, err := rows.Next()
		if err != nil || !more {
			return err
		}
		r.t.Rows++
		r.key(t, before)
		r.key(t, after)
	}
}

// key adds the key of a row's image, unless the transaction has it.
func (r *Reader) key(t *binlogevent.Mapped[userTable], image []binlogevent.Value) {
	if image == nil || len(r.t.Keys) >= applier.MostKeys {
		return
	}
	r.hash.SetSeed(r.seed)
	r.hash.WriteString(t.User.name.Schema)
	r.hash.WriteByte(0)
	r.hash.WriteString(t.User.name.Name)
	known := false
	for _, i := range t.User.key {
		v := image[i]
		if !v.Present {
			continue
		}
		known = true
		if v.Null {
			r.hash.WriteByte(1)
			continue
		}
		var n [5]byte
		n[0], n[1], n[2], n[3], n[4] = 2, byte(len(v.Raw)), byte(len(v.Raw)>>8), byte(len(v.Raw)>>16), byte(len(v.Raw)>>24)
		r.hash.Write(n[:])
		r.hash.Write(v.Raw)
	}
	if !known {
		return // of an update that leaves the key alone, the image after it may not have it
	}
	k := r.hash.Sum64()
	const near = 4 // the images of an update follow each other
	if from := max(0, len(r.t.Keys)-near); slices.Contains(r.t.Keys[from:], k) {
		return
	}
	r.t.Keys = append(r.t.Keys, k)
	if r.hot.again(k) {
		r.hot.names[k] = hotName{t.User.name, called(t, image)}
	}
}

// called is how a row's key is written: id=7, or @1=7 where the log does not name columns.
func called(t *binlogevent.Mapped[userTable], image []binlogevent.Value) string {
	var parts []string
	for _, i := range t.User.key {
		name := t.Columns[i].Name
		if name == "" {
			name = fmt.Sprintf("@%d", i+1)
		}
		value := "NULL"
		if v := image[i]; v.Present && !v.Null {
			text, err := t.Columns[i].Shown(v)
			if err != nil {
				text = fmt.Sprintf("X'%X'", v.Raw[:min(len(v.Raw), 64)])
			}
			value = fmt.Sprint(text)
		}
		parts = append(parts, name+"="+value)
	}
	return strings.Join(parts, ", ")
}

// hotKeys finds the keys that occur most in bounded memory (Misra and Gries, 1982): whatever makes up more than 1/mostHot of all is among them.
type hotKeys struct {
	counts map[uint64]int
	names  map[uint64]hotName
}

type hotName struct {
	table applier.Table
	text  string
}

const (
	mostHot   = 4096
	mostNamed = 4096
	fewest    = 3 // occurrences from which on a key is named
)

// again counts a key, and reports whether it should be named now.
func (h *hotKeys) again(k uint64) bool {
	n, ok := h.counts[k]
	switch {
	case ok:
		h.counts[k] = n + 1
		_, named := h.names[k]
		return n+1 >= fewest && !named && h.room()
	case len(h.counts) < mostHot:
		h.counts[k] = 1
	default:
		for x, n := range h.counts {
			if n == 1 {
				delete(h.counts, x)
			} else {
				h.counts[x] = n - 1
			}
		}
	}
	return false
}

// room makes room for another name: those that do not occur often any more go.
func (h *hotKeys) room() bool {
	if len(h.names) < mostNamed {
		return true
	}
	for k := range h.names {
		if h.counts[k] < fewest {
			delete(h.names, k)
		}
	}
	return len(h.names) < mostNamed
}

func (h *hotKeys) name(k uint64) (applier.Table, string) {
	n := h.names[k]
	return n.table, n.text
}
