package diagnose_test

import (
	"time"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/fleet"
)

type top = *topology.Topology

const lostWords = "error reconnecting to source 'repl@a:3306'"

// scenarios are all codes.
func scenarios() []scenario {
	var list []scenario
	for _, part := range [][]scenario{primaries(), hosts(), clusters(), channels(), errors(), acknowledgements(), gtids(), settings(), sights()} {
		list = append(list, part...)
	}
	return list
}

func primaries() []scenario {
	lostBy := func(replicas int) func(top) {
		return func(t top) {
			lose(t, 0, "refused")
			for k := range replicas {
				fail(t, k, true, 2003, lostWords)
			}
		}
	}
	several := func(executed string) func(top) {
		return func(t top) {
			t.Links = t.Links[:1]
			t.Nodes[2].Writes = topology.Writes{}
			t.Nodes[2].GTID.Executed = executed
		}
	}
	return []scenario{
		{code: "primary.dead", is: lostBy(2), near: func(t top) { lose(t, 0, "timeout") }}, // they still receive
		{code: "primary.dead", is: lostBy(2), near: func(t top) { lostBy(2)(t); t.Nodes[0].Unseen.Kind = "login" }},
		{code: "primary.dead", is: func(t top) { lostBy(2)(t); fail(t, 0, true, 1236, "the source purged required binary logs") }, // long ago: that it answered then says nothing
			near: func(t top) { lostBy(2)(t); fail(t, 0, true, 1045, "Access denied for user 'repl'") }}, // it tries, and is answered
		{code: "primary.dead_with_replicas", is: func(t top) { lose(t, 2, "timeout"); t.Links = t.Links[:1]; lostBy(1)(t) }, near: lostBy(2)},
		{code: "primary.unreachable", is: func(t top) { lose(t, 0, "timeout") }, near: lostBy(2)},
		{code: "primary.unreachable", is: heard(5*time.Second, 50*time.Second), near: heard(50*time.Second, 40*time.Second)},
		{code: "primary.silent", is: heard(50*time.Second, 40*time.Second), near: heard(50*time.Second, -1)}, // the other one does not tell
		{code: "primary.silent", is: func(t top) { heard(50*time.Second, 40*time.Second)(t); fail(t, 0, true, 2003, lostWords) }, near: lostBy(2)},
		{code: "primary.partition", is: lostBy(1), near: lostBy(2)},
		{code: "primary.unknown", is: func(t top) {
			lose(t, 0, "timeout")
			for k := range t.Links {
				t.Links[k].Channel.IORunning = "No"
			}
		}, near: lostBy(1)},
		{code: "primary.no_replica_runs", is: func(t top) { t.Links[0].Channel.SQLRunning, t.Links[1].Channel.IORunning = "No", "No" }, near: func(t top) { t.Links[0].Channel.SQLRunning = "No" }},
		{code: "primary.none", is: func(t top) { t.Nodes[0].Writes = topology.Writes{ReadOnly: true} }, near: func(t top) { // the one that was not seen may be writable
			t.Nodes[0].Writes = topology.Writes{ReadOnly: true}
			lose(t, 2, "timeout")
			t.Links = append(t.Links, topology.Link{Replica: 2, Source: 0})
		}},
		{code: "primary.read_only", is: func(t top) { t.Nodes[0].Writes.ReadOnly = true; t.Nodes[1].Writes = topology.Writes{} }, near: func(t top) { t.Nodes[0].Writes.ReadOnly = true }},
		{code: "primary.several", is: several(uuid(0) + ":1-90"), near: several(uuid(7) + ":1-90")},
		{code: "repl.split_brain", is: several(uuid(0) + ":1-90," + uuid(2) + ":1-4"), near: several(uuid(0) + ":1-100," + uuid(2) + ":1-4")},
		{code: "repl.split_brain", is: mariaSeveral("0-1-90,0-3-95"), near: mariaSeveral("0-1-100,0-3-104")},
		{code: "repl.split_brain", is: mariaSeveral("0-1-90,0-3-95"), near: mariaSeveral("0-7-90,0-3-95")},
		{code: "primary.several", is: mariaSeveral("0-1-100,0-3-104"), near: func(t top) { mariaSeveral("0-1-90")(t); t.Nodes[2].ServerID = "1" }}, // who never set it need have nothing in common
		{code: "repl.split_brain", is: func(t top) { part(t) }, near: func(t top) { part(t); t.Nodes[1].Writes.ReadOnly = true }},
		made("intermediate.dead", chain, func(t top) {
			lose(t, 1, "refused")
			t.Links = append(t.Links, topology.Link{Replica: 1, Source: 0})
			fail(t, 0, true, 2003, lostWords)
		}, func(t top) { lose(t, 1, "refused"); t.Links = append(t.Links, topology.Link{Replica: 1, Source: 0}) }),
		made("intermediate.silent", chain, func(t top) {
			lose(t, 1, "timeout")
			t.Links = append(t.Links, topology.Link{Replica: 1, Source: 0})
			silence := 40 * time.Second
			t.Links[0].Channel.Silence, t.Links[0].Channel.Beat = &silence, 30*time.Second
		}, func(t top) { lose(t, 1, "timeout"); t.Links = append(t.Links, topology.Link{Replica: 1, Source: 0}) }),
		made("intermediate.unreachable", chain, func(t top) { lose(t, 1, "timeout"); t.Links = append(t.Links, topology.Link{Replica: 1, Source: 0}) }, func(t top) { lose(t, 1, "timeout") }),
		{code: "repl.writable", is: func(t top) { t.Nodes[1].Writes = topology.Writes{} }, near: func(t top) { t.Nodes[1].Writes = topology.Writes{ReadOnly: true} }},
		made("repl.writable", chain, func(t top) { t.Nodes[2].Writes = topology.Writes{} }, func(t top) { *t = *ring() }),
	}
}

