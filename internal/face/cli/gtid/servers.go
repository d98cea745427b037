package gtid

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rissodb/risso/internal/avail/errant"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/mysql"
)

// named is a server that is asked.
type named struct {
	name   string
	target mysql.Target
}

// ask connects and reads.
func (n named) ask(ctx context.Context) (errant.Reading, error) {
	c, err := mysql.Connect(ctx, n.target, nil)
	if err != nil {
		return errant.Reading{}, err
	}
	defer c.Close()
	return errant.Read(ctx, n.name, c)
}

// askSource is ask of one that a replica is to go on from: where its binary logs begin is asked, too.
func (n named) askSource(ctx context.Context) (errant.Reading, error) {
	c, err := mysql.Connect(ctx, n.target, nil)
	if err != nil {
		return errant.Reading{}, err
	}
	defer c.Close()
	r, err := errant.Read(ctx, n.name, c)
	if err == nil {
		err = r.AskGone(ctx, c)
	}
	return r, err
}

// mostBetween is how many servers may be between a replica and its primary.
const mostBetween = 16

// between asks the servers of a chain that are between a replica and its primary, from below, as each tells where it replicates from. They are asked by the
// account of the replica.
func (n named) between(ctx context.Context, replica, source *errant.Reading) (list []errant.Reading, err error) {
	for at := replica; !at.Follows(source) && len(at.Channels) == 1 && len(list) < mostBetween; at = &list[len(list)-1] {
		address := at.Channels[0].Status.Source
		above := named{address, n.target.WithAddress(address)}
		r, err := above.askSource(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s does not replicate from %s itself, and what is between could not be asked: %w", replica.Name, source.Name, err)
		}
		if !at.Follows(&r) || r.Identity == replica.Identity || slices.ContainsFunc(list, func(o errant.Reading) bool { return o.Identity == r.Identity }) {
			break // the plan says that it is not below the source
		}
		list = append(list, r)
	}
	return list, nil
}

// servers are those that --dsn names.
func servers(f flags.Servers) (list []named, err error) {
	watched, err := f.Watched()
	if err != nil {
		return nil, err
	}
	for _, w := range watched {
		list = append(list, named{w.Instance.Name, w.Target})
	}
	return list, nil
}

// source is the server that --source names; ok is false if it names none.
func source(f flags.Servers, dsn string) (n named, ok bool, err error) {
	if dsn == "" {
		return n, false, nil
	}
	f.Dsns, f.All = []string{dsn}, false
	list, err := servers(f)
	if err != nil || len(list) == 0 {
		return n, false, errors.Join(errors.New("--source"), err)
	}
	return list[0], true, nil
}
