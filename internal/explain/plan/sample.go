package plan

import (
	"context"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/mysql"
)

// Sample is what a look at some rows of a table showed. Servers guess how many rows match on a column that has neither
// index nor histogram (a tenth for "=" on MySQL, all on MariaDB): no index should be advised on a guess.
type Sample struct {
	Rows     float64            // rows looked at
	Matched  map[string]float64 // how many of these a comparison matches, by conjunct.sample; several are joined by " AND "
	Distinct map[string]float64 // of a column, in lower case: different values in the whole table, estimated
	Bytes    map[string]float64 // of a column of variable length, in lower case: its mean length
	Problem  string             // why no rows could be looked at, in words
}

const (
	sampleSpots = 64 // places of a table where a sample is taken: each is the same part of it, its end as well
	sampleRows  = 32 // rows at each of them
)

// takeSamples looks at some rows of the tables that a plan reads by other ways than a single row. At most sampleSpots ×
// sampleRows rows of a table are read, by its primary key. What cannot be asked is noted in the sample.
func takeSamples(ctx context.Context, c *mysql.Conn, p *Plan, tables []TableFacts, sql string) {
	a := newAdviser(p, tables, sql)
	asked := map[*TableFacts]*questions{}
	var order []*TableFacts
	p.Root.Walk(func(n, _ *Node, _ int) {
		f := a.tables[n.Name()]
		if f == nil || !a.considered(n, f) && n.Access != AccessEqRef {
			return
		}
		if asked[f] == nil {
			asked[f] = &questions{seen: map[string]bool{}}
			order = append(order, f)
		}
		asked[f].add(a.wanted(n, f), f)
		asked[f].measure(a.used(n, f), f)
		if outer, column := a.joinedBy(n); outer != nil && n.Access == AccessEqRef {
			other := a.tables[outer.Name()]
			if asked[other] == nil {
				asked[other] = &questions{seen: map[string]bool{}}
				order = append(order, other)
			}
			var join wanted
			join.add(conjunct{column: column, kind: "equal"}, map[string]bool{})
			asked[other].add(join, other)
		}
	})
	for _, f := range order {
		q := asked[f]
		if len(q.comparisons)+len(q.columns)+len(q.lengths) == 0 {
			continue
		}
		s, err := q.ask(ctx, c, f)
		if err != nil {
			s = &Sample{Problem: err.Error()}
		}
		f.Sample = s
	}
}

// questions are the queries on the sample of one table.
type questions struct {
	comparisons []string
	columns     []string // whose different values are counted
	lengths     []string // columns whose mean length is asked for
	reads       []string // columns that the sample needs
	seen        map[string]bool
}

func (q *questions) add(w wanted, f *TableFacts) {
	var all []string
	for _, c := range w.all {
		if c.sample != "" && !hidden(c.sample) {
			q.compare(c.sample)
			q.seen["unserved "+c.sample] = q.seen["unserved "+c.sample] || c.kind == "other"
			all = append(all, c.sample)
			for _, x := range lex(c.sample) {
				if col := f.column(x.Text); col != nil && x.Name() {
					q.read(col.Name)
				}
			}
		} else if c.kind == "equal" && !q.seen["column "+c.column] {
			q.seen["column "+c.column] = true
			q.columns = append(q.columns, c.column)
			q.read(c.column)
		}
	}
	if len(all) > 1 {
		q.compare(strings.Join(all, " AND "))
	}
}

// measure asks for the lengths of columns that an index could hold.
func (q *questions) measure(used []string, f *TableFacts) {
	for _, name := range used {
		if c := f.column(name); c != nil && c.variable() && c.keyable() && !c.long() && !q.seen["length "+c.Name] {
			q.seen["length "+c.Name] = true
			q.lengths = append(q.lengths, c.Name)
			q.read(c.Name)
		}
	}
}

// hidden reports whether a value of a comparison is hidden.
func hidden(text string) bool {
	for _, t := range lex(text) {
		if sign(t, "?") {
			return true
		}
	}
	return false
}

func (q *questions) compare(text string) {
	if !q.seen[text] {
		q.seen[text] = true
		q.comparisons = append(q.comparisons, text)
	}
}

func (q *questions) read(column string) {
	if !q.seen["read "+column] {
		q.seen["read "+column] = true
		q.reads = append(q.reads, mysql.Quote(column))
	}
}

