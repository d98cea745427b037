package load

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// session is a connection that is set up for loading. It belongs to one goroutine.
type session struct {
	*mysql.Stream
	schema string // the schema of the last USE
}

// patienceOfStatement is how long the server may be silent: it may be sorting a large index. A dead server is detected by
// TCP keep-alive.
const patienceOfStatement = 24 * time.Hour

// needed are settings without which rows would not be restored as they were. Strict modes are off: they would refuse what
// other modes let in before, such as an ENUM's value 0; instead each warning is examined.
var needed = []string{
	"sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION'",
	"time_zone = '+00:00'",
	"foreign_key_checks = 0",
	"unique_checks = 0",
	"autocommit = 1",
}

// wanted are settings that some servers do not have, or not for all accounts. Sources: MySQL manual, "Server System Variables";
// MariaDB documentation, "Server System Variables".
var wanted = []string{
	"explicit_defaults_for_timestamp = 1",    // a TIMESTAMP gets no attributes that its definition does not show
	"sql_generate_invisible_primary_key = 0", // MySQL 8.0.30: nor a table a column
	"sql_require_primary_key = 0",            // MySQL 8.0.13
	"innodb_strict_mode = 0",                 // definitions that an older server took
	"restrict_fk_on_non_standard_key = 0",    // MySQL 8.4: foreign keys that point at what is not unique
	"check_constraint_checks = 0",            // MariaDB: rows that were there before the constraint was
	"binlog_format = ROW",                    // not what MariaDB does by itself; a file would be logged whole next to its rows
	"system_versioning_insert_history = 1",   // MariaDB 10.11: the times of a row's version are those that are given
	"system_versioning_alter_history = KEEP", // and a table may get its keys when it has such rows
	"max_statement_time = 0",                 // MariaDB
	"max_execution_time = 0",                 // MySQL
	"net_read_timeout = 3600",                // the next bytes may come from far away
	"net_write_timeout = 3600",
	"wait_timeout = 86400",
	"lock_wait_timeout = 300",
	"innodb_ddl_threads = 4", // MySQL 8.0.27: indexes are sorted by several threads
	"innodb_ddl_buffer_size = 33554432",
	"histogram_generation_max_mem_size = 1000000", // MySQL 8.0: the least
}

// open returns a session.
func (r *run) open(ctx context.Context) (*session, error) {
	st, err := r.o.Into.ConnectStream(ctx, mysql.StreamOptions{Patience: patienceOfStatement})
	if err != nil {
		return nil, err
	}
	s := &session{Stream: st}
	for _, statement := range r.setup {
		if err := s.Exec(ctx, statement); err != nil {
			s.Close()
			return nil, fmt.Errorf("set up a session: %w", err)
		}
	}
	return s, nil
}

// findSetup finds out which settings this server takes from this account. Sessions that are opened later are set up so.
func (r *run) findSetup(ctx context.Context, s *session) error {
	must := "SET SESSION /* risso: load rows as they were */ " + strings.Join(needed, ", ")
	if err := s.Exec(ctx, must); err != nil {
		return fmt.Errorf("set up a session: %w", err)
	}
	r.names = "SET /* risso: definitions are UTF-8, rows are as they are */ NAMES utf8mb4, character_set_results = NULL"
	r.setup = []string{must, r.names}
	if err := s.Exec(ctx, r.names); err != nil {
		return fmt.Errorf("set up a session: %w", err)
	}
	if r.o.NoBinlog {
		off := "SET SESSION /* risso: asked for by --no-binlog */ sql_log_bin = 0"
		if err := s.Exec(ctx, off); err != nil {
			return fmt.Errorf("disable the binary log: %w", err)
		}
		r.setup = append(r.setup, off)
	}
	var taken []string
	for _, w := range wanted {
		err := s.Exec(ctx, "SET SESSION /* risso: load rows as they were */ "+w)
		switch {
		case err == nil:
			taken = append(taken, w)
		case s.Broken() != nil:
			return err
		}
	}
	r.setup = append(r.setup, "SET SESSION /* risso: load rows as they were */ "+strings.Join(taken, ", "))
	return nil
}

// meanDefaults lets utf8mb4 that a program's parameter names alone mean the collation that it meant on the backup's server, where MySQL lets
// it: tables and schemas have it in their definitions, and MariaDB writes none down for parameters. Source: MySQL manual,
// "default_collation_for_utf8mb4".
func (r *run) meanDefaults(ctx context.Context, s *session) error {
	if !r.server.NamesUTF8MB4() || !r.foreignServer() || r.source().NewUTF8MB4() {
		return nil
	}
	const set = "SET SESSION /* risso: programs mean what they meant */ default_collation_for_utf8mb4 = utf8mb4_general_ci"
	switch err := s.Exec(ctx, set); {
	case err == nil:
		r.setup = append(r.setup, set)
	case s.Broken() != nil:
		return err
	}
	return nil
}

// use makes a schema the default one.
func (s *session) use(ctx context.Context, schema string) error {
	if s.schema == schema {
		return nil
	}
	if err := s.Exec(ctx, "USE "+mysql.Quote(schema)); err != nil {
		return err
	}
	s.schema = schema
	return nil
}

// passes reports whether an error is temporary: the same may be tried again.
func passes(err error) bool {
	switch mysql.ErrorNumber(err) {
	case errno.Deadlock, errno.LockWaitTimeout, errno.ServerShutdown, errno.QueryInterrupted, errno.ConnectionKilled, errno.UnknownCommand, // Galera: not in the primary component
		errno.TooManyConnections, errno.CommitError, errno.RolledBackByReplication, errno.NewAbortingConnection, errno.SessionKilled:
		return true
	case 0:
	default:
		return false
	}
	switch mysql.ClassOf(err) {
	case mysql.ClassDropped, mysql.ClassRefused, mysql.ClassTimeout, mysql.ClassFull:
		return true
	}
	return false
}

// How long trouble that passes is waited for.
const (
	firstPause = 100 * time.Millisecond
	longest    = 5 * time.Second
	giveUp     = 10 * time.Minute
)

// again runs f with a session, and runs it again after a temporary error, with a new session if the old one broke. f has
// to find out by itself how far it came before. The session that works is left in *s.
func (r *run) again(ctx context.Context, s **session, f func(*session) error) error {
	pause, since := firstPause, time.Now()
	for {
		err := r.attempt(ctx, s, f)
		if errors.Is(err, errAgain) {
			continue
		}
		if err == nil || !passes(err) || ctx.Err() != nil {
			return err
		}
		if time.Since(since) > giveUp {
			return fmt.Errorf("given up after %s: %w", giveUp, err)
		}
		r.retried.Add(1)
		if err := delay.For(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, longest)
	}
}

func (r *run) attempt(ctx context.Context, s **session, f func(*session) error) error {
	if *s != nil && (*s).Broken() != nil {
		(*s).Close()
		*s = nil
	}
	if *s == nil {
		fresh, err := r.open(ctx)
		if err != nil {
			return err
		}
		*s = fresh
	}
	err := f(*s)
	if err != nil && (*s).Broken() == nil {
		if rerr := (*s).Exec(ctx, "ROLLBACK"); rerr != nil {
			return errors.Join(err, rerr)
		}
	}
	return err
}
