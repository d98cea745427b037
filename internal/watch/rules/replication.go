package rules

import (
	"fmt"
	"math"
	"strings"

	"github.com/rissodb/risso/internal/channels"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/wsrep"
)

// replicationStopped finds channels whose threads do not run.
func replicationStopped(r *round) {
	for _, ch := range r.Channels {
		io, sql := strings.EqualFold(ch.IORunning, "Yes"), strings.EqualFold(ch.SQLRunning, "Yes")
		if io && sql {
			continue
		}
		c := candidate{id: "repl.stopped", subject: ch.Name, severity: fleet.SeverityCritical, chart: "replication_threads", remedy: r.server().StartReplica(ch.Name)}
		source := ch.Source
		if source == "" {
			source = "its source"
		}
		switch {
		case strings.EqualFold(ch.IORunning, "Connecting") && sql:
			c.head = "replication cannot connect to " + source
			c.remedy = "" // starting what already tries changes nothing
		case !io && !sql:
			c.head = "replication from " + source + " is stopped"
		case !io:
			c.head = "replication from " + source + " is not receiving: the IO thread is stopped"
		default:
			c.head = "replication from " + source + " is not applying: the SQL thread is stopped"
		}
		if ch.Name != "" {
			c.head = "channel " + ch.Name + ": " + c.head
		}
		if is, next, kept := channels.Kept(ch.Source); kept {
			c.severity, c.remedy, c.tail = fleet.SeverityWarning, "", ": it is "+is+"; "+next // to start it would lead nowhere
		} else if e := ch.Error(); e.Text != "" {
			c.tail, c.about = channels.Failure(e), e.Case()
			advice := ""
			c.remedy, advice = channels.GoOn(r.server(), ch, r.setting)
			c.tail += advice
		} else if !strings.EqualFold(ch.IORunning, "Connecting") {
			c.severity = fleet.SeverityWarning // no error: somebody stopped it
			c.tail = ", without an error: by a command or a restart"
		}
		if c.remedy != "" {
			c.tail += channels.StartDrops(r.server(), ch)
		}
		if !sql && ch.Unapplied > 0 {
			c.tail += fmt.Sprintf("; %s of the source's log are received and not applied", digits.Bytes(float64(ch.Unapplied)))
		}
		r.add(c)
	}
}

const lagMetric = "mysql_slave_status_seconds_behind_master"

// worstLag is the longest delay of any channel, and its key. A delay that is
// wanted (SQL_Delay) is taken off.
func worstLag(s *Snapshot) (lag float64, key string, ok bool) {
	for _, k := range s.keys(lagMetric) {
		v, there := s.value(k)
		if !there {
			continue
		}
		if wanted, there := s.value("mysql_slave_status_sql_delay" + labels(k, lagMetric)); there {
			v = max(v-wanted, 0)
		}
		if !ok || v > lag {
			lag, key, ok = v, k, true
		}
	}
	return lag, key, ok
}

// Lag is the longest delay of any channel in seconds, without what is wanted of it; false if no channel has one.
func Lag(s *Snapshot) (float64, bool) {
	lag, _, ok := worstLag(s)
	return lag, ok
}

func replicationLag(r *round) {
	lag, key, ok := worstLag(r.Snapshot)
	if !ok {
		return
	}
	before, seen := r.j.counts["lag"]
	r.j.counts["lag"] = lag
	if lag < channels.Late {
		return
	}
	c := candidate{id: "repl.lag", severity: fleet.SeverityWarning, chart: "replication"}
	if lag >= channels.VeryLate {
		c.severity = fleet.SeverityCritical
	}
	source := label(key, "master_host")
	if source == "" {
		source = "its source"
	}
	c.head = fmt.Sprintf("the replica is more than %s behind %s", digits.Age(channels.Late), source)
	if name := label(key, "channel_name") + label(key, "connection_name"); name != "" {
		c.head = "channel " + name + ": " + c.head
	}
	c.tail = ", now " + digits.Age(lag)
	if seen && r.dt > 0 {
		// Mean over some seconds: the delay is reported in whole seconds.
		if course := channels.CourseOf(lag, r.smooth("lag gain", (lag-before)/r.dt.Seconds()), 1); course.Way != channels.Unsettled {
			c.tail += "; " + course.String()
		}
	}
	c.remedy = channels.MoreAppliers(r.server(), r.setting)
	r.add(c)
}

