package sqltext

// TokenKind says what a Token is.
type TokenKind uint8

// The kinds of Token.
const (
	TokenWord   TokenKind = tkWord   // a keyword, or a name without quotes
	TokenName   TokenKind = tkTick   // a name between backticks
	TokenString TokenKind = tkString // a string, with the character set or type before it
	TokenNumber TokenKind = tkNumber
	TokenSign   TokenKind = tkSign // an operator or another sign
)

// Token is a piece of a statement.
type Token struct {
	Kind       TokenKind
	Text       string // as it stands there; of a name without its backticks
	Begin, End int    // its place in the text, in bytes
}

// Name tells whether the token can be the name of a table or column.
func (t Token) Name() bool { return t.Kind == TokenName || t.Kind == TokenWord }

// operators are those of more than one byte, the longest first.
var operators = []string{"<=>", "->>", "<=", ">=", "<>", "!=", ":=", "->", "||", "&&"}

// Tokens cuts a statement, or a part of one, into tokens. Blanks and comments are left out; what an executable comment
// holds is code like any other, whichever server would run it. What is not closed ends with the text.
func Tokens(text string) []Token {
	sc := scanner{s: []byte(text)}
	var out []Token
	for t := sc.next(); t.kind != tkEnd; t = sc.next() {
		if t.kind == tkSign {
			for _, op := range operators {
				if len(text)-t.start >= len(op) && text[t.start:t.start+len(op)] == op {
					t.end = t.start + len(op)
					sc.i = t.end
					break
				}
			}
		}
		o := Token{Kind: TokenKind(t.kind), Text: text[t.start:t.end], Begin: t.start, End: t.end}
		if o.Kind == TokenName {
			o.Text = string(unquote(sc.s[t.start:t.end]))
		}
		out = append(out, o)
	}
	return out
}
