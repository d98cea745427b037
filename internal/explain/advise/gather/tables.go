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
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// size is what the server says of a table besides its definition.
type size struct {
	name, engine, format string
	rows, data, free     float64
	next                 float64
	created              time.Time
	partitioned          bool
}

// schema looks at the tables of a schema.
func (g *gatherer) schema(ctx context.Context, schema string) error {
	var sizes []size
	var merges []string
	number := func(b []byte) float64 { f, _ := strconv.ParseFloat(string(b), 64); return f }
	err := g.query(ctx, `SELECT /* risso: tables */ TABLE_NAME, TABLE_TYPE, TABLE_ROWS, DATA_LENGTH, DATA_FREE, AUTO_INCREMENT, INDEX_LENGTH, ENGINE, ROW_FORMAT, CREATE_TIME, CASE WHEN TABLE_TYPE = 'VIEW' THEN TABLE_COMMENT ELSE '' END, CREATE_OPTIONS
  FROM information_schema.TABLES WHERE TABLE_SCHEMA = `+mysql.Literal(schema)+" ORDER BY TABLE_NAME", func(row [][]byte) error {
		kind, name := string(row[1]), string(row[0])
		if to := g.fold(mysql.TableName{Schema: schema, Name: name}); len(g.wanted) > 0 {
			if _, ok := g.wanted[to]; ok {
				g.wanted[to] = true
			}
		}
		if strings.EqualFold(string(row[7]), "MRG_MYISAM") {
			merges = append(merges, name)
		}
		if !g.chosen(schema, name) {
			g.server.Whole = false
			return nil
		}
		if strings.Contains(kind, "VIEW") {
			g.broken(schema, name, string(row[10]))
			return nil
		}
		if kind == "SEQUENCE" {
			return nil
		}
		x := size{name: name, rows: number(row[2]), data: number(row[3]), free: number(row[4]), next: number(row[5]), engine: string(row[7]), format: string(row[8]), created: momentOf(row[9]), partitioned: strings.Contains(string(row[11]), "partitioned")}
		sizes = append(sizes, x)
		t := &g.server.Tables
		if t.Engines == nil {
			t.Engines = map[string]int{}
		}
		t.Data, t.Index = t.Data+x.data, t.Index+number(row[6])
		t.Engines[strings.ToUpper(x.engine)]++
		return nil
	})
	if err != nil {
		return fmt.Errorf("list the tables: %w", err)
	}
	stats, err := g.statistics(ctx, schema)
	if err != nil {
		return err
	}
	used, err := g.usage(ctx, schema)
	if err != nil {
		return err
	}
	if g.o.Several {
		g.usedBy(schema, used)
	}
	var together advise.Schema
	outlines, err := g.outlines(ctx, schema, &together)
	if err != nil {
		return err
	}
	merged, err := g.merged(ctx, schema, merges)
	if err != nil {
		return err
	}
	all := len(sizes)
	sizes = slices.DeleteFunc(sizes, func(x size) bool {
		return !g.suspect(schema, &x, outlines[x.name], stats) && !g.mayBeUnused(used[x.name])
	})
	g.looked(all - len(sizes))
	for part := range slices.Chunk(sizes, batch) {
		if err := g.part(ctx, schema, part, stats, used, merged); err != nil {
			return err
		}
	}
	g.add(advise.OfSchema(g.server, schema, &together))
	return nil
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

// part looks at some tables of a schema.
func (g *gatherer) part(ctx context.Context, schema string, part []size, stats *statistics, used map[string]*advise.Use, merged map[string]string) error {
	names := make([]mysql.TableName, len(part))
	for i, x := range part {
		names[i] = mysql.TableName{Schema: schema, Name: x.name}
	}
	g.statements += len(names)
	creates, err := define.CreateTables(ctx, g.stream, names)
	if err != nil { // one of them: ask one by one
		if creates, err = g.oneByOne(ctx, names); err != nil {
			return err
		}
	}
	looked := 0
	for i, create := range creates {
		if create == "" {
			continue
		}
		d, err := define.ParseTable(schema, create)
		if err != nil {
			g.unread("table "+names[i].String(), err.Error(), "")
			continue
		}
		x := part[i]
		t := &advise.Table{Table: d, Rows: x.rows, Data: x.data, Free: x.free, Next: x.next, RowFormat: x.format, Created: x.created, Merge: merged[x.name]}
		if stats != nil {
			t.Bytes, t.Different, t.Unmeasured = stats.bytes[x.name], stats.different[x.name], stats.tables != nil && !stats.tables[x.name]
		}
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
	bytes, different map[string]map[string]float64 // by table and index
	tables           map[string]bool               // that have any
}

// statistics reads how large the indexes of a schema are, and how many different values their first columns have.
func (g *gatherer) statistics(ctx context.Context, schema string) (*statistics, error) {
	page, _ := strconv.ParseFloat(g.server.Variables["innodb_page_size"], 64)
	s := &statistics{map[string]map[string]float64{}, map[string]map[string]float64{}, map[string]bool{}}
	put := func(m map[string]map[string]float64, table, index string, v float64) {
		if m[table] == nil {
			m[table] = map[string]float64{}
		}
		m[table][index] += v
	}
	err := g.query(ctx, "SELECT /* risso: sizes of indexes */ table_name, index_name, stat_name, stat_value FROM mysql.innodb_index_stats WHERE (stat_name = 'size' OR stat_name = 'n_diff_pfx01') AND database_name = "+mysql.Literal(schema),
		func(row [][]byte) error {
			table, _, partitioned := strings.Cut(string(row[0]), "#P#")
			if !partitioned {
				table, _, partitioned = strings.Cut(table, "#p#")
			}
			s.tables[table] = true
			v, _ := strconv.ParseFloat(string(row[3]), 64)
			if string(row[2]) == "size" {
				put(s.bytes, table, string(row[1]), v*page)
			} else if !partitioned {
				put(s.different, table, string(row[1]), v)
			}
			return nil
		})
	if err != nil {
		s.tables = nil
	}
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
