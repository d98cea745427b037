package plan

import (
	"fmt"
	"math"
	"sort"
	"strings"
)

// Advice is the arithmetic of one table's access: what reading it costs in pages, and which covering index would
// change that. Formulas:
//
//   - A scan reads the P = data length / page size pages of the clustered index, in sequence.
//   - A range of k rows by an index that does not hold all columns is k look-ups of rows at random places. They touch
//     P × (1 − (1 − 1/P)^k) different pages (Cardenas 1975, Analysis and performance of inverted data base structures);
//     with a cold cache as many reads at least.
//   - By pages, an index that is not covering pays while k < P: below one row for each page of the table.
//   - An entry of a secondary InnoDB index has 5 bytes of header, a bit for each nullable column, a length byte or two
//     for each column of variable length, its columns and those of the primary key that it does not have already
//     (https://dev.mysql.com/doc/refman/9.4/en/innodb-row-format.html). A page has about 128 bytes of frame and, when
//     the index is built at once, is filled to 15/16 (innodb_fill_factor = 100 leaves 1/16 free).
type Advice struct {
	Node      int      `json:"node"`
	Table     string   `json:"table"`     // schema.table
	Columns   []string `json:"columns"`   // of the proposed index: equality, then range, then the rest
	Equality  int      `json:"equality"`  // how many of Columns are compared for equality
	Range     int      `json:"range"`     // 1 when the column after those is the range
	Statement string   `json:"statement"` // CREATE INDEX …
	Replaces  []string `json:"replaces,omitempty"`

	Rows         float64  `json:"rows"`          // of the table, as the server estimates
	TablePages   float64  `json:"table_pages"`   // P
	Matched      float64  `json:"matched"`       // k: rows that match
	Part         float64  `json:"part"`          // k / Rows
	Counted      bool     `json:"counted"`       // k was counted by ANALYZE, not expected
	PagesTouched float64  `json:"pages_touched"` // different pages that k random look-ups touch
	IndexBytes   float64  `json:"index_bytes"`   // size of the proposed index
	IndexPages   float64  `json:"index_pages"`
	RangePages   float64  `json:"range_pages"` // pages of it that the range reads, in sequence
	Texts        []string `json:"texts"`

	unknown bool // which columns are needed is not told
}

const (
	pageFrame    = 128       // bytes of a page that hold no record: headers, directory, trailer
	pageFill     = 15.0 / 16 // of a page, when an index is built by sorting
	recordHeader = 5         // bytes, row formats compact and dynamic
	pointerBytes = 18        // of a clustered record: transaction id 6, roll pointer 7, header 5
	maxIndexCols = 16        // of an InnoDB index
	maxKeyBytes  = 3072      // of an InnoDB index with 16 KiB pages
	worthPages   = 8         // tables below so many pages are read at once anyhow
)

// Advise works out, for each table that is not read by a covering index, what it reads and which index would spare
// it. It is a pure function: tables are the facts. Without facts for a table, or where the plan and the statement do
// not tell its columns, it says nothing about it.
func Advise(p *Plan, tables []TableFacts, sql string) []Advice {
	a := &adviser{plan: p, sql: sql, tables: map[string]*TableFacts{}, parents: map[*Node]*Node{}, named: map[string]int{}}
	p.Root.Walk(func(n, _ *Node, _ int) {
		if n.Kind == KindTable {
			a.named[n.Name()]++
		}
	})
	for i := range tables {
		a.tables[tables[i].Name] = &tables[i]
	}
	out := []Advice{}
	p.Root.Walk(func(n, parent *Node, _ int) {
		a.parents[n] = parent
		if ad, ok := a.table(n); ok {
			out = append(out, ad)
		}
	})
	gain := func(ad Advice) float64 { return ad.gain() * math.Max(1, p.Find(ad.Node).runsKnown()) }
	sort.SliceStable(out, func(i, j int) bool { return gain(out[i]) > gain(out[j]) })
	return merged(out)
}

