// Package diagnose says in words what is wrong with a replication, by a table of codes: what a topology shows goes in, diagnoses come out, the worst first.
// It is pure. A sentence says no more than was seen; what follows from something else names it as its cause.
package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
)

// Diagnosis is that a code holds.
type Diagnosis struct {
	Code       string         `json:"code"` // as the table has it
	Severity   fleet.Severity `json:"severity"`
	Nodes      []string       `json:"nodes"`                // names: first whom it is about
	Subject    string         `json:"subject,omitempty"`    // tells diagnoses of one code and server apart: the channel, the other server
	What       string         `json:"what"`                 // one sentence
	Evidence   []string       `json:"evidence,omitempty"`   // by what it was seen, in sentences
	Certain    string         `json:"certain"`              // what is certain
	NotSeen    string         `json:"not_seen"`             // what is not seen; "-": nothing that matters
	Next       string         `json:"next"`                 // what to do, in words
	On         string         `json:"on,omitempty"`         // the server on which Statements are run
	Statements string         `json:"statements,omitempty"` // as its flavour and version has them; "": something has to be done elsewhere
	Case       string         `json:"case,omitempty"`       // the error that it is about
	Because    *Cause         `json:"because,omitempty"`    // what it follows from; nil: nothing that was found
	Since      time.Time      `json:"since,omitzero"`       // since when it is so; what held before and after a time in which nobody looked counts as one; zero: that is not known

	node  int // index of the first of Nodes, or -1
	link  int // index of the link that it is about, or -1
	order int // of its code in the table
}

// Cause is another diagnosis.
type Cause struct {
	Code string `json:"code"` // as the table has it
	Node string `json:"node"`
}

// Finding is the diagnosis as findings are told.
func (d Diagnosis) Finding() fleet.Finding {
	id, kind := finding(d.Code)
	subject := d.Subject
	if id == "repl.config" {
		subject = kind
	}
	why := strings.Join(d.Evidence, "; ")
	if d.NotSeen != "-" {
		why += "; not seen: " + d.NotSeen
	}
	if d.Because != nil {
		why += "; because of " + d.Because.Code + " of " + d.Because.Node
	}
	return fleet.Finding{ID: id, Subject: subject, Severity: d.Severity, Case: d.Case, Since: d.Since, Trouble: fleet.Trouble{What: d.What, Why: strings.TrimPrefix(why, "; "), Remedy: d.remedyWords()}}
}

// remedyWords is what to do, with the condition under which statements may be run.
func (d Diagnosis) remedyWords() string {
	if d.Statements == "" {
		return d.Next
	}
	return d.Next + "; on " + d.On + ": " + d.Statements
}

// view is a topology that is looked at.
type view struct {
	*topology.Topology
	codes map[string]int // places in the table
	table []Code
	up    [][]int // links by which a node replicates
	down  [][]int // links of those that replicate from it
	rings [][]int
	ring  []int                 // the ring that a node is in, or -1
	sets  map[int]mysql.GTIDSet // gtid_executed of nodes, as far as it was read
	part  []int                 // the replication that a node belongs to: one number for all that links or groups join
	found []Diagnosis
}