// mariaSeveral has a MariaDB with that gtid_binlog_state, which can be written to, beside a replication.
func mariaSeveral(state string) func(top) {
	return func(t top) {
		maria(t)
		t.Links = t.Links[:1]
		t.Nodes[2].Writes, t.Nodes[2].GTID.State = topology.Writes{}, state
	}
}

// heard loses the primary; its replicas, which count as connected, last heard from it so long ago. Less than 0: they do not tell.
func heard(silences ...time.Duration) func(top) {
	return func(t top) {
		lose(t, 0, "timeout")
		for k := range silences {
			if t.Links[k].Channel.Beat = 30 * time.Second; silences[k] >= 0 {
				t.Links[k].Channel.Silence = &silences[k]
			}
		}
	}
}

func hosts() []scenario {
	unseen := func(kind string) func(top) {
		return func(t top) { lose(t, 2, kind); t.Links = append(t.Links, topology.Link{Replica: 2, Source: 0}) }
	}
	connections := func(n int) func(top) { return func(t top) { t.Nodes[0].Connections.Now = n } }
	skew := func(d time.Duration) func(top) { return func(t top) { t.Nodes[1].Skew = d } }
	waiting := func(state string) func(top) {
		return func(t top) { t.Nodes[0].Waiting = map[string]int{state: 2} }
	}
	return []scenario{
		{code: "server.down", is: unseen("refused"), near: unseen("login")},
		{code: "server.hung", is: unseen("hung"), near: unseen("timeout")},
		{code: "server.hung", is: func(t top) { t.Nodes[1].Unseen = &topology.Failure{Kind: "hung", Text: "does not answer"} }, near: func(t top) { t.Nodes[1].Unseen = &topology.Failure{Kind: "dropped", Text: "EOF"} }},
		{code: "server.no_access", is: unseen("login"), near: unseen("refused")},
		{code: "server.down", is: unseen("refused"), near: unseen("not_asked")},
		{code: "primary.unreachable", is: func(t top) { lose(t, 0, "timeout") }, near: func(t top) { lose(t, 0, "not_asked") }},
		{code: "conn.saturation", is: unseen("full"), near: unseen("refused")},
		{code: "conn.saturation", is: connections(85), near: connections(84)},
		{code: "server.offline", is: func(t top) { t.Nodes[1].Writes.Offline = true }, near: func(t top) {}},
		{code: "server.log_closed", is: func(t top) { t.Nodes[0].Log.On, t.Nodes[0].Log.Closed = false, true }, near: func(t top) { t.Nodes[0].Log.On = false }},
		{code: "lock.global", is: waiting("Waiting for global read lock"), near: waiting("Waiting for semi-sync ACK from replica")},
		{code: "server.no_room", is: waiting("Waiting for someone to clean disk"), near: waiting("Waiting for table flush")},
		{code: "server.no_room", is: waiting("Waiting for disk space"), near: waiting("Waiting for table flush")},
		{code: "server.no_room", is: waiting("Waiting for someone to free space"), near: waiting("Queueing master event to the relay log")},
		{code: "server.no_room", is: func(t top) { t.Links[0].Channel.IOState = "Waiting for disk space" }, near: func(t top) { t.Links[0].Channel.IOState = "Queueing source event to the relay log" }},
		{code: "server.no_room", is: func(t top) { fail(t, 0, false, 1114, "The table 'orders' is full") }, near: func(t top) { fail(t, 0, false, 1062, "Duplicate entry") }},
		{code: "server.no_room", is: func(t top) {
			fail(t, 0, true, 1593, "Error writing file './relay-bin.000002' (OS errno 28 - No space left on device)")
		}, near: func(t top) { fail(t, 0, true, 1593, "Fatal error") }},
		{code: "clock.skew", is: skew(-2 * time.Second), near: skew(1900 * time.Millisecond)},
	}
}

