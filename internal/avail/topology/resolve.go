package topology

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/follow"
	"github.com/rissodb/risso/internal/mysql"
)

// resolve finds whom each server tells of: one that answered, or one that is drawn as not seen.
func (d *discovery) resolve() {
	seen := len(d.t.Nodes)
	for k := range d.waits { // what replicas say of their sources comes first: it is known best
		e := &d.waits[k]
		if e.channel == nil {
			continue
		}
		source := d.source(e, seen)
		if source < 0 && d.Down {
			continue
		}
		if source < 0 {
			source = d.find(e)
		}
		d.perhapsCopy(e, source)
		d.link(e, source, e.by)
	}
	for k := range d.waits {
		e := &d.waits[k]
		switch {
		case e.channel != nil || d.Down && !e.replica:
		case e.replica:
			d.listed(e)
		default:
			d.mention(d.find(e), e.by)
		}
	}
}

// source is the node that answered and that a channel comes from, or -1.
func (d *discovery) source(e *expected, seen int) int {
	servers := make([]follow.Server, seen)
	for i := range servers {
		servers[i] = d.t.Nodes[i].followed()
	}
	ch := follow.Channel{Source: e.channel.Source, SourceUUID: e.uuid, SourceID: e.id}
	for _, a := range e.addresses { // asked there, somebody else answered, or nobody
		ch.Elsewhere = ch.Elsewhere || d.known[strings.ToLower(a)]
	}
	return follow.Source(servers, e.by, ch)
}

// At is the node that another one comes to by an address, or -1.
func (t *Topology) At(node int, address string) int {
	servers := make([]follow.Server, len(t.Nodes))
	for i := range servers {
		servers[i] = t.Nodes[i].followed()
		servers[i].Other = !t.Nodes[i].Seen
	}
	return follow.Source(servers, node, follow.Channel{Source: address})
}

func (n *Node) followed() follow.Server {
	return follow.Server{UUID: n.UUID, NoUUID: n.Seen && !mysql.Of(n.Server).HasUUID(), ID: n.ServerID, Hostname: n.Hostname, Port: n.Port, Addresses: n.Addresses, Reported: n.Reported}
}

// find is the node of which a server tells: it has that UUID, or answers at one of those addresses. Else one is drawn that was not seen.
func (d *discovery) find(e *expected) int {
	fits := func(n *Node) bool {
		if e.uuid != "" && n.UUID != "" {
			return strings.EqualFold(e.uuid, n.UUID)
		}
		return e.id == "" || e.id == "0" || n.ServerID == "" || n.ServerID == e.id
	}
	at := slices.IndexFunc(d.t.Nodes, func(n Node) bool { return e.uuid != "" && strings.EqualFold(e.uuid, n.UUID) })
	for _, a := range e.addresses {
		i, answers := d.at[strings.ToLower(a)]
		switch {
		case answers && fits(&d.t.Nodes[i]) && (at < 0 || d.t.Nodes[i].UUID == d.t.Nodes[at].UUID): // of two with one UUID the one that answers there
			return i
		case answers && !fits(&d.t.Nodes[i]) && at < 0:
			d.otherServer(e, a, i)
		}
	}
	if at >= 0 {
		return at
	}
	for _, a := range e.elsewhere {
		if i, answers := d.at[strings.ToLower(a)]; answers && d.t.Nodes[i].fits(e) {
			return i
		}
	}
	for i := range d.t.Nodes { // it answers by its socket, and perhaps not to this account by TCP; or by another name of this machine
		if n := &d.t.Nodes[i]; n.Seen && e.id != "" && e.id == n.ServerID && fits(n) && n.listensAt(e.addresses) {
			return i
		}
	}
	for i := range d.t.Nodes { // it is drawn already
		n := &d.t.Nodes[i]
		if !n.Seen && (e.uuid != "" && e.uuid == n.UUID || fits(n) && slices.ContainsFunc(e.addresses, func(a string) bool { return slices.Contains(n.Addresses, a) })) {
			if n.UUID == "" {
				n.UUID = e.uuid
			}
			if n.ServerID == "" && e.id != "0" {
				n.ServerID = e.id
			}
			return i
		}
	}
	return d.draw(e)
}

