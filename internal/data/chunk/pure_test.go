package chunk

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/mysql/define"
)

// whole puts the pieces of rows together.
type whole struct {
	rows []string
	row  []byte
	fail error
}

func (w *whole) Piece(b []byte, last bool) error {
	if w.fail != nil {
		return w.fail
	}
	if w.row = append(w.row, b...); last {
		w.rows, w.row = append(w.rows, string(w.row)), w.row[:0]
	}
	return nil
}

// field is a value preceded by its length; "NULL" is none.
func field(v string) []byte {
	if v == "NULL" {
		return []byte{null}
	}
	return append(appendSize(nil, len(v)), v...)
}

// pointOf is POINT(x, 0) as servers return it: SRID, byte order, the type Point, two numbers.
func pointOf(x float64) string {
	b := []byte{0, 0, 0, 0, 1, 1, 0, 0, 0}
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	return string(append(b, 0, 0, 0, 0, 0, 0, 0, 0))
}

// TestNumbers: points become numbers, whether rows come whole or in pieces of any size; the rest stays as it is.
func TestNumbers(t *testing.T) {
	long := strings.Repeat("y", 300)
	packed := []bool{false, true, false, true, false}
	rows := [][2][]string{
		{{"1", pointOf(1.5), "text", pointOf(-0.25), "end"}, {"1", "1.5", "text", "-0.25", "end"}},
		{{"NULL", "NULL", "NULL", "NULL", "NULL"}, {"NULL", "NULL", "NULL", "NULL", "NULL"}},
		{{"", pointOf(1e300), "", pointOf(0), ""}, {"", "1e300", "", "0", ""}},
		{{long, pointOf(3), long, "NULL", long}, {long, "3", long, "NULL", long}},
		{{"x", "NULL", "y", pointOf(7), "NULL"}, {"x", "NULL", "y", "7", "NULL"}},
	}
	join := func(values []string) (b []byte) {
		for _, v := range values {
			b = append(b, field(v)...)
		}
		return b
	}
	for size := 1; size < 1000; size += 1 + size/7 {
		to := &whole{}
		in := &numbers{to: to, packed: packed, end: 3}
		var want []string
		for _, row := range rows {
			b := join(row[0])
			for len(b) > size {
				if err := in.Piece(b[:size], false); err != nil {
					t.Fatal(err)
				}
				b = b[size:]
			}
			if err := in.Piece(b, true); err != nil {
				t.Fatal(err)
			}
			want = append(want, string(join(row[1])))
		}
		if !reflect.DeepEqual(to.rows, want) {
			t.Fatalf("in pieces of %d: got\n%q\nwant\n%q", size, to.rows, want)
		}
	}
	good := join(rows[0][0])
	for cut := range len(good) - len(field("end")) {
		if err := (&numbers{to: &whole{}, packed: packed, end: 3}).Piece(good[:cut], true); !errors.Is(err, errShape) {
			t.Errorf("cut to %d bytes: got %v, want another shape", cut, err)
		}
		in := &numbers{to: &whole{}, packed: packed, end: 3}
		if err := in.Piece(good[:cut], false); err != nil {
			t.Errorf("the first %d bytes: got %v", cut, err)
		}
		if err := in.Piece(nil, true); !errors.Is(err, errShape) {
			t.Errorf("cut to %d bytes, in pieces: got %v, want another shape", cut, err)
		}
	}
	for what, bad := range map[string][]byte{"a number that is a text": join([]string{"1", "abc", "", pointOf(1), ""}), "a point that is too long": join([]string{"1", pointOf(1) + "x", "", pointOf(1), ""}), "no length": {0xff}, "eight bytes of length": append([]byte{0xfe}, 1, 0, 0, 0, 0, 0, 0, 0x80)} {
		if err := (&numbers{to: &whole{}, packed: packed, end: 3}).Piece(bad, true); !errors.Is(err, errShape) {
			t.Errorf("%s: got %v, want another shape", what, err)
		}
	}
	in := &numbers{to: &whole{}, packed: packed, end: 3}
	if err := in.Piece(join([]string{"1", "abc"}), false); !errors.Is(err, errShape) {
		t.Errorf("a number that is a text, in pieces: got %v, want another shape", err)
	}
	if err := (&numbers{to: &whole{}, packed: packed, end: 3}).Piece(bytes.Repeat([]byte{0xff}, 20), false); !errors.Is(err, errShape) {
		t.Errorf("no length, in pieces: got %v, want another shape", err)
	}
	broken := errors.New("broken")
	for _, last := range []bool{true, false} {
		if err := (&numbers{to: &whole{fail: broken}, packed: packed, end: 3}).Piece(good, last); !errors.Is(err, broken) {
			t.Errorf("where the sink breaks, last %v: got %v; want broken", last, err)
		}
	}
}

