package sqltext

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Classes of bytes, as the main loop distinguishes them.
const (
	clOther = iota // copied as it is
	clWord         // letters, $, and all bytes from 0x80 (UTF-8 or latin1 identifiers)
	clUnder        // _: an identifier, or the name of a character set before a string
	clDigit        // 0-9
	clSpace        // blanks, line ends, NUL is none of them
	clQuote        // ' and "
	clTick         // `
	clSign         // + and -
	clDot          // .
	clSlash        // / may open a comment
	clHash         // # opens a comment
	clStar         // * may close an executable comment
	clOpen         // (
	clClose        // )
)

// classOf is filled once, before anything runs, and never written again.
var classOf = classes()

func classes() (t [256]uint8) {
	for c := range t {
		switch {
		case c >= 0x80, c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '$':
			t[c] = clWord
		case c >= '0' && c <= '9':
			t[c] = clDigit
		}
	}
	for c, k := range map[byte]uint8{
		'_': clUnder, '\'': clQuote, '"': clQuote, '`': clTick, '+': clSign, '-': clSign, '.': clDot,
		'/': clSlash, '#': clHash, '*': clStar, '(': clOpen, ')': clClose,
		' ': clSpace, '\t': clSpace, '\n': clSpace, '\v': clSpace, '\f': clSpace, '\r': clSpace,
	} {
		t[c] = k
	}
	return t
}

func isWord(c byte) bool  { k := classOf[c]; return k >= clWord && k <= clDigit }
func isSpace(c byte) bool { return classOf[c] == clSpace }
func isDigit(c byte) bool { return c-'0' < 10 }

func lower(c byte) byte {
	if c-'A' < 26 {
		return c | 0x20
	}
	return c
}

// Eight bytes at a time: each byte of a word of 64 bits answers with its highest bit.
const (
	ones = 0x0101010101010101
	high = 0x8080808080808080
)

// words8 reports which of the eight bytes of x can be part of an identifier or number (letters, digits, _, $ and
// all from 0x80), which are digits, and returns x with its ASCII letters in lower case.
func words8(x uint64) (word, digit, low uint64) {
	y := x &^ high
	t := y | 0x20*ones
	letter := (t + (0x80-'a')*ones) &^ (t + (0x7f-'z')*ones) &^ x
	digit = (y + (0x80-'0')*ones) &^ (y + (0x7f-'9')*ones) &^ x & high
	under := high - (y ^ '_'*ones)
	dollar := high - (y ^ '$'*ones)
	word = (letter | digit | under | dollar | x) & high
	low = x | letter&high>>2
	return word, digit, low
}

// has8 reports which bytes of x equal c; only the lowest one set is sure.
func has8(x uint64, c byte) uint64 {
	y := x ^ uint64(c)*ones
	return (y - ones) &^ y & high
}

// digits8 reports how many of the eight bytes of x, from the first, are digits.
func digits8(x uint64) int {
	y := x ^ '0'*ones // a digit's byte is 0 to 9 now; after the first other byte nothing is sure
	return bits.TrailingZeros64((y+(0x80-10)*ones|y)&high) >> 3
}

// load8 returns the eight bytes from i, zeros where s ends before.
func load8(s []byte, i int) uint64 {
	if i+8 <= len(s) {
		return binary.LittleEndian.Uint64(s[i:])
	}
	return loadEnd(s, i)
}

func loadEnd(s []byte, i int) uint64 {
	if len(s) >= 8 {
		return binary.LittleEndian.Uint64(s[len(s)-8:]) >> (8 * uint(8-(len(s)-i)))
	}
	var x uint64
	for j := len(s) - 1; j >= i; j-- {
		x = x<<8 | uint64(s[j])
	}
	return x
}

// stringEnd returns the place after the closing quote of the string, or quoted identifier, that opens at i.
// A doubled quote is a quote; a backslash escapes, except between backticks. Without an end it is len(s).
func stringEnd(s []byte, i int) int {
	esc := byte('\\')
	if s[i] == '`' {
		esc = '`'
	}
	end, _ := quoteEnd(s, i, esc)
	return end
}

// quoteEnd returns the place after the quote that closes the one at i, and whether there is one. esc escapes what follows
// it; if nothing does, it is the quote itself.
func quoteEnd(s []byte, i int, esc byte) (end int, closed bool) {
	q := s[i]
	i++
	for i+8 <= len(s) {
		x := binary.LittleEndian.Uint64(s[i:])
		m := has8(x, q) | has8(x, esc)
		if m == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(m) >> 3
		if s[i] != q {
			i += 2
			continue
		}
		if i+1 < len(s) && s[i+1] == q {
			i += 2
			continue
		}
		return i + 1, true
	}
	for i < len(s) {
		switch {
		case s[i] == q && i+1 < len(s) && s[i+1] == q:
			i += 2
		case s[i] == q:
			return i + 1, true
		case s[i] == esc:
			i += 2
		default:
			i++
		}
	}
	return len(s), false
}

