package checksum

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/pattern"
)

// appendValue writes a value as the protocol does.
func appendValue(b, v []byte) []byte {
	switch n := len(v); {
	case v == nil:
		return append(b, 0xfb)
	case n < 251:
		return append(append(b, byte(n)), v...)
	case n < 1<<16:
		return append(binary.LittleEndian.AppendUint16(append(b, 0xfc), uint16(n)), v...)
	default:
		return append(append(b, 0xfd, byte(n), byte(n>>8), byte(n>>16)), v...)
	}
}

// However a row is cut into pieces, it is the same row.
func TestCells(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		values := make([][]byte, 1+r.IntN(6))
		var row []byte
		for i := range values {
			switch size := []int{0, 1, 250, 251, 70_000}[r.IntN(5)]; {
			case r.IntN(5) == 0:
			default:
				values[i] = bytes.Repeat([]byte{byte(r.IntN(256))}, size)
				if size == 0 {
					values[i] = []byte{}
				}
			}
			row = appendValue(row, values[i])
		}
		rows := 0
		sink := newCells(len(values), nil, func(h xxh3.Uint128, cells []cell) error {
			rows++
			if h != xxh3.Hash128(row) {
				t.Fatalf("the row's hash is not that of its bytes: got %v, want xxh3.Hash128(row)", h)
			}
			for i, c := range cells {
				v := values[i]
				if c.null != (v == nil) || c.size != int64(len(v)) || !bytes.Equal(c.head, v[:min(len(v), maxHead)]) || v != nil && c.hash != xxh3.Hash128(v) {
					t.Fatalf("value %d of %d bytes became %+v", i, len(v), c)
				}
			}
			return nil
		})
		for range 2 { // the sink is used again
			for rest := row; ; {
				n := min(len(rest), 1+r.IntN(len(row)))
				if err := sink.Piece(rest[:n], n == len(rest)); err != nil {
					t.Fatal(err)
				}
				if rest = rest[n:]; len(rest) == 0 {
					break
				}
			}
		}
		if rows != 2 {
			t.Fatalf("got %d rows, want 2", rows)
		}
		if err := newCells(len(values)+1, nil, func(xxh3.Uint128, []cell) error { return nil }).Piece(row, true); err == nil {
			t.Fatal("a row that lacks a value passes")
		}
	}
}

func whole(s string) cell {
	return cell{size: int64(len(s)), head: []byte(s), hash: xxh3.HashString128(s)}
}

func TestSame(t *testing.T) {
	for _, c := range []struct {
		kind, a, b string
		want       bool
	}{
		{"double", "1e20", "100000000000000000000", true}, {"double", "1e20", "1.0000000000000001e20", false}, {"float", "-0.5", "-5e-1", true},
		{"decimal", "1.50", "1.5", true}, {"bigint", "18446744073709551615", "18446744073709551614", false},
		{"datetime", "2020-01-01 00:00:00", "2020-01-01 00:00:00.000", true}, {"datetime", "2020-01-01 00:00:10", "2020-01-01 00:00:01", false},
		{"json", `{"a": 1, "b": [1.0]}`, `{"b":[1],"a":1}`, true}, {"json", `{"a": 1}`, `{"a": "1"}`, false}, {"json", `[1,2]`, `[2,1]`, false}, {"json", `[1]`, `[1] x`, false},
		{"varchar", "1.0", "1", false}, {"varchar", "a", "A", false},
	} {
		if got := same(define.TableColumn{Type: c.kind}, whole(c.a), whole(c.b)); got != c.want {
			t.Errorf("%s %s and %s: %v, want %v", c.kind, c.a, c.b, got, c.want)
		}
	}
	if same(define.TableColumn{Type: "int"}, cell{null: true}, whole("")) {
		t.Error("NULL is like an empty value")
	}
}

// The faster method is taken after some chunks of each.
func TestChoice(t *testing.T) {
	for _, fast := range []Method{MethodRows, MethodServer} {
		c := &choice{}
		tried := map[Method]int{}
		for range 50 {
			m := c.next()
			tried[m]++
			took := time.Second
			if m == fast {
				took /= 2
			}
			c.note(span{method: m, rows: 1000, took: took})
		}
		if c.next() != fast || tried[MethodRows]+tried[MethodServer] != 50 || tried[fast] != 50-trials {
			t.Errorf("%s is faster: %v; want c.next() %v, tried[MethodRows] + tried[MethodServer] 50, tried[fast] %v", fast, tried, fast, 50-trials)
		}
	}
}

