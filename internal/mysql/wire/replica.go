package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"
)

// Events is a stream of binary log events from a server, as a replica gets it.
type Events struct {
	conn     *Conn
	semiSync bool
}

// EventsFrom say what a server is to send of its binary logs.
type EventsFrom struct {
	File     string
	Pos      int64  // at least 4
	ServerID uint32 // of the replica that we claim to be. No two replicas may have the same.
	Wait     bool   // at the end wait for more; else the server ends the stream
	Annotate bool   // MariaDB: with the statements of row events, which are in the file
	SemiSync bool   // the session asked for events that want an acknowledgement
}

// Events registers as a replica and asks for binary logs; then the connection serves for nothing else. The form is that of both
// flavours: MariaDB takes GTIDs from variables of the session. The account needs REPLICATION SLAVE.
// https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_replication.html
func (c *Conn) Events(from EventsFrom) (*Events, error) {
	register := binary.LittleEndian.AppendUint32([]byte{comRegister}, from.ServerID) // shows us in SHOW REPLICAS
	register = appendString(register, "risso")
	register = append(register, make([]byte, 1+1+2+4+4)...) // no user, password, port, rank, source
	if err := c.send(nil, register); err != nil {
		return nil, err
	}
	if _, err := c.ok(); err != nil {
		return nil, err
	}
	const dontWait, annotate = 1, 2 // BINLOG_DUMP_NON_BLOCK, BINLOG_SEND_ANNOTATE_ROWS_EVENT
	var flags uint16
	if !from.Wait {
		flags |= dontWait
	}
	if from.Annotate {
		flags |= annotate
	}
	dump := binary.LittleEndian.AppendUint32([]byte{comBinlogDump}, uint32(from.Pos))
	dump = binary.LittleEndian.AppendUint16(dump, flags)
	dump = binary.LittleEndian.AppendUint32(dump, from.ServerID)
	if err := c.send(nil, append(dump, from.File...)); err != nil {
		return nil, err
	}
	// A server restarts counting packets after each event that wants an acknowledgement.
	c.in.anyOrder = c.in.anyOrder || from.SemiSync
	return &Events{conn: c, semiSync: from.SemiSync}, nil
}

// ErrEndOfLogs says that the server has no more, of Events that do not wait.
var ErrEndOfLogs = errors.New("end of the binary logs")

// Next returns the next event; its bytes are valid until the next call. ack says that the server waits for an acknowledgement
// of it. patience is how long it is waited for; the server's heartbeats count as life.
func (e *Events) Next(patience time.Duration) (event []byte, ack bool, err error) {
	e.conn.timed.read = patience
	b, err := e.conn.in.next(maxEvent)
	switch {
	case err != nil:
		return nil, false, err
	case b[0] == headerError:
		return nil, false, errorPacket(b)
	case b[0] == headerEOF && len(b) < 9:
		return nil, false, ErrEndOfLogs
	case b[0] != headerOK:
		return nil, false, malformed(fmt.Sprintf("packet %#x instead of an event", b[0]))
	}
	b = b[1:]
	if e.semiSync && len(b) >= 2 && b[0] == semiSyncMark {
		ack, b = b[1]&1 != 0, b[2:]
	}
	return b, ack, nil
}

// maxEvent is more than an event can be: its own length has 32 bits.
const maxEvent = 1 << 33

// SemiSync reports whether the server takes acknowledgements.
func (e *Events) SemiSync() bool { return e.semiSync }

// Ready waits until something came that Next did not give out yet, but no longer than wait.
func (e *Events) Ready(wait time.Duration) (bool, error) {
	if e.Buffered() > 0 {
		return true, nil
	}
	e.conn.timed.read = wait
	err := e.conn.in.fill()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return false, nil
	}
	return err == nil, err
}

// Buffered says how many bytes came already and were not yet given out.
func (e *Events) Buffered() int { return e.conn.in.w - e.conn.in.r }

// Ack tells the server that everything up to a position of a file is on disk here.
func (e *Events) Ack(file string, pos int64) error {
	return e.conn.send(nil, append(binary.LittleEndian.AppendUint64([]byte{semiSyncMark}, uint64(pos)), file...))
}
