package load_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/store/blob"
)

func target(t testing.TB, n *sandbox.Node) mysql.Target {
	t.Helper()
	to, err := mysql.ParseTarget(n.DSN)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func stream(t testing.TB, n *sandbox.Node) *mysql.Stream {
	t.Helper()
	s, err := target(t, n).ConnectStream(t.Context(), mysql.StreamOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func exec(t testing.TB, s *mysql.Stream, statements ...string) {
	t.Helper()
	for _, q := range statements {
		if err := s.Exec(t.Context(), q); err != nil {
			t.Fatalf("%.2000s: %v", q, err)
		}
	}
}

// ask returns all values of a query's rows in one text.
func ask(t testing.TB, s *mysql.Stream, query string) string {
	t.Helper()
	var b strings.Builder
	err := s.Query(t.Context(), query, func(row [][]byte) error {
		for _, v := range row {
			b.Write(v)
			b.WriteByte('|')
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return b.String()
}

func emptyRepo(t testing.TB) (*repo.Repo, string) {
	t.Helper()
	dir := t.TempDir()
	place, err := blob.Open(t.Context(), dir, blob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { place.Close() })
	r, err := repo.CreateWith(t.Context(), repo.On(place), repo.Keys{})
	if err != nil {
		t.Fatal(err)
	}
	return r, dir
}

// rowsOfAChunk is where the small dumper cuts.
const rowsOfAChunk = 500

// dumper is a backup in a few lines, of one idle server: so a restore is tested against rows that no other code of this
// repository prepared for it.
type dumper struct {
	t     testing.TB
	s     *mysql.Stream
	repo  *repo.Repo
	keep  *repo.Keeper
	draft *repo.Draft
}

func smallDump(t testing.TB, n *sandbox.Node, r *repo.Repo, schemas ...string) repo.Header {
	t.Helper()
	return dumpAs(t, n, r, 0, schemas...)
}

// dumpAs has the backup say another version of its server, unless that is 0.
func dumpAs(t testing.TB, n *sandbox.Node, r *repo.Repo, number fleet.Version, schemas ...string) repo.Header {
	t.Helper()
	ctx := t.Context()
	c, err := mysql.Connect(ctx, target(t, n), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	keep, err := r.NewKeeper()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	h := repo.Header{Format: repo.Format, ID: repo.NewID(now), Kind: repo.Logical, Began: now,
		Server: repo.Server{Server: c.Server.Server}}
	if number > 0 {
		h.Server.Number = number
	}
	if err := r.Begin(ctx, h, nil); err != nil {
		t.Fatal(err)
	}
	d := dumper{t: t, s: stream(t, n), repo: r, keep: keep, draft: repo.NewDraft()}
	defer d.draft.Close()
	if err := d.s.ForRows(ctx, c.Server); err != nil {
		t.Fatal(err)
	}
	for _, schema := range schemas {
		d.schema(ctx, schema)
	}
	if err := r.Finish(ctx, h, d.draft); err != nil {
		t.Fatal(err)
	}
	return h
}

func (d *dumper) add(l repo.Line) {
	d.t.Helper()
	if err := d.draft.Add(l); err != nil {
		d.t.Fatal(err)
	}
}

func (d *dumper) maps(query string) []map[string]string {
	d.t.Helper()
	m, err := d.s.QueryMaps(d.t.Context(), query)
	if err != nil {
		d.t.Fatalf("%s: %v", query, err)
	}
	return m
}

func (d *dumper) schema(ctx context.Context, name string) {
	d.t.Helper()
	exec(d.t, d.s, "USE "+mysql.Quote(name))
	d.add(repo.Line{Schema: &repo.Schema{Name: name, Create: d.maps("SHOW CREATE DATABASE " + mysql.Quote(name))[0]["Create Database"]}})
	for _, m := range d.maps("SELECT TABLE_NAME n, TABLE_TYPE t FROM information_schema.TABLES WHERE TABLE_SCHEMA = " + mysql.Literal(name)) {
		create := d.maps("SHOW CREATE TABLE " + mysql.Quote(m["n"]))[0]
		switch m["t"] {
		case "BASE TABLE":
			d.table(ctx, name, m["n"], create["Create Table"])
		case "VIEW":
			d.add(repo.Line{Object: &repo.Object{Kind: repo.View, Schema: name, Name: m["n"], Create: create["Create View"],
				Charset: create["character_set_client"], Collation: create["collation_connection"]}})
		}
	}
	for _, k := range []struct {
		kind                           repo.ObjectKind
		list, show, column, text, word string
	}{
		{repo.Trigger, "TRIGGERS", "SQL Original Statement", "TRIGGER", "", ""},
		{repo.Event, "EVENTS", "Create Event", "EVENT", "", ""},
		{repo.Function, "ROUTINES", "Create Function", "ROUTINE", " AND ROUTINE_TYPE = 'FUNCTION'", "FUNCTION"},
		{repo.Procedure, "ROUTINES", "Create Procedure", "ROUTINE", " AND ROUTINE_TYPE = 'PROCEDURE'", "PROCEDURE"},
	} {
		word := k.word
		if word == "" {
			word = k.column
		}
		for _, m := range d.maps("SELECT " + k.column + "_NAME n FROM information_schema." + k.list + " WHERE " + k.column + "_SCHEMA = " + mysql.Literal(name) + k.text) {
			c := d.maps("SHOW CREATE " + word + " " + mysql.Quote(m["n"]))[0]
			o := &repo.Object{Kind: k.kind, Schema: name, Name: m["n"], Create: c[k.show], SQLMode: c["sql_mode"], TimeZone: c["time_zone"],
				Charset: c["character_set_client"], Collation: c["collation_connection"], Database: c["Database Collation"]}
			if k.kind == repo.Trigger {
				o.Table = d.maps("SELECT EVENT_OBJECT_TABLE t FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = " + mysql.Literal(name) +
					" AND TRIGGER_NAME = " + mysql.Literal(m["n"]))[0]["t"]
			}
			d.add(repo.Line{Object: o})
		}
	}
}

// table stores a table in chunks of some rows.
func (d *dumper) table(ctx context.Context, schema, name, create string) {
	d.t.Helper()
	shape, err := define.ParseTable(schema, create)
	if err != nil {
		d.t.Fatal(err)
	}
	key, _ := chunk.KeyOf(shape)
	m := &repo.Table{Schema: schema, Name: name, Create: create, Engine: shape.Engine}
	for _, c := range chunk.Columns(shape) {
		m.Columns = append(m.Columns, repo.Column{Name: c.Name, Type: c.Type, Charset: c.Charset})
	}
	cut := &cutter{d: d, m: m, shape: shape, key: key}
	if err := d.s.Select(ctx, chunk.Select(shape, key, chunk.Range{}, "test"), cut); err != nil {
		d.t.Fatal(err)
	}
	if cut.rows.Count > 0 {
		if err := cut.store(nil); err != nil {
			d.t.Fatal(err)
		}
	}
	m.Sum = cut.sum.Sum.String()
	m.Rows, m.Bytes = cut.sum.Count, cut.sum.Bytes
	d.add(repo.Line{Table: m})
}

type cutter struct {
	d     *dumper
	m     *repo.Table
	shape define.Table
	key   chunk.Key
	raw   bytes.Buffer
	row   []byte
	rows  chunk.Rows
	sum   chunk.Rows
	lower chunk.Bound
}

func (c *cutter) Piece(b []byte, last bool) error {
	c.raw.Write(b)
	c.row = append(c.row, b...)
	_ = c.rows.Piece(b, last)
	if err := c.sum.Piece(b, last); err != nil || !last {
		return err
	}
	row := c.row
	c.row = c.row[:0]
	if c.rows.Count < rowsOfAChunk || c.key.Cuts == 0 || !c.key.Whole() {
		return nil
	}
	upper, err := c.key.Bound(c.shape, row)
	if err != nil {
		return err
	}
	return c.store(upper)
}

func (c *cutter) store(upper chunk.Bound) error {
	kept, err := c.d.keep.Keep(c.d.t.Context(), c.m.Schema, c.m.Name, c.raw.Bytes())
	if err != nil {
		return err
	}
	c.m.Chunks = append(c.m.Chunks, repo.Chunk{Lower: c.lower, Upper: upper, Rows: c.rows.Count, Bytes: c.rows.Bytes, Sum: c.rows.Sum.String(), Hash: kept.Hash, Stored: kept.Stored})
	c.lower = upper
	c.raw.Reset()
	c.rows = chunk.Rows{}
	return nil
}

func restore(t testing.TB, o load.Options) (load.Result, error) {
	t.Helper()
	var different []load.TableResult
	if o.Table == nil {
		o.Table = func(r load.TableResult) {
			if !r.Equal {
				different = append(different, r)
			}
		}
	}
	return load.Restore(t.Context(), o)
}
