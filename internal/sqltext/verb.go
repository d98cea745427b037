package sqltext

import "bytes"

// token is one word, name, literal or sign of a statement.
type token struct {
	kind       uint8
	start, end int
}

const (
	tkEnd    = iota
	tkWord   // a word without quotes
	tkTick   // a name between backticks
	tkString // a string, with its character set
	tkNumber
	tkSign // one byte of anything else
)

// scanner walks over the tokens of a statement; blanks and comments are none. What an executable comment holds is
// code like any other.
type scanner struct {
	s    []byte
	i    int
	exec int
}

func (sc *scanner) next() token {
	for {
		sc.i = skipBlank(sc.s, sc.i)
		i, s := sc.i, sc.s
		if i >= len(s) {
			return token{tkEnd, len(s), len(s)}
		}
		t := token{tkSign, i, i + 1}
		switch c := s[i]; classOf[c] {
		case clSlash:
			if i+1 < len(s) && s[i+1] == '*' { // skipBlank left it: it is executable
				sc.i = execEnd(s, i)
				sc.exec++
				continue
			}
		case clStar:
			if sc.exec > 0 && i+1 < len(s) && s[i+1] == '/' {
				sc.exec--
				sc.i += 2
				continue
			}
		case clQuote:
			t.kind, t.end = tkString, stringEnd(s, i)
		case clTick:
			t.kind, t.end = tkTick, stringEnd(s, i)
		case clDigit:
			end, number := numberEnd(s, i)
			t.end = end
			if t.kind = tkWord; number && (i == 0 || s[i-1] != '.') {
				t.kind = tkNumber
			}
		case clDot:
			if i+1 < len(s) && isDigit(s[i+1]) && !afterName(s, i) {
				t.kind, t.end = tkNumber, fractionEnd(s, i)
			}
		case clUnder, clWord:
			if end, ok := literalEnd(s, i); ok && (s[end-1] == '\'' || s[end-1] == '"' || classOf[c] == clUnder || end == len(s) && wordEnd(s, i) != end) {
				t.kind, t.end = tkString, end
			} else {
				t.kind, t.end = tkWord, wordEnd(s, i)
			}
		}
		sc.i = t.end
		return t
	}
}

// text gives the bytes of a token.
func (sc *scanner) text(t token) []byte { return sc.s[t.start:t.end] }

// is tells whether a token is the word, given in lower case.
func (sc *scanner) is(t token, low string) bool {
	return t.kind == tkWord && equalFold(sc.text(t), low)
}

// sign tells whether a token is the byte c.
func (sc *scanner) sign(t token, c byte) bool { return t.kind == tkSign && sc.s[t.start] == c }

// Verb gives the first word of a statement in upper case: SELECT, INSERT, CREATE and so on. Comments and opening
// parentheses are passed over, and so is WITH with its tables: the verb is that of the statement after it. What the
// server logs as "administrator command" is ADMIN; a statement without a word has none.
func Verb(stmt []byte) string {
	if bytes.HasPrefix(stmt, []byte("administrator command: ")) {
		return "ADMIN"
	}
	sc := scanner{s: stmt}
	t := sc.next()
	for sc.sign(t, '(') || sc.sign(t, ';') {
		t = sc.next()
	}
	if sc.is(t, "with") {
		depth := 0
	find:
		for t = sc.next(); t.kind != tkEnd; t = sc.next() {
			switch {
			case sc.sign(t, '('):
				depth++
			case sc.sign(t, ')'):
				depth--
			case depth == 0 && t.kind == tkWord:
				switch string(bytes.ToLower(sc.text(t))) {
				case "select", "insert", "update", "delete", "replace", "table", "values":
					break find
				}
			}
		}
	}
	if t.kind != tkWord {
		return ""
	}
	return string(bytes.ToUpper(sc.text(t)))
}
