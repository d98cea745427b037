package trace

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// server records events as a server does: it numbers them, knows one stage at a time, and lets NESTING_EVENT_ID lie.
type server struct {
	next, clock uint64
	events      []Event
	stage       int // index of the running stage, or -1
	parent      map[uint64]uint64
	stack       []uint64 // numbers of open statements
	r           *rand.Rand
	skew        int64 // what the clock of waits is ahead
}

func newServer(seed uint64) *server {
	return &server{next: 1, clock: 1e12, stage: -1, parent: map[uint64]uint64{}, r: rand.New(rand.NewPCG(seed, 7)), skew: -17e9}
}

func (s *server) tick() uint64 { s.clock += 1e5 + s.r.Uint64N(1e6); return s.clock }

func (s *server) begin(e Event) int {
	e.ID, e.Start = s.next, s.tick()
	if n := len(s.stack); n > 0 {
		s.parent[e.ID] = s.stack[n-1]
		e.Nesting = 1 + s.r.Uint64N(e.ID) // wrong more often than right
		if e.Kind == KindStatement {
			e.Level = n
		}
	}
	s.next++
	s.events = append(s.events, e)
	return len(s.events) - 1
}

func (s *server) end(i int) {
	s.events[i].End, s.events[i].Stop = s.next-1, s.tick()
}

func (s *server) newStage(name string) {
	if s.stage >= 0 {
		s.end(s.stage)
	}
	s.stage = s.begin(Event{Kind: KindStage, Name: "stage/sql/" + name})
}

func (s *server) wait(table string) {
	i := s.begin(Event{Kind: KindWait, Name: "wait/io/table/sql/handler", Operation: "fetch", Object: &Object{Type: "TABLE", Schema: "shop", Name: table}})
	s.end(i)
	if s.stage >= 0 && s.parent[s.events[s.stage].ID] == s.stack[len(s.stack)-1] {
		s.parent[s.events[i].ID] = s.events[s.stage].ID
	}
	s.events[i].Start, s.events[i].Stop = moved(s.events[i].Start, s.skew), moved(s.events[i].Stop, s.skew)
}

// statement runs a random statement with random ones in it.
func (s *server) statement(depth int) {
	e := Event{Kind: KindStatement, Name: "statement/sql/select", SQL: fmt.Sprintf("SELECT %d", s.r.IntN(5))}
	if depth > 0 {
		e.Name, e.Program = "statement/sp/stmt", &Program{"FUNCTION", "shop", fmt.Sprintf("f%d", depth)}
	}
	i := s.begin(e)
	s.stack = append(s.stack, s.events[i].ID)
	for range 1 + s.r.IntN(4) {
		s.newStage([]string{"Opening tables", "executing", "closing tables"}[s.r.IntN(3)])
		for range s.r.IntN(3) {
			s.wait("t")
		}
		if depth < 3 && s.r.IntN(3) == 0 {
			for range s.r.IntN(3) {
				s.statement(depth + 1)
			}
		}
	}
	if depth == 0 && s.stage >= 0 {
		s.end(s.stage)
		s.stage = -1
	}
	s.stack = s.stack[:len(s.stack)-1]
	s.end(i)
}

func (s *server) idle() {
	i := s.begin(Event{Kind: KindWait, Name: "idle", Operation: "idle"})
	s.end(i)
}

func outline(t *Tree) string {
	var b strings.Builder
	t.Walk(func(n *Node, depth int) bool {
		fmt.Fprintf(&b, "%*s%d %s %v %d-%d own %d\n", depth, "", n.ID, n.Name, n.Lost, n.First, n.Last, n.Own)
		return true
	})
	for _, e := range t.Transactions {
		fmt.Fprintf(&b, "transaction %d\n", e.ID)
	}
	fmt.Fprintf(&b, "%d missing, now %d", t.Missing, t.Now)
	return b.String()
}

