package plan

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestOrdering: which order of a table's columns a statement asks for.
func TestOrdering(t *testing.T) {
	f := &TableFacts{Table: "t", Columns: []ColumnFacts{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "ts", Type: "datetime"}}}
	for _, c := range []struct{ sql, fixed, columns, word, rest, why string }{
		{"SELECT a FROM t ORDER BY a, b DESC", "", "a b-", "ORDER BY", "", ""},
		{"SELECT a FROM t WHERE b = 1 ORDER BY b, a", "b", "a", "ORDER BY", "", ""},
		{"SELECT a x FROM t ORDER BY x", "", "a", "ORDER BY", "", ""},
		{"SELECT b, a FROM t ORDER BY 2", "", "a", "ORDER BY", "", ""},
		{"SELECT COUNT(*) n, a FROM t GROUP BY a ORDER BY n", "", "a", "GROUP BY", "sorts the groups", ""},
		{"SELECT COUNT(*), a FROM t GROUP BY a ORDER BY NULL", "", "a", "GROUP BY", "", ""},
		{"SELECT a, b FROM t GROUP BY a, b ORDER BY a DESC", "", "a- b", "GROUP BY and ORDER BY", "", ""},
		{"SELECT a, b FROM t GROUP BY a, b ORDER BY b", "", "a b", "GROUP BY", "sorted again", ""},
		{"SELECT DISTINCT a, b FROM t", "", "a b", "DISTINCT", "", ""},
		{"SELECT a FROM t ORDER BY DATE(ts)", "", "", "", "", "ORDER BY is by an expression, DATE(ts)"},
		{"SELECT a FROM t, o WHERE t.a = o.x ORDER BY o.x", "", "", "", "", "ORDER BY is by o.x, which is not a column of this table"},
		{"SELECT a FROM t UNION SELECT b FROM o ORDER BY 1", "", "", "ORDER BY", "", ""},
		{"(SELECT a FROM t ORDER BY b LIMIT 1) UNION SELECT 1", "", "b", "ORDER BY", "", ""},
		{"SELECT EXTRACT(YEAR FROM ts), GROUP_CONCAT(b ORDER BY c) FROM t WHERE a IN (SELECT x FROM o ORDER BY y)", "", "", "ORDER BY", "", ""},
		{"SELECT a, COUNT(*) FROM t GROUP BY a WITH ROLLUP ORDER BY a", "", "", "", "", "ROLLUP"},
		{"SELECT a FROM t ORDER BY b FETCH FIRST 5 ROWS ONLY", "", "b", "ORDER BY", "", ""},
		{"SELECT /*+ hint */ a FROM `db`.`t` FORCE INDEX (x) ORDER BY `t`.`a`", "", "a", "ORDER BY", "", ""},
	} {
		b := blockOf(blocksOf(c.sql), "t")
		if b == nil {
			t.Errorf("%s: no block reads t, want b not nil", c.sql)
			continue
		}
		o := b.orderOf("t", f, strings.Fields(c.fixed))
		var got []string
		for _, x := range o.columns {
			if x.descending {
				x.name += "-"
			}
			got = append(got, x.name)
		}
		if strings.Join(got, " ") != c.columns || o.word != c.word || !strings.Contains(o.rest, c.rest) || (o.rest == "") != (c.rest == "") || !strings.Contains(o.why, c.why) || (o.why == "") != (c.why == "") {
			t.Errorf("%s: %v %+v", c.sql, got, o)
		}
	}
	for sql, want := range map[string]int64{"SELECT 1 FROM t LIMIT 5": 5, "SELECT 1 FROM t LIMIT 3, 5": 8, "SELECT 1 FROM t LIMIT 5 OFFSET 3": 8, "SELECT 1 FROM t LIMIT ?": 0, "SELECT 1 FROM t LIMIT 99999999999999999999": 0,
		"SELECT 1 FROM t LIMIT 5 OFFSET ?": 0, "SELECT 1 FROM t LIMIT n": 0, "SELECT 1 FROM t LIMIT 5 ROWS EXAMINED 1000": 5, "SELECT 1 FROM t LIMIT ROWS EXAMINED 1000": 0,
		"SELECT 1 FROM t ORDER BY a FETCH FIRST 5 ROWS ONLY": 5, "SELECT 1 FROM t OFFSET 3 ROWS FETCH NEXT 5 ROWS ONLY": 8, "SELECT 1 FROM t FETCH FIRST 5 ROWS WITH TIES": 0,
		"SELECT SQL_CALC_FOUND_ROWS a FROM t LIMIT 5": 0, "SELECT a x FROM t HAVING x > 5 LIMIT 5": 0, "INSERT INTO u SELECT 1 FROM t LIMIT 5 ON DUPLICATE KEY UPDATE a = 9": 5, "DELETE FROM t LIMIT 5 RETURNING 7": 5} {
		if b := blockOf(blocksOf(sql), "t"); b == nil || b.limit != want {
			t.Errorf("%s: %+v, want %d", sql, b, want)
		}
	}
}

