package plan

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sqltext"
)

// TableFacts is what a server knows about a table that a plan reads. Sizes are bytes, and estimates of the server.
type TableFacts struct {
	Name         string // as the plan calls it: the alias where the statement has one
	Schema       string
	Table        string
	Engine       string
	Rows         float64
	DataLength   float64 // of the clustered index
	IndexLength  float64 // of all other indexes
	AvgRowLength float64
	PageSize     float64
	ColumnKey    float64 // most bytes of one column in an index; 0: as many as the whole key may have
	ServesDates  bool    // DATE and YEAR of a column are ranges of its index (MariaDB 11.1)
	ServesUpper  bool    // UPPER of a column finds by its index, in some collations (MariaDB 11.3)
	Descending   bool    // an index may have columns in descending order (MySQL 8.0, MariaDB 10.8)
	Columns      []ColumnFacts
	Indexes      []IndexFacts
	Sample       *Sample // what some of its rows showed; nil if none were read
}

// ColumnFacts describes a column by its declaration.
type ColumnFacts struct {
	Name      string
	Type      string // int, varchar, datetime … in lower case
	Octets    float64
	Chars     float64 // declared length of a string in characters
	Precision int     // digits of a decimal, or of the part of a second
	Scale     int
	Nullable  bool
	Charset   string // of a string
	Collation string
}

// IndexFacts is an index and its columns in order, "" for an expression; Prefix is the length of a prefix, or 0, and
// Distinct how many different values the columns up to there have, as the server estimates, or 0.
type IndexFacts struct {
	Name     string
	Unique   bool
	BTree    bool
	Columns  []string
	Prefix   []int
	Distinct []float64
}

// column finds a column by its name, in any case.
func (t *TableFacts) column(name string) *ColumnFacts {
	for i := range t.Columns {
		if strings.EqualFold(t.Columns[i].Name, name) {
			return &t.Columns[i]
		}
	}
	return nil
}

// primary returns the columns of the clustered index: the primary key, or nothing.
func (t *TableFacts) primary() []string {
	for _, i := range t.Indexes {
		if i.Name == "PRIMARY" {
			return i.Columns
		}
	}
	return nil
}

// tableName is a table as the statement names it.
type tableName struct{ schema, table string }

// notAliases are words that may follow a table and are no alias.
var notAliases = map[string]bool{"ON": true, "USING": true, "WHERE": true, "JOIN": true, "LEFT": true, "RIGHT": true, "INNER": true, "CROSS": true,
	"NATURAL": true, "STRAIGHT_JOIN": true, "GROUP": true, "ORDER": true, "HAVING": true, "LIMIT": true, "UNION": true, "EXCEPT": true,
	"INTERSECT": true, "SET": true, "FORCE": true, "USE": true, "IGNORE": true, "PARTITION": true, "FOR": true, "WINDOW": true, "SELECT": true,
	"VALUES": true, "INTO": true, "PROCEDURE": true, "LOCK": true, "FROM": true, "AS": true, "OUTER": true, "WITH": true, "TABLESAMPLE": true}

// aliases finds what the tables of a statement are called: alias (or name) to table.
func aliases(sql string) map[string]tableName {
	out := map[string]tableName{}
	t := lex(sql)
	from := []bool{false} // whether a list of tables is being read, by depth of parentheses
	for i := 0; i < len(t); i++ {
		top := len(from) - 1
		punct := t[i].Kind == sqltext.TokenSign
		switch word := strings.ToUpper(t[i].Text); {
		case punct && word == "(":
			// Only after FROM, JOIN or a comma of the list is it a list of tables in parentheses.
			from = append(from, from[top] && i > 0 && beginsTable[strings.ToUpper(t[i-1].Text)])
			if !from[top+1] {
				continue
			}
		case punct && word == ")":
			from = from[:max(1, top)]
			continue
		case t[i].Kind == sqltext.TokenWord && beginsTable[word]:
			from[top] = true
		case t[i].Kind == sqltext.TokenWord && endsTables[word]:
			from[top] = false
			continue
		case punct && word == "," && from[top]:
		default:
			continue
		}
		alias, table, next := tableAt(t, i+1)
		if alias == "" {
			continue
		}
		if _, ok := out[alias]; !ok {
			out[alias] = table
		}
		i = next - 1
	}
	return out
}

var (
	beginsTable = map[string]bool{"FROM": true, "JOIN": true, "STRAIGHT_JOIN": true, "UPDATE": true, "INTO": true, ",": true, "(": true}
	endsTables  = map[string]bool{"WHERE": true, "SELECT": true, "SET": true, "GROUP": true, "ORDER": true, "VALUES": true, "HAVING": true, "LIMIT": true, "UNION": true}
)

