package repoint

import (
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
)

// RebuildQuestion is whether a replica can get all of its data anew. Of the Question, Below is found here.
type RebuildQuestion struct {
	Question
	Donor int         // the node whose data it gets; -1: those of Copy
	Copy  *Copy       // a backup; or what an earlier run, which was cut off, copied
	Left  *Rebuilding // what that run left; nil: there was none
	Lacks string      // the statement that gives the replica's account what it lacks; "": nothing
}

// RebuildVerdict is what came of it.
type RebuildVerdict struct {
	Verdict
	Loses []string // what only the replica has, and will not have afterwards
}

// source finds the channel of a replica that is to be rebuilt, and the node that it comes from.
func (j *judge) source(left *Rebuilding) bool {
	r := j.replica
	switch {
	case !r.Seen:
		why := ""
		if r.Unseen != nil {
			why = ": " + r.Unseen.Text
		}
		j.v.refuse("not_seen", "start it first; its data may be damaged, but it has to answer", "%s was not seen%s", r.Name, why)
	case r.Group != nil:
		j.v.refuse("group", "let it join again with an empty data directory: the group brings it its data", "%s is a member of a cluster (%s)", r.Name, r.Group.Kind)
	case len(r.Channels) == 0 && len(r.Unknown) > 0:
		j.v.refuse("not_told", r.Unknown[0].Remedy, "whom %s replicates from is not known: %s: %s", r.Name, r.Unknown[0].What, r.Unknown[0].Why)
	case len(r.Channels) == 0:
		j.v.refuse("no_channel", "", "%s replicates from nobody: it may be a primary, and no account is known by which it could follow", r.Name)
	case len(r.Channels) > 1:
		j.v.refuse("several_channels", "", "%s replicates from %s: no single server has all of its rows", r.Name, digits.Counted(len(r.Channels), "source"))
	}
	if len(j.v.Refused) > 0 {
		return false
	}
	j.v.Channel = r.Channels[0]
	if was, is := Rebuilt(j.v.Channel.Source); is {
		j.v.Channel.Source = was
	}
	if left != nil {
		j.v.Channel.Source, j.v.Channel.GTID = left.Source, left.GTID
	}
	if was, is := Attached(j.v.Channel.Source); is {
		j.v.Channel.Source = was
	}
	j.v.From = j.Topology.At(j.Replica, j.v.Channel.Source)
	if j.v.From < 0 || !j.Topology.Nodes[j.v.From].Seen {
		j.v.refuse("source_not_seen", "name it with one more --dsn, or risso replica move first", "%s replicates from %s, which was not seen: whether it could follow that afterwards is not known, and it may have what nobody else has",
			r.Name, j.v.Channel.Source)
		return false
	}
	j.Below, j.below, j.v.Address = j.v.From, &j.Topology.Nodes[j.v.From], j.v.Channel.Source
	return true
}

// JudgeRebuild answers a question. It is pure.
func JudgeRebuild(q RebuildQuestion) RebuildVerdict {
	j := &judge{Question: q.Question, replica: &q.Topology.Nodes[q.Replica]}
	j.v.From, j.v.Anchor = -1, -1
	out := RebuildVerdict{}
	if j.source(q.Left) {
		j.followed()
		if j.replica.Log.Closed { // RESET MASTER fails, when nothing is left of what it had
			j.v.refuse("log_closed", "mend what its error log names, and start it again", "%s writes no binary log any more, which has to begin anew", j.replica.Name)
		}
		if q.Donor >= 0 {
			j.donor(q.Donor)
		}
		j.catchesUp(q)
		if q.Lacks != "" {
			j.v.refuse("privileges", q.Lacks, "the account of %s may not do all that a rebuild does", j.replica.Name)
		}
		j.identity()
		j.semiSync()
		j.account()
		out.Loses = j.loses(q.Left)
		j.successors()
	}
	out.Verdict = j.v
	return out
}

