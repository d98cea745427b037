package drive

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/rissodb/risso/internal/mysql"
)

// Commands and marks of the protocol. Source: "Command Phase" of MySQL's internals manual.
const (
	comQuit        = 0x01
	comQuery       = 0x03
	comStmtPrepare = 0x16
	comStmtExecute = 0x17

	markOK  = 0x00
	markEOF = 0xfe
	markErr = 0xff
)

// ForMySQL is a MySQL or MariaDB server as a target.
func ForMySQL(t mysql.Target) Target { return mysqlTarget{t} }

type mysqlTarget struct{ at mysql.Target }

func (t mysqlTarget) Dialect() Dialect { return MySQL }
func (t mysqlTarget) String() string   { return t.at.String() }

func (t mysqlTarget) Open(ctx context.Context, stop *Stop) (Session, error) {
	if t.at.Encrypted() {
		return openLibrary(ctx, t.at, stop)
	}
	raw, err := t.at.ConnectRaw(ctx)
	if err != nil {
		return nil, err
	}
	s, err := newSocket(raw.File, t.at.Socket() != "", stop, t.at.Patience())
	if err != nil {
		return nil, err
	}
	return &mysqlSession{
		wire: s, number: raw.Session, deprecateEOF: raw.DeprecateEOF, cacheMetadata: raw.CacheMetadata,
		in: make([]byte, 32<<10), out: make([]byte, 0, 1<<10),
	}, nil
}

type mysqlSession struct {
	wire
	deprecateEOF, cacheMetadata bool
	number                      int64 // that the server has for the session

	counts [3]int64
	out    []byte
	in     []byte // bytes received
	at     int    // start of what is not read yet
	end    int    // end of what was received
	values []Value
}

func (s *mysqlSession) Dialect() Dialect  { return MySQL }
func (s *mysqlSession) id() int64         { return s.number }
func (s *mysqlSession) Counts() *[3]int64 { return &s.counts }

func (s *mysqlSession) Close() error {
	_ = s.write([]byte{1, 0, 0, 0, comQuit}) // politeness: the server would notice anyway
	return s.close()
}

// packet gives the payload of the next packet; it is valid until the next call.
func (s *mysqlSession) packet() ([]byte, error) {
	head, err := s.need(4)
	if err != nil {
		return nil, err
	}
	n := int(head[0]) | int(head[1])<<8 | int(head[2])<<16
	if n == 1<<24-1 {
		return nil, fmt.Errorf("%w: a packet of 16 MB or more, which a benchmark does not read", ErrLost)
	}
	s.at += 4
	p, err := s.need(n)
	if err != nil {
		return nil, err
	}
	s.at += n
	return p[:n], nil
}

// need gives at least n bytes that were received, without taking them.
func (s *mysqlSession) need(n int) ([]byte, error) {
	if s.end-s.at >= n {
		return s.in[s.at:s.end], nil
	}
	if s.at == s.end {
		s.at, s.end = 0, 0
	} else if len(s.in)-s.at < n {
		s.end = copy(s.in, s.in[s.at:s.end])
		s.at = 0
	}
	for s.end-s.at < n {
		if s.end == len(s.in) {
			s.in = grow(s.in, s.at+n)
		}
		m, err := s.read(s.in[s.end:])
		if err != nil {
			return nil, err
		}
		s.end += m
	}
	return s.in[s.at:s.end], nil
}

// grow makes a full buffer larger, up to what is wanted: not at once, for the wish may come from a packet that lies.
func grow(b []byte, wanted int) []byte {
	return slices.Concat(b, make([]byte, max(1, min(wanted-len(b), max(len(b), 4096)))))
}

// command sends one command and drops what may be left of an answer.
func (s *mysqlSession) command(code byte, text string) error {
	n := len(text) + 1
	if n >= 1<<24-1 {
		return errors.New("a statement of 16 MB or more")
	}
	s.out = append(s.out[:0], byte(n), byte(n>>8), byte(n>>16), 0, code)
	s.out = append(s.out, text...)
	s.at, s.end = 0, 0
	return s.write(s.out)
}

func (s *mysqlSession) Prepare(kind Kind, sql string) (*Stmt, error) {
	if err := s.command(comStmtPrepare, sql); err != nil {
		return nil, err
	}
	p, err := s.packet()
	if err != nil {
		return nil, err
	}
	if len(p) > 0 && p[0] == markErr {
		return nil, serverError(p)
	}
	if len(p) < 9 || p[0] != markOK {
		return nil, malformed("answer to a prepare")
	}
	st := &Stmt{SQL: sql, Kind: kind, id: binary.LittleEndian.Uint32(p[1:]), params: int(binary.LittleEndian.Uint16(p[7:]))}
	columns := int(binary.LittleEndian.Uint16(p[5:]))
	if err := s.skipDefinitions(st.params, nil); err != nil {
		return nil, err
	}
	if err := s.skipDefinitions(columns, &st.cols); err != nil {
		return nil, err
	}
	st.packet = append([]byte{0, 0, 0, 0, comStmtExecute}, p0(st.id)...)
	st.packet = append(st.packet, 0, 1, 0, 0, 0) // no cursor; one iteration
	return st, nil
}

func p0(id uint32) []byte { return binary.LittleEndian.AppendUint32(nil, id) }

