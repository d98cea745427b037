package load

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/sqltext"
)

// clause is a part of a table's definition that a server may not know, though it could have the rows. Its forms are tried in turn:
// as it is, as what is near to it, without it.
type clause struct {
	name  string // as written there
	forms []form
	form  int // the one that is taken; 0: as it is
}

// form is a replacement for a clause.
type form struct {
	words string // in a finding
	apply func(definition) definition
}

// withoutIt is the last form of most.
const withoutIt = "the same without it"

// fit finds what of a definition the server takes, leaving as little of it away as can be. The clauses are those that are not there as
// they were, lost the words that the server ignores. The server's error is returned if it takes none of it.
func (r *run) fit(ctx context.Context, s *session, def definition) (_ definition, _ []clause, lost []string, err error) {
	lost, err = r.takes(ctx, s, def)
	if err == nil || mysql.ErrorNumber(err) == 0 {
		return def, nil, lost, err
	}
	fitted, list, ok, other := choose(def, r.clausesOf(def), func(d definition) error {
		_, err := r.takes(ctx, s, d)
		return err
	})
	if other != nil {
		err = other
	}
	if !ok {
		return def, nil, nil, err
	}
	lost, err = r.takes(ctx, s, fitted)
	return fitted, list, lost, err
}

// choose finds the forms of clauses with which a definition is taken, leaving as little of it away as can be; the clauses are those that are not
// there as they were. ok is false if it is taken with none. An error says nothing about the definition.
func choose(def definition, list []clause, takes func(definition) error) (_ definition, changed []clause, ok bool, err error) {
	trouble := func(err error) bool { return mysql.ErrorNumber(err) == 0 || passes(err) }
	with := func() definition {
		d := def
		for _, c := range list {
			if c.form > 0 {
				d = c.forms[c.form-1].apply(d)
			}
		}
		return d
	}
	for i := range list {
		list[i].form = len(list[i].forms)
	}
	if err := takes(with()); err != nil {
		if trouble(err) {
			return def, nil, false, err
		}
		return def, nil, false, nil
	}
	for i := range list {
		for most := list[i].form; ; list[i].form++ {
			if list[i].form == most {
				list[i].form = 0
			}
			err := takes(with())
			if err == nil {
				break
			}
			if trouble(err) {
				return def, nil, false, err
			}
			if list[i].form+1 == most {
				list[i].form = most
				break
			}
		}
	}
	return with(), slices.DeleteFunc(list, func(c clause) bool { return c.form == 0 }), true, nil
}

// takes says whether the server takes a definition; lost are words that it reads over. What a temporary table cannot have is read
// by PREPARE.
func (r *run) takes(ctx context.Context, s *session, def definition) (lost []string, err error) {
	one := def
	if r.server.HasHistory() {
		one = def.unversioned().timeless().unnumbered()
	} else {
		one.tail = neverTemporary().ReplaceAllString(one.tail, "")
		if r.known.keyring {
			one.tail = encryption().ReplaceAllString(one.tail, "")
		}
	}
	if lost, err = s.rehearseTable(ctx, one); err != nil {
		return nil, err
	}
	err = s.understands(ctx, def.statement("`risso_rehearsal`"))
	if n := mysql.ErrorNumber(err); n != 0 && elsewhere[n] {
		err = nil
	}
	return lost, err
}

// What only permanent tables of MySQL have. Encryption needs a server with a keyring.
var (
	neverTemporary = pattern.Lazy(` (COMPRESSION='[a-zA-Z]*'|KEY_BLOCK_SIZE=[0-9]+|ROW_FORMAT=COMPRESSED)`)
	encryption     = pattern.Lazy(` (/\*!80016 )?ENCRYPTION='[YN]'( \*/)?`)
)

