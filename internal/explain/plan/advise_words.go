package plan

import (
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/digits"
)

// words says the arithmetic of one table.
func (a *adviser) words(n *Node, f *TableFacts, ad *Advice) []string {
	how := "expected"
	if ad.Counted {
		how = "counted"
	} else if ad.Sampled {
		how = "by a sample of " + amount(f.Sample.Rows, "row", "rows")
	}
	var out []string
	scan := fmt.Sprintf("%s has about %s on %s of %s.", ad.Table, amount(ad.Rows, "row", "rows"), amount(ad.TablePages, "page", "pages"), digits.Bytes(f.PageSize))
	are, touch := "are", "touch"
	if digits.Count(ad.Matched) == "1" {
		are, touch = "is", "touches"
	}
	lookups := fmt.Sprintf("By an index that does not contain all its columns, %s (%s of the table, %s) %s %s, which %s about %s of the table's %s; a full scan reads the %s in sequence, once each.",
		amount(ad.Matched, "row", "rows"), digits.Percent(ad.Part), how, are, amount(ad.Matched, "random look-up", "random look-ups"), touch, digits.Count(ad.PagesTouched), amount(ad.TablePages, "page", "pages"), digits.Count(ad.TablePages))
	switch {
	case n.Access == AccessAll && len(a.wanted(n, f).all) > 0 && (ad.Equality+ad.Range > 0 || len(n.PossibleKeys) > 0):
		verdict := fmt.Sprintf("In pages, such an index pays off only up to about %s (%s).", amount(ad.TablePages, "row", "rows"), digits.Percent(ad.TablePages/ad.Rows))
		if able := a.able(n, f); ad.Matched > ad.TablePages && len(able) > 0 {
			verdict += fmt.Sprintf(" That is why none is used (possible: %s).", strings.Join(able, ", "))
		}
		if how == "expected" && ad.Part == 1 {
			verdict += " The server expects all rows to match, without an index or a histogram on these columns: --analyze counts them."
		}
		out = append(out, scan+" "+lookups+" "+verdict)
	case n.Covering && len(ad.Order) > 0:
		out = append(out, scan+" "+fmt.Sprintf("Index %s is covering, but it does not have the rows in the order wanted.", n.Key))
	case n.Access == AccessAll || n.Access == AccessIndex || n.Covering || n.Key == "PRIMARY":
		out = append(out, scan)
	default:
		out = append(out, scan+" "+fmt.Sprintf("Index %s is not covering: %s rows per run (%s of the table) are as many random look-ups, touching about %s pages.", n.Key, digits.Count(ad.Matched), digits.Percent(ad.Part), digits.Count(ad.PagesTouched)))
	}
	said := map[string]bool{}
	for _, text := range ad.told {
		if !said[text] {
			said[text] = true
			out = append(out, text)
		}
	}
	if len(ad.Columns) == 0 {
		return out
	}
	size := fmt.Sprintf("About %s, %s", digits.Bytes(ad.IndexBytes), amount(ad.IndexPages, "page", "pages"))
	each := "this access"
	if ad.Runs > 1 {
		each = fmt.Sprintf("each of about %s", amount(ad.Runs, "look-up", "look-ups"))
	}
	if ad.Covering {
		out = append(out, fmt.Sprintf("A covering index, %s: (%s). %s; %s would read about %s of it, on %s in sequence, instead of %s.",
			ad.kind(), strings.Join(ad.Columns, ", "), size, each, amount(ad.Entries, "entry", "entries"), amount(ad.RangePages, "page", "pages"), a.instead(n, ad)))
	} else {
		out = append(out, fmt.Sprintf("An index, %s: (%s). %s. It is not covering: about %s looked up in the table by %s, on about %s of its pages, instead of %s.",
			ad.kind(), strings.Join(ad.Columns, ", "), size, amount(ad.Lookups, "row is", "rows are"), each, digits.Count(touched(ad.TablePages, ad.Lookups)), a.instead(n, ad)))
	}
	if len(ad.Replaces) > 0 {
		out = append(out, fmt.Sprintf("It makes %s superfluous.", strings.Join(ad.Replaces, ", ")))
	}
	return out
}

