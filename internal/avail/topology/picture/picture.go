// Package picture is a topology as it is drawn: each server and each link with its state, a few words, and its place. It remembers: a server that answered
// before and does not now keeps its place, and what it said last is drawn as such. Pure.
package picture

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/fleet"
)

// States of servers and links. Colour is made of them, and a shape and words say the same.
const (
	OK       = "ok"
	Warning  = "warning"
	Critical = "critical"
	Unknown  = "unknown" // it was never seen, and nobody is known to need it
)

// What a link is.
const (
	Runs       = "runs"
	Late       = "late"       // it runs, and the replica is behind
	Frozen     = "frozen"     // it runs, and nothing comes though there is something
	Stopped    = "stopped"    // somebody stopped it
	Connecting = "connecting" // it cannot reach its source
	Broken     = "broken"     // an error ended it
	Listed     = "listed"     // only the source tells of it
	Remembered = "remembered" // the replica does not answer: it is as it was when it did
)

const (
	// Silence is how long a server may be silent before that is more than a slow answer.
	Silence = 30 * time.Second
	// forget is how long a server that is not watched and that nobody tells of any more is drawn.
	forget = time.Hour
	// A replica is late from lateFrom on, until it is less than lateUntil behind, not counting a delay that is wanted.
	lateFrom, lateUntil = 60, 30
)

// Picture is a topology at one moment.
type Picture struct {
	Time      time.Time `json:"time"`           // when it was looked at
	State     string    `json:"state"`          // the worst of all: ok, warning, critical, unknown
	Words     string    `json:"words"`          // what goes on, in a sentence
	Nodes     []Node    `json:"nodes"`          // by name
	Links     []Link    `json:"links"`          // by replica, then by source
	Boxes     []Box     `json:"boxes"`          // clusters
	Surprises []string  `json:"surprises"`      // what does not fit together
	Left      int       `json:"left,omitempty"` // how many addresses were told of and not asked
	Width     float64   `json:"width"`          // of the drawing, in pixels
	Height    float64   `json:"height"`         // likewise
}

// Node is a server in the picture.
type Node struct {
	ID        string    `json:"id"` // stays the same from one look to the next
	Name      string    `json:"name"`
	Instance  string    `json:"instance,omitempty"`    // the ID under which it is watched; "": it is not, others tell of it
	Addresses []string  `json:"addresses,omitempty"`   // host:port, or the path of a socket, under which it answered, or is said to be
	UUID      string    `json:"server_uuid,omitempty"` // "" on MariaDB, which has none
	ServerID  string    `json:"server_id,omitempty"`
	Server    string    `json:"server,omitempty"`       // flavour and version, as it said last
	Role      string    `json:"role"`                   // primary, intermediate, replica, member, single; unknown
	State     string    `json:"state"`                  // ok, warning, critical, unknown: the worst of it and of the links by which it replicates
	Since     time.Time `json:"since"`                  // when that state was first seen
	Words     []string  `json:"words"`                  // what is to be known of it, the worst first
	Seen      bool      `json:"seen"`                   // it answered
	Answered  time.Time `json:"answered,omitzero"`      // when it last did
	Why       string    `json:"why,omitempty"`          // why it was not seen: refused, timeout, login, full …
	WhyText   string    `json:"why_text,omitempty"`     // the same in the words of the error
	Writable  bool      `json:"writable"`               // accounts without special privileges may write
	Offline   bool      `json:"offline_mode,omitempty"` // accounts without special privileges may not connect
	SemiSync  string    `json:"semi_sync,omitempty"`    // in words; "": it is not set
	Errant    bool      `json:"errant,omitempty"`       // it has transactions that none of its sources has
	Cluster   string    `json:"cluster,omitempty"`      // its name; "": it is in none
	Member    string    `json:"member,omitempty"`       // its state in the cluster
	NoQuorum  bool      `json:"no_quorum,omitempty"`    // it belongs to a part of the cluster without quorum
	Partly    string    `json:"partly,omitempty"`       // why not all of it was seen
	ToldBy    []string  `json:"told_by,omitempty"`      // names of the servers that tell of it
	Findings  []Finding `json:"findings,omitempty"`     // what was diagnosed of it, the worst first
	X         float64   `json:"x"`                      // its upper left corner
	Y         float64   `json:"y"`                      // likewise
	W         float64   `json:"width"`                  // of its box, in pixels
	H         float64   `json:"height"`                 // likewise
}

