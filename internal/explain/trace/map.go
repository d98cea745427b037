package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/sqltext"
)

// MapNode is what happened in one place, over all times that it happened: a kind of statement, a stored program, an
// instruction of it, a stage, or a wait for one object.
type MapNode struct {
	Kind     string     `json:"kind"` // statement, program, instruction, stage, wait
	Name     string     `json:"name"`
	SQL      string     `json:"sql,omitempty"` // for a statement: the first one seen
	Count    int        `json:"count"`         // how often it was seen; for a program: its calls, 0 if they cannot be counted
	Total    uint64     `json:"total_ps"`      // picoseconds
	Own      uint64     `json:"own_ps"`        // time excluding everything below it
	Whole    int        `json:"whole"`         // of Count, those for which every event was seen
	Open     uint64     `json:"open_ps"`       // time they spent in their own stages that open, lock and close tables
	WholeSum uint64     `json:"whole_ps"`      // their total time
	Rows     int64      `json:"rows"`          // rows examined and changed by it, excluding what it called
	Tables   []TableUse `json:"tables,omitempty"`
	Children []*MapNode `json:"children,omitempty"`

	Conditions *Conditions `json:"conditions,omitempty"` // for a program that evaluates conditions

	key   string
	nodes []*Node
}

// Conditions are the instructions of a stored program that decide which branch runs (sp/jump_if_not): IF, WHILE, CASE.
// Each is executed like a statement, including opening tables even if it names none, so a branch that never runs costs at
// least this in every call.
type Conditions struct {
	Count int    `json:"count"`
	Total uint64 `json:"total_ps"` // picoseconds
	Open  uint64 `json:"open_ps"`  // of which for opening, locking and closing tables
}

// TableUse is how statements of one kind used a table that they opened and locked.
type TableUse struct {
	Table  string  `json:"table"`
	Opened int     `json:"opened"`          // calls that opened and locked it, of those seen in full
	Used   int     `json:"used"`            // calls in which one of its rows was read or written, or a statement naming it ran
	Calls  int     `json:"calls"`           // calls seen in full
	Where  []Place `json:"where,omitempty"` // stored programs that name the table, if it was not used
}

// Place is a line of a stored program.
type Place struct {
	Program string `json:"program"`        // schema.name
	Line    int    `json:"line,omitempty"` // first line that names the table, counted from the program's BEGIN; 0: the program has only one line
}

// String is schema.name line n.
func (p Place) String() string {
	if p.Line == 0 {
		return p.Program
	}
	return fmt.Sprintf("%s line %d", p.Program, p.Line)
}

// Unused says that the table was opened for nothing in every call that was seen whole.
func (u TableUse) Unused() bool { return u.Opened > 0 && u.Used == 0 }

// Map is the execution map: what one connection did, by place instead of by time.
type Map struct {
	Roots []*MapNode `json:"statements"` // kinds of statements sent by the client, most expensive first
	Busy  uint64     `json:"busy_ps"`
	Idle  uint64     `json:"idle_ps"`
}

// NewMap makes the map of a tree. bodies are the source texts of stored programs by "FUNCTION schema.name"; may be missing.
func NewMap(t *Tree, bodies map[string]string) *Map {
	m := &Map{}
	m.Busy, m.Idle = t.Busy()
	whole := wholes(t)
	var roots []*Node
	for _, r := range t.Roots {
		if r.Kind == KindStatement {
			roots = append(roots, r)
		}
	}
	m.Roots = gather(roots, nil)
	for _, r := range m.Roots {
		r.tables(whole, bodies)
	}
	return m
}

// gather groups nodes of one parent kind.
func gather(nodes []*Node, within *Program) []*MapNode {
	var out []*MapNode
	by := map[string]*MapNode{}
	get := func(kind, key, name string) *MapNode {
		g := by[kind+key]
		if g == nil {
			g = &MapNode{Kind: kind, Name: name, key: key}
			by[kind+key] = g
			out = append(out, g)
		}
		return g
	}
	for _, n := range nodes {
		switch {
		case n.Kind == KindStatement && n.Program != nil && (within == nil || *n.Program != *within):
			g := get("program", n.Program.String(), n.Program.String())
			g.nodes = append(g.nodes, n)
			g.Total += n.Took()
			if strings.HasSuffix(n.Name, "return") && n.Program.Type == "FUNCTION" {
				g.Count++
			}
		case n.Kind == KindStatement:
			kind := "statement"
			if n.Program != nil {
				kind = "instruction"
			}
			g := get(kind, n.class(), n.Short())
			if g.SQL == "" {
				g.SQL = n.SQL
			}
			g.add(n)
			g.Rows += n.RowsExamined + n.RowsAffected
		case n.Kind == KindStage:
			get("stage", n.Name, n.Short()).add(n)
		default:
			name := n.label()
			get("wait", name, name).add(n)
		}
	}
	for _, g := range out {
		g.below()
	}
	slices.SortStableFunc(out, func(a, b *MapNode) int { return cmp.Compare(b.Total, a.Total) })
	return out
}

