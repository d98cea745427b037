package plan

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/sqltext"
)

// wanted is what conditions require of the columns of one table.
type wanted struct {
	equal  []string // compared with one value
	in     []string // compared with several: IN
	ranges []string
	bad    []unusable
	all    []conjunct // all of it, also what no index serves
}

// conjunct is one of the comparisons that AND joins.
type conjunct struct {
	column string // the one that an index could serve, or ""
	kind   string // "equal", "in", "range", or "other" where no index serves it
	sample string // the comparison as it can be asked of a sample of the table; "" if that cannot be
	text   string // as a person would write it
	join   bool   // it compares with another table
	wide   bool   // it leaves out some values only: most rows pass, unless something else is known
	why    string // why no index serves it, if kind is "other" and nothing else is known about it
	vague  bool   // an index of an expression may serve it
}

// unusable is a comparison that an index on its column cannot serve.
type unusable struct{ column, text, why string }

// predicates finds the columns of one table that conditions compare with a constant or another table's column. Only
// what is joined by AND counts; an OR ends it, except one of comparisons of the same column. What compares not the
// column but something made of it is kept as bad. others are the other tables of the statement, by their names.
func predicates(conditions []string, name string, f *TableFacts, others map[string]*TableFacts) (w wanted) {
	seen := map[string]bool{}
	for _, c := range conditions {
		for _, part := range conjuncts(lex(c)) {
			if part = unwrap(part); !mentions(part, name, f) || seen[textOf(part)] {
				continue
			}
			seen[textOf(part)] = true
			one := conjunct{kind: "other", sample: sampleText(part, name, f), text: pretty(textOf(part)), join: joins(part, name)}
			bad, unusable := unusableIn(part, name, f)
			if !unusable {
				bad, unusable = converted(part, name, f, others)
			}
			if unusable {
				if !seen["bad "+bad.text] {
					seen["bad "+bad.text] = true
					w.bad = append(w.bad, bad)
				}
				w.all = append(w.all, one)
				continue
			}
			if col, kind := comparison(part, name, f); kind != "" {
				one.column, one.kind, one.wide = col, kind, kind == "range" && exceptional(part)
			} else {
				one.why, one.vague = whyNot(part, name, f)
			}
			w.add(one, seen)
		}
	}
	return w
}

// joins reports whether a comparison names another table.
func joins(t []token, name string) bool {
	for i := 0; i+2 < len(t); i++ {
		if t[i].Name() && sign(t[i+1], ".") && t[i+2].Name() && !strings.EqualFold(t[i].Text, name) && !(i+4 < len(t) && sign(t[i+3], ".")) && (i == 0 || !sign(t[i-1], ".")) {
			return true
		}
		if i > 0 && sign(t[i-1], ".") && t[i].Name() && sign(t[i+1], ".") && !strings.EqualFold(t[i].Text, name) {
			return true // schema.table.column
		}
	}
	return false
}

// add keeps a comparison, and its column if it is the first of its kind.
func (w *wanted) add(c conjunct, seen map[string]bool) {
	w.all = append(w.all, c)
	if c.kind == "other" || seen["column "+c.column] {
		return
	}
	switch c.kind {
	case "equal":
		w.equal = append(w.equal, c.column)
	case "in":
		w.in = append(w.in, c.column)
	default:
		w.ranges = append(w.ranges, c.column)
		return
	}
	seen["column "+c.column] = true
	w.ranges = without(w.ranges, c.column)
}

// without is a list without one of its members.
func without(list []string, member string) []string {
	var out []string
	for _, x := range list {
		if x != member {
			out = append(out, x)
		}
	}
	return out
}

// outerJoined takes off what MySQL puts around the condition of an outer join: <if>(is_not_null_compl(t), …, true).
func outerJoined(t []token) []token {
	if len(t) < 10 || !sign(t[0], "<") || !word(t[1], "IF") || !sign(t[2], ">") || !sign(t[3], "(") || !word(t[4], "IS_NOT_NULL_COMPL") {
		return t
	}
	if parts := commas(t[4 : len(t)-1]); len(parts) == 3 && len(parts[2]) == 1 && word(parts[2][0], "TRUE") {
		return unwrap(parts[1])
	}
	return t
}

