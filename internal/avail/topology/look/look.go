// Package look asks servers where they stand in replication, for package topology.
package look

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/follow"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// At is how the server at an address is asked: one of the targets with its own account, others with that of the first.
func At(targets []mysql.Target, address string) mysql.Target {
	for _, t := range targets {
		if strings.EqualFold(t.Address(), address) {
			return t
		}
	}
	return targets[0].WithAddress(address)
}

// Search is a search that asks with the accounts of targets, as At says.
func Search(targets []mysql.Target) *topology.Search {
	return Beside(targets, func(mysql.Target) *mysql.Traffic { return nil })
}

// Beside is a Search of a process that has other connections to servers: traffic is what those to a server share, nil if there are none. It looks when none of
// them goes first, and gives its place up at once.
func Beside(targets []mysql.Target, traffic func(mysql.Target) *mysql.Traffic) *topology.Search {
	target := func(address string) asked { t := At(targets, address); return asked{t, traffic(t)} }
	return &topology.Search{
		Look: func(ctx context.Context, address string) (topology.Facts, error) {
			t := target(address)
			f, err := t.server(ctx)
			if mysql.ClassOf(err) == mysql.ClassTimeout && accepts(t.target.Address()) {
				err = &hung{err}
			}
			return f, err
		},
		Received: func(ctx context.Context, address string) ([]topology.Channel, error) {
			return target(address).received(ctx)
		},
		Again:  func(ctx context.Context, address string) (string, error) { return target(address).executed(ctx) },
		Failed: Failed,
	}
}

// asked is how a server is asked.
type asked struct {
	target  mysql.Target
	traffic *mysql.Traffic // nil: nobody else of this process asks it
}

// connect connects when it is the turn of those that do not go first; leave is to be called when the connection is closed.
func (a asked) connect(ctx context.Context) (c *mysql.Conn, leave func(), err error) {
	leave = func() {}
	if a.traffic != nil {
		for !a.traffic.Enter() {
			if a.traffic.Turn(ctx); ctx.Err() != nil {
				return nil, nil, fmt.Errorf("the connection that reads its numbers goes first, and is not there: %w", ctx.Err())
			}
		}
		leave = a.traffic.Leave
	}
	if c, err = mysql.Connect(ctx, a.target, a.traffic); err != nil {
		leave()
	}
	return c, leave, err
}

// hung is the error of a server that takes connections and says nothing.
type hung struct{ error }

func (h *hung) Unwrap() error { return h.error }

