package size

import (
	"cmp"
	"container/heap"
	"encoding/hex"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/mysql"
)

// Tally sums up tablespaces as they come, however many there are, in bounded memory: sums for each schema, the largest tables, and those
// with several files (partitions, full-text indexes), whose files come in any order. Only keeps one schema; "" is all.
type Tally struct {
	Only string
	Top  int // how many tables are kept

	// Remember lets Seen tell which tables came: eight bytes a table.
	Remember bool

	schemas map[string]*Schema
	largest tableHeap
	rest    Rest
	several map[mysql.TableName]*Table
	words   map[uint64]Sum // of full-text indexes, by the table's ID, until Resolve
	shared  []mysql.Tablespace
	unsized []mysql.TableName // tables whose file the server says nothing of
	files   int               // tablespaces that came
	seed    maphash.Seed
	seen    map[uint64]struct{}
}

// Seen reports whether a tablespace of a table came. Two tables of many may be taken for one.
func (t *Tally) Seen(schema, table string) bool {
	_, ok := t.seen[maphash.Comparable(t.seed, mysql.TableName{Schema: schema, Name: table})]
	return ok
}

func (t *Tally) remember(schema, table string) {
	if t.seen == nil {
		t.seen, t.seed = map[uint64]struct{}{}, maphash.MakeSeed()
	}
	t.seen[maphash.Comparable(t.seed, mysql.TableName{Schema: schema, Name: table})] = struct{}{}
}

// mostUnsized are kept of them: they are looked up one by one.
const mostUnsized = 10000

// mostPartitions are kept of a table.
const mostPartitions = 20

// tableHeap has the smallest of the largest tables on top.
type tableHeap []Table

