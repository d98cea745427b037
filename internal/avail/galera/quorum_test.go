package galera

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// voters are members from "2,2,1": data centres with so many nodes, of one vote each; votes and arbitrators may follow: "2,2,1 1,1,2,1,1 1".
func voters(t *testing.T, text string) (list []Voter) {
	t.Helper()
	var l Layout
	parts := strings.Fields(text)
	numbers := func(i int) (out []int) {
		if i < len(parts) {
			for s := range strings.SplitSeq(parts[i], ",") {
				var n int
				if _, err := fmt.Sscan(s, &n); err != nil {
					t.Fatal(err)
				}
				out = append(out, n)
			}
		}
		return out
	}
	if l.Centres = numbers(0); len(l.Centres) == 1 {
		l.Nodes, l.Centres = l.Centres[0], nil
	}
	l.Weights = numbers(1)
	if a := numbers(2); len(a) > 0 {
		l.Arbitrators = a[0]
	}
	list, err := l.Voters()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestPlans: cases that are published. Sources: shared figures of the project; Galera documentation, "Weighted Quorum", "Quorum Components" and
// "Two-Node Clusters".
func TestPlans(t *testing.T) {
	for _, c := range []struct {
		of                              string
		votes, needed, crashes, inTurn  int
		words                           []string
		centresThatMayBeLost, noSideOn  int // how many of the data centres, alone; ways to split without a primary component
		stopsTo, crashesAfterOneStopped int
	}{
		{of: "1", votes: 1, needed: 1},
		{of: "2", votes: 2, needed: 2, stopsTo: 1, words: []string{"none may crash"}},
		{of: "3", votes: 3, needed: 2, crashes: 1, inTurn: 1, stopsTo: 1, words: []string{"any 1 may crash at once", "until 1 member is left"}},
		{of: "4", votes: 4, needed: 3, crashes: 1, inTurn: 2, stopsTo: 1, crashesAfterOneStopped: 1, words: []string{"any 1 may crash at once, and 2 one after the other"}},
		{of: "5", votes: 5, needed: 3, crashes: 2, inTurn: 3, stopsTo: 1, crashesAfterOneStopped: 1, words: []string{"any 2 may crash at once"}},
		{of: "6", votes: 6, needed: 4, crashes: 2, inTurn: 4, stopsTo: 1, crashesAfterOneStopped: 2},
		{of: "7", votes: 7, needed: 4, crashes: 3, inTurn: 5, stopsTo: 1, crashesAfterOneStopped: 2},
		{of: "2,1", votes: 3, needed: 2, crashes: 1, inTurn: 1, centresThatMayBeLost: 1, stopsTo: 1, words: []string{"the loss of dc1 stops it; it may lose dc2"}},
		{of: "2,2", votes: 4, needed: 3, crashes: 1, inTurn: 2, noSideOn: 1, stopsTo: 1, crashesAfterOneStopped: 1, words: []string{"the loss of either data centre stops it", "no side goes on"}},
		{of: "3,2", votes: 5, needed: 3, crashes: 2, inTurn: 3, centresThatMayBeLost: 1, stopsTo: 1, crashesAfterOneStopped: 1},
		{of: "1,1,1", votes: 3, needed: 2, crashes: 1, inTurn: 1, centresThatMayBeLost: 3, stopsTo: 1, words: []string{"any one data centre may be lost"}},
		{of: "2,2,1", votes: 5, needed: 3, crashes: 2, inTurn: 3, centresThatMayBeLost: 3, stopsTo: 1, crashesAfterOneStopped: 1, words: []string{"any one data centre may be lost"}},
		{of: "2,2,2", votes: 6, needed: 4, crashes: 2, inTurn: 4, centresThatMayBeLost: 3, stopsTo: 1, crashesAfterOneStopped: 2},
		{of: "3,1,1", votes: 5, needed: 3, crashes: 2, inTurn: 3, centresThatMayBeLost: 2, stopsTo: 1, crashesAfterOneStopped: 1, words: []string{"the loss of dc1 stops it; it may lose dc2 or dc3"}},
		// Two nodes and an arbitrator: the arbitrator has no data, so the crash of both nodes ends it.
		{of: "2 1,1 1", votes: 3, needed: 2, crashes: 1, inTurn: 1, stopsTo: 2, words: []string{"whoever leaves, the cluster goes on while 2 members are left: with fewer, those that are left may be arbitrators only"}},
		// A primary and a replica, where the primary has the only vote: it goes on without the other, and not the other way round.
		{of: "2 1,0", votes: 1, needed: 1, words: []string{"one crash can stop it; 1 may crash at once, if", "and can stop the cluster: those that are left may have no vote"}},
		{of: "3 1,0,0", votes: 1, needed: 1, words: []string{"and can stop the cluster"}},
		{of: "1 1 2", votes: 3, needed: 2, words: []string{"and can stop the cluster: those that are left may be arbitrators only"}},
		// Two sites, in which the first has two votes a node: it goes on if the link breaks; one of its nodes lost beforehand, no side does.
		{of: "2,2 2,2,1,1", votes: 6, needed: 4, crashes: 1, inTurn: 1, centresThatMayBeLost: 1, stopsTo: 1, crashesAfterOneStopped: 0},
	} {
		t.Run(c.of, func(t *testing.T) {
			p := Make(voters(t, c.of))
			lost, none := 0, 0
			for _, l := range p.Centres {
				if l.Serves && len(l.Of) == 1 {
					lost++
				}
			}
			for _, s := range p.Splits {
				if len(s.Primary) == 0 {
					none++
				}
			}
			if p.Votes != c.votes || p.Needed != c.needed || p.Crashes != c.crashes || p.InTurn != c.inTurn || lost != c.centresThatMayBeLost || none != c.noSideOn {
				t.Errorf("got %d votes, %d needed, %d crashes, %d in turn, %d centres, %d splits; want %d, %d, %d, %d, %d, %d", p.Votes, p.Needed, p.Crashes, p.InTurn, lost, none,
					c.votes, c.needed, c.crashes, c.inTurn, c.centresThatMayBeLost, c.noSideOn)
			}
			if last := len(p.Stops) - 1; last >= 0 && (p.Stops[last].Votes != c.stopsTo || p.Stops[0].Crashes != c.crashesAfterOneStopped) || last < 0 && c.stopsTo > 0 {
				t.Errorf("got %+v; want a last one with %d votes, and %d crashes after the first", p.Stops, c.stopsTo, c.crashesAfterOneStopped)
			}
			text := strings.Join(p.Words, "\n")
			for _, w := range c.words {
				if !strings.Contains(text, w) {
					t.Errorf("got %q; want %q in it", text, w)
				}
			}
		})
	}
}

// TestLeaving: two of two, then one of one; and a crash of one of two is not the same as its leaving.
func TestLeaving(t *testing.T) {
	two := voters(t, "2")
	fate := func(of Fate) func(int) Fate {
		return func(i int) Fate { return []Fate{Stays, of}[i] }
	}
	if !Quorate(two, fate(Leaves)) || Quorate(two, fate(Lost)) || !Quorate(two[:1], func(int) Fate { return Stays }) {
		t.Errorf("left %t, lost %t, one of one %t; want true, false, true", Quorate(two, fate(Leaves)), Quorate(two, fate(Lost)), Quorate(two[:1], func(int) Fate { return Stays }))
	}
	if p := Make(two); !slices.Equal(p.Stops, []Stop{{Members: 1, Votes: 1, MostVotes: 1, Needed: 1}}) {
		t.Errorf("got %+v; want one that is a majority by itself", p.Stops)
	}
}

// TestBetter: what is advised helps.
func TestBetter(t *testing.T) {
	for _, c := range []struct{ of, want string }{
		{"2", "one more member, or an arbitrator (garbd), and any 1 may crash at once"},
		{"4", "one more member, or an arbitrator (garbd), and any 2 may crash at once"},
		{"3", ""}, {"5", ""}, {"2,2,1", ""},
		{"2,2", "an arbitrator (garbd) in a third data centre, and any one data centre may be lost"},
		{"3,2", "an arbitrator (garbd) in a third data centre with pc.weight=2, and any one data centre may be lost"},
	} {
		if got := strings.Join(Make(voters(t, c.of)).Better, "\n"); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: got %q; want %q", c.of, got, c.want)
		}
	}
	with := append(voters(t, "3,2"), Voter{Name: "garbd", DC: "dc3", Votes: 2, Arbitrator: true})
	for _, l := range Make(with).Centres[:3] {
		if !l.Serves {
			t.Errorf("with the arbitrator that is advised: %s", l.Words(7))
		}
	}
}

