package sqltext

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"
)

// CopyName is what a constraint of a table is called in a copy of the table that has another name: servers have the name of a foreign key, and
// MySQL that of a check, once in a schema. One that the server gave by itself becomes the one that it would give in the copy. Sources: MySQL
// manual, "FOREIGN KEY Constraints" and "CHECK Constraints"; "Identifier Length Limits".
func CopyName(constraint, table, copied string) string {
	const most, kept = 64, 47 // characters
	rest, own := strings.CutPrefix(constraint, table+"_")
	kind, number, _ := strings.Cut(rest, "_")
	name := copied + "_" + constraint
	if own && (kind == "ibfk" || kind == "chk") && number != "" && strings.Trim(number, "0123456789") == "" {
		name = copied + "_" + rest
	}
	if utf8.RuneCountInString(name) <= most {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return string([]rune(name)[:kept]) + "_" + hex.EncodeToString(sum[:8])
}

// Left is what Rename could not rename.
type Left struct {
	Reason LeftReason
	Text   string // the string, or the words, as they are there
}

// LeftReason says why a name may have stayed as it was.
type LeftReason uint8

const (
	LeftString   LeftReason = iota // a string names the schema, and may be SQL
	LeftPrepared                   // SQL is put together while the program runs
	LeftPattern                    // a grant is on all schemas whose name is like this
)

// Edit is text that takes the place of other text.
type Edit struct {
	Begin, End int
	Text       string
}

// Apply makes edits in a text. They may not overlap.
func Apply(text string, edits []Edit) string {
	if len(edits) == 0 {
		return text
	}
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b Edit) int { return a.Begin - b.Begin })
	var b strings.Builder
	at := 0
	for _, e := range edits {
		b.WriteString(text[at:e.Begin])
		b.WriteString(e.Text)
		at = e.End
	}
	b.WriteString(text[at:])
	return b.String()
}

// Rename returns the edits after which a CREATE, a GRANT or any other statement names schemas by other names. to returns the
// other name, and whether there is one. Names are resolved as the servers do: of a.b.c the first is a schema, of f.g( too;
// a.b is a table of a schema where there can be a table, else a column of the table or alias a. If no table, alias or
// variable has that name, a.b can only be of a schema. What is in strings and in SQL that is put together stays, and is
// reported in left; comments stay as they are. Sources: MySQL manual, "Identifier Qualifiers"; MariaDB documentation,
// "Identifier Qualifiers".
func (d Dialect) Rename(text string, to func(schema string) (string, bool)) (edits []Edit, left []Left) {
	r := &reader{d: d, text: text, t: d.Tokens(text)}
	n := renamer{reader: r, to: to, grant: r.is(0, "GRANT") || r.is(0, "REVOKE")}
	if c, err := d.ReadCreate(text); err == nil {
		n.kind, n.statements = c.Kind, c.statements
		if c.Name.Schema != "" && c.Kind != "DATABASE" {
			n.fixed = append(n.fixed, c.Name.Begin)
		}
		if c.On.Schema != "" {
			n.fixed = append(n.fixed, c.On.Begin)
		}
	}
	if len(n.statements) == 0 {
		n.statements = []int{0}
	}
	n.learn()
	n.run()
	return n.edits, n.left
}

type renamer struct {
	*reader
	to         func(string) (string, bool)
	kind       string
	grant      bool
	statements []int           // of t
	fixed      []int           // places of schemas before tables
	tables     map[string]bool // what a column may be qualified by
	edits      []Edit
	left       []Left
}

// learn finds where tables are, and their names.
func (n *renamer) learn() {
	n.tables = map[string]bool{}
	for _, t := range n.t {
		if n.kind == "TRIGGER" && t.Kind == TokenWord && (strings.EqualFold(t.Text, "NEW") || strings.EqualFold(t.Text, "OLD")) {
			n.tables[t.Text] = true
		}
	}
	for k, first := range n.statements {
		begin, end := n.at(first).Begin, len(n.text)
		if k+1 < len(n.statements) {
			end = n.at(n.statements[k+1]).Begin
		}
		p := n.d.tables([]byte(n.text[begin:end]))
		for _, t := range p.found {
			n.tables[t.Name] = true
		}
		for name := range p.ctes {
			n.tables[name] = true
		}
		for _, at := range p.schemas {
			n.fixed = append(n.fixed, begin+at)
		}
	}
	for i, t := range n.t {
		if _, ok := n.to(t.Text); ok && t.Name() && !n.sign(i+1, ".") && n.alias(i) {
			n.tables[t.Text] = true
		}
	}
	slices.Sort(n.fixed)
}

// alias reports whether a name by itself can be an alias, or a variable with fields.
func (n *renamer) alias(i int) bool {
	before := n.at(i - 1)
	switch {
	case n.is(i-1, "AS"), n.is(i-1, "DECLARE"), n.is(i-1, "FOR"), n.is(i-1, "CURSOR"), before.Kind == TokenName, n.sign(i-1, ")"):
		return true
	}
	return before.Kind == TokenWord && !notBefore[strings.ToUpper(before.Text)]
}

// notBefore holds the words before which a name is no alias.
var notBefore = setOf("SELECT", "DISTINCT", "ALL", "WHERE", "AND", "OR", "XOR", "NOT", "ON", "BY", "HAVING", "SET", "THEN", "ELSE", "WHEN", "CASE", "IF",
	"ELSEIF", "WHILE", "UNTIL", "RETURN", "IN", "LIKE", "BETWEEN", "IS", "DIV", "MOD", "INTERVAL", "LIMIT", "USE", "SCHEMA", "DATABASE", "EXISTS", "CALL", "INTO", "USING")

