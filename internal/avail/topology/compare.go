package topology

import (
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
		if !s.GTID.Again || s.GTID.ByDomain != n.GTID.ByDomain || !s.GTID.ByDomain && !strings.HasPrefix(s.GTID.Mode, "ON") {
			return
		}
		had = append(had, s.GTID.Later)
	}
	has := n.GTID.Executed
	if n.GTID.ByDomain {
		has = n.GTID.State
	}
	if has == "" {
		return
	}
	e, err := mysql.ErrantTransactions(has, had...)
	if err != nil {
		return
	}
	if strings.Join(had, "") == "" { // they never wrote anything
		if e, err = mysql.AllErrant(has); err != nil {
			return
		}
	}
	for _, ring := range rings {
		if slices.Contains(ring, node) {
			_, e = e.Split(func(uuid string, server uint32) bool { return t.wroteIn(ring, uuid, server) })
		}
	}
	n.Errant, n.Compared = e.String(), true
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
