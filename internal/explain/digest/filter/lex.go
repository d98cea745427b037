package filter

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokEnd tokenKind = iota
	tokName
	tokAt // @Name
	tokNumber
	tokText
	tokOp
)

// token is one word of an expression.
type token struct {
	kind    tokenKind
	text    string // the name, the text without its quotes, the operator
	num     float64
	seconds bool // the number had a unit of time
	sized   bool // it had another unit
	at      int  // byte offset
}

// shown is the token as an error quotes it.
func (t token) shown() string {
	if t.kind == tokEnd {
		return "the end"
	}
	return strconv.Quote(t.text)
}

func (p *parser) fail(at int, format string, args ...any) *Error {
	return &Error{Column: 1 + utf8.RuneCountInString(p.src[:min(at, len(p.src))]), Reason: fmt.Sprintf(format, args...), Source: p.src}
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }

// next reads the next token into p.tok.
func (p *parser) next() error {
	for p.pos < len(p.src) && strings.IndexByte(" \t\r\n", p.src[p.pos]) >= 0 {
		p.pos++
	}
	start := p.pos
	p.tok = token{at: start}
	if start >= len(p.src) {
		return nil
	}
	switch c := p.src[start]; {
	case letter(c):
		p.tok.kind, p.tok.text = tokName, p.word()
	case c == '@':
		p.pos++
		p.tok.kind, p.tok.text = tokAt, p.word()
		if p.tok.text == "" {
			return p.fail(start, "a name must follow @")
		}
	case digit(c), c == '.' && start+1 < len(p.src) && digit(p.src[start+1]):
		return p.number()
	case c == '"', c == '\'':
		return p.quoted(c)
	default:
		for _, op := range []string{"==", "!=", "<>", "<=", ">=", "=~", "!~", "&&", "||", "=", "<", ">", "!", "(", ")", ",", "+", "-", "*", "/"} {
			if strings.HasPrefix(p.src[start:], op) {
				p.pos += len(op)
				p.tok.kind, p.tok.text = tokOp, op
				return nil
			}
		}
		r, _ := utf8.DecodeRuneInString(p.src[start:])
		return p.fail(start, "%q does not belong here", r)
	}
	return nil
}

// word takes a name.
func (p *parser) word() string {
	start := p.pos
	for p.pos < len(p.src) && (letter(p.src[p.pos]) || digit(p.src[p.pos])) {
		p.pos++
	}
	return p.src[start:p.pos]
}

// units by their spelling: what one is worth, and whether it is of time.
var units = map[string]struct {
	factor  float64
	seconds bool
}{
	"us": {1e-6, true}, "µs": {1e-6, true}, "ms": {1e-3, true}, "s": {1, true}, "m": {60, true}, "min": {60, true}, "h": {3600, true}, "d": {86400, true},
	"k": {1e3, false}, "K": {1e3, false}, "M": {1e6, false}, "G": {1e9, false}, "T": {1e12, false},
	"KiB": {1 << 10, false}, "MiB": {1 << 20, false}, "GiB": {1 << 30, false}, "TiB": {1 << 40, false},
}

func (p *parser) number() error {
	start := p.pos
	for p.pos < len(p.src) && (digit(p.src[p.pos]) || p.src[p.pos] == '.') {
		p.pos++
	}
	// An exponent, unless the e begins a word.
	if e := p.pos; e < len(p.src) && p.src[e]|0x20 == 'e' {
		d := e + 1
		if d < len(p.src) && (p.src[d] == '+' || p.src[d] == '-') {
			d++
		}
		if d < len(p.src) && digit(p.src[d]) {
			for p.pos = d; p.pos < len(p.src) && digit(p.src[p.pos]); {
				p.pos++
			}
		}
	}
	v, err := strconv.ParseFloat(p.src[start:p.pos], 64)
	if err != nil {
		return p.fail(start, "%q is not a number", p.src[start:p.pos])
	}
	at := p.pos
	if strings.HasPrefix(p.src[at:], "µ") {
		p.pos += len("µ")
	}
	p.word()
	p.tok = token{kind: tokNumber, text: p.src[start:p.pos], num: v, at: start}
	if unit := p.src[at:p.pos]; unit != "" {
		u, ok := units[unit]
		if !ok {
			return p.fail(at, "%q is not a unit: use us, ms, s, m, h, d for times; k, M, G, T, KiB, MiB, GiB, TiB for counts and sizes", unit)
		}
		p.tok.num, p.tok.seconds, p.tok.sized = v*u.factor, u.seconds, !u.seconds
	}
	return nil
}

// quoted reads a text. A backslash escapes the quote after it; before anything else it stays, so
// that patterns are written as they are.
func (p *parser) quoted(quote byte) error {
	start := p.pos
	var b strings.Builder
	for i := start + 1; i < len(p.src); i++ {
		c := p.src[i]
		if c == '\\' && i+1 < len(p.src) && p.src[i+1] == quote {
			i++
			b.WriteByte(quote)
			continue
		}
		if c == '\\' && i+1 < len(p.src) && p.src[i+1] == '\\' { // stays a pair: the second protects no quote
			i++
			b.WriteString(`\\`)
			continue
		}
		if c == quote {
			p.pos = i + 1
			p.tok = token{kind: tokText, text: b.String(), at: start}
			return nil
		}
		b.WriteByte(c)
	}
	return p.fail(start, "the text has no closing %c", quote)
}
