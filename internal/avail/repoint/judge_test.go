package repoint

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/follow"
	"github.com/rissodb/risso/internal/mysql"
)

const (
	uuid0 = "00000000-0000-0000-0000-000000000000"
	uuid1 = "11111111-1111-1111-1111-111111111111"
	uuid2 = "22222222-2222-2222-2222-222222222222"
)

// three are a primary (0) and two replicas of it (1, 2), by GTID; 2 is to go below 1.
func three() Question {
	node := func(name, uuid, id string) topology.Node {
		n := topology.Node{Name: name, Addresses: []string{name + ":3306"}, Seen: true}
		n.Facts = topology.Facts{UUID: uuid, ServerID: id, Hostname: name, Port: 3306}
		n.Server = fleet.Server{Flavour: fleet.FlavourMySQL, Version: "8.4.0", Number: 80400}
		n.Log = topology.BinaryLog{On: true, Updates: true, Format: "ROW"}
		n.GTID = topology.GTIDs{Mode: "ON", Executed: uuid0 + ":1-100", Later: uuid0 + ":1-110"}
		return n
	}
	t := &topology.Topology{Nodes: []topology.Node{node("a", uuid0, "1"), node("b", uuid1, "2"), node("c", uuid2, "3")}}
	for i := 1; i < 3; i++ {
		ch := topology.Channel{Channel: fleet.Channel{Source: "a:3306", SourceID: uuid0, IORunning: "Yes", SQLRunning: "Yes", GTID: true}, Received: uuid0 + ":1-100"}
		t.Nodes[i].Channels = []topology.Channel{ch}
		t.Nodes[i].Writes.ReadOnly = true
		t.Links = append(t.Links, topology.Link{Replica: i, Source: 0, Channel: &t.Nodes[i].Channels[0]})
	}
	return Question{Topology: t, Replica: 2, Below: 1, Wait: time.Minute, Accounts: []Account{{"%", true}}, User: "repl"}
}

