package chunk_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/data/chunk"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// doubles are numbers on whose text two programs may disagree: each power of two and ten with its neighbours, both ends of
// each form, and random ones, long and short.
func doubles(random int) []float64 {
	list := []float64{0, math.Copysign(0, -1), 1e15, 1e16, 123456789012345678, 999999999999999, 1e-14, 1e-15, 1e-16, 0.1 + 0.2, math.MaxFloat64, math.SmallestNonzeroFloat64, 16777217, 9007199254740993}
	add := func(x float64) {
		if !math.IsInf(x, 0) {
			list = append(list, x, -math.Nextafter(x, 0), math.Nextafter(x, math.MaxFloat64))
		}
	}
	for e := -1074; e < 1024; e++ {
		add(math.Ldexp(1, e))
	}
	for e := -323; e < 309; e++ {
		x, _ := strconv.ParseFloat(fmt.Sprintf("1e%d", e), 64)
		add(x)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range random {
		for _, x := range []float64{math.Float64frombits(r.Uint64()), r.NormFloat64(), float64(r.Uint64()>>r.IntN(64)) / math.Pow(10, float64(r.IntN(20))), float64(math.Float32frombits(r.Uint32()))} {
			if !math.IsNaN(x) && !math.IsInf(x, 0) {
				list = append(list, x)
			}
		}
	}
	return list
}

// testNumbers: what Read returns is what the server itself writes, to the byte.
func testNumbers(t *testing.T, to mysql.Target, server mysql.Server, s *mysql.Stream) {
	exec(t, s, "CREATE TABLE c.numbers (id INT AUTO_INCREMENT PRIMARY KEY, d DOUBLE, t VARCHAR(300), z DOUBLE ZEROFILL, f FLOAT, g DOUBLE AS (d / 3) VIRTUAL, u DOUBLE UNSIGNED NOT NULL, v FLOAT ZEROFILL, w DOUBLE(30,5), x FLOAT(7,2)) DEFAULT CHARSET utf8mb4")
	var values []string
	for i, x := range doubles(1000) {
		text := strconv.FormatFloat(x, 'e', -1, 64)
		float := x
		if math.Abs(x) > math.MaxFloat32 {
			float = 1 / x
		}
		if v := float32(float); v == 0 && math.Signbit(float64(v)) {
			float = 1 // the product in Select's statement is 0 on MariaDB
		}
		f := strconv.FormatFloat(float, 'e', -1, 64)
		small := math.Abs(math.Mod(x, 1000))
		row := fmt.Sprintf("(%s, '%s', %g, %s, ABS(%s), ABS(%s), %g, %g)", text, strings.Repeat("x", i%280), small, f, text, f, small, small)
		if i%50 == 0 {
			row = "(NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL)"
		}
		if values = append(values, row); len(values) == 1000 {
			exec(t, s, "INSERT INTO c.numbers (d, t, z, f, u, v, w, x) VALUES "+strings.Join(values, ", "))
			values = nil
		}
	}
	exec(t, s, "INSERT INTO c.numbers (d, t, z, f, u, v, w, x) VALUES "+strings.Join(values, ", "))
	var create string
	if err := s.Query(t.Context(), "SHOW CREATE TABLE c.numbers", func(row [][]byte) error { create = string(row[1]); return nil }); err != nil {
		t.Fatal(err)
	}
	table, err := define.ParseTable("c", create)
	if err != nil {
		t.Fatal(err)
	}
	key, _ := chunk.KeyOf(table)
	var want, got rows
	if err := s.Select(t.Context(), chunk.Select(table, key, chunk.Range{}, "test"), &want); err != nil {
		t.Fatal(err)
	}
	if err := chunk.Read(t.Context(), s, table, key, chunk.Range{}, "test", &got); err != nil {
		t.Fatal(err)
	}
	if len(want) < 9000 || len(got) != len(want) {
		t.Fatalf("%d rows, the server has %d; want len(want) at least 9000, len(got) %d", len(got), len(want), len(want))
	}
	wrong := 0
	for i := range want {
		if wrong < 10 && !bytes.Equal(want[i], got[i]) {
			t.Errorf("row %d is\n%q, the server writes\n%q", i, got[i], want[i])
			wrong++
		}
	}
	// The same through a buffer that many rows do not fit.
	small, err := to.ConnectStream(t.Context(), mysql.StreamOptions{Buffer: 300})
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	if err := small.ForRows(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	var p pieces
	if err := chunk.Read(t.Context(), small, table, key, chunk.Range{}, "test", &p); err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(p.rows, want, bytes.Equal) || p.torn < 1000 {
		t.Errorf("%d rows, %d of them in pieces, are not those that came whole; want slices.EqualFunc(p.rows, want, bytes.Equal) true, p.torn at least 1000",
			len(p.rows), p.torn)
	}
}

// pieces puts rows together.
type pieces struct {
	rows [][]byte
	row  []byte
	torn int
	many bool
}

func (p *pieces) Piece(b []byte, last bool) error {
	p.row = append(p.row, b...)
	if !last {
		p.many = true
		return nil
	}
	if p.many {
		p.torn++
	}
	p.rows, p.row, p.many = append(p.rows, p.row), nil, false
	return nil
}

// testMinusZero: a FLOAT keeps its sign.
func testMinusZero(t *testing.T, s *mysql.Stream) {
	exec(t, s, "CREATE TABLE c.zero (f FLOAT)", "INSERT INTO c.zero VALUES (-1e-323), (0)")
	table := define.Table{Schema: "c", Name: "zero", Columns: []define.TableColumn{{Name: "f", Type: "float", FullType: "float"}}}
	var got rows
	if err := chunk.Read(t.Context(), s, table, chunk.Key{}, chunk.Range{}, "test", &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || string(got[0]) != "\x02-0" || string(got[1]) != "\x010" {
		t.Errorf("got %q; want len(got) 2, string(got[0]) \"\\x02-0\", string(got[1]) \"\\x010\"", got)
	}
}
