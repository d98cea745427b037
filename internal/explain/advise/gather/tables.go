package gather

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// size is what the server says of a table besides its definition.
type size struct {
	table          mysql.TableName
	engine, format string
	rows           float64
	data, index    float64 // bytes
	next           float64 // AUTO_INCREMENT value
	created        time.Time
	partitioned    bool
	plain          bool // neither versioned nor anything else that is special
	closed         bool // it was not opened: created and next are not known
}

// of is a table with what is known of its size.
func (x *size) of(d define.Table, stats *statistics) *advise.Table {
	t := &advise.Table{Table: d, Rows: x.rows, Data: x.data, Next: x.next, RowFormat: x.format, Created: x.created}
	if stats == nil {
		return t
	}
	m := stats.of[x.table.Name]
	if m != nil {
		t.Bytes, t.Different = m.bytes, m.different
	}
	t.Unmeasured = stats.known && m == nil
	return t
}

// tables are those of a schema.
type tables struct {
	list   []size
	merges []string // names of its MERGE tables
}

// sizes lists the tables of a schema, all that the server tells of them; only, if not nil, is which of them.
func (g *gatherer) sizes(ctx context.Context, schema string, only []string) (out tables, err error) {
	names := names{}
	which := ""
	if only != nil {
		which = " AND TABLE_NAME IN (" + mysql.Literals(only) + ")"
	}
	err = g.query(ctx, `SELECT /* risso: tables */ TABLE_NAME, TABLE_TYPE, TABLE_ROWS, DATA_LENGTH, AUTO_INCREMENT, INDEX_LENGTH, ENGINE, ROW_FORMAT, CREATE_TIME, CASE WHEN TABLE_TYPE = 'VIEW' THEN TABLE_COMMENT ELSE '' END, CREATE_OPTIONS
  FROM information_schema.TABLES WHERE TABLE_SCHEMA = `+mysql.Literal(schema)+which, func(row [][]byte) error {
		x := size{table: mysql.TableName{Schema: schema, Name: string(row[0])}, rows: number(row[2]), data: number(row[3]), next: number(row[4]), index: number(row[5]), engine: names.of(row[6]), format: names.of(row[7]), created: momentOf(row[8]),
			partitioned: strings.Contains(string(row[10]), "partitioned")}
		g.listed(&out, x, names.of(row[1]), string(row[9]))
		return nil
	})
	return out, err
}

// number reads a number; NULL is 0.
func number(b []byte) float64 { f, _ := strconv.ParseFloat(string(b), 64); return f }

// listed takes a table, or what else the server lists beside tables.
func (g *gatherer) listed(out *tables, x size, kind, comment string) {
	if len(g.wanted) > 0 {
		if to := g.fold(x.table); g.isWanted(to) {
			g.wanted[to] = true
		}
	}
	if strings.EqualFold(x.engine, "MRG_MYISAM") {
		out.merges = append(out.merges, x.table.Name)
	}
	switch {
	case !g.chosen(x.table.Schema, x.table.Name):
		g.server.Whole = false
	case strings.Contains(kind, "VIEW"):
		g.broken(x.table.Schema, x.table.Name, comment)
	case kind != "SEQUENCE":
		x.plain = kind == "BASE TABLE"
		out.list = append(out.list, x)
	}
}

// count adds up tables.
func (g *gatherer) count(list []size) {
	t := &g.server.Tables
	if t.Engines == nil {
		t.Engines = map[string]int{}
	}
	for i := range list {
		x := &list[i]
		t.Data, t.Index = t.Data+x.data, t.Index+x.index
		t.Engines[strings.ToUpper(x.engine)]++
	}
}

func (g *gatherer) isWanted(t mysql.TableName) bool {
	_, ok := g.wanted[t]
	return ok
}

// schema looks at the tables of a schema. Each schema is asked for by itself: a list of several makes MySQL 8.0 and later look through all tables
// of the server.
func (g *gatherer) schema(ctx context.Context, schema string) error {
	// Before all else of them: what was made meanwhile is not looked at.
	var all tables
	var err error
	if g.closed == nil {
		all, err = g.sizes(ctx, schema, nil)
	} else {
		all, err = g.unopened(ctx, schema)
	}
	if err != nil {
		return fmt.Errorf("list the tables: %w", err)
	}
	stats, err := g.statistics(ctx, schema)
	if err != nil {
		return err
	}
	var together advise.Schema
	lines, err := g.outlines(ctx, schema, &together)
	if err != nil {
		return err
	}
	used := map[string]*advise.Use{}
	switch {
	case g.every != nil:
		for name, o := range lines {
			if u := g.every.of(&o.table); u != nil {
				used[name] = u
			}
		}
	case g.usesMatter():
		if used, err = g.usage(ctx, schema); err != nil {
			return err
		}
	}
	if g.o.Several {
		g.usedBy(schema, used)
	}
	of := known{schema, stats, lines, used}
	if g.closed != nil {
		if err := g.open(ctx, &all, of); err != nil {
			return fmt.Errorf("open tables: %w", err)
		}
	}
	g.count(all.list)
	var whole []size
	for i := range all.list {
		x := &all.list[i]
		switch doubt, ranked := g.doubts(x, of); {
		case !doubt:
		case ranked:
			g.provisional(g.outlined(x, of.outline(x.table.Name), stats, used[x.table.Name]))
		default:
			whole = append(whole, *x)
		}
	}
	merged, err := g.merged(ctx, schema, all.merges)
	if err != nil {
		return err
	}
	g.looked(len(all.list) - len(whole))
	for part := range slices.Chunk(whole, batch) {
		if err := g.part(ctx, part, stats, used, merged); err != nil {
			return err
		}
	}
	g.add(advise.OfSchema(g.server, schema, &together))
	return nil
}

