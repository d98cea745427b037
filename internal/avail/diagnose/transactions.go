package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/channels"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// transactions is about what replicas have and their sources have not, and the other way round.
func (v *view) transactions() {
	for i := range v.Nodes {
		if n := &v.Nodes[i]; n.Seen && n.Errant != "" {
			v.errant(i)
		}
	}
	for k := range v.Links {
		l := &v.Links[k]
		if l.Channel == nil || !v.Nodes[l.Source].Seen {
			continue
		}
		v.purged(k)
		v.versions(k)
		v.modes(k)
	}
	v.strangers()
}

// errant tells of transactions that a replica has and its source has not. Where both can be written to and do not receive from each other, they may have parted.
func (v *view) errant(i int) {
	n := &v.Nodes[i]
	source, parted := -1, -1
	for _, k := range v.up[i] {
		l := &v.Links[k]
		source = l.Source
		s := &v.Nodes[l.Source]
		if l.Missing != nil && *l.Missing > 0 && n.Writes.Open() && s.Seen && s.Writes.Open() && l.Channel != nil && !(l.Channel.Receiving() && l.Channel.Applying()) {
			parted = k
		}
	}
	if parted >= 0 {
		l := &v.Links[parted]
		d := v.add("repl.split_brain", i, parted, "%s and its source %s can both be written to, and each has transactions that the other has not", n.Name, v.name(l.Source)).see("only on %s: %s", n.Name, cut(n.Errant)).
			see("only on %s: %s", v.name(l.Source), digits.Counted(int64(min(*l.Missing, 1<<62)), "transaction")).with(v.name(l.Source))
		d.NotSeen = "whether the replica's own are newer than its stop, or were there long before; " + d.NotSeen
	}
	d := v.add("repl.errant_gtid", i, -1, "the replica %s has transactions that its source %s has not", n.Name, v.name(source)).see("%s", cut(n.Errant)).with(v.name(source))
	if v.server(i).GTIDsByDomain() {
		d.Next = "look at what they changed: risso gtid errant; risso gtid repair lets the replica forget them where the rows are as on the source, and says so where only risso replica rebuild helps"
	}
}

// purged finds a source that has thrown away what a replica needs.
func (v *view) purged(k int) {
	l := &v.Links[k]
	s, r := &v.Nodes[l.Source], &v.Nodes[l.Replica]
	if s.GTID.ByDomain || r.GTID.ByDomain || s.GTID.Purged == "" || !l.Channel.GTID {
		return
	}
	gone, err := mysql.ParseGTIDSet(s.GTID.Purged)
	has, err2 := mysql.ParseGTIDSet(r.GTID.Executed)
	got, err3 := mysql.ParseGTIDSet(l.Channel.Received)
	if err != nil || err2 != nil || err3 != nil {
		return
	}
	lacks := gone.Subtract(has.Union(got))
	if lacks.Empty() {
		return
	}
	v.add("repl.purged", l.Replica, k, "%s has thrown away logs that %s needs", s.Name, r.Name).see("%s of the source's gtid_purged: %s", digits.Counted(int64(min(lacks.Count(), 1<<62)), "transaction"), cut(lacks.String())).with(s.Name)
}

// versions compares what source and replica are.
func (v *view) versions(k int) {
	l := &v.Links[k]
	s, r := &v.Nodes[l.Source], &v.Nodes[l.Replica]
	if s.Number == 0 || r.Number == 0 {
		return
	}
	if !s.SameKind(r.Server) {
		v.add("repl.flavour", l.Replica, k, "%s is a %s and replicates from %s, a %s", r.Name, r.Flavour, s.Name, s.Flavour).see("%s; %s", r.Server.String(), s.Server.String()).with(s.Name)
		v.packed(k, true)
		return
	}
	if !s.Number.SameSeries(r.Number) && r.Number < s.Number {
		v.add("repl.version", l.Replica, k, "%s is older than its source %s", r.Name, s.Name).see("%s; %s", r.Server.String(), s.Server.String()).with(s.Name)
	}
	if from := v.server(l.Source).UpgradeStep(); from > 0 && v.server(l.Replica).UpgradeStep() > from+1 {
		v.add("repl.version_gap", l.Replica, k, "%s is more than one step newer than its source %s", r.Name, s.Name).see("%s; %s", r.Server.String(), s.Server.String()).with(s.Name)
	}
	v.packed(k, !r.AtLeast(80020, fleet.Never))
}

// packed finds a source that compresses transactions for one that cannot read them.
func (v *view) packed(k int, cannot bool) {
	l := &v.Links[k]
	if s := &v.Nodes[l.Source]; s.Log.Packed && cannot {
		v.add("repl.config:binlog_transaction_compression", l.Replica, k, "%s compresses transactions, which %s cannot read", s.Name, v.name(l.Replica)).see("binlog_transaction_compression is ON; the replica is %s", v.Nodes[l.Replica].Server.String()).
			with(s.Name).remedy(s.Name, v.server(l.Source).SetLasting("binlog_transaction_compression", "OFF"))
	}
}

