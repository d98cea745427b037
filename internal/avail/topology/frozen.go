package topology

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/mysql"
)

// thaw is how long what a source had may take to come to a replica whose channel says that it receives.
const thaw = 2 * time.Second

// frozen finds channels that say that they receive, and do not. One that is behind what its source had is asked once more, and again after thaw: what the
// source had at first must have come by then.
func (d *discovery) frozen(ctx context.Context) {
	if d.Received == nil {
		return
	}
	late := d.late()
	for _, wait := range []time.Duration{0, thaw} {
		if len(late) == 0 || delay.For(ctx, wait) != nil {
			return
		}
		begun := time.Now()
		var group sync.WaitGroup
		for _, l := range late {
			r := &d.t.Nodes[l.Replica]
			group.Go(func() {
				ctx, cancel := context.WithTimeout(ctx, cmp.Or(d.Patience, patience))
				defer cancel()
				l.Frozen = 0
				channels, err := d.Received(ctx, d.Reached(r.Addresses[0]))
				if err != nil {
					return
				}
				for i := range channels {
					if ch := &channels[i]; ch.Name == l.Channel.Name && behind(&d.t.Nodes[l.Source], r, ch) {
						l.Frozen = begun.Sub(d.t.Nodes[l.Source].Facts.Asked.Add(d.t.Nodes[l.Source].Took))
					}
				}
			})
		}
		group.Wait()
		late = slices.DeleteFunc(late, func(l *Link) bool { return l.Frozen == 0 })
	}
	for _, l := range late { // asked right after the source, it says nothing
		if l.Frozen < thaw {
			l.Frozen = 0
		}
	}
}

// late are the links whose channels say that they receive, and are behind what the source had.
func (d *discovery) late() (list []*Link) {
	for i := range d.t.Links {
		l := &d.t.Links[i]
		if s := &d.t.Nodes[l.Source]; s.Seen && l.Channel != nil && l.Channel.Receiving() && behind(s, &d.t.Nodes[l.Replica], l.Channel) {
			list = append(list, l)
		}
	}
	return list
}

// behind reports whether a channel has not received what its source had: by the place in the source's binary log, and, where both have GTIDs, by these.
func behind(source, replica *Node, ch *Channel) bool {
	if !ch.Receiving() || !before(ch.SourceLog, ch.SourcePos, source.Log.File, source.Log.Pos) {
		return false
	}
	if !ch.GTID || source.GTID.ByDomain != replica.GTID.ByDomain {
		return !ch.GTID
	}
	received, err := mysql.ParseGTIDSet(ch.Received)
	if err != nil {
		return false
	}
	if source.GTID.ByDomain {
		had, err := mysql.ParseGTIDSet(source.GTID.Logged)
		return err == nil && !covers(received, had)
	}
	had, err := mysql.ParseGTIDSet(source.GTID.Executed)
	has, err2 := mysql.ParseGTIDSet(replica.GTID.Executed)
	return err == nil && err2 == nil && !received.Union(has).ContainsSet(had)
}

// covers reports whether a position of MariaDB is as far in each domain as another.
func covers(position, other mysql.GTIDSet) bool {
	at := map[uint32]uint64{}
	for _, g := range position.Domains() {
		at[g.Domain] = g.Number
	}
	for _, g := range other.Domains() {
		if at[g.Domain] < g.Number {
			return false
		}
	}
	return true
}

// before reports whether a place in a source's binary log is before another, in files that are numbered.
func before(file string, pos int64, other string, otherPos int64) bool {
	name, n, ok := numbered(file)
	otherName, m, otherOK := numbered(other)
	if !ok || !otherOK || name != otherName {
		return false
	}
	return n < m || n == m && pos < otherPos
}

func numbered(file string) (name string, n int, ok bool) {
	i := strings.LastIndexByte(file, '.')
	if i < 0 {
		return "", 0, false
	}
	n, err := strconv.Atoi(file[i+1:])
	return file[:i], n, err == nil
}
