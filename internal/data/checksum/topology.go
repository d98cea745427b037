package checksum

import (
	"context"
	"errors"
	"fmt"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// ErrNoReplica says that no replica was found.
var ErrNoReplica = errors.New("no replica found")

// maxReplicas bounds the search.
const maxReplicas = 100

// FindReplicas finds the replicas of a primary, and theirs, by what the servers know of each other. The account of the primary
// has to be good for them, too. Notes say which were found and could not be asked.
func FindReplicas(ctx context.Context, primary mysql.Target) (found []mysql.Target, notes []string, err error) {
	c, err := mysql.Connect(ctx, primary, nil)
	if err != nil {
		return nil, nil, err
	}
	id, err := read.ServerID(ctx, c)
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	addresses, err := read.ReplicaAddresses(ctx, c)
	c.Close()
	if err != nil {
		return nil, nil, err
	}
	type source struct{ address, id string }
	var queue []source
	add := func(list []string, id string) {
		for _, a := range list {
			queue = append(queue, source{a, id})
		}
	}
	add(addresses, id)
	known := map[string]bool{id: true}
	for ; len(queue) > 0 && len(found) < maxReplicas; queue = queue[1:] {
		next := queue[0]
		t := primary.WithAddress(next.address)
		own, list, err := askReplica(ctx, t, next.id)
		switch {
		case ctx.Err() != nil:
			return nil, nil, context.Cause(ctx)
		case err != nil:
			notes = append(notes, fmt.Sprintf("replica %s cannot be queried: %v; give it with --replica", next.address, err))
		case !known[own]:
			known[own] = true
			found = append(found, t)
			add(list, own)
		}
	}
	if len(found) == 0 {
		err = fmt.Errorf("%w at %s", ErrNoReplica, primary)
		for _, n := range notes {
			err = fmt.Errorf("%w; %s", err, n)
		}
	}
	return found, notes, err
}

var errNotReplica = errors.New("it does not replicate from there")

// askReplica makes sure that a server replicates from another and asks for its own replicas.
func askReplica(ctx context.Context, t mysql.Target, source string) (id string, replicas []string, err error) {
	c, err := mysql.Connect(ctx, t, nil)
	if err != nil {
		return "", nil, err
	}
	defer c.Close()
	if id, err = read.ServerID(ctx, c); err != nil {
		return "", nil, err
	}
	channels, err := read.ReplicaChannels(ctx, c)
	if err != nil {
		return "", nil, err
	}
	ok := false
	for _, ch := range channels {
		ok = ok || ch.SourceID == source
	}
	if !ok {
		return "", nil, errNotReplica
	}
	replicas, err = read.ReplicaAddresses(ctx, c)
	if mysql.ClassOf(err) == mysql.ClassPrivilege {
		err = nil // then its own replicas must be named
	}
	return id, replicas, err
}
