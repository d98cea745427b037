package sqltext

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"slices"
)

// Fingerprinter makes fingerprints. The zero value is ready; it belongs to one goroutine and keeps its buffers.
//
// A fingerprint is the statement in lower case, without comments, with one blank where blanks were, and with ? for
// each literal; lists of literals and rows are one form whatever their length. It is the text that pt-query-digest
// 3.7.1 makes wherever that is right; docs/fingerprints.md lists where it is not.
type Fingerprinter struct {
	// MergeNumbered makes ? of the digits at the end of each part of a name, so that sbtest1 and sbtest2, or
	// orders_2024_01 and orders_2024_02, fall into one class, as they do with pt-query-digest. Off, a name is a name.
	MergeNumbered bool

	arms unions
}

// Fingerprint returns the fingerprint of one statement.
func Fingerprint(stmt string) string {
	var f Fingerprinter
	return string(f.Append(nil, []byte(stmt)))
}

// ClassID is the identity of a class: the MD5 of its fingerprint as 32 upper-case hex digits, which is how
// pt-query-digest 3.x names it (after "0x"). PMM and older versions show the last 16 digits.
func ClassID(fingerprint []byte) string {
	sum := md5.Sum(fingerprint)
	var b [32]byte
	hex.Encode(b[:], sum[:])
	for i, c := range b {
		if c >= 'a' {
			b[i] = c - 0x20
		}
	}
	return string(b[:])
}

// room is how many bytes one turn of the main loop may write without asking again.
const room = 48

// state is what the main loop remembers besides its places in the statement and in the fingerprint.
type state struct {
	depth   int  // open parentheses
	rows    int  // the depth around VALUES whose first row is being copied; -1: none
	exec    int  // open executable comments
	ordered bool // ORDER BY was seen
	union   bool // UNION was seen
	toolkit bool // a comment of Percona's tools was seen
	rec     *recorder
}

// Append appends the fingerprint of stmt to dst. It takes linear time on any input and allocates nothing once dst
// is large enough. What is cut off (a string, comment or list without its end) ends at the end of the statement.
func (f *Fingerprinter) Append(dst, stmt []byte) []byte { return f.append(dst, stmt, nil) }

// append does what Append says; rec, if there is one, notes the places of the literals in stmt.
func (f *Fingerprinter) append(dst, stmt []byte, rec *recorder) []byte {
	s, base := stmt, len(dst)
	i := skipBlank(s, 0)
	if i < len(s) {
		if out, ok := special(dst, s, i); ok {
			return out
		}
	}
	st := state{rows: -1, rec: rec}
	out, o := dst[:cap(dst)], base
	if i > 0 {
		i = f.leading(s, i)
	}
	for i < len(s) {
		if len(out)-o < room {
			out = grow(out, o)
		}
		c := s[i]
		class := classOf[c]
		if class == clWord {
			// words8, written out: a call here costs more than the work.
			var x uint64
			if i+8 <= len(s) {
				x = binary.LittleEndian.Uint64(s[i : i+8])
			} else {
				x = loadEnd(s, i)
			}
			y := x &^ high
			t := y | 0x20*ones
			letter := (t + (0x80-'a')*ones) &^ (t + (0x7f-'z')*ones) &^ x & high
			word := (y + (0x80-'0')*ones) &^ (y + (0x7f-'9')*ones)
			word |= high - (y ^ '_'*ones)
			word |= high - (y ^ '$'*ones)
			word |= letter | x
			low := x | letter>>2
			binary.LittleEndian.PutUint64(out[o:o+8], low)
			rest := ^word & high
			if rest == 0 {
				i, o, out = longWord(s, i+8, out, o+8)
			} else {
				n := bits.TrailingZeros64(rest)
				i += n >> 3
				o += n >> 3
				low &= 1<<(uint(n)&63&^7) - 1
				if k := keywordOf[low*keywordHash>>56]; k != 0 && keywords[k%kwCount] == low {
					i, o = st.keyword(k, s, i, out, o, o-n>>3, base)
				}
			}
			if i < len(s) && s[i] == ' ' && o > base && out[o-1] != ' ' {
				out[o] = ' '
				o++
				i++
			}
			continue
		}
		switch class {
		case clSpace:
			i++
			if o > base && out[o-1] != ' ' {
				out[o] = ' '
				o++
			}
		case clDigit:
			i, o, out = digits(s, i, out, o, base, rec)
		case clQuote:
			end := stringEnd(s, i)
			if rec != nil {
				rec.literal(s, i, end, out[base:o])
			}
			i = end
			out[o] = '?'
			o++
		case clOpen:
			st.depth++
			i++
			out[o] = '('
			o++
		case clClose:
			st.depth--
			i++
			out[o] = ')'
			o++
			if st.depth == st.rows {
				end := skipRows(s, i)
				rec.add(elRows, i, end, s)
				i = end
				st.rows = -1
			}
		case clDot:
			i, o, out = dot(s, i, out, o, base, rec)
		case clUnder:
			i, o, out = under(s, i, out, o, base, rec)
		case clTick:
			end := stringEnd(s, i)
			o, out = copyLower(out, o, s[i:end])
			i = end
		case clSign:
			i, o = sign(s, i, out, o, base, rec)
		case clSlash, clHash:
			i, o = st.comment(s, i, out, o, base)
			if st.toolkit {
				if rec != nil {
					rec.unsure = true
				}
				return append(dst, "percona-toolkit"...)
			}
		case clStar:
			i, o = st.star(s, i, out, o)
		default:
			out[o] = c
			o++
			i++
		}
	}
	return f.finish(&st, out[:o], base)
}

