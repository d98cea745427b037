package advise

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/define"
)

// engine finds tables whose rows a crash, or a statement that stops half-way, leaves wrong.
func engine(s *Server, t *Table) []Finding {
	name := strings.ToUpper(t.Engine)
	f := Finding{Object: t.object(), Since: t.Created, Evidence: []string{"engine " + t.Engine, digits.Roughly(int64(t.Rows), "row"), digits.Bytes(t.Data)}, Cost: Cost{Bytes: t.Data}}
	switch name {
	case "MYISAM":
		f.Severity, f.What = fleet.SeverityWarning, "table "+t.object()+" is of MyISAM"
		f.Why = "it has no transactions: a statement that fails half-way stays half done; a crash damages it; each write locks the whole table; backups have to lock it"
		f.Cost.Risk = "rows are lost by a crash"
	case "ARIA":
		f.Severity, f.What = fleet.SeverityInfo, "table "+t.object()+" is of Aria"
		f.Why = "it survives crashes, but has no transactions: a statement that fails half-way stays half done, and each write locks the whole table"
	case "MEMORY":
		f.Severity, f.What, f.Why = fleet.SeverityInfo, "table "+t.object()+" is of MEMORY", "it is empty after a restart, and replicas then differ"
		f.Cost.Risk, f.Sure, f.Doubt = "rows are lost by a restart", Likely, "it may be meant so"
		return []Finding{f}
	default:
		return nil
	}
	if s.galera() {
		f.Severity = fleet.SeverityCritical
		f.Why += "; Galera does not replicate it"
	}
	if why := notInnoDB(s, t); why != "" {
		f.Advice = "InnoDB cannot have it as it is: " + why
		return []Finding{f}
	}
	f.Statement, f.Undo, f.Effect = t.alter()+"ENGINE=InnoDB", t.alter()+"ENGINE="+t.Engine, copies
	if v, ok := t.option("ROW_FORMAT"); ok && !is("DYNAMIC", "COMPACT", "REDUNDANT", "COMPRESSED", "DEFAULT")(v) {
		f.Statement += ", ROW_FORMAT=DEFAULT"
		f.Undo += ", ROW_FORMAT=" + v
	}
	f.Sure, f.Doubt = Likely, "COUNT(*) without WHERE then counts rows, and the table takes more room"
	return []Finding{f}
}

// option is the value of an option of a table's definition.
func (t *Table) option(name string) (string, bool) {
	at := strings.LastIndex(t.Create, "\n)")
	if at < 0 {
		return "", false
	}
	for _, w := range strings.Fields(t.Create[at:]) {
		if k, v, ok := strings.Cut(w, "="); ok && strings.EqualFold(k, name) {
			return v, true
		}
	}
	return "", false
}

// rowFormat finds tables of InnoDB in a format of MySQL 5.0 or before.
func rowFormat(_ *Server, t *Table) []Finding {
	if !t.innodb() || !is("Compact", "Redundant")(t.RowFormat) {
		return nil
	}
	old, named := t.option("ROW_FORMAT")
	if !named {
		old = "DEFAULT"
	}
	if !strings.EqualFold(old, t.RowFormat) {
		old = strings.ToUpper(t.RowFormat)
	}
	return []Finding{{Object: t.object(), Severity: fleet.SeverityInfo, What: "table " + t.object() + " has the row format " + strings.ToUpper(t.RowFormat), Since: t.Created,
		Why:      "768 bytes of each long value are kept in its row, so that fewer rows fit on a page, and indexes end after 767 bytes",
		Evidence: []string{"row format " + t.RowFormat, digits.Bytes(t.Data)}, Statement: t.alter() + "ROW_FORMAT=DYNAMIC", Undo: t.alter() + "ROW_FORMAT=" + old, Effect: rebuilds}}
}