// tableAt reads a table and its alias at a place in the tokens; alias is "" if there is none.
func tableAt(t []token, i int) (alias string, table tableName, next int) {
	name := func(i int) bool {
		return i < len(t) && (t[i].Kind == sqltext.TokenName || t[i].Kind == sqltext.TokenWord && !notAliases[strings.ToUpper(t[i].Text)])
	}
	if !name(i) {
		return "", tableName{}, i
	}
	table = tableName{table: t[i].Text}
	i++
	if i+1 < len(t) && t[i].Text == "." && t[i+1].Name() {
		table = tableName{table.table, t[i+1].Text}
		i += 2
	}
	alias = table.table
	if i < len(t) && strings.EqualFold(t[i].Text, "AS") {
		i++
	}
	if name(i) {
		alias = t[i].Text
		i++
	}
	return alias, table, i
}

// tablesOf are the tables that a plan reads, by the names it has for them.
func tablesOf(p *Plan, sql string) map[string]tableName {
	known := aliases(p.Rewritten)
	for _, text := range append([]string{sql}, p.views...) {
		for alias, t := range aliases(text) {
			if _, ok := known[alias]; !ok {
				known[alias] = t
			}
		}
	}
	out := map[string]tableName{}
	for alias, t := range aliases(sql) { // one of a single row may have no step in the plan
		out[alias] = t
	}
	p.Root.Walk(func(n, _ *Node, _ int) {
		if n.Kind != KindTable || n.Inner() {
			return
		}
		t := tableName{n.Schema, n.Table}
		if k, ok := known[n.Table]; ok && n.Alias == "" {
			t = k
		}
		out[n.Name()] = t
	})
	return out
}

// smallKey is how many bytes of a column an index may have in the row formats COMPACT and REDUNDANT, and in all of them
// while innodb_large_prefix is off (https://dev.mysql.com/doc/refman/5.7/en/innodb-limits.html).
const smallKey = 767

// maxTables bounds how many tables of a plan are looked up.
const maxTables = 61 // the most that a join may have

// ReadFacts asks for sizes, columns and indexes of the tables that a plan reads; sql is the statement, for its
// aliases. Tables that the account may not see are left out.
func ReadFacts(ctx context.Context, c *mysql.Conn, p *Plan, sql string) ([]TableFacts, error) {
	var pageSize float64 = 16384
	if rows, err := c.Maps(ctx, "SELECT /* risso: page size */ @@innodb_page_size AS size, DATABASE() AS db"); err == nil && len(rows) == 1 {
		if f, ok := number(rows[0]["size"]); ok && f > 0 {
			pageSize = float64(f)
		}
	}
	if s := c.Server.FreshStatistics(); s != "" {
		if err := c.Exec(ctx, s); err != nil && mysql.ClassOf(err) != mysql.ClassMissing {
			return nil, fmt.Errorf("ask for fresh statistics: %w", err)
		}
	}
	large := true
	if rows, err := c.Maps(ctx, "SHOW /* risso: length of keys */ VARIABLES LIKE 'innodb_large_prefix'"); err == nil && len(rows) == 1 {
		for _, v := range rows[0] {
			large = large && !strings.EqualFold(v, "OFF")
		}
	}
	if err := readViews(ctx, c, p, sql); err != nil {
		return nil, err
	}
	var out []TableFacts
	for name, t := range tablesOf(p, sql) {
		if len(out) == maxTables {
			break
		}
		f := TableFacts{Name: name, Schema: t.schema, Table: t.table, PageSize: pageSize, Descending: c.Server.DescendingIndexes(), ServesDates: c.Server.ServesDates(), ServesUpper: c.Server.ServesUpper()}
		found, err := readTable(ctx, c, &f)
		if err != nil {
			return nil, err
		}
		if found {
			if !large {
				f.ColumnKey = smallKey
			}
			out = append(out, f)
		}
	}
	takeSamples(ctx, c, p, out, sql)
	return out, nil
}

