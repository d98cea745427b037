package binlogevent

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
)

// Query is a statement that was logged as text, with what held in its session. Fields that the log does not have are nil or -1.
type Query struct {
	Thread      uint32
	ExecSeconds uint32
	ErrorCode   uint16 // what the statement ended with on its server
	Schema      string // the default database
	Text        []byte // in the character set of its client

	Flags2          int64   // options: see Flags2…
	SQLMode         *uint64 // bits of sql_mode
	AutoIncrement   *[2]uint16
	Charset         *[3]uint16 // character_set_client, collation_connection, collation_server
	TimeZone        *string
	LCTimeNames     int
	CharsetDatabase int
	Micros          int    // of the second at which it began
	ExplicitTS      int    // explicit_defaults_for_timestamp
	DefaultUTF8MB4  int    // default_collation_for_utf8mb4
	RequirePK       int    // sql_require_primary_key
	TableEncryption int    // default_table_encryption
	rest            []byte // status variables that were not read
	User, Host      string // who ran it, in statements that make something with a definer
}

// Bits of Query.Flags2 (OPTION_… in MySQL's include/my_sqlcommand.h and sql/query_options.h).
const (
	Flags2AutoIsNull      = 1 << 14
	Flags2NotAutocommit   = 1 << 19
	Flags2NoForeignKeys   = 1 << 26
	Flags2RelaxedUnique   = 1 << 27
	Flags2IfExists        = 1 << 28 // MariaDB
	Flags2InsertHistory   = 1 << 29 // MariaDB
	maxUnzipped           = 1 << 30
	statusCatalogNZ       = 6
	statusUpdatedDatabase = 12
)

// ParseQuery reads a query event, compressed or not.
func ParseQuery(e Event) (Query, error) {
	q, status, err := parseQuery(e, maxUnzipped)
	if err == nil {
		q.status(status)
	}
	return q, err
}

// ParseQueryText reads everything in a query event except what held in its session. Where MariaDB compressed it, a
// text of more than limit bytes is an error.
func ParseQueryText(e Event, limit int) (Query, error) {
	q, status, err := parseQuery(e, limit)
	q.rest = status
	return q, err
}

// Moment is the microsecond of the second at which a statement began, if the log has it; else 0. It is for what
// ParseQueryText returned.
func (q *Query) Moment() int {
	x := Query{}
	x.status(q.rest)
	return x.Micros % 1e6
}

func parseQuery(e Event, limit int) (Query, []byte, error) {
	q := Query{Flags2: -1, LCTimeNames: -1, CharsetDatabase: -1, ExplicitTS: -1, DefaultUTF8MB4: -1, RequirePK: -1, TableEncryption: -1}
	c := cursor{b: e.Body}
	q.Thread, q.ExecSeconds = uint32(c.uint(4)), uint32(c.uint(4))
	schema := int(c.uint(1))
	q.ErrorCode = uint16(c.uint(2))
	status := c.take(int(c.uint(2)))
	q.Schema = string(c.take(schema))
	c.take(1)
	if c.bad {
		return q, nil, errShort
	}
	q.Text = c.b
	if e.Type == TypeQueryZip {
		var err error
		if q.Text, err = unzip(c.b, limit); err != nil {
			return q, nil, err
		}
	}
	return q, status, nil
}

// status reads the status variables (Query_event in libs/mysql/binlog/event/statement_events.h, Query_log_event in MariaDB's
// sql/log_event.h). What is unknown ends the reading, as it does in the servers.
func (q *Query) status(status []byte) {
	for c := (cursor{b: status}); len(c.b) > 0 && !c.bad; {
		switch code := c.uint(1); code {
		case 0:
			q.Flags2 = int64(c.uint(4))
		case 1:
			v := c.uint(8)
			q.SQLMode = &v
		case 2: // a catalogue followed by a zero
			c.take(int(c.uint(1)) + 1)
		case 3:
			q.AutoIncrement = &[2]uint16{uint16(c.uint(2)), uint16(c.uint(2))}
		case 4:
			q.Charset = &[3]uint16{uint16(c.uint(2)), uint16(c.uint(2)), uint16(c.uint(2))}
		case 5:
			s := string(c.take(int(c.uint(1))))
			q.TimeZone = &s
		case statusCatalogNZ:
			c.take(int(c.uint(1)))
		case 7:
			q.LCTimeNames = int(c.uint(2))
		case 8:
			q.CharsetDatabase = int(c.uint(2))
		case 9: // tables that a multi-table update writes
			c.take(8)
		case 10:
			c.take(4)
		case 11:
			q.User = string(c.take(int(c.uint(1))))
			q.Host = string(c.take(int(c.uint(1))))
		case statusUpdatedDatabase:
			c.names()
		case 13, 128: // Q_MICROSECONDS; MariaDB's Q_HRNOW
			q.Micros = int(c.uint(3))
		case 16:
			q.ExplicitTS = int(c.uint(1))
		case 17, 129: // the number of a DDL statement's own transaction
			c.take(8)
		case 18:
			q.DefaultUTF8MB4 = int(c.uint(2))
		case 19:
			q.RequirePK = int(c.uint(1))
		case 20:
			q.TableEncryption = int(c.uint(1))
		case 130: // MariaDB 10.8: half of an ALTER, as its GTID event says too
			if c.uint(1)&(extraCommitAlter|extraRollback) != 0 {
				c.take(8)
			}
		case 131: // MariaDB 11.5: character_set_collations, in pairs
			c.take(4 * int(c.uint(1)))
		default:
			return
		}
	}
}