func TestPace(t *testing.T) {
	p := paceOf(job{width: 1 << 20}, 1, false)
	if p.next() != 16 {
		t.Errorf("got %d rows of a megabyte, want 16", p.next())
	}
	for range 20 { // 1,000 rows a second
		p.note(p.next(), time.Duration(p.next())*time.Millisecond, 500*time.Millisecond)
	}
	if n := p.next(); n < 450 || n > 550 {
		t.Errorf("got %d rows, want from 450 to 550", n)
	}
	p.note(3, time.Millisecond, 500*time.Millisecond) // the end of a table says nothing
	if n := p.next(); n < 450 {
		t.Errorf("got %d rows, want at least 450", n)
	}
}

// A table of millions is read in many chunks, by several sessions in more, and none is longer than it should be.
func TestPaceShares(t *testing.T) {
	for lanes, want := range map[int]int64{1: 12_000_000 / 48, 2: 12_000_000 / 48, 8: 12_000_000 / 12 / 8} {
		p := paceOf(job{rows: 12_000_000}, lanes, false)
		for range 20 { // as fast as can be
			p.note(p.next(), time.Millisecond, time.Second)
		}
		if p.next() != want {
			t.Errorf("got %d lanes: %d rows, want %d", lanes, p.next(), want)
		}
	}
	p := paceOf(job{}, 1, false) // the server has no idea how large it is
	for range 1000 {
		p.read(p.next())
		p.note(p.next(), time.Millisecond, time.Second)
	}
	if n := p.next(); n < 100_000 || n > mostRows {
		t.Errorf("got %d rows after %d, want from 100_000 to %v", n, p.seen, mostRows)
	}
}

// Without an index a chunk takes as long as the table, however small it is: it is not made smaller.
func TestPaceBlind(t *testing.T) {
	for _, known := range []int64{0, 5_000_000} {
		p := paceOf(job{rows: known, width: 1 << 20}, 1, true)
		chunks := 0
		for left := int64(5_000_000); left > 0; chunks++ {
			n := p.next()
			left -= n
			p.read(n)
			p.note(n, time.Hour, time.Millisecond)
		}
		if chunks > 40 || known > 0 && chunks != blindParts {
			t.Errorf("%d chunks", chunks)
		}
	}
}

// A place is remembered when all are through with it, in any order, and not after what differs.
func TestMarks(t *testing.T) {
	m := newMarks(3, &Table{Rows: 5})
	m.leave(2, true)
	s := func(n int64) span {
		return span{Range: chunk.Range{Upper: chunk.Bound{fmt.Sprint(n)}}, rows: 10, index: n - 1}
	}
	if _, _, ok := m.pass(0, s(1), true); ok {
		t.Error("the other is not there yet")
	}
	if b, n, ok := m.pass(1, s(1), true); !ok || b[0] != "1" || n.rows != 15 {
		t.Errorf("got %v %v %v; want ok true, b[0] \"1\", rows 15", b, n, ok)
	}
	for _, n := range []int64{4, 3, 2} { // by several lanes
		m.pass(0, s(n), true)
	}
	for _, n := range []int64{3, 4} {
		if _, _, ok := m.pass(1, s(n), true); ok {
			t.Errorf("chunk 2 is not done, and %d moves the place", n)
		}
	}
	if b, n, ok := m.pass(1, s(2), true); !ok || b[0] != "4" || n != (counts{45, 0, 4}) {
		t.Errorf("got %v %v %v; want ok true, b[0] \"4\", n counts{45, 0, 4}", b, n, ok)
	}
	m.pass(0, s(5), true)
	if _, _, ok := m.pass(1, s(5), false); ok {
		t.Error("what differs is passed")
	}
	m = newMarks(2, &Table{})
	m.pass(0, s(1), true)
	m.leave(1, false) // it failed: the chunk is missing, and a later run must read it there
	if _, _, ok := m.pass(0, s(2), true); ok {
		t.Error("a chunk that a server did not read is passed")
	}
}

