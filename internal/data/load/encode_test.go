package load

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql/wire"
)

// rawOf writes rows as a chunk has them; nil is NULL.
func rawOf(rows [][][]byte) []byte {
	var b []byte
	for _, row := range rows {
		for _, v := range row {
			switch n := len(v); {
			case v == nil:
				b = append(b, 0xfb)
				continue
			case n < 251:
				b = append(b, byte(n))
			case n < 1<<16:
				b = append(b, 0xfc, byte(n), byte(n>>8))
			default:
				b = append(b, 0xfd, byte(n), byte(n>>8), byte(n>>16))
			}
			b = append(b, v...)
		}
	}
	return b
}

// textOf reads the text as LOAD DATA does, by its manual.
func textOf(t *testing.T, text []byte, columns int) (rows [][][]byte) {
	t.Helper()
	row, value, null := [][]byte{}, []byte{}, false
	end := func() {
		if null {
			value = nil
		}
		row, value, null = append(row, value), []byte{}, false
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\t':
			end()
		case '\n':
			end()
			if len(row) != columns {
				t.Fatalf("%d values in a row of %d", len(row), columns)
			}
			rows, row = append(rows, row), [][]byte{}
		case '\\':
			if i++; text[i] == 'N' {
				null = true
			} else {
				value = append(value, text[i])
			}
		default:
			value = append(value, c)
		}
	}
	return rows
}

// TestFeed: for any sizes of reads, batches and rows, LOAD DATA reads what the rows were.
func TestFeed(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const columns = 3
	var rows [][][]byte
	for range 400 {
		var row [][]byte
		for range columns {
			v := make([]byte, []int{0, 1, 5, 250, 251, 0, 1, 5, 250, 251, 0, 1, 5, 250, 251, 70_000}[random.IntN(16)])
			for i := range v {
				v[i] = "\t\n\\N\x00a\r\xfb\xff'"[random.IntN(10)]
			}
			if random.IntN(5) == 0 {
				v = nil
			}
			row = append(row, v)
		}
		rows = append(rows, row)
	}
	raw := rawOf(rows)
	for name, f := range map[string]*feed{"memory": feedBytes(raw, columns), "reader": feedReader(bytes.NewReader(raw), columns),
		"bytes one by one": feedReader(iotest.OneByteReader(bytes.NewReader(raw)), columns), "end with the last bytes": feedReader(iotest.DataErrReader(bytes.NewReader(raw)), columns)} {
		skip := random.IntN(20)
		if err := f.skip(int64(skip)); err != nil {
			t.Fatal(err)
		}
		var text []byte
		batches, count := 0, int64(0)
		for {
			more, err := f.next(100_000)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if !more {
				break
			}
			b := make([]byte, 0, 1<<20)
			for {
				p := make([]byte, 1+random.IntN(300)) // also of one byte
				n, err := f.Read(p)
				b = append(b, p[:n]...)
				if err == io.EOF {
					break
				}
				if err != nil || n == 0 {
					t.Fatalf("%s: got %d bytes, %v; want not 0", name, n, err)
				}
			}
			text = append(text, b...)
			count += f.rows
			batches++
		}
		got := textOf(t, text, columns)
		if batches < 2 || count != int64(len(rows)-skip) || !slices.EqualFunc(got, rows[skip:], func(a, b [][]byte) bool {
			return slices.EqualFunc(a, b, func(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) })
		}) {
			t.Errorf("%s: %d batches, %d rows, %d in the text; they are others", name, batches, count, len(got))
		}
	}
}

// TestTornRow: rows that are cut off are damage, wherever the cut is.
func TestTornRow(t *testing.T) {
	raw := rawOf([][][]byte{{[]byte("abc"), nil}, {[]byte(strings.Repeat("x", 300)), []byte("y")}})
	for cut := 1; cut < len(raw); cut++ {
		whole := cut == 5
		f := feedBytes(raw[:cut], 2)
		_, err := f.next(1 << 20)
		if err == nil {
			_, err = io.Copy(io.Discard, f)
		}
		if whole != (err == nil) || !whole && !errors.Is(err, repo.ErrDamaged) {
			t.Errorf("cut at %d: %v", cut, err)
		}
		b := binds{f: feedBytes(raw[:cut], 2), size: 1 << 20, most: 1 << 20}
		if _, err = b.f.next(1 << 20); err == nil {
			_, err = b.next()
		}
		if whole != (err == nil) || !whole && !errors.Is(err, repo.ErrDamaged) {
			t.Errorf("bound, cut at %d: %v", cut, err)
		}
	}
}

