// Package plan reads the query plans of MySQL and MariaDB, in all their formats, into one tree, and explains the tree in
// words, numbers and pictures. Only Take and ReadFacts query a server; everything else is pure.
package plan

import (
	"encoding/json"
	"math"
)

// Format is the format of a plan.
type Format string

// The formats that Parse reads.
const (
	FormatMySQL1  Format = "mysql-json-1" // EXPLAIN FORMAT=JSON of MySQL 5.6 and later, version 1
	FormatMySQL2  Format = "mysql-json-2" // explain_json_format_version=2 of MySQL 8.3 and later
	FormatTree    Format = "mysql-tree"   // EXPLAIN FORMAT=TREE and EXPLAIN ANALYZE of MySQL 8.0.16 and later
	FormatMariaDB Format = "mariadb-json" // EXPLAIN and ANALYZE FORMAT=JSON of MariaDB 10.1 and later
	FormatTable   Format = "table"        // tabular EXPLAIN, and the "# explain:" lines of MariaDB's slow log
)

// Words is the format as a person calls it.
func (f Format) Words() string {
	switch f {
	case FormatMySQL1:
		return "MySQL EXPLAIN FORMAT=JSON version 1"
	case FormatMySQL2:
		return "MySQL EXPLAIN FORMAT=JSON version 2"
	case FormatTree:
		return "MySQL EXPLAIN FORMAT=TREE"
	case FormatMariaDB:
		return "MariaDB EXPLAIN FORMAT=JSON"
	case FormatTable:
		return "tabular EXPLAIN"
	}
	return string(f)
}

// Kind is the kind of a node.
type Kind string

// The kinds of node. A node that Parse does not know has KindOther and its own name as Title.
const (
	KindQuery        Kind = "query"        // the root, and each query block
	KindTable        Kind = "table"        // one access to one table, derived table or temporary table
	KindNestedLoop   Kind = "nested_loop"  // for each row of the first child, the second
	KindHashJoin     Kind = "hash_join"    // the child with Role "hash" is read into memory first
	KindHash         Kind = "hash"         // the side of a hash join that is read into memory
	KindBatchedJoin  Kind = "batched_join" // batched key access
	KindFilter       Kind = "filter"
	KindUnion        Kind = "union" // union_result, also INTERSECT and EXCEPT
	KindSubquery     Kind = "subquery"
	KindMaterialise  Kind = "materialise" // a subquery, derived table or CTE kept in a temporary table
	KindTemporary    Kind = "temporary_table"
	KindBuffer       Kind = "buffer_result" // SQL_BUFFER_RESULT, and the buffer of rows to change of MariaDB
	KindGroup        Kind = "group"         // grouping_operation, aggregate
	KindOrder        Kind = "order"         // ordering_operation
	KindSort         Kind = "filesort"
	KindDistinct     Kind = "duplicates_removal"
	KindWindow       Kind = "window"
	KindLimit        Kind = "limit"
	KindIndexMerge   Kind = "index_merge"
	KindRowidFilter  Kind = "rowid_filter"
	KindCache        Kind = "expression_cache" // MariaDB's cache of a subquery's results by its parameters
	KindInsert       Kind = "insert"
	KindUpdate       Kind = "update"
	KindDelete       Kind = "delete"
	KindReplace      Kind = "replace"
	KindStream       Kind = "stream"
	KindMessage      Kind = "message" // "Impossible WHERE", "No tables used"
	KindConstantRows Kind = "constant_rows"
	KindOther        Kind = "other"
)

// Access words of the field, as tabular EXPLAIN writes them, from worst to best.
const (
	AccessAll    = "ALL"   // the whole table
	AccessIndex  = "index" // a whole index
	AccessRange  = "range"
	AccessMerge  = "index_merge"
	AccessRef    = "ref"
	AccessEqRef  = "eq_ref"
	AccessConst  = "const"
	AccessSystem = "system"
)

// Figure is a number that may be unknown; NaN means unknown and becomes null in JSON.
type Figure float64

// Unknown is a missing figure.
func Unknown() Figure { return Figure(math.NaN()) }

// Known reports whether the figure is known.
func (f Figure) Known() bool { return !math.IsNaN(float64(f)) }

// Or returns the figure, or another one if it is unknown.
func (f Figure) Or(other float64) float64 {
	if f.Known() {
		return float64(f)
	}
	return other
}

// MarshalJSON writes null for what is unknown.
func (f Figure) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(f))
}

// UnmarshalJSON reads null as unknown.
func (f *Figure) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*f = Unknown()
		return nil
	}
	return json.Unmarshal(b, (*float64)(f))
}