// polled is what polling returns of events: in any order, some twice, some also while they ran.
func polled(events []Event, r *rand.Rand) []Event {
	out := slices.Clone(events)
	for _, e := range events {
		if r.IntN(3) == 0 {
			out = append(out, e)
		}
		if r.IntN(4) == 0 {
			e.End, e.Stop = 0, 0
			out = append(out, e)
		}
	}
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

func TestAnyOrderGivesTheSameTree(t *testing.T) {
	for seed := range uint64(200) {
		s := newServer(seed)
		for range 4 {
			s.statement(0)
			s.idle()
		}
		want := Build(s.events, 0, 0)
		if want.Missing != 0 || want.Events != len(s.events) {
			t.Fatalf("seed %d: got %d of %d events, %d missing; want want.Missing 0, want.Events %d",
				seed, want.Events, len(s.events), want.Missing, len(s.events))
		}
		for range 5 {
			if got := outline(Build(polled(s.events, s.r), 0, 0)); got != outline(want) {
				t.Fatalf("seed %d: another order gives, want outline(want)\n%s\nnot\n%s", seed, got, outline(want))
			}
		}
		want.Walk(func(n *Node, _ int) bool {
			parent := uint64(0)
			if n.Parent != nil {
				parent = n.Parent.ID
			}
			if parent != s.parent[n.ID] {
				t.Fatalf("seed %d: event %d (%s) is in %d, not in %d\n%s", seed, n.ID, n.Name, parent, s.parent[n.ID], outline(want))
			}
			if p := n.Parent; p != nil && (n.First < p.Start || n.Last > p.Stop) && n.Kind == KindWait {
				t.Fatalf("seed %d: the clocks are not aligned: event %d is %d-%d in %d-%d", seed, n.ID, n.First, n.Last, p.First, p.Last)
			}
			return true
		})
	}
}

// No matter what is lost, no event is shown twice or left out, and what the statement took is divided without remainder.
func TestLostEvents(t *testing.T) {
	for seed := range uint64(200) {
		s := newServer(seed)
		for range 4 {
			s.statement(0)
			s.idle()
		}
		var kept []Event
		for _, e := range s.events {
			if s.r.IntN(4) > 0 {
				kept = append(kept, e)
			}
		}
		tree := Build(kept, 0, 0)
		seen := map[uint64]bool{}
		tree.Walk(func(n *Node, _ int) bool {
			if n.Lost {
				return true
			}
			if seen[n.ID] {
				t.Fatalf("seed %d: event %d is there twice", seed, n.ID)
			}
			seen[n.ID] = true
			if n.Own > n.Took() || n.Last < n.First {
				t.Fatalf("seed %d: event %d took %d, own %d; want n.Own at most n.Took(), n.Last at least %v", seed, n.ID, n.Took(), n.Own, n.First)
			}
			return true
		})
		if len(seen) != len(kept) {
			t.Fatalf("seed %d: %d of %d events are in the tree", seed, len(seen), len(kept))
		}
		if last, first := kept[len(kept)-1], kept[0]; tree.Missing < uint64(0) || uint64(len(kept))+tree.Missing > s.next-1 || last.ID < first.ID {
			t.Fatalf("seed %d: got %d missing of %d; want tree.Missing at least %d, uint64(len(kept)) + tree.Missing at most %v, last.ID at least %v",
				seed, tree.Missing, len(s.events), uint64(0), s.next-1, first.ID)
		}
	}
}

// A statement whose end was overwritten must not swallow what the client sent later.
func TestUnseenEndSwallowsNothing(t *testing.T) {
	tree := Build([]Event{
		{Kind: KindStatement, ID: 1, Name: "statement/sql/select", SQL: "SELECT 1", Start: 100},
		{Kind: KindStage, ID: 2, End: 2, Name: "stage/sql/executing", Start: 110, Stop: 120, Nesting: 1},
		{Kind: KindStatement, ID: 9, End: 12, Name: "statement/sql/select", SQL: "SELECT 2", Start: 300, Stop: 400},
		{Kind: KindStatement, ID: 10, End: 11, Name: "statement/sp/stmt", Level: 1, SQL: "SELECT 3", Start: 310, Stop: 320},
	}, 0, 0)
	if len(tree.Roots) != 2 || tree.Roots[0].Last != 300 || len(tree.Roots[1].Children) != 1 {
		t.Errorf("the tree is: want len(tree.Roots) 2, tree.Roots[0].Last 300, len(tree.Roots[1].Children) 1\n%s", outline(tree))
	}
	if tree.Missing != 8 {
		t.Errorf("%d events are missing, not 8 of 12", tree.Missing)
	}
}

// A wait for a metadata lock begins in one stage and fills the next: its time counts once.
func TestWaitThatOutlivesItsStage(t *testing.T) {
	r := NewReport(&Trace{Seconds: 1, Events: []Event{
		{Kind: KindStatement, ID: 1, End: 4, Name: "statement/sql/insert", SQL: "INSERT INTO t VALUES (1)", Start: 1e9, Stop: 2e9},
		{Kind: KindStage, ID: 2, End: 3, Name: "stage/sql/Opening tables", Start: 1e9, Stop: 1.1e9, Nesting: 1},
		{Kind: KindWait, ID: 3, End: 4, Name: "wait/lock/metadata/sql/mdl", Start: 1.05e9, Stop: 1.95e9, Nesting: 2},
		{Kind: KindStage, ID: 4, End: 4, Name: "stage/sql/Waiting for table metadata lock", Start: 1.1e9, Stop: 2e9, Nesting: 1},
	}}, false)
	if len(r.Phases) != 2 || r.Phases[0].Name != string(phaseLocks) || r.Phases[0].Share < 0.89 || r.Phases[0].Share > 0.91 {
		t.Errorf("phases: got %+v; want len(r.Phases) 2, r.Phases[0].Name %v, r.Phases[0].Share from 0.89 to 0.91", r.Phases, string(phaseLocks))
	}
}

func FuzzBuild(f *testing.F) {
	f.Add([]byte{1, 1, 5, 10, 50, 0, 2, 2, 2, 20, 30, 1}, uint64(1))
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		kinds := []Kind{KindStatement, KindStage, KindWait, KindTransaction}
		names := []string{"statement/sql/select", "statement/sp/set", "stage/sql/System lock", "idle", "wait/io/table/sql/handler", ""}
		var events []Event
		for ; len(data) >= 6; data = data[6:] {
			events = append(events, Event{Kind: kinds[data[0]%4], Name: names[data[0]/4%6], ID: uint64(data[1]), End: uint64(data[2]), Start: uint64(data[3]) * 1e6, Stop: uint64(data[4]) * 1e6,
				Nesting: uint64(data[5] % 8), Level: int(data[5] / 8 % 4)})
		}
		want := Build(events, 0, 0)
		r := rand.New(rand.NewPCG(seed, 1))
		r.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		if got := Build(events, 0, 0); outline(got) != outline(want) {
			t.Fatalf("another order gives: want outline(want)\n%s\nnot\n%s", outline(got), outline(want))
		}
		rep := NewReport(&Trace{Events: events}, seed%2 == 0)
		drawAll(t, rep)
	})
}
