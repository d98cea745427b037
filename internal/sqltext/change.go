package sqltext

import (
	"slices"
	"strings"
)

// Change is what a statement changes: definitions, or the rows of tables.
type Change struct {
	// Verb is CREATE, ALTER, DROP, RENAME, TRUNCATE, INSERT, UPDATE or DELETE. As the servers have it, to make or drop an index is
	// to ALTER its table; what REPLACE and LOAD do is INSERT.
	Verb      string
	Kind      string  // TABLE, VIEW, TRIGGER, PROCEDURE, DATABASE, USER and so on; of rows TABLE
	Temporary bool    // of a table that only its session sees
	Names     []Ident // what is changed, as it is called before; accounts are user@host. None: what the session is in
	To        []Ident // what those are called afterwards, one for each: RENAME, and ALTER … RENAME
	On        Ident   // the table of a trigger that is made
	OrReplace bool
	Kept      bool // IF NOT EXISTS: what is there stays as it is
	Filled    bool // CREATE TABLE … SELECT: with rows
	Moves     bool // an ALTER TABLE after which the table may have other rows: by its partitions, its file, an engine that keeps none, ALTER IGNORE
	Empties   bool // an ALTER TABLE drops or empties partitions
	More      bool // an ALTER TABLE names other tables, or the same by another name

	Constraints []Ident // that an ALTER TABLE drops or alters, by their names
	Checks      []Ident // that it adds under a name
}

// InSchema reports whether what is changed belongs to a schema: to the session's where its name has none.
func (c Change) InSchema() bool {
	switch c.Kind {
	case "TABLE", "VIEW", "TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "SEQUENCE", "PACKAGE", "PACKAGE BODY", "LIBRARY":
		return true
	}
	return false
}

// ReadChange reads what a statement changes; ok is false if that is neither a definition nor rows (SET, GRANT, ANALYZE),
// or if it does not say what. Unlike ReadCreate it does not check the rest of the statement: it is for texts that a server ran.
// Making a view, a trigger or a routine does not change the tables and programs that it uses; for a DELETE or UPDATE of several
// tables those that it only reads may be among the names. Names have places in definitions, not in changes of rows. Sources: MySQL
// manual, "Data Definition Statements"; MariaDB documentation, "Data Definition".
func (d Dialect) ReadChange(text string) (c Change, ok bool) {
	verb := Verb([]byte(text))
	switch verb {
	case "INSERT", "REPLACE", "LOAD", "UPDATE", "DELETE":
		return d.readRows(verb, text)
	case "CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE", "SET":
	default:
		return c, false
	}
	r := &reader{d: d, text: text, t: d.Tokens(text), i: 1}
	if verb == "SET" {
		return r.readSet()
	}
	c.Verb = verb
	switch verb {
	case "TRUNCATE":
		r.accept("TABLE")
		c.Kind, c.Names = "TABLE", r.idents()
	case "RENAME":
		r.readRenames(&c)
	default:
		r.readDefinition(&c)
	}
	return c, c.Kind != "" && (len(c.Names) > 0 || c.Kind == "DATABASE" || !c.InSchema())
}

// readSet reads MariaDB's SET STATEMENT variable = value, … FOR statement.
func (r *reader) readSet() (c Change, ok bool) {
	if !r.is(1, "STATEMENT") {
		return c, false
	}
	_, end := r.d.Find(r.text, "FOR")
	if end < 0 {
		return c, false
	}
	c, ok = r.d.ReadChange(r.text[end:])
	move := func(n *Ident) {
		if n.End > 0 {
			n.Begin, n.End = n.Begin+end, n.End+end
		}
	}
	move(&c.On)
	for _, list := range [][]Ident{c.Names, c.To, c.Constraints, c.Checks} {
		for i := range list {
			move(&list[i])
		}
	}
	return c, ok
}

// readRows reads a statement that changes rows.
func (d Dialect) readRows(verb, text string) (c Change, ok bool) {
	c = Change{Verb: verb, Kind: "TABLE"}
	if verb == "REPLACE" || verb == "LOAD" {
		c.Verb = "INSERT"
	}
	for _, t := range d.tables([]byte(text)).changed(c.Verb) {
		c.Names = append(c.Names, Ident{Schema: t.Schema, Name: t.Name})
	}
	return c, len(c.Names) > 0
}

// changed are the tables whose rows a statement may change.
func (p *tableReader) changed(verb string) (out []Table) {
	if verb == "INSERT" {
		return p.found[:min(1, len(p.found))]
	}
	for _, t := range p.written {
		hit := func(target Table) bool {
			if t.alias != "" && target.Schema == "" && strings.EqualFold(target.Name, t.alias) {
				return true
			}
			return strings.EqualFold(target.Name, t.Name) && (target.Schema == "" || t.Schema == "" || target.Schema == t.Schema)
		}
		if (len(p.targets) == 0 || slices.ContainsFunc(p.targets, hit)) && !slices.Contains(out, t.Table) {
			out = append(out, t.Table)
		}
	}
	if len(out) == 0 {
		return p.found
	}
	return out
}

