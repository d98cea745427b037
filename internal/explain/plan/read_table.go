package plan

import (
	"errors"
	"strings"
)

// Row is one line of tabular EXPLAIN: column name (lower case) to text; NULL is left out.
type Row map[string]string

// FromRows makes a plan of tabular EXPLAIN. It knows the join order, the blocks of a union and which blocks are
// subqueries, but not to which table a subquery belongs: those hang at the root.
func FromRows(rows []Row) (*Plan, error) {
	root := newNode(KindQuery)
	p := &Plan{Format: FormatTable, Root: root}
	blocks := map[string]*Node{}
	var order []string
	for _, r := range rows {
		id := r["id"]
		if r["select_type"] == "UNION RESULT" || id == "" {
			id = "union " + r["table"]
		}
		b := blocks[id]
		if b == nil {
			b = tableBlock(r)
			blocks[id] = b
			order = append(order, id)
		}
		tableRow(b, r)
		if r["r_rows"] != "" {
			p.Analyzed = true
		}
	}
	if len(order) == 0 {
		return nil, errors.New("no row of a plan in it")
	}
	assemble(root, blocks, order)
	if len(root.Children) == 1 && root.Children[0].Kind == KindQuery {
		p.Root = root.Children[0]
	}
	if p.Analyzed {
		p.Root.Walk(func(n, _ *Node, _ int) {
			if n.Kind == KindTable && !n.ActualRows.Known() && n.Rows.Known() {
				n.Loops = 0 // NULL means never read
			}
		})
	}
	total(p)
	return p, nil
}

// tableBlock is the block that a row opens.
func tableBlock(r Row) *Node {
	kind := r["select_type"]
	b := newNode(KindQuery)
	b.Title = strings.ToLower(kind)
	if f, ok := number(r["id"]); ok {
		b.SelectID = int(f)
	}
	switch {
	case strings.Contains(kind, "SUBQUERY"):
		b.Kind, b.Role = KindSubquery, "subquery"
	case strings.Contains(kind, "DERIVED"), strings.Contains(kind, "MATERIALIZED"):
		b.Kind, b.Role, b.Temporary = KindMaterialise, "materialised", true
	case strings.Contains(kind, "UNION"):
		b.Role = "query specification"
	}
	b.Dependent = strings.HasPrefix(kind, "DEPENDENT")
	b.Uncacheable = strings.HasPrefix(kind, "UNCACHEABLE") || b.Dependent
	b.Recursive = strings.HasPrefix(kind, "RECURSIVE")
	return b
}

// tableRow adds one row to its block.
func tableRow(b *Node, r Row) {
	n := newNode(KindTable)
	n.Table, n.Access, n.Key, n.KeyLength = r["table"], r["type"], r["key"], r["key_len"]
	n.PossibleKeys, n.Ref, n.Partitions = commaList(r["possible_keys"]), commaList(r["ref"]), commaList(r["partitions"])
	for name, to := range map[string]*Figure{"rows": &n.Rows, "filtered": &n.Filtered, "r_rows": &n.ActualRows, "r_filtered": &n.ActualFiltered} {
		if f, ok := number(r[name]); ok {
			*to = f
		}
	}
	switch r["select_type"] {
	case "INSERT", "UPDATE", "DELETE", "REPLACE":
		n.Role = strings.ToLower(r["select_type"])
	}
	var rest []string
	for _, e := range splitExtra(r["extra"]) {
		switch {
		case e == "Using index":
			n.Covering = true
		case e == "Using temporary":
			n.Temporary = true
		case e == "Using filesort":
			n.Filesort = true
		case strings.HasPrefix(e, "Using join buffer"):
			n.JoinBuffer = parenthesised(e)
		default:
			rest = append(rest, e)
		}
	}
	for _, e := range rest {
		if n.Table == "" {
			b.Message = e
		} else {
			n.extra("Extra", e)
		}
	}
	for name, v := range r {
		switch name {
		case "id", "select_type", "table", "type", "key", "key_len", "possible_keys", "ref", "partitions", "rows", "filtered", "r_rows", "r_filtered", "extra":
		default:
			n.extra(name, v)
		}
	}
	if n.Table != "" {
		b.Children = append(b.Children, n)
	}
}

