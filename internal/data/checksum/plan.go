package checksum

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/define/alike"
)

// job is a table to be compared.
type job struct {
	schema, name string
	rows         int64 // as the server estimates
	width        int64 // estimated bytes of a row
}

// plan is how a table is compared.
type plan struct {
	job
	here  define.Table
	key   chunk.Key // by which it is cut, with Cuts 0 if it cannot be
	uniq  bool      // the key names single rows
	text  bool      // character sets differ: values are compared in utf8mb4
	order []int     // of here.Columns in a row's word
	notes []string
	peers []peer
}

// peer is the table on another server.
type peer struct {
	table define.Table
	key   chunk.Key // Name "" if there is no such index
	skip  Verdict   // why it is not compared; "": it is
	fail  error
	notes []string
}

// define reads a table's definition.
func (l *link) define(ctx context.Context, schema, name string) (t define.Table, err error) {
	err = l.rows(ctx, func(s *mysql.Stream) error {
		create := ""
		err := s.Query(ctx, "SHOW /* risso: definition */ CREATE TABLE "+mysql.Quote(schema)+"."+mysql.Quote(name), func(row [][]byte) error {
			create = string(row[1])
			return nil
		})
		if err != nil {
			return err
		}
		t, err = define.ParseTable(schema, create)
		return err
	})
	return t, err
}

// collation is a column's, or the default of its character set.
func (s *side) collation(c define.TableColumn) string { return s.collations.Of(c) }

// match fits the definitions to each other: the columns that all have, the key by which all can be cut.
func match(p *plan, primary *side, others []*side) {
	var shared []define.TableColumn
	for _, c := range chunk.Columns(p.here) {
		everywhere := true
		for i := range p.peers {
			e := &p.peers[i]
			if e.skip != "" {
				continue
			}
			o, ok := e.table.Column(c.Name)
			if !ok || o.Generated {
				e.notes = append(e.notes, "it has no column "+c.Name+", which is not compared")
				everywhere = false
				continue
			}
			if o.Type == "json" {
				c.Type = "json" // MariaDB's JSON is text: it may be written otherwise
			}
			p.text = p.text || alike.CharsetOf(o) != alike.CharsetOf(c)
			e.notes = append(e.notes, columnNotes(c, o, primary.collation(c), others[i].collation(o))...)
		}
		if everywhere {
			shared = append(shared, c)
		}
	}
	generated := len(p.here.Columns) - len(chunk.Columns(p.here))
	if generated > 0 {
		p.notes = append(p.notes, fmt.Sprintf("%d generated columns follow from others and are not compared", generated))
	}
	full := p.here
	p.here.Columns = asText(shared, p.text)
	p.order = wordOrder(p.here.Columns)
	key, ok := chunk.KeyOf(full)
	for _, c := range key.Order { // a key that is not compared cuts nothing
		if _, there := p.here.Column(c.Name); !there {
			ok = false
		}
	}
	p.uniq = ok
	if ok {
		p.key = key
		p.key.Order = asText(key.Order, p.text)
		p.key.Cuts = min(p.key.Cuts, sharedCuts(p, key, primary, others))
	} else {
		p.key = chunk.Key{}
		p.notes = append(p.notes, "it has no key that identifies its rows: it is compared as one chunk, and its rows are counted, not matched")
	}
	if !transactional(full.Engine) {
		p.notes = append(p.notes, full.Engine+" locks the table against writers while a chunk is read")
	}
	for i := range p.peers {
		p.peers[i].fit(p)
	}
}

// asText is columns as the session returns them.
func asText(list []define.TableColumn, text bool) []define.TableColumn {
	out := slices.Clone(list)
	for i := range out {
		if text && out[i].Charset != "" {
			out[i].Charset = "utf8mb4"
		}
	}
	return out
}

// sharedCuts is how many of the key's first columns are in the same order everywhere.
func sharedCuts(p *plan, key chunk.Key, primary *side, others []*side) int {
	for n, c := range key.Order {
		for i := range p.peers {
			if p.peers[i].skip != "" {
				continue
			}
			o, ok := p.peers[i].table.Column(c.Name)
			if !ok || isText(c) != isText(o) || primary.collation(c) != others[i].collation(o) {
				if n > 0 || len(key.Order) > 0 {
					p.peers[i].notes = append(p.peers[i].notes, "key column "+c.Name+" sorts differently there: it is not split by it")
				}
				// Rows equal in the columns before may lie on both sides of a cut only if those are text; then none is cut.
				for _, b := range key.Order[:n] {
					if isText(b) {
						return 0
					}
				}
				return n
			}
		}
	}
	return len(key.Order)
}

func isText(c define.TableColumn) bool { return c.Charset != "" }

// transactional reports whether reading does not lock writers out.
func transactional(engine string) bool {
	switch strings.ToLower(engine) {
	case "innodb", "rocksdb", "tokudb", "ndbcluster", "columnstore":
		return true
	}
	return false
}

