package binlogevent

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// errShort is an event whose content ends before it should.
var errShort = errors.New("the event is shorter than it says")

// cursor reads the fields of an event. After an error it returns only zeros.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) take(n int) []byte {
	if n < 0 || n > len(c.b) {
		c.b, c.bad = nil, true
		return nil
	}
	out := c.b[:n]
	c.b = c.b[n:]
	return out
}

// uint reads an integer of n bytes, at most 8, little-endian.
func (c *cursor) uint(n int) (v uint64) {
	for i, x := range c.take(n) {
		v |= uint64(x) << (8 * i)
	}
	return v
}

// packed reads MySQL's integer of variable length
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_dt_integers.html).
func (c *cursor) packed() uint64 {
	switch first := c.uint(1); first {
	case 0xfc:
		return c.uint(2)
	case 0xfd:
		return c.uint(3)
	case 0xfe:
		return c.uint(8)
	default:
		return first
	}
}

func (c *cursor) err() error {
	if c.bad {
		return errShort
	}
	return nil
}

// Format is what a format description event says about the log.
type Format struct {
	Version  string // the server's, as it calls itself
	Created  uint32 // unix time of the server's start, in the first log after it; else 0
	Checksum bool   // events end in a CRC-32

	tableIDLen int
	server     fleet.Server
}

// Server is what wrote the log.
func (f Format) Server() fleet.Server { return f.server }

// algorithmAt is where a format description names its checksum algorithm: the byte before its own checksum.
func algorithmAt(raw []byte) int { return len(raw) - ChecksumLen - 1 }

// ParseFormat reads a format description event with its header.
func ParseFormat(raw []byte) (Format, error) { return parseFormat(raw, Options{}) }

func parseFormat(raw []byte, o Options) (Format, error) {
	if len(raw) < HeaderLen {
		return Format{}, errShort
	}
	c := cursor{b: raw[HeaderLen:]}
	number := c.uint(2)
	f := Format{Version: string(bytes.TrimRight(c.take(50), "\x00")), tableIDLen: 6}
	f.Created = uint32(c.uint(4))
	headerLen := c.uint(1)
	if c.bad || number != 4 || headerLen != HeaderLen || len(c.b) < int(TypeTableMap) {
		return Format{}, fmt.Errorf("%w: format %d of %q is not that of MySQL 5.0 and later", ErrNotBinlog, number, f.Version)
	}
	lens := c.b
	if c.b[TypeTableMap-1] == 6 {
		f.tableIDLen = 4
	}
	f.server = fleet.ServerOf(f.Version, "")
	// MySQL 5.6.1 and MariaDB 5.3 brought checksums. Older logs are refused: a damaged version would turn checksums off.
	if !f.server.AtLeast(50601, 50300) {
		if o.Old {
			return f, nil
		}
		return Format{}, fmt.Errorf("%w: written by %q, which is not MySQL 5.6 or MariaDB 5.3 or later, or damaged", ErrNotBinlog, f.Version)
	}
	if len(lens) <= ChecksumLen {
		return Format{}, errShort
	}
	algorithm := raw[algorithmAt(raw)]
	f.Checksum = algorithm == 1
	if !f.Checksum && o.Lost == nil && (algorithm != 0 || hidesChecksum(raw)) {
		return Format{}, fmt.Errorf("%w: its format description says checksum %d", ErrDamaged, algorithm)
	}
	return f, nil
}

// hidesChecksum reports whether a format description that claims to have no checksum in fact has one: its own would then
// be right.
func hidesChecksum(raw []byte) bool {
	b := bytes.Clone(raw)
	b[algorithmAt(b)] = 1
	return VerifyChecksum(b)
}

// PlainFormat is a copy of a format description event that says that events have no checksums.
func PlainFormat(raw []byte) []byte {
	out := bytes.Clone(raw)
	out[algorithmAt(out)] = 0
	return out
}

