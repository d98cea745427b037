package drive

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/rissodb/risso/internal/mysql/wire"
	"github.com/rissodb/risso/internal/sqltext"
)

// Unprepared is the session with statements sent as text: the values are written into them. It makes sure that backslashes
// in texts are read as they are written.
func Unprepared(s Session) (Session, error) {
	if s.Dialect() == MySQL {
		if _, err := s.Exec(Other, "SET SESSION sql_mode = REPLACE(@@SESSION.sql_mode, 'NO_BACKSLASH_ESCAPES', '')"); err != nil {
			return nil, fmt.Errorf("prepare to send text: %w", err)
		}
		*s.Counts() = [3]int64{}
	}
	return &unprepared{Session: s}, nil
}

type unprepared struct {
	Session
	out   []byte
	texts []text // by Stmt.id
}

// text is a statement cut at its parameters: values[i], counted from 0, stands behind parts[i].
type text struct {
	parts  []string
	values []int
}

// texter is a session that can keep the values of a statement sent as text.
type texter interface {
	text(kind Kind, sql string, keep bool) (Result, error)
}

func (u *unprepared) transport() string { return Transport(u.Session) }

func (u *unprepared) Prepare(kind Kind, sql string) (*Stmt, error) {
	t := cut(sql, u.Dialect())
	params := 0
	for _, v := range t.values {
		params = max(params, v+1)
	}
	u.texts = append(u.texts, t)
	return &Stmt{SQL: sql, Kind: kind, id: uint32(len(u.texts) - 1), params: params}, nil
}

func (u *unprepared) Do(st *Stmt, args ...Arg) (Result, error) {
	if len(args) != st.params {
		return Result{}, fmt.Errorf("%d values for the %d parameters of %s", len(args), st.params, st.SQL)
	}
	t := u.texts[st.id]
	out := u.out[:0]
	for i, part := range t.parts {
		out = append(out, part...)
		if i == len(t.values) {
			break
		}
		a := args[t.values[i]]
		if u.Dialect() == Postgres && bytes.IndexByte(a.Text, 0) >= 0 {
			return Result{}, fmt.Errorf("a text with a zero byte cannot be written into %s", st.SQL)
		}
		out = appendLiteral(out, a, u.Dialect())
	}
	u.out = out
	if w, ok := u.Session.(texter); ok {
		return w.text(st.Kind, string(out), st.Keep)
	}
	return u.Session.Exec(st.Kind, string(out))
}

// appendLiteral writes a value as SQL does.
func appendLiteral(out []byte, a Arg, d Dialect) []byte {
	switch {
	case a.Kind == wire.KindNull:
		return append(out, "NULL"...)
	case a.Kind == wire.KindInt && a.Int < 0: // behind a minus it would begin a comment
		return append(strconv.AppendInt(append(out, '('), a.Int, 10), ')')
	case a.Kind == wire.KindInt:
		return strconv.AppendInt(out, a.Int, 10)
	}
	if d == Postgres && bytes.IndexByte(a.Text, '\\') >= 0 {
		out = append(out, " E"...)
	}
	out = append(out, '\'')
	for _, c := range a.Text {
		switch {
		case c == '\'':
			out = append(out, '\'', '\'')
		case c == '\\':
			out = append(out, '\\', '\\')
		case c == 0 && d == MySQL:
			out = append(out, '\\', '0')
		default:
			out = append(out, c)
		}
	}
	return append(out, '\'')
}

// cut finds the parameters of a statement: ? or $1, outside of quotes and comments.
func cut(sql string, d Dialect) (t text) {
	from := 0
	for _, x := range (sqltext.Dialect{Postgres: d == Postgres}).Tokens(sql) {
		n := len(t.values)
		switch {
		case x.Kind == sqltext.TokenParameter:
			number, err := strconv.Atoi(x.Text[1:])
			if err != nil || number < 1 || number >= 1<<16 {
				continue
			}
			n = number - 1
		case d != MySQL || x.Kind != sqltext.TokenSign || x.Text != "?":
			continue
		}
		t.parts, t.values = append(t.parts, sql[from:x.Begin]), append(t.values, n)
		from = x.End
	}
	t.parts = append(t.parts, sql[from:])
	return t
}
