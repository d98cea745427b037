package plan

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// recorded returns all plans of testdata, recorded from real servers, by file name.
func recorded(t testing.TB) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, pattern := range []string{"testdata/*.json", "testdata/*.txt"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			out[filepath.Base(f)] = string(b)
		}
	}
	if len(out) < 30 {
		t.Fatalf("only %d recorded plans, want at least 30", len(out))
	}
	return out
}

func mustParse(t testing.TB, name string) *Plan {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Parse(string(b))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return p
}

// TestRecorded holds the tree and the words of every recorded plan against its golden file.
func TestRecorded(t *testing.T) {
	for name, text := range recorded(t) {
		p, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var b strings.Builder
		e := Explain(p, nil, "")
		b.WriteString(strings.Join(e.Lines(0), "\n"))
		b.WriteString("\n\n" + Shape(p))
		golden := filepath.Join("testdata", name+".golden")
		if *update {
			if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if b.String() != string(want) {
			t.Errorf("%s changed (go test -update after a look at it), want %s:\n%s", name, string(want), b.String())
		}
	}
}

// TestFormats: each recorded plan is recognised as what it is.
func TestFormats(t *testing.T) {
	for name, text := range recorded(t) {
		want := FormatMySQL1
		switch {
		case strings.Contains(name, ".v2."):
			want = FormatMySQL2
		case strings.Contains(name, ".tree"):
			want = FormatTree
		case strings.Contains(name, ".table"):
			want = FormatTable
		case strings.HasPrefix(name, "mariadb"):
			want = FormatMariaDB
		}
		p, err := Parse(text)
		if err != nil || p.Format != want {
			t.Errorf("%s: read as %v (%v), want %s", name, p, err, want)
			continue
		}
		if measured := strings.Contains(name, "analyze") || strings.Contains(name, "slowlog") || strings.Contains(text, "actual"); p.Analyzed != measured {
			t.Errorf("%s: measured %v, want %v", name, p.Analyzed, measured)
		}
	}
}

// TestNothingDropped: every table, key and unknown member of the JSON is somewhere in the tree.
func TestNothingDropped(t *testing.T) {
	for name, text := range recorded(t) {
		v, err := decode(repair(text))
		if err != nil {
			continue // no JSON
		}
		p, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		all := string(b)
		var check func(v any, path string)
		check = func(v any, path string) {
			switch v := v.(type) {
			case object:
				for _, f := range v {
					check(f.value, path+"."+f.name)
				}
			case []any:
				for _, e := range v {
					check(e, path)
				}
			case string:
				enc, _ := json.Marshal(strings.TrimSpace(v))
				last := path[strings.LastIndexByte(path, '.')+1:]
				switch last {
				case "access_type", "index_access_type", "join_algorithm", "heading", "subquery_location", "lookup_condition", "join_type", "query_cost", "read_cost", "eval_cost", "prefix_cost", "sort_cost", "filtered":
					return // shown in the field's words, or as a number
				}
				if inner := string(enc[1 : len(enc)-1]); !strings.Contains(all, inner) {
					t.Errorf("%s: %s %q is lost, want %q in it", name, path, v, inner)
				}
			}
		}
		check(v, "")
	}
}

// TestUnknownNodes: what Risso does not know is drawn by its name, with all that is below it.
func TestUnknownNodes(t *testing.T) {
	p, err := Parse(`{"query_block": {"select_id": 1, "frobnicating": {"speed": 7, "nested_loop": [{"table": {"table_name": "a", "access_type": "ALL", "shape": "round"}}, {"warp": {"table": {"table_name": "b"}}}]}, "hue": {"r": 1}}}`)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(Text(p, TextOptions{}), "\n")
	for _, want := range []string{"frobnicating", "warp", "a ALL", "b"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not drawn:\n%s", want, text)
		}
	}
	b, _ := json.Marshal(p)
	for _, want := range []string{`{"name":"speed","value":7}`, `{"name":"shape","value":"round"}`, `{"name":"hue","value":{"r":1}}`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s is lost: %s", want, b)
		}
	}
	v2, err := Parse(`{"query_plan": {"operation": "Teleport rows to q", "beam": 3, "inputs": [{"operation": "Table scan on t", "table_name": "t"}]}}`)
	if err != nil {
		t.Fatal(err)
	}
	if v2.Root.Kind != KindOther || !strings.Contains(v2.Root.Label(), "eleport rows to q") || len(v2.Root.Children) != 1 || len(v2.Root.Extra) != 1 {
		t.Errorf("an unknown operation of version 2 became %+v; want Kind KindOther, \"eleport rows to q\" in Label(), len(Children) 1, len(Extra) 1",
			v2.Root)
	}
}

