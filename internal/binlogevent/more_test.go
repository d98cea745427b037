package binlogevent

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
)

// TestInUse: the flag that a log is being written does not count in the checksum of its format description; every other bit does.
func TestInUse(t *testing.T) {
	log := logOf("8.0.36")
	raw := log[len(Magic):]
	log[len(Magic)+17] |= FlagInUse
	if !VerifyChecksum(raw) {
		t.Error("in use: got a wrong checksum")
	}
	if _, err := readAll(t, log, Options{}); errors.Is(err, ErrChecksum) {
		t.Errorf("in use: got %v", err)
	}
	ClearInUse(raw)
	if raw[17]&FlagInUse != 0 || !VerifyChecksum(raw) {
		t.Errorf("cleared: got flags %x; want raw[17] & FlagInUse 0, VerifyChecksum(raw) true", raw[17])
	}
	for _, at := range []int{0, 4, 17, 18, HeaderLen, len(raw) / 2, len(raw) - 5, len(raw) - 1} {
		bad := bytes.Clone(raw)
		if bad[at] ^= 2; VerifyChecksum(bad) {
			t.Errorf("byte %d changed: got a right checksum", at)
		}
	}
	other := sealed(TypeXid, make([]byte, 8))
	if other[17] |= FlagInUse; VerifyChecksum(other) {
		t.Error("the flag on another event: got a right checksum")
	}
}

// TestIgnorable: an event that every reader skips replaces the one that says that a log is encrypted.
func TestIgnorable(t *testing.T) {
	start := sealed(TypeStartEncryption, make([]byte, 17))
	copy(start, []byte{1, 2, 3, 4})
	copy(start[5:], []byte{7, 0, 0, 0})
	copy(start[13:], []byte{0, 1, 0, 0})
	for _, checksum := range []bool{true, false} {
		got := Readable(start, checksum)
		h := ParseHeader(got)
		want := Header{Seconds: 0x04030201, Type: TypeIgnorable, ServerID: 7, Length: uint32(len(start)), EndPos: 256, Flags: 0x80}
		if h != want || len(got) != len(start) {
			t.Errorf("got %+v of %d bytes, want %+v", h, len(got), want)
		}
		if sum := crc32.ChecksumIEEE(got[:len(got)-4]); checksum != bytes.Equal(got[len(got)-4:], []byte{byte(sum), byte(sum >> 8), byte(sum >> 16), byte(sum >> 24)}) {
			t.Errorf("checksum %v: got %x, want bytes.Equal(got[len(got)-4:], []byte{byte(sum), byte(sum >> 8), byte(sum >> 16), byte(sum >> 24)})",
				checksum, got[len(got)-4:])
		}
	}
	if other := sealed(TypeXid, make([]byte, 8)); &Readable(other, true)[0] != &other[0] {
		t.Error("another event: got a copy")
	}
}