// Link is that a server replicates from another.
type Link struct {
	Source  int       `json:"source"`            // index into nodes
	Replica int       `json:"replica"`           // index into nodes
	Channel string    `json:"channel,omitempty"` // its name
	Kind    string    `json:"kind"`              // runs, late, frozen, stopped, connecting, broken, listed, remembered
	State   string    `json:"state"`             // ok, warning, critical, unknown
	Words   string    `json:"words"`
	Error   int       `json:"error,omitempty"`          // its number
	Behind  *int      `json:"behind_seconds,omitempty"` // as the replica says; not known in history
	Missing *uint64   `json:"missing,omitempty"`        // transactions of the source that the replica lacks; not known in history
	Delay   int       `json:"delay_seconds,omitempty"`  // that it is to stay behind
	Seen    time.Time `json:"seen"`                     // when the replica, or the source, last told of it
	Back    bool      `json:"back,omitempty"`           // it leads against the direction of the drawing: it closes a ring, or is a further source
	Path    string    `json:"path"`                     // of the drawing, as SVG writes it
}

// Box is a cluster, around its members.
type Box struct {
	Cluster string  `json:"cluster"` // its name
	Words   string  `json:"words"`   // what it is and how it is
	State   string  `json:"state"`   // ok, warning, critical, unknown
	X       float64 `json:"x"`       // its upper left corner, in pixels
	Y       float64 `json:"y"`       // likewise
	W       float64 `json:"width"`   // of the box, in pixels
	H       float64 `json:"height"`  // likewise
}

// Watched is a server that is watched.
type Watched struct{ ID, Name, Address string }

// Of makes the picture of a topology, with what was diagnosed, by the names of its servers. before is the one that was made last, which is remembered; nil: there
// is none.
func Of(t *topology.Topology, watched []Watched, before *Picture, found map[string][]Finding) *Picture {
	m := &maker{t: t, found: found, p: &Picture{Time: t.Time, Left: t.Left, Surprises: []string{}}, before: before, at: make([]int, len(t.Nodes))}
	for _, s := range t.Surprises {
		m.p.Surprises = append(m.p.Surprises, s.Text)
	}
	for i := range t.Nodes {
		m.node(i, watched)
	}
	for i := range t.Links {
		m.link(&t.Links[i])
	}
	m.remember()
	m.order()
	m.judge()
	m.p.Dress()
	return m.p
}

// maker makes a picture.
type maker struct {
	t      *topology.Topology
	p      *Picture
	before *Picture
	found  map[string][]Finding
	at     []int // the node of the picture, by node of the topology
}

// known finds a node that is one of the picture: by what it is, then by where it answers.
func known(nodes []Node, n *Node) int {
	if n.UUID != "" && n.Seen { // a copy of a data directory has the same UUID, and another place
		if i := slices.IndexFunc(nodes, func(o Node) bool {
			return o.UUID == n.UUID && o.ServerID == n.ServerID && meet(o.Addresses, n.Addresses)
		}); i >= 0 {
			return i
		}
	}
	if n.Instance != "" {
		return slices.IndexFunc(nodes, func(o Node) bool { return o.Instance == n.Instance })
	}
	return slices.IndexFunc(nodes, func(o Node) bool {
		return meet(o.Addresses, n.Addresses) && (o.UUID == "" || n.UUID == "" || strings.EqualFold(o.UUID, n.UUID)) || !n.Seen && n.UUID != "" && strings.EqualFold(o.UUID, n.UUID)
	})
}

// meet reports whether two lists of addresses have one in common.
func meet(a, b []string) bool {
	return slices.ContainsFunc(a, func(x string) bool {
		return slices.ContainsFunc(b, func(y string) bool { return strings.EqualFold(x, y) })
	})
}

