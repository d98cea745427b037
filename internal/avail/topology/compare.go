package topology

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/mysql"
)

// compare finds for each link how many transactions the replica lacks, and for each replica which it has beyond its sources'.
func (t *Topology) compare() {
	for i := range t.Links {
		l := &t.Links[i]
		if r, s := &t.Nodes[l.Replica], &t.Nodes[l.Source]; r.Seen && s.Seen && l.Channel != nil && r.GTID.ByDomain == s.GTID.ByDomain {
			if !s.Log.Closed { // what it wrote since has no number
				l.Missing = missing(s.GTID, r.GTID)
			}
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
		if s.Log.Closed || !s.GTID.Again || s.GTID.ByDomain != n.GTID.ByDomain || !s.GTID.ByDomain && !strings.HasPrefix(s.GTID.Mode, "ON") {
			return
		}
		had = append(had, s.GTID.Later)
	}
	e, known := n.beyond(had)
	if !known {
		return
	}
	for _, ring := range rings {
		if slices.Contains(ring, node) {
			_, e = e.Split(func(uuid string, server uint32) bool { return t.wroteIn(ring, uuid, server) })
		}
	}
	n.Errant, n.Compared = e.String(), true
}

// beyond are the transactions that a node has beyond what others had.
func (n *Node) beyond(had []string) (e mysql.Errant, known bool) {
	has := n.GTID.logged()
	if has == "" {
		return e, false
	}
	var err error
	if strings.Join(had, "") == "" { // they never wrote anything
		e, err = mysql.AllErrant(has)
	} else {
		e, err = mysql.ErrantTransactions(has, had...)
	}
	return e, err == nil
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
	e, known := n.beyond(had)
	return e.String(), known
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

// wroteIn reports whether a transaction's origin is a server of the ring.
func (t *Topology) wroteIn(ring []int, uuid string, server uint32) bool {
	return slices.ContainsFunc(ring, func(m int) bool {
		o := &t.Nodes[m]
		return uuid != "" && strings.EqualFold(o.UUID, uuid) || uuid == "" && o.ServerID == strconv.FormatUint(uint64(server), 10)
	})
}

// missing counts what a source had and a replica has not; nil if that is not known.
func missing(source, replica GTIDs) *uint64 {
	if !source.ByDomain {
		s, err := mysql.ParseGTIDSet(source.Executed)
		r, rerr := mysql.ParseGTIDSet(replica.Executed)
		if err != nil || rerr != nil || !strings.HasPrefix(source.Mode, "ON") {
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
