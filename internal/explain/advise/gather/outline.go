package gather

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// outline is what information_schema tells of a table without its definition. To read a definition a server opens the table, which costs it more
// than all of this together: it is read only where something may be wrong, and where an outline is enough to rank what is wrong, only of what is
// told in the end.
type outline struct {
	suspect bool     // a check may find something in what is not outlined
	alike   bool     // two indexes begin with one column: one of them may be redundant
	odd     bool     // it has an index that is not outlined whole
	primary bool     // it has a primary key
	unique  bool     // it has other unique indexes
	old     bool     // it has text of a character set that is going to be removed
	indexes int      // how many it has
	leads   []string // first columns of its indexes, in small letters
	most    float64  // the largest AUTO_INCREMENT value; 0: there is none

	// table has the indexes, whole if the server has a dictionary and by their first columns if not, and of columns what decides whether they
	// are needed.
	table define.Table
}

// key is an index of the outline.
func (o *outline) key(name string) *define.TableKey {
	for i := len(o.table.Keys) - 1; i >= 0; i-- {
		if o.table.Keys[i].Name == name {
			return &o.table.Keys[i]
		}
	}
	o.table.Keys = append(o.table.Keys, define.TableKey{Name: name})
	return &o.table.Keys[len(o.table.Keys)-1]
}

// column is a column of the outline.
func (o *outline) column(name string) *define.TableColumn {
	for i := range o.table.Columns {
		if strings.EqualFold(o.table.Columns[i].Name, name) {
			return &o.table.Columns[i]
		}
	}
	o.table.Columns = append(o.table.Columns, define.TableColumn{Name: name})
	return &o.table.Columns[len(o.table.Columns)-1]
}

// names keeps each text once: columns, indexes and engines of many tables are called alike.
type names map[string]string

func (n names) of(b []byte) string {
	if s, ok := n[string(b)]; ok {
		return s
	}
	s := string(b)
	n[s] = s
	return s
}

// outlines are those of the tables of a schema, by name.
type outlines struct {
	of    map[string]*outline
	names names
	last  *outline // rows of one table come together
}

func (l *outlines) table(schema string, name []byte) *outline {
	if l.last != nil && l.last.table.Name == string(name) {
		return l.last
	}
	if l.last = l.of[string(name)]; l.last == nil {
		l.last = &outline{table: define.Table{Schema: schema, Name: string(name)}}
		l.of[l.last.table.Name] = l.last
	}
	return l.last
}

// outlines reads them for a schema. What is missing from them has to be looked at by its definition.
func (g *gatherer) outlines(ctx context.Context, schema string, together *advise.Schema) (map[string]*outline, error) {
	l := &outlines{of: map[string]*outline{}, names: names{}}
	if err := g.query(ctx, g.indexesStatement(schema), g.index(schema, l)); err != nil {
		return nil, g.missing("indexes of "+mysql.Quote(schema), err)
	}
	err := g.query(ctx, g.columnsStatement(schema), func(row [][]byte) error {
		o := l.table(schema, row[0])
		kind, full, charset := string(row[2]), string(row[3]), string(row[4])
		if name := string(row[0]); mysql.GeometryType(kind) && g.chosen(schema, name) {
			g.spatial[mysql.TableName{Schema: schema, Name: name}] = true
		}
		o.suspect = o.suspect || strings.Contains(full, "zerofill") || strings.Contains(full, "/*") || full == "year(2)" || (kind == "float" || kind == "double") && strings.Contains(full, ",")
		if charset == "utf8" || charset == "utf8mb3" {
			o.old = true
			o.column(l.names.of(row[1])).Charset = l.names.of(row[4])
		}
		if strings.Contains(string(row[6]), "auto_increment") {
			c := o.column(l.names.of(row[1]))
			c.Auto, c.Type, c.Unsigned = true, kind, strings.Contains(full, "unsigned")
			o.most = advise.LargestAuto(*c)
		}
		if len(row[5]) > 0 && kind != "enum" && kind != "set" && slices.Contains(o.leads, strings.ToLower(string(row[1]))) {
			if name := string(row[0]); g.chosen(schema, name) {
				together.Add(schema+"."+name, string(row[1]), string(row[5]))
			}
		}
		return nil
	})
	if err != nil {
		return nil, g.missing("columns of "+mysql.Quote(schema), err)
	}
	return l.of, nil
}

