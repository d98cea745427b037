package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/sqltext"
)

// block is one SELECT of a statement, as far as advice needs it.
type block struct {
	items    [][]token // of the select list
	distinct bool
	tables   map[string]tableName // of its FROM, by what they are called
	where    string
	on       []string // conditions of its joins
	group    [][]token
	order    [][]token
	rollup   bool
	limit    int64 // rows after which it may stop, those of OFFSET with them; 0: unknown
	limited  bool  // it has a LIMIT that ends it, though the text may not say after how many rows
	member   bool  // it is part of a UNION or its like
	parts    bool  // it is part of a UNION ALL that has a LIMIT
	exists   bool  // only whether it has a row matters
	in       bool  // only whether it has a value matters
}

// aggregates are functions that need all rows before they return one.
var aggregates = wordSet("COUNT SUM AVG MIN MAX GROUP_CONCAT JSON_ARRAYAGG JSON_OBJECTAGG BIT_AND BIT_OR BIT_XOR STD STDDEV STDDEV_POP STDDEV_SAMP VAR_POP VAR_SAMP VARIANCE OVER")

// gathers reports whether the block needs all its rows before it returns the first.
func (b *block) gathers() bool {
	if len(b.group) > 0 || b.distinct {
		return true
	}
	for _, item := range b.items {
		for i, x := range item {
			if x.Kind == sqltext.TokenWord && aggregates[strings.ToUpper(x.Text)] && (i+1 < len(item) && sign(item[i+1], "(") || word(x, "OVER")) {
				return true
			}
		}
	}
	return false
}

// writtenBy are the columns that an UPDATE sets, in lower case: as table.column where the statement names the table.
func writtenBy(sql string) map[string]bool {
	out := map[string]bool{}
	if sqltext.Verb([]byte(sql)) != "UPDATE" {
		return out
	}
	set := false
	t := lex(sql)
	for i, x := range outer(t) {
		switch {
		case word(x, "SET"):
			set = true
		case word(x, "WHERE") || word(x, "ORDER") || word(x, "LIMIT"):
			set = false
		case set && (sign(x, "=") || sign(x, ":=")) && i > 0 && t[i-1].Name() && assigns(t, i-1):
			column := t[i-1].Text
			if i >= 4 && sign(t[i-2], ".") && t[i-3].Name() {
				column = t[i-3].Text + "." + column
			}
			out[strings.ToLower(column)] = true
		}
	}
	return out
}

// assigns reports whether the column that ends at a place is at the beginning of an assignment, and not in its value.
func assigns(t []token, i int) bool {
	for i >= 2 && sign(t[i-1], ".") {
		i -= 2
	}
	return i > 0 && (word(t[i-1], "SET") || sign(t[i-1], ","))
}

// maxBlocks bounds how many SELECTs of a statement are looked at.
const maxBlocks = 64

// blocksOf cuts a statement into its SELECTs, outer ones first.
func blocksOf(sql string) []block {
	t := lex(sql)
	var out []block
	for i := range t {
		if len(out) == maxBlocks {
			break
		}
		switch {
		case word(t[i], "SELECT") && (i == 0 || !sign(t[i-1], ".")):
			out = append(out, blockAt(sql, t, i))
		case i == 0 && (word(t[i], "UPDATE") || word(t[i], "DELETE")):
			b := blockAt(sql, t, i)
			b.items = nil
			if b.tables == nil {
				b.tables = aliases(sql)
			}
			out = append(out, b)
		}
	}
	if ended := slices.ContainsFunc(out, func(b block) bool { return b.parts }); ended {
		for i := range out {
			out[i].parts = out[i].member && unionAll(t)
		}
	}
	return out
}

// unionAll reports whether the statement is one UNION ALL of SELECTs: its rows are sent as they come.
func unionAll(t []token) bool {
	depth, found := 0, false
	for i, x := range t {
		switch {
		case sign(x, "("):
			depth++
		case sign(x, ")"):
			depth--
		case word(x, "EXCEPT"), word(x, "INTERSECT"):
			return false
		case word(x, "UNION"):
			if found = depth == 0 && i+1 < len(t) && word(t[i+1], "ALL"); !found {
				return false
			}
		}
	}
	return found
}

