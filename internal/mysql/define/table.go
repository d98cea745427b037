package define

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sqltext"
)

// Table is what a SHOW CREATE TABLE says about a table, as far as it matters for copying its rows.
type Table struct {
	Schema, Name string
	Engine       string
	Charset      string // default character set
	Collation    string // default collation, "" where the statement leaves it open
	Columns      []TableColumn
	Keys         []TableKey
	Sequence     bool // a MariaDB sequence: one row, which is no row of a table
	Versioned    bool // MariaDB keeps old rows of it: WITH SYSTEM VERSIONING
	Past         bool // including its rows of the past: WithHistory
	Partitioned  bool
	SpreadBy     []string // columns that say in which partition, and subpartition, a row is; each unique index has to contain them
	ForeignKeys  []ForeignKey
	Union        []mysql.TableName // of a MERGE table: what it is made of
	Create       string
}

// ForeignKey is a foreign key, as its table's definition says it.
type ForeignKey struct {
	Name       string
	Columns    []string
	Referenced mysql.TableName
	To         []string // columns that it refers to, in the order of Columns
}

// TableColumn is one column.
type TableColumn struct {
	Name      string
	Type      string // without length and in small letters: int, varchar, enum
	FullType  string // as the server writes it: int(10) unsigned
	Charset   string // of text; "" for all else
	Collation string // of text where the statement says it
	Nullable  bool
	Unsigned  bool
	Generated bool // made by an expression, stored or not, or by the server as the time of a row's version
	Invisible bool
	Auto      bool   // AUTO_INCREMENT
	Default   bool   // it has a default that is not NULL
	Period    string // of a versioned table: "START" or "END" of the time in which the row was so
}

// TableKey is one index.
type TableKey struct {
	Name    string // PRIMARY for the primary key
	Unique  bool
	Hidden  bool // invisible or ignored: it cannot be asked for by name
	Special bool // full-text, spatial, or other than a tree in its columns' order
	Parts   []KeyPart
	Text    string // its whole definition, as it stands in CREATE TABLE
}

// KeyPart is one column of an index, or an expression.
type KeyPart struct {
	Column     string // "" for an expression
	Prefix     int    // length of the indexed beginning; 0: the whole value
	Descending bool
	Expression string // as the server writes it, if there is no column
}

// Column finds a column by its name.
func (t *Table) Column(name string) (TableColumn, bool) {
	for _, c := range t.Columns {
		if strings.EqualFold(c.Name, name) {
			return c, true
		}
	}
	return TableColumn{}, false
}

// WithHistory is a versioned table with its rows of the past: the times from and to which each row was so are ordinary columns,
// and the end is part of each key (InnoDB appends it). Without names of their own they are row_start and row_end. ok is false if
// there is no history, or where it is kept by transactions instead of times: those numbers mean nothing elsewhere. Source: MariaDB
// documentation, "System-Versioned Tables".
func (t Table) WithHistory() (_ Table, ok bool) {
	if !t.Versioned {
		return t, false
	}
	t.Past = true
	t.Columns = slices.Clone(t.Columns)
	end := ""
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Period == "" {
			continue
		}
		if c.Type != "timestamp" {
			return t, false
		}
		if c.Generated, c.Nullable = false, false; c.Period == "END" {
			end = c.Name
		}
	}
	if end == "" {
		end = "row_end"
		t.Columns = append(t.Columns, TableColumn{Name: "row_start", Type: "timestamp", FullType: "timestamp(6)", Period: "START"},
			TableColumn{Name: end, Type: "timestamp", FullType: "timestamp(6)", Period: "END"})
	}
	t.Keys = slices.Clone(t.Keys)
	for i := range t.Keys {
		if t.Keys[i].Unique {
			t.Keys[i].Parts = append(slices.Clone(t.Keys[i].Parts), KeyPart{Column: end})
		}
	}
	return t, true
}

// errCreate is what every error about a CREATE TABLE wraps.
var errCreate = errors.New("cannot read the table's definition")

