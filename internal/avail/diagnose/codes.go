package diagnose

import (
	"strings"

	"github.com/rissodb/risso/internal/fleet"
)

// Code is one thing that can be wrong with a replication, or worth knowing of it.
type Code struct {
	ID         string         `json:"id"`         // that of the finding, and after a colon which kind of it
	Severity   fleet.Severity `json:"severity"`   // at its worst
	Means      string         `json:"means"`      // what is so
	Recognised string         `json:"recognised"` // by what it is told
	Certain    string         `json:"certain"`    // what is certain then
	NotSeen    string         `json:"not_seen"`   // what is not
	Next       string         `json:"next"`       // what to do
}

// Codes lists all that Diagnose can find: what explains others comes first.
func Codes() []Code {
	var list []Code
	for _, part := range [][]Code{serverCodes(), groupCodes(), channelCodes(), transactionCodes(), settingCodes(), seeingCodes()} {
		list = append(list, part...)
	}
	return list
}

// finding is the ID of the finding that a code is of, and the kind of it.
func finding(id string) (of, kind string) {
	of, kind, _ = strings.Cut(id, ":")
	return of, kind
}

const (
	info     = fleet.SeverityInfo
	warning  = fleet.SeverityWarning
	critical = fleet.SeverityCritical
)

func serverCodes() []Code {
	const vanished = "a replica's connection to a machine that vanished counts as running until replica_net_timeout has passed"
	return []Code{
		{"primary.dead", critical, "nobody reaches the primary", "it does not answer from here, and all its replicas that were asked have lost it: no thread that receives is connected, and none says that it answered", "neither this machine nor any of those replicas reaches it", "whether it runs, cut off from all of them, and is written to; replicas that nobody tells of; whether it had a source itself, which no longer lists it", "look at its machine; if it cannot be had back, a replica takes its place: first make sure that nobody writes to it"},
		{"primary.dead_with_replicas", critical, "nobody reaches the primary, and other servers do not answer either", "as primary.dead, and servers that were given do not answer", "neither this machine nor any replica that was asked reaches it", "whether those others are its replicas, and what they have received", "look for what they have in common: a rack, a network, a data centre"},
		{"primary.silent", critical, "nobody has heard from the primary for longer than its heartbeats allow", "it does not answer from here; its replicas that count as connected heard neither a transaction nor a heartbeat for longer than the heartbeat's period, and the others lost it", "nothing came from it to here or to those replicas in that time", "whether it runs, cut off from all of them, and is written to; a replica that connected anew a moment ago has heard nothing yet. Only MySQL 8.0 and newer, and Percona Server, tell it", "look at its machine; when replica_net_timeout has passed, the replicas connect anew or say that they lost it: ask again"},
		{"primary.unreachable", critical, "the primary is not reached from here, and replicas do not say that they lost it", "it does not answer from here; replicas heard from it within the period of its heartbeat, or were refused by it in words at their last try: a warning; or they only say that they are connected", "it does not answer from here", "whether it runs: it may have died after a replica last heard from it, and " + vanished, "ask again when replica_net_timeout has passed, before anything is done; meanwhile look at its machine, and at the route and the firewall between this machine and it"},
		{"primary.partition", critical, "some replicas have lost the primary, others say that they receive from it", "it does not answer from here; some replicas say that they are connected to it, others have lost it", "those that lost it cannot connect to it now", "whether it is cut off from some, or just died: " + vanished, "ask again when replica_net_timeout has passed; look at the network between the two parts"},
		{"primary.unknown", warning, "the primary does not answer, and nobody can tell whether it lives", "it does not answer from here, and no replica tries to receive from it", "it does not answer from here", "whether it runs: its replicas are stopped, so they see nothing of it", "look at its machine"},
		{"primary.no_replica_runs", critical, "the primary runs, and none of its replicas replicates", "it answers, it has two replicas or more, and none of those that were asked both receives and applies", "none of those replicas gets what is written now", "replicas that were not asked: with some of these it is a warning", "look at what stopped them, below"},
		{"primary.none", critical, "no server of the replication can be written to", "all of its servers were asked, and each is read-only", "accounts without special privileges can write nowhere", "whether that is meant, as in a maintenance, and whether a server that was not asked has taken its place", "make sure that no other server has taken the primary's place; then let it be written to"},
		{"primary.read_only", warning, "the primary is read-only, and another server is not", "a server that replicates from none and has replicas is read-only, while a replica is writable", "what clients write goes to the wrong server, if it goes anywhere", "where clients are sent", "make the replica read-only first, then open the primary"},
		{"primary.several", warning, "two servers with one history can be written to", "both are writable, neither replicates from the other, and both have transactions that one server wrote; one has all of the other's", "whoever writes to both makes them diverge", "whether one is a copy that is meant to stand alone", "make the one that is no primary read-only"},
		{"intermediate.dead", critical, "nobody reaches a server in the middle of a chain", "it does not answer from here, all its replicas that were asked have lost it, and its source still lists it, or knew it", "its replicas receive nothing", "whether it runs, cut off from all of them", "bring it back, or let its replicas follow its source"},
		{"intermediate.silent", critical, "nobody has heard from a server in the middle of a chain for longer than its heartbeats allow", "as primary.silent", "nothing came from it to here or to its replicas in that time", "whether it runs, cut off from all of them", "look at its machine; ask again when replica_net_timeout has passed"},
		{"intermediate.unreachable", critical, "a server in the middle of a chain is not reached from here, and its replicas do not say that they lost it", "as primary.unreachable", "it does not answer from here", "whether it runs: " + vanished, "ask again when replica_net_timeout has passed; look at its machine, and at the route between this machine and it"},
		{"server.hung", critical, "a server accepts connections, and does not answer in time", "the connection is made, and nothing comes within 5 s (in risso serve 3 s); critical if its replicas lost it as well", "nothing came within that time from here", "why: it is stopped, out of memory, slow, or waits for a disk or for DNS; or what accepts is a balancer before it; or this machine is slow", "ask again; if it hangs still, look at its machine and its error log"},
		{"server.down", critical, "a server does not answer", "nothing listens at its address, there is no way to it, or no answer in time", "it does not answer from here", "whether it runs, and is only not reached from here", "look at its machine"},
		{"server.no_access", warning, "a server runs, and refuses Risso's account", "it answers that the account or its password is wrong, that the password has expired or the account is locked, that this machine is blocked, or that TLS fails", "it runs, and nothing more is known of it", "all of its state", "give the account to it as to the others: risso grants has the statements"},
		{"server.offline", warning, "a server is in offline mode", "offline_mode is ON", "clients without special privileges are sent away", "who set it", "SET GLOBAL offline_mode = OFF"},
		{"conn.saturation", critical, "all connections are taken, or nearly all", "it refuses for too many connections, or 85 % of max_connections are taken", "others are refused when the rest is taken", "who holds them", "close idle clients, or raise max_connections"},
		{"server.no_room", critical, "a disk has no room for what replication writes", "an error of the channel, or the state of a session: no space left, disk full, table full, waiting for disk space or for someone to free space", "the server was refused room", "the disk itself; a full table may also be one with a limit of its own", "make room: remove what is not needed, never binary or relay logs by hand; what waits goes on by itself"},
		{"server.log_closed", critical, "a server writes no binary log any more, until it is started again", "log_bin is ON, and the server says that it is at no place in a binary log: it could not write it, nor begin another one", "no replica gets what it takes since, and no log has that", "since when, and what it took: its error log has when", "let it take no writes, make room or mend what its error log names, and start it again; then compare its replicas with it (risso checksum), and rebuild those that differ"},
		{"lock.global", warning, "sessions wait for a lock of the whole server", "they are in the state Waiting for global read lock, commit lock, backup lock or table flush", "they go on only when another session lets go", "which session that is", "risso top shows who holds it"},
		{"clock.skew", critical, "a server's clock differs from this machine's", "by 2 s at the least, without what the question took; if most of the servers, three or more, differ alike, it is said once, of this machine", "delays that are computed by clocks are wrong by that much", "which of the two clocks is right", "set the clock of its machine by NTP"},
	}
}

