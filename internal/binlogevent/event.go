// Package binlogevent reads binary logs of MySQL and MariaDB: a stream of events with verified
// checksums, and the contents of their bodies. It reads an io.Reader and knows nothing about servers or folders.
//
// Format: https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_replication_binlog_event.html,
// https://mariadb.com/kb/en/replication-protocol/. Classes and numbers are named as in MySQL's
// libs/mysql/binlog/event/binlog_event.h and MariaDB's sql/log_event.h.
package binlogevent

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Type is an event's type.
type Type byte

// Types of events. Those that are named nowhere else are passed on unread.
const (
	TypeQuery             Type = 2
	TypeStop              Type = 3
	TypeRotate            Type = 4
	TypeIntvar            Type = 5
	TypeAppendBlock       Type = 9
	TypeDeleteFile        Type = 11
	TypeRand              Type = 13
	TypeUserVar           Type = 14
	TypeFormatDescription Type = 15
	TypeXid               Type = 16
	TypeBeginLoadQuery    Type = 17
	TypeExecuteLoadQuery  Type = 18
	TypeTableMap          Type = 19
	TypeWriteRowsV1       Type = 23
	TypeUpdateRowsV1      Type = 24
	TypeDeleteRowsV1      Type = 25
	TypeIncident          Type = 26
	TypeHeartbeat         Type = 27
	TypeIgnorable         Type = 28
	TypeRowsQuery         Type = 29
	TypeWriteRows         Type = 30
	TypeUpdateRows        Type = 31
	TypeDeleteRows        Type = 32
	TypeGTID              Type = 33
	TypeAnonymousGTID     Type = 34
	TypePreviousGTIDs     Type = 35
	TypeXAPrepare         Type = 38
	TypePartialUpdateRows Type = 39
	TypePayload           Type = 40
	TypeHeartbeatV2       Type = 41
	TypeGTIDTagged        Type = 42

	// MariaDB's.
	TypeAnnotateRows     Type = 160
	TypeBinlogCheckpoint Type = 161
	TypeMariaGTID        Type = 162
	TypeMariaGTIDList    Type = 163
	TypeStartEncryption  Type = 164
	TypeQueryZip         Type = 165
	TypeWriteRowsZipV1   Type = 166
	TypeUpdateRowsZipV1  Type = 167
	TypeDeleteRowsZipV1  Type = 168
	TypeWriteRowsZip     Type = 169
	TypeUpdateRowsZip    Type = 170
	TypeDeleteRowsZip    Type = 171
)

// Flags in the header of an event.
const (
	FlagInUse      = 0x0001 // of a format description: the file is being written. It is left out of the checksum.
	FlagArtificial = 0x0020 // made by the server for the replica; in no file
)

const (
	// HeaderLen is the length of every event's header.
	HeaderLen = 19
	// ChecksumLen is the length of the CRC-32 at an event's end, if the format description says that there is one.
	ChecksumLen = 4
	// maxLength is more than any server writes: max_allowed_packet of a replica is 1 GiB at most.
	maxLength = 1<<30 + 1<<26
)

// Magic begins every binary log.
var Magic = []byte{0xfe, 'b', 'i', 'n'}

// What can be wrong with a binary log. Each comes wrapped with the position.
var (
	ErrNotBinlog = errors.New("not a binary log")
	ErrEncrypted = errors.New("the binary log is encrypted")
	ErrTorn      = errors.New("the binary log ends in the middle of an event")
	ErrChecksum  = errors.New("an event of the binary log has a wrong checksum")
	ErrDamaged   = errors.New("the binary log is damaged")
	ErrPayload   = errors.New("a compressed transaction cannot be read") // comes with ErrDamaged
)

// Header begins every event.
type Header struct {
	Seconds  uint32 // unix time, mostly of the statement's beginning
	Type     Type
	ServerID uint32
	Length   uint32 // with header and checksum
	EndPos   uint32 // where the next event begins; modulo 2^32, and 0 in some of MariaDB 11.4 on
	Flags    uint16
}

