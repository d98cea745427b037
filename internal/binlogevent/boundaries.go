package binlogevent

import "bytes"

// Boundaries finds where transactions begin and end in a log of either flavour, with GTIDs or without.
//
// A GTID event begins one. With BEGIN or XA START (MariaDB: without the flag "standalone") it lasts until COMMIT, ROLLBACK,
// an XID event or XA PREPARE; else it is one statement.
type Boundaries struct {
	GTID GTID   // of the transaction that is open, or that has just ended
	Pos  int64  // where that began
	When uint32 // the time of its first event, by which rolling forward decides where to end
	Open bool   // an event of a transaction was seen and not its end
	many bool   // it has more than one statement
}

// Next takes the next event. began: it is the first of a transaction. ended: it is the last; an event may be both.
func (b *Boundaries) Next(e Event) (began, ended bool) {
	switch e.Type {
	case TypeGTID, TypeAnonymousGTID, TypeGTIDTagged, TypeMariaGTID:
		g, err := ParseGTID(e)
		if err != nil {
			g = GTID{}
		}
		b.GTID, b.Pos, b.When, b.Open = g, e.Pos, e.Seconds, true
		b.many = e.Type == TypeMariaGTID && !g.Standalone
		return true, false
	case TypeXid, TypeXAPrepare:
		return b.begin(e), b.end()
	case TypePayload: // a whole transaction, unopened
		return b.begin(e), b.end()
	case TypeQuery, TypeQueryZip:
		q, err := ParseQuery(e)
		if err != nil {
			return b.begin(e), false
		}
		began = b.begin(e)
		switch FrameOf(q.Text) {
		case FrameBegin:
			b.many = true
			return began, false
		case FrameEnd:
			return began, b.end()
		}
		if !b.many {
			return began, b.end()
		}
		return began, false
	case TypeFormatDescription, TypePreviousGTIDs, TypeMariaGTIDList, TypeRotate, TypeStop, TypeBinlogCheckpoint,
		TypeHeartbeat, TypeHeartbeatV2, TypeIncident, TypeIgnorable, TypeStartEncryption:
		return false, false
	}
	return b.begin(e), false
}

// begin begins a transaction of a log without GTID events.
func (b *Boundaries) begin(e Event) bool {
	if b.Open {
		return false
	}
	*b = Boundaries{Pos: e.Pos, When: e.Seconds, Open: true}
	return true
}

func (b *Boundaries) end() bool {
	b.Open, b.many = false, false
	return true
}

// Frame is what a statement is to its transaction.
type Frame int

// What a statement can be.
const (
	FrameNone  Frame = iota
	FrameBegin       // BEGIN, XA START
	FrameEnd         // COMMIT, ROLLBACK, and of XA
)

// FrameOf recognises the statements that servers write around transactions. They write them in this form.
func FrameOf(text []byte) Frame {
	if len(text) > 256 {
		text = text[:256]
	}
	up := bytes.ToUpper(bytes.TrimSpace(text))
	switch {
	case bytes.Equal(up, []byte("BEGIN")), bytes.Equal(up, []byte("START TRANSACTION")), bytes.HasPrefix(up, []byte("XA START")), bytes.HasPrefix(up, []byte("XA BEGIN")):
		return FrameBegin
	case bytes.Equal(up, []byte("COMMIT")), bytes.Equal(up, []byte("ROLLBACK")), bytes.HasPrefix(up, []byte("XA COMMIT")), bytes.HasPrefix(up, []byte("XA ROLLBACK")):
		return FrameEnd
	}
	return FrameNone
}
