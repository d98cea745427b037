package plan

import (
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sqltext"
)

// converted reports whether a comparison of a bare column with another table's column, or with another collation, makes
// the server convert the values of the column: an index on them does not find them then. A string compared with a
// number becomes a number (https://dev.mysql.com/doc/refman/9.4/en/type-conversion.html), a string of a smaller
// character set one of the larger (https://dev.mysql.com/doc/refman/9.4/en/charset-collation-expressions.html).
func converted(t []token, name string, f *TableFacts, others map[string]*TableFacts) (unusable, bool) {
	t = unwrap(t)
	if either(t) {
		return unusable{}, false
	}
	for i, x := range t {
		if i == 0 || i+1 == len(t) || !sign(x, "=") && !sign(x, "<=>") && !sign(x, "<") && !sign(x, ">") && !sign(x, "<=") && !sign(x, ">=") {
			continue
		}
		for _, side := range [][2][]token{{t[:i], t[i+1:]}, {t[i+1:], t[:i]}} {
			col, rest, ok := ownColumn(unwrap(side[0]), name, f)
			if !ok || len(rest) > 0 {
				continue
			}
			if why := f.column(col).converts(unwrap(side[1]), others); why != "" {
				return unusable{column: col, text: pretty(textOf(t)), why: why}, true
			}
		}
		return unusable{}, false
	}
	return unusable{}, false
}

// converts says why values of the column are converted before they are compared with the other side, or "".
func (c *ColumnFacts) converts(other []token, others map[string]*TableFacts) string {
	if !c.text() {
		return ""
	}
	for i := 0; i+1 < len(other); i++ {
		if word(other[i], "COLLATE") && c.Collation != "" && !finds(c.Collation, strings.Trim(other[i+1].Text, `'"`)) {
			return fmt.Sprintf("%s is stored in collation %s, but %s is used", c.Name, c.Collation, other[i+1].Text)
		}
	}
	q, name, rest := columnAt(other)
	if name == "" || len(rest) > 0 || q == "" {
		return ""
	}
	for alias, t := range others {
		o := t.column(name)
		if !strings.EqualFold(alias, q) || o == nil {
			continue
		}
		switch {
		case o.number():
			return fmt.Sprintf("%s is a %s and %s.%s a number: the server converts each value of %s; give both the same type", c.Name, c.Type, q, o.Name, c.Name)
		case o.text() && c.Charset != "" && o.Charset != "" && widens(c.Charset, o.Charset):
			return fmt.Sprintf("%s is stored in %s and %s.%s in %s: the server converts each value of %s; give both the same character set", c.Name, c.Charset, q, o.Name, o.Charset, c.Name)
		}
	}
	return ""
}

// finds reports whether an index in one collation finds what is equal in another: if the other is its own, or distinguishes all
// bytes apart, which is tested on what the index returns.
func finds(index, asked string) bool {
	charset, _, _ := strings.Cut(strings.ToLower(index), "_")
	return strings.EqualFold(index, asked) || strings.EqualFold(charset+"_bin", asked)
}

// number reports whether values of the column are numbers.
func (c *ColumnFacts) number() bool {
	switch c.Type {
	case "tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "bit", "year":
		return true
	}
	return false
}

// widens reports whether strings of one character set are converted when they meet those of another.
func widens(from, to string) bool {
	rank := func(s string) int {
		switch strings.ToLower(s) {
		case "utf8mb4", "utf16", "utf32", "utf16le":
			return 2
		case "utf8", "utf8mb3", "ucs2":
			return 1
		}
		return 0
	}
	return rank(from) < rank(to)
}

// sampleWords are the words that a comparison may have to be asked of a sample: operators, units, and functions that
// only compute.
var sampleWords = wordSet(`AND OR NOT LIKE IN BETWEEN IS NULL TRUE FALSE UNKNOWN AS INTERVAL DIV MOD COLLATE
	DATE TIME DATETIME TIMESTAMP SIGNED UNSIGNED CHAR DECIMAL INTEGER BINARY
	MICROSECOND SECOND MINUTE HOUR DAY WEEK MONTH QUARTER YEAR
	CAST ISNULL LOWER LCASE UPPER UCASE LEFT RIGHT SUBSTR SUBSTRING TRIM LENGTH CHAR_LENGTH CONCAT COALESCE IFNULL IF ABS ROUND FLOOR CEILING
	DAYOFMONTH DAYOFWEEK WEEKDAY TO_DAYS NOW CURDATE CURRENT_DATE CURRENT_TIMESTAMP UTC_TIMESTAMP`)

// sampleSigns are the signs that it may have.
var sampleSigns = map[string]bool{"=": true, "<": true, ">": true, "<=": true, ">=": true, "<>": true, "!=": true, "<=>": true,
	"(": true, ")": true, ",": true, "+": true, "-": true, "*": true, "/": true, "%": true}

func wordSet(list string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(list) {
		out[w] = true
	}
	return out
}

// sampleText is a comparison of columns of one table with constants as it can be asked of a sample of that table, or
// "". It is built from columns, literals and sampleWords alone: what the condition holds besides never reaches a server.
// One with a value that is hidden ("?") is not asked, but finds what was asked before the plan was redacted.
func sampleText(t []token, name string, f *TableFacts) string {
	for _, side := range sides(unwrap(t)) {
		for _, part := range conjoined(unwrap(side)) {
			if _, _, ok := spanned(unwrap(part)); ok {
				return "" // to SQL it is another comparison
			}
		}
	}
	var out []string
	depth := 0
	for len(t) > 0 {
		x := t[0]
		if len(t) >= 3 && sign(x, "<") && word(t[1], "CACHE") && sign(t[2], ">") { // "<cache>(…)": a constant
			t = t[3:]
			continue
		}
		if x.Kind == sqltext.TokenString || x.Kind == sqltext.TokenNumber {
			out, t = append(out, x.Text), t[1:]
			continue
		}
		if x.Kind == sqltext.TokenSign {
			if x.Text == "(" {
				depth++
			} else if x.Text == ")" {
				depth--
			}
			if !sampleSigns[x.Text] && x.Text != "?" || depth < 0 {
				return ""
			}
			out, t = append(out, x.Text), t[1:]
			continue
		}
		call := len(t) > 1 && sign(t[1], "(")
		if col, rest, ok := ownColumn(t, name, f); ok && !call {
			out, t = append(out, mysql.Quote(col)), rest
			continue
		}
		if word(x, "COLLATE") && len(t) > 1 && plainName().MatchString(t[1].Text) {
			out, t = append(out, "COLLATE", t[1].Text), t[2:]
			continue
		}
		if x.Kind != sqltext.TokenWord || !sampleWords[strings.ToUpper(x.Text)] {
			return ""
		}
		word := strings.ToUpper(x.Text)
		if call { // a function must be right before its parenthesis
			word += "("
			depth++
			t = t[1:]
		}
		out, t = append(out, word), t[1:]
	}
	if depth != 0 || len(out) == 0 {
		return ""
	}
	return strings.Join(out, " ")
}
