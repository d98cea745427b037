package repoint

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/mysql"
)

// gtids looks at whether the new source has, and still has, what the replica needs, and whether the replica has nothing else.
func (j *judge) gtids() {
	r, b := j.replica, j.below
	for _, n := range []*topology.Node{r, b} {
		if !mysql.Of(n.Server).FollowsByGTID(n.GTID.Mode) {
			j.v.refuse("gtid_mode", "", "%s has gtid_mode=%s, and %s finds its position by GTID", n.Name, n.GTID.Mode, r.Name)
		}
	}
	if r.GTID.ByDomain != b.GTID.ByDomain {
		return
	}
	j.others()
	j.errant()
	j.purged()
	if b.GTID.ByDomain && !b.GTID.Strict {
		j.v.note("gtid_strict_mode is off on %s: nothing keeps its log from having numbers twice", b.Name)
	}
}

// known are the nodes whose transactions are nobody's own: the new source and those above it, and those above the replica, by whichever channel.
func (j *judge) known() []int {
	list := append([]int{j.Below}, j.Topology.Above(j.Below)...)
	list = append(list, j.Topology.Above(j.Replica)...)
	return slices.DeleteFunc(list, func(i int) bool { return i == j.Replica })
}

// others are the sources of the replica's other channels. One that was not seen is refused: what came from there cannot be told from what is the replica's own.
func (j *judge) others() {
	for _, l := range j.Topology.Sources(j.Replica) {
		switch n := &j.Topology.Nodes[l.Source]; {
		case l.Channel == nil || l.Channel.Name == j.v.Channel.Name:
		case !n.Seen:
			j.v.refuse("not_compared", "", "the source of its channel %q, %s, was not seen: what came from there cannot be told from what is its own", l.Channel.Name, n.Name)
		default:
			j.v.Others = append(j.v.Others, l.Source)
		}
	}
}

// errant refuses a replica with transactions that the others do not have.
func (j *judge) errant() {
	r, b := j.replica, j.below
	extra, known := j.Topology.Beyond(j.Replica, j.known())
	if !known {
		if r.GTID.ByDomain && r.GTID.State == "" {
			j.v.note("%s writes no binary log: whether it has transactions of its own is not known", r.Name)
			return
		}
		j.v.refuse("not_compared", "", "whether %s has transactions of its own cannot be told: %s told none", r.Name, b.Name)
		return
	}
	if extra == "" {
		return
	}
	if j.ahead(extra) {
		j.v.refuse("ahead", "point the others at "+r.Name+", or at whichever has most", "%s has transactions of its source, which was not seen, that %s has not received: %s", r.Name, b.Name, short(extra))
		return
	}
	remedy := "risso replica rebuild " + r.Name + " builds it anew"
	if !r.GTID.ByDomain {
		remedy += ", or, if its rows are as they should be, let the primary have these as empty transactions: SET GTID_NEXT = '…'; BEGIN; COMMIT"
	}
	j.v.refuse("errant", remedy, "%s has transactions that %s and those above it have not (errant): %s", r.Name, b.Name, short(extra))
}

// attachable notes why a replica that is to be detached could not be attached again as things are: that is looked at then, and is better known before.
func (j *judge) attachable() {
	if len(j.v.Refused) > 0 || j.v.From < 0 || !j.v.Channel.GTID {
		return
	}
	name, source := j.replica.Name, j.Topology.Nodes[j.v.From].Name
	extra, known := j.Topology.Beyond(j.Replica, j.Topology.Above(j.Replica))
	switch {
	case !known && (!j.replica.GTID.ByDomain || j.replica.GTID.State != ""):
		j.v.note("whether %s has transactions of its own cannot be told, as %s told none: if it has, risso replica attach refuses to attach it again", name, source)
	case extra != "":
		j.v.note("as it is now, risso replica attach would refuse to attach it again: %s has transactions that %s and those above it have not (errant): %s; risso gtid errant says what they changed", name, source, short(extra))
	}
}

// ahead reports whether all transactions of a set come from the replica's source, and that was not seen.
func (j *judge) ahead(extra string) bool {
	if j.v.From >= 0 && j.Topology.Nodes[j.v.From].Seen {
		return false
	}
	ch := j.v.Channel
	for part := range strings.SplitSeq(extra, ",") {
		if g, err := mysql.ParseGTID(part); err == nil && g.ByDomain() {
			if ch.SourceServerID == "" || strconv.FormatUint(uint64(g.Server), 10) != ch.SourceServerID {
				return false
			}
			continue
		}
		uuid, _, _ := strings.Cut(part, ":")
		if ch.SourceID == "" || !strings.EqualFold(strings.TrimSpace(uuid), ch.SourceID) {
			return false
		}
	}
	return true
}

