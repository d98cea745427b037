package binlog

import (
	"bytes"
	"compress/zlib"
	"errors"
	"io"
	"slices"
)

// event reads the body of one event. What is wrong with it is counted, and ends nothing.
func (r *Reader) event(h header, body []byte, whole bool) error {
	var err error
	switch h.typ {
	case evQuery, evQueryZip:
		err = r.queryEvent(h, body)
	case evRowsQuery:
		if len(body) > 0 {
			r.statementText(h, body[1:]) // the first byte is a length that is too short for long ones
		}
	case evAnnotateRows:
		r.statementText(h, body)
	case evTableMap:
		err = r.tableMap(h, body)
	case evWriteRows, evWriteRowsV1, evWriteRowsZip, evWriteRowsZipV1:
		r.rows(h, body, rowInsert, whole)
	case evUpdateRows, evUpdateRowsV1, evUpdateRowsZip, evUpdateRowsZipV1, evPartialUpdateRows:
		r.rows(h, body, rowUpdate, whole)
	case evDeleteRows, evDeleteRowsV1, evDeleteRowsZip, evDeleteRowsZipV1:
		r.rows(h, body, rowDelete, whole)
	case evGTID, evAnonymousGTID:
		r.begin()
		r.commitTimes(body)
	case evGTIDTagged, evMariaGTID:
		r.begin()
	case evStartEncryption:
		return errors.New("the binary log is encrypted: decrypt it with the server's own tools, mariadb-binlog --read-from-remote-server --raw")
	}
	if err != nil {
		r.skipped[skipBody]++
	}
	return nil
}

// begin forgets what held for the transaction before.
func (r *Reader) begin() {
	r.flush()
	r.thread, r.delay = 0, -1
}

// commitTimes reads when the transaction was committed here and first (MySQL 8.0.1; microseconds in 7 bytes, of which
// the highest bit says that both follow).
func (r *Reader) commitTimes(body []byte) {
	c := cursor{b: body}
	c.take(1 + 16 + 8) // flags, uuid, number
	if c.uint(1) != 2 {
		return
	}
	c.take(16) // logical clocks
	here := c.uint(7)
	if c.bad {
		return
	}
	first := here
	if both := uint64(1) << 55; here&both != 0 {
		here &^= both
		if first = c.uint(7); c.bad {
			return
		}
	}
	r.delay = max(0, float64(int64(here)-int64(first))/1e6)
}

// statementText is the text of the statement whose rows follow.
func (r *Reader) statementText(h header, text []byte) {
	r.flush()
	r.text, r.textCut = r.kept(text)
	r.textual = true
	r.began = int64(h.seconds) * 1e6
	r.size += int64(h.length)
}

// kept is what is kept of a statement's text, and how many bytes of it are not.
func (r *Reader) kept(text []byte) ([]byte, int) {
	n := min(len(text), maxText)
	return bytes.Clone(text[:n]), len(text) - n + r.missing
}

func (r *Reader) queryEvent(h header, body []byte) error {
	r.flush()
	c := cursor{b: body}
	thread, exec := c.uint(4), c.uint(4)
	schema := int(c.uint(1))
	c.take(2)
	status := c.take(int(c.uint(2)))
	db := string(c.take(schema))
	c.take(1)
	if c.bad {
		return errShort
	}
	text := c.b
	if h.typ == evQueryZip {
		var err error
		if text, err = unzip(text); err != nil {
			return err
		}
	}
	r.thread = int64(thread)
	switch string(bytes.ToUpper(text[:min(len(text), 8)])) {
	case "BEGIN", "COMMIT", "ROLLBACK":
		return nil // the frame of a transaction
	}
	kept, cut := r.kept(text)
	r.queue = append(r.queue, &statement{text: kept, cut: cut, db: db, began: int64(h.seconds)*1e6 + micros(status), seconds: float64(exec), bytes: int64(h.length), thread: r.thread, delay: r.delay})
	return nil
}

// statusLen are the lengths of a query event's status variables whose length is fixed (Query_event in MySQL's
// libs/mysql/binlog/event/statement_events.h, Query_log_event in MariaDB's sql/log_event.h).
var statusLen = map[byte]int{0: 4, 1: 8, 3: 4, 4: 6, 7: 2, 8: 2, 9: 8, 10: 4, 16: 1, 17: 8, 18: 2, 19: 1, 20: 1, 129: 8}

