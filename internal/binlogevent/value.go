package binlogevent

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rissodb/risso/internal/mysql"
)

// ErrSign says that a number's highest bit is set and that the log does not say whether the column has a sign.
var ErrSign = errors.New("the log does not say whether the column is UNSIGNED")

// Literal is a value as an expression in SQL which, assigned to its column or compared with it, is exactly that value.
//
// The expression means the same on every version of the server, in a session with time_zone '+00:00', a sql_mode without
// NO_BACKSLASH_ESCAPES and without restrictions of dates, and character_set_client utf8mb4. Texts whose bytes are not
// plainly readable, or whose character set the log does not say, are hexadecimal.
func (c *Column) Literal(v Value) (string, error) {
	if v.Null || !v.Present {
		return "NULL", nil
	}
	if v.Partial {
		return "", errors.New("the log has only the differences of the JSON value")
	}
	if c.fixed >= 0 && len(v.Raw) != c.fixed {
		return "", errShort
	}
	switch c.typ {
	case typeTiny, typeShort, typeInt24, typeLong, typeLongLong:
		return c.integer(v.Raw)
	case typeFloat:
		return doubleText(uint64(le(v.Raw)), true), nil
	case typeDouble:
		return doubleText(le(v.Raw), false), nil
	case typeNewDecimal:
		return decimalText(v.Raw, c.a, c.b)
	case typeBit:
		return fmt.Sprintf("b'%s'", strconv.FormatUint(be(v.Raw), 2)), nil
	case typeEnum, typeSet:
		return strconv.FormatUint(le(v.Raw), 10), nil
	case typeYear:
		if v.Raw[0] == 0 {
			return "'0000'", nil
		}
		return strconv.Itoa(1900 + int(v.Raw[0])), nil
	case typeNull:
		return "NULL", nil
	case typeJSON:
		return jsonLiteral(v.Raw)
	case typeGeometry, typeVector:
		return hexLiteral(v.Raw), nil
	case typeVarcharZip, typeBlobZip:
		plain, err := unzipColumn(v.Raw)
		if err != nil {
			return "", err
		}
		return hexLiteral(plain), nil
	case typeVarchar, typeVarString, typeString, typeBlob, typeTinyBlob, typeMediumBlob, typeLongBlob:
		return c.text(v.Raw), nil
	}
	s, err := c.temporal(v.Raw)
	return "'" + s + "'", err
}

// Shown is a value for people to read: the literal, but a text whose character set the log does not say is taken for UTF-8
// if it is valid, and a JSON document is its text.
func (c *Column) Shown(v Value) (string, error) {
	switch {
	case v.Null || !v.Present || v.Partial:
	case c.typ == typeJSON:
		return JSONText(v.Raw)
	case c.Collation == 0 && c.Declared == "" && !c.Binary && c.charset && len(v.Raw) > 0 && readable(v.Raw, true):
		return "'" + string(v.Raw) + "'", nil
	}
	return c.Literal(v)
}

func le(b []byte) (v uint64) {
	for i, x := range b {
		v |= uint64(x) << (8 * i)
	}
	return v
}

func (c *Column) integer(b []byte) (string, error) {
	v := le(b)
	shift := 64 - 8*len(b)
	if s := int64(v<<shift) >> shift; s >= 0 || c.Known && !c.Unsigned {
		return strconv.FormatInt(s, 10), nil
	}
	if !c.Known {
		return "", ErrSign
	}
	return strconv.FormatUint(v, 10), nil
}

// doubleText is a FLOAT or DOUBLE with as many digits as it takes to read the same number again; a FLOAT as the double that
// it is compared as.
func doubleText(bits uint64, single bool) string {
	f := math.Float64frombits(bits)
	if single {
		f = float64(math.Float32frombits(uint32(bits)))
	}
	return strconv.FormatFloat(f, 'e', -1, 64)
}

// decimalText reads MySQL's packed DECIMAL: groups of nine digits in four bytes, big-endian, the highest bit inverted, all
// bits inverted if it is negative (strings/decimal.cc, decimal2bin).
func decimalText(b []byte, precision, scale int) (string, error) {
	if len(b) != decimalBytes(precision, scale) || len(b) == 0 {
		return "", errShort
	}
	buf := bytes.Clone(b)
	negative := buf[0]&0x80 == 0
	buf[0] ^= 0x80
	if negative {
		for i := range buf {
			buf[i] ^= 0xff
		}
	}
	var out strings.Builder
	if negative {
		out.WriteByte('-')
	}
	whole := precision - scale
	digits := ""
	group := func(n int) {
		size := digitBytes[n]
		digits += fmt.Sprintf("%0*d", n, be(buf[:size]))
		buf = buf[size:]
	}
	if n := whole % 9; n > 0 {
		group(n)
	}
	for range whole / 9 {
		group(9)
	}
	if digits = strings.TrimLeft(digits, "0"); digits == "" {
		digits = "0"
	}
	out.WriteString(digits)
	if scale > 0 {
		digits = ""
		for range scale / 9 {
			group(9)
		}
		if n := scale % 9; n > 0 {
			group(n)
		}
		out.WriteString("." + digits)
	}
	return out.String(), nil
}