func groupCodes() []Code {
	return []Code{
		{"galera.non_primary", critical, "a Galera member is in no part that has the majority, and refuses statements", "wsrep_cluster_status is not Primary", "it refuses reads and writes", "whether the others run without it", "bring the others back; risso galera bootstrap says which member may go on, if any: two that go on by themselves part for good"},
		{"galera.not_synced", warning, "a Galera member is not synced", "wsrep_local_state_comment is not Synced", "it is behind the others, or gives its data to one", "for how long", "a donor goes back by itself; of a joiner, look at the error log"},
		{"group.no_quorum", critical, "a member of a group sees no majority: writes wait", "half of the members that it lists, or more, are unreachable or in error", "it commits nothing", "whether the others run, as a group without it", "bring the others back; if they are lost for good, group_replication_force_members on one member"},
		{"group.not_online", warning, "a member of a group is not online", "its state is OFFLINE, RECOVERING or ERROR", "it does not take part in the group's writes", "why it left: its error log says so", "START GROUP_REPLICATION, when the cause is mended"},
		{"group.member_missing", warning, "a member that the group lists does not answer", "another member lists it, and it was not seen from here; or the group says that it is unreachable", "it is in the group's list", "whether it runs", "look at its machine"},
		{"group.split", critical, "two parts of one cluster each think that they have the majority", "members with one name of the cluster's state that have the majority, and whose lists of members have nobody in common", "both parts take writes", "which part clients use", "stop the clients of one part; join its members to the other anew"},
		{"group.one_name", warning, "two clusters have one name", "members with one wsrep_cluster_name and another UUID of the cluster's state", "they do not share data", "whether one of them is a part that was bootstrapped a second time", "give one another name; or join its members to the other anew"},
	}
}

