package script

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/sqltext"
)

// file is a script that was read and found right.
type file struct {
	path            string
	prepared        bool
	names           []string // of the values
	values          []generator
	sequences       int
	transactions    []transaction
	setup, teardown []statement
}

type transaction struct {
	name       string
	weight     float64
	think      [2]time.Duration
	begin      bool
	statements []statement
	saves      int // values saved, numbered after those that are drawn
}

type statement struct {
	placed
	sql      string
	line     int
	values   []int // for each placeholder: a value that is drawn, or len(file.values)+n for one that was saved
	saves    []save
	repeat   int
	prepared bool
	reads    error // nil: it only reads
	kind     drive.Kind
}

// save keeps a column of the first row.
type save struct{ column, number int }

// wrong is an error at a line of the file.
type wrong struct {
	path string
	line int
	text string
}

func (e *wrong) Error() string { return fmt.Sprintf("%s:%d: %s", e.path, e.line, e.text) }
func (e *wrong) Unwrap() error { return workload.ErrUsage }

// maxRepeat bounds repeat in a transaction, maxSetup in setup; maxThink is the longest pause, maxString the longest string.
const (
	maxRepeat = 100000
	maxSetup  = 10_000_000_000
	maxThink  = time.Hour
	maxString = 1 << 20
)

// read reads a script.
func read(path string, d drive.Dialect, prepared bool) (*file, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", workload.ErrUsage, err)
	}
	return parse(path, b, d, prepared)
}

type parser struct {
	*file
	dialect drive.Dialect
	isSaved []string // names saved so far in the transaction
}

func parse(path string, text []byte, d drive.Dialect, prepared bool) (f *file, err error) {
	p := &parser{file: &file{path: path, prepared: prepared}, dialect: d}
	var doc, more yaml.Node
	in := yaml.NewDecoder(bytes.NewReader(text))
	if err := in.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, p.yamlError(err)
	}
	if err := in.Decode(&more); err == nil {
		return nil, p.at(max(more.Line, 1), "a second document begins here, which would not be read: remove the line ---, or what follows it")
	} else if !errors.Is(err, io.EOF) {
		return nil, p.yamlError(err)
	}
	if len(doc.Content) == 0 {
		return nil, p.at(1, "the file is empty; see docs/bench-own.md")
	}
	top, err := p.fields(doc.Content[0], "the file", "prepared", "values", "setup", "teardown", "transactions")
	if err != nil {
		return nil, err
	}
	if n := top["prepared"]; n != nil {
		is, err := p.truth(n, "prepared")
		if err != nil {
			return nil, err
		}
		p.prepared = p.prepared && is
	}
	if err := p.readValues(top["values"]); err != nil {
		return nil, err
	}
	if p.setup, err = p.readStatements(top["setup"], "setup", maxSetup); err != nil {
		return nil, err
	}
	if p.teardown, err = p.readStatements(top["teardown"], "teardown", 1); err != nil {
		return nil, err
	}
	if top["transactions"] == nil {
		return nil, p.at(doc.Content[0].Line, "no transactions; see docs/bench-own.md")
	}
	return p.file, p.readTransactions(top["transactions"])
}

func (p *parser) at(line int, format string, args ...any) error {
	return &wrong{p.path, line, fmt.Sprintf(format, args...)}
}

// yamlError takes the line out of the library's text.
func (p *parser) yamlError(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if n, what, ok := strings.Cut(rest, ": "); ok {
			if i, err := strconv.Atoi(n); err == nil {
				line, text = i, what
			}
		}
	}
	return p.at(line, "%s", text)
}

// resolved follows an alias.
func resolved(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// fields reads a mapping with these keys and no others.
func (p *parser) fields(n *yaml.Node, what string, known ...string) (map[string]*yaml.Node, error) {
	n = resolved(n)
	if n.Kind != yaml.MappingNode {
		return nil, p.at(n.Line, "%s: a mapping with %s", what, strings.Join(known, ", "))
	}
	out := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, v := n.Content[i], resolved(n.Content[i+1])
		switch {
		case !slices.Contains(known, key.Value):
			return nil, p.at(key.Line, "%s has no %q; it has %s", what, key.Value, strings.Join(known, ", "))
		case out[key.Value] != nil:
			return nil, p.at(key.Line, "%q is given twice", key.Value)
		}
		out[key.Value] = v
	}
	return out, nil
}

