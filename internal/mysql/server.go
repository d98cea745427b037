package mysql

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/sqltext"
)

// Server is what a server is: found out once at each connect.
type Server struct {
	fleet.Server             // the Version as VERSION() returns it
	Comment           string // @@version_comment
	Account           string // CURRENT_USER(): the account that the privileges belong to
	ConnectionID      int64
	Socket            string
	PidFile           string
	PerformanceSchema bool
	SQLMode           string // @@sql_mode as sessions have it here, or as the DSN sets it: the mode that others' statements expect
}

// probe asks what the server is and makes the session a quiet guest: its statements stay out of the slow log.
func probe(ctx context.Context, c *Conn) (Server, error) {
	var s Server
	err := c.Query(ctx, `SELECT /* risso: what server is this? */ VERSION(), @@version_comment, CURRENT_USER(), CONNECTION_ID(),
  @@hostname, @@port, @@socket, @@datadir, @@pid_file, @@performance_schema, @@sql_mode`, func(row []sqldriver.Value) error {
		s.Server = fleet.ServerOf(Text(row[0]), Text(row[1]))
		s.Comment, s.Account = Text(row[1]), Text(row[2])
		s.ConnectionID, _ = strconv.ParseInt(Text(row[3]), 10, 64)
		s.Hostname = Text(row[4])
		s.Port, _ = strconv.Atoi(Text(row[5]))
		s.Socket, s.DataDir, s.PidFile = Text(row[6]), Text(row[7]), Text(row[8])
		s.PerformanceSchema, s.SQLMode = Text(row[9]) == "1", Text(row[10])
		return nil
	})
	if err != nil {
		return s, fmt.Errorf("ask for the server's version: %w", err)
	}
	if s.ID, err = c.Text(ctx, s.ownID()); err != nil && ClassOf(err) != ClassMissing {
		return s, fmt.Errorf("identify the server: %w", err)
	}
	sets := []string{plainSession}
	if own := ownMode(s.SQLMode); own != s.SQLMode {
		sets = append(sets, setMode(own))
	}
	for _, set := range sets {
		if err := c.Query(ctx, set, IgnoreRow); err != nil {
			return s, fmt.Errorf("prepare the session: %w", err)
		}
	}
	// A statement below min_examined_row_limit is not logged, regardless of log_queries_not_using_indexes.
	if err := c.Query(ctx, `SET SESSION /* risso: stay out of the slow log */ long_query_time = 31536000, min_examined_row_limit = 4294967295`, IgnoreRow); err != nil && ClassOf(err) != ClassPrivilege && ClassOf(err) != ClassMissing {
		return s, fmt.Errorf("prepare the session: %w", err)
	}
	return s, nil
}

// plainSession undoes what sessions inherit from a server's global variables, or its init_connect, and that changes the meaning of any
// statement: answers cut at so many rows, without an error (sql_select_limit), or refused for their size; "id IS NULL" that finds the
// last row inserted; transactions that were never begun, or whose end is the connection's; writes refused for want of a key.
// DEFAULT would be the global value again. No privilege is needed. Source: MySQL manual, "Server System Variables".
const plainSession = `SET SESSION /* risso: whole answers, and a session like any other */ sql_select_limit = 18446744073709551615, sql_big_selects = 1,
  sql_auto_is_null = 0, sql_safe_updates = 0, autocommit = 1, completion_type = 0`

// readsOtherwise are the modes under which a server reads, or shows, the same SQL otherwise. ORACLE and its like include several.
// Source: MySQL manual, "Server SQL Modes"; MariaDB documentation, "SQL_MODE".
var readsOtherwise = map[string]bool{"ANSI": true, "ANSI_QUOTES": true, "DB2": true, "EMPTY_STRING_IS_NULL": true, "HIGH_NOT_PRECEDENCE": true, "IGNORE_SPACE": true,
	"MAXDB": true, "MSSQL": true, "MYSQL323": true, "MYSQL40": true, "NO_BACKSLASH_ESCAPES": true, "NO_FIELD_OPTIONS": true, "NO_KEY_OPTIONS": true,
	"NO_TABLE_OPTIONS": true, "NO_UNSIGNED_SUBTRACTION": true, "ORACLE": true, "PAD_CHAR_TO_FULL_LENGTH": true, "PIPES_AS_CONCAT": true, "POSTGRESQL": true,
	"REAL_AS_FLOAT": true, "SIMULTANEOUS_ASSIGNMENT": true, "TIME_ROUND_FRACTIONAL": true, "TIME_TRUNCATE_FRACTIONAL": true}