// TestClients: the same plan is read however a client prints it.
func TestClients(t *testing.T) {
	text := recorded(t)["mysql-9.7-union.json"]
	want := ID(mustParse(t, "mysql-9.7-union.json"))
	escaped := strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(text)
	for name, as := range map[string]string{
		"vertical": "*************************** 1. row ***************************\nEXPLAIN: " + text + "1 row in set",
		"batch":    "EXPLAIN\n" + escaped,
		"box":      "+---+\n| EXPLAIN |\n+---+\n| " + text + " |\n+---+\n",
		"crlf":     strings.ReplaceAll(text, "\n", "\r\n"),
		"bom":      "\ufeff" + text,
		"markers":  regexp.MustCompile(`(?m)([}\]])(,?)$`).ReplaceAllString(text, `$1 /* "query_block" */$2`),
	} {
		p, err := Parse(as)
		if err != nil || ID(p) != want {
			t.Errorf("%s: got %v; want ID(p) %v", name, err, want)
		}
	}
	marked, err := Parse(`{"query_block": {"table": {"table_name": "a /* b */ c", "attached_condition": "x = '*/ \" /*'"} /* table */} /* query_block */}`)
	if err != nil || marked.Root.Children[0].Table != "a /* b */ c" || marked.Root.Children[0].Condition != `x = '*/ " /*'` {
		t.Errorf("with end markers: got %+v, %v; want Root.Children[0].Table \"a /* b */ c\", Root.Children[0].Condition \"x = '*/ \\\" /*'\"",
			marked, err)
	}
	tree := ID(mustParse(t, "mysql-9.7-union.tree.txt"))
	if box := ID(mustParse(t, "mysql-9.7-union.tree-box.txt")); box != tree {
		t.Errorf("FORMAT=TREE in a box has ID %s, without %s", box, tree)
	}
	for _, bad := range []string{"", "hello", "{", `{"a": 1}`, "[1]", "null", "-> ", strings.Repeat(`{"table":`, 5000)} {
		if p, err := Parse(bad); err == nil && bad != "-> " {
			t.Errorf("%.20q is read as %v", bad, p)
		} else if err != nil && !errors.Is(err, ErrNoPlan) {
			t.Errorf("%.20q: %v does not wrap ErrNoPlan", bad, err)
		}
	}
}

// TestRepair: MariaDB does not escape the quotes of literals.
func TestRepair(t *testing.T) {
	p := mustParse(t, "mariadb-quotes.json")
	if !p.Repaired {
		t.Error("the recorded plan is valid JSON: it proves nothing")
	}
	found := ""
	p.Root.Walk(func(n, _ *Node, _ int) { found += n.Condition })
	if !strings.Contains(found, `'a"b'`) || !strings.Contains(found, `'{"x"%'`) {
		t.Errorf("the condition reads %q; want \"'a\\\"b'\" in it, \"'{\\\"x\\\"%%'\" in it", found)
	}
}

// TestID: literals and figures do not change a plan's ID; tables, keys and access do.
func TestID(t *testing.T) {
	base := recorded(t)["mysql-9.7-union.json"]
	id := func(s string) string {
		p, err := Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return ID(p)
	}
	want := id(base)
	if len(want) != 16 {
		t.Errorf("ID %q, want length 16", want)
	}
	for _, r := range [][2]string{{"970.00", "12.34"}, {`"rows_examined_per_scan": 200`, `"rows_examined_per_scan": 999999`}, {`"prefix_cost": "70.00"`, `"prefix_cost": "1.5"`}} {
		if !strings.Contains(base, r[0]) {
			t.Fatalf("%s is not in the plan, want r[0] in it", r[0])
		}
		if got := id(strings.ReplaceAll(base, r[0], r[1])); got != want {
			t.Errorf("%s in place of %s changes the ID", r[1], r[0])
		}
	}
	for _, r := range [][2]string{{`"key": "status"`, `"key": "status2"`}, {`"access_type": "ref"`, `"access_type": "range"`}, {`"table_name": "i"`, `"table_name": "j"`}, {`"dependent": true`, `"dependent": false`}} {
		if got := id(strings.Replace(base, r[0], r[1], 1)); got == want {
			t.Errorf("%s in place of %s does not change the ID", r[1], r[0])
		}
	}
}

