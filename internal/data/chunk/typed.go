package chunk

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/wire"
)

// MySQL keeps a JSON document as types, and shows it as text: a DECIMAL looks like a DOUBLE there, a DATE like a string. What is
// loaded from that text would be of another type than it was. So what has such a type is stored with its place, next to the rows.
// MariaDB's JSON is text.

// Place is a place in the JSON documents of a table.
type Place struct {
	Column string
	Path   string // as JSON_EXTRACT takes it, without wildcards
}

// Typed is a value in a JSON document whose type its text does not show.
type Typed struct {
	Key  Bound // of the row
	At   Place
	Type string // as JSON_TYPE calls it
	Text string // without quotes
}

// JSONTypes are the types that a document's text does not show. A DOUBLE is one where it is shown without a point, as MySQL 5.7
// does. (UNSIGNED INTEGER is left out: it is equal to the same INTEGER, wherever the two are compared.) Source: MySQL manual,
// "JSON_TYPE".
var JSONTypes = []string{"DECIMAL", "DATE", "TIME", "DATETIME", "TIMESTAMP", "BLOB", "BIT", "OPAQUE", "DOUBLE"}

// Places of a column beyond which none is looked at, so that a question stays one that a server answers.
const maxPlaces = 400

// Places gathers where a table's documents have values whose type has to be asked for. It is a wire.RowSink, and hands
// everything on.
type Places struct {
	To wire.RowSink

	columns []int // those that are JSON, by their place in the row
	names   []string
	found   []map[string]bool
	more    bool // not all places were noted

	row  []byte // what came of a row that comes in pieces
	long bool
	path []byte
}

// heldRow is how much of a row that comes in pieces is held.
const heldRow = 16 << 20

// NewPlaces is for a table of MySQL; nil if the table has no JSON.
func NewPlaces(t define.Table, to wire.RowSink) *Places {
	p := &Places{To: to}
	for i, c := range Columns(t) {
		if c.Type == "json" {
			p.columns, p.names, p.found = append(p.columns, i), append(p.names, c.Name), append(p.found, map[string]bool{})
		}
	}
	if len(p.columns) == 0 {
		return nil
	}
	return p
}

// List is all places, in order. whole is false if there are more.
func (p *Places) List() (list []Place, whole bool) {
	for i, found := range p.found {
		var paths []string
		for path := range found {
			paths = append(paths, path)
		}
		slices.Sort(paths)
		for _, path := range paths {
			list = append(list, Place{p.names[i], path})
		}
	}
	return list, !p.more
}

// unbroken returns what takes rows of a table with JSON so that the documents are JSON: MySQL 5.7 breaks what it writes of bytes into
// lines (5.7.22, seen), which it would not take back. A line feed that is meant is escaped there.
func unbroken(t define.Table, to wire.RowSink) wire.RowSink {
	l := &lines{to: to, json: map[int]bool{}}
	for i, c := range Columns(t) {
		l.json[i] = c.Type == "json"
		l.any = l.any || l.json[i]
	}
	if !l.any {
		return to
	}
	return l
}

type lines struct {
	to    wire.RowSink
	json  map[int]bool // columns
	any   bool
	midst bool
	out   []byte
}

// Piece takes the next bytes of a row. Of one that comes in pieces nothing is changed: a server that breaks lines in it refuses it
// when it is loaded.
func (l *lines) Piece(b []byte, last bool) error {
	whole := last && !l.midst
	l.midst = !last
	if !whole || bytes.IndexByte(b, '\n') < 0 {
		return l.to.Piece(b, last)
	}
	l.out = l.out[:0]
	for at, col := 0, 0; at < len(b); col++ {
		size, head := uint64(0), 1
		if b[at] != null {
			size, head = sizeOf(b[at:])
		}
		if head == 0 || size > uint64(len(b)-at-head) {
			return errShape
		}
		next := at + head + int(size)
		if l.json[col] && bytes.IndexByte(b[at+head:next], '\n') >= 0 {
			text := bytes.ReplaceAll(b[at+head:next], []byte{'\n'}, []byte(`\n`))
			l.out = append(appendSize(l.out, len(text)), text...)
		} else {
			l.out = append(l.out, b[at:next]...)
		}
		at = next
	}
	return l.to.Piece(l.out, true)
}