// accepts reports whether something takes connections at an address.
func accepts(address string) bool {
	network := "tcp"
	if strings.HasPrefix(address, "/") {
		network = "unix"
	}
	c, err := net.DialTimeout(network, address, time.Second)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// Failed says why a server did not answer.
func Failed(err error) topology.Failure {
	var h *hung
	if errors.As(err, &h) {
		return topology.Failure{Kind: "hung", Text: err.Error()}
	}
	return topology.Failure{Kind: string(mysql.ClassOf(err)), Text: err.Error()}
}

// executed reads once more which transactions a server has, as topology.Search.Again wants it.
func (a asked) executed(ctx context.Context) (string, error) {
	c, leave, err := a.connect(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	defer c.Close()
	v, err := read.Variables(ctx, c, []string{c.Server.ExecutedTransactions()})
	return oneLine(v[c.Server.ExecutedTransactions()]), err
}

// received reads once more what a server replicates, as topology.Search.Received wants it.
func (a asked) received(ctx context.Context) ([]topology.Channel, error) {
	c, leave, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	defer c.Close()
	r := &reader{c: c}
	err = r.channels(ctx)
	return r.f.Channels, err
}

// here reports whether a name leads to this machine itself, as one of /etc/hosts may: what such a server calls 127.0.0.1 is reached so from here, too.
func here(ctx context.Context, t mysql.Target) bool {
	host, _, err := net.SplitHostPort(t.Address())
	if err != nil {
		return true
	}
	list, err := net.DefaultResolver.LookupHost(ctx, host)
	return err == nil && len(list) > 0 && !slices.ContainsFunc(list, func(a string) bool { return !follow.Loopback(a) })
}

// reader reads one server.
type reader struct {
	c    *mysql.Conn
	f    topology.Facts
	vars map[string]string // named as old servers do
	stat map[string]string
	// noStatus is why it would not say what it replicates; "": nothing is known of that. queueing: its thread that receives writes to the relay log.
	noStatus, queueing string
	held               bool          // who asks for the place of the binary log would wait
	waited             time.Duration // the longest that a session waits for an acknowledgement
}

// replicates is the step that asks what a server replicates.
const replicates = topology.Replicates

// server asks a server. What it does not tell for want of a privilege is in Facts.Unknown; after another error, what was read until then is returned with it.
func (a asked) server(ctx context.Context) (topology.Facts, error) {
	asked := time.Now()
	c, leave, err := a.connect(ctx)
	if err != nil {
		return topology.Facts{}, err
	}
	defer leave()
	defer c.Close()
	r := &reader{c: c}
	r.f.Server, r.f.Hostname, r.f.Port, r.f.DataDir, r.f.Asked = c.Server.Server, c.Server.Hostname, c.Server.Port, c.Server.DataDir, asked.Round(0)
	r.f.Inside = c.Inside()
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"what sessions wait for", r.sessions}, // which may be why the next do not answer
		{"its settings", r.settings}, {"its status", r.status}, {"its clock", r.clock}, {replicates, r.channels}, {"its binary log", r.log}, {"its replicas", r.replicas}, {"its group", r.group},
	} {
		err := step.do(ctx)
		if step.what == replicates && (err != nil || r.noStatus != "") && r.queueing != "" {
			r.wait(r.queueing)
		}
		switch mysql.ClassOf(err) {
		case "":
		case mysql.ClassPrivilege, mysql.ClassMissing, mysql.ClassOther:
			r.f.Unknown = append(r.f.Unknown, fleet.Trouble{What: step.what, Why: err.Error(), Remedy: fleet.RemedyOf(err)})
		default:
			return r.f, fmt.Errorf("ask for %s: %w", step.what, err)
		}
	}
	r.f.Took = time.Since(asked)
	r.f.Here = r.f.TellsLoopback() && here(ctx, a.target)
	if r.noStatus != "" {
		return r.f, &hung{fmt.Errorf("ask for %s: %s", replicates, r.noStatus)}
	}
	return r.f, nil
}

// settings that are asked for, as any version calls them.
var settings = []string{"server_uuid", "server_id", "report_host", "report_port", "port", "read_only", "super_read_only", "offline_mode", "innodb_read_only",
	"log_bin", "log_slave_updates", "log_replica_updates", "binlog_format", "binlog_row_image", "binlog_checksum", "binlog_transaction_compression",
	"gtid_mode", "gtid_strict_mode", "gtid_domain_id", "gtid_executed", "gtid_purged", "gtid_current_pos", "gtid_binlog_state", "gtid_binlog_pos", "gtid_slave_pos",
	"rpl_semi_sync_master_enabled", "rpl_semi_sync_slave_enabled", "rpl_semi_sync_source_enabled", "rpl_semi_sync_replica_enabled", "rpl_semi_sync_master_timeout",
	"rpl_semi_sync_source_timeout", "rpl_semi_sync_master_wait_point", "rpl_semi_sync_source_wait_point", "rpl_semi_sync_master_wait_for_slave_count",
	"rpl_semi_sync_source_wait_for_replica_count", "rpl_semi_sync_master_wait_no_slave", "rpl_semi_sync_source_wait_no_replica",
	"slave_parallel_workers", "replica_parallel_workers", "slave_parallel_threads", "slave_parallel_type", "replica_parallel_type", "slave_parallel_mode",
	"slave_preserve_commit_order", "replica_preserve_commit_order", "relay_log_recovery", "slave_skip_errors", "replica_skip_errors", "slave_exec_mode", "replica_exec_mode",
	"max_connections", "sync_binlog", "binlog_error_action", "auto_increment_increment", "auto_increment_offset", "innodb_flush_log_at_trx_commit", "wsrep_on", "wsrep_cluster_name", "group_replication_group_name", "group_replication_single_primary_mode"}

// alike are settings in which a server that takes the place of another one is to be like it.
var alike = []string{"sql_mode", "lower_case_table_names", "max_allowed_packet", "time_zone", "system_time_zone", "character_set_server", "collation_server", "event_scheduler",
	"default_storage_engine", "explicit_defaults_for_timestamp", "max_connections", "sync_binlog", "innodb_flush_log_at_trx_commit"}