// TestPacked: which columns are asked for as points.
func TestPacked(t *testing.T) {
	for _, c := range []struct {
		kind, full, want string
	}{
		{"double", "double", "POINT(`c`, 0)"}, {"double", "double unsigned", "POINT(`c`, 0)"}, {"double", "double(10,2)", "`c`"}, {"double", "double unsigned ZEROFILL", "`c`"}, {"float", "float", "POINT(`c`, 0)"}, {"float", "float unsigned zerofill", "POINT(`c`, 0)"},
		{"float", "float(7,2)", "`c`"}, {"int", "int", "`c`"}, {"decimal", "decimal(5,2)", "`c`"},
	} {
		if got := packedExpression(define.TableColumn{Name: "c", Type: c.kind, FullType: c.full}); got != c.want {
			t.Errorf("%s: got %s, want %s", c.full, got, c.want)
		}
	}
	table := define.Table{Columns: []define.TableColumn{{Name: "a", Type: "int"}, {Name: "g", Type: "double", FullType: "double", Generated: true}, {Name: "d", Type: "double", FullType: "double"}}}
	if got := packedOf(table); !slices.Equal(got, []bool{false, true}) {
		t.Errorf("got %v, want the second of those that are not generated", got)
	}
}

// TestLengths: lengths are written as they are read, in as few bytes as can be.
func TestLengths(t *testing.T) {
	for n, bytes := range map[int]int{0: 1, 250: 1, 251: 3, 255: 3, 65535: 3, 65536: 4, 1<<24 - 1: 4, 1 << 24: 9, 1 << 40: 9} {
		b := appendSize([]byte("x"), n)[1:]
		if size, head := sizeOf(b); size != uint64(n) || head != bytes || len(b) != bytes {
			t.Errorf("%d: got %d behind %d of %d bytes, want %d bytes", n, size, head, len(b), bytes)
		}
	}
}

// TestLooksTyped: which strings may be a date, a time or bytes.
func TestLooksTyped(t *testing.T) {
	for s, want := range map[string]bool{
		"base64:type15:YQ==": true, "base64:typ": false, "2020-01-01": true, "2020-01-1": false, "2020-01-011": false, "10:00:00": true, "0:00:00": false, "10:00:00.000000": true, "-838:59:59.000000": true, "2020-01-01 10:00:00.000000": true,
		"2020-01-01 10:00": false, "1234567890": false, "10:00-00-00": false, "10:00:00:00": false, "2020-01-01-": false, "20200101": false, "10:00:0x": false, "2020/01/01": false, "10:00:00." + strings.Repeat("0", 18): true, "10:00:00." + strings.Repeat("0", 19): false,
	} {
		if got := looksTyped([]byte(s)); got != want {
			t.Errorf("%q: got %v, want %v", s, got, want)
		}
	}
}

