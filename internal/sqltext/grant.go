package sqltext

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Grant is what a GRANT, a REVOKE or a SET DEFAULT ROLE says.
type Grant struct {
	Verb       string  // in upper case; SET DEFAULT ROLE is SET
	Privileges []Ident // what is given, as it is written: Name; a column list belongs to it
	On         int     // place of ON in the text; 0: roles are given
	Schema     Ident   // of what is given on all of a schema: a pattern, see SchemaLike; End is 0 where it is not
	To         Account
}

// ReadGrant reads one GRANT, REVOKE or SET DEFAULT ROLE that is for one account.
func (d Dialect) ReadGrant(text string) (*Grant, error) {
	r, err := d.newReader(text)
	if err != nil {
		return nil, err
	}
	g := &Grant{}
	switch {
	case r.accept("GRANT"), r.accept("REVOKE"):
		g.Verb = strings.ToUpper(r.t[0].Text)
	case r.accept("SET", "DEFAULT", "ROLE"):
		g.Verb = "SET"
	default:
		return nil, fmt.Errorf("%w: it is %s and no GRANT", ErrStatement, r.shown(0))
	}
	from, depth := r.i, 0
	for ; ; r.i++ {
		t := r.at(r.i)
		if depth == 0 && g.On == 0 && (r.sign(r.i, ",") || r.is(r.i, "ON") || r.toWord(g.Verb)) && r.i > from {
			begin, end := r.at(from).Begin, r.at(r.i-1).End
			g.Privileges = append(g.Privileges, Ident{Name: text[begin:end], Begin: begin, End: end})
			from = r.i + 1
		}
		switch {
		case t.Kind == 0 || r.sign(r.i, ";"):
			return nil, fmt.Errorf("%w: it is for nobody", ErrStatement)
		case r.sign(r.i, "("):
			depth++
		case r.sign(r.i, ")"):
			depth--
		case depth == 0 && g.On == 0 && r.is(r.i, "ON"):
			g.On = t.Begin
			if n := r.at(r.i + 1); n.Name() && r.sign(r.i+2, ".") && r.sign(r.i+3, "*") {
				g.Schema = Ident{Name: n.Text, Begin: n.Begin, End: n.End}
			}
		case depth == 0 && r.toWord(g.Verb):
			r.i++
			return g, r.readGrantee(g)
		}
	}
}

// toWord tells whether the word before the account stands here.
func (r *reader) toWord(verb string) bool {
	if verb == "REVOKE" {
		return r.is(r.i, "FROM")
	}
	return r.is(r.i, "TO") || verb == "SET" && r.is(r.i, "FOR")
}

// readGrantee reads for whom it is, and makes sure that it is for nobody else.
func (r *reader) readGrantee(g *Grant) error {
	var ok bool
	if g.To, ok = r.account(); !ok {
		return fmt.Errorf("%w: it is for nobody", ErrStatement)
	}
	for ; r.i < len(r.t); r.i++ {
		switch {
		case r.sign(r.i, ","):
			return fmt.Errorf("%w: it is for another account, too, %s", ErrStatement, r.shown(r.i+1))
		case r.sign(r.i, ";"):
			return fmt.Errorf("%w: another statement follows it, %s", ErrStatement, r.shown(r.i+1))
		}
	}
	return nil
}

// SchemaLike tells whether a schema's name is like the pattern of a GRANT on all of a schema: there _ stands for any letter and % for any
// text, unless \ stands before it. Sources: MySQL manual and MariaDB documentation, "GRANT", database privileges.
func SchemaLike(pattern, name string) bool {
	for pattern != "" {
		switch c := pattern[0]; {
		case c == '%':
			for i := 0; i <= len(name); i++ {
				if SchemaLike(pattern[1:], name[i:]) {
					return true
				}
			}
			return false
		case c == '_':
			_, n := utf8.DecodeRuneInString(name)
			if n == 0 {
				return false
			}
			pattern, name = pattern[1:], name[n:]
		default:
			if c == '\\' && len(pattern) > 1 {
				pattern = pattern[1:]
			}
			if name == "" || name[0] != pattern[0] {
				return false
			}
			pattern, name = pattern[1:], name[1:]
		}
	}
	return name == ""
}

// ExactSchema gives the one name that is like a pattern; ok is false where there are more.
func ExactSchema(pattern string) (name string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '_' || c == '%':
			return "", false
		case c == '\\' && i+1 < len(pattern):
			i++
			b.WriteByte(pattern[i])
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), true
}

// SchemaPattern gives the pattern that only one name is like.
func SchemaPattern(name string) string {
	return strings.NewReplacer("_", `\_`, "%", `\%`, `\`, `\\`).Replace(name)
}

// Find gives the place in a text of words, or signs, that follow each other outside of quotes, comments and
// parentheses; -1 where they do not.
func (d Dialect) Find(text string, words ...string) (begin, end int) {
	r := reader{d: d, text: text, t: d.Tokens(text)}
	for depth := 0; r.i < len(r.t); r.i++ {
		switch {
		case r.sign(r.i, "("):
			depth++
		case r.sign(r.i, ")"):
			depth = max(depth-1, 0) // the text may be the end of a statement
		}
		if at := r.i; depth == 0 && !r.sign(at-1, ".") {
			if r.accept(words...) {
				return r.at(at).Begin, r.at(r.i - 1).End
			}
		}
	}
	return -1, -1
}

// Has tells whether words follow each other in a text, as Find finds them.
func (d Dialect) Has(text string, words ...string) bool {
	begin, _ := d.Find(text, words...)
	return begin >= 0
}