func (g *MapNode) add(n *Node) {
	g.nodes = append(g.nodes, n)
	g.Count++
	g.Total += n.Took()
	g.Own += n.Own
}

// below gathers what happened in the nodes of a group.
func (g *MapNode) below() {
	if g.Kind == "program" {
		g.Children = gather(g.nodes, g.nodes[0].Program)
		g.Conditions = conditions(g.Children)
		return
	}
	var children []*Node
	for _, n := range g.nodes {
		children = append(children, n.Children...)
	}
	if len(children) == 0 {
		return
	}
	g.Children = gather(children, g.nodes[0].Program)
}

// conditions sums up the conditions among the instructions of a program; nil if there are none.
func conditions(instructions []*MapNode) *Conditions {
	var c Conditions
	for _, g := range instructions {
		if g.Kind != "instruction" || g.Name != "sp/jump_if_not" {
			continue
		}
		c.Count += g.Count
		c.Total += g.Total
		for _, s := range g.Children {
			if s.Kind == "stage" && len(s.nodes) > 0 && phaseOf(s.nodes[0].Name) == phaseOpen {
				c.Open += s.Total
			}
		}
	}
	if c.Count == 0 {
		return nil
	}
	return &c
}

// words says what the conditions of a program cost, or "" if nothing is known about it.
func (c *Conditions) words(program *MapNode) string {
	if c == nil || program.Total == 0 {
		return ""
	}
	s := digits.Counted(c.Count, "condition")
	if n := program.Count; n > 0 && c.Count%n == 0 {
		s = digits.Counted(c.Count/n, "condition") + " a call"
	}
	return fmt.Sprintf("%s: %s of it", s, digits.Percent(share(c.Total, program.Total)))
}

// class is what makes two statements the same kind: the server's digest, or else the fingerprint.
func (n *Node) class() string {
	switch {
	case n.Lost:
		return "lost"
	case n.Digest != "":
		return n.Digest
	}
	return n.Name + "\x00" + sqltext.Fingerprint(n.SQL)
}

// wholes finds the statements of which every event was seen: only of them can be said what they did not do.
func wholes(t *Tree) map[*Node]bool {
	transactions := make([]uint64, len(t.Transactions))
	for i, e := range t.Transactions {
		transactions[i] = e.ID
	}
	out := map[*Node]bool{}
	var visit func(n *Node) int
	visit = func(n *Node) int {
		seen := 1
		for _, c := range n.Children {
			seen += visit(c)
		}
		if n.Kind == KindStatement && n.Ended() && !n.Lost {
			lo, _ := slices.BinarySearch(transactions, n.ID)
			hi, _ := slices.BinarySearch(transactions, n.End+1)
			from, _ := slices.BinarySearch(t.unborn, n.ID)
			to, _ := slices.BinarySearch(t.unborn, n.End+1)
			out[n] = uint64(seen+hi-lo+to-from) >= n.End-n.ID+1
		}
		return seen
	}
	for _, r := range t.Roots {
		visit(r)
	}
	return out
}

// tables finds, for each kind of statement, which tables it opened and locked and which of them it used.
func (g *MapNode) tables(whole map[*Node]bool, bodies map[string]string) {
	for _, c := range g.Children {
		c.tables(whole, bodies)
	}
	if g.Kind != "statement" && g.Kind != "instruction" {
		return
	}
	uses := map[string]*TableUse{}
	calls := 0
	for _, n := range g.nodes {
		if !whole[n] {
			continue
		}
		calls++
		g.WholeSum += n.Took()
		for _, c := range n.Children {
			if c.Kind == KindStage && phaseOf(c.Name) == phaseOpen {
				g.Open += c.Took()
			}
		}
		opened, used, texts := n.touched()
		silent := n.silent()
		for table := range opened {
			u := uses[table]
			if u == nil {
				u = &TableUse{Table: table}
				uses[table] = u
			}
			u.Opened++
			if silent || used[table] || named(texts, table) {
				u.Used++
			}
		}
	}
	g.Whole = calls
	for _, u := range uses {
		u.Calls = calls
		if u.Unused() {
			u.Where = g.where(u.Table, bodies)
		}
		g.Tables = append(g.Tables, *u)
	}
	slices.SortFunc(g.Tables, func(a, b TableUse) int { return strings.Compare(a.Table, b.Table) })
}

