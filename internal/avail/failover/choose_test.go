package failover_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/fleet"
)

const (
	uuidA = "aaaaaaaa-0000-0000-0000-000000000000"
	uuidB = "bbbbbbbb-0000-0000-0000-000000000000"
	uuidC = "cccccccc-0000-0000-0000-000000000000"
)

// scene is a question about a group of a, which died, and its replicas b, c and d.
type scene struct {
	failover.Question
}

func (s *scene) node(name string) *topology.Node {
	return &s.Topology.Nodes[s.Topology.Find(name)]
}

func (s *scene) member(name string) *group.Member { return &s.Group.Members[s.Group.Find(name)] }

// has gives a node what it executed and received.
func (s *scene) has(name, executed, received string) {
	n := s.node(name)
	n.GTID.Executed, n.Channels[0].Received = executed, received
}

// open lets a node take writes and replicate from nobody.
func (s *scene) open(name string) {
	n := s.node(name)
	n.Writes.ReadOnly, n.Channels = false, nil
}

// alive lets the primary answer.
func (s *scene) alive() {
	n := *s.node("b")
	n.Name, n.Addresses, n.Channels, n.Writes.ReadOnly, n.UUID, n.ServerID = "a", []string{"a:3306"}, nil, false, uuidA, "1"
	s.Topology.Nodes = append(s.Topology.Nodes, n)
}

func mysqlScene() *scene {
	s := &scene{failover.Question{Group: &group.Group{Name: "g"}, Topology: &topology.Topology{}, Old: "a",
		Known: failover.Known{Name: "a", UUID: uuidA, ServerID: "1", Executed: uuidA + ":1-100", At: time.Now()}}}
	for i, name := range []string{"a", "b", "c", "d"} {
		m := group.Member{Name: name, Address: name + ":3306", Status: group.Secondary, Rule: group.Neutral}
		if name == "a" {
			m.Status = group.Primary
			s.Group.Members = append(s.Group.Members, m)
			continue
		}
		s.Group.Members = append(s.Group.Members, m)
		n := topology.Node{Name: name, Addresses: []string{name + ":3306"}, Seen: true}
		n.Facts = topology.Facts{UUID: strings.Repeat(name, 8) + "-0000-0000-0000-000000000000", ServerID: string(rune('1' + i))}
		n.Server = fleet.Server{Flavour: fleet.FlavourMySQL, Version: "8.4.0", Number: 80400}
		n.Log = topology.BinaryLog{On: true, Updates: true, Format: "ROW"}
		n.Writes.ReadOnly = true
		n.GTID = topology.GTIDs{Mode: "ON", Executed: uuidA + ":1-100"}
		n.Channels = []topology.Channel{{Channel: fleet.Channel{Source: "a:3306", SourceID: uuidA, IORunning: "No", SQLRunning: "Yes", GTID: true}, Received: uuidA + ":1-100"}}
		s.Topology.Nodes = append(s.Topology.Nodes, n)
	}
	return s
}

func mariaScene() *scene {
	s := mysqlScene()
	s.Known.UUID, s.Known.Executed = "", "0-1-100"
	for i := range s.Topology.Nodes {
		n := &s.Topology.Nodes[i]
		n.Server = fleet.Server{Flavour: fleet.FlavourMariaDB, Version: "10.11.8", Number: 101108}
		n.UUID = ""
		n.GTID = topology.GTIDs{ByDomain: true, Executed: "0-1-100", State: "0-1-100"}
		n.Channels[0].SourceID, n.Channels[0].SourceServerID, n.Channels[0].Received = "", "1", "0-1-100"
	}
	return s
}

// empty lets no member have anything.
func (s *scene) empty() {
	for i := range s.Topology.Nodes {
		n := &s.Topology.Nodes[i]
		n.GTID.Executed, n.GTID.State, n.Channels[0].Received = "", "", ""
	}
}

// domains gives a MariaDB node its sets.
func (s *scene) domains(name, executed, state, received string) {
	n := s.node(name)
	n.GTID.Executed, n.GTID.State, n.Channels[0].Received = executed, state, received
}