// GTID is what a GTID event of either flavour says; it begins a transaction.
type GTID struct {
	ID         mysql.GTID // zero of an anonymous transaction (gtid_mode=OFF)
	Committed  time.Time  // on the server that wrote the log (MySQL 8.0.1); zero if it does not say
	Original   time.Time  // on the server where it was committed first; zero if it does not say
	Length     uint64     // of the transaction in bytes (MySQL 8.0.2); 0 if it does not say
	Standalone bool       // MariaDB: one statement, with neither BEGIN nor COMMIT
	DDL        bool       // MariaDB
	XA         bool       // MariaDB: XA PREPARE, or the end of a prepared one
	Prepares   *XID       // MariaDB: what comes is this XA transaction, up to its XA PREPARE
	AlterPhase bool       // MariaDB 10.8: half of an ALTER (binlog_alter_two_phase)
	Thread     uint32     // MariaDB 11.5: of the connection; 0 if it does not say

	ServerVersion, OriginalVersion uint32 // MySQL 8.0.14: 80036 for 8.0.36

	// Of MySQL 5.7 on, in numbers that begin again with each log: once all up to LastCommitted have been committed, this one, whose number is
	// Sequence, may be applied. Both are 0 if the log does not say.
	LastCommitted, Sequence int64
	// Of MariaDB: CommitID is the same for transactions that were committed together, 0 without a group. Transactional can be rolled back and so be
	// tried early; Waited was held up by a row lock when it ran first; Serial is not to be applied beside others (skip_parallel_replication).
	CommitID                      uint64
	Transactional, Waited, Serial bool
}

// Flags of MariaDB's GTID event (sql/log_event.h, class Gtid_log_event).
const (
	mariaStandalone  = 1
	mariaGroupCommit = 2
	mariaTrans       = 4
	mariaParallel    = 8
	mariaWaited      = 16
	mariaDDL         = 32
	mariaPreparedXA  = 64
	mariaCompletedXA = 128
	extraMultiEngine = 1
	extraStartAlter  = 2
	extraCommitAlter = 4
	extraRollback    = 8
	extraThreadID    = 16
)

// ParseGTID reads a GTID event of any kind.
func ParseGTID(e Event) (GTID, error) {
	switch e.Type {
	case TypeMariaGTID:
		return parseMariaGTID(e)
	case TypeGTIDTagged:
		return parseTagged(e.Body)
	}
	var g GTID
	c := cursor{b: e.Body}
	c.take(1)
	sid := c.take(16)
	number := c.uint(8)
	if c.bad {
		return g, errShort
	}
	if e.Type == TypeGTID {
		g.ID = mysql.GTID{Source: uuidText(sid), Number: number}
	}
	if c.uint(1) != 2 {
		return g, nil // before 5.7
	}
	g.LastCommitted, g.Sequence = int64(c.uint(8)), int64(c.uint(8))
	if len(c.b) < 7 {
		return g, nil // before 8.0.1
	}
	const both = uint64(1) << 55
	here := c.uint(7)
	first := here &^ both
	if here&both != 0 {
		first = c.uint(7)
	}
	g.Committed, g.Original = micros(here&^both), micros(first)
	g.Length = c.packed()
	if len(c.b) >= 4 {
		v := uint32(c.uint(4))
		g.ServerVersion, g.OriginalVersion = v&^(1<<31), v
		if v&(1<<31) != 0 {
			g.OriginalVersion = uint32(c.uint(4))
		}
	}
	return g, c.err()
}

func micros(v uint64) time.Time { return time.UnixMicro(int64(v)).UTC() }

func uuidText(b []byte) string {
	var s [36]byte
	hex.Encode(s[:], b[:4])
	hex.Encode(s[9:], b[4:6])
	hex.Encode(s[14:], b[6:8])
	hex.Encode(s[19:], b[8:10])
	hex.Encode(s[24:], b[10:])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return string(s[:])
}