// TestBinds: each row goes into one execution as it was, of a size that the server takes; a row that is larger is refused.
func TestBinds(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var rows [][][]byte
	for range 300 {
		row := [][]byte{nil, {}, make([]byte, random.IntN(400))}
		random.Shuffle(len(row), func(i, j int) { row[i], row[j] = row[j], row[i] })
		rows = append(rows, row)
	}
	raw := rawOf(rows)
	const most = 420
	b := binds{f: feedReader(iotest.OneByteReader(bytes.NewReader(raw)), 3), size: 400, most: most}
	var back []byte
	count := int64(0)
	for {
		more, err := b.f.next(5000)
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		for {
			got, err := b.next()
			if err != nil {
				t.Fatal(err)
			}
			if len(got) == 0 {
				break
			}
			if len(got) > most {
				t.Fatalf("an execution of %d bytes, want at most %d", len(got), most)
			}
			for len(got) > 0 { // without the bytes in front of values it is as it was
				if got[0] == wire.BulkNull {
					back, got = append(back, 0xfb), got[1:]
					continue
				}
				n, _, err := lengthSize(got[1])
				if err != nil || got[0] != wire.BulkValue {
					t.Fatalf("got %v, %v; want wire.BulkValue", got[0], err)
				}
				end := 1 + n + int(lengthOf(got[1:1+n]))
				back, got = append(back, got[1:end]...), got[end:]
			}
		}
		count += b.f.rows
	}
	if !bytes.Equal(back, raw) || count != int64(len(rows)) {
		t.Errorf("%d rows and %d bytes came of %d and %d; want back %v, count %d", count, len(back), len(rows), len(raw), raw, int64(len(rows)))
	}
	b = binds{f: feedBytes(rawOf([][][]byte{{make([]byte, most)}}), 1), size: 400, most: most}
	if _, err := b.f.next(5000); err != nil {
		t.Fatal(err)
	}
	if _, err := b.next(); !errors.Is(err, errTooLarge) {
		t.Errorf("a row that is too large: %v, want errTooLarge", err)
	}
}

// TestDefinition: which keys may wait, and that nothing is lost.
func TestDefinition(t *testing.T) {
	const create = "CREATE TABLE `t,(` (\n  `a``,b` int NOT NULL COMMENT 'KEY (x), \\' it''s',\n  `n` bigint NOT NULL AUTO_INCREMENT,\n  `e` enum('a)','b'),\n  `v` varchar(9) GENERATED ALWAYS AS (concat(`e`,_utf8mb4')')) VIRTUAL,\n" +
		"  PRIMARY KEY (`n`),\n  UNIQUE KEY `u` (`a``,b`),\n  KEY `k` (`e`,`n`),\n  KEY `x` ((upper(`e`))),\n  FULLTEXT KEY `f` (`v`),\n  CONSTRAINT `fk (` FOREIGN KEY (`n`) REFERENCES `o``ther`.`p` (`x`) ON DELETE CASCADE,\n  CONSTRAINT `c` CHECK (`n` > 0)\n) ENGINE=InnoDB COMMENT=')'"
	d, err := parseTable(create)
	if err != nil {
		t.Fatal(err)
	}
	if d.statement("`t,(`") != create {
		t.Errorf("put together again it is %s, want %s", d.statement("`t,(`"), create)
	}
	if d.engine() != "InnoDB" {
		t.Errorf("got %v, want \"InnoDB\"", d.engine())
	}
	without, foreign := d.foreignKeys()
	if len(foreign) != 1 || len(without.items) != len(d.items)-1 {
		t.Fatalf("got %v; want len(foreign) 1, len(without.items) %v", foreign, len(d.items)-1)
	}
	if s, n := references(foreign[0], "own"); s != "o`ther" || n != "p" {
		t.Errorf("got %v, %v; want s \"o`ther\", n \"p\"", s, n)
	}
	rest, keys := without.secondaryKeys()
	if want := []string{"UNIQUE KEY `u` (`a``,b`)", "KEY `k` (`e`,`n`)", "KEY `x` ((upper(`e`)))"}; !slices.Equal(keys, want) || len(rest.items) != len(without.items)-3 {
		t.Errorf("%q wait, %q stay; want keys %q, len(rest.items) %v", keys, rest.items, want, len(without.items)-3)
	}
	for _, c := range []struct {
		items string
		later int
	}{
		{"`a` int,PRIMARY KEY (`a`),KEY `b` (`a`)", 1},
		{"`a` int,`n` int AUTO_INCREMENT,PRIMARY KEY (`a`),KEY `b` (`a`),KEY `n` (`n`),KEY `c` (`a`)", 1}, // n has to stay, and b before it
		{"`a` int,UNIQUE KEY `u` (`a`),KEY `b` (`a`)", 1},                                                 // rows lie in the order of u
		{"`a` int,PRIMARY KEY (`a`),KEY `b` (`a`),SPATIAL KEY `s` (`a`),KEY `c` (`a`)", 1},
	} {
		d, err := parseTable("CREATE TABLE `t` (" + c.items + ") ENGINE=InnoDB")
		if err != nil {
			t.Fatal(err)
		}
		if _, keys := d.secondaryKeys(); len(keys) != c.later {
			t.Errorf("of %s wait %q, want length %v", c.items, keys, c.later)
		}
	}
	d, err = parseTable("CREATE TABLE `t` (`a` int /* it's ), */, `b` int COLLATE x /*!80023 INVISIBLE */) -- (\n COLLATE = x /*!50100 TABLESPACE `ts` */ ENGINE = InnoDB")
	if err != nil || !slices.Equal(d.items, []string{"`a` int /* it's ), */", "`b` int COLLATE x /*!80023 INVISIBLE */"}) || d.inherit().items[1] != "`b` int /*!80023 INVISIBLE */" {
		t.Errorf("got %q, %v; want items []string{\"`a` int /* it's ), */\", \"`b` int COLLATE x /*!80023 INVISIBLE */\"}, inherit().items[1] \"`b` int /*!80023 INVISIBLE */\"",
			d, err)
	}
	if name, clause := d.tablespace(); name != "ts" || clause != " /*!50100 TABLESPACE `ts` */" {
		t.Errorf("got %q, %q; want name \"ts\", clause \" /*!50100 TABLESPACE `ts` */\"", name, clause)
	}
	for _, bad := range []string{"", "CREATE VIEW `v` AS SELECT 1", "CREATE TABLE `t` (`a` int", "CREATE TABLE `t` ("} {
		if _, err := parseTable(bad); err == nil {
			t.Errorf("%q is a table", bad)
		}
	}
}