// ChooseDonor is the node whose data a replica had best get, and why: another replica of its source, as that does not burden the source; else the source.
func ChooseDonor(q RebuildQuestion) (donor int, why string) {
	j := &judge{Question: q.Question, replica: &q.Topology.Nodes[q.Replica]}
	if !j.source(q.Left) {
		return -1, ""
	}
	var not []string
	for _, l := range q.Topology.Replicas(j.Below) {
		if l.Replica == q.Replica {
			continue
		}
		n := &q.Topology.Nodes[l.Replica]
		one := &judge{Question: j.Question, replica: j.replica, below: j.below}
		one.v.Channel = j.v.Channel
		one.donor(l.Replica)
		one.catchesUp(RebuildQuestion{Question: q.Question, Donor: l.Replica})
		switch {
		case len(one.v.Refused) > 0:
			not = append(not, one.v.Refused[0].Why)
		case !able(n):
			not = append(not, n.Name+" does not replicate as it should, or stays behind on purpose")
		default:
			return l.Replica, "a replica of the same source, which is level with it and has nothing of its own: the source is spared"
		}
	}
	why = "it is the source, and has no other replica"
	if len(not) > 0 {
		why = "it is the source, as no other replica will do: " + strings.Join(not, "; ")
	}
	return j.Below, why
}

// followed refuses a server from which others replicate: they would follow into the copy.
func (j *judge) followed() {
	var names []string
	for _, l := range j.Topology.Replicas(j.Replica) {
		names = append(names, j.Topology.Nodes[l.Replica].Name)
	}
	switch {
	case len(names) > 0:
		j.v.refuse("has_replicas", "risso replica move --all-of "+j.replica.Name+" --below "+j.below.Name, "%s replicates from %s, and would follow into the copy", strings.Join(names, " and "), j.replica.Name)
	case len(j.replica.Readers) > 0:
		j.v.note("somebody on %s reads its binary log, which begins anew", strings.Join(j.replica.Readers, ", "))
	}
}

// donor looks at whether a node has what the replica is to have.
func (j *judge) donor(donor int) {
	d, name := &j.Topology.Nodes[donor], j.replica.Name
	if !d.Seen || donor == j.Replica {
		j.v.refuse("not_seen", "", "%s was not seen, or is %s itself", d.Name, name)
		return
	}
	if why := mysql.Of(j.replica.Server).CannotFollow(mysql.Of(d.Server)); why != "" {
		j.v.refuse("version", "", "%s", why)
		return
	}
	if !d.Log.On {
		j.v.refuse("no_log", "", "%s: the place of its copy in it is not known", logsNothing(d))
	}
	if donor == j.Below {
		return
	}
	if !slices.Contains(j.Topology.Above(donor), j.Below) {
		j.v.refuse("stranger", "", "%s does not replicate from %s, and may have other rows", d.Name, j.below.Name)
		return
	}
	if !j.v.Channel.GTID {
		j.v.refuse("donor_position", "take "+j.below.Name+" itself", "%s does not use GTIDs, and a place in the binary log of %s says nothing of one in that of %s", name, d.Name, j.below.Name)
	}
	if d.GTID.ByDomain && !d.Log.Updates {
		j.v.refuse("no_updates", "", "%s does not write into its binary log what it replicates, so that the place of its copy is not known (log_slave_updates)", d.Name)
	}
	for _, ch := range d.Channels {
		_, rebuilt := Rebuilt(ch.Source)
		switch {
		case rebuilt:
			j.v.refuse("donor_rebuilding", "", "%s is being rebuilt itself", d.Name)
		case ch.SQL.Text != "":
			j.v.refuse("donor_broken", "", "%s has stopped applying itself: %s", d.Name, ch.SQL.Text)
		case ch.Filter != "" && ch.Filter != j.v.Channel.Filter:
			j.v.refuse("donor_filter", "", "%s leaves out what it replicates: %s", d.Name, ch.Filter)
		}
	}
	known := slices.DeleteFunc(j.Topology.Above(donor), func(i int) bool { return i == j.Replica })
	switch extra, told := j.Topology.Beyond(donor, known); {
	case !told:
		j.v.refuse("not_compared", "", "whether %s has transactions of its own cannot be told", d.Name)
	case extra != "":
		j.v.refuse("donor_errant", "risso gtid errant says what they changed", "%s has transactions of its own (errant), which the copy would have as well: %s", d.Name, short(extra))
	}
}

