package advise

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/sqltext"
)

// noPrimaryKey finds tables that have no primary key. Where InnoDB takes a unique key over columns that are never NULL in its place, that is the key
// to have (MySQL manual, "Clustered and Secondary Indexes").
func noPrimaryKey(s *Server, t *Table) []Finding {
	if !LacksKey(t) {
		return nil
	}
	f := Finding{Object: t.object(), Severity: fleet.SeverityWarning, What: "table " + t.object() + " has no primary key", Since: t.Created,
		Why:      "InnoDB numbers its rows by one counter that all such tables of the server share, and a replica that applies changes of rows looks for each of them in the whole table",
		Evidence: []string{digits.Roughly(int64(t.Rows), "row"), digits.Bytes(t.Data)},
		Cost:     Cost{Bytes: 6 * t.Rows, Risk: "replicas fall behind"}}
	if !t.innodb() {
		f.Why, f.Cost.Bytes = "a replica that applies changes of rows looks for each of them in the whole table", 0
	}
	if s.galera() {
		f.Why += "; Galera does not support DELETE from it, and members may have its rows in another order"
	}
	if i := implicitKey(t); i >= 0 {
		k := &t.Keys[i]
		f.Severity = fleet.SeverityInfo
		f.Why = "tools, and people, look for a primary key; some refuse the table without"
		if t.innodb() {
			f.What += fmt.Sprintf("; InnoDB takes the unique index %s in its place", k.Name)
		}
		f.Statement = t.alter() + "ADD PRIMARY KEY (" + partsText(k.Parts) + ")"
		f.Undo = t.alter() + "DROP PRIMARY KEY"
		if s.hinted(k.Name) == "" { // else the index would be there twice
			f.Statement += ", DROP INDEX " + mysql.Quote(k.Name)
			f.Undo += ", ADD " + k.Text
		}
		f.Effect = rebuilds
		return []Finding{f}
	}
	if s.GivesKeys() && s.text("sql_generate_invisible_primary_key") == "OFF" {
		f.Evidence = append(f.Evidence, "sql_generate_invisible_primary_key = OFF: if it is ON, new tables get one by themselves")
	}
	for _, c := range KeyCandidates(t) {
		if differ, tested := t.Tested[strings.Join(c, ",")]; tested && differ {
			f.Statement, f.Undo, f.Effect = t.alter()+"ADD PRIMARY KEY ("+quotedList(c)+")", t.alter()+"DROP PRIMARY KEY", rebuilds
			f.Evidence = append(f.Evidence, "all rows differ in "+strings.Join(c, ", "))
			f.Sure, f.Doubt = Likely, "rows differ today; if two may be alike tomorrow, take a column of its own"
			return []Finding{f}
		}
		if _, tested := t.Tested[strings.Join(c, ",")]; tested {
			f.Evidence = append(f.Evidence, "rows are alike in "+strings.Join(c, ", "))
		} else if f.Advice == "" {
			f.Advice = "if " + strings.Join(c, ", ") + " names a row, make it the key instead; whether rows differ in it, a replica can tell: SELECT COUNT(*), COUNT(DISTINCT " + quotedList(c) + ") FROM " + t.name().String() + "; or --test-keys"
		}
	}
	name := unusedName(t, "id")
	f.Statement = t.alter() + "ADD COLUMN " + mysql.Quote(name) + " bigint unsigned NOT NULL AUTO_INCREMENT" + s.InvisibleColumn() + " PRIMARY KEY FIRST"
	f.Undo = t.alter() + "DROP COLUMN " + mysql.Quote(name)
	f.Effect = rebuildsShared
	if s.InvisibleColumn() == "" {
		f.Sure, f.Doubt = Likely, "SELECT * and INSERT without a list of columns see the new column"
	}
	if t.Versioned { // its rows of the past would be lost, or changed: system_versioning_alter_history
		f.Statement, f.Undo, f.Effect, f.Sure, f.Doubt = "", "", "", Certain, ""
		f.Advice = "it keeps its rows of the past, which forbids a change of its columns while system_versioning_alter_history is ERROR; a key over columns that it has needs none"
	}
	if auto := autoColumn(t); auto != "" { // a table has one such column at most
		f.Statement, f.Undo, f.Effect = "", "", ""
	}
	keyWithPartitions(t, name, &f)
	return []Finding{f}
}

