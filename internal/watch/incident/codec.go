package incident

import (
	"encoding/binary"
	"errors"
	"math"
	"strconv"

	"github.com/rissodb/risso/internal/mysql/read"
	"github.com/rissodb/risso/internal/store/ring"
)

// Writer writes moments as records: texts that were in an earlier moment of the block are numbers.
type Writer struct {
	known  map[string]uint64
	newest int64 // number of the last transaction
	buf    []byte
}

// version is that of the records. Another one is not read.
const version = 1

// Append writes a moment as a record; fresh: it is the first one of its block. The record is the caller's.
func (w *Writer) Append(m *Moment, fresh bool) []byte {
	if fresh || w.known == nil {
		w.known, w.newest = map[string]uint64{}, 0
	}
	w.buf = append(w.buf[:0], version)
	w.text(m.Down)
	w.whole(int64(m.Connected), int64(m.Sleeping), int64(m.More), int64(len(m.Sessions)))
	before := int64(0)
	for i := range m.Sessions {
		s := &m.Sessions[i]
		w.whole(s.ID - before)
		before = s.ID
		w.text(s.User, s.Host, s.Schema, s.Command, s.State, s.Wait, s.Statement)
		w.tenths(s.Seconds)
		w.whole(s.Blocker)
	}
	w.whole(int64(len(m.Transactions)))
	for i := range m.Transactions {
		t := &m.Transactions[i]
		w.whole(t.Session, t.RowsLocked, t.RowsModified)
		w.tenths(t.Seconds)
		w.trx(t.Trx)
		w.text(t.State)
	}
	w.whole(int64(len(m.Locks)))
	for i := range m.Locks {
		w.lock(&m.Locks[i])
	}
	mask := int64(0)
	for i, n := range numbers {
		if _, ok := m.Numbers[n.key]; ok {
			mask |= 1 << i
		}
	}
	w.whole(mask)
	for i, n := range numbers {
		if mask&(1<<i) != 0 {
			w.tenths(m.Numbers[n.key])
		}
	}
	w.text(m.report)
	return append([]byte(nil), w.buf...)
}

// trx writes the number of a transaction by how much it is more than the one before; what is no number is a text.
func (w *Writer) trx(s string) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 || strconv.FormatInt(n, 10) != s {
		w.whole(0)
		w.text(s)
		return
	}
	d := n - w.newest
	if d <= 0 {
		d-- // 0 says that a text follows
	}
	w.whole(d)
	w.newest = n
}

func (w *Writer) lock(l *read.LockWait) {
	flags := int64(0)
	if l.Queued {
		flags |= 1
	}
	if l.Maybe {
		flags |= 2
	}
	w.whole(l.Waiter, l.Blocker.ID, flags)
	w.text(string(l.Kind), l.Type, l.Schema, l.Name, l.Index, l.Data, l.Mode, l.Held, l.Blocker.User, l.Blocker.Host, l.Blocker.Command, l.Blocker.State, l.Blocker.Statement)
	w.tenths(l.Blocker.Seconds)
	w.tenths(l.Blocker.Open)
}

func (w *Writer) whole(list ...int64) {
	for _, v := range list {
		w.buf = binary.AppendVarint(w.buf, v)
	}
}

func (w *Writer) tenths(v float64) { w.whole(int64(math.Round(v * 10))) }

// text writes the number of a text, or 0, its length and the text.
func (w *Writer) text(list ...string) {
	for _, s := range list {
		if n, ok := w.known[s]; ok {
			w.buf = binary.AppendUvarint(w.buf, n)
			continue
		}
		w.known[s] = uint64(len(w.known)) + 1
		w.buf = append(w.buf, 0)
		w.buf = binary.AppendUvarint(w.buf, uint64(len(s)))
		w.buf = append(w.buf, s...)
	}
}

// errRecord means that a record is none of this package's.
var errRecord = errors.New("it is no record of a moment")

// reader reads records.
type reader struct {
	texts  []string
	newest int64
	b      []byte
	bad    bool
}

// Read reads the moments of a block, of which it gets all records in their order. Those that can be read come even with an error.
func Read(list []ring.Record) (out []*Moment, err error) {
	r := &reader{}
	for _, rec := range list {
		m := r.moment(rec)
		if r.bad {
			return out, errRecord
		}
		out = append(out, m)
	}
	return out, nil
}

func (r *reader) moment(rec ring.Record) *Moment {
	r.b = rec.Payload
	if len(r.b) == 0 || r.b[0] != version {
		r.bad = true
		return nil
	}
	r.b = r.b[1:]
	m := &Moment{Tick: rec.At, Numbers: map[string]float64{}}
	m.Down = r.text()
	m.Connected, m.Sleeping, m.More = int(r.whole()), int(r.whole()), int(r.whole())
	before := int64(0)
	for range r.count() {
		before += r.whole()
		s := Session{ID: before, User: r.text(), Host: r.text(), Schema: r.text(), Command: r.text(), State: r.text(), Wait: r.text(), Statement: r.text()}
		s.Seconds, s.Blocker = r.tenths(), r.whole()
		m.Sessions = append(m.Sessions, s)
	}
	for range r.count() {
		t := read.Transaction{Session: r.whole(), RowsLocked: r.whole(), RowsModified: r.whole(), Seconds: r.tenths()}
		t.Trx, t.State = r.trx(), r.text()
		m.Transactions = append(m.Transactions, t)
	}
	for range r.count() {
		m.Locks = append(m.Locks, r.lock())
	}
	mask := r.whole()
	for i, n := range numbers {
		if mask&(1<<i) != 0 {
			m.Numbers[n.key] = r.tenths()
		}
	}
	m.report = r.text()
	if !r.bad {
		m.normal()
	}
	return m
}

func (r *reader) trx() string {
	d := r.whole()
	if d == 0 {
		return r.text()
	}
	if d < 0 {
		d++
	}
	r.newest += d
	return strconv.FormatInt(r.newest, 10)
}

func (r *reader) lock() read.LockWait {
	l := read.LockWait{Waiter: r.whole()}
	id, flags := r.whole(), r.whole()
	l.Queued, l.Maybe = flags&1 != 0, flags&2 != 0
	l.Kind, l.Type, l.Schema, l.Name = read.LockKind(r.text()), r.text(), r.text(), r.text()
	l.Index, l.Data, l.Mode, l.Held = r.text(), r.text(), r.text(), r.text()
	l.Blocker = read.Blocker{ID: id, User: r.text(), Host: r.text(), Command: r.text(), State: r.text(), Statement: r.text()}
	l.Blocker.Seconds, l.Blocker.Open = r.tenths(), r.tenths()
	return l
}

func (r *reader) whole() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count reads how many follow: no more than there are bytes.
func (r *reader) count() int {
	n := r.whole()
	if n < 0 || n > int64(len(r.b)) {
		r.bad, r.b = true, nil
		return 0
	}
	return int(n)
}

func (r *reader) tenths() float64 { return float64(r.whole()) / 10 }

func (r *reader) text() string {
	k, n := binary.Uvarint(r.b)
	if n <= 0 || k > uint64(len(r.texts)) {
		r.bad, r.b = true, nil
		return ""
	}
	r.b = r.b[n:]
	if k > 0 {
		return r.texts[k-1]
	}
	size, n := binary.Uvarint(r.b)
	if n <= 0 || size > uint64(len(r.b)-n) {
		r.bad, r.b = true, nil
		return ""
	}
	s := string(r.b[n : n+int(size)])
	r.b = r.b[n+int(size):]
	r.texts = append(r.texts, s)
	return s
}