func channelCodes() []Code {
	stopped := func(kind, means, by, certain, notSeen, next string) Code {
		return Code{"repl.stopped:" + kind, critical, means, by, certain, notSeen, next}
	}
	const applies, receives = "the channel applies nothing until this transaction is passed over or can be applied", "the channel receives nothing"
	const differ = "how many other rows differ: risso checksum finds them"
	byCommand := stopped("by_command", "a replica is stopped, without an error", "a thread of the channel does not run, and tells no error", "it was stopped by a command, or not started after a restart", "who did it, and why", "start it, if nobody wants it stopped")
	detached := stopped("detached", "a replica is detached by risso from its source", "the name of its source ends in .detached.invalid, as risso replica detach leaves it", "it gets nothing until it is attached", "why it was detached", "risso replica attach, when it is to replicate again")
	rebuilding := stopped("rebuilding", "a replica is being rebuilt by risso", "the name of its source ends in .rebuilding.invalid, as risso replica rebuild sets it meanwhile", "it has not all of its rows", "whether the rebuild still runs", "let it end; risso replica rebuild goes on with one that ended early")
	leftOver := stopped("left_over", "a stopped channel looks left over on what is likely the primary", "the server can be written to, a replica receives from it, and all its own channels are stopped and lead to servers that were not seen", "it would replicate from there if somebody started it", "whether the source is gone for good, and whether clients write here", "once it is sure that it is left over: RESET REPLICA ALL FOR CHANNEL, or of MariaDB RESET SLAVE ALL, removes it")
	byCommand.Severity, detached.Severity, rebuilding.Severity, leftOver.Severity = warning, warning, warning, warning
	return []Code{
		{"ring.self", critical, "a server replicates from itself", "its source has its own UUID, or its own place", "the channel can bring nothing", "which source was meant", "point it at its source"},
		{"ring.broken", critical, "a ring does not go all the way round", "a channel within the ring does not run, or one of its servers was not seen", "what is written behind the break does not reach those before it", "-", "mend the channel that is named"},
		{"ring.two_writable", warning, "two servers of a ring can be written to", "both are writable", "rows that are written on both at a time differ for good", "whether clients write to both", "make all but one read-only"},
		{"ring.auto_increment", warning, "servers of a ring give the same AUTO_INCREMENT numbers", "two of them are writable; auto_increment_increment is less than the number of writable servers, or two have one auto_increment_offset", "two that insert at a time give the same number", "whether clients insert on both", "set the increment to the number of servers, and another offset on each"},
		{"repl.lag", critical, "a replica is late", "30 s behind or more, by its own word, beyond a delay that is wanted", "it says so itself", "whether it catches up", "look for long transactions and tables without primary key; apply with several threads"},
		{"repl.delayed", info, "a replica is late on purpose", "its channel is configured with a delay", "it applies each transaction that much later", "-", "never let it be promoted as it is"},
		{"repl.frozen", critical, "a replica receives nothing, and says that all is well", "its thread that receives runs, and asked twice, 2 s or more apart, it was at the same place, before that where its source was already", "nothing of what the source had came in that time", "why: a connection that hangs; or one very large event on a slow network, which beginning anew only delays", "restart the thread that receives, if it stands there still"},
		byCommand,
		detached,
		rebuilding,
		leftOver,
		stopped("duplicate_row", "a replica cannot insert a row that it has already", "error 1062 or 1586", applies, differ, "apply over the row, then compare"),
		stopped("row_missing", "a replica lacks the row that a transaction changes", "error 1032", applies, differ, "apply over the rows, then compare"),
		stopped("object_missing", "a replica lacks a table, schema or column", "error 1146, 1049 or 1054", applies, "how it was lost", "make it as on the source, and start"),
		stopped("object_exists", "what a statement is to make or drop is already as it is to be", "error 1050, 1007, 1008, 1051, 1060, 1061, 1091 or 1396", applies, "whether the object is as on the source", "compare it; then pass over the statement"),
		stopped("lock_wait", "a replica gave up waiting for a lock", "error 1205 or 1213, as often as it may try", applies, "who held the lock", "end what holds it; start"),
		stopped("relay_log", "a relay log is lost or damaged", "error 1594, 1872 or 13121", "what was received cannot be read", "why: often a crash of the machine", "fetch it again from the source"),
		stopped("out_of_order", "a transaction comes with a number that the replica is beyond", "error 1950, with gtid_strict_mode", applies, "where its own transactions come from", "compare it; risso replica rebuild if it differs"),
		stopped("other", "a replica cannot apply", "another error of the thread that applies", applies, "-", "mend what the error names; start"),
		stopped("purged", "what a replica needs is gone from its source's logs", "error 1236 or 13114, with the words for it", receives, "-", "risso replica rebuild"),
		stopped("source_log", "a source cannot read its log", "error 1236 or 13114, with other words", receives, "which part of the log is damaged", "mend what the error names; start"),
		stopped("login", "the source refuses the replica's account", "error 1045, 1044, 1130 or 2061", receives+"; the source runs", "which password the channel has", "set the account right on the source, or by CHANGE on the replica"),
		stopped("blocked", "the source blocks the replica's host", "error 1129", receives+"; the source ran when it was last tried", "what the connections were that failed", "let the source forget its errors: FLUSH HOSTS, or from MySQL 8.0.23 on TRUNCATE TABLE performance_schema.host_cache"),
		stopped("full", "the source has no connection left for the replica", "error 1040 or 1203", receives+"; the source runs", "who holds them", "close idle clients of the source"),
		stopped("cannot_connect", "a replica cannot connect to its source", "the thread that receives is connecting, or error 2002, 2003, 2005, 2006, 2013", receives, "whether the source runs, where it was not seen", "one that is connecting tries by itself: look at the address and the route; one that stands is started when its source answers"),
		stopped("server_id", "source and replica have one server_id, or two replicas have", "the words of error 1593, 13117 or 1236", receives, "-", "give one of them another, also in its option file"),
		stopped("server_uuid", "source and replica have one server_uuid, or two replicas have", "the words of error 1593, 13117 or 1236", receives, "-", "its data directory is a copy: stop it, remove auto.cnf, start it"),
		stopped("receive", "a replica cannot receive", "another error of the thread that receives", receives, "-", "mend what the error names; start"),
		{"commit.semisync", critical, "commits wait for replicas that do not acknowledge", "sessions wait for an acknowledgement, and fewer replicas acknowledge than are needed, or one has waited for 10 s; or 4 sessions wait", "those sessions wait until enough replicas acknowledge, or the time is over", "when a replica comes back", "bring a replica back that acknowledges"},
		{"semisync.off", warning, "semi-synchronous replication fell back to asynchronous", "it is enabled, and not active, on a server that has replicas or no source", "commits are not waited for: what was committed last can be lost with the source", "since when", "bring replicas back that acknowledge: it begins again by itself"},
		{"semisync.too_few", warning, "fewer replicas acknowledge than commits wait for", "it is active, and fewer are connected than it waits for", "the next commit waits for the time that is set", "whether they come back", "bring replicas back, or wait for fewer"},
		{"semisync.not_acknowledging", warning, "a replica does not acknowledge to a source that waits", "the source has semi-synchronous replication enabled; the replica has not, or its thread that receives runs since before it was", "its receipt does not count", "-", "enable it, and restart the thread that receives"},
	}
}