// TestFigures checks the arithmetic of executions, costs and times by hand on real plans.
func TestFigures(t *testing.T) {
	node := func(p *Plan, table string) *Node {
		var found *Node
		p.Root.Walk(func(n, _ *Node, _ int) {
			if n.Kind == KindTable && n.Name() == table {
				found = n
			}
		})
		if found == nil {
			t.Fatalf("no table %s in, want found not nil:\n%s", table, Shape(p))
		}
		return found
	}
	near := func(what string, got Figure, want float64) {
		t.Helper()
		if math.Abs(float64(got)-want) > 0.01*math.Abs(want) {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	// Version 1: i is read once for each of 200 rows; read_cost + eval_cost = 3.20 each time.
	i := node(mustParse(t, "mysql-9.7-union.json"), "i")
	near("executions of i", i.Executions, 200)
	near("own cost of i", i.OwnCost, 640)
	// Version 2: o has 260 loops of 0.015049942 ms and no children.
	o := node(mustParse(t, "mysql-9.7-join3.v2.json"), "o")
	near("own time of o", o.OwnTime, 260*0.015049942)
	near("expected executions of o", o.Executions, 260)
	near("own cost of o", o.OwnCost, 260*2.2905184)
	// MariaDB: orders has r_table_time_ms + r_other_time_ms.
	b := node(mustParse(t, "mariadb-buffer.analyze.json"), "orders")
	near("own time of orders", b.OwnTime, 7.764182029+1.008560109)
	// FORMAT=TREE: actual time=0.0147..0.0159 or so, times loops; cost=1121..1135 is first and last row.
	u := mustParse(t, "mysql-9.7-union.tree.txt").Root
	near("cost of the union", u.Cost, 1135)
}

// TestSVG: well-formed for any names, without scripts, and no text is lost to markup.
func TestSVG(t *testing.T) {
	nasty := "<script>alert(1)</script>&\"'\x00\x1b\xff]]>"
	enc, _ := json.Marshal(nasty)
	p, err := Parse(fmt.Sprintf(`{"query_block": {"table": {"table_name": %s, "access_type": %s, "attached_condition": %s, "key": %s, "odd": %s}}}`, enc, enc, enc, enc, enc))
	if err != nil {
		t.Fatal(err)
	}
	plans := []*Plan{p}
	for _, text := range recorded(t) {
		q, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		plans = append(plans, q)
	}
	for _, p := range plans {
		svg := SVG(Explain(p, nil, ""))
		wellFormed(t, svg)
		if strings.Contains(svg, "<script") || !strings.Contains(svg, "prefers-color-scheme") {
			t.Error("a script, or no dark colours")
		}
		for theme, fill := range map[string]string{ThemeLight: "#fff", ThemeDark: "#10151c"} {
			bare := Draw(Explain(p, nil, ""), SVGOptions{Theme: theme, Bare: true})
			wellFormed(t, bare)
			last := bare[strings.LastIndex(bare, ".rp .bg{fill:"):]
			if strings.Contains(bare, "@media") || !strings.HasPrefix(last, ".rp .bg{fill:"+fill+"}") || strings.Contains(bare, `class="t h"`) || len(bare) >= len(svg) {
				t.Errorf("%s: got %s; want no \"@media\" in it, %q at the beginning of last, no \"class=\\\"t h\\\"\" in it, len(bare) less than %v",
					theme, bare, ".rp .bg{fill:"+fill+"}", len(svg))
			}
		}
		boxes := 0
		p.Root.Walk(func(*Node, *Node, int) { boxes++ })
		if got := strings.Count(svg, `class="box"`); got != boxes {
			t.Errorf("%d boxes for %d nodes", got, boxes)
		}
	}
}

func wellFormed(t testing.TB, s string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(s))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in %s", err, s)
		}
	}
}

// TestRedactText: the number of a subquery is no literal, and what follows it is examined.
func TestRedactText(t *testing.T) {
	for in, want := range map[string]string{
		"((a > (select #5)) and (b = 'secret') and c in (1,-2.5e3,0x1F))": "((a > (select #5)) and (b = ?) and c in (?,-?,?))",
		"t1.c2 = DATE'2024-01-01' or `odd 7` like \"x\"":                  "t1.c2 = DATE? or `odd 7` like ?",
		"":          "",
		"'open":     "?",
		"/* 5 */ 6": "/* 5 */ ?",
	} {
		if got := redact(in); got != want {
			t.Errorf("%s becomes %s, want %s", in, got, want)
		}
	}
}

// TestRedact: no literal of the statement is left anywhere, and the words stay.
func TestRedact(t *testing.T) {
	for _, name := range []string{"mysql-9.7-union.json", "mysql-9.7-union.v2.json", "mysql-9.7-union.tree.txt", "mariadb-union.analyze.json", "mariadb-quotes.json"} {
		p := mustParse(t, name)
		id := ID(p)
		Redact(p)
		if ID(p) != id {
			t.Errorf("%s: redaction changes the ID, want ID(p) %v", name, id)
		}
		e := Explain(p, nil, "")
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"970", "'de'", `a\"b`, "a'b"} {
			if strings.Contains(string(b), secret) {
				t.Errorf("%s: %s is left in %s", name, secret, b)
			}
		}
		if regexp.MustCompile(`>[^<]*970[^<]*</text>`).MatchString(SVG(e)) { // a coordinate may be 970
			t.Errorf("%s: the drawing shows a literal", name)
		}
	}
}
