package binlog

import (
	"bytes"

	"github.com/rissodb/risso/internal/binlogevent"
)

// boundaries finds where transactions begin and end in a log of either flavour, with GTIDs or without.
//
// A GTID event begins one. With BEGIN or XA START (MariaDB: without the flag "standalone") it lasts until COMMIT, ROLLBACK,
// an XID event or XA PREPARE; else it is one statement.
type boundaries struct {
	gtid binlogevent.GTID // of the transaction that is open, or that has just ended
	pos  int64            // where that began
	when uint32           // the time of its first event, by which rolling forward decides where to end
	open bool             // an event of a transaction was seen and not its end
	many bool             // it has more than one statement
}

// event takes the next event. began: it is the first of a transaction. ended: it is the last; an event may be both.
func (b *boundaries) event(e binlogevent.Event) (began, ended bool) {
	switch e.Type {
	case binlogevent.TypeGTID, binlogevent.TypeAnonymousGTID, binlogevent.TypeGTIDTagged, binlogevent.TypeMariaGTID:
		g, err := binlogevent.ParseGTID(e)
		if err != nil {
			g = binlogevent.GTID{}
		}
		b.gtid, b.pos, b.when, b.open = g, e.Pos, e.Seconds, true
		b.many = e.Type == binlogevent.TypeMariaGTID && !g.Standalone
		return true, false
	case binlogevent.TypeXid, binlogevent.TypeXAPrepare:
		return b.begin(e), b.end()
	case binlogevent.TypePayload: // a whole transaction, unopened
		return b.begin(e), b.end()
	case binlogevent.TypeQuery, binlogevent.TypeQueryZip:
		q, err := binlogevent.ParseQuery(e)
		if err != nil {
			return b.begin(e), false
		}
		began = b.begin(e)
		switch frameOf(q.Text) {
		case frameBegin:
			b.many = true
			return began, false
		case frameEnd:
			return began, b.end()
		}
		if !b.many {
			return began, b.end()
		}
		return began, false
	case binlogevent.TypeFormatDescription, binlogevent.TypePreviousGTIDs, binlogevent.TypeMariaGTIDList, binlogevent.TypeRotate, binlogevent.TypeStop, binlogevent.TypeBinlogCheckpoint,
		binlogevent.TypeHeartbeat, binlogevent.TypeHeartbeatV2, binlogevent.TypeIncident, binlogevent.TypeIgnorable, binlogevent.TypeStartEncryption:
		return false, false
	}
	return b.begin(e), false
}

// begin begins a transaction of a log without GTID events.
func (b *boundaries) begin(e binlogevent.Event) bool {
	if b.open {
		return false
	}
	*b = boundaries{pos: e.Pos, when: e.Seconds, open: true}
	return true
}

func (b *boundaries) end() bool {
	b.open, b.many = false, false
	return true
}

// frame is what a statement is to its transaction.
type frame int

const (
	frameNone  frame = iota
	frameBegin       // BEGIN, XA START
	frameEnd         // COMMIT, ROLLBACK, and of XA
)

// frameOf recognises the statements that servers write around transactions. They write them in this form.
func frameOf(text []byte) frame {
	if len(text) > 256 {
		text = text[:256]
	}
	up := bytes.ToUpper(bytes.TrimSpace(text))
	switch {
	case bytes.Equal(up, []byte("BEGIN")), bytes.Equal(up, []byte("START TRANSACTION")), bytes.HasPrefix(up, []byte("XA START")), bytes.HasPrefix(up, []byte("XA BEGIN")):
		return frameBegin
	case bytes.Equal(up, []byte("COMMIT")), bytes.Equal(up, []byte("ROLLBACK")), bytes.HasPrefix(up, []byte("XA COMMIT")), bytes.HasPrefix(up, []byte("XA ROLLBACK")):
		return frameEnd
	}
	return frameNone
}