// ParseHeader reads the first HeaderLen bytes.
func ParseHeader(b []byte) (h Header) {
	h.Parse(b)
	return h
}

// Parse reads the first HeaderLen bytes. Who reads many headers parses them in place and hands on pointers: a header that was just
// written field by field and is copied as a whole costs a third of what is done for a small event.
func (h *Header) Parse(b []byte) {
	_ = b[HeaderLen-1]
	h.Seconds, h.Type, h.ServerID = binary.LittleEndian.Uint32(b), Type(b[4]), binary.LittleEndian.Uint32(b[5:])
	h.Length, h.EndPos, h.Flags = binary.LittleEndian.Uint32(b[9:]), binary.LittleEndian.Uint32(b[13:]), binary.LittleEndian.Uint16(b[17:])
}

// Event is one event. Its bytes are valid until the next one is read.
type Event struct {
	Header
	Pos   int64  // where it begins in the file; of an event within a compressed transaction, where that begins
	End   int64  // where the next one begins in the file
	Raw   []byte // all of it, with the checksum; without what was beyond Options.MaxBody
	Body  []byte // without header and checksum
	Whole bool   // nothing of it is missing
	Inner bool   // it came out of a compressed transaction
}

// Options say how a log is read. The zero value reads all of it.
type Options struct {
	// MaxBody is how many bytes of an event are kept; 0: all. A format description is kept whole; checksums are of all bytes.
	MaxBody int
	// KeepPayload returns compressed transactions (MySQL 8.0.20) as one event instead of the events within.
	KeepPayload bool
	// Skip, if set, says of which events only the header is wanted; their checksums are verified nevertheless.
	Skip func(Header) bool
	// Old takes logs of servers from before checksums, too (MySQL 5.6.1, MariaDB 5.3): a damaged version would turn them off.
	Old bool
	// Lost, if set, receives what cannot be read, and reading goes on after it: after an event with a wrong checksum
	// (ErrChecksum) and a compressed transaction that cannot be read (ErrPayload). After an impossible length (ErrDamaged)
	// it is unknown where the next event begins: bytes is how many are skipped. ErrTorn is the end of the log.
	Lost func(err error, bytes int64)
}

// Reader reads the events of one binary log.
type Reader struct {
	in     *bufio.Reader
	o      Options
	pos    int64
	format Format
	buf    []byte

	e       Event         // the one that was read last
	inner   *bufio.Reader // the events of a compressed transaction; nil outside of one
	left    io.Reader     // what is left of its bytes
	sum     *sumReader
	payload Event
	zstd    *zstd.Decoder
}

// NewReader begins to read a log. The error wraps ErrNotBinlog or ErrEncrypted, or is the reader's. An empty log is ErrTorn.
func NewReader(in io.Reader, o Options) (*Reader, error) {
	r := &Reader{in: bufio.NewReaderSize(in, 256<<10), o: o}
	head := make([]byte, len(Magic))
	if n, err := io.ReadFull(r.in, head); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("%w: it has only %d bytes", ErrTorn, n)
		}
		return nil, err
	}
	switch {
	case bytes.Equal(head, []byte{0xfd, 'b', 'i', 'n'}):
		return nil, fmt.Errorf("%w (binlog_encryption): read it through its server, which decrypts it: --dsn", ErrEncrypted)
	case !bytes.Equal(head, Magic):
		return nil, fmt.Errorf("%w: it does not begin with fe 62 69 6e", ErrNotBinlog)
	}
	r.pos = int64(len(Magic))
	return r, nil
}

// Format is what the log's format description says; it is known once that was read.
func (r *Reader) Format() Format { return r.format }

// Pos is where the next event begins. After an error of Next it is the end of what was good.
func (r *Reader) Pos() int64 { return r.pos }

// Close frees what reading took. It does not close the input.
func (r *Reader) Close() {
	if r.zstd != nil {
		r.zstd.Close()
		r.zstd = nil
	}
}

