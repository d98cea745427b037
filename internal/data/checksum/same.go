package checksum

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/rissodb/risso/internal/mysql/define"
)

// same reports whether two values mean the same, though servers write them differently: a float as 1e20 or as
// 100000000000000000000, a time with or without a fraction of zeros, JSON with other spaces and another order of its keys.
func same(c define.TableColumn, a, b cell) bool {
	if a.equal(b) {
		return true
	}
	if a.null || b.null || !a.whole() || !b.whole() {
		return false
	}
	switch c.Type {
	case "float", "double", "real", "decimal", "tinyint", "smallint", "mediumint", "int", "bigint":
		return sameNumber(a.head, b.head)
	case "time", "datetime", "timestamp":
		return bytes.Equal(withoutZeros(a.head), withoutZeros(b.head))
	case "json":
		return sameJSON(a.head, b.head)
	}
	return false
}

func sameNumber(a, b []byte) bool {
	x, ok := new(big.Rat).SetString(string(a))
	y, okY := new(big.Rat).SetString(string(b))
	return ok && okY && x.Cmp(y) == 0
}

// withoutZeros removes the zeros of a time's fraction.
func withoutZeros(t []byte) []byte {
	if bytes.IndexByte(t, '.') < 0 {
		return t
	}
	return bytes.TrimSuffix(bytes.TrimRight(t, "0"), []byte("."))
}

func sameJSON(a, b []byte) bool {
	read := func(text []byte) (v any, ok bool) {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if d.Decode(&v) != nil {
			return nil, false
		}
		_, err := d.Token()
		return v, err == io.EOF
	}
	x, ok := read(a)
	y, okY := read(b)
	return ok && okY && reflect.DeepEqual(numbers(x), numbers(y))
}

// numbers makes equal numbers of JSON equal: 1.0 and 1, 1e2 and 100.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if r, ok := new(big.Rat).SetString(string(v)); ok {
			return r.RatString()
		}
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	case string:
		return "\"" + v
	}
	return v
}

// shown is how many characters of a value are shown.
const shown = 200

// show is a value for people: text as it is, what is no text in hexadecimal, NULL as nil.
func show(c define.TableColumn, v cell) *string {
	if v.null {
		return nil
	}
	s := ""
	switch {
	case c.Charset == "latin1" && !ascii(v.head): // cp1252 without its few special signs
		r := make([]rune, len(v.head))
		for i, b := range v.head {
			r[i] = rune(b)
		}
		s = string(r)
	case isBinary(c) || !utf8.Valid(v.head) && v.whole():
		s = "0x" + hex.EncodeToString(v.head[:min(len(v.head), shown/2)])
		if v.size == 0 {
			s = ""
		}
	default:
		s = strings.ToValidUTF8(string(v.head), "")
	}
	if r := []rune(s); len(r) > shown {
		s = string(r[:shown])
	}
	if int64(len(v.head)) < v.size || len(v.head) > shown {
		s += fmt.Sprintf("… (%d bytes, hash %016x)", v.size, v.hash.Lo)
	}
	return &s
}

func ascii(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

// isBinary reports whether a column's values are no text.
func isBinary(c define.TableColumn) bool {
	switch c.Type {
	case "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "bit", "geometry", "point", "linestring", "polygon",
		"multipoint", "multilinestring", "multipolygon", "geometrycollection", "geomcollection", "vector":
		return true
	}
	return false
}