// numberEnd returns the place after the number or the identifier that begins with the digit at i.
// `2fa` is an identifier, `1e5`, `1.`, `0x1F` and `0b01` are numbers, as the servers have it.
func numberEnd(s []byte, i int) (end int, number bool) {
	j := i
	if s[i] == '0' && i+2 < len(s) {
		switch s[i+1] {
		case 'x': // 0X1F is a name
			for j = i + 2; j < len(s) && isHex(s[j]); j++ {
			}
		case 'b':
			for j = i + 2; j < len(s) && (s[j] == '0' || s[j] == '1'); j++ {
			}
		}
		if j > i+2 && (j == len(s) || !isWord(s[j])) {
			return j, true
		}
	}
	j = i + 1
	if i+8 <= len(s) {
		j = i + digits8(binary.LittleEndian.Uint64(s[i:]))
	}
	for ; j < len(s) && isDigit(s[j]); j++ {
	}
	if j < len(s) {
		switch class := classOf[s[j]]; {
		case class == clDot:
			return fractionEnd(s, j), true
		case class == clWord || class == clUnder:
			if e := exponentEnd(s, j); e > j {
				return e, true
			}
			return wordEnd(s, j), false
		}
	}
	return j, true
}

// fractionEnd returns the place after the fraction, and its exponent, whose point is at i.
func fractionEnd(s []byte, i int) int {
	for i++; i < len(s) && isDigit(s[i]); i++ {
	}
	return exponentEnd(s, i)
}

// exponentEnd returns the place after an exponent at i, or i.
func exponentEnd(s []byte, i int) int {
	if i+1 >= len(s) || s[i]|0x20 != 'e' {
		return i
	}
	j := i + 1
	if s[j] == '+' || s[j] == '-' {
		j++
	}
	if j >= len(s) || !isDigit(s[j]) {
		return i
	}
	for ; j < len(s) && isDigit(s[j]); j++ {
	}
	return j
}

func isHex(c byte) bool { return isDigit(c) || c|0x20-'a' < 6 }

func wordEnd(s []byte, i int) int {
	for i < len(s) && isWord(s[i]) {
		i++
	}
	return i
}

// commentEnd returns the place after the comment that opens at i, and whether one does.
// An executable comment (/*! and MariaDB's /*M!) is code, not a comment.
func commentEnd(s []byte, i int) (int, bool) {
	switch s[i] {
	case '#':
		return lineEnd(s, i), true
	case '-':
		if i+1 < len(s) && s[i+1] == '-' && (i+2 == len(s) || s[i+2] <= ' ' || s[i+2] == 0x7f) {
			return lineEnd(s, i), true
		}
	case '/':
		if i+1 < len(s) && s[i+1] == '*' && execEnd(s, i) == 0 {
			return blockEnd(s, i+2), true
		}
	}
	return i, false
}

// lineEnd returns the place of the line end after i.
func lineEnd(s []byte, i int) int {
	if k := bytes.IndexByte(s[i:], '\n'); k >= 0 {
		return i + k
	}
	return len(s)
}

// blockEnd returns the place after the next */ from i.
func blockEnd(s []byte, i int) int {
	for {
		k := bytes.IndexByte(s[min(i, len(s)):], '/')
		if k < 0 {
			return len(s)
		}
		if k > 0 && s[i+k-1] == '*' {
			return i + k + 1
		}
		i += k + 1
	}
}

// execEnd returns the place after the opening of an executable comment at i with its version (/*!80013, /*M!101100),
// or 0 if none opens.
func execEnd(s []byte, i int) int {
	j := i + 2
	if j < len(s) && (s[j] == 'M' || s[j] == 'm') {
		j++
	}
	if j >= len(s) || s[j] != '!' {
		return 0
	}
	for j++; j < len(s) && isDigit(s[j]); j++ {
	}
	return j
}

// skipBlank returns the place of the first byte from i that is neither blank nor in a comment.
func skipBlank(s []byte, i int) int {
	for i < len(s) {
		switch classOf[s[i]] {
		case clSpace:
			i++
		case clSlash, clHash, clSign:
			end, ok := commentEnd(s, i)
			if !ok {
				return i
			}
			i = end
		default:
			return i
		}
	}
	return i
}
