// Package galera is the arithmetic of Galera clusters: which losses leave a primary component, which node to bootstrap, whether a node that comes
// back takes a few transactions or a copy of all data. What was seen goes in, decisions and their reasons come out. It does no IO.
package galera

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/digits"
)

// Voter is a member of a cluster, or one that is planned.
type Voter struct {
	Name       string `json:"name"`
	DC         string `json:"dc,omitempty"`         // its data centre
	Votes      int    `json:"votes"`                // pc.weight
	Arbitrator bool   `json:"arbitrator,omitempty"` // it votes, and has no data
}

// Fate is what becomes of a member.
type Fate int

// The fates.
const (
	Stays  Fate = iota
	Leaves      // it is shut down: it says good-bye, and the cluster becomes smaller
	Lost        // it crashed, or cannot be reached: nobody knows which
)

// Quorate reports whether those of a membership that stay, and see each other, are its primary component: they have more than half of its
// votes, and each vote of a member that said good-bye counts half for them. Sources: Galera documentation, "Weighted Quorum"; the same in
// have_quorum of Galera's pc_proto.cpp.
func Quorate(membership []Voter, fate func(i int) Fate) bool {
	stay, left, all := 0, 0, 0
	for i, v := range membership {
		all += v.Votes
		switch fate(i) {
		case Stays:
			stay += v.Votes
		case Leaves:
			left += v.Votes
		}
	}
	return 2*stay+left > all
}

// MostVoters is the largest cluster that is planned, and MostVotes the largest pc.weight.
const (
	MostVoters = 60
	MostVotes  = 255
)

// Loss is the crash of some members at once.
type Loss struct {
	Of        []string `json:"of"`        // who crash: members, or data centres
	Votes     int      `json:"votes"`     // that are left
	Primary   bool     `json:"primary"`   // those that are left have a majority
	Serves    bool     `json:"serves"`    // and one of them has data
	Survivors []string `json:"survivors"` // those that are left
}

// Words say what is left.
func (l Loss) Words(all int) string {
	return strings.Join(l.Of, ", ") + " lost: " + l.Left(all)
}

// Left says what is left.
func (l Loss) Left(all int) string {
	switch share := fmt.Sprintf("%d of %s", l.Votes, digits.Counted(all, "vote")); {
	case l.Serves:
		return "goes on, " + share
	case l.Primary:
		return "stops: " + share + ", but only arbitrators are left"
	case 2*l.Votes == all:
		return "stops: " + share + " are no majority"
	default:
		return "stops: " + share
	}
}

// lose works out the crash of the members that are gone.
func lose(membership []Voter, gone func(i int) bool) Loss {
	var l Loss
	data := false
	for i, v := range membership {
		if gone(i) {
			l.Of = append(l.Of, v.Name)
			continue
		}
		l.Survivors, l.Votes, data = append(l.Survivors, v.Name), l.Votes+v.Votes, data || !v.Arbitrator
	}
	l.Primary = Quorate(membership, func(i int) Fate {
		if gone(i) {
			return Lost
		}
		return Stays
	})
	l.Serves = l.Primary && data
	return l
}

// Count is what becomes of the cluster when so many of its members crash at once.
type Count struct {
	Members  int    `json:"members"`  // how many crash at once
	Survived uint64 `json:"survived"` // of the ways to choose them
	Ways     uint64 `json:"ways"`     // to choose so many
}

// Words are "any", "12 of 20 sets", "none".
func (c Count) Words() string {
	switch c.Survived {
	case c.Ways:
		return "goes on, whichever they are"
	case 0:
		return "stops, whichever they are"
	}
	return fmt.Sprintf("goes on for %d of %d sets", c.Survived, c.Ways)
}

// Split is a network that falls into two parts, between data centres.
type Split struct {
	Sides   [2][]string `json:"sides"`   // data centres
	Votes   [2]int      `json:"votes"`   // of each side
	Primary []string    `json:"primary"` // the side that goes on; empty: none does
}

// Stop is what is left after orderly shutdowns, after each of which the cluster is smaller: what holds whoever it was that left.
type Stop struct {
	Members   int `json:"members"`    // that are left
	Votes     int `json:"votes"`      // the fewest that they have
	MostVotes int `json:"most_votes"` // the most that they have
	Needed    int `json:"needed"`     // the fewest that are a majority of the most
	Crashes   int `json:"crashes"`    // how many of them may then crash at once, whichever they are
}

