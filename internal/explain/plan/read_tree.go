package plan

import (
	"errors"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/sqltext"
)

// operations are the beginnings of the lines of FORMAT=TREE, the longest first if one begins another. Version 2 of
// the JSON repeats the same lines in its "operation". Index accesses and scans are read by operation itself.
var operations = []struct {
	begin string
	kind  Kind
}{
	{"Filter:", KindFilter}, {"Nested loop", KindNestedLoop}, {"Batched key access", KindBatchedJoin},
	{"Hash", KindHash}, {"Sort", KindSort}, {"Limit", KindLimit}, {"Window", KindWindow},
	{"Group aggregate", KindGroup}, {"Aggregate", KindGroup}, {"Group", KindGroup}, {"Count rows", KindGroup},
	{"Union materialize", KindMaterialise}, {"Intersect materialize", KindMaterialise}, {"Except materialize", KindMaterialise},
	{"Union all materialize", KindMaterialise}, {"Materialize", KindMaterialise}, {"Shared materialize", KindMaterialise},
	{"Temporary table", KindTemporary}, {"Aggregate using temporary table", KindTemporary},
	{"Stream results", KindStream}, {"Append", KindUnion}, {"Intersect rows", KindIndexMerge}, {"Deduplicate rows", KindIndexMerge},
	{"Sort-deduplicate", KindIndexMerge}, {"Remove duplicate", KindDistinct}, {"Weedout", KindDistinct},
	{"Zero rows", KindMessage}, {"Rows fetched before", KindConstantRows}, {"Constant row", KindConstantRows}, {"Zero input rows", KindMessage},
	{"Insert into", KindInsert}, {"Replace into", KindReplace}, {"Update", KindUpdate}, {"Delete from", KindDelete}, {"Delete", KindDelete},
	{"Select #", KindSubquery}, {"Repeat until convergence", KindUnion},
}

var (
	hashJoin   = pattern.Lazy(`^(\w* ?)[hH]ash (semijoin|antijoin|join)`)
	tableScan  = pattern.Lazy(`^(?:Table scan|Scan new records|Sample scan) on (\S+|<[^>]*>)`)
	indexUse   = pattern.Lazy(`^(.*?)(?:on )(\S+) using ([^\s(,]+|intersection|union)`)
	selectHead = pattern.Lazy(`^Select #(\d+) \(([^)]*)\)`)
	figures    = pattern.Lazy(`\((?:(never executed)|(?:cost=([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?:\.\.([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?))? )?rows=([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)|actual time=([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\.\.([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?) rows=([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?) loops=([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?))\)`)
	limitRows  = pattern.Lazy(`(\d+) row\(s\)`)
	replanned  = pattern.Lazy(`^Index range scan on (\S+) \(re-planned`)
	constRow   = pattern.Lazy(`^Constant row from (\S+)`)
)

// operation makes a node of one line's text, without its figures.
func operation(text string) *Node {
	text = strings.TrimSpace(text)
	n := tableOperation(text)
	if n == nil {
		n = otherOperation(text)
	}
	n.Title = text
	return n
}

