package topology

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/follow"
)

// Start is a server that a search begins with.
type Start struct {
	Name    string // what people call it; "": its address
	Address string // host:port, or the path of a socket
}

// Search finds all servers that belong together, from any of them.
type Search struct {
	// Look asks the server at an address. What was read before an error counts.
	Look func(ctx context.Context, address string) (Facts, error)
	// Again reads once more which transactions a server has, as Facts.GTID.Executed or State: of those that others replicate from, after these were asked.
	Again func(ctx context.Context, address string) (string, error)
	// Received reads once more how far a server's channels have received; nil: nobody finds those that receive nothing.
	Received func(ctx context.Context, address string) ([]Channel, error)
	// Failed says why a server did not answer.
	Failed func(error) Failure
	// Reach are other addresses to use, where those that servers know are not those by which they are reached from here: a host, or host:port.
	Reach map[string]string
	// Patience is how long one server may take, 5 seconds if it is 0.
	Patience time.Duration
	// Parallel is how many are asked at a time, 32 if it is 0.
	Parallel int
	// Most is how many addresses are asked, 1,000 if it is 0.
	Most int
	// Seen, if it is not nil, is told how many addresses were asked, and how many are known.
	Seen func(asked, known int)
	// Down leaves out sources and members of groups: only replicas are looked for.
	Down bool
	// Alone leaves out what others tell of: only the given servers are asked.
	Alone bool
}

const (
	patience = 5 * time.Second
	parallel = 32
	most     = 1000
)

// answer is what came of asking an address.
type answer struct {
	address string
	facts   Facts
	err     error
}

// expected is a server as another one tells of it.
type expected struct {
	by        int // the node that tells
	addresses []string
	elsewhere []string // where a replica may be if nobody answers at those: the hosts that read its source's binary log
	uuid, id  string
	replica   bool // it is a replica of the one that tells; else its source, or a member of its group
	channel   *Channel
}

// marked is the address of a channel's source, which Risso may have given to it; "" of others.
func (e *expected) marked() string {
	if e.channel == nil {
		return ""
	}
	return e.channel.Source
}

// discovery is a search that goes on.
type discovery struct {
	*Search
	t       *Topology
	known   map[string]bool // addresses in lower case that are asked, or were
	at      map[string]int  // the node that answered there
	failed  map[string]Failure
	maybe   map[string][]expected // addresses at which one that did not answer elsewhere is looked for
	queue   []string
	pending int
	waits   []expected
}

// Discover asks the servers that are given, those of which they tell, and so on. A server that does not answer is drawn as not seen. It ends early only with ctx,
// with what was found.
func (s *Search) Discover(ctx context.Context, starts []Start) *Topology {
	d := &discovery{Search: s, t: &Topology{Time: time.Now()}, known: map[string]bool{}, at: map[string]int{}, failed: map[string]Failure{}, maybe: map[string][]expected{}}
	names := map[string]string{}
	for _, start := range starts {
		names[strings.ToLower(start.Address)] = cmp.Or(start.Name, start.Address)
		d.enqueue(start.Address)
	}
	d.ask(ctx, names)
	for _, start := range starts {
		if f, is := d.failed[strings.ToLower(start.Address)]; is {
			name := names[strings.ToLower(start.Address)]
			d.t.Nodes = append(d.t.Nodes, Node{Name: name, Addresses: []string{start.Address}, Asked: true, Unseen: &f})
		}
	}
	d.name()
	d.resolve()
	d.again(ctx)
	d.frozen(ctx)
	d.t.sort()
	d.t.compare()
	return d.t
}

// name calls servers that were not given by an address that does not depend on which of them answered first.
func (d *discovery) name() {
	for i := range d.t.Nodes {
		n := &d.t.Nodes[i]
		slices.Sort(n.Addresses)
		switch {
		case n.Asked:
		case slices.Contains(n.Addresses, n.Reported):
			n.Name = n.Reported
		default:
			n.Name = n.Addresses[0]
		}
	}
}

// enqueue has an address asked, if it was not.
func (d *discovery) enqueue(address string) {
	key := strings.ToLower(address)
	if address == "" || d.known[key] {
		return
	}
	if len(d.known) >= cmp.Or(d.Most, most) {
		d.t.Left++
		return
	}
	d.known[key] = true
	d.queue = append(d.queue, address)
}

