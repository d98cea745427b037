package plan

import (
	"strings"

	"github.com/rissodb/risso/internal/sqltext"
)

// Servers write what the optimizer has made of a condition in their own notation, <in_optimizer>(a,<exists>(…)), which is no SQL
// and means nothing without reading the server's source (Item::print in sql/item.cc and sql/item_cmpfunc.cc of both flavours).

// maxSpoken bounds how many such pieces of one condition are put in words; deeper ones stay as they are.
const maxSpoken = 64

// spoken is a condition with the optimizer's notation in words.
func spoken(s string) string {
	for range maxSpoken {
		if !strings.Contains(s, "<") && !strings.Contains(s, "trigcond") {
			return s
		}
		next, found := spokenOnce(s)
		if !found {
			return s
		}
		s = next
	}
	return s
}

// innerAt is the name between < and > at a place in the tokens, in lower case, and how many tokens that is; "" if there is none.
func innerAt(t []token, i int) (name string, n int) {
	if word(t[i], "TRIGCOND") && i+1 < len(t) && sign(t[i+1], "(") {
		return "trigcond", 1
	}
	if i+2 < len(t) && sign(t[i], "<") && t[i+1].Name() && sign(t[i+2], ">") && t[i].End == t[i+1].Begin && t[i+1].End == t[i+2].Begin {
		return strings.ToLower(t[i+1].Text), 3
	}
	return "", 0
}

// spokenOnce puts the first piece of a condition in words.
func spokenOnce(s string) (string, bool) {
	t := lex(s)
	for i := range t {
		name, n := innerAt(t, i)
		open := i + n
		for name == "expr_cache" && open > i && open < len(t) && !sign(t[open], "(") { // <expr_cache><a,b>(…)
			open++
		}
		if name == "" || open >= len(t) || !sign(t[open], "(") {
			continue
		}
		shut := closing(t, open)
		if shut < 0 {
			continue
		}
		from := i
		inside := strings.TrimSpace(s[t[open].End:t[shut].Begin])
		text := ""
		switch args := commas(t[open+1 : shut]); name {
		case "in_optimizer":
			if text = inside; len(args) > 1 && len(args[0]) > 0 && len(args[1]) > 0 {
				text = strings.TrimSpace(s[args[1][0].Begin:t[shut].Begin])
				if args[0][0].Kind == sqltext.TokenNumber { // of EXISTS
					break
				}
				if first, _ := innerAt(args[1], 0); first == "exists" || first == "not" || word(args[1][0], "EXISTS") {
					text = s[args[0][0].Begin:args[0][len(args[0])-1].End] + " in (subquery)"
				}
			}
		case "exists", "not", "max", "min":
			text = name + " (" + inside + ")"
		case "materialize": // which is in parentheses
			text = inside
		case "is_not_null_test":
			text = "(" + inside + " is not null)"
		case "if":
			text = "if (" + inside + ")"
			if len(args) == 3 && len(args[0]) > 0 && len(args[1]) > 0 && len(args[2]) > 0 && (word(args[0][0], "IS_NOT_NULL_COMPL") || word(args[0][0], "FOUND_MATCH")) {
				text = s[args[1][0].Begin:args[1][len(args[1])-1].End]
				if len(args[1]) == 1 && word(args[1][0], "FALSE") && word(args[2][0], "TRUE") {
					text = "no match in " + strings.Trim(parenthesised(s[args[0][0].Begin:args[0][len(args[0])-1].End]), "<>")
				}
			}
		case "primary_index_lookup", "index_lookup", "unique_subquery", "index_subquery":
			if i > 0 && sign(t[i-1], ",") { // how the values before it are found
				from = i - 1
			}
		default: // <cache>, <nop>, <ref_null_helper>, <expr_cache><…>: what is done with a value changes nothing of it
			text = "(" + inside + ")"
			if shut == open+2 {
				text = inside
			}
		}
		if from > 0 && sign(t[from-1], "!") {
			from, text = from-1, "not ("+text+")"
		}
		return s[:t[from].Begin] + text + s[t[shut].End:], true
	}
	return s, false
}

// closing is the place of the parenthesis that ends what one at a place begins, or -1.
func closing(t []token, open int) int {
	depth := 0
	for i := open; i < len(t); i++ {
		switch {
		case sign(t[i], "("):
			depth++
		case sign(t[i], ")"):
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// unusual reports whether a comparison is written in the optimizer's notation: then it is none of columns with values.
func unusual(t []token) bool {
	for i := range outer(t) {
		if name, _ := innerAt(t, i); name != "" && name != "cache" {
			return true
		}
	}
	return false
}
