package mysql

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	driver "github.com/go-sql-driver/mysql"
)

// Stream is a session whose result rows are handed on as the bytes in which the server sent them. Its memory does not grow
// with a result, nor with a row. It belongs to one goroutine.
type Stream struct {
	target        Target
	raw           net.Conn // the socket itself: closing it never waits
	conn          net.Conn // raw, or TLS over it
	in            packets
	out           []byte // reused for what is sent
	compressed    bool
	deprecateEOF  bool
	cacheMetadata bool
	attributes    bool
	bulk          bool
	patience      time.Duration
	id            uint64 // CONNECTION_ID()
	broken        error  // why the session is of no more use
	columns       []Column
	killers       sync.WaitGroup
	severally     bool // the server takes several statements at once
}

// StreamOptions are how a Stream behaves.
type StreamOptions struct {
	// Patience is how long the server may be silent in the middle of an answer; 0 is streamPatience.
	Patience time.Duration
	// Buffer is how many bytes are read at once; 0 is streamBuffer.
	Buffer int
}

// Defaults of StreamOptions. A statement may wait for a lock or sort before its first row.
const (
	streamPatience = 10 * time.Minute
	streamBuffer   = 256 << 10
)

// Column is a column of a result, as the server described it. Source: MySQL's "Protocol::ColumnDefinition41".
type Column struct {
	Name    string
	Charset uint16 // number of the collation; 63 is binary
	Type    byte
	Flags   uint16
}

// RowSink takes rows. Piece gets the next bytes of the row that is being read, and last says that the row ends with them: a
// row within the buffer comes in one piece, a larger one in several. The bytes are valid during the call only. An error ends
// the statement.
type RowSink interface {
	Piece(b []byte, last bool) error
}

// ConnectStream opens a session over whatever the target's DSN says: a socket, TCP, TLS, with compress=true compressed.
// Errors are of type *Error.
func (t Target) ConnectStream(ctx context.Context, o StreamOptions) (*Stream, error) {
	if t.cfg == nil {
		return nil, fmt.Errorf("%w: no address", ErrDSN)
	}
	if o.Patience <= 0 {
		o.Patience = streamPatience
	}
	if o.Buffer <= 0 {
		o.Buffer = streamBuffer
	}
	l, err := t.login(ctx)
	if err != nil {
		return nil, classify(t, err)
	}
	s := &Stream{target: t, raw: l.raw, conn: l.conn, patience: o.Patience, compressed: l.has(clientCompress),
		deprecateEOF: l.has(clientDeprecateEOF), cacheMetadata: l.cacheMetadata(), attributes: l.has(clientQueryAttributes), bulk: l.bulk()}
	var from io.Reader = s.conn
	if s.compressed {
		from = &inflater{from: s.conn}
	}
	s.in = packets{from: from, patience: s.wait, buf: make([]byte, o.Buffer)}
	if err := s.begin(ctx, l.params); err != nil {
		s.Close()
		return nil, classify(t, err)
	}
	return s, nil
}

// begin learns the session's number and makes it a quiet guest.
func (s *Stream) begin(ctx context.Context, params map[string]string) error {
	for name, value := range params {
		if err := s.Exec(ctx, "SET "+name+" = "+value); err != nil {
			return err
		}
	}
	var id uint64
	err := s.Query(ctx, "SELECT /* risso: which session is this? */ CONNECTION_ID()", func(row [][]byte) error {
		_, err := fmt.Sscan(string(row[0]), &id)
		return err
	})
	if err != nil {
		return fmt.Errorf("ask for the session's number: %w", err)
	}
	s.id = id // who kills the session asks for it
	if err := s.Exec(ctx, plainSession); err != nil {
		return fmt.Errorf("prepare the session: %w", err)
	}
	err = s.Exec(ctx, "SET SESSION /* risso: stay out of the slow log */ long_query_time = 31536000, min_examined_row_limit = 4294967295")
	if err != nil && ClassOf(err) != ClassPrivilege && ClassOf(err) != ClassMissing {
		return fmt.Errorf("prepare the session: %w", err)
	}
	return nil
}

// wait gives the server its patience for the next bytes.
func (s *Stream) wait() error { return s.raw.SetReadDeadline(time.Now().Add(s.patience)) }

// ID is the session's CONNECTION_ID().
func (s *Stream) ID() uint64 { return s.id }

