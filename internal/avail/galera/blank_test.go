package galera

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/wsrep"
)

// What MariaDB 10.11 with Galera 26.4 writes: a member that became level, one that asks for a state, one whose data differ.
func level(uuid string, seqno int) []string {
	return []string{
		fmt.Sprintf("2026-11-28 16:21:32 2 [Note] WSREP: Server node3 connected to cluster at position %s:%d with ID %s", uuid, seqno, memberID(9)),
		"2026-11-28 16:21:34 2 [Note] WSREP: Server node3 synced with group",
		"2026-11-28 16:21:34 2 [Note] WSREP: Synchronized with group, ready for connections",
	}
}

var (
	asksForState = []string{
		fmt.Sprintf("2026-11-28 16:22:18 2 [Note] WSREP: Server node3 connected to cluster at position %s:900 with ID %s", historyA, memberID(9)),
		"2026-11-28 16:22:18 2 [Note] WSREP: State transfer required: ",
		"2026-11-28 16:22:19 2 [Note] WSREP: Requesting state transfer: success, donor: 0",
		"2026-11-28 16:22:20 0 [Note] WSREP: Member 0.0 (node1) synced with group.",
	}
	hasState = []string{"2026-11-28 16:21:34 3 [Note] WSREP: SST received: " + historyA + ":901"}
	differs  = []string{"2026-11-28 16:21:47 2 [ERROR] WSREP: Inconsistency detected: Inconsistent by consensus on " + historyA + ":13"}
)

func lines(lists ...[]string) (all []string) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// zeroed is a node whose grastate.dat is all zeros.
func zeroed(n int, gvw string, log ...string) Node {
	return Down(fmt.Sprint("n", n), fmt.Sprint("/d", n), grastate(wsrep.Undefined, -1, 0), gvw, nil, log)
}

// TestBlank: why grastate.dat names no history.
func TestBlank(t *testing.T) {
	for _, c := range []struct {
		name string
		gvw  string
		log  []string
		want Blank
		at   int64 // least place that is known
	}{
		{"nothing else is known", "", nil, BlankUnknown, -1},
		{"it has a view, and no log", gvwstate(1, 3, 1, 2), nil, BlankUnknown, -1},
		{"it was level", gvwstate(1, 3, 1, 2), level(historyA, 7), BlankDDL, 7},
		{"it was level, and recovered", gvwstate(1, 3, 1, 2), lines(level(historyA, 7), recovered(historyA, 10)), BlankDDL, 10},
		{"it asked for the state, and another one became level", "", lines(level(historyA, 7), asksForState), BlankCopy, 7},
		{"it has the state, and was not level yet", "", lines(asksForState, hasState), BlankUnknown, 901},
		{"it has the state, and was level", "", lines(asksForState, hasState, level(historyA, 901)), BlankDDL, 901},
		{"its data differ", "", lines(level(historyA, 7), differs), BlankDiffers, 7},
		{"its data differed, and it took those of another", "", lines(level(historyA, 7), differs, asksForState, hasState, level(historyA, 905)), BlankDDL, 905},
		{"it was level in a component without a history", "", lines(level(historyA, 7), level(wsrep.Undefined, 0)), BlankUnknown, 7},
		{"recovery finds nothing", "", recovered(wsrep.Undefined, -1), BlankNew, -1},
		{"recovery finds nothing, and there was a view", gvwstate(1, 3, 1, 2), recovered(wsrep.Undefined, -1), BlankUnknown, -1},
	} {
		if n := zeroed(1, c.gvw, c.log...); n.Blank != c.want || n.AtLeast.Seqno != c.at || n.Position.Known() {
			t.Errorf("%s: got %q, at least %d, position %s; want %q, %d, and none", c.name, n.Blank, n.AtLeast.Seqno, n.Position, c.want, c.at)
		}
	}
	told := zeroed(1, "")
	told.Tell(Position{wsrep.Undefined, -1})
	if told.Blank != BlankNew {
		t.Errorf("--position says that there is none: got %q; want new", told.Blank)
	}
	for state, want := range map[int]Blank{wsrep.Inconsistent: BlankDiffers, wsrep.Joining: BlankCopy, wsrep.Synced: BlankUnknown} {
		if n := Running(&wsrep.Status{Name: "n", StateUUID: wsrep.Undefined, State: state}, "db"); n.Blank != want {
			t.Errorf("it runs in state %d: got %q; want %q", state, n.Blank, want)
		}
	}
}

