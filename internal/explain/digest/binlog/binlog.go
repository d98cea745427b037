// Package binlog reads binary logs of MySQL and MariaDB as events of a digest: which statements, or which changes of
// which tables, made the log, how often, how many rows and how many bytes.
//
// A statement that was logged as rows is known by its text where the server logs that (binlog_rows_query_log_events of
// MySQL, binlog_annotate_row_events of MariaDB, which is on by default); else it is "INSERT INTO db.table" and the like.
// Values of rows are passed over, never kept.
//
// What the log says of time: a statement's event tells when it began and how many whole seconds it took until it was
// written (exec_time of the query event): that is Query_time. Rows tell no duration. MySQL 8 writes when a transaction
// was committed first and when on this server: Commit_delay_time is the difference, on a replica the lag at that moment.
//
// Format: https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_replication_binlog_event.html,
// https://mariadb.com/kb/en/replication-protocol/.
package binlog

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/rissodb/risso/internal/explain/digest"
)

// Event types.
const (
	evQuery             = 2
	evFormatDescription = 15
	evTableMap          = 19
	evWriteRowsV1       = 23
	evUpdateRowsV1      = 24
	evDeleteRowsV1      = 25
	evRowsQuery         = 29
	evWriteRows         = 30
	evUpdateRows        = 31
	evDeleteRows        = 32
	evGTID              = 33
	evAnonymousGTID     = 34
	evPartialUpdateRows = 39
	evPayload           = 40
	evGTIDTagged        = 42
	// MariaDB's.
	evAnnotateRows    = 160
	evMariaGTID       = 162
	evStartEncryption = 164
	evQueryZip        = 165
	evWriteRowsZipV1  = 166
	evUpdateRowsZipV1 = 167
	evDeleteRowsZipV1 = 168
	evWriteRowsZip    = 169
	evUpdateRowsZip   = 170
	evDeleteRowsZip   = 171
)

const (
	headerLen = 19
	// maxText is how much is kept of a statement.
	maxText = 8 << 20
	// maxBody is how much of an event is looked at. Longer statements are cut; the rows of longer events are not counted.
	maxBody = 16 << 20
	// maxTables bounds the table maps of one statement that are remembered.
	maxTables = 4096
)

var magic = []byte{0xfe, 'b', 'i', 'n'}

// Reasons for what is left out.
const (
	skipChecksum  = "events with a wrong checksum"
	skipDamaged   = "bytes behind a damaged event"
	skipTruncated = "event cut off at the end of the file"
	skipRows      = "row events whose rows could not be counted"
	skipPayload   = "compressed transactions that could not be read"
	skipBody      = "events that could not be understood"
)

// Reader is a digest.Stream over one binary log.
type Reader struct {
	in      io.ReadCloser
	levels  []level // the file, and a compressed transaction within it
	server  string
	idLen   int // bytes of a table's id
	bytes   int64
	events  int64
	skipped map[string]int64
	body    []byte
	zstd    *zstd.Decoder

	tables  map[uint64]*table
	pending []*statement // rows of the statement that is being read, one for each table and kind
	text    []byte       // its text, where the log tells
	textCut int          // bytes left out at its end
	missing int          // bytes of the event in hand that are not in body
	textual bool         // the log told it
	began   int64        // unix microseconds
	size    int64        // bytes of its events that belong to no rows
	thread  int64
	delay   float64      // commit here minus first commit, seconds; -1: not told
	queue   []*statement // ready to be given out
	attrs   []digest.Attr
}

// statement is what becomes an event.
type statement struct {
	text    []byte
	db      string
	cut     int    // bytes left out at the end of text
	table   string // of rows without a text
	kind    rowKind
	began   int64
	seconds float64 // exec_time
	rows    int64
	counted bool // rows is known
	bytes   int64
	thread  int64
	delay   float64
}

// level is where events come from.
type level struct {
	r        *bufio.Reader
	checksum bool
	rest     io.Reader // of a compressed transaction: what is left of its event
}

