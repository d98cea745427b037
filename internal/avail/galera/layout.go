package galera

import (
	"errors"
	"fmt"

	"github.com/rissodb/risso/internal/digits"
)

// Layout is a cluster in numbers, as it is planned.
type Layout struct {
	Nodes       int
	Centres     []int // how many of the nodes are in each data centre; none: there is one
	Weights     []int // pc.weight of each node, in their order; none: one vote each
	Arbitrators int   // that come in addition, with one vote each, in data centres of their own if there are several
}

// Voters are its members: node1, node2 …, in dc1, dc2 …; a layout that cannot be is an error.
func (l Layout) Voters() ([]Voter, error) {
	sum := 0
	for _, n := range l.Centres {
		if n < 1 {
			return nil, fmt.Errorf("a data centre with %s", digits.Counted(n, "node"))
		}
		sum += n
	}
	if l.Nodes == 0 {
		l.Nodes = sum
	}
	switch {
	case len(l.Centres) > 0 && sum != l.Nodes:
		return nil, fmt.Errorf("the data centres have %s together, and there are %d", digits.Counted(sum, "node"), l.Nodes)
	case l.Nodes < 1 || l.Arbitrators < 0 || l.Nodes+l.Arbitrators > MostVoters:
		return nil, fmt.Errorf("%s and %s: at least 1 node, and at most %d members", digits.Counted(l.Nodes, "node"), digits.Counted(l.Arbitrators, "arbitrator"), MostVoters)
	case len(l.Weights) > 0 && len(l.Weights) != l.Nodes:
		return nil, fmt.Errorf("%s for %s", digits.Counted(len(l.Weights), "weight"), digits.Counted(l.Nodes, "node"))
	}
	var list []Voter
	centre, left, votes := 0, 0, 0
	if len(l.Centres) > 0 {
		left = l.Centres[0]
	}
	for i := range l.Nodes {
		v := Voter{Name: fmt.Sprint("node", i+1), Votes: 1}
		if len(l.Weights) > 0 {
			v.Votes = l.Weights[i]
		}
		if v.Votes < 0 || v.Votes > MostVotes {
			return nil, fmt.Errorf("a weight of %d: 0 to %d", v.Votes, MostVotes)
		}
		if len(l.Centres) > 0 {
			for left == 0 {
				centre++
				left = l.Centres[centre]
			}
			v.DC, left = fmt.Sprint("dc", centre+1), left-1
		}
		votes += v.Votes
		list = append(list, v)
	}
	if votes == 0 {
		return nil, errors.New("no node has a vote")
	}
	for i := range l.Arbitrators {
		v := Voter{Name: fmt.Sprint("garbd", i+1), Votes: 1, Arbitrator: true}
		if len(l.Centres) > 0 {
			v.DC = fmt.Sprint("dc", len(l.Centres)+1+i)
		}
		list = append(list, v)
	}
	return list, nil
}