// ParseTable reads what SHOW CREATE TABLE gave, in a session without ANSI_QUOTES and with sql_quote_show_create.
func ParseTable(schema, create string) (Table, error) {
	t := Table{Schema: schema, Create: create, Sequence: strings.HasPrefix(create, "CREATE SEQUENCE")}
	code := sqltext.Tokens(create)
	name := slices.IndexFunc(code, func(x sqltext.Token) bool { return x.Kind == sqltext.TokenName })
	if name < 0 {
		return t, fmt.Errorf("%w: it has no name", errCreate)
	}
	if t.Name = code[name].Text; code[name].Open {
		return t, fmt.Errorf("%w: its name does not end", errCreate)
	}
	code = code[name+1:]
	if t.Sequence {
		t.options(code)
		return t, nil
	}
	if len(code) == 0 || code[0].Text != "(" {
		return t, fmt.Errorf("%w: %s has no columns", errCreate, mysql.Quote(t.Name))
	}
	inside, rest, ok := sqltext.Group(code)
	if !ok {
		return t, fmt.Errorf("%w: %s does not end", errCreate, mysql.Quote(t.Name))
	}
	t.options(rest)
	for _, e := range sqltext.Elements(inside) {
		if len(e) > 0 && e[0].Kind == sqltext.TokenName {
			c, err := t.column(e)
			if err != nil {
				return t, err
			}
			t.Columns = append(t.Columns, c)
			continue
		}
		t.key(e)
	}
	t.partitions(rest)
	return t, nil
}

// options reads what follows the columns.
func (t *Table) options(code []sqltext.Token) {
	depth := 0
	for i, x := range code {
		word := func(k int) string {
			if k < 0 || k >= len(code) || code[k].Kind == sqltext.TokenString {
				return ""
			}
			return code[k].Text
		}
		switch {
		case x.Text == "(" && x.Kind == sqltext.TokenSign:
			depth++
		case x.Text == ")" && x.Kind == sqltext.TokenSign:
			depth--
		}
		if depth != 0 || x.Kind != sqltext.TokenWord {
			continue
		}
		value := ""
		if word(i+1) == "=" {
			value = word(i + 2)
		}
		switch strings.ToUpper(x.Text) {
		case "ENGINE":
			t.Engine = cmp.Or(value, t.Engine)
		case "CHARSET":
			t.Charset = cmp.Or(value, t.Charset)
		case "COLLATE":
			t.Collation = cmp.Or(value, t.Collation)
		case "VERSIONING":
			t.Versioned = strings.EqualFold(word(i-1), "SYSTEM")
		case "UNION":
			if word(i+1) == "=" {
				t.Union = t.union(code[i+2:])
			}
		case "PARTITION":
			t.Partitioned = t.Partitioned || strings.EqualFold(word(i+1), "BY")
		}
	}
	if t.Charset == "" && t.Collation != "" {
		t.Charset, _, _ = strings.Cut(t.Collation, "_")
	}
}

// partitions reads which columns are in PARTITION BY and SUBPARTITION BY: [LINEAR] HASH (expression), RANGE COLUMNS (list) …
func (t *Table) partitions(code []sqltext.Token) {
	for i := 1; i < len(code); i++ {
		if !code[i].Name() || !strings.EqualFold(code[i].Text, "BY") || !strings.HasSuffix(strings.ToUpper(code[i-1].Text), "PARTITION") {
			continue
		}
		for i < len(code) && code[i].Text != "(" {
			i++
		}
		inside, _, _ := sqltext.Group(code[i:])
		for _, x := range inside {
			of := slices.IndexFunc(t.Columns, func(c TableColumn) bool { return x.Name() && strings.EqualFold(c.Name, x.Text) })
			if of >= 0 && !slices.Contains(t.SpreadBy, t.Columns[of].Name) {
				t.SpreadBy = append(t.SpreadBy, t.Columns[of].Name)
			}
		}
	}
}