// New begins to read a binary log, which Close closes. An encrypted log, or none, is an error.
func New(in io.ReadCloser) (*Reader, error) {
	r := &Reader{in: in, skipped: map[string]int64{}, tables: map[uint64]*table{}, idLen: 6, delay: -1}
	b := bufio.NewReaderSize(in, 256<<10)
	head, err := b.Peek(4)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	case bytes.Equal(head, []byte{0xfd, 'b', 'i', 'n'}):
		return nil, errors.New("the binary log is encrypted: decrypt it with the server's own tools, mysqlbinlog --read-from-remote-server --raw")
	case !bytes.Equal(head, magic):
		return nil, errors.New("not a binary log: it does not begin with fe 62 69 6e")
	}
	b.Discard(4)
	r.bytes = 4
	r.levels = []level{{r: b}}
	return r, nil
}

// Next gives the next statement.
func (r *Reader) Next(e *digest.Event) error {
	for len(r.queue) == 0 {
		if err := r.read(); err != nil {
			return err
		}
	}
	s := r.queue[0]
	r.queue = r.queue[1:]
	r.events++
	if len(s.text) == 0 {
		s.text = []byte([...]string{"INSERT INTO ", "UPDATE ", "DELETE FROM "}[s.kind] + quoted(s.db) + "." + quoted(s.table))
	}
	r.attrs = append(r.attrs[:0], digest.Attr{Name: "Log_bytes", Num: float64(s.bytes)})
	if s.counted {
		r.attrs = append(r.attrs, digest.Attr{Name: "Rows", Num: float64(s.rows)})
	}
	if s.delay >= 0 {
		r.attrs = append(r.attrs, digest.Attr{Name: "Commit_delay_time", Num: s.delay})
	}
	*e = digest.Event{Time: s.began, Query: s.text, Cut: s.cut, DB: []byte(s.db), Thread: s.thread, QueryTime: s.seconds, Attrs: r.attrs}
	return nil
}

func quoted(s string) string { return "`" + strings.ReplaceAll(s, "`", "``") + "`" }

// Info tells what was read.
func (r *Reader) Info() digest.SourceInfo {
	return digest.SourceInfo{Format: digest.FormatBinlog, Server: r.server, Bytes: r.bytes, Events: r.events}
}

// Skipped tells what was left out.
func (r *Reader) Skipped() map[string]int64 { return r.skipped }

// Close closes the log.
func (r *Reader) Close() error {
	if r.zstd != nil {
		r.zstd.Close()
	}
	return r.in.Close()
}

// header is what begins every event.
type header struct {
	seconds uint32
	typ     byte
	length  uint32
	flags   uint16
}

// read takes one event from the innermost level.
func (r *Reader) read() error {
	l := &r.levels[len(r.levels)-1]
	head, err := l.r.Peek(headerLen)
	if err != nil {
		return r.endLevel(len(head), err)
	}
	h := header{seconds: binary.LittleEndian.Uint32(head), typ: head[4], length: binary.LittleEndian.Uint32(head[9:]), flags: binary.LittleEndian.Uint16(head[17:])}
	if h.length < headerLen || h.length > 1<<31 {
		return r.damaged(l)
	}
	outer := len(r.levels) == 1
	if outer {
		r.bytes += int64(h.length)
	}
	if h.typ == evPayload && outer {
		l.r.Discard(headerLen)
		return r.payload(l, int64(h.length)-headerLen)
	}
	n := min(int(h.length), maxBody)
	if cap(r.body) > maxText && n < maxText { // one long event shall not hold memory for good
		r.body = nil
	}
	if cap(r.body) < n {
		r.body = make([]byte, n)
	}
	r.body = r.body[:n]
	if _, err := io.ReadFull(l.r, r.body); err != nil {
		return r.cutOff(err)
	}
	if n < int(h.length) {
		if _, err := io.CopyN(io.Discard, l.r, int64(h.length)-int64(n)); err != nil {
			return r.cutOff(err)
		}
	}
	whole := n == int(h.length)
	if r.missing = int(h.length) - n; l.checksum && !whole {
		r.missing = max(0, r.missing-4)
	}
	body := r.body[headerLen:]
	if h.typ == evFormatDescription {
		return r.format(body)
	}
	if l.checksum && whole {
		if len(body) < 4 {
			return r.damaged(l)
		}
		sum := binary.LittleEndian.Uint32(r.body[n-4:])
		if crc32.ChecksumIEEE(r.body[:n-4]) != sum {
			r.skipped[skipChecksum]++
			return nil
		}
		body = body[:len(body)-4]
	}
	return r.event(h, body, whole)
}