// catchesUp refuses a copy from which the source's binary logs no longer lead on.
func (j *judge) catchesUp(q RebuildQuestion) {
	text, name := "", ""
	switch {
	case q.Copy != nil && j.v.Channel.GTID:
		text, name = q.Copy.GTIDs, q.Copy.Words
	case q.Donor >= 0 && q.Donor != j.Below:
		n := &j.Topology.Nodes[q.Donor]
		if text, name = n.GTID.Executed, n.Name; n.GTID.ByDomain {
			text = n.GTID.Logged
		}
	default: // the source itself has what it has
		return
	}
	if j.GoneWhy != "" {
		j.v.note("whether the binary logs of %s reach back to %s is not known: %s", j.below.Name, name, j.GoneWhy)
		return
	}
	gone, err := mysql.ParseGTIDSet(j.Gone)
	have, herr := mysql.ParseGTIDSet(text)
	switch lacks := gone.Subtract(have); {
	case err != nil || herr != nil:
		j.v.refuse("not_compared", "", "the GTIDs of %s and %s cannot be compared", name, j.below.Name)
	case !lacks.Empty():
		j.v.refuse("purged", "take a copy of now: --from "+j.below.Name, "the binary logs of %s no longer hold what %s lacks: up to %s is purged", j.below.Name, name, short(lacks.String()))
	}
}

// loses is what only the replica has.
func (j *judge) loses(left *Rebuilding) (list []string) {
	r := j.replica
	if left != nil && left.Cleared {
		return []string{"what it had was dropped by the earlier run"}
	}
	list = append(list, "all that is in it, its binary logs, and what was ever written there alone")
	known := slices.DeleteFunc(append(j.Topology.Above(j.Replica), j.Below), func(i int) bool { return i == j.Replica })
	switch extra, told := j.Topology.Beyond(j.Replica, known); {
	case !told:
		list = append(list, "whether it has transactions of its own cannot be told by GTID")
	case extra != "":
		list = append(list, "transactions that only it has (errant): "+short(extra))
	case able(r):
		j.v.note("%s replicates as it should and has no transactions of its own: nothing that was seen says that it has to be rebuilt", r.Name)
	}
	if r.Writes.Open() {
		list = append(list, "it may be written to by everybody (read_only is OFF): what is written there meanwhile is lost, too; it will be so again afterwards")
	}
	return list
}

// able reports whether a replica could take the place of its source: it applies without delay and filter, and logs what it applies.
func able(n *topology.Node) bool {
	return n.Seen && n.Log.On && n.Log.Updates && len(n.Channels) == 1 && n.Channels[0].Applying() && n.Channels[0].Receiving() && n.Channels[0].Delay == 0 && n.Channels[0].Filter == ""
}

// successors looks at who could take the place of the source meanwhile.
func (j *judge) successors() {
	for _, l := range j.Topology.Replicas(j.Below) {
		if l.Replica != j.Replica && able(&j.Topology.Nodes[l.Replica]) {
			return
		}
	}
	j.v.note("until %s is back, no replica could take the place of %s", j.replica.Name, j.below.Name)
	if d := j.v.Channel.Delay; d > 0 {
		j.v.note("%s was told to stay %s behind: that is so again from the end of the copy on", j.replica.Name, seconds(d))
	}
}

// DonorAddress is the address by which the replica reaches the node whose data it gets; "": nobody tells.
func (q RebuildQuestion) DonorAddress() string {
	j := &judge{Question: q.Question, replica: &q.Topology.Nodes[q.Replica]}
	if j.source(q.Left) && q.Donor == j.Below {
		return j.v.Channel.Source
	}
	j.Below, j.below = q.Donor, &q.Topology.Nodes[q.Donor]
	return j.usual()
}