func clusters() []scenario {
	return []scenario{
		made("galera.non_primary", cluster, func(t top) { t.Nodes[2].Group.Primary = false }, func(t top) { t.Nodes[2].Group.State = "Joined" }),
		made("galera.not_synced", cluster, func(t top) { t.Nodes[2].Group.State = "Donor/Desynced" }, func(t top) { t.Nodes[2].Group.Primary, t.Nodes[2].Group.State = false, "Initialized" }),
		made("group.one_name", cluster, func(t top) { t.Nodes[2].Group.Name = "other" }, func(t top) { t.Nodes[2].Group.Name, t.Nodes[2].Group.Title = "other", "another" }),
		made("group.split", cluster, func(t top) {
			t.Nodes[2].Group = galera(1, "u", "c:3306")
			t.Nodes[0].Group, t.Nodes[1].Group = galera(2, "u", "a:3306", "b:3306"), galera(2, "u", "a:3306", "b:3306")
		},
			func(t top) { t.Nodes[2].Group = galera(1, "u", "c:3306") }), // the others list it still
		made("group.member_missing", cluster, func(t top) { lose(t, 2, "refused") }, func(t top) {
			lose(t, 2, "refused")
			for n := range 2 {
				t.Nodes[n].Group = galera(2, "u", "a:3306", "b:3306")
			}
		}),
		made("group.member_missing", group, func(t top) { t.Nodes[0].Group.Members[2].State = "UNREACHABLE" }, func(t top) { t.Nodes[0].Group.Members[2].State = "RECOVERING" }),
		made("group.no_quorum", group, func(t top) { t.Nodes[0].Group.Primary = false }, func(t top) { t.Nodes[0].Group.State, t.Nodes[0].Group.Primary = "OFFLINE", false }),
		made("group.not_online", group, func(t top) { t.Nodes[1].Group.State, t.Nodes[1].Group.Primary = "OFFLINE", false }, func(t top) { t.Nodes[0].Group.Primary = false }),
	}
}

