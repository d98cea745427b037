package binlogevent

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// unhex reads bytes as the tests write them: "82 02".
func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestStatus reads each status variable of a query by itself, followed by one (18, collation 0x1234) that shows that it was as
// long as it should be. The lengths are those of Query_event in MySQL and Query_log_event in MariaDB.
func TestStatus(t *testing.T) {
	number := func(v uint64) *uint64 { return &v }
	zone := "SYSTEM"
	for _, c := range []struct {
		bytes string
		set   func(*Query)
		ends  bool // what follows it is not read
	}{
		{bytes: "00 00 40 08 04", set: func(q *Query) { q.Flags2 = Flags2AutoIsNull | Flags2NotAutocommit | Flags2NoForeignKeys }},
		{bytes: "01 00 00 20 54 01 00 00 80", set: func(q *Query) { q.SQLMode = number(0x8000000154200000) }},
		{bytes: "02 03 73 74 64 00"},
		{bytes: "03 05 00 02 01", set: func(q *Query) { q.AutoIncrement = &[2]uint16{5, 258} }},
		{bytes: "04 08 00 21 00 ff 00", set: func(q *Query) { q.Charset = &[3]uint16{8, 33, 255} }},
		{bytes: "05 06 53 59 53 54 45 4d", set: func(q *Query) { q.TimeZone = &zone }},
		{bytes: "06 03 73 74 64"},
		{bytes: "07 04 01", set: func(q *Query) { q.LCTimeNames = 260 }},
		{bytes: "08 21 01", set: func(q *Query) { q.CharsetDatabase = 289 }},
		{bytes: "09 01 02 03 04 05 06 07 08"},
		{bytes: "0a 01 02 03 04"},
		{bytes: "0b 01 6d 02 68 31", set: func(q *Query) { q.User, q.Host = "m", "h1" }},
		{bytes: "0c 02 61 00 62 63 00"}, {bytes: "0c 00"}, {bytes: "0c fe"}, {bytes: "0c 01 61", ends: true},
		{bytes: "0d 40 e2 01", set: func(q *Query) { q.Micros = 123456 }},
		{bytes: "10 01", set: func(q *Query) { q.ExplicitTS = 1 }},
		{bytes: "11 01 02 03 04 05 06 07 08"},
		{bytes: "13 01", set: func(q *Query) { q.RequirePK = 1 }},
		{bytes: "14 01", set: func(q *Query) { q.TableEncryption = 1 }},
		{bytes: "80 f1 fb 09", set: func(q *Query) { q.Micros = 654321 }},
		{bytes: "81 11 00 00 00 00 00 00 00"},
		// Parts of an ALTER in two phases, and collations of character sets, which come in front of 04: from MariaDB 11.8.9.
		{bytes: "82 02"}, {bytes: "82 04 04 00 00 00 00 00 00 00"}, {bytes: "82 08 04 00 00 00 00 00 00 00"},
		{bytes: "83 00"}, {bytes: "83 01 2d 00 00 09"}, {bytes: "83 02 2d 00 00 09 21 00 00 08"},
		{bytes: "84", ends: true}, {bytes: "15", ends: true},
	} {
		want := Query{Flags2: -1, LCTimeNames: -1, CharsetDatabase: -1, ExplicitTS: -1, DefaultUTF8MB4: 0x1234, RequirePK: -1, TableEncryption: -1, Schema: "shop", Text: []byte("SELECT 1")}
		want.Thread, want.ExecSeconds, want.ErrorCode = 0x01020304, 7, 0x0426
		if c.ends {
			want.DefaultUTF8MB4 = -1
		}
		if c.set != nil {
			c.set(&want)
		}
		status := append(unhex(t, c.bytes), 18, 0x34, 0x12)
		body := append(unhex(t, "04 03 02 01 07 00 00 00 04 26 04"), byte(len(status)), 0)
		body = append(append(body, status...), "shop\x00SELECT 1"...)
		got, err := ParseQuery(Event{Header: Header{Type: TypeQuery}, Body: body})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got\n%+v, %v; want\n%+v", c.bytes, got, err, want)
		}
		text, err := ParseQueryText(Event{Header: Header{Type: TypeQuery}, Body: body}, 1)
		if err != nil || text.Moment() != want.Micros || text.Flags2 != -1 {
			t.Errorf("%s, the text alone: got micros %d, flags %d, %v; want %d, -1", c.bytes, text.Moment(), text.Flags2, err, want.Micros)
		}
		for cut := range len(body) - len("SELECT 1") {
			if _, err := ParseQuery(Event{Header: Header{Type: TypeQuery}, Body: body[:cut]}); err == nil {
				t.Errorf("%s: cut to %d bytes: got no error", c.bytes, cut)
			}
		}
	}
}

