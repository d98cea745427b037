package galera

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/wsrep"
)

// TestForecast: IST or SST, at the very places where the rule changes.
func TestForecast(t *testing.T) {
	member := func(name string, committed, from int64, state int) wsrep.Status {
		return wsrep.Status{Name: name, ClusterUUID: historyA, Committed: committed, CachedFrom: from, State: state, ClusterStatus: "Primary"}
	}
	two := []wsrep.Status{member("a", 1280, 0, wsrep.Synced), member("b", 1280, 600, wsrep.Synced)} // the reserve is 10
	at := func(seqno int64) Node {
		return Node{Name: "x", Position: Position{historyA, seqno}, From: "grastate.dat"}
	}
	for _, c := range []struct {
		name    string
		node    Node
		members []wsrep.Status
		kind    string
		words   string
	}{
		{"in the gcache of both", at(1200), two, IST, "missed 80 transactions, which a and 1 other have"},
		{"in that of one", at(300), two, IST, "which a has in gcache"},
		{"just past the reserve", at(10), two, IST, "which a has"},
		{"within the reserve", at(9), two, SST, "keeps a 128th in reserve"},
		{"before the caches", at(5), []wsrep.Status{member("a", 1280, 7, wsrep.Synced)}, SST, "the gcaches begin at 7: 1 transaction"},
		{"the next one is the first that is cached, and nothing else is", at(1279), []wsrep.Status{member("a", 1280, 1280, wsrep.Synced)}, SST, "SST"},
		{"only a donor has it", at(300), []wsrep.Status{member("a", 1280, 0, 2), member("b", 1280, 600, wsrep.Synced)}, SST, "no synced member has the next transaction"},
		{"nothing is cached", at(300), []wsrep.Status{member("a", 1280, -1, wsrep.Synced)}, SST, "no member has anything in its gcache"},
		{"nobody to ask", at(300), nil, Unknown, "no member of a primary component was seen"},
		{"another history", Node{Name: "x", Position: Position{historyB, 1200}}, two, SST, "of another history"},
		{"crashed while it took down a view", Down("x", "/d", grastate(historyA, -1, 0), "", nil, append([]string{"View:", "  id: " + historyA + ":1201", "  status: primary"}, recovered(historyA, 1200)...)), two, IST, "a change of the membership (1201), which is past its position"},
		{"no data", Node{Name: "x", Position: Position{wsrep.Undefined, -1}}, two, SST, "no data of a cluster"},
		{"crashed, and not recovered", Node{Name: "x", Datadir: "/d", Position: Position{historyA, -1}, Grastate: &Grastate{}}, two, Unknown, "does not tell where it is; mariadbd --wsrep-recover"},
		{"crashed, and was far enough once", Node{Name: "x", Position: Position{historyA, -1}, AtLeast: Position{historyA, 1200}, Grastate: &Grastate{}}, two, IST, "it is there at least"},
		{"crashed, and was there long ago", Node{Name: "x", Position: Position{historyA, -1}, AtLeast: Position{historyA, 3}, Grastate: &Grastate{}}, two, Unknown, "too far back for IST; whether it went further"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Forecast(c.node, c.members, true); got.Kind != c.kind || !strings.Contains(got.Words, c.words) {
				t.Errorf("got %s: %s; want %s: %s", got.Kind, got.Words, c.kind, c.words)
			}
		})
	}
	if got := Forecast(at(1200), two, false); got.Sure != fleet.Likely {
		t.Errorf("a member was not seen: got %s; want likely", got.Sure)
	}
}

// conflictLog is as MariaDB 10.11 writes it: the winner's statement is not ended, and bytes of its event follow.
const conflictLog = `2026-11-28 12:33:37 1 [Note] WSREP: cluster conflict due to high priority abort for threads:
2026-11-28 12:33:37 1 [Note] WSREP: Winning thread: 
   THD: 1, mode: high priority, state: exec, conflict: executing, seqno: 11
   SQL: UPDATE shop.stock SET n=n+10 WHERE id=1!` + "\xca\nk\x13Q\x11" + `
2026-11-28 12:33:37 1 [Note] WSREP: Victim thread: 
   THD: 19, mode: local, state: exec, conflict: executing, seqno: -1
   SQL: SELECT SLEEP(2)
2026-11-28 12:33:37 1 [Note] WSREP: context: ./storage/innobase/handler/ha_innodb.cc:18834
2026-11-28 12:33:37 1 [Note] WSREP: UP-UP trx conflict for key (2,FLAT8)06bff408 15f7eda1: source: 76fcfde6-eb27-11f1-904d-aa309826228c version: 6
2026-11-28 12:33:37 1 [Note] WSREP: UP-UP trx conflict for key (2,FLAT8)06bff408 15f7eda1: source: 76fcfde6-eb27-11f1-904d-aa309826228c version: 6
2026-11-28 12:33:37 1 [Note] WSREP: UP-UP trx conflict for key (2,FLAT8)06bff408 00000000: source: 76fcfde6-eb27-11f1-904d-aa309826228c version: 6
2014-07-12 07:40:30 13362 [Note] WSREP: cluster conflict due to certification failure for threads:
2014-07-12 07:40:30 13362 [Note] WSREP: Victim thread: 
   THD: 24117450, mode: local, state: committing, conflict: no conflict, seqno: -1
   SQL: DELETE FROM jira.message WHERE ID IN (32806)
2014-07-12 07:40:30 13362 [Note] WSREP: cluster conflict due to certification failure for threads:
2014-07-12 07:40:30 13362 [Note] WSREP: Victim thread: 
   THD: 24117451, mode: local, state: committing, conflict: no conflict, seqno: -1
   SQL: DELETE FROM jira.message WHERE ID IN (32806)
2014-07-12 07:40:30 13362 [Note] WSREP: cluster conflict due to high priority abort for threads:
2014-07-12 07:40:30 13362 [Note] WSREP: Winning thread:
   THD: 58, mode: applier, state: executing, conflict: no conflict, seqno: 115701758
   SQL: (null)
`