// TestChoose: who follows, and why the others do not.
func TestChoose(t *testing.T) {
	type test struct {
		what   string
		maria  bool
		with   func(s *scene)
		winner string // "": nobody
		from   string
		// refused are codes by the member that has them, "" for the answer as a whole, as in "b:filter :nobody".
		refused string
		lost    string
	}
	none := func(*scene) {}
	for _, c := range []test{
		{what: "all the same: by name", with: none, winner: "b"},
		{what: "the most received", with: func(s *scene) {
			s.Known.Executed = uuidA + ":1-110"
			s.has("c", uuidA+":1-90", uuidA+":1-110")
		}, winner: "c"},
		{what: "received, and not applied, counts more than applied", with: func(s *scene) { s.has("c", uuidA+":1-50", uuidA+":1-101") }, winner: "c"},
		{what: "of equals the one that has less to apply", with: func(s *scene) { s.has("b", uuidA+":1-50", uuidA+":1-100") }, winner: "c"},
		{what: "prefer takes effect though others have more", with: func(s *scene) {
			s.has("b", uuidA+":1-120", uuidA+":1-120")
			s.member("d").Rule = group.Prefer
		}, winner: "d", from: "b"},
		{what: "prefer of one that cannot does not", with: func(s *scene) {
			s.member("d").Rule = group.Prefer
			s.node("d").Channels[0].Filter = "replicate_do_db"
		}, winner: "b", refused: "d:filter"},
		{what: "avoid: the others first", with: func(s *scene) { s.member("b").Rule = group.Avoid }, winner: "c"},
		{what: "avoid: but when nobody else can", with: func(s *scene) {
			s.member("b").Rule, s.member("c").Rule, s.member("d").Rule = group.Avoid, group.Never, group.Never
		}, winner: "b", refused: "c:never d:never"},
		{what: "nobody beside one that takes writes", with: func(s *scene) { s.open("c") }, refused: "c:no_replica :rival"},
		{what: "nor another one by name", with: func(s *scene) { s.open("c"); s.To = "b" }, refused: "c:no_replica :rival"},
		{what: "it by name: what only it has stays, what only another one has is lost", with: func(s *scene) {
			s.open("c")
			s.node("c").GTID.Executed = uuidA + ":1-90," + uuidC + ":1-5"
			s.To = "c"
		}, winner: "c", lost: uuidA + ":91-100"},
		{what: "not it beside a primary that answers", with: func(s *scene) { s.open("c"); s.alive(); s.To = "c" }, refused: "c:no_replica :no_replica"},
		{what: "one that is FAULTY came back so", with: func(s *scene) { s.open("c"); s.member("c").Status = group.Faulty }, winner: "b", refused: "c:faulty c:no_replica"},
		{what: "never", with: func(s *scene) { s.member("b").Rule = group.Never }, winner: "c", refused: "b:never"},
		{what: "never, not even by name", with: func(s *scene) { s.member("b").Rule, s.To = group.Never, "b" }, refused: "b:never :never"},
		{what: "the data center of the old primary", with: func(s *scene) {
			s.member("a").Center, s.member("d").Center, s.member("b").Center = "x", "x", "y"
		}, winner: "d"},
		{what: "the data center of the policy", with: func(s *scene) {
			s.member("a").Center, s.member("c").Center, s.member("d").Center = "x", "y", "x"
			s.Group.Policy.Center = "y"
		}, winner: "c"},
		{what: "prefer comes before the data center", with: func(s *scene) {
			s.member("a").Center, s.member("d").Center, s.member("c").Rule = "x", "x", group.Prefer
		}, winner: "c"},
		{what: "SPARE is not promoted", with: func(s *scene) { s.member("b").Status = group.Spare }, winner: "c", refused: "b:spare"},
		{what: "SPARE gives what it has", with: func(s *scene) {
			s.member("d").Status = group.Spare
			s.has("d", uuidA+":1-105", uuidA+":1-105")
		}, winner: "b", from: "d", refused: "d:spare"},
		{what: "SPARE by name", with: func(s *scene) { s.member("b").Status, s.To = group.Spare, "b" }, winner: "b"},
		{what: "FAULTY never", with: func(s *scene) { s.member("b").Status, s.To = group.Faulty, "b" }, refused: "b:faulty :faulty"},
		{what: "delayed is passed over", with: func(s *scene) { s.node("b").Channels[0].Delay = 3600 }, winner: "c", refused: "b:delayed"},
		{what: "delayed by name", with: func(s *scene) { s.node("b").Channels[0].Delay, s.To = 3600, "b" }, winner: "b"},
		{what: "only delayed ones", with: func(s *scene) {
			for _, n := range []string{"b", "c", "d"} {
				s.node(n).Channels[0].Delay = 60
			}
		}, refused: ":nobody b:delayed c:delayed d:delayed"},
		{what: "filters of replication", with: func(s *scene) { s.node("b").Channels[0].Filter = "replicate_ignore_db=x" }, winner: "c", refused: "b:filter"},
		{what: "filters of the binary log", with: func(s *scene) { s.node("b").Log.Filter = "binlog_do_db=x" }, winner: "c", refused: "b:log_filter"},
		{what: "filters, not even by name", with: func(s *scene) { s.node("b").Channels[0].Filter, s.To = "x", "b" }, refused: "b:filter :filter"},
		{what: "no binary log", with: func(s *scene) { s.node("b").Log.On = false }, winner: "c", refused: "b:no_binlog"},
		{what: "no log_replica_updates", with: func(s *scene) { s.node("b").Log.Updates = false }, winner: "c", refused: "b:no_log_updates"},
		{what: "by file and position", maria: true, with: func(s *scene) { s.node("b").Channels[0].GTID = false }, winner: "c", refused: "b:position"},
		{what: "by file and position, where what was received is known", with: func(s *scene) { s.node("b").Channels[0].GTID = false }, winner: "b"},
		{what: "no GTIDs", with: func(s *scene) { s.node("b").GTID.Mode = "OFF" }, winner: "c", refused: "b:no_gtid"},
		{what: "GTIDs that cannot be read", with: func(s *scene) { s.node("b").GTID.Executed = "?:?" }, winner: "c", refused: "b:gtid"},
		{what: "InnoDB read-only", with: func(s *scene) { s.node("b").Writes.InnoDB = true }, winner: "c", refused: "b:innodb_read_only"},
		{what: "of a cluster", with: func(s *scene) { s.node("b").Group = &topology.Group{Kind: "galera"} }, winner: "c", refused: "b:cluster"},
		{what: "a newer version", with: func(s *scene) { s.node("b").Number, s.node("b").Version = 90700, "9.7.0" }, winner: "c", refused: "b:version"},
		{what: "all are newer than the old primary, which is dead", with: func(s *scene) {
			s.Known.Server = fleet.Server{Flavour: fleet.FlavourMySQL, Version: "5.7.44", Number: 50744}
		}, refused: ":nobody b:version c:version d:version"},
		{what: "one that is newer is named", with: func(s *scene) {
			s.Known.Server, s.To = fleet.Server{Flavour: fleet.FlavourMySQL, Version: "5.7.44", Number: 50744}, "b"
			s.node("d").Server = s.Known.Server
		}, winner: "b", refused: "c:version"},
		{what: "one that is of another flavour is named", with: func(s *scene) {
			s.Known.Server, s.To = fleet.Server{Flavour: fleet.FlavourMariaDB, Version: "10.11.8", Number: 101108}, "b"
		}, refused: ":version b:version c:version d:version"},
		{what: "not seen", with: func(s *scene) {
			s.node("b").Seen, s.node("b").Unseen = false, &topology.Failure{Kind: "login", Text: "Access denied"}
		}, winner: "c", refused: "b:not_seen"},
		{what: "no replica", with: func(s *scene) { s.node("b").Channels = nil }, winner: "c", refused: "b:no_replica"},
		{what: "several sources", with: func(s *scene) {
			s.node("b").Channels = append(s.node("b").Channels, topology.Channel{Channel: fleet.Channel{Name: "x", Source: "z:3306", SQLRunning: "Yes"}})
		}, winner: "c", refused: "b:channels"},
		{what: "another source", with: func(s *scene) {
			ch := &s.node("b").Channels[0]
			ch.Source, ch.SourceID = "z:3306", uuidC
		}, winner: "c", refused: "b:other_source"},
		{what: "below another member", with: func(s *scene) {
			ch := &s.node("b").Channels[0]
			ch.Source, ch.SourceID = "c:3306", uuidC
		}, winner: "b"},
		{what: "the applier stopped", with: func(s *scene) { s.node("b").Channels[0].SQLRunning = "No" }, winner: "c", refused: "b:applier"},
		{what: "the applier failed", with: func(s *scene) {
			s.node("b").Channels[0].SQL = fleet.ReplicaError{Number: 1062, Text: "Duplicate entry"}
		}, winner: "c", refused: "b:applier"},
		{what: "the applier failed, and the receiver stands", with: func(s *scene) {
			l := &s.node("b").Channels[0]
			l.SQLRunning, l.IORunning, l.SQL = "No", "No", fleet.ReplicaError{Number: 1032, Text: "Can't find record"}
		}, winner: "c", refused: "b:applier"},
		{what: "it may still receive", with: func(s *scene) { s.Receiving = []string{"b"} }, winner: "c", refused: "b:receives"},
		{what: "it was tried", with: func(s *scene) { s.Without = []string{"b"} }, winner: "c", refused: "b:tried"},
		{what: "errant", with: func(s *scene) { s.has("b", uuidA+":1-100,"+uuidB+":1-2", uuidA+":1-100") }, winner: "c", refused: "b:errant"},
		{what: "no primary: the one that was it has what no other has, and is named", with: func(s *scene) {
			s.Old, s.Known, s.To = "", failover.Known{}, "b"
			s.has("b", uuidA+":1-100,"+uuidB+":1-2", "")
			s.node("b").Channels = nil
		}, winner: "b", refused: "a:not_seen"},
		{what: "no primary: one that replicated has what no other has, and is named", with: func(s *scene) {
			s.Old, s.Known, s.To = "", failover.Known{}, "b"
			s.has("b", uuidA+":1-100,"+uuidB+":1-2", "")
		}, refused: "a:not_seen b:errant :errant"},
		{what: "errant with a tag", with: func(s *scene) { s.has("b", uuidA+":1-100,"+uuidB+":fix:1-2", uuidA+":1-100") }, winner: "c", refused: "b:errant"},
		{what: "tags of the old primary are none, and count", with: func(s *scene) {
			s.Known.Executed = uuidA + ":1-100:app:1-5"
			s.has("c", uuidA+":1-100:app:1-5", "")
		}, winner: "c"},
		{what: "ahead of the others, with nothing known of the old primary", with: func(s *scene) { s.Known = failover.Known{Name: "a"}; s.has("b", uuidA+":1-150", uuidA+":1-150") }, winner: "b"},
		{what: "MariaDB: ahead of the others, with nothing known of the old primary", maria: true, with: func(s *scene) {
			s.Known = failover.Known{Name: "a"}
			s.domains("b", "0-1-150", "0-1-150", "0-1-150")
		}, winner: "b"},
		{what: "errant, with nothing known of the old primary", with: func(s *scene) {
			s.Known = failover.Known{Name: "a"}
			s.has("b", uuidA+":1-100,"+uuidB+":1-2", uuidA+":1-100")
		}, winner: "c", refused: "b:errant"},
		{what: "ahead of what was last seen is not errant", with: func(s *scene) { s.has("b", uuidA+":1-150", uuidA+":1-150") }, winner: "b"},
		{what: "two leaders: nobody", with: func(s *scene) {
			s.has("b", uuidA+":1-100:103", uuidA+":103")
			s.has("c", uuidA+":1-102", uuidA+":1-102")
		}, refused: ":split_brain"},
		{what: "two leaders, and one is named", with: func(s *scene) {
			s.has("b", uuidA+":1-100:103", uuidA+":103")
			s.has("c", uuidA+":1-102", uuidA+":1-102")
			s.To = "c"
		}, winner: "c", lost: uuidA + ":103"},
		{what: "two leaders, one is named, and nothing may be lost", with: func(s *scene) {
			s.has("b", uuidA+":1-100:103", uuidA+":103")
			s.has("c", uuidA+":1-102", uuidA+":1-102")
			s.To, s.Lossless = "c", true
		}, refused: ":loss", lost: uuidA + ":103"},
		{what: "what only one has that cannot pass it on is lost", with: func(s *scene) {
			s.has("b", uuidA+":1-100", uuidA+":1-104")
			s.node("b").Log.Updates, s.Lossless = false, true
		}, refused: "b:no_log_updates :loss", lost: uuidA + ":101-104"},
		{what: "a disk that is nearly full comes last", with: func(s *scene) { s.Room = map[string]failover.Room{"b": {Free: 1 << 20}, "c": {Free: 9 << 30}} }, winner: "c"},
		{what: "nearly full, and nobody else can", with: func(s *scene) {
			s.Room = map[string]failover.Room{"b": {Free: 1 << 20}}
			s.member("c").Rule, s.member("d").Rule = group.Never, group.Never
		}, winner: "b", refused: "c:never d:never"},
		{what: "nearly full in a switchover", with: func(s *scene) { s.Alive, s.Room = true, map[string]failover.Room{"b": {Free: 1 << 20}} }, winner: "c", refused: "b:disk"},
		{what: "nearly full in a switchover, by name", with: func(s *scene) { s.Alive, s.To, s.Room = true, "b", map[string]failover.Room{"b": {Free: 1 << 20}} }, winner: "b"},
		{what: "two have one server_id", with: func(s *scene) { s.node("b").ServerID = s.node("c").ServerID }, winner: "d", refused: "b:server_id c:server_id"},
		{what: "names of tables would not be found", with: func(s *scene) {
			s.Alive, s.Known.Settings = true, map[string]string{"lower_case_table_names": "0"}
			s.node("b").Settings = map[string]string{"lower_case_table_names": "1"}
		}, winner: "c", refused: "b:settings"},
		{what: "no member", with: func(s *scene) { s.To = "z" }, refused: ":no_member"},
		{what: "the primary itself", with: func(s *scene) { s.To = "a" }, refused: ":primary"},
		{what: "a known loss is told", with: func(s *scene) { s.Known.Executed = uuidA + ":1-103" }, winner: "b", lost: uuidA + ":101-103"},
		{what: "what one that is away had when it was last seen is lost", with: func(s *scene) {
			s.node("c").Seen = false
			s.Known.Had = map[string]failover.Had{"c": {Received: uuidA + ":1-102," + uuidC + ":1"}}
		}, winner: "b", refused: "c:not_seen", lost: uuidA + ":101-102"},
		{what: "one sends clients away", with: func(s *scene) { s.node("b").Writes.Offline = true }, winner: "c", refused: "b:offline"},
		{what: "one sends clients away since Risso fenced it", with: func(s *scene) {
			s.node("b").Writes.Offline = true
			s.Group.Members[1].Fenced = []byte("{}")
		}, winner: "b"},
		{what: "nobody has anything", with: func(s *scene) { s.empty(); s.Lossless = true }, refused: ":loss", lost: uuidA + ":1-100"},
		{what: "MariaDB: nobody has anything", maria: true, with: func(s *scene) { s.empty(); s.Lossless = true }, refused: ":loss", lost: "0-1-100"},
		{what: "a known loss refuses, if the policy says so", with: func(s *scene) { s.Known.Executed, s.Lossless = uuidA+":1-103", true }, refused: ":loss", lost: uuidA + ":101-103"},
		{what: "a loss that another member has is none", with: func(s *scene) {
			s.Known.Executed, s.Lossless = uuidA+":1-103", true
			s.has("c", uuidA+":1-90", uuidA+":1-103")
		}, winner: "c"},

		{what: "MariaDB: by name", maria: true, with: none, winner: "b"},
		{what: "MariaDB: the most received in a domain", maria: true, with: func(s *scene) {
			s.Known.Executed = "0-1-100,7-1-9"
			s.domains("b", "0-1-100,7-1-5", "0-1-100,7-1-5", "0-1-100,7-1-5")
			s.domains("c", "0-1-80,7-1-5", "0-1-80,7-1-5", "0-1-100,7-1-9")
			s.domains("d", "0-1-100", "0-1-100", "0-1-100")
		}, winner: "c"},
		{what: "MariaDB: one is ahead in one domain, another in another", maria: true, with: func(s *scene) {
			s.Known.Executed = "0-1-101,7-1-9"
			s.domains("b", "0-1-101,7-1-5", "0-1-101,7-1-5", "0-1-101,7-1-5")
			s.domains("c", "0-1-100,7-1-9", "0-1-100,7-1-9", "0-1-100,7-1-9")
			s.domains("d", "0-1-100,7-1-5", "0-1-100,7-1-5", "0-1-100,7-1-5")
		}, refused: ":split_brain"},
		{what: "MariaDB: errant", maria: true, with: func(s *scene) { s.domains("b", "0-2-101", "0-1-100,0-2-101", "0-1-100") }, winner: "c", refused: "b:errant"},
		{what: "MariaDB: a known loss", maria: true, with: func(s *scene) { s.Known.Executed, s.Lossless = "0-1-103", true }, refused: ":loss", lost: "0-1-103"},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := mysqlScene()
			if c.maria {
				s = mariaScene()
			}
			c.with(s)
			got := failover.Choose(s.Question)
			if got.Winner != c.winner || got.From != c.from {
				t.Errorf("%q from %q, want %q from %q", got.Winner, got.From, c.winner, c.from)
			}
			if got.Lost != c.lost || (got.Lost != "") != (got.Count > 0) {
				t.Errorf("lost %q (%d), want %q", got.Lost, got.Count, c.lost)
			}
			want := map[string]bool{}
			for _, code := range strings.Fields(c.refused) {
				want[code] = true
			}
			said := map[string]bool{}
			note := func(name string, list []failover.Refusal) {
				for _, r := range list {
					if key := name + ":" + r.Code; !want[key] {
						t.Errorf("%s is refused: %s", key, r.Why)
					} else {
						said[key] = true
					}
				}
			}
			note("", got.Refused)
			for _, x := range got.Candidates {
				note(x.Name, x.Refused)
			}
			for key := range want {
				if !said[key] {
					t.Errorf("%s is not refused", key)
				}
			}
		})
	}
}

