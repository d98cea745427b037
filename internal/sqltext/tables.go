package sqltext

import "bytes"

// Table is a table, or a view, as a statement names it; Schema is empty where the statement leaves it out.
type Table struct{ Schema, Name string }

// Tables returns the tables that a statement names, in order, each once. Names of common table expressions, aliases,
// derived tables, table functions and stored programs are none; nor are the parents of foreign keys.
func Tables(stmt []byte) []Table { return Dialect{}.tables(stmt).found }

// tables reads a statement.
func (d Dialect) tables(stmt []byte) *tableReader {
	p := tableReader{lexer: lexer{s: stmt, d: d}}
	p.tok, p.peek = p.lexer.next(), token{}
	p.peek = p.lexer.next()
	p.levels = append(p.levels, level{})
	p.read()
	return &p
}

// level is what holds inside one pair of parentheses.
type level struct {
	query  bool // a SELECT, DELETE or the like began here: FROM names tables
	list   bool // in the list of tables: a comma brings another
	expect bool // the next name is a table
	with   bool // in the list of a WITH: a comma brings another common table expression
	reads  bool // in a SELECT: what it names is only read

	portion bool // in FOR PORTION OF: the next FROM is that of a time
}

// writtenTable is a table that an UPDATE or DELETE names outside of queries.
type writtenTable struct {
	Table
	alias string // what follows it: its alias, if it has one
}

type tableReader struct {
	lexer
	tok, peek token
	prev      token // the token before tok
	levels    []level
	too       int // parentheses deeper than maxLevels
	verb      string
	found     []Table
	schemas   []int // where the schemas before their names begin
	seen      map[Table]bool
	ctes      map[string]bool
	deleteTop int     // how many tables were found when a DELETE began; -1: no DELETE, or its tables were named
	targets   []Table // of a DELETE: those it names first, tables or their aliases
	written   []writtenTable
	settings  bool // in SET STATEMENT … FOR
}

// maxLevels is how deep parentheses are distinguished; deeper ones share the last level.
const maxLevels = 4096

func (p *tableReader) advance() {
	p.prev, p.tok = p.tok, p.peek
	if p.peek.kind != tkEnd {
		p.peek = p.next()
	}
}

func (p *tableReader) top() *level { return &p.levels[len(p.levels)-1] }

func (p *tableReader) read() {
	p.deleteTop = -1
	for p.tok.kind != tkEnd {
		switch {
		case p.sign(p.tok, '('):
			p.open()
		case p.sign(p.tok, ')'):
			p.close()
		case p.sign(p.tok, ','):
			l := p.top()
			l.expect = l.list
			if l.with && (p.peek.kind == tkWord || p.peek.kind == tkTick) {
				p.advance()
				p.cte()
			}
		case p.sign(p.tok, ';'):
			if len(p.levels) == 1 {
				p.levels[0], p.verb, p.deleteTop = level{}, "", -1
			}
		case p.tok.kind == tkTick || p.tok.kind == tkString && p.s[p.tok.start] == '"' && p.top().expect:
			p.name()
			continue
		case p.tok.kind == tkWord:
			if p.prev.kind == tkSign && p.prev.end == p.tok.start && (p.s[p.prev.start] == '.' || p.s[p.prev.start] == '@') {
				break
			}
			if p.word(string(bytes.ToLower(p.text(p.tok)))) {
				continue
			}
		}
		p.advance()
	}
}

func (p *tableReader) open() {
	if len(p.levels) >= maxLevels {
		p.too++
		return
	}
	l := p.top()
	p.levels = append(p.levels, level{list: l.expect, expect: l.expect, reads: l.reads})
	l.expect = false
}

func (p *tableReader) close() {
	if p.too > 0 {
		p.too--
	} else if len(p.levels) > 1 {
		p.levels = p.levels[:len(p.levels)-1]
		p.top().expect = false
	}
}

// cte notes the name of a common table expression.
func (p *tableReader) cte() {
	if p.ctes == nil {
		p.ctes = map[string]bool{}
	}
	p.ctes[string(bytes.ToLower(unquote(p.text(p.tok))))] = true
}

