package mysql

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Table is what a SHOW CREATE TABLE says of a table, as far as who copies its rows has to know.
type Table struct {
	Schema, Name string
	Engine       string
	Charset      string // default character set
	Collation    string // default collation, "" where the statement leaves it open
	Columns      []TableColumn
	Keys         []TableKey
	Sequence     bool // a MariaDB sequence: one row, which is no row of a table
	Versioned    bool // MariaDB keeps old rows of it: WITH SYSTEM VERSIONING
	Past         bool // its rows of the past are meant too: WithHistory
	Partitioned  bool
	Foreign      bool // it has foreign keys
	Create       string
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
	Period    string // of a versioned table: "START" or "END" of the time in which the row was so
}

// TableKey is one index.
type TableKey struct {
	Name    string // PRIMARY for the primary key
	Unique  bool
	Hidden  bool // invisible or ignored: it cannot be asked for by name
	Special bool // full-text, spatial, or other than a tree in its columns' order
	Parts   []KeyPart
}

// KeyPart is one column of an index, or an expression.
type KeyPart struct {
	Column     string // "" for an expression
	Prefix     int    // length of the indexed beginning; 0: the whole value
	Descending bool
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

// WithHistory is a versioned table with its rows of the past: the times from and to which each row was so are columns as others are,
// and the end is part of each key (InnoDB appends it). Without names of their own they are row_start and row_end. ok is false where
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
	t := Table{Schema: schema, Create: create}
	s := scanner{text: create}
	if strings.HasPrefix(create, "CREATE SEQUENCE") {
		t.Sequence = true
	}
	name := strings.IndexByte(create, '`')
	if name < 0 {
		return t, fmt.Errorf("%w: it has no name", errCreate)
	}
	s.at = name
	var ok bool
	if t.Name, ok = s.quoted(); !ok {
		return t, fmt.Errorf("%w: its name does not end", errCreate)
	}
	if t.Sequence {
		t.options(create[s.at:])
		return t, nil
	}
	open := strings.IndexByte(create[s.at:], '(')
	if open < 0 {
		return t, fmt.Errorf("%w: %s has no columns", errCreate, Quote(t.Name))
	}
	s.at += open + 1
	var elements []string
	for {
		e, end, ok := s.element()
		if !ok {
			return t, fmt.Errorf("%w: %s does not end", errCreate, Quote(t.Name))
		}
		elements = append(elements, strings.TrimSpace(e))
		if end {
			break
		}
	}
	t.options(create[s.at:])
	for _, e := range elements {
		if strings.HasPrefix(e, "`") {
			c, err := t.column(e)
			if err != nil {
				return t, err
			}
			t.Columns = append(t.Columns, c)
			continue
		}
		t.key(e)
	}
	return t, nil
}

// options reads what stands behind the columns.
func (t *Table) options(text string) {
	words := wordsOf(text)
	for i, w := range words {
		name, value, _ := strings.Cut(w, "=")
		switch strings.ToUpper(name) {
		case "ENGINE":
			t.Engine = value
		case "CHARSET":
			t.Charset = value
		case "COLLATE":
			t.Collation = value
		case "VERSIONING":
			t.Versioned = i > 0 && strings.EqualFold(words[i-1], "SYSTEM")
		case "PARTITION":
			t.Partitioned = t.Partitioned || i+1 < len(words) && strings.EqualFold(words[i+1], "BY")
		}
	}
	if t.Charset == "" && t.Collation != "" {
		t.Charset, _, _ = strings.Cut(t.Collation, "_")
	}
}