// ownMode is the sql_mode for Risso's own SQL, in place of another: what rows may hold stays the server's, how SQL is read is not.
func ownMode(mode string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(mode, ","), func(m string) bool { return readsOtherwise[m] }), ",")
}

// LeftOutModes are the modes of the server's sql_mode that Risso's own SQL is sent without.
func (s Server) LeftOutModes() []string {
	return slices.DeleteFunc(strings.Split(s.SQLMode, ","), func(m string) bool { return !readsOtherwise[m] })
}

func setMode(mode string) string {
	return "SET SESSION /* risso: SQL as it is meant */ sql_mode = " + Literal(mode)
}

// InTheirMode runs f, which sends the server a statement that is not Risso's, under the sql_mode that it expects: Server.SQLMode.
func (c *Conn) InTheirMode(ctx context.Context, f func() error) error {
	own := ownMode(c.Server.SQLMode)
	if own == c.Server.SQLMode {
		return f()
	}
	if err := c.Exec(ctx, setMode(c.Server.SQLMode)); err != nil {
		return fmt.Errorf("set the statement's sql_mode: %w", err)
	}
	err := f()
	if serr := c.Exec(ctx, setMode(own)); err == nil && serr != nil {
		return fmt.Errorf("set Risso's own sql_mode: %w", serr)
	}
	return err
}

// Dialect is how the server reads statements that are not Risso's.
func (s Server) Dialect() sqltext.Dialect { return s.DialectOf(s.SQLMode) }

// DialectOf is how the server reads statements under a sql_mode; "" is one that changes nothing of how they are read.
func (s Server) DialectOf(mode string) sqltext.Dialect {
	return sqltext.Dialect{MariaDB: s.MariaDB(), Version: int(s.Number)}.WithMode(mode)
}

// IgnoreRow is for statements whose rows say nothing.
func IgnoreRow([]sqldriver.Value) error { return nil }

// Of is what a server of that kind is able to do, apart from how one of them is set.
func Of(s fleet.Server) Server { return Server{Server: s} }

// ownID is the statement that asks for the Seat's ID.
func (s Server) ownID() string {
	if s.MariaDB() {
		return "SELECT /* risso: who is it? */ CONCAT(@@gtid_domain_id, '-', @@server_id)"
	}
	return "SELECT /* risso: who is it? */ @@server_uuid"
}

// atLeast reports whether a MySQL or Percona Server has this version or a newer one.
func (s Server) atLeast(number fleet.Version) bool { return s.AtLeast(number, fleet.Never) }

// GrantsToPublic reports whether something can be granted to everybody: MariaDB since 10.11.
func (s Server) GrantsToPublic() bool { return s.MariaDB() && s.Number >= 101100 }

// KeepsHistory reports whether rows of the past (WITH SYSTEM VERSIONING) can be put back as they were: MariaDB since 10.11.1, by
// system_versioning_insert_history.
func (s Server) KeepsHistory() bool { return s.MariaDB() && s.Number >= 101101 }

// ReplicaStatusStatement is the statement that shows every replication channel.
func (s Server) ReplicaStatusStatement() string {
	switch {
	case s.MariaDB():
		return "SHOW /* risso */ ALL SLAVES STATUS"
	case s.atLeast(80022): // the old words were removed in 8.4
		return "SHOW /* risso */ REPLICA STATUS"
	default:
		return "SHOW /* risso */ SLAVE STATUS"
	}
}

// ReplicaPrivilege is what ReplicaStatusStatement needs.
func (s Server) ReplicaPrivilege() string {
	if s.MariaDB() && s.Number >= 100500 {
		return "REPLICA MONITOR"
	}
	return "REPLICATION CLIENT"
}

// QuotedAccount is CURRENT_USER() with quotes, ready for a GRANT.
func (s Server) QuotedAccount() string { return QuoteAccount(s.Account) }

// QuoteAccount is an account, user@host or the name of a role, as SQL takes it.
func QuoteAccount(name string) string {
	at := strings.LastIndexByte(name, '@') // the name of a user may have one, a host has none
	if at < 0 {
		return Literal(name)
	}
	return Literal(name[:at]) + "@" + Literal(name[at+1:])
}
