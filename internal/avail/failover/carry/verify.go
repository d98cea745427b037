package carry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// verifyTime is how long the row by which a promotion is verified may take to be written, and then to arrive.
const verifyTime = 5 * time.Second

// errUnwritten says that nothing is to be written.
var errUnwritten = errors.New("the group's policy is that nothing is written")

// verify writes a row to the new primary the way clients go, and waits until the members that follow it have applied that. Nothing depends on it: clients are there already.
func (r *run) verify(ctx context.Context, failed map[string]error) {
	v := &failover.Verified{}
	set, err := r.writeRow(ctx)
	if v.Written = err == nil; err != nil {
		v.Not = err.Error()
	}
	var mu sync.Mutex
	missing := func(name, why string) {
		mu.Lock()
		defer mu.Unlock()
		v.Missing = append(v.Missing, name+" ("+why+")")
	}
	var follow []string
	for _, name := range r.others() {
		if failed[name] != nil {
			missing(name, "it does not follow")
		} else {
			follow = append(follow, name)
		}
	}
	for name, err := range each(follow, func(name string) error { return r.arrives(ctx, name, set, v.Written) }) {
		missing(name, err.Error())
		follow = slices.DeleteFunc(follow, func(n string) bool { return n == name })
	}
	slices.Sort(follow)
	slices.Sort(v.Missing)
	v.Arrived = follow
	r.mu.Lock()
	r.j.Verified = v
	r.mu.Unlock()
	r.words(r.j.New, "%s", v.Words())
}

// writeRow writes who is the primary, by the address that clients are told, and returns all that the new primary has logged then.
func (r *run) writeRow(ctx context.Context) (mysql.GTIDSet, error) {
	if r.g.Policy.Unwritten {
		return mysql.GTIDSet{}, errUnwritten
	}
	ctx, stop := context.WithTimeout(ctx, verifyTime)
	defer stop()
	m := r.g.Members[r.g.Find(r.j.New)]
	n, err := connect(ctx, m.Name, r.targets[m.Name].WithAddress(m.Address), verifyTime)
	if err != nil {
		return mysql.GTIDSet{}, err
	}
	defer n.close()
	there, err := n.c.Text(ctx, mysql.RowTableQuery)
	if err != nil {
		return mysql.GTIDSet{}, err
	}
	statements := []string{mysql.PrimaryRow(r.g.Name, r.j.Epoch, r.j.New)}
	if there == "0" {
		statements = append(mysql.RowTable(), statements...)
	}
	for _, s := range statements {
		if err := r.do(ctx, n, s); err != nil {
			return mysql.GTIDSet{}, err
		}
	}
	return mysql.LoggedGTIDs(ctx, n.c)
}

// arrives waits until a member has applied a set, and, if written, has the row; with nothing written it makes sure that it receives.
func (r *run) arrives(ctx context.Context, name string, set mysql.GTIDSet, written bool) error {
	ctx, stop := context.WithTimeout(ctx, 2*verifyTime)
	defer stop()
	n, err := connect(ctx, name, r.targets[name], 2*verifyTime)
	if err != nil {
		return err
	}
	defer n.close()
	list, err := read.ReplicaChannels(ctx, n.c)
	switch {
	case err != nil:
		return err
	case len(list) != 1 || !list[0].IORunning:
		return errors.New("it does not receive")
	case !written:
		return nil
	case list[0].Delay > 0:
		return fmt.Errorf("it stays %ds behind on purpose", list[0].Delay)
	}
	ok, err := mysql.WaitApplied(ctx, n.c, set, verifyTime)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("it has not applied it within %s", verifyTime)
	}
	epoch, err := n.c.Text(ctx, mysql.PrimaryRowQuery(r.g.Name))
	switch {
	case err != nil:
		return fmt.Errorf("it has applied all, and the row cannot be read: %w", err)
	case epoch != fmt.Sprint(r.j.Epoch):
		return errors.New("it has applied all, and has not the row: it leaves something out")
	}
	return nil
}
