package sqltext

// TokenKind says what a Token is.
type TokenKind uint8

// The kinds of Token.
const (
	TokenWord      TokenKind = tkWord   // a keyword, or a name without quotes
	TokenName      TokenKind = tkTick   // a name in quotes
	TokenString    TokenKind = tkString // a string, with the character set or type before it
	TokenNumber    TokenKind = tkNumber
	TokenVariable  TokenKind = tkVariable // the name after @: of a user's variable, or the host of an account
	TokenParameter TokenKind = tkParam    // $1 of PostgreSQL; the ? of the others is a sign
	TokenSign      TokenKind = tkSign     // an operator or another sign
	TokenBlank     TokenKind = tkBlank
	TokenComment   TokenKind = tkComment
	TokenMark      TokenKind = tkMark // what opens or closes an executable comment whose text is code
)

// Token is a piece of a text.
type Token struct {
	Kind       TokenKind
	Open       bool   // its closing quote or mark is missing
	Text       string // as it is there; a name without its quotes
	Begin, End int    // its place in the text, in bytes
}

// Name reports whether the token can be the name of a table or column.
func (t Token) Name() bool { return t.Kind == TokenName || t.Kind == TokenWord }

// operators are those of more than one byte, the longest first.
var operators = []string{"<=>", "->>", "<=", ">=", "<>", "!=", ":=", "->", "||", "&&", "::"}

// Tokens cuts a statement, or a part of one, into tokens, as Dialect's zero value reads it. Blanks and comments are left
// out. What is not closed extends to the end of the text.
func Tokens(text string) []Token { return Dialect{}.Tokens(text) }

// Tokens cuts a text into tokens without its blanks, its comments and the marks of executable comments.
func (d Dialect) Tokens(text string) []Token { return d.cut(text, false) }

// All cuts a text into tokens; joined, from Begin to End, they are the text.
func (d Dialect) All(text string) []Token { return d.cut(text, true) }

func (d Dialect) cut(text string, all bool) []Token {
	lx := lexer{s: []byte(text), d: d}
	out := make([]Token, 0, min(len(text)/5+2, 256))
	mark := -1 // the last one
	for t := lx.any(); t.kind != tkEnd; t = lx.any() {
		if t.kind >= tkBlank && !all {
			continue
		}
		if t.kind == tkMark {
			mark = len(out)
		}
		if t.kind == tkSign {
			for _, op := range operators {
				if len(text)-t.start >= len(op) && text[t.start:t.start+len(op)] == op && (op != "::" || d.Postgres) {
					t.end = t.start + len(op)
					lx.i = t.end
					break
				}
			}
		}
		o := Token{Kind: TokenKind(t.kind), Open: t.open, Text: text[t.start:t.end], Begin: t.start, End: t.end}
		if o.Kind == TokenName || o.Kind == TokenVariable {
			o.Text = string(unquote(lx.s[t.start:t.end]))
		}
		out = append(out, o)
	}
	if lx.exec && mark >= 0 {
		out[mark].Open = true
	}
	return out
}
