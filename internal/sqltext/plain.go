package sqltext

import "bytes"

// AppendPlain appends the plain form of a fingerprint: what is left of it when the spelling that the server's own
// digest does not keep is taken away. It has one way to set blanks, no quotes around plain names, one word where the
// servers know several (DISTINCT for DISTINCTROW), and ?+ for several literals in a row. Two statements that differ only in
// these have one plain form. ClassID of it is the name of a statement in all tools: it is the same from a slow log,
// and from performance_schema by AppendDigestText.
func AppendPlain(dst, fingerprint []byte) []byte {
	base := len(dst)
	if string(fingerprint) == "percona-toolkit" || bytes.HasPrefix(fingerprint, []byte("administrator command: ")) {
		return append(dst, fingerprint...)
	}
	p := plain{dst: dst, base: base}
	union := p.read(fingerprint)
	out := p.dst
	if union {
		var u unions
		out = u.collapse(out, base)
	}
	return out
}

// AppendDigestText appends the plain form of the statement from which the server made a DIGEST_TEXT
// (performance_schema.events_statements_summary_by_digest; MySQL 5.7 to 9, MariaDB): AppendDigestText of the digest is
// AppendPlain of the statement's fingerprint. docs/fingerprints.md lists what a digest loses for good; where it was cut
// at max_digest_length the plain form ends there, too.
func AppendDigestText(dst, digestText []byte) []byte {
	var f Fingerprinter
	return AppendPlain(dst, f.Append(nil, digestText))
}

// plain writes tokens with blanks as they are usual.
type plain struct {
	dst   []byte
	base  int
	kinds [3]uint8 // of the last tokens written, the newest first
	ends  [3]int   // where each of these began in dst
	glue  bool     // no blank before the next token
}

// Kinds of tokens in a plain form.
const (
	plNone = iota
	plWord
	plKeyword // a word with a blank before a parenthesis
	plLiteral
	plComma
	plOpen
	plOther
)

func (p *plain) read(s []byte) (union bool) {
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == ' ':
			i++
		case c == '`':
			end := stringEnd(s, i)
			p.word(unquoteName(s[i:end]))
			i = end
		case c == '?':
			if i++; i < len(s) && s[i] == '+' {
				i++
				p.literal("?+")
			} else {
				p.literal("?")
			}
		case isWord(c):
			end := wordEnd(s, i)
			union = union || string(s[i:end]) == "union"
			p.word(s[i:end])
			i = end
		case c == '@':
			i = p.variable(s, i)
		case c == '(':
			if n := placeholder(s[i:]); n > 0 {
				if bytes.Contains(s[i:i+n], []byte("unknown")) {
					p.literal("?")
				}
				i += n
				continue
			}
			p.open()
			i++
		case c == ')', c == ',', c == ';', c == '.':
			kind := uint8(plOther)
			if c == ',' {
				kind = plComma
			}
			p.glue = true
			p.put(kind, s[i:i+1])
			p.glue = c == '.'
			i++
		case bytes.HasPrefix(s[i:], []byte("/*repeat union")):
			end := blockEnd(s, i+2)
			p.put(plOther, s[i:end])
			i = end
		case bytes.HasPrefix(s[i:], []byte("/*!")), bytes.HasPrefix(s[i:], []byte("/*m!")):
			for i++; s[i] != '!'; i++ {
			}
			if i++; i < len(s) && s[i] == '?' {
				i++
			}
		case bytes.HasPrefix(s[i:], []byte("*/")):
			i += 2
		default:
			n := operatorLen(s[i:])
			op := s[i : i+n]
			if string(op) == "<>" {
				op = []byte("!=")
			}
			p.put(plOther, op)
			i += n
		}
	}
	return union
}

// put writes a token with the blank before it.
func (p *plain) put(kind uint8, text []byte) {
	if !p.glue && len(p.dst) > p.base {
		p.dst = append(p.dst, ' ')
	}
	p.glue = false
	p.kinds = [3]uint8{kind, p.kinds[0], p.kinds[1]}
	p.ends = [3]int{len(p.dst), p.ends[0], p.ends[1]}
	p.dst = append(p.dst, text...)
}

func (p *plain) word(w []byte) {
	kind := uint8(plWord)
	if len(w) <= 2*maxKeyword {
		low := string(w)
		if to, ok := oneWord[low]; ok {
			low, w = to, []byte(to)
		}
		if beforeParen[low] {
			kind = plKeyword
		}
	}
	p.put(kind, w)
}

func (p *plain) open() {
	p.glue = p.glue || p.kinds[0] == plWord || p.kinds[0] == plOpen
	p.put(plOpen, []byte{'('})
	p.glue = true
}

