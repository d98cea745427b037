package gather

import (
	"context"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// outline is what information_schema tells of a table without its definition, which takes a server as long as all of this together: only
// where something may be wrong, its definition is read.
type outline struct {
	suspect bool     // a check may find something
	primary bool     // it has a primary key
	indexes int      // how many it has
	leads   []string // first columns of its indexes, in small letters
	most    float64  // the largest AUTO_INCREMENT value; 0: there is none
}

// outlines reads them for a schema. What is missing from them has to be looked at by its definition.
func (g *gatherer) outlines(ctx context.Context, schema string, together *advise.Schema) (map[string]*outline, error) {
	out := map[string]*outline{}
	of := func(table []byte) *outline {
		o := out[string(table)]
		if o == nil {
			o = &outline{}
			out[string(table)] = o
		}
		return o
	}
	hiddenColumn, hidden := g.server.HiddenIndexColumn()
	if hiddenColumn == "" {
		hiddenColumn = "''"
	}
	err := g.query(ctx, "SELECT /* risso: indexes */ TABLE_NAME, INDEX_NAME, COLUMN_NAME, "+hiddenColumn+" FROM information_schema.STATISTICS WHERE SEQ_IN_INDEX = 1 AND TABLE_SCHEMA = "+mysql.Literal(schema), func(row [][]byte) error {
		o := of(row[0])
		lead := strings.ToLower(string(row[2]))
		// An index can only do the work of another that begins with the same column.
		o.suspect = o.suspect || slices.Contains(o.leads, lead) || hidden != "" && string(row[3]) == hidden
		o.leads = append(o.leads, lead)
		o.primary = o.primary || string(row[1]) == "PRIMARY"
		o.indexes++
		return nil
	})
	if err != nil {
		return nil, g.missing("indexes of "+mysql.Quote(schema), err)
	}
	err = g.query(ctx, "SELECT /* risso: columns */ TABLE_NAME, COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_SET_NAME, COLLATION_NAME, EXTRA FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = "+mysql.Literal(schema), func(row [][]byte) error {
		o := of(row[0])
		kind, full, charset := string(row[2]), string(row[3]), string(row[4])
		o.suspect = o.suspect || charset == "utf8" || charset == "utf8mb3" || strings.Contains(full, "zerofill") || strings.Contains(full, "/*") || full == "year(2)" ||
			(kind == "float" || kind == "double") && strings.Contains(full, ",")
		if name := string(row[0]); mysql.GeometryType(kind) && g.chosen(schema, name) {
			g.spatial[mysql.TableName{Schema: schema, Name: name}] = true
		}
		if strings.Contains(string(row[6]), "auto_increment") {
			o.most = advise.LargestAuto(define.TableColumn{Type: kind, Unsigned: strings.Contains(full, "unsigned")})
		}
		if len(row[5]) > 0 && kind != "enum" && kind != "set" && slices.Contains(o.leads, strings.ToLower(string(row[1]))) {
			if g.chosen(schema, string(row[0])) {
				together.Add(schema+"."+string(row[0]), string(row[1]), string(row[5]))
			}
		}
		return nil
	})
	if err != nil {
		return nil, g.missing("columns of "+mysql.Quote(schema), err)
	}
	return out, nil
}

// suspect reports whether a check may find something in a table's definition.
func (g *gatherer) suspect(schema string, x *size, o *outline, stats *statistics) bool {
	if o == nil || o.suspect || !o.primary || o.indexes >= advise.ManyIndexes || x.partitioned || !strings.EqualFold(x.engine, "InnoDB") {
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
	name := g.fold(mysql.TableName{Schema: schema, Name: x.name})
	if _, parent := g.wanted[name]; parent || g.children[name] {
		return true
	}
	if stats != nil && stats.tables != nil {
		if !stats.tables[x.name] && x.rows >= advise.UnmeasuredRows {
			return true
		}
		if x.rows >= advise.UnselectiveRows {
			for _, different := range stats.different[x.name] {
				if different < x.rows/20 {
					return true
				}
			}
		}
	}
	return false
}