// keyWithPartitions makes the proposed key of a partitioned table one that it can have: with the columns that say in which partition a row is.
func keyWithPartitions(t *Table, id string, f *Finding) {
	if !t.Partitioned || f.Statement == "" {
		return
	}
	for _, c := range t.SpreadBy {
		if at := slices.IndexFunc(t.Columns, func(x define.TableColumn) bool { return x.Name == c && !x.Nullable }); at < 0 {
			f.Statement, f.Undo, f.Effect, f.Sure, f.Doubt = "", "", "", Certain, ""
			f.Advice = "a primary key has to contain the columns that say in which partition a row is, and " + c + " may be NULL: make it NOT NULL first"
			return
		}
	}
	f.Statement = strings.Replace(f.Statement, " PRIMARY KEY FIRST", " FIRST, ADD PRIMARY KEY ("+quotedList(append([]string{id}, t.SpreadBy...))+")", 1)
	f.Undo = t.alter() + "DROP PRIMARY KEY, DROP COLUMN " + mysql.Quote(id)
}

// LacksKey reports whether a table should have a primary key, and has none.
func LacksKey(t *Table) bool {
	return !t.Sequence && t.primary() == nil && (t.innodb() || is("MyISAM", "Aria")(t.Engine))
}

// KeyCandidates are columns by which rows of a table without a primary key may be told apart, the most likely first: its AUTO_INCREMENT column,
// those called so, and of a table that joins two others what refers to them, each with the columns that say in which partition a row is. None of
// them may be NULL.
func KeyCandidates(t *Table) (list [][]string) {
	keyable := func(c define.TableColumn) bool {
		bytes := chars(c)
		if c.Charset != "" {
			bytes *= 4
		}
		if bytes > keyLimit(t)-64 { // there may be other columns beside it
			return false
		}
		return !c.Nullable && !c.Generated && !strings.HasSuffix(c.Type, "text") && !strings.HasSuffix(c.Type, "blob") && !is("json", "geometry", "float", "double", "bit")(c.Type)
	}
	var ids []string
	if auto := autoColumn(t); auto != "" {
		list = append(list, []string{auto})
	}
	for _, c := range t.Columns {
		name := strings.ToLower(c.Name)
		if !keyable(c) || c.Auto {
			continue
		}
		switch {
		case is("id", "uuid", "guid", "code")(name), is(t.Name+"_id", t.Name+"id", strings.TrimSuffix(t.Name, "s")+"_id")(name):
			list = append(list, []string{c.Name})
		case strings.HasSuffix(name, "_id") || strings.HasSuffix(c.Name, "Id"):
			ids = append(ids, c.Name)
		}
	}
	if len(ids) == 2 {
		list = append(list, ids)
	}
	list = list[:min(len(list), 3)]
	for i := range list {
		for _, c := range t.SpreadBy { // which a key has to contain
			if !slices.Contains(list[i], c) {
				list[i] = append(list[i], c)
			}
		}
	}
	return slices.DeleteFunc(list, func(columns []string) bool {
		return slices.ContainsFunc(columns, func(name string) bool {
			return !slices.ContainsFunc(t.Columns, func(c define.TableColumn) bool { return c.Name == name && keyable(c) })
		})
	})
}

// quotedList are names as statements have them.
func quotedList(names []string) string {
	var out []string
	for _, n := range names {
		out = append(out, mysql.Quote(n))
	}
	return strings.Join(out, ", ")
}

// What statements do to a server, where all servers do the same. Sources: MySQL manual, "Online DDL Operations"; MariaDB documentation, "InnoDB
// Online DDL Operations with the INPLACE Alter Algorithm".
const (
	dropsAtOnce    = "in place, within moments; statements of the table wait only behind it while it waits for transactions that use the table"
	rebuilds       = "in place, and rebuilds the table: it takes time and disk like a copy of it, while reads and writes go on"
	rebuildsShared = "in place, and rebuilds the table: it takes time and disk like a copy of it, while reads go on and writes wait"
	copies         = "copies the table: it takes time and disk like a copy of it, while reads go on and writes wait"
)

// implicitKey is the first unique index over whole columns that are never NULL, or -1.
func implicitKey(t *Table) int {
	for i, k := range t.Keys {
		if !k.Unique || k.Special || k.Hidden {
			continue
		}
		whole := true
		for _, p := range k.Parts {
			c, ok := t.Column(p.Column)
			whole = whole && ok && !c.Nullable && p.Prefix == 0 && !(c.Generated && virtual(t, c.Name)) // a column that is nowhere is no key of rows
		}
		if whole {
			return i
		}
	}
	return -1
}

