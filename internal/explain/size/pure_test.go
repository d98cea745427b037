package size

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/mysql"
)

// TestTally: whatever the order in which files come, the largest tables are kept with all their parts, and nothing is lost in the sums.
func TestTally(t *testing.T) {
	var files []mysql.Tablespace
	total := Sum{}
	add := func(s mysql.Tablespace) {
		files = append(files, s)
		total.add(Sum{s.File, s.Allocated})
	}
	for i := range 500 {
		add(mysql.Tablespace{Schema: fmt.Sprint("s", i%7), Table: fmt.Sprint("t", i), File: int64(1000 + i), Allocated: int64(900 + i)})
	}
	for i := range 40 {
		add(mysql.Tablespace{Schema: "s1", Table: "parts", Partition: fmt.Sprint("p", i), File: 200, Allocated: int64(100 + i)})
	}
	add(mysql.Tablespace{Schema: "s2", Table: "FTS_00000000000000ab_CONFIG", File: 5000, Allocated: 5000})
	add(mysql.Tablespace{Schema: "s2", Table: "fts_00000000000000AB_0000000000000001_index_1", File: 3000, Allocated: 3000})
	for round := range 20 {
		rand.Shuffle(len(files), func(i, k int) { files[i], files[k] = files[k], files[i] })
		tally := Tally{Top: 3}
		for _, f := range files {
			tally.Add(f)
		}
		tally.Add(mysql.Tablespace{Name: "innodb_undo_001", File: 7, Allocated: 7})
		if ids := tally.FullText(); !slices.Equal(ids, []uint64{0xab}) {
			t.Fatalf("round %d: full-text indexes of %x; want ab", round, ids)
		}
		// s2.t499 is among the largest of t*: 1399 of t499 is in s2 (499%7 = 2).
		tally.Resolve(0xab, mysql.TableName{Schema: "s2", Name: "t499"})
		schemas, tables, rest, shared := tally.Result()
		var names []string
		sum := rest.Sum
		for _, x := range tables {
			names = append(names, x.Schema+"."+x.Name)
			sum.add(x.Sum)
		}
		if want := []string{"s2.t499", "s1.parts", "s1.t498"}; !slices.Equal(names, want) {
			t.Fatalf("round %d: the largest are %v; want %v", round, names, want)
		}
		if tables[1].PartitionCount != 40 || len(tables[1].Partitions) != mostPartitions || tables[1].Partitions[0].Name != "p39" || tables[1].File != 8000 {
			t.Errorf("parts: got %+v; want 40 partitions, the largest p39, 8000 bytes", tables[1])
		}
		if tables[0].File != 1499+8000 || tables[0].Indexes[0].Name != FullTextIndexes {
			t.Errorf("t499: got %+v; want its full-text indexes in it", tables[0])
		}
		bySchema := Sum{}
		count := 0
		for _, s := range schemas {
			bySchema.add(s.Sum)
			count += s.Tables
		}
		if sum != total || bySchema != total || count != 501 || rest.Tables != 498 || len(shared) != 1 {
			t.Errorf("sums: tables %+v, schemas %+v of %d tables, %d others, %d shared; want %+v of 501, 498, 1", sum, bySchema, count, rest.Tables, len(shared), total)
		}
	}
}

// TestTallyMemory: the number of tables does not matter.
func TestTallyMemory(t *testing.T) {
	tally := Tally{Top: 50}
	per := testing.AllocsPerRun(1, func() {
		for i := range 100000 {
			tally.Add(mysql.Tablespace{Schema: "s", Table: "t", File: int64(i % 1000), Allocated: 1})
		}
	})
	if per > 1000 || len(tally.largest) != 50 {
		t.Errorf("100,000 tables: %v allocations, %d kept; want few, 50", per, len(tally.largest))
	}
}

func TestSquarify(t *testing.T) {
	for range 300 {
		weights := make([]float64, 1+rand.IntN(40))
		total := 0.0
		for i := range weights {
			weights[i] = math.Pow(rand.Float64(), 3) * 1000
			if rand.IntN(8) == 0 {
				weights[i] = 0
			}
			total += weights[i]
		}
		slices.SortFunc(weights, func(a, b float64) int { return int(math.Copysign(1, b-a)) })
		in := Box{10, 20, 100 + rand.Float64()*900, 100 + rand.Float64()*500}
		boxes := Squarify(weights, in)
		for i, b := range boxes {
			if want := weights[i] / max(total, 1e-300) * in.W * in.H; math.Abs(b.W*b.H-want) > 1e-6*in.W*in.H {
				t.Fatalf("box %d has the area %v; want %v", i, b.W*b.H, want)
			}
			if b.W > 0 && (b.X < in.X-0.01 || b.Y < in.Y-0.01 || b.X+b.W > in.X+in.W+0.01 || b.Y+b.H > in.Y+in.H+0.01) {
				t.Fatalf("box %d %v is outside of %v", i, b, in)
			}
			for k := range i {
				a := boxes[k]
				if min(a.X+a.W, b.X+b.W)-max(a.X, b.X) > 0.01 && min(a.Y+a.H, b.Y+b.H)-max(a.Y, b.Y) > 0.01 {
					t.Fatalf("boxes %d %v and %d %v overlap", k, a, i, b)
				}
			}
		}
	}
	// The example of the paper: 6 6 4 3 2 2 1 in 6 by 4 begins with two boxes of 3 by 2.
	got := Squarify([]float64{6, 6, 4, 3, 2, 2, 1}, Box{0, 0, 6, 4})
	if got[0] != (Box{0, 0, 3, 2}) || got[1] != (Box{0, 2, 3, 2}) {
		t.Errorf("got %v and %v; want 3 by 2, one above the other", got[0], got[1])
	}
}