// Next returns the next event, at the end of the log io.EOF.
func (r *Reader) Next() (Event, error) {
	for {
		var err error
		opened := false
		if r.inner != nil {
			if err = r.nextInner(); err == io.EOF {
				opened, err = true, nil
			}
		} else {
			opened, err = r.nextOuter()
		}
		switch {
		case opened && err == nil:
		case err == nil:
			return r.e, nil
		case r.o.Lost == nil || err == io.EOF:
			return Event{}, err
		default:
			if err := r.survive(err); err != nil {
				return Event{}, err
			}
		}
	}
}

// nextOuter reads an event of the file, or opens a compressed transaction.
func (r *Reader) nextOuter() (opened bool, err error) {
	head, err := r.in.Peek(HeaderLen)
	if err != nil {
		if len(head) == 0 && errors.Is(err, io.EOF) {
			return false, io.EOF
		}
		return false, r.torn(err)
	}
	r.e = Event{Pos: r.pos}
	r.e.Parse(head)
	if r.e.Length < HeaderLen || r.e.Length > maxLength {
		return false, fmt.Errorf("%w at position %d: an event of %d bytes", ErrDamaged, r.pos, r.e.Length)
	}
	if r.pos == int64(len(Magic)) && r.e.Type != TypeFormatDescription && r.o.Lost == nil {
		return false, fmt.Errorf("%w: its first event is of type %d, not a format description", ErrDamaged, r.e.Type)
	}
	if r.e.Type == TypePayload && !r.o.KeepPayload {
		return true, r.openPayload(r.e)
	}
	return false, r.wholeEvent(&r.e)
}

// wholeEvent reads an event as it is in the file.
func (r *Reader) wholeEvent(e *Event) error {
	sum := 0
	if r.format.Checksum || e.Type == TypeFormatDescription {
		sum = ChecksumLen
	}
	n := int(e.Length)
	if n < HeaderLen+sum {
		return fmt.Errorf("%w at position %d: an event of %d bytes", ErrDamaged, r.pos, e.Length)
	}
	keep := r.keep(e.Header)
	if err := r.fill(r.in, keep); err != nil {
		return r.torn(err)
	}
	crc := uint32(0)
	if sum > 0 {
		crc = crcOf(r.buf[:min(keep, n-sum)])
	}
	tail := r.buf
	if keep < n {
		var err error
		if crc, tail, err = r.pass(crc, keep, n, sum); err != nil {
			return err
		}
	}
	e.Raw, e.Whole = r.buf, keep == n
	if e.Type == TypeFormatDescription {
		f, err := parseFormat(e.Raw, r.o)
		if err != nil {
			return fmt.Errorf("position %d: %w", r.pos, err)
		}
		r.format = f
	}
	if verified := r.format.Checksum; verified && sum > 0 && binary.LittleEndian.Uint32(tail[len(tail)-sum:]) != crc {
		return r.wrongSum(n)
	}
	e.Body = e.Raw[HeaderLen:max(HeaderLen, min(keep, n-sum))]
	if e.Type == TypeStartEncryption {
		return fmt.Errorf("%w (encrypt_binlog): read it through its server, which decrypts it: --dsn", ErrEncrypted)
	}
	r.pos += int64(n)
	e.End = r.pos
	return nil
}

// keep is how many bytes of an event are wanted.
func (r *Reader) keep(h Header) int {
	switch {
	case h.Type == TypeFormatDescription:
	case r.o.Skip != nil && r.o.Skip(h):
		return HeaderLen
	case r.o.MaxBody > 0:
		return min(int(h.Length), HeaderLen+r.o.MaxBody)
	}
	return int(h.Length)
}

// pass skips what is not kept of an event of n bytes, and returns its checksum and its last bytes.
func (r *Reader) pass(crc uint32, from, n, sum int) (uint32, []byte, error) {
	var last [ChecksumLen]byte
	if from > n-sum { // part of the checksum is in what was kept
		copy(last[:], r.buf[n-sum:from])
	}
	for at := from; at < n; {
		if _, err := r.in.Peek(1); err != nil {
			return 0, nil, r.torn(err)
		}
		b, _ := r.in.Peek(min(r.in.Buffered(), n-at))
		if body := min(len(b), max(0, n-sum-at)); sum > 0 && body > 0 {
			crc = crc32.Update(crc, crc32.IEEETable, b[:body])
		}
		for i := max(0, n-sum-at); i < len(b); i++ {
			last[at+i-(n-sum)] = b[i]
		}
		r.in.Discard(len(b))
		at += len(b)
	}
	return crc, last[:], nil
}

