package plan

import (
	"strings"
)

// blocks are the members of MySQL's version 1 and of MariaDB's JSON that hold further nodes, by what they are.
var blocks = map[string]struct {
	kind Kind
	role string
}{
	"query_block":                  {KindQuery, ""},
	"union_result":                 {KindUnion, ""},
	"recursive_union":              {KindUnion, ""},
	"intersect_result":             {KindUnion, ""},
	"except_result":                {KindUnion, ""},
	"unary_result":                 {KindUnion, ""},
	"unit_result":                  {KindUnion, ""},
	"query_specifications":         {KindQuery, "query specification"},
	"nested_loop":                  {KindNestedLoop, ""},
	"table":                        {KindTable, ""},
	"grouping_operation":           {KindGroup, ""},
	"ordering_operation":           {KindOrder, ""},
	"duplicates_removal":           {KindDistinct, ""},
	"duplicate_removal":            {KindDistinct, ""},
	"buffer_result":                {KindBuffer, ""},
	"buffer":                       {KindBuffer, ""},
	"windowing":                    {KindWindow, ""},
	"window_functions_computation": {KindWindow, ""},
	"insert_from":                  {KindQuery, "rows to insert"},
	"materialized_from_subquery":   {KindMaterialise, "materialised"},
	"materialized":                 {KindMaterialise, "materialised"},
	"materialization":              {KindMaterialise, "materialised"},
	"attached_subqueries":          {KindSubquery, "subquery of the condition"},
	"select_list_subqueries":       {KindSubquery, "subquery of the select list"},
	"having_subqueries":            {KindSubquery, "subquery of HAVING"},
	"group_by_subqueries":          {KindSubquery, "subquery of GROUP BY"},
	"order_by_subqueries":          {KindSubquery, "subquery of ORDER BY"},
	"optimized_away_subqueries":    {KindSubquery, "subquery, optimised away"},
	"update_value_subqueries":      {KindSubquery, "subquery of a new value"},
	"insert_values_subqueries":     {KindSubquery, "subquery of VALUES"},
	"insert_update_subqueries":     {KindSubquery, "subquery of ON DUPLICATE KEY UPDATE"},
	"subqueries":                   {KindSubquery, "subquery"},
	"filesort":                     {KindSort, ""},
	"sorts":                        {KindSort, "sort"},
	"read_sorted_file":             {KindSort, ""},
	"temporary_table":              {KindTemporary, ""},
	"expression_cache":             {KindCache, ""},
	"subquery_cache":               {KindCache, ""}, // its name since MariaDB 11
	"block-nl-join":                {KindTable, ""},
	"sharing_temporary_table_with": {KindMaterialise, "shared with another reader"},
	"rowid_filter":                 {KindRowidFilter, ""},
	"index_merge":                  {KindIndexMerge, ""},
}

// jsonReader walks MySQL's version 1 and MariaDB's JSON, which share most names.
type jsonReader struct{}

// read makes the tree of a whole document.
func (r *jsonReader) read(o object) *Node {
	root := newNode(KindQuery)
	r.members(root, o)
	// The document is a shell around the query block: the block is the root, what else there is goes with it.
	if len(root.Children) == 1 && root.Children[0].Kind == KindQuery {
		block := root.Children[0]
		block.Extra = append(block.Extra, root.Extra...)
		block.Role = ""
		return block
	}
	return root
}

// members reads all members of an object into a node.
func (r *jsonReader) members(n *Node, o object) {
	for _, f := range o {
		if b, ok := blocks[f.name]; ok && !isScalar(f.value) {
			r.block(n, f.name, b.kind, b.role, f.value)
			continue
		}
		if r.scalar(n, f.name, f.value) {
			continue
		}
		if r.operator(f.value, 0) {
			c := newNode(KindOther)
			c.Title = f.name
			r.into(c, f.value)
			n.Children = append(n.Children, c)
			continue
		}
		n.extra(f.name, f.value)
	}
}

func isScalar(v any) bool {
	switch v.(type) {
	case object, []any:
		return false
	}
	return true
}

