package digest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"
)

// The tables mysql.slow_log and mysql.general_log have the engine CSV; their files, and what SELECT … INTO OUTFILE with such
// separators writes of them, have these columns (MariaDB's slow_log has rows_affected after thread_id, MySQL's has not):
//
//	start_time, user_host, query_time, lock_time, rows_sent, rows_examined, db, last_insert_id, insert_id, server_id, sql_text, thread_id
//	event_time, user_host, thread_id, server_id, command_type, argument
//
// Columns may be separated by tabs, too, as mysql --batch prints them; then nothing is quoted.
const (
	slowColumns    = 11
	generalColumns = 6
)

// tableOf reports whether a text begins as one of the tables: FormatSlowTable, FormatGeneralTable or empty.
func tableOf(head []byte) string {
	t := &tableReader{r: bufio.NewReaderSize(bytes.NewReader(head), len(head)+16)}
	t.day.zone = time.UTC
	for range 3 { // the first may be names
		if err := t.row(); err != nil && len(t.fields) < generalColumns {
			return ""
		}
		if f := t.formatOfRow(); f != "" {
			return f
		}
	}
	return ""
}

// tableReader is a Stream over one of the tables.
type tableReader struct {
	r      *bufio.Reader
	format string
	zone   *time.Location
	read   func(int)
	day    slowParser // for times
	fields [][]byte
	buf    []byte
	ends   []int
	comma  byte // what separates columns; 0: not known yet
	over   int  // bytes of the row that were left out
	conns  *general
	skip   map[string]int64
	bytes  int64
	seen   bool // a row was read
}

func newTable(r *bufio.Reader, format string, zone *time.Location, read func(int)) *tableReader {
	t := &tableReader{r: r, format: format, zone: zone, read: read, skip: make(map[string]int64)}
	t.day.zone = zone
	t.conns = newGeneral(nil, zone, nil)
	return t
}

// formatOfRow says which table a row is of.
func (t *tableReader) formatOfRow() string {
	if len(t.fields) < generalColumns {
		return ""
	}
	if _, _, ok := t.day.isoTime(t.fields[0], 0); !ok || !bytes.Contains(t.fields[1], []byte("] @ ")) {
		return ""
	}
	if _, ok := clockMicros(t.fields[2]); ok && len(t.fields) >= slowColumns {
		return FormatSlowTable
	}
	if len(t.fields) == generalColumns && onlyDigits(t.fields[2]) && generalCommands[string(t.fields[4])] {
		return FormatGeneralTable
	}
	return ""
}

// clockMicros reads a TIME such as 00:00:01.000000.
func clockMicros(b []byte) (uint64, bool) {
	h, rest, ok := bytes.Cut(b, []byte(":"))
	if !ok || len(h) < 2 || len(h) > 3 || !onlyDigits(h) || len(rest) < 5 || rest[2] != ':' {
		return 0, false
	}
	m, ok := two(rest, 0)
	s, end, good := parseMicros(rest, 3)
	hours, err := strconv.Atoi(string(h))
	if !ok || !good || end != len(rest) || err != nil {
		return 0, false
	}
	return uint64(hours*3600+m*60)*micro + s, true
}

// row reads a row into fields. Quotes hold what separates; a backslash escapes, as the engine CSV and INTO OUTFILE write it,
// and a doubled quote is one.
func (t *tableReader) row() error {
	t.buf, t.ends, t.fields, t.over = t.buf[:0], t.ends[:0], t.fields[:0], 0
	quoted, began := false, true // began: a column begins
	for {
		c, err := t.byte()
		if err != nil {
			if errors.Is(err, io.EOF) && (len(t.buf) > 0 || len(t.ends) > 0) {
				t.cut()
				return nil
			}
			return err
		}
		switch {
		case c == '"' && began && t.comma != '\t':
			quoted, began = true, false
			continue
		case c == '"' && quoted:
			if next, _ := t.r.Peek(1); len(next) == 1 && next[0] == '"' {
				if c, err = t.byte(); err != nil {
					return err
				}
				t.put(c)
				continue
			}
			quoted = false
			continue
		case c == '\\':
			if c, err = t.byte(); err != nil {
				return err
			}
			t.put(unescaped(c))
			began = false
			continue
		case quoted:
			t.put(c)
			continue
		case t.comma == 0 && (c == ',' || c == '\t'):
			t.comma = c
		}
		switch {
		case c == t.comma && t.comma != 0:
			t.ends = append(t.ends, len(t.buf))
			began = true
		case c == '\n':
			t.cut()
			return nil
		case c == '\r':
		default:
			t.put(c)
			began = false
		}
	}
}