// Close ends the session. A statement that still runs is killed on the server when its context ends, not here.
func (s *Stream) Close() error {
	if s.broken == nil {
		s.broken = net.ErrClosed
		s.raw.SetDeadline(time.Now().Add(time.Second))
		s.send([]byte{comQuit})
	}
	err := s.raw.Close()
	s.killers.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Broken says why the session is of no more use, or nil. The error of a statement alone does not break it.
func (s *Stream) Broken() error { return s.broken }

// Exec runs a statement and throws its rows away.
func (s *Stream) Exec(ctx context.Context, statement string) error {
	return s.run(ctx, func() error { return s.exchange(statement, nil, discard{}) })
}

// Select runs a statement and hands its rows on. A context that ends closes the connection and kills the statement on the
// server: the rows until then were handed on.
func (s *Stream) Select(ctx context.Context, statement string, to RowSink) error {
	return s.run(ctx, func() error { return s.exchange(statement, nil, to) })
}

// Load runs a LOAD DATA LOCAL, whatever file it names, with the bytes of data. Where reading them fails the server is told
// nothing more than that they end, so that the caller has to roll back.
func (s *Stream) Load(ctx context.Context, statement string, data io.Reader) error {
	return s.run(ctx, func() error { return s.exchange(statement, data, discard{}) })
}

// Columns are those of the last statement.
func (s *Stream) Columns() []Column { return s.columns }

// Query runs a statement of few and small rows and gives f each row's values, nil for NULL. They are valid during the call.
func (s *Stream) Query(ctx context.Context, statement string, f func(row [][]byte) error) error {
	return s.run(ctx, func() error { return s.exchange(statement, nil, &splitter{stream: s, f: f}) })
}

// QueryMaps runs a statement of few and small rows and gives them as maps from column name to text; NULL is left out.
func (s *Stream) QueryMaps(ctx context.Context, statement string) ([]map[string]string, error) {
	var out []map[string]string
	err := s.Query(ctx, statement, func(row [][]byte) error {
		m := make(map[string]string, len(row))
		for i, v := range row {
			if v != nil {
				m[s.columns[i].Name] = string(v)
			}
		}
		out = append(out, m)
		return nil
	})
	return out, err
}

// QuerySeveral runs statements of few and small rows with one packet, so that neither side waits for the other in between, and
// gives f the rows with the place of their statement. What follows a statement that the server refuses does not run.
func (s *Stream) QuerySeveral(ctx context.Context, statements []string, f func(i int, row [][]byte) error) error {
	if !s.severally {
		if err := s.run(ctx, func() error { return s.setOption(true) }); err != nil {
			return fmt.Errorf("ask for several statements at once: %w", err)
		}
		s.severally = true
	}
	return s.run(ctx, func() error {
		for i := range statements {
			var err error
			to := &splitter{stream: s, f: func(row [][]byte) error { return f(i, row) }}
			if i == 0 {
				err = s.exchange(strings.Join(statements, ";\n"), nil, to)
			} else {
				err = s.answer(nil, to)
			}
			if err != nil {
				return err
			}
			if s.in.more != (i < len(statements)-1) {
				return fmt.Errorf("%w: the server did not answer %d statements", driver.ErrMalformPkt, len(statements))
			}
		}
		return nil
	})
}

// execSeveral runs what is in a text and throws rows away: statements separated by semicolons, or, not several, one.
func (s *Stream) execSeveral(ctx context.Context, text string, several bool) error {
	if s.severally != several {
		if err := s.run(ctx, func() error { return s.setOption(several) }); err != nil {
			return fmt.Errorf("say how many statements come at once: %w", err)
		}
		s.severally = several
	}
	return s.run(ctx, func() error {
		err := s.exchange(text, nil, discard{})
		for err == nil && s.in.more {
			err = s.answer(nil, discard{})
		}
		return err
	})
}

// setOption lets statements stand in one packet, or no longer. Source: MySQL's "COM_SET_OPTION".
func (s *Stream) setOption(several bool) error {
	option := byte(1) // MYSQL_OPTION_MULTI_STATEMENTS_OFF
	if several {
		option = 0 // MYSQL_OPTION_MULTI_STATEMENTS_ON
	}
	if err := s.send([]byte{comSetOption, option, 0}); err != nil {
		return err
	}
	p, err := s.in.small()
	if err == nil && p[0] == headerError {
		err = errorPacket(p)
	}
	return err
}

// run sends a command and reads its answer to the end.
func (s *Stream) run(ctx context.Context, exchange func() error) error {
	if s.broken != nil {
		return s.broken
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	s.killers.Add(1)
	stop := context.AfterFunc(ctx, func() {
		defer s.killers.Done()
		s.raw.Close()
		s.kill()
	})
	err := exchange()
	if stop() {
		s.killers.Done()
	} else {
		s.broken = context.Cause(ctx)
		return s.broken
	}
	var refused *driver.MySQLError
	var own *sinkError
	switch {
	case err == nil, errors.As(err, &refused):
		return err // the session goes on
	case errors.As(err, &own):
		s.broken = own.err // rows of it are on their way still
		s.raw.Close()
		return own.err
	}
	s.broken = classify(s.target, err)
	s.raw.Close()
	return s.broken
}

// killTime is how long it may take to kill an abandoned statement.
const killTime = 5 * time.Second

// kill ends the session on the server, which would notice only when it sends the next row. Its errors are of no use to
// anybody: the session may have ended meanwhile.
func (s *Stream) kill() {
	if s.id == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), killTime)
	defer cancel()
	c, err := Connect(ctx, s.target, nil)
	if err != nil {
		return
	}
	defer c.Close()
	_ = c.quietQuery(ctx, fmt.Sprintf("KILL /* risso: own abandoned statement */ %d", s.id), ignoreRow)
}