// TestMariaGTID: what is in MariaDB's GTID event by its flags (Gtid_log_event in sql/log_event_server.cc).
func TestMariaGTID(t *testing.T) {
	id := mysql.GTID{Domain: 3, Server: 7, Number: 258}
	xid := &XID{Format: 1, Gtrid: []byte("ab"), Bqual: []byte("c")}
	const head, x = "02 01 00 00 00 00 00 00 03 00 00 00 ", "01 00 00 00 02 01 61 62 63"
	for in, want := range map[string]GTID{
		head + "00":                   {ID: id},
		head + "01 00 00 00 00 00 00": {ID: id, Standalone: true},
		head + "21":                   {ID: id, Standalone: true, DDL: true},
		head + "02 09 00 00 00 00 00 00 00 10 2a 00 00 00": {ID: id, CommitID: 9, Thread: 42},
		head + "00 10 2a 00 00 00":                         {ID: id, Thread: 42},
		head + "00 11 05 2a 00 00 00":                      {ID: id, Thread: 42},
		head + "20 02":                                     {ID: id, DDL: true, AlterPhase: true},
		head + "20 14 08 07 06 05 04 03 02 01 2a 00 00 00": {ID: id, DDL: true, AlterPhase: true, Thread: 42},
		head + "20 18 08 07 06 05 04 03 02 01 2a 00 00 00": {ID: id, DDL: true, AlterPhase: true, Thread: 42},
		head + "40" + x:                                    {ID: id, XA: true, Prepares: xid},
		head + "80" + x + "10 2a 00 00 00":                 {ID: id, XA: true, Thread: 42},
	} {
		want.Serial = true // none of these may be applied beside others
		got, err := ParseGTID(Event{Header: Header{Type: TypeMariaGTID, ServerID: 7}, Body: unhex(t, in)})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v; want %+v", in, got, err, want)
		}
	}
	for in, want := range map[string]GTID{
		head + "0c":                         {ID: id, Transactional: true},
		head + "1c":                         {ID: id, Transactional: true, Waited: true},
		head + "29":                         {ID: id, Standalone: true, DDL: true},
		head + "04":                         {ID: id, Transactional: true, Serial: true},
		head + "0e 08 07 06 05 04 03 02 01": {ID: id, Transactional: true, CommitID: 0x102030405060708},
	} {
		got, err := ParseGTID(Event{Header: Header{Type: TypeMariaGTID, ServerID: 7}, Body: unhex(t, in)})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v; want %+v", in, got, err, want)
		}
	}
	for n := range 13 {
		if _, err := ParseGTID(Event{Header: Header{Type: TypeMariaGTID}, Body: make([]byte, n)}); err == nil {
			t.Errorf("%d bytes: got no error", n)
		}
	}
}