// merged leaves each proposed index once, at the access that gains most.
func merged(list []Advice) []Advice {
	out := list[:0]
	at := map[string]int{}
	for _, ad := range list {
		if i, ok := at[ad.Statement]; ok && ad.Statement != "" {
			out[i].Texts = append(out[i].Texts, fmt.Sprintf("It serves #%d, too.", ad.Node))
			continue
		}
		at[ad.Statement] = len(out)
		out = append(out, ad)
	}
	return out
}

// gain is how many pages the index spares.
func (a Advice) gain() float64 {
	return math.Min(a.TablePages, math.Max(a.PagesTouched, 1)) - a.RangePages
}

type adviser struct {
	plan    *Plan
	sql     string
	tables  map[string]*TableFacts
	parents map[*Node]*Node
	named   map[string]int // how many accesses have a name: columns of the statement's text cannot tell them apart
}

// table advises on one access, or reports false where nothing is to be said.
func (a *adviser) table(n *Node) (Advice, bool) {
	f := a.tables[n.Name()]
	if n.Kind != KindTable || n.Inner() || n.Covering || f == nil || !strings.EqualFold(f.Engine, "InnoDB") || f.Rows < 1 {
		return Advice{}, false
	}
	switch n.Access {
	case AccessAll, AccessIndex, AccessRange, AccessRef, AccessMerge, "ref_or_null":
	default:
		return Advice{}, false
	}
	switch n.Role {
	case "insert", "replace", "update", "delete", "part of the index merge":
		return Advice{}, false
	}
	pages := math.Max(1, f.DataLength/f.PageSize)
	if pages < worthPages {
		return Advice{}, false
	}
	ad := Advice{Node: n.ID, Table: f.Schema + "." + f.Table, Rows: f.Rows, TablePages: pages}
	a.matched(n, f, &ad)
	if n.Key == "PRIMARY" {
		return Advice{}, false // the clustered index holds all columns: it covers
	}
	a.choose(n, f, &ad)
	ad.PagesTouched = touched(pages, ad.Matched)
	if len(ad.Columns) > 0 {
		ad.IndexBytes = indexBytes(f, ad.Columns)
		ad.IndexPages = math.Ceil(ad.IndexBytes / f.PageSize)
		ad.RangePages = ad.IndexPages
		if ad.Equality+ad.Range > 0 {
			ad.RangePages = math.Max(1, math.Ceil(ad.IndexPages*ad.Part))
		}
		if !a.worth(n, &ad) {
			ad.Columns, ad.IndexBytes, ad.IndexPages, ad.RangePages = nil, 0, 0, 0
		}
	}
	if len(ad.Columns) > 0 {
		ad.Statement = statement(f, ad.Columns)
		ad.Replaces = replaced(f, ad.Columns)
	} else if len(n.PossibleKeys) == 0 || n.Access != AccessAll {
		return Advice{}, false
	}
	ad.Texts = a.words(n, f, &ad)
	return ad, true
}

// matched finds how many rows of the table the statement needs in one execution.
func (a *adviser) matched(n *Node, f *TableFacts, ad *Advice) {
	part, counted := passingPart(n, a.parents[n])
	rows := n.rowsOnce()
	ad.Counted = counted
	switch n.Access {
	case AccessAll, AccessIndex:
		ad.Part = math.Min(1, part)
		ad.Matched = ad.Part * f.Rows
		if counted {
			ad.Matched = part * rows
		}
	default: // what the index gives has to be looked up, whether it passes or not
		ad.Matched = rows
		ad.Counted = n.ActualRows.Known()
		ad.Part = math.Min(1, rows/f.Rows)
	}
}

// touched is the number of different pages of P that k random look-ups touch (Cardenas 1975).
func touched(pages, k float64) float64 {
	if pages <= 1 {
		return math.Min(1, k)
	}
	return pages * (1 - math.Exp(k*math.Log1p(-1/pages)))
}

