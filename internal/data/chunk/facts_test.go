package chunk

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/mysql/define"
)

func keyed(columns ...string) Key {
	k := Key{Name: "PRIMARY", Cuts: len(columns), Desc: make([]bool, len(columns))}
	for _, c := range columns {
		name, kind, _ := strings.Cut(c, " ")
		k.Order = append(k.Order, define.TableColumn{Name: name, Type: kind})
	}
	return k
}

// TestWhere: the conditions, word by word.
func TestWhere(t *testing.T) {
	one, two, three := keyed("a int"), keyed("a int", "b date"), keyed("a int", "b int", "c int")
	for _, c := range []struct {
		k            Key
		lower, upper Bound
		want         string
	}{
		{one, nil, nil, ""}, {one, Bound{"5"}, nil, "`a` > 5"}, {one, nil, Bound{"5"}, "`a` <= 5"}, {one, Bound{"5"}, Bound{"9"}, "`a` BETWEEN 6 AND 9"}, {one, Bound{"-1"}, Bound{"0"}, "`a` BETWEEN 0 AND 0"},
		{keyed("t varchar"), Bound{"_latin1 0x61"}, Bound{"_latin1 0x62"}, "`t` > _latin1 0x61 AND `t` <= _latin1 0x62"},
		{two, Bound{"1", "'x'"}, nil, "((`a` = 1 AND `b` > 'x') OR (`a` > 1))"}, {two, nil, Bound{"1", "'x'"}, "((`a` < 1) OR (`a` = 1 AND `b` <= 'x'))"}, {two, nil, Bound{"1"}, "`a` <= 1"}, {two, Bound{"1"}, nil, "`a` > 1"},
		{two, Bound{"1", "'x'"}, Bound{"1", "'z'"}, "`a` = 1 AND `b` > 'x' AND `b` <= 'z'"}, {two, Bound{"1", "'x'"}, Bound{"1", "'x'"}, "FALSE"}, {two, Bound{"1", "'x'"}, Bound{"1"}, "`a` = 1 AND `b` > 'x'"},
		{two, Bound{"1", "'x'"}, Bound{"4", "'z'"}, "((`a` = 1 AND `b` > 'x') OR (`a` > 1 AND `a` < 4) OR (`a` = 4 AND `b` <= 'z'))"},
		{two, Bound{"1", "'x'"}, Bound{"4"}, "((`a` = 1 AND `b` > 'x') OR (`a` > 1 AND `a` <= 4))"},
		{three, Bound{"1", "2", "3"}, nil, "((`a` = 1 AND `b` = 2 AND `c` > 3) OR (`a` = 1 AND `b` > 2) OR (`a` > 1))"},
		{three, nil, Bound{"1", "2", "3"}, "((`a` < 1) OR (`a` = 1 AND `b` < 2) OR (`a` = 1 AND `b` = 2 AND `c` <= 3))"},
	} {
		if got := c.k.Where(Range{c.lower, c.upper}); got != c.want {
			t.Errorf("%v to %v: got %s, want %s", c.lower, c.upper, got, c.want)
		}
	}
	if got := three.Only(Bound{"1", "2"}); got != "`a` = 1 AND `b` = 2" {
		t.Errorf("got %s, want \"`a` = 1 AND `b` = 2\"", got)
	}
	two.Desc[1] = true
	if got := two.OrderBy(); got != "`a`, `b` DESC" {
		t.Errorf("got %s, want \"`a`, `b` DESC\"", got)
	}
}

// TestWhereMeansTheRange computes conditions for all rows of a small table: each says what its range means.
func TestWhereMeansTheRange(t *testing.T) {
	k := keyed("a int", "b int", "c int")
	rng := rand.New(rand.NewPCG(1, 2))
	bound := func() (b Bound) {
		for range rng.IntN(4) {
			b = append(b, strconv.Itoa(rng.IntN(3)))
		}
		return b
	}
	for range 500 {
		r := Range{bound(), bound()}
		if r.Lower != nil && r.Upper != nil && compareBound([]int{}, r.Lower) == 0 {
			continue
		}
		if r.Lower != nil && r.Upper != nil && behind(r.Lower, r.Upper) {
			continue // no range ends before it begins
		}
		where := k.Where(r)
		for n := range 27 {
			row := []int{n / 9, n / 3 % 3, n % 3}
			want := (r.Lower == nil || compareBound(row, r.Lower) > 0) && (r.Upper == nil || compareBound(row, r.Upper) <= 0)
			if got := holds(t, where, row); got != want {
				t.Fatalf("%v in %v to %v: got %v of %s, want %v", row, r.Lower, r.Upper, got, where, want)
			}
		}
	}
}

