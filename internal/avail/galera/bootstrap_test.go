package galera

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/mysql/wsrep"
)

// Histories, and members of a group.
const (
	historyA = "c233f7ed-eade-11f1-ae92-16cb3fa80945"
	historyB = "621186dc-eb29-11f1-b650-83faf791c188"
)

func memberID(n int) string { return fmt.Sprintf("%08d-eb27-11f1-8b93-3edecc2d77ef", n) }

func grastate(uuid string, seqno int, safe int) string {
	return fmt.Sprintf("# GALERA saved state\nversion: 2.1\nuuid:    %s\nseqno:   %d\nsafe_to_bootstrap: %d\n", uuid, seqno, safe)
}

func gvwstate(own, view int, members ...int) string {
	text := fmt.Sprintf("my_uuid: %s\n#vwbeg\nview_id: 3 %s %d\nbootstrap: 0\n", memberID(own), memberID(members[0]), view)
	for _, m := range members {
		text += "member: " + memberID(m) + " 0\n"
	}
	return text + "#vwend\n"
}

func recovered(uuid string, seqno int) []string {
	return []string{fmt.Sprintf("2026-11-28 12:43:45 0 [Note] WSREP: Recovered position: %s:%d", uuid, seqno)}
}

// TestDecide: which node is bootstrapped, or why none. The cases of trackers are where a cluster was bootstrapped from the wrong node.
func TestDecide(t *testing.T) {
	node := func(n int, gra, gvw string, log ...string) Node {
		return Down(fmt.Sprint("n", n), fmt.Sprint("/d", n), gra, gvw, nil, log)
	}
	crashed := func(n, seqno, view int, members ...int) Node {
		return node(n, grastate(historyA, -1, 0), gvwstate(n, view, members...), recovered(historyA, seqno)...)
	}
	silent := func(n, view int, members ...int) Node {
		return node(n, grastate(historyA, -1, 0), gvwstate(n, view, members...))
	}
	stopped := func(n, seqno, safe int) Node { return node(n, grastate(historyA, seqno, safe), "") }
	marked := func(n, seqno int) Node {
		return node(n, grastate(historyA, seqno, 1), "", "WSREP: ####### My UUID: "+memberID(n))
	}
	tell := func(n Node, seqno int64) Node {
		n.Tell(Position{historyA, seqno})
		return n
	}
	live := func(n, seqno int, primary bool, members ...int) Node {
		s := wsrep.Status{Name: fmt.Sprint("n", n), ID: memberID(n), StateUUID: historyA, ClusterUUID: historyA, Committed: int64(seqno), ClusterStatus: map[bool]string{true: "Primary", false: "non-Primary"}[primary]}
		for _, m := range members {
			s.Members = append(s.Members, wsrep.Peer{ID: memberID(m)})
		}
		return Running(&s, "db")
	}
	for _, c := range []struct {
		name  string
		nodes []Node
		known Known
		want  string // the choice and number, or words of a refusal
		not   string // words that no refusal has
	}{
		{name: "nothing is known", nodes: []Node{node(1, "", "")}, want: "n1 does not tell where it is"},
		{name: "all stopped in order: the last one", nodes: []Node{stopped(1, 10, 0), stopped(2, 12, 0), stopped(3, 13, 1)}, want: "n3 13"},
		{name: "the last one alone is proof enough", nodes: []Node{stopped(3, 13, 1)}, want: "n3 13"},
		{name: "stopped in order, and the last one is not seen", nodes: []Node{stopped(1, 10, 0), stopped(2, 12, 0)}, want: "which nodes took part last is not known"},
		{name: "the same, with the number of nodes", nodes: []Node{stopped(1, 10, 0), stopped(2, 12, 0)}, known: Known{Nodes: 3}, want: "1 node of 3 not seen"},
		{name: "the same, and it will never come back", nodes: []Node{stopped(1, 10, 0), stopped(2, 12, 0)}, known: Known{Nodes: 3, Lost: 1}, want: "n2 12"},
		{name: "all stopped in order, and the mark is lost: all are seen", nodes: []Node{stopped(1, 10, 0), stopped(2, 12, 0)}, known: Known{Nodes: 2}, want: "n2 12"},
		{name: "a power failure: the furthest", nodes: []Node{crashed(1, 31, 3, 1, 2, 3), crashed(2, 29, 3, 1, 2, 3), crashed(3, 30, 3, 1, 2, 3)}, want: "n1 31"},
		{name: "a power failure, and one is not recovered", nodes: []Node{crashed(1, 31, 3, 1, 2, 3), silent(2, 3, 1, 2, 3), crashed(3, 30, 3, 1, 2, 3)}, want: "n2 does not tell where it is"},
		{name: "a power failure, and one is not seen", nodes: []Node{crashed(1, 31, 3, 1, 2, 3), crashed(3, 30, 3, 1, 2, 3)}, want: "1 member of the last view not seen: " + memberID(2)},
		{name: "the one that is not seen is an arbitrator", nodes: []Node{crashed(1, 31, 3, 1, 2, 3), crashed(3, 30, 3, 1, 2, 3)}, known: Known{Arbitrators: 1}, want: "n1 31"},
		{name: "one dropped out before: it is not waited for", nodes: []Node{silent(1, 3, 1, 2, 3), crashed(2, 40, 4, 2, 3), crashed(3, 41, 4, 2, 3)}, want: "n3 41"},
		{name: "one dropped out before, and the others are silent", nodes: []Node{crashed(1, 30, 3, 1, 2, 3), silent(2, 4, 2, 3), silent(3, 4, 2, 3)}, want: "n2 does not tell"},
		{name: "the one that dropped out is alone seen", nodes: []Node{crashed(1, 7, 3, 1, 2, 3)}, want: "2 members of the last view not seen"},
		{name: "another joined when the furthest that was seen had gone", nodes: []Node{crashed(1, 50, 3, 1, 2, 3), crashed(2, 49, 5, 2, 3, 4), crashed(3, 50, 5, 2, 3, 4)}, want: "1 member of the last view not seen: " + memberID(4)},
		{name: "those that went on were stopped in order, and another may have gone further", nodes: []Node{crashed(1, 50, 3, 1, 2), node(2, grastate(historyA, 50, 0), "", "WSREP: ####### My UUID: "+memberID(2))}, want: "which nodes took part last is not known"},
		{name: "an operator marks an empty node (mariadb-operator 1701, resource-agents 1323)", nodes: []Node{node(1, grastate(wsrep.Undefined, -1, 1), ""), crashed(2, 60, 4, 2, 3), crashed(3, 61, 4, 2, 3)}, want: "n3 61"},
		{name: "the first of all is started first (kubeblocks-addons 2996)", nodes: []Node{crashed(1, 7, 2, 1, 2, 3), crashed(2, 8, 3, 2, 3), crashed(3, 9, 3, 2, 3)}, want: "n3 9"},
		{name: "the mark was set by hand on the wrong one", nodes: []Node{stopped(1, 10, 1), stopped(2, 12, 0)}, want: "n1 says that it was the last to stop (safe_to_bootstrap: 1, at 10), and n2 has gone further (12)"},
		{name: "the mark was set by hand, and the others crashed later, at unknown places", nodes: []Node{marked(1, 400), silent(2, 4, 2, 3), silent(3, 4, 2, 3)}, want: "n1 says that it was the last to stop (safe_to_bootstrap: 1, at 400), and n2 took part in a view after that, without it"},
		{name: "the same, and its name in the group is not known", nodes: []Node{stopped(1, 400, 1), silent(2, 4, 2, 3), silent(3, 4, 2, 3)}, want: "n2 took part in a view after that, without it"},
		{name: "the same, and the others' logs speak of more", nodes: []Node{stopped(1, 400, 1), node(2, grastate(historyA, -1, 0), "", "WSREP: IST received: "+historyA+":850")}, want: "n2 has gone further (850)"},
		{name: "the mark is true: the other crashed while it was there", nodes: []Node{marked(1, 400), silent(2, 4, 1, 2)}, want: "n1 400"},
		{name: "the mark is true, and its name in the group is not known", nodes: []Node{stopped(1, 400, 1), silent(2, 4, 1, 2)}, want: "n1 400"},
		{name: "an old copy of grastate.dat", nodes: []Node{node(1, grastate(historyA, 400, 1), "", "WSREP: IST received: "+historyA+":900")}, want: "n1 is at 400 by grastate.dat, and its error log says that it was at 900"},
		{name: "a position by hand that is too low", nodes: []Node{tell(node(1, grastate(historyA, -1, 0), gvwstate(1, 3, 1), "WSREP: IST received: "+historyA+":900"), 400)}, want: "n1 is at 400 by --position, and its error log says that it was at 900"},
		{name: "given twice, by its data directory and by a statement", nodes: []Node{crashed(1, 99, 3, 1, 2), live(1, 100, false, 1, 2)}, known: Known{Nodes: 2}, want: "1 node of 2 not seen"},
		{name: "a data directory given twice", nodes: []Node{stopped(1, 10, 0), Down("other", "/d1", grastate(historyA, 10, 0), "", nil, nil)}, known: Known{Nodes: 2}, want: "1 node of 2 not seen"},
		{name: "two of one name", nodes: []Node{stopped(1, 10, 0), Down("n1", "/d7", grastate(historyA, 12, 0), "", nil, nil)}, known: Known{Nodes: 2}, want: "two nodes are called n1"},
		{name: "two say that they were the last", nodes: []Node{stopped(1, 10, 1), stopped(2, 12, 1)}, want: "n1 and n2 both say"},
		{name: "one was alone, and crashed", nodes: []Node{node(1, grastate(historyA, -1, 1), gvwstate(1, 9, 1)), stopped(2, 12, 0)}, want: "n1 does not tell where it is"},
		{name: "that one, recovered", nodes: []Node{node(1, grastate(historyA, -1, 1), gvwstate(1, 9, 1), recovered(historyA, 15)...), stopped(2, 12, 0)}, want: "n1 15"},
		{name: "two histories", nodes: []Node{stopped(1, 10, 1), node(2, grastate(historyB, 500, 0), "")}, want: "data of 2 different histories"},
		{name: "recovery finds nothing", nodes: []Node{node(1, grastate(historyA, -1, 0), gvwstate(1, 3, 1), recovered(wsrep.Undefined, -1)...)}, want: "n1 does not tell where it is"},
		{name: "all without a history", nodes: []Node{node(1, grastate(wsrep.Undefined, -1, 0), ""), node(2, grastate(wsrep.Undefined, -1, 1), "")}, want: "no node has a history"},
		{name: "recovered before it ran again", nodes: []Node{node(1, grastate(historyA, -1, 0), gvwstate(1, 3, 1), append(recovered(historyA, 15), "2026 0 [Note] WSREP: Synchronized with group, ready for connections")...)}, want: "it was at 15 at least"},
		{name: "recovered before its last view", nodes: []Node{Down("n1", "/d1", grastate(historyA, -1, 0), gvwstate(1, 3, 1), recovered(historyA, 15), nil)}, want: "it was at 15 at least"},
		{name: "a broken grastate.dat", nodes: []Node{node(1, "uuid: x\nseqno: 1\n", "")}, want: "grastate.dat: uuid \"x\" is none"},
		{name: "an empty gvwstate.dat, after a full disk", nodes: []Node{node(1, grastate(historyA, -1, 0), "my_uuid: x\n")}, want: "gvwstate.dat: it does not end"},
		{name: "the cluster lives", nodes: []Node{live(1, 100, true, 1, 2), crashed(2, 90, 3, 1, 2)}, want: "n1 is in a primary component"},
		{name: "one lives without a majority, and is the furthest", nodes: []Node{live(1, 100, false, 1, 2), crashed(2, 90, 3, 1, 2)}, want: "n1 100"},
		{name: "one lives without a majority, and another is further", nodes: []Node{live(1, 100, false, 1, 2), crashed(2, 101, 3, 1, 2)}, want: "n2 101"},
		{name: "one lives without a majority, alone", nodes: []Node{live(1, 100, false, 1, 2)}, want: "1 member of the last view not seen"},
		{name: "the account may not read the view of the one that lives", nodes: []Node{live(1, 100, false)}, want: "which nodes took part last is not known"},
		{name: "positions by hand", nodes: []Node{Told("n1", Position{historyA, 5}), Told("n2", Position{historyA, 6})}, known: Known{Nodes: 2}, want: "n2 6"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Decide(c.nodes, c.known)
			got := fmt.Sprint(d.Choice, " ", d.Position.Seqno)
			if d.Choice == "" {
				got = ""
				for _, r := range d.Refused {
					got += r.What + ": " + r.Why + "\n"
				}
			}
			if !strings.Contains(got, c.want) || c.not != "" && strings.Contains(got, c.not) || (d.Choice == "") == (len(d.Refused) == 0) {
				t.Errorf("got %q; want %q", got, c.want)
			}
		})
	}
}