func (r *reader) settings(ctx context.Context) error {
	v, err := read.Variables(ctx, r.c, append(slices.Clone(settings), alike...))
	if err != nil {
		return err
	}
	r.f.Settings = map[string]string{}
	for _, name := range alike {
		if value, ok := v[name]; ok {
			r.f.Settings[name] = value
		}
	}
	r.vars = map[string]string{}
	for name, value := range v {
		switch {
		case strings.HasPrefix(name, "rpl_semi_sync_") && strings.HasSuffix(name, "r_enabled"), name == "rpl_semi_sync_source_enabled": // master, source
			r.f.SemiSync.SourceSetting = name
		case strings.HasPrefix(name, "rpl_semi_sync_") && strings.HasSuffix(name, "_enabled"):
			r.f.SemiSync.ReplicaSetting = name
		}
		r.vars[mysql.OldReplicaVariable(name)] = value
	}
	on := func(name string) bool { return r.vars[name] == "ON" || r.vars[name] == "1" }
	f := &r.f
	f.UUID, f.ServerID = r.vars["server_uuid"], r.vars["server_id"]
	if host := r.vars["report_host"]; host != "" {
		f.Reported = net.JoinHostPort(host, r.vars["report_port"])
	}
	f.Writes = topology.Writes{ReadOnly: readOnly(r.vars["read_only"]), Super: on("super_read_only"), Offline: on("offline_mode"), InnoDB: on("innodb_read_only")}
	f.Log = topology.BinaryLog{On: on("log_bin"), Updates: on("log_slave_updates"), Format: r.vars["binlog_format"], Image: r.vars["binlog_row_image"],
		Checksum: r.vars["binlog_checksum"], Packed: on("binlog_transaction_compression")}
	f.GTID = topology.GTIDs{ByDomain: r.c.Server.GTIDsByDomain(), Mode: r.vars["gtid_mode"], Strict: on("gtid_strict_mode"), Domain: r.vars["gtid_domain_id"],
		Executed: oneLine(r.vars["gtid_executed"] + r.vars["gtid_current_pos"]), State: oneLine(r.vars["gtid_binlog_state"]), Logged: oneLine(r.vars["gtid_binlog_pos"]),
		Applied: oneLine(r.vars["gtid_slave_pos"]), Purged: oneLine(r.vars["gtid_purged"])}
	f.SemiSync = topology.SemiSync{SourceSetting: f.SemiSync.SourceSetting, ReplicaSetting: f.SemiSync.ReplicaSetting, SourceEnabled: on("rpl_semi_sync_master_enabled"), ReplicaEnabled: on("rpl_semi_sync_slave_enabled"), Point: r.vars["rpl_semi_sync_master_wait_point"],
		Timeout: time.Duration(r.number("rpl_semi_sync_master_timeout")) * time.Millisecond, WaitFor: int(r.number("rpl_semi_sync_master_wait_for_slave_count")),
		WaitNobody: on("rpl_semi_sync_master_wait_no_slave")}
	if f.SemiSync.SourceEnabled && f.SemiSync.WaitFor == 0 { // MariaDB cannot wait for more
		f.SemiSync.WaitFor = 1
	}
	f.Applier = topology.Applier{Workers: int(r.number("slave_parallel_workers") + r.number("slave_parallel_threads")), Mode: r.vars["slave_parallel_type"] + r.vars["slave_parallel_mode"],
		Ordered: on("slave_preserve_commit_order"), Recovery: on("relay_log_recovery"), SkipErr: strings.TrimPrefix(r.vars["slave_skip_errors"], "OFF"), ExecMode: r.vars["slave_exec_mode"]}
	f.Connections.Most = int(r.number("max_connections"))
	f.Numbers = topology.Numbers{Step: int(r.number("auto_increment_increment")), Offset: int(r.number("auto_increment_offset"))}
	f.Durable = topology.Durable{SyncLog: r.vars["sync_binlog"], FlushRedo: r.vars["innodb_flush_log_at_trx_commit"], LogError: r.vars["binlog_error_action"]}
	return nil
}

// readOnly reads read_only, which has more values than two in MariaDB 12: OFF, ON, NO_LOCK, NO_LOCK_NO_ADMIN.
func readOnly(value string) bool { return value != "" && value != "OFF" && value != "0" }

