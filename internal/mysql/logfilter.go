package mysql

import (
	"context"
	"fmt"
	"strings"
)

// LogFilter is what a server leaves out of its binary logs by binlog-do-db and binlog-ignore-db: what is changed there can be neither
// replicated nor rolled forward. Source: MySQL manual, "Binary Logging Options and Variables".
type LogFilter struct {
	Do     []string // only what is changed in these schemas is written; empty: in all
	Ignore []string // what is changed in these is not
}

// LogFilterOf reads the filter from what the server says of its binary log, where names stand between commas.
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

// LogFilter asks what the server leaves out of its binary logs. Nothing is, where it writes none.
func (c *Conn) LogFilter(ctx context.Context) (LogFilter, error) {
	rows, err := c.Maps(ctx, c.Server.LogStatusStatement())
	if err != nil {
		return LogFilter{}, fmt.Errorf("ask what the binary logs leave out: %w", err)
	}
	if len(rows) == 0 {
		return LogFilter{}, nil
	}
	return LogFilterOf(rows[0]), nil
}
