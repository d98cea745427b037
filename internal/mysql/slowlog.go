package mysql

import (
	"context"
	sqldriver "database/sql/driver"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// SlowLog is how a server writes its slow log.
type SlowLog struct {
	On      bool
	ToFile  bool    // log_output has FILE
	File    string  // absolute
	Seconds float64 // long_query_time: only statements that took longer are written
	MinRows int64   // min_examined_row_limit: only statements that read so many rows
	// RateLimit says that one in so many statements (RateBySession: sessions) is written; 0 or 1: all. MariaDB and Percona Server.
	RateLimit     int64
	RateBySession bool
	Explains      bool  // each entry has its plan (MariaDB's log_slow_verbosity=explain)
	Written       int64 // Slow_queries: how many statements were slow since the server started, also while the log was off
}

// SlowLog reads how the server writes its slow log. (MySQL manual, "The Slow Query Log"; MariaDB documentation, "Slow Query
// Log Overview"; Percona Server documentation, "Slow query log".)
func (c *Conn) SlowLog(ctx context.Context) (SlowLog, error) {
	v := map[string]string{}
	keep := func(row []sqldriver.Value) error {
		v[strings.ToLower(text(row[0]))] = text(row[1])
		return nil
	}
	err := c.Query(ctx, `SHOW /* risso: how the slow log is written */ GLOBAL VARIABLES WHERE Variable_name IN ('slow_query_log', 'slow_query_log_file', 'log_output',
 'long_query_time', 'min_examined_row_limit', 'log_slow_rate_limit', 'log_slow_rate_type', 'log_slow_verbosity')`, keep)
	if err != nil {
		return SlowLog{}, err
	}
	if err := c.Query(ctx, "SHOW /* risso: how much the slow log was written */ GLOBAL STATUS LIKE 'Slow\\_queries'", keep); err != nil {
		return SlowLog{}, err
	}
	s := SlowLog{On: v["slow_query_log"] == "ON" || v["slow_query_log"] == "1", File: v["slow_query_log_file"]}
	for _, o := range strings.Split(strings.ToUpper(v["log_output"]), ",") {
		s.ToFile = s.ToFile || o == "FILE"
		if o == "NONE" { // wins over all others
			s.ToFile = false
			break
		}
	}
	if s.File != "" && !filepath.IsAbs(s.File) {
		s.File = filepath.Join(c.Server.DataDir, s.File)
	}
	s.Seconds, _ = strconv.ParseFloat(v["long_query_time"], 64)
	s.MinRows, _ = strconv.ParseInt(v["min_examined_row_limit"], 10, 64)
	s.RateLimit, _ = strconv.ParseInt(v["log_slow_rate_limit"], 10, 64)
	s.RateBySession = v["log_slow_rate_type"] == "session"
	s.Written, _ = strconv.ParseInt(v["slow_queries"], 10, 64)
	if c.Server.MariaDB() {
		for _, o := range strings.Split(v["log_slow_verbosity"], ",") {
			s.Explains = s.Explains || o == "explain" || o == "full" || o == "all"
		}
	}
	return s, nil
}

// SameMachine says whether the server runs on this machine and not behind a tunnel or in a container with files of its own;
// if not, why. The address alone does not tell: an SSH tunnel ends on a local port.
func (c *Conn) SameMachine(ctx context.Context, t Target) (yes bool, why string, err error) {
	here, err := os.Hostname()
	if err != nil {
		return false, "", err
	}
	if here != c.Server.Hostname {
		return false, "the server runs on " + c.Server.Hostname + ", Risso on " + here, nil
	}
	if t.Socket() != "" {
		return true, "", nil
	}
	if !t.Local() {
		return false, "the server's address " + t.Address() + " is not an address of this machine", nil
	}
	// The server sees the very port that this connection has here, unless something stands between.
	local, ok := c.local.(*net.TCPAddr)
	if !ok {
		return false, "", nil
	}
	seen := ""
	err = c.Query(ctx, "SHOW /* risso: from where does the server see Risso? */ PROCESSLIST", func(row []sqldriver.Value) error {
		if text(row[0]) == strconv.FormatInt(c.Server.ConnectionID, 10) {
			seen = text(row[2])
		}
		return nil
	})
	if err != nil {
		return false, "", err
	}
	if !strings.HasSuffix(seen, ":"+strconv.Itoa(local.Port)) {
		return false, "the connection to the server goes through a tunnel or a proxy", nil
	}
	return true, "", nil
}