// clausesOf are the clauses of a definition that some server does not know. What makes others possible comes first.
func (r *run) clausesOf(def definition) (list []clause) {
	if history := def.unversioned(); len(history.items) != len(def.items) || history.tail != def.tail {
		list = append(list, clause{"WITH SYSTEM VERSIONING", []form{{withoutIt, definition.unversioned}}, 0})
	}
	auto := ""
	for _, item := range def.items {
		if name, rest, ok := unquoted(item); ok && asDefault.Has(rest, "AUTO_INCREMENT") {
			auto = name
		}
	}
	var keys []clause
	for _, item := range def.items {
		if strings.HasPrefix(item, "`") {
			list = append(list, r.columnClauses(item)...)
			continue
		}
		if isForeignKey(item) || strings.HasPrefix(item, "PERIOD FOR SYSTEM_TIME") {
			continue
		}
		c := clause{name: item}
		if plain := keyColumns().FindString(item); plain != "" && plain != item && isAnyKey(item) {
			c.forms = append(c.forms, form{"the key without more", replace(item, plain)})
		}
		if (!strings.HasPrefix(item, "PRIMARY KEY") || strings.HasSuffix(item, overlaps)) && (auto == "" || firstPart(item) != auto) {
			c.forms = append(c.forms, form{withoutIt, drop(item)})
		}
		if len(c.forms) > 0 {
			keys = append(keys, c)
		}
	}
	list = append(list, keys...)
	if at := partitioning(def.tail); at >= 0 {
		list = append(list, clause{"PARTITION BY", []form{{"the table in one piece", func(d definition) definition {
			d.tail = d.tail[:partitioning(d.tail)]
			return d
		}}}, 0})
		def.tail = def.tail[:at]
	}
	for _, option := range tableOption().FindAllString(def.tail, -1) {
		name, _, _ := strings.Cut(strings.Trim(strings.TrimSpace(option), "`"), "=")
		if name = strings.Trim(name, "`"); slices.Contains(keptOptions, name) {
			continue
		}
		list = append(list, clause{strings.TrimSpace(option), []form{{withoutIt, func(d definition) definition {
			d.tail = strings.Replace(d.tail, option, "", 1)
			return d
		}}}, 0})
	}
	return list
}

// keptOptions of a table are no clauses that a server may not know, or are looked at elsewhere.
var keptOptions = []string{"ENGINE", "CHARSET", "COLLATE", "AUTO_INCREMENT", "COMMENT", "UNION", "INSERT_METHOD"}

var (
	tableOption = pattern.Lazy(" (`[A-Z_a-z]+`|[A-Z_]+)=('(?:[^'\\\\]|\\\\.|'')*'|[A-Za-z0-9_]+|\\([^)]*\\))")
	keyColumns  = pattern.Lazy("^(?:[A-Z]+ )*KEY (?:`(?:[^`]|``)*` )?\\((?:[^()`]|`(?:[^`]|``)*`|\\([0-9]+\\))*\\)")
)

func isAnyKey(item string) bool {
	for _, word := range []string{"PRIMARY ", "UNIQUE ", "FULLTEXT ", "SPATIAL ", "VECTOR ", ""} {
		if strings.HasPrefix(item, word+"KEY ") {
			return true
		}
	}
	return false
}

// partitioning is where in a definition's tail the partitions begin, or -1.
func partitioning(tail string) int {
	i := placeOf(tail, "PARTITION BY")
	if i < 0 {
		return -1
	}
	return len(strings.TrimRight(strings.TrimSuffix(strings.TrimRight(tail[:i], " \n0123456789"), "/*!"), " \n"))
}

// replace puts another text in an item's place.
func replace(item, by string) func(definition) definition {
	return func(d definition) definition {
		d.items = slices.Clone(d.items)
		if i := slices.Index(d.items, item); i >= 0 {
			d.items[i] = by
		}
		return d
	}
}

// drop takes an item out.
func drop(item string) func(definition) definition {
	return func(d definition) definition {
		d.items = slices.DeleteFunc(slices.Clone(d.items), func(i string) bool { return i == item })
		return d
	}
}