// names skips a list of names that end in zeros.
func (c *cursor) names() {
	n := c.uint(1)
	if n == 254 { // too many to be listed
		return
	}
	for ; n > 0 && !c.bad; n-- {
		i := bytes.IndexByte(c.b, 0)
		if i < 0 {
			c.bad = true
			return
		}
		c.take(i + 1)
	}
}

// unzip unpacks what MariaDB compresses (log_bin_compress): a byte with the algorithm, 0 for zlib, and the length of the
// length, then the length, big-endian, then the data. More than limit bytes are an error.
func unzip(b []byte, limit int) ([]byte, error) {
	if len(b) < 2 || b[0]&0xf0 != 0x80 {
		return nil, errShort
	}
	n := int(b[0] & 7)
	if n < 1 || n > 4 || len(b) < 1+n {
		return nil, errShort
	}
	size := be(b[1 : 1+n])
	if size > uint64(limit) {
		return nil, fmt.Errorf("a compressed event of %d bytes", size)
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

// be reads a big-endian integer of up to 8 bytes.
func be(b []byte) (v uint64) {
	for _, x := range b {
		v = v<<8 | uint64(x)
	}
	return v
}

// Intvar is the value that LAST_INSERT_ID() or an AUTO_INCREMENT column takes in the statement that follows.
type Intvar struct {
	LastInsertID bool // else INSERT_ID
	Value        uint64
}

// ParseIntvar reads an intvar event.
func ParseIntvar(body []byte) (Intvar, error) {
	c := cursor{b: body}
	v := Intvar{LastInsertID: c.uint(1) == 1, Value: c.uint(8)}
	return v, c.err()
}

// ParseRand reads the seeds of RAND() in the statement that follows.
func ParseRand(body []byte) (a, b uint64, err error) {
	c := cursor{b: body}
	return c.uint(8), c.uint(8), c.err()
}

// UserVar is a user variable that the statement that follows reads.
type UserVar struct {
	Name      string
	Null      bool
	Kind      byte // 0 string, 1 real, 2 integer, 4 decimal (Item_result)
	Collation uint32
	Unsigned  bool
	Value     []byte
}

// ParseUserVar reads a user variable event.
func ParseUserVar(body []byte) (UserVar, error) {
	var v UserVar
	c := cursor{b: body}
	v.Name = string(c.take(int(c.uint(4))))
	v.Null = c.uint(1) != 0
	if v.Null {
		return v, c.err()
	}
	v.Kind = byte(c.uint(1))
	v.Collation = uint32(c.uint(4))
	v.Value = bytes.Clone(c.take(int(c.uint(4))))
	if len(c.b) > 0 {
		v.Unsigned = c.uint(1)&1 != 0
	}
	return v, c.err()
}

// Assignment is the right side of SET @name = …, exact in every bit.
func (v UserVar) Assignment(collation string) (string, error) {
	if v.Null {
		return "NULL", nil
	}
	c := cursor{b: v.Value}
	switch v.Kind {
	case 0:
		if collation == "" {
			return fmt.Sprintf("X'%x'", v.Value), nil
		}
		set, _, _ := bytes.Cut([]byte(collation), []byte("_"))
		return fmt.Sprintf("_%s X'%x' COLLATE `%s`", set, v.Value, collation), nil
	case 1:
		return doubleText(c.uint(8), false), c.err()
	case 2:
		n := c.uint(8)
		if v.Unsigned {
			return fmt.Sprint(n), c.err()
		}
		return fmt.Sprint(int64(n)), c.err()
	case 4:
		if len(v.Value) < 2 {
			return "", errShort
		}
		s, err := decimalText(v.Value[2:], int(v.Value[0]), int(v.Value[1]))
		return s, err
	}
	return "", errors.New("a user variable of an unknown type")
}
