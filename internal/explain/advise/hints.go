package advise

import (
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/sqltext"
)

// HintsPattern finds, as REGEXP of any server, texts that may name an index in a hint.
const HintsPattern = `(force|use|ignore)[[:space:]]+(index|key)|/[*][+]`

// HintedIndexes are the names of indexes that hints of a statement, or of a program's text, name: FORCE, USE and IGNORE INDEX, without which
// the statement fails once the index is gone, and optimizer hints, without which it has another plan.
func HintedIndexes(d sqltext.Dialect, text string) (names []string) {
	var code []sqltext.Token
	for _, t := range d.All(text) {
		switch {
		case t.Kind == sqltext.TokenComment && strings.HasPrefix(t.Text, "/*+"):
			names = append(names, inComment(d, strings.TrimSuffix(t.Text[3:], "*/"))...)
		case t.Kind == sqltext.TokenComment, t.Kind == sqltext.TokenBlank:
		default:
			code = append(code, t)
		}
	}
	for i := 0; i+2 < len(code); i++ {
		if !is("USE", "FORCE", "IGNORE")(code[i].Text) || !is("INDEX", "KEY")(code[i+1].Text) || code[i].Kind != sqltext.TokenWord {
			continue
		}
		rest := code[i+2:]
		for len(rest) > 0 && is("FOR", "JOIN", "ORDER", "GROUP", "BY")(rest[0].Text) && rest[0].Kind == sqltext.TokenWord {
			rest = rest[1:]
		}
		inside, _, ok := sqltext.Group(rest)
		if !ok {
			continue
		}
		names = append(names, listed(inside)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// listed are the names of a list, in small letters.
func listed(list []sqltext.Token) (names []string) {
	for _, t := range list {
		if t.Kind == sqltext.TokenName || t.Kind == sqltext.TokenWord {
			names = append(names, strings.ToLower(t.Text))
		}
	}
	return names
}

// inComment are the indexes that optimizer hints name: NAME([@block] table [@block] index, …). Source: MySQL manual, "Optimizer Hints",
// "Index-Level Optimizer Hints".
func inComment(d sqltext.Dialect, text string) (names []string) {
	code := d.Tokens(text)
	for i := range code {
		if code[i].Kind != sqltext.TokenWord || !strings.Contains(strings.ToUpper(code[i].Text), "INDEX") && !is("MRR", "NO_MRR", "NO_ICP", "NO_RANGE_OPTIMIZATION", "SKIP_SCAN", "NO_SKIP_SCAN")(code[i].Text) {
			continue
		}
		inside, _, ok := sqltext.Group(code[i+1:])
		if !ok {
			continue
		}
		if list := listed(inside); len(list) > 1 {
			names = append(names, list[1:]...) // the first is the table; a block among them is no index, and does no harm
		}
	}
	return names
}