// word reports whether a token is this word, given in upper case.
func word(t token, upper string) bool {
	return t.Kind == sqltext.TokenWord && strings.EqualFold(t.Text, upper)
}

// blockAt reads the SELECT at a place in the tokens.
func blockAt(sql string, t []token, i int) block {
	set := map[string]bool{"UNION": true, "EXCEPT": true, "INTERSECT": true}
	member := i > 0 && (set[strings.ToUpper(t[i-1].Text)] || i > 1 && set[strings.ToUpper(t[i-2].Text)] && !sign(t[i-1], "("))
	clauses := map[string][]token{}
	now, depth := "SELECT", 0
	for j, x := range t[i+1:] {
		then := ""
		if i+2+j < len(t) {
			then = strings.ToUpper(t[i+2+j].Text)
		}
		switch {
		case sign(x, "("):
			depth++
		case sign(x, ")"):
			depth--
		case depth == 0 && x.Kind == sqltext.TokenWord:
			switch w := strings.ToUpper(x.Text); w {
			case "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "WINDOW", "FOR", "INTO", "LOCK", "PROCEDURE", "RETURNING":
				now = w
				continue
			case "OFFSET", "FETCH":
				if w == "OFFSET" || then == "FIRST" || then == "NEXT" {
					now = "LIMIT"
				}
			case "ON":
				if then == "DUPLICATE" {
					now = "DUPLICATE"
				}
			case "UNION", "EXCEPT", "INTERSECT":
				member, depth = true, -1
			}
		case sign(x, ";"):
			depth = -1
		}
		if depth < 0 {
			break
		}
		clauses[now] = append(clauses[now], x)
	}
	before := asked(t, i)
	b := block{limit: limitOf(clauses["LIMIT"]), limited: len(clauses["LIMIT"]) > 0, exists: before == "EXISTS", in: before == "IN"}
	if len(clauses["HAVING"]) > 0 { // which rows count towards the LIMIT is known only by it
		b.limit = 0
	}
	list := clauses["SELECT"]
	for len(list) > 0 && (word(list[0], "DISTINCT") || word(list[0], "DISTINCTROW") || word(list[0], "ALL") || strings.HasPrefix(strings.ToUpper(list[0].Text), "SQL_") || word(list[0], "STRAIGHT_JOIN") || word(list[0], "HIGH_PRIORITY")) {
		b.distinct = b.distinct || strings.HasPrefix(strings.ToUpper(list[0].Text), "DISTINCT")
		if word(list[0], "SQL_CALC_FOUND_ROWS") { // all rows are read, to be counted
			b.limit, b.limited = 0, false
		}
		list = list[1:]
	}
	b.items = commas(list)
	if from := clauses["FROM"]; len(from) > 0 {
		b.tables = aliases("FROM " + sql[from[0].Begin:from[len(from)-1].End])
		b.on = joinsOn(sql, from)
	}
	if where := clauses["WHERE"]; len(where) > 0 {
		b.where = sql[where[0].Begin:where[len(where)-1].End]
	}
	group := after(clauses["GROUP"], "BY")
	if n := len(group); n > 1 && word(group[n-1], "ROLLUP") {
		b.rollup, group = true, group[:n-2]
	}
	b.group = commas(group)
	if b.member = member; member {
		b.parts = b.limited && len(clauses["ORDER"]) == 0
		b.limit, b.limited = 0, false // ORDER BY and LIMIT at the end are those of the whole union
	} else {
		b.order = commas(after(clauses["ORDER"], "BY"))
	}
	return b
}

// joinEnds are words that end the condition of a join.
var joinEnds = wordSet("JOIN INNER LEFT RIGHT CROSS STRAIGHT_JOIN NATURAL ON USING")

// joinsOn are the conditions after ON in a FROM.
func joinsOn(sql string, from []token) (out []string) {
	begin := -1
	end := func(i int) {
		if begin >= 0 && begin < i {
			out = append(out, sql[from[begin].Begin:from[i-1].End])
		}
		begin = -1
	}
	for i, x := range outer(from) {
		function := i+1 < len(from) && sign(from[i+1], "(") && !word(x, "ON") // LEFT(a, 3)
		if sign(x, ",") || x.Kind == sqltext.TokenWord && joinEnds[strings.ToUpper(x.Text)] && !function {
			end(i)
		}
		if word(x, "ON") {
			begin = i + 1
		}
	}
	end(len(from))
	return out
}