// ask asks the queue, and what it brings, several at a time.
func (d *discovery) ask(ctx context.Context, names map[string]string) {
	answers := make(chan answer)
	for len(d.queue) > 0 || d.pending > 0 {
		for len(d.queue) > 0 && d.pending < cmp.Or(d.Parallel, parallel) {
			address := d.queue[0]
			d.queue = d.queue[1:]
			d.pending++
			go func() {
				ctx, cancel := context.WithTimeout(ctx, cmp.Or(d.Patience, patience))
				defer cancel()
				facts, err := d.Look(ctx, d.Reached(address))
				answers <- answer{address, facts, err}
			}()
		}
		a := <-answers
		d.pending--
		d.take(a, names)
		if d.Seen != nil {
			d.Seen(len(d.known)-len(d.queue)-d.pending, len(d.known))
		}
	}
}

// Reached is the address by which another is reached from here.
func (s *Search) Reached(address string) string {
	if to := s.Reach[address]; to != "" {
		return to
	}
	host, port, err := net.SplitHostPort(address)
	if to := s.Reach[host]; err == nil && to != "" {
		return net.JoinHostPort(to, port)
	}
	return address
}

// take notes an answer, and what it tells of others.
func (d *discovery) take(a answer, names map[string]string) {
	key := strings.ToLower(a.address)
	name, given := names[key]
	if a.err != nil && a.facts.ServerID == "" {
		d.failed[key] = d.failure(a.err)
		for i := range d.waits {
			d.lookElsewhere(&d.waits[i])
		}
		return
	}
	if list := d.maybe[key]; len(list) > 0 && !given && !slices.ContainsFunc(list, func(e expected) bool { return a.facts.fits(&e) }) {
		return // somebody else, who has nothing to do with these
	}
	for i := range d.t.Nodes { // it was found by another address, too
		if n := &d.t.Nodes[i]; n.same(&a.facts) {
			n.Addresses = append(n.Addresses, a.address)
			d.at[key] = i
			if given && !n.Asked {
				n.Name, n.Asked = name, true
			}
			return
		}
	}
	if name = cmp.Or(name, a.address); strings.HasPrefix(name, "/") { // a socket's path says little, where others are called by their addresses
		name = net.JoinHostPort(a.facts.Hostname, strconv.Itoa(a.facts.Port))
	}
	n := Node{Name: name, Addresses: []string{a.address}, Asked: given, Seen: true, Facts: a.facts}
	if a.err != nil {
		f := d.failure(a.err)
		n.Unseen = &f
	}
	d.t.Nodes = append(d.t.Nodes, n)
	i := len(d.t.Nodes) - 1
	d.at[key] = i
	for _, e := range told(i, &a.facts, a.address) {
		d.waits = append(d.waits, e)
		if _, marked := follow.Marked(e.marked()); marked || d.Alone || d.Down && !e.replica {
			continue
		}
		if !slices.ContainsFunc(d.t.Nodes, func(n Node) bool { return n.is(&e) }) {
			for _, address := range e.addresses {
				d.enqueue(address)
			}
			d.lookElsewhere(&e)
		}
	}
}

// lookElsewhere has a replica asked where it connects from, if nobody answers where it is said to be: its report_host may be wrong.
func (d *discovery) lookElsewhere(e *expected) {
	if d.Alone || len(e.addresses) == 0 || slices.ContainsFunc(e.addresses, func(a string) bool { _, failed := d.failed[strings.ToLower(a)]; return !failed }) {
		return
	}
	for _, address := range e.elsewhere {
		if key := strings.ToLower(address); address != "" && !d.known[key] {
			d.maybe[key] = append(d.maybe[key], *e)
			d.enqueue(address)
		}
	}
}

// fits reports whether facts are of the server that another one tells of, by its UUID, or where there is none by its server_id.
func (f *Facts) fits(e *expected) bool {
	if e.uuid != "" && f.UUID != "" {
		return strings.EqualFold(e.uuid, f.UUID)
	}
	return e.id != "" && e.id != "0" && e.id == f.ServerID
}

