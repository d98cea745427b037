package binlogevent

import (
	"errors"
	"strings"
	"testing"
)

// TestColumns: what the metadata of each type says of the length of its values (Table_map_event in MySQL's rows_event.h).
func TestColumns(t *testing.T) {
	for _, c := range []struct {
		typ                 byte
		meta                string
		real                byte
		fixed, prefix, a, b int
	}{
		{1, "", 1, 1, 0, 0, 0}, {13, "", 13, 1, 0, 0, 0}, {2, "", 2, 2, 0, 0, 0}, {9, "", 9, 3, 0, 0, 0}, {10, "", 10, 3, 0, 0, 0}, {14, "", 14, 3, 0, 0, 0}, {11, "", 11, 3, 0, 0, 0},
		{3, "", 3, 4, 0, 0, 0}, {7, "", 7, 4, 0, 0, 0}, {8, "", 8, 8, 0, 0, 0}, {12, "", 12, 8, 0, 0, 0}, {6, "", 6, 0, 0, 0, 0}, {4, "04", 4, 4, 0, 0, 0}, {5, "08", 5, 8, 0, 0, 0},
		{17, "00", 17, 4, 0, 0, 0}, {17, "01", 17, 5, 0, 1, 0}, {17, "02", 17, 5, 0, 2, 0}, {17, "03", 17, 6, 0, 3, 0}, {17, "06", 17, 7, 0, 6, 0},
		{18, "00", 18, 5, 0, 0, 0}, {18, "06", 18, 8, 0, 6, 0}, {19, "00", 19, 3, 0, 0, 0}, {19, "04", 19, 5, 0, 4, 0},
		{16, "01 00", 16, 1, 0, 1, 0}, {16, "00 01", 16, 1, 0, 8, 0}, {16, "04 01", 16, 2, 0, 12, 0}, {16, "00 08", 16, 8, 0, 64, 0},
		{246, "0a 02", 246, 5, 0, 10, 2}, {246, "41 1e", 246, 30, 0, 65, 30},
		{15, "ff 00", 15, -1, 1, 255, 0}, {15, "00 01", 15, -1, 2, 256, 0}, {253, "14 00", 253, -1, 1, 20, 0}, {141, "2c 01", 141, -1, 2, 300, 0},
		{252, "01", 252, -1, 1, 0, 0}, {252, "04", 252, -1, 4, 0, 0}, {249, "01", 249, -1, 1, 0, 0}, {250, "03", 250, -1, 3, 0, 0}, {251, "04", 251, -1, 4, 0, 0}, {245, "04", 245, -1, 4, 0, 0},
		{255, "04", 255, -1, 4, 0, 0}, {242, "04", 242, -1, 4, 0, 0}, {140, "02", 140, -1, 2, 0, 0},
		{254, "fe 28", 254, -1, 1, 40, 0}, {254, "fe ff", 254, -1, 1, 255, 0}, {254, "ee 2c", 254, -1, 2, 300, 0}, {254, "ce fc", 254, -1, 2, 1020, 0}, {254, "de 00", 254, -1, 2, 512, 0},
		{254, "f7 01", 247, 1, 0, 1, 0}, {254, "f7 02", 247, 2, 0, 2, 0}, {254, "f8 08", 248, 8, 0, 8, 0},
	} {
		meta := cursor{b: unhex(t, c.meta)}
		col, ok := columnOf(c.typ, &meta)
		if !ok || meta.bad || len(meta.b) != 0 || col.typ != c.real || col.fixed != c.fixed || col.prefix != c.prefix || col.a != c.a || col.b != c.b {
			t.Errorf("type %d with %s: got %+v, %v, %d bytes left; want type %d, fixed %d, prefix %d, %d and %d", c.typ, c.meta, col, ok, len(meta.b), c.real, c.fixed, c.prefix, c.a, c.b)
		}
		if numeric := within(t, "1-5 8-9 246", uint32(c.real)); col.numeric != numeric {
			t.Errorf("type %d: got numeric %v, want %v", c.real, col.numeric, numeric)
		}
		if text := within(t, "15 252-254", uint32(c.real)); col.charset != text {
			t.Errorf("type %d: got with a character set %v, want %v", c.real, col.charset, text)
		}
	}
	for typ, meta := range map[byte]string{20: "", 200: "", 252: "00", 251: "05"} {
		if col, ok := columnOf(typ, &cursor{b: unhex(t, meta)}); ok {
			t.Errorf("type %d with %s: got %+v, want none", typ, meta, col)
		}
	}
}

