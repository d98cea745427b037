// Package alter says what an ALTER TABLE will do before it is done: instantly, in place or by a copy, under which locks, how long and with how
// much room on disk, what stands in its way, and by which commands it is done. It is given what was learned (the table, the answers of a server,
// measurements) and makes a plan in words of it; it does no input or output. Package ask learns, package perform carries out.
package alter

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sqltext"
)

// ErrStatement is wrapped by errors about a text that is no ALTER TABLE.
var ErrStatement = errors.New("this is no ALTER TABLE that can be planned")

// Statement is an ALTER TABLE, taken apart.
type Statement struct {
	Table     mysql.TableName // Schema is "" if the text names none
	Ignore    bool            // ALTER IGNORE TABLE, which drops rows
	Body      string          // what follows the table's name, without ALGORITHM, LOCK and WAIT
	Algorithm string          // that the text demands, in capitals; "" or DEFAULT: none
	Lock      string
	Others    []mysql.TableName // tables that it names besides: of REFERENCES and EXCHANGE PARTITION
	Renamed   map[string]string // columns by their names before, in lower case: what they are called after
	Dropped   []string          // columns, in lower case, though one of that name may be added
	RenamedTo *mysql.TableName
}

// Parse takes an ALTER TABLE apart as a server of that dialect reads it. Errors wrap ErrStatement.
func Parse(d sqltext.Dialect, text string) (Statement, error) {
	var s Statement
	t := d.Tokens(text)
	if n := len(t); n > 0 && t[n-1].Kind == sqltext.TokenSign && t[n-1].Text == ";" {
		t = t[:n-1]
	}
	for _, x := range t {
		switch {
		case x.Open:
			return s, fmt.Errorf("%w: a quote or comment in it does not end", ErrStatement)
		case x.Kind == sqltext.TokenSign && x.Text == ";":
			return s, fmt.Errorf("%w: it is more than one statement", ErrStatement)
		}
	}
	r := cursor{d: d, text: text, t: t}
	if !r.accept("ALTER") {
		return s, fmt.Errorf("%w: it does not begin with ALTER TABLE", ErrStatement)
	}
	r.accept("ONLINE")
	s.Ignore = r.accept("IGNORE")
	if !r.accept("TABLE") {
		return s, fmt.Errorf("%w: it does not begin with ALTER TABLE", ErrStatement)
	}
	if r.accept("IF") {
		r.accept("EXISTS")
	}
	var ok bool
	if s.Table, ok = r.name(); !ok {
		return s, fmt.Errorf("%w: it names no table", ErrStatement)
	}
	if r.accept("WAIT") {
		r.i++
	} else {
		r.accept("NOWAIT")
	}
	s.read(d, text, r.t[r.i:])
	if s.Body == "" {
		return s, fmt.Errorf("%w: it changes nothing", ErrStatement)
	}
	return s, nil
}

// read reads what follows the table's name.
func (s *Statement) read(d sqltext.Dialect, text string, t []sqltext.Token) {
	var parts []string
	s.Renamed = map[string]string{}
	for _, e := range sqltext.Elements(t) {
		for len(e) > 1 { // in front of PARTITION BY no comma stands
			word := strings.ToUpper(e[0].Text)
			if e[0].Kind != sqltext.TokenWord || word != "ALGORITHM" && word != "LOCK" {
				break
			}
			e = e[1:]
			if e[0].Text == "=" {
				e = e[1:]
			}
			if len(e) == 0 {
				break
			}
			if word == "ALGORITHM" {
				s.Algorithm = strings.ToUpper(e[0].Text)
			} else {
				s.Lock = strings.ToUpper(e[0].Text)
			}
			e = e[1:]
		}
		if len(e) == 0 {
			continue
		}
		begin, end := sqltext.Span(e)
		parts = append(parts, text[begin:end])
		s.element(d, text, e)
	}
	s.Body = strings.Join(parts, ", ")
}

