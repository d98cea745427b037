package sqltext

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrStatement is wrapped by errors about a statement that is not of the expected form.
var ErrStatement = errors.New("this is no such statement")

// Ident is a name as a statement has it; Schema is empty if it is left out.
type Ident struct {
	Schema, Name string
	Begin, End   int // its place in the text; End 0: there is none
}

// Account is an account or a role; a role of MariaDB has no host.
type Account struct {
	User, Host string
	NoHost     bool
	Begin, End int // its place in the text; End 0: there is none
}

// String is the account as user@host.
func (a Account) String() string {
	if a.NoHost {
		return a.User
	}
	return a.User + "@" + a.Host
}

// Create is what a CREATE says about itself.
type Create struct {
	Kind        string // TABLE, VIEW, PACKAGE BODY and so on
	Name        Ident  // of an account: the user as Name, see Account
	On          Ident  // the table of a trigger
	Account     Account
	Definer     Account // Begin and End are those of the whole clause, DEFINER = …
	OrReplace   bool
	IfNotExists bool
	Temporary   bool
	Invoker     bool   // SQL SECURITY INVOKER
	State       Ident  // of an event: ENABLE or DISABLE, where it says so
	Roles       Ident  // of an account: the whole of DEFAULT ROLE …, and as its name the roles
	Directories []Edit // what takes the folders that a table names for itself out of its definition

	text        string
	t           []Token // what is code
	statements  []int   // of t: where the statements of a program begin
	afterCreate int     // place in the text after CREATE [OR REPLACE]
}

// reader walks over a statement's code.
type reader struct {
	d    Dialect
	text string
	t    []Token
	i    int
}

// newReader reads a text whose quotes and comments are all closed.
func (d Dialect) newReader(text string) (*reader, error) {
	r := &reader{d: d, text: text}
	for _, x := range d.All(text) {
		switch {
		case x.Open:
			return nil, fmt.Errorf("%w: a quote or a comment in it is not closed", ErrStatement)
		case x.Kind == TokenSign && x.Text == "\x00":
			return nil, fmt.Errorf("%w: it holds a NUL byte", ErrStatement)
		case x.Kind < TokenBlank:
			r.t = append(r.t, x)
		}
	}
	return r, nil
}

// at returns the token at i, or one that is nothing.
func (r *reader) at(i int) Token {
	if i < 0 || i >= len(r.t) {
		return Token{}
	}
	return r.t[i]
}

// is reports whether the token at i is a word, given in upper case.
func (r *reader) is(i int, upper string) bool {
	t := r.at(i)
	return t.Kind == TokenWord && strings.EqualFold(t.Text, upper)
}

func (r *reader) sign(i int, s string) bool { t := r.at(i); return t.Kind == TokenSign && t.Text == s }

// accept skips words where all of them follow.
func (r *reader) accept(words ...string) bool {
	for k, w := range words {
		if !r.is(r.i+k, w) && !r.sign(r.i+k, w) {
			return false
		}
	}
	r.i += len(words)
	return true
}

// acceptAny skips one of several words.
func (r *reader) acceptAny(words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return r.accept(w) })
}

// ident reads a name that may be qualified.
func (r *reader) ident() (Ident, bool) {
	t := r.at(r.i)
	if !t.Name() {
		return Ident{}, false
	}
	n := Ident{Name: t.Text, Begin: t.Begin, End: t.End}
	r.i++
	if r.sign(r.i, ".") && r.at(r.i+1).Name() {
		t = r.at(r.i + 1)
		n.Schema, n.Name, n.End = n.Name, t.Text, t.End
		r.i += 2
	}
	return n, true
}

// account reads 'user'@'host', a role, or CURRENT_USER.
func (r *reader) account() (Account, bool) {
	t := r.at(r.i)
	if !t.Name() && t.Kind != TokenString {
		return Account{}, false
	}
	a := Account{User: r.d.Value(t), Begin: t.Begin, End: t.End, NoHost: true}
	r.i++
	if t.Kind == TokenWord && strings.EqualFold(t.Text, "CURRENT_USER") && r.accept("(", ")") {
		a.End = r.at(r.i - 1).End
		return a, true
	}
	if r.sign(r.i, "@") {
		if t = r.at(r.i + 1); t.Kind == TokenVariable || t.Kind == TokenString || t.Name() {
			a.Host, a.NoHost, a.End = r.d.Value(t), false, t.End
			r.i += 2
		}
	}
	return a, true
}