// TestJudge: what is refused, and why.
func TestJudge(t *testing.T) {
	c := func(q *Question) *topology.Node { return &q.Topology.Nodes[2] }
	b := func(q *Question) *topology.Node { return &q.Topology.Nodes[1] }
	cases := []struct {
		name string
		with func(q *Question)
		want string // codes, with blanks between
	}{
		{"all is well", func(*Question) {}, ""},
		{"not seen", func(q *Question) { b(q).Seen = false }, "not_seen"},
		{"itself", func(q *Question) { q.Below = 2 }, "itself"},
		{"there already", func(q *Question) { q.Below = 0 }, "there"},
		{"a ring", func(q *Question) { q.Topology.Links[0].Source = 2 }, "ring"},
		{"several channels", func(q *Question) {
			c(q).Channels = append(c(q).Channels, topology.Channel{Channel: fleet.Channel{Name: "x"}})
		}, "several_channels"},
		{"no channel", func(q *Question) { c(q).Channels = nil }, "no_channel"},
		{"older than the source", func(q *Question) { b(q).Number, b(q).Version = 90700, "9.7.0" }, "version"},
		{"newer than the source", func(q *Question) { c(q).Number, c(q).Version = 90700, "9.7.0" }, ""},
		{"the other flavour", func(q *Question) { b(q).Flavour = fleet.FlavourMariaDB }, "version"},
		{"no binary log", func(q *Question) { b(q).Log.On = false }, "no_log"},
		{"what is replicated is not logged", func(q *Question) { b(q).Log.Updates = false }, "no_updates"},
		{"rows into statements", func(q *Question) { c(q).Log.Format = "STATEMENT" }, "format"},
		{"stopped with an error", func(q *Question) { c(q).Channels[0].SQL.Text = "duplicate" }, "broken"},
		{"received and not applied", func(q *Question) {
			c(q).Channels[0].SQLRunning, c(q).Channels[0].Received = "No", uuid0+":1-105"
		}, "not_applied"},
		{"stopped, and all applied", func(q *Question) { c(q).Channels[0].SQLRunning = "No" }, ""},
		{"delayed, with something to apply", func(q *Question) { c(q).Channels[0].Delay, c(q).Channels[0].Received = 3600, uuid0+":1-105" }, "delayed"},
		{"delayed, with nothing to apply", func(q *Question) { c(q).Channels[0].Delay = 3600 }, ""},
		{"below one that is delayed", func(q *Question) { b(q).Channels[0].Delay = 3600 }, "delayed"},
		{"filters of the log", func(q *Question) { b(q).Log.Filter = "binlog_do_db=x" }, "filter"},
		{"filters of the applier", func(q *Question) { b(q).Channels[0].Filter = "replicate_do_db=x" }, "filter"},
		{"the same server_id", func(q *Question) { c(q).ServerID = "2" }, "server_id"},
		{"listed, and not seen, with its server_id", func(q *Question) {
			q.Topology.Nodes = append(q.Topology.Nodes, topology.Node{Name: "gone", Facts: topology.Facts{ServerID: "3"}})
			q.Topology.Links = append(q.Topology.Links, topology.Link{Replica: 3, Source: 1})
		}, ""},
		{"no account", func(q *Question) { q.Accounts = nil }, "account"},
		{"account not known", func(q *Question) { q.Accounts, q.AccountWhy = nil, "denied" }, ""},
		{"semi-sync would wait", func(q *Question) {
			c(q).SemiSync.ReplicaActive = true
			q.Topology.Nodes[0].SemiSync = topology.SemiSync{SourceActive: true, Replicas: 1, WaitFor: 1}
		}, "semi_sync"},
		{"semi-sync has one to spare", func(q *Question) {
			c(q).SemiSync.ReplicaActive = true
			q.Topology.Nodes[0].SemiSync = topology.SemiSync{SourceActive: true, Replicas: 2, WaitFor: 1}
		}, ""},
		{"semi-sync has one to spare, which stands still as well", func(q *Question) {
			c(q).SemiSync.ReplicaActive, b(q).SemiSync.ReplicaActive, c(q).Channels[0].GTID = true, true, false
			q.Topology.Nodes[0].SemiSync = topology.SemiSync{SourceActive: true, Replicas: 2, WaitFor: 1}
		}, "semi_sync"},
		{"only the anchor acknowledges", func(q *Question) {
			b(q).SemiSync.ReplicaActive, c(q).Channels[0].GTID = true, false
			q.Topology.Nodes[0].SemiSync = topology.SemiSync{SourceActive: true, Replicas: 1, WaitFor: 1}
		}, "semi_sync"},
		{"GTIDs off", func(q *Question) { b(q).GTID.Mode = "OFF" }, "gtid_mode"},
		{"errant", func(q *Question) { c(q).GTID.Executed += "," + uuid2 + ":1" }, "errant"},
		{"ahead, and the primary has it", func(q *Question) { c(q).GTID.Executed = uuid0 + ":1-105" }, ""},
		{"ahead, and the primary is dead", func(q *Question) {
			c(q).GTID.Executed, b(q).GTID.Later, q.Topology.Nodes[0].Seen = uuid0+":1-105", "", false
		}, "ahead"},
		{"purged", func(q *Question) { q.Gone = uuid0 + ":1-101" }, "purged"},
		{"purged what is received", func(q *Question) { q.Gone, c(q).Channels[0].Received = uuid0+":1-101", uuid0+":101" }, ""},
		{"positions, beside it", func(q *Question) { c(q).Channels[0].GTID = false }, ""},
		{"positions, and the other does not apply", func(q *Question) { c(q).Channels[0].GTID, b(q).Channels[0].SQLRunning = false, "No" }, "position"},
		{"positions, elsewhere", func(q *Question) {
			c(q).Channels[0].GTID = false
			q.Topology.Links = q.Topology.Links[1:]
		}, "position"},
		{"loopback of another machine", func(q *Question) { b(q).Addresses = []string{"127.0.0.1:3306"} }, "no_address"},
		{"named by a service", func(q *Question) { q.As = "10.0.0.2:mysql" }, "no_address"},
		{"named with a port that there is not", func(q *Question) { q.As = "10.0.0.2:0" }, "no_address"},
		{"detached without GTIDs, and put back", func(q *Question) { back(q, uuid0) }, ""},
		{"detached without GTIDs, and another server at the address", func(q *Question) { back(q, uuid1) }, "position"},
		{"named", func(q *Question) { b(q).Addresses, q.As = []string{"127.0.0.1:3306"}, "10.0.0.2:3306" }, ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			q := three()
			tc.with(&q)
			v := Judge(q)
			var got []string
			for _, r := range v.Refused {
				got = append(got, r.Code)
				if !strings.Contains(r.Why, " ") {
					t.Errorf("%q says nothing", r.Why)
				}
			}
			if !slices.Equal(got, strings.Fields(tc.want)) {
				t.Errorf("got %v, want %q", v.Refused, tc.want)
			}
		})
	}
}

// back detaches 2, which has no GTIDs and followed the server with a UUID, and puts it below 0 again.
func back(q *Question, uuid string) {
	ch := &q.Topology.Nodes[2].Channels[0]
	q.Below, ch.GTID, ch.Source, ch.SourceID = 0, false, "a.detached.invalid:3306", uuid
	q.Topology.Links = q.Topology.Links[:1]
	q.As = "a:03306"
}