// TestReasons: what is said of the choice.
func TestReasons(t *testing.T) {
	lost := Down("n1", "/d1", grastate(historyA, -1, 0), gvwstate(1, 3, 1, 2), nil, append([]string{"WSREP: IST received: " + historyA + ":30"}, recovered(historyA, 25)...))
	other := Down("n2", "/d2", grastate(historyA, -1, 0), gvwstate(2, 3, 1, 2), nil, recovered(historyA, 28))
	d := Decide([]Node{lost, other}, Known{Nodes: 2})
	all := strings.Join(d.Reasons, "\n")
	for _, want := range []string{"n2 is at " + historyA + ":28, from the error log, by --wsrep-recover of 2026-11-28 12:43:45", "n1 was at 30, and is at 25: it lost its last transactions in the crash", "counted as 2 nodes of 2: n1, n2"} {
		if d.Choice != "n2" || !strings.Contains(all, want) {
			t.Errorf("got %s, because %s; want n2, and %q", d.Choice, all, want)
		}
	}
}

// TestAllOrders: in whatever order the members of three or four nodes crash or are stopped, with views as the cluster writes them, the choice has all that was
// committed, or there is none.
func TestAllOrders(t *testing.T) {
	decided, refused := 0, 0
	for n := 3; n <= 4; n++ {
		orders(n, nil, func(order []int) {
			for stops := range 1 << n { // which of them are stopped in order
				for hidden := range n + 1 { // which is not seen; n: none
					h := happen(n, order, stops)
					nodes := h.nodes(hidden)
					d := Decide(nodes, Known{})
					if d.Choice == "" {
						refused++
						continue
					}
					decided++
					if d.Position.Seqno < h.last {
						t.Fatalf("%v, stopped %b, not seen %d: %s at %d, and %d was committed", order, stops, hidden, d.Choice, d.Position.Seqno, h.last)
					}
				}
			}
		})
	}
	if decided < 100 || refused < 100 {
		t.Errorf("%d decided, %d refused; want many of both", decided, refused)
	}
}