// choose proposes the columns of a covering index: those compared for equality, then one range, then the rest.
func (a *adviser) choose(n *Node, f *TableFacts, ad *Advice) {
	used := n.UsedColumns
	if used == nil && a.named[n.Name()] == 1 {
		used = columnsOf(a.sql, n.Name(), f)
	}
	if ad.unknown = len(used) == 0; ad.unknown {
		return
	}
	conds := a.conditions(n)
	eq, ranges := predicates(conds, n.Name(), f)
	var cols []string
	add := func(name string) bool {
		c := f.column(name)
		if c == nil {
			return false
		}
		for _, have := range cols {
			if have == c.Name {
				return false
			}
		}
		cols = append(cols, c.Name)
		return true
	}
	for _, c := range eq {
		if add(c) {
			ad.Equality++
		}
	}
	for _, c := range ranges {
		if add(c) {
			ad.Range = 1
			break
		}
	}
	if f.primaryLeads(cols) {
		return // the clustered index finds these rows already, and covers
	}
	key := map[string]bool{}
	for _, c := range f.primary() {
		key[strings.ToLower(c)] = true
	}
	for _, c := range used {
		if !key[strings.ToLower(c)] { // each secondary index has the primary key anyhow
			add(c)
		}
	}
	if f.indexable(cols) {
		ad.Columns = cols
	}
}

// primaryLeads says whether the first of these columns is the first of the primary key.
func (t *TableFacts) primaryLeads(cols []string) bool {
	pk := t.primary()
	return len(pk) > 0 && len(cols) > 0 && strings.EqualFold(pk[0], cols[0])
}

// indexable says whether InnoDB takes an index of these whole columns.
func (t *TableFacts) indexable(cols []string) bool {
	if len(cols) == 0 || len(cols) > maxIndexCols {
		return false
	}
	total := 0.0
	for _, name := range cols {
		c := t.column(name)
		switch {
		case c == nil, strings.Contains(c.Type, "blob"), strings.Contains(c.Type, "text"), c.Type == "json", c.Type == "geometry", c.Type == "vector":
			return false
		case c.Octets > 0:
			total += c.Octets
		default:
			total += fixedBytes(c)
		}
	}
	return total <= maxKeyBytes
}

// conditions are the texts that decide which rows of a node are wanted.
func (a *adviser) conditions(n *Node) []string {
	out := []string{n.Condition, n.IndexCondition}
	for i, ref := range n.Ref {
		if i < len(n.KeyParts) && ref != "" {
			out = append(out, quoteName(n.KeyParts[i])+" = "+refValue(ref))
		}
	}
	for c, p := n, a.parents[n]; p != nil; c, p = p, a.parents[p] {
		switch {
		case p.Kind == KindFilter && p.Children[0] == c, p.Kind == KindHashJoin:
			out = append(out, p.Condition)
		case p.Kind == KindIndexMerge, p.Kind == KindHash, p.Kind == KindNestedLoop:
		default:
			return out
		}
	}
	return out
}

// refValue is a reference as something to compare with: "const" and "func" are no columns.
func refValue(ref string) string {
	if ref == "const" || ref == "func" {
		return "1"
	}
	return ref
}

// worth says whether the proposed index reads clearly fewer pages than what the plan does.
func (a *adviser) worth(n *Node, ad *Advice) bool {
	now := ad.TablePages
	if n.Access != AccessAll {
		now = math.Max(1, ad.PagesTouched)
		if ad.Matched < 100 && n.Executions.Or(1) < 100 {
			return false // a handful of look-ups is cheap
		}
	}
	if n.Access == AccessIndex {
		now = ad.TablePages + touched(ad.TablePages, ad.Rows)
	}
	if ad.Equality+ad.Range == 0 {
		return ad.RangePages <= now/2
	}
	return ad.RangePages <= now*0.75
}

