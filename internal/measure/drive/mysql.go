package drive

import (
	"context"
	"errors"
	"fmt"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/wire"
)

// ForMySQL is a MySQL or MariaDB server as a target.
func ForMySQL(t mysql.Target) Target { return mysqlTarget{t} }

type mysqlTarget struct{ at mysql.Target }

func (t mysqlTarget) Dialect() Dialect { return MySQL }
func (t mysqlTarget) String() string   { return t.at.String() }

func (t mysqlTarget) Open(ctx context.Context, stop *Stop) (Session, error) {
	c, err := t.at.ConnectWire(ctx, 0)
	if err != nil {
		return nil, err
	}
	s := &mysqlSession{conn: c}
	if c.Encrypted() { // only Go's library knows the keys
		s.link = &netLink{conn: c.NetConn(), stop: stop, patience: t.at.Patience()}
	} else {
		f, err := c.File()
		if err != nil {
			return nil, err
		}
		if s.link, err = newSocket(f, t.at.Socket() != "", stop, t.at.Patience()); err != nil {
			return nil, err
		}
	}
	c.Over(s.link)
	return s, nil
}

// mysqlSession is a connection of package wire over a link of this package's.
type mysqlSession struct {
	link
	conn   *wire.Conn
	counts [3]int64
	kept   kept
}

func (s *mysqlSession) Dialect() Dialect  { return MySQL }
func (s *mysqlSession) id() int64         { return s.conn.Session() }
func (s *mysqlSession) Counts() *[3]int64 { return &s.counts }

func (s *mysqlSession) Close() error {
	s.conn.Quit()
	return s.close()
}

func (s *mysqlSession) Prepare(kind Kind, sql string) (*Stmt, error) {
	st, err := s.conn.Prepare(sql)
	if err != nil {
		return nil, sessionError(err)
	}
	return &Stmt{SQL: sql, Kind: kind, prepared: st, params: st.Params}, nil
}

// Do runs a prepared statement.
func (s *mysqlSession) Do(st *Stmt, args ...Arg) (Result, error) {
	if len(args) != st.params {
		return Result{}, fmt.Errorf("%d values for the %d parameters of %s", len(args), st.params, st.SQL)
	}
	s.kept.st, s.kept.values = st.prepared, s.kept.values[:0]
	var to wire.RowSink
	if st.Keep {
		to = &s.kept
	}
	r, err := s.conn.Execute(st.prepared, args, to)
	return s.end(st.Kind, r, err)
}

// Exec runs a statement as text.
func (s *mysqlSession) Exec(kind Kind, sql string) (Result, error) {
	s.kept.values = s.kept.values[:0]
	r, err := s.conn.Query(sql, nil, nil)
	return s.end(kind, r, err)
}

// end makes what a statement gave out of the answer. What a procedure answers besides is skipped.
func (s *mysqlSession) end(kind Kind, r wire.Result, err error) (Result, error) {
	for more := r.More; more && err == nil; {
		var next wire.Result
		next, err = s.conn.Next(nil, nil)
		more = next.More
	}
	if err != nil {
		return Result{}, sessionError(err)
	}
	s.counts[kind]++
	return Result{Rows: r.Rows, Affected: int64(r.Affected), InsertID: int64(r.InsertID), Columns: r.Columns, Values: s.kept.values}, nil
}

// kept keeps the values of rows.
type kept struct {
	st     *wire.Statement
	values []Value
	row    []byte // the beginning of one that comes in pieces
}

// Piece takes the next bytes of a row.
func (k *kept) Piece(b []byte, last bool) (err error) {
	if !last || len(k.row) > 0 {
		k.row = append(k.row, b...)
		b = k.row
	}
	if !last {
		return nil
	}
	k.row = k.row[:0]
	k.values, err = wire.AppendRow(k.values, k.st.Columns, b)
	return err
}

// sessionError makes an error of the wire one of this package's.
func sessionError(err error) error {
	var refused *driver.MySQLError
	switch {
	case errors.As(err, &refused):
		return &ServerError{Code: int(refused.Number), State: string(refused.SQLState[:]), Message: refused.Message}
	case errors.Is(err, ErrLost), errors.Is(err, ErrStopped):
		return err
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}
