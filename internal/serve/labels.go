package serve

import (
	"context"
	"os"
	"slices"
	"sync"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/store/series/mapped"
	"github.com/rissodb/risso/internal/store/state"
	"github.com/rissodb/risso/internal/watch/live"
)

// labeller knows the labels of every instance that has series: those on the board, those watched at another time, and Risso itself.
type labeller struct {
	rules mapped.Rules
	board *live.Board
	past  []fleet.Instance
	here  string

	mu    sync.Mutex
	known []fleet.Instance // for whom labels were made
	made  map[string][]mapped.Label
}

// newLabeller makes a labeller.
func newLabeller(ctx context.Context, rules mapped.Rules, board *live.Board, facts *state.Store) (*labeller, error) {
	here, _ := os.Hostname() // without one, what needs it has no such label
	l := &labeller{rules: rules, board: board, here: here}
	records, err := facts.Instances(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		l.past = append(l.past, r.Instance)
	}
	l.past = append(l.past, fleet.Instance{ID: selfID})
	return l, nil
}

// labels are the labels by instance; they are made anew when an instance changed.
func (l *labeller) labels() map[string][]mapped.Label {
	now := l.board.Instances()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made == nil || !slices.Equal(now, l.known) {
		l.known, l.made = now, l.rules.Labels(slices.Concat(l.past, now), l.here) // the present wins over the past
	}
	return l.made
}