// operator reports whether an unknown value has known blocks below it, so that it has to be drawn as a node.
func (r *jsonReader) operator(v any, depth int) bool {
	if depth > maxDepth {
		return false
	}
	switch v := v.(type) {
	case object:
		for _, f := range v {
			if _, ok := blocks[f.name]; ok && !isScalar(f.value) || r.operator(f.value, depth+1) {
				return true
			}
		}
	case []any:
		for _, e := range v {
			if r.operator(e, depth+1) {
				return true
			}
		}
	}
	return false
}

// into reads an object, or all elements of an array, into one node.
func (r *jsonReader) into(n *Node, v any) {
	switch v := v.(type) {
	case object:
		r.members(n, v)
	case []any:
		for _, e := range v {
			if o, ok := e.(object); ok {
				r.members(n, o)
			} else {
				n.extra("element", e)
			}
		}
	}
}

// block reads a member that holds further nodes.
func (r *jsonReader) block(n *Node, name string, kind Kind, role string, v any) {
	o, isObject := v.(object)
	switch {
	case name == "table" && isObject && o.has("message") && !o.has("table_name"):
		r.members(n, o) // MariaDB: a table that is only a message belongs to its block
		return
	case name == "index_merge":
		r.indexMerge(n, v)
		return
	case name == "rowid_filter" && isObject:
		c := newNode(kind)
		for _, f := range o {
			if inner, ok := f.value.(object); ok && f.name == "range" {
				r.members(c, inner)
			} else {
				r.members(c, object{f})
			}
		}
		n.Children = append(n.Children, c)
		return
	case name == "sorts":
		r.into(n, v) // the filesorts of a window computation
		return
	case name == "block-nl-join" && isObject:
		r.blockNestedLoop(n, o)
		return
	case name == "read_sorted_file" && isObject:
		r.sortedFile(n, o)
		return
	case isObject && name == "query_block" && merges(n):
		r.members(n, o)
		return
	case isObject && kind == KindCache && n.Kind == KindSubquery && len(n.Children) == 0:
		n.Kind = KindCache
		r.members(n, o)
		return
	}
	elements, isArray := v.([]any)
	if !isArray {
		elements = []any{v}
	}
	if kind == KindNestedLoop {
		r.nestedLoop(n, elements)
		return
	}
	for _, e := range elements {
		c := newNode(kind)
		c.Role = role
		if name == "recursive_union" {
			c.Recursive = true
		}
		if o, ok := e.(object); ok {
			r.members(c, o)
		} else {
			c.extra(name, e)
		}
		n.Children = append(n.Children, c)
	}
}

// merges reports whether a node takes the members of the one query block in it as its own.
func merges(n *Node) bool {
	switch n.Kind {
	case KindSubquery, KindMaterialise, KindCache:
		return true
	case KindQuery:
		return n.Role == "query specification" && n.SelectID == 0 && len(n.Children) == 0
	}
	return false
}

// nestedLoop reads the tables of a join; a loop of one table, as MariaDB writes it, is that table.
func (r *jsonReader) nestedLoop(n *Node, elements []any) {
	parent := n
	if len(elements) > 1 {
		parent = newNode(KindNestedLoop)
		n.Children = append(n.Children, parent)
	}
	for _, e := range elements {
		if o, ok := e.(object); ok {
			r.members(parent, o)
		} else {
			parent.extra("nested_loop", e)
		}
	}
}

// blockNestedLoop reads MariaDB's join with a buffer: the table, and what is said about the buffer.
func (r *jsonReader) blockNestedLoop(n *Node, o object) {
	shell := newNode(KindOther)
	shell.Title = "block-nl-join"
	r.members(shell, o)
	if len(shell.Children) == 0 || shell.Children[0].Kind != KindTable {
		n.Children = append(n.Children, shell)
		return
	}
	t := shell.Children[0]
	t.Children = append(t.Children, shell.Children[1:]...)
	t.JoinBuffer = joinBuffer(shell)
	for _, m := range shell.Extra {
		// The table's own loops and times are kept; those of the buffer's comparisons are kept by name.
		t.Extra = append(t.Extra, Member{"block-nl-join." + m.Name, m.Value})
	}
	if shell.Condition != "" {
		t.Condition = both(t.Condition, shell.Condition)
	}
	if shell.OwnTime.Known() {
		t.OwnTime = Figure(t.OwnTime.Or(0) + float64(shell.OwnTime))
	}
	n.Children = append(n.Children, t)
}

