package gather

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/pattern"
)

// unusedAfter is for how long a server must have counted before anything is said of indexes that nothing used.
const unusedAfter = 24 * time.Hour

const usageWhat = "which indexes are used"

// counting finds out by what the server counts how its indexes are used, and since when. performance_schema counts since the server was
// started; userstat since it was switched on, which nothing tells unless an option file did it.
func (g *gatherer) counting(ctx context.Context) error {
	s := g.server
	s.Counting.After = g.o.Unused
	if s.Counting.After == 0 {
		s.Counting.After = unusedAfter
	}
	started := time.Time{}
	if up := s.Status["uptime"]; up > 0 {
		started = s.Now.Add(-time.Duration(up) * time.Second)
	}
	_, knows := s.Variables["userstat"]
	why, remedy := "performance_schema is off on this server", "add performance_schema=ON to the [mysqld] section of the option file and restart the server"
	if s.PerformanceSchema {
		on := 0
		err := g.query(ctx, "SELECT /* risso: is the use of indexes counted? */ NAME FROM performance_schema.setup_instruments WHERE NAME = 'wait/io/table/sql/handler' AND ENABLED = 'YES' UNION ALL SELECT NAME FROM performance_schema.setup_consumers WHERE NAME = 'global_instrumentation' AND ENABLED = 'YES'", func([][]byte) error { on++; return nil })
		if err != nil {
			return g.missing(usageWhat, err)
		}
		if on == 2 {
			s.Counting.By, s.Counting.Since = "performance_schema", started
			return g.young(usageWhat)
		}
		why, remedy = "performance_schema does not count it", "UPDATE performance_schema.setup_instruments SET ENABLED = 'YES' WHERE NAME = 'wait/io/table/sql/handler'; UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' WHERE NAME = 'global_instrumentation'"
	}
	if knows && s.Variables["userstat"] == "ON" {
		s.Counting.By = "userstat"
		err := g.query(ctx, s.OriginStatement("userstat"), func(row [][]byte) error {
			if origin := string(row[0]); origin == "CONFIG" || origin == "COMMAND-LINE" {
				s.Counting.Since = started
			}
			return nil
		})
		if mysql.ClassOf(err) == mysql.ClassMissing { // a server that does not say where a setting comes from
			err = nil
		}
		if err != nil {
			return g.missing(usageWhat, err)
		}
		return g.young(usageWhat)
	}
	if knows {
		why, remedy = why+", and userstat too", "SET GLOBAL userstat = ON"
	}
	g.unused(why, remedy)
	return nil
}

// unused says why nothing is known of how indexes are used, if anybody wants to know.
func (g *gatherer) unused(why, remedy string) {
	if g.o.Wanted == nil || g.o.Wanted("index.unused") {
		g.unread(usageWhat, why, remedy)
	}
}

// young says that a server has not counted for long enough.
func (g *gatherer) young(string) error {
	g.remember()
	if c := g.server.Counting; !c.Since.IsZero() && g.server.Now.Sub(c.Since) < c.After {
		g.unused("the server was started at "+c.Since.UTC().Format("2006-01-02 15:04")+" UTC: too short a time to say which are not", "")
	}
	return nil
}

// usesMatter reports whether anybody wants to know how indexes were used, and it is known for long enough.
func (g *gatherer) usesMatter() bool { return g.o.Several || g.tellsUnused() }

// usage reads how often the indexes of a schema's tables were used, by table.
func (g *gatherer) usage(ctx context.Context, schema string) (map[string]*advise.Use, error) {
	out := map[string]*advise.Use{}
	err := g.uses(ctx, " = "+mysql.Literal(schema), func(_, table, index []byte, c counts) {
		u := out[string(table)]
		if u == nil {
			u = &advise.Use{Reads: map[string]float64{}}
			out[string(table)] = u
		}
		if index != nil {
			u.Reads[string(index)] += c.reads
		}
		u.Inserted, u.Updated, u.Deleted = u.Inserted+c.inserted, u.Updated+c.updated, u.Deleted+c.deleted
	})
	return out, err
}

