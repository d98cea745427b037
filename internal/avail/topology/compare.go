package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/mysql"
)

// compare finds for each link how many transactions the replica lacks, and for each replica which it has beyond its sources'.
func (t *Topology) compare() {
	for i := range t.Links {
		l := &t.Links[i]
		if r, s := &t.Nodes[l.Replica], &t.Nodes[l.Source]; r.Seen && s.Seen && l.Channel != nil && r.GTID.ByDomain == s.GTID.ByDomain {
			l.Missing = missing(s.GTID, r.GTID)
		}
	}
	rings := t.Rings()
	for i := range t.Nodes {
		t.errant(i, rings)
	}
}

// errant finds which transactions a replica has and none of its sources. Those that were written by a server of the ring that it is in are none: they are on
// their way round.
func (t *Topology) errant(node int, rings [][]int) {
	n := &t.Nodes[node]
	links := t.Sources(node)
	if !n.Seen || len(links) == 0 {
		return
	}
	var had []string
	for _, l := range links {
		s := &t.Nodes[l.Source]
		if s.GTID.Later == "" || s.GTID.ByDomain != n.GTID.ByDomain {
			return
		}
		had = append(had, s.GTID.Later)
	}
	for _, ring := range rings {
		if !slices.Contains(ring, node) {
			continue
		}
		for _, m := range ring {
			switch o := &t.Nodes[m]; {
			case !n.GTID.ByDomain && o.UUID != "":
				had = append(had, o.UUID+":1-9223372036854775806")
			case n.GTID.ByDomain && o.ServerID != "":
				for _, d := range domains(n.GTID.State) {
					had = append(had, fmt.Sprintf("%d-%s-18446744073709551615", d, o.ServerID))
				}
			}
		}
	}
	n.Errant, n.Compared = n.beyond(had)
}

// beyond are the transactions that a node has beyond what others had.
func (n *Node) beyond(had []string) (extra string, known bool) {
	has := n.GTID.logged()
	if has == "" {
		return "", false
	}
	_, extra, _, err := mysql.ErrantTransactions(has, Together(had, n.GTID.ByDomain))
	return extra, err == nil
}

// logged is which transactions the server's log has had, by who wrote them.
func (g *GTIDs) logged() string {
	if g.ByDomain {
		return g.State
	}
	return g.Executed
}

// Beyond are the transactions that a node has and none of others, by GTID; known is false if that cannot be told.
func (t *Topology) Beyond(node int, others []int) (extra string, known bool) {
	n := &t.Nodes[node]
	var had []string
	for _, i := range others {
		o := &t.Nodes[i]
		if !o.Seen || o.GTID.ByDomain != n.GTID.ByDomain {
			continue
		}
		if set := cmp.Or(o.GTID.Later, o.GTID.logged()); set != "" {
			had = append(had, set)
		}
	}
	if !n.Seen || len(had) == 0 {
		return "", false
	}
	return n.beyond(had)
}

// Above are the nodes that a node replicates from, and those that they do, and so on, without the node itself.
func (t *Topology) Above(node int) (above []int) {
	seen := map[int]bool{node: true}
	for next := []int{node}; len(next) > 0; next = next[1:] {
		for _, l := range t.Sources(next[0]) {
			if !seen[l.Source] {
				seen[l.Source] = true
				above, next = append(above, l.Source), append(next, l.Source)
			}
		}
	}
	return above
}

// domains are those of a gtid_binlog_state.
func domains(state string) (list []uint32) {
	for part := range strings.SplitSeq(state, ",") {
		if g, err := mysql.ParseGTID(part); err == nil && !slices.Contains(list, g.Domain) {
			list = append(list, g.Domain)
		}
	}
	return list
}

// Together are the transactions of several servers: of a gtid_binlog_state the last of each domain and server.
func Together(sets []string, byDomain bool) string {
	if !byDomain {
		return strings.Join(sets, ",")
	}
	type source struct{ domain, server uint32 }
	last := map[source]mysql.GTID{}
	for part := range strings.SplitSeq(strings.Join(sets, ","), ",") {
		if g, err := mysql.ParseGTID(part); err == nil && g.Number >= last[source{g.Domain, g.Server}].Number {
			last[source{g.Domain, g.Server}] = g
		}
	}
	out := make([]string, 0, len(last))
	for _, g := range last {
		out = append(out, g.String())
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// missing counts what a source had and a replica has not; nil if that is not known.
func missing(source, replica GTIDs) *uint64 {
	if !source.ByDomain {
		s, err := mysql.ParseGTIDSet(source.Executed)
		r, rerr := mysql.ParseGTIDSet(replica.Executed)
		if err != nil || rerr != nil || source.Executed == "" {
			return nil
		}
		n := s.Subtract(r).Count()
		return &n
	}
	s, err := mysql.ParseGTIDSet(source.Logged)
	r, rerr := mysql.ParseGTIDSet(replica.Applied)
	if err != nil || rerr != nil || replica.Applied == "" {
		return nil
	}
	n := uint64(0)
	for _, g := range s.Domains() {
		last := uint64(0)
		for _, h := range r.Domains() {
			if h.Domain == g.Domain {
				last = h.Number
			}
		}
		n += max(g.Number, last) - last
	}
	return &n
}
