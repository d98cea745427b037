package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/sqltext"
)

// unadvised says why no index is advised for an access that reads many rows: what no index serves, or that none would help.
func (a *adviser) unadvised(n *Node, f *TableFacts, w wanted, ad *Advice) {
	found := n.Access != AccessAll && n.Access != AccessIndex // by an index
	least := float64(worthRows)
	if found {
		least = many
	}
	if a.readsNow(n, f)*n.runsKnown() < least || found && n.Covering {
		return
	}
	for _, c := range w.all {
		if c.kind == "other" && c.why != "" && !(c.vague && f.holdsExpressions()) {
			ad.told = append(ad.told, "No index is recommended for "+c.text+": "+c.why+".")
		}
	}
	if len(ad.told) > 0 {
		return
	}
	less := "no other was found that would read clearly less. None is recommended."
	switch wide := a.passedByAll(f, w); {
	case a.plan.Format == FormatTable && len(w.all) == 0:
		ad.told = append(ad.told, "A tabular plan does not show the conditions, so no index is recommended; a plan in JSON does.")
	case len(w.all) == 0 && !found:
		ad.told = append(ad.told, "No comparison on it filters its rows: all are read, whatever the index. None is recommended.")
	case wide != "" && !found:
		ad.told = append(ad.told, wide)
	case found && n.Key == "PRIMARY":
		ad.told = append(ad.told, "The primary key finds its rows already, and "+less)
	case found && n.Key != "":
		ad.told = append(ad.told, fmt.Sprintf("Index %s finds its rows already, and %s", n.Key, less))
	case n.Covering:
		ad.told = append(ad.told, fmt.Sprintf("Index %s alone suffices, and %s", n.Key, less))
	default:
		ad.told = append(ad.told, "No index was found that would read clearly less. None is recommended.")
	}
}

// passedByAll says of comparisons that an index could serve that nearly all rows pass them; "" if that is not known of all.
func (a *adviser) passedByAll(f *TableFacts, w wanted) string {
	var list []string
	for _, c := range w.all {
		if c.kind == "other" {
			continue
		}
		part, known := f.share(c)
		if !known || part < allButFew {
			return ""
		}
		list = append(list, c.text)
	}
	if len(list) == 0 || f.Sample == nil || f.Sample.Rows == 0 {
		return ""
	}
	return fmt.Sprintf("Of %s sampled nearly all pass %s: with an index nearly all of the table would be looked up. None is recommended.",
		amount(f.Sample.Rows, "row", "rows"), strings.Join(list, " and "))
}

// whyNot says why no index serves a comparison that is neither of a column with values nor known to be unusable. vague says that
// this is no more than what Risso knows: an index of an expression may serve it.
func whyNot(t []token, name string, f *TableFacts) (why string, vague bool) {
	t = unwrap(t)
	if either(t) {
		return whyNotEither(t, name, f), false
	}
	if len(t) > 0 && word(t[0], "TRIGCOND") {
		return "it belongs to an outer join, and this plan does not distinguish conditions of ON from those of WHERE", false
	}
	if slices.ContainsFunc(t, func(x token) bool {
		return word(x, "SELECT") || x.Kind == sqltext.TokenWord && blockName().MatchString(x.Text)
	}) {
		return "which rows pass depends on a subquery", false
	}
	for i, x := range t {
		switch {
		case word(x, "MATCH"):
			return "", false
		case word(x, "REGEXP"), word(x, "RLIKE"), word(x, "REGEXP_LIKE"), word(x, "REGEXP_INSTR"):
			return "a regular expression is tried on each value", false
		case word(x, "LIKE") && slices.ContainsFunc(t[:i], func(x token) bool { return word(x, "NOT") }):
			return "it selects what does not match a pattern, anywhere in an index", false
		case comparisons[x.Text] && i > 0 && mentions(t[:i], name, f) && mentions(t[i+1:], name, f):
			return "both sides are from the row itself, so it is known only when the row is read", true
		}
	}
	return "Risso knows no index that helps", true
}

// whyNotEither says it of an OR.
func whyNotEither(t []token, name string, f *TableFacts) string {
	var columns []string
	seen := map[string]bool{}
	for _, side := range sides(t) {
		if side == nil {
			return "which side of XOR is true is known only when the row is read"
		}
		column := ""
		for _, part := range conjuncts(side) {
			if c, kind := comparison(part, name, f); kind != "" && column == "" {
				column = c
			}
		}
		if column == "" {
			return "no index serves " + pretty(textOf(unwrap(side))) + ", so all rows are read for it"
		}
		if !seen[column] {
			seen[column] = true
			columns = append(columns, column)
		}
	}
	if len(columns) < 2 {
		return "Risso knows no index that helps all sides of it"
	}
	return "an index finds the rows of one side only; with one on each of " + strings.Join(columns, ", ") + " a server may merge them, and a UNION of one SELECT per side uses both"
}
