package repoint

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/follow"
	"github.com/rissodb/risso/internal/mysql"
)

// Question is whether a replica can replicate from another server, with what was found of both.
type Question struct {
	Topology *topology.Topology
	Replica  int
	Below    int     // the node that is to be its source
	Channel  *string // which of its channels; nil: the only one
	As       string  // host:port by which the replica reaches that; "": as others do
	Wait     time.Duration

	Gone       string    // which transactions the binary logs of the new source no longer hold
	GoneWhy    string    // why that is not known
	User       string    // as whom the replica logs in
	Accounts   []Account // of that name on the new source
	AccountWhy string    // why they are not known
}

// Account is one that may, or may not, replicate.
type Account struct {
	Host      string
	Privilege bool // REPLICATION SLAVE of its own
}

// Verdict is what came of it. With refusals nothing can be done; notes are to be known before.
type Verdict struct {
	Refused []Refusal
	Notes   []string
	Channel topology.Channel // that is pointed elsewhere
	From    int              // the node that it comes from; -1: not known
	Address string           // of the new source, host:port
	Others  []int            // the sources of its other channels
	Anchor  int              // without GTIDs: the node that stands still meanwhile, so that positions can be matched; else -1
}

func (v *Verdict) refuse(code, remedy, format string, args ...any) {
	v.Refused = append(v.Refused, Refusal{code, fleet.Trouble{What: code, Why: fmt.Sprintf(format, args...), Remedy: remedy}})
}

func (v *Verdict) note(format string, args ...any) {
	v.Notes = append(v.Notes, fmt.Sprintf(format, args...))
}

// judge is a question while it is answered.
type judge struct {
	Question
	v              Verdict
	replica, below *topology.Node
}

// Judge answers a question. It is pure.
func Judge(q Question) Verdict {
	j := &judge{Question: q, replica: &q.Topology.Nodes[q.Replica], below: &q.Topology.Nodes[q.Below]}
	j.v.From, j.v.Anchor = -1, -1
	if !j.seen() || !j.pick() {
		return j.v
	}
	j.place()
	j.kind()
	j.running()
	j.filters()
	j.identity()
	j.account()
	if j.v.Channel.GTID {
		j.gtids()
	} else {
		j.positions()
	}
	j.semiSync() // when it is known who stands still
	return j.v
}

func (j *judge) seen() bool {
	for _, n := range []*topology.Node{j.replica, j.below} {
		if !n.Seen {
			why := ""
			if n.Unseen != nil {
				why = ": " + n.Unseen.Text
			}
			j.v.refuse("not_seen", "", "%s was not seen%s", n.Name, why)
		}
	}
	if j.Replica == j.Below {
		j.v.refuse("itself", "", "%s cannot replicate from itself", j.replica.Name)
	}
	return len(j.v.Refused) == 0
}

// pick finds the channel.
func (j *judge) pick() bool {
	var names []string
	for _, ch := range j.replica.Channels {
		names = append(names, fmt.Sprintf("%q from %s", ch.Name, ch.Source))
		if j.Channel == nil && len(j.replica.Channels) == 1 || j.Channel != nil && ch.Name == *j.Channel {
			j.v.Channel = ch
			if _, is := Rebuilt(ch.Source); is {
				j.v.refuse("rebuilding", "risso replica rebuild "+j.replica.Name+" goes on", "%s is being rebuilt, and has not all of its rows", j.replica.Name)
				return false
			}
			for _, l := range j.Topology.Sources(j.Replica) {
				if l.Channel != nil && l.Channel.Name == ch.Name {
					j.v.From = l.Source
				}
			}
			return true
		}
	}
	switch {
	case len(names) == 0:
		j.v.refuse("no_channel", mysql.Of(j.replica.Server).Point("", mysql.Pointing{Host: "…", Port: 3306})+" with the account to log in as",
			"%s replicates from nobody, and so there is no account by which it could", j.replica.Name)
	case j.Channel == nil:
		j.v.refuse("several_channels", "name one with --channel", "%s has several channels: %s", j.replica.Name, strings.Join(names, ", "))
	default:
		j.v.refuse("no_channel", "", "%s has no channel %q; it has %s", j.replica.Name, *j.Channel, strings.Join(names, ", "))
	}
	return false
}

