package drive

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/mysql"
)

// The ways in which a session reaches its server. Figures of one are not comparable with those of the other: the library
// waits by Go's network poller and costs the client about twice the processor time.
const (
	TransportRaw     = "raw"     // plain system calls
	TransportLibrary = "library" // the usual libraries; for TLS
)

// Transport tells how a session reaches its server.
func Transport(s Session) string {
	if l, ok := s.(interface{ transport() string }); ok {
		return l.transport()
	}
	return TransportRaw
}

// librarySession is a session with MySQL by the driver's own statements: for TLS, whose keys only the driver has.
type librarySession struct {
	conn   sqldriver.Conn
	ctx    context.Context // ends when the session is to give up what it waits for
	cancel context.CancelCauseFunc
	stop   *Stop
	number int64 // that the server has for the session

	patience atomic.Int64 // nanoseconds
	began    atomic.Int64 // when the running call began, in nanoseconds since the epoch of Unix; 0: none runs

	statements []sqldriver.Stmt // by Stmt.id
	named      []sqldriver.NamedValue
	row        []sqldriver.Value
	values     []Value
	counts     [3]int64
}

func openLibrary(ctx context.Context, t mysql.Target, stop *Stop) (Session, error) {
	opening, done := context.WithTimeout(ctx, t.Patience())
	defer done()
	conn, err := t.ConnectDriver(opening)
	if err != nil {
		return nil, err
	}
	s := &librarySession{conn: conn, stop: stop}
	s.SetPatience(t.Patience())
	if s.number, err = numberOf(opening, conn); err != nil {
		conn.Close()
		return nil, fmt.Errorf("%w: %w", ErrLost, err)
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	go s.watch()
	return s, nil
}

// numberOf asks for the server's number of a connection, which the driver keeps to itself.
func numberOf(ctx context.Context, conn sqldriver.Conn) (int64, error) {
	rows, err := conn.(sqldriver.QueryerContext).QueryContext(ctx, "SELECT /* risso: what to kill when nobody waits for it any more */ CONNECTION_ID()", nil)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	row := make([]sqldriver.Value, 1)
	if err := rows.Next(row); err != nil {
		return 0, err
	}
	return strconv.ParseInt(mysql.Text(row[0]), 10, 64)
}

// watch ends calls that are to be stopped or take too long. It ends with the session.
func (s *librarySession) watch() {
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case now := <-tick.C:
			began := s.began.Load()
			patience := time.Duration(s.patience.Load())
			switch {
			case began == 0:
			case s.stop.IsSet():
				s.cancel(ErrStopped)
			case now.Sub(time.Unix(0, began)) > patience:
				s.cancel(fmt.Errorf("%w: no answer for %v", ErrLost, patience))
			}
		}
	}
}

func (s *librarySession) SetPatience(d time.Duration) { s.patience.Store(int64(d)) }
func (s *librarySession) transport() string           { return TransportLibrary }
func (s *librarySession) Dialect() Dialect            { return MySQL }
func (s *librarySession) id() int64                   { return s.number }
func (s *librarySession) Counts() *[3]int64           { return &s.counts }

func (s *librarySession) Close() error {
	err := s.conn.Close()
	s.cancel(ErrStopped)
	return err
}