// conjuncts cuts a condition at the ANDs of its outermost level. If that level has an OR it is one piece.
func conjuncts(t []token) [][]token {
	t = outerJoined(unwrap(t))
	out := conjoined(t)
	if len(out) == 1 {
		if low, high, ok := spanned(t); ok {
			return slices.DeleteFunc([][]token{low, high}, func(side []token) bool { return len(side) == 0 })
		}
		return out
	}
	var flat [][]token
	for _, part := range out {
		if len(part) > 0 {
			flat = append(flat, conjuncts(part)...)
		}
	}
	return flat
}

// conjoined are the pieces between the ANDs of the outermost level.
func conjoined(t []token) [][]token {
	begin, between := 0, false
	var out [][]token
	for i, x := range outer(t) {
		switch word := strings.ToUpper(x.Text); {
		case x.Kind != sqltext.TokenWord && !sign(x, "&&") && !sign(x, "||"):
		case word == "OR" || word == "||" || word == "XOR":
			return [][]token{t}
		case word == "BETWEEN":
			between = true
		case word == "AND" && between:
			between = false
		case word == "AND" || word == "&&":
			out = append(out, t[begin:i])
			begin = i + 1
		}
	}
	return append(out, t[begin:])
}

// spanned reads a range as MySQL's tree writes it, 1 <= a <= 5: what it says of its begin, and of its end. NULL < a says
// nothing of the begin.
func spanned(t []token) (low, high []token, ok bool) {
	var at []int
	for i, x := range outer(t) {
		if sign(x, "<") || sign(x, "<=") {
			at = append(at, i)
		}
	}
	if len(at) != 2 || at[0] == 0 {
		return nil, nil, false
	}
	if _, column, rest := columnAt(t[at[0]+1 : at[1]]); column == "" || len(rest) > 0 {
		return nil, nil, false
	}
	if at[0] == 1 && word(t[0], "NULL") {
		return nil, t[at[0]+1:], true
	}
	return t[:at[1]], t[at[0]+1:], true
}

// outer returns the tokens outside of parentheses, with their places, and not the parentheses.
func outer(t []token) iter.Seq2[int, token] {
	return func(yield func(int, token) bool) {
		depth := 0
		for i, x := range t {
			switch {
			case sign(x, "("):
				depth++
			case sign(x, ")"):
				depth--
			case depth == 0 && !yield(i, x):
				return
			}
		}
	}
}

// either reports whether the outermost level has an OR.
func either(t []token) bool {
	for _, x := range outer(t) {
		if word(x, "OR") || word(x, "XOR") || sign(x, "||") {
			return true
		}
	}
	return false
}

// unwrap takes off parentheses around the whole.
func unwrap(t []token) []token {
	for len(t) >= 2 && t[0].Text == "(" && t[0].Kind == sqltext.TokenSign && t[len(t)-1].Text == ")" {
		depth := 0
		for i, x := range t {
			if x.Kind != sqltext.TokenSign {
				continue
			}
			if x.Text == "(" {
				depth++
			} else if x.Text == ")" {
				depth--
			}
			if depth == 0 && i < len(t)-1 {
				return t
			}
		}
		t = t[1 : len(t)-1]
	}
	return t
}

// columnAt reads a column name at the beginning of tokens: a, t.a, s.t.a. It returns the rest.
func columnAt(t []token) (qualifier, column string, rest []token) {
	var parts []string
	for len(t) > 0 && (t[0].Kind == sqltext.TokenName || t[0].Kind == sqltext.TokenWord) {
		parts = append(parts, t[0].Text)
		t = t[1:]
		if len(t) < 2 || t[0].Text != "." {
			break
		}
		t = t[1:]
	}
	if len(parts) == 0 {
		return "", "", t
	}
	if len(parts) > 1 {
		qualifier = parts[len(parts)-2]
	}
	return qualifier, parts[len(parts)-1], t
}

// comparison reads one conjunct: column operator value, or value operator column. kind is "equal", "in", "range" or "".
func comparison(t []token, name string, f *TableFacts) (column, kind string) {
	if t = unwrap(t); either(t) {
		return anyOf(t, name, f)
	}
	if col, kind := f.serves(t, name); kind != "" {
		return col, kind
	}
	if _, high, ok := spanned(t); ok { // one of several ranges
		return comparison(high, name, f)
	}
	if len(t) > 3 && word(t[0], "ISNULL") && sign(t[1], "(") && sign(t[len(t)-1], ")") {
		if col, rest, ok := ownColumn(t[2:len(t)-1], name, f); ok && len(rest) == 0 {
			return col, "equal"
		}
	}
	if col, rest, found := ownColumn(t, name, f); found && len(rest) > 0 {
		if kind := operatorKind(rest); kind != "" && !mentions(rest, name, f) && !(leavesOut(rest) && f.column(col).text() && hasNumber(rest)) {
			return col, kind
		}
	}
	// 5 < a, and b.x = a.y where a is ours: the column comes last.
	for i := len(t) - 1; i > 0; i-- {
		if t[i].Kind != sqltext.TokenSign {
			continue
		}
		switch t[i].Text {
		case "=", "<=>", "<", ">", "<=", ">=":
			col, rest, found := ownColumn(t[i+1:], name, f)
			if !found || len(rest) != 0 || mentions(t[:i], name, f) {
				return "", ""
			}
			if t[i].Text == "=" || t[i].Text == "<=>" {
				return col, "equal"
			}
			return col, "range"
		}
	}
	return "", ""
}