// Words say what holds then.
func (s Stop) Words() string {
	left := digits.Counted(s.Members, "member") + " left after orderly shutdowns"
	may := MayCrash(s.Crashes)
	if s.Crashes == 0 {
		may = "one more crash can stop it"
	}
	if s.Votes == s.MostVotes {
		return fmt.Sprintf("%s: a majority is %d of %s, and %s", left, s.Needed, digits.Counted(s.Votes, "vote"), may)
	}
	return fmt.Sprintf("%s, whoever left: they have %d to %d votes, a majority is more than half of those, and %s", left, s.Votes, s.MostVotes, may)
}

// Plan is what a membership survives.
type Plan struct {
	Voters  []Voter  `json:"voters"`
	Votes   int      `json:"votes"`   // of all
	Needed  int      `json:"needed"`  // the fewest that are a majority
	Crashes int      `json:"crashes"` // how many may crash at once, whichever they are
	Most    int      `json:"most"`    // how many may crash at once, if they are the right ones
	InTurn  int      `json:"in_turn"` // how many may crash one after the other, whichever they are: the cluster is smaller each time
	ByCount []Count  `json:"by_count"`
	Single  []Loss   `json:"single"`  // each member
	Centres []Loss   `json:"centres"` // each data centre, and each pair of them
	Splits  []Split  `json:"splits"`
	Stops   []Stop   `json:"stops"` // after one, two and more were shut down, as long as the cluster goes on whoever they are
	Words   []string `json:"words"`
	Better  []string `json:"better"` // what would let it survive more
}

// Make works out what a membership survives. There is at least one member with data and one vote, and at most MostVoters.
func Make(membership []Voter) Plan {
	p := Plan{Voters: membership}
	for _, v := range membership {
		p.Votes += v.Votes
	}
	p.Needed = p.Votes/2 + 1
	p.Crashes, p.Most, p.InTurn = worst(membership), best(membership), inTurn(membership)
	p.ByCount = counts(membership)
	for i := range membership {
		p.Single = append(p.Single, lose(membership, func(j int) bool { return j == i }))
	}
	p.centres()
	p.stops()
	p.Words, p.Better = p.words(), p.better()
	return p
}

// heaviestFirst is the membership by its votes.
func heaviestFirst(membership []Voter) []Voter {
	list := slices.Clone(membership)
	slices.SortStableFunc(list, func(a, b Voter) int { return b.Votes - a.Votes })
	return list
}

func votesOf(list []Voter) (n int) {
	for _, v := range list {
		n += v.Votes
	}
	return n
}

func dataOf(list []Voter) (n int) {
	for _, v := range list {
		if !v.Arbitrator {
			n++
		}
	}
	return n
}

// worst is how many may crash at once, whichever they are: fewer than the heaviest that take the majority with them, and than all that have data.
func worst(membership []Voter) int {
	list, all := heaviestFirst(membership), votesOf(membership)
	gone, n := 0, 0
	for n < len(list) && 2*(all-gone-list[n].Votes) > all {
		gone += list[n].Votes
		n++
	}
	return max(min(n, dataOf(membership)-1), 0)
}

// best is how many may crash at once if they are the lightest, and the heaviest with data stays.
func best(membership []Voter) int {
	list, all := heaviestFirst(membership), votesOf(membership)
	keep := slices.IndexFunc(list, func(v Voter) bool { return !v.Arbitrator })
	if keep < 0 {
		return 0
	}
	list = slices.Delete(list, keep, keep+1)
	gone, n := 0, 0
	for i := len(list) - 1; i >= 0 && 2*(all-gone-list[i].Votes) > all; i-- {
		gone += list[i].Votes
		n++
	}
	return n
}

// inTurn is how many may crash one after the other, whichever they are, if the cluster has closed its ranks before each: it stops when one
// with half of the votes that are left crashes, or the last with data. What brings it there soonest is tried for each that may be that one.
func inTurn(membership []Voter) int {
	list := heaviestFirst(membership)
	fewest := max(dataOf(membership)-1, 0)
	for k := range list {
		others := slices.Delete(slices.Clone(list), k, k+1)
		rest := votesOf(others)
		for n := 0; n < fewest; n++ {
			if list[k].Votes >= rest { // half of what is left, or more
				fewest = n
				break
			}
			if len(others) == 0 {
				break
			}
			rest -= others[0].Votes // the heaviest: itself survived, or its turn is tried as another k
			others = others[1:]
		}
	}
	return fewest
}