// Piece takes the next bytes of a row.
func (p *Places) Piece(b []byte, last bool) error {
	if err := p.To.Piece(b, last); err != nil {
		return err
	}
	switch {
	case last && len(p.row) == 0 && !p.long:
		return p.look(b)
	case p.long || len(p.row)+len(b) > heldRow:
		p.long, p.row, p.more = !last, nil, true
		return nil
	}
	if p.row = append(p.row, b...); !last {
		return nil
	}
	err := p.look(p.row)
	p.row = p.row[:0]
	return err
}

// look goes through the documents of a row.
func (p *Places) look(row []byte) error {
	at, next := 0, 0
	for col := 0; next < len(p.columns); col++ {
		if at >= len(row) {
			return errShape
		}
		if row[at] == null {
			if at++; col == p.columns[next] {
				next++
			}
			continue
		}
		size, head := sizeOf(row[at:])
		if head == 0 || size > uint64(len(row)-at-head) {
			return errShape
		}
		at += head
		if col == p.columns[next] {
			w := walker{text: row[at : at+int(size)], path: append(p.path[:0], '$'), found: p.found[next]}
			w.value()
			p.more = p.more || w.more
			p.path = w.path[:0]
			next++
		}
		at += int(size)
	}
	return nil
}

// walker goes through a document as MySQL writes it.
type walker struct {
	text  []byte
	at    int
	path  []byte
	found map[string]bool
	more  bool
}

func (w *walker) value() {
	for w.at < len(w.text) && (w.text[w.at] == ' ' || w.text[w.at] == ',' || w.text[w.at] == ':') {
		w.at++
	}
	if w.at >= len(w.text) {
		return
	}
	switch c := w.text[w.at]; {
	case c == '{':
		w.members()
	case c == '[':
		w.elements()
	case c == '"':
		if looksTyped(w.str()) {
			w.note()
		}
	case c == '-' || c >= '0' && c <= '9':
		for w.at < len(w.text) && bytes.IndexByte([]byte("+-.eE0123456789"), w.text[w.at]) >= 0 {
			w.at++
		}
		w.note()
	default: // true, false, null
		for w.at < len(w.text) && w.text[w.at] >= 'a' && w.text[w.at] <= 'z' {
			w.at++
		}
	}
}

func (w *walker) members() {
	for w.at++; w.at < len(w.text) && w.text[w.at] != '}'; {
		if c := w.text[w.at]; c == ' ' || c == ',' {
			w.at++
			continue
		}
		if w.text[w.at] != '"' {
			return
		}
		length, begin := len(w.path), w.at
		w.str()
		w.path = append(append(w.path, '.'), w.text[begin:w.at]...)
		w.value()
		w.path = w.path[:length]
	}
	w.at++
}

func (w *walker) elements() {
	w.at++
	for n := 0; w.at < len(w.text) && w.text[w.at] != ']'; n++ {
		length, begin := len(w.path), w.at
		w.path = fmt.Appendf(w.path, "[%d]", n)
		w.value()
		if w.path = w.path[:length]; w.at == begin {
			return
		}
	}
	w.at++
}

// str skips a string, and returns what is between its quotes.
func (w *walker) str() []byte {
	begin := w.at + 1
	for w.at++; w.at < len(w.text); w.at++ {
		switch w.text[w.at] {
		case '\\':
			w.at++
		case '"':
			w.at++
			return w.text[begin : w.at-1]
		}
	}
	return nil
}

func (w *walker) note() {
	switch {
	case w.found[string(w.path)]:
	case len(w.found) >= maxPlaces:
		w.more = true
	default:
		w.found[string(w.path)] = true
	}
}

// looksTyped reports whether a string can be a date, a time, or bytes.
func looksTyped(s []byte) bool {
	if bytes.HasPrefix(s, []byte("base64:type")) {
		return true
	}
	if len(s) < 8 || len(s) > 27 {
		return false
	}
	colons, dashes := 0, 0
	for _, c := range s {
		switch {
		case c >= '0' && c <= '9' || c == '.' || c == ' ':
		case c == ':':
			colons++
		case c == '-':
			dashes++
		default:
			return false
		}
	}
	return colons == 2 || dashes == 2 && len(s) == 10
}

// extract is the expression for what is at a place.
func (p Place) extract() string {
	return "JSON_EXTRACT(" + mysql.Quote(p.Column) + ", " + mysql.Literal(p.Path) + ")"
}