// columnsStatement asks for the columns of a schema in which something may be wrong, and for all that are in an index: those that begin one, and those
// of AUTO_INCREMENT, are among those that have a COLUMN_KEY. MySQL since 8.0 looks up the character set of a column, which costs it more than all
// else, for columns only of which no condition before needs it.
func (g *gatherer) columnsStatement(schema string) string {
	statement := `SELECT /* risso: columns */ TABLE_NAME, COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_SET_NAME, COLLATION_NAME, EXTRA FROM information_schema.COLUMNS
  WHERE TABLE_SCHEMA = ` + mysql.Literal(schema)
	text := `CHARACTER_SET_NAME IN ('utf8', 'utf8mb3') OR DATA_TYPE IN ('` + strings.Join(mysql.GeometryTypes(), "', '") + `')`
	if g.server.Dictionary() {
		return statement + ` AND (COLUMN_KEY <> '' OR COLUMN_TYPE LIKE '%zerofill' OR COLUMN_TYPE LIKE 'float(%,%' OR COLUMN_TYPE LIKE 'double(%,%' OR NUMERIC_PRECISION IS NULL AND DATETIME_PRECISION IS NULL)
    AND (COLUMN_KEY <> '' OR NUMERIC_PRECISION IS NOT NULL OR ` + text + `)`
	}
	return statement + ` AND (COLUMN_KEY <> '' OR COLUMN_TYPE LIKE '%zerofill%' OR COLUMN_TYPE LIKE '%/*%' OR COLUMN_TYPE = 'year(2)'
    OR DATA_TYPE IN ('float', 'double') AND COLUMN_TYPE LIKE '%,%' OR ` + text + `)`
}

// indexesStatement asks for the indexes of a schema. Where the server has to open tables to tell what an index is like, it is asked for first
// columns only.
func (g *gatherer) indexesStatement(schema string) string {
	hiddenColumn, _ := g.server.HiddenIndexColumn()
	if hiddenColumn == "" {
		hiddenColumn = "''"
	}
	details, which := "", "SEQ_IN_INDEX = 1 AND "
	if g.server.Dictionary() {
		details, which = ", SEQ_IN_INDEX, SUB_PART, COLLATION, NULLABLE, INDEX_TYPE", ""
	}
	return "SELECT /* risso: indexes */ TABLE_NAME, INDEX_NAME, COLUMN_NAME, NON_UNIQUE, " + hiddenColumn + details + " FROM information_schema.STATISTICS WHERE " + which + "TABLE_SCHEMA = " + mysql.Literal(schema)
}

// index takes a row of an index.
func (g *gatherer) index(schema string, l *outlines) func(row [][]byte) error {
	_, hidden := g.server.HiddenIndexColumn()
	return func(row [][]byte) error {
		o := l.table(schema, row[0])
		name, column := l.names.of(row[1]), l.names.of(row[2])
		at, details := 1, len(row) > 5
		if details {
			at, _ = strconv.Atoi(string(row[5]))
			o.odd = o.odd || string(row[9]) != "BTREE" || row[2] == nil // an expression
		}
		k := o.key(name)
		if k.Unique = string(row[3]) == "0"; at == 1 {
			lead := strings.ToLower(column)
			// An index can only do the work of another that begins with the same column.
			o.alike = o.alike || slices.Contains(o.leads, lead)
			o.suspect = o.suspect || hidden != "" && string(row[4]) == hidden
			o.leads = append(o.leads, l.names.of([]byte(lead)))
			o.primary = o.primary || name == "PRIMARY"
			o.unique = o.unique || k.Unique && name != "PRIMARY"
			o.indexes++
		}
		for len(k.Parts) < at {
			k.Parts = append(k.Parts, define.KeyPart{})
		}
		p := &k.Parts[at-1]
		if p.Column = column; !details {
			return nil
		}
		p.Prefix, _ = strconv.Atoi(string(row[6]))
		p.Descending = string(row[7]) == "D"
		if k.Unique {
			o.column(column).Nullable = string(row[8]) == "YES"
		}
		return nil
	}
}

// suspect reports whether a check may find something in a table's definition that its outline does not tell.
func (g *gatherer) suspect(x *size, o *outline, stats *statistics) bool {
	if o == nil || o.suspect || o.indexes >= advise.ManyIndexes || x.partitioned || !x.plain || !strings.EqualFold(x.engine, "InnoDB") {
		return true
	}
	switch strings.ToLower(x.format) {
	case "dynamic", "compressed", "":
	default:
		return true
	}
	if o.most > 0 && advise.AutoUsed(x.next, o.most) {
		return true
	}
	if stats == nil || !stats.known {
		return false
	}
	measured := stats.of[x.table.Name]
	if measured == nil {
		return x.rows >= advise.UnmeasuredRows
	}
	if x.rows >= advise.UnselectiveRows {
		for _, different := range measured.different {
			if different < x.rows/20 {
				return true
			}
		}
	}
	return false
}

// doubtful reports whether a check may find something in a table, and ranked whether its outline tells enough to rank and count what.
func (g *gatherer) doubtful(x *size, o *outline, used *advise.Use) (doubt, ranked bool) {
	name := g.fold(x.table)
	_, parent := g.wanted[name]
	if keyed := parent || len(g.children[name]) > 0; keyed || o.alike || g.mayBeUnused(used) {
		return true, g.server.Dictionary() && !o.odd
	}
	if !o.primary {
		return true, g.o.TestKeys == 0 && (g.server.Dictionary() && !o.odd || !o.unique)
	}
	return o.old, true
}

// outlined is a table as far as its outline tells it.
func (g *gatherer) outlined(x *size, o *outline, stats *statistics, used *advise.Use) *advise.Table {
	t := x.of(o.table, stats)
	t.Engine, t.ForeignKeys, t.Use = x.engine, g.children[g.fold(x.table)], used
	return t
}
