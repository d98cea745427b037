package plan

import (
	"strings"

	"github.com/rissodb/risso/internal/sqltext"
)

// predicates finds the columns of one table that conditions compare with a constant or another table's column: for
// equality, and by a range. Only what is joined by AND counts; an OR, or a function around the column, ends it.
func predicates(conditions []string, name string, f *TableFacts) (equal, ranges []string) {
	seen := map[string]bool{}
	for _, c := range conditions {
		for _, part := range conjuncts(lex(c)) {
			col, isRange, ok := comparison(part, name, f)
			if !ok || seen[col] && isRange {
				continue
			}
			if isRange {
				ranges = append(ranges, col)
			} else if !seen[col] {
				seen[col] = true
				equal = append(equal, col)
			}
		}
	}
	return equal, ranges
}

// conjuncts cuts a condition at the ANDs of its outermost level. Where that level has an OR it is one piece.
func conjuncts(t []token) [][]token {
	t = unwrap(t)
	depth, begin, between := 0, 0, false
	var out [][]token
	for i, x := range t {
		switch word := strings.ToUpper(x.Text); {
		case x.Kind == sqltext.TokenSign && x.Text == "(":
			depth++
		case x.Kind == sqltext.TokenSign && x.Text == ")":
			depth--
		case depth > 0 || x.Kind != sqltext.TokenWord && x.Text != "&&" && x.Text != "||":
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
	out = append(out, t[begin:])
	if len(out) == 1 {
		return out
	}
	var flat [][]token
	for _, part := range out {
		flat = append(flat, conjuncts(part)...)
	}
	return flat
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

// columnAt reads a column name at the beginning of tokens: a, t.a, s.t.a. It gives the rest.
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

// comparison reads one conjunct: column operator value, or value operator column.
func comparison(t []token, name string, f *TableFacts) (column string, isRange, ok bool) {
	t = unwrap(t)
	if col, rest, found := ownColumn(t, name, f); found && len(rest) > 0 {
		if kind, ok := operatorKind(rest); ok && !mentions(rest, name, f) {
			return col, kind == "range", true
		}
	}
	// 5 < a, and b.x = a.y where a is ours: the column stands last.
	for i := len(t) - 1; i > 0; i-- {
		if t[i].Kind != sqltext.TokenSign {
			continue
		}
		switch t[i].Text {
		case "=", "<=>", "<", ">", "<=", ">=":
			col, rest, found := ownColumn(t[i+1:], name, f)
			if found && len(rest) == 0 && !mentions(t[:i], name, f) {
				return col, t[i].Text != "=" && t[i].Text != "<=>", true
			}
			return "", false, false
		}
	}
	return "", false, false
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

// operatorKind says what a comparison after a column is: "equal" or "range".
func operatorKind(rest []token) (string, bool) {
	switch strings.ToUpper(rest[0].Text) {
	case "=", "<=>", "IN":
		return "equal", true
	case "<", ">", "<=", ">=", "BETWEEN":
		return "range", true
	case "LIKE":
		s := strings.TrimLeft(strings.TrimPrefix(rest[min(1, len(rest)-1)].Text, "N"), "'\"")
		return "range", len(rest) > 1 && s != "" && s[0] != '%' && s[0] != '_'
	case "IS":
		return "equal", len(rest) == 2 && strings.EqualFold(rest[1].Text, "NULL")
	}
	return "", false
}

// mentions says whether tokens hold a column of the table: then both sides of a comparison are its own.
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

// columnsOf finds the columns of a table that a statement names, for servers that do not tell them. A star is all.
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
		if c := f.column(x.Text); c != nil && !(i >= 2 && t[i-1].Text == "." && !strings.EqualFold(t[i-2].Text, name)) {
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