func hexLiteral(b []byte) string {
	if len(b) == 0 {
		return "''"
	}
	return "X'" + strings.ToUpper(hex.EncodeToString(b)) + "'"
}

// text is a string of characters or bytes. Only texts that read the same are quoted in the client's character set.
func (c *Column) text(b []byte) string {
	switch c.Declared {
	case "uuid":
		return "'" + uuidOf(b) + "'"
	case "inet6", "inet4":
		size := 16
		if c.Declared == "inet4" {
			size = 4
		}
		full := make([]byte, size)
		copy(full, b)
		return hexLiteral(full)
	}
	quotable := c.Collation != 0 && !c.Binary && len(b) > 0
	unicode := quotable && utf8Collation(c.Collation)
	if !quotable || !unicode && wideCollation(c.Collation) || !readable(b, unicode) {
		if len(b) == 0 {
			return "''"
		}
		return hexLiteral(b)
	}
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(string(b)) + "'"
}

// readable reports whether a text may be quoted: letters and the like, in ASCII unless its column has UTF-8.
func readable(b []byte, unicode bool) bool {
	if unicode && !utf8.Valid(b) {
		return false
	}
	for _, x := range b {
		if x < ' ' && x != '\n' && x != '\t' && x != '\r' || x == 0x7f || x >= 0x80 && !unicode {
			return false
		}
	}
	return true
}

// utf8Collation reports whether a collation's number belongs to utf8mb3 or utf8mb4 (INFORMATION_SCHEMA.COLLATIONS of MySQL 9.7 and
// MariaDB 11.8).
func utf8Collation(id uint32) bool {
	if id >= 2048 { // MariaDB's uca1400: utf8mb3 from 2048, utf8mb4 from 2304, ucs2 from 2560
		return id < 2560
	}
	if id >= 1024 { // MariaDB's collations without padding
		id -= 1024
	}
	switch {
	case id == 33, id == 45, id == 46, id == 76, id == 83, id >= 192 && id <= 215, id >= 223 && id <= 247, id >= 255 && id <= 323:
		return true
	}
	return false
}

// wideCollation reports whether a collation's number belongs to a character set whose letters are no ASCII bytes, or not all of
// them: ucs2, utf16, utf16le, utf32, and what Risso does not know.
func wideCollation(id uint32) bool {
	narrow := []uint32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 34, 36, 37, 38, 39, 40, 41, 42, 43,
		44, 47, 48, 49, 50, 51, 52, 53, 57, 58, 59, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 77, 78, 79, 80, 81, 82, 84, 85, 86, 87, 88, 89, 92, 93, 94, 95, 96, 97, 98, 99}
	return !slices.Contains(narrow, id)
}

// uuidOf is MariaDB's UUID as text. Those of versions 1 to 5 are stored with their segments turned round, so that they sort
// by time (plugin/type_uuid/sql_type_uuid.h, UUID::memory_to_record).
func uuidOf(b []byte) string {
	full := make([]byte, 16)
	copy(full, b)
	// In a turned value, byte 6 and 7 hold the variant, and 8 and 9 the version.
	if full[6]&0x80 != 0 && full[8]>>4 >= 1 && full[8]>>4 <= 5 {
		full = slices.Concat(full[12:16], full[10:12], full[8:10], full[6:8], full[0:6])
	}
	return uuidText(full)
}

// unzipColumn unpacks the value of a COMPRESSED column (MariaDB, sql/field_comp.cc): a byte with the method, whether there
// is a zlib header, and how long the length is; 0: plain.
func unzipColumn(b []byte) ([]byte, error) {
	if len(b) == 0 {
		return b, nil
	}
	if b[0] == 0 {
		return b[1:], nil
	}
	n := int(b[0] & 7)
	if b[0]>>4 != 8 || n < 1 || n > 4 || len(b) < 1+n {
		return nil, errors.New("a COMPRESSED column packed in an unknown way")
	}
	size := be(b[1 : 1+n])
	var in io.ReadCloser
	if b[0]&8 != 0 {
		in = flate.NewReader(bytes.NewReader(b[1+n:]))
	} else {
		var err error
		if in, err = zlib.NewReader(bytes.NewReader(b[1+n:])); err != nil {
			return nil, err
		}
	}
	defer in.Close()
	var out bytes.Buffer
	if _, err := io.Copy(&out, io.LimitReader(in, int64(size)+1)); err != nil {
		return nil, err
	}
	if uint64(out.Len()) != size {
		return nil, errShort
	}
	return out.Bytes(), nil
}