// place looks at where both stand in the topology, and by which address the one reaches the other.
func (j *judge) place() {
	if _, detached := Attached(j.v.Channel.Source); j.v.From == j.Below && !detached { // a detached one may still say whom it followed
		j.v.refuse("there", "", "%s replicates from %s already", j.replica.Name, j.below.Name)
	}
	if slices.Contains(j.Topology.Above(j.Below), j.Replica) {
		j.v.refuse("ring", "", "%s replicates from %s, directly or over others: it would be a ring", j.below.Name, j.replica.Name)
	}
	for _, l := range j.Topology.Sources(j.Replica) {
		if l.Source == j.Below && l.Channel != nil && l.Channel.Name != j.v.Channel.Name {
			j.v.refuse("twice", "", "%s replicates from %s by its channel %q already", j.replica.Name, j.below.Name, l.Channel.Name)
		}
	}
	j.v.Address = j.usual()
	if j.As != "" {
		if j.v.Address = address(j.As); j.v.Address == "" {
			j.v.refuse("no_address", "name it with --as host:port", "%q is no host:port", j.As)
			return
		}
	}
	host, _ := split(j.v.Address)
	switch {
	case host == "":
		j.v.refuse("no_address", "name it with --as host:port", "nobody tells by which address %s reaches %s", j.replica.Name, j.below.Name)
	case j.As == "" && follow.Loopback(host) && j.replica.Hostname != j.below.Hostname:
		j.v.refuse("no_address", "name it with --as host:port", "%s is at %s here, which on the machine of %s is another server", j.below.Name, j.v.Address, j.replica.Name)
	}
}

// usual is the address by which replicas reach the new source: that of those it has, its report_host, or the one by which it is reached from here.
func (j *judge) usual() string {
	if was, detached := Attached(j.v.Channel.Source); detached && j.Topology.At(j.Replica, was) == j.Below {
		return was
	}
	elsewhere := ""
	for _, l := range j.Topology.Replicas(j.Below) {
		if l.Channel == nil {
			continue
		}
		if _, detached := Attached(l.Channel.Source); detached {
			continue
		}
		if j.Topology.Nodes[l.Replica].Hostname == j.replica.Hostname {
			return l.Channel.Source
		}
		if host, _ := split(l.Channel.Source); !follow.Loopback(host) {
			elsewhere = l.Channel.Source
		}
	}
	if elsewhere != "" {
		return elsewhere
	}
	if j.below.Reported != "" {
		return j.below.Reported
	}
	for _, a := range j.below.Addresses {
		if host, _ := split(a); host != "" {
			return a
		}
	}
	return ""
}

// logsNothing says that a server writes no binary log.
func logsNothing(n *topology.Node) string {
	if n.Log.Closed {
		return n.Name + " writes no binary log any more, until it is started again"
	}
	return n.Name + " writes no binary log (log_bin)"
}

// kind looks at what the new source writes, and whether the replica understands it.
func (j *judge) kind() {
	b, r := j.below, j.replica
	if why := mysql.Of(r.Server).CannotFollow(mysql.Of(b.Server)); why != "" {
		j.v.refuse("version", "", "%s", why)
	}
	if !b.Log.On {
		j.v.refuse("no_log", "", "%s", logsNothing(b))
	} else if !b.Log.Updates && len(b.Channels) > 0 {
		j.v.refuse("no_updates", "", "%s does not write into its binary log what it replicates (log_replica_updates)", b.Name)
	}
	if r.Log.On && r.Log.Updates && strings.EqualFold(r.Log.Format, "STATEMENT") && b.Log.Format != "" && !strings.EqualFold(b.Log.Format, "STATEMENT") {
		j.v.refuse("format", "SET GLOBAL binlog_format = "+mysql.Literal(b.Log.Format)+" on "+r.Name,
			"%s writes its binary log by STATEMENT, into which the rows of %s, with binlog_format=%s, cannot be written", r.Name, b.Name, b.Log.Format)
	}
}

// running looks at whether the replica will apply what it received.
func (j *judge) running() {
	ch, name := j.v.Channel, j.replica.Name
	switch {
	case ch.SQL.Text != "":
		j.v.refuse("broken", "risso replica skip passes over one transaction", "%s stopped applying: %s", name, ch.SQL.Text)
	case j.replica.StartDrops(&ch):
		j.v.refuse("not_applied", mysql.Of(j.replica.Server).ApplyReceived(ch.Name, ch.RelayLog, ch.RelayPos)+" on "+name, "%s stands and has received what it has not applied; a START throws that away", name)
	case !ch.Applying() && j.unapplied():
		j.v.refuse("not_applied", mysql.Of(j.replica.Server).StartThread(ch.Name, mysql.Applier)+" on "+name, "%s does not apply, and has received what it has not applied", name)
	case ch.Delay > 0 && time.Duration(ch.Delay)*time.Second >= j.Wait && j.unapplied():
		j.v.refuse("delayed", fmt.Sprintf("risso replica delay %s 0, and %ds again afterwards; or wait for it, --wait %ds", name, ch.Delay, ch.Delay+60),
			"%s stays %s behind on purpose, and has received what it has not applied", name, seconds(ch.Delay))
	}
	if ch.Delay > 0 {
		j.v.note("%s goes on staying %s behind", name, seconds(ch.Delay))
	}
	if !ch.Receiving() {
		j.v.note("%s does not receive now%s", name, because(ch.IO))
	}
	for _, up := range j.below.Channels {
		switch {
		case up.SQL.Text != "":
			j.v.note("%s itself has stopped applying: %s", j.below.Name, up.SQL.Text)
		case up.Delay > 0 && time.Duration(up.Delay)*time.Second >= j.Wait:
			j.v.refuse("delayed", "", "%s stays %s behind on purpose: %s is ahead of it", j.below.Name, seconds(up.Delay), name)
		}
	}
}