// TestWritten: which columns an UPDATE sets, and of which table.
func TestWritten(t *testing.T) {
	for sql, want := range map[string]string{
		"UPDATE t SET a = 1, `B` = c WHERE d = 2":                              "a b",
		"UPDATE t x JOIN u ON u.a = x.a SET x.a = u.b, s.u.`c` = 5 ORDER BY e": "u.c x.a",
		"INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 1":               "",
	} {
		if got := slices.Sorted(maps.Keys(writtenBy(sql))); strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", sql, got, want)
		}
	}
}

// TestUnionAll: which statements send the rows of their SELECTs as they come.
func TestUnionAll(t *testing.T) {
	for sql, want := range map[string]bool{
		"SELECT 1 UNION ALL SELECT 2": true, "SELECT 1 UNION SELECT 2": false, "SELECT 1 UNION ALL SELECT 2 UNION SELECT 3": false, "SELECT 1": false,
		"SELECT * FROM (SELECT 1 UNION SELECT 2) x UNION ALL SELECT 3": false, "SELECT 1 UNION ALL SELECT 2 EXCEPT SELECT 3": false,
	} {
		if got := unionAll(lex(sql)); got != want {
			t.Errorf("%s: got %v, want %v", sql, got, want)
		}
	}
}

// TestSpoken: what servers write about their own optimizer is put into words.
func TestSpoken(t *testing.T) {
	for in, want := range map[string]string{
		"a < 5 and <b": "a < 5 and <b",
		"!<in_optimizer>(customers.`id`,customers.`id` in (subquery#2))":                                                                                                                           "not (customers.id in (subquery#2))",
		"(not(<in_optimizer>(`s`.`c`.`id`,<exists>(/* select#2 */ select 1 from `s`.`o` where (<cache>(`s`.`c`.`id`) = `s`.`o`.`x`)))))":                                                           "(not(c.id in (subquery)))",
		"<in_optimizer>(`s`.`c`.`id`,`s`.`c`.`id` in ( <materialize> (/* select#2 */ select `s`.`o`.`x` from `s`.`o` ), <primary_index_lookup>(`s`.`c`.`id` in <temporary table> on <auto_key>)))": "c.id in (select o.x from s.o)",
		"<in_optimizer>(1,exists(subquery#3))": "exists(subquery#3)",
		"<expr_cache><`t`.`a`,`t`.`b`>(exists(subquery#2)) and `t`.`d` > <cache>('2024-01-01' - interval 1 day)": "(exists(subquery#2)) and t.d > ('2024-01-01' - interval 1 day)",
		"`t`.`a` > <cache>(77)":                           "t.a > 77",
		"<if>(is_not_null_compl(o), (`o`.`x` = 5), true)": "(o.x = 5)",
		"<if>(is_not_null_compl(<subquery2>), <if>(found_match(<subquery2>), false, true), true)": "no match in subquery2",
		"trigcond(trigcond(`t`.`a` = 5))":     "((t.a = 5))",
		"<not>((`t`.`a` <= <max>(select 5)))": "not ((t.a <= max (select 5)))",
		"<in_optimizer>(,)":                   ",", "<cache>(": "<cache>(", "<if>(,,)": "if (,,)", "<expr_cache><": "<expr_cache><", "<expr_cache>": "<expr_cache>",
	} {
		if got := pretty(in); got != want {
			t.Errorf("%s\n%s\nnot\n%s", in, got, want)
		}
	}
}

// TestWhyNot: comparisons that no index serves come with the reason.
func TestWhyNot(t *testing.T) {
	f := &TableFacts{Table: "t", Columns: []ColumnFacts{{Name: "a", Type: "int"}, {Name: "b", Type: "int"}, {Name: "s", Type: "varchar"}}}
	for condition, want := range map[string]string{
		"t.a = 1 or t.b = 2": "with one on each of a, b",
		"(t.a = 1 and t.s > 'x') or (t.b between 1 and 2)": "with one on each of a, b",
		"t.a = 1 or t.s like '%x'":                         "no index serves t.s like '%x'",
		"t.a = 1 xor t.b = 2":                              "XOR",
		"t.s regexp 'x'":                                   "regular expression",
		"regexp_like(t.s,'x')":                             "regular expression",
		"(not((t.s like 'x%')))":                           "does not match a pattern",
		"t.s not like 'x%'":                                "does not match a pattern",
		"trigcond(t.a = 1 and t.b = t.a)":                  "to an outer join",
		"t.a > (select avg(t.a) from t)":                   "depends on a subquery",
		"t.a = t.b":                                        "from the row itself",
		"!<in_optimizer>(t.a,t.a in (subquery#2))":         "depends on a subquery",
		"(not(<in_optimizer>(`d`.`t`.`a`,`d`.`t`.`a` in ( <materialize> (/* select#2 */ select 1 ), <primary_index_lookup>(`d`.`t`.`a` in <temporary table> on <auto_key> where ((`d`.`t`.`a` = `x`.`c`)))))))": "depends on a subquery",
		"json_contains(t.s,'5')":  "Risso knows no index",
		"t.s <> 5":                "Risso knows no index",
		"t.s not between 5 and 6": "Risso knows no index",
	} {
		w := predicates([]string{condition}, "t", f, nil)
		if len(w.all) != 1 || w.all[0].kind != "other" || !strings.Contains(w.all[0].why, want) {
			t.Errorf("%s: got %+v; want len(all) 1, all[0].kind \"other\", %q in all[0].why", condition, w, want)
		}
	}
	for _, condition := range []string{"t.a <> 5", "t.a != 5", "t.a not in (5,6)", "t.a not between 5 and 6", "t.s is not null", "t.s <> 'x'"} {
		if w := predicates([]string{condition}, "t", f, nil); len(w.ranges) != 1 || !w.all[0].wide {
			t.Errorf("%s: got %+v; want len(ranges) 1, all[0].wide true", condition, w)
		}
	}
}

