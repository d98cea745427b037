package script

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/sqltext"
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
	list := sqltext.Dialect{Postgres: d == drive.Postgres}.Tokens(sql)
	for i, t := range list {
		switch {
		case t.Kind == sqltext.TokenSign && t.Text == "?" && d == drive.MySQL:
			return p, &misplaced{t.Begin, "a ? has no value: write :name"}
		case t.Kind == sqltext.TokenParameter:
			return p, &misplaced{t.Begin, "a $1 has no value: write :name"}
		case t.Kind == sqltext.TokenSign && t.Text == ";":
			if slices.ContainsFunc(list[i:], func(x sqltext.Token) bool { return x.Text != ";" }) {
				return p, &misplaced{t.Begin, "another statement follows: write each as a separate item"}
			}
			p.parts = append(p.parts, strings.TrimRight(sql[last:t.Begin], " \t\r\n"))
			return p, nil
		case t.Kind == sqltext.TokenSign && t.Text == ":" && t.End < len(sql) && isLetter(sql[t.End]) &&
			(t.Begin == 0 || sql[t.Begin-1] != ':' && !isLetter(sql[t.Begin-1]) && !isDigit(sql[t.Begin-1])):
			end := t.End
			for end < len(sql) && (isLetter(sql[end]) || isDigit(sql[end])) {
				end++
			}
			p.parts = append(p.parts, sql[last:t.Begin])
			p.names = append(p.names, sql[t.End:end])
			p.offsets = append(p.offsets, t.Begin)
			last = end
		}
	}
	p.parts = append(p.parts, strings.TrimRight(sql[last:], " \t\r\n"))
	return p, nil
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
	switch verb := sqltext.Verb(sql); {
	case verb == "SELECT": // it locks rows, or calls what is not known
		return drive.Read
	case slices.Contains([]string{"INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE", "LOAD", "CALL"}, verb):
		return drive.Write
	}
	return drive.Other
}