// fit makes the peer's table return the same columns in the same order.
func (e *peer) fit(p *plan) {
	if e.skip != "" {
		return
	}
	has := ""
	for _, k := range e.table.Keys {
		if k.Hidden || k.Special || len(k.Parts) < len(p.key.Order) {
			continue
		}
		fits := true
		for i, c := range p.key.Order {
			fits = fits && strings.EqualFold(k.Parts[i].Column, c.Name) && k.Parts[i].Prefix == 0 && k.Parts[i].Descending == p.key.Desc[i]
		}
		if fits && (has == "" || k.Name == p.key.Name) {
			has = k.Name
		}
	}
	if p.uniq && has == "" {
		e.notes = append(e.notes, "it has no index like the primary's "+p.key.Name+": each chunk reads the whole table there, so it is split into only a few")
	}
	e.key = p.key
	e.key.Name = has
	if !strings.EqualFold(e.table.Engine, p.here.Engine) {
		n := "its engine is " + e.table.Engine + ", not " + p.here.Engine
		if !transactional(e.table.Engine) {
			n += ": it cannot be written there, not even by replication, while a chunk is read"
		}
		e.notes = append(e.notes, n)
	}
	var extra []string
	for _, c := range chunk.Columns(e.table) {
		if _, ok := p.here.Column(c.Name); !ok {
			extra = append(extra, c.Name)
		}
	}
	if len(extra) > 0 {
		e.notes = append(e.notes, "columns that the primary does not have are not compared: "+strings.Join(extra, ", "))
	}
	// Generation is a matter of each side; what is read has the primary's names.
	columns := make([]define.TableColumn, len(p.here.Columns))
	for i, c := range p.here.Columns {
		o, _ := e.table.Column(c.Name)
		c.Type, c.FullType = o.Type, o.FullType
		columns[i] = c
	}
	e.table.Columns = columns
}

// columnNotes says how a column's definition differs.
func columnNotes(c, o define.TableColumn, here, there string) (notes []string) {
	if plainType(c) != plainType(o) {
		notes = append(notes, fmt.Sprintf("column %s is %s here and %s there", c.Name, c.FullType, o.FullType))
	}
	switch {
	case alike.CharsetOf(c) != alike.CharsetOf(o):
		notes = append(notes, fmt.Sprintf("column %s has character set %s here and %s there: its text is compared in utf8mb4", c.Name, c.Charset, o.Charset))
	case here != there && o.Type != "json":
		notes = append(notes, fmt.Sprintf("column %s has collation %s here and %s there", c.Name, here, there))
	}
	return notes
}

// plainType is a type without what means nothing: the display width of integers, which MySQL 8.0.19 took away, and MariaDB's
// other name for JSON.
func plainType(c define.TableColumn) string {
	full := strings.ToLower(c.FullType)
	switch c.Type {
	case "tinyint", "smallint", "mediumint", "int", "bigint", "year":
		t := c.Type
		if c.Unsigned {
			t += " unsigned"
		}
		return t
	case "json", "longtext":
		return "longtext"
	case "geomcollection", "geometrycollection":
		return "geometrycollection"
	}
	return full
}

// chosen reports whether a table is one that was asked for.
func (o *Options) chosen(schema, name string) bool { return o.choice.Both(schema, name) }

// chosenSchema reports whether a schema can have tables that were asked for.
func (o *Options) chosenSchema(schema string) bool { return o.choice.May(schema, true) }

// clusterSchema is what MySQL Shell keeps of an InnoDB cluster: each member's own business.
const clusterSchema = "mysql_innodb_cluster_metadata"

// schemas lists the schemas to be compared.
func (l *link) schemas(ctx context.Context, o *Options) (list []string, err error) {
	err = l.rows(ctx, func(s *mysql.Stream) error {
		list = nil
		return s.Query(ctx, "SHOW /* risso: which schemas? */ DATABASES", func(row [][]byte) error {
			name := string(row[0])
			if o.chosenSchema(name) && (!mysql.SystemSchema(name) && name != clusterSchema || slices.Contains(o.choice.Schemas(), name)) {
				list = append(list, name)
			}
			return nil
		})
	})
	return list, err
}

// tables lists the tables of a schema: no views, no sequences.
func (l *link) tables(ctx context.Context, schema string) (list []job, err error) {
	err = l.rows(ctx, func(s *mysql.Stream) error {
		list = nil
		return s.Query(ctx, "SELECT /* risso: which tables? */ TABLE_NAME, COALESCE(TABLE_ROWS, 0), COALESCE(AVG_ROW_LENGTH, 0) FROM information_schema.TABLES WHERE TABLE_SCHEMA = "+
			quoteText(schema)+" AND TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') ORDER BY TABLE_NAME", func(row [][]byte) error {
			j := job{schema: schema, name: string(row[0])}
			fmt.Sscan(string(row[1]), &j.rows)
			fmt.Sscan(string(row[2]), &j.width)
			list = append(list, j)
			return nil
		})
	})
	return list, err
}

// quoteText is a text as SQL takes it, whatever sql_mode says about backslashes.
func quoteText(s string) string {
	if s == "" {
		return "''"
	}
	return fmt.Sprintf("_utf8mb4 0x%x", s)
}