func channels() []scenario {
	lag := func(seconds, delay int) func(top) {
		return func(t top) { t.Links[0].Channel.Behind, t.Links[0].Channel.Delay = &seconds, delay }
	}
	numbers := func(steps, offset int) func(top) {
		return func(t top) { t.Nodes[2].Numbers = topology.Numbers{Step: steps, Offset: offset} }
	}
	return []scenario{
		{code: "ring.self", is: func(t top) { link(t, 1, 1) }, near: func(t top) { link(t, 0, 1) }},
		made("ring.broken", ring, func(t top) { t.Links[1].Channel.SQLRunning = "No" }, func(t top) {}),
		made("ring.two_writable", ring, func(t top) { t.Nodes[2].Writes.ReadOnly = true }, func(t top) { t.Nodes[1].Writes.ReadOnly, t.Nodes[2].Writes.ReadOnly = true, true }),
		made("ring.auto_increment", ring, numbers(3, 1), numbers(3, 3)),
		made("ring.auto_increment", ring, numbers(2, 3), numbers(0, 0)), // not known
		{code: "repl.lag", is: lag(30, 0), near: lag(29, 0)},
		{code: "repl.lag", is: lag(3630, 3600), near: lag(3629, 3600)},
		{code: "repl.delayed", is: lag(0, 1), near: lag(29, 0)},
		{code: "repl.frozen", is: func(t top) { t.Links[0].Frozen = 2 * time.Second }, near: func(t top) { t.Links[0].Frozen = 2 * time.Second; t.Links[0].Channel.IORunning = "No" }},
		{code: "repl.stopped:by_command", is: func(t top) { t.Links[0].Channel.SQLRunning = "No" }, near: func(t top) { fail(t, 0, false, 1062, "Duplicate entry") }},
		{code: "repl.stopped:detached", is: from("a.detached.invalid:3306"), near: from("a.invalid:3306")},
		{code: "repl.stopped:rebuilding", is: from("a.rebuilding.invalid:3306"), near: from("a.detached.invalid:3306")},
		made("repl.stopped:left_over", chain, leftOver, func(t top) { leftOver(t); t.Links[1].Channel.IORunning = "No" }),
		made("repl.stopped:left_over", chain, leftOver, func(t top) { leftOver(t); t.Nodes[1].Writes.ReadOnly = true }),
		made("repl.stopped:left_over", chain, leftOver, func(t top) { leftOver(t); t.Nodes[0].Seen = true }),
		made("repl.stopped:left_over", chain, leftOver, func(t top) { leftOver(t); t.Links[0].Channel.IORunning = "Connecting" }),
		{code: "repl.tls", is: func(t top) { t.Links[0].Channel.TLS = false }, near: func(t top) { t.Links[0].Channel.TLS, t.Links[0].Channel.Source = false, "127.0.0.1:3307" }},
	}
}

// from stops a channel whose source has that address.
func from(address string) func(top) {
	return func(t top) {
		ch := t.Links[0].Channel
		ch.Source, ch.IORunning, ch.SQLRunning = address, "No", "No"
	}
}

// leftOver lets the second of a chain be written to, with its channel stopped and its source gone.
func leftOver(t top) {
	lose(t, 0, "unreachable")
	t.Links[0].Channel.IORunning, t.Links[0].Channel.SQLRunning = "No", "No"
	t.Nodes[1].Writes = topology.Writes{}
}