func (p *parser) list(n *yaml.Node, what string) ([]*yaml.Node, error) {
	n = resolved(n)
	if n == nil {
		return nil, nil
	}
	if n.Kind != yaml.SequenceNode {
		return nil, p.at(n.Line, "%s: a list", what)
	}
	var out []*yaml.Node
	for _, x := range n.Content {
		out = append(out, resolved(x))
	}
	return out, nil
}

func (p *parser) text(n *yaml.Node, what string) (string, error) {
	if n.Kind != yaml.ScalarNode || strings.TrimSpace(n.Value) == "" {
		return "", p.at(n.Line, "%s: a text", what)
	}
	return n.Value, nil
}

func (p *parser) truth(n *yaml.Node, what string) (is bool, err error) {
	if n.Kind != yaml.ScalarNode || n.Decode(&is) != nil {
		return false, p.at(n.Line, "%s: true or false", what)
	}
	return is, nil
}

func (p *parser) whole(n *yaml.Node, what string, lo, hi int64) (int64, error) {
	var v int64
	if n.Kind != yaml.ScalarNode || n.Decode(&v) != nil || v < lo || v > hi {
		if hi == maxInt {
			return 0, p.at(n.Line, "%s: a whole number", what)
		}
		return 0, p.at(n.Line, "%s: a whole number from %d to %d", what, lo, hi)
	}
	return v, nil
}

func (p *parser) readTransactions(n *yaml.Node) error {
	list, err := p.list(n, "transactions")
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return p.at(n.Line, "transactions: at least one")
	}
	var weights float64
	for i, n := range list {
		t, err := p.readTransaction(n, i)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(p.transactions, func(o transaction) bool { return o.name == t.name }) {
			return p.at(n.Line, "a second transaction has the name %q", t.name)
		}
		weights += t.weight
		p.transactions = append(p.transactions, t)
	}
	if weights <= 0 {
		return p.at(n.Line, "transactions: all weights are 0")
	}
	return nil
}

func (p *parser) readTransaction(n *yaml.Node, i int) (transaction, error) {
	t := transaction{name: fmt.Sprintf("transaction %d", i+1), weight: 1}
	f, err := p.fields(n, "a transaction", "name", "weight", "think", "begin", "statements")
	if err != nil {
		return t, err
	}
	if x := f["name"]; x != nil {
		if t.name, err = p.text(x, "name"); err != nil {
			return t, err
		}
	}
	if x := f["weight"]; x != nil {
		if x.Kind != yaml.ScalarNode || x.Decode(&t.weight) != nil || !(t.weight >= 0 && t.weight <= 1e9) {
			return t, p.at(x.Line, "weight: a number from 0 to 1000000000")
		}
	}
	if x := f["think"]; x != nil {
		if t.think, err = p.think(x); err != nil {
			return t, err
		}
	}
	if f["statements"] == nil {
		return t, p.at(n.Line, "the transaction %q has no statements", t.name)
	}
	p.isSaved = nil
	if t.statements, err = p.readStatements(f["statements"], "statements", maxRepeat); err != nil {
		return t, err
	}
	if len(t.statements) == 0 {
		return t, p.at(f["statements"].Line, "statements: at least one")
	}
	t.saves = len(p.isSaved)
	t.begin = len(t.statements) > 1 || t.statements[0].repeat > 1
	if x := f["begin"]; x != nil {
		t.begin, err = p.truth(x, "begin")
	}
	return t, err
}

// think reads a pause, or the shortest and the longest one.
func (p *parser) think(n *yaml.Node) (out [2]time.Duration, err error) {
	ends := []*yaml.Node{n, n}
	if n.Kind == yaml.SequenceNode {
		ends = n.Content
	}
	if len(ends) != 2 {
		return out, p.at(n.Line, "think: a time, or [shortest, longest]")
	}
	for i, x := range ends {
		if out[i], err = digits.ParseDuration(x.Value); err != nil || out[i] > maxThink {
			return out, p.at(x.Line, "think %q: a time from 0s to 1h, such as 10ms", x.Value)
		}
	}
	if out[1] < out[0] {
		return out, p.at(n.Line, "think: the shortest is longer than the longest")
	}
	return out, nil
}

func (p *parser) readStatements(n *yaml.Node, what string, repeat int64) ([]statement, error) {
	list, err := p.list(n, what)
	if err != nil {
		return nil, err
	}
	var out []statement
	for _, x := range list {
		st, err := p.readStatement(x, what, repeat)
		if err != nil {
			return nil, err
		}
		out = append(out, st)
	}
	return out, nil
}

