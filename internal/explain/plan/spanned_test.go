package plan

import (
	"slices"
	"testing"
)

// Ranges as MySQL's tree writes them are ranges, and never asked of a sample as SQL would read them; what MariaDB serves in
// place of a column is known.
func TestSpanned(t *testing.T) {
	f := &TableFacts{Name: "t", ServesDates: true, ServesUpper: true, Columns: []ColumnFacts{{Name: "a", Type: "int"}, {Name: "d", Type: "datetime"}, {Name: "s", Type: "varchar", Collation: "utf8mb4_general_ci"}, {Name: "l", Type: "varchar", Collation: "latin1_swedish_ci"}}}
	for text, want := range map[string]struct{ equal, in, ranges, samples []string }{
		"10 <= a <= 20":                    {ranges: []string{"a", "a"}, samples: []string{"10 <= `a`", "`a` <= 20"}},
		"NULL < a < 20":                    {ranges: []string{"a"}, samples: []string{"`a` < 20"}},
		"(a = 5) OR (10 <= a < 20)":        {ranges: []string{"a"}, samples: []string{""}},
		"a between 10 and 20":              {ranges: []string{"a"}, samples: []string{"`a` BETWEEN 10 AND 20"}},
		"DATE(t.d) = '2024-01-05'":         {ranges: []string{"d"}},
		"'2024-01-05' > cast(t.d as date)": {ranges: []string{"d"}},
		"DATE(t.d) <=> '2024-01-05'":       {},
		"DATE(t.d) = CURDATE()":            {},
		"UCASE(t.s) = 'X'":                 {equal: []string{"s"}},
		"UPPER(s) IN ('X', 'Y')":           {in: []string{"s"}},
		"UPPER(l) = 'X'":                   {},
		"UPPER(s) > 'X'":                   {},
	} {
		w := predicates([]string{text}, "t", f, nil)
		var samples []string
		for _, c := range w.all {
			samples = append(samples, c.sample)
		}
		if !slices.Equal(w.equal, want.equal) || !slices.Equal(w.in, want.in) || !slices.Equal(w.ranges, want.ranges) || want.samples != nil && !slices.Equal(samples, want.samples) {
			t.Errorf("%s: equal %v, in %v, ranges %v, asked %q", text, w.equal, w.in, w.ranges, samples)
		}
	}
}