// compareBound compares a row with a bound: one that has all values of the bound is not after it.
func compareBound(row []int, b Bound) int {
	for i, v := range b {
		if i >= len(row) {
			return 0
		}
		if n, _ := strconv.Atoi(v); row[i] != n {
			return row[i] - n
		}
	}
	return 0
}

// behind reports whether a bound comes after another one, or equals it.
func behind(a, b Bound) bool {
	for i := range a {
		if i >= len(b) {
			return false
		}
		if a[i] != b[i] {
			return a[i] > b[i]
		}
	}
	return true
}

// holds computes a condition for a row.
func holds(t *testing.T, where string, row []int) bool {
	t.Helper()
	if where == "" || where == "FALSE" {
		return where == ""
	}
	if i := strings.Index(where, " BETWEEN "); i >= 0 {
		low, high, _ := strings.Cut(where[i+9:], " AND ")
		where = where[:i] + " >= " + low + " AND " + where[:i] + " <= " + high
	}
	e, err := parser.ParseExpr(strings.NewReplacer("`", "", " AND ", " && ", " OR ", " || ", " = ", " == ").Replace(where))
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	var value func(ast.Expr) int
	value = func(e ast.Expr) int {
		switch e := e.(type) {
		case *ast.ParenExpr:
			return value(e.X)
		case *ast.Ident:
			return row[e.Name[0]-'a']
		case *ast.BasicLit:
			n, _ := strconv.Atoi(e.Value)
			return n
		case *ast.BinaryExpr:
			x, y := value(e.X), value(e.Y)
			is := map[token.Token]bool{token.LAND: x != 0 && y != 0, token.LOR: x != 0 || y != 0, token.EQL: x == y, token.LSS: x < y, token.LEQ: x <= y, token.GTR: x > y, token.GEQ: x >= y}[e.Op]
			return map[bool]int{true: 1}[is]
		}
		t.Fatalf("%s holds a %T", where, e)
		return 0
	}
	return value(e) != 0
}

// TestEven cuts what is between two numbers at round places.
func TestEven(t *testing.T) {
	for _, c := range []struct {
		low, high int64
		parts     int
		want      string
	}{
		{0, 100, 4, "16 32 48 64 80 96"}, {0, 64, 4, "16 32 48"}, {0, 63, 4, "8 16 24 32 40 48 56"}, {1, 100, 4, "16 32 48 64 80 96"}, {16, 80, 4, "32 48 64"}, {-10, 10, 5, "-8 -4 0 4 8"}, {0, 3, 4, ""}, {0, 4, 4, "1 2 3"}, {5, 5, 1, ""}, {7, 8, 1, ""}, {0, 1000, 1, "512"},
	} {
		var got []string
		for _, n := range even(big.NewInt(c.low), big.NewInt(c.high), c.parts) {
			got = append(got, n.String())
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("%d to %d in %d: got %s, want %s", c.low, c.high, c.parts, g, c.want)
		}
	}
}

// TestScales: values as numbers of the same order, and back.
func TestScales(t *testing.T) {
	for _, c := range []struct{ kind, value, number, text string }{
		{"int", "-7", "-7", "-7"}, {"bigint", "18446744073709551615", "18446744073709551615", "18446744073709551615"}, {"date", "1970-01-03", "2", "1970-01-03"}, {"date", "1969-12-31", "-1", "1969-12-31"},
		{"datetime", "1970-01-01 00:01:05.999", "65", "1970-01-01 00:01:05"}, {"timestamp", "1970-01-02 00:00:00", "86400", "1970-01-02 00:00:00"}, {"date", "2026-00-00", "-", ""}, {"int", "x", "-", ""},
		{"varchar", "", "none", ""}, {"binary", "ab\x01", "1", "ab\x01"}, {"varbinary", "ac", "", ""},
	} {
		of := scaleOf(c.kind)
		if c.number == "none" {
			if of != nil {
				t.Errorf("%s: got a scale, want none", c.kind)
			}
			continue
		}
		if c.kind == "binary" || c.kind == "varbinary" {
			continue
		}
		s := of(nil, nil)
		n, ok := s.number([]byte(c.value))
		if c.number == "-" {
			if ok {
				t.Errorf("%s %q: got %v, want no number", c.kind, c.value, n)
			}
			continue
		}
		if !ok || n.String() != c.number || string(s.text(n)) != c.text {
			t.Errorf("%s %q: got %v, %v, %q; want %s, %q", c.kind, c.value, n, ok, s.text(n), c.number, c.text)
		}
	}
	for _, c := range []struct {
		least, greatest, value string
		width                  int
		number                 string
	}{
		{"a", "b", "b", 1, "98"}, {"ab", "ac", "ac", 2, "24931"}, {"", "abc", "ab", 3, "6382080"}, {"xxaaaaaaaaaaaa", "xxbaaaaaaaaaaa", "", 10, "0"}, {"xx", "xx", "xx", 2, "30840"},
	} {
		s := byteScale([]byte(c.least), []byte(c.greatest))
		n, ok := s.number([]byte(c.value))
		if !ok || n.String() != c.number || len(s.text(n)) != c.width {
			t.Errorf("%q to %q: got %v for %q, in %d bytes; want %s in %d", c.least, c.greatest, n, c.value, len(s.text(n)), c.number, c.width)
		}
	}
}