// known is what was read of a schema's tables before their sizes.
type known struct {
	schema string
	stats  *statistics
	lines  map[string]*outline // nil: they could not be read
	used   map[string]*advise.Use
}

// outline is a table's; nil if outlines could not be read. One that has none has neither an index nor a column that is worth a line.
func (k known) outline(name string) *outline {
	if o := k.lines[name]; o != nil || k.lines == nil {
		return o
	}
	return &outline{table: define.Table{Schema: k.schema, Name: name}}
}

// doubts reports whether a check may find something in a table, and ranked whether its outline tells enough to rank and count what.
func (g *gatherer) doubts(x *size, of known) (doubt, ranked bool) {
	o := of.outline(x.table.Name)
	if g.suspect(x, o, of.stats) {
		return true, false
	}
	doubt, ranked = g.doubtful(x, o, of.used[x.table.Name])
	return doubt, ranked && g.server.Blind == "" // else it may have indexes that the account does not see
}

// merged tells of which MERGE table of the schema a table is a part. Those that cannot be opened are looked at, and said, with all others.
func (g *gatherer) merged(ctx context.Context, schema string, merges []string) (map[string]string, error) {
	list := map[string]string{}
	for _, name := range merges {
		list[name] = schema + "." + name
		g.statements++
		create, err := define.CreateTable(ctx, g.stream, mysql.TableName{Schema: schema, Name: name})
		if err != nil && g.stream.Broken() != nil {
			return nil, err
		}
		if d, perr := define.ParseTable(schema, create); err == nil && perr == nil {
			for _, part := range d.Union {
				if part.Schema == schema {
					list[part.Name] = schema + "." + name
				}
			}
		}
	}
	return list, nil
}

// provisional keeps what the outline of a table tells.
func (g *gatherer) provisional(t *advise.Table) {
	if g.kept != nil {
		g.kept.add(t, g.started())
	}
	g.found.AddProvisional(t, g.onlyWanted(advise.OfTable(g.server, t)))
}

// settle reads the definitions of tables whose findings are provisional, and are told.
func (g *gatherer) settle(ctx context.Context) error {
	final := map[*advise.Table][]advise.Finding{}
	for part := range slices.Chunk(g.found.Provisional(), batch) {
		names := make([]mysql.TableName, len(part))
		for i, t := range part {
			names[i] = mysql.TableName{Schema: t.Schema, Name: t.Name}
		}
		defined, err := g.definitions(ctx, names)
		if err != nil {
			return err
		}
		for i, d := range defined {
			if d != nil {
				part[i].Table = *d
				final[part[i]] = g.onlyWanted(advise.OfTable(g.server, part[i]))
			}
		}
	}
	g.found.Settle(final)
	return nil
}

// definitions reads those of tables; nil for one that is gone, or cannot be read, which is noted.
func (g *gatherer) definitions(ctx context.Context, names []mysql.TableName) ([]*define.Table, error) {
	g.statements += len(names)
	creates, err := define.CreateTables(ctx, g.stream, names)
	if err != nil { // one of them: ask one by one
		if creates, err = g.oneByOne(ctx, names); err != nil {
			return nil, err
		}
	}
	out := make([]*define.Table, len(names))
	for i, create := range creates {
		if create == "" {
			continue
		}
		d, err := define.ParseTable(names[i].Schema, create)
		if err != nil {
			g.unread("table "+names[i].String(), err.Error(), "")
			continue
		}
		out[i] = &d
	}
	return out, nil
}

// part looks at some tables of a schema by their definitions.
func (g *gatherer) part(ctx context.Context, part []size, stats *statistics, used map[string]*advise.Use, merged map[string]string) error {
	names := make([]mysql.TableName, len(part))
	for i, x := range part {
		names[i] = x.table
	}
	defined, err := g.definitions(ctx, names)
	if err != nil {
		return err
	}
	looked := 0
	for i, d := range defined {
		if d == nil {
			continue
		}
		t := part[i].of(*d, stats)
		t.Merge = merged[t.Name]
		if t.Use = g.use(t, used); g.kept != nil {
			g.kept.add(t, g.started())
		}
		if d.Partitioned {
			if err := g.partitions(ctx, t); err != nil {
				return err
			}
		}
		if g.o.TestKeys > 0 {
			if err := g.testKeys(ctx, t); err != nil {
				return err
			}
		}
		g.add(advise.OfTable(g.server, t))
		looked++
	}
	g.looked(looked)
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
			g.unread("table "+n.String(), err.Error(), "")
		}
	}
	return out, nil
}