// anyMembership makes up a small cluster.
func anyMembership(r *rand.Rand) (list []Voter) {
	for i := range 1 + r.IntN(7) {
		list = append(list, Voter{Name: fmt.Sprint("n", i), Votes: 1, DC: fmt.Sprint("dc", r.IntN(3))})
		if r.IntN(2) == 0 {
			list[i].Votes = r.IntN(5)
		}
		list[i].Arbitrator = i > 0 && r.IntN(5) == 0
	}
	return list
}

// TestOnePrimary: in whatever parts a network falls, and whoever leaves, at most one part is primary; there is none only if no part has more than
// half; and two data centres never survive the loss of the one with more votes.
func TestOnePrimary(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 5000 {
		list := anyMembership(r)
		part := make([]int, len(list)) // 0: it leaves
		for i := range part {
			part[i] = r.IntN(4)
		}
		primary := 0
		for p := 1; p < 4; p++ {
			if Quorate(list, func(i int) Fate {
				switch part[i] {
				case p:
					return Stays
				case 0:
					return Leaves
				}
				return Lost
			}) {
				primary++
			}
		}
		if primary > 1 {
			t.Fatalf("%+v in the parts %v: %d are primary, want at most 1", list, part, primary)
		}
		for i := range list {
			list[i].DC = fmt.Sprint("dc", i%2)
		}
		p := Make(list)
		for i, l := range p.Centres {
			if other := p.Centres[1-i]; l.Serves && l.Votes <= other.Votes {
				t.Fatalf("%+v: goes on without %s", list, l.Of)
			}
		}
	}
}