func (r *reader) number(name string) int64 {
	n, _ := strconv.ParseInt(r.vars[name], 10, 64)
	return n
}

// oneLine is a set without the line breaks that MySQL puts into it.
func oneLine(s string) string { return strings.ReplaceAll(s, "\n", "") }

// statusNames are what is asked for of SHOW GLOBAL STATUS.
var statusNames = []string{"Uptime", "Threads_connected", "Rpl_semi_sync_master_status", "Rpl_semi_sync_source_status", "Rpl_semi_sync_slave_status", "Rpl_semi_sync_replica_status",
	"Rpl_semi_sync_master_clients", "Rpl_semi_sync_source_clients", "Rpl_semi_sync_master_no_tx", "Rpl_semi_sync_source_no_tx", "Rpl_semi_sync_master_wait_sessions",
	"Rpl_semi_sync_source_wait_sessions", "wsrep_cluster_state_uuid", "wsrep_cluster_status", "wsrep_cluster_size", "wsrep_local_state_comment", "wsrep_incoming_addresses",
	"wsrep_ready", "group_replication_primary_member"}

func (r *reader) status(ctx context.Context) error {
	r.stat = map[string]string{}
	err := r.c.Query(ctx, "SHOW /* risso: where it stands in replication */ GLOBAL STATUS WHERE Variable_name IN ('"+strings.Join(statusNames, "','")+"')", func(row []sqldriver.Value) error {
		r.stat[mysql.OldReplicaVariable(mysql.Text(row[0]))] = mysql.Text(row[1])
		return nil
	})
	if err != nil {
		return err
	}
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(r.stat[name], 10, 64)
		return n
	}
	r.f.Started = time.Now().Add(-time.Duration(number("uptime")) * time.Second).Truncate(time.Second)
	r.f.Connections.Now = int(number("threads_connected"))
	s := &r.f.SemiSync
	s.SourceActive, s.ReplicaActive = r.stat["rpl_semi_sync_master_status"] == "ON", r.stat["rpl_semi_sync_slave_status"] == "ON"
	s.Replicas, s.Unacknowledged, s.WaitSessions = int(number("rpl_semi_sync_master_clients")), number("rpl_semi_sync_master_no_tx"), int(number("rpl_semi_sync_master_wait_sessions"))
	s.Waited = r.waited
	return nil
}

func (r *reader) clock(ctx context.Context) (err error) {
	r.f.Skew, err = read.Skew(ctx, r.c)
	return err
}

func (r *reader) channels(ctx context.Context) error {
	if r.noStatus != "" {
		return nil
	}
	list, err := read.OuterChannels(ctx, r.c)
	if err != nil {
		return err
	}
	var signs map[string]read.SignOfLife
	if len(list) > 0 {
		if signs, err = read.SignsOfLife(ctx, r.c); err != nil {
			return err
		}
	}
	for _, ch := range list {
		if ch.SourceHost == "" || ch.SourceHost == "<NULL>" { // those of Group Replication, which have no source of their own
			continue
		}
		out := topology.Channel{Channel: ch.Status, Delay: ch.Delay, IOState: ch.IOState, SQLState: ch.SQLState, Received: ch.Received, SourceLog: ch.SourceLog, SourcePos: ch.SourcePos, RelayLog: ch.RelayLog, RelayPos: ch.RelayPos,
			RelayBytes: ch.RelayBytes, Filter: ch.Filter.String(), TLS: ch.TLS.On, Tries: ch.Tries, Retry: ch.Retry, Beat: time.Duration(ch.BeatEvery * float64(time.Second))}
		if ch.SourceID != "0" {
			out.SourceServerID = ch.SourceID
		}
		if ch.Behind >= 0 {
			out.Behind = &ch.Behind
		}
		if sign, is := signs[ch.Name]; is {
			out.Silence = silence(r.c.Server, sign)
		}
		r.f.Channels = append(r.f.Channels, out)
	}
	return nil
}

// silence is for how long a channel has heard nothing. A MySQL 5.7 tells only of heartbeats: that none came for long says nothing there, as a source that has
// something to send sends none.
func silence(s mysql.Server, sign read.SignOfLife) *time.Duration {
	age, every := time.Duration(sign.Age*float64(time.Second)), time.Duration(sign.Every*float64(time.Second))
	if age > every && !s.AtLeast(80000, fleet.Never) {
		return nil
	}
	return &age
}