// Value returns a string without its quotes and escapes, and any other token as it is.
func (d Dialect) Value(t Token) string {
	if t.Kind != TokenString {
		return t.Text
	}
	from := 0
	if t.Text[0] == '_' { // a comment may follow the character set
		from = skipBlank([]byte(t.Text), wordEnd([]byte(t.Text), 0))
	}
	i := from + strings.IndexAny(t.Text[from:], `'"`)
	if i < from || t.Text[0] == '$' {
		return t.Text
	}
	q, s := t.Text[i], t.Text[i+1:]
	if !t.Open {
		s = s[:len(s)-1]
	}
	esc := d.escape(q)
	if d.Postgres && i == 1 { // E'…'
		esc = '\\'
	}
	if strings.IndexByte(s, q) < 0 && strings.IndexByte(s, esc) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if (s[i] == q || s[i] == esc) && i+1 < len(s) {
			i++
			if c := s[i]; s[i-1] != q {
				if k := strings.IndexByte("0bnrtZ", c); k >= 0 {
					b.WriteByte("\x00\b\n\r\t\x1a"[k])
					continue
				}
				if c == '%' || c == '_' { // for LIKE the backslash stays
					b.WriteByte('\\')
				}
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// group skips the parentheses that open at the current token.
func (r *reader) group() {
	for depth := 0; r.i < len(r.t); {
		switch {
		case r.sign(r.i, "("):
			depth++
		case r.sign(r.i, ")"):
			depth--
		}
		if r.i++; depth == 0 {
			return
		}
	}
}

// Replace returns the edit that puts another definer in, or, if definer is empty, none at all: then it is the account that makes it.
func (c *Create) Replace(definer string) Edit {
	if definer != "" {
		definer = "DEFINER=" + definer
	}
	if c.Definer.End > 0 {
		return Edit{c.Definer.Begin, c.Definer.End, definer}
	}
	if definer == "" {
		return Edit{}
	}
	return Edit{c.afterCreate, c.afterCreate, " " + definer}
}

// kinds are what a CREATE makes, by its words.
var kinds = [][]string{{"PACKAGE", "BODY"}, {"PACKAGE"}, {"TABLE"}, {"VIEW"}, {"PROCEDURE"}, {"FUNCTION"}, {"TRIGGER"}, {"EVENT"}, {"SEQUENCE"}, {"DATABASE"},
	{"SCHEMA"}, {"USER"}, {"ROLE"}}

// ReadCreate reads one CREATE, of a kind that a backup holds, to its end. It is an error when the text is anything else, or
// when another statement follows. What an executable comment holds counts where the dialect's server would run it.
func (d Dialect) ReadCreate(text string) (*Create, error) {
	r, err := d.newReader(text)
	if err != nil {
		return nil, err
	}
	c := &Create{text: text}
	if !r.accept("CREATE") {
		return nil, fmt.Errorf("%w: it is %s and no CREATE", ErrStatement, r.shown(0))
	}
	c.OrReplace = r.accept("OR", "REPLACE")
	c.afterCreate = r.at(r.i - 1).End
	if !r.modifiers(c) {
		return nil, fmt.Errorf("%w: it is CREATE %s", ErrStatement, r.shown(r.i))
	}
	c.IfNotExists = r.accept("IF", "NOT", "EXISTS")
	if c.Kind == "USER" || c.Kind == "ROLE" {
		var ok bool
		if c.Account, ok = r.account(); !ok {
			return nil, fmt.Errorf("%w: it names no account", ErrStatement)
		}
		c.Name = Ident{Name: c.Account.User, Begin: c.Account.Begin, End: c.Account.End}
	} else {
		var ok bool
		if c.Name, ok = r.ident(); !ok || r.sign(r.i, ".") {
			return nil, fmt.Errorf("%w: it has no name", ErrStatement)
		}
	}
	c.t = r.t
	return c, r.readRest(c)
}

// shown is the word at i in upper case, for an error.
func (r *reader) shown(i int) string {
	switch t := r.at(i); t.Kind {
	case 0:
		return "nothing"
	case TokenWord:
		return strings.ToUpper(fmt.Sprintf("%.40s", t.Text))
	default:
		return fmt.Sprintf("%.40q", t.Text)
	}
}

// modifiers reads from after CREATE [OR REPLACE] to what it makes.
func (r *reader) modifiers(c *Create) bool {
	for {
		switch {
		case r.accept("TEMPORARY"):
			c.Temporary = true
		case r.accept("AGGREGATE"), r.accept("JSON", "RELATIONAL", "DUALITY"), r.accept("JSON", "DUALITY"):
		case r.accept("ALGORITHM"):
			if !r.accept("=") || !r.acceptAny("UNDEFINED", "MERGE", "TEMPTABLE") {
				return false
			}
		case r.accept("SQL", "SECURITY"):
			c.Invoker = r.is(r.i, "INVOKER")
			if !r.acceptAny("DEFINER", "INVOKER") {
				return false
			}
		case r.is(r.i, "DEFINER"):
			at, begin := r.i, r.at(r.i).Begin
			r.i++
			a, ok := Account{}, r.accept("=")
			if ok {
				a, ok = r.account()
			}
			if !ok || c.Definer.End > 0 {
				r.i = at
				return false
			}
			a.Begin = begin
			c.Definer = a
		default:
			for _, k := range kinds {
				if r.accept(k...) {
					c.Kind = strings.Join(k, " ")
					if c.Kind == "SCHEMA" {
						c.Kind = "DATABASE"
					}
					return true
				}
			}
			return false
		}
	}
}

// readRest reads what follows the name.
func (r *reader) readRest(c *Create) error {
	switch c.Kind {
	case "TABLE":
		return r.readTable(c)
	case "USER", "ROLE":
		return r.readAccounts(c)
	case "VIEW":
		if r.sign(r.i, "(") {
			r.group()
		}
		if !r.accept("AS") {
			return fmt.Errorf("%w: there is no AS in it", ErrStatement)
		}
	case "TRIGGER":
		r.past("ON", func() {})
		var ok bool
		if c.On, ok = r.ident(); !ok || !r.accept("FOR", "EACH", "ROW") {
			return fmt.Errorf("%w: it is of no table", ErrStatement)
		}
		if r.acceptAny("FOLLOWS", "PRECEDES") {
			r.ident()
		}
	case "EVENT":
		if !r.past("DO", func() {
			if r.is(r.i, "ENABLE") || r.is(r.i, "DISABLE") {
				c.State = Ident{Name: r.shown(r.i), Begin: r.at(r.i).Begin, End: r.at(r.i).End}
			}
		}) {
			return fmt.Errorf("%w: it does nothing", ErrStatement)
		}
	case "PROCEDURE", "FUNCTION":
		r.characteristics(c)
		if r.is(r.i, "SONAME") {
			return fmt.Errorf("%w: it loads a library", ErrStatement)
		}
	case "PACKAGE", "PACKAGE BODY":
		r.characteristics(c)
	}
	p := program{reader: r}
	if strings.HasPrefix(c.Kind, "PACKAGE") {
		p.open(packs)
		r.acceptAny("AS", "IS")
	} else if c.Kind != "VIEW" && r.at(r.i+1).Kind != TokenString && r.acceptAny("AS", "IS") {
		p.open(declares)
	}
	c.statements = p.split()
	if r.i < len(r.t) {
		return fmt.Errorf("%w: another statement follows it, %s", ErrStatement, r.shown(r.i))
	}
	return nil
}

// past skips everything up to and including a word of this statement; f sees each token.
func (r *reader) past(word string, f func()) bool {
	for r.i < len(r.t) && !r.sign(r.i, ";") {
		if r.accept(word) {
			return true
		}
		f()
		r.i++
	}
	return false
}

// characteristics skips the parameters of a routine, what it returns, and what is said about it.
func (r *reader) characteristics(c *Create) {
	if r.sign(r.i, "(") {
		r.group()
	}
	for {
		switch {
		case r.accept("RETURNS"), r.d.Oracle && r.accept("RETURN"):
			r.dataType()
		case r.accept("COMMENT"), r.accept("LANGUAGE"):
			r.i++
		case r.accept("SQL", "SECURITY"):
			c.Invoker = r.is(r.i, "INVOKER")
			r.i++
		case r.accept("NOT", "DETERMINISTIC"), r.accept("DETERMINISTIC"), r.accept("CONTAINS", "SQL"), r.accept("NO", "SQL"),
			r.accept("READS", "SQL", "DATA"), r.accept("MODIFIES", "SQL", "DATA"):
		case r.is(r.i, "USING") && r.sign(r.i+1, "("):
			r.i++
			r.group()
		default:
			return
		}
	}
}

// dataType skips a type.
func (r *reader) dataType() {
	for r.acceptAny("NATIONAL", "LONG", "ROW", "TYPE", "OF") {
	}
	if !r.accept("DOUBLE") { // PRECISION is among what may follow
		if _, ok := r.ident(); ok && r.sign(r.i, ".") { // TYPE OF schema.table.column
			r.i += 2
		}
	}
	for {
		switch {
		case r.sign(r.i, "("):
			r.group()
		case r.sign(r.i, "%"): // %TYPE
			r.i += 2
		case r.accept("CHARACTER", "SET"), r.accept("CHAR", "SET"), r.accept("CHARSET"), r.accept("COLLATE"):
			r.i++
		case r.acceptAny("UNSIGNED", "SIGNED", "ZEROFILL", "BINARY", "ASCII", "UNICODE", "BYTE", "PRECISION", "VARYING", "VARCHAR", "VARBINARY", "VARCHARACTER", "CHAR", "CHARACTER"):
		default:
			return
		}
	}
}

// readTable makes sure that nothing but columns, keys and options follow the name of a table: no rows of a query, no other
// table's form, and notes its folders.
func (r *reader) readTable(c *Create) error {
	if !r.sign(r.i, "(") || r.is(r.i+1, "LIKE") || r.is(r.i+1, "SELECT") || r.sign(r.i+1, "(") {
		return fmt.Errorf("%w: it has no list of columns, but %s", ErrStatement, r.shown(r.i))
	}
	r.group()
	for depth := 0; r.i < len(r.t); r.i++ {
		t := r.t[r.i]
		switch {
		case r.sign(r.i, "("):
			depth++
		case r.sign(r.i, ")"):
			depth--
		case r.sign(r.i, ";"):
			return fmt.Errorf("%w: another statement follows it, %s", ErrStatement, r.shown(r.i+1))
		case t.Kind != TokenWord || r.sign(r.i-1, "="):
		case (r.is(r.i, "DATA") || r.is(r.i, "INDEX")) && r.is(r.i+1, "DIRECTORY"):
			last := r.i + 1
			if r.sign(last+1, "=") {
				last++
			}
			if r.at(last+1).Kind == TokenString {
				last++
			}
			if r.sign(last+1, ",") {
				last++
			}
			c.Directories = append(c.Directories, Edit{Begin: t.Begin, End: r.at(last).End})
		case r.is(r.i, "SELECT"), depth == 0 && slices.Contains([]string{"AS", "IGNORE", "REPLACE", "TABLE", "VALUES", "START", "LIKE"}, strings.ToUpper(t.Text)),
			depth == 0 && r.is(r.i, "WITH") && !r.is(r.i+1, "SYSTEM") && !r.is(r.i+1, "PARSER"):
			return fmt.Errorf("%w: after its columns it has %s", ErrStatement, r.shown(r.i))
		}
	}
	return nil
}

// readAccounts makes sure that no second account follows, and notes DEFAULT ROLE.
func (r *reader) readAccounts(c *Create) error {
	for ; r.i < len(r.t); r.i++ {
		begin := r.at(r.i).Begin
		switch {
		case r.accept("DEFAULT", "ROLE"):
			first, end := r.at(r.i).Begin, 0
			for {
				a, ok := r.account()
				if !ok {
					return fmt.Errorf("%w: it names no role", ErrStatement)
				}
				if end = a.End; !r.accept(",") {
					break
				}
			}
			r.i--
			c.Roles = Ident{Name: r.text[first:end], Begin: begin, End: end}
		case r.sign(r.i, ","):
			return fmt.Errorf("%w: it makes another account, %s", ErrStatement, r.shown(r.i+1))
		case r.sign(r.i, ";"):
			return fmt.Errorf("%w: another statement follows it, %s", ErrStatement, r.shown(r.i+1))
		}
	}
	return nil
}