// replicaWritable finds a replica that anybody can write to, who then has what its
// source has not.
func replicaWritable(r *round) {
	if r.Instance.Role != fleet.RoleReplica {
		return
	}
	off := false
	switch strings.ToUpper(r.text("read_only")) {
	case "OFF", "0":
		off = true
	case "":
		v, ok := r.value(variablePrefix + "read_only")
		off = ok && v == 0
	}
	if !off {
		return
	}
	c := candidate{id: "repl.writable", severity: fleet.SeverityWarning, chart: "replication",
		head: "the replica accepts writes: read_only is off", remedy: "SET GLOBAL " + r.server().ReadOnlyVariable() + " = ON"}
	r.add(c)
}

// inGalera reports whether a server is a member of a cluster.
func inGalera(s *Snapshot) bool {
	if s.Instance.Role == fleet.RoleGalera || strings.EqualFold(s.text("wsrep_on"), "ON") {
		return true
	}
	n, ok := s.value(statusPrefix + "wsrep_cluster_size")
	return ok && n > 0
}

// galeraPrimary finds a member that lost the majority and refuses all statements.
func galeraPrimary(r *round) {
	status := r.text("wsrep_cluster_status")
	if status == "" {
		// mysqld_exporter writes Primary as 1 and non-Primary as 0
		v, ok := r.value(statusPrefix + "wsrep_cluster_status")
		if !ok || !inGalera(r.Snapshot) {
			return
		}
		if status = "Primary"; v == 0 {
			status = "non-Primary"
		}
	}
	if strings.EqualFold(status, "Primary") || !inGalera(r.Snapshot) {
		return // a MariaDB that is in no cluster says Disconnected
	}
	c := candidate{id: "galera.non_primary", severity: fleet.SeverityCritical, chart: "galera_size", head: wsrep.NonPrimaryWords(status), remedy: "SHOW GLOBAL STATUS LIKE 'wsrep_%'"}
	differs := false
	if v, ok := r.value(statusPrefix + "wsrep_local_state"); ok && v == wsrep.Inconsistent {
		differs, c.head = true, wsrep.InconsistentWords
	}
	if n, ok := r.value(statusPrefix + "wsrep_cluster_size"); ok {
		c.tail = "; it sees " + plural(n, "member", "members")
	}
	if !differs {
		c.tail += "; " + wsrep.BootstrapWho
	}
	r.add(c)
}

func galeraSynced(r *round) {
	v, ok := r.value(statusPrefix + "wsrep_local_state")
	if !ok || v == wsrep.Synced || !inGalera(r.Snapshot) {
		return
	}
	words := r.text("wsrep_local_state_comment")
	if words == "" {
		words = wsrep.State(int(v))
	}
	r.add(candidate{id: "galera.not_synced", severity: fleet.SeverityWarning, chart: "galera_queue",
		head: wsrep.UnsyncedWords(words), remedy: "SHOW GLOBAL STATUS LIKE 'wsrep_local_%'"})
}

// flowControl finds a cluster that waits for its slowest member.
func flowControl(r *round) {
	ns, ok := r.rate(statusPrefix + "wsrep_flow_control_paused_ns")
	if !ok {
		return
	}
	share := math.Min(r.smooth("flow control", ns/1e9), 1)
	severity, bad := wsrep.PausedSeverity(share)
	if !bad {
		return
	}
	c := candidate{id: "galera.flow_control", severity: severity, chart: "galera_flow", head: wsrep.PausedWords(share),
		remedy: "SHOW GLOBAL STATUS LIKE 'wsrep_local_recv_queue%'", tail: "; the member whose queue is long is the slow one"}
	if n, ok := r.value(variablePrefix + "wsrep_slave_threads"); ok && n <= 1 {
		c.remedy = "SET GLOBAL wsrep_slave_threads = " + wsrep.MoreAppliers
	}
	r.add(c)
}