// TestDocuments: the places of what MySQL writes, and of what it does not.
func TestDocuments(t *testing.T) {
	for text, want := range map[string]string{
		"1": "$", "-1.5e+10": "$", "true": "", `"x"`: "", `{}`: "", `[]`: "", "": "", " ": "", "[1, 2]": "$[0] $[1]", "[[1], 2]": "$[0][0] $[1]", `[null, false, 3]`: "$[2]", `{"a": 1, "b": {"c": 2}}`: `$."a" $."b"."c"`, `{"a": [], "b": 2}`: `$."b"`,
		`{"a": {}, "b": 2}`: `$."b"`, `[{"a": 1}, {"b": 2}]`: `$[0]."a" $[1]."b"`, `{"a\"": 1, "\\": 2}`: `$."\\" $."a\""`, `["10:00:00", "no", 1]`: "$[0] $[2]", `{"a": "10:00:00", "b": 1}`: `$."a" $."b"`, `{1}`: "", `{"a": 1, 2}`: `$."a"`, `[?, 1]`: "", `["open, 1`: "", `{"a`: "", "[1": "$[0]",
	} {
		w := walker{text: []byte(text), path: []byte{'$'}, found: map[string]bool{}}
		w.value()
		var got []string
		for p := range w.found {
			got = append(got, p)
		}
		slices.Sort(got)
		if g := strings.Join(got, " "); g != want || w.more {
			t.Errorf("%s: got %s, more %v; want %s", text, g, w.more, want)
		}
	}
}

// TestLongRows: a row that comes in pieces is held up to a limit; of a longer one nothing is known, and the next is looked at again.
func TestLongRows(t *testing.T) {
	table := define.Table{Columns: []define.TableColumn{{Name: "j", Type: "json"}, {Name: "t", Type: "text"}}}
	for _, c := range []struct {
		size  int
		whole bool
	}{{heldRow, true}, {heldRow + 1, false}} {
		p := NewPlaces(table, &whole{})
		row := append(field("[1]"), 0xfd, 0, 0, 0)
		text := c.size - len(row)
		row[5], row[6], row[7] = byte(text), byte(text>>8), byte(text>>16)
		row = append(row, make([]byte, text)...)
		for len(row) > 4<<20 {
			if err := p.Piece(row[:4<<20], false); err != nil {
				t.Fatal(err)
			}
			row = row[4<<20:]
		}
		for _, last := range [][]byte{row, append(field(`{"b": 2}`), null)} {
			if err := p.Piece(last, true); err != nil {
				t.Fatal(err)
			}
		}
		want := []Place{{"j", `$."b"`}}
		if c.whole {
			want = []Place{{"j", `$."b"`}, {"j", "$[0]"}}
		}
		if got, all := p.List(); all != c.whole || !reflect.DeepEqual(got, want) {
			t.Errorf("%d bytes: got %v, all %v; want %v, %v", c.size, got, all, want, c.whole)
		}
	}
	for _, bad := range []string{"", "\x05ab", "\xff", "\xfc\x01"} {
		if err := NewPlaces(table, &whole{}).Piece([]byte(bad), true); !errors.Is(err, errShape) {
			t.Errorf("%x: got %v, want another shape", bad, err)
		}
	}
	broken := errors.New("broken")
	if err := NewPlaces(table, &whole{fail: broken}).Piece(field("1"), true); !errors.Is(err, broken) {
		t.Errorf("where the sink breaks: got %v, want broken", err)
	}
}

// TestBroken: line feeds leave documents of any length, and those alone; a row in pieces stays as it is.
func TestBroken(t *testing.T) {
	table := define.Table{Columns: []define.TableColumn{{Name: "t", Type: "text"}, {Name: "j", Type: "json"}, {Name: "k", Type: "json"}}}
	long := strings.Repeat("z", 250)
	row := func(values ...string) (b []byte) {
		for _, v := range values {
			b = append(b, field(v)...)
		}
		return b
	}
	for _, c := range []struct{ in, want []byte }{
		{row("a\n", "[\n]", "{\n\n}"), row("a\n", `[\n]`, `{\n\n}`)}, {row("a\n", "NULL", "\n"), row("a\n", "NULL", `\n`)}, {row(long+"\n", long+"\n", "1"), row(long+"\n", long+`\n`, "1")}, {row("a", "b", "c"), row("a", "b", "c")}, {row("", "", "\n"), row("", "", `\n`)},
	} {
		to := &whole{}
		if err := unbroken(table, to).Piece(c.in, true); err != nil || len(to.rows) != 1 || to.rows[0] != string(c.want) {
			t.Errorf("got %q, %v; want %q", to.rows, err, c.want)
		}
		to = &whole{}
		in := unbroken(table, to)
		if err := errors.Join(in.Piece(c.in[:1], false), in.Piece(c.in[1:], true), in.Piece(c.in, true)); err != nil || len(to.rows) != 2 || to.rows[0] != string(c.in) || to.rows[1] != string(c.want) {
			t.Errorf("in pieces, then whole: got %q, %v; want %q and %q", to.rows, err, c.in, c.want)
		}
	}
	for _, bad := range []string{"\x03a\n", "\xfc\n", "\xff\n", "\x01\n\x02\n"} {
		if err := unbroken(table, &whole{}).Piece([]byte(bad), true); !errors.Is(err, errShape) {
			t.Errorf("%x: got %v, want another shape", bad, err)
		}
	}
	plain := &whole{}
	if to := unbroken(define.Table{Columns: table.Columns[:1]}, plain); to != plain {
		t.Errorf("without JSON: got %T, want the sink itself", to)
	}
}