// TestAgainstAll: the numbers of a plan are those of trying every set of members, and every order in which they crash.
func TestAgainstAll(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 1000 {
		list := anyMembership(r)
		if votesOf(list) == 0 {
			continue
		}
		p, n := Make(list), len(list)
		serves := func(of []Voter, gone uint) bool {
			data := false
			ok := Quorate(of, func(i int) Fate {
				if gone>>i&1 == 1 {
					return Lost
				}
				data = data || !of[i].Arbitrator
				return Stays
			})
			return ok && data
		}
		survived := make([]uint64, n+1)
		ways := make([]uint64, n+1)
		for set := uint(1); set < 1<<n; set++ {
			k := bits.OnesCount(set)
			ways[k]++
			if serves(list, set) {
				survived[k]++
			}
		}
		crashes, most := 0, 0
		for k := 1; k <= n && survived[k] == ways[k]; k++ {
			crashes = k
		}
		for k := 1; k <= n; k++ {
			if survived[k] > 0 {
				most = k
			}
			if c := p.ByCount[k-1]; c.Survived != survived[k] || c.Ways != ways[k] {
				t.Fatalf("%+v: %d lost: got %d of %d; want %d of %d", list, k, c.Survived, c.Ways, survived[k], ways[k])
			}
		}
		if got := inTurnTried(list, serves); p.Crashes != crashes || p.Most != most || p.InTurn != got {
			t.Fatalf("%+v: got %d, %d, %d; want %d, %d, %d", list, p.Crashes, p.Most, p.InTurn, crashes, most, got)
		}
	}
}

