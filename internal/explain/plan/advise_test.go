package plan

import (
	"math"
	"strings"
	"testing"
)

// seedFacts is the table of the published example: 4,111,896 rows, here with 100 bytes each.
func seedFacts() TableFacts {
	return TableFacts{Name: "seed", Schema: "db", Table: "seed", Engine: "InnoDB", Rows: 4_111_896, DataLength: 27_000 * 16384, AvgRowLength: 107, PageSize: 16384,
		Columns: []ColumnFacts{{Name: "id", Type: "int"}, {Name: "ts", Type: "datetime"}, {Name: "col1", Type: "int"}, {Name: "col2", Type: "int"}, {Name: "rest", Type: "varchar", Octets: 200}},
		Indexes: []IndexFacts{{Name: "PRIMARY", Unique: true, BTree: true, Columns: []string{"id"}, Prefix: []int{0}}, {Name: "ts", BTree: true, Columns: []string{"ts"}, Prefix: []int{0}}}}
}

// TestSeedFigures: the range of 1,809,458 of 4,111,896 rows, by hand.
func TestSeedFigures(t *testing.T) {
	p, err := Parse(`{"query_block": {"select_id": 1, "table": {"table_name": "seed", "access_type": "ALL", "possible_keys": ["ts"], "rows_examined_per_scan": 4111896, "rows_produced_per_join": 1809458,
  "filtered": "44.0054", "used_columns": ["ts", "col1", "col2"], "attached_condition": "(` + "`db`.`seed`.`ts`" + ` between '2013-01-01' and '2013-06-01')"}}}`)
	if err != nil {
		t.Fatal(err)
	}
	list := Advise(p, []TableFacts{seedFacts()}, "")
	if len(list) != 1 {
		t.Fatalf("got %d advices, want 1", len(list))
	}
	a := list[0]
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 0.001*want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	near("rows of the range", a.Matched, 1_809_458)
	near("part", a.Part, 0.440054)
	near("pages", a.TablePages, 27_000)
	// 27000 × (1 − (1 − 1/27000)^1809458): all of them, except e^−67.
	near("pages touched", a.PagesTouched, 27_000)
	// An entry: header 5, ts 5, col1 4, col2 4, id 4 = 22; (16384 − 128) × 15/16 / 22 = 692 in a page; 5942.05 pages.
	near("index pages", a.IndexPages, 5943)
	near("index bytes", a.IndexBytes, 5943*16384)
	near("pages of the range", a.RangePages, math.Ceil(5943*0.440054))
	if want := "CREATE INDEX `ts_col1_col2` ON `db`.`seed` (`ts`, `col1`, `col2`)"; a.Statement != want {
		t.Errorf("%s, want %s", a.Statement, want)
	}
	text := strings.Join(a.Texts, "\n")
	for _, want := range []string{"4,111,896 rows", "1,809,4", "44 %", "27,000 pages", "That is why none is used", "makes ts superfluous"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not said:\n%s", want, text)
		}
	}
}

// TestTouched: Cardenas' formula at its ends and in its middle.
func TestTouched(t *testing.T) {
	for _, c := range []struct{ pages, k, want float64 }{{100, 0, 0}, {100, 1, 1}, {1, 50, 1}, {1, 0, 0}, {2, 2, 1.5}, {1000, 1000, 632.3}, {10, 1e9, 10}} {
		if got := touched(c.pages, c.k); math.Abs(got-c.want) > 0.1 {
			t.Errorf("%v look-ups touch %v of %v pages, want %v", c.k, got, c.pages, c.want)
		}
	}
}