// name reads a name, which may be qualified; it is a table where one is expected.
func (p *tableReader) name() {
	first := p.tok
	p.advance()
	last, schema := first, token{}
	if p.sign(p.tok, '.') && (p.peek.kind == tkWord || p.peek.kind == tkTick || p.peek.kind == tkNumber || p.peek.kind == tkString) {
		p.advance()
		schema, last = first, p.tok
		p.advance()
	}
	l := p.top()
	if !l.expect {
		return
	}
	l.expect = false
	t := Table{Name: string(unquote(p.text(last)))}
	if schema.end > 0 {
		t.Schema = string(unquote(p.text(schema)))
		p.schemas = append(p.schemas, schema.start)
	} else if p.ctes[string(bytes.ToLower([]byte(t.Name)))] || first.kind == tkWord && equalFold(p.text(first), "dual") {
		return
	}
	if p.sign(p.tok, '(') && l.query && p.verb != "insert" { // JSON_TABLE(…) and its like
		return
	}
	if !l.reads && (p.verb == "update" || p.verb == "delete") {
		p.written = append(p.written, writtenTable{t, p.alias()})
	}
	if p.seen == nil {
		p.seen = map[Table]bool{}
	}
	if !p.seen[t] {
		p.seen[t] = true
		p.found = append(p.found, t)
	}
}

// alias is what follows a table's name, if it can be its alias.
func (p *tableReader) alias() string {
	t := p.tok
	if p.is(t, "as") {
		t = p.peek
	}
	if t.kind != tkWord && t.kind != tkTick {
		return ""
	}
	return string(unquote(p.text(t)))
}

// deletes takes what was named since DELETE for the tables whose rows are deleted; those that follow say which they are.
func (p *tableReader) deletes() {
	for _, t := range p.written {
		p.targets = append(p.targets, t.Table)
	}
	p.found, p.seen, p.written, p.deleteTop = p.found[:p.deleteTop], map[Table]bool{}, nil, -1
	for _, t := range p.found {
		p.seen[t] = true
	}
}

// word acts on a word; true: it has moved on already.
func (p *tableReader) word(w string) bool {
	l := p.top()
	if w == "oj" && p.sign(p.prev, '{') { // ODBC's { OJ a LEFT OUTER JOIN b ON … }
		return false
	}
	if l.expect && !skippedBefore[w] && !clauses[w] {
		p.name()
		return true
	}
	switch w {
	case "select":
		*l = level{query: true, reads: true}
		p.start(w)
	case "with":
		p.with(l)
	case "from":
		if p.deleteTop >= 0 && len(p.levels) == 1 && len(p.written) > 0 && !l.portion {
			p.deletes()
		}
		if l.query && !p.is(p.prev, "distinct") && !l.portion {
			l.expect, l.list = true, true
		}
		l.portion = false
	case "join", "straight_join":
		l.expect = l.list && !p.is(p.prev, "for") // USE INDEX FOR JOIN (…)
	case "using":
		if p.deleteTop >= 0 && len(p.levels) == 1 && !p.sign(p.peek, '(') {
			p.deletes()
			l.expect, l.list = true, true
		}
	case "where", "group", "having", "order", "limit", "union", "except", "intersect", "window", "procedure", "returning":
		if p.is(p.prev, "for") { // USE INDEX FOR ORDER BY (…)
			return false
		}
		l.expect, l.list = false, false
	case "set", "values", "value", "do":
		l.expect, l.list = false, false
		p.start(w)
	case "for":
		if p.settings && len(p.levels) == 1 { // the statement itself
			p.settings, p.verb, *l = false, "", level{}
		} else if p.is(p.peek, "portion") {
			l.portion = true
		} else if l.list && !p.is(p.peek, "system_time") && !p.is(p.peek, "join") && !p.is(p.peek, "order") && !p.is(p.peek, "group") {
			l.expect, l.list = false, false
		}
	default:
		p.statement(l, w)
	}
	return false
}

// start notes the first verb.
func (p *tableReader) start(w string) bool {
	if p.verb != "" {
		return false
	}
	p.verb = w
	return true
}

// changes notes the verb of a statement that may follow EXPLAIN, or WITH, whose SELECTs came first.
func (p *tableReader) changes(l *level, w string) bool {
	return p.start(w) || p.verb == "explain" || l.with && p.verb == "select"
}

// with notes the common table expressions of WITH, and not WITH ROLLUP and its like.
func (p *tableReader) with(l *level) {
	if p.is(p.peek, "recursive") {
		p.advance()
	}
	if p.peek.kind != tkWord && p.peek.kind != tkTick || p.is(p.peek, "rollup") || p.is(p.peek, "check") || p.is(p.peek, "query") || p.is(p.peek, "parser") {
		return
	}
	if p.verb != "" && p.verb != "select" && p.verb != "insert" && p.verb != "replace" && p.verb != "create" && p.verb != "explain" {
		l.expect = false // FLUSH TABLES WITH READ LOCK
		return
	}
	l.with = true
	p.advance()
	p.cte()
}