// union reads the tables of a MERGE table.
func (t *Table) union(code []sqltext.Token) (list []mysql.TableName) {
	inside, _, _ := sqltext.Group(code)
	for _, e := range sqltext.Elements(inside) {
		switch names := namesIn(e); len(names) {
		case 1:
			list = append(list, mysql.TableName{Schema: t.Schema, Name: names[0]})
		case 2:
			list = append(list, mysql.TableName{Schema: names[0], Name: names[1]})
		}
	}
	return list
}

// column reads one column's definition.
func (t *Table) column(e []sqltext.Token) (TableColumn, error) {
	c := TableColumn{Name: e[0].Text, Nullable: true}
	words := sqltext.Words(e[1:])
	if len(words) == 0 {
		return c, fmt.Errorf("%w: column %s has no type", errCreate, mysql.Quote(c.Name))
	}
	c.Type = strings.ToLower(words[0])
	c.FullType = t.fullType(e[1:])
	for i, w := range words[1:] {
		next := ""
		if i+2 < len(words) {
			next = words[i+2]
		}
		switch strings.ToUpper(w) {
		case "UNSIGNED":
			c.Unsigned = true
		case "NOT":
			c.Nullable = c.Nullable && !strings.EqualFold(next, "NULL")
		case "CHARACTER":
			if i+3 < len(words) && strings.EqualFold(next, "SET") {
				c.Charset = words[i+3]
			}
		case "COLLATE":
			c.Collation = next
		case "GENERATED", "AS":
			c.Generated = true
		case "ROW": // GENERATED ALWAYS AS ROW START
			if c.Generated && (strings.EqualFold(next, "START") || strings.EqualFold(next, "END")) {
				c.Period = strings.ToUpper(next)
			}
		case "INVISIBLE":
			c.Invisible = true
		case "AUTO_INCREMENT":
			c.Auto = true
		case "DEFAULT":
			c.Default = !strings.EqualFold(next, "NULL")
		}
	}
	if !isText(c.Type) {
		return c, nil
	}
	switch {
	case c.Charset == "" && c.Collation != "":
		c.Charset, _, _ = strings.Cut(c.Collation, "_")
	case c.Charset == "":
		c.Charset, c.Collation = t.Charset, t.Collation
	}
	return c, nil
}

// isText reports whether values of a type have a character set.
func isText(kind string) bool {
	switch kind {
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set":
		return true
	}
	return false
}

// ColumnText is a column's definition, as it stands in CREATE TABLE, with another type; "" if there is no such column.
func (t *Table) ColumnText(name, fullType string) string {
	code := sqltext.Tokens(t.Create)
	open := slices.IndexFunc(code, func(x sqltext.Token) bool { return x.Text == "(" && x.Kind == sqltext.TokenSign })
	if open < 0 {
		return ""
	}
	inside, _, _ := sqltext.Group(code[open:])
	for _, e := range sqltext.Elements(inside) {
		if len(e) < 2 || e[0].Kind != sqltext.TokenName || !strings.EqualFold(e[0].Text, name) {
			continue
		}
		end := e[len(e)-1].End
		if rest := t.Create[end:]; strings.HasPrefix(rest, " */") { // of what only some servers execute
			end += len(" */")
		}
		return mysql.Quote(e[0].Text) + " " + fullType + t.Create[e[1].Begin+len(t.fullType(e[1:])):end]
	}
	return ""
}