// TestNoAdvice: where no index would help, or nothing is known, nothing is advised.
func TestNoAdvice(t *testing.T) {
	plan := func(condition, columns, access string) *Plan {
		p, err := Parse(`{"query_block": {"table": {"table_name": "seed", "access_type": "` + access + `", "key": "ts", "rows_examined_per_scan": 4111896, "filtered": "40", "used_columns": [` + columns + `], "attached_condition": "` + condition + `"}}}`)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	small, myisam := seedFacts(), seedFacts()
	small.DataLength, myisam.Engine = 16384, "MyISAM"
	for name, list := range map[string][]Advice{
		"no facts":              Advise(plan("seed.ts > 1", `"ts"`, "ALL"), nil, ""),
		"a small table":         Advise(plan("seed.ts > 1", `"ts"`, "ALL"), []TableFacts{small}, ""),
		"another engine":        Advise(plan("seed.ts > 1", `"ts"`, "ALL"), []TableFacts{myisam}, ""),
		"the primary key leads": Advise(plan("seed.id > 1", `"id", "ts"`, "ALL"), []TableFacts{seedFacts()}, ""),
		"a single row":          Advise(plan("seed.ts = 1", `"ts"`, "const"), []TableFacts{seedFacts()}, ""),
	} {
		for _, a := range list {
			if a.Statement != "" {
				t.Errorf("%s: got %s, want \"\"", name, a.Statement)
			}
		}
	}
	facts := seedFacts()
	facts.Columns[4] = ColumnFacts{Name: "rest", Type: "longtext", Octets: 1 << 32}
	list := Advise(plan("seed.ts > 1", `"ts", "rest"`, "ALL"), []TableFacts{facts}, "")
	for _, a := range list {
		if a.Statement != "" {
			t.Errorf("an index with a LONGTEXT: got %s, want \"\"", a.Statement)
		}
	}
}

func TestPredicates(t *testing.T) {
	facts := &TableFacts{Table: "seed", Columns: []ColumnFacts{{Name: "ts"}, {Name: "a"}, {Name: "b"}, {Name: "Name"}}}
	for _, c := range []struct{ condition, equal, ranges string }{
		{"((`db`.`s`.`ts` between '1' and '2') and (`db`.`s`.`a` = 3) and (`s`.`b` in (1,2)))", "a,b", "ts"},
		{"s.a = 1 or s.b = 2", "", ""},
		{"(s.a = 1 or s.a = 2) and s.b > 5", "a", "b"},
		{"(s.a = 1 or s.a > 5) and s.b > 5", "", "a,b"},
		{"(s.a = 1 or s.a = 2 or s.b = 3)", "", ""},
		{"5 < s.b", "", "b"},
		{"o.x = s.a", "a", ""},
		{"s.a = o.a", "a", ""},
		{"other.a = 5", "", ""},
		{"s.a = s.b", "", ""},
		{"lower(s.name) = 'x'", "", ""},
		{"s.name like 'abc%' and s.a is null", "a", "Name"},
		{"s.name like '%abc'", "", ""},
		{"s.a is not null", "", "a"},
		{"s.a <> 3 and not (s.b = 2)", "", "a"},
		{"s.ts >= '2024-01-01' and s.ts < '2024-02-01' and s.a <=> 1", "a", "ts,ts"},
		{"s.a = 'x and y = 1' and b = 2", "a,b", ""},
		{"trigcond(s.a = 1)", "", ""},
		{"s.a = 1 or o.b = 2", "", ""},
		{"", "", ""},
	} {
		w := predicates([]string{c.condition}, "s", facts, nil)
		if equal := append(w.equal, w.in...); strings.Join(equal, ",") != c.equal || strings.Join(w.ranges, ",") != c.ranges {
			t.Errorf("%s: equal %v, ranges %v; want %s; %s", c.condition, equal, w.ranges, c.equal, c.ranges)
		}
	}
}

func TestAliases(t *testing.T) {
	got := aliases("SELECT x.a, b c FROM db.orders AS x JOIN `t 2` y ON x.a = y.a, plain LEFT JOIN (SELECT 1 FROM inner_t) d USING (a) WHERE x.a IN (SELECT q FROM z)")
	for alias, want := range map[string]tableName{"x": {"db", "orders"}, "y": {"", "t 2"}, "plain": {"", "plain"}, "inner_t": {"", "inner_t"}, "z": {"", "z"}} {
		if got[alias] != want {
			t.Errorf("%s is %+v, want %+v", alias, got[alias], want)
		}
	}
	if len(got) != 5 {
		t.Errorf("found %+v, want length 5", got)
	}
}

func TestColumnsOf(t *testing.T) {
	facts := seedFacts()
	for _, c := range []struct{ sql, want string }{
		{"SELECT SUM(col1), MAX(s.col2) FROM seed s WHERE ts < 5", "ts,col1,col2"},
		{"SELECT COUNT(*) FROM seed s WHERE s.ts < 5", "ts"},
		{"SELECT * FROM seed s", "id,ts,col1,col2,rest"},
		{"SELECT s.* FROM seed s", "id,ts,col1,col2,rest"},
		{"SELECT o.*, s.col1 FROM other o, seed s WHERE o.ts = 1", "col1"},
		{"SELECT col1 * col2 FROM seed s", "col1,col2"},
		{"SELECT 'col1' FROM seed s", ""},
	} {
		if got := strings.Join(columnsOf(c.sql, "s", &facts), ","); got != c.want {
			t.Errorf("%s: %s, want %s", c.sql, got, c.want)
		}
	}
}

func TestSampled(t *testing.T) {
	if got := Sampled("SELECT '?' FROM t WHERE a = ? AND b IN (?, ?) -- ?"); got != "SELECT '?' FROM t WHERE a = 1 AND b IN (1, 1) -- ?" {
		t.Errorf("got %v, want \"SELECT '?' FROM t WHERE a = 1 AND b IN (1, 1) -- ?\"", got)
	}
}