// finish does what can only be done at the end.
func (f *Fingerprinter) finish(st *state, out []byte, base int) []byte {
	out = trimEnd(out, base)
	if st.union {
		out = f.arms.collapse(out, base)
	}
	if f.MergeNumbered {
		out = mergeNumbered(out, base)
	}
	return out
}

// leading looks at the comments before the first word, which were skipped, for those that name a class.
func (f *Fingerprinter) leading(s []byte, i int) int {
	for j := 0; j < i; {
		if end, ok := commentEnd(s, j); ok {
			if isToolkit(s[j:end]) {
				return 0 // the main loop finds it again
			}
			j = end
			continue
		}
		j++
	}
	return i
}

// trimEnd takes off blanks and semicolons at the end.
func trimEnd(out []byte, base int) []byte {
	for len(out) > base && (out[len(out)-1] == ' ' || out[len(out)-1] == ';') {
		out = out[:len(out)-1]
	}
	return out
}

func grow(out []byte, o int) []byte {
	out = slices.Grow(out[:o], max(room, o/2, 256))
	return out[:cap(out)]
}

// longWord copies the rest of a word from i.
func longWord(s []byte, i int, out []byte, o int) (int, int, []byte) {
	for i < len(s) {
		if len(out)-o < room {
			out = grow(out, o)
		}
		word, _, low := words8(load8(s, i))
		binary.LittleEndian.PutUint64(out[o:], low)
		n := bits.TrailingZeros64(^word&high) >> 3
		i += n
		o += n
		if word != high {
			break
		}
	}
	return i, o, out
}

func copyLower(out []byte, o int, s []byte) (int, []byte) {
	if len(out)-o < len(s)+room {
		out = slices.Grow(out[:o], len(s)+room)
		out = out[:cap(out)]
	}
	for k := 0; k < len(s); k += 8 {
		x := load8(s, k)
		y := x &^ high
		upper := (y + (0x80-'A')*ones) &^ (y + (0x7f-'Z')*ones) &^ x & high
		binary.LittleEndian.PutUint64(out[o+k:], x|upper>>2)
	}
	return o + len(s), out
}

// digits skips a number, or copies a name that begins with digits.
func digits(s []byte, i int, out []byte, o, base int, rec *recorder) (int, int, []byte) {
	start := i
	word, digit, _ := words8(load8(s, i))
	n := bits.TrailingZeros64(^word&high) >> 3
	if m := bits.TrailingZeros64(^digit&high) >> 3; word != high && m == n && (i+n >= len(s) || s[i+n] != '.') {
		i += n
	} else if end, number := numberEnd(s, i); number {
		i = end
	} else {
		o, out = copyLower(out, o, s[i:end])
		return end, o, out
	}
	if rec != nil {
		rec.literal(s, start, i, out[base:o])
	}
	out[o] = '?'
	return i, o + 1, out
}