func otherOperation(text string) *Node {
	if m := hashJoin().FindStringSubmatch(text); m != nil {
		n := newNode(KindHashJoin)
		n.JoinType = strings.ToLower(strings.TrimSpace(strings.TrimSpace(m[1]) + " " + m[2]))
		if n.Condition = parenthesised(text); n.Condition == "no condition" {
			n.Condition = ""
		}
		return n
	}
	n := newNode(KindOther)
	begin := ""
	for _, o := range operations {
		if len(o.begin) > len(begin) && strings.HasPrefix(text, o.begin) {
			n.Kind, begin = o.kind, o.begin
		}
	}
	_, after, _ := strings.Cut(text, ": ")
	switch n.Kind {
	case KindFilter:
		n.Condition = strings.TrimSpace(after)
	case KindSort:
		keys, _, _ := strings.Cut(after, ", limit input to")
		n.SortKeys = splitList(keys)
		n.Filesort = true
	case KindLimit:
		if m := limitRows().FindStringSubmatch(text); m != nil {
			n.Limit, _ = strconv.ParseInt(m[1], 10, 64)
		}
	case KindGroup, KindWindow:
		n.Functions = splitList(after)
		n.Temporary = strings.Contains(text, "temporary table") || strings.Contains(text, "buffering")
	case KindMaterialise, KindTemporary:
		n.Temporary = true
		n.Recursive = strings.Contains(text, "recursive")
	case KindMessage:
		n.Message = parenthesised(text)
	case KindNestedLoop, KindBatchedJoin:
		n.JoinType = strings.TrimPrefix(strings.TrimSuffix(strings.TrimSpace(text), " (FirstMatch)"), "Nested loop ")
	case KindInsert, KindReplace, KindUpdate, KindDelete:
		if f := strings.Fields(text[len(begin):]); len(f) > 0 {
			n.Table = unquote(strings.TrimRight(f[0], ","))
		}
	case KindSubquery:
		if m := selectHead().FindStringSubmatch(text); m != nil {
			n.SelectID, _ = strconv.Atoi(m[1])
			subqueryWords(n, m[2])
		}
	case KindUnion:
		n.Recursive = strings.HasPrefix(text, "Repeat")
	}
	return n
}

// subqueryWords reads "subquery in condition; dependent".
func subqueryWords(n *Node, words string) {
	for i, w := range strings.Split(words, ";") {
		w = strings.TrimSpace(w)
		switch {
		case i == 0:
			n.Role = strings.Replace(w, " in ", " of the ", 1)
		case w == "dependent":
			n.Dependent, n.Uncacheable = true, true
		case w == "uncacheable":
			n.Uncacheable = true
		}
	}
}

func unquote(s string) string { return strings.Trim(s, "`") }

// parenthesised is the text between the first "(" and its ")".
func parenthesised(text string) string {
	begin := strings.IndexByte(text, '(')
	if begin < 0 {
		return ""
	}
	t := lex(text[begin:])
	if inside, _, ok := sqltext.Group(t); ok {
		from, to := sqltext.Span(inside)
		return text[begin+from : begin+to]
	}
	return text[begin+1:]
}

// splitList cuts at commas outside of parentheses and quotes.
func splitList(s string) []string {
	var out []string
	for _, e := range sqltext.Elements(lex(s)) {
		if begin, end := sqltext.Span(e); end > begin {
			out = append(out, s[begin:end])
		}
	}
	return out
}

// accessWords translates MySQL's words for an index access into the field's.
var accessWords = []struct{ has, access string }{
	{"Single-row", AccessEqRef}, {"Constant row", AccessConst}, {"Full-text", "fulltext"},
	{"skip scan", AccessRange}, {"range scan", AccessRange}, {"Multi-range", AccessRef}, {"ndex lookup", AccessRef}, {"ndex scan", AccessIndex}, {"Index ", AccessRef},
}

// tableOperation reads accesses to tables, or returns nil.
func tableOperation(text string) *Node {
	if m := tableScan().FindStringSubmatch(text); m != nil {
		n := newNode(KindTable)
		n.Access, n.Table = AccessAll, unquote(m[1])
		n.inner = strings.HasPrefix(text, "Scan new records")
		if i := strings.Index(text, " on <"); i >= 0 { // <union temporary> has a blank in it
			if j := strings.IndexByte(text[i:], '>'); j > 0 {
				n.Table = text[i+4 : i+j+1]
			}
		}
		return n
	}
	if m := replanned().FindStringSubmatch(text); m != nil {
		n := newNode(KindTable)
		n.Access, n.Table = AccessRange, unquote(m[1])
		return n
	}
	if m := constRow().FindStringSubmatch(text); m != nil {
		n := newNode(KindTable)
		n.Access, n.Table = AccessConst, unquote(m[1])
		return n
	}
	m := indexUse().FindStringSubmatch(text)
	if m == nil || strings.ContainsAny(m[1], "(:") {
		return nil
	}
	access := ""
	for _, w := range accessWords {
		if strings.Contains(m[1], w.has) {
			access = w.access
			break
		}
	}
	if access == "" {
		return nil
	}
	n := newNode(KindTable)
	n.Access, n.Table, n.Key = access, unquote(m[2]), unquote(m[3])
	n.Covering = strings.HasPrefix(m[1], "Covering") || strings.Contains(m[1], "covering index")
	_, tail, _ := strings.Cut(text, " using "+m[3])
	if i := strings.Index(tail, "with index condition: "); i >= 0 {
		n.IndexCondition = strings.TrimSpace(tail[i+len("with index condition: "):])
		tail = tail[:i]
	}
	if access == AccessRef || access == AccessEqRef {
		for _, part := range splitList(parenthesised(tail)) {
			column, value, ok := strings.Cut(part, "=")
			if !ok {
				continue
			}
			n.KeyParts = append(n.KeyParts, unquote(strings.TrimSpace(column)))
			n.Ref = append(n.Ref, strings.TrimSpace(value))
		}
	} else if c := parenthesised(tail); c != "" && access == AccessRange {
		n.Condition = c
	}
	return n
}