// TestSizes: lengths in front of values.
func TestSizes(t *testing.T) {
	for in, want := range map[string][2]uint64{
		"\x00": {0, 1}, "\x05rest": {5, 1}, "\xfa": {250, 1}, "\xfb": {251, 1}, "\xfc\x01\x02": {0x201, 3}, "\xfc\x01": {0, 0}, "\xfd\x01\x02\x03": {0x30201, 4}, "\xfd\x01\x02": {0, 0},
		"\xfe\x01\x02\x03\x04\x05\x06\x07\x08": {0x807060504030201, 9}, "\xfe\x01\x02\x03\x04\x05\x06\x07": {0, 0}, "\xff": {0, 0},
	} {
		if size, head := sizeOf([]byte(in)); size != want[0] || uint64(head) != want[1] {
			t.Errorf("%x: got %d behind %d bytes, want %d behind %d", in, size, head, want[0], want[1])
		}
	}
}

// TestDoubles: numbers as servers write them.
func TestDoubles(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 1: "1", -1: "-1", .5: "0.5", -.25: "-0.25", 100: "100", 123456.789: "123456.789", 1e14: "100000000000000", 1e15: "1e15", -1e15: "-1e15", 123456789012345: "123456789012345", 1234567890123456: "1.234567890123456e15",
		1234567890123456.5: "1234567890123456.5", 12345678901234567: "1.2345678901234568e16", 1e-1: "0.1", 1e-14: "0.00000000000001", 1e-15: "0.000000000000001", 1.5e-15: "0.0000000000000015", 1e-16: "1e-16", 2.5e-16: "2.5e-16", 1e300: "1e300", 1.5e300: "1.5e300", 5e-324: "5e-324",
	} {
		if got := string(appendDouble([]byte("x"), x)); got != "x"+want {
			t.Errorf("%v: got %s, want x%s", x, got, want)
		}
	}
}

// TestKeys: by which index a table is cut, and by how many of its columns.
func TestKeys(t *testing.T) {
	col := func(name, kind string) define.TableColumn {
		c := define.TableColumn{Name: name, Type: kind}
		if kind == "varchar" {
			c.Charset = "utf8mb4"
		}
		return c
	}
	nullable := col("n", "int")
	nullable.Nullable = true
	all := []define.TableColumn{col("a", "int"), col("b", "int"), col("t", "varchar"), col("f", "float"), col("e", "enum"), nullable}
	key := func(name string, columns ...string) define.TableKey {
		k := define.TableKey{Name: name, Unique: true}
		for _, c := range columns {
			name, desc := strings.CutSuffix(c, " desc")
			k.Parts = append(k.Parts, define.KeyPart{Column: name, Descending: desc})
		}
		return k
	}
	change := func(k define.TableKey, f func(*define.TableKey)) define.TableKey { f(&k); return k }
	for _, c := range []struct {
		name string
		keys []define.TableKey
		want string
		cuts int
	}{
		{"none", nil, "", 0}, {"primary before others", []define.TableKey{key("u", "b"), key("PRIMARY", "a")}, "PRIMARY", 1}, {"unique", []define.TableKey{key("u", "b")}, "u", 1},
		{"the first that can", []define.TableKey{key("n", "n"), key("u", "b"), key("v", "a")}, "u", 1}, {"two columns", []define.TableKey{key("PRIMARY", "a", "b")}, "PRIMARY", 2},
		{"not unique", []define.TableKey{change(key("u", "b"), func(k *define.TableKey) { k.Unique = false })}, "", 0}, {"hidden", []define.TableKey{change(key("u", "b"), func(k *define.TableKey) { k.Hidden = true })}, "", 0},
		{"special", []define.TableKey{change(key("u", "b"), func(k *define.TableKey) { k.Special = true })}, "", 0}, {"a prefix", []define.TableKey{change(key("u", "t"), func(k *define.TableKey) { k.Parts[0].Prefix = 10 })}, "", 0},
		{"unknown column", []define.TableKey{key("u", "zz")}, "", 0}, {"down", []define.TableKey{key("PRIMARY", "a", "b desc")}, "PRIMARY", 1}, {"float", []define.TableKey{key("PRIMARY", "f")}, "PRIMARY", 0},
		{"text before what cannot be cut", []define.TableKey{key("PRIMARY", "a", "t", "e")}, "PRIMARY", 1}, {"text that is whole", []define.TableKey{key("PRIMARY", "t", "a")}, "PRIMARY", 2}, {"a primary key has no NULL", []define.TableKey{key("PRIMARY", "n")}, "PRIMARY", 1},
	} {
		k, ok := KeyOf(define.Table{Columns: all, Keys: c.keys})
		if k.Name != c.want || k.Cuts != c.cuts || ok != (c.want != "") || ok && k.Whole() != (c.cuts == len(k.Order)) {
			t.Errorf("%s: got %q, %d columns, %v; want %q, %d", c.name, k.Name, k.Cuts, ok, c.want, c.cuts)
		}
	}
}

