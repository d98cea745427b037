package binlogevent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MySQL's binary JSON (sql-common/json_binary.h): a byte with the type, then the value. Objects and arrays hold counts,
// lengths and offsets of two bytes, or four in the large forms.
const (
	jsonSmallObject = 0
	jsonLargeObject = 1
	jsonSmallArray  = 2
	jsonLargeArray  = 3
	jsonLiteralType = 4
	jsonInt16       = 5
	jsonUint16      = 6
	jsonInt32       = 7
	jsonUint32      = 8
	jsonInt64       = 9
	jsonUint64      = 10
	jsonDouble      = 11
	jsonString      = 12
	jsonOpaque      = 15
)

var errJSON = errors.New("a JSON value is damaged")

// maxJSONDepth is more than the server takes (100).
const maxJSONDepth = 200

// jsonNode is a value of a document: as text, and as an expression where a text would not read the same type again
// (a DECIMAL, a date, a number without a sign, a double whose digits the server's JSON reader rounds).
type jsonNode struct {
	text    string
	special bool
	sql     string // of a scalar
	keys    []string
	list    []jsonNode
	object  bool
	array   bool
	opaque  []byte // the types of what has bytes, see Opaque
}

// jsonLiteral is a JSON document as an expression in SQL that makes the same document, with the same types within.
func jsonLiteral(b []byte) (string, error) {
	if len(b) == 0 { // what an old server made of NULL in a NOT NULL column
		return "CAST('null' AS JSON)", nil
	}
	n, err := jsonValue(b[0], b[1:], 0)
	if err != nil {
		return "", err
	}
	if n.special && !n.object && !n.array {
		return "CAST(" + n.sql + " AS JSON)", nil
	}
	return n.expression(), nil
}

// JSONText is a JSON document as text, for people.
func JSONText(b []byte) (string, error) {
	if len(b) == 0 {
		return "null", nil
	}
	n, err := jsonValue(b[0], b[1:], 0)
	return n.text, err
}

// Exact reports whether the literal of a value is the value in every respect, on the server that wrote the log. What is not are bytes
// within a JSON document: a literal of bytes is a BIT there before MySQL 8.0, and a VARCHAR since, whatever column they came from.
func (c *Column) Exact(f Format, v Value) bool {
	if c.typ != typeJSON || v.Null || !v.Present || v.Partial || len(v.Raw) == 0 {
		return true
	}
	n, err := jsonValue(v.Raw[0], v.Raw[1:], 0)
	bytes := byte(typeBit)
	if f.server.Number >= 80000 {
		bytes = typeVarchar
	}
	return err == nil && !slices.ContainsFunc(n.opaque, func(typ byte) bool { return typ != bytes })
}

func (n jsonNode) expression() string {
	if !n.special {
		return "CAST(" + quoteUTF8(n.text) + " AS JSON)"
	}
	if !n.object && !n.array {
		return n.sql
	}
	var b strings.Builder
	b.WriteString(map[bool]string{true: "JSON_OBJECT(", false: "JSON_ARRAY("}[n.object])
	for i, x := range n.list {
		if i > 0 {
			b.WriteString(", ")
		}
		if n.object {
			b.WriteString(quoteUTF8(n.keys[i]) + ", ")
		}
		b.WriteString(x.expression())
	}
	return b.String() + ")"
}

// quoteUTF8 quotes a text independently of the session's character set.
func quoteUTF8(s string) string {
	return "_utf8mb4'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`, "\x00", `\0`).Replace(s) + "'"
}