// oldTypes finds columns of types that are going to be removed, or do not keep what they are given. Sources: MySQL manual, "Numeric Data Type
// Syntax" (FLOAT(M,D), ZEROFILL and display widths are deprecated since 8.0.17), "2-Digit YEAR(2) Limitations", and "Fractional Seconds in
// Time Values" (temporal types of before 5.6.4).
func oldTypes(s *Server, t *Table) (list []Finding) {
	for _, c := range t.Columns {
		full := strings.ToLower(c.FullType)
		f := Finding{Object: t.object() + "." + c.Name, Severity: fleet.SeverityInfo, Evidence: []string{c.Name + " " + c.FullType}, Since: t.Created}
		to := ""
		switch {
		case strings.Contains(full, "zerofill"):
			f.What, f.Why = "column "+f.Object+" is ZEROFILL", "it only changes how the number is shown; MySQL is going to remove it"
			f.Sure, f.Doubt = Likely, "programs may rely on the zeros: they then need LPAD()"
			to = strings.TrimSpace(strings.ReplaceAll(full, "zerofill", ""))
			if !strings.Contains(to, "unsigned") {
				to += " unsigned"
			}
			to = withoutWidth(to)
		case (c.Type == "float" || c.Type == "double") && strings.Contains(full, ","):
			f.What, f.Why = "column "+f.Object+" is "+strings.ToUpper(c.Type)+"(M,D)", "it rounds in a way that no other database does; MySQL is going to remove it"
			f.Advice = "DECIMAL keeps the digits that are given; " + strings.ToUpper(c.Type) + " alone keeps what is measured"
		case full == "year(2)":
			f.What, f.Why, f.Severity = "column "+f.Object+" is YEAR(2)", "it cannot tell 1970 from 2070; MySQL 5.7 does not know it", fleet.SeverityWarning
			to = "year(4)"
		default:
			if strings.Contains(t.Create, "/* 5.5 binary format */") && (c.Type == "datetime" || c.Type == "timestamp" || c.Type == "time") && strings.Contains(t.ColumnText(c.Name, c.FullType), "5.5 binary format") {
				f.What, f.Why = "column "+f.Object+" has the format of before MySQL 5.6.4", "it takes more room, has no fractions of a second, and MySQL 8.0 cannot open the table"
				f.Statement, f.Effect = t.alter()+"FORCE", copies
				list = append(list, f)
			}
			continue
		}
		if to != "" && s.columnsReferring(t, c.Name) == "" {
			f.Statement, f.Undo, f.Effect = t.alter()+"MODIFY COLUMN "+t.ColumnText(c.Name, to), t.alter()+"MODIFY COLUMN "+t.ColumnText(c.Name, c.FullType), "at once if only how it is shown changes, else it copies the table"
		}
		list = append(list, f)
	}
	return list
}

// withoutWidth takes the display width out of an integer type.
func withoutWidth(full string) string {
	before, rest, ok := strings.Cut(full, "(")
	_, after, closed := strings.Cut(rest, ")")
	if !ok || !closed || define.LargestInteger(before, false) == 0 {
		return full
	}
	return before + after
}

// indexBytesLimit and rowBytesLimit are how long a key, and a row without its TEXT and BLOB columns, can be. Source: MySQL manual, "InnoDB Limits",
// "Limits on Table Column Count and Row Size".
const (
	indexBytesLimit = 3072
	rowBytesLimit   = 65535
)

// oldCharset finds tables with text of utf8mb3, which MySQL is going to remove (MySQL manual, "The utf8mb3 Character Set").
func oldCharset(s *Server, t *Table) []Finding {
	old := func(charset string) bool { return charset == "utf8" || charset == "utf8mb3" }
	var columns []string
	own := false // a column says a character set or collation itself
	for _, c := range t.Columns {
		if old(c.Charset) {
			columns = append(columns, c.Name)
		}
		own = own || c.Charset != "" && (c.Charset != t.Charset || c.Collation != t.Collation)
	}
	if len(columns) == 0 {
		return nil
	}
	f := Finding{Object: t.object(), Severity: fleet.SeverityInfo, What: "table " + t.object() + " keeps text as utf8mb3", Since: t.Created,
		Why:      "characters of four bytes, such as emoji, do not fit: statements fail, or text is cut there; MySQL is going to remove it",
		Evidence: []string{digits.Counted(len(columns), "column") + ": " + strings.Join(columns[:min(len(columns), exampleObjects)], ", "), digits.Roughly(int64(t.Rows), "row")}}
	if why := notWide(s, t, own); why != "" {
		f.Advice = "it cannot be done by one statement: " + why
		return []Finding{f}
	}
	collation := t.Collation
	if collation == "" {
		collation = "utf8mb3_general_ci"
	}
	_, kind, _ := strings.Cut(collation, "_")
	f.Statement = t.alter() + "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_" + kind
	f.Undo = t.alter() + "CONVERT TO CHARACTER SET utf8mb3 COLLATE " + collation
	for _, c := range t.Columns { // a TEXT becomes a MEDIUMTEXT, so that it has room for as many characters
		if strings.HasSuffix(c.Type, "text") {
			f.Undo += ", MODIFY COLUMN " + t.ColumnText(c.Name, c.FullType)
		}
	}
	f.Effect, f.Sure, f.Doubt = copies, Likely, "joins with tables that are still utf8mb3 may then not use an index of theirs: do all that are joined together; a view or program that names a collation of utf8mb3 for such a column fails; the undo fails once there are characters of four bytes"
	return []Finding{f}
}