// TestBlankDecide: a node that crashed in a DDL statement may have the most, and is neither left out nor chosen in silence.
func TestBlankDecide(t *testing.T) {
	ddl := func(n, seqno, view int, members ...int) Node { // with what --wsrep-recover found; -2: it was not asked
		log := level(historyA, 5)
		if seqno > -2 {
			log = append(log, recovered(map[bool]string{true: historyA, false: wsrep.Undefined}[seqno >= 0], seqno)...)
		}
		return zeroed(n, gvwstate(n, view, members...), log...)
	}
	crashed := func(n, seqno, view int, members ...int) Node {
		return Down(fmt.Sprint("n", n), fmt.Sprint("/d", n), grastate(historyA, -1, 0), gvwstate(n, view, members...), nil, recovered(historyA, seqno))
	}
	stopped := func(n, seqno, safe int) Node {
		return Down(fmt.Sprint("n", n), fmt.Sprint("/d", n), grastate(historyA, seqno, safe), "", nil, nil)
	}
	const inDDL = "crashed in a DDL statement"
	for _, c := range []struct {
		name   string
		nodes  []Node
		known  Known
		want   string
		reason string
		not    string
	}{
		{name: "it was not recovered", nodes: []Node{ddl(1, -2, 3, 1, 2), crashed(2, 30, 3, 1, 2)}, want: "n1 does not tell where it is: it " + inDDL},
		{name: "it is behind", nodes: []Node{ddl(1, 29, 3, 1, 2), crashed(2, 30, 3, 1, 2)}, want: "n2 30", reason: inDDL},
		{name: "it is as far", nodes: []Node{ddl(1, 30, 3, 1, 2), crashed(2, 30, 3, 1, 2)}, want: "n2 30", reason: "its data are at 30; it takes a copy"},
		{name: "it is further", nodes: []Node{ddl(1, 31, 3, 1, 2), crashed(2, 30, 3, 1, 2)}, want: "n1 has data up to 31 at least, and n2, the furthest of the others, up to 30"},
		{name: "it is further, and given up", nodes: []Node{crashed(2, 30, 3, 1, 2)}, known: Known{Lost: 1}, want: "n2 30"},
		{name: "its data name no position", nodes: []Node{ddl(1, -1, 3, 1, 2), crashed(2, 30, 3, 1, 2)}, want: "its data name no position either"},
		{name: "it had dropped out before", nodes: []Node{ddl(1, -2, 2, 1, 2, 3), crashed(2, 30, 3, 2, 3), crashed(3, 31, 3, 2, 3)}, want: "n3 31", reason: "n1 dropped out before"},
		{name: "another history", nodes: []Node{zeroed(1, gvwstate(1, 3, 1, 2), lines(level(historyB, 5), recovered(historyB, 9))...), crashed(2, 30, 3, 1, 2)}, want: "2 different histories"},
		{name: "it was alone, and the mark does not count", nodes: []Node{Down("n1", "/d1", grastate(wsrep.Undefined, -1, 1), gvwstate(1, 9, 1), nil, level(historyA, 13)), stopped(2, 12, 0)}, known: Known{Nodes: 2}, want: "n1 does not tell where it is: it " + inDDL},
		{name: "all in DDL, and not recovered", nodes: []Node{ddl(1, -2, 3, 1, 2), ddl(2, -2, 3, 1, 2)}, want: "n2 does not tell where it is: it " + inDDL, not: "no node has a history"},
		{name: "all in DDL", nodes: []Node{ddl(1, 31, 3, 1, 2), ddl(2, 30, 3, 1, 2)}, want: "n1 is the furthest by its data"},
		{name: "in a state transfer: it has nothing of its own", nodes: []Node{zeroed(1, gvwstate(1, 3, 1, 2), asksForState...), crashed(2, 30, 3, 1, 2)}, want: "n2 30", reason: "n1: it crashed while it took the state of another"},
		{name: "found to differ", nodes: []Node{zeroed(1, gvwstate(1, 3, 1, 2), lines(level(historyA, 5), differs, recovered(historyA, 50))...), crashed(2, 30, 3, 1, 2)}, want: "n2 30", reason: "its data differ from theirs"},
		{name: "new", nodes: []Node{zeroed(1, "", recovered(wsrep.Undefined, -1)...), stopped(2, 12, 0)}, known: Known{Nodes: 2}, want: "n2 12", reason: "n1: it has no data of a cluster"},
		{name: "perhaps new", nodes: []Node{zeroed(1, ""), stopped(2, 12, 0)}, known: Known{Nodes: 2}, want: "n1 does not tell where it is: grastate.dat names no history"},
		{name: "a node of a component without a history, not recovered", nodes: []Node{zeroed(1, "", level(wsrep.Undefined, 0)...)}, want: "where their data are is not known"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Decide(c.nodes, c.known)
			got := fmt.Sprint(d.Choice, " ", d.Position.Seqno)
			for _, r := range d.Refused {
				got += "\n" + r.What + ": " + r.Why
			}
			if !strings.Contains(got, c.want) || c.not != "" && strings.Contains(got, c.not) || (d.Choice == "") == (len(d.Refused) == 0) || !strings.Contains(strings.Join(d.Reasons, "\n"), c.reason) {
				t.Errorf("got %q, because %q; want %q, because %q", got, d.Reasons, c.want, c.reason)
			}
			if d.Automatic != "" && c.nodes[0].Blank != "" && !strings.Contains(c.name, "before") {
				t.Errorf("they do not all come back with their data: got %q", d.Automatic)
			}
		})
	}
}

// TestBlankForecast: zeros are a copy of all data, from whatever position a node is started.
func TestBlankForecast(t *testing.T) {
	members := []wsrep.Status{{Name: "a", ClusterUUID: historyA, Committed: 1280, CachedFrom: 1, State: wsrep.Synced, ClusterStatus: "Primary"}}
	for _, c := range []struct{ log, want []string }{
		{level(historyA, 1200), []string{"crashed in a DDL statement", "copy of all data"}},
		{lines(level(historyA, 1200), recovered(historyA, 1270)), []string{"crashed in a DDL statement", "from whatever position"}},
		{lines(level(historyA, 1200), recovered(historyA, 1281)), []string{historyA + ":1281, which the cluster does not have"}},
		{asksForState, []string{"took the state of another"}},
		{recovered(wsrep.Undefined, -1), []string{"it has no data of a cluster: a copy of all data"}},
		{nil, []string{"it never took part, or crashed in a DDL statement or a state transfer"}},
	} {
		got := Forecast(zeroed(1, "", c.log...), members, false)
		for _, want := range c.want {
			if got.Kind != SST || got.Sure != fleet.Certain || !strings.Contains(got.Words, want) {
				t.Errorf("%q: got %s, %s: %s; want SST for certain: %s", c.log, got.Kind, got.Sure, got.Words, want)
			}
		}
	}
}
