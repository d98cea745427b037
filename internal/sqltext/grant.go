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
	Object     Ident   // on which tables, with * for all; End is 0 of routines, proxies and roles
	Schema     Ident   // of what is granted on all of a schema: a pattern, see Like; End is 0 if it is not
	To         Account
	Grantable  bool // WITH GRANT OPTION
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
			r.readObject(g)
		case depth == 0 && r.toWord(g.Verb):
			r.i++
			return g, r.readGrantee(g)
		}
	}
}

// readObject reads what follows ON.
func (r *reader) readObject(g *Grant) {
	schema, table := r.at(r.i+1), r.at(r.i+3)
	all := r.sign(r.i+3, "*")
	if !schema.Name() && !r.sign(r.i+1, "*") || !r.sign(r.i+2, ".") || !table.Name() && !all {
		return
	}
	g.Object = Ident{Schema: schema.Text, Name: table.Text, Begin: schema.Begin, End: table.End}
	if schema.Name() && all {
		g.Schema = Ident{Name: schema.Text, Begin: schema.Begin, End: schema.End}
	}
}

// toWord reports whether the word before the account is here.
func (r *reader) toWord(verb string) bool {
	if verb == "REVOKE" {
		return r.is(r.i, "FROM")
	}
	return r.is(r.i, "TO") || verb == "SET" && r.is(r.i, "FOR")
}

// readGrantee reads the grantee, and makes sure that there is no other.
func (r *reader) readGrantee(g *Grant) error {
	var ok bool
	if g.To, ok = r.account(); !ok {
		return fmt.Errorf("%w: it is for nobody", ErrStatement)
	}
	for ; r.i < len(r.t); r.i++ {
		switch {
		case r.is(r.i, "GRANT") && r.is(r.i+1, "OPTION"):
			g.Grantable = true
		case r.sign(r.i, ","):
			return fmt.Errorf("%w: it is for another account, too, %s", ErrStatement, r.shown(r.i+1))
		case r.sign(r.i, ";"):
			return fmt.Errorf("%w: another statement follows it, %s", ErrStatement, r.shown(r.i+1))
		}
	}
	return nil
}

// Like reports whether a name is like the pattern of a GRANT on all of a schema, or of a replica's filter: _ matches any letter and %
// any text, unless \ precedes it. Sources: MySQL manual and MariaDB documentation, "GRANT", database privileges, and
// "replicate_wild_do_table".
func Like(pattern, name string) bool {
	rest, from := "", "" // what is after the last %, and of the name what it may begin with
	open := false        // there was one
	for {
		p, n := oneLike(pattern, name)
		switch {
		case strings.HasPrefix(pattern, "%"):
			rest, from, open = pattern[1:], name, true
			pattern = rest
		case p > 0:
			pattern, name = pattern[p:], name[n:]
		case pattern == "" && name == "":
			return true
		case !open || from == "":
			return false
		default: // the % matches more
			_, n = utf8.DecodeRuneInString(from) // by whole letters: a part of one is none
			from = from[n:]
			pattern, name = rest, from
		}
	}
}

// oneLike returns how many bytes of a pattern match how many of a name: a letter, or \ with the letter after it; 0 if they do not.
func oneLike(pattern, name string) (p, n int) {
	switch {
	case pattern == "" || name == "":
		return 0, 0
	case pattern[0] == '_':
		_, n = utf8.DecodeRuneInString(name)
		return 1, n
	case pattern[0] == '\\' && len(pattern) > 1:
		p = 1
	}
	if pattern[p] != name[0] {
		return 0, 0
	}
	return p + 1, 1
}

// ExactSchema returns the one name that is like a pattern; ok is false if there are more.
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

// SchemaPattern returns the pattern that matches only one name.
func SchemaPattern(name string) string {
	return strings.NewReplacer("_", `\_`, "%", `\%`, `\`, `\\`).Replace(name)
}

// Find returns the place in a text of words, or signs, that follow each other outside of quotes, comments and
// parentheses; -1 if they do not.
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

// Has reports whether words follow each other in a text, as Find finds them.
func (d Dialect) Has(text string, words ...string) bool {
	begin, _ := d.Find(text, words...)
	return begin >= 0
}
