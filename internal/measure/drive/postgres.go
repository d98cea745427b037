package drive

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rissodb/risso/internal/mysql/wire"
)

// The time-outs of a connection to PostgreSQL, where its address sets none.
const (
	postgresConnect  = 3 * time.Second
	postgresPatience = 10 * time.Second
)

// Types whose values travel as numbers. Source: pg_type.
const (
	oidInt8 = 20
	oidInt2 = 21
	oidInt4 = 23
)

// ForPostgres is a PostgreSQL server as a target: postgres://user:password@host:port/database. Errors never repeat the
// address, because it may contain a password.
func ForPostgres(address string) (Target, error) {
	c, err := pgconn.ParseConfig(address)
	if err != nil {
		return nil, errors.New("not a usable address of PostgreSQL: write it as postgres://user:password@host:5432/database or postgres:///database?host=/path/to/socket-folder")
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = postgresConnect
	}
	c.Fallbacks = slices.DeleteFunc(c.Fallbacks, func(f *pgconn.FallbackConfig) bool { return f.Host != c.Host || f.Port != c.Port })
	if len(c.Fallbacks) > 0 && !strings.Contains(address, "sslmode=") && os.Getenv("PGSSLMODE") == "" && c.TLSConfig != nil {
		// The library would try TLS first. A benchmark tries the fast way first, and TLS where the server insists.
		encrypted := *c.Fallbacks[0]
		encrypted.TLSConfig, c.TLSConfig = c.TLSConfig, nil
		c.Fallbacks = []*pgconn.FallbackConfig{&encrypted}
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "risso"
	}
	return postgresTarget{c}, nil
}

// SQLSTATEs of PostgreSQL that Risso acts on. Source: PostgreSQL's manual, "PostgreSQL Error Codes".
const (
	StateNoDatabase         = "3D000" // invalid_catalog_name
	StateDenied             = "42501" // insufficient_privilege
	StateNoTable            = "42P01" // undefined_table
	StateTooManyConnections = "53300" // too_many_connections
)

type postgresTarget struct{ cfg *pgconn.Config }

func (t postgresTarget) Dialect() Dialect { return Postgres }

func (t postgresTarget) String() string {
	return fmt.Sprintf("%s@%s/%s", t.cfg.User, net.JoinHostPort(t.cfg.Host, strconv.Itoa(int(t.cfg.Port))), t.cfg.Database)
}

func (t postgresTarget) Open(ctx context.Context, stop *Stop) (Session, error) {
	conn, err := pgconn.ConnectConfig(ctx, t.cfg)
	if err != nil {
		return nil, t.connectError(err)
	}
	h, err := conn.Hijack()
	if err != nil {
		return nil, t.connectError(err)
	}
	if _, plain := h.Conn.(interface{ File() (*os.File, error) }); !plain {
		return newPostgresSession(&netLink{h.Conn, stop, postgresPatience}, h.PID), nil
	}
	defer h.Conn.Close()
	f, err := h.Conn.(interface{ File() (*os.File, error) }).File()
	if err != nil {
		return nil, t.connectError(err)
	}
	_, isUnix := h.Conn.(*net.UnixConn)
	s, err := newSocket(f, isUnix, stop, postgresPatience)
	if err != nil {
		return nil, err
	}
	return newPostgresSession(s, h.PID), nil
}

func newPostgresSession(w link, process uint32) *postgresSession {
	return &postgresSession{link: w, process: process, in: make([]byte, 32<<10), out: make([]byte, 0, 1<<10)}
}

// connectError reports why without the address' password, which the library's own error leaves out, too.
func (t postgresTarget) connectError(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return fmt.Errorf("connect to %s: %w", t, &ServerError{State: pg.Code, Message: pg.Message})
	}
	return fmt.Errorf("connect to %s: %w", t, err)
}

// column is the type of a column.
type column struct{ oid uint32 }

func unreadable(what string) error { return fmt.Errorf("%w: %s cannot be read", ErrLost, what) }

// grow makes a full buffer larger, up to what is wanted: step by step, because the length may come from a message that lies.
func grow(b []byte, wanted int) []byte {
	return slices.Concat(b, make([]byte, max(1, min(wanted-len(b), max(len(b), 4096)))))
}

// postgresSession speaks protocol 3.0. Source: "Frontend/Backend Protocol" of PostgreSQL's manual.
type postgresSession struct {
	link
	process uint32 // of the server's, for the session
	counts  [3]int64
	out     []byte
	in      []byte
	at      int
	end     int
	next    int  // number of the next prepared statement
	simple  Stmt // of what is sent as text: it keeps nothing
	values  []Value
}

func (s *postgresSession) Dialect() Dialect  { return Postgres }
func (s *postgresSession) id() int64         { return int64(s.process) }
func (s *postgresSession) Counts() *[3]int64 { return &s.counts }