// TestUnusable: which comparisons an index on their column cannot serve.
func TestUnusable(t *testing.T) {
	f := &TableFacts{Table: "s", Columns: []ColumnFacts{{Name: "ts", Type: "datetime"}, {Name: "a", Type: "int"}, {Name: "name", Type: "varchar"}, {Name: "j", Type: "json"}}}
	for condition, want := range map[string]string{
		"(cast(`db`.`s`.`ts` as date) = '2024-01-01')": "ts",
		"year(s.ts) = 2024 and s.a = 1":                "ts",
		"2024 = year(s.ts)":                            "ts",
		"s.name = 5":                                   "name",
		"s.name in (1, 2)":                             "name",
		"s.name = '5'":                                 "",
		"s.a = 5":                                      "",
		"s.name like '%x'":                             "name",
		"s.name not like '%x'":                         "",
		"s.a + 1 > 5":                                  "a",
		"convert(s.name using utf8mb4) = o.name":       "name",
		"s.j->'$.x' = 5":                               "j",
		"lower(s.name) = lower(s.j)":                   "",
		"(s.a, s.name) = (1, 'x')":                     "",
		"lower(s.name) = 'x' or s.a = 1":               "",
		"<in_optimizer>(s.a,<exists>(select 1 from o where x = 1)) = 1":    "",
		"(match s.name against ('x')) > 1":                                 "",
		"s.ts between cast('2024-01-01' as date) and cast('2024' as date)": "",
		"s.a = (/* select#2 */ select max(o.x) from o where o.y + 1 = 5)":  "",
		"lower(o.name) = 'x'": "",
		"o.x = upper(s.name)": "name",
		"s.ts >= '2024-01-01' - interval 1 day and s.ts < now()":             "",
		"date_format(s.ts,'%Y-%m') = '2024-01' and lcase(s.name) <> 'x = y'": "ts",
	} {
		w := predicates([]string{condition}, "s", f, nil)
		var got []string
		for _, b := range w.bad {
			got = append(got, b.column)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q (%+v)", condition, got, want, w.bad)
		}
	}
}

// TestKeys: what fits into a key, and with which prefix, by the limits of 3,072 and 767 bytes.
func TestKeys(t *testing.T) {
	table := func(page, column float64, cols ...ColumnFacts) *TableFacts {
		return &TableFacts{Schema: "d", Table: "t", PageSize: page, ColumnKey: column, Columns: cols}
	}
	varchar := func(name string, chars, bytes float64) ColumnFacts {
		return ColumnFacts{Name: name, Type: "varchar", Chars: chars, Octets: chars * bytes}
	}
	for _, c := range []struct {
		name  string
		f     *TableFacts
		equal string
		want  string
	}{
		{"768 characters of 4 bytes fill a key", table(16384, 0, varchar("a", 768, 4)), "a", "`a`"},
		{"769 do not", table(16384, 0, varchar("a", 769, 4)), "a", "`a`(191)"},
		{"COMPACT takes 767 bytes of a column", table(16384, smallKey, varchar("a", 255, 4)), "a", "`a`(191)"},
		{"of 3 bytes 255 characters are 765", table(16384, smallKey, varchar("a", 255, 3)), "a", "`a`"},
		{"pages of 4 KiB take 768 bytes", table(4096, 0, varchar("a", 255, 4)), "a", "`a`(191)"},
		{"the long one comes last", table(16384, 0, varchar("a", 1000, 4), varchar("b", 10, 4)), "a b", "`b`, `a`(191)"},
		{"TEXT", table(16384, 0, ColumnFacts{Name: "a", Type: "text", Chars: 65535, Octets: 65535}), "a", "`a`(64)"},
		{"TINYBLOB", table(16384, 0, ColumnFacts{Name: "a", Type: "tinyblob", Chars: 255, Octets: 255}), "a", "`a`(64)"},
		{"JSON", table(16384, 0, ColumnFacts{Name: "a", Type: "json"}), "a", ""},
		{"the rest of the key is bounded", table(16384, 0, varchar("a", 700, 4), varchar("b", 300, 4)), "a b", "`a`, `b`(68)"},
	} {
		got := statement(c.f, c.f.key(strings.Fields(c.equal), nil, nil).parts)
		if want := "(" + c.want + ")"; !strings.HasSuffix(got, want) {
			t.Errorf("%s: %s, want %s", c.name, got, want)
		}
	}
}
