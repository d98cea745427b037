package plan

// version2 reads MySQL's JSON version 2: a tree of {"operation", "inputs", …}, whose operations are the lines of
// FORMAT=TREE (https://dev.mysql.com/doc/refman/9.4/en/explain.html).
func version2(o object, depth int) *Node {
	text, _ := o.get("operation").(string)
	n := operation(text)
	var inputs []any
	for _, f := range o {
		switch f.name {
		case "operation":
			if _, ok := f.value.(string); !ok {
				n.extra(f.name, f.value)
			}
		case "inputs", "inputs_from_select_list", "inputs_from_having":
			role := ""
			if f.name == "inputs_from_select_list" {
				role = "subquery of the select list"
			} else if f.name != "inputs" {
				role = "subquery of HAVING"
			}
			for _, e := range elementsOf(f.value) {
				inputs = append(inputs, input{e, role})
			}
		default:
			if !member2(n, f.name, f.value) {
				n.extra(f.name, f.value)
			}
		}
	}
	for _, e := range inputs {
		in, _ := e.(input)
		child, ok := in.value.(object)
		if !ok || depth > maxDepth {
			n.extra("inputs", in.value)
			continue
		}
		c := version2(child, depth+1)
		if c.Role == "" {
			c.Role = in.role
		}
		n.Children = append(n.Children, c)
	}
	return headed(n, o)
}

type input struct {
	value any
	role  string
}

// headed puts a node under its heading, as FORMAT=TREE draws it: "Select #5 (subquery in condition; dependent)",
// "Hash", "Repeat until convergence".
func headed(n *Node, o object) *Node {
	heading, _ := o.get("heading").(string)
	if heading == "" {
		return n
	}
	h := operation(heading)
	h.Children = []*Node{n}
	if h.Kind == KindSubquery { // flags next to the heading
		h.Dependent, n.Dependent = h.Dependent || n.Dependent, false
		h.Uncacheable, n.Uncacheable = h.Uncacheable || n.Uncacheable, false
	}
	return h
}

// member2 takes a member that has a field; it reports false for any other.
func member2(n *Node, name string, v any) bool {
	if s, ok := v.(string); ok {
		switch name {
		case "table_name":
			n.Table = s
		case "schema_name":
			n.Schema = s
		case "alias":
			n.Alias = s
		case "index_name":
			n.Key = s
		case "condition", "hash_condition":
			n.Condition = s
		case "pushed_index_condition":
			n.IndexCondition = s
		case "join_type":
			n.JoinType = s
		case "zero_rows_cause":
			n.Message = s
		case "access_type", "index_access_type", "join_algorithm", "heading", "subquery_location", "lookup_condition":
			// They say what the operation's words have said.
		default:
			return false
		}
		return true
	}
	switch name {
	case "used_columns":
		n.UsedColumns = texts(v)
	case "key_columns":
		n.KeyParts = texts(v)
	case "lookup_references":
		n.Ref = texts(v)
	case "partitions":
		n.Partitions = texts(v)
	case "sort_fields":
		n.SortKeys = texts(v)
	case "functions":
		n.Functions = texts(v)
	case "covering":
		n.Covering = truth(v)
	case "temp_table":
		n.Temporary = n.Temporary || truth(v)
	case "recursive":
		n.Recursive = truth(v)
	case "dependent":
		n.Dependent = truth(v)
	case "cacheable":
		n.Uncacheable = !truth(v)
	case "subquery":
	default:
		return figure2(n, name, v)
	}
	return true
}

func figure2(n *Node, name string, v any) bool {
	f, ok := number(v)
	if !ok {
		return false
	}
	switch name {
	case "estimated_rows":
		n.Rows = f
	case "estimated_total_cost":
		n.Cost = f
	case "actual_rows":
		n.ActualRows = f
	case "actual_loops":
		n.Loops = f
	case "actual_last_row_ms": // the mean of all loops; total makes it the sum
		n.Time = f
	case "limit":
		n.Limit = int64(f)
	default:
		return false
	}
	return true
}

// read2 reads a whole document of version 2.
func read2(plan object) *Node {
	root := version2(plan, 0)
	root.Walk(func(n, _ *Node, _ int) {
		if n.Time.Known() {
			n.Time *= Figure(n.Loops.Or(1))
		}
		// Version 2 names the schema of every table that is one.
		n.inner = n.Kind == KindTable && n.Schema == ""
	})
	return root
}
