package advise

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/plan"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// Load is what a server's statements cost, by class.
type Load struct {
	By      string // performance_schema, or the slow log
	Span    time.Duration
	Seconds float64 // of all classes
	Classes []Class // that cost most, the most first
	Writes  map[mysql.TableName]Written
}

// Class is a class of statements with what its plan says.
type Class struct {
	ID          string
	Fingerprint string
	Verb        string
	Database    string   // the default one of its sample
	Sample      string   // "" if none is known
	Samples     []string // all that are whole, in the same default database
	Tables      []mysql.TableName
	fleet.Cost
	Scans   []Scan
	Indexes []plan.Advice
	Casts   []string // what the server says of comparisons for which it cannot use an index (error 1739)
	Problem string   // why nothing is known of its plan
}

// Scan is a table that a class reads as a whole.
type Scan struct {
	Table mysql.TableName
	Rows  float64
}

// Written is how often a table is written.
type Written struct {
	Rows    float64 // all that were inserted, updated or deleted
	Entry   float64 // seconds that one INSERT of a row took for each of the table's indexes, the rows' own among them; 0: unknown
	Indexes int
}

// LeastShare is the least part of all seconds that a class takes of which there is a finding.
const LeastShare = 0.005

const (
	leastRows     = 1000 // that a scan reads
	leastExamined = 100  // rows read for one that is returned
)

// OfLoad looks at the classes of statements that cost most.
func OfLoad(s *Server, l *Load) []Finding {
	var list []Finding
	if l == nil || l.Span <= 0 {
		return nil
	}
	for i := range l.Classes {
		if c := &l.Classes[i]; l.Seconds <= 0 || c.Seconds/l.Seconds >= LeastShare {
			list = append(list, l.ofClass(s, c)...)
		}
	}
	return append(list, l.missing(s)...)
}

// LoadChecks are what OfLoad looks for.
func LoadChecks() []Check {
	return []Check{
		{"query.full_scan", "classes of statements that read whole tables", "sys.statements_with_full_table_scans"},
		{"query.examined_per_sent", "classes of statements that read many rows for each that they return", "pt-query-digest"},
		{"query.tmp_disk", "classes of statements whose temporary tables are on disk", "sys.statements_with_temp_tables"},
		{"query.implicit_cast", "comparisons between types or collations for which no index can be used", "warning 1739"},
		{"index.missing", "indexes that would spare the classes that cost most their reads", ""},
	}
}

// ofClass is what is wrong with one class.
func (l *Load) ofClass(s *Server, c *Class) (list []Finding) {
	per := func(n int64) float64 { return float64(n) / max(1, float64(c.Calls)) }
	finding := func(id, what, why, advice string, evidence ...string) *Finding {
		list = append(list, Finding{ID: id, Object: c.ID, Severity: severityOf(c.Seconds / l.Span.Seconds()), What: what, Why: why, Advice: advice, Sure: Certain,
			Evidence: append([]string{c.short(), l.costs(c)}, evidence...), Cost: Cost{Seconds: c.Seconds / l.Span.Seconds()}, Since: s.Now.Add(-l.Span)})
		return &list[len(list)-1]
	}
	advised := ""
	if len(c.Indexes) > 0 && slices.ContainsFunc(c.Indexes, func(a plan.Advice) bool { return a.Statement != "" }) {
		advised = "index.missing has an index for it"
	}
	switch {
	case len(c.Scans) > 0:
		for _, scan := range c.Scans {
			finding("query.full_scan", "a class of statements reads the whole table "+scan.Table.Schema+"."+scan.Table.Name, "it takes longer the more rows there are, and puts what others need out of the buffer pool",
				cmp.Or(advised, "risso explain says what it needs; perhaps it does need all rows"), digits.Roughly(int64(scan.Rows), "row")+" in the table")
		}
	case c.Problem != "" && per(c.NoIndex) >= 0.5 && per(c.RowsExamined) >= leastRows:
		f := finding("query.full_scan", "a class of statements reads a whole table", "it takes longer the more rows there are", "run risso explain with one of its statements", digits.Percent(per(c.NoIndex))+" of its calls read a table without an index")
		f.Sure, f.Doubt = Likely, "its plan is not known: "+c.Problem
	}
	if got := max(1, float64(c.RowsSent+c.RowsAffected)); per(c.RowsExamined) >= leastRows && float64(c.RowsExamined)/got >= leastExamined {
		f := finding("query.examined_per_sent", fmt.Sprintf("a class of statements reads %s rows for each that it returns or changes", digits.Count(float64(c.RowsExamined)/got)), "what is read and thrown away is work that an index spares",
			cmp.Or(advised, "run risso explain with one of its statements"), digits.Roughly(int64(per(c.RowsExamined)), "row")+" examined by a call")
		f.Sure, f.Doubt = Likely, "a sum or a count over all these rows has to read them"
	}
	if c.TmpDiskTables > 0 && per(c.TmpDiskTables) >= 0.1 {
		finding("query.tmp_disk", "a class of statements puts temporary tables on disk", "they are written and read again, by each call", cmp.Or(advised, "an index in the order of its GROUP BY or ORDER BY, or fewer and shorter columns, spare them"),
			fmt.Sprintf("%s on disk in %s", digits.Counted(c.TmpDiskTables, "temporary table"), digits.Counted(c.Calls, "call")))
	}
	if len(c.Casts) > 0 {
		finding("query.implicit_cast", "a class of statements compares a column with a value of another type or collation", "the server converts the column of each row, and cannot find rows by its index", "give the value the type and collation of the column, or the column that of the value", c.Casts...)
	}
	return list
}

// severityOf is how bad so much load is: seconds each second.
func severityOf(load float64) fleet.Severity {
	if load >= 0.1 {
		return fleet.SeverityWarning
	}
	return fleet.SeverityInfo
}

// short is the class in a few words.
func (c *Class) short() string {
	const most = 160
	text := strings.Join(strings.Fields(c.Fingerprint), " ")
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return text
}

// costs says what a class costs.
func (l *Load) costs(c *Class) string {
	share := ""
	if l.Seconds > 0 {
		share = ", " + digits.Percent(c.Seconds/l.Seconds) + " of all statements' time"
	}
	return fmt.Sprintf("%s in %s, %s each%s, as %s counts", digits.Counted(c.Calls, "call"), digits.Span(l.Span), digits.Seconds(c.Seconds/max(1, float64(c.Calls))), share, l.By)
}