// statistics are what InnoDB's own tables say of the tables of a schema.
type statistics struct {
	of    map[string]*measured // by table, of those that have any
	known bool
}

// measured are the statistics of a table.
type measured struct {
	bytes, different map[string]float64 // by index
}

// statistics reads how large the indexes of a schema are, and how many different values their first columns have.
func (g *gatherer) statistics(ctx context.Context, schema string) (*statistics, error) {
	page, _ := strconv.ParseFloat(g.server.Variables["innodb_page_size"], 64)
	s := &statistics{of: map[string]*measured{}}
	names, last, m := names{}, "", (*measured)(nil)
	err := g.query(ctx, "SELECT /* risso: sizes of indexes */ table_name, index_name, stat_name, stat_value FROM mysql.innodb_index_stats WHERE (stat_name = 'size' OR stat_name = 'n_diff_pfx01') AND database_name = "+mysql.Literal(schema),
		func(row [][]byte) error {
			table, _, partitioned := bytes.Cut(row[0], []byte("#P#"))
			if !partitioned {
				table, _, partitioned = bytes.Cut(table, []byte("#p#"))
			}
			if m == nil || last != string(table) { // rows of one table come together
				last = string(table)
				if m = s.of[last]; m == nil {
					m = &measured{map[string]float64{}, map[string]float64{}}
					s.of[last] = m
				}
			}
			v, _ := strconv.ParseFloat(string(row[3]), 64)
			if index := names.of(row[1]); string(row[2]) == "size" {
				m.bytes[index] += v * page
			} else if !partitioned {
				m.different[index] += v
			}
			return nil
		})
	s.known = err == nil
	return s, g.missing("sizes of indexes", err)
}

// partitions reads the partitions of a table.
func (g *gatherer) partitions(ctx context.Context, t *advise.Table) error {
	err := g.query(ctx, "SELECT /* risso: partitions */ PARTITION_METHOD, PARTITION_EXPRESSION, PARTITION_NAME, PARTITION_DESCRIPTION, TABLE_ROWS FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA = "+mysql.Literal(t.Schema)+" AND TABLE_NAME = "+mysql.Literal(t.Name)+" ORDER BY PARTITION_ORDINAL_POSITION, SUBPARTITION_ORDINAL_POSITION", func(row [][]byte) error {
		rows, _ := strconv.ParseFloat(string(row[4]), 64)
		p := advise.Partition{Method: string(row[0]), Expression: string(row[1]), Name: string(row[2]), Bound: string(row[3]), Rows: rows}
		if n := len(t.Partitions); n > 0 && t.Partitions[n-1].Name == p.Name { // subpartitions
			t.Partitions[n-1].Rows += rows
			return nil
		}
		t.Partitions = append(t.Partitions, p)
		return nil
	})
	return g.missing("partitions", err)
}

// testKeys asks the server whether rows of a table without a primary key differ in columns that may be one.
func (g *gatherer) testKeys(ctx context.Context, t *advise.Table) error {
	if !advise.LacksKey(t) {
		return nil
	}
	candidates := advise.KeyCandidates(t)
	if len(candidates) == 0 {
		return nil
	}
	table := mysql.TableName{Schema: t.Schema, Name: t.Name}
	ask := func(about, statement string) (yes, ok bool, _ error) {
		err := g.query(ctx, g.server.Bounded(g.o.TestKeys, statement), func([][]byte) error { yes = true; return nil })
		if err != nil && (g.stream.Broken() != nil || ctx.Err() != nil) {
			return false, false, errors.Join(err, ctx.Err())
		}
		if err != nil {
			g.unread(about, err.Error(), "")
		}
		return yes, err == nil, nil
	}
	rows, ok, err := ask("rows of "+t.Schema+"."+t.Name, "SELECT /* risso: has it rows? */ 1 FROM "+table.String()+" LIMIT 1")
	if err != nil || !ok || !rows { // of no rows it cannot be told
		return err
	}
	t.Tested = map[string]bool{}
	for _, columns := range candidates {
		quoted := make([]string, len(columns))
		for i, c := range columns {
			quoted[i] = mysql.Quote(c)
		}
		list := strings.Join(quoted, ", ")
		alike, ok, err := ask("whether rows of "+t.Schema+"."+t.Name+" differ in "+strings.Join(columns, ", "),
			"SELECT /* risso: do rows differ in these columns? */ 1 FROM "+table.String()+" GROUP BY "+list+" HAVING COUNT(*) > 1 LIMIT 1")
		if err != nil {
			return err
		}
		if ok {
			t.Tested[strings.Join(columns, ",")] = !alike
		}
	}
	return nil
}
