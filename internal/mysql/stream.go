package mysql

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/wire"
)

// Stream is a session whose result rows are handed on as the bytes in which the server sent them. Its memory does not grow
// with a result, nor with a row. It belongs to one goroutine.
type Stream struct {
	target  Target
	conn    *wire.Conn
	id      uint64 // CONNECTION_ID()
	broken  error  // why the session is of no more use
	killers sync.WaitGroup
}

// StreamOptions are how a Stream behaves.
type StreamOptions struct {
	// Patience is how long the server may be silent in the middle of an answer; 0 is streamPatience.
	Patience time.Duration
	// Buffer is how many bytes are read at a time; 0 is streamBuffer.
	Buffer int
}

// Defaults of StreamOptions. A statement may wait for a lock or sort before its first row.
const (
	streamPatience = 10 * time.Minute
	streamBuffer   = 256 << 10
)

// ConnectStream opens a session as the target's DSN says: a socket, TCP, TLS, with compress=true compressed.
// Errors are of type *Error.
func (t Target) ConnectStream(ctx context.Context, o StreamOptions) (*Stream, error) {
	if o.Patience <= 0 {
		o.Patience = streamPatience
	}
	if o.Buffer <= 0 {
		o.Buffer = streamBuffer
	}
	c, err := t.ConnectWire(ctx, o.Buffer)
	if err != nil {
		return nil, err
	}
	c.SetPatience(o.Patience)
	s := &Stream{target: t, conn: c}
	if err := s.begin(ctx); err != nil {
		s.Close()
		return nil, classify(t, err)
	}
	return s, nil
}

// ConnectWire logs in; the caller speaks the protocol on the connection. It reads buffer bytes at a time; 0: the
// default. Errors are of type *Error.
func (t Target) ConnectWire(ctx context.Context, buffer int) (*wire.Conn, error) {
	if t.cfg == nil {
		return nil, fmt.Errorf("%w: no address", ErrDSN)
	}
	c, err := wire.Connect(ctx, t.cfg, buffer)
	return c, classify(t, err)
}

// begin learns the session's number and makes it a quiet guest.
func (s *Stream) begin(ctx context.Context) error {
	var id uint64
	err := s.Query(ctx, "SELECT /* risso: which session is this? */ CONNECTION_ID()", func(row [][]byte) error {
		_, err := fmt.Sscan(string(row[0]), &id)
		return err
	})
	if err != nil {
		return fmt.Errorf("ask for the connection ID: %w", err)
	}
	s.id = id // for killing the session
	if err := s.Exec(ctx, plainSession); err != nil {
		return fmt.Errorf("prepare the session: %w", err)
	}
	err = s.Exec(ctx, "SET SESSION /* risso: stay out of the slow log */ long_query_time = 31536000, min_examined_row_limit = 4294967295")
	if err != nil && ClassOf(err) != ClassPrivilege && ClassOf(err) != ClassMissing {
		return fmt.Errorf("prepare the session: %w", err)
	}
	return nil
}

// ID is the session's CONNECTION_ID().
func (s *Stream) ID() uint64 { return s.id }

// Close ends the session. A statement that still runs is killed on the server when its context ends, not here.
func (s *Stream) Close() error {
	if s.broken == nil {
		s.broken = net.ErrClosed
		s.conn.SetPatience(time.Second)
		s.conn.Quit()
	}
	err := s.conn.Close()
	s.killers.Wait()
	return err
}

// Broken says why the session is of no more use, or nil. The error of a statement alone does not break it.
func (s *Stream) Broken() error { return s.broken }

// Exec runs a statement and throws its rows away.
func (s *Stream) Exec(ctx context.Context, statement string) error {
	return s.Select(ctx, statement, wire.Discard{})
}

// Select runs a statement and hands its rows on. A context that ends closes the connection and kills the statement on the
// server: the rows until then were handed on.
func (s *Stream) Select(ctx context.Context, statement string, to wire.RowSink) error {
	return s.query(ctx, statement, nil, to)
}

// Load runs a LOAD DATA LOCAL, whatever file it names, with the bytes of data. If reading them fails the server only sees
// their end, so that the caller must roll back.
func (s *Stream) Load(ctx context.Context, statement string, data io.Reader) error {
	return s.query(ctx, statement, data, wire.Discard{})
}

// Query runs a statement of few and small rows and calls f with each row's values, nil for NULL. They are valid during the call.
func (s *Stream) Query(ctx context.Context, statement string, f func(row [][]byte) error) error {
	return s.query(ctx, statement, nil, s.conn.Each(f))
}