// purged refuses a new source whose binary logs begin after what the replica needs.
func (j *judge) purged() {
	r, b := j.replica, j.below
	if j.GoneWhy != "" {
		j.v.note("whether the binary logs of %s reach back far enough is not known: %s", b.Name, j.GoneWhy)
		return
	}
	gone, err := mysql.ParseGTIDSet(j.Gone)
	have, herr := mysql.ParseGTIDSet(r.GTID.Executed)
	if r.GTID.ByDomain {
		have, herr = mysql.ParseGTIDSet(r.GTID.Applied)
	}
	if received, err := mysql.ParseGTIDSet(j.v.Channel.Received); err == nil { // it will have applied that
		have = have.Union(received)
	}
	switch lacks := gone.Subtract(have); {
	case err != nil || herr != nil:
		j.v.refuse("not_compared", "", "the GTIDs of %s and %s cannot be compared", r.Name, b.Name)
	case !lacks.Empty():
		j.v.refuse("purged", "risso replica rebuild "+r.Name+" builds it anew", "the binary logs of %s no longer hold what %s lacks: up to %s is purged", b.Name, r.Name, short(lacks.String()))
	}
}

// short cuts a set that is long.
func short(set string) string {
	const most = 300
	if len(set) > most {
		return set[:most] + "…"
	}
	return set
}

// positions looks at whether positions can be matched without GTIDs: both have the same source, or the new source is that of the replica's source. Then one server
// can stand still where the other one is, and what it wrote up to there is known.
func (j *judge) positions() {
	t, from := j.Topology, j.v.From
	if was, is := Attached(j.v.Channel.Source); is && was == j.v.Address { // it keeps its position there
		j.sameServer()
		return
	}
	single := func(i int) (l topology.Link, ok bool) {
		list := t.Sources(i)
		return append(list, topology.Link{})[0], len(list) == 1 && list[0].Channel != nil
	}
	if from < 0 || !t.Nodes[from].Seen && len(j.replica.Channels) > 1 {
		j.unproven("it is not known which server it replicates from")
		return
	}
	below, ok := single(j.Below)
	switch {
	case ok && below.Source == from: // beside it
		j.v.Anchor = j.Below
		j.stands(j.Below, below)
		return
	case !t.Nodes[from].Seen:
		j.unproven("its source was not seen, and " + j.below.Name + " does not replicate from that")
		return
	}
	if up, ok := single(from); ok && up.Source == j.Below {
		j.v.Anchor = from
		j.stands(from, up)
		if !j.v.Channel.Receiving() {
			j.unproven("it does not receive from " + t.Nodes[from].Name + ", up to whose end it has to come")
		}
		return
	}
	j.unproven("it is not beside it, nor two below it")
}

// sameServer looks at whether a detached replica's position is one of the new source: its address may have gone to another server meanwhile.
func (j *judge) sameServer() {
	ch, b := j.v.Channel, j.below
	switch {
	case ch.SourceID != "" && b.UUID != "" && !strings.EqualFold(ch.SourceID, b.UUID), known(ch.SourceServerID) && known(b.ServerID) && ch.SourceServerID != b.ServerID:
		j.unproven("at " + j.v.Address + " is another server than it followed")
	case ch.SourceID == "" && !known(ch.SourceServerID):
		j.v.note("%s no longer says which server it followed: make sure that %s is the one, for its position is taken as it is", j.replica.Name, b.Name)
	}
}

// known reports whether a server_id says something.
func known(id string) bool { return id != "" && id != "0" }

// stands looks at whether an anchor can stand still.
func (j *judge) stands(anchor int, l topology.Link) {
	n := &j.Topology.Nodes[anchor]
	switch ch := l.Channel; {
	case ch.SQL.Text != "" || !ch.Applying():
		j.unproven(n.Name + ", by which its position is matched, does not apply" + because(ch.SQL))
	case ch.Delay > 0:
		j.unproven(n.Name + ", by which its position is matched, stays behind on purpose")
	case n.Writes.Open():
		if anchor == j.Below {
			j.v.note("%s may be written to directly: what is written there from then on goes to %s as well", n.Name, j.replica.Name)
		} else {
			j.v.note("%s may be written to directly: what is written there from then on does not go to %s", n.Name, j.replica.Name)
		}
	}
	if j.v.Channel.Delay > 0 {
		j.unproven("it stays behind on purpose, and has to stand where " + n.Name + " does")
	}
	j.v.note("%s stands still for a moment, while positions are matched", n.Name)
}

// unproven refuses because the position in another binary log could only be guessed.
func (j *judge) unproven(why string) {
	j.v.refuse("position", "let it use GTIDs first, or risso replica rebuild "+j.replica.Name, "%s does not use GTIDs, and its position in the binary log of %s cannot be proven: %s", j.replica.Name, j.below.Name, why)
}