// listensAt reports whether a server that is reached by a socket, or by a name as localhost, so on this machine, listens at one of some addresses.
func (n *Node) listensAt(addresses []string) bool {
	here := func(a string) bool {
		host, port, err := net.SplitHostPort(a)
		return err == nil && follow.Loopback(host) && port == strconv.Itoa(n.Port)
	}
	return slices.ContainsFunc(n.Addresses, func(a string) bool { return strings.HasPrefix(a, "/") || here(a) }) && slices.ContainsFunc(addresses, here)
}

// otherServer notes that a server tells of one at an address where another one answers.
func (d *discovery) otherServer(e *expected, address string, i int) {
	n := &d.t.Nodes[i]
	is, told := "server_id "+n.ServerID, "server_id "+e.id
	if e.uuid != "" && n.UUID != "" {
		is, told = "server_uuid "+n.UUID, "server_uuid "+e.uuid
	}
	what := "the source"
	if e.replica {
		what = "a replica"
	} else if e.channel == nil {
		what = "a member"
	}
	s := Surprise{Kind: "other_server", Node: d.t.Nodes[e.by].Name, Other: n.Name,
		Text: fmt.Sprintf("%s tells of %s with %s at %s, where one with %s answers", d.t.Nodes[e.by].Name, what, told, address, is)}
	if !slices.Contains(d.t.Surprises, s) {
		d.t.Surprises = append(d.t.Surprises, s)
	}
}

// perhapsCopy notes that a replica has lost a source that does not answer at its address from here, either, while a server with its UUID answers elsewhere: the source
// itself, or a copy of its data directory beside a source that is dead.
func (d *discovery) perhapsCopy(e *expected, source int) {
	n := &d.t.Nodes[source]
	if e.uuid == "" || !n.Seen || n.is(e) || e.channel.Receiving() {
		return
	}
	for _, a := range e.addresses {
		if _, failed := d.failed[strings.ToLower(a)]; failed {
			by := d.t.Nodes[e.by].Name
			d.t.Surprises = append(d.t.Surprises, Surprise{Kind: "perhaps_copy", Node: n.Name, Other: by,
				Text: fmt.Sprintf("%s does not receive from its source at %s, where nobody answers; one with the same server_uuid answers at %s", by, a, n.Addresses[0])})
			return
		}
	}
}

// unasked says why nobody asked a server.
func (d *discovery) unasked() string {
	if d.Alone {
		return "it was not asked: it is none of the servers that were named"
	}
	return "it was not asked"
}

// draw adds a node that was not seen.
func (d *discovery) draw(e *expected) int {
	n := Node{Facts: Facts{UUID: e.uuid}}
	if e.id != "0" {
		n.ServerID = e.id
	}
	for _, a := range e.addresses {
		f, failed := d.failed[strings.ToLower(a)]
		if !failed && d.known[strings.ToLower(a)] { // another server answered there
			continue
		}
		if !failed {
			f = Failure{Kind: "not_asked", Text: d.unasked()}
			if _, marked := follow.Marked(e.marked()); marked {
				f.Text = "a name that leads nowhere, by which Risso keeps a replica from its source"
			}
		}
		n.Addresses = append(n.Addresses, a)
		if n.Unseen == nil || n.Unseen.Kind != string(mysql.ClassLogin) { // one that runs is told before one that does not
			n.Unseen = &f
		}
	}
	switch {
	case len(n.Addresses) > 0:
		n.Name = n.Addresses[0]
	case len(e.addresses) > 0:
		n.Name = "server_id " + e.id + " behind " + e.addresses[0]
		n.Unseen = &Failure{Kind: "other_server", Text: "another server answers at " + strings.Join(e.addresses, ", ")}
	default:
		n.Name = "server_id " + e.id + " of " + d.t.Nodes[e.by].Name
		n.Unseen = &Failure{Kind: "no_address", Text: "nobody tells its address: set report_host on it"}
	}
	d.t.Nodes = append(d.t.Nodes, n)
	return len(d.t.Nodes) - 1
}