// assemble hangs unions under their result, derived tables under the table that reads them, all else at the root.
func assemble(root *Node, blocks map[string]*Node, order []string) {
	hung := map[string]bool{}
	for _, id := range order {
		b := blocks[id]
		if len(b.Children) > 1 {
			for i, c := range b.Children {
				if c.Role != "" { // the table that the statement changes is no part of the join
					root.Children = append(root.Children, c)
					b.Children = append(b.Children[:i:i], b.Children[i+1:]...)
					break
				}
			}
		}
		if len(b.Children) > 1 {
			join := newNode(KindNestedLoop)
			join.Children = b.Children
			b.Children = []*Node{join}
		}
	}
	attach := func(n *Node) {
		name := strings.Trim(n.Table, "<>")
		for prefix, of := range map[string]Kind{"derived": KindMaterialise, "subquery": KindMaterialise, "union": KindUnion} {
			list, ok := strings.CutPrefix(name, prefix)
			if !ok || !strings.HasPrefix(n.Table, "<") {
				continue
			}
			for _, id := range strings.Split(list, ",") {
				if of == KindMaterialise {
					id = unionOf(blocks, id)
				}
				if b := blocks[id]; b != nil && !hung[id] && !below(b, n) {
					hung[id] = true
					if of == KindUnion {
						b.Kind, b.Role, b.Temporary = KindQuery, "query specification", false
					}
					n.Children = append(n.Children, b)
				}
			}
		}
	}
	for _, id := range order {
		blocks[id].Walk(func(n, _ *Node, _ int) {
			if n.Kind == KindTable && len(n.Children) == 0 {
				attach(n)
			}
		})
	}
	for _, id := range order {
		b := blocks[id]
		if strings.HasPrefix(id, "union ") && len(b.Children) > 0 {
			u := b.Children[0]
			u.Kind, u.Access = KindUnion, ""
			b.Kind, b.Role, b.Title, b.Temporary = KindMaterialise, "materialised", "", true
			if !hung[id] {
				root.Children = append(root.Children, u)
			}
		} else if !hung[id] {
			root.Children = append(root.Children, b)
		}
	}
}

// unionOf is the union that a block begins, or the block itself.
func unionOf(blocks map[string]*Node, id string) string {
	for name := range blocks {
		if strings.HasPrefix(name, "union <union"+id+",") {
			return name
		}
	}
	return id
}

// below reports whether n is in the tree of b.
func below(b, n *Node) bool {
	found := false
	b.Walk(func(m, _ *Node, _ int) { found = found || m == n })
	return found
}

func commaList(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

// splitExtra cuts the column Extra at its semicolons.
func splitExtra(s string) []string {
	var out []string
	for _, e := range strings.Split(s, ";") {
		if e = strings.TrimSpace(e); e != "" {
			out = append(out, e)
		}
	}
	return out
}

// rowsOf reads the three ways in which clients print tabular EXPLAIN: a box, tabs, and one column a line.
func rowsOf(text string) []Row {
	var heads []string
	var rows []Row
lines:
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, "\r")
		line = strings.TrimPrefix(line, "# explain: ")
		var cells []string
		switch {
		case strings.HasPrefix(line, "|"):
			cells = strings.Split(strings.Trim(line, "| "), "|")
			if inner := strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"); strings.Contains(inner, "|") {
				cells = strings.Split(inner, "|")
			}
		case strings.Contains(line, "\t"):
			cells = strings.Split(line, "\t")
		default:
			rows = vertical(rows, line)
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if heads == nil {
			if strings.EqualFold(cells[0], "id") {
				for _, c := range cells {
					heads = append(heads, strings.ToLower(c))
				}
			}
			continue
		}
		if strings.EqualFold(cells[0], "id") {
			break lines // a second plan begins: the first one is read
		}
		r := Row{}
		for i, c := range cells {
			if i < len(heads) && c != "NULL" && c != "" {
				r[heads[i]] = c
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// vertical reads a line of \G output: "select_type: SIMPLE".
func vertical(rows []Row, line string) []Row {
	name, value, ok := strings.Cut(strings.TrimSpace(line), ":")
	if !ok || strings.ContainsAny(name, " \t") {
		return rows
	}
	name, value = strings.ToLower(name), strings.TrimSpace(value)
	if name == "id" {
		rows = append(rows, Row{})
	}
	if len(rows) > 0 && value != "NULL" && value != "" {
		rows[len(rows)-1][name] = value
	}
	return rows
}
