package diagnose

import (
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/oneline"
)

// cut is one line of a text, not too long for a sentence.
func cut(text string) string {
	const most = 400
	return oneline.Cut(oneline.Of(text), most)
}

// settings is about how servers are set.
func (v *view) settings() {
	for i := range v.Nodes {
		n := &v.Nodes[i]
		if !n.Seen {
			continue
		}
		source := len(v.down[i]) > 0
		replica := slices.ContainsFunc(v.up[i], func(k int) bool { return v.Links[k].Channel != nil })
		s := v.server(i)
		set := func(code, variable, value, want string) *Diagnosis {
			d := v.add("repl.config:"+code, i, -1, "%s is %s on %s", variable, value, n.Name).see("%s = %s", variable, value)
			if want != "" {
				d.remedy(n.Name, s.SetLasting(variable, want))
			}
			return d
		}
		if source {
			if n.Log.Format == "STATEMENT" {
				set("binlog_format", "binlog_format", "STATEMENT", "ROW")
			}
			if d := n.Durable; d.SyncLog != "" && d.SyncLog != "1" && n.Log.On {
				set("sync_binlog", "sync_binlog", d.SyncLog, "1")
			}
			if d := n.Durable; d.FlushRedo != "" && d.FlushRedo != "1" {
				set("innodb_flush_log_at_trx_commit", "innodb_flush_log_at_trx_commit", d.FlushRedo, "1")
			}
			if d := n.Durable; d.LogError == "IGNORE_ERROR" {
				set("binlog_error_action", "binlog_error_action", d.LogError, "ABORT_SERVER")
			}
			if strings.HasPrefix(n.GTID.Mode, "OFF") {
				set("gtid_mode", "gtid_mode", n.GTID.Mode, "")
			}
			if n.Log.Filter != "" {
				v.add("repl.filter:source", i, -1, "%s leaves changes out of its binary log", n.Name).see("%s", n.Log.Filter)
			}
		}
		if (source || replica) && n.GTID.ByDomain && !n.GTID.Strict && n.Log.On {
			set("gtid_strict_mode", "gtid_strict_mode", "OFF", "ON")
		}
		if replica {
			v.replicaSettings(i, set)
			v.impatient(i)
		}
	}
	v.logsDiffer()
}

func (v *view) replicaSettings(i int, set func(code, variable, value, want string) *Diagnosis) {
	n, s := &v.Nodes[i], v.server(i)
	if len(v.down[i]) > 0 && n.Log.On && !n.Log.Updates {
		set("log_replica_updates", "log_"+s.ReplicaVariable("updates"), "OFF", "")
	}
	if !n.Log.On && !n.Log.Closed {
		set("log_bin", "log_bin", "OFF", "")
	}
	if !n.Applier.Recovery && s.NeedsRelayRecovery() {
		d := set("relay_log_recovery", "relay_log_recovery", "OFF", "")
		if s.KeepsSettings() {
			d.remedy(n.Name, s.SetForStart("relay_log_recovery", "ON")+"; RESTART")
			d.Next = "it takes a restart: RESTART works only under something that starts the server again, as systemd or mysqld_safe; else it fails with error 3707, and the server is restarted by hand"
		}
	}
	if n.Applier.SkipErr != "" {
		set("skip_errors", s.ReplicaVariable("skip_errors"), n.Applier.SkipErr, "")
	}
	if n.Applier.ExecMode == "IDEMPOTENT" {
		set("exec_mode", s.ApplyModeVariable(), "IDEMPOTENT", "STRICT")
	}
	if n.Applier.Workers > 1 && !n.Applier.Ordered && s.MayReorder() {
		d := set("preserve_commit_order", s.ReplicaVariable("preserve_commit_order"), "OFF", "")
		if s.KeepsSettings() || n.Log.Updates { // MySQL 5.7 needs log_slave_updates
			d.remedy(n.Name, s.StopReplica("")+"; "+s.SetLasting(s.ReplicaVariable("preserve_commit_order"), "ON")+"; "+s.StartReplica(""))
		}
	}
}

// patience is for how long a replica that follows a server which is started again has to try to connect at least: recovery from a crash takes minutes.
const patience = 5 * time.Minute

// impatient is about channels that give up to connect before their source can be back.
func (v *view) impatient(i int) {
	n, s := &v.Nodes[i], v.server(i)
	for _, k := range v.up[i] {
		ch := v.Links[k].Channel
		if ch == nil || ch.Tries == 0 || time.Duration(ch.Tries)*ch.Retry >= patience {
			continue
		}
		longer := s.Point(ch.Name, mysql.Pointing{Beat: ch.Beat, Lasting: true})
		v.add("repl.config:connect_tries", i, k, "%s stops replicating for good when %s is away for %s", n.Name, v.source(&v.Links[k]), digits.Span(time.Duration(ch.Tries)*ch.Retry)).
			see("it gives up after %s to connect, one each %s", digits.Plural(ch.Tries, "try", "tries"), digits.Span(ch.Retry)).
			remedy(n.Name, s.StopThread(ch.Name, mysql.Receiver)+"; "+longer+"; "+s.StartThread(ch.Name, mysql.Receiver))
	}
}