// TestLiterals: values of every type as the log has them, and the expression that is the same value.
func TestLiterals(t *testing.T) {
	signed, unsigned, unknown := Column{Known: true}, Column{Known: true, Unsigned: true}, Column{}
	latin, utf, ucs2, binary := Column{Collation: 8}, Column{Collation: 255}, Column{Collation: 35}, Column{Collation: 63, Binary: true}
	for _, c := range []struct {
		col       Column
		typ       byte
		meta, raw string
		want      string
		err       error
	}{
		{signed, 1, "", "80", "-128", nil}, {unsigned, 1, "", "80", "128", nil}, {unknown, 1, "", "7f", "127", nil}, {unknown, 1, "", "80", "", ErrSign}, {signed, 2, "", "ffff", "-1", nil},
		{signed, 9, "", "000080", "-8388608", nil}, {unsigned, 9, "", "ffffff", "16777215", nil}, {signed, 3, "", "00000080", "-2147483648", nil}, {unsigned, 8, "", "ffffffffffffffff", "18446744073709551615", nil},
		{signed, 8, "", "ffffffffffffffff", "-1", nil}, {signed, 4, "04", "0000c03f", "1.5e+00", nil}, {signed, 5, "08", "9a9999999999b93f", "1e-01", nil},
		{signed, 13, "", "00", "'0000'", nil}, {signed, 13, "", "01", "1901", nil}, {signed, 13, "", "ff", "2155", nil}, {signed, 6, "", "", "NULL", nil},
		{signed, 16, "02 01", "0201", "b'1000000001'", nil}, {signed, 16, "01 00", "00", "b'0'", nil},
		{signed, 246, "04 02", "8c 22", "12.34", nil}, {signed, 246, "04 02", "73 dd", "-12.34", nil}, {signed, 246, "09 00", "80 00 00 00", "0", nil}, {signed, 246, "0a 00", "81 00 00 00 02", "1000000002", nil}, {signed, 246, "02 02", "85", "0.05", nil},
		// Dates and times from before 5.6, and since.
		{signed, 10, "", "75d50f", "2026-11-21", nil}, {signed, 14, "", "000000", "0000-00-00", nil}, {signed, 11, "", "40e201", "12:34:56", nil}, {signed, 11, "", "c01dfe", "-12:34:56", nil}, {signed, 11, "", "a7f57f", "838:59:59", nil},
		{signed, 12, "", "8064ed686d120000", "2026-11-21 12:34:56", nil}, {signed, 7, "", "00000000", "0000-00-00 00:00:00", nil}, {signed, 7, "", "ffffff7f", "2038-01-19 03:14:07", nil},
		{signed, 17, "00", "00000001", "1970-01-01 00:00:01", nil}, {signed, 17, "02", "0000000132", "1970-01-01 00:00:01.50", nil}, {signed, 17, "02", "0000000001", "1970-01-01 00:00:00.01", nil}, {signed, 17, "03", "0000000000", "", errShort},
		{signed, 19, "00", "80c8b8", "12:34:56", nil}, {signed, 19, "00", "7f3748", "-12:34:56", nil}, {signed, 19, "02", "7fffffce", "-00:00:00.50", nil}, {signed, 19, "06", "800001 0f423f", "00:00:01.999999", nil},
		{signed, 254, "f7 02", "0201", "258", nil}, {signed, 254, "f8 08", "ffffffffffffffff", "18446744073709551615", nil},
		{latin, 15, "14 00", "6162", "'ab'", nil}, {latin, 15, "14 00", "", "''", nil}, {latin, 15, "14 00", "fc", "X'FC'", nil}, {latin, 15, "14 00", "6127 5c 0a 0d 09", `'a\'\\\n\r\t'`, nil}, {latin, 15, "14 00", "00", "X'00'", nil}, {latin, 15, "14 00", "7f", "X'7F'", nil}, {latin, 15, "14 00", "1f", "X'1F'", nil}, {latin, 15, "14 00", "20", "' '", nil}, {latin, 15, "14 00", "7e", "'~'", nil}, {latin, 15, "14 00", "80", "X'80'", nil},
		{utf, 15, "14 00", "c3bc", "'ü'", nil}, {utf, 15, "14 00", "c3", "X'C3'", nil}, {ucs2, 15, "14 00", "0061", "X'0061'", nil}, {ucs2, 15, "14 00", "6162", "X'6162'", nil}, {ucs2, 15, "14 00", "", "''", nil}, {binary, 15, "14 00", "61", "X'61'", nil}, {unknown, 15, "14 00", "61", "X'61'", nil},
		{Column{Declared: "inet4"}, 254, "fe 04", "7f000001", "X'7F000001'", nil}, {Column{Declared: "inet4"}, 254, "fe 04", "0a", "X'0A000000'", nil}, {Column{Declared: "inet6"}, 254, "fe 10", "2001", "X'20010000000000000000000000000000'", nil},
		{signed, 255, "04", "0001", "X'0001'", nil}, {signed, 242, "04", "", "''", nil}, {signed, 3, "", "000000", "", errShort},
	} {
		meta := cursor{b: unhex(t, c.meta)}
		col, ok := columnOf(c.typ, &meta)
		if !ok {
			t.Fatalf("type %d: no column", c.typ)
		}
		col.Known, col.Unsigned, col.Collation, col.Binary, col.Declared = c.col.Known, c.col.Unsigned, c.col.Collation, c.col.Binary, c.col.Declared
		v := Value{Present: true, Raw: unhex(t, c.raw)}
		got, err := col.Literal(v)
		want := c.want
		if within(t, "7 10-12 14 17-19", uint32(col.typ)) {
			want = "'" + want + "'"
		}
		if !errors.Is(err, c.err) || c.err == nil && (err != nil || got != want) {
			t.Errorf("type %d (%s) of %s: got %s, %v; want %s, %v", c.typ, c.meta, c.raw, got, err, want, c.err)
		}
	}
	col := Column{typ: typeLong, fixed: 4}
	for _, v := range []Value{{}, {Present: true, Null: true}} {
		if got, err := col.Literal(v); got != "NULL" || err != nil {
			t.Errorf("%+v: got %s, %v; want NULL", v, got, err)
		}
	}
}