// idents reads names with commas between them.
func (r *reader) idents() []Ident {
	return several(r.ident, func() bool { return r.accept(",") })
}

// several reads names by one as long as next skips what is between two of them.
func several(one func() (Ident, bool), next func() bool) (out []Ident) {
	for {
		n, ok := one()
		if !ok {
			return out
		}
		if out = append(out, n); !next() {
			return out
		}
	}
}

// readRenames reads RENAME TABLE and RENAME USER from after the verb.
func (r *reader) readRenames(c *Change) {
	one := r.ident
	switch {
	case r.acceptAny("TABLE", "TABLES"):
		c.Kind = "TABLE"
	case r.accept("USER"):
		c.Kind, one = "USER", r.accountName
	default:
		return
	}
	r.accept("IF", "EXISTS")
	for {
		from, ok := one()
		if !ok || !r.past("TO", func() {}) { // WAIT n, NOWAIT
			return
		}
		to, ok := one()
		if !ok {
			return
		}
		c.Names, c.To = append(c.Names, from), append(c.To, to)
		if !r.accept(",") {
			return
		}
	}
}

// otherKinds are what definitions are about besides those in kinds.
var otherKinds = [][]string{{"TABLES"}, {"INDEX"}, {"SPATIAL", "REFERENCE", "SYSTEM"}, {"RESOURCE", "GROUP"}, {"UNDO", "TABLESPACE"}, {"TABLESPACE"}, {"LOGFILE", "GROUP"}, {"SERVER"}, {"LIBRARY"}, {"INSTANCE"}}

// readDefinition reads CREATE, ALTER and DROP from after the verb.
func (r *reader) readDefinition(c *Change) {
	c.OrReplace = r.accept("OR", "REPLACE")
	ignore := r.definedAs(c)
	if r.accept("IF", "NOT", "EXISTS") {
		c.Kept = true
	} else {
		r.accept("IF", "EXISTS")
	}
	switch c.Kind {
	case "", "INSTANCE":
		return
	case "USER", "ROLE":
		c.Names = r.accounts()
		return
	case "INDEX":
		c.Verb, c.Kind, c.OrReplace, c.Kept = "ALTER", "TABLE", false, false
		if r.past("ON", func() {}) {
			if n, ok := r.ident(); ok {
				c.Names = []Ident{n}
			}
		}
		return
	case "DATABASE":
		if c.Verb == "ALTER" && r.at(r.i).Kind == TokenWord && databaseOptions[strings.ToUpper(r.at(r.i).Text)] {
			return
		}
	}
	if c.Verb == "DROP" {
		c.Names = r.idents()
		return
	}
	n, ok := r.ident()
	if !ok {
		return
	}
	c.Names = []Ident{n}
	switch {
	case c.Verb == "ALTER" && c.Kind == "TABLE":
		c.Moves = ignore
		r.readAlter(c)
	case c.Verb == "ALTER" && c.Kind == "EVENT":
		for r.i < len(r.t) && !r.is(r.i, "DO") {
			if r.accept("RENAME", "TO") {
				c.To = r.idents()
				return
			}
			r.i++
		}
	case c.Kind == "TRIGGER" && r.past("ON", func() {}):
		c.On, _ = r.ident()
	case c.Kind == "TABLE":
		c.Filled = r.filled()
	}
}

// databaseOptions are what may follow ALTER DATABASE where that names none.
var databaseOptions = setOf("DEFAULT", "CHARACTER", "CHARSET", "COLLATE", "COMMENT", "ENCRYPTION", "READ")

