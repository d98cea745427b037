package advise

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// begins reports whether an index can be used to look up rows by columns, in any order: they are its first ones, whole.
func begins(k *define.TableKey, columns []string) bool {
	if k.Special || len(k.Parts) < len(columns) {
		return false
	}
	for _, p := range k.Parts[:len(columns)] {
		if p.Prefix != 0 || !slices.ContainsFunc(columns, func(c string) bool { return strings.EqualFold(c, p.Column) }) {
			return false
		}
	}
	return true
}

// unindexed finds foreign keys, on either side, whose columns have no index. InnoDB makes them with the key, but MariaDB lets sessions with
// foreign_key_checks = 0 drop them (seen on 10.11).
func unindexed(s *Server, t *Table) (list []Finding) {
	look := func(name string, columns []string, parent bool, other mysql.TableName) {
		if slices.ContainsFunc(t.Keys, func(k define.TableKey) bool { return begins(&k, columns) }) || len(columns) == 0 {
			return
		}
		f := Finding{Object: t.object(), Severity: fleet.SeverityWarning, Evidence: []string{fmt.Sprintf("columns %s", strings.Join(columns, ", ")), digits.Roughly(int64(t.Rows), "row")}, Cost: Cost{Risk: "whole tables are read and locked"}, Effect: "in place, while reads and writes go on; it takes time and disk as the index is large"}
		var quoted []string
		for _, c := range columns {
			quoted = append(quoted, mysql.Quote(c))
		}
		kind := "INDEX"
		if parent {
			kind = "UNIQUE INDEX"
			f.Severity = fleet.SeverityCritical
			f.What = fmt.Sprintf("foreign key %s of %s refers to columns of %s that have no index", name, other.Schema+"."+other.Name, t.object())
			f.Why = "rows cannot be written to the table that has the key: the server finds no parent row"
		} else {
			f.What = fmt.Sprintf("foreign key %s of %s has no index", name, t.object())
			f.Why = "deleting, or changing, a row of " + other.Schema + "." + other.Name + " looks for its children in the whole table, and locks it"
		}
		index := unusedKey(t, "fk_"+name)
		f.Statement, f.Undo = t.alter()+"ADD "+kind+" "+mysql.Quote(index)+" ("+strings.Join(quoted, ", ")+")", s.WithoutForeignKeyChecks(t.alter()+"DROP INDEX "+mysql.Quote(index))
		if parent {
			f.Sure, f.Doubt = Likely, "if values are there twice it fails: an INDEX that is not UNIQUE does then"
		}
		list = append(list, f)
	}
	for _, k := range t.ForeignKeys {
		look(k.Name, k.Columns, false, k.Referenced)
	}
	for _, r := range s.referencesTo(t.name()) {
		look(r.Name, r.To, true, r.Table)
	}
	return list
}

// unusedKey is a name of an index that the table does not have.
func unusedKey(t *Table, name string) string {
	for i := 1; ; i++ {
		try := name
		if i > 1 {
			try = fmt.Sprintf("%s_%d", name, i)
		}
		if !slices.ContainsFunc(t.Keys, func(k define.TableKey) bool { return strings.EqualFold(k.Name, try) }) {
			return try
		}
	}
}

// notUnique finds foreign keys that refer to columns that are not unique together: the SQL standard knows no such thing, and MySQL 8.4 refuses new
// ones (MySQL manual, "restrict_fk_on_non_standard_key").
func notUnique(s *Server, t *Table) (list []Finding) {
	for _, r := range s.referencesTo(t.name()) {
		unique, any := false, false
		for i := range t.Keys {
			k := &t.Keys[i]
			any = any || begins(k, r.To)
			unique = unique || k.Unique && len(k.Parts) == len(r.To) && begins(k, r.To)
		}
		if unique || !any {
			continue
		}
		list = append(list, Finding{Object: r.Table.Schema + "." + r.Table.Name, Severity: fleet.SeverityInfo, What: fmt.Sprintf("foreign key %s of %s refers to columns of %s that are not unique", r.Name, r.Table.Schema+"."+r.Table.Name, t.object()),
			Why: "a row then has several parents, of which any may be deleted; MySQL 8.4 refuses such keys, so that a dump cannot be loaded there", Evidence: []string{"columns " + strings.Join(r.To, ", ")},
			Advice: "make them unique, if they are: a UNIQUE index over just these columns"})
	}
	return list
}

// lostParents are foreign keys that refer to tables that do not exist. seen tells which tables there are.
func lostParents(s *Server, seen func(mysql.TableName) bool) (list []Finding) {
	for to, refs := range s.References {
		if seen(to) {
			continue
		}
		for _, r := range refs {
			name := r.Table.Schema + "." + r.Table.Name
			list = append(list, Finding{Object: name, Severity: fleet.SeverityWarning, What: fmt.Sprintf("foreign key %s of %s refers to %s.%s, which does not exist", r.Name, name, to.Schema, to.Name), Why: "INSERT and UPDATE of such rows fail, and a table of that name may be made that does not fit",
				Evidence: []string{"columns " + strings.Join(r.Columns, ", ")}, Advice: "make the table, or drop the key: ALTER TABLE " + r.Table.String() + " DROP FOREIGN KEY " + mysql.Quote(r.Name), Cost: Cost{Risk: "INSERTs fail"}})
		}
	}
	return list
}