// statement acts on the words that begin statements and those that name a table outside of a query.
func (p *tableReader) statement(l *level, w string) {
	root := len(p.levels) == 1
	switch w {
	case "insert", "replace":
		if root && (p.start(w) || p.verb == "explain") && !p.sign(p.peek, '(') {
			p.verb = "insert"
			*l = level{expect: true, query: true}
		}
	case "update":
		if root && p.changes(l, w) {
			p.verb = w
			*l = level{expect: true, list: true, query: true}
		}
	case "delete":
		if root && p.changes(l, w) {
			p.verb = w
			*l = level{expect: true, list: true, query: true}
			p.deleteTop = len(p.found)
		}
	case "statement":
		p.settings = root && p.verb == "set" && p.is(p.prev, "set")
	case "into":
		if p.verb == "insert" {
			l.expect = true
		}
	case "table", "tables", "view":
		if w == "table" && p.atQuery(l) {
			p.start(w)
			*l = level{expect: true, reads: true}
		}
		if !root {
			return
		}
		switch p.verb {
		case "":
			p.verb = w
			fallthrough
		case "create", "alter", "drop", "truncate", "rename", "lock", "optimize", "check", "checksum", "repair", "load", "flush", "insert", "explain":
			l.expect = true
			l.list = p.verb != "create" && p.verb != "alter" && p.verb != "load"
		case "show":
			l.expect = p.is(p.prev, "create")
		}
	case "load", "create", "alter", "drop", "rename", "lock", "optimize", "check", "checksum", "repair", "show", "flush", "grant", "revoke", "call":
		if root {
			p.start(w)
		}
	case "analyze", "explain", "describe", "desc":
		if root && p.start(w) {
			p.verb = "explain"
			if p.peek.kind == tkTick || p.peek.kind == tkWord && !explained[string(bytes.ToLower(p.text(p.peek)))] {
				l.expect = true
			}
		}
	case "truncate", "handler":
		if root && p.start(w) {
			l.expect = true
		}
	case "to":
		l.expect = root && p.verb == "rename"
	case "like":
		if p.verb == "create" && len(p.levels) <= 2 && !l.query {
			l.expect = true
		}
	case "on":
		if root && (p.verb == "create" || p.verb == "drop") && !l.query && (p.indexOrTrigger()) {
			l.expect = true
		}
	case "columns", "fields", "index", "indexes", "keys":
		if p.verb == "show" {
			l.query = true // SHOW COLUMNS FROM t
		}
	}
}

// atQuery reports whether a query that is no SELECT can begin at the current word: in parentheses, after WITH and its tables, in a UNION.
func (p *tableReader) atQuery(l *level) bool {
	if p.sign(p.prev, '(') || l.with && p.sign(p.prev, ')') {
		return true
	}
	return p.is(p.prev, "union") || p.is(p.prev, "except") || p.is(p.prev, "intersect") || p.is(p.prev, "all") || p.is(p.prev, "distinct")
}

// indexOrTrigger reports whether this ON names the table of an index or trigger.
func (p *tableReader) indexOrTrigger() bool {
	return len(p.found) == 0 && (p.peek.kind == tkWord || p.peek.kind == tkTick) && !p.is(p.peek, "schedule") && !p.is(p.peek, "completion")
}

// skippedBefore holds the words that may come between a verb and its table.
var skippedBefore = setOf("low_priority", "high_priority", "delayed", "ignore", "quick", "into", "only", "if", "exists", "not",
	"table", "tables", "lateral", "from", "local", "concurrent", "no_write_to_binlog")

// clauses holds the words that end the place where a table is expected.
var clauses = setOf("select", "set", "values", "value", "where", "with", "using", "join", "as", "outfile", "dumpfile", "for", "read", "write", "status", "order", "limit")

// explained holds the words after EXPLAIN that are no table.
var explained = setOf("select", "insert", "replace", "update", "delete", "with", "table", "tables", "format", "extended", "partitions",
	"analyze", "for", "values", "connection", "local", "no_write_to_binlog", "into")

// unquote returns a name without its quotes.
func unquote(b []byte) []byte {
	if len(b) < 2 || b[0] != '`' && b[0] != '"' || b[len(b)-1] != b[0] {
		return bytes.TrimLeft(b, "`")
	}
	q := b[:1]
	return bytes.ReplaceAll(b[1:len(b)-1], append(q[:1:1], q...), q)
}
