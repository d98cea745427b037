package carry

import (
	"context"
	"sync"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// keepTLS keeps in the journal how the channel of the one that is promoted is encrypted, before it is removed: without that the member would replicate in clear when it is a replica again.
func (r *run) keepTLS(ctx context.Context, n *node) error {
	list, err := read.ReplicaChannels(ctx, n.c)
	if err != nil || len(list) != 1 {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.j.TLS = &list[0].TLS
	return nil
}

// channel gives a member that has none a channel, by the account of the group.
func (r *run) channel(ctx context.Context, n *node, host string, port int) error {
	f := mysql.Following{Host: host, Port: port, User: r.access.Replication.User, Password: r.access.Replication.Password, Heartbeat: heartbeat, TLS: r.secure(ctx, n.name)}
	shown := f
	shown.Password = "…"
	return r.doShown(ctx, n, n.c.Server.Follow(f), n.c.Server.Follow(shown))
}

// secure is how a new channel of a member is encrypted: not in clear where the other members' channels are not. Its own files come first, as they were when it last replicated.
func (r *run) secure(ctx context.Context, name string) fleet.ChannelTLS {
	own := fleet.ChannelTLS{}
	if i := r.g.Find(name); name == r.j.New && r.j.TLS != nil { // it goes back
		own = *r.j.TLS
	} else if i >= 0 && r.g.Members[i].TLS != nil {
		own = *r.g.Members[i].TLS
	}
	now := r.channelsOfOthers(ctx, name)
	switch {
	case len(now) > 0 && !now[0].On:
		return fleet.ChannelTLS{} // all replicate in clear by now
	case own.On:
		return own
	case len(now) > 0:
		return now[0]
	}
	for _, m := range r.g.Members {
		if m.TLS != nil && m.TLS.On {
			return *m.TLS
		}
	}
	return own
}

// channelsOfOthers is how those of the other members are encrypted that replicate within the group, encrypted ones first.
func (r *run) channelsOfOthers(ctx context.Context, but string) (list []fleet.ChannelTLS) {
	var names []string
	for _, m := range r.g.Members {
		if m.Name != but && m.Status != group.Faulty && m.Status != group.Primary {
			names = append(names, m.Name)
		}
	}
	var mu sync.Mutex
	each(names, func(name string) error {
		ctx, stop := context.WithTimeout(ctx, letsPatience)
		defer stop()
		n, err := connect(ctx, name, r.targets[name], letsPatience)
		if err != nil {
			return err
		}
		defer n.close()
		found, err := read.ReplicaChannels(ctx, n.c)
		if err != nil || len(found) != 1 {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if found[0].TLS.On {
			list = append([]fleet.ChannelTLS{found[0].TLS}, list...)
		} else {
			list = append(list, found[0].TLS)
		}
		return nil
	})
	return list
}