// TestShown: a text of unknown character set is shown if it is readable.
func TestShown(t *testing.T) {
	text := Column{typ: typeVarchar, fixed: -1, prefix: 1, charset: true}
	for _, c := range []struct {
		change    func(*Column)
		raw, want string
	}{
		{func(*Column) {}, "M\xc3\xbc", "'M\xc3\xbc'"}, {func(*Column) {}, "M\xfc", "X'4DFC'"}, {func(*Column) {}, "", "''"}, {func(c *Column) { c.Binary = true }, "a", "X'61'"},
		{func(c *Column) { c.charset = false }, "a", "X'61'"}, {func(c *Column) { c.Collation = 8 }, "M\xc3\xbc", "X'4DC3BC'"}, {func(c *Column) { c.Declared = "varchar" }, "a", "X'61'"},
	} {
		col := text
		c.change(&col)
		if got, err := col.Shown(Value{Present: true, Raw: []byte(c.raw)}); err != nil || got != c.want {
			t.Errorf("%+v of %q: got %s, %v; want %s", col, c.raw, got, err, c.want)
		}
	}
}

// TestEquals: the condition that is true of a value alone.
func TestEquals(t *testing.T) {
	for _, c := range []struct {
		col       Column
		raw, want string
	}{
		{Column{Name: "a`b", typ: typeTiny, fixed: 1, Known: true}, "\xff", "`a``b` = -1"},
		{Column{Name: "v", typ: typeVarchar, fixed: -1, Collation: 8}, "a", "CAST(`v` AS BINARY) = X'61'"}, {Column{Name: "v", typ: typeVarchar, fixed: -1, Collation: 8, Key: true}, "a", "`v` = 'a'"},
		{Column{Name: "b", typ: typeString, fixed: -1, Binary: true, a: 3}, "a", "CAST(`b` AS BINARY) = X'610000'"}, {Column{Name: "b", typ: typeString, fixed: -1, a: 3}, "a", "CAST(`b` AS BINARY) = X'61'"},
		{Column{Name: "b", typ: typeString, fixed: -1, Binary: true, a: 1}, "ab", "CAST(`b` AS BINARY) = X'6162'"}, {Column{Name: "v", typ: typeVarchar, fixed: -1, Binary: true, a: 3}, "a", "CAST(`v` AS BINARY) = X'61'"},
		{Column{Name: "u", typ: typeString, fixed: -1, Declared: "uuid"}, "", "`u` = '00000000-0000-0000-0000-000000000000'"}, {Column{Name: "i", typ: typeString, fixed: -1, Declared: "inet4"}, "\x01", "`i` = X'01000000'"},
		{Column{Name: "g", typ: typeGeometry, fixed: -1}, "\xab", "HEX(`g`) = 'AB'"}, {Column{Name: "e", typ: typeEnum, fixed: 1}, "\x02", "`e` + 0 = 2"},
		{Column{Name: "s", typ: typeSet, fixed: 1}, "\x03", "CAST(`s` AS UNSIGNED) = 3"}, {Column{Name: "b", typ: typeBit, fixed: 1}, "\x05", "`b` = 5"}, {Column{Name: "z", typ: typeBlobZip, fixed: -1}, "\x00a", "CAST(`z` AS BINARY) = X'61'"},
	} {
		if got, err := c.col.Equals(Value{Present: true, Raw: []byte(c.raw)}); err != nil || got != c.want {
			t.Errorf("%+v of %q: got %s, %v; want %s", c.col, c.raw, got, err, c.want)
		}
	}
	col := Column{Name: "n", typ: typeTiny, fixed: 1}
	if got, err := col.Equals(Value{Present: true, Null: true}); got != "`n` IS NULL" || err != nil {
		t.Errorf("NULL: got %s, %v; want \"`n` IS NULL\"", got, err)
	}
}

