package read

import (
	"context"
	sqldriver "database/sql/driver"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/mysql"
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

// SlowLogOf reads how the server writes its slow log. (MySQL manual, "The Slow Query Log"; MariaDB documentation, "Slow Query
// Log Overview"; Percona Server documentation, "Slow query log".)
func SlowLogOf(ctx context.Context, c *mysql.Conn) (SlowLog, error) {
	v := map[string]string{}
	keep := func(row []sqldriver.Value) error {
		v[strings.ToLower(mysql.Text(row[0]))] = mysql.Text(row[1])
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
