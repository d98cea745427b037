package mysql

import (
	"context"
	"errors"
	"regexp"
	"strconv"
)

// ErrLogHeld says that the binary log was not asked for its place or size, as the answer would not come.
var ErrLogHeld = errors.New("commits wait for a replica, or for room on the disk, and hold the binary log: who asks how far it is waits as long as they do, beyond the end of its connection")

// heldAfter is for how many seconds a session waits before it is taken for one that holds the log, or waits for who does.
const heldAfter = 2

var logStatement = regexp.MustCompile(`(?is)^\s*SHOW\b.*\b(MASTER\s+STATUS|BINARY\s+LOG\s+STATUS|BINARY\s+LOGS|MASTER\s+LOGS)\b`)

// LogHeld reports whether who asks for the place or the size of the binary log would wait, by the rows of SHOW PROCESSLIST. Where a commit waits for a replica after it
// was logged, those behind it wait with the lock of the log, from the second or third group on; a session that waits for that lock cannot be ended, so that each that asks
// stays. Sources: MYSQL_BIN_LOG::trx_group_commit_leader in sql/log.cc of MariaDB, MYSQL_BIN_LOG::ordered_commit in sql/binlog.cc of MySQL.
func LogHeld(list []map[string]string) bool {
	for _, row := range list {
		seconds, _ := strconv.Atoi(row["Time"])
		if seconds >= heldAfter && (AwaitsReplica(row["State"]) || logStatement.MatchString(row["Info"])) {
			return true
		}
	}
	return false
}

// UnlessLogHeld does f, which asks for the place or the size of the binary log, unless LogHeld.
func (c *Conn) UnlessLogHeld(ctx context.Context, f func() error) error {
	list, err := c.Maps(ctx, "SHOW /* risso: does somebody hold the binary log? */ PROCESSLIST")
	if err != nil {
		return err
	}
	if LogHeld(list) {
		return ErrLogHeld
	}
	return f()
}