func (h tableHeap) Len() int           { return len(h) }
func (h tableHeap) Less(i, j int) bool { return smaller(h[i], h[j]) }
func (h tableHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *tableHeap) Push(x any)        { *h = append(*h, x.(Table)) }
func (h *tableHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// smaller orders tables by what they take, names decide between equals.
func smaller(a, b Table) bool {
	return cmp.Or(cmp.Compare(a.Allocated, b.Allocated), cmp.Compare(a.File, b.File), -strings.Compare(a.Schema, b.Schema), -strings.Compare(a.Name, b.Name)) < 0
}

// Add counts a tablespace.
func (t *Tally) Add(s mysql.Tablespace) {
	sum := Sum{s.File, s.Allocated}
	t.files++
	if s.Schema == "" {
		t.shared = append(t.shared, s)
		return
	}
	if t.Only != "" && s.Schema != t.Only {
		return
	}
	if s.File == 0 && len(t.unsized) < mostUnsized { // MySQL 8.0.15 does not find files whose names are encoded
		_, whole, _ := strings.Cut(s.Name, "/")
		for _, name := range []string{s.Table, whole} { // #P# may be a part of the table's own name
			if n := (mysql.TableName{Schema: s.Schema, Name: name}); !slices.Contains(t.unsized[max(0, len(t.unsized)-8):], n) {
				t.unsized = append(t.unsized, n)
			}
		}
		return
	}
	if t.Remember {
		t.remember(s.Schema, s.Table)
	}
	schema := t.schema(s.Schema)
	schema.add(sum)
	if id, ok := fullTextOf(s.Table); ok {
		if t.words == nil {
			t.words = map[uint64]Sum{}
		}
		w := t.words[id]
		w.add(sum)
		t.words[id] = w
		return
	}
	if s.Partition == "" {
		schema.Tables++
		t.keep(Table{Schema: schema.Name, Name: s.Table, Engine: "InnoDB", RowFormat: s.RowFormat, Sum: sum})
		return
	}
	name := mysql.TableName{Schema: schema.Name, Name: s.Table}
	p := t.several[name]
	if p == nil {
		if t.several == nil {
			t.several = map[mysql.TableName]*Table{}
		}
		p = &Table{Schema: schema.Name, Name: s.Table, Engine: "InnoDB", RowFormat: s.RowFormat}
		t.several[name] = p
		schema.Tables++
	}
	p.add(sum)
	p.PartitionCount++
	part := Partition{s.Partition, sum}
	i, _ := slices.BinarySearchFunc(p.Partitions, part, func(a, b Partition) int { return cmp.Compare(b.Allocated, a.Allocated) })
	if i < mostPartitions {
		p.Partitions = slices.Insert(p.Partitions, i, part)
		p.Partitions = p.Partitions[:min(len(p.Partitions), mostPartitions)]
	}
}

// AddTable counts a table of another engine, or, where files cannot be seen, of any.
func (t *Tally) AddTable(table Table) {
	if t.Only != "" && table.Schema != t.Only {
		return
	}
	s := t.schema(table.Schema)
	table.Schema = s.Name
	if name := (mysql.TableName{Schema: table.Schema, Name: table.Name}); t.several[name] != nil { // the size of some of its files only was known
		part := t.several[name].Sum
		s.add(Sum{-part.File, -part.Allocated})
		s.Tables--
		delete(t.several, name)
	}
	s.add(table.Sum)
	s.Tables++
	t.keep(table)
}

// schema is the sum of one schema; its name is one text for all tables.
func (t *Tally) schema(name string) *Schema {
	s := t.schemas[name]
	if s == nil {
		if t.schemas == nil {
			t.schemas = map[string]*Schema{}
		}
		s = &Schema{Name: name}
		t.schemas[name] = s
	}
	return s
}

// keep keeps a table if it is one of the largest.
func (t *Tally) keep(table Table) {
	if len(t.largest) < t.Top {
		heap.Push(&t.largest, table)
		return
	}
	if t.Top > 0 && smaller(t.largest[0], table) {
		table, t.largest[0] = t.largest[0], table
		heap.Fix(&t.largest, 0)
	}
	t.rest.Tables++
	t.rest.add(table.Sum)
}

// fullTextOf reads the table's ID in the name of an auxiliary table of its full-text indexes: FTS_ and 16 hexadecimal digits. Source: MySQL
// manual, "InnoDB Full-Text Index Tables".
func fullTextOf(name string) (id uint64, ok bool) {
	const digits = 16
	if len(name) < 4+digits+1 || !strings.EqualFold(name[:4], "fts_") || name[4+digits] != '_' {
		return 0, false
	}
	b, err := hex.DecodeString(name[4 : 4+digits])
	if err != nil {
		return 0, false
	}
	for _, c := range b {
		id = id<<8 | uint64(c)
	}
	return id, true
}

// FullText are the IDs of tables with full-text indexes.
func (t *Tally) FullText() (ids []uint64) {
	for id := range t.words {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Resolve says whose full-text indexes those of an ID are. It is called when all tablespaces are in.
func (t *Tally) Resolve(id uint64, name mysql.TableName) {
	sum, ok := t.words[id]
	if !ok {
		return
	}
	for i := range t.largest {
		if p := &t.largest[i]; p.Schema == name.Schema && p.Name == name.Name {
			p.add(sum)
			p.Indexes = append(p.Indexes, Index{Name: FullTextIndexes, Bytes: sum.Allocated})
			heap.Fix(&t.largest, i)
			delete(t.words, id)
			return
		}
	}
	if p := t.several[name]; p != nil {
		p.add(sum)
		p.Indexes = append(p.Indexes, Index{Name: FullTextIndexes, Bytes: sum.Allocated})
		delete(t.words, id)
		return
	}
	t.rest.add(sum)
	delete(t.words, id)
}

// FullTextIndexes is the name under which all full-text indexes of a table stand.
const FullTextIndexes = "(full-text)"

// Result are the schemas and the largest tables, the largest first, what the others sum up to, and the tablespaces of no single table.
func (t *Tally) Result() (schemas []Schema, tables []Table, rest Rest, shared []mysql.Tablespace) {
	for _, p := range t.several {
		t.keep(*p)
	}
	t.several = nil
	for _, sum := range t.words { // whose table is not known
		t.rest.add(sum)
	}
	t.words = nil
	for _, s := range t.schemas {
		schemas = append(schemas, *s)
	}
	slices.SortFunc(schemas, func(a, b Schema) int {
		return cmp.Or(cmp.Compare(b.Allocated, a.Allocated), strings.Compare(a.Name, b.Name))
	})
	tables = slices.Clone([]Table(t.largest))
	slices.SortFunc(tables, func(a, b Table) int {
		if smaller(a, b) {
			return 1
		}
		return -1
	})
	return schemas, tables, t.rest, t.shared
}
