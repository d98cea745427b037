package mysql

import (
	"context"
	"encoding/binary"
	"fmt"

	driver "github.com/go-sql-driver/mysql"
)

// Bulk is an INSERT that is prepared on the server and gets many rows at once: the server neither parses them nor looks for their
// ends. MariaDB has that since 10.2.4. It ends with its session or by Close. Source: MariaDB's "COM_STMT_BULK_EXECUTE".
type Bulk struct {
	s    *Stream
	head []byte // of each execution
}

// Commands and flags of prepared statements. Source: MariaDB's "COM_STMT_PREPARE", "COM_STMT_BULK_EXECUTE".
const (
	comStmtPrepare     = 0x16
	comStmtClose       = 0x19
	comStmtBulkExecute = 0xfa

	bulkSendTypes    = 128
	bulkTypeString   = 0xfd // VAR_STRING
	prepareAnswerLen = 1 + 4 + 2 + 2
)

// What stands before a value of Bulk's rows.
const (
	BulkValue = 0 // a length-encoded string follows
	BulkNull  = 1
)

// HasBulk says whether the server takes rows by Bulk in this session.
func (s *Stream) HasBulk() bool { return s.bulk }

// PrepareBulk prepares an INSERT with a ? for each of the values of a row.
func (s *Stream) PrepareBulk(ctx context.Context, statement string) (*Bulk, error) {
	b := &Bulk{s: s}
	return b, s.run(ctx, func() error { return b.prepare(statement) })
}

func (b *Bulk) prepare(statement string) error {
	if err := b.s.send(append([]byte{comStmtPrepare}, statement...)); err != nil {
		return err
	}
	p, err := b.s.okPacket()
	if err == nil && len(p) < prepareAnswerLen {
		err = driver.ErrMalformPkt
	}
	if err != nil {
		return err
	}
	id, columns, params := p[1:5], binary.LittleEndian.Uint16(p[5:]), int(binary.LittleEndian.Uint16(p[7:]))
	if columns != 0 {
		return fmt.Errorf("%w: an INSERT that has columns", driver.ErrMalformPkt)
	}
	b.head = append(append([]byte{comStmtBulkExecute}, id...), bulkSendTypes, 0)
	for range params {
		b.head = append(b.head, bulkTypeString, 0)
	}
	if params == 0 {
		return nil
	}
	b.s.columns = b.s.columns[:0]
	return b.s.readColumns(params)
}

// okPacket reads an answer that is either OK or an error.
func (s *Stream) okPacket() ([]byte, error) {
	p, err := s.in.small()
	switch {
	case err != nil:
		return nil, err
	case p[0] == headerError:
		return nil, errorPacket(p)
	case p[0] != headerOK:
		return nil, driver.ErrMalformPkt
	}
	return p, nil
}

// okWarnings reads an answer that is either OK, with a number of warnings, or an error.
func (s *Stream) okWarnings() (int, error) {
	p, err := s.okPacket()
	if err != nil {
		return 0, err
	}
	p = p[1:]
	for range 2 { // affected rows, last inserted ID
		_, n := lenenc(p)
		if n == 0 {
			return 0, driver.ErrMalformPkt
		}
		p = p[n:]
	}
	if len(p) < 2+2 {
		return 0, driver.ErrMalformPkt
	}
	return int(binary.LittleEndian.Uint16(p[2:])), nil // behind the status
}

// Head is how many bytes an execution has besides its rows: together they have to be below max_allowed_packet.
func (b *Bulk) Head() int { return len(b.head) }

// Insert inserts rows: of each, value by value, BulkValue and a length-encoded string, or BulkNull. It tells how many warnings
// the server has.
func (b *Bulk) Insert(ctx context.Context, rows []byte) (warnings int, err error) {
	err = b.s.run(ctx, func() error {
		if err := b.s.send2(b.head, rows); err != nil {
			return err
		}
		warnings, err = b.s.okWarnings()
		return err
	})
	return warnings, err
}

// Close lets the server forget the statement.
func (b *Bulk) Close() {
	if b.s.broken == nil && len(b.head) > 0 {
		_ = b.s.send(append([]byte{comStmtClose}, b.head[1:5]...)) // there is no answer; trouble shows in the next statement
	}
}
