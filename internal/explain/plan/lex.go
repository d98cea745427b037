package plan

import "strings"

// A token of SQL text, as conditions of plans and statements need it.
type token struct {
	kind  tokenKind
	text  string // of names without their quotes
	begin int
	end   int
}

type tokenKind int

const (
	tokenWord   tokenKind = iota // keyword or name
	tokenName                    // quoted name
	tokenString                  // literal, also with a charset or a type in front
	tokenNumber
	tokenPunct
)

func wordByte(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// lex cuts SQL into tokens; blanks and comments are left out. What is not closed ends with the text.
func lex(s string) []token {
	var out []token
	for i := 0; i < len(s); {
		c := s[i]
		begin := i
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
		case c == '#' && i+1 < len(s) && s[i+1] >= '0' && s[i+1] <= '9' && i >= 7 && strings.EqualFold(s[i-7:i], "select "):
			// "(select #5)" of FORMAT=TREE is no comment.
			for i++; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
			}
			out = append(out, token{tokenWord, s[begin:i], begin, i})
		case c == '#' || strings.HasPrefix(s[i:], "--") && (i+2 == len(s) || s[i+2] <= ' '):
			i = after(s, i, "\n")
		case strings.HasPrefix(s[i:], "/*"):
			i = after(s, i+2, "*/")
		case c == '\'' || c == '"':
			i = quoted(s, i)
			out = append(out, token{tokenString, s[begin:i], begin, i})
		case c == '`':
			i = quoted(s, i)
			out = append(out, token{tokenName, strings.ReplaceAll(strings.Trim(s[begin:i], "`"), "``", "`"), begin, i})
		case c >= '0' && c <= '9' || c == '.' && i+1 < len(s) && s[i+1] >= '0' && s[i+1] <= '9':
			for i < len(s) && (wordByte(s[i]) || s[i] == '.' || (s[i] == '-' || s[i] == '+') && (s[i-1] == 'e' || s[i-1] == 'E')) {
				i++
			}
			out = append(out, token{tokenNumber, s[begin:i], begin, i})
		case wordByte(c):
			for i < len(s) && wordByte(s[i]) {
				i++
			}
			out = append(out, token{tokenWord, s[begin:i], begin, i})
		default:
			i++
			for _, op := range []string{"<=>", "<=", ">=", "<>", "!=", ":=", "->>", "->", "||", "&&"} {
				if strings.HasPrefix(s[begin:], op) {
					i = begin + len(op)
					break
				}
			}
			out = append(out, token{tokenPunct, s[begin:i], begin, i})
		}
	}
	return out
}

func after(s string, from int, end string) int {
	if from > len(s) {
		return len(s)
	}
	if j := strings.Index(s[from:], end); j >= 0 {
		return from + j + len(end)
	}
	return len(s)
}

// quoted gives the end of a quoted string or name that begins at i.
func quoted(s string, i int) int {
	q := s[i]
	for i++; i < len(s); i++ {
		switch {
		case s[i] == '\\' && q != '`':
			i++
		case s[i] == q && i+1 < len(s) && s[i+1] == q:
			i++
		case s[i] == q:
			return i + 1
		}
	}
	return len(s)
}

// redact puts ? in the place of every literal.
func redact(s string) string {
	var b strings.Builder
	at := 0
	for _, t := range lex(s) {
		if t.kind == tokenString || t.kind == tokenNumber {
			b.WriteString(s[at:t.begin] + "?")
			at = t.end
		}
	}
	return b.String() + s[at:]
}

// pretty is a condition as a person would write it: in one line, without quotes around plain names and without the
// schema in front of table and column.
func pretty(s string) string {
	t := lex(s)
	skip := map[int]bool{}
	for i := 0; i+4 < len(t); i++ {
		if isName(t[i]) && t[i+1].text == "." && isName(t[i+2]) && t[i+3].text == "." && isName(t[i+4]) && (i == 0 || t[i-1].text != ".") {
			skip[i], skip[i+1] = true, true
		}
	}
	var b strings.Builder
	at := 0
	for i, x := range t {
		b.WriteString(s[at:x.begin])
		at = x.end
		switch {
		case skip[i]:
		case x.kind == tokenName && plainName(x.text):
			b.WriteString(x.text)
		default:
			b.WriteString(s[x.begin:x.end])
		}
	}
	return oneLine(b.String() + s[at:])
}

func isName(t token) bool { return t.kind == tokenName || t.kind == tokenWord }

func plainName(s string) bool {
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	for i := 0; i < len(s); i++ {
		if !wordByte(s[i]) {
			return false
		}
	}
	return true
}