func TestReadConflicts(t *testing.T) {
	got := ReadConflicts(strings.Split(conflictLog, "\n"))
	want := Conflicts{Logged: 4, Aborted: 2, Certification: 2, Keys: 2, ByKey: 3, Hottest: 2, Tables: []HotTable{
		{Table: "jira.message", Conflicts: 2, Classes: []string{"delete from jira.message where id in(?)"}, Rows: []HotRow{{"DELETE FROM jira.message WHERE ID IN (32806)", 2}}},
		{Table: "shop.stock", Conflicts: 1}}}
	got.Tables[0].Classes[0] = strings.ToLower(got.Tables[0].Classes[0])
	want.Tables[0].Classes[0] = got.Tables[0].Classes[0]
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if got := ReadConflicts(nil); got.Logged != 0 || len(got.Tables) > 0 {
		t.Errorf("of no lines: got %+v", got)
	}
}

// three are readings of three members.
func three(change func(i int, before, after *wsrep.Status)) (list []Reading) {
	peers := []wsrep.Peer{}
	for i := range 3 {
		peers = append(peers, wsrep.Peer{ID: memberID(i), Name: fmt.Sprint("n", i), Address: fmt.Sprintf("db%d:3306", i)})
	}
	for i := range 3 {
		s := wsrep.Status{Name: peers[i].Name, ID: peers[i].ID, Address: peers[i].Address, On: true, Ready: true, Connected: true, ClusterStatus: "Primary", Size: 3, Weight: 3, View: 7, ClusterUUID: historyA, StateUUID: historyA,
			State: wsrep.Synced, StateComment: "Synced", Committed: 100, CachedFrom: 1, Peers: []string{"db0:3306", "db1:3306", "db2:3306"}, Members: peers,
			Options:   map[string]string{"pc.weight": "1", "gcs.fc_limit": "16", "gcache.size": "128M"},
			Variables: map[string]string{"wsrep_slave_threads": "4", "wsrep_node_address": fmt.Sprint("db", i), "wsrep_cluster_address": "gcomm://db0,db1:4567,db2", "wsrep_log_conflicts": "ON"}}
		before, after := s, s
		if change != nil {
			change(i, &before, &after)
		}
		list = append(list, Reading{Address: peers[i].Address, Before: &before, After: &after, Logged: true})
	}
	return list
}

func finding(r *Report, id string) *fleet.Advice {
	for i := range r.Findings {
		if r.Findings[i].ID == id {
			return &r.Findings[i]
		}
	}
	return nil
}

func judge(readings []Reading) *Report {
	return Judge(time.Unix(0, 0), time.Second, readings, nil)
}