// TestPlainEvents: without its checksum an event is as long as it says.
func TestPlainEvents(t *testing.T) {
	raw := sealed(TypeXid, []byte{1, 2, 3, 4, 5, 6, 7, 8})
	want := inner(TypeXid, []byte{1, 2, 3, 4, 5, 6, 7, 8})
	if got := PlainEvent(Event{Header: ParseHeader(raw), Raw: bytes.Clone(raw), Body: raw[HeaderLen : HeaderLen+8]}); !bytes.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

// TestOldFormats: MySQL 5.6 announces 35 types of events, which is fewer than later versions know; 19 are the least.
func TestOldFormats(t *testing.T) {
	for types, good := range map[int]bool{18: false, 19: true, 27: true, 35: true, 171: true} {
		body := append([]byte{4, 0}, make([]byte, 50)...)
		copy(body[2:], "5.6.51-log")
		body = append(append(body, 0, 0, 0, 0, HeaderLen), make([]byte, types)...)
		raw := inner(TypeFormatDescription, body)
		if good { // with the byte that says which checksum, and its own
			raw = sealed(TypeFormatDescription, append(body, 1))
		}
		if got, err := ParseFormat(raw); (err == nil) != good || good && !got.Checksum {
			t.Errorf("%d types: got %+v, %v; want good %v", types, got, err, good)
		}
	}
}

// TestSigns: which servers count YEAR among the numbers with a sign; if that is unknown, what both readings say.
func TestSigns(t *testing.T) {
	for _, c := range []struct {
		version string
		bitmap  byte
		want    string // of a TINYINT, a YEAR and an INT: signed, unsigned or not known
	}{
		{"8.0.15", 0b01000000, "s ? u"}, {"8.0.15", 0b10000000, "u ? s"}, {"10.11.6-MariaDB", 0b01000000, "s u s"}, {"10.11.6-MariaDB", 0b00100000, "s s u"}, {"9.7.0", 0b00100000, "s s u"}, {"9.7.0", 0b10000000, "u s s"},
		{"8.4.0", 0b00000000, "s s s"}, {"8.4.0", 0b01100000, "s ? u"}, {"8.4.0", 0b10000000, "u s s"}, {"8.4.0", 0b01000000, "s ? ?"}, {"8.0.16", 0b00100000, "s s ?"},
	} {
		f := Format{tableIDLen: 6, server: fleet.ServerOf(c.version, "")}
		body := append([]byte{1, 0, 0, 0, 0, 0, 1, 0, 1}, "s\x00\x01t\x00\x03\x01\x0d\x03\x00\x00"...)
		table, err := ParseTable(f, append(body, 1, 1, c.bitmap))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i, col := range table.Columns {
			word := map[bool]string{true: "u", false: "s"}[col.Unsigned]
			if !col.Known || i == 1 && c.version == "8.0.15" {
				word = "?"
			}
			got = append(got, word)
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("%s, %08b: got %s, want %s", c.version, c.bitmap, g, c.want)
		}
	}
}

// TestManyTables: at the end of a statement many tables are forgotten, few are not; a table is fresh when it changed.
func TestManyTables(t *testing.T) {
	f := Format{tableIDLen: 6}
	body := func(id int, name byte) []byte {
		return append([]byte{byte(id), byte(id >> 8), byte(id >> 16), 0, 0, 0, 1, 0, 1}, "s\x00\x01"+string(name)+"\x00\x01\x03\x00\x00"...)
	}
	var m Tables[int]
	for id := range maxTables {
		if _, fresh, err := m.Map(f, body(id, 't')); err != nil || !fresh {
			t.Fatalf("table %d: got fresh %v, %v", id, fresh, err)
		}
	}
	if m.EndStatement(); m.Get(0) == nil || m.Get(maxTables-1) == nil {
		t.Errorf("%d tables: got them forgotten; want m.Get(0) not nil, m.Get(maxTables - 1) not nil", maxTables)
	}
	for _, c := range []struct {
		name  byte
		fresh bool
	}{{'t', false}, {'u', true}, {'u', false}, {'t', true}} {
		got, fresh, err := m.Map(f, body(5, c.name))
		if err != nil || fresh != c.fresh || got.Name != string(c.name) || m.Get(5) != got {
			t.Errorf("named %c: got %+v, fresh %v, %v; want fresh %v", c.name, got, fresh, err, c.fresh)
		}
	}
	if _, _, err := m.Map(f, body(maxTables, 't')); err != nil {
		t.Fatal(err)
	}
	if m.EndStatement(); m.Get(0) != nil || m.Get(maxTables) != nil {
		t.Errorf("%d tables: got them kept; want m.Get(0) nil, m.Get(maxTables) nil", maxTables+1)
	}
	if _, _, err := m.Map(f, []byte{1, 0, 0}); err == nil || m.Get(1) != nil {
		t.Errorf("a table without a name: got %v, %v; want an error, m.Get(1) nil", m.Get(1), err)
	}
}

// TestPatched: differences of JSON documents (Json_diff_vector in MySQL's sql/json_diff.h), in their order.
func TestPatched(t *testing.T) {
	c := Column{typ: typeJSON, fixed: -1, prefix: 4}
	before := Value{Present: true, Raw: unhex(t, "05 07 00")}
	const doc = "CAST(_utf8mb4'7' AS JSON)"
	for diff, want := range map[string]string{
		"": doc, "00 03 24 2e 61 03 05 01 00": "JSON_REPLACE(" + doc + ", _utf8mb4'$.a', CAST(_utf8mb4'1' AS JSON))", "01 03 24 2e 61 02 04 00": "JSON_INSERT(" + doc + ", _utf8mb4'$.a', CAST(_utf8mb4'null' AS JSON))",
		"01 04 24 5b 30 5d 02 04 01": "JSON_ARRAY_INSERT(" + doc + ", _utf8mb4'$[0]', CAST(_utf8mb4'true' AS JSON))", "02 03 24 2e 61": "JSON_REMOVE(" + doc + ", _utf8mb4'$.a')", "00 04 24 5b 30 5d 02 04 01": "JSON_REPLACE(" + doc + ", _utf8mb4'$[0]', CAST(_utf8mb4'true' AS JSON))",
		"02 03 24 2e 61 02 03 24 2e 62": "JSON_REMOVE(JSON_REMOVE(" + doc + ", _utf8mb4'$.a'), _utf8mb4'$.b')",
	} {
		got, err := c.Patched(before, Value{Present: true, Partial: true, Raw: unhex(t, diff)})
		if err != nil || got != want {
			t.Errorf("%s: got %s, %v; want %s", diff, got, err, want)
		}
	}
	for _, bad := range []string{"03 01 24", "00 03 24 2e", "00 01 24", "00 01 24 00", "00 01 24 02 04 09", "00 01 24 05 04 00", "02"} {
		if got, err := c.Patched(before, Value{Present: true, Partial: true, Raw: unhex(t, bad)}); err == nil {
			t.Errorf("%s: got %s and no error", bad, got)
		}
	}
	diff := Value{Present: true, Partial: true}
	for name, b := range map[string]Value{"parts": {Present: true, Partial: true}, "nothing": {}, "NULL": {Present: true, Null: true}, "a damaged one": {Present: true, Raw: []byte{4, 9}}} {
		if got, err := c.Patched(b, diff); err == nil {
			t.Errorf("before it %s: got %s and no error", name, got)
		}
	}
	if got, err := c.Patched(before, Value{Present: true}); err == nil {
		t.Errorf("a whole value for differences: got %s and no error", got)
	}
}

// TestExact: bytes within a document are a BIT before MySQL 8.0, and a VARCHAR since; no other type of theirs can be written.
func TestExact(t *testing.T) {
	c := Column{typ: typeJSON}
	for _, v := range []struct {
		version, raw string
		want         bool
	}{
		{"5.7.44", "0f 10 01 05", true}, {"8.0.36", "0f 10 01 05", false}, {"8.0.0", "0f 0f 01 05", true}, {"5.7.44", "0f 0f 01 05", false}, {"8.0.36", "0f fc 01 05", false}, {"8.0.36", "05 01 00", true}, {"8.0.36", "04 09", false}, {"8.0.36", "", true},
		{"8.0.36", "02 01 00 0b 00 0f 07 00 fc 01 05 00", false}, {"8.0.36", "02 01 00 0a 00 0f 07 00 0f 01 05", true},
	} {
		f := Format{server: fleet.ServerOf(v.version, "")}
		value := Value{Present: true, Raw: unhex(t, v.raw)}
		if got := c.Exact(f, value); got != v.want {
			t.Errorf("%s of %s: got %v, want %v", v.raw, v.version, got, v.want)
		}
		for what, always := range map[string]Value{"NULL": {Present: true, Null: true, Raw: value.Raw}, "no value": {Raw: value.Raw}, "parts": {Present: true, Partial: true, Raw: value.Raw}} {
			if !c.Exact(f, always) {
				t.Errorf("%s: got not exact", what)
			}
		}
	}
	if text := (&Column{typ: typeVarchar}); !text.Exact(Format{}, Value{Present: true, Raw: []byte{15, 16, 1, 5}}) {
		t.Error("a text: got not exact")
	}
}

// TestTablesOfMinimal: the optional metadata, field by field.
func TestTablesOfMinimal(t *testing.T) {
	f := Format{tableIDLen: 6, server: fleet.ServerOf("8.0.36", "")}
	maria := Format{tableIDLen: 6, server: fleet.ServerOf("11.8.2-MariaDB", "")}
	// VARCHAR(20), INT, TEXT, GEOMETRY
	base := append([]byte{1, 0, 0, 0, 0, 0, 1, 0, 1}, "s\x00\x01t\x00\x04\x0f\x03\xfc\xff\x04\x14\x00\x02\x04\x00"...)
	for _, c := range []struct {
		f    Format
		more string
		want string // name, key and collation of each column
	}{
		{f, "", " 0| 0| 0| 0"}, {f, "02 01 08", " 8| 0| 8| 0"}, {f, "02 03 08 01 21", " 8| 0| 33| 0"}, {maria, "02 03 08 02 3f", " 8| 0| 8| 63b"}, {maria, "02 01 3f", " 63b| 0| 63b| 63b"}, {f, "03 02 08 21", " 8| 0| 33| 0"}, {f, "03 04 08 fc ff 00", " 8| 0| 255| 0"}, {maria, "03 03 08 21 3f", " 8| 0| 33| 63b"},
		{f, "04 08 01 61 01 62 01 63 01 64", "a 0|b 0|c 0|d 0"}, {f, "08 01 01", " 0| key 0| 0| 0"}, {f, "08 02 00 02", " key 0| 0| key 0| 0"}, {f, "08 01 04", " 0| 0| 0| 0"}, {f, "09 04 00 05 02 00", " key 0| 0| key 0| 0"}, {f, "0a 01 ff 08 01 03", " 0| 0| 0| key 0"}, {f, "02 01 08 08 01 00", " key 8| 0| 8| 0"},
	} {
		table, err := ParseTable(c.f, append(bytes.Clone(base), unhex(t, c.more)...))
		if err != nil {
			t.Fatalf("%s: %v", c.more, err)
		}
		var got []string
		for _, col := range table.Columns {
			text := col.Name
			if col.Key {
				text += " key"
			}
			text += fmt.Sprintf(" %d", col.Collation)
			if col.Binary {
				text += "b"
			}
			got = append(got, text)
		}
		if g := strings.Join(got, "|"); g != c.want || table.Named != strings.HasPrefix(c.more, "04") {
			t.Errorf("%s: got %s, named %v; want %s", c.more, g, table.Named, c.want)
		}
	}
	for cut := range base {
		if table, err := ParseTable(f, base[:cut]); err == nil {
			t.Errorf("cut to %d bytes: got %+v and no error", cut, table)
		}
	}
}
