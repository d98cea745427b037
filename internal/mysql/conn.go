package mysql

import (
	"cmp"
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// Traffic counts what passes between Risso and a server. It may be read at any time.
type Traffic struct {
	Sent, Received atomic.Int64 // bytes on the wire
	Queries        atomic.Int64 // statements sent
	Nanoseconds    atomic.Int64 // from sending a statement to its last row: the server's time and the way there and back

	mu    sync.Mutex
	texts map[string]struct{} // what was sent

	precedence precedence

	doing    map[string]float64 // sessions by what they were last found doing
	sessions any                // and those sessions, as their reader knows them
	doingAt  time.Time
}

// NoteDoing remembers how many sessions one connection found doing what, and the sessions, so that another need not ask for the same.
// Nobody changes them from then on.
func (t *Traffic) NoteDoing(counts map[string]float64, sessions any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.doing, t.sessions, t.doingAt = counts, sessions, time.Now()
}

// Doing returns what NoteDoing got within the last second; nil if it got nothing.
func (t *Traffic) Doing() (counts map[string]float64, sessions any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.doingAt) > doingFresh {
		return nil, nil
	}
	return t.doing, t.sessions
}

// doingFresh is how old that may be to count as the present: activity is read half a second before the numbers.
const doingFresh = 900 * time.Millisecond

// Limits of the texts that Traffic remembers: Risso asks the same few questions again and again.
const (
	maxTexts   = 300
	maxTextLen = 4096
)

// Note remembers a statement.
func (t *Traffic) Note(statement string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.texts[statement]; ok || len(t.texts) >= maxTexts || len(statement) > maxTextLen {
		return
	}
	if t.texts == nil {
		t.texts = map[string]struct{}{}
	}
	t.texts[strings.Clone(statement)] = struct{}{}
}

// Texts are the statements that were sent, each once, so that the observer can leave itself out of what it observes. Statements
// of others whose plans were asked for are not among them.
func (t *Traffic) Texts() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.texts))
}

type countedConn struct {
	net.Conn
	traffic *Traffic
	late    atomic.Bool // an answer did not come in time
}

func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.traffic.Received.Add(int64(n))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.late.Store(true)
	}
	return n, err
}

func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.traffic.Sent.Add(int64(n))
	return n, err
}

// LateError says that a server kept the connection, and did not answer in time. The driver closes the connection then, and calls it invalid as it does one that
// was dropped.
type LateError struct {
	Patience time.Duration
	err      error // the driver's
}

func (e *LateError) Error() string { return "does not answer (within " + digits.Span(e.Patience) + ")" }

// Unwrap makes it a time-out.
func (e *LateError) Unwrap() []error { return []error{os.ErrDeadlineExceeded, e.err} }

// line is what the driver reads and writes.
type line struct {
	conn     *countedConn // nil: not connected
	patience time.Duration
}

// told is a driver's error; of a server that did not answer in time, a *LateError.
func (l *line) told(err error) error {
	if err == nil || l.conn == nil || !l.conn.late.Load() || classOfTransport(err) != ClassDropped {
		return err
	}
	if _, already := errors.AsType[*LateError](err); already {
		return err
	}
	return &LateError{l.patience, err}
}

// canceled is an error of a statement, and that its caller canceled it, where that ended the connection: if it is canceled just before it is sent, the driver says no more
// than driver.ErrBadConn.
func canceled(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != context.Canceled || errors.Is(err, context.Canceled) || classOfTransport(err) != ClassDropped {
		return err
	}
	return fmt.Errorf("%w: %w", context.Canceled, err)
}

// Conn is one connection to a server. It belongs to one goroutine.
//
// It speaks to the driver directly, without database/sql: one connection that asks the same few
// questions each second needs no pool, and half the client's time went there.
type Conn struct {
	conn    sqldriver.Conn
	queryer sqldriver.QueryerContext
	traffic *Traffic
	line    *line
	local   net.Addr // our end
	far     net.Addr // the other one
	row     []sqldriver.Value
	Server  Server // as it was when connecting
}

// Connect opens a connection and learns what server it is. Errors are of type *Error. Connections may share traffic; nil is
// allowed.
func Connect(ctx context.Context, t Target, traffic *Traffic) (*Conn, error) {
	if t.cfg == nil {
		return nil, fmt.Errorf("%w: no address", ErrDSN)
	}
	if traffic == nil {
		traffic = new(Traffic)
	}
	cfg := t.cfg.Clone()
	var local, far net.Addr
	over := &line{patience: cfg.ReadTimeout}
	dial := t.dialer(traffic)
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err == nil {
			local, far = conn.LocalAddr(), conn.RemoteAddr()
			over.conn, _ = conn.(*countedConn)
		}
		return conn, err
	}
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		return nil, classify(t, fmt.Errorf("%w: %s", ErrDSN, dsnProblem(err)))
	}
	conn, err := connector.Connect(ctx)
	if err != nil {
		return nil, classify(t, over.told(err))
	}
	queryer, ok := conn.(sqldriver.QueryerContext)
	if !ok {
		conn.Close()
		return nil, errors.New("the driver cannot run queries")
	}
	c := &Conn{conn: conn, queryer: queryer, traffic: traffic, line: over, local: local, far: far}
	if c.Server, err = probe(ctx, c); err != nil {
		c.Close()
		return nil, classify(t, err)
	}
	return c, nil
}