// definedAs reads what a definition is of. ignore: it is an ALTER IGNORE, which drops rows that are there twice.
func (r *reader) definedAs(c *Change) (ignore bool) {
	for {
		switch {
		case r.is(r.i, "SPATIAL") && r.is(r.i+1, "REFERENCE"):
		case r.accept("IGNORE"):
			ignore = true
			continue
		case r.acceptAny("ONLINE", "OFFLINE", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR"):
			continue
		}
		break
	}
	var made Create
	if r.modifiers(&made) {
		c.Kind, c.Temporary = made.Kind, made.Temporary
		return ignore
	}
	for _, k := range otherKinds {
		if r.accept(k...) {
			if c.Kind = strings.Join(k, " "); c.Kind == "TABLES" {
				c.Kind, c.Temporary = "TABLE", made.Temporary
			}
			return ignore
		}
	}
	return ignore
}

// readAlter reads what ALTER TABLE says after the table's name.
func (r *reader) readAlter(c *Change) {
	also := func() {
		c.More, c.Moves = true, true
		if n, ok := r.ident(); ok {
			c.Names = append(c.Names, n)
		}
	}
	for depth := 0; r.i < len(r.t); r.i++ {
		switch {
		case r.sign(r.i, "("):
			depth++
		case r.sign(r.i, ")"):
			depth--
		case r.is(r.i, "REFERENCES"):
			c.More = true
		case r.is(r.i, "CONSTRAINT"), r.is(r.i, "CHECK"), r.is(r.i, "FOREIGN"):
			r.readConstraint(c)
		case depth > 0 || r.at(r.i).Kind != TokenWord:
		case r.is(r.i, "RENAME") && !r.is(r.i+1, "COLUMN") && !r.is(r.i+1, "INDEX") && !r.is(r.i+1, "KEY"):
			r.i++
			if !r.acceptAny("TO", "AS") {
				r.accept("=")
			}
			c.More = true
			if n, ok := r.ident(); ok {
				c.To = []Ident{n}
			}
			r.i--
		case r.is(r.i, "EXCHANGE"):
			c.More, c.Moves = true, true
			if r.past("WITH", func() {}) {
				r.accept("TABLE")
				also()
			}
			r.i--
		case r.is(r.i, "CONVERT") && (r.is(r.i+1, "TABLE") || r.is(r.i+1, "PARTITION")):
			if r.past("TABLE", func() {}) {
				also()
			}
			r.i--
		case r.is(r.i, "UNION"):
			c.More = true
		case r.is(r.i, "PARTITION") && (r.is(r.i-1, "DROP") || r.is(r.i-1, "TRUNCATE")):
			c.Moves, c.Empties = true, true
		case r.is(r.i, "PARTITION"), r.is(r.i, "DISCARD"), r.is(r.i, "IMPORT"), r.is(r.i, "VERSIONING"), r.is(r.i, "BLACKHOLE"):
			c.Moves = true
		}
	}
}

// readConstraint reads, from the word that says which kind it is, the name of a constraint that is dropped, altered, or a CHECK that is added.
// It stays at the last token that it reads.
func (r *reader) readConstraint(c *Change) {
	begin, there := r.i, r.is(r.i-1, "DROP") || r.is(r.i-1, "ALTER")
	named := r.accept("CONSTRAINT")
	if !named && !(there && (r.accept("CHECK") || r.accept("FOREIGN", "KEY"))) {
		return
	}
	if !r.accept("IF", "EXISTS") {
		r.accept("IF", "NOT", "EXISTS")
	}
	n, ok := r.ident()
	switch {
	case ok && there:
		c.Constraints = append(c.Constraints, n)
	case ok && r.is(r.i, "CHECK"):
		c.Checks = append(c.Checks, n)
	}
	r.i = max(begin, r.i-1)
}

// filled reports whether a query follows in the definition of a table.
func (r *reader) filled() bool {
	for depth := 0; r.i < len(r.t); r.i++ {
		switch {
		case r.sign(r.i, "("):
			depth++
		case r.sign(r.i, ")"):
			depth--
		case r.is(r.i, "SELECT"), depth == 0 && (r.is(r.i, "TABLE") || r.is(r.i, "VALUES")):
			return true
		}
	}
	return false
}

// accountName reads an account as the name of what is changed.
func (r *reader) accountName() (Ident, bool) {
	a, ok := r.account()
	return Ident{Name: a.String(), Begin: a.Begin, End: a.End}, ok
}

// accounts reads a list of accounts, each with what may be said of it.
func (r *reader) accounts() []Ident { return several(r.accountName, r.toNextAccount) }

// toNextAccount skips how an account is identified, to the next one of the list; what follows the list is for all of them.
func (r *reader) toNextAccount() bool {
	for depth := 0; r.i < len(r.t); r.i++ {
		switch {
		case r.sign(r.i, "("):
			depth++
		case r.sign(r.i, ")"):
			depth--
		case depth == 0 && r.accept(","):
			return true
		case r.sign(r.i, ";"), r.is(r.i, "WITH") && !r.is(r.i-1, "IDENTIFIED"), r.is(r.i, "PASSWORD") && (r.is(r.i+1, "EXPIRE") || r.is(r.i+1, "HISTORY") || r.is(r.i+1, "REUSE")),
			r.is(r.i, "DEFAULT"), r.is(r.i, "REQUIRE"), r.is(r.i, "ACCOUNT"), r.is(r.i, "ATTRIBUTE"), r.is(r.i, "COMMENT"):
			return false
		}
	}
	return false
}