// TestChoice: what is wanted of a backup, by patterns and odd names.
func TestChoice(t *testing.T) {
	c, err := newChoice([]string{"shop*", "`a.b`"}, []string{"x.t*_1", "`d.b`.`ta``ble`"}, []string{"shop=new", "`d.b`.`ta``ble`=x.y"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[[2]string]bool{{"shop2", "any"}: true, {"a.b", "t"}: true, {"x", "t9_1"}: true, {"x", "t_1"}: true, {"x", "t1"}: false, {"d.b", "ta`ble"}: true, {"d.b", "t"}: false, {"ashop", "t"}: false} {
		if c.table(name[0], name[1]) != want {
			t.Errorf("%q is wanted: %v", name, !want)
		}
	}
	if s, n := c.target("d.b", "ta`ble"); s != "x" || n != "y" {
		t.Errorf("got %v, %v; want s \"x\", n \"y\"", s, n)
	}
	if s, n := c.target("shop", "t"); s != "new" || n != "t" {
		t.Errorf("got %v, %v; want s \"new\", n \"t\"", s, n)
	}
	for _, bad := range [][3][]string{{nil, {"noschema"}, nil}, {nil, nil, {"a"}}, {nil, nil, {"a.b=c"}}, {nil, nil, {"a="}}, {nil, {"`a.b"}, nil}, {nil, {"."}, nil}} {
		if _, err := newChoice(bad[0], bad[1], bad[2]); err == nil {
			t.Errorf("%q passes", bad)
		}
	}
}

// TestProgramTexts: comments and quotes hide neither a call nor a part of an account, and are none.
func TestProgramTexts(t *testing.T) {
	if got := calls("CREATE FUNCTION area (g INT) RETURNS INT BEGIN -- don't\n SET @decode = 'encode(1)'; RETURN glength(g) /* decode(1) */ + `area`(1); END"); !slices.Equal(got, []string{"glength"}) {
		t.Errorf("got %q, want []string{\"glength\"}", got)
	}
	a, ok := parseAccount("CREATE USER -- it's\n `a b`@`%`\nIDENTIFIED VIA x USING 'y z' /* ' */ REQUIRE NONE")
	if !ok || a.name != "`a b`@`%`" || len(a.ways) != 1 || a.ways[0] != (way{"x", "'y z'"}) || a.tls != "" {
		t.Errorf("got %+v; want ok true, name \"`a b`@`%%`\", len(ways) 1, ways[0] way{\"x\", \"'y z'\"}, tls \"\"", a)
	}
	view := &repo.Object{Kind: repo.View, Schema: "s", Name: "v", Create: "CREATE VIEW `v` AS select '`s`.`x`' AS `y`,`s` . `f`(1) from (`t` join `o`.`u`)"}
	for name, want := range map[string]bool{"x": false, "y": false, "t": true, "f": true, "u": false} {
		if slices.Contains(namedBy(view), [2]string{"s", name}) != want {
			t.Errorf("%s: got %v, want slices.Contains(namedBy(view), [2]string{\"s\", name}) %v", name, !want, want)
		}
	}
	if got := withoutLogin("GRANT SELECT ON `REQUIRE IDENTIFIED`.* TO `u`@`%` IDENTIFIED BY PASSWORD '* WITH ' WITH GRANT OPTION"); got != "GRANT SELECT ON `REQUIRE IDENTIFIED`.* TO `u`@`%` WITH GRANT OPTION" {
		t.Errorf("got %v, want \"GRANT SELECT ON `REQUIRE IDENTIFIED`.* TO `u`@`%%` WITH GRANT OPTION\"", got)
	}
	if got := acrossFlavours("SET DEFAULT ROLE `a FOR b` FOR `u`@`%`", true, nil); got != "SET DEFAULT ROLE `a FOR b` TO `u`@`%`" {
		t.Errorf("got %v, want \"SET DEFAULT ROLE `a FOR b` TO `u`@`%%`\"", got)
	}
}