// node takes a node of the topology. One that does not answer may be there twice: under the address by which it is watched, and under that which others tell.
func (m *maker) node(i int, watched []Watched) {
	t := &m.t.Nodes[i]
	n := Node{ID: t.Name, Name: t.Name, Addresses: t.Addresses, UUID: t.UUID, ServerID: t.ServerID, Role: m.t.Role(i), Seen: t.Seen, ToldBy: t.ToldBy, Findings: m.found[t.Name]}
	for _, w := range watched {
		if slices.ContainsFunc(t.Addresses, func(a string) bool { return strings.EqualFold(a, w.Address) }) {
			n.ID, n.Name, n.Instance = w.ID, w.Name, w.ID
			break
		}
	}
	if t.Seen {
		n.Server, n.Writable, n.Offline, n.SemiSync, n.Errant, n.Answered = t.Short(), t.Writes.Open(), t.Writes.Offline, t.SemiSync.Words(), t.Errant != "", m.t.Time
		if t.Unseen != nil {
			n.Partly = t.Unseen.Words()
		}
		if g := t.Group; g != nil {
			n.Cluster, n.Member, n.NoQuorum = g.Name, g.State, !g.Primary
		}
	} else if t.Unseen != nil {
		n.Why, n.WhyText = t.Unseen.Kind, t.Unseen.Text
	}
	if m.before != nil {
		if k := known(m.before.Nodes, &n); k >= 0 {
			n.takeOver(&m.before.Nodes[k])
		}
	}
	same := slices.IndexFunc(m.p.Nodes, func(o Node) bool { return o.ID == n.ID })
	if same < 0 {
		m.at[i] = len(m.p.Nodes)
		m.p.Nodes = append(m.p.Nodes, n)
		return
	}
	m.at[i] = same
	o := &m.p.Nodes[same]
	if n.Seen && !o.Seen || n.Seen == o.Seen && n.Instance != "" && o.Instance == "" {
		n, *o = *o, n
	}
	for _, a := range n.Addresses {
		if !meet(o.Addresses, []string{a}) {
			o.Addresses = append(slices.Clone(o.Addresses), a)
		}
	}
	o.ToldBy = append(o.ToldBy, n.ToldBy...)
}

// takeOver keeps what was known of a node.
func (n *Node) takeOver(o *Node) {
	n.ID, n.Name, n.Instance = o.ID, o.Name, cmp.Or(n.Instance, o.Instance)
	n.State, n.Since = o.State, o.Since
	if n.Partly != "" && n.Cluster == "" { // it may not have come so far
		n.Cluster, n.Member, n.NoQuorum = o.Cluster, o.Member, o.NoQuorum
	}
	if n.Role == "unknown" || n.Role == "single" && (n.Partly != "" || !n.Seen) {
		n.Role = o.Role
	}
	if n.Seen {
		return
	}
	for _, a := range o.Addresses {
		if !meet(n.Addresses, []string{a}) {
			n.Addresses = append(slices.Clone(n.Addresses), a)
		}
	}
	n.UUID, n.ServerID, n.Server, n.Answered = cmp.Or(n.UUID, o.UUID), cmp.Or(n.ServerID, o.ServerID), o.Server, o.Answered
	n.Cluster = o.Cluster
}

// Resume makes a picture that was kept one to go on from, if it was last seen so at a time: what was seen then was seen until then.
func (p *Picture) Resume(last time.Time) {
	for i := range p.Nodes {
		if p.Nodes[i].Seen {
			p.Nodes[i].Answered = last
		}
	}
	for i := range p.Links {
		if p.Links[i].Kind != Remembered {
			p.Links[i].Seen = last
		}
	}
	p.Time = last
}

// link takes a link of the topology.
func (m *maker) link(t *topology.Link) {
	l := Link{Source: m.at[t.Source], Replica: m.at[t.Replica], Kind: Listed, State: Unknown, Words: m.t.LinkWords(t), Missing: t.Missing, Seen: m.t.Time}
	if slices.ContainsFunc(m.p.Links, func(o Link) bool {
		return o.Source == l.Source && o.Replica == l.Replica && (t.Channel == nil || o.Channel == t.Channel.Name)
	}) {
		return
	}
	if ch := t.Channel; ch != nil {
		l.Channel, l.Behind, l.Delay = ch.Name, ch.Behind, ch.Delay
		l.Kind, l.State, l.Error = m.kind(ch, &l, t.Frozen > 0)
	}
	m.p.Links = append(m.p.Links, l)
}