func (p *parser) readStatement(n *yaml.Node, what string, repeat int64) (statement, error) {
	st := statement{line: n.Line, repeat: 1, prepared: p.prepared}
	f := map[string]*yaml.Node{"sql": n}
	var err error
	if n.Kind == yaml.MappingNode {
		keys := []string{"sql", "repeat", "prepared"}
		if what == "statements" {
			keys = append(keys, "save")
		}
		if f, err = p.fields(n, "a statement", keys...); err != nil {
			return st, err
		}
		if f["sql"] == nil {
			return st, p.at(n.Line, "a statement has no sql")
		}
	}
	if st.sql, err = p.text(f["sql"], "sql"); err != nil {
		return st, err
	}
	if x := f["repeat"]; x != nil {
		v, err := p.whole(x, "repeat", 1, repeat)
		if err != nil {
			return st, err
		}
		st.repeat = int(v)
	}
	if x := f["prepared"]; x != nil {
		is, err := p.truth(x, "prepared")
		if err != nil {
			return st, err
		}
		st.prepared = st.prepared && is
	}
	if err := p.place(&st, f["sql"]); err != nil {
		return st, err
	}
	if x := f["save"]; x != nil {
		if st.saves, err = p.readSaves(x); err != nil {
			return st, err
		}
	}
	st.reads = readsOnly(st.sql, p.dialect)
	st.kind = kindOf([]byte(st.sql), st.reads == nil)
	return st, nil
}

// place finds the placeholders of a statement and what they mean.
func (p *parser) place(st *statement, n *yaml.Node) (err error) {
	lineOf := func(offset int) int {
		if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
			return n.Line
		}
		return n.Line + 1 + strings.Count(st.sql[:offset], "\n")
	}
	st.placed, err = split(st.sql, p.dialect)
	var m *misplaced
	if errors.As(err, &m) {
		return p.at(lineOf(m.offset), "%s", m.text)
	}
	for i, name := range st.placed.names {
		v := slices.Index(p.file.names, name)
		if s := slices.Index(p.isSaved, name); s >= 0 {
			v = len(p.file.values) + s
		}
		if v < 0 {
			known := slices.Concat(p.file.names, p.isSaved)
			return p.at(lineOf(st.offsets[i]), "no value :%s; use one of %s", name, strings.Join(known, ", "))
		}
		st.values = append(st.values, v)
	}
	return nil
}

// readSaves reads a name for the first column, names for the columns in order, or names with the numbers of columns.
func (p *parser) readSaves(n *yaml.Node) (out []save, err error) {
	add := func(n *yaml.Node, column int) error {
		name := n.Value
		if n.Kind != yaml.ScalarNode || !isName(name) {
			return p.at(n.Line, "save: %q is not a name (letters, digits and _)", name)
		}
		if slices.Contains(p.file.names, name) {
			return p.at(n.Line, "save: %s is already drawn, under values", name)
		}
		at := slices.Index(p.isSaved, name)
		if at < 0 {
			at = len(p.isSaved)
			p.isSaved = append(p.isSaved, name)
		}
		out = append(out, save{column, at})
		return nil
	}
	switch n.Kind {
	case yaml.SequenceNode:
		for i, x := range n.Content {
			if err := add(x, i); err != nil {
				return nil, err
			}
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			column, err := p.whole(n.Content[i+1], "save: the number of a column", 1, 4096)
			if err != nil {
				return nil, err
			}
			if err := add(n.Content[i], int(column)-1); err != nil {
				return nil, err
			}
		}
	default:
		return out, add(n, 0)
	}
	return out, nil
}

func isName(s string) bool {
	for i := range len(s) {
		if !isLetter(s[i]) && (i == 0 || !isDigit(s[i])) {
			return false
		}
	}
	return s != ""
}

// readsOnly reports why a statement may do more than read. PostgreSQL has functions that change things under names that
// sqltext, which knows MySQL, has not heard of: all but a few of the server's own are taken to write.
func readsOnly(sql string, d drive.Dialect) error {
	if err := sqltext.ReadsOnly([]byte(sql)); err != nil || d == drive.MySQL {
		return err
	}
	lower := strings.ToLower(sql)
	for _, w := range []string{"pg_", "lo_", "dblink", "set_config", "xmltable", "query_to_xml", "cursor_to_xml", "$$", "nextval", "setval"} {
		if strings.Contains(lower, w) {
			return fmt.Errorf("%w: %s… may change the server", sqltext.ErrWrites, w)
		}
	}
	return nil
}