// replaced are the indexes whose columns lead the new one in the same order: they are no longer needed.
func replaced(f *TableFacts, cols []string) []string {
	var out []string
	for _, i := range f.Indexes {
		if i.Unique || !i.BTree || len(i.Columns) > len(cols) {
			continue
		}
		same := true
		for j, c := range i.Columns {
			same = same && strings.EqualFold(c, cols[j]) && i.Prefix[j] == 0
		}
		if same {
			out = append(out, i.Name)
		}
	}
	return out
}

func statement(f *TableFacts, cols []string) string {
	name := strings.Join(cols, "_")
	if len(name) > 60 {
		name = name[:50] + "_cover"
	}
	taken := map[string]bool{}
	for _, i := range f.Indexes {
		taken[strings.ToLower(i.Name)] = true
	}
	for base, i := name, 2; taken[strings.ToLower(name)]; i++ {
		name = fmt.Sprintf("%s_%d", base, i)
	}
	quoted := make([]string, len(cols))
	for i, c := range cols {
		quoted[i] = quoteName(c)
	}
	return fmt.Sprintf("CREATE INDEX %s ON %s.%s (%s)", quoteName(name), quoteName(f.Schema), quoteName(f.Table), strings.Join(quoted, ", "))
}

// indexBytes estimates the leaf pages of a secondary index of these columns.
func indexBytes(f *TableFacts, cols []string) float64 {
	entry := float64(recordHeader)
	nullable := 0
	all := append([]string(nil), cols...)
	for _, c := range f.primary() {
		have := false
		for _, k := range cols {
			have = have || strings.EqualFold(k, c)
		}
		if !have {
			all = append(all, c)
		}
	}
	if len(f.primary()) == 0 {
		entry += 6 // the hidden row id
	}
	variable := f.variableBytes()
	for _, name := range all {
		c := f.column(name)
		if c == nil {
			continue
		}
		if c.Nullable {
			nullable++
		}
		entry += c.bytes(variable)
	}
	entry += math.Ceil(float64(nullable) / 8)
	perPage := math.Max(2, math.Floor((f.PageSize-pageFrame)*pageFill/entry))
	return math.Ceil(f.Rows/perPage) * f.PageSize
}

// variableBytes is what a column of variable length has on average: what the mean row has beyond its fixed columns,
// divided among them.
func (t *TableFacts) variableBytes() float64 {
	fixed, n := float64(pointerBytes), 0
	for i := range t.Columns {
		if c := &t.Columns[i]; c.variable() {
			n++
		} else {
			fixed += fixedBytes(c)
		}
	}
	if n == 0 {
		return 0
	}
	return math.Max(1, (t.AvgRowLength*pageFill-fixed)/float64(n))
}

func (c *ColumnFacts) variable() bool {
	switch c.Type {
	case "varchar", "varbinary", "text", "tinytext", "mediumtext", "longtext", "blob", "tinyblob", "mediumblob", "longblob", "json":
		return true
	}
	return false
}

// bytes of a value on average, with its length bytes.
func (c *ColumnFacts) bytes(variable float64) float64 {
	if !c.variable() {
		return fixedBytes(c)
	}
	length := 1.0
	if c.Octets > 255 {
		length = 2
	}
	return math.Min(variable, math.Max(1, c.Octets)) + length
}

// fixedBytes of a value (https://dev.mysql.com/doc/refman/9.4/en/storage-requirements.html).
func fixedBytes(c *ColumnFacts) float64 {
	fraction := math.Ceil(float64(c.Precision) / 2) // of a time
	switch c.Type {
	case "tinyint", "year", "bit":
		return 1
	case "smallint":
		return 2
	case "mediumint", "date":
		return 3
	case "int", "float":
		return 4
	case "bigint", "double":
		return 8
	case "time":
		return 3 + fraction
	case "timestamp":
		return 4 + fraction
	case "datetime":
		return 5 + fraction
	case "decimal":
		digits := func(n int) float64 {
			rest := []float64{0, 1, 1, 2, 2, 3, 3, 4, 4}
			if n < 0 {
				n = 0
			}
			return float64(n/9*4) + rest[n%9]
		}
		return digits(c.Precision-c.Scale) + digits(c.Scale)
	case "enum", "set":
		return 1
	case "uuid", "inet6":
		return 16
	case "inet4":
		return 4
	}
	return math.Max(1, c.Octets)
}