func orders(n int, begun []int, f func([]int)) {
	if len(begun) == n {
		f(begun)
		return
	}
	for i := range n {
		free := true
		for _, b := range begun {
			free = free && b != i
		}
		if free {
			orders(n, append(begun[:len(begun):len(begun)], i), f)
		}
	}
}

// history is what nodes wrote while a cluster went down.
type history struct {
	last       int64 // that was committed
	gra, gvw   []string
	recoveries []int
}

// happen lets the members of a cluster go in an order, each in order or by a crash. Between two of them transactions are committed while there is a majority.
func happen(n int, order []int, stops int) history {
	h := history{last: 100, gra: make([]string, n), gvw: make([]string, n), recoveries: make([]int, n)}
	view, number := []int{}, 1
	for i := range n {
		view = append(view, i)
	}
	for i := range n {
		h.gvw[i] = gvwstate(i+1, number, numbered(view)...)
	}
	primary := true
	for _, gone := range order {
		if primary {
			h.last++
		}
		at := int(h.last)
		if !primary {
			at = h.recoveries[gone] // it stayed where the majority was lost
		}
		stop := stops>>gone&1 == 1
		var rest []int
		for _, v := range view {
			if v != gone {
				rest = append(rest, v)
			}
		}
		if stop {
			safe := 0
			if primary && len(rest) == 0 {
				safe = 1
			}
			h.gra[gone], h.gvw[gone] = grastate(historyA, at, safe), ""
		} else {
			h.gra[gone], h.recoveries[gone] = grastate(historyA, -1, 0), at
		}
		members := make([]Voter, len(view))
		for i := range members {
			members[i].Votes = 1
		}
		was := primary
		primary = primary && Quorate(members, func(i int) Fate {
			switch {
			case view[i] != gone:
				return Stays
			case stop:
				return Leaves
			}
			return Lost
		})
		if primary {
			number++
			for _, v := range rest {
				h.gvw[v] = gvwstate(v+1, number, numbered(rest)...)
			}
		} else if was {
			for _, v := range rest {
				h.recoveries[v] = int(h.last)
			}
		}
		view = rest
	}
	return h
}

func numbered(view []int) (list []int) {
	for _, v := range view {
		list = append(list, v+1)
	}
	return list
}

func (h *history) nodes(hidden int) (list []Node) {
	for i := range h.gra {
		if i == hidden {
			continue
		}
		var log []string
		if h.recoveries[i] > 0 {
			log = recovered(historyA, h.recoveries[i])
		}
		log = append([]string{"2026 1 [Note] WSREP: ####### My UUID: " + memberID(i+1)}, log...)
		list = append(list, Down(fmt.Sprint("n", i+1), fmt.Sprint("/d", i+1), h.gra[i], h.gvw[i], nil, log))
	}
	return list
}