// column reads one column's definition.
func (t *Table) column(e string) (TableColumn, error) {
	var c TableColumn
	s := scanner{text: e}
	var ok bool
	if c.Name, ok = s.quoted(); !ok {
		return c, fmt.Errorf("%w: a column's name does not end", errCreate)
	}
	c.Nullable = true
	words := wordsOf(e[s.at:])
	if len(words) == 0 {
		return c, fmt.Errorf("%w: column %s has no type", errCreate, Quote(c.Name))
	}
	c.Type = strings.ToLower(words[0])
	c.FullType = fullType(e[s.at:])
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

// isText says whether values of a type have a character set.
func isText(kind string) bool {
	switch kind {
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set":
		return true
	}
	return false
}

// fullType is the type with length and sign.
func fullType(text string) string {
	text = strings.TrimSpace(text)
	s := scanner{text: text}
	for s.at < len(text) && text[s.at] != ' ' && text[s.at] != '(' {
		s.at++
	}
	if s.at < len(text) && text[s.at] == '(' {
		s.skipGroup()
	}
	for _, w := range []string{" unsigned", " zerofill"} {
		if strings.HasPrefix(text[s.at:], w) {
			s.at += len(w)
		}
	}
	return text[:s.at]
}

// key reads an index, or nothing from a constraint of another kind.
func (t *Table) key(e string) {
	words := wordsOf(e)
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
		for _, w := range words {
			t.Foreign = t.Foreign || strings.EqualFold(w, "FOREIGN")
		}
		return
	}
	s := scanner{text: e}
	s.at = strings.IndexAny(e, "`(")
	if s.at < 0 {
		return
	}
	if e[s.at] == '`' {
		k.Name, _ = s.quoted()
		open := strings.IndexByte(e[s.at:], '(')
		if open < 0 {
			return
		}
		s.at += open
	}
	s.at++
	for {
		part, end, ok := s.element()
		if !ok {
			return
		}
		p, special := partOf(strings.TrimSpace(part))
		k.Special = k.Special || special
		k.Parts = append(k.Parts, p)
		if end {
			break
		}
	}
	for _, w := range wordsOf(e[s.at:]) {
		switch strings.ToUpper(w) {
		case "INVISIBLE", "IGNORED":
			k.Hidden = true
		case "HASH":
			k.Special = true
		}
	}
	t.Keys = append(t.Keys, k)
}

// partOf reads a part of an index. special: what it means is not just its column's order.
func partOf(text string) (p KeyPart, special bool) {
	s := scanner{text: text}
	if !strings.HasPrefix(text, "`") {
		return p, true
	}
	p.Column, _ = s.quoted()
	rest := strings.TrimSpace(text[s.at:])
	if strings.HasPrefix(rest, "(") {
		fmt.Sscanf(rest, "(%d)", &p.Prefix)
		rest = rest[strings.IndexByte(rest, ')')+1:]
	}
	switch strings.ToUpper(strings.TrimSpace(rest)) {
	case "", "ASC":
	case "DESC":
		p.Descending = true
	default:
		special = true // WITHOUT OVERLAPS
	}
	return p, special
}

// scanner walks through SQL text, past quotes and parentheses.
type scanner struct {
	text string
	at   int
}

// quoted reads a name in back quotes that begins here.
func (s *scanner) quoted() (string, bool) {
	var b strings.Builder
	for i := s.at + 1; i < len(s.text); i++ {
		if s.text[i] != '`' {
			b.WriteByte(s.text[i])
			continue
		}
		if i+1 < len(s.text) && s.text[i+1] == '`' {
			b.WriteByte('`')
			i++
			continue
		}
		s.at = i + 1
		return b.String(), true
	}
	return "", false
}

// skipQuote goes past the quoted text that begins here.
func (s *scanner) skipQuote() {
	q := s.text[s.at]
	for s.at++; s.at < len(s.text); s.at++ {
		switch {
		case s.text[s.at] == '\\' && q != '`':
			s.at++
		case s.text[s.at] == q && s.at+1 < len(s.text) && s.text[s.at+1] == q:
			s.at++
		case s.text[s.at] == q:
			s.at++
			return
		}
	}
}

// skipGroup goes past the parentheses that open here.
func (s *scanner) skipGroup() {
	depth := 0
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case '\'', '"', '`':
			s.skipQuote()
			continue
		case '(':
			depth++
		case ')':
			depth--
		}
		s.at++
		if depth == 0 {
			return
		}
	}
	s.at = len(s.text)
}

// element reads up to the comma, or the parenthesis that ends the list.
func (s *scanner) element() (text string, end, ok bool) {
	from := s.at
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case '\'', '"', '`':
			s.skipQuote()
			continue
		case '(':
			s.skipGroup()
			continue
		case ',', ')':
			text, end = s.text[from:s.at], s.text[s.at] == ')'
			s.at++
			return text, end, true
		}
		s.at++
	}
	return "", false, false
}

// wordsOf gives the words outside of quotes and parentheses; those in version comments count.
func wordsOf(text string) []string {
	s := scanner{text: text}
	var words []string
	from := -1
	end := func() {
		if from >= 0 {
			if w := text[from:s.at]; !strings.HasPrefix(w, "/*") && w != "*/" {
				words = append(words, w)
			}
		}
		from = -1
	}
	for s.at < len(text) {
		switch c := text[s.at]; c {
		case '\'', '"', '`':
			end()
			s.skipQuote()
			continue
		case '(':
			end()
			s.skipGroup()
			continue
		case ' ', '\n', '\t', ',':
			end()
		default:
			if from < 0 {
				from = s.at
			}
		}
		s.at++
	}
	s.at = min(s.at, len(text))
	end()
	return words
}