// TestJudge: what a real cluster of the tests is not easily brought to.
func TestJudge(t *testing.T) {
	if r := judge(three(nil)); len(r.Findings) > 0 || len(r.Unknown) > 0 || len(r.Members) != 3 || r.Quorum == nil || r.Quorum.Crashes != 1 {
		t.Errorf("all is fine: got %+v", r)
	}
	if r := judge(nil); len(r.Members) > 0 || r.Quorum != nil {
		t.Errorf("nothing: got %+v", r)
	}
	// One was not seen, and the others are paused: it asks for it. Its votes are what is missing.
	list := three(func(_ int, before, after *wsrep.Status) { before.PausedNS, after.PausedNS, after.Weight = 0, 5e8, 5 })
	list[2].Before, list[2].After, list[2].Trouble = nil, nil, fleet.Trouble{What: "cannot be asked", Why: "does not answer"}
	r := judge(list)
	f := finding(r, "galera.flow_control")
	if f == nil || f.Severity != fleet.SeverityCritical || !strings.Contains(f.What, "so it is n2, which was not seen") || f.Sure != fleet.Likely {
		t.Errorf("the one that was not seen is slow: got %+v", f)
	}
	if m := r.Members[2]; m.Name != "n2" || m.Seen || m.Votes != 3 || finding(r, "galera.not_seen") == nil || r.Quorum.Votes != 5 || r.Quorum.Crashes != 0 {
		t.Errorf("the one that was not seen: got %+v, quorum %+v; want 3 of 5 votes", m, r.Quorum)
	}
	// Pauses of before the look, by the one that asked most.
	r = judge(three(func(i int, before, after *wsrep.Status) {
		before.Paused, after.Paused, before.PausesSent, after.PausesSent = 0.06, 0.06, float64(100*i), float64(100*i)
	}))
	if f := finding(r, "galera.flow_control"); f == nil || f.Severity != fleet.SeverityWarning || f.Object != "n1, n2" || !strings.Contains(f.What, "since the counters began") {
		t.Errorf("pauses of before: got %+v", f)
	}
	// Two components.
	r = judge(three(func(i int, before, after *wsrep.Status) {
		if i == 2 {
			before.View, after.View, before.Size, after.Size = 9, 9, 1, 1
		}
	}))
	if f := finding(r, "galera.split_brain"); f == nil || !strings.Contains(f.What, "n0, n1 (history "+historyA+", view 7); n2") {
		t.Errorf("two components: got %+v", f)
	}
	// One of three is in no view, and named by the configuration.
	list = three(func(_ int, before, after *wsrep.Status) {
		for _, s := range []*wsrep.Status{before, after} {
			s.Size, s.Weight, s.Peers, s.Members = 2, 2, s.Peers[:2], s.Members[:2]
		}
	})[:2]
	r = judge(list)
	if f := finding(r, "galera.not_member"); f == nil || f.Object != "db2" || finding(r, "galera.quorum") == nil {
		t.Errorf("one is down: got %+v", r.Findings)
	}
	// An arbitrator has a vote and no address.
	r = judge(three(func(_ int, before, after *wsrep.Status) {
		for _, s := range []*wsrep.Status{before, after} {
			s.Size, s.Weight, s.Peers = 4, 4, append(s.Peers[:3:3], "")
		}
	}))
	if len(r.Members) != 4 || !r.Members[3].Arbitrator || r.Quorum == nil || r.Quorum.Votes != 4 || !r.Quorum.Voters[3].Arbitrator {
		t.Errorf("an arbitrator: got %+v", r)
	}
	// All lost the majority: only one is to be bootstrapped, the furthest, or the first of those that are equally far.
	for ahead, want := range []string{"n0", "n1", "n2"} {
		r = judge(three(func(i int, before, after *wsrep.Status) {
			for _, s := range []*wsrep.Status{before, after} {
				s.ClusterStatus = "non-Primary"
				if i == ahead && i > 0 {
					s.Committed++
				}
			}
		}))
		var bootstraps []string
		for _, f := range r.Findings {
			if f.Statement == wsrep.Bootstrap {
				bootstraps = append(bootstraps, f.Object)
			}
		}
		if fmt.Sprint(bootstraps) != "["+want+"]" || r.Quorum != nil {
			t.Errorf("got %v to be bootstrapped, quorum %+v; want %s, and none", bootstraps, r.Quorum, want)
		}
	}
	// Two of three are seen: the third may live, or have gone further.
	for _, seen := range []bool{true, false} {
		list = three(func(_ int, before, after *wsrep.Status) {
			for _, s := range []*wsrep.Status{before, after} {
				s.ClusterStatus = "non-Primary"
				if seen {
					s.Members = nil // the account may not read them
				}
			}
		})
		if !seen {
			list[2].Before, list[2].After = nil, nil
		}
		r = judge(list)
		for _, f := range r.Findings {
			if f.ID == "galera.non_primary" && f.Statement != "" {
				t.Errorf("it may not be bootstrapped: got %+v", f)
			}
		}
		if f := finding(r, "galera.non_primary"); f == nil || !strings.Contains(f.Advice, "risso galera bootstrap") {
			t.Errorf("got %+v; want risso galera bootstrap", f)
		}
	}
	// A small gcache under load.
	r = judge(three(func(_ int, _, after *wsrep.Status) { after.Bytes = 1 << 20 }))
	if f := finding(r, "galera.gcache"); f == nil || !strings.Contains(f.What, "room for 2 min") || !strings.Contains(f.Advice, "gcache.size=2G") || len(f.Servers) != 3 {
		t.Errorf("a small gcache: got %+v", f)
	}
}

// TestLayouts: what cannot be is refused.
func TestLayouts(t *testing.T) {
	for _, c := range []struct {
		l    Layout
		want string
	}{
		{Layout{}, "at least 1 node"}, {Layout{Nodes: -1}, "at least 1 node"}, {Layout{Nodes: 61}, "at most 60"}, {Layout{Nodes: 4, Centres: []int{2, 1}}, "3 nodes together, and there are 4"},
		{Layout{Centres: []int{0, 1}}, "a data centre with 0 nodes"}, {Layout{Nodes: 2, Weights: []int{1}}, "1 weight for 2 nodes"}, {Layout{Nodes: 2, Weights: []int{0, 0}}, "no node has a vote"},
		{Layout{Nodes: 1, Weights: []int{256}}, "a weight of 256"}, {Layout{Nodes: 1, Weights: []int{-1}}, "a weight of -1"}, {Layout{Nodes: 1, Arbitrators: -1}, "at least 1 node"},
	} {
		if _, err := c.l.Voters(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v; want %s", c.l, err, c.want)
		}
	}
}
