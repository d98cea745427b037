package sqltext

import "bytes"

// The words that the main loop looks at more closely. All have at most eight bytes, so that a word is recognized by one
// comparison of 64 bits.
const (
	kwNone = iota
	kwIn
	kwValue
	kwValues
	kwNull
	kwTrue
	kwFalse
	kwLimit
	kwUnion
	kwOrder
	kwAsc
	kwN
	kwX
	kwB
	kwCount
)

var keywords = [kwCount]uint64{
	kwIn: pack("in"), kwValue: pack("value"), kwValues: pack("values"), kwNull: pack("null"), kwTrue: pack("true"),
	kwFalse: pack("false"), kwLimit: pack("limit"), kwUnion: pack("union"), kwOrder: pack("order"), kwAsc: pack("asc"),
	kwN: pack("n"), kwX: pack("x"), kwB: pack("b"),
}

func pack(s string) uint64 { return loadEnd([]byte(s), 0) }

// keywordHash spreads the words above over 256 places without a collision; a test holds it.
const keywordHash = 0x9E3779B97F4A7C15

// keywordOf maps the hash of a word to the keyword that it may be.
var keywordOf = func() (t [256]uint8) {
	for k := 1; k < kwCount; k++ {
		t[keywords[k]*keywordHash>>56] = uint8(k)
	}
	return t
}()

const maxKeyword = 12

// beforeExpr holds the words after which a + or - is a sign.
var beforeExpr = setOf("select", "where", "and", "or", "xor", "not", "between", "like", "rlike", "regexp", "in", "is",
	"then", "else", "when", "case", "if", "elseif", "while", "until", "by", "on", "having", "return", "div", "mod",
	"values", "value", "set", "interval", "limit", "offset", "distinct", "distinctrow", "all", "as", "default", "to",
	"escape", "returning", "sql_no_cache", "sql_cache", "call", "do", "using", "end", "top", "kill", "add", "using")

func setOf(words ...string) map[string]bool {
	m := make(map[string]bool, len(words))
	for _, w := range words {
		m[w] = true
	}
	return m
}

// keyword does what keyword k asks for. The word was copied to out[start:o] and i is after it.
func (st *state) keyword(k uint8, s []byte, i int, out []byte, o, start, base int) (int, int) {
	if start > base && (out[start-1] == '.' || out[start-1] == '@') {
		return i, o // a name
	}
	switch k {
	case kwIn:
		if j := skipBlank(s, i); j < len(s) && s[j] == '(' {
			if end, ok := literalList(s, j); ok {
				st.rec.add(elList, i, end, s)
				return end, o + copy(out[o:], "(?+)")
			}
		}
	case kwValue, kwValues:
		return st.values(s, i, out, o, start, base)
	case kwNull:
		before := out[base:start]
		if endsIn(before, "is ") || endsIn(before, "not ") {
			return i, o
		}
		st.rec.literal(s, i-(o-start), i, before)
		out[start] = '?'
		return i, start + 1
	case kwTrue, kwFalse:
		before := out[base:start]
		if endsIn(before, "is ") || endsIn(before, "is not ") {
			return i, o
		}
		st.rec.literal(s, i-(o-start), i, before)
		out[start] = '?'
		return i, start + 1
	case kwLimit:
		if end, ok := limitEnd(s, i); ok {
			st.rec.add(elLimit, i, end, s)
			return end, o + copy(out[o:], " ?")
		}
	case kwUnion:
		st.union = true
	case kwOrder:
		if j := skipBlank(s, i); j+2 <= len(s) {
			if _, ok := cutWord(s[j:], "by"); ok {
				st.ordered = true
			}
		}
	case kwAsc:
		if st.ordered {
			o = start
			if o > base && out[o-1] == ' ' {
				o--
			}
		}
	case kwN, kwX, kwB:
		if i < len(s) && s[i] == '\'' {
			end := stringEnd(s, i)
			st.rec.literal(s, i-1, end, out[base:start])
			out[start] = '?'
			return end, start + 1
		}
	}
	return i, o
}

// endsIn reports whether out ends in the words; they must begin where a word can.
func endsIn(out []byte, words string) bool {
	n := len(out) - len(words)
	return n >= 0 && string(out[n:]) == words && (n == 0 || !isWord(out[n-1]))
}

