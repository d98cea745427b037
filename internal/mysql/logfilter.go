package mysql

import (
	"context"
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
)

// LogFilter is what a server leaves out of its binary logs by binlog-do-db and binlog-ignore-db: what is changed there can be neither
// replicated nor rolled forward. Source: MySQL manual, "Binary Logging Options and Variables".
type LogFilter struct {
	Do     []string // only what is changed in these schemas is written; empty: in all
	Ignore []string // what is changed in these is not
}

// LogFilterOf reads the filter from what the server says about its binary log, a list of names with commas.
func LogFilterOf(status map[string]string) LogFilter {
	names := func(text string) (list []string) {
		for name := range strings.SplitSeq(text, ",") {
			if name != "" {
				list = append(list, name)
			}
		}
		return list
	}
	return LogFilter{names(status["Binlog_Do_DB"]), names(status["Binlog_Ignore_DB"])}
}

// String says what is left out; "" where nothing is.
func (f LogFilter) String() string {
	switch {
	case len(f.Do) > 0: // the server does not look at the other then
		return "its binary logs contain only changes in " + strings.Join(f.Do, ", ") + " (binlog_do_db): the rest cannot be rolled forward"
	case len(f.Ignore) > 0:
		return "its binary logs leave out changes in " + strings.Join(f.Ignore, ", ") + " (binlog_ignore_db): it cannot be rolled forward"
	}
	return ""
}

// Settings are the filter as an option file has it; "" for none.
func (f LogFilter) Settings() string {
	var set []string
	if len(f.Do) > 0 {
		set = append(set, "binlog_do_db="+strings.Join(f.Do, ","))
	}
	if len(f.Ignore) > 0 {
		set = append(set, "binlog_ignore_db="+strings.Join(f.Ignore, ","))
	}
	return strings.Join(set, " ")
}

// LogFilter asks what the server leaves out of its binary logs. Nothing is, where it writes none.
func (c *Conn) LogFilter(ctx context.Context) (LogFilter, error) {
	var rows []map[string]string
	err := c.UnlessLogHeld(ctx, func() (err error) { rows, err = c.Maps(ctx, c.Server.LogStatusStatement()); return err })
	if err != nil {
		if ClassOf(err) == ClassPrivilege {
			err = fleet.WithRemedy(err, c.Server.Grant(c.Server.LogsPrivilege()))
		}
		return LogFilter{}, fmt.Errorf("ask what the binary logs leave out: %w", err)
	}
	if len(rows) == 0 {
		return LogFilter{}, nil
	}
	return LogFilterOf(rows[0]), nil
}

// LogStatusStatement shows the place in the binary log, and what is left out of it.
func (s Server) LogStatusStatement() string {
	if s.atLeast(80200) { // the old words were removed in 8.4
		return "SHOW /* risso: how far is the binary log? */ BINARY LOG STATUS"
	}
	return "SHOW /* risso: how far is the binary log? */ MASTER STATUS"
}

// replicaWords turns the words of MySQL 8.0.22 and later into those before.
var replicaWords = strings.NewReplacer("Replica_", "Slave_", "Source_", "Master_", "_Source", "_Master", "Replica", "Slave")

// OldReplicaWords is the name of a column of SHOW REPLICA STATUS as servers before MySQL 8.0.22 have it, and MariaDB.
func OldReplicaWords(column string) string { return replicaWords.Replace(column) }

// replicaSettings turns the names of settings and status variables of MySQL 8.0.26 and later into those before. Replication kept its name.
var replicaSettings = strings.NewReplacer("replication", "replication", "replica", "slave", "source", "master")

// OldReplicaVariable is the name of a variable about replication as servers before MySQL 8.0.26 have it, and MariaDB, in lower case.
func OldReplicaVariable(name string) string { return replicaSettings.Replace(strings.ToLower(name)) }