// typed is the condition that what is there has one of JSONTypes.
func (p Place) typed() string {
	x := p.extract()
	last := len(JSONTypes) - 1
	return "(JSON_TYPE(" + x + ") IN ('" + strings.Join(JSONTypes[:last], "', '") + "') OR JSON_TYPE(" + x + ") = '" + JSONTypes[last] + "' AND CAST(" + x + " AS CHAR) NOT REGEXP '[.e]')"
}

// TypedPlaces returns those places at which some row has a value whose type its text does not show, and how many there are of each.
func TypedPlaces(ctx context.Context, q Querier, t define.Table, list []Place, purpose string) (typed []Place, counts []int64, err error) {
	const atOnce = 100
	for part := range slices.Chunk(list, atOnce) {
		var sums []string
		for _, p := range part {
			sums = append(sums, "SUM("+p.typed()+")")
		}
		err := q.Query(ctx, "SELECT /* risso: "+purpose+": types in JSON */ "+strings.Join(sums, ", ")+source(t, Key{}), func(row [][]byte) error {
			for i, v := range row {
				if n := string(v); v != nil && n != "0" {
					var count int64
					if _, err := fmt.Sscan(n, &count); err != nil {
						return err
					}
					typed, counts = append(typed, part[i]), append(counts, count)
				}
			}
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return typed, counts, nil
}

// ReadTyped hands on the values at places whose type their text does not show. The key must be Whole.
func ReadTyped(ctx context.Context, q Querier, t define.Table, k Key, list []Place, purpose string, f func(Typed) error) error {
	const atOnce = 100
	for part := range slices.Chunk(list, atOnce) {
		var exprs, where []string
		for _, c := range k.Order {
			exprs = append(exprs, mysql.Quote(c.Name))
		}
		for _, p := range part {
			exprs = append(exprs, "IF("+p.typed()+", JSON_TYPE("+p.extract()+"), NULL)", "JSON_UNQUOTE("+p.extract()+")")
			where = append(where, p.typed())
		}
		err := q.Query(ctx, "SELECT /* risso: "+purpose+": types in JSON */ "+strings.Join(exprs, ", ")+source(t, Key{})+" WHERE "+strings.Join(where, " OR "), func(row [][]byte) error {
			if len(row) != len(exprs) {
				return errShape
			}
			key, err := k.Literals(row[:len(k.Order)])
			if err != nil {
				return err
			}
			for i, p := range part {
				v := row[len(k.Order)+2*i:]
				if v[0] == nil {
					continue
				}
				if err := f(Typed{Key: key, At: p, Type: string(v[0]), Text: string(v[1])}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// AppendRow appends it in the form of raw rows.
func (v Typed) AppendRow(to []byte) ([]byte, error) {
	key, err := json.Marshal(v.Key)
	if err != nil {
		return to, err
	}
	for _, s := range []string{string(key), v.At.Column, v.At.Path, v.Type, v.Text} {
		to = append(appendSize(to, len(s)), s...)
	}
	return to, nil
}

// TypedOf reads what AppendRow wrote, and makes sure that it is of this key.
func TypedOf(k Key, row [][]byte) (v Typed, err error) {
	const columns = 5
	if len(row) != columns {
		return v, errShape
	}
	if err := json.Unmarshal(row[0], &v.Key); err != nil {
		return v, fmt.Errorf("%w: %w", ErrBound, err)
	}
	if len(v.Key) != len(k.Order) {
		return v, fmt.Errorf("%w: %s for %s", ErrBound, digits.Counted(len(v.Key), "value"), digits.Counted(len(k.Order), "column"))
	}
	v.At, v.Type, v.Text = Place{string(row[1]), string(row[2])}, string(row[3]), string(row[4])
	if !slices.Contains(JSONTypes, v.Type) {
		return v, fmt.Errorf("%.40q is no type in JSON", v.Type)
	}
	return v, k.Check(v.Key)
}

// appendSize appends a length-encoded number. Source: MySQL's "Basic Data Types".
func appendSize(to []byte, n int) []byte {
	switch {
	case n < null:
		return append(to, byte(n))
	case n < 1<<16:
		return append(to, 0xfc, byte(n), byte(n>>8))
	case n < 1<<24:
		return append(to, 0xfd, byte(n), byte(n>>8), byte(n>>16))
	}
	return binary.LittleEndian.AppendUint64(append(to, 0xfe), uint64(n))
}

// Only is the condition for the one row that has these values in the whole key.
func (k Key) Only(b Bound) string { return k.chain(0, len(b)-1, b, "=") }