// TestMySQLGTID: what each version's GTID event contains.
func TestMySQLGTID(t *testing.T) {
	const source = "01010101-0202-0303-0404-050505050505"
	const old = "01 01010101 0202 0303 0404 050505050505 09 00 00 00 00 00 00 00"
	const logical = " 02 01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00"
	id := mysql.GTID{Source: source, Number: 9}
	at, first := time.UnixMicro(0x60504030201), time.UnixMicro(0x90807060504)
	for in, want := range map[string]GTID{
		old: {ID: id}, old + " 01 ff ff ff ff ff ff ff ff ff": {ID: id}, old + logical: {ID: id}, old + logical + "01 02 03 04 05 06": {ID: id},
		old + logical + "01 02 03 04 05 06 00 fc 10 27":                   {ID: id, Committed: at, Original: at, Length: 10000},
		old + logical + "01 02 03 04 05 06 80 04 05 06 07 08 09 00 20":    {ID: id, Committed: at, Original: first, Length: 32},
		old + logical + "01 02 03 04 05 06 00 20 a4 38 01 00":             {ID: id, Committed: at, Original: at, Length: 32, ServerVersion: 80036, OriginalVersion: 80036},
		old + logical + "01 02 03 04 05 06 00 20 a4 38 01 80 24 38 01 00": {ID: id, Committed: at, Original: at, Length: 32, ServerVersion: 80036, OriginalVersion: 79908},
		old + logical + "01 02 03 04 05 06 00 20 a4 38 01":                {ID: id, Committed: at, Original: at, Length: 32},
	} {
		body := unhex(t, in)
		if strings.Contains(in, logical) {
			want.LastCommitted, want.Sequence = 1, 2
		}
		for _, typ := range []Type{TypeGTID, TypeAnonymousGTID} {
			got, err := ParseGTID(Event{Header: Header{Type: typ}, Body: body})
			want := want
			if typ == TypeAnonymousGTID {
				want.ID = mysql.GTID{}
			}
			same := got.Committed.Equal(want.Committed) && got.Original.Equal(want.Original)
			got.Committed, got.Original, want.Committed, want.Original = time.Time{}, time.Time{}, time.Time{}, time.Time{}
			if err != nil || !same || got != want {
				t.Errorf("%s as type %d: got %+v, %v; want %+v, at the same times: %v", in, typ, got, err, want, same)
			}
		}
	}
	for n := range 25 {
		if _, err := ParseGTID(Event{Header: Header{Type: TypeGTID}, Body: make([]byte, n)}); err == nil {
			t.Errorf("%d bytes: got no error", n)
		}
	}
}

// TestTagged: the message of MySQL 8.3 and later, field by field: integers have a zero at the low end, or ones for each byte more.
func TestTagged(t *testing.T) {
	const head, uuid = "02 04 00 ", "02 02 02 02 02 04 04 06 06 08 08 0a 0a 0a 0a 0a 0a "
	const source = "01010101-0202-0303-0404-050505050505"
	at := time.UnixMicro(5).UTC()
	for in, want := range map[string]GTID{
		head + "00 06 " + uuid + "04 24":        {ID: mysql.GTID{Source: source, Number: 9}, Original: time.Time{}},
		head + uuid + "04 24 06 06 61 62 63":    {ID: mysql.GTID{Source: source + ":abc", Number: 9}},
		head + uuid + "04 04 06 00":             {ID: mysql.GTID{Source: source, Number: 1}},
		head + uuid + "04 24 08 06 0a 0c 0c 0a": {ID: mysql.GTID{Source: source, Number: 9}, LastCommitted: -2, Sequence: 3, Committed: at, Original: at},
		head + uuid + "04 24 0c 08 0e 0a":       {ID: mysql.GTID{Source: source, Number: 9}, Committed: time.UnixMicro(4).UTC(), Original: at},
		head + uuid + "04 24 10 40 12 0a":       {ID: mysql.GTID{Source: source, Number: 9}, Length: 32, ServerVersion: 5, OriginalVersion: 5},
		head + uuid + "04 24 12 0a 14 08":       {ID: mysql.GTID{Source: source, Number: 9}, ServerVersion: 5, OriginalVersion: 4},
		head + uuid + "04 24 16 ff ff ff ff":    {ID: mysql.GTID{Source: source, Number: 9}}, // a field that is not known ends it
	} {
		got, err := ParseGTID(Event{Header: Header{Type: TypeGTIDTagged}, Body: unhex(t, in)})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v; want %+v", in, got, err, want)
		}
	}
	for _, bad := range []string{"", head, head + uuid, head + "04 24", head + uuid + "04 00", head + uuid + "04 02", head + uuid + "04", head + uuid + "04 24 06 08 61"} {
		if got, err := ParseGTID(Event{Header: Header{Type: TypeGTIDTagged}, Body: unhex(t, bad)}); err == nil {
			t.Errorf("%s: got %+v and no error", bad, got)
		}
	}
}