// element notes what one of the changes is about.
func (s *Statement) element(d sqltext.Dialect, text string, e []sqltext.Token) {
	r := cursor{d: d, text: text, t: e}
	switch {
	case r.accept("CHANGE"):
		r.accept("COLUMN")
		r.accept("IF", "EXISTS")
		from, ok := r.name()
		to, ok2 := r.name()
		if ok && ok2 && from.Name != to.Name {
			s.Renamed[strings.ToLower(from.Name)] = to.Name
		}
	case r.is(0, "DROP") && !slices.ContainsFunc([]string{"INDEX", "KEY", "PRIMARY", "FOREIGN", "CONSTRAINT", "CHECK", "PARTITION", "PERIOD", "SYSTEM"}, func(w string) bool { return r.is(1, w) }):
		r.i = 1
		r.accept("COLUMN")
		r.accept("IF", "EXISTS")
		if n, ok := r.name(); ok {
			s.Dropped = append(s.Dropped, strings.ToLower(n.Name))
		}
	case r.is(0, "RENAME") && r.is(1, "COLUMN"):
		r.i = 2
		r.accept("IF", "EXISTS")
		from, ok := r.name()
		if ok && r.accept("TO") {
			if to, ok := r.name(); ok && from.Name != to.Name {
				s.Renamed[strings.ToLower(from.Name)] = to.Name
			}
		}
	case r.is(0, "RENAME") && !r.is(1, "INDEX") && !r.is(1, "KEY"):
		r.i = 1
		if !r.accept("TO") && !r.accept("AS") && r.i < len(e) && e[r.i].Text == "=" {
			r.i++
		}
		if n, ok := r.name(); ok {
			s.RenamedTo = &n
		}
	}
	for i := range e {
		r.i = i
		exchange := r.is(i, "TABLE") && i > 0 && r.is(i-1, "WITH") && r.is(0, "EXCHANGE")
		if exchange || r.is(i, "REFERENCES") {
			r.i = i + 1
			if n, ok := r.name(); ok {
				s.Others = append(s.Others, n)
			}
		}
	}
}

// cursor reads tokens.
type cursor struct {
	d    sqltext.Dialect
	text string
	t    []sqltext.Token
	i    int
}

func (r *cursor) is(i int, word string) bool {
	return i >= 0 && i < len(r.t) && r.t[i].Kind == sqltext.TokenWord && strings.EqualFold(r.t[i].Text, word)
}

// accept skips words that follow each other, or nothing.
func (r *cursor) accept(words ...string) bool {
	for k, w := range words {
		if !r.is(r.i+k, w) {
			return false
		}
	}
	r.i += len(words)
	return true
}

// name reads a name, with a schema or without.
func (r *cursor) name() (n mysql.TableName, ok bool) {
	one := func() (string, bool) {
		if r.i >= len(r.t) {
			return "", false
		}
		t := r.t[r.i]
		if !t.Name() {
			return "", false
		}
		r.i++
		return t.Text, true
	}
	if n.Name, ok = one(); !ok {
		return n, false
	}
	if r.i < len(r.t) && r.t[r.i].Kind == sqltext.TokenSign && r.t[r.i].Text == "." {
		r.i++
		n.Schema = n.Name
		n.Name, ok = one()
	}
	return n, ok
}

// In is the statement of a table in a schema, where the text names none.
func (s Statement) In(schema string) Statement {
	fill := func(n *mysql.TableName) {
		if n.Schema == "" {
			n.Schema = schema
		}
	}
	fill(&s.Table)
	s.Others = slices.Clone(s.Others)
	for i := range s.Others {
		if s.Others[i].Schema == "" {
			s.Others[i].Schema = s.Table.Schema
		}
	}
	if s.RenamedTo != nil {
		to := *s.RenamedTo
		if to.Schema == "" {
			to.Schema = s.Table.Schema
		}
		s.RenamedTo = &to
	}
	return s
}

// With is the statement as a server gets it, with ALGORITHM and LOCK written out where they are not empty. mark is what its comment says.
func (s Statement) With(mark, algorithm, lock string) string {
	var first []string
	if algorithm != "" {
		first = append(first, "ALGORITHM="+algorithm)
	}
	if lock != "" {
		first = append(first, "LOCK="+lock)
	}
	text := "ALTER "
	if s.Ignore {
		text += "IGNORE "
	}
	text += "/* risso: " + mark + " */ TABLE " + s.Table.String() + " " + strings.Join(first, ", ")
	switch words := sqltext.Words(sqltext.Tokens(s.Body)); {
	case len(first) == 0:
	case len(words) > 1 && (strings.EqualFold(words[0], "PARTITION") && strings.EqualFold(words[1], "BY") || strings.EqualFold(words[0], "REMOVE") && strings.EqualFold(words[1], "PARTITIONING")):
		text += " "
	default:
		text += ", "
	}
	return text + s.Body
}