// crcOf is the checksum of an event's beginning. The flag that marks a file as being written does not count.
func crcOf(b []byte) uint32 {
	if len(b) < HeaderLen || Type(b[4]) != TypeFormatDescription || b[17]&FlagInUse == 0 {
		return crc32.ChecksumIEEE(b)
	}
	head := [HeaderLen]byte(b)
	head[17] &^= FlagInUse
	return crc32.Update(crc32.ChecksumIEEE(head[:]), crc32.IEEETable, b[HeaderLen:])
}

func (r *Reader) torn(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: position %d", ErrTorn, r.pos)
	}
	return err
}

// fill reads n bytes of an event. One long event does not hold its memory for good, and a length is not believed: memory grows
// with what comes.
func (r *Reader) fill(in io.Reader, n int) error {
	if cap(r.buf) > 8<<20 && n < 1<<20 {
		r.buf = nil
	}
	for have := 0; have < n; {
		next := min(n, max(2*have, 16<<20))
		if cap(r.buf) < next {
			buf := make([]byte, next, max(next, 64<<10))
			copy(buf, r.buf[:have])
			r.buf = buf
		}
		r.buf = r.buf[:next]
		if _, err := io.ReadFull(in, r.buf[have:]); err != nil {
			return err
		}
		have = next
	}
	r.buf = r.buf[:n]
	return nil
}

// sumReader computes the checksum of what is read through it.
type sumReader struct {
	in  io.Reader
	crc uint32
}

func (s *sumReader) Read(b []byte) (int, error) {
	n, err := s.in.Read(b)
	s.crc = crc32.Update(s.crc, crc32.IEEETable, b[:n])
	return n, err
}

// openPayload begins to read a compressed transaction as a stream: it may be longer than memory.
func (r *Reader) openPayload(e Event) error {
	length := int64(e.Length)
	if r.format.Checksum {
		length -= ChecksumLen
	}
	r.sum = &sumReader{in: r.in}
	r.left = io.LimitReader(r.sum, length)
	r.payload = e
	if _, err := io.CopyN(io.Discard, r.left, HeaderLen); err != nil {
		return r.torn(err)
	}
	algorithm, err := payloadHead(r.left)
	if err != nil {
		return r.innerError(err)
	}
	in := r.left
	switch algorithm {
	case 0: // zstd
		if r.zstd == nil {
			r.zstd, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
		} else {
			err = r.zstd.Reset(in)
		}
		if err != nil {
			return r.innerError(err)
		}
		in = r.zstd
	case 255: // stored as it is
	default:
		return fmt.Errorf("%w at position %d: %w: unknown method %d", ErrDamaged, r.pos, ErrPayload, algorithm)
	}
	r.inner = bufio.NewReaderSize(in, 64<<10)
	return nil
}