// ask takes the sample.
func (q *questions) ask(ctx context.Context, c *mysql.Conn, f *TableFacts) (*Sample, error) {
	rows, err := q.spots(ctx, c, f)
	if err != nil {
		return nil, err
	}
	list := []string{"COUNT(*) AS n"}
	for i, text := range q.comparisons {
		list = append(list, fmt.Sprintf("SUM(IF(%s, 1, 0)) AS c%d", text, i))
	}
	for i, column := range q.lengths {
		list = append(list, fmt.Sprintf("AVG(COALESCE(LENGTH(%s), 0)) AS l%d", mysql.Quote(column), i))
	}
	got, err := c.Maps(ctx, "SELECT /* risso: sample */ "+strings.Join(list, ", ")+" FROM ("+rows+") AS s")
	if err != nil {
		return nil, fmt.Errorf("look at some rows of %s: %w", f.Table, err)
	}
	s := &Sample{Matched: map[string]float64{}, Distinct: map[string]float64{}, Bytes: map[string]float64{}}
	if len(got) != 1 {
		return s, nil
	}
	s.Rows = parsed(got[0]["n"])
	for i, text := range q.comparisons {
		matched := parsed(got[0][fmt.Sprintf("c%d", i)])
		if key := redact(text); s.Matched[key] == 0 && !q.seen["unserved "+text] {
			s.Matched[key] = matched // a redacted plan asks by it, and cannot know what no index serves
		}
		s.Matched[text] = matched
	}
	for i, column := range q.lengths {
		s.Bytes[strings.ToLower(column)] = parsed(got[0][fmt.Sprintf("l%d", i)])
	}
	for _, column := range q.columns {
		name := mysql.Quote(column)
		got, err := c.Maps(ctx, "SELECT /* risso: sample */ COUNT(*) AS d, SUM(s.rows_of_it = 1) AS single FROM (SELECT COUNT(*) AS rows_of_it FROM ("+rows+") AS s WHERE "+name+" IS NOT NULL GROUP BY "+name+") AS s")
		if err != nil || len(got) != 1 {
			return nil, fmt.Errorf("count values of %s.%s: %w", f.Table, column, err)
		}
		s.Distinct[strings.ToLower(column)] = distinctValues(parsed(got[0]["d"]), parsed(got[0]["single"]), s.Rows, f.Rows)
	}
	return s, nil
}

func parsed(s string) float64 {
	f, _ := strconv.ParseFloat(s, 64)
	return f
}

// distinctValues estimates how many different values a column of rows rows has, of which a sample of n has d, single of
// them once: n·d / (n − single + single·n/rows) (Haas and Stokes 1998, the estimator Duj1).
func distinctValues(d, single, n, rows float64) float64 {
	if n <= 0 || d <= 0 {
		return 1
	}
	rows = math.Max(rows, n)
	return math.Min(rows, math.Max(d, n*d/(n-single+single*n/rows)))
}

// spots is a query of the rows of the sample: runs of consecutive rows at even distances of a whole-numbered primary
// key, or else at its beginning and end.
func (q *questions) spots(ctx context.Context, c *mysql.Conn, f *TableFacts) (string, error) {
	sort.Strings(q.reads)
	from := "SELECT " + strings.Join(q.reads, ", ") + " FROM " + mysql.Quote(f.Schema) + "." + mysql.Quote(f.Table)
	pk := f.primary()
	if len(pk) == 0 {
		return fmt.Sprintf("%s USE INDEX () LIMIT %d", from, sampleSpots*sampleRows), nil
	}
	up, down := make([]string, len(pk)), make([]string, len(pk))
	for i, name := range pk {
		up[i], down[i] = mysql.Quote(name), mysql.Quote(name)+" DESC"
	}
	from += " FORCE INDEX (PRIMARY)"
	tail := func(rows int) string {
		return fmt.Sprintf("(%s ORDER BY %s LIMIT %d)", from, strings.Join(down, ", "), rows)
	}
	head := func(where string, rows int) string {
		return fmt.Sprintf("(%s%s ORDER BY %s LIMIT %d)", from, where, strings.Join(up, ", "), rows)
	}
	if f.Rows <= sampleSpots*sampleRows {
		return fmt.Sprintf("%s LIMIT %d", from, sampleSpots*sampleRows), nil
	}
	lead := f.column(pk[0])
	if lead == nil || !strings.HasSuffix(lead.Type, "int") {
		return head("", sampleSpots*sampleRows/2) + " UNION ALL " + tail(sampleSpots*sampleRows/2), nil
	}
	ends, err := c.Maps(ctx, fmt.Sprintf("SELECT /* risso: sample */ MIN(%s) AS low, MAX(%s) AS high FROM %s.%s", mysql.Quote(lead.Name), mysql.Quote(lead.Name), mysql.Quote(f.Schema), mysql.Quote(f.Table)))
	if err != nil || len(ends) != 1 {
		return "", fmt.Errorf("find the ends of the primary key of %s: %w", f.Table, err)
	}
	low, high := parsed(ends[0]["low"]), parsed(ends[0]["high"])
	parts := []string{head("", sampleRows)}
	for i := 1; i < sampleSpots-1; i++ {
		at := math.Floor(low + (high-low)*float64(i)/(sampleSpots-1))
		parts = append(parts, head(fmt.Sprintf(" WHERE %s >= %s", mysql.Quote(lead.Name), strconv.FormatFloat(at, 'f', 0, 64)), sampleRows))
	}
	return strings.Join(append(parts, tail(sampleRows)), " UNION ALL "), nil
}

// share is the part of the table's rows that comparisons match together, if the sample shows it; 0 of n rows are taken
// for half a row.
func (s *Sample) share(list []string) (float64, bool) {
	if s == nil || s.Rows == 0 {
		return 0, false
	}
	matched, ok := s.Matched[strings.Join(list, " AND ")]
	if !ok {
		return 0, false
	}
	return math.Max(matched, 0.5) / s.Rows, true
}

// none reports whether no row of the sample matched all comparisons.
func (s *Sample) none(list []conjunct) bool {
	if s == nil || s.Rows == 0 {
		return false
	}
	var texts []string
	for _, c := range list {
		texts = append(texts, c.sample)
	}
	matched, ok := s.Matched[strings.Join(texts, " AND ")]
	return ok && matched == 0
}