func TestTrend(t *testing.T) {
	begin := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	var points []Point
	for i := range 200 {
		bytes := 1e9 + float64(i)*1e6 // a million an hour
		if i == 50 {
			bytes = 5e9 // somebody's dump, for an hour
		}
		points = append(points, Point{begin.Add(time.Duration(i) * time.Hour), bytes})
	}
	day, ok := Trend(points)
	if !ok || math.Abs(day-24e6) > 1e3 {
		t.Errorf("got %v, %v; want 24e6 a day", day, ok)
	}
	if _, ok := Trend(points[:5]); ok {
		t.Error("five points are a trend; want none")
	}
	if got := FullAt(begin, 48e6, 24e6); !got.Equal(begin.Add(48 * time.Hour)) {
		t.Errorf("full at %v; want in two days", got)
	}
	if got := FullAt(begin, 1, -1); !got.IsZero() {
		t.Errorf("what shrinks is full at %v; want never", got)
	}
	if got := FullAt(begin, 1e18, 1); !got.IsZero() {
		t.Errorf("full at %v; want nothing said of so far away", got)
	}
}

func TestNarrower(t *testing.T) {
	whole := func(kind, full string, low, high int64) ColumnFacts {
		return ColumnFacts{Column: "c", Type: kind, FullType: full, Rows: 1000000, Copies: 1, Sampled: 1000, Min: big.NewInt(low), Max: big.NewInt(high)}
	}
	text := func(kind string, length, longest int64, average float64) ColumnFacts {
		return ColumnFacts{Column: "c", Type: kind, FullType: fmt.Sprintf("%s(%d)", kind, length), Length: length, Rows: 1000000, Copies: 1, Sampled: 1000, Longest: longest, Average: average}
	}
	copies := whole("bigint", "bigint", 0, 1<<29)
	copies.Copies = 4
	few := whole("bigint", "bigint", 0, 5)
	few.Sampled = 99
	null := ColumnFacts{Column: "c", Type: "bigint", FullType: "bigint", Sampled: 1000}
	for _, c := range []struct {
		of    ColumnFacts
		want  string // "": it is not too wide
		bytes int64
	}{
		{whole("bigint", "bigint", -5, 1<<29), "int", 4e6},
		{whole("bigint", "bigint(20)", -5, 1<<30), "", 0}, // no room to double
		{whole("bigint", "bigint unsigned", 0, 1<<30), "int unsigned", 4e6},
		{whole("bigint", "bigint", -1<<62, 0), "", 0},
		{whole("int", "int", 0, 60), "tinyint", 3e6},
		{whole("int", "int", 0, 100), "smallint", 2e6},
		{whole("int", "int", 0, 40000), "", 0}, // MEDIUMINT is not worth it
		{whole("smallint", "smallint unsigned", 0, 127), "tinyint unsigned", 1e6},
		{copies, "int", 16e6},
		{few, "", 0},
		{null, "", 0},
		{text("varchar", 255, 12, 8), "varchar(32)", 0},
		{text("varchar", 255, 64, 8), "", 0},
		{text("varchar", 20, 2, 2), "", 0},
		{text("char", 100, 10, 6), "varchar(32)", 93e6},
	} {
		got, ok := Narrower(c.of)
		if ok != (c.want != "") || ok && (got.Narrower != c.want || got.Bytes != c.bytes) {
			t.Errorf("%s: got %v %q, %d bytes; want %q, %d", c.of.FullType, ok, got.Narrower, got.Bytes, c.want, c.bytes)
		}
	}
}

// TestTreemap: names are no markup, and every box says what it is.
func TestTreemap(t *testing.T) {
	free := int64(100)
	r := &Report{Server: "MySQL <9>", Total: Sum{4000, 4000}, Schemas: []Schema{{Name: `a"<b>`, Tables: 3, Sum: Sum{3000, 3000}}}, Spaces: []Space{{Kind: KindUndo, Name: "u", Sum: Sum{1000, 1000}}},
		Tables: []Table{{Schema: `a"<b>`, Name: "t\x1b<script>", Sum: Sum{2000, 2000}, Free: &free, Indexes: []Index{{Name: "PRIMARY", Bytes: 600}, {Name: "k", Bytes: 200}}}}}
	svg := r.Tree().SVG()
	if strings.Contains(svg, "<script") || strings.Contains(svg, "<b>") || strings.Contains(svg, "\x1b") {
		t.Errorf("a name is markup:\n%s", svg)
	}
	if boxes, titles := strings.Count(svg, "<rect"), strings.Count(svg, "<title>"); boxes != titles || boxes != strings.Count(svg, `tabindex="0"`) || boxes < 7 {
		t.Errorf("%d boxes, %d titles; want as many, all to be reached by keyboard, at least 7", boxes, titles)
	}
	for _, want := range []string{"2 smaller tables", "index k of", "100 B free inside"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the map does not say %q", want)
		}
	}
}

func TestCompressesPages(t *testing.T) {
	for options, want := range map[string]bool{`COMPRESSION="zlib"`: true, `COMPRESSION="NONE"`: false, "`page_compressed`='1'": true, "`PAGE_COMPRESSED`=0": false, "partitioned": false, "": false, "row_format=COMPRESSED KEY_BLOCK_SIZE=8": false} {
		if got := (&Table{Options: options}).compressesPages(); got != want {
			t.Errorf("%s: got %v; want %v", options, got, want)
		}
	}
}