// TestGTIDsBefore: sets at the beginning of a log; the end of a range is not in it.
func TestGTIDsBefore(t *testing.T) {
	const one, two = "01010101 0202 0303 0404 050505050505 ", "09010101 0202 0303 0404 050505050505 "
	const ranges = "01 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 04 00 00 00 00 00 00 00"
	const twice = "02 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 05 00 00 00 00 00 00 00 08 00 00 00 00 00 00 00"
	for _, c := range []struct {
		typ      Type
		in, want string
	}{
		{TypePreviousGTIDs, "00 00 00 00 00 00 00 00", ""},
		{TypePreviousGTIDs, "01 00 00 00 00 00 00 00" + one + ranges, "01010101-0202-0303-0404-050505050505:1-3"},
		{TypePreviousGTIDs, "02 00 00 00 00 00 00 00" + one + twice + two + ranges, "01010101-0202-0303-0404-050505050505:1:5-7,09010101-0202-0303-0404-050505050505:1-3"},
		{TypePreviousGTIDs, "01 02 00 00 00 00 00 01" + one + "00" + ranges + one + "06 61 62 63" + twice, "01010101-0202-0303-0404-050505050505:1-3:abc:1:5-7"},
		{TypeMariaGTIDList, "00 00 00 00", ""},
		{TypeMariaGTIDList, "03 00 00 f0 00 00 00 00 07 00 00 00 05 00 00 00 00 00 00 00 02 00 00 00 08 00 00 00 06 00 00 00 00 00 00 00 02 00 00 00 07 00 00 00 09 00 00 00 00 00 00 00", "0-7-5,2-7-9"},
	} {
		body := unhex(t, c.in)
		got, err := ParseGTIDs(Event{Header: Header{Type: c.typ}, Body: body})
		if err != nil || got.String() != c.want {
			t.Errorf("%s: got %s, %v; want %s", c.in, got.String(), err, c.want)
		}
		for cut := range body {
			if got, err := ParseGTIDs(Event{Header: Header{Type: c.typ}, Body: body[:cut]}); err == nil {
				t.Errorf("%s cut to %d bytes: got %s and no error", c.in, cut, got.String())
			}
		}
	}
}

// TestFormats: which format descriptions are taken.
func TestFormats(t *testing.T) {
	described := func(version string, change func(body []byte)) []byte {
		body := append([]byte{4, 0}, make([]byte, 50)...)
		copy(body[2:], version)
		body = append(body, 1, 2, 3, 4, HeaderLen)
		body = append(append(body, make([]byte, 40)...), 1)
		if change != nil {
			change(body)
		}
		return sealed(TypeFormatDescription, body)
	}
	tableMap := 2 + 50 + 4 + 1 + int(TypeTableMap) - 1
	for name, c := range map[string]struct {
		raw  []byte
		want Format
		err  error
	}{
		"MySQL":                    {raw: described("8.0.36-log", nil), want: Format{Version: "8.0.36-log", Created: 0x04030201, Checksum: true, tableIDLen: 6, server: fleet.ServerOf("8.0.36-log", "")}},
		"numbers of four bytes":    {raw: described("8.0.36", func(b []byte) { b[tableMap] = 6 }), want: Format{Version: "8.0.36", Created: 0x04030201, Checksum: true, tableIDLen: 4, server: fleet.ServerOf("8.0.36", "")}},
		"MySQL 5.6.1":              {raw: described("5.6.1-m5", nil), want: Format{Version: "5.6.1-m5", Created: 0x04030201, Checksum: true, tableIDLen: 6, server: fleet.ServerOf("5.6.1-m5", "")}},
		"MySQL 5.6.0":              {raw: described("5.6.0", nil), err: ErrNotBinlog},
		"MariaDB 5.3":              {raw: described("5.3.0-MariaDB", nil), want: Format{Version: "5.3.0-MariaDB", Created: 0x04030201, Checksum: true, tableIDLen: 6, server: fleet.ServerOf("5.3.0-MariaDB", "")}},
		"MariaDB 5.2":              {raw: described("5.2.14-MariaDB", nil), err: ErrNotBinlog},
		"version 3":                {raw: described("8.0.36", func(b []byte) { b[0] = 3 }), err: ErrNotBinlog},
		"another header":           {raw: described("8.0.36", func(b []byte) { b[56] = 27 }), err: ErrNotBinlog},
		"an unknown checksum":      {raw: described("8.0.36", func(b []byte) { b[len(b)-1] = 2 }), err: ErrDamaged},
		"checksums were taken off": {raw: PlainFormat(described("8.0.36", nil)), err: ErrDamaged},
		"no checksums":             {raw: described("8.0.36", func(b []byte) { b[len(b)-1] = 0 }), want: Format{Version: "8.0.36", Created: 0x04030201, tableIDLen: 6, server: fleet.ServerOf("8.0.36", "")}},
	} {
		got, err := ParseFormat(c.raw)
		if !errors.Is(err, c.err) || c.err == nil && (err != nil || got != c.want) {
			t.Errorf("%s: got %+v, %v; want %+v, %v", name, got, err, c.want, c.err)
		}
	}
	whole := described("8.0.36", nil)
	for n := range HeaderLen + 2 + 50 + 4 + 1 + int(TypeTableMap) {
		if _, err := ParseFormat(whole[:n]); err == nil {
			t.Errorf("cut to %d bytes: got no error", n)
		}
	}
	if got, err := parseFormat(described("5.1.73", nil), Options{Old: true}); err != nil || got.Checksum || got.Version != "5.1.73" {
		t.Errorf("an old one that is asked for: got %+v, %v; want 5.1.73 without checksums", got, err)
	}
}