// logsDiffer compares the binary logs of source and replica.
func (v *view) logsDiffer() {
	for k := range v.Links {
		l := &v.Links[k]
		s, r := &v.Nodes[l.Source], &v.Nodes[l.Replica]
		if l.Channel == nil || !s.Seen || !s.Log.On || !r.Log.On {
			continue
		}
		for _, c := range [][3]string{{"binlog_checksum", s.Log.Checksum, r.Log.Checksum}, {"binlog_row_image", s.Log.Image, r.Log.Image}} {
			if c[1] == "" || c[2] == "" || c[1] == c[2] {
				continue
			}
			v.add("repl.config:"+c[0], l.Replica, k, "%s of %s is another than that of its source %s", c[0], r.Name, s.Name).see("%s on the replica, %s on the source", c[2], c[1]).with(s.Name).
				remedy(r.Name, v.server(l.Replica).SetLasting(c[0], c[1]))
		}
	}
}

// filters is about what replicas leave out.
func (v *view) filters() {
	for i := range v.Nodes {
		sets := map[string][]string{}
		for _, k := range v.down[i] {
			l := &v.Links[k]
			if l.Channel == nil {
				continue
			}
			sets[l.Channel.Filter] = append(sets[l.Channel.Filter], v.name(l.Replica))
			if l.Channel.Filter != "" {
				v.add("repl.filter:replica", l.Replica, k, "%s leaves out some of what %s writes", v.name(l.Replica), v.source(l)).see("%s", l.Channel.Filter)
			}
		}
		if len(sets) < 2 {
			continue
		}
		d := v.add("repl.filter:differs", i, -1, "replicas of %s leave out different things", v.name(i))
		for filter, names := range sets {
			if filter == "" {
				filter = "nothing"
			}
			d.see("%s: %s", filter, listed(names)).with(names...)
		}
		slices.Sort(d.Evidence)
		slices.Sort(d.Nodes[1:])
	}
}

// groups is about members of Galera clusters and of Group Replication.
func (v *view) groups() {
	titles := map[string]int{}
	for i := range v.Nodes {
		n := &v.Nodes[i]
		g := n.Group
		if !n.Seen || g == nil {
			continue
		}
		if g.Kind == "galera" {
			v.galera(i)
			if first, ok := titles[g.Title]; ok && v.Nodes[first].Group.Name != g.Name && g.Title != "" && g.Name != "" {
				d := v.add("group.one_name", i, -1, "%s and %s belong to two clusters with one name", n.Name, v.name(first)).see("%s: %s on one, %s on the other", g.Title, g.Name, v.Nodes[first].Group.Name).with(v.name(first))
				d.Subject = v.name(first)
			} else if !ok {
				titles[g.Title] = i
			}
		} else {
			v.member(i)
		}
		for j := range i {
			if o := v.Nodes[j].Group; o != nil && v.Nodes[j].Seen && o.Kind == g.Kind && o.Name == g.Name && o.Primary && g.Primary && v.apart(i, j) {
				d := v.add("group.split", i, -1, "%s and %s are in two parts of one cluster, which both think that they have the majority", n.Name, v.name(j)).with(v.name(j)).
					see("%s sees %s, %s sees %s", n.Name, digits.Counted(len(g.Members), "member"), v.name(j), digits.Counted(len(o.Members), "member"))
				d.Subject = v.name(j)
				break
			}
		}
	}
}

// apart reports whether two members list nobody in common.
func (v *view) apart(i, j int) bool {
	mine, theirs := v.Nodes[i].Group.Members, v.Nodes[j].Group.Members
	if len(mine) == 0 || len(theirs) == 0 {
		return false
	}
	for _, m := range mine {
		for _, o := range theirs {
			if m.UUID != "" && m.UUID == o.UUID || m.Address == o.Address {
				return false
			}
		}
	}
	return true
}

// goesOn reports whether another member of a Galera member's cluster has the majority.
func (v *view) goesOn(i int) bool {
	return slices.ContainsFunc(v.Nodes, func(n topology.Node) bool {
		return n.Seen && n.Group != nil && n.Group.Title == v.Nodes[i].Group.Title && n.Group.Kind == v.Nodes[i].Group.Kind && n.Group.Primary
	})
}

func (v *view) galera(i int) {
	n := &v.Nodes[i]
	switch g := n.Group; {
	case !g.Primary:
		d := v.add("galera.non_primary", i, -1, "the Galera member %s is in no part of its cluster that has the majority, and refuses statements", n.Name).see("it sees %s", digits.Counted(g.Size, "member")).see("its state: %s", g.State)
		if v.goesOn(i) { // two parts would be written to
			d.Next = "do not bootstrap it: other members go on without it; mend the network between them, and it joins again by itself"
		}
	case g.State != "Synced":
		v.add("galera.not_synced", i, -1, "the Galera member %s is not synced", n.Name).see("its state: %s", g.State)
	}
}

func (v *view) member(i int) {
	n := &v.Nodes[i]
	g := n.Group
	switch {
	case g.State == "OFFLINE" || g.State == "ERROR" || g.State == "RECOVERING":
		d := v.add("group.not_online", i, -1, "the member %s of the group is not online", n.Name).see("its state: %s", g.State)
		if g.State == "OFFLINE" {
			d.remedy(n.Name, "START GROUP_REPLICATION")
		}
	case !g.Primary:
		d := v.add("group.no_quorum", i, -1, "%s sees no majority of its group", n.Name)
		for _, m := range g.Members {
			d.see("%s is %s", m.Address, m.State)
		}
		return
	}
	for _, m := range g.Members {
		if m.State == "UNREACHABLE" {
			d := v.add("group.member_missing", i, -1, "the group of %s does not reach %s", n.Name, m.Address).see("its state there is UNREACHABLE")
			d.Subject = m.Address
		}
	}
}
