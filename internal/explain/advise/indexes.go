package advise

import (
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// hiddenIndexes finds indexes that are kept and not used. What redundantIndexes drops is gone already; so no foreign key is left without.
func hiddenIndexes(s *Server, t *Table) (list []Finding) {
	k := keysOf(s, t)
	for _, i := range k.order() {
		if j, _ := k.instead(i); j >= 0 {
			k.gone[i] = true
		}
	}
	for i := range t.Keys {
		key := &t.Keys[i]
		if !key.Hidden || k.gone[i] {
			continue
		}
		f := Finding{Object: t.object() + "." + key.Name, Severity: fleet.SeverityInfo, What: "index " + key.Name + " of " + t.object() + " is kept, but no statement may use it", Why: "each write of a row maintains it: hiding is a step before dropping, not for good",
			Evidence: []string{key.Text, "since when is not known"}, Cost: Cost{Bytes: t.Bytes[key.Name]}, Sure: Likely, Doubt: "it may have been hidden a moment ago, or a statement may switch hidden indexes on"}
		switch {
		case key.Unique && !k.demandsNothing(i):
			f.Doubt = "as it is unique, it still keeps out values that are there twice: dropping it ends that"
			f.Advice = "make it an index that is used, or drop it if values may be there twice"
		case k.needed(i):
			f.Advice = "a foreign key, or AUTO_INCREMENT, needs it: show it again"
			f.Statement, f.Undo, f.Effect = t.alter()+s.HideIndex(key.Name, false), t.alter()+s.HideIndex(key.Name, true), "at once; plans may change"
		case s.hinted(key.Name) != "":
			f.Advice = "take the hint that names it out of " + s.hinted(key.Name) + " first: a statement that names an index that does not exist fails"
		default:
			k.gone[i] = true
			f.Statement, f.Undo, f.Effect = t.alter()+"DROP INDEX "+mysql.Quote(key.Name), t.alter()+"ADD "+key.Text, dropsAtOnce
		}
		list = append(list, f)
	}
	return list
}

// What makes a table worth a look: so many indexes, or so many rows.
const (
	ManyIndexes     = 16
	UnselectiveRows = 100000
	UnmeasuredRows  = 1000
)

// manyIndexes finds tables with so many indexes that writes pay for them. 64 is the most that a table can have (MySQL manual, "InnoDB Limits").
func manyIndexes(_ *Server, t *Table) []Finding {
	n, bytes := len(t.Keys), 0.0
	for name, b := range t.Bytes {
		if name != "PRIMARY" && name != "GEN_CLUST_INDEX" {
			bytes += b
		}
	}
	if n < ManyIndexes {
		return nil
	}
	f := Finding{Object: t.object(), Severity: fleet.SeverityInfo, What: fmt.Sprintf("table %s has %d indexes", t.object(), n), Why: "each write of a row maintains all of them, and the optimizer weighs all of them for each statement",
		Evidence: []string{digits.Bytes(bytes) + " of indexes, " + digits.Bytes(t.Data) + " of rows"}, Cost: Cost{Bytes: bytes}, Advice: "drop those that no statement uses; of those that are redundant there are findings of their own", Sure: Likely, Doubt: "all of them may be in use"}
	if n >= 58 {
		f.Severity = fleet.SeverityWarning
		f.What += "; 64 are the most that it can have"
	}
	return []Finding{f}
}

// unselective finds indexes by which a look-up finds a large part of the table: prefixes that are too short to tell values apart, and columns with
// a handful of values.
func unselective(_ *Server, t *Table) (list []Finding) {
	for i := range t.Keys {
		k := &t.Keys[i]
		different, known := t.Different[k.Name]
		if !known || different <= 0 || t.Rows < UnselectiveRows || k.Unique || k.Special || k.Hidden || len(k.Parts) != 1 || serves(t, k.Name) {
			continue
		}
		f := Finding{Object: t.object() + "." + k.Name, Severity: fleet.SeverityInfo, Cost: Cost{Bytes: t.Bytes[k.Name]}, Sure: Likely,
			Evidence: []string{k.Text, fmt.Sprintf("about %s of %s rows differ in it", digits.Count(different), digits.Count(t.Rows))}}
		prefix := ""
		for _, p := range k.Parts {
			if p.Prefix > 0 {
				prefix = fmt.Sprintf("SELECT COUNT(DISTINCT LEFT(%[1]s, %[2]d)), COUNT(DISTINCT LEFT(%[1]s, %[3]d)), COUNT(DISTINCT %[1]s) FROM %[4]s", mysql.Quote(p.Column), p.Prefix, 2*p.Prefix, t.name())
			}
		}
		switch {
		case different <= 10:
			f.What, f.Why = fmt.Sprintf("index %s of %s has about %s different values", k.Name, t.object(), digits.Count(different)), "reading a tenth of a table by an index is slower than reading all of it: the optimizer seldom takes it, and each write maintains it"
			f.Doubt = "if one value is rare, a look-up for just that one needs it"
		case prefix != "" && different < t.Rows/20:
			f.What, f.Why = fmt.Sprintf("the prefix in index %s of %s is too short to tell rows apart", k.Name, t.object()), "a look-up by it reads many rows that are not the one"
			f.Advice, f.Doubt = "compare what longer ones would tell apart: "+prefix, "the whole values may not differ more"
		default:
			continue
		}
		list = append(list, f)
	}
	return list
}

// serves reports whether a foreign key, or AUTO_INCREMENT, may need an index.
func serves(t *Table, name string) bool {
	for i := range t.Keys {
		if t.Keys[i].Name != name || len(t.Keys[i].Parts) == 0 {
			continue
		}
		first := t.Keys[i].Parts[0].Column
		for _, f := range t.ForeignKeys {
			if len(f.Columns) > 0 && strings.EqualFold(f.Columns[0], first) {
				return true
			}
		}
		return strings.EqualFold(autoColumn(t), first)
	}
	return false
}