// Diagnose says what is wrong: what is no consequence of something else first, in it the worst first.
func Diagnose(t *topology.Topology) []Diagnosis {
	v := newView(t)
	for _, rule := range []func(*view){(*view).unseen, (*view).sources, (*view).writers, (*view).servers, (*view).groups, (*view).channels, (*view).rounds, (*view).semiSync,
		(*view).transactions, (*view).pairs, (*view).identities, (*view).settings, (*view).filters, (*view).seeing} {
		rule(v)
	}
	v.causes()
	slices.SortStableFunc(v.found, func(a, b Diagnosis) int {
		return cmp.Or(boolOrder(a.Because != nil, b.Because != nil), int(b.Severity-a.Severity), a.order-b.order, strings.Compare(a.Nodes[0], b.Nodes[0]), strings.Compare(a.Subject, b.Subject))
	})
	return v.found
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func newView(t *topology.Topology) *view {
	v := &view{Topology: t, codes: map[string]int{}, sets: map[int]mysql.GTIDSet{}, table: Codes(), up: make([][]int, len(t.Nodes)), down: make([][]int, len(t.Nodes)), ring: make([]int, len(t.Nodes)), part: make([]int, len(t.Nodes))}
	for i, c := range v.table {
		v.codes[c.ID] = i
	}
	for i := range v.ring {
		v.ring[i], v.part[i] = -1, i
	}
	for i, l := range t.Links {
		v.up[l.Replica] = append(v.up[l.Replica], i)
		v.down[l.Source] = append(v.down[l.Source], i)
		v.join(l.Replica, l.Source)
	}
	groups := map[string]int{}
	for i := range t.Nodes {
		if g := t.Nodes[i].Group; g != nil && g.Name != "" {
			if first, ok := groups[g.Name]; ok {
				v.join(i, first)
			}
			groups[g.Name] = i
		}
	}
	for i := range v.part {
		v.part[i] = v.top(i)
	}
	for _, ring := range t.Rings() {
		if len(ring) > 1 {
			for _, i := range ring {
				v.ring[i] = len(v.rings)
			}
			v.rings = append(v.rings, ring)
		}
	}
	return v
}

// top is the node that stands for all that were joined with one.
func (v *view) top(i int) int {
	for v.part[i] != i {
		v.part[i] = v.part[v.part[i]]
		i = v.part[i]
	}
	return i
}

func (v *view) join(a, b int) { v.part[v.top(a)] = v.top(b) }

// add notes that a code holds of a node. More is filled in by the caller, through the pointer, before the next add.
func (v *view) add(code string, node, link int, what string, args ...any) *Diagnosis {
	place := v.codes[code]
	c := &v.table[place]
	d := Diagnosis{Code: code, Severity: c.Severity, What: oneline.Of(fmt.Sprintf(what, args...)), Certain: c.Certain, NotSeen: c.NotSeen, Next: c.Next, node: node, link: link, order: place, Nodes: []string{v.name(node)}}
	if link >= 0 && v.Links[link].Channel != nil {
		d.Subject = v.Links[link].Channel.Name
	}
	v.found = append(v.found, d)
	return &v.found[len(v.found)-1]
}

func (v *view) name(node int) string {
	if node < 0 {
		return ""
	}
	return v.Nodes[node].Name
}

func (v *view) names(nodes []int) []string {
	out := make([]string, len(nodes))
	for i, n := range nodes {
		out[i] = v.Nodes[n].Name
	}
	return out
}

// server is a node's server, which knows its statements.
func (v *view) server(node int) mysql.Server { return mysql.Of(v.Nodes[node].Server) }

// see adds a sentence of evidence.
func (d *Diagnosis) see(format string, args ...any) *Diagnosis {
	d.Evidence = append(d.Evidence, oneline.Of(fmt.Sprintf(format, args...)))
	return d
}

// with names more nodes that it is about.
func (d *Diagnosis) with(names ...string) *Diagnosis {
	d.Nodes = append(d.Nodes, names...)
	return d
}

// remedy names statements, and the server on which they are run.
func (d *Diagnosis) remedy(on, statements string) *Diagnosis {
	if statements != "" {
		d.On, d.Statements = on, statements
	}
	return d
}

// mostNamed is how many servers a sentence names.
const mostNamed = 5

// listed is a list of names, the first of them.
func listed(names []string) string {
	if more := len(names) - mostNamed; more > 0 {
		return strings.Join(names[:mostNamed], ", ") + " and " + digits.Counted(more, "more server")
	}
	return strings.Join(names, ", ")
}

// source is the name of a link's source, and of its channel if it has one.
func (v *view) source(l *topology.Link) string {
	name := v.name(l.Source)
	if l.Channel != nil && l.Channel.Name != "" {
		name += " (channel " + l.Channel.Name + ")"
	}
	return name
}

// causes marks what follows from something else that was found.
func (v *view) causes() {
	at := map[int][]int{} // diagnoses by node
	for i := range v.found {
		if n := v.found[i].node; n >= 0 {
			at[n] = append(at[n], i)
		}
	}
	first := func(node int, codes ...string) *Cause {
		for _, code := range codes {
			for _, i := range at[node] {
				if d := &v.found[i]; d.Code == code || strings.HasSuffix(code, ":") && strings.HasPrefix(d.Code, code) {
					return &Cause{d.Code, d.Nodes[0]}
				}
			}
		}
		return nil
	}
	gone := []string{"primary.dead", "primary.dead_with_replicas", "primary.silent", "primary.partition", "intermediate.dead", "intermediate.silent", "server.hung"}
	for i := range v.found {
		d := &v.found[i]
		var source = -1
		if d.link >= 0 {
			source = v.Links[d.link].Source
		}
		switch id, kind := finding(d.Code); {
		case id == "repl.stopped" && kind == "cannot_connect":
			d.Because = first(source, append(gone, "conn.saturation")...)
		case id == "repl.stopped" && kind == "full":
			d.Because = first(source, "conn.saturation")
		case id == "repl.stopped" && (kind == "server_id" || kind == "server_uuid"):
			d.Because = cmp.Or(first(d.node, "repl.config:"+kind), first(source, "repl.config:"+kind))
		case id == "repl.stopped" && kind == "purged":
			d.Because = first(d.node, "repl.purged", "repl.errant_gtid")
		case id == "repl.stopped" && d.Code != "repl.stopped:by_command":
			d.Because = cmp.Or(first(d.node, "server.no_room"), first(d.node, "repl.gtid_modes"))
		case id == "repl.lag":
			d.Because = cmp.Or(first(source, gone...), first(source, "repl.lag", "repl.stopped:"), first(d.node, "lock.global"))
		case id == "repl.frozen":
			d.Because = first(source, gone...)
		case id == "ring.broken":
			d.Because = cmp.Or(first(d.node, gone...), first(d.node, "server.down"), first(d.node, "repl.stopped:", "server.no_room"))
		case id == "primary.no_replica_runs":
			// each replica's own trouble stands below it
		case id == "primary.read_only", id == "primary.none":
			d.Because = first(d.node, "galera.non_primary", "group.no_quorum", "group.not_online")
		case id == "repl.writable" || id == "repl.errant_gtid":
			d.Because = first(d.node, "repl.split_brain")
		case id == "commit.semisync" || id == "semisync.off" || id == "semisync.too_few":
			d.Because = v.silent(d.node, first)
		case id == "server.hung":
			d.Because = first(d.node, "server.no_room")
		case id == "topology.not_all_seen":
			d.Because = first(d.node, "server.no_room", "server.hung")
		case id == "galera.not_synced":
			d.Because = first(d.node, "galera.non_primary")
		case id == "group.member_missing":
			d.Because = first(d.node, "server.hung", "server.no_access", "conn.saturation")
		}
	}
	v.breakCircles()
}

// breakCircles takes back causes that lead back to where they began, as in a ring in which all are late.
func (v *view) breakCircles() {
	at := map[Cause]*Diagnosis{}
	for i := range v.found {
		if d := &v.found[i]; at[Cause{d.Code, d.Nodes[0]}] == nil {
			at[Cause{d.Code, d.Nodes[0]}] = d
		}
	}
	for i := range v.found {
		d := &v.found[i]
		own := Cause{d.Code, d.Nodes[0]}
		for c, steps := d.Because, 0; c != nil; steps++ {
			if *c == own || steps > len(v.found) {
				d.Because = nil
				break
			}
			next := at[*c]
			if next == nil {
				break
			}
			c = next.Because
		}
	}
}

// silent is why a source has too few replicas that acknowledge, where one of them tells.
func (v *view) silent(node int, first func(int, ...string) *Cause) *Cause {
	for _, k := range v.down[node] {
		if c := first(v.Links[k].Replica, "semisync.not_acknowledging", "repl.stopped:", "server.no_room", "server.hung"); c != nil {
			return c
		}
	}
	return nil
}
