package wire

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Statement is one that the server has prepared for a connection. It ends with the connection or by CloseStatement.
// https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_command_phase_ps.html
type Statement struct {
	Params  int
	Columns []Column // of its rows
	execute []byte   // the start of COM_STMT_EXECUTE
	types   []byte   // of the parameters as they were last sent
}

func (st *Statement) id() []byte { return st.execute[1:5] }

// Prepare has the server prepare a statement with a ? for each parameter.
func (c *Conn) Prepare(statement string) (*Statement, error) {
	c.body = append(append(c.body[:0], comStmtPrepare), statement...)
	if err := c.send(nil, c.body); err != nil {
		return nil, err
	}
	p, err := c.packet()
	const answer = 1 + 4 + 2 + 2 // OK, number of the statement, columns, parameters
	switch {
	case err != nil:
		return nil, err
	case p[0] == headerError:
		return nil, errorPacket(p)
	case p[0] != headerOK || len(p) < answer:
		return nil, malformed("the answer to a prepare")
	}
	columns := uint64(binary.LittleEndian.Uint16(p[5:]))
	st := &Statement{Params: int(binary.LittleEndian.Uint16(p[7:]))}
	st.execute = append(append([]byte{comStmtExecute}, p[1:5]...), 0, 1, 0, 0, 0) // no cursor; one iteration
	if err := c.definitions(uint64(st.Params), nil); err != nil {
		return nil, err
	}
	return st, c.definitions(columns, &st.Columns)
}

// CloseStatement lets the server forget a statement. There is no answer: trouble shows in the next command.
func (c *Conn) CloseStatement(st *Statement) { _ = c.send([]byte{comStmtClose}, st.id()) }

// Kind is the kind of an Arg.
type Kind byte

// The kinds of an Arg.
const (
	KindInt Kind = iota
	KindText
	KindNull
)

// Arg is the value of one parameter: a number, a text, or NULL.
type Arg struct {
	Text []byte
	Int  int64
	Kind Kind
}

// fieldType is MySQL's type for the kind of an argument.
var fieldType = [...]byte{KindInt: TypeLonglong, KindText: TypeVarString, KindNull: TypeNull}

// Execute runs a prepared statement. A nil sink has its rows counted only. It allocates nothing. The rows are in the binary
// protocol's form; AppendRow reads them.
func (c *Conn) Execute(st *Statement, args []Arg, to RowSink) (Result, error) {
	if len(args) != st.Params {
		return Result{}, fmt.Errorf("%d values for %d parameters", len(args), st.Params)
	}
	c.body = st.appendArgs(append(c.body[:0], st.execute...), args)
	if err := c.send(nil, c.body); err != nil {
		return Result{}, err
	}
	return c.answer(&st.Columns, nil, to)
}

// appendArgs appends values. Their types are sent when they are not those of the last time.
func (st *Statement) appendArgs(out []byte, args []Arg) []byte {
	if len(args) == 0 {
		return out
	}
	nulls := len(out)
	for range (len(args) + 7) / 8 {
		out = append(out, 0)
	}
	same := len(st.types) == 2*len(args)
	for i := range args {
		if args[i].Kind == KindNull {
			out[nulls+i/8] |= 1 << (i % 8)
		} else if same && st.types[2*i] != fieldType[args[i].Kind] {
			same = false
		}
	}
	if same {
		out = append(out, 0)
	} else {
		st.types = st.types[:0]
		for i := range args {
			st.types = append(st.types, fieldType[args[i].Kind], 0)
		}
		out = append(append(out, 1), st.types...)
	}
	for i := range args {
		switch a := &args[i]; a.Kind {
		case KindInt:
			out = binary.LittleEndian.AppendUint64(out, uint64(a.Int))
		case KindText:
			out = appendString(out, a.Text)
		}
	}
	return out
}

// HasBulk reports whether the server takes rows by Bulk: MariaDB does, since 10.2.4.
func (c *Conn) HasBulk() bool { return c.ext&extBulk != 0 }

// The prefix of a value of Bulk's rows.
const (
	BulkValue = 0 // a length-encoded string follows
	BulkNull  = 1
)

// BulkHead is the beginning of what Bulk sends for a statement.
// https://mariadb.com/docs/server/reference/clientserver-protocol/3-binary-protocol-prepared-statements/com_stmt_bulk_execute
func (st *Statement) BulkHead() []byte {
	const sendTypes = 128
	head := append(append([]byte{comStmtBulk}, st.id()...), sendTypes, 0)
	for range st.Params {
		head = append(head, TypeVarString, 0)
	}
	return head
}

// Bulk executes a prepared INSERT for many rows at a time: the server neither parses them nor looks for their ends. Of each row
// there is, value by value, BulkValue and a length-encoded string, or BulkNull.
func (c *Conn) Bulk(head, rows []byte) (Result, error) {
	if err := c.send(head, rows); err != nil {
		return Result{}, err
	}
	return c.ok()
}