// TestArtificial: which events are in no file.
func TestArtificial(t *testing.T) {
	for typ := range 256 {
		for _, seconds := range []uint32{0, 1} {
			h := Header{Type: Type(typ), Seconds: seconds}
			if got, want := h.Artificial(), typ == 27 || typ == 41 || typ == 4 && seconds == 0; got != want {
				t.Errorf("type %d at second %d: got %v, want %v", typ, seconds, got, want)
			}
			if h.Flags = FlagArtificial; !h.Artificial() {
				t.Errorf("type %d with the flag: got false, want true", typ)
			}
		}
	}
}

// TestStatementTexts: MySQL's begins with a byte of length, MariaDB's does not.
func TestStatementTexts(t *testing.T) {
	for _, c := range []struct {
		typ      Type
		in, want string
	}{{TypeRowsQuery, "\x01S", "S"}, {TypeRowsQuery, "\x00", ""}, {TypeRowsQuery, "", ""}, {TypeAnnotateRows, "SELECT", "SELECT"}, {TypeAnnotateRows, "", ""}} {
		if got := string(StatementText(Event{Header: Header{Type: c.typ}, Body: []byte(c.in)})); got != c.want {
			t.Errorf("type %d, %q: got %q, want %q", c.typ, c.in, got, c.want)
		}
	}
}

// TestBeginnings: what a log may begin with.
func TestBeginnings(t *testing.T) {
	for in, want := range map[string]error{"": ErrTorn, "\xfe": ErrTorn, "\xfebi": ErrTorn, "\xfebin": nil, "\xfdbin": ErrEncrypted, "\xfebim": ErrNotBinlog, "\xfcbin": ErrNotBinlog, "PK\x03\x04": ErrNotBinlog} {
		r, err := NewReader(strings.NewReader(in), Options{})
		if !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%q: got %v, want %v", in, err, want)
		}
		if err == nil && r.Pos() != 4 {
			t.Errorf("%q: got position %d, want 4", in, r.Pos())
		}
	}
}

