// Package wire speaks the client/server protocol of MySQL and MariaDB, for code that needs more than a driver for
// database/sql provides: rows as bytes in pieces, prepared statements without allocation, binary logs. A Conn is a logged-in
// connection; its link may be replaced by another one (a socket of plain system calls). What is sent on it, and the state
// of the session, is up to its users. See DESIGN.md.
package wire

import (
	"encoding/binary"
	"fmt"

	driver "github.com/go-sql-driver/mysql"
)

// Commands: the first byte of a packet that begins one.
// https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_command_phase.html
const (
	comQuit          = 0x01
	comQuery         = 0x03
	comBinlogDump    = 0x12
	comRegister      = 0x15 // COM_REGISTER_SLAVE
	comStmtPrepare   = 0x16
	comStmtExecute   = 0x17
	comStmtLongData  = 0x18
	comStmtClose     = 0x19
	comSetOption     = 0x1b
	comStmtBulk      = 0xfa // COM_STMT_BULK_EXECUTE, MariaDB
	semiSyncMark     = 0xef // begins an acknowledgement, and the header of an event that may want one
	multiStatements  = 0    // option of comSetOption: several statements in a packet are taken
	singleStatements = 1
)

// The first byte of an answer. headerEOF is a request for another plugin while logging in.
const (
	headerOK    = 0x00
	headerMore  = 0x01 // data of an authentication plugin
	headerLocal = 0xfb // the server wants a file of LOAD DATA LOCAL
	headerEOF   = 0xfe
	headerError = 0xff
	null        = 0xfb // instead of the length of a value
)

// maxPacket is the size of a packet that goes on in the next one.
const maxPacket = 1<<24 - 1

// Capabilities that the two sides agree to.
// https://dev.mysql.com/doc/dev/mysql-server/latest/group__group__cs__capabilities__flags.html
const (
	capMySQL         = 1 << 0 // MariaDB: not set means that extended capabilities follow
	capFoundRows     = 1 << 1
	capLongFlag      = 1 << 2
	capConnectWithDB = 1 << 3
	capCompress      = 1 << 5
	capLocalFiles    = 1 << 7
	capProtocol41    = 1 << 9
	capSSL           = 1 << 11
	capTransactions  = 1 << 13
	capSecure        = 1 << 15
	capMultiResults  = 1 << 17
	capPluginAuth    = 1 << 19
	capAttributes    = 1 << 20
	capLenencAuth    = 1 << 21
	capDeprecateEOF  = 1 << 24 // an OK packet ends a result instead of an EOF packet
)

// Extended capabilities of MariaDB, from bit 32 on.
// https://mariadb.com/docs/server/reference/clientserver-protocol/1-connecting/connection#capabilities
const (
	extBulk          = 1 << 2 // MARIADB_CLIENT_STMT_BULK_OPERATIONS
	extCacheMetadata = 1 << 4 // a byte after the number of columns says whether their definitions follow
)

// statusMore is SERVER_MORE_RESULTS_EXISTS.
const statusMore = 0x08

// Types of fields, and a flag of theirs. Source: enum_field_types of both servers.
const (
	TypeTiny      = 1
	TypeShort     = 2
	TypeLong      = 3
	TypeFloat     = 4
	TypeDouble    = 5
	TypeNull      = 6
	TypeTimestamp = 7
	TypeLonglong  = 8
	TypeInt24     = 9
	TypeDate      = 10
	TypeTime      = 11
	TypeDatetime  = 12
	TypeYear      = 13
	TypeVarString = 253

	FlagUnsigned = 32
)

func malformed(what string) error {
	return fmt.Errorf("%w: %s cannot be read", driver.ErrMalformPkt, what)
}

// errorPacket reads a server's refusal, a *MySQLError of the driver.
func errorPacket(p []byte) error {
	if len(p) < 3 {
		return malformed("an error")
	}
	e := &driver.MySQLError{Number: binary.LittleEndian.Uint16(p[1:])}
	p = p[3:]
	if len(p) >= 6 && p[0] == '#' {
		copy(e.SQLState[:], p[1:6])
		p = p[6:]
	}
	e.Message = string(p)
	return e
}