func transactionCodes() []Code {
	return []Code{
		{"repl.split_brain", critical, "two servers with one history each have transactions that the other has not", "that, both are writable, and neither receives from the other. Between servers without a link as a warning: by the UUIDs in gtid_executed; on MariaDB by domain and server_id in gtid_binlog_state, which do not prove one history", "each has committed what the other has not", "whether their rows differ; which of the two clients used; a copy that was made for tests looks the same", "stop writes to one, then compare: risso checksum"},
		{"repl.errant_gtid", warning, "a replica has transactions that its source has not", "by gtid_executed, or gtid_binlog_state, that of the source read later", "they were committed on the replica, or on a server that is gone; on MariaDB likely: a source made from a backup without its binary log does not know what it had", "what they changed", "look at what they changed: risso gtid errant; then risso gtid repair lets the source have them as empty ones where the rows are as on the source, or says why only risso replica rebuild helps"},
		{"repl.purged", critical, "a source has thrown away logs that a replica needs", "transactions of the source's gtid_purged that the replica neither has nor received, on a channel that follows by GTID. MariaDB does not tell this", "the channel cannot go on when it connects the next time", "-", "risso replica rebuild"},
		{"repl.version", warning, "a replica is older than its source", "by the first two numbers of the version", "its makers do not support that; it stops at the first event that it does not know", "whether such an event comes", "upgrade replicas first"},
		{"repl.version_gap", info, "a replica is more than one step newer than its source", "MySQL's steps are 5.7, 8.0, 8.4 and 9", "its makers do not support that", "whether it works for what is written here", "go in steps"},
		{"repl.flavour", warning, "source and replica are of two families", "one is MariaDB, the other MySQL or Percona Server", "GTIDs of one mean nothing to the other; MySQL does not replicate from MariaDB with support", "which statements differ", "use it for a migration only"},
		{"repl.gtid_modes", critical, "gtid_mode of source and replica do not go together", "the replica is OFF and the source writes GTIDs, or the replica is ON and the source does not", "the replica stops, or will", "whether the channel gives GTIDs to those without", "bring all servers to one mode, in steps"},
		{"repl.position", info, "a channel follows by file and position though both servers have GTIDs", "the channel's settings", "it cannot be given another source without somebody finding the position", "-", "let it follow by GTID"},
	}
}