// words says the arithmetic of one table.
func (a *adviser) words(n *Node, f *TableFacts, ad *Advice) []string {
	how := "expected"
	if ad.Counted {
		how = "counted"
	}
	var out []string
	scan := fmt.Sprintf("%s has about %s rows on %s pages of %s.", ad.Table, count(ad.Rows), count(ad.TablePages), size(f.PageSize))
	lookups := fmt.Sprintf("By an index that does not hold all its columns, %s rows (%s %% of the table, %s) are %s random look-ups, which touch about %s of the table's %s pages; a full scan reads the %s in sequence, once each.",
		count(ad.Matched), count(100*ad.Part), how, count(ad.Matched), count(ad.PagesTouched), count(ad.TablePages), count(ad.TablePages))
	switch {
	case n.Access == AccessAll && ad.Equality+ad.Range > 0:
		verdict := fmt.Sprintf("By pages, such an index pays only up to about %s rows (%s %%).", count(ad.TablePages), count(100*ad.TablePages/ad.Rows))
		if ad.Matched > ad.TablePages {
			verdict += " That is why none is taken."
		}
		out = append(out, scan+" "+lookups+" "+verdict)
	case n.Access == AccessAll || n.Access == AccessIndex:
		out = append(out, scan)
	default:
		out = append(out, scan+" "+fmt.Sprintf("Index %s is not covering: %s rows a run (%s %% of the table) are as many random look-ups, which touch about %s pages.", n.Key, count(ad.Matched), count(100*ad.Part), count(ad.PagesTouched)))
	}
	switch {
	case ad.unknown:
		return append(out, "Which of its columns the statement needs is not told, so no covering index can be named.")
	case len(ad.Columns) == 0:
		return append(out, "No covering index would be clearly smaller than the table: the statement needs too many of its columns.")
	}
	kind := "an index over the needed columns would be read whole, but it is narrower than the table"
	switch {
	case ad.Equality > 0 && ad.Range > 0:
		kind = "equality first, then the range, then the rest that is only read"
	case ad.Equality > 0:
		kind = "equality first, then the rest that is only read"
	case ad.Range > 0:
		kind = "the range first, then the rest that is only read"
	}
	out = append(out, fmt.Sprintf("A covering index, %s: (%s). About %s, %s pages; this access would read about %s of them in sequence, in place of %s.",
		kind, strings.Join(ad.Columns, ", "), size(ad.IndexBytes), count(ad.IndexPages), count(ad.RangePages), a.instead(n, ad)))
	if len(ad.Replaces) > 0 {
		out = append(out, fmt.Sprintf("It makes %s superfluous.", strings.Join(ad.Replaces, ", ")))
	}
	return out
}

func (a *adviser) instead(n *Node, ad *Advice) string {
	switch n.Access {
	case AccessAll:
		return count(ad.TablePages) + " pages of the table"
	case AccessIndex:
		return "the whole index " + n.Key + " and " + count(ad.Rows) + " look-ups"
	}
	return count(ad.Matched) + " look-ups on " + count(ad.PagesTouched) + " pages"
}

// lines is the advice for a terminal.
func (ad Advice) lines(width int) []string {
	out := []string{"Index arithmetic of #" + count(float64(ad.Node)) + ", " + ad.Table + ":"}
	for _, t := range ad.Texts {
		out = append(out, wrapped("  ", t, width)...)
	}
	if ad.Statement != "" {
		out = append(out, "  "+ad.Statement+";")
	}
	return out
}