// call runs f under the watch and makes its error one of this package's.
func (s *librarySession) call(f func() error) error {
	s.began.Store(time.Now().UnixNano())
	defer s.began.Store(0)
	err := f()
	if err == nil {
		return nil
	}
	var server *driver.MySQLError
	if errors.As(err, &server) {
		return &ServerError{Code: int(server.Number), State: string(server.SQLState[:]), Message: server.Message}
	}
	if cause := context.Cause(s.ctx); cause != nil {
		return cause
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}

func (s *librarySession) Prepare(kind Kind, sql string) (*Stmt, error) {
	var st sqldriver.Stmt
	err := s.call(func() (err error) {
		st, err = s.conn.(sqldriver.ConnPrepareContext).PrepareContext(s.ctx, sql)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.statements = append(s.statements, st)
	return &Stmt{SQL: sql, Kind: kind, id: uint32(len(s.statements) - 1), params: st.NumInput()}, nil
}

func (s *librarySession) Do(st *Stmt, args ...Arg) (Result, error) {
	if len(args) != st.params {
		return Result{}, fmt.Errorf("%d values for the %d parameters of %s", len(args), st.params, st.SQL)
	}
	s.named = s.named[:0]
	for i, a := range args {
		v := sqldriver.NamedValue{Ordinal: i + 1, Value: a.Int}
		switch a.kind {
		case argText:
			v.Value = string(a.Text) // as a byte slice it would be a blob, which compares otherwise
		case argNull:
			v.Value = nil
		}
		s.named = append(s.named, v)
	}
	prepared := s.statements[st.id]
	if returnsRows(st.Kind, st.SQL) {
		return s.query(st.Kind, st.Keep, func() (sqldriver.Rows, error) {
			return prepared.(sqldriver.StmtQueryContext).QueryContext(s.ctx, s.named)
		})
	}
	return s.change(st.Kind, func() (sqldriver.Result, error) {
		return prepared.(sqldriver.StmtExecContext).ExecContext(s.ctx, s.named)
	})
}

func (s *librarySession) Exec(kind Kind, sql string) (Result, error) { return s.text(kind, sql, false) }

func (s *librarySession) text(kind Kind, sql string, keep bool) (Result, error) {
	if returnsRows(kind, sql) {
		return s.query(kind, keep, func() (sqldriver.Rows, error) {
			return s.conn.(sqldriver.QueryerContext).QueryContext(s.ctx, sql, nil)
		})
	}
	return s.change(kind, func() (sqldriver.Result, error) {
		return s.conn.(sqldriver.ExecerContext).ExecContext(s.ctx, sql, nil)
	})
}

// returnsRows guesses by the first word, for the driver has to be told which of its calls to use.
func returnsRows(kind Kind, sql string) bool {
	word, _, _ := strings.Cut(strings.TrimLeft(sql, " \t\r\n("), " ")
	switch strings.ToUpper(strings.TrimRight(word, "\r\n\t;")) {
	case "SELECT", "SHOW", "WITH", "VALUES", "TABLE", "EXPLAIN", "DESCRIBE", "DESC", "ANALYZE", "CHECK", "CHECKSUM":
		return true
	}
	return kind == Read
}

func (s *librarySession) change(kind Kind, f func() (sqldriver.Result, error)) (out Result, err error) {
	err = s.call(func() error {
		r, err := f()
		if err != nil {
			return err
		}
		out.Affected, _ = r.RowsAffected() // the driver's never fail
		out.InsertID, _ = r.LastInsertId()
		return nil
	})
	if err == nil {
		s.counts[kind]++
	}
	return out, err
}

func (s *librarySession) query(kind Kind, keep bool, f func() (sqldriver.Rows, error)) (out Result, err error) {
	err = s.call(func() error {
		rows, err := f()
		if err != nil {
			return err
		}
		defer rows.Close()
		out.Columns = len(rows.Columns())
		s.values = s.values[:0]
		s.row = append(s.row[:0], make([]sqldriver.Value, out.Columns)...)
		for {
			if err := rows.Next(s.row); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return err
			}
			out.Rows++
			for i := 0; keep && i < out.Columns; i++ {
				s.values = append(s.values, libraryValue(s.row[i], rows, i))
			}
		}
		out.Values = s.values
		return nil
	})
	if err == nil {
		s.counts[kind]++
	}
	return out, err
}

func libraryValue(v sqldriver.Value, rows sqldriver.Rows, column int) Value {
	switch v := v.(type) {
	case nil:
		return Value{Null: true}
	case int64:
		return Value{Int: v}
	case uint64:
		return Value{Int: int64(v)}
	case []byte:
		// The driver gives unsigned numbers beyond those with a sign as text.
		if t, ok := rows.(sqldriver.RowsColumnTypeDatabaseTypeName); ok && t.ColumnTypeDatabaseTypeName(column) == "UNSIGNED BIGINT" {
			n, _ := strconv.ParseUint(string(v), 10, 64)
			return Value{Int: int64(n)}
		}
		return Value{Text: append([]byte{}, v...)}
	default: // float32, float64, string
		return Value{Text: fmt.Append(nil, v)}
	}
}