// counts are how often an index was used, or a table without one.
type counts struct{ reads, inserted, updated, deleted float64 }

// uses reads counters; which says of which schemas. A row without an index counts what needed none: scans of the whole table, and inserts.
func (g *gatherer) uses(ctx context.Context, which string, f func(schema, table, index []byte, c counts)) error {
	number := func(b []byte) float64 { f, _ := strconv.ParseFloat(string(b), 64); return f }
	var err error
	switch g.server.Counting.By {
	case "performance_schema":
		err = g.query(ctx, `SELECT /* risso: how often are indexes used? */ OBJECT_SCHEMA, OBJECT_NAME, INDEX_NAME, COUNT_STAR, COUNT_INSERT, COUNT_UPDATE, COUNT_DELETE FROM performance_schema.table_io_waits_summary_by_index_usage
  WHERE OBJECT_TYPE = 'TABLE' AND OBJECT_SCHEMA`+which, func(row [][]byte) error {
			f(row[0], row[1], row[2], counts{number(row[3]), number(row[4]), number(row[5]), number(row[6])})
			return nil
		})
	case "userstat":
		err = g.query(ctx, "SELECT /* risso: how often are indexes used? */ TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, ROWS_READ FROM information_schema.INDEX_STATISTICS WHERE TABLE_SCHEMA"+which, func(row [][]byte) error {
			f(row[0], row[1], row[2], counts{reads: number(row[3])})
			return nil
		})
		if err == nil {
			err = g.query(ctx, "SELECT /* risso: how often are rows changed? */ TABLE_SCHEMA, TABLE_NAME, ROWS_CHANGED FROM information_schema.TABLE_STATISTICS WHERE TABLE_SCHEMA"+which, func(row [][]byte) error {
				f(row[0], row[1], nil, counts{updated: number(row[2])}) // it does not tell them apart
				return nil
			})
		}
	}
	return g.missing(usageWhat, err)
}

// everyUse is how often the indexes of all tables were used. To find those of one schema, a server walks through its counters of all: of many
// schemas they are read once. Most tables of very many are idle, so of an index that nothing used only a number is kept.
type everyUse struct {
	idle    []uint64 // indexes that nothing used, in order
	reads   map[uint64]float64
	written map[uint64]counts // by table
}

// keyOf is a number for an index, or for a table.
func keyOf[T string | []byte](names ...T) uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	for _, n := range names {
		for i := range len(n) {
			h = (h ^ uint64(n[i])) * 1099511628211
		}
		h = (h ^ 0xff) * 1099511628211 // no letter of UTF-8
	}
	return h
}

// readEveryUse reads the counters of all schemas.
func (g *gatherer) readEveryUse(ctx context.Context) error {
	e := &everyUse{reads: map[uint64]float64{}, written: map[uint64]counts{}}
	err := g.uses(ctx, " NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')", func(schema, table, index []byte, c counts) {
		switch {
		case index != nil && c.reads == 0:
			e.idle = append(e.idle, keyOf(schema, table, index))
		case index != nil:
			e.reads[keyOf(schema, table, index)] += c.reads
		}
		if c.inserted+c.updated+c.deleted > 0 {
			w := e.written[keyOf(schema, table)]
			e.written[keyOf(schema, table)] = counts{0, w.inserted + c.inserted, w.updated + c.updated, w.deleted + c.deleted}
		}
	})
	slices.Sort(e.idle)
	g.every = e
	return err
}

// of is how often the indexes of a table were used; nil if nothing counted it.
func (e *everyUse) of(t *define.Table) *advise.Use {
	w, written := e.written[keyOf(t.Schema, t.Name)]
	u := &advise.Use{Inserted: w.inserted, Updated: w.updated, Deleted: w.deleted, Reads: map[string]float64{}}
	for _, k := range t.Keys {
		key := keyOf(t.Schema, t.Name, k.Name)
		if reads, ok := e.reads[key]; ok {
			u.Reads[k.Name] = reads
		} else if _, ok := slices.BinarySearch(e.idle, key); ok {
			u.Reads[k.Name] = 0
		}
	}
	if len(u.Reads) == 0 && !written {
		return nil
	}
	return u
}