// inColumn replaces one text of a column, as it is by then, with another.
func inColumn(item, old, by string) func(definition) definition {
	name := item[:nameEnd(item)]
	return func(d definition) definition {
		d.items = slices.Clone(d.items)
		for i, it := range d.items {
			if strings.HasPrefix(it, name+" ") {
				if at := placeOf(it, old); at >= 0 {
					d.items[i] = it[:at] + by + it[at+len(old):]
				}
			}
		}
		return d
	}
}

// typesHere are types of one flavour with their equivalents elsewhere.
var typesHere = map[string]string{"uuid": "char(36)", "inet6": "varchar(39)", "inet4": "varchar(15)", "xmltype": "longtext", "geomcollection": "geometrycollection"}

var vectorType = pattern.Lazy(`^vector\(([0-9]+)\)`)

// columnClauses are those of a column.
func (r *run) columnClauses(item string) (list []clause) {
	end := nameEnd(item)
	name, rest := item[:end], item[end:]
	add := func(text string, forms ...form) {
		list = append(list, clause{name + strings.TrimRight(text, " "), forms, 0})
	}
	kind, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	if to, ok := typesHere[kind]; ok {
		add(" "+kind, form{to, inColumn(item, " "+kind, " "+to)})
	}
	if m := vectorType().FindStringSubmatch(kind); m != nil {
		const floats = 4
		to := "varbinary(" + times(m[1], floats) + ")"
		add(" "+kind, form{to, inColumn(item, " "+kind, " "+to)})
	}
	if at := generatedAt(rest); at >= 0 {
		forms := []form{{"the table without this column", func(d definition) definition {
			d.items = slices.DeleteFunc(slices.Clone(d.items), func(i string) bool {
				return strings.HasPrefix(i, name+" ") || isAnyKey(i) && strings.Contains(i, name)
			})
			return d
		}}}
		for _, word := range []string{" NOT NULL", " INVISIBLE"} { // MariaDB has the one for no such column
			if placeOf(rest[at:], word) >= 0 {
				forms = slices.Insert(forms, 0, form{"the same without" + word, inColumn(item, word, "")})
			}
		}
		add(rest[at:], forms...)
		return list
	}
	if at := placeOf(rest, " AUTO_INCREMENT"); at >= 0 && (strings.HasPrefix(kind, "float") || strings.HasPrefix(kind, "double")) {
		add(" AUTO_INCREMENT", form{withoutIt, inColumn(item, " AUTO_INCREMENT", "")})
	}
	if value := defaultOf(rest); value != "" {
		forms := []form{{withoutIt, inColumn(item, " DEFAULT "+value, "")}}
		if !strings.HasPrefix(value, "(") {
			forms = append([]form{{"DEFAULT (" + value + ")", inColumn(item, " DEFAULT "+value, " DEFAULT ("+value+")")}}, forms...)
		}
		add(" DEFAULT "+value, forms...)
	}
	for _, word := range []string{" CHECK (", " REF_SYSTEM_ID="} {
		at := placeOf(rest, word)
		if at < 0 {
			continue
		}
		text := rest[at:]
		if word == " CHECK (" {
			text = text[:groupEnd(text, len(word)-1)]
		} else if next := strings.IndexByte(text[1:], ' '); next >= 0 {
			text = text[:next+1]
		}
		add(text, form{withoutIt, inColumn(item, text, "")})
	}
	for _, text := range append(columnComment().FindAllString(rest, -1), " INVISIBLE", " WITHOUT SYSTEM VERSIONING", " WITH SYSTEM VERSIONING") {
		if placeOf(rest, text) >= 0 {
			add(text, form{withoutIt, inColumn(item, text, "")})
		}
	}
	return list
}