// literal writes ?; with a comma and a literal before it, these become one list.
func (p *plain) literal(text string) {
	if p.kinds[0] == plComma && p.kinds[1] == plLiteral {
		p.dst = append(p.dst[:p.ends[1]], "?+"...)
		p.kinds, p.ends = [3]uint8{plLiteral, p.kinds[2]}, [3]int{p.ends[1], p.ends[2]}
		p.glue = false
		return
	}
	if text == "?+" && p.kinds[0] == plOpen && p.kinds[1] == plKeyword { // in(?+), values(?+) as in a fingerprint
		if at := p.ends[0]; at > p.base && p.dst[at-1] == ' ' && (endsIn(p.dst[p.base:at], "in ") || endsIn(p.dst[p.base:at], "values ") || endsIn(p.dst[p.base:at], "value ")) {
			p.dst = append(p.dst[:at-1], '(')
			p.ends[0]--
		}
	}
	p.put(plLiteral, []byte(text))
}

// variable writes @? for a user's variable, whose name a digest does not keep, and @@name for the server's.
func (p *plain) variable(s []byte, i int) int {
	if i+1 < len(s) && s[i+1] == '@' {
		p.put(plOther, []byte("@@"))
		p.glue = true
		return i + 2
	}
	if n := len(p.dst); n > p.base && p.dst[n-1] == '?' {
		p.glue = true // 'user'@'host'
	}
	p.put(plWord, []byte("@?"))
	for i++; i < len(s) && s[i] == ' '; i++ {
	}
	switch {
	case i >= len(s):
	case s[i] == '`':
		return stringEnd(s, i)
	case s[i] == '?':
		return i + 1
	default:
		return wordEnd(s, i)
	}
	return i
}

// placeholder returns the length of (_charset), which a digest has before a string with a character set, and of
// MariaDB's (unknown), which it has for N'…'.
func placeholder(s []byte) int {
	for _, w := range []string{"(_charset)", "( _charset )", "(unknown)"} {
		if bytes.HasPrefix(s, []byte(w)) {
			return len(w)
		}
	}
	return 0
}

// operatorLen returns the length of the operator with which s begins.
func operatorLen(s []byte) int {
	for _, op := range []string{"<=>", "->>", "->", "<=", ">=", "!=", "<>", ":=", "||", "&&", "<<", ">>"} {
		if bytes.HasPrefix(s, []byte(op)) {
			return len(op)
		}
	}
	return 1
}

// unquoteName takes the backticks off a name that needs none; another one stays as it is, and so does a word that
// would be read as more than a name.
func unquoteName(b []byte) []byte {
	n := len(b)
	if n < 3 || b[n-1] != '`' || wordEnd(b, 1) != n-1 || quotedWords[string(b[1:n-1])] {
		return b
	}
	if isDigit(b[1]) {
		if _, number := numberEnd(b[:n-1], 1); number {
			return b
		}
	}
	return b[1 : n-1]
}

var quotedWords = setOf("null", "true", "false", "in", "values", "limit", "union", "asc", "order", "select")

// oneWord returns one word for words that are one token to the servers (sql/lex.h), of which a digest has the last in
// their list.
var oneWord = map[string]string{
	"distinctrow": "distinct", "substr": "substring", "mid": "substring", "schema": "database", "schemas": "databases",
	"some": "any", "rlike": "regexp", "integer": "int", "int4": "int", "int1": "tinyint", "int2": "smallint", "int3": "mediumint",
	"middleint": "mediumint", "int8": "bigint", "float4": "float", "float8": "double", "dec": "decimal", "character": "char",
	"varcharacter": "varchar", "fields": "columns", "describe": "explain", "std": "stddev", "stddev_pop": "stddev",
	"variance": "var_pop", "session_user": "user", "system_user": "user", "current_timestamp": "now", "localtime": "now",
	"localtimestamp": "now", "current_date": "curdate", "current_time": "curtime", "geometrycollection": "geomcollection",
	"sql_tsi_second": "second", "sql_tsi_minute": "minute", "sql_tsi_hour": "hour", "sql_tsi_day": "day", "sql_tsi_week": "week",
	"sql_tsi_month": "month", "sql_tsi_quarter": "quarter", "sql_tsi_year": "year", "io_thread": "relay_thread", "ndb": "ndbcluster",
}

// beforeParen holds the words that have a blank before a parenthesis.
var beforeParen = setOf("select", "from", "where", "and", "or", "xor", "not", "on", "join", "by", "as", "then", "when", "else",
	"set", "having", "using", "over", "exists", "in", "any", "all", "union", "table", "into", "between", "like", "with", "limit",
	"values", "value", "is", "case", "return", "div", "mod", "distinct", "index", "key", "references", "check", "partition", "row", "except", "intersect")