// TestKept: however much of an event is kept, its checksum is that of all bytes, and a wrong one is seen.
func TestKept(t *testing.T) {
	body := bytes.Repeat([]byte{1, 2, 3, 4, 5}, 70_000) // more than the reader has at a time
	for _, n := range []int{0, 1, 3, 4, 5, 100, len(body)} {
		event := sealed(TypeAnnotateRows, body[:n])
		for _, most := range []int{0, 1, n - 1, n, n + 1, n + 2, n + 3, n + 4, n + 5} {
			for flip := range 6 { // the flipped byte: none, of the body's end, of the checksum
				log := logOf("8.0.36", event, sealed(TypeXid, make([]byte, 8)))
				if flip > 0 {
					log[len(log)-31-flip] ^= 1
				}
				r, err := NewReader(bytes.NewReader(log), Options{MaxBody: max(most, 0)})
				if err != nil {
					t.Fatal(err)
				}
				if _, err = r.Next(); err != nil {
					t.Fatal(err)
				}
				e, err := r.Next()
				if flip > 0 {
					if !errors.Is(err, ErrChecksum) && (n > 0 || flip < 5) {
						t.Errorf("%d bytes, %d kept, byte %d from the end flipped: got %v, want a wrong checksum", n, most, flip, err)
					}
					continue
				}
				want := body[:n]
				if most > 0 && most < n {
					want = body[:most]
				}
				if err != nil || !bytes.Equal(e.Body, want) || e.Whole != (most <= 0 || most >= n+ChecksumLen) || e.End-e.Pos != int64(len(event)) {
					t.Errorf("%d bytes, %d kept: got %d, whole %v, %d to %d, %v; want e.Body %v, e.Whole %v, e.End - e.Pos %v",
						n, most, len(e.Body), e.Whole, e.Pos, e.End, err, want, most <= 0 || most >= n+ChecksumLen, int64(len(event)))
				}
				if e, err = r.Next(); err != nil || e.Type != TypeXid {
					t.Errorf("behind %d bytes, %d kept: got type %d, %v; want TypeXid", n, most, e.Type, err)
				}
				if _, err = r.Next(); err != io.EOF {
					t.Errorf("at the end: got %v, want EOF", err)
				}
			}
		}
	}
}

// TestRenamed: names of up to 250 bytes.
func TestRenamed(t *testing.T) {
	f := Format{tableIDLen: 6}
	raw := inner(TypeTableMap, append([]byte{1, 0, 0, 0, 0, 0, 1, 0, 1}, "s\x00\x01t\x00\x01\x03\x00\x00"...))
	short, longest, long := "x", strings.Repeat("y", 250), strings.Repeat("z", 251)
	for _, c := range []struct {
		schema, name string
		good         bool
	}{{short, short, true}, {longest, longest, true}, {long, short, false}, {short, long, false}, {long, long, false}} {
		got, err := RenameTable(f, bytes.Clone(raw), c.schema, c.name)
		if (err == nil) != c.good {
			t.Errorf("names of %d and %d bytes: got %v, want good %v", len(c.schema), len(c.name), err, c.good)
		}
		if err != nil {
			continue
		}
		if table, err := ParseTable(f, got[HeaderLen:]); err != nil || table.Schema != c.schema || table.Name != c.name || len(table.Columns) != 1 {
			t.Errorf("names of %d and %d bytes: got %+v, %v; want table.Schema %v, table.Name %v, len(Columns) 1",
				len(c.schema), len(c.name), table, err, c.schema, c.name)
		}
	}
	want := inner(TypeTableMap, append([]byte{1, 0, 0, 0, 0, 0, 1, 0, 2}, "ab\x00\x03cde\x00\x01\x03\x00\x00"...))
	if got, err := RenameTable(f, bytes.Clone(raw), "ab", "cde"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %x, %v; want %x", got, err, want)
	}
	for n := HeaderLen; n < HeaderLen+13; n++ {
		if _, err := RenameTable(f, bytes.Clone(raw[:n]), short, short); err == nil {
			t.Errorf("cut to %d bytes: got no error", n)
		}
	}
}

// TestUnzip: what MariaDB compresses, of events and of columns: no more than is allowed, and as long as it says.
func TestUnzip(t *testing.T) {
	text := bytes.Repeat([]byte("abc"), 100)
	var z, raw bytes.Buffer
	w := zlib.NewWriter(&z)
	w.Write(text)
	w.Close()
	fw, _ := flate.NewWriter(&raw, 6)
	fw.Write(text)
	fw.Close()
	for head, good := range map[string]bool{"82 01 2c": true, "83 00 01 2c": true, "84 00 00 01 2c": true, "82 01 2b": false, "82 01 2d": false, "81 2c": false, "80": false, "85 00 00 00 01 2c": false, "92 01 2c": false, "72 01 2c": false} {
		in := append(unhex(t, head), z.Bytes()...)
		if got, err := unzip(in, 300); (err == nil) != good || good && !bytes.Equal(got, text) {
			t.Errorf("an event's %s: got %d bytes, %v; want good %v", head, len(got), err, good)
		}
		if got, err := unzip(in, 299); err == nil {
			t.Errorf("an event's %s, one byte more than the limit: got %d bytes", head, len(got))
		}
		if got, err := unzipColumn(in); (err == nil) != good || good && !bytes.Equal(got, text) {
			t.Errorf("a column's %s: got %d bytes, %v; want good %v", head, len(got), err, good)
		}
	}
	if got, err := unzipColumn(append(unhex(t, "8a 01 2c"), raw.Bytes()...)); err != nil || !bytes.Equal(got, text) {
		t.Errorf("a column without zlib's header: got %d bytes, %v; want %d", len(got), err, len(text))
	}
	for in, want := range map[string]string{"": "", "\x00": "", "\x00abc": "abc"} {
		if got, err := unzipColumn([]byte(in)); err != nil || string(got) != want {
			t.Errorf("a column of %q: got %q, %v; want %q", in, got, err, want)
		}
	}
	for _, bad := range []string{"\x80", "\x82\x01", "\x84\x00\x00\x01"} {
		if _, err := unzip([]byte(bad), 300); err == nil {
			t.Errorf("an event of %x: got no error", bad)
		}
		if _, err := unzipColumn([]byte(bad)); err == nil {
			t.Errorf("a column of %x: got no error", bad)
		}
	}
}