func errors() []scenario {
	return []scenario{
		broken("duplicate_row", false, 1062, "Could not execute Write_rows event on table shop.orders; Duplicate entry '?' for key 'PRIMARY'"),
		broken("row_missing", false, 1032, "Could not execute Update_rows event on table shop.orders; Can't find record in 'orders'"),
		broken("object_missing", false, 1146, "Error executing row event: 'Table 'shop.orders' doesn't exist'"),
		broken("object_exists", false, 1050, "Error 'Table 'orders' already exists' on query"),
		broken("lock_wait", false, 1205, "Lock wait timeout exceeded"),
		broken("relay_log", false, 13121, "Relay log read failure: Could not parse relay log event entry"),
		broken("out_of_order", false, 1950, "An attempt was made to binlog GTID 0-1-5 which would create an out-of-order sequence number"),
		{code: "repl.stopped:other", is: func(t top) { fail(t, 0, false, 1366, "Incorrect string value") }, near: func(t top) { fail(t, 0, false, 1062, "Duplicate entry") }},
		broken("purged", true, 13114, "Got fatal error 1236 from source when reading data from binary log: 'Cannot replicate because the source purged required binary logs'"),
		broken("source_log", true, 1236, "Got fatal error 1236 from source when reading data from binary log: 'log event entry exceeded max_allowed_packet'"),
		broken("login", true, 1045, "error connecting to source: Access denied for user 'repl'"),
		broken("blocked", true, 1129, "Host 'b' is blocked because of many connection errors"),
		broken("full", true, 1040, "error connecting to source: Too many connections"),
		broken("cannot_connect", true, 2003, lostWords),
		broken("server_id", true, 13117, "Fatal error: The replica I/O thread stops because source and replica have equal MySQL server ids"),
		broken("server_uuid", true, 13117, "Fatal error: The replica I/O thread stops because source and replica have equal MySQL server UUIDs"),
		{code: "repl.stopped:receive", is: func(t top) { fail(t, 0, true, 9999, "something else") }, near: func(t top) { fail(t, 0, true, 2003, lostWords) }},
	}
}

func acknowledgements() []scenario {
	semi := func(active bool, replicas, need, waits int) func(top) {
		return func(t top) {
			t.Nodes[0].SemiSync = topology.SemiSync{SourceEnabled: true, SourceActive: active, Replicas: replicas, WaitFor: need, WaitSessions: waits, Timeout: time.Minute, SourceSetting: "rpl_semi_sync_source_enabled"}
			t.Nodes[1].SemiSync, t.Nodes[2].SemiSync = topology.SemiSync{ReplicaEnabled: true, ReplicaActive: true}, topology.SemiSync{ReplicaEnabled: true, ReplicaActive: true}
		}
	}
	return []scenario{
		{code: "commit.semisync", is: semi(true, 0, 1, 1), near: semi(true, 1, 1, 3)}, // a few that wait are usual
		{code: "commit.semisync", is: semi(true, 1, 1, 4), near: semi(false, 0, 1, 0)},
		{code: "commit.semisync", is: func(t top) { semi(true, 1, 1, 1)(t); t.Nodes[0].SemiSync.Waited = 10 * time.Second },
			near: func(t top) { semi(true, 1, 1, 1)(t); t.Nodes[0].SemiSync.Waited = 9 * time.Second }},
		{code: "semisync.off", is: func(t top) { semi(false, 0, 1, 0)(t) }, near: func(t top) { // one that may be promoted, and has no replica
			semi(true, 2, 1, 0)(t)
			t.Nodes[1].SemiSync.SourceEnabled = true
		}},
		{code: "semisync.off", is: semi(false, 0, 1, 0), near: semi(true, 1, 1, 0)},
		{code: "semisync.too_few", is: semi(true, 1, 2, 0), near: semi(true, 2, 2, 0)},
		{code: "semisync.not_acknowledging", is: func(t top) { semi(true, 1, 1, 0)(t); t.Nodes[1].SemiSync.ReplicaActive = false },
			near: func(t top) {
				semi(true, 1, 1, 0)(t)
				t.Nodes[1].SemiSync.ReplicaActive, t.Links[0].Channel.IORunning = false, "No"
			}},
	}
}

