package differ

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/define/alike"
	"github.com/rissodb/risso/internal/sqltext"
)

const schemaWhy = "rows, statements and replication that work on one of them fail on the other"

// schemas compares the schemas of users.
func (c *comparison) schemas() {
	for _, name := range slices.Sorted(maps.Keys(union(c.a.Schemas, c.b.Schemas))) {
		x, inA := c.a.Schemas[name]
		y, inB := c.b.Schemas[name]
		if !inA || !inB {
			c.one(RankData, mysql.Quote(name), inA, fmt.Sprintf("a schema of %d tables and %d other objects", len(x.Tables)+len(y.Tables), len(x.Objects)+len(y.Objects)))
			continue
		}
		c.inSchema(name, x, y)
	}
}

// blind reports whether an account may not see all schemas: then what it did not see may be there.
func blind(d *Description) bool {
	return slices.ContainsFunc(d.Unread, func(u Unread) bool { return u.Area == AreaSchemas })
}

// one adds what only one of them has.
func (c *comparison) one(rank Rank, name string, inA bool, what string) {
	if lacks := map[bool]*Description{true: c.b, false: c.a}[inA]; blind(lacks) {
		c.open(lacks.Name, AreaSchemas, fleet.Trouble{What: name, Why: "the account does not see it; it may be there"})
		return
	}
	d := Difference{Rank: rank, Area: AreaSchemas, Name: name, A: what, Why: schemaWhy}
	if !inA {
		d.A, d.B = "", what
	}
	c.add(d)
}

func (c *comparison) inSchema(name string, x, y Schema) {
	for i, s := range []Schema{x, y} {
		server := []*Description{c.a, c.b}[i].Name
		for _, what := range slices.Sorted(maps.Keys(s.Faults)) {
			c.open(server, AreaSchemas, fleet.Trouble{What: what, Why: s.Faults[what]})
		}
	}
	schema := func(s Schema) define.Definition {
		return define.Definition{Kind: alike.KindSchema, Create: strings.Replace(s.Create, mysql.Quote(name), "", 1)}
	}
	if what, _ := alike.Objects(schema(x), schema(y), c.exact); len(what) > 0 {
		c.add(Difference{Rank: RankBehaviour, Area: AreaSchemas, Name: mysql.Quote(name), What: what, Why: "new tables in it get another character set or collation"})
	}
	for _, t := range slices.Sorted(maps.Keys(union(x.Tables, y.Tables))) {
		a, inA := x.Tables[t]
		b, inB := y.Tables[t]
		full := mysql.TableName{Schema: name, Name: t}
		if _, broken := union(x.Faults, y.Faults)["table "+full.String()]; broken {
			continue
		}
		if !inA || !inB {
			c.one(RankData, full.String(), inA, "a table")
			continue
		}
		c.table(full, a, b)
	}
	for _, key := range slices.Sorted(maps.Keys(union(x.Objects, y.Objects))) {
		a, inA := x.Objects[key]
		b, inB := y.Objects[key]
		d := a
		if !inA {
			d = b
		}
		full := string(d.Kind) + " " + mysql.TableName{Schema: name, Name: d.Name}.String()
		if _, broken := union(x.Faults, y.Faults)[full]; broken || unlisted(name, d.Kind, x, y) {
			continue
		}
		if !inA || !inB {
			c.one(objectRank(d.Kind), full, inA, "a "+string(d.Kind))
			continue
		}
		what, open := alike.Objects(a, b, c.exact)
		if a.Definer != b.Definer {
			what = append(what, fmt.Sprintf("its definer is %s here and %s there", a.Definer, b.Definer))
		}
		if len(what) > 0 {
			c.add(Difference{Rank: objectRank(d.Kind), Area: AreaSchemas, Name: full, What: what, Why: objectWhy(d.Kind)})
		}
		if len(open) > 0 {
			c.open("", AreaSchemas, fleet.Trouble{What: full, Why: strings.Join(open, "; ")})
		}
	}
}

// unlisted reports whether a server refused the list of such objects: package describe notes that as "routines of `schema`".
func unlisted(schema string, kind define.ObjectKind, x, y Schema) bool {
	list := "routines"
	switch kind {
	case define.KindTrigger:
		list = "triggers"
	case define.KindEvent:
		list = "events"
	case define.KindView, define.KindSequence:
		return false
	}
	_, refused := union(x.Faults, y.Faults)[list+" of "+mysql.Quote(schema)]
	return refused
}

// objectRank: what writes by itself can make the rows of two servers differ.
func objectRank(kind define.ObjectKind) Rank {
	switch kind {
	case define.KindTrigger, define.KindEvent, define.KindSequence:
		return RankData
	}
	return RankBehaviour
}

func objectWhy(kind define.ObjectKind) string {
	switch kind {
	case define.KindTrigger, define.KindEvent:
		return "the same statement, or the same hour, writes other rows"
	case define.KindSequence:
		return "it gives other numbers"
	}
	return "the same call gives another answer"
}

