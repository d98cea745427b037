package mysql

import (
	"fmt"
	"time"
)

// EndOfLife is when the makers of a server's series end, or ended, its maintenance.
type EndOfLife struct {
	Series string
	Ends   time.Time
	Long   bool   // it is, or was, maintained for years
	Next   string // the series to go to
	Source string // where the date is from, and of when the table is
}

// endsWritten is when the table was written: what was decided later is not in it.
var endsWritten = time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)

// The policies that the dates are from.
const (
	oraclePolicy  = "Oracle Lifetime Support Policy, Technology Products (the end of Extended Support)"
	mariadbPolicy = "MariaDB Foundation, maintenance policy (mariadb.org/about/#maintenance-policy)"
)

// seriesEnd is a line of the tables.
type seriesEnd struct {
	series, ends string
	long         bool
}

// mysqlEnds has the series of MySQL; one that is not maintained for years ends with the next one's release. Percona Server follows it.
var mysqlEnds = []seriesEnd{
	{"5.1", "2013-12-31", true}, {"5.5", "2018-12-31", true}, {"5.6", "2021-02-28", true}, {"5.7", "2023-10-31", true}, {"8.0", "2026-04-30", true},
	{"8.1", "2023-10-25", false}, {"8.2", "2023-12-14", false}, {"8.3", "2024-04-10", false}, {"8.4", "2032-04-30", true},
	{"9.0", "2024-10-15", false}, {"9.1", "2025-01-21", false}, {"9.2", "2025-04-15", false}, {"9.3", "2025-07-22", false}, {"9.4", "2025-10-21", false},
	{"9.5", "2026-01-20", false}, {"9.6", "2026-04-21", false},
}

// mariadbEnds has the series of MariaDB.
var mariadbEnds = []seriesEnd{
	{"5.5", "2020-04-11", true}, {"10.0", "2019-03-31", true}, {"10.1", "2020-10-17", true}, {"10.2", "2022-05-23", true}, {"10.3", "2023-05-25", true},
	{"10.4", "2024-06-18", true}, {"10.5", "2025-06-24", true}, {"10.6", "2026-07-06", true}, {"10.7", "2023-02-09", false}, {"10.8", "2023-05-20", false},
	{"10.9", "2023-08-22", false}, {"10.10", "2023-11-17", false}, {"10.11", "2028-02-16", true}, {"11.0", "2024-06-06", false}, {"11.1", "2024-08-21", false},
	{"11.2", "2024-11-21", false}, {"11.3", "2024-05-29", false}, {"11.4", "2029-05-29", true}, {"11.5", "2024-11-21", false}, {"11.6", "2025-02-13", false},
	{"11.7", "2025-05-12", false}, {"11.8", "2028-06-04", true}, {"12.0", "2025-11-07", false},
}

// EndOfLife is when the server's series ends; false if no date is known for it.
func (s Server) EndOfLife() (EndOfLife, bool) {
	list, source, next := mysqlEnds, oraclePolicy, "8.4, then 9.7"
	if s.MariaDB() {
		list, source, next = mariadbEnds, mariadbPolicy, "11.8"
	}
	if s.atLeast(80400) {
		next = "9.7"
	}
	for _, e := range list {
		if e.series != s.Number.Series() {
			continue
		}
		ends, err := time.Parse(time.DateOnly, e.ends)
		if err != nil {
			return EndOfLife{}, false
		}
		return EndOfLife{Series: e.series, Ends: ends, Long: e.long, Next: next, Source: fmt.Sprintf("%s, as of %s", source, endsWritten.Format(time.DateOnly))}, true
	}
	return EndOfLife{}, false
}