// TestAddress: an address is written as servers show it; one without a host leads nowhere.
func TestAddress(t *testing.T) {
	for text, want := range map[string]string{"db:3306": "db:3306", "db:03306": "db:3306", "[fd00::1]:3306": "[fd00::1]:3306", "fd00::1:3306": "", "db:mysql": "", "db:70000": "", ":3306": "", "db": ""} {
		if got := address(text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	q := three()
	q.Topology.Nodes[2].Channels[0].Source = "[fd00::1]:3306"
	m, err := (&Repointer{Dir: t.TempDir(), Wait: time.Minute, Target: func(string) (none mysql.Target) { return none }}).Detach(t.Context(), q.Topology, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Notes) > 0 {
		t.Errorf("detached: got the notes %q, want none", m.Notes)
	}
	q.Topology.Nodes[2].GTID.Executed += "," + uuid2 + ":1-3"
	own, err := (&Repointer{Dir: t.TempDir(), Wait: time.Minute, Target: func(string) (none mysql.Target) { return none }}).Detach(t.Context(), q.Topology, 2, nil)
	if err != nil || len(own.Notes) != 1 || !strings.Contains(own.Notes[0], uuid2+":1-3") {
		t.Errorf("detached with transactions of its own: got %+v, %v; want a note of them", own, err)
	}
	was, is := Attached(m.Address)
	if host, port := split(m.Address); !is || was != "[fd00::1]:3306" || host != "fd00::1"+follow.DetachedSuffix || port != 3306 {
		t.Errorf("detached: got %s, which was %s", m.Address, was)
	}
}

// TestRelay: what a transaction in a relay log changes, and whether there is only a part of one.
func TestRelay(t *testing.T) {
	rows := func(list ...string) (rows []map[string]string) {
		for _, e := range list {
			kind, info, _ := strings.Cut(e, "|")
			rows = append(rows, map[string]string{"Event_type": kind, "Info": info})
		}
		return rows
	}
	const next = "Gtid|SET @@SESSION.GTID_NEXT= '" + uuid0 + ":5'"
	for _, tc := range []struct {
		name    string
		events  []string
		gtid    string
		named   string
		would   string
		partial bool
	}{
		{"nothing", nil, "", "", "", true},
		{"one, whole", []string{next, "Query|BEGIN", "Table_map|table_id: 9 (d.t)", "Write_rows|table_id: 9 flags: STMT_END_F", "Xid|COMMIT"}, "", uuid0 + ":5", "INSERT into d.t", false},
		{"one without its end", []string{next, "Query|BEGIN", "Table_map|table_id: 9 (d.t)", "Update_rows|", "Update_rows|"}, "", uuid0 + ":5", "UPDATE of d.t, 2 events; and more, whose end is not in the part of the relay log that was read", true},
		{"only its name", []string{next}, "", "", "", true},
		{"the second", []string{"Gtid|SET @@SESSION.GTID_NEXT= '" + uuid0 + ":4'", "Query|use `d`; DROP TABLE x", next, "Query|use `d`; CREATE TABLE y (a INT)"}, uuid0 + ":5", uuid0 + ":5", "CREATE TABLE y (a INT); and more, whose end is not in the part of the relay log that was read", false},
		{"MariaDB's", []string{"Gtid|BEGIN GTID 0-1-7", "Annotate_rows|DELETE FROM t", "Table_map|table_id: 9 (d.t)", "Delete_rows_v1|", "Xid|COMMIT /* xid=1 */"}, "", "0-1-7", "DELETE from d.t", false},
		{"MariaDB's without its end", []string{"Gtid|BEGIN GTID 0-1-7", "Annotate_rows|DELETE FROM t", "Table_map|table_id: 9 (d.t)"}, "", "", "", true},
		{"the log goes on elsewhere", []string{"Rotate|relay.000002;pos=4"}, "", "", "", false},
		{"without GTIDs", []string{"Query|BEGIN", "Query|use `d`; UPDATE t SET a = 5", "Query|COMMIT"}, "", "", "UPDATE t SET a = ?", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			named, would, _ := changes(rows(tc.events...), tc.gtid)
			if got := strings.Join(would, "; "); named != tc.named || got != tc.would {
				t.Errorf("got %q, %q; want %q, %q", named, got, tc.named, tc.would)
			}
			if got := partial(rows(tc.events...)); got != tc.partial {
				t.Errorf("only a part: got %t, want %t", got, tc.partial)
			}
		})
	}
}

// TestAccountNotNamed: what is not pointed anywhere yet logs in by an account that has no name to print.
func TestAccountNotNamed(t *testing.T) {
	for user, want := range map[string]string{"": "whether c can log in at b is seen only when it does: it is not pointed at it yet", "repl": "whether c can log in as 'repl' is seen only when it does: it is not pointed at it yet"} {
		q := three()
		q.User, q.Accounts, q.AccountWhy = user, nil, "it is not pointed at it yet"
		if v := Judge(q); !slices.Contains(v.Notes, want) {
			t.Errorf("user %q: got %q, want %q among them", user, v.Notes, want)
		}
	}
}