// under skips a string with its character set, or copies a name that begins with _.
func under(s []byte, i int, out []byte, o, base int, rec *recorder) (int, int, []byte) {
	if end, ok := charsetLiteral(s, i); ok {
		rec.literal(s, i, end, out[base:o])
		out[o] = '?'
		return end, o + 1, out
	}
	return longWord(s, i, out, o)
}

// star copies *, and */ where it ends an executable comment.
func (st *state) star(s []byte, i int, out []byte, o int) (int, int) {
	out[o] = '*'
	if st.exec > 0 && i+1 < len(s) && s[i+1] == '/' {
		st.exec--
		out[o+1] = '/'
		return i + 2, o + 2
	}
	return i + 1, o + 1
}

// dot copies a point that separates names, with a name of digits after it, or skips a number such as .5.
func dot(s []byte, i int, out []byte, o, base int, rec *recorder) (int, int, []byte) {
	switch {
	case bytes.HasPrefix(s[i:], []byte("...")):
		// The server's digest writes several literals, and the end of a text it cut, so.
		if rec != nil {
			rec.unsure = true
		}
		return i + 3, o + copy(out[o:], "?+"), out
	case i+1 < len(s) && isDigit(s[i+1]):
		if !afterName(s, i) {
			end := fractionEnd(s, i)
			rec.literal(s, i, end, out[base:o])
			out[o] = '?'
			return end, o + 1, out
		}
		end := wordEnd(s, i+1)
		o, out = copyLower(out, o, s[i:end])
		return end, o, out
	}
	out[o] = '.'
	return i + 1, o + 1, out
}

// afterName reports whether the point at i separates names, and does not begin a number.
func afterName(s []byte, i int) bool {
	return i > 0 && (isWord(s[i-1]) || s[i-1] == '`' || s[i-1] == '"' || s[i-1] == '?')
}

// sign copies + or -, unless it opens a comment, or is the sign of a literal and so part of it.
func sign(s []byte, i int, out []byte, o, base int, rec *recorder) (int, int) {
	if end, ok := commentEnd(s, i); ok {
		rec.add(elComment, i, end, s)
		return end, o
	}
	j := skipBlank(s, i+1)
	if startsLiteral(s, j) && !operandBefore(out[base:o]) {
		if rec != nil {
			rec.unsure = rec.unsure || s[j] == '?' || rec.sign >= 0
			rec.sign = i
		}
		for k := o; ; o = k { // a sign before the sign
			if k > base && out[k-1] == ' ' {
				k--
			}
			if k == base || out[k-1] != '-' && out[k-1] != '+' || operandBefore(out[base:k-1]) {
				return j, o
			}
			k--
			if rec != nil {
				rec.unsure = true
			}
		}
	}
	out[o] = s[i]
	return i + 1, o + 1
}

func startsLiteral(s []byte, i int) bool {
	if i >= len(s) {
		return false
	}
	switch c := s[i]; c {
	case '\'', '"', '?':
		return true
	case '.':
		return i+1 < len(s) && isDigit(s[i+1])
	default:
		if !isDigit(c) {
			return false
		}
		_, number := numberEnd(s, i)
		return number
	}
}

// operandBefore reports whether the fingerprint so far ends in an operand, so that a + or - after it is the operator
// between two operands and not a sign.
func operandBefore(out []byte) bool {
	if n := len(out); n > 0 && out[n-1] == ' ' {
		out = out[:n-1]
	}
	if len(out) == 0 {
		return false
	}
	switch c := out[len(out)-1]; {
	case c == ')' || c == '?' || c == '`' || c >= 0x80:
		return true
	case !isWord(c):
		return false
	}
	k := len(out)
	for k > 0 && len(out)-k <= maxKeyword && isWord(out[k-1]) {
		k--
	}
	return len(out)-k > maxKeyword || k > 0 && out[k-1] == '.' || !beforeExpr[string(out[k:])]
}