// tellsUnused reports whether it is to be said which indexes nothing used.
func (g *gatherer) tellsUnused() bool {
	c := g.server.Counting
	return c.By != "" && (c.Since.IsZero() || g.server.Now.Sub(c.Since) >= c.After) && (g.o.Wanted == nil || g.o.Wanted("index.unused"))
}

// mayBeUnused reports whether an index of a table may be one that nothing used, so that its definition is needed.
func (g *gatherer) mayBeUnused(u *advise.Use) bool {
	if !g.tellsUnused() {
		return false
	}
	if g.server.Counting.By == "userstat" { // it lists only what was used
		return true
	}
	if u != nil {
		for _, reads := range u.Reads {
			if reads == 0 {
				return true
			}
		}
	}
	return false
}

// usedBy notes which indexes of a schema are used, for other servers that are asked together.
func (g *gatherer) usedBy(schema string, used map[string]*advise.Use) {
	for table, u := range used {
		t := &advise.Table{Table: define.Table{Schema: schema, Name: table}, Use: &advise.Use{Reads: maps.Clone(u.Reads)}}
		if g.kept != nil {
			g.kept.add(t, g.started())
		}
		g.indexes.UsedOf(t)
	}
}

// started is when the server was started.
func (g *gatherer) started() time.Time {
	return g.server.Now.Add(-time.Duration(g.server.Status["uptime"]) * time.Second)
}

// use is what is known of how the indexes of a table were used. userstat lists only what was used; performance_schema lists all of a table
// that was opened.
func (g *gatherer) use(t *advise.Table, of map[string]*advise.Use) *advise.Use {
	u := of[t.Name]
	if g.server.Counting.By != "userstat" {
		return u
	}
	if u == nil {
		u = &advise.Use{Reads: map[string]float64{}}
	}
	for _, k := range t.Keys {
		if _, ok := u.Reads[k.Name]; !ok {
			u.Reads[k.Name] = 0
		}
	}
	return u
}

// One reads a table, and of the server what says whether its indexes are needed: foreign keys of all tables, hints of all views, programs and
// statements that are counted. The table is nil if there is none of that name. traffic is Options.Traffic.
func One(ctx context.Context, target mysql.Target, traffic *mysql.Traffic, name mysql.TableName) (*advise.Server, *advise.Table, error) {
	choice, err := pattern.NewChoice(nil, nil)
	if err != nil {
		return nil, nil, err
	}
	g, end, err := begin(ctx, target, Options{Choice: choice, Wanted: func(string) bool { return false }, NoLoad: true, Traffic: traffic})
	if err != nil {
		return nil, nil, err
	}
	defer end()
	if err := g.whole(ctx); err != nil {
		return nil, nil, err
	}
	for _, read := range []func(context.Context) error{g.programs, g.views} {
		if err := read(ctx); err != nil {
			return nil, nil, err
		}
	}
	create, err := define.CreateTable(ctx, g.stream, name)
	if err != nil {
		if mysql.ErrorNumber(err) == errno.NoSuchTable {
			return g.server, nil, nil
		}
		return nil, nil, err
	}
	d, err := define.ParseTable(name.Schema, create)
	if err != nil {
		return nil, nil, err
	}
	t := &advise.Table{Table: d}
	stats, err := g.statistics(ctx, name.Schema)
	if err != nil {
		return nil, nil, err
	}
	if m := stats.of[name.Name]; m != nil {
		t.Bytes = m.bytes
	}
	used, err := g.usage(ctx, name.Schema)
	if err != nil {
		return nil, nil, err
	}
	t.Use = g.use(t, used)
	return g.server, t, nil
}