func parseMariaGTID(e Event) (GTID, error) {
	c := cursor{b: e.Body}
	number := c.uint(8)
	domain := uint32(c.uint(4))
	flags := c.uint(1)
	g := GTID{ID: mysql.GTID{Domain: domain, Server: e.ServerID, Number: number}, Standalone: flags&mariaStandalone != 0,
		Transactional: flags&mariaTrans != 0, Waited: flags&mariaWaited != 0, Serial: flags&mariaParallel == 0,
		DDL: flags&mariaDDL != 0, XA: flags&(mariaPreparedXA|mariaCompletedXA) != 0}
	if c.bad {
		return g, errShort
	}
	if flags&mariaGroupCommit != 0 {
		g.CommitID = c.uint(8)
	}
	if g.XA {
		x := XID{Format: int32(c.uint(4))}
		n, m := int(c.uint(1)), int(c.uint(1))
		x.Gtrid, x.Bqual = bytes.Clone(c.take(n)), bytes.Clone(c.take(m))
		if flags&mariaPreparedXA != 0 {
			g.Prepares = &x
		}
	}
	if len(c.b) == 0 || c.bad {
		return g, nil
	}
	extra := c.uint(1)
	g.AlterPhase = extra&(extraStartAlter|extraCommitAlter|extraRollback) != 0
	if extra&extraMultiEngine != 0 {
		c.take(1)
	}
	if extra&(extraCommitAlter|extraRollback) != 0 {
		c.take(8)
	}
	if extra&extraThreadID != 0 {
		g.Thread = uint32(c.uint(4))
	}
	return g, nil
}

// varint reads an integer of MySQL's serialization library: as many one-bits at the low end as bytes follow the first
// (mysql/serialization/variable_length_integers.h).
func (c *cursor) varint() uint64 {
	if len(c.b) == 0 {
		c.bad = true
		return 0
	}
	more := bits.TrailingZeros8(^c.b[0])
	n := more + 1
	b := c.take(n)
	if c.bad {
		return 0
	}
	var full [16]byte
	copy(full[:], b)
	if n == 9 { // all ones: eight bytes follow
		return binary.LittleEndian.Uint64(full[1:])
	}
	return binary.LittleEndian.Uint64(full[:]) >> n
}

// signed reads a signed integer of the same library.
func (c *cursor) signed() int64 {
	v := c.varint()
	if v&1 == 0 {
		return int64(v >> 1)
	}
	return -int64(v>>1) - 1
}

// parseTagged reads a GTID_TAGGED_LOG_EVENT (MySQL 8.3), a message of fields, each after its number; see
// Gtid_event::define_fields in libs/mysql/binlog/event/control_events.h.
func parseTagged(body []byte) (GTID, error) {
	var g GTID
	var source, tag string
	var number int64
	c := cursor{b: body}
	c.varint() // version
	c.varint() // size
	c.varint() // last field that may not be ignored
	for len(c.b) > 0 && !c.bad {
		switch field := c.varint(); field {
		case 0:
			c.varint() // flags
		case 1:
			var uuid [16]byte
			for i := range uuid {
				uuid[i] = byte(c.varint())
			}
			source = uuidText(uuid[:])
		case 2:
			number = c.signed()
		case 3:
			tag = string(c.take(int(c.varint())))
		case 4:
			g.LastCommitted = c.signed()
		case 5:
			g.Sequence = c.signed()
		case 6:
			g.Committed = micros(c.varint())
		case 7:
			g.Original = micros(c.varint())
		case 8:
			g.Length = c.varint()
		case 9:
			g.ServerVersion = uint32(c.varint())
		case 10:
			g.OriginalVersion = uint32(c.varint())
		default:
			c.b = nil // a ticket of group commit, or what later versions add
		}
	}
	if c.bad || source == "" || number <= 0 {
		return g, errShort
	}
	if g.Original.IsZero() {
		g.Original = g.Committed
	}
	if g.OriginalVersion == 0 {
		g.OriginalVersion = g.ServerVersion
	}
	if tag != "" {
		source += ":" + tag
	}
	g.ID = mysql.GTID{Source: source, Number: uint64(number)}
	return g, nil
}