func settingCodes() []Code {
	set := func(name string, s fleet.Severity, means, by, certain, next string) Code {
		return Code{"repl.config:" + name, s, means, by, certain, "-", next}
	}
	return []Code{
		{"repl.writable", warning, "a replica accepts writes", "read_only is off, and it is in no ring", "accounts without special privileges can write to it", "whether anybody does", "make it read-only"},
		set("server_id", critical, "two servers of a replication have one server_id", "both say so", "a server passes over what it takes for its own, and two replicas of one source end each other's connections", "give one of them another, also in its option file"),
		set("server_uuid", critical, "two servers have one server_uuid", "both say so, and they have different places", "a source ends the connection of one when the other connects", "stop one, remove auto.cnf in its data directory, start it"),
		{"repl.filter:differs", warning, "replicas of one source leave out different things", "the filters of their channels", "one cannot take the other's place", "which rows are missing", "give them one filter, and risso replica rebuild those that lack rows"},
		{"repl.filter:source", warning, "a source leaves changes out of its binary log", "binlog_do_db or binlog_ignore_db", "no replica gets them, and no restore rolls them forward", "whether replicas should have them", "filter on the replicas instead"},
		{"repl.filter:replica", info, "a replica leaves things out", "the filters of its channel", "it cannot take its source's place", "-", "never let it be promoted"},
		set("log_replica_updates", critical, "a server in the middle of a chain does not log what it applies", "log_replica_updates is OFF, and it has replicas and a source", "its replicas do not get what its source writes", "switch it on, in the option file, and risso replica rebuild for each of its replicas"),
		set("log_bin", info, "a replica writes no binary log", "log_bin is OFF", "it cannot take its source's place", "switch it on, in the option file"),
		set("binlog_format", warning, "a source logs statements instead of rows", "binlog_format is STATEMENT", "a statement may do something else on a replica", "ROW"),
		set("binlog_checksum", info, "source and replica write binary logs with different checksums", "binlog_checksum of both", "damage is noticed in one log and not in the other", "the same on both"),
		set("binlog_row_image", info, "source and replica log different images of rows", "binlog_row_image of both", "what readers of changes get changes with a failover", "the same on both"),
		set("binlog_transaction_compression", critical, "a source compresses transactions, which a replica cannot read", "the replica is a MariaDB, or older than MySQL 8.0.20", "it stops at the first of them", "OFF on the source, or a newer replica"),
		set("gtid_mode", info, "a source gives transactions no GTIDs", "gtid_mode is OFF", "a replica cannot be given another source without somebody finding the position", "it goes ON in steps on all servers: OFF_PERMISSIVE, ON_PERMISSIVE, ON, after enforce_gtid_consistency"),
		set("gtid_strict_mode", info, "a MariaDB may number its own transactions between its source's", "gtid_strict_mode is OFF", "nothing stops transactions of its own from getting into its log", "ON"),
		set("relay_log_recovery", warning, "a replica goes on with its relay logs after a crash of its machine", "relay_log_recovery is OFF", "they may lack what was received last, or have a part of it", "ON in the option file, and a restart"),
		set("sync_binlog", warning, "a source does not flush its binary log at each commit", "sync_binlog is not 1", "a crash of its machine loses what was committed last, which replicas may have", "1"),
		set("innodb_flush_log_at_trx_commit", warning, "a source does not flush InnoDB's log at each commit", "innodb_flush_log_at_trx_commit is not 1", "a crash of its machine loses what was committed last, which replicas may have", "1"),
		set("binlog_error_action", warning, "a source goes on without its binary log where it cannot write it", "binlog_error_action is IGNORE_ERROR", "clients are told of commits that no replica gets then, whatever these wait for", "ABORT_SERVER"),
		set("connect_tries", warning, "a replica gives up to connect before its source can be back", "SOURCE_RETRY_COUNT times SOURCE_CONNECT_RETRY is less than 5 minutes; by default a MySQL 9 tries 10 times, an older one 86,400 times. MariaDB does not tell", "when its source was away for longer, it does not replicate until somebody starts it", "let it try for longer"),
		set("skip_errors", critical, "a replica passes over errors", "replica_skip_errors, or slave_skip_errors", "rows may differ, and nobody is told", "take it out of the option file, and compare"),
		set("exec_mode", warning, "a replica passes over rows that are missing, or there already", "replica_exec_mode, or slave_exec_mode, is IDEMPOTENT", "rows that differ are not noticed", "STRICT, and compare"),
		set("preserve_commit_order", warning, "a replica commits in another order than its source", "it applies with several threads, and replica_preserve_commit_order, or slave_preserve_commit_order, is OFF", "readers see what the source never was like, and a crash leaves gaps", "ON, while it is stopped"),
		{"repl.tls", info, "a channel does not use TLS", "its settings, where the source is not on the same machine", "what is written goes over the network as it is", "what the network is", "let it use TLS"},
	}
}