// server answers statements by what is in them.
type server struct {
	asked  []string
	answer func(statement string) [][][]byte
	fail   string // statements with this fail
}

func (s *server) Query(_ context.Context, statement string, f func(row [][]byte) error) error {
	s.asked = append(s.asked, statement)
	if s.fail != "" && strings.Contains(statement, s.fail) {
		return errors.New("gone")
	}
	for _, row := range s.answer(statement) {
		if err := f(row); err != nil {
			return err
		}
	}
	return nil
}

func texts(values ...string) (row [][]byte) {
	for _, v := range values {
		if v == "NULL" {
			row = append(row, nil)
		} else {
			row = append(row, []byte(v))
		}
	}
	return row
}

// TestSplit: where a table is cut by the least and the greatest value of its key.
func TestSplit(t *testing.T) {
	for _, c := range []struct {
		kind, least, greatest string
		parts                 int
		empty                 int // so many of the parts have no row
		want                  string
	}{
		{"int", "0", "100", 4, 0, "16 32 48 64 80 96"}, {"int", "0", "100", 2, 0, "32 64 96"}, {"int", "0", "100", 1, 0, ""}, {"int", "NULL", "NULL", 4, 0, ""}, {"int", "5", "6", 4, 0, ""}, {"varchar", "a", "z", 4, 0, ""}, {"int", "x", "9", 2, 0, ""}, {"int", "0", "x", 2, 0, ""},
		{"date", "1970-01-01", "1970-01-09", 4, 0, "'1970-01-03' '1970-01-05' '1970-01-07'"}, {"date", "1970-01-01", "1970-01-09", 4, 2, "'1970-01-03' '1970-01-05' '1970-01-07'"}, {"date", "1970-01-01", "1970-01-09", 4, 3, ""}, {"date", "0000-00-00", "1970-01-09", 4, 0, ""},
		{"datetime", "1970-01-01 00:00:00", "1970-01-01 00:00:04", 2, 0, "'1970-01-01 00:00:02'"}, {"binary", "\x00", "\x04", 2, 0, "_binary 0x02"}, {"int", "-8", "8", 2, 0, "0"},
	} {
		first, parts := true, 0
		s := &server{answer: func(string) [][][]byte {
			if first {
				first = false
				return [][][]byte{texts(c.least, c.greatest)}
			}
			if parts++; parts <= c.empty {
				return nil
			}
			return [][][]byte{texts("1")}
		}}
		bounds, err := Split(t.Context(), s, define.Table{Schema: "s", Name: "t"}, keyed("k "+c.kind), c.parts, "p")
		var got []string
		for _, b := range bounds {
			got = append(got, strings.Join(b, ","))
		}
		if g := strings.Join(got, " "); err != nil || g != c.want {
			t.Errorf("%s %s to %s in %d, %d of them empty: got %s, %v; want %s", c.kind, c.least, c.greatest, c.parts, c.empty, g, err, c.want)
		}
		if len(s.asked) > 1 {
			if last := s.asked[len(s.asked)-1]; !strings.HasSuffix(last, "LIMIT 1") || len(s.asked) != 5 && c.kind == "date" {
				t.Errorf("%s: asked %d times, the last %s; want four parts", c.kind, len(s.asked), last)
			}
		}
	}
	none := keyed("k int")
	none.Cuts = 0
	s := &server{}
	if got, err := Split(t.Context(), s, define.Table{}, none, 4, "p"); got != nil || err != nil || len(s.asked) != 0 {
		t.Errorf("what cannot be cut: got %v, %v, asked %v", got, err, s.asked)
	}
	days := func(string) [][][]byte { return [][][]byte{texts("1970-01-01", "1970-01-09")} }
	for _, fail := range []string{"MIN", "LIMIT"} {
		if got, err := Split(t.Context(), &server{answer: days, fail: fail}, define.Table{}, keyed("k date"), 4, "p"); err == nil || got != nil {
			t.Errorf("where %s fails: got %v, %v", fail, got, err)
		}
	}
}