// counts tells for each number of members how many of the sets of so many the cluster survives.
func counts(membership []Voter) []Count {
	all, data := votesOf(membership), dataOf(membership)
	// ways[d][n][v]: the ways to lose n members that have v votes together; d: all that have data are among them.
	type table [][]uint64
	fresh := func() table {
		t := make(table, len(membership)+1)
		for i := range t {
			t[i] = make([]uint64, all+1)
		}
		return t
	}
	choose := func(list []Voter) table {
		t := fresh()
		t[0][0] = 1
		for i, v := range list {
			for n := i; n >= 0; n-- {
				for w := all - v.Votes; w >= 0; w-- {
					t[n+1][w+v.Votes] += t[n][w]
				}
			}
		}
		return t
	}
	every := choose(membership)
	arbitrators := choose(slices.DeleteFunc(slices.Clone(membership), func(v Voter) bool { return !v.Arbitrator }))
	list := make([]Count, 0, len(membership))
	for n := 1; n <= len(membership); n++ {
		c := Count{Members: n}
		for w, ways := range every[n] {
			c.Ways += ways
			if 2*(all-w) > all {
				c.Survived += ways
			}
		}
		if n >= data { // those that take all data with them
			for w, ways := range arbitrators[n-data] {
				if lost := w + votesOf(membership) - votesArbitrators(membership); 2*(all-lost) > all {
					c.Survived -= ways
				}
			}
		}
		list = append(list, c)
	}
	return list
}

func votesArbitrators(membership []Voter) (n int) {
	for _, v := range membership {
		if v.Arbitrator {
			n += v.Votes
		}
	}
	return n
}

// Centres are the data centres of a membership, in their order.
func Centres(membership []Voter) (list []string) {
	for _, v := range membership {
		if v.DC != "" && !slices.Contains(list, v.DC) {
			list = append(list, v.DC)
		}
	}
	return list
}

// mostCentres is for how many data centres all ways are tried in which the network can fall into two.
const mostCentres = 8

func (p *Plan) centres() {
	names := Centres(p.Voters)
	if len(names) < 2 {
		return
	}
	add := func(gone ...string) {
		l := lose(p.Voters, func(i int) bool { return slices.Contains(gone, p.Voters[i].DC) })
		l.Of = gone
		p.Centres = append(p.Centres, l)
	}
	for _, n := range names {
		add(n)
	}
	for i, n := range names {
		for _, m := range names[i+1:] {
			if len(names) > 2 {
				add(n, m)
			}
		}
	}
	if len(names) > mostCentres {
		return
	}
	for set := 1; set < 1<<(len(names)-1); set++ { // the last one is always on the second side
		var s Split
		for i, n := range names {
			side := 1
			if set>>i&1 == 1 {
				side = 0
			}
			s.Sides[side] = append(s.Sides[side], n)
		}
		for side := range s.Sides {
			l := lose(p.Voters, func(i int) bool { return p.Voters[i].DC != "" && !slices.Contains(s.Sides[side], p.Voters[i].DC) })
			if s.Votes[side] = l.Votes; l.Serves {
				s.Primary = s.Sides[side]
			}
		}
		p.Splits = append(p.Splits, s)
	}
}

// fewestLeft is how many members have to be left after orderly shutdowns for the cluster to go on, whoever left: so many that one of them has votes, and one
// has data. It needs no more, as half of the votes of a member that leaves counts for those that stay.
func fewestLeft(membership []Voter) int {
	zeros, data := withoutVotes(membership), dataOf(membership)
	return max(zeros, len(membership)-data) + 1
}

func withoutVotes(list []Voter) (n int) {
	for _, v := range list {
		if v.Votes == 0 {
			n++
		}
	}
	return n
}

// stops works out what is left after orderly shutdowns. The worst that can be left are the heaviest, which crash next, and else the lightest; and of those with data as few
// as can be.
func (p *Plan) stops() {
	list := heaviestFirst(p.Voters)
	arbitrators := len(list) - dataOf(list)
	for n := len(list) - 1; n >= fewestLeft(list); n-- {
		s := Stop{Members: n, Votes: votesOf(list[len(list)-n:]), MostVotes: votesOf(list[:n])}
		s.Needed = s.MostVotes/2 + 1
		for k := 1; k < n-arbitrators && votesOf(list[:k]) < votesOf(list[len(list)-(n-k):]); k++ {
			s.Crashes = k
		}
		p.Stops = append(p.Stops, s)
	}
}

// stopWords say how far orderly shutdowns may go.
func (p *Plan) stopWords() (list []string) {
	all, fewest := len(p.Voters), fewestLeft(p.Voters)
	if all == 1 {
		return nil
	}
	const begin = "an orderly shutdown takes a member's votes out of the count"
	if fewest == 1 {
		return []string{begin + ": the cluster goes on until 1 member is left"}
	}
	var why []string
	if withoutVotes(p.Voters) == fewest-1 {
		why = append(why, "those that are left may have no vote")
	}
	if all-dataOf(p.Voters) == fewest-1 {
		why = append(why, "those that are left may be arbitrators only")
	}
	because := strings.Join(why, ", or ")
	if fewest == all {
		return []string{begin + ", and can stop the cluster: " + because}
	}
	return []string{begin + "; whoever leaves, the cluster goes on while " + digits.Counted(fewest, "member") + " are left: with fewer, " + because}
}

