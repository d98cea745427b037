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
			t.Fatalf("%d lines for %d nodes", got, nodes)
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
				t.Fatalf("token %+v after %d in %q", tok, at, s)
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
			t.Fatalf("redaction adds quotes to %q: %q", s, once)
		}
		Sampled(s)
	})
}
