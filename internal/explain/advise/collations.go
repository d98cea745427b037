package advise

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
)

// Add takes a column of text that begins an index: table is schema.table.
func (o *Schema) Add(table, column, collation string) {
	name := strings.ToLower(column)
	if o.columns == nil {
		o.columns = map[string]map[string]joined{}
	}
	if o.columns[name] == nil {
		o.columns[name] = map[string]joined{}
	}
	j := o.columns[name][collation]
	if j.tables++; j.object == "" {
		j.object = table + "." + column
	}
	o.columns[name][collation] = j
}

// notJoined are names that mean something else in each table.
var notJoined = map[string]bool{"name": true, "title": true, "status": true, "type": true, "description": true, "key": true, "value": true, "label": true, "state": true}

// collations finds columns of one name, each the first of an index, whose collations differ: a join of them has to convert one side, and then uses
// no index of it (MySQL manual, "Collation Coercibility in Expressions"), or fails with error 1267.
func collations(_ *Server, _ string, of *Schema) (list []Finding) {
	for name, kinds := range of.columns {
		if len(kinds) < 2 || notJoined[name] {
			continue
		}
		var names []string
		for k := range kinds {
			names = append(names, k)
		}
		slices.SortFunc(names, func(a, b string) int {
			if d := kinds[b].tables - kinds[a].tables; d != 0 {
				return d
			}
			return strings.Compare(kinds[a].object, kinds[b].object)
		})
		few := kinds[names[len(names)-1]]
		f := Finding{Object: few.object, Severity: fleet.SeverityInfo, What: fmt.Sprintf("columns called %s have %s", name, digits.Plural(len(names), "collation", "collations")), Why: "a join of two of them converts one side, and then uses no index of it, or fails",
			Advice: "give those that are joined one collation: ALTER TABLE … MODIFY, both sides of a foreign key together", Sure: Likely, Doubt: "they may never be joined"}
		for _, k := range names {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s, such as %s", k, digits.Counted(kinds[k].tables, "table"), kinds[k].object))
		}
		list = append(list, f)
	}
	return list
}