// even reports whether all have the same votes.
func (p *Plan) even() bool {
	return !slices.ContainsFunc(p.Voters, func(v Voter) bool { return v.Votes != p.Voters[0].Votes })
}

func (p *Plan) words() []string {
	what := digits.Counted(len(p.Voters), "member") + " with " + digits.Counted(p.Votes, "vote") + ": "
	if p.even() && p.Voters[0].Votes == 1 {
		what = digits.Counted(len(p.Voters), "member") + ": "
	}
	may := MayCrash(p.Crashes) + " at once"
	if p.Crashes == 0 && p.Most > 0 {
		may = "one crash can stop it"
	}
	list := []string{what + "a majority is " + digits.Counted(p.Needed, "vote") + "; " + may}
	if p.InTurn > p.Crashes {
		list[0] += ", and " + digits.Thousands(p.InTurn) + " one after the other, because the cluster is smaller after each"
	} else if p.InTurn < p.Crashes {
		list[0] += "; one after the other, whichever they are, " + MayCrash(p.InTurn)
	}
	if p.Most > p.Crashes {
		which := "the ones with the fewest votes"
		if dataOf(p.Voters) < len(p.Voters) {
			which = "the right ones"
		}
		list[0] += "; " + digits.Thousands(p.Most) + " may crash at once, if they are " + which
	}
	list = append(list, p.stopWords()...)
	return append(list, p.centreWords()...)
}

// MayCrash says how many may.
func MayCrash(n int) string {
	switch n {
	case 0:
		return "none may crash"
	case 1:
		return "any 1 may crash"
	}
	return "any " + digits.Thousands(n) + " may crash"
}

// centreWords say which data centre the cluster cannot lose.
func (p *Plan) centreWords() (list []string) {
	names := Centres(p.Voters)
	var fatal, fine []string
	for _, l := range p.Centres {
		if len(l.Of) > 1 {
			continue
		}
		if l.Serves {
			fine = append(fine, l.Of[0])
		} else {
			fatal = append(fatal, l.Of[0])
		}
	}
	switch {
	case len(names) < 2:
	case len(fatal) == 0:
		list = append(list, "any one data centre may be lost")
	case len(fine) == 0:
		list = append(list, "the loss of either data centre stops it")
		if len(names) > 2 {
			list[0] = "the loss of any data centre stops it"
		}
	default:
		list = append(list, "the loss of "+strings.Join(fatal, ", ")+" stops it; it may lose "+strings.Join(fine, " or "))
	}
	if slices.ContainsFunc(p.Splits, func(s Split) bool { return len(s.Primary) == 0 }) {
		list = append(list, "if the network falls apart in the wrong place, no side goes on: none has a majority")
	}
	return list
}

// better tries what helps most often.
func (p *Plan) better() (list []string) {
	try := func(v Voter) (Plan, bool) {
		if len(p.Voters) == MostVoters {
			return Plan{}, false
		}
		q := Plan{Voters: append(slices.Clone(p.Voters), v)}
		q.Votes = votesOf(q.Voters)
		q.Crashes = worst(q.Voters)
		q.centres()
		return q, true
	}
	names := Centres(p.Voters)
	if q, ok := try(Voter{Name: "garbd", DC: first(names), Votes: 1, Arbitrator: true}); ok && q.Crashes > p.Crashes {
		list = append(list, "one more member, or an arbitrator (garbd), and any "+digits.Thousands(q.Crashes)+" may crash at once")
	}
	survives := func(centres []Loss) (n int) {
		for _, l := range centres {
			if l.Serves && len(l.Of) == 1 {
				n++
			}
		}
		return n
	}
	if len(names) == 2 {
		if q, ok := try(Voter{Name: "garbd", DC: "another", Votes: 1, Arbitrator: true}); ok && survives(q.Centres) == 3 {
			list = append(list, "an arbitrator (garbd) in a third data centre, and any one data centre may be lost")
		} else if a, b := p.centreVotes(names[0]), p.centreVotes(names[1]); ok && a != b {
			need := int(math.Abs(float64(a-b))) + 1
			list = append(list, fmt.Sprintf("an arbitrator (garbd) in a third data centre with pc.weight=%d, and any one data centre may be lost", need))
		}
	}
	return list
}

func (p *Plan) centreVotes(dc string) (n int) {
	for _, v := range p.Voters {
		if v.DC == dc {
			n += v.Votes
		}
	}
	return n
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}
