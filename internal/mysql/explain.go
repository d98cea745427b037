package mysql

import (
	"math"
	"strconv"
	"time"
)

// Explain is one way in which a server tells a query plan.
type Explain struct {
	Name    string // "json", "json2", "tree" or "table"
	Session string // a statement that has to run first in the session, or ""
	Prefix  string // what precedes the statement to explain
	Rows    bool   // the answer is tabular, a row a table, and not one text
}

// Explains are the ways in which this server tells a plan without running the statement, the one that tells most
// first. Version 1 of MySQL's JSON comes before version 2 because it alone names possible keys.
// (https://dev.mysql.com/doc/refman/9.4/en/explain.html, https://mariadb.com/kb/en/explain-format-json/)
func (s Server) Explains() []Explain {
	if s.MariaDB() {
		table := Explain{Name: "table", Prefix: "EXPLAIN /* risso: plan */ EXTENDED ", Rows: true}
		if s.Number < 100100 {
			return []Explain{table}
		}
		return []Explain{{Name: "json", Prefix: "EXPLAIN /* risso: plan */ FORMAT=JSON "}, table}
	}
	if !s.atLeast(50600) {
		return []Explain{{Name: "table", Prefix: "EXPLAIN /* risso: plan */ EXTENDED ", Rows: true}}
	}
	list := []Explain{{Name: "json", Prefix: "EXPLAIN /* risso: plan */ FORMAT=JSON "}}
	if s.atLeast(80300) {
		list[0].Session = "SET SESSION /* risso: plan */ explain_json_format_version = 1"
		list = append(list, Explain{Name: "json2", Session: "SET SESSION /* risso: plan */ explain_json_format_version = 2", Prefix: "EXPLAIN /* risso: plan */ FORMAT=JSON "})
	}
	if s.atLeast(80016) {
		list = append(list, Explain{Name: "tree", Prefix: "EXPLAIN /* risso: plan */ FORMAT=TREE "})
	}
	return append(list, Explain{Name: "table", Prefix: "EXPLAIN /* risso: plan */ FORMAT=TRADITIONAL ", Rows: true})
}

// ExplainsWrites reports whether EXPLAIN takes UPDATE, DELETE, INSERT and REPLACE: MySQL since 5.6.3, MariaDB since 10.0.5. A server of
// unknown version is assumed to be new. (https://dev.mysql.com/doc/refman/5.7/en/explain.html, https://mariadb.com/kb/en/explain/)
func (s Server) ExplainsWrites() bool { return s.Number == 0 || s.AtLeast(50600, 100000) }

// ExplainAnalyzes are the ways in which this server runs a statement and tells what its plan really did, the one
// that tells most first; none where the server cannot: MySQL before 8.0.18, MariaDB before 10.1.
func (s Server) ExplainAnalyzes() []Explain {
	var list []Explain
	switch {
	case s.MariaDB() && s.Number >= 100100:
		list = []Explain{{Name: "json", Prefix: "ANALYZE /* risso: plan */ FORMAT=JSON "}, {Name: "table", Prefix: "ANALYZE /* risso: plan */ ", Rows: true}}
	case s.atLeast(80300):
		list = []Explain{{Name: "json2", Session: "SET SESSION /* risso: plan */ explain_json_format_version = 2", Prefix: "EXPLAIN /* risso: plan */ ANALYZE FORMAT=JSON "}}
	}
	if s.atLeast(80021) {
		list = append(list, Explain{Name: "tree", Prefix: "EXPLAIN /* risso: plan */ ANALYZE FORMAT=TREE "})
	} else if s.atLeast(80018) {
		list = append(list, Explain{Name: "tree", Prefix: "EXPLAIN /* risso: plan */ ANALYZE "})
	}
	return list
}

// ExplainConnection is how this server tells the plan of what another connection runs, with the statement complete.
// MariaDB has it as SHOW EXPLAIN, with JSON since 10.9.
func (s Server) ExplainConnection(id int64) []Explain {
	n := strconv.FormatInt(id, 10)
	if s.MariaDB() {
		table := Explain{Name: "table", Prefix: "SHOW /* risso: plan */ EXPLAIN FOR " + n, Rows: true}
		if s.Number < 100900 {
			return []Explain{table}
		}
		return []Explain{{Name: "json", Prefix: "SHOW /* risso: plan */ EXPLAIN FORMAT=JSON FOR " + n}, table}
	}
	if !s.atLeast(50702) {
		return nil
	}
	list := s.Explains()
	for i := range list {
		list[i].Prefix += "FOR CONNECTION " + n
	}
	return list
}

// NamesSubqueries reports whether the JSON plan of this server distinguishes dependent and uncacheable subqueries; MariaDB
// tells them in tabular EXPLAIN only.
func (s Server) NamesSubqueries() bool { return !s.MariaDB() }

// BoundStatements are the statements that bound how long this session's next ones may run and wait. The bound of
// MySQL is for SELECT only (max_execution_time).
func (s Server) BoundStatements(d time.Duration) []string {
	seconds := strconv.Itoa(max(1, int(math.Ceil(d.Seconds()))))
	list := []string{"SET SESSION /* risso: bound */ lock_wait_timeout = " + seconds, "SET SESSION /* risso: bound */ innodb_lock_wait_timeout = " + seconds}
	switch {
	case s.MariaDB() && s.Number >= 100101:
		list = append(list, "SET SESSION /* risso: bound */ max_statement_time = "+strconv.FormatFloat(d.Seconds(), 'f', 3, 64))
	case s.atLeast(50708):
		list = append(list, "SET SESSION /* risso: bound */ max_execution_time = "+strconv.FormatInt(max(1, d.Milliseconds()), 10))
	}
	return list
}

// FreshStatistics is the statement after which this session's information_schema tells the present sizes of tables
// and not those of up to a day ago (MySQL 8.0 keeps them), or "".
func (s Server) FreshStatistics() string {
	if s.atLeast(80003) {
		return "SET SESSION /* risso: plan */ information_schema_stats_expiry = 0"
	}
	return ""
}

// ServesDates reports whether DATE(column) and YEAR(column), compared with a constant, are read as a range of an index on the
// column: MariaDB since 11.1 (https://jira.mariadb.org/browse/MDEV-8320).
func (s Server) ServesDates() bool { return s.MariaDB() && s.Number >= 110101 }

// ServesUpper reports whether UPPER(column), compared with constants by = or IN, is looked up in an index on the column, where the
// column's collation allows it: MariaDB since 11.3 (https://jira.mariadb.org/browse/MDEV-31496).
func (s Server) ServesUpper() bool { return s.MariaDB() && s.Number >= 110300 }

// DescendingIndexes reports whether an index of this server can keep a column in descending order; others read DESC in
// CREATE INDEX and forget it (https://dev.mysql.com/doc/refman/8.0/en/descending-indexes.html, https://mariadb.com/kb/en/descending-indexes/).
func (s Server) DescendingIndexes() bool {
	if s.MariaDB() {
		return s.Number >= 100800
	}
	return s.atLeast(80001)
}