// micros is the fraction of the second at which a statement began, where its status variables tell.
func micros(status []byte) int64 {
	for c := (cursor{b: status}); len(c.b) > 0; {
		switch code := byte(c.uint(1)); code {
		case 13, 128: // Q_MICROSECONDS; MariaDB's Q_HRNOW
			return int64(c.uint(3)) % 1e6
		case 2: // a catalogue with a zero behind it
			c.take(int(c.uint(1)) + 1)
		case 5, 6: // time zone, catalogue
			c.take(int(c.uint(1)))
		case 11: // who called: user, host
			c.take(int(c.uint(1)))
			c.take(int(c.uint(1)))
		case 12: // names of databases
			if n := c.uint(1); n != 254 {
				for ; n > 0 && !c.bad; n-- {
					i := bytes.IndexByte(c.b, 0)
					c.take(i + 1)
					if i < 0 {
						return 0
					}
				}
			}
		default:
			n, ok := statusLen[code]
			if !ok {
				return 0
			}
			c.take(n)
		}
	}
	return 0
}

func (r *Reader) tableMap(h header, body []byte) error {
	c := cursor{b: body}
	id := c.uint(r.idLen)
	c.take(2)
	r.size += int64(h.length)
	if len(r.tables) >= maxTables {
		clear(r.tables)
	}
	t, err := readTable(&c)
	if t.name == "" && err != nil {
		delete(r.tables, id)
		return err
	}
	if err != nil {
		t.columns = nil // the names are known: the change counts, its rows do not
	}
	r.tables[id] = &t
	return nil
}

// rows adds a row event to the statement that is being read, which ends with the flag STMT_END_F.
func (r *Reader) rows(h header, body []byte, kind rowKind, whole bool) {
	c := cursor{b: body}
	id := c.uint(r.idLen)
	flags := c.uint(2)
	if second := h.typ == evWriteRowsZip || h.typ == evUpdateRowsZip || h.typ == evDeleteRowsZip || h.typ >= evWriteRows && h.typ <= evPartialUpdateRows; second {
		c.take(int(c.uint(2)) - 2) // extra data
	}
	t := r.tables[id]
	if c.bad || t == nil {
		r.skipped[skipBody]++
		return
	}
	if r.began == 0 {
		r.began = int64(h.seconds) * 1e6
	}
	s := r.change(t, kind)
	s.bytes += int64(h.length)
	var n int64
	err := errors.New("not all of the event is there")
	if whole && t.columns != nil {
		var unpack func([]byte) ([]byte, error)
		if h.typ >= evQueryZip {
			unpack = unzip
		}
		n, err = countRows(c.b, t, kind, h.typ == evPartialUpdateRows, unpack)
	}
	s.rows += n
	if err != nil {
		r.skipped[skipRows]++
		s.counted = false
	}
	if flags&1 != 0 {
		r.flush()
		clear(r.tables)
	}
}

// change is the statement to which rows of a table are added: the one whose text is known, or one for each table and kind.
func (r *Reader) change(t *table, kind rowKind) *statement {
	i := slices.IndexFunc(r.pending, func(s *statement) bool {
		return r.textual || s.db == t.schema && s.table == t.name && s.kind == kind
	})
	if i >= 0 {
		return r.pending[i]
	}
	s := &statement{text: r.text, cut: r.textCut, db: t.schema, table: t.name, kind: kind, counted: true, began: r.began, thread: r.thread, delay: r.delay}
	r.pending = append(r.pending, s)
	return s
}

// flush gives out the statement that was being read.
func (r *Reader) flush() {
	if len(r.pending) > 0 {
		r.pending[0].bytes += r.size
		r.queue = append(r.queue, r.pending...)
		r.pending = r.pending[:0]
	}
	r.text, r.textCut, r.textual, r.began, r.size = nil, 0, false, 0, 0
}

// unzip unpacks what MariaDB compresses (log_bin_compress): a byte with the algorithm, 0 for zlib, and the length of the
// length, then the length, big-endian, then the data.
func unzip(b []byte) ([]byte, error) {
	if len(b) < 2 || b[0]&0xf0 != 0x80 {
		return nil, errShort
	}
	n := int(b[0] & 7)
	if n < 1 || n > 4 || len(b) < 1+n {
		return nil, errShort
	}
	size := be(b[1 : 1+n])
	if size > 4*maxBody {
		return nil, errors.New("too long")
	}
	z, err := zlib.NewReader(bytes.NewReader(b[1+n:]))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	// The length is not trusted: memory grows with what comes.
	var out bytes.Buffer
	if _, err := io.Copy(&out, io.LimitReader(z, int64(size)+1)); err != nil {
		return nil, err
	}
	if uint64(out.Len()) != size {
		return nil, errShort
	}
	return out.Bytes(), nil
}