func (s *postgresSession) Close() error {
	_, _ = s.Write([]byte{'X', 0, 0, 0, 4})
	return s.close()
}

// begin starts a message in the buffer and returns where its length belongs.
func (s *postgresSession) begin(kind byte) int {
	s.out = append(s.out, kind, 0, 0, 0, 0)
	return len(s.out) - 4
}

func (s *postgresSession) finish(at int) {
	binary.BigEndian.PutUint32(s.out[at:], uint32(len(s.out)-at))
}

func (s *postgresSession) append(v string) { s.out = append(append(s.out, v...), 0) }

// message returns the next message; it is valid until the next call.
func (s *postgresSession) message() (kind byte, p []byte, err error) {
	if err := s.need(5); err != nil {
		return 0, nil, err
	}
	kind = s.in[s.at]
	n := int(binary.BigEndian.Uint32(s.in[s.at+1:]))
	if n < 4 || n > 1<<28 {
		return 0, nil, unreadable("length of a message")
	}
	if err := s.need(1 + n); err != nil {
		return 0, nil, err
	}
	p = s.in[s.at+5 : s.at+1+n]
	s.at += 1 + n
	return kind, p, nil
}

// need waits until n bytes are in the buffer from s.at on.
func (s *postgresSession) need(n int) error {
	if s.end-s.at >= n {
		return nil
	}
	if s.at > 0 {
		s.end = copy(s.in, s.in[s.at:s.end])
		s.at = 0
	}
	for s.end < n {
		if s.end == len(s.in) {
			s.in = grow(s.in, n)
		}
		m, err := s.Read(s.in[s.end:])
		if err != nil {
			return err
		}
		s.end += m
	}
	return nil
}