// SendPiece sends a piece of the value of a parameter, before ExecuteStrings. There is no answer: trouble shows when the
// statement is executed.
func (c *Conn) SendPiece(st *Statement, param int, b []byte) error {
	c.body = binary.LittleEndian.AppendUint16(append(append(c.body[:0], comStmtLongData), st.id()...), uint16(param))
	return c.send(c.body, b)
}

// ExecuteStrings executes a prepared statement whose values are strings: those of the set of NULLs (a bit for each parameter) are
// none, others were sent in pieces, and the rest are in values, length-encoded.
func (c *Conn) ExecuteStrings(st *Statement, nulls, values []byte) (Result, error) {
	c.body = append(append(append(c.body[:0], st.execute...), nulls...), 1)
	for range st.Params {
		c.body = append(c.body, TypeVarString, 0)
	}
	if err := c.send(c.body, values); err != nil {
		return Result{}, err
	}
	return c.ok()
}

// Value is one value of a row: a number where the server has one, else its text; nil text and Null for NULL.
type Value struct {
	Text []byte
	Int  int64
	Null bool
}

// AppendRow reads one row of the binary protocol.
func AppendRow(dst []Value, cols []Column, p []byte) ([]Value, error) {
	nulls := (len(cols) + 9) / 8
	if len(p) < 1+nulls {
		return dst, malformed("a row")
	}
	set, p := p[1:1+nulls], p[1+nulls:]
	for i, c := range cols {
		if set[(i+2)/8]&(1<<((i+2)%8)) != 0 {
			dst = append(dst, Value{Null: true})
			continue
		}
		v, rest, ok := c.binary(p)
		if !ok {
			return dst, malformed(fmt.Sprintf("column %d of a row", i+1))
		}
		dst, p = append(dst, v), rest
	}
	return dst, nil
}

// binary reads one value of the binary protocol.
// https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_binary_resultset.html
func (c *Column) binary(p []byte) (v Value, rest []byte, ok bool) {
	size := 0
	switch c.Type {
	case TypeTiny:
		size = 1
	case TypeShort, TypeYear:
		size = 2
	case TypeLong, TypeInt24, TypeFloat:
		size = 4
	case TypeLonglong, TypeDouble:
		size = 8
	case TypeNull:
		return Value{Null: true}, p, true
	case TypeDate, TypeDatetime, TypeTimestamp, TypeTime:
		if len(p) == 0 || len(p) < 1+int(p[0]) {
			return v, nil, false
		}
		n := 1 + int(p[0])
		return Value{Text: moment(c.Type, p[1:n])}, p[n:], true
	default:
		text, n, ok := value(p)
		if !ok || text == nil {
			return v, nil, false
		}
		return Value{Text: append([]byte{}, text...)}, p[n:], true
	}
	if len(p) < size {
		return v, nil, false
	}
	var n uint64
	for i := size - 1; i >= 0; i-- {
		n = n<<8 | uint64(p[i])
	}
	switch {
	case c.Type == TypeFloat:
		v.Text = fmt.Appendf(nil, "%g", math.Float32frombits(uint32(n)))
	case c.Type == TypeDouble:
		v.Text = fmt.Appendf(nil, "%g", math.Float64frombits(n))
	case c.Flags&FlagUnsigned != 0 || size == 8:
		v.Int = int64(n)
	default:
		shift := 64 - 8*size
		v.Int = int64(n<<shift) >> shift
	}
	return v, p[size:], true
}

// moment writes a date or a time as the text protocol does.
func moment(kind byte, p []byte) []byte {
	if kind == TypeTime {
		if len(p) < 8 {
			return []byte("00:00:00")
		}
		sign := ""
		if p[0] == 1 {
			sign = "-"
		}
		out := fmt.Appendf(nil, "%s%02d:%02d:%02d", sign, int(binary.LittleEndian.Uint32(p[1:]))*24+int(p[5]), p[6], p[7])
		if len(p) >= 12 {
			out = fmt.Appendf(out, ".%06d", binary.LittleEndian.Uint32(p[8:]))
		}
		return out
	}
	if len(p) < 4 {
		return []byte("0000-00-00")
	}
	out := fmt.Appendf(nil, "%04d-%02d-%02d", binary.LittleEndian.Uint16(p), p[2], p[3])
	if kind == TypeDate {
		return out
	}
	if len(p) < 7 {
		return append(out, " 00:00:00"...)
	}
	out = fmt.Appendf(out, " %02d:%02d:%02d", p[4], p[5], p[6])
	if len(p) >= 11 {
		out = fmt.Appendf(out, ".%06d", binary.LittleEndian.Uint32(p[7:]))
	}
	return out
}
