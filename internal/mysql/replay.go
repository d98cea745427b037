package mysql

import (
	"context"
	"fmt"
)

// ReplayWords are the statements and limits in which servers differ when binary logs are replayed.
type ReplayWords struct {
	Begin       string // prepares the session
	DetachXA    bool   // a session may go on after XA PREPARE
	SQLModeMask uint64 // bits of sql_mode that the server knows
	Original    bool   // original_commit_timestamp can be set (MySQL 8.0.1)
	Versions    bool   // original_server_version can be set (MySQL 8.0.14)
}

// Replay returns the words of a server.
func (s Server) Replay() ReplayWords {
	w := ReplayWords{SQLModeMask: 1<<64 - 1}
	// The session has no time zone, character set or sql_mode of its own: each statement brings those it ran under.
	w.Begin = "SET /* risso: replay binary logs */ SESSION wait_timeout = 2147483, SESSION sql_mode = '', SESSION character_set_client = utf8mb4, SESSION character_set_results = NULL"
	if s.MariaDB() {
		w.Begin += ", SESSION max_statement_time = 0"
		return w
	}
	w.Begin += ", SESSION pseudo_slave_mode = 1"
	if s.atLeast(80000) { // modes of other databases and NO_AUTO_CREATE_USER were removed
		w.SQLModeMask = 1<<33 - 1 - 0x3ff00 - 1<<28
	}
	w.Original, w.Versions = s.atLeast(80001), s.atLeast(80014)
	return w
}

// DisableOnReplica is the state of an event that is switched off because it came from another server. Sources: MySQL manual, "CREATE EVENT
// Statement" (the other word since 8.2); MariaDB documentation, "CREATE EVENT".
func (s Server) DisableOnReplica() string {
	if !s.MariaDB() && s.atLeast(80200) {
		return "DISABLE ON REPLICA"
	}
	return "DISABLE ON SLAVE"
}

// ClientCharset is a number for character_set_client that means the same as that of a query event. MariaDB's collations of
// UCA 14 (10.10.1 and later, the default since 11.5) have numbers that the variable does not take: 2048 + 256 for each
// character set, UTF-8 of three bytes and of four first (its strings/ctype-uca1400.h). A client has no other one of them.
func ClientCharset(collation uint16) uint16 {
	const uca1400, each, utf8mb3GeneralCI, utf8mb4GeneralCI = 2048, 256, 33, 45
	switch {
	case collation < uca1400 || collation >= uca1400+2*each:
		return collation
	case collation < uca1400+each:
		return utf8mb3GeneralCI
	}
	return utf8mb4GeneralCI
}

// NextGTID is the statement that sets the next transaction's GTID; for none, the server's own numbering.
func (s Server) NextGTID(g GTID) string {
	switch {
	case s.MariaDB() && g.IsZero():
		return "SET gtid_seq_no = 0"
	case s.MariaDB():
		return fmt.Sprintf("SET gtid_domain_id = %d, server_id = %d, gtid_seq_no = %d", g.Domain, g.Server, g.Number)
	case g.IsZero():
		return "SET gtid_next = 'AUTOMATIC'"
	}
	return "SET gtid_next = '" + g.String() + "'"
}

// KeepsGTIDs reports whether the server keeps the GTIDs that NextGTID sets, so that they show what was replayed.
func KeepsGTIDs(ctx context.Context, c *Conn) (bool, error) {
	statement := "SELECT /* risso: are GTIDs kept? */ @@GLOBAL.gtid_mode IN ('ON', 'ON_PERMISSIVE') AS k"
	if c.Server.MariaDB() {
		statement = "SELECT /* risso: are GTIDs kept? */ @@GLOBAL.log_bin AS k"
	}
	rows, err := c.Maps(ctx, statement)
	return err == nil && len(rows) > 0 && rows[0]["k"] == "1", err
}