// TestStatements: what is asked of a server.
func TestStatements(t *testing.T) {
	table := define.Table{Schema: "s", Name: "t", Columns: []define.TableColumn{{Name: "a", Type: "int"}, {Name: "b", Type: "int"}, {Name: "g", Type: "int", Generated: true}, {Name: "f", Type: "float", FullType: "float"}, {Name: "d", Type: "float", FullType: "float(7,2)"},
		{Name: "e", Type: "enum", FullType: "enum('','x')", Charset: "utf8mb4"}, {Name: "m", Type: "set", FullType: "set('','x')", Charset: "latin1"}}}
	k := keyed("a int", "b int")
	for got, want := range map[string]string{
		Select(table, k, Range{}, "p"):                                                                 "SELECT /* risso: p */ SQL_NO_CACHE `a`, `b`, `f` * 1e0, `d`, IF(`e` + 0 = 0, CAST(CONVERT(LPAD(CAST(`e` AS UNSIGNED), 21, '0') USING utf8mb4) AS BINARY), `e`), CAST(CONVERT(LPAD(CAST(`m` AS UNSIGNED), 21, '0') USING latin1) AS BINARY) FROM `s`.`t` FORCE INDEX (`PRIMARY`) ORDER BY `a`, `b`",
		Next(table, k, Range{Lower: Bound{"1"}}, 100, "p"):                                             "SELECT /* risso: p */ `a`, `b` FROM `s`.`t` FORCE INDEX (`PRIMARY`) WHERE `a` > 1 ORDER BY `a`, `b` LIMIT 1 OFFSET 99",
		NotEmpty([]Source{{table, k}, {define.Table{Schema: "s", Name: "u", Past: true}, Key{}}}, "p"): "(SELECT /* risso: p */ SQL_NO_CACHE 0 FROM `s`.`t` FORCE INDEX (`PRIMARY`) LIMIT 1) UNION ALL (SELECT /* risso: p */ 1 FROM `s`.`u` FOR SYSTEM_TIME ALL LIMIT 1)",
	} {
		if got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
	if b, err := k.Literals([][]byte{[]byte("1"), []byte("-2")}); err != nil || fmt.Sprint(b) != "[1 -2]" {
		t.Errorf("got %v, %v; want \"[1 -2]\"", b, err)
	}
	for _, bad := range [][][]byte{{[]byte("1")}, {[]byte("1"), nil}, {[]byte("1"), []byte("x")}, {[]byte("1"), []byte("2"), []byte("3")}} {
		if b, err := k.Literals(bad); !errors.Is(err, ErrBound) {
			t.Errorf("%s: got %v, %v; want an error", bad, b, err)
		}
	}
	if b, err := k.Bound(define.Table{Columns: []define.TableColumn{{Name: "b"}, {Name: "x"}, {Name: "a"}}}, []byte("\x012\x00\x017")); err != nil || fmt.Sprint(b) != "[7 2]" {
		t.Errorf("got %v, %v; want 7 and 2", b, err)
	}
	if _, err := k.Bound(define.Table{Columns: []define.TableColumn{{Name: "b"}}}, []byte("\x012\x00\x017")); err == nil {
		t.Error("three values passed for one")
	}
	if err := k.Check(Bound{"1", "2", "3"}); !errors.Is(err, ErrBound) {
		t.Errorf("got %v, want an error: there are two columns", err)
	}
}