func jsonValue(typ byte, b []byte, depth int) (jsonNode, error) {
	if depth > maxJSONDepth {
		return jsonNode{}, errJSON
	}
	c := cursor{b: b}
	var n jsonNode
	switch typ {
	case jsonSmallObject, jsonLargeObject, jsonSmallArray, jsonLargeArray:
		return jsonCompound(typ, b, depth)
	case jsonLiteralType:
		v := c.uint(1)
		if c.bad || v > 2 {
			return n, errJSON
		}
		n.text = [...]string{"null", "true", "false"}[v]
	case jsonInt16:
		n.text = strconv.Itoa(int(int16(c.uint(2))))
	case jsonInt32:
		n.text = strconv.Itoa(int(int32(c.uint(4))))
	case jsonInt64:
		n.text = strconv.FormatInt(int64(c.uint(8)), 10)
	case jsonUint16, jsonUint32, jsonUint64:
		v := c.uint(map[byte]int{jsonUint16: 2, jsonUint32: 4, jsonUint64: 8}[typ])
		n.text = strconv.FormatUint(v, 10)
		if v <= math.MaxInt64 { // as a text it would be an INTEGER
			n.special, n.sql = true, "CAST("+n.text+" AS UNSIGNED)"
		}
	case jsonDouble:
		f := math.Float64frombits(c.uint(8))
		n.text = strconv.FormatFloat(f, 'e', -1, 64)
		n.special, n.sql = true, n.text
	case jsonString:
		size, rest, ok := jsonLength(b)
		if !ok || size > len(rest) {
			return n, errJSON
		}
		n.text = jsonQuote(rest[:size])
	case jsonOpaque:
		return jsonOpaqueValue(b)
	default:
		return n, errJSON
	}
	if c.bad {
		return n, errJSON
	}
	return n, nil
}

// jsonLength reads a length of seven bits a byte.
func jsonLength(b []byte) (int, []byte, bool) {
	v := 0
	for i := 0; i < 5 && i < len(b); i++ {
		v |= int(b[i]&0x7f) << (7 * i)
		if b[i]&0x80 == 0 {
			return v, b[i+1:], true
		}
	}
	return 0, nil, false
}

func jsonCompound(typ byte, b []byte, depth int) (jsonNode, error) {
	n := jsonNode{object: typ <= jsonLargeObject, array: typ > jsonLargeObject}
	width := 2
	if typ == jsonLargeObject || typ == jsonLargeArray {
		width = 4
	}
	number := func(at int) int {
		if at < 0 || at+width > len(b) {
			return -1
		}
		return int(le(b[at : at+width]))
	}
	count, size := number(0), number(width)
	if count < 0 || size < 0 || size > len(b) || count > len(b) {
		return n, errJSON
	}
	b = b[:size]
	values := 2 * width
	if n.object {
		values += count * (width + 2)
	}
	var text strings.Builder
	text.WriteByte("[{"[map[bool]int{true: 1}[n.object]])
	for i := range count {
		if i > 0 {
			text.WriteString(", ")
		}
		if n.object {
			at := 2*width + i*(width+2)
			from := number(at)
			if from < 0 || at+width+2 > len(b) {
				return n, errJSON
			}
			to := from + int(binary.LittleEndian.Uint16(b[at+width:]))
			if to > len(b) {
				return n, errJSON
			}
			n.keys = append(n.keys, string(b[from:to]))
			text.WriteString(jsonQuote(b[from:to]) + ": ")
		}
		at := values + i*(width+1)
		if at+1+width > len(b) {
			return n, errJSON
		}
		t, value := b[at], b[at+1:at+1+width]
		inline := t == jsonLiteralType || t == jsonInt16 || t == jsonUint16 || width == 4 && (t == jsonInt32 || t == jsonUint32)
		if !inline {
			from := number(at + 1)
			if from < 0 || from > len(b) {
				return n, errJSON
			}
			value = b[from:]
		}
		x, err := jsonValue(t, value, depth+1)
		if err != nil {
			return n, err
		}
		n.special = n.special || x.special
		n.opaque = append(n.opaque, x.opaque...)
		n.list = append(n.list, x)
		text.WriteString(x.text)
	}
	text.WriteByte("]}"[map[bool]int{true: 1}[n.object]])
	n.text = text.String()
	return n, nil
}

// jsonQuote is a text as JSON writes it; bytes that are no UTF-8 cannot be in a document.
func jsonQuote(b []byte) string {
	var s strings.Builder
	s.WriteByte('"')
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == '"' || r == '\\':
			s.WriteByte('\\')
			s.WriteByte(byte(r))
		case r < ' ':
			fmt.Fprintf(&s, `\u%04x`, r)
		default:
			s.Write(b[:n])
		}
		b = b[n:]
	}
	s.WriteByte('"')
	return s.String()
}