// TestCutRows cuts the recorded rows events at each of their bytes: values and counts see the same rows, and neither passes what is
// cut in the middle of a row.
func TestCutRows(t *testing.T) {
	for _, file := range []string{"mysql-9.7", "mysql-5.7", "mariadb-10.11"} {
		r, err := NewReader(bytes.NewReader(unpacked(t, "testdata/"+file+".binlog.gz")), Options{})
		if err != nil {
			t.Fatal(err)
		}
		tables := Tables[int]{}
		for {
			e, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if e.Type == TypeTableMap {
				if _, _, err := tables.Map(r.Format(), e.Body); err != nil {
					t.Fatal(err)
				}
			}
			if !e.Type.IsRows() || len(e.Body) > 2000 {
				continue
			}
			id, _, _ := RowsHead(r.Format(), e)
			table := &tables.Get(id).Table
			for cut := range e.Body {
				short := Event{Header: e.Header, Body: e.Body[:cut]}
				counted, failed := CountRows(r.Format(), short, table, 1<<20)
				rows, err := OpenRows(r.Format(), short, table)
				read := int64(0)
				for more := true; err == nil && more; {
					if _, _, more, err = rows.Next(); more {
						read++
					}
				}
				if read != counted || (err == nil) != (failed == nil) {
					t.Fatalf("%s at %d cut to %d: got %d rows read, %v; and %d counted, %v", file, e.Pos, cut, read, err, counted, failed)
				}
				if _, err := Plain(r.Format(), Event{Header: e.Header, Raw: append(make([]byte, HeaderLen), short.Body...), Body: short.Body}); !e.Type.zipped() && err != nil {
					t.Fatalf("%s at %d cut to %d, plain: got %v", file, e.Pos, cut, err)
				}
			}
		}
		r.Close()
	}
}

// TestRowsOfNothing: an image without columns would never end.
func TestRowsOfNothing(t *testing.T) {
	f := Format{tableIDLen: 6}
	table, err := ParseTable(f, append([]byte{1, 0, 0, 0, 0, 0, 1, 0, 1}, "s\x00\x01t\x00\x01\x03\x00\x00"...))
	if err != nil {
		t.Fatal(err)
	}
	e := Event{Header: Header{Type: TypeWriteRows}, Body: []byte{1, 0, 0, 0, 0, 0, 1, 0, 2, 0, 1, 0, 9, 9}} // present: none
	if n, err := CountRows(f, e, &table, 100); n != 0 || !errors.Is(err, errNoColumns) {
		t.Errorf("got %d rows, %v; want no columns", n, err)
	}
	rows, err := OpenRows(f, e, &table)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, more, err := rows.Next(); more || !errors.Is(err, errNoColumns) {
		t.Errorf("got a row %v, %v; want no columns", more, err)
	}
	if _, err := Split(f, append(make([]byte, HeaderLen), e.Body...), &table, 100); err == nil {
		t.Error("split: got no error")
	}
	e.Body[10] = 2
	if _, err := OpenRows(f, e, &table); !errors.Is(err, errColumns) {
		t.Errorf("two columns of one: got %v, want other columns", err)
	}
}