// temporal is a date or time in text.
func (c *Column) temporal(b []byte) (string, error) {
	switch c.typ {
	case typeDate, typeNewDate:
		v := le(b)
		return fmt.Sprintf("%04d-%02d-%02d", v>>9, v>>5&15, v&31), nil
	case typeTime:
		v := int64(le(b)<<40) >> 40
		sign := ""
		if v < 0 {
			sign, v = "-", -v
		}
		return fmt.Sprintf("%s%02d:%02d:%02d", sign, v/10000, v/100%100, v%100), nil
	case typeDatetime:
		v := le(b)
		d, t := v/1e6, v%1e6
		return fmt.Sprintf("%04d-%02d-%02d %02d:%02d:%02d", d/10000, d/100%100, d%100, t/10000, t/100%100, t%100), nil
	case typeTimestamp:
		return timestampText(le(b), ""), nil
	case typeTimestamp2:
		return timestampText(be(b[:4]), fraction(be(b[4:]), c.a)), nil
	case typeDatetime2:
		v := be(b[:5]) - 1<<39
		ymd, hms := v>>17, v&(1<<17-1)
		ym := ymd >> 5
		return fmt.Sprintf("%04d-%02d-%02d %02d:%02d:%02d%s", ym/13, ym%13, ymd&31, hms>>12, hms>>6&63, hms&63, fraction(be(b[5:]), c.a)), nil
	case typeTime2:
		return time2Text(b, c.a), nil
	}
	return "", fmt.Errorf("a value of the unknown type %d", c.typ)
}

func timestampText(seconds uint64, fraction string) string {
	if seconds == 0 && strings.Trim(fraction, ".0") == "" {
		return "0000-00-00 00:00:00" + fraction
	}
	return time.Unix(int64(seconds), 0).UTC().Format("2006-01-02 15:04:05") + fraction
}

// fraction is the digits after the second: stored in pairs of digits, one byte a pair.
func fraction(v uint64, digits int) string {
	if digits == 0 {
		return ""
	}
	s := fmt.Sprintf("%0*d", (digits+1)/2*2, v)
	return "." + s[:digits]
}

// time2Text reads a TIME of MySQL 5.6 and later: seconds and fraction as one number, the sign as an offset
// (sql-common/my_time.cc, my_time_packed_from_binary).
func time2Text(b []byte, digits int) string {
	bits := 8 * (len(b) - 3) // of the fraction
	v := int64(be(b)) - 1<<(23+bits)
	sign := ""
	if v < 0 {
		sign, v = "-", -v
	}
	hms, frac := v>>bits, uint64(v)&(1<<bits-1)
	return fmt.Sprintf("%s%02d:%02d:%02d%s", sign, hms>>12&(1<<10-1), hms>>6&63, hms&63, fraction(frac, digits))
}

// Equals is a condition that is true for exactly the value, byte for byte, NULL for NULL.
func (c *Column) Equals(v Value) (string, error) {
	text, err := c.Literal(v)
	if err != nil {
		return "", err
	}
	name := mysql.Quote(c.Name)
	if v.Null {
		return name + " IS NULL", nil
	}
	switch c.typ {
	case typeVarchar, typeVarString, typeString, typeBlob, typeTinyBlob, typeMediumBlob, typeLongBlob, typeVarcharZip, typeBlobZip:
		if c.Declared == "uuid" || strings.HasPrefix(c.Declared, "inet") || c.Key {
			break // a key's own collation says what is the same, and its index is used
		}
		raw := v.Raw
		if c.typ == typeVarcharZip || c.typ == typeBlobZip {
			if raw, err = unzipColumn(raw); err != nil {
				return "", err
			}
		}
		if c.typ == typeString && c.Binary {
			raw = append(bytes.Clone(raw), make([]byte, max(0, c.a-len(raw)))...) // BINARY(n) is padded with zeros
		}
		return "CAST(" + name + " AS BINARY) = " + hexLiteral(raw), nil
	case typeGeometry, typeVector:
		return "HEX(" + name + ") = '" + strings.ToUpper(hex.EncodeToString(v.Raw)) + "'", nil
	case typeEnum:
		return name + " + 0 = " + text, nil
	case typeSet: // + 0 makes a DOUBLE of it, or a number with a sign
		return "CAST(" + name + " AS UNSIGNED) = " + text, nil
	case typeBit: // in MySQL b'…' + 0 has a sign, and its index is used for a number only
		return name + " = " + strconv.FormatUint(be(v.Raw), 10), nil
	}
	return name + " = " + text, nil
}