// sinkError is the trouble of who takes the rows.
type sinkError struct{ err error }

func (e *sinkError) Error() string { return e.err.Error() }
func (e *sinkError) Unwrap() error { return e.err }

// Packet headers and commands. Source: MySQL's "Client/Server Protocol".
const (
	comQuit      = 0x01
	comQuery     = 0x03
	comSetOption = 0x1b

	headerOK    = 0x00
	headerLocal = 0xfb
	headerEOF   = 0xfe
	headerError = 0xff

	maxPacket = 1<<24 - 1 // a packet of this size goes on in the next
)

func (s *Stream) exchange(statement string, data io.Reader, to RowSink) error {
	head := []byte{comQuery}
	if s.attributes {
		head = append(head, 0, 1) // no attributes, one set of them
	}
	if err := s.send(append(head, statement...)); err != nil {
		return err
	}
	return s.answer(data, to)
}

// answer reads what the server says to one statement.
func (s *Stream) answer(data io.Reader, to RowSink) error {
	s.columns, s.in.more = s.columns[:0], false
	first, err := s.in.small()
	if err != nil {
		return err
	}
	switch first[0] {
	case headerOK:
		s.in.more = moreResults(first, true)
		return nil
	case headerError:
		return errorPacket(first)
	case headerLocal:
		return s.sendFile(data)
	}
	count, n := lenenc(first)
	if n == 0 {
		return driver.ErrMalformPkt
	}
	if !s.cacheMetadata || n >= len(first) || first[n] != 0 {
		if err := s.readColumns(int(count)); err != nil {
			return err
		}
	}
	return s.in.rows(to, s.deprecateEOF)
}

// readColumns reads the definitions of a result's columns.
func (s *Stream) readColumns(count int) error {
	for range count {
		p, err := s.in.small()
		if err != nil {
			return err
		}
		c, err := columnOf(p)
		if err != nil {
			return err
		}
		s.columns = append(s.columns, c)
	}
	if s.deprecateEOF {
		return nil
	}
	p, err := s.in.small()
	if err == nil && p[0] != headerEOF {
		err = driver.ErrMalformPkt
	}
	return err
}

func columnOf(p []byte) (Column, error) {
	var c Column
	for i := range 6 { // catalog, schema, table, original table, name, original name
		v, n, ok := value(p)
		if !ok {
			return c, driver.ErrMalformPkt
		}
		if i == 4 {
			c.Name = string(v)
		}
		p = p[n:]
	}
	// MariaDB's extended metadata is not asked for: the fixed part of 12 bytes follows.
	if len(p) < 1+10 {
		return c, driver.ErrMalformPkt
	}
	p = p[1:]
	c.Charset, c.Type, c.Flags = uint16(p[0])|uint16(p[1])<<8, p[6], uint16(p[7])|uint16(p[8])<<8
	return c, nil
}

// sendFile answers the server's wish for a local file.
func (s *Stream) sendFile(data io.Reader) error {
	const size = 64 << 10
	var readErr error
	if data == nil {
		readErr = errors.New("the statement asks for a file of this machine: refused")
	} else {
		buf := make([]byte, size)
		for readErr == nil {
			n, err := io.ReadFull(data, buf)
			if err == io.ErrUnexpectedEOF {
				err = io.EOF
			}
			readErr = err
			if n > 0 {
				if err := s.sendPart(nil, buf[:n]); err != nil {
					return err
				}
			}
		}
	}
	if err := s.sendPart(nil, nil); err != nil {
		return err
	}
	p, err := s.in.small()
	if err == nil && p[0] == headerError {
		err = errorPacket(p)
	}
	if readErr != nil && readErr != io.EOF {
		return &sinkError{fmt.Errorf("read what is to be loaded: %w", readErr)}
	}
	return err
}

// send begins a command.
func (s *Stream) send(payload []byte) error { return s.send2(nil, payload) }