// TestAlike: which differences from the old primary are said.
func TestAlike(t *testing.T) {
	old := map[string]string{"sql_mode": "STRICT_TRANS_TABLES", "max_allowed_packet": "67108864", "max_connections": "500", "time_zone": "SYSTEM", "system_time_zone": "CET",
		"sync_binlog": "1", "innodb_flush_log_at_trx_commit": "1", "lower_case_table_names": "0"}
	for _, c := range []struct{ name, value, says string }{
		{"sql_mode", "strict_trans_tables", ""},
		{"sql_mode", "", "sql_mode is , and STRICT"},
		{"max_allowed_packet", "16777216", "max_allowed_packet is 16777216, and 67108864 on a"},
		{"max_allowed_packet", "134217728", ""},
		{"max_connections", "100", "max_connections is 100"},
		{"system_time_zone", "UTC", "system_time_zone is UTC"},
		{"time_zone", "+00:00", "time_zone is +00:00"},
		{"sync_binlog", "1000", "commits may be lost"},
		{"innodb_flush_log_at_trx_commit", "2", "commits may be lost"},
		{"lower_case_table_names", "1", "lower_case_table_names is 1"},
	} {
		s := mysqlScene()
		s.Known.Settings, s.Room = old, map[string]failover.Room{"b": {Free: 9 << 30}}
		n := s.node("b")
		n.Settings = map[string]string{}
		for k, v := range old {
			n.Settings[k] = v
		}
		n.Settings[c.name] = c.value
		got := failover.Choose(s.Question)
		said := strings.Join(got.Candidates[0].Notes, "; ")
		if got.Winner != "b" || (said == "") != (c.says == "") || !strings.Contains(said, c.says) {
			t.Errorf("%s = %q: %s follows, and is said %q, not %q", c.name, c.value, got.Winner, said, c.says)
		}
		if list := got.Cautions(); len(list) != min(1, len(c.says)) {
			t.Errorf("%s = %q: cautions %q", c.name, c.value, list)
		}
	}
}

