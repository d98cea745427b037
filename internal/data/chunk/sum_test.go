package chunk_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/chunk"
)

func TestSum(t *testing.T) {
	var s, u chunk.Sum
	s.Row([]byte("a"))
	if s.String() != "a96faf705af16834e6c632b61e964e1f" { // xxh128sum of "a"
		t.Errorf("the sum of one row is %s, want \"a96faf705af16834e6c632b61e964e1f\"", s)
	}
	s.Add(chunk.Sum{Hi: 1<<64 - 1, Lo: 1<<64 - 1}) // takes 1 away
	if s.String() != "a96faf705af16834e6c632b61e964e1e" {
		t.Errorf("no carry: got %s, want \"a96faf705af16834e6c632b61e964e1e\"", s)
	}
	if err := u.UnmarshalText([]byte(s.String())); err != nil || u != s {
		t.Errorf("got %v, %v; want %v", u, err, s)
	}
	for _, bad := range []string{"", "xyz", "a96faf705af16834e6c632b61e964e1"} {
		if u.UnmarshalText([]byte(bad)) == nil {
			t.Errorf("%q is a sum, want u.UnmarshalText([]byte(bad)) not nil", bad)
		}
	}
}

func TestBoundsAreChecked(t *testing.T) {
	k := chunk.Key{Cuts: 1}
	for _, bad := range []string{"1 OR 1=1", "'x' -- '", "_utf8mb4 0x'", "SLEEP(1)", "''; DROP", "0x61)", "1e5", "CAST(0x01 AS CHAR)"} {
		if k.Check(chunk.Bound{bad}) == nil {
			t.Errorf("%q passes for a bound, want k.Check(chunk.Bound{bad}) not nil", bad)
		}
	}
	if k.Check(chunk.Bound{"1", "2"}) == nil || k.Check(nil) != nil || k.Check(chunk.Bound{"-1.5"}) != nil {
		t.Error("the number of values is not checked, or too much is")
	}
}

// TestRowsInPieces: rows are added up the same whether they come whole or in pieces.
func TestRowsInPieces(t *testing.T) {
	rows := []string{"", "a", "a", strings.Repeat("long", 1000), "b"}
	var want chunk.Sum
	size := 0
	for _, r := range rows {
		want.Row([]byte(r))
		size += len(r)
	}
	for _, at := range []int{1, 3, 1000, 1 << 20} {
		var got chunk.Rows
		for _, r := range rows {
			b := []byte(r)
			for len(b) > at {
				if err := got.Piece(b[:at], false); err != nil {
					t.Fatal(err)
				}
				b = b[at:]
			}
			if err := got.Piece(b, true); err != nil {
				t.Fatal(err)
			}
		}
		if got.Sum != want || got.Count != 5 || got.Bytes != int64(size) {
			t.Errorf("in pieces of %d: got %v, %d rows, %d bytes; want %v, 5, %d", at, got.Sum, got.Count, got.Bytes, want, size)
		}
	}
}

// TestForms: which texts are values of a bound.
func TestForms(t *testing.T) {
	k := chunk.Key{Cuts: 1}
	for _, good := range []string{"0", "-12", "1.50", "'2026-11-21 12:34:56.5'", "''", "'fe80::1'", "_utf8mb4 0x61", "_binary ''", "CAST(0x01ff AS UNSIGNED)"} {
		if err := k.Check(chunk.Bound{good}); err != nil {
			t.Errorf("%s: got %v, want none", good, err)
		}
	}
	for _, bad := range []string{"", "1.", ".5", "--1", "'g'", "'a''b'", "_utf8mb4 0x", "0x61", "NULL", "1 ", " 1", "1\n"} {
		if err := k.Check(chunk.Bound{bad}); err == nil {
			t.Errorf("%s: got no error", fmt.Sprintf("%q", bad))
		}
	}
}