// ParseGTIDs reads the event at the beginning of a log that says which transactions came before it: PREVIOUS_GTIDS of MySQL,
// GTID_LIST of MariaDB (of which the last of each domain counts).
func ParseGTIDs(e Event) (mysql.GTIDSet, error) {
	var s mysql.GTIDSet
	c := cursor{b: e.Body}
	if e.Type == TypeMariaGTIDList {
		for n := c.uint(4) & (1<<28 - 1); n > 0 && !c.bad; n-- {
			g := mysql.GTID{Domain: uint32(c.uint(4)), Server: uint32(c.uint(4)), Number: c.uint(8)}
			if !c.bad {
				s.Add(g) // of several servers of a domain the last one is the newest
			}
		}
		return s, c.err()
	}
	// The number of sources; since 8.3 the highest byte says whether they have tags
	// (Gtid_set::encode in sql/rpl_gtid_set.cc).
	head := c.uint(8)
	n, tagged := head, head>>56 == 1
	if tagged {
		n = head >> 8 & (1<<48 - 1)
	}
	for ; n > 0 && !c.bad; n-- {
		sid := c.take(16)
		if c.bad {
			break
		}
		source := uuidText(sid)
		if tagged {
			if tag := c.take(int(c.varint())); len(tag) > 0 {
				source += ":" + string(tag)
			}
		}
		for m := c.uint(8); m > 0 && !c.bad; m-- {
			from, to := c.uint(8), c.uint(8) // to is not in it
			if !c.bad {
				s.AddRange(source, from, to-1)
			}
		}
	}
	return s, c.err()
}

// Rotate names the log that follows.
type Rotate struct {
	Pos  uint64
	Name string
}

// ParseRotate reads a rotate event's body.
func ParseRotate(body []byte) (Rotate, error) {
	c := cursor{b: body}
	r := Rotate{Pos: c.uint(8)}
	r.Name = string(c.b)
	return r, c.err()
}

// XID is the identity of a distributed transaction.
type XID struct {
	OnePhase bool
	Format   int32
	Gtrid    []byte
	Bqual    []byte
}

// ParseXAPrepare reads an XA_PREPARE_LOG_EVENT.
func ParseXAPrepare(body []byte) (XID, error) {
	c := cursor{b: body}
	x := XID{OnePhase: c.uint(1) != 0, Format: int32(c.uint(4))}
	g, b := int(c.uint(4)), int(c.uint(4))
	x.Gtrid = bytes.Clone(c.take(g))
	x.Bqual = bytes.Clone(c.take(b))
	return x, c.err()
}

// SQL is the XID as statements name it.
func (x XID) SQL() string { return fmt.Sprintf("X'%x',X'%x',%d", x.Gtrid, x.Bqual, x.Format) }

// StatementText is the text of a rows query or annotate event: the statement whose rows follow.
func StatementText(e Event) []byte {
	if e.Type == TypeRowsQuery {
		if len(e.Body) > 0 {
			return e.Body[1:] // the first byte is a length that is too short for long ones
		}
		return nil
	}
	return e.Body
}

// Artificial reports whether the server made an event for the replica: it is in no file.
func (h *Header) Artificial() bool {
	return h.Flags&FlagArtificial != 0 || h.Type == TypeHeartbeat || h.Type == TypeHeartbeatV2 || h.Type == TypeRotate && h.Seconds == 0
}

// TrimChecksum is an event without the checksum at its end, if there is one: for events in front of a format description.
func TrimChecksum(raw []byte) []byte {
	n := len(raw) - ChecksumLen
	if n >= HeaderLen && crc32.ChecksumIEEE(raw[:n]) == binary.LittleEndian.Uint32(raw[n:]) {
		return raw[:n]
	}
	return raw
}

// VerifyChecksum reports whether the checksum at an event's end is right.
func VerifyChecksum(raw []byte) bool {
	n := len(raw) - ChecksumLen
	return n >= HeaderLen && crcOf(raw[:n]) == binary.LittleEndian.Uint32(raw[n:])
}