func both(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " and " + b
}

func joinBuffer(shell *Node) string {
	kind := "BNL"
	kept := shell.Extra[:0]
	for _, m := range shell.Extra {
		if m.Name == "join_type" {
			kind = strings.Trim(string(m.Value), `"`)
			continue
		}
		kept = append(kept, m)
	}
	shell.Extra = kept
	words := map[string]string{"BNL": "Block Nested Loop", "BNLH": "hash join", "BKA": "Batched Key Access", "BKAH": "Batched Key Access, hashed"}
	if w, ok := words[kind]; ok {
		return w
	}
	return kind
}

// sortedFile reads MariaDB's read_sorted_file, whose filesort is the node; rows are those read from the sorted file.
func (r *jsonReader) sortedFile(n *Node, o object) {
	shell := newNode(KindSort)
	shell.Title = "read_sorted_file"
	r.members(shell, o)
	if len(shell.Children) == 1 && shell.Children[0].Kind == KindSort {
		c := shell.Children[0]
		c.Extra = append(c.Extra, shell.Extra...)
		if shell.ActualRows.Known() {
			c.ActualRows = shell.ActualRows
		}
		if shell.Condition != "" {
			c.Condition = both(c.Condition, shell.Condition)
		}
		n.Children = append(n.Children, c)
		return
	}
	n.Children = append(n.Children, shell)
}

// indexMerge reads MariaDB's index_merge: {"union": [{"range": {"key": …}}, …]}, nested at will.
func (r *jsonReader) indexMerge(n *Node, v any) {
	o, ok := v.(object)
	if !ok {
		n.extra("index_merge", v)
		return
	}
	var keys []string
	for _, f := range o {
		c := newNode(KindIndexMerge)
		c.Title = strings.ReplaceAll(f.name, "_", " ")
		for _, e := range elementsOf(f.value) {
			r.mergePart(c, e)
		}
		c.Walk(func(m, _ *Node, _ int) {
			if m.Key != "" {
				keys = append(keys, m.Key)
			}
		})
		n.Children = append(n.Children, c)
	}
	if n.Key == "" && len(n.Children) > 0 {
		n.Key = n.Children[len(n.Children)-1].Title + "(" + strings.Join(keys, ",") + ")"
	}
}

func (r *jsonReader) mergePart(n *Node, v any) {
	o, ok := v.(object)
	if !ok {
		n.extra("element", v)
		return
	}
	for _, f := range o {
		inner, isObject := f.value.(object)
		if f.name == "range" && isObject {
			c := newNode(KindTable)
			c.Access = AccessRange
			c.Role = "part of the index merge"
			r.members(c, inner)
			n.Children = append(n.Children, c)
			continue
		}
		r.indexMerge(n, object{f})
	}
}

func elementsOf(v any) []any {
	if a, ok := v.([]any); ok {
		return a
	}
	return []any{v}
}

// scalar takes a member that has its own field; it reports false for any other.
func (r *jsonReader) scalar(n *Node, name string, v any) bool {
	switch name {
	case "table_name", "access_type", "key", "key_length", "message", "attached_condition", "index_condition", "using_join_buffer", "operation", "sort_key":
		s, ok := v.(string)
		if !ok {
			return false
		}
		return r.text(n, name, s)
	case "possible_keys", "used_key_parts", "ref", "used_columns", "partitions", "filesort_key", "sorted_by", "functions":
		if _, ok := v.(object); ok || v == nil {
			return false
		}
		return r.list(n, name, texts(v))
	case "using_index_for_group_by", "using_index_for_skip_scan": // a loose index scan reads the index alone
		n.Covering = truth(v)
		return false // and is kept by its name
	case "using_temporary_table", "using_filesort", "using_index", "dependent", "cacheable", "recursive", "insert", "update", "delete", "replace":
		return r.flag(n, name, truth(v))
	case "cost_info":
		o, ok := v.(object)
		if !ok {
			return false
		}
		r.costs(n, o)
		return true
	case "windows":
		return r.windows(n, v)
	}
	return r.figure(n, name, v)
}

