// Package gather reads what package advise looks at: of a server as a whole, and of its tables, one schema after the other, so that nobody
// needs room for 650,000 of them. It reads; it changes nothing.
package gather

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/pattern"
)

// Options are what to read.
type Options struct {
	Choice   *pattern.Choice  // which tables; the zero value is all
	LeaveOut []string         // schemas, or patterns of them, whose tables are not looked at
	Progress func(tables int) // called with how many were looked at; nil: nobody wants to know
}

// Answer is what was found, and what it took.
type Answer struct {
	Findings []advise.Finding
	Missing  []fleet.Trouble // what could not be read, so that nothing was looked for in it
	Tables   int             // that were looked at
	Took     time.Duration
	Server   mysql.Server
}

// batch is how many definitions are asked for at once.
const batch = 200

// Look reads a server and says what is wrong with it, the worst first.
func Look(ctx context.Context, target mysql.Target, o Options) (Answer, error) {
	begun := time.Now()
	c, err := mysql.Connect(ctx, target, nil)
	if err != nil {
		return Answer{}, err
	}
	defer c.Close()
	if o.Choice == nil {
		o.Choice = &pattern.Choice{}
	}
	stream, err := target.ConnectStream(ctx, mysql.StreamOptions{})
	if err != nil {
		return Answer{}, err
	}
	defer stream.Close()
	g := &gatherer{conn: c, stream: stream, server: &advise.Server{Server: c.Server, Now: begun}, o: o}
	if err := g.stream.ForRows(ctx, c.Server); err != nil {
		return Answer{}, err
	}
	if err := g.look(ctx); err != nil {
		return Answer{}, err
	}
	advise.Rank(g.found)
	return Answer{Findings: g.found, Missing: g.server.Missing, Tables: g.tables, Took: time.Since(begun), Server: c.Server}, nil
}

// gatherer reads one server.
type gatherer struct {
	conn   *mysql.Conn
	stream *mysql.Stream
	server *advise.Server
	o      Options
	found  []advise.Finding
	tables int
}

func (g *gatherer) look(ctx context.Context) error {
	if err := g.whole(ctx); err != nil {
		return err
	}
	g.found = append(g.found, advise.OfServer(g.server)...)
	schemas, err := define.Schemas(ctx, g.stream)
	if err != nil {
		return err
	}
	for _, schema := range schemas {
		if !g.o.Choice.May(schema, false) || slices.ContainsFunc(g.o.LeaveOut, func(p string) bool { return pattern.Stars(p, schema) }) {
			continue
		}
		if err := g.schema(ctx, schema); err != nil {
			return fmt.Errorf("schema %s: %w", mysql.Quote(schema), err)
		}
	}
	return nil
}

// missing notes what could not be read. An error that is about more than a privilege, or about a session that is lost, is returned.
func (g *gatherer) missing(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case g.stream.Broken() != nil:
		return fmt.Errorf("read %s: %w", what, err)
	}
	switch mysql.ClassOf(err) {
	case mysql.ClassPrivilege, mysql.ClassMissing:
		g.server.Missing = append(g.server.Missing, fleet.Trouble{What: what, Why: err.Error(), Remedy: fleet.RemedyOf(err)})
		return nil
	}
	return fmt.Errorf("read %s: %w", what, err)
}

// whole reads what is about the server as a whole.
func (g *gatherer) whole(ctx context.Context) error {
	g.server.Variables, g.server.Status = map[string]string{}, map[string]float64{}
	if err := g.pairs(ctx, "SHOW /* risso: settings */ GLOBAL VARIABLES", func(name, value string) { g.server.Variables[name] = value }); err != nil {
		return err
	}
	err := g.pairs(ctx, "SHOW /* risso: counters */ GLOBAL STATUS", func(name, value string) {
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			g.server.Status[strings.ToLower(name)] = v
		}
	})
	if err != nil {
		return err
	}
	return g.references(ctx)
}

// pairs asks for names and values.
func (g *gatherer) pairs(ctx context.Context, statement string, f func(name, value string)) error {
	return g.stream.Query(ctx, statement, func(row [][]byte) error { f(string(row[0]), string(row[1])); return nil })
}

// references reads all foreign keys of the server. REFERENTIAL_CONSTRAINTS lists what the account may see.
func (g *gatherer) references(ctx context.Context) error {
	refs := map[mysql.TableName][]advise.Reference{}
	fold := func(s string) string { return s }
	if g.server.Variables["lower_case_table_names"] != "0" {
		fold = strings.ToLower
	}
	last := ""
	err := g.stream.Query(ctx, `SELECT /* risso: foreign keys */ TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, COLUMN_NAME, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME
  FROM information_schema.KEY_COLUMN_USAGE WHERE REFERENCED_TABLE_NAME IS NOT NULL ORDER BY TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION`, func(row [][]byte) error {
		to := mysql.TableName{Schema: fold(string(row[4])), Name: fold(string(row[5]))}
		key := strings.Join([]string{string(row[0]), string(row[1]), string(row[2])}, "\x00")
		if key != last {
			last = key
			refs[to] = append(refs[to], advise.Reference{ForeignKey: define.ForeignKey{Name: string(row[2]), Referenced: to}, Table: mysql.TableName{Schema: string(row[0]), Name: string(row[1])}})
		}
		r := &refs[to][len(refs[to])-1]
		r.Columns, r.To = append(r.Columns, string(row[3])), append(r.To, string(row[6]))
		return nil
	})
	g.server.References = refs
	return g.missing("foreign keys", err)
}