func (r *reader) log(ctx context.Context) error {
	if !r.f.Log.On {
		return nil
	}
	if r.held {
		r.f.Unknown = append(r.f.Unknown, fleet.Trouble{What: "its binary log", Why: mysql.ErrLogHeld.Error()})
		return nil
	}
	rows, err := r.c.Maps(ctx, r.c.Server.LogStatusStatement())
	if err != nil {
		if mysql.ClassOf(err) == mysql.ClassPrivilege {
			err = fleet.WithRemedy(err, r.c.Server.Grant(r.c.Server.LogsPrivilege()))
		}
		return err
	}
	if len(rows) == 0 { // Source: MariaDB and MySQL, sql/log.cc and sql/binlog.cc: "Turning logging off for the whole duration of the server process"
		r.f.Log.On, r.f.Log.Closed = false, true
	}
	for _, row := range rows {
		r.f.Log.File = row["File"]
		r.f.Log.Pos, _ = strconv.ParseInt(row["Position"], 10, 64)
		r.f.Log.Filter = mysql.LogFilterOf(row).Settings()
	}
	return nil
}

func (r *reader) replicas(ctx context.Context) error {
	if !r.f.Log.On {
		return nil
	}
	list, err := read.ListedReplicas(ctx, r.c)
	if err != nil {
		if mysql.ClassOf(err) == mysql.ClassPrivilege {
			err = fleet.WithRemedy(err, r.c.Server.Grant(r.c.Server.ListReplicasPrivilege()))
		}
		return err
	}
	for _, l := range list {
		r.f.Listed = append(r.f.Listed, topology.Listed{ServerID: l.ServerID, UUID: l.UUID, Host: l.Host, Port: l.Port})
	}
	if len(list) > 0 { // where they connect from, should they be elsewhere than they report
		r.f.Readers, err = read.LogReaders(ctx, r.c)
	}
	return err
}

// stuck are states of sessions that cannot go on. Source: MySQL manual, "General Thread States"; sql/mysqld.cc and sql/semisync_source.cc for the words.
var stuck = []string{"Waiting for semi-sync ACK from slave", "Waiting for semi-sync ACK from replica", "Waiting for global read lock", "Waiting for commit lock",
	"Waiting for table flush", "waiting for handler commit", "Waiting for backup lock"}

func (r *reader) sessions(ctx context.Context) error {
	list, err := r.c.Maps(ctx, "SHOW /* risso: who waits? */ PROCESSLIST")
	if err != nil {
		return err
	}
	r.held = mysql.LogHeld(list)
	for _, row := range list {
		state := row["State"]
		seconds, _ := strconv.Atoi(row["Time"])
		if mysql.AwaitsReplica(state) {
			r.waited = max(r.waited, time.Duration(seconds)*time.Second)
		}
		switch i := slices.IndexFunc(stuck, func(s string) bool { return strings.EqualFold(state, s) }); {
		case i >= 0:
			r.wait(stuck[i])
		case mysql.WaitsForRoom(state):
			r.wait(state)
			if r.c.Server.HidesStatusForRoom() && strings.HasPrefix(row["Command"], "Slave") {
				r.noStatus = "its thread that receives waits for room on a disk: " + asLong
			}
		case strings.HasPrefix(state, "Queueing "):
			r.queueing = state
		case statusStatement.MatchString(row["Info"]) && seconds >= stuckAfter:
			r.noStatus = fmt.Sprintf("another session asks for that for %s, in vain: %s", digits.Span(time.Duration(seconds)*time.Second), asLong)
		}
	}
	return nil
}

// A session that asks for the status of replication for so many seconds waits for a thread that does not go on, and who asks as well waits with it, beyond the end
// of its connection.
const (
	stuckAfter = 2
	asLong     = "who asks waits as long"
)

var statusStatement = regexp.MustCompile(`(?is)^\s*SHOW\b.*\b(SLAVE|SLAVES|REPLICA|REPLICAS)\b.*\bSTATUS`)

// wait counts a session that cannot go on.
func (r *reader) wait(state string) {
	if r.f.Waiting == nil {
		r.f.Waiting = map[string]int{}
	}
	r.f.Waiting[state]++
}