// after takes a word off the beginning.
func after(t []token, upper string) []token {
	if len(t) > 0 && word(t[0], upper) {
		return t[1:]
	}
	return t
}

// commas cuts a list at its outermost commas.
func commas(t []token) [][]token {
	var out [][]token
	begin := 0
	for i, x := range outer(t) {
		if sign(x, ",") {
			out = append(out, t[begin:i])
			begin = i + 1
		}
	}
	if begin < len(t) {
		out = append(out, t[begin:])
	}
	return out
}

// limitOf adds up LIMIT n, LIMIT m, n, LIMIT n OFFSET m and OFFSET m ROWS FETCH NEXT n ROWS ONLY; 0 if one of the numbers is not
// known, or more rows than that may be returned.
func limitOf(t []token) (sum int64) {
	for i, x := range t {
		switch {
		case x.Kind == sqltext.TokenNumber:
			n, err := strconv.ParseInt(x.Text, 10, 64)
			if err != nil || n > 1<<53 {
				return 0
			}
			sum += n
		case word(x, "ROWS") && i+1 < len(t) && word(t[i+1], "EXAMINED"): // MariaDB: an end of another kind
			return sum
		case sign(x, ",") || x.Kind == sqltext.TokenWord && limitWords[strings.ToUpper(x.Text)]:
		default:
			return 0
		}
	}
	return sum
}

var limitWords = wordSet("OFFSET FETCH FIRST NEXT ROW ROWS ONLY")

// blockOf finds the innermost SELECT that reads a table by that name.
func blockOf(list []block, name string) *block {
	for i := len(list) - 1; i >= 0; i-- {
		for alias := range list[i].tables {
			if strings.EqualFold(alias, name) {
				return &list[i]
			}
		}
	}
	return nil
}

// sortColumn is a column that a result is ordered or grouped by.
type sortColumn struct {
	name       string
	descending bool
}

// ordering is an order of rows that a statement asks for, and that an index of one table could provide.
type ordering struct {
	columns []sortColumn
	word    string // "ORDER BY", "GROUP BY", "DISTINCT", "GROUP BY and ORDER BY"
	limit   int64  // rows after which reading in this order may stop; 0: never
	extreme bool   // MIN or MAX: the first row of the order is all
	rest    string // what is sorted nevertheless, in words
	why     string // why no index provides the order asked for; columns is empty then
}

// orderOf finds which order of the table's columns would spare sorting and grouping. Columns that are fixed to one
// value are left out: they change no order.
func (b *block) orderOf(name string, f *TableFacts, fixed []string) ordering {
	isFixed := map[string]bool{}
	for _, c := range fixed {
		isFixed[c] = true
	}
	if c, ok := b.extreme(name, f); ok {
		return ordering{columns: []sortColumn{{name: c}}, word: "MIN or MAX", limit: 1, extreme: true}
	}
	groups, word := b.group, "GROUP BY"
	if len(groups) == 0 && b.distinct {
		groups, word = b.items, "DISTINCT"
	}
	order := b.order
	if len(order) == 1 && len(order[0]) == 1 && order[0][0].Kind == sqltext.TokenWord && strings.EqualFold(order[0][0].Text, "NULL") {
		order = nil
	}
	g, odd := b.sortColumns(groups, name, f, word == "GROUP BY")
	if odd != "" {
		return ordering{why: word + " " + odd}
	}
	o, odd := b.sortColumns(order, name, f, false)
	if odd != "" && len(g) == 0 {
		return ordering{why: "ORDER BY " + odd}
	}
	out := ordering{word: word, limit: b.limit}
	switch {
	case len(g) == 0:
		out.columns, out.word = o, "ORDER BY"
	case b.rollup && len(o) > 0:
		return ordering{why: "WITH ROLLUP adds rows that are sorted afterwards"}
	case odd != "" || !within(o, g) || len(o) > len(g):
		out.columns, out.limit = g, 0
		if len(order) > 0 {
			out.rest = "The ORDER BY sorts the groups by something other than the GROUP BY columns: that sort stays."
		}
	default:
		// Servers group by an index only in the order in which GROUP BY names its columns (seen with MySQL 5.7 to 9.7
		// and MariaDB 10.11).
		out.columns, out.limit = g, 0
		leads := true
		for i, c := range o {
			leads = leads && g[i].name == c.name
			out.columns[i].descending = c.descending
		}
		switch {
		case len(o) > 0 && leads:
			out.word += " and ORDER BY"
		case len(o) > 0:
			for i := range out.columns {
				out.columns[i].descending = false
			}
			out.rest = "The groups are sorted again for the ORDER BY: with its columns first in the GROUP BY an index would avoid that, too."
		}
	}
	var kept []sortColumn
	for _, c := range out.columns {
		if !isFixed[c.name] && !within([]sortColumn{c}, kept) {
			kept = append(kept, c)
		}
	}
	out.columns = kept
	return out
}

