package binlogevent

import (
	"fmt"
	"strings"
	"testing"
)

// within reports whether a number is in a list of ranges: "1-16 18".
func within(t *testing.T, ranges string, n uint32) bool {
	t.Helper()
	for _, r := range strings.Fields(ranges) {
		var a, b uint32
		if _, err := fmt.Sscanf(r, "%d-%d", &a, &b); err != nil {
			if _, err := fmt.Sscan(r, &a); err != nil {
				t.Fatal(err)
			}
			b = a
		}
		if n >= a && n <= b {
			return true
		}
	}
	return false
}

// TestCollations: which numbers of INFORMATION_SCHEMA.COLLATIONS are of UTF-8, and of which character sets all letters of ASCII are one
// byte. 1,024 more is the same without padding, in MariaDB, whose UCA 14.0.0 begins at 2,048.
func TestCollations(t *testing.T) {
	const utf8 = "33 45 46 76 83 192-215 223-247 255-323 1057 1069 1070 1100 1107 1216-1239 1247-1271 1279-1347 2048-2559"
	const narrow = "1-16 18-32 34 36-44 47-53 57-59 64-75 77-82 84-89 92-99"
	for id := range uint32(3000) {
		if got, want := utf8Collation(id), within(t, utf8, id); got != want {
			t.Errorf("collation %d: got UTF-8 %v, want %v", id, got, want)
		}
		if got, want := !wideCollation(id), within(t, narrow, id); got != want {
			t.Errorf("collation %d: got narrow %v, want %v", id, got, want)
		}
	}
}

// TestFits: as which types of the log a column of each declared type may appear there.
func TestFits(t *testing.T) {
	const blobs = "252 249-251 140"
	for declared, types := range map[string]string{
		"tinyint": "1", "smallint": "2", "mediumint": "9", "int": "3", "bigint": "8", "float": "4", "double": "5", "decimal": "246", "bit": "16", "year": "13", "date": "10 14", "time": "11 19", "datetime": "12 18", "timestamp": "7 17",
		"char": "253-254", "binary": "254", "varchar": "15 253 141", "varbinary": "15 253 141", "enum": "247", "set": "248", "json": "245 252", "tinytext": blobs, "text": blobs, "mediumtext": blobs, "longtext": blobs,
		"tinyblob": blobs, "blob": blobs, "mediumblob": blobs, "longblob": blobs, "INT": "3", "geometry": "0-255", "something new": "0-255",
	} {
		for typ := range 256 {
			if got, want := (Column{typ: byte(typ)}).Fits(declared), within(t, types, uint32(typ)); got != want {
				t.Errorf("%s logged as type %d: got %v, want %v", declared, typ, got, want)
			}
		}
	}
}

// TestUUIDs: MariaDB turns those of versions 1 to 5 round, so that they sort by time.
func TestUUIDs(t *testing.T) {
	for stored, want := range map[string]string{
		"\x95\x64\x5b\x8c\x65\x60\x95\x64\x10\x26\xba\xba\x6c\xcd\x78\x0c": "6ccd780c-baba-1026-9564-95645b8c6560",
		"\x42\x66\x14\x17\x40\x00\xa4\x56\x42\xd3\xe8\x9b\x12\x3e\x45\x67": "123e4567-e89b-42d3-a456-426614174000",
		"\x42\x66\x14\x17\x40\x00\xa4\x56\x50\xd3\xe8\x9b\x12\x3e\x45\x67": "123e4567-e89b-50d3-a456-426614174000",
		"\x42\x66\x14\x17\x40\x00\xa4\x56\x60\xd3\xe8\x9b\x12\x3e\x45\x67": "42661417-4000-a456-60d3-e89b123e4567", // version 6 and 7 are written as they are
		"\x42\x66\x14\x17\x40\x00\xa4\x56\x0f\xd3\xe8\x9b\x12\x3e\x45\x67": "42661417-4000-a456-0fd3-e89b123e4567",
		"\x42\x66\x14\x17\x40\x00\x74\x56\x40\xd3\xe8\x9b\x12\x3e\x45\x67": "42661417-4000-7456-40d3-e89b123e4567",
		"": "00000000-0000-0000-0000-000000000000", // zeros at the end are not logged
	} {
		if got := uuidOf([]byte(stored)); got != want {
			t.Errorf("%x: got %s, want %s", stored, got, want)
		}
	}
}

// TestRowTypes: what each type of event does with rows.
func TestRowTypes(t *testing.T) {
	for typ := range 256 {
		e := Type(typ)
		if got, want := e.IsRows(), within(t, "23-25 30-32 39 166-171", uint32(typ)); got != want {
			t.Errorf("type %d: got rows %v, want %v", typ, got, want)
		}
		if !e.IsRows() {
			continue
		}
		want := map[int]Kind{23: Insert, 24: Update, 25: Delete, 30: Insert, 31: Update, 32: Delete, 39: Update, 166: Insert, 167: Update, 168: Delete, 169: Insert, 170: Update, 171: Delete}[typ]
		if e.Kind() != want || e.zipped() != (typ >= 166) || e.second() != within(t, "30-32 39 169-171", uint32(typ)) {
			t.Errorf("type %d: got %v, zipped %v, second version %v; want %v", typ, e.Kind(), e.zipped(), e.second(), want)
		}
	}
	for k, want := range map[Kind]string{Insert: "INSERT", Update: "UPDATE", Delete: "DELETE"} {
		if k.String() != want {
			t.Errorf("got %s, want %s", k, want)
		}
	}
}

// TestIntegers: of variable length, as both of MySQL's libraries write them.
func TestIntegers(t *testing.T) {
	for in, want := range map[string]uint64{"\x00": 0, "\xfa": 250, "\xfc\x01\x02": 0x201, "\xfd\x01\x02\x03": 0x30201, "\xfe\x01\x02\x03\x04\x05\x06\x07\x08": 0x807060504030201} {
		c := cursor{b: []byte(in)}
		if got := c.packed(); got != want || c.bad || len(c.b) != 0 {
			t.Errorf("%x: got %x, want %x", in, got, want)
		}
	}
	for in, want := range map[string]uint64{"\x00": 0, "\x02": 1, "\xfe": 127, "\x01\x02": 128, "\xfd\xff": 1<<14 - 1, "\x03\x00\x02": 1 << 14, "\x7f\x01\x02\x03\x04\x05\x06\x07": 0x7060504030201, "\xff\x01\x02\x03\x04\x05\x06\x07\x08": 0x807060504030201} {
		c := cursor{b: []byte(in)}
		if got := c.varint(); got != want || c.bad || len(c.b) != 0 {
			t.Errorf("%x: got %x, want %x", in, got, want)
		}
	}
	for in, want := range map[string]int64{"\x00": 0, "\x02": -1, "\x04": 1, "\x06": -2, "\x08": 2} {
		c := cursor{b: []byte(in)}
		if got := c.signed(); got != want {
			t.Errorf("%x: got %d, want %d", in, got, want)
		}
	}
	for _, short := range []string{"", "\xfc\x01", "\xfe\x01"} {
		c := cursor{b: []byte(short)}
		if c.packed(); c.err() == nil {
			t.Errorf("%x: got no error, want c.err() not nil", short)
		}
		c = cursor{b: []byte(short)}
		if c.varint(); short == "" && c.err() == nil {
			t.Errorf("%x: got no error", short)
		}
	}
}