// TestReceipt: what is said of what was lost.
func TestReceipt(t *testing.T) {
	lossless := func(waitFor int, acks ...string) func(j *failover.Journal, s *scene) {
		return func(j *failover.Journal, _ *scene) {
			j.Known.SemiSync, j.Known.Lossless, j.Known.WaitFor, j.Known.Acks = true, true, waitFor, acks
		}
	}
	handed := func(executed string) func(j *failover.Journal, s *scene) {
		return func(j *failover.Journal, s *scene) {
			j.Kind = failover.Switchover
			n := topology.Node{Name: "a", Seen: true}
			n.GTID.Executed = executed
			s.Topology.Nodes = append(s.Topology.Nodes, n)
		}
	}
	for _, c := range []struct {
		what  string
		maria bool
		with  func(j *failover.Journal, s *scene)
		want  failover.Verdict
		lost  string
		count uint64
		words string
	}{
		{what: "a switchover", with: handed(uuidA + ":1-100"), want: failover.NothingLost, words: "zero"},
		{what: "a switchover, and the old one was written to", with: handed(uuidA + ":1-102"), want: failover.Lost, lost: uuidA + ":101-102", count: 2, words: "special privileges"},
		{what: "a switchover, and the old one does not answer", with: func(j *failover.Journal, s *scene) {
			handed("")(j, s)
			s.node("a").Seen = false
		}, want: failover.PerhapsLost, words: "could not be asked"},
		{what: "it never told", with: func(*failover.Journal, *scene) {}, want: failover.NothingToLose, words: "not known whether it waited"},
		{what: "asynchronous", with: func(j *failover.Journal, _ *scene) { j.Known.Told = true }, want: failover.NothingToLose, words: "asynchronous"},
		{what: "semi-sync with a time-out", with: func(j *failover.Journal, _ *scene) { j.Known.Told, j.Known.SemiSync = true, true }, want: failover.NothingToLose, words: "fall back"},
		{what: "one of three acknowledges: all three are needed", with: lossless(1, "b", "c", "d"), want: failover.NothingLost, words: "zero"},
		{what: "one of three, and one is not seen", with: func(j *failover.Journal, s *scene) {
			lossless(1, "b", "c", "d")(j, s)
			s.node("d").Seen = false
		}, want: failover.PerhapsLost, words: "2 of the 3"},
		{what: "two of three, and one is not seen", with: func(j *failover.Journal, s *scene) {
			lossless(2, "b", "c", "d")(j, s)
			s.node("d").Seen = false
		}, want: failover.NothingLost},
		{what: "two of three, and two are not seen", with: func(j *failover.Journal, s *scene) {
			lossless(2, "b", "c", "d")(j, s)
			s.node("c").Seen, s.node("d").Seen = false, false
		}, want: failover.PerhapsLost},
		{what: "one that acknowledges, and it is the new primary", with: lossless(1, "b"), want: failover.NothingLost},
		{what: "one that acknowledges, and it is not seen", with: func(j *failover.Journal, s *scene) {
			lossless(1, "d")(j, s)
			s.node("d").Seen = false
		}, want: failover.PerhapsLost},
		{what: "one is counted once", with: lossless(1, "b", "c", "c"), want: failover.PerhapsLost},
		{what: "one more that is no member", with: lossless(1, "b", "c", "d", "a replica that is no member"), want: failover.PerhapsLost, words: "3 of the 4"},
		{what: "nobody acknowledges", with: lossless(1), want: failover.PerhapsLost},
		{what: "a loss is seen", with: func(j *failover.Journal, _ *scene) { j.Known.Executed = uuidA + ":1-103" }, want: failover.Lost, lost: uuidA + ":101-103", count: 3, words: "3 transactions lost"},
		{what: "a loss is seen, of semi-sync too", with: func(j *failover.Journal, s *scene) {
			lossless(1, "b", "c", "d")(j, s)
			j.Known.Executed = uuidA + ":1-103"
		}, want: failover.Lost, lost: uuidA + ":101-103", count: 3},
		{what: "with a tag", with: func(j *failover.Journal, _ *scene) { j.Known.Executed = uuidA + ":1-100:app:1-2" }, want: failover.Lost, lost: uuidA + ":app:1-2", count: 2},
		{what: "MariaDB", maria: true, with: func(j *failover.Journal, _ *scene) { j.Known.Executed = "0-1-103" }, want: failover.Lost, lost: "0-1-103", count: 3},
		{what: "MariaDB, of semi-sync, and it is not known since when", maria: true, with: func(j *failover.Journal, s *scene) {
			lossless(1, "b", "c", "d")(j, s)
			j.Known.Executed = "0-1-103"
		}, want: failover.Lost, lost: "0-1-103", count: 3},
		{what: "MariaDB, of semi-sync, after all that was acknowledged", maria: true, with: func(j *failover.Journal, s *scene) {
			lossless(1, "b", "c", "d")(j, s)
			j.Known.Executed, j.Known.Covered = "0-1-103", "0-1-90"
		}, want: failover.NothingLost, lost: "0-1-103", count: 3, words: "a has 3 transactions that were never acknowledged"},
		{what: "MariaDB, of semi-sync, with some from before", maria: true, with: func(j *failover.Journal, s *scene) {
			lossless(1, "b", "c", "d")(j, s)
			j.Known.Executed, j.Known.Covered = "0-1-103", "0-1-101"
		}, want: failover.Lost, lost: "0-1-103", count: 3},
		{what: "MariaDB, and too few were asked", maria: true, with: func(j *failover.Journal, s *scene) {
			lossless(2, "b", "c", "d")(j, s)
			s.node("c").Seen, s.node("d").Seen = false, false
			j.Known.Executed, j.Known.Covered = "0-1-103", "0-1-90"
		}, want: failover.Lost, lost: "0-1-103", count: 3},
		{what: "MariaDB, of another domain", maria: true, with: func(j *failover.Journal, s *scene) {
			j.Known.Executed = "0-1-100,7-1-2"
			s.domains("b", "0-1-100,7-1-1", "0-1-100,7-1-1", "")
		}, want: failover.Lost, lost: "7-1-2", count: 1},
		{what: "the new primary has nothing at all", with: func(_ *failover.Journal, s *scene) { s.empty() }, want: failover.Lost, lost: uuidA + ":1-100", count: 100, words: "100 transactions lost"},
		{what: "MariaDB: the new primary has nothing at all", maria: true, with: func(_ *failover.Journal, s *scene) { s.empty() }, want: failover.Lost, lost: "0-1-100", count: 100},
		{what: "MariaDB: the new primary has a copy, and no log of it", maria: true, with: func(j *failover.Journal, s *scene) {
			s.empty()
			s.node("b").GTID.Applied = "0-1-100"
		}, want: failover.NothingToLose},
		{what: "nothing was known", with: func(j *failover.Journal, _ *scene) { j.Known.Executed = "" }, want: failover.PerhapsLost},
		{what: "the new primary is not seen", with: func(_ *failover.Journal, s *scene) { s.node("b").Seen = false }, want: failover.PerhapsLost},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := mysqlScene()
			if c.maria {
				s = mariaScene()
			}
			began := time.Now()
			j := &failover.Journal{Group: "g", Epoch: 3, Kind: failover.Failover, Old: "a", New: "b", Known: s.Known, Began: began, Blocked: began, Opened: began.Add(1500 * time.Millisecond)}
			j.Before = map[string]failover.Was{}
			c.with(j, s)
			for _, n := range s.Topology.Nodes {
				j.Before[n.Name] = failover.Was{Compared: n.Seen}
			}
			r := failover.NewReceipt(j, s.Topology)
			if r.Verdict != c.want || r.Lost != c.lost || c.lost != "" && r.Count != c.count || !strings.Contains(r.Words, c.words) {
				t.Errorf("%s, lost %q (%d): %s; want %s, %q (%d), %q", r.Verdict, r.Lost, r.Count, r.Words, c.want, c.lost, c.count, c.words)
			}
			if r.Outage != 1500*time.Millisecond {
				t.Errorf("outage %s", r.Outage)
			}
			if zero := strings.Contains(r.Words, "zero"); zero != (r.Verdict == failover.NothingLost) {
				t.Errorf("%s, and says %q", r.Verdict, r.Words)
			}
		})
	}
}