// TestTypedPlaces asks for 100 places at a time, and takes those that some row has.
func TestTypedPlaces(t *testing.T) {
	var list []Place
	for i := range 150 {
		list = append(list, Place{"j", fmt.Sprintf("$[%d]", i)})
	}
	s := &server{}
	s.answer = func(string) [][][]byte {
		row := make([]string, min(100, 150-100*(len(s.asked)-1)))
		for i := range row {
			row[i] = "0"
		}
		row[3], row[4] = "NULL", "7"
		return [][][]byte{texts(row...)}
	}
	got, counts, err := TypedPlaces(t.Context(), s, define.Table{Schema: "s", Name: "t"}, list, "p")
	if err != nil || len(s.asked) != 2 || !reflect.DeepEqual(got, []Place{{"j", "$[4]"}, {"j", "$[104]"}}) || !slices.Equal(counts, []int64{7, 7}) {
		t.Errorf("got %v, %v, %v in %d questions; want places 4 and 104 in two", got, counts, err, len(s.asked))
	}
	const want = "SUM((JSON_TYPE(JSON_EXTRACT(`j`, '$[0]')) IN ('DECIMAL', 'DATE', 'TIME', 'DATETIME', 'TIMESTAMP', 'BLOB', 'BIT', 'OPAQUE') OR JSON_TYPE(JSON_EXTRACT(`j`, '$[0]')) = 'DOUBLE' AND CAST(JSON_EXTRACT(`j`, '$[0]') AS CHAR) NOT REGEXP '[.e]'))"
	if !strings.Contains(s.asked[0], want) || !strings.HasSuffix(s.asked[0], " FROM `s`.`t`") {
		t.Errorf("got %s, want it to hold %s", s.asked[0], want)
	}
	s.answer = func(string) [][][]byte { return [][][]byte{texts("many")} }
	if _, _, err := TypedPlaces(t.Context(), s, define.Table{}, list[:1], "p"); err == nil {
		t.Error("a count that is no number: got no error")
	}
}