// values makes one form of the rows of VALUES. As a function, VALUES(col), it stays as it is.
func (st *state) values(s []byte, i int, out []byte, o, start, base int) (int, int) {
	j, row := rowsAt(s, i)
	if j >= len(s) || s[j] != '(' {
		return i, o
	}
	constructor := false // of rows: it is where a function cannot be
	if before := bytes.TrimRight(out[base:start], " "); len(before) == 0 {
		constructor = true
	} else if c := before[len(before)-1]; c == ')' || c == '`' || c == '/' || isWord(c) && !operatorWord(before) {
		constructor = true
	}
	if end, ok := literalList(s, j); ok {
		kind := uint8(elValues)
		switch {
		case row:
			kind = elRow
			o += copy(out[o:], " row")
			end = skipRows(s, end)
		case constructor:
			end = skipRows(s, end)
		default:
			kind = elFuncVal
			end = skipLiteralRows(s, end)
		}
		st.rec.add(kind, i, end, s)
		return end, o + copy(out[o:], "(?+)")
	}
	if constructor || row {
		st.rows = st.depth
	}
	return i, o
}

// rowsAt returns the place of what should be the parenthesis after VALUES, and whether MySQL's ROW precedes it:
// VALUES ROW(1,2), ROW(3,4).
func rowsAt(s []byte, i int) (int, bool) {
	j := skipBlank(s, i)
	if k, ok := cutWord(s[min(j, len(s)):], "row"); ok {
		if k = skipBlank(s, j+k); k < len(s) && s[k] == '(' {
			return k, true
		}
	}
	return j, false
}

// operatorWord reports whether out ends in a word that an expression follows.
func operatorWord(out []byte) bool {
	k := len(out)
	for k > 0 && len(out)-k <= maxKeyword && isWord(out[k-1]) {
		k--
	}
	return len(out)-k <= maxKeyword && beforeExpr[string(out[k:])]
}

// limitEnd returns the place after the literals of LIMIT n, LIMIT m, n or LIMIT n OFFSET m, if they are literals.
func limitEnd(s []byte, i int) (int, bool) {
	end, ok := literalEnd(s, skipBlank(s, i))
	if !ok {
		return i, false
	}
	j := skipBlank(s, end)
	if j < len(s) && s[j] == ',' {
		j++
	} else if k, ok := cutWord(s[j:], "offset"); ok {
		j += k
	} else {
		return end, true
	}
	if e, ok := literalEnd(s, skipBlank(s, j)); ok {
		return e, true
	}
	return end, true
}

// literalEnd returns the place after the literal at i, without a sign.
func literalEnd(s []byte, i int) (int, bool) {
	if i >= len(s) {
		return i, false
	}
	switch c := s[i]; classOf[c] {
	case clDigit:
		end, number := numberEnd(s, i)
		return end, number
	case clQuote:
		return stringEnd(s, i), true
	case clDot:
		if bytes.HasPrefix(s[i:], []byte("...")) {
			return i + 3, true
		}
		if i+1 < len(s) && isDigit(s[i+1]) {
			return fractionEnd(s, i), true
		}
	case clUnder:
		return charsetLiteral(s, i)
	case clWord:
		end := i
		for end < len(s) && end-i < 6 && isWord(s[end]) {
			end++
		}
		switch end - i {
		case 1:
			if c |= 0x20; (c == 'n' || c == 'x' || c == 'b') && end < len(s) && s[end] == '\'' {
				return stringEnd(s, end), true
			}
		case 4:
			return end, equalFold(s[i:end], "null") || equalFold(s[i:end], "true")
		case 5:
			return end, equalFold(s[i:end], "false")
		}
	default:
		if c == '?' {
			if i++; i < len(s) && s[i] == '+' { // ?+, as in a fingerprint
				i++
			}
			return i, true
		}
	}
	return i, false
}