// modes compares whether source and replica have GTIDs. Source: MySQL manual, "Replication Mode Concepts", the table of combinations.
func (v *view) modes(k int) {
	l := &v.Links[k]
	s, r := &v.Nodes[l.Source], &v.Nodes[l.Replica]
	if !s.SameKind(r.Server) {
		return
	}
	writes := s.GTID.Mode == "ON" || s.GTID.Mode == "ON_PERMISSIVE"
	if s.GTID.Mode != "" && (r.GTID.Mode == "OFF" && writes || r.GTID.Mode == "ON" && !writes) {
		v.add("repl.gtid_modes", l.Replica, k, "gtid_mode of %s and its source %s do not go together", r.Name, s.Name).see("%s on the replica, %s on the source", r.GTID.Mode, s.GTID.Mode).with(s.Name)
	}
	if _, _, kept := channels.Kept(l.Channel.Source); kept { // what changes it starts it
		return
	}
	if !l.Channel.GTID && (s.GTID.Mode == "ON" && r.GTID.Mode == "ON" || s.GTID.ByDomain && s.GTID.Logged != "") {
		v.add("repl.position", l.Replica, k, "%s follows %s by file and position", r.Name, v.source(l)).see("at %s:%d", l.Channel.Log, l.Channel.Pos).remedy(r.Name, v.server(l.Replica).FollowGTID(l.Channel.Name))
	}
}

// pairs is about servers of one replication that are alike where they must not be.
func (v *view) pairs() {
	for _, what := range []string{"server_uuid", "server_id"} {
		same := map[string][]int{}
		var order []string
		for i := range v.Nodes {
			n := &v.Nodes[i]
			id := n.UUID
			if what == "server_id" {
				if id = n.ServerID; id == "0" {
					continue
				}
				id = fmt.Sprintf("%s in %d", id, v.part[i]) // those of another replication may have it
			}
			if !n.Seen || id == "" || n.ServerID == "" && what == "server_id" {
				continue
			}
			if same[id] == nil {
				order = append(order, id)
			}
			same[id] = append(same[id], i)
		}
		for _, id := range order {
			list := same[id]
			if len(list) < 2 || what == "server_id" && v.Nodes[list[0]].Group != nil && v.Nodes[list[0]].Group.Kind == "galera" { // whose members may share it
				continue
			}
			value, _, _ := strings.Cut(id, " ")
			d := v.add("repl.config:"+what, list[0], -1, "%s have the %s %s", digits.Counted(len(list), "server"), what, value).see("%s", listed(v.names(list))).with(v.names(list)[1:]...)
			for _, i := range list {
				d.see("%s is %s", v.name(i), v.Nodes[i].Place())
			}
			d.Subject = value
		}
	}
}

// identities tells of what does not fit together.
func (v *view) identities() {
	for _, s := range v.Surprises {
		code := "topology." + s.Kind
		if _, known := v.codes[code]; !known {
			continue
		}
		node := v.Find(s.Node)
		d := v.add(code, node, -1, "%s", s.Text).see("%s and %s", s.Node, s.Other)
		d.Nodes, d.Subject = []string{s.Node}, s.Other
		d.with(s.Other)
	}
}

// seeing tells what was not seen.
func (v *view) seeing() {
	for i := range v.Nodes {
		n := &v.Nodes[i]
		if !n.Seen {
			continue
		}
		if len(n.Unknown) > 0 {
			what := make([]string, len(n.Unknown))
			for k, u := range n.Unknown {
				what[k] = u.What
			}
			d := v.add("topology.not_all_seen", i, -1, "%s did not tell %s", n.Name, strings.Join(what, ", "))
			var grants []string
			for _, u := range n.Unknown {
				d.see("%s: %s", u.What, cut(u.Why))
				if u.Remedy != "" && !slices.Contains(grants, u.Remedy) {
					grants = append(grants, u.Remedy)
				}
			}
			if !slices.Contains(what, "its replicas") && !slices.Contains(what, "what it replicates") { // else servers are missing
				d.Severity = info
			}
			d.Next = "give the account what it lacks, as another account: " + strings.Join(grants, "; ")
			if len(grants) == 0 {
				d.Next = "see what the server says"
			}
		}
		if n.Unseen != nil && n.Unseen.Kind != "hung" {
			v.add("topology.not_all_seen", i, -1, "%s broke off while it was asked: %s", n.Name, n.Unseen.Words()).see("%s", cut(n.Unseen.Text)).Severity = info
		}
	}
	if v.Left > 0 && len(v.Nodes) > 0 {
		v.add("topology.left", 0, -1, "%s were told of and not asked", digits.Counted(v.Left, "address")).see("the search ends at a limit")
	}
}