// touched returns the tables that a statement itself opened and locked, those of which it or what it called read or wrote a
// row, and the texts of all statements that ran in it. A table that a stored program names is locked by the statement that
// calls the program (https://dev.mysql.com/doc/refman/8.4/en/stored-program-restrictions.html and lock-tables.html,
// "prelocking"), whether the program uses it or not.
func (n *Node) touched() (opened, used map[string]bool, texts []string) {
	opened, used = map[string]bool{}, map[string]bool{}
	n.Walk(func(x *Node, _ int) bool {
		switch {
		case x.Kind == KindStatement:
			if x.SQL != "" {
				texts = append(texts, x.SQL)
			}
		case x.Kind == KindWait && x.Object != nil && x.Object.Table() != "":
			if strings.HasPrefix(x.Name, "wait/io/table/") {
				used[x.Object.Table()] = true
			} else if strings.HasPrefix(x.Name, "wait/lock/table/") && x.statement() == n {
				opened[x.Object.Table()] = true
			}
		}
		return true
	})
	return opened, used, texts
}

// silent reports whether an instruction in a statement ran a query of which neither text nor rows were recorded: an expression
// such as (SELECT COUNT(*) FROM t), for which InnoDB of MySQL 8 counts rows without reporting them. Any table may be its.
func (n *Node) silent() (found bool) {
	n.Walk(func(x *Node, _ int) bool {
		if !x.Instruction() || x.SQL != "" {
			return !found
		}
		for _, c := range x.Children {
			if c.Kind == KindStage && phaseOf(c.Name) == phaseExecute && !c.readsRows() {
				found = true
			}
		}
		return !found
	})
	return found
}

func (n *Node) readsRows() bool {
	return slices.ContainsFunc(n.Children, func(c *Node) bool { return strings.HasPrefix(c.Name, "wait/io/table/") })
}

// statement is the innermost statement that a node happened in.
func (n *Node) statement() *Node {
	for p := n.Parent; p != nil; p = p.Parent {
		if p.Kind == KindStatement {
			return p
		}
	}
	return nil
}

// named reports whether one of the texts has the table's name as a word.
func named(texts []string, table string) bool {
	_, name, _ := strings.Cut(table, ".")
	for _, s := range texts {
		if wordAt(s, name) >= 0 {
			return true
		}
	}
	return false
}

// wordAt finds a name in a text that is not part of a longer one, in any case of letters: -1 when it is not there.
func wordAt(text, name string) int {
	if name == "" {
		return -1
	}
	text, name = strings.ToLower(text), strings.ToLower(name)
	part := func(b byte) bool {
		return b == '_' || b == '$' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 0x80
	}
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			return -1
		}
		i += from
		end := i + len(name)
		if (i == 0 || !part(text[i-1])) && (end == len(text) || !part(text[end])) {
			return i
		}
		from = i + 1
	}
}

// where says in which lines of which stored programs below a table is named.
func (g *MapNode) where(table string, bodies map[string]string) (out []Place) {
	_, name, _ := strings.Cut(table, ".")
	seen := map[string]bool{}
	var visit func(g *MapNode)
	visit = func(g *MapNode) {
		if g.Kind == "program" && !seen[g.Name] {
			seen[g.Name] = true
			if i := wordAt(bodies[g.Name], name); i >= 0 {
				_, short, _ := strings.Cut(g.Name, " ")
				place := Place{Program: short}
				if body := strings.TrimSpace(bodies[g.Name]); strings.Contains(body, "\n") {
					place.Line = 1 + strings.Count(bodies[g.Name][:i], "\n")
				}
				out = append(out, place)
			}
		}
		for _, c := range g.Children {
			visit(c)
		}
	}
	visit(g)
	return out
}
