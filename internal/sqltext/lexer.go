package sqltext

import "bytes"

// token is a piece of a text.
type token struct {
	kind       uint8
	open       bool // its closing quote or mark is missing
	start, end int
}

const (
	tkEnd    = iota
	tkWord   // a word without quotes
	tkTick   // a name in backticks, or in double quotes if these are for names
	tkString // a string, with its character set
	tkNumber
	tkVariable // the name after @: of a user's variable, or the host of an account
	tkParam    // $1; PostgreSQL
	tkSign     // one byte of anything else
	tkBlank    // from here on, what is no code
	tkComment
	tkMark // what opens an executable comment, with its version, or closes it: what is between is code
)

// lexer cuts a text into tokens: all of them together are the text.
type lexer struct {
	s    []byte
	d    Dialect
	i    int
	exec bool // within an executable comment
}

// next returns the next token that is code.
func (lx *lexer) next() token {
	for {
		for lx.i < len(lx.s) && isSpace(lx.s[lx.i]) {
			lx.i++
		}
		if t := lx.any(); t.kind < tkBlank {
			return t
		}
	}
}

// any returns the next token; at the end an empty one of the kind tkEnd, again and again.
func (lx *lexer) any() token {
	i, s := lx.i, lx.s
	if i >= len(s) {
		return token{kind: tkEnd, start: len(s), end: len(s)}
	}
	t := token{kind: tkSign, start: i, end: i + 1}
	switch classOf[s[i]] {
	case clSpace:
		for t.kind = tkBlank; t.end < len(s) && isSpace(s[t.end]); t.end++ {
		}
	case clSlash, clHash, clSign:
		lx.comment(&t)
	case clStar:
		if lx.exec && i+1 < len(s) && s[i+1] == '/' {
			lx.exec = false
			t.kind, t.end = tkMark, i+2
		}
	case clTick:
		if lx.d.Postgres {
			break
		}
		fallthrough
	case clQuote:
		lx.quoted(&t, i)
		if t.kind == tkTick && lx.behindAt(i) {
			t.kind = tkVariable
		}
	case clDigit, clDot, clUnder, clWord:
		lx.word(&t)
	}
	lx.i = t.end
	return t
}

// comment reads what may open a comment.
func (lx *lexer) comment(t *token) {
	s, i := lx.s, t.start
	switch {
	case s[i] == '#' && lx.d.Postgres:
		return
	case s[i] == '#', s[i] == '-' && i+1 < len(s) && s[i+1] == '-' && (lx.d.Postgres || i+2 == len(s) || s[i+2] <= ' ' || s[i+2] == 0x7f):
		t.kind, t.end = tkComment, lineEnd(s, i)
		if k := bytes.IndexByte(s[i:t.end], 0); k >= 0 && !lx.d.Postgres {
			t.end = i + k // the servers stop here, and find a byte that is no code
		}
	case s[i] == '/' && i+1 < len(s) && s[i+1] == '*':
		mark, runs := lx.d.opening(s, i)
		if runs {
			lx.exec = true
			t.kind, t.end = tkMark, mark
			return
		}
		t.kind = tkComment
		nested := 0
		if mark > 0 {
			nested = 1 // one level, where the comment is skipped for its version
		} else if lx.d.Postgres {
			nested = len(s)
		}
		t.end, t.open = nestedEnd(s, max(i+2, mark), nested)
	}
}

// nestedEnd returns the place after the */ that closes a comment whose text begins at i, which may contain others.
func nestedEnd(s []byte, i, most int) (end int, open bool) {
	for depth := 0; i+1 < len(s); {
		switch {
		case s[i] == '*' && s[i+1] == '/':
			if i += 2; depth == 0 {
				return i, false
			}
			depth--
		case s[i] == '/' && s[i+1] == '*' && depth < most:
			depth++
			i += 2
		default:
			i++
		}
	}
	return len(s), true
}

// quoted reads a string, or a name in quotes, whose quote is at i; t may begin before it.
func (lx *lexer) quoted(t *token, i int) {
	q := lx.s[i]
	end, closed := quoteEnd(lx.s, i, lx.d.escape(q))
	t.end, t.open, t.kind = end, !closed, tkString
	if q == '`' || q == '"' && (lx.d.ANSIQuotes || lx.d.Postgres) {
		t.kind = tkTick
	}
}

