// Package publishing tells others where the clients of groups go while risso serve runs: it answers over DNS, keeps Consul up to date, and has the hooks and the
// answers over HTTP for those who call them.
package publishing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/avail/publish"
	"github.com/rissodb/risso/internal/avail/publish/names"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/serve/config"
	"github.com/rissodb/risso/internal/store/agree"
)

// Options are what a Room needs.
type Options struct {
	Config config.Publish
	Views  publish.Views
	Lead   agree.Leadership  // who leads tells Consul: the others may see less
	Docs   publish.Documents // where it is kept which hooks ran
	Logger *slog.Logger
}

// Room tells others.
type Room struct {
	Options
	desk    *publish.Desk
	hooks   *publish.Hooks
	server  *names.Server
	packets net.PacketConn
	conns   net.Listener
}

// New makes a room. It takes the address for DNS at once: what does not work is known before anything is watched.
func New(ctx context.Context, o Options) (*Room, error) {
	r := &Room{Options: o}
	if !o.Config.NoHTTP {
		r.desk = publish.NewDesk(o.Views, o.Config.MaxAge)
	}
	if len(o.Config.Hooks) > 0 {
		r.hooks = &publish.Hooks{List: o.Config.Hooks, Docs: o.Docs, Now: time.Now}
	}
	if o.Config.DNS == nil {
		return r, nil
	}
	var err error
	if r.server, err = names.New(o.Config.DNS.Zone, o.Config.DNS.Nameservers, o.Views, o.Config.MaxAge); err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	if r.packets, err = lc.ListenPacket(ctx, "udp", o.Config.DNS.Listen); err != nil {
		return nil, listenFailure(o.Config.DNS.Listen, err)
	}
	// The same port, also where the system chose it.
	if r.conns, err = lc.Listen(ctx, "tcp", r.packets.LocalAddr().String()); err != nil {
		r.packets.Close()
		return nil, listenFailure(o.Config.DNS.Listen, err)
	}
	return r, nil
}

// listenFailure says why an address cannot be had.
func listenFailure(address string, err error) error {
	code, hint := fault.Failed, ""
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		code, hint = fault.InUse, "choose another one with publish, dns, listen in the config file"
	case errors.Is(err, syscall.EACCES):
		hint = "ports below 1024 need CAP_NET_BIND_SERVICE: choose another one, and forward to it"
	}
	return fault.New(code, hint, fmt.Errorf("answer DNS at %s: %w", address, err))
}

// Desk answers over HTTP; nil: nobody does.
func (r *Room) Desk() *publish.Desk { return r.desk }

// Hooks are what runs when something happens to a group; nil: there are none.
func (r *Room) Hooks() *publish.Hooks { return r.hooks }

// DNS is the address at which DNS is answered; "": nowhere.
func (r *Room) DNS() string {
	if r.packets == nil {
		return ""
	}
	return r.packets.LocalAddr().String()
}

// Close gives the address for DNS back, if Run does not.
func (r *Room) Close() {
	if r.packets != nil {
		r.packets.Close()
		r.conns.Close()
	}
}

// Run tells until ctx ends.
func (r *Room) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	if r.server != nil {
		g.Go(func() error { return r.server.Serve(ctx, r.packets, r.conns) })
	}
	if r.Config.Consul != nil {
		g.Go(func() error { r.Lead.WhileLeader(ctx, r.groups); return nil })
	}
	return g.Wait()
}

// newGroups is how often it is looked for new groups.
const newGroups = time.Second

// groups keeps Consul up to date about each group, until ctx ends.
func (r *Room) groups(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	var mu sync.Mutex
	told := map[string]bool{}
	for {
		for _, name := range r.Views.Groups() {
			mu.Lock()
			if !told[name] {
				told[name] = true
				wg.Go(func() {
					r.consul(ctx, name)
					mu.Lock()
					defer mu.Unlock()
					delete(told, name)
				})
			}
			mu.Unlock()
		}
		if delay.For(ctx, newGroups) != nil {
			return
		}
	}
}

// consul tells Consul of each change of a group until it is gone. What Consul did not take is told again.
func (r *Room) consul(ctx context.Context, name string) {
	seen, failed := "", false
	for ctx.Err() == nil {
		v, tag := r.Views.Wait(ctx, name, seen)
		if tag == "" || ctx.Err() != nil {
			return
		}
		if publish.Fresh(v, time.Now(), r.Config.MaxAge) != nil {
			if delay.For(ctx, time.Second) != nil {
				return
			}
			continue
		}
		err := r.Config.Consul.Tell(ctx, v)
		switch {
		case errors.Is(err, publish.ErrNewer): // another controller knew better
			seen = tag
			r.Logger.Info("Consul knows better", "group", name, "err", err)
		case err != nil:
			if !failed && ctx.Err() == nil {
				r.Logger.Warn("Consul is not told", "group", name, "err", err)
			}
			if failed = true; delay.For(ctx, time.Second) != nil {
				return
			}
		default:
			if failed {
				r.Logger.Warn("Consul is told again", "group", name)
			}
			seen, failed = tag, false
		}
	}
}
