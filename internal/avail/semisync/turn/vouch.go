package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Place is how far a replica has received the binary log of the primary from which it replicates.
type Place struct {
	Replica string
	File    string
	Pos     int64
}

// ErrWait says that commits wait on though the primary was told what its replicas have.
var ErrWait = errors.New("commits wait for an acknowledgement, and it does not come")

// Vouch tells a primary whose commits wait what its replicas have received, and waits until one of them goes on; c is connected to it, and places says how far they
// are. What a replica received before it acknowledged, it does not acknowledge later, on either flavour: a commit that waits for that waits until a later one is
// acknowledged, and for good where several do, as no further one is logged then. It reports whether it told it: no commit went on by itself.
func Vouch(ctx context.Context, primary mysql.Target, c *mysql.Conn, places func(context.Context) ([]Place, error), limit time.Duration) (told bool, err error) {
	before, err := read.SemiSyncNow(ctx, c)
	if err != nil || !before.Source.InForce || before.Source.Waiting == 0 {
		return false, err
	}
	for range 5 { // one that was long at work before it began to wait is acknowledged by itself
		if err := delay.For(ctx, 100*time.Millisecond); err != nil {
			return false, err
		}
		now, err := read.SemiSyncNow(ctx, c)
		if err != nil || goesOn(before.Source, now.Source) {
			return false, err
		}
	}
	for end := time.Now().Add(limit); ; {
		list, err := places(ctx)
		if err != nil {
			return true, err
		}
		for _, p := range list {
			if err := primary.Vouch(ctx, p.File, p.Pos); err != nil {
				return true, fmt.Errorf("tell the primary what %s has received: %w", p.Replica, err)
			}
		}
		now, err := read.SemiSyncNow(ctx, c)
		switch {
		case err != nil:
			return true, err
		case goesOn(before.Source, now.Source):
			return true, nil
		case time.Now().After(end):
			return true, ErrWait
		}
		if err := delay.For(ctx, 200*time.Millisecond); err != nil {
			return true, err
		}
	}
}

// goesOn reports whether a commit went on between two moments, or none waits.
func goesOn(before, now read.SemiSyncSource) bool {
	return now.Waiting == 0 || now.Yes > before.Yes || !now.InForce
}

// places asks the replicas how far they have received.
func (g *Group) places(ctx context.Context) (list []Place, err error) {
	for _, r := range g.replicas {
		moments, err := read.ReplicaMoments(ctx, r.c)
		if err != nil {
			return nil, fmt.Errorf("ask %s how far it is: %w", r.name, err)
		}
		at := slices.IndexFunc(moments, func(m read.ReplicaMoment) bool { return m.Name == r.moment.Name })
		if at >= 0 && moments[at].Receives() && moments[at].ReadLog != "" {
			list = append(list, Place{r.name, moments[at].ReadLog, moments[at].ReadPos})
		}
	}
	return list, nil
}