// TestJSONDocuments: binary JSON by hand, as MySQL's json_binary.h describes it: the small and the large form.
func TestJSONDocuments(t *testing.T) {
	for in, want := range map[string]string{
		"": "null", "04 00": "null", "04 01": "true", "04 02": "false", "05 ff ff": "-1", "05 00 80": "-32768", "06 ff ff": "65535", "07 ff ff ff ff": "-1", "08 ff ff ff ff": "4294967295",
		"09 00 00 00 00 00 00 00 80": "-9223372036854775808", "0a ff ff ff ff ff ff ff ff": "18446744073709551615", "0b 00 00 00 00 00 00 f8 3f": "1.5e+00", "0c 02 68 69": `"hi"`, "0c 00": `""`, `0c 03 22 5c 0a`: `"\"\\\u000a"`,
		"00 00 00 04 00": "{}", "02 00 00 04 00": "[]", "01 00 00 00 00 08 00 00 00": "{}", "03 00 00 00 00 08 00 00 00": "[]",
		"02 01 00 07 00 05 fe ff": "[-2]", "02 02 00 0c 00 04 01 00 0c 0a 00 01 61": `[true, "a"]`, "02 01 00 0b 00 07 07 00 ff ff ff ff": "[-1]",
		"00 01 00 0c 00 0b 00 01 00 05 07 00 6b": `{"k": 7}`, "01 01 00 00 00 14 00 00 00 13 00 00 00 01 00 07 07 00 00 00 6b": `{"k": 7}`, "03 01 00 00 00 0d 00 00 00 08 ff ff ff ff": "[4294967295]",
		"02 01 00 0b 00 02 07 00 00 00 04 00": "[[]]",
		"0f f6 04 04 02 8c 22":                "12.34", "0f 0a 08 00 00 00 00 00 6a bb 19": `"2026-11-21"`, "0f 0b 08 00 00 00 b8 c8 00 00 00": `"12:34:56.000000"`, "0f 0b 08 01 00 00 b8 c8 00 00 00": `"12:34:56.000001"`,
		"0f 0c 08 01 00 00 b8 c8 6a bb 19": `"2026-11-21 12:34:56.000001"`, "0f 0b 08 ff ff ff 47 37 ff ff ff": `"-12:34:56.000001"`,
	} {
		got, err := JSONText(unhex(t, in))
		if err != nil || got != want {
			t.Errorf("%s: got %s, %v; want %s", in, got, err, want)
		}
		if raw := unhex(t, in); len(raw) > 0 {
			for cut := 1; cut < len(raw); cut++ {
				if got, err := JSONText(raw[:cut]); err == nil {
					t.Errorf("%s cut to %d bytes: got %s and no error", in, cut, got)
				}
			}
		}
	}
	long := strings.Repeat("x", 300)
	if got, err := JSONText(append(unhex(t, "0c ac 02"), long...)); err != nil || got != `"`+long+`"` {
		t.Errorf("300 bytes: got %d, %v", len(got), err)
	}
	for _, bad := range []string{"04 03", "0d 00", "0c ff ff ff ff ff 01 61", "0f f6 01 04", "0f 0a 07 00 00 00 00 00 00 00", "02 01 00 07 00 0c 08 00", "02 ff ff 04 00", "00 01 00 0c 00 0c 00 01 00 05 07 00 6b"} {
		if got, err := JSONText(unhex(t, bad)); err == nil {
			t.Errorf("%s: got %s and no error", bad, got)
		}
	}
	// A document of 100 levels is the server's limit.
	deep := unhex(t, "02 00 00 04 00")
	for n := range 201 {
		size := 7 + len(deep) - 1
		deep = append([]byte{2, 1, 0, byte(size), byte(size >> 8), deep[0], 7, 0}, deep[1:]...)
		if _, err := JSONText(deep); (err == nil) != (n+1 <= maxJSONDepth) {
			t.Errorf("%d levels: got %v", n+1, err)
		}
	}
}