// anyOf reads an OR whose sides all compare the same column: that is a list of values, or of ranges.
func anyOf(t []token, name string, f *TableFacts) (column, kind string) {
	for _, side := range sides(t) {
		c, k := comparison(side, name, f)
		switch {
		case k == "" || column != "" && c != column:
			return "", ""
		case k == "range" || kind == "range":
			kind = "range"
		default:
			kind = "in"
		}
		column = c
	}
	return column, kind
}

// sides cuts a condition at the ORs of its outermost level.
func sides(t []token) [][]token {
	var out [][]token
	begin := 0
	for i, x := range outer(t) {
		switch {
		case word(x, "XOR"):
			return [][]token{nil}
		case word(x, "OR") || sign(x, "||"):
			out = append(out, t[begin:i])
			begin = i + 1
		}
	}
	return append(out, t[begin:])
}

// ownColumn reads a column of the table at the beginning of tokens.
func ownColumn(t []token, name string, f *TableFacts) (column string, rest []token, ok bool) {
	q, c, rest := columnAt(t)
	if c == "" || q != "" && !strings.EqualFold(q, name) {
		return "", rest, false
	}
	col := f.column(c)
	if col == nil {
		return "", rest, false
	}
	return col.Name, rest, true
}

// operatorKind says what a comparison after a column is: "equal", "in", "range", or "" if it is none of them.
func operatorKind(rest []token) string {
	switch strings.ToUpper(rest[0].Text) {
	case "=", "<=>":
		return "equal"
	case "IN":
		return "in"
	case "<", ">", "<=", ">=", "BETWEEN":
		return "range"
	case "LIKE":
		if len(rest) > 1 && !leadsOpen(rest[1]) {
			return "range"
		}
	case "IS":
		switch {
		case len(rest) == 2 && word(rest[1], "NULL"):
			return "equal"
		case len(rest) == 3 && word(rest[1], "NOT") && word(rest[2], "NULL"):
			return "range"
		}
	}
	if leavesOut(rest) {
		return "range"
	}
	return ""
}

// leavesOut reports whether what follows a column leaves out values that are written there: what is before them and after them
// are ranges.
func leavesOut(rest []token) bool {
	switch {
	case sign(rest[0], "<>") || sign(rest[0], "!="):
		return literals(rest[1:])
	case len(rest) < 3 || !word(rest[0], "NOT"):
		return false
	case word(rest[1], "IN"):
		return literals(rest[2:])
	}
	return word(rest[1], "BETWEEN")
}

// exceptional reports whether a comparison wants all but some values.
func exceptional(t []token) bool {
	return slices.ContainsFunc(t, func(x token) bool { return sign(x, "<>") || sign(x, "!=") || word(x, "NOT") })
}

// hasNumber reports whether a number is written there: strings that are compared with one are converted.
func hasNumber(t []token) bool {
	return slices.ContainsFunc(t, func(x token) bool { return x.Kind == sqltext.TokenNumber })
}

// leadsOpen reports whether a pattern of LIKE begins with a wildcard, or is none that can be read.
func leadsOpen(t token) bool {
	s := strings.TrimLeft(strings.TrimPrefix(t.Text, "N"), "'\"")
	return s == "" || sign(t, "?") || s[0] == '%' || s[0] == '_'
}

// comparisons are the operators for which an index on a bare column could be used.
var comparisons = map[string]bool{"=": true, "<=>": true, "<": true, ">": true, "<=": true, ">=": true, "BETWEEN": true, "IN": true, "LIKE": true}