func (r *jsonReader) text(n *Node, name, s string) bool {
	switch name {
	case "table_name":
		n.Table = s
	case "access_type":
		n.Access = s
		if n.Kind == KindUnion { // union_result's own read of its temporary table
			n.Access = ""
			n.extra(name, s)
		}
	case "key":
		n.Key = s
	case "key_length":
		n.KeyLength = s
	case "message":
		n.Message = s
	case "attached_condition":
		n.Condition = both(n.Condition, s)
	case "index_condition":
		n.IndexCondition = s
	case "using_join_buffer":
		n.JoinBuffer = s
	case "operation": // MariaDB: UNION, INTERSECT, EXCEPT of a query specification
		n.Title = s
	case "sort_key":
		n.SortKeys = append(n.SortKeys, s)
	}
	return true
}

func (r *jsonReader) list(n *Node, name string, list []string) bool {
	switch name {
	case "possible_keys":
		n.PossibleKeys = list
	case "used_key_parts":
		n.KeyParts = list
	case "ref":
		n.Ref = list
	case "used_columns":
		n.UsedColumns = list
	case "partitions":
		n.Partitions = list
	case "functions":
		n.Functions = append(n.Functions, list...)
	default:
		n.SortKeys = append(n.SortKeys, list...)
	}
	return true
}

func (r *jsonReader) flag(n *Node, name string, v bool) bool {
	switch name {
	case "using_temporary_table":
		n.Temporary = v
	case "using_filesort":
		n.Filesort = v
	case "using_index":
		n.Covering = v
	case "dependent":
		n.Dependent = v
	case "cacheable":
		n.Uncacheable = !v
	case "recursive":
		n.Recursive = v
	default:
		if v && n.Kind == KindTable {
			n.Role = name // the table that the statement changes
		}
	}
	return true
}

// figure takes numbers. Costs and rows of version 1 are for the whole join up to the table; r_… of MariaDB were counted.
func (r *jsonReader) figure(n *Node, name string, v any) bool {
	f, ok := number(v)
	if !ok {
		return false
	}
	switch name {
	case "select_id":
		if n.Kind != KindTable {
			n.SelectID = int(f)
		}
	case "rows_examined_per_scan", "rows":
		n.Rows = f
	case "rows_produced_per_join":
		n.Produced = f
	case "filtered":
		n.Filtered = f
	case "cost": // MariaDB 11: of all executions
		n.Cost = f
	case "loops":
		n.Executions, n.told = f, float64(f)
	case "r_rows":
		n.ActualRows = f
	case "r_output_rows":
		if !n.ActualRows.Known() {
			n.ActualRows = f
		}
	case "r_filtered":
		n.ActualFiltered = f
	case "r_loops":
		n.Loops = f
	case "r_total_time_ms":
		n.Time = f
	case "r_table_time_ms", "r_other_time_ms", "r_unpack_time_ms":
		n.OwnTime = Figure(n.OwnTime.Or(0) + float64(f))
	default:
		return false
	}
	return true
}

func (r *jsonReader) costs(n *Node, o object) {
	own := Unknown()
	for _, f := range o {
		c, ok := number(f.value)
		switch {
		case ok && (f.name == "query_cost" || f.name == "prefix_cost"):
			n.Cost = c
		case ok && (f.name == "read_cost" || f.name == "eval_cost" || f.name == "sort_cost"):
			own = Figure(own.Or(0) + float64(c))
		}
		if f.name != "query_cost" && f.name != "prefix_cost" {
			n.extra(f.name, f.value)
		}
	}
	n.OwnCost = own
}

// windows reads MySQL's windows: their sort keys and functions belong to the one windowing node.
func (r *jsonReader) windows(n *Node, v any) bool {
	a, ok := v.([]any)
	if !ok {
		return false
	}
	for _, e := range a {
		o, ok := e.(object)
		if !ok {
			n.extra("window", e)
			continue
		}
		w := newNode(KindWindow)
		r.members(w, o)
		n.SortKeys = append(n.SortKeys, w.SortKeys...)
		n.Functions = append(n.Functions, w.Functions...)
		n.Filesort = n.Filesort || w.Filesort
		n.Temporary = n.Temporary || w.Temporary
		n.Extra = append(n.Extra, w.Extra...)
		n.Children = append(n.Children, w.Children...)
	}
	return true
}