func unescaped(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case '0':
		return 0
	}
	return c
}

func (t *tableReader) put(c byte) {
	if len(t.buf) >= statementLimit {
		t.over++
		return
	}
	t.buf = append(t.buf, c)
}

// cut ends a row.
func (t *tableReader) cut() {
	t.ends = append(t.ends, len(t.buf))
	from := 0
	for _, end := range t.ends {
		t.fields = append(t.fields, t.buf[from:end])
		from = end
	}
}

func (t *tableReader) byte() (byte, error) {
	c, err := t.r.ReadByte()
	for errors.Is(err, errIdle) {
		c, err = t.r.ReadByte()
	}
	if err == nil && t.read != nil {
		t.read(1)
		t.bytes++
	}
	return c, err
}

// Next implements Stream.
func (t *tableReader) Next(e *Event) error {
	for {
		before := t.bytes
		if err := t.row(); err != nil {
			return err
		}
		got := t.formatOfRow()
		switch {
		case got != t.format && !t.seen && got == "": // the columns' names
			t.skip[skipBefore] += t.bytes - before
			continue
		case got != t.format:
			t.skip[skipOutside] += t.bytes - before
			continue
		}
		t.seen = true
		*e = Event{Attrs: e.Attrs[:0], Cut: t.over}
		if t.over > 0 {
			t.skip[skipLong] += int64(t.over)
		}
		if at, _, ok := t.day.isoTime(t.fields[0], 0); ok {
			e.Time = at
		}
		if t.format == FormatGeneralTable {
			if t.general(e) {
				return nil
			}
			continue
		}
		t.slow(e)
		return nil
	}
}

// slow fills in an event of slow_log.
func (t *tableReader) slow(e *Event) {
	f := t.fields
	e.User, e.Host, e.IP = userHost(f[1])
	query, timed := clockMicros(f[2])
	lock, ok := clockMicros(f[3])
	e.QueryTime, e.LockTime, e.NoQueryTime, e.NoLockTime = float64(query)/micro, float64(lock)/micro, !timed, !ok
	e.Time += int64(query) // start_time is when it began
	for i, name := range []string{"Rows_sent", "Rows_examined"} {
		if n, err := strconv.ParseUint(string(f[4+i]), 10, 63); err == nil {
			e.Attrs = append(e.Attrs, Attr{Name: name, Num: float64(n)})
		} else {
			t.skip[skipWrapped]++
		}
	}
	e.DB, e.Query = f[6], f[10]
	if len(f) > 11 {
		e.Thread, _ = strconv.ParseInt(string(f[11]), 10, 64) // 0: unknown
	}
	if len(f) > 12 {
		if n, err := strconv.ParseUint(string(f[12]), 10, 63); err == nil {
			e.Attrs = append(e.Attrs, Attr{Name: "Rows_affected", Num: float64(n)})
		}
	}
}

// general fills in an event of general_log, if it is a statement.
func (t *tableReader) general(e *Event) bool {
	f := t.fields
	e.NoQueryTime, e.NoLockTime = true, true
	e.Thread, _ = strconv.ParseInt(string(f[2]), 10, 64) // 0: unknown
	if c := string(f[4]); c != "Query" && c != "Execute" {
		t.conns.connection(e.Thread, c, f[5])
		return false
	}
	e.User, e.Host, e.IP = userHost(f[1])
	if c := t.conns.conns[e.Thread]; c != nil {
		e.DB = c.db
	}
	e.Query = f[5]
	return len(e.Query) > 0
}

// userHost takes "priv_user[user] @ host [ip]" apart.
func userHost(b []byte) (user, host, ip []byte) {
	open := bytes.IndexByte(b, '[')
	shut := bytes.Index(b, []byte("] @ "))
	if open < 0 || shut < open {
		return nil, nil, nil
	}
	if user = b[:open]; open == 0 {
		user = b[1:shut]
	}
	host, ip, _ = bytes.Cut(b[shut+4:], []byte(" ["))
	ip = bytes.TrimSuffix(ip, []byte("]"))
	if host = bytes.TrimSpace(host); len(host) == 0 {
		host = ip
	}
	return user, host, ip
}

// Info implements Stream.
func (t *tableReader) Info() SourceInfo { return SourceInfo{Format: t.format, Bytes: t.bytes} }

// Skipped implements Stream.
func (t *tableReader) Skipped() map[string]int64 { return t.skip }

// Close implements Stream.
func (t *tableReader) Close() error { return nil }