// Node is one step of a plan.
//
// There are three units of rows. Rows is what the optimiser expects the node to return in one execution (for a
// table: to read). Produced is what the optimiser expects to be left of a table and all before it in the join.
// ActualRows is what was returned in one execution on average. Loops and Executions are executions: counted, and expected.
type Node struct {
	ID       int    `json:"id"` // 1, 2, … in the order of reading; sentences name it
	Kind     Kind   `json:"kind"`
	Role     string `json:"role,omitempty"`  // its role for its parent: "hash", "attached subquery", "materialised" …
	Title    string `json:"title,omitempty"` // the server's own description, if any
	SelectID int    `json:"select_id,omitempty"`

	Schema       string   `json:"schema,omitempty"`
	Table        string   `json:"table,omitempty"` // or its alias, if the format has only that
	Alias        string   `json:"alias,omitempty"`
	Access       string   `json:"access,omitempty"` // ALL, index, range, ref, eq_ref, const …
	Key          string   `json:"key,omitempty"`
	KeyParts     []string `json:"key_parts,omitempty"` // the columns of the key that are used to find rows
	KeyLength    string   `json:"key_length,omitempty"`
	PossibleKeys []string `json:"possible_keys,omitempty"`
	Ref          []string `json:"ref,omitempty"`
	Partitions   []string `json:"partitions,omitempty"`
	UsedColumns  []string `json:"used_columns,omitempty"`
	Covering     bool     `json:"covering,omitempty"` // the index alone answers ("Using index")

	Condition      string   `json:"condition,omitempty"`
	IndexCondition string   `json:"index_condition,omitempty"`
	SortKeys       []string `json:"sort_keys,omitempty"`
	Functions      []string `json:"functions,omitempty"`
	JoinBuffer     string   `json:"join_buffer,omitempty"` // "Block Nested Loop", "hash join", "Batched Key Access" …
	JoinType       string   `json:"join_type,omitempty"`   // "inner join", "left join", "semijoin", "antijoin"
	Message        string   `json:"message,omitempty"`

	Temporary   bool  `json:"temporary_table,omitempty"`
	Filesort    bool  `json:"filesort,omitempty"`
	Dependent   bool  `json:"dependent,omitempty"`   // runs again for each value of the outer row
	Uncacheable bool  `json:"uncacheable,omitempty"` // its result must not be cached
	Recursive   bool  `json:"recursive,omitempty"`
	Limit       int64 `json:"limit,omitempty"`

	Rows       Figure `json:"rows"`       // expected rows of one execution
	Produced   Figure `json:"produced"`   // expected rows of the join up to here
	Filtered   Figure `json:"filtered"`   // percent of Rows expected to pass the condition
	Executions Figure `json:"executions"` // expected executions
	Cost       Figure `json:"cost"`       // of one execution with all below it, in the server's cost units
	OwnCost    Figure `json:"own_cost"`   // of all expected executions, without what is below

	ActualRows     Figure `json:"actual_rows"`     // of one execution, on average
	ActualFiltered Figure `json:"actual_filtered"` // percent
	Loops          Figure `json:"loops"`
	Time           Figure `json:"time_ms"`     // of all executions with all below it, milliseconds
	OwnTime        Figure `json:"own_time_ms"` // of all executions without what is below, milliseconds

	Extra    []Member `json:"extra,omitempty"` // further members of the format, unchanged
	Children []*Node  `json:"children,omitempty"`

	told  float64 // executions in one of its SELECT, if the server reports them; 0: it does not
	inner bool    // the table is one that the server makes: a derived table, a CTE, a temporary table
}

// Member is something in a plan that Risso has no field for: its name and JSON value.
type Member struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// Plan is a whole plan.
type Plan struct {
	Format   Format `json:"format"`
	Analyzed bool   `json:"analyzed"` // it was executed: actual rows and times are known
	Root     *Node  `json:"root"`
	// Rewritten is the statement as rewritten by the optimiser, if the format has it.
	Rewritten string `json:"rewritten,omitempty"`
	// Repaired says that the text was not valid JSON (MariaDB before 11 does not escape quotes in conditions) and was repaired.
	Repaired bool `json:"repaired,omitempty"`

	// Partial says that the statement did not finish: counts cover only what ran until then.
	Partial bool `json:"partial,omitempty"`

	views []string // texts of the views that the statement reads, if the server's rewriting leaves them out
}

// newNode is a node without figures.
func newNode(k Kind) *Node {
	u := Unknown()
	return &Node{Kind: k, Rows: u, Produced: u, Filtered: u, Executions: u, Cost: u, OwnCost: u,
		ActualRows: u, ActualFiltered: u, Loops: u, Time: u, OwnTime: u}
}

// Walk calls f for the node and all below it, parents first.
func (n *Node) Walk(f func(n, parent *Node, depth int)) { walk(n, nil, 0, f) }

func walk(n, parent *Node, depth int, f func(n, parent *Node, depth int)) {
	if n == nil {
		return
	}
	f(n, parent, depth)
	for _, c := range n.Children {
		walk(c, n, depth+1, f)
	}
}

// Find returns the node of that number, or nil.
func (p *Plan) Find(id int) *Node {
	var found *Node
	p.Root.Walk(func(n, _ *Node, _ int) {
		if n.ID == id {
			found = n
		}
	})
	return found
}

// Name is the name of the table in the statement: its alias, or its name.
func (n *Node) Name() string {
	if n.Alias != "" {
		return n.Alias
	}
	return n.Table
}

// Inner reports whether the table is one that the server makes itself: <derived2>, <subquery2>, <union1,3>, <temporary>.
func (n *Node) Inner() bool {
	if n.inner || n.Table == "" || n.Table[0] == '<' {
		return true
	}
	for _, c := range n.Children {
		if c.Kind == KindMaterialise || c.Kind == KindTemporary {
			return true
		}
	}
	return false
}