func seeingCodes() []Code {
	return []Code{
		{"topology.other_server", warning, "another server answers at an address than the one that is told of", "by server_uuid, or server_id", "the address leads from here to another server than the one meant", "whether it leads there from the server that tells it", "set report_host, or tell --reach"},
		{"topology.perhaps_copy", critical, "a source may be dead, and a copy of it be taken for it", "a replica does not receive from its source, nobody answers at that address from here, and a server with the source's server_uuid answers at another", "the address does not answer, and that server has the UUID", "whether it is the source itself, under another address, or a copy of its data directory: then the replica is drawn below the wrong server, and the source is dead", "compare the addresses, host names and start times; give a copy a server_uuid of its own (remove its auto.cnf, restart it)"},
		{"topology.not_a_replica", warning, "a server lists a replica that says that it is none", "what both say", "they do not agree", "whether the list is old: a source drops a replica when it next sends something", "ask again"},
		{"topology.no_address", info, "nobody tells the address of a replica", "its source lists it without a host", "it exists, and was not asked", "all of its state", "report_host in its option file"},
		{"topology.not_all_seen", warning, "a server did not tell everything", "it refused, or broke off; a warning if it did not tell its replicas or what it replicates: servers may be missing then", "what it did not tell is not diagnosed", "-", "give the account what it lacks"},
		{"topology.left", info, "more servers are told of than are asked", "the limit of addresses", "some were not asked", "all of their state", "look at the parts, one by one"},
	}
}