// endLevel is the end of the file or of a compressed transaction.
func (r *Reader) endLevel(rest int, err error) error {
	if len(r.levels) > 1 {
		if !errors.Is(err, io.EOF) || rest > 0 {
			r.skipped[skipPayload]++
		}
		left := r.levels[1].rest
		r.levels = r.levels[:1]
		if _, err := io.Copy(io.Discard, left); err != nil {
			return err
		}
		return nil
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	if rest > 0 {
		r.skipped[skipTruncated]++
	}
	r.flush()
	if len(r.queue) > 0 {
		return nil
	}
	return io.EOF
}

// cutOff is the end in the middle of an event.
func (r *Reader) cutOff(err error) error {
	if len(r.levels) > 1 {
		return r.endLevel(1, err)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return r.endLevel(1, io.EOF)
	}
	return err
}

// damaged gives up a level: behind a length that cannot be, nothing tells where the next event begins.
func (r *Reader) damaged(l *level) error {
	n, err := io.Copy(io.Discard, l.r)
	if err != nil && len(r.levels) == 1 {
		return err
	}
	r.skipped[skipDamaged] += n
	return r.endLevel(0, io.EOF)
}

// format reads the format description: the server's version, the length of ids, and whether events end in a checksum.
func (r *Reader) format(body []byte) error {
	c := cursor{b: body}
	c.take(2)
	version := string(bytes.TrimRight(c.take(50), "\x00"))
	c.take(5)
	if c.bad || len(c.b) < evTableMap {
		return errors.New("not a binary log: its format description is too short")
	}
	if r.server == "" {
		r.server = version
	}
	r.idLen = 6
	if c.b[evTableMap-1] == 6 {
		r.idLen = 4
	}
	// Servers before 5.6.1 have no checksum; their list of lengths ends with the event.
	r.levels[0].checksum = hasChecksum(version) && len(c.b) >= 5 && c.b[len(c.b)-5] == 1
	r.tables = map[uint64]*table{}
	return nil
}

// hasChecksum says whether a server of this version writes the algorithm of its checksums (MySQL 5.6.1, MariaDB 5.3).
func hasChecksum(version string) bool {
	var a, b, c int
	fmt.Sscanf(version, "%d.%d.%d", &a, &b, &c)
	n := a*10000 + b*100 + c
	return n >= 50601 || strings.Contains(version, "MariaDB") && n >= 50300
}

// payload opens a compressed transaction (MySQL 8.0.20, binlog_transaction_compression): its events are read next.
func (r *Reader) payload(l *level, length int64) error {
	r.flush()
	if l.checksum {
		length -= 4 // not verified: the transaction is read as it streams by
	}
	if length < 1 {
		return r.damaged(l)
	}
	in := io.LimitReader(l.r, length)
	rest := in
	if l.checksum {
		rest = io.MultiReader(in, io.LimitReader(l.r, 4))
	}
	algorithm, err := payloadHead(in)
	if err == nil {
		switch algorithm {
		case 0:
			in, err = r.unzstd(in)
		case 255:
		default:
			err = fmt.Errorf("compression %d", algorithm)
		}
	}
	if err != nil {
		r.skipped[skipPayload]++
		_, err := io.Copy(io.Discard, rest)
		return err
	}
	r.levels = append(r.levels, level{r: bufio.NewReaderSize(in, 64<<10), rest: rest})
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
		if err != nil || n > 1024 {
			return 0, errors.Join(err, errShort)
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

func (r *Reader) unzstd(in io.Reader) (io.Reader, error) {
	if r.zstd == nil {
		d, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20))
		r.zstd = d
		return d, err
	}
	return r.zstd, r.zstd.Reset(in)
}