// is reports whether a node is surely the server that another one tells of: it has that UUID, and is reached or wants to be known under one of those addresses. A
// copy of its data directory has the UUID only.
func (n *Node) is(e *expected) bool {
	return e.uuid != "" && strings.EqualFold(n.UUID, e.uuid) && slices.ContainsFunc(e.addresses, func(a string) bool {
		host, port, err := net.SplitHostPort(a)
		return strings.EqualFold(a, n.Reported) || slices.ContainsFunc(n.Addresses, func(own string) bool { return strings.EqualFold(a, own) }) ||
			err == nil && follow.SameHost(host, n.Hostname) && port == strconv.Itoa(n.Port)
	})
}

// failure says why a server did not answer.
func (d *discovery) failure(err error) Failure {
	f := d.Failed(err)
	if f.Kind == "hung" {
		f.Patience = cmp.Or(d.Patience, patience)
	}
	return f
}

// same reports whether facts are of the node: of one that has the same identity, and the same place. A copy of a data directory has the first only.
func (n *Node) same(f *Facts) bool {
	return n.UUID == f.UUID && n.ServerID == f.ServerID && n.Hostname == f.Hostname && n.Port == f.Port && n.DataDir == f.DataDir
}

// TellsLoopback reports whether a server tells of others by addresses that mean its own machine.
func (f *Facts) TellsLoopback() bool {
	loops := func(address string) bool {
		host, _, err := net.SplitHostPort(address)
		return err == nil && follow.Loopback(host)
	}
	return slices.ContainsFunc(f.Channels, func(c Channel) bool { return loops(c.Source) }) || slices.ContainsFunc(f.Listed, func(l Listed) bool { return follow.Loopback(l.Host) }) ||
		slices.ContainsFunc(f.Readers, follow.Loopback) || f.Group != nil && slices.ContainsFunc(f.Group.Members, func(m Member) bool { return loops(m.Address) })
}

// told are the servers of which one tells. An address that means the machine itself is that of the server's.
func told(by int, f *Facts, reached string) (out []expected) {
	own, _, err := net.SplitHostPort(reached)
	if err != nil || f.Here { // a socket, or a name for this machine
		own = "127.0.0.1"
	}
	there := func(address string) string {
		host, port, err := net.SplitHostPort(address)
		if err != nil || host == "" || port == "" || port == "0" {
			return ""
		}
		if follow.Loopback(host) {
			return net.JoinHostPort(own, port)
		}
		return address
	}
	for i := range f.Channels {
		ch := &f.Channels[i]
		if a := there(ch.Source); a != "" {
			out = append(out, expected{by: by, addresses: []string{a}, uuid: ch.SourceID, id: ch.SourceServerID, channel: ch})
		}
	}
	for _, l := range f.Listed {
		if l.Port == 0 { // no server, which tells its port: a program that reads the binary log, such as mysqlbinlog or Risso
			continue
		}
		e := expected{by: by, uuid: l.UUID, id: l.ServerID, replica: true}
		port := strconv.Itoa(l.Port)
		if l.Host != "" {
			e.addresses = append(e.addresses, there(net.JoinHostPort(l.Host, port)))
		}
		for _, host := range f.Readers {
			switch a := there(net.JoinHostPort(host, port)); {
			case a == "":
			case l.Host == "":
				e.addresses = append(e.addresses, a)
			default:
				e.elsewhere = append(e.elsewhere, a)
				if f.Port != l.Port { // its report_port may be wrong as well
					e.elsewhere = append(e.elsewhere, there(net.JoinHostPort(host, strconv.Itoa(f.Port))))
				}
			}
		}
		out = append(out, e)
	}
	if f.Group != nil {
		for _, m := range f.Group.Members {
			if a := there(m.Address); a != "" {
				out = append(out, expected{by: by, addresses: []string{a}, uuid: m.UUID})
			}
		}
	}
	return out
}

// sort puts nodes and links in their order.
func (t *Topology) sort() {
	order := make([]int, len(t.Nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(t.Nodes[a].Name, t.Nodes[b].Name) })
	nodes, place := make([]Node, len(order)), make([]int, len(order))
	for i, o := range order {
		nodes[i], place[o] = t.Nodes[o], i
		slices.Sort(nodes[i].ToldBy)
		nodes[i].ToldBy = slices.Compact(nodes[i].ToldBy)
	}
	t.Nodes = nodes
	for i := range t.Links {
		t.Links[i].Replica, t.Links[i].Source = place[t.Links[i].Replica], place[t.Links[i].Source]
	}
	slices.SortStableFunc(t.Links, func(a, b Link) int { return cmp.Or(a.Replica-b.Replica, a.Source-b.Source) })
}