// notWide says why a table's text cannot become utf8mb4 by one statement; "" if it can.
func notWide(s *Server, t *Table, own bool) string {
	if own {
		return "its columns have several character sets or collations"
	}
	if !strings.HasPrefix(t.Charset, "utf8") {
		return "its default is another character set"
	}
	row := 0
	for _, c := range t.Columns {
		if c.Charset != "" && s.columnsReferring(t, c.Name) != "" {
			return "foreign keys tie column " + c.Name + " to others, which have to change with it"
		}
		switch c.Type {
		case "char", "varchar":
			row += 4*chars(c) + 2
		default:
			row += 12
		}
		if c.Generated && c.Charset != "" {
			return "column " + c.Name + " is made by an expression"
		}
	}
	if row > rowBytesLimit {
		return "its rows would be too long"
	}
	if t.Partitioned {
		return "it has partitions"
	}
	limit := keyLimit(t)
	for _, k := range t.Keys {
		sum := 0
		for _, p := range k.Parts {
			c, ok := t.Column(p.Column)
			if !ok {
				return "index " + k.Name + " is over an expression"
			}
			n := p.Prefix
			if n == 0 {
				n = chars(c)
			}
			if c.Charset != "" && 4*n > min(limit, 767) && limit == 767 || c.Charset != "" && 4*n > limit {
				return fmt.Sprintf("index %s would be longer than %d bytes", k.Name, limit)
			}
			sum += 4 * n
		}
		if sum > limit && !k.Special {
			return fmt.Sprintf("index %s would be longer than %d bytes", k.Name, limit)
		}
	}
	return ""
}

// chars is how many characters, or bytes, a column's type allows; 0 if it does not say.
func chars(c define.TableColumn) int {
	_, rest, _ := strings.Cut(c.FullType, "(")
	rest, _, _ = strings.Cut(rest, ")")
	n, _ := strconv.Atoi(strings.TrimSpace(rest))
	return n
}

// keyLimit is how many bytes a key of the table can have.
func keyLimit(t *Table) int {
	switch {
	case is("MyISAM", "Aria")(t.Engine):
		return 1000
	case is("Compact", "Redundant")(t.RowFormat):
		return 767
	}
	return indexBytesLimit
}

// unmeasured finds tables of InnoDB without statistics.
func unmeasured(_ *Server, t *Table) []Finding {
	if !t.innodb() || !t.Unmeasured || t.Rows < UnmeasuredRows {
		return nil
	}
	f := Finding{Object: t.object(), Severity: fleet.SeverityInfo, What: "table " + t.object() + " has no statistics that stay", Why: "plans are made from samples of few pages, which change whenever the table is opened anew",
		Evidence: []string{digits.Roughly(int64(t.Rows), "row"), "no entry in mysql.innodb_table_stats"}}
	if v, ok := t.option("STATS_PERSISTENT"); ok && v == "0" {
		f.Statement, f.Undo, f.Effect = t.alter()+"STATS_PERSISTENT=DEFAULT", t.alter()+"STATS_PERSISTENT=0", "at once; then run ANALYZE TABLE "+t.name().String()
		return []Finding{f}
	}
	f.Statement, f.Effect = "ANALYZE TABLE "+t.name().String(), "reads some pages of each index; in MySQL before 8.0.24 statements that begin then wait for long ones that run"
	return []Finding{f}
}