// errNoTree is what readTree says about a text without a plan line.
var errNoTree = errors.New("no line of a plan (\"-> …\") in it")

// readTree reads FORMAT=TREE and EXPLAIN ANALYZE. Lines nest by the column of their arrow; a line without an arrow
// goes on the one above.
func readTree(text string) (root *Node, analyzed bool, err error) {
	type open struct {
		column int
		node   *Node
	}
	var stack []open
	top := newNode(KindQuery)
	var pending *strings.Builder
	column := 0
	flush := func() error {
		if pending == nil {
			return nil
		}
		n := treeLine(pending.String())
		analyzed = analyzed || n.Loops.Known()
		pending = nil
		for len(stack) > 0 && stack[len(stack)-1].column >= column {
			stack = stack[:len(stack)-1]
		}
		if len(stack) > maxDepth {
			return errors.New("the plan nests too deep")
		}
		parent := top
		if len(stack) > 0 {
			parent = stack[len(stack)-1].node
		}
		parent.Children = append(parent.Children, n)
		stack = append(stack, open{column, n})
		return nil
	}
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, " \r\t|")
		bare := strings.TrimLeft(strings.TrimPrefix(strings.TrimPrefix(line, "|"), "EXPLAIN:"), " ")
		if strings.HasPrefix(bare, "-> ") {
			if err := flush(); err != nil {
				return nil, false, err
			}
			pending = new(strings.Builder)
			column = len(line) - len(bare)
			if strings.HasPrefix(line, "|") || strings.HasPrefix(line, "EXPLAIN:") {
				column = 0 // the first line of a box; the others of it have no frame
			}
			pending.WriteString(bare[3:])
		} else if pending != nil && strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "+--") {
			pending.WriteString("\n" + line)
		}
	}
	if err := flush(); err != nil {
		return nil, false, err
	}
	switch len(top.Children) {
	case 0:
		return nil, false, errNoTree
	case 1:
		return top.Children[0], analyzed, nil
	}
	return top, analyzed, nil
}

// treeLine reads one line: what is done, the expected and the actual figures. Times are milliseconds, the mean of all
// loops (https://dev.mysql.com/doc/refman/9.4/en/explain.html#explain-analyze).
func treeLine(line string) *Node {
	end := len(line)
	all := figures().FindAllStringSubmatchIndex(line, -1)
	// The figures are the last parentheses; a condition may hold text that looks like them.
	for i := len(all) - 1; i >= 0; i-- {
		if strings.TrimSpace(line[all[i][1]:end]) != "" {
			all = all[i+1:]
			break
		}
		end = all[i][0]
	}
	n := operation(line[:end])
	for _, m := range all {
		get := func(i int) Figure {
			if m[2*i] < 0 {
				return Unknown()
			}
			f, ok := number(line[m[2*i]:m[2*i+1]])
			if !ok {
				return Unknown()
			}
			return f
		}
		switch {
		case m[2] >= 0:
			n.Loops, n.ActualRows, n.Time = 0, 0, 0
		case m[16] >= 0:
			n.ActualRows, n.Loops = get(7), get(8)
			n.Time = get(6) * n.Loops
		default:
			if n.Cost = get(3); !n.Cost.Known() {
				n.Cost = get(2)
			}
			n.Rows = get(4)
		}
	}
	return n
}
