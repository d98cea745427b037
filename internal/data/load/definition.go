package load

import (
	"fmt"
	"slices"
	"strings"
)

// definition is a CREATE TABLE taken apart: what stands before the list, the items of the list, what stands behind it.
type definition struct {
	items []string
	tail  string
}

// parseTable takes a CREATE TABLE as SHOW CREATE TABLE prints it apart.
func parseTable(create string) (definition, error) {
	var d definition
	open := skipTo(create, 0, '(')
	if !strings.HasPrefix(create, "CREATE TABLE ") || open < 0 {
		return d, fmt.Errorf("this is no CREATE TABLE: %.60q", create)
	}
	from, depth := open+1, 1
	for i := open + 1; i < len(create); {
		switch create[i] {
		case '`', '\'', '"':
			i = skipQuoted(create, i)
			continue
		case '(':
			depth++
		case ',':
			if depth == 1 {
				d.items = append(d.items, strings.TrimSpace(create[from:i]))
				from = i + 1
			}
		case ')':
			if depth--; depth == 0 {
				d.items = append(d.items, strings.TrimSpace(create[from:i]))
				d.tail = create[i:]
				return d, nil
			}
		}
		i++
	}
	return d, fmt.Errorf("this CREATE TABLE does not end: %.60q", create)
}

// statement puts a definition together again.
func (d definition) statement(name string) string {
	return "CREATE TABLE " + name + " (\n  " + strings.Join(d.items, ",\n  ") + "\n" + d.tail
}

// skipTo gives the place of a byte that stands outside of quotes, or -1.
func skipTo(s string, i int, b byte) int {
	for i < len(s) {
		switch s[i] {
		case b:
			return i
		case '`', '\'', '"':
			i = skipQuoted(s, i)
		default:
			i++
		}
	}
	return -1
}

// skipQuoted gives the place behind what is quoted from i on.
func skipQuoted(s string, i int) int {
	q := s[i]
	for i++; i < len(s); i++ {
		switch {
		case s[i] == '\\' && q != '`':
			i++
		case s[i] == q && i+1 < len(s) && s[i+1] == q:
			i++
		case s[i] == q:
			return i + 1
		}
	}
	return len(s)
}

// unquoted reads the name in backticks at the beginning of s.
func unquoted(s string) (name, rest string, ok bool) {
	if !strings.HasPrefix(s, "`") {
		return "", s, false
	}
	end := skipQuoted(s, 0)
	if end < 2 {
		return "", s, false
	}
	return strings.ReplaceAll(s[1:end-1], "``", "`"), s[end:], true
}

func isForeignKey(item string) bool {
	if rest, ok := strings.CutPrefix(item, "CONSTRAINT "); ok {
		_, rest, _ = unquoted(rest)
		return strings.HasPrefix(strings.TrimSpace(rest), "FOREIGN KEY")
	}
	return strings.HasPrefix(item, "FOREIGN KEY")
}

// references is the table that a foreign key points at; schema is that of its own table.
func references(item, schema string) (string, string) {
	const word = " REFERENCES "
	i := 0
	for i < len(item) && !strings.HasPrefix(item[i:], word) {
		if item[i] == '`' || item[i] == '\'' {
			i = skipQuoted(item, i)
		} else {
			i++
		}
	}
	if i == len(item) {
		return "", ""
	}
	first, rest, _ := unquoted(item[i+len(word):])
	if strings.HasPrefix(rest, ".") {
		second, _, _ := unquoted(rest[1:])
		return first, second
	}
	return schema, first
}

// foreignKeys gives the foreign keys and the definition without them.
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

// secondaryKeys gives the keys that can be made after the rows are there, and the definition without them. They come back in
// the order in which SHOW CREATE TABLE had them. What stays: the primary key, or all unique ones where there is none, for
// InnoDB keeps rows in the order of one of them; the key that AUTO_INCREMENT needs, and those before it; spatial and
// full-text keys, which the server makes one at a time.
func (d definition) secondaryKeys() (definition, []string) {
	primary, auto := "", ""
	for _, item := range d.items {
		if strings.HasPrefix(item, "PRIMARY KEY") {
			primary = firstPart(item)
		}
		if name, rest, ok := unquoted(item); ok && hasWord(rest, "AUTO_INCREMENT") {
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

// firstPart is the first column of a key, or "" where that is an expression.
func firstPart(item string) string {
	i := skipTo(item, 0, '(')
	if i < 0 {
		return ""
	}
	name, _, _ := unquoted(item[i+1:])
	return name
}

// hasWord says whether a word stands outside of quotes.
func hasWord(s, word string) bool {
	return skipToWord(s, word) >= 0
}

// inherit takes the collation out of columns that have the table's own without a character set beside it. MySQL 8 writes it so
// for a column that names none, and takes what it wrote for one that names both: its next definition would show both.
func (d definition) inherit() definition {
	i := strings.Index(d.tail, " COLLATE=")
	if i < 0 {
		return d
	}
	collation := d.tail[i+len(" COLLATE="):]
	if end := strings.IndexFunc(collation, func(r rune) bool { return r >= 0x80 || !isWordByte(byte(r)) }); end >= 0 {
		collation = collation[:end]
	}
	word := " COLLATE " + collation
	items := slices.Clone(d.items)
	for n, item := range items {
		if !strings.HasPrefix(item, "`") || hasWord(item, "CHARACTER SET") {
			continue
		}
		if at := skipToWord(item, word); at >= 0 && (at+len(word) == len(item) || item[at+len(word)] == ' ') {
			items[n] = item[:at] + item[at+len(word):]
		}
	}
	return definition{items: items, tail: d.tail}
}

// skipToWord gives the place of a word that stands outside of quotes, or -1.
func skipToWord(s, word string) int {
	for i := 0; i < len(s); {
		switch {
		case s[i] == '\'' || s[i] == '`' || s[i] == '"':
			i = skipQuoted(s, i)
		case strings.HasPrefix(s[i:], word):
			return i
		default:
			i++
		}
	}
	return -1
}
