package plan

import (
	"strings"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/sqltext"
)

// token is a piece of a condition or of a statement.
type token = sqltext.Token

// blockNumber is how MySQL's FORMAT=TREE and MariaDB refer to a query block: "(select #5)", "(subquery#5)". That is no
// comment.
var blockNumber = pattern.Lazy(`(?i)(?:select |subquery)#\d`)

// lex cuts SQL, as plans and statements have it, into tokens.
func lex(s string) []token { return sqltext.Tokens(numbered(s)) }

// numbered makes the numbers of blocks words, which are as long.
func numbered(s string) string {
	if strings.Contains(s, "#") {
		return blockNumber().ReplaceAllStringFunc(s, func(m string) string { return strings.Replace(m, "#", "$", 1) })
	}
	return s
}

// inBackticks is a condition as a server of the default sql_mode writes it. Servers write strings in single quotes under any mode;
// what is in double ones is a name, under ANSI_QUOTES (seen with MySQL 5.7 to 9.7, MariaDB 10.11 and 11.8).
func inBackticks(s string) string {
	if !strings.Contains(s, `"`) {
		return s
	}
	var b strings.Builder
	at := 0
	for _, t := range (sqltext.Dialect{ANSIQuotes: true}).Tokens(numbered(s)) {
		if t.Kind == sqltext.TokenName && s[t.Begin] == '"' {
			b.WriteString(s[at:t.Begin] + mysql.Quote(t.Text))
			at = t.End
		}
	}
	return b.String() + s[at:]
}

// namesInBackticks does so in all texts of a plan that are read as SQL.
func (p *Plan) namesInBackticks() {
	p.Rewritten = inBackticks(p.Rewritten)
	p.Root.Walk(func(n, _ *Node, _ int) {
		n.Condition, n.IndexCondition = inBackticks(n.Condition), inBackticks(n.IndexCondition)
		for _, list := range [][]string{n.SortKeys, n.Functions, n.Ref} {
			for i := range list {
				list[i] = inBackticks(list[i])
			}
		}
	})
}

// sign reports whether a token is this operator or sign.
func sign(t token, text string) bool { return t.Kind == sqltext.TokenSign && t.Text == text }

// redact puts ? in place of every literal.
func redact(s string) string {
	var b strings.Builder
	at := 0
	for _, t := range lex(s) {
		if t.Kind == sqltext.TokenString || t.Kind == sqltext.TokenNumber {
			b.WriteString(s[at:t.Begin] + "?")
			at = t.End
		}
	}
	return b.String() + s[at:]
}

// pretty is a condition as a person would write it: in one line, without quotes around plain names, without the schema in front of
// table and column, and without the optimizer's own notation.
func pretty(s string) string {
	s = spoken(s)
	t := lex(s)
	skip := map[int]bool{}
	for i := 0; i+4 < len(t); i++ {
		if t[i].Name() && sign(t[i+1], ".") && t[i+2].Name() && sign(t[i+3], ".") && t[i+4].Name() && (i == 0 || !sign(t[i-1], ".")) {
			skip[i], skip[i+1] = true, true
		}
	}
	var b strings.Builder
	at := 0
	for i, x := range t {
		if gap := s[at:x.Begin]; !strings.Contains(gap, "/*") {
			b.WriteString(gap)
		} else if i > 0 && !sign(t[i-1], "(") { // "/* select#2 */": the subquery is a separate step
			b.WriteByte(' ')
		}
		at = x.End
		switch {
		case skip[i]:
		case x.Kind == sqltext.TokenName && plainName().MatchString(x.Text):
			b.WriteString(x.Text)
		case x.Kind == sqltext.TokenWord && blockName().MatchString(s[x.Begin:x.End]): // as textOf has it
			b.WriteString(strings.Replace(s[x.Begin:x.End], "$", "#", 1))
		default:
			b.WriteString(s[x.Begin:x.End])
		}
	}
	return oneline.Of(b.String() + s[at:])
}

// blockName is what numbered makes of the number of a block.
var blockName = pattern.Lazy(`^(?i)(?:subquery)?\$\d+$`)

// plainName is a name that needs no quotes.
var plainName = pattern.Lazy(`^[A-Za-z_$\x{80}-\x{10FFFF}][0-9A-Za-z_$\x{80}-\x{10FFFF}]*$`)