// kind is how replication runs on a channel.
func (m *maker) kind(ch *topology.Channel, l *Link, frozen bool) (kind, state string, number int) {
	connecting := ch.IORunning == "Connecting" || ch.IORunning == "Preparing"
	failed := func(e fleet.ReplicaError) bool { return e.Number != 0 || e.Text != "" }
	switch {
	case !ch.Applying() && failed(ch.SQL):
		return Broken, Critical, ch.SQL.Number
	case !ch.Receiving() && !connecting && failed(ch.IO):
		return Broken, Critical, ch.IO.Number
	case !ch.Applying() || !ch.Receiving() && !connecting:
		return Stopped, Warning, 0
	case connecting && failed(ch.IO):
		return Connecting, Critical, ch.IO.Number
	case connecting:
		return Connecting, Warning, 0
	case frozen:
		return Frozen, Critical, 0
	case ch.Behind != nil:
		limit := lateFrom
		if o := m.was(l); o != nil && o.Kind == Late {
			limit = lateUntil
		}
		if *ch.Behind-ch.Delay >= limit {
			return Late, Warning, 0
		}
	}
	return Runs, OK, 0
}

// was is the same link in the picture before; nil: it was not there.
func (m *maker) was(l *Link) *Link {
	if m.before == nil {
		return nil
	}
	for i := range m.before.Links {
		o := &m.before.Links[i]
		if o.Channel == l.Channel && m.before.Nodes[o.Source].ID == m.p.Nodes[l.Source].ID && m.before.Nodes[o.Replica].ID == m.p.Nodes[l.Replica].ID {
			return o
		}
	}
	return nil
}

// remember keeps what servers that do not answer said last: whom they replicate from, and they themselves if nobody else tells of them any more.
func (m *maker) remember() {
	if m.before == nil {
		return
	}
	place := map[string]int{}
	for i := range m.p.Nodes {
		place[m.p.Nodes[i].ID] = i
	}
	for i := range m.before.Nodes {
		o := m.before.Nodes[i]
		if _, there := place[o.ID]; !there && !o.Answered.IsZero() && o.Instance == "" && m.p.Time.Sub(o.Answered) < forget {
			o.Seen, o.Why, o.WhyText, o.ToldBy, o.Partly = false, cmp.Or(o.Why, "untold"), cmp.Or(o.WhyText, "no server tells of it any more"), nil, ""
			place[o.ID] = len(m.p.Nodes)
			m.p.Nodes = append(m.p.Nodes, o)
		}
	}
	for _, o := range m.before.Links {
		source, sure := place[m.before.Nodes[o.Source].ID]
		replica, still := place[m.before.Nodes[o.Replica].ID]
		if !sure || !still || m.p.Nodes[replica].Seen && m.p.Nodes[replica].Partly == "" {
			continue
		}
		l := Link{Source: source, Replica: replica, Channel: o.Channel, Kind: Remembered, State: Unknown, Seen: o.Seen, Delay: o.Delay}
		if o.Kind == Listed { // nobody lists it any more, and the replica never said so
			continue
		}
		m.p.Links = slices.DeleteFunc(m.p.Links, func(n Link) bool { return n.Source == source && n.Replica == replica && n.Kind == Listed })
		if slices.ContainsFunc(m.p.Links, func(n Link) bool { return n.Source == source && n.Replica == replica && n.Channel == o.Channel }) {
			continue
		}
		m.p.Links = append(m.p.Links, l)
	}
}