func (s *postgresSession) Prepare(kind Kind, sql string) (*Stmt, error) {
	s.next++
	st := &Stmt{SQL: sql, Kind: kind, id: uint32(s.next)}
	name := "r" + strconv.Itoa(s.next)
	s.out = s.out[:0]
	at := s.begin('P')
	s.append(name)
	s.append(sql)
	s.out = append(s.out, 0, 0)
	s.finish(at)
	at = s.begin('D')
	s.out = append(s.out, 'S')
	s.append(name)
	s.finish(at)
	s.finish(s.begin('S'))
	if _, err := s.Write(s.out); err != nil {
		return nil, err
	}
	err := s.until(func(kind byte, p []byte) error {
		switch kind {
		case 't': // types of the parameters
			if len(p) < 2 {
				return unreadable("parameters")
			}
			for p = p[2:]; len(p) >= 4; p = p[4:] {
				st.oids = append(st.oids, binary.BigEndian.Uint32(p))
			}
			st.params = len(st.oids)
		case 'T':
			var ok bool
			st.cols, ok = rowDescription(p)
			if !ok {
				return unreadable("columns")
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	// The start of the message Bind: unnamed portal, statement.
	st.packet = append(append([]byte{0}, name...), 0)
	return st, nil
}

func rowDescription(p []byte) (cols []column, ok bool) {
	if len(p) < 2 {
		return nil, false
	}
	n := int(binary.BigEndian.Uint16(p))
	p = p[2:]
	for range n {
		i := slices.Index(p, 0)
		if i < 0 || len(p) < i+19 {
			return nil, false
		}
		cols = append(cols, column{oid: binary.BigEndian.Uint32(p[i+7:])})
		p = p[i+19:]
	}
	return cols, true
}

// until hands all messages up to ReadyForQuery to f; it returns the server's error, if there was one, else f's.
func (s *postgresSession) until(f func(kind byte, p []byte) error) error {
	var failed error
	for {
		kind, p, err := s.message()
		if err != nil {
			return err
		}
		switch kind {
		case 'Z':
			return failed
		case 'E':
			failed = postgresError(p)
		case 'N', 'S', 'A':
		default:
			if f != nil && failed == nil {
				failed = f(kind, p)
			}
		}
	}
}

// Do sends Bind, Execute and Sync in one write.
func (s *postgresSession) Do(st *Stmt, args ...Arg) (Result, error) {
	if len(args) != st.params {
		return Result{}, fmt.Errorf("%d values for the %d parameters of %s", len(args), st.params, st.SQL)
	}
	s.out = s.out[:0]
	at := s.begin('B')
	s.out = append(s.out, st.packet...)
	s.out = binary.BigEndian.AppendUint16(s.out, uint16(len(args)))
	for i := range args {
		binaryForm := byte(0)
		if args[i].Kind == wire.KindInt && isInt(st.oids[i]) {
			binaryForm = 1
		}
		s.out = append(s.out, 0, binaryForm)
	}
	s.out = binary.BigEndian.AppendUint16(s.out, uint16(len(args)))
	for i := range args {
		s.argument(args[i], st.oids[i])
	}
	s.out = append(s.out, 0, 0) // all results as text
	s.finish(at)
	s.out = append(s.out, 'E', 0, 0, 0, 9, 0, 0, 0, 0, 0, 'S', 0, 0, 0, 4)
	s.at, s.end = 0, 0
	if _, err := s.Write(s.out); err != nil {
		return Result{}, err
	}
	return s.answer(st, st.Kind)
}

func isInt(oid uint32) bool { return oid == oidInt8 || oid == oidInt4 || oid == oidInt2 }

func (s *postgresSession) argument(a Arg, oid uint32) {
	switch {
	case a.Kind == wire.KindNull:
		s.out = append(s.out, 0xff, 0xff, 0xff, 0xff)
	case a.Kind == wire.KindText:
		s.out = binary.BigEndian.AppendUint32(s.out, uint32(len(a.Text)))
		s.out = append(s.out, a.Text...)
	case oid == oidInt8:
		s.out = append(s.out, 0, 0, 0, 8)
		s.out = binary.BigEndian.AppendUint64(s.out, uint64(a.Int))
	case oid == oidInt4:
		s.out = append(s.out, 0, 0, 0, 4)
		s.out = binary.BigEndian.AppendUint32(s.out, uint32(a.Int))
	case oid == oidInt2:
		s.out = append(s.out, 0, 0, 0, 2)
		s.out = binary.BigEndian.AppendUint16(s.out, uint16(a.Int))
	default:
		at := len(s.out)
		s.out = strconv.AppendInt(append(s.out, 0, 0, 0, 0), a.Int, 10)
		binary.BigEndian.PutUint32(s.out[at:], uint32(len(s.out)-at-4))
	}
}

// Exec runs a statement as text, by the simple protocol.
func (s *postgresSession) Exec(kind Kind, sql string) (Result, error) {
	s.out = s.out[:0]
	at := s.begin('Q')
	s.append(sql)
	s.finish(at)
	s.at, s.end = 0, 0
	if _, err := s.Write(s.out); err != nil {
		return Result{}, err
	}
	return s.answer(&s.simple, kind)
}

func (s *postgresSession) answer(st *Stmt, kind Kind) (Result, error) {
	var r Result
	s.values = s.values[:0]
	keep := st.Keep
	err := s.until(func(kind byte, p []byte) (err error) {
		switch kind {
		case 'D':
			r.Rows++
			if keep {
				s.values, err = appendText(s.values, st.cols, p)
			}
		case 'C':
			r.Affected += affected(p)
		}
		return err
	})
	if err != nil {
		return r, err
	}
	r.Columns = len(st.cols)
	r.Values = s.values
	s.counts[kind]++
	return r, nil
}

// affected reads the number at the end of a command's tag, such as UPDATE 3; that of a SELECT is no change.
func affected(tag []byte) int64 {
	tag = tag[:max(len(tag)-1, 0)]
	i := len(tag)
	for i > 0 && tag[i-1] >= '0' && tag[i-1] <= '9' {
		i--
	}
	if i == len(tag) || tag[0] == 'S' {
		return 0
	}
	n, _ := strconv.ParseInt(string(tag[i:]), 10, 64)
	return n
}

// appendText reads one row; whole numbers become numbers.
func appendText(dst []Value, cols []column, p []byte) ([]Value, error) {
	if len(p) < 2 {
		return dst, unreadable("row")
	}
	p = p[2:]
	for i, c := range cols {
		if len(p) < 4 {
			return dst, unreadable(fmt.Sprintf("column %d of a row", i+1))
		}
		n := int32(binary.BigEndian.Uint32(p))
		p = p[4:]
		if n < 0 {
			dst = append(dst, Value{Null: true})
			continue
		}
		if len(p) < int(n) {
			return dst, unreadable(fmt.Sprintf("column %d of a row", i+1))
		}
		v := Value{}
		if isInt(c.oid) {
			v.Int, _ = strconv.ParseInt(string(p[:n]), 10, 64)
		} else {
			v.Text = append([]byte{}, p[:n]...)
		}
		dst, p = append(dst, v), p[n:]
	}
	return dst, nil
}

// postgresError reads the fields of an ErrorResponse.
func postgresError(p []byte) error {
	e := &ServerError{}
	for len(p) > 1 && p[0] != 0 {
		i := slices.Index(p, 0)
		if i < 1 {
			break
		}
		switch v := string(p[1:i]); p[0] {
		case 'C':
			e.State = v
		case 'M':
			e.Message = v
		}
		p = p[i+1:]
	}
	return e
}
