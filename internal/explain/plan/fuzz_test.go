package plan

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzParse: no text makes a reader or a drawer panic; what is read can be drawn, is well-formed and numbered.
func FuzzParse(f *testing.F) {
	for _, text := range recorded(f) {
		if len(text) < 6000 {
			f.Add(text)
		}
	}
	f.Add("-> Filter: (a = 1)  (cost=1..2 rows=3) (actual time=1e-3..2 rows=1 loops=2)\n    -> Table scan on t  (never executed)")
	f.Add("id\tselect_type\ttable\n1\tDERIVED\t<derived1>\n1\tUNION RESULT\t<union1,1>")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		nodes := 0
		p.Root.Walk(func(n, _ *Node, _ int) {
			if nodes++; n.ID != nodes {
				t.Fatalf("node %d has number %d", nodes, n.ID)
			}
		})
		facts := []TableFacts{{Name: "orders", Schema: "shop", Table: "orders", Engine: "InnoDB", Rows: 1e4, DataLength: 1 << 22, AvgRowLength: 200, PageSize: 16384,
			Columns: []ColumnFacts{{Name: "id", Type: "int"}, {Name: "status", Type: "int"}, {Name: "note", Type: "varchar", Octets: 80}},
			Indexes: []IndexFacts{{Name: "PRIMARY", Unique: true, BTree: true, Columns: []string{"id"}, Prefix: []int{0}}}}}
		e := Explain(p, facts, text)
		if len(text) < 1<<14 {
			wellFormed(t, SVG(e))
		}
		if got := len(Text(p, TextOptions{})); got != nodes+1 {
			t.Fatalf("got %d lines for %d nodes, want %d", got, nodes, nodes+1)
		}
		_ = e.Lines(80)
		_ = Dot(p)
		if _, err := json.Marshal(e); err != nil {
			t.Fatal(err)
		}
		Redact(p)
	})
}

// FuzzCondition: conditions and statements are cut without a panic, and no token is lost.
func FuzzCondition(f *testing.F) {
	f.Add("((`shop`.`seed`.`ts` between 'a' and 'b') and (`k` in (1,2,3) or 1))", "seed")
	f.Add("select a.x, b.* from s.t as a join (select 1) b, c where a.x = ? -- end", "a")
	table := &TableFacts{Table: "t", Columns: []ColumnFacts{{Name: "x", Type: "int"}, {Name: "ts", Type: "datetime"}}}
	f.Fuzz(func(t *testing.T, s, name string) {
		at := 0
		for _, tok := range lex(s) {
			if tok.Begin < at || tok.End <= tok.Begin || tok.End > len(s) {
				t.Fatalf("token %+v after %d in %q; want Begin at least %v, End more than %v, End at most %v", tok, at, s, at, tok.Begin, len(s))
			}
			at = tok.End
		}
		predicates([]string{s}, name, table, nil)
		columnsOf(s, name, table)
		aliases(s)
		for _, b := range blocksOf(s) {
			b.orderOf(name, table, nil)
		}
		calls("", s)
		harmful(s, true)
		pretty(s)
		_, _ = check(s, true)
		if once := redact(s); strings.Count(once, "'") > strings.Count(s, "'") {
			t.Fatalf("redaction adds quotes to %q: got %q, want strings.Count(once, \"'\") at most strings.Count(s, \"'\")", s, once)
		}
		Sampled(s)
	})
}

// FuzzAdvise: whatever a statement's condition, order and the indexes of its table are, advice is made without a
// panic, names columns of the table once each, and none that the statement writes.
func FuzzAdvise(f *testing.F) {
	f.Add("(t.a = 1) and (t.b > 2)", "SELECT * FROM t WHERE a = 1 AND b > 2 ORDER BY c DESC LIMIT 3", "a b", 5.0, uint8(0))
	f.Add("t.b = 1 and t.c in (1,2) and t.a = x.a", "SELECT MAX(b) FROM t JOIN x ON t.a = x.a WHERE c IN (1, 2)", "b a", 300.0, uint8(1))
	f.Add("t.a = 1 or t.a = 2", "UPDATE t SET b = 1, t.c = 2 WHERE a = 1 OR a = 2", "a", 0.0, uint8(2))
	f.Add("t.s like 'x%' and t.a is null", "SELECT DISTINCT s, a FROM t WHERE s LIKE 'x%' LIMIT 2", "s c a", 20.0, uint8(3))
	f.Add("t.b = 1 and t.a = 2", "SELECT c FROM t WHERE b = 1 AND a = 2", "a c", 9.0, uint8(4))
	f.Fuzz(func(t *testing.T, condition, sql, key string, matched float64, kind uint8) {
		access := []string{AccessAll, AccessIndex, AccessRange, AccessRef}[kind%4]
		n := newNode(KindTable)
		n.Table, n.Access, n.Condition, n.Rows, n.Key = "t", access, condition, 50_000, "k"
		if kind&16 != 0 {
			n.JoinBuffer = "hash join"
		}
		root := newNode(KindQuery)
		root.Children = []*Node{n}
		p := &Plan{Format: FormatMariaDB, Root: root}
		total(p)
		facts := TableFacts{Name: "t", Schema: "d", Table: "t", Engine: "InnoDB", Rows: 50_000, DataLength: 1 << 24, AvgRowLength: 300, PageSize: 16384, Descending: kind&8 != 0,
			Columns: []ColumnFacts{{Name: "a", Type: "int"}, {Name: "b", Type: "int"}, {Name: "c", Type: "bigint", Nullable: true}, {Name: "s", Type: "varchar", Octets: 4000, Chars: 1000}, {Name: "x", Type: "text", Octets: 65535}}}
		if cols := strings.Fields(key); len(cols) > 0 {
			facts.Indexes = []IndexFacts{{Name: "PRIMARY", Unique: true, BTree: true, Columns: cols, Prefix: make([]int, len(cols))}, {Name: "k", BTree: true, Columns: cols[len(cols)-1:], Prefix: []int{0}, Distinct: []float64{9}}}
		}
		if kind&4 != 0 {
			s := &Sample{Rows: 2048, Matched: map[string]float64{}, Distinct: map[string]float64{"a": matched}}
			for _, c := range predicates([]string{condition}, "t", &facts, nil).all {
				s.Matched[c.sample] = matched
			}
			facts.Sample = s
		}
		written := writtenBy(sql)
		for _, a := range Advise(p, []TableFacts{facts}, sql) {
			seen := map[string]bool{}
			for _, c := range a.Columns {
				if facts.column(c) == nil || seen[c] || written[strings.ToLower(c)] || written["t."+strings.ToLower(c)] {
					t.Fatalf("%s: %v for %q", a.Statement, a.Columns, sql)
				}
				seen[c] = true
			}
			if a.Statement != "" && a.IndexBytes > indexShare*facts.DataLength {
				t.Fatalf("%s has %v bytes, the table %v", a.Statement, a.IndexBytes, facts.DataLength)
			}
		}
	})
}