func (s *Stream) query(ctx context.Context, statement string, data io.Reader, to wire.RowSink) error {
	return s.run(ctx, func() error {
		_, err := s.conn.Query(statement, data, to)
		return err
	})
}

// Columns are those of the last statement.
func (s *Stream) Columns() []wire.Column { return s.conn.Columns() }

// QueryMaps runs a statement of few and small rows and returns them as maps from column name to text; NULL is left out.
func (s *Stream) QueryMaps(ctx context.Context, statement string) ([]map[string]string, error) {
	var out []map[string]string
	err := s.Query(ctx, statement, func(row [][]byte) error {
		m := make(map[string]string, len(row))
		for i, v := range row {
			if v != nil {
				m[s.conn.Columns()[i].Name] = string(v)
			}
		}
		out = append(out, m)
		return nil
	})
	return out, err
}

// QuerySeveral runs statements of few and small rows with one packet, so that neither side waits for the other in between, and
// calls f with the rows and the place of their statement. What follows a statement that the server refuses does not run.
func (s *Stream) QuerySeveral(ctx context.Context, statements []string, f func(i int, row [][]byte) error) error {
	if err := s.run(ctx, func() error { return s.conn.Severally(true) }); err != nil {
		return fmt.Errorf("ask for several statements at once: %w", err)
	}
	return s.run(ctx, func() error {
		for i := range statements {
			var r wire.Result
			var err error
			to := s.conn.Each(func(row [][]byte) error { return f(i, row) })
			if i == 0 {
				r, err = s.conn.Query(strings.Join(statements, ";\n"), nil, to)
			} else {
				r, err = s.conn.Next(nil, to)
			}
			if err != nil {
				return err
			}
			if r.More != (i < len(statements)-1) {
				return fmt.Errorf("%w: the server did not answer %d statements", driver.ErrMalformPkt, len(statements))
			}
		}
		return nil
	})
}

// ExecText runs what is in a text and throws rows away: one statement, or several that are separated by semicolons.
func (s *Stream) ExecText(ctx context.Context, text string, several bool) error {
	if err := s.run(ctx, func() error { return s.conn.Severally(several) }); err != nil {
		return fmt.Errorf("say how many statements come at once: %w", err)
	}
	return s.run(ctx, func() error {
		r, err := s.conn.Query(text, nil, nil)
		for err == nil && r.More {
			r, err = s.conn.Next(nil, nil)
		}
		return err
	})
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
		s.conn.Close()
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
	var own *wire.SinkError
	switch {
	case err == nil, errors.As(err, &refused):
		return err // the session goes on
	case errors.As(err, &own):
		s.broken = own.Err // rows of it are on their way still
		s.conn.Close()
		return own.Err
	}
	s.broken = classify(s.target, err)
	s.conn.Close()
	return s.broken
}

// KillTime is how long it may take to kill an abandoned statement.
const KillTime = 5 * time.Second

// kill ends the session on the server, which would notice only when it sends the next row. Its errors are useless:
// the session may have ended in the meantime.
func (s *Stream) kill() {
	if s.id == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), KillTime)
	defer cancel()
	c, err := Connect(ctx, s.target, nil)
	if err != nil {
		return
	}
	defer c.Close()
	_ = c.QuietQuery(ctx, fmt.Sprintf("KILL /* risso: own abandoned statement */ %d", s.id), IgnoreRow)
}

// Quote is a name as SQL takes it.
func Quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// sendBuffer is how much a server should collect before it sends. Rows of sysbench cost the client 0.10 instead of 0.27
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

// ForStatements prepares a session whose changes replicate as statements, though they change nothing here: in row format a row
// that is the same afterwards leaves no event. It needs REPEATABLE READ: InnoDB refuses statements below it (error 1665).
func (s *Stream) ForStatements(ctx context.Context, server Server) error {
	if err := s.ForRows(ctx, server); err != nil {
		return err
	}
	err := s.Exec(ctx, "SET SESSION /* risso: replicate by statement */ binlog_format = 'STATEMENT'")
	if err != nil {
		if ClassOf(err) == ClassPrivilege {
			return &Error{Target: server.Account, Class: ClassPrivilege, Err: fleet.WithRemedy(err, server.Grant(server.formatPrivilege()))}
		}
		return fmt.Errorf("replicate by statement: %w", err)
	}
	for _, q := range []string{
		"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
		"SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO', foreign_key_checks = 0, innodb_lock_wait_timeout = 5",
	} {
		if err := s.Exec(ctx, q); err != nil {
			return fmt.Errorf("prepare the session: %w", err)
		}
	}
	return nil
}