// okPacket reads an OK packet, or what ends a result in the same form.
func okPacket(p []byte) (Result, error) {
	var r Result
	rest := p[1:]
	for _, to := range []*uint64{&r.Affected, &r.InsertID} {
		v, n := lenenc(rest)
		if n == 0 {
			return r, malformed("an OK")
		}
		*to, rest = v, rest[n:]
	}
	if len(rest) < 4 {
		return r, malformed("an OK")
	}
	r.More = rest[0]&statusMore != 0
	r.Warnings = int(binary.LittleEndian.Uint16(rest[2:]))
	return r, nil
}

// eofPacket reads what ends a result if capDeprecateEOF is not agreed on.
func eofPacket(p []byte) Result {
	if len(p) < 5 {
		return Result{}
	}
	return Result{Warnings: int(binary.LittleEndian.Uint16(p[1:])), More: p[3]&statusMore != 0}
}

// lenenc reads a length-encoded number and says how many bytes it took; 0: it is none.
func lenenc(b []byte) (v uint64, n int) {
	if len(b) == 0 {
		return 0, 0
	}
	switch b[0] {
	default:
		return uint64(b[0]), 1
	case null, 0xff:
		return 0, 0
	case 0xfc:
		n = 3
	case 0xfd:
		n = 4
	case 0xfe:
		n = 9
	}
	if len(b) < n {
		return 0, 0
	}
	for i := n - 1; i > 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	return v, n
}

// appendString appends a length-encoded string.
func appendString[T string | []byte](to []byte, s T) []byte {
	switch n := len(s); {
	case n < null:
		to = append(to, byte(n))
	case n < 1<<16:
		to = append(to, 0xfc, byte(n), byte(n>>8))
	case n < 1<<24:
		to = append(to, 0xfd, byte(n), byte(n>>8), byte(n>>16))
	default:
		to = binary.LittleEndian.AppendUint64(append(to, 0xfe), uint64(n))
	}
	return append(to, s...)
}

// value reads a length-encoded string, nil for NULL, and says how many bytes it took.
func value(b []byte) (v []byte, n int, ok bool) {
	if len(b) > 0 && b[0] == null {
		return nil, 1, true
	}
	size, n := lenenc(b)
	if n == 0 || size > uint64(len(b)-n) {
		return nil, 0, false
	}
	end := n + int(size)
	return b[n:end:end], end, true
}

// SplitRow appends the values of a row of the text protocol to a slice, nil for NULL. They lie in the row's bytes.
func SplitRow(to [][]byte, row []byte) ([][]byte, error) {
	for len(row) > 0 {
		v, n, ok := value(row)
		if !ok {
			return to, driver.ErrMalformPkt
		}
		to, row = append(to, v), row[n:]
	}
	return to, nil
}

// Column is a column of a result, as the server described it. Source: MySQL's "Protocol::ColumnDefinition41".
type Column struct {
	Name    string
	Charset uint16 // number of the collation; 63 is binary
	Type    byte
	Flags   uint16
}

// read takes a definition. A name that is the same as before is kept, so that nothing is allocated.
func (c *Column) read(p []byte) error {
	const name = 4
	for i := range 6 { // catalog, schema, table, original table, name, original name
		v, n, ok := value(p)
		if !ok {
			return malformed("a column")
		}
		if i == name && c.Name != string(v) {
			c.Name = string(v)
		}
		p = p[n:]
	}
	// MariaDB's extended metadata is not asked for: the fixed part of 12 bytes follows.
	if len(p) < 1+10 {
		return malformed("a column")
	}
	p = p[1:]
	c.Charset, c.Type, c.Flags = binary.LittleEndian.Uint16(p), p[6], binary.LittleEndian.Uint16(p[7:])
	return nil
}