// size is what the server says of a table besides its definition.
type size struct {
	name             string
	rows, data, free float64
	next             float64
}

// schema looks at the tables of a schema.
func (g *gatherer) schema(ctx context.Context, schema string) error {
	var sizes []size
	number := func(b []byte) float64 { f, _ := strconv.ParseFloat(string(b), 64); return f }
	err := g.stream.Query(ctx, `SELECT /* risso: tables */ TABLE_NAME, TABLE_TYPE, TABLE_ROWS, DATA_LENGTH, DATA_FREE, AUTO_INCREMENT
  FROM information_schema.TABLES WHERE TABLE_SCHEMA = `+mysql.Literal(schema)+" ORDER BY TABLE_NAME", func(row [][]byte) error {
		kind := string(row[1])
		if strings.Contains(kind, "VIEW") || kind == "SEQUENCE" || !g.o.Choice.Table(schema, string(row[0])) {
			return nil
		}
		sizes = append(sizes, size{name: string(row[0]), rows: number(row[2]), data: number(row[3]), free: number(row[4]), next: number(row[5])})
		return nil
	})
	if err != nil {
		return fmt.Errorf("list the tables: %w", err)
	}
	bytes, err := g.indexBytes(ctx, schema)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(sizes, batch) {
		if err := g.part(ctx, schema, part, bytes); err != nil {
			return err
		}
	}
	return nil
}

// part looks at some tables of a schema.
func (g *gatherer) part(ctx context.Context, schema string, part []size, bytes map[string]map[string]float64) error {
	names := make([]mysql.TableName, len(part))
	for i, x := range part {
		names[i] = mysql.TableName{Schema: schema, Name: x.name}
	}
	creates, err := define.CreateTables(ctx, g.stream, names)
	if err != nil { // one of them: ask one by one
		if creates, err = g.oneByOne(ctx, names); err != nil {
			return err
		}
	}
	for i, create := range creates {
		if create == "" {
			continue
		}
		t, err := define.ParseTable(schema, create)
		if err != nil {
			g.server.Missing = append(g.server.Missing, fleet.Trouble{What: "table " + names[i].String(), Why: err.Error()})
			continue
		}
		x := part[i]
		g.found = append(g.found, advise.OfTable(g.server, &advise.Table{Table: t, Rows: x.rows, Data: x.data, Free: x.free, Next: x.next, Bytes: bytes[x.name]})...)
		g.tables++
	}
	if g.o.Progress != nil {
		g.o.Progress(g.tables)
	}
	return nil
}

// oneByOne asks for definitions of which the server refused one. A table that is gone meanwhile is left out; of one that cannot be
// opened it is said why.
func (g *gatherer) oneByOne(ctx context.Context, names []mysql.TableName) ([]string, error) {
	if err := g.stream.Broken(); err != nil {
		return nil, err
	}
	out := make([]string, len(names))
	for i, n := range names {
		create, err := define.CreateTable(ctx, g.stream, n)
		switch {
		case err == nil:
			out[i] = create
		case g.stream.Broken() != nil || ctx.Err() != nil:
			return nil, errors.Join(err, ctx.Err())
		case mysql.ErrorNumber(err) == errno.NoSuchTable:
		default:
			g.server.Missing = append(g.server.Missing, fleet.Trouble{What: "table " + n.String(), Why: err.Error()})
		}
	}
	return out, nil
}

// indexBytes reads how large the indexes of a schema are, as InnoDB's statistics say.
func (g *gatherer) indexBytes(ctx context.Context, schema string) (map[string]map[string]float64, error) {
	page, _ := strconv.ParseFloat(g.server.Variables["innodb_page_size"], 64)
	out := map[string]map[string]float64{}
	err := g.stream.Query(ctx, "SELECT /* risso: sizes of indexes */ table_name, index_name, stat_value FROM mysql.innodb_index_stats WHERE stat_name = 'size' AND database_name = "+mysql.Literal(schema),
		func(row [][]byte) error {
			table, _, _ := strings.Cut(string(row[0]), "#P#")
			pages, _ := strconv.ParseFloat(string(row[2]), 64)
			if out[table] == nil {
				out[table] = map[string]float64{}
			}
			out[table][string(row[1])] += pages * page
			return nil
		})
	if err != nil && len(g.server.Missing) > 0 && slices.ContainsFunc(g.server.Missing, func(t fleet.Trouble) bool { return t.What == sizesOfIndexes }) {
		return out, g.stream.Broken()
	}
	return out, g.missing(sizesOfIndexes, err)
}

const sizesOfIndexes = "sizes of indexes"