// unapplied reports whether something was received and not applied, or may be.
func (j *judge) unapplied() bool { return j.replica.Unapplied(&j.v.Channel) }

// filters looks at what would not arrive.
func (j *judge) filters() {
	if f := j.below.Log.Filter; f != "" {
		j.v.refuse("filter", "", "%s leaves changes out of its binary log: %s", j.below.Name, f)
	}
	for _, ch := range j.below.Channels {
		if ch.Filter != "" {
			j.v.refuse("filter", "", "%s leaves out what it replicates, which %s would lack: %s", j.below.Name, j.replica.Name, ch.Filter)
		}
	}
	if f := j.v.Channel.Filter; f != "" {
		j.v.note("%s goes on leaving out: %s", j.replica.Name, f)
	}
}

// identity looks at server_id, which no two may have.
func (j *judge) identity() {
	others := []int{j.Below}
	for _, l := range j.Topology.Replicas(j.Below) {
		others = append(others, l.Replica)
	}
	for _, i := range others {
		switch n := &j.Topology.Nodes[i]; {
		case i == j.Replica || n.ServerID == "" || n.ServerID != j.replica.ServerID:
		case !n.Seen: // a source goes on listing a replica that went away
			j.v.note("%s lists %s with the server_id of %s, and it was not seen: it may be the same server", j.below.Name, n.Name, j.replica.Name)
		default:
			j.v.refuse("server_id", "", "%s and %s have the same server_id %s", j.replica.Name, n.Name, n.ServerID)
		}
	}
}

// semiSync looks at whether commits of a source would wait for acknowledgements that nobody sends meanwhile: neither the replica nor the anchor receives then.
func (j *judge) semiSync() {
	stand := map[int][]string{} // who acknowledges, by whose commits
	if j.v.From >= 0 && j.replica.SemiSync.ReplicaActive {
		stand[j.v.From] = append(stand[j.v.From], j.replica.Name)
	}
	if j.v.Anchor >= 0 && j.Topology.Nodes[j.v.Anchor].SemiSync.ReplicaActive {
		for _, l := range j.Topology.Sources(j.v.Anchor) {
			stand[l.Source] = append(stand[l.Source], j.Topology.Nodes[j.v.Anchor].Name)
		}
	}
	for _, source := range slices.Sorted(maps.Keys(stand)) {
		s, who := j.Topology.Nodes[source].SemiSync, stand[source]
		if s.SourceActive && s.Replicas-len(who) < s.WaitFor {
			j.v.refuse("semi_sync", "let another replica acknowledge first", "%s waits for %s of %d, and %s would send none: its commits would wait up to %s",
				j.Topology.Nodes[source].Name, digits.Counted(s.WaitFor, "acknowledgement"), s.Replicas, strings.Join(who, " and "), s.Timeout)
		}
	}
}

// account looks for the one by which the replica logs in.
func (j *judge) account() {
	privileged := slices.ContainsFunc(j.Accounts, func(a Account) bool { return a.Privilege })
	switch {
	case j.AccountWhy != "" && j.User == "": // it is not pointed anywhere yet
		j.v.note("whether %s can log in at %s is seen only when it does: %s", j.replica.Name, j.below.Name, j.AccountWhy)
	case j.AccountWhy != "":
		j.v.note("whether %s can log in as %s is seen only when it does: %s", j.replica.Name, mysql.Literal(j.User), j.AccountWhy)
	case len(j.Accounts) == 0:
		j.v.refuse("account", "", "%s has no account %s, by which %s logs in", j.below.Name, mysql.Literal(j.User), j.replica.Name)
	case !privileged && !mysql.Of(j.below.Server).HasRoles():
		j.v.refuse("account", "", "%s of %s may not replicate (REPLICATION SLAVE)", mysql.Literal(j.User), j.below.Name)
	case !privileged:
		j.v.note("%s of %s has no REPLICATION SLAVE of its own; it may have it by a role", mysql.Literal(j.User), j.below.Name)
	}
}
