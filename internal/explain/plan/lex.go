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