// readViews asks for the texts of the statement's views where the plan reads tables that no text names.
func readViews(ctx context.Context, c *mysql.Conn, p *Plan, sql string) error {
	hidden := false
	texts := append(blocksOf(sql), blocksOf(p.Rewritten)...)
	p.Root.Walk(func(n, _ *Node, _ int) {
		hidden = hidden || n.Kind == KindTable && !n.Inner() && blockOf(texts, n.Name()) == nil
	})
	if !hidden || sql == "" {
		return nil
	}
	rows, err := c.Maps(ctx, "SELECT /* risso: plan */ DATABASE() AS db")
	if err != nil || len(rows) != 1 {
		return wrap("ask for the default database", err)
	}
	views, err := viewsOf(ctx, c, rows[0]["db"], sql)
	if err != nil {
		return err
	}
	p.views = nil
	for _, v := range views {
		p.views = append(p.views, v.body)
	}
	return nil
}

// readTable fills in one table's facts; it reports false when there is none of that name.
func readTable(ctx context.Context, c *mysql.Conn, f *TableFacts) (bool, error) {
	schema := "DATABASE()"
	if f.Schema != "" {
		schema = literal(f.Schema)
	}
	where := " WHERE TABLE_SCHEMA = " + schema + " AND TABLE_NAME = " + literal(f.Table)
	rows, err := c.Maps(ctx, `SELECT /* risso: table size */ TABLE_SCHEMA AS s, ENGINE AS engine, TABLE_ROWS AS n, DATA_LENGTH AS data, INDEX_LENGTH AS idx, AVG_ROW_LENGTH AS avg, ROW_FORMAT AS format
  FROM information_schema.TABLES`+where+` AND TABLE_TYPE = 'BASE TABLE'`)
	if err != nil || len(rows) == 0 {
		return false, wrap("read the size of "+f.Table, err)
	}
	r := rows[0]
	f.Schema, f.Engine = r["s"], r["engine"]
	if format := strings.ToUpper(r["format"]); format == "COMPACT" || format == "REDUNDANT" {
		f.ColumnKey = smallKey
	}
	for name, to := range map[string]*float64{"n": &f.Rows, "data": &f.DataLength, "idx": &f.IndexLength, "avg": &f.AvgRowLength} {
		*to, _ = strconv.ParseFloat(r[name], 64)
	}
	if rows, err = c.Maps(ctx, `SELECT /* risso: columns */ COLUMN_NAME AS name, DATA_TYPE AS type, CHARACTER_OCTET_LENGTH AS octets, CHARACTER_MAXIMUM_LENGTH AS chars,
  COALESCE(NUMERIC_PRECISION, DATETIME_PRECISION) AS prec, NUMERIC_SCALE AS scale, IS_NULLABLE AS nullable, CHARACTER_SET_NAME AS charset, COLLATION_NAME AS collation
  FROM information_schema.COLUMNS`+where+` ORDER BY ORDINAL_POSITION`); err != nil {
		return false, wrap("read the columns of "+f.Table, err)
	}
	for _, r := range rows {
		col := ColumnFacts{Name: r["name"], Type: strings.ToLower(r["type"]), Nullable: r["nullable"] == "YES", Charset: r["charset"], Collation: r["collation"]}
		col.Octets, _ = strconv.ParseFloat(r["octets"], 64)
		col.Chars, _ = strconv.ParseFloat(r["chars"], 64)
		col.Precision, _ = strconv.Atoi(r["prec"])
		col.Scale, _ = strconv.Atoi(r["scale"])
		f.Columns = append(f.Columns, col)
	}
	if rows, err = c.Maps(ctx, `SELECT /* risso: indexes */ INDEX_NAME AS name, NON_UNIQUE AS dup, COLUMN_NAME AS col, SUB_PART AS part, INDEX_TYPE AS type, CARDINALITY AS card
  FROM information_schema.STATISTICS`+where+` ORDER BY INDEX_NAME, SEQ_IN_INDEX`); err != nil {
		return false, wrap("read the indexes of "+f.Table, err)
	}
	for _, r := range rows {
		if len(f.Indexes) == 0 || f.Indexes[len(f.Indexes)-1].Name != r["name"] {
			f.Indexes = append(f.Indexes, IndexFacts{Name: r["name"], Unique: r["dup"] == "0", BTree: r["type"] == "BTREE"})
		}
		i := &f.Indexes[len(f.Indexes)-1]
		prefix, _ := strconv.Atoi(r["part"])
		distinct, _ := strconv.ParseFloat(r["card"], 64)
		i.Columns, i.Prefix, i.Distinct = append(i.Columns, r["col"]), append(i.Prefix, prefix), append(i.Distinct, distinct)
	}
	return true, nil
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// literal quotes text for a statement; it holds under every SQL mode because it is hexadecimal.
func literal(s string) string {
	if s == "" {
		return "''"
	}
	return fmt.Sprintf("CONVERT(X'%x' USING utf8)", s)
}