// comment skips the comment at i; an executable one is code, of which only the version is hidden.
func (st *state) comment(s []byte, i int, out []byte, o, base int) (int, int) {
	end, ok := commentEnd(s, i)
	if !ok {
		if i+1 >= len(s) || s[i] != '/' || s[i+1] != '*' {
			out[o] = s[i]
			return i + 1, o + 1
		}
		end = execEnd(s, i)
		st.exec++
		o += copy(out[o:], "/*")
		if s[i+2] != '!' {
			out[o] = 'm'
			o++
		}
		out[o] = '!'
		o++
		if isDigit(s[end-1]) || end < len(s) && s[end] == '?' {
			out[o] = '?'
			o++
			if !isDigit(s[end-1]) {
				end++
			}
		}
		return end, o
	}
	if text := s[i:end]; len(text) <= maxToolkit {
		if isToolkit(text) {
			st.toolkit = true
			return end, o
		}
		if bytes.HasPrefix(text, []byte("/*repeat union")) && len(text) < room {
			if st.rec != nil {
				st.rec.unsure = true
			}
			return end, o + copy(out[o:], text)
		}
	}
	st.rec.add(elComment, i, end, s)
	if o > base && end < len(s) && isWord(out[o-1]) && isWord(s[end]) {
		out[o] = ' '
		o++
	}
	return end, o
}

const maxToolkit = 256

// isToolkit recognizes the comment /*schema.table:chunk/chunks*/ of pt-table-checksum and its kin, one digit each.
func isToolkit(c []byte) bool {
	n := len(c)
	if n < 11 || n > maxToolkit || c[0] != '/' || c[n-1] != '/' || !isDigit(c[n-3]) || c[n-4] != '/' || !isDigit(c[n-5]) || c[n-6] != ':' {
		return false
	}
	name := c[2 : n-6]
	d := bytes.IndexByte(name, '.')
	return d > 0 && d < len(name)-1 && wordEnd(name, 0) == d && wordEnd(name, d+1) == len(name)
}

// special returns the fingerprints with special rules: mysqldump's reads, what the server logs for
// commands that are no SQL, CALL and USE.
func special(dst, s []byte, i int) ([]byte, bool) {
	s = s[i:]
	switch s[0] | 0x20 {
	case 's':
		if bytes.HasPrefix(s, []byte("SELECT /*!40001 SQL_NO_CACHE */ * FROM `")) {
			return append(dst, "mysqldump"...), true
		}
	case 'a':
		if bytes.HasPrefix(s, []byte("administrator command: ")) {
			n := len(dst)
			return trimEnd(append(dst, bytes.TrimSpace(s)...), n), true
		}
	case 'c':
		if word, ok := cutWord(s, "call"); ok {
			n := len(dst)
			out := append(dst, "call "...)
			if out = appendName(out, s, word); len(out) > n+5 {
				return out, true
			}
		}
	case 'u':
		if word, ok := cutWord(s, "use"); ok {
			j := skipBlank(s, word)
			end := j
			if j < len(s) && (s[j] == '`' || s[j] == '"') {
				end = stringEnd(s, j)
			} else {
				for end < len(s) && !isSpace(s[end]) && s[end] != ';' {
					end++
				}
			}
			if end > j && len(bytes.TrimRight(s[end:], "; \t\r\n\v\f")) == 0 {
				return append(dst, "use ?"...), true
			}
		}
	}
	return dst, false
}

// cutWord returns the place after the word, in lower case, with which s begins.
func cutWord(s []byte, word string) (int, bool) {
	n := len(word)
	if len(s) < n || !equalFold(s[:n], word) || len(s) > n && isWord(s[n]) {
		return 0, false
	}
	return n, true
}

func equalFold(s []byte, low string) bool {
	if len(s) != len(low) {
		return false
	}
	for i, c := range s {
		if lower(c) != low[i] {
			return false
		}
	}
	return true
}

// appendName appends the name a, or a.b, at i.
func appendName(out, s []byte, i int) []byte {
	for i = skipBlank(s, i); i < len(s); i = skipBlank(s, i) {
		end := i + 1
		switch {
		case s[i] == '`':
			end = stringEnd(s, i)
		case isWord(s[i]):
			end = wordEnd(s, i)
		case s[i] != '.':
			return out
		}
		for _, c := range s[i:end] {
			out = append(out, lower(c))
		}
		if s[i] != '.' {
			if k := skipBlank(s, end); k == len(s) || s[k] != '.' {
				return out
			}
		}
		i = end
	}
	return out
}