// LargestInteger is the largest value of an integer type, named without its length, and 0 for other types. Source: MySQL manual, "Integer
// Types".
func LargestInteger(kind string, unsigned bool) float64 {
	bits, ok := map[string]int{"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}[kind]
	if !ok {
		return 0
	}
	if !unsigned {
		bits--
	}
	return math.Ldexp(1, bits) - 1
}

// fullType is the type with length and sign.
func (t *Table) fullType(e []sqltext.Token) string {
	begin, end := e[0].Begin, e[0].End
	e = e[1:]
	if _, rest, ok := sqltext.Group(e); ok {
		end = e[len(e)-len(rest)-1].End
		e = rest
	}
	for _, w := range []string{"unsigned", "zerofill"} {
		if len(e) > 0 && e[0].Text == w {
			end, e = e[0].End, e[1:]
		}
	}
	return t.Create[begin:end]
}

// key reads an index, or nothing from a constraint of another kind.
func (t *Table) key(e []sqltext.Token) {
	words := sqltext.Words(e)
	if len(words) == 0 {
		return
	}
	var k TableKey
	switch strings.ToUpper(words[0]) {
	case "PRIMARY":
		k.Name, k.Unique = "PRIMARY", true
	case "UNIQUE":
		k.Unique = true
	case "FULLTEXT", "SPATIAL", "VECTOR":
		k.Special = true
	case "KEY":
	default:
		for i, w := range words {
			if strings.EqualFold(w, "FOREIGN") && i <= 2 {
				t.foreignKey(e)
				break
			}
		}
		return
	}
	k.Text = t.Create[e[0].Begin:e[len(e)-1].End]
	if strings.LastIndex(k.Text, "/*!") > strings.LastIndex(k.Text, "*/") { // what it executes are tokens, its end is none
		k.Text += " */"
	}
	for len(e) > 0 && e[0].Text != "(" {
		if e[0].Kind == sqltext.TokenName {
			k.Name = e[0].Text
		}
		e = e[1:]
	}
	inside, rest, ok := sqltext.Group(e)
	if !ok {
		return
	}
	for _, part := range sqltext.Elements(inside) {
		p, special := partOf(part)
		if p.Column == "" && len(part) > 0 {
			p.Expression = t.Create[part[0].Begin:part[len(part)-1].End]
		}
		k.Special = k.Special || special
		k.Parts = append(k.Parts, p)
	}
	for _, w := range sqltext.Words(rest) {
		switch strings.ToUpper(w) {
		case "INVISIBLE", "IGNORED":
			k.Hidden = true
		case "HASH":
			k.Special = true
		}
	}
	t.Keys = append(t.Keys, k)
}

// foreignKey reads CONSTRAINT `n` FOREIGN KEY (`a`) REFERENCES `s`.`t` (`b`).
func (t *Table) foreignKey(e []sqltext.Token) {
	f := ForeignKey{Referenced: mysql.TableName{Schema: t.Schema}}
	var names []string // since the last parenthesis
	for len(e) > 0 {
		inside, rest, ok := sqltext.Group(e)
		switch {
		case ok && f.Columns == nil:
			f.Columns = namesIn(inside)
			f.Name, names = strings.Join(names, ""), nil
			e = rest
			continue
		case ok:
			f.To = namesIn(inside)
			switch n := len(names); {
			case n == 1:
				f.Referenced.Name = names[0]
			case n == 2:
				f.Referenced = mysql.TableName{Schema: names[0], Name: names[1]}
			}
			t.ForeignKeys = append(t.ForeignKeys, f)
			return
		case e[0].Kind == sqltext.TokenName:
			names = append(names, e[0].Text)
		}
		e = e[1:]
	}
}

// namesIn are the quoted names of a list.
func namesIn(list []sqltext.Token) (names []string) {
	for _, x := range list {
		if x.Kind == sqltext.TokenName {
			names = append(names, x.Text)
		}
	}
	return names
}

// partOf reads a part of an index. special: what it means is not just its column's order.
func partOf(part []sqltext.Token) (p KeyPart, special bool) {
	if len(part) == 0 || part[0].Kind != sqltext.TokenName {
		return p, true
	}
	p.Column = part[0].Text
	part = part[1:]
	if inside, rest, ok := sqltext.Group(part); ok {
		if len(inside) == 1 {
			p.Prefix, _ = strconv.Atoi(inside[0].Text)
		}
		part = rest
	}
	switch strings.ToUpper(strings.Join(sqltext.Words(part), " ")) {
	case "", "ASC":
	case "DESC":
		p.Descending = true
	default:
		special = true // WITHOUT OVERLAPS
	}
	return p, special
}