// jsonOpaqueValue is a value of an SQL type within a document.
func jsonOpaqueValue(b []byte) (jsonNode, error) {
	n := jsonNode{special: true}
	if len(b) < 1 {
		return n, errJSON
	}
	typ := b[0]
	size, rest, ok := jsonLength(b[1:])
	if !ok || size > len(rest) {
		return n, errJSON
	}
	v := rest[:size]
	switch typ {
	case typeNewDecimal:
		if len(v) < 2 {
			return n, errJSON
		}
		s, err := decimalText(v[2:], int(v[0]), int(v[1]))
		if err != nil {
			return n, err
		}
		n.text, n.sql = s, fmt.Sprintf("CAST('%s' AS DECIMAL(%d,%d))", s, v[0], v[1])
	case typeDate, typeDatetime, typeTimestamp, typeTime:
		if len(v) != 8 {
			return n, errJSON
		}
		s := packedTime(int64(le(v)), typ)
		n.text = `"` + s + `"`
		switch typ {
		case typeDate:
			n.sql = "CAST('" + s + "' AS DATE)"
		case typeTime:
			n.sql = "CAST('" + s + "' AS TIME(6))"
		default: // a TIMESTAMP becomes a DATETIME, as no expression makes one
			n.sql = "CAST('" + s + "' AS DATETIME(6))"
		}
	default: // BIT, BLOB and the like: bytes of that type, as base64 for people
		n.text, n.sql, n.opaque = fmt.Sprintf(`"base64:type%d:…"`, typ), fmt.Sprintf("X'%X'", v), []byte{typ}
	}
	return n, nil
}

// packedTime reads MySQL's packed date or time (sql-common/my_time.cc, TIME_from_longlong_datetime_packed).
func packedTime(v int64, typ byte) string {
	sign := ""
	if v < 0 {
		sign, v = "-", -v
	}
	whole, micro := v>>24, v&(1<<24-1)
	if typ == typeTime {
		return fmt.Sprintf("%s%02d:%02d:%02d.%06d", sign, whole>>12&(1<<10-1), whole>>6&63, whole&63, micro)
	}
	ymd, hms := whole>>17, whole&(1<<17-1)
	ym := ymd >> 5
	date := fmt.Sprintf("%04d-%02d-%02d", ym/13, ym%13, ymd&31)
	if typ == typeDate {
		return date
	}
	return fmt.Sprintf("%s %02d:%02d:%02d.%06d", date, hms>>12, hms>>6&63, hms&63, micro)
}

// Operations of a difference between two JSON documents (sql/json_diff.h, Json_diff_vector::read_binary).
const (
	jsonReplace = 0
	jsonInsert  = 1
	jsonRemove  = 2
)

// Patched is a JSON value of which the log has only the differences to the one before, as an expression in SQL.
func (c *Column) Patched(before, diff Value) (string, error) {
	if before.Partial || !before.Present || before.Null || !diff.Partial {
		return "", errJSON
	}
	expr, err := jsonLiteral(before.Raw)
	if err != nil {
		return "", err
	}
	d := cursor{b: diff.Raw}
	for len(d.b) > 0 {
		op := d.uint(1)
		path := string(d.take(int(d.packed())))
		if d.bad || op > jsonRemove {
			return "", errJSON
		}
		if op == jsonRemove {
			expr = "JSON_REMOVE(" + expr + ", " + quoteUTF8(path) + ")"
			continue
		}
		raw := d.take(int(d.packed()))
		if d.bad || len(raw) == 0 {
			return "", errJSON
		}
		n, err := jsonValue(raw[0], raw[1:], 0)
		if err != nil {
			return "", err
		}
		function := "JSON_REPLACE"
		if op == jsonInsert {
			if function = "JSON_INSERT"; strings.HasSuffix(path, "]") {
				function = "JSON_ARRAY_INSERT"
			}
		}
		expr = function + "(" + expr + ", " + quoteUTF8(path) + ", " + n.expression() + ")"
	}
	return expr, d.err()
}