// Accepts reports whether something accepts connections at the target's address, without a word being said. A server that hangs does:
// its machine's kernel takes them.
func Accepts(ctx context.Context, t Target, patience time.Duration) bool {
	d := net.Dialer{Timeout: patience}
	c, err := d.DialContext(ctx, t.cfg.Net, t.cfg.Addr)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// Close ends the connection.
func (c *Conn) Close() error { return c.conn.Close() }

// Query runs a statement and hands each row to f; the values are valid only during the call. The
// text protocol yields []byte, int64, float64 or nil. A context that ends while a query runs
// closes the connection: a watched server must not be asked twice.
func (c *Conn) Query(ctx context.Context, query string, f func(row []sqldriver.Value) error) error {
	c.traffic.Note(query)
	return c.QuietQuery(ctx, query, f)
}

// QuietQuery is Query for a statement that is not remembered.
func (c *Conn) QuietQuery(ctx context.Context, query string, f func(row []sqldriver.Value) error) error {
	start := time.Now()
	c.traffic.Queries.Add(1)
	defer func() { c.traffic.Nanoseconds.Add(int64(time.Since(start))) }()
	rows, err := c.queryer.QueryContext(ctx, query, nil)
	if err != nil {
		return canceled(ctx, c.line.told(err))
	}
	if err := c.eachRow(rows, f); err != nil {
		rows.Close()
		return canceled(ctx, err)
	}
	return c.line.told(rows.Close())
}

func (c *Conn) eachRow(rows sqldriver.Rows, f func(row []sqldriver.Value) error) error {
	n := len(rows.Columns())
	if cap(c.row) < n {
		c.row = make([]sqldriver.Value, n)
	}
	row := c.row[:n]
	for {
		switch err := rows.Next(row); {
		case err == io.EOF:
			return nil
		case err != nil:
			return c.line.told(err)
		}
		if err := f(row); err != nil {
			return err
		}
	}
}

// Maps runs a query with few rows and returns them as maps from column names to texts; NULL is left out.
func (c *Conn) Maps(ctx context.Context, query string) ([]map[string]string, error) {
	c.traffic.Note(query)
	c.traffic.Queries.Add(1)
	start := time.Now()
	defer func() { c.traffic.Nanoseconds.Add(int64(time.Since(start))) }()
	rows, err := c.queryer.QueryContext(ctx, query, nil)
	if err != nil {
		return nil, canceled(ctx, c.line.told(err))
	}
	defer rows.Close()
	names := append([]string(nil), rows.Columns()...)
	var out []map[string]string
	err = c.eachRow(rows, func(row []sqldriver.Value) error {
		m := make(map[string]string, len(row))
		for i, v := range row {
			if v != nil {
				m[names[i]] = Text(v)
			}
		}
		out = append(out, m)
		return nil
	})
	return out, canceled(ctx, err)
}

// Text is a value as the server wrote it; NULL is "".
func Text(v sqldriver.Value) string {
	switch v := v.(type) {
	case nil:
		return ""
	case []byte:
		return string(v)
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}

// Traffic is what passed over this connection, and over those that it shares the counters with.
func (c *Conn) Traffic() *Traffic { return c.traffic }

// ExecutePrepared prepares a statement by the binary protocol, executes it once with a value for its only parameter, and
// throws its rows away. prepared says whether an error is that of the execution, and not that of preparing it.
func (c *Conn) ExecutePrepared(ctx context.Context, statement string, value int64) (prepared bool, err error) {
	c.traffic.Queries.Add(1)
	preparer, ok := c.conn.(sqldriver.ConnPrepareContext)
	if !ok {
		return false, errors.New("the driver cannot prepare statements")
	}
	stmt, err := preparer.PrepareContext(ctx, statement)
	if err != nil {
		return false, c.line.told(err)
	}
	defer stmt.Close() // the connection tells by the next statement if this failed
	q, ok := stmt.(sqldriver.StmtQueryContext)
	if !ok {
		return true, errors.New("the driver cannot execute statements")
	}
	rows, err := q.QueryContext(ctx, []sqldriver.NamedValue{{Ordinal: 1, Value: value}})
	if err != nil {
		return true, c.line.told(err)
	}
	return true, cmp.Or(c.eachRow(rows, IgnoreRow), rows.Close())
}

// Cipher is the TLS cipher of this connection; empty when it is not encrypted.
func (c *Conn) Cipher(ctx context.Context) (string, error) {
	cipher := ""
	err := c.Query(ctx, "SHOW /* risso */ SESSION STATUS LIKE 'Ssl_cipher'", func(row []sqldriver.Value) error {
		cipher = Text(row[1])
		return nil
	})
	return cipher, err
}

// Text runs a query and returns the first value of its first row; "" if there is none.
func (c *Conn) Text(ctx context.Context, query string) (string, error) {
	var out string
	first := true
	err := c.Query(ctx, query, func(row []sqldriver.Value) error {
		if first && len(row) > 0 {
			out, first = Text(row[0]), false
		}
		return nil
	})
	return out, err
}

// Exec runs a statement that returns no rows.
func (c *Conn) Exec(ctx context.Context, statement string) error {
	return c.Query(ctx, statement, IgnoreRow)
}

// Kill ends another connection to a server over a separate connection. Otherwise the statement of a client that gave up
// waiting would go on running.
func Kill(ctx context.Context, t Target, connectionID int64) error {
	c, err := Connect(ctx, t, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Exec(ctx, "KILL /* risso: left behind */ "+strconv.FormatInt(connectionID, 10)); err != nil && ErrorNumber(err) != errno.NoSuchThread {
		return fmt.Errorf("end connection %d: %w", connectionID, err)
	}
	return nil
}

// KillSession ends a session of somebody else, or only the statement that it runs.
func (c *Conn) KillSession(ctx context.Context, id int64, onlyStatement bool) error {
	what := "KILL /* risso: asked for in top */ "
	if onlyStatement {
		what = "KILL QUERY /* risso: asked for in top */ "
	}
	return c.Exec(ctx, what+strconv.FormatInt(id, 10))
}