// TestShutdowns: what a plan says of orderly shutdowns, in its sentences, is that of trying every order of them, and every set of crashes after each.
func TestShutdowns(t *testing.T) {
	numbers := regexp.MustCompile(`\d+`)
	r := rand.New(rand.NewPCG(3, 3))
	for range 1000 {
		list := anyMembership(r)
		if votesOf(list) == 0 || len(list) == 1 {
			continue
		}
		p := Make(list)
		fewest, stops := shutDown(list)
		text := strings.Join(p.Words, "\n")
		want := fmt.Sprintf("goes on while %d members are left", fewest)
		switch fewest {
		case 1:
			want = "goes on until 1 member is left"
		case len(list):
			want = "and can stop the cluster"
		}
		if !strings.Contains(text, want) || !slices.Equal(p.Stops, stops) {
			t.Fatalf("%+v: got %q, %+v; want %q, %+v", list, text, p.Stops, want, stops)
		}
		for i, s := range p.Stops {
			said := []int{s.Members, s.Needed, s.Votes}
			if s.Votes != s.MostVotes {
				said = []int{s.Members, s.Votes, s.MostVotes}
			}
			if s.Crashes > 0 {
				said = append(said, s.Crashes)
			}
			if got := numbers.FindAllString(s.Words(), -1); fmt.Sprint(got) != fmt.Sprint(said) || strings.Contains(s.Words(), "one more crash can stop it") != (stops[i].Crashes == 0) {
				t.Fatalf("%+v: %q has the numbers %v; want %v", list, s.Words(), got, said)
			}
		}
	}
}

// shutDown tries all orders in which members can leave, and what may crash after each; fewest is how many have to be left.
func shutDown(list []Voter) (fewest int, stops []Stop) {
	n := len(list)
	full := 1<<n - 1
	goes := func(all, stay int, rest Fate) bool {
		var of []Voter
		var fates []Fate
		data := false
		for i, v := range list {
			if all>>i&1 == 1 {
				fate := rest
				if stay>>i&1 == 1 {
					fate, data = Stays, data || !v.Arbitrator
				}
				of, fates = append(of, v), append(fates, fate)
			}
		}
		return data && Quorate(of, func(i int) Fate { return fates[i] })
	}
	bySize := map[int]*Stop{}
	stopped := 0 // the most members that an order left without a cluster
	for left := full - 1; left > 0; left-- {
		size := bits.OnesCount(uint(left))
		for i := range n {
			if left>>i&1 == 0 && !goes(left|1<<i, left, Leaves) {
				stopped = max(stopped, size)
			}
		}
		votes, crashes := 0, size
		for i, v := range list {
			if left>>i&1 == 1 {
				votes += v.Votes
			}
		}
		for stay := left; ; stay = (stay - 1) & left {
			if stay != left && !goes(left, stay, Lost) {
				crashes = min(crashes, bits.OnesCount(uint(left&^stay))-1)
			}
			if stay == 0 {
				break
			}
		}
		s := bySize[size]
		if s == nil {
			s = &Stop{Members: size, Votes: votes, MostVotes: votes, Crashes: crashes}
			bySize[size] = s
		}
		s.Votes, s.MostVotes, s.Crashes = min(s.Votes, votes), max(s.MostVotes, votes), min(s.Crashes, crashes)
	}
	for size := n - 1; size > stopped; size-- {
		s := bySize[size]
		s.Needed = s.MostVotes/2 + 1
		stops = append(stops, *s)
	}
	return stopped + 1, stops
}

// inTurnTried is how many may crash one after the other, whichever they are, by trying all.
func inTurnTried(list []Voter, serves func([]Voter, uint) bool) int {
	fewest := len(list) - 1
	for i := range list {
		n := 0
		if serves(list, 1<<i) {
			n = 1 + inTurnTried(slices.Delete(slices.Clone(list), i, i+1), serves)
		}
		fewest = min(fewest, n)
	}
	return max(fewest, 0)
}

// TestLarge: the largest cluster that is planned takes no time, and its counts do not overflow.
func TestLarge(t *testing.T) {
	l := Layout{Nodes: MostVoters}
	list, err := l.Voters()
	if err != nil {
		t.Fatal(err)
	}
	p := Make(list)
	if c := p.ByCount[29]; c.Ways != 118264581564861424 || c.Survived != 0 {
		t.Errorf("got %+v; want 60 over 30 ways, and none survived", c)
	}
	if p.Crashes != 29 {
		t.Errorf("got %d crashes; want 29", p.Crashes)
	}
}
