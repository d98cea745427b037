package keep

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/fault"
)

// Elsewhere refuses members that another group has: each of the two would undo what the other does. db1 and 10.0.0.1 are one server where the name leads there.
func (r *Room) Elsewhere(ctx context.Context, g *group.Group) error {
	list, err := r.Groups(ctx)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(other group.Group) bool { return other.Name == g.Name })
	at := resolve(ctx, append(slices.Clone(list), *g))
	for _, other := range list {
		for _, m := range g.Members {
			i := slices.IndexFunc(other.Members, func(o group.Member) bool { return at.same(o.Address, m.Address) })
			if i < 0 {
				continue
			}
			o := &other.Members[i]
			as := ""
			if !strings.EqualFold(o.Address, m.Address) {
				as = " as " + o.Address
			}
			return fault.New(fault.Failed, "risso group remove "+other.Name+" "+o.Name, fmt.Errorf("%s (%s) is a member of the group %s%s: %w", m.Name, m.Address, other.Name, as, ErrElsewhere))
		}
	}
	return nil
}

// resolveTime is how long it may take to look up where names lead; of one that is not known by then the name counts.
const resolveTime = 2 * time.Second

// places are the IP addresses of hosts, by lower-case name.
type places map[string][]string

// resolve looks up where the members of groups are.
func resolve(ctx context.Context, list []group.Group) places {
	at := places{}
	for _, g := range list {
		for _, m := range g.Members {
			if host, _, err := net.SplitHostPort(m.Address); err == nil {
				at[strings.ToLower(host)] = nil
			}
		}
	}
	ctx, stop := context.WithTimeout(ctx, resolveTime)
	defer stop()
	hosts := make([]string, 0, len(at))
	for host := range at {
		hosts = append(hosts, host)
	}
	var mu sync.Mutex
	var looks errgroup.Group
	looks.SetLimit(50)
	for _, host := range hosts {
		looks.Go(func() error {
			found, err := net.DefaultResolver.LookupHost(ctx, host)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				at[host] = found
			}
			return nil // the name counts
		})
	}
	_ = looks.Wait() // no look fails
	return at
}

// same reports whether two addresses are those of one server.
func (at places) same(a, b string) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB {
		return false
	}
	found := at[strings.ToLower(hostB)]
	return slices.ContainsFunc(at[strings.ToLower(hostA)], func(ip string) bool { return slices.Contains(found, ip) })
}
