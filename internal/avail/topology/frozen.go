package topology

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/mysql"
)

// thaw is for how long nothing may come of what a source has to a replica whose channel says that it receives.
const thaw = 2 * time.Second

// frozen finds channels that say that they receive, and do not. One that is behind what its source had is asked once more, and again after thaw: one to which
// something came meanwhile is only late.
func (d *discovery) frozen(ctx context.Context) {
	if d.Received == nil {
		return
	}
	late := d.late()
	still := make([]place, len(late)) // where each was seen, and since when
	for i, l := range late {
		s, r := &d.t.Nodes[l.Source].Facts, &d.t.Nodes[l.Replica].Facts
		still[i] = placeOf(l.Channel, s.Asked.Add(s.Took))
		if end := r.Asked.Add(r.Took); end.After(still[i].since) {
			still[i].since = end
		}
	}
	for _, wait := range []time.Duration{0, thaw} {
		if len(late) == 0 || delay.For(ctx, wait) != nil {
			break
		}
		begun := time.Now()
		var group sync.WaitGroup
		for i, l := range late {
			group.Go(func() {
				l.Frozen = 0
				now, behind := d.receivedNow(ctx, l)
				if !behind {
					still[i] = place{}
					return
				}
				now.since = still[i].since
				if now != still[i] {
					now.since = time.Now()
				}
				still[i] = now
				l.Frozen = max(0, begun.Sub(now.since))
			})
		}
		group.Wait()
		late, still = stillBehind(late, still)
	}
	for _, l := range late { // asked right after the source, it says nothing
		if l.Frozen < thaw || ctx.Err() != nil {
			l.Frozen = 0
		}
	}
}

// place is up to where a channel has received, and since when it was seen there.
type place struct {
	log, received string
	pos           int64
	since         time.Time
}

func placeOf(ch *Channel, since time.Time) place {
	return place{ch.SourceLog, ch.Received, ch.SourcePos, since}
}

// receivedNow asks once more up to where a channel has received; behind is false if that is as far as its source was, or not known.
func (d *discovery) receivedNow(ctx context.Context, l *Link) (now place, behind bool) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(d.Patience, patience))
	defer cancel()
	r := &d.t.Nodes[l.Replica]
	channels, err := d.Received(ctx, d.Reached(r.Addresses[0]))
	if err != nil {
		return place{}, false
	}
	for i := range channels {
		if ch := &channels[i]; ch.Name == l.Channel.Name {
			return placeOf(ch, time.Time{}), isBehind(&d.t.Nodes[l.Source], r, ch)
		}
	}
	return place{}, false
}

// stillBehind leaves out those that are as far as their sources were.
func stillBehind(late []*Link, still []place) (links []*Link, places []place) {
	for i, l := range late {
		if still[i] != (place{}) {
			links, places = append(links, l), append(places, still[i])
		}
	}
	return links, places
}

// late are the links whose channels say that they receive, and are behind what the source had.
func (d *discovery) late() (list []*Link) {
	for i := range d.t.Links {
		l := &d.t.Links[i]
		if s := &d.t.Nodes[l.Source]; s.Seen && l.Channel != nil && l.Channel.Receiving() && isBehind(s, &d.t.Nodes[l.Replica], l.Channel) {
			list = append(list, l)
		}
	}
	return list
}

// isBehind reports whether a channel has not received what its source had: by the place in the source's binary log, and, where both have GTIDs, by these.
func isBehind(source, replica *Node, ch *Channel) bool {
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