// Half a line, as a killed process leaves it, is left out; damage in the middle is reported.
func TestStateFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	if _, err := openState("/dev/null", false, "a b"); err == nil { // what cannot be cut to size remembers nothing
		t.Error("a file that is none is taken for the state")
	}
	s, err := openState(path, false, "a b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openState(path, true, "a b"); err == nil {
		t.Error("two use one file")
	}
	for _, name := range []string{"x", "y"} {
		if err := s.table(Table{Schema: "s", Name: name, On: []On{{Verdict: Equal}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.table(Table{Schema: "s", Name: "z", On: []On{{Verdict: Changing}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.close(false); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b[:len(b)-5], 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err = openState(path, true, "a b"); err != nil {
		t.Fatal(err)
	}
	if !s.has("s", "x") || s.has("s", "y") || s.has("s", "z") {
		t.Errorf("got %v; want s.has(\"s\", \"x\") true, s.has(\"s\", \"y\") false, s.has(\"s\", \"z\") false", s.known)
	}
	if err := s.table(Table{Schema: "s", Name: "y", On: []On{{Verdict: Equal}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.close(false); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(path); err != nil || !bytes.Equal(again, b) {
		t.Errorf("%q is not %q: %v", again, b, err)
	}
	if err := os.WriteFile(path, append([]byte("{x\n"), b...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openState(path, true, "a b"); err == nil {
		t.Error("damage passes")
	}
}

func TestChosen(t *testing.T) {
	names, err := pattern.NewChoice(nil, []string{"a.b.c"})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{choice: names}
	if !o.chosenSchema("a") || !o.chosenSchema("a.b") || o.chosenSchema("b") || !o.chosen("a.b", "c") || o.chosen("a", "c") {
		t.Error("a schema's name with a dot")
	}
}

// TestResumeOfAnotherOrder: where a key is ordered in another way than when a run was interrupted, its table is compared from its beginning.
func TestResumeOfAnotherOrder(t *testing.T) {
	of := func(collation string) *plan {
		t.Helper()
		table, err := define.ParseTable("d", "CREATE TABLE `t` (\n  `k` varchar(20) NOT NULL,\n  PRIMARY KEY (`k`)\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE="+collation)
		if err != nil {
			t.Fatal(err)
		}
		key, ok := chunk.KeyOf(table)
		if !ok || key.Cuts != 1 {
			t.Fatalf("got %+v; want ok true, Cuts 1", key)
		}
		p := &plan{here: table, key: key}
		p.schema, p.name = "d", "t"
		return p
	}
	path := filepath.Join(t.TempDir(), "state")
	s, err := openState(path, false, "a b")
	if err != nil {
		t.Fatal(err)
	}
	bound := chunk.Bound{"_utf8mb4 0x61"}
	if err := errors.Join(s.at(of("utf8mb4_bin"), bound, counts{rows: 7, bytes: 70, chunks: 1}), s.close(false)); err != nil {
		t.Fatal(err)
	}
	if s, err = openState(path, true, "a b"); err != nil {
		t.Fatal(err)
	}
	defer s.close(true)
	var again, on Table
	if from := s.resume(of("utf8mb4_general_ci"), &again); from != nil || again.Rows != 0 {
		t.Errorf("under another order it goes on behind %v with %d rows; want from nil, again.Rows 0", from, again.Rows)
	}
	if from := s.resume(of("utf8mb4_bin"), &on); !slices.Equal(from, bound) || on.Rows != 7 {
		t.Errorf("under the same order it goes on behind %v with %d rows; want from %v, on.Rows 7", from, on.Rows, bound)
	}
}

// TestExactKeys: rows are named one by one by exactly those keys that the reason for a refusal names.
func TestExactKeys(t *testing.T) {
	for key, exact := range map[string]bool{
		"PRIMARY KEY (`i`)": true, "PRIMARY KEY (`d`)": true, "PRIMARY KEY (`dt`)": true, "PRIMARY KEY (`b`)": true, "PRIMARY KEY (`v`,`i`)": true, "UNIQUE KEY `u` (`i`)": true,
		"PRIMARY KEY (`f`)": false, "PRIMARY KEY (`g`)": false, "PRIMARY KEY (`e`)": false, "PRIMARY KEY (`s`)": false, "PRIMARY KEY (`i`,`e`)": false, "PRIMARY KEY (`v`(3))": false,
		"PRIMARY KEY (`i` DESC)": false, "UNIQUE KEY `u` (`n`)": false, "KEY `u` (`i`)": false,
	} {
		table, err := define.ParseTable("d", "CREATE TABLE `t` (\n  `i` int(11) NOT NULL,\n  `n` int(11) DEFAULT NULL,\n  `d` decimal(9,2) NOT NULL,\n  `dt` datetime(6) NOT NULL,\n  `b` varbinary(9) NOT NULL,\n  `v` varchar(9) NOT NULL,\n"+
			"  `f` float NOT NULL,\n  `g` double NOT NULL,\n  `e` enum('b','a') NOT NULL,\n  `s` set('b','a') NOT NULL,\n  "+key+"\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4")
		if err != nil {
			t.Fatal(err)
		}
		if k, ok := chunk.KeyOf(table); (ok && k.Whole()) != exact {
			t.Errorf("%s: exact: %v; %q", key, !exact, noExactKey)
		}
	}
}