func gtids() []scenario {
	version := func(n int, v string) func(top) { return func(t top) { t.Nodes[n].Server = fleet.ServerOf(v, "") } }
	modes := func(source, replica string) func(top) {
		return func(t top) { t.Nodes[0].GTID.Mode, t.Nodes[1].GTID.Mode = source, replica }
	}
	purged := func(has string) func(top) {
		return func(t top) {
			t.Nodes[0].GTID.Purged = uuid(0) + ":1-60"
			t.Nodes[1].GTID.Executed, t.Links[0].Channel.Received = uuid(0)+":1-50", has
		}
	}
	return []scenario{
		{code: "repl.errant_gtid", is: func(t top) { t.Nodes[1].Errant = uuid(1) + ":1" }, near: func(t top) {}},
		{code: "repl.errant_gtid", is: func(t top) { maria(t); t.Nodes[1].Errant = "0-2-101" }, near: maria},
		{code: "repl.purged", is: purged(""), near: purged(uuid(0) + ":51-70")},
		{code: "repl.version", is: version(0, "8.4.1"), near: version(1, "8.4.1")},
		{code: "repl.version", is: func(t top) { maria(t); version(0, "11.4.2-MariaDB")(t) }, near: func(t top) { maria(t); version(0, "10.11.9-MariaDB")(t) }},
		{code: "repl.version_gap", is: version(1, "9.7.0"), near: version(1, "8.4.1")},
		{code: "repl.flavour", is: version(1, "10.11.6-MariaDB"), near: func(t top) { t.Nodes[1].Flavour = fleet.FlavourPercona }},
		{code: "repl.gtid_modes", is: modes("ON_PERMISSIVE", "OFF"), near: modes("ON_PERMISSIVE", "OFF_PERMISSIVE")},
		{code: "repl.gtid_modes", is: modes("OFF", "ON"), near: func(t top) { modes("OFF", "OFF")(t); t.Nodes[2].GTID.Mode = "OFF_PERMISSIVE" }},
		{code: "repl.position", is: func(t top) { t.Links[0].Channel.GTID = false }, near: func(t top) { t.Links[0].Channel.GTID = false; modes("OFF", "OFF")(t) }},
		{code: "repl.config:binlog_transaction_compression", is: func(t top) { t.Nodes[0].Log.Packed = true; version(1, "8.0.19")(t) }, near: func(t top) { t.Nodes[0].Log.Packed = true; version(1, "8.0.20")(t) }},
	}
}

