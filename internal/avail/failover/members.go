package failover

import (
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/mysql"
)

// Members makes a group of servers that were asked: the one without a source, from which the others replicate, is the primary. Refusals say why they are none.
func Members(t *topology.Topology, now time.Time) (list []group.Member, no []Refusal) {
	add := func(code, remedy, format string, args ...any) { refuse(&no, code, remedy, format, args...) }
	primary := -1
	for i := range t.Nodes {
		n := &t.Nodes[i]
		switch {
		case !n.Seen && n.Unseen.Kind == "not_asked": // others tell of it, and nobody named it
			add("not_seen", "", "%s is none of the servers that were named, and replicates with them: name it, too", n.Name) // in the words, as only the first remedy of several is printed
			continue
		case !n.Seen:
			add("not_seen", "", "%s does not answer: %s", n.Name, n.Unseen.Text)
			continue
		case n.Untold() != nil:
			u := n.Untold()
			add("not_told", u.Remedy, "whom %s replicates from is not known: %s", n.Name, u.Why)
			continue
		case n.Group != nil:
			add("cluster", "risso galera", "%s belongs to a cluster that chooses its primary by itself (%s)", n.Name, n.Group.Kind)
		case len(n.Channels) > 1:
			add("channels", "", "%s replicates from %d servers", n.Name, len(n.Channels))
		case len(n.Channels) == 0 && primary >= 0:
			add("two_primaries", "risso topology shows them", "%s and %s both replicate from nobody: which of them is the primary?", t.Nodes[primary].Name, n.Name)
		case len(n.Channels) == 0:
			primary = i
		}
		m := group.Member{Name: n.Name, Address: Reached(n), Status: group.Secondary, Rule: group.Neutral, Weight: 1, Since: now}
		if i == primary {
			m.Status = group.Primary
		}
		if m.Address == "" {
			add("no_address", "name=user@tcp(host:port)/ as its --dsn", "it is not known by which address others reach %s", n.Name)
		}
		list = append(list, m)
	}
	if primary < 0 && len(no) == 0 {
		add("no_primary", "risso topology shows them", "each of them replicates from another server: none is the primary")
	}
	no = append(no, below(t, primary)...)
	slices.SortFunc(list, func(a, b group.Member) int { return strings.Compare(a.Name, b.Name) })
	return list, no
}

// Twice refuses servers that were named twice: by two names, or by two addresses that lead to one server. addresses are by name.
func Twice(t *topology.Topology, addresses map[string]string) (no []Refusal) {
	for _, name := range slices.Sorted(maps.Keys(addresses)) {
		if slices.ContainsFunc(t.Nodes, func(n topology.Node) bool { return n.Name == name }) {
			continue
		}
		if i := t.Find(addresses[name]); i >= 0 {
			refuse(&no, "twice", "leave one of them out", "%s and %s are the same server", name, t.Nodes[i].Name)
		}
	}
	return no
}

// below refuses members that do not replicate, by GTID, from another one of them.
func below(t *topology.Topology, primary int) (no []Refusal) {
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if !n.Seen || i == primary {
			continue
		}
		if !mysql.Of(n.Server).FollowsByGTID(n.GTID.Mode) {
			refuse(&no, "no_gtid", "gtid_mode = ON", "%s does not use GTIDs: what was received could not be compared", n.Name)
		} else if len(n.Channels) == 1 && !n.Channels[0].GTID {
			refuse(&no, "position", mysql.Of(n.Server).FollowGTID(n.Channels[0].Name)+" on it", "%s replicates by file and position: what was received could not be compared", n.Name)
		}
		if len(n.Channels) == 1 && len(t.Sources(i)) == 1 && t.Sources(i)[0].Channel != nil {
			continue
		}
		if len(n.Channels) == 1 {
			refuse(&no, "other_source", "risso replica move "+n.Name, "%s replicates from %s, which is none of these servers", n.Name, n.Channels[0].Source)
		}
	}
	return no
}

// Reached is the address by which others reach a server; "" if it is not known. One that is asked by a socket, or on this machine, is there for the others by its
// loopback address.
func Reached(n *topology.Node) string {
	for _, a := range n.Addresses {
		if _, _, err := net.SplitHostPort(a); err == nil && !strings.HasPrefix(a, "/") {
			return a
		}
	}
	switch {
	case n.Reported != "":
		return n.Reported
	case n.Here && n.Port > 0:
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(n.Port))
	case n.Hostname != "" && n.Port > 0:
		return net.JoinHostPort(n.Hostname, strconv.Itoa(n.Port))
	}
	return ""
}
