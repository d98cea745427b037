package load

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/sqltext"
)

// definition is a CREATE TABLE taken apart: what comes before the list, the items of the list, what comes after it.
type definition struct {
	items []string
	tail  string
}

// asDefault is how definitions are read that a session with the servers' own sql_mode showed.
var asDefault = sqltext.Dialect{}

// parseTable takes a CREATE TABLE as SHOW CREATE TABLE prints it apart.
func parseTable(create string) (definition, error) {
	var d definition
	t := sqltext.Tokens(create)
	open := slices.IndexFunc(t, func(x sqltext.Token) bool { return x.Kind == sqltext.TokenSign && x.Text == "(" })
	if !strings.HasPrefix(create, "CREATE TABLE ") || open < 0 {
		return d, fmt.Errorf("this is not a CREATE TABLE: %.60q", create)
	}
	inside, _, ok := sqltext.Group(t[open:])
	if !ok {
		return d, fmt.Errorf("this CREATE TABLE does not end: %.60q", create)
	}
	from, depth := t[open].End, 0
	end := t[open+1+len(inside)].Begin
	for _, x := range inside { // with the executable comments at the ends of items
		switch {
		case x.Kind != sqltext.TokenSign:
		case x.Text == "(":
			depth++
		case x.Text == ")":
			depth--
		case x.Text == "," && depth == 0:
			d.items = append(d.items, strings.TrimSpace(create[from:x.Begin]))
			from = x.End
		}
	}
	d.items = append(d.items, strings.TrimSpace(create[from:end]))
	d.tail = create[end:]
	return d, nil
}

// statement puts a definition together again.
func (d definition) statement(name string) string {
	return "CREATE TABLE " + name + " (\n  " + strings.Join(d.items, ",\n  ") + "\n" + d.tail
}

// unquoted reads the name in backticks at the beginning of s.
func unquoted(s string) (name, rest string, ok bool) {
	if !strings.HasPrefix(s, "`") {
		return "", s, false
	}
	t := sqltext.Tokens(s)[0]
	return t.Text, s[t.End:], !t.Open
}

func isForeignKey(item string) bool {
	w := sqltext.Words(sqltext.Tokens(item))
	if len(w) > 0 && w[0] == "CONSTRAINT" {
		w = w[1:]
	}
	return len(w) > 1 && w[0] == "FOREIGN" && w[1] == "KEY"
}

// references is the table that a foreign key points at; schema is that of its own table.
func references(item, schema string) (string, string) {
	_, end := asDefault.Find(item, "REFERENCES")
	if end < 0 {
		return "", ""
	}
	switch t := sqltext.Tokens(item[end:]); {
	case len(t) > 2 && t[1].Text == ".":
		return t[0].Text, t[2].Text
	case len(t) > 0:
		return schema, t[0].Text
	}
	return "", ""
}

// foreignKeys returns the foreign keys and the definition without them.
func (d definition) foreignKeys() (definition, []string) {
	var keys, rest []string
	for _, item := range d.items {
		if isForeignKey(item) {
			keys = append(keys, item)
		} else {
			rest = append(rest, item)
		}
	}
	return definition{items: rest, tail: d.tail}, keys
}

// secondaryKeys returns the keys that can be made after the rows are there, and the definition without them. They are made
// the order in which SHOW CREATE TABLE had them. What stays: the primary key, or all unique ones if there is none, because
// InnoDB keeps rows in the order of one of them; the key that AUTO_INCREMENT needs, and those before it; spatial and
// full-text keys, which the server makes one at a time.
func (d definition) secondaryKeys() (definition, []string) {
	primary, auto := "", ""
	for _, item := range d.items {
		if strings.HasPrefix(item, "PRIMARY KEY") {
			primary = firstPart(item)
		}
		if name, rest, ok := unquoted(item); ok && asDefault.Has(rest, "AUTO_INCREMENT") {
			auto = name
		}
	}
	needsAuto := auto != "" && primary != auto
	last := -1 // of those that stay
	for i, item := range d.items {
		switch {
		case strings.HasPrefix(item, "SPATIAL KEY"), needsAuto && isKey(item) && firstPart(item) == auto,
			primary == "" && strings.HasPrefix(item, "UNIQUE KEY"):
			last = i
		}
	}
	var keys []string
	rest := slices.Clone(d.items[:last+1])
	for _, item := range d.items[last+1:] {
		if isKey(item) {
			keys = append(keys, item)
		} else {
			rest = append(rest, item)
		}
	}
	return definition{items: rest, tail: d.tail}, keys
}

func isKey(item string) bool {
	return strings.HasPrefix(item, "KEY ") || strings.HasPrefix(item, "UNIQUE KEY ")
}

// firstPart is the first column of a key, or "" if that is an expression.
func firstPart(item string) string {
	t := sqltext.Tokens(item)
	open := slices.IndexFunc(t, func(x sqltext.Token) bool { return x.Kind == sqltext.TokenSign && x.Text == "(" })
	if open < 0 || open+1 == len(t) || t[open+1].Kind != sqltext.TokenName {
		return ""
	}
	return t[open+1].Text
}

// inherit takes the collation out of columns that have the table's own without a character set next to it. MySQL 8 writes it so
// for a column that names none, and takes what it wrote for one that names both: its next definition would show both.
func (d definition) inherit() definition {
	_, end := asDefault.Find(d.tail, "COLLATE", "=")
	if end < 0 {
		return d
	}
	rest := sqltext.Tokens(d.tail[end:])
	if len(rest) == 0 {
		return d
	}
	items := slices.Clone(d.items)
	for n, item := range items {
		if strings.HasPrefix(item, "`") && !asDefault.Has(item, "CHARACTER", "SET") {
			items[n] = without(item, "COLLATE", rest[0].Text)
		}
	}
	return definition{items: items, tail: d.tail}
}

// without takes words out, with the blanks before them.
func without(s string, words ...string) string {
	begin, end := asDefault.Find(s, words...)
	if begin < 0 {
		return s
	}
	return strings.TrimRight(s[:begin], " ") + s[end:]
}