// TestReadTyped: the values at places, with the keys of their rows, there and back.
func TestReadTyped(t *testing.T) {
	list := []Place{{"j", "$.a"}, {"j", "$.b"}}
	k := keyed("id int", "n int")
	s := &server{answer: func(string) [][][]byte {
		return [][][]byte{texts("1", "2", "DECIMAL", "1.50", "NULL", "x"), texts("3", "4", "NULL", "x", "DATE", "2026-11-21")}
	}}
	var got []Typed
	err := ReadTyped(t.Context(), s, define.Table{Schema: "s", Name: "t"}, k, list, "p", func(v Typed) error { got = append(got, v); return nil })
	want := []Typed{{Bound{"1", "2"}, list[0], "DECIMAL", "1.50"}, {Bound{"3", "4"}, list[1], "DATE", "2026-11-21"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	for _, v := range want {
		row, err := v.AppendRow(nil)
		if err != nil {
			t.Fatal(err)
		}
		var values [][]byte
		for len(row) > 0 {
			size, head := sizeOf(row)
			values, row = append(values, row[head:head+int(size)]), row[head+int(size):]
		}
		if again, err := TypedOf(k, values); err != nil || !reflect.DeepEqual(again, v) {
			t.Errorf("there and back: got %v, %v; want %v", again, err, v)
		}
		if _, err := TypedOf(keyed("id int"), values); !errors.Is(err, ErrBound) {
			t.Errorf("a key of one column: got %v, want an error", err)
		}
	}
	for _, bad := range [][]string{{}, {`["1","2"]`, "j", "$.a", "DECIMAL"}, {`["1","2"]`, "j", "$.a", "STRING", "x"}, {`["1"]`, "j", "$.a", "DATE", "x"}, {`["1","x"]`, "j", "$.a", "DATE", "x"}, {`{`, "j", "$.a", "DATE", "x"}, {`["1","2"]`, "j", "$.a", "DATE", "x", "more"}} {
		if v, err := TypedOf(k, texts(bad...)); err == nil {
			t.Errorf("%q: got %v and no error", bad, v)
		}
	}
	stop := errors.New("stop")
	if err := ReadTyped(t.Context(), s, define.Table{}, k, list, "p", func(Typed) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v, want stop", err)
	}
	for _, row := range [][][]byte{texts("1", "2"), texts("1", "NULL", "DATE", "x", "DATE", "x"), texts("1", "2", "NULL", "x", "NULL", "x", "more")} {
		s.answer = func(string) [][][]byte { return [][][]byte{row} }
		if err := ReadTyped(t.Context(), s, define.Table{}, k, list, "p", func(Typed) error { return nil }); err == nil {
			t.Errorf("%q: got no error", row)
		}
	}
}

// TestLiteralsOfTypes: how values of each type are written in a bound.
func TestLiteralsOfTypes(t *testing.T) {
	for _, c := range []struct{ kind, charset, value, want string }{
		{"tinyint", "", "1", "1"}, {"smallint", "", "1", "1"}, {"mediumint", "", "1", "1"}, {"bigint", "", "1", "1"}, {"decimal", "", "1.5", "1.5"}, {"year", "", "2026", "2026"}, {"date", "", "2026-11-21", "'2026-11-21'"}, {"timestamp", "", "2026-11-21 00:00:00", "'2026-11-21 00:00:00'"}, {"time", "", "-01:00:00", "'-01:00:00'"},
		{"uuid", "", "6ccd780c-baba-1026-9564-95645b8c6560", "'6ccd780c-baba-1026-9564-95645b8c6560'"}, {"inet6", "", "::1", "'::1'"}, {"inet4", "", "10.0.0.1", "'10.0.0.1'"}, {"varbinary", "", "\x00'", "_binary 0x0027"}, {"blob", "", "", "_binary ''"}, {"bit", "", "\x01\x02", "CAST(0x0102 AS UNSIGNED)"},
		{"char", "latin1", "a", "_latin1 0x61"}, {"longtext", "utf8mb4", "", "_utf8mb4 ''"}, {"varchar", "", "a", "none"}, {"float", "", "1", "none"}, {"double", "", "1", "none"}, {"enum", "utf8mb4", "a", "none"}, {"set", "utf8mb4", "a", "none"}, {"json", "", "1", "none"}, {"geometry", "", "1", "none"},
	} {
		of, got := literalOf(define.TableColumn{Type: c.kind, Charset: c.charset}), "none"
		if of != nil {
			got = of([]byte(c.value))
		}
		if got != c.want {
			t.Errorf("%s %q: got %s, want %s", c.kind, c.value, got, c.want)
		}
		if k := (Key{Cuts: 1}); of != nil && k.Check(Bound{got}) != nil {
			t.Errorf("%s: %s is no bound", c.kind, got)
		}
	}
	k := keyed("a int", "b int")
	if got := k.Columns(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got %v, want a and b", got)
	}
	if k.Cuts = 0; k.Columns() != nil {
		t.Errorf("what is not cut: got %v, want none", k.Columns())
	}
}

// TestEvenOfLarge: unsigned numbers have no sign.
func TestEvenOfLarge(t *testing.T) {
	high, _ := new(big.Int).SetString("18446744073709551615", 10)
	got := even(big.NewInt(0), high, 2)
	if len(got) != 3 || got[0].String() != "4611686018427387904" || got[2].String() != "13835058055282163712" {
		t.Errorf("got %v, want the quarters", got)
	}
}