// columnComment is what MySQL writes of where a column is stored.
var columnComment = pattern.Lazy(` /\*!50606 (?:STORAGE|COLUMN_FORMAT) [A-Z]+ \*/`)

// times multiplies a number that is written.
func times(digits string, by int) string {
	n := 0
	for _, c := range digits {
		n = 10*n + int(c-'0')
	}
	return strconv.Itoa(n * by)
}

// generatedAt is where in a column's definition its expression begins, or -1.
func generatedAt(rest string) int {
	for _, word := range []string{" GENERATED ALWAYS AS (", " AS ("} {
		if at := placeOf(rest, word); at >= 0 {
			return at
		}
	}
	return -1
}

// defaultOf is a column's default if that is an expression, and "" if it is a value or the time of now.
func defaultOf(rest string) string {
	const word = " DEFAULT "
	at := placeOf(rest, word)
	if at < 0 {
		return ""
	}
	text := rest[at+len(word):]
	i := 0
	if t := asDefault.Tokens(text); len(t) > 0 && t[0].Kind == sqltext.TokenWord {
		i = t[0].End
	}
	if i >= len(text) || text[i] != '(' || strings.EqualFold(text[:i], "current_timestamp") {
		return ""
	}
	return text[:groupEnd(text, i)]
}

// groupEnd is the place after the parentheses that open at i.
func groupEnd(s string, i int) int {
	depth := 0
	for _, t := range asDefault.Tokens(s[i:]) {
		switch {
		case t.Kind != sqltext.TokenSign:
		case t.Text == "(":
			depth++
		case t.Text == ")":
			if depth--; depth == 0 {
				return i + t.End
			}
		}
	}
	return len(s)
}

// nameEnd is the place after the name that a column's definition begins with.
func nameEnd(item string) int {
	if t := asDefault.Tokens(item); len(t) > 0 {
		return t[0].End
	}
	return len(item)
}

// placeOf returns the place of a text outside of quotes, including the blank or comment that it begins with, or -1.
func placeOf(s, text string) int {
	from := 0
	for _, t := range asDefault.Tokens(s) {
		for i := from; i <= t.Begin; i++ {
			if strings.HasPrefix(s[i:], text) {
				return i
			}
		}
		from = t.End
	}
	return -1
}

// alike translates words of one flavour into those of the other that mean the same.
func (r *run) alike(def definition) definition {
	hidden := r.server.HiddenKey()
	items := slices.Clone(def.items)
	for i, item := range items {
		swap := func(old, by string) {
			if at := placeOf(items[i], old); at >= 0 {
				items[i] = items[i][:at] + by + items[i][at+len(old):]
			}
		}
		switch {
		case isAnyKey(item):
			for _, word := range mysql.HiddenKeys() {
				if hidden != "" && word != hidden {
					swap(word, hidden)
				}
			}
		case r.server.TextDefaultsPlain():
			swap(" /*!80023 INVISIBLE */", " INVISIBLE")
		default:
			items[i] = textDefault(item)
		}
	}
	def.items = items
	return def
}

// textDefault puts the default of a TEXT or BLOB into parentheses: MySQL takes no other there, and reads over an empty one without strict
// mode.
func textDefault(item string) string {
	const word = " DEFAULT "
	end := nameEnd(item)
	kind, _, _ := strings.Cut(strings.TrimSpace(item[end:]), " ")
	at := placeOf(item, word)
	if at < 0 || !strings.HasPrefix(item, "`") || !strings.HasSuffix(kind, "text") && !strings.HasSuffix(kind, "blob") {
		return item
	}
	from := at + len(word)
	t := asDefault.Tokens(item[from:])
	if len(t) == 0 || t[0].Kind != sqltext.TokenString && t[0].Kind != sqltext.TokenNumber {
		return item
	}
	return item[:from] + "(" + item[from:from+t[0].End] + ")" + item[from+t[0].End:]
}