// mention notes that a node tells of another.
func (d *discovery) mention(node, by int) {
	if node != by {
		d.t.Nodes[node].ToldBy = append(d.t.Nodes[node].ToldBy, d.t.Nodes[by].Name)
	}
}

// link notes that a node replicates from another.
func (d *discovery) link(e *expected, source, replica int) {
	d.mention(source, replica)
	d.t.Links = append(d.t.Links, Link{Replica: replica, Source: source, Channel: e.channel})
}

// listed notes that a source lists a replica. What the replica itself says is better.
func (d *discovery) listed(e *expected) {
	replica := d.find(e)
	d.mention(replica, e.by)
	if slices.ContainsFunc(d.t.Links, func(l Link) bool { return l.Replica == replica && l.Source == e.by }) {
		return
	}
	n := &d.t.Nodes[replica]
	if n.Seen && n.Unseen == nil {
		d.t.Surprises = append(d.t.Surprises, Surprise{Kind: "not_a_replica", Node: n.Name, Other: d.t.Nodes[e.by].Name,
			Text: d.t.Nodes[e.by].Name + " lists " + n.Name + " as its replica, which says that it does not replicate from there"})
		return
	}
	d.t.Links = append(d.t.Links, Link{Replica: replica, Source: e.by})
}

// again reads once more which transactions the sources have, now that their replicas were asked: what a replica has beyond that, it did not get from there.
func (d *discovery) again(ctx context.Context) {
	if d.Again == nil {
		return
	}
	sources := map[int][]*Node{} // with who replicates from there alone
	for _, l := range d.t.Links {
		if !d.t.Nodes[l.Source].Seen || l.Channel == nil {
			continue
		}
		if list := sources[l.Source]; d.t.Nodes[l.Replica].Seen && len(d.t.Sources(l.Replica)) == 1 && !slices.Contains(d.t.Above(l.Source), l.Replica) {
			sources[l.Source] = append(list, &d.t.Nodes[l.Replica])
		} else {
			sources[l.Source] = list
		}
	}
	var group sync.WaitGroup
	for i, replicas := range sources {
		n := &d.t.Nodes[i]
		ask := func() (string, error) {
			ctx, cancel := context.WithTimeout(ctx, cmp.Or(d.Patience, patience))
			defer cancel()
			return d.Again(ctx, d.Reached(n.Addresses[0]))
		}
		group.Go(func() {
			later, err := ask()
			// A MySQL sends a transaction to its replicas as soon as it is in its binary log, and counts it in gtid_executed when it is committed, which on a busy
			// machine is some time later.
			for wait := uncounted; wait <= 4*uncounted; wait *= 2 {
				if err != nil || !slices.ContainsFunc(replicas, func(r *Node) bool { return r.GTID.ByDomain == n.GTID.ByDomain && r.more(later) }) || delay.For(ctx, wait) != nil {
					break
				}
				next, nerr := ask()
				if nerr != nil { // one that hangs by now is not waited for again
					break
				}
				later = next
			}
			if err == nil {
				n.GTID.Later, n.GTID.Again = later, true
			}
		})
	}
	group.Wait()
}

// uncounted is how long it is waited before a source is asked once more for what a replica has beyond it; then twice as long, and so on to four times.
const uncounted = 30 * time.Millisecond

// more reports whether a node has transactions beyond what its source had.
func (n *Node) more(later string) bool {
	e, known := n.beyond([]string{later})
	return known && !e.Empty()
}