// virtual reports whether a generated column is not stored.
func virtual(t *Table, name string) bool {
	return slices.ContainsFunc(sqltext.Tokens(t.ColumnText(name, "")), func(x sqltext.Token) bool { return x.Kind == sqltext.TokenWord && strings.EqualFold(x.Text, "VIRTUAL") })
}

// partsText is a list of an index's columns as statements have it.
func partsText(parts []define.KeyPart) string {
	var out []string
	for _, p := range parts {
		text := mysql.Quote(p.Column)
		if p.Column == "" {
			text = p.Expression
		}
		if p.Prefix > 0 {
			text += fmt.Sprintf("(%d)", p.Prefix)
		}
		if p.Descending {
			text += " DESC"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// unusedName is a column name that the table does not have.
func unusedName(t *Table, name string) string {
	for i := 1; ; i++ {
		try := name
		if i > 1 {
			try = fmt.Sprintf("%s%d", name, i)
		}
		if _, taken := t.Column(try); !taken {
			return try
		}
	}
}

func autoColumn(t *Table) string {
	for _, c := range t.Columns {
		if c.Auto {
			return c.Name
		}
	}
	return ""
}

// autoIncrement finds AUTO_INCREMENT columns of which more than 80 % are used; critical is more than 95 %.
func autoIncrement(s *Server, t *Table) []Finding {
	name := autoColumn(t)
	c, _ := t.Column(name)
	most := LargestAuto(c)
	if name == "" || most == 0 || t.Next == 0 {
		return nil
	}
	if !AutoUsed(t.Next, most) {
		return nil
	}
	used := min((t.Next-1)/most, 1)
	f := Finding{Object: t.object() + "." + name, Severity: fleet.SeverityWarning,
		What:     fmt.Sprintf("%s of the values of AUTO_INCREMENT column %s of %s are used", digits.Percent(used), name, t.object()),
		Why:      "the INSERT after the last value fails with a duplicate key, and so does each one after it",
		Evidence: []string{"type " + c.FullType, "next value " + digits.Count(t.Next) + " of " + digits.Count(most)},
		Cost:     Cost{Risk: "INSERTs fail"}, Since: t.Created}
	if by, ok := s.number("auto_increment_increment"); ok && by > 1 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("auto_increment_increment is %s: about %s are left", digits.Count(by), digits.Plural(int64(max(0, (most-t.Next)/by)), "value", "values")))
	}
	if used >= 0.95 {
		f.Severity = fleet.SeverityCritical
	}
	wide := "bigint"
	if c.Unsigned {
		wide += " unsigned"
	}
	if c.Type == "bigint" {
		f.Advice = "no integer type is larger: " + signedAdvice(c)
		return []Finding{f}
	}
	f.Statement = t.alter() + "MODIFY COLUMN " + t.ColumnText(name, wide)
	f.Undo = t.alter() + "MODIFY COLUMN " + t.ColumnText(name, c.FullType)
	f.Effect = copies
	if others := s.columnsReferring(t, name); others != "" {
		f.Statement, f.Undo, f.Effect = "", "", ""
		f.Advice = "change the type of it and of the columns that refer to it together, with their foreign keys dropped and made again: " + others
	}
	return []Finding{f}
}

// AutoUsed reports whether so much of AUTO_INCREMENT values is used that it is a finding.
func AutoUsed(next, most float64) bool { return (next-1)/most >= 0.8 }

// LargestAuto is the largest AUTO_INCREMENT value of a column; of a FLOAT or DOUBLE the largest up to which all integers are different numbers.
func LargestAuto(c define.TableColumn) float64 {
	switch c.Type {
	case "float":
		return 1 << 24
	case "double":
		return 1 << 53
	}
	return define.LargestInteger(c.Type, c.Unsigned)
}

// signedAdvice says what is left for a column of the largest type.
func signedAdvice(c define.TableColumn) string {
	if !c.Unsigned {
		return "unsigned doubles it"
	}
	return "the rows need other keys"
}

// columnsReferring are the columns that foreign keys tie to a column's type.
func (s *Server) columnsReferring(t *Table, column string) string {
	var out []string
	for _, r := range s.referencesTo(t.name()) {
		for i, to := range r.To {
			if strings.EqualFold(to, column) && i < len(r.Columns) {
				out = append(out, r.Table.Schema+"."+r.Table.Name+"."+r.Columns[i])
			}
		}
	}
	for _, f := range t.ForeignKeys {
		for i, own := range f.Columns {
			if strings.EqualFold(own, column) && i < len(f.To) {
				out = append(out, f.Referenced.Schema+"."+f.Referenced.Name+"."+f.To[i])
			}
		}
	}
	return strings.Join(out, ", ")
}