// order puts nodes and links in their order.
func (m *maker) order() {
	order := make([]int, len(m.p.Nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Or(strings.Compare(m.p.Nodes[a].Name, m.p.Nodes[b].Name), a-b) })
	nodes, place := make([]Node, len(order)), make([]int, len(order))
	for i, o := range order {
		nodes[i], place[o] = m.p.Nodes[o], i
		slices.Sort(nodes[i].ToldBy)
		nodes[i].ToldBy = slices.Compact(nodes[i].ToldBy)
	}
	m.p.Nodes = nodes
	for i := range m.p.Links {
		l := &m.p.Links[i]
		l.Source, l.Replica = place[l.Source], place[l.Replica]
	}
	slices.SortStableFunc(m.p.Links, func(a, b Link) int {
		return cmp.Or(a.Replica-b.Replica, a.Source-b.Source, strings.Compare(a.Channel, b.Channel))
	})
}

// judge gives each node its state, and since when it has it.
func (m *maker) judge() {
	for i := range m.p.Nodes {
		n := &m.p.Nodes[i]
		state := m.p.judged(i)
		if n.Since.IsZero() || n.State != state {
			n.Since = m.p.Time
		}
		n.State = state
	}
}

// judged is the state of a node.
func (p *Picture) judged(i int) string {
	n := &p.Nodes[i]
	if !n.Seen {
		switch {
		case (n.Why == "timeout" || n.Why == "hung" || n.Why == "dropped") && !n.Answered.IsZero() && p.Time.Sub(n.Answered) < Silence, n.Why == "login", n.Why == "untold":
			return n.diagnosed(Warning)
		case n.Answered.IsZero() && n.Instance == "":
			return n.diagnosed(Unknown)
		}
		return Critical
	}
	state := OK
	switch {
	case n.NoQuorum, n.Offline:
		state = Critical
	case n.Errant, n.Partly != "", n.Member != "" && n.Member != "Synced" && n.Member != "ONLINE":
		state = Warning
	}
	for _, l := range p.Links {
		if l.Replica == i {
			state = Worse(state, l.State)
		}
	}
	return n.diagnosed(state)
}

// diagnosed is the worse of a state and of what was diagnosed.
func (n *Node) diagnosed(state string) string {
	for _, f := range n.Findings {
		switch f.Severity {
		case fleet.SeverityCritical:
			state = Worse(state, Critical)
		case fleet.SeverityWarning:
			state = Worse(state, Warning)
		}
	}
	return state
}

// Worse is the worse of two states. What is not known of a link makes no server worse.
func Worse(a, b string) string {
	order := []string{Unknown, OK, Warning, Critical}
	return order[max(slices.Index(order, a), slices.Index(order, b), 0)]
}

// Key says what of a picture is structure and state: as long as it stays the same, nothing changed.
func (p *Picture) Key() string {
	var b strings.Builder
	for i := range p.Nodes {
		n := &p.Nodes[i]
		fmt.Fprintf(&b, "%q %q %q %s %s %t %q %t %t %q %t %q %q %t %q\n", n.ID, n.Name, n.Server, n.Role, n.State, n.Seen, n.Why, n.Writable, n.Offline, n.SemiSync, n.Errant, n.Cluster, n.Member, n.NoQuorum, n.Partly)
		found := make([]string, len(n.Findings))
		for k, f := range n.Findings {
			found[k] = fmt.Sprintf(" %s %q %d %q\n", f.ID, f.Subject, f.Severity, f.Case)
		}
		slices.Sort(found) // their order is by how bad they are now
		b.WriteString(strings.Join(found, ""))
	}
	for _, l := range p.Links {
		fmt.Fprintf(&b, "%q %q %q %s %d %d\n", p.Nodes[l.Source].ID, p.Nodes[l.Replica].ID, l.Channel, l.Kind, l.Error, l.Delay)
	}
	fmt.Fprintf(&b, "%q %d", p.Surprises, p.Left)
	return b.String()
}

// Kept is what history keeps of a picture: not what changes without a change of structure or state, and not what is made of the rest.
func (p *Picture) Kept() *Picture {
	k := *p
	k.Nodes, k.Links, k.Boxes = slices.Clone(p.Nodes), slices.Clone(p.Links), nil
	for i := range k.Links {
		l := &k.Links[i]
		l.Behind, l.Missing, l.Path = nil, nil, ""
		if l.Kind == Runs || l.Kind == Late {
			l.Words = ""
		}
	}
	return &k
}