func settings() []scenario {
	on := func(n int, set func(*topology.Node)) func(top) { return func(t top) { set(&t.Nodes[n]) } }
	format := func(n *topology.Node) { n.Log.Format = "STATEMENT" }
	flush := func(n *topology.Node) { n.Durable.FlushRedo = "2" }
	ignore := func(n *topology.Node) { n.Durable.LogError = "IGNORE_ERROR" }
	sync := func(n *topology.Node) { n.Durable.SyncLog = "0" }
	off := func(n *topology.Node) { n.GTID.Mode = "OFF" }
	strict := func(n *topology.Node) { n.GTID.Strict = false }
	updates := func(n *topology.Node) { n.Log.Updates = false }
	recovery := func(n *topology.Node) { n.Applier.Recovery = false }
	tries := func(n int, every time.Duration) func(top) {
		return func(t top) { t.Links[0].Channel.Tries, t.Links[0].Channel.Retry = n, every }
	}
	filter := func(names ...string) func(top) {
		return func(t top) {
			for k, name := range names {
				t.Links[k].Channel.Filter = name
			}
		}
	}
	return []scenario{
		{code: "repl.config:server_id", is: on(1, func(n *topology.Node) { n.ServerID = "1" }), near: func(t top) { // of another replication
			t.Links = t.Links[:1]
			t.Nodes[2].ServerID = "1"
		}},
		{code: "repl.config:server_uuid", is: on(1, func(n *topology.Node) { n.UUID = uuid(0) }), near: maria},
		{code: "repl.filter:differs", is: filter("replicate_do_db=shop"), near: filter("replicate_do_db=shop", "replicate_do_db=shop")},
		{code: "repl.filter:replica", is: filter("replicate_do_db=shop"), near: filter("")},
		{code: "repl.filter:source", is: on(0, func(n *topology.Node) { n.Log.Filter = "binlog_do_db=shop" }), near: on(1, func(n *topology.Node) { n.Log.Filter = "binlog_do_db=shop" })},
		made("repl.config:log_replica_updates", chain, on(1, updates), on(2, updates)),
		{code: "repl.config:log_bin", is: on(1, func(n *topology.Node) { n.Log = topology.BinaryLog{} }), near: on(0, func(n *topology.Node) { n.Log = topology.BinaryLog{} })},
		{code: "repl.config:binlog_format", is: on(0, format), near: on(1, format)},
		{code: "repl.config:binlog_checksum", is: on(1, func(n *topology.Node) { n.Log.Checksum = "NONE" }), near: on(1, func(n *topology.Node) { n.Log.Checksum = "" })},
		{code: "repl.config:binlog_row_image", is: on(1, func(n *topology.Node) { n.Log.Image = "MINIMAL" }), near: on(1, func(n *topology.Node) { n.Log.Image, n.Log.On = "MINIMAL", false })},
		{code: "repl.config:gtid_mode", is: func(t top) { on(0, off)(t); on(1, off)(t); on(2, off)(t) }, near: on(1, off)},
		{code: "repl.config:gtid_strict_mode", is: func(t top) { maria(t); on(1, strict)(t) }, near: on(1, strict)},
		{code: "repl.config:relay_log_recovery", is: on(1, recovery), near: func(t top) { maria(t); on(1, recovery)(t) }},
		{code: "repl.config:sync_binlog", is: on(0, sync), near: on(1, sync)},
		{code: "repl.config:binlog_error_action", is: on(0, ignore), near: on(1, ignore)},
		{code: "repl.config:innodb_flush_log_at_trx_commit", is: on(0, flush), near: on(1, flush)},
		{code: "repl.config:connect_tries", is: tries(10, time.Second), near: tries(10, 30*time.Second)},
		{code: "repl.config:connect_tries", is: tries(1, 4*time.Minute), near: tries(0, time.Second)},
		{code: "repl.config:skip_errors", is: on(1, func(n *topology.Node) { n.Applier.SkipErr = "1062" }), near: on(0, func(n *topology.Node) { n.Applier.SkipErr = "1062" })},
		{code: "repl.config:exec_mode", is: on(1, func(n *topology.Node) { n.Applier.ExecMode = "IDEMPOTENT" }), near: on(0, func(n *topology.Node) { n.Applier.ExecMode = "IDEMPOTENT" })},
		{code: "repl.config:preserve_commit_order", is: on(1, func(n *topology.Node) { n.Applier.Ordered = false }), near: on(1, func(n *topology.Node) { n.Applier.Ordered, n.Applier.Workers = false, 1 })},
	}
}

func sights() []scenario {
	surprise := func(kind string) func(top) {
		return func(t top) {
			t.Surprises = []topology.Surprise{{Kind: kind, Node: "a", Other: "b", Text: "they do not agree"}}
		}
	}
	unseen := func(kind string) func(top) {
		return func(t top) { lose(t, 2, kind); t.Links = append(t.Links, topology.Link{Replica: 2, Source: 0}) }
	}
	return []scenario{
		{code: "topology.other_server", is: surprise("other_server"), near: surprise("not_a_replica")},
		{code: "topology.perhaps_copy", is: surprise("perhaps_copy"), near: surprise("other_server")},
		{code: "topology.not_a_replica", is: surprise("not_a_replica"), near: surprise("other_server")},
		{code: "topology.no_address", is: unseen("no_address"), near: unseen("refused")},
		{code: "topology.not_all_seen", is: func(t top) {
			t.Nodes[0].Unknown = []fleet.Trouble{{What: "its replicas", Why: "Access denied", Remedy: "GRANT REPLICATION SLAVE ON *.* TO 'risso'@'%'"}}
		}, near: func(t top) {}},
		{code: "topology.not_all_seen", is: func(t top) { t.Nodes[1].Unseen = &topology.Failure{Kind: "dropped", Text: "EOF"} }, near: func(t top) { t.Nodes[1].Unseen = &topology.Failure{Kind: "hung", Text: "does not answer"} }},
		{code: "topology.left", is: func(t top) { t.Left = 7 }, near: func(t top) {}},
	}
}