// extreme finds the column of a lone MIN or MAX: with an index on it servers look up its first or last entry.
func (b *block) extreme(name string, f *TableFacts) (string, bool) {
	if len(b.items) != 1 || len(b.group) > 0 || b.distinct || len(b.tables) != 1 {
		return "", false
	}
	item, _ := unalias(b.items[0])
	if len(item) < 4 || !word(item[0], "MIN") && !word(item[0], "MAX") || !sign(item[1], "(") || !sign(item[len(item)-1], ")") {
		return "", false
	}
	col, rest, ok := ownColumn(item[2:len(item)-1], name, f)
	return col, ok && len(rest) == 0
}

// within reports whether each of the columns is one of a list.
func within(cols, list []sortColumn) bool {
	for _, c := range cols {
		found := false
		for _, l := range list {
			found = found || l.name == c.name
		}
		if !found {
			return false
		}
	}
	return true
}

// sortColumns reads a list of ORDER BY or GROUP BY; odd says why one of its members is no column of the table.
func (b *block) sortColumns(list [][]token, name string, f *TableFacts, columnsFirst bool) (out []sortColumn, odd string) {
	for _, t := range list {
		c := sortColumn{}
		if n := len(t); n > 1 && (word(t[n-1], "DESC") || word(t[n-1], "ASC")) {
			c.descending = word(t[n-1], "DESC")
			t = t[:n-1]
		}
		col, rest, ok := ownColumn(t, name, f)
		if !(columnsFirst && ok && len(rest) == 0) {
			t = b.resolve(t)
			col, rest, ok = ownColumn(t, name, f)
		}
		switch {
		case ok && len(rest) == 0:
			c.name = col
			out = append(out, c)
		case mentions(t, name, f):
			return nil, "is by an expression, " + textOf(t) + ", an order that no index on columns has"
		default:
			return nil, "is by " + textOf(t) + ", which is not a column of this table"
		}
	}
	return out, ""
}

// resolve follows a position or an alias of the select list; an item's own alias is taken off.
func (b *block) resolve(t []token) []token {
	if len(t) != 1 {
		return t
	}
	if t[0].Kind == sqltext.TokenNumber {
		if n, err := strconv.Atoi(t[0].Text); err == nil && n >= 1 && n <= len(b.items) {
			item, _ := unalias(b.items[n-1])
			return item
		}
		return t
	}
	for _, item := range b.items {
		if expr, alias := unalias(item); alias != "" && strings.EqualFold(alias, t[0].Text) {
			return expr
		}
	}
	return t
}

// unalias takes the alias off an item of a select list.
func unalias(item []token) (expr []token, alias string) {
	n := len(item)
	switch {
	case n > 2 && word(item[n-2], "AS"):
		return item[:n-2], strings.Trim(item[n-1].Text, `'"`)
	case n > 1 && item[n-1].Name() && (item[n-2].Name() || sign(item[n-2], ")") || item[n-2].Kind != sqltext.TokenSign) && !word(item[n-1], "END"):
		return item[:n-1], item[n-1].Text
	}
	return item, ""
}

// textOf is tokens as a person would write them.
func textOf(t []token) string {
	var b strings.Builder
	for i, x := range t {
		if i > 0 && x.Begin > t[i-1].End {
			b.WriteByte(' ')
		}
		b.WriteString(x.Text)
	}
	return oneline.Of(b.String())
}