// send2 begins a command whose payload lies in two pieces; the first is small.
func (s *Stream) send2(head, payload []byte) error {
	s.in.sequence = 0
	if f, ok := s.in.from.(*inflater); ok {
		f.sequence = 0
	}
	for {
		n := min(len(payload), maxPacket-len(head))
		if err := s.sendPart(head, payload[:n]); err != nil {
			return err
		}
		full := len(head)+n == maxPacket
		if head, payload = nil, payload[n:]; !full {
			return nil
		}
	}
}

// sendPart sends one packet with the next sequence number.
func (s *Stream) sendPart(head, p []byte) error {
	size := len(head) + len(p)
	s.out = slices.Grow(s.out[:0], 4+size)
	s.out = append(s.out, byte(size), byte(size>>8), byte(size>>16), s.in.sequence)
	s.out = append(append(s.out, head...), p...)
	s.in.sequence++
	if err := s.raw.SetWriteDeadline(time.Now().Add(s.patience)); err != nil {
		return err
	}
	if f, ok := s.in.from.(*inflater); ok {
		return f.write(s.conn, s.out)
	}
	_, err := s.conn.Write(s.out)
	return err
}

// splitter gives rows as values.
type splitter struct {
	stream *Stream
	f      func([][]byte) error
	buf    []byte
	row    [][]byte
}

func (p *splitter) Piece(b []byte, last bool) error {
	if !last || len(p.buf) > 0 {
		p.buf = append(p.buf, b...)
		b = p.buf
	}
	if !last {
		return nil
	}
	var err error
	if p.row, err = SplitRow(p.row[:0], b); err != nil {
		return err
	}
	if len(p.row) != len(p.stream.columns) {
		return driver.ErrMalformPkt
	}
	p.buf = p.buf[:0]
	return p.f(p.row)
}

// SplitRow appends the values of a row to a slice, nil for NULL. They lie in the row's bytes.
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

type discard struct{}

func (discard) Piece([]byte, bool) error { return nil }

// Quote is a name as SQL takes it.
func Quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// sendBuffer is how much a server shall collect before it sends. Rows of sysbench cost the client 0.10 instead of 0.27
// microseconds of processor time each (medians, MariaDB 10.11, Unix socket) and the server 0.45 instead of 0.62: it sends, and
// both change places on a processor, an eighth as often. Twice as much brings no more.
const sendBuffer = 128 << 10

// serverBuffer says how many spaces a statement needs to make the server's buffer of this connection sendBuffer large. It
// begins with net_buffer_length, usually 16 KiB, which no session may set, grows to what it receives, and stays so. Source:
// MySQL manual, "net_buffer_length". The statement itself may not be larger than max_allowed_packet.
func (s *Stream) serverBuffer(ctx context.Context) (spaces int, err error) {
	err = s.Query(ctx, "SELECT /* risso: how long may a statement be? */ @@max_allowed_packet", func(row [][]byte) error {
		most, err := strconv.Atoi(string(row[0]))
		spaces = max(0, min(sendBuffer, most-4096))
		return err
	})
	return spaces, err
}

// ForRows makes the session give rows as a backup, a checksum and a restore expect them: text in the column's own character
// set, moments in UTC, no rules of this server's sql_mode, no limit of time, and definitions in full.
func (s *Stream) ForRows(ctx context.Context, server Server) error {
	sets := []string{
		"NAMES utf8mb4", "character_set_results = NULL", "time_zone = '+00:00'", "sql_mode = ''", "sql_quote_show_create = 1",
		"net_write_timeout = 3600", "net_read_timeout = 3600", "wait_timeout = 28800",
	}
	room, err := s.serverBuffer(ctx)
	if err != nil {
		return fmt.Errorf("prepare the session: %w", err)
	}
	if err := s.Exec(ctx, "SET /* risso: rows as they are */ "+strings.Join(sets, ", ")+strings.Repeat(" ", room)); err != nil {
		return fmt.Errorf("prepare the session: %w", err)
	}
	optional := []string{"max_execution_time = 0", "show_create_table_verbosity = 0", "information_schema_stats_expiry = 0", "print_identified_with_as_hex = 1", "show_gipk_in_create_table_and_information_schema = 1"}
	if server.MariaDB() {
		optional = []string{"max_statement_time = 0"}
	}
	for _, set := range optional {
		err := s.Exec(ctx, "SET SESSION /* risso: rows as they are */ "+set)
		if err != nil && ClassOf(err) != ClassMissing && ClassOf(err) != ClassPrivilege {
			return fmt.Errorf("prepare the session: %w", err)
		}
	}
	return nil
}
