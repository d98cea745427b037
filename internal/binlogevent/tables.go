package binlogevent

import "bytes"

// maxTables is how many table maps are remembered beyond the statement that is being read: a server assigns a table another
// number whenever it opens it again.
const (
	maxTables    = 4096
	maxStatement = 1 << 16 // and within one
)

// Tables remembers the tables that table map events name. Servers write the same event for every statement: it is read once.
// T is what its user adds to a table. The zero value is ready.
type Tables[T any] struct {
	byID map[uint64]*Mapped[T]
	last *Mapped[T]
}

// Mapped is a table that an event named.
type Mapped[T any] struct {
	Table
	User T     // zero in the beginning
	Err  error // why its rows cannot be read; nothing but ID, Schema and Name is known then
	body []byte
}

// Map takes a table map event. fresh: it was not the same before. The error says that not even the names could be read.
func (m *Tables[T]) Map(f Format, body []byte) (t *Mapped[T], fresh bool, err error) {
	c := cursor{b: body}
	id := c.uint(idLen(f))
	if t = m.Get(id); t != nil && bytes.Equal(t.body, body) {
		return t, false, nil
	}
	table, err := ParseTable(f, body)
	if err != nil && table.Name == "" {
		delete(m.byID, id)
		m.last = nil
		return nil, true, err
	}
	if len(m.byID) >= maxStatement || m.byID == nil {
		m.byID = map[uint64]*Mapped[T]{}
	}
	t = &Mapped[T]{Table: table, Err: err, body: bytes.Clone(body)}
	m.byID[id], m.last = t, t
	return t, true, nil
}

// Get returns the table with a number, or nil.
func (m *Tables[T]) Get(id uint64) *Mapped[T] {
	if m.last != nil && m.last.ID == id {
		return m.last
	}
	t := m.byID[id]
	if t != nil {
		m.last = t
	}
	return t
}

// EndStatement says that the tables of a statement are no longer needed; many may be forgotten then.
func (m *Tables[T]) EndStatement() {
	if len(m.byID) > maxTables {
		m.Clear()
	}
}

// Clear forgets all: another log begins.
func (m *Tables[T]) Clear() { clear(m.byID); m.last = nil }
