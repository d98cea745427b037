package look

import (
	"context"
	"errors"
	"fmt"

	"github.com/rissodb/risso/internal/avail/topology"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// ErrNoReplica says that no replica was found.
var ErrNoReplica = errors.New("no replica found")

// Replicas finds the replicas of a server, and theirs, the nearest first. Its account has to be good for them, too. Notes say which were found and could not be
// asked.
func Replicas(ctx context.Context, primary mysql.Target) (found []mysql.Target, notes []string, err error) {
	c, err := mysql.Connect(ctx, primary, nil)
	if err != nil {
		return nil, nil, err
	}
	_, err = read.ListedReplicas(ctx, c) // a privilege that is missing ends it, with what to grant
	c.Close()
	if err != nil {
		return nil, nil, err
	}
	search := Search([]mysql.Target{primary})
	search.Down, search.Again = true, nil
	t := search.Discover(ctx, []topology.Start{{Address: primary.Address()}})
	if err := context.Cause(ctx); err != nil {
		return nil, nil, err
	}
	for _, l := range t.Below(t.Find(primary.Address())) {
		n := &t.Nodes[l.Replica]
		if n.Seen && l.Channel != nil {
			found = append(found, primary.WithAddress(n.Addresses[0]))
			continue
		}
		notes = append(notes, fmt.Sprintf("replica %s cannot be queried: %s; give it with --replica", n.Name, n.Unseen.Words()))
	}
	for _, s := range t.Surprises {
		notes = append(notes, s.Text)
	}
	if len(found) == 0 {
		err = fmt.Errorf("%w at %s", ErrNoReplica, primary)
		for _, n := range notes {
			err = fmt.Errorf("%w; %s", err, n)
		}
	}
	return found, notes, err
}