// unusableIn reports whether a conjunct compares something made of a column, which an index on the column does not hold.
func unusableIn(t []token, name string, f *TableFacts) (unusable, bool) {
	t = unwrap(t)
	if either(t) || len(t) == 0 || sign(t[0], "<") || unusual(t) { // "<in_optimizer>" and its like are the server's own
		return unusable{}, false
	}
	if _, kind := f.serves(t, name); kind != "" {
		return unusable{}, false
	}
	for i, x := range outer(t) {
		switch {
		case sign(x, ",") || word(x, "NOT"):
			return unusable{}, false
		case i > 0 && i+1 < len(t) && x.Kind != sqltext.TokenString && comparisons[strings.ToUpper(x.Text)]:
			left, right := unwrap(t[:i]), unwrap(t[i+1:])
			if bad, ok := madeOf(left, right, name, f); ok {
				bad.text = pretty(textOf(t))
				return bad, true
			}
			if bad, ok := madeOf(right, left, name, f); ok && strings.Contains("=<=>=", x.Text) {
				bad.text = pretty(textOf(t))
				return bad, true
			}
			if col, rest, ok := ownColumn(left, name, f); ok && len(rest) == 0 && word(x, "LIKE") && right[0].Kind == sqltext.TokenString && leadsOpen(right[0]) {
				return unusable{col, pretty(textOf(t)), "the pattern begins with a wildcard, so no part of an index on " + col + " can be used; to search for words use a FULLTEXT index"}, true
			}
			return unusable{}, false
		}
	}
	return unusable{}, false
}

// madeOf reports whether one side of a comparison is made of a column of the table, and the other has none of it.
func madeOf(side, other []token, name string, f *TableFacts) (unusable, bool) {
	if len(side) == 0 || len(other) == 0 || len(commas(side)) > 1 || word(side[0], "MATCH") || mentions(other, name, f) || !mentions(side, name, f) {
		return unusable{}, false
	}
	col, rest, ok := ownColumn(side, name, f)
	if ok && len(rest) == 0 {
		if c := f.column(col); c.text() && other[0].Kind == sqltext.TokenNumber {
			return unusable{column: col, why: fmt.Sprintf("%s is a %s and is compared with a number: the server converts each value, so an index on %s cannot find them; write the number in quotes", col, c.Type, col)}, true
		}
		return unusable{}, false
	}
	if c := f.within(side, name); c != nil {
		return unusable{column: c.Name, why: c.instead(side)}, true
	}
	return unusable{}, false
}

// serves is the column of which a comparison compares DATE, YEAR or UPPER with constants, if this server finds them by an
// index on the column nevertheless, and the kind of comparison that it then is.
func (t *TableFacts) serves(comparison []token, name string) (column, kind string) {
	for i, x := range outer(comparison) {
		if i == 0 || i+1 == len(comparison) || !comparisons[x.Text] && !word(x, "IN") {
			continue
		}
		side, other := unwrap(comparison[:i]), comparison[i+1:]
		c := t.within(side, name)
		switch {
		case c == nil && comparisons[x.Text]:
			side, other = unwrap(other), comparison[:i]
			if c = t.within(side, name); c == nil {
				return "", ""
			}
		case c == nil:
			return "", ""
		}
		switch {
		case !literals(other):
		case t.ServesDates && c.dateOrYear(side) && comparisons[x.Text] && x.Text != "<=>":
			return c.Name, "range"
		case t.ServesUpper && c.upper(side) && sign(x, "="):
			return c.Name, "equal"
		case t.ServesUpper && c.upper(side) && word(x, "IN"):
			return c.Name, "in"
		}
		return "", ""
	}
	return "", ""
}

// within is the column of the table in an expression; nil if there is none.
func (t *TableFacts) within(side []token, name string) *ColumnFacts {
	for i, x := range side {
		if c := t.column(x.Text); c != nil && x.Name() && mentions(side[i:i+1], name, t) {
			return c
		}
	}
	return nil
}

// literals reports whether values are written there, and no function: MariaDB makes no range of DATE(c) = CURDATE().
func literals(t []token) bool {
	for i, x := range t {
		if x.Kind == sqltext.TokenWord && !(word(x, "DATE") && i+1 < len(t) && t[i+1].Kind == sqltext.TokenString) {
			return false
		}
	}
	return len(t) > 0
}