// skipDefinitions reads n definitions of columns or parameters, and what ends them.
func (s *mysqlSession) skipDefinitions(n int, keep *[]column) error {
	if n == 0 {
		return nil
	}
	if keep != nil {
		*keep = (*keep)[:0]
	}
	for range n {
		p, err := s.packet()
		if err != nil {
			return err
		}
		if keep != nil {
			c, err := definition(p)
			if err != nil {
				return err
			}
			*keep = append(*keep, c)
		}
	}
	if s.deprecateEOF {
		return nil
	}
	_, err := s.packet()
	return err
}

// Do runs a prepared statement.
func (s *mysqlSession) Do(st *Stmt, args ...Arg) (Result, error) {
	if len(args) != st.params {
		return Result{}, fmt.Errorf("%d values for the %d parameters of %s", len(args), st.params, st.SQL)
	}
	s.execute(st, args)
	s.at, s.end = 0, 0
	if err := s.write(s.out); err != nil {
		return Result{}, err
	}
	r, err := s.answer(st)
	if err == nil {
		s.counts[st.Kind]++
	}
	return r, err
}

// execute makes the packet COM_STMT_EXECUTE. Types are sent when they are not those of the last time.
func (s *mysqlSession) execute(st *Stmt, args []Arg) {
	out := append(s.out[:0], st.packet...)
	if len(args) > 0 {
		nulls := len(out)
		for range (len(args) + 7) / 8 {
			out = append(out, 0)
		}
		same := len(st.types) == 2*len(args)
		for i := range args {
			if args[i].kind == argNull {
				out[nulls+i/8] |= 1 << (i % 8)
			} else if same && st.types[2*i] != fieldType[args[i].kind] {
				same = false
			}
		}
		if same {
			out = append(out, 0)
		} else {
			st.types = st.types[:0]
			for i := range args {
				st.types = append(st.types, fieldType[args[i].kind], 0)
			}
			out = append(append(out, 1), st.types...)
		}
		for i := range args {
			switch a := &args[i]; a.kind {
			case argInt:
				out = binary.LittleEndian.AppendUint64(out, uint64(a.Int))
			case argText:
				out = append(appendLength(out, len(a.Text)), a.Text...)
			}
		}
	}
	n := len(out) - 4
	out[0], out[1], out[2] = byte(n), byte(n>>8), byte(n>>16)
	s.out = out
}

// fieldType is MySQL's type for the kind of an argument.
var fieldType = [...]byte{argInt: typeLonglong, argText: typeVarString, argNull: typeNull}

// Exec runs a statement as text.
func (s *mysqlSession) Exec(kind Kind, sql string) (Result, error) { return s.text(kind, sql, false) }

func (s *mysqlSession) text(kind Kind, sql string, keep bool) (Result, error) {
	if err := s.command(comQuery, sql); err != nil {
		return Result{}, err
	}
	var st *Stmt
	if keep {
		st = &Stmt{Keep: true, text: true}
	}
	r, err := s.answer(st)
	if err == nil {
		s.counts[kind]++
	}
	return r, err
}

// answer reads an OK, an error, or a result set; st is nil for the text protocol.
func (s *mysqlSession) answer(st *Stmt) (Result, error) {
	p, err := s.packet()
	if err != nil {
		return Result{}, err
	}
	if len(p) == 0 {
		return Result{}, malformed("answer")
	}
	switch p[0] {
	case markOK:
		affected, p, _ := length(p[1:])
		id, _, ok := length(p)
		if !ok {
			return Result{}, malformed("OK")
		}
		return Result{Affected: int64(affected), InsertID: int64(id)}, nil
	case markErr:
		return Result{}, serverError(p)
	}
	columns, rest, ok := length(p)
	if !ok {
		return Result{}, malformed("number of columns")
	}
	r := Result{Columns: int(columns)}
	if !s.cacheMetadata || st == nil || st.text || len(rest) == 0 || rest[0] == 1 {
		var keep *[]column
		if st != nil && st.Keep {
			keep = &st.cols
		}
		if err := s.skipDefinitions(r.Columns, keep); err != nil {
			return r, err
		}
	} else if !s.deprecateEOF {
		if _, err := s.packet(); err != nil {
			return r, err
		}
	}
	return s.rows(st, r)
}

// rows counts the rows of a result set, and keeps their values where the statement says so.
func (s *mysqlSession) rows(st *Stmt, r Result) (Result, error) {
	keep := st != nil && st.Keep
	s.values = s.values[:0]
	for {
		p, err := s.packet()
		switch {
		case err != nil:
			return r, err
		case len(p) == 0:
			return r, malformed("row")
		case p[0] == markErr:
			return r, serverError(p)
		case p[0] == markEOF: // a value this long would not fit into a packet
			r.Values = s.values
			return r, nil
		}
		r.Rows++
		if keep && st.text {
			if s.values, err = appendTextRow(s.values, st.cols, p); err != nil {
				return r, err
			}
		} else if keep {
			if s.values, err = appendRow(s.values, st.cols, p); err != nil {
				return r, err
			}
		}
	}
}

func serverError(p []byte) error {
	if len(p) < 3 {
		return malformed("error")
	}
	e := &ServerError{Code: int(binary.LittleEndian.Uint16(p[1:]))}
	p = p[3:]
	if len(p) >= 6 && p[0] == '#' {
		e.State, p = string(p[1:6]), p[6:]
	}
	e.Message = string(p)
	return e
}

func malformed(what string) error { return fmt.Errorf("%w: %s cannot be read", ErrLost, what) }