// behindAt reports whether an @ that is not part of @@ is right before i.
func (lx *lexer) behindAt(i int) bool {
	return i > 0 && lx.s[i-1] == '@' && (i < 2 || lx.s[i-2] != '@')
}

// word reads a word, a number, a string with what precedes its quote, or a variable's name.
func (lx *lexer) word(t *token) {
	s, i := lx.s, t.start
	c := s[i]
	if lx.behindAt(i) && !lx.d.Postgres {
		for t.end = i; t.end < len(s) && (isWord(s[t.end]) || s[t.end] == '.'); t.end++ {
		}
		t.kind = tkVariable
		return
	}
	switch classOf[c] {
	case clDigit:
		end, number := numberEnd(s, i)
		t.end = end
		if t.kind = tkWord; number && !(i > 0 && s[i-1] == '.' && afterName(s, i-1)) {
			t.kind = tkNumber
		}
		return
	case clDot:
		if i+1 < len(s) && isDigit(s[i+1]) && !afterName(s, i) {
			t.kind, t.end = tkNumber, fractionEnd(s, i)
		}
		return
	case clUnder:
		if _, ok := charsetLiteral(s, i); ok && !lx.d.Postgres {
			lx.introduced(t)
			return
		}
	}
	if c == '$' && lx.d.dollarQuotes() && lx.dollar(t) {
		return
	}
	t.kind, t.end = tkWord, wordEnd(s, i)
	if t.end != i+1 || t.end >= len(s) || s[t.end] != '\'' {
		return
	}
	switch c | 0x20 {
	case 'e':
		if lx.d.Postgres {
			end, closed := quoteEnd(s, t.end, '\\')
			t.kind, t.end, t.open = tkString, end, !closed
		}
	case 'n', 'x', 'b':
		lx.quoted(t, t.end)
	}
}

// introduced reads a string, or a number, with the character set before it.
func (lx *lexer) introduced(t *token) {
	j := skipBlank(lx.s, wordEnd(lx.s, t.start))
	switch c := lx.s[j]; {
	case c == '0':
		t.kind = tkString
		t.end, _ = numberEnd(lx.s, j)
	case c == '"' && lx.d.ANSIQuotes:
		t.kind, t.end = tkWord, wordEnd(lx.s, t.start)
	case c == '\'' || c == '"':
		lx.quoted(t, j)
	default: // x'0F'
		lx.quoted(t, j+1)
	}
}

// dollarQuotes reports whether $$ quotes: MySQL 9 has it for programs in other languages, PostgreSQL for all strings.
func (d Dialect) dollarQuotes() bool { return d.Postgres || !d.MariaDB && d.Version >= 90000 }

// dollar reads $1 of PostgreSQL, or a string between dollars: $$…$$, $tag$…$tag$.
func (lx *lexer) dollar(t *token) bool {
	s, i := lx.s, t.start
	end := i + 1
	for end < len(s) && s[end] != '$' && isWord(s[end]) {
		end++
	}
	if end < len(s) && s[end] == '$' && (end == i+1 || !isDigit(s[i+1])) {
		t.kind = tkString
		if k := bytes.Index(s[end+1:], s[i:end+1]); k >= 0 {
			t.end = end + 1 + k + end + 1 - i
		} else {
			t.end, t.open = len(s), true
		}
		return true
	}
	if lx.d.Postgres && i+1 < len(s) && isDigit(s[i+1]) {
		for t.end = i + 1; t.end < len(s) && isDigit(s[t.end]); t.end++ {
		}
		t.kind = tkParam
		return true
	}
	return false
}

// text returns the bytes of a token.
func (lx *lexer) text(t token) []byte { return lx.s[t.start:t.end] }

// is reports whether a token is the word, given in lower case.
func (lx *lexer) is(t token, low string) bool {
	return t.kind == tkWord && equalFold(lx.text(t), low)
}

// sign reports whether a token is the byte c.
func (lx *lexer) sign(t token, c byte) bool { return t.kind == tkSign && lx.s[t.start] == c }