// literalList returns the place after the list in parentheses at i, when all in it is literals, commas and
// parentheses. A list without its end ends with the statement.
func literalList(s []byte, i int) (int, bool) {
	depth, operand := 0, false
	for i < len(s) {
		c := s[i]
		switch classOf[c] {
		case clDigit:
			end, number := numberEnd(s, i)
			if !number {
				return i, false
			}
			i, operand = end, true
		case clQuote:
			i, operand = stringEnd(s, i), true
		case clOpen:
			depth++
			operand = false
			i++
		case clClose:
			i++
			if depth--; depth == 0 {
				return i, true
			}
			operand = true
		case clSpace:
			i++
		case clSlash, clHash:
			end, ok := commentEnd(s, i)
			if !ok {
				return i, false
			}
			i = end
		case clSign:
			if end, ok := commentEnd(s, i); ok {
				i = end
				continue
			}
			if operand {
				return i, false
			}
			i++
		case clOther:
			if c == ',' {
				operand = false
				i++
				continue
			}
			fallthrough
		default:
			end, ok := literalEnd(s, i)
			if !ok {
				if end, ok = cutWord(s[i:], "row"); !ok || operand {
					return i, false
				}
				end += i
				if k := skipBlank(s, end); k >= len(s) || s[k] != '(' {
					return i, false
				}
				i = end
				continue
			}
			i, operand = end, true
		}
	}
	return i, true
}

// nextRow returns the place of the parenthesis of the row after a comma at i.
func nextRow(s []byte, i int) (int, bool) {
	j := skipBlank(s, i)
	if j >= len(s) || s[j] != ',' {
		return i, false
	}
	j = skipBlank(s, j+1)
	if j < len(s) {
		if k, ok := cutWord(s[j:], "row"); ok {
			j = skipBlank(s, j+k)
		}
	}
	return j, j < len(s) && s[j] == '('
}

// skipRows skips rows, whatever is in them.
func skipRows(s []byte, i int) int {
	for {
		j, ok := nextRow(s, i)
		if !ok {
			return i
		}
		i = groupEnd(s, j)
	}
}

// skipLiteralRows skips rows that hold literals only.
func skipLiteralRows(s []byte, i int) int {
	for {
		j, ok := nextRow(s, i)
		if !ok {
			return i
		}
		if j, ok = literalList(s, j); !ok {
			return i
		}
		i = j
	}
}

// groupEnd returns the place after the parenthesis that closes the one at i.
func groupEnd(s []byte, i int) int {
	for depth := 0; i < len(s); {
		switch classOf[s[i]] {
		case clOpen:
			depth++
			i++
		case clClose:
			i++
			if depth--; depth == 0 {
				return i
			}
		case clQuote, clTick:
			i = stringEnd(s, i)
		case clSlash, clHash, clSign:
			end, ok := commentEnd(s, i)
			if !ok {
				end++
			}
			i = end
		default:
			i++
		}
	}
	return i
}

// charsets are the names that may precede a string with an underscore: all of MySQL 5.7 to 9 and MariaDB.
var charsets = setOf("armscii8", "ascii", "big5", "binary", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852",
	"cp866", "cp932", "dec8", "eucjpms", "euckr", "gb18030", "gb2312", "gbk", "geostd8", "greek", "hebrew", "hp8",
	"keybcs2", "koi8r", "koi8u", "latin1", "latin2", "latin5", "latin7", "macce", "macroman", "sjis", "swe7", "tis620",
	"ucs2", "ujis", "utf16", "utf16le", "utf32", "utf8", "utf8mb3", "utf8mb4")

// charsetLiteral returns the place after a string with its character set, such as _utf8mb4'x' or _binary 0x0F, at i.
func charsetLiteral(s []byte, i int) (int, bool) {
	end := i + 1
	var name [maxKeyword]byte
	for ; end < len(s) && isWord(s[end]); end++ {
		if end-i > len(name) {
			return i, false
		}
		name[end-i-1] = lower(s[end])
	}
	if !charsets[string(name[:end-i-1])] {
		return i, false
	}
	j := skipBlank(s, end)
	if j >= len(s) {
		return i, false
	}
	switch c := s[j]; {
	case c == '\'' || c == '"':
		return stringEnd(s, j), true
	case (c|0x20 == 'x' || c|0x20 == 'b') && j+1 < len(s) && s[j+1] == '\'':
		return stringEnd(s, j+1), true
	case c == '0':
		return numberEnd(s, j)
	}
	return i, false
}