// upper reports whether an expression is UPPER or UCASE of the column and of nothing else, in a collation in which MariaDB
// finds such by an index: tried on 11.8 with all collations that are a character set's default somewhere.
func (c *ColumnFacts) upper(side []token) bool {
	last := len(side) - 1
	if c.Collation != "utf8mb4_general_ci" && c.Collation != "utf8mb3_general_ci" || last < 3 || !word(side[0], "UPPER") && !word(side[0], "UCASE") || !sign(side[1], "(") || !sign(side[last], ")") {
		return false
	}
	for _, x := range side[2:last] {
		if !x.Name() && !sign(x, ".") {
			return false
		}
	}
	return strings.EqualFold(side[last-1].Text, c.Name)
}

// dateOrYear reports whether an expression is DATE or YEAR of the column and of nothing else. The server writes DATE(c) as
// CAST(c AS DATE).
func (c *ColumnFacts) dateOrYear(side []token) bool {
	last := len(side) - 1
	if c.Type != "date" && c.Type != "datetime" && c.Type != "timestamp" || last < 3 || !sign(side[1], "(") || !sign(side[last], ")") {
		return false
	}
	inner := side[2:last]
	switch n := len(inner); {
	case word(side[0], "DATE"), word(side[0], "YEAR"):
	case word(side[0], "CAST") && n > 2 && word(inner[n-2], "AS") && word(inner[n-1], "DATE"):
		inner = inner[:n-2]
	default:
		return false
	}
	for _, x := range inner { // the column, and what qualifies it
		if !x.Name() && !sign(x, ".") {
			return false
		}
	}
	return strings.EqualFold(inner[len(inner)-1].Text, c.Name)
}

// instead says what to write in place of an expression.
func (c *ColumnFacts) instead(side []token) string {
	expr := pretty(textOf(side))
	s := fmt.Sprintf("an index on %s holds %s, not %s", c.Name, c.Name, expr)
	head := strings.ToUpper(side[0].Text)
	switch {
	case (c.Type == "datetime" || c.Type == "timestamp" || c.Type == "date") && len(side) > 1 && sign(side[1], "("):
		return s + fmt.Sprintf("; compare %s itself with the beginning and the end of the range: %s >= … AND %s < …", c.Name, c.Name, c.Name)
	case head == "CONVERT" || head == "CAST":
		return s + "; give both sides the same type and character set"
	case len(side) > 1 && sign(side[1], "("):
		return s + "; leave the column bare, or index the expression itself (MySQL 8.0.13 and later), or a generated column of it"
	}
	return s + "; leave the column bare on its side of the comparison"
}

// text reports whether values of the column are strings.
func (c *ColumnFacts) text() bool {
	switch c.Type {
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext":
		return true
	}
	return false
}

// mentions reports whether tokens contain a column of the table: then both sides of a comparison are its own.
func mentions(t []token, name string, f *TableFacts) bool {
	for i, x := range t {
		if x.Kind != sqltext.TokenName && x.Kind != sqltext.TokenWord || f.column(x.Text) == nil {
			continue
		}
		if i >= 2 && t[i-1].Text == "." {
			if !strings.EqualFold(t[i-2].Text, name) {
				continue
			}
		} else if i+1 < len(t) && (t[i+1].Text == "(" || t[i+1].Text == ".") {
			continue
		} else if x.Kind == sqltext.TokenWord && strings.EqualFold(x.Text, name) {
			continue
		}
		return true
	}
	return false
}

// columnsOf finds the columns of a table that a statement names, for servers that do not show them. A star is all.
func columnsOf(sql, name string, f *TableFacts) []string {
	t := lex(sql)
	if len(t) == 0 {
		return nil
	}
	used := map[string]bool{}
	for i, x := range t {
		if x.Text == "*" && x.Kind == sqltext.TokenSign && i > 0 {
			switch before := strings.ToUpper(t[i-1].Text); {
			case before == "." && i > 1 && !strings.EqualFold(t[i-2].Text, name):
			case before == "SELECT" || before == "DISTINCT" || before == "." || before == "," || before == "ALL":
				return f.all()
			}
		}
		if x.Kind != sqltext.TokenName && x.Kind != sqltext.TokenWord {
			continue
		}
		if c := f.column(x.Text); c != nil && !(i > 0 && word(t[i-1], "AS")) && !(i >= 2 && t[i-1].Text == "." && !strings.EqualFold(t[i-2].Text, name)) {
			used[c.Name] = true
		}
	}
	var out []string
	for _, c := range f.Columns {
		if used[c.Name] {
			out = append(out, c.Name)
		}
	}
	return out
}

func (t *TableFacts) all() []string {
	var out []string
	for _, c := range t.Columns {
		out = append(out, c.Name)
	}
	return out
}