// payloadHead reads the fields in front of the compressed bytes: type, length, value, all packed; type 0 ends them.
func payloadHead(in io.Reader) (algorithm uint64, err error) {
	algorithm = 255
	for {
		typ, err := packedFrom(in)
		if err != nil || typ == 0 {
			return algorithm, err
		}
		n, err := packedFrom(in)
		if err != nil {
			return 0, err
		}
		if n > 1024 {
			return 0, ErrDamaged
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(in, b); err != nil {
			return 0, err
		}
		if c := (cursor{b: b}); typ == 2 {
			algorithm = c.packed()
		}
	}
}

func packedFrom(in io.Reader) (uint64, error) {
	var b [9]byte
	if _, err := io.ReadFull(in, b[:1]); err != nil {
		return 0, err
	}
	n := 1 + map[byte]int{0xfc: 2, 0xfd: 3, 0xfe: 8}[b[0]]
	if _, err := io.ReadFull(in, b[1:n]); err != nil {
		return 0, err
	}
	c := cursor{b: b[:n]}
	return c.packed(), nil
}

// nextInner reads an event of a compressed transaction; io.EOF when that ends.
func (r *Reader) nextInner() error {
	head, err := r.inner.Peek(HeaderLen)
	if len(head) == 0 && errors.Is(err, io.EOF) {
		return r.closePayload()
	}
	if err != nil {
		return r.innerError(err)
	}
	e := &r.e
	*e = Event{Header: ParseHeader(head), Pos: r.pos, End: r.pos + int64(r.payload.Length), Inner: true}
	if e.Length < HeaderLen || e.Length > maxLength {
		return fmt.Errorf("%w at position %d: a compressed event of %d bytes", ErrDamaged, r.pos, e.Length)
	}
	keep := r.keep(e.Header)
	if err := r.fill(r.inner, keep); err != nil {
		return r.innerError(err)
	}
	if e.Whole = keep == int(e.Length); !e.Whole {
		if _, err := r.inner.Discard(int(e.Length) - keep); err != nil {
			return r.innerError(err)
		}
	}
	e.Raw, e.Body = r.buf, r.buf[HeaderLen:]
	if _, err := r.inner.Peek(1); errors.Is(err, io.EOF) { // the last one: the checksum is verified before it is given out
		if err := r.closePayload(); err != io.EOF {
			return err
		}
	}
	return nil
}

func (r *Reader) innerError(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		// Either the file ends or the compressed bytes do: the rest of them shows which.
		if _, rest := io.Copy(io.Discard, r.left); rest == nil {
			if _, err := r.in.Peek(1); errors.Is(err, io.EOF) {
				return fmt.Errorf("%w: position %d", ErrTorn, r.pos)
			}
		}
	}
	if errors.Is(err, io.EOF) { // must not be taken for the end of the log
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w at position %d: %w: %w", ErrDamaged, r.pos, ErrPayload, err)
}

// closePayload ends a compressed transaction: its checksum is verified, and the file goes on after it.
func (r *Reader) closePayload() error {
	if _, err := io.Copy(io.Discard, r.left); err != nil {
		return err
	}
	crc := r.sum.crc
	r.inner, r.left, r.sum = nil, nil, nil
	if r.format.Checksum {
		var tail [ChecksumLen]byte
		if _, err := io.ReadFull(r.in, tail[:]); err != nil {
			return r.torn(err)
		}
		if binary.LittleEndian.Uint32(tail[:]) != crc {
			return r.wrongSum(int(r.payload.Length))
		}
	}
	r.pos += int64(r.payload.Length)
	return io.EOF
}

// ClearInUse clears, in a format description event, the flag that the file is being written. It is not part of the checksum.
func ClearInUse(raw []byte) {
	if Type(raw[4]) == TypeFormatDescription {
		raw[17] &^= FlagInUse
	}
}

// Readable is an event as a server sends it, with one exception: MariaDB decrypts its logs for replicas, but still sends the event
// that says that what follows is encrypted. It is replaced by one of the same length that every reader skips.
func Readable(raw []byte, checksum bool) []byte {
	h := ParseHeader(raw)
	if h.Type != TypeStartEncryption {
		return raw
	}
	return Ignorable(h, h.Length, h.EndPos, checksum)
}

// Ignorable is an event that every server skips, of a given length with its checksum.
func Ignorable(like Header, length, endPos uint32, checksum bool) []byte {
	b := make([]byte, length)
	binary.LittleEndian.PutUint32(b, like.Seconds)
	b[4] = byte(TypeIgnorable)
	binary.LittleEndian.PutUint32(b[5:], like.ServerID)
	binary.LittleEndian.PutUint32(b[9:], length)
	binary.LittleEndian.PutUint32(b[13:], endPos)
	binary.LittleEndian.PutUint16(b[17:], 0x80) // LOG_EVENT_IGNORABLE_F
	if checksum {
		binary.LittleEndian.PutUint32(b[length-ChecksumLen:], crc32.ChecksumIEEE(b[:length-ChecksumLen]))
	}
	return b
}