// table compares two definitions. That only indexes that are not unique differ matters for speed alone.
func (c *comparison) table(name mysql.TableName, a, b string) {
	x, y := listsInOrder(a), listsInOrder(b)
	what, open := alike.Tables(x, y, c.exact)
	if !c.exact {
		what = append(what, c.columnCharsets(name.Schema, a, b)...)
	}
	var slow, counted, rest []string
	if partitions(a) != partitions(b) && partitions(x) == partitions(y) {
		counted = append(counted, "its partitions by list, or their values, stand in another order")
	}
	for _, w := range what {
		switch {
		case isIndex(w, a, b):
			slow = append(slow, w)
		case strings.HasPrefix(w, "option comment ") || strings.Contains(w, "there is no option comment") || strings.HasPrefix(w, "option stats_"):
			counted = append(counted, w)
		default:
			rest = append(rest, w)
		}
	}
	if len(rest) > 0 {
		c.add(Difference{Rank: RankData, Area: AreaSchemas, Name: name.String(), What: rest, Why: "the same statement keeps other values, or fails on one of them and breaks replication"})
	}
	if len(slow) > 0 {
		c.add(Difference{Rank: RankPerformance, Area: AreaSchemas, Name: name.String(), What: slow, Why: "the same statement gets another plan, and a row-based replica may scan the table for each row"})
	}
	if len(counted) > 0 {
		c.add(Difference{Rank: RankNames, Area: AreaSchemas, Name: name.String(), What: counted, Why: "a note, or how statistics are made; no row differs"})
	}
	if len(open) > 0 {
		c.open("", AreaSchemas, fleet.Trouble{What: name.String(), Why: strings.Join(open, "; ")})
	}
}

// partitions is what SHOW CREATE TABLE says of them.
func partitions(create string) string {
	if i := strings.Index(create, byList); i >= 0 {
		return create[i:]
	}
	return ""
}

const byList = "PARTITION BY LIST"

// listsInOrder is CREATE TABLE, as servers write it, with partitions by list and their values sorted: no row depends on their order. Each
// stands on a line of its own; those with subpartitions stay as they are.
func listsInOrder(create string) string {
	tail := partitions(create)
	lines := strings.Split(tail, "\n")
	end := strings.LastIndexByte(tail, ')') - (len(tail) - len(lines[len(lines)-1]))
	if len(lines) < 2 || end < 0 || strings.Contains(tail, "SUBPARTITION") {
		return create
	}
	last := lines[len(lines)-1]
	lines[len(lines)-1] = last[:end]
	list := lines[1:]
	for i, l := range list {
		list[i] = valuesInOrder(strings.TrimSuffix(strings.TrimLeft(l, " ("), ","))
	}
	slices.Sort(list)
	return strings.TrimSuffix(create, tail) + lines[0] + "\n(" + strings.Join(list, ",\n ") + last[end:]
}

// valuesInOrder is the line of a partition with what it holds sorted.
func valuesInOrder(partition string) string {
	const in = "VALUES IN ("
	i := strings.Index(partition, in)
	if i < 0 {
		return partition
	}
	head, rest := partition[:i+len(in)], partition[i+len(in):]
	var list []string
	depth, from := 0, 0
	for _, t := range sqltext.Tokens(rest) {
		word := rest[t.Begin:t.End]
		switch {
		case word == "(":
			depth++
		case word == ")" && depth > 0:
			depth--
		case word == "," && depth == 0 || word == ")":
			list = append(list, strings.TrimSpace(rest[from:t.Begin]))
			from = t.End
		}
		if word == ")" && depth == 0 && from == t.End {
			slices.Sort(list)
			return head + strings.Join(list, ",") + rest[t.Begin:]
		}
	}
	return partition
}

// isIndex reports whether words are about an index that is not unique: package alike calls it "index `name`" and does not say of what
// kind one is that is missing.
func isIndex(what, a, b string) bool {
	w := strings.TrimPrefix(what, "there is no ")
	rest, ok := strings.CutPrefix(w, "index ")
	if !ok {
		return false
	}
	code := sqltext.Tokens(rest)
	if len(code) == 0 {
		return false
	}
	unique := "UNIQUE KEY " + rest[code[0].Begin:code[0].End]
	return !strings.Contains(a, unique) && !strings.Contains(b, unique)
}

// columnCharsets compares what statements of other versions leave out or add.
func (c *comparison) columnCharsets(schema, a, b string) (what []string) {
	here, errA := define.ParseTable(schema, a)
	there, errB := define.ParseTable(schema, b)
	if errA != nil || errB != nil {
		return nil
	}
	for _, x := range here.Columns {
		y, ok := there.Column(x.Name)
		if !ok || x.Type == "json" || y.Type == "json" {
			continue
		}
		if p, q := c.a.Collations.Of(x), c.b.Collations.Of(y); p != q {
			what = append(what, fmt.Sprintf("column %s has collation %s here and %s there", mysql.Quote(x.Name), p, q))
		}
	}
	return what
}