// TestSplitLimit: a part is as long as the limit and no longer, where more than one row is in it.
func TestSplitLimit(t *testing.T) {
	f := Format{tableIDLen: 6}
	table, err := ParseTable(f, append([]byte{1, 0, 0, 0, 0, 0, 1, 0, 1}, "s\x00\x01t\x00\x01\x01\x00\x00"...))
	if err != nil {
		t.Fatal(err)
	}
	raw := inner(TypeWriteRows, []byte{1, 0, 0, 0, 0, 0, 1, 0, 2, 0, 1, 1, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5}) // five rows of two bytes
	const head = HeaderLen + 12
	for limit, want := range map[int]string{0: "1 1 1 1 1", head + 2: "1 1 1 1 1", head + 3: "1 1 1 1 1", head + 4: "2 2 1", head + 6: "3 2", head + 9: "4 1", head + 10: "5", 1000: "5"} {
		parts, err := Split(f, bytes.Clone(raw), &table, limit)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range parts {
			got = append(got, fmt.Sprint((len(p)-head)/2))
			if h := ParseHeader(p); int(h.Length) != len(p) || h.Type != TypeWriteRows {
				t.Errorf("got length %d, type %d of %d bytes; want int(h.Length) %v, h.Type TypeWriteRows", h.Length, h.Type, len(p), len(p))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("at most %d bytes: got rows %v, want %s", limit, got, want)
		}
	}
}

// TestWidths: the masks of columns have a byte for each eight.
func TestWidths(t *testing.T) {
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	w.Write([]byte{0, 7})
	w.Close()
	for columns, width := range map[int]int{1: 1, 7: 1, 8: 1, 9: 2, 16: 2, 17: 3} {
		head := append([]byte{1, 0, 0, 0, 0, 0, 1, 0, byte(columns)}, make([]byte, width)...)
		raw := inner(TypeDeleteRowsZipV1, append(append(bytes.Clone(head), 0x81, 2), z.Bytes()...))
		want := inner(TypeDeleteRowsV1, append(bytes.Clone(head), 0, 7))
		if got, err := Plain(Format{tableIDLen: 6}, Event{Header: ParseHeader(raw), Raw: bytes.Clone(raw), Body: raw[HeaderLen:]}); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d columns: got %x, %v; want %x", columns, got, err, want)
		}
	}
}

// TestPlainOfSecond: MariaDB's compressed rows of the second version, with extra data.
func TestPlainOfSecond(t *testing.T) {
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	w.Write([]byte{0, 7})
	w.Close()
	zipped := append([]byte{0x81, 2}, z.Bytes()...)
	for from, c := range map[Type]struct {
		to    Type
		extra []byte
		masks []byte
	}{
		TypeWriteRowsZip: {TypeWriteRows, []byte{4, 0, 8, 9}, []byte{1}}, TypeUpdateRowsZip: {TypeUpdateRows, []byte{2, 0}, []byte{1, 1}}, TypeDeleteRowsZip: {TypeDeleteRows, []byte{2, 0}, []byte{1}},
		TypeWriteRowsZipV1: {TypeWriteRowsV1, nil, []byte{1}}, TypeUpdateRowsZipV1: {TypeUpdateRowsV1, nil, []byte{1, 1}}, TypeDeleteRowsZipV1: {TypeDeleteRowsV1, nil, []byte{1}},
	} {
		head := append(append(append([]byte{1, 0, 0, 0, 0, 0, 1, 0}, c.extra...), 1), c.masks...)
		raw := inner(from, append(bytes.Clone(head), zipped...))
		got, err := Plain(Format{tableIDLen: 6}, Event{Header: ParseHeader(raw), Raw: bytes.Clone(raw), Body: raw[HeaderLen:]})
		want := inner(c.to, append(bytes.Clone(head), 0, 7))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("type %d: got %x, %v; want %x", from, got, err, want)
		}
		cut := raw[:HeaderLen+len(head)-1]
		if got, err := Plain(Format{tableIDLen: 6}, Event{Header: ParseHeader(cut), Raw: bytes.Clone(cut), Body: cut[HeaderLen:]}); err == nil {
			t.Errorf("type %d cut: got %x and no error", from, got)
		}
	}
}
