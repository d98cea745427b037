package script

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/measure/drive"
)

// placed is a statement cut at its placeholders: parts[0], value, parts[1], value, …
type placed struct {
	parts   []string
	names   []string
	offsets []int // of the placeholders in the text
}

// misplaced is an error at a place of a statement.
type misplaced struct {
	offset int
	text   string
}

func (e *misplaced) Error() string { return e.text }

// split finds the placeholders, :name, outside strings, quoted names and comments.
func split(sql string, d drive.Dialect) (placed, error) {
	var p placed
	last := 0
	for i := 0; i < len(sql); {
		if end := skip(sql, i, d); end > i {
			i = end
			continue
		}
		switch c := sql[i]; {
		case c == '?' && d == drive.MySQL:
			return p, &misplaced{i, "a ? has no value: write :name"}
		case c == '$' && d == drive.Postgres && i+1 < len(sql) && isDigit(sql[i+1]):
			return p, &misplaced{i, "a $1 has no value: write :name"}
		case c == ';' && strings.Trim(sql[i:], "; \t\r\n") != "":
			return p, &misplaced{i, "another statement follows: write each as an item of its own"}
		case c != ':' || i+1 == len(sql) || !isLetter(sql[i+1]) || i > 0 && (sql[i-1] == ':' || isLetter(sql[i-1]) || isDigit(sql[i-1])):
			i++
			if c == ':' && i < len(sql) && (sql[i] == ':' || sql[i] == '=') {
				i++ // a cast of PostgreSQL, an assignment of MySQL
			}
		default:
			end := i + 1
			for end < len(sql) && (isLetter(sql[end]) || isDigit(sql[end])) {
				end++
			}
			p.parts = append(p.parts, sql[last:i])
			p.names = append(p.names, sql[i+1:end])
			p.offsets = append(p.offsets, i)
			i, last = end, end
		}
	}
	p.parts = append(p.parts, strings.TrimRight(sql[last:], "; \t\r\n"))
	return p, nil
}

// skip gives the end of the string, quoted name or comment that begins at i; i where none does.
func skip(sql string, i int, d drive.Dialect) int {
	rest := sql[i:]
	until := func(end string) int {
		if n := strings.Index(rest[2:], end); n >= 0 {
			return i + 2 + n + len(end)
		}
		return len(sql)
	}
	switch c := sql[i]; {
	case c == '\'' || c == '"' || c == '`':
		for j := i + 1; j < len(sql); j++ {
			switch {
			case sql[j] == '\\' && d == drive.MySQL && c != '`':
				j++
			case sql[j] == c:
				return j + 1 // a doubled quote begins the next string
			}
		}
		return len(sql)
	case strings.HasPrefix(rest, "/*"):
		return until("*/")
	case strings.HasPrefix(rest, "--") && (d == drive.Postgres || len(rest) == 2 || rest[2] <= ' '), c == '#' && d == drive.MySQL:
		if n := strings.IndexByte(rest, '\n'); n >= 0 {
			return i + n
		}
		return len(sql)
	case c == '$' && d == drive.Postgres:
		tag := 1
		for tag < len(rest) && (isLetter(rest[tag]) || tag > 1 && isDigit(rest[tag])) {
			tag++
		}
		if tag < len(rest) && rest[tag] == '$' {
			if n := strings.Index(rest[tag+1:], rest[:tag+1]); n >= 0 {
				return i + tag + 1 + n + tag + 1
			}
			return len(sql)
		}
	}
	return i
}

func isLetter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// parameters is the statement as the server prepares it.
func (p placed) parameters(d drive.Dialect) string {
	var b strings.Builder
	for i, part := range p.parts {
		b.WriteString(part)
		switch {
		case i == len(p.names):
		case d == drive.Postgres:
			fmt.Fprintf(&b, "$%d", i+1)
		default:
			b.WriteByte('?')
		}
	}
	return b.String()
}

// appendText writes the statement with its values in it.
func (p placed) appendText(dst []byte, values []value, d drive.Dialect) []byte {
	for i, part := range p.parts {
		dst = append(dst, part...)
		if i < len(p.names) {
			dst = values[i].appendLiteral(dst, d)
		}
	}
	return dst
}

// value is one value that was drawn or saved.
type value struct {
	text []byte
	num  int64
	kind valueKind
}

type valueKind uint8

const (
	isInt valueKind = iota
	isText
	isDecimal // its text needs no quotes
	isNull
)

func (v value) arg() drive.Arg {
	switch v.kind {
	case isInt:
		return drive.Int(v.num)
	case isNull:
		return drive.Null()
	}
	return drive.Text(v.text)
}

// appendLiteral writes the value as SQL, so that it is the same under every sql_mode.
func (v value) appendLiteral(dst []byte, d drive.Dialect) []byte {
	switch {
	case v.kind == isInt:
		return strconv.AppendInt(dst, v.num, 10)
	case v.kind == isNull:
		return append(dst, "NULL"...)
	case v.kind == isDecimal:
		return append(dst, v.text...)
	case bytes.IndexByte(v.text, '\\') < 0 && bytes.IndexByte(v.text, 0) < 0:
		dst = append(dst, '\'')
		dst = append(dst, bytes.ReplaceAll(v.text, []byte("'"), []byte("''"))...)
		return append(dst, '\'')
	case d == drive.Postgres:
		return fmt.Appendf(dst, "convert_from('\\x%x', 'UTF8')", v.text)
	}
	return fmt.Appendf(dst, "_utf8mb4 x'%x'", v.text)
}

// kindOf says what a statement does, as results count it.
func kindOf(sql []byte, reads bool) drive.Kind {
	if reads {
		return drive.Read
	}
	word, _, _ := strings.Cut(strings.TrimLeft(string(sql), " \t\r\n("), " ")
	if strings.EqualFold(word, "select") { // it locks rows, or calls what is not known
		return drive.Read
	}
	if slices.Contains([]string{"insert", "update", "delete", "replace", "merge", "load", "with", "call"}, strings.ToLower(word)) {
		return drive.Write
	}
	return drive.Other
}