// uncompressed removes MariaDB's compression of a column, which is in a comment that MySQL ignores.
func (r *run) uncompressed(where string, d definition) definition {
	if r.server.CompressesColumns() {
		return d
	}
	d.items = slices.Clone(d.items)
	for i, item := range d.items {
		m := compressed().FindString(item)
		if at := placeOf(item, m); m != "" && at >= 0 && strings.HasPrefix(item, "`") {
			r.find(where, item[:nameEnd(item)]+" COMPRESSED is not known here", withoutIt)
			d.items[i] = item[:at] + item[at+len(m):]
		}
	}
	return d
}

var compressed = pattern.Lazy(` /\*M!100301 COMPRESSED\*/`)

// inOnePiece takes partitions off an engine that has none on MySQL since 8.0. A temporary table has none anyway, and to read them is
// not to look at the engine.
func (r *run) inOnePiece(where string, d definition) definition {
	at := partitioning(d.tail)
	if at < 0 || r.server.PartitionsAnyEngine() {
		return d
	}
	switch engine := d.engine(); strings.ToLower(engine) {
	case "innodb", "ndb", "ndbcluster":
	default:
		r.find(where, "PARTITION BY with the engine "+engine+" is not known here", "the table in one piece")
		d.tail = d.tail[:at]
	}
	return d
}

// parserOf finds which parser a full-text key names.
var parserOf = pattern.Lazy(" (?:/\\*!50100 )?WITH PARSER `([^`]*)` ?(?:\\*/)?")

// fitting is a table whose definition the server is asked about.
type fitting struct {
	at      ref
	table   *repo.Table
	where   string
	parsed  definition // as it would be made
	def     definition // in the server's words; then as it takes them
	clauses []clause   // that are not there as they were
	lost    []string   // words that the server reads over
	err     error      // the server's if it takes none of it
}

// beginFit readies a table for the server, and notes what needs no asking.
func (r *run) beginFit(at ref) (*fitting, error) {
	l, err := r.spool.get(at)
	if err != nil {
		return nil, err
	}
	t := l.Table
	f := &fitting{at: at, table: t, where: "table " + mysql.Quote(t.Schema) + "." + mysql.Quote(t.Name)}
	parsed, err := r.definitionOf(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.where, err)
	}
	f.parsed = r.withoutTablespace(r.withoutAria(parsed))
	f.def = r.alike(f.parsed)
	for i, item := range f.def.items { // a temporary table has no full-text key, and to read one is not to look for its parser
		if m := parserOf().FindStringSubmatch(item); m != nil && strings.HasPrefix(item, "FULLTEXT KEY") && !r.known.parsers[strings.ToLower(m[1])] {
			r.find(f.where, "WITH PARSER "+m[1]+" is not known here", withoutIt)
			f.def.items[i] = strings.Replace(item, m[0], "", 1)
		}
	}
	f.def = r.ownCheckNames(t, f.where, r.inOnePiece(f.where, r.uncompressed(f.where, f.def)))
	return f, nil
}

// endFit notes what the server does not take of a table, and says whether it takes it at all.
func (r *run) endFit(f *fitting) (bool, error) {
	switch {
	case f.err != nil && mysql.ErrorNumber(f.err) == 0:
		return false, f.err
	case f.err != nil:
		r.find(f.where, "the server rejects its definition: "+oneline.Of(f.err.Error()), "")
		return false, nil
	}
	for _, c := range f.clauses {
		words := c.forms[c.form-1].words
		if c.name == "WITH SYSTEM VERSIONING" && f.table.History {
			words = "current rows only"
		}
		r.find(f.where, c.name+" is not known here", words)
	}
	for _, word := range f.lost {
		r.find(f.where, word+" is not known here", withoutIt)
	}
	if f.def.statement("") != f.parsed.statement("") {
		r.fitted[leftTable(f.table.Schema, f.table.Name)] = f.def
	}
	return true, nil
}