// run walks over the text.
func (n *renamer) run() {
	for i := 0; i < len(n.t); i++ {
		switch t := n.t[i]; {
		case t.Kind == TokenString:
			n.inString(i)
		case t.Kind == TokenWord && n.prepares(i):
			n.left = append(n.left, Left{LeftPrepared, n.words(i)})
		case t.Name() && !n.sign(i-1, ".") && !n.sign(i-1, "@"):
			name, whole := t.Text, n.grant && n.is(0, "GRANT") && n.is(i-1, "ON") && n.sign(i+1, ".") && n.sign(i+2, "*")
			if whole { // a pattern: unchanged it is for all names that match it
				var one bool
				if name, one = ExactSchema(t.Text); !one {
					n.left = append(n.left, Left{LeftPattern, n.text[t.Begin:t.End]})
					continue
				}
			}
			if other, ok := n.to(name); ok && n.schema(i) {
				if whole {
					other = SchemaPattern(other)
				}
				n.edits = append(n.edits, Edit{t.Begin, t.End, n.quote(t, other)})
			}
		}
	}
}

// quote is a name in the quotes that the dialect has for names.
func (n *renamer) quote(t Token, name string) string {
	if n.text[t.Begin] == '"' {
		return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	}
	return "`" + strings.ReplaceAll(name, "`", "``") + "`"
}

// schema reports whether the name at i is a schema's.
func (n *renamer) schema(i int) bool {
	if !n.sign(i+1, ".") {
		return n.alone(i)
	}
	third := n.sign(i+3, ".") && (n.at(i+4).Name() || n.sign(i+4, "*"))
	_, fixed := slices.BinarySearch(n.fixed, n.t[i].Begin)
	switch {
	case fixed, third, n.grant, n.kind == "TABLE", n.kind == "SEQUENCE", n.sign(i+3, "("):
		return true
	case n.sign(i+2, "*"):
		return false // all columns of a table
	case n.at(i-1).Kind == TokenWord && beforeObject[strings.ToUpper(n.at(i-1).Text)]:
		return true
	case n.is(i-1, "FOR") && n.is(i-2, "VALUE"), n.is(i-1, "OF") && n.is(i-2, "TYPE") && n.is(i-3, "ROW"), n.sign(i+3, "%") && n.is(i+4, "ROWTYPE"):
		return true
	case n.sign(i-1, "(") && (n.is(i-2, "NEXTVAL") || n.is(i-2, "LASTVAL") || n.is(i-2, "SETVAL")):
		return true
	}
	return !n.tables[n.t[i].Text]
}

// beforeObject holds the words after which an object of a schema is named.
var beforeObject = setOf("REFERENCES", "CALL", "PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "VIEW", "PACKAGE", "SEQUENCE", "TABLE", "TABLES", "JOIN", "HANDLER", "TRUNCATE")

// alone reports whether a name without a dot after it is a schema's.
func (n *renamer) alone(i int) bool {
	before := i - 1
	if n.is(before, "EXISTS") {
		for before--; n.is(before, "NOT") || n.is(before, "IF"); before-- {
		}
	}
	if (n.is(before, "DATABASE") || n.is(before, "SCHEMA")) && before > 0 || n.is(before, "USE") && before == 0 {
		return true
	}
	if !n.is(i-1, "FROM") && !n.is(i-1, "IN") {
		return false
	}
	ofTable := 0
	for k := i - 2; k >= 0 && k > i-8 && !n.sign(k, ";"); k-- { // SHOW [FULL] TABLES FROM s, SHOW COLUMNS FROM t FROM s
		switch {
		case n.is(k, "FROM"), n.is(k, "IN"):
			ofTable++
		case n.is(k, "COLUMNS"), n.is(k, "FIELDS"), n.is(k, "INDEX"), n.is(k, "INDEXES"), n.is(k, "KEYS"):
			return ofTable == 1
		case n.is(k, "SHOW"):
			return ofTable == 0
		}
	}
	return false
}

// inString notes a string that may name a schema.
func (n *renamer) inString(i int) {
	if n.is(i-1, "COMMENT") || n.sign(i-1, "=") && n.is(i-2, "COMMENT") || n.sign(i-1, "@") || n.sign(i+1, "@") || n.grant {
		return
	}
	t := n.t[i]
	lx := lexer{s: []byte(n.d.Value(t))}
	for x := lx.any(); x.kind != tkEnd; x = lx.any() {
		for _, w := range strings.FieldsFunc(string(lx.text(x)), func(r rune) bool { return r < 0x80 && !isWord(byte(r)) }) {
			if _, ok := n.to(w); ok {
				n.left = append(n.left, Left{LeftString, t.Text})
				return
			}
		}
	}
}

// prepares reports whether a statement that runs SQL from a text begins at i.
func (n *renamer) prepares(i int) bool {
	return n.is(i, "PREPARE") && n.at(i+1).Name() && n.is(i+2, "FROM") || n.is(i, "EXECUTE") && n.is(i+1, "IMMEDIATE")
}

// words returns the beginning of the statement at i.
func (n *renamer) words(i int) string {
	end := i
	for end+1 < len(n.t) && end < i+5 && !n.sign(end+1, ";") {
		end++
	}
	return n.text[n.t[i].Begin:n.t[end].End]
}
