package advise

import (
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// noPrimaryKey finds tables of InnoDB that have no primary key and no unique key over columns that are never NULL, which InnoDB takes in
// its place (MySQL manual, "Clustered and Secondary Indexes").
func noPrimaryKey(s *Server, t *Table) []Finding {
	if !t.innodb() || t.Sequence || t.primary() != nil {
		return nil
	}
	f := Finding{Object: t.object(), Severity: fleet.SeverityWarning, What: "table " + t.object() + " has no primary key",
		Why:      "InnoDB numbers its rows by one counter that all such tables of the server share, and a replica that applies changes of rows looks for each of them in the whole table",
		Evidence: []string{digits.Roughly(int64(t.Rows), "row"), digits.Bytes(t.Data)},
		Cost:     Cost{Bytes: 6 * t.Rows, Risk: "replicas fall behind"}}
	if i := implicitKey(t); i >= 0 {
		k := &t.Keys[i]
		f.Severity = fleet.SeverityInfo
		f.What += fmt.Sprintf("; InnoDB takes the unique index %s in its place", k.Name)
		f.Why = "tools, and people, look for a primary key; some refuse the table without"
		f.Statement = t.alter() + "ADD PRIMARY KEY (" + partsText(k.Parts) + ")"
		f.Undo = t.alter() + "DROP PRIMARY KEY"
		if s.hinted(k.Name) == "" { // else the index would be there twice
			f.Statement += ", DROP INDEX " + mysql.Quote(k.Name)
			f.Undo += ", ADD " + k.Text
		}
		f.Effect = rebuilds
		return []Finding{f}
	}
	name := unusedName(t, "id")
	f.Advice = "if one or several columns name a row, make them the key instead"
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
	if autoColumn(t) != "" { // a table has one such column at most
		f.Statement, f.Undo, f.Effect = "", "", ""
		f.Advice = "its AUTO_INCREMENT column " + autoColumn(t) + " can be the key if its values differ"
	}
	return []Finding{f}
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
			whole = whole && ok && !c.Nullable && p.Prefix == 0
		}
		if whole {
			return i
		}
	}
	return -1
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
	most := define.LargestInteger(c.Type, c.Unsigned)
	if name == "" || most == 0 || t.Next == 0 {
		return nil
	}
	used := (t.Next - 1) / most
	if used < 0.8 {
		return nil
	}
	f := Finding{Object: t.object() + "." + name, Severity: fleet.SeverityWarning,
		What:     fmt.Sprintf("%s of the values of AUTO_INCREMENT column %s of %s are used", digits.Percent(used), name, t.object()),
		Why:      "the INSERT after the last value fails with a duplicate key, and so does each one after it",
		Evidence: []string{"type " + c.FullType, "next value " + digits.Count(t.Next) + " of " + digits.Count(most)},
		Cost:     Cost{Risk: "INSERTs fail"}}
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
