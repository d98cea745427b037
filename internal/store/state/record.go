package state

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"unicode/utf8"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Change is what a transaction does to shared tables, row by row, so that it does the same everywhere.
type Change struct {
	ID      string              `json:"id"`      // tells it apart when it is proposed again
	Schema  int                 `json:"schema"`  // of the file in which it was tried
	Bases   map[string]uint64   `json:"bases"`   // by family of tables: the number of its last change when this one was tried
	Columns map[string][]string `json:"columns"` // of the tables in Rows
	Rows    []RowChange         `json:"rows"`    // in their order
}

// The kinds of RowChange.
const (
	rowInsert = "insert"
	rowUpdate = "update"
	rowDelete = "delete"
)

// RowChange is one row that is inserted, updated or deleted.
type RowChange struct {
	Table string  `json:"table"`
	Do    string  `json:"do"`
	Key   []Value `json:"key,omitempty"` // of the row as it was: its primary key, or its rowid where it has none
	Row   []Value `json:"row,omitempty"` // as it is then, all columns; without a primary key, the rowid comes first
}

// Value is a value of SQLite: nil, int64, float64, string or []byte. As JSON it is null, or a string whose first letter is its type.
type Value struct{ V any }

// MarshalJSON writes a value with its type.
func (v Value) MarshalJSON() ([]byte, error) {
	switch x := v.V.(type) {
	case nil:
		return []byte("null"), nil
	case int64:
		return json.Marshal("i" + strconv.FormatInt(x, 10))
	case float64:
		return json.Marshal("f" + strconv.FormatFloat(x, 'g', -1, 64))
	case string:
		if !utf8.ValidString(x) { // JSON would mend it
			return json.Marshal("x" + base64.StdEncoding.EncodeToString([]byte(x)))
		}
		return json.Marshal("t" + x)
	case []byte:
		return json.Marshal("b" + base64.StdEncoding.EncodeToString(x))
	}
	return nil, fmt.Errorf("a value of type %T cannot be shared", v.V)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (v *Value) UnmarshalJSON(text []byte) error {
	var s *string
	if err := json.Unmarshal(text, &s); err != nil || s == nil {
		v.V = nil
		return err
	}
	if *s == "" {
		return errors.New("a value without its type")
	}
	rest := (*s)[1:]
	var err error
	switch (*s)[0] {
	case 'i':
		v.V, err = strconv.ParseInt(rest, 10, 64)
	case 'f':
		v.V, err = strconv.ParseFloat(rest, 64)
	case 't':
		v.V = rest
	case 'x', 'b':
		var b []byte
		b, err = base64.StdEncoding.DecodeString(rest)
		if v.V = b; (*s)[0] == 'x' {
			v.V = string(b)
		}
	default:
		err = fmt.Errorf("a value of the unknown type %q", (*s)[0])
	}
	return err
}

// shape is what a table consists of.
type shape struct {
	columns []string
	key     []int // places of the primary key in columns, in its order; none: the rowid is the key
}

// shapesOf reads the shapes of all shared tables.
func shapesOf(ctx context.Context, db *sql.DB) (map[string]shape, error) {
	all := map[string]shape{}
	for table, family := range families {
		if family == "" || family == positions {
			continue
		}
		rows, err := db.QueryContext(ctx, `SELECT name, pk FROM pragma_table_info(?) ORDER BY cid`, table)
		if err != nil {
			return nil, err
		}
		var s shape
		order := map[int]int{}
		for rows.Next() {
			var name string
			var pk int
			if err := rows.Scan(&name, &pk); err != nil {
				rows.Close()
				return nil, err
			}
			if pk > 0 {
				order[pk] = len(s.columns)
			}
			s.columns = append(s.columns, name)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return nil, err
		}
		for i := range len(order) {
			s.key = append(s.key, order[i+1])
		}
		all[table] = s
	}
	return all, nil
}

// recorder notes the rows that a connection changes. SQLite calls it in the midst of statements.
type recorder struct {
	mu     sync.Mutex
	on     bool
	shapes map[string]shape
	rows   []RowChange
	local  string // a table that is not shared, and was changed
	err    error
}

func (r *recorder) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on, r.rows, r.local, r.err = true, nil, "", nil
}

// end returns what was noted since begin.
func (r *recorder) end() (rows []RowChange, local string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on = false
	return r.rows, r.local, r.err
}

// note takes a row that is about to change.
func (r *recorder) note(d sqlite.SQLitePreUpdateData) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.on || r.err != nil || d.TableName == "sqlite_sequence" { // which follows from the rows
		return
	}
	family, known := families[d.TableName]
	if !known || family == positions {
		r.err = fmt.Errorf("the table %s cannot be changed by a transaction that is shared", d.TableName)
		return
	}
	if family == "" {
		r.local = d.TableName
		return
	}
	s := r.shapes[d.TableName]
	c := RowChange{Table: d.TableName}
	old, now := make([]any, d.Count()), make([]any, d.Count())
	switch d.Op {
	case sqlite3.SQLITE_INSERT:
		c.Do, r.err = rowInsert, d.New(now...)
	case sqlite3.SQLITE_DELETE:
		c.Do, r.err = rowDelete, d.Old(old...)
	default:
		c.Do, r.err = rowUpdate, errors.Join(d.Old(old...), d.New(now...))
		if sameRowID := len(s.key) > 0 || d.OldRowID == d.NewRowID; r.err == nil && sameRowID && slices.EqualFunc(old, now, sameValue) {
			return // nothing changes
		}
	}
	if c.Do != rowInsert {
		c.Key = s.keyOf(old, d.OldRowID)
	}
	if c.Do != rowDelete {
		if len(s.key) == 0 {
			c.Row = append(c.Row, Value{d.NewRowID})
		}
		for _, v := range now {
			c.Row = append(c.Row, Value{v})
		}
	}
	r.rows = append(r.rows, c)
}

func sameValue(a, b any) bool {
	x, isBytes := a.([]byte)
	y, alsoBytes := b.([]byte)
	if isBytes || alsoBytes {
		return isBytes && alsoBytes && slices.Equal(x, y)
	}
	return a == b
}

func (s shape) keyOf(row []any, rowid int64) (key []Value) {
	if len(s.key) == 0 {
		return []Value{{rowid}}
	}
	for _, i := range s.key {
		key = append(key, Value{row[i]})
	}
	return key
}

// recording makes connections whose changes a recorder notes.
type recording struct {
	driver.Connector
	recorder *recorder
}

// Connect opens a connection.
func (r recording) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := r.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	h, ok := c.(sqlite.HookRegisterer)
	if !ok {
		c.Close()
		return nil, errors.New("this build of SQLite does not tell which rows change")
	}
	h.RegisterPreUpdateHook(r.recorder.note)
	return c, nil
}