// amount is so many of something, or "one".
func amount(n float64, one, more string) string {
	if text := digits.Count(n); text != "1" {
		return text + " " + more
	}
	return "1 " + one
}

// able are those of the possible keys that would find rows by comparisons with constants, and look them up. Others are
// possible for the join alone, and the primary key looks nothing up.
func (a *adviser) able(n *Node, f *TableFacts) []string {
	w := a.wanted(n, f).alone()
	var out []string
	for _, key := range n.PossibleKeys {
		columns := f.columnsOfKey(key)
		if key == "PRIMARY" || len(columns) == 0 {
			continue
		}
		for _, c := range append(append(append([]string(nil), w.equal...), w.in...), w.ranges...) {
			if strings.EqualFold(c, columns[0]) {
				out = append(out, key)
				break
			}
		}
	}
	return out
}

// kind says in which order the columns of the proposed index are, and why.
func (ad *Advice) kind() string {
	var list []string
	if ad.Equality > 0 {
		list = append(list, "equality")
	}
	sorted := len(ad.Order) > 0
	switch {
	case ad.Range > 0 && sorted:
		list = append(list, "the range, which is the order as well")
	case ad.Range > 0:
		list = append(list, "the range")
	case sorted:
		list = append(list, "the order")
	}
	if len(list) == 0 {
		return "an index on the needed columns would be read in full, but it is narrower than the table"
	}
	list[0] += " first"
	if rest := len(ad.Columns) - ad.Equality - max(ad.Range, len(ad.Order)); ad.Covering && rest > 0 {
		list = append(list, "the other columns, which are only read")
	}
	return strings.Join(list, ", then ")
}

// orderWords says what the order of an index spares.
func orderWords(sorts bool, o ordering, p proposal, rows float64) string {
	verb := "It keeps the rows in the order of the"
	end := "."
	if sorts {
		verb = "It has the rows in the order of the"
		end = fmt.Sprintf(": no filesort and no temporary table for about %s.", amount(rows, "row", "rows"))
	}
	s := fmt.Sprintf("%s %s (%s)%s", verb, o.word, strings.Join(p.order, ", "), end)
	if o.rest != "" {
		s += " " + o.rest
	}
	return s
}

func (a *adviser) instead(n *Node, ad *Advice) string {
	_, early := a.ends(n)
	reads, known := a.reads(n)
	bound := "about "
	if n.ActualRows.Known() {
		bound = ""
	} else if !known {
		reads, _ = a.most(n)
		bound = "up to "
	}
	switch {
	case a.compared(n) >= manyCompared:
		return digits.Count(a.outerRows(n)*n.rowsOnce()) + " pairs of rows that are compared"
	case n.Access == AccessEqRef:
		return amount(n.runsKnown(), "look-up", "look-ups") + " by " + n.Key
	case n.Covering && len(ad.Order) > 0:
		return "index " + n.Key + " and a sort"
	case n.Covering:
		return "index " + n.Key
	case n.Key == "PRIMARY" && n.Access != AccessIndex:
		return amount(n.rowsOnce(), "row", "rows") + " by the primary key"
	case early && (n.Access == AccessAll || n.Key == "PRIMARY"):
		return bound + amount(reads, "row", "rows") + " of the table"
	case early && n.Access == AccessIndex:
		return bound + amount(reads, "entry", "entries") + " of index " + n.Key + " and as many look-ups"
	case n.Access == AccessAll || n.Key == "PRIMARY":
		return amount(ad.TablePages, "page", "pages") + " of the table"
	case n.Access == AccessIndex:
		return "the whole index " + n.Key + " and " + amount(ad.Rows, "look-up", "look-ups")
	}
	return amount(ad.Matched, "look-up", "look-ups") + " on " + amount(ad.PagesTouched, "page", "pages")
}

// lines is the advice for a terminal.
func (ad Advice) lines(width int) []string {
	out := []string{"Index arithmetic of #" + digits.Count(float64(ad.Node)) + ", " + ad.Table + ":"}
	for _, t := range ad.Texts {
		out = append(out, wrapped("  ", t, width)...)
	}
	if ad.Statement != "" {
		out = append(out, "  "+ad.Statement+";")
	}
	return out
}
